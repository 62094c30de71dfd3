"""Code of the user's, apart: what it may answer, what it may do, and what is left of it."""

import contextlib
import ctypes
import mmap
import multiprocessing
import os
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heuristics.aryl.reclaim import server_fraction
from instances.aryl.reclaim import generate
from validation import StudyError, catalogue
from validation.catalogue import Heuristic, Imported
from validation.kernel.asking import Asking, ask
from validation.kernel.isolation import LARGEST_ANSWER, Apart, _decode, _encode, plain, remove
from validation.kernel.walls import enclose, landlock, ruled
from validation.kernel.workers import Task, run_tasks

from ...processes import eventually, is_alive

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")

CONFINED = pytest.mark.skipif(not landlock(), reason="this kernel has no Landlock")


def answer(function: Any, *arguments: Any, seconds: float = 30.0, memory: int | None = None) -> Any:
    with Apart(function, memory=memory) as apart:
        return apart.ask(*arguments, seconds=seconds)


# --- answers ----------------------------------------------------------------------------------------

CONTENTS: list[dict[str, Any]] = [
    {},
    {"number": 1, "word": "é\x00", "nothing": None, "list": [1, [2.5, True]]},
    {"array": np.arange(6).reshape(2, 3), "flags": np.array([True, False]), "words": np.array(["a", "bc"])},
    {"empty": np.zeros((0, 3)), "scalar": np.array(2.0), "infinite": np.array([np.inf, np.nan])},
    {"ragged": (np.arange(2), np.zeros(0), np.ones((2, 2)))},
]


@pytest.mark.parametrize("content", CONTENTS)
def test_an_answer_arrives_as_it_was_given(content: dict[str, Any]) -> None:
    found = answer(lambda: content)
    assert found.reason == ""
    np.testing.assert_equal(found.content, content)


@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_message_is_an_error_or_data(seed: int) -> None:
    """Whatever the bytes are, reading them ends, runs nothing and takes no more memory than they do."""
    rng = np.random.default_rng(seed)
    for content in CONTENTS:
        message = bytearray(_encode(content))
        for place in rng.integers(0, len(message), 3):
            message[place] = rng.integers(256)
        cut = int(rng.integers(0, len(message) + 1))
        for damaged in (message, message[:cut]):
            with contextlib.suppress(ValueError):
                assert isinstance(_decode(memoryview(bytes(damaged)), 10**9), dict)


def test_an_array_of_objects_is_no_answer() -> None:
    found = answer(lambda: {"plan": np.array([print], object)})
    assert found.content == {"error": found.content["error"]}
    assert "an array of object cannot be sent" in found.content["error"]


def test_the_same_process_answers_again_and_a_fresh_one_after_a_death() -> None:
    def pid(how: str) -> dict[str, Any]:
        if how == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        return {"pid": os.getpid()}

    with Apart(pid) as apart:
        first, second = apart.ask("", seconds=30), apart.ask("", seconds=30)
        assert first.content == second.content
        assert apart.ask("die", seconds=30).reason == "the process died: killed by SIGKILL"
        third = apart.ask("", seconds=30)
    assert first.content
    assert third.content
    assert third.content["pid"] not in (first.content["pid"], os.getpid())
    eventually(lambda: not is_alive(third.content["pid"]))


# --- limits -----------------------------------------------------------------------------------------


def test_the_time_is_limited() -> None:
    found = answer(lambda: time.sleep(600), seconds=0.3)
    assert (found.content, found.reason) == (None, "time limit: stopped after 0.3 s")
    assert 0.3 <= found.seconds < 30


@pytest.mark.parametrize("size", [10**9, 10**6])
def test_the_memory_is_limited(size: int) -> None:
    def grow() -> dict[str, Any]:
        kept = []
        while True:
            kept.append(np.ones(size))

    found = answer(grow, memory=3 * 10**8, seconds=120)
    assert "memory" in (found.reason + str(found.content)).lower()


@pytest.mark.parametrize("kind", ["shared", "files"])
def test_so_is_what_is_not_its_own_alone(kind: str) -> None:
    """Memory that processes share, and files in its folder."""

    def grow() -> dict[str, Any]:
        kept = []
        for number in range(10**6):
            if kind == "shared":
                kept.append(mmap.mmap(-1, 10**6))
                kept[-1].write(bytes(10**6))
            else:
                Path(tempfile.gettempdir(), str(number)).write_bytes(bytes(10**6))
            time.sleep(0.001)
        return {}

    assert "memory limit" in answer(grow, memory=10**8, seconds=120).reason


def test_so_is_the_answer() -> None:
    """What would not fit into its memory is no answer of its own, and is not read."""

    def announce() -> dict[str, Any]:
        for number in range(3, 64):
            with contextlib.suppress(OSError):
                os.write(number, struct.pack("<Q", 10**8 + 1))
        time.sleep(600)
        return {}

    assert answer(announce, memory=10**8).reason == "the answer is too large: 100000001 bytes"


def test_so_is_that_of_what_it_starts() -> None:
    def spawn() -> dict[str, Any]:
        program = "kept = [bytes(10**6) + b'x' for _ in range(4000)]; import time; time.sleep(600)"
        subprocess.run([sys.executable, "-c", program], check=False, preexec_fn=None)
        return {}

    found = answer(spawn, memory=2 * 10**8, seconds=120)
    assert "memory limit" in found.reason or found.content == {}


def test_so_is_that_of_what_it_leaves_behind() -> None:
    """Of a process that has no parent any more."""

    def spawn() -> dict[str, Any]:
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                kept = []
                while True:
                    kept.append(mmap.mmap(-1, 10**6))
                    kept[-1].write(bytes(10**6))
            os._exit(0)
        os.wait()
        time.sleep(600)
        return {}

    assert "memory limit" in answer(spawn, memory=2 * 10**8, seconds=60).reason
    (outcome,) = run_tasks(lambda: answer(spawn, memory=2 * 10**8).reason, [Task((), 60.0, asks=True)], jobs=1)
    assert "memory limit" in outcome.result


@pytest.mark.parametrize("lists", [False, True])
def test_reading_an_answer_takes_no_more_where_its_process_may(lists: bool) -> None:
    """Who may take ten gigabytes may not have whoever asks take them."""
    head = b'{"plan": {"plain": [' + b"[]," * 3_000_000 + b"[]]}}"
    message = struct.pack("<Q", 8 + len(head)) + struct.pack("<Q", len(head)) + head

    def announce() -> dict[str, Any]:
        for number in range(3, 64):
            with contextlib.suppress(OSError):
                os.write(number, message if lists else struct.pack("<Q", LARGEST_ANSWER // 4 + 1))
        time.sleep(600)
        return {}

    reason = answer(announce, memory=10**10, seconds=60).reason
    assert ("6000006 lists, numbers and words" if lists else "the answer is too large: 134217729 bytes") in reason


def test_so_is_what_reading_the_answer_takes() -> None:
    """A list of empty lists takes thirty times as much as its letters."""
    head = b'{"plan": {"plain": [' + b"[]," * 10**5 + b"[]]}}"
    message = memoryview(struct.pack("<Q", len(head)) + head)
    assert _decode(message, 10**8)["plan"] == [[]] * (10**5 + 1)
    with pytest.raises(ValueError, match="200006 lists, numbers and words"):
        _decode(message, 10**7)


def test_between_questions_nothing_runs() -> None:
    """Neither the process, nor what it has started: it takes no time from what runs then, and finds nothing out."""
    counted = mmap.mmap(-1, 16)

    def count(place: int) -> None:
        while True:
            counted[8 * place : 8 * place + 8] = (int.from_bytes(counted[8 * place : 8 * place + 8]) + 1).to_bytes(8)

    def start() -> dict[str, Any]:
        if not any(counted[:]):
            threading.Thread(target=count, args=(0,), daemon=True).start()
            if os.fork() == 0:
                count(1)
        time.sleep(0.1)
        return {}

    with Apart(start) as apart:
        assert apart.ask(seconds=60).reason == ""
        time.sleep(0.05)  # It takes a moment until all are suspended.
        before = bytes(counted)
        time.sleep(0.1)
        assert bytes(counted) == before
        assert apart.ask(seconds=60).reason == ""
        assert bytes(counted) != before


def test_the_time_is_that_of_whoever_asks() -> None:
    """Also of a process that was asked before, and says that it began just now."""

    def late() -> dict[str, Any]:
        time.monotonic = lambda: 1e9
        time.sleep(0.2)
        return {}

    with Apart(late) as apart:
        assert all(apart.ask(seconds=60).seconds >= 0.2 for _ in range(2))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("a\n b", "a b"),
        ("\x1b[2J\x07é", "\\x1b[2J\\x07é"),
        ("\u202e\udcff", "\\u202e\\udcff"),
        ("x" * 1000, "x" * 1000),
        ("x" * 1001, f"{'x' * 1000}..."),
        (" " * 10**6, "..."),
    ],
)
def test_words_of_others_are_plain(words: str, said: str) -> None:
    assert plain(words) == said


# --- what is left -----------------------------------------------------------------------------------


def daemon() -> dict[str, Any]:
    """Leaves a process behind that nobody is the parent of."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(writing, str(os.getpid()).encode())
            time.sleep(600)
        os._exit(0)
    return {"pid": int(os.read(reading, 16))}


def test_what_was_started_ends_with_the_question() -> None:
    """A worker that keeps code of the user's inherits what that leaves behind."""
    (outcome,) = run_tasks(lambda: answer(daemon).content["pid"], [Task((), 60.0, asks=True)], jobs=1)
    assert outcome.reason == ""
    assert not is_alive(outcome.result)


SCRIPT = """
import os, pathlib, tempfile, time
from validation.kernel.isolation import Apart
from validation.kernel.workers import Task, run_tasks

def stay():
    if os.fork() == 0:
        os.setsid()
    pathlib.Path(tempfile.gettempdir(), f"{os.getpid()}.pid").touch()
    time.sleep(600)

def keep():
    with Apart(stay) as apart:
        apart.ask(seconds=600.0)

list(run_tasks(keep, [Task((), 900.0, asks=True)], jobs=1))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_outlives_whoever_asked(number: int, tmp_path: Path) -> None:
    parent = subprocess.Popen([sys.executable, "-c", SCRIPT], env={**os.environ, "TMPDIR": str(tmp_path)})
    eventually(lambda: len(list(tmp_path.rglob("*.pid"))) == 2)
    pids = [int(path.stem) for path in tmp_path.rglob("*.pid")]
    assert all(map(is_alive, pids))
    parent.send_signal(number)
    parent.wait()
    eventually(lambda: not any(map(is_alive, pids)))


# --- what it may do ---------------------------------------------------------------------------------


@CONFINED
def test_it_writes_below_its_own_folder_only(tmp_path: Path) -> None:
    def write() -> dict[str, Any]:
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"mine")
            mine = file.name
        try:
            (tmp_path / "file").write_text("not mine", encoding="utf-8")
        except PermissionError:
            return {"mine": mine}
        return {}

    found = answer(write).content
    assert not Path(found["mine"]).parent.exists()
    assert list(tmp_path.iterdir()) == []


def test_whatever_it_makes_of_its_folder_is_removed(tmp_path: Path) -> None:
    """Folders closed to all, too deep for a path, named by what is no text, and links that must not be followed."""
    (tmp_path / "kept").touch()

    def litter() -> dict[str, Any]:
        mine = tempfile.gettempdir()
        os.chdir(mine)
        os.symlink(tmp_path, "link")
        os.makedirs("closed/below\n\udcff/further")
        for name in ("closed/below\n\udcff/further", "closed/below\n\udcff", "closed"):
            os.chmod(name, 0)
        for _ in range(1500):
            os.mkdir("deep")
            os.chdir("deep")
            Path("file").touch()
        return {"mine": mine}

    assert not Path(answer(litter).content["mine"]).exists()
    assert (tmp_path / "kept").exists()


@CONFINED
def test_it_signals_nobody_outside() -> None:
    def signalling() -> dict[str, Any]:
        try:
            os.kill(os.getppid(), 0)
        except PermissionError:
            return {"refused": True}
        return {}

    assert answer(signalling).content == {"refused": True} or landlock() < 6


@CONFINED
def test_files_that_are_hidden_cannot_be_read(tmp_path: Path) -> None:
    for name in ("hidden", "beside"):
        (tmp_path / name / "below").mkdir(parents=True)
        (tmp_path / name / "below" / "file").write_text(name, encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "hidden")

    def read() -> dict[str, Any]:
        enclose()
        found: dict[str, Any] = {"beside": (tmp_path / "beside" / "below" / "file").read_text(encoding="utf-8")}
        for name in ("hidden", "link"):
            try:
                found[name] = (tmp_path / name / "below" / "file").read_text(encoding="utf-8")
            except PermissionError:
                found[name] = None
        return found

    with ruled(hidden=(tmp_path / "hidden",)):
        assert answer(read).content == {"beside": "beside", "hidden": None, "link": None}


def test_what_it_prints_goes_nowhere(capfd: pytest.CaptureFixture[str]) -> None:
    """Be it from Python or from a library in C: nobody could read on a terminal that it floods."""

    def prattle() -> dict[str, Any]:
        for number, stream in ((1, sys.stdout), (2, sys.stderr)):
            print("from Python", file=stream, flush=True)
            os.write(number, b"from C\n")
        return {"read": sys.stdin.read()}

    assert answer(prattle).content == {"read": ""}
    assert capfd.readouterr() == ("", "")


@CONFINED
def test_devices_are_used_and_never_replaced() -> None:
    """Not even as root: with a file in its place, ``/dev/null`` would answer with what others threw away."""
    made = Path(f"/dev/optgap-{os.getpid()}")

    def use() -> dict[str, Any]:
        Path("/dev/null").write_text("thrown away", encoding="utf-8")
        multiprocessing.Value("d", 1.0)  # A file in /dev/shm.
        try:
            made.touch()
        except OSError:
            return {"made": False}
        return {"made": True}

    try:
        assert answer(use).content == {"made": False}
    finally:
        made.unlink(missing_ok=True)


def test_a_process_may_have_any_name() -> None:
    """Also one that is no text; those that it starts are found all the same."""

    def stay() -> dict[str, Any]:
        ctypes.CDLL(None).prctl(15, b"\xff) \xfe")
        if os.fork():
            os.wait()
        time.sleep(600)
        return {}

    assert answer(stay, seconds=0.3, memory=10**9).reason == "time limit: stopped after 0.3 s"


def test_no_file_is_inherited(tmp_path: Path) -> None:
    with open(tmp_path / "log", "w", encoding="utf-8") as file:
        number = file.fileno()

        def write() -> dict[str, Any]:
            try:
                os.write(number, b"not mine")
            except OSError:
                return {"refused": True}
            return {}

        assert answer(write).content == {"refused": True}


# --- heuristics -------------------------------------------------------------------------------------


def test_a_plan_crosses_as_the_data_of_its_fields() -> None:
    instance = generate(0, num_servers=8)
    found = ask(instance, Heuristic(server_fraction), 0, seconds=30)
    assert found.plan == server_fraction(instance)
    assert type(found.plan) is instance.plan_type
    assert (found.reason, found.seconds > 0) == ("", True)


def test_a_heuristic_of_a_module_is_imported_where_it_is_called(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "a_module_apart.py").write_text(
        "from heuristics.aryl.reclaim import server_fraction\n\n\n"
        "def drawn(instance, rng):\n    return server_fraction(instance)\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    name, heuristic = catalogue.heuristic("aryl.reclaim", "a_module_apart:drawn")
    assert (name, heuristic.function) == ("a_module_apart:drawn", Imported("a_module_apart:drawn", True))
    assert "a_module_apart" not in sys.modules
    instance = generate(0, num_servers=8)
    with Asking(heuristic, 0) as asking:
        assert asking.ask(instance, seconds=30).plan == server_fraction(instance)
    assert "a_module_apart" not in sys.modules


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("import sys; sys.exit(0)", "it exits: 0"),
        ("import os; os._exit(0)", "the process died: it exited with code 0"),
        ("import os; os.abort()", "the process died: killed by SIGABRT"),
        ("1 / 0", "division by zero"),
    ],
)
def test_a_module_that_ends_the_process_is_refused(line: str, said: str, tmp_path: Path, monkeypatch: Any) -> None:
    name = f"a_module_{abs(hash(line))}"
    (tmp_path / f"{name}.py").write_text(f"{line}\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for call in (lambda: catalogue.heuristic("aryl.reclaim", f"{name}:any"), lambda: catalogue.load(name)):
        with pytest.raises(StudyError, match=f"cannot import '{name}.*{said}"):
            call()


def test_a_folder_of_many_folders_is_removed(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    for number in range(350):
        (scratch / str(number) / "below").mkdir(parents=True)
        (scratch / str(number) / "file").touch()
    (scratch / "link").symlink_to(tmp_path)
    remove(str(scratch))
    assert list(tmp_path.iterdir()) == []
