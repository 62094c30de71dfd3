"""Entry of elasticflow.allocation: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

import numpy as np

from heuristics.elasticflow import allocation as fast
from instances.elasticflow.allocation import ElasticFlowAllocation, from_trace, generate
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.kinds.promises import BreaksOnly, Holds, NeverWorseThan
from validation.problems.elasticflow.sharing import WIDE, as_printed, deadline_jobs, most_saving_first
from validation.testing import st
from validation.testing.arrays import integers

__all__ = ["ENTRY", "strategy"]

LEAVES_GPUS_IDLE = (
    "as printed, only jobs that then finish earlier get another GPU, so that useful ones can stay idle, and their "
    "other slots are filled without regard to jobs of later deadlines, so that a slot can hold too many"
)


@st.composite
def strategy(draw: st.DrawFn, /, **sizes: int) -> ElasticFlowAllocation:
    """Draw sets of jobs, some without a plan, or with as much to do as a plan that leaves few GPUs idle does."""
    fields = draw(deadline_jobs(**sizes))
    if draw(st.booleans()):
        deadlines, curves, most = fields["deadlines"], fields["throughputs"], fields["num_gpus"]
        slots = np.arange(deadlines.max())
        wanted = np.where(slots < deadlines[:, None], draw(integers((len(deadlines), len(slots)), 0, 3)), 0)
        gpus = most * wanted // np.maximum(wanted.sum(axis=0), 1)
        fields["iterations"] = np.take_along_axis(curves, gpus, axis=1).sum(axis=1)
    return ElasticFlowAllocation(**fields)


ALONE = BreaksOnly((), lambda instance: instance.num_jobs == 1, "with one job")


PRINTED = Holds("the GPUs are those of Algorithm 2", lambda instance, plan: as_printed(instance, plan.gpus))
SAVING = Holds(
    "where later slots have room for all, each idle GPU goes to the job that saves the most GPU time",
    lambda instance, plan: most_saving_first(instance, plan.gpus),
)


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
            promises=(BreaksOnly(("no_useful_idle_gpu",)), PRINTED),
        ),
        Heuristic(fast.greedy_marginal_return_repaired, declines=True, promises=(ALONE, SAVING)),
        Heuristic(
            fast.local_search, declines=True, promises=(ALONE, NeverWorseThan("greedy_marginal_return_repaired"))
        ),
    ),
    from_trace=from_trace,
    symmetric=("n",),
    rescalings=(Rescaling(("iterations", "throughputs"), 0),),
    strategy=strategy,
    wide=WIDE,
)
