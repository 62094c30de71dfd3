"""Most total throughput over heterogeneous workers: Gavel (OSDI'20), sections 3.1 and 4.2.

Share a cluster of several worker types in time, so that all jobs together make the most steps:

    max_X  sum_m  throughput(m, X).

Steps of different jobs count alike, so jobs with many small steps crowd out the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack

import numpy as np

from instances.gavel.sharing import Allocation
from instances.gavel.synthetic import ClusterOptions, draw_cluster, three_jobs_on_two_types
from instances.gavel.traces import TracedSharing

__all__ = ["TotalThroughput", "from_frame", "from_trace", "generate", "three_jobs"]


@dataclass(frozen=True, eq=False, kw_only=True)
class TotalThroughput(TracedSharing):
    """Jobs that share a cluster; the fields are those of :class:`Sharing`."""

    problem = "gavel.total_throughput"
    sense = "max"
    measure = "total throughput, steps/s"

    def _value(self, plan: Allocation) -> float:
        return float(self.throughput(plan).sum())


def generate(rng: np.random.Generator | int, **options: Unpack[ClusterOptions]) -> TotalThroughput:
    """Synthetic jobs.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    **options
        Sizes and the hardness dial of :func:`instances.gavel.synthetic.draw_cluster`.
    """
    return TotalThroughput(**draw_cluster(np.random.default_rng(rng), **options))


from_trace = TotalThroughput.from_trace
from_frame = TotalThroughput.from_frame


def three_jobs() -> TotalThroughput:
    """Return the cluster of section 4.1: the optimum, 110 steps/s, has job 2 on the V100 and job 0 on the K80."""
    return TotalThroughput(**three_jobs_on_two_types())
