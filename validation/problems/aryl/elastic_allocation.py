"""aryl.elastic_allocation: what is promised of its heuristics, and small instances to test them on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from heuristics.aryl import elastic_allocation as fast
from instances.aryl.elastic_allocation import ElasticAllocation, from_trace, generate
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.testing.arrays import integers, whole_floats

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(draw: st.DrawFn, *, max_jobs: int = 4, max_extra: int = 4, max_seconds: int = 60) -> ElasticAllocation:
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


ENTRY = Entry(
    title="Which elastic jobs get the spare GPUs, reducing running time the most",
    source="Aryl, section 5.2 and Appendix D, Algorithm 2, lines 10 to 21",
    instance=ElasticAllocation,
    generate=generate,
    size="num_jobs",
    sizes=(10, 40, 160),
    heuristics=named(
        Heuristic(fast.dynamic_program, optimal=True),
        fast.base_charged_again,
        fast.marginal_greedy,
        fast.afs,
        fast.gandiva,
    ),
    from_trace=from_trace,
    symmetric=("n",),
    rescalings=(Rescaling(("min_running_times", "running_times"), 1),),
    enlarge=lambda instance: replace(instance, capacity=instance.capacity + 1),
    strategy=strategy,
)
