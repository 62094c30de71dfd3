"""Worker processes that survive what they run: hangs, crashes and nonsense cost one task each.

A worker is reused from task to task.  The parent watches its clock from outside and kills it when
a task runs past its limit, so not even a loop in C code can hold up a study.  Workers run code of the
library only; what is the user's runs apart from them (:mod:`validation.kernel.isolation`), and workers that
ask for it do nothing else.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, NoReturn, Self

from validation.kernel.isolation import (
    CONTEXT,
    GLANCE,
    become_keeper,
    death,
    describe,
    end_family,
    end_with_parent,
    family_bytes,
    remove,
    silence,
)
from validation.kernel.walls import LINUX, WallError, enclose, forking

__all__ = ["LIMITS", "Outcome", "Pool", "Task", "describe", "run_tasks"]

LIMITS = ("time limit", "memory limit")
"""How the reason begins why a task was stopped, and did not end by itself."""

PATIENCE = 3600.0
"""Seconds to wait at a time at most, because the system call takes no timeout of many days."""


@dataclass(frozen=True)
class Task:
    """One call to make in a worker.

    Attributes
    ----------
    arguments : tuple
        Picklable.
    time_limit : float
        After this many seconds the worker is killed.
    asks : bool
        Whether the call asks something of the user's code, which runs apart from the worker.  It goes to workers
        that have solved nothing.
    memory : int, optional
        Bytes that the worker, with all that it starts, may take beyond what it has when the task begins; above
        that it is killed.
    solves : bool
        Whether the call solves something, too, after what it asks: its worker is used for nothing else then.
    others : bool
        Whether what it asks is not the library's, and may take all of the machine: it runs beside its like only.
    """

    arguments: tuple[Any, ...]
    time_limit: float
    asks: bool = False
    memory: int | None = None
    solves: bool = False
    others: bool = False


@dataclass(frozen=True)
class Outcome:
    """Outcome of a task: a ``result``, or the ``reason`` that is not empty."""

    task: Task
    result: Any
    reason: str
    seconds: float


def run_tasks(
    function: Callable[..., Any],
    tasks: Iterable[Task],
    *,
    jobs: int,
    pause: Callable[[], object] = lambda: None,
    every: float = PATIENCE,
) -> Generator[Outcome]:
    """Call ``function(*task.arguments)`` on ``jobs`` worker processes; outcomes come as they end.

    What the function returns must be picklable.  The tasks are taken one by one, as workers become
    free.  Closing the iterator, or leaving it by an exception, kills the workers.

    Parameters
    ----------
    function : callable
    tasks : iterable of Task
    jobs : int
        Tasks that run at once.
    pause : callable, optional
        Called when no outcome is at hand, before one is waited for.
    every : float
        Seconds after which it is called again while none comes.
    """
    with Pool(function) as pool:
        yield from pool.run(tasks, jobs=jobs, pause=pause, every=every)


class Pool:
    """Workers for one function, which stay from one run of tasks to the next; see :func:`run_tasks`.

    To be used as a context, whose end kills the workers.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        # A worker that is killed leaves its temporary files here, and so do those that it has asked.
        self.scratch = tempfile.mkdtemp(prefix="optgap-")
        self.busy: list[_Worker] = []
        self.idle: list[_Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.busy + self.idle:
            worker.kill()
        remove(self.scratch)

    def run(
        self,
        tasks: Iterable[Task],
        *,
        jobs: int,
        pause: Callable[[], object] = lambda: None,
        every: float = PATIENCE,
    ) -> Generator[Outcome]:
        """Outcomes of tasks as they end; to be read to the end before the next run."""
        waiting, busy = iter(tasks), self.busy
        held = self._fill(waiting, next(waiting, None), jobs)
        while busy:
            if not wait([worker.connection for worker in busy], timeout=0):
                pause()
            # The clock is read before the pipes are: what was answered while this process was suspended is heard.
            now = time.monotonic()
            patience = max(0.0, min(worker.deadline for worker in busy) - now)
            glance = min(every, GLANCE if any(worker.watched for worker in busy) else PATIENCE)
            ready = wait([worker.connection for worker in busy], timeout=min(patience, glance))
            for worker in list(busy):
                # Whoever has answered is heard, however late it is.
                if worker.connection in ready or worker.connection.poll():
                    outcome = worker.take()
                elif reason := worker.limit_passed(now):
                    outcome = worker.stop(reason)
                else:
                    continue
                busy.remove(worker)
                if outcome.task.asks and outcome.task.solves:
                    worker.kill()
                elif worker.process.exitcode is None:
                    self.idle.append(worker)
                held = self._fill(waiting, held or next(waiting, None), jobs)
                yield outcome

    def _fill(self, waiting: Iterator[Task], task: Task | None, jobs: int) -> Task | None:
        """Start this task and those that follow while there is room; return one that must wait for what runs."""
        while task is not None and all(one.task is not None and one.task.others == task.others for one in self.busy):
            self._start(task)
            task = next(waiting, None) if len(self.busy) < jobs else None
        return task

    def _start(self, task: Task) -> None:
        worker = next((one for one in self.idle if one.asks == task.asks), None)
        if worker is None:
            worker = _Worker(self.function, task.asks, self.scratch)
        else:
            self.idle.remove(worker)
        self.busy.append(worker)
        worker.give(task)


class _Worker:
    """One process and the parent's end of its pipe."""

    def __init__(self, function: Callable[..., Any], asks: bool, scratch: str) -> None:
        self.asks = asks
        self.connection, theirs = CONTEXT.Pipe()
        arguments = (function, theirs, os.getpid(), asks, scratch)
        self.process: BaseProcess = CONTEXT.Process(target=_serve, args=arguments, daemon=True)
        with forking():
            self.process.start()
        theirs.close()
        self.task: Task | None = None
        self.number = 0
        self.began = self.deadline = 0.0
        self.taken_before = 0

    @property
    def watched(self) -> bool:
        """Whether somebody has to look at what memory the task takes."""
        return self.task is not None and self.task.memory is not None

    def give(self, task: Task) -> None:
        self.task = task
        self.number += 1
        self.taken_before = self._taken() if self.watched else 0
        self.began = time.monotonic()
        # A worker that died between tasks breaks the pipe; ``take`` finds out how it died.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.connection.send((self.number, task.arguments))
        # From when the worker has the task: this process may have been suspended before.
        self.deadline = time.monotonic() + task.time_limit

    def take(self) -> Outcome:
        """Take the outcome of the task, from a worker that has answered or died."""
        try:
            number, pid, result, reason = self.connection.recv()
            if (number, pid) != (self.number, self.process.pid):
                result, reason = None, "the answer is not that of its task and process"
                self.kill()
        except (EOFError, OSError):
            # Dying takes a moment.  ``join`` with a timeout would wait for ever on a process that has
            # closed its pipes and lives on.
            patience = time.monotonic() + 1.0
            while self.process.exitcode is None and time.monotonic() < patience:
                time.sleep(0.001)
            result, reason = None, f"the process died: {death(self.process.exitcode)}"
            self.kill()
        except Exception as error:
            result, reason = None, f"the result cannot be read: {describe(error)}"
        return self._finished(result, reason)

    def limit_passed(self, now: float) -> str:
        """Name the limit that the task has run past; empty where it has not."""
        assert self.task is not None
        if now >= self.deadline:
            return f"{LIMITS[0]}: stopped after {self.task.time_limit:g} s"
        if self.task.memory is not None:
            taken = self._taken() - self.taken_before
            if taken > self.task.memory:
                return f"{LIMITS[1]}: stopped at {taken / 1e9:.3g} GB"
        return ""

    def _taken(self) -> int:
        return 0 if self.process.pid is None else family_bytes(self.process.pid)

    def stop(self, reason: str) -> Outcome:
        """Kill the worker in the middle of its task."""
        self.kill()
        return self._finished(None, reason)

    def _finished(self, result: Any, reason: str) -> Outcome:
        assert self.task is not None
        outcome = Outcome(self.task, result, reason, time.monotonic() - self.began)
        self.task = None
        return outcome

    def kill(self) -> None:
        """Kill the process, and what the task has started, such as a solver's program."""
        if LINUX and self.process.pid is not None:
            if self.process.exitcode is None:
                end_family(self.process.pid)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.join()
        self.connection.close()


def _refuse(error: WallError, *_: Any) -> NoReturn:
    """Ask nothing where a wall is missing."""
    raise error


def _serve(
    function: Callable[..., Any],
    connection: Connection,
    parent: int,
    asks: bool,
    scratch: str,
) -> None:
    """Body of a worker: make the calls that come through the pipe until the parent is gone."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)  # What the parent does then is not the worker's to do.
    os.environ["TMPDIR"] = tempfile.tempdir = scratch
    if asks:
        become_keeper(parent)
        try:
            enclose()
        except WallError as error:
            function = functools.partial(_refuse, error)
    else:
        end_with_parent(parent)
    if LINUX:
        os.setsid()  # A process group of its own, see ``kill``.
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle.
    # What is printed must not reach the table, be it by Python or by a library in C.
    silence(1)
    while True:
        try:
            number, arguments = connection.recv()
        except EOFError:
            return
        answer: tuple[int, int, Any, str]
        try:
            answer = (number, os.getpid(), function(*arguments), "")
        except BaseException as error:
            answer = (number, os.getpid(), None, describe(error))
        try:
            connection.send(answer)
        except BrokenPipeError:
            return
        except Exception as error:
            connection.send((number, os.getpid(), None, f"the result cannot be sent: {describe(error)}"))
