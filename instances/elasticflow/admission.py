"""Admission of jobs with deadlines: ElasticFlow (ASPLOS'23), section 4.1.

A job is admitted only if it and all jobs admitted so far can meet their deadlines.  The system
decides job by job, in order of arrival; here all jobs are known, and the question is how many can
be admitted at most:

    max   |A|   over sets A of jobs for which there are GPUs x_i(t) with
          sum_{t=0}^{D_i - 1} T_i(x_i(t)) >= M_i       for each job i in A      (2)
          sum_{i in A} x_i(t) <= G                     for each slot t.         (3)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Unpack

import numpy as np

from instances.arguments import checked
from instances.arithmetic import total
from instances.base import Plan, Violation, exceeding
from instances.data.lines import Source
from instances.elasticflow.sharing import DeadlineJobs
from instances.elasticflow.synthetic import JobOptions, draw_jobs
from instances.elasticflow.traces import JobChoice, jobs_from_trace
from instances.schema import Array, BoolArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Admission", "AdmissionPlan", "from_frame", "from_trace", "generate", "greedy_arrival"]


@dataclass(frozen=True, eq=False)
class AdmissionPlan(Plan):
    """The jobs that are admitted, and how they meet their deadlines.

    Attributes
    ----------
    admitted : (n,) bool
        Whether each job is admitted.
    gpus : (n, h) int
        GPUs of each job in each slot, 0 for jobs that are not admitted; h is the latest deadline.
    """

    admitted: Annotated[BoolArray, Array(bool, "n")]
    gpus: Annotated[IntArray, Array(int, "n h")]


@dataclass(frozen=True, eq=False, kw_only=True)
class Admission(DeadlineJobs[AdmissionPlan]):
    """Jobs that ask to be admitted; the other fields are those of :class:`DeadlineJobs`.

    Attributes
    ----------
    arrival_order : (n,) int
        The jobs in the order in which they ask; each once.
    """

    problem = "elasticflow.admission"
    sense = "max"
    measure = "jobs admitted"
    plan_type = AdmissionPlan

    arrival_order: Annotated[IntArray, Array(int, "a", index_of="n", empty=True)]

    def _check(self) -> None:
        super()._check()
        if not np.array_equal(np.sort(self.arrival_order), np.arange(self.num_jobs)):
            raise self.refuse(
                "arrival_order",
                f"got {self.arrival_order.tolist()}, must be each job from 0 to {self.num_jobs - 1} once",
            )

    def _value(self, plan: AdmissionPlan) -> float:
        return int(plan.admitted.sum())

    def _broken_rules(self, plan: AdmissionPlan) -> Iterator[Violation]:
        yield from self.broken_slot_rules(plan.gpus, np.where(plan.admitted, self.iterations, 0.0))
        yield from exceeding("not_admitted", np.where(plan.admitted, 0, total(plan.gpus, axis=1)), 0)

    def _draw(self, axes: Axes, plan: AdmissionPlan | None) -> None:
        if plan is None:
            super()._draw(axes, None)
        else:
            self._draw_slots(axes, plan.gpus, np.flatnonzero(~plan.admitted))


@checked
def generate(rng: np.random.Generator | int, **options: Unpack[JobOptions]) -> Admission:
    """Synthetic jobs, more than can be served, in random order of arrival.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    **options
        Sizes, curves and the hardness dial of :func:`instances.elasticflow.synthetic.draw_jobs`;
        here ``num_jobs`` is 10 and ``tightness`` 1 by default.  At a tightness of 0.3 mostly all can
        be admitted; the larger, the fewer.
    """
    rng = np.random.default_rng(rng)
    fields = draw_jobs(rng, **JobOptions(num_jobs=10, tightness=1.0) | options)
    return Admission(**fields, arrival_order=rng.permutation(len(fields["deadlines"])))


def from_trace(
    rng: np.random.Generator | int,
    *,
    throughputs: Source,
    trace: Source,
    num_jobs: int = 10,
    **choice: Unpack[JobChoice],
) -> Admission:
    """Consecutive jobs of a real trace, which arrive in the order of the trace.

    The parameters and errors are those of :func:`instances.elasticflow.traces.jobs_from_trace`.
    """
    fields, origin = jobs_from_trace(rng, throughputs=throughputs, trace=trace, num_jobs=num_jobs, **choice)
    return Admission(**fields, arrival_order=np.arange(num_jobs)).with_origin(origin)


from_frame = Admission.from_frame


def greedy_arrival() -> Admission:
    """Return a large job that arrives first and keeps out two small ones.

    One GPU for two slots: job 0 needs both slots, jobs 1 and 2 one each.  In order of arrival only
    job 0 is admitted; without it, both others could be.
    """
    return Admission(
        num_gpus=1,
        iterations=np.array([2.0, 1.0, 1.0]),
        deadlines=np.array([2, 2, 2]),
        throughputs=np.tile([0.0, 1.0], (3, 1)),
        arrival_order=np.array([0, 1, 2]),
    )
