"""Which jobs run in a round, by policy and by GPUs; and what the machines of several types are then used for."""

import itertools

import numpy as np
import pytest

import formulations
from formulations.synergy.heterogeneous_allocation import improve_utilization
from heuristics.synergy.tuning import tune
from instances.synergy.heterogeneous_allocation import HeterogeneousAllocation
from instances.synergy.queue import fifo, ftf, las, runnable, srtf
from instances.synergy.tuning import Tuning, generate

from ..effort import rounds
from .small import cluster_of


def test_policies_order_the_queue() -> None:
    assert fifo([3.0, 1.0, 2.0, 1.0]).tolist() == [1, 3, 2, 0]
    assert srtf([30.0, 10.0, 20.0]).tolist() == [1, 2, 0]
    assert las([0.0, 50.0, 0.0]).tolist() == [0, 2, 1]
    # The job that takes four times as long as on its own comes first.
    assert ftf([1.5, 4.0, 1.5]).tolist() == [1, 0, 2]
    for policy in (fifo, srtf, las, ftf):
        assert policy([]).tolist() == []
        with pytest.raises(ValueError, match="one number for each job"):
            policy([1.0, np.nan])


def test_runnable_jobs_are_the_first_whose_gpus_fit() -> None:
    assert runnable([4, 2, 2, 1], 8, range(4)).tolist() == [0, 1, 2]
    assert runnable([4, 2, 2, 1], 8, [3, 0, 1, 2]).tolist() == [3, 0, 1]
    # The job of 8 GPUs cannot have them beside the first one.
    assert runnable([4, 8, 2, 2], 8, range(4)).tolist() == [0, 2, 3]
    assert runnable([4, 8, 2, 2], 8, range(4), skip=False).tolist() == [0]
    assert runnable([], 8, []).tolist() == []
    with pytest.raises(ValueError, match=r"gpu_demands: got 0 at index \[1\]"):
        runnable([1, 0], 8, range(2))


def test_runnable_jobs_by_definition() -> None:
    """No job before the end of the queue has its GPUs left, and whoever runs had them when it was its turn."""
    rng = np.random.default_rng(0)
    for _ in rounds(70):
        demands = rng.integers(1, 6, int(rng.integers(1, 9)))
        order = rng.permutation(len(demands)).tolist()
        found = runnable(demands, 8, order).tolist()
        assert demands[found].sum() <= 8
        for job in set(order) - set(found):
            before = [other for other in order[: order.index(job)] if other in found]
            assert demands[job] > 8 - demands[before].sum()
        top = runnable(demands, 8, order, skip=False).tolist()
        assert top == order[: len(top)]


def test_a_round_of_a_longer_queue_runs_whole_under_tune() -> None:
    """The demands of the runnable jobs play no part in which they are, and Tune leaves none of them out."""
    queue = generate(0, num_servers=2, load=3.0)
    assert queue.gpu_demands.sum() == 48
    assert formulations.solve(queue).status == "infeasible"
    jobs = runnable(queue.gpu_demands, queue.num_gpus, fifo(np.arange(queue.num_jobs)))
    instance = queue.restricted_to(jobs)
    assert isinstance(instance, Tuning)
    assert instance.gpu_demands.tolist() == queue.gpu_demands[jobs].tolist()
    assert instance.fair_throughputs.tolist() == queue.fair_throughputs[jobs].tolist()
    assert instance.gpu_demands.sum() == 16
    assert instance.violations(tune(instance)) == []


# --- machine types ------------------------------------------------------------------------------


def two_types(*gpu_demands: int, gpus: tuple[int, int] = (2, 2)) -> HeterogeneousAllocation:
    """Jobs that are twice as fast on the second of two machines, with a core for each GPU."""
    return HeterogeneousAllocation(
        **cluster_of([1, 1], gpus, np.array(gpus, float), [0.0, 0.0]),
        gpu_demands=gpu_demands,
        configs=[[[g, 0, g], [g, 0, 2 * g]] for g in gpu_demands],
        config_types=[[0, 1]] * len(gpu_demands),
    )


def test_a_job_that_no_type_holds_leaves_its_gpus_to_the_next() -> None:
    """Three GPUs are in all for the second job, but no type has them; two jobs of one GPU take their place."""
    instance = two_types(1, 3, 1, 1, 1)
    assert "job 1 wants 3 GPUs of one type" in formulations.solve(instance.restricted_to([0, 1])).message
    choices = improve_utilization(instance).choices.tolist()
    assert choices[1] == -1
    assert sorted(choices[:1] + choices[2:]) == [0, 0, 1, 1]
    # From the other end of the queue, the last job comes first and has the faster machine.
    assert improve_utilization(instance, order=[4, 1, 3, 2, 0]).choices[4] == 1


def test_what_is_left_is_used_until_no_waiting_job_fits() -> None:
    rng = np.random.default_rng(1)
    for _ in range(15):
        instance = two_types(*rng.integers(1, 4, int(rng.integers(1, 6))).tolist(), gpus=(2, 3))
        plan = improve_utilization(instance)
        running = np.flatnonzero(plan.choices >= 0)
        part = instance.restricted_to(running)
        assert part.violations(type(plan)(choices=plan.choices[running])) == []
        free = instance.capacity[:, 2].copy()
        for job in running.tolist():
            free[plan.choices[job]] -= instance.gpu_demands[job]
        assert all(instance.gpu_demands[job] > free.max() for job in np.flatnonzero(plan.choices < 0).tolist())


def test_each_type_has_a_second_stage() -> None:
    instance = HeterogeneousAllocation(
        **cluster_of([1, 2], [2, 2], [4.0, 4.0], [8.0, 8.0]),
        gpu_demands=[2, 1, 1, 2],
        configs=[[[2, 2, 1], [4, 4, 4]]] * 4,
        config_types=[[0, 1]] * 4,
        fair_throughputs=[0.0] * 4,
    )
    plan = type(formulations.solve(instance).plan)(choices=[1, 0, 0, -1])
    first, second = (instance.placement(plan, kind) for kind in (0, 1))
    assert instance.jobs_on(plan, 0).tolist() == [1, 2]
    assert first.demands.tolist() == [[1, 2, 2], [1, 2, 2]]
    assert (first.num_servers, second.num_servers) == (1, 2)
    assert second.demands.tolist() == [[2, 4, 4]]
    assert [formulations.solve(stage).objective for stage in (first, second)] == [0, 0]
    # No job at all on a type is no trouble.
    nowhere = type(plan)(choices=[1, 1, -1, -1])
    assert formulations.solve(instance.placement(nowhere, 0)).objective == 0


def test_every_order_of_the_queue_serves_its_first_job() -> None:
    instance = two_types(2, 1, 2)
    for order in itertools.permutations(range(3)):
        assert improve_utilization(instance, order=order).choices[order[0]] >= 0
