"""The judge's number: what it is made of, recomputed by brute force, and that it is the same every time."""

import hashlib
import json
import math
import time
from pathlib import Path
from typing import Any

import pytest

import validation
from instances import files as instances
from instances.aryl.reclaim import Reclaim, ReclaimPlan
from validation import Judgement, StudyError
from validation.catalogue import Heuristic
from validation.errors import CatalogueError, OracleDisagreementError
from validation.kinds.judge import judging
from validation.kinds.judge.judging import score
from validation.kinds.judge.sets import EDITION, PUBLIC_SEED, draw, drawn, sizes_of
from validation.kinds.study.cases import generate

from ..study.studies import FORKED
from .sets import SET, WALLED, best, judged, last_servers, optimal, preempted, random_servers, too_few

pytestmark = FORKED


def without_times(judgement: Judgement) -> dict[str, Any]:
    told = judgement.to_dict()
    for one in told["instances"]:
        del one["seconds"]
    return told


def test_an_optimal_heuristic_scores_exactly_1() -> None:
    found = judged(optimal)
    assert found.score == 1.0
    assert [one.score for one in found.instances] == [1.0] * len(SET)
    assert sorted(one.optimum for one in found.instances) == sorted(map(best, SET))


def test_values_and_scores_are_those_of_brute_force() -> None:
    found = judged(last_servers)
    expected = {}
    for text in SET:
        data = json.loads(text)
        servers = len(data["hosts"][0])
        value = preempted(text, tuple(range(servers - data["demand"], servers)))
        expected[validation_digest(text)] = (value, best(text))
    assert any(value > least for value, least in expected.values())
    assert {one.digest: (one.value, one.optimum) for one in found.instances} == expected
    assert [one.score for one in found.instances] == [
        expected[d.digest][1] / expected[d.digest][0] for d in found.instances
    ]
    assert found.score == pytest.approx(sum(least / value for value, least in expected.values()) / len(SET), rel=1e-15)


def validation_digest(text: str) -> str:
    return Reclaim.from_dict(json.loads(text)).digest


def raises(instance: Reclaim) -> ReclaimPlan:
    raise RuntimeError("no")


def gives_up(instance: Reclaim) -> None:
    return None


def sleeps(instance: Reclaim) -> None:
    time.sleep(600)


@pytest.mark.parametrize(
    ("heuristic", "status", "budget"),
    [
        (too_few, "infeasible", 10),
        (raises, "failed", 10),
        (gives_up, "failed", 10),
        (Heuristic(gives_up, declines=True), "declined", 10),
        (sleeps, "late", 0.3),
    ],
    ids=["too_few", "raises", "gives_up", "declines", "sleeps"],
)
def test_what_is_no_feasible_plan_scores_0(heuristic: Any, status: str, budget: float) -> None:
    found = judged(heuristic, SET[:2], budget=budget)
    assert found.score == 0.0
    assert found.counts[status] == 2
    assert sum(found.counts.values()) == 2
    assert all(one.value is None and one.reason for one in found.instances)


def test_what_fails_once_loses_that_once() -> None:
    given_up = validation_digest(SET[0])
    found = judged(lambda instance: None if instance.digest == given_up else optimal(instance))
    assert found.score == (len(SET) - 1) / len(SET)


def test_the_number_is_the_same_again_and_with_one_process_or_two() -> None:
    first, again, alone = judged(random_servers), judged(random_servers), judged(random_servers, jobs=1)
    assert 0 < first.score < 1
    assert without_times(first) == without_times(again) == without_times(alone)


def test_the_order_of_the_instances_means_nothing() -> None:
    forwards, backwards = judged(random_servers), judged(random_servers, SET[::-1])
    assert forwards.set == backwards.set
    assert forwards.score == backwards.score


@pytest.mark.parametrize(
    ("sense", "value", "optimum", "expected"),
    [
        ("min", 4.0, 2.0, 0.5),
        ("max", 3.0, 4.0, 0.75),
        ("min", 0.0, 0.0, 1.0),
        ("max", 0.0, 0.0, 1.0),
        ("min", 1e-12, 0.0, 0.0),
        ("max", -1.0, 0.0, 0.0),
        ("max", -1.0, 2.0, 0.0),
        ("min", math.inf, 2.0, 0.0),
        ("min", 2.0 + 1e-7, 2.0, 1.0),
        ("max", 2.1, 2.0, 1.0),
    ],
)
def test_a_ratio_to_the_optimum(sense: str, value: float, optimum: float, expected: float) -> None:
    assert score(sense, value, optimum) == expected


@pytest.mark.parametrize("optimum", [-1.0, math.inf])
def test_there_is_no_ratio_to_every_optimum(optimum: float) -> None:
    with pytest.raises(ValueError, match="no ratio"):
        score("min", 1.0, optimum)


def solved_as(monkeypatch: pytest.MonkeyPatch, **entries: Any) -> None:
    """An exact side that says what is given of every instance."""
    row = {"status": "optimal", "reason": "; proof: none", "value": 1.0, "bound": 1.0, "seconds": 0.0, **entries}
    monkeypatch.setattr(judging, "solve_exactly", lambda *_, **__: row)
    monkeypatch.setattr(judging, "_PROVEN", {})


def test_an_optimum_that_is_not_proven_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    solved_as(monkeypatch, status="feasible", value=9.0, bound=1.0)
    with pytest.raises(StudyError, match="optimum is not proven"):
        judged(optimal, SET[:1])


def test_a_plan_that_beats_the_bound_has_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    solved_as(monkeypatch, value=99.0, bound=99.0)
    with pytest.raises(OracleDisagreementError, match=r"optimal found .*, and the bound 99 was proven"):
        judged(optimal, SET[:1])


def test_what_has_no_plan_is_told_and_not_in_the_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    without = validation_digest(SET[0])
    proven = {"status": "optimal", "reason": "; proof: two runs", "value": 3.0, "bound": 3.0}
    none = {"status": "infeasible", "reason": "; proof: two runs", "value": None, "bound": None}
    monkeypatch.setattr(judging, "solve_exactly", lambda one, *_, **__: none if one.digest == without else proven)
    monkeypatch.setattr(judging, "_PROVEN", {})
    found = judged(gives_up, SET[:3])
    assert (found.without_plan, len(found.instances)) == (1, 2)
    with pytest.raises(OracleDisagreementError, match="the bound inf was proven"):
        judged(optimal, SET[:1])


def test_a_known_optimum_is_not_proven_again(monkeypatch: pytest.MonkeyPatch) -> None:
    judged(optimal)
    monkeypatch.setattr(judging, "solve_exactly", raises)
    assert judged(optimal).score == 1.0


def test_the_public_set_is_the_one_of_its_seed() -> None:
    texts = drawn("aryl.reclaim", None)
    mine = {generate("aryl.reclaim", PUBLIC_SEED, size, 3).digest for size in sizes_of("aryl.reclaim")}
    digests = [validation_digest(text) for text in texts]
    assert mine < set(digests)
    assert digests == sorted(digests)


@pytest.mark.parametrize("problem", ["aryl.two_job", "gavel.makespan", "synergy.placement"])
def test_the_page_tells_the_public_sets_as_they_are(problem: str) -> None:
    """Other random streams would make other sets, whose scores are not to be compared with the page's."""
    page = (Path(__file__).parents[4] / "docs" / "judge.md").read_text(encoding="utf-8")
    digests = [instances.read(json.loads(text)).digest for text in drawn(problem, None)]
    assert len(digests) == 12 * len(sizes_of(problem))
    (line,) = (
        one
        for one in page.partition("| problem | sizes | instances |")[2].splitlines()
        if one.startswith(f"| `{problem}` | {', '.join(map(str, sizes_of(problem)))}")
    )
    assert f"`{hashlib.sha256(chr(10).join(sorted(digests)).encode()).hexdigest()[:16]}`" in line


def test_the_sets_of_the_first_edition_are_as_they_were() -> None:
    """Digests that the page had before there was another edition."""
    before = {"aryl.reclaim": "5524eaa30a94f16a", "synergy.placement": "7b93c66b97cf4283"}
    assert {problem: draw(problem, None, 1).digest[:16] for problem in before} == before
    assert draw("aryl.reclaim").digest != draw("aryl.reclaim", None, 1).digest
    assert draw("aryl.two_job").digest == draw("aryl.two_job", None, 1).digest


@pytest.mark.parametrize("edition", [0, EDITION + 1])
def test_editions_are_those_that_there_are(edition: int) -> None:
    with pytest.raises(StudyError, match=f"edition: got {edition}, must be"):
        validation.judge("closed_form", "aryl.two_job", edition=edition)


def in_lines(instance: Reclaim) -> ReclaimPlan:
    count = 0
    while count < instance.demand:
        count += 1
    return ReclaimPlan(servers=list(range(instance.demand)))


def test_steps_are_lines_of_python() -> None:
    """A loop of two lines a server, and the same few around it: no clock has a part in them."""
    found, again = judged(in_lines, steps=True), judged(in_lines, steps=True, jobs=1)
    assert all(one.steps is not None and one.steps > 4 for one in found.instances)
    assert [one.steps for one in found.instances] == [one.steps for one in again.instances]
    assert "lines of Python at most" in str(found)
    plain = judged(in_lines)
    assert [one.steps for one in plain.instances] == [None] * len(SET)
    assert plain.score == found.score


def test_steps_of_threads_count_and_what_is_imported_does_not(tmp_path: Path) -> None:
    (tmp_path / "with_threads.py").write_text(
        "import numpy as np\nfrom instances.aryl.reclaim import ReclaimPlan\n"
        "for _ in range(100_000):\n    pass\n"
        "def loop():\n    for _ in range(5000):\n        pass\n"
        "def h(instance):\n    from threading import Thread\n    one = Thread(target=loop)\n"
        "    one.start()\n    one.join()\n    return ReclaimPlan(servers=np.arange(instance.demand))\n"
    )
    (one,) = judged(f"{tmp_path / 'with_threads.py'}:h", SET[:1], steps=True).instances
    assert one.steps is not None
    assert 10_000 < one.steps < 12_000


def test_a_heuristic_by_reference_is_imported_where_it_is_asked(tmp_path: Path) -> None:
    file = tmp_path / "given_by_name.py"
    file.write_text(
        "import os, numpy as np\nfrom instances.aryl.reclaim import ReclaimPlan\n"
        f"assert os.getpid() != {__import__('os').getpid()}\n"
        "def last(instance, rng):\n    assert rng.random() < 1\n"
        "    return ReclaimPlan(servers=np.arange(instance.num_servers)[-instance.demand:])\n"
    )
    assert judged(f"{file}:last").score == judged(last_servers).score
    nobody = judged(f"{file}:nobody", SET[:1])
    assert nobody.score == 0.0
    assert "nobody" in nobody.instances[0].reason


def test_modules_that_a_reference_declares_run_nowhere_else(tmp_path: Path) -> None:
    """``imports`` of a heuristic of the catalogue are ready in the process that judges; of others they are not."""
    (tmp_path / "in_the_judge.py").write_text(
        "from instances.aryl.reclaim import Reclaim\nReclaim.objective = lambda self, plan: 0.0\n"
    )
    file = tmp_path / "declares.py"
    file.write_text(
        "from heuristics.aryl.reclaim import random\nfrom validation.catalogue import Heuristic\n"
        "mine = Heuristic(random, imports=('in_the_judge',))\n"
    )
    assert judged(f"{file}:mine").score == judged("random").score


def test_a_random_heuristic_draws_from_the_judge_s_seed() -> None:
    declared = Heuristic(random_servers)
    assert without_times(judged(declared))["instances"] == without_times(judged(random_servers))["instances"]


@pytest.mark.parametrize(
    ("heuristic", "options", "error", "said"),
    [
        ("nobody", {}, CatalogueError, "has no heuristic"),
        ("random", {"problem": "aryl.nothing"}, CatalogueError, "nothing"),
        ("random", {"budget": 0.0}, StudyError, "budget: got 0"),
        ("random", {"budget": math.nan}, StudyError, "budget: got nan"),
        ("random", {"jobs": 0}, StudyError, "jobs: got 0"),
        ("nowhere.py:f", {}, StudyError, "nowhere.py:f.*no such file"),
        ("random", {"split": "hidden:12345"}, StudyError, "12345 is no file"),
        ("random", {"split": "secret"}, StudyError, "must be public or hidden:FILE"),
    ],
)
def test_bad_input_is_one_error(heuristic: str, options: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        validation.judge(heuristic, **{"problem": "aryl.reclaim", **options})


@WALLED
def test_a_wall_that_does_not_stand_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "seed").write_text("1")
    monkeypatch.setattr("validation.kernel.walls._hide", lambda asked: None)
    with pytest.raises(StudyError, match="can be hidden from a heuristic here: secrets missing"):
        validation.judge("random", "aryl.reclaim", split=f"hidden:{tmp_path / 'seed'}")


@pytest.mark.parametrize("content", ["twelve", "-3", "1.5", "", "5 6"])
def test_a_file_without_a_seed_is_refused_without_a_word_of_it(content: str, tmp_path: Path) -> None:
    file = tmp_path / "seed"
    file.write_text(content)
    with pytest.raises(StudyError, match="must hold a whole number") as refused:
        drawn("aryl.reclaim", file)
    assert not content or content not in str(refused.value).replace(str(file), "")
