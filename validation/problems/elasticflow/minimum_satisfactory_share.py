"""elasticflow.minimum_satisfactory_share: what is promised of its heuristics, and small instances to test them on."""

from __future__ import annotations

from hypothesis import strategies as st

from heuristics.elasticflow import minimum_satisfactory_share as fast
from instances.elasticflow.minimum_satisfactory_share import MinimumSatisfactoryShare, from_trace, generate
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.problems.elasticflow.sharing import deadline_jobs, one_more_gpu

__all__ = ["ENTRY", "strategy"]

MISSES_DEADLINES = "earlier jobs take every GPU that does not slow them down, so later ones can miss their deadlines"


def strategy(**sizes: int) -> st.SearchStrategy[MinimumSatisfactoryShare]:
    """Sets of jobs, of which not all need have a plan."""
    return deadline_jobs(**sizes).map(lambda fields: MinimumSatisfactoryShare(**fields))


ENTRY = Entry(
    title="How many GPUs jobs hold in each slot, meeting their deadlines at the least GPU time",
    source="ElasticFlow, section 4.1, (2)-(4) and Algorithm 1",
    instance=MinimumSatisfactoryShare,
    generate=generate,
    size="num_jobs",
    sizes=(4, 8, 12),
    heuristics=named(
        Heuristic(fast.progressive_filling, declines=True),
        Heuristic(fast.progressive_filling_cleared, declines=True),
        Heuristic(fast.edf, infeasible_because=MISSES_DEADLINES),
    ),
    from_trace=from_trace,
    symmetric=("n",),
    rescalings=(Rescaling(("iterations", "throughputs"), 0),),
    enlarge=one_more_gpu,
    strategy=strategy,
)
