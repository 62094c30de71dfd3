"""The baselines of section 7.3 against enumeration and by hand, and section 5's placement."""

import itertools

import numpy as np
import pytest

import formulations
from heuristics.gavel import cost, fifo, makespan
from heuristics.gavel.round_assignment import greedy_priority, placement
from heuristics.gavel.schedules import allox_schedule, assignment, averaged, fifo_schedule
from instances.gavel.cost import Cost
from instances.gavel.fifo import Fifo
from instances.gavel.makespan import Makespan, generate
from instances.gavel.round_assignment import RoundAssignment, RoundAssignmentPlan
from instances.gavel.round_assignment import generate as generate_round

from ..effort import rounds


def small(seed, *, wide=False):
    """Up to 5 jobs on up to 3 types, some of them on one pool, with places where a job cannot run."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(1, 6)), int(rng.integers(1, 3))
    k = int(rng.integers(p, 4))
    throughputs = rng.integers(0, 4, (n, k)).astype(float)
    return Makespan(
        throughputs=throughputs,
        num_workers=rng.integers(0, 3, p),
        pools=np.concatenate([np.arange(p), rng.integers(0, p, k - p)]),
        scale_factors=rng.integers(1, 3, n) if wide else np.ones(n, int),
        steps=rng.integers(0, 9, n).astype(float),
    )


def never_overfull(instance, schedule):
    """Whether at every start there are workers for all jobs that run then."""
    running = schedule.types >= 0
    for start in schedule.starts[running]:
        now = running & (schedule.starts <= start) & (schedule.ends > start)
        for pool, workers in enumerate(instance.num_workers.tolist()):
            mine = now & (instance.pools[schedule.types] == pool)
            if instance.scale_factors[mine].sum() > workers:
                return False
    return True


def least_total_completion(instance):
    """Least sum of completion times over all assignments of jobs to workers, each in order of length."""
    workers = [pool for pool, count in enumerate(instance.num_workers.tolist()) for _ in range(count)]
    kinds = instance.pools.tolist()
    times = []
    for job in range(instance.num_jobs):
        if instance.steps[job] > 0:
            speeds = [
                max((instance.throughputs[job, j] for j, p in enumerate(kinds) if p == w), default=0) for w in workers
            ]
            if max(speeds, default=0) > 0:
                times.append([instance.steps[job] / speed if speed > 0 else np.inf for speed in speeds])
    best = np.inf
    for choice in itertools.product(range(len(workers)), repeat=len(times)):
        total = 0.0
        for worker in range(len(workers)):
            mine = sorted(times[job][worker] for job in range(len(times)) if choice[job] == worker)
            total += sum(sum(mine[: i + 1]) for i in range(len(mine)))
        best = min(best, total)
    return best if times else 0.0


@pytest.mark.parametrize("first", rounds(40)[::40])
def test_allox_has_the_least_average_completion_time(first):
    for seed in range(first, first + 40):
        instance = small(seed)
        schedule = allox_schedule(instance)
        assert never_overfull(instance, schedule)
        assert schedule.ends.sum() == pytest.approx(least_total_completion(instance))


def test_allox_serves_jobs_of_one_worker_only():
    assert makespan.allox(generate(0, num_jobs=40)) is None
    instance = generate(0, num_jobs=40, multi_worker=False)
    plan = makespan.allox(instance)
    assert instance.violations(plan) == []
    assert instance.objective(plan) == pytest.approx(allox_schedule(instance).ends.max())


def test_an_assignment_is_the_cheapest():
    for seed in rounds(20):
        rng = np.random.default_rng(seed)
        rows = int(rng.integers(1, 5))
        costs = rng.integers(0, 9, (rows, rows + int(rng.integers(0, 3)))).astype(float)
        found = assignment(costs)
        assert len(set(found.tolist())) == rows
        least = min(
            sum(costs[row, column] for row, column in enumerate(columns))
            for columns in itertools.permutations(range(costs.shape[1]), rows)
        )
        assert costs[np.arange(rows), found].sum() == least


def test_fifo_to_completion_by_hand():
    """Job 0 takes type 0 although type 1 is faster; job 1 waits for both workers of type 0, and job 2 behind it."""
    instance = Makespan(
        throughputs=[[1.0, 5.0], [1.0, 0.0], [1.0, 2.0], [1.0, 1.0]],
        num_workers=[2, 1],
        scale_factors=[1, 2, 1, 1],
        steps=[10.0, 5.0, 4.0, 0.0],
    )
    schedule = fifo_schedule(instance)
    assert schedule.types.tolist() == [0, 0, 1, -1]
    assert schedule.starts.tolist() == [0, 10, 10, 0]
    assert schedule.ends.tolist() == [10, 15, 12, 0]
    plan = makespan.agnostic_fifo(instance)
    assert plan == averaged(instance, schedule)
    assert instance.violations(plan) == []
    assert instance.objective(plan) == pytest.approx(15)


@pytest.mark.parametrize("seed", range(40))
def test_fifo_to_completion(seed):
    instance = small(seed, wide=True)
    schedule = fifo_schedule(instance)
    running = schedule.types >= 0
    assert (np.diff(schedule.starts[running]) >= 0).all()
    assert never_overfull(instance, schedule)
    plan = makespan.agnostic_fifo(instance)
    assert instance.violations(plan) == []
    if not instance.endless.any():
        assert instance.objective(plan) == pytest.approx(schedule.ends.max())
        assert instance.objective(plan) >= formulations.solve(instance).bound * (1 - 1e-9)


def test_agnostic_fifo_does_not_look_at_speeds():
    instance = Fifo(throughputs=[[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]], num_workers=[1, 1])
    assert fifo.agnostic_fifo(instance).time_fractions.tolist() == [[1, 0], [0, 1], [0, 0]]
    assert fifo.fastest_free_type(instance).time_fractions.tolist() == [[0, 1], [1, 0], [0, 0]]


def test_the_most_throughput_is_not_the_most_for_the_money():
    instance = Cost(throughputs=[[10.0, 4.0]], num_workers=[1, 1], costs=[5.0, 1.0], steps=[1.0])
    assert instance.objective(cost.fastest_first(instance)) == 2
    assert formulations.solve(instance).objective == pytest.approx(4)


# --- placement ------------------------------------------------------------------------------------


def test_wide_jobs_are_placed_first_and_together():
    """On servers of four: the job of four has one to itself, the others fill the next ones."""
    instance = RoundAssignment(
        scale_factors=[1, 3, 4, 1, 2], num_workers=[10], priorities=np.ones((5, 1)), pairs=[[0, 3]][:0]
    )
    plan = greedy_priority(instance)
    assert plan.chosen[:4].all()
    held, of_pool = placement(instance, plan, 4)
    assert of_pool.tolist() == [0, 0, 0]
    assert held.tolist() == [[0, 1, 0], [0, 3, 0], [4, 0, 0], [0, 0, 1], [0, 0, 0]]


def test_unconsolidated_rows_are_placed_apart():
    """On servers of four: a job of three whose workers are to be apart has one on each with room, then a second."""
    instance = RoundAssignment(
        scale_factors=[3, 4, 3], num_workers=[12], pools=[0, 0], priorities=[[0, 3], [3, 0], [1, 0]]
    )
    plan = RoundAssignmentPlan(chosen=[[False, True], [True, False], [True, False]])
    assert not instance.violations(plan)
    apart, together = (
        placement(instance, plan, 4, unconsolidated=types)[0].tolist() for types in ([False, True], None)
    )
    # Job 2, of three workers too, comes before job 0, whose workers are to be apart.
    assert apart == [[0, 1, 2], [4, 0, 0], [0, 3, 0]]
    assert together == [[0, 3, 0], [4, 0, 0], [0, 0, 3]]


def test_a_job_that_no_server_holds_is_spread():
    instance = RoundAssignment(scale_factors=[6, 1], num_workers=[2, 8], priorities=[[0.0, 1.0], [0.0, 1.0]])
    held, of_pool = placement(instance, greedy_priority(instance), 4)
    assert of_pool.tolist() == [0, 1, 1]
    assert held.tolist() == [[0, 4, 2], [0, 0, 1]]
    with pytest.raises(ValueError, match="workers_per_server: got 0"):
        placement(instance, greedy_priority(instance), 0)


@pytest.mark.parametrize("seed", range(20))
def test_everybody_is_placed_and_no_server_holds_too_much(seed):
    instance = generate_round(seed, num_jobs=20)
    plan = greedy_priority(instance)
    held, of_pool = placement(instance, plan, 3)
    rows, kinds = np.nonzero(plan.chosen)
    assert (held.sum(axis=0) <= 3).all()
    for row, kind in zip(rows, kinds, strict=True):
        assert held[row].sum() == instance.row_scale_factors[row]
        assert (of_pool[held[row] > 0] == instance.pools[kind]).all()
    assert held.sum() == instance.row_scale_factors[rows].sum()
