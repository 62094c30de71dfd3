"""elasticflow.allocation: what is promised of its heuristics, and small instances to test them on."""

from __future__ import annotations

from hypothesis import strategies as st

from heuristics.elasticflow import allocation as fast
from instances.elasticflow.allocation import ElasticFlowAllocation, from_trace, generate
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.problems.elasticflow.sharing import WIDE, deadline_jobs
from validation.testing.promises import BreaksOnly

__all__ = ["ENTRY", "strategy"]

LEAVES_GPUS_IDLE = (
    "as printed, only jobs that then finish earlier get another GPU, so that useful ones can stay idle, and their "
    "other slots are filled without regard to jobs of later deadlines, so that a slot can hold too many"
)


def strategy(**sizes: int) -> st.SearchStrategy[ElasticFlowAllocation]:
    """Sets of jobs, of which not all need have a plan."""
    return deadline_jobs(**sizes).map(lambda fields: ElasticFlowAllocation(**fields))


ALONE = BreaksOnly((), lambda instance: instance.num_jobs == 1, "with one job")


ENTRY = Entry(
    title="How many GPUs each job gets now, with none idle that would help",
    source="ElasticFlow, section 4.2, (4)-(7) and Algorithm 2",
    instance=ElasticFlowAllocation,
    generate=generate,
    size="num_jobs",
    sizes=(4, 8, 12),
    heuristics=named(
        Heuristic(
            fast.greedy_marginal_return,
            declines=True,
            infeasible_because=LEAVES_GPUS_IDLE,
            promises=(BreaksOnly(("no_useful_idle_gpu",)),),
        ),
        Heuristic(fast.greedy_marginal_return_repaired, declines=True, promises=(ALONE,)),
    ),
    from_trace=from_trace,
    symmetric=("n",),
    rescalings=(Rescaling(("iterations", "throughputs"), 0),),
    strategy=strategy,
    wide=WIDE,
)
