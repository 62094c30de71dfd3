"""Small clusters that all of Gavel's policies share."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from heuristics.gavel import sharing as fast
from instances.gavel.sharing import Allocation, Sharing
from validation.catalogue import Heuristic
from validation.testing.arrays import integers, quarters, subsets
from validation.testing.promises import BreaksOnly, Holds, Promise, Relabelled

__all__ = ["BLIND", "WIDE", "alone", "cluster", "narrow", "of_all_policies"]


@st.composite
def cluster(draw: st.DrawFn, *, max_jobs: int = 4, max_types: int = 3, max_workers: int = 4) -> dict[str, Any]:
    """Fields that all policies share: zero throughputs, wide jobs, shared pools and pairs included."""
    n = draw(st.integers(1, max_jobs))
    k = draw(st.integers(1, max_types))
    p = draw(st.integers(1, k))
    num_workers = draw(integers(p, 0, max_workers))
    # The first type belongs to the first pool, which has a worker, and every job runs there alone.
    num_workers[0] = max(1, num_workers[0])
    pools = np.concatenate([[0], draw(integers(k - 1, 0, p - 1))]).astype(np.int64)
    throughputs = draw(quarters((n, k), 0, 4))
    throughputs[:, 0] = np.maximum(throughputs[:, 0], 1.0)
    scale_factors = draw(integers(n, 1, int(num_workers[0])))
    possible = [(a, b) for a in range(n) for b in range(a + 1, n) if scale_factors[a] == scale_factors[b]]
    pairs = np.array(draw(subsets(possible)), np.int64).reshape(-1, 2)
    return {
        "throughputs": throughputs,
        "num_workers": num_workers,
        "pools": pools,
        "scale_factors": scale_factors,
        "pairs": pairs,
        "pair_throughputs": draw(quarters((len(pairs), k, 2), 0, 4)),
    }


WIDE = {"fields": cluster(max_jobs=6, max_types=4, max_workers=64)}
"""Clusters beyond small ones."""


def alone(instance: Sharing) -> bool:
    """Whether no job can run beside another."""
    return instance.num_pairs == 0


def narrow(instance: Sharing) -> bool:
    """Whether no job can run beside another, and each needs one worker."""
    return alone(instance) and bool((instance.scale_factors == 1).all())


def of_all_policies(functions: Any, *, infeasible_because: str = "") -> tuple[Heuristic, ...]:
    """The allocations that every policy is compared with, with what is promised of them.

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
        "random_packing": (WITHOUT_PAIRS, PAYS),
        "matched_packing": (ANY_NUMBERS, WITHOUT_PAIRS, PAYS),
    }
    return tuple(
        Heuristic(
            getattr(functions, name),
            infeasible_because=infeasible_because,
            promises=(*promised, BLIND) if infeasible_because else promised,
        )
        for name, promised in promises.items()
    )


def _pool_times(instance: Sharing, plan: Allocation) -> Any:
    """(n+q, p) float: fraction of time of each row on each pool."""
    times = np.zeros((len(plan.time_fractions), len(instance.num_workers)))
    np.add.at(times.T, instance.pools, plan.time_fractions.T)
    return times


def _same_time(instance: Sharing, plan: Allocation) -> bool:
    runs = (instance.pool_throughputs * instance.num_workers).any(axis=1)
    times = plan.time_fractions[: instance.num_jobs].sum(axis=1)[runs]
    return not len(times) or bool(np.allclose(times, times[0], rtol=1e-9))


def _full(instance: Sharing, plan: Allocation) -> bool:
    """Whether a pool is full, or the jobs run all the time, where every job runs somewhere."""
    if not (instance.pool_throughputs * instance.num_workers).any(axis=1).all():
        return True
    times = _pool_times(instance, plan)[: instance.num_jobs]
    used = instance.scale_factors @ times
    full = (used >= instance.num_workers * (1 - 1e-9)) & (instance.num_workers > 0)
    return bool(full.any() or (times.sum(axis=1) >= 1 - 1e-9).all())


def _bottlenecks(instance: Sharing, plan: Allocation) -> bool:
    """Whether each job runs all the time, or finds its pools full of jobs that have no more than it by weight."""
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
    """Whether, where no pool is full, each job divides its time over the pools that it can use by their size."""
    times = _pool_times(instance, plan)[: instance.num_jobs]
    if (instance.scale_factors @ times >= instance.num_workers * (1 - 1e-6))[instance.num_workers > 0].any():
        return True
    sizes = (instance.pool_throughputs > 0) * instance.num_workers
    wanted = sizes / np.maximum(sizes.sum(axis=1, keepdims=True), 1) * times.sum(axis=1, keepdims=True)
    return bool(np.allclose(times, wanted, rtol=1e-6, atol=1e-9))


def _pays(instance: Sharing, plan: Allocation) -> bool:
    """Whether rows of pairs hold each job once, and make more together than taking turns, while workers are short."""
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


def _as_without_pairs(instance: Sharing, plan: Allocation) -> bool:
    """Whether without pairs the allocation is that of jobs alone."""
    if instance.num_pairs:
        return True
    other = fast.heterogeneity_agnostic(instance)
    return bool(np.allclose(plan.time_fractions, other.time_fractions, rtol=1e-9, atol=1e-12))


BLIND = BreaksOnly(("slo",))
ANY_NUMBERS = Relabelled(ties=False)
SAME_TIME = Holds("all jobs that run somewhere run for the same time", _same_time)
FULL = Holds("some pool is full, all jobs run all the time, or one runs nowhere", _full)
BOTTLENECKS = Holds("a job that waits finds its pools full of jobs that have no more by weight", _bottlenecks)
BY_SIZE = Holds("where no pool is full, time is divided by the pools' sizes", _by_size)
WITHOUT_PAIRS = Holds("without pairs it is heterogeneity_agnostic", _as_without_pairs)
PAYS = Holds("jobs have at most one partner, and only where packing pays", _pays)
