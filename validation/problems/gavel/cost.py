"""Entry of gavel.cost: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from heuristics.gavel import cost as fast
from instances.gavel import traces
from instances.gavel.cost import Cost, from_trace, generate
from instances.gavel.sharing import Allocation
from validation.catalogue import Heuristic, named
from validation.kinds.promises import Holds, NeverWorseThan, Relabelled, optimum
from validation.problems.gavel.priced import BLIND_TO_SLOS, IN_TIME, MISSED, priced, priced_entry
from validation.problems.gavel.sharing import BLIND, most_worth_first, of_all_policies, together
from validation.testing import st

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(draw: st.DrawFn, *, fields: st.SearchStrategy[dict[str, Any]] | None = None) -> Cost:
    """Draw clusters for throughput per price of what is used, a ratio of sums."""
    return Cost(**draw(priced(fields=fields)))


def _one_bargain(instance: Cost, plan: Allocation) -> bool:
    """Return whether the first row and type of most steps for its workers' price runs all the time, alone."""
    worth = np.where(instance.fits, together(instance) / (instance.row_scale_factors[:, None] * instance.costs), 0.0)
    only = np.zeros_like(worth)
    only.ravel()[worth.argmax() : worth.argmax() + 1] = worth.max(initial=0) > 0
    return bool((plan.time_fractions == only).all())


WITHOUT_SLOS = optimum(lambda instance: bool(np.isinf(instance.slos).all()), "without SLOs")


ENTRY = priced_entry(
    title="Time on paid workers, for the most steps per dollar within the SLOs",
    source="Gavel, section 4.2 and Table 1",
    instance=Cost,
    generate=generate,
    heuristics=named(
        Heuristic(
            fast.best_bargain,
            infeasible_because=BLIND_TO_SLOS,
            promises=(
                BLIND,
                Holds("the best bargain alone runs", _one_bargain),
                Relabelled(ties=False),
                WITHOUT_SLOS,
            ),
        ),
        Heuristic(fast.fastest_first, infeasible_because=BLIND_TO_SLOS, promises=(BLIND, most_worth_first(together))),
        Heuristic(
            fast.priced_types,
            infeasible_because=MISSED,
            promises=(*IN_TIME, NeverWorseThan("isolated"), WITHOUT_SLOS),
        ),
        *of_all_policies(fast, infeasible_because=BLIND_TO_SLOS),
    ),
    from_trace=from_trace,
    snapshot=partial(traces.from_trace, Cost.problem),
    strategy=strategy,
)
