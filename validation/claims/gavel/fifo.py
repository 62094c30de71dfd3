"""What Gavel (OSDI'20) states of first in, first out, put to the test."""

from __future__ import annotations

import numpy as np

from instances.gavel.fifo import Fifo
from instances.gavel.sharing import Allocation, Sharing
from validation.claims.gavel.clusters import Family
from validation.claims.gavel.properties import homogeneous, job_incentive, no_starvation, objective_incentive
from validation.testing.claims import Claim

__all__ = ["CLAIMS"]


def _arrival_order(instance: Sharing) -> Allocation:
    """One job after the other, for as much of its time as there are workers left."""
    left = float(instance.num_workers[0])
    x = np.zeros((instance.num_jobs, 1))
    for job, workers in enumerate(instance.scale_factors):
        x[job] = min(1.0, left / workers)
        left -= float(workers * x[job, 0])
    return Allocation(time_fractions=x)


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
        _arrival_order,
        "serving jobs of any number of workers in the order of their arrival, each for as much of its time as there "
        "are workers left.",
        _WIDE,
    ),
    no_starvation(_SMALL),
]
