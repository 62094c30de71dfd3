"""Heuristics that cheat, or break what they can reach, each in a way of its own; honest ones beside them.

All are of ``aryl.reclaim``.  What may come of each is told with it, and never more than the plan that
:func:`bad` finds is worth.
"""

# mypy: disable-error-code="func-returns-value"
# Rows of the tables are expressions, in which much is called for what it does.

from __future__ import annotations

import atexit
import builtins
import concurrent.futures
import contextlib
import ctypes
import fcntl
import functools
import gc
import json
import locale
import mmap
import multiprocessing
import os
import random
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import numpy as np

from formulations import Solution
from heuristics.aryl.reclaim import server_fraction
from instances.aryl import reclaim
from instances.aryl.reclaim import Reclaim, ReclaimPlan

__all__ = ["CHEATS", "FORGERS", "HONEST", "KNOWN", "Cheat", "Known", "bad", "honest"]

Function: TypeAlias = Callable[[Reclaim], Any]


@dataclass
class Known:
    """What the cheats know of the study, as whoever starts it could tell them.

    Attributes
    ----------
    directory : Path
        Of the study.
    elsewhere : Path
        Where they try to leave something.
    pids : list of int
        Processes that they would like to end.
    """

    directory: Path = Path("/nonexistent")
    elsewhere: Path = Path("/nonexistent")
    pids: list[int] = field(default_factory=list)

    @property
    def mark(self) -> str:
        """A name that no other study has."""
        return f"optgap-{self.pids[0] if self.pids else 0}"


KNOWN = Known()


@dataclass(frozen=True)
class Cheat:
    """A heuristic that cheats.

    Attributes
    ----------
    function : callable
    outcome : str
        What may come of it: a pattern of a row's status and reason, as in "failed: .*SystemExit".  The plan of a
        row that is feasible is worth what that of :func:`bad` is.
    lasting : bool
        Whether it goes on until it is stopped.
    walled : bool
        Whether only the kernel's walls keep it from what it tries; not to be run where one is missing.
    """

    function: Function
    outcome: str
    lasting: bool
    walled: bool


CHEATS: dict[str, Cheat] = {}
HONEST: dict[str, Function] = {}
"""Heuristics that do unusual things and may: their plans are those of :func:`honest`."""

FORGERS: dict[str, Function] = {}
"""Of the cheats those whose plans are never feasible, and that forge what the checks of a heuristic would say."""

DIED = "failed: the process died: "
LATE = "failed: time limit"
MEMORY = "failed: .*[mM]emory"


def cheat(outcome: str = "feasible", *, lasting: bool = False, walled: bool = False) -> Callable[[Function], Function]:
    """Enter a function among the cheats."""

    def enter(function: Function) -> Function:
        CHEATS[function.__name__] = Cheat(function, outcome, lasting, walled)
        return function

    return enter


def cheats(rows: dict[str, tuple[str, str, Function]], *, lasting: bool = False, walled: bool = False) -> None:
    """Enter expressions among the cheats: by name what may come of each, what it does in words, and its function."""
    for name, (outcome, what, function) in rows.items():
        function.__name__ = function.__qualname__ = name
        function.__doc__ = what
        cheat(outcome, lasting=lasting, walled=walled)(function)


def may(function: Function) -> Function:
    """Enter a function among the honest ones."""
    HONEST[function.__name__] = function
    return function


def bad(instance: Reclaim, *done: object) -> ReclaimPlan:
    """Return a feasible plan that is worse than the optimum on the study's instances: the busiest servers.

    Parameters
    ----------
    instance : Reclaim
    *done
        What was done before, which does not matter.
    """
    return ReclaimPlan(servers=np.argsort(-instance.hosts.sum(axis=0), kind="stable")[: instance.demand])


def around(servers: Any) -> ReclaimPlan:
    """Return a plan that its constructor has not seen."""
    plan = object.__new__(ReclaimPlan)
    object.__setattr__(plan, "servers", servers)
    return plan


def raises(error: BaseException) -> NoReturn:
    """Raise an exception."""
    raise error


def forever(*_: object) -> NoReturn:
    """Sleep until somebody ends it."""
    while True:
        time.sleep(3600)


def attempt(call: Callable[..., object], *arguments: Any) -> bool:
    """Make a call, and tell whether the kernel let it pass."""
    with contextlib.suppress(OSError):
        call(*arguments)
        return True
    return False


def append(path: object, content: bytes) -> None:
    """Write at the end of a file."""
    with open(str(path), "ab", buffering=0) as file:
        file.write(content)


def put(owner: Any, **others: Any) -> None:
    """Put other things in the place of attributes."""
    for name, other in others.items():
        setattr(owner, name, other)


def hoard(make: Callable[[], object], pause: float = 0.0, children: int = 0) -> NoReturn:
    """Keep more and more of something, with so many children."""
    any(os.fork() == 0 for _ in range(children))
    kept = []
    while True:
        kept.append(make())
        if pause:
            time.sleep(pause)


def write_everywhere(message: bytes) -> None:
    """Say something to whoever reads any of the open files, but for standard input, output and error."""
    for number in range(3, 256):
        attempt(os.write, number, message)


def message(head: bytes) -> bytes:
    """Return an answer as the library's own process would send it."""
    return struct.pack("<Q", 8 + len(head)) + struct.pack("<Q", len(head)) + head


# --- honest -----------------------------------------------------------------------------------------


@may
def honest(instance: Reclaim) -> ReclaimPlan:
    """Ask the paper's heuristic."""
    return server_fraction(instance)


@may
def a_pool(instance: Reclaim) -> ReclaimPlan:
    """Use processes of its own."""
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(abs, [-1, -2]) == [1, 2]
    return server_fraction(instance)


@may
def an_executor(instance: Reclaim) -> ReclaimPlan:
    """Threads and processes of its own, as futures."""
    fork = multiprocessing.get_context("fork")
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        assert list(threads.map(abs, [-1, -2])) == [1, 2]
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=fork) as processes:
        assert list(processes.map(abs, [-1, -2])) == [1, 2]
    return server_fraction(instance)


@may
def a_program(instance: Reclaim) -> ReclaimPlan:
    """Start a program and wait for it, and read back a file."""
    with tempfile.NamedTemporaryFile("w+") as file:
        subprocess.run(["echo", "fine"], stdout=file, check=True)
        assert Path(file.name).read_text(encoding="utf-8") == "fine\n"
    return server_fraction(instance)


# --- what it returns -------------------------------------------------------------------------------


@cheat()
def a_plan_that_says_what_it_is_worth(instance: Reclaim) -> Any:
    """Its class has methods of its own, which say the best."""

    class Better(ReclaimPlan):
        def to_dict(self) -> Any:
            return {"servers": [], "value": 0}

        @property
        def digest(self) -> str:
            return "0"

        __eq__ = __lt__ = __le__ = lambda self, other: True
        __hash__ = None  # type: ignore[assignment]

    return Better(servers=bad(instance).servers)


@cheat("infeasible: demand|failed")
def a_plan_with_two_faces(instance: Reclaim) -> Any:
    """Its field is another each time that someone looks."""

    class Faces(ReclaimPlan):
        looks = 0

        def __getattribute__(self, name: str) -> Any:
            if name != "servers":
                return super().__getattribute__(name)
            Faces.looks += 1
            return np.arange(Faces.looks % 2)

    return object.__new__(Faces)


@cheat()
def what_passes_for_a_plan(instance: Reclaim) -> Any:
    """No plan, but it says that its class is one."""

    class Passes:
        __class__ = ReclaimPlan  # type: ignore[assignment]
        servers = bad(instance).servers

    return Passes()


class Empty(np.ndarray):
    """An array that pretends to be shorter, smaller and equal to everything."""

    def __len__(self) -> int:
        return 0

    def any(self, *args: Any, **options: Any) -> Any:
        return np.False_

    def sum(self, *args: Any, **options: Any) -> Any:
        return 0

    def __eq__(self, other: object) -> Any:
        return True

    __hash__ = None


class Small(float):
    """A number that is less than any other."""

    def __lt__(self, other: object) -> bool:
        return True

    def __float__(self) -> float:
        return 0.0


@cheat("failed: .*cannot be sent")
def objects_in_an_array(instance: Reclaim) -> Any:
    """Return an object that runs a program where it is unpickled."""

    class Runs:
        def __reduce__(self) -> Any:
            return os.system, (f"touch {KNOWN.elsewhere}/unpickled",)

    return around(np.array([Runs()], object))


@cheat("failed: (RecursionError|ValueError)")
def a_list_within_itself(instance: Reclaim) -> Any:
    """Return a list that is its own member."""
    ring: list[Any] = []
    ring.append(ring)
    return around(ring)


@cheat(LATE + "|failed: .*[mM]emory", lasting=True)
def a_list_without_end(instance: Reclaim) -> Any:
    """Return a list that goes on for ever."""

    class Endless(list[int]):
        def __iter__(self) -> Iterator[int]:
            while True:
                yield 0

    return around(Endless())


cheats({
    "arrays_of_its_own_class": ("feasible", "The array lies about itself.",
        lambda instance: around(bad(instance).servers.view(Empty))),
    "numbers_of_its_own_class": ("feasible|infeasible|failed", "The numbers lie about themselves.",
        lambda instance: around([Small(one) for one in bad(instance).servers])),
    "around_the_constructor": ("failed: .*must be a whole number", "Numbers that the plan's class refuses.",
        lambda _: around(np.array([-1.5, np.nan]))),
    "not_a_number": ("failed: .*servers", "NaN, which compares with nothing.",
        lambda instance: around(np.full(instance.demand, np.nan))),
    "infinity": ("failed: .*servers", "Minus infinity.", lambda _: around([-np.inf])),
    "a_number_beyond_64_bits": ("failed: .*servers", "A whole number that fits no array.", lambda _: around([10**400])),
    "words": ("failed: .*servers", "Numbers as words.",
        lambda instance: around([str(one) for one in bad(instance).servers])),
    "a_number_of_ten_thousand_digits": ("failed: .*digits", "A whole number that Python prints only when told to.",
        lambda _: around([10**10_000])),
    "complex_numbers": ("failed: .*complex128 cannot be sent", "Numbers without an order.",
        lambda _: around(np.array([1j]))),
    "a_list_that_is_too_deep": ("failed: RecursionError", "A hundred thousand brackets.",
        lambda _: around(functools.reduce(lambda deep, _: [deep], range(100_000), list[Any]()))),
    "a_generator": ("failed: TypeError", "The servers one by one.",
        lambda instance: around(iter(bad(instance).servers))),
    "a_plan_of_terabytes": ("failed: .*memory|failed: .*Memory", "An array that takes no memory until it is sent.",
        lambda _: around(np.broadcast_to(0, 10**12))),
    "a_plan_of_gigabytes": (f"failed: .*too large|{MEMORY}",
        "A small array, over and over, where each is copied by whoever reads it.",
        lambda _: around([np.zeros(10**6)] * 250)),
    "a_name_that_writes_on_the_terminal": ("failed: .*must be a ReclaimPlan, got ",
        "Something whose class is named with codes that move the cursor.",
        lambda _: type("\x1b[2J\x1b]0;owned\x07\n", (), {})()),
    "the_instance": ("failed: .*must be a ReclaimPlan, got Reclaim", "The question for an answer.", lambda one: one),
    "the_class": ("failed: .*must be a ReclaimPlan, got type", "The plan's class for a plan.", lambda _: ReclaimPlan),
    "nothing": ("failed: returned None", "No answer, politely.", lambda _: None),
    "one_server_many_times": ("infeasible: ", "The cheapest server, counted as often as is asked for.",
        lambda instance: around(np.zeros(instance.demand, int))),
})  # fmt: skip

# --- what it raises --------------------------------------------------------------------------------


@cheat("failed: .*cannot be printed|" + DIED)
def raises_what_cannot_be_printed(instance: Reclaim) -> Any:
    """Raise an exception whose message ends the process."""

    class Unprintable(Exception):  # noqa: N818
        def __str__(self) -> str:
            raise SystemExit(0)

    raise Unprintable


@cheat("failed: ZeroDivisionError")
def raises_on_the_way_out(instance: Reclaim) -> Any:
    """One exception while another is under way, and objects that raise when they go."""

    class Bitter:
        def __del__(self) -> None:
            raise RuntimeError

    kept = Bitter()
    try:
        raise KeyError(kept)
    finally:
        del kept
        1 / 0  # noqa: B018


cheats({
    "raises_where_it_is_hard": ("failed: RuntimeError: too hard", "An ordinary exception.",
        lambda _: raises(RuntimeError("too hard"))),
    "raises_what_nobody_catches": ("failed: Sudden", "No ``Exception``, but what is above it.",
        lambda _: raises(type("Sudden", (BaseException,), {})())),
    "interrupts": ("failed: KeyboardInterrupt", "As if someone had pressed Ctrl-C.",
        lambda _: raises(KeyboardInterrupt())),
    "closes_a_generator": ("failed: GeneratorExit", "As if someone had closed it.", lambda _: raises(GeneratorExit())),
    "says_that_memory_is_short": ("failed: MemoryError", "As if memory had run out.", lambda _: raises(MemoryError())),
    "recurses": ("failed: RecursionError", "Itself, for ever.", lambda instance: CHEATS["recurses"].function(instance)),
    "raises_codes_of_the_terminal": ("failed: ValueError: ", "A message that clears the screen.",
        lambda _: raises(ValueError("\x1b[2J\x1b[31mall is well\x1b]0;title\x07\u202e\x00"))),
    "raises_at_length": ("failed: .{1,2000}$", "A message of ten million letters, and a name of as many.",
        lambda _: raises(type("E" * 10**7, (Exception,), {})("x" * 10**7))),
    "raises_from_an_endless_file": (r"failed: ValueError \(zero, line 1\)$",
        "An exception whose line of source is in a file without end.",
        lambda _: exec(compile("raise ValueError", "/dev/zero", "exec"))),
})  # fmt: skip

# --- how it ends -----------------------------------------------------------------------------------

cheats({
    "exits": ("failed: SystemExit: 0", "As a program that is done.", lambda _: sys.exit(0)),
    "leaves_as_if_well": (DIED + "it exited with code 0", "The process ends, and says that all is well.",
        lambda _: os._exit(0)),
    "becomes_another_program": (DIED + "it exited with code 0", "The process goes on as a program that does nothing.",
        lambda _: os.execvp("true", ["true"])),
    "leaves": (DIED + "it exited with code 1", "The process ends.", lambda _: os._exit(1)),
    "kills_itself": (DIED + "killed by SIGKILL", "SIGKILL.", lambda _: forever(os.kill(os.getpid(), signal.SIGKILL))),
    "kills_its_group": (DIED + "killed by SIGKILL", "All processes of the group that it is in.",
        lambda _: forever(os.killpg(0, signal.SIGKILL))),
    "crashes": (DIED + "killed by SIGSEGV", "A null pointer is followed.", lambda _: ctypes.string_at(0)),
    "aborts": (DIED + "killed by SIGABRT", "As a failed assertion in C.", lambda _: os.abort()),
})  # fmt: skip

# --- what does not end -----------------------------------------------------------------------------


@cheat(LATE, lasting=True)
def loops(instance: Reclaim) -> Any:
    """Loop for ever."""
    while True:
        pass


@cheat(LATE, lasting=True)
def ignores_all_signals(instance: Reclaim) -> Any:
    """Whatever can be blocked or ignored is."""
    for number in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}:
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    forever()


@cheat()
def asks_the_terminal(instance: Reclaim) -> Any:
    """Read standard input, where there is none, and write on the terminal behind it."""
    with contextlib.suppress(EOFError):
        input("plan? ")
    with contextlib.suppress(OSError), open("/dev/tty", "w", encoding="utf-8") as terminal:
        terminal.write("owned")
        return around([])
    return bad(instance)


cheats({
    "stops_itself": (LATE, "SIGSTOP: there, and never to go on.", lambda _: os.kill(os.getpid(), signal.SIGSTOP)),
    "sleeps_in_c": (LATE, "It keeps the interpreter's lock.", lambda _: ctypes.PyDLL(None).sleep(3600)),
    "waits_for_itself": (LATE, "A lock that it holds.", lambda _: [lock.acquire() for lock in 2 * [threading.Lock()]]),
    "waits_for_a_stopped_child": (LATE, "A child that has stopped.",
        lambda _: os.waitpid(os.fork() or os.kill(os.getpid(), signal.SIGSTOP) or 0, 0)),
    "closes_everything": (f"failed: .*closed its pipe|{LATE}", "Nothing is open, and it lives on.",
        lambda _: forever(os.closerange(0, 4096))),
}, lasting=True)  # fmt: skip

# --- what takes what there is ----------------------------------------------------------------------


def shared() -> mmap.mmap:
    """Return ten megabytes, of the kind that processes share."""
    made = mmap.mmap(-1, 10**7)
    made.write(bytes(10**7))
    return made


cheats({
    "memory_at_once": (MEMORY, "Eight terabytes.", lambda _: np.ones(10**12)),
    "floods": ("feasible", "A hundred megabytes on standard output and error, from Python and a program.",
        lambda instance: bad(
            instance, *(os.write(number, b"\x1b[2J" * 125_000) for number in (1, 2) for _ in range(100)),
            subprocess.run("head -c 50000000 /dev/zero; head -c 50000000 /dev/zero >&2", shell=True, check=False))),
})  # fmt: skip
cheats({
    "a_fork_bomb": (f"failed: .*too many processes|{LATE}", "Twice as many processes every moment.",
        lambda _: hoard(os.fork, 0.01)),
    "memory_bit_by_bit": (f"{MEMORY}|{LATE}", "More and more.", lambda _: hoard(lambda: np.ones(10**6))),
    "memory_that_is_shared": (f"{MEMORY}|{LATE}", "More and more, of the kind that processes share.",
        lambda _: hoard(shared)),
    "memory_of_children": (f"{MEMORY}|{LATE}", "More and more, in processes of its own.",
        lambda _: hoard(lambda: np.ones(10**6), 0.01, children=3)),
    "the_disk": (f"{MEMORY}|{LATE}", "Files in its own folder, more and more of them.",
        lambda _: hoard(lambda: Path(tempfile.mkdtemp(), "file").write_bytes(bytes(10**7)))),
}, lasting=True)  # fmt: skip

# --- processes -------------------------------------------------------------------------------------


@cheat()
def a_daemon_left_running(instance: Reclaim) -> Any:
    """Leave a program in a session of its own that nobody is the parent of."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execvp("sleep", ["sleep", "54321"])
        os._exit(0)
    return bad(instance)


@cheat()
def a_daemon_without_a_name(instance: Reclaim) -> Any:
    """Such a process again, whose name is no text and which ignores what can be ignored."""
    if os.fork() == 0:
        os.setsid()
        ctypes.CDLL(None).prctl(15, b"\xff) \xfe")  # PR_SET_NAME
        if os.fork():
            os._exit(0)
        ignores_all_signals(instance)
    os.wait()
    return bad(instance)


PROGRAM = "for n in 3 4 5 6 7 8 9; do echo owned >&$n; done 2>/dev/null; exec sleep 54321"

cheats({
    "two_answers": ("feasible", "Parent and child both return.",
        lambda instance: bad(instance) if os.fork() else ReclaimPlan(servers=np.array([], int))),
    "a_program_left_running": ("feasible", "A program that has every open file of the process, and writes to them.",
        lambda instance: bad(instance, subprocess.Popen(["bash", "-c", PROGRAM], close_fds=False))),
    "a_thread_left_running": ("feasible", "A thread that goes on when the answer is given.",
        lambda instance: bad(instance, threading.Thread(target=loops, args=(instance,), daemon=True).start())),
    "an_executor_left_running": ("feasible", "Futures that nobody waits for, which Python itself would at the end.",
        lambda instance: bad(
            instance, concurrent.futures.ThreadPoolExecutor(1).submit(time.sleep, 3600), atexit.register(forever))),
})  # fmt: skip

# --- signals and timers ----------------------------------------------------------------------------


@cheat(walled=True)
def signals_by_a_file(instance: Reclaim) -> Any:
    """Make a pipe whose readiness the kernel is to tell the judge with SIGKILL."""
    reading, writing = os.pipe()
    with contextlib.suppress(OSError):
        fcntl.fcntl(reading, fcntl.F_SETOWN, os.getppid())
        fcntl.fcntl(reading, 10, signal.SIGKILL)  # F_SETSIG
        fcntl.fcntl(reading, fcntl.F_SETFL, fcntl.fcntl(reading, fcntl.F_GETFL) | os.O_ASYNC)
        os.write(writing, b"x")
    return bad(instance)


cheats({
    "kills_its_keeper": ("feasible", "The process that will judge it.",
        lambda instance: bad(
            instance, *(attempt(os.kill, os.getppid(), number) for number in (signal.SIGKILL, signal.SIGSTOP)))),
    "kills_the_study": ("feasible", "The process that leads the study.",
        lambda instance: bad(instance, *(attempt(os.kill, pid, signal.SIGTERM) for pid in KNOWN.pids))),
}, walled=True)  # fmt: skip
cheats({
    "a_timer_left_on": (f"feasible|{DIED}it exited with code 9", "An alarm that is due when others would run.",
        lambda instance: bad(
            instance, signal.signal(signal.SIGALRM, lambda *_: os._exit(9)),
            signal.setitimer(signal.ITIMER_REAL, 5.0))),
})  # fmt: skip

# --- what changes the library ----------------------------------------------------------------------


@cheat()
def another_clock(instance: Reclaim) -> Any:
    """Time stands still while it works."""
    time.perf_counter = time.monotonic = lambda: 0.0
    deadline = time.time() + 0.2
    while time.time() < deadline:
        pass
    return bad(instance)


@cheat("feasible|infeasible: demand")
def frames_above(instance: Reclaim) -> Any:
    """Make the instances in the frames of its callers trivial."""
    frame: Any = sys._getframe()
    while frame is not None:
        for name, value in list(frame.f_locals.items()):
            if isinstance(value, Reclaim):
                object.__setattr__(value, "demand", 0)
                object.__setattr__(value, "hosts", np.zeros_like(value.hosts))
            frame.f_locals[name] = value
        frame = frame.f_back
    return bad(instance)


NONE = '{"plan.servers": {"plain": []}, "value": {"plain": 0}, "status": {"plain": "optimal"}}'

cheats({
    "another_solver": ("feasible", "The exact side is to find something worse.",
        lambda instance: bad(
            instance, *(put(sys.modules[f"formulations{module}"], solve=lambda *_, **__: 99)
                        for module in ("", ".engine.solving")))),
    "another_judge": ("feasible", "Every plan is feasible and worth nothing.",
        lambda instance: bad(
            instance, put(Reclaim, _value=lambda *_: 0, objective=lambda *_: 0.0, violations=lambda *_: []))),
    "another_numpy": ("feasible|failed|infeasible", "Sums are 0, and arrays empty.",
        lambda instance: [bad(instance), put(np, **dict.fromkeys(
            ("sum", "add", "asarray", "ascontiguousarray"), lambda *_, **__: np.zeros(0)))][0]),
    "other_builtins": ("feasible|failed|infeasible|declined",
        "Everything has length 0 and is an instance of everything.",
        lambda instance: [bad(instance), put(builtins, len=lambda *_: 0, isinstance=lambda *_: True)][0]),
    "traces": ("feasible|failed", "Every call of the library's after it is watched, and may be held up.",
        lambda instance: bad(
            instance, sys.settrace(lambda frame, event, argument: frame.f_locals.clear()),
            threading.settrace(sys.gettrace()), sys.setprofile(lambda *_: None))),
    "surroundings_of_its_own": ("feasible|failed",
        "Other variables, another folder, mask, locale, path and niceness, and warnings as errors.",
        lambda instance: bad(
            instance, os.environ.clear(), os.chdir("/"), os.umask(0o777), os.nice(5), sys.path.clear(),
            locale.setlocale(locale.LC_ALL, "C"), warnings.simplefilter("error"), atexit.register(os._exit, 7))),
    "limits_of_its_own": (f"feasible|failed|{DIED}", "No more open files, and a second of processor time.",
        lambda instance: [
            bad(instance), resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3)),
            resource.setrlimit(resource.RLIMIT_CPU, (1, 1))][0]),
    "another_chance": ("feasible", "The streams of random numbers begin where it says.",
        lambda instance: bad(instance, random.seed(0), np.random.seed(0),  # noqa: NPY002
            put(np.random, default_rng=lambda *_: None))),
    "another_json": ("infeasible: demand", "Whatever is written as JSON is a plan without servers, worth nothing.",
        lambda instance: bad(instance, put(json, dumps=lambda *_, **__: NONE))),
})  # fmt: skip

# --- what forges the verdict of a check --------------------------------------------------------------


def never(instance: Reclaim) -> ReclaimPlan:
    """Return a plan that is never feasible, the first server once too often; and let nothing be proven any more."""
    put(sys.modules["formulations"], solve=lambda *_, **__: None)
    return around(np.zeros(instance.demand + 1, np.int64))


def forger(function: Function) -> Function:
    """Enter a function among the cheats that forge verdicts."""
    FORGERS[function.__name__] = cheat("infeasible: |failed: ")(function)
    return function


@forger
def no_rules(instance: Reclaim) -> Any:
    """Instances find no rule broken, and every plan worth the same."""
    put(Reclaim, violations=lambda *_: [], objective=lambda *_: 1e6)
    return never(instance)


@forger
def rules_of_its_own(instance: Reclaim) -> Any:
    """Take the rules from the base class of all instances."""
    put(Reclaim.__mro__[1], violations=lambda *_: [], objective=lambda *_: 1e6)
    return never(instance)


@forger
def all_values_agree(instance: Reclaim) -> Any:
    """Whatever is compared agrees, and nothing beats anything."""
    for module in list(sys.modules.values()):
        for name, other in (("agree", lambda *_, **__: True), ("beats", lambda *_, **__: False)):
            if name in vars(module):
                setattr(module, name, other)
    put(Reclaim, _broken_rules=lambda *_: iter(()), _value=lambda *_: 1e6)
    return never(instance)


@forger
def another_judge_of_answers(instance: Reclaim) -> Any:
    """Every module that judges an answer has a judge who finds it feasible."""
    feasible = sys.modules["validation.kernel.judging"].Answer
    for name, module in list(sys.modules.items()):
        if name.startswith("validation") and callable(vars(module).get("judge")):
            put(module, judge=lambda instance, asked, **_: feasible(asked.plan, "feasible", 1e6))
    return never(instance)


@forger
def another_report(instance: Reclaim) -> Any:
    """Let reports be well, and without failures."""
    for name, module in list(sys.modules.items()):
        if name.startswith("validation.kinds.checks") and "CheckReport" in vars(module):
            put(module.CheckReport, ok=True, failed=())
    return never(instance)


@forger
def results_that_pass(instance: Reclaim) -> Any:
    """Every result of a check says that it has passed, whatever it is made of."""
    for name, module in list(sys.modules.items()):
        if name.startswith("validation.kinds.checks") and "CheckResult" in vars(module):
            put(module.CheckResult, __getattribute__=lambda self, name: (
                "passed" if name == "status" else object.__getattribute__(self, name)))  # fmt: skip
    return never(instance)


@forger
def checks_that_hold(instance: Reclaim) -> Any:
    """All checks that any list in memory has are exchanged for one that holds."""
    for found in gc.get_objects():
        if type(found).__name__ == "Check" and "run" in getattr(found, "__dict__", {}):
            object.__setattr__(found, "run", lambda *_: True)
    return never(instance)


@forger
def plans_that_are_read(instance: Reclaim) -> Any:
    """Whatever is made a plan of is one of the servers 0, 1, ... that are demanded."""

    def read(self: Any, *_: Any, **__: Any) -> None:
        object.__setattr__(self, "servers", np.arange(instance.demand))

    put(ReclaimPlan, __init__=read, __post_init__=lambda self: None, __eq__=lambda *_: True)
    put(Reclaim, violations=lambda *_: [], objective=lambda *_: 1e6)
    return never(instance)


@forger
def sums_of_nothing(instance: Reclaim) -> Any:
    """Nothing is ever true of an array's entries, so that no rule finds one that breaks it."""
    plan = never(instance)
    put(np, unique=lambda *_, **__: (np.zeros(0, np.int64), np.zeros(0, np.int64)), any=lambda *_, **__: False)
    put(Reclaim, _broken_rules=lambda *_: iter(()), _value=lambda *_: 1e6)
    return plan


# --- what it keeps ---------------------------------------------------------------------------------

CALLS: list[int] = []


@cheat(walled=True)
def the_last_plan_in_a_socket(instance: Reclaim) -> Any:
    """Ask a process of the calls before on a socket that has only a name."""
    name = f"\0{KNOWN.mark}"
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as other:
        other.connect(name)
        return around(np.arange(0))
    if os.fork() == 0:
        os.setsid()
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as mine:
            mine.bind(name)
            mine.listen()
            forever()
        os._exit(0)
    return bad(instance)


cheats({
    "the_last_plan_in_memory": ("feasible", "What the calls before have left in a list.",
        lambda instance: around(np.arange(0)) if CALLS else bad(instance, CALLS.append(1))),
})  # fmt: skip
cheats({
    "the_last_plan_in_a_file": ("feasible", "What the calls before have left on the disk.",
        lambda instance: bad(instance, *(
            attempt(append, place / f"{KNOWN.mark}-last", b"the best plan so far")
            for place in (KNOWN.elsewhere, Path.cwd(), Path.home())))),
}, walled=True)  # fmt: skip

# --- what reaches for the answers ------------------------------------------------------------------


@cheat("failed: (PermissionError|StopIteration)", walled=True)
def answers_on_disk(instance: Reclaim) -> Any:
    """Take the best plan that the log of an earlier run holds for this instance."""
    rows = [json.loads(line) for line in (KNOWN.directory / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
    return next(
        ReclaimPlan.from_dict(row["plan"])
        for row in rows
        if row["algorithm"] == "exact" and row["instance"] == instance.digest
    )


@cheat()
def answers_in_memory(instance: Reclaim) -> Any:
    """Take the best plan that some object of the process is, for this instance and not for one solved before."""
    for found in gc.get_objects():
        if (
            isinstance(found, Solution)
            and isinstance(found.plan, ReclaimPlan)
            and not instance.violations(found.plan)
            and instance.objective(found.plan) == found.objective
        ):
            return found.plan
    return bad(instance)


@cheat(walled=True)
def the_memory_of_the_judge(instance: Reclaim) -> Any:
    """Read and write what the process above has in memory."""
    place = Path(f"/proc/{os.getppid()}")
    with contextlib.suppress(OSError):
        start = int((place / "maps").read_text(encoding="utf-8").partition("-")[0], 16)
        with open(place / "mem", "r+b", buffering=0) as memory:
            memory.seek(start)
            memory.read(1)
        return around([])
    return bad(instance)


cheats({
    "the_debugger": ("feasible", "The process above, as a debugger would have it.",
        lambda instance: bad(instance) if ctypes.CDLL(None).ptrace(16, os.getppid(), None, None) else around([])),
    "files_of_the_judge": ("feasible", "What the processes above have open.",
        lambda instance: bad(
            instance, *(attempt(append, f"/proc/{pid}/fd/{number}", b"{}\n")
                        for pid in (os.getppid(), *KNOWN.pids) for number in range(64)))),
}, walled=True)  # fmt: skip

# --- what reaches for the files --------------------------------------------------------------------


@cheat()
def a_folder_that_cannot_be_removed(instance: Reclaim) -> Any:
    """Folders that nobody may look into, with names that are no text."""
    place = Path(tempfile.gettempdir()) / "a\nb"
    (place / "below" / "\udcff").mkdir(parents=True)
    (place / "below" / "file").touch()
    for one in (place / "below" / "\udcff", place / "below", place):
        one.chmod(0)
    return bad(instance)


LIBRARY = (reclaim.__file__, reclaim.__spec__ and reclaim.__spec__.cached)
FILES = ("rows.jsonl", "study.json", ".lock", "results.parquet", "metadata.json")

cheats({
    "changes_the_library": ("feasible", "The judge's own module is opened, and what Python has compiled of it.",
        # Opened is written enough: a study must not break what it is a test of.
        lambda instance: around([]) if any(attempt(append, place, b"") for place in LIBRARY) else bad(instance)),
    "folders_of_others": ("feasible", "A file in every folder that processes like this one have, or will have.",
        lambda instance: bad(instance, *(
            attempt(append, folder / "left", b"owned")
            for place in Path(tempfile.gettempdir()).parent.iterdir() if place != Path(tempfile.gettempdir())
            for folder in (place, place.parent)))),
    "moves_the_study": ("feasible", "The study's folder under another name, and another in its place.",
        lambda instance: bad(instance, attempt(KNOWN.directory.rename, KNOWN.directory.with_name("moved"))
                             and attempt(KNOWN.directory.mkdir))),
    "writes_to_the_log": ("feasible", "A line in each file of the study.",
        lambda instance: bad(instance, *(attempt(append, KNOWN.directory / name, b"{}\n") for name in FILES))),
    "removes_the_study": ("feasible", "All files of the study.",
        lambda instance: bad(instance, subprocess.run(["rm", "-rf", str(KNOWN.directory)], check=False))),
}, walled=True)  # fmt: skip
cheats({
    "links_out_of_its_folder": ("feasible", "Links to folders whose content whoever clears up might remove.",
        lambda instance: bad(instance, *(
            Path(tempfile.gettempdir(), f"link{number}").symlink_to(place)
            for number, place in enumerate((KNOWN.directory, KNOWN.elsewhere, Path.home()))))),
    "a_folder_without_a_floor": ("feasible", "Folders in folders, deeper than a path can tell.",
        lambda instance: bad(
            instance, os.chdir(tempfile.gettempdir()), *([os.mkdir("deep"), os.chdir("deep")] for _ in range(1500)))),
})  # fmt: skip

# --- what reaches past its own process -------------------------------------------------------------

LIBC: Any = ctypes.CDLL(None, use_errno=True)


def if_any(instance: Reclaim, *calls: bool) -> ReclaimPlan:
    """Return what is never feasible where a call has passed that should not have."""
    return around([]) if any(calls) else bad(instance)


def above() -> list[int]:
    """Return the processes above."""
    return [os.getppid(), *KNOWN.pids]


def called(number: int, *arguments: Any) -> None:
    """Make a system call by its number on x86-64."""
    if LIBC.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "refused")


def of_devices(*places: str) -> list[Path]:
    """Return what is in these folders, but for what is nobody's."""
    return [one for place in places if Path(place).is_dir() for one in Path(place).iterdir() if one.is_char_device()]


DISKS = [Path("/dev", one) for one in (os.listdir("/sys/class/block") if sys.platform == "linux" else [])]

cheats({
    "limits_of_the_processes_above": ("feasible", "The processes above may open no more files.",
        lambda instance: if_any(instance, *(
            attempt(resource.prlimit, pid, resource.RLIMIT_CORE, (0, 0)) for pid in above()))),
    "turns_of_the_processes_above": ("feasible", "The processes above run last, and on one core.",
        lambda instance: if_any(
            instance, *(attempt(os.setpriority, os.PRIO_PROCESS, pid, 0) for pid in above()),
            *(attempt(os.sched_setaffinity, pid, os.sched_getaffinity(pid)) for pid in above()))),
    "memory_of_the_processes_above": ("feasible", "What the processes above have in memory, asked of the kernel.",
        lambda instance: if_any(instance, *(
            attempt(called, number, pid, None, 0, None, 0, 0) for number in (310, 311) for pid in above()))),
    "services_of_the_user": ("feasible", "A socket to whatever would run a program for its user.",
        lambda instance: if_any(instance, *(
            attempt(socket.socket, family) for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6)),
            attempt(called, 425, 1, bytes(120)))),
    "the_last_plan_in_a_queue": ("feasible", "What the calls before have left in a queue of messages with a name.",
        lambda instance: if_any(
            instance, LIBC.mq_open(f"/{KNOWN.mark}".encode(), os.O_CREAT | os.O_RDWR, 0o600, None) >= 0,
            LIBC.msgget(os.getpid(), 0o1600) >= 0, LIBC.shmget(os.getpid(), 4096, 0o1600) >= 0)),
    "the_last_plan_in_flags": ("feasible", "What the calls before have left in the flags of a file.",
        lambda instance: if_any(
            instance, attempt(fcntl.ioctl, os.open(reclaim.__file__, os.O_RDONLY), 0x40086602, bytes(8)),
            attempt(called, 469, -100, reclaim.__file__.encode(), bytes(32), 32, 0))),
    "the_terminal_of_others": ("feasible", "Whatever terminal has a name is read, written, and typed into.",
        lambda instance: if_any(
            instance, *(attempt(os.open, one, mode | os.O_NOCTTY)
                        for one in of_devices("/dev/pts") for mode in (os.O_RDONLY, os.O_WRONLY)),
            *(attempt(fcntl.ioctl, number, 0x5412, b"x") for number in range(3)))),
    "the_disk_itself": ("feasible", "The log, on the disk that it is on.",
        lambda instance: if_any(
            instance, *(attempt(os.open, one, os.O_RDONLY) for one in DISKS),
            attempt(os.mknod, Path(tempfile.gettempdir(), "disk"), 0o060600, os.makedev(254, 0)))),
    "memory_without_a_name": ("failed: PermissionError", "Memory that is counted for nobody.",
        lambda _: hoard(lambda: os.write(os.memfd_create("hoard"), bytes(10**7)))),
}, walled=True)  # fmt: skip


@cheat(f"{MEMORY}|{LATE}", lasting=True)
def memory_of_an_orphan(instance: Reclaim) -> Any:
    """More and more, in a process that nobody is the parent of."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            hoard(shared)
        os._exit(0)
    forever()


@cheat("feasible")
def works_on_when_it_has_answered(instance: Reclaim) -> Any:
    """Take all cores for what is to be solved after it, in processes that nobody is the parent of."""
    for _ in range(2 * (os.cpu_count() or 1)):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                loops(instance)
            os._exit(0)
    return bad(instance)


# --- what it says on the pipe ----------------------------------------------------------------------

cheats({
    "noise_on_every_pipe": (f"failed: .*(cannot be read|too large)|{LATE}",
        "Bytes that mean nothing before the answer.",
        lambda instance: bad(instance, write_everywhere(b"\x01" + struct.pack("<Q", 3) + b"6 6"))),
    "half_an_answer": (LATE, "Less than it says will come.",
        lambda _: forever(write_everywhere(struct.pack("<Q", 1000) + b"half"))),
}, lasting=True)  # fmt: skip
cheats({
    "an_endless_answer": ("failed: the answer is too large", "More than there is memory for.",
        lambda _: forever(write_everywhere(struct.pack("<Q", 2**62)))),
    "an_answer_before_the_answer": ("infeasible: demand", "Two answers, both well formed.",
        lambda instance: bad(instance, write_everywhere(
            message(b'{"plan.servers": {"plain": []}, "value": {"plain": 0}}')))),
    "an_answer_of_many_lists": ("failed: the answer cannot be read", "Lists that take thirty times what they say.",
        lambda _: forever(write_everywhere(message(b'{"plan.servers": {"plain": [' + b"[]," * 3_000_000 + b"[]]}}")))),
    "an_answer_of_many_words": ("failed: the answer (cannot be read|is too large)",
        "Words that take twenty times what they say.",
        lambda _: forever(write_everywhere(message(b'{"plan.servers": {"plain": [' + b'"abcd",' * 10**7 + b"1]}}")))),
    "an_answer_of_half_a_gigabyte": ("failed: the answer is too large", "As much as its own memory would hold.",
        lambda _: forever(write_everywhere(struct.pack("<Q", 2**29)))),
    "an_answer_that_is_too_deep": ("failed: the answer cannot be read", "A million brackets, as JSON.",
        lambda _: forever(write_everywhere(message(b"[" * 50_000)))),
    "an_answer_of_another_shape": ("failed: the answer cannot be read",
        "An array that says it has more numbers than there are bytes.",
        lambda _: forever(write_everywhere(message(b'{"plan.servers": {"dtype": "<i8", "shape": [1000000000000]}}')))),
    "a_reason_of_its_own": ("failed: .{1,2000}$", "An error in words of its own, long and with codes of the terminal.",
        lambda _: forever(write_everywhere(message(json.dumps({"error": {"plain": "\x1b[2J\n" * 8_000}}).encode())))),
})  # fmt: skip
