"""What Aryl (EuroSys'23 as Lyra) states, put to the test.

Optima are found by trying everything: the instances are small, and what judges the heuristics
here shares nothing with the models of :mod:`formulations`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from heuristics.aryl.elastic_allocation import dynamic_program
from heuristics.aryl.placement import best_fit_decreasing
from heuristics.aryl.reclaim import gpu_fraction, server_fraction, smallest_count_first
from heuristics.aryl.two_job import closed_form
from instances.aryl.elastic_allocation import ElasticAllocation, ElasticAllocationPlan
from instances.aryl.placement import Placement
from instances.aryl.reclaim import Reclaim, ReclaimPlan
from instances.aryl.two_job import TwoJob, TwoJobPlan
from instances.base import IntArray
from validation.claims import Claim
from validation.gaps import beats
from validation.transform import take

# --- two jobs: section 5.1 and Appendix C --------------------------------------------------------


Bounds = tuple[tuple[int, int], tuple[int, int]]
"""Minimum and maximum of the one and of the other job."""


def _slack_bounds(num_gpus: int) -> Iterator[Bounds]:
    """Minima of one GPU, which never keep the other job from its maximum."""
    for most_0, most_1 in itertools.product(range(1, num_gpus), repeat=2):
        yield (1, most_0), (1, most_1)


def _any_bounds(num_gpus: int) -> Iterator[Bounds]:
    yield from itertools.product(itertools.combinations_with_replacement(range(1, num_gpus + 1), 2), repeat=2)


def _equal_bounds(num_gpus: int) -> Iterator[Bounds]:
    yield from ((each, each) for each in itertools.combinations_with_replacement(range(1, num_gpus + 1), 2))


def _pairs(most_gpus: int, bounds: Callable[[int], Iterator[Bounds]], *, equal: bool = False) -> Iterator[TwoJob]:
    """All pairs of jobs that leave a choice, of 1 to 6 GPU-seconds each; ``equal``: of equal work too."""
    workloads = [work for work in itertools.product(range(1, 7), repeat=2) if equal or work[0] != work[1]]
    for num_gpus in range(2, most_gpus + 1):
        for work in sorted(workloads, key=sum):
            for (least_0, most_0), (least_1, most_1) in bounds(num_gpus):
                if least_0 + least_1 < num_gpus < most_0 + most_1 and least_0 < most_0 and least_1 < most_1:
                    yield TwoJob(
                        num_gpus=num_gpus,
                        workloads=np.array(work, float),
                        min_gpus=np.array([least_0, least_1]),
                        max_gpus=np.array([most_0, most_1]),
                    )


def _loses_to_a_split(instance: TwoJob, plan: TwoJobPlan) -> str:
    """How another split beats ``plan``; empty if none does."""
    best = min(map(instance.split, instance.splits), key=instance.objective)
    value, least = instance.objective(plan), instance.objective(best)
    if not beats("min", least, value):
        return ""
    return (
        f"it starts the jobs on {_and(plan.gpus)} GPUs and completes them in {value:g} s on average, "
        f"{_and(best.gpus)} GPUs take {least:g} s"
    )


def _rule_errs(instance: TwoJob) -> str:
    return _loses_to_a_split(instance, closed_form(instance))


def _neither_first(instance: TwoJob) -> str:
    ends = instance.split(instance.splits[0]), instance.split(instance.splits[-1])
    return _loses_to_a_split(instance, min(ends, key=instance.objective))


def _smaller_first_errs(instance: TwoJob) -> str:
    smaller = int(np.argmin(instance.workloads))
    return _loses_to_a_split(instance, instance.split(instance.splits[-1 if smaller == 0 else 0]))


_TWO_JOBS = [
    Claim(
        name="two_job_rule",
        source="Aryl, section 5.1 and Appendix C",
        statement="Which of two elastic jobs should start with its maximum of GPUs, so that their average completion "
        "time is least, follows from their workloads and maxima.",
        reading="no bound binds: either job can have its maximum while the other has its minimum. The rule is that of "
        "heuristics.aryl.two_job.closed_form, which is derived from the appendix's setting and not copied from it.",
        instances=lambda rng: _pairs(8, _slack_bounds, equal=True),
        breaks=_rule_errs,
        scope="pairs of jobs of 1 to 6 GPU-seconds on up to 8 GPUs, with minima of 1 and any maxima below all GPUs "
        "that do not fit together",
        exhaustive=True,
    ),
    Claim(
        name="two_job_rule_with_minima",
        source="Aryl, section 5.1 and Appendix C",
        statement="Which of two elastic jobs should start with its maximum of GPUs, so that their average completion "
        "time is least, follows from their workloads and maxima.",
        reading="any bounds, and workloads that differ: the job that the rule names gets as much as the other's "
        "minimum leaves.",
        instances=lambda rng: _pairs(8, _any_bounds),
        breaks=_rule_errs,
        scope="pairs of jobs of different work, 1 to 6 GPU-seconds, on up to 8 GPUs, with any bounds that leave a "
        "choice",
        exhaustive=True,
    ),
    Claim(
        name="two_job_extremes",
        source="Aryl, section 5.1 and Appendix C",
        statement="One of two elastic jobs should get as many GPUs as it can at first.",
        reading="any bounds: no split in between is better than both of giving all that the bounds allow to one job "
        "and to the other.",
        instances=lambda rng: _pairs(6, _any_bounds, equal=True),
        breaks=_neither_first,
        scope="pairs of jobs of 1 to 6 GPU-seconds on up to 6 GPUs, with any bounds that leave a choice",
        exhaustive=True,
    ),
    Claim(
        name="two_job_smaller_first",
        source="Aryl, section 5.1, Tables 2 and 3",
        statement="Of two jobs that differ in nothing but their workloads, the smaller should go first.",
        reading="equal minima and equal maxima: the smaller workload gets all that the bounds allow.",
        instances=lambda rng: _pairs(10, _equal_bounds),
        breaks=_smaller_first_errs,
        scope="pairs of jobs of different work, 1 to 6 GPU-seconds, and equal bounds on up to 10 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="two_job_smaller_first_any_bounds",
        source="Aryl, section 5.1, Table 4",
        statement="The job of the smaller workload should go first.",
        reading="any bounds, and workloads that differ. Table 4, as reconstructed in instances.aryl.two_job, is an "
        "example against it.",
        instances=lambda rng: _pairs(8, _any_bounds),
        breaks=_smaller_first_errs,
        scope="pairs of jobs of different work, 1 to 6 GPU-seconds, on up to 8 GPUs, with any bounds that leave a "
        "choice",
        exhaustive=True,
    ),
]


# --- servers to return: section 4 ----------------------------------------------------------------


def _clusters(num_jobs: int, num_servers: int, most_gpus: int = 1) -> Iterator[IntArray]:
    """(n, s) int: GPUs of jobs on servers; every cluster once up to its numbering, no server or job empty."""
    columns = [c for c in itertools.product(range(most_gpus + 1), repeat=num_jobs) if any(c)]
    orders = list(itertools.permutations(range(num_jobs)))
    for servers in itertools.combinations_with_replacement(columns, num_servers):
        # Of all numberings of the jobs, the one whose servers come first in order.
        if all(map(any, zip(*servers, strict=True))) and all(
            list(servers) <= sorted(tuple(column[job] for job in order) for column in servers) for order in orders
        ):
            yield np.array(servers).T


def _reclaims(most_places: int, most_gpus: int = 1) -> Iterator[Reclaim]:
    """Clusters of at most ``most_places`` = jobs times servers, with every demand above 1."""
    sizes = itertools.product(range(1, most_places + 1), range(3, most_places + 1))
    for num_jobs, num_servers in sorted(sizes, key=lambda size: (size[0] * size[1], size)):
        if num_jobs * num_servers <= most_places:
            for gpus in _clusters(num_jobs, num_servers, most_gpus):
                for demand in range(2, num_servers):
                    yield Reclaim(hosts=gpus > 0, gpus=gpus, demand=demand)


def _two_of(most_jobs: int, most_servers: int) -> Iterator[Reclaim]:
    for num_servers in range(3, most_servers + 1):
        for num_jobs in range(1, most_jobs + 1):
            for gpus in _clusters(num_jobs, num_servers):
                yield Reclaim(hosts=gpus > 0, gpus=gpus, demand=2)


def _separate_jobs() -> Iterator[Reclaim]:
    """Jobs on one server each, 0 to 4 on every server."""
    for num_servers in range(2, 6):
        for counts in itertools.product(range(5), repeat=num_servers):
            if any(counts):
                gpus = np.repeat(np.eye(num_servers, dtype=np.int64), counts, axis=0)
                for demand in range(1, num_servers):
                    yield Reclaim(hosts=gpus > 0, gpus=gpus, demand=demand)


def _algorithm_1(instance: Reclaim) -> int:
    """Jobs that Algorithm 1 preempts, ties broken as suits it best.

    Ties go to the lowest server, so that a run that breaks them in another way is the run on
    servers numbered in the order in which they are returned.
    """
    runs = []
    for first in itertools.permutations(range(instance.num_servers), instance.demand):
        rest = [server for server in range(instance.num_servers) if server not in first]
        renumbered = take(instance, "s", [*first, *rest])
        runs.append(renumbered.objective(server_fraction(renumbered)))
    return int(min(runs))


def _preempts_more(instance: Reclaim, other: ReclaimPlan, factor: int = 1) -> str:
    """How Algorithm 1 preempts more than ``factor`` times the jobs of another plan, however ties are broken."""
    limit = factor * instance.objective(other)
    # As its ties fall is enough in most cases, and quicker.
    if instance.objective(server_fraction(instance)) <= limit:
        return ""
    preempted = _algorithm_1(instance)
    if preempted <= limit:
        return ""
    return (
        f"it preempts {preempted} jobs or more however ties are broken, servers {_and(np.sort(other.servers))} preempt "
        f"{instance.objective(other):g}"
    )


def _fewest(instance: Reclaim) -> ReclaimPlan:
    choices = itertools.combinations(range(instance.num_servers), instance.demand)
    servers = min(choices, key=lambda chosen: int(instance.hosts[:, chosen].any(axis=1).sum()))
    return ReclaimPlan(servers=np.array(servers))


_RECLAIM = [
    Claim(
        name="reclaim_fewest_jobs",
        source="Aryl, section 4, Algorithm 1",
        statement="Returning the server of least preemption cost, again and again, keeps preemptions to a minimum.",
        reading="it preempts the fewest jobs possible, at least for some way of breaking ties.",
        instances=lambda rng: _reclaims(16),
        breaks=lambda instance: _preempts_more(instance, _fewest(instance)),
        scope="clusters with up to 16 places (jobs times servers) and no empty server, up to numbering, with every "
        "demand above 1",
        exhaustive=True,
    ),
    Claim(
        name="reclaim_within_twice",
        source="Aryl, section 4, Algorithm 1",
        statement="Returning the server of least preemption cost, again and again, keeps preemptions to a minimum.",
        reading="a weaker one: it preempts at most twice the fewest jobs possible, at least for some way of breaking "
        "ties. The factor is this library's.",
        instances=lambda rng: _two_of(4, 8),
        breaks=lambda instance: _preempts_more(instance, _fewest(instance), factor=2),
        scope="clusters of up to 8 servers, none empty, and 4 jobs, up to numbering, with a demand of 2",
        exhaustive=True,
    ),
    Claim(
        name="reclaim_one_server",
        source="Aryl, section 4, Algorithm 1",
        statement="When one server is to be returned, the one with the fewest jobs is the right one.",
        reading="it preempts the fewest jobs possible.",
        instances=lambda rng: (
            Reclaim(hosts=gpus > 0, gpus=gpus, demand=1)
            for num_servers in range(2, 6)
            for num_jobs in range(1, 5)
            for gpus in _clusters(num_jobs, num_servers)
        ),
        breaks=lambda instance: _preempts_more(instance, _fewest(instance)),
        scope="clusters of up to 5 servers, none empty, and 4 jobs, up to numbering, with a demand of 1",
        exhaustive=True,
    ),
    Claim(
        name="reclaim_separate_jobs",
        source="Aryl, section 4",
        statement="What makes reclaiming hard is that servers share jobs, so that the cost of one depends on the "
        "others.",
        reading="where every job sits on one server, Algorithm 1 preempts the fewest jobs possible.",
        instances=lambda rng: _separate_jobs(),
        breaks=lambda instance: _preempts_more(instance, _fewest(instance)),
        scope="2 to 5 servers with 0 to 4 jobs of their own each, with every demand",
        exhaustive=True,
    ),
    Claim(
        name="reclaim_against_job_count",
        source="Aryl, section 4, Table 1",
        statement="The fraction of its servers is a better cost of a job than 1, that is, than counting jobs.",
        reading="on no cluster does Algorithm 1 preempt more jobs than smallest count first, at least for some way of "
        "breaking its ties. The paper compares examples and averages.",
        instances=lambda rng: _reclaims(20),
        breaks=lambda instance: _preempts_more(instance, smallest_count_first(instance)),
        scope="clusters with up to 20 places (jobs times servers) and no empty server, up to numbering, with every "
        "demand above 1",
        exhaustive=True,
    ),
    Claim(
        name="reclaim_against_gpu_fraction",
        source="Aryl, section 4, Table 1",
        statement="The fraction of its servers is a better cost of a job than the fraction of its GPUs.",
        reading="on no cluster does Algorithm 1 preempt more jobs than the greedy method by GPUs, at least for some "
        "way of breaking its ties. The paper compares examples and averages.",
        instances=lambda rng: _reclaims(12, most_gpus=2),
        breaks=lambda instance: _preempts_more(instance, gpu_fraction(instance)),
        scope="clusters with up to 12 places (jobs times servers) of 0 to 2 GPUs and no empty server, up to numbering, "
        "with every demand above 1",
        exhaustive=True,
    ),
]


# --- spare GPUs: section 5.2 ---------------------------------------------------------------------


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
    return f"{_and(plan.extra_workers)} extra workers save {value:g} s, {_and(best)} save {most:g} s"


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
    return f"line 17 gives {_and(printed)} extra workers, which save {saved} s, the text {_and(text)}, {most} s"


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
        f"{_and(chosen)} extra workers reduce running times by {most} s and complete the jobs in {mean} s on average, "
        f"{_and(best)} reduce them by {_reduction(instance, best)} s and complete the jobs in {least} s"
    )


_ELASTIC = [
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


# --- placement: section 5.3 ----------------------------------------------------------------------


def _placements(
    workers: tuple[int, ...], gpus: tuple[int, ...], server_gpus: int, groups: tuple[str, ...] = ("training",)
) -> Iterator[Placement]:
    """Workers of the sizes ``gpus`` on equal servers, in each group as many as there are workers."""
    kinds = list(itertools.product(gpus, [group == "inference" for group in groups]))
    for number in workers:
        for chosen in itertools.combinations_with_replacement(kinds, number):
            sizes = sorted(set(chosen))
            yield Placement(
                gpus_per_worker=np.array([size for size, _ in sizes]),
                num_workers=np.array([chosen.count(kind) for kind in sizes]),
                elastic=np.array([elastic for _, elastic in sizes]),
                server_gpus=np.full(number * len(groups), server_gpus),
                server_groups=np.repeat(groups, number),
            )


def _fit(workers: list[int], free: list[int]) -> bool:
    """Whether workers of these GPUs, largest first, fit on servers with these free GPUs."""
    if not workers:
        return True
    need, *rest = workers
    # Servers with equal room are alike.
    for room in {room for room in free if room >= need}:
        left = free.copy()
        left.remove(room)
        if _fit(rest, [*left, room - need]):
            return True
    return False


def _opens_more(instance: Placement) -> str:
    """How best fit decreasing opens more servers than are needed, of servers that are all equal."""
    opened = instance.servers_opened(best_fit_decreasing(instance))
    workers = sorted(np.repeat(instance.gpus_per_worker, instance.num_workers).tolist(), reverse=True)
    if _fit(workers, instance.server_gpus[: opened - 1].tolist()):
        return f"it opens {opened} servers, {opened - 1} would do"
    return ""


_PLACEMENT = [
    Claim(
        name="placement_fewest_servers",
        source="Aryl, section 5.3",
        statement="Best fit decreasing packs workers so that little is left in fragments.",
        reading="in one group of equal servers it opens the fewest.",
        instances=lambda rng: itertools.chain.from_iterable(
            _placements((workers,), tuple(range(1, size + 1)), size) for workers in range(1, 7) for size in range(1, 9)
        ),
        breaks=_opens_more,
        scope="up to 6 workers of any GPUs on equal servers of up to 8 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="placement_powers_of_two",
        source="Aryl, section 5.3",
        statement="Best fit decreasing packs workers so that little is left in fragments.",
        reading="in one group of servers of 8 GPUs it opens the fewest for workers of 1, 2, 4 and 8.",
        instances=lambda rng: _placements(tuple(range(1, 13)), (1, 2, 4, 8), 8),
        breaks=_opens_more,
        scope="up to 12 workers of 1, 2, 4 or 8 GPUs on servers of 8",
        exhaustive=True,
    ),
    Claim(
        name="placement_two_groups",
        source="Aryl, section 5.3",
        statement="Best fit decreasing packs workers so that little is left in fragments, while elastic jobs prefer "
        "the servers on loan.",
        reading="of both groups together, of equal servers, it opens the fewest. A worker leaves its group when "
        "nothing there fits it, opened or not.",
        instances=lambda rng: _placements(tuple(range(1, 7)), (1, 2, 4, 8), 8, ("training", "inference")),
        breaks=_opens_more,
        scope="up to 6 workers of 1, 2, 4 or 8 GPUs, elastic or not, on servers of 8 in two groups",
        exhaustive=True,
    ),
]


def _and(numbers: IntArray | tuple[int, ...]) -> str:
    """``1``, ``1 and 2`` or ``1, 2 and 3``."""
    *before, last = map(str, numbers)
    return f"{', '.join(before)} and {last}" if before else last


CLAIMS: list[Claim] = [*_TWO_JOBS, *_RECLAIM, *_ELASTIC, *_PLACEMENT]
