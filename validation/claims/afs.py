"""What AFS (NSDI'21) states, put to the test.

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
from heuristics.afs.gpu_placement import first_fit_decreasing
from heuristics.afs.network_packing import floor_and_grow
from heuristics.afs.two_job import jct_if_longer_receives, jct_if_shorter_receives, longer_receives, pairwise_rule
from instances.afs.elastic_sharing import ElasticSharing, Schedule
from instances.afs.gpu_placement import GpuPlacement
from instances.afs.network_packing import NetworkPacking, regulated_shares
from instances.afs.two_job import TwoJob, TwoJobPlan
from instances.base import IntArray, agree
from validation.claims import Claim
from validation.gaps import beats


def _and(numbers: IntArray | tuple[int, ...]) -> str:
    """``1``, ``1 and 2`` or ``1, 2 and 3``."""
    *before, last = map(str, numbers)
    return f"{', '.join(before)} and {last}" if before else last


# --- two jobs and one free GPU: section 4.2 ------------------------------------------------------


def _pairs(most: int) -> Iterator[TwoJob]:
    """All pairs of running jobs of whole work and throughputs up to ``most``, not equally long, up to numbering."""
    kinds = [
        (work, now, then) for work in range(1, most + 1) for now in range(1, most + 1) for then in range(now, most + 1)
    ]
    pairs = itertools.combinations_with_replacement(kinds, 2)
    for jobs in sorted(pairs, key=lambda jobs: sum(map(sum, jobs))):
        (work, now, _), (other_work, other_now, _) = jobs
        if work * other_now != other_work * now:
            table = np.array(jobs, float)
            yield TwoJob(work=table[:, 0], throughputs=table[:, 1:])


def _in_order(instance: TwoJob) -> bool:
    """Whether the shorter job completes first even if the longer one receives the GPU."""
    a, b = instance.shorter, 1 - instance.shorter
    # Without division, and so exactly.
    (now, _), (_, then) = instance.throughputs[a], instance.throughputs[b]
    return bool(instance.work[a] * then <= instance.work[b] * now)


def _pairs_in_order(most: int) -> Iterator[TwoJob]:
    return filter(_in_order, _pairs(most))


def _if_receives(instance: TwoJob, receiver: int) -> float:
    """Average completion time if that job receives the GPU, from following both jobs to their ends, s."""
    return instance.objective(TwoJobPlan(receiver=receiver))


def _formula_1_errs(instance: TwoJob) -> str:
    value, true = jct_if_shorter_receives(instance), _if_receives(instance, instance.shorter)
    return "" if agree(value, true) else f"formula (1) is {value:g} s, the jobs complete in {true:g} s on average"


def _formula_2_errs(instance: TwoJob) -> str:
    value, true = jct_if_longer_receives(instance), _if_receives(instance, 1 - instance.shorter)
    return "" if agree(value, true) else f"formula (2) is {value:g} s, the jobs complete in {true:g} s on average"


def _difference_errs(instance: TwoJob) -> str:
    formulas = jct_if_shorter_receives(instance) - jct_if_longer_receives(instance)
    true = _if_receives(instance, instance.shorter) - _if_receives(instance, 1 - instance.shorter)
    if agree(formulas, true):
        return ""
    return f"(1) minus (2) is {formulas:g} s, the longer job's receiving the GPU saves {true:g} s on average"


def _formula_3_does_not_follow(instance: TwoJob) -> str:
    shorter, longer = jct_if_shorter_receives(instance), jct_if_longer_receives(instance)
    if beats("min", longer, shorter) == longer_receives(instance):
        return ""
    return f"(1) is {shorter:g} s and (2) is {longer:g} s, but (3) is {str(longer_receives(instance)).lower()}"


def _formula_3_errs(instance: TwoJob) -> str:
    receiver = pairwise_rule(instance).receiver
    value, other = _if_receives(instance, receiver), _if_receives(instance, 1 - receiver)
    if not beats("min", other, value):
        return ""
    return f"job {receiver} receives the GPU, for {value:g} s on average; if job {1 - receiver} did, {other:g} s"


_WHOLE_PAIRS = "pairs of running jobs, not equally long, of whole work and throughputs up to 6, up to numbering"
_NUMBERED = "formulas are numbered as in heuristics.afs.two_job"

_TWO_JOBS = [
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


def _on_one_gpu(instance: ElasticSharing, jobs: tuple[int, int]) -> TwoJob:
    """Two of the jobs, each on one GPU."""
    return TwoJob(work=instance.work[list(jobs)], throughputs=instance.throughputs[list(jobs), 1:3])


def _wins(instance: ElasticSharing, jobs: tuple[int, int]) -> bool:
    """Whether the first of two jobs, each on one GPU, receives another by formula (3), no tie."""
    two = _on_one_gpu(instance, jobs)
    tie = agree(jct_if_shorter_receives(two), jct_if_longer_receives(two))
    return not tie and pairwise_rule(two).receiver == 0


def _really_wins(instance: ElasticSharing, jobs: tuple[int, int]) -> bool:
    """Whether giving the GPU to the first of two jobs is better than to the second."""
    two = _on_one_gpu(instance, jobs)
    return beats("min", _if_receives(two, 0), _if_receives(two, 1))


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
        f"AFS-L starts the jobs on {_and(plan.shares[0])} GPUs and completes them in {value:g} s on average, "
        f"{_and(best)} GPUs take {least} s"
    )


def _future_matters(instance: ElasticSharing) -> str:
    """How the receiver that is best if the completed job's share is left open is not if it goes to the other."""
    two = _on_one_gpu(instance, (0, 1))
    apathetic = [_if_receives(two, receiver) for receiver in (0, 1)]
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


# --- packing: section 4.4 and Appendix E ---------------------------------------------------------


def _partitions(total: int, most: int) -> Iterator[list[int]]:
    """All ways to write ``total`` as a sum of parts up to ``most``, largest first."""
    if not total:
        yield []
    for part in range(min(total, most), 0, -1):
        for rest in _partitions(total - part, part):
            yield [part, *rest]


def _packings(most_gpus: int, *, floor_guarantee: bool = True) -> Iterator[NetworkPacking]:
    """All shares of all GPUs of clusters of equal machines, up to numbering, fewest GPUs and jobs first."""
    for num_gpus in range(1, most_gpus + 1):
        for shares in sorted(_partitions(num_gpus, num_gpus), key=len):
            gpus = 1
            while num_gpus % gpus == 0:
                yield NetworkPacking(
                    shares=np.array(shares),
                    num_machines=num_gpus // gpus,
                    gpus_per_machine=gpus,
                    floor_guarantee=floor_guarantee,
                )
                gpus *= 2


def _least_distance(instance: NetworkPacking) -> int | None:
    """Least distance of regulated shares, job by job over all sums; None if there are none."""
    least = {0: 0}
    for share, floor in zip(instance.shares.tolist(), instance.floors.tolist(), strict=True):
        longer: dict[int, int] = {}
        for total, distance in least.items():
            for value in instance.candidates.tolist():
                if total + value <= instance.num_gpus and (value >= floor or not instance.floor_guarantee):
                    reached = distance + abs(value - share)
                    longer[total + value] = min(reached, longer.get(total + value, reached))
        least = longer
    return least.get(instance.num_gpus)


def _no_regulated_shares(instance: NetworkPacking) -> str:
    if _least_distance(instance) is not None:
        return ""
    return f"no regulated shares of {_and(instance.shares)} GPUs reach their floors and use all GPUs"


def _construction_fails(instance: NetworkPacking) -> str:
    plan = floor_and_grow(instance)
    return "; ".join(map(str, instance.violations(plan)))


def _construction_not_nearest(instance: NetworkPacking) -> str:
    plan, least = floor_and_grow(instance), _least_distance(instance)
    if least is None or instance.objective(plan) <= least:
        return ""
    return f"{_and(plan.regulated)} GPUs are {instance.objective(plan):g} away from what is wanted, {least} is possible"


def _floors_cost(instance: NetworkPacking) -> str:
    with_floors, without = _least_distance(instance), _least_distance(replace(instance, floor_guarantee=False))
    if with_floors == without:
        return ""
    return f"regulated shares are {with_floors} GPUs away from what is wanted with floors, {without} without"


def _no_rounding(instance: NetworkPacking) -> str:
    """How no rounding of each share to the regulated one below or above uses all GPUs."""
    candidates = instance.candidates
    above = candidates[np.searchsorted(candidates, instance.shares)]
    roundings = itertools.product(*map(set, zip(instance.floors.tolist(), above.tolist(), strict=True)))
    if any(sum(shares) == instance.num_gpus for shares in roundings):
        return ""
    return f"{_and(instance.floors)} GPUs are below what is wanted, {_and(above)} above, and no choice adds up to all"


def _regulated(most_gpus: int, num_gpus: int, candidates: list[int]) -> Iterator[list[int]]:
    """Sets of regulated shares that need no more than ``num_gpus``, up to numbering."""
    yield []
    for position, share in enumerate(candidates):
        if share <= min(most_gpus, num_gpus):
            for rest in _regulated(share, num_gpus - share, candidates[position:]):
                yield [share, *rest]


def _clusters(most_machines: int, machine_gpus: tuple[int, ...]) -> Iterator[tuple[int, int, list[int]]]:
    """Machines, GPUs of each, and regulated shares of one job or more that need no more."""
    for machines, gpus in itertools.product(range(1, most_machines + 1), machine_gpus):
        candidates = regulated_shares(machines, gpus)[:0:-1].tolist()
        for shares in sorted(_regulated(machines * gpus, machines * gpus, candidates), key=len):
            if shares:
                yield machines, gpus, shares


def _new_jobs() -> Iterator[GpuPlacement]:
    for machines, gpus, shares in _clusters(4, (1, 2, 4, 8)):
        previous = np.zeros((len(shares), machines), np.int64)
        yield GpuPlacement(regulated=np.array(shares), num_machines=machines, gpus_per_machine=gpus, previous=previous)


def _running_jobs() -> Iterator[GpuPlacement]:
    """Up to 3 jobs that were anywhere on up to 2 machines."""
    for machines, gpus, shares in _clusters(2, (2, 4)):
        if len(shares) <= 3:
            held = [c for c in itertools.product(range(gpus + 1), repeat=len(shares)) if sum(c) <= gpus]
            for columns in itertools.product(held, repeat=machines):
                yield GpuPlacement(
                    regulated=np.array(shares),
                    num_machines=machines,
                    gpus_per_machine=gpus,
                    previous=np.array(columns).T,
                )


def _placement_fails(instance: GpuPlacement) -> str:
    return "; ".join(map(str, instance.violations(first_fit_decreasing(instance))))


def _placement_keeps_less(instance: GpuPlacement) -> str:
    """How another placement keeps more jobs where they are, or as many with more GPUs."""
    plan = first_fit_decreasing(instance)
    kept = instance.kept(plan)
    jobs, gpus = _most_kept(instance)
    if (int((kept > 0).sum()), int(kept.sum())) >= (jobs, gpus):
        return ""
    return f"{(kept > 0).sum()} jobs keep {kept.sum()} GPUs, {jobs} could keep {gpus}"


def _most_kept(instance: GpuPlacement) -> tuple[int, int]:
    """Most jobs that can keep a GPU, and the most GPUs that so many can keep, over all placements."""

    def place(job: int, free: tuple[int, ...], jobs: int, gpus: int) -> tuple[int, int]:
        if job == instance.num_jobs:
            return jobs, gpus
        block, best = int(instance.blocks[job]), (-1, -1)
        for machines in itertools.combinations(range(instance.num_machines), int(instance.spans[job])):
            if all(free[machine] >= block for machine in machines):
                left = tuple(room - block * (machine in machines) for machine, room in enumerate(free))
                kept = sum(min(int(instance.previous[job, machine]), block) for machine in machines)
                best = max(best, place(job + 1, left, jobs + (kept > 0), gpus + kept))
        return best

    return place(0, (instance.gpus_per_machine,) * instance.num_machines, 0, 0)


_REGULATED = "0, a power of two below the GPUs of a machine, or whole machines"

_PACKING = [
    Claim(
        name="proposition_1",
        source="AFS, section 4.4, Proposition 1",
        statement="Jobs with regulated shares can be placed so that no machine hosts two jobs that span machines.",
        reading=f"regulated is {_REGULATED}, of a power of two of GPUs each. First fit decreasing finds a placement on "
        "which every job is also on the fewest machines.",
        instances=lambda rng: _new_jobs(),
        breaks=_placement_fails,
        scope="all sets of regulated shares on up to 4 machines of 1, 2, 4 or 8 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="proposition_1_running_jobs",
        source="AFS, section 4.4, Proposition 1",
        statement="Jobs with regulated shares can be placed so that no machine hosts two jobs that span machines.",
        reading="the same when each job prefers the machines on which it keeps the most GPUs.",
        instances=lambda rng: _running_jobs(),
        breaks=_placement_fails,
        scope="up to 3 jobs of regulated shares that held any GPUs before, on up to 2 machines of 2 or 4 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="placement_keeps_most",
        source="AFS, section 4.4",
        statement="When shares change, jobs stay where they are as far as possible.",
        reading="first fit decreasing with a preference for old machines lets the most jobs keep a GPU, and so many "
        "keep the most GPUs. The preference and the two aims are this library's.",
        instances=lambda rng: _running_jobs(),
        breaks=_placement_keeps_less,
        scope="up to 3 jobs of regulated shares that held any GPUs before, on up to 2 machines of 2 or 4 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="proposition_2",
        source="AFS, section 4.4 and Appendix E, Proposition 2",
        statement="Shares can be regulated so that all GPUs are used and no job gets less than its share rounded down.",
        reading=f"regulated is {_REGULATED}, of a power of two of GPUs each; shares are whole and add up to all GPUs.",
        instances=lambda rng: _packings(16),
        breaks=_no_regulated_shares,
        scope="all shares of up to 16 GPUs in equal machines, up to numbering",
        exhaustive=True,
    ),
    Claim(
        name="proposition_2_construction",
        source="AFS, section 4.4 and Appendix E, proof of Proposition 2",
        statement="Rounding shares down and letting the smallest grow until all GPUs are used regulates them.",
        reading="it ends exactly at the sum, and no job is below its share rounded down. Which of several smallest "
        "shares grows is this library's choice.",
        instances=lambda rng: _packings(20),
        breaks=_construction_fails,
        scope="all shares of up to 20 GPUs in equal machines, up to numbering",
        exhaustive=True,
    ),
    Claim(
        name="stage_one_nearest",
        source="AFS, section 4.4 and Appendix E",
        statement="Regulated shares stay near those that the scheduler wants.",
        reading="the construction has the least sum of differences, of all regulated shares that are not below those "
        "rounded down. The measure is this library's.",
        instances=lambda rng: _packings(12),
        breaks=_construction_not_nearest,
        scope="all shares of up to 12 GPUs in equal machines, up to numbering",
        exhaustive=True,
    ),
    Claim(
        name="stage_one_floors_for_free",
        source="AFS, section 4.4 and Appendix E, Proposition 2",
        statement="Shares can be regulated so that all GPUs are used and no job gets less than its share rounded down.",
        reading="the guarantee costs nothing: without it the least sum of differences is the same. The measure is this "
        "library's.",
        instances=lambda rng: _packings(12),
        breaks=_floors_cost,
        scope="all shares of up to 12 GPUs in equal machines, up to numbering",
        exhaustive=True,
    ),
    Claim(
        name="stage_one_rounds",
        source="AFS, section 4.4 and Appendix E",
        statement="Regulated shares stay near those that the scheduler wants.",
        reading="every share can be rounded to the regulated one below or above it so that all GPUs are used. "
        "Proposition 2 promises no less than the one below only.",
        instances=lambda rng: _packings(12),
        breaks=_no_rounding,
        scope="all shares of up to 12 GPUs in equal machines, up to numbering",
        exhaustive=True,
    ),
]


CLAIMS: list[Claim] = [*_TWO_JOBS, *_MANY_JOBS, *_COMPARED, *_MORE_GPUS, *_PACKING]
