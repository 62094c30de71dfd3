"""Entry of aryl.elastic_allocation: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from heuristics.aryl import elastic_allocation as fast
from instances.aryl.elastic_allocation import ElasticAllocation, ElasticAllocationPlan, from_trace, generate
from instances.base import agree
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.kinds.promises import Holds, Monotone, NeverWorseThan, Relabelled, optimum
from validation.testing import st
from validation.testing.arrays import counts, integers, whole_floats

__all__ = ["ENTRY", "strategy"]

MOST_IN_TABLES = 64
"""Extra workers of all jobs up to which their running times are drawn one by one."""
MOST_LOOKED_AT = 30_000
"""GPUs times extra workers up to which the best plan is looked for in Python."""


@st.composite
def strategy(
    draw: st.DrawFn, *, max_jobs: int = 4, max_extra: int = 4, max_gpus: int = 4, max_seconds: int = 60
) -> ElasticAllocation:
    """Draw elastic allocations under linear scaling, or with any tables of running times."""
    n = draw(st.integers(1, max_jobs))
    min_workers = draw(integers(n, 1, 4))
    extra = draw(integers(n, 0, max_extra))
    gpus_per_worker = draw(integers(n, 1, max_gpus))
    tables = None
    # Long tables would take long to draw.
    if extra.sum() <= MOST_IN_TABLES and draw(st.booleans()):
        tables = tuple(draw(whole_floats(int(most) + 1, 1, max_seconds)) for most in extra)
        fastest = np.array([table[-1] for table in tables])
    else:
        fastest = draw(whole_floats(n, 1, max_seconds))
    return ElasticAllocation(
        capacity=draw(counts(0, int(extra @ gpus_per_worker) + 1)),
        min_workers=min_workers,
        max_workers=min_workers + extra,
        gpus_per_worker=gpus_per_worker,
        min_running_times=fastest,
        running_times=tables,
    )


def _concave_on_single_gpus(instance: ElasticAllocation) -> bool:
    """Return whether workers hold one GPU each, and each further one saves no more time than the one before."""
    tables = instance.reductions
    falling = all((np.diff(table, 2) <= 0).all() and (np.diff(table) >= 0).all() for table in tables)
    return falling and bool((instance.gpus_per_worker == 1).all())


def _hull(table: list[float]) -> list[int]:
    """Return the corners of a table's upper hull up to its maximum: the steepest way on, the longest of these."""
    corners = [0]
    while True:
        here = corners[-1]
        ways = [
            ((table[there] - table[here]) / (there - here), there)
            for there in range(here + 1, len(table))
            if table[there] > table[here]
        ]
        if not ways:
            return corners
        corners.append(max(ways)[1])


def _within_a_step(instance: ElasticAllocation, plan: ElasticAllocationPlan) -> bool:
    """Return whether the plan is within one step of the hulls of the linear relaxation, and no further step fits."""
    left = instance.capacity - int(plan.extra_workers @ instance.gpus_per_worker)
    steps = []
    for job, table in enumerate(instance.reductions):
        corners, gpus = _hull(table.tolist()), int(instance.gpus_per_worker[job])
        steps += [((b - a) * gpus, float(table[b] - table[a])) for a, b in pairwise(corners)]
        held = int(plan.extra_workers[job])
        if held in corners[:-1] and (corners[corners.index(held) + 1] - held) * gpus <= left:
            return False
    bound, room = 0.0, float(instance.capacity)
    for gpus, gain in sorted(steps, key=lambda step: -step[1] / step[0]):
        bound += gain * min(1.0, room / gpus)
        room = max(0.0, room - gpus)
    lack = bound - instance.objective(plan)
    return lack <= max((gain for _, gain in steps), default=0.0) + 1e-6 * bound


def _enough(instance: ElasticAllocation) -> bool:
    return bool(instance.capacity >= instance.max_extra @ instance.gpus_per_worker)


def _enough_for_base(instance: ElasticAllocation) -> bool:
    return bool(instance.capacity >= (instance.max_extra + instance.min_workers) @ instance.gpus_per_worker)


def _fits_with_base(instance: ElasticAllocation, plan: ElasticAllocationPlan) -> bool:
    """Return whether the GPUs suffice when jobs that grow pay for their base workers as well."""
    grown = plan.extra_workers > 0
    workers = (plan.extra_workers + instance.min_workers)[grown]
    return bool(workers @ instance.gpus_per_worker[grown] <= instance.capacity)


def _best_with_base(instance: ElasticAllocation, plan: ElasticAllocationPlan) -> bool:
    """Return whether the plan is the best of all whose jobs that grow pay for their base workers as well."""
    if instance.capacity * instance.max_extra.sum() > MOST_LOOKED_AT:
        return True
    best = [0.0] * (instance.capacity + 1)
    for job, table in enumerate(instance.reductions):
        gpus, base = int(instance.gpus_per_worker[job]), int(instance.min_workers[job])
        needs = [0, *((base + extra) * gpus for extra in range(1, len(table)))]
        best = [
            max(best[room - need] + gain for need, gain in zip(needs, table.tolist(), strict=True) if need <= room)
            for room in range(len(best))
        ]
    return agree(instance.objective(plan), best[-1])


def _most_speed_first(instance: ElasticAllocation, plan: ElasticAllocationPlan) -> bool:
    """Return whether workers go one by one where they gain most speed for each GPU, relative to base workers."""
    extra, left = [0] * instance.num_jobs, instance.capacity
    tables = [instance.times(job).tolist() for job in range(instance.num_jobs)]
    while True:
        gains = {}
        for job, table in enumerate(tables):
            gpus = int(instance.gpus_per_worker[job])
            if extra[job] + 1 < len(table) and gpus <= left:
                now, then = (
                    table[0] / table[extra[job] + more] if table[extra[job] + more] else 1.0 for more in (0, 1)
                )
                # Equal gains tie whatever rounding they went through.
                gains[job] = float(f"{(then - now) / gpus:.12g}")
        if max(gains.values(), default=0.0) <= 0:
            return bool(plan.extra_workers.tolist() == extra)
        job = max(gains, key=lambda job: gains[job])
        extra[job] += 1
        left -= int(instance.gpus_per_worker[job])


def _in_order(instance: ElasticAllocation, plan: ElasticAllocationPlan) -> bool:
    """Return whether each job in order has all of its extra workers or as many as are left room for."""
    left = instance.capacity
    for extra, most, gpus in zip(plan.extra_workers, instance.max_extra, instance.gpus_per_worker, strict=True):
        if extra < most and left - extra * gpus >= gpus:
            return False
        left -= int(extra * gpus)
    return True


ENTRY = Entry(
    title="Which elastic jobs get the spare GPUs, reducing running time the most",
    source="Aryl, section 5.2 and Appendix D, Algorithm 2, lines 10 to 21",
    instance=ElasticAllocation,
    generate=generate,
    size="num_jobs",
    sizes=(10, 40, 160),
    heuristics=named(
        Heuristic(
            fast.dynamic_program,
            optimal=True,
            promises=(
                Monotone(),
                Relabelled(),
                NeverWorseThan("base_charged_again"),
                NeverWorseThan("marginal_greedy"),
                NeverWorseThan("afs"),
                NeverWorseThan("gandiva"),
            ),
        ),
        Heuristic(
            fast.base_charged_again,
            promises=(
                Monotone(),
                Relabelled(),
                Holds("base workers and extra ones of jobs that grow fit the capacity", _fits_with_base),
                optimum(_enough_for_base, "where there is enough for all, base workers twice"),
                Holds("no jobs would grow by more in all with their base workers", _best_with_base),
            ),
        ),
        Heuristic(
            fast.marginal_greedy,
            promises=(
                Monotone(),
                Relabelled(ties=False),
                Holds("at most a step is missing to the linear relaxation, and none fits any more", _within_a_step),
                optimum(_concave_on_single_gpus, "where workers hold one GPU and returns diminish"),
                optimum(_enough, "where there is enough for all"),
            ),
        ),
        Heuristic(
            fast.afs, promises=(Holds("each worker goes where it gains most speed for its GPUs", _most_speed_first),)
        ),
        Heuristic(fast.gandiva, promises=(Holds("the lowest jobs grow as far as there is room", _in_order),)),
    ),
    from_trace=from_trace,
    symmetric=("n",),
    rescalings=(Rescaling(("min_running_times", "running_times"), 1),),
    enlarge=lambda instance: replace(instance, capacity=instance.capacity + 1),
    strategy=strategy,
    wide={"max_jobs": 6, "max_extra": 300, "max_gpus": 8, "max_seconds": 10**6},
)
