"""``python -m benchmarks.faults --seed 1``: do all harm, print what came of it; 1 where anything went wrong.

Each kind runs in a process of its own, so many at once.  Its line is printed when it ends; each thing that must not
have happened is told on standard error at once, with how far the others are, and again below the table.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from typing import Any
from unittest import mock

from benchmarks import chosen
from benchmarks.faults import MODULES
from benchmarks.faults.tally import FAULTS, Fault, Tally
from benchmarks.tables import machine
from validation.catalogue import CATALOGUE
from validation.kernel.isolation import CONTEXT, death, end_family, end_with_parent, plain
from validation.pages.render import table_lines

__all__ = ["main"]

COUNTED = ("rows lost", "doubled", "changed", "tracebacks", "hangs")
COLUMNS = ("fault", "what is done", "times", "what came of it", *COUNTED, "seconds")
OFTEN = 60.0
"""Seconds between lines about how far the kinds are."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, and each thing that must not have happened."""
    assert MODULES
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a fault, or all whose names begin so; all by default")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--share", type=float, default=1.0, help="of the times that each is done; 1 by default")
    parser.add_argument("--jobs", type=int, default=2, help="kinds that are done at once; 2 by default")
    given = parser.parse_args(arguments)
    wanted = chosen(FAULTS, given.names)
    if not wanted or not 0 < given.share <= 1:
        parser.error(f"got {' '.join(given.names)} and {given.share:g}, must be of {', '.join(FAULTS)}, and in (0, 1]")
    if given.jobs < 1:
        parser.error(f"got {given.jobs}, must be at least 1")
    wrong: list[str] = []
    whole, began = True, time.monotonic()
    with _temporary_folder():
        # What imports lazily does so before it is forked.
        list(CATALOGUE.values())
        running = [_Running(FAULTS[name], given.seed, given.share) for name in wanted]
        try:
            for line in table_lines(COLUMNS, (one.row for one in _ended(running, given.jobs, wrong))):
                print(line, flush=True)
        except KeyboardInterrupt:
            print("\nInterrupted: what is above has ended.")
            whole = False
        finally:
            for one in running:
                one.stop()
    print(f"\nSeed {given.seed}, share {given.share:g}; {(time.monotonic() - began) / 60:.0f} minutes. {machine()}")
    print(f"Wrong: {len(wrong) or 'nothing'}", *wrong, sep="\n- ")
    return 0 if whole and all(one.tally.fine for one in running) else 1


@contextlib.contextmanager
def _temporary_folder() -> Iterator[None]:
    """One place for all that may be left; Matplotlib's own files are not those that other versions have left."""
    with (
        tempfile.TemporaryDirectory(prefix="faults-") as folder,
        mock.patch.dict(os.environ, {"TMPDIR": folder, "MPLCONFIGDIR": folder}),
        mock.patch.object(tempfile, "tempdir", folder),
    ):
        yield


class _Running:
    """A kind of fault, in a process of its own once it was started."""

    def __init__(self, fault: Fault, seed: int, share: float) -> None:
        self.fault, self.seed = fault, seed
        self.count = max(1, round(share * fault.count))
        self.tally = Tally()
        self.process: Any = None
        self.seconds = 0.0

    def start(self) -> Connection:
        self.began = time.monotonic()
        receiving, sending = CONTEXT.Pipe(duplex=False)
        self.process = CONTEXT.Process(target=_harm, args=(self.fault, self.seed, self.count, sending, os.getpid()))
        self.process.start()
        sending.close()
        return receiving  # type: ignore[no-any-return]

    def told(self, connection: Connection) -> tuple[list[str], bool]:
        """Take what it says: what is wrong beside what was known, and whether it goes on."""
        known, ended = len(self.tally.wrong), True
        try:
            self.tally, ended = connection.recv()
        except EOFError:
            self.process.join()
            self.tally.tell(f"the process died: {death(self.process.exitcode)}", "tracebacks")
        self.seconds = time.monotonic() - self.began
        return [plain(f"{self.fault.name}: {line}") for line in self.tally.wrong[known:]], not ended

    def stop(self) -> None:
        if self.process is not None:
            if self.process.exitcode is None:
                end_family(self.process.pid)
                self.process.kill()
            self.process.join()

    @property
    def row(self) -> list[object]:
        """Its line of the table."""
        came = ", ".join(f"{count:,} {outcome}" for outcome, count in self.tally.outcomes.items())
        done = (self.fault.name, self.fault.summary, f"{self.tally.tried:,}", came)
        return [*done, *self.tally.counts, f"{self.seconds:.0f}"]


def _ended(waiting: Sequence[_Running], jobs: int, wrong: list[str]) -> Iterator[_Running]:
    """Yield the kinds as they end, with what went wrong added to a list."""
    left, running, last = list(waiting), dict[Any, _Running](), time.monotonic()
    while left or running:
        while left and len(running) < jobs:
            one = left.pop(0)
            running[one.start()] = one
        for connection in wait(list(running), timeout=OFTEN):
            one = running[connection]
            lines, goes_on = one.told(connection)  # type: ignore[arg-type]
            wrong += lines
            for line in lines:
                print(line, file=sys.stderr, flush=True)
            if not goes_on:
                running.pop(connection).process.join()
                connection.close()  # type: ignore[union-attr]
                yield one
        if time.monotonic() - last > OFTEN:
            last = time.monotonic()
            far = (f"{one.fault.name} {one.tally.tried:,} of {one.count:,}" for one in running.values())
            print(f"... {', '.join(far)}", file=sys.stderr, flush=True)


def _harm(fault: Fault, seed: int, count: int, sending: Connection, parent: int) -> None:
    """Tell what came of a kind so far once a second, and what came of all of it: the body of its process."""
    os.setsid()  # Ctrl-C is for the process that prints.
    end_with_parent(parent)
    last = 0.0

    def watch(tally: Tally) -> None:
        nonlocal last
        if time.monotonic() - last > 1.0:
            last = time.monotonic()
            sending.send((replace(tally, watch=None), False))

    try:
        sending.send((replace(fault.harm(seed, count, watch), watch=None), True))
    except Exception:
        traceback.print_exc()
        raise SystemExit(1) from None


if __name__ == "__main__":
    sys.exit(main())
