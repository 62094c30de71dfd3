"""What AFS states of two jobs and one free GPU (section 4.2), put to the test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from heuristics.afs.two_job import jct_if_longer_receives, jct_if_shorter_receives, longer_receives, pairwise_rule
from instances.afs.two_job import AfsTwoJob, AfsTwoJobPlan
from instances.base import agree
from validation.gaps import beats
from validation.testing.claims import Claim

__all__ = ["CLAIMS", "if_receives"]


def _pairs(most: int) -> Iterator[AfsTwoJob]:
    """All pairs of running jobs of whole work and throughputs up to ``most``, not equally long, up to numbering."""
    kinds = [
        (work, now, then) for work in range(1, most + 1) for now in range(1, most + 1) for then in range(now, most + 1)
    ]
    pairs = itertools.combinations_with_replacement(kinds, 2)
    for jobs in sorted(pairs, key=lambda jobs: sum(map(sum, jobs))):
        (work, now, _), (other_work, other_now, _) = jobs
        if work * other_now != other_work * now:
            table = np.array(jobs, float)
            yield AfsTwoJob(work=table[:, 0], throughputs=table[:, 1:])


def _in_order(instance: AfsTwoJob) -> bool:
    """Whether the shorter job completes first even if the longer one receives the GPU."""
    a, b = instance.shorter, 1 - instance.shorter
    # Without division, and so exactly.
    (now, _), (_, then) = instance.throughputs[a], instance.throughputs[b]
    return bool(instance.work[a] * then <= instance.work[b] * now)


def _pairs_in_order(most: int) -> Iterator[AfsTwoJob]:
    return filter(_in_order, _pairs(most))


def if_receives(instance: AfsTwoJob, receiver: int) -> float:
    """Average completion time if that job receives the GPU, from following both jobs to their ends, s."""
    return instance.objective(AfsTwoJobPlan(receiver=receiver))


def _formula_1_errs(instance: AfsTwoJob) -> str:
    value, true = jct_if_shorter_receives(instance), if_receives(instance, instance.shorter)
    return "" if agree(value, true) else f"formula (1) is {value:g} s, the jobs complete in {true:g} s on average"


def _formula_2_errs(instance: AfsTwoJob) -> str:
    value, true = jct_if_longer_receives(instance), if_receives(instance, 1 - instance.shorter)
    return "" if agree(value, true) else f"formula (2) is {value:g} s, the jobs complete in {true:g} s on average"


def _difference_errs(instance: AfsTwoJob) -> str:
    formulas = jct_if_shorter_receives(instance) - jct_if_longer_receives(instance)
    true = if_receives(instance, instance.shorter) - if_receives(instance, 1 - instance.shorter)
    if agree(formulas, true):
        return ""
    return f"(1) minus (2) is {formulas:g} s, the longer job's receiving the GPU saves {true:g} s on average"


def _formula_3_does_not_follow(instance: AfsTwoJob) -> str:
    shorter, longer = jct_if_shorter_receives(instance), jct_if_longer_receives(instance)
    if beats("min", longer, shorter) == longer_receives(instance):
        return ""
    return f"(1) is {shorter:g} s and (2) is {longer:g} s, but (3) is {str(longer_receives(instance)).lower()}"


def _formula_3_errs(instance: AfsTwoJob) -> str:
    receiver = pairwise_rule(instance).receiver
    value, other = if_receives(instance, receiver), if_receives(instance, 1 - receiver)
    if not beats("min", other, value):
        return ""
    return f"job {receiver} receives the GPU, for {value:g} s on average; if job {1 - receiver} did, {other:g} s"


_WHOLE_PAIRS = "pairs of running jobs, not equally long, of whole work and throughputs up to 6, up to numbering"
_NUMBERED = "formulas are numbered as in heuristics.afs.two_job"

CLAIMS: list[Claim] = [
    Claim(
        name="formula_1",
        source="AFS, section 4.2, formula (1)",
        statement="What the average completion time of two jobs is if the shorter one receives the free GPU.",
        reading=f"{_NUMBERED}; both jobs are followed to their ends to compare.",
        instances=lambda rng: _pairs(6),
        breaks=_formula_1_errs,
        scope=_WHOLE_PAIRS,
        exhaustive=True,
    ),
    Claim(
        name="formula_2",
        source="AFS, section 4.2, formula (2)",
        statement="What the average completion time of two jobs is if the longer one receives the free GPU.",
        reading=f"{_NUMBERED}; both jobs are followed to their ends to compare.",
        instances=lambda rng: _pairs(6),
        breaks=_formula_2_errs,
        scope=_WHOLE_PAIRS,
        exhaustive=True,
    ),
    Claim(
        name="formula_2_in_order",
        source="AFS, section 4.2, formula (2)",
        statement="What the average completion time of two jobs is if the longer one receives the free GPU.",
        reading=f"{_NUMBERED}; the shorter job completes first even if the longer one receives the GPU.",
        instances=lambda rng: _pairs_in_order(6),
        breaks=_formula_2_errs,
        scope=f"{_WHOLE_PAIRS}, of which the longer does not overtake the shorter",
        exhaustive=True,
    ),
    Claim(
        name="formulas_1_and_2_difference",
        source="AFS, section 4.2, formulas (1) and (2)",
        statement="How much the choice of the receiver changes the average completion time of two jobs.",
        reading=f"{_NUMBERED}; it is (1) minus (2).",
        instances=lambda rng: _pairs(6),
        breaks=_difference_errs,
        scope=_WHOLE_PAIRS,
        exhaustive=True,
    ),
    Claim(
        name="formulas_1_and_2_difference_in_order",
        source="AFS, section 4.2, formulas (1) and (2)",
        statement="How much the choice of the receiver changes the average completion time of two jobs.",
        reading=f"{_NUMBERED}; it is (1) minus (2), if the longer job does not overtake the shorter one.",
        instances=lambda rng: _pairs_in_order(6),
        breaks=_difference_errs,
        scope=f"{_WHOLE_PAIRS}, of which the longer does not overtake the shorter",
        exhaustive=True,
    ),
    Claim(
        name="formula_3_follows",
        source="AFS, section 4.2, formula (3)",
        statement="The longer job should receive the GPU if its relative gain is greater than the shorter one's.",
        reading="formula (3) holds exactly where (2) is less than (1), whatever (1) and (2) are worth. The gain of "
        "the shorter job is relative to its present throughput, that of the longer one to its throughput with the GPU.",
        instances=lambda rng: _pairs(6),
        breaks=_formula_3_does_not_follow,
        scope=_WHOLE_PAIRS,
        exhaustive=True,
    ),
    Claim(
        name="formula_3_least_time",
        source="AFS, section 4.2, formula (3)",
        statement="The receiver that formula (3) names makes the average completion time of the two jobs least.",
        reading="any two running jobs.",
        instances=lambda rng: _pairs(6),
        breaks=_formula_3_errs,
        scope=_WHOLE_PAIRS,
        exhaustive=True,
    ),
    Claim(
        name="formula_3_least_time_in_order",
        source="AFS, section 4.2, formula (3)",
        statement="The receiver that formula (3) names makes the average completion time of the two jobs least.",
        reading="the shorter job completes first even if the longer one receives the GPU.",
        instances=lambda rng: _pairs_in_order(6),
        breaks=_formula_3_errs,
        scope=f"{_WHOLE_PAIRS}, of which the longer does not overtake the shorter",
        exhaustive=True,
    ),
]
