"""``--dask``: a command whose work is done on a cluster."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from validation.cli.app import is_quiet

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["Dask", "cluster"]

Dask = Annotated[
    str | None, typer.Option(help="Address of a Dask scheduler whose workers do the work, such as tcp://host:8786.")
]
"""The option of commands whose work a cluster can do."""


@contextmanager
def cluster(address: str | None) -> Iterator[Client | None]:
    """Connect to the scheduler at an address and name its dashboard; None without an address."""
    if address is None:
        yield None
        return
    from validation.kernel.cluster import connected, threads_of

    with connected(address) as client:
        # What they would say of a scheduler that is gone, a command says in a line; some have levels of their own.
        for name in (*logging.root.manager.loggerDict, "asyncio"):
            if name.partition(".")[0] in ("distributed", "tornado", "asyncio"):
                logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        threads = threads_of(client)
        workers = len(client.nthreads())
        if not is_quiet():
            told = f"Dask: {workers} workers with {threads} threads, dashboard {client.dashboard_link}"
            print(told, file=sys.stderr, flush=True)
        yield client
