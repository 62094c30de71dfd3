"""How many GPUs each job gets now: ElasticFlow (ASPLOS'23), section 4.2.

All jobs are to meet their deadlines at the least GPU time, as in
:mod:`instances.elasticflow.minimum_satisfactory_share`, but no GPU may be idle in slot 0 as long as
it would speed up a job:

    min   sum_i sum_t x_i(t)                                                       (4)
    s.t.  sum_{t=0}^{D_i - 1} T_i(x_i(t)) >= M_i       for each job i              (5)
          sum_i x_i(t) <= G                            for each slot t             (6)
          sum_i x_i(0) = G, or T_i(x_i(0) + 1) <= T_i(x_i(0)) for each job i.      (7)

As printed / as built
---------------------
Slots run from 0 to D_i - 1, as in Figure 4, not to D_i.  (7) is an implication and is built as one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from instances.base import Violation, total
from instances.data.lines import PathLike
from instances.elasticflow.sharing import DeadlineJobs, SlotPlan
from instances.elasticflow.synthetic import JobOptions, draw_jobs
from instances.elasticflow.traces import JobChoice, jobs_from_trace
from instances.schema import BoolArray, IntArray

__all__ = ["ElasticFlowAllocation", "from_frame", "from_trace", "generate", "two_idle_gpus"]


@dataclass(frozen=True, eq=False, kw_only=True)
class ElasticFlowAllocation(DeadlineJobs[SlotPlan]):
    """Admitted jobs, all of which must meet their deadlines; the fields are those of :class:`DeadlineJobs`."""

    problem = "elasticflow.allocation"
    sense = "min"
    measure = "GPU-slots"
    plan_type = SlotPlan

    def _value(self, plan: SlotPlan) -> float:
        return int(plan.gpus.sum())

    def faster_now(self, gpus: IntArray) -> BoolArray:
        """(n,) bool: whether each job would be faster with one more GPU in slot 0."""
        now = np.clip(gpus[:, 0], 0, self.num_gpus)
        rest = np.minimum(now, self.num_gpus - 1)
        return (now < self.num_gpus) & self.faster[np.arange(self.num_jobs), rest]

    def _broken_rules(self, plan: SlotPlan) -> Iterator[Violation]:
        yield from self.broken_slot_rules(plan.gpus, self.iterations)
        idle = self.num_gpus - total(plan.gpus[:, 0])
        if idle > 0:
            for job in np.flatnonzero(self.faster_now(plan.gpus)):
                yield Violation("no_useful_idle_gpu", (int(job),), float(idle))


def generate(rng: np.random.Generator | int, **options: Unpack[JobOptions]) -> ElasticFlowAllocation:
    """Synthetic jobs that compete for the GPUs.

    The lower ``tightness``, the more of slot 0 is left for (7) to fill.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    **options
        Sizes, curves and the hardness dial of :func:`instances.elasticflow.synthetic.draw_jobs`.
    """
    return ElasticFlowAllocation(**draw_jobs(np.random.default_rng(rng), **options))


def from_trace(
    rng: np.random.Generator | int,
    *,
    throughputs: PathLike,
    trace: PathLike,
    num_jobs: int = 10,
    **choice: Unpack[JobChoice],
) -> ElasticFlowAllocation:
    """Consecutive jobs of a real trace.

    The parameters and errors are those of :func:`instances.elasticflow.traces.jobs_from_trace`.
    """
    fields = jobs_from_trace(rng, throughputs=throughputs, trace=trace, num_jobs=num_jobs, **choice)
    return ElasticFlowAllocation(**fields)


from_frame = ElasticFlowAllocation.from_frame


def two_idle_gpus() -> ElasticFlowAllocation:
    """Two equal jobs on four GPUs, of which their minimum satisfactory shares use one each.

    Both do 2, 3 and 3.5 iterations per slot on 1, 2 and 3 GPUs (3.5 on 4 too) and have 4 to do in
    two slots.  One GPU each in both slots, 4 GPU-slots, would do, but leaves two GPUs idle in slot 0
    that would speed them up.  With two GPUs each there, they still need one in slot 1: 6 GPU-slots.
    """
    return ElasticFlowAllocation(
        num_gpus=4,
        iterations=np.array([4.0, 4.0]),
        deadlines=np.array([2, 2]),
        throughputs=np.tile([0.0, 2.0, 3.0, 3.5, 3.5], (2, 1)),
    )
