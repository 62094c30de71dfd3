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
    "checked_edition",
    "committed",
    "draw",
    "drawn",
    "family_of",
    "seal",
    "seed_file",
    "set_digest",
    "sizes_of",
]

PUBLIC_SEED = 20_180_610
"""Of the public set of every problem."""

COUNT = 12
"""Instances of each size."""

EDITION = 2
"""Of the rule by which sets are drawn: how large instances are, and of which family."""

_SIZES: dict[str, tuple[int, ...]] = {
    "afs.network_packing": (20, 40),
    "aryl.base_allocation": (10, 12),
    "aryl.placement": (40, 80),
    "aryl.reclaim": (80, 150),
    "elasticflow.admission": (15, 20),
    "elasticflow.best_effort": (8, 12),
    "elasticflow.minimum_satisfactory_share": (8,),
    "eplb.placement": (8, 12),
    "synergy.placement": (4, 6),
    "synergy.tuning": (1, 2),
}
"""Where those of the catalogue take longer to prove than a judge should, or leave the best heuristics nothing to do."""

_FAMILIES: dict[str, dict[str, Any]] = {
    "afs.network_packing": {"floor_guarantee": False},
    "aryl.base_allocation": {"capacity": 8},
    "elasticflow.best_effort": {"part": 0.8, "stretch": 1.2},
    "elasticflow.minimum_satisfactory_share": {"curves": "measured"},
    "synergy.placement": {"integral_gpus": True},
}
"""What else the generator is given, where its defaults leave them nothing to do."""

_FIRST: dict[str, tuple[int, ...]] = {
    "afs.network_packing": (10, 50, 200),
    "aryl.base_allocation": (4, 5),
    "aryl.placement": (10, 20),
    "aryl.reclaim": (10, 20, 30),
    "elasticflow.admission": (5, 10),
    "elasticflow.best_effort": (4, 6),
    "elasticflow.minimum_satisfactory_share": (4, 8, 12),
    "eplb.placement": (8, 12, 32),
    "synergy.placement": (2, 4),
}
"""Sizes of the first edition where they were others; its families are the generators' defaults."""

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


def sizes_of(problem: str, edition: int = EDITION) -> tuple[int, ...]:
    """Sizes of a problem's sets, whose optima are proven in about a second each."""
    first = _FIRST.get(problem) if edition == 1 else None
    return first or _SIZES.get(problem, catalogue.entry(problem).sizes)


def family_of(problem: str, edition: int = EDITION) -> dict[str, Any]:
    """Return what else the generator of a problem's sets is given."""
    return {} if edition == 1 else _FAMILIES.get(problem, {})


def checked_edition(edition: int) -> int:
    """Return an edition that there is.

    Raises
    ------
    StudyError
    """
    if not 1 <= edition <= EDITION:
        raise StudyError(f"edition: got {edition}, must be from 1 to {EDITION}")
    return edition


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


def drawn(problem: str, file: Path | None = None) -> list[str]:
    """Draw the set's instances as JSON; see :func:`draw`."""
    return draw(problem, file).texts


def draw(problem: str, file: Path | None = None, edition: int | None = None) -> DrawnSet:
    """Draw a set from the seed in a file, or a secret with one; the public set without.

    The edition is the secret's, or the latest unless told otherwise.

    It is drawn in a process of its own, so that this one, from which the processes of heuristics are forked, never
    knows a hidden seed.

    Raises
    ------
    StudyError, CatalogueError
        When the problem or the edition is unknown, or the file holds no seed.
    """
    catalogue.entry(problem)
    with Apart(partial(_draw, problem, edition), own=True) as apart:
        answer = apart.ask(file, seconds=_SECONDS)
    said = answer.content or {"error": answer.reason}
    if "texts" not in said:
        raise StudyError(str(said.get("refused", f"the instances of {problem} cannot be drawn: {said.get('error')}")))
    return DrawnSet(**said)


def _draw(problem: str, edition: int | None, file: Path | None) -> dict[str, Any]:
    try:
        found: int | Secret = PUBLIC_SEED if file is None else seed_in(file, problem)
        seed, commitment = (found, None) if isinstance(found, int) else (found.seed, found.commitment)
        own = None if isinstance(found, int) else found.edition
        if None not in (own, edition) and own != edition:
            raise StudyError(f"edition: got {edition}, and {file} is a secret of edition {own}")
        rule = checked_edition(own or edition or EDITION)
        family = family_of(problem, rule)
        made = [generate(problem, seed, size, i, family) for size in sizes_of(problem, rule) for i in range(COUNT)]
    except (StudyError, CatalogueError) as error:
        return {"refused": str(error)}
    except OSError as error:
        return {"refused": f"{file}: {error.strerror}"}
    texts = {instance.digest: text_of(instance) for instance in made}
    return {"texts": [texts[digest] for digest in sorted(texts)], "edition": rule, "commitment": commitment}


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
