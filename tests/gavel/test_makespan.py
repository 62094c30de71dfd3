"""gavel.makespan: what the bound is made of, and durations far apart."""

import math

import numpy as np
import pyomo.environ as pyo
import pytest

import formulations
from formulations.gavel import makespan as formulation
from heuristics.gavel import makespan as heuristics
from instances.gavel.makespan import Makespan, generate, three_jobs
from instances.gavel.sharing import Allocation


def test_three_jobs():
    solution = formulations.solve(three_jobs())
    assert solution.objective == pytest.approx(200)
    assert solution.bound == pytest.approx(200)
    assert three_jobs().objective(three_jobs().isolated_share()) == pytest.approx(240)


def test_value_by_hand():
    instance = three_jobs()
    plan = Allocation(time_fractions=[[0.5, 0.5], [0.25, 0], [0.25, 0]])
    assert instance.times_left(plan).tolist() == [160, 400, 400]
    assert instance.objective(plan) == 400


def test_a_job_without_time_never_finishes():
    instance = three_jobs()
    plan = Allocation(time_fractions=[[1, 0], [0, 1], [0, 0]])
    assert instance.violations(plan) == []
    assert instance.objective(plan) == math.inf
    assert formulations.relative_gap(instance.objective(plan), 200.0) == math.inf


def test_the_bound_is_the_reciprocal_of_the_rate():
    instance = three_jobs()
    assert formulation.bound(instance, 1.2) == pytest.approx(200)
    assert formulation.bound(instance, math.inf) == 0
    assert formulation.bound(instance, -math.inf) == math.inf
    assert formulation.bound(instance, 0.0) == math.inf


def test_no_time_leaves_a_true_bound(monkeypatch):
    late = formulations.Result("unknown", None, math.inf, None, 0.0, "Time limit reached")
    monkeypatch.setattr(formulations.Session, "run", lambda *_, **__: late)
    solution = formulations.solve(three_jobs())
    monkeypatch.undo()
    assert (solution.status, solution.plan) == ("feasible", three_jobs().isolated_share())
    assert 0 < solution.bound <= formulations.solve(three_jobs()).objective


def test_a_constraint_of_ones_own():
    """Job 2 must not have more than half of the K80: jobs 0 and 1 lose V100 time to it."""
    model = formulations.build(three_jobs())
    model.half = pyo.Constraint(expr=model.X[2, 1] <= 0.5)
    solution = formulations.solve(model)
    assert solution.status == "optimal"
    limited = three_jobs().objective(solution.plan)
    assert limited > 200
    assert solution.plan.time_fractions[2, 1] <= 0.5 + 1e-9
    assert limited == pytest.approx(240 / solution.objective)


def test_not_within_five_percent_as_released():
    """As built: the released code halves an interval of times until its ends are within 5%, from 100 s upward.

    The same loop, with an exact test of feasibility, stops at a plan that is up to 5% too long.
    """
    instance = three_jobs()
    least = formulations.solve(instance).objective
    shortest, longest = 100.0, 1e6
    while 1.05 * shortest < longest:
        middle = (shortest + longest) / 2
        shortest, longest = (shortest, middle) if middle >= least else (middle, longest)
    assert longest > least * 1.01
    assert least == pytest.approx(200, rel=1e-9)


def test_durations_far_apart():
    """Seconds beside years: the long job alone decides, and tolerances do not swallow the short one."""
    instance = Makespan(throughputs=[[1.0], [1.0]], num_workers=[2], steps=[1.0, 1e8])
    solution = formulations.solve(instance)
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(1e8)
    assert instance.times_left(solution.plan)[0] <= 1e8 * (1 + 1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_spread_of_durations(seed):
    even = generate(seed, num_jobs=30, duration_spread=0.0)
    assert np.ptp(np.log10(even.steps / even.throughputs.max(axis=1))) < 1e-3
    assert np.ptp(np.log10(generate(seed, num_jobs=30).steps / even.throughputs.max(axis=1))) > 0.5


def test_same_finish_is_the_best_of_its_kind():
    """By hand: in the mix of half V100, half K80 jobs take 160, 150 and 400/3 s, in all 1330/3 on 2 workers."""
    instance = three_jobs()
    plan = heuristics.same_finish(instance)
    assert instance.times_left(plan) == pytest.approx([665 / 3] * 3)
    alone = Makespan(throughputs=[[2.0]], num_workers=[1], steps=[10.0])
    assert alone.objective(heuristics.same_finish(alone)) == 5
