"""The linear program that all of Gavel's policies add to, section 3.1.

    0 <= X[r, j] <= 1, and 0 where row r is wider than the pool of type j
    job_time[m]:        sum of X[r, j] over the rows r that contain job m and types j  <= 1
    pool_capacity[p]:   sum of scale_factor[r] * X[r, j] over the types j of pool p    <= num_workers[p]

Rows 0 to n-1 are the jobs alone, the others the pairs.

A policy states its program once, as a :class:`SharingProgram`.  It has two faces with the same rows
and columns: a Pyomo model for users and for every solver, and arrays for HiGHS, which a policy's
``solve`` takes without the detour, because for thousands of jobs making Pyomo's objects costs about
as much as solving.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from formulations.engine.highs import Result
from formulations.engine.linear import POINT_TOLERANCE, IndexArray, LinearProgram, Rows, csr, weighted_sum
from formulations.engine.solution import Solution, judged
from instances import pictures
from instances.gavel.sharing import Allocation, Sharing
from instances.schema import BoolArray, FloatArray, IntArray

__all__ = [
    "Incidence",
    "SharingProgram",
    "at_once",
    "fullness",
    "incidence",
    "isolated_share",
    "jobs_that",
    "read_allocation",
    "shared_model",
    "values_of",
    "within_limits",
    "without_traces",
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
    """Which entries of X give which job how much."""
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
class _Block:
    """The rows of a constraint, one for each member of an index set, or a single equation without a set."""

    name: str
    over: str | None
    matrix: tuple[IndexArray, IndexArray, FloatArray]
    lower: FloatArray
    upper: FloatArray


@dataclass(frozen=True, eq=False)
class Requirement:
    """``weights[m] * throughput(m, X) - less >= lower`` for some jobs m.

    Attributes
    ----------
    name : str
    jobs : (rows,) int
    weights : (n,) float
    less : str, optional
        A variable.
    lower : (rows,) float
    """

    name: str
    jobs: IntArray
    weights: FloatArray
    less: str | None
    lower: FloatArray


@dataclass(frozen=True, eq=False)
class Stated:
    """A policy's part of its program, before it becomes rows.

    Attributes
    ----------
    requirements : list of Requirement
    budgets : list of (str, float array, float)
        Rows ``coefficients @ X == value``: name, coefficients and value.
    worth : (n, k) float, optional
        What one step/s of job m on type j adds to the objective.
    variables : dict
        Limits of the variables beside X.
    objective : str
        The variable that is maximised; "" where it is the worth.
    homogeneous : bool
        Whether the variable ``t`` multiplies every limit.
    """

    requirements: list[Requirement]
    budgets: list[tuple[str, FloatArray, float]]
    worth: FloatArray | None
    variables: dict[str, tuple[float, float]]
    objective: str
    homogeneous: bool


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
    """

    def __init__(self, instance: Sharing, *, largest: float | None = None) -> None:
        n, k = instance.num_jobs, instance.num_types
        self.instance = instance
        self.entries = incidence(instance)
        self._sets: dict[str, IntArray] = {"JOBS": np.arange(n), "POOLS": np.arange(len(instance.num_workers))}
        self._shares = "X" if largest is None else "Y"
        self._upper = np.where(instance.fits, 1.0 if largest is None else largest, 0.0).ravel()
        self._variables: dict[str, tuple[float, float]] = {}
        self._blocks: list[_Block] = []
        self._requirements: list[Requirement] = []
        self._budgets: list[tuple[str, FloatArray, float]] = []
        self._worth: FloatArray | None = None
        self._objective: tuple[str, FloatArray, str] | None = None
        if largest is not None:
            self.variable("t", lower=1)
        entries, rows = self.entries, len(instance.fits)
        self._limit("job_time", "JOBS", entries.job, entries.column, np.ones(len(entries.job)), np.ones(n))
        columns = np.arange(rows * k)
        workers = instance.row_scale_factors.astype(float).repeat(k)
        pools = instance.pools[columns % k]
        self._limit("pool_capacity", "POOLS", pools, columns, workers, instance.num_workers.astype(float))

    # --- what a policy adds ----------------------------------------------------------------------

    def variable(self, name: str, *, lower: float = -np.inf, upper: float = np.inf) -> None:
        """Add a variable beside X."""
        self._variables[name] = (lower, upper)

    def subset(self, name: str, jobs: IntArray) -> None:
        """Add a set of jobs, in increasing order, for constraints to have rows for."""
        self._sets[name] = jobs

    def throughput_rows(
        self, name: str, weights: FloatArray, *, over: str = "JOBS", less: str | None = None, lower: Any = 0.0
    ) -> None:
        """Add ``weights[m] * throughput(m, X) - less >= lower[m]`` for the jobs m of a set.

        Parameters
        ----------
        name : str
        weights : (n,) float
        over : str
            The set of jobs.
        less : str, optional
            A variable.
        lower : float or array
            One number for all rows, or one for each.
        """
        entries, jobs = self.entries, self._sets[over]
        self._requirements.append(Requirement(name, jobs, weights, less, np.broadcast_to(lower, len(jobs))))
        row_of = np.full(self.instance.num_jobs, -1)
        row_of[jobs] = np.arange(len(jobs))
        kept = np.flatnonzero(row_of[entries.job] >= 0)
        rows, columns = row_of[entries.job[kept]], entries.column[kept]
        values = entries.throughput[kept] * weights[entries.job[kept]]
        if less is not None:
            rows, columns, values = self._with(rows, columns, values, less, np.full(len(jobs), -1.0))
        self._add(name, over, csr(rows, columns, values, len(jobs)), lower, np.inf)

    def one_row(self, name: str, coefficients: FloatArray, value: float) -> None:
        """Add the row ``coefficients @ X == value``, with a coefficient for each column ``r * k + j``."""
        columns = np.arange(len(coefficients))
        self._budgets.append((name, coefficients, value))
        self._add(name, None, csr(np.zeros_like(columns), columns, coefficients, 1), value, value)

    def maximize(self, name: str, *, variable: str = "", worth: FloatArray | None = None) -> None:
        """Set the objective.

        Parameters
        ----------
        name : str
        variable : str, optional
            The variable to maximise.
        worth : (n, k) float, optional
            What one step/s of job m on type j adds, over all rows.
        """
        entries = self.entries
        self._worth = worth
        values = np.zeros(len(entries.job))
        if worth is not None:
            values = entries.throughput * worth[entries.job, entries.column % self.instance.num_types]
        cost = np.bincount(entries.column, weights=values, minlength=len(self._upper)).astype(float)
        self._objective = (name, cost, variable)

    def _limit(self, name: str, over: str, rows: Any, columns: Any, values: FloatArray, limits: FloatArray) -> None:
        if "t" in self._variables:
            rows, columns, values = self._with(rows, columns, values, "t", -limits)
        matrix = csr(rows, columns, values, len(limits))
        self._add(name, over, matrix, -np.inf, 0.0 if "t" in self._variables else limits)

    def _with(self, rows: Any, columns: Any, values: FloatArray, variable: str, coefficients: FloatArray) -> Any:
        """Entries of rows, with a variable's coefficients behind them."""
        column = len(self._upper) + list(self._variables).index(variable)
        return (
            np.concatenate([rows, np.arange(len(coefficients))]),
            np.concatenate([columns, np.full(len(coefficients), column)]),
            np.concatenate([values, coefficients]),
        )

    def _add(self, name: str, over: str | None, matrix: Any, lower: Any, upper: Any) -> None:
        count = len(matrix[0]) - 1
        self._blocks.append(_Block(name, over, matrix, np.full(count, lower, float), np.full(count, upper, float)))

    @property
    def stated(self) -> Stated:
        """What the policy has added, as it was stated."""
        homogeneous = "t" in self._variables
        assert self._objective is not None
        return Stated(self._requirements, self._budgets, self._worth, self._variables, self._objective[2], homogeneous)

    @property
    def constraints(self) -> list[str]:
        """Names of the constraints, in the order of their rows."""
        return [block.name for block in self._blocks]

    # --- the two faces ---------------------------------------------------------------------------

    def arrays(self) -> LinearProgram:
        """The program as HiGHS takes it."""
        assert self._objective is not None
        _, cost, variable = self._objective
        limits = np.array(list(self._variables.values()), float).reshape(-1, 2)
        blocks = self._blocks
        counts = np.concatenate([b.matrix[0][1:] - b.matrix[0][:-1] for b in blocks])
        return LinearProgram(
            sense="max",
            offset=0.0,
            cost=np.concatenate([cost, [float(name == variable) for name in self._variables]]),
            col_lower=np.concatenate([np.zeros(len(cost)), limits[:, 0]]),
            col_upper=np.concatenate([self._upper, limits[:, 1]]),
            integer=np.zeros(len(cost) + len(limits), bool),
            indptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
            index=np.concatenate([b.matrix[1] for b in blocks]),
            value=np.concatenate([b.matrix[2] for b in blocks]),
            row_lower=np.concatenate([b.lower for b in blocks]),
            row_upper=np.concatenate([b.upper for b in blocks]),
            constraints=[(_Named(b.name), [None] if b.over is None else self._sets[b.over].tolist()) for b in blocks],
        )

    def rows(self, name: str) -> slice:
        """Where the rows of a constraint are in :meth:`arrays`."""
        first = 0
        for block in self._blocks:
            if block.name == name:
                return slice(first, first + len(block.lower))
            first += len(block.lower)
        raise KeyError(name)

    def model(self) -> pyo.ConcreteModel:
        """The program as a Pyomo model.

        Sets JOBS, ROWS, TYPES, POOLS and the subsets; variables ``X[r, j]`` (or ``Y[r, j]`` and
        ``t``) and the policy's; constraints ``job_time[m]``, ``pool_capacity[p]`` and the policy's.
        """
        instance = self.instance
        model = pyo.ConcreteModel(name=instance.problem)
        model.instance = instance
        model.JOBS = pyo.RangeSet(0, instance.num_jobs - 1)
        model.ROWS = pyo.RangeSet(0, len(instance.fits) - 1)
        model.TYPES = pyo.RangeSet(0, instance.num_types - 1)
        model.POOLS = pyo.RangeSet(0, len(instance.num_workers) - 1)
        for name in list(self._sets)[2:]:
            model.add_component(name, pyo.Set(initialize=self._sets[name].tolist()))
        shares = pyo.Var(model.ROWS, model.TYPES, bounds=(0, float(self._upper.max())))
        model.add_component(self._shares, shares)
        variables = list(shares.values())
        for column in np.flatnonzero(self._upper == 0):
            variables[column].setub(0)
        for name, (lower, upper) in self._variables.items():
            bounds = tuple(None if np.isinf(limit) else limit for limit in (lower, upper))
            model.add_component(name, pyo.Var(bounds=bounds))
            variables.append(model.component(name))
        for block in self._blocks:
            model.add_component(block.name, self._constraint(model, block, variables))
        if self._objective is not None:
            name, cost, variable = self._objective
            worth = np.flatnonzero(cost)
            total = model.component(variable) if variable else weighted_sum(cost[worth], [variables[c] for c in worth])
            model.add_component(name, pyo.Objective(expr=total, sense=pyo.maximize))
        return model

    def _constraint(self, model: pyo.ConcreteModel, block: _Block, variables: list[Any]) -> pyo.Constraint:
        if block.over is not None:
            index = model.component(block.over)
            return Rows(index, block.matrix, variables, lower=block.lower, upper=block.upper)
        _, columns, values = block.matrix
        total = weighted_sum(values, [variables[column] for column in columns])
        return pyo.Constraint(expr=total == float(block.lower[0]))


def shared_model(instance: Sharing) -> tuple[pyo.ConcreteModel, Incidence, list[Any]]:
    """A Pyomo model with X and the shared constraints, for rows that only Pyomo states well.

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


def read_allocation(model: pyo.ConcreteModel) -> Allocation:
    """The plan in the values of ``X``, within the limits."""
    return within_limits(model.instance, values_of(model.X))


def isolated_share(instance: Sharing) -> Allocation:
    """The plan that every policy has at hand: feasible wherever nothing but the shared constraints is asked for."""
    return instance.isolated_share()


def at_once(
    instance: Sharing, plan: Allocation, value: float, why: str, status: Literal["optimal", "infeasible"] = "optimal"
) -> Solution:
    """The solution of an instance of which an argument tells the optimum, ``value``, or that there is no plan."""
    return judged(
        instance,
        plan if status == "optimal" else None,
        Result(status, None, value, None, 0.0, why, "argument"),
        began=time.perf_counter(),
        solver="none",
        solver_version="",
        method="argument",
    )


def jobs_that(chosen: BoolArray) -> str:
    """``job 2``, or ``jobs 0 and 2``: which of (n,) jobs are chosen, in words."""
    return pictures.jobs(np.flatnonzero(chosen))


def fullness(instance: Sharing, allocation: Allocation) -> float:
    """How full the fullest job or pool is: 1 at its limit, more beyond it."""
    job_time, workers = instance.loads(allocation)
    used = instance.num_workers > 0
    return max(float(job_time.max(initial=0.0)), float((workers[used] / instance.num_workers[used]).max(initial=0.0)))


def within_limits(instance: Sharing, fractions: FloatArray) -> Allocation:
    """An allocation from a solver's point, without what the solver's tolerance adds to it.

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


def without_traces(instance: Sharing, fractions: FloatArray) -> Allocation:
    """An allocation with 0 where X must be 0 or more, or must be 0, but for the solver's tolerance."""
    traces = np.abs(fractions) <= POINT_TOLERANCE * max(1.0, float(fractions.max(initial=0.0)))
    return Allocation(time_fractions=np.where(traces & ((fractions < 0) | ~instance.fits), 0.0, fractions))
