"""Claims of Aryl (EuroSys'23 as Lyra) about starting waiting jobs (section 5.2).

Optima are found by trying everything: the instances are small, and what judges the heuristics
here shares nothing with the models of :mod:`formulations`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from heuristics.aryl.base_allocation import shortest_job_first
from instances.aryl.base_allocation import BaseAllocation, BaseAllocationPlan
from validation.claims.plans import OPTIMAL, plans_of
from validation.claims.words import listed
from validation.kernel.gaps import beats
from validation.kinds.claims import Claim, Reading

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


def _earliest(instance: BaseAllocation, order: tuple[int, ...]) -> list[int]:
    """Return the starts of jobs of whole seconds: in order, each at the first second with room for it throughout."""
    gpus, seconds = instance.gpu_demands.tolist(), [int(time) for time in instance.running_times]
    free = [instance.capacity] * sum(seconds)
    starts = [0] * instance.num_jobs
    for job in order:
        while any(left < gpus[job] for left in free[starts[job] : starts[job] + seconds[job]]):
            starts[job] += 1
        for second in range(starts[job], starts[job] + seconds[job]):
            free[second] -= gpus[job]
    return starts


def _completes_later(instance: BaseAllocation) -> str:
    """Describe how another plan completes jobs earlier on average than the shortest job first."""
    plan = shortest_job_first(instance)
    assert plan is not None
    orders = itertools.permutations(range(instance.num_jobs))
    best = min((_earliest(instance, order) for order in orders), key=sum)
    other = BaseAllocationPlan(starts=np.array(best, float))
    value, least = instance.objective(plan), instance.objective(other)
    if not beats("min", least, value):
        return ""
    return (
        f"it starts the jobs at {_times(plan)} s and completes them in {value:g} s on average, starts at "
        f"{_times(other)} s take {least:g} s"
    )


def _launched(instance: BaseAllocation) -> set[int]:
    """Return the jobs that the shortest job first starts at once."""
    plan = shortest_job_first(instance)
    assert plan is not None
    return set(np.flatnonzero(plan.starts == 0).tolist())


def _launches_fewer(instance: BaseAllocation) -> str:
    launched = _launched(instance)
    most, left = 0, instance.capacity
    for gpus in sorted(instance.gpu_demands.tolist()):
        left -= gpus
        most += left >= 0
    if len(launched) == most:
        return ""
    return f"it starts {len(launched)} of the jobs at once, {most} fit"


def _leaves_room(instance: BaseAllocation) -> str:
    launched = _launched(instance)
    left = instance.capacity - int(instance.gpu_demands[sorted(launched)].sum())
    for job in set(range(instance.num_jobs)) - launched:
        if instance.gpu_demands[job] <= left:
            return f"{left} GPUs are left, and job {job} waits for {instance.gpu_demands[job]}"
    return ""


def _times(plan: BaseAllocationPlan) -> str:
    return listed(f"{start:g}" for start in plan.starts.tolist())


CLAIMS: list[Claim] = [
    Claim(
        name="phase_one_order",
        source="Aryl, section 5.2",
        statement="With demands fixed and running times known, phase one, which asks for the least average completion "
        "time, can be solved by shortest job first.",
        reading="where all jobs need equally many GPUs.",
        instances=lambda rng: _queues(4, 4, 3, equal=True),
        breaks=_completes_later,
        scope="queues of 2 to 4 jobs of 1 to 3 s on up to 4 GPUs",
        exhaustive=True,
        assumptions="all jobs are there at once, demands fixed, times known, nothing preempted. The paper calls the "
        "policy sensible and common, and does not say that it is optimal.",
        relaxed="",
        plans=plans_of("shortest_job_first", OPTIMAL),
        others=(
            Reading(
                "whatever GPUs they need: 2 to 3 jobs.",
                breaks=_completes_later,
                instances=lambda rng: _queues(3, 4, 3),
            ),
        ),
    ),
    Claim(
        name="phase_one_most_jobs",
        source="Aryl, section 1 and section 5.2",
        statement="Phase one launches as many jobs as possible.",
        reading="no job waits that would fit on the GPUs that are left.",
        instances=lambda rng: _queues(3, 4, 3),
        breaks=_leaves_room,
        scope="queues of 2 to 3 jobs of 1 to 3 s on up to 4 GPUs",
        exhaustive=True,
        assumptions="as section 5.2 has them: one epoch, base demands, known times. As many as possible is the "
        "paper's aim.",
        relaxed="",
        plans=plans_of("shortest_job_first", "smallest_job_first"),
        others=(Reading("no other choice of jobs that fit together has more of them.", _launches_fewer),),
    ),
]
