"""Claims of AFS about two jobs and one free GPU (section 3.2 and Appendix B)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from heuristics.afs.two_job import formula_1, formula_2, longer_receives, pairwise_rule
from instances.afs.two_job import AfsTwoJob, AfsTwoJobPlan
from instances.base import agree
from validation.claims.claim import Claim
from validation.kernel.gaps import beats

__all__ = ["CLAIMS", "if_receives"]


def _pairs(most: int, alone: tuple[int, ...] = (0,)) -> Iterator[AfsTwoJob]:
    """Yield all pairs of running jobs of whole work and throughputs up to ``most``, not equally long, up to numbering.

    In slot 2 each runs at one of the throughputs ``alone``; 0 stands for that with the free GPU.
    """
    kinds = [
        (work, now, then, later)
        for work in range(1, most + 1)
        for now in range(1, most + 1)
        for then in range(now, most + 1)
        for later in alone
    ]
    pairs = itertools.combinations_with_replacement(kinds, 2)
    for jobs in sorted(pairs, key=lambda jobs: sum(map(sum, jobs))):
        (work, now, *_), (other_work, other_now, *_) = jobs
        if work * other_now != other_work * now:
            table = np.array(jobs, float)
            yield AfsTwoJob(work=table[:, 0], throughputs=table[:, 1:3], alone=table[:, 3])


def _longer_stays_behind(instance: AfsTwoJob) -> bool:
    """Return whether case (b1) holds: the shorter job completes first even if the longer one receives the GPU."""
    a, b = instance.shorter, 1 - instance.shorter
    # Without division, and so exactly.
    (now, _), (_, then) = instance.throughputs[a], instance.throughputs[b]
    return bool(instance.work[a] * then < instance.work[b] * now)


def if_receives(instance: AfsTwoJob, receiver: int) -> float:
    """Return the average completion time if that job receives the GPU, s, from following both jobs to their ends."""
    return instance.objective(AfsTwoJobPlan(receiver=receiver))


def _difference_errs(instance: AfsTwoJob, number: int) -> str | None:
    """Describe how formula (1) or (2) is not case (a) less case (b1) or (b2), from following both jobs."""
    if _longer_stays_behind(instance) != (number == 1):
        return None
    value = formula_1(instance) if number == 1 else formula_2(instance)
    time = if_receives(instance, instance.shorter)
    true = time - if_receives(instance, 1 - instance.shorter)
    if agree(value, true, size=time):
        return None
    return f"formula ({number}) is {value:g} s, case (a) takes {true:g} s longer on average than case (b{number})"


def _positive(value: float, size: float) -> bool:
    """Return whether a difference is positive by more than rounding."""
    return value > 0 and not agree(value, 0.0, size=size)


def _formula_3_does_not_follow(instance: AfsTwoJob) -> str | None:
    under = instance.apathetic()
    values, size = (formula_1(under), formula_2(under)), if_receives(under, under.shorter)
    if _positive(max(values), size) == longer_receives(under) and agree(*values, size=size):
        return None
    return f"(1) is {values[0]:g} s and (2) is {values[1]:g} s, but (3) is {str(longer_receives(under)).lower()}"


def _formula_3_errs(instance: AfsTwoJob) -> str | None:
    under = instance.apathetic()
    receiver = pairwise_rule(under).receiver
    value, other = if_receives(under, receiver), if_receives(under, 1 - receiver)
    if not beats("min", other, value):
        return None
    return f"job {receiver} receives the GPU, for {value:g} s on average; if job {1 - receiver} did, {other:g} s"


def _both_ways(instance: AfsTwoJob) -> str | None:
    """Describe how formula (3) is true whichever of the jobs counts as the longer."""
    (p, p_more), (q, q_more) = instance.throughputs.tolist()
    # Without division, and so exactly.
    first = (q_more - q) * p > (p_more - p) * q_more
    second = (p_more - p) * q > (q_more - q) * p_more
    return "formula (3) is true whichever job is a" if first and second else None


def _less_later(instance: AfsTwoJob) -> str | None:
    """Describe how a lower throughput in slot 2 turns the decision away from the longer of the jobs in question."""
    behind = _longer_stays_behind(instance)
    number, formula = (1, formula_1) if behind else (2, formula_2)
    job = 1 - instance.shorter if behind else instance.shorter
    alone = instance.left_alone.copy()
    alone[job] /= 2
    before, after = formula(instance), formula(replace(instance, alone=alone))
    if not _positive(before - after if behind else after - before, abs(before) + abs(after)):
        return None
    return f"with half the throughput of job {job} in slot 2, formula ({number}) goes from {before:g} to {after:g} s"


def _formula_4_errs(instance: AfsTwoJob) -> str | None:
    """Describe how formula (4) differs from formula (1) times 2 p'_a / w_a."""
    a, b = instance.shorter, 1 - instance.shorter
    f_a, f_b = (float(instance.throughputs[job, 1] / instance.throughputs[job, 0]) for job in (a, b))
    ratio = float(instance.throughputs[b, 0] / instance.left_alone[b])
    four = (ratio * f_b - 2) * f_a - (ratio - 2)
    scaled = formula_1(instance) * 2 * float(instance.throughputs[a, 1] / instance.work[a])
    return None if agree(four, scaled, size=4 * f_a) else f"(4) is {four:g}, (1) times 2 p'_a / w_a is {scaled:g}"


_WHOLE_PAIRS = "pairs of running jobs, not equally long, of whole work and throughputs up to 4, up to numbering"
_ANY_FUTURE = f"{_WHOLE_PAIRS}, each of which runs at 1 or 5 iterations/s when the other is done"
_KEPT = (
    "two jobs of known length, present at once, on identical GPUs; throughputs do not fall with the GPU. Jobs that are "
    "equally long are left out."
)
_FASTER = "the GPU may do nothing for a job, or more than double its speed, where Appendix B has 1 < f <= 2."


def _not_equally_long(instance: AfsTwoJob) -> bool:
    """Return whether both jobs run, are not equally long, and are not slower with the GPU."""
    (work, other), rates = instance.work.tolist(), instance.throughputs
    runs = bool((instance.work > 0).all() and (rates[:, 0] > 0).all() and (rates[:, 1] >= rates[:, 0]).all())
    return runs and work * rates[1, 0] != other * rates[0, 0]


_claim = partial(
    Claim,
    instances=lambda rng: _pairs(4),
    scope=_WHOLE_PAIRS,
    exhaustive=True,
    assumes=_not_equally_long,
    assumptions=_KEPT,
    relaxed=_FASTER,
)
_with_a_future = partial(_claim, instances=lambda rng: _pairs(4, (1, 5)), scope=_ANY_FUTURE)

CLAIMS: list[Claim] = [
    _with_a_future(
        name="formula_1",
        source="AFS, section 3.2, formula (1)",
        statement="How much longer two jobs take on average in case (a), in which the shorter one receives the GPU, "
        "than in case (b1), in which the longer one does and completes last.",
        reading="p'_2 is the throughput in slot 2, whatever it is. Both jobs are followed to their ends to compare.",
        breaks=partial(_difference_errs, number=1),
    ),
    _with_a_future(
        name="formula_2",
        source="AFS, section 3.2, formula (2)",
        statement="How much longer two jobs take on average in case (a), in which the shorter one receives the GPU, "
        "than in case (b2), in which the longer one does and completes first.",
        reading="p'_2 is the throughput in slot 2, whatever it is. Both jobs are followed to their ends to compare.",
        breaks=partial(_difference_errs, number=2),
    ),
    _claim(
        name="formula_3_follows",
        source="AFS, section 3.2, formula (3)",
        statement="Under the AFS assumption, that (1) or (2) is positive comes down to formula (3).",
        reading="with p'_a2 = p_a1 (footnote 10) and p'_b2 = p'_b1, (1) and (2) are the same number, and it is "
        "positive exactly where (3) is true.",
        breaks=_formula_3_does_not_follow,
    ),
    _claim(
        name="formula_3_least_time",
        source="AFS, section 3.2, formula (3)",
        statement="If (3) is true the longer job has priority for the GPU, and otherwise the shorter one.",
        reading="under the AFS assumption no other receiver makes the average completion time of the two jobs less.",
        breaks=_formula_3_errs,
    ),
    _claim(
        name="formula_3_never_both",
        source="AFS, section 3.3",
        statement="Formula (3) cannot be true both ways.",
        reading="of two jobs, whatever their lengths.",
        breaks=_both_ways,
        assumptions="throughputs do not fall with the GPU.",
    ),
    _with_a_future(
        name="future_jobs_favour_the_last",
        source="AFS, section 3.2",
        statement="Jobs that come later can turn the decision, and in one direction: to the job that is left in slot "
        "2.",
        reading="with a lower throughput of the job that is left if b receives the GPU, formula (1) is not less in "
        "case (b1), in which that is b, and formula (2) not more in case (b2), in which that is a. Tried with half of "
        "it.",
        breaks=_less_later,
    ),
    _with_a_future(
        name="formula_4",
        source="AFS, Appendix B, formula (4)",
        statement="Formula (4) is formula (1) in terms of fractional throughput gains.",
        reading="it is (1) times 2 p'_a1 / w_a, which does not change the sign.",
        breaks=_formula_4_errs,
    ),
]
