"""Hunts find what is known to be there, and what they find can be replayed."""

import itertools
import json
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import formulations
import instances
from formulations.worst_case import Measure
from heuristics.aryl.reclaim import server_fraction
from instances.aryl.reclaim import Reclaim, ReclaimPlan
from instances.aryl.two_job import generate as generate_two
from validation import StudyError, catalogue, check_heuristic, find_worst
from validation.catalogue import CatalogueError, Heuristic
from validation.kernel.asking import Asking
from validation.kernel.walls import filters
from validation.kinds import hunt as hunting
from validation.kinds.family import Family
from validation.kinds.hunt import HeuristicFailedError, OracleDisagreementError, Witness, judge
from validation.kinds.witness import Judged


def last_servers(instance: Reclaim) -> ReclaimPlan:
    return ReclaimPlan(servers=np.arange(instance.num_servers - instance.demand, instance.num_servers))


@pytest.fixture(scope="module")
def witness() -> Witness:
    return find_worst("aryl.reclaim", last_servers, seed=1, budget=12)


@pytest.mark.slow
def test_a_bad_heuristic_is_caught_and_its_instance_shrunk(witness: Witness, tmp_path: Path) -> None:
    """Taking the last servers can preempt a job where none has to be; an instance that has a ratio tells more."""
    assert 0 < witness.judged.gap < np.inf
    assert witness.judged.gap >= 0.9 * witness.worst_gap
    assert witness.judged.optimum >= 1
    path = witness.save(tmp_path)
    told = json.loads(path.read_text(encoding="utf-8"))
    replayed = instances.read(told["instance"])
    assert replayed.objective(last_servers(replayed)) == told["value"]  # type: ignore[arg-type]
    assert told["difference"] == told["value"] - told["optimum"]
    assert formulations.solve(replayed).objective == told["optimum"]
    page = path.with_suffix(".html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert "last_servers" in page


ONLY = Reclaim(hosts=np.array([[False, True]]), gpus=np.array([[0, 1]]), demand=1)
"""Where the last server preempts one job, and none has to be."""


def test_an_infinite_gap_is_null_in_json() -> None:
    only = Judged(ONLY, ReclaimPlan(servers=[1]), 1.0, ReclaimPlan(servers=[0]), 0.0, np.inf)
    witness = Witness("aryl.reclaim", "last_servers", only, np.inf, "luck", 1, 1, ())
    told = witness.to_dict()
    assert (told["gap"], told["worst_gap"], told["worst_difference"]) == (None, None, None)
    assert (told["difference"], told["value"], told["optimum"]) == (1.0, 1.0, 0.0)


def test_an_instance_that_has_a_ratio_is_worse_than_one_that_has_none() -> None:
    """Of a greater difference, by which it would be the worse."""
    plan = ReclaimPlan(servers=[1])
    without, with_ratio = Judged(ONLY, plan, 9.0, plan, 0.0, np.inf), Judged(ONLY, plan, 2.0, plan, 1.0, 1.0)
    good, declined = Judged(ONLY, plan, 1.0, plan, 1.0, 0.0), Judged(ONLY, None, None, plan, 1.0, np.inf)
    falling: dict[Measure, list[Judged]] = {
        "ratio": [declined, with_ratio, without, good],
        "difference": [declined, without, with_ratio, good],
    }
    for measure, order in falling.items():
        for worse, better in itertools.pairwise(order):
            assert hunting._worse(worse, better, measure)
            assert not hunting._worse(better, worse, measure)
        assert hunting.badness(order[-1], measure) == 0


def test_a_heuristic_that_crashes_does_not_stop_the_hunt() -> None:
    def fragile(instance: Reclaim) -> ReclaimPlan:
        if instance.demand == 3:
            raise RuntimeError("three")
        return last_servers(instance)

    witness = find_worst("aryl.reclaim", fragile, seed=1, budget=4)
    assert witness.judged.gap > 0


def crash(search: hunting._Search, start: Any) -> None:
    search.judge(Reclaim(hosts=np.array([[False, True]]), gpus=np.array([[0, 1]]), demand=1))
    raise RuntimeError("in the middle")


def test_what_was_found_before_a_search_ended_early_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every search crashes in the end, and says so; the worst that it met before is the witness."""
    monkeypatch.setattr(hunting, "METHODS", (crash,))
    witness = find_worst("aryl.reclaim", last_servers, seed=1, budget=1)
    assert witness.worst_gap == np.inf
    assert len(witness.failures) == 1
    assert witness.failures[0].startswith("crash: RuntimeError: in the middle")


def test_a_disagreement_is_not_lost_when_time_runs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hypothesis runs what failed once more; that the time is over by then must not hide why it failed."""

    def disagree(*args: Any, **options: Any) -> Any:
        while not search.over:
            time.sleep(0.01)
        raise OracleDisagreementError("a plan beats the bound")

    only = Reclaim(hosts=np.array([[False, True]]), gpus=np.array([[0, 1]]), demand=1)
    asking = Asking(Heuristic(server_fraction), 0)
    search = hunting._Search(Family("aryl.reclaim", strategy=st.just(only)), asking, 0, "ratio", 0, 3.0)
    monkeypatch.setattr(hunting, "judge", disagree)
    with pytest.raises(OracleDisagreementError):
        hunting._hypothesis_search(search, None)


def searches(problem: str, heuristic: str) -> hunting._Search:
    asking = Asking(catalogue.heuristic(problem, heuristic)[1], 0)
    return hunting._Search(Family(problem), asking, 0, "ratio", 0, 1.0)


def test_a_size_that_the_generator_refuses_is_drawn_again() -> None:
    with pytest.raises(ValueError, match="num_gpus: got 2, must be at least 3"):
        generate_two(0, num_gpus=2)
    search = searches("aryl.two_job", "closed_form")
    sizes = {search.fresh().num_gpus for _ in range(200)}
    assert sizes == set(range(3, hunting.MAX_MEMBERS + 1))


def test_a_generator_that_refuses_every_size_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(rng: Any, **size: int) -> Any:
        raise ValueError("too small")

    entry = replace(catalogue.entry("aryl.two_job"), generate=refuse)
    monkeypatch.setattr(catalogue, "entry", lambda problem: entry)
    witness = find_worst("aryl.two_job", "closed_form", seed=0, budget=4)
    told = [failure for failure in witness.failures if failure.startswith("random_search: ")]
    assert len(told) == 1
    assert "generate refuses every num_gpus from 2 to 12, the last for: too small" in told[0]


@pytest.mark.parametrize("problem", list(catalogue.CATALOGUE))
def test_every_generator_takes_small_sizes(problem: str) -> None:
    search = searches(problem, next(iter(catalogue.entry(problem).heuristics)))
    for _ in range(5):
        assert search.fresh().problem == problem


def test_no_search_gets_more_time_than_the_hunt_has(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []

    def taken(search: Any, tasks: Any, *, jobs: int) -> Any:
        given.extend(itertools.islice(tasks, 3))
        return iter(())

    monkeypatch.setattr(hunting, "run_tasks", taken)
    with pytest.raises(StudyError, match="no instance could be judged within 2 s"):
        find_worst("aryl.reclaim", last_servers, seed=1, budget=2)
    assert len(given) == 3
    assert all(task.time_limit <= 0.75 * 2 + hunting.GRACE for task in given)


def test_the_end_of_the_time_is_no_failure_of_the_heuristic() -> None:
    instance = Reclaim(hosts=np.array([[False, True]]), gpus=np.array([[0, 1]]), demand=1)

    def hangs(instance: Reclaim) -> ReclaimPlan:
        time.sleep(1e9)
        return last_servers(instance)

    with Asking(Heuristic(hangs), 0) as asking:
        with pytest.raises(hunting.OutOfTimeError):
            judge(instance, asking, until=time.monotonic() + 2)
        with pytest.raises(hunting.OutOfTimeError):
            judge(instance, asking, until=time.monotonic())
        with pytest.raises(hunting.HeuristicFailedError, match="time limit"):
            judge(instance, asking, seconds=2)


def test_shrinking_that_is_cut_keeps_how_far_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    large = Reclaim(hosts=np.array([[False, True, True]]), gpus=np.array([[0, 1, 1]]), demand=1)
    with Asking(Heuristic(last_servers), 0) as asking:
        worst = judge(large, asking)
    assert worst is not None
    judgements = []

    def until_two(instance: Any, asking: Any, **options: Any) -> Any:
        judgements.append(instance)
        if len(judgements) > 1:
            raise hunting.OutOfTimeError
        return replace(worst, instance=instance)

    monkeypatch.setattr(hunting, "judge", until_two)
    small = hunting._shrink(Family("aryl.reclaim"), "ratio", Heuristic(last_servers), 0, 10**9, 5.0, worst, 0.9, 60.0)
    assert small.instance == judgements[0] != large


def test_nothing_proven_is_an_error_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hunting, "judge", lambda *_, **__: None)
    with pytest.raises(StudyError, match=r"of [1-9]\d* tried, none was solved to a proven optimum"):
        find_worst("aryl.reclaim", "server_fraction", seed=1, budget=1)


def test_nothing_to_judge_is_an_error() -> None:
    def broken(instance: Reclaim) -> ReclaimPlan:
        raise RuntimeError("always")

    with pytest.raises(StudyError, match="RuntimeError: always"):
        find_worst("aryl.reclaim", broken, seed=1, budget=1)


def test_a_plan_better_than_the_bound_stops_the_hunt(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = Reclaim(hosts=np.array([[True, False]]), gpus=np.array([[1, 0]]), demand=1)
    honest = formulations.solve(instance)

    def lying(*args: Any, **kwargs: Any) -> Any:
        return replace(honest, bound=1.0, objective=1.0)

    monkeypatch.setattr(formulations, "solve", lying)
    with (
        Asking(Heuristic(server_fraction), 0) as asking,
        pytest.raises(OracleDisagreementError, match="beats the bound"),
    ):
        judge(instance, asking)


@pytest.mark.parametrize(("budget", "keep"), [(0, 0.9), (-1, 0.9), (1, 0), (1, 2)])
def test_bad_arguments(budget: float, keep: float) -> None:
    with pytest.raises(StudyError):
        find_worst("aryl.reclaim", "server_fraction", seed=1, budget=budget, keep=keep)


def test_unknown_names() -> None:
    with pytest.raises(CatalogueError, match=r"aryl\.reclaim"):
        find_worst("aryl.reclam", "server_fraction", seed=1)
    with pytest.raises(CatalogueError, match="server_fraction"):
        find_worst("aryl.reclaim", "server_fractio", seed=1)


@pytest.mark.slow
def test_a_witness_is_an_instance_file(witness: Witness, tmp_path: Path) -> None:
    assert instances.load(witness.save(tmp_path)) == witness.judged.instance


def test_instances_are_drawn_from_the_strategy_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("validation.kinds.hunt.METHODS", (hunting._hypothesis_search,))
    witness = find_worst("aryl.reclaim", last_servers, seed=1, budget=2, strategy=st.just(ONLY))
    assert witness.judged.instance == ONLY


def demands_two(instance: Reclaim) -> bool:
    return instance.demand == 2


@pytest.mark.parametrize("restriction", [{"fix": {"num_servers": 4}}, {"where": demands_two}])
def test_a_hunt_keeps_to_its_family(restriction: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the method, and shrinking too."""
    monkeypatch.setattr(hunting, "RESTART", 6)
    witness = find_worst("aryl.reclaim", last_servers, seed=1, restarts=5, budget=120, jobs=1, **restriction)
    family = Family("aryl.reclaim", **{{"fix": "fixed"}.get(name, name): one for name, one in restriction.items()})
    assert family.has(witness.judged.instance)
    assert witness.judged.gap > 0
    assert not witness.failures


def test_what_instances_do_not_tell_is_kept_by_drawing_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A neighbour would leave the family unnoticed."""
    methods = set()

    def taken(search: Any, tasks: Any, *, jobs: int) -> Any:
        methods.update(task.arguments[0] for task in itertools.islice(tasks, 10))
        return iter(())

    monkeypatch.setattr(hunting, "run_tasks", taken)
    with pytest.raises(StudyError, match="no instance could be judged"):
        find_worst("aryl.reclaim", last_servers, seed=1, budget=60, fix={"locality": 0.5})
    assert methods == {hunting._random_search, hunting._hypothesis_search}


@pytest.mark.parametrize(
    ("restriction", "words"),
    [
        ({"fix": {"demad": 2}}, r"has no 'demad' \(did you mean 'demand'\?\)"),
        ({"measure": "gap"}, "measure: got 'gap', must be ratio or difference"),
        ({"fix": {"jobs_per_server": "many"}}, "generate refuses every num_servers from 2 to 12"),
        ({"where": lambda instance: False}, "none of 1000 instances that generate made belongs"),
    ],
)
def test_a_family_that_cannot_be(restriction: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError, match=words):
        find_worst("aryl.reclaim", last_servers, seed=1, restarts=1, budget=20, jobs=1, **restriction)


@pytest.mark.slow
def test_a_hunt_that_is_interrupted_keeps_what_it_found() -> None:
    found: list[float] = []

    def interrupt(seconds: float, worst: float, evaluated: int) -> None:
        found.append(worst)
        if worst > 0:
            raise KeyboardInterrupt

    witness = find_worst("aryl.reclaim", last_servers, seed=1, budget=60, progress=interrupt)
    assert witness.judged.gap == found[-1] > 0
    assert hunting.INTERRUPTED in witness.failures


def test_an_interruption_before_anything_is_found_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: Any, **kwargs: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("validation.kinds.hunt.run_tasks", interrupted)
    with pytest.raises(KeyboardInterrupt):
        find_worst("aryl.reclaim", "local_search", seed=1, budget=10)


def calls_out(instance: Reclaim) -> ReclaimPlan:
    """Open a socket before it answers."""
    import socket

    socket.socket().close()
    return server_fraction(instance)


@pytest.mark.skipif(not filters(), reason="no filter of system calls stands on this machine")
def test_checks_and_hunts_let_a_heuristic_have_sockets_where_asked() -> None:
    checked = partial(check_heuristic, "aryl.reclaim", calls_out, max_examples=5)
    assert not checked().ok
    assert checked(allow_network=True).ok
    hunted = partial(find_worst, "aryl.reclaim", calls_out, seed=1, budget=20, restarts=1, jobs=1)
    with pytest.raises(HeuristicFailedError, match="PermissionError"):
        hunted()
    assert hunted(allow_network=True).judged.gap >= 0
