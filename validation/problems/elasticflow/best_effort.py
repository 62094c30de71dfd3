"""Entry of elasticflow.best_effort: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from heuristics.elasticflow import best_effort as fast
from instances.elasticflow.best_effort import BestEffort, generate
from instances.elasticflow.sharing import SlotPlan
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.kinds.promises import BreaksOnly, Holds
from validation.problems.elasticflow.sharing import WIDE, by_deadline, deadline_jobs, one_more_gpu
from validation.testing import st
from validation.testing.arrays import booleans

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(draw: st.DrawFn, /, **sizes: int) -> BestEffort:
    """Draw sets of jobs with and without deadlines, of which not all need have a plan."""
    fields = draw(deadline_jobs(**sizes))
    return BestEffort(**fields, best_effort=draw(booleans(len(fields["iterations"]))))


Give = Callable[[BestEffort, int, dict[int, float]], dict[int, int]]
"""From the GPUs that are idle in a slot and what best-effort jobs have left to their GPUs."""


def _one_by_one(instance: BestEffort, free: int, left: dict[int, float]) -> dict[int, int]:
    """Give each GPU to the job that it speeds up most relative to one GPU, of several that with the least left."""
    held = dict.fromkeys(left, 0)
    for _ in range(free):
        gains = {}
        for job, share in held.items():
            curve = instance.throughputs[job].tolist()
            if share < instance.num_gpus and (gain := curve[share + 1] - curve[share]) > 0:
                one = curve[1]
                gains[job] = (-gain / one if one else -math.inf, left[job] / one if one else math.inf, job)
        if not gains:
            break
        held[min(gains, key=lambda job: gains[job])] += 1
    return held


def _least_left_first(instance: BestEffort, free: int, left: dict[int, float]) -> dict[int, int]:
    """Give all GPUs that make it faster to the job that is done soonest on all GPUs, then to the next."""
    held = {}

    def soonest(job: int) -> float:
        fastest = float(instance.throughputs[job].max())
        return left[job] / fastest if fastest else math.inf

    for job in sorted(left, key=soonest):
        curve = instance.throughputs[job, : free + 1].tolist()
        held[job] = curve.index(max(curve))
        free -= held[job]
    return held


def _slot_by_slot(give: Give) -> tuple[BreaksOnly, Holds]:
    """Return the promises that what Algorithm 1 leaves is given so in each slot, wherever that is a plan."""

    def planned(instance: BestEffort) -> list[list[int]] | None:
        due = np.flatnonzero(~instance.best_effort).tolist()
        gpus = np.array(by_deadline(instance, due, elastic=True)).reshape(instance.num_jobs, instance.horizon)
        needs = (instance.iterations * (1 - 1e-9)).tolist()
        left = {job: needs[job] for job in np.flatnonzero(instance.best_effort).tolist()}
        for slot in range(instance.horizon):
            waiting = {job: more for job, more in left.items() if more > 0 and instance.deadlines[job] > slot}
            for job, share in give(instance, instance.num_gpus - int(gpus[:, slot].sum()), waiting).items():
                gpus[job, slot] = share
                left[job] -= float(instance.throughputs[job, share])
        done = [
            sum(float(curve[count]) for count in row) >= need
            for curve, row, need in zip(instance.throughputs, gpus, needs, strict=True)
        ]
        return gpus.tolist() if all(done) else None

    return (
        BreaksOnly((), lambda instance: planned(instance) is not None, "where all are done in the slots planned"),
        Holds("idle GPUs are given slot by slot", lambda instance, plan: plan.gpus.tolist() == planned(instance)),
    )


def _no_worse(instance: BestEffort, plan: SlotPlan) -> bool:
    first = fast.minimum_shares_first(instance)
    return first is None or instance.objective(plan) <= instance.objective(first)


ENTRY = Entry(
    title="How soon jobs without deadlines finish beside jobs that must meet theirs",
    source="ElasticFlow, section 4.4",
    instance=BestEffort,
    generate=generate,
    size="num_jobs",
    sizes=(4, 6, 8),
    heuristics=named(
        Heuristic(fast.minimum_shares_first, declines=True, promises=_slot_by_slot(_one_by_one)),
        Heuristic(fast.shortest_first, declines=True, promises=_slot_by_slot(_least_left_first)),
        Heuristic(
            fast.local_search,
            declines=True,
            promises=(
                BreaksOnly(
                    (),
                    lambda instance: fast.minimum_shares_first(instance) is not None,
                    "where minimum shares first has a plan",
                ),
                Holds("no later on average than minimum shares first", _no_worse),
            ),
        ),
    ),
    symmetric=("n",),
    rescalings=(Rescaling(("iterations", "throughputs"), 0),),
    enlarge=one_more_gpu,
    strategy=strategy,
    wide=WIDE,
)
