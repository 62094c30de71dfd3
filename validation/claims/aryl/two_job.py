"""Claims of Aryl (EuroSys'23 as Lyra) about two elastic jobs (section 5.1, Appendix C)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial

import numpy as np

from heuristics.aryl.two_job import closed_form
from instances.aryl.two_job import ArylTwoJob, ArylTwoJobPlan, smaller_maximum_first, smaller_workload_first
from validation.claims.assumed import only
from validation.claims.claim import Claim, Reading
from validation.claims.plans import OPTIMAL, better_than, optimal_plan, plans_of
from validation.claims.words import listed
from validation.testing.second_opinion import optimum

__all__ = ["CLAIMS"]

Bounds = tuple[tuple[int, int], tuple[int, int]]
"""Minimum and maximum of the one and of the other job."""


def _slack_bounds(num_gpus: int) -> Iterator[Bounds]:
    """Yield bounds with minima of one GPU, which never keep the other job from its maximum."""
    for most_0, most_1 in itertools.product(range(1, num_gpus), repeat=2):
        yield (1, most_0), (1, most_1)


def _any_bounds(num_gpus: int) -> Iterator[Bounds]:
    yield from itertools.product(itertools.combinations_with_replacement(range(1, num_gpus), 2), repeat=2)


def _equal_bounds(num_gpus: int) -> Iterator[Bounds]:
    yield from ((each, each) for each in itertools.combinations_with_replacement(range(1, num_gpus), 2))


def _pairs(most_gpus: int, bounds: Callable[[int], Iterator[Bounds]], *, equal: bool = False) -> Iterator[ArylTwoJob]:
    """Yield all pairs of jobs of 1 to 6 GPU-seconds each within formula (2) that leave a choice.

    Of equal work only with ``equal``.  Formula (2): both minima together are below all GPUs and both maxima above, and
    each maximum is below.
    """
    workloads = [work for work in itertools.product(range(1, 7), repeat=2) if equal or work[0] != work[1]]
    for num_gpus in range(2, most_gpus + 1):
        for work in sorted(workloads, key=sum):
            for (least_0, most_0), (least_1, most_1) in bounds(num_gpus):
                within = least_0 + least_1 < num_gpus < most_0 + most_1 and max(most_0, most_1) < num_gpus
                if within and least_0 < most_0 and least_1 < most_1:
                    yield ArylTwoJob(
                        num_gpus=num_gpus,
                        workloads=np.array(work, float),
                        min_gpus=np.array([least_0, least_1]),
                        max_gpus=np.array([most_0, most_1]),
                    )


def _loses_to_a_split(instance: ArylTwoJob, plan: ArylTwoJobPlan) -> str | None:
    """Describe how another split beats ``plan``."""
    value = instance.objective(plan)
    if (least := better_than(instance, value)) is None:
        return None
    return (
        f"it starts the jobs on {listed(plan.gpus)} GPUs and completes them in {value:g} s on average, "
        f"{listed(optimal_plan(instance).gpus)} GPUs take {least:g} s"
    )


def _favoured(instance: ArylTwoJob) -> int:
    """Return the job that Appendix C's summary gives its maximum."""
    smaller = int(np.argmin(instance.max_gpus))
    if 2 * instance.max_gpus[smaller] <= instance.num_gpus:
        return smaller
    return int(np.argmin(instance.workloads))


def _has_its_maximum(instance: ArylTwoJob) -> bool:
    favoured = _favoured(instance)
    return bool(instance.num_gpus - instance.min_gpus[1 - favoured] >= instance.max_gpus[favoured])


def _rule_errs(instance: ArylTwoJob) -> str | None:
    plan = closed_form(instance)
    assert plan is not None
    return _loses_to_a_split(instance, plan)


def _rule_errs_at_the_maximum(instance: ArylTwoJob) -> str | None:
    return _rule_errs(instance) if _has_its_maximum(instance) else None


def _no_room_for_the_maximum(instance: ArylTwoJob) -> str | None:
    if _has_its_maximum(instance):
        return None
    favoured = _favoured(instance)
    left = instance.num_gpus - instance.min_gpus[1 - favoured]
    return (
        f"the rule gives job {favoured} its maximum of {instance.max_gpus[favoured]} GPUs, the other's minimum "
        f"leaves {left}"
    )


def _neither_first(instance: ArylTwoJob) -> str | None:
    ends = instance.split(instance.splits[0]), instance.split(instance.splits[-1])
    return _loses_to_a_split(instance, min(ends, key=instance.objective))


def _waiting_pays(instance: ArylTwoJob) -> str | None:
    """Describe how jobs complete sooner on average when one waits for the other than on any split."""
    times = [Fraction(int(work), int(most)) for work, most in zip(instance.workloads, instance.max_gpus, strict=True)]
    first = int(times[1] < times[0])
    value = times[first] + times[1 - first] / 2
    best = optimum(instance)
    assert best is not None
    if value >= best:
        return None
    return (
        f"job {first} first and job {1 - first} after it, each on its maximum, take {float(value):g} s on average, "
        f"both at once {float(best):g} s or more"
    )


def _smaller_first(instance: ArylTwoJob) -> ArylTwoJobPlan:
    """Return the split that gives the job of the smaller workload all that the bounds allow."""
    smaller = int(np.argmin(instance.workloads))
    return instance.split(instance.splits[-1 if smaller == 0 else 0])


def _smaller_first_errs(instance: ArylTwoJob) -> str | None:
    return _loses_to_a_split(instance, _smaller_first(instance))


def _smaller_first_is_best(instance: ArylTwoJob) -> str | None:
    if _smaller_first_errs(instance):
        return None
    return f"the smaller job first, {listed(_smaller_first(instance).gpus)} GPUs, is as good as any split"


WITHIN = "linear scaling, whole GPUs, no queueing, the survivor at its maximum, and formula (2)."
"""Assumptions of Appendix C."""


def _within_formula_2(instance: ArylTwoJob) -> bool:
    """Return whether both jobs have work, and formula (2) holds: minima below all GPUs, maxima above, each below."""
    least, most = instance.min_gpus, instance.max_gpus
    bounds = least.sum() < instance.num_gpus < most.sum() and most.max() < instance.num_gpus
    return bool((instance.workloads > 0).all() and bounds and (least < most).all())


def _equal_within_formula_2(instance: ArylTwoJob) -> bool:
    """Return whether two jobs of equal minima and maxima have different work, and formula (2) holds."""
    alike = all(len(set(bound.tolist())) == 1 for bound in (instance.min_gpus, instance.max_gpus))
    return alike and len(set(instance.workloads.tolist())) == 2 and _within_formula_2(instance)


_claim = partial(Claim, exhaustive=True, assumes=_within_formula_2, ties="by number", assumptions=WITHIN, relaxed="")
_example = partial(_claim, scope="the example", assumptions="the printed data; a worker counts as a GPU.")

CLAIMS: list[Claim] = [
    _claim(
        name="two_job_rule",
        source="Aryl, Appendix C, the summary after formula (9)",
        statement="The job of the smaller maximum should have its maximum where that is at most half of all GPUs, and "
        "otherwise the job of the smaller workload.",
        reading="minima of one GPU, which keep neither job from its maximum.",
        instances=lambda rng: _pairs(8, _slack_bounds, equal=True),
        breaks=_rule_errs,
        scope="pairs of jobs of 1 to 6 GPU-seconds on up to 8 GPUs within formula (2)",
        others=(
            Reading(
                "any minima that leave the favoured job its maximum.",
                breaks=_rule_errs_at_the_maximum,
                instances=lambda rng: _pairs(6, _any_bounds, equal=True),
                scope="pairs of jobs of 1 to 6 GPU-seconds on up to 6 GPUs within formula (2)",
                assumes=_within_formula_2,
            ),
        ),
    ),
    _claim(
        name="two_job_rule_with_minima",
        source="Aryl, Appendix C, formula (2) and the summary after formula (9)",
        statement="Formula (2) is all that the rule for two jobs asks of their minima.",
        reading="the favoured job gets its maximum, as printed: that leaves the other its minimum.",
        instances=lambda rng: _pairs(8, _any_bounds),
        breaks=_no_room_for_the_maximum,
        scope="pairs of jobs of different work, 1 to 6 GPU-seconds, on up to 8 GPUs within formula (2)",
        assumptions=WITHIN + " The bound that formulas (5c) and (6c) take from the minima is left out of the summary.",
        plans=plans_of("closed_form"),
        others=(
            Reading(
                "the favoured job gets as much as the other's minimum leaves, and no split is better.",
                _rule_errs,
                plans=plans_of("closed_form", OPTIMAL),
            ),
            Reading(
                "minima that keep the favoured job from its maximum are not meant; with the others no split is better.",
                _rule_errs_at_the_maximum,
                instances=lambda rng: _pairs(6, _any_bounds),
                scope="pairs of jobs of different work, 1 to 6 GPU-seconds, on up to 6 GPUs within formula (2)",
                assumes=_within_formula_2,
            ),
        ),
    ),
    _claim(
        name="two_job_extremes",
        source="Aryl, Appendix C, after formula (9)",
        statement="Within formula (9) the average completion time rises and then falls in the GPUs of one job, so that "
        "it is least at an end of their interval.",
        reading="no split in between is better than both of giving all that the bounds allow to one job and to the "
        "other; so, too, within formula (8), where the text has it fall throughout.",
        instances=lambda rng: _pairs(6, _any_bounds, equal=True),
        breaks=_neither_first,
        scope="pairs of jobs of 1 to 6 GPU-seconds on up to 6 GPUs within formula (2)",
        assumptions=WITHIN + " Minima may bind.",
    ),
    _claim(
        name="two_job_neither_waits",
        source="Aryl, Appendix C, problem formulation",
        statement="Within formula (2) neither job waits for GPUs, so that the average completion time is that of "
        "running times alone.",
        reading="on no pair of jobs is it better to let one wait until the other is done than to run both at once, on "
        "the best split.",
        by="the library: the paper infers that neither waits, and does not say that waiting cannot pay",
        instances=lambda rng: _pairs(8, _any_bounds, equal=True),
        breaks=_waiting_pays,
        scope="pairs of jobs of 1 to 6 GPU-seconds on up to 8 GPUs within formula (2)",
        ties="",
        plans=plans_of(OPTIMAL),
        others=(
            Reading(
                "the same, where minima are one GPU.",
                _waiting_pays,
                lambda rng: _pairs(8, _slack_bounds, equal=True),
                scope="pairs of jobs of 1 to 6 GPU-seconds on up to 8 GPUs within formula (2), minima of one GPU",
                assumes=_within_formula_2,
            ),
        ),
    ),
    _example(
        name="two_job_smaller_first",
        source="Aryl, section 5.1, Tables 2 and 3",
        statement="With the jobs of Table 2 it is best to satisfy job B first, whose running time is the shorter.",
        reading="of all splits, not of the three in Table 3 alone.",
        instances=lambda rng: [smaller_workload_first()],
        assumes=only(smaller_workload_first()),
        breaks=_smaller_first_errs,
        others=(
            Reading(
                "of any two jobs of equal minima and equal maxima, the one of the smaller workload.",
                breaks=_smaller_first_errs,
                instances=lambda rng: _pairs(10, _equal_bounds),
                scope="pairs of jobs of different work, 1 to 6 GPU-seconds, on up to 10 GPUs within formula (2)",
                assumes=_equal_within_formula_2,
                by="the paper in Appendix C, whose summary says so",
            ),
        ),
    ),
    _example(
        name="two_job_smaller_first_not_always",
        source="Aryl, section 5.1, Table 4",
        statement="With the jobs of Table 4 it is not best to satisfy job B first, although its running time is the "
        "shorter.",
        reading="another split has a smaller average completion time.",
        instances=lambda rng: [smaller_maximum_first()],
        assumes=only(smaller_maximum_first()),
        breaks=_smaller_first_is_best,
    ),
]
