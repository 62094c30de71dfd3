"""Shortest job first over heterogeneous workers: Gavel (OSDI'20), section 4.2.

Share a cluster of several worker types in time, so that the job that can finish soonest does:

    min_X  min_m  steps_m / throughput(m, X).

Only the job that finishes first counts; the objective says nothing of the others.  A plan that
gives nobody anything is feasible and worth infinity.  Where a job has finished, it is the first, and
every plan is worth 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack

import numpy as np

from instances.gavel.sharing import Allocation
from instances.gavel.steps import SharingWithSteps
from instances.gavel.synthetic import ClusterOptions, draw_cluster, draw_steps, three_jobs_on_two_types

__all__ = ["ShortestJobFirst", "faster_together", "from_frame", "from_trace", "generate", "three_jobs"]


@dataclass(frozen=True, eq=False, kw_only=True)
class ShortestJobFirst(SharingWithSteps):
    """Jobs with work left that share a cluster; the fields are those of :class:`SharingWithSteps`."""

    problem = "gavel.shortest_job_first"
    sense = "min"
    measure = "time until the first job finishes, s"

    def _value(self, plan: Allocation) -> float:
        return float(self.times_left(plan).min())


def generate(rng: np.random.Generator | int, **options: Unpack[ClusterOptions]) -> ShortestJobFirst:
    """Synthetic jobs with the durations of the paper's traces.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    **options
        Sizes and the hardness dial of :func:`instances.gavel.synthetic.draw_cluster`.
    """
    rng = np.random.default_rng(rng)
    fields = draw_cluster(rng, **options)
    return ShortestJobFirst(**fields, steps=draw_steps(rng, fields["throughputs"]))


from_trace = ShortestJobFirst.from_trace
from_frame = ShortestJobFirst.from_frame


def three_jobs() -> ShortestJobFirst:
    """Return the cluster of section 4.1 with 100, 100 and 50 s of work on the V100: the optimum is 50 s."""
    return ShortestJobFirst(**three_jobs_on_two_types(), steps=np.array([4000.0, 1200.0, 5000.0]))


def faster_together() -> ShortestJobFirst:
    """Two jobs of 100 s, of which job 1 runs twice as fast next to job 0 as alone: the optimum is 50 s.

    Measured throughputs do that when a job alone is slowed down by something that its partner
    warms up for it, such as a cache of the data that both read.
    """
    return ShortestJobFirst(
        throughputs=np.array([[1.0], [1.0]]),
        num_workers=np.array([1]),
        pairs=np.array([[0, 1]]),
        pair_throughputs=np.array([[[0.5, 2.0]]]),
        steps=np.array([100.0, 100.0]),
    )
