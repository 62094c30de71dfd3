"""afs.gpu_placement: what is promised of its heuristics, and small instances to test them on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from heuristics.afs import gpu_placement as fast
from instances.afs.gpu_placement import GpuPlacement, generate
from instances.afs.network_packing import regulated_shares
from validation.catalogue import Entry, named

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(draw: st.DrawFn, *, max_jobs: int = 4, max_machines: int = 3, max_exponent: int = 2) -> GpuPlacement:
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


ENTRY = Entry(
    title="Which machines host which jobs, keeping as many as possible in place",
    source="AFS, section 4.4 and Appendix E, Proposition 1",
    instance=GpuPlacement,
    generate=generate,
    size="num_jobs",
    sizes=(8, 16, 32),
    heuristics=named(
        fast.first_fit_decreasing,
        fast.first_fit_decreasing_in_place,
    ),
    symmetric=("n", "m"),
    enlarge=lambda instance: replace(
        instance,
        num_machines=instance.num_machines + 1,
        previous=[[*held, 0] for held in instance.previous.tolist()],
    ),
    strategy=strategy,
)
