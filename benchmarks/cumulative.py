"""Jobs of fixed demands on so many GPUs, as users of CP-SAT write them: one question and one answer, as lines of JSON.

Run by its path, since OR-Tools and highspy cannot be imported into one process.  The question has "demands", "times"
and "capacity"; the answer "starts" of least sum, and "took", the seconds of processor time after the imports.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

__all__ = ["main", "solved"]


def solved(question: dict[str, Any]) -> dict[str, Any]:
    """Solve by interval variables and one cumulative constraint."""
    from ortools.sat.python import cp_model

    began = time.process_time()
    demands, times = question["demands"], question["times"]
    horizon = sum(times)
    model = cp_model.CpModel()
    starts = [model.new_int_var(0, horizon - one, "") for one in times]
    intervals = [model.new_fixed_size_interval_var(start, one, "") for start, one in zip(starts, times, strict=True)]
    model.add_cumulative(intervals, demands, question["capacity"])
    model.minimize(cp_model.LinearExpr.sum(starts) + sum(times))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    if solver.solve(model) != cp_model.OPTIMAL:
        raise RuntimeError("without a limit there is an optimum")
    return {"starts": [solver.value(start) for start in starts], "took": time.process_time() - began}


def main() -> None:
    """Answer the question on standard input."""
    print(json.dumps(solved(json.loads(sys.stdin.readline()))))


if __name__ == "__main__":
    main()
