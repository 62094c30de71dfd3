"""Max-min fairness over heterogeneous workers: Gavel (OSDI'20), section 4.1.

Share a cluster of several worker types in time, so that the job that fares worst, relative to
an equal share of the cluster and to its weight, fares as well as possible:

    max_X  min_m  (scale_factor_m / w_m) * throughput(m, X) / throughput(m, X_equal).

The optimal value is unique, the allocation need not be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Unpack

import numpy as np

from instances.base import Array, FloatArray, default
from instances.gavel.sharing import Allocation, Sharing
from instances.gavel.synthetic import ClusterOptions, draw_cluster


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
    rng: np.random.Generator | int, *, weighted: bool = False, **cluster: Unpack[ClusterOptions]
) -> MaxMinFairness:
    """Synthetic jobs on worker types of increasing speed.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    weighted : bool
        Whether weights are drawn from 1 to 4; else all 1.
    **cluster
        Sizes and the hardness dial of :func:`instances.gavel.synthetic.draw_cluster`.
    """
    rng = np.random.default_rng(rng)
    fields = draw_cluster(rng, **cluster)
    n = len(fields["scale_factors"])
    return MaxMinFairness(**fields, weights=rng.integers(1, 5, n).astype(float) if weighted else np.ones(n))


def three_jobs() -> MaxMinFairness:
    """The example of section 4.1: three jobs on one V100 and one K80.

    The optimum is 8/11, 9.1% above the 2/3 that each job gets from an isolated third of the
    cluster.
    """
    return MaxMinFairness(throughputs=np.array([[4.0, 1.0], [3.0, 1.0], [2.0, 1.0]]), num_workers=np.array([1, 1]))
