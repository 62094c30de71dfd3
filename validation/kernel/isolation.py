"""Code of the user's runs apart: in a process that nothing else uses, and that can do nothing but answer.

The process is forked from one in which no such code has run.  What it answers is data: fields of numbers
and words, read without running anything.  It is stopped, with whatever it has started, when its time is
up, when it takes too much memory, and when whoever asked is gone.  It is behind the walls of
:mod:`validation.kernel.walls`, and what it has written is gone afterwards.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import io
import itertools
import json
import math
import multiprocessing
import os
import resource
import select
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Self

import numpy as np

from validation.formatting import printable
from validation.kernel.provenance import memory_of_machine
from validation.kernel.walls import LINUX, WallError, confine, enclose, forking, rules

__all__ = [
    "CONTEXT",
    "GLANCE",
    "Apart",
    "Reply",
    "become_keeper",
    "children",
    "death",
    "descendants",
    "describe",
    "end_family",
    "end_with_parent",
    "family_bytes",
    "plain",
    "remove",
    "silence",
]

# On Linux processes are forked: they start in milliseconds with everything imported, and any function
# reaches them, a lambda or one from a notebook too.  Elsewhere forking is unsafe, so functions must
# be importable there.
CONTEXT: Any = multiprocessing.get_context("fork" if LINUX else "spawn")
"""How processes are started: forked on Linux, spawned elsewhere."""
_LIBC: Any = ctypes.CDLL(None) if LINUX else None

LARGEST_ANSWER = 2**29
"""Bytes that reading an answer may take, of whatever memory its process has; one whose own are more than a quarter of
them is not read."""
MOST_PROCESSES = 128
"""Processes that may run at once for one question."""
GLANCE = 0.05
"""Seconds between looks at what a process and those that it started take."""

_MESSAGE_LENGTH = 1000
_MOST_FOLDERS, _MOST_FILES = 100, 1000
"""What of a scratch folder is looked at, while its process runs."""


@dataclass(frozen=True)
class Reply:
    """The reply to a question: its ``content``, or the ``reason`` why there is none.

    ``seconds`` are those between the call of the function and its answer, by the clock of whoever asked.
    """

    content: dict[str, Any] | None
    reason: str
    seconds: float


class Apart:
    """A process for one function of the user's; every question is a call, and the answer a dictionary.

    Parameters
    ----------
    function : callable
        Returns a dictionary from names to arrays, sequences of arrays, or what JSON can say.
    memory : int, optional
        Bytes that the process, and all that it starts, may take beyond what it has from the start; by default what
        the rules say (:mod:`validation.kernel.walls`), else half of the machine's.
    own : bool
        Whether the function is the library's and calls nothing of the user's, unless apart again: it needs no walls,
        and a solver may need what is behind them.

    Notes
    -----
    A process that has died, or was stopped, is replaced by a fresh one at the next question; between questions it is
    suspended, with all that it has started.  To be closed, or used as a context.
    """

    def __init__(
        self,
        function: Callable[..., dict[str, Any]],
        *,
        memory: int | None = None,
        own: bool = False,
    ) -> None:
        self.function = function
        self.memory = memory if own else memory or rules().memory or memory_of_machine() // 2
        self.own = own
        self.process: _Forked | BaseProcess | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, *arguments: Any, seconds: float) -> Reply:
        """Ask for ``function(*arguments)``; return the answer, or why there is none after at most ``seconds``."""
        fresh = self.process is None
        # Before the process may begin: this one may have to wait for a core where that one runs already.
        asked = time.monotonic()
        if fresh:
            self._start(arguments)
        began = time.monotonic()
        if not fresh:
            self._signal(signal.SIGCONT)
            # A process that died between questions breaks the pipe; reading finds out how it died.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.questions.send(arguments)
        try:
            content, said = self._read(began + seconds)
            now = time.monotonic()
            # Of the first question alone the process says when its call began before any code but this module's runs.
            if fresh and said == said:
                began = min(max(said, asked), now)
            self._signal(signal.SIGSTOP)
            return Reply(content, "", now - began)
        except _NoAnswer as why:
            reason = f"time limit: stopped after {seconds:g} s" if why.late else str(why)
            return Reply(None, reason, time.monotonic() - began)

    def close(self) -> None:
        """Stop the process and all that it has started."""
        if self.process is None:
            return
        _LIVE.discard(self)
        self._end()
        self.process = None
        self.questions.close()
        self.answers.close()
        remove(self.scratch)

    def _start(self, first: tuple[Any, ...]) -> None:
        """Start a process that has the first question from the start; a forked one needs no copy of it."""
        theirs, self.questions = CONTEXT.Pipe(duplex=False)
        self.answers, writing = CONTEXT.Pipe(duplex=False)
        self.scratch = tempfile.mkdtemp(prefix="optgap-")
        arguments = (self.function, first, theirs, writing, self.scratch, self.memory, not self.own)
        # Whoever asks keeps what the process leaves behind, or somebody does who is there for nothing else.
        self.kept_apart = LINUX and not self.own and not _is_keeper()
        self.process = _started(_keep if self.kept_apart else _answer, (*arguments, os.getpid()))
        self.inherited: int | None = None
        theirs.close()
        writing.close()
        _LIVE.add(self)

    def _read(self, deadline: float) -> tuple[dict[str, Any], float]:
        """Read the next answer, and what the process says of when its call began."""
        try:
            (began,) = struct.unpack("<d", self._exactly(8, deadline))
            (size,) = struct.unpack("<Q", self._exactly(8, deadline))
            most = min(LARGEST_ANSWER, self.memory or LARGEST_ANSWER)
            # It is copied here, more than once.
            if size > most // 4:
                raise _NoAnswer(f"the answer is too large: {size} bytes")
            return _decode(memoryview(self._exactly(size, deadline)), most), began
        except BaseException as error:
            self.close()
            if isinstance(error, _NoAnswer) or not isinstance(error, Exception):
                raise
            raise _NoAnswer(f"the answer cannot be read: {describe(error)}") from None

    def _exactly(self, size: int, deadline: float) -> bytearray:
        """So many bytes of the answer."""
        received = bytearray()
        poll = select.poll()
        poll.register(self.answers, select.POLLIN)
        while len(received) < size:
            self._wait(poll, deadline)
            chunk = os.read(self.answers.fileno(), min(1 << 20, size - len(received))) if poll.poll(0) else b""
            if not chunk and self._has_ended():
                raise _NoAnswer(f"the process died: {death(self._exitcode())}")
            received += chunk
        return received

    def _wait(self, poll: Any, deadline: float) -> None:
        """Wait for bytes, or for the end of the process, its time or its memory."""
        while True:
            # The clock is read before the pipe is: what came while this process was suspended is heard.
            left = deadline - time.monotonic()
            if poll.poll(max(0.0, min(left, GLANCE)) * 1000) or self._has_ended():
                return
            if left <= 0:
                raise _NoAnswer("", late=True)
            self._look()

    def _look(self) -> None:
        """Stop what has grown too large."""
        if not LINUX or self.process is None:
            return
        family = self._family()
        if len(family) > MOST_PROCESSES:
            raise _NoAnswer(f"too many processes: stopped at {len(family)}")
        if self.memory is not None:
            if self.inherited is None:
                # Copied pages count for each process that shares them.
                self.inherited = _private_bytes(os.getpid())
            taken = sum(max(0, _private_bytes(member) - self.inherited) for member in family) + _size(self.scratch)
            if taken > self.memory:
                raise _NoAnswer(f"memory limit: stopped at {taken / 1e9:.3g} GB")

    def _family(self) -> list[int]:
        """Return the process and all that it has started, what nobody is the parent of included."""
        assert self.process is not None
        assert self.process.pid is not None
        if self.own:
            return [self.process.pid, *descendants(self.process.pid)]
        if self.kept_apart:
            return descendants(self.process.pid)
        return descendants(os.getpid(), self._others())

    def _others(self) -> set[int]:
        """Return processes of others that this one keeps, too."""
        return {one.process.pid for one in _LIVE if one is not self and one.process and one.process.pid}

    def _signal(self, number: int) -> None:
        """Suspend the process and all that it has started, or let them go on."""
        if LINUX and not self.own:
            _send(number, self._family())

    def _end(self) -> None:
        """Kill the process and all that it has started, whatever group or session that is in."""
        process = self.process
        assert process is not None
        kept_here = LINUX and not self.own and not self.kept_apart
        if LINUX and not kept_here and process.pid is not None:
            end_family(process.pid)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.join()
        if kept_here:
            # What it started has come to this process now.
            others = self._others()
            while _has_children(others):
                end_family(os.getpid(), others)
                _reap(others)

    def _has_ended(self) -> bool:
        """Return whether the process has ended; closing a pipe comes a moment before it."""
        if not self._hung_up():
            return self._exitcode() is not None
        patience = time.monotonic() + 1.0
        while self._exitcode() is None and time.monotonic() < patience:
            time.sleep(0.001)
        return True

    def _hung_up(self) -> bool:
        poll = select.poll()
        poll.register(self.answers, 0)
        return bool(poll.poll(0))

    def _exitcode(self) -> int | None:
        return None if self.process is None else self.process.exitcode


_LIVE: set[Apart] = set()
"""Those with a process, of this process."""


class _NoAnswer(Exception):  # noqa: N818, it is the reason why there is no answer
    def __init__(self, reason: str, *, late: bool = False) -> None:
        super().__init__(reason)
        self.late = late


# --- the process itself -------------------------------------------------------------------------


class _Forked:
    """A forked process, with the few things of ``multiprocessing``'s own that are needed here.

    That one's start and its bookkeeping touch so much memory, all of it copied by the touch, that they cost
    half as much as the fork.
    """

    def __init__(self, target: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self._code: int | None = None
        self.pid = os.fork()
        if not self.pid:
            try:
                target(*arguments)
            finally:
                os._exit(1)

    @property
    def exitcode(self) -> int | None:
        self._wait(os.WNOHANG)
        return self._code

    def kill(self) -> None:
        if self.exitcode is None:
            os.kill(self.pid, signal.SIGKILL)

    def join(self) -> None:
        self._wait(0)

    def _wait(self, options: int) -> None:
        if self._code is None:
            # Somebody else may have waited for it: a handler of the user's, in a notebook.
            with contextlib.suppress(ChildProcessError):
                pid, status = os.waitpid(self.pid, options)
                self._code = os.waitstatus_to_exitcode(status) if pid else None


def _started(target: Callable[..., None], arguments: tuple[Any, ...]) -> _Forked | BaseProcess:
    """Start a process that runs a function: a copy of this one where that is safe."""
    with forking():
        if LINUX:
            return _Forked(target, arguments)
        process: BaseProcess = CONTEXT.Process(target=target, args=arguments, daemon=True)
        process.start()
        return process


def remove(folder: str) -> None:
    """Remove a scratch folder, whatever its process has made of it: closed to all, or too deep for a path."""
    try:
        os.rmdir(folder)
    except FileNotFoundError:
        pass
    except OSError:
        with contextlib.suppress(OSError):
            os.chmod(folder, 0o700)
            _empty(folder)
            os.rmdir(folder)


def _empty(folder: str) -> None:
    """Remove what is in a folder, going down and up one floor at a time, and following no link."""
    names: list[str] = []
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    while True:
        full = _cleared(here)
        if full is not None:
            names.append(full)
            following = os.open(full, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
        elif names:
            following = os.open("..", os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
            os.rmdir(names.pop(), dir_fd=following)
        else:
            os.close(here)
            return
        os.close(here)
        here = following


def _cleared(folder: int) -> str | None:
    """Remove from an open folder what can be at once; the name of the first folder that is not empty, if any."""
    while inside := _first(folder):
        for one in inside:
            if not one.is_dir(follow_symlinks=False):
                os.unlink(one.name, dir_fd=folder)
                continue
            os.chmod(one.name, 0o700, dir_fd=folder)
            try:
                os.rmdir(one.name, dir_fd=folder)
            except OSError:
                return one.name
    return None


def _first(folder: int) -> list[os.DirEntry[str]]:
    """List some entries of an open folder: whoever comes back to it must not look through thousands each time."""
    with os.scandir(folder) as found:
        return list(itertools.islice(found, 100))


def _answer(
    function: Callable[..., dict[str, Any]],
    arguments: tuple[Any, ...],
    questions: Connection,
    answers: Connection,
    place: str,
    memory: int | None,
    walled: bool,
    parent: int,
) -> None:
    """Body of the process: answer questions until whoever asks is gone; behind walls it writes below ``place``."""
    end_with_parent(parent)
    _LIVE.clear()
    if LINUX:
        os.setsid()  # No terminal, and a process group of its own.
    multiprocessing.current_process().daemon = False  # It may start processes of its own.
    _leave_all_but(questions.fileno(), answers.fileno())
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL if number != signal.SIGINT else signal.SIG_IGN)
    os.environ["TMPDIR"] = tempfile.tempdir = place
    if memory is not None and LINUX:
        # What asks for too much at once gets a MemoryError; what grows is stopped from outside.
        resource.setrlimit(resource.RLIMIT_DATA, (_data_bytes() + memory, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_FSIZE, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if LINUX and walled:
        try:
            confine([place])
        except WallError as error:
            function = functools.partial(_refuse, error)
    me = os.getpid()
    while True:
        os.write(answers.fileno(), struct.pack("<d", time.monotonic()))
        try:
            message = _encode(function(*arguments))
        except BaseException as error:
            message = _encode({"error": describe(error)})
        if os.getpid() != me:
            os._exit(1)  # A copy that the user's code made has nothing to say here.
        with open(answers.fileno(), "wb", closefd=False) as file:
            file.write(struct.pack("<Q", len(message)))
            file.write(message)
        try:
            arguments = questions.recv()
        except EOFError:
            os._exit(0)


def _refuse(error: WallError, *_: Any) -> dict[str, Any]:
    """Run nothing where a wall is missing."""
    raise error


def _keep(*arguments: Any) -> None:
    """Body of a process that keeps another one, and ends as that does."""
    *told, parent = arguments
    become_keeper(parent)
    os.setsid()
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        enclose()
    except WallError as error:
        told[0] = functools.partial(_refuse, error)
    below = _Forked(_answer, (*told, os.getpid()))
    _leave_all_but()
    code = None
    while code is None:
        # Also those that it has left behind, and that have come to this process.
        pid, status = os.wait()
        code = os.waitstatus_to_exitcode(status) if pid == below.pid else None
    end_family(os.getpid())
    if code >= 0:
        os._exit(code)
    signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
    os.kill(os.getpid(), -code)


def silence(*numbers: int) -> None:
    """Let these of standard input, output and error (0, 1, 2) lead nowhere, be it from Python or a library in C."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in numbers:
        os.dup2(nothing, number)
        name = ("stdin", "stdout", "stderr")[number]
        stream = getattr(sys, name)
        # What already stands for the number stays, because a new one takes a while; a notebook has others there.
        if type(stream) is not io.TextIOWrapper or stream.closed or _number(stream) != number:
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115, it stays open
    os.close(nothing)


def _number(stream: io.TextIOWrapper) -> int | None:
    """Return the number of a stream; None where it leads into memory."""
    try:
        return stream.fileno()
    except OSError:
        return None


def _leave_all_but(*kept: int) -> None:
    """Close what was open where the process comes from: logs, locks, pipes of others; and be silent."""
    silence(0, 1, 2)
    first = 3
    for number in sorted(kept):
        os.closerange(first, number)
        first = number + 1
    os.closerange(first, resource.getrlimit(resource.RLIMIT_NOFILE)[0] if not LINUX else _last_file() + 1)


def _last_file() -> int:
    return max(map(int, os.listdir("/proc/self/fd")), default=3)


def describe(error: BaseException) -> str:
    """Describe an exception in one line: its type, its message, and where it was raised."""
    where = ""
    # Without a look into the file, which may be anything, such as one without end.
    for frame, line in traceback.walk_tb(error.__traceback__):
        where = f"({os.path.basename(frame.f_code.co_filename)}, line {line})"
    try:
        message = plain(str(error))
    except BaseException:  # Code of the user's.
        message = "its message cannot be printed"
    return f"{plain(type(error).__name__)}{': ' if message else ''}{message} {plain(where)}".rstrip()


def plain(text: str, length: int = _MESSAGE_LENGTH) -> str:
    """Put somebody's words in one line of at most so many letters, with nothing that a terminal would obey."""
    words = " ".join(text[: 2 * length].split())
    cut = words[:length] + ("..." if len(words) > length or len(text) > 2 * length else "")
    return printable(cut)


def death(code: int | None) -> str:
    """Say how a process ended, from its exit code."""
    if code is None:
        return "it closed its pipe"
    if code >= 0:
        return f"it exited with code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:  # Real-time signals have no names.
        return f"killed by signal {-code}"


# --- answers as bytes ---------------------------------------------------------------------------

_THING = 100
"""Bytes that a thing of an answer takes, beside its letters."""


def _encode(content: dict[str, Any]) -> bytes:
    """Names, kinds and shapes as JSON, then the arrays' own bytes."""
    arrays: list[bytes] = []

    def described(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            plain = np.ascontiguousarray(value).view(np.ndarray)
            if plain.dtype.kind not in "biufU":
                raise TypeError(f"an array of {plain.dtype} cannot be sent")
            arrays.append(plain.tobytes())
            return {"dtype": plain.dtype.str, "shape": list(np.shape(value))}
        if isinstance(value, (tuple, list)) and any(isinstance(one, np.ndarray) for one in value):
            return {"list": [described(np.asarray(one)) for one in value]}
        return {"plain": value}

    head = json.dumps({name: described(value) for name, value in content.items()}).encode()
    return b"".join([struct.pack("<Q", len(head)), head, *arrays])


def _decode(message: memoryview, most: int) -> dict[str, Any]:
    """Decode a message, whoever wrote it; nothing in it is run, and what is made of it takes so many bytes at most.

    Raises
    ------
    ValueError
    """
    try:
        return _read_fields(message, most)
    except (TypeError, KeyError, AttributeError, OverflowError, RecursionError, struct.error) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None


def _read_fields(message: memoryview, most: int) -> dict[str, Any]:
    (size,) = struct.unpack("<Q", message[:8])
    head = bytes(message[8 : 8 + size])
    # An empty list is two letters, and takes thirty times as much; each thing in it has one of these marks.
    things = sum(map(head.count, (b",", b"[", b"{", b":")))
    if _THING * things + 4 * len(head) > most:
        raise ValueError(f"{things} lists, numbers and words")
    content = json.loads(head)
    rest = message[8 + size :]

    def field(value: Any) -> Any:
        nonlocal rest
        if "plain" in value:
            return value["plain"]
        if "list" in value:
            return tuple(field(one) for one in value["list"])
        dtype, shape = np.dtype(value["dtype"]), [int(length) for length in value["shape"]]
        count = math.prod(shape)
        if dtype.kind not in "biufU" or min(shape, default=0) < 0 or count * dtype.itemsize > len(rest):
            raise ValueError("the bytes do not fit what is said of them")
        array = np.frombuffer(rest, dtype, count).reshape(shape).copy()
        rest = rest[count * dtype.itemsize :]
        return array

    if not isinstance(content, dict):
        raise ValueError("it has no names")
    return {name: field(value) for name, value in content.items()}


# --- what ends with a process -------------------------------------------------------------------


def become_keeper(parent: int) -> None:
    """Let this process keep those of the user's: it inherits what they leave behind, and ends it when it ends."""
    multiprocessing.current_process().daemon = False
    if not LINUX:
        return
    _LIBC.prctl(36, 1)  # PR_SET_CHILD_SUBREAPER

    def leave(*_: object) -> None:
        end_family(os.getpid())
        os._exit(143)

    signal.signal(signal.SIGTERM, leave)
    end_with_parent(parent, signal.SIGTERM)


def end_with_parent(parent: int, number: int = signal.SIGKILL) -> None:
    """Have the kernel end this process with its parent, also one that is in an endless loop."""
    if LINUX:
        _LIBC.prctl(1, int(number))  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(143)


def _is_keeper() -> bool:
    """Return whether this process inherits what those below it leave behind."""
    kept = ctypes.c_int()
    _LIBC.prctl(37, ctypes.byref(kept))  # PR_GET_CHILD_SUBREAPER
    return bool(kept.value)


def _has_children(others: Collection[int]) -> bool:
    if others:
        return bool(set(_started_by(os.getpid())) - set(others))
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def end_family(pid: int, others: Collection[int] = ()) -> None:
    """Kill what a process has started, whatever group or session it is in, but for ``others`` and what is theirs."""
    patience = time.monotonic() + 10.0
    while (family := descendants(pid, others)) and time.monotonic() < patience:
        # Stopped first, so that none starts another meanwhile.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            _send(number, family)
        if pid == os.getpid():
            _reap(others)
        time.sleep(0.001)


def _send(number: int, family: Iterable[int]) -> None:
    for member in family:
        with contextlib.suppress(OSError):
            os.kill(member, number)


def _reap(others: Collection[int]) -> None:
    """Take note of children that have ended, so that they are gone."""
    for child in set(_started_by(os.getpid())) - set(others):
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, os.WNOHANG)


def descendants(pid: int, others: Collection[int] = ()) -> list[int]:
    """Living processes below one, but for ``others`` and what is below them."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        below = [child for child in children(waiting.pop()) if child not in others]
        found += below
        waiting += below
    return found


def children(pid: int) -> list[int]:
    """List the running processes that one has started, those that its threads started among them."""
    return [
        child
        for child in _started_by(pid)
        if _text(f"/proc/{child}/stat").rpartition(")")[2][1:2] not in ("Z", "X", "")
    ]


def _started_by(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += map(int, _text(f"/proc/{pid}/task/{thread}/children").split())
    return found


def _text(path: str) -> str:
    """Content of one of the kernel's files; nothing where it is gone."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    parts = []
    with contextlib.suppress(OSError):
        while part := os.read(number, 1 << 16):
            parts.append(part)
    os.close(number)
    return b"".join(parts).decode(errors="replace")  # A process may have any name.


def family_bytes(pid: int) -> int:
    """Memory that a process, and all that it has started, have for themselves; 0 where nobody can tell."""
    return sum(map(_private_bytes, (pid, *descendants(pid)))) if LINUX else 0


def _private_bytes(pid: int) -> int:
    """Memory that a process has beside the files that it reads, with what it shares with those it started."""
    lines = (line.split() for line in _text(f"/proc/{pid}/status").splitlines())
    return sum(1024 * int(line[1]) for line in lines if line[:1] in (["RssAnon:"], ["RssShmem:"]))


def _size(folder: str) -> int:
    """Bytes of the files in a folder; of the first so many, because looking at them must not take for ever."""
    total = 0
    for place, _, names in itertools.islice(os.walk(folder), _MOST_FOLDERS):
        for name in names[:_MOST_FILES]:
            with contextlib.suppress(OSError):
                total += 512 * os.lstat(os.path.join(place, name)).st_blocks
    return total


def _data_bytes() -> int:
    """Return the bytes that count against the limit of data so far."""
    line = next(line for line in _text("/proc/self/status").splitlines() if line.startswith("VmData:"))
    return int(line.split()[1]) * 1024
