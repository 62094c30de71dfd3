"""Instances of Gavel's policies that are hard to tell apart, or far apart; tables and tests draw the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from instances.gavel.cost import Cost
from instances.gavel.makespan import Makespan
from instances.gavel.max_min_fairness import MaxMinFairness
from instances.gavel.sharing import Sharing
from instances.gavel.throughput_per_dollar import ThroughputPerDollar

__all__ = ["cluster", "needs_program", "policy"]


def cluster(rng: np.random.Generator, *, fewest: int, most: int) -> dict[str, Any]:
    """Draw fields of a cluster: ties, zeros, several widths, throughputs over six decades, types that nobody can use.

    Parameters
    ----------
    rng : Generator
    fewest, most : int
        Jobs, from the one to fewer than the other.
    """
    n, k = int(rng.integers(fewest, most)), int(rng.integers(1, 5))
    pools = rng.integers(0, int(rng.integers(1, k + 1)), k)
    throughputs = [
        rng.integers(0, 4, (n, k)).astype(float),
        rng.integers(1, 5, (1, k)) * rng.integers(1, 4, (n, 1)).astype(float),
        10 ** rng.uniform(-3, 3, (n, 1)) * rng.uniform(0.5, 2, (n, k)),
        np.tile(10 ** rng.uniform(-1, 1, (n, 1)), (1, k)),
        rng.uniform(0, 10, (n, k)) * (rng.random((n, k)) < 0.8),
    ][int(rng.integers(5))]
    workers = rng.integers(0, n + 1, pools.max() + 1) if rng.random() < 0.5 else rng.integers(1, 4, pools.max() + 1)
    workers[0] += workers.sum() == 0
    widths = rng.choice([1, 1, 1, 2, 4, 8], n) if rng.random() < 0.5 else np.ones(n, int)
    return {"throughputs": throughputs, "num_workers": workers, "pools": pools, "scale_factors": widths}


def policy(kind: type[Any], seed: int, *, fewest: int = 17, most: int = 50) -> Any:
    """Draw an instance of a policy on such a cluster, with weights over six decades, finished jobs, and SLOs.

    Parameters
    ----------
    kind : type
        The instance's class.
    seed : int
    fewest, most : int
        Jobs, from the one to fewer than the other.
    """
    rng = np.random.default_rng(seed)
    fields = cluster(rng, fewest=fewest, most=most)
    n, k = fields["throughputs"].shape
    isolated = Sharing(**fields).isolated_throughputs
    if kind is MaxMinFairness:
        fields["weights"] = 10 ** rng.uniform(-3, 3, n) if rng.random() < 0.5 else rng.integers(1, 4, n).astype(float)
    if kind in (Makespan, Cost, ThroughputPerDollar):
        fields["steps"] = np.where(rng.random(n) < 0.1, 0.0, np.ceil(10 ** rng.uniform(0, 5, n)))
    if kind in (Cost, ThroughputPerDollar):
        fields["costs"] = np.round(10 ** rng.uniform(-0.5, 0.7, k), 2) if rng.random() < 0.5 else np.ones(k)
        asking = (rng.random(n) < rng.choice([0.0, 0.3, 1.0])) & (isolated > 0) & (fields["steps"] > 0)
        slos = np.divide(fields["steps"], isolated, out=np.full(n, np.inf), where=asking)
        fields["slos"] = slos / rng.choice([0.3, 0.8, 1.0])
    return kind(**fields)


def needs_program(instance: Any) -> bool:
    """Return True where a policy's optimum is not known without its program."""
    if not instance.fits.any():
        return False
    if isinstance(instance, MaxMinFairness):
        return bool((instance.level_per_throughput > 0).all())
    if isinstance(instance, Makespan):
        return bool(instance.active.any() and not instance.endless.any())
    return True
