"""Studies: what they survive, and what they compute again."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from validation import StudyError, gap_study
from validation.study.cases import generate
from validation.study.report import finish
from validation.study.results import read_rows

from .studies import FORKED, SMALL, computed, log_of, without_times

pytestmark = FORKED


def test_the_same_call_again_computes_nothing(tmp_path: Path) -> None:
    first = gap_study(**SMALL, output=tmp_path)
    log = (tmp_path / "rows.jsonl").read_bytes()
    again = gap_study(**SMALL, output=tmp_path)
    assert (tmp_path / "rows.jsonl").read_bytes() == log
    pd.testing.assert_frame_equal(again.rows, first.rows)
    pd.testing.assert_frame_equal(again.summary(), first.summary())


def test_only_what_changed_is_computed(tmp_path: Path) -> None:
    both = {"heuristics": ["server_fraction", "random"]}
    assert len(computed(tmp_path, **both)) == 9
    # More of the same: only what is new.
    assert computed(tmp_path, **both, sizes=[5, 6], count=3) == sorted(
        [("exact", 6), ("random", 6), ("server_fraction", 6)] * 3
    )
    assert computed(tmp_path, **both, count=4) == [("exact", 5), ("random", 5), ("server_fraction", 5)]
    assert computed(tmp_path, heuristics=["gpu_fraction"]) == [("gpu_fraction", 5)] * 3
    # Another time limit may change what the exact side says, and nothing else.
    assert computed(tmp_path, **both, time_limit=59) == [("exact", 5)] * 3
    # Another seed draws other instances; on given instances it is only what random heuristics draw.
    assert len(computed(tmp_path, **both, seed=4)) == 9
    given = [generate("aryl.reclaim", 3, 5, index) for index in range(3)]
    assert computed(tmp_path, **both, instances=given, count=None) == []
    assert computed(tmp_path, **both, instances=given, count=None, seed=4) == [("random", 5)] * 3


def test_the_table_holds_what_was_asked_last(tmp_path: Path) -> None:
    assert len(gap_study(**SMALL, output=tmp_path).rows) == 24
    narrow = gap_study(**{**SMALL, "count": 1}, heuristics=["random"], output=tmp_path)
    assert list(narrow.rows["algorithm"]) == ["exact", "random"]
    assert len(log_of(tmp_path)) == 24


def test_a_torn_last_line_is_dropped(tmp_path: Path) -> None:
    whole = gap_study(**SMALL, output=tmp_path)
    log = tmp_path / "rows.jsonl"
    content = log.read_bytes()
    lines = content.splitlines(keepends=True)
    for torn in (lines[-1][:-1], lines[-1][:40], lines[-1][:1]):
        log.write_bytes(b"".join(lines[:-1]) + torn)
        # A report can be made of what is there ...
        partly = finish(tmp_path)
        assert len(partly.rows) == 23
        assert not partly.metadata["finished"]
        # ... and the study goes on with the one that is missing.
        study = gap_study(**SMALL, output=tmp_path)
        assert log.read_bytes().startswith(b"".join(lines[:-1]))
        assert len(log_of(tmp_path)) == 24
        pd.testing.assert_frame_equal(without_times(study.rows), without_times(whole.rows))


def test_a_log_that_is_one_torn_line(tmp_path: Path) -> None:
    gap_study(**SMALL, output=tmp_path)
    (tmp_path / "rows.jsonl").write_bytes(b'{"key": "ab')
    assert finish(tmp_path).rows.empty
    assert len(gap_study(**SMALL, output=tmp_path).rows) == 24


@pytest.mark.parametrize("line", ["{", "3", '{"key": "a"}', "\x00\x00"])
def test_a_damaged_log_is_named(line: str, tmp_path: Path) -> None:
    gap_study(**{**SMALL, "count": 1}, output=tmp_path)
    log = tmp_path / "rows.jsonl"
    lines = log.read_text(encoding="utf-8").splitlines()
    log.write_text("\n".join([lines[0], line, *lines[1:]]) + "\n", encoding="utf-8")
    with pytest.raises(StudyError, match=r"rows\.jsonl, line 2: not"):
        read_rows(tmp_path)


@pytest.mark.parametrize("content", [None, "{", "[]", '{"asked": {}}', "\x00"])
def test_a_directory_without_a_study_is_named(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "study.json").write_text(content, encoding="utf-8")
    with pytest.raises(StudyError, match=re.escape(str(tmp_path))):
        finish(tmp_path)
    # A study can be begun there all the same.
    assert gap_study(**{**SMALL, "count": 1}, output=tmp_path).metadata["finished"]


SCRIPT = """
import sys, time
import numpy as np
from instances.aryl.reclaim import ReclaimPlan
from validation import gap_study

import validation.study.report
validation.study.report.problem_pictures = lambda rows: []

def slow(instance):
    time.sleep(0.03)
    return ReclaimPlan(servers=np.arange(instance.demand))

if __name__ == "__main__":
    gap_study("aryl.reclaim", seed=8, sizes=[5, 6], count=10, jobs=2, heuristics=[slow, "random"], output=sys.argv[1])
"""


def test_killed_and_resumed(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    output = tmp_path / "study"
    log = output / "rows.jsonl"

    def lines() -> list[bytes]:
        return log.read_bytes().splitlines(keepends=True) if log.exists() else []

    before: list[bytes] = []
    for enough in (0, 5, 20):
        process = subprocess.Popen([sys.executable, str(script), str(output)])
        deadline = time.monotonic() + 60
        while not (output / "instances").exists() or len(lines()) < enough:
            assert process.poll() is None, "the study ended before it could be killed"
            assert time.monotonic() < deadline
            time.sleep(0.002)
        process.kill()
        process.wait()
        now = lines()
        # Whole lines of the run before are still there.
        whole = [line for line in before if line.endswith(b"\n")]
        assert now[: len(whole)] == whole
        before = now
    assert 20 <= len(before) < 60
    subprocess.run([sys.executable, str(script), str(output)], check=True, timeout=120)
    rows = log_of(output)
    assert len(rows) == len({row["key"] for row in rows}) == 60
    table = pd.read_parquet(output / "results.parquet")
    assert len(table) == 60
    assert not table.duplicated(["instance", "algorithm"]).any()
    assert json.loads((output / "metadata.json").read_text(encoding="utf-8"))["finished"]
    assert len(list((output / "instances").rglob("*.json"))) == 20
    # Nobody could tell from the table that it was interrupted.
    uninterrupted = tmp_path / "uninterrupted"
    subprocess.run([sys.executable, str(script), str(uninterrupted)], check=True, timeout=120)
    pd.testing.assert_frame_equal(
        without_times(table), without_times(pd.read_parquet(uninterrupted / "results.parquet"))
    )
