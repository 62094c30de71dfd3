"""The counterexamples beside the claims' pages, and which of them a module judges."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from instances.reference import Reference

__all__ = ["FOLDER", "JUDGED", "judges", "stored"]

FOLDER = Path(__file__).parents[2] / "docs" / "claims"

JUDGED: set[str] = set()
"""Those that a test judges, as ``paper/problem/claim-reading``."""

Judge = Callable[[dict[str, Any], Reference], None]


def stored(name: str) -> tuple[dict[str, Any], Reference]:
    """Return the data of a stored counterexample, and the reference's reading of them."""
    text = (FOLDER / f"{name}.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data, Reference(text)


def judges(*names: str) -> Callable[[Judge], Callable[[], None]]:
    """Make a test of a function that is given data and reference of each of the counterexamples named."""
    JUDGED.update(names)

    def made(judge: Judge) -> Callable[[], None]:
        def test() -> None:
            for name in names:
                judge(*stored(name))

        test.__doc__, test.__name__ = judge.__doc__, judge.__name__
        return test

    return made
