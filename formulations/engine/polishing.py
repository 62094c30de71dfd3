"""From a solver's point to one whose plan the judge accepts.

Solvers keep rows within 1e-6 or 1e-7; the judge of an instance allows what sums owe to rounding
(``instances.base.TOLERANCE``).  Nearly all points are exact enough, because a vertex is computed from
its basis.  Where one is not, there are three ways to a point that is:

1. *Cut.*  The program again without the point, where whole numbers alone are what is refused
   (:mod:`formulations.engine.covers`).  No plan is lost, so the bound is that of the last program.
2. *Polish.*  The linear program with the whole numbers fixed, solved to 1e-10.
3. *Tighten.*  The program again, with the limits of rows that are not about whole numbers moved
   inwards by more than the solver's tolerance.

Polished and tightened, a point is proven optimal only if its own value reaches the bound from before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

import numpy as np

from formulations.engine.covers import without_refused
from formulations.engine.highs import Result
from formulations.engine.linear import POINT_TOLERANCE, LinearProgram
from formulations.engine.options import Options
from instances.base import TOLERANCE, WIDER, Instance, Plan
from instances.schema import FloatArray

__all__ = ["PRECISE", "accepted", "sharpened", "tightened"]

P = TypeVar("P", bound=Plan)

PRECISE = 1e-10
"""The least tolerance that HiGHS takes."""
CUTS = 20
"""Points in whole numbers that are cut off at most."""
TIGHTER = 1e-8
"""By how much limits of a linear program are moved inwards where it is not enough to undo the widening."""


def tightened(program: LinearProgram, by: float, *, least: float = 0.0) -> LinearProgram:
    """Return the program with the limits of its inequalities moved inwards, but for those of whole numbers alone.

    Parameters
    ----------
    program : LinearProgram
    by : float
        Relative to the limit, or to ``least`` where that is more.
    least : float
    """
    row = np.repeat(np.arange(program.num_rows), np.diff(program.indptr))
    moved = np.bincount(row, weights=program.value % 1 != 0, minlength=program.num_rows) > 0
    sizes = []
    for limits in (program.row_lower, program.row_upper):
        limits = np.where(np.isfinite(limits), limits, 0.0)
        moved |= limits % 1 != 0
        sizes.append(np.maximum(np.abs(limits), least))
    moved &= program.row_lower < program.row_upper
    return replace(
        program,
        row_lower=program.row_lower + np.where(moved, by * sizes[0], 0.0),
        row_upper=program.row_upper - np.where(moved, by * sizes[1], 0.0),
    )


def accepted(
    instance: Instance[P], program: LinearProgram, result: Result, read: Callable[[FloatArray], P], options: Options
) -> tuple[P | None, Result]:
    """Return the plan at the point of ``result``, or at one near it that the judge accepts, and the result there.

    Parameters
    ----------
    instance : Instance
    program : LinearProgram
    result : Result
        Of ``program``, in its terms.
    read : callable
        The plan at a point.
    options : Options
        Of further solves, which are by HiGHS.

    Returns
    -------
    plan : Plan, optional
        That of the first point, broken, where there is no better one; None where there is no point.
    result : Result
        With the seconds of all solves.
    """
    if result.x is None:
        return None, result
    first = read(result.x)
    if not instance.violations(first):
        return first, result
    if options.solver == "highs":
        result = _cut(program, result, lambda x: bool(instance.violations(read(x))), options)
    if result.x is None:
        return None, result
    first = read(result.x)
    if not instance.violations(first):
        return first, result
    seconds = result.seconds
    for other in _closer(program, result.x, options):
        seconds += other.seconds
        if other.x is None:
            continue
        plan = read(other.x)
        if not instance.violations(plan):
            return plan, replace(result, x=other.x, seconds=seconds, message=f"{result.message}; then polished")
    return first, replace(result, seconds=seconds)


def sharpened(
    program: LinearProgram, result: Result, options: Options, refused: Callable[[FloatArray], bool] = lambda x: False
) -> Result:
    """Return the result at a point within the judge's tolerance, if whole numbers allow it, where it was a solver's.

    Parameters
    ----------
    program : LinearProgram
    result : Result
        Of ``program``, in its terms.
    options : Options
        Of the solves with the whole numbers as they are, which are by HiGHS.
    refused : callable, optional
        Whether a point is no good although it keeps to the rows, which may be wider than what the judge forgives.
    """
    if result.x is None or not program.is_mip:
        return result
    x, seconds = result.x, result.seconds
    missed = program.infeasibility(x)
    fixed = program.with_fixed(program.integer, x)
    for by in (0.0, WIDER):
        if missed <= TOLERANCE and not refused(x):
            break
        other = options.session(PRECISE).run(tightened(fixed, by))
        seconds += other.seconds
        if other.x is not None and (by or program.infeasibility(other.x) < missed):
            x, missed = other.x, program.infeasibility(other.x)
    return replace(result, x=x, seconds=seconds)


def _cut(program: LinearProgram, first: Result, refused: Callable[[FloatArray], bool], options: Options) -> Result:
    """Return the result without the points that are refused for their whole numbers, as far as they are."""
    result, own, grown = first, slice(program.num_cols), program
    for count in range(1, CUTS + 1):
        if result.x is None or not refused(result.x[own]):
            break
        less = without_refused(grown, result.x)
        if less is None:
            break
        again = options.session().run(less)
        seconds = result.seconds + again.seconds
        if again.status == "unknown":
            result = replace(result, seconds=seconds)
            break
        message = f"{again.message}; without {count} points that only the solver's tolerance lets pass"
        grown, result = less, replace(again, seconds=seconds, message=message)
        if again.status == "feasible" and _tighter(first.bound, again.bound, program):
            result = replace(result, bound=first.bound, proof=first.proof)
    return result if result.x is None else replace(result, x=result.x[own])


def _tighter(one: float, other: float, program: LinearProgram) -> bool:
    return one > other if program.sense == "min" else one < other


def _closer(program: LinearProgram, x: FloatArray, options: Options) -> Iterator[Result]:
    """Results whose points are closer to the rows, the cheap ones first."""
    whole = program.integer
    if not whole.all():
        fixed = program.with_fixed(whole, x)
        for by in (0.0, WIDER, TIGHTER):
            yield options.session(PRECISE).run(tightened(fixed, by))
    if whole.any() and options.solver == "highs":
        yield options.session().run(tightened(program, 2 * POINT_TOLERANCE, least=1.0))
