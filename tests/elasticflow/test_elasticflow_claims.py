"""What judges ElasticFlow's claims: the enumeration of plans, of sets of jobs, and of clusters."""

from __future__ import annotations

import math

import numpy as np
import pyomo.environ as pyo
import pytest

from heuristics.elasticflow.allocation import _Growth, greedy_marginal_return, greedy_marginal_return_repaired
from heuristics.elasticflow.filling import fill_jobs
from heuristics.elasticflow.minimum_satisfactory_share import progressive_filling
from instances.elasticflow.allocation import ElasticFlowAllocation, equal_jobs, overrun_as_printed
from instances.elasticflow.minimum_satisfactory_share import MinimumSatisfactoryShare
from instances.elasticflow.sharing import SlotPlan
from validation.claims.elasticflow import allocation, minimum_satisfactory_share, placement
from validation.claims.elasticflow.sharing import alike

from ..claims import every


def has_fractional_plan(instance: MinimumSatisfactoryShare) -> bool:
    """Whether GPU-slots of any fraction do all the work of jobs of linear curves, by a linear program."""
    model = pyo.ConcreteModel()
    places = [(job, slot) for job, deadline in enumerate(instance.deadlines.tolist()) for slot in range(deadline)]
    model.gpus = pyo.Var(places, domain=pyo.NonNegativeReals)
    model.rules = pyo.ConstraintList()
    for job, (need, rate) in enumerate(zip(instance.iterations, instance.throughputs[:, 1], strict=True)):
        held = sum(model.gpus[place] for place in places if place[0] == job)
        model.rules.add(float(rate) * held >= float(need))
    for slot in range(instance.horizon):
        held = sum(model.gpus[place] for place in places if place[1] == slot)
        model.rules.add(held <= instance.num_gpus)
    model.used = pyo.Objective(expr=pyo.quicksum(model.gpus.values()))
    found = pyo.SolverFactory("appsi_highs").solve(model, load_solutions=False)
    return bool(found.solver.termination_condition == pyo.TerminationCondition.optimal)


def test_parts_of_gpus_are_as_good_as_fractions() -> None:
    sets = every(13, minimum_satisfactory_share._linear(2, 2, 3), 65)
    found = [minimum_satisfactory_share._has_plan(instance, fractions=True) for instance in sets]
    assert found == [has_fractional_plan(instance) for instance in sets]
    assert len(set(found)) == 2


def test_the_condition_counts_exactly() -> None:
    # Three thirds are a whole GPU-slot.
    thirds = MinimumSatisfactoryShare(
        num_gpus=1, iterations=np.ones(3), deadlines=np.ones(3, int), throughputs=np.tile([0.0, 3.0], (3, 1))
    )
    assert minimum_satisfactory_share._condition(thirds)
    assert not minimum_satisfactory_share._condition(thirds, rounded=True)


def test_sets_of_jobs_are_all_there_once() -> None:
    listed = list(minimum_satisfactory_share._concave(1, 2, 2))
    kinds = {
        (instance.num_gpus, *instance.iterations, *instance.deadlines, *instance.throughputs[0]) for instance in listed
    }
    assert len(kinds) == len(listed)
    assert all(instance.concave for instance in listed)
    one_gpu = sum(deadline * rate for deadline in (1, 2) for rate in (1, 2))
    curves = [(1, 1), (1, 2), (2, 2), (2, 3), (2, 4)]
    two_gpus = sum(deadline * most for deadline in (1, 2) for _, most in curves)
    assert len(listed) == one_gpu + two_gpus


def test_sets_of_one_curve_are_all_there_once() -> None:
    listed = list(alike(MinimumSatisfactoryShare))
    jobs = [tuple(sorted(zip(one.iterations, one.deadlines, strict=True))) for one in listed]
    assert len(set(jobs)) == len(jobs)
    # 3 + 6 + 9 jobs; sets of one, two and three of them.
    assert len(jobs) == 18 + math.comb(19, 2) + math.comb(20, 3)
    assert all(one.throughputs.tolist() == [[0, 2, 3]] * one.num_jobs for one in listed)


def test_filling_forwards_is_algorithm_1_with_the_slots_turned_round() -> None:
    instance = MinimumSatisfactoryShare(num_gpus=2, iterations=[5.0], deadlines=[3], throughputs=[[0.0, 2, 3]])
    backwards, forwards = progressive_filling(instance), minimum_satisfactory_share._forwards(instance)
    assert backwards is not None
    assert forwards is not None
    assert backwards.gpus.tolist() == [[1, 1, 1]]
    assert forwards.gpus.tolist() == [[1, 1, 1]]
    company = MinimumSatisfactoryShare(
        num_gpus=1, iterations=[1.0, 1.0], deadlines=[2, 3], throughputs=[[0.0, 1], [0.0, 1]]
    )
    backwards, forwards = progressive_filling(company), minimum_satisfactory_share._forwards(company)
    assert backwards is not None
    assert forwards is not None
    assert backwards.gpus.tolist() == [[0, 1, 0], [0, 0, 1]]
    assert forwards.gpus.tolist() == [[1, 0, 0], [0, 1, 0]]


def test_handing_out_is_filled_by_algorithm_1() -> None:
    plan = allocation._filled(equal_jobs(), (4, 4))
    assert plan is not None
    assert plan.gpus.tolist() == [[4, 0], [4, 0]]
    # By the lowest job at each tie 9 GPU-slots, by another way of breaking them 8.
    assert equal_jobs().objective(greedy_marginal_return_repaired(equal_jobs())) == 9
    assert {equal_jobs().objective(found) for _, found in both_ways(equal_jobs())} == {8, 9}
    assert allocation._hands_out_worse(equal_jobs()) is None


def both_ways(instance: ElasticFlowAllocation) -> list[tuple[ElasticFlowAllocation, SlotPlan]]:
    return allocation._grown(instance, greedy_marginal_return_repaired)


def repaired_by_hand(instance: ElasticFlowAllocation, gpus: np.ndarray) -> set[int]:
    """GPU-slots at which the repaired algorithm can end from a plan, whichever of equal marginal returns is served."""
    growth = _Growth(instance, gpus.copy())
    able = [job for job in range(instance.num_jobs) if growth.faster(job)] if growth.free[0] > 0 else []
    if not able:
        return {int(gpus.sum())}
    most = max(map(growth.marginal_return, able))
    ends = set()
    for job in able:
        if growth.marginal_return(job) == most:
            after = _Growth(instance, gpus.copy())
            after.grow(job)
            ends |= repaired_by_hand(instance, after.gpus)
    return ends


def test_every_way_to_break_ties_is_followed() -> None:
    several = 0
    for instance in (equal_jobs(), *every(9, allocation._pairs())):
        shares = fill_jobs(instance, np.arange(instance.num_jobs))
        if shares is None:
            assert both_ways(instance) == []
            continue
        ends = {int(instance.objective(plan)) for _, plan in both_ways(instance)}
        assert ends == repaired_by_hand(instance, shares)
        several += len(ends) > 1
    assert several


def test_algorithm_2_as_printed_can_overrun_however_ties_are_broken() -> None:
    plans = allocation._grown(overrun_as_printed(), greedy_marginal_return)
    assert plans
    for instance, plan in plans:
        assert [(broken.rule, broken.index, broken.amount) for broken in instance.violations(plan)] == [
            ("capacity", (2,), 1.0)
        ]


def test_levels_of_powers_of_two_as_printed_can_give_three() -> None:
    free = np.array([3])
    curve = np.arange(5.0)
    filled = minimum_satisfactory_share._fill_by_powers_of_two(curve, 3.0, free)
    assert filled is not None
    assert filled.tolist() == [3]
    assert minimum_satisfactory_share._fill_by_powers_of_two(curve, 4.0, free) is None


def test_three_gpus_count_where_no_order_of_equal_deadlines_avoids_them() -> None:
    def errs(deadline: int, iterations: float) -> str | None:
        """A job of one GPU that is due after a slot, and one that does an iteration on each GPU in any slot."""
        instance = MinimumSatisfactoryShare(
            num_gpus=4,
            iterations=np.array([iterations, 1.0]),
            deadlines=np.array([deadline, 1]),
            throughputs=np.array([[0.0, 1, 2, 3, 4], [0.0, 1, 1, 1, 1]]),
        )
        return minimum_satisfactory_share._other_numbers(instance, rounded=False)

    # Of two slots the second job leaves three GPUs and four, and as many iterations are 7; the levels do 1, 2, 4 and
    # 4, 6, 7. With one slot, the job that goes first decides: after the wide one nothing is left for the other.
    assert errs(2, 7.0) == "a job gets 3 GPUs in slot 0"
    assert errs(2, 4.0) is None
    assert errs(1, 3.0) is None


@pytest.mark.parametrize(("num_gpus", "layouts"), [(1, 2), (2, 5), (3, 10), (4, 26), (8, 677)])
def test_layouts_are_all_there_once(num_gpus: int, layouts: int) -> None:
    # Of 2 s GPUs: one block, or anything on the one and on the other half.
    found = list(placement._layouts(num_gpus))
    assert len(found) == len(set(found)) == layouts
    for blocks in found:
        held = [gpu for offset, size in blocks for gpu in range(offset, offset + size)]
        assert len(held) == len(set(held))
        assert all(offset % size == 0 and offset + size <= num_gpus for offset, size in blocks)


def test_sizes_are_all_there_once() -> None:
    assert sorted(placement._sizes(3)) == [(1,), (1, 1), (1, 1, 1), (2,), (2, 1)]
    assert not list(placement._sizes(0))


def test_fitting_on_servers() -> None:
    assert placement._splits_a_job(placement._cluster(6, (), (2, 2, 1, 1))) is None
    assert placement._splits_a_job(placement._cluster(6, (), (2, 2, 2))) is not None


def test_examples_with_other_numbers_break_their_claims() -> None:
    claims = minimum_satisfactory_share
    # With a slot more, B's deadline is met too; with one less, a GPU each is too slow.
    longer, shorter = (
        MinimumSatisfactoryShare(
            num_gpus=2, iterations=np.full(2, 3.0), deadlines=deadlines, throughputs=np.tile([0, 0.5, 0.75], (2, 1))
        )
        for deadlines in (np.array([6, 8]), np.array([5, 7]))
    )
    assert claims._other_deadlines(longer) == "in time by earliest deadline first: 0 and 1; with a GPU each: 0 and 1"
    assert claims._other_deadlines(shorter) == "in time by earliest deadline first: 0; with a GPU each: 1"
    later = MinimumSatisfactoryShare(
        num_gpus=4, iterations=np.array([3.0]), deadlines=np.array([3]), throughputs=np.array([[0, 1, 1.5, 1.75, 2]])
    )
    assert claims._other_shares(later) == "the last job gets 1, 1 and 1 GPUs"
    assert claims._other_usage(later, {later: 4}) == "3 GPU-slots are the least"
