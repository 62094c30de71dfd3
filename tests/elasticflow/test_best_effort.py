"""elasticflow.best_effort: idle GPUs slot by slot, and shares in the way."""

import numpy as np
import pytest

import formulations
from heuristics.elasticflow.best_effort import local_search, minimum_shares_first, shortest_first
from heuristics.elasticflow.filling import fill_cheapest, fill_together
from instances.elasticflow.best_effort import BestEffort, generate, share_in_the_way
from instances.elasticflow.sharing import SlotPlan

RULES = [minimum_shares_first, shortest_first]
HEURISTICS = [*RULES, local_search]


def test_shares_first_are_in_the_way():
    instance = share_in_the_way()
    for heuristic in RULES:
        plan = heuristic(instance)
        assert plan.gpus.tolist() == [[1, 1, 0, 0], [1, 1, 0, 0]]
        assert instance.objective(plan) == 2
    solution = formulations.solve(instance)
    assert solution.objective == 1
    assert solution.plan.gpus[:, :2].tolist() == [[0, 2], [2, 0]]


def test_local_search_moves_shares_out_of_the_way():
    instance = share_in_the_way()
    assert local_search(instance).gpus[:, :2].tolist() == [[0, 2], [2, 0]]
    better = 0
    for seed in range(12):
        instance = generate(seed, num_jobs=5, part=0.6)
        values = [instance.objective(local_search(instance, budget=budget)) for budget in (0, 60, 1000)]
        first, best = instance.objective(minimum_shares_first(instance)), formulations.solve(instance).objective
        assert first >= values[0] >= values[1] >= values[2] >= best - 1e-9
        assert values[2] <= best * 1.1
        better += values[2] < first
    assert better >= 3


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_prices_move_deadlines_out_of_the_way_of_many_short_jobs(seed):
    instance = generate(seed, num_jobs=30, num_gpus=64)
    best = formulations.solve(instance).objective
    assert instance.objective(local_search(instance)) == best
    assert instance.objective(minimum_shares_first(instance)) > 1.05 * best


def test_all_jobs_are_filled_together():
    """For job 1 to be done after a slot, job 0 has to leave it its GPU there."""
    instance = share_in_the_way()
    gpus = minimum_shares_first(instance).gpus
    ends = np.array([2, 1])
    together, filled = fill_together(instance, gpus, ends, 100)
    assert together[:, :2].tolist() == [[0, 2], [2, 0]]
    assert not together[:, 2:].any()
    assert 2 <= filled <= 10
    assert fill_together(instance, gpus, np.array([1, 1]), 100)[0] is None
    assert fill_together(instance, gpus, ends, 1)[0] is None


def test_a_job_is_filled_where_gpus_cost_least():
    """On the curve 0, 2, 3, at prices of a GPU of 2, 1 and 0.5 in three slots."""
    curve, counts = np.array([0.0, 2, 3]), np.arange(3)
    assert fill_cheapest(curve, 3, np.outer([2, 1, 0.5], counts)).tolist() == [0, 0, 2]
    assert fill_cheapest(curve, 4, np.outer([2, 1, 0.5], counts)).tolist() == [0, 1, 1]
    assert fill_cheapest(curve, 9, np.outer([2, 1, 0.5], counts)).tolist() == [2, 2, 2]
    assert fill_cheapest(curve, 9.5, np.outer([2, 1, 0.5], counts)) is None
    assert fill_cheapest(curve, 0, np.outer([2, 1, 0.5], counts)).tolist() == [0, 0, 0]


def test_idle_gpus_go_where_they_raise_throughput_most():
    """A second GPU is worth 0.9 of the first to job 1, 0.5 to job 0: two and one; the other rule gives job 0 all."""
    instance = BestEffort(
        num_gpus=3,
        iterations=[3, 6],
        deadlines=[9, 9],
        throughputs=[[0, 2, 3, 3.5], [0, 1, 1.9, 2.0]],
        best_effort=[True, True],
    )
    assert minimum_shares_first(instance).gpus[:, 0].tolist() == [1, 2]
    assert shortest_first(instance).gpus[:, 0].tolist() == [3, 0]


def test_finished_jobs_and_too_much_work():
    done = BestEffort(
        num_gpus=1, iterations=[0, 0], deadlines=[1, 3], throughputs=[[0, 1], [0, 0]], best_effort=[False, True]
    )
    for plan in (formulations.solve(done).plan, *(heuristic(done) for heuristic in HEURISTICS)):
        assert not plan.gpus.any()
        assert done.objective(plan) == 0
    empty = BestEffort(num_gpus=1, iterations=[], deadlines=[], throughputs=[], best_effort=[])
    assert all(heuristic(empty).gpus.shape == (0, 0) for heuristic in HEURISTICS)
    late = BestEffort(num_gpus=1, iterations=[4], deadlines=[3], throughputs=[[0, 1]], best_effort=[True])
    solution = formulations.solve(late)
    assert (solution.status, solution.plan) == ("infeasible", None)
    assert "job 0 needs 4 GPU-slots before slot 3, there are 3" in solution.message
    assert all(heuristic(late) is None for heuristic in HEURISTICS)


def test_completion_by_hand():
    instance = share_in_the_way()
    assert instance.completion(np.array([[0, 1, 1, 0], [2, 0, 0, 0]])).tolist() == [3, 1]
    broken = instance.violations(SlotPlan(gpus=[[0, 1, 1, 0], [2, 0, 0, 0]]))
    assert {violation.rule for violation in broken} == {"work", "after_deadline"}


def test_the_generator_has_a_best_effort_job():
    for seed in range(20):
        instance = generate(seed)
        assert instance.best_effort.any()
        assert (instance.deadlines[instance.best_effort] == instance.horizon).all()
