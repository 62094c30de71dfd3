"""What evaluators of harnesses ask: a plain program's score with its metrics and reasons, from the judge.

A harness runs its evaluator in whatever process it likes, several at once.  So each program is judged in a fresh
process, this module's own: ``python -P -m validation.kinds.judge.evaluating PROGRAM PROBLEM PART``, which prints one
JSON object.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from validation.errors import CatalogueError, OracleDisagreementError, StudyError
from validation.formatting import number
from validation.kernel.judging import Status
from validation.kernel.walls import WALLS, ruled, standing
from validation.kinds.judge.judging import Judgement, judge, judge_on
from validation.kinds.judge.sets import drawn
from validation.kinds.options import JudgeOptions

__all__ = ["BUDGET", "PARTS", "evaluated", "main", "refuse_without_walls", "texts_of"]

BUDGET = JudgeOptions.budget
"""Seconds that a program has for an instance."""

PARTS = ("smallest", "train", "test")
"""Sets: the third of the public one with the least data, the public one, the hidden one; ``train:3`` is an instance."""

NEEDED = tuple(name for name in WALLS if name != "signals")
"""Walls without which no program is judged on public instances; the hidden ones take all."""

TOLD = 5
"""Instances and reasons that a program is told at most."""


def evaluated(
    program: str | Path, problem: str, part: str = "train", *, seed: str | Path | None = None
) -> dict[str, Any]:
    """Score of a program that defines ``solve``, as data that harnesses take.

    Parameters
    ----------
    program : str or Path
        File with a function ``solve(instance) -> plan`` (:func:`validation.signatures.solve`).  Whatever is in it, it
        gets a score.
    problem : str
    part : str
        One of :data:`PARTS`.
    seed : str or Path, optional
        File with the seed of the hidden set.  No program can read it, on whichever part it is judged.

    Returns
    -------
    dict
        ``status`` ("success"), ``combined_score`` from 0 to 1, ``metrics`` (str to float) and ``artifacts`` (str to
        str), which say what is wrong with the plans; nothing of the kind is said of hidden instances.

    Raises
    ------
    StudyError
        When nothing can be judged here, such as where a wall is missing; never for what the program does.
    """
    # Without the current directory, whose files may have the names of other modules.
    command = [
        sys.executable,
        "-P",
        "-m",
        __name__,
        str(program),
        problem,
        part,
        *([] if seed is None else [str(seed)]),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise StudyError(done.stderr.strip() or f"the judge's process ended with {done.returncode}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def refuse_without_walls(needed: Sequence[str] = NEEDED) -> None:
    """Raise where a program would not be kept from the judge.

    Raises
    ------
    StudyError
        With what is missing, what it takes, and what a program could do without.
    """
    stands = standing()
    missing = [name for name in needed if not stands[name]]
    if missing:
        told = "; ".join(f"{name} ({WALLS[name][1]}), without which it can {WALLS[name][2]}" for name in missing)
        raise StudyError(f"a program cannot be kept from the judge here, and gets no score. Missing: {told}")


def texts_of(problem: str, part: str) -> list[str]:
    """Return public instances as JSON, in an order that stays.

    Raises
    ------
    StudyError
        When there is no such part.
    """
    kind, colon, index = part.partition(":")
    texts = drawn(problem, None) if kind in PARTS[:2] else []
    if part == "smallest":
        return sorted(texts, key=lambda text: (len(text), text))[: -(-len(texts) // 3)]
    if colon:
        texts = texts[int(index) : int(index) + 1] if kind == "train" and index.isdecimal() else []
    if not texts:
        raise StudyError(f"part: got {part!r}, must be one of {', '.join(PARTS)}, or train:NUMBER of an instance")
    return texts


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge a program and print what came of it, or say on standard error why nothing can be judged."""
    parser = argparse.ArgumentParser(prog=__spec__.name, description="Judge a plain program.")
    parser.add_argument("program", type=Path, help="file that defines solve")
    parser.add_argument("problem")
    parser.add_argument("part", help=f"{', '.join(PARTS)}, or train:NUMBER")
    parser.add_argument("seed", type=Path, nargs="?", help="file with the seed of the hidden set")
    asked = parser.parse_args(arguments)
    try:
        refuse_without_walls()
        found = _judged(asked.program, asked.problem, asked.part, asked.seed)
    except (StudyError, CatalogueError, OracleDisagreementError, OSError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    print(json.dumps(found))
    return 0


def _judged(program: Path, problem: str, part: str, seed: Path | None) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        # Under a name that no other module has, whatever the harness calls it.
        copy = Path(folder) / "evolved_program.py"
        copy.write_bytes(program.read_bytes())
        asked = f"{copy}:solve"
        if part == "test":
            if seed is None:
                raise StudyError("part: test takes the file with the seed of the hidden set")
            return _told(judge(asked, problem, split=f"hidden:{seed}", no_solver=True))
        with ruled(hidden=() if seed is None else (seed.resolve(),)):
            return _told(judge_on(texts_of(problem, part), asked, problem, no_solver=True))


def _told(found: Judgement) -> dict[str, Any]:
    """Return a judgement as harnesses take it."""
    count = len(found.instances)
    metrics = {
        "combined_score": found.score,
        "feasible": sum(one.status == Status.FEASIBLE for one in found.instances) / count,
        "optimal": sum(one.score == 1.0 for one in found.instances) / count,
        "worst": min(one.score for one in found.instances),
    }
    artifacts = {"set": f"{found.split}, {found.set[:16]}, {count} instances"}
    if found.split == "public":
        reasons = Counter(f"{one.status}: {one.reason}" for one in found.instances if one.value is None)
        worst = sorted((one for one in found.instances if one.value is not None), key=lambda one: one.score)[:TOLD]
        told = [f"{reason} ({times} of {count} instances)" for reason, times in reasons.most_common(TOLD)]
        if told:
            artifacts["no_feasible_plan"] = "\n".join(told)
        told = [
            f"instance {one.digest[:16]}: score {one.score:.4f}, value {number(one.value)}, "
            f"best possible {number(one.optimum)}"
            for one in worst
            if one.score < 1 and one.value is not None
        ]
        if told:
            artifacts["worst_plans"] = "\n".join(told)
    return {"status": "success", "combined_score": found.score, "metrics": metrics, "artifacts": artifacts}


if __name__ == "__main__":
    sys.exit(main())
