"""gavel.round_assignment: what is promised of its heuristics, and small instances to test them on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from heuristics.gavel import round_assignment as fast
from instances.gavel.round_assignment import RoundAssignment, generate
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.problems.gavel.sharing import cluster
from validation.testing.arrays import quarters

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(
    draw: st.DrawFn, *, fields: st.SearchStrategy[dict[str, Any]] | None = None, max_priority: int = 4
) -> RoundAssignment:
    """A round with priorities of 0 to 4 in quarters, ties and zeros among them."""
    drawn = draw(cluster() if fields is None else fields)
    rows = len(drawn["scale_factors"]) + len(drawn["pairs"])
    shared = {name: drawn[name] for name in ("num_workers", "pools", "scale_factors", "pairs")}
    return RoundAssignment(**shared, priorities=draw(quarters((rows, drawn["throughputs"].shape[1]), 0, max_priority)))


ENTRY = Entry(
    title="Which jobs run in the next round, by priority",
    source="Gavel, section 5 and Algorithm 1",
    instance=RoundAssignment,
    generate=generate,
    size="num_jobs",
    sizes=(8, 32, 128),
    heuristics=named(
        fast.greedy_priority,
        Heuristic(fast.matching_round, declines=True),
    ),
    symmetric=("n", "k", "p"),
    rescalings=(Rescaling(("priorities",), 1),),
    enlarge=lambda instance: replace(instance, num_workers=instance.num_workers + 1),
    strategy=strategy,
)
