"""The first stage, packed: its optimum bounds every plan, and on many servers there is mostly a plan that is worth it.

The first stage (:mod:`formulations.synergy.allocation`) sees all servers as one.  Its bound is too good where one
configuration asks for what no server can give beside the GPUs that it must carry as well.  If f GPUs of the cluster are
free, a server that carries k of a job's GPUs carries G - k - f others at least, each of which takes no less than the
least that any usable configuration takes for a GPU.  With k = 1, the least that there is of a job that may be split,

    c / g  +  (G - 1 - f) * least CPU cores for a GPU  <=  C,

and the same for memory, or no plan has the configuration.  The first stage without such configurations is a bound on
all plans.  Its plan is packed: jobs whole, those in pieces that take more of a server than the average leaves, with
overload, which a walk of moves and swaps lowers (:mod:`formulations.methods.swapping`); and if that does not end it,
all jobs that may be split GPU by GPU.  A plan without overload is worth the bound.  Where there is none, jobs on
overloaded servers take less, the others what is left, and the contents of servers
(:mod:`formulations.methods.contents`) begin with that plan, or, where a table cannot hold them, the searches of the
model.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from formulations.engine import clock
from formulations.engine.highs import Result
from formulations.engine.options import Options
from formulations.engine.polishing import widened
from formulations.engine.solution import Solution, judged
from formulations.engine.solving import solve_one_model
from formulations.methods import Choice, Method, neighbourhoods, one_model
from formulations.methods.contents import CONTENTS, contents_of, solved
from formulations.methods.swapping import placed, walk
from instances.base import agree
from instances.schema import FloatArray, IntArray
from instances.synergy.allocation import SynergyAllocation, SynergyAllocationPlan
from instances.synergy.sensitivity import THROUGHPUT
from instances.synergy.tuning import Tuning, TuningPlan

__all__ = ["CHOICE", "PACKED", "first_stage"]

TINY = 1e-12
"""Part of a server by which sums may exceed it without being overload."""


def solve(instance: Tuning, options: Options) -> Solution:
    """Solve the first stage and pack its plan; where that takes less than the bound, search the model from it."""
    began = time.perf_counter()
    stage, kept = first_stage(instance)
    with clock.within(clock.left() / 4):
        first = solve_one_model(stage, replace(options, start=None))
    staged = [_translated(first.plan, kept)] if isinstance(first.plan, SynergyAllocationPlan) else []
    plan = options.start if isinstance(options.start, TuningPlan) and not instance.violations(options.start) else None
    free = instance.allow_split and not instance.split_penalty
    filled = None if free else contents_of(instance)
    if filled is None:
        plan = _best_packed(instance, [*staged, instance.proportional_choices], plan, first.bound, options.seed)
    else:
        plan = _best_packed(instance, [instance.proportional_choices], plan, first.bound, options.seed)
        # Whole jobs leave overload more often than not, which contents of servers do without.
        with clock.within(clock.left() / 8):
            plan = _best_packed(instance, staged, plan, first.bound, options.seed)
    if plan is not None and first.status != "infeasible":
        value = instance.objective(plan)
        met = agree(value, first.bound)
        if met or abs(first.bound - value) <= options.mip_gap * abs(value) or clock.left() <= 0:
            why = "a packing of the first stage's plan meets its bound" if met else first.message
            result = _result(met, first, first.solve_seconds, why)
            return _judged(instance, plan, result, first, began)
    options = replace(options, start=plan)
    if filled is None:
        filled = contents_of(instance)
    if filled is not None:
        last = solved(filled, options, first.bound if first.status != "infeasible" else math.inf)
    else:
        many = instance.num_servers >= 2 * neighbourhoods.FEW
        last = (neighbourhoods.NEIGHBOURHOODS if many else one_model.METHOD).solve(instance, options)
    if first.status == "infeasible" or last.bound < first.bound or not isinstance(last.plan, TuningPlan):
        return last
    met = agree(instance.objective(last.plan), first.bound)
    result = _result(met, first, first.solve_seconds + last.solve_seconds, last.message)
    return _judged(instance, last.plan, result, first, began)


def _best_packed(
    instance: Tuning, choices: list[IntArray], plan: TuningPlan | None, bound: float, seed: int
) -> TuningPlan | None:
    """Return the best of a plan and of packings with some choices, up to one that is worth the bound."""
    for chosen in choices:
        if plan is not None and agree(instance.objective(plan), bound):
            break
        if (chosen < 0).any():
            continue
        rng = np.random.default_rng(seed)
        packed = (_repaired(instance, chosen, gpus) for gpus in _packed(instance, chosen, rng))
        found = [one for one in packed if one is not None and not instance.violations(one)]
        plan = max([*found, *([] if plan is None else [plan])], key=instance.objective, default=None)
    return plan


def _result(met: bool, first: Solution, seconds: float, message: str) -> Result:
    """Make the result whose bound is the first stage's."""
    return Result("optimal" if met else "feasible", None, first.bound, None, seconds, message, first.proof)


def _judged(instance: Tuning, plan: TuningPlan, result: Result, first: Solution, began: float) -> Solution:
    return judged(
        instance,
        plan,
        result,
        began=began,
        solver=first.solver,
        solver_version=first.solver_version,
        method=PACKED.name,
    )


def first_stage(instance: Tuning) -> tuple[SynergyAllocation, list[IntArray]]:
    """Return the first stage without configurations that no plan has, and which of each job's configurations it has."""
    stage = instance.stage_one()
    usable = [np.flatnonzero(some) for some in instance.usable_configs]
    if not instance.num_jobs or not all(map(len, usable)):
        return stage, [np.arange(len(table)) for table in instance.configs]
    per_gpu = [
        table[some, :THROUGHPUT] / gpus
        for table, some, gpus in zip(instance.configs, usable, instance.gpu_demands.tolist(), strict=True)
    ]
    least = np.array([amounts.min(axis=0) for amounts in per_gpu]).min(axis=0)
    spare = instance.num_gpus - int(instance.gpu_demands.sum())
    kept = []
    for some, amounts, gpus in zip(usable, per_gpu, instance.gpu_demands.tolist(), strict=True):
        here = 1 if instance.allow_split else gpus
        beside = max(0, instance.server_gpus - here - spare)
        taken = here * amounts + beside * least
        limits = (instance.server_cpus, instance.server_memory)
        fits = [taken[:, r] <= widened([*amounts[:, r], least[r]], limit) for r, limit in enumerate(limits)]
        kept.append(some[np.logical_and(*fits)])
    if not all(map(len, kept)):
        kept = usable
    configs = tuple(table[some] for table, some in zip(instance.configs, kept, strict=True))
    return replace(stage, configs=configs), kept


def _translated(plan: SynergyAllocationPlan, kept: list[IntArray]) -> IntArray:
    """Return the instance's own numbers of the configurations of a plan of the first stage."""
    pairs = zip(kept, plan.choices.tolist(), strict=True)
    return np.array([int(some[choice]) for some, choice in pairs], np.int64)


def _packed(instance: Tuning, choices: IntArray, rng: np.random.Generator) -> Iterator[IntArray]:
    """Yield GPUs of each job on each server, up to the first without overload: in large pieces, then GPU by GPU."""
    server = np.array([instance.server_gpus, instance.server_cpus, instance.server_memory], float)
    limit = (server > 0).astype(float)
    demands = np.column_stack([instance.gpu_demands, instance.chosen(choices)[:, :THROUGHPUT]])
    per_gpu = demands / np.where(server > 0, server, 1.0) / instance.gpu_demands[:, None]
    mean = (per_gpu * instance.gpu_demands[:, None]).sum(axis=0) / instance.num_gpus
    counts = np.arange(1, instance.server_gpus + 1)
    beside = (instance.server_gpus - counts)[:, None] * mean
    for whole in (True, False) if instance.allow_split else (True,):
        jobs: list[int] = []
        pieces: list[int] = []
        for job, gpus in enumerate(instance.gpu_demands.tolist()):
            fits = (counts[:, None] * per_gpu[job] + beside <= limit).all(axis=1)
            largest = int(counts[fits].max(initial=1)) if whole else 1
            if not instance.allow_split or instance.penalised[job]:
                largest = gpus
            parts = -(-gpus // largest)
            jobs += [job] * parts
            pieces += [largest] * (parts - 1) + [gpus - largest * (parts - 1)]
        size = per_gpu[jobs] * np.array(pieces)[:, None]
        home, least = np.zeros(0, np.int64), np.inf
        for there, now in walk(size, placed(size, instance.num_servers, limit), instance.num_servers, limit, rng):
            if now < least:
                home, least = there, now
            if not now:
                break
        if len(home):
            table = np.zeros((instance.num_jobs, instance.num_servers), np.int64)
            np.add.at(table, (np.array(jobs), home), pieces)
            yield table
        if not least:
            return


def _repaired(instance: Tuning, choices: IntArray, gpus: IntArray) -> TuningPlan | None:
    """Give jobs on overloaded servers less, and then others what is left; None where that does not end overload."""
    server = np.where(np.array([instance.server_cpus, instance.server_memory]) > 0, 1.0, 0.0)
    size = np.maximum([instance.server_cpus, instance.server_memory], 1e-300)
    choices = choices.copy()
    part = gpus / instance.gpu_demands[:, None]
    used = instance.used(choices, gpus) / size

    def options(job: int) -> Iterator[tuple[int, float, FloatArray]]:
        """Yield other configurations of a job: number, gain and change of what servers have in use."""
        table, now = instance.configs[job], instance.configs[job][choices[job]]
        for other in np.intersect1d(instance.undominated[job], np.flatnonzero(instance.usable_configs[job])).tolist():
            if other != choices[job]:
                amounts = (table[other, :THROUGHPUT] - now[:THROUGHPUT]) / size
                yield other, float(table[other, THROUGHPUT] - now[THROUGHPUT]), part[job][:, None] * amounts

    def beyond(used: FloatArray) -> float:
        return float(np.maximum(used - server - TINY, 0.0).sum())

    while (over := beyond(used)) > 0:
        worst = int(np.maximum(used - server, 0.0).sum(axis=1).argmax())
        ways = [
            (-gain / (over - after), job, other, change)
            for job in np.flatnonzero(gpus[:, worst]).tolist()
            for other, gain, change in options(job)
            if (after := beyond(used + change)) < over - TINY
        ]
        if not ways:
            return None
        _, job, other, change = min(ways, key=lambda way: way[:3])
        choices[job], used = other, used + change
    waiting = list(range(instance.num_jobs))
    while waiting and clock.left() > 0:
        job = waiting.pop()
        better = [
            (gain, other, change)
            for other, gain, change in options(job)
            if gain > 0 and (used + change <= np.maximum(server + TINY, used)).all()
        ]
        if better:
            _, other, change = max(better, key=lambda way: way[:2])
            choices[job], used = other, used + change
    return TuningPlan(choices=choices, gpus=gpus)


PACKED = Method(
    name="the first stage, packed",
    short="packing",
    proves="the bound of the first stage without configurations that no plan has; else the searches of the one model",
    where="every instance",
    solve=solve,
)
CHOICE = Choice((PACKED, CONTENTS, neighbourhoods.NEIGHBOURHOODS, one_model.METHOD))
