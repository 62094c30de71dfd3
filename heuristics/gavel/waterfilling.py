"""Soroush's water filling without linear programs, for max-min and hierarchical fairness.

A job is split into parts, one for each type that it can use, and each part rises on its own: it has a share
of the job's water, and stops when its pool is full or when the job has no time left.  With the split given,
levels follow by sorting.  The split is a guess, or what the levels of the pass before were made of.

Pairs are left out: a row that serves two jobs is no part of either.

References
----------
Namyar et al., "Solving Max-Min Fair Resource Allocations Quickly on Large Graphs" (NSDI'24), section 3.
"""

from __future__ import annotations

import numpy as np

from instances.arithmetic import dot
from instances.gavel.hierarchical_fairness import HierarchicalFairness
from instances.gavel.sharing import Allocation
from instances.schema import BoolArray, FloatArray

__all__ = ["filled", "refilled", "rise"]

FLOOR = 1e-12
"""Least part of a job's water: a type that has faded must be able to return where all others are full."""
FULL = 1e-10
"""The most that may be left of a pool, relative to its workers, when it counts as full."""


def filled(instance: HierarchicalFairness) -> Allocation:
    """One pass, with each job's water split evenly over the types that it can use."""
    return _allocation(instance, _pass(instance, _even(instance)))


def refilled(instance: HierarchicalFairness, passes: int) -> Allocation:
    """So many passes, each with the water split as the levels of the one before are made of types.

    Raises
    ------
    ValueError
        When ``passes`` is less than 1.
    """
    if passes < 1:
        raise ValueError(f"passes: got {passes!r}, must be at least 1")
    split = _even(instance)
    for _ in range(passes):
        times = _pass(instance, split)
        steps = instance.throughputs * times
        whole = steps.sum(axis=1, keepdims=True)
        split = np.where(split > 0, np.maximum(np.divide(steps, whole, out=split, where=whole > 0), FLOOR), 0.0)
    return _allocation(instance, times)


def _even(instance: HierarchicalFairness) -> FloatArray:
    usable = instance.fits[: instance.num_jobs] & (instance.throughputs > 0)
    split: FloatArray = usable / np.maximum(1, usable.sum(axis=1, keepdims=True))
    return split


def _allocation(instance: HierarchicalFairness, times: FloatArray) -> Allocation:
    return Allocation(time_fractions=np.vstack([times, np.zeros((instance.num_pairs, instance.num_types))]))


def _pass(instance: HierarchicalFairness, split: FloatArray) -> FloatArray:
    """(n, k) float: fractions of time that water filling gives the parts of all jobs.

    Entities get water by their weights and hand it to their jobs that rise, by their weights or in order.  A
    job whose parts have all stopped gets none.
    """
    n, p = instance.num_jobs, len(instance.num_workers)
    # Time that a job spends on each type for a unit of its water.
    pace = split / instance.scale_factors[:, None]
    times = np.zeros_like(pace)
    workers = instance.num_workers.astype(float)
    used = np.zeros(p)
    opened: BoolArray = workers > 0
    while opened.any():
        open_pace = np.where(opened[instance.pools], pace, 0.0)
        spent = open_pace.sum(axis=1)
        room = np.divide(np.maximum(0.0, 1 - times.sum(axis=1)), spent, out=np.zeros(n), where=spent > 0)
        load = np.zeros((n, p))
        np.add.at(load.T, instance.pools, instance.scale_factors * open_pace.T)
        water = rise(instance, room, load, np.where(opened, workers - used, np.inf))
        times += open_pace * water[:, None]
        used += dot(water, load)
        full = opened & (workers - used <= FULL * workers)
        if not full.any():
            break
        opened &= ~full
    return times


def rise(instance: HierarchicalFairness, room: FloatArray, load: FloatArray, left: FloatArray) -> FloatArray:
    """(n,) float: water of each job when the first pool is full, or no job has room for more.

    Parameters
    ----------
    instance : HierarchicalFairness
    room : (n,) float
        Water that each job can take.
    load : (n, p) float
        Workers of each pool that a unit of a job's water takes.
    left : (p,) float
        Workers that are left of each pool.
    """
    entities = [_Entity(instance, number, room) for number in range(instance.num_entities)]

    def water(height: float) -> FloatArray:
        risen = np.zeros(len(room))
        for entity in entities:
            risen[entity.jobs] = entity.water(height)
        return risen

    # Between two heights at which a job stops, everything is linear.
    heights = np.unique(np.concatenate([[0.0], *(entity.stops for entity in entities)]))
    low, high = 0, len(heights) - 1
    if (dot(water(heights[high]), load) <= left).all():
        return water(heights[high])
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if (dot(water(heights[middle]), load) <= left).all() else (low, middle)
    below, above = water(heights[low]), water(heights[high])
    before, slope = dot(below, load), dot(above - below, load)
    part = np.divide(left - before, slope, out=np.full(len(left), np.inf), where=slope > 0)
    risen: FloatArray = below + (above - below) * max(0.0, float(part.min()))
    return risen


class _Entity:
    """An entity that hands its water to its jobs; at height h it has got h times its weight.

    Parameters
    ----------
    instance : HierarchicalFairness
    number : int
        Of the entity.
    room : (n,) float
        Water that each job can take.

    Attributes
    ----------
    jobs : (j,) int
    stops : (j + 1,) float
        Heights, in increasing order, beginning with 0, between which the jobs' water is linear.
    """

    def __init__(self, instance: HierarchicalFairness, number: int, room: FloatArray) -> None:
        self.jobs = np.flatnonzero(instance.entities == number)
        self._room = room[self.jobs]
        self._weight = float(instance.entity_weights[number])
        self._in_order = instance.entity_policies[number] == "fifo"
        self._weights = instance.weights[self.jobs]
        if self._in_order:
            self._before = np.cumsum(self._room) - self._room
            self.stops = np.concatenate([[0.0], np.cumsum(self._room)]) / self._weight
            return
        # All jobs have the same water by weight until they stop.
        with np.errstate(over="ignore"):  # Beyond all floats, a job rises longer than any other.
            by_weight = self._room / self._weights
        order = np.argsort(by_weight, kind="stable")
        rising = np.cumsum(self._weights[order][::-1])[::-1]
        self._by_weight = np.concatenate([[0.0], by_weight[order]])
        self.stops = np.concatenate([[0.0], np.cumsum(np.diff(self._by_weight) * rising)]) / self._weight

    def water(self, height: float) -> FloatArray:
        """(j,) float: water of the entity's jobs at a height."""
        if self._in_order:
            water: FloatArray = np.clip(self._weight * height - self._before, 0.0, self._room)
        else:
            water = np.minimum(self._weights * np.interp(height, self.stops, self._by_weight), self._room)
        return water
