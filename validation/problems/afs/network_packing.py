"""afs.network_packing: what is promised of its heuristics, and small instances to test them on."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from heuristics.afs import network_packing as fast
from instances.afs.network_packing import NetworkPacking, generate
from validation.catalogue import Entry, named

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(draw: st.DrawFn, *, max_jobs: int = 5, max_machines: int = 3, max_exponent: int = 3) -> NetworkPacking:
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


ENTRY = Entry(
    title="Which shares, near those wanted, pack without sharing networks",
    source="AFS, section 4.4 and Appendix E",
    instance=NetworkPacking,
    generate=generate,
    size="num_jobs",
    sizes=(10, 50, 200),
    heuristics=named(
        fast.floor_and_grow,
        fast.floor_and_grow_nearest,
    ),
    symmetric=("n",),
    strategy=strategy,
)
