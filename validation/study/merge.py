"""Join the directories of shards, or of interrupted copies of one study, into one study."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from instances.base import InstanceError
from instances.files import load, write_whole
from validation.errors import StudyError
from validation.formatting import printable
from validation.study.records import Cells
from validation.study.results import Study
from validation.study.store import (
    LOG,
    Record,
    Warn,
    lines_of,
    locked,
    require_study,
    write_study,
)

__all__ = ["merge_studies"]

_PLACES = ("instances", "throughputs", "trace")
"""Options that name files, which may lie elsewhere on another machine: what was read from them tells."""


def merge_studies(
    directories: Sequence[str | os.PathLike[str]], output: str | os.PathLike[str], *, warn: Warn = warnings.warn
) -> Study:
    """Join directories of shards, or of interrupted copies of one study, into one study.

    A cell that several of them have ended appears once, as the first has it.  Where cells are missing, the
    study is unfinished; the study's command, without its shard and with this output, finishes it.  What is there
    is whole at any moment: a merge that was killed can be run again.

    Parameters
    ----------
    directories : sequence of path
    output : path
        A new directory, or one that holds the same study, whose rows stay.
    warn : callable, optional
        Told of damaged lines and instances, which are passed over, and of rows of one cell that contradict each
        other.

    Returns
    -------
    Study

    Raises
    ------
    StudyError
        When the directories do not belong to one study, or the output is one of them or holds something else.
    """
    output, sources = Path(output), [Path(directory) for directory in directories]
    if not sources:
        raise StudyError("no directory is named")
    if any(os.path.realpath(source) == os.path.realpath(output) for source in sources):
        raise StudyError(f"output: {output} is one of the directories to be joined: choose another")
    record = require_study(sources[0])
    runs = _runs_of(record)
    for source in sources[1:]:
        other = require_study(source)
        _refuse_other(record, sources[0], other, source)
        runs += _runs_of(other)
    with locked(output) as earlier:
        if earlier is not None:
            _refuse_other(record, sources[0], earlier, output)
            runs = _runs_of(earlier) + runs
            sources = [output, *sources]
        # What was copied before, or joined before, is told once.
        runs = list({json.dumps(run, sort_keys=True): run for run in runs}.values())
        last = max(runs, key=_began)
        write_study(output, Record(record.asked, {**last, "shard": None}, record.cells, runs))
        _join_instances(sources, output, record.cells, warn)
        _join_logs(sources, output, record.cells, warn)
        from validation.study.report import finish

        return finish(output, warn)


def _runs_of(record: Record) -> list[Mapping[str, Any]]:
    return [*(record.runs or [record.run])]


def _began(run: Mapping[str, Any]) -> float:
    try:
        return datetime.fromisoformat(run["started"]).timestamp()
    except ValueError:
        return 0.0


# --- what belongs together ----------------------------------------------------------------------


def _refuse_other(record: Record, first: Path, other: Record, source: Path) -> None:
    """Raise where two records are not of one study, with the first difference."""

    def refuse(what: str, mine: Any, theirs: Any) -> None:
        raise StudyError(
            f"{source} holds another study than {first}: {what}: {_shown(theirs)} instead of {_shown(mine)}"
        )

    for name in dict.fromkeys([*record.asked, *other.asked]):
        mine, theirs = record.asked.get(name), other.asked.get(name)
        if mine != theirs and name not in _PLACES:
            refuse(name, mine, theirs)
    if record.cells.columns == other.cells.columns:
        return
    for number, (mine, theirs) in enumerate(zip(record.cells, other.cells, strict=False)):
        if mine == theirs:
            continue
        named = ", ".join(
            f"{name} {mine[name]}" for name in ("problem", "source", "size", "index", *record.cells.swept)
        )
        for name in ("problem", "sense", "source", "size", "index", *record.cells.swept, "algorithm"):
            if mine[name] != theirs[name]:
                refuse(f"cells[{number}].{name}", mine[name], theirs[name])
        if mine["instance"] != theirs["instance"]:
            refuse(f"the instance {named}", mine["instance"][:12], theirs["instance"][:12])
        versions, others = record.run["versions"], other.run["versions"]
        differ = [name for name in dict.fromkeys([*versions, *others]) if versions.get(name) != others.get(name)]
        refuse(
            f"the code of {mine['algorithm']} on {mine['problem']}, by its key",
            {"key": mine["key"][:12], **{name: versions.get(name) for name in differ}},
            {"key": theirs["key"][:12], **{name: others.get(name) for name in differ}},
        )
    refuse("number of cells", len(record.cells), len(other.cells))


def _shown(value: Any) -> str:
    said = printable(json.dumps(value, ensure_ascii=False))
    return said if len(said) <= 200 else f"{said[:200]}..."


# --- what is joined -----------------------------------------------------------------------------


def _join_instances(sources: Sequence[Path], output: Path, cells: Cells, warn: Warn) -> None:
    """Copy each instance that one of the sources has whole."""
    seen = set()
    for cell in cells:
        if cell["instance"] in seen:
            continue
        seen.add(cell["instance"])
        found = [source / cell["file"] for source in sources if (source / cell["file"]).is_file()]
        whole = next((path for path in found if _is_whole(path, cell["instance"])), None)
        target = output / cell["file"]
        if whole is None:
            for path in found:
                warn(f"{path}: not the instance of the study; the study's command writes it anew")
        elif whole != target:
            target.parent.mkdir(parents=True, exist_ok=True)
            write_whole(target, whole.read_bytes(), durable=False)


def _is_whole(path: Path, digest: str) -> bool:
    try:
        return not path.is_symlink() and load(path).digest == digest
    except (InstanceError, OSError):
        return False


def _join_logs(sources: Sequence[Path], output: Path, cells: Cells, warn: Warn) -> None:
    """Write the log: the row of each cell that has one, in the order of the cells."""
    chosen = _Chosen(len(cells))
    for number, source in enumerate(sources):
        for line in lines_of(source, cells):
            if line.wrong:
                warn(f"{source / LOG}, line {line.number}: {line.wrong}; passed over")
            elif line.row["key"] in cells.numbers:
                cell = cells.numbers[line.row["key"]]
                if not chosen.offer(cell, number, line.start, line.row):
                    told = cells[cell]
                    warn(
                        f"{told['algorithm']} on {told['file']}: {source} has {line.row['status']} "
                        f"{line.row['value']}, {sources[chosen.source[cell]]} something else, which is kept"
                    )
    write_whole(output / LOG, chosen.lines([source / LOG for source in sources]))


class _Chosen:
    """Which row of which log each cell gets: of each log the last, and of the logs the first that has not failed."""

    def __init__(self, cells: int) -> None:
        self.source, self.start = np.full(cells, -1), np.zeros(cells, np.int64)
        self.failed = np.zeros(cells, bool)
        self.value = np.full(cells, np.nan)

    def offer(self, cell: int, source: int, start: int, row: Mapping[str, Any]) -> bool:
        """Take a row or leave it; false where it is left and says something else of a cell that none has failed."""
        failed, value = row["status"] == "failed", np.nan if row["value"] is None else row["value"]
        if self.source[cell] in (-1, source) or (self.failed[cell] and not failed):
            self.source[cell], self.start[cell], self.failed[cell], self.value[cell] = source, start, failed, value
            return True
        return failed or bool(np.array_equal(self.value[cell], value, equal_nan=True))

    def lines(self, logs: Sequence[Path]) -> Iterator[bytes]:
        """The rows that were taken."""
        files = [log.open("rb") if log.exists() else None for log in logs]
        try:
            for source, start in zip(self.source, self.start, strict=True):
                file = files[source] if source >= 0 else None
                if file is not None:
                    file.seek(start)
                    yield file.readline()
        finally:
            for file in files:
                if file is not None:
                    file.close()
