"""Reasons for infeasible models: named constraints that cannot hold together.

An elastic model lets every row be exceeded at a price.  The rows that must be exceeded point at a
conflict; they are enforced and the elastic model is solved again, until what is enforced is
infeasible by itself.  Rows that are not needed for that are then dropped one by one, so the
conflict that is returned is irreducible: without any one of its rows the rest can hold.
(Chinneck, "Feasibility and Infeasibility in Optimization", 2008, chapter 6.)
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from formulations.engine.highs import Session, SolverError
from formulations.engine.linear import POINT_TOLERANCE, LinearProgram, translate
from formulations.engine.protocol import formulation
from formulations.engine.scaling import scaled
from formulations.engine.solving import build
from instances.base import Instance

__all__ = ["Explanation", "explain"]


@dataclass(frozen=True)
class Explanation:
    """Constraints of a model that conflict.

    Attributes
    ----------
    feasible : bool
        Whether the model has a feasible point after all.
    constraints : tuple of str
        Names of the constraints of an irreducible conflict, given the bounds of the variables.
    rows : tuple of str
        The same constraints written out, with their coefficients and limits.
    variables : tuple of str
        Variables without any value: the lower bound exceeds the upper one, or no whole number
        lies between the bounds.
    reason : str
        Why the instance has no plan, in the problem's own terms, where its formulation can say so;
        else empty, as for every model.
    irreducible : bool
        Whether each of the constraints is needed for the conflict; False where time ended the search.
    """

    feasible: bool
    constraints: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    reason: str = ""
    irreducible: bool = True

    def __str__(self) -> str:
        if self.feasible:
            return "feasible: no constraints conflict"
        reason = f"infeasible: {self.reason}\n" if self.reason else ""
        if self.variables:
            return f"{reason}infeasible: no value lies between the bounds of {', '.join(self.variables)}"
        rows = "\n".join(f"  {row}" for row in self.rows)
        some = "" if self.irreducible else ", perhaps not all of them are needed"
        return f"{reason}infeasible: these constraints cannot hold together{some}\n{rows}"


def explain(instance_or_model: Instance[Any] | pyo.ConcreteModel, *, time_limit: float | None = None) -> Explanation:
    """Find named constraints that conflict in an infeasible model, and a reason for an infeasible instance.

    Parameters
    ----------
    instance_or_model : Instance or ConcreteModel
    time_limit : float, optional
        Seconds for the search of an irreducible conflict of a model that is known to be infeasible.
        When they are over, the rows found so far are returned, and ``irreducible`` is False.

    Returns
    -------
    Explanation
        One irreducible conflict; a model can have several.  Of an instance, also the reason that its
        formulation's ``explain`` gives.

    Raises
    ------
    ModelError
        When the model cannot be translated.
    """
    if not isinstance(instance_or_model, Instance):
        return _conflict(instance_or_model, _Clock(time_limit))
    conflict = _conflict(build(instance_or_model), _Clock(time_limit))
    in_own_terms = formulation(instance_or_model.problem).explain
    if conflict.feasible or in_own_terms is None:
        return conflict
    return replace(conflict, reason=in_own_terms(instance_or_model) or "")


def _conflict(model: pyo.ConcreteModel, clock: _Clock) -> Explanation:
    """One irreducible conflict of a model."""
    program = translate(model)
    lower = np.where(program.integer, np.ceil(program.col_lower - POINT_TOLERANCE), program.col_lower)
    upper = np.where(program.integer, np.floor(program.col_upper + POINT_TOLERANCE), program.col_upper)
    empty = np.flatnonzero((lower > upper) | (program.col_lower > program.col_upper))
    if empty.size:
        return Explanation(False, variables=tuple(program.column_name(int(j)) for j in empty))
    given = program
    # What counts as exceeded is measured in units that suit the program.
    program, _ = scaled(replace(program, cost=np.zeros(program.num_cols), offset=0.0, sense="min"))
    if _holds(program, np.ones(program.num_rows, bool)):
        return Explanation(True)
    rows = np.flatnonzero(program.row_lower > program.row_upper)[:1]
    if not rows.size:
        rows = _irreducible(program, _conflicting(program, clock), clock)
    names = given.row_names()
    return Explanation(
        False,
        constraints=tuple(names[i] for i in rows),
        rows=tuple(f"{names[i]}: {_written(given, int(i))}" for i in rows),
        irreducible=not clock.over,
    )


class _Clock:
    """Time that is left for the search."""

    def __init__(self, limit: float | None) -> None:
        self.end = math.inf if limit is None else time.monotonic() + limit

    @property
    def over(self) -> bool:
        return time.monotonic() >= self.end

    def session(self) -> Session:
        """Return a session for one solve within what is left."""
        left = self.end - time.monotonic()
        return Session(time_limit=None if math.isinf(left) else max(0.01, left), verify=False)


def _holds(
    program: LinearProgram, enforced: NDArray[np.bool_], session: Session | None = None, clock: _Clock | None = None
) -> bool:
    """Tell whether the enforced rows have a common point within the bounds; so it is taken when time is over."""
    loose = replace(
        program,
        row_lower=np.where(enforced, program.row_lower, -np.inf),
        row_upper=np.where(enforced, program.row_upper, np.inf),
    )
    result = (session or Session(verify=False)).run(loose)
    if clock is not None and clock.over and result.status == "unknown":
        return True
    if result.status not in ("optimal", "feasible", "infeasible"):
        raise SolverError(f"the elastic model could not be solved: {result.message}")
    return result.status != "infeasible"


def _conflicting(program: LinearProgram, clock: _Clock) -> NDArray[np.intp]:
    """Rows that include a conflict: those that the elastic model has to exceed, in turn; all when time is over."""
    enforced = np.zeros(program.num_rows, bool)
    while _holds(program, enforced, clock.session(), clock):
        result = clock.session().run(_elastic(program, enforced))
        if clock.over:
            return np.arange(program.num_rows)
        if result.x is None:
            raise SolverError(f"the elastic model could not be solved: {result.message}")
        activities = program.row_activities(result.x[: program.num_cols])
        scale = POINT_TOLERANCE * np.maximum(1.0, np.abs(activities))
        exceeded = (activities < program.row_lower - scale) | (activities > program.row_upper + scale)
        if not (exceeded & ~enforced).any():
            # Numerically nothing needs to give; fall back to all rows, which are known to conflict.
            return np.arange(program.num_rows)
        enforced |= exceeded
    return np.flatnonzero(enforced)


def _elastic(program: LinearProgram, enforced: NDArray[np.bool_]) -> LinearProgram:
    """Let every row that is not enforced be exceeded, either way, at a price of 1 per unit."""
    free = np.flatnonzero(~enforced)
    counts = np.diff(program.indptr) + 2 * ~enforced
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    index = np.zeros(indptr[-1], np.int32)
    value = np.zeros(indptr[-1])
    own = np.repeat(indptr[:-1] - program.indptr[:-1], np.diff(program.indptr)) + np.arange(len(program.index))
    index[own], value[own] = program.index, program.value
    ends = indptr[1:][free]
    extra = program.num_cols + 2 * np.arange(len(free), dtype=np.int32)
    index[ends - 2], value[ends - 2] = extra, 1.0
    index[ends - 1], value[ends - 1] = extra + 1, -1.0
    slacks = 2 * len(free)
    return replace(
        program,
        cost=np.concatenate([np.zeros(program.num_cols), np.ones(slacks)]),
        col_lower=np.concatenate([program.col_lower, np.zeros(slacks)]),
        col_upper=np.concatenate([program.col_upper, np.full(slacks, np.inf)]),
        integer=np.concatenate([program.integer, np.zeros(slacks, bool)]),
        indptr=indptr,
        index=index,
        value=value,
        variables=(),
    )


def _irreducible(program: LinearProgram, rows: NDArray[np.intp], clock: _Clock) -> NDArray[np.intp]:
    """Drop rows one by one while the rest still conflicts, and while there is time."""
    kept = np.zeros(program.num_rows, bool)
    kept[rows] = True
    session = clock.session()
    for row in rows:
        if clock.over:
            break
        kept[row] = False
        session.time_limit = clock.session().time_limit
        if _holds(program, kept, session, clock):
            kept[row] = True
    return np.flatnonzero(kept)


def _written(program: LinearProgram, row: int) -> str:
    span = slice(program.indptr[row], program.indptr[row + 1])
    terms = [
        f"{'-' if c < 0 else '+'} {'' if abs(c) == 1 else f'{abs(c):g} '}{program.column_name(int(j))}"
        for j, c in zip(program.index[span], program.value[span], strict=True)
    ]
    shown = terms if len(terms) <= 6 else [*terms[:5], f"+ ... ({len(terms) - 5} more)"]
    body = " ".join(shown).removeprefix("+ ") or "0"
    lower, upper = program.row_lower[row], program.row_upper[row]
    if lower == upper:
        return f"{body} == {lower:g}"
    left = f"{lower:g} <= " if np.isfinite(lower) else ""
    right = f" <= {upper:g}" if np.isfinite(upper) else ""
    return f"{left}{body}{right}"
