"""What Dask adds to a study: the coordinator's time for a cell, and what a cluster does beside the cells."""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks.tables import Row, Setup, benchmark, seconds
from instances.aryl import reclaim
from instances.files import text_of
from validation.kernel.workers import Task

__all__: list[str] = []

NODES = 2
"""Workers, of one thread each."""


def _row(text: bytes) -> dict[str, object]:
    """Answer a cell of no work."""
    return {"status": "feasible", "reason": "", "value": 1.0, "seconds": 0.0, "plan": {"servers": [0] * 20}}


@benchmark("overhead.dask", "cells", "of", "time", "of the coordinator, for a cell", "beyond the cells' own")
def _rows(setup: Setup) -> Iterator[Row]:
    """Tasks on a local Dask cluster of two workers: the coordinator's time, and what is not the tasks' own."""
    from distributed import Client, LocalCluster

    from validation.kernel.cluster import run_tasks

    number, sleeps = setup.size((5_000, 60), (20, 2))
    text = text_of(reclaim.generate(0, num_servers=20)).encode()
    nothing = [Task((text,), 60.0) for _ in range(number)]
    second = [Task((1.0,), 60.0) for _ in range(sleeps)]
    with (
        LocalCluster(n_workers=NODES, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        for name, function, tasks, own in (
            ("1 s, programs not begun", time.sleep, second, 1.0),
            ("1 s", time.sleep, second, 1.0),
            ("no work", _row, nothing, 0.0),
        ):
            before, began = time.process_time(), time.perf_counter()
            ended = list(run_tasks(client, function, tasks, total=len(tasks)))
            whole, spent = time.perf_counter() - began, time.process_time() - before
            if any(outcome.reason for outcome in ended):
                raise RuntimeError(ended[0].reason)
            ideal = own * len(tasks) / NODES
            beyond = f"{100 * (whole / ideal - 1):.1f}%" if ideal else f"{seconds(whole / len(tasks))} a cell"
            yield f"{len(tasks):,}", name, seconds(whole), seconds(spent / len(tasks)), beyond
