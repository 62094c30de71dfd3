"""POP: a policy's problem in random parts, each solved for itself, for all of Gavel's policies.

References
----------
Narayanan et al., "Solving Large-Scale Granular Resource Allocation Problems Efficiently with POP" (SOSP'21),
sections 3 and 4 (Gavel's policies are its first example).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from instances.gavel.hierarchical_fairness import HierarchicalFairness
from instances.gavel.max_min_fairness import MaxMinFairness
from instances.gavel.sharing import Allocation, Sharing
from instances.schema import Array, IntArray, declarations

__all__ = ["partition", "pop"]


def pop(
    instance: Sharing,
    solve: Callable[[Any], Allocation | None],
    *,
    parts: int,
    rng: np.random.Generator | int = 0,
) -> Allocation | None:
    """Jobs dealt out at random over parts of the cluster, each part solved for itself, and the plans joined.

    Jobs are in no pair with jobs of other parts.  A part is an instance like the whole, with a queue of its own,
    and entities that have all their weight in each part.

    Parameters
    ----------
    instance : Sharing
    solve : callable
        ``solve(part) -> plan``, such as the exact solution; None where a part has no plan.
    parts : int
        At least 1; fewer where there are fewer jobs, or where a job would find no part of a pool wide enough.
    rng : Generator or int

    Returns
    -------
    Allocation, optional
        None where a part has no plan.

    Raises
    ------
    ValueError
        When ``parts`` is less than 1.

    Notes
    -----
    Guarantee: a plan within the limits of the whole, where the plans of the parts are; none on its value.  With
    all jobs alike, without pairs, and with parts that are alike too, as good as the exact solution of every policy
    that knows no order of jobs.  Complexity: that of ``solve`` on each part.
    """
    if instance.num_jobs == 0:
        return solve(instance)
    n, k = instance.num_jobs, instance.num_types
    x = np.zeros((n + instance.num_pairs, k))
    for jobs, num_workers in partition(instance, parts, np.random.default_rng(rng)):
        part, pairs = _part(instance, jobs, num_workers)
        plan = solve(part)
        if plan is None:
            return None
        x[np.concatenate([jobs, n + pairs])] = plan.time_fractions
    joined = Allocation(time_fractions=x)
    return instance.plan(joined) if isinstance(instance, HierarchicalFairness) else joined


def partition(instance: Sharing, parts: int, rng: np.random.Generator) -> list[tuple[IntArray, IntArray]]:
    """Jobs, in increasing order, and workers of each pool, of each part.

    Numbers of jobs differ by at most 1 between parts, and so do those of each pool's workers.
    """
    if parts < 1:
        raise ValueError(f"parts: got {parts!r}, must be at least 1")
    n, workers = instance.num_jobs, instance.num_workers
    fitting = instance.scale_factors[:, None] <= workers
    widest = np.where(fitting, instance.scale_factors[:, None], 0).max(axis=0, initial=0)
    needed = widest > 0
    parts = max(1, min(parts, n, *(workers[needed] // widest[needed]).tolist()))
    dealt = np.array_split(rng.permutation(n), parts)
    # What does not divide goes to parts in turn, so that no part is short of all pools.
    first = np.concatenate([[0], np.cumsum(workers % parts)[:-1]])
    turns = (np.arange(parts)[:, None] - first) % parts
    return [
        (np.sort(jobs), workers // parts + (turn < workers % parts)) for jobs, turn in zip(dealt, turns, strict=True)
    ]


def _part(instance: Sharing, jobs: IntArray, num_workers: IntArray) -> tuple[Sharing, IntArray]:
    """Return some jobs on some of the workers, and the numbers of their pairs in the whole."""
    place = np.full(instance.num_jobs, -1)
    place[jobs] = np.arange(len(jobs))
    pairs = np.flatnonzero((place[instance.pairs] >= 0).all(axis=1))
    chosen = {"n": jobs, "q": pairs}
    fields: dict[str, Any] = {}
    for name, declared in declarations(type(instance)).items():
        fields[name] = getattr(instance, name)
        if isinstance(declared, Array) and (rows := chosen.get(declared.shape.split()[0])) is not None:
            fields[name] = fields[name][rows]
    fields |= {"num_workers": num_workers, "pairs": place[fields["pairs"]]}
    part = type(instance)(**fields)
    if isinstance(part, MaxMinFairness):
        # Levels are to be the whole's, though the part's pools may be in other proportions.
        own, of_whole = part.level_per_throughput, instance.level_per_throughput[jobs]
        ratio = np.divide(own, of_whole, out=np.ones(len(jobs)), where=own > 0)
        part = replace(part, weights=part.weights * ratio)
    return part, pairs
