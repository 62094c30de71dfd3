"""What the user got wrong: one line that names the culprit."""

from __future__ import annotations

__all__ = ["CatalogueError", "StudyError"]


class CatalogueError(ValueError):
    """There is no problem or heuristic of that name; the message suggests the nearest one."""


class StudyError(ValueError):
    """A study, a check or a hunt cannot be run as asked; the message names what is wrong."""
