"""Dask above the worker pool: tasks run on the nodes of a cluster, a batch of them at a time.

Dask decides where a batch runs, and runs it again where a node dies.  What ends a task that runs past its
limits is the library's own pool on the node (:mod:`validation.kernel.node`), because Dask has no limit of the
time of a task and does not stop one that is cancelled.  A batch takes some seconds, so a node that dies
loses the tasks that run there and, of those that have ended, some seconds' worth.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import os
import pickle
import sys
import time
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from instances import files
from validation.catalogue import IMPORT_SECONDS, LOADED, Heuristic, Imported, import_object
from validation.errors import StudyError
from validation.kernel.isolation import Apart, describe, plain
from validation.kernel.keys import ROOMS, code_of, is_installed, is_library
from validation.kernel.node import Batch, Modules, Report, run_batch
from validation.kernel.walls import rules
from validation.kernel.workers import Outcome, Task

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["Carried", "by_value", "carried", "connected", "modules_of", "run_tasks", "threads_of"]

AIM = 10.0
"""Seconds that a batch of short tasks should take."""
LEAST = 0.5
"""Seconds of a batch when few tasks are left."""
MOST_TASKS, MOST_BYTES = 1000, 4 * 2**20
"""Of one batch; a task alone may be larger."""
GLANCE = 0.02
"""Seconds between looks at whether a batch has ended."""
ATTEMPTS = 3
"""How often a task is begun alone that takes what runs it down with it."""


# --- the cluster --------------------------------------------------------------------------------


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """Connect to the scheduler at an address.

    Raises
    ------
    StudyError
        When Dask is not installed, or no scheduler answers.
    """
    try:
        import distributed
    except ImportError:
        raise StudyError("--dask: Dask is not installed: pip install 'scheduling-formulations[distributed]'") from None
    try:
        client = distributed.Client(address, set_as_default=False)
    except (OSError, ValueError, TypeError, ImportError) as error:
        raise StudyError(f"--dask: no scheduler answers at {address!r}: {plain(str(error))}") from None
    try:
        yield client
    finally:
        client.close(timeout=1)


def threads_of(client: Client) -> int:
    """Threads of a cluster's workers, each of which runs one task at a time.

    Raises
    ------
    StudyError
        When the client is asynchronous, or its scheduler gone.
    """
    if client.asynchronous:
        raise StudyError("client: an asynchronous client cannot be used, make one without asynchronous=True")
    try:
        return sum(client.nthreads().values())
    except Exception as error:
        raise StudyError(f"client: the Dask scheduler does not answer: {describe(error)}") from None


# --- what travels -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Carried(Imported):
    """A function of the user's as bytes, by value; it is made where it is called, in a process of its own.

    Attributes
    ----------
    content : bytes
    """

    content: bytes = field(repr=False)

    def __call__(self, instance: Any, **options: Any) -> Any:
        return pickle.loads(self.content)(instance, **options)


def modules_of(problems: Iterable[str]) -> Modules:
    """Collect the user's modules, where one of them registers one of the problems: what a node needs to know it."""
    outside = [files.instance_type(problem) for problem in problems if not files.is_own(problem)]
    if not any(_is_theirs(sys.modules.get(kind.__module__)) for kind in outside):
        return Modules()
    sources = {}
    for module in list(sys.modules.values()):
        if _is_theirs(module):
            path = module.__name__.replace(".", "/")
            content = Path(str(module.__file__)).read_bytes()
            sources[f"{path}/__init__.py" if hasattr(module, "__path__") else f"{path}.py"] = content
    loaded = [one for one in LOADED if _is_theirs(sys.modules.get(one.partition(":")[0]))]
    # A module that was imported, and not loaded, has most likely registered its own.
    references = dict.fromkeys(
        [*loaded, *(kind.__module__ for kind in outside if _is_theirs(sys.modules.get(kind.__module__)))]
    )
    return Modules(sources, tuple(references))


def carried(heuristic: Heuristic, modules: Modules) -> Heuristic:
    """Make a heuristic fit to travel: the library's by name, any other by value.

    Parameters
    ----------
    heuristic : Heuristic
    modules : Modules
        That travel beside it.

    Raises
    ------
    StudyError
        When it holds what cannot be sent.
    """
    function = heuristic.function
    if isinstance(function, Imported):
        # Its module is imported nowhere but in a process of its own, here too.
        with Apart(_by_reference) as apart:
            answer = apart.ask(function.reference, modules.names, seconds=IMPORT_SECONDS)
        found = answer.content or {"error": answer.reason}
        if "error" in found:
            raise StudyError(f"{heuristic.name} cannot be sent to other machines: {plain(str(found['error']))}")
        content = found["content"].tobytes()
    elif is_library(function):
        return Heuristic(function, declines=heuristic.declines, imports=heuristic.imports)
    else:
        content = by_value(function, heuristic.name, modules.names)
    sent = Carried(heuristic.name, heuristic.random, content)
    return Heuristic(sent, declines=heuristic.declines, imports=heuristic.imports)


def _by_reference(reference: str, known: Collection[str]) -> dict[str, Any]:
    found = import_object(reference)
    content = by_value(found.function if isinstance(found, Heuristic) else found, reference, known)
    return {"content": np.frombuffer(content, np.uint8)}


def by_value(value: Any, name: str, known: Collection[str]) -> bytes:
    """Pickle a value with the code of the user's modules in it, so that it can be read where they are not.

    Parameters
    ----------
    value : object
    name : str
        What an error calls it.
    known : collection of str
        Modules that are there all the same.

    Raises
    ------
    StudyError
        When it cannot be pickled.
    """
    import cloudpickle

    theirs = [module for module in list(sys.modules.values()) if _is_theirs(module)]
    already = cloudpickle.list_registry_pickle_by_value()
    mine = [module for module in theirs if module.__name__ not in already and module.__name__ not in known]
    try:
        for module in mine:
            cloudpickle.register_pickle_by_value(module)
        return bytes(cloudpickle.dumps(value))
    except Exception as error:  # Pickling runs code of anyone's.
        place = getattr(value, "__module__", None)
        of = f" of the module {place}" if place else ""
        raise StudyError(f"{name}{of} cannot be sent to other machines: {describe(error)}") from None
    finally:
        for module in mine:
            cloudpickle.unregister_pickle_by_value(module)


def _is_theirs(module: Any) -> bool:
    """Return whether a module is the user's own: from a file that belongs to no installed distribution."""
    if not isinstance(module, ModuleType) or module.__name__ == "__main__":
        return False  # What stands in __main__ goes by value anyway.
    file = getattr(module, "__file__", None)
    return (
        isinstance(file, str)
        and sys.modules.get(module.__name__) is module
        and module.__name__.split(".")[0] not in ROOMS
        and not is_installed(file)
    )


# --- batches ------------------------------------------------------------------------------------


@dataclass
class _Waiting:
    """A task that waits, as it will travel; how often it was begun and took down what ran it."""

    task: Task
    sent: Task
    size: int
    lost: int = 0


def run_tasks(
    client: Client,
    function: Callable[..., Any],
    tasks: Iterable[Task],
    *,
    total: int | None = None,
    travels: Callable[[Task], tuple[Any, ...]] | None = None,
    problems: Iterable[str] = (),
    ready: tuple[str, ...] = (),
    until: float = math.inf,
    pause: Callable[[], None] = lambda: None,
    warn: Callable[[str], object] = lambda line: None,
) -> Generator[Outcome]:
    """Call ``function(*task.arguments)`` on the workers of a cluster; outcomes come as batches end.

    As :func:`validation.kernel.workers.run_tasks`, which runs them on the node; ``Task.memory`` is that of the node,
    shared by its threads, where it is not given.  The tasks are taken as workers become free: twice as
    many batches as the cluster has threads are held at a time.  Each task has one outcome, however often nodes
    die or run it twice.  Closing the iterator, or leaving it by an exception, ends what runs.

    Parameters
    ----------
    client : distributed.Client
    function : callable
    tasks : iterable of Task
    total : int, optional
        How many there are, where it is known: batches are smaller towards the end.
    travels : callable, optional
        From a task to the arguments that are sent in place of its own.
    problems : iterable of str
        That the tasks are about.
    ready : tuple of str
        Modules of the library's that the tasks need, so that not each process of a node has to import them.
    until : float
        Time of the monotonic clock at which what still runs is given up.
    pause : callable, optional
        Called before waiting.
    warn : callable, optional
        Takes a line about a node that is left out.

    Raises
    ------
    StudyError
        When the scheduler is gone, or no node can run what it is given.
    """
    cluster = _Cluster(client, problems, warn, ready)
    queue = _Queue(function, iter(tasks), total, travels or (lambda task: task.arguments))
    paused = False
    try:
        while True:
            # Also while others run: workers join at any time.
            while cluster.has_room() and (batch := queue.take(cluster.threads, cluster.others)):
                cluster.submit(batch)
            if not cluster.flying or time.monotonic() > until:
                return
            if not cluster.has_ended():
                if not paused:
                    pause()
                paused = True
                time.sleep(GLANCE)
                continue
            paused = False
            batch, came = cluster.ended()
            done: set[int] = set()
            if isinstance(came, Report):
                for number, content, reason, seconds in came.done:
                    done.add(number)
                    queue.learn(seconds)
                    yield Outcome(batch[number].task, pickle.loads(content), reason, seconds)
            undone = [one for number, one in enumerate(batch) if number not in done]
            yield from queue.back(undone, died=came is None or came.died)
    finally:
        cluster.release()


class _Queue:
    """The tasks that are to be run, and how many of them make a batch."""

    def __init__(
        self,
        function: Callable[..., Any],
        tasks: Iterator[Task],
        total: int | None,
        travels: Callable[[Task], tuple[Any, ...]],
    ) -> None:
        self.function = function
        self.tasks = tasks
        self.left = math.inf if total is None else float(total)
        self.travels = travels
        self.again: deque[_Waiting] = deque()
        self.mean: float | None = None

    def take(self, threads: int, others: bool | None = None) -> list[_Waiting]:
        """Take the next batch, of as many tasks as should take some seconds; none beside what must not run beside it.

        Parameters
        ----------
        threads : int
            Of the cluster.
        others : bool, optional
            Whether what runs now asks others; None where nothing runs.
        """
        batch: list[_Waiting] = []
        most, size = self._most(threads), 0
        while len(batch) < most and (one := self._next()) is not None:
            full = batch and (size + one.size > MOST_BYTES or one.lost)
            if full or others not in (None, one.task.others):
                self.again.appendleft(one)
                break
            others = one.task.others
            batch.append(one)
            size += one.size
            if one.lost:
                break  # Alone, so that it takes no other with it.
        self.left -= len(batch)
        return batch

    def _most(self, threads: int) -> int:
        if self.mean is None:
            return 1
        # Two batches for each thread are kept for the end, so that no thread waits long for another.
        share = max(self.left / (2 * max(1, threads)) * self.mean, LEAST)
        return max(1, int(min(min(AIM, share) / self.mean, MOST_TASKS)))

    def _next(self) -> _Waiting | None:
        if self.again:
            return self.again.popleft()
        task = next(self.tasks, None)
        if task is None:
            return None
        import cloudpickle

        content = cloudpickle.dumps((self.function, self.travels(task)))
        return _Waiting(task, replace(task, arguments=(content,)), len(content))

    def learn(self, seconds: float) -> None:
        """Keep a mean of the time of tasks in which the last twenty weigh most."""
        seconds = max(seconds, 1e-4)
        self.mean = seconds if self.mean is None else 0.95 * self.mean + 0.05 * seconds

    def back(self, undone: Sequence[_Waiting], *, died: bool) -> Iterator[Outcome]:
        """Take back tasks of a batch that has ended; outcomes of those that are given up."""
        for one in undone:
            one.lost += died
            if one.lost >= ATTEMPTS:
                reason = f"the process died: it took down what ran it, {one.lost} times"
                yield Outcome(one.task, None, reason, 0.0)
            else:
                self.again.append(one)
                self.left += 1


class _Cluster:
    """Batches on a cluster of Dask's."""

    def __init__(
        self,
        client: Client,
        problems: Iterable[str],
        warn: Callable[[str], object],
        ready: tuple[str, ...] = (),
    ) -> None:
        import distributed

        threads_of(client)
        self.client = client
        self.address = client.scheduler.address
        self.outside = tuple(sorted({problem for problem in problems if not files.is_own(problem)}))
        self.code = code_of(self.outside)
        self.modules = modules_of(self.outside)
        self.rules = rules()
        self.warn = warn
        self.ready = ready
        self.name = f"optgap-{os.urandom(8).hex()}"
        self.numbers = itertools.count()
        self.flying: dict[str, tuple[Any, list[_Waiting]]] = {}
        self.completed = distributed.as_completed(with_results=True, raise_errors=False, loop=client.loop)
        self.refused: dict[str, str] = {}
        self.nodes: dict[str, int] = {}
        self.looked: Future[None] | None = None

    def has_room(self) -> bool:
        """Return whether another batch should be on its way."""
        if self.looked is None or (self.looked.done() and time.monotonic() - self.looked_at > 1.0):
            self._look()
        return len(self.flying) < max(1, 2 * self.threads)

    def _look(self) -> None:
        """Have it looked which workers there are, without waiting for a scheduler that may be gone."""
        self.looked_at = time.monotonic()

        async def look() -> None:
            with contextlib.suppress(OSError):
                self.nodes = await self.client.scheduler.ncores()

        self.looked = asyncio.run_coroutine_threadsafe(look(), self.client.loop.asyncio_loop)

    @property
    def threads(self) -> int:
        return sum(self.nodes.values())

    @property
    def others(self) -> bool | None:
        """Whether what runs now asks others; None where nothing runs."""
        return next((batch[0].task.others for _, batch in self.flying.values() if batch), None)

    def submit(self, batch: list[_Waiting]) -> None:
        sent = Batch(
            tuple(one.sent for one in batch), AIM, self.code, self.outside, self.modules, self.rules, self.ready
        )
        # Nodes that have refused are left out while there are others.
        good = [node for node in self.nodes if node not in self.refused] if self.refused else None
        key = f"{self.name}-{next(self.numbers)}"
        future = self.client.submit(
            run_batch, sent, key=key, pure=False, workers=good or None, allow_other_workers=bool(good)
        )
        self.flying[key] = future, batch
        self.completed.add(future)

    def has_ended(self) -> bool:
        """Return whether a batch has ended."""
        if self.client.status not in ("running", "connecting"):
            raise self._gone()
        return bool(self.completed.has_ready())

    def ended(self) -> tuple[list[_Waiting], Report | None]:
        """Return a batch that has ended, and its report: None where it took down the workers that ran it."""
        import distributed

        future, came = next(self.completed)
        _, batch = self.flying.pop(future.key)
        if future.status == "finished":
            future.release()
            if came.refused:
                self._refuses(came)
            return batch, came
        if future.status != "error":
            raise self._gone()
        _, error, _ = came
        if isinstance(error, distributed.KilledWorker):
            return batch, None
        raise StudyError(f"the Dask workers cannot run what they are given: {describe(error)}")

    def _refuses(self, report: Report) -> None:
        if report.node not in self.refused:
            self.refused[report.node] = report.refused
            self.warn(f"the Dask worker {report.node} is left out: {report.refused}")
        if self.nodes and set(self.nodes) <= set(self.refused):
            raise StudyError(f"the Dask worker {report.node} cannot be used: {report.refused}")

    def _gone(self) -> StudyError:
        return StudyError(f"the Dask scheduler {self.address} is gone")

    def release(self) -> None:
        """Let go of what runs: nodes stop what nobody wants."""
        for future, _ in self.flying.values():
            future.release()
