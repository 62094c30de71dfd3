"""Join the directories of shards, or of interrupted copies of one study or set of replays, into one."""

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
from validation.kernel.kind import Kind, Result, Warn
from validation.kernel.records import Cells, file_of
from validation.kernel.store import (
    INSTANCES,
    LOG,
    Line,
    Record,
    is_whole,
    lines_of,
    locked,
    require_record,
    write_record,
)

__all__ = ["merge"]


def merge(
    kind: Kind,
    result: Result,
    directories: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    warn: Warn = warnings.warn,
) -> Any:
    """:func:`validation.merge_studies` of directories of one kind."""
    output, sources = Path(output), [Path(directory) for directory in directories]
    if not sources:
        raise StudyError("no directory is named")
    if any(os.path.realpath(source) == os.path.realpath(output) for source in sources):
        raise StudyError(f"output: {output} is one of the directories to be joined: choose another")
    record = require_record(sources[0], kind)
    runs = _runs_of(record)
    for source in sources[1:]:
        other = require_record(source, kind)
        _refuse_other(kind, record, sources[0], other, source)
        runs += _runs_of(other)
    with locked(output, kind) as earlier:
        if earlier is not None:
            _refuse_other(kind, record, sources[0], earlier, output)
            runs = _runs_of(earlier) + runs
            sources = [output, *sources]
        # What was copied before, or joined before, is told once.
        runs = list({json.dumps(run, sort_keys=True): run for run in runs}.values())
        last = max(runs, key=_began)
        write_record(output, Record(record.asked, {**last, "shard": None}, record.cells, runs), kind)
        _join_instances(sources, output, record.cells, warn)
        _join_logs(kind, sources, output, record.cells, warn)
        return result(output, warn)


def _runs_of(record: Record) -> list[Mapping[str, Any]]:
    return [*(record.runs or [record.run])]


def _began(run: Mapping[str, Any]) -> float:
    try:
        return datetime.fromisoformat(run["started"]).timestamp()
    except ValueError:
        return 0.0


# --- what belongs together ----------------------------------------------------------------------


def _refuse_other(kind: Kind, record: Record, first: Path, other: Record, source: Path) -> None:
    """Raise where two records are not of one study, with the first difference."""

    def refuse(what: str, mine: Any, theirs: Any) -> None:
        raise StudyError(
            f"{source} holds another {kind.name} than {first}: {what}: {_shown(theirs)} instead of {_shown(mine)}"
        )

    for name in dict.fromkeys([*record.asked, *other.asked]):
        mine, theirs = record.asked.get(name), other.asked.get(name)
        if mine != theirs and name not in kind.places:
            refuse(name, mine, theirs)
    if record.cells.columns == other.cells.columns:
        return
    for number, (mine, theirs) in enumerate(zip(record.cells, other.cells, strict=False)):
        if mine == theirs:
            continue
        said = [name for name in record.cells.entries if name not in ("key", "instance", "file")]
        for name in said:
            if mine[name] != theirs[name]:
                refuse(f"cells[{number}].{name}", mine[name], theirs[name])
        if mine.get("instance") != theirs.get("instance"):
            named = ", ".join(f"{name} {mine[name]}" for name in said if name not in ("sense", "algorithm"))
            refuse(f"the instance {named}", mine["instance"][:12], theirs["instance"][:12])
        versions, others = record.run["versions"], other.run["versions"]
        differ = [name for name in dict.fromkeys([*versions, *others]) if versions.get(name) != others.get(name)]
        refuse(
            f"{kind.depends(mine)}, by its key",
            {"key": mine["key"][:12], **{name: versions.get(name) for name in differ}},
            {"key": theirs["key"][:12], **{name: others.get(name) for name in differ}},
        )
    refuse("number of cells", len(record.cells), len(other.cells))


def _shown(value: Any) -> str:
    said = printable(json.dumps(value, ensure_ascii=False))
    return said if len(said) <= 200 else f"{said[:200]}..."


# --- what is joined -----------------------------------------------------------------------------


def _join_instances(sources: Sequence[Path], output: Path, cells: Cells, warn: Warn) -> None:
    """Copy each instance that one of the sources has whole: those of the cells, or all where cells name none."""
    named = "file" in cells.entries
    digests = {cell["file"]: cell["instance"] for cell in cells} if named else {}
    there = [str(path.relative_to(source)) for source in sources for path in (source / INSTANCES).glob("*/*.json")]
    for file in dict.fromkeys(there):
        if named and file not in digests:
            continue
        found = [source / file for source in sources if (source / file).is_file()]
        whole = next((path for path in found if _is_whole(path, file, digests.get(file))), None)
        target = output / file
        if whole is None:
            for path in found:
                warn(f"{path}: not the instance of the study; the study's command writes it anew")
        elif whole != target:
            target.parent.mkdir(parents=True, exist_ok=True)
            write_whole(target, whole.read_bytes(), durable=False)


def _is_whole(path: Path, file: str, digest: str | None) -> bool:
    """Return whether a file holds the instance that its name says, and the digest where it is known."""
    try:
        instance = None if path.is_symlink() else load(path)
        if instance is None or file_of(instance.problem, instance.digest) != file:
            return False
        return digest is None or instance.digest == digest
    except (InstanceError, OSError):
        return False


def _join_logs(kind: Kind, sources: Sequence[Path], output: Path, cells: Cells, warn: Warn) -> None:
    """Write the log, the row of each cell that has one, in the order of the cells; and the files of these rows."""
    chosen = _Chosen(kind, len(cells))
    for number, source in enumerate(sources):
        broken: dict[int, Line] = {}
        for line in lines_of(source, kind, cells):
            if line.wrong:
                warn(f"{source / LOG}, line {line.number}: {line.wrong}; passed over")
            elif line.row["key"] in cells.numbers:
                cell = cells.numbers[line.row["key"]]
                broken.pop(cell, None)
                if not is_whole(source, kind, line.row):
                    broken[cell] = line
                elif not chosen.offer(cell, number, line.start, line.row):
                    warn(
                        f"{kind.named(line.row)}: {source} has {line.row['status']} {kind.value(line.row)}, "
                        f"{sources[chosen.source[cell]]} something else, which is kept"
                    )
        for line in broken.values():
            warn(f"{source / LOG}, line {line.number}: files of {kind.named(line.row)} are damaged; passed over")
    logs = [source / LOG for source in sources]
    if kind.beside is not None:
        for number, content in chosen.lines(logs):
            for file in kind.beside(json.loads(content)) if sources[number] != output else ():
                (output / file).parent.mkdir(parents=True, exist_ok=True)
                write_whole(output / file, (sources[number] / file).read_bytes())
    write_whole(output / LOG, (content for _, content in chosen.lines(logs)))


class _Chosen:
    """The row that each cell gets: of each log the last, and of the logs the first that has not failed."""

    def __init__(self, kind: Kind, cells: int) -> None:
        self.kind = kind
        self.source, self.start = np.full(cells, -1), np.zeros(cells, np.int64)
        self.failed = np.zeros(cells, bool)
        self.value = np.full(cells, np.nan)

    def offer(self, cell: int, source: int, start: int, row: Mapping[str, Any]) -> bool:
        """Take a row or leave it; false where it is left and says something else of a cell that none has failed."""
        failed, value = row["status"] == "failed", self.kind.value(row)
        value = np.nan if value is None else value
        if self.source[cell] in (-1, source) or (self.failed[cell] and not failed):
            self.source[cell], self.start[cell], self.failed[cell], self.value[cell] = source, start, failed, value
            return True
        return failed or bool(np.array_equal(self.value[cell], value, equal_nan=True))

    def lines(self, logs: Sequence[Path]) -> Iterator[tuple[int, bytes]]:
        """Read the rows that were taken, each with the number of its log."""
        files = [log.open("rb") if log.exists() else None for log in logs]
        try:
            for source, start in zip(self.source, self.start, strict=True):
                file = files[source] if source >= 0 else None
                if file is not None:
                    file.seek(start)
                    yield int(source), file.readline()
        finally:
            for file in files:
                if file is not None:
                    file.close()
