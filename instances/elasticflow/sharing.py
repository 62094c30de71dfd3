"""Common ground of ElasticFlow's problems: jobs with deadlines, GPUs in slots, and plans.

Time is divided into slots, numbered from 0, which starts now.  Job i has to do ``iterations[i]``
iterations in the slots 0 to ``deadlines[i] - 1``; in a slot in which it holds x GPUs it does
``throughputs[i, x]`` of them.  A plan says how many GPUs each job holds in each slot.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Self, TypeVar, Unpack

import numpy as np

from instances import pictures
from instances.arguments import checked
from instances.arithmetic import total
from instances.base import Instance, Plan, Violation, exceeding
from instances.data.lines import Source
from instances.elasticflow.synthetic import JobOptions, draw_jobs
from instances.elasticflow.traces import JobChoice, jobs_from_trace
from instances.schema import LONGEST, Array, BoolArray, FloatArray, IntArray, Scalar

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["RATE_TOLERANCE", "DeadlineJobs", "PromisedJobs", "SlotPlan"]

RATE_TOLERANCE = 1e-9
"""Throughputs of a job that differ by less than this part of its greatest one count as equal."""


@dataclass(frozen=True, eq=False)
class SlotPlan(Plan):
    """GPUs of each job in each slot.

    Attributes
    ----------
    gpus : (n, h) int
        ``gpus[i, t]`` GPUs for job i in slot t; h is the latest deadline, and a job's GPUs are 0
        from its own deadline on.
    """

    gpus: Annotated[IntArray, Array(int, "n h")]


P = TypeVar("P", bound=Plan)


@dataclass(frozen=True, eq=False, kw_only=True)
class DeadlineJobs(Instance[P]):
    """Jobs with deadlines on GPUs of one kind.

    Attributes
    ----------
    num_gpus : int
        GPUs of the cluster, G, at least 1 and at most 10,000,000.
    iterations : (n,) float
        Iterations that each job still has to do.
    deadlines : (n,) int
        Slots that each job has: it may run in slots 0 to deadline - 1; at least 1.  Jobs times slots
        until the latest deadline are at most 50,000,000: plans have an entry for each.
    throughputs : (n, G+1) float
        Iterations that each job does in one slot on 0 to G GPUs; the first column is 0.
    """

    num_gpus: Annotated[int, Scalar(int, minimum=1, maximum=LONGEST)]
    iterations: Annotated[FloatArray, Array(float, "n", minimum=0)]
    deadlines: Annotated[IntArray, Array(int, "n", minimum=1)]
    throughputs: Annotated[FloatArray, Array(float, "n g", minimum=0)]

    def _check(self) -> None:
        self._refuse_tables("deadlines", self.horizon, "slots")
        columns = self.throughputs.shape[1]
        if self.num_jobs and columns != self.num_gpus + 1:
            raise self.refuse("throughputs", f"got {columns} columns, must be num_gpus + 1, {self.num_gpus + 1}")
        started = np.flatnonzero(self.throughputs[:, :1])
        if started.size:
            job = started[0]
            raise self.refuse("throughputs", f"got {self.throughputs[job, 0]:g} at index [{job}, 0], must be 0")

    @property
    def num_jobs(self) -> int:
        """Number of jobs, n."""
        return self.dims["n"]

    @property
    def horizon(self) -> int:
        """Slots until the latest deadline."""
        return int(self.deadlines.max(initial=0))

    def _plan_dims(self) -> dict[str, int]:
        return {"n": self.num_jobs, "h": self.horizon}

    @cached_property
    def best_throughputs(self) -> FloatArray:
        """(n, G+1) float: most iterations in one slot on at most x GPUs; the others are left idle."""
        return np.maximum.accumulate(self.throughputs, axis=1)

    @cached_property
    def faster(self) -> BoolArray:
        """(n, G) bool: whether each job that holds 0 to G - 1 GPUs is faster with one more."""
        most = self.best_throughputs[:, -1:]
        return np.diff(self.throughputs, axis=1) > RATE_TOLERANCE * most

    @cached_property
    def concave(self) -> bool:
        """True if every job gains less, or the same, from each GPU than from the one before.

        Curves may fall beyond their peak, where a job is better off with fewer GPUs.
        """
        most = self.best_throughputs[:, -1:]
        return bool((np.diff(self.best_throughputs, n=2, axis=1) <= RATE_TOLERANCE * most).all())

    def work(self, gpus: IntArray) -> FloatArray:
        """(n,) float: iterations that each job does by its deadline with ``gpus[i, t]`` GPUs.

        Counts of GPUs that do not exist are taken for the nearest that does.
        """
        done = np.take_along_axis(self.throughputs, np.clip(gpus, 0, self.num_gpus), axis=1)
        in_time: FloatArray = np.where(np.arange(self.horizon) < self.deadlines[:, None], done, 0.0).sum(axis=1)
        return in_time

    def cluster_efficiency(self, gpus: IntArray, *, whole_job: bool = False) -> float:
        """Return the efficiency of the cluster in a slot, (8) of section 6.1: the mean over all GPUs.

        A GPU counts with its part of its job's throughput, in proportion to what the job does on one
        GPU, and an idle one with 0.  On concave curves that is 1 at most.

        Parameters
        ----------
        gpus : (n,) int
            GPUs of each job in the slot.
        whole_job : bool
            Count each GPU with all of its job's throughput, as (8) can be read to the letter; then a job
            of a linear curve on x GPUs counts x times with x.

        Notes
        -----
        Jobs that do nothing on one GPU count with 0.
        """
        held = np.clip(gpus, 0, self.num_gpus)
        now = np.take_along_axis(self.throughputs, held[:, None], axis=1).reshape(-1)
        alone = self.throughputs[:, 1:2].reshape(-1)
        relative = np.divide(now, alone, out=np.zeros(self.num_jobs), where=alone > 0)
        return float((relative * (held if whole_job else 1)).sum() / self.num_gpus)

    def broken_slot_rules(self, gpus: IntArray, required: FloatArray) -> Iterator[Violation]:
        """Rules (2) and (3) of the paper for GPUs that must do ``required`` iterations."""
        yield from exceeding("gpus_nonnegative", 0, gpus)
        yield from exceeding("work", required, self.work(gpus), size=required)
        yield from exceeding("capacity", total(gpus, axis=0), self.num_gpus)
        late = np.where(np.arange(self.horizon) < self.deadlines[:, None], 0, gpus)
        yield from exceeding("after_deadline", late, 0)

    def _draw(self, axes: Axes, plan: P | None) -> None:
        names = [f"job {job}, deadline {deadline}" for job, deadline in enumerate(self.deadlines.tolist())]
        if plan is not None:
            self._draw_slots(axes, plan.gpus, np.zeros(0, np.int64))  # type: ignore[attr-defined]
            return
        gpus = np.arange(self.num_gpus + 1)
        steady = self.throughputs * self.deadlines[:, None]
        needed = np.where(self.iterations > 0, self.iterations, 1.0)[:, None]
        pictures.curves(axes, [gpus] * self.num_jobs, steady / needed)
        axes.axhline(1, color=pictures.OUTLINE, linewidth=1.0, linestyle="--")
        axes.set_ylim(0, min(3.0, 1.1 * max(1.0, float((steady / needed).max(initial=0)))))
        pictures.whole_numbers(axes.xaxis)
        axes.set_xlabel("GPUs in every slot until the deadline")
        axes.set_ylabel("work done / work to do")
        pictures.legend(axes, names)

    def _draw_slots(self, axes: Axes, gpus: IntArray, refused: IntArray) -> None:
        """GPUs of each job in each slot, its deadline, and the jobs that are turned away."""
        if self.num_jobs:
            pictures.over_time(axes, np.arange(self.horizon + 1), gpus.T, capacity=self.num_gpus)
        served = np.setdiff1d(np.arange(self.num_jobs), refused)
        pictures.completions(axes, [d if job in served else np.inf for job, d in enumerate(self.deadlines.tolist())])
        away = f"; {pictures.jobs(refused)} refused" if refused.size else ""
        axes.set_xlabel(f"slot (dotted: deadlines{away})")
        axes.set_ylabel("GPUs")
        pictures.whole_numbers(axes.xaxis, axes.yaxis)
        out = set(refused.tolist())
        pictures.legend(axes, [f"job {job}{' (refused)' * (job in out)}" for job in range(self.num_jobs)])


class PromisedJobs(DeadlineJobs[SlotPlan]):
    """Jobs that must all meet their deadlines, at the least GPU time; the fields are those of :class:`DeadlineJobs`."""

    sense = "min"
    measure = "GPU-slots"
    plan_type = SlotPlan

    def _value(self, plan: SlotPlan) -> float:
        return int(plan.gpus.sum())

    def _broken_rules(self, plan: SlotPlan) -> Iterator[Violation]:
        yield from self.broken_slot_rules(plan.gpus, self.iterations)

    @classmethod
    @checked
    def generate(cls, rng: np.random.Generator | int, **options: Unpack[JobOptions]) -> Self:
        """Synthetic jobs that compete for the GPUs.

        Parameters
        ----------
        rng : Generator or int
            Source of randomness, or its seed.
        **options
            Sizes, curves and the hardness dial of :func:`instances.elasticflow.synthetic.draw_jobs`.  The lower
            ``tightness``, the more GPUs are free in slot 0.
        """
        return cls(**draw_jobs(np.random.default_rng(rng), **options))

    @classmethod
    def from_trace(
        cls,
        rng: np.random.Generator | int,
        *,
        throughputs: Source,
        trace: Source,
        num_jobs: int = 10,
        **choice: Unpack[JobChoice],
    ) -> Self:
        """Consecutive jobs of a real trace.

        The parameters and errors are those of :func:`instances.elasticflow.traces.jobs_from_trace`.
        """
        fields, origin = jobs_from_trace(rng, throughputs=throughputs, trace=trace, num_jobs=num_jobs, **choice)
        return cls(**fields).with_origin(origin)
