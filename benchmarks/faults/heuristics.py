"""Heuristics that misbehave: each in a study of its own, judged by the rows of the same study without it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.faults.cheats import CHEATS, KNOWN, Cheat, bad, honest
from benchmarks.faults.studies import without_pictures
from benchmarks.faults.tally import Tally, fault
from validation import gap_study
from validation.kernel.isolation import children as running
from validation.kernel.isolation import end_family
from validation.kernel.walls import standing

__all__ = ["Left", "gained", "known"]

LIMIT, SHORT_LIMIT = 60.0, 1.0
"""Of a run, s; the short one for cheats that go on until they are stopped."""
PATIENCE = 120.0
"""Seconds after which a study counts as one that hangs."""
SAME = ["status", "value", "bound", "exact_value", "gap_low", "gap_high", "disagreement"]
"""What the rows of others must say as they did."""


@dataclass
class Left:
    """What is there after studies that was not before: files outside the studies, and processes."""

    files: list[str] = field(default_factory=list)
    processes: list[str] = field(default_factory=list)


@contextlib.contextmanager
def known(folder: Path) -> Iterator[Left]:
    """Tell the cheats of a study in ``folder``, and look afterwards at what they have left.

    Processes come to this one when all that kept them is gone, so that none is overlooked.
    """
    elsewhere, scratch = folder / "elsewhere", folder / "scratch"
    for place in (elsewhere, scratch):
        place.mkdir(parents=True)
    # Not /dev/shm, where nobody can tell whose a file is, and from which docs/design.md promises nothing.
    before = {place: _names(place) for place in (elsewhere, scratch, folder, Path.cwd(), Path.home())}
    temporary, libc, keeps = tempfile.tempdir, ctypes.CDLL(None), ctypes.c_int()
    libc.prctl(37, ctypes.byref(keeps))  # PR_GET_CHILD_SUBREAPER
    children = set(running(os.getpid()))
    KNOWN.directory, KNOWN.elsewhere, KNOWN.pids = folder / "study", elsewhere, [os.getpid()]
    tempfile.tempdir = str(scratch)
    libc.prctl(36, 1)  # PR_SET_CHILD_SUBREAPER
    left = Left()
    try:
        yield left
    finally:
        tempfile.tempdir = temporary
        libc.prctl(36, keeps.value)
        for pid in set(running(os.getpid())) - children:
            name = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            left.processes.append(name)
            end_family(pid)
            with contextlib.suppress(OSError):
                os.kill(pid, 9)
                os.waitpid(pid, 0)
        for place, names in before.items():
            new = _names(place) - names - {"study"}
            left.files += [str(place / name) for name in sorted(new)]


def _names(place: Path) -> set[str]:
    return {one.name for one in place.iterdir()}


def gained(one: Cheat, row: pd.Series[Any], worst: float) -> str:
    """Return what a cheat has got that it must not have; empty when nothing."""
    said = f"{row['status']}: {row['reason']}"
    if not re.match(one.outcome, said):
        return f"{said!r}, which is not {one.outcome!r}"
    if row["status"] == "feasible" and row["value"] != worst:
        return f"a value of {row['value']:g} for a plan that is worth {worst:g}"
    if row["status"] != "feasible" and not np.isnan(row["value"]):
        return f"a value of {row['value']:g} without a feasible plan"
    return ""


@fault(
    "heuristics.misbehaving",
    3 * len(CHEATS),
    "A heuristic cheats, breaks what it can reach, or does not end, beside an honest one and the exact side",
)
def misbehaving(tally: Tally, seed: int, times: int) -> None:
    """Run studies with a cheat in each."""
    undisturbed: dict[int, pd.DataFrame] = {}
    for number in range(times):
        # All cheats in some order, again and again.
        repetition, turn = divmod(number, len(CHEATS))
        name = str(np.random.default_rng([seed, repetition, 1]).permutation(list(CHEATS))[turn])
        one = CHEATS[name]
        tally.begin()
        if one.walled and not all(standing().values()):
            tally.count("left out, because a wall is missing here")
            continue
        drawn = int(np.random.default_rng([seed, repetition]).integers(2**31))
        if drawn not in undisturbed:
            with tempfile.TemporaryDirectory(prefix="optgap-faults-") as made:
                undisturbed[drawn] = _rows(drawn, Path(made) / "study", {})
        with tempfile.TemporaryDirectory(prefix="optgap-faults-") as made:
            with known(Path(made)) as left:
                began = time.monotonic()
                limit = SHORT_LIMIT if one.lasting else LIMIT
                rows = _rows(drawn, KNOWN.directory, {name: one.function}, time_limit=limit)
                tally.hangs += time.monotonic() - began > PATIENCE
            _judge(tally, f"{name}, seed {drawn}", name, rows, undisturbed[drawn], left)


def _rows(seed: int, output: Path, heuristics: dict[str, Any], **options: Any) -> pd.DataFrame:
    """Return the rows of a study with an honest heuristic, a bad one and some more, on one instance."""
    asked: dict[str, Any] = {"sizes": [8], "count": 1, "jobs": 2, "memory_limit": 5 * 10**8, **options}
    with without_pictures():
        study = gap_study(
            "aryl.reclaim",
            **asked,
            seed=seed,
            heuristics={**heuristics, "honest": honest, "bad": bad},
            output=output,
            progress=False,
        )
    return study.rows.set_index("algorithm")


def _judge(tally: Tally, what: str, name: str, rows: pd.DataFrame, truth: pd.DataFrame, left: Left) -> None:
    """Count what came of a study with a cheat in it."""
    for other in (*truth.index, name):
        if other not in rows.index:
            tally.tell(f"{what}: no row of {other}", "lost")
        elif other != name and not rows.loc[other, SAME].equals(truth.loc[other, SAME]):
            tally.tell(f"{what}: the row of {other} has changed: {rows.loc[other, SAME].to_dict()}", "changed")
    tally.doubled += int(rows.index.duplicated().sum())
    if name in rows.index:
        row: Any = rows.loc[name]
        tally.count(f"{row['status']}, and worth what it is" if row["status"] == "feasible" else str(row["status"]))
        more = gained(CHEATS[name], row, float(truth["value"]["bad"]))
        tally.wrong += [f"{what}: {more}"] if more else []
    tally.wrong += [f"{what}: left behind: {one}" for one in (*left.files, *left.processes)]
