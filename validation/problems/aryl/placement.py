"""aryl.placement: what is promised of its heuristics, and small instances to test them on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from heuristics.aryl import placement as fast
from instances.aryl.placement import ArylPlacement, generate
from validation.catalogue import Entry, Heuristic, named
from validation.testing.arrays import booleans, integers

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(
    draw: st.DrawFn, *, max_jobs: int = 4, max_servers: int = 4, max_workers: int = 3, max_gpus: int = 8
) -> ArylPlacement:
    """Placements on servers of any sizes in both groups; not all workers need fit."""
    n = draw(st.integers(1, max_jobs))
    s = draw(st.integers(1, max_servers))
    groups = draw(st.lists(st.sampled_from(("training", "inference")), min_size=s, max_size=s))
    elastic = draw(booleans(n))
    return ArylPlacement(
        gpus_per_worker=draw(integers(n, 1, max_gpus)),
        num_workers=draw(integers(n, 0, max_workers)),
        elastic=elastic,
        server_gpus=draw(integers(s, 1, max_gpus)),
        server_groups=np.array(groups),
        flexible=elastic & draw(booleans(n)),
        heterogeneous=draw(booleans(n)),
    )


ENTRY = Entry(
    title="Which servers hold the workers, opening the fewest",
    source="Aryl, sections 5.3 and 6",
    instance=ArylPlacement,
    generate=generate,
    size="total_workers",
    sizes=(10, 20, 40),
    heuristics=named(
        Heuristic(fast.best_fit_decreasing, infeasible_because="a worker that fits on no server any more is left out"),
        Heuristic(
            fast.naive_best_fit_decreasing,
            infeasible_because="base and flexible workers share servers; a worker that fits on no server any more is "
            "left out",
        ),
    ),
    symmetric=("n", "s"),
    enlarge=lambda instance: replace(instance, server_gpus=instance.server_gpus + 1),
    strategy=strategy,
)
