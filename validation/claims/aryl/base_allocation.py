"""Claims of Aryl (EuroSys'23 as Lyra) about starting waiting jobs (section 5.2)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial

import numpy as np

from heuristics.aryl.base_allocation import shortest_job_first
from instances.aryl.base_allocation import BaseAllocation, BaseAllocationPlan
from instances.schema import FloatArray
from validation.claims.claim import Claim, Reading
from validation.claims.plans import OPTIMAL, better_than, optimal_plan, plans_of
from validation.claims.ties import renumbered
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


def _ways(instance: BaseAllocation) -> list[tuple[BaseAllocation, BaseAllocationPlan]]:
    """Return the plans of the shortest job first for every way to break ties, each of the jobs in another order.

    A job that is started leaves the queue, so that an order of the jobs stands for any decisions made one by one.
    """
    found = []
    for each in renumbered(instance, instance.running_times):
        plan = shortest_job_first(each)
        assert plan is not None
        found.append((each, plan))
    return found


def _completes_later(instance: BaseAllocation) -> str | None:
    """Describe how another plan completes jobs earlier on average than the shortest job first, however ties go."""
    each, plan = min(_ways(instance), key=lambda way: way[0].objective(way[1]))
    value = each.objective(plan)
    if (least := better_than(instance, value)) is None:
        return None
    return (
        f"at best it starts jobs of {_list(each.running_times)} s at {_list(plan.starts)} s and completes them in "
        f"{value:g} s on average, starts at {_list(optimal_plan(each).starts)} s take {least:g} s"
    )


def _launches_fewer(instance: BaseAllocation) -> str | None:
    """Describe how it starts fewer jobs at once than fit, however ties go."""
    launched = max(np.count_nonzero(plan.starts == 0) for _, plan in _ways(instance))
    # Of the smallest jobs, as many fit as of any.
    most = np.count_nonzero(np.cumsum(np.sort(instance.gpu_demands)) <= instance.capacity)
    return f"it starts {launched} of the jobs at once, {most} fit" if launched < most else None


def _leaves_room(instance: BaseAllocation) -> str | None:
    """Describe how, for some way to break ties, a job waits that fits."""
    for each, plan in _ways(instance):
        waits = plan.starts > 0
        left = each.capacity - int(each.gpu_demands[~waits].sum())
        fits = np.flatnonzero(waits & (each.gpu_demands <= left))
        if fits.size:
            return f"{left} GPUs are left, and job {fits[0]} waits for {each.gpu_demands[fits[0]]}"
    return None


def _list(times: FloatArray) -> str:
    return listed(f"{time:g}" for time in times.tolist())


def _that_fit(instance: BaseAllocation) -> bool:
    """Return whether all jobs have time left to run, and none needs more GPUs than there are."""
    return bool((instance.running_times > 0).all() and (instance.gpu_demands <= instance.capacity).all())


def _of_one_demand(instance: BaseAllocation) -> bool:
    """Return whether all jobs have time left to run and need equally many GPUs, no more than there are."""
    return _that_fit(instance) and len(set(instance.gpu_demands.tolist())) == 1


_claim = partial(Claim, exhaustive=True, relaxed="", assumes=_that_fit, ties="every way")

CLAIMS: list[Claim] = [
    _claim(
        name="phase_one_order",
        source="Aryl, sections 1 and 5.2",
        statement="With demands fixed and running times known, phase one, which asks for the least average completion "
        "time, can be solved by shortest job first.",
        reading="where all jobs need equally many GPUs.",
        by="the library: the paper does not ask for equal demands",
        instances=lambda rng: _queues(4, 4, 3, equal=True),
        breaks=_completes_later,
        scope="queues of 2 to 4 jobs of 1 to 3 s on up to 4 GPUs",
        assumptions="all jobs are there at once, demands fixed, times known, nothing preempted.",
        plans=plans_of("shortest_job_first", OPTIMAL),
        assumes=_of_one_demand,
        others=(
            Reading(
                "whatever GPUs they need.",
                _completes_later,
                lambda rng: _queues(3, 4, 3),
                scope="queues of 2 to 3 jobs of 1 to 3 s on up to 4 GPUs",
                assumes=_that_fit,
                by="section 1 at most, which has the policy solve the phase; section 5.2 calls it sensible and common, "
                "and neither says that it is optimal",
            ),
        ),
    ),
    _claim(
        name="phase_one_most_jobs",
        source="Aryl, section 1 and Appendix F",
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
