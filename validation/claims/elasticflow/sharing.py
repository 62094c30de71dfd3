"""Small sets of jobs with deadlines, and all of their plans.

Jobs do whole numbers of iterations, so that whether there is a plan, and how little GPU time it
takes, is found exactly, by trying every way of sharing every slot.  What judges the heuristics here
shares nothing with the models of :mod:`formulations`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from instances.elasticflow.sharing import DeadlineJobs

__all__ = ["least_gpu_time", "sets", "sets_of_one_curve", "speeds_up"]

Jobs = TypeVar("Jobs", bound=DeadlineJobs[Any])


def sets(
    problem: type[Jobs],
    *,
    most_jobs: int,
    most_gpus: int,
    most_slots: int,
    most_gain: int,
    linear: bool = False,
    fewest_jobs: int = 1,
) -> Iterator[Jobs]:
    """Yield all sets of jobs of linear or of concave curves, none of which is too large for the cluster alone.

    The first GPU of a job does 1 to ``most_gain`` iterations in a slot, each other one the same
    (linear) or no more than the one before (concave).
    """
    for num_jobs, num_gpus in itertools.product(range(fewest_jobs, most_jobs + 1), range(1, most_gpus + 1)):
        curves = [
            (0, *itertools.accumulate(gains))
            for gains in itertools.combinations_with_replacement(range(most_gain, -1, -1), num_gpus)
            if gains[0] and (not linear or gains[0] == gains[-1])
        ]
        yield from _of_curves(problem, curves, num_jobs, most_slots)


def sets_of_one_curve(
    problem: type[Jobs], curve: tuple[int, ...], *, most_jobs: int, most_slots: int, fewest_jobs: int = 1
) -> Iterator[Jobs]:
    """Yield the sets of :func:`sets` whose jobs all have ``curve``."""
    for num_jobs in range(fewest_jobs, most_jobs + 1):
        yield from _of_curves(problem, [curve], num_jobs, most_slots)


def _of_curves(
    problem: type[Jobs], curves: Sequence[tuple[int, ...]], num_jobs: int, most_slots: int
) -> Iterator[Jobs]:
    """Yield all sets of so many jobs of any of the curves, those with least in them first."""
    kinds = [
        (iterations, deadline, curve)
        for curve in curves
        for deadline in range(1, most_slots + 1)
        for iterations in range(1, deadline * curve[-1] + 1)
    ]
    sets = itertools.combinations_with_replacement(kinds, num_jobs)
    for jobs in sorted(sets, key=lambda jobs: sum(done + deadline + sum(curve) for done, deadline, curve in jobs)):
        iterations, deadlines, of_job = zip(*jobs, strict=True)
        yield problem(
            num_gpus=len(of_job[0]) - 1,
            iterations=np.array(iterations, float),
            deadlines=np.array(deadlines),
            throughputs=np.array(of_job, float),
        )


def least_gpu_time(instance: DeadlineJobs[Any], *, useful: bool = False, parts: int = 1) -> int | None:
    """Return the fewest GPU-slots of all plans, found by trying them all; None when there is no plan.

    Parameters
    ----------
    instance : DeadlineJobs
    useful : bool
        Whether (7) is to hold: no GPU is idle in slot 0 that would speed up a job.
    parts : int
        Parts into which each GPU can be divided, which are then counted; for linear curves.
    """
    num_gpus = parts * instance.num_gpus
    # In units of 1 / parts iterations, in which a part of a GPU does what a GPU does.
    curves = [[int(done) for done in curve] for curve in instance.throughputs]
    if parts > 1:
        curves = [[curve[1] * count for count in range(num_gpus + 1)] for curve in curves]
    least = {tuple(parts * int(each) for each in instance.iterations): 0}
    for slot in range(instance.horizon):
        counts = (range(num_gpus + 1) if deadline > slot else (0,) for deadline in instance.deadlines)
        shares = [gpus for gpus in itertools.product(*counts) if sum(gpus) <= num_gpus]
        if useful and slot == 0:
            shares = [gpus for gpus in shares if sum(gpus) == num_gpus or not speeds_up(curves, gpus)]
        after: dict[tuple[int, ...], int] = {}
        for (left, used), gpus in itertools.product(least.items(), shares):
            now = tuple(max(0, work - curve[x]) for work, curve, x in zip(left, curves, gpus, strict=True))
            after[now] = min(used + sum(gpus), after.get(now, used + sum(gpus)))
        due = np.flatnonzero(instance.deadlines == slot + 1)
        least = {left: used for left, used in after.items() if not any(left[job] for job in due)}
    return min(least.values(), default=None)


def speeds_up(curves: list[list[int]], gpus: tuple[int, ...]) -> bool:
    """Return whether one more GPU would make a job faster."""
    return any(max(curve[x : x + 2]) > curve[x] for curve, x in zip(curves, gpus, strict=True))
