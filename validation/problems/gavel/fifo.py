"""Entry of gavel.fifo: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from heuristics.gavel import fifo as fast
from instances.gavel import traces
from instances.gavel.fifo import Fifo, from_trace, generate
from instances.gavel.sharing import Allocation
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.kinds.promises import Holds, NeverWorseThan, Relabelled, optimum
from validation.problems.gavel.sharing import PRICED, WIDE, cluster, of_all_policies, one_by_one
from validation.testing import st

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(draw: st.DrawFn, *, fields: st.SearchStrategy[dict[str, Any]] | None = None) -> Fifo:
    """Draw clusters for FIFO, the jobs in the order of their arrival."""
    return Fifo(**draw(cluster() if fields is None else fields))


ALONE = optimum(lambda instance: instance.num_jobs == 1, "with one job")


def _nobody_waits_for_free_workers(instance: Fifo, plan: Allocation) -> bool:
    """Return whether no job is without time while a type on which it runs has workers enough left."""
    used = np.zeros(len(instance.num_workers))
    np.add.at(used, instance.pools, instance.row_scale_factors @ plan.time_fractions)
    free = (instance.num_workers - used)[instance.pools]
    waiting = ~plan.time_fractions[: instance.num_jobs].any(axis=1)
    could = (instance.throughputs > 0) & (free >= instance.scale_factors[:, None])
    return not could[waiting].any()


BUSY = Holds("no job waits for workers that are free", _nobody_waits_for_free_workers)


def _in_order(instance: Fifo) -> range:
    return range(instance.num_jobs)


ENTRY = Entry(
    title="Time on worker types, so that jobs run fast, the earlier the faster",
    source="Gavel, section 4.2",
    instance=Fifo,
    generate=generate,
    size="num_jobs",
    sizes=(8, 32, 128),
    heuristics=named(
        Heuristic(
            fast.fastest_free_type,
            promises=(ALONE, Relabelled(ties=False), one_by_one(_in_order, blocking=True)),
        ),
        Heuristic(
            fast.backfilling,
            promises=(
                ALONE,
                BUSY,
                Relabelled(ties=False),
                NeverWorseThan("fastest_free_type"),
                one_by_one(_in_order, blocking=False),
            ),
        ),
        Heuristic(fast.agnostic_fifo, promises=(one_by_one(_in_order, speeds=False, blocking=True),)),
        Heuristic(fast.priced_types, promises=PRICED),
        *of_all_policies(fast),
    ),
    from_trace=from_trace,
    snapshot=partial(traces.from_trace, Fifo.problem),
    symmetric=("k", "p", "q"),
    rescalings=(Rescaling(("throughputs", "pair_throughputs"), 0),),
    strategy=strategy,
    wide=WIDE,
)
