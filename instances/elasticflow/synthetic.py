"""Synthetic jobs with deadlines, drawn alike for the problems of ElasticFlow."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

import numpy as np

from instances.arguments import Count, Positive
from instances.arithmetic import power
from instances.schema import FloatArray, Scalar

__all__ = ["JobOptions", "draw_jobs"]


class JobOptions(TypedDict, total=False):
    """The keyword arguments of :func:`draw_jobs`, which every problem's ``generate`` takes."""

    num_jobs: Count
    num_gpus: Count
    horizon: Count
    tightness: Positive
    curves: Annotated[str, Scalar(str, choices=("linear", "concave", "measured"))]


def draw_jobs(
    rng: np.random.Generator,
    *,
    num_jobs: int = 8,
    num_gpus: int = 16,
    horizon: int = 20,
    tightness: float = 0.4,
    curves: str = "concave",
) -> dict[str, Any]:
    """Fields of :class:`instances.elasticflow.sharing.DeadlineJobs`: jobs that compete for the GPUs.

    Parameters
    ----------
    rng : Generator
        Source of randomness.
    num_jobs : int
        Number of jobs, n.
    num_gpus : int
        GPUs of the cluster.
    horizon : int
        Deadlines are drawn uniformly from 1 to this many slots.
    tightness : float
        Hardness dial, above 0: the largest part of the GPU time up to any deadline that the jobs
        due by then would need if each always ran at its most efficient number of GPUs.  Above 1
        there is no plan for all jobs.  With linear curves there is one up to about 1 (Theorem 1); with
        others plans run out earlier (for 16 GPUs at about half, for more at less), because jobs that
        need many GPUs run less efficiently.  No job has more to do than it could do alone, which can
        lower the load.
    curves : str
        "concave" (the default), "linear", or "measured": powers of two with an error of measurement,
        flat in between, which is neither concave nor monotone.
    """
    n = num_jobs
    throughputs = _CURVES[curves](rng, n, num_gpus)
    deadlines = rng.integers(1, horizon + 1, n)
    requested = np.minimum(rng.choice([1, 2, 4, 8], n, p=[0.6, 0.2, 0.15, 0.05]), num_gpus)
    # A deadline is 0.5 to 1.5 times the job's duration on the GPUs requested, as in the paper.
    durations = deadlines / rng.uniform(0.5, 1.5, n)
    best = np.maximum.accumulate(throughputs, axis=1)
    iterations = durations * best[np.arange(n), requested]
    # On the fewest GPUs on which it runs, a job needs the least GPU time that it can.
    rate = (throughputs[:, 1:] / np.arange(1, num_gpus + 1)).max(axis=1)
    load = max((iterations / rate)[deadlines <= last].sum() / (num_gpus * last) for last in deadlines.tolist())
    iterations *= tightness / load
    return {
        "num_gpus": num_gpus,
        "iterations": np.minimum(iterations, 0.95 * deadlines * best[:, -1]),
        "deadlines": deadlines,
        "throughputs": throughputs,
    }


def _linear_curves(rng: np.random.Generator, n: int, num_gpus: int) -> FloatArray:
    curves: FloatArray = np.outer(power(10, rng.uniform(1, 3, n)), np.arange(num_gpus + 1))
    return curves


def _concave_curves(rng: np.random.Generator, n: int, num_gpus: int) -> FloatArray:
    """Each doubling of the GPUs is worth less than the one before; linear between powers of two."""
    levels = 2 ** np.arange(num_gpus.bit_length() + 1)
    gain = rng.uniform(0.5, 1, (n, 1)) * np.cumprod(rng.uniform(0.5, 1, (n, len(levels) - 1)), axis=1)
    speed = np.cumprod(np.hstack([np.ones((n, 1)), 1 + gain]), axis=1) * power(10, rng.uniform(1, 3, (n, 1)))
    gpus = np.arange(num_gpus + 1)
    return np.array([np.interp(gpus, [0, *levels], [0, *row]) for row in speed])


def _measured_curves(rng: np.random.Generator, n: int, num_gpus: int) -> FloatArray:
    """Concave curves with an error of up to 20% at each power of two, flat in between."""
    gpus = np.arange(num_gpus + 1)
    below = 2 ** (np.frexp(np.maximum(gpus, 1))[1] - 1)
    error = rng.uniform(0.8, 1.2, (n, num_gpus + 1))
    curves: FloatArray = (_concave_curves(rng, n, num_gpus) * error)[:, below]
    curves[:, 0] = 0.0
    return curves


_CURVES = {"linear": _linear_curves, "concave": _concave_curves, "measured": _measured_curves}
