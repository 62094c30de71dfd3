"""What an instance tells of the data it was drawn from, in words: files, rows left out, what was repaired.

An origin is a reader's (:mod:`instances.data.origin`) or anybody's, and of a file that may have been changed: what is
not as readers tell it is passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["read_files", "repairs", "told"]


def read_files(origin: Mapping[str, Any] | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """What each file is to the instance ("trace", say), and how it was read; a reader's table has one before."""
    for what in ("throughputs", "trace", "placements"):
        reading = (origin or {}).get(what)
        while isinstance(reading, Mapping):
            if isinstance(reading.get("source"), str):
                yield what, dict(reading)
            reading = reading.get("before")


def repairs(origin: Mapping[str, Any] | None) -> dict[str, int]:
    """What was changed or filled in, and for how many jobs."""
    found = (origin or {}).get("repairs")
    return {str(what): count for what, count in found.items() if _whole(count)} if isinstance(found, Mapping) else {}


def told(reading: Mapping[str, Any]) -> list[str]:
    """What there is to know of how a file was read, beside its name and its rows."""
    lines = []
    if _whole(skipped := reading.get("skipped")):
        reasons = reading.get("reasons")
        first = f", the first: {reasons[0]}" if isinstance(reasons, list) and reasons else ""
        lines.append(f"{skipped:,} rows skipped{first}")
    if _whole(repeated := reading.get("repeated")):
        lines.append(f"{repeated:,} rows have the job_id of one before")
    for name, word in (("left_out", "left out"), ("filled_in", "filled in")):
        some = reading.get(name)
        if isinstance(some, Mapping):
            lines += [f"{count:,} rows {word}: {what}" for what, count in some.items() if _whole(count)]
    return lines


def _whole(count: Any) -> bool:
    """Whether it is a number of things, and not none."""
    return isinstance(count, int) and not isinstance(count, bool) and count > 0
