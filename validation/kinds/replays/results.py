"""The results of a study of replays: its tables, and what they say of pairs of decision makers."""

from __future__ import annotations

import html
import io
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from instances.files import write_whole
from validation.catalogue import EXACT
from validation.formatting import percent, span
from validation.kernel.kind import Warn
from validation.kernel.store import Record, content_of, require_record, rows_of, set_aside, write_json
from validation.kinds.replays import paired
from validation.kinds.replays.records import CELL, ENDED, OFFLINE, REPLAYS, TABLES, TABLES_FOLDER, table_file

if TYPE_CHECKING:
    # Imported where a table is made: a process that has pandas takes twice as long to fork.
    import pandas as pd

__all__ = ["Replays", "collect", "parquet"]

OPTIMUM, BOUND, CONTRADICTED = "offline optimum", "offline bound", "contradicted"
"""What a bound on all schedules is."""

DEADLINES = "deadlines_met"
"""The metric of which more is better."""

ROUNDING = 1e-6
"""Part of a bound by which a replay may be beyond it, or short of it and still attain it: the solver's tolerance."""

_WHERE = tuple(name for name in CELL if name not in ("key", "problem"))
"""Columns of every table that say what replay a row is of."""


@dataclass(frozen=True, repr=False)
class Replays:
    """The results of a study of replays.

    Attributes
    ----------
    directory : Path
        Where everything is stored.
    rows : DataFrame
        One row for each replay: what it is of, how it ended, and its metrics; see ``docs/replay.md``.
    metadata : dict
        Versions, machine, command, commit, counts.
    """

    directory: Path
    rows: pd.DataFrame
    metadata: dict[str, Any]

    @property
    def report(self) -> Path:
        """Path of the HTML report."""
        return self.directory / "report.html"

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """The jobs of all replays."""
        return self._table("jobs")

    @cached_property
    def decisions(self) -> pd.DataFrame:
        """The decisions of all replays."""
        return self._table("decisions")

    @cached_property
    def usage(self) -> pd.DataFrame:
        """The use of the GPUs in all replays."""
        return self._table("usage")

    @cached_property
    def offline(self) -> pd.DataFrame:
        """Bounds by hindsight on the jobs of each trace, window and seed (:mod:`validation.replay.offline`).

        A row for each ``metric``: the ``bound`` that no schedule beats and its ``proof``, the ``best`` of the replays
        and its ``policy``, and ``kind``: "offline optimum" where the bound is proven to be attained, or a replay
        attains it, "contradicted" where one beats it (one of the two is wrong), else "offline bound".
        """
        return self._table(OFFLINE)

    def beside_offline(self) -> pd.DataFrame:
        """Compare the decision makers with what hindsight could do, on average over the runs of each trace.

        Returns
        -------
        DataFrame
            For each trace, metric and decision maker whose replays have all ended: ``value``, ``bound``, ``excess``
            (what lies between, relative to the bound; of deadlines met the difference), ``kind`` (that of a bound
            where it is of one run, or contradicted) and ``proof`` (each once).
        """
        import pandas as pd

        found = []
        told = self.rows[self.rows["status"] == ENDED]
        for (trace, metric), bounds in self.offline.groupby(["trace", "metric"], sort=False):
            kinds = set(bounds["kind"])
            kind = next(one for one in (CONTRADICTED, BOUND, OPTIMUM) if one in kinds)
            bound = float(bounds["bound"].mean())
            for policy, rows in told[told["trace"] == trace].groupby("policy", sort=False):
                of_runs = rows.groupby(["window", "seed"])[str(metric)].mean()
                if len(of_runs) < len(bounds) or of_runs.isna().any():
                    continue
                value = float(of_runs.mean())
                beyond = bound - value if metric == DEADLINES else value - bound
                excess = beyond if metric == DEADLINES or bound == 0 else beyond / bound
                proof = ", ".join(dict.fromkeys(bounds["proof"]))
                found.append([trace, metric, policy, value, bound, excess, kind, proof])
        return pd.DataFrame(found, columns=["trace", "metric", "policy", "value", "bound", "excess", "kind", "proof"])

    def _table(self, name: str) -> pd.DataFrame:
        import pandas as pd

        return pd.read_parquet(self.directory / f"{name}.parquet")

    @property
    def policies(self) -> list[str]:
        """Decision makers, in the order in which they were asked for."""
        return [*self.metadata["asked"]["policies"]]

    @property
    def reference(self) -> str:
        """The decision maker that the others are compared with."""
        return EXACT if EXACT in self.policies else self.policies[0]

    def averages(self) -> pd.DataFrame:
        """Means of the metrics over the replays of each trace and decision maker, with their intervals.

        See :func:`validation.kinds.replays.paired.averages`.
        """
        return paired.averages(self.rows[self.rows["status"] == ENDED], METRICS)

    def differences(self) -> pd.DataFrame:
        """Compare the decision makers with :attr:`reference`, paired by job, for each trace.

        All intervals hold together: see :func:`validation.kinds.replays.paired.differences`.
        """
        many = sum(paired.comparisons(jobs, self.reference) for _, jobs in self.jobs.groupby("trace", sort=False))
        level = paired.corrected(many)
        return _by_trace(self.jobs, lambda jobs: paired.differences(jobs, self.reference, level=level))

    def gaps(self) -> pd.DataFrame:
        """Describe the distribution of the gaps of single decisions, for each trace.

        See :func:`validation.kinds.replays.paired.gaps`.
        """
        asked = self.decisions[self.decisions["problem"] == self.metadata["asked"]["problem"]]
        return _by_trace(asked, paired.gaps)

    def gap_points(self) -> pd.DataFrame:
        """Mean gap of each run and decision maker, and its cost: :func:`validation.kinds.replays.paired.gap_points`.

        Nothing without the exact model among the decision makers.
        """
        asked = self.decisions[self.decisions["problem"] == self.metadata["asked"]["problem"]]
        jobs = self.jobs if self.reference == EXACT else self.jobs[:0]
        return paired.gap_points(jobs, asked, EXACT)

    def cost_of_gaps(self) -> pd.DataFrame:
        """Estimate by how many per cent 1 % of gap changes the average completion time, over all traces.

        See :func:`validation.kinds.replays.paired.cost_of_gaps`.
        """
        return paired.cost_of_gaps(self.gap_points(), [one for one in self.policies if one != self.reference])

    def overview(self) -> pd.DataFrame:
        """Return the metrics as people read them; those that are 0 everywhere are left out."""
        import pandas as pd

        found, lines = self.averages(), []
        gaps = self.gaps().set_index(["trace", "policy"])["mean"].map(percent).to_dict()
        some = set(found.loc[found["mean"] != 0, "metric"])
        for (trace, policy), group in found.groupby(["trace", "policy"], sort=False):
            means = dict(zip(group["metric"], group["mean"], strict=True))
            shown = {SHOWN[name][0]: SHOWN[name][1](means[name]) for name in SHOWN if name in some and name in means}
            lines.append({"trace": trace, "policy": policy, **shown, "gap": gaps.get((trace, policy), "–")})
        for line in self._offline_lines(found, some):
            last = max(
                (at for at, other in enumerate(lines) if other["trace"] == line["trace"]), default=len(lines) - 1
            )
            lines.insert(last + 1, line)
        return pd.DataFrame(lines).fillna("–")

    def _offline_lines(self, averages: pd.DataFrame, some: set[str]) -> list[dict[str, str]]:
        """Describe what hindsight could do, a line for each trace, as people read it: a bound has the sign of one."""
        lines = []
        runs = averages.groupby("trace")["runs"].max()
        for trace, bounds in self.offline.groupby("trace", sort=False):
            shown = {}
            optimum = (bounds["kind"] == OPTIMUM).all()
            for metric, of_metric in bounds.groupby("metric", sort=False):
                # Of fewer runs than the decision makers' it would be a mean of others.
                if metric in some and len(of_metric) == runs.get(trace):
                    name, words = SHOWN[str(metric)]
                    sign = "" if (of_metric["kind"] == OPTIMUM).all() else "≤ " if metric == DEADLINES else "≥ "
                    shown[name] = sign + words(float(of_metric["bound"].mean()))
            if shown:
                lines.append({"trace": str(trace), "policy": OPTIMUM if optimum else BOUND, **shown, "gap": "–"})
        return lines

    def __repr__(self) -> str:
        told = self.metadata
        bad = f", {told['failed']} failed" if told["failed"] else ""
        head = f"Replays: {told['cells_ended']} of {told['cells']} in {self.directory}{bad}"
        return "\n".join([head, self.overview().to_string(index=False)])

    def _repr_html_(self) -> str:
        head = html.escape(repr(self).splitlines()[0])
        # A colon would begin a scheme, such as javascript.
        link = quote(os.fsencode(self.report))
        return f'<p>{head}; <a href="{link}">report</a></p>{self.overview().to_html(index=False)}'


def _three_digits(value: float) -> str:
    return "–" if value != value else f"{value:.3g}"


def _count(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == round(value) else f"{value:.3g}"


SHOWN: Mapping[str, tuple[str, Any]] = {
    "average_jct": ("average JCT", span),
    "median_jct": ("median", span),
    "p99_jct": ("99th percentile", span),
    "makespan": ("makespan", span),
    "deadlines_met": ("deadlines met", percent),
    "preemptions": ("preemptions", _count),
    "instead": ("decided by another", _count),
    "utilisation": ("utilisation", percent),
    "fairness": ("fairness", _three_digits),
    "worst_rho": ("worst ρ", _three_digits),
}
"""Metrics that tables show, what they call them, and how."""

METRICS = tuple(SHOWN)


def _by_trace(table: pd.DataFrame, made: Callable[[pd.DataFrame], pd.DataFrame]) -> pd.DataFrame:
    """Apply a function to the rows of each trace, and put the results in one table."""
    import pandas as pd

    parts = [made(rows).assign(trace=trace) for trace, rows in table.groupby("trace", sort=False)]
    if not parts:
        return made(table).assign(trace=[])
    found = pd.concat(parts, ignore_index=True)
    return found[["trace", *(name for name in found if name != "trace")]]


# --- from the files -----------------------------------------------------------------------------


def collect(directory: str | os.PathLike[str], warn: Warn = warnings.warn) -> Replays:
    """Write tables and metadata of a study of replays, finished or not, from its log and what is stored.

    Parameters
    ----------
    directory : path
    warn : callable, optional
        Told of each line of the log that is damaged, and of each replay whose tables are; both are passed over.

    Raises
    ------
    StudyError
        When the directory holds no such study.
    """
    directory = Path(directory)
    record, told = require_record(directory, REPLAYS), list[str]()
    rows = {row["key"]: row for row in rows_of(directory, REPLAYS, record.cells, told.append)}
    parts: dict[str, list[pd.DataFrame]] = {name: [] for name in TABLES}
    for key in [key for key in record.cells.numbers if key in rows and rows[key]["tables"] is not None]:
        hashes = rows[key]["tables"]
        contents = {name: content_of(directory / table_file(key, name), hashes[name]) for name in TABLES}
        if None in contents.values():
            told.append(
                f"{directory / TABLES_FOLDER}: tables of a replay are damaged; the study's command runs it again"
            )
            del rows[key]
            continue
        for name, content in contents.items():
            parts[name].append(_with_cell(content or b"", rows[key]))
    for line in told:
        warn(line)
    ended = [rows[key] for key in record.cells.numbers if key in rows]
    table = _rows(row for row in ended if row["policy"] != OFFLINE)
    metadata = _metadata(record, ended, len(told) + set_aside(directory))
    write_whole(directory / "results.parquet", parquet(table))
    write_whole(directory / f"{OFFLINE}.parquet", parquet(_bounds(ended, table)))
    for name in TABLES:
        write_whole(directory / f"{name}.parquet", parquet(_joined(name, parts[name])))
    write_json(directory / "metadata.json", metadata)
    return Replays(directory, table, metadata)


def _with_cell(content: bytes, row: Mapping[str, Any]) -> pd.DataFrame:
    import pandas as pd

    table = pd.read_parquet(io.BytesIO(content))
    where = pd.DataFrame({name: pd.Series([row[name]] * len(table)) for name in _WHERE})
    return pd.concat([where, table], axis=1)


def _joined(name: str, parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    import pandas as pd

    from validation.replay import replayed

    some = [part for part in parts if len(part)] or [*parts[:1]]
    columns = [*_WHERE, *getattr(replayed, name.upper())]
    return pd.concat(some, ignore_index=True) if some else pd.DataFrame(columns=columns)


def _bounds(rows: Iterable[Mapping[str, Any]], replays: pd.DataFrame) -> pd.DataFrame:
    """Table what hindsight could do, and what the replays make of it."""
    import pandas as pd

    found = []
    for row in rows:
        run = [row[name] for name in ("trace", "window", "seed")]
        of_run = replays[(replays[["trace", "window", "seed"]] == run).all(axis=1) & (replays["status"] == ENDED)]
        for metric, told in (row["bounds"] or {}).items():
            sign = -1 if metric == DEADLINES else 1
            known = of_run[of_run[metric].notna()] if metric in of_run else of_run[:0]
            first = known.sort_values(metric, ascending=sign == 1, kind="stable").iloc[:1]
            best, policy = (float(first[metric].iloc[0]), first["policy"].iloc[0]) if len(first) else (np.nan, "")
            short = sign * (best - told["value"])
            slack = ROUNDING * max(abs(told["value"]), abs(best))
            kind = CONTRADICTED if short < -slack else OPTIMUM if told["exact"] or short <= slack else BOUND
            found.append([*run, metric, told["value"], told["proof"], best, policy, kind])
    columns = ["trace", "window", "seed", "metric", "bound", "proof", "best", "policy", "kind"]
    return pd.DataFrame(found, columns=columns)


def _rows(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """One row for each replay."""
    import pandas as pd

    told = [*CELL, "status", "reason", "kept"]
    found = [
        {**{name: row[name] for name in told}, "replay_seconds": row["seconds"], **(row["metrics"] or {})}
        for row in rows
    ]
    return pd.DataFrame(found) if found else pd.DataFrame(columns=[*told, "replay_seconds", *METRICS])


def parquet(table: pd.DataFrame) -> bytes:
    """Write a table as the content of a file."""
    buffer = io.BytesIO()
    table.to_parquet(buffer, index=False)
    return buffer.getvalue()


def _metadata(record: Record, rows: Sequence[Mapping[str, Any]], damaged: int) -> dict[str, Any]:
    replays = [row for row in rows if row["policy"] != OFFLINE]
    return {
        "asked": record.asked,
        "cells": sum(policy != OFFLINE for policy in record.cells.columns["policy"]),
        "cells_ended": len(replays),
        "failed": sum(row["status"] != ENDED for row in replays),
        "bounds_failed": sum(row["status"] != ENDED for row in rows) - sum(row["status"] != ENDED for row in replays),
        "kept": sum(row["kept"] for row in rows),
        "damaged_lines": damaged,
        "finished": len(rows) == len(record.cells),
        **record.run,
        "runs": list(record.runs),
    }
