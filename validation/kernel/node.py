"""What a Dask worker does with the tasks it is given: it has them run by the library's own pool.

A Dask worker has threads, so nothing may be forked from it; it is a daemon, which may start no
processes by ``multiprocessing``; and it must not die of what it runs.  So it starts one program beside it,
which has everything imported and no threads (:func:`serve`).  For each thread of the Dask worker's that has a batch
of tasks the program forks a process, which runs the tasks on the pool (:class:`validation.kernel.workers.Pool`), with
the limits of each.  The process ends, with all that it has started, when the Dask worker lets go of it: because the
batch was cancelled there, because the worker closes, or because it is dead.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from validation.kernel.isolation import (
    CONTEXT,
    become_keeper,
    end_family,
    end_with_parent,
    remove,
    silence,
)
from validation.kernel.provenance import memory_of_machine
from validation.kernel.walls import LINUX, Rules, forking, ruled
from validation.kernel.workers import Pool, Task

__all__ = ["Batch", "Done", "Modules", "Report", "memory_share", "run_batch", "serve"]

GLANCE = 0.2
"""Seconds between looks at whether a batch is still wanted."""
PATIENCE = 60.0
"""Seconds that a process waits for another batch, with all that its workers have imported, before it ends."""


@dataclass(frozen=True)
class Modules:
    """Modules of the user's that register problems, as they travel: as files, so that what is theirs can be pickled.

    Attributes
    ----------
    files : dict of bytes
        Sources of these and of the user's other modules, by their paths below a folder.
    references : tuple of str
        What is to be loaded, as :func:`validation.catalogue.load` is told.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    references: tuple[str, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """Names of the modules."""
        return frozenset(file.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for file in self.files)


@dataclass(frozen=True)
class Batch:
    """Tasks that a Dask worker is given at once.

    Attributes
    ----------
    tasks : tuple of Task
        The one argument of each is a function and its arguments, pickled.
    seconds : float
        No task is begun after so many.
    code : mapping
        What must be installed, by name, as :func:`validation.kernel.keys.code_of` says.
    problems : tuple of str
        Those from outside the library that must be known.
    modules : Modules
        That register some of them.
    rules : Rules
        For the user's code.
    ready : tuple of str
        Modules of the library's that the tasks need.
    """

    tasks: tuple[Task, ...]
    seconds: float
    code: dict[str, str]
    problems: tuple[str, ...]
    modules: Modules
    rules: Rules
    ready: tuple[str, ...] = ()

    @property
    def family(self) -> tuple[Rules, Modules]:
        """Key of the processes that can run it: what they are made for."""
        return self.rules, self.modules


Done = tuple[int, bytes, str, float]
"""Number of a task in its batch; its result, pickled, because no process between need know the user's classes; the
reason why there is none; its seconds."""


@dataclass(frozen=True)
class Report:
    """The report of a batch.

    Attributes
    ----------
    node : str
        Address of the Dask worker.
    done : list of Done
    refused : str
        Why the node must not run it; empty where it may.
    died : bool
        Whether the process that ran it died in the middle.
    """

    node: str
    done: list[Done]
    refused: str = ""
    died: bool = False


# --- in the Dask worker -------------------------------------------------------------------------


def run_batch(batch: Batch) -> Report:
    """Run a batch beside this Dask worker, in one of whose threads this is called."""
    import distributed

    worker = distributed.get_worker()
    key = worker.get_current_task()

    def wanted() -> bool:
        state = worker.state.tasks.get(key)
        closing = worker.status in (distributed.Status.closing, distributed.Status.closed)
        return not closing and state is not None and state.state not in ("cancelled", "resumed")

    if not LINUX:
        return Report(worker.address, [], "it does not run Linux")
    memory = (worker.memory_manager.memory_limit or memory_of_machine()) // (2 * worker.state.nthreads)
    report = Report(worker.address, [])
    for _ in range(2):
        beside, fresh = _beside(batch.ready)
        report = beside.run(batch, memory, wanted, worker.address)
        if not report.refused or fresh:
            break
        # The library may have been installed anew since the program was started.
        beside.end()
    return report


class _Beside:
    """The program beside a Dask worker, and the worker's end of the wires to it and to the processes that it forks."""

    def __init__(self, ready: Sequence[str]) -> None:
        self.control, theirs = socket.socketpair()
        # Without the current directory, whose files may have the names of other modules.
        program = [sys.executable, "-P", "-c", "from validation.kernel.node import serve; serve()", *ready]
        with theirs:
            # In a session of its own, so that Ctrl-C in the worker's terminal is the worker's to handle.
            self.process = subprocess.Popen(
                program, stdin=theirs.fileno(), stdout=subprocess.DEVNULL, start_new_session=True
            )
        self.idle: list[tuple[object, Connection]] = []

    @property
    def runs(self) -> bool:
        return self.control.fileno() >= 0 and self.process.poll() is None

    def end(self) -> None:
        self.control.close()

    def run(self, batch: Batch, memory: int, wanted: Callable[[], bool], address: str) -> Report:
        """Have a batch run, as long as it is wanted."""
        done: list[Done] = []
        try:
            connection = self._idle(batch.family) or self._forked()
        except OSError:
            return Report(address, done, died=True)
        over = False
        try:
            connection.send((batch, memory))
            while wanted():
                if not connection.poll(GLANCE):
                    continue
                said = connection.recv()
                if isinstance(said, str):
                    over = not said
                    return Report(address, done, said)
                done.append(said)
        except (EOFError, OSError):
            return Report(address, done, died=True)
        finally:
            if over:
                self.idle.append((batch.family, connection))
            else:
                connection.close()
        return Report(address, done)

    def _idle(self, family: object) -> Connection | None:
        """Return the wire to a process that has run a batch of the same study, and waits for another."""
        for one in list(self.idle):
            with contextlib.suppress(ValueError):  # Another thread was quicker.
                self.idle.remove(one)
                if one[0] == family and not one[1].poll():
                    return one[1]
                one[1].close()
        return None

    def _forked(self) -> Connection:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            socket.send_fds(self.control, [b"."], [theirs.fileno()])
            return Connection(ours.detach())


_lock = threading.Lock()
_program: _Beside | None = None


def _beside(ready: Sequence[str]) -> tuple[_Beside, bool]:
    """Find or start the program beside this Dask worker; return it, and whether it was started just now."""
    global _program
    with _lock:
        fresh = _program is None or not _program.runs
        if fresh:
            _program = _Beside(ready)
        assert _program is not None
        return _program, fresh


# --- in the program beside it -------------------------------------------------------------------


def serve() -> None:
    """Body of the program: fork a process for each batch, until the Dask worker is gone."""
    # What the tasks need, so that no process has to import it.
    for module in sys.argv[1:]:
        importlib.import_module(module)
    from validation.kernel.keys import code_of

    become_keeper(os.getppid())
    control = socket.socket(fileno=os.dup(0))
    silence(0)
    code = code_of()
    running: dict[int, _Forked] = {}
    poll = select.poll()
    poll.register(control, select.POLLIN)
    while True:
        for number, _ in poll.poll(1000 * GLANCE if running else None):
            if number != control.fileno():
                # The Dask worker has let go of a batch: because it is over, or is not wanted.
                poll.unregister(number)
                running.pop(number).end()
                continue
            said, numbers, _, _ = socket.recv_fds(control, 1, 1)
            if not said:
                for one in running.values():
                    one.end()
                os._exit(0)
            (theirs,) = numbers
            running[theirs] = _Forked(theirs, [control.fileno(), *running], code)
            poll.register(theirs, select.POLLRDHUP)
        for number, one in list(running.items()):
            if one.process.exitcode is not None:
                poll.unregister(number)
                running.pop(number).end()


class _Forked:
    """The process of a batch."""

    def __init__(self, handle: int, others: Sequence[int], code: dict[str, str]) -> None:
        self.handle = handle
        # It may be killed, and what it leaves behind is removed here.
        self.scratch = tempfile.mkdtemp(prefix="optgap-")
        arguments = (handle, others, self.scratch, code, os.getpid())
        self.process: BaseProcess = CONTEXT.Process(target=_run, args=arguments)
        with forking():
            self.process.start()

    def end(self) -> None:
        """Kill it with all that it has started."""
        assert self.process.pid is not None
        if self.process.exitcode is None:
            end_family(self.process.pid)
        self.process.kill()
        self.process.join()
        os.close(self.handle)
        remove(self.scratch)


_share: int | None = None


def memory_share() -> int:
    """Bytes that a task may take on this node, with all that it starts."""
    assert _share is not None, "asked elsewhere than in a task of a batch"
    return _share


def _run(handle: int, others: Sequence[int], scratch: str, code: dict[str, str], parent: int) -> None:
    """Body of a batch's process."""
    global _share
    end_with_parent(parent)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for other in others:
        os.close(other)
    os.environ["TMPDIR"] = tempfile.tempdir = scratch
    with Connection(handle) as connection:
        batch, _share = connection.recv()
        wrong = _load(batch.modules, Path(scratch, "modules"))
        with ruled(batch.rules), Pool(_call) as pool:
            while True:
                refused = wrong or _why_not(batch, code)
                if not refused:
                    for outcome in pool.run(_in_time(batch), jobs=1):
                        number = outcome.task.arguments[1]
                        connection.send((number, pickle.dumps(outcome.result), outcome.reason, outcome.seconds))
                connection.send(refused)
                if refused or not connection.poll(PATIENCE):
                    return
                batch, _share = connection.recv()


def _load(modules: Modules, folder: Path) -> str:
    """Have the user's modules, and what they register; why that cannot be, or nothing."""
    from instances.base import InstanceError
    from validation import catalogue
    from validation.errors import CatalogueError, StudyError

    for file, content in modules.files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(content)
    sys.path.append(str(folder))
    try:
        for reference in modules.references:
            found = catalogue.import_object(reference)
            if ":" in reference:
                catalogue.register(found)
    except (CatalogueError, InstanceError, StudyError) as error:
        return str(error)
    return ""


def _in_time(batch: Batch) -> Iterator[Task]:
    """Yield the tasks of a batch, as long as there is time to begin another."""
    end = time.monotonic() + batch.seconds
    for number, task in enumerate(batch.tasks):
        if number and time.monotonic() > end:
            return
        # What does nothing but ask keeps watch over what it asks by itself.
        memory = task.memory if task.asks and not task.solves else task.memory or memory_share()
        yield replace(task, arguments=(*task.arguments, number), memory=memory)


def _call(content: bytes, number: int) -> Any:
    function, arguments = pickle.loads(content)
    return function(*arguments)


def _why_not(batch: Batch, code: dict[str, str]) -> str:
    """Say why a batch must not be run here; empty where it may."""
    from validation import catalogue
    from validation.errors import CatalogueError
    from validation.kernel.keys import code_of

    for problem in batch.problems:
        try:
            catalogue.entry(problem)
        except CatalogueError:
            return f"it does not know {problem}: name the module that registers it with --load, or install it there"
    now = code_of(batch.problems)
    for name, wanted in batch.code.items():
        # What is imported is what was there when the program began.
        for found in (now[name], code.get(name, now[name])):
            if found != wanted:
                return f"it has another {name}" + (f": {found}, not {wanted}" if len(wanted) < 64 else "")
    return ""
