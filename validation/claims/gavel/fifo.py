"""Claims of Gavel (OSDI'20) about first in, first out."""

from __future__ import annotations

import numpy as np

from instances.gavel.fifo import Fifo
from instances.gavel.sharing import Allocation, Sharing
from validation.claims.claim import Claim
from validation.claims.gavel.clusters import Family
from validation.claims.gavel.properties import homogeneous, job_incentive, objective_incentive

__all__ = ["CLAIMS"]


def _one_after_the_other(instance: Sharing, order: list[int]) -> Allocation:
    """Return the allocation that serves jobs in an order, each for as much of its time as there are workers left."""
    left = float(instance.num_workers[0])
    x = np.zeros((instance.num_jobs, 1))
    for job in order:
        workers = float(instance.scale_factors[job])
        x[job] = min(1.0, left / workers)
        left -= workers * float(x[job, 0])
    return Allocation(time_fractions=x)


def _arrival_order(instance: Sharing) -> Allocation:
    return _one_after_the_other(instance, list(range(instance.num_jobs)))


def _by_weight(instance: Sharing) -> Allocation:
    """Return the optimum of a knapsack in fractions: the most weight for each worker first."""
    weights = np.arange(instance.num_jobs, 0, -1) / instance.scale_factors
    return _one_after_the_other(instance, np.argsort(-weights, kind="stable").tolist())


_SMALL = Family(Fifo, 3, (1, 2), ordered=True)
_ONE_WORKER = Family(Fifo, 4, (1, 2), ordered=True, most_types=1, workers=(1, 2, 3))
_WIDE = Family(Fifo, 4, (1, 2), jobs={"scale_factors": (1, 2, 3)}, ordered=True, most_types=1, workers=(1, 2, 3))

CLAIMS: list[Claim] = [
    objective_incentive(Fifo),
    job_incentive(_SMALL),
    homogeneous(
        "fifo",
        Fifo,
        _arrival_order,
        "serving jobs of one worker in the order of their arrival, while workers are left.",
        _ONE_WORKER,
    ),
    homogeneous(
        "fifo_wide",
        Fifo,
        _by_weight,
        "the policy's own program on one type: sum of (n - m) * X_m, whose optimum serves jobs by weight over workers, "
        "each for as much of its time as there are workers left.",
        _WIDE,
        other=(
            _arrival_order,
            "serving jobs of any number of workers in the order of their arrival, each for as much of its time as "
            "there are workers left.",
        ),
    ),
]
