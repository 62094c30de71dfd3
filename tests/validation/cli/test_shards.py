"""The command line: shards, what joins them, and what would be run."""

from pathlib import Path

import pandas as pd
import pytest

from validation import gap_study

from .commands import SMALL, Optgap


@pytest.mark.slow
def test_shards_and_merge(optgap: Optgap, tmp_path: Path) -> None:
    # So many cells that some are in either part, whatever the keys of today's code are.
    asked = ["--sizes", "4,5", "--count", 10, "--seed", 1, "--heuristic", "random", "-o"]
    for number in range(2):
        said = optgap("study", "aryl.reclaim", *asked, f"part{number}", "--shard", f"{number}/2")
        assert said.code == 0
        assert f"shard {number}/2: " in said.out
    said = optgap("merge", "part0", "-o", "study")
    assert said.code == 0
    assert "unfinished: " in said.out
    said = optgap("merge", "part0", "part1", "-o", "study")
    assert (said.code, said.out.splitlines()[-1]) == (0, "report: study/report.html")
    assert "unfinished" not in said.out
    whole = gap_study(
        "aryl.reclaim", seed=1, sizes=[4, 5], count=10, heuristics=["random"], output=tmp_path / "whole"
    ).rows
    columns = ["key", "status", "value", "gap"]
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "study" / "results.parquet")[columns], whole[columns])
    said = optgap("merge", "part0", "part1", "-o", "part0")
    assert (said.code, said.out) == (2, "")
    assert said.err == "optgap: output: part0 is one of the directories to be joined: choose another\n"
    said = optgap("study", "aryl.reclaim", *SMALL, "--shard", "2/2")
    assert (said.code, said.err) == (2, "optgap: shard: got '2/2', must be i/n with i from 0 to n - 1, such as 0/16\n")


def test_a_dry_run_writes_nothing(optgap: Optgap, tmp_path: Path) -> None:
    said = optgap("study", "aryl.reclaim", *SMALL, "--heuristic", "random", "--jobs", 2, "--dry-run")
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines() == [
        "8 runs, 0 of them in the directory, 8 to do with 2 jobs",
        "at most 240 s, if every run takes its whole limit",
        "no rows like them in the log that would tell what to expect",
        "about 0.1 MB on the disk",
    ]
    assert not (tmp_path / "study").exists()
    assert optgap("study", "aryl.reclaim", *SMALL, "--heuristic", "random").code == 0
    said = optgap("study", "aryl.reclaim", *SMALL, "--heuristic", "random", "--jobs", 2, "--dry-run")
    assert said.out.splitlines()[0] == "8 runs, 8 of them in the directory, 0 to do with 2 jobs"
    (tmp_path / "study" / "study.json").write_text("oh no", encoding="utf-8")
    said = optgap("study", "aryl.reclaim", *SMALL, "--dry-run")
    assert (said.code, said.out, said.err) == (2, "", "optgap: study/study.json: not valid JSON\n")
