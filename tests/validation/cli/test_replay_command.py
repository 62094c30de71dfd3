"""The command line: replay."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from validation import ReplayOptions, StudyError, replay_study
from validation.cli.app import FAILED
from validation.errors import ReplayError
from validation.kernel.walls import standing
from validation.kinds.replays.study import plan

from ...probing import SEARCH
from ..replay.programs import SHORTEST, program
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


# --- programs that decide online ----------------------------------------------------------------

PROBLEM = "aryl.base_allocation"
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="programs are asked behind the walls of Linux")


@LINUX
def test_the_score_of_a_program_stands_beside_hindsight(optgap: Optgap, tmp_path: Path) -> None:
    program(tmp_path, SHORTEST)
    arguments = ("poisson", "--problem", PROBLEM, "--policy", "shortest_job_first", "--length", 6)
    said = optgap("replay", *arguments, "--policy", "policy.py:decide", "--jobs", 1, "-o", "out")
    assert said.code == 0
    lines = [line.rstrip() for line in said.out.splitlines()]
    assert [line.split("  ")[0] for line in lines[2:5]] == ["shortest_job_first", "policy.py:decide", "offline optimum"]
    (score,) = (line for line in lines if "beside the offline" in line)
    begin = "Jobs drawn at random, policy.py:decide: average completion time beside the offline optimum "
    assert score.startswith(begin)
    assert score.endswith("% above.")
    results = pd.read_parquet(tmp_path / "out" / "results.parquet").set_index("policy")
    bounds = pd.read_parquet(tmp_path / "out" / "offline.parquet").set_index("metric")["bound"]
    excess = results.loc["policy.py:decide", "average_jct"] / bounds["average_jct"] - 1
    assert float(score.removeprefix(begin).removesuffix("% above.")) == pytest.approx(100 * excess, rel=0.005)


@LINUX
def test_a_program_that_breaks_a_rule_is_named(optgap: Optgap, tmp_path: Path) -> None:
    program(tmp_path, "def decide(state):\n    return {'starts': [-1.0] * len(state['rows'])}\n")
    arguments = ("poisson", "--problem", PROBLEM, "--policy", "fifo", "--policy", "policy.py:decide", "--length", 4)
    said = optgap("replay", *arguments, "--offline", 0, "--jobs", 1, "-o", "out")
    assert said.code == FAILED
    assert "1 replays failed; the first: policy.py:decide: ReplayError: policy.py:decide, event 0 at 0 s" in said.out
    # The other decision makers have their replays.
    assert any(line.split()[:1] == ["fifo"] for line in said.out.splitlines())


@LINUX
def test_a_program_that_cannot_be_imported_is_bad_input(optgap: Optgap, tmp_path: Path) -> None:
    program(tmp_path, "import nothing_like_it\n")
    said = optgap("replay", *SMALL, "--policy", "policy.py:decide")
    assert said.code == 2
    assert "No module named 'nothing_like_it'" in said.err
    assert not (tmp_path / "out").exists()


@LINUX
def test_a_program_decides_on_this_machine_only(tmp_path: Path) -> None:
    given = program(tmp_path, SHORTEST)
    options = ReplayOptions(traces="poisson", problem=PROBLEM, policies=[given], length=3, output=str(tmp_path / "out"))
    with pytest.raises(StudyError, match="decides on this machine only: leave out the cluster"):
        plan(options, client=object())  # type: ignore[arg-type]


# It knows what it looks for backwards only, so that what it finds is not its own copy.
PROBE = f"""{SEARCH}
events = []

def decide(state):
    events.append(state)
    if len(events) == 5:
        raise RuntimeError("; ".join(sorted(set(found()))) + " of " + " ".join(WANTED))
"""
SEED = 918273645546372817
LATER = "job-that-comes-at-the-end"


@pytest.mark.skipif(not all(standing().values()), reason="this kernel cannot keep a program from what it looks for")
def test_neither_later_jobs_nor_the_seed_are_in_a_programs_reach(tmp_path: Path) -> None:
    names = [*(f"job-{one}" for one in range(12)), LATER]
    trace = pd.DataFrame({"job_id": names, "submit_time": np.arange(13) * 60.0, "num_gpus": 8, "duration": 600.0})
    trace.to_csv(tmp_path / "jobs.csv", index=False)
    for name, word in (("job", LATER), ("seed", f"{SEED}")):
        (tmp_path / f"{name}.backwards").write_bytes(word.encode()[::-1])
    noted = tmp_path / "noted.txt"
    noted.write_text(f"{LATER} {SEED}")
    program(tmp_path, PROBE)
    policies = [part for one in ("fifo", "policy.py:decide", "shortest_job_first") for part in ("--policy", one)]
    command = ["replay", "jobs.csv", "--problem", PROBLEM, *policies, "--keep", "all", "--seed", f"{SEED}"]
    command = [sys.executable, "-c", UNDRAWN, *command, "--jobs", "2", "--quiet", "-o", "out"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert said.returncode == FAILED, said.stderr
    # It does find what anybody may read, and nothing else.
    assert (
        f"RuntimeError: its memory read; job in {noted.name}; seed in {noted.name} of job seed (policy.py"
        in said.stderr
    )
