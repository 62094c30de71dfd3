"""Results of a replay: tables of the jobs, the decisions and the use of the GPUs, and metrics."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from instances.base import TOLERANCE, Instance
from instances.schema import FloatArray
from validation.errors import ConservationError

if TYPE_CHECKING:
    from validation.replay.engine import Jobs

__all__ = ["DECISIONS", "JOBS", "USAGE", "Books", "Replayed"]

JOBS: Mapping[str, str] = {
    "job": "str",
    "arrival": "float64",
    "started": "float64",
    "ended": "float64",
    "work": "float64",
    "fastest": "float64",
    "gpu_seconds": "float64",
    "ran": "float64",
    "preemptions": "int64",
    "restarts": "int64",
    "migrations": "int64",
    "deadline": "float64",
    "met": "boolean",
    "turned_away": "bool",
    "slowdown": "float64",
    "rho": "float64",
}
"""Columns of the table of jobs and their types; a setting may add some."""

DECISIONS: Mapping[str, str] = {
    "number": "int64",
    "time": "float64",
    "problem": "str",
    "instance": "str",
    "jobs": "int64",
    "algorithm": "str",
    "instead": "bool",
    "jittered": "bool",
    "status": "str",
    "value": "float64",
    "bound": "float64",
    "optimum": "float64",
    "gap": "float64",
    "gap_most": "float64",
    "seconds": "float64",
    "reason": "str",
}
"""Columns of the table of decisions."""

USAGE: Mapping[str, str] = {
    "time": "float64",
    "gpus": "float64",
    "capacity": "float64",
    "waiting": "int64",
    "running": "int64",
}
"""Columns of the table of use."""


@dataclass(frozen=True, eq=False)
class Replayed:
    """A replay that has ended.

    Attributes
    ----------
    jobs : DataFrame
        A row for each job, in the order of the trace: ``job`` (name), ``arrival``, ``started``, ``ended`` (s; NaN where
        it did not), ``work``, ``fastest`` (work/s), ``gpu_seconds`` held, ``ran`` (s with any GPUs), ``preemptions``,
        ``restarts``, ``migrations``, ``deadline`` (s; NaN without), ``met`` (NA without), ``turned_away``,
        ``slowdown`` (completion time over the time at its greatest rate) and ``rho`` (completion time over that on an
        equal share of the cluster, with as many sharing as there were; NaN where the setting does not know), and the
        setting's own columns.
    decisions : DataFrame
        A row for each instance that was asked: ``number``, ``time`` (s), ``problem``, ``instance`` (digest, where it is
        kept or its gap is known), ``jobs`` in it, ``algorithm``, ``instead`` (whether it stepped in for one without a
        plan), ``jittered`` (whether it saw weights off by a jitter, so that ties fall otherwise), ``status``,
        ``value``, ``bound``, ``optimum`` (NaN where it is not proven), ``gap`` and ``gap_most`` (the interval of
        :mod:`validation.kernel.gaps`), ``seconds``, ``reason``.
    usage : DataFrame
        A step function: from each ``time`` on so many ``gpus`` are held of the ``capacity`` there is, and so many jobs
        are ``waiting`` and ``running``.
    kept : mapping of int to Instance
        Instances by the number of their decision.
    """

    jobs: pd.DataFrame
    decisions: pd.DataFrame
    usage: pd.DataFrame
    kept: Mapping[int, Instance[Any]] = field(default_factory=dict)

    def metrics(self) -> dict[str, float]:
        """Return the metrics of the replay; times in seconds, NaN where there is nothing to measure.

        ======================  ===========================================================================
        ``jobs``, ``ended``     jobs of the trace, and those that were run to their end
        ``turned_away``         jobs that were not
        ``average_jct``,        completion times, end less arrival, of the jobs that ended
        ``median_jct``,
        ``p99_jct``
        ``average_wait``        from arrival to the first GPU
        ``makespan``            from the first arrival to the last end
        ``deadlines_met``       part of the jobs with a deadline that ended by then; those turned away missed it
        ``preemptions``,        of all jobs
        ``restarts``,
        ``migrations``
        ``utilisation``         GPU-seconds held over those that there were until the last end
        ``gpu_seconds``         held by all jobs
        ``fairness``            Jain's index of the slowdowns, (sum x)^2 / (n sum x^2): 1 where all are alike
        ``worst_rho``,          finish-time fairness rho, the greatest and the mean
        ``average_rho``
        ``decisions``           instances that were asked
        ``instead``             of those, the ones in which another stepped in
        ``average_gap``,        of the decisions whose optimum is proven
        ``worst_gap``
        ``seconds``             that decisions took
        ======================  ===========================================================================
        """
        jobs = self.jobs
        ended = jobs[jobs["ended"].notna()]
        jct = (ended["ended"] - ended["arrival"]).to_numpy()
        first = float(jobs["arrival"].min()) if len(jobs) else math.nan
        last = float(ended["ended"].max()) if len(ended) else math.nan
        with_deadline = jobs[jobs["deadline"].notna()]
        slowdown, rho = (
            column[np.isfinite(column)] for column in (ended["slowdown"].to_numpy(), ended["rho"].to_numpy())
        )
        gap = self.decisions["gap"][self.decisions["optimum"].notna()].to_numpy()
        square = len(slowdown) * float((slowdown**2).sum())

        def over(values: FloatArray, what: Any) -> float:
            return float(what(values)) if len(values) else math.nan

        return {
            "jobs": float(len(jobs)),
            "ended": float(len(ended)),
            "turned_away": float(jobs["turned_away"].sum()),
            "average_jct": over(jct, np.mean),
            "median_jct": over(jct, np.median),
            "p99_jct": over(jct, lambda values: np.percentile(values, 99)),
            "average_wait": over((ended["started"] - ended["arrival"]).to_numpy(), np.mean),
            "makespan": last - first,
            "deadlines_met": float(with_deadline["met"].mean()) if len(with_deadline) else math.nan,
            "preemptions": float(jobs["preemptions"].sum()),
            "restarts": float(jobs["restarts"].sum()),
            "migrations": float(jobs["migrations"].sum()),
            "utilisation": self._utilisation(last),
            "gpu_seconds": float(jobs["gpu_seconds"].sum()),
            "fairness": float(slowdown.sum()) ** 2 / square if square else math.nan,
            "worst_rho": over(rho, np.max),
            "average_rho": over(rho, np.mean),
            "decisions": float(len(self.decisions)),
            "instead": float(self.decisions["instead"].sum()),
            "average_gap": over(gap, np.mean),
            "worst_gap": over(gap, np.max),
            "seconds": float(self.decisions["seconds"].sum()),
        }

    def _utilisation(self, last: float) -> float:
        times = np.minimum(np.append(self.usage["time"].to_numpy(), last), last)
        lengths = np.diff(times)
        there = float(lengths @ self.usage["capacity"].to_numpy())
        return float(lengths @ self.usage["gpus"].to_numpy()) / there if there > 0 else math.nan


class Books:
    """Records of a run: of each job, (n,) arrays; of the cluster, a step function."""

    def __init__(self, num_jobs: int) -> None:
        self.started, self.ended = np.full(num_jobs, np.nan), np.full(num_jobs, np.nan)
        self.equal_end = np.full(num_jobs, np.nan)
        self.service, self.ran = np.zeros(num_jobs), np.zeros(num_jobs)
        self.preemptions, self.restarts, self.migrations = np.zeros((3, num_jobs), np.int64)
        self.turned_away = np.zeros(num_jobs, bool)
        self.steps: list[tuple[float, float, float, int, int]] = []

    def note(self, time: float, gpus: float, capacity: float, waiting: int, running: int) -> None:
        """Note the use of the cluster from ``time`` on."""
        entry = (time, gpus, capacity, waiting, running)
        if self.steps and self.steps[-1][0] == time:
            self.steps.pop()
        if not self.steps or self.steps[-1][1:] != entry[1:]:
            self.steps.append(entry)

    def close(self, now: float) -> None:
        """Compare the jobs' GPU-seconds with the cluster's.

        Raises
        ------
        ConservationError
        """
        times = np.array([step[0] for step in self.steps] + [now])
        used = float(np.diff(times) @ np.array([step[1] for step in self.steps]))
        held = float(self.service.sum())
        if abs(used - held) > TOLERANCE * max(used, held) * max(1, len(self.steps)):
            raise ConservationError("gpu_seconds", f"the jobs held {held:.12g}, the cluster gave {used:.12g}")

    def jobs_table(self, jobs: Jobs) -> pd.DataFrame:
        """Return the table of jobs."""
        deadlines = jobs.deadlines
        assert deadlines is not None
        jct = self.ended - jobs.arrivals
        with np.errstate(divide="ignore", invalid="ignore"):
            alone = np.where(jobs.work > 0, jobs.work / jobs.fastest, 0.0)
            slowdown, rho = jct / alone, jct / (self.equal_end - jobs.arrivals)
        there = np.isfinite(deadlines)
        met = pd.array(self.ended <= deadlines, dtype="boolean")
        met[~there] = pd.NA
        columns = {
            "job": jobs.names,
            "arrival": jobs.arrivals,
            "started": self.started,
            "ended": self.ended,
            "work": jobs.work,
            "fastest": jobs.fastest,
            "gpu_seconds": self.service,
            "ran": self.ran,
            "preemptions": self.preemptions,
            "restarts": self.restarts,
            "migrations": self.migrations,
            "deadline": np.where(there, deadlines, np.nan),
            "met": met,
            "turned_away": self.turned_away,
            "slowdown": slowdown,
            "rho": rho,
        }
        table = {name: pd.Series(columns[name], dtype=kind) for name, kind in JOBS.items()}
        return pd.DataFrame({**table, **{name: np.asarray(values) for name, values in jobs.columns.items()}})

    def usage_table(self) -> pd.DataFrame:
        """Return the table of use."""
        columns = list(zip(*self.steps, strict=True)) or [()] * len(USAGE)
        return pd.DataFrame(
            {name: pd.Series(column, dtype=kind) for (name, kind), column in zip(USAGE.items(), columns, strict=True)}
        )
