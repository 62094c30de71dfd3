"""Worst case of the best breakpoint on :class:`instances.aryl.two_job.ArylTwoJob`.

With U the GPUs in use, x those of job 0, and W the workloads, job 0 completes first where x / U is at least
W_0 / (W_0 + W_1), and job 1 where it is at most that.  So of workloads for which

    p / U <= W_0 / (W_0 + W_1) <= (p + 1) / U,    p = 0, ..., U - 1,

it is known who completes first under every split, and the sum of the completion times is linear in the workloads:

    W_f / x_f + W_f / x_f + (W_s - x_s W_f / x_f) / M_s    where f completes first, and s grows to M_s.

A part has p, the GPUs and their limits, and a split that the rule does not look at, the witness; the others are the
rule's own, and nothing is to be proven of them.  Minima matter by the splits that they leave, so that those stand for
them which leave each of these splits and no other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import pyomo.environ as pyo

from formulations.worst_case.pieces import whole_multiples
from formulations.worst_case.proving import InstanceClass, WorstCaseModel
from instances.arguments import checked
from instances.aryl.two_job import ArylTwoJob
from instances.schema import Scalar

__all__ = ["WORST_CASES", "best_breakpoint", "read"]

Gpus = Annotated[int, Scalar(int, minimum=5, maximum=12)]
"""On fewer than 5 the rule looks at every split."""


@checked
def best_breakpoint(*, num_gpus: Gpus) -> InstanceClass:
    """Two jobs of any work, minima and maxima, with a split that the rule does not look at."""
    words = (
        f"two jobs of any work on {num_gpus} GPUs, any minima and maxima, with splits that the rule does not look at"
    )
    return InstanceClass(words, _parts(num_gpus), scalable=True)


def _parts(num_gpus: int) -> Iterator[pyo.ConcreteModel]:
    limits = range(1, num_gpus + 1)
    for most in ((first, second) for first in limits for second in limits):
        used = min(num_gpus, sum(most))
        lowest, highest = max(1, used - most[1]), min(most[0], used - 1)
        for low in range(lowest, highest + 1):
            for high, together in ((high, p) for high in range(low, highest + 1) for p in range(used)):
                looked_at = _looked_at(low, high, together)
                for witness in sorted({*range(low, high + 1)} - looked_at):
                    yield _model(num_gpus, most, (low, used - high), together, looked_at, witness)


def _looked_at(low: int, high: int, together: int) -> set[int]:
    """Return the splits that the rule looks at: the ends, and two on either side of where both would complete."""
    return {low, high, *range(max(low, together - 1), min(high, together + 2) + 1)}


def _model(
    num_gpus: int, most: tuple[int, int], least: tuple[int, int], together: int, looked_at: set[int], witness: int
) -> pyo.ConcreteModel:
    model = pyo.ConcreteModel(name=f"worst case of splits at {together}, maxima {most}")
    model.gpus = num_gpus, least, most
    used = min(num_gpus, sum(most))
    model.workloads = pyo.Var([0, 1], domain=pyo.NonNegativeReals)
    first, second = model.workloads[0], model.workloads[1]
    model.not_before = pyo.Constraint(expr=used * first >= together * (first + second))
    model.not_behind = pyo.Constraint(expr=used * first <= (together + 1) * (first + second))

    def total(split: int) -> Any:
        """Return the sum of the completion times where job 0 starts on so many GPUs."""
        gpus = split, used - split
        f = 0 if split > together else 1
        ends = model.workloads[f] / gpus[f]
        return 2 * ends + (model.workloads[1 - f] - gpus[1 - f] * ends) / most[1 - f]

    model.heuristic_value = pyo.Var()
    model.is_least = pyo.Constraint(sorted(looked_at), rule=lambda m, split: 2 * m.heuristic_value <= total(split))
    model.witness_value = pyo.Expression(expr=total(witness) / 2)
    model.unit = pyo.Constraint(expr=model.witness_value == 1)
    return model


def read(model: pyo.ConcreteModel) -> ArylTwoJob:
    """Return the jobs in the values of ``workloads``, in a unit of time that makes them whole."""
    num_gpus, least, most = model.gpus
    return ArylTwoJob(
        num_gpus=num_gpus,
        workloads=np.array(whole_multiples([model.workloads[0].value, model.workloads[1].value]), float),
        min_gpus=np.array(least),
        max_gpus=np.array(most),
    )


WORST_CASES = {"best_breakpoint": WorstCaseModel(best_breakpoint, read, size="num_gpus")}
