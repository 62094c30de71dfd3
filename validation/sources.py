"""Sources of an instance's data, in words: files, rows left out, repairs.

An origin is a reader's (:mod:`instances.data.origin`) or anybody's, and of a file that may have been changed: what is
not as readers tell it is passed over.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["called", "held", "read_files", "repairs", "told"]


def held(given: Any) -> Any:
    """Return sources, alone, in a list or by name, with each DataFrame as a table that is read once."""
    if isinstance(given, Mapping):
        return {name: held(one) for name, one in given.items()}
    if isinstance(given, (list, tuple)):
        return [held(one) for one in given]
    if given is None or isinstance(given, (str, os.PathLike)):
        return None if given is None else os.fspath(given)
    from instances.data.lines import read_table

    return read_table(given)


def called(given: Any) -> Any:
    """Return the same in words: paths as they are, and tables by the hashes of their content."""
    if isinstance(given, Mapping):
        return {name: called(one) for name, one in given.items()}
    if isinstance(given, list):
        return [called(one) for one in given]
    if given is None or isinstance(given, str):
        return given
    return f"{given.name} {given.sha256}"


def read_files(origin: Mapping[str, Any] | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the role of each file ("trace", say), and how it was read; a reader's table has one before."""
    for what in ("throughputs", "trace", "placements"):
        reading = (origin or {}).get(what)
        while isinstance(reading, Mapping):
            if isinstance(reading.get("source"), str):
                yield what, dict(reading)
            reading = reading.get("before")


def repairs(origin: Mapping[str, Any] | None) -> dict[str, int]:
    """Return the changes and fillings of the data, and for how many jobs each."""
    found = (origin or {}).get("repairs")
    return {str(what): count for what, count in found.items() if _whole(count)} if isinstance(found, Mapping) else {}


def told(reading: Mapping[str, Any]) -> list[str]:
    """Return the facts about how a file was read, beside its name and its rows, a line each."""
    lines = []
    if _whole(skipped := reading.get("skipped")):
        reasons = reading.get("reasons")
        first = f", the first: {reasons[0]}" if isinstance(reasons, list) and reasons else ""
        lines.append(f"{skipped:,} rows skipped{first}")
    if _whole(repeated := reading.get("repeated")):
        lines.append(f"{repeated:,} rows have the job_id of one before")
    doubts = reading.get("doubts")
    lines += [f"doubtful: {doubt}" for doubt in doubts] if isinstance(doubts, list) else []
    for name, word in (("left_out", "left out"), ("filled_in", "filled in")):
        some = reading.get(name)
        if isinstance(some, Mapping):
            lines += [f"{count:,} rows {word}: {what}" for what, count in some.items() if _whole(count)]
    return lines


def _whole(count: Any) -> bool:
    """Return whether a count is a whole number above 0."""
    return isinstance(count, int) and not isinstance(count, bool) and count > 0
