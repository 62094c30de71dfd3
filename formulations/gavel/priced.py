"""What the exact models of Gavel's two cost policies share."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from instances import pictures
from instances.gavel.priced import PricedSharing
from instances.schema import FloatArray

__all__ = ["STRICTER", "explain", "times_per_step", "with_stricter_slos"]

STRICTER = 1e-8
"""By how much SLOs are shortened for a plan that is to meet them in spite of the solver's rounding."""

Priced = TypeVar("Priced", bound=PricedSharing)


def times_per_step(instance: PricedSharing) -> FloatArray:
    """(n,) float: SLO over steps left, s; infinite for jobs without either."""
    times: FloatArray = np.divide(
        instance.slos, instance.steps, out=np.full(instance.num_jobs, np.inf), where=instance.active
    )
    return times


def explain(instance: PricedSharing) -> str | None:
    """Name the jobs that miss their SLOs even at their fastest; None where each alone can meet its own."""
    jobs = instance.slo_jobs
    needed = instance.steps[jobs] / instance.slos[jobs]
    late = jobs[needed > instance.greatest_throughputs[jobs] * (1 + 1e-6)]
    if not late.size:
        return None
    return f"{pictures.jobs(late)} cannot meet the SLO, not even at the greatest throughput"


def with_stricter_slos(instance: Priced) -> Priced:
    """Make the SLOs a hair shorter; scaled down to the limits, plans for these still meet those of ``instance``."""
    return replace(instance, slos=instance.slos * (1 - STRICTER))
