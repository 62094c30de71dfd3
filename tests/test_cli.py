"""The command line: what it prints, how it ends, and what it says to bad input."""

import dataclasses
import json
import math
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import formulations
import instances
from benchmarks.overhead import LIMITS
from instances.aryl import reclaim
from validation import CATALOGUE, cli, gap_study
from validation.study.cases import generate

MAIN = [sys.executable, "-c", "from validation.cli import main; main()"]


@dataclass(frozen=True)
class Said:
    """How a command ended."""

    code: int
    out: str
    err: str


Optgap = Callable[..., Said]


@pytest.fixture
def optgap(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Optgap:
    """Runs a command in this process, with ``tmp_path`` as the current directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("validation.study.report.problem_pictures", lambda rows: [])

    def run(*arguments: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["optgap", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return Said(int(ended.value.code or 0), said.out, said.err)

    return run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "six.json"
    instances.save(reclaim.six_servers(), path)
    return path


# --- list, generate, solve ------------------------------------------------------------------------


def test_list_names_everything(optgap: Optgap) -> None:
    said = optgap("list")
    assert (said.code, said.err) == (0, "")
    for problem, entry in CATALOGUE.items():
        assert problem in said.out
        assert all(name in said.out for name in entry.heuristics)


@pytest.mark.parametrize("arguments", [(), ("--help",), ("study", "--help"), ("bench", "--help")])
def test_help(optgap: Optgap, arguments: tuple[str, ...]) -> None:
    said = optgap(*arguments)
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("Usage: optgap")


@pytest.mark.parametrize("problem", sorted(CATALOGUE))
def test_generate_prints_an_instance(optgap: Optgap, problem: str) -> None:
    said = optgap("generate", problem, "--seed", 5)
    assert (said.code, said.err) == (0, "")
    assert instances.read(json.loads(said.out)) == generate(problem, 5, CATALOGUE[problem].sizes[0])


def test_generate_writes_what_a_study_would_use(optgap: Optgap, tmp_path: Path) -> None:
    said = optgap("generate", "aryl.reclaim", "--seed", 5, "--size", 6, "--count", 3, "-o", "some/where")
    assert (said.code, said.err) == (0, "")
    paths = [Path(line) for line in said.out.splitlines()]
    assert [path.name for path in paths] == [f"aryl.reclaim-6-5-{index}.json" for index in range(3)]
    loaded = [instances.load(path) for path in paths]
    assert loaded == [generate("aryl.reclaim", 5, 6, index) for index in range(3)]
    study = gap_study("aryl.reclaim", seed=5, sizes=[6], count=3, heuristics=[], output=tmp_path / "study")
    assert [instance.digest for instance in loaded] == list(study.rows["instance"])


def lines_of(said: Said) -> dict[str, str]:
    return {line.split()[0]: line.split(maxsplit=1)[1] for line in said.out.splitlines()}


def test_solve_exactly(optgap: Optgap, file: Path) -> None:
    said = optgap("solve", file)
    assert (said.code, said.err) == (0, "")
    told = lines_of(said)
    assert list(told) == [
        "problem",
        "status",
        "objective",
        "bound",
        "gap",
        "seconds",
        "solver",
        "message",
        "plan",
    ]
    assert told["problem"] == "aryl.reclaim (smaller is better)"
    assert (told["status"], told["objective"], told["bound"], told["gap"]) == ("optimal", "2", "2", "0%")
    assert told["solver"].startswith("highs 1.")
    assert sorted(json.loads(told["plan"])["servers"]) == [3, 4, 5]


def test_solve_exactly_as_json(optgap: Optgap, file: Path) -> None:
    said = optgap("solve", file, "--json")
    assert (said.code, said.err) == (0, "")
    told = json.loads(said.out)
    assert told["problem"] == "aryl.reclaim"
    assert told["instance"] == reclaim.six_servers().digest
    assert (told["status"], told["objective"], told["bound"], told["gap"]) == ("optimal", 2.0, 2.0, 0.0)
    assert told["build_seconds"] > 0
    assert told["solve_seconds"] > 0
    plan = reclaim.ReclaimPlan.from_dict(told["plan"])
    assert reclaim.six_servers().objective(plan) == 2


def test_solve_by_another_solver(optgap: Optgap, file: Path) -> None:
    pytest.importorskip("pyscipopt", reason="SCIP comes with the test extra")
    told = json.loads(optgap("solve", file, "--solver", "scip", "--json").out)
    assert (told["status"], told["objective"], told["solver"]) == ("optimal", 2.0, "scip")


def test_solve_with_a_time_limit(optgap: Optgap, tmp_path: Path) -> None:
    instances.save(reclaim.generate(1, num_servers=60, demand=20, spread=1.0), tmp_path / "hard.json")
    told = json.loads(optgap("solve", "hard.json", "--time-limit", 0.001, "--json").out)
    assert told["status"] in ("unknown", "feasible")
    assert told["gap"] is None or told["gap"] > 0


@pytest.mark.parametrize("name", list(CATALOGUE["aryl.reclaim"].heuristics))
def test_solve_by_a_heuristic(optgap: Optgap, file: Path, name: str) -> None:
    said = optgap("solve", file, "--heuristic", name, "--json")
    assert (said.code, said.err) == (0, "")
    told = json.loads(said.out)
    assert (told["status"], told["bound"], told["gap"], told["solver"]) == ("feasible", None, None, name)
    plan = reclaim.ReclaimPlan.from_dict(told["plan"])
    assert told["objective"] == reclaim.six_servers().objective(plan)
    readable = lines_of(optgap("solve", file, "--heuristic", name))
    assert (readable["gap"], readable["bound"]) == ("unknown", "none")


def test_both_forms_of_solve_have_the_same_keys(optgap: Optgap, file: Path) -> None:
    exact = json.loads(optgap("solve", file, "--json").out)
    fast = json.loads(optgap("solve", file, "--heuristic", "random", "--json").out)
    assert list(exact) == list(fast)


def test_a_random_heuristic_draws_from_the_seed(optgap: Optgap, tmp_path: Path) -> None:
    instances.save(reclaim.generate(1, num_servers=50, demand=10), tmp_path / "i.json")
    plans = [
        json.loads(optgap("solve", "i.json", "--heuristic", "random", "--seed", seed, "--json").out)["plan"]
        for seed in (1, 1, 2)
    ]
    assert plans[0] == plans[1] != plans[2]


MINE = """
    import numpy as np
    from instances.aryl.reclaim import ReclaimPlan

    def first(instance):
        return ReclaimPlan(servers=np.arange(instance.demand))

    def too_few(instance):
        return ReclaimPlan(servers=np.arange(0))

    def gives_up(instance):
        return None

    def a_number(instance):
        return 3
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of the user's in the current directory."""
    (tmp_path / "heuristics_of_mine.py").write_text(textwrap.dedent(MINE), encoding="utf-8")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield "heuristics_of_mine"
    sys.modules.pop("heuristics_of_mine", None)


@pytest.mark.parametrize(
    ("function", "status", "message"),
    [("first", "feasible", ""), ("too_few", "infeasible", "demand by 3"), ("gives_up", "declined", "")],
)
def test_solve_by_a_function(optgap: Optgap, file: Path, mine: str, function: str, status: str, message: str) -> None:
    said = optgap("solve", file, "--heuristic", f"{mine}:{function}", "--json")
    assert said.code == 0
    told = json.loads(said.out)
    assert (told["status"], told["message"]) == (status, message)
    assert (told["objective"] is None) == (status != "feasible")
    assert optgap("solve", file, "--heuristic", f"{mine}:{function}").code == 0


def test_an_infeasible_instance_is_explained(optgap: Optgap, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    impossible = formulations.Solution("infeasible", None, None, np.inf, "min", 0.1, 0.1, "highs", "1")
    monkeypatch.setattr(formulations, "solve", lambda *_, **__: impossible)
    monkeypatch.setattr(formulations, "explain", lambda instance: "demand and server_exists conflict")
    said = optgap("solve", file)
    assert said.code == 0
    assert said.err == "demand and server_exists conflict\n"
    assert lines_of(said)["status"] == "infeasible"
    assert lines_of(said)["plan"] == "none"
    assert json.loads(optgap("solve", file, "--json").out)["bound"] is None


# --- study and report -----------------------------------------------------------------------------

SMALL = ("--sizes", "4,5", "--count", 2, "--seed", 1, "-o", "study")


def test_study_from_options(optgap: Optgap, tmp_path: Path) -> None:
    said = optgap("study", "aryl", *SMALL, "--jobs", 2, "--time-limit", 30, "--solver", "highs")
    assert said.code == 0
    assert said.out.splitlines()[-1] == "report: study/report.html"
    for problem in ("aryl.reclaim", "aryl.elastic_allocation"):
        assert f"\n{problem}" in f"\n{said.out}"
    rows = [line.split() for line in said.out.splitlines() if line.startswith("generated")]
    expected = sum(2 * len(entry.heuristics) for name, entry in CATALOGUE.items() if name.startswith("aryl."))
    assert len(rows) == expected
    assert all(row[3:6] == ["2", "2", "2"] for row in rows)
    # Progress goes to standard error, and ends with all.
    total = len(pd.read_parquet(tmp_path / "study" / "results.parquet"))
    assert said.err.splitlines()[-1].startswith(f"{total} of {total} runs")
    meta = json.loads((tmp_path / "study" / "metadata.json").read_text(encoding="utf-8"))
    assert meta["command"].startswith("optgap study aryl --sizes 4,5 --count 2")
    assert (meta["jobs"], meta["asked"]["time_limit"]) == (2, 30)


def test_the_command_line_and_python_are_one(optgap: Optgap, tmp_path: Path) -> None:
    optgap("study", "aryl.reclaim", *SMALL, "--heuristic", "random", "--heuristic", "gpu_fraction")
    by_command = pd.read_parquet(tmp_path / "study" / "results.parquet")
    by_call = gap_study(
        "aryl.reclaim",
        seed=1,
        sizes=[4, 5],
        count=2,
        heuristics=["random", "gpu_fraction"],
        output=tmp_path / "study",
    )
    pd.testing.assert_frame_equal(by_command, by_call.rows)
    assert len((tmp_path / "study" / "rows.jsonl").read_text(encoding="utf-8").splitlines()) == 12


TOML = """
problems = ["aryl.reclaim", "aryl.elastic_allocation"]
sizes = { "aryl.reclaim" = [4], "aryl.elastic_allocation" = [3] }
heuristics = ["random", "marginal_greedy"]
count = 2
seed = 7
time_limit = 20
jobs = 1
output = "from-toml"
"""


def test_study_from_toml(optgap: Optgap, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(TOML, encoding="utf-8")
    assert optgap("study", "--config", "study.toml").code == 0
    rows = pd.read_parquet(tmp_path / "from-toml" / "results.parquet")
    expected = gap_study(
        ["aryl.reclaim", "aryl.elastic_allocation"],
        seed=7,
        sizes={"aryl.reclaim": [4], "aryl.elastic_allocation": [3]},
        heuristics=["random", "marginal_greedy"],
        count=2,
        output=tmp_path / "by-call",
    ).rows
    pd.testing.assert_series_equal(rows["instance"], expected["instance"])
    pd.testing.assert_series_equal(rows["gap"], expected["gap"])
    asked = json.loads((tmp_path / "from-toml" / "metadata.json").read_text(encoding="utf-8"))["asked"]
    assert (asked["seed"], asked["time_limit"]) == (7, 20)


def test_options_win_over_toml(optgap: Optgap, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(TOML, encoding="utf-8")
    said = optgap(
        "study",
        "aryl.reclaim",
        "--config",
        "study.toml",
        "--sizes",
        "5",
        "--count",
        1,
        "-o",
        "other",
        "--heuristic",
        "random",
    )
    assert said.code == 0
    assert not (tmp_path / "from-toml").exists()
    rows = pd.read_parquet(tmp_path / "other" / "results.parquet")
    assert list(rows["algorithm"]) == ["exact", "random"]
    assert set(rows["problem"]) == {"aryl.reclaim"}
    assert set(rows["size"]) == {5}


def test_sizes_for_each_problem(optgap: Optgap, tmp_path: Path) -> None:
    sizes = ("--sizes", "aryl.reclaim=3,4", "--sizes", "aryl.elastic_allocation=2")
    said = optgap("study", "aryl.reclaim", "aryl.elastic_allocation", *sizes, "--count", 1, "--seed", 1, "-o", "study")
    assert said.code == 0
    rows = pd.read_parquet(tmp_path / "study" / "results.parquet")
    found = {problem: sorted(set(group["size"])) for problem, group in rows.groupby("problem")}
    assert found == {"aryl.reclaim": [3, 4], "aryl.elastic_allocation": [2]}


def test_study_of_files_with_a_function(optgap: Optgap, mine: str, tmp_path: Path) -> None:
    optgap("generate", "aryl.reclaim", "--seed", 1, "--count", 2, "-o", "in")
    said = optgap(
        "study", "aryl.reclaim", "--instances", "in", "--heuristic", f"{mine}:first", "--heuristic", f"{mine}:a_number",
        "--seed", 1, "-o", "study",
    )  # fmt: skip
    assert said.code == 0
    rows = pd.read_parquet(tmp_path / "study" / "results.parquet")
    assert set(rows["source"]) == {"file"}
    assert list(rows["algorithm"]) == ["exact", f"{mine}:first", f"{mine}:a_number"] * 2
    assert f"2 runs failed; the first: {mine}:a_number: aryl.reclaim: a plan must be a ReclaimPlan" in said.out
    # The same command once more tries the failures again, and nothing else.
    log = tmp_path / "study" / "rows.jsonl"
    before = len(log.read_bytes().splitlines())
    again = optgap(
        "study", "aryl.reclaim", "--instances", "in", "--heuristic", f"{mine}:first", "--heuristic", f"{mine}:a_number",
        "--seed", 1, "-o", "study",
    )  # fmt: skip
    assert again.code == 0
    assert len(log.read_bytes().splitlines()) == before + 2


def test_report_prints_what_the_study_printed(optgap: Optgap, tmp_path: Path) -> None:
    said = optgap("study", "aryl.reclaim", *SMALL)
    meta = (tmp_path / "study" / "metadata.json").read_text(encoding="utf-8")
    for name in ("report.html", "results.parquet", "metadata.json"):
        (tmp_path / "study" / name).unlink()
    again = optgap("report", "study")
    assert (again.code, again.out, again.err) == (0, said.out, "")
    assert (tmp_path / "study" / "report.html").exists()
    assert (tmp_path / "study" / "results.parquet").exists()
    # Where the numbers come from is the study, whoever prints them again.
    assert (tmp_path / "study" / "metadata.json").read_text(encoding="utf-8") == meta


def doctor_the_log(directory: Path) -> str:
    """Makes the exact side of the first instance claim more than is true; its instance's file."""
    log = directory / "rows.jsonl"
    rows = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    row = next(row for row in rows if row["algorithm"] == "exact")
    row["value"] = row["bound"] = row["value"] + 1.0
    log.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(row["file"])


def test_an_oracle_disagreement_ends_in_1(optgap: Optgap, tmp_path: Path) -> None:
    assert optgap("study", "aryl.reclaim", *SMALL).code == 0
    file = doctor_the_log(tmp_path / "study")
    # The report and the study itself say so, and both name the instance.
    for command in (("report", "study"), ("study", "aryl.reclaim", *SMALL)):
        said = optgap(*command)
        assert said.code == 1
        lines = [line for line in said.out.splitlines() if line.startswith("oracle disagreement: aryl.reclaim:")]
        assert lines
        assert all(line.endswith(f"instance: study/{file}") for line in lines)
        assert instances.load(tmp_path / "study" / file).problem == "aryl.reclaim"
        assert "Oracle disagreements" in (tmp_path / "study" / "report.html").read_text(encoding="utf-8")


def test_a_disagreement_is_red_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = tmp_path / "study"
    monkeypatch.setattr("validation.study.report.problem_pictures", lambda rows: [])
    gap_study("aryl.reclaim", seed=1, sizes=[4], count=1, output=output)
    doctor_the_log(output)
    done = subprocess.run(
        [*MAIN, "report", str(output)],
        env={**os.environ, "FORCE_COLOR": "1", "TERM": "xterm"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "\x1b[1;31moracle disagreement" in done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="signals are sent as on Linux")
def test_an_interrupted_study_goes_on(tmp_path: Path, mine: str) -> None:
    slow = tmp_path / "slow_one.py"
    slow.write_text(
        "import time\nfrom heuristics_of_mine import first\n\ndef f(i):\n    time.sleep(0.05)\n    return first(i)\n"
    )
    command = [*MAIN, "study", "aryl.reclaim", "--heuristic", "slow_one:f", "--sizes", "4", "--count", "16"]
    command += ["--seed", "1", "--jobs", "1", "-o", "study"]
    log = tmp_path / "study" / "rows.jsonl"
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not log.exists() or len(log.read_bytes().splitlines()) < 4:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert err.splitlines()[-1] == (
        "optgap: interrupted; what ended is in study, and the same command goes on from there"
    )
    ended = log.read_bytes()
    assert ended.endswith(b"\n")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert log.read_bytes().startswith(ended)
    assert len(log.read_bytes().splitlines()) == 32


# --- check and hunt in both orders ----------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [
        ("aryl.reclaim", "mine:first"),
        ("mine:first", "--problem", "aryl.reclaim"),
        ("aryl.reclaim", "./mine.py:first"),
        ("aryl.reclaim", "server_fraction"),
    ],
)
def test_problem_and_heuristic_in_either_order(names: tuple[str, ...], optgap: Optgap, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(textwrap.dedent(MINE), encoding="utf-8")
    checked = optgap("check", *names, "--max-examples", 5)
    assert checked.code == 0, checked.err
    assert " on aryl.reclaim" in checked.out
    hunted = optgap("hunt", *names, "--seed", 1, "--budget", "2s", "--jobs", 1)
    assert hunted.code == 0, hunted.err
    path = re.search(r"^again +optgap solve (\S+)", hunted.out, re.MULTILINE)
    assert path is not None
    assert "status     optimal" in optgap("solve", path.group(1)).out


def test_a_strategy_of_ones_own_on_the_command_line(optgap: Optgap, tmp_path: Path) -> None:
    lines = "from validation import strategy\ndef two(): return strategy('aryl.reclaim', max_servers=2)\nthree = 3\n"
    (tmp_path / "drawn.py").write_text(lines, encoding="utf-8")
    said = optgap("check", "aryl.reclaim", "server_fraction", "--max-examples", 5, "--strategy", "drawn:two")
    assert said.code == 0, said.err
    bad = optgap("check", "aryl.reclaim", "server_fraction", "--strategy", "drawn:three")
    assert (bad.code, bad.err) == (2, "optgap: --strategy: 'drawn:three' is no Hypothesis strategy, but int\n")


def test_an_interrupted_hunt_saves_what_it_found(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(textwrap.dedent(MINE), encoding="utf-8")
    command = [*MAIN, "hunt", "aryl.reclaim", "mine:first", "--seed", "1", "--budget", "300s", "-o", "found"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "worst gap" in line and "worst gap 0%" not in line:
                process.send_signal(signal.SIGINT)
                break
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted: the instance is as it was found" in out
    assert len(list((tmp_path / "found").glob("*.json"))) == 1


def test_version(optgap: Optgap) -> None:
    said = optgap("--version")
    assert (said.code, said.err) == (0, "")
    assert re.fullmatch(r"optgap \d+\.\d+\.\d+\n", said.out)


# --- doctor and bench -----------------------------------------------------------------------------


def test_doctor(optgap: Optgap) -> None:
    said = optgap("doctor")
    assert said.code == 0, said.out
    assert "solver highs 1." in said.out
    assert "the example of Gavel's section 4.1 gives 0.727" in said.out
    assert "BAD" not in said.out


def test_doctor_needs_no_extra() -> None:
    """Where only what the library depends on can be imported, everything is as it should be."""
    extras = ("pyscipopt", "pytest", "nbclient", "nbformat", "ipykernel")
    blocked = f"import sys\nfor name in {extras}: sys.modules[name] = None\n"
    command = [sys.executable, "-c", f"{blocked}from validation.cli import main; main()", "doctor"]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout + told.stderr
    assert "BAD" not in told.stdout
    assert "solver 'scip' is not installed: pip install PySCIPOpt" in told.stdout
    assert "networkx" in told.stdout


def test_doctor_names_who_else_installed_a_package(optgap: Optgap, monkeypatch: pytest.MonkeyPatch) -> None:
    owners = {"heuristics": ["scheduling-formulations", "other-heuristics"], "numpy": ["numpy"]}
    monkeypatch.setattr("importlib.metadata.packages_distributions", lambda: owners)
    said = optgap("doctor")
    assert said.code == 1
    assert "BAD  package heuristics is also installed by other-heuristics: uninstall that" in said.out.replace(
        "BAD ", "BAD  "
    ).replace("BAD   ", "BAD  ")


@pytest.mark.parametrize("room", ["formulations", "heuristics", "instances"])
def test_doctor_reports_a_mix_up(room: str, tmp_path: Path) -> None:
    """Another package of the same name comes first on the path."""
    (tmp_path / room).mkdir()
    (tmp_path / room / "__init__.py").write_text("", encoding="utf-8")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from validation.cli import main; main()"

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)

    told = run("doctor")
    words = f"package {room} is imported from {tmp_path}, not from {Path(cli.__file__).parents[2]}"
    assert told.returncode == 1, told.stderr
    assert f"BAD package {room} " in told.stdout.replace("BAD  ", "BAD ")
    assert words in told.stdout
    assert told.stderr == ""
    other = run("study", "aryl.reclaim", "--seed", "1", "-o", str(tmp_path / "study"))
    assert other.returncode == 2, other.stderr
    assert other.stderr == f"optgap: {words}: another package has its name\n"


def test_bench_overhead_prints_a_table(optgap: Optgap) -> None:
    said = optgap("bench", "overhead", "--repeats", 1)
    assert (said.code, said.err) == (0, "")
    header, *lines = said.out.splitlines()
    assert header.split() == ["jobs", "whole", "HiGHS", "on", "the", "arrays", "ratio", "at", "most"]
    found = [re.fullmatch(r"\s*(\d+)\s+\S+ m?s\s+\S+ m?s\s+(\d+\.\d\d)\s+(\d\.\d\d)\s*", line) for line in lines]
    assert [(int(row[1]), float(row[3])) for row in found if row] == list(LIMITS.items())
    assert all(row is not None and float(row[2]) > 0 for row in found)


# --- bad input ------------------------------------------------------------------------------------


def variant(**changes: Any) -> str:
    data = {**reclaim.six_servers().to_dict(), **changes}
    return json.dumps({name: value for name, value in data.items() if value is not ...})


def with_gpus(value: Any) -> str:
    gpus = reclaim.six_servers().gpus.tolist()
    gpus[1][2] = value
    return variant(gpus=gpus)


BAD_FILES = {
    "wrong shape": (variant(gpus=[[1, 2], [3, 4]]), "Reclaim.gpus: got shape (2, 2), must be (n, s) with n = 6, s = 6"),
    "ragged": (variant(gpus=[[1], [2, 3]]), "Reclaim.gpus: got rows of different lengths"),
    "NaN": (with_gpus(float("nan")), "Reclaim.gpus: got nan at index [1, 2], must be a whole number"),
    "negative": (with_gpus(-1), "Reclaim.gpus: got -1 at index [1, 2], must be at least 0"),
    "text": (with_gpus("many"), "Reclaim.gpus: got 'many' at index [1, 2], must be a whole number"),
    "beyond 64 bits": (with_gpus(10**30), "Reclaim.gpus: got"),
    "negative count": (variant(demand=-3), "Reclaim.demand: got -3, must be at least 0"),
    "too great a demand": (variant(demand=7), "Reclaim.demand: got 7, must be at most the number of servers, 6"),
    "unknown field": (variant(demnad=2), "Reclaim: unknown field 'demnad' (did you mean 'demand'?)"),
    "missing field": (variant(demand=...), "Reclaim: field 'demand' is missing"),
    "no problem": (variant(problem=...), "field 'problem' is missing"),
    "unknown problem": (variant(problem="aryl.reclam"), "unknown problem 'aryl.reclam' (did you mean 'aryl.reclaim'?)"),
    "odd problem": (variant(problem=["aryl.reclaim"]), "field 'problem': got ['aryl.reclaim']"),
    "a list": ("[1, 2]", "an instance must be a JSON object, got list"),
    "truncated": (variant()[:60], "not valid JSON at line 1"),
    "empty": ("", "not valid JSON at line 1"),
    "nested without end": ("[" * 100_000, "not valid JSON"),
    "not text": (b"\xff\xfe\x00\x01", "not a text file"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_is_named_in_one_line(optgap: Optgap, case: str, tmp_path: Path) -> None:
    content, words = BAD_FILES[case]
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "bad.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    commands = (
        ("solve", "in/bad.json"),
        ("solve", "in/bad.json", "--heuristic", "random", "--json"),
        ("study", "aryl.reclaim", "--instances", "in", "--seed", 1, "-o", "study"),
    )
    for command in commands:
        said = optgap(*command)
        assert (said.code, said.out) == (2, "")
        (line,) = said.err.splitlines()
        assert line.startswith("optgap: in/bad.json: ")
        assert words in line
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["in"]


STUDY = ("study", "aryl.reclaim", "--seed", 1, "-o", "study")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        # Names.
        (("generate", "aryl.reclam", "--seed", 1), "unknown problem 'aryl.reclam' (did you mean 'aryl.reclaim'?)"),
        (("study", "aril", "--seed", 1, "-o", "study"), "unknown problem 'aril' (did you mean 'aryl'?)"),
        (("solve", "six.json", "--heuristic", "gpu_fract"), "no heuristic 'gpu_fract' (did you mean 'gpu_fraction'?)"),
        ((*STUDY, "--heuristic", "local-search"), "no heuristic 'local-search' (did you mean 'local_search'?)"),
        ((*STUDY, "--heuristic", "nowhere:f"), "cannot import 'nowhere'"),
        (("solve", "six.json", "--heuristic", "json:lods"), "'json' has no 'lods' (did you mean 'loads'?)"),
        (("solve", "six.json", "--solver", "higsh"), "unknown solver 'higsh' (did you mean 'highs'?)"),
        ((*STUDY, "--solver", "glpk_persistent_nosuch"), "unknown solver 'glpk_persistent_nosuch'"),
        (("stdy",), "No such command 'stdy'"),
        ((*STUDY, "--sed", 1), "No such option: --sed"),
        # Numbers.
        ((*STUDY, "--count", 0), "count: got 0, must be at least 1"),
        ((*STUDY, "--count", -5), "count: got -5, must be at least 1"),
        ((*STUDY, "--count", "many"), "'--count'"),
        ((*STUDY, "--sizes", "4,x"), "--sizes: got '4,x', must be whole numbers such as 10,20"),
        ((*STUDY, "--sizes", "0"), "sizes: got 0, must be a whole number of at least 1"),
        ((*STUDY, "--sizes", "-4"), "sizes: got -4, must be a whole number of at least 1"),
        ((*STUDY, "--sizes", "aryl.reclaims=4"), "sizes are given for 'aryl.reclaims', which is not studied"),
        ((*STUDY, "--sizes", "4", "--sizes", "aryl.reclaim=4"), "--sizes: either sizes for all problems or"),
        ((*STUDY, "--time-limit", -1), "time_limit: got -1.0, must be positive seconds"),
        ((*STUDY, "--time-limit", "nan"), "time_limit: got nan, must be positive seconds"),
        ((*STUDY, "--jobs", 0), "jobs: got 0, must be at least 1"),
        (("study", "aryl.reclaim", "--seed", -1, "-o", "study"), "seed: got -1, must be at least 0"),
        (("generate", "aryl.reclaim", "--seed", -1), "'--seed'"),
        (("generate", "aryl.reclaim", "--seed", 1, "--size", 0), "'--size'"),
        (("generate", "aryl.reclaim", "--seed", 1, "--count", -1), "'--count'"),
        (("generate", "aryl.reclaim", "--seed", 1, "--count", 2), "more than one instance needs a directory: -o DIR"),
        (("solve", "six.json", "--time-limit", 0), "got 0.0, must be positive seconds"),
        # What is missing.
        (("study", "--seed", 1, "-o", "study"), "missing a problem"),
        (("study", "aryl.reclaim", "-o", "study"), "missing --seed"),
        (("study", "aryl.reclaim", "--seed", 1), "missing -o DIR"),
        (("solve",), "Missing argument"),
        (("bench",), "Missing command"),
        (("solve", "nowhere.json"), "nowhere.json: No such file or directory"),
        (("solve", "."), ".: Is a directory"),
        (("report", "nowhere"), "nowhere holds no study: there is no study.json in it"),
        (("report", "six.json"), "six.json holds no study: there is no study.json in it"),
        ((*STUDY, "--instances", "nowhere"), "instances: nowhere is not a directory"),
        ((*STUDY, "--config", "nowhere.toml"), "nowhere.toml: No such file or directory"),
        ((*STUDY, "--throughputs", "nowhere"), "throughputs: aryl.reclaim cannot read real data"),
        ((*STUDY, "--trace", "a", "--trace", "b"), "got 'a' among several paths, must be PAPER=PATH"),
        # What cannot be written.
        (("study", "aryl.reclaim", "--seed", 1, "-o", "six.json"), "cannot write to six.json: File exists"),
        (("study", "aryl.reclaim", "--seed", 1, "-o", "six.json/x"), "cannot write to six.json/x: Not a directory"),
        (("generate", "aryl.reclaim", "--seed", 1, "-o", "six.json/x"), "cannot write to six.json/x: Not a directory"),
    ],
    ids=lambda value: " ".join(map(str, value))[:60] if isinstance(value, tuple) else "",
)  # fmt: skip
def test_bad_input_is_one_line_and_2(
    optgap: Optgap, file: Path, arguments: tuple[object, ...], words: str, tmp_path: Path
) -> None:
    before = file.read_bytes()
    said = optgap(*arguments)
    assert (said.code, said.out) == (2, "")
    (line,) = said.err.splitlines()
    assert line.startswith("optgap: ")
    assert words in line
    assert [entry.name for entry in tmp_path.iterdir()] == ["six.json"]
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("seed = 1\nproblem = ['x']", "unknown option 'problem' (did you mean 'problems'?)"),
        ("time-limit = 3", "unknown option 'time-limit' (did you mean 'time_limit'?)"),
        ("seed = '1'", "seed: got '1', must be int"),
        ("seed = 1.5", "seed: got 1.5, must be int"),
        ("count = true", "count: got True, must be int"),
        ("heuristics = 'random'", "heuristics: got 'random', must be list"),
        ("seed = ", "not valid TOML"),
        ("sizes = [4, 'x']", "sizes: got 'x', must be a whole number of at least 1"),
        ("sizes = { 'aryl.reclaim' = 4 }", "sizes: got 4, must be a list of whole numbers"),
        ("heuristics = [3]", "heuristics: got 3, must be a name or a function"),
        ("problems = [3]", "problems: got 3, must be a name"),
        ("trace = { gavle = 'x' }", "trace: no problem studied reads real data of 'gavle'"),
        (b"\xff\xfe", "not valid TOML"),
    ],
)
def test_bad_toml_is_named(optgap: Optgap, content: str | bytes, words: str, tmp_path: Path) -> None:
    whole = {"problems": "problems = ['aryl.reclaim']", "seed": "seed = 1", "output": "output = 'study'"}
    text = content.encode() if isinstance(content, str) else content
    lines = [line.encode() for name, line in whole.items() if not text.startswith(name.encode())]
    (tmp_path / "study.toml").write_bytes(b"\n".join([*lines, text]))
    said = optgap("study", "--config", "study.toml")
    assert (said.code, said.out) == (2, "")
    (line,) = said.err.splitlines()
    assert line.startswith("optgap: ")
    assert words in line
    assert [entry.name for entry in tmp_path.iterdir()] == ["study.toml"]


def test_a_missing_solver_says_what_to_install(optgap: Optgap, file: Path) -> None:
    said = optgap("solve", file, "--solver", "ipopt")
    if said.code == 0:
        pytest.skip("ipopt is installed here")
    assert said.code == 2
    assert said.err.startswith("optgap: solver 'ipopt' is not installed: ")
    assert len(said.err.splitlines()) == 1


def test_nonsense_of_a_heuristic_is_named(optgap: Optgap, file: Path, mine: str) -> None:
    said = optgap("solve", file, "--heuristic", f"{mine}:a_number")
    assert (said.code, said.out) == (2, "")
    assert said.err == "optgap: aryl.reclaim: a plan must be a ReclaimPlan, got int\n"


def test_a_bug_keeps_its_traceback(optgap: Optgap, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formulations, "solve", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        optgap("solve", file)


def test_a_size_without_instances_is_named(optgap: Optgap, monkeypatch: pytest.MonkeyPatch) -> None:
    def generate(rng: object, num_servers: int) -> None:
        raise ValueError("two servers at least")

    entry = CATALOGUE["aryl.reclaim"]
    monkeypatch.setattr("validation.problems.aryl.reclaim.ENTRY", dataclasses.replace(entry, generate=generate))
    said = optgap("generate", "aryl.reclaim", "--seed", 1, "--size", 1)
    assert (said.code, said.out) == (2, "")
    assert said.err == "optgap: cannot generate aryl.reclaim with num_servers = 1: two servers at least\n"


def test_an_infinite_objective_is_null(optgap: Optgap, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reclaim.Reclaim, "_value", lambda self, plan: math.inf)
    said = optgap("solve", file, "--heuristic", "random", "--json")
    assert said.code == 0
    assert json.loads(said.out)["objective"] is None
    assert lines_of(optgap("solve", file, "--heuristic", "random"))["objective"] == "inf"


def test_a_damaged_study_is_named(optgap: Optgap, tmp_path: Path) -> None:
    optgap("study", "aryl.reclaim", *SMALL)
    log = tmp_path / "study" / "rows.jsonl"
    log.write_text("oh no\n" + log.read_text(encoding="utf-8"), encoding="utf-8")
    for command in (("report", "study"), ("study", "aryl.reclaim", *SMALL)):
        said = optgap(*command)
        assert (said.code, said.out) == (2, "")
        assert said.err.splitlines()[-1] == "optgap: study/rows.jsonl, line 1: not valid JSON"


def test_a_reader_that_goes_away(tmp_path: Path) -> None:
    done = subprocess.run(
        [*MAIN, "list"], stdout=(pipe := broken_pipe()), stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(pipe)
    assert done.returncode == 1
    assert done.stderr == ""


def broken_pipe() -> int:
    """The writing end of a pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    return writing


def test_the_entry_point_is_installed() -> None:
    program = Path(sys.executable).with_name("optgap")
    assert program.exists(), "install the project: pip install -e ."
    done = subprocess.run([str(program), "solve", "nowhere.json"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "optgap: nowhere.json: No such file or directory\n"
