"""How far a study is, and how long it will take."""

from __future__ import annotations

import shutil
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from validation.formatting import duration
from validation.study.cases import EXACT
from validation.study.cells import Cell
from validation.study.sweeps import Label

__all__ = ["Estimate", "Kind", "Meter", "Progress", "kind_of"]

Kind: TypeAlias = tuple[str, int, str, tuple[Label, ...]]
"""Problem, size, algorithm and what is swept: cells of one kind take about as long."""


def kind_of(cell: Cell) -> Kind:
    """What kind a cell is of."""
    return cell.case.problem, cell.case.size, cell.algorithm.name, tuple(cell.case.swept.values())


@dataclass(frozen=True)
class Progress:
    """How far a study is: cells done of the total, failures among them, seconds left, and what there is to note."""

    done: int
    total: int
    failed: int
    seconds_left: float | None
    note: str = ""


class Meter:
    """Shows progress on one line of a terminal, or a line now and then in a log or a notebook.

    Parameters
    ----------
    what : str
        What is counted.
    quiet : bool
        Show nothing.
    """

    def __init__(self, what: str = "runs", quiet: bool = False) -> None:
        self.what = what
        self.quiet = quiet
        self.live = sys.stderr.isatty() and not quiet
        self.shown = 0.0
        self.began = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        last = progress.done == progress.total
        if self.quiet or (not last and now - self.shown < (0.1 if self.live else 5.0)):
            return
        self.shown = now
        left = (
            "" if progress.seconds_left is None or last else f", about {duration(max(1.0, progress.seconds_left))} left"
        )
        failed = f", {progress.failed} failed" if progress.failed else ""
        note = f"; {progress.note}" if progress.note else ""
        line = f"{progress.done} of {progress.total} {self.what}{failed}, {duration(now - self.began)}{left}{note}"
        if self.live:
            # A line that goes on in the next one could not be taken back.
            line = line[: shutil.get_terminal_size().columns - 1]
        print(f"\r\x1b[2K{line}" if self.live else line, end="" if self.live else "\n", file=sys.stderr, flush=True)
        if last:
            self.end()

    def end(self) -> None:
        """Leave the line."""
        if self.live:
            print(file=sys.stderr)
            self.live = False


def somebody_watches() -> bool:
    """Whether there is a terminal or a notebook to show progress in."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


class Estimate:
    """Time left, from the mean time of cells of the same problem, size and algorithm."""

    def __init__(self, cells: Iterable[Cell], jobs: int) -> None:
        self.jobs = jobs
        self.left = Counter(kind_of(cell) for cell in cells)
        self.ended_of: defaultdict[tuple[Any, ...], int] = defaultdict(int)
        self.seconds_of: defaultdict[tuple[Any, ...], float] = defaultdict(float)

    def ended(self, cell: Cell, seconds: float) -> None:
        """Count a cell that took so many seconds."""
        kind = kind_of(cell)
        self.left[kind] -= 1
        for like in self._alike(kind):
            self.ended_of[like] += 1
            self.seconds_of[like] += seconds

    @staticmethod
    def _alike(kind: Kind) -> list[tuple[Any, ...]]:
        """What a kind's time is told by, the best first."""
        problem, _, algorithm, _ = kind
        # Exact solves of another size say more than heuristics do.
        return [kind, *([(problem, EXACT)] if algorithm == EXACT else []), ()]

    def seconds_left(self) -> float | None:
        """Seconds that the cells that are left will take; None while nothing is known."""
        total = 0.0
        for kind, number in self.left.items():
            like = next(one for one in self._alike(kind) if self.ended_of[one])
            total += number * self.seconds_of[like] / self.ended_of[like]
        return total / self.jobs
