"""The instances on which heuristics are judged: fixed by a seed, public or kept in a file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from instances.files import read, text_of
from validation import catalogue
from validation.errors import CatalogueError, StudyError
from validation.kernel.isolation import Apart
from validation.kinds.judge.secret import Commitment, Secret, new_secret, secret_of, seed_in
from validation.kinds.study.cases import generate

__all__ = [
    "COUNT",
    "EDITION",
    "PUBLIC_SEED",
    "DrawnSet",
    "committed",
    "draw",
    "drawn",
    "seal",
    "seed_file",
    "set_digest",
    "sizes_of",
]

PUBLIC_SEED = 20_180_610
"""Of the public set of every problem."""

COUNT = 12
"""Instances of each size."""

EDITION = 1
"""Of the rule by which sets are drawn: sizes, how many of each, and which of those that are generated."""

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


@dataclass(frozen=True)
class DrawnSet:
    """The instances of a set.

    Attributes
    ----------
    texts : list of str
        As JSON, in the order of their digests, which does not tell how they were drawn.
    edition : int
    commitment : str, optional
        Of the secret that the seed is from, where it is one (:class:`validation.kinds.judge.secret.Secret`).
    """

    texts: list[str]
    edition: int = EDITION
    commitment: str | None = None

    @property
    def digest(self) -> str:
        """Digest of the set (:func:`set_digest`)."""
        return set_digest(read(json.loads(text)).digest for text in self.texts)


def set_digest(digests: Iterable[str]) -> str:
    """Return the digest of a set, SHA-256 over those of its instances, one a line in their order."""
    return hashlib.sha256("\n".join(sorted(digests)).encode()).hexdigest()


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
    """Draw the set's instances as JSON; see :func:`draw`."""
    return draw(problem, file).texts


def draw(problem: str, file: Path | None) -> DrawnSet:
    """Draw a set from the seed in a file, or a secret with one; None for the public set.

    It is drawn in a process of its own, so that this one, from which the processes of heuristics are forked, never
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
    return DrawnSet(**said)


def _draw(problem: str, file: Path | None) -> dict[str, Any]:
    try:
        found: int | Secret = PUBLIC_SEED if file is None else seed_in(file, problem)
        seed = found if isinstance(found, int) else found.seed
        made = [generate(problem, seed, size, index) for size in sizes_of(problem) for index in range(COUNT)]
    except (StudyError, CatalogueError) as error:
        return {"refused": str(error)}
    except OSError as error:
        return {"refused": f"{file}: {error.strerror}"}
    texts = {instance.digest: text_of(instance) for instance in made}
    commitment = None if isinstance(found, int) else found.commitment
    return {"texts": [texts[digest] for digest in sorted(texts)], "commitment": commitment}


def seal(file: Path, problem: str) -> Commitment:
    """Make a secret, unless the file is one already, and return what commits to it.

    Raises
    ------
    StudyError, CatalogueError
        When the problem is unknown, or the file is something else.
    OSError
        When the file cannot be written.
    """
    catalogue.entry(problem)
    if not file.exists():
        new_secret(file, problem, EDITION)
    return committed(file, problem)


def committed(file: Path, problem: str | None = None) -> Commitment:
    """Return what commits to a secret; the set is drawn anew.

    Raises
    ------
    StudyError
        When the file is no secret, or one of another problem.
    """
    secret = secret_of(file.read_text(encoding="utf-8", errors="replace"), f"{file}")
    found = draw(problem or secret.problem, file)
    return Commitment(secret.problem, secret.edition, secret.version, secret.commitment, found.digest)
