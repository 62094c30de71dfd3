"""The results of a study: its table with the gaps, its summary, and where they come from."""

from __future__ import annotations

import contextlib
import functools
import html
import io
import itertools
import math
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from instances.files import write_whole
from instances.schema import nearest, quoted
from validation.errors import StudyError
from validation.formatting import duration, gap_range, number_range
from validation.kernel.gaps import beats, difference_interval, gap_interval, percentile_95
from validation.kernel.judging import NO_PLAN, worst
from validation.kernel.kind import Warn
from validation.kernel.records import Cells, file_of
from validation.kernel.store import Record, lines_of, require_record, rows_of, set_aside, write_json
from validation.kernel.workers import LIMITS
from validation.kinds.study.cases import EXACT
from validation.kinds.study.options import StudyOptions
from validation.kinds.study.records import CELL, STUDY, swept_of
from validation.kinds.study.sweeps import Label

if TYPE_CHECKING:
    # Imported where a table is made: a process that has pandas takes twice as long to fork, and a study forks one
    # for every run of a heuristic.
    import pandas as pd
    from matplotlib.axes import Axes

    from validation.kinds.study.pairs import SideBySide
    from validation.pages.latex import Table

__all__ = ["Study", "collect", "has_zeros", "read_kept", "summarize"]


GROUP = 2_500
"""Rows of the table that its file has together."""


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

    @classmethod
    def load(cls, directory: str | os.PathLike[str], warn: Warn = warnings.warn) -> Study:
        """Load the study that a directory holds, finished or not; nothing is written.

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
        record, told = require_record(directory, STUDY), list[str]()
        number, table = len(record.cells), _Table(record.cells)
        for row in rows_of(directory, STUDY, record.cells, told.append):
            table.add(row)
        for line in told:
            warn(line)
        record = replace(record, cells=Cells([]))
        with _memory_given_back():
            rows = table.rows()
        return cls(directory, rows, _metadata(record, number, rows, len(told) + set_aside(directory)))

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
        """Number of optima that second ways confirmed, left open and contradicted; empty where none was asked for."""
        return ", ".join(f"{times} {verdict}" for verdict, times in self.metadata["verification"].items())

    @property
    def failures(self) -> pd.DataFrame:
        """Rows of runs that went wrong; an exact solve that was stopped at a limit is not among them."""
        return self.rows[(self.rows["status"] == "failed") & ~self._stopped]

    @property
    def stopped(self) -> pd.DataFrame:
        """Rows of exact solves that had to be stopped at a limit of time or memory, and found nothing."""
        return self.rows[self._stopped]

    @property
    def _stopped(self) -> pd.Series[bool]:
        failed = (self.rows["algorithm"] == EXACT) & (self.rows["status"] == "failed")
        return failed & self.rows["reason"].str.startswith(LIMITS).fillna(False).astype(bool)

    @property
    def swept(self) -> tuple[str, ...]:
        """Names of the parameters of generators that the study sweeps."""
        return tuple(self.metadata["asked"].get("sweep") or ())

    def summary(self) -> Table:
        """Summarize each problem, source, size, value of what is swept, and heuristic: counts, gaps and times."""
        return summarize(self.rows, self.swept)

    def to_dict(self) -> dict[str, Any]:
        """Return the study as data: counts, where its files are, and the summary's rows; infinite gaps stay so."""
        summary = self.summary()
        return {
            "directory": str(self.directory),
            "report": str(self.report),
            "finished": self.metadata["finished"],
            "runs": self.metadata["cells"],
            "ended": self.metadata["cells_ended"],
            "failed": len(self.failures),
            "stopped": len(self.stopped),
            "disagreements": len(self.disagreements),
            "verification": self.metadata["verification"],
            "summary": summary.astype(object).where(summary.notna(), None).to_dict("records"),
        }

    def overview(self) -> Table:
        """Return the summary as people read it: gaps in per cent, intervals where optimality was not proven."""
        import pandas as pd

        summary = self.summary()
        names = ("problem", "source", "size", *self.swept, "heuristic")
        shown = summary[[name for name in names if name in summary]].copy()
        if len(summary):
            for name in self.swept:
                shown[name] = ["" if pd.isna(label) else str(label) for label in summary[name]]
            for name in ("instances", "proven", "without_plan", "feasible"):
                if name != "without_plan" or summary[name].any():
                    shown[name.replace("_", " ")] = summary[name]
            for name, kind in (("gap mean", "mean"), ("95th percentile", "p95"), ("worst", "worst")):
                low, high = summary[f"gap_{kind}_low"], summary[f"gap_{kind}_high"]
                shown[name] = [gap_range(*ends) for ends in zip(low, high, strict=True)]
            zeros = summary["problem"].isin({name for name, one in summary.groupby("problem") if has_zeros(one)})
            if zeros.any():
                low, high = summary["difference_mean_low"], summary["difference_mean_high"]
                differences = [number_range(*ends) for ends in zip(low, high, strict=True)]
                shown["difference mean"] = np.where(zeros, differences, "")
            shown["median time"] = summary["median_seconds"].map(duration)
            shown["exact time"] = summary["exact_median_seconds"].map(duration)
        return shown

    def plot(
        self,
        kind: str = "gaps",
        *,
        problem: str | None = None,
        ax: Axes | None = None,
        width: float | None = None,
    ) -> Axes:
        """Draw a picture of the study, with a legend; a notebook shows it.

        Parameters
        ----------
        kind : str
            "gaps", on what share of the instances each heuristic is at most how far from the optimum; "sizes", its mean
            and worst gap at each size; "times", the median times at each size; "profile", on what share of the
            instances each side answers within what time.  The name of a swept parameter: as "sizes", along its values.
        problem : str, optional
            Which one, where several were studied.
        ax : Axes, optional
            Where to draw; without, on a figure of its own, which pyplot knows nothing of.  ``study.plot().figure`` is
            that figure, with ``savefig("gaps.pdf")``, in which letters are TrueType.
        width : float, optional
            Of a figure of its own, in inches; 3.4 is a column of many papers.

        Raises
        ------
        StudyError
            When there is no such kind or problem.
        """
        # They bring Matplotlib.
        from matplotlib import rc_context

        from validation.pages.paper import NARROW, fit_labels, new_axes
        from validation.pages.plots import KINDS, plot_sizes

        rows = self._of(problem)
        self._check_kind(kind)
        if width is not None and not 0.5 <= width <= 100:
            raise StudyError(f"width: got {width!r}, must be inches, from 0.5 to 100")
        draw = KINDS.get(kind) or functools.partial(plot_sizes, along=kind)
        with rc_context({"font.size": 8} if width is not None and width < NARROW else None):
            ax = ax or new_axes(width)
            draw(ax, rows, by=self.swept)
        fit_labels(ax)
        return ax

    def caption(self, kind: str = "gaps", *, problem: str | None = None) -> str:
        """Return a caption for :meth:`plot`: what is drawn, of how many instances, and the command that drew them.

        Parameters
        ----------
        kind, problem
            As for :meth:`plot`.

        Raises
        ------
        StudyError
            When there is no such kind or problem.
        """
        from validation.pages.plots import READINGS

        rows = self._of(problem)
        self._check_kind(kind)
        title, reading = READINGS.get(kind, READINGS["sizes"])
        exact = rows[rows["algorithm"] == EXACT]
        proven = int((exact["status"] == "optimal").sum())
        versions = self.metadata["versions"]
        return (
            f"{title.format('size' if kind in READINGS else kind)} of {rows['problem'].iloc[0]}. {reading} "
            f"{len(exact)} instances, {proven} of them with a proven optimum. {self._asked()}; scheduling-formulations "
            f"{versions['scheduling-formulations']}, HiGHS {versions['highspy']}."
        )

    def _check_kind(self, kind: str) -> None:
        from validation.pages.plots import KINDS

        if kind not in KINDS and kind not in self.swept:
            there = ", ".join(map(repr, (*KINDS, *self.swept)))
            raise StudyError(f"kind: got {quoted(kind)}{nearest(str(kind), KINDS)}, must be one of {there}")

    def _asked(self) -> str:
        """Return the command of the study or, where it was made in Python, the call with what was chosen."""
        path, _, words = self.metadata["command"].partition(" ")
        if Path(path).name == "optgap":
            return f"optgap {words}"
        options = {name: value for name, value in self.metadata["asked"].items() if name != "heuristics"}
        usual = {one.name: one.default for one in StudyOptions.fields()}
        chosen = [f"{name}={value!r}" for name, value in options.items() if value not in (None, usual.get(name))]
        return f"gap_study({', '.join(chosen)})"

    def compare(self, *heuristics: str, problem: str | None = None, seed: int = 0) -> SideBySide:
        """Compare heuristics two by two on the instances that both were run on: ``study.compare("a", "b")``.

        Gaps are subtracted instance by instance.  Where several comparisons of a problem are made at once, their
        intervals are so much wider that all of them hold together at 95 % (Bonferroni).

        Parameters
        ----------
        *heuristics : str
            Two or more; all by default.
        problem : str, optional
            Only this one of those studied.
        seed : int
            Of the bootstrap: the same study has the same intervals.

        Raises
        ------
        StudyError
            When a heuristic or the problem is unknown, or there is nothing to compare.
        """
        from validation.kinds.study.pairs import compare_heuristics

        rows = self.rows if problem is None else self._of(problem)
        return compare_heuristics(self.directory, rows, heuristics, seed=seed)

    def _of(self, problem: str | None) -> pd.DataFrame:
        """Return the rows of the one problem that is meant."""
        problems = list(dict.fromkeys(self.rows["problem"]))
        if not problems:
            raise StudyError(f"{self.directory}: no run has ended that could be drawn")
        if problem is None and len(problems) > 1:
            raise StudyError(f"problem: name the one to be drawn, there are {', '.join(problems)}")
        if problem is not None and problem not in problems:
            raise StudyError(
                f"problem: got {quoted(problem)}{nearest(problem, problems)}, there are {', '.join(problems)}"
            )
        return self.rows[self.rows["problem"] == problem] if problem else self.rows

    def __repr__(self) -> str:
        told = self.metadata
        unfinished = "" if told["finished"] else ", unfinished"
        head = f"Study of {told['cells_ended']} of {told['cells']} cells in {self.directory}{unfinished}"
        counts = {
            "failed": len(self.failures),
            "stopped at a limit": len(self.stopped),
            "oracle disagreements": told["disagreements"],
            "damaged lines of the log": told["damaged_lines"],
        }
        bad = [f"{times} {word}" for word, times in counts.items() if times]
        return "\n".join([f"{head}{''.join(f', {one}' for one in bad)}", self.overview().to_string(index=False)])

    def _repr_html_(self) -> str:
        head = html.escape(repr(self).splitlines()[0])
        # A colon would begin a scheme, such as javascript.
        link = quote(os.fsencode(self.report))
        return f'<p>{head}; <a href="{link}">report</a></p>{self.overview().to_html(index=False)}'


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
    study = Study.load(directory, warn)
    with _memory_given_back():
        write_whole(study.directory / "results.parquet", [_parquet(study.rows)])
    write_json(study.directory / "metadata.json", study.metadata)
    return study


def read_kept(directory: Path, entry: str, keys: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Read what the log of a study keeps beside the table, as JSON, by the keys of the rows.

    Parameters
    ----------
    directory : Path
    entry : "plan" or "second"
        Plans that are small; what second ways found.
    keys : iterable of str
        Of the rows that it is wanted of.
    """
    wanted = set(keys)
    return {
        line.row["key"]: line.row[entry]
        for line in lines_of(directory, STUDY, keys=wanted)
        if line.row.get("key") in wanted and line.row.get(entry) is not None
    }


def _parquet(rows: pd.DataFrame) -> memoryview:
    """Write the table as a file; some rows at a time, because Arrow makes another copy of what it writes."""
    import pyarrow
    from pyarrow.parquet import ParquetWriter

    schema, file = pyarrow.Schema.from_pandas(rows, preserve_index=False), io.BytesIO()
    with ParquetWriter(file, schema) as writer:
        for start in range(0, len(rows) or 1, GROUP):
            some = rows.iloc[start : start + GROUP]
            # Threads would each keep memory of their own.
            writer.write_table(pyarrow.Table.from_pandas(some, schema, preserve_index=False, nthreads=1))
    return file.getbuffer()


@contextlib.contextmanager
def _memory_given_back() -> Iterator[None]:
    """Take Arrow's memory from the system, which gets it back: its own pools keep 40 MB of 100,000 rows."""
    import pyarrow

    pool = pyarrow.default_memory_pool()
    pyarrow.set_memory_pool(pyarrow.system_memory_pool())
    try:
        yield
    finally:
        pyarrow.set_memory_pool(pool)


class _Table:
    """The rows of a study, column by column: as dictionaries, 100,000 would take a gigabyte."""

    def __init__(self, cells: Cells) -> None:
        self.cells = cells
        self.columns: dict[str, Any] = {
            name: np.full(len(cells), np.nan) if kind == "float64" else [None] * len(cells)
            for name, kind in _COLUMNS.items()
            if name not in CELL
        }

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a row of the log, in the place of one before of the same cell."""
        number = self.cells.numbers[row["key"]]
        for name, column in self.columns.items():
            value = row.get(name)
            # Many rows say the same.
            column[number] = sys.intern(value) if isinstance(value, str) else value
        if row.get("infinite"):
            self.columns["value"][number] = worst(row["sense"])

    def rows(self) -> pd.DataFrame:
        """One row for each cell that has ended, with its gaps; the cells, and what was added, are given away."""
        import pandas as pd

        swept = swept_of(self.cells)
        columns = {**self.cells.columns, **self.columns}
        del self.cells, self.columns
        ended = [number for number, status in enumerate(columns["status"]) if status is not None]
        instances = dict(zip(columns["instance"], columns["problem"], strict=True))
        files = {instance: file_of(problem, instance) for instance, problem in instances.items()}
        columns["file"] = [files[instance] for instance in columns["instance"]]
        frame: dict[str, Any] = {}
        for name in (*_OF_INSTANCE, *swept, *(name for name in _COLUMNS if name not in _OF_INSTANCE)):
            column = columns.pop(name)
            kind = _COLUMNS[name] if name in _COLUMNS else _kind_of(column)
            frame[name] = pd.array([column[number] for number in ended], dtype=kind)  # type: ignore[call-overload]
        return _with_gaps(pd.DataFrame(frame, copy=False), swept)


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


_OF_INSTANCE = ("problem", "sense", "source", "size")
"""What stands before the values that are swept."""


def _kind_of(labels: Sequence[Label]) -> str:
    """Type of a column of values that are swept."""
    kinds = {type(label) for label in labels} - {type(None)}
    if kinds <= {int, float}:
        return "Int64" if kinds <= {int} else "float64"
    return "boolean" if kinds == {bool} else "string"


def _with_gaps(rows: pd.DataFrame, swept: Sequence[str]) -> pd.DataFrame:
    """Add the exact side and the gap to the row of each heuristic."""
    import pandas as pd

    # By numbers of instances: joins on their digests would copy them all several times.
    instance, _ = pd.factorize(rows["instance"])
    for name in swept:
        label, labels = pd.factorize(rows[name])
        instance = np.unique(instance * (len(labels) + 1) + label, return_inverse=True)[1]
    is_exact = (rows["algorithm"] == EXACT).to_numpy(bool)
    row_of = np.full(instance.max(initial=-1) + 1, -1)
    row_of[instance[is_exact]] = np.flatnonzero(is_exact)
    exact = row_of[instance]
    for name in ("status", "value", "bound", "relaxation", "seconds"):
        rows[f"exact_{name}"] = rows[name].array.take(exact, allow_fill=True)
    rows["exact_status"], rows["verification"] = rows["exact_status"].fillna(""), rows["verification"].fillna("")
    # Where there is no plan, whoever returned none was right, declared or not.
    right = rows["exact_status"].eq("infeasible") & rows["status"].eq("failed") & rows["reason"].eq(NO_PLAN)
    if right.any():
        rows["status"] = rows["status"].mask(right, "declined")
    known, values = rows["status"].isin(["feasible", "optimal"]).to_numpy(bool), rows["value"].to_numpy(float)
    least, greatest = np.full(len(row_of), np.inf), np.full(len(row_of), -np.inf)
    np.minimum.at(least, instance[known], values[known])
    np.maximum.at(greatest, instance[known], values[known])
    best = np.where(rows["sense"] == "min", least[instance], greatest[instance])
    some = np.bincount(instance[known], minlength=len(row_of)) > 0
    rows["best_value"] = np.where(some[instance], best, np.nan)
    low, high, least_off, most_off = np.full((4, len(rows)), np.nan)
    disagreement = rows["verification"].eq("contradicted").to_numpy(bool)
    judged = np.flatnonzero(~is_exact & rows["status"].eq("feasible").to_numpy(bool))
    told = (
        # Words become numbers for all rows at once, which takes less than reading them one by one.
        rows["sense"].eq("min"),
        rows["exact_status"].isin(["infeasible", "unbounded"]),
        rows["exact_status"].eq("optimal"),
        *(rows[name] for name in ("value", "best_value", "exact_value", "exact_bound")),
    )
    for number, smaller, nothing_there, proven, value, best, exact_value, bound in zip(
        judged.tolist(), *(column.to_numpy()[judged].tolist() for column in told), strict=True
    ):
        sense = "min" if smaller else "max"
        if nothing_there or (math.isfinite(bound) and beats(sense, value, bound)):
            disagreement[number] = True
        else:
            nothing = -math.inf if smaller else math.inf
            ends = (exact_value, exact_value) if proven else (best, bound if math.isfinite(bound) else nothing)
            low[number], high[number] = gap_interval(value, *ends)
            least_off[number], most_off[number] = difference_interval(value, *ends)
    rows["gap_low"], rows["gap_high"], rows["disagreement"] = low, high, disagreement
    rows["difference_low"], rows["difference_high"] = least_off, most_off
    rows["gap"] = rows["gap_low"].where(rows["gap_low"] == rows["gap_high"])
    return rows


def has_zeros(summary: pd.DataFrame) -> bool:
    """Return whether some gap is infinite although the difference is not, as that to an optimum of 0."""
    gaps, differences = (
        summary[[f"{kind}_worst_low", f"{kind}_worst_high"]].to_numpy(float) for kind in ("gap", "difference")
    )
    return bool((np.isinf(gaps) & np.isfinite(differences)).any())


def summarize(rows: pd.DataFrame, swept: Sequence[str] = ()) -> Table:
    """One row for each problem, source, size, value of what is swept, and heuristic.

    Columns: instances; proven (optima proven by the exact side); without_plan (instances that it
    proved to have no plan, on which a heuristic that declines is right); feasible, infeasible, declined
    and failed (of the heuristic; declined leaves out what it declined rightly); mean, 95th percentile
    and worst of the gap, and of the difference to the optimum in the measure of the values, each as the
    least and the greatest that the proven bounds allow; the median times of both sides, s.  The
    percentile is that of :func:`validation.kernel.gaps.percentile_95`.
    """
    groups = []
    ends = [f"{kind}_{end}" for kind in ("gap", "difference") for end in ("low", "high")]
    told = ["exact_status", "status", *ends, "seconds", "exact_seconds", "disagreement"]
    names = ["problem", "source", "size", *swept]
    # Columns are shared with the table; a choice of rows would copy them.
    for key, group in rows[[*names, "algorithm", *told]].groupby([*names, "algorithm"], sort=False, dropna=False):
        if key[-1] == EXACT:
            continue
        entry = dict(zip((*names, "heuristic"), key, strict=True))
        entry["instances"] = len(group)
        entry["proven"] = int((group["exact_status"] == "optimal").sum())
        without = group["exact_status"] == "infeasible"
        entry["without_plan"] = int(without.sum())
        for status in ("feasible", "infeasible", "declined", "failed"):
            rightly = without & (status == "declined")
            entry[status] = int(((group["status"] == status) & ~rightly).sum())
        for kind, end in itertools.product(("gap", "difference"), ("low", "high")):
            gaps = group[f"{kind}_{end}"].dropna().to_numpy(float)
            some = len(gaps) > 0
            entry[f"{kind}_mean_{end}"] = float(gaps.mean()) if some else np.nan
            entry[f"{kind}_p95_{end}"] = percentile_95(gaps)
            entry[f"{kind}_worst_{end}"] = float(gaps.max()) if some else np.nan
        entry["median_seconds"] = group["seconds"].median()
        entry["exact_median_seconds"] = group["exact_seconds"].median()
        entry["disagreements"] = int(group["disagreement"].sum())
        groups.append(entry)
    from validation.pages.latex import Table

    return Table(groups).astype({name: rows[name].dtype for name in swept if groups})


def _metadata(record: Record, cells: int, rows: pd.DataFrame, damaged: int) -> dict[str, Any]:
    return {
        "asked": record.asked,
        "cells": cells,
        "cells_ended": len(rows),
        "failed": int((rows["status"] == "failed").sum()),
        "disagreements": int(rows["disagreement"].sum()),
        "verification": {word: int(times) for word, times in rows["verification"].value_counts().items() if word},
        "damaged_lines": damaged,
        "finished": len(rows) == cells,
        **record.run,
        "runs": list(record.runs),
    }
