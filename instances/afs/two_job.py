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
from typing import Annotated

import numpy as np

from instances.base import Array, FloatArray, Instance, Plan, PlanError, Scalar, Violation


@dataclass(frozen=True, eq=False)
class TwoJobPlan(Plan):
    """Who receives the free GPU.

    Attributes
    ----------
    receiver : int
        Job 0 or 1.
    """

    receiver: Annotated[int, Scalar(int)]


@dataclass(frozen=True, eq=False)
class TwoJob(Instance[TwoJobPlan]):
    """Two running jobs.

    Attributes
    ----------
    work : (2,) float
        Iterations left, positive.
    throughputs : (2, 2) float
        Iterations/s of each job on its present share, p, and with one more GPU, p'; the first may
        be 0 (a share of no GPUs), the second is positive and at least the first.
    """

    problem = "afs.two_job"
    sense = "min"
    plan_type = TwoJobPlan

    work: Annotated[FloatArray, Array(float, "2", above=0)]
    throughputs: Annotated[FloatArray, Array(float, "2 2", minimum=0)]

    def check(self) -> None:
        for job, (now, then) in enumerate(self.throughputs.tolist()):
            if then < now or not then:
                must = f"at least {now:g}, as without the GPU" if then < now else "positive"
                raise self.refuse("throughputs", f"got {then:g} at index [{job}, 1], must be {must}")

    @property
    def shorter(self) -> int:
        """The job that would complete first if neither received the GPU; job 0 if both at once.

        If neither runs at present: the one that would run for less time with the GPU.
        """
        now, then = self.throughputs.T
        pace = then if not now.any() else now
        with np.errstate(divide="ignore"):
            return int(np.argmin(self.work / pace))

    def completions(self, plan: TwoJobPlan) -> FloatArray:
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

    def value(self, plan: TwoJobPlan) -> float:
        return float(self.completions(plan).mean())

    def broken_rules(self, plan: TwoJobPlan) -> Iterator[Violation]:
        if plan.receiver not in (0, 1):
            yield Violation("receiver_exists", (), 1.0)


def generate(rng: np.random.Generator | int, *, max_share: int = 8, closeness: float = 0.5) -> TwoJob:
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
    return TwoJob(work=durations * throughputs[:, 0], throughputs=throughputs)


def overtaken() -> TwoJob:
    """Two jobs of nearly the same length on which formula (3) errs.

    Job 0 would complete after 100 s and job 1 after 101 s; the GPU makes job 0 half as fast again
    and job 1 twice as fast.  (3) gives it to job 0, for 75.25 s on average.  Job 1 would overtake
    job 0 with it: 67 s on average.
    """
    return TwoJob(work=np.array([1000.0, 1010.0]), throughputs=np.array([[10.0, 15.0], [10.0, 20.0]]))
