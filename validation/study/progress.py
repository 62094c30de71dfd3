"""How far a study is, and how long it will take."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from validation.formatting import duration
from validation.study.cases import EXACT
from validation.study.cells import Cell

__all__ = ["Estimate", "Meter", "Progress"]


@dataclass(frozen=True)
class Progress:
    """How far a study is: cells done of the total, failures among them, seconds left."""

    done: int
    total: int
    failed: int
    seconds_left: float | None


class Meter:
    """Shows progress on one line of a terminal, or a line now and then in a log or a notebook."""

    def __init__(self) -> None:
        self.live = sys.stderr.isatty()
        self.shown = 0.0
        self.began = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        last = progress.done == progress.total
        if not last and now - self.shown < (0.1 if self.live else 5.0):
            return
        self.shown = now
        left = (
            "" if progress.seconds_left is None or last else f", about {duration(max(1.0, progress.seconds_left))} left"
        )
        failed = f", {progress.failed} failed" if progress.failed else ""
        line = f"{progress.done} of {progress.total} runs{failed}, {duration(now - self.began)}{left}"
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

    def __init__(self, cells: Sequence[Cell], jobs: int) -> None:
        self.jobs = jobs
        self.left: dict[tuple[str, int, str], int] = {}
        self.seen: dict[tuple[str, int, str], list[float]] = {}
        for cell in cells:
            self.left[self._kind(cell)] = self.left.get(self._kind(cell), 0) + 1

    @staticmethod
    def _kind(cell: Cell) -> tuple[str, int, str]:
        return cell.case.instance.problem, cell.case.size, cell.algorithm.name

    def ended(self, cell: Cell, seconds: float) -> None:
        kind = self._kind(cell)
        self.left[kind] -= 1
        self.seen.setdefault(kind, []).append(seconds)

    def seconds_left(self) -> float | None:
        everything = [seconds for times in self.seen.values() for seconds in times]
        overall = sum(everything) / len(everything)
        total = 0.0
        for kind, number in self.left.items():
            times = self.seen.get(kind)
            if times is None and kind[2] == EXACT:
                # Exact solves of another size say more than heuristics do.
                times = [s for (p, _, a), found in self.seen.items() if (p, a) == (kind[0], EXACT) for s in found]
            total += number * (sum(times) / len(times) if times else overall)
        return total / self.jobs
