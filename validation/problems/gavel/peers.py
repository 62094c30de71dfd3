"""The approximations that solve programs, with the library's own solver to solve them.

They take what solves as an argument, because heuristics know no solver (:mod:`heuristics.gavel.pop`,
:mod:`heuristics.gavel.binning`).  Solver and Pyomo are imported when one is called.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from heuristics.gavel.binning import Entries
from heuristics.gavel.pop import pop
from instances.base import agree
from instances.gavel.hierarchical_fairness import HierarchicalFairness
from instances.gavel.max_min_fairness import MaxMinFairness
from instances.gavel.sharing import Allocation, Sharing
from instances.schema import FloatArray
from validation.catalogue import Heuristic
from validation.kinds.promises import Holds
from validation.testing.transform import take

__all__ = ["SOLVER", "maximize", "pop_2", "pop_4", "pop_8", "pops"]

SOLVER = ("formulations",)
"""Packages that these heuristics import when they are called."""


def pop_2(instance: Sharing, *, rng: np.random.Generator | int = 0) -> Allocation | None:
    """Return the plan of POP with two parts (:func:`heuristics.gavel.pop.pop`), each solved exactly."""
    return pop(instance, _exact, parts=2, rng=rng)


def pop_4(instance: Sharing, *, rng: np.random.Generator | int = 0) -> Allocation | None:
    """Return the plan of POP with four parts (:func:`heuristics.gavel.pop.pop`), each solved exactly."""
    return pop(instance, _exact, parts=4, rng=rng)


def pop_8(instance: Sharing, *, rng: np.random.Generator | int = 0) -> Allocation | None:
    """Return the plan of POP with eight parts (:func:`heuristics.gavel.pop.pop`), each solved exactly."""
    return pop(instance, _exact, parts=8, rng=rng)


def pops(*, declines: bool = False) -> tuple[Heuristic, ...]:
    """Return POP as heuristics of a policy whose joined value is the same whichever optimum the parts return.

    That is so of all policies of one program but ``gavel.fifo``, where the queue of a part is not that of the
    whole, and ``gavel.cost``, where a part's optimum has any size.

    Parameters
    ----------
    declines : bool
        Whether a part may have no plan though the whole has one.
    """
    return tuple(
        Heuristic(one, declines=declines, imports=SOLVER, promises=(_in_parts(parts),))
        for one, parts in ((pop_2, 2), (pop_4, 4), (pop_8, 8))
    )


def _in_parts(parts: int) -> Holds:
    """Return the promise that jobs are dealt to parts, each with its workers, and each part has its optimum."""

    def test(instance: Sharing, plan: Any, rng: np.random.Generator) -> bool:
        import formulations

        n, most = instance.num_jobs, [instance.num_jobs, parts]
        for there in instance.num_workers.tolist():
            widths = [width for width in instance.scale_factors.tolist() if width <= there]
            most += [there // max(widths)] if widths else []
        dealt = [np.sort(jobs) for jobs in np.array_split(rng.permutation(n), min(most))] if n else []
        num_workers, turn = np.zeros((len(dealt), len(instance.num_workers)), np.int64), 0
        for pool, there in enumerate(instance.num_workers.tolist() if n else []):
            num_workers[:, pool] = there // len(dealt)
            for _ in range(there % len(dealt)):
                num_workers[turn % len(dealt), pool] += 1
                turn += 1
        seen = np.zeros(len(plan.time_fractions), bool)
        for jobs, workers in zip(dealt, num_workers, strict=True):
            part = replace(take(instance, "n", jobs), num_workers=workers)
            if isinstance(part, MaxMinFairness):
                own, whole = part.level_per_throughput, instance.level_per_throughput[jobs]
                part = replace(
                    part, weights=part.weights * [a / b if a > 0 else 1.0 for a, b in zip(own, whole, strict=True)]
                )
            rows = [*jobs, *(n + np.flatnonzero(np.isin(instance.pairs, jobs).all(axis=1)))]
            seen[rows] = True
            own_plan = Allocation(time_fractions=plan.time_fractions[rows])
            if isinstance(part, HierarchicalFairness):
                own_plan = part.plan(own_plan)
            best = formulations.solve(part).objective
            if part.violations(own_plan) or best is None or not agree(part.objective(own_plan), best):
                return False
        return not plan.time_fractions[~seen].any()

    return Holds(f"each of {parts} parts, or fewer, has its jobs, its workers and its optimum", test, stream=True)


def _exact(part: Sharing) -> Allocation | None:
    import formulations

    plan = formulations.solve(part).plan
    assert plan is None or isinstance(plan, Allocation)
    return plan


def maximize(cost: FloatArray, upper: FloatArray, entries: Entries, limits: FloatArray) -> Any:
    """Return the point of a linear program that HiGHS finds (:data:`heuristics.gavel.binning.Maximize`)."""
    from formulations import LinearProgram, Session, SolverError
    from formulations.engine.linear import csr

    indptr, index, value = csr(*entries, len(limits))
    whole = np.zeros(len(cost), bool)
    below = np.full(len(limits), -np.inf)
    program = LinearProgram("max", 0.0, cost, np.zeros_like(cost), upper, whole, indptr, index, value, below, limits)
    result = Session().run(program)
    if result.x is None:
        raise SolverError(f"a linear program was not solved: {result.message}")
    return result.x
