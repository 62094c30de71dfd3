"""Upgrading configurations by marginal gain: what both allocation problems' greedy methods share."""

from __future__ import annotations

import numpy as np

from instances.schema import FloatArray, IntArray
from instances.synergy.sensitivity import CPU, MEMORY, ROUNDING, THROUGHPUT

__all__ = ["upgrade"]


def upgrade(
    choices: IntArray,
    configs: tuple[FloatArray, ...],
    types: tuple[IntArray, ...],
    usable: tuple[IntArray, ...],
    capacity: FloatArray,
) -> IntArray:
    """Give more resources where they add the most throughput, until nothing fits any more.

    Of all configurations that are faster than a job's present one, are of the same machine type
    and fit what is left there, the one with the most added throughput per added resource is taken.
    Resources are added up as fractions of the type's capacity; one that adds none goes first.
    Ties go to the lowest job, then to the lowest configuration.

    Parameters
    ----------
    choices : (n,) int
        Configurations to start from.
    configs : tuple of n arrays (a_j, 3)
    types : tuple of n arrays (a_j,) int
        Machine type of each configuration.
    usable : tuple of n arrays of int
        Configurations that may be taken.
    capacity : (k, 2) float
        CPU cores and memory of each type.

    Returns
    -------
    (n,) int
    """
    choices = choices.copy()
    if not choices.size:
        return choices
    job = np.repeat(np.arange(len(choices)), [len(rows) for rows in usable])
    config = np.concatenate(usable)
    table = np.concatenate([rows[kept] for rows, kept in zip(configs, usable, strict=True)])
    kind = np.concatenate([rows[kept] for rows, kept in zip(types, usable, strict=True)])
    ends = np.cumsum([len(rows) for rows in usable])
    scale = np.where(capacity > 0, capacity, 1.0)
    slack = ROUNDING * capacity

    current = np.array([rows[choice] for rows, choice in zip(configs, choices, strict=True)])
    current_kind = np.array([rows[choice] for rows, choice in zip(types, choices, strict=True)])
    left = capacity.astype(float)
    np.subtract.at(left, current_kind, current[:, :THROUGHPUT])

    def rated(span: slice) -> tuple[FloatArray, FloatArray]:
        extra = table[span, :THROUGHPUT] - current[job[span], :THROUGHPUT]
        gain = table[span, THROUGHPUT] - current[job[span], THROUGHPUT]
        cost = (extra / scale[kind[span]]).sum(axis=1)
        rate = np.where(cost > 0, gain / np.where(cost > 0, cost, 1.0), np.inf)
        return extra, np.where((gain > 0) & (kind[span] == current_kind[job[span]]), rate, -np.inf)

    extra, rate = rated(slice(None))
    while True:
        # Column by column, which is faster than over an axis of two.
        room = left + slack
        fits = (extra[:, CPU] <= room[kind, CPU]) & (extra[:, MEMORY] <= room[kind, MEMORY])
        best = int(np.where(fits, rate, -np.inf).argmax())
        if not fits[best] or rate[best] == -np.inf:
            return choices
        owner = int(job[best])
        choices[owner] = config[best]
        left[kind[best]] -= extra[best]
        current[owner] = table[best]
        span = slice(int(ends[owner]) - len(usable[owner]), int(ends[owner]))
        extra[span], rate[span] = rated(span)
