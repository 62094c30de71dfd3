"""OR-Tools' CP-SAT, for programs of whole numbers: the program goes out and an answer comes back, both as data.

OR-Tools and highspy cannot be imported into one process, since both bring HiGHS's symbols.  So CP-SAT runs in a
process of its own (:mod:`formulations.engine.cpsat_process`), which ends with the one that asked.

CP-SAT knows whole numbers of 64 bits and no tolerance.  A row is multiplied until its numbers are whole, exactly.
Sums of floats owe something to rounding, and a judge lets a limit of them be missed by that, so that a limit of a row
that is not of whole numbers is wider by as much: what CP-SAT proves holds for all that a judge accepts.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import json
import math
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from formulations.engine.highs import SolverError
from formulations.engine.linear import LinearProgram, ModelError, refuse_non_numbers
from formulations.engine.options import Options
from instances.base import TOLERANCE
from instances.schema import FloatArray

__all__ = ["NAME", "WholeProgram", "ask", "installed", "whole"]

NAME = "cp-sat"
"""How ``formulations.solve`` knows it."""
LARGEST = 2**62
"""What a row or an objective may add up to: half of what 64 bits hold."""
PATIENCE = (1.0, 0.2)
"""What the process may take beyond the limit before it is killed: seconds, or a part of the limit if that is more."""


def installed() -> bool:
    """Tell whether OR-Tools is there, without importing it."""
    try:
        return importlib.util.find_spec("ortools") is not None
    except ValueError:  # It is blocked.
        return False


@dataclass(frozen=True)
class WholeProgram:
    """A program of whole numbers to minimise, as CP-SAT takes it.

    Attributes
    ----------
    columns : list of (int, int)
        Least and greatest value of each.
    rows : list of (list of int, list of int, int, int)
        Columns, coefficients, and the least and greatest sum of each.
    cost : list of int
    scale, slack, offset : Fraction
        ``cost @ x / scale + offset`` is the program's own objective, or its negative where that is maximised, but for
        ``slack`` at most.
    """

    columns: list[tuple[int, int]]
    rows: list[tuple[list[int], list[int], int, int]]
    cost: list[int]
    scale: Fraction
    slack: Fraction
    offset: Fraction

    def bound(self, proven: int, sense: str) -> float:
        """Return the bound of the program's own objective that follows from one of ``cost @ x``."""
        least = proven / self.scale - self.slack + self.offset
        bound = float(least)
        if bound > least:
            bound = math.nextafter(bound, -math.inf)
        return bound if sense == "min" else -bound


def whole(program: LinearProgram) -> WholeProgram:
    """Write a program in whole numbers.

    Parameters
    ----------
    program : LinearProgram
        Without crossed limits.

    Raises
    ------
    ModelError
        When a variable is continuous or has no limits, or a row needs larger numbers than 64 bits hold; with its name.
    """
    refuse_non_numbers(program)
    columns = _columns(program)
    fixed = (program.col_lower == program.col_upper) & ~program.integer
    reach = [max(abs(low), abs(high)) for low, high in columns]
    rows = []
    for row in range(program.num_rows):
        span = slice(program.indptr[row], program.indptr[row + 1])
        index, value = program.index[span], program.value[span]
        given = float(program.row_lower[row]), float(program.row_upper[row])
        constant = fixed[index]
        lower, upper, coefficients = _row(value[~constant], *given, _product(program, index, value, constant))
        kept = index[~constant].tolist()
        most = sum(abs(one) * reach[column] for one, column in zip(coefficients, kept, strict=True))
        if most > LARGEST:
            raise ModelError(
                f"constraint {program.row_name(row)!r}: its numbers are too large for {NAME}, which has 64 bits, "
                "once they are whole"
            )
        lower = -most - 1 if lower == -math.inf else lower
        upper = most + 1 if upper == math.inf else upper
        rows.append((kept, coefficients, int(max(lower, -most - 1)), int(min(upper, most + 1))))
    return WholeProgram(columns, rows, *_objective(program, reach, fixed))


def _columns(program: LinearProgram) -> list[tuple[int, int]]:
    """Return the whole values between which each column is; a fixed one that need not be whole is 0 and no column."""
    found = []
    for column, (low, high) in enumerate(zip(program.col_lower.tolist(), program.col_upper.tolist(), strict=True)):
        if not program.integer[column]:
            if low != high:
                raise ModelError(
                    f"variable {program.column_name(column)!r} is continuous: {NAME} takes whole variables only"
                )
            found.append((0, 0))
            continue
        for side, bound in (("lower", low), ("upper", high)):
            if abs(bound) > LARGEST:
                has = f"no {side} bound" if math.isinf(bound) else f"the {side} bound {bound:g}"
                raise ModelError(
                    f"variable {program.column_name(column)!r} has {has}: {NAME} takes whole numbers of 64 bits"
                )
        found.append((math.ceil(low), math.floor(high)))
    return found


def _product(program: LinearProgram, index: Any, value: FloatArray, constant: Any) -> Fraction:
    """Return what the fixed columns of a row add up to."""
    fixed = program.col_lower[index[constant]].tolist()
    return sum((Fraction(c) * Fraction(x) for c, x in zip(value[constant].tolist(), fixed, strict=True)), Fraction())


def _row(
    value: FloatArray, lower: float, upper: float, constant: Fraction
) -> tuple[float | int, float | int, list[int]]:
    """Return the limits and the coefficients of a row in whole numbers."""
    coefficients, scale = _integers(value.tolist())
    size = max(map(abs, (*value.tolist(), *(one for one in (lower, upper) if math.isfinite(one)))), default=0.0)
    widened = not (
        scale == 1 and constant == 0 and all(one == math.inf or one % 1 == 0 for one in map(abs, (lower, upper)))
    )
    slack = Fraction(TOLERANCE) * Fraction(size) if widened else Fraction()
    divisor = math.gcd(*coefficients) or 1
    factor = Fraction(scale, divisor)
    least = lower if math.isinf(lower) else math.ceil((Fraction(lower) - constant - slack) * factor)
    most = upper if math.isinf(upper) else math.floor((Fraction(upper) - constant + slack) * factor)
    return least, most, [one // divisor for one in coefficients]


def _integers(numbers: Iterable[float]) -> tuple[list[int], int]:
    """Return numbers times the least number that makes all of them whole, and that number."""
    ratios = [number.as_integer_ratio() for number in numbers]
    scale = math.lcm(*(denominator for _, denominator in ratios))
    return [numerator * (scale // denominator) for numerator, denominator in ratios], scale


def _objective(
    program: LinearProgram, reach: Sequence[int], fixed: Any
) -> tuple[list[int], Fraction, Fraction, Fraction]:
    """Return the costs in whole numbers, exactly where 64 bits hold them, else rounded, and what that hides at most."""
    sign = 1 if program.sense == "min" else -1
    every = np.arange(program.num_cols)
    offset = sign * (Fraction(program.offset) + _product(program, every, program.cost, fixed))
    given = np.where(fixed, 0.0, sign * program.cost).tolist()
    cost, whole_scale = _integers(given)
    most = sum(abs(one) * far for one, far in zip(cost, reach, strict=True))
    if most <= LARGEST:
        return cost, Fraction(whole_scale), Fraction(), offset
    # Each is off by up to a half when it is rounded.
    room = LARGEST - sum(reach)
    scale = Fraction(whole_scale) * Fraction(max(room, 1), most)
    scale = Fraction(2) ** (math.floor(math.log2(scale)) - 1)
    exact = [Fraction(one) * scale for one in given]
    cost = [round(one) for one in exact]
    slack = sum((abs(one - rounded) * far for one, rounded, far in zip(exact, cost, reach, strict=True)), Fraction())
    return cost, scale, slack / scale, offset


def ask(program: LinearProgram, options: Options, left: float, start: FloatArray | None) -> tuple[dict[str, Any], str]:
    """Ask CP-SAT for the optimum, in a process of its own.

    Parameters
    ----------
    program : LinearProgram
        Without crossed limits.
    options : Options
    left : float
        Seconds; infinite for no limit.
    start : (columns,) float, optional
        A point to start the search from.

    Returns
    -------
    dict, str
        "status", "values" (of the columns, or None), "bound", "message" and "exact"; and the version of OR-Tools.

    Raises
    ------
    ModelError
        When CP-SAT does not take the program (:func:`whole`).
    SolverError
        When the process fails.
    """
    began = time.monotonic()
    given = whole(program)
    said = _answer(
        {
            "columns": given.columns,
            "rows": given.rows,
            "cost": given.cost,
            "hint": None if start is None else np.rint(start).astype(int).tolist(),
            "end": began + left if math.isfinite(left) else None,
            "gap": options.mip_gap,
            "threads": options.threads,
            "seed": options.seed,
        },
        None if math.isinf(left) else left + max(PATIENCE[0], PATIENCE[1] * left) - (time.monotonic() - began),
    )
    values = said["x"]
    if values is not None:
        fixed = (program.col_lower == program.col_upper) & ~program.integer
        values = np.where(fixed, program.col_lower, np.array(values, float))
    return {
        "status": {"OPTIMAL": "optimal", "INFEASIBLE": "infeasible"}.get(said["status"], "unknown"),
        "values": values,
        "bound": None if said["bound"] is None else given.bound(said["bound"], program.sense),
        "message": said["status"].lower(),
        "exact": options.mip_gap == 0,
    }, importlib.metadata.version("ortools")


def _answer(question: dict[str, Any], seconds: float | None) -> dict[str, Any]:
    """Put a question to a fresh process, which is killed after so many seconds, and when this one is interrupted."""
    program = Path(__file__).with_name("cpsat_process.py")
    killed = threading.Event()
    with tempfile.TemporaryFile("w+") as errors:
        # -P: the folder of the program has modules with names of others.
        command = [sys.executable, "-P", str(program)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None

            def stop() -> None:
                killed.set()
                process.kill()

            timer = threading.Timer(threading.TIMEOUT_MAX if seconds is None else max(0.0, seconds), stop)
            timer.daemon = True
            timer.start()
            try:
                # The pipe stays open: its end is how the process learns that nobody waits for it any more.
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.write(json.dumps(question) + "\n")
                    process.stdin.flush()
                said = process.stdout.read()
            finally:
                timer.cancel()
                process.kill()
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.close()
        if said:
            answer: dict[str, Any] = json.loads(said)
            if "error" in answer:
                raise SolverError(f"{NAME}: {answer['error']}")
            return answer
        if killed.is_set():
            return {"status": "stopped past its time limit", "x": None, "bound": None}
        errors.seek(0)
        last = (errors.read().strip().splitlines() or ["without a word"])[-1]
        raise SolverError(f"{NAME}: its process ended with code {process.returncode}: {last}")
