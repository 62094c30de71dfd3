"""Worst cases of Algorithm 1 against enumeration, and families behind them."""

from itertools import product

import numpy as np
import pytest

import formulations
from formulations.worst_case.elasticflow.minimum_satisfactory_share import read, turned_away
from heuristics.elasticflow.allocation import greedy_marginal_return
from heuristics.elasticflow.minimum_satisfactory_share import progressive_filling
from instances.elasticflow.allocation import ElasticFlowAllocation
from instances.elasticflow.minimum_satisfactory_share import MinimumSatisfactoryShare
from validation import worst_case

PROBLEM = "elasticflow.minimum_satisfactory_share"
FLAT, LINEAR = [0, 1, 1], [0, 1, 2]
CURVES = [FLAT, LINEAR, [0, 2, 3], [0, 5, 6]]


def jobs(kinds, num_gpus=2):
    """Jobs by (curve, iterations, deadline)."""
    curves, iterations, deadlines = zip(*kinds, strict=True)
    return MinimumSatisfactoryShare(
        num_gpus=num_gpus,
        iterations=np.array(iterations, float),
        deadlines=np.array(deadlines),
        throughputs=np.array(curves, float),
    )


def least_gpu_slots(kinds, num_slots):
    """The fewest GPU-slots of two GPUs for all jobs, by every way to share each slot; None if there is none."""
    states = {tuple(work for _, work, _ in kinds): 0}
    shares = [given for given in product(range(3), repeat=len(kinds)) if sum(given) <= 2]
    for slot in range(num_slots):
        after = {}
        for left, used in states.items():
            for given in shares:
                if any(gpus and slot >= deadline for gpus, (_, _, deadline) in zip(given, kinds, strict=True)):
                    continue
                rest = tuple(
                    max(0, work - curve[gpus]) for work, gpus, (curve, _, _) in zip(left, given, kinds, strict=True)
                )
                total = used + sum(given)
                after[rest] = min(after.get(rest, total), total)
        states = after
    return states.get((0,) * len(kinds))


def test_two_jobs_are_served_with_the_least_gpu_time():
    kinds = [
        (curve, work, d) for d in (1, 2) for curve in CURVES for work in range(1, 2 * curve[2] + 1, 1 + curve[1] // 2)
    ]
    for two in product(kinds, repeat=2):
        plan, best = progressive_filling(jobs(two)), least_gpu_slots(two, 2)
        assert (plan is None) == (best is None)
        assert plan is None or plan.gpus.sum() == best
    assert worst_case(PROBLEM, "progressive_filling", size=2, num_jobs=2).value == 1
    assert formulations.solve(turned_away(num_jobs=2, num_slots=3, num_gpus=2)).objective == pytest.approx(0, abs=1e-6)


def test_three_jobs_in_two_slots_are_served_with_the_least_gpu_time_or_turned_away():
    kinds = [
        (curve, work, d) for d in (1, 2) for curve in (FLAT, LINEAR, [0, 2, 3]) for work in range(1, 2 * curve[2] + 1)
    ]
    rng = np.random.default_rng(1)
    rejected = 0
    for _ in range(1500):
        three = sorted((kinds[i] for i in rng.integers(len(kinds), size=3)), key=lambda kind: kind[2])
        plan, best = progressive_filling(jobs(three)), least_gpu_slots(three, 2)
        rejected += plan is None and best is not None
        assert plan is None or plan.gpus.sum() == best
    assert rejected
    assert worst_case(PROBLEM, "progressive_filling", size=2).value == 1


@pytest.mark.parametrize("sizes", [(2, 2, 3), (2, 3, 2), (3, 1, 3), (3, 3, 1)])
def test_algorithm_1_turns_away_no_smaller_set(sizes):
    solution = formulations.solve(turned_away(**dict(zip(("num_jobs", "num_slots", "num_gpus"), sizes, strict=True))))
    assert solution.status == "optimal"
    assert solution.bound == pytest.approx(0, abs=1e-6)


def test_it_needs_three_slots_where_ties_do_not_matter():
    solution = formulations.solve(turned_away(num_jobs=3, num_slots=2, num_gpus=2, later=True))
    assert solution.bound == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(("num_slots", "num_gpus", "later"), [(2, 2, False), (2, 3, False), (3, 2, True)])
def test_algorithm_1_turns_away_three_jobs(num_slots, num_gpus, later):
    model = turned_away(num_jobs=3, num_slots=num_slots, num_gpus=num_gpus, later=later)
    solution = formulations.solve(model)
    solution.load()
    assert solution.objective == pytest.approx(1)
    instance = read(model)
    assert progressive_filling(instance) is None
    assert formulations.solve(instance).status == "optimal"


def test_the_smallest_set_that_algorithm_1_turns_away():
    # Both short jobs go into the last slot, of which the third needs a GPU as well.
    three = [(FLAT, 1, 2), (FLAT, 1, 2), (FLAT, 2, 2)]
    assert progressive_filling(jobs(three)) is None
    assert least_gpu_slots(three, 2) == 4


def test_gpu_time_in_three_slots():
    found = worst_case(PROBLEM, "progressive_filling", size=3)
    assert found.status == "optimal"
    assert found.value == pytest.approx(6 / 5)
    # Work of one to three slots of a GPU on two curves, due after 2 and 3 slots, jobs of one deadline in every order.
    kinds = [(curve, n * curve[1], due) for due in (2, 3) for curve in (FLAT, [0, 2, 3]) for n in (1, 2, 3)]
    worst = 1.0
    for three in product(kinds, repeat=3):
        if three[0][2] <= three[1][2] <= three[2][2] and (plan := progressive_filling(jobs(three))) is not None:
            worst = max(worst, plan.gpus.sum() / least_gpu_slots(three, 3))
    assert worst == pytest.approx(found.value)


def crowded(num_slots, num_gpus):
    """Jobs that crowd the last slot but one, and one that then needs all GPUs of all other slots, at hardly any gain.

    One GPU for one slot each is all that ``num_gpus`` jobs need, and Algorithm 1 gives them their last slot.  The other
    job has a slot more, and does almost as much on one GPU as on all.
    """
    flat, almost = np.minimum(np.arange(num_gpus + 1), 1), np.arange(num_gpus + 1)
    almost = almost + (num_gpus * num_slots) * flat
    kinds = [(flat, 1, num_slots - 1)] * num_gpus
    return jobs([*kinds, (almost, (num_slots - 1) * int(almost[-1]), num_slots)], num_gpus)


FAMILY = [(3, 2), (5, 2), (12, 2), (6, 4), (30, 8)]


@pytest.mark.parametrize(("num_slots", "num_gpus"), FAMILY)
def test_gpu_time_tends_to_all_gpus_where_one_would_do(num_slots, num_gpus):
    instance = crowded(num_slots, num_gpus)
    assert progressive_filling(instance).gpus.sum() == num_gpus * num_slots
    assert formulations.solve(instance).objective == num_slots + num_gpus


@pytest.mark.parametrize(("num_slots", "num_gpus"), FAMILY[:4])
def test_algorithm_2_takes_as_much_of_them(num_slots, num_gpus):
    crowd = crowded(num_slots, num_gpus)
    instance = ElasticFlowAllocation(
        num_gpus=num_gpus, iterations=crowd.iterations, deadlines=crowd.deadlines, throughputs=crowd.throughputs
    )
    plan = greedy_marginal_return(instance)
    assert not instance.violations(plan)
    assert instance.objective(plan) == num_gpus * num_slots
    # All GPUs of slot 0 must be used, as the long job is a little faster with each.
    assert formulations.solve(instance).objective == num_slots + num_gpus
