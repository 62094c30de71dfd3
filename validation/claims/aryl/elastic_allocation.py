"""What Aryl (EuroSys'23 as Lyra) states of giving out spare GPUs (section 5.2), put to the test.

Optima are found by trying everything: the instances are small, and what judges the heuristics
here shares nothing with the models of :mod:`formulations`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from heuristics.aryl.elastic_allocation import dynamic_program
from instances.aryl.elastic_allocation import ElasticAllocation, ElasticAllocationPlan
from validation.claims.words import listed
from validation.gaps import beats
from validation.testing.claims import Claim

__all__ = ["CLAIMS"]


def _allocations(most_jobs: int, most_seconds: int) -> Iterator[ElasticAllocation]:
    """All jobs of 1 or 2 workers that can double or take 1 or 2 more, and every capacity that leaves a choice."""
    kinds = sorted(itertools.product((1, 2), (1, 2), (1, 2, 3), range(1, most_seconds + 1)), key=sum)
    for num_jobs in range(1, most_jobs + 1):
        sets = itertools.combinations_with_replacement(kinds, num_jobs)
        for jobs in sorted(sets, key=lambda jobs: sum(map(sum, jobs))):
            least, extra, gpus, seconds = np.array(jobs).T
            for capacity in range(int(gpus.min()), int(extra @ gpus) + 1):
                yield ElasticAllocation(
                    capacity=capacity,
                    min_workers=least,
                    max_workers=least + extra,
                    gpus_per_worker=gpus,
                    min_running_times=seconds.astype(float),
                )


def _choices(instance: ElasticAllocation) -> Iterator[tuple[int, ...]]:
    """Extra workers of all jobs, every way that fits."""
    for extra in itertools.product(*(range(most + 1) for most in instance.max_extra.tolist())):
        if np.dot(extra, instance.gpus_per_worker) <= instance.capacity:
            yield extra


def _running_time(instance: ElasticAllocation, job: int, extra: int) -> Fraction:
    """Running time of a job on its minimum and ``extra`` workers under linear scaling, s, exactly."""
    fastest = Fraction(float(instance.min_running_times[job]))
    return fastest * int(instance.max_workers[job]) / (int(instance.min_workers[job]) + extra)


def _reduction(instance: ElasticAllocation, extra: tuple[int, ...]) -> Fraction:
    """Total reduction of running time, s, exactly."""
    return sum(
        (_running_time(instance, job, 0) - _running_time(instance, job, e) for job, e in enumerate(extra)), Fraction(0)
    )


def _dynamic_program_errs(instance: ElasticAllocation) -> str:
    plan = dynamic_program(instance)
    best = max(_choices(instance), key=lambda extra: _reduction(instance, extra))
    value, most = instance.objective(plan), instance.objective(ElasticAllocationPlan(extra_workers=np.array(best)))
    if not instance.violations(plan) and not beats("max", most, value):
        return ""
    return f"{listed(plan.extra_workers)} extra workers save {value:g} s, {listed(best)} save {most:g} s"


def _line_17(instance: ElasticAllocation) -> tuple[int, ...]:
    """The best allocation when a job that grows is charged its base workers as well."""

    def charged(extra: tuple[int, ...]) -> int:
        workers = np.where(np.array(extra) > 0, instance.min_workers + extra, 0)
        return int(workers @ instance.gpus_per_worker)

    everything = itertools.product(*(range(most + 1) for most in instance.max_extra.tolist()))
    within = (extra for extra in everything if charged(extra) <= instance.capacity)
    return max(within, key=lambda extra: _reduction(instance, extra))


def _line_17_differs(instance: ElasticAllocation, *, gains: bool) -> str:
    """How line 17 leads to a greater reduction than the text, or to a smaller one."""
    printed = _line_17(instance)
    text = max(_choices(instance), key=lambda extra: _reduction(instance, extra))
    saved, most = _reduction(instance, printed), _reduction(instance, text)
    if saved <= most if gains else saved >= most:
        return ""
    return f"line 17 gives {listed(printed)} extra workers, which save {saved} s, the text {listed(text)}, {most} s"


def _without_reallocation(instance: ElasticAllocation, extra: tuple[int, ...]) -> Fraction:
    """Sum of completion times of jobs that keep their workers, s."""
    return sum((_running_time(instance, job, e) for job, e in enumerate(extra)), Fraction(0))


def _with_reallocation(instance: ElasticAllocation, extra: tuple[int, ...]) -> Fraction:
    """Sum of completion times of two jobs, when the one that is left grows on all GPUs, s."""
    times = [_running_time(instance, job, e) for job, e in enumerate(extra)]
    first = min(times)
    last = times.index(max(times))
    gpus = int(instance.capacity + instance.min_workers @ instance.gpus_per_worker)
    workers = min(int(instance.max_workers[last]), gpus // int(instance.gpus_per_worker[last]))
    fastest = _running_time(instance, last, workers - int(instance.min_workers[last]))
    return 2 * first + (1 - first / times[last]) * fastest


def _reduction_misleads(
    instance: ElasticAllocation, total: Callable[[ElasticAllocation, tuple[int, ...]], Fraction]
) -> str:
    """How every allocation of greatest reduction has more than the least sum of completion times."""
    most = max(_reduction(instance, extra) for extra in _choices(instance))
    greatest = [extra for extra in _choices(instance) if _reduction(instance, extra) == most]
    chosen = min(greatest, key=lambda extra: total(instance, extra))
    best = min(_choices(instance), key=lambda extra: total(instance, extra))
    if total(instance, chosen) == total(instance, best):
        return ""
    mean, least = (total(instance, extra) / instance.num_jobs for extra in (chosen, best))
    return (
        f"{listed(chosen)} extra workers reduce running times by {most} s and complete the jobs in {mean} s on "
        f"average, {listed(best)} reduce them by {_reduction(instance, best)} s and complete the jobs in {least} s"
    )


CLAIMS: list[Claim] = [
    Claim(
        name="knapsack_dynamic_program",
        source="Aryl, section 5.2",
        statement="Dynamic programming solves the multiple-choice knapsack of phase two.",
        reading="it reduces the total running time by the most possible.",
        instances=lambda rng: _allocations(3, 1),
        breaks=_dynamic_program_errs,
        scope="up to 3 jobs of 1 or 2 workers, 1 or 2 more, 1 to 3 GPUs for each and 1 s on all of them, with every "
        "capacity that leaves a choice",
        exhaustive=True,
    ),
    Claim(
        name="line_17_as_the_text",
        source="Aryl, section 5.2, Algorithm 2, line 17",
        statement="Line 17 fills the GPUs that are left after the base demands.",
        reading="it charges a job that grows its base workers again, and the greatest reduction is still that of the "
        "text, which charges extra workers only.",
        instances=lambda rng: _allocations(2, 2),
        breaks=lambda instance: _line_17_differs(instance, gains=False),
        scope="up to 2 jobs of 1 or 2 workers, 1 or 2 more, 1 to 3 GPUs for each and 1 or 2 s on all of them, with "
        "every capacity that leaves a choice",
        exhaustive=True,
    ),
    Claim(
        name="line_17_never_gains",
        source="Aryl, section 5.2, Algorithm 2, line 17",
        statement="Line 17 fills the GPUs that are left after the base demands.",
        reading="charging base workers again never leads to a greater reduction than the text does.",
        instances=lambda rng: _allocations(2, 2),
        breaks=lambda instance: _line_17_differs(instance, gains=True),
        scope="up to 2 jobs of 1 or 2 workers, 1 or 2 more, 1 to 3 GPUs for each and 1 or 2 s on all of them, with "
        "every capacity that leaves a choice",
        exhaustive=True,
    ),
    Claim(
        name="reduction_is_completion_time",
        source="Aryl, section 5.2",
        statement="The knapsack's values, reductions of running time, are reductions of job completion time.",
        reading="jobs keep their workers to the end: an allocation of greatest total reduction has the least average "
        "completion time.",
        instances=lambda rng: _allocations(2, 3),
        breaks=lambda instance: _reduction_misleads(instance, _without_reallocation),
        scope="up to 2 jobs of 1 or 2 workers, 1 or 2 more, 1 to 3 GPUs for each and 1 to 3 s on all of them, with "
        "every capacity that leaves a choice",
        exhaustive=True,
    ),
    Claim(
        name="reduction_is_completion_time_reallocated",
        source="Aryl, section 5.2",
        statement="The knapsack's values, reductions of running time, are reductions of job completion time.",
        reading="when one of two jobs completes, the other grows at once as far as its maximum and all GPUs, base ones "
        "included, allow: an allocation of greatest total reduction has the least average completion time. With two "
        "jobs nothing is left to decide after the first allocation.",
        instances=lambda rng: (instance for instance in _allocations(2, 3) if instance.num_jobs == 2),
        breaks=lambda instance: _reduction_misleads(instance, _with_reallocation),
        scope="2 jobs of 1 or 2 workers, 1 or 2 more, 1 to 3 GPUs for each and 1 to 3 s on all of them, with every "
        "capacity that leaves a choice",
        exhaustive=True,
    ),
]
