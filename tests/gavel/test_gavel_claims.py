"""What judges Gavel's claims: the small instances, and the fairest of all optimal allocations."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import formulations
from heuristics.gavel.round_assignment import priorities
from instances.base import agree
from instances.gavel.cost import Cost
from instances.gavel.fifo import Fifo
from instances.gavel.hierarchical_fairness import HierarchicalFairness
from instances.gavel.makespan import Makespan
from instances.gavel.max_min_fairness import MaxMinFairness
from instances.gavel.priced import PricedSharing
from instances.gavel.sharing import Allocation, Sharing
from instances.gavel.shortest_job_first import ShortestJobFirst
from instances.gavel.steps import SharingWithSteps
from validation.claims.gavel import hierarchical_fairness, max_min_fairness, properties, round_assignment
from validation.claims.gavel.clusters import POLICIES, Family, drawn
from validation.claims.gavel.optima import fairest_optimum, only_optimum
from validation.kinds.claims import claims, examine

ONE_WORKER: dict[str, Any] = {"throughputs": np.array([[1.0], [1.0]]), "num_workers": np.array([1])}


def fairest(instance: Sharing) -> tuple[float, Allocation]:
    found = fairest_optimum(instance)
    assert found is not None
    return found


def on_a_grid(instance: Sharing, steps: int) -> Iterator[Allocation]:
    """Every feasible allocation in whole ``steps``-ths of the time."""
    for entries in itertools.product(range(steps + 1), repeat=instance.fits.size):
        plan = Allocation(time_fractions=np.reshape(entries, instance.fits.shape) / steps)
        if not instance.violations(plan):
            yield plan


def test_families_are_complete_and_name_each_instance_once() -> None:
    family = Family(Makespan, 2, (1, 2), jobs={"steps": (1.0, 2.0)}, types={})
    listed = list(family.instances(np.random.default_rng()))
    # One job: 4 kinds on 2 pools and 8 on 3 pairs of pools; two jobs: pairs of as many kinds.
    assert len(listed) == 4 * 2 + 8 * 3 + 10 * 2 + 36 * 3
    assert len({str(instance.to_dict()) for instance in listed}) == len(listed)
    sizes = [instance.num_jobs * instance.num_types for instance in listed]
    assert sizes == sorted(sizes)


def test_jobs_in_every_order_and_none_that_fits_nowhere() -> None:
    family = Family(Fifo, 2, (1, 2), jobs={"scale_factors": (1, 2)}, ordered=True, most_types=1)
    listed = list(family.instances(np.random.default_rng()))
    # One worker serves 2 kinds of jobs, two serve 4.
    assert len(listed) == 2 + 4 + 2**2 + 4**2


@pytest.mark.parametrize("policy", POLICIES)
def test_the_fairest_optimum_is_an_optimum(policy: type[Sharing]) -> None:
    for instance in itertools.islice(drawn(policy)(np.random.default_rng(1)), 60):
        share, plan = fairest(instance)
        assert not instance.violations(plan)
        optimum = formulations.solve(instance).objective
        assert optimum is not None
        assert agree(instance.objective(plan), optimum)
        received = instance.throughput(plan) / instance.isolated_throughputs
        assert share == pytest.approx(received.min(), abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
def test_no_optimal_allocation_on_a_grid_is_fairer(policy: type[Sharing]) -> None:
    priced = {"costs": (1.0, 2.0)} if issubclass(policy, PricedSharing) else {}
    steps = {"steps": (1.0, 2.0)} if issubclass(policy, SharingWithSteps) else {}
    family = Family(policy, 2, (1, 3), jobs=steps, types=priced)
    compared = 0
    for instance in itertools.islice(family.instances(np.random.default_rng()), 0, 150, 7):
        share, _ = fairest(instance)
        optimum = formulations.solve(instance).objective
        assert optimum is not None
        for plan in on_a_grid(instance, 4):
            if agree(instance.objective(plan), optimum):
                received = instance.throughput(plan) / instance.isolated_throughputs
                assert received.min() <= share + 1e-6
                compared += 1
    assert compared


def test_shares_known_by_hand() -> None:
    # Two thirds of the time go to the job of twice the work: the other has 1/3 in place of 1/2.
    assert fairest(Makespan(**ONE_WORKER, steps=np.array([1.0, 2.0])))[0] == pytest.approx(2 / 3)
    assert fairest(MaxMinFairness(**ONE_WORKER))[0] == pytest.approx(1)
    assert fairest(Fifo(**ONE_WORKER))[0] == pytest.approx(0, abs=1e-6)
    # Two jobs tie for the shortest, and whichever goes first the other has nothing.
    assert fairest(ShortestJobFirst(**ONE_WORKER, steps=np.ones(2)))[0] == pytest.approx(0, abs=1e-6)


def test_a_share_below_isolation_is_told() -> None:
    unfair = properties._job_below_isolation(Makespan(**ONE_WORKER, steps=np.array([1.0, 2.0])))
    assert unfair is not None
    assert "at most 0.666667 of its isolated throughput" in unfair
    assert properties._job_below_isolation(MaxMinFairness(**ONE_WORKER)) is None


def test_a_wide_job_below_isolation() -> None:
    # Jobs 0 and 1 have all of the fast pool at the optimum, 2 / 1.4, and job 2 the slow one: 1 step/s.
    # In isolation it has a third of the fast time and half of the slow: 7/6.
    instance = MaxMinFairness(
        throughputs=np.array([[2.0, 1.0]] * 3), num_workers=np.array([2, 3]), scale_factors=np.array([1, 1, 2])
    )
    assert formulations.solve(instance).objective == pytest.approx(2 / 1.4)
    assert fairest(instance)[0] == pytest.approx(6 / 7)


def test_throughput_left_over_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = MaxMinFairness(throughputs=np.array([[1.0], [1.0]]), num_workers=np.array([2]))
    assert properties.wasteful(instance) is None
    half = Allocation(time_fractions=np.array([[1.0], [0.5]]))
    monkeypatch.setattr(properties, "attained", lambda _: (0.5, half))
    assert properties.wasteful(instance) == "it gives jobs 1 and 0.5 steps/s, 1 and 1 are possible"


def test_an_equal_split_overfills_a_pool_with_wide_jobs() -> None:
    instance = MaxMinFairness(throughputs=np.ones((2, 1)), num_workers=np.array([2]), scale_factors=np.array([2, 2]))
    assert max_min_fairness._infeasible(instance, max_min_fairness._split) == "it breaks pool_capacity by 2"
    assert max_min_fairness._infeasible(MaxMinFairness(**ONE_WORKER), max_min_fairness._split) is None


def test_an_optimum_is_the_only_one_or_not() -> None:
    # On one worker a half each; on two alike any division of the jobs' time among them is optimal.
    assert only_optimum(MaxMinFairness(**ONE_WORKER)) == pytest.approx(np.array([[0.5], [0.5]]), abs=1e-6)
    assert only_optimum(MaxMinFairness(throughputs=np.ones((2, 2)), num_workers=np.array([1, 1]))) is None


def test_every_round_of_algorithm_1() -> None:
    instance = MaxMinFairness(throughputs=np.ones((2, 2)), num_workers=np.array([1, 2]))
    given = np.array([[2.0, 1.0], [2.0, 1.0]])
    # Either job is first on the one worker, and the other goes to the other type.
    taken = [chosen.tolist() for chosen in round_assignment._every_round(instance, given)]
    assert sorted(taken) == [[[0, 1], [1, 0]], [[1, 0], [0, 1]]]


def test_time_on_workers_in_all_optimal_allocations() -> None:
    # Job 0 is twice as fast on the first type.
    instance = HierarchicalFairness(
        throughputs=np.array([[2.0, 1.0], [1.0, 1.0]]),
        num_workers=np.array([1, 1]),
        entities=np.array([0, 1]),
        entity_weights=np.ones(2),
        entity_policies=np.array(["fairness", "fairness"]),
    )
    levels = hierarchical_fairness._levels(instance) / 2
    most, least = (hierarchical_fairness._held(instance, levels, sign) for sign in (1, -1))
    # At half of their levels jobs can idle or run where they are slow.
    assert most[1] - most[0] > 0 > least[1] - least[0]
    assert hierarchical_fairness._shares_of_workers(instance) is None


OUTCOMES = {
    "misreporting_can_pay": "holds",
    "water_filling_example": "holds",
    "equal_split_feasible_wide": "depends on the reading",
    "one_linear_program_finish_time_fairness": "depends on the reading",
    "water_filling_by_weight": "depends on the reading",
    "highest_priorities_across_types": "depends on the reading",
    "highest_priorities_one_type": "not refuted",
    "algorithm_1_ends": "depends on the reading",
    "entity_shares_by_weight": "depends on the reading",
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_verdicts_known_by_hand(name: str) -> None:
    (claim,) = (one for one in claims("gavel") if one.name == name)
    assert examine(claim, instances=100).outcome == OUTCOMES[name]


def test_a_static_partition_by_hand() -> None:
    """Two entities of weights 1 and 3 on two types of two workers, the second one's job limited by its time."""
    instance = hierarchical_fairness.HierarchicalFairness(
        throughputs=[[4.0, 2.0], [3.0, 3.0]], num_workers=[2, 2], entities=[0, 1], entity_weights=[1.0, 3.0]
    )
    partition = hierarchical_fairness.static_partition(instance)
    assert partition.time_fractions.tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert not instance.violations(instance.plan(partition))
    assert hierarchical_fairness.total_throughput(instance, partition) == pytest.approx(3 / 4 + 1)


def test_rounds_and_the_ideal_by_hand() -> None:
    """One job on one type is alone: both take its time.  Two take turns, and end as the ideal's within a round."""
    alone = Makespan(throughputs=[[1.0]], num_workers=[1], steps=[720.0])
    average = round_assignment._average_end
    assert average(alone, "gavel.max_min_fairness", None) == average(alone, "gavel.max_min_fairness", 360.0) == 720
    both = Makespan(throughputs=[[1.0], [1.0]], num_workers=[1], steps=[720.0, 720.0])
    assert average(both, "gavel.max_min_fairness", None) == pytest.approx(1440)
    # Of four rounds the jobs have two each, and one ends a round before the other.
    assert average(both, "gavel.max_min_fairness", 360.0) == pytest.approx(1260)


def test_a_starved_job_is_told() -> None:
    instance = MaxMinFairness(**ONE_WORKER)
    assert round_assignment._starves(instance, priorities) is None

    def prefers_job_0(target: Any, received: Any) -> Any:
        return np.array([[2.0], [1.0]])

    starved = round_assignment._starves(instance, prefers_job_0)
    assert starved == "job 1 is to run 15 of the last 30 rounds, and runs in none"
    short = round_assignment._falls_short(instance, prefers_job_0)
    assert short == "after 100 rounds an entry lacks 0.5 of its fraction of time"


def test_slos_that_an_equal_split_misses_say_nothing_of_the_incentive() -> None:
    instance = Cost(**ONE_WORKER, costs=np.array([1.0]), steps=np.ones(2), slos=np.array([1.0, np.inf]))
    assert instance.violations(instance.isolated_share())
    assert properties._below_feasible_split(instance) is None
