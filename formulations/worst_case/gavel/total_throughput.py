"""Worst case of the greedy allocation on :class:`instances.gavel.total_throughput.TotalThroughput`.

Jobs hold one worker each and are in no pairs, so that all shares of the greedy plan are 0 or 1, and so are those of an
optimum, which is a matching of jobs and workers.
"""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo

from formulations.worst_case.gavel.greedy import greedy_model, worths
from formulations.worst_case.proving import InstanceClass, WorstCaseModel
from instances.arguments import Count, Positive, checked
from instances.base import InstanceError
from instances.gavel.total_throughput import TotalThroughput

__all__ = ["WORST_CASES", "fastest_first", "read"]


@checked
def fastest_first(
    *, num_jobs: Count, num_workers: Count = 1, num_types: Count = 2, spread: Positive | None = None
) -> InstanceClass:
    """Jobs of one worker, and any throughputs, or none that is less than the greatest by ``spread``."""
    if spread is not None and spread < 1:
        raise InstanceError(f"spread: got {spread:g}, must be at least 1")
    each = "1 worker" if num_workers == 1 else f"{num_workers} workers"
    words = f"{num_jobs} jobs of one worker, no pairs, on {num_types} types of {each}, throughputs real"
    words += "" if spread is None else f" and within a factor of {spread:g}"
    return InstanceClass(words, [_model(num_jobs, num_workers, num_types, spread)])


def _model(num_jobs: int, num_workers: int, num_types: int, spread: float | None) -> pyo.ConcreteModel:
    model = greedy_model(
        "jobs in one cluster", num_jobs=num_jobs, num_workers=num_workers, num_types=num_types, widest=1
    )
    if spread is not None:
        model.within_spread = pyo.Constraint(
            model.ENTRIES, rule=lambda m, *entry: spread * m.worths[entry] >= m.worths[0, 0]
        )
    return model


def read(model: pyo.ConcreteModel) -> TotalThroughput:
    """Return the cluster in the values of ``worths``, as throughputs."""
    return TotalThroughput(throughputs=worths(model), num_workers=np.full(len(model.TYPES), pyo.value(model.workers)))


WORST_CASES = {"fastest_first": WorstCaseModel(fastest_first, read, ties="either way")}
