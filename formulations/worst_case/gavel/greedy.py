"""What Gavel's greedy heuristics share: the entries (job, type) of highest worth first, as long as there is room.

Data are scale factors s[m], whole, and worths p[m, j], measured so that the heuristic's plan is worth 1; then none is
above 1, because the greatest is taken.  What the heuristic takes is a plan, ``taken``, of which whatever is left out is
blocked by entries that come before it: by one of the same job, or by entries of the type that leave too few workers.

    p[f] >= p[e]                                        where f before e
    s[m] + sum of s[f] of f before e >= workers + 1     where e = (m, j) finds no room on type j

Such a plan is what the heuristic ends with where it takes, of entries that are worth as much, those of the plan first.
With one type that is the order of the jobs, which may be numbered so.  With several, ties go either way, and where
the heuristic's own rule is the other way :func:`worths` raises what is taken by ``AHEAD``.

No row needs a constant that is merely large: worths are at most 1, scale factors at most the workers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo

from formulations.worst_case.pieces import snapped, switched
from instances.schema import FloatArray

__all__ = ["adjacent", "blocked_by", "greedy_model", "worths"]

AHEAD = 1e-7
"""By which a witness raises what is taken, as a part of what the heuristic's plan is worth."""


def greedy_model(name: str, *, num_jobs: int, num_workers: int, num_types: int, widest: int) -> pyo.ConcreteModel:
    """Instances with the greedy plan and any other.

    Variables ``scale_factors[m]`` and ``worths[m, j]`` are the data, ``taken[m, j]`` and ``witness[m, j]`` the plans,
    ``before[f, e]`` says by which entries one that is left out is blocked; expressions ``heuristic_value``, which is
    1, and ``witness_value``.

    Parameters
    ----------
    name : str
    num_jobs : int
    num_workers : int
        Of each type, which is a pool of its own.
    num_types : int
    widest : int
        Greatest scale factor, at most ``num_workers``.
    """
    model = pyo.ConcreteModel(name=name)
    model.JOBS = pyo.RangeSet(0, num_jobs - 1)
    model.TYPES = pyo.RangeSet(0, num_types - 1)
    model.ENTRIES = model.JOBS * model.TYPES
    blocking = blocked_by(list(model.ENTRIES), num_types)
    model.BLOCKING = pyo.Set(initialize=[(*f, *e) for f, e in blocking], dimen=4)
    model.scale_factors = pyo.Var(model.JOBS, domain=pyo.Integers, bounds=(1, widest))
    model.worths = pyo.Var(model.ENTRIES, bounds=(0, 1))
    model.taken = pyo.Var(model.ENTRIES, domain=pyo.Binary)
    model.witness = pyo.Var(model.ENTRIES, domain=pyo.Binary)
    model.before = pyo.Var(model.BLOCKING, domain=pyo.Binary)
    model.no_room = pyo.Var(model.ENTRIES, domain=pyo.Binary)
    model.workers = pyo.Param(initialize=num_workers)

    _number(model, num_types)
    for plan in ("taken", "witness"):
        _feasible(model, plan, num_workers, widest)
    model.unit = pyo.Constraint(expr=model.heuristic_value == 1)

    def comes_before(model: pyo.ConcreteModel, *pair: int) -> Any:
        return model.worths[pair[:2]] >= model.worths[pair[2:]] - 1 + model.before[pair]

    model.comes_before = pyo.Constraint(model.BLOCKING, rule=comes_before)
    model.before_is_taken = pyo.Constraint(model.BLOCKING, rule=lambda m, *pair: m.before[pair] <= m.taken[pair[:2]])
    of_type = [(f, e) for f, e in blocking if f[1] == e[1]]
    model.OF_TYPE = pyo.Set(initialize=[(*f, *e) for f, e in of_type], dimen=4)
    used = switched(
        model,
        "used_before",
        model.OF_TYPE,
        lambda *pair: (model.before[pair], model.scale_factors[pair[0]]),
        most=widest,
    )

    def left_out(model: pyo.ConcreteModel, *entry: int) -> Any:
        of_job = [model.before[(*f, *e)] for f, e in blocking if e == entry and f[0] == entry[0]]
        return model.taken[entry] + model.no_room[entry] + sum(of_job) >= 1

    def finds_no_room(model: pyo.ConcreteModel, *entry: int) -> Any:
        held = sum(used[(*f, *e)] for f, e in of_type if e == entry)
        return model.scale_factors[entry[0]] + held >= (num_workers + 1) * model.no_room[entry]

    model.left_out = pyo.Constraint(model.ENTRIES, rule=left_out)
    model.finds_no_room = pyo.Constraint(model.ENTRIES, rule=finds_no_room)
    return model


Entry = tuple[int, int]


def adjacent(entries: list[Entry]) -> list[tuple[Entry, Entry]]:
    """Entries of one job or of one type, in either order: the first may block the second."""
    return [(f, e) for f in entries for e in entries if f != e and (f[0] == e[0] or f[1] == e[1])]


def blocked_by(entries: list[Entry], num_types: int) -> list[tuple[Entry, Entry]]:
    """Entries that may block another; with one type only those of lower numbers (``_number``)."""
    return [(f, e) for f, e in adjacent(entries) if num_types > 1 or f < e]


def _number(model: pyo.ConcreteModel, num_types: int) -> None:
    """Fix one of the equivalent numberings of jobs and types.

    The greatest worth is that of job 0 on type 0, and it is taken; the other jobs are numbered by what they are worth
    there.  With one type that is the order in which the heuristic looks at the jobs, also of those worth as much.
    """
    last = max(model.JOBS)
    model.falling = pyo.Constraint(range(last), rule=lambda m, job: m.worths[job, 0] >= m.worths[job + 1, 0])
    model.taken[0, 0].fix(1)
    if num_types > 1:
        model.greatest = pyo.Constraint(model.ENTRIES, rule=lambda m, *entry: m.worths[0, 0] >= m.worths[entry])


def _feasible(model: pyo.ConcreteModel, plan: str, num_workers: int, widest: int) -> None:
    """Return a plan within the workers of each type, and what it is worth."""
    chosen = getattr(model, plan)
    held = switched(
        model,
        f"{plan}_workers",
        model.ENTRIES,
        lambda job, kind: (chosen[job, kind], model.scale_factors[job]),
        most=widest,
    )
    worth = switched(model, f"{plan}_worth", model.ENTRIES, lambda *entry: (chosen[entry], model.worths[entry]), most=1)
    once = pyo.Constraint(model.JOBS, rule=lambda m, job: sum(chosen[job, kind] for kind in m.TYPES) <= 1)
    within = pyo.Constraint(model.TYPES, rule=lambda m, kind: sum(held[job, kind] for job in m.JOBS) <= num_workers)
    model.add_component(f"{plan}_once", once)
    model.add_component(f"{plan}_within", within)
    value = "heuristic_value" if plan == "taken" else "witness_value"
    model.add_component(value, pyo.Expression(expr=pyo.quicksum(worth.values())))


def worths(model: pyo.ConcreteModel) -> FloatArray:
    """(n, k) float: the worths in the values of the variables, as the heuristic is given them.

    What is taken is raised where the heuristic, which takes the lowest job and type of entries that are worth as much,
    would take another.
    """
    found = np.array([[max(0.0, snapped(model.worths[j, k].value)) for k in model.TYPES] for j in model.JOBS])
    raised = found.copy()
    for pair, before in model.before.items():
        f, e = pair[:2], pair[2:]
        if before.value > 0.5 and 0 < found[f] <= found[e] and e < f:
            raised[f] = found[f] + AHEAD
    return raised
