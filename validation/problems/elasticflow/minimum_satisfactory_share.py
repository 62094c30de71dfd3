"""Entry of elasticflow.minimum_satisfactory_share: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

import numpy as np

from heuristics.elasticflow import minimum_satisfactory_share as fast
from instances.elasticflow.minimum_satisfactory_share import MinimumSatisfactoryShare, from_trace, generate
from instances.elasticflow.sharing import SlotPlan
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.kinds.promises import BreaksOnly, Holds
from validation.problems.elasticflow.sharing import WIDE, deadline_jobs, least_levels, one_more_gpu
from validation.testing import st

__all__ = ["ENTRY", "strategy"]

MISSES_DEADLINES = "earlier jobs take every GPU that does not slow them down, so later ones can miss their deadlines"


def strategy(**sizes: int) -> st.SearchStrategy[MinimumSatisfactoryShare]:
    """Return the strategy for sets of jobs, of which not all need have a plan."""
    return deadline_jobs(**sizes).map(lambda fields: MinimumSatisfactoryShare(**fields))


ALONE = BreaksOnly((), lambda instance: instance.num_jobs == 1, "with one job")


def _ends_when_done(instance: MinimumSatisfactoryShare, plan: SlotPlan) -> bool:
    """Return whether no job holds GPUs once its iterations are done."""
    for job, held in enumerate(plan.gpus):
        before = np.concatenate([[0.0], np.cumsum(instance.throughputs[job, held])[:-1]])
        if held[before >= instance.iterations[job]].any():
            return False
    return True


DONE = Holds("no job runs on when it is done", _ends_when_done)
LEVELS = Holds(
    "each job is at the least level of Algorithm 1", lambda instance, plan: least_levels(instance, plan.gpus)
)
CLEARED = Holds(
    "each job is at the least level of Algorithm 1 with slots cleared before each",
    lambda instance, plan: least_levels(instance, plan.gpus, cleared=True),
)


ENTRY = Entry(
    title="How many GPUs jobs hold in each slot, meeting their deadlines at the least GPU time",
    source="ElasticFlow, section 4.1, (2)-(4) and Algorithm 1",
    instance=MinimumSatisfactoryShare,
    generate=generate,
    size="num_jobs",
    sizes=(4, 8, 12),
    heuristics=named(
        Heuristic(fast.progressive_filling, declines=True, promises=(ALONE, LEVELS)),
        Heuristic(fast.progressive_filling_cleared, declines=True, promises=(ALONE, CLEARED)),
        Heuristic(fast.edf, infeasible_because=MISSES_DEADLINES, promises=(BreaksOnly(("work",)), ALONE, DONE)),
    ),
    from_trace=from_trace,
    symmetric=("n",),
    rescalings=(Rescaling(("iterations", "throughputs"), 0),),
    enlarge=one_more_gpu,
    strategy=strategy,
    wide=WIDE,
)
