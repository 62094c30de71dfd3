"""What Gavel (OSDI'20) states of shortest job first, put to the test."""

from __future__ import annotations

import numpy as np

from instances.gavel.sharing import Allocation
from instances.gavel.shortest_job_first import ShortestJobFirst
from validation.claims.gavel.clusters import Family
from validation.claims.gavel.properties import homogeneous, job_incentive, no_starvation, objective_incentive
from validation.testing.claims import Claim

__all__ = ["CLAIMS"]


def _shortest(instance: ShortestJobFirst) -> Allocation:
    x = np.zeros((instance.num_jobs, 1))
    x[(instance.steps / instance.throughputs[:, 0]).argmin()] = 1.0
    return Allocation(time_fractions=x)


_SMALL = Family(ShortestJobFirst, 3, (1, 2), jobs={"steps": (1.0, 2.0)})

CLAIMS: list[Claim] = [
    objective_incentive(ShortestJobFirst),
    job_incentive(_SMALL),
    homogeneous("shortest_job_first", ShortestJobFirst, _shortest, "running the job of least time left all the time."),
    no_starvation(_SMALL),
]
