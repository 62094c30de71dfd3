"""Most throughput for the money, as a sum of ratios: what Gavel's released code solves for its cost policy.

Share paid workers in time, so that the sum of all throughputs, each divided by the price of the
type on which it is had, is greatest, and jobs with a service level objective (SLO) meet it:

    max_X  sum_{r,j} (sum of the throughputs of the jobs of r on j) / costs_j * X[r, j]
    s.t.   throughput(m, X) >= steps_m / slo_m.

Unlike the ratio of sums of :mod:`instances.gavel.cost`, this keeps the whole cluster busy: every
worker that makes a step adds to it.  As in that code, the price is that of one worker, whatever the
scale factor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from instances.gavel.priced import PricedSharing
from instances.gavel.sharing import Allocation
from instances.gavel.synthetic import three_jobs_on_two_types

__all__ = ["ThroughputPerDollar", "from_frame", "from_trace", "generate", "three_jobs"]


@dataclass(frozen=True, eq=False, kw_only=True)
class ThroughputPerDollar(PricedSharing):
    """Jobs that share paid workers; the fields are those of :class:`PricedSharing`."""

    problem = "gavel.throughput_per_dollar"
    sense = "max"
    measure = "sum of throughput over price, steps/s per $/h"

    def _value(self, plan: Allocation) -> float:
        """Steps/s per $/h, summed over all entries of the plan."""
        bought = plan.time_fractions / self.costs
        alone = (self.throughputs * bought[: self.num_jobs]).sum()
        together = (self.pair_throughputs.sum(axis=2) * bought[self.num_jobs :]).sum()
        return float(alone + together)


generate = ThroughputPerDollar.generate
from_trace = ThroughputPerDollar.from_trace
from_frame = ThroughputPerDollar.from_frame


def three_jobs(*, slo: float = np.inf) -> ThroughputPerDollar:
    """Return the cluster of section 4.1 at $3/h for the V100 and $1/h for the K80, 270,000 steps each.

    The optimum is 40/3 + 50 steps/s per $/h, job 0 on the V100 and job 2 on the K80.  With an SLO of
    an hour for job 2, which asks for 75 steps/s, jobs 0 and 2 halve both: 160/3.  (Prices and steps are
    not the paper's.)

    Parameters
    ----------
    slo : float
        SLO of job 2, s; the others have none.
    """
    return ThroughputPerDollar(
        **three_jobs_on_two_types(),
        costs=np.array([3.0, 1.0]),
        steps=np.full(3, 270_000.0),
        slos=np.array([np.inf, np.inf, slo]),
    )
