"""Worker processes that survive what they run: hangs, crashes and nonsense cost one task each.

A worker is reused from task to task.  The parent watches its clock from outside and kills it when
a task runs past its limit, so not even a loop in C code can hold up a study.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

# On Linux workers are forked: they start in milliseconds with everything imported, and functions
# that were defined in a notebook reach them.  Elsewhere forking is unsafe, so functions must be
# importable there.
_CONTEXT: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")


@dataclass(frozen=True)
class Task:
    """Something to run in a worker.

    Attributes
    ----------
    function : callable
        Called as ``function(*arguments)``; what it returns must be picklable.
    arguments : tuple
    time_limit : float
        After this many seconds the worker is killed.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    time_limit: float


@dataclass(frozen=True)
class Outcome:
    """How a task ended: with a ``result``, or for the ``reason`` that is not empty."""

    task: Task
    result: Any
    reason: str
    seconds: float


def run_tasks(tasks: Iterable[Task], *, jobs: int) -> Iterator[Outcome]:
    """Run tasks on ``jobs`` worker processes; outcomes come as they end.

    The tasks are taken one by one, as workers become free.  Closing the iterator, or leaving it
    by an exception, kills the workers.
    """
    waiting = iter(tasks)
    workers: list[_Worker] = []
    try:
        for task in waiting:
            worker = _Worker()
            workers.append(worker)
            worker.give(task)
            if len(workers) == jobs:
                break
        while busy := [worker for worker in workers if worker.task is not None]:
            patience = max(0.0, min(worker.deadline for worker in busy) - time.monotonic())
            ready = wait([worker.connection for worker in busy], timeout=patience)
            for worker in busy:
                if worker.connection in ready:
                    outcome = worker.take()
                elif time.monotonic() >= worker.deadline:
                    outcome = worker.stop()
                else:
                    continue
                if worker.process.exitcode is not None:
                    workers.remove(worker)
                    worker = _Worker()
                    workers.append(worker)
                following = next(waiting, None)
                if following is not None:
                    worker.give(following)
                yield outcome
    finally:
        for worker in workers:
            worker.kill()


class _Worker:
    """One process and the parent's end of its pipe."""

    def __init__(self) -> None:
        self.connection, theirs = _CONTEXT.Pipe()
        self.process: BaseProcess = _CONTEXT.Process(target=_serve, args=(theirs, os.getpid()), daemon=True)
        with warnings.catch_warnings():
            # Python warns of forking while other threads run (those of NumPy's linear algebra and
            # of notebooks); none of them holds a lock that a worker needs.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.process.start()
        theirs.close()
        self.task: Task | None = None
        self.began = self.deadline = 0.0

    def give(self, task: Task) -> None:
        self.task = task
        self.began = time.monotonic()
        self.deadline = self.began + task.time_limit
        # A worker that died between tasks breaks the pipe; ``take`` finds out how it died.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.connection.send((task.function, task.arguments))

    def take(self) -> Outcome:
        """The outcome of the task, from a worker that has answered or died."""
        try:
            result, reason = self.connection.recv()
        except (EOFError, ConnectionResetError):
            self.process.join()
            result, reason = None, f"the process died: {_death(self.process.exitcode)}"
        return self._finished(result, reason)

    def stop(self) -> Outcome:
        """Kill the worker in the middle of its task, which has run past its limit."""
        assert self.task is not None
        self.kill()
        return self._finished(None, f"time limit: stopped after {self.task.time_limit:g} s")

    def _finished(self, result: Any, reason: str) -> Outcome:
        assert self.task is not None
        outcome = Outcome(self.task, result, reason, time.monotonic() - self.began)
        self.task = None
        return outcome

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


def _death(code: int | None) -> str:
    if code is not None and code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"it exited with code {code}"


def _serve(connection: Connection, parent: int) -> None:
    """Body of a worker: run what comes through the pipe until the parent is gone."""
    if sys.platform == "linux":
        # A parent that is killed must not leave a worker behind in an endless loop.
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle.
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115, what a heuristic prints must not reach the report
    while True:
        try:
            function, arguments = connection.recv()
        except EOFError:
            return
        except BaseException as error:
            answer: tuple[Any, str] = (None, f"the task could not be sent to a worker: {error}")
        else:
            try:
                answer = (function(*arguments), "")
            except BaseException as error:
                answer = (None, describe(error))
        with contextlib.suppress(BrokenPipeError):
            connection.send(answer)


def describe(error: BaseException) -> str:
    """An exception in one line: its type, its message, and where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({os.path.basename(frames[-1].filename)}, line {frames[-1].lineno})" if frames else ""
    message = " ".join(str(error).split())
    return f"{type(error).__name__}{': ' if message else ''}{message}{where}"
