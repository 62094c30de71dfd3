"""Certificates of mixed-integer optima that anyone can check in exact fractions (VIPR, format 1.0).

A search that knows the optimum has only to prove that nothing is better.  It is a tree of linear programs, which HiGHS
solves from warm bases; of each end of the tree the *prices* are kept, rounded to small denominators, and what they
prove is added up in whole numbers.  With prices y of the rows and reduced costs d = c - A'y, which face the columns'
bounds,

    c'x  ==  y'Ax + d'x  >=  sum_i y_i (l_i or u_i) + sum_j d_j (a_j or b_j),

so any prices prove something, and the coarsest that prove enough are taken.  Where all costs are (but for rounding)
multiples of one number on whole variables, the *cutoff* "no better than the next value" is assumed first, every end of
the tree is a contradiction, and the cutoff is what they refute together; otherwise every end proves the bound itself, a
little below the optimum.  An end that does not need the last branching proves its parent, too.

Continuous variables that are whole in some best point, because each stands alone with coefficient 1 or -1 among whole
ones, are stated as whole (:func:`implied`).

References
----------
Cheung, Gleixner and Steffy, "Verifying integer programming results" (2017).
Achterberg, Koch and Martin, "Branching rules revisited" (2005).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import highspy
import numpy as np
from numpy.typing import NDArray

from formulations.engine import clock
from formulations.engine.cuts import Cut, Separation
from formulations.engine.exact import exact_point
from formulations.engine.highs import hand_over, limit_run
from formulations.engine.linear import LinearProgram
from formulations.engine.scaling import scaled
from instances.reference.programs import CONSTANT, Program
from instances.schema import FloatArray

__all__ = ["NODES", "GivenUp", "Proven", "certificate_of", "implied", "stated"]

NODES = 200_000
"""Linear programs that a search may solve by default."""

DENOMINATORS = (1, 2, 3, 4, 6, 12, 60, 840, 2**12, 2**20, 2**30, 2**40)
"""Denominators of prices, in the order in which they are tried."""

SLACK = 1e-7
"""How far below the optimum a bound is proven where values have no common step, relative to ``max(1, |optimum|)``."""

DIGITS = 24
"""Binary digits to which coefficients of rows are rounded, of the largest one in each row."""

FINEST = 10**6
"""The largest denominator of costs for which their common step is sought."""

TRIED = 8
"""Columns that are tried for a branching at most."""

FEW = 200
"""Linear programs of a tree that is tried before there are cuts, which take longer than they do."""

ROUNDS = 50
"""Rounds of cuts."""

IDLE = 5
"""Rounds that may raise the bound by little."""

RAISED = 1e-2
"""What is little, of what lacks to what is to be proven."""

MOST_CUTS = 100
"""Cuts of a round."""

MOST_TABLEAU = 60
"""Rows of the basis's inverse that a round looks at."""

RELIABLE = 4
"""Times that a column is tried before its record is trusted."""

Side = Literal[1, -1]
"""1 for a lower bound, -1 for an upper one."""


class GivenUp(Exception):  # noqa: N818
    """The search came to no end, for the reason that it gives."""


@dataclass(frozen=True)
class Proven:
    """What a certificate proves.

    Attributes
    ----------
    text : str
        The certificate.
    bound : Fraction, optional
        In the program's own sense; None where it proves that there is no point.
    nodes : int
        Linear programs of the tree.
    """

    text: str
    bound: Fraction | None
    nodes: int


def certificate_of(
    program: LinearProgram, x: FloatArray | None, *, nodes: int = NODES, comments: Sequence[str] = ()
) -> Proven:
    """Prove that a point of a program is optimal, or that it has none, in a certificate.

    Parameters
    ----------
    program : LinearProgram
    x : (columns,) float, optional
        A best point; None where there is none.
    nodes : int
        Linear programs that may be solved.
    comments : sequence of str
        Lines at the head of the certificate.

    Raises
    ------
    GivenUp
        When no proof is found, or not in so many programs or in time.
    """
    return _Search(program, x, nodes).proven(comments)


def implied(program: LinearProgram) -> NDArray[np.bool_]:
    """(columns,) bool: continuous columns that are whole in some best point, if there is one.

    Each stands in rows of whole columns alone, whole coefficients and limits, with coefficient 1 or -1.  Whatever the
    whole columns are, it may be anything between two whole numbers, independently of the others; so one of these, or
    any whole number between, is best.
    """
    row = np.repeat(np.arange(program.num_rows), np.diff(program.indptr))
    continuous = ~program.integer
    own = continuous[program.index]
    many = np.bincount(row, weights=own, minlength=program.num_rows) != 1
    for limits in (program.row_lower, program.row_upper):
        many |= np.isfinite(limits) & (limits != np.rint(np.where(np.isfinite(limits), limits, 0.0)))
    many |= np.bincount(row, weights=program.value != np.rint(program.value), minlength=program.num_rows) > 0
    refused = np.zeros(program.num_cols, bool)
    refused[program.index[own & (many[row] | (np.abs(program.value) != 1))]] = True
    for limits in (program.col_lower, program.col_upper):
        refused |= np.isfinite(limits) & (limits != np.rint(np.where(np.isfinite(limits), limits, 0.0)))
    return continuous & ~refused


@dataclass
class _Line:
    """A derived constraint: what it states, by which rule, and from which constraints with which factors."""

    stated: str
    rule: str
    refs: list[int]
    factors: list[str]


@dataclass(frozen=True)
class _Proof:
    """A derived constraint that ends a node, and the assumptions that it needs."""

    index: int
    needs: frozenset[int]


@dataclass(frozen=True)
class _Step:
    """An assumption on the way to a node: a limit of a column, and which one it replaced."""

    column: int
    side: Side
    limit: int
    assumption: int
    before: Any
    place: int


@dataclass
class _Frame:
    """A branching whose sides are proven one after the other."""

    column: int
    sides: list[tuple[Side, int]]
    assumption: int = -1
    first: _Proof | None = None
    first_assumption: int = -1


@dataclass
class _Steps:
    """How far a column's branchings have raised the bound, for each unit that they moved it."""

    gain: list[float] = field(default_factory=lambda: [0.0, 0.0])
    count: list[int] = field(default_factory=lambda: [0, 0])

    def add(self, side: int, gain: float) -> None:
        self.gain[side] += gain
        self.count[side] += 1


class _Exact:
    """A program's numbers over one denominator, a power of two, so that sums of them are whole."""

    def __init__(self, program: LinearProgram, weights: Sequence[Any]) -> None:
        order = np.argsort(program.index, kind="stable")
        self.row_of = np.repeat(np.arange(program.num_rows), np.diff(program.indptr))[order]
        self.starts = np.searchsorted(program.index[order], np.arange(program.num_cols))
        self.empty = np.bincount(program.index, minlength=program.num_cols) == 0
        numbers = [_fraction(v) for v in program.value[order].tolist()]
        self.over = math.lcm(*(v.denominator for v in (*numbers, *weights)))
        self.entries = _whole_array(int(v * self.over) for v in numbers)
        self.whole_costs = _whole_array(int(w * self.over) for w in weights)
        self.no_costs = np.zeros_like(self.whole_costs)
        self.floats = np.abs(self.entries.astype(float))
        self.largest_cost = float(np.abs(self.whole_costs.astype(float)).max(initial=0.0))
        self.row_limits: list[list[Any]] = [
            [_fraction(limit) if math.isfinite(limit) else None for limit in limits.tolist()]
            for limits in (program.row_lower, program.row_upper)
        ]


class _Search:
    def __init__(self, program: LinearProgram, x: FloatArray | None, nodes: int) -> None:
        self.given, self.x, self.left, self.nodes = program, x, nodes, 0
        self.sign = 1 if program.sense == "min" else -1
        self.integer = program.integer | implied(program)
        self.point = None if x is None else self._point(x)
        self._state()
        self._shorten()
        self._aim()
        self.exact = _Exact(self.program, self.weights)
        self._solver()

    # --- what is stated -----------------------------------------------------------------------

    def _point(self, x: FloatArray) -> list[Fraction] | None:
        """Return the point in fractions, if it keeps to all rows exactly, or one with the same whole numbers does."""
        point = [
            Fraction(round(v)) if whole else Fraction(v) for v, whole in zip(x.tolist(), self.integer, strict=True)
        ]
        clock.check()
        return exact_point(self.given, point, self.integer, seconds=clock.left())

    def _state(self) -> None:
        """Lay down the constraints of the program, one for each finite limit, and number them."""
        program = self.given
        self.rows: list[str] = []
        self.names = _names(program)
        columns = program.num_cols
        self.lower: list[Any] = [None] * columns
        self.upper: list[Any] = [None] * columns
        self.lower_at = [-1] * columns
        self.upper_at = [-1] * columns
        self.lines: list[_Line] = []
        rounded = []
        for side, limits, values, places in (
            (1, program.col_lower.tolist(), self.lower, self.lower_at),
            (-1, program.col_upper.tolist(), self.upper, self.upper_at),
        ):
            for j, limit in enumerate(limits):
                if math.isfinite(limit):
                    values[j], places[j] = _fraction(limit), len(self.rows)
                    self.rows.append(f"B{len(self.rows)} {'G' if side > 0 else 'L'} {_text(values[j])} 1 {j} 1")
                    if self.integer[j] and limit % 1:
                        rounded.append((side, j, values, places))
        self.num_bounds = len(self.rows)
        self.row_lower_at, self.row_upper_at = [-1] * program.num_rows, [-1] * program.num_rows
        starts, index, value = program.indptr.tolist(), program.index.tolist(), program.value.tolist()
        limits = zip(program.row_lower.tolist(), program.row_upper.tolist(), strict=True)
        for i, (low, high) in enumerate(clock.ticking(limits)):
            span = range(starts[i], starts[i + 1])
            body = " ".join([str(len(span)), *(f"{index[e]} {_text(_fraction(value[e]))}" for e in span)])
            if low == high:
                self.row_lower_at[i] = self.row_upper_at[i] = self._row("E", low, body)
                continue
            if math.isfinite(low):
                self.row_lower_at[i] = self._row("G", low, body)
            if math.isfinite(high):
                self.row_upper_at[i] = self._row("L", high, body)
        if program.offset:
            # A column that is 1 has the objective's constant as its cost.
            self.rows.append(f"C{len(self.rows)} E 1 1 {columns} 1")
            self.names.append(CONSTANT)
        for side, j, values, places in rounded:
            values[j] = math.ceil(values[j]) if side > 0 else math.floor(values[j])
            places[j] = self._line(f"{'G' if side > 0 else 'L'} {values[j]} 1 {j} 1", "rnd", [places[j]], ["1"])
        self._imply()

    def _row(self, sense: str, limit: float, body: str) -> int:
        self.rows.append(f"C{len(self.rows)} {sense} {_text(_fraction(limit))} {body}")
        return len(self.rows) - 1

    def _line(self, stated: str, rule: str, refs: list[int], factors: list[str]) -> int:
        self.lines.append(_Line(stated, rule, refs, factors))
        return len(self.rows) + len(self.lines) - 1

    def _imply(self) -> None:
        """Give columns without a bound those that the rows imply, derived one by one."""
        program = self.given
        wanted = [j for j in range(program.num_cols) if self.lower[j] is None or self.upper[j] is None]
        if not wanted:
            return
        starts, index, value = program.indptr.tolist(), program.index.tolist(), program.value.tolist()
        rows_of: dict[int, list[tuple[int, int]]] = {j: [] for j in wanted}
        for i in range(program.num_rows):
            for e in range(starts[i], starts[i + 1]):
                if index[e] in rows_of:
                    rows_of[index[e]].append((i, e))
        for _ in range(3):
            before = len(self.lines)
            for j in clock.ticking(wanted):
                for i, e in rows_of[j]:
                    for side, at in ((1, self.row_lower_at[i]), (-1, self.row_upper_at[i])):
                        if at >= 0:
                            self._imply_by(j, i, e, side, at, range(starts[i], starts[i + 1]), index, value)
            if len(self.lines) == before:
                return

    def _imply_by(
        self, j: int, i: int, e: int, side: int, at: int, span: range, index: list[int], value: list[float]
    ) -> None:
        """Derive a bound of one column from one side of one row, where it has none and the others of the row do."""
        own = _fraction(value[e])
        rising = side * own > 0  # The row bounds the column from below.
        values, places = (self.lower, self.lower_at) if rising else (self.upper, self.upper_at)
        if values[j] is not None:
            return
        limit = _fraction((self.given.row_lower if side > 0 else self.given.row_upper)[i])
        refs, factors = [at], [_text(Fraction(1) / own)]
        for other in span:
            if other == e:
                continue
            k, a = index[other], _fraction(value[other])
            # ``a x_k`` at its most where the row is a lower limit, at its least where it is an upper one.
            high = side * a > 0
            faced, where = (self.upper[k], self.upper_at[k]) if high else (self.lower[k], self.lower_at[k])
            if faced is None:
                return
            limit -= a * faced
            refs.append(where)
            factors.append(_text(Fraction(-a) / own))
        found = Fraction(limit) / own
        stated = f"{'G' if rising else 'L'} {_text(found)} 1 {j} 1"
        values[j], places[j] = _whole_if(found), self._line(stated, "lin", refs, factors)
        if self.integer[j] and found.denominator != 1:
            values[j] = math.ceil(found) if rising else math.floor(found)
            places[j] = self._line(f"{'G' if rising else 'L'} {values[j]} 1 {j} 1", "rnd", [places[j]], ["1"])

    def _shorten(self) -> None:
        """Derive rows whose coefficients have few digits, weaker by next to nothing, of those that have many.

        Of a column from 0 on a coefficient may be less where the row is an upper limit, more where it is a lower one.
        Rows of whole columns alone, so that where these are fixed a row as it is given refutes what is let pass here.
        """
        program = self.program = self.coarse = self.given
        self.given_at = [*self.row_lower_at], [*self.row_upper_at]
        value, at_0 = program.value.copy(), [low == 0 for low in self.lower]
        for i, (low, high) in enumerate(zip(program.row_lower.tolist(), program.row_upper.tolist(), strict=True)):
            span = slice(program.indptr[i], program.indptr[i + 1])
            columns, given = program.index[span], program.value[span]
            if math.isfinite(low) == math.isfinite(high) or not self.integer[columns].all() or not given.size:
                continue
            unit = math.ldexp(1.0, math.frexp(float(np.abs(given).max()))[1] - DIGITS)
            rounded = (np.floor if math.isfinite(high) else np.ceil)(given / unit) * unit
            moved = [k for k in np.flatnonzero(rounded != given).tolist() if at_0[columns[k]]]
            if not moved:
                continue
            value[span][moved] = rounded[moved]
            places = self.row_upper_at if math.isfinite(high) else self.row_lower_at
            refs, factors = [places[i]], ["1"]
            for k in moved:
                refs.append(self.lower_at[columns[k]])
                factors.append(_text(_fraction(rounded[k]) - _fraction(given[k])))
            terms = [
                f"{j} {_text(_fraction(a))}" for j, a in zip(columns.tolist(), value[span].tolist(), strict=True) if a
            ]
            side, limit = ("L", high) if math.isfinite(high) else ("G", low)
            stated = " ".join([side, _text(_fraction(limit)), str(len(terms)), *terms])
            places[i] = self._line(stated, "lin", refs, factors)
        if self.lines:
            self.program = self.coarse = replace(program, value=value)

    # --- what is to be proven -----------------------------------------------------------------

    def _aim(self) -> None:
        """Settle what every end of the tree has to prove, and with which costs."""
        program = self.given
        costs = [self.sign * _fraction(c) for c in program.cost.tolist()]
        offset = self.sign * _fraction(program.offset)
        self.costs, self.offset = costs, offset
        self.step: Fraction | None = None
        self.cutoff_at = -1
        if self.x is None:
            self.weights = [0] * len(costs)
            self.goal, self.target = "G 1 0", None
            return
        value = self._value(costs)
        found = _multiples(costs, self.integer.tolist())
        if found is not None:
            self.step, self.weights = found
            self.aim = sum(w * round(v) for w, v in zip(self.weights, self.x.tolist(), strict=True) if w)
            self.cutoff_at = self._line(f"L {self.aim - 1} {_body(self.weights)}", "asm", [], [])
            self.goal, self.target = "G 1 0", Fraction(self.aim - 1)
            return
        slack = Fraction(SLACK) * max(1, abs(value + offset))
        below = value - slack
        # Of few digits.
        fine = 2 ** max(0, 40 - math.frexp(float(max(1, abs(below))))[1])
        self.target = Fraction(math.floor(below * fine), fine)
        self.weights = costs
        self.goal = f"{'G' if self.sign > 0 else 'L'} {_text(self._shown(self.target))} OBJ"

    def _value(self, costs: list[Any]) -> Fraction:
        assert self.x is not None
        point = self.point or [Fraction(v) for v in self.x.tolist()]
        return sum((c * v for c, v in zip(costs, point, strict=True) if c and v), Fraction())

    def _shown(self, value: Fraction) -> Fraction:
        """Return a bound on the costs as one on the objective of the certificate, which has the constant in it."""
        shown: Fraction = self.sign * (value + self.offset)
        return shown

    # --- the linear programs ------------------------------------------------------------------

    def _solver(self) -> None:
        program = self.program
        self.float_costs = np.array([float(w) for w in self.weights])
        taken = replace(program, sense="min", offset=0.0, cost=self.float_costs, integer=self.integer)
        # Whole columns keep their units, so bounds are moved as they are.
        self.inner, self.scaling = scaled(taken)
        self.inner = replace(self.inner, integer=np.zeros(program.num_cols, bool))
        self.highs = highspy.Highs()
        for name, value in (
            ("output_flag", False),
            ("presolve", "off"),
            ("solver", "simplex"),
            ("primal_feasibility_tolerance", 1e-9),
            ("dual_feasibility_tolerance", 1e-9),
            ("random_seed", 0),
            ("threads", 1),
        ):
            self.highs.setOptionValue(name, value)
        hand_over(self.highs, self.inner)
        self.whole_columns = np.flatnonzero(self.integer)
        for j in self.whole_columns.tolist():
            # Rounded, where they were not whole.
            self._push(j)
        self.records = {int(j): _Steps() for j in self.whole_columns}
        self.path: list[_Step] = []
        self.cuts: list[tuple[Cut, int]] = []

    def _run(self, iterations: int | None = None) -> Any:
        self.nodes += 1
        if self.nodes > self.left:
            raise GivenUp(f"no proof in {self.left:,} linear programs")
        remaining = clock.left()
        if remaining <= 0:
            raise GivenUp("no proof in time")
        limit_run(self.highs, remaining)
        self.highs.setOptionValue("simplex_iteration_limit", 2**31 - 1 if iterations is None else iterations)
        self.highs.run()
        return self.highs.getModelStatus()

    # --- cuts ---------------------------------------------------------------------------------

    def _cut(self) -> None:
        """Add cuts to the root's relaxation as long as they raise its bound, and keep those that are tight."""
        if not self.whole_columns.size:
            return
        best, idle = -math.inf, 0
        for _ in range(ROUNDS):
            if self._run() != highspy.HighsModelStatus.kOptimal:
                break
            objective = self._objective()
            if self.target is not None and self._reaches(objective):
                break
            wanted = max(1.0, abs(objective)) if self.target is None else float(self.target) - objective
            idle = 0 if objective > best + RAISED * wanted else idle + 1
            best = max(best, objective)
            if idle > IDLE:
                break
            point = self.highs.getSolution()
            x, prices = np.array(point.col_value), self.scaling.inverse.prices(np.array(point.row_dual))
            separation = Separation(self.program, self.float_costs, self.integer, self.lower, self.upper)
            found = separation.cuts(x, prices, self._inverse(x), MOST_CUTS)
            if not found:
                break
            derived = [(cut, self._derived(cut)) for cut in found]
            self._drop()
            self._add(derived)
        self._drop()
        self.exact = _Exact(self.program, self.weights)

    def _inverse(self, x: FloatArray) -> Iterator[FloatArray]:
        """Yield rows of the basis's inverse, of whole columns that are not whole, those nearest to a half first."""
        away = np.abs(x - np.rint(x))
        _, basic = self.highs.getBasicVariables()
        there = [(float(away[j]), k) for k, j in enumerate(np.array(basic).tolist()) if j >= 0 and self.integer[j]]
        for off, k in sorted(there, key=lambda one: (-one[0], one[1]))[:MOST_TABLEAU]:
            if off > 1e-6:
                _, row = self.highs.getBasisInverseRow(k)
                yield np.ldexp(np.array(row), self.scaling.rows)

    def _derived(self, cut: Cut) -> int:
        """Derive a cut, and return its index."""
        refs, factors = [], []
        for numbers, above, below in (
            (cut.rows, self.row_upper_at, self.row_lower_at),
            (cut.bounds, self.upper_at, self.lower_at),
        ):
            for at, factor in numbers.items():
                refs.append((above if factor > 0 else below)[at])
                factors.append(_text(factor))
        terms = " ".join([str(len(cut.terms)), *(f"{j} {a}" for j, a in cut.terms.items())])
        return self._line(f"L {cut.limit} {terms}", "rnd", refs, factors)

    def _add(self, cuts: list[tuple[Cut, int]]) -> None:
        """Give the solver cuts as rows."""
        rows = _rows([cut for cut, _ in cuts])
        self.highs.addRows(len(cuts), *rows[:2], len(rows[3]), rows[2][:-1], *rows[3:])
        self._keep(self.cuts + cuts)

    def _drop(self) -> None:
        """Take out the cuts that are not tight in the solver's basis."""
        first = self.given.num_rows
        basic = self.highs.getBasis().row_status[first:]
        slack = [k for k, status in enumerate(basic) if status == highspy.HighsBasisStatus.kBasic]
        if slack:
            self.highs.deleteRows(len(slack), np.array(slack, np.int32) + first)
            self._keep([cut for k, cut in enumerate(self.cuts) if k not in {*slack}])

    def _keep(self, cuts: list[tuple[Cut, int]]) -> None:
        """Make the program that of the given rows and some cuts."""
        given, self.cuts = self.coarse, cuts
        lower, upper, starts, index, value = _rows([cut for cut, _ in cuts])
        self.program = given.with_rows(np.diff(starts), index, value, lower, upper)
        rows = given.num_rows
        self.row_lower_at[rows:], self.row_upper_at[rows:] = [-1] * len(cuts), [line for _, line in cuts]
        self.scaling = replace(
            self.scaling, rows=np.concatenate([self.scaling.rows[:rows], np.zeros(len(cuts), np.int32)])
        )

    # --- the tree -----------------------------------------------------------------------------

    def proven(self, comments: Sequence[str]) -> Proven:
        proof = self._tree(FEW)
        if proof is None:
            self._cut()
            proof = self._tree(self.left)
        assert proof is not None
        bound = None
        if self.x is not None:
            assert self.target is not None
            bound = self._shown(self.target)
            if self.step is not None:
                bound = self._refuted(proof)
        return Proven(self._written(bound, comments), bound, self.nodes)

    def _tree(self, most: int) -> _Proof | None:
        """Prove the whole of it, in so many linear programs altogether or not at all."""
        stack: list[_Frame] = []
        while True:
            if self.nodes > most:
                while self.path:
                    self._ascend()
                return None
            proof, frame = self._node()
            if frame is not None:
                stack.append(frame)
                self._descend(frame)
                continue
            while stack:
                assert proof is not None
                frame = stack[-1]
                self._ascend()
                if frame.assumption not in proof.needs:
                    # What holds on one side without the branching holds on both.
                    stack.pop()
                    continue
                if frame.first is None:
                    frame.first, frame.first_assumption = proof, frame.assumption
                    self._descend(frame)
                    break
                index = self._line(
                    self.goal, "uns", [frame.first.index, frame.first_assumption, proof.index, frame.assumption], []
                )
                needs = (frame.first.needs - {frame.first_assumption}) | (proof.needs - {frame.assumption})
                proof = _Proof(index, needs)
                stack.pop()
            else:
                assert proof is not None
                return proof

    def _descend(self, frame: _Frame) -> None:
        side, limit = frame.sides.pop(0)
        j = frame.column
        frame.assumption = self._line(f"{'G' if side > 0 else 'L'} {limit} 1 {j} 1", "asm", [], [])
        values, places = (self.lower, self.lower_at) if side > 0 else (self.upper, self.upper_at)
        self.path.append(_Step(j, side, limit, frame.assumption, values[j], places[j]))
        values[j], places[j] = limit, frame.assumption
        self._push(j)

    def _ascend(self) -> None:
        step = self.path.pop()
        values, places = (self.lower, self.lower_at) if step.side > 0 else (self.upper, self.upper_at)
        values[step.column], places[step.column] = step.before, step.place
        self._push(step.column)

    def _push(self, j: int) -> None:
        low, high = self.lower[j], self.upper[j]
        self.highs.changeColBounds(
            j, -highspy.kHighsInf if low is None else float(low), highspy.kHighsInf if high is None else float(high)
        )

    def _node(self) -> tuple[_Proof | None, _Frame | None]:
        """Prove what is to be proven of the node, or say how it is divided."""
        status = self._run()
        known = highspy.HighsModelStatus
        if status not in (known.kOptimal, known.kInfeasible):
            self.highs.clearSolver()
            status = self._run()
        x = None
        if status == known.kInfeasible:
            proof = self._by_ray()
            if proof is not None:
                return proof, None
        elif status == known.kOptimal:
            point = self.highs.getSolution()
            x = np.array(point.col_value)
            prices = self.scaling.inverse.prices(np.array(point.row_dual))
            objective = self._objective()
            if self.target is not None and self._reaches(objective):
                proof = self._by_prices(prices)
                if proof is not None:
                    return proof, None
            frame = self._branching(x, objective)
            if frame is not None:
                return None, frame
        else:
            raise GivenUp(f"the linear program of a node: {self.highs.modelStatusToString(status)}")
        # The solver has no more to say; a node that is smaller may still be settled.
        for j in self.whole_columns.tolist():
            low, high = self.lower[j], self.upper[j]
            if low is not None and high is not None and low < high:
                middle = (low + high) // 2 if x is None else min(high - 1, max(low, round(x[j])))
                return None, _Frame(j, [(-1, int(middle)), (1, int(middle) + 1)])
        proof = self._by_row()
        if proof is None:
            raise GivenUp("no prices prove the bound at a node where all that is whole is fixed")
        return proof, None

    def _reaches(self, objective: float) -> bool:
        assert self.target is not None
        need = float(self.target)
        return objective >= need - 1e-6 * max(1.0, abs(need)) if self.step is None else objective > need - 1e-6

    # --- exact ends of the tree ---------------------------------------------------------------

    def _by_prices(self, prices: FloatArray) -> _Proof | None:
        return self._rounded(prices, self.exact.whole_costs, self.target)

    def _by_ray(self) -> _Proof | None:
        _, exists, ray = self.highs.getDualRay()
        if not exists:
            return None
        ray = np.array(ray)
        largest = float(np.abs(ray).max(initial=0.0))
        if not largest:
            return None
        ray = self.scaling.inverse.prices(ray / largest)
        unit = float(np.abs(ray).max(initial=0.0))
        ray = ray / unit if unit else ray
        return self._rounded(ray, self.exact.no_costs, None) or self._rounded(-ray, self.exact.no_costs, None)

    @cached_property
    def exact_given(self) -> _Exact:
        """The numbers of the program as it is given."""
        return _Exact(self.given, self.weights)

    def _by_row(self) -> _Proof | None:
        """Refute a node by one row as it is given, which the solver's tolerance, or fewer digits, let pass."""
        kept = self.exact, self.row_lower_at, self.row_upper_at
        self.exact, self.row_lower_at, self.row_upper_at = self.exact_given, *self.given_at
        try:
            for limits, price in zip(self.exact.row_limits, (1.0, -1.0), strict=True):
                for i, limit in enumerate(limits):
                    if limit is not None:
                        rounded = np.zeros(len(limits))
                        rounded[i] = price
                        proof = self._end(rounded, 1, self.exact.no_costs, None)
                        if proof is not None:
                            return proof
            return None
        finally:
            self.exact, self.row_lower_at, self.row_upper_at = kept

    def _rounded(self, prices: FloatArray, costs: NDArray[Any], target: Fraction | None) -> _Proof | None:
        """Prove the goal by prices of the smallest denominator that do."""
        prices = prices.copy()
        for i in np.flatnonzero(prices).tolist():
            if self.exact.row_limits[0 if prices[i] > 0 else 1][i] is None:
                prices[i] = 0.0
        seen = None
        for denominator in DENOMINATORS:
            rounded = np.rint(prices * denominator)
            if seen is not None and denominator * seen[1] and np.array_equal(rounded * seen[1], seen[0] * denominator):
                continue
            seen = (rounded, denominator)
            proof = self._end(rounded, denominator, costs, target)
            if proof is not None:
                return proof
        return None

    def _end(
        self, rounded: FloatArray, denominator: int, costs: NDArray[Any], target: Fraction | None
    ) -> _Proof | None:
        """Add up what prices prove, in whole numbers, and derive the goal where that is enough."""
        reduced = self._reduced(rounded, denominator, costs)
        if reduced is None:
            return None
        faced: dict[int, int] = {}
        # All of it is over ``denominator * over``.
        total: Any = 0
        for i in np.flatnonzero(rounded).tolist():
            price = int(rounded[i])
            total += price * self.exact.row_limits[0 if price > 0 else 1][i]
        total *= self.exact.over
        columns = np.flatnonzero(reduced).tolist()
        for j in columns:
            d = int(reduced[j])
            limit, place = (self.lower[j], self.lower_at[j]) if d > 0 else (self.upper[j], self.upper_at[j])
            if limit is None:
                return None
            total += d * limit
            faced[j] = place
        enough = 0 if target is None else target * denominator * self.exact.over
        missing = total - enough
        # A contradiction needs more than that, a bound no more.
        strict = target is None or self.step is not None
        if missing < 0 or (strict and not missing):
            return None
        needs = self._shed(reduced, faced, missing, strict)
        return self._derive(rounded, denominator, reduced, faced, needs, cutoff=target is not None)

    def _reduced(self, rounded: FloatArray, denominator: int, costs: NDArray[Any]) -> NDArray[Any] | None:
        """Return the reduced costs, over ``denominator * over``."""
        spread = np.abs(rounded)[self.exact.row_of]
        size = float((self.exact.floats * spread).sum()) + self.exact.largest_cost * denominator
        if size < 2**62 and self.exact.entries.dtype != object and costs.dtype != object:
            weights = self.exact.entries * rounded.astype(np.int64)[self.exact.row_of]
            total = costs * denominator
        else:
            whole = np.array([int(v) for v in rounded.tolist()], object)
            weights = self.exact.entries.astype(object) * whole[self.exact.row_of]
            total = costs.astype(object) * denominator
        # One more, so that columns without entries at the end begin somewhere, too.
        sums = np.add.reduceat(np.append(weights, 0), self.exact.starts)
        sums[self.exact.empty] = 0
        return total - sums

    def _shed(self, reduced: NDArray[Any], faced: dict[int, int], missing: Any, strict: bool) -> frozenset[int]:
        """Do without assumptions, the last ones first, as long as what is proven is enough; return those needed."""
        needs = set()
        for step in reversed(self.path):
            if faced.get(step.column) != step.assumption:
                continue
            if step.before is not None:
                cost = abs(int(reduced[step.column]) * (step.limit - step.before))
                if cost < missing or (cost == missing and not strict):
                    missing -= cost
                    faced[step.column] = step.place
                    continue
            needs.add(step.assumption)
        return frozenset(needs)

    def _derive(
        self,
        rounded: FloatArray,
        denominator: int,
        reduced: NDArray[Any],
        faced: dict[int, int],
        needs: frozenset[int],
        *,
        cutoff: bool,
    ) -> _Proof:
        refs, factors = [], []
        for i in np.flatnonzero(rounded).tolist():
            price = int(rounded[i])
            refs.append((self.row_lower_at if price > 0 else self.row_upper_at)[i])
            factors.append(price * self.exact.over)
        for j, place in faced.items():
            refs.append(place)
            factors.append(int(reduced[j]))
        over = denominator * self.exact.over
        if self.step is not None and cutoff:
            refs.append(self.cutoff_at)
            factors.append(-over)
            needs = needs | {self.cutoff_at}
        if self.step is not None or not cutoff:
            common = math.gcd(*factors) if factors else 1
            told = [str(f // common) for f in factors]
            goal = "G 1 0"
        else:
            if self.offset:
                refs.append(self._constant())
                factors.append(self.offset * over)
            told = [_text(self.sign * Fraction(f) / over) for f in factors]
            goal = self.goal
        return _Proof(self._line(goal, "lin", refs, told), needs)

    def _constant(self) -> int:
        """Return the index of the constraint that the variable of the objective's constant is 1."""
        return len(self.rows) - 1

    # --- branching ----------------------------------------------------------------------------

    def _branching(self, x: FloatArray, objective: float) -> _Frame | None:
        values = x[self.whole_columns]
        away = np.abs(values - np.rint(values))
        open_ones = np.flatnonzero(away > 1e-6)
        if not open_ones.size:
            return None
        columns = self.whole_columns[open_ones]
        # What costs nothing is seldom what makes a bound rise.
        costly = columns[self.float_costs[columns] != 0]
        columns = costly if costly.size else columns
        down = x[columns] - np.floor(x[columns])
        best, chosen, gains = -1.0, int(columns[0]), (0.0, 0.0)
        average = self._average()
        scores = [self._score(int(j), float(f), average) for j, f in zip(columns, down, strict=True)]
        basis, tried = None, 0
        for at in sorted(range(len(columns)), key=lambda one: -scores[one][0]):
            j, fraction = int(columns[at]), float(down[at])
            record = self.records[j]
            score, estimate = scores[at]
            if min(record.count) < RELIABLE and tried < TRIED:
                tried += 1
                if basis is None:
                    basis = self.highs.getBasis()
                estimate = self._try(j, float(x[j]), objective, basis)
                score = max(estimate[0], 1e-6) * max(estimate[1], 1e-6)
                for side, moved in ((0, fraction), (1, 1 - fraction)):
                    if math.isfinite(estimate[side]):
                        record.add(side, estimate[side] / moved)
            if score > best:
                best, chosen, gains = score, j, estimate
            if math.isinf(score):
                break
        low = math.floor(x[chosen])
        sides: list[tuple[Side, int]] = [(-1, low), (1, low + 1)]
        return _Frame(chosen, sides if gains[0] >= gains[1] else sides[::-1])

    def _average(self) -> tuple[float, float]:
        found = []
        for side in (0, 1):
            count = sum(r.count[side] for r in self.records.values())
            found.append(sum(r.gain[side] for r in self.records.values()) / count if count else 1.0)
        return found[0], found[1]

    def _score(self, j: int, fraction: float, average: tuple[float, float]) -> tuple[float, tuple[float, float]]:
        record = self.records[j]
        rates = [record.gain[side] / record.count[side] if record.count[side] else average[side] for side in (0, 1)]
        gains = rates[0] * fraction, rates[1] * (1 - fraction)
        return max(gains[0], 1e-6) * max(gains[1], 1e-6), gains

    def _try(self, j: int, value: float, objective: float, basis: Any) -> tuple[float, float]:
        """Return by how much the bound rises on either side of a branching, as far as some steps tell."""
        known = highspy.HighsModelStatus
        gains = []
        low, high = self.lower[j], self.upper[j]
        for side in (0, 1):
            if side:
                self.lower[j] = math.floor(value) + 1
            else:
                self.upper[j] = math.floor(value)
            self._push(j)
            status = self._run(iterations=100)
            self.lower[j], self.upper[j] = low, high
            self._push(j)
            if status == known.kInfeasible:
                gains.append(math.inf)
            else:
                found = self._objective()
                reached = status == known.kOptimal and self.target is not None and self._reaches(found)
                gains.append(math.inf if reached else max(0.0, found - objective) if math.isfinite(found) else 0.0)
            self.highs.setBasis(basis)
        return gains[0], gains[1]

    def _objective(self) -> float:
        return self.scaling.inverse.value(self.highs.getObjectiveValue())

    # --- the end ------------------------------------------------------------------------------

    def _refuted(self, proof: _Proof) -> Fraction:
        """Derive the bound from the cutoff's refutation, and return it as the objective of the certificate has it."""
        assert self.step is not None
        body = _body(self.weights)
        stated = f"G {self.aim} {body}"
        above = self._line(stated, "asm", [], [])
        index = self._line(stated, "uns", [proof.index, self.cutoff_at, above, above], [])
        # The objective is the step times that, and what rounding of the costs makes of bounds.
        refs, factors = [index], [self.step]
        bound = self.step * self.aim
        for j, (c, w) in enumerate(zip(self.costs, self.weights, strict=True)):
            rest = c - self.step * w
            if rest:
                limit, place = (self.lower[j], self.lower_at[j]) if rest > 0 else (self.upper[j], self.upper_at[j])
                if limit is None:
                    raise GivenUp("the costs are no multiples of one number, and a variable has no bound")
                bound += rest * limit
                refs.append(place)
                factors.append(rest)
        if self.offset:
            refs.append(self._constant())
            factors.append(self.offset)
        bound = self._shown(bound)
        told = [_text(self.sign * Fraction(f)) for f in factors]
        self._line(f"{'G' if self.sign > 0 else 'L'} {_text(bound)} OBJ", "lin", refs, told)
        return bound

    def _written(self, bound: Fraction | None, comments: Sequence[str]) -> str:
        """Return the certificate, without what the last constraint does not rest on."""
        first = len(self.rows)
        used = _reached(self.lines, first)
        place = {first + old: first + new for new, old in enumerate(used)}
        until = [-1] * len(used)
        refs_of = []
        for new, old in enumerate(used):
            refs = [place.get(ref, ref) for ref in self.lines[old].refs]
            refs_of.append(refs)
            for ref in refs:
                if ref >= first:
                    until[ref - first] = first + new
        terms = [(j, self.sign * c) for j, c in enumerate(self.costs) if c]
        if self.offset:
            terms.append((self.given.num_cols, self.sign * self.offset))
        whole = self.whole_columns.tolist()
        parts = [f"% {line}" for line in comments]
        parts += ["VER 1.0", f"VAR {len(self.names)}", *self.names, f"INT {len(whole)}", " ".join(map(str, whole))]
        parts += [f"OBJ {self.given.sense}", " ".join([str(len(terms)), *(f"{j} {_text(c)}" for j, c in terms)])]
        parts += [f"CON {first} {self.num_bounds}", *self.rows]
        parts += self._claim(bound)
        parts.append(f"DER {len(used)}")
        for new, old in enumerate(used):
            line = self.lines[old]
            reason = [str(ref) for ref in refs_of[new]]
            if line.rule in ("lin", "rnd"):
                pairs = zip(reason, line.factors, strict=True)
                reason = [str(len(reason)), *(word for pair in pairs for word in pair)]
            parts.append(" ".join([f"D{first + new}", line.stated, "{", line.rule, *reason, "}", str(until[new])]))
        return "\n".join(parts) + "\n"

    def _claim(self, bound: Fraction | None) -> list[str]:
        if bound is None:
            return ["RTP infeas", "SOL 0"]
        point = self.point
        value = None if point is None else self._shown(self._value(self.costs))
        ends = (bound, value) if self.sign > 0 else (value, bound)
        shown = ["-inf" if ends[0] is None else _text(ends[0]), "inf" if ends[1] is None else _text(ends[1])]
        lines = [f"RTP range {shown[0]} {shown[1]}"]
        if point is None:
            return [*lines, "SOL 0"]
        nonzero = [f"{j} {_text(v)}" for j, v in enumerate(point) if v]
        if self.offset:
            nonzero.append(f"{self.given.num_cols} 1")
        return [*lines, "SOL 1", " ".join(["best", str(len(nonzero)), *nonzero])]


def _names(program: LinearProgram) -> list[str]:
    """Return names of the columns without blanks, each once."""
    names = ["".join(program.column_name(j).split()) for j in range(program.num_cols)]
    return names if len({*names, CONSTANT}) > len(names) else [f"{name}#{j}" for j, name in enumerate(names)]


def _fraction(value: float) -> Any:
    """Return a float as what it is: a whole number, or a fraction."""
    return int(value) if value == int(value) else Fraction(value)


def _whole_if(value: Fraction) -> Any:
    return int(value) if value.denominator == 1 else value


def _whole_array(numbers: Iterable[int]) -> NDArray[Any]:
    found = list(numbers)
    small = all(abs(n) < 2**53 for n in found)
    return np.array(found, np.int64 if small else object)


def _text(value: Any) -> str:
    return str(value)


def _body(weights: Sequence[Any]) -> str:
    terms = [f"{j} {w}" for j, w in enumerate(weights) if w]
    return " ".join([str(len(terms)), *terms])


def _multiples(costs: Sequence[Any], integer: Sequence[bool]) -> tuple[Fraction, list[int]] | None:
    """Return a step and whole numbers whose multiples by it are the costs, but for rounding; None for none."""
    if any(c and not whole for c, whole in zip(costs, integer, strict=True)):
        return None
    over = 1
    for c in set(costs):
        if c:
            near = Fraction(c).limit_denominator(FINEST)
            if abs(near - c) > abs(c) * Fraction(1, 10**12):
                return None
            over = math.lcm(over, near.denominator)
            if over > FINEST:
                return None
    weights = [round(c * over) for c in costs]
    common = math.gcd(*weights) if weights else 0
    if not common:
        return Fraction(1), [0] * len(costs)
    return Fraction(common, over), [w // common for w in weights]


def _rows(cuts: Sequence[Cut]) -> tuple[Any, Any, Any, Any, Any]:
    """Return lower limits, upper limits, starts, columns and values of cuts."""
    lengths = [len(cut.terms) for cut in cuts]
    return (
        np.full(len(cuts), -math.inf),
        np.array([float(cut.limit) for cut in cuts]),
        np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int32),
        np.array([j for cut in cuts for j in cut.terms], np.int32),
        np.array([float(a) for cut in cuts for a in cut.terms.values()]),
    )


def _reached(lines: Sequence[_Line], first: int) -> list[int]:
    """Return the lines that the last one rests on, in their order."""
    wanted = {len(lines) - 1}
    for at in range(len(lines) - 1, -1, -1):
        if at in wanted:
            wanted.update(ref - first for ref in lines[at].refs if ref >= first)
    return sorted(wanted)


def stated(program: LinearProgram) -> Program:
    """Return a program as the reference states programs, columns that may as well be whole being whole."""
    found = Program(program.sense, Fraction(program.offset))
    names = _names(program)
    whole = (program.integer | implied(program)).tolist()
    limits = zip(program.col_lower.tolist(), program.col_upper.tolist(), strict=True)
    for name, (lower, upper), one, cost in zip(names, limits, whole, program.cost.tolist(), strict=True):
        found.variable(name, lower, upper, whole=one, cost=Fraction(cost))
    starts, index, value = program.indptr.tolist(), program.index.tolist(), program.value.tolist()
    for i, (low, high) in enumerate(zip(program.row_lower.tolist(), program.row_upper.tolist(), strict=True)):
        span = range(starts[i], starts[i + 1])
        found.row({names[index[e]]: Fraction(value[e]) for e in span}, low, high)
    return found
