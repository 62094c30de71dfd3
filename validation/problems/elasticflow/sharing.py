"""Small sets of jobs with deadlines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from instances.elasticflow.sharing import DeadlineJobs
from validation.testing import st
from validation.testing.arrays import counts, integers

__all__ = [
    "WIDE",
    "as_printed",
    "by_deadline",
    "deadline_jobs",
    "least_levels",
    "linear",
    "most_saving_first",
    "one_more_gpu",
]

WIDE = {"max_jobs": 5, "max_gpus": 64, "max_slots": 24}
"""Sizes beyond small ones."""

Jobs = TypeVar("Jobs", bound=DeadlineJobs[Any])


@st.composite
def deadline_jobs(draw: st.DrawFn, *, max_jobs: int = 3, max_gpus: int = 4, max_slots: int = 4) -> dict[str, Any]:
    """Draw the fields of jobs of any curves, concave or not, with nothing to do up to more than can be done."""
    n = draw(st.integers(1, max_jobs))
    num_gpus = draw(counts(1, max_gpus))
    kind = draw(st.sampled_from(("concave", "any", "linear")))
    if kind == "linear":
        rates = np.outer(draw(integers(n, 1, 4)), np.arange(1, num_gpus + 1))
    elif kind == "concave":
        steps = np.sort(draw(integers((n, num_gpus), 0, 4)), axis=1)[:, ::-1]
        rates = np.cumsum(steps, axis=1)
    else:
        rates = draw(integers((n, num_gpus), 0, 8))
    deadlines = draw(integers(n, 1, max_slots))
    # Up to what half of the GPUs could do in time, and a little more.
    most = deadlines * rates[:, (num_gpus - 1) // 2] + 1
    return {
        "num_gpus": num_gpus,
        "iterations": np.array([draw(counts(0, int(m))) for m in most], float),
        "deadlines": deadlines,
        "throughputs": np.concatenate([np.zeros((n, 1)), rates], axis=1),
    }


def one_more_gpu(instance: Jobs) -> Jobs:
    """Return the instance with a GPU more, which makes no job faster than all GPUs did before."""
    curves = np.concatenate([instance.throughputs, instance.throughputs[:, -1:]], axis=1)
    return replace(instance, num_gpus=instance.num_gpus + 1, throughputs=curves)


def linear(instance: DeadlineJobs[Any]) -> bool:
    """Return whether every job scales linearly up to all GPUs."""
    curves = instance.throughputs
    return not len(curves) or bool(np.array_equal(curves, np.outer(curves[:, 1], np.arange(curves.shape[1]))))


def least_levels(instance: DeadlineJobs[Any], gpus: NDArray[np.int64], *, cleared: bool = False) -> bool:
    """Return whether (n, h) GPUs are those of Algorithm 1, step by step as printed, for the jobs that hold any.

    With ``cleared`` a level begins with no GPUs in any slot, instead of those of the level before.
    """
    free = np.full(gpus.shape[1], instance.num_gpus)
    jobs = [job for job in range(instance.num_jobs) if gpus[job].any()]
    for job in sorted(jobs, key=lambda job: int(instance.deadlines[job])):
        held = _filled(
            instance.throughputs[job].tolist(),
            float(instance.iterations[job]) * (1 - 1e-9),
            free[: instance.deadlines[job]].tolist(),
            cleared=cleared,
        )
        if gpus[job].tolist() != held + [0] * (len(free) - len(held)):
            return False
        free -= gpus[job]
    return True


def by_deadline(instance: DeadlineJobs[Any], jobs: Iterable[int], *, elastic: bool) -> list[list[int]]:
    """Return the GPUs of jobs in order of deadline: as many as speed them up in each slot, until they are done.

    With ``elastic`` those of Algorithm 1, and all that speed it up only for a job that finds no level.
    """
    gpus = np.zeros((instance.num_jobs, instance.horizon), np.int64)
    free = [instance.num_gpus] * instance.horizon
    for job in sorted(jobs, key=lambda job: int(instance.deadlines[job])):
        curve, need = instance.throughputs[job].tolist(), float(instance.iterations[job]) * (1 - 1e-9)
        end = int(instance.deadlines[job])
        held = _filled(curve, need, free[:end], cleared=False) if elastic else []
        if not elastic or sum(curve[count] for count in held) < need:
            most, held = next((count for count in range(len(curve) - 1) if curve[count + 1] < curve[count]), -1), []
            for slot in range(end):
                done = not elastic and sum(curve[count] for count in held) >= need
                held.append(0 if done else min(free[slot], most % len(curve)))
        gpus[job, :end] = held
        free = [instance.num_gpus - int(used) for used in gpus.sum(axis=0)]
    rows: list[list[int]] = gpus.tolist()
    return rows


def as_printed(instance: DeadlineJobs[Any], gpus: NDArray[np.int64]) -> bool:
    """Return whether (n, h) GPUs are those of Algorithm 2, line by line."""
    curves, needs = instance.throughputs.tolist(), (instance.iterations * (1 - 1e-9)).tolist()
    order = np.argsort(instance.deadlines, kind="stable").tolist()
    a, x = (by_deadline(instance, range(instance.num_jobs), elastic=True) for _ in range(2))
    idle, queue = instance.num_gpus, dict[int, int]()

    def finish(job: int, held: list[int]) -> int:
        work = np.cumsum([curves[job][count] for count in held]) >= needs[job]
        return int(work.argmax()) if work.any() else len(held) if needs[job] > 0 else 0

    def enter(job: int) -> None:
        now, end = a[job][0] + 1, int(instance.deadlines[job])
        if now > instance.num_gpus:
            return
        before = np.sum([x[other] for other in order[: order.index(job)]], axis=0, initial=0) * np.ones(
            len(x[job]), int
        )
        x[job] = [now, *[0] * (len(x[job]) - 1)]
        left, free = needs[job] - curves[job][now], [max(0, idle - int(held)) for held in before[1:end]]
        rest = _filled(curves[job], left, free, cleared=False)
        if sum(curves[job][count] for count in rest) >= left:
            x[job][1:end] = rest
            if finish(job, x[job]) < finish(job, a[job]):
                queue[job] = sum(a[job]) - sum(x[job])

    for job in order:
        idle -= a[job][0]
        enter(job)
    while idle > 0 and queue:
        job = min(queue, key=lambda one: (-queue[one], one))
        del queue[job]
        a[job], idle = x[job].copy(), idle - 1
        enter(job)
    return bool(gpus.tolist() == a)


def most_saving_first(instance: DeadlineJobs[Any], gpus: NDArray[np.int64]) -> bool:
    """Return whether (n, h) GPUs are Algorithm 1's, and then, one by one in slot 0, where the most GPU time is saved.

    Not judged where curves fall, or where a job in later slots wants what others hold.
    """
    if (np.diff(instance.throughputs) < 0).any():
        return True
    curves, needs = instance.throughputs.tolist(), (instance.iterations * (1 - 1e-9)).tolist()
    held: list[list[int]] = [[] for _ in curves]
    free = [instance.num_gpus] * gpus.shape[1]
    for job in np.argsort(instance.deadlines, kind="stable").tolist():
        held[job] = _filled(curves[job], needs[job], free[: instance.deadlines[job]], cleared=False)
        free = [left - more for left, more in zip(free, held[job] + [0] * len(free), strict=False)]

    def grown(job: int) -> list[int]:
        now = held[job][0] + 1
        everything = [instance.num_gpus] * (len(held[job]) - 1)
        return [now, *_filled(curves[job], needs[job] - curves[job][now], everything, cleared=False)]

    while free[0]:
        able = [
            job
            for job, curve in enumerate(curves)
            if needs[job] > 0 and held[job][0] < instance.num_gpus and curve[held[job][0] + 1] > curve[held[job][0]]
        ]
        if not able:
            break
        plans = {job: grown(job) for job in able}
        for job, plan in plans.items():
            if any(more > left + own for more, left, own in zip(plan, free, held[job], strict=False)):
                return True
        best = max(able, key=lambda job: (sum(held[job]) - sum(plans[job]), -job))
        free = [
            left + own - more
            for left, own, more in zip(free, held[best] + [0] * len(free), plans[best] + [0] * len(free), strict=False)
        ]
        held[best] = plans[best]
    return all(row[: len(own)].tolist() == own for row, own in zip(gpus, held, strict=True))


def _filled(curve: list[float], need: float, free: list[int], *, cleared: bool) -> list[int]:
    """Return the GPUs of a job up to its deadline, level by level from the last slot backwards."""
    held = [0] * len(free)
    if need <= 0:
        return held
    for level in range(1, len(curve)):
        if cleared:
            held = [0] * len(free)
        for slot in reversed(range(len(free))):
            held[slot] = min(level, free[slot])
            if sum(curve[count] for count in held) >= need:
                return held
    return held
