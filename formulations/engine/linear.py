"""A Pyomo model as arrays: the one translation from models to solvers that take matrices.

Ordinary Pyomo models are accepted, with whatever a user added to them, as long as they are linear
with one active objective.  What a solver would silently drop, round or take for infinity is
refused here, with the name of the constraint and the variable.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray
from pyomo.core.base.constraint import IndexedConstraint
from pyomo.core.base.set import Set
from pyomo.core.expr.numeric_expr import LinearExpression
from pyomo.repn.linear import LinearRepnVisitor

from formulations.engine import clock
from formulations.engine.scaling import Scaling, largest_limit, scaled
from instances.base import Instance, Sense
from instances.schema import FloatArray, IntArray

__all__ = [
    "FEASIBILITY_TOLERANCE",
    "INFINITE_BOUND",
    "LARGEST_COEFFICIENT",
    "POINT_TOLERANCE",
    "SMALLEST_COEFFICIENT",
    "Columns",
    "IndexArray",
    "LinearProgram",
    "ModelError",
    "Rows",
    "csr",
    "paused_garbage_collection",
    "refuse_bad_numbers",
    "refuse_extreme_numbers",
    "refuse_non_numbers",
    "row_sums",
    "translate",
    "weighted_sum",
]

IndexArray = NDArray[np.int32]
"""Row and column numbers, as HiGHS takes them."""

LARGEST_COEFFICIENT = 1e15
"""HiGHS refuses rows with entries of at least this."""
SMALLEST_COEFFICIENT = 1e-9
"""HiGHS refuses rows with entries of at least the first and drops entries up to the second."""
INFINITE_BOUND = 1e20
"""From here on HiGHS takes a bound for infinity."""

POINT_TOLERANCE = 1e-6
"""Excess of a solver's point over a row or bound, relative to ``max(1, |limit|)``, up to which it is looked at.

It says nothing about plans: those are read from points, and judged by what :mod:`instances` says.
"""
ROUNDING = 1e-12
"""Amount by which a sum of floats may miss a limit, relative to its largest term, and be said to meet it."""
FEASIBILITY_TOLERANCE = POINT_TOLERANCE / 10
"""Tolerance that solvers of linear programs get: stricter, so that a point which the solver calls feasible
is not refused for the rounding of its own arithmetic.
"""


class ModelError(ValueError):
    """A model cannot be handed to a solver as it is; the message names the culprit."""


LARGEST_MODEL = 5_000_000
"""Variables or rows up to which a model is built; Pyomo takes about a kilobyte for each."""


def refuse_large(instance: Instance[Any], count: int, what: str) -> None:
    """Refuse to build a model that is too large to be held, before any of it is made.

    Parameters
    ----------
    instance : Instance
    count : int
        Variables or rows that follow from the instance's numbers.
    what : str
        What they are, and from which fields their number follows.

    Raises
    ------
    ModelError
    """
    if count > LARGEST_MODEL:
        raise ModelError(
            f"{instance.problem}: the exact model would have {count:,} {what}; must be at most {LARGEST_MODEL:,}"
        )


@contextmanager
def paused_garbage_collection() -> Iterator[None]:
    """Pause garbage collection: without it, building and walking a large model takes a fraction of the time.

    Pyomo allocates millions of long-lived objects, and each collection walks all of them.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def weighted_sum(coefficients: Iterable[float], variables: Iterable[Any]) -> LinearExpression:
    """Return the expression ``sum(c * x)``, built without intermediate sums, which take several times as long.

    ``python -m benchmarks engine.expressions`` compares them.
    """
    clock.check()
    return LinearExpression(linear_coefs=list(map(float, coefficients)), linear_vars=list(variables))


class Rows(IndexedConstraint):  # type: ignore[misc]
    """Constraints ``lower <= A x <= upper`` over an index set, given as one sparse matrix.

    For blocks of thousands of rows, where an expression for every row would cost more than the
    solve.  The translation below takes the arrays as they are.  Anything else that looks at the
    component (a writer, another solver, a user who reads or deactivates ``model.block[i]``) finds
    ordinary linear constraints, which are made at that moment.

    Parameters
    ----------
    index : Set
        Pyomo set of the rows, one member per row in order.
    matrix : tuple of (indptr, columns, values)
        The matrix A in compressed sparse row form; columns count positions in ``variables``.
    variables : list of VarData
        What the columns stand for.  Blocks that are given the same list share one look-up.
    lower, upper : float or array, optional
        Bounds of the rows, one for all or one each; None for none.

    Raises
    ------
    ModelError
        When the arrays do not form a matrix over ``variables``.
    """

    def __init__(
        self,
        index: Set,
        matrix: tuple[NDArray[Any], NDArray[Any], FloatArray],
        variables: list[Any],
        *,
        lower: Any = None,
        upper: Any = None,
    ) -> None:
        clock.check()
        super().__init__(index)
        indptr, columns, values = matrix
        indptr, columns, values = np.asarray(indptr, np.int64), np.asarray(columns, np.int64), np.asarray(values, float)
        count = len(indptr) - 1
        if count < 0 or indptr[0] or (np.diff(indptr) < 0).any() or not indptr[-1] == len(columns) == len(values):
            raise ModelError("the arrays of a block of rows are not a matrix in compressed sparse rows")
        if len(columns) and not 0 <= columns.min() <= columns.max() < len(variables):
            raise ModelError(f"a block of rows has columns outside of its {len(variables)} variables")
        self._arrays: _Block | None = _Block(
            indptr,
            columns,
            values,
            variables,
            np.broadcast_to(np.asarray(-np.inf if lower is None else lower, float), count),
            np.broadcast_to(np.asarray(np.inf if upper is None else upper, float), count),
        )

    @property
    def arrays(self) -> _Block | None:
        """The rows as arrays, or None once they have been turned into ordinary constraints."""
        return self._arrays

    def construct(self, data: Any = None) -> None:
        """Give the rows to a model; Pyomo calls this."""
        if not self.__dict__.get("_constructed"):
            for index_set in self._anonymous_sets or ():
                index_set.construct()
            self._constructed = True
            if self._arrays is not None and len(self.index_set()) != len(self._arrays.lower):
                raise ModelError(
                    f"constraint {self.name!r}: {len(self._arrays.lower)} rows for an index set of "
                    f"{len(self.index_set())} members"
                )

    # Pyomo keeps the members of an indexed component in ``_data`` and reaches them only there.
    @property
    def _data(self) -> dict[Any, Any]:
        block = self.__dict__.get("_arrays")
        if block is not None and self.__dict__.get("_constructed"):
            self._arrays = None
            for row, index in enumerate(self.index_set()):
                span = slice(block.indptr[row], block.indptr[row + 1])
                body = weighted_sum(block.values[span], [block.variables[j] for j in block.columns[span]])
                low, high = float(block.lower[row]), float(block.upper[row])
                if low == high:
                    self.add(index, body == low)
                elif low == -math.inf:
                    # An infinite limit is kept: Pyomo takes no row without any.
                    self.add(index, (None, body, high))
                else:
                    self.add(index, (low, body, None if high == math.inf else high))
        members: dict[Any, Any] = self.__dict__["_members"]
        return members

    @_data.setter
    def _data(self, members: dict[Any, Any]) -> None:
        self.__dict__["_members"] = members
        if self.__dict__.get("_constructed"):
            # Pyomo has cleared the component.
            self._arrays = None


def csr(
    rows: NDArray[Any], columns: NDArray[Any], values: FloatArray, num_rows: int
) -> tuple[IndexArray, IndexArray, FloatArray]:
    """Compressed sparse rows ``(indptr, columns, values)`` from coordinates, without the zeros.

    Entries of a row keep their order.
    """
    (nonzero,) = values.nonzero()
    order = nonzero[rows[nonzero].argsort(kind="stable")]
    indptr = np.zeros(num_rows + 1, np.int32)
    indptr[1:] = np.bincount(rows[order], minlength=num_rows).cumsum()
    return indptr, columns[order].astype(np.int32), values[order]


@dataclass(frozen=True)
class _Block:
    indptr: NDArray[np.int64]
    columns: NDArray[np.int64]
    values: FloatArray
    variables: list[Any]
    lower: FloatArray
    upper: FloatArray


@dataclass(frozen=True, eq=False)
class Columns:
    """Continuous columns to append to a :class:`LinearProgram`, in compressed sparse columns."""

    cost: FloatArray
    lower: FloatArray
    upper: FloatArray
    indptr: IndexArray
    rows: IndexArray
    values: FloatArray


@dataclass(frozen=True, eq=False)
class LinearProgram:
    """A linear or mixed-integer linear program as arrays.

    ``sense`` of ``offset + cost @ x`` subject to ``row_lower <= A x <= row_upper`` and
    ``col_lower <= x <= col_upper``, with ``x[integer]`` whole.  A is in compressed sparse rows.
    """

    sense: Sense
    offset: float
    cost: FloatArray
    col_lower: FloatArray
    col_upper: FloatArray
    integer: NDArray[np.bool_]
    indptr: IndexArray
    index: IndexArray
    value: FloatArray
    row_lower: FloatArray
    row_upper: FloatArray
    variables: Sequence[Any] = ()
    """Pyomo variables of the columns, where the program comes from a model."""
    constraints: Sequence[tuple[Any, Sequence[Any]]] = field(default=())
    """Pyomo components of the rows in order, each with the indices of its rows."""

    @property
    def num_cols(self) -> int:
        """Columns, that is variables."""
        return len(self.cost)

    @property
    def num_rows(self) -> int:
        """Rows, that is constraints."""
        return len(self.row_lower)

    @property
    def is_mip(self) -> bool:
        """Tell whether some variable must be whole."""
        return bool(self.integer.any())

    def row_activities(self, x: FloatArray) -> FloatArray:
        """Return A x, by NumPy alone."""
        return row_sums(self.value * x[self.index], self.indptr)

    def column_products(self, y: FloatArray) -> FloatArray:
        """Return A' y, by NumPy alone."""
        rows = y.repeat(self.indptr[1:] - self.indptr[:-1])
        products = np.bincount(self.index, weights=self.value * rows, minlength=self.num_cols)
        # Without entries they would be whole numbers.
        return products.astype(float, copy=False)

    def objective(self, x: FloatArray) -> float:
        """Return the objective's value at a point, (num_cols,) float."""
        return float(self.offset + self.cost @ x)

    def infeasibility(self, x: FloatArray) -> float:
        """Largest violation of a row or column bound, relative to ``max(1, |bound|)``."""
        activities = self.row_activities(x)
        if not (np.isfinite(x).all() and np.isfinite(activities).all()):
            return math.inf
        worst = 0.0
        for values, lower, upper in (
            (activities, self.row_lower, self.row_upper),
            (x, self.col_lower, self.col_upper),
        ):
            for outside, bound in ((values < lower, lower), (values > upper, upper)):
                if outside.any():
                    outside &= np.isfinite(bound)
                    limit = bound[outside]
                    excess = np.abs(values[outside] - limit) / np.maximum(1.0, np.abs(limit))
                    worst = max(worst, float(excess.max(initial=0.0)))
        return worst

    def missed_row(self, x: FloatArray) -> tuple[int, float] | None:
        """Return the row that ``x`` misses most, beyond rounding, and by how much; None where it misses none.

        Rounding is what sums of floats owe to it, relative to the largest term or limit of the row: much less than
        the tolerance of solvers.
        """
        if not self.num_rows:
            return None
        terms = self.value * x[self.index]
        activities, sizes = row_sums(terms, self.indptr), self._row_sizes(terms)
        missed = np.maximum(0.0, np.maximum(self.row_lower - activities, activities - self.row_upper))
        beyond = np.where(missed > ROUNDING * sizes, missed / np.where(sizes > 0, sizes, 1.0), 0.0)
        row = int(beyond.argmax())
        return (row, float(missed[row])) if beyond[row] > 0 else None

    def with_wider_rows(self, by: float) -> LinearProgram:
        """Return the program with each row's limits moved outwards by a part of its largest entry or limit."""
        moved = by * self._row_sizes(self.value)
        return replace(self, row_lower=self.row_lower - moved, row_upper=self.row_upper + moved)

    def _row_sizes(self, terms: FloatArray) -> FloatArray:
        """(rows,) float: the largest size of a row's terms and limits."""
        sizes = largest_limit(self.row_lower, self.row_upper)
        np.maximum.at(sizes, np.repeat(np.arange(self.num_rows), np.diff(self.indptr)), np.abs(terms))
        return sizes

    def with_fixed(self, columns: NDArray[np.bool_], x: FloatArray) -> LinearProgram:
        """Return the linear program that is left when some columns, whole ones among them, are as at a point.

        Parameters
        ----------
        columns : (columns,) bool
            Which of them; none that may vary is then asked to be whole.
        x : (columns,) float
        """
        return replace(
            self,
            integer=np.zeros_like(self.integer),
            col_lower=np.where(columns, x, self.col_lower),
            col_upper=np.where(columns, x, self.col_upper),
        )

    def with_columns(self, columns: Columns) -> LinearProgram:
        """Return the program with columns appended; they stand for no Pyomo variables."""
        added = len(columns.cost)
        rows = np.concatenate([np.repeat(np.arange(self.num_rows), np.diff(self.indptr)), columns.rows])
        new = np.repeat(self.num_cols + np.arange(added), np.diff(columns.indptr))
        indptr, index, value = csr(
            rows, np.concatenate([self.index, new]), np.concatenate([self.value, columns.values]), self.num_rows
        )
        return replace(
            self,
            cost=np.concatenate([self.cost, columns.cost]),
            col_lower=np.concatenate([self.col_lower, columns.lower]),
            col_upper=np.concatenate([self.col_upper, columns.upper]),
            integer=np.concatenate([self.integer, np.zeros(added, bool)]),
            indptr=indptr,
            index=index,
            value=value,
        )

    def with_rows(
        self, lengths: IntArray, index: IntArray, value: FloatArray, lower: FloatArray, upper: FloatArray
    ) -> LinearProgram:
        """Return the program with rows appended.

        Parameters
        ----------
        lengths : (rows,) int
            Entries of each row.
        index, value : (entries,) int and float
            Their columns and coefficients, row after row.
        lower, upper : (rows,) float
            Limits of the rows.
        """
        ends = self.indptr[-1] + np.cumsum(lengths)
        return replace(
            self,
            indptr=np.concatenate([self.indptr, ends]).astype(np.int32),
            index=np.concatenate([self.index, index]).astype(np.int32),
            value=np.concatenate([self.value, value]),
            row_lower=np.concatenate([self.row_lower, lower]),
            row_upper=np.concatenate([self.row_upper, upper]),
        )

    def row_names(self) -> list[str]:
        """Names of the rows, as Pyomo writes them."""
        return [
            component.name if index is None else f"{component.name}[{_index_name(index)}]"
            for component, indices in self.constraints
            for index in indices
        ]

    def row_name(self, row: int) -> str:
        """Name of a row, for messages."""
        names = self.row_names()
        return names[row] if row < len(names) else f"row {row}"

    def column_name(self, column: int) -> str:
        """Name of a column, for messages."""
        return str(self.variables[column].name) if column < len(self.variables) else f"column {column}"


def _index_name(index: Any) -> str:
    return ",".join(map(str, index)) if isinstance(index, tuple) else str(index)


def row_sums(entries: FloatArray, indptr: NDArray[Any]) -> FloatArray:
    """Sum of the entries of each compressed row, 0 for an empty one."""
    # reduceat would repeat an entry for an empty row, and a cumulative sum would cancel digits.
    starts = indptr[:-1]
    filled = starts < indptr[1:]
    if filled.all():
        return np.add.reduceat(entries, starts) if len(entries) else np.zeros(0)
    sums = np.zeros(len(starts))
    if len(entries):
        sums[filled] = np.add.reduceat(entries, starts[filled])
    return sums


def translate(model: pyo.ConcreteModel) -> LinearProgram:
    """Arrays of a Pyomo model.

    Parameters
    ----------
    model : ConcreteModel
        Any linear model: fixed variables are constants, deactivated components are left out.

    Raises
    ------
    ModelError
        When the model is not linear, has no active objective or several, uses components that
        are not linear (SOS, disjunctions, ...), or holds a number that a solver would not take
        at its value: NaN, infinite, or, in units that suit the program (:mod:`formulations.engine.scaling`),
        at least 1e15 or nonzero up to 1e-9.
    """
    with paused_garbage_collection():
        return _Translation(model).program()


_UNDERSTOOD = {
    pyo.Block,
    pyo.Constraint,
    pyo.Expression,
    pyo.ExternalFunction,
    pyo.Objective,
    pyo.Param,
    pyo.RangeSet,
    pyo.Set,
    pyo.Suffix,
    pyo.Var,
    pyo.BuildAction,
    pyo.BuildCheck,
}


_PLAIN: set[Any] = {float, int, type(None)}


class _Translation:
    """One pass over a model; the variables are numbered in the order in which they are met."""

    def __init__(self, model: pyo.ConcreteModel) -> None:
        self.model = model
        self.variables: list[Any] = []
        self.column: dict[int, int] = {}
        self.of_list: dict[int, IndexArray] = {}
        self.walker = LinearRepnVisitor({})

    def program(self) -> LinearProgram:
        for component in self.model.component_objects(active=True, descend_into=pyo.Block):
            if component.ctype not in _UNDERSTOOD:
                raise ModelError(f"{component.name!r}: a {component.ctype.__name__} is not a linear constraint")
        # Variables have no state "active", but the blocks that they are on do.
        for component in self.model.component_objects(pyo.Var, active=True, descend_into=pyo.Block):
            clock.check()
            self._number(component.values())
        counts, index, value, lower, upper, constraints = self._rows()
        sense, offset, cost = self._objective()
        col_lower, col_upper, integer = self._columns()
        objective = np.zeros(len(self.variables))
        for column, coefficient in cost.items():
            objective[column] = coefficient
        program = LinearProgram(
            sense=sense,
            offset=offset,
            cost=objective,
            col_lower=col_lower,
            col_upper=col_upper,
            integer=integer,
            indptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
            index=index,
            value=value,
            row_lower=lower,
            row_upper=upper,
            variables=self.variables,
            constraints=constraints,
        )
        refuse_bad_numbers(program)
        return program

    def _number(self, variables: Iterable[Any]) -> None:
        column = self.column
        for variable in variables:
            if id(variable) not in column:
                column[id(variable)] = len(self.variables)
                self.variables.append(variable)

    def _columns(self) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
        # Whole lists at a time, and ``_lb`` where ``bounds`` would do: asking each variable for its
        # bounds costs as much as the rest of the translation together.
        variables = self.variables
        limits = [(v._lb, v._ub) for v in variables]
        try:
            if not all(low.__class__ in _PLAIN and high.__class__ in _PLAIN for low, high in limits):
                limits = [v.bounds for v in variables]
            lower = np.array([-math.inf if low is None else low for low, _ in limits], float)
            upper = np.array([math.inf if high is None else high for _, high in limits], float)
        except (ValueError, OverflowError) as error:
            raise ModelError(f"bounds of the variables: {error}") from None
        domains = [id(v.domain) for v in variables]
        known = {key: self._domain(v) for key, v in dict(zip(domains, variables, strict=True)).items()}
        domain = np.array([known[key] for key in domains]).reshape(-1, 3) if len(known) != 1 else None
        domain_lower, domain_upper, whole = next(iter(known.values())) if domain is None else domain.T
        lower, upper = np.maximum(lower, domain_lower), np.minimum(upper, domain_upper)
        integer = np.broadcast_to(np.asarray(whole, bool), len(variables)).copy()
        for column in [column for column, v in enumerate(variables) if v.fixed]:
            variable = variables[column]
            value = _number(variable.value, f"the fixed value of variable {variable.name!r}")
            lower[column] = upper[column] = value
            # A constant, as in Pyomo, whatever the domain.
            integer[column] = False
        return lower, upper, integer

    @staticmethod
    def _domain(variable: Any) -> tuple[float, float, bool]:
        try:
            lower, upper, step = variable.domain.get_interval()
        except Exception:  # an empty or non-numeric domain
            step = None
        if step not in (0, 1) or (step == 1 and any(end is not None and end % 1 for end in (lower, upper))):
            raise ModelError(f"variable {variable.name!r}: domain {variable.domain} is neither continuous nor whole")
        return (-math.inf if lower is None else lower), (math.inf if upper is None else upper), step == 1

    def _columns_of(self, variables: list[Any]) -> IndexArray:
        """Columns of a list of variables, found once for the blocks that share the list."""
        if id(variables) not in self.of_list:
            column = self.column
            try:
                found = [column[id(v)] for v in variables]
            except KeyError:
                self._number(variables)
                found = [column[id(v)] for v in variables]
            self.of_list[id(variables)] = np.array(found, np.int32)
        return self.of_list[id(variables)]

    def _rows(self) -> tuple[NDArray[np.int64], IndexArray, FloatArray, FloatArray, FloatArray, list[Any]]:
        parts: list[tuple[Any, Any, Any, Any, Any]] = []
        constraints = []
        for component, members in self._components():
            block = component.arrays if isinstance(component, Rows) else None
            if block is not None:
                columns = self._columns_of(block.variables)[block.columns]
                if not _repeated(block.indptr, columns):
                    parts.append((np.diff(block.indptr), columns, block.values, block.lower, block.upper))
                    constraints.append((component, list(component.index_set())))
                    continue
            part: tuple[list[int], list[int], list[float], list[float], list[float]] = ([], [], [], [], [])
            indices = []
            for key, data in component.items() if members is None else members:
                clock.check()
                if not data.active:
                    continue
                where = f"constraint {data.name!r}"
                try:
                    low, body, high = data.to_bounded_expression(evaluate_bounds=True)
                except ValueError as error:
                    raise ModelError(f"{where}: {error}") from None
                constant, coefficients, columns_of_row = self._linear(body, where)
                part[0].append(len(columns_of_row))
                part[1].extend(columns_of_row)
                part[2].extend(coefficients)
                part[3].append(-math.inf if low is None else low - constant)
                part[4].append(math.inf if high is None else high - constant)
                indices.append(key)
            parts.append(part)
            constraints.append((component, indices))
        kinds = (np.int64, np.int32, np.float64, np.float64, np.float64)
        joined = [
            np.concatenate([np.asarray(part[i], kind) for part in parts]) if parts else np.zeros(0, kind)
            for i, kind in enumerate(kinds)
        ]
        counts, index, value, lower, upper = joined
        zeros = np.flatnonzero(value == 0)
        if zeros.size:
            # HiGHS warns about explicit zeros, and a warning is otherwise a reason to stop.
            counts = counts - np.bincount(
                np.searchsorted(np.cumsum(counts), zeros, side="right"), minlength=len(counts)
            )
            index, value = np.delete(index, zeros), np.delete(value, zeros)
        return counts, index, value, lower, upper, constraints

    def _components(self) -> Iterator[tuple[Any, list[tuple[Any, Any]] | None]]:
        """Active constraints; with members named for references, which may show rows met before."""
        components = list(self.model.component_objects(pyo.Constraint, active=True, descend_into=pyo.Block))
        own = [component for component in components if isinstance(component, Rows) or not component.is_reference()]
        for component in own:
            yield component, None
        if len(own) < len(components):
            met = {id(data) for component in own for data in component.values()}
            for component in components:
                new = [(key, data) for key, data in component.items() if id(data) not in met]
                met.update(id(data) for _, data in new)
                if new:
                    yield component, new

    def _linear(self, expression: Any, where: str) -> tuple[float, Sequence[float], list[int]]:
        """Constant, coefficients and columns of a linear expression, each column once."""
        if expression.__class__ is LinearExpression:
            coefficients: Sequence[Any] = expression.linear_coefs
            constant: Any = expression.constant
            columns = [self.column.get(id(v), -1) for v in expression.linear_vars]
            if (
                len(set(columns)) == len(columns)
                and -1 not in columns
                and all(c.__class__ is float or c.__class__ is int for c in coefficients)
                and constant.__class__ in _PLAIN
            ):
                return _finite(constant, where), coefficients, columns
        try:
            found = self.walker.walk_expression(expression)
            if found.nonlinear is not None:
                raise ValueError("not linear")
            scale = found.multiplier
            constant = float(found.constant) * scale
            coefficients = [float(c) * scale for c in found.linear.values()]
        except Exception as error:
            raise ModelError(f"{where}: {error}") from None
        met = self.walker.var_recorder.var_map
        self._number(met[key] for key in found.linear)
        return _finite(constant, where), coefficients, [self.column[key] for key in found.linear]

    def _objective(self) -> tuple[Sense, float, dict[int, float]]:
        active = list(self.model.component_data_objects(pyo.Objective, active=True, descend_into=pyo.Block))
        if len(active) != 1:
            names = ", ".join(repr(objective.name) for objective in active) or "none"
            raise ModelError(f"a model must have one active objective, this one has {names}")
        constant, coefficients, columns = self._linear(active[0].expr, f"objective {active[0].name!r}")
        sense: Sense = "min" if active[0].sense == pyo.minimize else "max"
        return sense, constant, dict(zip(columns, coefficients, strict=True))


def _number(value: Any, where: str) -> float:
    if value is None:
        raise ModelError(f"{where} is not set")
    return float(value)


def _finite(constant: float, where: str) -> float:
    if not math.isfinite(constant):
        raise ModelError(f"{where}: constant {constant:g} is not a finite number")
    return float(constant)


def _repeated(indptr: NDArray[np.int64], columns: IndexArray) -> bool:
    """Tell whether a row has two entries in one column, which solvers refuse and expressions add up."""
    if not len(columns):
        return False
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    places = np.sort(rows * (int(columns.max()) + 1) + columns)
    return bool((places[1:] == places[:-1]).any())


def refuse_bad_numbers(program: LinearProgram) -> Scaling:
    """Raise for the first number that a solver would drop, round or take for infinity, in units that suit it.

    Returns
    -------
    Scaling
        These units.

    Raises
    ------
    ModelError
        With the name of the constraint or variable.
    """
    refuse_non_numbers(program)
    inner, scaling = scaled(program)
    refuse_extreme_numbers(program, inner)
    return scaling


def refuse_non_numbers(program: LinearProgram) -> None:
    """Raise for the first coefficient that is not finite, and the first limit that is not a number or too large.

    Raises
    ------
    ModelError
        With the name of the constraint or variable.
    """
    _refuse(program, program, np.isfinite)
    if not math.isfinite(program.offset):
        raise ModelError(f"objective: constant {program.offset:g} is not a finite number")
    for kind, name, lower, upper in _limits(program):
        for bounds, open_side in ((lower, -math.inf), (upper, math.inf)):
            fine = np.abs(bounds) < INFINITE_BOUND
            if fine.all():
                continue
            fine |= bounds == open_side
            if not fine.all():
                at = int(fine.argmin())
                raise ModelError(f"{kind} {name(at)!r}: bound {bounds[at]:g} is not a number that the solver can take")


def refuse_extreme_numbers(program: LinearProgram, taken: LinearProgram) -> None:
    """Raise for the first number whose size a solver does not take.

    Parameters
    ----------
    program : LinearProgram
        Of numbers (:func:`refuse_non_numbers`).
    taken : LinearProgram
        The same program in the units in which the solver gets it.

    Raises
    ------
    ModelError
        With the name of the constraint or variable, and the number that the program has.
    """
    _refuse(program, taken, _taken_at_their_value)
    if taken is program:
        # Limits are no larger, or they would be no numbers.
        return
    for (kind, name, *given), (_, _, *limits) in zip(_limits(program), _limits(taken), strict=True):
        for bounds, own in zip(limits, given, strict=True):
            wrong = np.flatnonzero(np.isfinite(bounds) & (np.abs(bounds) >= INFINITE_BOUND))
            if wrong.size:
                at = int(wrong[0])
                raise ModelError(f"{kind} {name(at)!r}: bound {own[at]:g} is too large beside the coefficients")


def _taken_at_their_value(coefficients: FloatArray) -> NDArray[np.bool_]:
    sizes = np.abs(coefficients)
    taken: NDArray[np.bool_] = (sizes < LARGEST_COEFFICIENT) & ((sizes > SMALLEST_COEFFICIENT) | (sizes == 0))
    return taken


def _limits(program: LinearProgram) -> list[tuple[str, Callable[[int], str], FloatArray, FloatArray]]:
    return [
        ("constraint", program.row_name, program.row_lower, program.row_upper),
        ("variable", program.column_name, program.col_lower, program.col_upper),
    ]


def _refuse(program: LinearProgram, taken: LinearProgram, good: Callable[[FloatArray], NDArray[np.bool_]]) -> None:
    """Raise for the first coefficient that is not good in the program that the solver gets."""
    entries = good(taken.value)
    if not entries.all():
        entry = int(entries.argmin())
        row = int(np.searchsorted(program.indptr, entry, side="right")) - 1
        raise ModelError(
            f"constraint {program.row_name(row)!r}, variable {program.column_name(int(program.index[entry]))!r}: "
            f"coefficient {program.value[entry]:g} {_why(taken.value[entry])}"
        )
    columns = good(taken.cost)
    if not columns.all():
        column = int(columns.argmin())
        raise ModelError(
            f"objective, variable {program.column_name(column)!r}: "
            f"coefficient {program.cost[column]:g} {_why(taken.cost[column])}"
        )


def _why(value: float) -> str:
    if not math.isfinite(value):
        return "is not a finite number"
    if abs(value) >= LARGEST_COEFFICIENT:
        return f"is too large beside the others: the solver refuses {LARGEST_COEFFICIENT:g} and more; rescale the data"
    return f"is too small beside the others: the solver drops {SMALLEST_COEFFICIENT:g} and less; rescale the data"
