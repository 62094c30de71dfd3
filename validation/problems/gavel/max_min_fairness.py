"""Entry of gavel.max_min_fairness: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

from functools import partial
from typing import Any

from heuristics.gavel import max_min_fairness as fast
from heuristics.gavel.levels import EPSILON, whole
from instances.gavel import traces
from instances.gavel.max_min_fairness import MaxMinFairness, from_trace, generate
from instances.gavel.sharing import Allocation
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.kinds.promises import NeverWorseThan, Ratio, Relabelled
from validation.problems.gavel.peers import MOST_WORTH, SOLVER, maximize, pops, poured
from validation.problems.gavel.sharing import WIDE, cluster, of_all_policies
from validation.testing import st
from validation.testing.arrays import whole_floats

__all__ = ["ENTRY", "geometric_binner", "strategy"]


@st.composite
def strategy(draw: st.DrawFn, *, fields: st.SearchStrategy[dict[str, Any]] | None = None) -> MaxMinFairness:
    """Draw clusters for max-min fairness, with weights 1 to 4."""
    drawn = draw(cluster() if fields is None else fields)
    return MaxMinFairness(**drawn, weights=draw(whole_floats(len(drawn["throughputs"]), 1, 4)))


def geometric_binner(instance: MaxMinFairness) -> Allocation:
    """Return the geometric binner's plan, its programs solved by HiGHS."""
    return fast.geometric_binner(instance, maximize)


ENTRY = Entry(
    title="Time on worker types, so that the job that fares worst fares best",
    source="Gavel, section 4.1",
    instance=MaxMinFairness,
    generate=generate,
    size="num_jobs",
    sizes=(8, 32, 128),
    heuristics=named(
        *of_all_policies(fast),
        Heuristic(
            fast.interior_point,
            promises=(NeverWorseThan("isolated"), Ratio(1 / (1 - EPSILON), whole, "where no pair is left out")),
        ),
        Heuristic(fast.multiplicative_weights, promises=(Ratio(1 / 0.95),)),
        Heuristic(fast.approximate_waterfiller, promises=(poured(1), Relabelled(ties=False))),
        Heuristic(fast.adaptive_waterfiller, promises=(poured(10), Relabelled(ties=False))),
        Heuristic(geometric_binner, imports=SOLVER, promises=(MOST_WORTH,)),
        *pops(),
    ),
    from_trace=from_trace,
    snapshot=partial(traces.from_trace, MaxMinFairness.problem),
    symmetric=("n", "k", "p", "q"),
    rescalings=(Rescaling(("throughputs", "pair_throughputs"), 0), Rescaling(("weights",), -1)),
    strategy=strategy,
    wide=WIDE,
)
