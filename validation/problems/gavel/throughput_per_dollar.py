"""Entry of gavel.throughput_per_dollar: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from heuristics.gavel import throughput_per_dollar as fast
from instances.gavel import traces
from instances.gavel.throughput_per_dollar import ThroughputPerDollar, from_trace, generate
from validation.catalogue import Heuristic, named
from validation.kinds.promises import Ratio, Relabelled
from validation.problems.gavel.peers import pops
from validation.problems.gavel.priced import BLIND_TO_SLOS, IN_TIME, MISSED, priced, priced_entry
from validation.problems.gavel.sharing import BLIND, PRICED, most_worth_first, narrow, of_all_policies, together
from validation.testing import st

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(draw: st.DrawFn, *, fields: st.SearchStrategy[dict[str, Any]] | None = None) -> ThroughputPerDollar:
    """Draw clusters for throughput per price, a sum of ratios."""
    return ThroughputPerDollar(**draw(priced(fields=fields)))


ENTRY = priced_entry(
    title="Time on paid workers, for the greatest sum of throughput per price within the SLOs",
    source="the released code of Gavel, for section 4.2",
    instance=ThroughputPerDollar,
    generate=generate,
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
                most_worth_first(lambda instance: together(instance) / instance.costs),
            ),
        ),
        Heuristic(fast.priced_types, infeasible_because=MISSED, promises=(*IN_TIME, *PRICED)),
        *of_all_policies(fast, infeasible_because=BLIND_TO_SLOS),
        *pops(declines=True),
    ),
    from_trace=from_trace,
    snapshot=partial(traces.from_trace, ThroughputPerDollar.problem),
    strategy=strategy,
)
