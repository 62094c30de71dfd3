"""What a benchmark is: a function that yields the rows of one table of the documents.

Times are processor times of this process, with one solver thread, so that other work on the machine lengthens
them little; limits are the solver's, by the clock.
"""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from validation.kernel.provenance import provenance
from validation.pages.render import table_lines

__all__ = [
    "BENCHMARKS",
    "Benchmark",
    "Broken",
    "Row",
    "Rows",
    "Setup",
    "benchmark",
    "between",
    "gap",
    "interval",
    "machine",
    "markdown",
    "median_seconds",
    "seconds",
    "timed",
]

Row: TypeAlias = Sequence[object]
T = TypeVar("T")


@dataclass(frozen=True)
class Setup:
    """How much of a table to compute.

    Parameters
    ----------
    quick : bool
        The smallest size only: to see that a benchmark runs, not what it finds.
    limit : float, optional
        Limit of each proof, s; the table's own by default.
    repeats : int
        Runs of which the median is taken, where a single one is over too soon.
    data : Path, optional
        Folder of public data, laid out as in docs/data.md; rows that need it are left out without it.
    files : mapping of str to Path, optional
        Files that stand elsewhere, by their paths in the folder.
    seed : int
        Of what a table draws, where it is no part of its description.
    count : int, optional
        Instances of each size, in tables over all problems; the table's own by default.
    problems : sequence of str, optional
        Problems, or papers, of tables over all problems; all by default.
    most : int, optional
        Sizes of tables over all problems, the smallest first; all by default.
    kept : Path, optional
        Folder where what was measured is kept until the code changes, of tables that take long; nothing is by default.
    docs : Path, optional
        Folder of the documents whose pages are written, of tables that they have.
    """

    quick: bool = False
    limit: float | None = None
    repeats: int = 5
    data: Path | None = None
    files: Mapping[str, Path] = field(default_factory=dict)
    seed: int = 0
    count: int | None = None
    problems: Sequence[str] | None = None
    most: int | None = None
    kept: Path | None = None
    docs: Path | None = None

    def size(self, full: T, quick: T) -> T:
        """Return the size that counts."""
        return quick if self.quick else full

    def few(self, items: Sequence[T]) -> Sequence[T]:
        """Return the items, or the first of them only."""
        return items[:1] if self.quick else items

    def file(self, path: str) -> Path | None:
        """Return a file of public data; None where there is no folder of them."""
        return self.files.get(path) or (self.data and self.data / path)

    def seconds(self, usual: float) -> float:
        """Return the limit of each proof of a table whose own limit is ``usual``, s."""
        return min(usual, 1.0) if self.quick and self.limit is None else self.limit or usual

    def instances(self, usual: int, quick: int) -> int:
        """Return the number of instances of each size."""
        return self.count or self.size(usual, quick)


class Broken(Exception):  # noqa: N818, it is no error of the table's
    """What a table shows is not as it must be; raised after its last row."""


Rows: TypeAlias = Callable[[Setup], Iterator[Row]]


@dataclass(frozen=True)
class Benchmark:
    """One table: its name, its columns, what yields its rows, and what it shows, in a line."""

    name: str
    columns: tuple[str, ...]
    rows: Rows
    summary: str


BENCHMARKS: dict[str, Benchmark] = {}
"""All tables by name."""


def benchmark(name: str, *columns: str) -> Callable[[Rows], Rows]:
    """Enter a function that yields rows among the benchmarks.

    Parameters
    ----------
    name : str
        Name of the table, ``<paper>.<problem>.<table>`` where a page has it.
    *columns : str
        Heads of the columns.
    """

    def enter(rows: Rows) -> Rows:
        BENCHMARKS[name] = Benchmark(name, columns, rows, (rows.__doc__ or "").strip().partition("\n")[0])
        return rows

    return enter


def timed(call: Callable[..., T], *arguments: Any, **options: Any) -> tuple[T, float]:
    """Return what a call returns, and its processor time, s."""
    gc.collect()
    began = time.process_time()
    result = call(*arguments, **options)
    return result, time.process_time() - began


def median_seconds(repeats: int, call: Callable[..., object], *arguments: Any, **options: Any) -> float:
    """Return the median processor time of so many calls after one that warms up, s."""
    return statistics.median([timed(call, *arguments, **options)[1] for _ in range(repeats + 1)][1:])


def gap(value: float, optimum: float) -> float:
    """Return how far a value is from the optimum, relatively."""
    return abs(value - optimum) / abs(optimum) if optimum else float(value != optimum)


def seconds(value: float) -> str:
    """Write a time to two digits or tenths of a second."""
    return f"{value:.1f} s" if value >= 0.95 else f"{value:.2f} s" if value >= 0.0995 else f"{1e3 * value:.2g} ms"


def between(values: Iterable[float], form: Callable[[float], str] = seconds) -> str:
    """Write the least and the greatest of some numbers."""
    numbers = list(values)
    least, most = form(min(numbers)), form(max(numbers))
    return least if least == most else f"{least} to {most}"


STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""Student's t at 97.5 %, of one degree of freedom, two, ..."""


def interval(values: Iterable[float], form: Callable[[float], str]) -> str:
    """Write the mean of some numbers with its interval of 95 % by Student's t; of one number itself."""
    numbers = list(values)
    mean = statistics.mean(numbers)
    if len(numbers) == 1:
        return form(mean)
    if len(numbers) > len(STUDENT) + 1:
        raise ValueError(f"got {len(numbers)} numbers, must be at most {len(STUDENT) + 1}")
    half = STUDENT[len(numbers) - 2] * statistics.stdev(numbers) / math.sqrt(len(numbers))
    return f"{form(mean)} ({form(mean - half)} to {form(mean + half)})"


def markdown(found: Benchmark, setup: Setup) -> Iterator[str]:
    """Yield the lines of a table in Markdown, each as soon as it is known."""
    return table_lines(found.columns, found.rows(setup))


def machine() -> str:
    """Tell machine, versions, date and commit, in a line."""
    known: dict[str, Any] = provenance(1)
    versions, where = known["versions"], known["machine"]
    return (
        f"One core of {where['processor'] or where['system']} ({where['cores']} cores); "
        f"HiGHS {versions['highspy']}, Pyomo {versions['pyomo']}, NumPy {versions['numpy']}, "
        f"Python {versions['python']}; {known['started'][:10]}, commit {(known['commit'] or 'unknown')[:12]}"
    )
