"""Allocations that every policy of Gavel can be compared with, by hand and against their definitions."""

import importlib
from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import formulations
from heuristics.gavel import sharing as heuristics
from instances.gavel.max_min_fairness import MaxMinFairness, generate, three_jobs
from validation import CATALOGUE
from validation.kernel.asking import ask_here
from validation.testing.strategies import strategy

from ..effort import rounds

INSTANCES = strategy("gavel.max_min_fairness")
ALL = [
    heuristics.isolated,
    heuristics.equal_share,
    heuristics.heterogeneity_agnostic,
    heuristics.matched_packing,
    heuristics.random_packing,
]


def worker_time(instance, plan):
    """Workers times time of each job, over all rows that contain it."""
    time = plan.time_fractions.sum(axis=1)
    for pair, row in zip(instance.pairs.tolist(), time[instance.num_jobs :], strict=True):
        time[pair] += row
    return instance.scale_factors * time[: instance.num_jobs]


def usable_pools(instance):
    """For each job, the pools on which it runs at all, by loops."""
    found = []
    for m in range(instance.num_jobs):
        pools = set()
        for j, pool in enumerate(instance.pools.tolist()):
            if instance.throughputs[m, j] > 0 and instance.scale_factors[m] <= instance.num_workers[pool]:
                pools.add(pool)
        found.append(pools)
    return found


def fair_levels(instance):
    """Max-min fair worker time per weight: levels rise by bisection while every set of pools can serve its jobs.

    Jobs are served if, for every set of pools, those confined to it want no more than it has (Hall's condition).
    """
    usable, scale, weights = usable_pools(instance), instance.scale_factors, instance.weights
    pools = range(len(instance.num_workers))
    sets = [set(s) for s in chain.from_iterable(combinations(pools, size) for size in range(len(pools) + 1))]

    def served(wanted):
        return all(
            sum(w for w, mine in zip(wanted, usable, strict=True) if mine <= allowed)
            <= sum(int(instance.num_workers[p]) for p in allowed) + 1e-10
            for allowed in sets
        )

    received = np.zeros(instance.num_jobs)
    rising = set(range(instance.num_jobs))
    while rising:

        def at(level, rising=frozenset(rising), received=tuple(received)):
            return [min(scale[m], weights[m] * level) if m in rising else received[m] for m in range(len(received))]

        low, high = 0.0, float(max(scale[m] / weights[m] for m in rising))
        if served(at(high)):
            return np.array(at(high))
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if served(at(middle)) else (low, middle)
        received = np.array(at(low))
        stuck = {m for m in rising if not served([*received[:m], received[m] + 1e-7, *received[m + 1 :]])}
        stuck |= {m for m in rising if received[m] >= scale[m] - 1e-9}
        assert stuck & rising
        rising -= stuck
    return received


@settings(max_examples=200)
@given(st.data())
def test_weights_and_pools_of_all_sizes(data):
    """It ends; where a job could run longer, the pools that it can use are full."""
    n, p = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 3))
    decade = data.draw(st.sampled_from([st.floats(-323, 308), st.floats(-323, -307), st.floats(-1, 1)]))
    weights = 10.0 ** np.array(data.draw(st.lists(decade, min_size=n, max_size=n)))
    workers = np.floor(10.0 ** np.array(data.draw(st.lists(st.floats(0, 9), min_size=p, max_size=p))))
    scale_factors = np.array(data.draw(st.lists(st.integers(1, 8), min_size=n, max_size=n)), float)
    usable = np.array(data.draw(st.lists(st.booleans(), min_size=n * p, max_size=n * p))).reshape(n, p)
    usable &= scale_factors[:, None] <= workers
    fractions = heuristics.fair_time(usable, scale_factors, weights, workers)
    load = scale_factors @ fractions
    assert (fractions >= 0).all()
    assert not fractions[~usable].any()
    assert (fractions.sum(axis=1) <= 1 + 1e-9).all()
    assert (load <= workers * (1 + 1e-9)).all()
    # What is moved between pools is told to this much of all workers.
    full = load >= workers - 1e-9 * workers.sum()
    assert all(full[usable[job]].all() for job in np.flatnonzero(fractions.sum(axis=1) < 1 - 1e-9))


def test_what_is_too_small_to_be_moved_alone_is_moved_together():
    """A tiny pool beside huge ones: five jobs are each split over all three by their sizes."""
    usable = np.array([[1, 1, 0], [0, 0, 1], [1, 0, 1], [0, 1, 1], [0, 0, 1], [1, 1, 1]], bool)
    scale_factors = np.array([5.0, 8.0, 6.0, 4.0, 7.0, 6.0])
    workers = np.array([101_632_715.0, 434_483.0, 11.0])
    weights = np.array([1.0, 1e9, 1.0, 1.0, 1.0, 1.0])
    fractions = heuristics.fair_time(usable, scale_factors, weights, workers)
    assert fractions.sum(axis=1) == pytest.approx([1, 1, 1, 1, 3 / 7, 1], abs=1e-4)


@given(INSTANCES)
def test_worker_time_is_max_min_fair(instance):
    plan = heuristics.heterogeneity_agnostic(instance)
    assert instance.violations(plan) == []
    assert worker_time(instance, plan) == pytest.approx(fair_levels(instance), abs=1e-6)


@pytest.mark.parametrize("seed", range(60))
def test_worker_time_is_max_min_fair_where_pools_differ(seed):
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(2, 9)), int(rng.integers(2, 5))
    num_workers = rng.integers(1, 7, p)
    throughputs = (rng.random((n, p)) < 0.5).astype(float)
    throughputs[:, num_workers.argmax()] += throughputs.sum(axis=1) == 0
    scale_factors = np.minimum(rng.integers(1, 4, n), np.where(throughputs > 0, num_workers, 0).max(axis=1))
    instance = MaxMinFairness(
        throughputs=throughputs, num_workers=num_workers, scale_factors=scale_factors, weights=rng.integers(1, 4, n)
    )
    plan = heuristics.heterogeneity_agnostic(instance)
    assert instance.violations(plan) == []
    assert worker_time(instance, plan) == pytest.approx(fair_levels(instance), abs=1e-6)


@given(INSTANCES, st.integers(0, 3))
def test_plans_are_feasible_and_repeat(instance, seed):
    for heuristic in ALL[:-1]:
        assert instance.violations(heuristic(instance)) == []
        assert heuristic(instance) == heuristic(instance)
    packed = heuristics.random_packing(instance, rng=seed)
    assert instance.violations(packed) == []
    assert packed == heuristics.random_packing(instance, rng=np.random.default_rng(seed))


@pytest.mark.parametrize("policy", ["makespan", "fifo", "finish_time_fairness", "total_throughput", "cost"])
def test_any_policy_is_taken(policy):
    instance = importlib.import_module(f"instances.gavel.{policy}").generate(1, num_jobs=12, workers_per_pool=4)
    same = generate(1, num_jobs=12, workers_per_pool=4)
    for heuristic in ALL:
        assert heuristic(instance) == heuristic(same)


def test_three_jobs():
    """Three jobs on two workers: every job runs two thirds of the time, a third on either worker."""
    third = np.full((3, 2), 1 / 3)
    for heuristic in ALL:
        assert heuristic(three_jobs()).time_fractions == pytest.approx(third)


def test_throughputs_do_not_matter():
    instance = generate(3, num_jobs=9, workers_per_pool=4, pair_fraction=0.0)
    rng = np.random.default_rng(0)
    fields = {**instance.to_dict(), "throughputs": rng.uniform(1, 9, (9, 3))}
    for heuristic in ALL:
        assert heuristic(MaxMinFairness.from_dict(fields)) == heuristic(instance)


def test_weights_count():
    instance = MaxMinFairness(throughputs=np.ones((3, 1)), num_workers=[1], weights=[2, 1, 1])
    assert heuristics.heterogeneity_agnostic(instance).time_fractions.ravel() == pytest.approx([0.5, 0.25, 0.25])
    assert heuristics.equal_share(instance).time_fractions.ravel() == pytest.approx([1 / 3] * 3)
    capped = MaxMinFairness(throughputs=np.ones((3, 1)), num_workers=[2], weights=[9, 1, 1])
    assert heuristics.heterogeneity_agnostic(capped).time_fractions.ravel() == pytest.approx([1, 0.5, 0.5])


def test_wide_jobs():
    """Equal worker time gives a job of 4 a quarter of the time of a job of 1; an equal share the same time."""
    instance = MaxMinFairness(throughputs=np.ones((2, 1)), num_workers=[4], scale_factors=[4, 1])
    assert heuristics.heterogeneity_agnostic(instance).time_fractions.ravel() == pytest.approx([0.75, 1])
    assert heuristics.equal_share(instance).time_fractions.ravel() == pytest.approx([0.8, 0.8])
    assert heuristics.isolated(instance).time_fractions.ravel() == pytest.approx([0.5, 1])


def test_narrow_jobs_make_room_for_wide_ones():
    """A job of 4 fits pool 0 only; 4 others, split by size, would take half of it, and go to pool 1 instead."""
    instance = MaxMinFairness(throughputs=np.ones((5, 2)), num_workers=[4, 2], scale_factors=[4, 1, 1, 1, 1])
    plan = heuristics.heterogeneity_agnostic(instance)
    assert instance.violations(plan) == []
    assert worker_time(instance, plan) == pytest.approx([2, 1, 1, 1, 1])
    assert plan.time_fractions[0] == pytest.approx([0.5, 0])
    assert plan.time_fractions[1:].sum(axis=0) == pytest.approx([2, 2])


def test_a_place_without_throughput_is_not_used():
    instance = MaxMinFairness(throughputs=[[0.0, 1.0], [1.0, 1.0]], num_workers=[1, 1])
    for heuristic in ALL[1:]:
        plan = heuristic(instance)
        assert plan.time_fractions[0, 0] == 0
    assert heuristics.heterogeneity_agnostic(instance).time_fractions == pytest.approx(np.array([[0, 1], [1, 0]]))
    assert heuristics.equal_share(instance).time_fractions == pytest.approx(np.array([[0, 2 / 3], [1 / 3, 1 / 3]]))


def test_the_best_placement_is_used():
    instance = MaxMinFairness(throughputs=[[1.0, 2.0], [2.0, 1.0]], num_workers=[2], pools=[0, 0])
    for heuristic in ALL:
        assert heuristic(instance).time_fractions == pytest.approx(np.array([[0, 1], [1, 0]]))


def test_isolated_is_the_instance_s_own():
    instance = generate(2, num_jobs=10, workers_per_pool=4, unconsolidated=True)
    assert heuristics.isolated(instance) == instance.isolated_share()


# --- packing ----------------------------------------------------------------------------------------


def two_jobs(first, second):
    return MaxMinFairness(
        throughputs=[[2.0], [4.0]], num_workers=[1], pairs=[[0, 1]], pair_throughputs=[[[first, second]]]
    )


def test_a_pair_is_kept_where_it_beats_time_slicing():
    packed = heuristics.random_packing(two_jobs(1.5, 2.0))
    assert packed.time_fractions.ravel().tolist() == [0, 0, 1]
    sliced = heuristics.random_packing(two_jobs(1.5, 1.0))
    assert sliced.time_fractions.ravel() == pytest.approx([0.5, 0.5, 0])
    assert heuristics.random_packing(two_jobs(0.0, 4.0)).time_fractions[2, 0] == 0


def test_partners_take_turns_where_packing_does_not_pay():
    instance = MaxMinFairness(
        throughputs=np.full((3, 2), 2.0),
        num_workers=[1, 1],
        pairs=[[0, 1]],
        pair_throughputs=[[[1.5, 1.5], [0.5, 0.5]]],
    )
    plan = heuristics.random_packing(instance)
    assert plan.time_fractions == pytest.approx(np.array([[0, 0.25], [0, 0.25], [0.5, 0.5], [0.5, 0]]))


def test_nobody_is_packed_while_there_are_workers_for_all():
    instance = generate(0, num_jobs=12, pair_fraction=0.8, workers_per_pool=12)
    assert heuristics.random_packing(instance) == heuristics.heterogeneity_agnostic(instance)


def test_a_job_has_one_partner():
    for seed in range(20):
        instance = generate(seed, num_jobs=12, pair_fraction=0.8, workers_per_pool=4)
        plan = heuristics.random_packing(instance, rng=seed)
        used = instance.pairs[plan.time_fractions[12:].sum(axis=1) > 0]
        assert len(np.unique(used)) == used.size
        assert instance.violations(plan) == []


def test_partners_are_random():
    instance = generate(0, num_jobs=12, pair_fraction=0.8, workers_per_pool=2, multi_worker=False)
    assert len({heuristics.random_packing(instance, rng=seed).digest for seed in range(6)}) > 3


def test_without_pairs_packing_is_plain_sharing():
    for seed in range(5):
        instance = generate(seed, num_jobs=12, pair_fraction=0.0, workers_per_pool=4, weighted=True)
        assert heuristics.random_packing(instance, rng=seed) == heuristics.heterogeneity_agnostic(instance)
        assert heuristics.matched_packing(instance) == heuristics.heterogeneity_agnostic(instance)


@pytest.mark.parametrize("problem", [p for p in CATALOGUE if p.startswith("gavel.")])
@pytest.mark.parametrize("place", [0, 1, 3])
def test_a_pool_without_types_is_of_no_use_and_no_harm(problem, place):
    """Its workers count in the equal share, and nobody can use them."""
    entry = CATALOGUE[problem]
    fields = entry.generate(place, num_jobs=4).to_dict()
    fields["num_workers"].insert(place, 3)
    fields["pools"] = [pool + (pool >= place) for pool in fields["pools"]]
    instance = type(entry.generate(0)).from_dict(fields)
    solution = formulations.solve(instance)
    assert solution.status == "optimal"
    other = formulations.solve(instance, solver="scip")
    assert other.objective == pytest.approx(solution.objective, rel=1e-5)
    for heuristic in entry.heuristics.values():
        plan = ask_here(instance, heuristic, np.random.default_rng(0)).plan
        assert heuristic.declines if plan is None else not instance.violations(plan) or heuristic.infeasible_because


# --- packing by matching ----------------------------------------------------------------------------


def gained(instance, pair):
    """Workers that a pair holds times the mean, over all workers, of a + b - 1 where that is positive; by loops."""
    a, b = instance.pairs[pair].tolist()
    width, total = int(instance.scale_factors[a]), 0.0
    for pool, workers in enumerate(instance.num_workers.tolist()):
        best = 0.0
        for kind in range(instance.num_types):
            alone, together = instance.throughputs[[a, b], kind], instance.pair_throughputs[pair, kind]
            if instance.pools[kind] == pool and width <= workers and (alone > 0).all() and (together > 0).all():
                best = max(best, float((together / alone).sum()) - 1)
        total += workers * best
    return width * total / int(instance.num_workers.sum())


def best_partners(instance):
    """The greatest total gain of pairs without a common job, over all sets of pairs."""
    worth = [gained(instance, pair) for pair in range(instance.num_pairs)]

    def best(pair, busy):
        if pair == len(worth):
            return 0.0
        jobs = set(instance.pairs[pair].tolist())
        packed = worth[pair] + best(pair + 1, busy | jobs) if not jobs & busy else 0.0
        return max(packed, best(pair + 1, busy))

    return best(0, frozenset())


@pytest.mark.parametrize("first", rounds(100)[::100])
def test_matched_partners_gain_most(first):
    """One worker for each type, so that workers are short whatever is packed."""
    packed = 0
    for seed in range(first, first + 100):
        instance = generate(seed, num_jobs=7, num_types=2, workers_per_pool=1, pair_fraction=0.7)
        assert heuristics.packing_worth(instance) == pytest.approx(
            [gained(instance, q) for q in range(instance.num_pairs)]
        )
        plan = heuristics.matched_packing(instance)
        assert instance.violations(plan) == []
        used = np.flatnonzero(plan.time_fractions[instance.num_jobs :].sum(axis=1) > 0)
        assert len(np.unique(instance.pairs[used])) == 2 * len(used)
        assert sum(gained(instance, q) for q in used) == pytest.approx(best_partners(instance))
        packed += len(used)
    assert packed > 100


def test_a_matching_looks_beyond_the_best_pair():
    """Four jobs in a row: the middle pair gains 0.8, the outer ones 0.5 each."""
    instance = MaxMinFairness(
        throughputs=np.ones((4, 1)),
        num_workers=[1],
        pairs=[[0, 1], [1, 2], [2, 3]],
        pair_throughputs=[[[0.75, 0.75]], [[0.9, 0.9]], [[0.75, 0.75]]],
    )
    assert heuristics.packing_worth(instance) == pytest.approx([0.5, 0.8, 0.5])
    plan = heuristics.matched_packing(instance)
    assert plan.time_fractions.ravel() == pytest.approx([0, 0, 0, 0, 0.5, 0, 0.5])


def test_only_as_many_are_packed_as_workers_are_short():
    """Five jobs on four workers: one pair makes room for all, and it is the one that gains most."""
    instance = MaxMinFairness(
        throughputs=np.ones((5, 1)),
        num_workers=[4],
        pairs=[[0, 1], [2, 3]],
        pair_throughputs=[[[0.7, 0.7]], [[0.8, 0.8]]],
    )
    plan = heuristics.matched_packing(instance)
    assert plan.time_fractions.ravel() == pytest.approx([1, 1, 0, 0, 1, 0, 1])


def test_matched_packing_on_average_beats_random_partners():
    values = []
    for seed in range(20):
        instance = generate(seed, num_jobs=16, workers_per_pool=2, pair_fraction=1.0)
        values.append(
            [instance.objective(h(instance)) for h in (heuristics.matched_packing, heuristics.random_packing)]
        )
    matched, random = np.mean(values, axis=0)
    assert matched > random
