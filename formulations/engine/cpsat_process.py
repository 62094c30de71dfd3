"""The program that runs CP-SAT: one question on standard input, one answer on standard output, both a line of JSON.

It is run by its path, in an interpreter that imports nothing else of this library, since OR-Tools and highspy cannot be
in one process.  :mod:`formulations.engine.cpsat` asks it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from typing import Any

__all__ = ["main", "solved"]

LIMIT = 86_400.0 * 365
"""Seconds of a search without a limit."""


def main() -> None:
    """Answer the question on standard input; end when whoever asked is gone."""
    question = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_the_pipe, daemon=True).start()
    print(json.dumps(solved(question)), flush=True)
    # OR-Tools takes its time to clear away what nobody needs.
    os._exit(0)


def _end_with_the_pipe() -> None:
    sys.stdin.read()
    os._exit(1)


def _half_of_memory() -> int | None:
    """Bytes of half of the machine's memory, where that is known; the process takes no more."""
    try:
        import resource

        half = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (ImportError, OSError, ValueError):  # not on Windows
        return None
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (half, half))
    return half


def solved(question: dict[str, Any]) -> dict[str, Any]:
    """Solve a program that is data.

    Parameters
    ----------
    question : dict
        "columns", "rows" and "cost" of a :class:`~formulations.engine.cpsat.WholeProgram`, "hint" (a point or None),
        "end" (of its time, by ``time.monotonic``; or None), "gap", "threads" and "seed".

    Returns
    -------
    dict
        CP-SAT's "status", "x" (a point or None) and "bound" (of ``cost @ x``, or None); or the "error".
    """
    memory = _half_of_memory()
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    variables = [model.new_int_var(low, high, "") for low, high in question["columns"]]
    for columns, coefficients, low, high in question["rows"]:
        total = cp_model.LinearExpr.weighted_sum([variables[column] for column in columns], coefficients)
        model.add_linear_constraint(total, low, high)
    if any(question["cost"]):
        model.minimize(cp_model.LinearExpr.weighted_sum(variables, question["cost"]))
    for variable, value in zip(variables, question["hint"] or [], strict=False):
        model.add_hint(variable, value)
    wrong = model.validate()
    if wrong:
        return {"error": " ".join(wrong.split())}
    left = LIMIT if question["end"] is None else question["end"] - time.monotonic()
    if left <= 0:
        return {"status": "UNKNOWN", "x": None, "bound": None}
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = left
    solver.parameters.relative_gap_limit = question["gap"]
    solver.parameters.num_workers = question["threads"]
    solver.parameters.random_seed = question["seed"]
    if memory is not None:
        solver.parameters.max_memory_in_mb = memory // 2**20
    told: list[float] = []
    solver.best_bound_callback = told.append
    status = solver.solve(model)
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    bound = None
    if not any(question["cost"]):
        bound = 0 if found else None
    elif status == cp_model.OPTIMAL or (told and status != cp_model.INFEASIBLE):
        # Of a search that was stopped before it had a bound, the response says 0.
        bound = solver.response_proto.inner_objective_lower_bound
    return {
        "status": solver.status_name(status),
        "x": [solver.value(variable) for variable in variables] if found else None,
        "bound": bound,
    }


if __name__ == "__main__":
    main()
