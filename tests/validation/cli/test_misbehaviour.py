"""The same misbehaviour has the same status in every command, and ends it with the same code (docs/statuses.md)."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.collection import making
from instances.aryl.reclaim import Reclaim, six_servers
from validation import CATALOGUE, catalogue
from validation.cli.app import DISAGREEMENT, FAILED
from validation.errors import HeuristicFailedError
from validation.kernel.asking import Asking, Askings, ask_here
from validation.kernel.judging import Status, judge
from validation.kinds import hunt
from validation.kinds.checks import CheckError, Subject, check_heuristic
from validation.kinds.checks.subject import result_of
from validation.kinds.judge.judging import judge_on
from validation.kinds.study.cells import judged
from validation.replay import decider

from .commands import Optgap

FILE = Path(__file__).with_name("misbehaviours.py")
PROBLEM = "aryl.reclaim"

STATUS = {
    "honest": Status.FEASIBLE,
    "none": Status.FAILED,
    "lax": Status.DECLINED,
    "strict": Status.FAILED,
    "not_a_number": Status.FAILED,
    "infinity": Status.FAILED,
    "negative": Status.INFEASIBLE,
    "another_type": Status.FAILED,
    "a_bare_array": Status.FAILED,
    "another_plan": Status.FAILED,
    "another_shape": Status.FAILED,
    "too_short": Status.INFEASIBLE,
    "twice_the_same": Status.INFEASIBLE,
    "too_long": Status.INFEASIBLE,
    "raises": Status.FAILED,
    "raises_unspeakably": Status.FAILED,
    "exits": Status.FAILED,
    "ends_the_process": Status.FAILED,
    "kills_itself": Status.FAILED,
    "is_late": Status.FAILED,
    "takes_too_much_memory": Status.FAILED,
    "recurses": Status.FAILED,
    "generates": Status.FAILED,
    "subclassed": Status.FEASIBLE,
    "an_odd_array": Status.FEASIBLE,
    "a_series": Status.FEASIBLE,
    "an_array_of_objects": Status.FAILED,
    "changes_the_instance": Status.INFEASIBLE,
    "talks": Status.FEASIBLE,
}
SECONDS = 0.5
BREAKS_THE_PROCESS = {"ends_the_process", "kills_itself", "is_late"}


def by_study(reference: str) -> str:
    _, heuristic = catalogue.heuristic(PROBLEM, reference)
    return str(judged(six_servers(), heuristic, 0, seconds=SECONDS, memory=10**9)["status"])


def by_replay(reference: str) -> str:
    with decider(PROBLEM, reference, time_limit=SECONDS, memory=10**9) as who:
        return who.ask(six_servers()).status


def by_hunt(reference: str) -> str:
    _, heuristic = catalogue.heuristic(PROBLEM, reference)
    try:
        with Asking(heuristic, 0, memory=10**9) as asking:
            found = hunt.judge(six_servers(), asking, seconds=SECONDS)
    except HeuristicFailedError:
        return Status.FAILED
    assert found is not None
    if found.value is not None:
        return Status.FEASIBLE
    return Status.DECLINED if found.plan is None else Status.INFEASIBLE


def by_judge(reference: str) -> str:
    (found,) = judge_on([json.dumps(six_servers().to_dict())], reference, PROBLEM, budget=SECONDS, jobs=1).instances
    # The one word that a judgement has besides.
    return Status.FAILED if found.status == Status.LATE else found.status


def by_making(reference: str) -> str:
    return making.answer_of(six_servers(), catalogue.heuristic(PROBLEM, reference)[1])[0]


def by_check(reference: str) -> str:
    _, heuristic = catalogue.heuristic(PROBLEM, reference)
    with Askings() as ask:
        try:
            return result_of(Subject(heuristic, CATALOGUE[PROBLEM], ask).answer(six_servers())).status
        except CheckError:
            return Status.FAILED


def in_this_process(reference: str) -> str:
    _, heuristic = catalogue.heuristic(PROBLEM, reference)
    asked = ask_here(six_servers(), heuristic, np.random.default_rng(0))
    return judge(six_servers(), asked, declines=heuristic.declines).status


WAYS: tuple[Callable[[str], str], ...] = (by_study, by_replay, by_hunt, by_judge, by_making)
"""All ways but ``optgap solve`` and the checks, which are asked of each misbehaviour below."""
ONE_OF_EACH = ("honest", "none", "lax", "another_type", "too_short", "raises", "ends_the_process", "is_late")


@pytest.fixture(autouse=True)
def little_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the making of the collection, which takes no limit."""
    monkeypatch.setattr(making, "ASKED", SECONDS)


@pytest.mark.parametrize(
    "name", [name if name in ONE_OF_EACH else pytest.param(name, marks=pytest.mark.slow) for name in STATUS]
)
def test_every_command_says_the_same(name: str) -> None:
    ways = WAYS if name in BREAKS_THE_PROCESS else (*WAYS, in_this_process)
    assert {way.__name__: way(f"{FILE}:{name}") for way in ways} == {way.__name__: STATUS[name] for way in ways}


@pytest.mark.parametrize("name", sorted(STATUS.keys() - BREAKS_THE_PROCESS))
def test_checks_judge_alike(name: str) -> None:
    # Whether None is allowed is one check among others, which says nothing where no plan exists.
    assert by_check(f"{FILE}:{name}") == (Status.DECLINED if name in ("none", "strict") else STATUS[name])


@pytest.mark.parametrize("name", ["none", "another_type", "a_bare_array"])
def test_a_report_of_checks_has_what_came_in_place_of_a_plan(name: str, tmp_path: Path) -> None:
    report = check_heuristic(PROBLEM, f"{FILE}:{name}", max_examples=3, output=tmp_path).to_dict()
    (failed,) = [one for one in report["results"] if one["name"] == "returns_a_plan"]
    assert failed["status"] == "failed"
    assert (failed["plan"] is None) == (name == "none")


@pytest.mark.parametrize(
    ("worth", "status"), [(math.inf, "feasible"), (1e301, "feasible"), (math.nan, "failed"), (-math.inf, "failed")]
)
def test_a_value_that_is_no_number(worth: float, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As that of a plan that never ends: it is feasible, and worse than every number."""
    monkeypatch.setattr(Reclaim, "_value", lambda self, plan: worth if 0 in plan.servers else 2.0)
    ways = (by_study, by_replay, by_hunt, by_judge, by_making, by_check, in_this_process)
    assert {way(f"{FILE}:honest") for way in ways} == {status}


def test_the_page_has_every_status() -> None:
    page = (Path(__file__).parents[3] / "docs" / "statuses.md").read_text(encoding="utf-8")
    table = page.partition("| --- | --- | --- |\n")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(Status)


# --- exit codes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STATUS)
def test_code_of_solve(optgap: Optgap, file: Path, name: str) -> None:
    said = optgap("solve", file, "--heuristic", f"{FILE}:{name}", "--time-limit", SECONDS, "--json")
    told = json.loads(said.out)
    assert told["status"] == STATUS[name]
    assert (told["objective"] is None) == (STATUS[name] != Status.FEASIBLE)
    assert said.code == (FAILED if STATUS[name] == Status.FAILED else 0)
    assert bool(said.err) == bool(said.code)


@pytest.mark.parametrize(
    ("name", "code"), [("honest", 0), ("too_short", 0), ("lax", 0), ("strict", FAILED), ("raises", FAILED)]
)
def test_code_of_study(optgap: Optgap, name: str, code: int) -> None:
    study = ("study", PROBLEM, "--sizes", 4, "--count", 1, "--seed", 1, "--jobs", 1, "-o", "out")
    assert optgap(*study, "--heuristic", f"{FILE}:{name}").code == code


# Those whose plan must pass, and of the others, which are judged alike above, one of each.
@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [one for one in STATUS if STATUS[one] == Status.FEASIBLE or one in (*ONE_OF_EACH, "changes_the_instance")]
)
def test_code_of_check(optgap: Optgap, name: str) -> None:
    said = optgap("check", PROBLEM, f"{FILE}:{name}", "--max-examples", 3, "--time-limit", 20, "--json")
    fine = STATUS[name] == Status.FEASIBLE or name == "lax"
    assert said.code == (0 if fine else DISAGREEMENT)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "code"), [("honest", 0), ("too_short", 0), ("lax", 0), ("strict", FAILED), ("raises", FAILED)]
)
def test_code_of_hunt(optgap: Optgap, name: str, code: int) -> None:
    said = optgap("hunt", PROBLEM, f"{FILE}:{name}", "--seed", 1, "--budget", "3s", "--jobs", 1, "-o", "out")
    assert said.code == code, said.err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["honest", "too_short", "lax", "strict", "raises"])
def test_code_of_judge(optgap: Optgap, name: str) -> None:
    """Failing is what is found, and scores 0."""
    assert optgap("judge", f"{FILE}:{name}", "--problem", PROBLEM).code == 0


REPLAYED = "aryl.elastic_allocation"


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "code"), [("gandiva(instance)", 0), ("1 / 0", FAILED), ("None", FAILED)])
def test_code_of_replay(optgap: Optgap, tmp_path: Path, answer: str, code: int) -> None:
    module = f"from heuristics.aryl.elastic_allocation import gandiva\ndef mine(instance):\n    return {answer}\n"
    (tmp_path / "replayed.py").write_text(module, encoding="utf-8")
    replay: tuple[Any, ...] = ("replay", "poisson", "--problem", REPLAYED, "--policy", "replayed.py:mine")
    assert optgap(*replay, "--length", 4, "--jobs", 1, "-o", "out").code == code
