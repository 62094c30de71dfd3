"""elasticflow.allocation: (4)-(7) against enumeration, and Algorithm 2 as printed and repaired."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import formulations
import instances
from formulations.elasticflow import allocation as models
from heuristics.elasticflow.allocation import greedy_marginal_return, greedy_marginal_return_repaired
from heuristics.elasticflow.minimum_satisfactory_share import progressive_filling
from instances import InstanceError
from instances.elasticflow.allocation import ElasticFlowAllocation, generate, two_idle_gpus
from instances.elasticflow.minimum_satisfactory_share import MinimumSatisfactoryShare
from instances.elasticflow.sharing import SlotPlan


def small(brute, seed, *, max_jobs=3, max_gpus=3, **options):
    return ElasticFlowAllocation(**brute.draw(seed, max_jobs=max_jobs, max_gpus=max_gpus, **options))


def share_of(instance):
    """The same jobs without (7)."""
    return MinimumSatisfactoryShare.from_dict({**instance.to_dict(), "problem": MinimumSatisfactoryShare.problem})


@pytest.mark.parametrize("first", range(0, 300, 100))
def test_optimum_equals_enumeration(brute, first):
    for seed in range(first, first + 100):
        instance = small(brute, seed)
        least = brute.least_gpu_time(instance, full_now=True)
        model = models.build_time_indexed(instance)
        model.instance = instance
        for solution in (formulations.solve(instance), formulations.solve(model)):
            assert (solution.status, solution.objective) == (
                ("infeasible", None) if least is None else ("optimal", least)
            )
            assert solution.plan is None or instance.violations(solution.plan) == []


def test_both_models_agree_on_concave_curves(brute):
    for seed in range(120):
        instance = small(brute, seed, concave=True, max_jobs=4, max_gpus=6, max_slots=6)
        found = []
        for build in (models.build_aggregated, models.build_time_indexed):
            model = build(instance)
            model.instance = instance
            found.append(formulations.solve(model))
        found.append(formulations.solve(instance))
        assert len({(solution.status, solution.objective) for solution in found}) == 1
        assert all(solution.plan is None or instance.violations(solution.plan) == [] for solution in found)


def test_scip_agrees():
    for seed, curves in enumerate(["concave", "linear", "measured"] * 2):
        instance = generate(seed, num_jobs=3, num_gpus=4, horizon=4, tightness=0.3, curves=curves)
        found = [formulations.solve(instance, solver=solver) for solver in ("highs", "scip")]
        assert found[0].status == found[1].status
        assert found[0].objective == found[1].objective


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
    for seed in range(100):
        instance = small(brute, seed)
        least = brute.least_gpu_time(instance)
        assert (least is None) == (brute.least_gpu_time(instance, full_now=True) is None)
        if least is not None:
            assert formulations.solve(instance).objective >= least


# --- Algorithm 2 ----------------------------------------------------------------------------------


def naive_fill(curve, need, free):
    """Algorithm 1 for one job, in fractions."""
    for level in range(len(curve)):
        taken, done = [0] * len(free), Fraction(0)
        for slot in reversed(range(len(free))):
            if done < need:
                taken[slot] = min(level, free[slot])
                done += curve[taken[slot]]
        if done >= need:
            return taken
    return None


def naive_as_printed(instance):
    """Algorithm 2 as printed on curves that do not fall: one more GPU for each job in the queue, once."""
    n, horizon, total = instance.num_jobs, instance.horizon, instance.num_gpus
    curves = [[Fraction(t) for t in row] for row in instance.throughputs.tolist()]
    needs = [Fraction(float(m)) for m in instance.iterations]
    ends = instance.deadlines.tolist()
    gpus = [[0] * horizon for _ in range(n)]

    def free(without):
        return [total - sum(gpus[j][t] for j in range(n) if j != without) for t in range(horizon)]

    for job in sorted(range(n), key=lambda i: (ends[i], i)):
        filled = naive_fill(curves[job], needs[job], free(job)[: ends[job]])
        if filled is None:
            return None
        gpus[job][: ends[job]] = filled

    def grown(job):
        now = gpus[job][0] + 1
        return [now, *naive_fill(curves[job], needs[job] - curves[job][now], free(job)[1 : ends[job]])]

    queue = {}
    for job in range(n):
        now = gpus[job][0]
        if now < total and curves[job][now + 1] > curves[job][now]:
            queue[job] = sum(gpus[job]) - sum(grown(job))
    while queue and free(None)[0] > 0:
        job = max(queue, key=lambda j: (queue[j], -j))
        del queue[job]
        gpus[job][: ends[job]] = grown(job)
    return gpus


def rising(instance):
    return ElasticFlowAllocation(
        num_gpus=instance.num_gpus,
        iterations=np.minimum(instance.iterations, instance.deadlines * instance.best_throughputs[:, -1]),
        deadlines=instance.deadlines,
        throughputs=instance.best_throughputs,
    )


def test_as_printed_follows_its_definition(brute):
    served = 0
    for seed in range(300):
        instance = rising(small(brute, seed, max_jobs=4, max_gpus=6, max_slots=5))
        plan = greedy_marginal_return(instance)
        expected = naive_as_printed(instance)
        assert (None if plan is None else plan.gpus.tolist()) == expected
        served += expected is not None
    assert served > 100


def test_as_printed_leaves_gpus_idle_and_repaired_does_not():
    """One job that three GPUs would speed up gets its share and one more GPU, as printed."""
    instance = ElasticFlowAllocation(num_gpus=4, iterations=[4], deadlines=[4], throughputs=[[0, 1, 2, 3, 3]])
    printed = greedy_marginal_return(instance)
    assert printed is not None
    assert printed.gpus.tolist() == [[2, 0, 1, 1]]
    assert [v.rule for v in instance.violations(printed)] == ["no_useful_idle_gpu"]
    repaired = greedy_marginal_return_repaired(instance)
    assert repaired is not None
    assert repaired.gpus.tolist() == [[3, 0, 0, 1]]
    assert instance.violations(repaired) == []


def test_highest_marginal_return_first():
    """One GPU is idle: job 1 would save a GPU-slot with it, job 0 would waste part of one.

    The paper ranks job 1 first; the authors' released code sorts the other way round.
    """
    instance = ElasticFlowAllocation(
        num_gpus=3, iterations=[2, 2], deadlines=[2, 2], throughputs=[[0, 2, 2.5, 2.5], [0, 1, 2, 2]]
    )
    plan = greedy_marginal_return(instance)
    assert plan is not None
    assert plan.gpus.tolist() == [[1, 0], [2, 0]]
    assert formulations.solve(instance).objective == instance.objective(plan) == 3


@pytest.mark.parametrize("heuristic", [greedy_marginal_return, greedy_marginal_return_repaired])
@given(seed=st.integers(0, 10_000))
def test_plans_against_4_to_7(brute, heuristic, seed):
    """Deadlines and capacity always hold; (7) holds once repaired; nothing beats the optimum."""
    instance = small(brute, seed)
    digest = instance.digest
    plan = heuristic(instance)
    assert heuristic(instance) == plan
    assert instance.digest == digest
    assert (plan is None) == (progressive_filling(share_of(instance)) is None)
    if plan is not None:
        broken = {violation.rule for violation in instance.violations(plan)}
        assert broken <= (set() if heuristic is greedy_marginal_return_repaired else {"no_useful_idle_gpu"})
        if not broken:
            assert instance.objective(plan) >= brute.least_gpu_time(instance, full_now=True)


def test_a_job_with_a_falling_curve_keeps_what_it_had():
    """Job 1 grows first and frees a GPU in slot 1, where job 0 would be slower on two than on its one.

    At no level can job 0 then do the rest; it keeps its other slots when it grows.
    """
    instance = ElasticFlowAllocation(
        num_gpus=5,
        iterations=[23, 1, 3],
        deadlines=[3, 2, 2],
        throughputs=[[0, 3, 0, 10, 11, 11], [0, 1, 2, 3, 4, 5], [0, 1, 1, 3, 3, 3]],
    )
    assert progressive_filling(share_of(instance)).gpus.tolist() == [[3, 1, 3], [0, 1, 0], [0, 3, 0]]
    plan = greedy_marginal_return_repaired(instance)
    assert plan.gpus.tolist() == [[4, 1, 3], [1, 0, 0], [0, 3, 0]]
    assert instance.violations(plan) == []


# --- instances ------------------------------------------------------------------------------------


def test_start_plan(brute):
    for seed in range(40):
        instance = small(brute, seed)
        start = greedy_marginal_return_repaired(instance)
        if start is not None:
            best = brute.least_gpu_time(instance, full_now=True)
            assert formulations.solve(instance, start=start).objective == best


def test_a_job_on_all_gpus_cannot_grow():
    instance = ElasticFlowAllocation(num_gpus=1, iterations=[1, 0], deadlines=[1, 1], throughputs=[[0, 1], [0, 1]])
    assert instance.faster_now(np.array([[1], [0]])).tolist() == [False, True]
    assert instance.violations(SlotPlan(gpus=[[1], [0]])) == []


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("num_gpus", 3, "Allocation.throughputs"),
    ],
)
def test_bad_fields_are_named(field, value, message):
    with pytest.raises(InstanceError, match=message):
        instances.read({**two_idle_gpus().to_dict(), field: value})
