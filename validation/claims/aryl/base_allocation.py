"""Claims of Aryl (EuroSys'23 as Lyra) about starting waiting jobs (section 5.2)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial

import numpy as np

from heuristics.aryl.base_allocation import shortest_job_first
from instances.aryl.base_allocation import BaseAllocation, BaseAllocationPlan
from validation.claims.claim import Claim, Reading
from validation.claims.plans import OPTIMAL, better_than, optimal_plan, plans_of
from validation.claims.words import listed

__all__ = ["CLAIMS"]


def _queues(most_jobs: int, most_gpus: int, most_seconds: int, *, equal: bool = False) -> Iterator[BaseAllocation]:
    """Yield all queues of jobs on up to so many GPUs, which none of them needs more than; ``equal``: of one demand."""
    for num_jobs in range(2, most_jobs + 1):
        for capacity in range(1, most_gpus + 1):
            kinds = itertools.product(range(1, capacity + 1), range(1, most_seconds + 1))
            for jobs in itertools.combinations_with_replacement(kinds, num_jobs):
                gpus, seconds = np.array(jobs).T
                if not equal or len(set(gpus.tolist())) == 1:
                    yield BaseAllocation(capacity=capacity, gpu_demands=gpus, running_times=seconds.astype(float))


def _shortest_first(instance: BaseAllocation) -> BaseAllocationPlan:
    plan = shortest_job_first(instance)
    assert plan is not None
    return plan


def _completes_later(instance: BaseAllocation) -> str | None:
    """Describe how another plan completes jobs earlier on average than the shortest job first."""
    plan = _shortest_first(instance)
    value = instance.objective(plan)
    if (least := better_than(instance, value)) is None:
        return None
    return (
        f"it starts the jobs at {_times(plan)} s and completes them in {value:g} s on average, starts at "
        f"{_times(optimal_plan(instance))} s take {least:g} s"
    )


def _launches_fewer(instance: BaseAllocation) -> str | None:
    launched = np.count_nonzero(_shortest_first(instance).starts == 0)
    # Of the smallest jobs, as many fit as of any.
    most = np.count_nonzero(np.cumsum(np.sort(instance.gpu_demands)) <= instance.capacity)
    return f"it starts {launched} of the jobs at once, {most} fit" if launched < most else None


def _leaves_room(instance: BaseAllocation) -> str | None:
    waits = _shortest_first(instance).starts > 0
    left = instance.capacity - int(instance.gpu_demands[~waits].sum())
    fits = np.flatnonzero(waits & (instance.gpu_demands <= left))
    return f"{left} GPUs are left, and job {fits[0]} waits for {instance.gpu_demands[fits[0]]}" if fits.size else None


def _times(plan: BaseAllocationPlan) -> str:
    return listed(f"{start:g}" for start in plan.starts.tolist())


_claim = partial(Claim, exhaustive=True, relaxed="")

CLAIMS: list[Claim] = [
    _claim(
        name="phase_one_order",
        source="Aryl, section 5.2",
        statement="With demands fixed and running times known, phase one, which asks for the least average completion "
        "time, can be solved by shortest job first.",
        reading="where all jobs need equally many GPUs.",
        instances=lambda rng: _queues(4, 4, 3, equal=True),
        breaks=_completes_later,
        scope="queues of 2 to 4 jobs of 1 to 3 s on up to 4 GPUs",
        assumptions="all jobs are there at once, demands fixed, times known, nothing preempted. The paper calls the "
        "policy sensible and common, and does not say that it is optimal.",
        plans=plans_of("shortest_job_first", OPTIMAL),
        others=(Reading("whatever GPUs they need: 2 to 3 jobs.", _completes_later, lambda rng: _queues(3, 4, 3)),),
    ),
    _claim(
        name="phase_one_most_jobs",
        source="Aryl, section 1 and section 5.2",
        statement="Phase one launches as many jobs as possible.",
        reading="no job waits that would fit on the GPUs that are left.",
        instances=lambda rng: _queues(3, 4, 3),
        breaks=_leaves_room,
        scope="queues of 2 to 3 jobs of 1 to 3 s on up to 4 GPUs",
        assumptions="as section 5.2 has them: one epoch, base demands, known times. As many as possible is the "
        "paper's aim.",
        plans=plans_of("shortest_job_first", "smallest_job_first"),
        others=(Reading("no other choice of jobs that fit together has more of them.", _launches_fewer),),
    ),
]
