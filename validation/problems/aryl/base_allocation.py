"""Entry of aryl.base_allocation: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

from dataclasses import replace

from heuristics.aryl import base_allocation as fast
from instances.aryl.base_allocation import BaseAllocation, generate
from validation.catalogue import Entry, Rescaling, named
from validation.testing import st
from validation.testing.arrays import integers, whole_floats

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(draw: st.DrawFn, *, max_jobs: int = 4, max_gpus: int = 4, max_seconds: int = 9) -> BaseAllocation:
    """Draw jobs of any demands, finished ones among them; not all need fit."""
    n = draw(st.integers(1, max_jobs))
    return BaseAllocation(
        capacity=draw(st.integers(1, max_gpus)),
        gpu_demands=draw(integers(n, 1, max_gpus)),
        running_times=draw(whole_floats(n, 0, max_seconds)),
    )


ENTRY = Entry(
    title="When waiting jobs start on their base demands, completing soonest on average",
    source="Aryl, section 5.2 and Appendix D, Algorithm 2, lines 1 to 9 and 24",
    instance=BaseAllocation,
    generate=generate,
    size="num_jobs",
    sizes=(4, 5, 6),
    heuristics=named(
        fast.shortest_job_first,
        fast.smallest_job_first,
        fast.fifo,
    ),
    symmetric=("n",),
    rescalings=(Rescaling(("running_times",), 1),),
    enlarge=lambda instance: replace(instance, capacity=instance.capacity + 1),
    strategy=strategy,
)
