"""synergy.allocation: what is promised of its heuristics, and small instances to test them on."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from heuristics.synergy import allocation as fast
from instances.synergy.allocation import SynergyAllocation, from_trace, generate
from validation.catalogue import Entry, Rescaling, named
from validation.problems.synergy.sensitivity import jobs

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(draw: st.DrawFn, *, max_servers: int = 3, max_gpus: int = 4, max_configs: int = 5) -> SynergyAllocation:
    """Jobs that fit the cluster's GPUs, with any configurations besides one within the proportional share."""
    return SynergyAllocation(**draw(jobs(max_servers, max_gpus, max_configs)))


ENTRY = Entry(
    title="How much CPU and memory each job gets, for the greatest total throughput",
    source="Synergy, section 4.1.1, program (1)-(5)",
    instance=SynergyAllocation,
    generate=generate,
    size="num_servers",
    sizes=(4, 16, 64),
    heuristics=named(
        fast.proportional,
        fast.greedy_marginal,
    ),
    from_trace=from_trace,
    symmetric=("n",),
    rescalings=(
        Rescaling(("server_cpus", "configs[0]"), 0),
        Rescaling(("server_memory", "configs[1]"), 0),
        Rescaling(("configs[2]", "fair_throughputs"), 1),
    ),
    enlarge=lambda instance: replace(instance, num_servers=instance.num_servers + 1),
    strategy=strategy,
)
