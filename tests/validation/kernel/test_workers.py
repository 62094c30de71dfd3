"""Workers survive whatever they run, and leave nothing behind."""

import contextlib
import ctypes
import faulthandler
import functools
import io
import math
import multiprocessing
import multiprocessing.connection
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import validation
from validation.kernel.isolation import Apart
from validation.kernel.progress import Clocks
from validation.kernel.workers import Outcome, Task, describe, run_tasks

from ...processes import eventually, is_alive

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="workers are forked on Linux only, so functions may be local"
)


def run(function: Callable[..., Any], *arguments: Any, jobs: int = 1, time_limit: float = 60.0) -> list[Outcome]:
    """Outcomes in the order of the arguments, one call for each."""
    tasks = [Task((argument,), time_limit) for argument in arguments]
    outcomes = {id(outcome.task): outcome for outcome in run_tasks(function, tasks, jobs=jobs)}
    assert len(outcomes) == len(tasks)
    return [outcomes[id(task)] for task in tasks]


def pids_in(folder: Path) -> list[int]:
    return [int(path.name) for path in folder.iterdir()]


# --- what a task can do ---------------------------------------------------------------------------


@pytest.mark.parametrize("jobs", [1, 2, 7])
def test_results_come_back_with_their_tasks(jobs: int) -> None:
    outcomes = run(lambda n: n * n, *range(30), jobs=jobs)
    assert [outcome.result for outcome in outcomes] == [n * n for n in range(30)]
    assert all(outcome.reason == "" and outcome.seconds > 0 for outcome in outcomes)


def test_no_tasks_no_outcomes() -> None:
    assert list(run_tasks(print, [], jobs=4)) == []


def misbehave(how: str) -> Any:
    faulthandler.disable()  # Its trace of a crash that is meant would only alarm the reader.
    match how:
        case "well":
            return os.getpid()
        case "raise":
            raise ValueError("no such\n  server")
        case "raise without words":
            raise ZeroDivisionError
        case "raise at length":
            raise ValueError("x" * 100_000)
        case "raise what cannot be printed":
            raise UnprintableError
        case "SystemExit":
            sys.exit(5)
        case "KeyboardInterrupt":
            raise KeyboardInterrupt
        case "recurse":
            return misbehave(how)
        case "hang":
            while True:
                pass
        case "hang in C":
            ctypes.PyDLL(None).sleep(600)  # PyDLL keeps the interpreter's lock.
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case "segfault":
            ctypes.string_at(0)
        case "abort":
            os.abort()
        case "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "a signal without a name":
            os.kill(os.getpid(), 40)
        case "exit":
            os._exit(3)
        case "exit as if well":
            os._exit(0)
        case "close everything":
            os.closerange(3, 4096)
            while True:
                pass
        case "unpicklable":
            return lambda: None
        case "unreadable":
            return Unreadable()
    return None


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


class Unreadable:
    """Can be pickled, but not read back."""

    def __reduce__(self) -> Any:
        return int, ("not a number",)


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("raise", r"ValueError: no such server \(test_workers\.py, line \d+\)"),
        ("raise without words", r"ZeroDivisionError \(test_workers\.py, line \d+\)"),
        ("raise at length", r"ValueError: x{1000}\.\.\. \(test_workers\.py, line \d+\)"),
        ("raise what cannot be printed", r"UnprintableError: its message cannot be printed \(.*\)"),
        ("SystemExit", r"SystemExit: 5 \(test_workers\.py, line \d+\)"),
        ("KeyboardInterrupt", r"KeyboardInterrupt \(test_workers\.py, line \d+\)"),
        ("recurse", r"RecursionError: maximum recursion depth exceeded.*"),
        ("segfault", r"the process died: killed by SIGSEGV"),
        ("abort", r"the process died: killed by SIGABRT"),
        ("killed", r"the process died: killed by SIGKILL"),
        ("a signal without a name", r"the process died: killed by signal 40"),
        ("exit", r"the process died: it exited with code 3"),
        ("exit as if well", r"the process died: it exited with code 0"),
        ("close everything", r"the process died: it closed its pipe"),
        ("unpicklable", r"the result cannot be sent: .*"),
        ("unreadable", r"the result cannot be read: ValueError: .*"),
    ],
)
def test_misbehaviour_costs_one_task(how: str, reason: str) -> None:
    before, bad, after = run(misbehave, "well", how, "well")
    assert re.fullmatch(reason, bad.reason), bad.reason
    assert bad.result is None
    assert isinstance(before.result, int)
    assert isinstance(after.result, int)
    assert (before.reason, after.reason) == ("", "")
    # Whoever only raises has not hurt the worker.
    died = "the process died" in bad.reason
    assert (before.result != after.result) == died


@pytest.mark.parametrize("how", ["hang", "hang in C", "stop"])
def test_whoever_runs_past_the_limit_is_stopped(how: str) -> None:
    before, bad, after = run(misbehave, "well", how, "well", time_limit=0.5)
    assert bad.reason == "time limit: stopped after 0.5 s"
    assert bad.seconds >= 0.5
    assert before.reason == after.reason == ""
    assert not is_alive(before.result)


def test_one_hang_does_not_hold_up_the_others() -> None:
    outcomes = run(misbehave, "hang", *["well"] * 10, jobs=2, time_limit=1.0)
    assert [outcome.reason for outcome in outcomes] == ["time limit: stopped after 1 s", *[""] * 10]


def test_huge_results_and_arguments() -> None:
    array = np.arange(6_000_000)
    (outcome,) = run(lambda given: given[::-1], array)
    assert np.array_equal(outcome.result, array[::-1])


def test_a_limit_of_many_years() -> None:
    (outcome,) = run(lambda n: n, 1, time_limit=1e12)
    assert outcome.result == 1


def test_whoever_takes_too_much_memory_is_stopped() -> None:
    def fill(number: int) -> int:
        taken = []
        while number == 1:
            taken.append(bytearray(b"x") * 10_000_000)
        return number

    tasks = [Task((number,), 600.0, memory=200_000_000) for number in (0, 1, 2)]
    before, bad, after = run_tasks(fill, tasks, jobs=1)
    assert re.fullmatch(r"memory limit: stopped at \S+ GB", bad.reason)
    assert [(outcome.result, outcome.reason) for outcome in (before, after)] == [(0, ""), (2, "")]


def test_temporary_files_of_the_killed_are_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def leave(how: str) -> str:
        return misbehave(how) if how == "hang" else tempfile.mkdtemp()

    made, _ = run(leave, "well", "hang", time_limit=0.5)
    assert Path(made.result).is_relative_to(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_closures_run() -> None:
    factor = 3
    assert [outcome.result for outcome in run(lambda n: factor * n, 1, 2)] == [3, 6]


def test_prints_do_not_reach_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    def prattle(_: int) -> None:
        print("from Python", flush=True)
        os.write(1, b"from C\n")

    (outcome,) = run(prattle, 0)
    assert outcome.reason == ""
    assert capfd.readouterr().out == ""


def test_describe_names_the_place() -> None:
    assert describe(ValueError("a  b")) == "ValueError: a b"


# --- workers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("jobs", [1, 2])
def test_workers_are_reused(jobs: int) -> None:
    barrier = multiprocessing.get_context("fork").Barrier(jobs)

    def pid(_: int) -> int:
        barrier.wait(30)  # So that every worker gets its share.
        return os.getpid()

    pids = [outcome.result for outcome in run(pid, *range(10 * jobs), jobs=jobs)]
    assert len(set(pids)) == jobs
    assert os.getpid() not in pids


def test_a_worker_that_asks_and_solves_is_used_once() -> None:
    for solves, workers in ((False, 1), (True, 3)):
        tasks = [Task((), 60.0, asks=True, solves=solves)] * 3
        pids = [outcome.result for outcome in run_tasks(os.getpid, tasks, jobs=1)]
        assert len(set(pids)) == workers
        assert eventually(lambda pids=pids: not any(map(is_alive, pids)))


def test_a_pause_comes_again_while_nothing_ends() -> None:
    paused: list[None] = []
    go_on = multiprocessing.get_context("fork").Event()

    def pause() -> None:
        paused.append(None)
        if len(paused) == 3:
            go_on.set()

    (outcome,) = run_tasks(lambda: go_on.wait(60.0), [Task((), 60.0)], jobs=1, pause=pause, every=0.01)
    assert outcome.result is True


def test_no_more_workers_than_tasks() -> None:
    before = set(multiprocessing.active_children())
    iterator = run_tasks(lambda: os.getpid(), [Task((), 60.0)] * 2, jobs=8)
    next(iterator)
    assert len(set(multiprocessing.active_children()) - before) == 2
    iterator.close()


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_as_many_tasks_run_at_once_as_there_are_jobs(jobs: int) -> None:
    barrier = multiprocessing.get_context("fork").Barrier(jobs)

    def span(_: int) -> tuple[float, float]:
        began = time.monotonic()
        barrier.wait(30)  # Nobody passes before as many tasks as jobs are running.
        return began, time.monotonic()

    spans = [outcome.result for outcome in run(span, *range(8 * jobs), jobs=jobs)]
    most = max(sum(began <= moment <= ended for began, ended in spans) for moment, _ in spans)
    assert most == jobs


def test_a_worker_gets_its_next_task_before_the_outcome_is_looked_at() -> None:
    ended = multiprocessing.get_context("fork").Semaphore(0)

    def work(_: int) -> None:
        ended.release()

    iterator = run_tasks(work, [Task((n,), 60.0) for n in range(3)], jobs=1)
    next(iterator)
    # The first outcome is still in hand, and the second task runs.
    assert ended.acquire(timeout=30)
    assert ended.acquire(timeout=30)
    iterator.close()


def test_tasks_are_taken_as_workers_become_free() -> None:
    taken = []

    def tasks() -> Iterator[Task]:
        for n in range(20):
            taken.append(n)
            yield Task((n,), 60.0)

    for seen, _ in enumerate(run_tasks(lambda n: n, tasks(), jobs=2), 1):
        assert len(taken) <= seen + 2
    assert len(taken) == 20


def test_closing_the_iterator_kills_the_workers(tmp_path: Path) -> None:
    def work(seconds: float) -> None:
        (tmp_path / str(os.getpid())).touch()
        time.sleep(seconds)

    iterator = run_tasks(work, [Task((seconds,), 60.0) for seconds in (0.0, 600.0, 600.0)], jobs=2)
    next(iterator)
    pids = eventually(lambda: len(pids_in(tmp_path)) == 2 and pids_in(tmp_path))
    assert any(is_alive(pid) for pid in pids)
    iterator.close()
    assert not any(is_alive(pid) for pid in pids)


def test_an_error_in_the_loop_kills_the_workers() -> None:
    def loop() -> None:
        for outcome in run_tasks(
            lambda n: time.sleep(n) or os.getpid(), [Task((0,), 60.0), Task((600,), 60.0)], jobs=1
        ):
            pids.append(outcome.result)
            raise KeyError

    pids: list[int] = []
    with pytest.raises(KeyError):
        loop()
    eventually(lambda: not is_alive(pids[0]))


def test_workers_are_gone_when_all_is_done() -> None:
    outcomes = run(lambda _: os.getpid(), *range(6), jobs=2)
    assert not any(is_alive(outcome.result) for outcome in outcomes)


def test_what_a_task_started_goes_with_its_worker(tmp_path: Path) -> None:
    def work(how: str) -> None:
        program = subprocess.Popen(["sleep", "600"])
        (tmp_path / str(program.pid)).touch()
        if how == "exit":
            os._exit(1)
        program.wait()

    outcomes = run(work, "exit", "hang", time_limit=2.0)
    assert [outcome.reason.split(":")[0] for outcome in outcomes] == ["the process died", "time limit"]
    assert len(pids_in(tmp_path)) == 2
    eventually(lambda: not any(is_alive(pid) for pid in pids_in(tmp_path)))


def test_a_killed_parent_leaves_no_worker_behind(tmp_path: Path) -> None:
    script = """
import os, pathlib, sys
from validation.kernel.workers import Task, run_tasks

def hang(_):
    (pathlib.Path(sys.argv[1]) / str(os.getpid())).touch()
    while True:
        pass

list(run_tasks(hang, [Task((n,), 600.0) for n in range(4)], jobs=2))
"""
    parent = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)])
    try:
        pids = eventually(lambda: len(pids_in(tmp_path)) == 2 and pids_in(tmp_path))
        assert all(is_alive(pid) for pid in pids)
    finally:
        parent.kill()
        parent.wait()
    eventually(lambda: not any(is_alive(pid) for pid in pids))


def test_two_runs_in_two_threads() -> None:
    results: dict[int, list[Any]] = {}

    def body(thread: int) -> None:
        results[thread] = [outcome.result for outcome in run(lambda n: (thread, n), *range(20), jobs=2)]

    threads = [threading.Thread(target=body, args=(thread,)) for thread in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {thread: [(thread, n) for n in range(20)] for thread in range(2)}


def test_what_was_answered_in_time_is_heard_however_late_it_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process is suspended after its first look at the pipes, until the answer is there and the time is over."""
    looks: list[list[Any]] = []
    began = time.monotonic()

    def wait(connections: list[Any], timeout: float) -> list[Any]:
        looks.append(connections)
        return list(multiprocessing.connection.wait(connections, 0))

    def monotonic() -> float:
        if len(looks) == 1:
            multiprocessing.connection.wait(looks[0], 60)
        return began + 1000 * len(looks)

    monkeypatch.setattr("validation.kernel.workers.wait", wait)
    monkeypatch.setattr("validation.kernel.workers.time", SimpleNamespace(monotonic=monotonic, sleep=time.sleep))
    (outcome,) = run(lambda n: n + 1, 1, time_limit=1.0)
    assert (outcome.result, outcome.reason) == (2, "")


def test_clocks_that_can_be_set_measure_nothing() -> None:
    """What has a limit looks at a clock that only goes forward."""
    sources = [file for file in Path(validation.__path__[0]).rglob("*.py") if file.name != "provenance.py"]
    assert len(sources) > 50
    for file in sources:
        assert not re.search(r"\btime\.time\(|datetime\.(now|utcnow)\(", file.read_text(encoding="utf-8")), file


def test_a_stream_that_leads_into_memory_is_silenced_too() -> None:
    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8")):
        (outcome,) = run_tasks(abs, [Task((-1,), 30.0)], jobs=1)
    assert (outcome.result, outcome.reason) == (1, "")


# --- code of others ---------------------------------------------------------------------------------


def test_nothing_runs_beside_code_of_others_but_its_like() -> None:
    """It may take all of the machine, so that a solve beside it would come to no end in time."""
    running, most, lock = multiprocessing.RawArray("i", 2), multiprocessing.RawArray("i", 2), multiprocessing.Lock()

    def counted(others: int, waits: bool) -> bool:
        with lock:
            running[others] += 1
            most[others] = max(most[others], running[others])
        # Until there has been one of its kind beside it, which a busy machine may take long to start.
        until = time.monotonic() + 30
        while waits and most[others] < 2 and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.05)
        with lock:
            beside = bool(running[1 - others])
            running[others] -= 1
        return beside

    kinds = [False, True, False, False, True, True]
    # The first two are each followed by another kind, and so are alone.
    tasks = [Task((int(kind), number > 1), 60.0, others=kind) for number, kind in enumerate(kinds)]
    outcomes = list(run_tasks(counted, tasks, jobs=2))
    assert len(outcomes) == len(tasks)
    assert not any(outcome.result for outcome in outcomes)
    assert list(most) == [2, 2]


def test_clocks_are_out_of_reach_of_what_a_worker_starts() -> None:
    """What is no time is nobody's progress."""
    clocks = Clocks(2)

    def started(number: int) -> dict[str, Any]:
        clocks.shared[3 * number] = math.nan
        return {"written": True}

    def run_cell(number: int) -> str:
        tell = clocks.teller(number)
        tell(1.0, 1, 2)
        with Apart(functools.partial(started, number)) as apart:
            return apart.ask(seconds=60.0).reason

    (outcome,) = run_tasks(run_cell, [Task((0,), 60.0, asks=True)], jobs=1)
    assert outcome.result == "the process died: killed by SIGSEGV"
    said: list[tuple[float, int, int]] = []

    def note(*told: Any) -> str:
        said.append(told)
        return ""

    clocks.remaining(note)
    assert said == [(1.0, 1, 2)]
    for wrong in ((math.nan, 1, 2), (1.0, math.inf, 2), (1.0, 1, math.nan), (1.0, 3, 2), (1.0, -1, 2)):
        for place, value in enumerate(wrong):
            clocks.shared[place] = value
        assert clocks.remaining(note) == (None, "")
