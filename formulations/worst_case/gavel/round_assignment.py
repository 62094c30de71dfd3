"""Worst case of Algorithm 1 on :class:`instances.gavel.round_assignment.RoundAssignment` without pairs."""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo

from formulations.worst_case.gavel.greedy import greedy_model, worths
from formulations.worst_case.proving import InstanceClass, WorstCaseModel
from instances.arguments import Count, checked
from instances.base import InstanceError
from instances.gavel.round_assignment import RoundAssignment

__all__ = ["WORST_CASES", "greedy_priority", "read"]


@checked
def greedy_priority(
    *, num_jobs: Count, num_workers: Count = 4, num_types: Count = 1, widest: Count | None = None
) -> InstanceClass:
    """Jobs of 1 to ``widest`` workers, all ``num_workers`` of a type by default, and any priorities."""
    if widest is not None and widest > num_workers:
        raise InstanceError(f"widest: got {widest}, must be at most num_workers, {num_workers}")
    widest = num_workers if widest is None else widest
    each = "1 worker" if num_workers == 1 else f"{num_workers} workers"
    types = "one type" if num_types == 1 else f"{num_types} types"
    words = f"{num_jobs} jobs of 1 to {widest} workers, no pairs, on {types} of {each}, priorities real"
    model = greedy_model("a round", num_jobs=num_jobs, num_workers=num_workers, num_types=num_types, widest=widest)
    return InstanceClass(words, [model])


def read(model: pyo.ConcreteModel) -> RoundAssignment:
    """Return the round in the values of ``scale_factors`` and ``worths``."""
    return RoundAssignment(
        scale_factors=np.array([round(model.scale_factors[job].value) for job in model.JOBS]),
        num_workers=np.full(len(model.TYPES), pyo.value(model.workers)),
        priorities=worths(model),
    )


WORST_CASES = {"greedy_priority": WorstCaseModel(greedy_priority, read, ties="either way")}
