"""Worst cases of heuristics of :class:`instances.prism.placement.PrismPlacement` that put one model after the other.

Sizes are whole numbers, and so is the memory of the GPUs, which are alike.  Each choice of the sizes, by falling
weight, and of the GPUs that the heuristic takes is a part.  In it each GPU's memory that is left is a number at every
step, so that pressures are linear in the weights w.  With W[h] and F[h] what is on GPU h and what is left of it when
model j comes, and g its GPU,

    F[h] * W[g]                      <=  F[g] * W[h]                         of the GPUs h that have room, by what was
    (F[h] - s[j]) * (W[g] + w[j])    <=  (F[g] - s[j]) * (W[h] + w[j])       there before, or by what is there then.

The GPU of greatest pressure may be taken for that of the last model: without those after it, the heuristic's plan is
worth as much, and the optimum no more.  So there are parts for each number of models.  Weights are measured so that
the witness is worth 1: on each of its GPUs weights and sizes come to the memory at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Annotated, Any

import numpy as np
import pyomo.environ as pyo

from formulations.engine.linear import ModelError
from formulations.worst_case.pieces import snapped, switched
from formulations.worst_case.proving import InstanceClass, WorstCaseModel
from instances.arguments import Count, checked
from instances.prism.placement import PrismPlacement
from instances.schema import Scalar

__all__ = ["WORST_CASES", "greatest_weight_first", "least_pressure", "read"]

AHEAD = 1e-8
"""By which a witness raises weights, of the last model once, and of each before once more, as a part of them."""
Size = Annotated[int, Scalar(int, minimum=0, maximum=1000)]


@checked
def least_pressure(
    *, num_jobs: Count, num_gpus: Count = 2, memory: Count = 4, smallest: Size = 0, largest: Count | None = None
) -> InstanceClass:
    """Models that go to the GPU whose pressure is least before they come.

    Parameters
    ----------
    num_jobs : int
        Models at most.
    num_gpus : int
    memory : int
        Of each GPU, GB.
    smallest, largest : int
        Sizes are whole, from the first to the second, GB; by default up to what leaves a GB.
    """
    return _models(num_jobs, num_gpus, memory, smallest, largest, after=False)


@checked
def greatest_weight_first(
    *, num_jobs: Count, num_gpus: Count = 2, memory: Count = 4, smallest: Size = 0, largest: Count | None = None
) -> InstanceClass:
    """Models that go to the GPU whose pressure is least with them; parameters as of :func:`least_pressure`."""
    return _models(num_jobs, num_gpus, memory, smallest, largest, after=True)


def _models(
    num_jobs: int, num_gpus: int, memory: int, smallest: int, largest: int | None, *, after: bool
) -> InstanceClass:
    largest = memory - 1 if largest is None else largest
    if not smallest <= largest < memory:
        raise ModelError(f"largest: got {largest}, must be from {smallest} to {memory - 1}")
    words = (
        f"at most {num_jobs} models of real weights and whole sizes of {smallest} to {largest} GB on {num_gpus} GPUs "
        f"of {memory} GB, for all of which the heuristic finds room"
    )
    parts = (
        _model(sizes, gpus, [memory] * num_gpus, after=after)
        for count in range(1, num_jobs + 1)
        for sizes in product(range(smallest, largest + 1), repeat=count)
        for gpus in product(range(num_gpus), repeat=count)
        if _possible(sizes, gpus, [memory] * num_gpus)
    )
    return InstanceClass(words, parts)


def _possible(sizes: Sequence[int], gpus: Sequence[int], left: list[int]) -> bool:
    """Return whether each model finds room, and the first of the GPUs that hold none, where it comes to one of them."""
    left = left.copy()
    for job, (size, gpu) in enumerate(zip(sizes, gpus, strict=True)):
        if size >= left[gpu] or gpu > len(set(gpus[:job])):
            return False
        left[gpu] -= size
    return True


def _model(sizes: Sequence[int], gpus: Sequence[int], left: list[int], *, after: bool) -> pyo.ConcreteModel:
    memory, left = left[0], left.copy()
    model = pyo.ConcreteModel(name=f"worst case of sizes {sizes} on GPUs {gpus}")
    model.sizes, model.memory = sizes, [memory] * len(left)
    model.JOBS = pyo.RangeSet(0, len(sizes) - 1)
    model.GPUS = pyo.RangeSet(0, len(left) - 1)
    model.PLACES = model.JOBS * model.GPUS
    # Of the witness no GPU is pressed by more than 1.
    model.weights = pyo.Var(model.JOBS, bounds=lambda m, j: (0, memory - sizes[j]))
    model.falling = pyo.Constraint(range(len(sizes) - 1), rule=lambda m, j: m.weights[j] >= m.weights[j + 1])

    # The witness: GPUs are alike, so that job 0 is on the first.
    model.witness_value = pyo.Expression(expr=1.0)
    model.witness = pyo.Var(model.PLACES, domain=pyo.Binary, bounds=lambda m, j, g: (0, int(g <= j)))
    model.witness_once = pyo.Constraint(model.JOBS, rule=lambda m, j: pyo.quicksum(m.witness[j, :]) == 1)
    theirs = switched(
        model, "witness_weights", model.PLACES, lambda j, g: (model.witness[j, g], model.weights[j]), most=memory
    )

    def taken(g: int) -> Any:
        return pyo.quicksum(sizes[j] * model.witness[j, g] for j in model.JOBS)

    model.witness_room = pyo.Constraint(model.GPUS, rule=lambda m, g: taken(g) <= memory - 1)
    model.witness_pressure = pyo.Constraint(
        model.GPUS, rule=lambda m, g: pyo.quicksum(theirs[j, g] for j in m.JOBS) + taken(g) <= memory
    )

    model.trace = pyo.ConstraintList()
    held: list[list[int]] = [[] for _ in left]

    def weight(jobs: list[int]) -> Any:
        return pyo.quicksum(model.weights[job] for job in jobs)

    for job, (size, gpu) in enumerate(zip(sizes, gpus, strict=True)):
        more, less = ([job], size) if after else ([], 0)
        for other, free in enumerate(left):
            # A GPU without a weight is never pressed by more than another one.
            if other != gpu and free > size and held[gpu] + more:
                ours, others = weight(held[gpu] + more), weight(held[other] + more)
                model.trace.add((free - less) * ours <= (left[gpu] - less) * others)
        held[gpu].append(job)
        left[gpu] -= size
    last = gpus[-1]
    model.heuristic_value = pyo.Var(bounds=(0, None))
    model.is_heuristic = pyo.Constraint(expr=left[last] * model.heuristic_value == weight(held[last]))
    return model


def read(model: pyo.ConcreteModel) -> PrismPlacement:
    """Return the models in the values of ``weights``: their rates, with objectives of a second.

    Where pressures tie, the heuristic would take the GPU that came first.
    """
    weights = np.array([max(0.0, snapped(model.weights[job].value)) for job in model.JOBS])
    return PrismPlacement(
        memory=np.array(model.memory, float),
        sizes=np.array(model.sizes, float),
        rates=weights * (1 + AHEAD * np.arange(len(weights), 0, -1)),
        slos=np.ones(len(model.sizes)),
    )


WORST_CASES = {
    "least_pressure": WorstCaseModel(least_pressure, read, ties="either way"),
    "greatest_weight_first": WorstCaseModel(greatest_weight_first, read, ties="either way"),
}
