"""The program over some jobs, and how these are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from formulations.engine.linear import LinearProgram, ModelError, csr
from formulations.engine.options import Options
from formulations.engine.polishing import PRECISE
from formulations.methods import GaveUp
from formulations.methods.prices.jobs import Jobs
from formulations.methods.prices.mixes import Indices, Prices
from instances.schema import FloatArray

__all__ = ["Outcome", "sample", "solve_over"]


@dataclass(frozen=True, eq=False)
class Outcome:
    """Outcome of the program over some jobs: prices, and the shares and the prices of the jobs' own rows."""

    prices: Prices
    shares: FloatArray
    speed_prices: FloatArray
    objective: float
    mass: float


def solve_over(jobs: Jobs, chosen: Indices, rest: FloatArray, options: Options) -> Outcome:
    """Solve the program over some jobs, beside the load of the rest.

    Parameters
    ----------
    jobs : Jobs
    chosen : (m,) int
    rest : (p + 2, 2) float
        What the others take of the pools and the budget, and add to the objective: constant, per g.
    options : Options

    Raises
    ------
    GaveUp
        When it has no optimum, because the rest leaves no room, or numbers that HiGHS does not take.
    """
    m, k, p = len(chosen), jobs.num_types, len(jobs.workers)
    usable = jobs.usable[1:, chosen]
    kind, job = np.nonzero(usable)
    columns = np.arange(len(kind))
    g = len(kind)
    asking = np.flatnonzero(np.isfinite(jobs.asked[chosen]))
    place = np.full(m, -1)
    place[asking] = m + np.arange(len(asking))
    couplings = m + len(asking)
    speeds = jobs.speeds[1:, chosen][kind, job]
    load = jobs.widths[chosen][job]
    unit = max(1.0, float(load.max(initial=0.0)))
    asks = place[job] >= 0
    rows: list[Any] = [
        job,
        place[job][asks],
        couplings + jobs.pools[kind],
        np.arange(m),
        place[asking],
        couplings + np.arange(p),
    ]
    cols: list[Any] = [columns, columns[asks], columns, np.full(m, g), np.full(len(asking), g), np.full(p, g)]
    vals: list[Any] = [
        np.ones(g),
        speeds[asks],
        load / unit,
        np.full(m, -jobs.time_g),
        -jobs.asked_g[chosen][asking],
        (rest[:p, 1] - jobs.time_g * jobs.workers) / unit,
    ]
    upper: list[Any] = [
        np.full(m, jobs.time),
        np.full(len(asking), np.inf),
        (jobs.workers * jobs.time - rest[:p, 0]) / unit,
    ]
    lower: list[Any] = [np.full(m, -np.inf), jobs.asked[chosen][asking], np.full(p, -np.inf)]
    if jobs.prices is not None:
        spent = jobs.prices[1:, chosen][kind, job]
        rows += [np.full(g, couplings + p), [couplings + p]]
        cols += [columns, [g]]
        vals += [spent / unit, [rest[p, 1] / unit]]
        upper.append([(jobs.budget - rest[p, 0]) / unit])
        lower.append([(jobs.budget - rest[p, 0]) / unit])
    upper_all, lower_all = np.concatenate(upper), np.concatenate(lower)
    indptr, index, value = csr(np.concatenate(rows), np.concatenate(cols), np.concatenate(vals), len(upper_all))
    cost = np.append(jobs.gains[1:, chosen][kind, job], jobs.g_gain + rest[p + 1, 1])
    worth = float(np.abs(cost).max(initial=0.0)) or 1.0
    program = LinearProgram(
        "max", 0.0, cost * (100.0 / worth),
        np.append(np.zeros(g), jobs.g_lower), np.append(np.full(g, np.inf), jobs.g_upper), np.zeros(g + 1, bool),
        indptr, index, value, lower_all, upper_all,
    )  # fmt: skip
    try:
        result = options.session(PRECISE).run(program)
    except ModelError as error:
        raise GaveUp(f"the program over some jobs: {error}") from error
    if result.status != "optimal" or result.x is None or result.certificate is None:
        raise GaveUp(f"the program over some jobs: {result.message}")
    duals = result.certificate.row_duals * (worth / 100.0)
    at = couplings + np.arange(p)
    speed_prices = np.zeros(m)
    speed_prices[asking] = np.maximum(0.0, -duals[place[asking]])
    shares = np.zeros((k + 1, m))
    shares[kind + 1, job] = result.x[:g]
    found = Prices(
        np.maximum(0.0, duals[at]) / unit,
        float(duals[couplings + p]) / unit if jobs.prices is not None else 0.0,
        float(result.x[g]),
    )
    objective = float(cost @ result.x + rest[p + 1, 0])
    mass = abs(objective) + float(speed_prices[asking] @ np.abs(jobs.asked[chosen][asking]))
    return Outcome(found, shares, speed_prices, objective, mass)


def sample(sizes: FloatArray, count: int, rng: np.random.Generator) -> tuple[Indices, FloatArray]:
    """About so many positions, each with a chance in proportion to its size, and how many each stands for."""
    if count >= len(sizes):
        everyone = np.flatnonzero(sizes)
        return everyone, np.ones(len(everyone))
    sizes = np.where(sizes > 0, sizes + 1e-3 * sizes.mean(), 0.0)
    chance = np.minimum(1.0, sizes * (count / sizes.sum()))
    for _ in range(8):
        sure = chance >= 1
        free = sizes[~sure].sum()
        if sure.sum() >= count or not free:
            break
        chance = np.where(sure, 1.0, np.minimum(1.0, sizes * ((count - sure.sum()) / free)))
    order = rng.permutation(len(sizes))
    marks = np.cumsum(chance[order]) + rng.random()
    drawn = order[
        np.flatnonzero(np.floor(marks) > np.floor(np.concatenate([[marks[0] - chance[order[0]]], marks[:-1]])))
    ]
    return drawn, 1 / chance[drawn]
