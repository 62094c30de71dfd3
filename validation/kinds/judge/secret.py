"""Secrets of hidden sets: sealed before anybody is judged, revealed afterwards, so that anyone judges again.

A secret is a file with a seed and a salt.  Its commitment, which is published first, is the SHA-256 of its bytes, and
tells nothing of them; who has the file finds the same with ``sha256sum``.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from instances.base import InstanceError
from instances.text import as_json
from validation.errors import StudyError
from validation.kernel.provenance import version

__all__ = ["BITS", "Commitment", "Secret", "commitment_of", "new_secret", "secret_of", "seed_in"]

BITS = 128
"""Of a seed that nobody guesses, and of a salt."""


@dataclass(frozen=True)
class Secret:
    """What a hidden set is drawn from.

    Attributes
    ----------
    problem : str
    edition : int
        Of the rule by which the set is drawn.
    seed : int
    salt : str
        So that whoever guesses a seed cannot tell from the commitment.
    version : str
        Of the library that sealed it.
    """

    problem: str
    edition: int
    seed: int
    salt: str
    version: str

    @property
    def text(self) -> str:
        """Content of its file, the same to the byte wherever it is written."""
        # The seed as text: a whole number of 128 bits is none to many readers of JSON.
        return json.dumps({**asdict(self), "seed": str(self.seed)}, sort_keys=True) + "\n"

    @property
    def commitment(self) -> str:
        """SHA-256 of its file."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def new_secret(file: Path, problem: str, edition: int) -> Secret:
    """Draw a seed and a salt from the system's randomness, and write them to a new file that its owner alone reads.

    Raises
    ------
    OSError
        When the file cannot be made, or is there already.
    """
    made = Secret(
        problem, edition, secrets.randbits(BITS), secrets.token_hex(BITS // 8), version("scheduling-formulations")
    )
    number = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(number, "w", encoding="utf-8") as opened:
        opened.write(made.text)
    return made


def seed_in(file: Path, problem: str) -> int | Secret:
    """Return the seed that a file holds as a number, or the secret that it is, of the problem.

    Raises
    ------
    StudyError
        When it is neither, without a word of what it holds, which may be most of a secret.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        text = ""
    if text.lstrip().startswith("{"):
        found = secret_of(text, f"{file}")
        if found.problem != problem:
            raise StudyError(f"split: {file} is a secret of {found.problem}, and {problem} is judged")
        return found
    try:
        seed = int(text)
    except ValueError:
        seed = -1
    if seed < 0:
        raise StudyError(
            f"split: {file} must hold a whole number of at least 0, and nothing else, or be what optgap judge seal made"
        )
    return seed


def secret_of(text: str, name: str) -> Secret:
    """Read a secret from the content of its file.

    Raises
    ------
    StudyError
        When it is none, or not to the byte as it was written, so that its commitment would be another one.
    """
    try:
        data: Any = as_json(text, name)
    except InstanceError:
        data = None
    if isinstance(data, Mapping) and {one.name for one in fields(Secret)} == set(data):
        seed, edition = data["seed"], data["edition"]
        if isinstance(seed, str) and seed.isascii() and seed.isdecimal() and len(seed) < BITS and type(edition) is int:
            found = Secret(str(data["problem"]), edition, int(seed), str(data["salt"]), str(data["version"]))
            if found.text == text:
                return found
    raise StudyError(f"{name}: is no secret of optgap judge seal, or has been changed since")


@dataclass(frozen=True)
class Commitment:
    """What is published of a secret before it is revealed: nothing tells the seed, and no other secret fits.

    Attributes
    ----------
    problem : str
    edition : int
    version : str
        Of the library that sealed it.
    commitment : str
        SHA-256 of the secret's file.
    set : str
        Digest of the set that is drawn from it (:func:`validation.kinds.judge.sets.set_digest`).
    """

    problem: str
    edition: int
    version: str
    commitment: str
    set: str

    def misfits(self, other: Commitment) -> list[str]:
        """Say in what another one differs, a line for each."""
        told = asdict(other)
        return [
            f"{name} is {told[name]}, committed was {one}" for name, one in asdict(self).items() if one != told[name]
        ]


def commitment_of(data: Any) -> Commitment | None:
    """Read a commitment from JSON; None where it is none."""
    if not isinstance(data, Mapping) or {one.name for one in fields(Commitment)} != set(data):
        return None
    known = {one.name: int if one.name == "edition" else str for one in fields(Commitment)}
    return Commitment(**data) if all(type(data[name]) is kind for name, kind in known.items()) else None
