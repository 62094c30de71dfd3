"""Claims of Gavel (OSDI'20) about shortest job first."""

from __future__ import annotations

import numpy as np

from formulations.gavel.sharing import SharingProgram
from instances.base import agree
from instances.gavel.sharing import Allocation
from instances.gavel.shortest_job_first import ShortestJobFirst
from instances.schema import FloatArray
from validation.claims.claim import Claim, Reading
from validation.claims.gavel.clusters import Family, of_family
from validation.claims.gavel.optima import missed
from validation.claims.gavel.properties import homogeneous, job_incentive, objective_incentive
from validation.claims.plans import OPTIMAL, plans_of

__all__ = ["CLAIMS"]


def _shortest(instance: ShortestJobFirst) -> Allocation:
    x = np.zeros((instance.num_jobs, 1))
    x[(instance.steps / instance.throughputs[:, 0]).argmin()] = 1.0
    return Allocation(time_fractions=x)


def _not_the_shortest(instance: ShortestJobFirst) -> str | None:
    """Describe how the program of the shortest job misses the optimum."""
    times = instance.steps / instance.fastest_throughputs
    worth = np.zeros(instance.throughputs.shape)
    worth[times.argmin()] = 1.0
    program = SharingProgram(instance)
    program.maximize("throughput", (worth * program.throughputs).sum())
    return missed(instance, program)


def _one_job_each(instance: ShortestJobFirst) -> FloatArray:
    """Return the optimal allocations of one job on its fastest type, (a, r, k) float."""
    times = instance.steps / instance.fastest_throughputs
    first = np.flatnonzero(times == times.min())
    alone = np.zeros((len(first), *instance.throughputs.shape))
    alone[np.arange(len(first)), first, instance.throughputs[first].argmax(axis=1)] = 1.0
    return alone


def _mean(instance: ShortestJobFirst) -> Allocation:
    return Allocation(time_fractions=_one_job_each(instance).mean(axis=0))


def _worse_in_between(instance: ShortestJobFirst) -> str | None:
    """Describe how the mean of two optimal allocations, each of one job on its fastest type, is not optimal."""
    least = float((instance.steps / instance.fastest_throughputs).min())
    value = instance.objective(_mean(instance))
    if agree(value, least):
        return None
    return f"{len(_one_job_each(instance))} allocations are worth {least:.6g} s, their mean {value:.6g} s"


_SMALL = Family(ShortestJobFirst, 3, (1, 2), jobs={"steps": (1.0, 2.0)})

CLAIMS: list[Claim] = [
    objective_incentive(ShortestJobFirst),
    job_incentive(_SMALL),
    homogeneous("shortest_job_first", ShortestJobFirst, _shortest, "running the job of least time left all the time."),
    of_family(
        _SMALL,
        name="one_linear_program_shortest_job_first",
        source="Gavel, section 4.2",
        statement="Most policies are single linear programs; the exceptions named are the cost policies.",
        reading="of shortest job first, knowing which job that is: the program that maximises the throughput of the "
        "job of least time on its fastest type finds the optimum.",
        breaks=_not_the_shortest,
        others=(
            Reading(
                "of the printed objective, over X: what lies between two optimal allocations is optimal too, as in a "
                "linear program.",
                _worse_in_between,
                plans=plans_of(OPTIMAL, ("the mean of optimal ones", _mean)),
            ),
        ),
    ),
]
