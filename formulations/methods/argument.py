"""Instances of Gavel's policies of which the data alone tell the optimum, or that there is no plan."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

from formulations.engine.highs import Result
from formulations.engine.options import Options
from formulations.engine.solution import Solution, judged
from formulations.gavel.sharing import jobs_that
from formulations.methods import Choice, GaveUp, Method, policies
from instances.gavel.cost import Cost
from instances.gavel.makespan import Makespan
from instances.gavel.max_min_fairness import MaxMinFairness
from instances.gavel.sharing import Sharing

__all__ = ["CHOICE", "METHOD"]

Verdict = tuple[Literal["optimal", "infeasible"], float, str]
"""Status, value or bound, and why."""


def _cost(instance: Cost) -> Verdict | None:
    if not instance.fits.any():
        return "optimal", 0.0, "no job fits anywhere, so nothing can be spent"
    return None


def _makespan(instance: Makespan) -> Verdict | None:
    if instance.endless.any():
        return "optimal", math.inf, f"{jobs_that(instance.endless)} can run nowhere"
    return None if instance.active.any() else ("optimal", 0.0, "no job has steps left")


def _max_min_fairness(instance: MaxMinFairness) -> Verdict | None:
    without = instance.level_per_throughput <= 0
    if not without.any():
        return None
    return "optimal", 0.0, f"an equal share gives {jobs_that(without)} nothing, so the least level is 0"


_VERDICTS: dict[str, Callable[[Any], Verdict | None]] = {
    "gavel.cost": _cost,
    "gavel.makespan": _makespan,
    "gavel.max_min_fairness": _max_min_fairness,
}


def _verdict(instance: Sharing) -> Verdict | None:
    found = _VERDICTS.get(instance.problem)
    return None if found is None else found(instance)


def _best_first(instance: Sharing) -> Sequence[Method]:
    """Put this method first: where the data alone tell, nothing is faster."""
    return [*([METHOD] if METHOD.applies(instance) else []), *policies.best_first(instance)]


def solve(instance: Sharing, options: Options) -> Solution:
    """Say what the data tell; the isolated share is as good as any plan."""
    found = _verdict(instance)
    if found is None:
        raise GaveUp("the data alone do not tell")
    status, value, why = found
    return judged(
        instance,
        instance.isolated_share() if status == "optimal" else None,
        Result(status, None, value, None, 0.0, why, "argument"),
        began=time.perf_counter(),
        solver="none",
        solver_version="",
        method=METHOD.name,
    )


METHOD = Method(
    name="argument",
    short="argument",
    proves="the data alone tell the optimum, or that there is no plan",
    where="instances without a job that matters, or with one that cannot be served",
    solve=solve,
    applies=lambda instance: _verdict(instance) is not None,
    proofs=("argument",),
)
CHOICE = Choice((METHOD, *policies.CHOICE.methods), _best_first)
