"""Plans and bounds of placements that need no search, against the reference's own searches."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import formulations
from formulations.engine.protocol import formulation
from instances.afs.network_packing import NetworkPacking
from instances.base import agree
from validation.catalogue import CATALOGUE
from validation.testing.strategies import strategy

from ..effort import rounds
from ..second_opinion import optimum

SMALL: dict[str, dict[str, Any]] = {
    "afs.gpu_placement": {"num_jobs": 4, "num_machines": 2, "gpus_per_machine": 4},
    "afs.network_packing": {"num_jobs": 6, "num_machines": 3},
    "elasticflow.placement": {"num_servers": 1, "load": 1.0},
}
NO_PLAN = ("synergy.heterogeneous_allocation", "synergy.tuning")
"""Problems whose plans are not had without a search."""


@pytest.mark.parametrize("problem", SMALL)
def test_they_are_on_either_side_of_the_optimum(problem: str) -> None:
    offered = formulation(problem)
    assert offered.trivial is not None
    assert offered.trivial_bound is not None
    met = 0
    for seed in rounds(40):
        instance = CATALOGUE[problem].generate(seed, **SMALL[problem])
        plan, bound, best = offered.trivial(instance), offered.trivial_bound(instance), float(optimum(instance))
        assert instance.violations(plan) == []
        sign = 1 if instance.sense == "min" else -1
        value = instance.objective(plan)
        assert sign * bound <= sign * best + 1e-9, instance.to_dict()
        assert sign * best <= sign * value + 1e-9, instance.to_dict()
        solution = formulations.solve(instance)
        assert solution.status == "optimal"
        assert solution.objective == pytest.approx(best)
        met += value == pytest.approx(bound)
    assert met


@pytest.mark.parametrize("problem", [name for name in CATALOGUE if formulation(name).trivial_bound is not None])
@given(st.data())
@settings(max_examples=10)
def test_no_bound_at_hand_beats_the_optimum(problem: str, data: st.DataObject) -> None:
    instance = data.draw(strategy(problem))
    solution = formulations.solve(instance)
    if solution.status == "optimal":
        bound, best = formulation(problem).trivial_bound(instance), solution.objective
        assert agree(bound, best) or (bound < best if instance.sense == "min" else bound > best)


@pytest.mark.parametrize("problem", [name for name in CATALOGUE if name not in NO_PLAN])
def test_without_time_there_are_a_plan_and_a_bound(problem: str) -> None:
    entry = CATALOGUE[problem]
    solution = formulations.solve(entry.generate(2, **{entry.size: entry.sizes[-1]}), time_limit=1e-6)
    assert solution.plan is not None
    assert math.isfinite(solution.bound)


def test_distances_are_even() -> None:
    rng = np.random.default_rng(0)
    for _ in rounds(20):
        shares = rng.multinomial(16, rng.dirichlet(np.ones(5)))
        instance = NetworkPacking(
            shares=shares, num_machines=2, gpus_per_machine=8, floor_guarantee=bool(rng.integers(2))
        )
        solution = formulations.solve(instance, method="model", verify=False)
        assert solution.objective == optimum(instance)
        assert solution.objective % 2 == solution.bound % 2 == 0


@pytest.mark.parametrize("problem", SMALL)
def test_a_solve_without_time_has_the_plan_at_hand(problem: str) -> None:
    entry = CATALOGUE[problem]
    instance = entry.generate(1, **{entry.size: entry.sizes[-1]})
    plan = formulation(problem).trivial(instance)
    solution = formulations.solve(instance, time_limit=1e-6)
    assert solution.objective == instance.objective(plan)


def test_where_nothing_fits_the_answer_is_still_why() -> None:
    more = NetworkPacking(shares=np.array([9, 9]), num_machines=2, gpus_per_machine=8)
    assert formulations.solve(more).status == "infeasible"
    assert formulation(more.problem).trivial(more).regulated.sum() <= 18
