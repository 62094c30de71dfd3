"""A policy's program as jobs that meet in a few rows and one variable, and the way back to its columns and rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from formulations.gavel.algebra import Linear, Relation
from formulations.gavel.sharing import SharingProgram
from formulations.methods import GaveUp
from instances.schema import BoolArray, FloatArray, IntArray

__all__ = ["Jobs", "Translation"]


@dataclass(frozen=True, eq=False)
class Jobs:
    """A policy's program as jobs that meet in a few rows and one variable g.

    Attributes
    ----------
    speeds, gains : (k+1, n) float
        Left side of the job's own row, and the objective, per unit of time on each type; type 0 is idleness.
    usable : (k+1, n) bool
    widths : (n,) float
        Workers that a job holds.
    pools : (k,) int
    workers : (p,) float
    asked, asked_g : (n,) float
        The job's own row asks for ``asked + asked_g * g``; minus infinity where it has no row.
    time, time_g : float
        A job has ``time + time_g * g``, and each pool as much for each worker.
    g_lower, g_upper, g_gain : float
        Limits of g, and what one unit adds to the objective.
    prices : (k+1, n) float, optional
        What a job's time costs of a budget that must be spent.
    budget : float
    """

    speeds: FloatArray
    gains: FloatArray
    usable: BoolArray
    widths: FloatArray
    pools: IntArray
    workers: FloatArray
    asked: FloatArray
    asked_g: FloatArray
    time: float
    time_g: float
    g_lower: float
    g_upper: float
    g_gain: float
    prices: FloatArray | None
    budget: float

    @property
    def num_jobs(self) -> int:
        """Number of jobs, n."""
        return len(self.widths)

    @property
    def num_types(self) -> int:
        """Number of worker types, k."""
        return len(self.pools)

    def within(self, g: float) -> float:
        """Time of each job, and of each worker, at g."""
        return self.time + self.time_g * g

    def reach(self) -> FloatArray:
        """(n,) float: the greatest g at which each job's own row can be met."""
        room = self.speeds.max(axis=0) * self.time - self.asked
        per_g = self.asked_g - self.speeds.max(axis=0) * self.time_g
        reach: FloatArray = np.divide(
            room, per_g, out=np.full(len(room), np.inf), where=(per_g > 0) & np.isfinite(room)
        )
        return reach


@dataclass(frozen=True, eq=False)
class Translation:
    """A policy's program as jobs, and the way back.

    Attributes
    ----------
    jobs : Jobs
    policy : SharingProgram
    own_row : str, optional
        The constraint with a row for some jobs each.
    members : (rows,) int
        Those jobs.
    row_units : (n,) float
        The jobs' own rows are divided by it.
    g_unit : float
        And g.
    """

    jobs: Jobs
    policy: SharingProgram
    own_row: str | None
    members: IntArray
    row_units: FloatArray
    g_unit: float

    @classmethod
    def of(cls, policy: SharingProgram) -> Translation:
        """Read the jobs from the rows of a program.

        Raises
        ------
        GaveUp
            When the program is of another form.
        """
        instance = policy.instance
        n, k = instance.num_jobs, instance.num_types
        own = {name: row for name, row in policy.constraints.items() if name not in ("job_time", "pool_capacity")}
        rows = {name: row for name, row in own.items() if row.over is not None}
        budgets = [row for row in own.values() if row.over is None]
        if instance.num_pairs or max(len(rows), len(budgets), len(policy.variables)) > 1:
            raise GaveUp("jobs of this program meet in more than pools, a budget and a variable")
        usable = np.ones((k + 1, n), bool)
        usable[1:] = instance.fits.T
        cost = policy.cost
        speeds, units = np.zeros((k + 1, n)), np.ones(n)
        asked, asked_g, g_unit = np.full(n, -np.inf), np.zeros(n), 1.0
        homogeneous = isinstance(policy.within, Linear)
        members = np.zeros(0, np.intp)
        for row in rows.values():
            members = policy.members(row)
            coefficients, tied = _dense(row, n * k)
            speeds = _of_types(np.where(instance.fits, coefficients.reshape(n, k), 0.0))
            greatest = speeds.max(axis=0)
            if (greatest[members] <= 0).any():
                raise GaveUp("a job that is asked for something can run nowhere")
            units = np.where(greatest > 0, greatest, 1.0)
            speeds /= units
            asked[members] = row.lower / units[members]
            if tied:
                asked_g[members] = 1 / units[members]
                if not homogeneous and not np.any(row.lower):
                    g_unit = float(greatest[members].min())
        lower, upper = next(iter(policy.variables.values()), (0.0, 0.0))
        jobs = Jobs(
            speeds=speeds,
            gains=_of_types(np.where(instance.fits, cost[: n * k].reshape(n, k), 0.0)),
            usable=usable,
            widths=instance.scale_factors.astype(float),
            pools=instance.pools,
            workers=instance.num_workers.astype(float),
            asked=asked,
            asked_g=asked_g * g_unit,
            time=0.0 if homogeneous else 1.0,
            time_g=1.0 if homogeneous else 0.0,
            g_lower=lower / g_unit,
            g_upper=upper / g_unit,
            g_gain=float(cost[n * k :].sum()) * g_unit,
            prices=_of_types(_dense(budgets[0], n * k)[0].reshape(n, k)) if budgets else None,
            budget=float(budgets[0].lower[0]) if budgets else 0.0,
        )
        return cls(jobs, policy, next(iter(rows), None), members, units, g_unit)

    def asking(self, row_lower: FloatArray) -> Translation:
        """Return the same with other lower limits of the program's rows."""
        assert self.own_row is not None
        asked = self.jobs.asked.copy()
        asked[self.members] = row_lower[self.policy.rows(self.own_row)] / self.row_units[self.members]
        return replace(self, jobs=replace(self.jobs, asked=asked))

    def point(self, shares: FloatArray, g: float) -> FloatArray:
        """Values of the program's columns.

        Parameters
        ----------
        shares : (k, n) float
        g : float
        """
        x = shares.T.ravel()
        return np.append(x, g * self.g_unit) if self.policy.variables else x

    def duals(self, time: FloatArray, pools: FloatArray, speeds: FloatArray, budget: float) -> FloatArray:
        """Prices of the program's rows.

        Parameters
        ----------
        time, speeds : (n,) float
            Of the jobs' time, and of their own rows.
        pools : (p,) float
        budget : float
        """
        by_name = {"job_time": time, "pool_capacity": pools}
        scale = 1.0
        for name, row in self.policy.constraints.items():
            if name == self.own_row:
                prices = (speeds / self.row_units)[self.members]
                by_name[name] = -prices
                if self.jobs.g_gain and np.isinf(self.jobs.g_upper) and prices.any():
                    # Prices of any size are as good; these leave nothing for the variable.
                    scale = 1 / float(prices.sum())
            elif row.over is None:
                by_name[name] = np.array([budget])
        duals: FloatArray = np.concatenate([by_name[name] for name in self.policy.constraints]) * scale
        return duals


def _dense(relation: Relation, columns: int) -> tuple[FloatArray, bool]:
    """(columns,) float: the coefficients of rows that share no column, and whether they have a variable's, too."""
    indptr, index, value = relation.matrix
    coefficients = np.zeros(columns + 1)
    coefficients[index] = value
    tied = bool(len(index)) and bool((index[indptr[1:] - 1] == columns).all())
    return coefficients[:columns], tied


def _of_types(values: FloatArray) -> FloatArray:
    """(k+1, n) float: the (n, k) values of the types, with zeros for idleness above them."""
    # The jobs of a type side by side, as all that follows looks at them.
    by_type = np.zeros((values.shape[1] + 1, len(values)))
    by_type[1:] = values.T
    return by_type
