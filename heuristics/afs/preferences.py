"""Cycles in AFS's comparison of jobs in pairs, which is an order where there are none.

AFS-L gives each GPU to the job of top priority, which it finds by comparing jobs in pairs
(:func:`heuristics.afs.elastic_sharing.afs_l`).  Of any two jobs one wins, the lower one scanned first,
so that the comparisons at given shares are a tournament.  The scan finds the same job in whatever
order it goes if and only if one job wins against all others; the comparison is an order of all jobs if
and only if there is no cycle.  A tournament with a cycle has one of three jobs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from instances.afs.elastic_sharing import ElasticSharing
from instances.schema import IntArray

__all__ = ["hand_out", "preference_cycles", "preferred"]


def preference_cycles(
    instance: ElasticSharing, shares: IntArray | None = None, *, longest: int | None = None
) -> list[list[int]]:
    """Cycles of jobs, each preferred for the next GPU over the one after it, and the last over the first.

    All jobs compete, with all of their work: arrivals are not looked at.  Jobs that the GPUs left
    cannot speed up take no part.

    Parameters
    ----------
    instance : ElasticSharing
    shares : (n,) int, optional
        GPUs that the jobs hold; by default the fewest on which each runs.
    longest : int, optional
        Jobs in a cycle at most; all cycles by default, of which there can be exponentially many.

    Returns
    -------
    list of list of int
        Each cycle once, from its lowest job on; the shortest first.  Empty where the comparison is
        an order.

    Raises
    ------
    ValueError
        When the shares leave no GPU to compete for.

    References
    ----------
    AFS (NSDI'21), section 3.3, Algorithm 1, and Appendix C; Johnson, "Finding all the elementary
    circuits of a directed graph" (1975), as in networkx.
    """
    import networkx as nx

    held = instance.min_shares if shares is None else np.asarray(shares)
    left = instance.num_gpus - int(held.sum())
    if left <= 0:
        raise ValueError(f"shares: got {held.tolist()}, must leave a GPU of {instance.num_gpus} to compete for")
    graph = nx.DiGraph()
    for i, j in combinations(_competing(instance, held, left), 2):
        winner = preferred(instance, held, i, j)
        graph.add_edge(winner, i + j - winner)
    cycles = [_from_lowest(cycle) for cycle in nx.simple_cycles(graph, length_bound=longest)]
    return sorted(cycles, key=lambda cycle: (len(cycle), cycle))


def preferred(instance: ElasticSharing, shares: IntArray, first: int, second: int) -> int:
    """Return the winner of the next GPU at these shares: Algorithm 1's comparison, ``first`` scanned first.

    A job without GPUs counts as longer than any with some; of two without, the shorter on its first
    share wins.  Of two equally long jobs the second counts as the shorter, as printed.
    """
    work, table = instance.work, instance.throughputs
    if not shares[first] and not shares[second]:
        alone = [work[job] / table[job, instance.min_shares[job]] for job in (first, second)]
        return first if alone[0] < alone[1] else second
    lengths = [work[job] / table[job, shares[job]] if shares[job] else np.inf for job in (first, second)]
    a, b = (first, second) if lengths[0] < lengths[1] else (second, first)
    (p_a, p_a_more), (p_b, p_b_more) = _throughputs(instance, shares, a), _throughputs(instance, shares, b)
    return b if (p_b_more - p_b) / p_b_more > (p_a_more - p_a) / p_a else a


def hand_out(instance: ElasticSharing) -> Iterator[IntArray]:
    """Yield the shares that AFS-L passes through when all jobs are there, from none on, before each step it takes."""
    shares = np.zeros(instance.num_jobs, np.int64)
    while (left := instance.num_gpus - int(shares.sum())) and (jobs := _competing(instance, shares, left)):
        yield shares.copy()
        champion = jobs[0]
        for job in jobs[1:]:
            champion = preferred(instance, shares, champion, job)
        shares[champion] = _next_share(instance, champion, int(shares[champion]))


def _competing(instance: ElasticSharing, shares: IntArray, left: int) -> list[int]:
    """Jobs whose next faster share is within what is left."""
    steps = [_next_share(instance, job, share) - share for job, share in enumerate(shares.tolist())]
    return [job for job, step in enumerate(steps) if 0 < step <= left]


def _next_share(instance: ElasticSharing, job: int, share: int) -> int:
    """Return the next share at which a job is faster; its own where none is."""
    table = instance.throughputs[job]
    faster = np.flatnonzero(table > table[share])
    return int(faster[0]) if faster.size else share


def _throughputs(instance: ElasticSharing, shares: IntArray, job: int) -> tuple[float, float]:
    """Symbols p and p': a job's throughputs at its share and at its next faster one."""
    table, share = instance.throughputs[job], int(shares[job])
    return float(table[share]), float(table[_next_share(instance, job, share)])


def _from_lowest(cycle: list[int]) -> list[int]:
    start = cycle.index(min(cycle))
    return cycle[start:] + cycle[:start]
