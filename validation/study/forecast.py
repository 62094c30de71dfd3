"""What a study would take: cells, hours and disk, told before anything is run."""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from dataclasses import dataclass

from validation.study.options import StudyOptions
from validation.study.progress import Kind, kind_of
from validation.study.run import left_out, plan
from validation.study.store import Warn, lines_of, own_record

__all__ = ["Forecast", "forecast"]

ROW_BYTES, CELL_BYTES = 1000, 700
"""Of a row in the log where there is none yet that would tell, and of a cell in record and table."""


@dataclass(frozen=True)
class Forecast:
    """What a study would take.

    Attributes
    ----------
    cells, ended : int
        Cells of the study, or of its shard; those of them that the directory has a row of, failures excepted.
    jobs : int
    longest : float
        Seconds of the rest, if each cell takes all of its limit.
    expected : float
        Seconds of those cells of the rest of whose problem, size, algorithm and swept values the log has rows.
    unknown : int
        The others.
    disk : int
        Bytes that the files of the study would take, what is there included.
    """

    cells: int
    ended: int
    jobs: int
    longest: float
    expected: float
    unknown: int
    disk: int

    def __str__(self) -> str:
        left = self.cells - self.ended
        lines = [
            f"{self.cells:,} runs, {self.ended:,} of them in the directory, {left:,} to do with {self.jobs} jobs",
            f"at most {_hours(self.longest)}, if every run takes its whole limit",
        ]
        if left:
            known = f"{_hours(self.expected)} expected of {left - self.unknown:,} runs, from rows like them in the log"
            lines.append(
                known if self.unknown < left else "no rows like them in the log that would tell what to expect"
            )
        if 0 < self.unknown < left:
            lines.append(f"{self.unknown:,} runs are like none in the log")
        return "\n".join([*lines, f"about {max(0.1, self.disk / 1e6):,.1f} MB on the disk"])


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:,.1f} hours" if seconds >= 360 else f"{seconds:,.0f} s"


def forecast(options: StudyOptions, warn: Warn = warnings.warn) -> Forecast:
    """What the study would take; nothing is run or written.

    Parameters
    ----------
    options : StudyOptions
    warn : callable, optional
        Told when the study would take runs of another out of the table.

    Raises
    ------
    StudyError, CatalogueError, InstanceError, SolverNotFound
        When the study could not be run as asked.
    """
    planned = plan(options)
    cells = [planned.cells[number] for number in planned.mine]
    found = own_record(planned.directory)
    if found is not None and (said := left_out(found, planned)):
        warn(f"{planned.directory}: {said}")
    del found
    known, swept = planned.records(), planned.asked["sweep"] or ()
    done: set[int] = set()
    rows, row_bytes = Counter[Kind](), 0
    seconds: defaultdict[Kind, float] = defaultdict(float)
    for line in lines_of(planned.directory, known):
        if line.row and line.row["status"] != "failed":
            row = line.row
            kind = row["problem"], row["size"], row["algorithm"], tuple(row.get(name) for name in swept)
            done.add(known.numbers.get(row["key"], -1))
            rows[kind] += 1
            row_bytes += len(line.content)
            seconds[kind] += row["seconds"] + max(0.0, row.get("engine_seconds") or 0.0)
    left = [planned.cells[number] for number in planned.mine if number not in done]
    kinds = Counter(map(kind_of, left))
    known_kinds = [kind for kind in kinds if rows[kind]]
    instances = {id(cell.case): cell.case.text_bytes for cell in cells}
    of_a_row = row_bytes / rows.total() if rows else ROW_BYTES
    return Forecast(
        cells=len(cells),
        ended=len(cells) - len(left),
        jobs=planned.jobs,
        longest=sum(cell.exact_limit if cell.algorithm.heuristic is None else cell.time_limit for cell in left)
        / planned.jobs,
        expected=sum(kinds[kind] * seconds[kind] / rows[kind] for kind in known_kinds) / planned.jobs,
        unknown=len(left) - sum(kinds[kind] for kind in known_kinds),
        disk=round(sum(instances.values()) + len(cells) * of_a_row + len(planned.cells) * CELL_BYTES),
    )
