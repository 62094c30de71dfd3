"""Small clusters that all of Gavel's policies share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heuristics.gavel import sharing as fast
from instances.gavel.sharing import Allocation, Sharing
from validation.catalogue import Heuristic
from validation.kinds.promises import BreaksOnly, Holds, Promise, Relabelled
from validation.testing import st
from validation.testing.arrays import integers, quarters, subsets

__all__ = [
    "BLIND",
    "FINDS_FULL",
    "WIDE",
    "alone",
    "cluster",
    "crowded",
    "most_worth_first",
    "narrow",
    "of_all_policies",
    "one_by_one",
    "together",
]


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
        "random_packing": (WITHOUT_PAIRS, AT_RANDOM),
        "matched_packing": (ANY_NUMBERS, WITHOUT_PAIRS, HEAVIEST),
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
    return _divided(instance, times, instance.pool_throughputs > 0)


def _gains(instance: Sharing) -> NDArray[np.float64]:
    """Return what partners make together relative to alone, (q, k) float; 0 where one makes nothing."""
    gains = np.zeros((instance.num_pairs, instance.num_types))
    for pair, kind in np.argwhere(instance.fits[instance.num_jobs :]):
        alone, together = instance.throughputs[instance.pairs[pair], kind], instance.pair_throughputs[pair, kind]
        if alone.all() and together.all():
            gains[pair, kind] = (together / alone).sum()
    return gains


def _pool_gains(instance: Sharing) -> NDArray[np.float64]:
    """Return the greatest gain of each pair on the types of each pool, (q, p) float."""
    gains = np.zeros((instance.num_pairs, len(instance.num_workers)))
    np.maximum.at(gains.T, instance.pools, _gains(instance).T)
    return gains


def _kept(instance: Sharing, order: Iterable[int]) -> list[int]:
    """Return the pairs for whom packing pays, one after another, as long as workers are short."""
    kept: list[int] = []
    short = int(instance.scale_factors.sum() - instance.num_workers.sum())
    pays = np.asarray((_pool_gains(instance) > 1).any(axis=1))
    for pair in order:
        if short > 0 and pays[pair] and not np.isin(instance.pairs[pair], instance.pairs[kept]).any():
            kept.append(int(pair))
            short -= int(instance.scale_factors[instance.pairs[pair, 0]])
    return kept


def _served(instance: Sharing, plan: Allocation, kept: Sequence[int]) -> bool:
    """Return whether these pairs count as one job with the weights of both, which finds its pools full where it waits.

    On pools where packing does not pay they take turns, so that both together run no longer than all the time.
    """
    n, gains = instance.num_jobs, _gains(instance)
    pays = _pool_gains(instance) > 1
    for pair, kind in np.argwhere(plan.time_fractions[n:] > 0):
        pool = instance.pools[kind]
        if (
            int(pair) not in kept
            or not pays[pair, pool]
            or gains[pair, kind] < gains[pair, instance.pools == pool].max()
        ):
            return False
    times = _pool_times(instance, plan)
    weights = np.asarray(getattr(instance, "weights", np.ones(n)), float)
    usable = instance.pool_throughputs > 0
    free = np.setdiff1d(np.arange(n), instance.pairs[list(kept)].ravel())
    first, second = instance.pairs[list(kept)].T
    if not np.allclose(times[first], times[second], rtol=1e-9, atol=1e-12) or times[first][pays[list(kept)]].any():
        return False
    fractions = np.concatenate([times[free], times[n:][list(kept)] + 2 * times[first]])
    able = np.concatenate([usable[free], pays[list(kept)] | (usable[first] & usable[second])])
    widths = np.concatenate([instance.scale_factors[free], instance.scale_factors[first]])
    level = widths * fractions.sum(axis=1) / np.concatenate([weights[free], weights[first] + weights[second]])
    if (fractions.sum(axis=1) > 1 + 1e-6).any() or fractions[~able].any():
        return False
    full = widths @ fractions >= instance.num_workers * (1 - 1e-6)
    for one in np.flatnonzero(fractions.sum(axis=1) < 1 - 1e-6):
        there = (fractions[:, able[one]] > 1e-9).any(axis=1)
        if not full[able[one]].all() or (level[there] > level[one] * (1 + 1e-6)).any():
            return False
    return bool(full[instance.num_workers > 0].any()) or _divided(instance, fractions, able)


def _divided(instance: Sharing, times: Any, able: Any) -> bool:
    """Return whether jobs divide their times over the pools that they can use by their size."""
    sizes = able * instance.num_workers
    wanted = sizes / np.maximum(sizes.sum(axis=1, keepdims=True), 1) * times.sum(axis=1, keepdims=True)
    return bool(np.allclose(times, wanted, rtol=1e-6, atol=1e-9))


def _packed_at_random(instance: Sharing, plan: Allocation, rng: np.random.Generator) -> bool:
    """Return whether pairs were tried in the order of the stream."""
    return _served(instance, plan, _kept(instance, rng.permutation(instance.num_pairs)))


def _heaviest_packed(instance: Sharing, plan: Allocation) -> bool:
    """Return whether the pairs packed are a heaviest matching's, heaviest first, until the jobs' workers suffice.

    A pair weighs the workers' worth of steps that packing gains it over taking turns, on the mean of all workers.
    """
    mean = np.maximum(_pool_gains(instance) - 1, 0) @ instance.num_workers / int(instance.num_workers.sum() or 1)
    weights = (mean * instance.scale_factors[instance.pairs[:, 0]]).tolist()
    gainful = [pair for pair in range(instance.num_pairs) if weights[pair] > 0]
    if len(gainful) > MOST_PAIRS:
        return True
    matchings: list[tuple[int, ...]] = [()]
    for pair in gainful:
        apart = set(instance.pairs[pair].tolist())
        matchings += [(*some, pair) for some in matchings if apart.isdisjoint(instance.pairs[list(some)].ravel())]
    tiny = 1e-9 * max(weights, default=0.0)
    most = max(sum(weights[pair] for pair in some) for some in matchings)
    heaviest = [some for some in matchings if sum(weights[pair] for pair in some) >= most - tiny * (1 + len(some))]
    # Weights that differ by rounding alone come in either order.
    orders = {
        tuple(sorted(some, key=lambda pair: (-round(weights[pair] / (tiny or 1)) if rounded else -weights[pair], pair)))
        for some in heaviest
        for rounded in (False, True)
    }
    return any(_served(instance, plan, kept) for kept in {tuple(_kept(instance, order)) for order in orders})


def most_worth_first(worth: Callable[[Any], Any]) -> Holds:
    """Return the promise that time goes to rows and types in decreasing order of worth for each worker.

    ``worth(instance)`` is that of running all the time, (n+q, k) float.
    """

    def test(instance: Sharing, plan: Allocation) -> bool:
        n, widths = instance.num_jobs, instance.row_scale_factors.tolist()
        values = worth(instance)
        entries = [
            (-float(values[row, kind] / widths[row]), int(row), int(kind))
            for row, kind in np.argwhere(instance.fits)
            if values[row, kind] > 0
        ]
        times, free, x = [1.0] * n, instance.num_workers.tolist(), np.zeros_like(plan.time_fractions)
        for _, row, kind in sorted(entries):
            jobs = [row] if row < n else instance.pairs[row - n].tolist()
            pool = int(instance.pools[kind])
            x[row, kind] = share = max(0.0, min(free[pool] / widths[row], *(times[job] for job in jobs)))
            free[pool] -= share * widths[row]
            for job in jobs:
                times[job] -= share
        return bool(np.allclose(plan.time_fractions, x, rtol=1e-9, atol=1e-9))

    return Holds("time goes where it is worth most for each worker", test)


def one_by_one(order: Callable[[Any], Iterable[int]], *, speeds: bool = True, blocking: bool) -> Holds:
    """Return the promise that jobs in an order have their fastest free type, or the lowest, all the time.

    With ``blocking`` nobody overtakes a job that no type has enough workers for.
    """

    def test(instance: Sharing, plan: Allocation) -> bool:
        free, x = instance.num_workers.tolist(), np.zeros_like(plan.time_fractions)
        for job in order(instance):
            width, rates = int(instance.scale_factors[job]), instance.throughputs[job].tolist()
            room = [kind for kind, pool in enumerate(instance.pools) if free[pool] >= width]
            useful = [kind for kind in room if rates[kind] > 0]
            if useful:
                kind = max(useful, key=lambda kind: rates[kind]) if speeds else useful[0]
                x[job, kind] = 1.0
                free[instance.pools[kind]] -= width
            elif blocking and not room:
                break
        return bool((plan.time_fractions == x).all())

    return Holds("jobs in order have the best type with enough free workers", test)


def together(instance: Sharing) -> Any:
    """Return the steps/s of all jobs of a row together, (n+q, k) float."""
    return np.concatenate([instance.throughputs, instance.pair_throughputs.sum(axis=2)])


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
AT_RANDOM = Holds("pairs are packed in the order of the stream, and served as one job", _packed_at_random, stream=True)
HEAVIEST = Holds("a heaviest matching is packed, the heaviest first, and served as one job each", _heaviest_packed)
