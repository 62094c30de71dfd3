"""Heuristics of ``aryl.base_allocation`` that one row of weights makes: the order in which jobs get their times.

Jobs go by a weighted sum of :data:`FEATURES`, the least first; each begins as early as those before it leave it room.
``local_search`` of the catalogue begins with five such orders, by running time times a power of the GPUs.
"""

import numpy as np

from instances.aryl.base_allocation import BaseAllocation, BaseAllocationPlan

PROBLEM = "aryl.base_allocation"
BESIDE = ("fifo", "smallest_job_first", "shortest_job_first", "local_search")

FEATURES = (
    "log of its running time",
    "log of its GPUs",
    "part of all GPUs that it needs",
    "1 if it needs more than half of all GPUs",
    "running time / the longest",
    "GPU-seconds / the most",
)
"""What is told of a job."""

START = np.array([1.0, 0, 0, 0, 0, 0])
"""Where the search begins: the shortest first, as in phase one of Algorithm 2."""

NAMED = {"time": START, "time, half of GPUs": np.array([1.0, 0.5, 0, 0, 0, 0])}
"""Weights that a person would try."""


def features(instance: BaseAllocation) -> np.ndarray:
    """(features, n): what is told of every job."""
    times, gpus = np.maximum(instance.running_times, 1e-9), instance.gpu_demands
    part = gpus / instance.capacity
    return np.stack(
        [np.log(times), np.log(gpus), part, part > 0.5, times / times.max(), times * gpus / (times * gpus).max()]
    )


def by_weights(instance: BaseAllocation, weights: np.ndarray) -> BaseAllocationPlan | None:
    """The plan in the order of these weights, one for each feature; None where a job never fits."""
    if instance.too_large.size:
        return None
    return instance.in_order(np.argsort(np.round(weights @ features(instance), 9), kind="stable").tolist())
