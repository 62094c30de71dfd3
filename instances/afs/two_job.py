"""Which of two jobs gets one more GPU: the question behind AFS-L's rule (NSDI'21), section 4.2.

Two jobs run at their present shares, and one GPU is free.  The job that receives it keeps it until
one of the two completes; from then on the other has it.  Nothing else changes: what becomes of the
share of the job that completed is left open, which is the *apathetic future share* of the paper's
name.  Choose the receiver so that the average completion time is least.

A job of w iterations runs at p iterations/s on its present share and at p' with one GPU more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np

from instances import pictures
from instances.base import Instance, Plan, PlanError, Violation
from instances.schema import Array, FloatArray, Scalar

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["AfsTwoJob", "AfsTwoJobPlan", "from_frame", "generate", "overtaken"]


@dataclass(frozen=True, eq=False)
class AfsTwoJobPlan(Plan):
    """Who receives the free GPU.

    Attributes
    ----------
    receiver : int
        Job 0 or 1.
    """

    receiver: Annotated[int, Scalar(int)]


@dataclass(frozen=True, eq=False)
class AfsTwoJob(Instance[AfsTwoJobPlan]):
    """Two running jobs.

    Attributes
    ----------
    work : (2,) float
        Iterations left, positive.
    throughputs : (2, 2) float
        Iterations/s of each job on its present share, p, and with one more GPU, p'; the first may
        be 0 (a share of no GPUs), the second is positive and at least the first.

    ``work`` is also found as ``iterations``, and ``num_jobs`` is 2.
    """

    problem = "afs.two_job"
    sense = "min"
    measure = "average completion time, s"
    rows = "2"
    plan_type = AfsTwoJobPlan

    work: Annotated[FloatArray, Array(float, "2", above=0)]
    throughputs: Annotated[FloatArray, Array(float, "2 2", minimum=0)]

    def _check(self) -> None:
        for job, (now, then) in enumerate(self.throughputs.tolist()):
            if then < now or not then:
                must = f"at least {now:g}, as without the GPU" if then < now else "positive"
                raise self.refuse("throughputs", f"got {then:g} at index [{job}, 1], must be {must}")

    @property
    def num_jobs(self) -> int:
        """Two."""
        return 2

    @property
    def iterations(self) -> FloatArray:
        """(2,) float: iterations left of each job, ``work``."""
        return self.work

    @property
    def shorter(self) -> int:
        """The job that would complete first if neither received the GPU; job 0 if both at once.

        If neither runs at present: the one that would run for less time with the GPU.
        """
        now, then = self.throughputs.T
        pace = then if not now.any() else now
        with np.errstate(divide="ignore"):
            return int(np.argmin(self.work / pace))

    def completions(self, plan: AfsTwoJobPlan) -> FloatArray:
        """(2,) float: when each job completes, s."""
        if plan.receiver not in (0, 1):
            raise PlanError(f"{self.problem}: receiver is {plan.receiver}, must be 0 or 1")
        receiver, other = plan.receiver, 1 - plan.receiver
        rates = np.empty(2)
        rates[receiver], rates[other] = self.throughputs[receiver, 1], self.throughputs[other, 0]
        with np.errstate(divide="ignore"):
            alone = self.work / rates
        first = float(alone.min())
        left = np.maximum(self.work - rates * first, 0)
        survivor = int(np.argmax(alone))
        completions = np.full(2, first)
        completions[survivor] += left[survivor] / self.throughputs[survivor, 1]
        return completions

    def _value(self, plan: AfsTwoJobPlan) -> float:
        return float(self.completions(plan).mean())

    def _broken_rules(self, plan: AfsTwoJobPlan) -> Iterator[Violation]:
        if plan.receiver not in (0, 1):
            yield Violation("receiver_exists", (), 1.0)

    def _draw(self, axes: Axes, plan: AfsTwoJobPlan | None) -> None:
        if plan is None or plan.receiver not in (0, 1):
            with np.errstate(divide="ignore"):
                alone = self.work[:, None] / self.throughputs
            pictures.side_by_side(axes, {"on its present share": alone[:, 0], "with the free GPU": alone[:, 1]})
            for job in np.flatnonzero(np.isinf(alone[:, 0])).tolist():
                axes.text(job - 0.21, 0, "never", ha="center", va="bottom")
            axes.set_ylabel("time to complete, s")
            return
        times = self.completions(plan)
        first = float(times.min())
        for job, end in enumerate(times.tolist()):
            rate = self.throughputs[job, int(job == plan.receiver)]
            left = max(0.0, 1 - rate * first / self.work[job]) if end > first else 0.0
            axes.plot([0, first, end], [100, 100 * left, 0], color=pictures.colour(job), linewidth=2, marker="o")
        axes.axvline(first, color=pictures.OUTLINE, linewidth=0.8, linestyle="--")
        pictures.from_zero(axes, x=True, y=True)
        axes.set_xlabel("time, s (dashed: the first completes, the other has the GPU from then on)")
        axes.set_ylabel("work left, %")
        pictures.legend(axes, [f"job {job}{' receives the GPU' * (job == plan.receiver)}" for job in (0, 1)])


def generate(rng: np.random.Generator | int, *, max_share: int = 8, closeness: float = 0.5) -> AfsTwoJob:
    """Two jobs of different curves.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    max_share : int
        Present shares are uniform from 1 to this many GPUs.
    closeness : float
        Hardness dial from 0 to 1: how near the two would complete to each other.  At 1 they would
        complete together, and the receiver decides which is first.
    """
    rng = np.random.default_rng(rng)
    shares = rng.integers(1, max_share + 1, 2)
    exponents = rng.uniform(0.3, 1.0, 2)
    single = 10 ** rng.uniform(-1.0, 1.0, 2)
    throughputs = single[:, None] * (shares[:, None] + np.arange(2)) ** exponents[:, None]
    duration = 600 * 10 ** rng.uniform(0.0, 2.0)
    durations = rng.permutation([duration, duration * 10 ** (2 * (1 - closeness) * rng.uniform())])
    return AfsTwoJob(work=durations * throughputs[:, 0], throughputs=throughputs)


from_frame = AfsTwoJob.from_frame


def overtaken() -> AfsTwoJob:
    """Two jobs of nearly the same length on which formula (3) errs.

    Job 0 would complete after 100 s and job 1 after 101 s; the GPU makes job 0 half as fast again
    and job 1 twice as fast.  (3) gives it to job 0, for 75.25 s on average.  Job 1 would overtake
    job 0 with it: 67 s on average.
    """
    return AfsTwoJob(work=np.array([1000.0, 1010.0]), throughputs=np.array([[10.0, 15.0], [10.0, 20.0]]))
