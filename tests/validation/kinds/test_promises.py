"""Promises of the catalogue: each fails a bug's plan that it is there for, on an instance small enough to follow."""

from typing import Any

import numpy as np
import pytest

from instances.files import read
from validation import CATALOGUE, Holds

TWO_JOBS = {
    "problem": "elasticflow.allocation",
    "num_gpus": 2,
    "iterations": [1.0, 1.0],
    "deadlines": [1, 2],
    "throughputs": [[0.0, 1.0, 2.0], [0.0, 1.0, 1.0]],
}
ONE_HAS_TO_MOVE = {
    "problem": "elasticflow.placement",
    "num_gpus": 4,
    "gpus_per_server": 1,
    "sizes": [1, 2],
    "previous_offsets": [0.0, 1.0],
}
SERVERS_FULL = {
    "problem": "synergy.placement",
    "num_servers": 2,
    "server_gpus": 8,
    "server_cpus": 85887.0,
    "server_memory": 500.0,
    "demands": [[8.0, 64800.0, 280.0], [1.0, 23400.0, 90.0], [4.0, 25200.0, 300.0], [1.0, 11700.0, 155.0]],
    "integral_gpus": False,
}
PACKS_ON_ONE_POOL = {
    "problem": "gavel.makespan",
    "throughputs": [[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]],
    "num_workers": [1, 1],
    "pairs": [[0, 1]],
    "pair_throughputs": [[[1.0, 1.0], [0.0, 0.0]]],
    "steps": [1.0, 1.0, 1.0],
}
ONE_PAIR = {
    "problem": "gavel.max_min_fairness",
    "throughputs": [[1.0], [1.0], [1.0]],
    "num_workers": [3],
    "scale_factors": [2, 3, 3],
    "pairs": [[1, 2]],
    "pair_throughputs": [[[1.0, 1.0]]],
    "weights": [1.0, 1.0, 1.0],
}
ONE_WORKER_SHORT = {
    "problem": "gavel.max_min_fairness",
    "throughputs": [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0]],
    "num_workers": [1, 2],
    "pools": [0, 0],
    "scale_factors": [1, 1, 1, 1],
    "pairs": [[0, 3], [1, 2]],
    "pair_throughputs": [[[1.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 2.0]]],
    "weights": [1.0, 1.0, 1.0, 1.0],
}
TWO_OF_A_SIZE_IN_A_BLOCK = {
    "problem": "elasticflow.placement",
    "num_gpus": 16,
    "gpus_per_server": 1,
    "sizes": [4, 1, 4, 1, 1, 4],
    "previous_offsets": [0.0, 12.0, 0.0, 8.0, 8.0, 13.0],
}
TWO_POOLS = {
    "problem": "gavel.makespan",
    "throughputs": [[1.0, 0.0], [1.0, 1.0]],
    "num_workers": [1, 2],
    "steps": [1.0, 1.0],
}
A_QUEUE = {
    "problem": "gavel.makespan",
    "throughputs": [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]],
    "num_workers": [8, 1, 8],
    "scale_factors": [8, 1, 8, 1],
    "steps": [1.0, 1.0, 1.0, 1.0],
}
A_LONG_AND_A_SHORT_JOB = {
    "problem": "aryl.base_allocation",
    "capacity": 1,
    "gpu_demands": [1, 1],
    "running_times": [2.0, 1.0],
}
EITHER_CAN_HAVE_ALL = {
    "problem": "aryl.two_job",
    "num_gpus": 4,
    "workloads": [1.0, 2.0],
    "min_gpus": [1, 1],
    "max_gpus": [4, 4],
}
ONE_UPGRADE_FITS = {
    "problem": "synergy.allocation",
    "num_servers": 1,
    "server_gpus": 2,
    "server_cpus": 4.0,
    "server_memory": 4.0,
    "gpu_demands": [1, 1],
    "configs": [[[1.0, 1.0, 1.0], [3.0, 1.0, 2.0]], [[1.0, 1.0, 1.0], [3.0, 1.0, 3.0]]],
}
ONE_POOL_TOO_FULL = {
    "problem": "gavel.fifo",
    "throughputs": [[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]],
    "num_workers": [1, 1, 1],
}
TWO_TYPES = {
    "problem": "gavel.max_min_fairness",
    "throughputs": [[2.0, 1.0]],
    "num_workers": [1, 1],
    "weights": [1.0],
}
IN_PLACE = {
    "problem": "afs.gpu_placement",
    "regulated": [1, 1],
    "num_machines": 2,
    "gpus_per_machine": 1,
    "previous": [[0, 1], [1, 0]],
}


@pytest.mark.parametrize(
    ("content", "heuristic", "bug", "decisions"),
    [
        (A_LONG_AND_A_SHORT_JOB, "shortest_job_first", "the longest job first", [0.0, 2.0]),
        (EITHER_CAN_HAVE_ALL, "closed_form", "the longer job is favoured", [1, 3]),
        (ONE_UPGRADE_FITS, "greedy_marginal", "the least worthy upgrade first", [1, 0]),
        (ONE_POOL_TOO_FULL, "heterogeneity_agnostic", "moved to all pools", [[0.0, 0.5, 0.5], [1.0, 0.0, 0.0]]),
        (TWO_TYPES, "approximate_waterfiller", "the first type alone", [[1.0, 0.0]]),
        (IN_PLACE, "first_fit_decreasing_in_place", "the lowest machine first", [[1, 0], [0, 1]]),
        (TWO_JOBS, "greedy_marginal_return_repaired", "the least marginal return first", [[2, 0], [0, 1]]),
        (ONE_HAS_TO_MOVE, "buddy_repack", "the most disturbed blocks first", [2, 0]),
        (
            SERVERS_FULL,
            "swap_fit",
            "as good as it gets is not returned",
            [[0.875, 0.125], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]],
        ),
        (
            PACKS_ON_ONE_POOL,
            "random_packing",
            "partners who do not pack somewhere take no turns there",
            [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.5, 0.0]],
        ),
        (
            ONE_PAIR,
            "random_packing",
            "a pair has the weight of one of its jobs",
            [[0.75], [0.0], [0.0], [0.5]],
        ),
        (
            ONE_WORKER_SHORT,
            "matched_packing",
            "the lightest pairs first",
            [[0.0, 0.0], [0.0, 0.25], [0.0, 0.25], [0.0, 0.0], [0.5, 0.0], [0.0, 0.0]],
        ),
        (
            TWO_OF_A_SIZE_IN_A_BLOCK,
            "buddy_repack",
            "jobs of the same size count as disturbed",
            [0, 12, 4, 13, 14, 8],
        ),
        (TWO_POOLS, "allox", "positions counted from the front", [[0.5, 0.0], [0.5, 0.0]]),
        (
            A_QUEUE,
            "agnostic_fifo",
            "a job does not wait for the one before",
            [[0.5, 0.0, 0.0], [0.0, 0.0, 0.5], [0.0, 0.0, 0.5], [0.0, 0.5, 0.0]],
        ),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_a_promise_that_a_heuristic_keeps_is_broken_by_its_bug(
    content: dict[str, Any], heuristic: str, bug: str, decisions: list[Any]
) -> None:
    instance = read(content)
    kept = CATALOGUE[instance.problem].heuristics[heuristic]
    promised = [promise for promise in kept.promises if isinstance(promise, Holds)]
    own = kept.function(instance)

    def all_hold(plan: Any) -> bool:
        # The stream that random heuristics draw from by themselves.
        return all(promise.test(instance, plan, *[np.random.default_rng(0)] * promise.stream) for promise in promised)

    assert all_hold(own)
    (field,) = own.to_dict()
    plan = type(own).from_dict({field: decisions})
    assert not instance.violations(plan)
    assert not all_hold(plan), bug
