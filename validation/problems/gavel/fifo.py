"""gavel.fifo: what is promised of its heuristics, and small instances to test them on."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from heuristics.gavel import fifo as fast
from instances.gavel.fifo import Fifo, from_trace, generate
from validation.catalogue import Entry, Rescaling, named
from validation.problems.gavel.sharing import cluster

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(draw: st.DrawFn, *, fields: st.SearchStrategy[dict[str, Any]] | None = None) -> Fifo:
    """FIFO: the jobs are in the order of their arrival."""
    return Fifo(**draw(cluster() if fields is None else fields))


ENTRY = Entry(
    title="Time on worker types, so that jobs run fast, the earlier the faster",
    source="Gavel, section 4.2",
    instance=Fifo,
    generate=generate,
    size="num_jobs",
    sizes=(8, 32, 128),
    heuristics=named(
        fast.fastest_free_type,
        fast.backfilling,
        fast.agnostic_fifo,
        fast.isolated,
        fast.equal_share,
        fast.heterogeneity_agnostic,
        fast.random_packing,
        fast.matched_packing,
    ),
    from_trace=from_trace,
    symmetric=("k", "p", "q"),
    rescalings=(Rescaling(("throughputs", "pair_throughputs"), 0),),
    strategy=strategy,
)
