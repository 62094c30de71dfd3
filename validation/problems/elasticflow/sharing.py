"""Small sets of jobs with deadlines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from hypothesis import strategies as st

from instances.elasticflow.sharing import DeadlineJobs
from validation.testing.arrays import integers

__all__ = ["deadline_jobs", "one_more_gpu"]

Jobs = TypeVar("Jobs", bound=DeadlineJobs[Any])


@st.composite
def deadline_jobs(draw: st.DrawFn, *, max_jobs: int = 3, max_gpus: int = 4, max_slots: int = 4) -> dict[str, Any]:
    """Fields of jobs with any curves, concave or not, and with nothing to do up to more than can be done."""
    n = draw(st.integers(1, max_jobs))
    num_gpus = draw(st.integers(1, max_gpus))
    if draw(st.booleans()):
        steps = np.sort(draw(integers((n, num_gpus), 0, 4)), axis=1)[:, ::-1]
        rates = np.cumsum(steps, axis=1)
    else:
        rates = draw(integers((n, num_gpus), 0, 8))
    deadlines = draw(integers(n, 1, max_slots))
    # Up to what half of the GPUs could do in time, and a little more.
    most = deadlines * rates[:, (num_gpus - 1) // 2] + 1
    return {
        "num_gpus": num_gpus,
        "iterations": np.array([draw(st.integers(0, int(m))) for m in most], float),
        "deadlines": deadlines,
        "throughputs": np.concatenate([np.zeros((n, 1)), rates], axis=1),
    }


def one_more_gpu(instance: Jobs) -> Jobs:
    """The instance with a GPU more, which makes no job faster than all GPUs did before."""
    curves = np.concatenate([instance.throughputs, instance.throughputs[:, -1:]], axis=1)
    return replace(instance, num_gpus=instance.num_gpus + 1, throughputs=curves)
