"""The linear program that all of Gavel's policies add to, section 3.1.

    0 <= X[r, j] <= 1, and 0 where row r is wider than the pool of type j
    job_time[m]:        sum of X[r, j] over the rows r that contain job m and types j  <= 1
    pool_capacity[p]:   sum of scale_factor[r] * X[r, j] over the types j of pool p    <= num_workers[p]

Rows 0 to n-1 are the jobs alone, the others the pairs.

A policy states its program once, as algebra over a :class:`SharingProgram`.  It has two faces with the same rows
and columns: a Pyomo model for users and for every solver, and arrays for HiGHS, which the methods
take without the detour, because for thousands of jobs making Pyomo's objects costs about as much as solving.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from formulations.engine.linear import POINT_TOLERANCE, LinearProgram, Rows, weighted_sum
from formulations.engine.sets import RangeSet, Set
from formulations.gavel.algebra import Linear, Relation, Subset
from instances import pictures
from instances.gavel.sharing import Allocation, Sharing
from instances.schema import BoolArray, FloatArray, IntArray

__all__ = [
    "Incidence",
    "SharingProgram",
    "incidence",
    "jobs_that",
    "read",
    "shared_model",
    "values_of",
    "within_limits",
]


@dataclass(frozen=True)
class Incidence:
    """One entry for each job, row that contains it, and type.

    Attributes
    ----------
    job, column : (entries,) int
        Job m and position ``r * k + j`` of X[r, j].
    throughput : (entries,) float
        Steps/s of job m when row r runs on type j.
    """

    job: NDArray[np.int64]
    column: NDArray[np.int64]
    throughput: FloatArray


def incidence(instance: Sharing) -> Incidence:
    """List which entries of X give which job how much."""
    n, k, q = instance.num_jobs, instance.num_types, instance.num_pairs
    if not q:
        return Incidence(np.arange(n).repeat(k), np.arange(n * k), instance.throughputs.ravel())
    job = np.concatenate([np.arange(n), instance.pairs.T.ravel()])
    row = np.concatenate([np.arange(n), np.tile(n + np.arange(q), 2)])
    throughput = np.concatenate(
        [instance.throughputs, instance.pair_throughputs[:, :, 0], instance.pair_throughputs[:, :, 1]]
    )
    return Incidence(
        job=np.repeat(job, k),
        column=(row[:, None] * k + np.arange(k)).ravel(),
        throughput=throughput.ravel(),
    )


@dataclass(frozen=True)
class _Named:
    name: str


class SharingProgram:
    """A policy's linear program: X, the shared constraints, and what the policy adds.

    Parameters
    ----------
    instance : Sharing
    largest : float, optional
        Build the homogeneous form, in which a variable ``t``, at least 1, multiplies every limit and
        Y[r, j], at most this, stands for ``t * X[r, j]``.

    Attributes
    ----------
    time_fractions : Linear
        (n+q, k), X[r, j], or Y[r, j].
    throughput : Linear
        (n,), throughput(m, X): steps/s of job m over all rows that contain it, and all types.
    within : Linear or float
        What all limits are multiplied by: ``t``, or 1.
    constraints : dict
        The rows of each constraint by its name, in order.
    """

    def __init__(self, instance: Sharing, *, largest: float | None = None) -> None:
        n, k, pools = instance.num_jobs, instance.num_types, len(instance.num_workers)
        self.instance = instance
        self.entries = entries = incidence(instance)
        self._sets = {"JOBS": Subset("JOBS", np.arange(n)), "POOLS": Subset("POOLS", np.arange(pools))}
        self._shares = "X" if largest is None else "Y"
        self._upper = np.where(instance.fits, 1.0 if largest is None else largest, 0.0).ravel()
        self._variables: dict[str, tuple[float, float]] = {}
        self._objective: tuple[str, Linear] | None = None
        self.constraints: dict[str, Relation] = {}

        columns, size = np.arange(instance.fits.size), instance.fits.shape
        self.time_fractions = Linear(columns, columns, np.ones(len(columns)), size)
        self.throughput = Linear(entries.job, entries.column, entries.throughput, (n,), "JOBS")
        self.within: Linear | float = 1.0 if largest is None else self.variable("t", lower=1)
        job_time = Linear(entries.job, entries.column, np.ones(len(entries.job)), (n,), "JOBS")
        widths = instance.row_scale_factors.astype(float).repeat(k)
        workers = Linear(instance.pools[columns % k], columns, widths, (pools,), "POOLS")
        self.constraint("job_time", job_time <= np.ones(n) * self.within)
        self.constraint("pool_capacity", workers <= instance.num_workers * self.within)

    # --- what a policy adds ----------------------------------------------------------------------

    @cached_property
    def throughputs(self) -> Linear:
        """Throughput of each job on each type alone, (n, k)."""
        entries, k = self.entries, self.instance.num_types
        rows = entries.job * k + entries.column % k
        return Linear(rows, entries.column, entries.throughput, (self.instance.num_jobs, k))

    def variable(self, name: str, *, lower: float = -np.inf, upper: float = np.inf) -> Linear:
        """Add a variable beside X."""
        column = len(self._upper) + len(self._variables)
        self._variables[name] = (lower, upper)
        return Linear(np.zeros(1, np.intp), np.array([column]), np.ones(1))

    def subset(self, name: str, jobs: IntArray) -> Subset:
        """Add a set of jobs, in increasing order, for constraints to have rows for."""
        self._sets[name] = Subset(name, jobs)
        return self._sets[name]

    def constraint(self, name: str, relation: Relation) -> None:
        """Add a constraint, with a row for each member of its expressions' set."""
        self.constraints[name] = relation

    def maximize(self, name: str, total: Linear) -> None:
        """Set the objective."""
        self._objective = name, total

    def plan(self, values: FloatArray) -> Allocation:
        """Read the plan from the values of the columns X, or Y."""
        shape = self.instance.fits.shape
        finish = within_limits if self._shares == "X" else as_large_as_possible
        return finish(self.instance, values.reshape(shape))

    # --- the two faces ---------------------------------------------------------------------------

    @property
    def variables(self) -> dict[str, tuple[float, float]]:
        """Limits of the variables beside X."""
        return self._variables

    @property
    def cost(self) -> FloatArray:
        """Objective coefficient of each column: what one unit of it adds."""
        assert self._objective is not None
        total = self._objective[1]
        columns = len(self._upper) + len(self._variables)
        return np.bincount(total.columns, weights=total.values, minlength=columns).astype(float)

    def arrays(self) -> LinearProgram:
        """Return the program as HiGHS takes it."""
        limits = np.array(list(self._variables.values()), float).reshape(-1, 2)
        blocks = list(self.constraints.values())
        counts = np.concatenate([b.matrix[0][1:] - b.matrix[0][:-1] for b in blocks])
        cost = self.cost
        return LinearProgram(
            sense="max",
            offset=0.0,
            cost=cost,
            col_lower=np.concatenate([np.zeros(len(self._upper)), limits[:, 0]]),
            col_upper=np.concatenate([self._upper, limits[:, 1]]),
            integer=np.zeros(len(cost), bool),
            indptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
            index=np.concatenate([b.matrix[1] for b in blocks]),
            value=np.concatenate([b.matrix[2] for b in blocks]),
            row_lower=np.concatenate([b.lower for b in blocks]),
            row_upper=np.concatenate([b.upper for b in blocks]),
            constraints=[
                (_Named(name), [None] if b.over is None else self.members(b).tolist())
                for name, b in self.constraints.items()
            ],
        )

    def members(self, relation: Relation) -> IntArray:
        """Return the jobs, pools or subsets that the rows of a constraint are for."""
        assert relation.over is not None
        return self._sets[relation.over].members

    def rows(self, name: str) -> slice:
        """Return where the rows of a constraint are in :meth:`arrays`."""
        first = 0
        for one, relation in self.constraints.items():
            if one == name:
                return slice(first, first + len(relation.lower))
            first += len(relation.lower)
        raise KeyError(name)

    def model(self) -> pyo.ConcreteModel:
        """Build the program as a Pyomo model.

        Sets JOBS, ROWS, TYPES, POOLS and the subsets; variables ``X[r, j]`` (or ``Y[r, j]`` and
        ``t``) and the policy's; constraints ``job_time[m]``, ``pool_capacity[p]`` and the policy's.
        """
        instance = self.instance
        model = pyo.ConcreteModel(name=instance.problem)
        model.instance = instance
        model.JOBS = RangeSet(0, instance.num_jobs - 1)
        model.ROWS = RangeSet(0, len(instance.fits) - 1)
        model.TYPES = RangeSet(0, instance.num_types - 1)
        model.POOLS = RangeSet(0, len(instance.num_workers) - 1)
        for name in list(self._sets)[2:]:
            model.add_component(name, Set(initialize=self._sets[name].members.tolist()))
        shares = pyo.Var(model.ROWS * model.TYPES, bounds=(0, float(self._upper.max())))
        model.add_component(self._shares, shares)
        columns = list(shares.values())
        for column in np.flatnonzero(self._upper == 0):
            columns[column].setub(0)
        for name, (lower, upper) in self._variables.items():
            bounds = tuple(None if np.isinf(limit) else limit for limit in (lower, upper))
            model.add_component(name, pyo.Var(bounds=bounds))
            columns.append(model.component(name))
        for name, relation in self.constraints.items():
            model.add_component(name, _constraint(model, relation, columns))
        if self._objective is not None:
            cost = self.cost
            (worth,) = cost.nonzero()
            total = weighted_sum(cost[worth], [columns[column] for column in worth])
            model.add_component(self._objective[0], pyo.Objective(expr=total, sense=pyo.maximize))
        return model


def _constraint(model: pyo.ConcreteModel, relation: Relation, columns: list[Any]) -> pyo.Constraint:
    if relation.over is not None:
        index = model.component(relation.over)
        return Rows(index, relation.matrix, columns, lower=relation.lower, upper=relation.upper)
    _, positions, values = relation.matrix
    total = weighted_sum(values, [columns[position] for position in positions])
    return pyo.Constraint(expr=total == float(relation.lower[0]))


def shared_model(instance: Sharing) -> tuple[pyo.ConcreteModel, Incidence, list[Any]]:
    """Build a Pyomo model with X and the shared constraints, for rows that only Pyomo states well.

    Returns
    -------
    model : ConcreteModel
        Sets JOBS, ROWS, TYPES, POOLS; variable ``X[r, j]``; constraints ``job_time`` and
        ``pool_capacity``.
    incidence : Incidence
    variables : list of VarData
        X[r, j] at position ``r * k + j``.
    """
    program = SharingProgram(instance)
    model = program.model()
    return model, program.entries, list(model.X.values())


def values_of(variables: pyo.Var) -> FloatArray:
    """(n+q, k) float: the values of ``X`` or ``Y``; variables that no solver touched count as 0."""
    values = np.array([0.0 if v.value is None else v.value for v in variables.values()])
    return values.reshape(-1, len(variables.model().TYPES))


def read(model: pyo.ConcreteModel) -> Allocation:
    """Read the plan from the values of ``X``, within the limits, or of ``Y``, as large as the cluster allows."""
    homogeneous = model.component("Y") is not None
    values = values_of(model.Y if homogeneous else model.X)
    return as_large_as_possible(model.instance, values) if homogeneous else within_limits(model.instance, values)


def jobs_that(chosen: BoolArray) -> str:
    """``job 2``, or ``jobs 0 and 2``: which of (n,) jobs are chosen, in words."""
    return pictures.jobs(np.flatnonzero(chosen))


def fullness(instance: Sharing, allocation: Allocation) -> float:
    """Return how full the fullest job or pool is: 1 at its limit, more beyond it."""
    job_time, workers = instance.loads(allocation)
    used = instance.num_workers > 0
    return max(float(job_time.max(initial=0.0)), float((workers[used] / instance.num_workers[used]).max(initial=0.0)))


def within_limits(instance: Sharing, fractions: FloatArray) -> Allocation:
    """Make an allocation of a solver's point, without what the solver's tolerance adds to it.

    It is scaled down by what it exceeds its limits by.  What is more than that tolerance is left for the
    judge to see: a model may have been changed by its user.

    Parameters
    ----------
    instance : Sharing
    fractions : (n+q, k) float
    """
    allocation = without_traces(instance, fractions)
    used = fullness(instance, allocation)
    if not 1 < used <= 1 + 10 * POINT_TOLERANCE:
        return allocation
    return Allocation(time_fractions=allocation.time_fractions / used)


def as_large_as_possible(instance: Sharing, scaled: FloatArray) -> Allocation:
    """Y / t with the smallest t that the limits of jobs and pools allow."""
    allocation = without_traces(instance, scaled)
    full = fullness(instance, allocation)
    return Allocation(time_fractions=allocation.time_fractions / full) if full > 0 else allocation


def without_traces(instance: Sharing, fractions: FloatArray) -> Allocation:
    """Make an allocation with 0 where X must be 0 or more, or must be 0, but for the solver's tolerance."""
    traces = np.abs(fractions) <= POINT_TOLERANCE * max(1.0, float(fractions.max(initial=0.0)))
    return Allocation(time_fractions=np.where(traces & ((fractions < 0) | ~instance.fits), 0.0, fractions))
