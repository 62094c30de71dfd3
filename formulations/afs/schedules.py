"""Schedules from what a program says of its slots: an order of completions, lengths, shares or work."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from instances.afs.elastic_sharing import ElasticSharing, Schedule
from instances.afs.simulation import State, simulate
from instances.schema import FloatArray, IntArray

__all__ = ["CRUMB", "in_slots", "rounded", "wrapped_around"]

CRUMB = 1e-9
"""Part of a schedule, or of a slot, that is the solver's tolerance and not a decision."""


def in_slots(
    instance: ElasticSharing, order: IntArray, begins: FloatArray, slots: Sequence[tuple[int, int]], shares: IntArray
) -> Schedule:
    """Return the schedule in which jobs hold the shares of one slot after the other.

    Parameters
    ----------
    instance : ElasticSharing
    order : (n,) int
        Jobs with work, in order of completion.
    begins : (i,) float
        When intervals between arrivals begin, s.
    slots : list of (int, int)
        Interval, and how many of ``order`` are complete, of each slot that there is, one after the other.
    shares : (slots, n) int
    """

    def policy(state: State) -> IntArray:
        interval = int(np.searchsorted(begins, state.now, side="right")) - 1
        complete = int((state.remaining[order] > 0).argmax())
        # Where an arrival and a completion are at one time but for rounding, a slot may come that there is not.
        past = [which for which, (i, k) in enumerate(slots) if i <= interval and k <= complete]
        now = past[-1] if past else 0
        runs = any(instance.throughputs[job, shares[now, job]] for job in state.active.tolist())
        return np.asarray(shares[now if runs else min(now + 1, len(slots) - 1)])

    return simulate(instance, policy)


def wrapped_around(instance: ElasticSharing, begins: FloatArray, lengths: FloatArray, work: FloatArray) -> Schedule:
    """Return the schedule that does ``work[j, k]`` in slot k, whole GPUs at every moment (concave curves).

    Slot k begins at ``begins[k]`` s or later, when the one before ends.
    """
    times, rows = [float(begins[0])], []
    for k in np.flatnonzero(work.any(axis=0)):
        if begins[k] > times[-1]:
            rows.append(np.zeros(instance.num_jobs, np.int64))
            times.append(float(begins[k]))
        average, length = _averages(instance, work[:, k], float(lengths[k]))
        base = np.floor(average + CRUMB).astype(np.int64)
        extra = np.maximum(average - base, 0)
        extra *= min(1.0, (instance.num_gpus - base.sum()) / max(extra.sum(), CRUMB))
        # The extra GPUs' times end to end, in parts of the slot: job j's starts at begin[j].
        begin = np.cumsum(extra) - extra
        cuts = np.unique(np.concatenate([[0.0, 1.0], begin % 1, (begin + extra) % 1]))
        cuts = cuts[np.diff(cuts, prepend=-1.0) > CRUMB]
        cuts[-1] = 1.0
        for start, end in pairwise(cuts):
            then = times[-1] + (end - start) * length
            # Among seconds since 1970 what is shorter than their last digit is nothing.
            if then > times[-1]:
                rows.append(base + (((start + end) / 2 - begin) % 1 < extra))
                times.append(then)
    return Schedule(times=np.array(times), shares=np.array(rows))


def _averages(instance: ElasticSharing, work: FloatArray, length: float) -> tuple[FloatArray, float]:
    """Average shares that do ``work`` in a slot, and its length (concave curves).

    The slot is made longer by what the solver's tolerance took away.
    """
    some = np.flatnonzero(work)
    length = max(length, float((work[some] / instance.throughputs[some, -1]).max()))
    while True:
        shares = np.array(
            [
                np.interp(done / length, table[: top + 1], np.arange(top + 1))
                for done, table, top in zip(work, instance.throughputs, instance.max_shares, strict=True)
            ]
        )
        if shares.sum() <= instance.num_gpus:
            return shares, length
        # With more time, concave curves need at most the same GPU-time.
        length *= max(float(shares.sum()) / instance.num_gpus, 1 + CRUMB)


def rounded(
    instance: ElasticSharing, there: Sequence[Sequence[int]], lengths: FloatArray, work: FloatArray
) -> IntArray:
    """Round shares to whole ones for each slot, near those that do ``work``.

    Of the jobs that are ``there``, in order of completion, each gets the fewest GPUs that are fast enough for its
    work, or the most useful ones that are left; what remains then goes the same way up to the fastest shares.
    """
    speeds = work / np.maximum(lengths, CRUMB * lengths.sum())
    shares = np.zeros((len(lengths), instance.num_jobs), np.int64)
    for k, jobs in enumerate(there):
        left = instance.num_gpus
        for wanted in (speeds[:, k] * (1 - CRUMB), instance.throughputs[:, -1]):
            for job in jobs:
                table = instance.throughputs[job]
                left += int(shares[k, job])
                enough = int(np.searchsorted(table, min(wanted[job], table[left])))
                shares[k, job] = max(enough, int(shares[k, job]))
                if job == jobs[0]:
                    # The slot ends with this job, so it has to run.
                    shares[k, job] = max(int(shares[k, job]), int(instance.min_shares[job]))
                left -= int(shares[k, job])
    return shares
