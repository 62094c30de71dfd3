"""Instances of Aryl's problems."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from instances.aryl.elastic_allocation import ElasticAllocation
from instances.aryl.placement import Placement
from instances.aryl.reclaim import Reclaim
from instances.aryl.two_job import TwoJob
from validation.strategies.arrays import booleans, integers, whole_floats


@st.composite
def reclaim(draw: st.DrawFn, *, max_jobs: int = 5, max_servers: int = 5, max_gpus: int = 4) -> Reclaim:
    """Reclaim instances: any hosts, with flexible workers, and every demand."""
    n = draw(st.integers(1, max_jobs))
    s = draw(st.integers(1, max_servers))
    hosts = draw(booleans((n, s)))
    flexible = draw(integers((n, s), 0, max_gpus - 1))
    return Reclaim(hosts=hosts, gpus=flexible + hosts, demand=draw(st.integers(0, s)))


@st.composite
def elastic_allocation(
    draw: st.DrawFn, *, max_jobs: int = 4, max_extra: int = 4, max_seconds: int = 60
) -> ElasticAllocation:
    """Elastic allocations under linear scaling, or with any tables of running times."""
    n = draw(st.integers(1, max_jobs))
    min_workers = draw(integers(n, 1, 4))
    extra = draw(integers(n, 0, max_extra))
    gpus_per_worker = draw(integers(n, 1, 4))
    tables = None
    if draw(st.booleans()):
        tables = tuple(draw(whole_floats(int(most) + 1, 1, max_seconds)) for most in extra)
        fastest = np.array([table[-1] for table in tables])
    else:
        fastest = draw(whole_floats(n, 1, max_seconds))
    return ElasticAllocation(
        capacity=draw(st.integers(0, int(extra @ gpus_per_worker) + 1)),
        min_workers=min_workers,
        max_workers=min_workers + extra,
        gpus_per_worker=gpus_per_worker,
        min_running_times=fastest,
        running_times=tables,
    )


@st.composite
def placement(
    draw: st.DrawFn, *, max_jobs: int = 4, max_servers: int = 4, max_workers: int = 3, max_gpus: int = 8
) -> Placement:
    """Placements on servers of any sizes in both groups; not all workers need fit."""
    n = draw(st.integers(1, max_jobs))
    s = draw(st.integers(1, max_servers))
    groups = draw(st.lists(st.sampled_from(("training", "inference")), min_size=s, max_size=s))
    return Placement(
        gpus_per_worker=draw(integers(n, 1, max_gpus)),
        num_workers=draw(integers(n, 0, max_workers)),
        elastic=draw(booleans(n)),
        server_gpus=draw(integers(s, 1, max_gpus)),
        server_groups=np.array(groups),
    )


@st.composite
def two_job(draw: st.DrawFn, *, max_gpus: int = 12, max_work: int = 60) -> TwoJob:
    """Two jobs with any bounds that fit together, maxima beyond all GPUs among them."""
    num_gpus = draw(st.integers(2, max_gpus))
    first = draw(st.integers(1, num_gpus - 1))
    least = np.array([first, draw(st.integers(1, num_gpus - first))])
    return TwoJob(
        num_gpus=num_gpus,
        workloads=draw(whole_floats(2, 1, max_work)),
        min_gpus=least,
        max_gpus=least + draw(integers(2, 0, num_gpus)),
    )
