"""What the problems of ElasticFlow share: jobs with deadlines, GPUs in slots, and plans.

Time is divided into slots, numbered from 0, which starts now.  Job i has to do ``iterations[i]``
iterations in the slots 0 to ``deadlines[i] - 1``; in a slot in which it holds x GPUs it does
``throughputs[i, x]`` of them.  A plan says how many GPUs each job holds in each slot.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, TypeVar

import numpy as np

from instances.base import Array, BoolArray, FloatArray, Instance, IntArray, Plan, Scalar, Violation, exceeding

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
        GPUs of the cluster, G, at least 1.
    iterations : (n,) float
        Iterations that each job still has to do.
    deadlines : (n,) int
        Slots that each job has: it may run in slots 0 to deadline - 1; at least 1.
    throughputs : (n, G+1) float
        Iterations that each job does in one slot on 0 to G GPUs; the first column is 0.
    """

    num_gpus: Annotated[int, Scalar(int, minimum=1)]
    iterations: Annotated[FloatArray, Array(float, "n", minimum=0)]
    deadlines: Annotated[IntArray, Array(int, "n", minimum=1)]
    throughputs: Annotated[FloatArray, Array(float, "n g", minimum=0)]

    def check(self) -> None:
        columns = self.throughputs.shape[1]
        if columns != self.num_gpus + 1:
            raise self.refuse("throughputs", f"got {columns} columns, must be num_gpus + 1, {self.num_gpus + 1}")
        started = np.flatnonzero(self.throughputs[:, 0])
        if started.size:
            job = started[0]
            raise self.refuse("throughputs", f"got {self.throughputs[job, 0]:g} at index [{job}, 0], must be 0")

    @property
    def num_jobs(self) -> int:
        return self.dims["n"]

    @property
    def horizon(self) -> int:
        """Slots until the latest deadline."""
        return int(self.deadlines.max())

    def plan_dims(self) -> dict[str, int]:
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
        """Whether every job gains less, or the same, from each GPU than from the one before.

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

    def broken_slot_rules(self, gpus: IntArray, required: FloatArray) -> Iterator[Violation]:
        """Rules (2) and (3) of the paper for GPUs that must do ``required`` iterations."""
        yield from exceeding("gpus_nonnegative", -gpus, 0)
        yield from exceeding("work", -self.work(gpus), -required)
        yield from exceeding("capacity", gpus.sum(axis=0), self.num_gpus)
        late = np.where(np.arange(self.horizon) < self.deadlines[:, None], 0, gpus)
        yield from exceeding("after_deadline", late, 0)


def draw_jobs(
    rng: np.random.Generator,
    *,
    num_jobs: int,
    num_gpus: int,
    horizon: int,
    tightness: float,
    curves: str,
) -> dict[str, Any]:
    """Fields of synthetic jobs; the generators say what the parameters mean."""
    n = num_jobs
    throughputs = _CURVES[curves](rng, n, num_gpus)
    deadlines = rng.integers(1, horizon + 1, n)
    requested = np.minimum(rng.choice([1, 2, 4, 8], n, p=[0.6, 0.2, 0.15, 0.05]), num_gpus)
    # A deadline is 0.5 to 1.5 times the job's duration on the GPUs requested, as in the paper.
    durations = deadlines / rng.uniform(0.5, 1.5, n)
    best = np.maximum.accumulate(throughputs, axis=1)
    iterations = durations * best[np.arange(n), requested]
    # On the fewest GPUs on which it runs, a job needs the least GPU time that it can.
    rate = (throughputs[:, 1:] / np.arange(1, num_gpus + 1)).max(axis=1)
    load = max((iterations / rate)[deadlines <= last].sum() / (num_gpus * last) for last in deadlines.tolist())
    iterations *= tightness / load
    return {
        "num_gpus": num_gpus,
        "iterations": np.minimum(iterations, 0.95 * deadlines * best[:, -1]),
        "deadlines": deadlines,
        "throughputs": throughputs,
    }


def _linear_curves(rng: np.random.Generator, n: int, num_gpus: int) -> FloatArray:
    curves: FloatArray = np.outer(10 ** rng.uniform(1, 3, n), np.arange(num_gpus + 1))
    return curves


def _concave_curves(rng: np.random.Generator, n: int, num_gpus: int) -> FloatArray:
    """Each doubling of the GPUs is worth less than the one before; linear between powers of two."""
    levels = 2 ** np.arange(num_gpus.bit_length() + 1)
    gain = rng.uniform(0.5, 1, (n, 1)) * np.cumprod(rng.uniform(0.5, 1, (n, len(levels) - 1)), axis=1)
    speed = np.cumprod(np.hstack([np.ones((n, 1)), 1 + gain]), axis=1) * 10 ** rng.uniform(1, 3, (n, 1))
    gpus = np.arange(num_gpus + 1)
    return np.array([np.interp(gpus, [0, *levels], [0, *row]) for row in speed])


def _measured_curves(rng: np.random.Generator, n: int, num_gpus: int) -> FloatArray:
    """Concave curves with an error of up to 20% at each power of two, flat in between."""
    gpus = np.arange(num_gpus + 1)
    power = 2 ** np.floor(np.log2(np.maximum(gpus, 1))).astype(int)
    error = rng.uniform(0.8, 1.2, (n, num_gpus + 1))
    curves: FloatArray = (_concave_curves(rng, n, num_gpus) * error)[:, power]
    curves[:, 0] = 0.0
    return curves


_CURVES = {"linear": _linear_curves, "concave": _concave_curves, "measured": _measured_curves}
