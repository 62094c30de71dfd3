"""The kind of table that studies of replays are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from validation.kernel.kind import Kind
from validation.kernel.records import (
    HASH,
    NUMBER,
    PROBLEM,
    SECONDS,
    TEXT,
    WHOLE,
    Entry,
    Schema,
    complaint,
    got,
    one_of,
    or_null,
)
from validation.kernel.store import INSTANCES

__all__ = ["CELL", "ENDED", "OFFLINE", "REPLAYS", "TABLES", "TABLES_FOLDER", "table_file"]

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

_BY_NAME = Entry(
    lambda value: (
        isinstance(value, dict) and all(TEXT.fits(name) and or_null(NUMBER).fits(one) for name, one in value.items())
    ),
    "numbers by name",
)
_HASHES = Entry(
    lambda value: isinstance(value, dict) and set(value) == set(TABLES) and all(map(HASH.fits, value.values())),
    "a hash of each table",
)
_BOUND: Schema = {
    "value": NUMBER,
    "exact": Entry(lambda value: isinstance(value, bool), "true or false"),
    "proof": TEXT,
}
_BOUNDS = Entry(
    lambda value: (
        isinstance(value, dict)
        and all(TEXT.fits(name) and isinstance(one, dict) and not complaint(one, _BOUND) for name, one in value.items())
    ),
    "bounds by name",
)
_ROW: Schema = {
    "status": one_of(ENDED, "failed"),
    "reason": TEXT,
    "seconds": SECONDS,
    "metrics": or_null(_BY_NAME),
    "tables": or_null(_HASHES),
    "kept": WHOLE,
    "bounds": or_null(_BOUNDS),
}


def _contradiction(row: Mapping[str, Any]) -> str:
    ended, hindsight = row["status"] == ENDED, row["policy"] == OFFLINE
    for name in ("metrics", "tables", "bounds"):
        if (row[name] is not None) != (ended and hindsight == (name == "bounds")):
            return got(name, row[name], f"that of a replay which has {row['status']}")
    return ""


def table_file(key: str, name: str) -> str:
    """Path of a table of a replay below the study's directory."""
    return f"{TABLES_FOLDER}/{key[:32]}.{name}.parquet"


REPLAYS = Kind(
    name="replay",
    counted="replays and bounds",
    record="replay.json",
    files=("results.parquet", *(f"{name}.parquet" for name in (*TABLES, OFFLINE)), "metadata.json", "report.html"),
    folders=(INSTANCES, TABLES_FOLDER),
    asked={"seed": WHOLE},
    cell=CELL,
    row=_ROW,
    agrees=tuple(CELL),
    alike=("trace", "policy"),
    contradiction=_contradiction,
    named=lambda cell: "{policy} on {trace}, window {window}, seed {seed}, tie-break {tie}".format(**cell),
    depends=lambda cell: f"what is read for {cell['trace']}, or the code of {cell['policy']}",
    value=lambda row: (row["metrics"] or {}).get("average_jct"),
    beside=lambda row: {table_file(row["key"], name): hash for name, hash in (row["tables"] or {}).items()},
    places=("traces", "throughputs"),
)
"""A study of replays."""
