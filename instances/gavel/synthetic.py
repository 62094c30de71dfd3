"""Synthetic clusters and jobs, drawn alike for all of Gavel's policies."""

from __future__ import annotations

from typing import Any, TypedDict

import numpy as np

from instances.arithmetic import power
from instances.schema import FloatArray

__all__ = ["ClusterOptions", "draw_cluster", "draw_steps", "three_jobs_on_two_types"]


class ClusterOptions(TypedDict, total=False):
    """The keyword arguments of :func:`draw_cluster`, which every policy's ``generate`` takes."""

    num_jobs: int
    num_types: int
    workers_per_pool: int | None
    multi_worker: bool
    pair_fraction: float | None
    unconsolidated: bool
    heterogeneity: float


def draw_cluster(
    rng: np.random.Generator,
    *,
    num_jobs: int = 16,
    num_types: int = 3,
    workers_per_pool: int | None = None,
    multi_worker: bool = True,
    pair_fraction: float | None = None,
    unconsolidated: bool = False,
    heterogeneity: float = 10.0,
) -> dict[str, Any]:
    """Fields of :class:`instances.gavel.sharing.Sharing`: jobs on worker types of increasing speed.

    Parameters
    ----------
    rng : Generator
        Source of randomness.
    num_jobs, num_types : int
        n jobs and, before placement, k worker types.
    workers_per_pool : int, optional
        Workers of each type; by default a quarter of the jobs, at least 8.
    multi_worker : bool
        Scale factors as in the paper's traces (7.1): 1 (70%), 2 or 4 (25%), 8 (5%); else all 1.
        The paper writes "between 2 and 4" and does not say whether 3 is among them.
    pair_fraction : float, optional
        Fraction from 0 to 1 of the possible pairs of jobs that can share workers; by default 0.3 or,
        from 27 jobs on, what gives a job 8 possible partners.
    unconsolidated : bool
        Whether each pool has a second type, for workers spread over servers, on which jobs of
        several workers run at 30 to 90% of their speed.
    heterogeneity : float
        Hardness dial: each job's fastest type is faster than its slowest by a factor drawn
        uniformly from 2 (or this, if smaller) to this (Figure 1a has 2 to 10).  At 1 all
        types are alike.
    """
    n, k = num_jobs, num_types
    workers = max(8, n // 4) if workers_per_pool is None else workers_per_pool
    pair_fraction = min(0.3, 8 / n) if pair_fraction is None else pair_fraction
    scale_factors = np.ones(n, np.int64)
    if multi_worker:
        scale_factors = rng.choice([1, 2, 4, 8], n, p=[0.7, 0.125, 0.125, 0.05])
        scale_factors = np.minimum(scale_factors, workers)
    slowest = power(10, rng.uniform(-0.5, 1.5, n))
    speed_up = rng.uniform(min(2.0, heterogeneity), heterogeneity, n)
    position = np.sort(rng.uniform(0, 1, (n, k)), axis=1)
    position[:, 0], position[:, -1] = 0.0, 1.0
    throughputs = slowest[:, None] * power(speed_up[:, None], position)
    pools = np.arange(k)
    if unconsolidated:
        spread = np.where(scale_factors > 1, rng.uniform(0.3, 0.9, n), 1.0)
        throughputs = np.hstack([throughputs, throughputs * spread[:, None]])
        pools = np.concatenate([pools, pools])
    pairs = np.stack(np.triu_indices(n if pair_fraction > 0 else 0, 1), axis=1)
    pairs = pairs[scale_factors[pairs[:, 0]] == scale_factors[pairs[:, 1]]]
    pairs = pairs[rng.random(len(pairs)) < pair_fraction]
    # Two thirds of the published pairs do not fit together; the others keep part of their speed.
    kept = rng.uniform(0.3, 0.95, (len(pairs), throughputs.shape[1], 2))
    kept[rng.random(kept.shape[:2]) < 2 / 3] = 0.0
    pair_throughputs = kept * np.stack([throughputs[pairs[:, 0]], throughputs[pairs[:, 1]]], axis=-1)
    return {
        "throughputs": throughputs,
        "num_workers": np.full(k, workers),
        "pools": pools,
        "scale_factors": scale_factors,
        "pairs": pairs,
        "pair_throughputs": pair_throughputs,
    }


def draw_steps(rng: np.random.Generator, throughputs: FloatArray, *, spread: float = 1.0) -> FloatArray:
    """(n,) float: steps of jobs whose durations on their fastest type follow the paper's traces.

    Durations are 10^x minutes with x uniform on [1.5, 3] for 80% of the jobs and on [3, 4] for the
    others; ``spread`` less than 1 draws x together towards 2.5, where it all is at 0.
    """
    n = len(throughputs)
    exponent = np.where(rng.random(n) < 0.8, rng.uniform(1.5, 3, n), rng.uniform(3, 4, n))
    steps: FloatArray = np.ceil(60 * power(10, 2.5 + spread * (exponent - 2.5)) * throughputs.max(axis=1))
    return steps


def three_jobs_on_two_types() -> dict[str, Any]:
    """Fields of the example of section 4.1: three jobs on one V100 and one K80."""
    return {"throughputs": np.array([[40.0, 10.0], [12.0, 4.0], [100.0, 50.0]]), "num_workers": np.array([1, 1])}
