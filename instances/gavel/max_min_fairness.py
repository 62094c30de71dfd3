"""Max-min fairness over heterogeneous workers: Gavel (OSDI'20), section 4.1.

Share a cluster of several worker types in time, so that the job that fares worst, relative to
an equal share of the cluster and to its weight, fares as well as possible:

    max_X  min_m  (scale_factor_m / w_m) * throughput(m, X) / throughput(m, X_equal).

The optimal value is unique, the allocation need not be.  A job to which X_equal gives nothing has the
level 0, and so has every plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Unpack

import numpy as np

from instances.gavel.sharing import Allocation
from instances.gavel.synthetic import ClusterOptions, draw_cluster, three_jobs_on_two_types
from instances.gavel.traces import TracedSharing
from instances.schema import Array, FloatArray, default

__all__ = ["MaxMinFairness", "from_frame", "from_trace", "generate", "space_sharing", "three_jobs"]


@dataclass(frozen=True, eq=False, kw_only=True)
class MaxMinFairness(TracedSharing):
    """Jobs with weights that share a cluster; the other fields are those of :class:`Sharing`.

    Attributes
    ----------
    weights : (n,) float
        Weight of each job, positive, 1 by default.
    """

    problem = "gavel.max_min_fairness"
    sense = "max"
    measure = "least normalised throughput over weight"
    of_trace = {"weights": "priority"}

    weights: Annotated[FloatArray, Array(float, "n", above=0)] = default(lambda dims: np.ones(dims["n"]))

    def _value(self, plan: Allocation) -> float:
        return float((self.normalized_throughputs(plan) / self.weights).min())


def generate(
    rng: np.random.Generator | int, *, weighted: bool = False, **options: Unpack[ClusterOptions]
) -> MaxMinFairness:
    """Synthetic jobs on worker types of increasing speed.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    weighted : bool
        Whether weights are drawn from 1 to 4; else all 1.
    **options
        Sizes and the hardness dial of :func:`instances.gavel.synthetic.draw_cluster`.
    """
    rng = np.random.default_rng(rng)
    fields = draw_cluster(rng, **options)
    n = len(fields["scale_factors"])
    return MaxMinFairness(**fields, weights=rng.integers(1, 5, n).astype(float) if weighted else np.ones(n))


from_trace = MaxMinFairness.from_trace
from_frame = MaxMinFairness.from_frame


def three_jobs() -> MaxMinFairness:
    """Return the example of section 4.1: three jobs on one V100 and one K80.

    The optimum is 8/11, 9.1% above the 2/3 that each job gets from an isolated third of the
    cluster.  One allocation attains it: (5/11, 0), (5/11, 1/11) and (1/11, 10/11) of the V100's and
    the K80's time, which is printed to two decimals.
    """
    return MaxMinFairness(**three_jobs_on_two_types())


def space_sharing() -> MaxMinFairness:
    """Return the two jobs of section 3.1 on one V100, one P100 and one K80, which may share the V100.

    Together each makes half of its steps there, so sharing in space is worth as much as sharing in time:
    the optimum is 24/19 with the pair and without.  (Workers are not printed; there is one of each type.)
    """
    return MaxMinFairness(
        throughputs=np.array([[40.0, 20.0, 10.0], [15.0, 10.0, 5.0]]),
        num_workers=np.array([1, 1, 1]),
        pairs=np.array([[0, 1]]),
        pair_throughputs=np.array([[[20.0, 7.5], [0.0, 0.0], [0.0, 0.0]]]),
    )
