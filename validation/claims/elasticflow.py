"""What ElasticFlow (ASPLOS'23) states, put to the test.

Jobs do whole numbers of iterations, so that whether there is a plan, and how little GPU time it
takes, is found exactly, by trying every way of sharing every slot.  What judges the heuristics here
shares nothing with the models of :mod:`formulations`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from heuristics.elasticflow.allocation import greedy_marginal_return
from heuristics.elasticflow.filling import fill_jobs
from heuristics.elasticflow.minimum_satisfactory_share import progressive_filling
from heuristics.elasticflow.placement import buddy_best_fit, buddy_repack
from instances.elasticflow.allocation import Allocation
from instances.elasticflow.minimum_satisfactory_share import MinimumSatisfactoryShare
from instances.elasticflow.placement import Placement, PlacementPlan
from instances.elasticflow.sharing import DeadlineJobs, SlotPlan
from validation.claims import Claim
from validation.transform import take

Jobs = TypeVar("Jobs", bound=DeadlineJobs[Any])

# --- sets of jobs, and all of their plans --------------------------------------------------------


def _sets(
    problem: type[Jobs],
    *,
    most_jobs: int,
    most_gpus: int,
    most_slots: int,
    most_gain: int,
    linear: bool = False,
    fewest_jobs: int = 1,
) -> Iterator[Jobs]:
    """All sets of jobs of linear or of concave curves, none of which is too large for the cluster alone.

    The first GPU of a job does 1 to ``most_gain`` iterations in a slot, each other one the same
    (linear) or no more than the one before (concave).
    """
    for num_jobs, num_gpus in itertools.product(range(fewest_jobs, most_jobs + 1), range(1, most_gpus + 1)):
        kinds = [
            (iterations, deadline, (0, *itertools.accumulate(gains)))
            for gains in itertools.combinations_with_replacement(range(most_gain, -1, -1), num_gpus)
            if gains[0] and (not linear or gains[0] == gains[-1])
            for deadline in range(1, most_slots + 1)
            for iterations in range(1, deadline * sum(gains) + 1)
        ]
        sets = itertools.combinations_with_replacement(kinds, num_jobs)
        for jobs in sorted(sets, key=lambda jobs: sum(done + deadline + sum(curve) for done, deadline, curve in jobs)):
            iterations, deadlines, curves = zip(*jobs, strict=True)
            yield problem(
                num_gpus=num_gpus,
                iterations=np.array(iterations, float),
                deadlines=np.array(deadlines),
                throughputs=np.array(curves, float),
            )


def _least_gpu_time(instance: DeadlineJobs[Any], *, useful: bool = False, parts: int = 1) -> int | None:
    """Fewest GPU-slots of all plans, found by trying them all; None when there is no plan.

    Parameters
    ----------
    instance : DeadlineJobs
    useful : bool
        Whether (7) is to hold: no GPU is idle in slot 0 that would speed up a job.
    parts : int
        Parts into which each GPU can be divided, which are then counted; for linear curves.
    """
    num_gpus = parts * instance.num_gpus
    # In units of 1 / parts iterations, in which a part of a GPU does what a GPU does.
    curves = [[int(done) for done in curve] for curve in instance.throughputs]
    if parts > 1:
        curves = [[curve[1] * count for count in range(num_gpus + 1)] for curve in curves]
    least = {tuple(parts * int(each) for each in instance.iterations): 0}
    for slot in range(instance.horizon):
        counts = (range(num_gpus + 1) if deadline > slot else (0,) for deadline in instance.deadlines)
        shares = [gpus for gpus in itertools.product(*counts) if sum(gpus) <= num_gpus]
        if useful and slot == 0:
            shares = [gpus for gpus in shares if sum(gpus) == num_gpus or not _speeds_up(curves, gpus)]
        after: dict[tuple[int, ...], int] = {}
        for (left, used), gpus in itertools.product(least.items(), shares):
            now = tuple(max(0, work - curve[x]) for work, curve, x in zip(left, curves, gpus, strict=True))
            after[now] = min(used + sum(gpus), after.get(now, used + sum(gpus)))
        due = np.flatnonzero(instance.deadlines == slot + 1)
        least = {left: used for left, used in after.items() if not any(left[job] for job in due)}
    return min(least.values(), default=None)


def _speeds_up(curves: list[list[int]], gpus: tuple[int, ...]) -> bool:
    """Whether one more GPU would make a job faster."""
    return any(max(curve[x : x + 2]) > curve[x] for curve, x in zip(curves, gpus, strict=True))


# --- the condition for linear curves: section 4.1, Theorem 1 --------------------------------------


def _condition(instance: DeadlineJobs[Any], *, rounded: bool = False) -> bool:
    """Theorem 1's condition, exactly: the GPU time of the jobs due by each deadline fits in before it."""
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


def _unnecessary(instance: MinimumSatisfactoryShare) -> str:
    if _condition(instance) or _least_gpu_time(instance) is None:
        return ""
    return "there is a plan, although the condition does not hold"


def _insufficient(instance: MinimumSatisfactoryShare) -> str:
    if not _condition(instance) or _least_gpu_time(instance) is not None:
        return ""
    return "the condition holds, but in whole GPUs there is no plan"


def _rounded_errs(instance: MinimumSatisfactoryShare) -> str:
    holds, least = _condition(instance, rounded=True), _least_gpu_time(instance)
    if holds == (least is not None):
        return ""
    return "the condition holds, but there is no plan" if holds else "there is a plan, but the condition does not hold"


def _fractional_errs(instance: MinimumSatisfactoryShare) -> str:
    # Whatever can be done with parts of GPUs can be done with parts that all GPU times are multiples of.
    parts = math.lcm(*(int(curve[1]) for curve in instance.throughputs))
    holds, least = _condition(instance), _least_gpu_time(instance, parts=parts)
    if holds == (least is not None):
        return ""
    return "the condition holds, but there is no plan" if holds else "there is a plan, but the condition does not hold"


def _linear(
    most_jobs: int, most_slots: int, most_gain: int, fewest_jobs: int = 1
) -> Iterator[MinimumSatisfactoryShare]:
    return _sets(
        MinimumSatisfactoryShare,
        most_jobs=most_jobs,
        most_gpus=2,
        most_slots=most_slots,
        most_gain=most_gain,
        linear=True,
        fewest_jobs=fewest_jobs,
    )


_THEOREM_1 = "With linear scaling curves, all jobs can meet their deadlines if, and only if, for each job the GPU time \
of the jobs due no later than it fits into the cluster before its deadline."

_LINEAR = [
    Claim(
        name="edf_condition_necessary",
        source="ElasticFlow, section 4.1, Theorem 1",
        statement=_THEOREM_1,
        reading="only if: wherever there is a plan of whole GPUs, the condition holds.",
        instances=lambda rng: _linear(3, 2, 2),
        breaks=_unnecessary,
        scope="up to 3 jobs of linear curves of 1 or 2 iterations per GPU and slot, with deadlines of 1 or 2 slots, on "
        "up to 2 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="edf_condition_sufficient",
        source="ElasticFlow, section 4.1, Theorem 1",
        statement=_THEOREM_1,
        reading="if: wherever the condition holds, there is a plan of whole GPUs in whole slots, as in (2) and (3).",
        instances=lambda rng: _linear(3, 2, 2),
        breaks=_insufficient,
        scope="up to 3 jobs of linear curves of 1 or 2 iterations per GPU and slot, with deadlines of 1 or 2 slots, on "
        "up to 2 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="edf_condition_fractional",
        source="ElasticFlow, section 4.1, Theorem 1",
        statement=_THEOREM_1,
        reading="a job may hold a fraction of a GPU in a slot, that is, a GPU for a part of it.",
        instances=lambda rng: itertools.chain(_linear(2, 2, 3), _linear(3, 2, 2, fewest_jobs=3)),
        breaks=_fractional_errs,
        scope="up to 2 jobs of linear curves of 1 to 3 iterations per GPU and slot, or 3 jobs of 1 or 2, with "
        "deadlines of 1 or 2 slots, on up to 2 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="edf_condition_rounded",
        source="ElasticFlow, section 4.1, Theorem 1",
        statement=_THEOREM_1,
        reading="whole GPUs in whole slots, and the GPU time of each job is rounded up to whole GPU-slots, which is "
        "this library's repair.",
        instances=lambda rng: _linear(3, 2, 2),
        breaks=_rounded_errs,
        scope="up to 3 jobs of linear curves of 1 or 2 iterations per GPU and slot, with deadlines of 1 or 2 slots, on "
        "up to 2 GPUs",
        exhaustive=True,
    ),
]


# --- minimum satisfactory shares: section 4.1, Algorithm 1 -----------------------------------------


def _renumbered(instance: Jobs) -> Iterator[Jobs]:
    """The instance with its jobs in every order, which is to break ties between deadlines in every way."""
    for order in itertools.permutations(range(instance.num_jobs)):
        if (np.diff(instance.deadlines[list(order)]) >= 0).all():
            yield take(instance, "n", order)


Filling = Callable[[MinimumSatisfactoryShare], SlotPlan | None]


def _finds_none(instance: MinimumSatisfactoryShare, method: Filling = progressive_filling) -> str:
    """How Algorithm 1 finds no plan where there is one, however ties are broken."""
    if any(method(each) is not None for each in _renumbered(instance)):
        return ""
    least = _least_gpu_time(instance)
    if least is None:
        return ""
    return f"it finds no plan however ties are broken, there is one of {least} GPU-slots"


def _trimmed(instance: DeadlineJobs[Any]) -> SlotPlan | None:
    """Algorithm 1, except that a job holds no more GPUs than it needs in the last slot that it takes."""
    gpus = np.zeros((instance.num_jobs, instance.horizon), np.int64)
    for job in np.argsort(instance.deadlines, kind="stable"):
        free = instance.num_gpus - gpus.sum(axis=0)
        for level in range(1, instance.num_gpus + 1):
            left = int(instance.iterations[job])
            gpus[job] = 0
            for slot in reversed(range(instance.deadlines[job])):
                share = min(level, int(free[slot]))
                enough = np.flatnonzero(instance.throughputs[job, : share + 1] >= left)
                gpus[job, slot] = enough[0] if enough.size else share
                left = max(0, left - int(instance.throughputs[job, gpus[job, slot]]))
            if not left:
                break
        else:
            return None
    return SlotPlan(gpus=gpus)


def _late(instance: MinimumSatisfactoryShare) -> str:
    plan = progressive_filling(instance)
    broken = instance.violations(plan) if plan is not None else []
    return f"its plan breaks a rule: {broken[0]}" if broken else ""


def _wastes(instance: MinimumSatisfactoryShare, method: Filling = progressive_filling) -> str:
    """How Algorithm 1 takes more GPU time than is needed, however ties are broken."""
    plans = [(each, method(each)) for each in _renumbered(instance)]
    takes = [int(each.objective(plan)) for each, plan in plans if plan is not None]
    least = _least_gpu_time(instance) if takes else None
    if least is None or min(takes) <= least:
        return ""
    return f"it takes {min(takes)} GPU-slots or more however ties are broken, {least} would do"


def _concave(most_jobs: int, most_gpus: int = 2, most_slots: int = 2) -> Iterator[MinimumSatisfactoryShare]:
    return _sets(MinimumSatisfactoryShare, most_jobs=most_jobs, most_gpus=most_gpus, most_slots=most_slots, most_gain=2)


_PROGRESSIVE_FILLING = [
    Claim(
        name="progressive_filling_keeps_deadlines",
        source="ElasticFlow, section 4.1, Algorithm 1",
        statement="Jobs that admission control admits meet their deadlines.",
        reading="whatever plan Algorithm 1 finds does all the work in time on the GPUs there are.",
        instances=lambda rng: itertools.chain(_concave(2), _concave(2, 3)),
        breaks=_late,
        scope="up to 2 jobs of concave curves whose first GPU does 1 or 2 iterations per slot, with deadlines of 1 or "
        "2 slots, on up to 3 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="progressive_filling_complete",
        source="ElasticFlow, section 4.1, Algorithm 1",
        statement="Progressive filling decides whether all jobs can meet their deadlines.",
        reading="with concave curves, it finds a plan whenever there is one, at least for some way of breaking ties "
        "between deadlines.",
        instances=lambda rng: _concave(3, 2, 3),
        breaks=_finds_none,
        scope="up to 3 jobs of concave curves whose first GPU does 1 or 2 iterations per slot, with deadlines of 1 to "
        "3 slots, on up to 2 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="progressive_filling_complete_linear",
        source="ElasticFlow, section 4.1, Algorithm 1",
        statement="Progressive filling decides whether all jobs can meet their deadlines.",
        reading="with linear curves, it finds a plan of whole GPUs whenever there is one, at least for some way of "
        "breaking ties between deadlines.",
        instances=lambda rng: _linear(3, 3, 1),
        breaks=_finds_none,
        scope="up to 3 jobs of linear curves of one iteration per GPU and slot, with deadlines of 1 to 3 slots, on up "
        "to 2 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="progressive_filling_complete_one_job",
        source="ElasticFlow, section 4.1, Algorithm 1",
        statement="Progressive filling decides whether all jobs can meet their deadlines.",
        reading="for a job that has the cluster to itself, with a concave curve, it finds a plan whenever there is "
        "one.",
        instances=lambda rng: _concave(1, 4, 3),
        breaks=_finds_none,
        scope="a job of a concave curve whose first GPU does 1 or 2 iterations per slot, with a deadline of 1 to 3 "
        "slots, on up to 4 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="progressive_filling_least_gpu_time",
        source="ElasticFlow, section 4.1, Algorithm 1",
        statement="The minimum satisfactory shares of Algorithm 1 meet all deadlines at the least GPU time.",
        reading="with concave curves, where it finds a plan, no other plan takes fewer GPU-slots, at least for some "
        "way of breaking ties between deadlines.",
        instances=lambda rng: _concave(2),
        breaks=_wastes,
        scope="up to 2 jobs of concave curves whose first GPU does 1 or 2 iterations per slot, with deadlines of 1 or "
        "2 slots, on up to 2 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="trimmed_filling_complete",
        source="ElasticFlow, section 4.1, Algorithm 1",
        statement="Progressive filling decides whether all jobs can meet their deadlines.",
        reading="a charitable one: in the last slot that it takes, a job holds no more GPUs than it needs. With "
        "concave curves, it finds a plan whenever there is one, at least for some way of breaking ties between "
        "deadlines.",
        instances=lambda rng: _concave(3, 2, 3),
        breaks=lambda instance: _finds_none(instance, _trimmed),
        scope="up to 3 jobs of concave curves whose first GPU does 1 or 2 iterations per slot, with deadlines of 1 to "
        "3 slots, on up to 2 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="trimmed_filling_complete_linear",
        source="ElasticFlow, section 4.1, Algorithm 1",
        statement="Progressive filling decides whether all jobs can meet their deadlines.",
        reading="a charitable one: in the last slot that it takes, a job holds no more GPUs than it needs. With linear "
        "curves, it finds a plan of whole GPUs whenever there is one, at least for some way of breaking ties between "
        "deadlines.",
        instances=lambda rng: _linear(3, 3, 2),
        breaks=lambda instance: _finds_none(instance, _trimmed),
        scope="up to 3 jobs of linear curves of 1 or 2 iterations per GPU and slot, with deadlines of 1 to 3 slots, on "
        "up to 2 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="trimmed_filling_least_gpu_time",
        source="ElasticFlow, section 4.1, Algorithm 1",
        statement="The minimum satisfactory shares of Algorithm 1 meet all deadlines at the least GPU time.",
        reading="a charitable one: in the last slot that it takes, a job holds no more GPUs than it needs. With "
        "concave curves, where it finds a plan, no other plan takes fewer GPU-slots, at least for some way of breaking "
        "ties between deadlines.",
        instances=lambda rng: _concave(2, 2, 3),
        breaks=lambda instance: _wastes(instance, _trimmed),
        scope="up to 2 jobs of concave curves whose first GPU does 1 or 2 iterations per slot, with deadlines of 1 to "
        "3 slots, on up to 2 GPUs",
        exhaustive=True,
    ),
]


# --- idle GPUs: section 4.2, Algorithm 2 ------------------------------------------------------------


def _grown(instance: Allocation, *, repaired: bool) -> list[tuple[Allocation, SlotPlan]]:
    """Algorithm 2's plans, one for each way of breaking ties by the jobs' numbers; none where it finds none."""
    found = ((each, greedy_marginal_return(each, repaired=repaired)) for each in _every_order(instance))
    return [(each, plan) for each, plan in found if plan is not None]


def _every_order(instance: Jobs) -> Iterator[Jobs]:
    # Marginal returns may tie although deadlines do not.
    for order in itertools.permutations(range(instance.num_jobs)):
        yield take(instance, "n", order)


def _idles(instance: Allocation) -> str:
    """How Algorithm 2 leaves a GPU idle that (7) wants used, however ties are broken."""
    plans = _grown(instance, repaired=False)
    if not plans or not all(each.violations(plan) for each, plan in plans):
        return ""
    each, plan = min(plans, key=lambda found: found[0].num_gpus - int(found[1].gpus[:, 0].sum()))
    idle = each.num_gpus - int(plan.gpus[:, 0].sum())
    return f"it leaves {idle} of {each.num_gpus} GPUs idle in slot 0 that would speed up a job"


def _more_gpu_time(instance: Allocation, *, repaired: bool) -> str:
    """How Algorithm 2's plans that keep (7) take more GPU time than is needed, however ties are broken."""
    plans = _grown(instance, repaired=repaired)
    takes = [int(each.objective(plan)) for each, plan in plans if not each.violations(plan)]
    least = _least_gpu_time(instance, useful=True) if takes else None
    if least is None or min(takes) <= least:
        return ""
    return f"it takes {min(takes)} GPU-slots or more however ties are broken, {least} would do"


def _loses_the_optimum(instance: Allocation) -> str:
    """How Algorithm 2, repaired, ends above the least GPU time although it starts from it."""
    shares = fill_jobs(instance, np.arange(instance.num_jobs))
    if shares is None or shares.sum() != _least_gpu_time(instance):
        return ""
    return _more_gpu_time(instance, repaired=True)


def _allocations(most_jobs: int, most_gpus: int, most_slots: int = 2) -> Iterator[Allocation]:
    return _sets(Allocation, most_jobs=most_jobs, most_gpus=most_gpus, most_slots=most_slots, most_gain=2)


_THEOREM_2 = "Algorithm 2 solves the resource allocation problem (4) to (7) optimally when scaling curves are concave."

_ALLOCATION = [
    Claim(
        name="algorithm_2_uses_idle_gpus",
        source="ElasticFlow, section 4.2, Algorithm 2",
        statement="Algorithm 2 leaves no GPU idle that would speed up a job.",
        reading="as printed, each job enters the queue once; its plans keep (7), at least for some way of breaking "
        "ties.",
        instances=lambda rng: _allocations(2, 3),
        breaks=_idles,
        scope="up to 2 jobs of concave curves whose first GPU does 1 or 2 iterations per slot, with deadlines of 1 or "
        "2 slots, on up to 3 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="algorithm_2_least_gpu_time",
        source="ElasticFlow, section 4.2, Theorem 2",
        statement=_THEOREM_2,
        reading="as printed; where its plan keeps (7), no other plan that keeps (5) to (7) takes fewer GPU-slots, at "
        "least for some way of breaking ties.",
        instances=lambda rng: _allocations(2, 3),
        breaks=lambda instance: _more_gpu_time(instance, repaired=False),
        scope="up to 2 jobs of concave curves whose first GPU does 1 or 2 iterations per slot, with deadlines of 1 or "
        "2 slots, on up to 3 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="algorithm_2_repaired_least_gpu_time",
        source="ElasticFlow, section 4.2, Theorem 2",
        statement=_THEOREM_2,
        reading="jobs stay in the queue while another GPU makes them faster, which keeps (7); no other plan that keeps "
        "(5) to (7) takes fewer GPU-slots, at least for some way of breaking ties.",
        instances=lambda rng: _allocations(2, 3),
        breaks=lambda instance: _more_gpu_time(instance, repaired=True),
        scope="up to 2 jobs of concave curves whose first GPU does 1 or 2 iterations per slot, with deadlines of 1 or "
        "2 slots, on up to 3 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="algorithm_2_from_least_shares",
        source="ElasticFlow, section 4.2, Theorem 2",
        statement=_THEOREM_2,
        reading="a weaker one: repaired as before, and only where the shares of Algorithm 1, from which it starts, "
        "meet the deadlines at the least GPU time.",
        instances=lambda rng: _allocations(2, 2, 3),
        breaks=_loses_the_optimum,
        scope="up to 2 jobs of concave curves whose first GPU does 1 or 2 iterations per slot, with deadlines of 1 to "
        "3 slots, on up to 2 GPUs",
        exhaustive=True,
    ),
]


# --- where jobs run: section 4.3 --------------------------------------------------------------------


Blocks = tuple[tuple[int, int], ...]
"""Offset and size of each job."""


def _layouts(num_gpus: int) -> Iterator[Blocks]:
    """All ways for jobs to hold disjoint blocks of a power of two of GPUs, each at a multiple of its size."""

    def within(start: int) -> Iterator[Blocks]:
        if start == num_gpus:
            yield ()
            return
        for rest in within(start + 1):
            yield rest
        size = 1
        while start % size == 0 and start + size <= num_gpus:
            for rest in within(start + size):
                yield ((start, size), *rest)
            size *= 2

    return within(0)


def _sizes(total: int) -> Iterator[tuple[int, ...]]:
    """All sets of powers of two that sum to at most ``total``, largest first; not the empty one."""
    powers = [2**exponent for exponent in range(total.bit_length())]
    for number in range(1, total + 1):
        for sizes in itertools.combinations_with_replacement(reversed(powers), number):
            if sum(sizes) <= total:
                yield sizes


def _cluster(num_gpus: int, running: Blocks, new: tuple[int, ...]) -> Placement:
    offsets = [offset for offset, _ in running]
    return Placement(
        num_gpus=num_gpus,
        # The largest power of two that divides it.
        gpus_per_server=num_gpus & -num_gpus,
        sizes=np.array([*(size for _, size in running), *new]),
        previous_offsets=np.array([*offsets, *[np.inf] * len(new)], float),
    )


def _arrivals(clusters: tuple[int, ...]) -> Iterator[Placement]:
    """Running jobs in blocks of theirs, and new jobs for which there are enough free GPUs."""
    for num_gpus in clusters:
        for running in sorted(_layouts(num_gpus), key=len):
            for new in _sizes(num_gpus - sum(size for _, size in running)):
                yield _cluster(num_gpus, running, new)


def _resized(clusters: tuple[int, ...]) -> Iterator[Placement]:
    """Jobs that run anywhere, overlapping and out of line, and for which there are enough GPUs."""
    for num_gpus in clusters:
        for sizes in _sizes(num_gpus):
            for offsets in itertools.product(range(num_gpus), repeat=len(sizes)):
                yield _cluster(num_gpus, tuple(zip(offsets, sizes, strict=True)), ())


def _fragmented(instance: Placement, method: Callable[[Placement], PlacementPlan | None]) -> str:
    """How ``method`` places not all jobs although they need no more GPUs than there are."""
    plan = method(instance)
    need = f"the jobs need {instance.sizes.sum()} of {instance.num_gpus} GPUs"
    if plan is None:
        return f"{need} and are not placed"
    broken = instance.violations(plan)
    return f"{need} and are placed against a rule: {broken[0]}" if broken else ""


def _fit(sizes: tuple[int, ...], free: tuple[int, ...]) -> bool:
    """Whether jobs of these sizes fit on servers with these free GPUs, each on one."""
    if not sizes:
        return True
    size, *rest = sizes
    return any(
        _fit(tuple(rest), (*free[:server], room - size, *free[server + 1 :]))
        for server, room in enumerate(free)
        if room >= size
    )


def _two_servers(servers: tuple[int, ...]) -> Iterator[Placement]:
    """New jobs for two servers of so many GPUs each, none larger than a server."""
    for server in servers:
        for sizes in _sizes(2 * server):
            if max(sizes) <= server:
                yield _cluster(2 * server, (), sizes)


def _splits_a_job(instance: Placement) -> str:
    server = instance.num_gpus // 2
    sizes = tuple(instance.sizes.tolist())
    if _fit(sizes, (server, server)):
        return ""
    return (
        f"the jobs need {sum(sizes)} of {instance.num_gpus} GPUs, but on two servers of {server} one of them has to be "
        "split over both"
    )


_BUDDY = (
    "Buddy allocation with migration eliminates fragmentation: a job is placed whenever there are enough idle GPUs."
)

_PLACEMENT = [
    Claim(
        name="buddy_with_migration",
        source="ElasticFlow, section 4.3",
        statement=_BUDDY,
        reading="jobs and the cluster have powers of two of GPUs, and running jobs may move.",
        instances=lambda rng: _arrivals((1, 2, 4, 8)),
        breaks=lambda instance: _fragmented(instance, buddy_repack),
        scope="all blocks of running jobs on 1, 2, 4 and 8 GPUs, and all new jobs for which there are enough idle GPUs",
        exhaustive=True,
    ),
    Claim(
        name="buddy_with_migration_resized",
        source="ElasticFlow, section 4.3",
        statement=_BUDDY,
        reading="as before, when the sizes of running jobs have changed, so that their blocks overlap.",
        instances=lambda rng: _resized((1, 2, 4)),
        breaks=lambda instance: _fragmented(instance, buddy_repack),
        scope="running jobs anywhere on 1, 2 and 4 GPUs that are enough for them",
        exhaustive=True,
    ),
    Claim(
        name="buddy_without_migration",
        source="ElasticFlow, section 4.3",
        statement=_BUDDY,
        reading="jobs and the cluster have powers of two of GPUs, and running jobs stay where they are.",
        instances=lambda rng: _arrivals((1, 2, 4, 8)),
        breaks=lambda instance: _fragmented(instance, buddy_best_fit),
        scope="all blocks of running jobs on 1, 2, 4 and 8 GPUs, and all new jobs for which there are enough idle GPUs",
        exhaustive=True,
    ),
    Claim(
        name="buddy_empty_cluster",
        source="ElasticFlow, section 4.3",
        statement=_BUDDY,
        reading="without migration, on an empty cluster, when jobs come largest first.",
        instances=lambda rng: (
            _cluster(num_gpus, (), sizes) for num_gpus in range(1, 17) for sizes in _sizes(num_gpus)
        ),
        breaks=lambda instance: _fragmented(instance, buddy_best_fit),
        scope="all jobs of powers of two that fit into 1 to 16 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="buddy_any_number_of_gpus",
        source="ElasticFlow, section 4.3",
        statement=_BUDDY,
        reading="running jobs may move, and the cluster has a number of GPUs that is no power of two: one such server, "
        "or several of the largest power of two that divides it.",
        instances=lambda rng: _arrivals((3, 5, 6, 7)),
        breaks=lambda instance: _fragmented(instance, buddy_repack),
        scope="all blocks of running jobs on 3, 5, 6 and 7 GPUs, and all new jobs for which there are enough idle GPUs",
        exhaustive=True,
    ),
    Claim(
        name="buddy_odd_servers",
        source="ElasticFlow, section 4.3",
        statement=_BUDDY,
        reading="two servers of a number of GPUs that is no power of two, and each job on one of them, wherever on it. "
        "Instances have no such servers: the one shown has the GPUs of both in servers of the largest power of two "
        "that divides them.",
        instances=lambda rng: _two_servers((3, 5, 6, 7)),
        breaks=_splits_a_job,
        scope="two servers of 3, 5, 6 or 7 GPUs, and all jobs of powers of two up to the server's that have enough "
        "GPUs",
        exhaustive=True,
    ),
    Claim(
        name="buddy_even_servers",
        source="ElasticFlow, section 4.3",
        statement=_BUDDY,
        reading="two servers of a power of two of GPUs, and each job on one of them, wherever on it.",
        instances=lambda rng: _two_servers((1, 2, 4, 8)),
        breaks=_splits_a_job,
        scope="two servers of 1, 2, 4 or 8 GPUs, and all jobs of powers of two up to the server's that have enough "
        "GPUs",
        exhaustive=True,
    ),
]


CLAIMS: list[Claim] = [*_LINEAR, *_PROGRESSIVE_FILLING, *_ALLOCATION, *_PLACEMENT]
