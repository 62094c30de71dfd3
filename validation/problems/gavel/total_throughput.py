"""Entry of gavel.total_throughput: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from heuristics.gavel import total_throughput as fast
from instances.gavel import traces
from instances.gavel.total_throughput import TotalThroughput, from_trace, generate
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.kinds.promises import Ratio, Relabelled
from validation.problems.gavel.peers import pops
from validation.problems.gavel.sharing import PRICED, WIDE, cluster, most_worth_first, narrow, of_all_policies, together
from validation.testing import st

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(draw: st.DrawFn, *, fields: st.SearchStrategy[dict[str, Any]] | None = None) -> TotalThroughput:
    """Draw clusters for total throughput."""
    return TotalThroughput(**draw(cluster() if fields is None else fields))


ENTRY = Entry(
    title="Time on worker types, so that all jobs together make the most steps",
    source="Gavel, sections 3.1 and 4.2",
    instance=TotalThroughput,
    generate=generate,
    size="num_jobs",
    sizes=(8, 32, 128),
    heuristics=named(
        Heuristic(
            fast.fastest_first,
            promises=(
                Relabelled(ties=False),
                Ratio(2, narrow, "without pairs and with jobs of one worker"),
                most_worth_first(together),
            ),
        ),
        Heuristic(fast.priced_types, promises=PRICED),
        *of_all_policies(fast),
        *pops(),
    ),
    from_trace=from_trace,
    snapshot=partial(traces.from_trace, TotalThroughput.problem),
    symmetric=("n", "k", "p", "q"),
    rescalings=(Rescaling(("throughputs", "pair_throughputs"), 1),),
    enlarge=lambda instance: replace(instance, num_workers=instance.num_workers + 1),
    strategy=strategy,
    wide=WIDE,
)
