"""Claims of Aryl (EuroSys'23 as Lyra) about giving out spare GPUs (section 5.2)."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial

import numpy as np

from heuristics.aryl.elastic_allocation import dynamic_program
from instances.aryl.elastic_allocation import ElasticAllocation, ElasticAllocationPlan, HeterogeneousRun, table_10
from validation.claims.assumed import only
from validation.claims.claim import Claim, Reading
from validation.claims.plans import OPTIMAL, better_than, optimal_plan, plans_of
from validation.claims.words import listed
from validation.testing.second_opinion import optimum

__all__ = ["CLAIMS"]


def _allocations(most_jobs: int, most_seconds: int) -> Iterator[ElasticAllocation]:
    """Yield all jobs of 1 or 2 workers that can double or take 1 or 2 more, and every capacity that leaves a choice."""
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
    """Yield the extra workers of all jobs, every way that fits."""
    for extra in itertools.product(*(range(most + 1) for most in instance.max_extra.tolist())):
        if np.dot(extra, instance.gpus_per_worker) <= instance.capacity:
            yield extra


def _running_time(instance: ElasticAllocation, job: int, extra: int) -> Fraction:
    """Return the running time of a job on its minimum and ``extra`` workers under linear scaling, s, exactly."""
    fastest = Fraction(float(instance.min_running_times[job]))
    return fastest * int(instance.max_workers[job]) / (int(instance.min_workers[job]) + extra)


def _reduction(instance: ElasticAllocation, extra: tuple[int, ...]) -> Fraction:
    """Return the total reduction of running time, s, exactly."""
    return sum(
        (_running_time(instance, job, 0) - _running_time(instance, job, e) for job, e in enumerate(extra)), Fraction(0)
    )


def _most(instance: ElasticAllocation) -> Fraction:
    """Return the greatest total reduction of running time of what fits, s, exactly."""
    most = optimum(instance)
    assert most is not None
    return most


def _dynamic_program_errs(instance: ElasticAllocation) -> str | None:
    plan = dynamic_program(instance)
    if broken := instance.violations(plan):
        return f"its plan breaks a rule: {broken[0]}"
    value = instance.objective(plan)
    most = better_than(instance, value)
    return (
        None if most is None else f"{listed(plan.extra_workers)} extra workers save {value:g} s, {most:g} s is possible"
    )


def _charged(instance: ElasticAllocation, extra: tuple[int, ...]) -> int:
    """Return the GPUs by line 17, where a job that grows is charged its base workers as well."""
    workers = np.where(np.array(extra) > 0, instance.min_workers + extra, 0)
    return int(workers @ instance.gpus_per_worker)


def _line_17(instance: ElasticAllocation, base: int = 0) -> tuple[int, ...]:
    """Return the best allocation by line 17 where the capacity counts ``base`` GPUs besides those that are left.

    Of allocations that reduce running times alike, the one of the fewest GPUs.
    """
    everything = itertools.product(*(range(most + 1) for most in instance.max_extra.tolist()))
    within = (extra for extra in everything if _charged(instance, extra) <= instance.capacity + base)
    return max(within, key=lambda extra: (_reduction(instance, extra), -np.dot(extra, instance.gpus_per_worker)))


def _base(instance: ElasticAllocation) -> int:
    """Return the GPUs of all base demands."""
    return int(instance.min_workers @ instance.gpus_per_worker)


def _extra(workers: tuple[int, ...]) -> ElasticAllocationPlan:
    return ElasticAllocationPlan(extra_workers=np.array(workers))


def _line_17_differs(instance: ElasticAllocation, *, gains: bool) -> str | None:
    """Describe how line 17 leads to a greater reduction than the text, or to a smaller one."""
    printed = _line_17(instance)
    saved, most = _reduction(instance, printed), _most(instance)
    if saved <= most if gains else saved >= most:
        return None
    text = optimal_plan(instance).extra_workers
    return f"line 17 gives {listed(printed)} extra workers, which save {saved} s, the text {listed(text)}, {most} s"


def _line_17_overfills(instance: ElasticAllocation) -> str | None:
    """Describe how line 17 gives out GPUs that base workers hold, however ties are broken, where those count too."""
    printed = _line_17(instance, _base(instance))
    gpus = int(np.dot(printed, instance.gpus_per_worker))
    if gpus <= instance.capacity:
        return None
    return f"line 17 gives {listed(printed)} extra workers, which need {gpus} GPUs of {instance.capacity}"


def _without_reallocation(instance: ElasticAllocation, extra: tuple[int, ...]) -> Fraction:
    """Return the sum of completion times of jobs that keep their workers, s."""
    return sum((_running_time(instance, job, e) for job, e in enumerate(extra)), Fraction(0))


def _with_reallocation(instance: ElasticAllocation, extra: tuple[int, ...]) -> Fraction:
    """Return the sum of completion times of two jobs, s, when the one that is left grows on all GPUs."""
    times = [_running_time(instance, job, e) for job, e in enumerate(extra)]
    first = min(times)
    last = times.index(max(times))
    gpus = int(instance.capacity + instance.min_workers @ instance.gpus_per_worker)
    workers = min(int(instance.max_workers[last]), gpus // int(instance.gpus_per_worker[last]))
    fastest = _running_time(instance, last, workers - int(instance.min_workers[last]))
    return 2 * first + (1 - first / times[last]) * fastest


def _soonest(instance: ElasticAllocation) -> ElasticAllocationPlan:
    """Return the workers with which two jobs complete soonest."""
    return _extra(min(_choices(instance), key=lambda extra: _with_reallocation(instance, extra)))


def _reduction_misleads(
    instance: ElasticAllocation, total: Callable[[ElasticAllocation, tuple[int, ...]], Fraction]
) -> str | None:
    """Describe how every allocation of greatest reduction has more than the least sum of completion times."""
    most = _most(instance)
    greatest = [extra for extra in _choices(instance) if _reduction(instance, extra) == most]
    chosen = min(greatest, key=lambda extra: total(instance, extra))
    best = min(_choices(instance), key=lambda extra: total(instance, extra))
    if total(instance, chosen) == total(instance, best):
        return None
    mean, least = (total(instance, extra) / instance.num_jobs for extra in (chosen, best))
    return (
        f"{listed(chosen)} extra workers reduce running times by {most} s and complete the jobs in {mean} s on "
        f"average, {listed(best)} reduce them by {_reduction(instance, best)} s and complete the jobs in {least} s"
    )


def _runs(faster: Callable[[HeterogeneousRun], float]) -> ElasticAllocation:
    """Return the nine rows of Table 10 on both kinds of GPUs as jobs whose second worker makes up for the loss.

    A job's running times are those of the row, and ``faster`` of them, s.
    """
    runs = [run for run in table_10() if run.t4]
    tables = [60 * run.running_time * np.array([1, faster(run)]) for run in runs]
    return ElasticAllocation(
        capacity=len(runs),
        min_workers=np.ones(len(runs), np.int64),
        max_workers=np.full(len(runs), 2),
        gpus_per_worker=np.ones(len(runs), np.int64),
        min_running_times=np.array([table[-1] for table in tables]),
        running_times=tuple(tables),
    )


def _as_theoretical() -> ElasticAllocation:
    """Return the rows, of which each would have taken less at the theoretical throughput."""
    return _runs(lambda run: run.measured / run.theoretical)


def _as_on_v100s() -> ElasticAllocation:
    """Return the rows, of which each takes less on V100s alone."""
    alone = {run.model: run.running_time for run in table_10() if not run.t4}
    return _runs(lambda run: alone[run.model] / run.running_time)


def _not_by_up_to_34_percent(instance: ElasticAllocation) -> str | None:
    """Describe how far the greatest lengthening of a running time is from 34%, by half a percentage point or more."""
    longest = max(float(table[0] / table[-1]) - 1 for table in instance.running_times or ())
    return f"it is {longest:.1%} at most" if abs(longest - 0.34) >= 0.005 else None


def _degradation_differs(instance: ElasticAllocation, one_of_all: Callable[[Sequence[float]], float]) -> str | None:
    """Describe how far the throughput that rows lose on average is from 27%, by a percentage point or more."""
    lost = [1 - float(table[-1] / table[0]) for table in instance.running_times or ()]
    average = one_of_all(lost)
    return f"it is {average:.1%}, and {max(lost):.1%} at most" if abs(average - 0.27) >= 0.01 else None


KEPT = "linear scaling, known running times, one decision at a time, GPUs of one kind."
"""Assumptions of section 5.2."""

SCOPE = (
    "up to 2 jobs of 1 or 2 workers, 1 or 2 more, 1 to 3 GPUs for each and 1 or 2 s on all of them, with every "
    "capacity that leaves a choice"
)


def _linear_jobs(instance: ElasticAllocation) -> bool:
    """Return whether jobs scale linearly, can grow, and take time, and a worker of one of them fits."""
    return (
        instance.running_times is None
        and bool((instance.max_extra > 0).all() and (instance.min_running_times > 0).all())
        and int(instance.gpus_per_worker.min()) <= instance.capacity
    )


def _two_linear_jobs(instance: ElasticAllocation) -> bool:
    """Return whether two jobs scale linearly, can grow, and take time, and a worker of one of them fits."""
    return instance.num_jobs == 2 and _linear_jobs(instance)


_claim = partial(
    Claim, exhaustive=True, scope=SCOPE, assumes=_linear_jobs, ties="every way", assumptions=KEPT, relaxed=""
)
_line_17_claim = partial(
    _claim, source="Aryl, Appendix D, Algorithm 2, line 17, and section 5.2", instances=lambda rng: _allocations(2, 2)
)

CLAIMS: list[Claim] = [
    _claim(
        name="knapsack_dynamic_program",
        source="Aryl, section 5.2",
        statement="Dynamic programming solves the multiple-choice knapsack of phase two.",
        reading="it reduces the total running time by the most possible.",
        instances=lambda rng: _allocations(3, 1),
        breaks=_dynamic_program_errs,
        ties="do not matter",
        scope="up to 3 jobs of 1 or 2 workers, 1 or 2 more, 1 to 3 GPUs for each and 1 s on all of them, with every "
        "capacity that leaves a choice",
    ),
    _line_17_claim(
        name="line_17_as_the_text",
        statement="The weight of line 17, base workers included, is the number of GPUs that an allocation of flexible "
        "demand takes.",
        reading="of the GPUs that are left after the base demands (lines 24 to 27): the greatest reduction by line 17 "
        "is that of the text, which charges extra workers only.",
        breaks=lambda instance: _line_17_differs(instance, gains=False),
        plans=plans_of(("line 17", lambda instance: _extra(_line_17(instance))), OPTIMAL),
        others=(
            Reading(
                "of the GPUs that are left and those of all base demands: what line 17 chooses fits.",
                breaks=_line_17_overfills,
                plans=plans_of(("line 17", lambda instance: _extra(_line_17(instance, _base(instance))))),
            ),
        ),
    ),
    _line_17_claim(
        name="line_17_never_gains",
        statement="Charging base workers again, as line 17 does, never leads to a greater reduction than the text.",
        reading="of the GPUs that are left after the base demands (lines 24 to 27).",
        by="the library: the paper has one weight in the text and another in line 17, and compares them nowhere",
        breaks=lambda instance: _line_17_differs(instance, gains=True),
    ),
    _claim(
        name="reduction_is_completion_time",
        source="Aryl, section 5.2",
        statement="The knapsack's values, reductions of running time, are reductions of job completion time.",
        reading="jobs keep their workers to the end: an allocation of greatest total reduction has the least average "
        "completion time.",
        instances=lambda rng: _allocations(2, 3),
        breaks=lambda instance: _reduction_misleads(instance, _without_reallocation),
        scope="up to 2 jobs of 1 or 2 workers, 1 or 2 more, 1 to 3 GPUs for each and 1 to 3 s on all of them, with "
        "every capacity that leaves a choice",
        others=(
            Reading(
                "when one of two jobs completes, the other grows at once as far as its maximum and all GPUs, base ones "
                "included, allow, as a decision at every epoch would have it: an allocation of greatest total "
                "reduction has the least average completion time. With two jobs nothing is left to decide after that.",
                breaks=lambda instance: _reduction_misleads(instance, _with_reallocation),
                instances=lambda rng: (instance for instance in _allocations(2, 3) if instance.num_jobs == 2),
                scope="2 jobs of 1 or 2 workers, 1 or 2 more, 1 to 3 GPUs for each and 1 to 3 s on all of them, with "
                "every capacity that leaves a choice",
                assumes=_two_linear_jobs,
                plans=plans_of(OPTIMAL, ("completes jobs soonest", _soonest)),
            ),
        ),
    ),
    _claim(
        name="heterogeneous_degradation",
        source="Aryl, Appendix A, Table 10",
        statement="Training on both kinds of GPUs loses 27% of the theoretical throughput on average.",
        reading="the mean over the nine rows of Table 10 on both kinds, to a percentage point.",
        instances=lambda rng: [_as_theoretical()],
        assumes=only(_as_theoretical()),
        ties="",
        breaks=lambda instance: _degradation_differs(instance, statistics.mean),
        scope="the table",
        assumptions="the printed figures, which an instance of nine jobs holds.",
        others=(
            Reading(
                "their median, to a percentage point.",
                breaks=lambda instance: _degradation_differs(instance, statistics.median),
            ),
        ),
    ),
    _claim(
        name="heterogeneous_running_time",
        source="Aryl, Appendix A, Table 10",
        statement="To the same validation metric, training on both kinds of GPUs takes up to 34% longer than on V100s "
        "alone.",
        reading="of the nine rows of Table 10 on both kinds and their models' rows on V100s, to a percentage point.",
        instances=lambda rng: [_as_on_v100s()],
        assumes=only(_as_on_v100s()),
        ties="",
        breaks=_not_by_up_to_34_percent,
        scope="the table",
        assumptions="the printed figures, which an instance of nine jobs holds.",
    ),
]
