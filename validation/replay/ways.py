"""Ways in which the jobs of a setting can run, by which :mod:`validation.replay.offline` bounds its schedules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from instances.schema import BoolArray, FloatArray, IntArray
from validation.replay.engine import Jobs

__all__ = ["Hindsight", "Slots", "Ways", "corners_of"]


@dataclass(frozen=True, eq=False)
class Ways:
    """Ways in which jobs can run, w of them, with r resources; an entry for each job in each way, e of them.

    Attributes
    ----------
    capacity : (r,) float
    takes : (w, r) float
        What each way takes of each resource while it lasts.
    way, job : (e,) int
    rate : (e,) float
        Work/s of the job in the way, above 0.
    attained : bool
        Whether each division of time among the ways, anew at each arrival and end, is a schedule of the setting.
    """

    capacity: FloatArray
    takes: FloatArray
    way: IntArray
    job: IntArray
    rate: FloatArray
    attained: bool = False

    @classmethod
    def alone(cls, capacity: FloatArray, ways: Iterable[tuple[int, float, Sequence[float]]], **others: bool) -> Ways:
        """Return ways of one job each: the job, its rate and what it takes; those without a rate are left out."""
        some = [one for one in ways if one[1] > 0]
        return cls(
            capacity=np.asarray(capacity, float),
            takes=np.array([takes for _, _, takes in some], float).reshape(len(some), len(capacity)),
            way=np.arange(len(some)),
            job=np.array([job for job, _, _ in some], np.int64),
            rate=np.array([rate for _, rate, _ in some], float),
            **others,
        )

    def of(self, jobs: IntArray) -> Ways:
        """Return the ways of some of the jobs, numbered anew, without those in which others are too."""
        place = np.full(int(self.job.max(initial=-1)) + 1, -1)
        place[jobs] = np.arange(len(jobs))
        kept = np.ones(len(self.takes), bool)
        kept[self.way[place[self.job] < 0]] = False
        entries = kept[self.way]
        number = np.cumsum(kept) - 1
        return Ways(
            self.capacity, self.takes[kept], number[self.way[entries]], place[self.job[entries]], self.rate[entries],
            self.attained,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Slots:
    """Deadlines in slots at whose beginnings whole GPUs change hands; n is the number of jobs.

    Attributes
    ----------
    num_gpus : int
    curves : (n, num_gpus+1) float
        Work in a slot on 0, 1, 2, ... GPUs.
    first, last : (n,) int
        The slots from ``first`` on and before ``last`` are the job's; only jobs with a deadline count.
    counts : (n,) bool
        Whether each job has a deadline.
    attained : bool
        Whether each plan within these slots is a schedule of the setting.
    """

    num_gpus: int
    curves: FloatArray
    first: IntArray
    last: IntArray
    counts: BoolArray
    attained: bool


class Hindsight(Protocol):
    """A setting whose schedules can be bounded; all of the library's are.

    Attributes
    ----------
    all_run : bool
        Whether every job is run to its end, without which completion times have no bound.
    """

    @property
    def jobs(self) -> Jobs:
        """Jobs that are replayed."""

    @property
    def all_run(self) -> bool:
        """True if all jobs complete, whatever is decided."""

    def ways(self) -> Ways:
        """Return the ways in which its jobs can run."""
        ...

    def slots(self) -> Slots | None:
        """Return its deadlines, where they are what counts."""
        ...


def corners_of(curve: FloatArray) -> list[int]:
    """Return the GPUs at the corners of the least concave curve above one that begins with 0; up to its peak.

    With time that is divided, what other numbers do comes of these.
    """
    corners = [0]
    for gpus in range(1, int(curve.argmax()) + 1):
        while len(corners) > 1:
            before, last = corners[-2:]
            if (curve[gpus] - curve[before]) * (last - before) < (curve[last] - curve[before]) * (gpus - before):
                break
            corners.pop()
        corners.append(gpus)
    return corners[1:]
