"""Jobs that have finished, and jobs that run nowhere: what each policy's formula makes of them."""

import importlib
import itertools
import math

import numpy as np
import pytest

import formulations
from instances.gavel.cost import Cost
from instances.gavel.fifo import Fifo
from instances.gavel.finish_time_fairness import FinishTimeFairness
from instances.gavel.hierarchical_fairness import HierarchicalFairness
from instances.gavel.makespan import Makespan
from instances.gavel.max_min_fairness import MaxMinFairness
from instances.gavel.shortest_job_first import ShortestJobFirst
from instances.gavel.throughput_per_dollar import ThroughputPerDollar
from instances.gavel.total_throughput import TotalThroughput
from validation import CATALOGUE
from validation.kernel.asking import ask_here

TWO_TYPES = {"throughputs": [[4.0, 1.0], [3.0, 1.0], [2.0, 1.0]], "num_workers": [1, 1]}
TOO_WIDE = {**TWO_TYPES, "scale_factors": [1, 2, 1]}
"""Job 1 needs two workers of a type, and no type has them."""
STEPS = {"steps": [400.0, 300.0, 200.0]}
POLICIES = [problem for problem in CATALOGUE if problem.startswith("gavel.") and problem != "gavel.round_assignment"]


def best(instance):
    """The exact value, which the library's and the model's plan attain, and other solvers confirm."""
    solution = formulations.solve(instance)
    assert solution.status == "optimal", solution.message
    assert instance.violations(solution.plan) == []
    assert solution.proof
    if instance.problem not in ("gavel.finish_time_fairness", "gavel.hierarchical_fairness"):
        found = formulations.solve(formulations.build(instance))
        assert instance.objective(found.plan) == pytest.approx(solution.objective, rel=1e-6)
    other = formulations.solve(instance, solver="scip")
    assert other.status == "optimal", other.message
    assert other.objective == pytest.approx(solution.objective, rel=1e-5)
    for heuristic in CATALOGUE[instance.problem].heuristics.values():
        plan = ask_here(instance, heuristic, np.random.default_rng(0)).plan
        assert heuristic.declines if plan is None else {v.rule for v in instance.violations(plan)} <= {"slo"}
    return solution.objective


# --- finished jobs --------------------------------------------------------------------------------


@pytest.mark.parametrize("finished", list(itertools.product([False, True], repeat=3)))
def test_a_finished_job_does_not_hold_up_the_makespan(finished):
    steps = np.where(finished, 0.0, STEPS["steps"])
    value = best(Makespan(**TWO_TYPES, steps=steps))
    left = [job for job in range(3) if not finished[job]]
    if not left:
        assert value == 0
        return
    fields = {"throughputs": np.array(TWO_TYPES["throughputs"])[left], "num_workers": [1, 1], "steps": steps[left]}
    assert value == pytest.approx(formulations.solve(Makespan(**fields)).objective)


def test_a_finished_job_is_the_shortest():
    assert best(ShortestJobFirst(**TWO_TYPES, steps=[400.0, 0.0, 200.0])) == 0


def test_a_finished_job_keeps_the_ratio_of_its_two_times():
    late = FinishTimeFairness(
        **TWO_TYPES, steps=[400.0, 0.0, 200.0], elapsed=[0.0, 30.0, 0.0], isolated_elapsed=[0.0, 10.0, 0.0]
    )
    assert late.finish_time_ratios(late.isolated_share())[1] == 3
    assert best(late) == 3
    early = FinishTimeFairness(**TWO_TYPES, steps=[400.0, 0.0, 200.0])
    assert early.finish_time_ratios(early.isolated_share())[1] == 0
    # Jobs 0 and 2 halve both types, and would have had a third of each in isolation.
    assert best(early) == pytest.approx(2 / 3)
    assert best(FinishTimeFairness(**TWO_TYPES, steps=[0.0] * 3)) == 0


@pytest.mark.parametrize("policy", [Cost, ThroughputPerDollar])
def test_a_finished_job_has_met_its_slo(policy):
    instance = policy(**TWO_TYPES, costs=[2.0, 1.0], steps=[400.0, 0.0, 200.0], slos=[math.inf, 1e-9, math.inf])
    assert instance.slo_jobs.size == 0
    free = policy(**TWO_TYPES, costs=[2.0, 1.0], steps=[400.0, 0.0, 200.0])
    assert best(instance) == pytest.approx(best(free))


# --- jobs that run nowhere ------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("fields", [TOO_WIDE, {**TWO_TYPES, "throughputs": [[4.0, 1.0], [0.0, 0.0], [2.0, 1.0]]}])
def test_a_job_that_runs_nowhere(fields):
    assert best(MaxMinFairness(**fields)) == 0
    assert best(Makespan(**fields, **STEPS)) == math.inf
    assert best(Makespan(**fields, steps=[400.0, 0.0, 200.0])) == pytest.approx(400 / 2.8)
    assert best(ShortestJobFirst(**fields, **STEPS)) == pytest.approx(100)
    assert best(Fifo(**fields)) == pytest.approx(3 + 0.5)
    assert best(TotalThroughput(**fields)) == pytest.approx(5)
    assert best(FinishTimeFairness(**fields, **STEPS)) == pytest.approx(2 / 3)
    assert best(Cost(**fields, **STEPS, costs=[2.0, 1.0])) == pytest.approx(2)
    assert best(ThroughputPerDollar(**fields, **STEPS, costs=[2.0, 1.0])) == pytest.approx(3)


def test_the_reason_is_said():
    assert "job 1 can run nowhere" in formulations.solve(Makespan(**TOO_WIDE, **STEPS)).message
    assert "job 1 nothing" in formulations.solve(MaxMinFairness(**TOO_WIDE)).message


@pytest.mark.parametrize("policy", [Cost, ThroughputPerDollar])
def test_an_slo_of_a_job_that_runs_nowhere_is_infeasible_and_named(policy):
    instance = policy(**TOO_WIDE, **STEPS, costs=[2.0, 1.0], slos=[math.inf, 1e9, math.inf])
    solution = formulations.solve(instance)
    assert (solution.status, solution.plan) == ("infeasible", None)
    assert solution.proof
    assert "job 1 cannot meet the SLO" in solution.message


def test_water_filling_goes_on_without_a_job_that_runs_nowhere():
    """Levels of jobs 0 and 2 as if they were alone, but for what an equal share is."""
    without = HierarchicalFairness(throughputs=[[4.0, 1.0], [2.0, 1.0]], num_workers=[1, 1])
    levels = formulations.solve(without).plan.normalized_throughputs
    for solver in ("highs", "scip"):
        solution = formulations.solve(HierarchicalFairness(**TOO_WIDE), solver=solver)
        assert (solution.status, solution.objective) == ("optimal", pytest.approx(0, abs=1e-9))
        assert solution.plan.normalized_throughputs == pytest.approx([levels[0], 0, levels[1]], abs=1e-6)
    queue = HierarchicalFairness(**TOO_WIDE, entities=[0, 0, 0], entity_policies=["fifo"])
    assert formulations.solve(queue).plan.normalized_throughputs == pytest.approx([1.6, 0, 2 / 3])


def test_a_job_that_runs_in_pairs_only():
    """It has no yardstick, so what compares with one says nothing of it; times still count."""
    fields = {
        "throughputs": [[0.0], [2.0]],
        "num_workers": [1],
        "pairs": [[0, 1]],
        "pair_throughputs": [[[1.0, 1.0]]],
    }
    assert best(MaxMinFairness(**fields)) == 0
    assert best(Fifo(**fields)) == pytest.approx(1)
    assert best(Makespan(**fields, steps=[100.0, 100.0])) == pytest.approx(100)
    assert best(ShortestJobFirst(**fields, steps=[10.0, 100.0])) == pytest.approx(10)
    assert best(FinishTimeFairness(**fields, steps=[100.0, 100.0])) == pytest.approx(0.5)


@pytest.mark.parametrize("problem", POLICIES)
def test_nobody_fits_anywhere(problem):
    entry = CATALOGUE[problem]
    fields = entry.generate(0, num_jobs=4, pair_fraction=0.5).to_dict()
    if "slos" in fields:
        fields["slos"] = [None] * 4
    for num_workers in ([0, 0, 0], [1, 1, 1]):
        instance = entry.instance.from_dict({**fields, "scale_factors": [2] * 4, "num_workers": num_workers})
        solution = formulations.solve(instance)
        worst = {"gavel.makespan": math.inf, "gavel.shortest_job_first": math.inf}.get(problem, 0)
        assert (solution.status, solution.objective, solution.bound) == ("optimal", worst, worst)
        for heuristic in entry.heuristics.values():
            plan = ask_here(instance, heuristic, np.random.default_rng(0)).plan
            if plan is None:
                assert heuristic.declines
                continue
            assert instance.violations(plan) == []
            assert instance.objective(plan) == worst
        importlib.import_module(f"formulations.{problem}").build(instance)
