"""Exact model of :class:`instances.gavel.max_min_fairness.MaxMinFairness`: one linear program.

    max   level
    s.t.  fairness[m]:  sum_{r, j} (scale_factor_m / (w_m * throughput(m, X_equal)))
                            * throughput[m, r, j] * X[r, j]  >=  level     for each job m
          job_time[m], pool_capacity[p]  of :mod:`formulations.gavel.sharing`.

With many pairs, most columns never matter.  :func:`solve` then starts from the jobs alone and adds
the pairs whose prices call for them, until no column outside can improve the level; the bound is
that of the whole program, because it counts every column left out.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from formulations import highs
from formulations.gavel.sharing import read_allocation, shared_model
from formulations.linear import Columns, FloatArray, Rows, csr, translate
from formulations.solving import Options, Solution, judged, solve_built
from instances.base import agree
from instances.gavel.max_min_fairness import MaxMinFairness
from instances.gavel.sharing import Allocation

PRICING_COLUMNS = 20_000
"""With more pair columns than this, generating columns is faster than the whole program."""


def build(instance: MaxMinFairness) -> pyo.ConcreteModel:
    """Pyomo model of a max-min fairness instance.

    Sets JOBS, ROWS (jobs alone, then pairs), TYPES, POOLS; variables ``X[r, j]`` and ``level``;
    constraints ``job_time[m]``, ``pool_capacity[p]`` and ``fairness[m]``; objective
    ``least_level``.
    """
    model, entries, variables = shared_model(instance)
    model.level = pyo.Var(bounds=(0, None))
    variables.append(model.level)
    coefficients = entries.throughput * _price_of_throughput(instance)[entries.job]
    rows = csr(
        np.concatenate([entries.job, np.arange(instance.num_jobs)]),
        np.concatenate([entries.column, np.full(instance.num_jobs, len(variables) - 1)]),
        np.concatenate([coefficients, np.full(instance.num_jobs, -1.0)]),
        instance.num_jobs,
    )
    model.fairness = Rows(model.JOBS, rows, variables, lower=0)
    model.least_level = pyo.Objective(expr=model.level, sense=pyo.maximize)
    return model


def read(model: pyo.ConcreteModel) -> Allocation:
    """The plan in the values of ``X``."""
    return read_allocation(model)


def solve(instance: MaxMinFairness, options: Options) -> Solution:
    """Solve the whole program at once or, with many pairs, by generating columns."""
    if instance.num_pairs * instance.num_types <= PRICING_COLUMNS:
        return solve_built(instance, options)
    return _by_column_generation(instance, options)


def _price_of_throughput(instance: MaxMinFairness) -> FloatArray:
    """(n,) float: level that one step/s gives each job."""
    return instance.scale_factors / (instance.weights * instance.equal_share_throughputs)


def _by_column_generation(instance: MaxMinFairness, options: Options) -> Solution:
    began = time.perf_counter()
    n, k, q = instance.num_jobs, instance.num_types, instance.num_pairs
    alone = replace(instance, pairs=np.zeros((0, 2), np.int64), pair_throughputs=np.zeros((0, k, 2)))
    program = translate(build(alone))
    first = {component.name: 0 for component, _ in program.constraints}
    position = 0
    for component, indices in program.constraints:
        first[component.name] = position
        position += len(indices)
    columns = _PairColumns(instance, first)
    outside = np.ones((q, k), bool) & instance.fits[n:]
    inside: list[tuple[int, int]] = []
    session = options.session()
    deadline = None if options.time_limit is None else began + options.time_limit
    seconds = 0.0
    while True:
        if deadline is not None:
            session.time_limit = max(0.01, deadline - time.perf_counter())
        result = session.run(program)
        seconds += result.seconds
        if result.status != "optimal" or result.certificate is None:
            break
        gain = np.where(outside, columns.gain(result.certificate.row_duals), 0.0)
        bound = result.bound + float(gain[gain > 0].sum())
        late = deadline is not None and time.perf_counter() > deadline
        if agree(result.bound, bound) or late:
            result = replace(result, bound=bound, status="optimal" if agree(result.bound, bound) else "feasible")
            break
        candidates = np.flatnonzero(gain.ravel() > 0)
        best = candidates[np.argsort(-gain.ravel()[candidates], kind="stable")[: 4 * n]]
        outside.ravel()[best] = False
        inside += [(int(c) // k, int(c) % k) for c in best]
        program = session.add_columns(columns.take(best))
    result = replace(result, seconds=seconds)
    plan = None
    if result.x is not None:
        x = np.zeros((n + q, k))
        x[:n] = result.x[: n * k].reshape(n, k)
        for (pair, kind), fraction in zip(inside, result.x[n * k + 1 :], strict=True):
            x[n + pair, kind] = fraction
        plan = Allocation(time_fractions=x)
    overhead = time.perf_counter() - began - seconds
    result = replace(result, message=f"{result.message}; {len(inside)} of {q * k} pair columns generated")
    return judged(
        instance,
        plan,
        result,
        build_seconds=lambda: overhead,
        solver="highs",
        solver_version=highs.version(),
        program=program,
    )


class _PairColumns:
    """The columns X[n + i, j] of pairs, at flat position ``i * k + j``."""

    def __init__(self, instance: MaxMinFairness, first_row: dict[str, int]) -> None:
        self.k = instance.num_types
        self.pairs = instance.pairs
        self.pools = instance.pools
        self.scale_factors = instance.row_scale_factors[instance.num_jobs :].astype(float)
        price = _price_of_throughput(instance)
        self.levels = instance.pair_throughputs * price[instance.pairs][:, None, :]
        self.first = first_row

    def gain(self, duals: FloatArray) -> FloatArray:
        """(q, k) float: reduced cost of each column, positive where it would raise the level."""
        n_fair, n_time, n_pool = (self.first[name] for name in ("fairness", "job_time", "pool_capacity"))
        of_job = duals[n_fair + self.pairs]
        time_price = duals[n_time + self.pairs].sum(axis=1)
        pool_price = duals[n_pool + self.pools]
        used = np.einsum("qkm,qm->qk", self.levels, of_job)
        used += time_price[:, None] + self.scale_factors[:, None] * pool_price[None, :]
        gain: FloatArray = -used
        return gain

    def take(self, flat: NDArray[np.intp]) -> Columns:
        """The columns at flat positions."""
        pair, kind = flat // self.k, flat % self.k
        rows = np.stack(
            [
                self.first["fairness"] + self.pairs[pair, 0],
                self.first["fairness"] + self.pairs[pair, 1],
                self.first["job_time"] + self.pairs[pair, 0],
                self.first["job_time"] + self.pairs[pair, 1],
                self.first["pool_capacity"] + self.pools[kind],
            ],
            axis=1,
        )
        levels = self.levels[pair, kind]
        ones = np.ones(len(flat))
        values = np.column_stack([levels[:, 0], levels[:, 1], ones, ones, self.scale_factors[pair]])
        column = np.repeat(np.arange(len(flat)), 5)
        indptr, row, value = csr(column, rows.ravel(), values.ravel(), len(flat))
        return Columns(
            cost=np.zeros(len(flat)), lower=np.zeros(len(flat)), upper=ones, indptr=indptr, rows=row, values=value
        )
