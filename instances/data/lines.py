"""Reading tables: cells, lines, files, and what is told of how they were read.

A cell is read by a :class:`CellReader`, one at a time or a column at once.  What it cannot read is refused with a
``ValueError`` that says what the cell must be, to which the file and the line are added here.
"""

from __future__ import annotations

import csv
import difflib
import functools
import io
import math
import os
import re
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, TypeGuard, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from instances.base import InstanceError
from instances.schema import LONGEST, nearest, quoted
from instances.text import OpenFile, PathLike, Text, as_json, read_source

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "LARGEST_WHOLE",
    "CellReader",
    "Column",
    "PathLike",
    "Reading",
    "Source",
    "Table",
    "any_text",
    "gpus",
    "is_table",
    "moment",
    "named",
    "number",
    "on_clock",
    "positive",
    "positive_whole",
    "prose",
    "read_cell",
    "read_columns",
    "read_json",
    "read_table",
    "reader",
    "sniffed",
    "text",
    "whole",
]

LONGEST_NAME = 200
"""Characters of a name, such as a model's, so that messages which say it stay short."""
LARGEST_WHOLE = 2**53
"""Beyond it a number of a table is not exact."""

MOST_REASONS = 5
"""Rows left out of which a reading tells why."""


# --- cells ----------------------------------------------------------------------------------------


class CellReader:
    """A way to read a cell."""

    def __call__(self, cell: str) -> Any:
        """Return the content of a cell; a ``ValueError`` says what it must be."""
        raise NotImplementedError

    def column(self, cells: Sequence[str]) -> tuple[Sequence[Any] | NDArray[Any], NDArray[np.bool_]]:
        """Return the content of each cell, and whether it could be read; anything where it could not."""
        read: list[Any] = []
        fine = np.ones(len(cells), bool)
        for position, cell in enumerate(cells):
            try:
                read.append(self(cell))
            except ValueError:
                read.append(None)
                fine[position] = False
        return read, fine


@dataclass(frozen=True)
class Words(CellReader):
    """A word or more, without the blanks around it."""

    empty: bool = False
    longest: float = LONGEST_NAME
    """Characters."""

    def __call__(self, cell: str) -> str:
        if not self.empty and not cell.strip():
            raise ValueError("must not be empty")
        if len(cell.strip()) > self.longest:
            raise ValueError(f"must have at most {self.longest:g} characters")
        return cell.strip()

    def column(self, cells: Sequence[str]) -> tuple[list[str], NDArray[np.bool_]]:
        read = [cell.strip() for cell in cells]
        return read, np.array([(self.empty or bool(cell)) and len(cell) <= self.longest for cell in read], bool)


@dataclass(frozen=True)
class Number(CellReader):
    """A finite number of at least 0, or one of a narrower range."""

    above_zero: bool = False
    whole_from: int | None = None
    """For whole numbers, the least."""
    maximum: int = LARGEST_WHOLE
    """For whole numbers."""

    def __call__(self, cell: str) -> float:
        try:
            # To Python digits of other scripts are numbers, too, and 1_0 is 10.
            if "_" in cell or not cell.strip().isascii():
                raise ValueError
            value = float(cell)
        except ValueError:
            raise ValueError("must be a number") from None
        if not 0 <= value < math.inf:
            raise ValueError("must be finite and at least 0")
        if self.above_zero and not value:
            raise ValueError("must be positive")
        if self.whole_from is None:
            return value
        if value % 1 or value < self.whole_from:
            raise ValueError(f"must be a whole number, at least {self.whole_from}")
        if value > self.maximum:
            raise ValueError(f"must be at most {self.maximum:,}")
        return round(value)

    def column(self, cells: Sequence[str]) -> tuple[Sequence[Any] | NDArray[Any], NDArray[np.bool_]]:
        if any("_" in cell or not cell.isascii() for cell in cells):
            return super().column(cells)
        try:
            # NumPy asks Python for each number, so that it is the one that ``__call__`` reads.
            values = np.array(cells, object).astype(float)
        except ValueError:
            return super().column(cells)
        fine = (values >= 0) & (values < math.inf)
        if self.above_zero:
            fine &= values > 0
        if self.whole_from is None:
            return values, fine
        fine &= (np.floor(values) == values) & (values >= self.whole_from) & (values <= self.maximum)
        return np.where(fine, values, 0).astype(np.int64), fine


_ONE_DIGIT = re.compile(r"(?<![\d.])(\d)(?!\d)", re.ASCII)
_YEAR_LAST = re.compile(r"\s*(\d{1,2})([/.-])(\d{1,2})\2\d{4}\b", re.ASCII)
"""A date that begins with two numbers of which either may be the day; between dots the first is."""
_YEAR_FIRST = re.compile(r"\d{4}[/.-](\d{1,2})[/.-](\d{1,2})\b", re.ASCII)
_YEAR = re.compile(r"(?<!\d)\d{4}(?!\d)", re.ASCII)
_ZONE_TWICE = re.compile(r"([+-]\d\d:?\d\d) \(?[A-Z]{3,5}\)?$")
"""An offset with the zone's name after it, as Go writes them."""
_HOUR = 3600
ZONES = {
    "UTC": 0, "GMT": 0, "Z": 0, "EST": -5 * _HOUR, "EDT": -4 * _HOUR, "CST": -6 * _HOUR, "CDT": -5 * _HOUR,
    "MST": -7 * _HOUR, "MDT": -6 * _HOUR, "PST": -8 * _HOUR, "PDT": -7 * _HOUR,
}  # fmt: skip
"""Names of zones that mean one thing, those of RFC 5322, and their seconds east of Greenwich."""


@dataclass(frozen=True)
class Moment(Number):
    """A number of at least 0, or a date and time such as ``2020-06-09 18:41:01``, which is seconds since 1970.

    A date that tells no zone is taken as UTC.  Of one that ends with the year and has numbers only (``13/10/2017``) a
    column says whether day or month comes first, by a number above 12; where none is, nobody can tell.
    """

    day_first: bool | None = None
    """Whether the day comes first where the year comes last; None where nothing tells."""

    def __call__(self, cell: str) -> float:
        # ISO 8601 has two digits for each part.
        words = _ONE_DIGIT.sub(r"0\1", cell.strip().replace("/", "-"))
        for zone in (" UTC", " GMT"):
            words = words.removesuffix(zone)
        try:
            moment = datetime.fromisoformat(words) if "-" in words[1:] else None
        except ValueError:
            moment = None
        if moment is None:
            try:
                return super().__call__(cell)
            except ValueError:
                moment = self._spelled(cell.strip())
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        if seconds < 0:
            raise ValueError("must be in 1970 or later")
        return seconds

    def _spelled(self, words: str) -> datetime:
        """Read a date in words, or one that ends with the year."""
        from dateutil import parser

        wrong = "must be a date and time such as 2020-06-09 18:41:01, or a number of at least 0"
        if len(words) > LONGEST_NAME or not (_YEAR.search(words) or re.match(r"\d{8}T", words)):
            raise ValueError(wrong)
        day_first, day = self.day_first, None
        if found := _YEAR_FIRST.match(words):
            day_first, day = False, found[2]
        elif found := _YEAR_LAST.match(words):
            if found[2] == ".":
                day_first = True
            elif day_first is None:
                day_first = _says_day_first(words)
            if day_first is None:
                raise ValueError("must have the year first, since nothing tells which number is the month")
            day = found[1 if day_first else 3]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", parser.UnknownTimezoneWarning)
                # What the words leave out is taken from the default, so that the two differ.
                first, second = (
                    parser.parse(
                        _ZONE_TWICE.sub(r"\1", words), default=default, dayfirst=bool(day_first), tzinfos=ZONES
                    )
                    for default in (datetime(1904, 1, 1), datetime(2096, 2, 2))
                )
        except (ValueError, OverflowError, parser.UnknownTimezoneWarning):
            raise ValueError(wrong) from None
        # A month of 13 would be taken for the day.
        if first != second or (day is not None and first.day != int(day)):
            raise ValueError(wrong)
        return first

    def column(self, cells: Sequence[str]) -> tuple[Sequence[Any] | NDArray[Any], NDArray[np.bool_]]:
        told = {_says_day_first(cell) for cell in cells if "/" in cell or "-" in cell} - {None}
        each = self if len(told) != 1 else replace(self, day_first=told.pop())
        numbers, fine = super(Moment, each).column(cells)
        return np.array([math.nan if one is None else one for one in numbers], float), fine


def _says_day_first(words: str) -> bool | None:
    """Return whether the day comes first in a date that ends with the year; None where nothing tells, or it is none."""
    found = _YEAR_LAST.match(words)
    if found is None or (int(found[1]) > 12) == (int(found[3]) > 12):
        return None
    return int(found[1]) > 12


moment = Moment()
"""A time: a number, or a date and time in seconds since 1970."""
text = Words()
"""A word or more, without the blanks around it."""
any_text = Words(empty=True)
"""The same, or nothing."""
prose = Words(empty=True, longest=math.inf)
"""The same, of any length."""
number = Number()
"""A finite number of at least 0."""
positive = Number(above_zero=True)
"""A finite number above 0."""
whole = Number(whole_from=0)
"""A whole number of at least 0."""
positive_whole = Number(whole_from=1)
"""A whole number of at least 1."""
gpus = Number(whole_from=1, maximum=LONGEST)
"""A number of GPUs, at least 1."""


def read_cell(read: Callable[[str], Any], cell: str, where: str) -> Any:
    """Read a cell.

    Raises
    ------
    InstanceError
        When it refuses the cell; the message begins with ``where``.
    """
    try:
        return read(cell)
    except ValueError as error:
        raise InstanceError(f"{where}: got {quoted(cell)}, {error}") from None


# --- tables as text -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Table:
    """A table as text, before anything of it is understood.

    Attributes
    ----------
    name : str
        Of the file, or ``"DataFrame"``.
    sha256 : str
        Of the file's bytes, or of the DataFrame as the CSV file that it would be written to.
    header : list of str
        Names of the columns; none where the file has no header.
    rows : list of list of str
        The cells of each row, as many as there are.
    lines : list of int
        The number of each row: its line in a file, counted from 1, or its place in a DataFrame, from 0.
    unit : str
        What these count, ``"line"`` or ``"row"``.
    reading : mapping, optional
        How the DataFrame was read, if a reader made it.
    """

    name: str
    sha256: str
    header: list[str]
    rows: list[list[str]]
    lines: list[int]
    unit: str = "line"
    reading: Mapping[str, Any] | None = None

    @property
    def head(self) -> str:
        """The place of the header, for messages."""
        return f"{self.name}, line 1" if self.unit == "line" else self.name

    def at(self, row: int) -> str:
        """Return the place of a row, for messages."""
        return f"{self.name}, {self.unit} {self.lines[row]}"


if TYPE_CHECKING:
    Source = PathLike | OpenFile | pd.DataFrame | Table
else:
    Source = PathLike | OpenFile | Table | Any
"""The input of a reader: a path, an open file, a pandas DataFrame, or a table that was read before."""


def is_table(source: object) -> TypeGuard[pd.DataFrame | Table]:
    """Return whether a source is a table already, not a file: a DataFrame, or what was read of one."""
    if isinstance(source, Table):
        return True
    if isinstance(source, (str, os.PathLike, Text)) or hasattr(source, "read"):
        return False
    import pandas as pd

    return isinstance(source, pd.DataFrame)


def read_table(source: Source | Text, *, separator: str = ",", header: bool = True) -> Table:
    """Return a table as text, with the blanks around names of columns left out, and without blank lines.

    Parameters
    ----------
    source : path, open file or DataFrame
        A file may be a gzip.
    separator : str
        A comma: cells are those of CSV files, and blanks after a comma do not count.  Anything else, such as a tab,
        cuts lines and nothing else does.
    header : bool
        Whether the first line of a file names the columns.

    Raises
    ------
    InstanceError
        When the file is no such table; the message names file and line.
    """
    if isinstance(source, Table):
        return source
    framed = _framed(source)
    name, content, sha256 = read_source(source if framed is None else io.StringIO(framed))  # type: ignore[arg-type]
    if framed is not None:
        name, separator, header = "DataFrame", ",", True
    text_file = io.StringIO(content, newline="")
    if separator == ",":
        lines = csv.reader(text_file, skipinitialspace=True)
    else:
        lines = csv.reader(text_file, delimiter=separator, quoting=csv.QUOTE_NONE)
    numbers, rows = [], []
    try:
        for cells in lines:
            if cells:
                numbers.append(lines.line_num)
                rows.append(cells)
    except csv.Error as error:
        raise InstanceError(f"{name}, line {lines.line_num}: {error}") from None
    if not rows:
        raise InstanceError(f"{name} is empty")
    names = [cell.strip() for cell in rows[0]] if header else []
    first = 1 if header else 0
    table = Table(name, sha256, names, rows[first:], numbers[first:])
    if framed is None:
        return table
    # A DataFrame is no path and no file, and was not read from one here.
    before = source.attrs.get("reading")  # type: ignore[union-attr]
    return replace(table, lines=list(range(len(table.rows))), unit="row", reading=before)


def _framed(source: object) -> str | None:
    """Return a DataFrame as CSV; None of anything else."""
    if isinstance(source, (str, os.PathLike, Text)) or hasattr(source, "read"):
        return None
    if not is_table(source) or isinstance(source, Table):
        raise InstanceError(f"got {type(source).__name__}, must be a path, an open file or a DataFrame")
    # The index is data where it has names, as that of tables of throughputs.
    return source.to_csv(index=any(name is not None for name in source.index.names))


class Column(NamedTuple):
    """A column of the result.

    Attributes
    ----------
    names : tuple of str
        What it is called in files; the first stands in messages.
    read : CellReader
    optional : bool
        Whether the result lacks it where the file does.
    """

    names: tuple[str, ...]
    read: CellReader
    optional: bool = False


class Reading(TypedDict, total=False):
    """An account of the reading of a table: ``frame.attrs["reading"]``, in JSON's types.

    ``rows`` counts those of the file, ``skipped`` the bad ones left out (with the ``reasons`` of the first few), and
    ``repeated`` those kept whose ``job_id`` a row before has, too.  ``left_out`` counts rows that are in order, but
    none of the jobs that the table is about, and ``filled_in`` those of which something was put in or rounded that the
    file does not say so.  ``began`` is the date and time of the first job, where the file tells dates, and ``doubts``
    are sentences about numbers that look as if they meant something else.  ``options`` are the reader's.  ``before`` is
    the reading of a DataFrame that a reader made.
    """

    source: str
    sha256: str
    reader: str
    options: dict[str, Any]
    rows: int
    skipped: int
    reasons: list[str]
    repeated: int
    left_out: dict[str, int]
    filled_in: dict[str, int]
    began: str
    doubts: list[str]
    before: dict[str, Any]


def named(table: Table, columns: Mapping[str, Column], given: Mapping[str, str] | None = None) -> dict[str, int]:
    """Return the place of each column of the result in the table; optional ones that are not there are left out.

    Parameters
    ----------
    table : Table
    columns : mapping
        Name in the result to what is known of the column.
    given : mapping, optional
        Name in the result to name in the file, which goes before the names that are known; None where no option tells
        it.

    Raises
    ------
    InstanceError
        When a column is missing or there twice, or ``given`` names one that the result does not have.
    """
    told = given or {}
    for name in told:
        if name not in columns:
            raise InstanceError(
                f"columns: got {quoted(name)}, must be of {', '.join(columns)}{nearest(str(name), columns)}"
            )
    places = {}
    for name, column in columns.items():
        spelled = (told[name],) if name in told else (*column.names, name)
        found = next((one for one in spelled if one in table.header), None) or _same(spelled, table)
        if found is None:
            if column.optional and name not in told:
                continue
            advice = _advice(name, spelled, table, can_be_given=given is not None)
            raise InstanceError(f"{table.head}: there is no column {quoted(spelled[0])}{advice}")
        if table.header.count(found) > 1:
            raise InstanceError(f"{table.head}: column {quoted(found)} is there twice")
        places[name] = table.header.index(found)
    return places


def _plain(name: str) -> str:
    """Return a name without case, blanks and marks."""
    return "".join(filter(str.isalnum, name)).lower()


def _same(spelled: Sequence[str], table: Table) -> str | None:
    """Return the one column of the table whose name is the same but for case, blanks and marks."""
    wanted = {_plain(name) for name in spelled}
    same = [name for name in table.header if _plain(name) in wanted]
    return same[0] if len(same) == 1 else None


MOST_NAMED = 12
"""Columns of a table that a message names."""


def _advice(name: str, spelled: Sequence[str], table: Table, *, can_be_given: bool) -> str:
    """Advise on a column that is missing: one that is called nearly so, else those that there are."""
    there = ", ".join(quoted(one) for one in table.header[:MOST_NAMED])
    only = f", only {there}{', ...' if len(table.header) > MOST_NAMED else ''}"
    if not can_be_given:
        return only
    alike = {_plain(one): one for one in table.header if len(one) < 50}
    for one in spelled:
        for close in difflib.get_close_matches(_plain(one), alike, n=1, cutoff=0.8):
            column = alike[close]
            return f"; did you mean columns={{{name!r}: {column!r}}}, in the shell --reader columns.{name}={column}?"
    return f"{only}: name it, as in columns={{{name!r}: ...}}, in the shell --reader columns.{name}=..."


def sniffed(source: PathLike | OpenFile) -> tuple[str, bool, Text]:
    """Return the first line of a file that is not blank, whether it looks like the header of CSV, and the file."""
    read = read_source(source)
    line = next((line for line in io.StringIO(read.content) if line.strip()), "").strip()
    return line, "," in line and "\t" not in line and line[0] not in "{[", read


def read_columns(
    source: Source,
    columns: Mapping[str, Column],
    *,
    given: Mapping[str, str] | None = None,
    skip_bad_rows: bool = False,
    what: str = "jobs",
) -> pd.DataFrame:
    """Return the rows of a table, each column read as it is declared.

    Parameters
    ----------
    source : path, open file, DataFrame or Table
    columns : mapping
        Name in the result to what is known of the column.
    given : mapping, optional
        Name in the result to name in the file, where that is none of the known ones.
    skip_bad_rows : bool
        Whether rows that cannot be read are left out, and counted in the reading, rather than refused.
    what : str
        What the rows are, for the message that there are none.

    Returns
    -------
    DataFrame
        In the file's order; other columns of the file are left out.  How it was read is ``attrs["reading"]``.

    Raises
    ------
    InstanceError
        When a column is missing, a row is malformed, or there are none.
    """
    import pandas as pd

    table = read_table(source)
    places = named(table, columns, given)
    width = len(table.header)
    fine = np.array([len(cells) == width for cells in table.rows], bool)
    even = table.rows if fine.all() else [cells if len(cells) == width else [""] * width for cells in table.rows]
    by_place = list(zip(*even, strict=True)) if even else [()] * width
    made: dict[str, Any] = {}
    for name, place in places.items():
        made[name], readable = columns[name].read.column(by_place[place])
        fine &= readable
    bad = np.flatnonzero(~fine)
    reasons = [_reason(table, int(row), columns, places) for row in bad[: MOST_REASONS if skip_bad_rows else 1]]
    if reasons and not skip_bad_rows:
        raise InstanceError(reasons[0])
    if bad.size:
        kept = np.flatnonzero(fine)
        made = {
            name: values[kept] if isinstance(values, np.ndarray) else [values[row] for row in kept]
            for name, values in made.items()
        }
    if bad.size == len(table.rows):
        raise InstanceError(f"{table.name}: there are no {what}" + (f"; {reasons[0]}" if reasons else ""))
    frame = pd.DataFrame(made)
    reading: Reading = {
        "source": table.name,
        "sha256": table.sha256,
        "rows": len(table.rows),
        "skipped": int(bad.size),
        "reasons": reasons,
    }
    if table.reading is not None:
        reading["before"] = dict(table.reading)
    if "job_id" in frame:
        reading["repeated"] = int(frame["job_id"].duplicated().sum())
    frame.attrs["reading"] = reading
    return frame


def _reason(table: Table, row: int, columns: Mapping[str, Column], places: Mapping[str, int]) -> str:
    """Describe the fault of a row."""
    cells = table.rows[row]
    if len(cells) != len(table.header):
        return f"{table.at(row)}: got {len(cells)} cells, must be {len(table.header)}"
    for name, place in places.items():
        try:
            read_cell(columns[name].read, cells[place], f"{table.at(row)}: {table.header[place]}")
        except InstanceError as error:
            return str(error)
    raise AssertionError("a row that a column refuses has a cell that is refused")


SINCE_1970 = 1e9
"""Times from here on are no clock that began with the trace, but count from 1970: seconds of 2001 and later."""
YEAR_5138 = 1e11
"""Times that would lie there as seconds are milliseconds, or still smaller units."""


def on_clock(frame: pd.DataFrame, first: str, others: Sequence[str] = ()) -> pd.DataFrame:
    """Return a table whose times are on the clock of its trace.

    Dates, and numbers since 1970 in seconds, milliseconds or less, become seconds from the first of them on; other
    numbers stay what they are.

    Parameters
    ----------
    frame : DataFrame
        With its reading, which is told when the clock began.
    first : str
        The column of which the least time is the beginning.
    others : sequence of str
        Further columns on the same clock, those that are there.
    """
    began = float(frame[first].min())
    unit = next((unit for unit in (1.0, 1e3, 1e6, 1e9) if SINCE_1970 <= began / unit < YEAR_5138), None)
    if unit is None:
        return frame
    made = frame.assign(**{name: (frame[name] - began) / unit for name in (first, *others) if name in frame})
    made.attrs["reading"] = {**frame.attrs["reading"], "began": f"{datetime.fromtimestamp(began / unit, UTC):%F %T}"}
    return made


# --- files ----------------------------------------------------------------------------------------


def read_json(source: PathLike | OpenFile | Text) -> tuple[Any, Reading]:
    """Read the content of a JSON file, and what is told of the file.

    Raises
    ------
    InstanceError
        When the file is not JSON; the message names file and line.
    """
    name, content, sha256 = read_source(source)
    if not content.strip():
        raise InstanceError(f"{name} is empty")
    return as_json(content, name, line=True), {"source": name, "sha256": sha256}


MOST_KEPT = 8
"""Files that each reader keeps."""
SETTLED = 10**8
"""Nanoseconds after which a change of a file shows in its time."""

F = TypeVar("F", bound=Callable[..., Any])


def reader(read: F) -> F:
    """Make a reader read a path once: what it made is kept until the file changes, and each call gets a copy.

    A file is the same while its path, its time of change and its size are; of a folder, those of all that is in it; a
    :class:`Table`, while its hash is.  The reading in ``attrs`` of what is made gets the name of the function and its
    options.
    """
    kept: dict[object, Any] = {}

    @functools.wraps(read)
    def once(source: Any, **options: Any) -> Any:
        path = os.path.abspath(os.fspath(source)) if isinstance(source, (str, os.PathLike)) else None
        of_table = (source.name, 0, source.sha256) if isinstance(source, Table) else None
        known = of_table if path is None else _identity(path)
        key = known and (*known, repr(sorted(options.items())))
        if key in kept:
            return _copied(kept[key])
        made = read(source, **options)
        # What is made of another reader's table keeps what that one told.
        made.attrs["reading"].setdefault("reader", f"{read.__module__}.{read.__qualname__}")
        made.attrs["reading"].setdefault("options", {name: value for name, value in options.items() if value})
        # What was changed just now may be changed again without its time showing it.
        if key and time.time_ns() - key[1] > SETTLED:
            while len(kept) >= MOST_KEPT:
                del kept[next(iter(kept))]
            kept[key] = made
        return _copied(made)

    return cast(F, once)


def _identity(path: str) -> tuple[str, int, tuple[tuple[str, int, int], ...]]:
    """Return a path, when something in it changed last (ns), and what is there."""
    try:
        names = sorted(os.listdir(path)) if os.path.isdir(path) else [""]
        found = [(name, os.stat(os.path.join(path, name) if name else path)) for name in names]
    except (OSError, ValueError):
        # What cannot be looked at is the reader's to refuse.
        return path, time.time_ns(), ()
    about = tuple((name, one.st_mtime_ns, one.st_size) for name, one in found)
    return path, max((changed for _, changed, _ in about), default=time.time_ns()), about


def _copied(made: Any) -> Any:
    """Return a table that its owner may change; what is frozen needs no copy."""
    return made.copy() if hasattr(made, "copy") else made
