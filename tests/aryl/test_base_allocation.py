"""aryl.base_allocation: the heuristics against a naive simulation, and the judge second by second."""

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given
from hypothesis import strategies as st

import formulations
from heuristics.aryl import base_allocation as heuristics
from instances import InstanceError
from instances.aryl.base_allocation import BaseAllocation, BaseAllocationPlan, generate, short_but_large
from instances.base import agree

from ..effort import rounds
from ..second_opinion import optimum

HEURISTICS = [heuristics.shortest_job_first, heuristics.smallest_job_first, heuristics.fifo]


@st.composite
def queues(draw, max_jobs=4):
    n, capacity = draw(st.integers(1, max_jobs)), draw(st.integers(1, 4))
    return BaseAllocation(
        capacity=capacity,
        gpu_demands=draw(st.lists(st.integers(1, capacity), min_size=n, max_size=n)),
        running_times=[float(t) for t in draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))],
    )


def fits(instance, starts):
    """Whether the jobs that run in each second hold no more GPUs than there are."""
    jobs = list(zip(starts, instance.running_times, instance.gpu_demands, strict=True))
    return all(
        sum(int(gpus) for start, time, gpus in jobs if start <= now < start + time) <= instance.capacity
        for now in starts
    )


def naive(instance, key, *, overtake=True):
    """Second by second: the waiting jobs in order, each if it fits."""
    starts = [0.0 if time == 0 else None for time in instance.running_times]
    now = 0
    while None in starts:
        for job in sorted(range(instance.num_jobs), key=lambda j: (key(j), j)):
            if starts[job] is None:
                held = sum(
                    int(instance.gpu_demands[i])
                    for i, start in enumerate(starts)
                    if start is not None and start <= now < start + instance.running_times[i]
                )
                if held + instance.gpu_demands[job] <= instance.capacity:
                    starts[job] = float(now)
                elif not overtake:
                    break
        now += 1
    return starts


def test_short_but_large():
    instance = short_but_large()
    assert heuristics.shortest_job_first(instance).starts.tolist() == [0, 2, 2]
    assert instance.objective(heuristics.shortest_job_first(instance)) == 4
    solution = formulations.solve(instance)
    assert solution.plan.starts.tolist() == [3, 0, 0]
    assert solution.objective == pytest.approx(11 / 3)


@given(queues(max_jobs=6))
def test_heuristics_follow_their_definition(instance):
    digest = instance.digest
    keys = [
        (heuristics.shortest_job_first, lambda j: instance.running_times[j], True),
        (heuristics.smallest_job_first, lambda j: instance.running_times[j] * instance.gpu_demands[j], True),
        (heuristics.fifo, lambda j: j, False),
    ]
    for heuristic, key, overtake in keys:
        plan = heuristic(instance)
        assert plan.starts.tolist() == naive(instance, key, overtake=overtake)
        assert instance.violations(plan) == []
    assert instance.digest == digest


@given(queues(), st.integers(1, 4))
def test_shortest_job_first_is_optimal_for_equal_demands(instance, gpus):
    equal = BaseAllocation(
        capacity=gpus + 2, gpu_demands=[gpus] * instance.num_jobs, running_times=instance.running_times
    )
    best = float(optimum(equal))
    for heuristic in HEURISTICS[:2]:
        assert equal.objective(heuristic(equal)) == pytest.approx(best, rel=1e-9)


def test_fifo_waits_for_the_first_in_line():
    instance = BaseAllocation(capacity=2, gpu_demands=[1, 2, 1], running_times=[4.0, 1.0, 2.0])
    assert heuristics.fifo(instance).starts.tolist() == [0, 4, 5]
    assert heuristics.shortest_job_first(instance).starts.tolist() == [1, 0, 1]


@given(queues(), st.randoms(use_true_random=False))
def test_the_judge_sees_what_overlaps(instance, random):
    """Random starts: a plan is accepted where no second has too many GPUs in use."""
    starts = [float(random.randrange(12)) for _ in range(instance.num_jobs)]
    plan = BaseAllocationPlan(starts=starts)
    assert (instance.violations(plan) == []) == fits(instance, starts)
    assert instance.objective(plan) == pytest.approx(sum(starts) / len(starts) + instance.running_times.mean())


def test_rounded_times_are_no_overlap():
    """0.1 + 0.2 is 0.30000000000000004, and ends with a job that lasts until 0.3."""
    instance = BaseAllocation(capacity=1, gpu_demands=[1, 1, 1], running_times=[0.1, 0.2, 1.0])
    assert instance.violations(BaseAllocationPlan(starts=[0, 0.1, 0.3])) == []
    late = BaseAllocation(capacity=1, gpu_demands=[1, 1], running_times=[0.1, 1.0])
    assert late.violations(BaseAllocationPlan(starts=[1.7e9, 1.7e9 + 0.1])) == []
    broken = [str(violation) for violation in instance.violations(BaseAllocationPlan(starts=[-1, 0.1, 0.2]))]
    assert broken == ["starts_at_least_0[0] by 1", "capacity[2] by 1"]


@given(queues())
def test_a_plan_is_written_no_worse_than_it_is(instance):
    model = formulations.build(instance)
    plan = heuristics.fifo(instance)
    formulations.formulation("aryl.base_allocation").write(model, plan)
    assert instance.objective(formulations.read(model)) <= instance.objective(plan)


def test_a_search_that_is_cut_keeps_its_start():
    instance = generate(1, num_jobs=12)
    start = heuristics.shortest_job_first(instance)
    stopped = formulations.solve(instance, start=start, time_limit=1e-6)
    assert stopped.objective <= instance.objective(start)
    alone = formulations.solve(instance, time_limit=1e-6)
    assert alone.status == "feasible"


def test_finished_jobs_need_nothing():
    instance = BaseAllocation(capacity=1, gpu_demands=[5, 1, 1], running_times=[0.0, 2.0, 1.0])
    solution = formulations.solve(instance)
    assert solution.plan.starts.tolist() == [0, 1, 0]
    assert solution.objective == pytest.approx(4 / 3)
    assert heuristics.shortest_job_first(instance) == solution.plan
    none = BaseAllocation(capacity=0, gpu_demands=[1, 1], running_times=[0.0, 0.0])
    assert (formulations.solve(none).status, formulations.solve(none).objective) == ("optimal", 0)
    assert [heuristic(none).starts.tolist() for heuristic in HEURISTICS] == [[0, 0]] * 3


@pytest.mark.parametrize("capacity", [0, 3])
def test_a_job_that_can_never_begin(capacity):
    """No plan, which is no error of the data."""
    instance = BaseAllocation(capacity=capacity, gpu_demands=[1, 4], running_times=[1.0, 2.0])
    solution = formulations.solve(instance)
    assert (solution.status, solution.plan) == ("infeasible", None)
    assert solution.proof != "none"
    assert solution.message.endswith(f"GPUs, there are {capacity}")
    assert [heuristic(instance) for heuristic in HEURISTICS] == [None] * 3
    with pytest.raises(InstanceError, match="can never begin"):
        instance.in_order([0, 1])


def test_users_add_constraints():
    model = formulations.build(short_but_large())
    model.first_of_all = pyo.Constraint(expr=model.starts[0] == 0)
    assert formulations.solve(model).plan.starts.tolist() == [0, 2, 2]


def test_generated_instances():
    for seed in range(30):
        instance = generate(seed, num_jobs=8, capacity=1 + seed)
        assert instance.gpu_demands.max() <= instance.capacity == 1 + seed
        assert set(instance.gpu_demands.tolist()) <= {1, 2, 4, 8, 16}
        assert set(generate(seed, mixed=0.0).gpu_demands.tolist()) == {4}
    with pytest.raises(ValueError, match="capacity: got 0, must be at least 1"):
        generate(0, capacity=0)


def test_a_job_that_is_too_large_is_said_before_anything_else() -> None:
    """Times far apart would be scaled, and a plan at hand sought, for a job that can never begin."""
    found = formulations.solve(BaseAllocation(capacity=4, gpu_demands=[1, 2, 1, 5], running_times=[1, 1e6, 1, 1]))
    assert (found.status, found.proof) == ("infeasible", "argument")
    assert found.message == "job 3 needs 5 GPUs, there are 4"


@pytest.mark.parametrize("seed", [20, 96, 139])
def test_jobs_shorter_than_what_a_solver_tolerates_come_in_order(seed: int) -> None:
    """Beside a job of a day, a solver tells no starts of jobs of milliseconds apart; what is after what, it does."""
    rng = np.random.default_rng(seed)
    n, capacity = int(rng.integers(1, 6)), int(rng.integers(1, 8))
    instance = BaseAllocation(
        capacity=capacity,
        gpu_demands=rng.integers(1, capacity + 1, n),
        running_times=10 ** rng.uniform(-3, 5, n),
    )
    found = formulations.solve(instance)
    assert found.status == "optimal"
    assert agree(found.objective, float(optimum(instance)))


def put_first(instance, order):
    """Starts of jobs in an order, each at the first time with GPUs enough at every moment of it; by definition."""
    starts = {}

    def held(moment):
        return sum(
            instance.gpu_demands[job] for job, at in starts.items() if at <= moment < at + instance.running_times[job]
        )

    for job in order:
        ends = {at + instance.running_times[other] for other, at in starts.items()}
        for at in sorted({0.0, *ends}):
            during = [at, *(start for start in starts.values() if at < start < at + instance.running_times[job])]
            if all(held(moment) + instance.gpu_demands[job] <= instance.capacity for moment in during):
                starts[job] = at
                break
    return [starts[job] for job in range(instance.num_jobs)]


def test_jobs_in_order_begin_as_early_as_those_before_leave_room():
    for seed in rounds(60):
        rng = np.random.default_rng(seed)
        instance = generate(seed, num_jobs=int(rng.integers(1, 10)), capacity=int(rng.integers(1, 12)))
        order = rng.permutation(instance.num_jobs).tolist()
        assert instance.in_order(order).starts.tolist() == put_first(instance, order)


def test_no_job_begins_later_in_the_order_of_a_plan():
    for seed in rounds(40):
        instance = generate(seed, num_jobs=8)
        for heuristic in HEURISTICS:
            starts = heuristic(instance).starts
            assert (instance.in_order(np.argsort(starts, kind="stable")).starts <= starts).all()


def test_local_search_moves_jobs_until_its_budget_is_used_up():
    instance = short_but_large()
    assert heuristics.local_search(instance).starts.tolist() == [3.0, 0.0, 0.0]
    better = 0
    for seed in range(8):
        instance = generate(seed, num_jobs=6)
        values = [instance.objective(heuristics.local_search(instance, budget=budget)) for budget in (0, 100, 2000)]
        assert values == sorted(values, reverse=True)
        better += values[2] < values[0]
        assert values[2] <= 1.02 * formulations.solve(instance).objective
    assert better
    assert heuristics.local_search(BaseAllocation(capacity=3, gpu_demands=[4], running_times=[1.0])) is None
