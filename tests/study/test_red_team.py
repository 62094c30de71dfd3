"""Heuristics that cheat, or break what they can reach: none gains, and no other row changes.

Every cheat runs in one study beside an honest heuristic and the exact solves, on the same instances.
"""

import ctypes
import gc
import json
import multiprocessing
import os
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import formulations
from formulations import Solution
from heuristics.aryl.reclaim import server_fraction
from instances.aryl.reclaim import Reclaim, ReclaimPlan
from validation import Study, gap_study
from validation.isolation import landlock

from .studies import FORKED

pytestmark = FORKED

ELSEWHERE = Path(tempfile.gettempdir()) / "optgap-red-team"
"""Where cheats try to leave something."""

Cheat = Callable[[Reclaim], Any]
CHEATS: dict[str, Cheat] = {}


def cheat(function: Cheat) -> Cheat:
    CHEATS[function.__name__] = function
    return function


def bad(instance: Reclaim) -> ReclaimPlan:
    """A feasible plan that is worse than the optimum on the instances of the study: the busiest servers."""
    return ReclaimPlan(servers=np.argsort(-instance.hosts.sum(axis=0), kind="stable")[: instance.demand])


# --- what lies about its plan -----------------------------------------------------------------------


@cheat
def a_plan_that_says_what_it_is_worth(instance: Reclaim) -> Any:
    class Better(ReclaimPlan):
        def to_dict(self) -> Any:
            return {"servers": [], "value": 0}

        @property
        def digest(self) -> str:
            return "0"

        __eq__ = __lt__ = __le__ = lambda self, other: True
        __hash__ = None  # type: ignore[assignment]

    return Better(servers=bad(instance).servers)


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

    __hash__ = None  # type: ignore[assignment]


@cheat
def arrays_of_its_own_class(instance: Reclaim) -> Any:
    plan = object.__new__(ReclaimPlan)
    object.__setattr__(plan, "servers", bad(instance).servers.view(Empty))
    return plan


@cheat
def around_the_constructor(instance: Reclaim) -> Any:
    plan = object.__new__(ReclaimPlan)
    object.__setattr__(plan, "servers", np.array([-1.5, np.nan]))
    return plan


@cheat
def objects_in_an_array(instance: Reclaim) -> Any:
    class Runs:
        def __reduce__(self) -> Any:
            return os.system, (f"touch {ELSEWHERE}",)

    plan = object.__new__(ReclaimPlan)
    object.__setattr__(plan, "servers", np.array([Runs()], object))
    return plan


class Small(float):
    """A number that is less than any other."""

    def __lt__(self, other: object) -> bool:
        return True

    def __float__(self) -> float:
        return 0.0


@cheat
def numbers_of_its_own_class(instance: Reclaim) -> Any:
    plan = object.__new__(ReclaimPlan)
    object.__setattr__(plan, "servers", [Small(one) for one in bad(instance).servers])
    return plan


# --- what changes the library -----------------------------------------------------------------------


@cheat
def another_solver(instance: Reclaim) -> Any:
    formulations.solve = lambda *_, **__: 99  # type: ignore[assignment]
    sys.modules["formulations.engine.solving"].solve = formulations.solve  # type: ignore[attr-defined]
    return bad(instance)


@cheat
def another_judge(instance: Reclaim) -> Any:
    Reclaim._value = lambda self, plan: 0  # type: ignore[method-assign]
    Reclaim.objective = lambda self, plan: 0.0  # type: ignore[method-assign]
    Reclaim.violations = lambda self, plan: []  # type: ignore[method-assign]
    return bad(instance)


@cheat
def another_clock(instance: Reclaim) -> Any:
    time.perf_counter = time.monotonic = lambda: 0.0
    deadline = time.time() + 0.2
    while time.time() < deadline:
        pass
    return bad(instance)


@cheat
def frames_above(instance: Reclaim) -> Any:
    frame = sys._getframe()
    while frame is not None:
        for name, value in list(frame.f_locals.items()):
            if isinstance(value, Reclaim):
                object.__setattr__(value, "demand", 0)
                object.__setattr__(value, "hosts", np.zeros_like(value.hosts))
            frame.f_locals[name] = value
        frame = frame.f_back  # type: ignore[assignment]
    return bad(instance)


@cheat
def answers_in_memory(instance: Reclaim) -> Any:
    for found in gc.get_objects():
        if isinstance(found, Solution) and found.plan is not None:
            return found.plan
    return bad(instance)


# --- what leaves something behind -------------------------------------------------------------------


@cheat
def a_timer_left_on(instance: Reclaim) -> Any:
    signal.signal(signal.SIGALRM, lambda *_: os._exit(9))
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    signal.setitimer(signal.ITIMER_REAL, 5.0)
    return bad(instance)


@cheat
def a_thread_left_running(instance: Reclaim) -> Any:
    def spin() -> None:
        while True:
            pass

    threading.Thread(target=spin, daemon=True).start()
    return bad(instance)


@cheat
def a_daemon_left_running(instance: Reclaim) -> Any:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execvp("sleep", ["sleep", "54321"])
        os._exit(0)
    return bad(instance)


@cheat
def the_last_plan_in_a_file(instance: Reclaim) -> Any:
    for place in (ELSEWHERE, Path.cwd() / ELSEWHERE.name, Path.home() / ELSEWHERE.name):
        try:
            place.write_text("the best plan so far", encoding="utf-8")
        except OSError:
            continue
    return bad(instance)


# --- what answers twice, or not at all --------------------------------------------------------------


@cheat
def two_answers(instance: Reclaim) -> Any:
    return bad(instance) if os.fork() else ReclaimPlan(servers=np.array([], int))


@cheat
def noise_on_every_pipe(instance: Reclaim) -> Any:
    for number in range(3, 256):
        try:
            os.write(number, b"\x01" + struct.pack("<Q", 3) + b"6 6")
        except OSError:
            continue
    return bad(instance)


@cheat
def half_an_answer(instance: Reclaim) -> Any:
    for number in range(3, 256):
        try:
            os.write(number, struct.pack("<Q", 1000) + b"half")
        except OSError:
            continue
    time.sleep(3600)


@cheat
def an_endless_answer(instance: Reclaim) -> Any:
    for number in range(3, 256):
        try:
            os.write(number, struct.pack("<Q", 2**62))
        except OSError:
            continue
    time.sleep(3600)


@cheat
def leaves_as_if_well(instance: Reclaim) -> Any:
    os._exit(0)


@cheat
def exits(instance: Reclaim) -> Any:
    sys.exit(0)


@cheat
def sleeps_in_c(instance: Reclaim) -> Any:
    ctypes.PyDLL(None).sleep(3600)  # It keeps the interpreter's lock.


@cheat
def closes_everything(instance: Reclaim) -> Any:
    os.closerange(0, 4096)
    time.sleep(3600)


@cheat
def raises_where_it_is_hard(instance: Reclaim) -> Any:
    raise RuntimeError("too hard")


# --- what takes what there is -----------------------------------------------------------------------


@cheat
def a_fork_bomb(instance: Reclaim) -> Any:
    while True:
        os.fork()
        time.sleep(0.01)


@cheat
def memory_at_once(instance: Reclaim) -> Any:
    return np.ones(10**12)


@cheat
def memory_bit_by_bit(instance: Reclaim) -> Any:
    kept = []
    while True:
        kept.append(np.ones(10**6))


# --- what reaches for others ------------------------------------------------------------------------


@cheat
def kills_its_keeper(instance: Reclaim) -> Any:
    for number in (signal.SIGKILL, signal.SIGSTOP):
        try:
            os.kill(os.getppid(), number)
        except OSError:
            continue
    return bad(instance)


@cheat
def kills_everybody(instance: Reclaim) -> Any:
    for pid in RUN["pids"]:
        try:
            os.kill(pid, signal.SIGTERM)
        except OSError:
            continue
    return bad(instance)


@cheat
def answers_on_disk(instance: Reclaim) -> Any:
    """The best plan that the log of an earlier run holds for this instance."""
    rows = [json.loads(line) for line in (RUN["directory"] / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
    return next(
        ReclaimPlan.from_dict(row["plan"])
        for row in rows
        if row["algorithm"] == "exact" and row["instance"] == instance.digest
    )


@cheat
def writes_to_the_log(instance: Reclaim) -> Any:
    for name in ("rows.jsonl", "study.json", ".lock"):
        try:
            with open(RUN["directory"] / name, "a", encoding="utf-8") as file:
                file.write("{}\n")
        except OSError:
            continue
    return bad(instance)


@cheat
def removes_the_study(instance: Reclaim) -> Any:
    subprocess.run(["rm", "-rf", str(RUN["directory"])], check=False, stderr=subprocess.DEVNULL)
    return bad(instance)


# --- the study --------------------------------------------------------------------------------------

RUN: dict[str, Any] = {"directory": Path(), "pids": []}
"""What the cheats know of the study."""

FAILED = {
    "around_the_constructor": "servers: got -1.5, must be a whole number|ReclaimPlan.servers",
    "objects_in_an_array": "cannot be sent",
    "half_an_answer": "time limit",
    "an_endless_answer": "the answer is too large",
    "leaves_as_if_well": "it exited with code 0",
    "exits": "SystemExit: 0",
    "sleeps_in_c": "time limit",
    "closes_everything": "closed its pipe|time limit",
    "raises_where_it_is_hard": "RuntimeError: too hard",
    "a_fork_bomb": "too many processes|time limit",
    "memory_at_once": "MemoryError|time limit",
    "memory_bit_by_bit": "MemoryError|memory limit|time limit",
    "noise_on_every_pipe": "cannot be read|too large|time limit",
}
"""Cheats that end without a plan, and what is said of them."""
OPEN = {"answers_on_disk": "PermissionError|StopIteration"}
"""Cheats that only Landlock stops, and what is said of them then."""


def honest(instance: Reclaim) -> ReclaimPlan:
    return server_fraction(instance)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    directory = tmp_path_factory.mktemp("red-team") / "study"
    asked: dict[str, Any] = {"sizes": [8], "count": 2, "seed": 5, "output": directory}
    gap_study("aryl.reclaim", heuristics=["server_fraction"], **asked)
    RUN.update(directory=directory, pids=[os.getpid()])
    algorithms = {"bad": bad, "honest": honest, **CHEATS}
    return gap_study("aryl.reclaim", heuristics=algorithms, time_limit=3.0, memory_limit=5 * 10**8, jobs=2, **asked)


def rows_of(study: Study, name: str) -> pd.DataFrame:
    return study.rows[study.rows["algorithm"] == name].sort_values("instance")


def test_what_is_honest_is_as_it_was(study: Study) -> None:
    assert (rows_of(study, "exact")["status"] == "optimal").all()
    exact, fast = rows_of(study, "exact"), rows_of(study, "honest")
    assert (fast["status"] == "feasible").all()
    assert (fast["value"].to_numpy() >= exact["value"].to_numpy()).all()
    assert (rows_of(study, "bad")["gap"] > 0).all()


@pytest.mark.parametrize("name", CHEATS)
def test_no_cheat_gains(study: Study, name: str) -> None:
    rows, worst = rows_of(study, name), rows_of(study, "bad")
    assert len(rows) == len(worst) == 2
    if name in FAILED or (name in OPEN and landlock()):
        assert (rows["status"] == "failed").all(), rows["status"].tolist()
        assert rows["reason"].str.contains((FAILED | OPEN)[name]).all(), rows["reason"].tolist()
        assert rows["value"].isna().all()
    elif name not in OPEN:
        assert rows["status"].isin(["feasible", "infeasible", "failed"]).all()
        judged = rows["status"] == "feasible"
        assert (rows[judged]["value"].to_numpy() == worst[judged.to_numpy()]["value"].to_numpy()).all()


def test_processes_of_its_own_are_no_cheat(tmp_path: Path) -> None:
    def parallel(instance: Reclaim) -> ReclaimPlan:
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(abs, [-1, -2]) == [1, 2]
        return server_fraction(instance)

    algorithms: dict[str, Any] = {"honest": honest, "parallel": parallel}
    study = gap_study("aryl.reclaim", heuristics=algorithms, sizes=[8], count=2, seed=5, output=tmp_path)
    assert rows_of(study, "parallel")["value"].tolist() == rows_of(study, "honest")["value"].tolist()
    assert not study.rows["value"].isna().any()


def test_a_clock_of_its_own_saves_no_time(study: Study) -> None:
    assert (rows_of(study, "another_clock")["seconds"] >= 0.2).all()


def test_nothing_is_left_behind(study: Study) -> None:
    assert not ELSEWHERE.exists()
    assert not (Path.cwd() / ELSEWHERE.name).exists()
    found = subprocess.run(["pgrep", "-f", "sleep 54321"], capture_output=True, text=True, check=False)
    assert found.stdout == ""


def test_the_study_is_whole(study: Study) -> None:
    again = gap_study(
        "aryl.reclaim", heuristics=["server_fraction"], sizes=[8], count=2, seed=5, output=RUN["directory"]
    )
    assert again.metadata["finished"]
    lines = (RUN["directory"] / "rows.jsonl").read_text(encoding="utf-8").splitlines()
    assert all(len(json.loads(line)) > 5 for line in lines)
