"""Schedules from what a program says of its slots: an order of completions, lengths, shares or work."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from instances.afs.elastic_sharing import ElasticSharing, Schedule
from instances.afs.simulation import State, simulate
from instances.schema import FloatArray, IntArray

__all__ = ["CRUMB", "in_slots", "rounded", "wrapped_around"]

CRUMB = 1e-9
"""Part of a schedule, or of a slot, that is the solver's tolerance and not a decision."""


def in_slots(instance: ElasticSharing, order: IntArray, shares: IntArray) -> Schedule:
    """Jobs hold ``shares[k]`` until the job that is k-th in ``order`` completes."""

    def policy(state: State) -> IntArray:
        slot = int((state.remaining[order] > 0).argmax())
        return np.asarray(shares[slot])

    return simulate(instance, policy)


def wrapped_around(instance: ElasticSharing, lengths: FloatArray, work: FloatArray) -> Schedule:
    """Return the schedule that does ``work[j, k]`` in slot k, whole GPUs at every moment (concave curves)."""
    times, rows = [0.0], []
    for k in np.flatnonzero(work.any(axis=0)):
        average, length = _averages(instance, work[:, k], float(lengths[k]))
        base = np.floor(average + CRUMB).astype(np.int64)
        extra = np.maximum(average - base, 0)
        extra *= min(1.0, (instance.num_gpus - base.sum()) / max(extra.sum(), CRUMB))
        # The extra GPUs' times end to end, in parts of the slot: job j's starts at begins[j].
        begins = np.cumsum(extra) - extra
        cuts = np.unique(np.concatenate([[0.0, 1.0], begins % 1, (begins + extra) % 1]))
        cuts = cuts[np.diff(cuts, prepend=-1.0) > CRUMB]
        cuts[-1] = 1.0
        for start, end in pairwise(cuts):
            rows.append(base + (((start + end) / 2 - begins) % 1 < extra))
            times.append(times[-1] + (end - start) * length)
    return Schedule(times=np.array(times), shares=np.array(rows))


def _averages(instance: ElasticSharing, work: FloatArray, length: float) -> tuple[FloatArray, float]:
    """Average shares that do ``work`` in a slot, and its length (concave curves).

    The slot is made longer by what the solver's tolerance took away.
    """
    length = max(length, float((work / instance.throughputs[:, -1]).max()))
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


def rounded(instance: ElasticSharing, order: IntArray, lengths: FloatArray, work: FloatArray) -> IntArray:
    """Round shares to whole ones for each slot, near those that do ``work``.

    In order of completion, each job gets the fewest GPUs that are fast enough for its work, or the
    most useful ones that are left; what remains then goes the same way up to the fastest shares.
    """
    n = instance.num_jobs
    speeds = work / np.maximum(lengths, CRUMB * lengths.sum())
    shares = np.zeros((n, n), np.int64)
    for k in range(n):
        left = instance.num_gpus
        for wanted in (speeds[:, k] * (1 - CRUMB), instance.throughputs[:, -1]):
            for job in order[k:]:
                table = instance.throughputs[job]
                left += int(shares[k, job])
                enough = int(np.searchsorted(table, min(wanted[job], table[left])))
                shares[k, job] = max(enough, int(shares[k, job]))
                if job == order[k]:
                    # The slot ends with this job, so it has to run.
                    shares[k, job] = max(int(shares[k, job]), int(instance.min_shares[job]))
                left -= int(shares[k, job])
    return shares
