"""Small models of every kind, shared by the tests of what solves them."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyomo.environ as pyo

from formulations import LinearProgram, weighted_sum
from instances.aryl.reclaim import Reclaim

INF = math.inf
NAN = math.nan
SOLVERS = ["highs", "scip", "appsi_highs"]
"""The library's own path, and one solver for each of Pyomo's two kinds of interface."""

Model = Any


def six_servers() -> Reclaim:
    """Job 0 on servers 4 and 5, jobs 1 to 4 alone on the others: returning 4 and 5 preempts one job."""
    hosts = np.zeros((5, 6), bool)
    hosts[0, 4:] = True
    hosts[range(1, 5), range(4)] = True
    return Reclaim(hosts=hosts, gpus=np.where(hosts, 8, 0), demand=2)


def base() -> Model:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, 10))
    model.y = pyo.Var(bounds=(0, 10))
    model.goal = pyo.Objective(expr=model.x + model.y, sense=pyo.maximize)
    return model


def changed(change: Callable[[Model], Any]) -> Model:
    model = base()
    change(model)
    return model


def with_row(row: Callable[[Model], Any]) -> Model:
    model = base()
    model.c = pyo.Constraint(expr=row(model))
    return model


def unbounded() -> Model:
    model = with_row(lambda m: m.x + m.y >= 1)
    model.x.setub(None)
    return model


def unbounded_mixed() -> Model:
    model = unbounded()
    model.y.domain = pyo.Integers
    return model


def knapsack_data(n: int, m: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(1, 1000, (m, n)), rng.integers(1, 1000, n)


def best_subset(n: int, m: int, seed: int = 0) -> float:
    """Optimum of :func:`knapsack`, by trying all subsets."""
    weights, worth = (array.tolist() for array in knapsack_data(n, m, seed))
    best = 0
    for taken in itertools.product((0, 1), repeat=n):
        if all(sum(w for w, t in zip(row, taken, strict=True) if t) <= sum(row) // 2 for row in weights):
            best = max(best, sum(v for v, t in zip(worth, taken, strict=True) if t))
    return float(best)


def knapsack(n: int, m: int, seed: int = 0) -> Model:
    weights, worth = knapsack_data(n, m, seed)
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(n), domain=pyo.Binary)
    variables = list(model.x.values())
    model.room = pyo.Constraint(
        range(m), rule=lambda _, i: weighted_sum(weights[i], variables) <= int(weights[i].sum() // 2)
    )
    model.goal = pyo.Objective(expr=weighted_sum(worth, variables), sense=pyo.maximize)
    return model


def rows_of(program: LinearProgram) -> list[tuple[dict[str, float], float, float]]:
    return [
        (
            {
                program.column_name(int(program.index[k])): float(program.value[k])
                for k in range(program.indptr[row], program.indptr[row + 1])
            },
            float(program.row_lower[row]),
            float(program.row_upper[row]),
        )
        for row in range(program.num_rows)
    ]


def p(value: Any) -> Any:
    """A mutable parameter outside of the model, which keeps constants from being folded."""
    param = pyo.Param(initialize=value, mutable=True, within=pyo.Any)
    param.construct()
    return param
