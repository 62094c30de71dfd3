"""Claims of ElasticFlow (ASPLOS'23) about meeting deadlines (sections 3.2 and 4.1)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from heuristics.elasticflow.filling import fill_job, fill_jobs
from heuristics.elasticflow.minimum_satisfactory_share import edf, progressive_filling
from instances.elasticflow.minimum_satisfactory_share import (
    MinimumSatisfactoryShare,
    diminishing_returns,
    job_alone,
    job_in_company,
    two_jobs,
)
from instances.elasticflow.sharing import DeadlineJobs, SlotPlan
from instances.schema import FloatArray, IntArray
from validation.claims.assumed import only, power_of_two
from validation.claims.claim import Claim, Reading
from validation.claims.elasticflow.sharing import (
    ALIKE,
    alike,
    have_concave_curves,
    have_linear_curves,
    have_rising_curves,
    sets,
)
from validation.claims.plans import OPTIMAL, better_than, plans_of
from validation.claims.ties import renumbered
from validation.claims.words import listed
from validation.testing.second_opinion import optimum

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


def _in_parts(instance: MinimumSatisfactoryShare) -> MinimumSatisfactoryShare:
    """Return the jobs of linear curves with every GPU divided into parts, each of which does what a GPU did.

    Whatever can be done with fractions of GPUs can be done with parts that all GPU times are multiples of.
    """
    parts = math.lcm(*(int(curve[1]) for curve in instance.throughputs))
    return replace(
        instance,
        num_gpus=parts * instance.num_gpus,
        iterations=parts * instance.iterations,
        throughputs=np.outer(instance.throughputs[:, 1], np.arange(parts * instance.num_gpus + 1)),
    )


def _has_plan(instance: MinimumSatisfactoryShare, *, fractions: bool) -> bool:
    return optimum(_in_parts(instance) if fractions else instance) is not None


def _unnecessary(instance: MinimumSatisfactoryShare, *, fractions: bool = False) -> str | None:
    if _condition(instance) or not _has_plan(instance, fractions=fractions):
        return None
    return "there is a plan, although the condition does not hold"


def _insufficient(instance: MinimumSatisfactoryShare, *, fractions: bool = False, rounded: bool = False) -> str | None:
    if not _condition(instance, rounded=rounded) or _has_plan(instance, fractions=fractions):
        return None
    return f"the condition holds, but {'' if fractions else 'in whole GPUs '}there is no plan"


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


_LINEAR_KEPT = "linear curves, all jobs known at the start, no cost of changing GPUs."

_FRACTIONS = (
    "a job may hold a fraction of a GPU in a slot, as the M / (k D) GPUs of the text are, that is, a GPU for a part "
    "of it"
)


_theorem_1 = partial(
    Claim,
    source="ElasticFlow, section 4.1, Theorem 1",
    statement="With linear scaling curves, all jobs can meet their deadlines if, and only if, for each job the GPU "
    "time of the jobs due no later than it fits into the cluster before its deadline.",
    instances=lambda rng: itertools.chain(_linear(2, 2, 3), _linear(3, 1, 3, fewest_jobs=3)),
    scope="up to 3 jobs of linear curves of 1 to 3 iterations per GPU and slot, with deadlines of 1 slot, or of 1 or 2 "
    "where they are 2 at most, on up to 2 GPUs",
    exhaustive=True,
    assumes=have_linear_curves,
    assumptions=_LINEAR_KEPT,
    relaxed="",
)

_LINEAR = [
    _theorem_1(
        name="edf_condition_necessary",
        reading=f"only if: wherever there is a plan, the condition holds; {_FRACTIONS}.",
        breaks=partial(_unnecessary, fractions=True),
        others=(
            Reading(
                "only if: wherever there is a plan of whole GPUs in whole slots, the condition holds.", _unnecessary
            ),
        ),
    ),
    _theorem_1(
        name="edf_condition_sufficient",
        reading=f"if: wherever the condition holds, there is a plan; {_FRACTIONS}.",
        breaks=partial(_insufficient, fractions=True),
        others=(
            Reading(
                "if: wherever the condition holds, there is a plan of whole GPUs in whole slots, as in (2) and (3).",
                _insufficient,
            ),
            Reading(
                "if: the same, with the GPU time of each job rounded up to whole GPU-slots.",
                partial(_insufficient, rounded=True),
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


def _finds_none(instance: MinimumSatisfactoryShare, method: Method = progressive_filling) -> str | None:
    """Describe how Algorithm 1 finds no plan where there is one, however ties are broken."""
    if (
        any(method(each) is not None for each in renumbered(instance, instance.deadlines))
        or (least := optimum(instance)) is None
    ):
        return None
    return f"it finds no plan however ties are broken, there is one of {least} GPU-slots"


def _late(instance: MinimumSatisfactoryShare) -> str | None:
    plan = progressive_filling(instance)
    broken = instance.violations(plan) if plan is not None else []
    return f"its plan breaks a rule: {broken[0]}" if broken else None


def _wastes(instance: MinimumSatisfactoryShare) -> str | None:
    """Describe how Algorithm 1 takes more GPU time than is needed, however ties are broken."""
    plans = [(each, progressive_filling(each)) for each in renumbered(instance, instance.deadlines)]
    takes = [int(each.objective(plan)) for each, plan in plans if plan is not None]
    if not takes or (least := better_than(instance, min(takes))) is None:
        return None
    return f"it takes {min(takes)} GPU-slots or more however ties are broken, {least:g} would do"


def _one_job_wastes(instance: MinimumSatisfactoryShare) -> str | None:
    """Describe how a job takes more GPU time than it needs on what the jobs before it have left.

    That differs by slot, which the reference does not know: all ways to run the job are tried here.
    """
    plan = progressive_filling(instance)
    if plan is None:
        return None
    free = np.full(instance.horizon, instance.num_gpus)
    for job in np.argsort(instance.deadlines, kind="stable").tolist():
        curve, end = instance.throughputs[job], int(instance.deadlines[job])
        runs = itertools.product(*(range(gpus + 1) for gpus in free[:end].tolist()))
        least = min(sum(run) for run in runs if curve[list(run)].sum() >= instance.iterations[job])
        takes = int(plan.gpus[job].sum())
        if takes > least:
            return f"job {job} takes {takes} GPU-slots, {least} would do on what the jobs before it have left"
        free -= plan.gpus[job]
    return None


def _concave(most_jobs: int, most_gpus: int = 2, most_slots: int = 2) -> Iterator[MinimumSatisfactoryShare]:
    return sets(MinimumSatisfactoryShare, most_jobs=most_jobs, most_gpus=most_gpus, most_slots=most_slots, most_gain=2)


def _concave_on_four() -> Iterator[MinimumSatisfactoryShare]:
    """Yield one or two jobs on 4 GPUs, which do up to 2 iterations on the first in one slot, or one in up to two."""
    for slots, gain in ((1, 2), (2, 1)):
        of_up_to_four = sets(MinimumSatisfactoryShare, most_jobs=2, most_gpus=4, most_slots=slots, most_gain=gain)
        yield from (instance for instance in of_up_to_four if instance.num_gpus == 4)


def _on_a_power_of_two(instance: MinimumSatisfactoryShare) -> bool:
    """Return whether jobs have iterations left, and concave curves, on a power of two of GPUs."""
    return power_of_two(instance.num_gpus) and have_concave_curves(instance)


def _other_numbers(instance: MinimumSatisfactoryShare, *, rounded: bool) -> str | None:
    """Describe a number of GPUs, no power of two, that Algorithm 1 with levels of powers of two gives a job.

    As printed it has to give one in every order of equal deadlines, and ``rounded`` in some order.
    """
    found = [_other_number(each, rounded=rounded) for each in renumbered(instance, instance.deadlines)]
    enough = any if rounded else all
    return next(filter(None, found)) if enough(found) else None


def _other_number(instance: MinimumSatisfactoryShare, *, rounded: bool) -> str | None:
    free = np.full(instance.horizon, instance.num_gpus)
    for job in np.argsort(instance.deadlines, kind="stable").tolist():
        curve, end = instance.throughputs[job], int(instance.deadlines[job])
        need = float(instance.iterations[job])
        if rounded:
            gpus = fill_job(curve, need, free[:end], powers_of_two=True)
        else:
            gpus = _fill_by_powers_of_two(curve, need, free[:end])
        if gpus is None:
            return None
        odd = np.flatnonzero(gpus & (gpus - 1))
        if odd.size:
            return f"a job gets {gpus[odd[0]]} GPUs in slot {odd[0]}"
        free[:end] -= gpus
    return None


def _fill_by_powers_of_two(curve: FloatArray, need: float, free: IntArray) -> IntArray | None:
    """Return the GPUs of lines 12 to 22 with j = 1, 2, 4, ... and line 15 as printed."""
    gpus = np.zeros(len(free), np.int64)
    for level in (1, 2, 4):
        for slot in reversed(range(len(free))):
            gpus[slot] = min(level, free[slot])
            if curve[gpus].sum() >= need:
                return gpus
    return None


_KEPT = "concave curves that rise with every GPU, all jobs known at the start, no cost of changing GPUs."

_FLAT_TOO = (
    "concave curves, all jobs known at the start, no cost of changing GPUs. Curves may end flat, which is concave too."
)

_claim = partial(
    Claim,
    source="ElasticFlow, section 4.1, Algorithm 1",
    instances=lambda rng: alike(MinimumSatisfactoryShare),
    scope=ALIKE,
    exhaustive=True,
    assumes=have_rising_curves,
    assumptions=_KEPT,
    relaxed="",
)
_decides = partial(
    _claim,
    statement="If a job finds no number of GPUs, then not all of the jobs can meet their deadlines: progressive "
    "filling decides whether they can.",
    breaks=_finds_none,
    ties="every way",
)
_FORWARDS = Reading(
    "the same, with slots filled from the first one to the deadline.", partial(_finds_none, method=_forwards)
)

_PROGRESSIVE_FILLING = [
    _claim(
        name="progressive_filling_keeps_deadlines",
        statement="Jobs that admission control admits meet their deadlines.",
        reading="whatever plan Algorithm 1 finds does all the work in time on the GPUs there are.",
        assumes=have_concave_curves,
        assumptions=_FLAT_TOO,
        instances=lambda rng: itertools.chain(alike(MinimumSatisfactoryShare), _concave(2)),
        breaks=_late,
        ties="by number",
        scope=ALIKE + "; up to 2 jobs of concave curves whose first GPU does 1 or 2 iterations per slot, with "
        "deadlines of 1 or 2 slots, on up to 2 GPUs",
    ),
    _decides(
        name="progressive_filling_complete",
        reading="as printed, with slots filled from the deadline backwards (line 14), it finds a plan whenever there "
        "is one, at least for some way of breaking ties between deadlines.",
        plans=plans_of(OPTIMAL),
        others=(_FORWARDS,),
    ),
    _decides(
        name="progressive_filling_complete_linear",
        reading="with linear curves, from which the text takes its intuition, it finds a plan of whole GPUs whenever "
        "there is one.",
        assumes=have_linear_curves,
        assumptions=_LINEAR_KEPT,
        instances=lambda rng: itertools.chain(_linear(2, 2, 2), _linear(3, 3, 1, fewest_jobs=3)),
        scope="up to 2 jobs of linear curves of 1 or 2 iterations per GPU and slot, with deadlines of 1 or 2 slots, or "
        "3 jobs of 1 iteration, with deadlines of 1 to 3, on up to 2 GPUs",
        others=(_FORWARDS,),
    ),
    _decides(
        name="progressive_filling_complete_one_job",
        reading="for a job that has the cluster to itself, it finds a plan whenever there is one.",
        assumes=have_concave_curves,
        assumptions=_FLAT_TOO,
        instances=lambda rng: _concave(1, 4, 3),
        scope="a job of a concave curve whose first GPU does 1 or 2 iterations per slot, with a deadline of 1 to 3 "
        "slots, on up to 4 GPUs",
    ),
    _claim(
        name="progressive_filling_least_gpu_time",
        source="ElasticFlow, section 4.1, minimum satisfactory share",
        statement="The GPU time is least when jobs run on their minimum satisfactory shares.",
        reading="of each job by itself: on what the jobs before it have left, no other plan for it takes fewer "
        "GPU-slots.",
        breaks=_one_job_wastes,
        ties="by number",
        others=(
            Reading(
                "of all jobs together: where Algorithm 1 finds a plan, no other plan takes fewer GPU-slots, at least "
                "for some way of breaking ties between deadlines.",
                _wastes,
                ties="every way",
                plans=plans_of("progressive_filling", OPTIMAL),
            ),
        ),
    ),
    _claim(
        name="powers_of_two_stay_powers_of_two",
        source="ElasticFlow, section 4.1, Algorithm 1, line 15, and section 4.3",
        statement="Every job runs on a power of two of GPUs.",
        reading="the levels of Algorithm 1 are powers of two, and min() is rounded down to one, in every order of "
        "equal deadlines.",
        assumptions="concave curves of which only powers of two are used; the cluster's number of GPUs is a power of "
        "two, as that of the testbed in section 6.1.",
        assumes=_on_a_power_of_two,
        ties="every way",
        instances=lambda rng: _concave_on_four(),
        breaks=partial(_other_numbers, rounded=True),
        scope="up to 2 jobs of concave curves on 4 GPUs, whose first GPU does 1 or 2 iterations per slot, with a "
        "deadline of one slot, or 1 iteration, with one of 1 or 2",
        others=(
            Reading(
                "the levels of Algorithm 1 are powers of two, and min() is that of line 15 as printed, at least in one "
                "order of equal deadlines.",
                partial(_other_numbers, rounded=False),
            ),
        ),
    ),
]


# --- the worked examples: sections 3.2 and 4.1 ------------------------------------------------------


FIGURE_4 = (job_alone(), job_in_company())
SHORTER = tuple(map(diminishing_returns, (6, 4, 3)))
"""The job of section 4.1, with a deadline after each of its running times."""


def _one_each(instance: MinimumSatisfactoryShare) -> SlotPlan:
    """Return the plan that gives each job a GPU to its deadline."""
    return SlotPlan(gpus=(np.arange(instance.horizon) < instance.deadlines[:, None]).astype(np.int64))


def _in_time(instance: MinimumSatisfactoryShare, plan: SlotPlan) -> list[int]:
    """Return the jobs whose work is done by their deadlines."""
    done = [float(curve[gpus].sum()) for curve, gpus in zip(instance.throughputs, plan.gpus, strict=True)]
    return np.flatnonzero(np.array(done) >= instance.iterations).tolist()


def _other_deadlines(instance: MinimumSatisfactoryShare) -> str | None:
    """Describe how other deadlines are met than those of Figure 3."""
    ways = {"by earliest deadline first": edf(instance), "with a GPU each": _one_each(instance)}
    met = {way: _in_time(instance, plan) for way, plan in ways.items()}
    if list(met.values()) == [[0], [0, 1]]:
        return None
    return "in time " + "; ".join(f"{way}: {listed(jobs) if jobs else 'none'}" for way, jobs in met.items())


def _other_shares(instance: MinimumSatisfactoryShare) -> str | None:
    """Describe how Algorithm 1 gives the last job other GPUs than Figure 4 shows."""
    plan = progressive_filling(instance)
    assert plan is not None
    got, shown = plan.gpus[-1].tolist(), [2, 2] if instance.num_jobs == 1 else [1, 4]
    return None if got == shown else f"the last job gets {listed(got)} GPUs"


def _other_usage(instance: MinimumSatisfactoryShare, printed: Mapping[MinimumSatisfactoryShare, int]) -> str | None:
    """Describe how the least GPU time is another than the printed one."""
    least = optimum(instance)
    return None if least == printed[instance] else f"{least} GPU-slots are the least"


_example = partial(Claim, exhaustive=True, assumptions="it is the paper's example.", relaxed="")

_EXAMPLES = [
    _example(
        name="edf_misses_in_figure_3",
        source="ElasticFlow, section 3.2, Figure 3",
        statement="Earliest deadline first, with the cluster as one worker, meets the deadline of job A and misses "
        "that of B; with a GPU for each, both are met.",
        reading="in slots of half a unit.",
        instances=lambda rng: [two_jobs()],
        assumes=only(two_jobs()),
        breaks=_other_deadlines,
        scope="jobs A and B of Figure 3",
        plans=plans_of("edf", OPTIMAL),
    ),
    _example(
        name="shares_of_figure_4",
        source="ElasticFlow, section 4.1, Figure 4",
        statement="The minimum satisfactory share of job C is two GPUs where it is alone, and beside jobs A and B one "
        "GPU in the first slot and four in the second.",
        reading="as Algorithm 1 finds it.",
        instances=lambda rng: FIGURE_4,
        assumes=only(*FIGURE_4),
        breaks=_other_shares,
        scope="job C of Figure 4 alone, and beside jobs A and B",
        plans=plans_of("progressive_filling", OPTIMAL),
        others=(
            Reading(
                "the least GPU time is 4 units for it alone and 5 beside the others, which take 1 and 2.",
                partial(_other_usage, printed=dict(zip(FIGURE_4, (4, 1 + 2 + 5), strict=True))),
            ),
        ),
    ),
    _example(
        name="gpu_time_grows_with_gpus",
        source="ElasticFlow, section 4.1",
        statement="The job that takes a unit of time on one GPU takes 2/3 and 1/2 on two and four: 1, 4/3 and 2 units "
        "of GPU time.",
        reading="as the least GPU time for deadlines after these times, in slots of 1/6 unit.",
        instances=lambda rng: SHORTER,
        assumes=only(*SHORTER),
        breaks=partial(_other_usage, printed=dict(zip(SHORTER, (6, 8, 12), strict=True))),
        scope="the job with deadlines of 1, 2/3 and 1/2 unit",
        plans=plans_of("progressive_filling", OPTIMAL),
    ),
]


CLAIMS: list[Claim] = [*_LINEAR, *_PROGRESSIVE_FILLING, *_EXAMPLES]
