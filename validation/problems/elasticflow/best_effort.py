"""Entry of elasticflow.best_effort: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

from heuristics.elasticflow import best_effort as fast
from instances.elasticflow.best_effort import BestEffort, generate
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.problems.elasticflow.sharing import WIDE, deadline_jobs, one_more_gpu
from validation.testing import st
from validation.testing.arrays import booleans

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(draw: st.DrawFn, /, **sizes: int) -> BestEffort:
    """Draw sets of jobs with and without deadlines, of which not all need have a plan."""
    fields = draw(deadline_jobs(**sizes))
    return BestEffort(**fields, best_effort=draw(booleans(len(fields["iterations"]))))


ENTRY = Entry(
    title="How soon jobs without deadlines finish beside jobs that must meet theirs",
    source="ElasticFlow, section 4.4",
    instance=BestEffort,
    generate=generate,
    size="num_jobs",
    sizes=(4, 6, 8),
    heuristics=named(
        Heuristic(fast.minimum_shares_first, declines=True),
        Heuristic(fast.shortest_first, declines=True),
    ),
    symmetric=("n",),
    rescalings=(Rescaling(("iterations", "throughputs"), 0),),
    enlarge=one_more_gpu,
    strategy=strategy,
    wide=WIDE,
)
