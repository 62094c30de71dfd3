"""The command line: list, generate and solve."""

import dataclasses
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import formulations
import instances
from instances.aryl import reclaim
from validation import CATALOGUE, gap_study
from validation.cli.app import FAILED
from validation.kernel.judging import NO_PLAN
from validation.kinds.study.cases import choose_cases, generate
from validation.kinds.study.options import StudyOptions

from .commands import MAIN, Optgap, lines_of


def test_list_names_everything(optgap: Optgap) -> None:
    said = optgap("list")
    assert (said.code, said.err) == (0, "")
    for problem, entry in CATALOGUE.items():
        assert problem in said.out
        assert all(name in said.out for name in entry.heuristics)


@pytest.mark.parametrize("arguments", [("--help",), ("study", "--help"), ("bench", "--help")])
def test_help(optgap: Optgap, arguments: tuple[str, ...]) -> None:
    said = optgap(*arguments)
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("Usage: optgap")


@pytest.mark.parametrize("problem", sorted(CATALOGUE))
def test_generate_prints_an_instance(optgap: Optgap, problem: str) -> None:
    said = optgap("generate", problem, "--seed", 5)
    assert (said.code, said.err) == (0, "")
    assert instances.read(json.loads(said.out)) == generate(problem, 5, CATALOGUE[problem].sizes[0])


def test_generate_saves_real_windows_as_a_study_draws_them(optgap: Optgap, tmp_path: Path) -> None:
    (tmp_path / "bert.csv").write_text("global_batch_size,1,2,4\n32,4,6,8\n", encoding="utf-8")
    lines = "".join(f"j{job},{600 * job},{3600 + job},1\n" for job in range(12))
    (tmp_path / "jobs.csv").write_text(f"JobID,submit_time,duration,num_gpu\n{lines}", encoding="utf-8")
    real = {"throughputs": str(tmp_path / "bert.csv"), "trace": str(tmp_path / "jobs.csv")}
    given = [text for name, path in real.items() for text in (f"--{name}", path)]
    asked = ["generate", "elasticflow.admission", "--seed", 3, "--size", 3, "--count", 2, "-o", "out"]
    said = optgap(*asked, *given, "--reader", "columns.job_id=JobID")
    assert (said.code, said.err) == (0, "")
    options = StudyOptions(
        problems="elasticflow.admission",
        seed=3,
        sizes=[3],
        count=2,
        output="study",
        real_only=True,
        reader={"columns": {"job_id": "JobID"}},
        **real,
    )
    saved = [instances.load(path) for path in said.out.split()]
    assert saved == [case.instance for case in choose_cases(["elasticflow.admission"], options)]
    assert all(one.origin is not None for one in saved)


def test_generate_writes_what_a_study_would_use(optgap: Optgap, tmp_path: Path) -> None:
    said = optgap("generate", "aryl.reclaim", "--seed", 5, "--size", 6, "--count", 3, "-o", "some/where")
    assert (said.code, said.err) == (0, "")
    paths = [Path(line) for line in said.out.splitlines()]
    assert [path.name for path in paths] == [f"aryl.reclaim-6-5-{index}.json" for index in range(3)]
    loaded = [instances.load(path) for path in paths]
    assert loaded == [generate("aryl.reclaim", 5, 6, index) for index in range(3)]
    study = gap_study("aryl.reclaim", seed=5, sizes=[6], count=3, heuristics=[], output=tmp_path / "study")
    assert [instance.digest for instance in loaded] == list(study.rows["instance"])


def test_generate_takes_sizes_as_a_study_does(optgap: Optgap) -> None:
    said = optgap("generate", "aryl.reclaim", "--seed", 5, "--sizes", "4,6", "--count", 2, "-o", "some")
    assert (said.code, said.err) == (0, "")
    names = [f"aryl.reclaim-{size}-5-{index}.json" for size in (4, 6) for index in range(2)]
    assert [Path(line).name for line in said.out.splitlines()] == names
    loaded = [instances.load(path) for path in said.out.split()]
    assert loaded == [generate("aryl.reclaim", 5, size, index) for size in (4, 6) for index in range(2)]
    assert optgap("generate", "aryl.reclaim", "--seed", 5, "--sizes", "4,6").err == (
        "optgap: more than one instance needs a directory: -o DIR\n"
    )


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
        "proof",
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
    # Prices at hand prove it, without a solver.
    assert told["solve_seconds"] == 0
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


@pytest.mark.parametrize(
    ("function", "status", "message"),
    [
        ("first", "feasible", ""),
        ("too_few", "infeasible", "demand by 3"),
        ("gives_up", "failed", NO_PLAN),
    ],
)
def test_solve_by_a_function(optgap: Optgap, file: Path, mine: str, function: str, status: str, message: str) -> None:
    said = optgap("solve", file, "--heuristic", f"{mine}:{function}", "--json")
    code = FAILED if status == "failed" else 0
    assert said.code == code
    told = json.loads(said.out)
    assert (told["status"], told["message"]) == (status, message)
    assert (told["objective"] is None) == (status != "feasible")
    assert optgap("solve", file, "--heuristic", f"{mine}:{function}").code == code


def test_an_infeasible_instance_is_explained(optgap: Optgap, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    impossible = formulations.Solution("infeasible", None, None, np.inf, "min", 0.1, 0.1, "highs", "1", proof="prices")
    monkeypatch.setattr(formulations, "solve", lambda *_, **__: impossible)
    monkeypatch.setattr(formulations, "explain", lambda instance, **_: "demand and server_exists conflict")
    said = optgap("solve", file)
    assert said.code == 0
    assert said.err == "demand and server_exists conflict\n"
    assert lines_of(said)["status"] == "infeasible"
    assert lines_of(said)["plan"] == "none"
    assert json.loads(optgap("solve", file, "--json").out)["bound"] is None


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


def test_version(optgap: Optgap) -> None:
    said = optgap("--version")
    assert (said.code, said.err) == (0, "")
    assert re.fullmatch(r"optgap \d+\.\d+\.\d+\n", said.out)


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


def test_files_of_somebody_else_are_not_overwritten(optgap: Optgap, tmp_path: Path) -> None:
    """By commands that choose the names of what they write."""
    commands = {
        "aryl.reclaim-4-1-1.json": ("generate", "aryl.reclaim", "--seed", 1, "--size", 4, "--count", 2, "-o", "out"),
        "aryl.reclaim-random.json": ("hunt", "aryl.reclaim", "random", "--seed", 1, "--budget", "1s", "-o", "out"),
        "aryl.reclaim-random.html": ("hunt", "aryl.reclaim", "random", "--seed", 1, "--budget", "1s", "-o", "out"),
        "aryl.reclaim-feasible.json": ("check", "aryl.reclaim", "random", "--max-examples", 1, "-o", "out"),
    }
    (tmp_path / "out").mkdir()
    for name, command in commands.items():
        path = tmp_path / "out" / name
        path.write_text("my own words", encoding="utf-8")
        said = optgap(*command)
        assert (said.code, said.out) == (2, "")
        assert said.err == f"optgap: out/{name} is in the way, and holds no aryl.reclaim: choose another directory\n"
        assert path.read_text(encoding="utf-8") == "my own words"
        assert [one.name for one in (tmp_path / "out").iterdir()] == [name]
        path.unlink()
    # What a command wrote itself is written again.
    generate = commands["aryl.reclaim-4-1-1.json"]
    assert optgap(*generate).code == optgap(*generate).code == 0


def test_solve_finds_the_optimum_once_more(optgap: Optgap, file: Path) -> None:
    said = optgap("solve", file, "--verify")
    assert (said.code, said.err) == (0, "")
    assert lines_of(said)["verified"].startswith("confirmed, reference: ")
    told = json.loads(optgap("solve", file, "--verify", "--json").out)
    assert (told["verification"]["verdict"], told["verification"]["objective"]) == ("confirmed", told["objective"])
    assert "verification" not in json.loads(optgap("solve", file, "--json").out)


@pytest.mark.parametrize("form", [(), ("--json",), ("--quiet",)])
def test_an_optimum_that_is_contradicted_ends_with_its_code(
    optgap: Optgap, file: Path, monkeypatch: pytest.MonkeyPatch, form: tuple[str, ...]
) -> None:
    wrong = formulations.Verification("contradicted", "second search", "optimal", 9.0, 9.0, 0.0, "second optimal")
    monkeypatch.setattr(formulations, "verify", lambda *_, **__: wrong)
    said = optgap("solve", file, "--verify", *form)
    assert said.code == 1
    assert "contradicted" in (said.err if "--quiet" in form else said.out)


def test_a_heuristic_is_not_verified(optgap: Optgap, file: Path) -> None:
    said = optgap("solve", file, "--verify", "--heuristic", "server_fraction")
    assert said.code == 2
    assert "--verify: a heuristic proves nothing" in said.err
