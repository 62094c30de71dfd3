"""Small clusters that all of Gavel's policies share."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from heuristics.gavel import sharing as fast
from instances.gavel.sharing import Allocation, Sharing
from validation.catalogue import Heuristic
from validation.kinds.promises import BreaksOnly, Holds, Promise, Relabelled
from validation.testing import st
from validation.testing.arrays import integers, quarters, subsets

__all__ = ["BLIND", "FINDS_FULL", "WIDE", "alone", "cluster", "crowded", "narrow", "of_all_policies"]


@st.composite
def cluster(draw: st.DrawFn, *, max_jobs: int = 4, max_types: int = 3, max_workers: int = 4) -> dict[str, Any]:
    """Draw the fields that all policies share: zero throughputs, wide jobs, shared pools and pairs included."""
    n = draw(st.integers(1, max_jobs) | st.just(max_jobs))
    k = draw(st.integers(1, max_types) | st.just(max_types))
    p = draw(st.sampled_from((1, k)) | st.integers(1, k))
    # In half of them workers are short, whatever the size.
    num_workers = draw(integers(p, 0, max_workers) | integers(p, 0, 2))
    # The first type belongs to the first pool, which has a worker, and every job runs there alone.
    num_workers[0] = max(1, num_workers[0])
    pools = np.concatenate([[0], draw(integers(k - 1, 0, p - 1))]).astype(np.int64)
    throughputs = draw(quarters((n, k), 0, 4))
    throughputs[:, 0] = np.maximum(throughputs[:, 0], 1.0)
    widest = int(num_workers[0])
    alike = st.integers(1, widest).map(lambda workers: np.full(n, workers))
    # Only jobs of one width can be partners.
    scale_factors = draw(st.just(np.ones(n, np.int64)) | alike | integers(n, 1, widest))
    possible = [(a, b) for a in range(n) for b in range(a + 1, n) if scale_factors[a] == scale_factors[b]]
    pairs = np.array(draw(st.just(possible) | subsets(possible)), np.int64).reshape(-1, 2)
    together = draw(quarters((len(pairs), k, 2), 0, 4))
    if draw(st.booleans()):
        # Parts of what the partners make alone: packing pays about as often as it does not.
        together = np.minimum(together / 4, 1) * np.moveaxis(throughputs[pairs], 1, 2)
    return {
        "throughputs": throughputs,
        "num_workers": num_workers,
        "pools": pools,
        "scale_factors": scale_factors,
        "pairs": pairs,
        "pair_throughputs": together,
    }


@st.composite
def crowded(draw: st.DrawFn) -> dict[str, Any]:
    """Draw fields of jobs on two types, of unlike speeds, alone and with partners, that often find too few workers."""
    n, k = draw(st.integers(4, 6)), 2
    unlike = draw(st.booleans())
    # Wide jobs may have to wait for one of the types, while narrow ones could run on the other.
    num_workers = draw(st.permutations([1, 3]).map(np.array) if unlike else integers(k, 1, 3))
    # Few of what Hypothesis draws have many numbers that differ.
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    throughputs = rng.integers(1, 17, (n, k)) / 4
    scale_factors = rng.choice([1, 3], n) if unlike else np.ones(n, np.int64)
    possible = [(a, b) for a in range(n) for b in range(a + 1, n) if scale_factors[a] == scale_factors[b]]
    pairs = np.array(possible if draw(st.booleans()) else [], np.int64).reshape(-1, 2)
    parts = rng.integers(0, 5, (len(pairs), k, 2)) / 4
    return {
        "throughputs": throughputs,
        "num_workers": num_workers,
        "pools": np.arange(k),
        "scale_factors": scale_factors,
        "pairs": pairs,
        "pair_throughputs": parts * np.moveaxis(throughputs[pairs], 1, 2),
    }


WIDE = {"fields": functools.partial(cluster, max_jobs=6, max_types=4, max_workers=64)}
"""Clusters beyond small ones."""


def alone(instance: Sharing) -> bool:
    """Return whether no job can run beside another."""
    return instance.num_pairs == 0


def narrow(instance: Sharing) -> bool:
    """Return whether no job can run beside another, and each needs one worker."""
    return alone(instance) and bool((instance.scale_factors == 1).all())


def of_all_policies(functions: Any, *, infeasible_because: str = "") -> tuple[Heuristic, ...]:
    """Return the allocations that every policy is compared with, with what is promised of them.

    Parameters
    ----------
    functions : module
        The policy's heuristics.
    infeasible_because : str
        As of :class:`validation.catalogue.Heuristic`.
    """
    promises: dict[str, tuple[Promise, ...]] = {
        "isolated": (ANY_NUMBERS,),
        "equal_share": (ANY_NUMBERS, SAME_TIME, FULL),
        "heterogeneity_agnostic": (ANY_NUMBERS, BOTTLENECKS, BY_SIZE),
        "random_packing": (WITHOUT_PAIRS, PAYS, AS_ONE),
        "matched_packing": (ANY_NUMBERS, WITHOUT_PAIRS, PAYS, AS_ONE, HEAVIEST),
    }
    return tuple(
        Heuristic(
            getattr(functions, name),
            infeasible_because=infeasible_because,
            promises=(*promised, BLIND) if infeasible_because else promised,
            imports=("networkx",) if name == "matched_packing" else (),
        )
        for name, promised in promises.items()
    )


def _pool_times(instance: Sharing, plan: Allocation) -> Any:
    """Return the fraction of time of each row on each pool, (n+q, p) float."""
    times = np.zeros((len(plan.time_fractions), len(instance.num_workers)))
    np.add.at(times.T, instance.pools, plan.time_fractions.T)
    return times


def _same_time(instance: Sharing, plan: Allocation) -> bool:
    runs = (instance.pool_throughputs * instance.num_workers).any(axis=1)
    times = plan.time_fractions[: instance.num_jobs].sum(axis=1)[runs]
    return not len(times) or bool(np.allclose(times, times[0], rtol=1e-9))


def _full(instance: Sharing, plan: Allocation) -> bool:
    """Return whether a pool is full, or the jobs run all the time, where every job runs somewhere."""
    if not (instance.pool_throughputs * instance.num_workers).any(axis=1).all():
        return True
    times = _pool_times(instance, plan)[: instance.num_jobs]
    used = instance.scale_factors @ times
    full = (used >= instance.num_workers * (1 - 1e-9)) & (instance.num_workers > 0)
    return bool(full.any() or (times.sum(axis=1) >= 1 - 1e-9).all())


def _finds_full(instance: Sharing, plan: Allocation) -> bool:
    """Return whether each job runs all the time, or finds all pools full on which it makes steps alone."""
    times = _pool_times(instance, plan)[: instance.num_jobs]
    full = instance.scale_factors @ times >= instance.num_workers * (1 - 1e-9)
    waits = times.sum(axis=1) < 1 - 1e-9
    return bool(full[(instance.pool_throughputs > 0)[waits].any(axis=0)].all())


def _bottlenecks(instance: Sharing, plan: Allocation) -> bool:
    """Return whether each job runs all the time, or finds its pools full of jobs with no more than it by weight."""
    times = _pool_times(instance, plan)[: instance.num_jobs]
    usable = instance.pool_throughputs > 0
    weights = np.asarray(getattr(instance, "weights", np.ones(instance.num_jobs)), float)
    level = instance.scale_factors * times.sum(axis=1) / weights
    full = instance.scale_factors @ times >= instance.num_workers * (1 - 1e-6)
    for job in range(instance.num_jobs):
        if times[job].sum() >= 1 - 1e-6:
            continue
        there = (times[:, usable[job]] > 1e-9).any(axis=1)
        if not full[usable[job]].all() or (level[there] > level[job] * (1 + 1e-6)).any():
            return False
    return True


def _by_size(instance: Sharing, plan: Allocation) -> bool:
    """Return whether, where no pool is full, each job divides its time over the pools that it can use by their size."""
    times = _pool_times(instance, plan)[: instance.num_jobs]
    if (instance.scale_factors @ times >= instance.num_workers * (1 - 1e-6))[instance.num_workers > 0].any():
        return True
    sizes = (instance.pool_throughputs > 0) * instance.num_workers
    wanted = sizes / np.maximum(sizes.sum(axis=1, keepdims=True), 1) * times.sum(axis=1, keepdims=True)
    return bool(np.allclose(times, wanted, rtol=1e-6, atol=1e-9))


def _pays(instance: Sharing, plan: Allocation) -> bool:
    """Return whether pairs hold each job once, and make more together than taking turns, while workers are short."""
    packed = np.argwhere(plan.time_fractions[instance.num_jobs :] > 0)
    pairs = {int(pair) for pair, _ in packed}
    jobs = [job for pair in pairs for job in instance.pairs[pair].tolist()]
    short = instance.scale_factors.sum() > instance.num_workers.sum()
    return (
        (not pairs or bool(short))
        and len(jobs) == len(set(jobs))
        and all(
            (instance.pair_throughputs[pair, kind] / instance.throughputs[instance.pairs[pair], kind]).sum() > 1 - 1e-9
            for pair, kind in packed
        )
    )


def _pairs_as_one(instance: Sharing, plan: Allocation) -> bool:
    """Return whether partners count as one job with the weights of both, which finds its pools full where it waits.

    On pools where packing does not pay they take turns, so that both together run no longer than all the time.
    """
    n = instance.num_jobs
    times = _pool_times(instance, plan)
    weights = np.asarray(getattr(instance, "weights", np.ones(n)), float)
    usable = instance.pool_throughputs > 0
    pays = np.zeros((instance.num_pairs, len(instance.num_workers)), bool)
    for pair, kind in np.argwhere(instance.fits[n:]):
        alone, together = instance.throughputs[instance.pairs[pair], kind], instance.pair_throughputs[pair, kind]
        if alone.all() and together.all() and (together / alone).sum() > 1:
            pays[pair, instance.pools[kind]] = True
    kept = [pair for pair in range(instance.num_pairs) if times[n + pair].any()]
    partnered = instance.pairs[kept].ravel()
    free = np.setdiff1d(np.arange(n), partnered)
    if any(pays[pair].any() and np.isin(instance.pairs[pair], free).all() for pair in range(instance.num_pairs)):
        # Partners of whom nothing is seen together cannot be told from single jobs.
        return True
    first, second = instance.pairs[kept].T
    if not np.allclose(times[first], times[second], rtol=1e-9, atol=1e-12):
        return False
    fractions = np.concatenate([times[free], times[n:][kept] + 2 * times[first]])
    able = np.concatenate([usable[free], pays[kept] | (usable[first] & usable[second])])
    widths = np.concatenate([instance.scale_factors[free], instance.scale_factors[first]])
    level = widths * fractions.sum(axis=1) / np.concatenate([weights[free], weights[first] + weights[second]])
    if (fractions.sum(axis=1) > 1 + 1e-6).any():
        return False
    full = widths @ fractions >= instance.num_workers * (1 - 1e-6)
    for one in np.flatnonzero(fractions.sum(axis=1) < 1 - 1e-6):
        there = (fractions[:, able[one]] > 1e-9).any(axis=1)
        if not full[able[one]].all() or (level[there] > level[one] * (1 + 1e-6)).any():
            return False
    return True


def _heaviest_packed(instance: Sharing, plan: Allocation) -> bool:
    """Return whether the pairs packed are a heaviest matching's, heaviest first, until the jobs' workers suffice.

    A pair weighs the workers' worth of steps that packing gains it over taking turns, on the mean of all workers.
    """
    n = instance.num_jobs
    weights = []
    for pair in range(instance.num_pairs):
        gained = np.zeros(len(instance.num_workers))
        for kind in np.flatnonzero(instance.fits[n + pair]):
            alone, together = instance.throughputs[instance.pairs[pair], kind], instance.pair_throughputs[pair, kind]
            if alone.all() and together.all():
                pool = instance.pools[kind]
                gained[pool] = max(gained[pool], (together / alone).sum() - 1)
        mean = float(gained @ instance.num_workers) / int(instance.num_workers.sum() or 1)
        weights.append(mean * int(instance.scale_factors[instance.pairs[pair, 0]]))
    gainful = [pair for pair in range(instance.num_pairs) if weights[pair] > 0]
    if len(gainful) > MOST_PAIRS:
        return True
    matchings: list[tuple[int, ...]] = [()]
    for pair in gainful:
        apart = set(instance.pairs[pair].tolist())
        matchings += [(*some, pair) for some in matchings if apart.isdisjoint(instance.pairs[list(some)].ravel())]
    tiny = 1e-9 * max(weights, default=0.0)
    most = max(sum(weights[pair] for pair in some) for some in matchings)
    seen = {int(pair) for pair in np.flatnonzero(plan.time_fractions[n:].any(axis=1))}
    single = set(np.argwhere(plan.time_fractions[:n] > 0)[:, 0].tolist())

    def heaviest_first(matching: tuple[int, ...]) -> bool:
        # Partners of whom no time together is seen, and none alone, may be packed all the same.
        left_out = [pair for pair in matching if pair not in seen and single & set(instance.pairs[pair].tolist())]
        lightest = min((weights[pair] for pair in seen), default=np.inf)
        return seen <= set(matching) and all(weights[pair] <= lightest + tiny for pair in left_out)

    return any(
        heaviest_first(some) for some in matchings if sum(weights[pair] for pair in some) >= most - tiny * (1 + n)
    )


def _as_without_pairs(instance: Sharing, plan: Allocation) -> bool:
    """Return whether without pairs the allocation is that of jobs alone."""
    if instance.num_pairs:
        return True
    other = fast.heterogeneity_agnostic(instance)
    return bool(np.allclose(plan.time_fractions, other.time_fractions, rtol=1e-9, atol=1e-12))


MOST_PAIRS = 15
"""For which packing pays, among which the heaviest matching is looked for one by one."""


BLIND = BreaksOnly(("slo",))
ANY_NUMBERS = Relabelled(ties=False)
SAME_TIME = Holds("all jobs that run somewhere run for the same time", _same_time)
FULL = Holds("some pool is full, all jobs run all the time, or one runs nowhere", _full)
FINDS_FULL = Holds("a job that waits finds its pools full", _finds_full)
BOTTLENECKS = Holds("a job that waits finds its pools full of jobs that have no more by weight", _bottlenecks)
BY_SIZE = Holds("where no pool is full, time is divided by the pools' sizes", _by_size)
WITHOUT_PAIRS = Holds("without pairs it is heterogeneity_agnostic", _as_without_pairs)
AS_ONE = Holds("partners are served as one job with the weights of both", _pairs_as_one)
HEAVIEST = Holds("pairs of a heaviest matching are packed, the heaviest first", _heaviest_packed)
PAYS = Holds("jobs have at most one partner, and only where packing pays", _pays)
