"""The heuristics' plans that searches begin with."""

from dataclasses import replace

import pytest

import formulations
from formulations.engine import clock
from formulations.methods.beginning import BEGINNINGS, plan_of_heuristic
from instances.base import Instance
from validation.catalogue import CATALOGUE

SETTINGS = {
    "afs.elastic_sharing": {"num_jobs": 16, "num_gpus": 16},
    "afs.gpu_placement": {"num_jobs": 60},
    "aryl.base_allocation": {"num_jobs": 40, "capacity": 32},
    "aryl.reclaim": {"num_servers": 110, "demand": 30},
    "elasticflow.best_effort": {"num_jobs": 20, "num_gpus": 40, "tightness": 0.15},
    "elasticflow.placement": {"num_servers": 16},
    "gavel.finish_time_fairness": {"num_jobs": 520},
    "gavel.round_assignment": {"num_jobs": 210},
    "sia.goodput": {"num_jobs": 220},
    "synergy.placement": {"num_servers": 30},
    "prism.placement": {"num_jobs": 20, "num_gpus": 9},
    "eplb.placement": {"num_experts": 8},
}


def drawn(problem: str) -> Instance:
    return CATALOGUE[problem].generate(3, **SETTINGS[problem])


def test_each_has_its_settings() -> None:
    assert SETTINGS.keys() == BEGINNINGS.keys()


@pytest.mark.parametrize("problem", BEGINNINGS)
def test_a_search_that_ends_at_once_is_no_worse_than_the_heuristic(problem: str) -> None:
    instance = drawn(problem)
    heuristic = CATALOGUE[problem].heuristics[BEGINNINGS[problem].heuristic].function
    value = instance.objective(heuristic(instance))
    # Where a gap of that size is met before the heuristic is asked, the search goes on.
    gap = 0.0 if problem == "afs.elastic_sharing" else 0.9
    solution = formulations.solve(instance, mip_gap=gap, verify=False)
    assert solution.objective is not None
    assert solution.objective <= value if instance.sense == "min" else solution.objective >= value


@pytest.mark.parametrize("problem", BEGINNINGS)
def test_it_is_asked_within_its_sizes_and_where_there_is_time(problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    instance, known = drawn(problem), BEGINNINGS[problem]
    assert plan_of_heuristic(instance) is not None
    size = instance.dims[known.size]
    for other in (replace(known, least=size + 1), replace(known, most=size - 1)):
        monkeypatch.setitem(BEGINNINGS, problem, other)
        assert plan_of_heuristic(instance) is None
    monkeypatch.setitem(BEGINNINGS, problem, known)
    with clock.within(0.0):
        assert plan_of_heuristic(instance) is None
