"""A process that has everything imported, from which commands are forked.

What is forked goes on at the end of this file as a fresh interpreter does at the end of its imports: in the command's
entry point, and out of that as an interpreter ends.  A command may also be started afresh, by the same process.
"""

from __future__ import annotations

import ctypes
import json
import os
import pkgutil
import resource
import signal
import socket
import sys
import tempfile
from importlib import import_module
from typing import Any

__all__ = ["ENTRY"]

ENTRY = "from validation.cli import main; main()"
ROOMS = ("instances", "formulations", "heuristics", "validation")
OTHERS = ("matplotlib.backends.backend_svg", "matplotlib.figure", "matplotlib.style", "pandas", "pyarrow.parquet")


def import_everything() -> None:
    """Import what commands do, the modules that they import when they come to them too."""
    for name in OTHERS:
        import_module(name)
    for room in ROOMS:
        for found in pkgutil.walk_packages(import_module(room).__path__, f"{room}."):
            import_module(found.name)


def serve(requests: socket.socket) -> list[str]:
    """Start a process for each request, and tell its number and its exit code; in it, return its arguments."""
    while True:
        message, files, _, _ = socket.recv_fds(requests, 1 << 16, 2)
        if not message:
            os._exit(0)
        request = json.loads(message)
        pid = os.fork()
        if not pid:
            requests.close()
            return become(request, *files)
        for number in files:
            os.close(number)
        requests.send(b"%d" % pid)
        # It stays until the next request, so that whoever sends it a signal sends it to nobody else.
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        requests.send(b"%d" % os.waitstatus_to_exitcode(_status(pid)))
        requests.recv(1)
        _reap()


def become(request: dict[str, Any], out: int, err: int) -> list[str]:
    """Give this process the surroundings of a command, or start it afresh; its arguments."""
    os.setsid()
    os.chdir(request["folder"])
    os.environ.update(request["environment"])
    tempfile.tempdir = None
    for number, file in enumerate((os.open(os.devnull, os.O_RDONLY), out, err)):
        os.dup2(file, number)
        os.close(file)
    if request["largest_file"] is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["largest_file"],) * 2)
    arguments: list[str] = request["arguments"]
    if request["fresh"]:
        os.execv(sys.executable, [sys.executable, "-c", ENTRY, *arguments])
    return arguments


def _status(pid: int) -> int:
    """How a process has ended, which is still there."""
    found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert found is not None
    return found.si_status << 8 if found.si_code == os.CLD_EXITED else found.si_status


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


if __name__ == "__main__":
    ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: what commands leave behind comes to this process.
    # Whatever is ignored where this comes from, as after ``nohup``, is not ignored by a command.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for one in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(one, signal.SIG_DFL)
    import_everything()
    sys.path[0] = ""
    sys.argv = ["-c", *serve(socket.socket(fileno=int(sys.argv[1])))]
    from validation.cli import main

    main()
