"""gavel.fifo: the greedy orders beside the program."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

import formulations
from heuristics.gavel.fifo import backfilling, fastest_free_type
from instances.gavel.fifo import Fifo, generate, near_tie, three_jobs
from instances.gavel.sharing import Allocation
from validation.testing.strategies import strategy


def test_three_jobs():
    """Weights 3, 2, 1: job 0 on the V100 (3) and job 1 on the K80 (2 * 1/3)."""
    solution = formulations.solve(three_jobs())
    assert solution.objective == pytest.approx(11 / 3)
    assert np.argwhere(solution.plan.time_fractions > 0.5).tolist() == [[0, 0], [1, 1]]


def test_value_by_hand():
    plan = Allocation(time_fractions=[[0.5, 0.5], [0.5, 0], [0, 0.25]])
    assert three_jobs().objective(plan) == pytest.approx(3 * (0.5 + 0.125) + 2 * 0.5 + 0.125)


def test_the_program_is_not_the_greedy_one():
    """As built: the released code serves jobs greedily; the program moves job 0 where it loses little."""
    instance = near_tie()
    assert formulations.solve(instance).objective == pytest.approx(2.98)
    assert instance.objective(fastest_free_type(instance)) == pytest.approx(2.1)


def test_the_last_job_counts_too():
    """As built: the factor is n - m for jobs from 0, so that the last job counts 1, not 0."""
    instance = Fifo(throughputs=[[1.0], [1.0]], num_workers=[2])
    assert instance.objective(Allocation(time_fractions=[[0], [1]])) == 1


def test_the_fastest_type_is_one_that_fits():
    """As built: a type too narrow for the job is no yardstick for it."""
    instance = Fifo(throughputs=[[8.0, 2.0]], num_workers=[1, 2], scale_factors=[2])
    assert formulations.solve(instance).objective == pytest.approx(1)


def test_a_waiting_job_blocks_those_behind_it():
    instance = Fifo(throughputs=[[2.0, 1.0]] * 4, num_workers=[2, 1], scale_factors=[1, 2, 1, 1])
    blocked, filled = fastest_free_type(instance), backfilling(instance)
    assert np.argwhere(blocked.time_fractions).tolist() == [[0, 0]]
    assert np.argwhere(filled.time_fractions).tolist() == [[0, 0], [2, 0], [3, 1]]


def test_ties_go_to_the_lowest_type():
    assert fastest_free_type(Fifo(throughputs=[[1.0, 1.0]], num_workers=[1, 1])).time_fractions.tolist() == [[1, 0]]


def test_a_job_that_makes_no_steps_on_what_is_free_is_dropped():
    """As built: the released code goes on behind it, and stops only where no type has enough workers."""
    instance = Fifo(throughputs=[[1.0, 4.0], [0.0, 4.0], [1.0, 4.0]], num_workers=[1, 1])
    plan = fastest_free_type(instance)
    assert plan.time_fractions.tolist() == [[0, 1], [0, 0], [1, 0]]
    assert instance.objective(plan) == 3.25
    # Job 1 is two workers wide here: no type has enough, and job 2 does not overtake it.
    wide = replace(instance, num_workers=[1, 2], scale_factors=[1, 2, 1])
    assert fastest_free_type(wide).time_fractions.tolist() == [[0, 1], [0, 0], [0, 0]]


def served_by_the_released_code(instance):
    """The released policy's loop, written down again: types by name, those with workers for the job, the fastest."""
    free = dict(enumerate(instance.num_workers.tolist()))
    places = {}
    for job, speeds in enumerate(instance.throughputs.tolist()):
        enough = [kind for kind in sorted(free) if free[kind] >= instance.scale_factors[job]]
        if not enough:
            break
        fastest = max(enough, key=lambda kind: (speeds[kind], -kind))
        if speeds[fastest] > 0:
            places[job] = fastest
            free[fastest] -= int(instance.scale_factors[job])
    return places


@pytest.mark.parametrize("seed", range(50))
def test_the_released_code_serves_the_same_jobs(seed):
    rng = np.random.default_rng(seed)
    instance = Fifo(
        throughputs=rng.integers(0, 3, (7, 3)),
        num_workers=rng.integers(1, 4, 3),
        scale_factors=rng.choice([1, 1, 2, 3], 7),
    )
    plan = fastest_free_type(instance)
    assert dict(np.argwhere(plan.time_fractions).tolist()) == served_by_the_released_code(instance)


@given(strategy("gavel.fifo"))
def test_backfilling_is_never_worse(instance):
    blocked, filled = instance.objective(fastest_free_type(instance)), instance.objective(backfilling(instance))
    assert filled >= blocked * (1 - 1e-12)
    assert instance.violations(backfilling(instance)) == []


def test_order_matters():
    instance = generate(3, num_jobs=6, workers_per_pool=1, multi_worker=False, pair_fraction=0.0)
    turned = Fifo(throughputs=instance.throughputs[::-1], num_workers=instance.num_workers)
    assert formulations.solve(instance).objective != pytest.approx(formulations.solve(turned).objective)
