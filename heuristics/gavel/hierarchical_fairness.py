"""Fast methods for :class:`instances.gavel.hierarchical_fairness.HierarchicalFairness`.

The allocations that every policy of Gavel is compared with (:mod:`heuristics.gavel.sharing`) know
of jobs only; :func:`entity_share` and the approximations of Soroush (NSDI'24) know of entities too.
"""

from __future__ import annotations

import numpy as np

from heuristics.gavel import sharing
from heuristics.gavel.binning import Maximize, binned
from heuristics.gavel.levels import EPSILON, ROUGHLY, Attained, Levels, checked
from heuristics.gavel.waterfilling import filled, refilled, rise
from instances.gavel.hierarchical_fairness import HierarchicalAllocation, HierarchicalFairness
from instances.schema import BoolArray, FloatArray

__all__ = [
    "ENOUGH",
    "FULL",
    "ROUNDS",
    "adaptive_waterfiller",
    "approximate_waterfiller",
    "entity_share",
    "equal_share",
    "geometric_binner",
    "heterogeneity_agnostic",
    "interior_point",
    "isolated",
    "matched_packing",
    "random_packing",
]

ROUNDS = 6
"""Vectors of levels that are asked for at most."""
ENOUGH = 4
"""So many times ``epsilon`` is what levels may be short of those that are asked for."""
FULL = 1e-9
"""Part of a limit that may be left when it counts as reached."""


def entity_share(instance: HierarchicalFairness) -> HierarchicalAllocation:
    """Each entity gets its share of every pool by weight, and divides it among its jobs.

    Under "fairness" a job gets its share by weight, under "fifo" jobs take what is left in order,
    all the time if they can.  A job's time is scaled down to sum to at most 1, and it uses no pool
    that it does not fit or where it makes nothing; what it leaves there, only later jobs of a
    "fifo" entity take.

    Guarantee: each entity gets at least what a cluster of its share of the size would give it with
    this division.  Complexity: O(n * p).

    References
    ----------
    Gavel (OSDI'20), section 4.3 (the hierarchy); the division is static, as a cluster without
    water filling would have it.
    """
    usable = instance.pool_throughputs > 0
    fractions = np.zeros(usable.shape)
    shares = instance.entity_weights / instance.entity_weights.sum()
    for entity, policy in enumerate(instance.entity_policies.tolist()):
        jobs = np.flatnonzero(instance.entities == entity)
        left = shares[entity] * instance.num_workers
        for job in jobs:
            offered = left
            if policy == "fairness":
                offered = shares[entity] * instance.num_workers * instance.weights[job] / instance.weights[jobs].sum()
            time = np.where(usable[job], offered / instance.scale_factors[job], 0.0)
            fractions[job] = time / max(1.0, float(time.sum()))
            left = np.maximum(0.0, left - instance.scale_factors[job] * fractions[job])
    return instance.plan(instance.on_best_placement(fractions))


def isolated(instance: HierarchicalFairness) -> HierarchicalAllocation:
    """X_isolated: a 1/n share of every pool for each job (:func:`heuristics.gavel.sharing.isolated`).

    Guarantee: none on the levels of entities.  Complexity: O(n * k).

    References
    ----------
    Gavel (OSDI'20), section 4.1.
    """
    return instance.plan(sharing.isolated(instance))


def equal_share(instance: HierarchicalFairness) -> HierarchicalAllocation:
    """One fraction of time for all jobs (:func:`heuristics.gavel.sharing.equal_share`).

    Guarantee: none known.  Complexity: O(n * k).

    References
    ----------
    Gavel (OSDI'20), section 4.1.
    """
    return instance.plan(sharing.equal_share(instance))


def heterogeneity_agnostic(instance: HierarchicalFairness) -> HierarchicalAllocation:
    """Max-min fair worker time by the jobs' weights (:func:`heuristics.gavel.sharing.heterogeneity_agnostic`).

    Guarantee: none on throughputs.  Complexity: that of the shared function.

    References
    ----------
    Gavel (OSDI'20), sections 4.1 and 7.3.
    """
    return instance.plan(sharing.heterogeneity_agnostic(instance))


def random_packing(instance: HierarchicalFairness, *, rng: np.random.Generator | int = 0) -> HierarchicalAllocation:
    """Random partners, then shares by the jobs' weights (:func:`heuristics.gavel.sharing.random_packing`).

    Guarantee: none.  Complexity: that of the shared function.

    References
    ----------
    Gavel (OSDI'20), section 7.3 (the Gandiva baseline).
    """
    return instance.plan(sharing.random_packing(instance, rng=rng))


def matched_packing(instance: HierarchicalFairness) -> HierarchicalAllocation:
    """Partners by maximum-weight matching, then shares by weights (:func:`heuristics.gavel.sharing.matched_packing`).

    Guarantee: none on the levels of entities.  Complexity: that of the shared function.
    """
    return instance.plan(sharing.matched_packing(instance))


def approximate_waterfiller(instance: HierarchicalFairness) -> HierarchicalAllocation:
    """Soroush's water filling with split jobs (:func:`heuristics.gavel.max_min_fairness.approximate_waterfiller`).

    Entities get worker time by their weights, and hand it to their jobs that still rise, by weight or in order,
    as the problem's own water filling does with levels.

    Guarantee: none known on levels.  Complexity: O(p * n * (k + log n)).

    References
    ----------
    Namyar et al. (NSDI'24), section 3; entities are ours.
    """
    return instance.plan(filled(instance))


def adaptive_waterfiller(instance: HierarchicalFairness, *, passes: int = 10) -> HierarchicalAllocation:
    """Repeat :func:`approximate_waterfiller`, each time with the split that the throughputs of the one before have.

    Guarantee: none known on levels.  Complexity: that of :func:`approximate_waterfiller` for each pass.

    Raises
    ------
    ValueError
        When ``passes`` is less than 1.

    References
    ----------
    Namyar et al. (NSDI'24), section 3; entities are ours.
    """
    return instance.plan(refilled(instance, passes))


def geometric_binner(
    instance: HierarchicalFairness, solve: Maximize, *, alpha: float = 2.0, least_worth: float = 1e-8
) -> HierarchicalAllocation:
    """Soroush's bins of levels over weights (:func:`heuristics.gavel.max_min_fairness.geometric_binner`).

    Weights are those before any job is frozen.  Jobs that wait for others of their entity then have none: all
    that they get is worth as much as in the last bin.

    Guarantee: as for max-min fairness, of the levels over these weights of the jobs that have one, against the
    first level; none on what comes after it.  Complexity: as there.

    Raises
    ------
    ValueError
        When ``alpha`` or ``least_worth`` is out of range.

    References
    ----------
    Namyar et al. (NSDI'24), section 3; entities are ours.
    """
    return instance.plan(binned(instance, solve, alpha, least_worth))


def interior_point(instance: HierarchicalFairness, *, epsilon: float = EPSILON) -> HierarchicalAllocation:
    """Fill under limits that prices prove, until an allocation attains the levels (:mod:`heuristics.gavel.levels`).

    The first limit is that of the first levels.  Levels then rise until a limit is reached: jobs that it prices stop,
    and the others go no higher than they can on pools without a price.  Where an allocation falls short of the levels
    in which that ends, its prices are one limit more.

    Guarantee: a first level of no less than that of :func:`isolated`; none known on the vector of levels.
    Complexity: that of :func:`heuristics.gavel.max_min_fairness.interior_point`, at most ``ROUNDS`` times.

    Raises
    ------
    ValueError
        When ``epsilon`` is not at least 1e-5 and less than 0.1.
    """
    checked(epsilon)
    share, rising = isolated(instance), instance.ceilings > 0
    if not rising.any():
        return share
    per = np.divide(1.0, instance.level_per_throughput, out=np.zeros(instance.num_jobs), where=rising)
    levels = Levels(instance)
    limits = [best := levels.attain(instance.rates(~rising) * per, ROUGHLY * epsilon)]
    short = 1.0
    for _ in range(ROUNDS):
        got = levels.attain(_filled(instance, limits) * per, min(max(epsilon, short / 10), ROUGHLY * epsilon))
        best = got if 1 - got.multiple < short else best
        short = min(short, 1 - got.multiple)
        if got.multiple >= 1 - ENOUGH * epsilon:
            break
        limits.append(got)
    return max(share, instance.plan(best.allocation), key=instance.objective)


def _filled(instance: HierarchicalFairness, limits: list[Attained]) -> FloatArray:
    """(n,) float: levels where water filling under these limits ends."""
    per = np.divide(1.0, instance.level_per_throughput, out=np.zeros(instance.num_jobs), where=instance.ceilings > 0)
    prices, most = np.array([one.prices * per for one in limits]).T, np.array([one.limit for one in limits])
    free: BoolArray = np.array([one.free for one in limits])
    opened = np.ones(len(limits), bool)
    levels, ceilings = np.zeros(instance.num_jobs), instance.ceilings
    while True:
        levels = levels + rise(instance, ceilings - levels, prices, np.where(opened, most - levels @ prices, np.inf))
        full = opened & (most - levels @ prices <= FULL * most)
        if not full.any():
            return levels
        opened &= ~full
        unpriced = free[~opened][:, instance.pools].all(axis=0).astype(float)
        reach = np.maximum(levels, instance.greatest(unpriced) * instance.level_per_throughput)
        stopped = (prices[:, ~opened] > 0).any(axis=1)
        ceilings = np.where(stopped, levels, np.minimum(ceilings, reach))
