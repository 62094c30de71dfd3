"""Claims of Gavel (OSDI'20) about makespan."""

from __future__ import annotations

from heuristics.gavel.makespan import same_finish
from instances.gavel.makespan import Makespan
from validation.claims.claim import Claim
from validation.claims.gavel.clusters import Family
from validation.claims.gavel.properties import homogeneous, job_incentive, objective_incentive

__all__ = ["CLAIMS"]

_SMALL = Family(Makespan, 3, (1, 2), jobs={"steps": (1.0, 2.0)})

CLAIMS: list[Claim] = [
    objective_incentive(Makespan),
    job_incentive(_SMALL),
    homogeneous(
        "makespan",
        Makespan,
        same_finish,
        "time in proportion to what each job has left alone, so that all finish together.",
    ),
]
