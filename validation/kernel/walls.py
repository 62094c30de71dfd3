"""Walls around code of others: what its processes may not do, and which of them this machine can build.

Each process in which such code runs goes behind all of them before it does (:mod:`validation.kernel.isolation`): it
writes below a folder of its own, signals nobody outside, reads neither what a study keeps from it nor disks and
terminals (Landlock); it asks the kernel for nothing that reaches other processes or outlasts its own (a filter of
system calls, seccomp); and as root it has no more rights than a user who may read everything.  A wall that the kernel
has, and that cannot be built all the same, is an error (:class:`WallError`); one that it has not is told
(:func:`standing`).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import itertools
import os
import platform
import socket
import stat
import struct
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

__all__ = [
    "LINUX",
    "WALLS",
    "Rules",
    "WallError",
    "confine",
    "enclose",
    "filters",
    "forking",
    "landlock",
    "lost",
    "ruled",
    "rules",
    "standing",
]

LINUX = sys.platform == "linux"
"""Whether there are walls, and processes are forked."""
_LIBC: Any = ctypes.CDLL(None, use_errno=True) if LINUX else None

WALLS = {
    "files": (
        "writes below a folder of its own only",
        "Linux 5.13 (Landlock)",
        "change and remove all that its user may, the study and the library among them",
    ),
    "secrets": (
        "reads no results of the study, no disk and no terminal",
        "Linux 5.13 (Landlock)",
        "read the plans of other algorithms, what is typed, and as root the disk",
    ),
    "signals": (
        "signals no process outside",
        "Linux 6.12 (Landlock)",
        "end the study, and other processes of its user",
    ),
    "calls": (
        "leaves nothing in the kernel, nor changes what others may take",
        "Linux (seccomp) on x86-64 or ARM64",
        "keep what it knows in queues, keys and flags for the next question, and hoard memory that is nobody's",
    ),
    "network": (
        "has no sockets, of the network or of this machine",
        "Linux (seccomp) on x86-64 or ARM64",
        "ask others, and have services of this machine run programs for it",
    ),
    "rights": ("has no rights of root, but to files", "Linux", "do as root what root may"),
    "limits": (
        "is stopped, with all that it starts, when it has answered or takes too much",
        "Linux",
        "leave processes behind that go on, and take all memory",
    ),
}
"""Walls: what a heuristic then does, or does not, what that takes, and what it can do where the wall is missing."""


class WallError(OSError):
    """The kernel refuses a wall that it has."""


@dataclass(frozen=True)
class Rules:
    """What the walls of the processes that are started from here leave open, and what not.

    Attributes
    ----------
    hidden : tuple of Path
        Files and folders that are not to be read.
    network : bool
        Whether there are sockets.
    strict : bool
        Whether nothing at all may outlast a process, so that ``multiprocessing`` has no locks and queues.
    memory : int, optional
        Bytes that a process may take of which nothing else is said.
    programs : bool
        Whether a process that is strictly kept may start programs.
    """

    hidden: tuple[Path, ...] = ()
    network: bool = False
    strict: bool = False
    memory: int | None = None
    programs: bool = True


_NO_RULES = Rules()
_RULES: ContextVar[Rules] = ContextVar("rules", default=_NO_RULES)


def rules() -> Rules:
    """Return the rules of processes that are started now."""
    return _RULES.get()


@contextlib.contextmanager
def ruled(found: Rules | None = None, **changes: Any) -> Iterator[None]:
    """Change rules for what is started within; forked processes have those of where they were forked."""
    before = _RULES.set(replace(found or rules(), **changes))
    try:
        yield
    finally:
        _RULES.reset(before)


def enclose() -> None:
    """Put this process, and all that it starts, behind the walls that do not depend on who is asked.

    Raises
    ------
    WallError
        When the kernel refuses one that it has.
    """
    asked = rules()
    _hide(asked)
    _drop_rights()
    _filter(asked.network)


def confine(places: list[str]) -> None:
    """Let this process, and all that it starts, write below these folders only, and signal nobody outside.

    Raises
    ------
    WallError
        When the kernel refuses a wall that it has.
    """
    asked = rules()
    version = landlock()
    into = _WRITE_FILE | (_TRUNCATE if version >= 3 else 0)
    writing = into | _CHANGES | (_REFER if version >= 2 else 0)
    # Into devices, whose place nothing may take: with a file there, /dev/null answers with what others threw away.
    devices = [(one, into) for one in _DEVICES[:2]] if asked.strict else [("/dev", into), (_SHARED, writing)]
    allowed = [*((place, writing) for place in places), *devices, ("/proc/self", _WRITE_FILE)]
    # Nodes of devices are made nowhere: as root, one would be the disk.
    handled = writing | _MAKE_CHAR | _MAKE_BLOCK
    _restrict(handled, allowed, net=0 if asked.network else _TCP, scoped=_SCOPES)
    if asked.strict:
        _filter(asked.network, strict=True, programs=asked.programs)


class _Forks:
    """Who may fork: one thread at a time, and in a process that has been forked anyone."""

    one = threading.Lock()

    @classmethod
    def begin(cls) -> None:
        cls.one = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Forks.begin)


@contextlib.contextmanager
def forking() -> Iterator[None]:
    """Start processes without a warning, one thread after the other.

    Python warns of forking while other threads run (those of NumPy's linear algebra and of notebooks); none of
    them holds a lock that the process needs.  Two must not fork at once: what is warned of is the whole process's, and
    the locks of files refuse a fork beside another one.
    """
    with _Forks.one, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise WallError(number, f"the kernel refuses {what}: {os.strerror(number)}")
    return result


# --- files and signals --------------------------------------------------------------------------

_EXECUTE, _WRITE_FILE, _READ_FILE = 1 << 0, 1 << 1, 1 << 2
_REMOVE_DIR, _REMOVE_FILE, _MAKE_CHAR, _MAKE_DIR, _MAKE_REG, _MAKE_SOCK, _MAKE_FIFO, _MAKE_BLOCK, _MAKE_SYM = (
    1 << bit for bit in range(4, 13)
)
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_CHANGES = _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _MAKE_SOCK | _MAKE_FIFO | _MAKE_SYM
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_TCP = 0b11
"""Binding and connecting, which the filter of calls refuses where there is one."""
_SCOPES = 0b11
"""Abstract sockets and signals."""

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/dri", "/dev/kfd")
"""Devices that are nobody's, and those that compute; NVIDIA's go by many names."""
_SHARED = "/dev/shm"
"""Of ``multiprocessing``'s locks and queues."""


class _RulesetAttributes(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _BeneathAttributes(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def landlock() -> int:
    """Version of the kernel's Landlock; 0 without."""
    return max(0, _LIBC.syscall(444, None, 0, 1)) if LINUX else 0


def _restrict(handled: int, allowed: Iterable[tuple[str, int]], *, net: int = 0, scoped: int = 0) -> None:
    """Deny this process, and all that it starts, what is ``handled``, except beneath the paths that are allowed."""
    version = landlock()
    if not version:
        return
    attributes = _RulesetAttributes(handled, net if version >= 4 else 0, scoped if version >= 6 else 0)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = _checked(_LIBC.syscall(444, ctypes.byref(attributes), size, 0), "Landlock")
    try:
        for path, rights in allowed:
            try:
                place = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                continue
            try:
                mine = rights if stat.S_ISDIR(os.fstat(place).st_mode) else rights & _OF_FILES
                rule = _BeneathAttributes(mine, place)
                _checked(_LIBC.syscall(445, ruleset, 1, ctypes.byref(rule), 0), f"Landlock's rule for {path}")
            finally:
                os.close(place)
        _checked(_LIBC.prctl(38, 1, 0, 0, 0), "new privileges")  # PR_SET_NO_NEW_PRIVS
        _checked(_LIBC.syscall(446, ruleset, 0), "another domain of Landlock")
    finally:
        os.close(ruleset)


def _hide(asked: Rules) -> None:
    """Deny this process, and all that it starts, what is hidden, and devices but for a few."""
    use = _READ_FILE | _WRITE_FILE
    with_devices = use | (_IOCTL_DEV if landlock() >= 5 else 0)
    hidden = {os.path.realpath(one) for one in asked.hidden} | {"/dev"}
    devices = [*_DEVICES, *(f"/dev/{one}" for one in os.listdir("/dev") if one.startswith("nvidia")), _SHARED]
    allowed = [*((one, use) for one in _beside(hidden)), *((one, with_devices) for one in devices)]
    _restrict(with_devices, allowed)


def _beside(hidden: Collection[str]) -> Iterator[str]:
    """Yield the paths that hold everything but what is hidden."""
    above = {str(folder) for one in hidden for folder in Path(one).parents}
    waiting = ["/"]
    while waiting:
        with contextlib.suppress(OSError):
            for one in os.scandir(waiting.pop()):
                # Where a link leads to is allowed, or not, where that is.
                if one.path in hidden or one.is_symlink():
                    continue
                if one.path in above:
                    waiting.append(one.path)
                else:
                    yield one.path


# --- rights -------------------------------------------------------------------------------------

_KEPT_RIGHTS = 0b110
"""To read and write files of others (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH), so that root finds what root has."""


class _RightsHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


def _drop_rights() -> None:
    """Keep of the rights of root those to files only; what other walls say of these holds."""
    header, rights = _RightsHeader(0x20080522, 0), (ctypes.c_uint32 * 6)()
    _checked(_LIBC.capget(ctypes.byref(header), rights), "a look at the rights of this process")
    kept = (ctypes.c_uint32 * 6)(rights[0] & _KEPT_RIGHTS, rights[1] & _KEPT_RIGHTS)
    if bytes(kept) != bytes(rights):
        _checked(_LIBC.capset(ctypes.byref(header), kept), "to give up rights")


# --- system calls -------------------------------------------------------------------------------

_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""The kernel's number of each, and the column of the tables below."""

_Numbers = tuple[tuple[int | None, int | None], ...]

_REFUSED: _Numbers = (
    *((29, 194), (30, 196), (31, 195)),  # shmget, shmat, shmctl
    *((64, 190), (65, 193), (66, 191), (220, 192)),  # semget, semop, semctl, semtimedop
    *((68, 186), (69, 189), (70, 188), (71, 187)),  # msgget, msgsnd, msgrcv, msgctl
    *((240, 180), (241, 181), (242, 182), (243, 183), (244, 184), (245, 185)),  # mq_open to mq_getsetattr
    *((248, 217), (249, 218), (250, 219)),  # add_key, request_key, keyctl
    *((319, 279), (447, 447)),  # memfd_create, memfd_secret: memory that is nobody's
    *((425, 425), (426, 426), (427, 427), (251, 30)),  # io_uring, which makes sockets too, and ioprio_set
    *((101, 117), (310, 270), (311, 271), (438, 438), (440, 440), (312, 272)),  # ptrace and its like
    *((298, 241), (321, 280), (323, 282), (304, 265)),  # perf_event_open, bpf, userfaultfd, open_by_handle_at
    *((463, 463), (466, 466), (469, 469)),  # setxattrat, removexattrat, file_setattr
)
"""System calls: their numbers on either architecture."""

_SOCKET: _Numbers = ((41, 198),)

_PROGRAMS: _Numbers = ((59, 221), (322, 281))  # execve, execveat

_IN_STRICTNESS: _Numbers = (
    *((90, None), (91, 52), (268, 53), (452, 452)),  # chmod, fchmod, fchmodat, fchmodat2
    *((92, None), (93, 55), (94, None), (260, 54)),  # chown, fchown, lchown, fchownat
    *((132, None), (235, None), (261, None), (280, 88)),  # utime, utimes, futimesat, utimensat
    *((188, 5), (189, 6), (190, 7)),  # setxattr, lsetxattr, fsetxattr
    *((197, 14), (198, 15), (199, 16)),  # removexattr, lremovexattr, fremovexattr
)
"""What else outlasts a process where its user owns a file."""

_OF_ITSELF = (
    ((302, 261), (0,)),  # prlimit64
    ((203, 122), (0,)),  # sched_setaffinity
    ((144, 119), (0,)),  # sched_setscheduler
    ((142, 118), (0,)),  # sched_setparam
    ((314, 274), (0,)),  # sched_setattr
    ((141, 140), (0, 1)),  # setpriority
)
"""Those that a process may make about itself, and the arguments that are 0 then."""

_WHAT_IT_SAYS = (
    # ioctl: TIOCSTI, TIOCLINUX, TIOCCONS; flags, versions, attributes, keys, verity and policies of files.
    ((16, 29), (0x5412, 0x541C, 0x541D)),
    ((16, 29), (0x40086602, 0x40046602, 0x40087602, 0x40047602, 0x401C5820)),
    ((16, 29), (0xC0506617, 0xC0406618, 0x40806685, 0x800C6613)),
    ((72, 25), (1036, 1038)),  # fcntl: F_SET_RW_HINT, F_SET_FILE_RW_HINT
)
"""Those whose second argument must not be one of some."""

_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


@cache
def filters() -> bool:
    """Return whether the kernel has a filter of system calls, for a processor whose calls are known here."""
    if not LINUX or platform.machine() not in _ARCHITECTURES or sys.maxsize < 2**32:
        return False
    action = ctypes.c_uint32(_REFUSE & 0xFFFF0000)
    number = (317, 277)[_ARCHITECTURES[platform.machine()][1]]
    return bool(_LIBC.syscall(number, 2, 0, ctypes.byref(action)) == 0)  # SECCOMP_GET_ACTION_AVAIL


def _filter(network: bool, *, strict: bool = False, programs: bool = True) -> None:
    """Have the kernel refuse calls to this process, and to all that it starts."""
    if not filters():
        return
    code = _program(network, strict, programs)
    program = _Program(len(code) // 8, code)
    _checked(_LIBC.prctl(38, 1, 0, 0, 0), "new privileges")  # PR_SET_NO_NEW_PRIVS, which the filter asks for.
    # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
    _checked(_LIBC.prctl(22, 2, ctypes.byref(program), 0, 0), "a filter of system calls")


@cache
def _program(network: bool, strict: bool, programs: bool) -> bytes:
    """Make a program of the kernel's packet filter: instructions of code, jump if true, jump if false, and operand."""
    architecture, column = _ARCHITECTURES[platform.machine()]
    steps = [
        (_LOAD, 0, 0, 4),  # The architecture: programs for another one have other numbers.
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _REFUSE),
        (_LOAD, 0, 0, 0),  # The number of the call; beyond 2**30 it is one of x86's own third table.
        (_AT_LEAST, 0, 1, 1 << 30),
        (_RETURN, 0, 0, _REFUSE),
    ]

    def when(numbers: tuple[int | None, int | None], body: list[tuple[int, int, int, int]]) -> None:
        number = numbers[column]
        if number is not None:
            steps.extend([(_EQUAL, 0, len(body), number), *body])

    refused = (*(() if network else _SOCKET), *(_IN_STRICTNESS if strict else ()), *(() if programs else _PROGRAMS))
    for numbers in (*_REFUSED, *refused):
        when(numbers, [(_RETURN, 0, 0, _REFUSE)])
    for numbers, arguments in _OF_ITSELF:
        looks = [((_LOAD, 0, 0, 16 + 8 * one), (_EQUAL, 1, 0, 0), (_RETURN, 0, 0, _REFUSE)) for one in arguments]
        when(numbers, [*itertools.chain(*looks), (_RETURN, 0, 0, _ALLOW)])
    for numbers, words in _WHAT_IT_SAYS:
        says = [((_EQUAL, 0, 1, word), (_RETURN, 0, 0, _REFUSE)) for word in words]
        when(numbers, [(_LOAD, 0, 0, 24), *itertools.chain(*says), (_LOAD, 0, 0, 0)])
    steps.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("HBBI", *step) for step in steps)


# --- which of them stand ------------------------------------------------------------------------


def standing() -> dict[str, bool]:
    """Try the walls in a process of its own, under the rules of now: a wall counts once it has stood."""
    if not LINUX:
        return dict.fromkeys(WALLS, False)
    with tempfile.NamedTemporaryFile() as file, tempfile.TemporaryDirectory() as own:
        reading, writing = os.pipe()
        parent = os.getpid()
        with forking():
            child = os.fork()
        if not child:
            try:
                os.write(writing, bytes(_tried(own, file.name, parent)))
            finally:
                os._exit(0)
        os.close(writing)
        with open(reading, "rb") as answer:
            said = answer.read() or bytes(len(WALLS))
        os.waitpid(child, 0)
    return dict(zip(WALLS, map(bool, said), strict=True))


def _tried(own: str, file: str, parent: int) -> Iterator[bool]:
    """Say of each wall whether it has stood, in the order of the table."""
    with ruled(hidden=(Path(file),)):
        enclose()
        confine([own])
    yield _is_refused(open, file, "ab")
    yield _is_refused(open, file, "rb")
    yield _is_refused(os.kill, parent, 0)
    # A semaphore that is not there.
    yield filters() and _LIBC.semget(0x6F707467, 0, 0) < 0 and ctypes.get_errno() == errno.EPERM
    yield _is_refused(socket.socket)
    rights = (ctypes.c_uint32 * 6)()
    header = _RightsHeader(0x20080522, 0)
    yield _LIBC.capget(ctypes.byref(header), rights) == 0 and not (rights[0] & ~_KEPT_RIGHTS) | rights[3]
    # How those are found that a process has started.
    yield os.path.exists(f"/proc/self/task/{os.getpid()}/children")


def _is_refused(call: Callable[..., Any], *arguments: Any) -> bool:
    try:
        call(*arguments)
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def lost(found: Mapping[str, bool]) -> str:
    """Say in one line which walls do not stand; empty where all do, or where the others were asked for."""
    gone = [name for name in WALLS if not found[name] and not (name == "network" and rules().network)]
    return f"not every wall around heuristics stands here: {', '.join(gone)} missing, see optgap doctor" if gone else ""
