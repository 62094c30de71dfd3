"""First in, first out over heterogeneous workers: Gavel (OSDI'20), section 4.2.

Share a cluster of several worker types in time, so that jobs run fast, the earlier the faster:

    max_X  sum_m  (n - m) * throughput(m, X) / throughput(m, fastest type),

where jobs are numbered from 0 in the order of their arrival.  The fastest type is the fastest one
that the job fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Unpack

import numpy as np

from instances.arithmetic import dot
from instances.gavel.sharing import Allocation
from instances.gavel.synthetic import ClusterOptions, draw_cluster, three_jobs_on_two_types
from instances.gavel.traces import TracedSharing
from instances.schema import FloatArray

__all__ = ["Fifo", "from_frame", "from_trace", "generate", "near_tie", "three_jobs"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Fifo(TracedSharing):
    """Jobs in the order of their arrival that share a cluster; the fields are those of :class:`Sharing`."""

    problem = "gavel.fifo"
    sense = "max"
    measure = "throughput over the fastest, earlier jobs counting more"

    @cached_property
    def worths(self) -> FloatArray:
        """(n,) float: what one step/s of each job adds to the objective, ``(n - m) / fastest_m``.

        0 for a job that runs nowhere alone, whose throughput there is nothing to compare with.
        """
        fastest = self.fastest_throughputs
        worths: FloatArray = np.divide(
            np.arange(self.num_jobs, 0, -1), fastest, out=np.zeros(self.num_jobs), where=fastest > 0
        )
        return worths

    def _value(self, plan: Allocation) -> float:
        return float(dot(self.worths, self.throughput(plan)))


def generate(rng: np.random.Generator | int, **options: Unpack[ClusterOptions]) -> Fifo:
    """Synthetic jobs in random order.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    **options
        Sizes and the hardness dial of :func:`instances.gavel.synthetic.draw_cluster`.
    """
    return Fifo(**draw_cluster(np.random.default_rng(rng), **options))


from_trace = Fifo.from_trace
from_frame = Fifo.from_frame


def three_jobs() -> Fifo:
    """Return the cluster of section 4.1: the optimum, 3 + 2/3, gives job 0 the V100 and job 1 the K80."""
    return Fifo(**three_jobs_on_two_types())


def near_tie() -> Fifo:
    """Two jobs on two types, the first of which barely minds the slower type.

    Serving job 0 on its fastest type is worth 2 + 1/10; moving it to the other, where it loses 1%,
    frees the type that job 1 needs: 2 * 0.99 + 1 = 2.98, the optimum.
    """
    return Fifo(throughputs=np.array([[1.0, 0.99], [1.0, 0.1]]), num_workers=np.array([1, 1]))
