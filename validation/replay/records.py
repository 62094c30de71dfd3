"""What stands in the files of a study of replays, checked when it is read, as in :mod:`validation.study.records`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from validation.study.records import (
    HASH,
    NUMBER,
    PROBLEM,
    SECONDS,
    TEXT,
    WHOLE,
    Cells,
    Kind,
    Schema,
    complaint,
    got,
    one_of,
    or_null,
    shown,
)
from validation.study.store import INSTANCES, Form

__all__ = ["CELL", "ENDED", "OFFLINE", "REPLAYS", "TABLES", "TABLES_FOLDER", "cells"]

TABLES = ("jobs", "decisions", "usage")
"""Of each replay."""
TABLES_FOLDER = "replays"
"""Where those of each replay are."""

ENDED = "ended"
"""Status of a replay that came to its end."""

OFFLINE = "offline"
"""In place of a decision maker: what hindsight could do."""

CELL: Schema = {
    "key": HASH,
    "problem": PROBLEM,
    "trace": TEXT,
    "window": WHOLE,
    "seed": WHOLE,
    "policy": TEXT,
    "tie": WHOLE,
}
"""What is known of a replay before it runs."""

_BY_NAME = Kind(
    lambda value: (
        isinstance(value, dict) and all(TEXT.fits(name) and or_null(NUMBER).fits(one) for name, one in value.items())
    ),
    "numbers by name",
)
_HASHES = Kind(
    lambda value: isinstance(value, dict) and set(value) == set(TABLES) and all(map(HASH.fits, value.values())),
    "a hash of each table",
)
_BOUND: Schema = {
    "value": NUMBER,
    "exact": Kind(lambda value: isinstance(value, bool), "true or false"),
    "proof": TEXT,
}
_BOUNDS = Kind(
    lambda value: (
        isinstance(value, dict)
        and all(TEXT.fits(name) and isinstance(one, dict) and not complaint(one, _BOUND) for name, one in value.items())
    ),
    "bounds by name",
)
_ROW: Schema = {
    **CELL,
    "status": one_of(ENDED, "failed"),
    "reason": TEXT,
    "seconds": SECONDS,
    "metrics": or_null(_BY_NAME),
    "tables": or_null(_HASHES),
    "kept": WHOLE,
    "bounds": or_null(_BOUNDS),
}


def _check_row(row: Any, cells: Cells | None = None) -> str:
    if not isinstance(row, dict) or not {"key", "status"} <= row.keys():
        return "not the row of a replay"
    wrong = complaint(row, _ROW)
    if wrong:
        return wrong
    ended, hindsight = row["status"] == ENDED, row["policy"] == OFFLINE
    for name in ("metrics", "tables", "bounds"):
        if (row[name] is not None) != (ended and hindsight == (name == "bounds")):
            return got(name, row[name], f"that of a replay which has {row['status']}")
    told = cells.get(row["key"]) if cells is not None else None
    for name in CELL:
        if told is not None and row[name] != told[name]:
            return got(name, row[name], f"{shown(told[name])}, as its cell has it")
    return ""


def _checked(records: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    keys = set()
    for number, cell in enumerate(records):
        where = f"cells[{number}]"
        if not isinstance(cell, dict):
            raise ValueError(f"{where}: got {shown(cell)}, must be a cell")
        wrong = complaint(cell, CELL, f"{where}.")
        if wrong:
            raise ValueError(wrong)
        if cell["key"] in keys:
            raise ValueError(f"{where}: another cell has the same key")
        keys.add(cell["key"])
        yield cell


def cells(asked: Mapping[str, Any], records: Iterable[Any]) -> Cells:
    """The cells of a study of replays, checked; what was asked says no more of them.

    Raises
    ------
    ValueError
        When one is not what it must be.
    """
    return Cells(_checked(records), CELL)


REPLAYS = Form(
    "replay",
    "replay.json",
    ("results.parquet", *(f"{name}.parquet" for name in (*TABLES, OFFLINE)), "metadata.json", "report.html"),
    (INSTANCES, TABLES_FOLDER),
    cells,
    _check_row,
)
"""What the directory of a study of replays holds."""
