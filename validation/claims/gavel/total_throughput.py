"""What Gavel (OSDI'20) states of total throughput, put to the test."""

from __future__ import annotations

from instances.gavel.total_throughput import TotalThroughput
from validation.claims.gavel.clusters import Family
from validation.claims.gavel.properties import job_incentive, objective_incentive
from validation.testing.claims import Claim

__all__ = ["CLAIMS"]

_SMALL = Family(TotalThroughput, 3, (1, 2, 3))

CLAIMS: list[Claim] = [
    objective_incentive(TotalThroughput),
    job_incentive(_SMALL),
]
