"""Numbers in a sentence."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["listed"]


def listed(items: Iterable[object], last: str = "and") -> str:
    """Return a list in words: ``1``, ``1 and 2`` or ``1, 2 and 3``."""
    *before, end = map(str, items)
    return f"{', '.join(before)} {last} {end}" if before else end
