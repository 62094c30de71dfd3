"""Sharing that gives all jobs the same mix of worker types, each for as long as its policy asks.

Job m alone splits its time over the pools that it can use in proportion to their size, and runs on
the best type of each.  All its time in that mix gives it ``mixed_throughputs[m]`` steps/s.
"""

from __future__ import annotations

import numpy as np

from instances.arithmetic import dot
from instances.gavel.sharing import Allocation, Sharing
from instances.gavel.steps import SharingWithSteps
from instances.schema import FloatArray

__all__ = ["allocation", "load", "mix", "mixed_throughputs", "times"]


def mix(instance: Sharing) -> FloatArray:
    """(n, p) float: each job's split over the pools that it can use, by their size; 0 for one that can use none."""
    share = (instance.pool_throughputs > 0) * instance.num_workers.astype(float)
    whole = share.sum(axis=1, keepdims=True)
    split: FloatArray = np.divide(share, whole, out=np.zeros_like(share), where=whole > 0)
    return split


def mixed_throughputs(instance: Sharing) -> FloatArray:
    """(n,) float: steps/s of each job alone in its mix all the time; 0 for one that runs nowhere alone."""
    received: FloatArray = (instance.pool_throughputs * mix(instance)).sum(axis=1)
    return received


def times(instance: SharingWithSteps) -> FloatArray:
    """(n,) float: time that each job takes in its mix all the time, s; 0 for one that has finished or cannot run."""
    received = mixed_throughputs(instance)
    times: FloatArray = np.divide(instance.steps, received, out=np.zeros(instance.num_jobs), where=received > 0)
    return times


def load(instance: Sharing, fractions: FloatArray) -> float:
    """Return the load of the fullest pool or job when jobs run for these (n,) fractions of time; 1 is full."""
    workers = dot(instance.scale_factors * fractions, mix(instance))
    used = instance.num_workers > 0
    return max(float(fractions.max(initial=0.0)), float((workers[used] / instance.num_workers[used]).max(initial=0.0)))


def allocation(instance: Sharing, fractions: FloatArray) -> Allocation:
    """Every job in its mix for (n,) fractions of the time."""
    return instance.on_best_placement(fractions[:, None] * mix(instance))
