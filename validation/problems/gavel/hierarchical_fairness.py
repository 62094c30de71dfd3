"""gavel.hierarchical_fairness: what is promised of its heuristics, and small instances to test them on."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from heuristics.gavel import hierarchical_fairness as fast
from instances.gavel.hierarchical_fairness import HierarchicalFairness, from_trace, generate
from validation.catalogue import Entry, Rescaling, named
from validation.problems.gavel.sharing import cluster
from validation.testing.arrays import integers, whole_floats

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(
    draw: st.DrawFn, *, fields: st.SearchStrategy[dict[str, Any]] | None = None, max_entities: int = 2
) -> HierarchicalFairness:
    """Entities that share by weight, whose jobs do too or are served in order."""
    drawn = draw(cluster() if fields is None else fields)
    n = len(drawn["throughputs"])
    e = draw(st.integers(1, max_entities))
    policies = draw(st.lists(st.sampled_from(["fairness", "fifo"]), min_size=e, max_size=e))
    return HierarchicalFairness(
        **drawn,
        entities=draw(integers(n, 0, e - 1)),
        entity_weights=draw(whole_floats(e, 1, 4)),
        entity_policies=np.array(policies),
        weights=draw(whole_floats(n, 1, 4)),
    )


ENTRY = Entry(
    title="How entities share a cluster, and their jobs what each gets, by water filling",
    source="Gavel, section 4.3",
    instance=HierarchicalFairness,
    generate=generate,
    size="num_jobs",
    sizes=(8, 32, 128),
    heuristics=named(
        fast.entity_share,
        fast.isolated,
        fast.equal_share,
        fast.heterogeneity_agnostic,
        fast.random_packing,
        fast.matched_packing,
    ),
    from_trace=from_trace,
    symmetric=("k", "p", "q", "e"),
    rescalings=(Rescaling(("throughputs", "pair_throughputs"), 0), Rescaling(("entity_weights",), -1)),
    strategy=strategy,
)
