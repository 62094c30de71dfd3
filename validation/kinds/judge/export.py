"""Tasks for harnesses that evolve programs: finished directories, whose evaluator is the judge.

A harness is a folder of templates (``harnesses/``), file for file what it wants; they are filled with the problem's
instructions, a first program, and the seed of a hidden set where the harness asks for a test.
"""

from __future__ import annotations

import json
import os
import secrets
import tempfile
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from formulations import solve
from instances.base import Instance
from instances.files import read
from instances.schema import nearest, quoted
from validation.catalogue import entry
from validation.errors import StudyError
from validation.kernel.provenance import version
from validation.kinds.judge.evaluating import BUDGET, texts_of
from validation.kinds.judge.instructions import first_program, instructions
from validation.kinds.judge.sets import drawn
from validation.outputs import folder_to_write

__all__ = ["HARNESSES", "export"]

FOLDER = Path(__file__).parent / "harnesses"

HARNESSES = tuple(sorted(one.name for one in FOLDER.iterdir() if one.is_dir()))
"""Harnesses that tasks are written for."""

SEED_BITS = 128
PROVING = 120.0
"""Seconds for drawing and proving a set, beside what programs take."""


def export(problem: str, harness: str, output: str | os.PathLike[str], *, hidden: str | None = None) -> list[Path]:
    """Write a task for a harness, and return its files.

    Parameters
    ----------
    problem : str
    harness : str
        One of :data:`HARNESSES`.
    output : path
        Folder that is made; one that is there must be empty.
    hidden : str, optional
        File with the seed of the hidden set; a new one is drawn by default.

    Raises
    ------
    StudyError, CatalogueError
        When harness or problem are unknown, the folder cannot be written or is not empty, or the file holds no seed.
    """
    title = entry(problem).title
    if harness not in HARNESSES:
        raise StudyError(
            f"--for: got {quoted(harness)}{nearest(harness, HARNESSES)}, must be one of {', '.join(HARNESSES)}"
        )
    folder = Path(output)
    if folder.is_dir() and any(folder.iterdir()):
        raise StudyError(f"{folder} is not empty: choose another directory")
    seed = _seed(problem, hidden)
    told = {
        "problem": problem,
        "title": title,
        "instructions": instructions(problem),
        "program": first_program(problem),
        "requirement": f"scheduling-formulations=={version('scheduling-formulations')}",
        "seed": seed,
        # Every instance may take all of its time, one after the other.
        "timeout": int(BUDGET * len(texts_of(problem, "train")) + PROVING),
    }
    made = []
    with folder_to_write(folder):
        for template in sorted((FOLDER / harness).rglob("*.j2")):
            name = template.relative_to(FOLDER).as_posix()
            path = folder / template.relative_to(FOLDER / harness).with_suffix("")
            made.append(_write(path, _TEMPLATES.get_template(name).render(told)))
        if harness == "heurigym":
            made += _dataset(folder, problem, seed)
    return made


_TEMPLATES: Any = Environment(
    loader=FileSystemLoader(FOLDER), undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False
)


def _write(path: Path, content: str) -> Path:
    """Write a file: a script that can be run, a seed that is nobody else's."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(0o600 if path.name == "seed.txt" else 0o666)
    path.write_text(content, encoding="utf-8")
    if path.suffix == ".sh":
        path.chmod(path.stat().st_mode | 0o111)
    return path


def _seed(problem: str, hidden: str | None) -> str:
    """Return what the file of a hidden set's seed holds, once a set could be drawn from it."""
    if hidden is None:
        return str(secrets.randbits(SEED_BITS))
    drawn(problem, Path(hidden))
    return Path(hidden).read_text(encoding="utf-8").strip()


def _dataset(folder: Path, problem: str, seed: str) -> list[Path]:
    """Write the public instances and the hidden ones as files, those that have a plan, and a baseline of 1 for each."""
    with tempfile.TemporaryDirectory() as kept:
        sets = {"train": texts_of(problem, "train"), "test": drawn(problem, _write(Path(kept) / "seed.txt", seed))}
    made, baseline = [], {}
    for part, texts in sets.items():
        for text in texts:
            instance: Instance[Any] = read(json.loads(text))
            if solve(instance).status != "infeasible":
                name = f"{part}_{instance.digest[:16]}"
                made.append(_write(folder / "dataset" / part / f"{name}.json", text))
                baseline[name] = 1
    return [*made, _write(folder / "baseline" / "baseline.json", json.dumps(baseline, indent=2))]
