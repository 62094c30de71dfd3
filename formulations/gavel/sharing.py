"""The constraints that all of Gavel's policies share, section 3.1.

    0 <= X[r, j] <= 1, and 0 where row r is wider than the pool of type j
    job_time[m]:        sum of X[r, j] over the rows r that contain job m and types j  <= 1
    pool_capacity[p]:   sum of scale_factor[r] * X[r, j] over the types j of pool p    <= num_workers[p]

Rows 0 to n-1 are the jobs alone, the others the pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from formulations.linear import FloatArray, IndexArray, Rows, csr
from instances.gavel.sharing import Allocation, Sharing


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


def pool_rows(instance: Sharing) -> tuple[IndexArray, IndexArray, FloatArray]:
    """Sparse rows of ``pool_capacity``: workers of each pool that X uses."""
    rows = instance.num_jobs + instance.num_pairs
    return csr(
        np.tile(instance.pools, rows),
        np.arange(rows * instance.num_types),
        np.repeat(instance.row_scale_factors.astype(float), instance.num_types),
        len(instance.num_workers),
    )


def shared_model(instance: Sharing) -> tuple[pyo.ConcreteModel, Incidence, list[Any]]:
    """A model with X and the shared constraints, for a policy to add its own to.

    Returns
    -------
    model : ConcreteModel
        Sets JOBS, ROWS, TYPES, POOLS; variable ``X[r, j]``; constraints ``job_time`` and
        ``pool_capacity``.
    incidence : Incidence
    variables : list of VarData
        X[r, j] at position ``r * k + j``.
    """
    model = pyo.ConcreteModel(name=instance.problem)
    n, k = instance.num_jobs, instance.num_types
    model.JOBS = pyo.RangeSet(0, n - 1)
    model.ROWS = pyo.RangeSet(0, n + instance.num_pairs - 1)
    model.TYPES = pyo.RangeSet(0, k - 1)
    model.POOLS = pyo.RangeSet(0, len(instance.num_workers) - 1)
    model.X = pyo.Var(model.ROWS, model.TYPES, bounds=(0, 1))
    variables = list(model.X.values())
    for row, kind in np.argwhere(~instance.fits):
        variables[row * k + kind].setub(0)
    entries = incidence(instance)
    job_time = csr(entries.job, entries.column, np.ones(len(entries.job)), n)
    model.job_time = Rows(model.JOBS, job_time, variables, upper=1)
    model.pool_capacity = Rows(model.POOLS, pool_rows(instance), variables, upper=instance.num_workers)
    return model, entries, variables


def read_allocation(model: pyo.ConcreteModel) -> Allocation:
    """The plan in the values of ``X``; variables that no solver touched count as 0."""
    values = np.array([0.0 if v.value is None else v.value for v in model.X.values()])
    return Allocation(time_fractions=values.reshape(len(model.ROWS), len(model.TYPES)))
