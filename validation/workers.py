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
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

__all__ = ["Outcome", "Task", "describe", "run_tasks"]

# On Linux workers are forked: they start in milliseconds with everything imported, and any function
# reaches them, a lambda or one from a notebook too.  Elsewhere forking is unsafe, so functions must
# be importable there.
_CONTEXT: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")

_MESSAGE_LENGTH = 1000


@dataclass(frozen=True)
class Task:
    """One call to make in a worker.

    Attributes
    ----------
    arguments : tuple
        Picklable.
    time_limit : float
        After this many seconds the worker is killed.
    """

    arguments: tuple[Any, ...]
    time_limit: float


@dataclass(frozen=True)
class Outcome:
    """How a task ended: with a ``result``, or for the ``reason`` that is not empty."""

    task: Task
    result: Any
    reason: str
    seconds: float


def run_tasks(function: Callable[..., Any], tasks: Iterable[Task], *, jobs: int) -> Generator[Outcome]:
    """Call ``function(*task.arguments)`` on ``jobs`` worker processes; outcomes come as they end.

    What the function returns must be picklable.  The tasks are taken one by one, as workers become
    free.  Closing the iterator, or leaving it by an exception, kills the workers.
    """
    waiting = iter(tasks)
    workers: list[_Worker] = []
    try:
        for task in waiting:
            worker = _Worker(function)
            workers.append(worker)
            worker.give(task)
            if len(workers) == jobs:
                break
        while busy := [worker for worker in workers if worker.task is not None]:
            patience = max(0.0, min(worker.deadline for worker in busy) - time.monotonic())
            # An hour at most, because the system call takes no timeout of many days.
            ready = wait([worker.connection for worker in busy], timeout=min(patience, 3600.0))
            for worker in busy:
                if worker.connection in ready:
                    outcome = worker.take()
                elif time.monotonic() >= worker.deadline:
                    outcome = worker.stop()
                else:
                    continue
                following = next(waiting, None)
                if following is not None:
                    if worker.process.exitcode is not None:
                        workers.remove(worker)
                        worker = _Worker(function)
                        workers.append(worker)
                    worker.give(following)
                yield outcome
    finally:
        for worker in workers:
            worker.kill()


class _Worker:
    """One process and the parent's end of its pipe."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.connection, theirs = _CONTEXT.Pipe()
        self.process: BaseProcess = _CONTEXT.Process(target=_serve, args=(function, theirs, os.getpid()), daemon=True)
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
            self.connection.send(task.arguments)

    def take(self) -> Outcome:
        """The outcome of the task, from a worker that has answered or died."""
        try:
            result, reason = self.connection.recv()
        except (EOFError, OSError):
            # Dying takes a moment.  ``join`` with a timeout would wait for ever on a process that has
            # closed its pipes and lives on.
            patience = time.monotonic() + 1.0
            while self.process.exitcode is None and time.monotonic() < patience:
                time.sleep(0.001)
            result, reason = None, f"the process died: {_death(self.process.exitcode)}"
            self.kill()
        except Exception as error:
            result, reason = None, f"the result cannot be read: {describe(error)}"
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
        if sys.platform == "linux" and self.process.pid is not None:
            # What the task started, such as a solver's program, goes with the worker.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.join()
        self.connection.close()


def _death(code: int | None) -> str:
    if code is None:
        return "it closed its pipe"
    if code >= 0:
        return f"it exited with code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:  # Real-time signals have no names.
        return f"killed by signal {-code}"


def _serve(function: Callable[..., Any], connection: Connection, parent: int) -> None:
    """Body of a worker: make the calls that come through the pipe until the parent is gone."""
    if sys.platform == "linux":
        # A parent that is killed must not leave a worker behind in an endless loop.
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            return
        os.setsid()  # A process group of its own, see ``kill``.
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle.
    # What a heuristic prints must not reach the table, be it by Python or by a library in C.
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115, it stays open
    os.dup2(sys.stdout.fileno(), 1)
    while True:
        try:
            arguments = connection.recv()
        except EOFError:
            return
        try:
            answer: tuple[Any, str] = (function(*arguments), "")
        except BaseException as error:
            answer = (None, describe(error))
        try:
            connection.send(answer)
        except BrokenPipeError:
            return
        except Exception as error:
            connection.send((None, f"the result cannot be sent: {describe(error)}"))


def describe(error: BaseException) -> str:
    """An exception in one line: its type, its message, and where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({os.path.basename(frames[-1].filename)}, line {frames[-1].lineno})" if frames else ""
    try:
        message = " ".join(str(error).split()).encode(errors="backslashreplace").decode()
    except Exception:
        message = "its message cannot be printed"
    if len(message) > _MESSAGE_LENGTH:
        message = f"{message[:_MESSAGE_LENGTH]}..."
    return f"{type(error).__name__}{': ' if message else ''}{message}{where}"
