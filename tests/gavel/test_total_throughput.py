"""gavel.total_throughput against the corners of the set of allocations."""

import numpy as np
import pytest
from hypothesis import given

import formulations
from heuristics.gavel.total_throughput import fastest_first
from instances import InstanceError
from instances.gavel.sharing import Allocation
from instances.gavel.total_throughput import TotalThroughput, generate, three_jobs
from validation.strategies import strategy


@pytest.mark.parametrize("first", range(0, 300, 100))
def test_optimum_equals_brute_force(brute, first):
    for seed in range(first, first + 100):
        instance = TotalThroughput(**brute.draw(seed))
        solution = formulations.solve(instance)
        assert solution.status == "optimal"
        best = brute.best_linear(instance, brute.received(instance).sum(axis=0))
        assert solution.objective == pytest.approx(best, rel=1e-8)
        assert instance.violations(solution.plan) == []


def test_three_jobs():
    assert formulations.solve(three_jobs()).objective == pytest.approx(5)


def test_maximised_although_the_paper_prints_minimize():
    """As printed, giving nobody anything would be optimal."""
    nothing = Allocation(time_fractions=np.zeros((3, 2)))
    assert three_jobs().violations(nothing) == []
    assert three_jobs().objective(nothing) == 0
    assert three_jobs().sense == "max"


def test_pairs_add_both_partners():
    instance = TotalThroughput(
        throughputs=[[2.0], [3.0]], num_workers=[1], pairs=[[0, 1]], pair_throughputs=[[[1.75, 1.5]]]
    )
    assert formulations.solve(instance).objective == pytest.approx(3.25)


@given(strategy("gavel.total_throughput"))
def test_fastest_first_is_feasible_and_at_most_the_optimum(instance):
    plan = fastest_first(instance)
    assert instance.violations(plan) == []
    assert instance.objective(plan) <= formulations.solve(instance).bound * (1 + 1e-9)


def test_fastest_first_has_half_of_the_optimum_of_a_matching():
    for seed in range(40):
        instance = generate(seed, num_jobs=8, multi_worker=False, pair_fraction=0.0, workers_per_pool=1 + seed % 3)
        assert instance.objective(fastest_first(instance)) >= formulations.solve(instance).objective / 2


def test_fastest_first_can_lose_nearly_half():
    """Taking the greatest first, 1.01, leaves the other job nothing, where the two 1's are worth 2."""
    instance = TotalThroughput(throughputs=[[1.01, 1.0], [1.0, 0.0]], num_workers=[1, 1])
    assert instance.objective(fastest_first(instance)) == pytest.approx(1.01)
    assert formulations.solve(instance).objective == pytest.approx(2)


def test_bad_pair_throughputs():
    with pytest.raises(InstanceError, match=r"TotalThroughput\.pair_throughputs"):
        TotalThroughput(throughputs=[[1.0]] * 2, num_workers=[1], pairs=[[0, 1]], pair_throughputs=[[[1.0]]])
