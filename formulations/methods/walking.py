"""Placements with few fragmented jobs, by walks of swaps: plans for :mod:`formulations.synergy.placement`.

On full servers the relaxation is close to the optimum, and what a search of the model lacks is a plan.  Walks come
first: they cut the jobs that no server holds, then ever more others, and a plan that cuts no others is optimal.  Where
the search from their plan does not end soon, more walks follow, and it begins once more from the best.  Which jobs are
cut is chosen first, at random after the first try, the larger the likelier.  The cut jobs are taken to pieces of about
a GPU, so that pieces and whole jobs can be swapped with each other, and are placed with overload, which a walk of moves
and swaps lowers (:mod:`instances.synergy.swapping`).

Pieces of one size are only what the walk is led by.  Wherever it comes to less overload than before, a linear program
shares the cut jobs out anew among what the whole jobs leave free, in any proportions; without overload that is a plan.
So one job less is cut at a time, until several tries find no plan.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from formulations.engine import clock
from formulations.engine.highs import Result, Session
from formulations.engine.linear import LinearProgram, csr
from formulations.engine.options import Options
from formulations.engine.polishing import PRECISE
from formulations.engine.solution import Solution, judged
from formulations.engine.solving import solve_one_model
from formulations.methods import Choice, Method, one_model
from formulations.synergy.placement import NEGLIGIBLE, larger_than_a_server, oversized
from instances.base import agree
from instances.schema import BoolArray, FloatArray, IntArray
from instances.synergy.placement import RESOURCES, SynergyPlacement, SynergyPlacementPlan
from instances.synergy.swapping import ROUNDING, placed, walk

__all__ = ["CHOICE", "WALKS", "improved"]

FIRST_SECONDS = 2.0
"""For the first search of the model, or a quarter of the limit if that is less."""
TRIES = 6
"""Walks for one number of cut jobs, each with other jobs cut, after which there are said to be no plans."""
CLOSE = 0.3
"""Overload, in servers, up to which the cut jobs are shared out anew."""


def solve(instance: SynergyPlacement, options: Options) -> Solution:
    """Look for a plan by walks and solve the one model from it; where that takes long, both once more.

    Walks end when a plan meets the bound.
    """
    began = time.perf_counter()
    with clock.within(clock.left() / 2):
        plan = _first(instance, options)
    least = larger_than_a_server(instance)
    if plan is not None and agree(instance.objective(plan), least):
        why = "a walk fragments no job that one server holds"
        return _judged(instance, plan, Result("optimal", None, least, None, 0.0, why, "argument"), began, "none", "")
    options = replace(options, start=plan)
    with clock.within(min(FIRST_SECONDS, clock.left() / 4)):
        first = solve_one_model(instance, options)
    if first.status in ("optimal", "infeasible") or first.gap <= options.mip_gap or clock.is_up():
        return first
    known = first.plan if isinstance(first.plan, SynergyPlacementPlan) else None
    with clock.within(clock.left() / 2):
        plan = improved(instance, known, oversized(instance), first.bound, options.seed)
    if plan is not None and agree(instance.objective(plan), first.bound):
        why = "a plan of a walk meets the bound"
        result = Result("optimal", None, first.bound, None, first.solve_seconds, why, first.proof)
        return _judged(instance, plan, result, began, first.solver, first.solver_version)
    last = solve_one_model(instance, replace(options, start=plan))
    better = max(first, last, key=lambda search: search.bound)
    seconds = first.solve_seconds + last.solve_seconds
    met = last.objective is not None and agree(last.objective, better.bound)
    return replace(
        last,
        status="optimal" if met else last.status,
        bound=better.bound,
        proof=better.proof,
        method=WALKS.name,
        build_seconds=time.perf_counter() - began - seconds,
        solve_seconds=seconds,
    )


def _judged(
    instance: SynergyPlacement, plan: SynergyPlacementPlan, result: Result, began: float, solver: str, version: str
) -> Solution:
    return judged(instance, plan, result, began=began, solver=solver, solver_version=version, method=WALKS.name)


def _first(instance: SynergyPlacement, options: Options) -> SynergyPlacementPlan | None:
    """Return the better of a start and of the first plan of walks that cut ever more jobs that one server holds."""
    start = options.start
    known = start if isinstance(start, SynergyPlacementPlan) and not instance.violations(start) else None
    rng = np.random.default_rng(options.seed)
    large, others = _by_size(instance, oversized(instance))
    most = len(others) if known is None else int(instance.objective(known)) - len(large)
    more = 0
    while more < most and clock.left() > 0:
        found = _walked(instance, np.sort(np.append(large, others[:more])), rng)
        if found is not None and not instance.violations(found):
            return found if known is None else min(found, known, key=instance.objective)
        more = 2 * more + 1
    return known


def _by_size(instance: SynergyPlacement, oversized: BoolArray) -> tuple[IntArray, IntArray]:
    """Jobs that no server holds, and the others, the largest first."""
    size = _fractions(instance, instance.demands).max(axis=1)
    others = np.flatnonzero(~oversized)
    return np.flatnonzero(oversized), others[np.argsort(-size[others], kind="stable")]


def improved(
    instance: SynergyPlacement, plan: SynergyPlacementPlan | None, oversized: BoolArray, bound: float, seed: int
) -> SynergyPlacementPlan | None:
    """Return the plan with the fewest fragmented jobs of those that walks come to.

    Parameters
    ----------
    instance : SynergyPlacement
        With continuous shares.
    plan : SynergyPlacementPlan or None
        A plan to improve.
    oversized : (n,) bool
        The jobs that no server holds.
    bound : float
        Fewest fragmented jobs that any plan can have, at which walks end.
    seed : int
        Of which jobs are cut, and of the walks.

    Returns
    -------
    SynergyPlacementPlan or None
        The plan that was given where none is better.  Time that is up is no error; the best plan by then is returned.
    """
    rng = np.random.default_rng(seed)
    size = _fractions(instance, instance.demands).max(axis=1)
    _, others = _by_size(instance, oversized)
    chance = (size[others] + ROUNDING) / (size[others] + ROUNDING).sum() if len(others) else size[others]
    value = float(instance.num_jobs) if plan is None else instance.objective(plan)
    failed = 0
    while value > bound and failed < TRIES and clock.left() > 0:
        more = int(value) - 1 - int(oversized.sum())
        if more < 0:
            break
        chosen = rng.choice(others, more, replace=False, p=chance) if failed else others[:more]
        cut = np.sort(np.append(np.flatnonzero(oversized), chosen))
        found = _walked(instance, cut, rng)
        if found is None or instance.violations(found) or instance.objective(found) >= value:
            failed += 1
        else:
            plan, value, failed = found, instance.objective(found), 0
    return plan


def _fractions(instance: SynergyPlacement, demands: FloatArray) -> FloatArray:
    """(..., 3) float: demands as fractions of a server, so that no unit decides; as they are where it has nothing."""
    fractions: FloatArray = demands / np.where(instance.capacity > 0, instance.capacity, 1.0)
    return fractions


def _walked(instance: SynergyPlacement, cut: IntArray, rng: np.random.Generator) -> SynergyPlacementPlan | None:
    """Return a plan that fragments at most the jobs of ``cut``, if a walk comes to one."""
    demands = _fractions(instance, instance.demands)
    limit = (instance.capacity > 0).astype(float)
    servers = instance.num_servers
    whole = np.setdiff1d(np.arange(instance.num_jobs), cut)
    # No piece is a whole job, nor more than half a server.
    pieces = np.ceil(np.maximum(2 * demands[cut].max(axis=1), instance.demands[cut, 0])).astype(int).clip(min=2)
    size = np.concatenate([demands[whole], np.repeat(demands[cut] / pieces[:, None], pieces, axis=0)])
    program, session = _sharing(demands[cut], servers), Session(tolerance=PRECISE)
    start = placed(size, servers, limit)
    for home, now in walk(size, start, servers, limit, rng, late=clock.is_up):
        if now < CLOSE:
            alone = np.zeros((servers, len(RESOURCES)))
            np.add.at(alone, home[: len(whole)], demands[whole])
            shares = _shared(program, session, limit - alone)
            if shares is not None:
                plan = np.zeros((instance.num_jobs, servers))
                plan[whole, home[: len(whole)]] = 1.0
                plan[cut] = shares
                return SynergyPlacementPlan(shares=plan)
    return None


def _sharing(demands: FloatArray, servers: int) -> LinearProgram:
    """Share jobs out with as little overload as possible; the rows' limits are what is free, set by :func:`_shared`.

    Columns are the shares, server after server for each job, and the overload of each server's resources; rows are
    the servers' resources, then the jobs.
    """
    jobs, resources = demands.shape
    job, server, resource = np.indices((jobs, servers, resources)).reshape(3, -1)
    limits, share = servers * resources, np.arange(jobs * servers)
    columns = len(share) + limits
    return LinearProgram(
        "min", 0.0, np.repeat([0.0, 1.0], [len(share), limits]),
        np.zeros(columns), np.full(columns, np.inf), np.zeros(columns, bool),
        *csr(
            np.concatenate([server * resources + resource, np.arange(limits), limits + share // servers]),
            np.concatenate([job * servers + server, len(share) + np.arange(limits), share]),
            np.concatenate([demands[job, resource], -np.ones(limits), np.ones(len(share))]),
            limits + jobs,
        ),
        np.append(np.full(limits, -np.inf), np.ones(jobs)), np.ones(limits + jobs),
    )  # fmt: skip


def _shared(program: LinearProgram, session: Session, free: FloatArray) -> FloatArray | None:
    """Shares of the cut jobs in what is free on the servers; None where there is overload."""
    upper = program.row_upper.copy()
    upper[: free.size] = free.ravel()
    result = session.run(replace(program, row_upper=upper))
    if result.x is None or program.objective(result.x) > ROUNDING * free.size:
        return None
    shares = result.x[: -free.size].reshape(-1, len(free))
    shares = np.where(shares > NEGLIGIBLE, shares, 0.0)
    rows: FloatArray = shares / shares.sum(axis=1, keepdims=True)
    return rows


WALKS = Method(
    name="one model, and walks of swaps",
    short="walks",
    proves="the searches of the one model",
    where="continuous shares",
    solve=solve,
    applies=lambda instance: not instance.integral_gpus,
)
CHOICE = Choice((WALKS, one_model.METHOD))
