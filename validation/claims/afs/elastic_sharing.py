"""Claims of AFS about many jobs: Algorithm 1 (section 3.3), and comparisons with other schedulers.

Instances are small whole numbers, which are followed in fractions.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np

from heuristics.afs.elastic_sharing import (
    afs_l,
    afs_p,
    max_min,
    optimus,
    srsf,
    srsf_elastic,
    srsf_maximum,
    srtf,
    srtf_elastic,
    srtf_maximum,
    tiresias_l,
    tiresias_l_maximum,
)
from heuristics.afs.preferences import hand_out, preference_cycles
from instances.afs.elastic_sharing import HOUR, ElasticSharing, Schedule, appendix_a, appendix_a_sequel, generate
from instances.base import agree
from validation.claims.assumed import concave, only
from validation.claims.claim import Claim, OnAverage, Reading
from validation.claims.plans import OPTIMAL, better_than, plans_of
from validation.claims.words import listed
from validation.kernel.gaps import beats
from validation.testing.second_opinion import optimum

__all__ = ["CLAIMS"]


Scheduler = Callable[[ElasticSharing], Schedule | None]
"""A heuristic."""


def _plan(scheduler: Scheduler, instance: ElasticSharing) -> Schedule:
    plan = scheduler(instance)
    assert plan is not None
    return plan


# --- instances -----------------------------------------------------------------------------------

Curves = Callable[[int, int], Iterator[tuple[int, ...]]]
"""Throughput curves, without that of no GPUs, from the number of GPUs and the most that one GPU adds."""


def _concave(num_gpus: int, most: int) -> Iterator[tuple[int, ...]]:
    """Yield whole curves on which each further GPU adds no more than the one before."""
    for steps in itertools.combinations_with_replacement(range(most, -1, -1), num_gpus):
        if steps[0]:
            yield tuple(itertools.accumulate(steps))


def _linear(num_gpus: int, most: int) -> Iterator[tuple[int, ...]]:
    for step in range(1, most + 1):
        yield tuple(range(step, step * num_gpus + 1, step))


def _sublinear(num_gpus: int, most: int) -> Iterator[tuple[int, ...]]:
    """Yield concave curves on which every GPU helps, and the second less than the first."""
    for curve in _concave(num_gpus, most):
        steps = np.diff(curve, prepend=0)
        if steps[-1] and (num_gpus == 1 or steps[1] < steps[0]):
            yield curve


def _rising(num_gpus: int, most: int) -> Iterator[tuple[int, ...]]:
    """Yield concave curves on which every GPU helps, the second up to as much as the first (Appendix B: 1 < f <= 2)."""
    for curve in _concave(num_gpus, most):
        if np.diff(curve, prepend=0)[-1]:
            yield curve


def _sharings(
    jobs: tuple[int, ...], gpus: tuple[int, ...], most_work: int, curves: Curves, most_step: int
) -> Iterator[ElasticSharing]:
    """Yield jobs that are there at once, of whole work and curves, up to numbering; fewest jobs and GPUs first."""
    for num_jobs, num_gpus in itertools.product(jobs, gpus):
        kinds = [(work, *curve) for work in range(1, most_work + 1) for curve in curves(num_gpus, most_step)]
        for chosen in sorted(
            itertools.combinations_with_replacement(kinds, num_jobs), key=lambda chosen: sum(map(sum, chosen))
        ):
            table = np.array(chosen, float)
            throughputs = np.pad(table[:, 1:], ((0, 0), (1, 0)))
            yield ElasticSharing(num_gpus=num_gpus, work=table[:, 0], throughputs=throughputs)


def _triples(most_throughput: int, most_work: int, *, ordinary: bool = False) -> Iterator[ElasticSharing]:
    """Yield three jobs of four that are not equally long on one GPU each, and gain by no more than a second GPU.

    Ordinary ones gain by every GPU, less than by the one before, and no two gains of a triple by the second are equal.
    """
    kinds = [
        (work, one, two)
        for work in range(1, most_work + 1)
        for one in range(1, most_throughput + 1)
        for two in range(one, 2 * one + 1)
    ]
    # Shortest first: the numbering does not matter.
    kinds.sort(key=lambda kind: Fraction(kind[0], kind[1]))
    triples = itertools.combinations(kinds, 3)
    for chosen in sorted(triples, key=lambda chosen: sum(map(sum, chosen))):
        work, one, two = np.array(chosen, float).T
        if ordinary and not (len({*((two - one) / one), *((two - one) / two)}) == 6 and (two < 2 * one).all()):
            continue
        if len(set(work / one)) == 3:
            if ordinary:
                # Twice as fast with twice the work, so that there is room for whole gains of a third and a fourth GPU.
                work, one, two = 2 * work, 2 * one, 2 * two
            rest = (2.0, 3.0) if ordinary else (0.0, 0.0)
            table = np.stack([0 * one, one, two, *(two + more for more in rest)], axis=1)
            yield ElasticSharing(num_gpus=4, work=work, throughputs=table)


def _together(instance: ElasticSharing) -> bool:
    """Return whether all jobs are there at once and have work, on concave curves."""
    return not instance.arrivals.any() and bool((instance.work > 0).all()) and concave(instance.throughputs)


def _two_together(instance: ElasticSharing) -> bool:
    """Return whether two jobs are there at once and have work, on concave curves."""
    return instance.num_jobs == 2 and _together(instance)


def _two_less_than_linear(instance: ElasticSharing) -> bool:
    """Return whether two jobs are there at once and have work; every GPU helps, the second less than the first."""
    return instance.num_jobs == 2 and _less_than_linear(instance)


def _less_than_linear(instance: ElasticSharing) -> bool:
    """Return whether all jobs are there at once and have work; every GPU helps, the second less than the first."""
    gains = np.diff(instance.throughputs, axis=1)
    less = gains[:, 1] < gains[:, 0] if instance.num_gpus > 1 else np.True_
    return _together(instance) and bool((gains > 0).all() and np.all(less))


def _every_gpu_helps(instance: ElasticSharing) -> bool:
    """Return whether all jobs are there at once and have work, on concave curves to which every GPU adds."""
    return _together(instance) and concave(instance.throughputs, strictly_rising=True)


def _three_together(instance: ElasticSharing) -> bool:
    """Return whether three jobs are there at once and have work, on concave curves."""
    return instance.num_jobs == 3 and _together(instance)


def _three_every_gpu_helps(instance: ElasticSharing) -> bool:
    """Return whether three jobs are there at once and have work, on concave curves to which every GPU adds."""
    return instance.num_jobs == 3 and _every_gpu_helps(instance)


def _linear_jobs(instance: ElasticSharing) -> bool:
    """Return whether all jobs have work and do as much on each further GPU as on the first."""
    gains = np.diff(instance.throughputs, axis=1)
    return bool((instance.work > 0).all() and (gains > 0).all() and (gains == gains[:, :1]).all())


def _asking(instance: ElasticSharing) -> bool:
    """Return whether all jobs have work and ask for GPUs, on concave curves."""
    return bool((instance.work > 0).all() and (instance.requests > 0).all()) and concave(instance.throughputs)


_IDLE_GPUS = "a further GPU may add nothing, where Appendix B has 1 < f."

_claim = partial(Claim, exhaustive=True, relaxed="", assumes=_together)


# --- two jobs: section 3.2 -----------------------------------------------------------------------


def _follow(instance: ElasticSharing, shares: tuple[int, ...]) -> Fraction:
    """Return the average completion time of two jobs that start on ``shares``, s; the last one left has all GPUs."""
    work = [Fraction(w) for w in instance.work.tolist()]
    rates = [Fraction(instance.throughputs[job, share]) for job, share in enumerate(shares)]
    first = min(work[job] / rate for job, rate in enumerate(rates) if rate)
    rest = (
        (work[job] - first * rates[job]) / Fraction(instance.throughputs[job, instance.num_gpus]) for job in range(2)
    )
    # One of them is done, with 0 left.
    return first + sum(rest, Fraction(0)) / 2


def _grown(instance: ElasticSharing) -> set[tuple[int, int]]:
    """Return the shares to which the rule of section 3.2 can lead, whichever way ties go."""
    work = [Fraction(w) for w in instance.work.tolist()]
    tables = [[Fraction(rate) for rate in table] for table in instance.throughputs.tolist()]
    found = {(0, 0)}
    for num_gpus in range(1, instance.num_gpus + 1):
        found = {
            (shares[0] + (receiver == 0), shares[1] + (receiver == 1))
            for shares in found
            for receiver in _receivers(work, tables, shares, num_gpus)
        }
    return found


def _receivers(work: list[Fraction], tables: list[list[Fraction]], shares: tuple[int, int], num_gpus: int) -> set[int]:
    """Return the jobs that may receive the last of ``num_gpus`` GPUs by formulas (1) and (2), once the others are."""
    now = [tables[job][shares[job]] for job in (0, 1)]
    then = [tables[job][shares[job] + 1] for job in (0, 1)]
    whole = [tables[job][num_gpus] for job in (0, 1)]
    # The first GPU goes to the shorter job; later, a job without GPUs does not complete first.
    pace = now if any(now) else then
    ends = {job: work[job] / pace[job] for job in (0, 1) if pace[job]}
    receivers = set()
    for a in (job for job in ends if ends[job] == min(ends.values())):
        b = 1 - a
        if not any(now):
            receivers.add(a)
            continue
        if work[a] / now[a] < work[b] / then[b]:
            less = then[b] / now[a] - now[b] / then[a]
            difference = work[a] / then[a] - work[a] / now[a] + work[a] / (2 * whole[b]) * less
        else:
            if_a = (work[b] - now[b] * work[a] / then[a]) / (2 * whole[b])
            if_b = (work[a] - now[a] * work[b] / then[b]) / (2 * whole[a])
            difference = work[a] / then[a] - work[b] / then[b] + if_a - if_b
        receivers |= {b} if difference > 0 else {a} if difference < 0 else {a, b}
    return receivers


def _rule_loses(instance: ElasticSharing, fewest: int = 0) -> str | None:
    """Describe how other shares of all GPUs beat those that the rule of section 3.2 leads to, whichever way ties go.

    All shares are tried here, not by the reference: in one reading each job has ``fewest`` GPUs or more at first.
    """
    splits = [(share, instance.num_gpus - share) for share in range(fewest, instance.num_gpus + 1 - fewest)]
    grown, best = (min(shares, key=lambda split: _follow(instance, split)) for shares in (_grown(instance), splits))
    if min(grown) < fewest:
        return None
    value, least = _follow(instance, grown), _follow(instance, best)
    if value == least:
        return None
    return (
        f"the rule starts the jobs on {listed(grown)} GPUs and completes them in {value} s on average, {listed(best)} "
        f"GPUs take {least} s"
    )


def _greedier_is_not_sooner(instance: ElasticSharing) -> str | None:
    """Describe how AFS-L is as good as shortest remaining time first, for one of the ways to read it."""
    greedy = instance.objective(_plan(srtf, instance))
    for order in ((0, 1), (1, 0)):
        # Of two jobs, that the earlier is the shorter is that the later is in the other order.
        value = instance.objective(_plan(partial(afs_l, order=order), instance))
        if not beats("min", greedy, value):
            return f"shortest remaining time first takes {greedy:g} s, AFS-L {value:g} s"
    return None


def _greedily() -> ElasticSharing:
    """Return jobs A and B of Appendix A, but A does not quite scale linearly, so that AFS-L's ties do not matter."""
    first = appendix_a()
    return replace(first, throughputs=np.array([[0.0, 1.0, 2 / 1.05], first.throughputs[1]]))


_TWO_JOBS = [
    _claim(
        name="two_job_rule_least_time",
        assumes=_two_together,
        ties="every way",
        source="AFS, section 3.2",
        statement="With work and throughputs known, repeating the choice by formulas (1) and (2) from one GPU on "
        "determines the optimal shares of two jobs.",
        reading="curves are concave, and ties may go either way. The job that is left has all GPUs.",
        instances=lambda rng: _sharings((2,), (2, 3), 3, _concave, 4),
        breaks=_rule_loses,
        scope="2 jobs of whole work up to 3, on 2 or 3 GPUs with concave curves whose steps are at most 4",
        assumptions="two jobs that are there at once, of known length, and no others; identical GPUs; shares change "
        "when a job completes, at no cost.",
        relaxed=_IDLE_GPUS,
        plans=plans_of("two_job_rule", OPTIMAL),
        others=(
            Reading(
                "every further GPU helps, and the second adds less than the first (Appendix B: 1 < f <= 2).",
                _rule_loses,
                lambda rng: _sharings((2,), (2, 3), 3, _sublinear, 5),
                relaxed="",
                scope="2 jobs of whole work up to 3, on 2 or 3 GPUs with such curves whose steps are at most 5",
                assumes=_two_less_than_linear,
            ),
            Reading(
                "the optimum is that among shares of at least one GPU for each job, where the rule leads to such.",
                partial(_rule_loses, fewest=1),
            ),
        ),
    ),
    _claim(
        name="afs_l_decreasing_contention",
        assumes=only(_greedily()),
        ties="every way",
        source="AFS, section 3.2",
        statement="Where jobs start together and no others arrive, strategies that act more greedily may do better "
        "than AFS.",
        reading="there are two such jobs, which complete sooner on average by shortest remaining time first than by "
        "AFS-L, whichever way its ties go: 2 h each on one GPU, and 1.05 h and 1.5 h on two.",
        instances=lambda rng: [_greedily()],
        breaks=_greedier_is_not_sooner,
        scope="two jobs on 2 GPUs, those of Appendix A but for 0.05 h",
        assumptions="contention decreases: jobs are there at once, and none arrive. The AFS assumption is broken on "
        "purpose, as the text says.",
    ),
]


# --- Appendix A ----------------------------------------------------------------------------------


def _srtf_not_optimal(instance: ElasticSharing) -> str | None:
    value, equal = (instance.objective(_plan(rule, instance)) / HOUR for rule in (srtf, max_min))
    best = optimum(instance)
    assert best is not None
    least = float(best) / HOUR
    if agree(value, least) and agree(equal, 2.0):
        return None
    return f"shortest remaining time first takes {value:g} h, {least:g} h are possible; equal shares take {equal:g} h"


def _not_1_25_hours(instance: ElasticSharing) -> str | None:
    value = instance.objective(_plan(srtf, instance)) / HOUR
    return None if agree(value, 1.25) else f"A completes after 1 h, and B 1.5 h after A: {value:g} h on average"


def _not_1_25_hours_of_running(instance: ElasticSharing) -> str | None:
    value = float((instance.work / instance.throughputs[:, -1]).mean()) / HOUR
    return None if agree(value, 1.25) else f"the jobs run for {value:g} h on average"


def _equal_shares_lose(instance: ElasticSharing) -> str | None:
    equal, short = (instance.objective(_plan(rule, instance)) / HOUR for rule in (max_min, srtf))
    if beats("min", equal, short):
        return None
    x = 2 / float(instance.throughputs[-1, 2])
    return (
        f"with {instance.num_jobs - 2} future jobs and x = {x:g} h, equal shares take {equal:g} h on average, shortest "
        f"remaining time first {short:g} h"
    )


def _sequels(numbers: range, parts: range) -> Iterator[ElasticSharing]:
    for number, part in itertools.product(numbers, parts):
        yield appendix_a_sequel((100 + part) / 100, num_future=number)


def _is_sequel(instance: ElasticSharing) -> bool:
    """Return whether the jobs are A and B, and others that arrive as the appendix has it for an x of 1 to 2 h."""
    x = round(2 / float(instance.throughputs[-1, 2]), 9)
    return 1 < x < 2 and instance == appendix_a_sequel(x, num_future=instance.num_jobs - 2)


_of_appendix_a = partial(
    _claim,
    source="AFS, Appendix A",
    instances=lambda rng: [appendix_a()],
    scope="the jobs A and B on 2 GPUs",
    assumes=only(appendix_a()),
    assumptions="2 GPUs, the appendix's jobs and times, shares that change at no cost.",
)

_APPENDIX_A = [
    _of_appendix_a(
        name="appendix_a_srtf_optimal",
        statement="Of the jobs A and B, shortest remaining time first is optimal; equal shares take 2 h on average.",
        reading="of schedules that change shares at completions.",
        breaks=_srtf_not_optimal,
    ),
    _of_appendix_a(
        name="appendix_a_1_25_hours",
        statement="The optimal strategy for the jobs A and B achieves an average JCT of 1.25 h.",
        reading="a job's completion time counts from its submission, so that B's includes the hour for which it waits.",
        breaks=_not_1_25_hours,
        plans=plans_of("srtf"),
        others=(Reading("what is averaged is how long each job runs.", _not_1_25_hours_of_running),),
    ),
    _of_appendix_a(
        name="appendix_a_sequel",
        statement="If identical jobs arrive one after the other, equal shares achieve a smaller average JCT than "
        "shortest remaining time first, whatever x.",
        reading="the sequence is long, 20 or 21 jobs after A and B, and x anything from 1.01 to 1.99 h. Where there "
        "are more jobs than GPUs, equal shares serve those that came first.",
        instances=lambda rng: _sequels(range(20, 22), range(1, 100)),
        breaks=_equal_shares_lose,
        scope="x from 1.01 to 1.99 h in steps of 0.01 h",
        assumes=_is_sequel,
        ties="by number",
        relaxed="the appendix assumes no more jobs than GPUs, which its own sequence does not keep; who waits then is "
        "a choice of the reading.",
        plans=plans_of("max_min", "srtf"),
        others=(
            Reading(
                "the same, and x is 1.05 h or more.",
                _equal_shares_lose,
                lambda rng: _sequels(range(20, 22), range(5, 100)),
                scope="x from 1.05 to 1.99 h in steps of 0.01 h",
                assumes=_is_sequel,
            ),
            Reading(
                "there are 1 to 10 jobs after A and B.",
                _equal_shares_lose,
                lambda rng: _sequels(range(1, 11), range(5, 100, 5)),
                scope="x from 1.05 to 1.95 h in steps of 0.05 h",
                assumes=_is_sequel,
            ),
        ),
    ),
]


# --- Algorithm 1: section 3.3 and Appendix C -----------------------------------------------------


def _stage_one_errs(instance: ElasticSharing) -> str | None:
    """Describe how AFS-L's first shares are not one GPU each in order of length before anyone's second."""
    shares = _plan(afs_l, instance).shares[0]
    lengths = instance.work / instance.throughputs[:, 1]
    served = np.sort(lengths[shares > 0])
    number = min(instance.num_jobs, instance.num_gpus)
    if len(served) == number and (served == np.sort(lengths)[:number]).all():
        return None
    return (
        f"on one GPU the jobs take {listed(f'{length:g}' for length in lengths)} s; of {instance.num_gpus} GPUs they "
        f"get {listed(shares)}"
    )


def _longer_wins(instance: ElasticSharing, shorter: int, longer: int) -> bool:
    """Return whether formula (3) holds for two jobs on one GPU each."""
    (_, now, then), (_, longer_now, longer_then) = (
        [Fraction(rate) for rate in instance.throughputs[job, :3].tolist()] for job in (shorter, longer)
    )
    return (longer_then - longer_now) / longer_then > (then - now) / now


def _appendix_c_fails(instance: ElasticSharing) -> str | None:
    a, b, c = sorted(range(3), key=lambda job: Fraction(int(instance.work[job]), int(instance.throughputs[job, 1])))
    if _longer_wins(instance, a, b) and _longer_wins(instance, b, c) and not _longer_wins(instance, a, c):
        return f"job {b} wins against job {a}, job {c} against job {b}, but job {c} not against job {a}"
    return None


def _goes_round(instance: ElasticSharing) -> str | None:
    """Describe the shares of AFS-L at which the comparison goes round in a circle.

    Quotients of small whole numbers are equal as floating-point numbers if and only if they are equal.
    """
    for shares in hand_out(instance):
        for first, second, third in preference_cycles(instance, shares, longest=3):
            return (
                f"on {listed(shares)} GPUs, job {first} is preferred to job {second}, job {second} to job {third}, "
                f"and job {third} to job {first}"
            )
    return None


_MANY_KEPT = "lengths are known; identical GPUs; throughputs concave. Jobs are there at once."

_MANY_JOBS = [
    _claim(
        name="afs_l_stage_one",
        assumes=_less_than_linear,
        ties="by number",
        source="AFS, section 3.3",
        statement="In stage one AFS-L allocates one GPU each in increasing order of job lengths; only when each job "
        "has one does it go on.",
        reading="throughput grows less than linearly: every further GPU helps, and the second adds less than the "
        "first.",
        instances=lambda rng: _sharings((2, 3), (2, 3), 3, _sublinear, 3),
        breaks=_stage_one_errs,
        scope="2 or 3 jobs of whole work up to 3, on 2 or 3 GPUs with concave curves whose steps are at most 3",
        assumptions=_MANY_KEPT,
        others=(
            Reading(
                "the second GPU may add as much as the first (Appendix B: f <= 2).",
                _stage_one_errs,
                lambda rng: _sharings((2, 3), (2, 3), 3, _rising, 3),
                scope="2 or 3 jobs of whole work up to 3, on 2 or 3 GPUs with such curves whose steps are at most 3",
                assumes=_every_gpu_helps,
                plans=plans_of("afs_l"),
            ),
        ),
    ),
    _claim(
        name="formula_3_transitive",
        assumes=_three_together,
        source="AFS, Appendix C",
        statement="Formula (3) is transitive.",
        reading="of three jobs, each longer than the one before: if the second wins against the first by formula (3), "
        "and the third against the second, then the third wins against the first, as in the proof.",
        instances=lambda rng: _triples(5, 2),
        breaks=_appendix_c_fails,
        scope="three jobs, not equally long, of whole work up to 2, whose throughputs are up to 5 on a GPU and at most "
        "twice that on two",
        assumptions="lengths are known; a second GPU adds no more than the first.",
        relaxed=_IDLE_GPUS,
    ),
    _claim(
        name="priority_comparison_transitive",
        assumes=_three_every_gpu_helps,
        ties="by number",
        source="AFS, section 3.3 and Appendix C",
        statement="The priority comparison of jobs is transitive, so that there is a job of top priority.",
        reading="at none of the shares through which AFS-L hands out its GPUs does the comparison of Algorithm 1, in "
        "which the shorter job wins where formula (3) is false, go round in a circle. Appendix C proves less: see "
        "formula_3_transitive.",
        instances=lambda rng: _sharings((3,), (2, 3), 2, _rising, 3),
        breaks=_goes_round,
        scope="three jobs of whole work up to 2, on 2 or 3 GPUs with such curves whose steps are at most 3",
        assumptions=f"{_MANY_KEPT} Every GPU helps.",
        others=(
            Reading(
                "the same where nothing is equal: three jobs of different lengths on 4 GPUs, each of which helps, less "
                "than the one before, and whose gains by the second all differ.",
                _goes_round,
                lambda rng: _triples(7, 2, ordinary=True),
                scope="three such jobs of whole work up to 4, whose throughputs are up to 14 on a GPU",
                assumes=_three_every_gpu_helps,
            ),
        ),
    ),
]


# --- shortest first on linear jobs: sections 2.1 and 6 -------------------------------------------


def _linear_arriving() -> Iterator[ElasticSharing]:
    """Yield jobs that take 1 to 3 s on all GPUs and arrive in the first 3 s, at whole seconds."""
    for num_jobs, num_gpus in itertools.product((2, 3), (1, 2, 3)):
        kinds = list(itertools.product(range(4), range(1, 4)))
        for chosen in itertools.combinations_with_replacement(kinds, num_jobs):
            arrivals, spans = np.array(chosen, float).T
            per_gpu = np.arange(1.0, num_jobs + 1)
            yield ElasticSharing(
                num_gpus=num_gpus,
                work=spans * per_gpu * num_gpus,
                throughputs=per_gpu[:, None] * np.arange(num_gpus + 1),
                arrivals=arrivals,
            )


def _srtf_loses(instance: ElasticSharing) -> str | None:
    value = instance.objective(_plan(srtf, instance))
    if (least := better_than(instance, value)) is None:
        return None
    return f"shortest remaining time first takes {value:g} s on average, {least:g} s are possible"


_LINEAR = [
    _claim(
        name="srtf_least_time_linear",
        assumes=_linear_jobs,
        ties="by number",
        source="AFS, sections 2.1 and 6",
        statement="Shortest remaining time first minimises the average JCT if throughput scales linearly.",
        reading="up to all GPUs, for which each job asks. Jobs may arrive over time.",
        instances=lambda rng: _linear_arriving(),
        breaks=_srtf_loses,
        scope="2 or 3 jobs that take 1 to 3 s on all of 1 to 3 GPUs and arrive within 3 s, at whole seconds",
        assumptions="lengths are known; identical GPUs; shares change at no cost.",
    )
]


# --- against other schedulers: sections 5.2 and 5.5 ----------------------------------------------

TRACES = 12
"""Traces on which schedulers are compared, in each setting."""


class Contention(NamedTuple):
    """Mean gaps between arrivals, s, and what they are in words, where curves are sublinear and nearly linear."""

    gaps: tuple[float, float]
    sublinear: str
    linear_gaps: tuple[float, float]
    linear: str


_ANY_CONTENTION = Contention(
    (500, 2000),
    "every 500 to 2,000 s, under moderate to heavy contention",
    (900, 900),
    "every 900 s, under heavy contention",
)
_MODERATE = Contention((3000, 4000), "every 3,000 to 4,000 s", (3000, 4000), "as often")
_HEAVY = Contention((400, 500), "every 400 to 500 s", (400, 500), "as often")


def _traces(rng: np.random.Generator, *, loss: float, gaps: tuple[float, float]) -> Iterator[ElasticSharing]:
    """Yield jobs that arrive over time, with a mean gap of ``gaps`` s between them, and ask for GPUs."""
    for _ in range(TRACES):
        yield generate(
            rng,
            num_jobs=300,
            num_gpus=16,
            arrival_gap=float(rng.uniform(*gaps)),
            requests=True,
            reallocation="any_time",
            loss=loss,
        )


def _times_sooner(instance: ElasticSharing, scheduler: Scheduler, other: Scheduler) -> float:
    value, theirs = (instance.objective(_plan(rule, instance)) for rule in (scheduler, other))
    return theirs / value


COMPARED_ON = {
    "2.2": "two recorded traces (Figure 2), and has max-min shares ahead of SRTF and SRSF on 5 of 11",
    "5.2": "each of 11 recorded traces (Figure 5)",
    "5.2 and Figure 6": "each of 11 recorded traces, on one of which it is the other way round for SRTF and SRSF",
    "5.5": "recorded traces (Figure 11)",
}
"""What the paper compares averages on, by where it does."""


def _sooner(
    scheduler: Scheduler,
    other: Scheduler,
    title: str,
    than: str,
    section: str,
    *,
    contention: Contention = _ANY_CONTENTION,
    where: str = "",
) -> Claim:
    average = OnAverage(partial(_times_sooner, scheduler=scheduler, other=other), "sooner")
    return Claim(
        name=f"{scheduler.__name__}_sooner_than_{other.__name__}",
        source=f"AFS, section {section}",
        statement=f"{title} completes jobs sooner on average than {than}{where}.",
        reading="on average over random traces of 300 jobs on 16 GPUs: jobs that scale up to the power of 0.5 to 1 of "
        f"their GPUs and arrive {contention.sublinear}. The paper compares averages on {COMPARED_ON[section]}.",
        instances=partial(_traces, loss=0.5, gaps=contention.gaps),
        breaks=average,
        scope=f"{TRACES} traces of jobs that ask for up to their maximum",
        assumes=_asking,
        ties="by number",
        assumptions="jobs arrive over time and ask for GPUs; identical GPUs; shares change at no cost.",
        relaxed="traces, curves and requests are random, not the paper's.",
        others=(
            Reading(
                "the same of jobs that scale up to the power of 0.9 to 1 of their GPUs and arrive "
                f"{contention.linear}.",
                average,
                partial(_traces, loss=0.1, gaps=contention.linear_gaps),
                scope=f"{TRACES} traces of jobs that ask for up to their maximum",
                assumes=_asking,
            ),
        ),
    )


_IN_2A, _IN_2B = " under moderate contention (Figure 2a)", " under heavy contention (Figure 2b)"
_MOST = "the same where each job asks for the most GPUs that it can use"

_COMPARED = [
    _sooner(afs_l, srtf, "AFS-L", "shortest remaining time first", "5.2"),
    _sooner(afs_l, srsf, "AFS-L", "shortest remaining service first", "5.2"),
    _sooner(afs_l, max_min, "AFS-L", "max-min fair shares", "2.2"),
    _sooner(afs_l, srtf_elastic, "AFS-L", "SRTF-E", "5.5"),
    _sooner(afs_l, srsf_elastic, "AFS-L", "SRSF-E", "5.5"),
    _sooner(afs_p, tiresias_l, "AFS-P", "Tiresias-L", "5.2"),
    _sooner(afs_l, optimus, "AFS-L", "Optimus", "5.2"),
    _sooner(afs_p, optimus, "AFS-P", "Optimus", "5.2"),
    _sooner(afs_p, max_min, "AFS-P", "max-min fair shares", "5.2"),
    _sooner(
        max_min, srtf, "Max-min fairness", "shortest remaining time first", "2.2", contention=_MODERATE, where=_IN_2A
    ),
    _sooner(
        srtf, max_min, "Shortest remaining time first", "max-min fair shares", "2.2", contention=_HEAVY, where=_IN_2B
    ),
    _sooner(srtf, srtf_maximum, "Shortest remaining time first", _MOST, "5.2 and Figure 6"),
    _sooner(srsf, srsf_maximum, "Shortest remaining service first", _MOST, "5.2 and Figure 6"),
    _sooner(tiresias_l, tiresias_l_maximum, "Tiresias-L", _MOST, "5.2 and Figure 6"),
]


CLAIMS: list[Claim] = [*_TWO_JOBS, *_APPENDIX_A, *_MANY_JOBS, *_LINEAR, *_COMPARED]
