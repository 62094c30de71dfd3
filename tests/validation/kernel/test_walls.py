"""Walls around code of others: what they keep it from, where it runs, and what is said where one is missing."""

import ctypes
import errno
import fcntl
import os
import resource
import socket
import sys
import tempfile
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from validation.cli import installation
from validation.kernel import walls
from validation.kernel.isolation import Apart
from validation.kernel.provenance import provenance
from validation.kernel.walls import WALLS, landlock, lost, ruled, standing

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there are walls on Linux only")

FOUND = standing() if sys.platform == "linux" else dict.fromkeys(WALLS, False)
LIBC: Any = ctypes.CDLL(None, use_errno=True)


def behind(*names: str) -> pytest.MarkDecorator:
    """Leave a test out where one of its walls does not stand."""
    gone = [name for name in names if not FOUND[name]]
    return pytest.mark.skipif(bool(gone), reason=f"no such walls here: {', '.join(gone)}")


def apart(function: Callable[[], dict[str, Any]], **options: Any) -> dict[str, Any]:
    with Apart(function, **options) as process:
        found = process.ask(seconds=60.0)
    return found.content or {"error": found.reason}


def refusals(calls: dict[str, Callable[[], object]]) -> dict[str, bool]:
    """Say of each call whether it is refused, by a process behind walls."""

    def each() -> dict[str, Any]:
        found = {}
        for name, call in calls.items():
            try:
                call()
                found[name] = False
            except OSError as error:
                found[name] = error.errno in (errno.EPERM, errno.EACCES)
        return found

    return apart(each)


def checked(result: int) -> None:
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")


# --- which of them stand ------------------------------------------------------------------------


def test_each_wall_has_its_kernel() -> None:
    """They are tried, and what is found goes together with what the kernel says that it has."""
    assert FOUND["files"] == FOUND["secrets"] == (landlock() > 0)
    assert FOUND["signals"] == (landlock() >= 6)
    assert FOUND["calls"] == FOUND["network"] == walls.filters()
    assert FOUND["rights"]


def test_metadata_and_doctor_say_which_stand() -> None:
    assert provenance(1)["machine"]["walls"] == FOUND
    said = "\n".join(finding.text for finding in installation.examine())
    for name, stands in FOUND.items():
        assert (f"wall {name}: a heuristic" if stands else f"wall {name} does not stand here") in said


@pytest.mark.parametrize("gone", [{"landlock": 0}, {"filters": False}])
def test_a_wall_that_is_missing_is_told(gone: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, answer in gone.items():
        monkeypatch.setattr(walls, name, lambda answer=answer: answer)
    found = standing()
    missing = ["files", "secrets", "signals"] if "landlock" in gone else ["calls", "network"]
    assert [name for name in WALLS if FOUND[name] and not found[name]] == [one for one in missing if FOUND[one]]
    assert all(name in lost(found) for name in missing)


@behind("files")
def test_a_wall_that_the_kernel_has_and_refuses_is_an_error() -> None:
    """There is an end to how deep domains of Landlock are nested."""

    def deep(left: int) -> dict[str, Any]:
        if left:
            with Apart(deep) as below:
                found = below.ask(left - 1, seconds=60.0)
            return found.content or {"error": found.reason}
        return {"ran": True}

    with Apart(deep) as process:
        found = process.ask(9, seconds=60.0)
    assert "WallError: [Errno 7] the kernel refuses another domain of Landlock" in (found.content or {})["error"]


# --- what they keep it from ---------------------------------------------------------------------


@behind("calls")
def test_no_process_outside_is_changed() -> None:
    above = os.getpid()
    limits = resource.prlimit(above, resource.RLIMIT_CORE)
    found = refusals(
        {
            "limits": lambda: resource.prlimit(above, resource.RLIMIT_CORE, limits),
            "cores": lambda: os.sched_setaffinity(above, os.sched_getaffinity(0)),
            "niceness": lambda: os.setpriority(os.PRIO_PROCESS, above, 0),
            "memory": lambda: checked(LIBC.process_vm_readv(above, None, 0, None, 0, 0)),
            "a debugger": lambda: checked(LIBC.ptrace(16, above, None, None)),
        }
    )
    assert all(found.values()), found


@behind("calls")
def test_nothing_of_the_kernel_s_is_left_or_hoarded() -> None:
    found = refusals(
        {
            "shared memory": lambda: checked(LIBC.shmget(0x77616C6C, 4096, 0o1600)),
            "a semaphore": lambda: checked(LIBC.semget(0x77616C6C, 1, 0o1600)),
            "messages": lambda: checked(LIBC.msgget(0x77616C6C, 0o1600)),
            "a queue": lambda: checked(LIBC.mq_open(b"/wall", os.O_CREAT | os.O_RDWR, 0o600, None)),
            "memory without a name": lambda: os.memfd_create("wall"),
            "flags of a file": lambda: fcntl.ioctl(
                os.open(tempfile.gettempdir(), os.O_RDONLY), 0x40086602, (0).to_bytes(8, "little")
            ),
        }
    )
    assert all(found.values()), found


@behind("network")
def test_sockets_are_for_those_who_ask(tmp_path: Path) -> None:
    calls: dict[str, Callable[[], object]] = {
        "of the network": lambda: socket.socket().close(),
        "with a path": lambda: socket.socket(socket.AF_UNIX).close(),
        "rings": lambda: checked(LIBC.syscall(425, 1, bytes(120))),
        "a pair": lambda: [one.close() for one in socket.socketpair()],
    }
    assert refusals(calls) == {"of the network": True, "with a path": True, "rings": True, "a pair": False}
    with ruled(network=True):
        assert refusals(calls) == {"of the network": False, "with a path": False, "rings": True, "a pair": False}
        assert standing()["network"] is False
        assert lost(standing()) == lost({**FOUND, "network": False})


@behind("secrets", "calls")
def test_there_is_no_terminal() -> None:
    """Neither the one that the command was given, nor one that has a name."""
    above, terminal = os.openpty()
    name = os.ttyname(terminal)

    def typed() -> None:
        fcntl.ioctl(0, termios.TIOCSTI, b"x")

    try:
        found = refusals(
            {
                "reads": lambda: os.close(os.open(name, os.O_RDONLY | os.O_NOCTTY)),
                "writes": lambda: os.close(os.open(name, os.O_WRONLY | os.O_NOCTTY)),
                "opens another": lambda: os.close(os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY)),
                "types": typed,
            }
        )
    finally:
        os.close(above)
        os.close(terminal)
    assert all(found.values()), found
    assert apart(lambda: {"tty": [os.isatty(one) for one in range(3)], "alone": os.getsid(0) == os.getpid()}) == {
        "tty": [False] * 3,
        "alone": True,
    }


@behind("secrets", "rights")
def test_root_has_no_disk() -> None:
    """Nodes of devices are neither read nor made; files of others are read as ever."""
    disks = [Path("/sys/class/block", one) for one in os.listdir("/sys/class/block")] if os.getuid() == 0 else []
    nodes = [Path("/dev", one.name) for one in disks if Path("/dev", one.name).exists()]
    numbers = os.stat(nodes[0]).st_rdev if nodes else os.makedev(7, 0)
    made = 0o060600  # A node of a block device.
    found = refusals(
        {
            **{str(node): lambda node=node: os.close(os.open(node, os.O_RDONLY)) for node in nodes},  # type: ignore[misc]
            "made": lambda: os.mknod(os.path.join(tempfile.gettempdir(), "disk"), made, numbers),
            "of another user": lambda: os.setuid(65534) if os.getuid() == 0 else os.setuid(0),
        }
    )
    assert all(found.values()), found
