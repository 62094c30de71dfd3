"""Commands as processes: what they get, how they end, and what they leave behind."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from validation.kernel.isolation import descendants, end_family

__all__ = ["LONGEST", "PATIENCE", "Ended", "run"]

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60.0
"""Seconds for a command to end once it was told to."""
LONGEST = 600.0
"""Seconds for one that nobody disturbs."""
PIPE = 1 << 20
"""Bytes that a command may say: nobody listens before it has ended."""


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, None where it did not, what it said, and what it left behind.

    ``signals`` are those that it got while it ran, ``left`` processes and temporary files.
    """

    code: int | None
    out: str
    err: str
    signals: tuple[int, ...]
    left: tuple[str, ...]


def run(
    folder: Path,
    arguments: Sequence[str],
    *,
    sent: Sequence[tuple[float, int]] = (),
    to_group: bool = False,
    largest_file: int | None = None,
    fresh: bool = False,
) -> Ended:
    """Give a command in a folder, and signals so many seconds after one another.

    The first comes so long after the command has begun to listen to signals.

    Parameters
    ----------
    folder : Path
    arguments : sequence of str
    sent : sequence of (float, int)
    to_group : bool
        Whether signals go to its whole process group, as from a terminal.
    largest_file : int, optional
        Bytes at which a write fails, as on a full disk.
    fresh : bool
        Whether it is started by a new interpreter, which imports everything while signals come.
    """
    got: list[int] = []
    with tempfile.TemporaryDirectory(prefix="faults-") as temporary:
        command = _Command(folder, arguments, temporary, largest_file, fresh)
        command.wait_until_it_listens()
        for seconds, number in sent:
            if command.wait(seconds) is None:
                got.append(number)
                (os.killpg if to_group else os.kill)(command.pid, number)
        code = command.wait(PATIENCE if got else LONGEST)
        out, err, left = command.end()
        left += [str(path) for path in Path(temporary).iterdir()]
    return Ended(code, out, err, tuple(got), tuple(left))


class _Command:
    """A command that runs, and the pipes that it writes to."""

    def __init__(
        self, folder: Path, arguments: Sequence[str], temporary: str, largest_file: int | None, fresh: bool
    ) -> None:
        self.template = _template()
        self.code: int | None = None
        pipes = [os.pipe() for _ in range(2)]
        self.said = [reading for reading, _ in pipes]
        for reading in self.said:
            fcntl.fcntl(reading, fcntl.F_SETPIPE_SZ, PIPE)
            os.set_blocking(reading, False)
        request = {
            "folder": str(folder),
            "arguments": arguments,
            "environment": {"TMPDIR": temporary, "PYTHONPATH": str(ROOT)},
            "largest_file": largest_file,
            "fresh": fresh,
        }
        socket.send_fds(self.template.requests, [json.dumps(request).encode()], [writing for _, writing in pipes])
        for _, writing in pipes:
            os.close(writing)
        self.pid = int(self.template.requests.recv(64))

    def wait(self, seconds: float) -> int | None:
        """Its exit code, None where it runs for so many seconds more."""
        if self.code is None and select.select([self.template.requests], [], [], seconds)[0]:
            self.code = int(self.template.requests.recv(64))
        return self.code

    def wait_until_it_listens(self) -> None:
        """Wait until it has a handler for SIGHUP, the last that it installs; before that, Python starts."""
        while self.wait(0.001) is None:
            with contextlib.suppress(OSError):
                status = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8")
                caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
                if int(caught.split()[1], 16) >> (signal.SIGHUP - 1) & 1:
                    return

    def end(self) -> tuple[str, str, list[str]]:
        """Return what it said, and the processes that it has left; neither they nor it go on."""
        hangs = self.code is None
        left = [_name(pid) for pid in descendants(self.template.pid) if pid != self.pid or not hangs]
        end_family(self.template.pid)
        if hangs:
            self.wait(PATIENCE)
        self.template.requests.send(b"x")
        out, err = (_rest(reading) for reading in self.said)
        return out, err, [] if hangs else left


def _rest(reading: int) -> str:
    """All that is in a pipe."""
    parts = []
    with contextlib.suppress(BlockingIOError):
        while part := os.read(reading, PIPE):
            parts.append(part)
    os.close(reading)
    return b"".join(parts).decode()


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return str(pid)


class _Template:
    """The process that starts commands (:mod:`benchmarks.faults.template`)."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.faults.template", str(theirs.fileno())],
                cwd=ROOT,
                pass_fds=[theirs.fileno()],
                # Streams of the kind that commands get: Python remembers what it began with.
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
        self.pid = self.process.pid
        atexit.register(self.stop)

    def stop(self) -> None:
        if os.getpid() == self.owner:
            self.requests.close()
            self.process.wait(PATIENCE)


_templates: dict[int, _Template] = {}
"""One for each process that gives commands; a forked one starts its own."""


def _template() -> _Template:
    return _templates.get(os.getpid()) or _templates.setdefault(os.getpid(), _Template())
