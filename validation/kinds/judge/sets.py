"""The instances on which heuristics are judged: fixed by a seed, public or kept in a file."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from instances.files import text_of
from validation import catalogue
from validation.errors import CatalogueError, StudyError
from validation.kernel.isolation import Apart
from validation.kinds.study.cases import generate

__all__ = ["COUNT", "PUBLIC_SEED", "drawn", "seed_file", "sizes_of"]

PUBLIC_SEED = 20_180_610
"""Of the public set of every problem."""

COUNT = 12
"""Instances of each size."""

_SIZES = {
    "aryl.base_allocation": (4, 5),
    "aryl.placement": (10, 20),
    "aryl.reclaim": (10, 20, 30),
    "elasticflow.admission": (5, 10),
    "elasticflow.best_effort": (4, 6),
    "synergy.placement": (2, 4),
    "synergy.tuning": (1, 2),
}
"""Where those of the catalogue take longer to prove than a judge should."""

_SECONDS = 300.0
"""For drawing a set."""


def sizes_of(problem: str) -> tuple[int, ...]:
    """Sizes of a problem's sets, whose optima are proven in about a second each."""
    return _SIZES.get(problem, catalogue.entry(problem).sizes)


def seed_file(split: str) -> Path | None:
    """Return the file, or pipe, with the seed of a hidden set; None of the public one.

    Raises
    ------
    StudyError
        When it is neither.
    """
    if split == "public":
        return None
    kind, _, name = split.partition(":")
    if kind != "hidden" or not name:
        raise StudyError(f"split: got {split!r}, must be public or hidden:FILE, a file with the seed")
    file = Path(name)
    if not (file.is_file() or file.is_fifo()):
        raise StudyError(
            f"split: {name} is no file: the seed of a hidden set stands in one, because a heuristic can read what this "
            "process was told"
        )
    return file


def drawn(problem: str, file: Path | None) -> list[str]:
    """Draw the set's instances, as JSON in the order of their digests, which does not tell how they were drawn.

    They are drawn in a process of its own, so that this one, from which the processes of heuristics are forked, never
    knows a hidden seed.

    Raises
    ------
    StudyError, CatalogueError
        When the problem is unknown, or the file holds no seed.
    """
    catalogue.entry(problem)
    with Apart(partial(_draw, problem), own=True) as apart:
        answer = apart.ask(file, seconds=_SECONDS)
    said = answer.content or {"error": answer.reason}
    if "texts" not in said:
        raise StudyError(str(said.get("refused", f"the instances of {problem} cannot be drawn: {said.get('error')}")))
    return list(said["texts"])


def _draw(problem: str, file: Path | None) -> dict[str, Any]:
    try:
        seed = PUBLIC_SEED if file is None else _seed_in(file)
        found = [generate(problem, seed, size, index) for size in sizes_of(problem) for index in range(COUNT)]
    except (StudyError, CatalogueError) as error:
        return {"refused": str(error)}
    except OSError as error:
        return {"refused": f"{file}: {error.strerror}"}
    texts = {instance.digest: text_of(instance) for instance in found}
    return {"texts": [texts[digest] for digest in sorted(texts)]}


def _seed_in(file: Path) -> int:
    try:
        seed = int(file.read_text(encoding="utf-8"))
    except ValueError:
        seed = -1
    if seed < 0:
        # Without a word of what it holds, which may be most of a secret.
        raise StudyError(f"split: {file} must hold a whole number of at least 0, and nothing else")
    return seed
