"""gavel.throughput_per_dollar: prices, and SLOs that cannot be met."""

import pytest
from hypothesis import given

import formulations
from heuristics.gavel.throughput_per_dollar import best_bargain_first
from instances.gavel.sharing import Allocation
from instances.gavel.throughput_per_dollar import ThroughputPerDollar, generate, three_jobs
from validation.testing.strategies import strategy


def test_three_jobs():
    assert formulations.solve(three_jobs()).objective == pytest.approx(40 / 3 + 50)
    assert formulations.solve(three_jobs(slo=3600)).objective == pytest.approx(160 / 3)


def test_value_by_hand():
    """40 * 3/4 / 3 on the V100 and 50 / 1 on the K80."""
    assert three_jobs().objective(Allocation(time_fractions=[[0.75, 0], [0, 0], [0, 1.0]])) == 60


def test_pairs_count_both_partners():
    instance = ThroughputPerDollar(
        throughputs=[[2.0], [2.0]],
        num_workers=[1],
        pairs=[[0, 1]],
        pair_throughputs=[[[1.5, 1.0]]],
        costs=[2.0],
        steps=[1.0, 1.0],
    )
    assert instance.objective(Allocation(time_fractions=[[0], [0], [1]])) == 1.25
    assert formulations.solve(instance).objective == pytest.approx(1.25)


def test_the_price_is_that_of_one_worker():
    """As built: as in the released code, a job of 8 workers is charged for one."""
    wide = ThroughputPerDollar(throughputs=[[4.0]], num_workers=[8], scale_factors=[8], costs=[1.0], steps=[1.0])
    assert formulations.solve(wide).objective == pytest.approx(4)


def test_infeasible_slos_are_named():
    """As built: the released code drops SLOs that cannot be met."""
    instance = three_jobs(slo=1000.0)
    assert formulations.solve(instance).status == "infeasible"
    assert [name for name in formulations.explain(instance).constraints if name.startswith("slo")] == ["slo[2]"]


@given(strategy("gavel.throughput_per_dollar"))
def test_best_bargain_first_breaks_nothing_but_slos(instance):
    plan = best_bargain_first(instance)
    assert {violation.rule for violation in instance.violations(plan)} <= {"slo"}


def test_best_bargain_first_has_half_of_the_optimum_of_a_matching():
    for seed in range(30):
        options = {"multi_worker": False, "pair_fraction": 0.0, "slo_fraction": 0.0}
        instance = generate(seed, num_jobs=8, workers_per_pool=1 + seed % 3, **options)
        assert instance.objective(best_bargain_first(instance)) >= formulations.solve(instance).objective / 2
