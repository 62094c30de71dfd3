"""How far a run is, and how long it will take."""

from __future__ import annotations

import math
import mmap
import shutil
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from validation.formatting import duration
from validation.kernel.isolation import CONTEXT
from validation.kernel.kind import Cell
from validation.kernel.walls import LINUX

__all__ = ["Clocks", "Estimate", "Meter", "Progress", "somebody_watches"]


@dataclass(frozen=True)
class Progress:
    """Progress of a run: cells done of the total, failures among them, seconds left, and what there is to note."""

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
    """Return whether there is a terminal or a notebook to show progress in."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


class Estimate:
    """Time left, from the mean time of cells that are alike."""

    def __init__(self, cells: Iterable[Cell], jobs: int) -> None:
        self.jobs = jobs
        self.left = Counter(cell.like for cell in cells)
        self.ended_of: defaultdict[tuple[Any, ...], int] = defaultdict(int)
        self.seconds_of: defaultdict[tuple[Any, ...], float] = defaultdict(float)

    def ended(self, cell: Cell, seconds: float) -> None:
        """Count a cell that took so many seconds."""
        self.left[cell.like] -= 1
        for like in (*cell.like, ()):
            self.ended_of[like] += 1
            self.seconds_of[like] += seconds

    def seconds_left(self) -> float | None:
        """Seconds that the cells that are left will take; None while nothing is known."""
        if not self.ended_of:
            return None
        total = 0.0
        for likes, number in self.left.items():
            like = next(one for one in (*likes, ()) if self.ended_of[one])
            total += number * self.seconds_of[like] / self.ended_of[like]
        return total / self.jobs


class Clocks:
    """Progress of the cells that run: what the workers write, and this process reads.

    Parameters
    ----------
    number : int
        Of cells.
    """

    def __init__(self, number: int) -> None:
        numbers = 3 * max(1, number)
        # What is forked has it as it is, elsewhere it is sent.
        self.memory = mmap.mmap(-1, 8 * numbers) if LINUX else None
        self.shared: Any = CONTEXT.RawArray("d", numbers) if self.memory is None else memoryview(self.memory).cast("d")
        self.running = set(range(number))
        self.began = time.monotonic()
        self.number = number

    def teller(self, number: int) -> Callable[[float, int, int], None]:
        """Return what a worker tells of a cell by; what the worker starts has none of this memory."""
        if self.memory is not None:
            self.memory.madvise(mmap.MADV_DONTFORK)
        return partial(self.tell, number)

    def tell(self, number: int, now: float, done: int, total: int) -> None:
        """Cell ``number`` is at ``now``, s, with ``done`` of ``total`` done."""
        for place, value in enumerate((now, done, total), 3 * number):
            self.shared[place] = value

    def ended(self, number: int) -> None:
        """Note that a cell runs no more."""
        self.running.discard(number)

    def remaining(self, note: Callable[[float, int, int], str]) -> tuple[float | None, str]:
        """Return the seconds that are left, as far as can be told, and a note about the cells that run."""
        told = [tuple(self.shared[3 * number : 3 * number + 3]) for number in sorted(self.running)]
        told = [one for one in told if math.isfinite(one[0]) and 0 <= one[1] <= one[2] and 0 < one[2] < math.inf]
        part = self.number - len(self.running) + sum(done / total for _, done, total in told)
        left = (time.monotonic() - self.began) * (self.number / part - 1) if part else None
        return left, ", ".join(note(now, int(done), int(total)) for now, done, total in told)
