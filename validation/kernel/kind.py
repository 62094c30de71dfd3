"""What a kind of table is: studies of gaps are one, replays another.

Whatever the kind, a table is made in one way (:mod:`validation.kernel.run`).  Options are made into a :class:`Plan`,
which has the :class:`Cell` of every row that there is to be.  Cells run apart from each other, on this machine or on
others; the row of each is appended to a log (:mod:`validation.kernel.store`) under a key made of all that it depends
on.  Tables and pages are made of the rows.

A further kind is a :class:`Kind` that says what stands in its files, a class of cells, a function that plans them, and
one that makes a result of the rows.  It gets resumption, shards, merging, clusters, forecasts and dry runs with it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from validation.kernel.records import Cells, Schema, checked, complaint, file_complaint, got, shown
from validation.kernel.walls import Rules

if TYPE_CHECKING:
    from validation.catalogue import Heuristic
    from validation.kernel.workers import Outcome, Task

__all__ = ["Cell", "Kind", "Plan", "Result", "Tell", "Warn"]

Warn: TypeAlias = Callable[[str], object]
"""Takes a line about damage that is survived."""

Tell: TypeAlias = Callable[[float, int, int], None]
"""Takes how far a cell is while it runs: a time of its own, s, and what is done of how much."""

Result: TypeAlias = Callable[[Path, Warn], Any]
"""Makes tables and pages of the log in a directory, and tells of damage."""


def _nothing(_: Any) -> dict[str, Any]:
    """Have nothing beside."""
    return {}


def _no_contradiction(_: Mapping[str, Any]) -> str:
    """Find that all entries go together."""
    return ""


def _value(row: Mapping[str, Any]) -> float | None:
    """Return the entry ``value`` of a row."""
    return row.get("value")


def _ready() -> None:
    """Prepare nothing."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of table: what its cells and rows are, and what its directory holds.

    Attributes
    ----------
    name : str
        What messages call it.
    counted : str
        What its cells are called, such as "runs".
    record : str
        Name of the file that says what was asked, and which cells follow from it.
    files, folders : tuple of str
        What it writes beside record, log and lock.
    asked, cell, row, optional : Schema
        Of what was asked, of a cell before it runs, and of what its row has beside that; ``optional`` of what a row may
        do without.
    swept : callable
        From what was asked, checked, to what cells have beside ``cell``.
    distinct : tuple of str
        Entries of ``cell`` in which, with what is swept, no two cells agree.
    agrees : tuple of str
        Entries of a row that are its cell's.
    alike : tuple of str
        Entries that cells have in common which take about as long, beside what is swept.
    contradiction : callable
        What entries of a row that are fine by themselves do not go together; empty where all do.
    named, depends : callable
        Words for a cell, and for what its key depends on beside what was asked, from its record.
    value : callable
        Of a row, the number in which two rows of one cell should agree; None where there is none.
    beside : callable, optional
        Of a row, the hash of each file that is its own, by the file's path.
    places : tuple of str
        Options that name files, which may lie elsewhere on another machine: what was read from them tells.
    """

    name: str
    counted: str
    record: str
    files: tuple[str, ...]
    folders: tuple[str, ...]
    asked: Schema
    cell: Schema
    row: Schema
    agrees: tuple[str, ...]
    alike: tuple[str, ...]
    named: Callable[[Mapping[str, Any]], str]
    depends: Callable[[Mapping[str, Any]], str]
    optional: Schema = field(default_factory=dict)
    distinct: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    swept: Callable[[Mapping[str, Any]], Schema] = _nothing
    contradiction: Callable[[Mapping[str, Any]], str] = _no_contradiction
    value: Callable[[Mapping[str, Any]], float | None] = _value
    beside: Callable[[Mapping[str, Any]], Mapping[str, str]] | None = None

    def entries(self, asked: Mapping[str, Any]) -> Schema:
        """Return the schema of a cell's record."""
        return {**self.cell, **self.swept(asked)}

    def cells(self, asked: Mapping[str, Any], records: Iterable[Any]) -> Cells:
        """Return the cells that a record has, each of them checked.

        Raises
        ------
        ValueError
            When one is not what it must be.
        """
        distinct = (*self.distinct, *self.swept(asked)) if self.distinct else ()
        schema = self.entries(asked)
        return Cells(checked(records, schema, distinct), schema)

    def like(self, row: Mapping[str, Any], asked: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return what a row has in common with those that take about as long."""
        return tuple(row.get(name) for name in (*self.alike, *self.swept(asked)))

    def check(self, row: Any, cells: Cells | None = None) -> str:
        """Say what is wrong with a row; empty when nothing is.

        Parameters
        ----------
        row : object
            What a line of the log says.
        cells : Cells, optional
            Cells that it may be of.
        """
        if not isinstance(row, dict) or not {"key", "status"} <= row.keys():
            return f"not the row of a {self.name}"
        told = cells.get(row["key"]) if cells is not None and isinstance(row["key"], str) else None
        # A row that says what its cell does needs no other check of that; but 1 is true, and 1.0.
        alike = told is not None and told.items() <= row.items()
        if not alike or any(type(row[name]) is not type(value) for name, value in (told or {}).items()):
            wrong = complaint(row, self.cell) or file_complaint(row)
            if wrong:
                return wrong
        if wrong := complaint(row, self.row):
            return wrong
        for name, entry in self.optional.items():
            # What a row does without needs no look.
            if (value := row.get(name)) is not None and not entry.fits(value):
                return got(name, value, entry.words)
        if wrong := self.contradiction(row):
            return wrong
        if told is not None and not alike:
            for name in (*self.agrees, *[name for name in told if name not in self.cell]):
                if row.get(name) != told[name]:
                    return got(name, row.get(name), f"{shown(told[name])}, as its cell has it")
        return ""


class Cell(ABC):
    """One row that there is to be: all that it takes to compute it.

    Attributes
    ----------
    key : str
        Hash of all that the row depends on.
    """

    __slots__ = ()
    key: str

    @property
    @abstractmethod
    def record(self) -> dict[str, Any]:
        """The entries of its row that are known before it runs."""

    @property
    @abstractmethod
    def heuristic(self) -> Heuristic | None:
        """The heuristic that is asked, if one is."""

    @property
    @abstractmethod
    def like(self) -> tuple[tuple[Any, ...], ...]:
        """Groups of rows that take about as long (:meth:`Kind.like`), from the closest to the widest."""

    @property
    @abstractmethod
    def limit(self) -> float:
        """Seconds that it may take."""

    @abstractmethod
    def task(self, number: int, directory: Path) -> Task:
        """Make its task: a number and what :meth:`run` is given, from what the directory holds."""

    @abstractmethod
    def run(self, content: bytes, tell: Tell) -> Any:
        """Compute what its row is made of, in a worker."""

    @abstractmethod
    def row(self, outcome: Outcome, directory: Path) -> dict[str, Any]:
        """Make its row when it has ended, however it did; files of the row's own are written into the directory."""

    @abstractmethod
    def sent(self, content: bytes, heuristic: Heuristic | None) -> tuple[bytes, Self]:
        """Content and cell as they go to another machine, which has none of the files that are read here.

        Parameters
        ----------
        content : bytes
            What it would be given here.
        heuristic : Heuristic, optional
            In place of its own, as other machines can have it.
        """


@dataclass(frozen=True)
class Plan:
    """The plan of a run: what is about to be computed.

    Attributes
    ----------
    kind : Kind
    directory : Path
    asked : dict
        What its record says.
    cells : sequence of Cell
        All that there are.
    mine : sequence of int
        Numbers of those that are to be run here: all, or those of a shard.
    jobs : int
        Worker processes, or threads of a cluster.
    shard : str, optional
    problems : frozenset of str
        That the cells are about.
    result : callable
        Writes tables and pages from the log, told the directory and whom to warn; what it returns is the result.
    prepare : callable
        Writes what cells need into the directory.
    disk : int
        Bytes that this takes.
    note : callable, optional
        Words for how far cells are that run and tell it; without, nobody is told.
    rules : Rules
        For the user's code.
    """

    kind: Kind
    directory: Path
    asked: dict[str, Any]
    cells: Sequence[Cell]
    mine: Sequence[int]
    jobs: int
    shard: str | None
    problems: frozenset[str]
    result: Result
    prepare: Callable[[], None] = _ready
    disk: int = 0
    note: Callable[[float, int, int], str] | None = None
    rules: Rules = field(default_factory=Rules)

    def records(self) -> Cells:
        """Return the records of all cells."""
        return Cells((cell.record for cell in self.cells), self.kind.entries(self.asked))
