"""The first stage, packed: its optimum bounds every plan, and on many servers there is mostly a plan that is worth it.

The first stage (:mod:`formulations.synergy.allocation`) sees all servers as one.  Its bound is too good where one
configuration asks for what no server can give beside the GPUs that it must carry as well.  If f GPUs of the cluster are
free, a server that carries k of a job's GPUs carries G - k - f others at least, each of which takes no less than the
least that any usable configuration takes for a GPU.  With k = 1, the least that there is of a job that may be split,

    c / g  +  (G - 1 - f) * least CPU cores for a GPU  <=  C,

and the same for memory, or no plan has the configuration.  The first stage without such configurations is a bound on
all plans.  Its plan is packed: jobs whole, those in pieces that take more of a server than the average leaves, with
overload, which a walk of moves and swaps lowers (:mod:`instances.synergy.packing`); and if that does not end it,
all jobs that may be split GPU by GPU.  A plan without overload is worth the bound.  Where there is none, jobs on
overloaded servers take less, the others what is left, and the contents of servers
(:mod:`formulations.methods.contents`) begin with that plan, or, where a table cannot hold them, the searches of the
model.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

from formulations.engine import clock
from formulations.engine.highs import Result
from formulations.engine.options import Options
from formulations.engine.solution import Solution, judged
from formulations.engine.solving import solve_one_model
from formulations.methods import Choice, Method, neighbourhoods, one_model
from formulations.methods.contents import CONTENTS, contents_of, solved
from instances.base import agree
from instances.schema import IntArray
from instances.synergy.allocation import SynergyAllocationPlan
from instances.synergy.packing import first_stage, own_choices, packings, repaired
from instances.synergy.tuning import Tuning, TuningPlan

__all__ = ["CHOICE", "PACKED"]


def solve(instance: Tuning, options: Options) -> Solution:
    """Solve the first stage and pack its plan; where that takes less than the bound, search the model from it."""
    began = time.perf_counter()
    stage, kept = first_stage(instance)
    with clock.within(clock.left() / 4):
        first = solve_one_model(stage, replace(options, start=None))
    staged = [own_choices(first.plan, kept)] if isinstance(first.plan, SynergyAllocationPlan) else []
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
        if met or abs(first.bound - value) <= options.mip_gap * abs(value) or clock.is_up():
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
        tables = packings(instance, chosen, rng, late=clock.is_up)
        packed = (repaired(instance, chosen, gpus, late=clock.is_up) for gpus in tables)
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


PACKED = Method(
    name="the first stage, packed",
    short="packing",
    proves="the bound of the first stage without configurations that no plan has; else the searches of the one model",
    where="every instance",
    solve=solve,
)
CHOICE = Choice((PACKED, CONTENTS, neighbourhoods.NEIGHBOURHOODS, one_model.METHOD))
