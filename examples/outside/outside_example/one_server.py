"""Which jobs run on one server, for the greatest value: a knapsack."""

# --- what is asked --------------------------------------------------------------------------------

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from instances import Array, BoolArray, FloatArray, Instance, IntArray, Plan, Scalar, Violation, exceeding


@dataclass(frozen=True, eq=False)
class OneServerPlan(Plan):
    """Jobs that run: ``chosen`` (n,) bool."""

    chosen: Annotated[BoolArray, Array(bool, "n")]


@dataclass(frozen=True, eq=False)
class OneServer(Instance[OneServerPlan]):
    """``gpus`` (n,) int and ``values`` (n,) float of the jobs; ``capacity`` in GPUs."""

    problem = "demo.one_server"
    sense = "max"
    plan_type = OneServerPlan

    gpus: Annotated[IntArray, Array(int, "n", minimum=1)]
    values: Annotated[FloatArray, Array(float, "n", minimum=0)]
    capacity: Annotated[int, Scalar(int, minimum=0)]

    @property
    def num_jobs(self) -> int:
        return self.dims["n"]

    def _value(self, plan: OneServerPlan) -> float:
        return float(self.values[plan.chosen].sum())

    def _broken_rules(self, plan: OneServerPlan) -> Iterator[Violation]:
        yield from exceeding("capacity", self.gpus[plan.chosen].sum(), self.capacity)


def generate(rng: np.random.Generator | int, *, num_jobs: int = 10) -> OneServer:
    """Jobs of 1 to 4 GPUs for a server that takes about half of them."""
    rng = np.random.default_rng(rng)
    gpus = rng.integers(1, 5, num_jobs)
    return OneServer(gpus=gpus, values=rng.uniform(1, 10, num_jobs), capacity=int(gpus.sum() // 2))


# --- what is best ---------------------------------------------------------------------------------

import numpy as np
import pyomo.environ as pyo

from formulations import Formulation


def build(instance: OneServer) -> pyo.ConcreteModel:
    """Set JOBS; variables ``chosen[j]``; constraint ``capacity``; objective ``total_value``."""
    model = pyo.ConcreteModel(name=instance.problem)
    model.JOBS = pyo.RangeSet(0, instance.num_jobs - 1)
    model.chosen = pyo.Var(model.JOBS, domain=pyo.Binary)
    used = pyo.quicksum(int(instance.gpus[j]) * model.chosen[j] for j in model.JOBS)
    model.capacity = pyo.Constraint(expr=used <= instance.capacity)
    total = pyo.quicksum(float(instance.values[j]) * model.chosen[j] for j in model.JOBS)
    model.total_value = pyo.Objective(expr=total, sense=pyo.maximize)
    return model


def read(model: pyo.ConcreteModel) -> OneServerPlan:
    """The plan in the values of ``chosen``."""
    return OneServerPlan(chosen=np.array([model.chosen[j].value > 0.5 for j in model.JOBS]))


FORMULATION = Formulation(build=build, read=read)


# --- what is fast ---------------------------------------------------------------------------------

import numpy as np


def densest_first(instance: OneServer) -> OneServerPlan:
    """Greatest value per GPU first; ties go to the lowest index. Guarantee: none. O(n log n)."""
    chosen = np.zeros(instance.num_jobs, bool)
    left = instance.capacity
    for job in np.argsort(-instance.values / instance.gpus, kind="stable"):
        if instance.gpus[job] <= left:
            chosen[job] = True
            left -= instance.gpus[job]
    return OneServerPlan(chosen=chosen)


# --- the entry ------------------------------------------------------------------------------------

from validation import Entry, named, register

register(
    Entry(
        title="Which jobs run on one server",
        source="an example",
        instance=OneServer,
        generate=generate,
        size="num_jobs",
        sizes=(10, 20),
        heuristics=named(densest_first),
        formulation=FORMULATION,
    )
)
