"""Claims of Gavel (OSDI'20) about total throughput."""

from __future__ import annotations

from instances.gavel.total_throughput import TotalThroughput
from validation.claims.claim import Claim
from validation.claims.gavel.clusters import Family
from validation.claims.gavel.properties import job_incentive, objective_incentive

__all__ = ["CLAIMS"]

_SMALL = Family(TotalThroughput, 3, (1, 2, 3))

CLAIMS: list[Claim] = [objective_incentive(TotalThroughput), job_incentive(_SMALL)]
