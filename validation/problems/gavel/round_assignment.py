"""gavel.round_assignment: what is promised of its heuristics, and small instances to test them on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from heuristics.gavel import round_assignment as fast
from instances.gavel.round_assignment import RoundAssignment, RoundAssignmentPlan, generate
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.problems.gavel.sharing import WIDE, cluster
from validation.testing.arrays import quarters
from validation.testing.promises import BreaksOnly, Holds, NeverWorseThan, Relabelled, optimum

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(
    draw: st.DrawFn, *, fields: st.SearchStrategy[dict[str, Any]] | None = None, max_priority: int = 4
) -> RoundAssignment:
    """A round with priorities of 0 to 4 in quarters, ties and zeros among them."""
    drawn = draw(cluster() if fields is None else fields)
    rows = len(drawn["scale_factors"]) + len(drawn["pairs"])
    shared = {name: drawn[name] for name in ("num_workers", "pools", "scale_factors", "pairs")}
    return RoundAssignment(**shared, priorities=draw(quarters((rows, drawn["throughputs"].shape[1]), 0, max_priority)))


def _one_pool(instance: RoundAssignment) -> bool:
    return len(instance.num_workers) == 1


def _by_priority(instance: RoundAssignment, plan: RoundAssignmentPlan) -> bool:
    """Whether each entry of some priority that is not chosen lacks jobs or workers to entries of no lower priority."""
    chosen = [(int(row), int(kind)) for row, kind in np.argwhere(plan.chosen)]
    for row, kind in np.argwhere((instance.priorities > 0) & ~plan.chosen):
        before = [entry for entry in chosen if instance.priorities[entry] >= instance.priorities[row, kind]]
        running = {job for other, _ in before for job in instance.members[other]}
        pool = instance.pools[kind]
        taken = sum(int(instance.row_scale_factors[other]) for other, on in before if instance.pools[on] == pool)
        room = instance.row_scale_factors[row] <= instance.num_workers[pool] - taken
        if room and running.isdisjoint(instance.members[row]):
            return False
    return True


ENTRY = Entry(
    title="Which jobs run in the next round, by priority",
    source="Gavel, section 5 and Algorithm 1",
    instance=RoundAssignment,
    generate=generate,
    size="num_jobs",
    sizes=(8, 32, 128),
    heuristics=named(
        Heuristic(
            fast.greedy_priority,
            promises=(Relabelled(ties=False), Holds("no entry waits for one of lower priority", _by_priority)),
        ),
        Heuristic(
            fast.matching_round,
            declines=True,
            promises=(
                BreaksOnly((), _one_pool, "with one pool"),
                NeverWorseThan("greedy_priority", _one_pool, "with one pool"),
                optimum(
                    lambda instance: _one_pool(instance) and bool((instance.scale_factors == 1).all()),
                    "with one pool and jobs of one worker",
                ),
            ),
        ),
    ),
    symmetric=("n", "k", "p"),
    rescalings=(Rescaling(("priorities",), 1),),
    enlarge=lambda instance: replace(instance, num_workers=instance.num_workers + 1),
    strategy=strategy,
    wide=WIDE,
)
