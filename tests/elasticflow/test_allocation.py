"""elasticflow.allocation: two models of (4)-(7), and Algorithm 2 as printed and repaired."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import formulations
import instances
from formulations.elasticflow import allocation as models
from heuristics.elasticflow.allocation import (
    _Growth,
    greedy_marginal_return,
    greedy_marginal_return_repaired,
    local_search,
)
from heuristics.elasticflow.minimum_satisfactory_share import progressive_filling
from instances import InstanceError
from instances.elasticflow.allocation import (
    ElasticFlowAllocation,
    equal_jobs,
    overrun,
    overrun_by_moment,
    two_idle_gpus,
)
from instances.elasticflow.minimum_satisfactory_share import MinimumSatisfactoryShare
from instances.elasticflow.sharing import SlotPlan

from ..effort import rounds


def small(brute, seed, *, max_jobs=3, max_gpus=3, **options):
    return ElasticFlowAllocation(**brute.draw(seed, max_jobs=max_jobs, max_gpus=max_gpus, **options))


def share_of(instance):
    """The same jobs without (7)."""
    return MinimumSatisfactoryShare.from_dict({**instance.to_dict(), "problem": MinimumSatisfactoryShare.problem})


def test_both_models_agree_on_concave_curves(brute):
    for seed in rounds(40):
        instance = small(brute, seed, concave=True, max_jobs=4, max_gpus=6, max_slots=6)
        found = []
        for build in (models.build_aggregated, models.build_time_indexed):
            model = build(instance)
            model.instance = instance
            found.append(formulations.solve(model))
        found.append(formulations.solve(instance))
        assert len({(solution.status, solution.objective) for solution in found}) == 1
        assert all(solution.plan is None or instance.violations(solution.plan) == [] for solution in found)


def test_7_costs_gpu_time():
    instance = two_idle_gpus()
    share = share_of(instance)
    assert formulations.solve(share).objective == 4
    idle = SlotPlan(gpus=[[1, 1], [1, 1]])
    assert share.violations(idle) == []
    assert [(v.rule, v.index, v.amount) for v in instance.violations(idle)] == [
        ("no_useful_idle_gpu", (0,), 2.0),
        ("no_useful_idle_gpu", (1,), 2.0),
    ]
    solution = formulations.solve(instance)
    assert solution.objective == 6
    assert solution.plan.gpus[:, 0].sum() == 4


def test_7_is_an_implication():
    """A GPU may stay idle that would make no job faster, even where another number of GPUs would."""
    flat = ElasticFlowAllocation(num_gpus=3, iterations=[2], deadlines=[1], throughputs=[[0, 2, 2, 2]])
    assert formulations.solve(flat).plan.gpus.tolist() == [[1]]
    # On one GPU, a second makes the job no faster, though a third would.
    dip = ElasticFlowAllocation(num_gpus=3, iterations=[2], deadlines=[1], throughputs=[[0, 2, 1, 3]])
    assert formulations.solve(dip).plan.gpus.tolist() == [[1]]
    steep = ElasticFlowAllocation(num_gpus=3, iterations=[2], deadlines=[1], throughputs=[[0, 2, 3, 3]])
    assert formulations.solve(steep).plan.gpus.tolist() == [[2]]


def test_optimum_is_never_below_the_minimum_satisfactory_share(brute):
    for seed in rounds(30):
        instance = small(brute, seed)
        least = brute.least_gpu_time(instance)
        assert (least is None) == (brute.least_gpu_time(instance, full_now=True) is None)
        if least is not None:
            assert formulations.solve(instance).objective >= least


# --- Algorithm 2 ----------------------------------------------------------------------------------


def naive_fill(curve, need, free):
    """ProgressiveFilling for one job, in fractions: no slot is cleared, and all slots count (line 17)."""
    taken = [0] * len(free)
    if need <= 0:
        return taken
    for level in range(1, len(curve)):
        for slot in reversed(range(len(free))):
            taken[slot] = min(level, free[slot])
            if sum(curve[x] for x in taken) >= need:
                return taken
    return None


def naive_as_printed(instance, finish, free):
    """Algorithm 2 line by line, in fractions; ``a``, ``x`` and ``G`` are its variables."""
    n, horizon, cluster = instance.num_jobs, instance.horizon, instance.num_gpus
    curves = [[Fraction(t) for t in row] for row in instance.throughputs.tolist()]
    needs = [Fraction(float(m)) for m in instance.iterations]
    ends = instance.deadlines.tolist()
    jobs = sorted(range(n), key=lambda i: (ends[i], i))
    a = [[0] * horizon for _ in range(n)]
    for job in jobs:
        filled = naive_fill(curves[job], needs[job], [cluster - sum(row[t] for row in a) for t in range(ends[job])])
        if filled is None:
            return None
        a[job][: ends[job]] = filled
    x, G, queue = [list(row) for row in a], cluster, {}

    def finish_time(job, gpus):
        done = Fraction(0)
        if not needs[job]:
            return 0
        for slot, held in enumerate(gpus):
            if done + curves[job][held] >= needs[job]:
                return slot + (needs[job] - done) / curves[job][held] if finish == "moment" else slot
            done += curves[job][held]
        return horizon

    def insert(job):
        now = a[job][0] + 1
        if now > cluster:
            return
        x[job] = [now] + [0] * (horizon - 1)
        before = jobs[: jobs.index(job)]
        left = [
            cluster - sum(a[k][t] for k in jobs if k != job)
            if free == "all_jobs"
            else max(0, (G if free == "printed" else cluster) - sum(x[k][t] for k in before))
            for t in range(1, ends[job])
        ]
        rest = naive_fill(curves[job], needs[job] - curves[job][now], left)
        if rest is None:
            # The last level is as high as all GPUs.
            x[job][1 : ends[job]] = left
            return
        x[job][1 : ends[job]] = rest
        faster = needs[job] > 0 and curves[job][now] > curves[job][now - 1]
        if faster if finish == "rate" else finish_time(job, x[job]) < finish_time(job, a[job]):
            queue[job] = sum(a[job]) - sum(x[job])

    for job in jobs:
        G -= a[job][0]
        insert(job)
    while G > 0 and queue:
        job = max(queue, key=lambda i: (queue[i], -i))
        del queue[job]
        a[job] = list(x[job])
        G -= 1
        insert(job)
    return a


FINISHES = ("slot", "moment", "rate")
FREES = ("printed", "earlier_jobs", "all_jobs")


@pytest.mark.parametrize("finish", FINISHES)
@pytest.mark.parametrize("free", FREES)
def test_as_printed_follows_its_lines(brute, finish, free):
    grown = 0
    for seed in range(60):
        instance = small(brute, seed, max_jobs=4, max_gpus=6, max_slots=5)
        plan = greedy_marginal_return(instance, finish=finish, free=free)
        expected = naive_as_printed(instance, finish, free)
        assert (None if plan is None else plan.gpus.tolist()) == expected
        if plan is not None:
            shares = progressive_filling(share_of(instance))
            grown += plan != shares
    assert grown > 3


def test_a_served_job_enters_the_queue_again():
    """Lines 19 to 24: one job that three GPUs would speed up gets them one after another, to its last slot."""
    instance = ElasticFlowAllocation(num_gpus=4, iterations=[3], deadlines=[3], throughputs=[[0, 1, 2, 3, 3]])
    assert progressive_filling(share_of(instance)).gpus.tolist() == [[1, 1, 1]]
    # With two GPUs now it would still need its last slot.
    assert greedy_marginal_return(instance).gpus.tolist() == [[1, 1, 1]]
    assert greedy_marginal_return(instance, finish="rate").gpus.tolist() == [[3, 0, 0]]
    assert greedy_marginal_return_repaired(instance).gpus.tolist() == [[3, 0, 0]]


def test_finish_times_leave_gpus_idle():
    """As printed, a job whose last slot stays its last gets nothing, although (7) wants the GPU used."""
    instance = ElasticFlowAllocation(num_gpus=2, iterations=[1], deadlines=[1], throughputs=[[0, 1, 2]])
    printed = greedy_marginal_return(instance)
    assert printed.gpus.tolist() == [[1]]
    assert [v.rule for v in instance.violations(printed)] == ["no_useful_idle_gpu"]
    # Within the slot it would be done earlier.
    assert greedy_marginal_return(instance, finish="moment").gpus.tolist() == [[2]]
    assert instance.violations(greedy_marginal_return_repaired(instance)) == []


def test_lowered_gpus_leave_gpus_idle():
    """The GPU out of three that line 18 takes from G is missing in slot 1 too, where the job needs all three."""
    instance = ElasticFlowAllocation(num_gpus=3, iterations=[5], deadlines=[2], throughputs=[[0, 1, 2, 3]])
    printed = greedy_marginal_return(instance, finish="rate")
    assert printed.gpus.tolist() == [[2, 3]]
    assert [v.rule for v in instance.violations(printed)] == ["no_useful_idle_gpu"]
    whole = greedy_marginal_return(instance, finish="rate", free="earlier_jobs")
    assert whole.gpus.tolist() == [[3, 2]]
    assert instance.violations(whole) == []


def test_later_jobs_are_not_looked_at():
    """Line 15 subtracts jobs of earlier deadlines only, by plans that may never be carried out."""
    by_rate, by_moment = overrun(), overrun_by_moment()
    for instance, options, slot in (
        (by_rate, {"finish": "rate", "free": "earlier_jobs"}, 2),
        (by_moment, {"finish": "moment"}, 1),
    ):
        assert instance.concave
        plan = greedy_marginal_return(instance, **options)
        assert ("capacity", (slot,)) in [(v.rule, v.index) for v in instance.violations(plan)]
        assert "work" not in {v.rule for v in instance.violations(plan)}
        assert instance.violations(greedy_marginal_return_repaired(instance)) == []


def test_greedy_is_not_optimal(brute):
    """Where ties go to the lowest job, the repaired algorithm misses the optimum, from least shares."""
    instance = equal_jobs()
    assert instance.concave
    assert progressive_filling(share_of(instance)).gpus.sum() == brute.least_gpu_time(share_of(instance)) == 6
    plan = greedy_marginal_return_repaired(instance)
    assert instance.violations(plan) == []
    assert instance.objective(plan) == 9
    even = SlotPlan(gpus=[[4, 0], [4, 0]])
    assert instance.violations(even) == []
    assert instance.objective(even) == formulations.solve(instance).objective == 8


def test_highest_marginal_return_first():
    """One GPU is idle: job 1 would save nothing with it, job 0 would waste part of one.

    The paper ranks job 1 first; the authors' released code sorts the other way round.
    """
    instance = ElasticFlowAllocation(
        num_gpus=3, iterations=[2, 2], deadlines=[2, 2], throughputs=[[0, 2, 2.5, 2.5], [0, 1, 2, 2]]
    )
    plan = greedy_marginal_return_repaired(instance)
    assert plan is not None
    assert plan.gpus.tolist() == [[1, 0], [2, 0]]
    assert formulations.solve(instance).objective == instance.objective(plan) == 3


@pytest.mark.parametrize("heuristic", [greedy_marginal_return, greedy_marginal_return_repaired])
@given(seed=st.integers(0, 10_000))
def test_plans_against_4_to_7(brute, heuristic, seed):
    """Deadlines always hold; (6) and (7) hold once repaired; nothing beats the optimum."""
    instance = small(brute, seed)
    digest = instance.digest
    plan = heuristic(instance)
    assert heuristic(instance) == plan
    assert instance.digest == digest
    assert (plan is None) == (progressive_filling(share_of(instance)) is None)
    if plan is not None:
        broken = {violation.rule for violation in instance.violations(plan)}
        assert broken <= (set() if heuristic is greedy_marginal_return_repaired else {"no_useful_idle_gpu", "capacity"})
        if not broken:
            assert instance.objective(plan) >= brute.least_gpu_time(instance, full_now=True)


def test_a_job_with_a_falling_curve_keeps_what_it_had():
    """A GPU has become free in slot 1, where job 0 would be slower on two than on its one.

    At no level can job 0 then do the rest; it keeps its other slots when it grows.
    """
    instance = ElasticFlowAllocation(
        num_gpus=5,
        iterations=[23, 3],
        deadlines=[3, 2],
        throughputs=[[0, 3, 0, 10, 11, 11], [0, 1, 2, 3, 4, 5]],
    )
    growth = _Growth(instance, np.array([[3, 1, 3], [0, 3, 0]]))
    assert growth.free.tolist() == [2, 1, 2]
    growth.grow(0)
    assert growth.gpus.tolist() == [[4, 1, 3], [0, 3, 0]]
    assert growth.free.tolist() == [1, 1, 2]
    assert (instance.work(growth.gpus) >= instance.iterations).all()


# --- instances ------------------------------------------------------------------------------------


def test_a_job_on_all_gpus_cannot_grow():
    instance = ElasticFlowAllocation(num_gpus=1, iterations=[1, 1], deadlines=[1, 2], throughputs=[[0, 1], [0, 1]])
    assert instance.faster_now(np.array([[1], [0]])).tolist() == [False, True]
    assert instance.violations(SlotPlan(gpus=[[1, 0], [0, 1]])) == []


def test_a_finished_job_wants_no_gpu():
    instance = ElasticFlowAllocation(
        num_gpus=2, iterations=[0, 1], deadlines=[1, 1], throughputs=[[0, 1, 2], [0, 1, 1]]
    )
    assert instance.faster_now(np.array([[0], [1]])).tolist() == [False, False]
    for plan in (
        formulations.solve(instance).plan,
        greedy_marginal_return(instance),
        greedy_marginal_return_repaired(instance),
    ):
        assert plan.gpus.tolist() == [[0], [1]]
        assert instance.violations(plan) == []


def test_too_much_work_has_no_plan():
    instance = ElasticFlowAllocation(num_gpus=1, iterations=[3], deadlines=[2], throughputs=[[0, 1]])
    solution = formulations.solve(instance)
    assert (solution.status, solution.plan) == ("infeasible", None)
    assert "job 0 needs 3 GPU-slots before slot 2, there are 2" in solution.message
    assert solution.proof
    assert greedy_marginal_return(instance) is None
    assert greedy_marginal_return_repaired(instance) is None


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("num_gpus", 3, "Allocation.throughputs"),
    ],
)
def test_bad_fields_are_named(field, value, message):
    with pytest.raises(InstanceError, match=message):
        instances.read({**two_idle_gpus().to_dict(), field: value})


@pytest.mark.parametrize("seed", range(6))
def test_local_search_takes_no_more_than_the_repaired_algorithm(seed: int) -> None:
    instance = ElasticFlowAllocation.generate(seed, num_jobs=6, num_gpus=12, tightness=0.3)
    first, found = greedy_marginal_return_repaired(instance), local_search(instance)
    if first is None:
        assert found is None
        return
    assert instance.violations(found) == []
    assert formulations.solve(instance).bound <= instance.objective(found) <= instance.objective(first)


def test_local_search_moves_gpus_of_slot_0() -> None:
    """An exchange in slot 0 takes fewer GPU-slots than the repaired algorithm; without a budget there is none."""
    instance = next(
        one
        for one in (ElasticFlowAllocation.generate(seed, num_jobs=4, num_gpus=8, tightness=0.2) for seed in range(60))
        if (first := greedy_marginal_return_repaired(one)) is not None
        and one.objective(first) > one.objective(local_search(one))
    )
    first = greedy_marginal_return_repaired(instance)
    assert instance.objective(local_search(instance, budget=0)) == instance.objective(first)
    assert local_search(instance).gpus[:, 0].sum() == first.gpus[:, 0].sum()
