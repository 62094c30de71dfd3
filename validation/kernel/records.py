"""Entries of records and rows, checked when they are read: files may be damaged, or changed by anybody."""

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
from validation.kernel.judging import LARGEST
from validation.kernel.options import shard_of

__all__ = [
    "HASH",
    "NUMBER",
    "PROBLEM",
    "RUN",
    "SECONDS",
    "TEXT",
    "WHOLE",
    "Cells",
    "Entry",
    "Schema",
    "check_run",
    "checked",
    "complaint",
    "file_complaint",
    "file_of",
    "got",
    "is_plain",
    "one_of",
    "or_null",
    "parsed",
    "shown",
]

_LONGEST_SHOWN = 60
_DEEPEST = 8
"""How deep what was asked may be nested."""


@dataclass(frozen=True)
class Entry:
    """The declaration of an entry: a test, and the words for it."""

    fits: Callable[[Any], bool]
    words: str


Schema: TypeAlias = Mapping[str, Entry]
"""Names of fields to what may stand in them."""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST


def _is_text(value: Any) -> bool:
    """Return whether it is text that files can hold; JSON can write halves of characters, too."""
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


def is_plain(value: Any, depth: int = _DEEPEST) -> bool:
    """Return whether it is what JSON can say, of numbers and text that files can hold, and not nested too deep."""
    if isinstance(value, dict):
        return depth > 0 and all(_is_text(name) and is_plain(one, depth - 1) for name, one in value.items())
    if isinstance(value, list):
        return depth > 0 and all(is_plain(one, depth - 1) for one in value)
    return value is None or isinstance(value, bool) or _is_number(value) or _is_text(value)


def or_null(entry: Entry) -> Entry:
    """Allow null, too."""
    return Entry(lambda value: value is None or entry.fits(value), f"{entry.words}, or null")


def one_of(*words: str) -> Entry:
    """One of these words."""
    return Entry(lambda value: isinstance(value, str) and value in words, f"one of {', '.join(words)}")


NUMBER = Entry(_is_number, "a finite number")
SECONDS = Entry(lambda value: _is_number(value) and value >= 0, "seconds")
WHOLE = Entry(lambda value: type(value) is int and 0 <= value < 2**63, "a whole number")
TEXT = Entry(_is_text, "text")
HASH = Entry(_is_hash, "a hash of 64 digits")
PROBLEM = Entry(_is_problem, "a name such as aryl.reclaim")

RUN: Schema = {
    "started": TEXT,
    "seconds": or_null(SECONDS),
    "jobs": WHOLE,
    "command": TEXT,
    "commit": or_null(TEXT),
    "versions": Entry(
        lambda value: isinstance(value, dict) and all(_is_text(one) for item in value.items() for one in item),
        "versions by name",
    ),
    "machine": Entry(lambda value: isinstance(value, dict) and is_plain(value), "facts by name"),
    "shard": or_null(Entry(lambda value: _is_text(value) and shard_of(value) is not None, "a shard such as 0/16")),
}
"""What ran."""
_MACHINE: Schema = {"system": TEXT, "processor": TEXT, "cores": WHOLE}
_RECORD: Schema = {
    "asked": Entry(lambda value: isinstance(value, dict) and is_plain(value), "what was asked, by name"),
    "run": Entry(lambda value: isinstance(value, dict), "what ran, by name"),
    "cells": Entry(lambda value: isinstance(value, list), "a list of cells"),
}
_MORE_OF_RECORD: Schema = {"runs": Entry(lambda value: isinstance(value, list), "a list of runs")}


def parsed(content: bytes) -> Any:
    """Parse JSON.

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


def check_run(record: Any, asked: Schema) -> str:
    """Say what is wrong with a record but for its cells; empty when nothing is.

    Parameters
    ----------
    record : object
    asked : Schema
        Of what was asked; what is not there is null.
    """
    if not isinstance(record, dict) or not _RECORD.keys() <= record.keys():
        return "not the record of a study"
    wrong = complaint(record, _RECORD) or complaint({"runs": [], **record}, _MORE_OF_RECORD)
    wrong = wrong or complaint(dict.fromkeys(asked) | record["asked"], asked, "asked.")
    if wrong:
        return wrong
    for name, run in [("run", record["run"]), *((f"runs[{i}]", one) for i, one in enumerate(record.get("runs", [])))]:
        if not isinstance(run, dict):
            return got(name, run, "what ran, by name")
        # Versions before know of no shards.
        wrong = wrong or complaint({"shard": None, **run}, RUN, f"{name}.")
        wrong = wrong or complaint(run["machine"], _MACHINE, f"{name}.machine.")
    return wrong


def file_of(problem: str, digest: str) -> str:
    """Path of an instance's JSON below the directory of a table."""
    return f"instances/{problem}/{digest[:16]}.json"


class Cells(Sequence[dict[str, Any]]):
    """The records of cells, in order; kept by columns, because there may be 100,000.

    Parameters
    ----------
    records : iterable of mapping
        As :func:`checked` gives them.
    entries : iterable of str
        Of each record, ``key`` among them.

    Attributes
    ----------
    columns : dict of list
        Every entry but ``file``, which follows from the others.
    numbers : dict of int
        By key, the number of the cell.
    """

    def __init__(self, records: Iterable[Mapping[str, Any]], entries: Iterable[str] = ("key",)) -> None:
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

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the record of the cell with a key; None where there is none."""
        number = self.numbers.get(key)
        return None if number is None else self[number]


def checked(records: Iterable[Any], schema: Schema, distinct: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """Yield the cells of a record, each of them checked.

    Parameters
    ----------
    records : iterable
    schema : Schema
        Of each.
    distinct : sequence of str
        Entries in which no two agree; nor are there two with one key.

    Raises
    ------
    ValueError
        When one is not what it must be.
    """
    keys, others = set(), set()
    for number, cell in enumerate(records):
        where = f"cells[{number}]"
        if not isinstance(cell, dict):
            raise ValueError(f"{where}: got {shown(cell)}, must be a cell")
        wrong = complaint(cell, schema, f"{where}.") or file_complaint(cell, f"{where}.")
        if wrong:
            raise ValueError(wrong)
        # Each stands in many cells.
        other = tuple(sys.intern(cell[name]) if isinstance(cell[name], str) else cell[name] for name in distinct)
        if cell["key"] in keys or (distinct and other in others):
            raise ValueError(f"{where}: another cell has the same key, or the same {' and '.join(distinct)}")
        keys.add(cell["key"])
        others.add(other)
        yield cell


def complaint(record: Mapping[str, Any], schema: Schema, place: str = "") -> str:
    """Complain about the first entry that is missing or is not what it must be."""
    for name, kind in schema.items():
        if name not in record:
            return f"field {place + name!r} is missing"
        if not kind.fits(record[name]):
            return got(place + name, record[name], kind.words)
    return ""


def file_complaint(record: Mapping[str, Any], place: str = "") -> str:
    """Complain about a file elsewhere than in the directory, which is neither read nor linked; empty without one."""
    if "file" not in record:
        return ""
    wanted = file_of(record["problem"], record["instance"])
    return "" if record["file"] == wanted else got(f"{place}file", record["file"], wanted)


def got(name: str, value: Any, words: str) -> str:
    """Complain about an entry that is not what ``words`` say."""
    return f"field {name!r}: got {shown(value)}, must be {words}"


def shown(value: Any) -> str:
    """Show a value in a message, however long it is."""
    said = printable(json.dumps(value, ensure_ascii=False)) if is_plain(value) else f"{type(value).__name__}"
    return said if len(said) <= _LONGEST_SHOWN else f"{said[:_LONGEST_SHOWN]}..."
