"""What tests of claims share: instances of a stream, and optima."""

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np

import formulations
from instances.aryl.reclaim import Reclaim


def every(step: int, stream: Iterable[Any], number: int = 12) -> list[Any]:
    """So many instances of a stream, ``step`` apart."""
    found = list(itertools.islice(stream, 0, number * step, step))
    assert len(found) == number
    return found


def optimum(instance: Any) -> float:
    solution = formulations.solve(instance)
    assert solution.status == "optimal"
    assert solution.objective is not None
    return solution.objective


def cluster(num_jobs: int, num_servers: int = 3) -> Reclaim:
    """A cluster of equal jobs on equal servers, for claims that are made up."""
    hosts = np.ones((num_jobs, num_servers), bool)
    return Reclaim(hosts=hosts, gpus=4 * hosts, demand=2)
