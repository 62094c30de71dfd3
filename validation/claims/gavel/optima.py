"""The optimal allocations of Gavel's policies, and the fairest of them.

Many allocations can be optimal.  Where a claim speaks of what each job gets, it is read in the
policy's favour: it holds when some optimal allocation has the property, and a linear program over
all of them finds the one that has it most.  They are the models': the reference knows what an optimum is worth, not
which allocations attain it.
"""

from __future__ import annotations

import numpy as np

import formulations
from formulations.gavel.sharing import SharingProgram
from instances.base import agree
from instances.gavel.cost import Cost
from instances.gavel.fifo import Fifo
from instances.gavel.finish_time_fairness import FinishTimeFairness
from instances.gavel.makespan import Makespan
from instances.gavel.max_min_fairness import MaxMinFairness
from instances.gavel.sharing import Allocation, Sharing
from instances.gavel.shortest_job_first import ShortestJobFirst
from instances.gavel.throughput_per_dollar import ThroughputPerDollar
from instances.gavel.total_throughput import TotalThroughput
from instances.schema import FloatArray

__all__ = ["attained", "best_of_the_optima", "fairest_optimum", "missed", "only_optimum", "optimum", "run"]

ALIKE = 1e-6
"""Difference of time fractions up to which allocations count as one: what ``best_of_the_optima`` may lack of one."""


def optimum(instance: Sharing) -> tuple[float, Allocation] | None:
    """Return the optimal value and an allocation that attains it; None when none is feasible."""
    solution = formulations.solve(instance)
    if solution.status == "infeasible":
        return None
    if solution.status != "optimal" or solution.objective is None or not isinstance(solution.plan, Allocation):
        raise RuntimeError(f"{instance.problem} was not solved to the end: {solution}")
    return solution.objective, solution.plan


def attained(instance: Sharing) -> tuple[float, Allocation]:
    """Return the optimal value and an allocation that attains it, where there is one."""
    found = optimum(instance)
    assert found is not None
    return found


def _optimal(instance: Sharing, program: SharingProgram, value: float, job: int) -> None:
    """Confine a program to the allocations that attain ``value``; of shortest job first, by this job."""
    if isinstance(instance, MaxMinFairness):
        levels = instance.level_per_throughput / instance.weights
        attains = levels * program.throughput >= value
    elif isinstance(instance, Makespan):
        attains = value / instance.steps * program.throughput >= 1.0
    elif isinstance(instance, FinishTimeFairness):
        left = value * instance.isolated_times - instance.elapsed
        attains = left / instance.steps * program.throughput >= 1.0
    elif isinstance(instance, ShortestJobFirst):
        first = program.subset("FIRST", np.array([job]))
        attains = value / instance.steps[first] * program.throughput[first] >= 1.0
    elif isinstance(instance, Fifo):
        attains = (instance.worths * program.throughput).sum() >= value
    elif isinstance(instance, TotalThroughput):
        attains = program.throughput.sum() == value
    elif isinstance(instance, ThroughputPerDollar):
        attains = (1 / instance.costs * program.throughputs).sum() == value
    elif isinstance(instance, Cost):
        # Running nothing satisfies this too, but gives no job a greater share than another does.
        spent = (instance.prices * program.time_fractions).sum()
        attains = program.throughput.sum() == value * spent
    else:
        raise TypeError(f"it is not known when an allocation of {instance.problem} is optimal")
    program.constraint("optimal", attains)


def fairest_optimum(instance: Sharing) -> tuple[float, Allocation] | None:
    """Return the optimal allocation whose least throughput relative to isolation is greatest, and that share."""
    best = optimum(instance)
    if best is None:
        return None
    value, plan = best
    found = [plan]
    for job in range(instance.num_jobs) if isinstance(instance, ShortestJobFirst) else [0]:
        program = SharingProgram(instance)
        share = program.variable("share", lower=0)
        _optimal(instance, program, value, job)
        program.constraint("shares", 1 / instance.isolated_throughputs * program.throughput >= share)
        program.maximize("greatest_share", share)
        allocation = run(instance, program)
        if allocation is not None:
            found.append(allocation)
    # The first of equals is the one that was found first.
    return max(((_least_share(instance, each), each) for each in found), key=lambda each: each[0])


def best_of_the_optima(instance: MaxMinFairness | Fifo, worth: FloatArray) -> Allocation:
    """Return the optimal allocation of the greatest total of (n, k) ``worth`` times throughput."""
    value, _ = attained(instance)
    program = SharingProgram(instance)
    # A hair less, so that rounding leaves an allocation.
    _optimal(instance, program, value * (1 - 1e-9), 0)
    program.maximize("worth", (worth * program.throughputs).sum())
    found = run(instance, program)
    assert found is not None
    return found


def only_optimum(instance: MaxMinFairness | Fifo) -> FloatArray | None:
    """Return the time fractions of the optimal allocation, (n, k) float; None where there are several."""
    least, most = np.zeros((2, *instance.throughputs.shape))
    for entry in np.ndindex(least.shape):
        for sign, found in ((-1, least), (1, most)):
            worth = np.zeros(least.shape)
            worth[entry] = sign / instance.throughputs[entry] if instance.throughputs[entry] else 0.0
            found[entry] = best_of_the_optima(instance, worth).time_fractions[entry]
    return most if (most - least).max() <= ALIKE else None


def missed(instance: Sharing, program: SharingProgram) -> str | None:
    """Describe how what a program finds best is not optimal."""
    found, (best, _) = run(instance, program), attained(instance)
    assert found is not None
    value = instance.objective(found)
    return None if agree(value, best) else f"the program attains {value:.6g}, the optimum is {best:.6g}"


def _least_share(instance: Sharing, allocation: Allocation) -> float:
    return float((instance.throughput(allocation) / instance.isolated_throughputs).min())


def run(instance: Sharing, program: SharingProgram) -> Allocation | None:
    """Return the allocation that a program finds best; None when none is feasible."""
    result = formulations.Session().run(program.arrays())
    if result.status == "infeasible":
        return None
    if result.x is None or result.status != "optimal":
        raise RuntimeError(f"{instance.problem} was not solved to the end: {result.message}")
    return Allocation(time_fractions=result.x[: instance.fits.size].reshape(instance.fits.shape))
