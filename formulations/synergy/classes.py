"""Jobs that are alike in everything, which models count instead of naming."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

__all__ = ["equal_rows"]


def equal_rows(rows: Sequence[Hashable]) -> list[list[int]]:
    """Positions of equal entries: one list for each different entry, in order of first appearance."""
    classes: dict[Hashable, list[int]] = {}
    for position, row in enumerate(rows):
        classes.setdefault(row, []).append(position)
    return list(classes.values())
