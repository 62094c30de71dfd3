"""Plans made at prices of the pools, against optima, for the policies whose objective is a sum or a ratio of sums."""

from importlib import import_module

import numpy as np
import pytest

import formulations
from heuristics.gavel import cost, throughput_per_dollar, total_throughput
from heuristics.gavel.prices import CLOSE
from instances.base import TOLERANCE
from instances.gavel.cost import Cost
from instances.gavel.cost import three_jobs as paid_jobs
from instances.gavel.fifo import near_tie
from instances.gavel.throughput_per_dollar import ThroughputPerDollar
from instances.gavel.total_throughput import TotalThroughput, three_jobs
from validation.catalogue import CATALOGUE

POLICIES = ("cost", "fifo", "throughput_per_dollar", "total_throughput")


def _parts(policy, seeds, **options):
    """Yield which part of the optimum ``priced_types`` has, where there is one; its plans break no rule."""
    heuristic = import_module(f"heuristics.gavel.{policy}").priced_types
    for seed in range(seeds):
        instance = CATALOGUE[f"gavel.{policy}"].generate(seed, **options)
        solution = formulations.solve(instance)
        if solution.status == "infeasible":
            continue
        plan = heuristic(instance)
        assert not instance.violations(plan)
        yield instance.objective(plan) / solution.objective


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("options", [{"num_types": 4}, {"unconsolidated": True, "workers_per_pool": 3}])
def test_close_without_pairs(policy, options):
    parts = list(_parts(policy, 8, num_jobs=24, pair_fraction=0.0, **options))
    assert min(parts) >= 1 - 2 * CLOSE
    assert max(parts) <= 1 + TOLERANCE


@pytest.mark.parametrize("policy", POLICIES)
def test_close_with_pairs(policy):
    parts = list(_parts(policy, 8, num_jobs=16, workers_per_pool=4, pair_fraction=1.0, multi_worker=False))
    assert np.mean(parts) >= 0.98
    assert min(parts) >= 0.95


@pytest.mark.parametrize("policy", ["cost", "throughput_per_dollar"])
def test_slos_beyond_an_equal_share_are_met(policy):
    """The plan to begin with misses them, those of some instances cannot be met, and all others are."""
    options = {"num_jobs": 10, "pair_fraction": 0.0, "slo_fraction": 0.8}
    parts = list(_parts(policy, 8, slo_tightness=1.2, **options))
    parts += _parts(policy, 8, slo_tightness=1.5, **options)
    assert 8 <= len(parts) < 16
    assert min(parts) >= 1 - 2 * CLOSE


def test_worked_examples():
    assert three_jobs().objective(total_throughput.priced_types(three_jobs())) == pytest.approx(110, rel=CLOSE)
    fifo = import_module("heuristics.gavel.fifo").priced_types(near_tie())
    assert near_tie().objective(fifo) == pytest.approx(2.98, rel=CLOSE)
    for slo, value in ((np.inf, 50), (3600, 37.5)):
        instance = paid_jobs(slo=slo)
        plan = cost.priced_types(instance)
        assert not instance.violations(plan)
        assert instance.objective(plan) == pytest.approx(value, rel=CLOSE)


def test_a_job_runs_beside_another_just_long_enough():
    """Job 0 needs 1 step/s, and has 2 beside job 1: half of the time, which makes 1 + 3 for $1/h and not for $2/h."""
    instance = Cost(
        throughputs=[[1.0], [0.0]], num_workers=[1], pairs=[[0, 1]], pair_throughputs=[[[2.0, 6.0]]],
        costs=[2.0], steps=[100.0, 0.0], slos=[100.0, np.inf],
    )  # fmt: skip
    plan = cost.priced_types(instance)
    assert not instance.violations(plan)
    assert instance.objective(plan) == formulations.solve(instance).objective == pytest.approx(4)
    faster = ThroughputPerDollar(
        throughputs=[[0.5, 1.0], [9.0, 0.0]], num_workers=[1, 1], pairs=[[0, 1]],
        pair_throughputs=[[[0.5, 8.0], [0.0, 0.0]]], costs=[1.0, 4.0], steps=[75.0, 0.0], slos=[100.0, np.inf],
    )  # fmt: skip
    plan = throughput_per_dollar.priced_types(faster)
    assert not faster.violations(plan)
    assert faster.objective(plan) == pytest.approx(formulations.solve(faster).objective, rel=CLOSE)


def test_both_of_a_pair_run_just_long_enough():
    """Job 0 runs only beside job 1, for 0.1 of the time; of its 0.5 steps/s job 1 then lacks 0.3, a tenth alone."""
    instance = Cost(
        throughputs=[[0.0], [3.0], [16.0]], num_workers=[1], pairs=[[0, 1]], pair_throughputs=[[[2.0, 2.0]]],
        costs=[1.0], steps=[20.0, 50.0, 0.0], slos=[100.0, 100.0, np.inf],
    )  # fmt: skip
    plan = cost.priced_types(instance)
    assert not instance.violations(plan)
    assert instance.objective(plan) == pytest.approx(0.1 * 4 + 0.1 * 3 + 0.8 * 16)
    assert formulations.solve(instance).objective == pytest.approx(0.1 * 4 + 0.1 * 3 + 0.8 * 16)


def test_no_miss_pays_however_much_it_frees():
    """A ten-thousandth of job 2's throughput would let job 0 leave the second type, where job 1 makes the most."""
    instance = ThroughputPerDollar(
        throughputs=[[1.0, 1e-4], [0.0, 1.0], [1.0, 0.0]], num_workers=[1, 1],
        costs=[1.0, 1.0], steps=[50.005, 100.0, 50.0], slos=[100.0, np.inf, 100.0],
    )  # fmt: skip
    plan = throughput_per_dollar.priced_types(instance)
    assert not instance.violations(plan)
    assert instance.objective(plan) == pytest.approx(formulations.solve(instance).objective, rel=CLOSE)


def test_what_cannot_be_met_is_missed_and_breaks_nothing_else():
    instance = paid_jobs(slo=1000)
    for heuristic, paid in ((cost.priced_types, instance), (throughput_per_dollar.priced_types, None)):
        asked = paid or ThroughputPerDollar(
            throughputs=instance.throughputs, num_workers=instance.num_workers,
            costs=instance.costs, steps=instance.steps, slos=instance.slos,
        )  # fmt: skip
        assert {broken.rule for broken in asked.violations(heuristic(asked))} == {"slo"}


def test_nobody_and_nowhere():
    nobody = TotalThroughput(throughputs=np.zeros((0, 2)), num_workers=[1, 1], pools=[0, 1])
    assert not nobody.violations(total_throughput.priced_types(nobody))
    nowhere = TotalThroughput(throughputs=[[1.0], [2.0]], num_workers=[1], scale_factors=[2, 3])
    assert not total_throughput.priced_types(nowhere).time_fractions.any()


def test_partners_are_matched_where_they_gain():
    """Pairs 0 with 1 and 2 with 3 gain 0.4 each, 1 with 2 the most of all, 0.5: the greedy matching is not the best."""
    instance = TotalThroughput(
        throughputs=np.ones((4, 1)), num_workers=[2], pairs=[[0, 1], [1, 2], [2, 3]],
        pair_throughputs=[[[0.7, 0.7]], [[0.75, 0.75]], [[0.7, 0.7]]],
    )  # fmt: skip
    value = instance.objective(total_throughput.priced_types(instance))
    optimum = formulations.solve(instance).objective
    assert optimum == pytest.approx(2.8)
    assert 2.5 <= value <= optimum


def test_a_job_that_needs_next_to_nothing_gets_it() -> None:
    # Two jobs that are done make the most of a dollar together, and the third needs no more than rounding leaves.
    instance = Cost(
        throughputs=[[0.75, 2.25], [4.0, 1.5], [1.5, 2.0], [2.5, 1.25]],
        num_workers=[4, 4],
        pools=[0, 1],
        scale_factors=[1, 1, 1, 1],
        pairs=[[1, 2]],
        pair_throughputs=[[[4.0, 0.0], [0.75, 1.0]]],
        steps=[0.0, 0.0, 2.0**-62, 0.0],
        costs=[1.0, 1.0],
        slos=[183.0, 183.0, 64.0, 31.0],
    )
    plan = cost.priced_types(instance)
    assert not instance.violations(plan)
    assert instance.objective(plan) >= instance.objective(cost.isolated(instance))
