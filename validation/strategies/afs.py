"""Instances of AFS's problems."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from instances.afs.elastic_sharing import ElasticSharing
from instances.afs.gpu_placement import GpuPlacement
from instances.afs.network_packing import NetworkPacking, regulated_shares
from instances.afs.two_job import TwoJob
from validation.strategies.arrays import integers, whole_floats


@st.composite
def elastic_sharing(draw: st.DrawFn, *, max_jobs: int = 3, max_gpus: int = 4, max_work: int = 12) -> ElasticSharing:
    """Jobs that are all there at once, with any curves: concave, rigid, flat, or bent upwards."""
    n = draw(st.integers(1, max_jobs))
    num_gpus = draw(st.integers(1, max_gpus))
    steps = draw(integers((n, num_gpus), 0, 4))
    if draw(st.booleans()):
        steps = np.sort(steps, axis=1)[:, ::-1]
    table = np.concatenate([np.zeros((n, 1)), np.cumsum(steps, axis=1)], axis=1)
    # A job that nothing makes run gets one iteration/s on all GPUs.
    table[:, -1] = np.maximum(table[:, -1], 1)
    return ElasticSharing(
        num_gpus=num_gpus,
        work=draw(whole_floats(n, 1, max_work)),
        throughputs=table,
        reallocation=draw(st.sampled_from(("at_completions", "any_time"))),
    )


@st.composite
def two_job(draw: st.DrawFn, *, max_work: int = 60, max_throughput: int = 12) -> TwoJob:
    """Two jobs, of which one or both may not run yet, and which the GPU may not help."""
    now = draw(whole_floats(2, 0, max_throughput))
    more = draw(whole_floats(2, 0, max_throughput))
    return TwoJob(
        work=draw(whole_floats(2, 1, max_work)),
        throughputs=np.stack([now, np.maximum(now + more, 1)], axis=1),
    )


@st.composite
def network_packing(
    draw: st.DrawFn, *, max_jobs: int = 5, max_machines: int = 3, max_exponent: int = 3
) -> NetworkPacking:
    """Any division of all GPUs among the jobs, with and without the guarantee."""
    n = draw(st.integers(1, max_jobs))
    num_machines = draw(st.integers(1, max_machines))
    gpus_per_machine = 2 ** draw(st.integers(0, max_exponent))
    total = num_machines * gpus_per_machine
    cuts = sorted(draw(st.lists(st.integers(0, total), min_size=n - 1, max_size=n - 1)))
    return NetworkPacking(
        shares=np.diff([0, *cuts, total]),
        num_machines=num_machines,
        gpus_per_machine=gpus_per_machine,
        floor_guarantee=draw(st.booleans()),
    )


@st.composite
def gpu_placement(draw: st.DrawFn, *, max_jobs: int = 4, max_machines: int = 3, max_exponent: int = 2) -> GpuPlacement:
    """Any regulated shares that fit, and any earlier placement, jobs without shares among them."""
    n = draw(st.integers(1, max_jobs))
    m = draw(st.integers(1, max_machines))
    gpus_per_machine = 2 ** draw(st.integers(0, max_exponent))
    left = m * gpus_per_machine
    regulated = []
    for _ in range(n):
        sizes = regulated_shares(m, gpus_per_machine)
        regulated.append(draw(st.sampled_from(sizes[sizes <= left].tolist())))
        left -= regulated[-1]
    previous = np.zeros((n, m), np.int64)
    for machine in range(m):
        free = gpus_per_machine
        for job in range(n):
            previous[job, machine] = draw(st.integers(0, free))
            free -= int(previous[job, machine])
    return GpuPlacement(
        regulated=np.array(regulated), num_machines=m, gpus_per_machine=gpus_per_machine, previous=previous
    )
