"""The approximations that solve programs, with the library's own solver to solve them.

They take what solves as an argument, because heuristics know no solver (:mod:`heuristics.gavel.pop`,
:mod:`heuristics.gavel.binning`).  Solver and Pyomo are imported when one is called.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heuristics.gavel.binning import Entries
from heuristics.gavel.pop import pop
from instances.gavel.sharing import Allocation, Sharing
from instances.schema import FloatArray
from validation.catalogue import Heuristic

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
    return tuple(Heuristic(one, declines=declines, imports=SOLVER) for one in (pop_2, pop_4, pop_8))


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
