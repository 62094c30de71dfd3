"""Code of the user's runs apart: in a process that nothing else uses, and that can do nothing but answer.

The process is forked from one in which no such code has run.  What it answers is data: fields of numbers
and words, read without running anything.  It is stopped, with whatever it has started, when its time is
up, when it takes too much memory, and when whoever asked is gone.  On Linux it can write only below a
folder of its own, which is gone afterwards, signal nobody outside, and not read the files that hold the
answers (Landlock, where the kernel has it).
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import itertools
import json
import math
import multiprocessing
import os
import resource
import select
import signal
import stat
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Self

import numpy as np

from validation.formatting import printable

__all__ = [
    "CONTEXT",
    "GLANCE",
    "LINUX",
    "Apart",
    "Reply",
    "become_keeper",
    "children",
    "confine",
    "death",
    "descendants",
    "describe",
    "end_family",
    "end_with_parent",
    "family_bytes",
    "forking",
    "hide",
    "plain",
    "remove",
    "silence",
]

# On Linux processes are forked: they start in milliseconds with everything imported, and any function
# reaches them, a lambda or one from a notebook too.  Elsewhere forking is unsafe, so functions must
# be importable there.
LINUX = sys.platform == "linux"
"""Whether processes are forked."""
CONTEXT: Any = multiprocessing.get_context("fork" if LINUX else "spawn")
"""How processes are started: forked on Linux, spawned elsewhere."""
_LIBC: Any = ctypes.CDLL(None) if LINUX else None

LARGEST_ANSWER = 2**31
"""Bytes of an answer; what claims to be longer is not read."""
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
        Bytes that the process, and all that it starts, may take beyond what it has from the start.
    writable : Path, optional
        A folder that it may write to, beside its own.

    Notes
    -----
    A process that has died, or was stopped, is replaced by a fresh one at the next question.  To be
    closed, or used as a context.
    """

    def __init__(
        self, function: Callable[..., dict[str, Any]], *, memory: int | None = None, writable: Path | None = None
    ) -> None:
        self.function = function
        self.memory = memory
        self.writable = writable
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
            # A process that died between questions breaks the pipe; reading finds out how it died.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.questions.send(arguments)
        try:
            content, began = self._read(asked, began + seconds)
            return Reply(content, "", time.monotonic() - began)
        except _NoAnswer as why:
            reason = f"time limit: stopped after {seconds:g} s" if why.late else str(why)
            return Reply(None, reason, time.monotonic() - began)

    def close(self) -> None:
        """Stop the process and all that it has started."""
        if self.process is None:
            return
        _end(self.process)
        self.process = None
        self.questions.close()
        self.answers.close()
        remove(self.scratch)

    def _start(self, first: tuple[Any, ...]) -> None:
        """Start a process that has the first question from the start; a forked one needs no copy of it."""
        theirs, self.questions = CONTEXT.Pipe(duplex=False)
        self.answers, writing = CONTEXT.Pipe(duplex=False)
        self.scratch = tempfile.mkdtemp(prefix="optgap-")
        places = [self.scratch] if self.writable is None else [self.scratch, str(self.writable)]
        arguments = (self.function, first, theirs, writing, places, self.memory, os.getpid())
        self.process = _started(_answer, arguments)
        self.inherited: int | None = None
        theirs.close()
        writing.close()

    def _read(self, asked: float, deadline: float) -> tuple[dict[str, Any], float]:
        """Read the next answer, and when its call began, which was not before it was asked."""
        try:
            # When the call began, which the process says before it runs any code but this module's.
            (began,) = struct.unpack("<d", self._exactly(8, deadline))
            began = min(max(began, asked), time.monotonic()) if began == began else asked
            (size,) = struct.unpack("<Q", self._exactly(8, deadline))
            if size > min(LARGEST_ANSWER, self.memory or LARGEST_ANSWER):
                raise _NoAnswer(f"the answer is too large: {size} bytes")
            return _decode(memoryview(self._exactly(size, deadline))), began
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
        if not LINUX or self.process is None or self.process.pid is None:
            return
        family = [self.process.pid, *descendants(self.process.pid)]
        if len(family) > MOST_PROCESSES:
            raise _NoAnswer(f"too many processes: stopped at {len(family)}")
        if self.memory is not None:
            if self.inherited is None:
                # Copied pages count for each process that shares them.
                self.inherited = _private_bytes(os.getpid())
            taken = sum(max(0, _private_bytes(member) - self.inherited) for member in family) + _size(self.scratch)
            if taken > self.memory:
                raise _NoAnswer(f"memory limit: stopped at {taken / 1e9:.3g} GB")

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


@contextlib.contextmanager
def forking() -> Iterator[None]:
    """Start processes without a warning.

    Python warns of forking while other threads run (those of NumPy's linear algebra and of notebooks); none of
    them holds a lock that the process needs.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


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
    places: list[str],
    memory: int | None,
    parent: int,
) -> None:
    """Body of the process: answer questions until whoever asks is gone; it may write below ``places``."""
    end_with_parent(parent)
    if LINUX:
        os.setsid()  # No terminal, and a process group of its own.
    multiprocessing.current_process().daemon = False  # It may start processes of its own.
    _leave_all_but(questions.fileno(), answers.fileno())
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL if number != signal.SIGINT else signal.SIG_IGN)
    os.environ["TMPDIR"] = tempfile.tempdir = places[0]
    if memory is not None and LINUX:
        # What asks for too much at once gets a MemoryError; what grows is stopped from outside.
        resource.setrlimit(resource.RLIMIT_DATA, (_data_bytes() + memory, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_FSIZE, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if LINUX:
        confine(places)
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


def _decode(message: memoryview) -> dict[str, Any]:
    """Decode a message, whoever wrote it; nothing in it is run, and nothing grows beyond its length.

    Raises
    ------
    ValueError
    """
    try:
        return _read_fields(message)
    except (TypeError, KeyError, AttributeError, OverflowError, RecursionError, struct.error) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None


def _read_fields(message: memoryview) -> dict[str, Any]:
    (size,) = struct.unpack("<Q", message[:8])
    content = json.loads(bytes(message[8 : 8 + size]))
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


# --- what a process may do ----------------------------------------------------------------------

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_CHANGES = sum(1 << bit for bit in (4, 5, 6, 7, 8, 9, 10, 11, 12))
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_SCOPES = 0b11
"""Abstract sockets and signals."""


class _RulesetAttributes(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _BeneathAttributes(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def landlock() -> int:
    """Version of the kernel's Landlock; 0 without."""
    return max(0, _LIBC.syscall(444, None, 0, 1)) if LINUX else 0


def _restrict(handled: int, allowed: Iterable[tuple[str, int]], *, scoped: bool = False) -> None:
    """Deny this process, and all that it starts, what is ``handled``, except beneath the paths that are allowed."""
    version = landlock()
    if not version:
        return
    attributes = _RulesetAttributes(handled, 0, _SCOPES if scoped and version >= 6 else 0)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = _LIBC.syscall(444, ctypes.byref(attributes), size, 0)
    if ruleset < 0:
        return
    for path, rights in allowed:
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        of_files = rights & (_EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE)
        rule = _BeneathAttributes(rights if stat.S_ISDIR(os.fstat(place).st_mode) else of_files, place)
        _LIBC.syscall(445, ruleset, 1, ctypes.byref(rule), 0)
        os.close(place)
    _LIBC.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS, which Landlock asks for.
    _LIBC.syscall(446, ruleset, 0)
    os.close(ruleset)


def confine(places: list[str], *, shared: bool = True) -> None:
    """Write below these folders only, and signal nobody outside; ``shared`` says whether into ``/dev/shm``, too."""
    version = landlock()
    into = _WRITE_FILE | (_TRUNCATE if version >= 3 else 0)
    writing = into | _CHANGES | (_REFER if version >= 2 else 0)
    # Into devices, whose place nothing may take: with a file there, /dev/null answers with what others threw away.
    devices = [("/dev", into), ("/dev/shm", writing)] if shared else [("/dev/null", into), ("/dev/zero", into)]
    beside = [*devices, ("/proc/self", _WRITE_FILE)]
    _restrict(writing, [*((place, writing) for place in places), *beside], scoped=True)


def hide(folder: Path) -> None:
    """Deny this process, and all that it starts, to read the files below a folder."""
    folder = folder.resolve()
    allowed = []
    for inside in (folder, *folder.parents)[:-1]:
        # Where a link leads to is allowed, or not, where that is.
        with contextlib.suppress(OSError):
            beside = [one for one in os.scandir(inside.parent) if not one.is_symlink()]
            allowed += [(one.path, _READ_FILE) for one in beside if one.path != str(inside)]
    _restrict(_READ_FILE, allowed)


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


def _end(process: _Forked | BaseProcess) -> None:
    """Kill a process and all that it started."""
    keeps = LINUX and _is_keeper()
    if LINUX and not keeps and process.pid is not None:
        end_family(process.pid)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join()
    if keeps:
        # What it started has come to this process now, whatever group or session it is in.
        while _has_children():
            end_family(os.getpid())
            _reap()


def _is_keeper() -> bool:
    """Return whether this process inherits what those below it leave behind."""
    kept = ctypes.c_int()
    _LIBC.prctl(37, ctypes.byref(kept))  # PR_GET_CHILD_SUBREAPER
    return bool(kept.value)


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def end_family(pid: int) -> None:
    """Kill what a process has started, whatever group or session it is in."""
    patience = time.monotonic() + 10.0
    while (family := descendants(pid)) and time.monotonic() < patience:
        # Stopped first, so that none starts another meanwhile.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for member in family:
                with contextlib.suppress(OSError):
                    os.kill(member, number)
        if pid == os.getpid():
            _reap()
        time.sleep(0.001)


def _reap() -> None:
    """Take note of children that have ended, so that they are gone."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def descendants(pid: int) -> list[int]:
    """Living processes below one."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        below = children(waiting.pop())
        found += below
        waiting += below
    return found


def children(pid: int) -> list[int]:
    """List the running processes that one has started, those that its threads started among them."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += map(int, _text(f"/proc/{pid}/task/{thread}/children").split())
    return [child for child in found if _text(f"/proc/{child}/stat").rpartition(")")[2][1:2] not in ("Z", "X", "")]


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
