"""Hunts find what is known to be there, and what they find can be replayed."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import formulations
import instances
from heuristics.aryl.reclaim import server_fraction
from instances.aryl.reclaim import Reclaim, ReclaimPlan
from validation import StudyError, find_worst
from validation.catalogue import CatalogueError, Heuristic
from validation.testing import hunt as hunting
from validation.testing.hunt import OracleDisagreementError, judge


def last_servers(instance: Reclaim) -> ReclaimPlan:
    return ReclaimPlan(servers=np.arange(instance.num_servers - instance.demand, instance.num_servers))


def test_a_bad_heuristic_is_caught_and_its_instance_shrunk(tmp_path: Path) -> None:
    """Taking the last servers can preempt a job where none has to be: one job, two servers."""
    witness = find_worst("aryl.reclaim", last_servers, seed=1, budget=4)
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


def test_an_infinite_gap_is_null_in_json() -> None:
    witness = find_worst("aryl.reclaim", last_servers, seed=2, budget=2)
    assert witness.to_dict()["gap"] is None


def test_a_heuristic_that_crashes_does_not_stop_the_hunt() -> None:
    def fragile(instance: Reclaim) -> ReclaimPlan:
        if instance.demand == 3:
            raise RuntimeError("three")
        return last_servers(instance)

    witness = find_worst("aryl.reclaim", fragile, seed=1, budget=4)
    assert witness.judged.gap > 0


def test_nothing_to_judge_is_an_error() -> None:
    def broken(instance: Reclaim) -> ReclaimPlan:
        raise RuntimeError("always")

    with pytest.raises(StudyError, match="RuntimeError: always"):
        find_worst("aryl.reclaim", broken, seed=1, budget=1)


def test_a_plan_better_than_the_bound_stops_the_hunt(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = Reclaim(hosts=np.array([[True, False]]), gpus=np.array([[1, 0]]), demand=1)
    honest = formulations.solve(instance)

    def lying(*args: Any, **kwargs: Any) -> Any:
        from dataclasses import replace

        return replace(honest, bound=1.0, objective=1.0)

    monkeypatch.setattr(formulations, "solve", lying)
    with pytest.raises(OracleDisagreementError, match="beats the bound"):
        judge(instance, Heuristic(server_fraction))


@pytest.mark.parametrize(("budget", "keep"), [(0, 0.9), (-1, 0.9), (1, 0), (1, 2)])
def test_bad_arguments(budget: float, keep: float) -> None:
    with pytest.raises(StudyError):
        find_worst("aryl.reclaim", "server_fraction", seed=1, budget=budget, keep=keep)


def test_unknown_names() -> None:
    with pytest.raises(CatalogueError, match=r"aryl\.reclaim"):
        find_worst("aryl.reclam", "server_fraction", seed=1)
    with pytest.raises(CatalogueError, match="server_fraction"):
        find_worst("aryl.reclaim", "server_fractio", seed=1)


def test_a_witness_is_an_instance_file(tmp_path: Path) -> None:
    witness = find_worst("aryl.reclaim", last_servers, seed=1, budget=2)
    assert instances.load(witness.save(tmp_path)) == witness.judged.instance


def test_instances_are_drawn_from_the_strategy_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("validation.testing.hunt.METHODS", (hunting._hypothesis_search,))
    only = Reclaim(hosts=np.array([[False, True]]), gpus=np.array([[0, 1]]), demand=1)
    witness = find_worst("aryl.reclaim", last_servers, seed=1, budget=2, strategy=st.just(only))
    assert witness.judged.instance == only


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
