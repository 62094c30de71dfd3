"""The kind of table that studies of gaps are."""

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
    Cells,
    Entry,
    Schema,
    got,
    is_plain,
    one_of,
    or_null,
)
from validation.kernel.store import INSTANCES
from validation.kinds.study.cases import EXACT
from validation.kinds.study.sweeps import TAKEN, is_label

__all__ = ["CELL", "STUDY", "swept_of"]

CELL: Schema = {
    "key": HASH,
    "problem": PROBLEM,
    "sense": one_of("min", "max"),
    "source": one_of("generated", "trace", "file"),
    "size": WHOLE,
    "index": WHOLE,
    "instance": HASH,
    "file": TEXT,
    "algorithm": TEXT,
}
"""What is known of a cell before it runs."""

_OF_EXACT = ("optimal", "feasible", "infeasible", "unbounded", "unknown", "failed")
_OF_HEURISTICS = ("feasible", "infeasible", "declined", "failed")

_ROW: Schema = {
    "status": one_of(*dict.fromkeys([*_OF_EXACT, *_OF_HEURISTICS])),
    "reason": TEXT,
    "value": or_null(NUMBER),
    "seconds": SECONDS,
}
_OPTIONAL: Schema = {
    "infinite": or_null(Entry(lambda value: value is True, "true")),
    "bound": or_null(NUMBER),
    "relaxation": or_null(NUMBER),
    "engine_seconds": or_null(NUMBER),
    "solver": or_null(TEXT),
    "plan": or_null(Entry(lambda value: isinstance(value, dict), "a plan")),
    "verification": or_null(one_of("confirmed", "open", "contradicted")),
    "second": or_null(Entry(lambda value: isinstance(value, dict) and is_plain(value), "what a second way found")),
}
"""What a row may do without."""

_LABEL = Entry(is_label, "a value")


def _is_sweep(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and all(name.isidentifier() and name not in TAKEN for name in value)
        and all(isinstance(labels, list) and all(map(is_label, labels)) for labels in value.values())
    )


def _swept(asked: Mapping[str, Any]) -> Schema:
    return dict.fromkeys(asked.get("sweep") or (), _LABEL)


def swept_of(cells: Cells) -> tuple[str, ...]:
    """Names of the parameters that a study sweeps."""
    return cells.entries[len(CELL) :]


def _contradiction(row: Mapping[str, Any]) -> str:
    known = _OF_EXACT if row["algorithm"] == EXACT else _OF_HEURISTICS
    if row["status"] not in known:
        return got("status", row["status"], f"one of {', '.join(known)}")
    worth = (row["value"] is not None) != bool(row.get("infinite"))
    if worth != (row["status"] in ("optimal", "feasible")) and row["status"] != "unknown":
        return got("value", row["value"], f"that of a plan which is {row['status']}")
    return ""


STUDY = Kind(
    name="study",
    counted="runs",
    record="study.json",
    files=("results.parquet", "metadata.json", "report.html"),
    folders=(INSTANCES,),
    asked={"seed": WHOLE, "sweep": or_null(Entry(_is_sweep, "values by the names of parameters"))},
    cell=CELL,
    swept=_swept,
    distinct=("instance", "algorithm"),
    row=_ROW,
    optional=_OPTIONAL,
    agrees=("problem", "sense", "instance", "algorithm"),
    alike=("problem", "size", "algorithm"),
    contradiction=_contradiction,
    named=lambda cell: f"{cell['algorithm']} on {cell['file']}",
    depends=lambda cell: f"the code of {cell['algorithm']} on {cell['problem']}",
    places=("instances", "throughputs", "trace"),
)
"""A study of gaps."""
