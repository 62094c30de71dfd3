"""Heuristics that cheat, or break what they can reach, each in a way of its own; honest ones beside them.

All are of ``aryl.reclaim``.  What may come of each is told with it, and never more than the plan that
:func:`bad` finds is worth.
"""

from __future__ import annotations

import atexit
import builtins
import concurrent.futures
import contextlib
import ctypes
import fcntl
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
from instances.aryl.reclaim import Reclaim, ReclaimPlan

__all__ = ["CHEATS", "HONEST", "KNOWN", "Cheat", "Known", "bad", "honest"]

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
        Whether only the kernel (Landlock) keeps it from what it tries; not to be run where there is none.
    """

    function: Function
    outcome: str
    lasting: bool
    walled: bool


CHEATS: dict[str, Cheat] = {}
HONEST: dict[str, Function] = {}
"""Heuristics that do unusual things and may: their plans are those of :func:`honest`."""

DIED = "failed: the process died: "
LATE = "failed: time limit"


def cheat(outcome: str = "feasible", *, lasting: bool = False, walled: bool = False) -> Callable[[Function], Function]:
    """Enter a function among the cheats."""

    def enter(function: Function) -> Function:
        CHEATS[function.__name__] = Cheat(function, outcome, lasting, walled)
        return function

    return enter


def may(function: Function) -> Function:
    """Enter a function among the honest ones."""
    HONEST[function.__name__] = function
    return function


def bad(instance: Reclaim) -> ReclaimPlan:
    """A feasible plan that is worse than the optimum on the instances of the study: the busiest servers."""
    return ReclaimPlan(servers=np.argsort(-instance.hosts.sum(axis=0), kind="stable")[: instance.demand])


def around(servers: Any) -> ReclaimPlan:
    """A plan that its constructor has not seen."""
    plan = object.__new__(ReclaimPlan)
    object.__setattr__(plan, "servers", servers)
    return plan


def forever() -> NoReturn:
    """Sleep until somebody ends it."""
    while True:
        time.sleep(3600)


def pipes() -> Iterator[int]:
    """Numbers of files that may be open beyond standard input, output and error."""
    yield from range(3, 256)


def write_everywhere(message: bytes) -> None:
    """Say something to whoever reads any of the open files."""
    for number in pipes():
        with contextlib.suppress(OSError):
            os.write(number, message)


def message(head: bytes, began: bytes = b"") -> bytes:
    """An answer as the library's own process would send it."""
    return began + struct.pack("<Q", 8 + len(head)) + struct.pack("<Q", len(head)) + head


# --- honest -----------------------------------------------------------------------------------------


@may
def honest(instance: Reclaim) -> ReclaimPlan:
    """The paper's heuristic."""
    return server_fraction(instance)


@may
def a_pool(instance: Reclaim) -> ReclaimPlan:
    """Processes of its own."""
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
    """A program that it starts and waits for, and a file that it reads back."""
    with tempfile.NamedTemporaryFile("w+") as file:
        subprocess.run(["echo", "fine"], stdout=file, check=True)
        assert Path(file.name).read_text(encoding="utf-8") == "fine\n"
    return server_fraction(instance)


# --- what it returns --------------------------------------------------------------------------------


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


@cheat()
def arrays_of_its_own_class(instance: Reclaim) -> Any:
    """The array lies about itself."""
    return around(bad(instance).servers.view(Empty))


class Small(float):
    """A number that is less than any other."""

    def __lt__(self, other: object) -> bool:
        return True

    def __float__(self) -> float:
        return 0.0


@cheat("feasible|infeasible|failed")
def numbers_of_its_own_class(instance: Reclaim) -> Any:
    """The numbers lie about themselves."""
    return around([Small(one) for one in bad(instance).servers])


@cheat("failed: .*must be a whole number")
def around_the_constructor(instance: Reclaim) -> Any:
    """Numbers that the plan's class refuses."""
    return around(np.array([-1.5, np.nan]))


@cheat("failed: .*servers")
def not_a_number(instance: Reclaim) -> Any:
    """NaN, which compares with nothing."""
    return around(np.full(instance.demand, np.nan))


@cheat("failed: .*servers")
def infinity(instance: Reclaim) -> Any:
    """Minus infinity."""
    return around([-np.inf])


@cheat("failed: .*servers")
def a_number_beyond_64_bits(instance: Reclaim) -> Any:
    """A whole number that fits no array."""
    return around([10**400])


@cheat("failed: .*digits")
def a_number_of_ten_thousand_digits(instance: Reclaim) -> Any:
    """A whole number that Python prints only when told to."""
    return around([10**10_000])


@cheat("failed: .*complex128 cannot be sent")
def complex_numbers(instance: Reclaim) -> Any:
    """Numbers without an order."""
    return around(np.array([1j]))


@cheat("failed: .*servers")
def words(instance: Reclaim) -> Any:
    """Numbers as words."""
    return around([str(one) for one in bad(instance).servers])


@cheat("failed: .*cannot be sent")
def objects_in_an_array(instance: Reclaim) -> Any:
    """An object that runs a program where it is unpickled."""

    class Runs:
        def __reduce__(self) -> Any:
            return os.system, (f"touch {KNOWN.elsewhere}/unpickled",)

    return around(np.array([Runs()], object))


@cheat("failed: RecursionError")
def a_list_that_is_too_deep(instance: Reclaim) -> Any:
    """A hundred thousand brackets."""
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    return around(deep)


@cheat("failed: (RecursionError|ValueError)")
def a_list_within_itself(instance: Reclaim) -> Any:
    """A list that is its own member."""
    ring: list[Any] = []
    ring.append(ring)
    return around(ring)


@cheat(LATE + "|failed: .*[mM]emory", lasting=True)
def a_list_without_end(instance: Reclaim) -> Any:
    """A list that goes on for ever."""

    class Endless(list[int]):
        def __iter__(self) -> Iterator[int]:
            while True:
                yield 0

    return around(Endless())


@cheat("failed: TypeError")
def a_generator(instance: Reclaim) -> Any:
    """The servers one by one."""
    return around(iter(bad(instance).servers))


@cheat("failed: .*memory|failed: .*Memory")
def a_plan_of_terabytes(instance: Reclaim) -> Any:
    """An array that takes no memory until it is sent."""
    return around(np.broadcast_to(0, 10**12))


@cheat("failed: .*too large|failed: .*[mM]emory")
def a_plan_of_gigabytes(instance: Reclaim) -> Any:
    """A small array, over and over, where each is copied by whoever reads it."""
    return around([np.zeros(10**6)] * 250)


@cheat("failed: .*must be a ReclaimPlan, got Reclaim")
def the_instance(instance: Reclaim) -> Any:
    """The question for an answer."""
    return instance


@cheat("failed: .*must be a ReclaimPlan, got type")
def the_class(instance: Reclaim) -> Any:
    """The plan's class for a plan."""
    return ReclaimPlan


@cheat("declined")
def nothing(instance: Reclaim) -> Any:
    """No answer, politely."""
    return None


@cheat("infeasible: ")
def one_server_many_times(instance: Reclaim) -> Any:
    """The cheapest server, counted as often as is asked for."""
    return around(np.zeros(instance.demand, int))


@cheat("failed: .*must be a ReclaimPlan, got ")
def a_name_that_writes_on_the_terminal(instance: Reclaim) -> Any:
    """Something whose class is named with codes that move the cursor."""
    return type("\x1b[2J\x1b]0;owned\x07\n", (), {})()


# --- what it raises ---------------------------------------------------------------------------------


@cheat("failed: RuntimeError: too hard")
def raises_where_it_is_hard(instance: Reclaim) -> Any:
    """An ordinary exception."""
    raise RuntimeError("too hard")


@cheat("failed: Sudden")
def raises_what_nobody_catches(instance: Reclaim) -> Any:
    """No ``Exception``, but what is above it."""

    class Sudden(BaseException):
        pass

    raise Sudden


@cheat("failed: KeyboardInterrupt")
def interrupts(instance: Reclaim) -> Any:
    """As if someone had pressed Ctrl-C."""
    raise KeyboardInterrupt


@cheat("failed: GeneratorExit")
def closes_a_generator(instance: Reclaim) -> Any:
    """As if someone had closed it."""
    raise GeneratorExit


@cheat("failed: MemoryError")
def says_that_memory_is_short(instance: Reclaim) -> Any:
    """As if memory had run out."""
    raise MemoryError


@cheat("failed: RecursionError")
def recurses(instance: Reclaim) -> Any:
    """Itself, for ever."""
    return recurses(instance)


@cheat("failed: .*cannot be printed|" + DIED)
def raises_what_cannot_be_printed(instance: Reclaim) -> Any:
    """An exception whose message ends the process."""

    class Unprintable(Exception):  # noqa: N818
        def __str__(self) -> str:
            raise SystemExit(0)

    raise Unprintable


@cheat("failed: ValueError: ")
def raises_codes_of_the_terminal(instance: Reclaim) -> Any:
    """A message that clears the screen."""
    raise ValueError("\x1b[2J\x1b[31mall is well\x1b]0;title\x07\u202e\x00")


@cheat("failed: .{1,2000}$")
def raises_at_length(instance: Reclaim) -> Any:
    """A message of ten million letters, and a name of as many."""
    raise type("E" * 10**7, (Exception,), {})("x" * 10**7)


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


@cheat(r"failed: ValueError \(zero, line 1\)$")
def raises_from_an_endless_file(instance: Reclaim) -> Any:
    """An exception whose line of source is in a file without end."""
    exec(compile("raise ValueError", "/dev/zero", "exec"))


# --- how it ends ------------------------------------------------------------------------------------


@cheat("failed: SystemExit: 0")
def exits(instance: Reclaim) -> Any:
    """As a program that is done."""
    sys.exit(0)


@cheat(DIED + "it exited with code 0")
def leaves_as_if_well(instance: Reclaim) -> Any:
    """The process ends, and says that all is well."""
    os._exit(0)


@cheat(DIED + "it exited with code 1")
def leaves(instance: Reclaim) -> Any:
    """The process ends."""
    os._exit(1)


@cheat(DIED + "it exited with code 0")
def becomes_another_program(instance: Reclaim) -> Any:
    """The process goes on as a program that does nothing."""
    os.execvp("true", ["true"])


@cheat(DIED + "killed by SIGKILL")
def kills_itself(instance: Reclaim) -> Any:
    """SIGKILL."""
    os.kill(os.getpid(), signal.SIGKILL)
    forever()


@cheat(DIED + "killed by SIGSEGV")
def crashes(instance: Reclaim) -> Any:
    """A null pointer is followed."""
    ctypes.string_at(0)


@cheat(DIED + "killed by SIGABRT")
def aborts(instance: Reclaim) -> Any:
    """As a failed assertion in C."""
    os.abort()


@cheat(LATE, lasting=True)
def stops_itself(instance: Reclaim) -> Any:
    """SIGSTOP: there, and never to go on."""
    os.kill(os.getpid(), signal.SIGSTOP)


# --- what does not end ------------------------------------------------------------------------------


@cheat(LATE, lasting=True)
def loops(instance: Reclaim) -> Any:
    """An endless loop."""
    while True:
        pass


@cheat(LATE, lasting=True)
def sleeps_in_c(instance: Reclaim) -> Any:
    """It keeps the interpreter's lock."""
    ctypes.PyDLL(None).sleep(3600)


@cheat(LATE, lasting=True)
def ignores_all_signals(instance: Reclaim) -> Any:
    """Whatever can be blocked or ignored is."""
    for number in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}:
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    forever()


@cheat(LATE, lasting=True)
def waits_for_itself(instance: Reclaim) -> Any:
    """A lock that it holds."""
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


@cheat(LATE, lasting=True)
def waits_for_a_stopped_child(instance: Reclaim) -> Any:
    """A child that has stopped."""
    child = os.fork()
    if not child:
        os.kill(os.getpid(), signal.SIGSTOP)
    os.waitpid(child, 0)


@cheat()
def asks_the_terminal(instance: Reclaim) -> Any:
    """Standard input, where there is none, and the terminal behind it."""
    with contextlib.suppress(EOFError):
        input("plan? ")
    with contextlib.suppress(OSError), open("/dev/tty", "w", encoding="utf-8") as terminal:
        terminal.write("owned")
        return around([])
    return bad(instance)


@cheat("failed: .*closed its pipe|" + LATE, lasting=True)
def closes_everything(instance: Reclaim) -> Any:
    """Nothing is open, and it lives on."""
    os.closerange(0, 4096)
    forever()


# --- what takes what there is -----------------------------------------------------------------------


@cheat("failed: .*[mM]emory")
def memory_at_once(instance: Reclaim) -> Any:
    """Eight terabytes."""
    return np.ones(10**12)


@cheat("failed: .*[mM]emory|" + LATE, lasting=True)
def memory_bit_by_bit(instance: Reclaim) -> Any:
    """More and more."""
    kept = []
    while True:
        kept.append(np.ones(10**6))


@cheat("failed: .*[mM]emory|" + LATE, lasting=True)
def memory_that_is_shared(instance: Reclaim) -> Any:
    """More and more, of the kind that processes share."""
    kept = []
    while True:
        shared = mmap.mmap(-1, 10**7)
        shared.write(bytes(10**7))
        kept.append(shared)


@cheat("failed: .*[mM]emory|" + LATE, lasting=True)
def memory_of_children(instance: Reclaim) -> Any:
    """More and more, in processes of its own."""
    kept = []
    for _ in range(3):
        if os.fork() == 0:
            break
    while True:
        kept.append(np.ones(10**6))
        time.sleep(0.01)


@cheat("failed: .*[mM]emory|" + LATE, lasting=True)
def the_disk(instance: Reclaim) -> Any:
    """Files in its own folder, more and more of them."""
    for number in range(10**9):
        Path(tempfile.gettempdir(), str(number)).write_bytes(bytes(10**7))


@cheat("failed: .*too many processes|" + LATE, lasting=True)
def a_fork_bomb(instance: Reclaim) -> Any:
    """Twice as many processes every moment."""
    while True:
        os.fork()
        time.sleep(0.01)


@cheat()
def floods(instance: Reclaim) -> Any:
    """A hundred megabytes on standard output and error, from Python and a program."""
    for number in (1, 2):
        for _ in range(100):
            os.write(number, b"\x1b[2J" * 125_000)
    subprocess.run("head -c 50000000 /dev/zero; head -c 50000000 /dev/zero >&2", shell=True, check=False)
    return bad(instance)


# --- processes --------------------------------------------------------------------------------------


@cheat()
def two_answers(instance: Reclaim) -> Any:
    """Parent and child both return."""
    return bad(instance) if os.fork() else ReclaimPlan(servers=np.array([], int))


@cheat()
def a_daemon_left_running(instance: Reclaim) -> Any:
    """A program in a session of its own that nobody is the parent of."""
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


@cheat()
def a_program_left_running(instance: Reclaim) -> Any:
    """A program that has every open file of the process, and writes to them."""
    program = "for n in 3 4 5 6 7 8 9; do echo owned >&$n; done 2>/dev/null; exec sleep 54321"
    subprocess.Popen(["bash", "-c", program], close_fds=False)
    return bad(instance)


@cheat()
def a_thread_left_running(instance: Reclaim) -> Any:
    """A thread that goes on when the answer is given."""

    def spin() -> None:
        while True:
            pass

    threading.Thread(target=spin, daemon=True).start()
    return bad(instance)


@cheat()
def an_executor_left_running(instance: Reclaim) -> Any:
    """Futures that nobody waits for, which Python itself would at the end."""
    concurrent.futures.ThreadPoolExecutor(1).submit(time.sleep, 3600)
    atexit.register(forever)
    return bad(instance)


# --- signals and timers -----------------------------------------------------------------------------


@cheat(walled=True)
def kills_its_keeper(instance: Reclaim) -> Any:
    """The process that will judge it."""
    for number in (signal.SIGKILL, signal.SIGSTOP):
        with contextlib.suppress(OSError):
            os.kill(os.getppid(), number)
    return bad(instance)


@cheat(walled=True)
def kills_the_study(instance: Reclaim) -> Any:
    """The process that leads the study."""
    for pid in KNOWN.pids:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGTERM)
    return bad(instance)


@cheat(DIED + "killed by SIGKILL")
def kills_its_group(instance: Reclaim) -> Any:
    """All processes of the group that it is in."""
    os.killpg(0, signal.SIGKILL)
    forever()


@cheat(walled=True)
def signals_by_a_file(instance: Reclaim) -> Any:
    """A pipe whose readiness the kernel is to tell the judge with SIGKILL."""
    reading, writing = os.pipe()
    with contextlib.suppress(OSError):
        fcntl.fcntl(reading, fcntl.F_SETOWN, os.getppid())
        fcntl.fcntl(reading, 10, signal.SIGKILL)  # F_SETSIG
        fcntl.fcntl(reading, fcntl.F_SETFL, fcntl.fcntl(reading, fcntl.F_GETFL) | os.O_ASYNC)
        os.write(writing, b"x")
    return bad(instance)


@cheat("feasible|" + DIED + "it exited with code 9")
def a_timer_left_on(instance: Reclaim) -> Any:
    """An alarm that is due when others would run."""
    signal.signal(signal.SIGALRM, lambda *_: os._exit(9))
    signal.setitimer(signal.ITIMER_REAL, 5.0)
    return bad(instance)


# --- what changes the library -----------------------------------------------------------------------


@cheat()
def another_solver(instance: Reclaim) -> Any:
    """The exact side is to find something worse."""
    for name in ("formulations", "formulations.engine.solving"):
        vars(sys.modules[name])["solve"] = lambda *_, **__: 99
    return bad(instance)


@cheat()
def another_judge(instance: Reclaim) -> Any:
    """Every plan is feasible and worth nothing."""
    Reclaim._value = lambda self, plan: 0  # type: ignore[method-assign]
    Reclaim.objective = lambda self, plan: 0.0  # type: ignore[method-assign]
    Reclaim.violations = lambda self, plan: []  # type: ignore[method-assign]
    return bad(instance)


@cheat()
def another_clock(instance: Reclaim) -> Any:
    """Time stands still while it works."""
    time.perf_counter = time.monotonic = lambda: 0.0
    deadline = time.time() + 0.2
    while time.time() < deadline:
        pass
    return bad(instance)


@cheat("infeasible: demand")
def another_json(instance: Reclaim) -> Any:
    """Whatever is written as JSON is a plan without servers, worth nothing."""
    json.dumps = lambda *_, **__: (
        '{"plan.servers": {"plain": []}, "value": {"plain": 0}, "status": {"plain": "optimal"}}'
    )
    return bad(instance)


@cheat("feasible|failed|infeasible")
def another_numpy(instance: Reclaim) -> Any:
    """Sums are 0, and arrays empty."""
    plan = bad(instance)
    np.sum = np.add = np.asarray = np.ascontiguousarray = lambda *_, **__: np.zeros(0)  # type: ignore[assignment]
    return plan


@cheat("feasible|failed|infeasible|declined")
def other_builtins(instance: Reclaim) -> Any:
    """Everything has length 0 and is an instance of everything."""
    plan = bad(instance)
    builtins.len = lambda *_: 0
    builtins.isinstance = lambda *_: True
    return plan


@cheat()
def another_chance(instance: Reclaim) -> Any:
    """The streams of random numbers begin where it says."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    np.random.default_rng = lambda *_: None  # type: ignore[assignment]
    return bad(instance)


@cheat("feasible|infeasible: demand")
def frames_above(instance: Reclaim) -> Any:
    """The instances in the frames of its callers become trivial."""
    frame: Any = sys._getframe()
    while frame is not None:
        for name, value in list(frame.f_locals.items()):
            if isinstance(value, Reclaim):
                object.__setattr__(value, "demand", 0)
                object.__setattr__(value, "hosts", np.zeros_like(value.hosts))
            frame.f_locals[name] = value
        frame = frame.f_back
    return bad(instance)


@cheat("feasible|failed")
def traces(instance: Reclaim) -> Any:
    """Every call of the library's after it is watched, and may be held up."""
    sys.settrace(lambda frame, event, argument: frame.f_locals.clear())
    threading.settrace(sys.gettrace())
    sys.setprofile(lambda *_: None)
    return bad(instance)


@cheat("feasible|failed")
def surroundings_of_its_own(instance: Reclaim) -> Any:
    """Other variables, another folder, mask, locale, path and niceness, and warnings as errors."""
    os.environ.clear()
    os.chdir("/")
    os.umask(0o777)
    os.nice(5)
    locale.setlocale(locale.LC_ALL, "C")
    sys.path[:] = []
    warnings.simplefilter("error")
    atexit.register(os._exit, 7)
    return bad(instance)


@cheat("feasible|failed|" + DIED)
def limits_of_its_own(instance: Reclaim) -> Any:
    """No more open files, and a second of processor time."""
    plan = bad(instance)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
    resource.setrlimit(resource.RLIMIT_CPU, (1, 1))
    return plan


# --- what it keeps ----------------------------------------------------------------------------------

CALLS: list[int] = []


@cheat()
def the_last_plan_in_memory(instance: Reclaim) -> Any:
    """What the calls before have left in a list."""
    CALLS.append(1)
    return bad(instance) if len(CALLS) == 1 else around(np.arange(0))


@cheat(walled=True)
def the_last_plan_in_a_file(instance: Reclaim) -> Any:
    """What the calls before have left on the disk."""
    name = f"optgap-last-{KNOWN.pids[0] if KNOWN.pids else 0}"
    for place in (KNOWN.elsewhere / "last", Path.cwd() / name, Path.home() / name):
        with contextlib.suppress(OSError):
            place.write_text("the best plan so far", encoding="utf-8")
    return bad(instance)


@cheat(walled=True)
def the_last_plan_in_a_socket(instance: Reclaim) -> Any:
    """What a process of the calls before tells on a socket that has only a name."""
    name = f"\0optgap-{KNOWN.pids[0] if KNOWN.pids else 0}"
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


# --- what reaches for the answers -------------------------------------------------------------------


@cheat("failed: (PermissionError|StopIteration)", walled=True)
def answers_on_disk(instance: Reclaim) -> Any:
    """The best plan that the log of an earlier run holds for this instance."""
    rows = [json.loads(line) for line in (KNOWN.directory / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
    return next(
        ReclaimPlan.from_dict(row["plan"])
        for row in rows
        if row["algorithm"] == "exact" and row["instance"] == instance.digest
    )


@cheat()
def answers_in_memory(instance: Reclaim) -> Any:
    """The best plan that some object of the process is, for this instance and not for one that was solved before."""
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
    """What the process above has in memory, to read and to write."""
    place = Path(f"/proc/{os.getppid()}")
    with contextlib.suppress(OSError):
        start = int((place / "maps").read_text(encoding="utf-8").partition("-")[0], 16)
        with open(place / "mem", "r+b", buffering=0) as memory:
            memory.seek(start)
            memory.read(1)
        return around([])
    return bad(instance)


@cheat(walled=True)
def the_debugger(instance: Reclaim) -> Any:
    """The process above, as a debugger would have it."""
    if ctypes.CDLL(None).ptrace(16, os.getppid(), None, None) == 0:  # PTRACE_ATTACH
        return around([])
    return bad(instance)


@cheat(walled=True)
def files_of_the_judge(instance: Reclaim) -> Any:
    """What the processes above have open."""
    for pid in (os.getppid(), *KNOWN.pids):
        for number in range(64):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/fd/{number}", "ab", buffering=0) as file:
                file.write(b"{}\n")
    return bad(instance)


# --- what reaches for the files ---------------------------------------------------------------------


@cheat(walled=True)
def writes_to_the_log(instance: Reclaim) -> Any:
    """A line in each file of the study."""
    for name in ("rows.jsonl", "study.json", ".lock", "results.parquet", "metadata.json"):
        with contextlib.suppress(OSError), open(KNOWN.directory / name, "a", encoding="utf-8") as file:
            file.write("{}\n")
    return bad(instance)


@cheat(walled=True)
def removes_the_study(instance: Reclaim) -> Any:
    """All files of the study."""
    subprocess.run(["rm", "-rf", str(KNOWN.directory)], check=False)
    return bad(instance)


@cheat(walled=True)
def moves_the_study(instance: Reclaim) -> Any:
    """The study's folder under another name, and another in its place."""
    with contextlib.suppress(OSError):
        KNOWN.directory.rename(KNOWN.directory.with_name("moved"))
        KNOWN.directory.mkdir()
    return bad(instance)


@cheat(walled=True)
def changes_the_library(instance: Reclaim) -> Any:
    """A line in the judge's own module, and in what Python has compiled of it."""
    import instances.aryl.reclaim as module

    for place in (module.__file__, module.__spec__ and module.__spec__.cached):
        with contextlib.suppress(OSError), open(str(place), "ab") as file:
            file.write(b"")  # Opened is written enough: a study must not break what it is a test of.
            return around([])
    return bad(instance)


@cheat(walled=True)
def folders_of_others(instance: Reclaim) -> Any:
    """A file in every folder that processes like this one have, or will have."""
    for place in Path(tempfile.gettempdir()).parent.iterdir():
        if place != Path(tempfile.gettempdir()):
            with contextlib.suppress(OSError):
                (place / "left").write_text("owned", encoding="utf-8")
                (place.parent / "left").write_text("owned", encoding="utf-8")
    return bad(instance)


@cheat()
def links_out_of_its_folder(instance: Reclaim) -> Any:
    """Links to folders whose content whoever clears up might remove."""
    for number, place in enumerate((KNOWN.directory, KNOWN.elsewhere, Path.home())):
        Path(tempfile.gettempdir(), f"link{number}").symlink_to(place)
    return bad(instance)


@cheat()
def a_folder_that_cannot_be_removed(instance: Reclaim) -> Any:
    """Folders that nobody may look into, with names that are no text."""
    place = Path(tempfile.gettempdir()) / "a\nb"
    (place / "below" / "\udcff").mkdir(parents=True)
    (place / "below" / "file").touch()
    for one in (place / "below" / "\udcff", place / "below", place):
        one.chmod(0)
    return bad(instance)


@cheat()
def a_folder_without_a_floor(instance: Reclaim) -> Any:
    """Folders in folders, deeper than a path can tell."""
    os.chdir(tempfile.gettempdir())
    for _ in range(1500):
        os.mkdir("deep")
        os.chdir("deep")
    return bad(instance)


# --- what it says on the pipe -----------------------------------------------------------------------


@cheat("failed: .*(cannot be read|too large)|" + LATE, lasting=True)
def noise_on_every_pipe(instance: Reclaim) -> Any:
    """Bytes that mean nothing before the answer."""
    write_everywhere(b"\x01" + struct.pack("<Q", 3) + b"6 6")
    return bad(instance)


@cheat(LATE, lasting=True)
def half_an_answer(instance: Reclaim) -> Any:
    """Less than it says will come."""
    write_everywhere(struct.pack("<Q", 1000) + b"half")
    forever()


@cheat("failed: the answer is too large")
def an_endless_answer(instance: Reclaim) -> Any:
    """More than there is memory for."""
    write_everywhere(struct.pack("<Q", 2**62))
    forever()


@cheat("infeasible: demand")
def an_answer_before_the_answer(instance: Reclaim) -> Any:
    """Two answers, both well formed."""
    write_everywhere(message(b'{"plan.servers": {"plain": []}, "value": {"plain": 0}}'))
    return bad(instance)


@cheat("failed: the answer cannot be read")
def an_answer_that_is_too_deep(instance: Reclaim) -> Any:
    """A million brackets, as JSON."""
    write_everywhere(message(b"[" * 50_000))
    forever()


@cheat("failed: the answer cannot be read")
def an_answer_of_another_shape(instance: Reclaim) -> Any:
    """An array that says it has more numbers than there are bytes."""
    write_everywhere(message(b'{"plan.servers": {"dtype": "<i8", "shape": [1000000000000]}}'))
    forever()


@cheat("failed: .{1,2000}$")
def a_reason_of_its_own(instance: Reclaim) -> Any:
    """An error in words of its own, long and with codes of the terminal."""
    write_everywhere(message(json.dumps({"error": {"plain": "\x1b[2J\n" * 8_000}}).encode()))
    forever()
