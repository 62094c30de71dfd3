"""Two elastic jobs that share GPUs: Aryl (EuroSys'23 as Lyra), section 5.1 and Appendix C.

Two jobs start together on all GPUs they can use.  When the first completes, the other grows to
its maximum.  Both scale linearly: a job with W GPU-seconds of work left runs W / g seconds on g
GPUs.  Choose the GPUs at the start so that the average job completion time (JCT) is least:

    min  (C_0 + C_1) / 2
    with f the job that completes first, s the other:
         C_f = W_f / x_f
         C_s = C_f + (W_s - x_s * C_f) / M_s,        M_s = min(max_gpus_s, num_gpus).

The average is not monotone in the split: whether the smaller job should go first depends on how
many GPUs each can use, and on what their minima leave.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np

from instances import pictures
from instances.arguments import Fraction, checked
from instances.arithmetic import power, total
from instances.base import Instance, Plan, PlanError, Violation, exceeding
from instances.schema import LONGEST, Array, FloatArray, IntArray, Scalar

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "ArylTwoJob",
    "ArylTwoJobPlan",
    "binding_minimum",
    "from_frame",
    "generate",
    "smaller_maximum_first",
    "smaller_workload_first",
]


@dataclass(frozen=True, eq=False)
class ArylTwoJobPlan(Plan):
    """GPUs at the start.

    Attributes
    ----------
    gpus : (2,) int
        GPUs of each job until the first completes.
    """

    gpus: Annotated[IntArray, Array(int, "2")]


@dataclass(frozen=True, eq=False)
class ArylTwoJob(Instance[ArylTwoJobPlan]):
    """Two elastic jobs and the GPUs that they share.

    ``num_jobs`` is 2.

    Attributes
    ----------
    num_gpus : int
        GPUs, at least 1.
    workloads : (2,) float
        Work of each job, GPU-seconds; a finished job has 0, and completes at once.
    min_gpus, max_gpus : (2,) int
        Fewest and most GPUs of each job; 1 <= min <= max.  Where both minima do not fit together
        there is no plan.
    """

    problem = "aryl.two_job"
    sense = "min"
    measure = "average completion time, s"
    rows = "2"
    plan_type = ArylTwoJobPlan

    num_gpus: Annotated[int, Scalar(int, minimum=1)]
    workloads: Annotated[FloatArray, Array(float, "2", minimum=0)]
    min_gpus: Annotated[IntArray, Array(int, "2", minimum=1)]
    max_gpus: Annotated[IntArray, Array(int, "2", minimum=1)]

    def _check(self) -> None:
        below = np.flatnonzero(self.max_gpus < self.min_gpus)
        if below.size:
            job = below[0]
            raise self.refuse(
                "max_gpus",
                f"got {self.max_gpus[job]} at index [{job}], must be at least min_gpus, {self.min_gpus[job]}",
            )

    @property
    def num_jobs(self) -> int:
        """Two."""
        return 2

    @property
    def used_gpus(self) -> int:
        """GPUs that the jobs use together at the start: all, or both maxima where those are fewer."""
        return int(min(self.num_gpus, total(self.max_gpus)))

    @property
    def splits(self) -> range:
        """Numbers of GPUs that job 0 can start with; job 1 gets the rest of :attr:`used_gpus`.

        Empty where the minima do not fit together.
        """
        least, most = self.min_gpus.tolist(), self.max_gpus.tolist()
        return range(max(least[0], self.used_gpus - most[1]), min(most[0], self.used_gpus - least[1]) + 1)

    def split(self, gpus: int) -> ArylTwoJobPlan:
        """Return the plan that starts job 0 on ``gpus`` GPUs and job 1 on the rest."""
        return ArylTwoJobPlan(gpus=np.array([gpus, self.used_gpus - gpus]))

    def completion_times(self, plan: ArylTwoJobPlan) -> FloatArray:
        """(2,) float: when each job completes, s."""
        if (plan.gpus < 1).any():
            job = int(np.argmin(plan.gpus))
            raise PlanError(f"{self.problem}: gpus is {plan.gpus[job]} at index [{job}], must be at least 1")
        alone = self.workloads / plan.gpus
        first = int(np.argmin(alone))
        last = 1 - first
        left = self.workloads[last] - plan.gpus[last] * alone[first]
        completion = np.full(2, alone[first])
        completion[last] += max(0.0, left) / min(self.max_gpus[last], self.num_gpus)
        return completion

    def _value(self, plan: ArylTwoJobPlan) -> float:
        return float(self.completion_times(plan).mean())

    def _broken_rules(self, plan: ArylTwoJobPlan) -> Iterator[Violation]:
        yield from exceeding("min_gpus", self.min_gpus, plan.gpus)
        yield from exceeding("max_gpus", plan.gpus, self.max_gpus)
        yield from exceeding("used_gpus", abs(total(plan.gpus) - self.used_gpus), 0)

    def _draw(self, axes: Axes, plan: ArylTwoJobPlan | None) -> None:
        names = [
            f"job {job} ({least} to {most} GPUs)"
            for job, (least, most) in enumerate(zip(self.min_gpus.tolist(), self.max_gpus.tolist(), strict=True))
        ]
        if plan is None:
            averages = [self.objective(self.split(gpus)) for gpus in self.splits]
            if averages:
                pictures.curves(axes, [list(self.splits)], [averages])
            axes.set_xlabel(f"GPUs of job 0 at the start (the rest of {self.used_gpus} for job 1)")
            axes.set_ylabel(self.measure)
            pictures.whole_numbers(axes.xaxis)
            return
        if (plan.gpus < 1).any():
            # Such a job never completes, so there is nothing to draw over time but the start.
            ends, shares = np.array([0.0, 1.0]), plan.gpus[None, :]
            axes.set_xlabel("the start (a job without GPUs never completes)")
            axes.set_xticks([])
        else:
            times = self.completion_times(plan)
            last = int(np.argmax(times))
            later = np.zeros(2, np.int64)
            later[last] = min(self.max_gpus[last], self.num_gpus)
            ends = np.array([0.0, times.min(), times.max()])
            shares = np.array([plan.gpus, later])
            axes.set_xlabel("time, s (dotted: completions)")
            if ends[2] == ends[1]:
                ends, shares = ends[:2], shares[:1]
            pictures.completions(axes, times)
        pictures.over_time(axes, ends, shares, capacity=self.num_gpus)
        axes.set_ylabel("GPUs")
        pictures.whole_numbers(axes.yaxis)
        pictures.legend(axes, names)


@checked
def generate(
    rng: np.random.Generator | int,
    *,
    num_gpus: Annotated[int, Scalar(int, minimum=3, maximum=LONGEST)] = 16,
    binding: Fraction = 0.5,
) -> ArylTwoJob:
    """Two jobs of similar workloads that cannot both have their maximum.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    num_gpus : int
        GPUs, at least 3.
    binding : float
        Hardness dial from 0 to 1: the fraction of its maximum that one of the jobs, either, needs
        at least.  At 0 no minimum is in the way and the closed form is optimal; it errs most
        around 3/4; at 1 that job is rigid and nothing is left to decide.
    """
    rng = np.random.default_rng(rng)
    first = int(rng.integers(2, num_gpus))
    most = rng.permutation([first, int(rng.integers(num_gpus - first + 1, num_gpus))])
    least = np.ones(2, np.int64)
    job = int(rng.integers(2))
    least[job] = max(1, round(binding * most[job]))
    return ArylTwoJob(
        num_gpus=num_gpus,
        workloads=np.round(60 * num_gpus * power(10, rng.uniform(1.0, 1.5, 2))),
        min_gpus=least,
        max_gpus=most,
    )


from_frame = ArylTwoJob.from_frame


def smaller_workload_first() -> ArylTwoJob:
    """Tables 2 and 3: jobs A and B of 2 to 6 workers, 50 and 20 s on 6, that share 8.

    A worker counts as a GPU here, so that the workloads are 300 and 120 GPU-seconds.  Table 3 has
    three splits: 6 and 2 complete A and B at 50 and 53.33 s, 51.67 s on average, 2 and 6 at 63.33 and
    20 s, 41.67 s, the least, and 4 and 4 at 60 and 30 s, 45 s.
    """
    return ArylTwoJob(
        num_gpus=8, workloads=np.array([300.0, 120.0]), min_gpus=np.array([2, 2]), max_gpus=np.array([6, 6])
    )


def smaller_maximum_first() -> ArylTwoJob:
    """Table 4: job A of 2 or 3 workers, 100 s on 3, and job B of Table 2, that share 8.

    A never uses more than 3 workers, and what it does not get at the start it cannot make up for:
    favouring it completes A and B at 100 and 24 s, 62 s on average; favouring B, whose workload and
    running time are less, at 106.67 and 20 s, 63.33 s on average.
    """
    return ArylTwoJob(
        num_gpus=8, workloads=np.array([300.0, 120.0]), min_gpus=np.array([2, 2]), max_gpus=np.array([3, 6])
    )


def binding_minimum() -> ArylTwoJob:
    """Two jobs on 8 GPUs where the larger one's minimum makes the closed form err.

    The smaller job, 300 GPU-seconds, could use 7 GPUs but gets 5, because the other, 360, needs 3:
    completions at 60 and 85.71 s, 72.86 s on average.  With 1 and 7 GPUs, the larger job first, it
    is 86.94 and 51.43 s, 69.18 s on average.
    """
    return ArylTwoJob(
        num_gpus=8, workloads=np.array([300.0, 360.0]), min_gpus=np.array([1, 3]), max_gpus=np.array([7, 7])
    )
