"""What ElasticFlow (ASPLOS'23) states of meeting deadlines (section 4.1), put to the test."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from heuristics.elasticflow.minimum_satisfactory_share import progressive_filling
from instances.elasticflow.minimum_satisfactory_share import MinimumSatisfactoryShare
from instances.elasticflow.sharing import DeadlineJobs, SlotPlan
from validation.claims.elasticflow.sharing import least_gpu_time, sets
from validation.testing.claims import Claim
from validation.testing.transform import take

__all__ = ["CLAIMS"]

# --- the condition for linear curves: section 4.1, Theorem 1 --------------------------------------


def _condition(instance: DeadlineJobs[Any], *, rounded: bool = False) -> bool:
    """Theorem 1's condition, exactly: the GPU time of the jobs due by each deadline fits in before it."""
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


def _unnecessary(instance: MinimumSatisfactoryShare) -> str:
    if _condition(instance) or least_gpu_time(instance) is None:
        return ""
    return "there is a plan, although the condition does not hold"


def _insufficient(instance: MinimumSatisfactoryShare) -> str:
    if not _condition(instance) or least_gpu_time(instance) is not None:
        return ""
    return "the condition holds, but in whole GPUs there is no plan"


def _rounded_errs(instance: MinimumSatisfactoryShare) -> str:
    holds, least = _condition(instance, rounded=True), least_gpu_time(instance)
    if holds == (least is not None):
        return ""
    return "the condition holds, but there is no plan" if holds else "there is a plan, but the condition does not hold"


def _fractional_errs(instance: MinimumSatisfactoryShare) -> str:
    # Whatever can be done with parts of GPUs can be done with parts that all GPU times are multiples of.
    parts = math.lcm(*(int(curve[1]) for curve in instance.throughputs))
    holds, least = _condition(instance), least_gpu_time(instance, parts=parts)
    if holds == (least is not None):
        return ""
    return "the condition holds, but there is no plan" if holds else "there is a plan, but the condition does not hold"


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

_LINEAR = [
    Claim(
        name="edf_condition_necessary",
        source="ElasticFlow, section 4.1, Theorem 1",
        statement=_THEOREM_1,
        reading="only if: wherever there is a plan of whole GPUs, the condition holds.",
        instances=lambda rng: _linear(3, 2, 2),
        breaks=_unnecessary,
        scope="up to 3 jobs of linear curves of 1 or 2 iterations per GPU and slot, with deadlines of 1 or 2 slots, on "
        "up to 2 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="edf_condition_sufficient",
        source="ElasticFlow, section 4.1, Theorem 1",
        statement=_THEOREM_1,
        reading="if: wherever the condition holds, there is a plan of whole GPUs in whole slots, as in (2) and (3).",
        instances=lambda rng: _linear(3, 2, 2),
        breaks=_insufficient,
        scope="up to 3 jobs of linear curves of 1 or 2 iterations per GPU and slot, with deadlines of 1 or 2 slots, on "
        "up to 2 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="edf_condition_fractional",
        source="ElasticFlow, section 4.1, Theorem 1",
        statement=_THEOREM_1,
        reading="a job may hold a fraction of a GPU in a slot, that is, a GPU for a part of it.",
        instances=lambda rng: itertools.chain(_linear(2, 2, 3), _linear(3, 2, 2, fewest_jobs=3)),
        breaks=_fractional_errs,
        scope="up to 2 jobs of linear curves of 1 to 3 iterations per GPU and slot, or 3 jobs of 1 or 2, with "
        "deadlines of 1 or 2 slots, on up to 2 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="edf_condition_rounded",
        source="ElasticFlow, section 4.1, Theorem 1",
        statement=_THEOREM_1,
        reading="whole GPUs in whole slots, and the GPU time of each job is rounded up to whole GPU-slots, which is "
        "this library's repair.",
        instances=lambda rng: _linear(3, 2, 2),
        breaks=_rounded_errs,
        scope="up to 3 jobs of linear curves of 1 or 2 iterations per GPU and slot, with deadlines of 1 or 2 slots, on "
        "up to 2 GPUs",
        exhaustive=True,
    ),
]


# --- minimum satisfactory shares: section 4.1, Algorithm 1 -----------------------------------------


def _renumbered(instance: MinimumSatisfactoryShare) -> Iterator[MinimumSatisfactoryShare]:
    """The instance with its jobs in every order, which is to break ties between deadlines in every way."""
    for order in itertools.permutations(range(instance.num_jobs)):
        if (np.diff(instance.deadlines[list(order)]) >= 0).all():
            yield take(instance, "n", order)


Filling = Callable[[MinimumSatisfactoryShare], SlotPlan | None]


def _finds_none(instance: MinimumSatisfactoryShare, method: Filling = progressive_filling) -> str:
    """How Algorithm 1 finds no plan where there is one, however ties are broken."""
    if any(method(each) is not None for each in _renumbered(instance)):
        return ""
    least = least_gpu_time(instance)
    if least is None:
        return ""
    return f"it finds no plan however ties are broken, there is one of {least} GPU-slots"


def _trimmed(instance: DeadlineJobs[Any]) -> SlotPlan | None:
    """Algorithm 1, except that a job holds no more GPUs than it needs in the last slot that it takes."""
    gpus = np.zeros((instance.num_jobs, instance.horizon), np.int64)
    for job in np.argsort(instance.deadlines, kind="stable"):
        free = instance.num_gpus - gpus.sum(axis=0)
        for level in range(1, instance.num_gpus + 1):
            left = int(instance.iterations[job])
            gpus[job] = 0
            for slot in reversed(range(instance.deadlines[job])):
                share = min(level, int(free[slot]))
                enough = np.flatnonzero(instance.throughputs[job, : share + 1] >= left)
                gpus[job, slot] = enough[0] if enough.size else share
                left = max(0, left - int(instance.throughputs[job, gpus[job, slot]]))
            if not left:
                break
        else:
            return None
    return SlotPlan(gpus=gpus)


def _late(instance: MinimumSatisfactoryShare) -> str:
    plan = progressive_filling(instance)
    broken = instance.violations(plan) if plan is not None else []
    return f"its plan breaks a rule: {broken[0]}" if broken else ""


def _wastes(instance: MinimumSatisfactoryShare, method: Filling = progressive_filling) -> str:
    """How Algorithm 1 takes more GPU time than is needed, however ties are broken."""
    plans = [(each, method(each)) for each in _renumbered(instance)]
    takes = [int(each.objective(plan)) for each, plan in plans if plan is not None]
    least = least_gpu_time(instance) if takes else None
    if least is None or min(takes) <= least:
        return ""
    return f"it takes {min(takes)} GPU-slots or more however ties are broken, {least} would do"


def _concave(most_jobs: int, most_gpus: int = 2, most_slots: int = 2) -> Iterator[MinimumSatisfactoryShare]:
    return sets(MinimumSatisfactoryShare, most_jobs=most_jobs, most_gpus=most_gpus, most_slots=most_slots, most_gain=2)


_PROGRESSIVE_FILLING = [
    Claim(
        name="progressive_filling_keeps_deadlines",
        source="ElasticFlow, section 4.1, Algorithm 1",
        statement="Jobs that admission control admits meet their deadlines.",
        reading="whatever plan Algorithm 1 finds does all the work in time on the GPUs there are.",
        instances=lambda rng: itertools.chain(_concave(2), _concave(2, 3)),
        breaks=_late,
        scope="up to 2 jobs of concave curves whose first GPU does 1 or 2 iterations per slot, with deadlines of 1 or "
        "2 slots, on up to 3 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="progressive_filling_complete",
        source="ElasticFlow, section 4.1, Algorithm 1",
        statement="Progressive filling decides whether all jobs can meet their deadlines.",
        reading="with concave curves, it finds a plan whenever there is one, at least for some way of breaking ties "
        "between deadlines.",
        instances=lambda rng: _concave(3, 2, 3),
        breaks=_finds_none,
        scope="up to 3 jobs of concave curves whose first GPU does 1 or 2 iterations per slot, with deadlines of 1 to "
        "3 slots, on up to 2 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="progressive_filling_complete_linear",
        source="ElasticFlow, section 4.1, Algorithm 1",
        statement="Progressive filling decides whether all jobs can meet their deadlines.",
        reading="with linear curves, it finds a plan of whole GPUs whenever there is one, at least for some way of "
        "breaking ties between deadlines.",
        instances=lambda rng: _linear(3, 3, 1),
        breaks=_finds_none,
        scope="up to 3 jobs of linear curves of one iteration per GPU and slot, with deadlines of 1 to 3 slots, on up "
        "to 2 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="progressive_filling_complete_one_job",
        source="ElasticFlow, section 4.1, Algorithm 1",
        statement="Progressive filling decides whether all jobs can meet their deadlines.",
        reading="for a job that has the cluster to itself, with a concave curve, it finds a plan whenever there is "
        "one.",
        instances=lambda rng: _concave(1, 4, 3),
        breaks=_finds_none,
        scope="a job of a concave curve whose first GPU does 1 or 2 iterations per slot, with a deadline of 1 to 3 "
        "slots, on up to 4 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="progressive_filling_least_gpu_time",
        source="ElasticFlow, section 4.1, Algorithm 1",
        statement="The minimum satisfactory shares of Algorithm 1 meet all deadlines at the least GPU time.",
        reading="with concave curves, where it finds a plan, no other plan takes fewer GPU-slots, at least for some "
        "way of breaking ties between deadlines.",
        instances=lambda rng: _concave(2),
        breaks=_wastes,
        scope="up to 2 jobs of concave curves whose first GPU does 1 or 2 iterations per slot, with deadlines of 1 or "
        "2 slots, on up to 2 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="trimmed_filling_complete",
        source="ElasticFlow, section 4.1, Algorithm 1",
        statement="Progressive filling decides whether all jobs can meet their deadlines.",
        reading="a charitable one: in the last slot that it takes, a job holds no more GPUs than it needs. With "
        "concave curves, it finds a plan whenever there is one, at least for some way of breaking ties between "
        "deadlines.",
        instances=lambda rng: _concave(3, 2, 3),
        breaks=lambda instance: _finds_none(instance, _trimmed),
        scope="up to 3 jobs of concave curves whose first GPU does 1 or 2 iterations per slot, with deadlines of 1 to "
        "3 slots, on up to 2 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="trimmed_filling_complete_linear",
        source="ElasticFlow, section 4.1, Algorithm 1",
        statement="Progressive filling decides whether all jobs can meet their deadlines.",
        reading="a charitable one: in the last slot that it takes, a job holds no more GPUs than it needs. With linear "
        "curves, it finds a plan of whole GPUs whenever there is one, at least for some way of breaking ties between "
        "deadlines.",
        instances=lambda rng: _linear(3, 3, 2),
        breaks=lambda instance: _finds_none(instance, _trimmed),
        scope="up to 3 jobs of linear curves of 1 or 2 iterations per GPU and slot, with deadlines of 1 to 3 slots, on "
        "up to 2 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="trimmed_filling_least_gpu_time",
        source="ElasticFlow, section 4.1, Algorithm 1",
        statement="The minimum satisfactory shares of Algorithm 1 meet all deadlines at the least GPU time.",
        reading="a charitable one: in the last slot that it takes, a job holds no more GPUs than it needs. With "
        "concave curves, where it finds a plan, no other plan takes fewer GPU-slots, at least for some way of breaking "
        "ties between deadlines.",
        instances=lambda rng: _concave(2, 2, 3),
        breaks=lambda instance: _wastes(instance, _trimmed),
        scope="up to 2 jobs of concave curves whose first GPU does 1 or 2 iterations per slot, with deadlines of 1 to "
        "3 slots, on up to 2 GPUs",
        exhaustive=True,
    ),
]


CLAIMS: list[Claim] = [*_LINEAR, *_PROGRESSIVE_FILLING]
