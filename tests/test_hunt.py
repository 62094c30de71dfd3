"""Hunts find what is known to be there, and what they find can be replayed."""

import itertools
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import formulations
import instances
from heuristics.aryl.reclaim import server_fraction
from instances.aryl.reclaim import Reclaim, ReclaimPlan
from instances.aryl.two_job import generate as generate_two
from validation import StudyError, catalogue, find_worst
from validation.catalogue import CatalogueError, Heuristic
from validation.study.cells import Asking
from validation.testing import hunt as hunting
from validation.testing.hunt import OracleDisagreementError, Witness, judge


def last_servers(instance: Reclaim) -> ReclaimPlan:
    return ReclaimPlan(servers=np.arange(instance.num_servers - instance.demand, instance.num_servers))


@pytest.fixture(scope="module")
def witness() -> Witness:
    return find_worst("aryl.reclaim", last_servers, seed=1, budget=12)


@pytest.mark.slow
def test_a_bad_heuristic_is_caught_and_its_instance_shrunk(witness: Witness, tmp_path: Path) -> None:
    """Taking the last servers can preempt a job where none has to be: one job, two servers."""
    assert witness.worst_gap == np.inf
    smallest = witness.judged.instance
    assert isinstance(smallest, Reclaim)
    assert smallest.hosts.tolist() == [[False, True]]
    path = witness.save(tmp_path)
    told = json.loads(path.read_text(encoding="utf-8"))
    replayed = instances.read(told["instance"])
    assert replayed.objective(last_servers(replayed)) == told["value"]  # type: ignore[arg-type]
    assert formulations.solve(replayed).objective == told["optimum"]
    page = path.with_suffix(".html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert "last_servers" in page


def test_an_infinite_gap_is_null_in_json(witness: Witness) -> None:
    assert witness.to_dict()["gap"] is None


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
    search = hunting._Search("aryl.reclaim", asking, 0, st.just(only), 0, 3.0)
    monkeypatch.setattr(hunting, "judge", disagree)
    with pytest.raises(OracleDisagreementError):
        hunting._hypothesis_search(search, None)


def searches(problem: str, heuristic: str) -> hunting._Search:
    asking = Asking(catalogue.heuristic(problem, heuristic)[1], 0)
    return hunting._Search(problem, asking, 0, st.nothing(), 0, 1.0)


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
    small = hunting._shrink(Heuristic(last_servers), 0, 10**9, 5.0, worst, 0.9, 60.0)
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


def test_a_witness_is_an_instance_file(witness: Witness, tmp_path: Path) -> None:
    assert instances.load(witness.save(tmp_path)) == witness.judged.instance


def test_instances_are_drawn_from_the_strategy_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("validation.testing.hunt.METHODS", (hunting._hypothesis_search,))
    only = Reclaim(hosts=np.array([[False, True]]), gpus=np.array([[0, 1]]), demand=1)
    witness = find_worst("aryl.reclaim", last_servers, seed=1, budget=2, strategy=st.just(only))
    assert witness.judged.instance == only


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

    monkeypatch.setattr("validation.testing.hunt.run_tasks", interrupted)
    with pytest.raises(KeyboardInterrupt):
        find_worst("aryl.reclaim", "local_search", seed=1, budget=10)
