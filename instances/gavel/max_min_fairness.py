"""Max-min fairness over heterogeneous workers: Gavel (OSDI'20), section 4.1.

Share a cluster of several worker types in time, so that the job that fares worst, relative to
an equal share of the cluster and to its weight, fares as well as possible:

    max_X  min_m  (scale_factor_m / w_m) * throughput(m, X) / throughput(m, X_equal).

The optimal value is unique, the allocation need not be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from instances.base import Array, FloatArray, default
from instances.gavel.sharing import Allocation, Sharing


@dataclass(frozen=True, eq=False, kw_only=True)
class MaxMinFairness(Sharing):
    """Jobs with weights that share a cluster; the other fields are those of :class:`Sharing`.

    Attributes
    ----------
    weights : (n,) float
        Weight of each job, positive, 1 by default.
    """

    problem = "gavel.max_min_fairness"
    sense = "max"

    weights: Annotated[FloatArray, Array(float, "n", above=0)] = default(lambda dims: np.ones(dims["n"]))

    def value(self, plan: Allocation) -> float:
        return float((self.normalized_throughputs(plan) / self.weights).min())


def generate(
    rng: np.random.Generator | int,
    *,
    num_jobs: int = 16,
    num_types: int = 3,
    workers_per_pool: int | None = None,
    multi_worker: bool = True,
    pair_fraction: float = 0.0,
    unconsolidated: bool = False,
    heterogeneity: float = 10.0,
    weighted: bool = False,
) -> MaxMinFairness:
    """Synthetic jobs on worker types of increasing speed.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    num_jobs, num_types : int
        n jobs and, before placement, k worker types.
    workers_per_pool : int, optional
        Workers of each type; by default a quarter of the jobs, at least 8.
    multi_worker : bool
        Scale factors as in the paper's traces: 1 (70%), 2 or 4 (25%), 8 (5%); else all 1.
    pair_fraction : float
        Fraction from 0 to 1 of the possible pairs of jobs that can share workers.
    unconsolidated : bool
        Whether each pool has a second type, for workers spread over servers, on which jobs of
        several workers run at 30 to 90% of their speed.
    heterogeneity : float
        Hardness dial: each job's fastest type is faster than its slowest by a factor drawn
        uniformly from 2 (or this, if smaller) to this (the paper reports 2 to 10).  At 1 all
        types are alike.
    weighted : bool
        Whether weights are drawn from 1 to 4; else all 1.
    """
    rng = np.random.default_rng(rng)
    n, k = num_jobs, num_types
    workers = max(8, n // 4) if workers_per_pool is None else workers_per_pool
    scale_factors = np.ones(n, np.int64)
    if multi_worker:
        scale_factors = rng.choice([1, 2, 4, 8], n, p=[0.7, 0.125, 0.125, 0.05])
        scale_factors = np.minimum(scale_factors, workers)
    slowest = 10 ** rng.uniform(-0.5, 1.5, n)
    speed_up = rng.uniform(min(2.0, heterogeneity), heterogeneity, n)
    position = np.sort(rng.uniform(0, 1, (n, k)), axis=1)
    position[:, 0], position[:, -1] = 0.0, 1.0
    throughputs = slowest[:, None] * speed_up[:, None] ** position
    pools = np.arange(k)
    if unconsolidated:
        spread = np.where(scale_factors > 1, rng.uniform(0.3, 0.9, n), 1.0)
        throughputs = np.hstack([throughputs, throughputs * spread[:, None]])
        pools = np.concatenate([pools, pools])
    pairs = np.array([(a, b) for a in range(n) for b in range(a + 1, n)] if pair_fraction > 0 else [], np.int64)
    pairs = pairs.reshape(-1, 2)
    pairs = pairs[scale_factors[pairs[:, 0]] == scale_factors[pairs[:, 1]]]
    pairs = pairs[rng.random(len(pairs)) < pair_fraction]
    # Two thirds of the published pairs do not fit together; the others keep part of their speed.
    kept = rng.uniform(0.3, 0.95, (len(pairs), throughputs.shape[1], 2))
    kept[rng.random(kept.shape[:2]) < 2 / 3] = 0.0
    pair_throughputs = kept * np.stack([throughputs[pairs[:, 0]], throughputs[pairs[:, 1]]], axis=-1)
    return MaxMinFairness(
        throughputs=throughputs,
        num_workers=np.full(k, workers),
        pools=pools,
        scale_factors=scale_factors,
        pairs=pairs,
        pair_throughputs=pair_throughputs,
        weights=rng.integers(1, 5, n).astype(float) if weighted else np.ones(n),
    )


def three_jobs() -> MaxMinFairness:
    """The example of section 4.1: three jobs on one V100 and one K80.

    The optimum is 8/11, 9.1% above the 2/3 that each job gets from an isolated third of the
    cluster.
    """
    return MaxMinFairness(throughputs=np.array([[4.0, 1.0], [3.0, 1.0], [2.0, 1.0]]), num_workers=np.array([1, 1]))
