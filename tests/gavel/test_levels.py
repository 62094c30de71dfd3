"""Allocations by the interior-point method: what they attain, and what their prices prove."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import formulations
from formulations.methods.water_filling import water_filling
from heuristics.gavel import finish_time_fairness, hierarchical_fairness, levels, makespan, max_min_fairness
from heuristics.gavel.levels import EPSILON, GROUP, Levels, _inverse, _joined
from instances.gavel.finish_time_fairness import generate as ratios
from instances.gavel.finish_time_fairness import late_job
from instances.gavel.hierarchical_fairness import generate as entities
from instances.gavel.makespan import Makespan
from instances.gavel.makespan import generate as batch
from instances.gavel.max_min_fairness import MaxMinFairness, generate
from validation.testing.strategies import strategy

from ..effort import rounds
from ..second_opinion import optimum

FOUR = (max_min_fairness, makespan, finish_time_fairness, hierarchical_fairness)


def alone(instance):
    return replace(instance, pairs=np.zeros((0, 2), np.int64), pair_throughputs=np.zeros((0, instance.num_types, 2)))


@pytest.mark.parametrize("seed", range(12))
def test_as_close_as_is_asked(brute, seed):
    fields = brute.draw(seed)
    instance = MaxMinFairness(**fields)
    value, best = instance.objective(max_min_fairness.interior_point(instance)), optimum(instance)
    assert (1 - EPSILON) * best <= value <= best * (1 + 1e-9)
    instance = Makespan(**fields, steps=np.arange(1.0, len(fields["throughputs"]) + 1))
    value, best = instance.objective(makespan.interior_point(instance)), optimum(instance)
    assert best * (1 - 1e-9) <= value <= best / (1 - EPSILON)


@pytest.mark.parametrize("epsilon", [1e-2, 1e-4, 1e-5])
def test_as_close_as_one_likes(epsilon):
    for instance in (generate(1, num_jobs=12), generate(2, num_jobs=40, pair_fraction=0.0)):
        value = instance.objective(max_min_fairness.interior_point(instance, epsilon=epsilon))
        assert value >= (1 - epsilon) * formulations.solve(instance).objective


def test_rounding_does_not_end_the_search():
    """All pairs of six jobs on two types: of all that is best, much is so at once, and slacks soon lie far apart."""
    instance = Makespan(
        throughputs=[[2, 2], [4, 0.5], [4, 2], [4, 2], [2.25, 2], [2, 2]],
        num_workers=[8, 8],
        pools=[0, 0],
        pairs=[[one, other] for one in range(6) for other in range(one + 1, 6)],
        pair_throughputs=[
            [[4, 3.75], [1.25, 4]], [[2, 2], [1.25, 0.75]], [[2, 0], [2, 4]], [[1, 1.25], [2, 1.75]],
            [[2, 2], [1.25, 2]], [[2, 4], [2, 3]], [[1.5, 2], [3, 3]], [[1, 0.25], [0.75, 1.5]], [[2, 3], [2, 2]],
            [[1.25, 2], [4, 0.75]], [[2, 2], [0.75, 4]], [[4, 2], [2.75, 1]], [[4, 3.5], [0.5, 4]],
            [[4, 0], [4, 2.5]], [[2, 2], [4, 0]],
        ],
        steps=[16, 15, 5, 16, 8, 8],
    )  # fmt: skip
    best = formulations.solve(instance).objective
    assert best == pytest.approx(4)
    for epsilon in (EPSILON, 1e-4, 1e-5):
        assert instance.objective(makespan.interior_point(instance, epsilon=epsilon)) <= best / (1 - epsilon)


@given(strategy("gavel.max_min_fairness"))
@settings(max_examples=len(rounds(20)))
def test_prices_limit_every_allocation(instance):
    demand = np.where(instance.fastest_throughputs > 0, instance.fastest_throughputs * instance.weights, 0.0)
    found = Levels(instance).attain(demand)
    received = instance.throughput(found.allocation)
    assert instance.violations(found.allocation) == []
    assert (received >= demand * found.multiple * (1 - 1e-9)).all()
    others = [found.allocation, instance.isolated_share(), formulations.solve(instance).plan]
    # Each job all the time where it is fastest, and nobody else.
    usable = np.where(instance.fits, np.concatenate([instance.throughputs, instance.pair_throughputs.sum(axis=2)]), 0.0)
    for row, kind in enumerate(usable.argmax(axis=1)):
        if usable[row, kind] > 0:
            x = np.zeros_like(usable)
            x[row, kind] = 1.0
            others.append(type(found.allocation)(time_fractions=x))
    for other in others:
        assert found.prices @ instance.throughput(other) <= found.limit * (1 + 1e-9)
    # And the limit is no further than what was asked for.
    assert found.prices @ received >= (1 - 10 * EPSILON) * found.limit


@pytest.mark.parametrize("seed", [0, 1])
def test_pairs_within_groups_are_worth_most_of_all_pairs(seed):
    instance = generate(seed, num_jobs=48)
    shared = Levels(instance)
    found = shared.attain(1 / instance.level_per_throughput).allocation
    assert np.bincount(shared._group).max() <= GROUP
    pairs = found.time_fractions[instance.num_jobs :].any(axis=1)
    assert (shared._group[instance.pairs[pairs, 0]] == shared._group[instance.pairs[pairs, 1]]).all()
    best, without = formulations.solve(instance).objective, formulations.solve(alone(instance)).objective
    value = instance.objective(found)
    assert value >= (1 - EPSILON) * without
    assert value - without > 0.9 * (best - without)


def test_an_irrational_ratio():
    value = late_job().objective(finish_time_fairness.interior_point(late_job()))
    assert (3 + 5**0.5) / 4 <= value <= (3 + 5**0.5) / 4 * (1 + 2 * EPSILON)


@pytest.mark.parametrize("options", [{"num_jobs": 12}, {"num_jobs": 40, "pair_fraction": 0.0}])
def test_ratios_are_close_to_the_least(options):
    for seed in range(3):
        instance = ratios(seed, **options)
        value = instance.objective(finish_time_fairness.interior_point(instance))
        assert value <= formulations.solve(instance).objective * (1 + 3 * EPSILON)
        assert value <= instance.objective(finish_time_fairness.same_ratio(instance))


@pytest.mark.parametrize("options", [{"num_jobs": 8}, {"num_jobs": 16, "workers_per_pool": 4}])
def test_all_levels_are_close_to_those_of_water_filling(options):
    for seed in range(3):
        instance = entities(seed, **options)
        plan = hierarchical_fairness.interior_point(instance)
        vector = water_filling(instance).vector
        assert plan.normalized_throughputs == pytest.approx(vector, rel=0.02, abs=0.02 * float(vector.max()))


def test_without_demand_there_is_a_plan():
    instance = replace(batch(0, num_jobs=3), steps=np.zeros(3))
    assert instance.objective(makespan.interior_point(instance)) == 0
    instance = MaxMinFairness(throughputs=np.array([[0.0], [1.0]]), num_workers=np.array([1]))
    assert instance.objective(max_min_fairness.interior_point(instance)) == 0


def test_weights_far_apart():
    instance = MaxMinFairness(throughputs=np.ones((2, 1)), num_workers=np.array([1]), weights=np.array([1e-300, 1.0]))
    value = instance.objective(max_min_fairness.interior_point(instance))
    # The other needs next to none of the time for as much.
    assert 1 - EPSILON <= value <= 1


def test_steps_that_fail_leave_a_plan(monkeypatch):
    def singular(blocks):
        raise np.linalg.LinAlgError

    instance = generate(0, num_jobs=8)
    monkeypatch.setattr(levels.np.linalg, "inv", singular)
    plan = max_min_fairness.interior_point(instance)
    assert instance.violations(plan) == []
    assert instance.objective(plan) >= instance.objective(max_min_fairness.isolated(instance))


@pytest.mark.parametrize("policy", FOUR)
def test_an_epsilon_out_of_range_is_refused(policy):
    instance = {"max_min_fairness": generate, "makespan": batch, "finish_time_fairness": ratios}.get(
        policy.__name__.rsplit(".", 1)[1], entities
    )(0, num_jobs=3)
    for epsilon in (1e-6, 0.1, float("nan")):
        with pytest.raises(ValueError, match=r"^epsilon: got"):
            policy.interior_point(instance, epsilon=epsilon)


@pytest.mark.parametrize("side", [2, 4, 10, 32])
def test_blocks_are_inverted(side):
    rng = np.random.default_rng(side)
    some = rng.normal(size=(5, side, side + 3))
    blocks = some @ some.transpose(0, 2, 1)
    assert np.allclose(_inverse(blocks) @ blocks, np.eye(side), atol=1e-6)


@given(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=14))
def test_sets_are_those_that_pairs_join(pairs):
    first, second = np.array(pairs, np.int64).reshape(-1, 2).T
    graph = nx.Graph(pairs)
    graph.add_nodes_from(range(12))
    least = np.empty(12, np.int64)
    for some in nx.connected_components(graph):
        least[list(some)] = min(some)
    assert _joined(12, first, second).tolist() == least.tolist()


def test_a_program_begins_on_the_way_to_the_optimum_before():
    """Whatever was asked before, an allocation is as close to the limit as is asked for."""
    instance = generate(3, num_jobs=48)
    demand = 1 / instance.level_per_throughput
    shared = Levels(instance)
    for asked in (demand, demand * np.linspace(1, 2, 48), np.where(np.arange(48) % 3, demand, 0.0), demand):
        found = shared.attain(asked, EPSILON)
        received = instance.throughput(found.allocation)
        asks = asked > 0
        assert (received[asks] / asked[asks]).min() >= found.multiple * (1 - 1e-9)
        assert found.prices @ received >= (1 - 10 * EPSILON) * found.limit
    assert shared._begun is not None
