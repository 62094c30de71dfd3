"""Entry of gavel.throughput_per_dollar: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from heuristics.gavel import throughput_per_dollar as fast
from instances.gavel import traces
from instances.gavel.throughput_per_dollar import ThroughputPerDollar, from_trace, generate
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.kinds.promises import Ratio, Relabelled
from validation.problems.gavel.peers import pops
from validation.problems.gavel.priced import priced
from validation.problems.gavel.sharing import BLIND, WIDE, narrow, of_all_policies
from validation.testing import st

__all__ = ["ENTRY", "strategy"]

BLIND_TO_SLOS = "it does not look at SLOs"


@st.composite
def strategy(draw: st.DrawFn, *, fields: st.SearchStrategy[dict[str, Any]] | None = None) -> ThroughputPerDollar:
    """Draw clusters for throughput per price, a sum of ratios."""
    return ThroughputPerDollar(**draw(priced(fields=fields)))


ENTRY = Entry(
    title="Time on paid workers, for the greatest sum of throughput per price within the SLOs",
    source="the released code of Gavel, for section 4.2",
    instance=ThroughputPerDollar,
    generate=generate,
    size="num_jobs",
    sizes=(8, 32, 128),
    heuristics=named(
        Heuristic(
            fast.best_bargain_first,
            infeasible_because=BLIND_TO_SLOS,
            promises=(
                BLIND,
                Relabelled(ties=False),
                Ratio(
                    2,
                    lambda instance: narrow(instance) and bool(np.isinf(instance.slos).all()),
                    "without SLOs and pairs, with jobs of one worker",
                ),
            ),
        ),
        *of_all_policies(fast, infeasible_because=BLIND_TO_SLOS),
        *pops(declines=True),
    ),
    from_trace=from_trace,
    snapshot=partial(traces.from_trace, ThroughputPerDollar.problem),
    symmetric=("n", "k", "p", "q"),
    rescalings=(
        Rescaling(("throughputs", "pair_throughputs", "steps"), 1),
        Rescaling(("costs",), -1),
        Rescaling(("steps", "slos"), 0),
    ),
    enlarge=lambda instance: replace(instance, num_workers=instance.num_workers + 1),
    strategy=strategy,
    wide=WIDE,
)
