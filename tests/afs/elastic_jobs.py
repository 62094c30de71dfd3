"""Elastic jobs and schedulers that the tests of afs.elastic_sharing share."""

import numpy as np
from hypothesis import strategies as st

from heuristics.afs import elastic_sharing as schedulers
from instances.afs.elastic_sharing import (
    ElasticSharing,
    generate,
)

ALL = {name: getattr(schedulers, name) for name in schedulers.__all__ if name != "two_job_rule"}
"""Those that take any number of jobs."""


def small(rng, *, concave, sizes):
    """Tables and work in small whole numbers, with ties, flat pieces and useless first GPUs."""
    n, num_gpus = sizes[int(rng.integers(len(sizes)))]
    tables = []
    for _ in range(n):
        steps = rng.integers(0, 5, num_gpus)
        if concave:
            steps = np.sort(steps)[::-1]
        if not steps.any():
            steps[0] = 1
        tables.append([0, *np.cumsum(steps).tolist()])
    return num_gpus, tables, rng.integers(1, 13, n).tolist()


def instance_of(num_gpus, tables, work, reallocation):
    return ElasticSharing(
        num_gpus=num_gpus, work=np.array(work, float), throughputs=np.array(tables, float), reallocation=reallocation
    )


def two_jobs(**changes):
    fields = {"num_gpus": 2, "work": [10.0, 10.0], "throughputs": [[0, 1, 2], [0, 1, 2]], **changes}
    return ElasticSharing(**fields)


cases = st.builds(
    generate,
    st.integers(0, 10**6),
    num_jobs=st.integers(1, 6),
    num_gpus=st.integers(1, 9),
    loss=st.sampled_from([0.0, 0.5, 1.0]),
    rigid=st.sampled_from([0.0, 0.5, 1.0]),
    arrival_gap=st.sampled_from([0.0, 500.0]),
    reallocation=st.sampled_from(["at_completions", "any_time"]),
    requests=st.booleans(),
)
