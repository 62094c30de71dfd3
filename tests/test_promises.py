"""Promises of the catalogue: each fails a planted bug that it is there for, on an instance small enough to follow."""

from typing import Any

import pytest

from benchmarks.mutants import planted
from benchmarks.planted import MUTANTS
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


@pytest.mark.parametrize(
    ("content", "bug"),
    [
        (TWO_JOBS, "the least marginal return first"),
        (ONE_HAS_TO_MOVE, "the most disturbed blocks first"),
        (SERVERS_FULL, "as good as it gets is not returned"),
        (PACKS_ON_ONE_POOL, "partners who do not pack somewhere take no turns there"),
        (ONE_PAIR, "a pair has the weight of one of its jobs"),
        (ONE_WORKER_SHORT, "the lightest pairs first"),
        (TWO_OF_A_SIZE_IN_A_BLOCK, "jobs of the same size count as disturbed"),
        (TWO_POOLS, "positions counted from the front"),
        (A_QUEUE, "a job does not wait for the one before"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_a_promise_that_a_heuristic_keeps_is_broken_by_its_bug(content: dict[str, Any], bug: str) -> None:
    instance = read(content)
    (mutant,) = (mutant for mutant in MUTANTS if mutant.bug == bug)
    kept = CATALOGUE[mutant.problem].heuristics[mutant.heuristic]
    promised = [promise for promise in kept.promises if isinstance(promise, Holds)]
    assert all(promise.test(instance, kept.function(instance)) for promise in promised)
    plan = planted(mutant).function(instance)
    assert not instance.violations(plan)
    assert not all(promise.test(instance, plan) for promise in promised)
