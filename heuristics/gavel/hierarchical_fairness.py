"""Fast methods for :class:`instances.gavel.hierarchical_fairness.HierarchicalFairness`.

The allocations that every policy of Gavel is compared with (:mod:`heuristics.gavel.sharing`) know
of jobs only; :func:`entity_share` and the approximations of Soroush (NSDI'24) know of entities too.
"""

from __future__ import annotations

import numpy as np

from heuristics.gavel import sharing
from heuristics.gavel.binning import Maximize, binned
from heuristics.gavel.waterfilling import filled, refilled
from instances.gavel.hierarchical_fairness import HierarchicalAllocation, HierarchicalFairness

__all__ = [
    "adaptive_waterfiller",
    "approximate_waterfiller",
    "entity_share",
    "equal_share",
    "geometric_binner",
    "heterogeneity_agnostic",
    "isolated",
    "matched_packing",
    "random_packing",
]


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
