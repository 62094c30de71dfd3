"""Boards: judgements of one folder as a table, each held against its program, and judged again where its set is known.

A board is a folder.  In it, and below it, are judgements (``optgap judge --json``), the programs that they are of, and
commitments and secrets of hidden sets, each known by what it holds and not by its name.
"""

from __future__ import annotations

import hashlib
import math
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from instances.base import InstanceError, agree
from instances.text import as_json, read_text
from validation.errors import OracleDisagreementError, StudyError
from validation.kernel.provenance import version
from validation.kinds.judge.judging import CHECKED, judge_on
from validation.kinds.judge.secret import Commitment, Secret, commitment_of, secret_of
from validation.kinds.judge.sets import DrawnSet, draw
from validation.pages.render import table_lines

__all__ = ["OTHER_VERSIONS", "RECOMPUTED", "SEALED", "UNTRIED", "Board", "Entry", "judgements_in", "read_board"]

RECOMPUTED = "recomputed"
"""The program was judged again on the same instances, and the score is the same."""
SEALED = "sealed"
"""The set is committed to and not revealed yet."""
OTHER_VERSIONS = "other versions"
"""The set is not drawn by the versions that are installed here, which are not those of the judgement."""
UNTRIED = "not recomputed"
"""Nobody asked for it."""

_KINDS = {
    "problem": str,
    "heuristic": str,
    "score": float,
    "set": str,
    "edition": int,
    "split": str,
    "budget": float,
    "no_solver": bool,
    "versions": dict,
    "instances": list,
}
"""What a board needs of a judgement."""


@dataclass(frozen=True)
class Entry:
    """A judgement on a board.

    Attributes
    ----------
    file : str
        Of the judgement, below the board's folder.
    program : str
        File of the program, below the board's folder; "" where there is none.
    digest : str
        SHA-256 of the program that was judged.
    problem, set, split : str
    score, worst : float
        Mean and least score of its instances.
    optimal, certified, instances : int
        Instances with an optimal plan, those whose optimum no solver's word is needed for, and all.
    no_solver : bool
    versions : dict of str to str
    checked : str
        What came of a look at it: one of the words above, or what is wrong.
    wrong : bool
        Whether it is refuted.
    """

    file: str
    program: str
    digest: str
    problem: str
    set: str
    split: str
    score: float
    worst: float
    optimal: int
    certified: int
    instances: int
    no_solver: bool
    versions: dict[str, str]
    checked: str
    wrong: bool


@dataclass(frozen=True)
class Board:
    """A board as it was found: entries by problem and set, the best first."""

    folder: Path
    entries: tuple[Entry, ...]

    @property
    def wrong(self) -> list[str]:
        """What does not hold, a line for each entry."""
        return [f"{one.file}: {one.checked}" for one in self.entries if one.wrong]

    def to_dict(self) -> dict[str, Any]:
        """Return the board as JSON."""
        return {"entries": [asdict(one) for one in self.entries]}

    def __str__(self) -> str:
        """Return the board in Markdown, a table for each set."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        numbers = ("score", "worst", "optimal", "certified")
        columns = ("program", *numbers, "solvers", "program's digest", "version", "checked")
        for problem, found in dict.fromkeys((one.problem, one.set) for one in self.entries):
            rows = [one for one in self.entries if (one.problem, one.set) == (problem, found)]
            yield f"**{problem}**, {rows[0].split} set `{found[:16]}`"
            yield ""
            yield from table_lines(columns, map(_cells, rows), numbers)
            yield ""


def _cells(one: Entry) -> tuple[str, ...]:
    return (
        one.program or one.file,
        f"{one.score:.4f}",
        f"{one.worst:.4f}",
        f"{one.optimal} of {one.instances}",
        f"{one.certified} of {one.instances}",
        "kept away" if one.no_solver else "within reach",
        f"`{one.digest[:16]}`",
        one.versions.get("scheduling-formulations", ""),
        one.checked,
    )


def read_board(folder: Path, *, recompute: bool = True, jobs: int | None = None) -> Board:
    """Read a board, and hold every judgement against its program.

    Parameters
    ----------
    folder : Path
    recompute : bool
        Whether programs are judged again where their set is public or revealed; each as one file, alone in a folder.
    jobs : int, optional
        Instances at once; one for each core by default.

    Raises
    ------
    StudyError
        When there is no judgement in the folder, or something that cannot be read.
    """
    if not folder.is_dir():
        raise StudyError(f"{folder} is no folder")
    inside = _Inside(folder)
    if not inside.judgements:
        raise StudyError(f"{folder} holds no judgement of a program: optgap judge FILE.py:function --json makes one")
    for file, data in inside.judgements.items():
        if not isinstance(data["program"], str):
            raise StudyError(f"{file}: program: got {data['program']!r}, must be the digest of a file")
    found = [inside.entry(file, data, recompute, jobs) for file, data in inside.judgements.items()]
    found.sort(key=lambda one: (one.problem, one.split != "public", one.set, -one.score, one.program, one.file))
    return Board(folder, tuple(found))


def judgements_in(folder: Path) -> dict[Path, Mapping[str, Any]]:
    """Return the judgements in and below a folder, as JSON, by their files."""
    return _Inside(folder).judgements


class _Inside:
    """What a folder holds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs = {_sha256(file): file for file in sorted(folder.rglob("*.py")) if file.is_file()}
        self.judgements: dict[Path, Mapping[str, Any]] = {}
        self.commitments: dict[str, Commitment] = {}
        self.secrets: dict[str, tuple[Secret, Path]] = {}
        for file in sorted(folder.rglob("*.json")):
            self._read(file)
        self._sets: dict[tuple[str, int, str | None], DrawnSet] = {}

    def _read(self, file: Path) -> None:
        text = read_text(file)
        try:
            data = as_json(text, f"{file}")
        except InstanceError as error:
            raise StudyError(str(error)) from None
        if not isinstance(data, Mapping):
            return
        if "salt" in data:
            secret = secret_of(text, f"{file}")
            self.secrets[secret.commitment] = secret, file
        elif (commitment := commitment_of(data)) is not None:
            self.commitments[commitment.commitment] = commitment
        elif "instances" in data and "heuristic" in data:
            if bad := next((name for name, kind in _KINDS.items() if not isinstance(data.get(name), kind)), None):
                raise StudyError(f"{file}: {bad}: got {data.get(bad)!r:.100}, must be as optgap judge --json has it")
            if not data["instances"] or not all(_is_score(one) for one in data["instances"]):
                raise StudyError(f"{file}: instances: must be as optgap judge --json has them, and one at least")
            self.judgements[file] = {"program": None, **data}

    def entry(self, file: Path, data: Mapping[str, Any], recompute: bool, jobs: int | None) -> Entry:
        """Return a judgement as an entry, with what came of a look at it."""
        program = self.programs.get(data["program"])
        scores = [float(one["score"]) for one in data["instances"]]
        checked, wrong = self._checked(data, scores, program, recompute, jobs)
        return Entry(
            file=str(file.relative_to(self.folder)),
            program="" if program is None else str(program.relative_to(self.folder)),
            digest=data["program"],
            problem=data["problem"],
            set=data["set"],
            split=data["split"],
            score=data["score"],
            worst=min(scores),
            optimal=scores.count(1.0),
            certified=sum(one.get("proof") in CHECKED for one in data["instances"]),
            instances=len(scores),
            no_solver=data["no_solver"],
            versions=dict(data["versions"]),
            checked=checked,
            wrong=wrong,
        )

    def _checked(
        self, data: Mapping[str, Any], scores: list[float], program: Path | None, recompute: bool, jobs: int | None
    ) -> tuple[str, bool]:
        """Return what came of a look at a judgement, and whether that refutes it."""
        if program is None:
            return "no file here has the program's digest", True
        if not agree(data["score"], math.fsum(scores) / len(scores)):
            return "the score is not the mean of its instances", True
        commitment = data.get("commitment")
        known = self.commitments.get(str(commitment))
        if known is not None and known.set != data["set"]:
            return "the set is not the one that was committed to", True
        if commitment is not None and commitment not in self.secrets:
            return (SEALED, False) if known is not None else ("no commitment here is that of its set", True)
        try:
            drawn = self._drawn(data["problem"], data["edition"], commitment)
        except StudyError as error:
            return str(error), True
        if drawn.digest != data["set"]:
            same = all(data["versions"].get(one) == version(one) for one in ("scheduling-formulations", "numpy"))
            return ("its set is neither public nor revealed", True) if same else (OTHER_VERSIONS, False)
        if not recompute:
            return UNTRIED, False
        return _recomputed(data, drawn, program, jobs)

    def _drawn(self, problem: str, edition: int, commitment: str | None) -> DrawnSet:
        key = problem, edition, commitment
        if key not in self._sets:
            self._sets[key] = draw(problem, None if commitment is None else self.secrets[commitment][1], edition)
        return self._sets[key]


def _recomputed(data: Mapping[str, Any], drawn: DrawnSet, program: Path, jobs: int | None) -> tuple[str, bool]:
    # Alone, because its digest says nothing of what it would find beside it.
    with tempfile.TemporaryDirectory(prefix="optgap-") as alone:
        function = data["heuristic"].rpartition(":")[2]
        copied = shutil.copy(program, alone)
        try:
            found = judge_on(
                drawn, f"{copied}:{function}", data["problem"],
                budget=data["budget"], jobs=jobs, hidden=data["split"] == "hidden", no_solver=data["no_solver"],
            )  # fmt: skip
        except (StudyError, OracleDisagreementError) as error:
            return str(error), True
    if not agree(found.score, data["score"]):
        return f"judged again, its score is {found.score:.4f}", True
    return RECOMPUTED, False


def _is_score(one: Any) -> bool:
    return isinstance(one, Mapping) and isinstance(one.get("score"), float)


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
