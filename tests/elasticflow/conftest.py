"""Small sets of jobs with deadlines, and brute force over whole GPUs in every slot, without any solver."""

from itertools import product

import numpy as np
import pytest


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


def _runs(instance, job):
    """All ways for a job to do its iterations: its GPUs in each slot of the horizon."""
    curve, need = instance.throughputs[job].tolist(), float(instance.iterations[job])
    own, horizon = int(instance.deadlines[job]), int(instance.deadlines.max())
    return [
        run + (0,) * (horizon - own)
        for run in product(range(instance.num_gpus + 1), repeat=own)
        if sum(curve[g] for g in run) >= need
    ]


def _joined(instance, jobs):
    """All (GPUs in use in each slot, GPUs of each job in slot 0) in which the jobs can finish in time."""
    states = {((0,) * int(instance.deadlines.max()), ())}
    for job in jobs:
        runs = _runs(instance, job)
        states = {
            (tuple(map(sum, zip(used, run, strict=True))), (*now, run[0]))
            for used, now in states
            for run in runs
            if all(u + g <= instance.num_gpus for u, g in zip(used, run, strict=True))
        }
    return states


class Brute:
    """Everything is computed from the instance's fields by plain loops over whole numbers."""

    draw = staticmethod(_draw)

    @staticmethod
    def can_finish(instance, jobs):
        """Whether the jobs can all meet their deadlines."""
        return bool(_joined(instance, jobs))

    @staticmethod
    def least_gpu_time(instance, *, full_now=False):
        """Least GPU-slots with which all jobs meet their deadlines, None if they cannot; with (7) if asked."""
        curves, to_do = instance.throughputs.tolist(), instance.iterations.tolist()

        def allowed(used, now):
            faster = [
                m > 0 and g < instance.num_gpus and c[g + 1] > c[g] for c, g, m in zip(curves, now, to_do, strict=True)
            ]
            return used[0] == instance.num_gpus or not any(faster)

        return min(
            (sum(used) for used, now in _joined(instance, range(len(curves))) if not full_now or allowed(used, now)),
            default=None,
        )


@pytest.fixture(scope="session")
def brute():
    return Brute
