"""Proof of optimality of a linear program by its duals, checked in NumPy apart from the solver.

For ``min c'x + c0`` subject to ``l <= Ax <= u`` and ``a <= x <= b``, any row prices y give a bound:

    c0 + sum_i  (l_i if y_i > 0 else u_i) * y_i  +  sum_j  (a_j if d_j > 0 else b_j) * d_j,

with the reduced costs d = c - A'y.  Weak duality makes it a lower bound on every feasible point,
however the prices were found, as long as no infinite limit is multiplied by a price that is not
zero.  For ``max`` the same holds of the negated objective.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from formulations.linear import FloatArray, LinearProgram
from instances.base import TOLERANCE, agree

DUAL_TOLERANCE = 1e-7
"""Price, relative to the largest cost or coefficient at hand, that may face an infinite limit."""


@dataclass(frozen=True)
class Certificate:
    """A primal point, row prices, and what they prove together.

    Attributes
    ----------
    primal_objective, dual_objective : float
        Value of the point, and the bound that the prices prove, in the program's own sense.
    primal_infeasibility : float
        Largest violation of a row or bound, relative to ``max(1, |limit|)``.
    dual_infeasibility : float
        Largest price that faces an infinite limit, relative to ``max(1, |c_j|)``; 0 makes the
        bound rigorous up to rounding.
    row_duals : (rows,) float
        Price of each row: change of the objective per unit of its limit, in the program's sense.
    """

    primal_objective: float
    dual_objective: float
    primal_infeasibility: float
    dual_infeasibility: float
    row_duals: FloatArray

    @classmethod
    def of(cls, program: LinearProgram, x: FloatArray, row_duals: FloatArray) -> Certificate:
        """Check point ``x`` and prices ``row_duals`` against ``program``."""
        sign = 1.0 if program.sense == "min" else -1.0
        y = sign * row_duals
        # A price that faces an infinite limit proves nothing; dropping it keeps the bound valid.
        y = np.where((y > 0) & np.isinf(program.row_lower), 0.0, y)
        y = np.where((y < 0) & np.isinf(program.row_upper), 0.0, y)
        reduced = sign * program.cost - program.column_products(y)
        limit = np.where(reduced > 0, program.col_lower, program.col_upper)
        open_side = np.isinf(limit) & (reduced != 0)
        scale = np.maximum(1.0, np.abs(program.cost))
        infeasibility = float((np.abs(reduced) / scale)[open_side].max(initial=0.0))
        rows = np.where(y > 0, program.row_lower, program.row_upper)
        bound = sign * program.offset
        bound += float(np.sum(y[y != 0] * rows[y != 0]))
        usable = ~np.isinf(limit)
        bound += float(np.sum(reduced[usable] * limit[usable]))
        return cls(
            primal_objective=program.objective(x),
            dual_objective=sign * bound,
            primal_infeasibility=program.infeasibility(x),
            dual_infeasibility=infeasibility,
            row_duals=row_duals,
        )

    @property
    def holds(self) -> bool:
        """Whether point and prices prove each other optimal, within the stated tolerances."""
        return (
            self.primal_infeasibility <= TOLERANCE
            and self.dual_infeasibility <= DUAL_TOLERANCE
            and math.isfinite(self.dual_objective)
            and agree(self.primal_objective, self.dual_objective)
        )

    def __str__(self) -> str:
        return (
            f"certificate {'holds' if self.holds else 'fails'}: primal {self.primal_objective:.9g}, "
            f"dual {self.dual_objective:.9g}, primal infeasibility {self.primal_infeasibility:.1g}, "
            f"dual infeasibility {self.dual_infeasibility:.1g}"
        )
