"""What a run would take: cells, hours and disk, told before anything is run."""

from __future__ import annotations

import math
import warnings
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from typing import Any

from validation.kernel.kind import Plan, Warn
from validation.kernel.run import left_out
from validation.kernel.store import lines_of, own_record

__all__ = ["Forecast", "forecast"]

ROW_BYTES, CELL_BYTES = 1000, 700
"""Of a row in the log where there is none yet that would tell, and of a cell in record and table."""


@dataclass(frozen=True)
class Forecast:
    """A forecast of what a run takes.

    Attributes
    ----------
    counted : str
        What the cells are called.
    cells, ended : int
        Cells, or those of the shard; those of them that the directory has a row of, failures excepted.
    jobs : int
    longest : float
        Seconds of the rest, if each cell takes all of its limit; infinite where one has none.
    expected : float
        Seconds of those cells of the rest that are like some of which the log has rows.
    unknown : int
        The others.
    disk : int
        Bytes that the files would take, what is there included.
    """

    counted: str
    cells: int
    ended: int
    jobs: int
    longest: float
    expected: float
    unknown: int
    disk: int

    def __str__(self) -> str:
        left, what = self.cells - self.ended, self.counted
        lines = [
            f"{self.cells:,} {what}, {self.ended:,} of them in the directory, {left:,} to do with {self.jobs} jobs",
            f"at most {_hours(self.longest)}, if every run takes its whole limit"
            if math.isfinite(self.longest)
            else "no limit of their time",
        ]
        if left:
            known = (
                f"{_hours(self.expected)} expected of {left - self.unknown:,} {what}, from rows like them in the log"
            )
            lines.append(
                known if self.unknown < left else "no rows like them in the log that would tell what to expect"
            )
        if 0 < self.unknown < left:
            lines.append(f"{self.unknown:,} {what} are like none in the log")
        return "\n".join([*lines, f"about {max(0.1, self.disk / 1e6):,.1f} MB on the disk"])

    def to_dict(self) -> dict[str, Any]:
        """Return the same as data; None where there is no limit."""
        return {**asdict(self), "longest": self.longest if math.isfinite(self.longest) else None}


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:,.1f} hours" if seconds >= 360 else f"{seconds:,.0f} s"


def forecast(plan: Plan, warn: Warn = warnings.warn) -> Forecast:
    """Forecast what it would take to carry out a plan; nothing is run or written.

    Parameters
    ----------
    plan : Plan
    warn : callable, optional
        Told when rows of an earlier run would go out of the table.

    Raises
    ------
    StudyError
        When the directory could not be had.
    """
    kind, directory = plan.kind, plan.directory
    found = own_record(directory, kind)
    if found is not None and (said := left_out(found, plan)):
        warn(f"{directory}: {said}")
    del found
    known, done = plan.records(), set[int]()
    rows, row_bytes, seconds = Counter[Any](), 0, defaultdict[Any, float](float)
    for line in lines_of(directory, kind, known):
        if line.row and line.row["status"] != "failed":
            row = line.row
            done.add(known.numbers.get(row["key"], -1))
            like = kind.like(row, plan.asked)
            rows[like] += 1
            own = (directory / file for file in (kind.beside(row) if kind.beside else ()))
            row_bytes += len(line.content) + sum(file.stat().st_size for file in own if file.exists())
            seconds[like] += row["seconds"] + max(0.0, row.get("engine_seconds") or 0.0)
    left = [plan.cells[number] for number in plan.mine if number not in done]
    likes = Counter(cell.like[0] for cell in left)
    known_likes = [like for like in likes if rows[like]]
    of_a_row = row_bytes / rows.total() if rows else ROW_BYTES
    return Forecast(
        counted=kind.counted,
        cells=len(plan.mine),
        ended=len(plan.mine) - len(left),
        jobs=plan.jobs,
        longest=sum(cell.limit for cell in left) / plan.jobs,
        expected=sum(likes[like] * seconds[like] / rows[like] for like in known_likes) / plan.jobs,
        unknown=len(left) - sum(likes[like] for like in known_likes),
        disk=round(plan.disk + len(plan.mine) * of_a_row + len(plan.cells) * CELL_BYTES),
    )
