"""Small sets of jobs with deadlines, and what the reference finds of them over whole GPUs in every slot."""

import numpy as np
import pytest

from instances.elasticflow.allocation import ElasticFlowAllocation
from instances.elasticflow.minimum_satisfactory_share import MinimumSatisfactoryShare

from ..second_opinion import optimum


def _draw(seed, *, concave=False, max_jobs=4, max_gpus=4, max_slots=3):
    """Fields of a few jobs in small whole numbers: curves that are concave, linear, flat, falling, zero or
    anything; deadlines of one slot, equal deadlines; nothing to do, and more than can be done.
    """
    rng = np.random.default_rng(seed)
    n, num_gpus = int(rng.integers(1, max_jobs + 1)), int(rng.integers(1, max_gpus + 1))
    deadlines = rng.integers(1, max_slots + 1, n)
    if rng.random() < 0.2:
        deadlines[:] = deadlines[0]
    kinds = ["concave", "concave", "linear", "flat", "peak"] + ([] if concave else ["any", "any", "zero", "step"])
    curves = []
    for kind in rng.choice(kinds, n):
        steps = {
            "concave": np.sort(rng.integers(0, 5, num_gpus))[::-1],
            "linear": np.full(num_gpus, rng.integers(1, 4)),
            "flat": np.array([rng.integers(1, 5)] + [0] * (num_gpus - 1)),
            "peak": np.sort(rng.integers(-2, 5, num_gpus))[::-1],
            "any": np.diff(rng.integers(0, 7, num_gpus), prepend=0),
            "zero": np.zeros(num_gpus, int),
            "step": np.array([rng.integers(1, 4) if g & (g + 1) == 0 else 0 for g in range(num_gpus)]),
        }[str(kind)]
        curves.append(np.maximum(np.concatenate([[0], np.cumsum(steps)]), 0))
    curves = np.array(curves, float)
    most = deadlines * curves.max(axis=1)
    part = rng.choice([0.0, 0.3, 0.5, 0.8, 1.0, 1.1], n, p=[0.1, 0.3, 0.3, 0.2, 0.05, 0.05])
    return {
        "num_gpus": num_gpus,
        "iterations": np.ceil(part * most),
        "deadlines": deadlines,
        "throughputs": curves,
    }


def _linear(seed):
    """Fields of jobs of 1 to 3 iterations per GPU and slot, often with fractions of a GPU-slot; and the stream."""
    rng = np.random.default_rng(seed)
    n, num_gpus = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    deadlines, rates = rng.integers(1, 4, n), rng.integers(1, 4, n)
    iterations = rng.integers(0, rates * num_gpus * deadlines + 1)
    throughputs = np.outer(rates, np.arange(num_gpus + 1))
    fields = {"num_gpus": num_gpus, "iterations": iterations, "deadlines": deadlines, "throughputs": throughputs}
    return fields, rng


class Brute:
    """Questions of jobs in slots, whichever problem asks them."""

    draw = staticmethod(_draw)
    linear = staticmethod(_linear)

    @staticmethod
    def can_finish(instance, jobs):
        """Whether the jobs can all meet their deadlines."""
        some = list(jobs)
        fields = {name: getattr(instance, name)[some] for name in ("iterations", "deadlines", "throughputs")}
        return not some or optimum(MinimumSatisfactoryShare(num_gpus=instance.num_gpus, **fields)) is not None

    @staticmethod
    def least_gpu_time(instance, *, full_now=False):
        """Least GPU-slots with which all jobs meet their deadlines, None if they cannot; with (7) if asked."""
        kind = ElasticFlowAllocation if full_now else MinimumSatisfactoryShare
        fields = {name: getattr(instance, name) for name in ("num_gpus", "iterations", "deadlines", "throughputs")}
        return optimum(kind(**fields))


@pytest.fixture(scope="session")
def brute():
    return Brute
