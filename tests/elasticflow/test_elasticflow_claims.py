"""What judges ElasticFlow's claims: the enumeration of plans, of sets of jobs, and of clusters."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

import formulations
from heuristics.elasticflow.minimum_satisfactory_share import progressive_filling
from instances.elasticflow.allocation import ElasticFlowAllocation, two_idle_gpus
from instances.elasticflow.minimum_satisfactory_share import MinimumSatisfactoryShare, turned_away
from validation.claims.elasticflow import allocation, minimum_satisfactory_share, placement
from validation.claims.elasticflow.sharing import least_gpu_time, speeds_up


def every(step: int, stream: Any, number: int) -> list[Any]:
    """So many instances of a stream, ``step`` apart."""
    found = list(itertools.islice(stream, 0, number * step, step))
    assert len(found) == number
    return found


def least(instance: Any) -> float | None:
    solution = formulations.solve(instance)
    assert solution.status in ("optimal", "infeasible")
    return solution.objective


def test_the_least_gpu_time_is_the_optimum() -> None:
    sets = every(140, minimum_satisfactory_share._concave(2, 3), 35)
    found = [least_gpu_time(instance) for instance in sets]
    assert found == [least(instance) for instance in sets]
    assert None in found
    assert least_gpu_time(turned_away()) == least(turned_away())


def test_the_least_gpu_time_with_useful_gpus_is_the_optimum() -> None:
    sets = every(140, allocation._allocations(2, 3), 35)
    found = [least_gpu_time(instance, useful=True) for instance in sets]
    assert found == [least(instance) for instance in sets]
    plain = [least_gpu_time(instance) for instance in sets]
    assert any(one != other for one, other in zip(found, plain, strict=True))


def has_fractional_plan(instance: MinimumSatisfactoryShare) -> bool:
    """Whether GPU-slots of any fraction do all the work of jobs of linear curves, by a linear program."""
    model = pyo.ConcreteModel()
    places = [(job, slot) for job, deadline in enumerate(instance.deadlines.tolist()) for slot in range(deadline)]
    model.gpus = pyo.Var(places, domain=pyo.NonNegativeReals)
    model.rules = pyo.ConstraintList()
    for job, (need, rate) in enumerate(zip(instance.iterations, instance.throughputs[:, 1], strict=True)):
        held = sum(model.gpus[place] for place in places if place[0] == job)
        model.rules.add(float(rate) * held >= float(need))
    for slot in range(instance.horizon):
        held = sum(model.gpus[place] for place in places if place[1] == slot)
        model.rules.add(held <= instance.num_gpus)
    model.used = pyo.Objective(expr=pyo.quicksum(model.gpus.values()))
    found = pyo.SolverFactory("appsi_highs").solve(model, load_solutions=False)
    return bool(found.solver.termination_condition == pyo.TerminationCondition.optimal)


def test_parts_of_gpus_are_as_good_as_fractions() -> None:
    sets = every(13, minimum_satisfactory_share._linear(2, 2, 3), 65)
    found = []
    for instance in sets:
        parts = math.lcm(*instance.throughputs[:, 1].astype(int).tolist())
        found.append(least_gpu_time(instance, parts=parts) is not None)
    assert found == [has_fractional_plan(instance) for instance in sets]
    assert len(set(found)) == 2


def test_the_condition_counts_exactly() -> None:
    # Three thirds are a whole GPU-slot.
    thirds = MinimumSatisfactoryShare(
        num_gpus=1, iterations=np.ones(3), deadlines=np.ones(3, int), throughputs=np.tile([0.0, 3.0], (3, 1))
    )
    assert minimum_satisfactory_share._condition(thirds)
    assert not minimum_satisfactory_share._condition(thirds, rounded=True)


def test_sets_of_jobs_are_all_there_once() -> None:
    listed = list(minimum_satisfactory_share._concave(1, 2, 2))
    kinds = {
        (instance.num_gpus, *instance.iterations, *instance.deadlines, *instance.throughputs[0]) for instance in listed
    }
    assert len(kinds) == len(listed)
    assert all(instance.concave for instance in listed)
    one_gpu = sum(deadline * rate for deadline in (1, 2) for rate in (1, 2))
    curves = [(1, 1), (1, 2), (2, 2), (2, 3), (2, 4)]
    two_gpus = sum(deadline * most for deadline in (1, 2) for _, most in curves)
    assert len(listed) == one_gpu + two_gpus


def test_trimmed_filling_is_algorithm_1_with_less_in_the_last_slot() -> None:
    trimmed = 0
    for instance in every(1, minimum_satisfactory_share._concave(1, 4, 3), 600):
        printed, plan = progressive_filling(instance), minimum_satisfactory_share._trimmed(instance)
        assert printed is not None
        assert plan is not None
        assert not instance.violations(plan)
        differs = np.flatnonzero(printed.gpus != plan.gpus)
        assert set(differs) <= {np.flatnonzero(printed.gpus)[0]}
        assert (plan.gpus <= printed.gpus).all()
        trimmed += len(differs)
    assert trimmed


def test_useful_gpus_are_those_of_the_instance() -> None:
    instance = two_idle_gpus()
    curves = instance.throughputs.astype(int).tolist()
    doubled = ElasticFlowAllocation(
        num_gpus=4,
        iterations=instance.iterations,
        deadlines=instance.deadlines,
        throughputs=2 * instance.throughputs,
    )
    curves = doubled.throughputs.astype(int).tolist()
    for gpus in itertools.product(range(5), repeat=2):
        faster = doubled.faster_now(np.array([[each, 0] for each in gpus])).any()
        assert speeds_up(curves, gpus) == faster


@pytest.mark.parametrize(("num_gpus", "layouts"), [(1, 2), (2, 5), (3, 10), (4, 26), (8, 677)])
def test_layouts_are_all_there_once(num_gpus: int, layouts: int) -> None:
    # Of 2 s GPUs: one block, or anything on the one and on the other half.
    found = list(placement._layouts(num_gpus))
    assert len(found) == len(set(found)) == layouts
    for blocks in found:
        held = [gpu for offset, size in blocks for gpu in range(offset, offset + size)]
        assert len(held) == len(set(held))
        assert all(offset % size == 0 and offset + size <= num_gpus for offset, size in blocks)


def test_sizes_are_all_there_once() -> None:
    assert sorted(placement._sizes(3)) == [(1,), (1, 1), (1, 1, 1), (2,), (2, 1)]
    assert not list(placement._sizes(0))


def test_fitting_on_servers() -> None:
    assert placement._fit((2, 2, 1, 1), (3, 3))
    assert not placement._fit((2, 2, 2), (3, 3))
