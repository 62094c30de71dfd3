"""Placement tables: who held how many GPUs of which server, and when.

This is the form that ``optgap convert`` writes of logs that tell servers, and that replays of simulators are easily
written in: a header, and a line for each stretch of time that a job held GPUs of a server.

Every ``from_placements`` draws from such a table: either what servers held at a time (:func:`draw_held`), or what came
to them from a time on (:func:`draw_coming`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from instances.base import InstanceError
from instances.data.lines import Column, Source, gpus, moment, on_clock, read_columns, reader, text
from instances.data.origin import origin
from instances.schema import IntArray

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COLUMNS", "Coming", "Held", "PlacementChoice", "draw_coming", "draw_held", "read_placements", "write"]

COLUMNS: Mapping[str, Column] = {
    "job_id": Column(("job_id",), text),
    "server": Column(("server", "machine", "node"), text),
    "gpus": Column(("gpus", "num_gpu", "num_gpus"), gpus),
    "start": Column(("start", "start_time"), moment),
    "end": Column(("end", "end_time"), moment),
    "server_gpus": Column(("server_gpus", "server_gpu"), gpus, optional=True),
}
"""Columns of the table, the names that they go by in files, and how a cell is read."""


class PlacementChoice(TypedDict, total=False):
    """The options of every ``from_placements`` beside a generator or its seed, the table, sizes and its own.

    The table, ``placements``, is a path, an open file or a DataFrame for :func:`read_placements`, whose ``columns`` and
    ``skip_bad_rows`` these are.  ``time`` (s, on the table's clock) is when to look; where it is not given it is drawn,
    as the servers are.  A malformed table, and one in which too little ran then, is an ``InstanceError``.
    """

    columns: Mapping[str, str] | None
    skip_bad_rows: bool
    time: float | None


@dataclass(frozen=True)
class _Drawn:
    """Rows drawn from a table.

    Attributes
    ----------
    reading : mapping
        How the table was read.
    time : float
        s, on the table's clock.
    jobs, servers : list of str
        In the order of their first row.
    """

    reading: Mapping[str, Any]
    time: float
    jobs: list[str]
    servers: list[str]

    def origin(
        self, reader: str, *, repairs: Mapping[str, int], jobs: list[str] | None = None, **options: Any
    ) -> dict[str, Any]:
        """Describe the origin of an instance, whose jobs may be others than all of these."""
        return origin(
            reader,
            placements={"reading": self.reading},
            jobs=self.jobs if jobs is None else jobs,
            servers=self.servers,
            repairs=repairs,
            options={**options, "time": self.time},
        )


@dataclass(frozen=True)
class Held(_Drawn):
    """The GPUs that jobs held on servers at a time.

    Attributes
    ----------
    gpus : (n, s) int
        GPUs that each job holds on each server.
    """

    gpus: IntArray


@dataclass(frozen=True)
class Coming(_Drawn):
    """The pieces that came to servers from a time on, one for each row: the GPUs of a job on one server.

    Attributes
    ----------
    piece_jobs, piece_servers : (p,) int
        Job and server of each piece, in order of their starts.
    gpus : (p,) int
        GPUs of each piece.
    held : (s,) int
        GPUs of each server that were held then by what had come before.
    server_gpus : (s,) int, optional
        GPUs of each server, where the table tells.
    """

    piece_jobs: IntArray
    piece_servers: IntArray
    gpus: IntArray
    held: IntArray
    server_gpus: IntArray | None


@reader
def read_placements(
    source: Source, *, columns: Mapping[str, str] | None = None, skip_bad_rows: bool = False
) -> pd.DataFrame:
    """Read a placement table.

    Parameters
    ----------
    source : path, open file or DataFrame
    columns, skip_bad_rows
        As in :func:`instances.data.jobs.read_trace`.

    Returns
    -------
    DataFrame
        ``job_id``, ``server``, ``gpus``, ``start`` and ``end`` (s), and where the file has it ``server_gpus``, those
        of the server, taken or not; in the file's order.

    Raises
    ------
    InstanceError
        When a line is malformed; the message names file and line.
    """
    held = read_columns(source, COLUMNS, given=columns or {}, skip_bad_rows=skip_bad_rows, what="placements")
    return on_clock(held, "start", ("end",))


def draw_held(
    rng: np.random.Generator, placements: Source, num_servers: int, **choice: Unpack[PlacementChoice]
) -> Held:
    """Draw as many servers in use at a time as asked for, with what ran on them.

    Parameters
    ----------
    rng : Generator
        Draws the servers, and the time where none is given: one at which a row begins, and enough servers are in use.
    placements : path, open file or DataFrame
    num_servers : int
    **choice
        As in :class:`PlacementChoice`.  A row counts from its start up to, and without, its end.

    Raises
    ------
    InstanceError
        When the table is malformed, or fewer servers are in use.
    """
    table, time = _read(placements, **choice)
    start, end = (table[name].to_numpy(float) for name in ("start", "end"))
    servers = table["server"].to_numpy(str)
    reading = table.attrs["reading"]
    times = rng.permutation(np.unique(start)) if time is None else np.array([time])
    for instant in times.tolist():
        now = np.flatnonzero((start <= instant) & (instant < end))
        used = list(dict.fromkeys(servers[now].tolist()))
        if len(used) >= num_servers >= 1:
            break
    else:
        when = "ever at once" if time is None else f"at {time:g} s"
        raise InstanceError(
            f"num_servers: got {num_servers}, as many servers of {reading['source']} are not in use {when}"
        )
    chosen = [used[place] for place in np.sort(rng.permutation(len(used))[:num_servers])]
    rows = table.iloc[now]
    rows = rows[rows["server"].isin(chosen)]
    jobs, job_of = _numbered(rows["job_id"].tolist())
    held = np.zeros((len(jobs), num_servers), np.int64)
    at = {server: place for place, server in enumerate(chosen)}
    np.add.at(held, (job_of, np.array([at[server] for server in rows["server"]])), rows["gpus"].to_numpy(np.int64))
    return Held(reading, instant, jobs, chosen, held)


def draw_coming(
    rng: np.random.Generator, placements: Source, num_pieces: int, **choice: Unpack[PlacementChoice]
) -> Coming:
    """So many rows in order of their starts, and the servers that they are on.

    Parameters
    ----------
    rng : Generator
        Draws the first row where no time is given.
    placements : path, open file or DataFrame
    num_pieces : int
    **choice
        As in :class:`PlacementChoice`.  The first row is the first that begins at the time or later.

    Raises
    ------
    InstanceError
        When the table is malformed, or has fewer rows, or fewer from that time on.
    """
    table, time = _read(placements, **choice)
    reading = table.attrs["reading"]
    table = table.sort_values("start", kind="stable")
    start, end = (table[name].to_numpy(float) for name in ("start", "end"))
    earliest = 0 if time is None else int(np.searchsorted(start, time))
    spare = len(table) - earliest - num_pieces
    if num_pieces < 1 or spare < 0:
        when = "" if time is None else f" that begin at {time:g} s or later"
        raise InstanceError(
            f"placements: got {num_pieces} to draw, must be 1 to {len(table) - earliest}, the rows of "
            f"{reading['source']}{when}"
        )
    first = int(rng.integers(spare + 1)) if time is None else earliest
    moment = float(start[first])
    rows = table.iloc[first : first + num_pieces]
    jobs, job_of = _numbered(rows["job_id"].tolist())
    servers, server_of = _numbered(rows["server"].tolist())
    at = {server: place for place, server in enumerate(servers)}
    before = table.iloc[np.flatnonzero(end[:first] > moment)]
    before = before[before["server"].isin(servers)]
    held = np.zeros(len(servers), np.int64)
    np.add.at(held, [at[server] for server in before["server"]], before["gpus"].to_numpy(np.int64))
    sizes = None
    if "server_gpus" in table:
        sizes = np.zeros(len(servers), np.int64)
        np.maximum.at(sizes, server_of, rows["server_gpus"].to_numpy(np.int64))
    return Coming(reading, moment, jobs, servers, job_of, server_of, rows["gpus"].to_numpy(np.int64), held, sizes)


def _read(
    placements: Source,
    *,
    columns: Mapping[str, str] | None = None,
    skip_bad_rows: bool = False,
    time: float | None = None,
) -> tuple[pd.DataFrame, float | None]:
    return read_placements(placements, columns=columns, skip_bad_rows=skip_bad_rows), time


def _numbered(names: list[str]) -> tuple[list[str], IntArray]:
    """Names in the order in which they are met first, and the place of each of the given ones among them."""
    place: dict[str, int] = {}
    places = [place.setdefault(name, len(place)) for name in names]
    return list(place), np.array(places, np.int64)


def write(placements: pd.DataFrame) -> str:
    """Write a placement table as the CSV that :func:`read_placements` reads."""
    return placements.to_csv(index=False)
