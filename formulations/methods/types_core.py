"""The core of configurations: prices of GPU types settle most choices, and the model of the others is solved.

At a price p[t] of a GPU of each type, none below 0, each job by itself makes the least of

    costs[j, c] + p[type of c] * config_gpus[c]    and    waiting_cost,

and no plan costs less than what they all make so, less sum_t p[t] * num_gpus[t].  The prices that make this bound
greatest are those of the linear relaxation, which leaves no more jobs between two choices than there are types.  A plan
in which a job has a certain choice is above the bound by at least what that loses against the job's least, and the core
(:mod:`formulations.methods.cores`) is an instance with fewer configurations for each job.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from functools import partial

import numpy as np

from formulations.engine.highs import Result, Session, Status, version
from formulations.engine.linear import LinearProgram, csr
from formulations.engine.options import Options
from formulations.engine.solution import Solution, judged
from formulations.engine.solving import solve_one_model
from formulations.methods import Choice, Method, cores, one_model
from instances.base import agree
from instances.schema import BoolArray, FloatArray
from instances.sia.goodput import Goodput, GoodputPlan

__all__ = ["CHOICE", "CORE", "type_prices"]

MANY = 1000
"""Choices from which on the core comes before the whole model."""
NEAREST = 3
"""Choices for each job that a first plan is searched among: those that lose least."""


def solve(instance: Goodput, options: Options) -> Solution:
    """Settle by prices what they settle, and solve the model of the choices that are left."""
    began = time.perf_counter()
    relaxed, loss, seconds = _relaxation(instance)
    assert isinstance(options.start, GoodputPlan)
    nearest = float(np.sort(loss, axis=None)[: NEAREST * instance.num_jobs].max(initial=0.0))
    found = cores.search(
        instance, options.start, relaxed, loss, nearest, options, partial(_among, instance), words=("types", "choices")
    )
    status: Status = "optimal" if agree(instance.objective(found.plan), found.bound) else "feasible"
    return judged(
        instance,
        found.plan,
        Result(status, None, found.bound, None, seconds + found.seconds, found.message, found.proof),
        began=began,
        solver="highs",
        solver_version=version(),
        method=CORE.name,
    )


def type_prices(instance: Goodput) -> tuple[FloatArray, float]:
    """Return the price of a GPU of each type in the linear relaxation, (t,) float, and the solver's seconds."""
    n, types = instance.num_jobs, instance.num_types
    costs = np.where(instance.fits, instance.costs, np.inf)
    # What costs no less than waiting takes GPUs for nothing.
    jobs, configs = np.nonzero(costs < instance.waiting_cost)
    rows = np.concatenate([jobs, n + instance.config_types[configs]])
    values = np.concatenate([np.ones(len(jobs)), instance.config_gpus[configs]]).astype(float)
    columns = np.tile(np.arange(len(jobs)), 2)
    indptr, index, value = csr(rows, columns, values, n + types)
    program = LinearProgram(
        "min", 0.0, costs[jobs, configs] - instance.waiting_cost,
        np.zeros(len(jobs)), np.full(len(jobs), np.inf), np.zeros(len(jobs), bool), indptr, index, value,
        np.full(n + types, -np.inf), np.concatenate([np.ones(n), instance.num_gpus]),
    )  # fmt: skip
    result = Session().run(program)
    prices = np.zeros(types)
    if result.certificate is not None:
        prices = np.maximum(-result.certificate.row_duals[n:], 0.0)
    return prices, result.seconds


def _relaxation(instance: Goodput) -> tuple[float, FloatArray, float]:
    """Return the bound at the relaxation's prices, what each job loses by each configuration, and the solver's seconds.

    (n, k) losses against the job's least; infinite where it cannot run.
    """
    prices, seconds = type_prices(instance)
    costs = np.where(instance.fits, instance.costs, np.inf)
    paid = costs + prices[instance.config_types] * instance.config_gpus
    least = paid.min(axis=1, initial=instance.waiting_cost)
    bound = math.fsum(least.tolist()) - math.fsum((prices * instance.num_gpus).tolist())
    return bound, np.maximum(paid - least[:, None], 0.0), seconds


def _among(instance: Goodput, core: BoolArray, plan: GoodputPlan, options: Options) -> tuple[GoodputPlan, Solution]:
    """Solve the instance that has some of the choices alone, where all jobs may wait, as :func:`cores.search` asks."""
    part = replace(instance, goodputs=np.where(core, instance.goodputs, 0.0))
    kept = np.where((plan.configs >= 0) & core[np.arange(len(core)), plan.configs], plan.configs, -1)
    found = solve_one_model(part, replace(options, start=GoodputPlan(configs=kept)))
    if isinstance(found.plan, GoodputPlan):
        plan = min(plan, found.plan, key=instance.objective)
    return plan, found


CORE = Method(
    name="the core of configurations",
    short="core",
    proves="the prices of GPU types for what they settle, and the search of the model of what is left",
    where="every instance; it comes first where there are many choices",
    solve=solve,
)


def _best_first(instance: Goodput) -> tuple[Method, Method]:
    """Return the one model first where there is little to settle."""
    many = np.count_nonzero(instance.goodputs) >= MANY
    return (CORE, one_model.METHOD) if many else (one_model.METHOD, CORE)


CHOICE = Choice((CORE, one_model.METHOD), best_first=_best_first)
