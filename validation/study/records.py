"""What stands in the files of a study, checked when it is read: files may be damaged, or changed by anybody."""

from __future__ import annotations

import codecs
import functools
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from validation.formatting import printable
from validation.study.cases import EXACT, file_of
from validation.study.options import shard_of
from validation.study.sweeps import TAKEN, is_label

__all__ = [
    "CELL",
    "HASH",
    "LARGEST",
    "NUMBER",
    "PROBLEM",
    "RUN",
    "SECONDS",
    "TEXT",
    "WHOLE",
    "Cells",
    "Kind",
    "Schema",
    "check_row",
    "check_run",
    "checked_cells",
    "complaint",
    "got",
    "one_of",
    "or_null",
    "parsed",
    "shown",
]

LARGEST = 1e300
"""Numbers beyond are nobody's objective, and their differences are no numbers."""
_LONGEST_SHOWN = 60
_DEEPEST = 8
"""How deep what was asked may be nested."""


@dataclass(frozen=True)
class Kind:
    """What an entry may be: a test, and the words for it."""

    fits: Callable[[Any], bool]
    words: str


Schema: TypeAlias = Mapping[str, Kind]
"""Names of fields to what may stand in them."""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST


def _is_text(value: Any) -> bool:
    """Whether it is text that files can hold; JSON can write halves of characters, too."""
    return isinstance(value, str) and (
        value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)
    )


_DIGITS = re.compile("[0-9a-f]{64}")


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and _DIGITS.fullmatch(value) is not None


def _is_problem(value: Any) -> bool:
    return isinstance(value, str) and _names_a_problem(value)


@functools.lru_cache
def _names_a_problem(word: str) -> bool:
    return len(parts := word.split(".")) == 2 and all(part.isidentifier() for part in parts)


def _is_plain(value: Any, depth: int = _DEEPEST) -> bool:
    if isinstance(value, dict):
        return depth > 0 and all(_is_text(name) and _is_plain(one, depth - 1) for name, one in value.items())
    if isinstance(value, list):
        return depth > 0 and all(_is_plain(one, depth - 1) for one in value)
    return value is None or isinstance(value, bool) or _is_number(value) or _is_text(value)


def _is_sweep(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and all(name.isidentifier() and name not in TAKEN for name in value)
        and all(isinstance(labels, list) and all(map(is_label, labels)) for labels in value.values())
    )


def or_null(kind: Kind) -> Kind:
    """The same, or nothing."""
    return Kind(lambda value: value is None or kind.fits(value), f"{kind.words}, or null")


def one_of(*words: str) -> Kind:
    """One of these words."""
    return Kind(lambda value: isinstance(value, str) and value in words, f"one of {', '.join(words)}")


NUMBER = Kind(_is_number, "a finite number")
SECONDS = Kind(lambda value: _is_number(value) and value >= 0, "seconds")
WHOLE = Kind(lambda value: type(value) is int and 0 <= value < 2**63, "a whole number")
TEXT = Kind(_is_text, "text")
HASH = Kind(_is_hash, "a hash of 64 digits")
PROBLEM = Kind(_is_problem, "a name such as aryl.reclaim")

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
_MORE_OF_ROW: Schema = {
    "bound": or_null(NUMBER),
    "relaxation": or_null(NUMBER),
    "engine_seconds": or_null(NUMBER),
    "solver": or_null(TEXT),
    "plan": or_null(Kind(lambda value: isinstance(value, dict), "a plan")),
    "verification": or_null(one_of("confirmed", "open", "contradicted")),
    "second": or_null(Kind(lambda value: isinstance(value, dict) and _is_plain(value), "what a second way found")),
}
"""What a row may do without."""

RUN: Schema = {
    "started": TEXT,
    "seconds": or_null(SECONDS),
    "jobs": WHOLE,
    "command": TEXT,
    "commit": or_null(TEXT),
    "versions": Kind(
        lambda value: isinstance(value, dict) and all(_is_text(one) for item in value.items() for one in item),
        "versions by name",
    ),
    "machine": Kind(lambda value: isinstance(value, dict) and _is_plain(value), "facts by name"),
    "shard": or_null(Kind(lambda value: _is_text(value) and shard_of(value) is not None, "a shard such as 0/16")),
}
"""What ran."""
_MACHINE: Schema = {"system": TEXT, "processor": TEXT, "cores": WHOLE}
_STUDY: Schema = {
    "asked": Kind(lambda value: isinstance(value, dict) and _is_plain(value), "what was asked, by name"),
    "run": Kind(lambda value: isinstance(value, dict), "what ran, by name"),
    "cells": Kind(lambda value: isinstance(value, list), "a list of cells"),
}
_MORE_OF_STUDY: Schema = {"runs": Kind(lambda value: isinstance(value, list), "a list of runs")}
_ASKED: Schema = {"seed": WHOLE}
_MORE_OF_ASKED: Schema = {"sweep": or_null(Kind(_is_sweep, "values by the names of parameters"))}


def parsed(content: bytes) -> Any:
    """What JSON says.

    Raises
    ------
    ValueError
        When it is not JSON, with a word why.
    """
    try:
        return _DECODER.decode(content.removeprefix(codecs.BOM_UTF8).decode())
    except (ValueError, RecursionError):
        raise ValueError("not valid JSON") from None


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)
"""Made once, because a log has many lines."""


def check_row(row: Any, cells: Cells | None = None) -> str:
    """What is wrong with a row; empty when nothing is.

    Parameters
    ----------
    row : object
        What a line of the log says.
    cells : Cells, optional
        Cells that it may be of.
    """
    if not isinstance(row, dict) or not {"key", "status"} <= row.keys():
        return "not the row of a study"
    told = cells.get(row["key"]) if cells is not None and _is_text(row["key"]) else None
    # A row that says what its cell does needs no other check of that; but 1 is true, and 1.0.
    alike = told is not None and told.items() <= row.items() and type(row["size"]) is type(row["index"]) is int
    wrong = "" if alike else complaint(row, CELL) or _file(row)
    wrong = wrong or complaint(row, _ROW)
    if wrong:
        return wrong
    for name, kind in _MORE_OF_ROW.items():
        # What a row does without needs no look.
        if (value := row.get(name)) is not None and not kind.fits(value):
            return got(name, value, kind.words)
    known = _OF_EXACT if row["algorithm"] == EXACT else _OF_HEURISTICS
    if row["status"] not in known:
        return got("status", row["status"], f"one of {', '.join(known)}")
    if (row["value"] is None) == (row["status"] in ("optimal", "feasible")) and row["status"] != "unknown":
        return got("value", row["value"], f"that of a plan which is {row['status']}")
    for name in ("problem", "sense", "instance", "algorithm", *(cells.swept if cells is not None else ())):
        if told is not None and row.get(name) != told[name]:
            return got(name, row[name], f"{shown(told[name])}, as its cell has it")
    return ""


def check_run(study: Any) -> str:
    """What is wrong with the record of a study but for its cells; empty when nothing is."""
    if not isinstance(study, dict) or not _STUDY.keys() <= study.keys():
        return "not the record of a study"
    wrong = complaint(study, _STUDY) or complaint(study["asked"], _ASKED, "asked.")
    wrong = wrong or complaint({"sweep": None, **study["asked"]}, _MORE_OF_ASKED, "asked.")
    wrong = wrong or complaint({"runs": [], **study}, _MORE_OF_STUDY)
    if wrong:
        return wrong
    for name, run in [("run", study["run"]), *((f"runs[{i}]", one) for i, one in enumerate(study.get("runs", [])))]:
        if not isinstance(run, dict):
            return got(name, run, "what ran, by name")
        # Studies of a version before know of no shards.
        wrong = wrong or complaint({"shard": None, **run}, RUN, f"{name}.")
        wrong = wrong or complaint(run["machine"], _MACHINE, f"{name}.machine.")
    return wrong


class Cells(Sequence[dict[str, Any]]):
    """The records of a study's cells, in order; kept by columns, because there may be 100,000.

    Parameters
    ----------
    records : iterable of mapping
        As :func:`checked_cells` gives them.
    entries : iterable of str
        Of each record, ``key`` among them; those of a study are :data:`CELL` and the names of what is swept.

    Attributes
    ----------
    columns : dict of list
        Every entry but ``file``, which follows from the others.
    numbers : dict of int
        By key, the number of the cell.
    """

    def __init__(self, records: Iterable[Mapping[str, Any]], entries: Iterable[str] = CELL) -> None:
        self.entries = tuple(entries)
        self.columns: dict[str, list[Any]] = {name: [] for name in self.entries if name != "file"}
        self.numbers: dict[str, int] = {}
        words: dict[Any, Any] = {}
        for record in records:
            for name, column in self.columns.items():
                value = record[name]
                # Names and digests stand in many cells; of the values that are swept, 1.0 and true are not 1.
                shared = name != "key" and not isinstance(value, (float, bool))
                column.append(words.setdefault(value, value) if shared else value)
            self.numbers[record["key"]] = len(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, number: Any) -> Any:
        record: dict[str, Any] = {}
        for name in self.entries:
            of_others = name == "file"
            record[name] = file_of(record["problem"], record["instance"]) if of_others else self.columns[name][number]
        return record

    @property
    def swept(self) -> tuple[str, ...]:
        """Names of the parameters that a study sweeps."""
        return self.entries[len(CELL) :]

    def get(self, key: str) -> dict[str, Any] | None:
        """The record of the cell with a key; None where there is none."""
        number = self.numbers.get(key)
        return None if number is None else self[number]


def checked_cells(asked: Mapping[str, Any], records: Iterable[Any]) -> Cells:
    """The cells that a record of a study has, each of them checked.

    Parameters
    ----------
    asked : mapping
        What was asked, checked.
    records : iterable

    Raises
    ------
    ValueError
        When one is not what it must be.
    """
    swept = tuple(asked.get("sweep") or ())
    return Cells(_checked(records, swept), (*CELL, *swept))


def _checked(records: Iterable[Any], swept: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    schema = {**CELL, **dict.fromkeys(swept, Kind(is_label, "a value"))}
    keys, pairs = set(), set()
    for number, cell in enumerate(records):
        where = f"cells[{number}]"
        if not isinstance(cell, dict):
            raise ValueError(f"{where}: got {shown(cell)}, must be a cell")
        wrong = complaint(cell, schema, f"{where}.") or _file(cell, f"{where}.")
        if wrong:
            raise ValueError(wrong)
        # Each stands in many cells.
        pair = (sys.intern(cell["instance"]), sys.intern(cell["algorithm"]), *(cell[name] for name in swept))
        if cell["key"] in keys or pair in pairs:
            raise ValueError(f"{where}: another cell has the same key, or the same instance and algorithm")
        keys.add(cell["key"])
        pairs.add(pair)
        yield cell


def complaint(record: Mapping[str, Any], schema: Schema, place: str = "") -> str:
    """The first entry that is missing or is not what it must be."""
    for name, kind in schema.items():
        if name not in record:
            return f"field {place + name!r} is missing"
        if not kind.fits(record[name]):
            return got(place + name, record[name], kind.words)
    return ""


def _file(record: Mapping[str, Any], place: str = "") -> str:
    """A file elsewhere than in the study's directory is neither read nor linked."""
    wanted = file_of(record["problem"], record["instance"])
    return "" if record["file"] == wanted else got(f"{place}file", record["file"], wanted)


def got(name: str, value: Any, words: str) -> str:
    """A complaint about an entry that is not what ``words`` say."""
    return f"field {name!r}: got {shown(value)}, must be {words}"


def shown(value: Any) -> str:
    """A value in a message, however long it is."""
    said = printable(json.dumps(value, ensure_ascii=False)) if _is_plain(value) else f"{type(value).__name__}"
    return said if len(said) <= _LONGEST_SHOWN else f"{said[:_LONGEST_SHOWN]}..."
