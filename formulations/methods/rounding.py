"""Solving the aggregated models by rounding: a bound, a plan, and a search only where they differ.

The relaxation of an aggregated model is a small linear program, and few of its GPU-slots are
fractional.  What keeps a mixed-integer solver busy is that each job loses a part of a GPU-slot to
rounding, in ever new places.  So:

1. *Bound.*  The relaxation, with one more row for each job: it takes as many whole GPU-slots as it
   would with the cluster to itself (:func:`~formulations.elasticflow.sharing.shares_alone`).  The
   next whole number is the bound.
2. *Plan.*  The mixed-integer program near the optimum of the relaxation without those rows: where
   that is fractional, or nearly indifferent, variables may move a little; the others are fixed.
3. *Search.*  If the plan is not at the bound, the whole mixed-integer program, started from it.

The rows of step 1 would serve the mixed-integer program too, but they make its relaxation so
indifferent that the solver finds plans far more slowly.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pyomo.environ as pyo

from formulations.elasticflow.sharing import shares_alone
from formulations.engine import highs
from formulations.engine.highs import Proof, Result
from formulations.engine.linear import POINT_TOLERANCE, LinearProgram, translate
from formulations.engine.options import Options
from formulations.engine.polishing import accepted
from formulations.engine.protocol import formulation
from formulations.engine.solution import Solution, judged
from formulations.engine.solving import build
from formulations.methods import Choice, Method, one_model
from instances.base import Plan
from instances.elasticflow.sharing import DeadlineJobs
from instances.schema import FloatArray

__all__ = ["CHOICE", "NEIGHBOURHOODS", "ROUNDING", "with_shares_alone"]

NEIGHBOURHOODS = ((1, 1e-6), (20, 0.02))
"""Distance that variables may move from the relaxation, and their cost per unit up to which they may, in GPU-slots."""

NEIGHBOURHOOD_SECONDS = 5.0
"""Limit for the search in one neighbourhood, s."""


def solve(instance: DeadlineJobs[Any], options: Options) -> Solution:
    """Solve an instance with concave curves whose objective is GPU time.

    It stops with the first plan that is within ``options.mip_gap`` of the bound.
    """
    began = time.perf_counter()
    offered = formulation(instance.problem)
    model = build(instance)
    program = translate(model)
    start = None
    if options.start is not None and offered.write is not None:
        offered.write(model, options.start)
        start = np.array([variable.value for variable in program.variables], float)
        start = start if program.infeasibility(start) <= POINT_TOLERANCE else None
    solver = _Solver(options)
    relaxation = replace(program, integer=np.zeros_like(program.integer))
    result = solver.run(with_shares_alone(relaxation, model, instance))
    if result.status == "optimal":
        # The objective is whole, so its bound can be rounded up; a little less, for its own rounding.
        bound = float(math.ceil(result.bound - 1e-8 * max(1.0, abs(result.bound))))
        result = _best_plan(program, solver.run(relaxation), bound, solver, start)
    elif result.status != "infeasible":
        result = replace(result, status="unknown", x=None)

    def plan_at(x: FloatArray) -> Plan:
        for variable, value in zip(program.variables, x.tolist(), strict=True):
            variable.set_value(value, skip_validation=True)
        return offered.read(model)

    result = replace(result, certificate=None, seconds=solver.seconds)
    plan, result = accepted(instance, program, result, plan_at, options)
    return judged(
        instance,
        plan,
        result,
        began=began,
        solver="highs",
        solver_version=highs.version(),
        method=ROUNDING.name,
        program=program,
        start=options.start,
    )


class _Solver:
    """Runs, and what they took."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.seconds = 0.0

    def run(self, program: LinearProgram, *, limit: float | None = None, start: FloatArray | None = None) -> Result:
        # Of a neighbourhood only the plan counts, which the bound of the relaxation has to prove.
        verify = self.options.verify if limit is None else False
        options = replace(self.options, time_limit=limit or self.options.time_limit, verify=verify)
        result = options.session().run(program, start=start)
        self.seconds += result.seconds
        return result


def _best_plan(
    program: LinearProgram, relaxed: Result, bound: float, solver: _Solver, best: FloatArray | None
) -> Result:
    """Search the neighbourhoods and then everything, until a point is close enough to the bound.

    ``best`` is a point to start from, or None.
    """
    proof: Proof = "prices"
    for neighbourhood in (*_neighbourhoods(program, relaxed), None):
        if neighbourhood is None:
            result = solver.run(program, start=best)
            if result.bound > bound:
                bound, proof = result.bound, result.proof
        else:
            result = solver.run(neighbourhood, start=best, limit=NEIGHBOURHOOD_SECONDS)
        if result.x is not None and (best is None or program.objective(result.x) < program.objective(best)):
            best = result.x
        if best is not None:
            distance = program.objective(best) - bound
            if distance < 0.5:
                return replace(result, status="optimal", x=best, bound=bound, proof=proof)
            if distance <= solver.options.mip_gap * program.objective(best):
                break
    if best is not None:
        return replace(result, status="feasible", x=best, bound=bound, proof=proof)
    return replace(result, bound=bound, proof=proof)


def _neighbourhoods(program: LinearProgram, relaxed: Result) -> list[LinearProgram]:
    if relaxed.x is None or relaxed.certificate is None:
        return []
    prices = np.abs(program.cost - program.column_products(relaxed.certificate.row_duals))
    down, up = np.floor(relaxed.x + 1e-7), np.ceil(relaxed.x - 1e-7)
    found = []
    for reach, price in NEIGHBOURHOODS:
        free = (down < up) | (prices <= price)
        low = np.where(free, np.maximum(program.col_lower, down - reach), down)
        high = np.where(free, np.minimum(program.col_upper, up + reach), down)
        found.append(replace(program, col_lower=low, col_upper=high))
    return found


def with_shares_alone(program: LinearProgram, model: pyo.ConcreteModel, instance: DeadlineJobs[Any]) -> LinearProgram:
    """Return the program with rows that give each job its GPU-slots alone."""
    column = {id(variable): position for position, variable in enumerate(program.variables)}
    columns: list[list[int]] = [[] for _ in range(instance.num_jobs)]
    for (job, _, _), variable in model.gpu_slots.items():
        columns[job].append(column[id(variable)])
    lengths = np.array([len(some) for some in columns])
    added = np.concatenate([np.array(some, np.int32) for some in columns])
    above = np.full(instance.num_jobs, np.inf)
    whole = program.with_rows(lengths, added, np.ones(len(added)), shares_alone(instance).astype(float), above)
    return replace(whole, constraints=())


ROUNDING = Method(
    name="rounding of the relaxation",
    short="rounding",
    proves="prices of the relaxation, rounded up to whole GPU-slots; where no plan meets that, the search of the model",
    where="jobs whose curves are all concave",
    solve=solve,
    applies=lambda instance: instance.concave,
)
CHOICE = Choice((ROUNDING, one_model.METHOD))
