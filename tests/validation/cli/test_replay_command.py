"""The command line: replay."""

import json
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from validation import replay_study
from validation.cli.app import FAILED
from validation.errors import ReplayError

from .commands import Optgap, assert_goes_on

SMALL = ("poisson", "--problem", "aryl.elastic_allocation", "--policy", "exact", "--policy", "gandiva")
SMALL += ("--length", "6", "--jobs", "2", "-o", "out")
UNDRAWN = "from validation.kinds.replays import report; report.trace_pictures = lambda *_: []; "
UNDRAWN += "from validation.cli import main; main()"


@pytest.mark.slow
def test_the_command_line_toml_and_python_are_one(optgap: Optgap, tmp_path: Path) -> None:
    said = optgap("replay", *SMALL, "--seeds", 2, "--gaps", "all")
    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[0].strip() == "Jobs drawn at random: average completion time"
    assert [line.split()[0] for line in lines[2:4]] == ["exact", "gandiva"]
    assert lines[2].rstrip().endswith("the reference")
    (overview,) = (at for at, line in enumerate(lines) if line.strip() == "poisson, aryl.elastic_allocation")
    assert [line.split()[0] for line in lines[overview + 2 : overview + 4]] == ["exact", "gandiva"]
    assert lines[-1] == "report: out/report.html"
    assert said.err.splitlines()[-1].startswith("6 of 6 replays and bounds")
    log = (tmp_path / "out" / "rows.jsonl").read_bytes()
    # What is there is not run again, whoever asks for it.
    toml = 'traces = ["poisson"]\nproblem = "aryl.elastic_allocation"\npolicies = ["exact", "gandiva"]\n'
    (tmp_path / "asked.toml").write_text(toml + 'length = 6\nseeds = 2\ngaps = "all"\noutput = "out"\n')
    assert optgap("replay", "--config", "asked.toml").out == said.out
    study = replay_study(
        "poisson",
        problem="aryl.elastic_allocation",
        policies=["exact", "gandiva"],
        length=6,
        seeds=2,
        gaps="all",
        output=tmp_path / "out",
    )
    assert (tmp_path / "out" / "rows.jsonl").read_bytes() == log
    pd.testing.assert_frame_equal(study.rows, pd.read_parquet(tmp_path / "out" / "results.parquet"))
    # So does the report, with the same words.
    (tmp_path / "out" / "report.html").unlink()
    again = optgap("report", "out")
    assert (again.code, again.out, again.err) == (0, said.out, "")
    assert (tmp_path / "out" / "report.html").exists()


@pytest.mark.slow
def test_settings_are_given_by_name(optgap: Optgap, tmp_path: Path) -> None:
    assert optgap("replay", *SMALL, "--setting", "num_servers=2", "--setting", "loaned=1").code == 0
    asked = json.loads((tmp_path / "out" / "metadata.json").read_text(encoding="utf-8"))["asked"]
    assert asked["setting"] == {"num_servers": "2", "loaned": "1"}
    smaller = pd.read_parquet(tmp_path / "out" / "usage.parquet")["capacity"].max()
    optgap("replay", *SMALL, "--setting", "num_servers=4", "--setting", "loaned=1")
    assert pd.read_parquet(tmp_path / "out" / "usage.parquet")["capacity"].max() > smaller


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("poisson", "--policy", "exact", "-o", "out"), "missing --problem"),
        (SMALL[:-2], "missing -o DIR"),
        ((*SMALL, "--policy", "gandivaa"), "did you mean 'gandiva'"),
        ((*SMALL, "--setting", "colour=red"), "setting: aryl has no option 'colour'"),
        ((*SMALL, "--setting", "loaned"), "--setting: got 'loaned', must be NAME=VALUE"),
        ((*SMALL, "--reader", "skip"), "--reader: got 'skip', must be NAME=VALUE"),
        ((*SMALL, "--keep", "some"), "--keep: got 'some', must be a whole number or all"),
        (("nowhere.csv", *SMALL[1:]), "cannot read nowhere.csv: No such file or directory"),
        (("poisson", "--problem", "afs.elastic_sharing", "--policy", "srtf", "-o", "out"), "afs needs throughputs"),
        (("poisson", "--problem", "aryl.two_job", "--policy", "exact", "-o", "out"), "aryl.two_job is in no replay"),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[str, ...], words: str, optgap: Optgap, tmp_path: Path) -> None:
    said = optgap("replay", *arguments)
    assert (said.code, said.out) == (2, "")
    (line,) = said.err.splitlines()
    assert line.startswith("optgap: ")
    assert words in line
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a replay's process has not what is changed here")
def test_replays_that_failed_are_told_by_the_exit_code(optgap: Optgap, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: Any) -> Any:
        raise ReplayError("no job runs at 7 s")

    for name in ("run_cell", "bound_cell"):
        monkeypatch.setattr(f"validation.kinds.replays.study.{name}", breaks)
    told = "2 replays failed; the first: exact: ReplayError: no job runs at 7 s"
    said = optgap("replay", *SMALL, "--quiet")
    assert (said.code, said.out) == (FAILED, "")
    assert said.err.startswith(f"optgap: {told}")
    again = optgap("report", "out")
    assert (again.code, again.err) == (FAILED, "")
    assert told in again.out


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="signals are sent as on Linux")
def test_interrupted_replays_go_on(tmp_path: Path) -> None:
    command = [sys.executable, "-c", UNDRAWN, "replay", *SMALL[:-2], "--seeds", "15", "-o", "out", "--jobs", "1"]
    # Thirty replays, and what hindsight could do with the jobs of each of 15 seeds.
    assert_goes_on(command, tmp_path, "out", enough=2, whole=45, said="the replays that ended are")
