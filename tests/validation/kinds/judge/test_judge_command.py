"""``optgap judge``, what it prints, and what an evolving program makes of it."""

import importlib
import itertools
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.main import get_command

import validation
from heuristics.aryl.reclaim import server_fraction, smallest_count_updated
from validation.cli import app, commands
from validation.kinds.judge import sets
from validation.kinds.study.cases import generate

from ..study.studies import FORKED
from .sets import WALLED
from .test_judgement import solved_as, without_times

pytestmark = FORKED
EXAMPLES = Path(__file__).parents[4] / "examples" / "evolve"


@pytest.fixture(autouse=True)
def _small_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sets, "COUNT", 2)
    monkeypatch.setattr(sets, "_SIZES", {"aryl.reclaim": (8, 12)})
    monkeypatch.setattr(sets, "_FIRST", {})


def told(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    capsys.readouterr()
    code = app.run(["judge", *map(str, arguments)], commands)
    said = capsys.readouterr()
    return code, said.out, said.err


def test_json_is_the_judgement(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = told(capsys, "random", "--problem", "aryl.reclaim", "--jobs", 1, "--json")
    assert code == 0
    said = json.loads(out)
    expected = without_times(validation.judge("random", "aryl.reclaim", jobs=2))
    for one in said["instances"]:
        assert one.pop("seconds") >= 0
    assert said == expected
    assert list(said) == [
        *("problem", "heuristic", "split", "score", "worst", "optimal", "certified", "headroom", "counts"),
        *(
            "without_plan",
            "set",
            "edition",
            "commitment",
            "program",
            "seeds",
            "budget",
            "no_solver",
            "versions",
            "walls",
            "instances",
        ),
    ]
    assert list(said["instances"][0]) == ["digest", "status", "value", "optimum", "proof", "score", "reason", "steps"]
    assert said["worst"] == min(one["score"] for one in said["instances"])
    assert said["optimal"] == sum(one["score"] == 1 for one in said["instances"])
    assert said["certified"] == sum(one["proof"] in ("prices", "argument") for one in said["instances"])
    assert said["score"] == math.fsum(one["score"] for one in said["instances"]) / 4


@WALLED
def test_a_hidden_set_is_that_of_its_seed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "seed").write_text("77\n")
    split = f"hidden:{tmp_path / 'seed'}"
    _, out, _ = told(capsys, "local_search", "--problem", "aryl.reclaim", "--split", split, "--json")
    said = json.loads(out)
    assert said["split"] == "hidden"
    found = {one["digest"] for one in said["instances"]}
    assert found == {generate("aryl.reclaim", 77, size, i).digest for size in (8, 12) for i in (0, 1)}


def test_words_tell_the_worst(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def f(instance):\n    raise RuntimeError('not yet')\n")
    code, out, _ = told(capsys, f"{tmp_path}/mine.py:f", "--problem", "aryl.reclaim")
    assert code == 0
    assert "score      0.0000" in out
    assert "4 failed; 0 of 4 optimal" in out
    assert "RuntimeError: not yet" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["random", "--problem", "aryl.reclaim", "--split", "hidden:five"], "five is no file"),
        (["random", "--problem", "aryl.reclam"], "aryl.reclaim"),
        (["randon", "--problem", "aryl.reclaim"], "random"),
        (["random", "--problem", "aryl.reclaim", "--budget", "-1"], "budget: got '-1'"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = told(capsys, *arguments)
    assert (code, out) == (app.BAD_INPUT, "")
    assert said in err
    assert len(err.splitlines()) == 1


def test_a_disagreement_has_a_code_of_its_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    solved_as(monkeypatch, value=99.0, bound=99.0)
    code, out, err = told(capsys, "random", "--problem", "aryl.reclaim", "--json")
    assert (code, out) == (app.DISAGREEMENT, "")
    assert "oracle disagreement" in err


def test_other_commands_take_no_heuristic_of_the_catalogue_its_name() -> None:
    """``optgap judge NAME`` is a judgement unless NAME is one of them."""
    group: Any = get_command(commands("judge"))
    others = group.commands["judge"].commands.keys() - {"judge"}
    assert not others & {name for entry in validation.CATALOGUE.values() for name in entry.heuristics}


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Imports a file of the example."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield importlib.import_module
    for name in ("evolve", "greedy", "orders", "openevolve"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(("problem", "steps"), [("aryl.reclaim", 6), ("aryl.base_allocation", 4)])
def test_the_search_is_that_of_its_seed(example: Any, problem: str, steps: int) -> None:
    module = example("evolve")
    rule = module.RULES[problem]

    def found() -> list[tuple[int, float, list[float]]]:
        return [(step, score, weights.tolist()) for step, score, weights in module.climb(rule, 3, steps)]

    first = found()
    assert found() == first
    assert first[0][::2] == (0, rule.START.tolist())
    assert all(before[1] < after[1] for before, after in itertools.pairwise(first))
    if problem == "aryl.reclaim":
        assert first[0][1] == validation.judge("server_fraction", problem, edition=module.EDITION).score
    assert set(rule.BESIDE) <= set(validation.catalogue.entry(problem).heuristics)


def test_the_search_has_the_heuristics_of_the_catalogue_within_reach(example: Any) -> None:
    """But for a demand of one server, where Algorithm 1 counts jobs."""
    greedy = example("greedy")
    count = np.roll(greedy.SERVER_FRACTION, -1)
    for seed in range(10):
        drawn = generate("aryl.reclaim", seed, 12)
        assert drawn.demand > 1
        for weights, same in ((greedy.SERVER_FRACTION, server_fraction), (count, smallest_count_updated)):
            assert greedy.by_weights(drawn, weights).servers.tolist() == same(drawn).servers.tolist()


def test_the_orders_of_the_local_search_are_within_reach(example: Any) -> None:
    orders = example("orders")
    for seed, power in itertools.product(range(5), (0.0, 0.25, 0.5, 1.0)):
        drawn = generate("aryl.base_allocation", seed, 12)
        weights = np.array([1.0, power, 0, 0, 0, 0])
        keys = drawn.running_times * drawn.gpu_demands**power
        same = drawn.in_order(np.argsort(keys, kind="stable").tolist())
        assert orders.by_weights(drawn, weights).starts.tolist() == same.starts.tolist()


@pytest.mark.slow
def test_openevolve_gets_a_score_whatever_the_program_is(
    example: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = example("openevolve")
    small = "from validation.kinds.judge import sets; sets.COUNT = 1; sets._SIZES = {'aryl.reclaim': (8, 12)}; "
    monkeypatch.setattr(module, "OPTGAP", [*module.OPTGAP[:2], small + module.OPTGAP[2]])
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLES.parents[1]))
    program = tmp_path / "program.py"
    program.write_text("from heuristics.aryl.reclaim import random as heuristic\n")
    found = module.evaluate(str(program))
    assert found["feasible"] == 1.0
    assert 0 < found["combined_score"] <= 1.0
    assert module.evaluate(str(tmp_path / "nowhere.py")) == {"combined_score": 0.0, "feasible": 0.0}
