"""Most throughput for the money, as a ratio of sums: Gavel (OSDI'20), section 4.2 and Table 1.

Share paid workers in time, so that all jobs together make the most steps per dollar spent, and
jobs with a service level objective (SLO) meet it:

           sum_m throughput(m, X)
    max_X  ------------------------------------------------   s.t.  throughput(m, X) >= steps_m / slo_m.
           sum_{r,j} costs_j * scale_factor_r * X[r, j]

The workers of a pair are paid once.  The printed denominator is sum_{m,j} costs_j * X[m, j], without the
scale factor: a job of 8 workers would be charged for one.  The field ``paid`` chooses between the two.
Without SLOs the optimum is a single best row on its best
type: money spent on anything else only lowers the ratio.  A plan that spends nothing makes no
steps either, and is worth 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from instances.gavel.priced import PricedSharing
from instances.gavel.sharing import Allocation
from instances.gavel.synthetic import three_jobs_on_two_types
from instances.schema import FloatArray, Scalar

__all__ = ["Cost", "from_frame", "from_trace", "generate", "three_jobs"]

ORDINARY = -100
"""Exponent of two of a plan's largest share from which on its numbers keep their digits in products."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Cost(PricedSharing):
    """Jobs that share paid workers; the other fields are those of :class:`PricedSharing`.

    Attributes
    ----------
    paid : str
        "workers", each worker that a row holds (the default), or "rows", one worker for each row
        whatever its scale factor, as printed.
    """

    problem = "gavel.cost"
    sense = "max"
    measure = "total throughput over total price, steps/s per $/h"

    paid: Annotated[str, Scalar(str, choices=("workers", "rows"))] = "workers"

    @cached_property
    def prices(self) -> FloatArray:
        """(n+q, k) float: what each row costs on each type, $/h."""
        paid = self.row_scale_factors if self.paid == "workers" else np.ones(len(self.row_scale_factors))
        prices: FloatArray = np.outer(paid, self.costs)
        return prices

    def spending(self, plan: Allocation) -> float:
        """Return the cost of the workers, $/h."""
        return float((self.prices * plan.time_fractions).sum())

    def _value(self, plan: Allocation) -> float:
        """Steps/s per $/h."""
        # A ratio does not change with the plan's size, but numbers near 0 lose their last digits.
        _, exponent = math.frexp(plan.time_fractions.max(initial=0.0))
        if exponent < ORDINARY:
            plan = Allocation(time_fractions=np.ldexp(plan.time_fractions, -exponent))
        spending = self.spending(plan)
        return float(self.throughput(plan).sum()) / spending if spending > 0 else 0.0


generate = Cost.generate
from_trace = Cost.from_trace
from_frame = Cost.from_frame


def three_jobs(*, slo: float = np.inf) -> Cost:
    """Return the cluster of section 4.1 at $3/h for the V100 and $1/h for the K80, 270,000 steps each.

    Without an SLO the optimum is 50 steps/s per $/h: only job 2 runs, on the K80.  With an SLO of an
    hour, which asks for 75 steps/s, it is 37.5: job 2 spends half of its time on the V100, as section 1
    describes it.  (Prices and steps are not the paper's.)

    Parameters
    ----------
    slo : float
        SLO of job 2, s; the others have none.
    """
    return Cost(
        **three_jobs_on_two_types(),
        costs=np.array([3.0, 1.0]),
        steps=np.full(3, 270_000.0),
        slos=np.array([np.inf, np.inf, slo]),
    )
