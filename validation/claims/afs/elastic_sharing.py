"""What AFS states of many jobs, by Algorithm 1 (section 4.2) and against other schedulers, put to the test.

Optima are found by trying everything, in fractions: the instances are small whole numbers, and what
judges the heuristics here shares nothing with the models of :mod:`formulations`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from heuristics.afs.elastic_sharing import afs_l, max_min, srtf, srtf_elastic
from heuristics.afs.preferences import hand_out, preference_cycles
from heuristics.afs.two_job import jct_if_longer_receives, jct_if_shorter_receives, pairwise_rule
from instances.afs.elastic_sharing import ElasticSharing, Schedule
from instances.afs.two_job import AfsTwoJob
from instances.base import agree
from validation.claims.afs.two_job import if_receives
from validation.claims.words import listed
from validation.gaps import beats
from validation.testing.claims import Claim

__all__ = ["CLAIMS"]

# --- from two jobs to many: section 4.2 and Algorithm 1 ------------------------------------------

Curves = Callable[[int, int], Iterator[tuple[int, ...]]]
"""Throughput curves, without that of no GPUs, from the number of GPUs and the most that one GPU adds."""


def _concave(num_gpus: int, most: int) -> Iterator[tuple[int, ...]]:
    """Whole curves on which each further GPU adds no more than the one before."""
    for steps in itertools.combinations_with_replacement(range(most, -1, -1), num_gpus):
        if steps[0]:
            yield tuple(itertools.accumulate(steps))


def _linear(num_gpus: int, most: int) -> Iterator[tuple[int, ...]]:
    for step in range(1, most + 1):
        yield tuple(range(step, step * num_gpus + 1, step))


def _capped(num_gpus: int, most: int) -> Iterator[tuple[int, ...]]:
    """Linear up to any number of GPUs, flat beyond."""
    for step in range(1, most + 1):
        for cap in range(1, num_gpus + 1):
            yield tuple(step * min(gpus, cap) for gpus in range(1, num_gpus + 1))


def _any_curve(num_gpus: int, most: int) -> Iterator[tuple[int, ...]]:
    """Whole curves that never fall; a job runs on all GPUs but one, so that one can be taken away."""
    for steps in itertools.product(range(most + 1), repeat=num_gpus):
        if any(steps[:-1]):
            yield tuple(itertools.accumulate(steps))


def _sharings(
    jobs: tuple[int, ...], gpus: tuple[int, ...], most_work: int, curves: Curves, most_step: int
) -> Iterator[ElasticSharing]:
    """Jobs that are there at once, of whole work and curves, up to numbering; fewest jobs and GPUs first."""
    for num_jobs, num_gpus in itertools.product(jobs, gpus):
        kinds = [(work, *curve) for work in range(1, most_work + 1) for curve in curves(num_gpus, most_step)]
        for chosen in sorted(
            itertools.combinations_with_replacement(kinds, num_jobs), key=lambda chosen: sum(map(sum, chosen))
        ):
            table = np.array(chosen, float)
            throughputs = np.pad(table[:, 1:], ((0, 0), (1, 0)))
            yield ElasticSharing(num_gpus=num_gpus, work=table[:, 0], throughputs=throughputs)


def _triples(most_throughput: int, most_work: int) -> Iterator[ElasticSharing]:
    """Three jobs that are not equally long on a GPU each, of four, and gain by no more than a second one."""
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
        if len(set(work / one)) == 3:
            table = np.stack([0 * one, one, two, two, two], axis=1)
            yield ElasticSharing(num_gpus=4, work=work, throughputs=table)


def _on_one_gpu(instance: ElasticSharing, jobs: tuple[int, int]) -> AfsTwoJob:
    """Two of the jobs, each on one GPU."""
    return AfsTwoJob(work=instance.work[list(jobs)], throughputs=instance.throughputs[list(jobs), 1:3])


def _wins(instance: ElasticSharing, jobs: tuple[int, int]) -> bool:
    """Whether the first of two jobs, each on one GPU, receives another by formula (3), no tie."""
    two = _on_one_gpu(instance, jobs)
    tie = agree(jct_if_shorter_receives(two), jct_if_longer_receives(two))
    return not tie and pairwise_rule(two).receiver == 0


def _really_wins(instance: ElasticSharing, jobs: tuple[int, int]) -> bool:
    """Whether giving the GPU to the first of two jobs is better than to the second."""
    two = _on_one_gpu(instance, jobs)
    return beats("min", if_receives(two, 0), if_receives(two, 1))


def _cycles(instance: ElasticSharing, wins: Callable[[ElasticSharing, tuple[int, int]], bool]) -> str:
    for i, j, k in ((0, 1, 2), (0, 2, 1)):
        if wins(instance, (i, j)) and wins(instance, (j, k)) and wins(instance, (k, i)):
            return (
                f"each on one GPU, job {i} wins against job {j}, job {j} against job {k}, and job {k} against job {i}"
            )
    return ""


def _follow(instance: ElasticSharing, shares: tuple[int, ...]) -> Fraction:
    """Average completion time of two jobs that start on ``shares``; the one that is left has all GPUs, s."""
    work = [Fraction(w) for w in instance.work.tolist()]
    rates = [Fraction(instance.throughputs[job, share]) for job, share in enumerate(shares)]
    first = min(work[job] / rate for job, rate in enumerate(rates) if rate)
    rest = (
        (work[job] - first * rates[job]) / Fraction(instance.throughputs[job, instance.num_gpus]) for job in range(2)
    )
    # One of them is done, with 0 left.
    return first + sum(rest, Fraction(0)) / 2


def _least(instance: ElasticSharing) -> Fraction:
    """Least average completion time when shares change at completions, by trying all shares each time, s."""
    tables = [[Fraction(rate) for rate in table] for table in instance.throughputs.tolist()]

    def total(left: tuple[Fraction, ...]) -> Fraction:
        active = [job for job, rest in enumerate(left) if rest]
        if not active:
            return Fraction(0)
        best: list[Fraction] = []
        for shares in itertools.product(range(instance.num_gpus + 1), repeat=len(active)):
            rates = {job: tables[job][share] for job, share in zip(active, shares, strict=True)}
            if sum(shares) <= instance.num_gpus and any(rates.values()):
                span = min(left[job] / rate for job, rate in rates.items() if rate)
                rest = tuple(have - span * rates.get(job, Fraction(0)) for job, have in enumerate(left))
                best.append(span * len(active) + total(rest))
        return min(best)

    return total(tuple(Fraction(work) for work in instance.work.tolist())) / instance.num_jobs


def _afs_l_loses(instance: ElasticSharing) -> str:
    value, least = instance.objective(afs_l(instance)), _least(instance)
    if not beats("min", float(least), value):
        return ""
    return f"AFS-L completes the jobs in {value:g} s on average, {least} s are possible"


def _afs_l_splits_badly(instance: ElasticSharing) -> str:
    """How another split of all GPUs, with a GPU or more for both jobs, beats that of AFS-L."""
    splits = [(share, instance.num_gpus - share) for share in range(1, instance.num_gpus)]
    best = min(splits, key=lambda split: _follow(instance, split))
    plan = afs_l(instance)
    value, least = instance.objective(plan), _follow(instance, best)
    if not beats("min", float(least), value):
        return ""
    return (
        f"AFS-L starts the jobs on {listed(plan.shares[0])} GPUs and completes them in {value:g} s on average, "
        f"{listed(best)} GPUs take {least} s"
    )


def _future_matters(instance: ElasticSharing) -> str:
    """How the receiver that is best if the completed job's share is left open is not if it goes to the other."""
    two = _on_one_gpu(instance, (0, 1))
    apathetic = [if_receives(two, receiver) for receiver in (0, 1)]
    real = [_follow(instance, shares) for shares in ((2, 1), (1, 2))]
    for receiver, other in ((0, 1), (1, 0)):
        if beats("min", apathetic[receiver], apathetic[other]) and real[other] < real[receiver]:
            return (
                f"job {receiver} should receive the third GPU if the share of the completed job is left open, "
                f"{apathetic[receiver]:g} against {apathetic[other]:g} s; if the other job then has all three, "
                f"job {other} should, {real[other]} against {real[receiver]} s"
            )
    return ""


_MANY_JOBS = [
    Claim(
        name="formula_3_transitive",
        source="AFS, section 4.2, formula (3) and Algorithm 1",
        statement="Comparing jobs in pairs finds the job of top priority.",
        reading="formula (3) never goes round in a circle: if one job wins against a second, and that one against a "
        "third, then the third does not win against the first. Ties are left out.",
        instances=lambda rng: _triples(5, 3),
        breaks=lambda instance: _cycles(instance, _wins),
        scope="three jobs, not equally long, of whole work up to 3, whose throughputs are up to 5 on a GPU and at most "
        "twice that on two",
        exhaustive=True,
    ),
    Claim(
        name="pairs_transitive",
        source="AFS, section 4.2 and Algorithm 1",
        statement="Comparing jobs in pairs finds the job of top priority.",
        reading="even where the better receiver of each pair is known, and not taken from formula (3), the "
        "comparison never goes round in a circle. Ties are left out.",
        instances=lambda rng: _triples(5, 3),
        breaks=lambda instance: _cycles(instance, _really_wins),
        scope="three jobs, not equally long, of whole work up to 3, whose throughputs are up to 5 on a GPU and at most "
        "twice that on two",
        exhaustive=True,
    ),
    Claim(
        name="apathetic_future_share",
        source="AFS, section 4.2",
        statement="Who should receive a GPU can be decided without knowing what becomes of the shares later.",
        reading="two jobs on a GPU each share three: if one receiver is better when the share of the job that "
        "completes is left open, it is not worse when the other job gets that share too.",
        instances=lambda rng: _sharings((2,), (3,), 4, _concave, 3),
        breaks=_future_matters,
        scope="two jobs of whole work up to 4, on 3 GPUs with concave curves whose steps are at most 3",
        exhaustive=True,
    ),
    Claim(
        name="afs_l_least_time",
        source="AFS, section 4.2, Algorithm 1",
        statement="Two-job decisions, repeated GPU by GPU, lead to the least average completion time.",
        reading="AFS-L reaches the least average completion time of all schedules that change shares at completions, "
        "for concave curves and jobs that are there at once.",
        instances=lambda rng: _sharings((2, 3), (2, 3), 3, _concave, 2),
        breaks=_afs_l_loses,
        scope="2 or 3 jobs of whole work up to 3, on 2 or 3 GPUs with concave curves whose steps are at most 2",
        exhaustive=True,
    ),
    Claim(
        name="afs_l_least_time_linear",
        source="AFS, section 4.2, Algorithm 1",
        statement="Two-job decisions, repeated GPU by GPU, lead to the least average completion time.",
        reading="of two jobs that scale linearly up to all GPUs, for which shortest first is optimal.",
        instances=lambda rng: _sharings((2,), (2, 3, 4), 6, _linear, 3),
        breaks=_afs_l_loses,
        scope="2 jobs of whole work up to 6, on 2 to 4 GPUs with linear curves of up to 3 per GPU",
        exhaustive=True,
    ),
    Claim(
        name="afs_l_least_time_both_run",
        source="AFS, section 4.2, Algorithm 1",
        statement="Two-job decisions, repeated GPU by GPU, lead to the least average completion time.",
        reading="of two jobs only, with concave curves, and of schedules in which both start at once, with all GPUs.",
        instances=lambda rng: _sharings((2,), (2, 3, 4), 4, _concave, 2),
        breaks=_afs_l_splits_badly,
        scope="2 jobs of whole work up to 4, on 2 to 4 GPUs with concave curves whose steps are at most 2",
        exhaustive=True,
    ),
]


# --- against other schedulers, and with more GPUs: sections 3 and 5 ------------------------------

Scheduler = Callable[[ElasticSharing], Schedule]
Instances = Callable[[np.random.Generator], Iterator[ElasticSharing]]


def _afs_l_worse_than(instance: ElasticSharing, name: str, scheduler: Scheduler) -> str:
    value, other = instance.objective(afs_l(instance)), instance.objective(scheduler(instance))
    if not beats("min", other, value):
        return ""
    return f"AFS-L completes the jobs in {value:g} s on average, {name} in {other:g} s"


def _gpu_hurts(instance: ElasticSharing) -> str:
    """How AFS-L does better without one of the GPUs."""
    fewer = replace(instance, num_gpus=instance.num_gpus - 1, throughputs=instance.throughputs[:, :-1])
    value, before = instance.objective(afs_l(instance)), fewer.objective(afs_l(fewer))
    if not beats("min", before, value):
        return ""
    return (
        f"with {fewer.num_gpus} GPUs AFS-L completes the jobs in {before:g} s on average, with {instance.num_gpus} in "
        f"{value:g} s"
    )


_CURVES: dict[str, tuple[str, Curves]] = {
    "": ("concave curves", _concave),
    "_linear": ("curves linear up to a maximum", _capped),
}
"""Suffix of a claim's name, and the curves that it is about."""


def _never_worse(name: str, title: str, scheduler: Scheduler, suffix: str) -> Claim:
    words, curves = _CURVES[suffix]
    return Claim(
        name=f"afs_l_never_worse_than_{name}{suffix}",
        source="AFS, sections 3 and 5",
        statement=f"AFS-L completes jobs sooner on average than {title}.",
        reading=f"on no set of jobs that are there at once, with {words}, is its average completion time greater. "
        "The paper compares averages over traces.",
        instances=lambda rng: _sharings((2, 3), (2, 3), 4, curves, 2),
        breaks=lambda instance: _afs_l_worse_than(instance, title, scheduler),
        scope=f"2 or 3 jobs of whole work up to 4, on 2 or 3 GPUs with {words}, at most 2 per GPU",
        exhaustive=True,
    )


def _arriving(rng: np.random.Generator) -> Iterator[ElasticSharing]:
    """Jobs that arrive over time, of whole work and concave curves."""
    while True:
        num_jobs, num_gpus = rng.integers(2, 5, 2).tolist()
        steps = np.sort(rng.integers(0, 5, (num_jobs, num_gpus)), axis=1)[:, ::-1].copy()
        steps[:, 0] = np.maximum(steps[:, 0], 1)
        yield ElasticSharing(
            num_gpus=num_gpus,
            work=rng.integers(1, 9, num_jobs).astype(float),
            throughputs=np.pad(steps.cumsum(axis=1), ((0, 0), (1, 0))).astype(float),
            arrivals=np.sort(rng.integers(0, 4, num_jobs)).astype(float),
        )


def _more_gpus(suffix: str, words: str, scope: str, instances: Instances, *, exhaustive: bool = True) -> Claim:
    return Claim(
        name=f"afs_l_more_gpus{suffix}",
        source="AFS, section 4.2, Algorithm 1",
        statement="AFS-L makes use of more GPUs.",
        reading=f"a GPU more never makes its average completion time greater, for {words}. This is a property to "
        "expect, not a statement of the paper.",
        instances=instances,
        breaks=_gpu_hurts,
        scope=scope,
        exhaustive=exhaustive,
    )


_MORE_GPUS = [
    _more_gpus(
        "",
        "jobs with concave curves that are there at once",
        "2 or 3 jobs of whole work up to 4, from 1 to 2 and 2 to 3 GPUs with concave curves, at most 2 per GPU",
        lambda rng: _sharings((2, 3), (2, 3), 4, _concave, 2),
    ),
    _more_gpus(
        "_arrivals",
        "jobs with concave curves that arrive over time",
        "random, 2 to 4 jobs of whole work up to 8, from 1 to 2, 2 to 3 and 3 to 4 GPUs with concave curves",
        _arriving,
        exhaustive=False,
    ),
    _more_gpus(
        "_any_curves",
        "jobs with any curves that are there at once",
        "2 jobs of whole work up to 3, from 1 to 2, 2 to 3 and 3 to 4 GPUs with curves that never fall, at most 2 more "
        "per GPU",
        lambda rng: _sharings((2,), (2, 3, 4), 3, _any_curve, 2),
    ),
]

_COMPARED = [
    claim
    for suffix in _CURVES
    for claim in (
        _never_worse("max_min", "max-min fair shares", max_min, suffix),
        _never_worse("srtf", "shortest remaining time first", srtf, suffix),
        _never_worse("srtf_elastic", "shortest remaining time first for elastic jobs", srtf_elastic, suffix),
    )
]


# --- whether comparing in pairs is an order: section 4.2 and Appendix C --------------------------


def _goes_round(instance: ElasticSharing) -> str:
    """At which shares of AFS-L the comparison goes round in a circle.

    Quotients of small whole numbers are equal as floating-point numbers if and only if they are equal.
    """
    for shares in hand_out(instance):
        for first, second, third in preference_cycles(instance, shares, longest=3):
            return (
                f"on {listed(shares)} GPUs, job {first} is preferred to job {second}, job {second} to job {third}, "
                f"and job {third} to job {first}"
            )
    return ""


def _longer_wins(instance: ElasticSharing, shorter: int, longer: int) -> bool:
    """Formula (3) for two jobs on a GPU each."""
    (_, now, then), (_, longer_now, longer_then) = (
        [Fraction(rate) for rate in instance.throughputs[job, :3].tolist()] for job in (shorter, longer)
    )
    return (longer_then - longer_now) / longer_then > (then - now) / now


def _appendix_c_fails(instance: ElasticSharing) -> str:
    lengths = [Fraction(work) / Fraction(rate) for work, rate in zip(*_work_and_rate(instance), strict=True)]
    a, b, c = sorted(range(3), key=lambda job: lengths[job])
    if _longer_wins(instance, a, b) and _longer_wins(instance, b, c) and not _longer_wins(instance, a, c):
        return f"job {b} wins against job {a}, job {c} against job {b}, but job {c} not against job {a}"
    return ""


def _work_and_rate(instance: ElasticSharing) -> tuple[list[float], list[float]]:
    return instance.work.tolist(), instance.throughputs[:, 1].tolist()


_ORDER = [
    Claim(
        name="comparison_an_order",
        source="AFS, section 4.2, Algorithm 1, and Appendix C",
        statement="The comparison of jobs in pairs is transitive, so that there is a job of top priority.",
        reading="at none of the shares through which AFS-L hands out its GPUs does the comparison of Algorithm 1 go "
        "round in a circle. As printed, a job without GPUs is longer than any other, and the shorter job wins where "
        "formula (3) is an equality.",
        instances=lambda rng: _sharings((3,), (2, 3, 4), 3, _concave, 3),
        breaks=_goes_round,
        scope="three jobs of whole work up to 3, on 2 to 4 GPUs with concave curves whose steps are at most 3",
        exhaustive=True,
    ),
    Claim(
        name="appendix_c",
        source="AFS, Appendix C",
        statement="Formula (3) is transitive.",
        reading="of three jobs, each longer than the one before: if the second wins against the first by formula (3), "
        "and the third against the second, then the third wins against the first. Other ways round are left out, as in "
        "the proof.",
        instances=lambda rng: _triples(5, 3),
        breaks=_appendix_c_fails,
        scope="three jobs, not equally long, of whole work up to 3, whose throughputs are up to 5 on a GPU and at most "
        "twice that on two",
        exhaustive=True,
    ),
]


CLAIMS: list[Claim] = [*_MANY_JOBS, *_COMPARED, *_MORE_GPUS, *_ORDER]
