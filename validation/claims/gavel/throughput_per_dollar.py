"""Claims of Gavel (OSDI'20) about throughput per dollar."""

from __future__ import annotations

from instances.gavel.throughput_per_dollar import ThroughputPerDollar
from validation.claims.claim import Claim
from validation.claims.gavel.clusters import Family
from validation.claims.gavel.properties import job_incentive, objective_incentive

__all__ = ["CLAIMS"]

_SMALL = Family(ThroughputPerDollar, 3, (1, 2), jobs={"steps": (1.0,)}, types={"costs": (1.0, 2.0)})

CLAIMS: list[Claim] = [
    objective_incentive(ThroughputPerDollar),
    objective_incentive(ThroughputPerDollar, slos=True),
    job_incentive(_SMALL, jobs="without SLOs"),
]
