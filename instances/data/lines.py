"""Reading files of text: lines, cells and JSON, with the file and the line in every error.

A cell is read by a function of its text, which refuses what it cannot read with a ``ValueError`` that
says what the cell must be.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from instances.base import InstanceError
from instances.schema import LONGEST, quoted
from instances.text import PathLike, as_json, read_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "LARGEST_WHOLE",
    "Cell",
    "PathLike",
    "csv_lines",
    "gpus",
    "number",
    "positive",
    "positive_whole",
    "read_cell",
    "read_header",
    "read_jobs",
    "read_json",
    "read_rows",
    "read_text",
    "text",
    "whole",
]

Cell = Callable[[str], Any]

LARGEST_WHOLE = 2**53
"""Beyond it a number of a table is not exact."""


# --- cells ----------------------------------------------------------------------------------------


def read_cell(read: Cell, cell: str, where: str) -> Any:
    """What ``read`` makes of a cell.

    Raises
    ------
    InstanceError
        When it refuses the cell; the message begins with ``where``.
    """
    try:
        return read(cell)
    except ValueError as error:
        raise InstanceError(f"{where}: got {quoted(cell)}, {error}") from None


def text(cell: str) -> str:
    """A word or more, without the blanks around it."""
    if not cell.strip():
        raise ValueError("must not be empty")
    return cell.strip()


def number(cell: str) -> float:
    """A finite number of at least 0."""
    try:
        value = float(cell)
    except ValueError:
        raise ValueError("must be a number") from None
    if not 0 <= value < math.inf:
        raise ValueError("must be finite and at least 0")
    return value


def positive(cell: str) -> float:
    """A finite number above 0."""
    if not number(cell):
        raise ValueError("must be positive")
    return number(cell)


def whole(cell: str) -> int:
    """A whole number of at least 0."""
    return _whole(cell, 0)


def positive_whole(cell: str) -> int:
    """A whole number of at least 1."""
    return _whole(cell, 1)


def gpus(cell: str) -> int:
    """A number of GPUs, at least 1."""
    return _whole(cell, 1, LONGEST)


def _whole(cell: str, minimum: int, maximum: int = LARGEST_WHOLE) -> int:
    value = number(cell)
    if value % 1 or value < minimum:
        raise ValueError(f"must be a whole number, at least {minimum}")
    if value > maximum:
        raise ValueError(f"must be at most {maximum:,}")
    return round(value)


# --- files ----------------------------------------------------------------------------------------


def read_json(path: PathLike) -> Any:
    """The content of a JSON file.

    Raises
    ------
    InstanceError
        When the file is not JSON; the message names file and line.
    """
    return as_json(read_text(path), f"{path}", line=True)


def csv_lines(path: PathLike) -> Iterator[tuple[int, list[str]]]:
    """Number and cells of each line of a CSV file; blank lines are passed over.

    Raises
    ------
    InstanceError
        When the file is no CSV; the message names file and line.
    """
    reader = csv.reader(io.StringIO(read_text(path), newline=""))
    try:
        yield from ((reader.line_num, cells) for cells in reader if cells)
    except csv.Error as error:
        raise InstanceError(f"{path}, line {reader.line_num}: {error}") from None


def read_header(path: PathLike) -> list[str]:
    """The names of a CSV file's columns; none where the file is empty."""
    return next(csv_lines(path), (1, []))[1]


def read_rows(path: PathLike, required: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    """Number of each line after the header, and its cells by the names of their columns.

    Raises
    ------
    InstanceError
        When a required column is missing or there twice, or a line has more or fewer cells than the header.
    """
    lines = csv_lines(path)
    _, header = next(lines, (1, []))
    for column in required:
        if column not in header:
            raise InstanceError(f"{path}, line 1: there is no column {column!r}")
        if header.count(column) > 1:
            raise InstanceError(f"{path}, line 1: column {column!r} is there twice")
    for line, cells in lines:
        if len(cells) != len(header):
            raise InstanceError(f"{path}, line {line}: got {len(cells)} cells, must be {len(header)}")
        yield line, dict(zip(header, cells, strict=True))


def read_jobs(path: PathLike, columns: Mapping[str, tuple[tuple[str, ...], Cell]]) -> pd.DataFrame:
    """Jobs of a trace, one for each line after the header.

    Parameters
    ----------
    path : path
    columns : mapping
        For each column of the result the names that it goes by in files, and how to read a cell.

    Returns
    -------
    DataFrame
        In the file's order; other columns of the file are left out.

    Raises
    ------
    InstanceError
        When a column is missing, a line is malformed, or there are no jobs.
    """
    import pandas as pd

    header = read_header(path)
    spelled = {
        column: next((name for name in names if name in header), names[0]) for column, (names, _) in columns.items()
    }
    rows = [
        {
            column: read_cell(read, cells[spelled[column]], f"{path}, line {line}: {spelled[column]}")
            for column, (_, read) in columns.items()
        }
        for line, cells in read_rows(path, tuple(spelled.values()))
    ]
    if not rows:
        raise InstanceError(f"{path}: there are no jobs")
    return pd.DataFrame(rows)
