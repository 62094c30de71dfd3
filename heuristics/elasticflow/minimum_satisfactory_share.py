"""Fast methods for :class:`instances.elasticflow.minimum_satisfactory_share.MinimumSatisfactoryShare`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product

import numpy as np

from heuristics.elasticflow.filling import (
    fill_fewest,
    fill_job,
    fill_job_cleared,
    fill_jobs,
    fill_together,
    run_by_deadline,
)
from instances.elasticflow.minimum_satisfactory_share import MinimumSatisfactoryShare
from instances.elasticflow.sharing import SlotPlan
from instances.schema import FloatArray, IntArray

__all__ = ["edf", "local_search", "progressive_filling", "progressive_filling_cleared"]

PRICES = (0.5, 0.7, 1.0, 1.4, 2.0)
"""Of a GPU in :func:`local_search`, of those that a slot does not have 1 at first."""


def progressive_filling(instance: MinimumSatisfactoryShare, *, powers_of_two: bool = False) -> SlotPlan | None:
    """Algorithm 1: jobs by deadline, each raised level by level until it finishes in time.

    At level j slots are set to min(j, free GPUs), from the deadline backwards, and keep what the level
    before gave them until they are; the job stops as soon as all its slots do its iterations
    (:func:`heuristics.elasticflow.filling.fill_job`).  Ties between deadlines go to the lowest job.

    Guarantee: on concave curves each job holds the fewest GPU-slots that do with what the jobs before
    it have left.  On linear curves it finds a plan of the least GPU time whenever there is one.  On
    others it returns None when a job finds no level, which can happen although there is a plan, and
    none is known on the GPU time of all jobs.  Complexity: O(n log n + n (G + h)).

    Parameters
    ----------
    instance : MinimumSatisfactoryShare
    powers_of_two : bool
        Let jobs run on powers of two only, as the system does; min() is then rounded down.

    References
    ----------
    ElasticFlow (ASPLOS'23), section 4.1, Algorithm 1.
    """
    gpus = fill_jobs(instance, np.arange(instance.num_jobs), partial(fill_job, powers_of_two=powers_of_two))
    return None if gpus is None else SlotPlan(gpus=gpus)


def progressive_filling_cleared(instance: MinimumSatisfactoryShare) -> SlotPlan | None:
    """:func:`progressive_filling` with a job's slots cleared before every level (ours).

    A job holds min(j, free GPUs) of one level j in each slot that it uses.  That is one number of GPUs
    where it has the cluster to itself, but more of them, and fewer plans, than as printed.

    Guarantee: none known; None as :func:`progressive_filling`.  Complexity: O(n log n + n (G + h)).
    """
    gpus = fill_jobs(instance, np.arange(instance.num_jobs), fill_job_cleared)
    return None if gpus is None else SlotPlan(gpus=gpus)


def local_search(
    instance: MinimumSatisfactoryShare, *, budget: int = 300, rng: np.random.Generator | int = 0
) -> SlotPlan | None:
    """Algorithm 1 in other orders of the jobs, jobs filled together, and then two at a time filled anew (ours).

    In each order each job takes the fewest GPU-slots that do with what those before it have left
    (:func:`heuristics.elasticflow.filling.fill_fewest`).  The first order is that of the deadlines; a job that finds
    too few GPUs, or else the one that takes most GPU-slots above what it would alone, moves to the front, as in squeaky
    wheel optimization, and in an order that comes again jobs are moved at random.  Where a job still takes more than
    alone, all jobs are also filled together, from what each would take alone, at five prices of a GPU
    (:func:`heuristics.elasticflow.filling.fill_together`).  In each plan found a job that takes more than alone and
    another give back their GPUs and are filled anew, as long as that takes fewer GPU-slots.

    Guarantee: a plan wherever :func:`progressive_filling` has one, and never more GPU-slots; none known relative to the
    optimum.  None where no order tried has a plan.  Complexity: that of Algorithm 1, and O(G + h) for
    each job filled; on curves that are not concave as :func:`~heuristics.elasticflow.filling.fill_fewest`; O(h G) for
    each job filled together with the others.

    Parameters
    ----------
    instance : MinimumSatisfactoryShare
    budget : int
        Jobs that are filled in orders, about, and at each price; and with n jobs, one for each n of them, pairs of a
        plan that are exchanged.
    rng : Generator or int
        Source of randomness, or its seed.

    References
    ----------
    Joslin, Clements, Squeaky Wheel Optimization (Journal of Artificial Intelligence Research 10, 1999).
    """
    draw, order = np.random.default_rng(rng), np.argsort(instance.deadlines, kind="stable").tolist()
    alone = [fill_fewest(instance, job, np.full(end, instance.num_gpus)) for job, end in enumerate(instance.deadlines)]
    least = np.array([np.inf if held is None else held.sum() for held in alone])
    apart = np.zeros((instance.num_jobs, instance.horizon), np.int64)
    for job, held in enumerate(alone):
        if held is not None:
            apart[job, : len(held)] = held
    best = fill_jobs(instance, np.arange(instance.num_jobs))
    left, seen = budget, set[tuple[int, ...]]()
    while np.isfinite(least).all() and left > 0 and (best is None or best.sum() > least.sum()):
        if tuple(order) in seen:
            places = np.arange(len(order)) + draw.random(len(order)) * len(order) / 2
            order = [order[place] for place in np.argsort(places)]
        seen.add(tuple(order))
        left -= len(order)
        gpus, front = _in_order(instance, order)
        if front is None:
            best = gpus if best is None or gpus.sum() < best.sum() else best
            front = order[int((gpus.sum(axis=1) - least)[order].argmax())]
        order = [front, *(job for job in order if job != front)]
    plans = [] if best is None else [_exchanged(instance, best, least, budget)]
    if np.isfinite(least).all() and budget > 0 and (best is None or plans[0].sum() > least.sum()):
        for price in PRICES:
            found, _ = fill_together(instance, apart, instance.deadlines, budget, price=price, rise=1.2, rounds=24)
            if found is not None:
                plans.append(_exchanged(instance, found, least, budget))
    return SlotPlan(gpus=min(plans, key=lambda gpus: int(gpus.sum()))) if plans else None


def _in_order(instance: MinimumSatisfactoryShare, order: Sequence[int]) -> tuple[IntArray, int | None]:
    """Fill jobs one after the other; return their GPUs, and the first that finds too few, if any does."""
    gpus = np.zeros((instance.num_jobs, instance.horizon), np.int64)
    free = np.full(instance.horizon, instance.num_gpus)
    for job in order:
        held = fill_fewest(instance, job, free[: instance.deadlines[job]])
        if held is None:
            return gpus, job
        gpus[job, : len(held)] = held
        free[: len(held)] -= held
    return gpus, None


def _exchanged(instance: MinimumSatisfactoryShare, gpus: IntArray, least: FloatArray, budget: int) -> IntArray:
    """Fill two jobs at a time anew, as long as that takes fewer GPU-slots; each n of the budget pay for a pair."""
    while budget > 0 and (pair := _in_pairs(instance, gpus, least)) is not None:
        gpus, budget = pair, budget - instance.num_jobs
    return gpus


def _in_pairs(instance: MinimumSatisfactoryShare, gpus: IntArray, least: FloatArray) -> IntArray | None:
    """Fill a job that takes more than alone anew, and another after it; None where no two then take fewer GPU-slots."""
    taken, free = gpus.sum(axis=1), instance.num_gpus - gpus.sum(axis=0)
    dear = [int(job) for job in np.argsort(least - taken, kind="stable") if taken[job] > least[job]]
    for job, other in product(dear, range(instance.num_jobs)):
        both = free + gpus[job] + (gpus[other] if other != job else 0)
        changed = gpus.copy()
        for one in dict.fromkeys((job, other)):
            held = fill_fewest(instance, one, both[: instance.deadlines[one]])
            if held is None:
                break
            changed[one] = np.pad(held, (0, instance.horizon - len(held)))
            both = both - changed[one]
        else:
            if changed.sum() < gpus.sum():
                return changed
    return None


def edf(instance: MinimumSatisfactoryShare) -> SlotPlan:
    """Earliest deadline first: each job in turn takes as many GPUs as do not slow it down, from slot 0 on.

    The baseline that Figure 3 argues against: more GPUs do less each, so later jobs starve.

    Guarantee: none; jobs may miss their deadlines, even where Algorithm 1 has a plan.
    Complexity: O(n log n + n (G + h)).

    References
    ----------
    ElasticFlow (ASPLOS'23), section 3.2, Figure 3, and section 6.1 (baseline EDF).
    """
    return SlotPlan(gpus=run_by_deadline(instance, np.arange(instance.num_jobs)))
