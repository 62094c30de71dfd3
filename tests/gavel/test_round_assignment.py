"""Rounds: the exact knapsack against plain enumeration, Algorithm 1, and the mechanism repeated."""

import itertools
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import formulations
import instances
from heuristics.gavel.round_assignment import greedy_priority, priorities, simulate
from instances.base import InstanceError
from instances.gavel.max_min_fairness import three_jobs
from instances.gavel.round_assignment import RoundAssignment, RoundAssignmentPlan, blocked_round, generate
from validation.problems.gavel.round_assignment import strategy as round_assignment


def best_by_enumeration(instance: RoundAssignment) -> float:
    """Try every set of (row, type) entries that breaks no rule, with plain loops."""
    rows, types = instance.priorities.shape
    members = [{m} for m in range(instance.num_jobs)] + [set(pair) for pair in instance.pairs.tolist()]
    best = 0.0

    def extend(row: int, busy: set[int], left: list[int], value: float) -> None:
        nonlocal best
        best = max(best, value)
        if row == rows:
            return
        extend(row + 1, busy, left, value)
        if members[row] & busy:
            return
        wide = int(instance.scale_factors[min(members[row])])
        for kind in range(types):
            pool = int(instance.pools[kind])
            if left[pool] >= wide:
                remaining = list(left)
                remaining[pool] -= wide
                extend(row + 1, busy | members[row], remaining, value + float(instance.priorities[row, kind]))

    extend(0, set(), instance.num_workers.tolist(), 0.0)
    return best


@settings(max_examples=300)
@given(round_assignment())
def test_optimum_equals_enumeration(instance: RoundAssignment) -> None:
    solution = formulations.solve(instance)
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(best_by_enumeration(instance), abs=1e-9)


@settings(max_examples=40)
@given(round_assignment())
def test_scip_agrees(instance: RoundAssignment) -> None:
    exact = formulations.solve(instance)
    if ((instance.priorities > 0) & instance.fits).any():
        assert formulations.solve(instance, solver="scip").objective == pytest.approx(exact.objective, abs=1e-6)
    else:
        assert exact.objective == 0


@given(round_assignment())
def test_algorithm_1_is_feasible_and_never_better(instance: RoundAssignment) -> None:
    plan = greedy_priority(instance)
    assert not instance.violations(plan)
    assert instance.objective(plan) <= best_by_enumeration(instance) + 1e-9
    assert greedy_priority(instance) == plan


@given(round_assignment())
def test_json(instance: RoundAssignment) -> None:
    assert instances.read(json.loads(json.dumps(instance.to_dict()))) == instance
    plan = greedy_priority(instance)
    assert RoundAssignmentPlan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan


def test_a_wide_job_blocks_three() -> None:
    instance = blocked_round()
    assert instance.objective(greedy_priority(instance)) == 4
    assert formulations.solve(instance).objective == 9


def test_greedy_stops_when_no_row_is_left() -> None:
    """As printed, the loop runs until no worker is left, which here never happens."""
    instance = RoundAssignment(scale_factors=np.array([1]), num_workers=np.array([5]), priorities=np.array([[2.0]]))
    assert greedy_priority(instance).chosen.tolist() == [[True]]


def test_start_plan() -> None:
    instance = generate(3, num_jobs=12)
    solution = formulations.solve(instance, start=greedy_priority(instance))
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(formulations.solve(instance).objective)


def test_never_served_rows_come_first() -> None:
    target = np.array([[0.2, 0.0], [0.8, 0.5]])
    received = np.array([[0.0, 3.0], [2.0, 5.0]])
    found = priorities(target, received)
    assert found[0, 0] > found[1].max()
    assert found[0, 1] == 0
    assert found[1, 0] == pytest.approx(0.8 / 0.2)
    assert found[1, 1] == pytest.approx(0.5 / 0.5)


def test_rounds_realise_the_example_of_section_4() -> None:
    """One V100 and one K80: the shortfall shrinks with the number of rounds."""
    instance = three_jobs()
    plan: Any = formulations.solve(instance).plan
    shortfalls = [simulate(instance, plan, rounds).shortfall for rounds in (11, 110, 1100)]
    assert shortfalls[0] >= shortfalls[1] >= shortfalls[2]
    assert shortfalls[2] <= 2 / 1100


def test_no_round_can_realise_some_allocations() -> None:
    """Two gangs of two on a pool of three workers: each can run 3/4 of the time, never both at once."""
    from instances.gavel.max_min_fairness import MaxMinFairness
    from instances.gavel.sharing import Allocation

    instance = MaxMinFairness(throughputs=np.ones((2, 1)), num_workers=np.array([3]), scale_factors=np.array([2, 2]))
    target = Allocation(time_fractions=np.array([[0.75], [0.75]]))
    assert not instance.violations(target)
    assert simulate(instance, target, 200).shortfall == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"priorities": [[1.0], [1.0], [1.0]]}, "priorities"),
        ({"priorities": [[1.0], [-1.0]]}, "priorities"),
        ({"pairs": [[0, 0]], "priorities": [[1.0], [1.0], [1.0]]}, "pairs"),
        ({"pairs": [[0, 2]], "priorities": [[1.0], [1.0], [1.0]]}, "pairs"),
        ({"scale_factors": [1, 0]}, "scale_factors"),
        ({"num_workers": [-1]}, "num_workers"),
        ({"pools": [1]}, "pools"),
    ],
)
def test_bad_input_names_the_field(changes: dict[str, Any], field: str) -> None:
    good = {"scale_factors": [1, 1], "num_workers": [2], "priorities": [[1.0], [1.0]]}
    with pytest.raises(InstanceError, match=rf"RoundAssignment\.{field}"):
        RoundAssignment(**{**good, **changes})


def test_generated_rounds_are_worth_solving() -> None:
    gaps = []
    for seed in range(30):
        instance = generate(seed, num_jobs=12)
        optimum = formulations.solve(instance).objective
        assert optimum is not None
        gaps.append(1 - instance.objective(greedy_priority(instance)) / optimum)
    assert max(gaps) > 0.05
    assert list(itertools.filterfalse(lambda gap: gap >= -1e-9, gaps)) == []


def test_rounds_realise_the_example_of_section_3() -> None:
    """X_example: three jobs on three types of one worker each, every job and every worker always busy."""
    from instances.gavel.max_min_fairness import MaxMinFairness
    from instances.gavel.sharing import Allocation

    instance = MaxMinFairness(throughputs=np.ones((3, 3)), num_workers=np.ones(3, int))
    target = Allocation(time_fractions=np.array([[0.6, 0.4, 0.0], [0.2, 0.6, 0.2], [0.2, 0.0, 0.8]]))
    assert not instance.violations(target)
    assert simulate(instance, target, 1000).shortfall <= 0.02
