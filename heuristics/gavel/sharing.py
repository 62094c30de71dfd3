"""Allocations that every policy of Gavel can be compared with.

They take any :class:`instances.gavel.sharing.Sharing`, with its weights where it has some.  All
but :func:`isolated` and :func:`equal_share`, which have no use for weights, hand out *worker time*:
a job of scale factor s that runs a fraction x of the time receives s * x.

They are blind to how fast a job runs where, but not to where it can run at all: a job is given no
time on a pool that is narrower than the job, or where its throughput is 0 on every type.  On a pool
with several types (placements) a job runs on its best one.
"""

from __future__ import annotations

import numpy as np

from heuristics.gavel.same_mix import mix
from instances.arithmetic import dot
from instances.gavel.sharing import Allocation, Sharing
from instances.schema import BoolArray, FloatArray, IntArray

__all__ = ["LIGHTEST", "equal_share", "fair_time", "heterogeneity_agnostic", "isolated", "random_packing"]

LIGHTEST = 1e-200
"""Part of the greatest weight below which none is told from another."""


def isolated(instance: Sharing) -> Allocation:
    """X_isolated: a 1/n share of every pool for each job.

    Guarantee: each job receives what a cluster of 1/n of the size would give it, so the optimum
    of a fair policy is at least as good as this (the paper's sharing incentive).
    Complexity: O(n * k).

    References
    ----------
    Gavel (OSDI'20), section 4.1 (X_isolated, with rows of wide jobs scaled down to sum to 1).
    """
    return instance.isolated_share()


def equal_share(instance: Sharing) -> Allocation:
    """One fraction of time for all jobs, split over the pools that each can use by their size.

    The fraction is the largest that fits: the first pool to fill up limits all jobs.

    Guarantee: none known.  Complexity: O(n * k).

    References
    ----------
    Gavel (OSDI'20), section 4.1 (X_equal, made feasible for several jobs).
    """
    share = mix(instance)
    load = dot(instance.scale_factors, share)
    filled = load > 0
    fraction = float((instance.num_workers[filled] / load[filled]).min(initial=1.0))
    return instance.on_best_placement(fraction * share)


def heterogeneity_agnostic(instance: Sharing) -> Allocation:
    """Max-min fair in worker time per weight: least-attained-service sharing, blind to throughputs.

    Progressive filling: the worker time of all jobs rises in proportion to their weights, until a
    job runs all the time or the pools that it can use are full; such jobs stop, the others go on.
    A job's time is split over its pools by their size; what a pool cannot take, from the lowest pool
    on, moves by the fewest exchanges to one with room, ties to the lowest pools.

    Guarantee: the worker times per weight are the lexicographically greatest of any allocation
    without pairs; none known on throughputs.  Complexity: O(n * p) per level, at most p levels of
    a few steps each.

    References
    ----------
    Gavel (OSDI'20), sections 4.1 and 7.3 (the heterogeneity-agnostic LAS baseline); Bertsekas and
    Gallager, "Data Networks" (1992), section 6.5.2 (max-min fairness by progressive filling).
    """
    usable = _usable(instance)
    return instance.on_best_placement(
        fair_time(usable, instance.scale_factors.astype(float), _weights(instance), instance.num_workers.astype(float))
    )


def random_packing(instance: Sharing, *, rng: np.random.Generator | int = 0) -> Allocation:
    """Gandiva's space sharing: random partners, kept where packing pays.

    Packing pays on a pool where the sum of two partners' throughputs, each relative to the job
    alone, exceeds 1, which is what slicing time between the two gives.  While the jobs want more
    workers than there are, pairs are tried in random order; one is kept when both jobs are still
    without a partner and packing pays on some pool.
    Kept pairs and single jobs then share time as in :func:`heterogeneity_agnostic`, a pair with
    the weights of both; where packing does not pay, its partners take turns.  Without pairs the
    result is that of :func:`heterogeneity_agnostic`.

    Guarantee: none.  Complexity: O(q * k) and that of :func:`heterogeneity_agnostic`.

    References
    ----------
    Gavel (OSDI'20), section 7.3 (the Gandiva baseline's ad-hoc space sharing); Xiao et al., "Gandiva"
    (OSDI'18), section 3 (packing by trial and error).
    """
    return _packed(instance, np.random.default_rng(rng).permutation(instance.num_pairs))


def matched_packing(instance: Sharing) -> Allocation:
    """Pack the partners that gain most in all: a maximum-weight matching of the jobs (ours).

    The weight of a pair is its ``packing_worth``.  While the jobs want more workers than there
    are, the pairs of the matching are packed, the heaviest first, ties to the lowest pair.  Time is
    then shared as in :func:`random_packing`, which packs any partners for whom it pays.

    Guarantee: where the jobs want more workers than there are even with all pairs of the matching
    packed, no set of partners is worth more in all; none known on any policy's objective.
    Complexity: O(n**3) and that of :func:`heterogeneity_agnostic`.

    References
    ----------
    Edmonds, "Maximum matching and a polyhedron with 0,1-vertices" (1965), as in networkx.
    """
    import networkx as nx

    worth = packing_worth(instance)
    graph = nx.Graph()
    for pair in np.flatnonzero(worth > 0).tolist():
        graph.add_edge(*instance.pairs[pair].tolist(), weight=float(worth[pair]), pair=pair)
    matched = np.array(sorted(graph.edges[edge]["pair"] for edge in nx.max_weight_matching(graph)), np.int64)
    return _packed(instance, matched[np.argsort(-worth[matched], kind="stable")])


def packing_worth(instance: Sharing) -> FloatArray:
    """(q,) float: workers' worth of steps that packing gains each pair over slicing time.

    On a pool where partners get a and b of their throughputs alone, packing gains a + b - 1, or
    nothing where that is negative.  A pair's worth is the mean over the pools by their size, since
    its time is split so, times the workers that it holds.
    """
    size = instance.num_workers / max(1, instance.num_workers.sum())
    gained = dot(np.maximum(_pool_gains(instance) - 1, 0), size)
    worth: FloatArray = instance.row_scale_factors[instance.num_jobs :] * gained
    return worth


def _packed(instance: Sharing, order: IntArray) -> Allocation:
    """Pairs packed in the given order while workers are short, and time shared among pairs and single jobs."""
    n, q, p = instance.num_jobs, instance.num_pairs, len(instance.num_workers)
    gains = _packing_gains(instance)
    packed = _pool_gains(instance) > 1
    partnered = np.zeros(n, bool)
    kept = []
    excess = int(instance.scale_factors.sum() - instance.num_workers.sum())
    for pair in order:
        if excess > 0 and packed[pair].any() and not partnered[instance.pairs[pair]].any():
            partnered[instance.pairs[pair]] = True
            kept.append(int(pair))
            excess -= int(instance.row_scale_factors[n + pair])
    units = np.concatenate([np.flatnonzero(~partnered), n + np.sort(np.array(kept, np.int64))])
    usable, weights = _usable(instance), _weights(instance)
    fractions = np.zeros((n + q, p))
    fractions[units] = fair_time(
        np.concatenate([usable, packed | usable[instance.pairs].all(axis=1)])[units],
        instance.row_scale_factors[units].astype(float),
        np.concatenate([weights, weights[instance.pairs].sum(axis=1)])[units],
        instance.num_workers.astype(float),
    )
    turns = np.where(packed, 0.0, fractions[n:] / 2)
    np.add.at(fractions, instance.pairs.ravel(), np.repeat(turns, 2, axis=0))
    x = instance.on_best_placement(fractions[:n]).time_fractions.copy()
    for pool in range(p):
        kinds = np.flatnonzero(instance.pools == pool)
        if kinds.size:
            best = kinds[gains[:, kinds].argmax(axis=1)]
            x[n + np.arange(q), best] = np.where(packed[:, pool], fractions[n:, pool], 0.0)
    return Allocation(time_fractions=x)


def fair_time(usable: BoolArray, scale_factors: FloatArray, weights: FloatArray, num_workers: FloatArray) -> FloatArray:
    """(n, p) fractions of time: max-min fair in worker time per weight, by progressive filling.

    Parameters
    ----------
    usable : (n, p) bool
        Which job can use which pool; one that can use none gets no time.
    scale_factors, weights : (n,) float
        A weight below :data:`LIGHTEST` of the greatest counts as that, because levels, which are worker time
        per weight, must stay finite.
    num_workers : (p,) float
    """
    fractions = np.zeros(usable.shape)
    placed = usable.any(axis=1)
    if placed.any():
        relative = weights[placed]
        # By a power of two, so that nothing is rounded.
        relative = np.maximum(np.ldexp(relative, -np.frexp(relative.max())[1]), LIGHTEST)
        fractions[placed] = _filled(usable[placed], scale_factors[placed], relative, num_workers)
    return fractions


def _filled(usable: BoolArray, scale_factors: FloatArray, weights: FloatArray, num_workers: FloatArray) -> FloatArray:
    """Do as :func:`fair_time` for jobs that can use a pool each."""
    classes, member = np.unique(usable, axis=0, return_inverse=True)
    member = member.ravel()
    received = np.zeros(len(usable))
    rising = np.ones(len(usable), bool)
    while rising.any():
        level = float((scale_factors / weights)[rising].max())
        stopped = rising
        while True:
            wanted = np.where(rising, np.minimum(scale_factors, weights * level), received)
            flow, full = _route(classes, np.bincount(member, wanted, len(classes)).astype(float), num_workers)
            confined: BoolArray = ~np.any(classes & ~full, axis=1)[member]
            if not (rising & confined).any():
                break
            # The full pools cannot take this much: fall back to the level at which they just can.
            stopped = rising & confined
            room = float(num_workers[full].sum() - received[confined & ~rising].sum())
            before, level = level, _level(scale_factors[stopped], weights[stopped], room)
            if level >= before:
                break  # They can, but for rounding.
        received = np.where(stopped, wanted, received)
        rising = rising & ~stopped
    of_class = np.maximum(flow.sum(axis=1), np.finfo(float).tiny)
    fractions: FloatArray = (received / scale_factors / of_class[member])[:, None] * flow[member]
    load: FloatArray = dot(scale_factors, fractions)
    return fractions * np.divide(num_workers, load, out=np.ones_like(load), where=load > num_workers)


def _route(classes: BoolArray, wanted: FloatArray, capacity: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Worker time of each class of jobs on each pool, and the pools that are too full, if any.

    Each class is split over its pools by their size; what a pool cannot take is moved along
    shortest augmenting paths to pools with room.  When that fails, the pools returned are full,
    and the classes confined to them want more than they have.
    """
    flow: FloatArray = classes * capacity
    flow *= (wanted / flow.sum(axis=1))[:, None]
    # What exceeds a pool by this much has a class that can be moved by a part of it.
    tiny = 1e-12 * float(capacity.sum())
    for source in range(len(capacity)):
        while (excess := float(flow[:, source].sum() - capacity[source])) > tiny:
            before: dict[int, tuple[int, int]] = {}
            queue = [source]
            for pool in queue:
                for group in np.flatnonzero(flow[:, pool] > tiny / (2 * len(classes))).tolist():
                    for other in np.flatnonzero(classes[group]).tolist():
                        if other != source and other not in before:
                            before[other] = (group, pool)
                            queue.append(other)
            room = capacity - flow.sum(axis=0)
            end = next((pool for pool in queue if room[pool] > tiny), None)
            if end is None:
                full = np.zeros(len(capacity), bool)
                full[queue] = True
                return flow, full
            path = []
            pool = end
            while pool != source:
                group, start = before[pool]
                path.append((group, start, pool))
                pool = start
            moved = min(excess, float(room[end]), *(float(flow[group, start]) for group, start, _ in path))
            for group, start, stop in path:
                flow[group, start] -= moved
                flow[group, stop] += moved
    return flow, np.zeros(len(capacity), bool)


def _level(most: FloatArray, weights: FloatArray, room: float) -> float:
    """Return the level at which ``sum of min(most, weights * level)`` equals ``room``."""
    order = np.argsort(most / weights, kind="stable")
    most, weights = most[order], weights[order]
    ended = np.concatenate([[0.0], np.cumsum(most)[:-1]])
    rising = np.cumsum(weights[::-1])[::-1]
    levels = (room - ended) / rising
    first = np.flatnonzero(levels <= most / weights)
    return max(0.0, float(levels[first[0]])) if first.size else float((most / weights)[-1])


def _usable(instance: Sharing) -> BoolArray:
    """(n, p) bool: whether the job fits the pool and runs on one of its types."""
    usable: BoolArray = instance.pool_throughputs > 0
    return usable


def _weights(instance: Sharing) -> FloatArray:
    return np.asarray(getattr(instance, "weights", np.ones(instance.num_jobs)), float)


def _pool_gains(instance: Sharing) -> FloatArray:
    """(q, p) float: the best of :func:`_packing_gains` among the types of each pool."""
    best = np.zeros((instance.num_pairs, len(instance.num_workers)))
    np.maximum.at(best.T, instance.pools, _packing_gains(instance).T)
    return best


def _packing_gains(instance: Sharing) -> FloatArray:
    """(q, k) float: throughputs of a pair, each relative to the job alone, summed; 0 where it cannot run."""
    alone = np.moveaxis(instance.throughputs[instance.pairs], 1, 2)
    together = instance.pair_throughputs
    runs = ((alone > 0) & (together > 0)).all(axis=2) & instance.fits[instance.num_jobs :]
    relative = np.divide(together, alone, out=np.zeros_like(together), where=alone > 0)
    gains: FloatArray = np.where(runs, relative.sum(axis=2), 0.0)
    return gains
