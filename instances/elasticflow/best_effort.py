"""Jobs with deadlines first, the others as soon as can be: ElasticFlow (ASPLOS'23), section 4.4.

Some jobs have deadlines, which are guaranteed.  Best-effort jobs have none, and are to finish as soon
as possible; a job whose deadline is soft, and could not be promised, is one of them.  Choose whole
x_i(t) so that

    min   average over best-effort jobs i of C_i
    s.t.  sum_{t=0}^{D_i - 1} T_i(x_i(t)) >= M_i       for each job i          (2)
          sum_i x_i(t) <= G                            for each slot t         (3)

where C_i is the number of slots until job i has done its M_i iterations.

As printed / as built
---------------------
The paper sets the deadlines of best-effort jobs to infinity.  A plan has an end, so here ``deadlines`` of
a best-effort job is the number of slots that are planned for it, by which it has to be done.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Unpack

import numpy as np

from instances.arguments import Fraction, Positive, checked
from instances.base import TOLERANCE, Violation
from instances.elasticflow.sharing import DeadlineJobs, SlotPlan
from instances.elasticflow.synthetic import JobOptions, draw_jobs
from instances.schema import Array, BoolArray, IntArray

__all__ = ["BestEffort", "from_frame", "generate", "share_in_the_way"]


@dataclass(frozen=True, eq=False, kw_only=True)
class BestEffort(DeadlineJobs[SlotPlan]):
    """Jobs with and without deadlines; the other fields are those of :class:`DeadlineJobs`.

    Attributes
    ----------
    best_effort : (n,) bool
        The jobs without a deadline, or with a soft one; their ``deadlines`` are the slots that are planned
        for them.
    """

    problem = "elasticflow.best_effort"
    sense = "min"
    measure = "average completion time of best-effort jobs, slots"
    plan_type = SlotPlan

    best_effort: Annotated[BoolArray, Array(bool, "n")]

    def completion(self, gpus: IntArray) -> IntArray:
        """(n,) int: slots until each job has done its iterations; 0 if it has none, the horizon if it never has."""
        done = np.take_along_axis(self.throughputs, np.clip(gpus, 0, self.num_gpus), axis=1)
        missing = np.cumsum(done, axis=1) < self.iterations[:, None] * (1 - TOLERANCE)
        slots: IntArray = np.where(self.iterations > 0, np.minimum(missing.sum(axis=1) + 1, self.horizon), 0)
        return slots

    def _value(self, plan: SlotPlan) -> float:
        return float(self.completion(plan.gpus)[self.best_effort].mean()) if self.best_effort.any() else 0.0

    def _broken_rules(self, plan: SlotPlan) -> Iterator[Violation]:
        yield from self.broken_slot_rules(plan.gpus, self.iterations)


@checked
def generate(
    rng: np.random.Generator | int, *, part: Fraction = 0.4, stretch: Positive = 2.0, **options: Unpack[JobOptions]
) -> BestEffort:
    """Synthetic jobs, some of them without a deadline.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    part : float
        Part of the jobs that are best-effort ones; at least one is.
    stretch : float
        Slots that are planned for best-effort jobs, as a multiple of the latest deadline.
    **options
        Sizes, curves and the hardness dial of :func:`instances.elasticflow.synthetic.draw_jobs`; here
        ``num_jobs`` is 6, ``num_gpus`` 8, ``horizon`` 8 and ``tightness`` 0.3 by default.
    """
    rng = np.random.default_rng(rng)
    fields = draw_jobs(rng, **JobOptions(num_jobs=6, num_gpus=8, horizon=8, tightness=0.3) | options)
    best_effort = rng.random(len(fields["deadlines"])) < part
    best_effort[rng.integers(len(best_effort))] = True
    planned = int(np.ceil(stretch * fields["deadlines"].max()))
    fields["deadlines"] = np.where(best_effort, planned, fields["deadlines"])
    return BestEffort(**fields, best_effort=best_effort)


from_frame = BestEffort.from_frame


def share_in_the_way() -> BestEffort:
    """Return a best-effort job that waits a slot longer because of how a minimum satisfactory share is spread.

    Two GPUs, two linear jobs of two iterations.  Job 0 has to be done by slot 2: its share is one GPU in
    either slot, which leaves job 1 one GPU in either, and it is done after two slots.  With both GPUs for
    job 1 first and for job 0 then, it is done after one.
    """
    return BestEffort(
        num_gpus=2,
        iterations=np.array([2.0, 2.0]),
        deadlines=np.array([2, 4]),
        throughputs=np.tile([0.0, 1, 2], (2, 1)),
        best_effort=np.array([False, True]),
    )
