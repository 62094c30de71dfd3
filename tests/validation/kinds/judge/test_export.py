"""Tasks for harnesses: what stands in their folders, and what their evaluators answer, by each harness's contract."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import formulations
from instances.files import read
from instances.schema import declarations
from validation import CATALOGUE, CatalogueError, StudyError
from validation.cli import app, commands
from validation.formatting import number
from validation.kernel import walls
from validation.kinds.judge import evaluating
from validation.kinds.judge.evaluating import evaluated, refuse_without_walls, texts_of
from validation.kinds.judge.export import HARNESSES, export
from validation.kinds.judge.instructions import first_program, instructions
from validation.signatures import solve

from ..study.studies import FORKED
from .sets import WALLED

pytestmark = FORKED

PROBLEM = "aryl.reclaim"

FILES = {
    "openevolve": {"initial_program.py", "evaluator.py", "config.yaml"},
    "skydiscover": {
        *("initial_program.py", "evaluator.py", "config.yaml", "evaluator/Dockerfile", "evaluator/evaluate.sh"),
        *("evaluator/requirements.txt", "evaluator/seed.txt"),
    },
    "shinka": {"initial.py", "evaluate.py", "instructions.md"},
    "gepa": {"initial_program.py", "evaluator.py", "instructions.md"},
    "harbor": {
        *("task.toml", "instruction.md", "solution/solve.sh", "environment/Dockerfile", "environment/solution.py"),
        *("environment/requirements.txt", "tests/Dockerfile", "tests/test.sh", "tests/seed.txt"),
        "tests/requirements.txt",
    },
    "llm4ad": {"template.py", "evaluation.py", "instructions.md"},
    "heurigym": {
        *("README.md", "program/solver.py", "program/verifier.py", "program/evaluator.py", "baseline/baseline.json"),
    },
    "frontier-cs": {
        *("config.yaml", "readme", "evaluate.sh", "evaluator.py", "seed.txt", "resources/solution.py"),
        "resources/pyproject.toml",
    },
}
"""What each harness wants, without the instances of HeuriGym."""

TIGHT = {"synergy.placement", "elasticflow.minimum_satisfactory_share"}
"""Problems of which sets may be so tight that a simple program has feasible plans for some instances only."""

RULES_OF_ONE = {"afs.two_job"}
"""Problems of whose rules a change of a plan breaks one."""


# --- what stands in a task ----------------------------------------------------------------------


@pytest.mark.parametrize("problem", CATALOGUE)
def test_a_first_program_stands_alone_and_keeps_the_rules(problem: str) -> None:
    source = first_program(problem)
    imported = {one.module for one in ast.walk(ast.parse(source)) if isinstance(one, ast.ImportFrom)}
    assert imported <= sys.stdlib_module_names
    assert not [one for one in ast.walk(ast.parse(source)) if isinstance(one, ast.Import)]
    # One function, because that is what some harnesses evolve.
    (function,) = (one for one in ast.parse(source).body if not isinstance(one, ast.ImportFrom))
    assert isinstance(function, ast.FunctionDef)
    assert function.name == "solve"
    scope: dict[str, Any] = {}
    exec(source, scope)
    kept = 0
    for text in texts_of(problem, "train"):
        instance = read(json.loads(text))
        plan = solve(scope["solve"], instance)
        kept += not instance.violations(plan)
        assert problem in TIGHT or not instance.violations(plan) or formulations.solve(instance).status == "infeasible"
    assert kept


@pytest.mark.parametrize("problem", CATALOGUE)
def test_instructions_are_true(problem: str) -> None:
    told = instructions(problem)
    kind = CATALOGUE[problem].instance
    for one in (kind, kind.plan_type):
        for field in declarations(one):
            assert re.search(rf"^\| `{field}` \| .+ \| \S.* \|$", told, re.MULTILINE), field
    given, planned = (json.loads(block) for block in re.findall(r"```json\n(.*?)\n```", told))
    instance, plan = kind.from_dict(given), kind.plan_type.from_dict(planned)
    assert not instance.violations(plan)
    value = re.search(r"first program is worth (.*?)\. The best possible is (.*?)\.$", told, re.MULTILINE)
    assert value
    worth, best = value.groups()
    assert worth == number(instance.objective(plan))
    assert best == number(formulations.solve(instance).objective)
    broken = re.findall(
        r"^- with `(\w+)([\[\]\d]*)` (\S+) in place of \S+, the rule `(\w+)` is broken", told, re.MULTILINE
    )
    assert len(broken) == 1 if problem in RULES_OF_ONE else len(broken) == 2
    for field, place, value, rule in broken:
        changed = json.loads(json.dumps(planned))
        exec(f"changed[{field!r}]{place} = json.loads({value!r})")
        assert rule in {one.rule for one in instance.violations(kind.plan_type.from_dict(changed))}


@pytest.mark.parametrize("harness", HARNESSES)
def test_a_task_has_the_files_that_its_harness_wants(harness: str, tmp_path: Path) -> None:
    made = export(PROBLEM, harness, tmp_path / "task")
    names = {path.relative_to(tmp_path / "task").as_posix() for path in made}
    assert {name for name in names if not name.startswith("dataset/")} == FILES[harness]
    texts = {path: path.read_text() for path in made}
    assert any(instructions(PROBLEM).splitlines()[0] in text for text in texts.values())
    for path, text in texts.items():
        assert "{{" not in text, path
        if path.suffix == ".py":
            compile(text, str(path), "exec")
        if path.suffix == ".sh":
            assert os.access(path, os.X_OK)
        if path.name == "seed.txt":
            assert path.stat().st_mode & 0o077 == 0


def test_a_program_between_marks_is_the_first_program(tmp_path: Path) -> None:
    for harness, name in {
        "openevolve": "initial_program",
        "skydiscover": "initial_program",
        "shinka": "initial",
    }.items():
        export(PROBLEM, harness, tmp_path / harness)
        text = (tmp_path / harness / f"{name}.py").read_text()
        assert text == f"# EVOLVE-BLOCK-START\n{first_program(PROBLEM)}\n# EVOLVE-BLOCK-END\n"


def test_of_a_problem_from_outside_the_program_is_yet_to_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("validation.kinds.judge.instructions.PROGRAMS", tmp_path)
    export(PROBLEM, "gepa", tmp_path / "task")
    scope: dict[str, Any] = {}
    exec((tmp_path / "task" / "initial_program.py").read_text(), scope)
    assert scope["solve"].__doc__ == 'Return a plan: {"servers": ...}.'
    with pytest.raises(NotImplementedError):
        scope["solve"]({})


def test_the_command_names_every_harness() -> None:
    group: Any = get_command(commands("judge"))
    told = {one.name: one.help for one in group.commands["judge"].commands["export"].params}
    assert set(re.split(r", | or |\.", told["harness"])) - {""} == set(HARNESSES)


def test_each_task_has_a_seed_of_its_own_or_the_one_that_is_given(tmp_path: Path) -> None:
    seeds = set()
    for name in ("one", "other"):
        export(PROBLEM, "skydiscover", tmp_path / name)
        seeds.add((tmp_path / name / "evaluator" / "seed.txt").read_text())
    assert len(seeds) == 2
    (tmp_path / "seed").write_text("7\n")
    export(PROBLEM, "harbor", tmp_path / "given", hidden=str(tmp_path / "seed"))
    assert (tmp_path / "given" / "tests" / "seed.txt").read_text() == "7\n"


def test_what_cannot_be_exported_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(StudyError, match=r"got 'openevolv' \(did you mean 'openevolve'\?\), must be one of"):
        export(PROBLEM, "openevolv", tmp_path / "task")
    with pytest.raises(CatalogueError, match="reclaim"):
        export("aryl.reclame", "gepa", tmp_path / "task")
    assert not (tmp_path / "task").exists()
    (tmp_path / "secret").write_text("1a")
    with pytest.raises(StudyError, match="must hold a whole number"):
        export(PROBLEM, "harbor", tmp_path / "task", hidden=str(tmp_path / "secret"))
    assert app.run(["judge", "export", PROBLEM, "--for", "gepa", "-o", str(tmp_path)], commands) == 2
    assert "is not empty" in capsys.readouterr().err


# --- what an evaluator answers ------------------------------------------------------------------


@pytest.fixture
def program(tmp_path: Path) -> Any:
    """Writes a program."""

    def write(body: str, name: str = "program") -> Path:
        path = tmp_path / f"{name}.py"
        path.write_text(f"def solve(instance):\n    {body}\n")
        return path

    return write


@pytest.mark.slow
def test_a_program_gets_a_score_whatever_it_does(program: Any) -> None:
    bad = {
        "raise ValueError('no idea')": "failed: ValueError: no idea",
        "return [1]": "must be a dictionary with servers",
        "return {'servers': [0, 0, 0]}": "infeasible: ",
        "import os; os._exit(0)": "failed: ",
    }
    for body, reason in bad.items():
        found = evaluated(program(body), PROBLEM, "smallest")
        assert found["combined_score"] == found["metrics"]["combined_score"] == found["metrics"]["feasible"] == 0
        assert reason in found["artifacts"]["no_feasible_plan"]
    good = evaluated(program("return {'servers': list(range(instance['demand']))}"), PROBLEM, "smallest")
    assert good["status"] == "success"
    assert 0 < good["combined_score"] < 1
    assert good["metrics"]["feasible"] == 1
    assert "best possible" in good["artifacts"]["worst_plans"]


@pytest.mark.slow
def test_a_program_reads_no_seed_on_whichever_part_it_is_judged(program: Any, tmp_path: Path) -> None:
    (tmp_path / "seed.txt").write_text("20260611\n")
    reads = program(
        f"open({str(tmp_path / 'seed.txt')!r}).read(); return {{'servers': list(range(instance['demand']))}}"
    )
    for part in ("smallest", "train:0", "test"):
        found = evaluated(reads, PROBLEM, part, seed=tmp_path / "seed.txt")
        assert found["metrics"]["feasible"] == 0
    # Where there is none to be kept, the same program does as it likes.
    assert evaluated(reads, PROBLEM, "smallest")["metrics"]["feasible"] == 1


@pytest.mark.slow
def test_nothing_is_said_of_hidden_instances(program: Any, tmp_path: Path) -> None:
    (tmp_path / "seed.txt").write_text("20260611\n")
    found = evaluated(program("return {'servers': []}"), PROBLEM, "test", seed=tmp_path / "seed.txt")
    assert found["combined_score"] == 0
    assert list(found["artifacts"]) == ["set"]


def test_no_program_is_judged_where_a_wall_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stands = dict.fromkeys(walls.WALLS, True)
    monkeypatch.setattr(evaluating, "standing", lambda: stands)
    refuse_without_walls()
    stands["signals"] = False
    refuse_without_walls()
    stands["secrets"] = stands["calls"] = False
    with pytest.raises(StudyError, match=r"Missing: secrets \(Linux 5\.13 \(Landlock\)\), without which it can read"):
        refuse_without_walls()
    assert evaluating.main(["none.py", PROBLEM, "train"]) == 1
    assert "calls (Linux (seccomp)" in capsys.readouterr().err


@WALLED
def test_a_part_that_is_none_is_refused(capsys: pytest.CaptureFixture[str], program: Any) -> None:
    assert evaluating.main([str(program("return {}")), PROBLEM, "train:99"]) == 1
    assert "got 'train:99', must be one of smallest, train, test" in capsys.readouterr().err
    assert evaluating.main([str(program("return {}")), PROBLEM, "test"]) == 1
    assert "takes the file with the seed" in capsys.readouterr().err
    assert evaluating.main([str(program("return {}")), "aryl.reclame", "train"]) == 1
    assert "did you mean 'aryl.reclaim'?" in capsys.readouterr().err


# --- by each harness's contract -----------------------------------------------------------------


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Exports a task."""

    def exported(harness: str) -> Path:
        folder = tmp_path_factory.mktemp(harness)
        export("afs.two_job", harness, folder)
        return folder

    return exported


def imported(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"exported_{path.parent.name}_{path.stem}".replace("-", "_"), path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ran(script: Path, *arguments: str, **variables: str) -> str:
    """Standard output of a script, for which ``python3`` is this interpreter."""
    folder = script.parent
    (folder / "python3").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (folder / "python3").chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", **variables}
    return subprocess.run([str(script), *arguments], check=True, capture_output=True, text=True, env=environment).stdout


@pytest.mark.slow
def test_openevolve(task: Any) -> None:
    """``evaluate`` and its stages return metrics with a ``combined_score``, and text beside them."""
    folder = task("openevolve")
    evaluator = imported(folder / "evaluator.py")
    for function in (evaluator.evaluate_stage1, evaluator.evaluate_stage2, evaluator.evaluate):
        found = function(str(folder / "initial_program.py"))
        metrics = getattr(found, "metrics", found)
        assert 0 < metrics["combined_score"] <= 1


@pytest.mark.slow
def test_openevolve_itself(task: Any) -> None:
    """Its own evaluator takes what ours returns, cascade and all."""
    openevolve = pytest.importorskip("openevolve.evaluator", reason="OpenEvolve is not installed")
    config = pytest.importorskip("openevolve.config")
    import asyncio

    folder = task("openevolve")
    settings = config.load_config(str(folder / "config.yaml"))
    judge = openevolve.Evaluator(settings.evaluator, str(folder / "evaluator.py"))
    metrics = asyncio.run(judge.evaluate_program((folder / "initial_program.py").read_text(), "first"))
    assert 0 < metrics["combined_score"] <= 1
    assert "set" in judge.get_pending_artifacts("first")


@pytest.mark.slow
def test_skydiscover_itself(task: Any) -> None:
    """Its evaluator on the host takes what ours returns, too."""
    skydiscover = pytest.importorskip("skydiscover.evaluation.evaluator", reason="SkyDiscover is not installed")
    config = pytest.importorskip("skydiscover.config")
    import asyncio

    folder = task("skydiscover")
    judge = skydiscover.Evaluator(config.EvaluatorConfig(), str(folder / "evaluator.py"))
    found = asyncio.run(judge.evaluate_program((folder / "initial_program.py").read_text(), "first"))
    assert 0 < found.metrics["combined_score"] <= 1
    assert "set" in found.artifacts


@pytest.mark.slow
def test_skydiscover(task: Any) -> None:
    """``evaluate.sh PROGRAM train|test`` prints one JSON object."""
    folder = task("skydiscover")
    for mode in ("train", "test"):
        found = json.loads(ran(folder / "evaluator" / "evaluate.sh", str(folder / "initial_program.py"), mode))
        assert found["status"] == "success"
        assert 0 < found["combined_score"] == found["metrics"]["combined_score"] <= 1
        assert {type(value) for value in found["metrics"].values()} == {float}
        assert {type(value) for value in found["artifacts"].values()} == {str}


@pytest.mark.slow
def test_shinka(task: Any, tmp_path: Path) -> None:
    """``evaluate.py --program_path P --results_dir D`` writes two files."""
    folder = task("shinka")
    asked = [sys.executable, str(folder / "evaluate.py"), "--program_path", str(folder / "initial.py")]
    subprocess.run([*asked, "--results_dir", str(tmp_path / "results")], check=True)
    metrics, correct = (
        json.loads((tmp_path / "results" / f"{one}.json").read_text()) for one in ("metrics", "correct")
    )
    assert correct == {"correct": True, "error": None}
    assert 0 < metrics["combined_score"] <= 1
    assert metrics["public"]["feasible"] == 1
    assert "public" in metrics["text_feedback"]


@pytest.mark.slow
def test_gepa(task: Any) -> None:
    """A callable from candidate and example to score and side information."""
    evaluator = imported(task("gepa") / "evaluator.py")
    assert list(range(36)) == evaluator.DATASET
    score, told = evaluator.evaluate(evaluator.SEED, evaluator.DATASET[3])
    assert 0 < score <= 1
    assert "1 instances" in told["set"]


@pytest.mark.slow
def test_llm4ad_itself(task: Any) -> None:
    """A subclass of its ``Evaluation``, asked by its own evaluator, with a template that it parses."""
    base = pytest.importorskip("llm4ad.base", reason="LLM4AD is not installed")
    evaluation = imported(task("llm4ad") / "evaluation.py")
    template = base.TextFunctionProgramConverter.text_to_program(evaluation.template_program)
    assert 0 < base.SecureEvaluator(evaluation.JudgedEvaluation()).evaluate_program(template) <= 1


@pytest.mark.slow
def test_harbor(task: Any, tmp_path: Path) -> None:
    """``tests/test.sh`` writes a reward file, and none that says nothing where there is no solution."""
    folder = task("harbor")
    settings = tomllib.loads((folder / "task.toml").read_text())
    assert settings["verifier"]["environment_mode"] == "separate"
    script, logs = folder / "tests" / "test.sh", str(tmp_path / "logs")
    ran(script, LOGS=logs, SOLUTION=str(folder / "environment" / "solution.py"))
    assert 0 < json.loads((tmp_path / "logs" / "reward.json").read_text())["reward"] <= 1
    ran(script, LOGS=logs, SOLUTION=str(tmp_path / "none.py"))
    assert json.loads((tmp_path / "logs" / "reward.json").read_text()) == {"reward": 0}
    # Where SkyDiscover, which reads such tasks, looks for the place of a solution.
    assert re.search(r"cat\s+>\s*(/\S+\.py)", (folder / "solution" / "solve.sh").read_text())[1] == "/app/solution.py"  # type: ignore[index]


@pytest.mark.slow
def test_frontier_cs(task: Any) -> None:
    """The last line is a number from 0 to 100."""
    folder = task("frontier-cs")
    told = ran(folder / "evaluate.sh", SOLUTION=str(folder / "resources" / "solution.py"))
    assert 0 < float(told.splitlines()[-1]) <= 100


def test_heurigym(task: Any, tmp_path: Path) -> None:
    """``solve(input, output)``, ``verify(input, output)``, ``evaluate(input, output)``, and a baseline."""
    folder = task("heurigym")
    program = {one: imported(folder / "program" / f"{one}.py") for one in ("solver", "verifier", "evaluator")}
    baseline = json.loads((folder / "baseline" / "baseline.json").read_text())
    files = sorted((folder / "dataset").rglob("*.json"))
    assert {path.stem for path in files} == set(baseline)
    assert {path.parent.name for path in files} == {"train", "test"}
    for path in files[:3]:
        output = str(tmp_path / "out")
        program["solver"].solve(str(path), output)
        assert program["verifier"].verify(str(path), output) == (True, "")
        assert program["evaluator"].evaluate(str(path), output) >= baseline[path.stem] == 1
        for wrong, why in {'{"receiver": 2}': "receiver_exists", "{}": "is missing", "no": "no JSON"}.items():
            Path(output).write_text(wrong)
            valid, message = program["verifier"].verify(str(path), output)
            assert not valid
            assert why in message
