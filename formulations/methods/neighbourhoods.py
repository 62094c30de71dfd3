"""Configurations and places on many servers: the plan of a search, improved on a few servers at a time.

On many servers the relaxation's bound is close to the optimum, and what a search lacks is a plan.  The jobs of any
few servers that share none with the others are an instance of their own.  So where the first search does not end
soon, its plan is improved by solving one few servers after the other, and the search begins once more from it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from formulations.engine import clock
from formulations.engine.highs import Result
from formulations.engine.options import Options
from formulations.engine.solution import Solution, judged
from formulations.engine.solving import solve_one_model
from formulations.methods import Method
from instances.base import agree
from instances.schema import IntArray
from instances.synergy.tuning import Tuning, TuningPlan

__all__ = ["FEW", "NEIGHBOURHOODS"]

FEW = 4
"""Servers that are solved anew together, everything else as it is."""
NEAR = 1e-3
"""Gap at which the search on a few servers stops."""
FIRST_SECONDS = 20.0
"""For the first search, or a quarter of the limit if that is less; one on a few servers gets a fifth of it."""


def solve(instance: Tuning, options: Options) -> Solution:
    """Solve the one model; where that takes long on many servers, improve its plan by the models of a few servers."""
    began = time.perf_counter()
    seconds = min(FIRST_SECONDS, clock.left() / 4)
    with clock.within(seconds):
        first = solve_one_model(instance, options)
    if first.status in ("optimal", "infeasible") or first.gap <= options.mip_gap:
        return first
    if not isinstance(first.plan, TuningPlan) or clock.is_up():
        return solve_one_model(instance, options)
    plan = _improved(instance, first.plan, first.bound, replace(options, verify=False, mip_gap=NEAR), seconds / 5)
    last = solve_one_model(instance, replace(options, start=plan))
    best = max((one.plan for one in (first, last) if isinstance(one.plan, TuningPlan)), key=instance.objective)
    best = max(best, plan, key=instance.objective)
    bound = min(first.bound, last.bound)
    result = Result(
        "optimal" if agree(instance.objective(best), bound) else "feasible",
        None,
        bound,
        None,
        first.solve_seconds + last.solve_seconds,
        last.message,
        last.proof if last.bound == bound else first.proof,
    )
    return judged(
        instance,
        best,
        result,
        began=began,
        solver=last.solver,
        solver_version=last.solver_version,
        method=NEIGHBOURHOODS.name,
    )


def _improved(instance: Tuning, plan: TuningPlan, bound: float, options: Options, seconds: float) -> TuningPlan:
    """Return the plan with few servers after few solved anew, until no round gains or half of the time is over."""
    rng = np.random.default_rng(options.seed)
    choices, gpus = plan.choices.copy(), plan.gpus.copy()
    ends = time.perf_counter() + clock.left() / 2
    before, value = -np.inf, instance.objective(plan)
    while value > before and not agree(value, bound):
        before = value
        for servers in _groups(gpus, rng):
            if time.perf_counter() > ends:
                break
            jobs = np.flatnonzero(gpus[:, servers].any(axis=1))
            own = np.ix_(jobs, servers)
            part = replace(instance.restricted_to(jobs), num_servers=len(servers))
            start = TuningPlan(choices=choices[jobs], gpus=gpus[own])
            with clock.within(seconds):
                found = solve_one_model(part, replace(options, start=start)).plan
            if isinstance(found, TuningPlan) and part.objective(found) > part.objective(start):
                choices[jobs], gpus[own] = found.choices, found.gpus
        value = instance.objective(TuningPlan(choices=choices, gpus=gpus))
    return TuningPlan(choices=choices, gpus=gpus)


def _groups(gpus: IntArray, rng: np.random.Generator) -> Iterator[IntArray]:
    """Up to :data:`FEW` servers at a time, at random; those that share a job come together."""
    together = np.arange(gpus.shape[1])
    for row in gpus[(gpus > 0).sum(axis=1) > 1]:
        shared = np.unique(together[row > 0])
        together[np.isin(together, shared)] = shared[0]
    group: list[int] = []
    for first in rng.permutation(np.unique(together)).tolist():
        joined = np.flatnonzero(together == first).tolist()
        if len(joined) > FEW:
            continue
        if len(group) + len(joined) > FEW:
            yield np.sort(np.array(group, np.int64))
            group = []
        group += joined
    if len(group) > 1:
        yield np.sort(np.array(group, np.int64))


NEIGHBOURHOODS = Method(
    name="one model, and a few servers at a time",
    short="servers",
    proves="the searches of the one model",
    where="every instance; of many servers it comes next where a table cannot hold their contents",
    solve=solve,
)
