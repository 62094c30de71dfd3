"""A plan in a file, for harnesses that run programs themselves and ask about what these have written."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from formulations import solve
from instances.base import Instance, PlanError
from instances.files import load
from validation.errors import StudyError
from validation.kinds.judge.judging import score

__all__ = ["evaluate", "verify"]

SHOWN = 5
"""Broken rules that are named at most."""


def verify(input_file: str, solution_file: str) -> tuple[bool, str]:
    """Return whether a file holds a feasible plan for the instance in another, and else why not."""
    try:
        instance, plan = _read(input_file, solution_file)
        broken = instance.violations(plan)
    except (PlanError, StudyError) as error:
        return False, str(error)
    more = f", and {len(broken) - SHOWN} more" if len(broken) > SHOWN else ""
    return not broken, ", ".join(map(str, broken[:SHOWN])) + more


def evaluate(input_file: str, solution_file: str) -> float:
    """Return one over the score of a feasible plan: 1 where it is the best possible, infinite for a score of 0.

    Raises
    ------
    StudyError
        When the optimum is not proven.
    """
    instance, plan = _read(input_file, solution_file)
    proven = solve(instance)
    if proven.status != "optimal" or proven.objective is None:
        raise StudyError(f"{instance.problem}, instance {instance.digest}: the optimum is not proven ({proven.status})")
    found = score(instance.sense, instance.objective(plan), proven.objective)
    return 1 / found if found else math.inf


def _read(input_file: str, solution_file: str) -> tuple[Instance[Any], Any]:
    instance: Instance[Any] = load(Path(input_file))
    try:
        data = json.loads(Path(solution_file).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StudyError(f"{solution_file}: no JSON ({error})") from None
    return instance, instance.plan_type.from_dict(data)
