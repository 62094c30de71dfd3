"""The results of a study: its table with the gaps, its summary, and where they come from."""

from __future__ import annotations

import html
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from instances.files import write_whole
from validation.formatting import duration, gap_range
from validation.gaps import beats, gap_interval
from validation.study.cases import EXACT
from validation.study.store import LOG, Warn, read_log, require_study, set_aside, write_json

if TYPE_CHECKING:
    # Imported where a table is made: a process that has pandas takes twice as long to fork, and a study forks one
    # for every run of a heuristic.
    import pandas as pd

__all__ = ["Study", "collect", "read_kept", "summarize", "table_of"]


@dataclass(frozen=True, repr=False)
class Study:
    """The results of a study.

    Attributes
    ----------
    directory : Path
        Where everything is stored.
    rows : DataFrame
        One row for each cell; see ``docs/studies.md`` for the columns.
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

    @property
    def disagreements(self) -> pd.DataFrame:
        """Rows of heuristics that beat a proven bound, or of optima that a second way contradicts."""
        return self.rows[self.rows["disagreement"]]

    @property
    def verified(self) -> str:
        """How many optima second ways confirmed, left open and contradicted; empty where none was asked for."""
        return ", ".join(f"{times} {verdict}" for verdict, times in self.metadata["verification"].items())

    def summary(self) -> pd.DataFrame:
        """For each problem, source, size and heuristic: counts, gaps and times."""
        return summarize(self.rows)

    def overview(self) -> pd.DataFrame:
        """The summary as people read it: gaps in per cent, intervals where optimality was not proven."""
        summary = self.summary()
        shown = summary[[name for name in ("problem", "source", "size", "heuristic") if name in summary]].copy()
        if len(summary):
            for name in ("instances", "proven", "feasible"):
                shown[name] = summary[name]
            for name, kind in (("gap mean", "mean"), ("95%", "p95"), ("worst", "worst")):
                low, high = summary[f"gap_{kind}_low"], summary[f"gap_{kind}_high"]
                shown[name] = [gap_range(*ends) for ends in zip(low, high, strict=True)]
            shown["time"] = summary["median_seconds"].map(duration)
            shown["exact"] = summary["exact_median_seconds"].map(duration)
        return shown

    def __repr__(self) -> str:
        told = self.metadata
        head = f"Study of {told['cells_ended']} of {told['cells']} cells in {self.directory}"
        bad = [f"{told[name]} {word}" for name, word in _BAD.items() if told[name]]
        return "\n".join([f"{head}{''.join(f', {one}' for one in bad)}", self.overview().to_string(index=False)])

    def _repr_html_(self) -> str:
        head = html.escape(repr(self).splitlines()[0])
        # A colon would begin a scheme, such as javascript.
        link = quote(os.fsencode(self.report))
        return f'<p>{head}; <a href="{link}">report</a></p>{self.overview().to_html(index=False)}'


_BAD = {"failed": "failed", "disagreements": "oracle disagreements", "damaged_lines": "damaged lines of the log"}


def collect(directory: str | os.PathLike[str], warn: Warn = warnings.warn) -> Study:
    """Write table and metadata of a study, finished or not, from its log.

    Parameters
    ----------
    directory : path
    warn : callable, optional
        Told of each line of the log that is damaged, and passed over.

    Raises
    ------
    StudyError
        When the directory holds no study.
    """
    directory = Path(directory)
    study = require_study(directory)
    found = read_log(directory, study["cells"])
    for number, wrong in found.damaged:
        warn(f"{directory / LOG}, line {number}: {wrong}; passed over, the study's command computes its cell again")
    rows = table_of(study["cells"], found.rows)
    metadata = _metadata(study, rows, len(found.damaged) + set_aside(directory))
    write_whole(directory / "results.parquet", rows.to_parquet(index=False))
    write_json(directory / "metadata.json", metadata)
    return Study(directory, rows, metadata)


def read_kept(directory: Path, entry: str) -> dict[str, dict[str, Any]]:
    """What the log of a study keeps beside the table, as JSON, by the keys of the rows.

    Parameters
    ----------
    directory : Path
    entry : "plan" or "second"
        Plans that are small; what second ways found.
    """
    return {row["key"]: row[entry] for row in read_log(directory).rows if row.get(entry) is not None}


def table_of(cells: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The rows of a study with their gaps, one for each cell that has ended."""
    import pandas as pd

    latest = {row["key"]: row for row in rows}
    ended = [{**latest[cell["key"]], **cell} for cell in cells if cell["key"] in latest]
    return _with_gaps(pd.DataFrame(ended).reindex(columns=list(_COLUMNS)).astype(_COLUMNS))


_COLUMNS = {
    "problem": "string",
    "sense": "string",
    "source": "string",
    "size": "int64",
    "index": "int64",
    "instance": "string",
    "file": "string",
    "algorithm": "string",
    "status": "string",
    "value": "float64",
    "bound": "float64",
    "relaxation": "float64",
    "seconds": "float64",
    "engine_seconds": "float64",
    "solver": "string",
    "reason": "string",
    "verification": "string",
    "key": "string",
}


def _with_gaps(rows: pd.DataFrame) -> pd.DataFrame:
    """Add the exact side and the gap to the row of each heuristic."""
    exact = rows[rows["algorithm"] == EXACT].set_index("instance")[
        ["status", "value", "bound", "relaxation", "seconds"]
    ]
    exact = exact.add_prefix("exact_")
    rows = rows.join(exact, on="instance")
    rows["exact_status"], rows["verification"] = rows["exact_status"].fillna(""), rows["verification"].fillna("")
    values = rows[rows["status"].isin(["feasible", "optimal"])].groupby("instance")["value"]
    least, greatest = rows["instance"].map(values.min()), rows["instance"].map(values.max())
    rows["best_value"] = least.where(rows["sense"] == "min", greatest).astype(float)
    low, high, disagreement = [], [], []
    records: list[dict[str, Any]] = rows.to_dict("records")  # type: ignore[assignment]
    for row in records:
        gaps, wrong = (np.nan, np.nan), bool(row["verification"] == "contradicted")
        if row["algorithm"] != EXACT and row["status"] == "feasible":
            if row["exact_status"] in ("infeasible", "unbounded") or (
                np.isfinite(row["exact_bound"]) and beats(row["sense"], row["value"], row["exact_bound"])
            ):
                wrong = True
            elif row["exact_status"] == "optimal":
                gaps = gap_interval(row["value"], row["exact_value"], row["exact_value"])
            else:
                worst_bound = -np.inf if row["sense"] == "min" else np.inf
                bound = row["exact_bound"] if np.isfinite(row["exact_bound"]) else worst_bound
                gaps = gap_interval(row["value"], row["best_value"], bound)
        low.append(gaps[0])
        high.append(gaps[1])
        disagreement.append(wrong)
    rows["gap_low"], rows["gap_high"], rows["disagreement"] = low, high, np.array(disagreement, bool)
    rows["gap"] = rows["gap_low"].where(rows["gap_low"] == rows["gap_high"])
    return rows


def summarize(rows: pd.DataFrame) -> pd.DataFrame:
    """One row for each problem, source, size and heuristic.

    Columns: instances; proven (optima proven by the exact side); feasible, infeasible, declined
    and failed (of the heuristic); mean, 95th percentile and worst of the gap, each as the least
    and the greatest that the proven bounds allow; the median times of both sides, s.  The
    percentile is an observed gap: the smallest that at least 95% of the instances do not exceed.
    """
    import pandas as pd

    groups = []
    of_heuristics = rows[rows["algorithm"] != EXACT]
    for key, group in of_heuristics.groupby(["problem", "source", "size", "algorithm"], sort=False):
        entry = dict(zip(("problem", "source", "size", "heuristic"), key, strict=True))
        entry["instances"] = len(group)
        entry["proven"] = int((group["exact_status"] == "optimal").sum())
        for status in ("feasible", "infeasible", "declined", "failed"):
            entry[status] = int((group["status"] == status).sum())
        for end in ("low", "high"):
            gaps = group[f"gap_{end}"].dropna().to_numpy(float)
            entry[f"gap_mean_{end}"] = float(gaps.mean()) if len(gaps) else np.nan
            entry[f"gap_p95_{end}"] = float(np.quantile(gaps, 0.95, method="inverted_cdf")) if len(gaps) else np.nan
            entry[f"gap_worst_{end}"] = float(gaps.max()) if len(gaps) else np.nan
        entry["median_seconds"] = group["seconds"].median()
        entry["exact_median_seconds"] = group["exact_seconds"].median()
        entry["disagreements"] = int(group["disagreement"].sum())
        groups.append(entry)
    return pd.DataFrame(groups)


def _metadata(study: Mapping[str, Any], rows: pd.DataFrame, damaged: int) -> dict[str, Any]:
    cells = len(study["cells"])
    return {
        "asked": study["asked"],
        "cells": cells,
        "cells_ended": len(rows),
        "failed": int((rows["status"] == "failed").sum()),
        "disagreements": int(rows["disagreement"].sum()),
        "verification": {word: int(times) for word, times in rows["verification"].value_counts().items() if word},
        "damaged_lines": damaged,
        "finished": len(rows) == cells,
        **study["run"],
    }
