"""Entry of gavel.makespan: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from heuristics.gavel import makespan as fast
from heuristics.gavel.levels import EPSILON, whole
from instances.gavel import traces
from instances.gavel.makespan import Makespan, from_trace, generate
from instances.gavel.sharing import Allocation
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.kinds.promises import Holds, NeverWorseThan, Ratio, Relabelled
from validation.problems.gavel.peers import pops
from validation.problems.gavel.sharing import WIDE, cluster, in_mix, of_all_policies
from validation.testing import st
from validation.testing.arrays import whole_floats

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(draw: st.DrawFn, *, fields: st.SearchStrategy[dict[str, Any]] | None = None) -> Makespan:
    """Draw clusters for makespan, jobs with up to 60 steps left."""
    drawn = draw(cluster() if fields is None else fields)
    return Makespan(**drawn, steps=draw(whole_floats(len(drawn["throughputs"]), 0, 60)))


def _times(instance: Makespan) -> list[list[float]]:
    """Return the seconds that each job with steps left would take alone on each type; infinite where it cannot run."""
    runs = instance.fits[: instance.num_jobs] & (instance.throughputs > 0)
    return [
        [steps / rate if able else np.inf for rate, able in zip(rates, row, strict=True)]
        for steps, rates, row in zip(instance.steps, instance.throughputs, runs, strict=True)
        if steps > 0 and row.any()
    ]


def _least_total_completion(instance: Makespan, plan: Allocation) -> bool:
    """Return whether the jobs' types are those of a schedule of the least sum of completion times."""
    alone = np.argwhere(plan.time_fractions > 0)
    if instance.num_types ** len(alone) > MOST_CHOICES:
        return True
    times = _times(instance)

    def total(kinds: tuple[int, ...]) -> float:
        # Of jobs on one pool the shortest go first, as many at once as there are workers.
        found = 0.0
        for pool, workers in enumerate(instance.num_workers.tolist()):
            there = [row[kind] for row, kind in zip(times, kinds, strict=True) if instance.pools[kind] == pool]
            found += sum(
                time * (behind // workers + 1) for behind, time in enumerate(sorted(there, reverse=True)) if workers
            )
        return found

    able = [[kind for kind, time in enumerate(row) if time < np.inf] for row in times]
    least = min(total(kinds) for kinds in product(*able))
    return total(tuple(alone[:, 1].tolist())) <= least * (1 + 1e-9)


def _in_turn(instance: Makespan, plan: Allocation) -> bool:
    """Return whether each job in turn has had its time where workers are free first, not before the one ahead of it."""
    free = [[0.0] * workers for workers in instance.num_workers.tolist()]
    had = np.zeros_like(plan.time_fractions)
    jobs = [
        job
        for job in range(instance.num_jobs)
        if instance.steps[job] > 0 and (instance.fits[job] & (instance.throughputs[job] > 0)).any()
    ]
    start = 0.0
    for job, times in zip(jobs, _times(instance), strict=True):
        width = int(instance.scale_factors[job])
        ready = [
            max(start, free[pool][width - 1]) if time < np.inf else np.inf
            for time, pool in zip(times, instance.pools.tolist(), strict=True)
        ]
        start = min(ready)
        kind = ready.index(start)
        pool = free[instance.pools[kind]]
        pool[:width] = [start + times[kind]] * width
        pool.sort()
        had[job, kind] = times[kind]
    end = max((time for pool in free for time in pool), default=0.0)
    return bool(np.allclose(plan.time_fractions * end, had, rtol=1e-9, atol=0))


SAME_FINISH = in_mix(
    "all jobs finish together, as soon as fits",
    lambda instance, plan, mix: instance.steps / np.maximum((instance.pool_throughputs * mix).sum(axis=1), 1e-300),
)
MOST_CHOICES = 5000
"""Choices of types for the jobs among which the best is looked for one by one."""


ENTRY = Entry(
    title="Time on worker types, so that the last job finishes as early as possible",
    source="Gavel, section 4.2",
    instance=Makespan,
    generate=generate,
    size="num_jobs",
    sizes=(8, 32, 128),
    heuristics=named(
        Heuristic(
            fast.same_finish,
            promises=(SAME_FINISH, Relabelled(ties=False), NeverWorseThan("isolated"), NeverWorseThan("equal_share")),
        ),
        Heuristic(fast.agnostic_fifo, promises=(Holds("jobs in turn run where workers are free first", _in_turn),)),
        Heuristic(
            fast.allox,
            declines=True,
            promises=(Holds("the types are those of the least sum of completion times", _least_total_completion),),
        ),
        *of_all_policies(fast),
        Heuristic(
            fast.interior_point,
            promises=(NeverWorseThan("same_finish"), Ratio(1 / (1 - EPSILON), whole, "where no pair is left out")),
        ),
        *pops(),
    ),
    from_trace=from_trace,
    snapshot=partial(traces.from_trace, Makespan.problem),
    symmetric=("n", "k", "p", "q"),
    rescalings=(Rescaling(("throughputs", "pair_throughputs"), -1), Rescaling(("steps",), 1)),
    enlarge=lambda instance: replace(instance, num_workers=instance.num_workers + 1),
    strategy=strategy,
    wide=WIDE,
)
