"""Sharing that gives all jobs the same mix of worker types, each for as long as its policy asks.

Job m alone splits its time over the pools that it can use in proportion to their size, and runs on
the best type of each.  All its time in that mix gives it ``mixed_throughputs[m]`` steps/s.
"""

from __future__ import annotations

from instances.gavel.sharing import Allocation, Sharing
from instances.schema import FloatArray

__all__ = ["allocation", "load", "mix", "mixed_throughputs"]


def mix(instance: Sharing) -> FloatArray:
    """(n, p) float: each job's split over the pools that it can use, by their size."""
    share = (instance.pool_throughputs > 0) * instance.num_workers.astype(float)
    split: FloatArray = share / share.sum(axis=1, keepdims=True)
    return split


def mixed_throughputs(instance: Sharing) -> FloatArray:
    """(n,) float: steps/s of each job alone in its mix all the time, positive."""
    received: FloatArray = (instance.pool_throughputs * mix(instance)).sum(axis=1)
    return received


def load(instance: Sharing, fractions: FloatArray) -> float:
    """How full the fullest pool or job is when jobs run for these (n,) fractions of time; 1 is full."""
    workers = (instance.scale_factors * fractions) @ mix(instance)
    used = instance.num_workers > 0
    return max(float(fractions.max()), float((workers[used] / instance.num_workers[used]).max()))


def allocation(instance: Sharing, fractions: FloatArray) -> Allocation:
    """Every job in its mix for (n,) fractions of the time."""
    return instance.on_best_placement(fractions[:, None] * mix(instance))
