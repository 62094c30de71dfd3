"""gavel.cost: what is paid, SLOs that cannot be met, and programs far apart in size."""

import math
from dataclasses import replace

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given

import formulations
from formulations.gavel import cost as formulation
from heuristics.gavel.cost import best_bargain
from instances.gavel.cost import Cost, generate, three_jobs
from instances.gavel.sharing import Allocation
from instances.gavel.throughput_per_dollar import ThroughputPerDollar
from validation.testing.strategies import strategy


def test_three_jobs():
    assert formulations.solve(three_jobs()).objective == pytest.approx(50)
    solution = formulations.solve(three_jobs(slo=3600))
    assert solution.objective == pytest.approx(37.5)
    assert solution.plan.time_fractions == pytest.approx(np.array([[0, 0], [0, 0], [0.5, 0.5]]))


def test_value_by_hand():
    """40 * 1/3 + 50 steps/s for 3 * 1/3 + 1 $/h."""
    plan = Allocation(time_fractions=[[1 / 3, 0], [0, 0], [0, 1.0]])
    assert three_jobs().spending(plan) == 2
    assert three_jobs().objective(plan) == pytest.approx(95 / 3)


def test_spending_nothing_is_worth_nothing():
    nothing = Allocation(time_fractions=np.zeros((3, 2)))
    assert three_jobs().violations(nothing) == []
    assert three_jobs().objective(nothing) == 0


def test_workers_of_wide_jobs_are_all_paid():
    wide = Cost(throughputs=[[4.0]], num_workers=[8], scale_factors=[8], costs=[1.0], steps=[1.0])
    assert formulations.solve(wide).objective == pytest.approx(0.5)


def test_the_printed_denominator_pays_one_worker_of_a_row():
    """As printed: sum of cost_j * X_mj, so that a job of 8 workers costs as much as one of 1."""
    fields = {"throughputs": [[4.0], [1.0]], "num_workers": [8], "scale_factors": [8, 1], "costs": [1.0]}
    built, printed = (Cost(**fields, steps=[1.0, 1.0], paid=paid) for paid in ("workers", "rows"))
    assert formulations.solve(built).objective == pytest.approx(1)
    assert formulations.solve(printed).objective == pytest.approx(4)
    assert printed.objective(best_bargain(printed)) == pytest.approx(4)
    # In between, for both rows of half the time each: 2.5 steps/s.
    half = Allocation(time_fractions=[[0.5], [0.5]])
    assert (built.objective(half), printed.objective(half)) == (2.5 / 4.5, 2.5)


def test_the_workers_of_a_pair_are_paid_once():
    instance = Cost(
        throughputs=[[2.0], [2.0]],
        num_workers=[1],
        pairs=[[0, 1]],
        pair_throughputs=[[[1.5, 1.5]]],
        costs=[1.0],
        steps=[1.0, 1.0],
    )
    assert formulations.solve(instance).objective == pytest.approx(3)


def test_the_plan_is_as_large_as_the_cluster_allows():
    """Every multiple of an optimal plan is optimal without SLOs: the one returned fills a job or a pool."""
    for seed in range(10):
        instance = generate(seed, num_jobs=10, slo_fraction=0.0)
        solution = formulations.solve(instance)
        job_time, workers = instance.loads(solution.plan)
        assert max(job_time.max(), (workers / instance.num_workers).max()) == pytest.approx(1)
        tenth = Allocation(time_fractions=solution.plan.time_fractions / 10)
        assert instance.objective(tenth) == pytest.approx(solution.objective)


def test_infeasible_slos_are_named():
    """Job 0 alone can meet its SLO, jobs 1 and 2 could each, but not both on one worker."""
    instance = Cost(
        throughputs=[[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]],
        num_workers=[1, 1],
        costs=[1.0, 1.0],
        steps=[100.0, 100.0, 100.0],
        slos=[100.0, 150.0, 160.0],
    )
    solution = formulations.solve(instance)
    assert solution.status == "infeasible"
    assert solution.plan is None
    explanation = formulations.explain(instance)
    assert not explanation.feasible
    assert set(explanation.constraints) == {"pool_capacity[1]", "slo[1]", "slo[2]"}


def test_an_impossible_slo_is_named_alone():
    instance = replace(three_jobs(slo=1000.0), slos=[36000.0, 36000.0, 1000.0])
    assert set(formulations.explain(instance).constraints) == {"job_time[2]", "slo[2]"}


def test_slos_are_never_dropped():
    """As built: the released code solves again without SLOs when they cannot be met."""
    instance = three_jobs(slo=1000.0)
    assert formulations.solve(instance).status == "infeasible"
    without = formulations.solve(three_jobs()).plan
    assert [(v.rule, v.index) for v in instance.violations(without)] == [("slo", (2,))]


def test_a_ratio_of_sums_is_not_a_sum_of_ratios():
    """As built: the released code's plan keeps the V100 busy too, and is worth 22.5 instead of 50."""
    instance = three_jobs()
    fields = {name: getattr(instance, name) for name in ("throughputs", "num_workers", "costs", "steps")}
    released = formulations.solve(ThroughputPerDollar(**fields)).plan
    assert instance.objective(released) == pytest.approx(22.5)
    assert formulations.solve(instance).objective == pytest.approx(50)


@given(strategy("gavel.cost"))
def test_best_bargain_is_optimal_without_slos(instance):
    free = replace(instance, slos=np.full(instance.num_jobs, math.inf))
    plan = best_bargain(free)
    assert free.violations(plan) == []
    assert free.objective(plan) == pytest.approx(formulations.solve(free).objective, rel=1e-7)
    assert np.count_nonzero(plan.time_fractions) == 1


def test_a_constraint_of_ones_own():
    """Y is t times the plan, so a limit on shares is a limit on Y less t: job 0 has at least a tenth of the K80."""
    model = formulations.build(three_jobs(slo=3600.0))
    model.tenth = pyo.Constraint(expr=model.Y[0, 1] >= 0.1 * model.t)
    solution = formulations.solve(model)
    assert solution.status == "optimal"
    assert solution.plan.time_fractions[0, 1] >= 0.1 - 1e-9
    assert three_jobs().objective(solution.plan) == pytest.approx(formulation.bound(three_jobs(), solution.objective))


def test_slos_in_json_are_null_for_none():
    data = three_jobs(slo=3600.0).to_dict()
    assert data["slos"] == [None, None, 3600.0]
    assert Cost.from_dict(data).slo_jobs.tolist() == [2]
    del data["slos"]
    assert Cost.from_dict(data).slo_jobs.tolist() == []


def test_tight_slos_become_infeasible():
    statuses = {
        formulations.solve(generate(seed, num_jobs=20, slo_fraction=0.5, slo_tightness=3.0, workers_per_pool=4)).status
        for seed in range(6)
    }
    assert "infeasible" in statuses
    for seed in range(6):
        assert formulations.solve(generate(seed, num_jobs=20, slo_tightness=1.0)).status == "optimal"


def test_slos_far_apart():
    """Seconds beside years, so that some jobs need a ten-millionth of a worker and others all of one."""
    statuses = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        n, k = int(rng.integers(2, 40)), int(rng.integers(1, 5))
        throughputs = 10 ** rng.uniform(-1, 1, (n, k)) * 10 ** rng.uniform(-2, 3, (n, 1))
        instance = Cost(
            throughputs=throughputs,
            num_workers=rng.integers(10, 100, k),
            costs=10 ** rng.uniform(-1, 1, k),
            steps=10 ** rng.uniform(0, 2, n) * throughputs.max(axis=1),
            slos=np.where(rng.random(n) < 0.3, 10 ** rng.uniform(2, 8, n), math.inf),
        )
        solution = formulations.solve(instance)
        statuses.append(solution.status)
        assert solution.status in ("optimal", "infeasible"), seed
    assert statuses.count("optimal") >= 80
