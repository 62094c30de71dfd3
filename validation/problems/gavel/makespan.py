"""gavel.makespan: what is promised of its heuristics, and small instances to test them on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from heuristics.gavel import makespan as fast
from instances.gavel.makespan import Makespan, from_trace, generate
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.problems.gavel.sharing import WIDE, cluster, of_all_policies
from validation.testing.arrays import whole_floats
from validation.testing.promises import NeverWorseThan, Relabelled

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(draw: st.DrawFn, *, fields: st.SearchStrategy[dict[str, Any]] | None = None) -> Makespan:
    """Makespan with 1 to 60 steps left."""
    drawn = draw(cluster() if fields is None else fields)
    return Makespan(**drawn, steps=draw(whole_floats(len(drawn["throughputs"]), 1, 60)))


ENTRY = Entry(
    title="Time on worker types, so that the last job finishes as early as possible",
    source="Gavel, section 4.2",
    instance=Makespan,
    generate=generate,
    size="num_jobs",
    sizes=(8, 32, 128),
    heuristics=named(
        Heuristic(
            fast.same_finish,
            promises=(Relabelled(ties=False), NeverWorseThan("isolated"), NeverWorseThan("equal_share")),
        ),
        fast.agnostic_fifo,
        Heuristic(fast.allox, declines=True),
        *of_all_policies(fast),
    ),
    from_trace=from_trace,
    symmetric=("n", "k", "p", "q"),
    rescalings=(Rescaling(("throughputs", "pair_throughputs"), -1), Rescaling(("steps",), 1)),
    enlarge=lambda instance: replace(instance, num_workers=instance.num_workers + 1),
    strategy=strategy,
    wide=WIDE,
)
