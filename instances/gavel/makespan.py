"""Least makespan over heterogeneous workers: Gavel (OSDI'20), section 4.2.

Share a cluster of several worker types in time, so that the last of the present jobs finishes as
early as possible if the shares are kept:

    min_X  max_m  steps_m / throughput(m, X).

The optimal value is unique, the allocation need not be.  A plan that gives a job nothing is
feasible and worth infinity: that job never finishes.  A finished job takes 0 s, and where a job runs
nowhere every plan is worth infinity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack

import numpy as np

from instances.gavel.sharing import Allocation
from instances.gavel.steps import SharingWithSteps
from instances.gavel.synthetic import ClusterOptions, draw_cluster, draw_steps, three_jobs_on_two_types

__all__ = ["Makespan", "from_frame", "from_trace", "generate", "three_jobs"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Makespan(SharingWithSteps):
    """Jobs with work left that share a cluster; the fields are those of :class:`SharingWithSteps`."""

    problem = "gavel.makespan"
    sense = "min"
    measure = "time until the last job finishes, s"

    def _value(self, plan: Allocation) -> float:
        return float(self.times_left(plan).max())


def generate(
    rng: np.random.Generator | int, *, duration_spread: float = 1.0, **options: Unpack[ClusterOptions]
) -> Makespan:
    """Synthetic jobs with the durations of the paper's traces.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    duration_spread : float
        Hardness dial: at 1 durations are those of the paper's traces, and the longest job often
        decides alone; towards 0 they become equal, and all jobs compete.
    **options
        Sizes and the hardness dial of :func:`instances.gavel.synthetic.draw_cluster`.
    """
    rng = np.random.default_rng(rng)
    fields = draw_cluster(rng, **options)
    return Makespan(**fields, steps=draw_steps(rng, fields["throughputs"], spread=duration_spread))


from_trace = Makespan.from_trace
from_frame = Makespan.from_frame


def three_jobs() -> Makespan:
    """Return the cluster of section 4.1 with 100 s of work for each job on the V100.

    The optimum is 200 s: jobs 0 and 1 halve the V100, job 2 keeps the K80, which slows it least.
    Isolated thirds take 240 s.
    """
    return Makespan(**three_jobs_on_two_types(), steps=np.array([4000.0, 1200.0, 10000.0]))
