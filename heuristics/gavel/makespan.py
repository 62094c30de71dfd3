"""Fast methods for :class:`instances.gavel.makespan.Makespan`."""

from __future__ import annotations

from heuristics.gavel import same_mix
from heuristics.gavel.levels import EPSILON, Levels, checked
from heuristics.gavel.schedules import allox_schedule, averaged, fifo_schedule
from heuristics.gavel.sharing import equal_share, heterogeneity_agnostic, isolated, matched_packing, random_packing
from instances.gavel.makespan import Makespan
from instances.gavel.sharing import Allocation

__all__ = [
    "agnostic_fifo",
    "allox",
    "equal_share",
    "heterogeneity_agnostic",
    "interior_point",
    "isolated",
    "matched_packing",
    "random_packing",
    "same_finish",
]


def agnostic_fifo(instance: Makespan) -> Allocation:
    """First in, first out to completion, blind to speeds: the jobs' times on their types over the schedule's length.

    See :func:`heuristics.gavel.schedules.fifo_schedule`; jobs come in the order of their numbers.

    Guarantee: none.  Complexity: O(n * (k + n)).

    References
    ----------
    Gavel (OSDI'20), section 7.3 (the FIFO baseline of the makespan policy).
    """
    return averaged(instance, fifo_schedule(instance))


def allox(instance: Makespan) -> Allocation | None:
    """AlloX's schedule of least average completion time, as :func:`agnostic_fifo`; None with jobs of several workers.

    Guarantee: none on the makespan; least average completion time of all schedules without preemption, of
    which :func:`heuristics.gavel.schedules.allox_schedule` says more.
    Complexity: O(n**2 * k * (n + W)) for W workers a type.

    References
    ----------
    Gavel (OSDI'20), section 7.3 (a baseline); Le et al., "AlloX" (EuroSys'20).
    """
    schedule = allox_schedule(instance)
    return None if schedule is None else averaged(instance, schedule)


def same_finish(instance: Makespan) -> Allocation:
    """All jobs in the same mix of worker types, for as long as makes them finish together (ours).

    In its mix alone a job would take d_m s.  Running for d_m / T of the time it takes T s, and T is
    the least that fits: the longest d_m, or what fills the first pool.  Jobs that have finished, or run
    nowhere alone, get no time.

    Guarantee: the least makespan of all plans in which every job runs alone in its mix; none known
    against others.  Complexity: O(n * k).
    """
    alone = same_mix.times(instance)
    makespan = same_mix.load(instance, alone)
    return same_mix.allocation(instance, alone / makespan if makespan > 0 else alone)


def interior_point(instance: Makespan, *, epsilon: float = EPSILON) -> Allocation:
    """Find the greatest rate of work by :func:`heuristics.gavel.max_min_fairness.interior_point`'s method.

    The level is 1 over the makespan, and what a job demands are its steps.

    Guarantee: never worse than :func:`same_finish`.  Without pairs, or with at most ``GROUP`` jobs, value <= optimum /
    (1 - epsilon), unless the last of its steps comes before its prices prove it.  Complexity: as there.

    Raises
    ------
    ValueError
        When ``epsilon`` is not at least 1e-5 and less than 0.1.
    """
    checked(epsilon)
    share = same_finish(instance)
    if instance.endless.any() or not instance.active.any():
        return share
    found = Levels(instance).attain(instance.steps, epsilon).allocation
    return min(share, found, key=instance.objective)
