"""Programs as text in the free MPS format, which every solver reads, to the last digit.

Own code because no writer at hand keeps a program as it is: HiGHS's writes 15 digits and other names, Pyomo's turns
maximization around.  Each number is the shortest decimal that is read as the same double (at most 17 digits).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from urllib.parse import quote

import numpy as np
import pyomo.environ as pyo

from formulations.engine import clock
from formulations.engine.linear import LinearProgram, ModelError

__all__ = ["mps_of", "named"]

KEPT = "!\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~"
"""Characters of names that MPS holds as they are, beside letters and digits; ``%`` begins those that it does not."""

KEYWORDS = ("NAME", "OBJSENSE", "ROWS", "COLUMNS", "RHS", "RANGES", "BOUNDS", "ENDATA", "MARKER", "SOS", "MAX", "MIN")
"""What a line may begin with that is no name, in any case."""


def mps_of(
    model: pyo.ConcreteModel, program: LinearProgram, *, name: str, comments: Sequence[str] = ()
) -> Iterator[str]:
    """Yield the lines of a program in the free MPS format.

    Parameters
    ----------
    model : ConcreteModel
        From which the program is, for the objective's name.
    program : LinearProgram
        Rows without any limit are left out, as they state nothing.
    name : str
        Of the program.
    comments : sequence of str
        Lines at its head.

    Raises
    ------
    ModelError
        When no double makes one of a row's two limits of the other.
    """
    (objective,) = model.component_data_objects(pyo.Objective, active=True, descend_into=pyo.Block)
    lower, upper = program.row_lower.tolist(), program.row_upper.tolist()
    kept = [math.isfinite(low) or math.isfinite(high) for low, high in zip(lower, upper, strict=True)]
    of_rows = [objective.name, *program.row_names()]
    of_columns = [program.column_name(j) for j in range(program.num_cols)]
    goal, *rows = named(of_rows)
    columns = named(of_columns)
    yield from (f"* {line}" for line in comments)
    if [goal, *rows, *columns] != of_rows + of_columns:
        yield "* names: %XX is the byte XX of a name in UTF-8, as in addresses of pages"
    if not all(kept):
        yield f"* {len(kept) - sum(kept)} rows without limits are left out"
    yield f"NAME {named([name])[0]}"
    yield from ("OBJSENSE", f" {program.sense.upper()}", "ROWS", f" N {goal}")
    sides = [_side(row, *limits) for row, *limits in zip(rows, lower, upper, strict=True)]
    yield from (f" {side} {row}" for row, (side, _, _), one in zip(rows, sides, kept, strict=True) if one)
    yield "COLUMNS"
    yield from _columns(program, goal, rows, columns, kept)
    yield "RHS"
    if program.offset:
        # The objective is what its row adds up to, less its right side.
        yield f" RHS {goal} {_text(-program.offset)}"
    limited = [one for one, is_kept in zip(zip(rows, sides, strict=True), kept, strict=True) if is_kept]
    yield from (f" RHS {row} {_text(limit)}" for row, (_, limit, _) in limited if limit)
    ranges = [f" RANGES {row} {_text(length)}" for row, (_, _, length) in limited if length]
    if ranges:
        yield "RANGES"
        yield from ranges
    yield "BOUNDS"
    yield from _bounds(program, columns)
    yield "ENDATA"


def named(names: Sequence[str]) -> list[str]:
    """Return names that MPS can hold, each once: letters and digits of ASCII, and :data:`KEPT`, stay as they are.

    Others are written as bytes of UTF-8, ``%`` and two digits each; ``urllib.parse.unquote`` reads them.
    """
    found = [_escaped(name) for name in names]
    return found if len(set(found)) == len(found) else [f"{name}#{place}" for place, name in enumerate(found)]


def _escaped(name: str) -> str:
    kept = quote(name, safe=KEPT)
    if kept[:1] in ("*", "$", "'") or kept.upper() in KEYWORDS:
        # The beginning of a comment or of a marker, or a word of the format.
        return f"%{ord(kept[0]):02X}{kept[1:]}"
    return kept


def _side(row: str, low: float, high: float) -> tuple[str, float, float]:
    """Return the kind of a row, its right side, and its range, 0 for none: added to, or taken from, the right side."""
    if low == high:
        return "E", low, 0.0
    if math.isinf(low) or math.isinf(high):
        return ("L", high, 0.0) if math.isinf(low) else ("G", low, 0.0)
    near = high - low
    if near > 0:
        for length in (near, math.nextafter(near, math.inf), math.nextafter(near, 0.0)):
            if low + length == high:
                return "G", low, length
            if high - length == low:
                return "L", high, length
    raise ModelError(f"constraint {row!r}: MPS cannot hold its two limits, {low!r} and {high!r}")


def _columns(
    program: LinearProgram, goal: str, rows: Sequence[str], columns: Sequence[str], kept: Sequence[bool]
) -> Iterator[str]:
    order = np.argsort(program.index, kind="stable")
    row_of = np.repeat(np.arange(program.num_rows), np.diff(program.indptr))[order].tolist()
    values = program.value[order].tolist()
    ends = np.cumsum(np.bincount(program.index, minlength=program.num_cols)).tolist()
    integer, cost = program.integer.tolist(), program.cost.tolist()
    begin, whole = 0, False
    for j, end in enumerate(clock.ticking(ends)):
        if integer[j] != whole:
            whole = integer[j]
            yield f" MARKER 'MARKER' '{'INTORG' if whole else 'INTEND'}'"
        entries = [(rows[row_of[e]], values[e]) for e in range(begin, end) if kept[row_of[e]]]
        # A column without entries is one all the same.
        for row, value in [(goal, cost[j])] * bool(cost[j] or not entries) + entries:
            yield f" {columns[j]} {row} {_text(value)}"
        begin = end
    if whole:
        yield " MARKER 'MARKER' 'INTEND'"


def _bounds(program: LinearProgram, columns: Sequence[str]) -> Iterator[str]:
    limits = zip(program.col_lower.tolist(), program.col_upper.tolist(), strict=True)
    for column, whole, (low, high) in zip(columns, program.integer.tolist(), limits, strict=True):
        if low == high:
            yield f" FX BOUND {column} {_text(low)}"
        elif math.isinf(low) and math.isinf(high):
            yield f" FR BOUND {column}"
        elif whole and (low, high) == (0, 1):
            yield f" BV BOUND {column}"
        else:
            # Readers differ in what they take for granted of whole columns, and below an upper bound of 0 or less.
            if math.isinf(low):
                yield f" MI BOUND {column}"
            elif low or whole or high <= 0:
                yield f" LO BOUND {column} {_text(low)}"
            if math.isfinite(high):
                yield f" UP BOUND {column} {_text(high)}"
            elif whole:
                yield f" PL BOUND {column}"


def _text(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)
