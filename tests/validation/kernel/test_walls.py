"""Walls around code of others: what they keep it from, where it runs, and what is said where one is missing."""

import ctypes
import errno
import fcntl
import importlib
import os
import resource
import socket
import sys
import tempfile
import termios
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from validation import StudyError, catalogue, gap_study
from validation.catalogue import Imported
from validation.cli import installation
from validation.kernel import walls
from validation.kernel.isolation import Apart
from validation.kernel.keys import heuristic_code
from validation.kernel.provenance import provenance
from validation.kernel.store import LOG, to_hide
from validation.kernel.walls import WALLS, forking, landlock, lost, ruled, standing
from validation.kinds.study.records import STUDY

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
    # The doctor says what a heuristic can do then.
    monkeypatch.setattr(walls, "standing", lambda: found)
    said = [finding.text for finding in installation.examine() if "wall" in finding.text]
    assert all(
        any(f"wall {name} does not" in line and WALLS[name][2] in line for line in said)
        for name in WALLS
        if not found[name]
    )
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


# --- where they stand ---------------------------------------------------------------------------

MODULE = """
import os, pathlib, time
from heuristics.aryl.reclaim import server_fraction as honest

HERE = pathlib.Path(__file__).parent
{line}
"""


def module(tmp_path: Path, line: str) -> str:
    """Make a module of the user's, in a folder of its own, that does something when it is imported."""
    (tmp_path / "theirs").mkdir()
    file = tmp_path / "theirs" / f"at_import_{abs(hash(line))}.py"
    file.write_text(MODULE.format(line=line), encoding="utf-8")
    return f"{file}:honest"


LOOKED_AT: dict[str, Callable[[str], object]] = {
    "for a table": lambda reference: catalogue.heuristic("aryl.reclaim", reference),
    "for its key": lambda reference: heuristic_code(Imported(reference, False)),
}


@pytest.mark.parametrize("looks", LOOKED_AT)
def test_what_an_import_starts_ends_with_it(looks: str, tmp_path: Path) -> None:
    """Also what no process is the parent of, and what has a session of its own."""
    line = "reading, writing = os.pipe()\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
    line += f"        os.write(writing, b'.')\n        os.execvp('sh', ['sh', '-c', 'sleep 600; true', '{tmp_path}'])\n"
    line += "    os._exit(0)\nos.read(reading, 1)"
    LOOKED_AT[looks](module(tmp_path, line))
    assert [one for one in os.listdir("/proc") if one.isdecimal() and str(tmp_path) in command(one)] == []


def command(pid: str) -> str:
    try:
        return Path("/proc", pid, "cmdline").read_text(errors="replace")
    except OSError:
        return ""


@behind("secrets")
def test_an_import_reads_nothing_that_is_hidden(tmp_path: Path) -> None:
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "rows.jsonl").write_text("an answer", encoding="utf-8")
    reference = module(tmp_path, '(HERE.parent / "study" / "rows.jsonl").read_text()')
    catalogue.heuristic("aryl.reclaim", reference)
    with ruled(hidden=(tmp_path / "study",)), pytest.raises(StudyError, match="Permission denied"):
        catalogue.heuristic("aryl.reclaim", reference)


@behind("limits")
def test_an_import_has_the_memory_of_a_question(tmp_path: Path) -> None:
    reference = module(tmp_path, "kept = []\nwhile True:\n    kept.append(bytes(10**6) + b'x')")
    with ruled(memory=10**8), pytest.raises(StudyError, match=r"[mM]emory"):
        catalogue.heuristic("aryl.reclaim", reference)


def test_a_study_hides_its_results_and_those_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mine", "other", "below/further"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / LOG).touch()
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path / "data")
    assert set(to_hide(tmp_path / "mine", STUDY)) == {tmp_path / one for one in ("mine", "other", "below/further")}
    # An environment in the folder of the results is none of them, nor is the folder itself where one works in it.
    monkeypatch.chdir(tmp_path / "mine")
    (tmp_path / "mine" / ".venv").mkdir()
    (tmp_path / "mine" / ".rows.jsonl.half").touch()
    hidden = set(to_hide(tmp_path / "mine", STUDY))
    mine = {one.name for one in hidden if one.parent == tmp_path / "mine"}
    assert {LOG, "study.json", "results.parquet", ".rows.jsonl.half"} <= mine
    assert ".venv" not in mine
    assert tmp_path / "mine" not in hidden
    monkeypatch.setattr("sys.prefix", str(tmp_path / "other" / ".venv"))
    assert {tmp_path / "other" / LOG} == {one for one in to_hide(tmp_path / "mine", STUDY) if "other" in one.parts}


@pytest.mark.slow
@behind("secrets")
@pytest.mark.parametrize("output", [".", "results"])
def test_a_module_beside_the_results_is_found(output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the module in the folder that the study writes to, its data are read, and the results are not."""
    (tmp_path / "weights.txt").write_text("1", encoding="utf-8")
    line = 'assert (HERE / "weights.txt").read_text() == "1"\ntry:\n    (HERE / "{0}/rows.jsonl").read_text()\n'
    line += "except PermissionError:\n    pass\nelse:\n    raise ValueError('read')"
    (tmp_path / "mine.py").write_text(MODULE.format(line=line.format(output)), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    asked: dict[str, Any] = {"sizes": [5], "count": 1, "seed": 1, "jobs": 1, "progress": False, "output": output}
    gap_study("aryl.reclaim", heuristics=["server_fraction"], **asked)
    with pytest.warns(UserWarning, match="another study was here"):
        rows = gap_study("aryl.reclaim", heuristics=["mine.py:honest"], **asked).rows.set_index("algorithm")
    assert rows.loc["mine.py:honest", "status"] == "feasible", rows["reason"].tolist()


def test_threads_that_fork_at_once_do_so_one_after_the_other() -> None:
    # Locks of files raise where one forks while another one does.
    importlib.import_module("filelock")
    ended: list[int] = []

    def body() -> None:
        for _ in range(40):
            with forking():
                child = os.fork()
            if not child:
                # And a fork of its own finds nobody waiting.
                with forking():
                    os._exit(0)
            ended.append(os.waitpid(child, 0)[1])

    threads = [threading.Thread(target=body) for _ in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert ended == [0] * 160
