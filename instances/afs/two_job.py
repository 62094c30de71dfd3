"""One more GPU for either of two jobs: AFS (NSDI'21), section 3.2.

Two jobs run at their present shares, and one GPU is free.  The job that receives it has it until one
of the two completes (time slot 1); then the other is alone (slot 2).  Choose the receiver so that the
average completion time is least.

A job of w iterations runs at p iterations/s on its present share and at p' with one GPU more.  What it
runs at in slot 2, p'_2, is the question of the *apathetic future share*.  In formulas (1) and (2) it
can be anything: all GPUs if nobody else comes, few if others do.  It is the field ``alone``.  By
default the job that is left has the free GPU then and nothing else changes, p'_2 = p'.  The AFS
assumption differs from this in one place (footnote 10): the job that was the shorter stays at p if
the other received the GPU; see :meth:`AfsTwoJob.apathetic`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import numpy as np

from instances import pictures
from instances.arguments import Count, Fraction, checked
from instances.arithmetic import power
from instances.base import Instance, Plan, PlanError, Violation
from instances.schema import Array, FloatArray, Scalar, default

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["AfsTwoJob", "AfsTwoJobPlan", "from_frame", "generate", "overtaken"]


@dataclass(frozen=True, eq=False)
class AfsTwoJobPlan(Plan):
    """The receiver of the free GPU.

    Attributes
    ----------
    receiver : int
        Job 0 or 1.
    """

    receiver: Annotated[int, Scalar(int)]


@dataclass(frozen=True, eq=False)
class AfsTwoJob(Instance[AfsTwoJobPlan]):
    """Two running jobs.

    ``work`` is also found as ``iterations``, and ``num_jobs`` is 2.

    Attributes
    ----------
    work : (2,) float
        Iterations left; a job without any is done.
    throughputs : (2, 2) float
        Iterations/s of each job on its present share, p, and with one more GPU, p', which is at least p;
        p may be 0 (a share of no GPUs).
    alone : (2,) float
        Iterations/s of each job once the other is done, p'_2; where it is 0, the default, that is p'.
    """

    problem = "afs.two_job"
    sense = "min"
    measure = "average completion time, s"
    rows = "2"
    plan_type = AfsTwoJobPlan

    work: Annotated[FloatArray, Array(float, "2", minimum=0)]
    throughputs: Annotated[FloatArray, Array(float, "2 2", minimum=0)]
    alone: Annotated[FloatArray, Array(float, "2", minimum=0)] = default(lambda dims: np.zeros(2))

    def _check(self) -> None:
        for job, (now, then) in enumerate(self.throughputs.tolist()):
            if then < now:
                raise self.refuse(
                    "throughputs", f"got {then:g} at index [{job}, 1], must be at least {now:g}, as without the GPU"
                )

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
        return int(np.argmin(_times(self.work, pace)))

    @property
    def left_alone(self) -> FloatArray:
        """(2,) float: iterations/s of each job once the other is done, p'_2."""
        return np.where(self.alone > 0, self.alone, self.throughputs[:, 1])

    def apathetic(self) -> AfsTwoJob:
        """Return the same two jobs under the AFS assumption: shares stay as they are when one of the jobs is done.

        With a the shorter job at present, ``p'_a2 = p_a1``, which is what it has if b received the GPU, and
        ``p'_b2 = p'_b1`` (section 3.2, footnote 10).  A job that has no GPU at present, and does not receive
        one, has it in slot 2, as it would never complete otherwise.
        """
        a, b = self.shorter, 1 - self.shorter
        alone = np.empty(2)
        alone[a], alone[b] = self.throughputs[a, 0], self.throughputs[b, 1]
        return replace(self, alone=alone)

    def completions(self, plan: AfsTwoJobPlan) -> FloatArray:
        """(2,) float: when each job completes, s; infinite where it never does."""
        if plan.receiver not in (0, 1):
            raise PlanError(f"{self.problem}: receiver is {plan.receiver}, must be 0 or 1")
        receiver, other = plan.receiver, 1 - plan.receiver
        rates = np.empty(2)
        rates[receiver], rates[other] = self.throughputs[receiver, 1], self.throughputs[other, 0]
        completions = _times(self.work, rates)
        first, last = int(np.argmin(completions)), int(np.argmax(completions))
        if first == last or not np.isfinite(completions[first]):
            return completions
        left = max(0.0, float(self.work[last] - rates[last] * completions[first]))
        completions[last] = completions[first] + float(_times(np.array([left]), self.left_alone[[last]])[0])
        return completions

    def _value(self, plan: AfsTwoJobPlan) -> float:
        return float(self.completions(plan).mean())

    def _broken_rules(self, plan: AfsTwoJobPlan) -> Iterator[Violation]:
        if plan.receiver not in (0, 1):
            yield Violation("receiver_exists", (), 1.0)
            return
        for job in np.flatnonzero(np.isinf(self.completions(plan))).tolist():
            yield Violation("completes", (job,), float(self.work[job]))

    def _draw(self, axes: Axes, plan: AfsTwoJobPlan | None) -> None:
        if plan is None or plan.receiver not in (0, 1):
            alone = np.stack([_times(self.work, pace) for pace in self.throughputs.T], axis=1)
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
            if np.isinf(end):
                first, end = 0.0, 0.0
            axes.plot([0, first, end], [100, 100 * left, 0], color=pictures.colour(job), linewidth=2, marker="o")
        axes.axvline(first, color=pictures.OUTLINE, linewidth=0.8, linestyle="--")
        pictures.from_zero(axes, x=True, y=True)
        axes.set_xlabel("time, s (dashed: the first completes, the other has the GPU from then on)")
        axes.set_ylabel("work left, %")
        pictures.legend(axes, [f"job {job}{' receives the GPU' * (job == plan.receiver)}" for job in (0, 1)])


def _times(work: FloatArray, rates: FloatArray) -> FloatArray:
    """Return the time that ``work`` takes at ``rates``, s: nothing for none, and without end for some at no rate."""
    return np.divide(work, rates, where=rates > 0, out=np.where(work > 0, np.inf, 0.0))


@checked
def generate(rng: np.random.Generator | int, *, max_share: Count = 8, closeness: Fraction = 0.5) -> AfsTwoJob:
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
    single = power(10, rng.uniform(-1.0, 1.0, 2))
    throughputs = single[:, None] * power(shares[:, None] + np.arange(2), exponents[:, None])
    duration = 600 * 10 ** rng.uniform(0.0, 2.0)
    durations = rng.permutation([duration, duration * 10 ** (2 * (1 - closeness) * rng.uniform())])
    return AfsTwoJob(work=durations * throughputs[:, 0], throughputs=throughputs)


from_frame = AfsTwoJob.from_frame


def overtaken() -> AfsTwoJob:
    """Two jobs of nearly the same length, of which the longer one overtakes the other with the GPU.

    Job 0 would complete after 100 s and job 1 after 101 s; the GPU makes job 0 half as fast again
    and job 1 twice as fast.  If job 0 then has the GPU, it is best for job 1 to receive it, 67 s on average,
    and formula (2) says so; under the AFS assumption job 0 does not have it then, and either choice
    takes 75.25 s.  The data are the library's.
    """
    return AfsTwoJob(work=np.array([1000.0, 1010.0]), throughputs=np.array([[10.0, 15.0], [10.0, 20.0]]))
