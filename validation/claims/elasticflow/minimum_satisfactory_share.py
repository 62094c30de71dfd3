"""Claims of ElasticFlow (ASPLOS'23) about meeting deadlines (section 4.1)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from heuristics.elasticflow.filling import fill_job, fill_jobs
from heuristics.elasticflow.minimum_satisfactory_share import progressive_filling
from instances.elasticflow.minimum_satisfactory_share import MinimumSatisfactoryShare
from instances.elasticflow.sharing import DeadlineJobs, SlotPlan
from instances.schema import FloatArray, IntArray
from validation.claims.elasticflow.sharing import least_gpu_time, sets, sets_of_one_curve
from validation.claims.plans import OPTIMAL, plans_of
from validation.kinds.claims import Claim, Reading
from validation.testing.transform import take

__all__ = ["CLAIMS"]

# --- the condition for linear curves: section 4.1, Theorem 1 --------------------------------------


def _condition(instance: DeadlineJobs[Any], *, rounded: bool = False) -> bool:
    """Return whether Theorem 1's condition holds, exactly: GPU times of jobs due by each deadline fit in before it."""
    times = [
        Fraction(int(iterations), int(curve[1]))
        for iterations, curve in zip(instance.iterations, instance.throughputs, strict=True)
    ]
    if rounded:
        times = [Fraction(math.ceil(time)) for time in times]
    due = instance.deadlines.tolist()
    return all(
        sum(time for time, deadline in zip(times, due, strict=True) if deadline <= last) <= instance.num_gpus * last
        for last in due
    )


def _least(instance: MinimumSatisfactoryShare, *, fractions: bool) -> int | None:
    """Return the least GPU time of whole GPUs, or of fractions; None where there is no plan."""
    # Whatever can be done with parts of GPUs can be done with parts that all GPU times are multiples of.
    parts = math.lcm(*(int(curve[1]) for curve in instance.throughputs)) if fractions else 1
    return least_gpu_time(instance, parts=parts)


def _unnecessary(instance: MinimumSatisfactoryShare, *, fractions: bool = False) -> str:
    if _condition(instance) or _least(instance, fractions=fractions) is None:
        return ""
    return "there is a plan, although the condition does not hold"


def _insufficient(instance: MinimumSatisfactoryShare, *, fractions: bool = False, rounded: bool = False) -> str:
    if not _condition(instance, rounded=rounded) or _least(instance, fractions=fractions) is not None:
        return ""
    return (
        "the condition holds, but there is no plan"
        if fractions
        else "the condition holds, but in whole GPUs there is no plan"
    )


def _linear(
    most_jobs: int, most_slots: int, most_gain: int, fewest_jobs: int = 1
) -> Iterator[MinimumSatisfactoryShare]:
    return sets(
        MinimumSatisfactoryShare,
        most_jobs=most_jobs,
        most_gpus=2,
        most_slots=most_slots,
        most_gain=most_gain,
        linear=True,
        fewest_jobs=fewest_jobs,
    )


_THEOREM_1 = "With linear scaling curves, all jobs can meet their deadlines if, and only if, for each job the GPU time \
of the jobs due no later than it fits into the cluster before its deadline."

_LINEAR_KEPT = "linear curves, all jobs known at the start, no cost of changing GPUs."

_FRACTIONS = (
    "a job may hold a fraction of a GPU in a slot, as the M / (k D) GPUs of the text are, that is, a GPU for a part "
    "of it"
)


def _small_linear() -> Iterator[MinimumSatisfactoryShare]:
    return itertools.chain(_linear(2, 2, 3), _linear(3, 1, 3, fewest_jobs=3))


_SMALL_LINEAR = (
    "up to 3 jobs of linear curves of 1 to 3 iterations per GPU and slot, with deadlines of 1 slot, or of 1 or 2 where "
    "they are 2 at most, on up to 2 GPUs"
)

_LINEAR = [
    Claim(
        name="edf_condition_necessary",
        source="ElasticFlow, section 4.1, Theorem 1",
        statement=_THEOREM_1,
        reading=f"only if: wherever there is a plan, the condition holds; {_FRACTIONS}.",
        assumptions=_LINEAR_KEPT,
        relaxed="",
        instances=lambda rng: _small_linear(),
        breaks=lambda instance: _unnecessary(instance, fractions=True),
        scope=_SMALL_LINEAR,
        exhaustive=True,
        others=(
            Reading(
                "only if: wherever there is a plan of whole GPUs in whole slots, the condition holds.", _unnecessary
            ),
        ),
    ),
    Claim(
        name="edf_condition_sufficient",
        source="ElasticFlow, section 4.1, Theorem 1",
        statement=_THEOREM_1,
        reading=f"if: wherever the condition holds, there is a plan; {_FRACTIONS}.",
        assumptions=_LINEAR_KEPT,
        relaxed="",
        instances=lambda rng: _small_linear(),
        breaks=lambda instance: _insufficient(instance, fractions=True),
        scope=_SMALL_LINEAR,
        exhaustive=True,
        others=(
            Reading(
                "if: wherever the condition holds, there is a plan of whole GPUs in whole slots, as in (2) and (3).",
                _insufficient,
            ),
            Reading(
                "if: the same, with the GPU time of each job rounded up to whole GPU-slots.",
                lambda instance: _insufficient(instance, rounded=True),
            ),
        ),
    ),
]


# --- minimum satisfactory shares: section 4.1, Algorithm 1 -----------------------------------------


Method = Callable[[MinimumSatisfactoryShare], SlotPlan | None]


def _forwards(instance: MinimumSatisfactoryShare) -> SlotPlan | None:
    """Return the plan of Algorithm 1 with line 14 from the first slot to the deadline."""

    def fill(curve: FloatArray, need: float, free: IntArray) -> IntArray | None:
        gpus = fill_job(curve, need, free[::-1])
        return None if gpus is None else gpus[::-1]

    gpus = fill_jobs(instance, np.arange(instance.num_jobs), fill)
    return None if gpus is None else SlotPlan(gpus=gpus)


def _renumbered(instance: MinimumSatisfactoryShare) -> Iterator[MinimumSatisfactoryShare]:
    """Yield the instance with its jobs in every order, to break ties between deadlines in every way."""
    for order in itertools.permutations(range(instance.num_jobs)):
        if (np.diff(instance.deadlines[list(order)]) >= 0).all():
            yield take(instance, "n", order)


def _finds_none(instance: MinimumSatisfactoryShare, method: Method = progressive_filling) -> str:
    """Describe how Algorithm 1 finds no plan where there is one, however ties are broken."""
    if any(method(each) is not None for each in _renumbered(instance)):
        return ""
    least = least_gpu_time(instance)
    if least is None:
        return ""
    return f"it finds no plan however ties are broken, there is one of {least} GPU-slots"


def _late(instance: MinimumSatisfactoryShare, method: Method = progressive_filling) -> str:
    plan = method(instance)
    broken = instance.violations(plan) if plan is not None else []
    return f"its plan breaks a rule: {broken[0]}" if broken else ""


def _wastes(instance: MinimumSatisfactoryShare, method: Method = progressive_filling) -> str:
    """Describe how Algorithm 1 takes more GPU time than is needed, however ties are broken."""
    plans = [(each, method(each)) for each in _renumbered(instance)]
    takes = [int(each.objective(plan)) for each, plan in plans if plan is not None]
    least = least_gpu_time(instance) if takes else None
    if least is None or min(takes) <= least:
        return ""
    return f"it takes {min(takes)} GPU-slots or more however ties are broken, {least} would do"


def _one_job_wastes(instance: MinimumSatisfactoryShare) -> str:
    """Describe how a job takes more GPU time than it needs on what the jobs before it have left."""
    plan = progressive_filling(instance)
    if plan is None:
        return ""
    free = np.full(instance.horizon, instance.num_gpus)
    for job in np.argsort(instance.deadlines, kind="stable").tolist():
        curve, end = instance.throughputs[job], int(instance.deadlines[job])
        runs = itertools.product(*(range(gpus + 1) for gpus in free[:end].tolist()))
        least = min(sum(run) for run in runs if curve[list(run)].sum() >= instance.iterations[job])
        takes = int(plan.gpus[job].sum())
        if takes > least:
            return f"job {job} takes {takes} GPU-slots, {least} would do on what the jobs before it have left"
        free -= plan.gpus[job]
    return ""


def _concave(most_jobs: int, most_gpus: int = 2, most_slots: int = 2) -> Iterator[MinimumSatisfactoryShare]:
    return sets(MinimumSatisfactoryShare, most_jobs=most_jobs, most_gpus=most_gpus, most_slots=most_slots, most_gain=2)


def _three_alike() -> Iterator[MinimumSatisfactoryShare]:
    """Yield up to three jobs that do 2 iterations in a slot on one GPU, and 3 on both."""
    return sets_of_one_curve(MinimumSatisfactoryShare, (0, 2, 3), most_jobs=3, most_slots=3)


_THREE_ALIKE = (
    "up to 3 jobs of one concave curve, 2 iterations per slot on one GPU and 3 on two, with deadlines of 1 to 3 slots, "
    "on 2 GPUs"
)

_KEPT = "concave curves that rise with every GPU, all jobs known at the start, no cost of changing GPUs."

_FLAT_TOO = (
    "concave curves, all jobs known at the start, no cost of changing GPUs. Curves may end flat, which is concave too."
)

_DECIDES = (
    "If a job finds no number of GPUs, then not all of the jobs can meet their deadlines: progressive filling decides "
    "whether they can."
)

_PROGRESSIVE_FILLING = [
    Claim(
        name="progressive_filling_keeps_deadlines",
        source="ElasticFlow, section 4.1, Algorithm 1",
        statement="Jobs that admission control admits meet their deadlines.",
        reading="whatever plan Algorithm 1 finds does all the work in time on the GPUs there are.",
        assumptions=_FLAT_TOO,
        relaxed="",
        instances=lambda rng: itertools.chain(_three_alike(), _concave(2)),
        breaks=_late,
        scope=_THREE_ALIKE + "; up to 2 jobs of concave curves whose first GPU does 1 or 2 iterations per slot, with "
        "deadlines of 1 or 2 slots, on up to 2 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="progressive_filling_complete",
        source="ElasticFlow, section 4.1, Algorithm 1",
        statement=_DECIDES,
        reading="as printed, with slots filled from the deadline backwards (line 14), it finds a plan whenever there "
        "is one, at least for some way of breaking ties between deadlines.",
        assumptions=_KEPT,
        relaxed="",
        instances=lambda rng: _three_alike(),
        breaks=_finds_none,
        scope=_THREE_ALIKE,
        exhaustive=True,
        plans=plans_of(OPTIMAL),
        others=(
            Reading(
                "the same, with slots filled from the first one to the deadline.",
                lambda instance: _finds_none(instance, _forwards),
            ),
        ),
    ),
    Claim(
        name="progressive_filling_complete_linear",
        source="ElasticFlow, section 4.1, Algorithm 1",
        statement=_DECIDES,
        reading="with linear curves, from which the text takes its intuition, it finds a plan of whole GPUs whenever "
        "there is one.",
        assumptions=_LINEAR_KEPT,
        relaxed="",
        instances=lambda rng: itertools.chain(_linear(2, 2, 2), _linear(3, 3, 1, fewest_jobs=3)),
        breaks=_finds_none,
        scope="up to 2 jobs of linear curves of 1 or 2 iterations per GPU and slot, with deadlines of 1 or 2 slots, or "
        "3 jobs of 1 iteration, with deadlines of 1 to 3, on up to 2 GPUs",
        exhaustive=True,
        others=(
            Reading(
                "the same, with slots filled from the first one to the deadline.",
                lambda instance: _finds_none(instance, _forwards),
            ),
        ),
    ),
    Claim(
        name="progressive_filling_complete_one_job",
        source="ElasticFlow, section 4.1, Algorithm 1",
        statement=_DECIDES,
        reading="for a job that has the cluster to itself, it finds a plan whenever there is one.",
        assumptions=_FLAT_TOO,
        relaxed="",
        instances=lambda rng: _concave(1, 4, 3),
        breaks=_finds_none,
        scope="a job of a concave curve whose first GPU does 1 or 2 iterations per slot, with a deadline of 1 to 3 "
        "slots, on up to 4 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="progressive_filling_least_gpu_time",
        source="ElasticFlow, section 4.1, minimum satisfactory share",
        statement="The GPU time is least when jobs run on their minimum satisfactory shares.",
        reading="of each job by itself: on what the jobs before it have left, no other plan for it takes fewer "
        "GPU-slots.",
        assumptions=_KEPT,
        relaxed="",
        instances=lambda rng: _three_alike(),
        breaks=_one_job_wastes,
        scope=_THREE_ALIKE,
        exhaustive=True,
        others=(
            Reading(
                "of all jobs together: where Algorithm 1 finds a plan, no other plan takes fewer GPU-slots, at least "
                "for some way of breaking ties between deadlines.",
                _wastes,
                plans=plans_of("progressive_filling", OPTIMAL),
            ),
        ),
    ),
    Claim(
        name="powers_of_two_stay_powers_of_two",
        source="ElasticFlow, section 4.1, Algorithm 1, line 15, and section 4.3",
        statement="Every job runs on a power of two of GPUs.",
        reading="the levels of Algorithm 1 are powers of two, and min() is rounded down to one.",
        assumptions="concave curves of which only powers of two are used; the cluster's number of GPUs is a power of "
        "two, as in the paper.",
        relaxed="",
        instances=lambda rng: _concave_on_four(),
        breaks=lambda instance: _other_numbers(instance, rounded=True),
        scope="up to 2 jobs whose first GPU does 1 or 2 iterations per slot, on a concave curve, with a deadline of "
        "one slot, on 4 GPUs",
        exhaustive=True,
        others=(
            Reading(
                "the levels of Algorithm 1 are powers of two, and min() is that of line 15 as printed.",
                lambda instance: _other_numbers(instance, rounded=False),
            ),
        ),
    ),
]


def _concave_on_four() -> Iterator[MinimumSatisfactoryShare]:
    return (
        instance
        for instance in sets(MinimumSatisfactoryShare, most_jobs=2, most_gpus=4, most_slots=1, most_gain=2)
        if instance.num_gpus == 4
    )


def _other_numbers(instance: MinimumSatisfactoryShare, *, rounded: bool) -> str:
    """Describe a number of GPUs, no power of two, that Algorithm 1 with levels of powers of two gives a job."""
    free = np.full(instance.horizon, instance.num_gpus)
    for job in np.argsort(instance.deadlines, kind="stable").tolist():
        curve, end = instance.throughputs[job], int(instance.deadlines[job])
        need = float(instance.iterations[job])
        if rounded:
            gpus = fill_job(curve, need, free[:end], powers_of_two=True)
        else:
            gpus = _fill_by_powers_of_two(curve, need, free[:end])
        if gpus is None:
            return ""
        odd = np.flatnonzero(gpus & (gpus - 1))
        if odd.size:
            return f"job {job} gets {gpus[odd[0]]} GPUs in slot {odd[0]}"
        free[:end] -= gpus
    return ""


def _fill_by_powers_of_two(curve: FloatArray, need: float, free: IntArray) -> IntArray | None:
    """Return the GPUs of lines 12 to 22 with j = 1, 2, 4, ... and line 15 as printed."""
    gpus = np.zeros(len(free), np.int64)
    for level in (1, 2, 4):
        for slot in reversed(range(len(free))):
            gpus[slot] = min(level, free[slot])
            if curve[gpus].sum() >= need:
                return gpus
    return None


CLAIMS: list[Claim] = [*_LINEAR, *_PROGRESSIVE_FILLING]
