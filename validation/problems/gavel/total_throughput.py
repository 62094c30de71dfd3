"""gavel.total_throughput: what is promised of its heuristics, and small instances to test them on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from heuristics.gavel import total_throughput as fast
from instances.gavel.total_throughput import TotalThroughput, from_trace, generate
from validation.catalogue import Entry, Rescaling, named
from validation.problems.gavel.sharing import cluster

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(draw: st.DrawFn, *, fields: st.SearchStrategy[dict[str, Any]] | None = None) -> TotalThroughput:
    """Total throughput."""
    return TotalThroughput(**draw(cluster() if fields is None else fields))


ENTRY = Entry(
    title="Time on worker types, so that all jobs together make the most steps",
    source="Gavel, sections 3.1 and 4.2",
    instance=TotalThroughput,
    generate=generate,
    size="num_jobs",
    sizes=(8, 32, 128),
    heuristics=named(
        fast.fastest_first,
        fast.isolated,
        fast.equal_share,
        fast.heterogeneity_agnostic,
        fast.random_packing,
        fast.matched_packing,
    ),
    from_trace=from_trace,
    symmetric=("n", "k", "p", "q"),
    rescalings=(Rescaling(("throughputs", "pair_throughputs"), 1),),
    enlarge=lambda instance: replace(instance, num_workers=instance.num_workers + 1),
    strategy=strategy,
)
