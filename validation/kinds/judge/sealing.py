"""What a process may not do from now on, so that nothing of one question reaches the next.

The processes of heuristics write below a folder of their own anyway (:mod:`validation.kernel.isolation`).  What else
outlasts a process is refused here: files in memory, what the kernel keeps under a number (shared memory, semaphores,
messages, keys), sockets, modes and times of files, and the limits and ranks of other processes. That takes Landlock,
and the kernel's filter of system calls (seccomp) on x86-64 and 64-bit ARM; elsewhere it is left out.
"""

from __future__ import annotations

import ctypes
import errno
import itertools
import platform
import struct
import tempfile

from validation.kernel.isolation import LINUX, confine

__all__ = ["seal"]

_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""The kernel's number of each, and the column of the tables below."""

_REFUSED = (
    *((29, 194), (30, 196), (31, 195)),  # shmget, shmat, shmctl
    *((64, 190), (65, 193), (66, 191), (220, 192)),  # semget, semop, semctl, semtimedop
    *((68, 186), (69, 189), (70, 188), (71, 187)),  # msgget, msgsnd, msgrcv, msgctl
    *((248, 217), (249, 218), (250, 219)),  # add_key, request_key, keyctl
    *((41, 198), (425, 425), (251, 30)),  # socket, io_uring_setup, which makes sockets too, and ioprio_set
    *((90, None), (91, 52), (268, 53), (452, 452)),  # chmod, fchmod, fchmodat, fchmodat2
    *((92, None), (93, 55), (94, None), (260, 54)),  # chown, fchown, lchown, fchownat
    *((132, None), (235, None), (261, None), (280, 88)),  # utime, utimes, futimesat, utimensat
    *((188, 5), (189, 6), (190, 7), (463, 463)),  # setxattr, lsetxattr, fsetxattr, setxattrat
    *((197, 14), (198, 15), (199, 16), (466, 466)),  # removexattr, lremovexattr, fremovexattr, removexattrat
)
"""System calls: their numbers on either architecture."""

_OF_ITSELF = (
    ((302, 261), (0,)),  # prlimit64
    ((203, 122), (0,)),  # sched_setaffinity
    ((144, 119), (0,)),  # sched_setscheduler
    ((142, 118), (0,)),  # sched_setparam
    ((314, 274), (0,)),  # sched_setattr
    ((141, 140), (0, 1)),  # setpriority
)
"""Those that a process may make about itself, and the arguments that are 0 then."""

_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def seal() -> None:
    """Refuse this process, and all that it starts, what would outlast it beside its own folder."""
    if not LINUX:
        return
    confine([tempfile.gettempdir()], shared=False)
    known = _ARCHITECTURES.get(platform.machine())
    if known is None:
        return
    code = _filter(*known)
    libc = ctypes.CDLL(None)
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    program = _Program(len(code) // 8, code)
    libc.prctl(22, 2, ctypes.byref(program), 0, 0)  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER


def _filter(architecture: int, column: int) -> bytes:
    """Make a program of the kernel's packet filter: instructions of code, jump if true, jump if false, and operand."""
    steps = [
        (_LOAD, 0, 0, 4),  # The architecture: programs for another one have other numbers.
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _REFUSE),
        (_LOAD, 0, 0, 0),  # The number of the call; beyond 2**30 it is one of x86's own third table.
        (_AT_LEAST, 0, 1, 1 << 30),
        (_RETURN, 0, 0, _REFUSE),
    ]
    for numbers in _REFUSED:
        if (number := numbers[column]) is not None:
            steps += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _REFUSE)]
    for numbers, arguments in _OF_ITSELF:
        looks = [((_LOAD, 0, 0, 16 + 8 * one), (_EQUAL, 1, 0, 0), (_RETURN, 0, 0, _REFUSE)) for one in arguments]
        body = [*itertools.chain(*looks), (_RETURN, 0, 0, _ALLOW)]
        steps += [(_EQUAL, 0, len(body), numbers[column]), *body]
    steps.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("HBBI", *step) for step in steps)
