"""Small clusters that all of Gavel's policies share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise, permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heuristics.gavel.prices import CLOSE
from instances.gavel.sharing import Allocation, Sharing
from validation.catalogue import Heuristic
from validation.kinds.promises import BreaksOnly, Holds, NeverWorseThan, Promise, Ratio
from validation.testing import st
from validation.testing.arrays import integers, quarters, subsets

__all__ = [
    "BLIND",
    "PRICED",
    "WIDE",
    "alone",
    "cluster",
    "in_mix",
    "most_worth_first",
    "narrow",
    "of_all_policies",
    "one_by_one",
    "together",
]


@st.composite
def cluster(draw: st.DrawFn, *, max_jobs: int = 4, max_types: int = 3, max_workers: int = 4) -> dict[str, Any]:
    """Draw the fields that all policies share: zero throughputs, wide jobs, shared pools, pairs and crowds included."""
    if draw(st.booleans()):
        return draw(_crowded())
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
def _crowded(draw: st.DrawFn) -> dict[str, Any]:
    """Draw fields of jobs of unlike speeds, alone and with partners, that often find too few workers or none."""
    kind = draw(st.sampled_from(("alike", "unlike", "any", "any")))
    n = draw(st.integers(4, 6))
    # Few of what Hypothesis draws have many numbers that differ.
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if kind == "any":
        # Pools of any size, the first with two types, and jobs that run on few types or none.
        num_workers, pools = rng.choice([0, 1, 1, 2, 3, 6], 3), np.array([0, 1, 2, 0])
        throughputs = rng.integers(1, 17, (n, 4)) / 4 * (rng.random((n, 4)) < rng.choice([0.5, 0.8]))
        scale_factors = rng.choice([1, 1, 2, 3], n)
    else:
        # Wide jobs may have to wait for one of the types, while narrow ones could run on the other.
        num_workers = rng.permutation([1, 3]) if kind == "unlike" else rng.integers(1, 4, 2)
        pools, throughputs = np.arange(2), rng.integers(1, 17, (n, 2)) / 4
        scale_factors = rng.choice([1, 3], n) if kind == "unlike" else np.ones(n, np.int64)
    possible = [(a, b) for a in range(n) for b in range(a + 1, n) if scale_factors[a] == scale_factors[b]]
    pairs = np.array(possible if kind == "any" or draw(st.booleans()) else [], np.int64).reshape(-1, 2)
    parts = rng.integers(0, 9 if kind == "any" else 5, (len(pairs), len(pools), 2)) / 4
    alone = np.moveaxis(throughputs[pairs], 1, 2)
    return {
        "throughputs": throughputs,
        "num_workers": num_workers,
        "pools": pools,
        "scale_factors": scale_factors,
        "pairs": pairs,
        # Some run beside another though they do not alone.
        "pair_throughputs": parts * (np.maximum(alone, 1) if kind == "any" else alone),
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
        "isolated": (ISOLATED,),
        "equal_share": (SAME_TIME,),
        "heterogeneity_agnostic": (FAIR,),
        "random_packing": (AT_RANDOM,),
        "matched_packing": (HEAVIEST,),
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


def _isolated(instance: Sharing, plan: Allocation) -> bool:
    parts = instance.num_workers / np.outer(
        instance.num_jobs * instance.scale_factors, np.ones(len(instance.num_workers))
    )
    return _on_best_types(instance, plan, parts / np.maximum(1, parts.sum(axis=1, keepdims=True)))


def in_mix(statement: str, fractions: Callable[[Any, Any, Any], Any]) -> Holds:
    """Return the promise that jobs run as long as fits, in some proportion, each on all its pools by their size.

    The proportion is ``fractions(instance, plan, mix)``, with the mix the part of each job's time on each pool.
    """

    def test(instance: Sharing, plan: Allocation) -> bool:
        sizes = (instance.pool_throughputs > 0) * instance.num_workers
        mix = sizes / np.maximum(sizes.sum(axis=1, keepdims=True), 1)
        wanted = np.where(mix.any(axis=1), fractions(instance, plan, mix), 0.0)
        held = (instance.scale_factors * wanted) @ mix / np.maximum(instance.num_workers, 1)
        fullest = max(wanted.max(initial=0), held.max(initial=0))
        times = (wanted / (fullest or 1))[:, None] * mix
        return not plan.time_fractions[instance.num_jobs :].any() and _on_best_types(instance, plan, times, rtol=1e-6)

    return Holds(statement, test)


def _weights(instance: Sharing) -> NDArray[np.float64]:
    return np.asarray(getattr(instance, "weights", np.ones(instance.num_jobs)), float)


def _fairly(times: Any, able: Any, widths: Any, weights: Any, workers: Any) -> bool:
    """Return whether (u, p) times of jobs are those of progressive filling, on the pools on which they are able to run.

    Each runs all the time, or finds its pools full of jobs with no more than it by weight; and its time is divided by
    the pools' size, but for what is moved away from pools that are too full, by the fewest exchanges.
    """
    wanted = widths * times.sum(axis=1)
    level = wanted / weights
    full = widths @ times >= workers * (1 - 1e-6)
    for one in np.flatnonzero(able.any(axis=1)):
        there = (times[:, able[one]] > 1e-9).any(axis=1)
        waits = times[one].sum() < 1 - 1e-6
        if waits and (not full[able[one]].all() or (level[there] > level[one] * (1 + 1e-6)).any()):
            return False
    if wanted.sum() > workers.sum() * (1 + 1e-6):
        return False
    # All that can use the same pools move together.
    kinds, kind = np.unique(able, axis=0, return_inverse=True)
    flow, tiny = kinds * workers.astype(float), 1e-9 * float(workers.sum())
    flow *= (np.bincount(kind.ravel(), wanted, len(kinds)) / np.maximum(flow.sum(axis=1), 1e-300))[:, None]
    for source in range(len(workers)):
        while flow[:, source].sum() - workers[source] > tiny:
            ways: dict[int, list[tuple[int, int, int]]] = {source: []}
            queue = [source]
            for pool in queue:
                for group in np.flatnonzero(flow[:, pool] > tiny).tolist():
                    for other in np.flatnonzero(kinds[group]).tolist():
                        if other not in ways:
                            ways[other] = [*ways[pool], (group, pool, other)]
                            queue.append(other)
            room = workers - flow.sum(axis=0)
            end = next((pool for pool in queue if room[pool] > tiny), None)
            if end is None:
                return False
            moved = min(-room[source], room[end], *(flow[group, start] for group, start, _ in ways[end]))
            for group, start, stop in ways[end]:
                flow[group, start] -= moved
                flow[group, stop] += moved
    parts = (flow / np.maximum(flow.sum(axis=1, keepdims=True), 1e-300))[kind.ravel()]
    return bool(np.allclose(times, parts * times.sum(axis=1, keepdims=True), rtol=1e-5, atol=1e-7))


def _on_best_types(instance: Sharing, plan: Allocation, times: Any, rtol: float = 1e-9) -> bool:
    """Return whether jobs alone spend these (n, p) times on the type of each pool where they are fastest."""
    rows = plan.time_fractions[: instance.num_jobs]
    return bool(np.allclose(rows, instance.on_best_placement(times).time_fractions[: len(rows)], rtol=rtol))


def _fair(instance: Sharing, plan: Allocation) -> bool:
    """Return whether all jobs share as in progressive filling, alone."""
    times, able = _pool_times(instance, plan), instance.pool_throughputs > 0
    alone = times[: instance.num_jobs]
    if times[instance.num_jobs :].any() or alone[~able].any() or not _on_best_types(instance, plan, alone):
        return False
    return _fairly(alone, able, instance.scale_factors, _weights(instance), instance.num_workers)


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
    times, weights, usable = _pool_times(instance, plan), _weights(instance), instance.pool_throughputs > 0
    free = np.setdiff1d(np.arange(n), instance.pairs[list(kept)].ravel())
    first, second = instance.pairs[list(kept)].T
    if not np.allclose(times[first], times[second], rtol=1e-9, atol=1e-12) or times[first][pays[list(kept)]].any():
        return False
    fractions = np.concatenate([times[free], times[n:][list(kept)] + 2 * times[first]])
    able = np.concatenate([usable[free], pays[list(kept)] | (usable[first] & usable[second])])
    if fractions[~able].any() or not _on_best_types(instance, plan, times[:n]):
        return False
    widths = np.concatenate([instance.scale_factors[free], instance.scale_factors[first]])
    both = np.concatenate([weights[free], weights[first] + weights[second]])
    return bool((fractions.sum(axis=1) <= 1 + 1e-6).all()) and _fairly(
        fractions, able, widths, both, instance.num_workers
    )


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
    rounded = [round(weight / (tiny or 1)) for weight in weights]
    orders = {
        order
        for some in heaviest
        for order in permutations(some)
        if all(rounded[one] >= rounded[other] for one, other in pairwise(order))
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


MOST_PAIRS = 15
"""For which packing pays, among which the heaviest matching is looked for one by one."""


BLIND = BreaksOnly(("slo",))
ISOLATED = Holds("each job has its part of every pool, up to all the time", _isolated)
SAME_TIME = in_mix("all jobs run for the same time, as long as fits", lambda instance, plan, mix: np.ones(len(mix)))
FAIR = Holds("all that wait find their pools full of jobs with no more by weight, divided by the pools' sizes", _fair)
AT_RANDOM = Holds("pairs are packed in the order of the stream, and served as one job", _packed_at_random, stream=True)
HEAVIEST = Holds("a heaviest matching is packed, the heaviest first, and served as one job each", _heaviest_packed)

PRICED = (NeverWorseThan("isolated"), Ratio(1 + CLOSE, alone, "without pairs"))
"""What plans made at prices of the pools promise, for an objective that is a sum."""
