"""Commands that are interrupted, solves that are short of time, outputs that cannot be written."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import formulations
from benchmarks.faults.commands import Ended, run
from benchmarks.faults.tally import Tally, fault
from instances.base import agree
from validation.catalogue import CATALOGUE
from validation.cli.problems import overtime
from validation.kernel.gaps import beats

__all__ = ["COMMANDS", "SIGNALS", "judged"]

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
FRESH = 4
"""Every so many commands are started afresh; the others are forked with everything imported."""

COMMANDS: dict[str, tuple[str, ...]] = {
    "study": ("study", "aryl.reclaim", "--sizes", "4", "--count", "4", "--seed", "1", "--jobs", "2", "-o", "study"),
    "hunt": ("hunt", "aryl.reclaim", "server_fraction", "--seed", "1", "--budget", "3s", "--jobs", "2", "-o", "hunt"),
    "check": ("check", "aryl.reclaim", "server_fraction", "--max-examples", "10", "-o", "failures"),
    "claims": ("claims", "aryl.two_job", "--instances", "20", "--json", "-o", "claims"),
    "solve": ("solve", "hard.json", "--time-limit", "3"),
    "generate": ("generate", "aryl.reclaim", "--seed", "1", "--count", "300", "-o", "made"),
    "report": ("report", "whole"),
}
"""Each command, in a folder that has what it reads."""


# --- interrupted commands -------------------------------------------------------------------------


@cache
def _whole() -> Path:
    """Make a folder with what the commands read, and a study that nothing disturbed."""
    folder = Path(tempfile.mkdtemp(prefix="faults-"))
    for arguments in (
        ("generate", "aryl.reclaim", "--seed", "1", "--size", "160", "-o", "hard"),
        COMMANDS["study"],
    ):
        ended = run(folder, arguments)
        assert ended.code == 0, ended.err
    (file,) = (folder / "hard").iterdir()
    file.replace(folder / "hard.json")
    (folder / "study").replace(folder / "whole")
    return folder


@contextlib.contextmanager
def _place() -> Iterator[Path]:
    """Make a folder of its own for a command, with what it reads."""
    with tempfile.TemporaryDirectory(prefix="faults-") as name:
        shutil.copytree(_whole() / "whole", Path(name) / "whole")
        shutil.copy(_whole() / "hard.json", name)
        yield Path(name)


@fault("signals.commands", 200)
def signals(tally: Tally, seed: int, count: int) -> None:
    """SIGINT, SIGTERM or SIGHUP, once or twice, while a command runs, from its first import to its last line."""
    usual: dict[tuple[str, bool], float] = {}
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        name, fresh = list(COMMANDS)[number % len(COMMANDS)], number % FRESH == 0
        if (name, fresh) not in usual:
            with _place() as folder:
                began = time.monotonic()
                run(folder, COMMANDS[name], fresh=fresh)
                usual[name, fresh] = time.monotonic() - began
        sent = [(float(rng.uniform(0, usual[name, fresh])), int(rng.choice(SIGNALS)))]
        if rng.random() < 0.3:
            sent.append((float(rng.exponential(0.1)), int(rng.choice(SIGNALS))))
        tally.begin()
        told = ", ".join(f"{signal.Signals(one).name} after {after:.3f} s" for after, one in sent)
        what = f"{number} {name}{', fresh' * fresh}, {told}"
        with _place() as folder:
            ended = run(folder, COMMANDS[name], sent=sent, to_group=bool(rng.random() < 0.5), fresh=fresh)
            _count(tally, what, ended, judged(ended, folder))
            interrupted = any(line.startswith("optgap: interrupted") for line in ended.err.splitlines())
            once = "one line, exit 128 + n" if len(ended.signals) < 2 else "ended at once"
            tally.count(once if interrupted else "ended before")
            if name == "study":
                again = run(folder, COMMANDS["study"])
                if again.code != 0:
                    tally.tell(f"{what}: the same command ends in {again.code}: {again.err[-300:]}")
                else:
                    _compare(tally, folder / "study", _whole() / "whole")


def _count(tally: Tally, what: str, ended: Ended, wrong: Sequence[str]) -> None:
    """Count what is wrong with how a command has ended."""
    tally.tracebacks += "Traceback" in ended.err
    tally.hangs += ended.code is None
    for line in wrong:
        tally.tell(f"{what}: {line}")


def judged(ended: Ended, folder: Path) -> list[str]:
    """Return what must not be so after an interruption."""
    wrong = [f"left {thing}" for thing in ended.left]
    told = [line for line in ended.err.splitlines() if line.startswith("optgap: ")]
    if ended.code == 0 or not ended.signals:
        wrong += [f"exit {ended.code} without a signal: {ended.err[-300:]}"] if ended.code else []
    # Two that come while Python is in C code are heard by their numbers, not by their times.
    elif ended.code not in {128 + number for number in ended.signals}:
        wrong.append(f"exit {ended.code} after {ended.signals}: {ended.err[-300:]}")
    elif len(told) != 1 or not told[0].startswith("optgap: interrupted") or not ended.err.endswith(f"{told[0]}\n"):
        wrong.append(f"said {ended.err[-300:]!r}")
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if path.is_dir():
            continue
        if path.name != ".lock" and any(part.startswith(".") for part in name.parts):
            wrong.append(f"left {name}")
        elif path.suffix in WHOLE and not WHOLE[path.suffix](path.read_text(encoding="utf-8")):
            wrong.append(f"{name} is not whole")
    return wrong


def _is_json(text: str) -> bool:
    with contextlib.suppress(ValueError):
        json.loads(text)
        return True
    return False


WHOLE: dict[str, Callable[[str], bool]] = {
    ".json": _is_json,
    ".jsonl": lambda text: all(map(_is_json, text.splitlines())),
    ".html": lambda text: text.endswith("</html>\n"),
}
"""What tells that a file of this kind was written to its end."""


def _compare(tally: Tally, study: Path, undisturbed: Path) -> None:
    """Count the rows that are not those of the undisturbed study."""
    mine, theirs = (_rows(folder) for folder in (study, undisturbed))
    tally.lost += len(theirs.keys() - mine.keys())
    tally.changed += sum(mine[key] != theirs[key] for key in mine.keys() & theirs.keys())
    table = pd.read_parquet(study / "results.parquet")
    tally.doubled += int(table["key"].duplicated().sum())
    # What has ended is not computed again.
    log = [json.loads(line) for line in (study / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
    tally.doubled += int(pd.Series([row["key"] for row in log if row["status"] != "failed"]).duplicated().sum())


def _rows(study: Path) -> dict[str, tuple[Any, ...]]:
    table = pd.read_parquet(study / "results.parquet")[["key", "status", "value", "bound", "gap_low", "gap_high"]]
    return {key: tuple(map(str, rest)) for key, *rest in table.itertuples(index=False)}


# --- limits ---------------------------------------------------------------------------------------


@fault(
    "limits.solve",
    100,
    "A limit of 0.05 s to 1 s for the exact solve of a problem at a size of its catalogue; processor time",
)
def limits(tally: Tally, seed: int, count: int) -> None:
    """Solve in a hurry."""
    problems = list(CATALOGUE)
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        entry = CATALOGUE[problems[int(rng.integers(len(problems)))]]
        size = int(rng.choice(entry.sizes))
        limit = float(rng.uniform(0.05, 1.0))
        instance = entry.generate(rng, **{entry.size: size})
        what = f"{number}: {entry.problem}, size {size}, {limit:.3f} s"
        tally.begin()
        # A machine that does other things must not be blamed on the library.
        began = time.process_time()
        solution = formulations.solve(instance, time_limit=limit)
        spent = time.process_time() - began
        tally.count(solution.status)
        if spent > limit + overtime(limit):
            tally.tell(f"{what}: took {spent:.2f} s", "hangs")
        if solution.plan is not None and (
            instance.violations(solution.plan) or instance.objective(solution.plan) != solution.objective
        ):
            tally.tell(f"{what}: the plan is not what is said of it")
        patient = formulations.solve(instance, time_limit=60) if size == entry.sizes[0] else None
        if patient is not None and not _consistent(instance, solution, patient):
            tally.tell(f"{what}: {solution.status} {solution.objective}, {solution.bound} is not so", "changed")


def _consistent(instance: Any, hurried: formulations.Solution, patient: formulations.Solution) -> bool:
    """Whether what was said in a hurry is true beside what a patient solve says."""
    if patient.status in ("infeasible", "unbounded") or hurried.status in ("infeasible", "unbounded"):
        return hurried.status in (patient.status, "unknown")
    if patient.objective is not None and beats(instance.sense, patient.objective, hurried.bound):
        return False
    if hurried.status == "optimal" and patient.status == "optimal":
        assert hurried.objective is not None
        assert patient.objective is not None
        return agree(hurried.objective, patient.objective)
    return True


# --- outputs --------------------------------------------------------------------------------------

_WRITING = ("study", "hunt", "check", "claims", "generate")


@fault(
    "outputs.unwritable",
    60,
    "An output in the place of a file, below one, where nothing can be made, or on a disk that is full",
)
def unwritable(tally: Tally, seed: int, count: int) -> None:
    """Give commands outputs that they cannot write."""
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        name = _WRITING[number % len(_WRITING)]
        how = ("a file", "below a file", "no place", "full")[int(rng.integers(4))]
        tally.begin()
        with tempfile.TemporaryDirectory(prefix="faults-") as place:
            folder = Path(place)
            (folder / "file").touch()
            output = {"a file": "file", "below a file": "file/x", "no place": "/proc/x/y", "full": "new"}[how]
            began = time.monotonic()
            full = 1000 if how == "full" else None
            ended = run(folder, (*COMMANDS[name][:-1], output), largest_file=full, fresh=number % FRESH == 0)
            wrong = []
            if ended.code != 2 or ended.out or not ended.err.startswith(f"optgap: cannot write to {output}: "):
                wrong.append(f"exit {ended.code}: {ended.out[-200:]}{ended.err[-300:]}")
            elif len(ended.err.splitlines()) != 1 or "worst gap" in ended.err:
                wrong.append(f"said {ended.err[-300:]}")
            else:
                tally.count("refused in one line before the work")
            kept = sorted(path.name for path in folder.iterdir())
            if kept != ["file"] or ended.left:
                wrong.append(f"left {kept} {ended.left} after {time.monotonic() - began:.1f} s")
            _count(tally, f"{number} {name}, {how}", ended, wrong)
