"""Proofs about a linear program by row prices, checked in NumPy apart from the solver.

For ``min c'x + c0`` subject to ``l <= Ax <= u`` and ``a <= x <= b``, any row prices y give a bound:

    c0 + sum_i  (l_i if y_i > 0 else u_i) * y_i  +  sum_j  (a_j if d_j > 0 else b_j) * d_j,

with the reduced costs d = c - A'y.  Weak duality makes it a lower bound on every feasible point,
however the prices were found, as long as no infinite limit is multiplied by a price that is not
zero.  For ``max`` the same holds of the negated objective.  Prices can also prove that there is no
feasible point: :func:`proves_infeasible`.  That the objective is without end, a direction proves, with any
feasible point: :func:`proves_unbounded`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from formulations.engine.linear import POINT_TOLERANCE, LinearProgram, row_sums
from formulations.engine.scaling import Scaling, scaled
from instances.base import agree
from instances.schema import FloatArray

__all__ = ["Certificate", "directions", "proves_infeasible", "proves_unbounded"]

DUAL_TOLERANCE = 1e-7
"""Reduced cost, relative to ``max(1, |c_j|)``, that may face an infinite limit; HiGHS asks the same."""

ROUNDING = 1e-9
"""Part of a sum that may be rounding, relative to the sum of its terms' sizes."""


def proves_infeasible(program: LinearProgram, prices: FloatArray | None = None) -> bool:
    """Tell whether rows that are weighted by ``prices`` and added up contradict the bounds (Farkas).

    The rows imply ``(y'A) x >= sum_i (l_i if y_i > 0 else u_i) * y_i``.  No point exists if the left
    side stays below the right one for every x within its bounds.

    Parameters
    ----------
    program : LinearProgram
        Its costs and integer requirements do not matter.
    prices : (rows,) float, optional
        Prices y; without them, each row is tried alone.
    """
    if prices is None:
        rising = program.value > 0
        lower, upper = program.col_lower[program.index], program.col_upper[program.index]
        return _contradicted(program, np.where(rising, lower, upper), program.row_upper, -1.0) or _contradicted(
            program, np.where(rising, upper, lower), program.row_lower, 1.0
        )
    y = np.where(np.isinf(np.where(prices > 0, program.row_lower, program.row_upper)), 0.0, prices)
    combined = program.column_products(y)
    size = replace(program, value=np.abs(program.value)).column_products(np.abs(y))
    combined = np.where(np.abs(combined) <= ROUNDING * size, 0.0, combined)
    limits = np.where(combined > 0, program.col_upper, program.col_lower)
    used, weighted = combined != 0, y != 0
    reached = combined[used] * limits[used]
    required = y[weighted] * np.where(y > 0, program.row_lower, program.row_upper)[weighted]
    excess = required.sum() - reached.sum()
    return bool(excess > ROUNDING * (np.abs(required).sum() + np.abs(reached).sum()))


def directions(program: LinearProgram) -> LinearProgram:
    """Return the program of the best direction, of steps of at most 1, that no row or bound ever ends."""
    return replace(
        program,
        offset=0.0,
        integer=np.zeros_like(program.integer),
        col_lower=np.where(np.isinf(program.col_lower), -1.0, 0.0),
        col_upper=np.where(np.isinf(program.col_upper), 1.0, 0.0),
        row_lower=np.where(np.isinf(program.row_lower), -np.inf, 0.0),
        row_upper=np.where(np.isinf(program.row_upper), np.inf, 0.0),
    )


def proves_unbounded(program: LinearProgram, ray: FloatArray) -> bool:
    """Tell whether the objective improves without end along a direction, from whichever point there is.

    Parameters
    ----------
    program : LinearProgram
        Its integer requirements do not matter.
    ray : (columns,) float
        The direction.
    """
    ray = ray / max(float(np.abs(ray).max(initial=0.0)), np.finfo(float).tiny)
    ray = np.where(np.abs(ray) <= ROUNDING, 0.0, ray)
    moved = program.row_activities(ray)
    sizes = replace(program, value=np.abs(program.value)).row_activities(np.abs(ray))
    moved = np.where(np.abs(moved) <= ROUNDING * sizes, 0.0, moved)
    leaves = [
        ((step > 0) & np.isfinite(upper)) | ((step < 0) & np.isfinite(lower))
        for step, lower, upper in (
            (ray, program.col_lower, program.col_upper),
            (moved, program.row_lower, program.row_upper),
        )
    ]
    gain = float(program.cost @ ray) * (1.0 if program.sense == "max" else -1.0)
    return not any(each.any() for each in leaves) and gain > ROUNDING * float(np.abs(program.cost * ray).sum())


def _contradicted(program: LinearProgram, extreme: FloatArray, limits: FloatArray, sign: float) -> bool:
    """Tell whether a row misses its limit even with each of its entries at the extreme."""
    terms = np.zeros(len(program.value))
    used = program.value != 0
    terms[used] = program.value[used] * extreme[used]
    finite = np.isfinite(limits)
    short = sign * (limits[finite] - row_sums(terms, program.indptr)[finite])
    size = np.abs(limits[finite]) + row_sums(np.abs(terms), program.indptr)[finite]
    return bool((short > ROUNDING * size).any())


@dataclass(frozen=True)
class Certificate:
    """A primal point, row prices, and what they prove together.

    Both infeasibilities are measured in units that suit the program (:mod:`formulations.engine.scaling`), so that
    they say the same whatever its own are; values and prices are in its own.

    Attributes
    ----------
    primal_objective, dual_objective : float
        Value of the point, and the bound that the prices prove, in the program's own sense.
    primal_infeasibility : float
        Largest violation of a row or bound, relative to ``max(1, |limit|)``.
    dual_infeasibility : float
        Largest reduced cost that faces an infinite limit, relative to ``max(1, |c_j|)``.  0 makes the
        bound rigorous up to rounding; beyond the tolerance there is no bound (it is infinite).
    row_duals : (rows,) float
        Price of each row: change of the objective per unit of its limit, in the program's sense.
    size : float
        What counts as an ordinary value of the objective.
    """

    primal_objective: float
    dual_objective: float
    primal_infeasibility: float
    dual_infeasibility: float
    row_duals: FloatArray
    size: float = 1.0

    @classmethod
    def of(
        cls,
        program: LinearProgram,
        x: FloatArray,
        row_duals: FloatArray,
        *,
        scaling: Scaling | None = None,
        infeasibility: float | None = None,
    ) -> Certificate:
        """Check point ``x`` and prices ``row_duals`` against ``program``.

        Parameters
        ----------
        program : LinearProgram
        x : (columns,) float
        row_duals : (rows,) float
        scaling : Scaling, optional
            The units that suit the program, where they are known.
        infeasibility : float, optional
            That of the point in these units, where it is known.
        """
        if scaling is None:
            program, scaling = scaled(program)
        else:
            program = scaling.apply(program)
        given = row_duals
        if not scaling.trivial:
            x, row_duals = scaling.point(x), scaling.prices(row_duals)
        sign = 1.0 if program.sense == "min" else -1.0
        y = sign * row_duals
        rows = np.where(y > 0, program.row_lower, program.row_upper)
        # A price that faces an infinite limit proves nothing; dropping it keeps the bound valid.
        facing = np.isinf(rows)
        if facing.any():
            y, rows = np.where(facing, 0.0, y), np.where(facing, 0.0, rows)
        reduced = sign * program.cost - program.column_products(y)
        limit = np.where(reduced > 0, program.col_lower, program.col_upper)
        open_side = np.isinf(limit)
        bound = sign * program.offset + float((y * rows).sum())
        dual_infeasibility = 0.0
        if open_side.any():
            scale = np.maximum(1.0, np.abs(program.cost[open_side]))
            dual_infeasibility = float((np.abs(reduced[open_side]) / scale).max())
            limit = np.where(open_side, 0.0, limit)
        bound += float((reduced * limit).sum())
        if dual_infeasibility > DUAL_TOLERANCE:
            bound = -math.inf
        return cls(
            primal_objective=scaling.inverse.value(program.objective(x)),
            dual_objective=scaling.inverse.value(sign * bound),
            primal_infeasibility=program.infeasibility(x) if infeasibility is None else infeasibility,
            dual_infeasibility=dual_infeasibility,
            row_duals=given,
            size=scaling.size,
        )

    @property
    def holds(self) -> bool:
        """Tell whether point and prices prove each other optimal, within the stated tolerances."""
        return (
            self.primal_infeasibility <= POINT_TOLERANCE
            and self.dual_infeasibility <= DUAL_TOLERANCE
            and math.isfinite(self.dual_objective)
            and agree(self.primal_objective, self.dual_objective, size=self.size)
        )

    def __str__(self) -> str:
        return (
            f"certificate {'holds' if self.holds else 'fails'}: primal {self.primal_objective:.9g}, "
            f"dual {self.dual_objective:.9g}, primal infeasibility {self.primal_infeasibility:.1g}, "
            f"dual infeasibility {self.dual_infeasibility:.1g}"
        )
