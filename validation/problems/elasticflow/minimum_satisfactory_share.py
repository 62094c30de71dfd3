"""Entry of elasticflow.minimum_satisfactory_share: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

from heuristics.elasticflow import minimum_satisfactory_share as fast
from instances.elasticflow.minimum_satisfactory_share import MinimumSatisfactoryShare, from_trace, generate
from instances.elasticflow.sharing import SlotPlan
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.kinds.promises import BreaksOnly, Holds
from validation.problems.elasticflow.sharing import WIDE, by_deadline, deadline_jobs, least_levels, one_more_gpu
from validation.testing import st

__all__ = ["ENTRY", "strategy"]

MISSES_DEADLINES = "earlier jobs take every GPU that does not slow them down, so later ones can miss their deadlines"


def strategy(**sizes: int) -> st.SearchStrategy[MinimumSatisfactoryShare]:
    """Return the strategy for sets of jobs, of which not all need have a plan."""
    return deadline_jobs(**sizes).map(lambda fields: MinimumSatisfactoryShare(**fields))


ALONE = BreaksOnly((), lambda instance: instance.num_jobs == 1, "with one job")


BY_DEADLINE = Holds(
    "each job in order of deadline has all GPUs that speed it up, until it is done",
    lambda instance, plan: plan.gpus.tolist() == by_deadline(instance, range(instance.num_jobs), elastic=False),
)
LEVELS = Holds(
    "each job is at the least level of Algorithm 1", lambda instance, plan: least_levels(instance, plan.gpus)
)
CLEARED = Holds(
    "each job is at the least level of Algorithm 1 with slots cleared before each",
    lambda instance, plan: least_levels(instance, plan.gpus, cleared=True),
)


def _no_more(instance: MinimumSatisfactoryShare, plan: SlotPlan) -> bool:
    first = fast.progressive_filling(instance)
    return first is None or instance.objective(plan) <= instance.objective(first)


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
        Heuristic(
            fast.local_search,
            declines=True,
            promises=(
                ALONE,
                BreaksOnly(
                    (),
                    lambda instance: fast.progressive_filling(instance) is not None,
                    "where progressive filling has a plan",
                ),
                Holds("no more GPU-slots than progressive filling", _no_more),
            ),
        ),
        Heuristic(fast.edf, infeasible_because=MISSES_DEADLINES, promises=(BreaksOnly(("work",)), ALONE, BY_DEADLINE)),
    ),
    from_trace=from_trace,
    symmetric=("n",),
    rescalings=(Rescaling(("iterations", "throughputs"), 0),),
    enlarge=one_more_gpu,
    strategy=strategy,
    wide=WIDE,
)
