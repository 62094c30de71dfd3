"""Small sets of jobs with deadlines, which do whole numbers of iterations."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from instances.elasticflow.sharing import DeadlineJobs
from validation.claims.assumed import concave

__all__ = ["ALIKE", "alike", "have_concave_curves", "have_linear_curves", "have_rising_curves", "sets"]

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


def alike(problem: type[Jobs]) -> Iterator[Jobs]:
    """Yield up to three jobs that do 2 iterations in a slot on one GPU, and 3 on both."""
    for num_jobs in range(1, 4):
        yield from _of_curves(problem, [(0, 2, 3)], num_jobs, 3)


ALIKE = (
    "up to 3 jobs of one concave curve, 2 iterations per slot on one GPU and 3 on two, with deadlines of 1 to 3 slots, "
    "on 2 GPUs"
)
"""Description of these."""


def have_rising_curves(jobs: DeadlineJobs[Any]) -> bool:
    """Return whether all jobs have iterations left, and concave curves that rise with every GPU."""
    return _with_work(jobs) and concave(jobs.throughputs, strictly_rising=True)


def have_concave_curves(jobs: DeadlineJobs[Any]) -> bool:
    """Return whether all jobs have iterations left, and concave curves, which may end flat."""
    return _with_work(jobs) and concave(jobs.throughputs)


def have_linear_curves(jobs: DeadlineJobs[Any]) -> bool:
    """Return whether all jobs have iterations left, and do as much on each further GPU as on the first."""
    gains = np.diff(jobs.throughputs, axis=1)
    return have_rising_curves(jobs) and bool((gains == gains[:, :1]).all())


def _with_work(jobs: DeadlineJobs[Any]) -> bool:
    return bool((jobs.iterations > 0).all())


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
