"""Rounds for jobs of which it is known in how many each runs."""

from __future__ import annotations

import numpy as np

from instances.schema import BoolArray, IntArray

__all__ = ["packed"]


def packed(rounds: IntArray, scale_factors: IntArray, num_gpus: int, num_rounds: int) -> BoolArray | None:
    """Return in which rounds jobs run that are to run in so many, or None where that is not found.

    Rounds are found for the widest jobs first: for each job those with the most GPUs left (of jobs of one width, that
    finds rounds where there are any: Gale, Ryser), or, where it fails, for the jobs of each width as evenly as may be.
    That there are none is not proven.

    Parameters
    ----------
    rounds : (n,) int
        Rounds of each job, 0 to R.
    scale_factors : (n,) int
        GPUs of each job.
    num_gpus, num_rounds : int
        GPUs of a round, and R.

    Returns
    -------
    (n, r) bool, or None
    """
    for evenly in (False, True):
        runs = np.zeros((len(rounds), num_rounds), bool)
        left = np.full(num_rounds, num_gpus)
        for width in np.unique(scale_factors[rounds > 0])[::-1].tolist():
            jobs = np.flatnonzero((scale_factors == width) & (rounds > 0))
            jobs = jobs[np.argsort(-rounds[jobs], kind="stable")]
            room = left // width
            if evenly:
                each, more = divmod(int(rounds[jobs].sum()), num_rounds)
                fuller = np.argsort(-left, kind="stable")[:more]
                even = np.full(num_rounds, each)
                even[fuller] += 1
                if (even > room).any():
                    break
                room = even
            if not _assigned(jobs, rounds, room, runs):
                break
            left = left - width * runs[jobs].sum(axis=0)
        else:
            return runs
    return None


def _assigned(jobs: IntArray, rounds: IntArray, room: IntArray, runs: BoolArray) -> bool:
    """Give jobs of one width the rounds with the most room, those with the most rounds first; ``runs`` is changed."""
    room = room.copy()
    for job in jobs.tolist():
        some = np.argsort(-room, kind="stable")[: rounds[job]]
        if room[some[-1]] <= 0:
            return False
        room[some] -= 1
        runs[job, some] = True
    return True
