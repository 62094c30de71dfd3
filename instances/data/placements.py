"""Placement tables: who held how many GPUs of which server, and when.

This is the form that ``optgap convert philly-placements`` writes, and that logs and replays of simulators are easily
written in: a header, and a line for each stretch of time that a job held GPUs of a server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from instances.base import InstanceError
from instances.data.lines import Column, Source, gpus, number, read_columns, reader, text
from instances.schema import IntArray

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COLUMNS", "Held", "held_at", "read_placements", "write"]

COLUMNS: Mapping[str, Column] = {
    "job_id": Column(("job_id",), text),
    "server": Column(("server", "machine", "node"), text),
    "gpus": Column(("gpus", "num_gpu", "num_gpus"), gpus),
    "start": Column(("start", "start_time"), number),
    "end": Column(("end", "end_time"), number),
}
"""Columns of the table, the names that they go by in files, and how a cell is read."""


@dataclass(frozen=True)
class Held:
    """What ran where at a time.

    Attributes
    ----------
    time : float
        s, on the table's clock.
    jobs, servers : list of str
        In the order of their first row of the table.
    gpus : (n, s) int
        GPUs that each job holds on each server.
    """

    time: float
    jobs: list[str]
    servers: list[str]
    gpus: IntArray


@reader
def read_placements(
    source: Source, *, columns: Mapping[str, str] | None = None, skip_bad_rows: bool = False
) -> pd.DataFrame:
    """A placement table.

    Parameters
    ----------
    source : path, open file or DataFrame
    columns, skip_bad_rows
        As in :func:`instances.data.jobs.read_trace`.

    Returns
    -------
    DataFrame
        ``job_id``, ``server``, ``gpus``, ``start`` and ``end`` (s); in the file's order.

    Raises
    ------
    InstanceError
        When a line is malformed; the message names file and line.
    """
    return read_columns(source, COLUMNS, given=columns, skip_bad_rows=skip_bad_rows, what="placements")


def held_at(rng: np.random.Generator, placements: pd.DataFrame, num_servers: int, time: float | None = None) -> Held:
    """What ran at a time on servers in use: as many as asked for, drawn from those.

    Parameters
    ----------
    rng : Generator
        Draws the servers, and the time where none is given: one at which a row begins, and enough servers are in use.
    placements : DataFrame
    num_servers : int
    time : float, optional
        A row counts from its start up to, and without, its end.

    Raises
    ------
    InstanceError
        When fewer servers are in use.
    """
    start, end = (placements[name].to_numpy(float) for name in ("start", "end"))
    servers = placements["server"].to_numpy(str)
    where = placements.attrs.get("reading", {}).get("source", "the placements")
    times = rng.permutation(np.unique(start)) if time is None else np.array([time])
    for moment in times.tolist():
        now = np.flatnonzero((start <= moment) & (moment < end))
        used = list(dict.fromkeys(servers[now].tolist()))
        if len(used) >= num_servers >= 1:
            break
    else:
        when = "ever at once" if time is None else f"at {time:g} s"
        raise InstanceError(f"num_servers: got {num_servers}, as many servers of {where} are not in use {when}")
    chosen = [used[place] for place in np.sort(rng.permutation(len(used))[:num_servers])]
    rows = placements.iloc[now]
    rows = rows[rows["server"].isin(chosen)]
    jobs = list(dict.fromkeys(rows["job_id"].tolist()))
    held = np.zeros((len(jobs), num_servers), np.int64)
    job_at, server_at = ({name: place for place, name in enumerate(names)} for names in (jobs, chosen))
    places = [job_at[job] for job in rows["job_id"]], [server_at[server] for server in rows["server"]]
    np.add.at(held, places, rows["gpus"].to_numpy(np.int64))
    return Held(moment, jobs, chosen, held)


def write(placements: pd.DataFrame) -> str:
    """A placement table as the CSV that :func:`read_placements` reads."""
    return placements.to_csv(index=False)
