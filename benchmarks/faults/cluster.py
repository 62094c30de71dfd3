"""Studies on a Dask cluster whose scheduler, nannies, workers and coordinator are killed, stopped, slow and late.

The scheduler and the workers are processes of this machine, as ``dask scheduler`` and ``dask worker`` start
them.  The truth is the table of the same study left alone on one machine, in all columns but the times.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np

from benchmarks.faults.studies import Running, left_alone, names, scratch
from benchmarks.faults.tally import Tally, fault
from validation.kernel.isolation import children, end_with_parent
from validation.kinds.study import run

__all__ = ["ASKED"]

ASKED: dict[str, Any] = {"count": 40, "jobs": None}
"""What is asked beside what :mod:`benchmarks.faults.studies` asks."""
CONNECT = 30.0
"""Seconds that a client tries to connect, anew too, before it gives up."""
TTL = 3.0
"""Seconds after which the scheduler gives up a worker of which it hears nothing."""


class _Machines:
    """A scheduler and two workers under nannies; to be used as a context."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.nannies: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        options = ["--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard"]
        self.scheduler = self._process("scheduler", *options)
        while self.scheduler.poll() is None and not self._answers():
            time.sleep(0.05)
        for _ in range(2):
            self.join()

    def _answers(self) -> bool:
        """Whether the scheduler takes connections."""
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1.0):
            return True
        return False

    def join(self) -> None:
        """Another worker joins."""
        self.nannies.append(self._process("worker", self.address, "--nthreads", "1", "--no-dashboard"))

    def stop(self) -> None:
        for process in (*self.nannies, self.scheduler):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self.nannies = []

    def workers(self) -> list[int]:
        """Workers that run, each a child of its nanny."""
        return [child for nanny in self.nannies for child in children(nanny.pid) if b"spawn_main" in _command_of(child)]

    def _process(self, kind: str, *options: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.dask_{kind}", *options],
            env={**os.environ, "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": f"{TTL} s"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=functools.partial(end_with_parent, os.getpid()),
        )


def _command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


class _Through:
    """Lets the studies of a process run on a cluster, and leaves a file when the process has joined it."""

    def __init__(self, address: str, joined: Path) -> None:
        self.address, self.joined = address, joined

    def __call__(self) -> None:
        import distributed

        # A study that has not sent anything yet waits so long for a scheduler that is gone.
        client = distributed.Client(self.address, timeout=CONNECT)
        self.joined.touch()
        setattr(run, "run_study", functools.partial(run.run_study, client=client))  # noqa: B010, it is not the module's


GONE = "a scheduler killed"
Does = Callable[[_Machines, Running, np.random.Generator], str]
"""Does harm, and says which; nothing where there was nobody to do it to."""
HARMS: list[Does] = []


def harm(name: str, count: int, what: str = "") -> Callable[[Does], Does]:
    """Enter what does harm to a cluster among the faults: it is done to studies at random moments."""

    def enter(does: Does) -> Does:
        HARMS.append(does)
        fault(name, count, what)(functools.update_wrapper(functools.partial(_harmed, does), does))
        return does

    return enter


def _harmed(does: Does, tally: Tally, seed: int, count: int) -> None:
    """Do harm to studies at random moments, each run again until it ends."""
    draw = np.random.default_rng([seed, 6])
    with scratch() as folder, _Machines() as machines:
        truth, _ = left_alone(folder, **{**ASKED, "jobs": 2})
        for name, directory in names(tally, folder, seed, count):
            code: int | None = 2
            while code == 2:
                joined, done = directory.with_suffix(".joined"), list[str]()
                joined.unlink(missing_ok=True)
                running = Running(directory, _Through(machines.address, joined), **ASKED)
                while tally.tried < count and running.runs(draw.uniform(0.3, 2.0)):
                    # Whoever is killed must not have ended, and must have been heard of.
                    if joined.exists() and (said := does(machines, running, draw)):
                        tally.begin()
                        tally.count(said)
                        done.append(said)
                if running.process.exitcode == -signal.SIGKILL:
                    continue
                code = running.end(tally, name, truth)
                if code == 2:
                    tally.count("ended in one line")
                    if GONE not in done or "scheduler" not in running.said:
                        tally.tell(f"{name}: ended, saying {running.said!r}")
                    machines.stop()
                    machines.start()
            if code == 0:
                tally.count("studies ended")


def _kill(pid: int, what: str) -> str:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        return f"{what} killed"
    return ""


def _stopped(pid: int, seconds: float, what: str) -> str:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(pid, signal.SIGCONT)
        return what
    return ""


@harm("cluster.worker_killed", 50)
def worker_killed(machines: _Machines, running: Running, draw: np.random.Generator) -> str:
    """SIGKILL of a Dask worker, which its nanny starts again, at random moments of a study."""
    found = machines.workers()
    return _kill(int(draw.choice(found)), "a worker") if found else ""


@harm("cluster.nanny_killed", 50)
def nanny_killed(machines: _Machines, running: Running, draw: np.random.Generator) -> str:
    """SIGKILL of a nanny, with which its worker ends; another joins late."""
    if not machines.workers():
        return ""
    nanny = machines.nannies.pop(int(draw.integers(len(machines.nannies))))
    done = _kill(nanny.pid, "a nanny")
    nanny.wait()
    machines.join()
    return done


@harm("cluster.scheduler_killed", 50)
def scheduler_killed(machines: _Machines, running: Running, draw: np.random.Generator) -> str:
    """SIGKILL of the scheduler: the study ends in one line; the same command, when there is another, goes on."""
    done = GONE if machines.workers() and _kill(machines.scheduler.pid, "a scheduler") else ""
    if done:
        # It must not be harmed again while it says so.
        running.runs(3 * CONNECT)
    return done


@harm("cluster.coordinator_killed", 50)
def coordinator_killed(machines: _Machines, running: Running, draw: np.random.Generator) -> str:
    """SIGKILL of the process that runs a study on a cluster; the same command goes on."""
    running.kill()
    return "a coordinator killed"


@harm(
    "cluster.network",
    20,
    "A lost network and slow nodes: workers and schedulers that are stopped for a while (SIGSTOP, SIGCONT)",
)
def network(machines: _Machines, running: Running, draw: np.random.Generator) -> str:
    """Stop a worker or the scheduler for a while."""
    found = machines.workers()
    if not found:
        return ""
    worker = int(draw.choice(found))
    match int(draw.integers(4)):
        case 0:
            return _stopped(worker, TTL + 2.0, "a worker given up")
        case 1:
            return _stopped(worker, 1.0, "a worker stopped for a second")
        case 2:
            return _stopped(machines.scheduler.pid, 2.0, "the scheduler stopped")
        case _:
            for _ in range(10):
                _stopped(worker, 0.2, "slow")
                time.sleep(0.02)
            return "a worker slowed down"


@harm("cluster.any", 20)
def any_of_them(machines: _Machines, running: Running, draw: np.random.Generator) -> str:
    """Any of these, several in one study."""
    return HARMS[int(draw.integers(5))](machines, running, draw)
