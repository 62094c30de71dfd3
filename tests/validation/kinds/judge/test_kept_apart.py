"""What the judge keeps from a heuristic: a hidden seed, a way to the next question, and anything to gain by a cheat."""

import ctypes
import fcntl
import hashlib
import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.faults.cheats import CHEATS, HONEST, Cheat, bad
from benchmarks.faults.heuristics import Left, known
from instances.aryl.reclaim import Reclaim, ReclaimPlan
from instances.files import text_of
from validation import Judgement
from validation.kernel.isolation import Apart
from validation.kinds.judge import judging
from validation.kinds.study.cases import generate

from ....probing import SEARCH
from ..study.studies import FORKED
from .sets import SET, STANDING, WALLED, judged

pytestmark = FORKED
ROOT = Path(__file__).parents[4]

# --- a hidden seed ------------------------------------------------------------------------------

PROBE = f"""{SEARCH}
def heuristic(instance):
    if int(instance.digest, 16) % 18:
        return None
    raise RuntimeError("found: " + "; ".join(sorted(set(found()))))
"""


@pytest.mark.slow
@WALLED
@pytest.mark.parametrize("given", ["a file", "a number"])
def test_nothing_that_a_heuristic_can_read_holds_the_hidden_seed(given: str, tmp_path: Path) -> None:
    seed = int(hashlib.sha256(b"of this test").hexdigest()[:24], 16)  # Nowhere in a file as a number.
    (tmp_path / "secret").mkdir()
    if given == "a file":
        (tmp_path / "secret" / "seed").write_text(f"{seed}\n")
    (tmp_path / "secret" / "word").write_text("what is beside it")
    digits = b"".join((seed >> 30 * place & (1 << 30) - 1).to_bytes(4, "little") for place in range(3))
    words = {
        "seed as text": str(seed).encode(),
        "seed as a number": digits,
        "seed as bytes": seed.to_bytes(12, "little"),
        "control of the environment": b"what the environment holds",
        "control of the command": b"61.0625",
        "control of a file": b"what is beside it",
    }
    for name, word in words.items():
        (tmp_path / f"{name}.backwards").write_bytes(word[::-1])
    (tmp_path / "probe.py").write_text(PROBE)
    split = "hidden:secret/seed" if given == "a file" else f"hidden:{seed}"
    command = ["judge", "probe.py:heuristic", "--problem", "aryl.two_job", "--split", split, "--json"]
    (tmp_path / "seeds").mkdir()
    changed = {"CONTROL": "what the environment holds", "HOME": str(tmp_path), "TMPDIR": str(tmp_path / "seeds")}
    done = subprocess.run(
        [sys.executable, "-c", "from validation.cli import main; main()", *command, "--budget", "61.0625"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), **changed},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    said = [one["reason"] for one in found["instances"] if "found: " in one["reason"]]
    assert said
    for reason in said:
        assert "control of the environment in memory" in reason
        assert "control of the environment in environ" in reason
        assert "control of the command in cmdline" in reason
        assert "control of a file in word" in reason
        assert "seed" not in reason
    assert str(seed) not in done.stdout
    assert found["seeds"]["instances"] is None
    digests = {one["digest"] for one in found["instances"]}
    assert generate("aryl.two_job", seed, 8, 0).digest in digests
    assert not list((tmp_path / "seeds").iterdir())


# --- a way to the next question -----------------------------------------------------------------

LIBC: Any = ctypes.CDLL(None, use_errno=True)
KEY = 0x6A756467


def checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return result


def a_file(place: Path) -> Callable[[], object]:
    place.write_text("a word", encoding="utf-8")
    return place.unlink


def shared_memory() -> Callable[[], object]:
    number = checked(LIBC.shmget(KEY, 4096, 0o1600))
    return lambda: LIBC.shmctl(number, 0, None)


def a_semaphore() -> Callable[[], object]:
    number = checked(LIBC.semget(KEY, 1, 0o1600))
    return lambda: LIBC.semctl(number, 0, 0)


def a_message() -> Callable[[], object]:
    number = checked(LIBC.msgget(KEY, 0o1600))
    return lambda: LIBC.msgctl(number, 0, None)


def a_server() -> Callable[[], object]:
    made = socket.socket()
    made.bind(("127.0.0.1", 0))
    return made.close


def a_queue() -> Callable[[], object]:
    queue = f"/optgap-{KEY}".encode()
    checked(LIBC.mq_open(queue, os.O_CREAT | os.O_RDWR, 0o600, None))
    return lambda: LIBC.mq_unlink(queue)


def flags_of_a_file() -> Callable[[], object]:
    """Where the file system has such flags: one that backups look at."""
    get, put, no_dump = 0x80086601, 0x40086602, 0x40
    with open(__file__, "rb") as file:
        (before,) = struct.unpack("l", fcntl.ioctl(file, get, bytes(8)))
        fcntl.ioctl(file, put, struct.pack("l", before | no_dump))
        fcntl.ioctl(file, put, struct.pack("l", before))
    return lambda: None


def a_hint_of_a_file() -> Callable[[], object]:
    with open(__file__, "rb") as file:
        fcntl.fcntl(file, 1036, struct.pack("Q", 0))  # F_SET_RW_HINT
    return lambda: None


def attributes_of_a_file() -> Callable[[], object]:
    os.setxattr(__file__, "user.optgap", b"a word")
    return lambda: os.removexattr(__file__, "user.optgap")


def times_of_a_file() -> Callable[[], object]:
    before = os.stat(__file__)
    os.utime(__file__, ns=(before.st_atime_ns, before.st_mtime_ns))
    return lambda: None


def rights_of_a_file() -> Callable[[], object]:
    os.chmod(__file__, os.stat(__file__).st_mode)
    return lambda: None


def limits_of_its_parent() -> Callable[[], object]:
    import resource

    limits = resource.prlimit(os.getppid(), resource.RLIMIT_CORE)
    resource.prlimit(os.getppid(), resource.RLIMIT_CORE, limits)
    return lambda: None


def cores_of_its_parent() -> Callable[[], object]:
    os.sched_setaffinity(os.getppid(), os.sched_getaffinity(os.getppid()))
    return lambda: None


def niceness_of_its_parent() -> Callable[[], object]:
    os.setpriority(os.PRIO_PROCESS, os.getppid(), os.getpriority(os.PRIO_PROCESS, os.getppid()))
    return lambda: None


CHANNELS: dict[str, Callable[[], Callable[[], object]]] = {
    "memory as a file": lambda: a_file(Path("/dev/shm/judged")),
    "shared memory": shared_memory,
    "a semaphore": a_semaphore,
    "a message": a_message,
    "a queue": a_queue,
    "a server": a_server,
    "times of a file": times_of_a_file,
    "rights of a file": rights_of_a_file,
    "limits of its parent": limits_of_its_parent,
    "cores of its parent": cores_of_its_parent,
    "niceness of its parent": niceness_of_its_parent,
}
"""Each leaves something that outlasts its process, and returns what takes it away again."""
OF_SOME_FILES = {
    "flags of a file": flags_of_a_file,
    "a hint of a file": a_hint_of_a_file,
    "attributes of a file": attributes_of_a_file,
}
"""What not every file system has."""


def still_open() -> dict[str, list[str]]:
    """Say which channels are open."""
    found = []
    for name, leave in (CHANNELS | OF_SOME_FILES).items():
        try:
            leave()()
            found.append(name)
        except OSError:
            pass
    return {"open": found}


def leaves(instance: Reclaim) -> None:
    raise RuntimeError(f"left: {', '.join(still_open()['open'])}")


@WALLED
def test_nothing_that_a_heuristic_writes_outlasts_its_process() -> None:
    with Apart(still_open, own=True) as apart:
        by_itself = apart.ask(seconds=60.0).content
    assert by_itself
    assert set(CHANNELS) <= set(by_itself["open"]), "each is open by itself"
    (sealed,) = judged(leaves, SET[:1], budget=60.0).instances
    assert sealed.reason.startswith("RuntimeError: left: (")


def writes_where_it_can(instance: Reclaim) -> None:
    import tempfile

    found = [str(a_file(Path(tempfile.gettempdir()) / "mine"))]
    for place in (Path.cwd(), Path.home(), Path("/tmp"), Path("/var/tmp"), Path(__file__).parent):
        try:
            a_file(place / "judged-left-this")()
            found.append(str(place))
        except OSError:
            pass
    raise RuntimeError(f"wrote to {len(found)}")


@WALLED
def test_it_writes_to_a_folder_of_its_own_only() -> None:
    (one,) = judged(writes_where_it_can, SET[:1]).instances
    assert one.reason.startswith("RuntimeError: wrote to 1 ")


def test_it_may_do_what_concerns_itself_alone() -> None:
    """Limits, cores and niceness of its own, threads, programs, pipes and pairs of sockets."""

    def works(instance: Reclaim) -> ReclaimPlan:
        import resource
        import threading

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.sched_setaffinity(0, os.sched_getaffinity(0))
        os.nice(1)
        one, other = socket.socketpair()
        thread = threading.Thread(target=one.send, args=(b"word",))
        thread.start()
        assert other.recv(4) == b"word"
        said = subprocess.run(["echo", "word"], capture_output=True, check=True)
        assert said.stdout == b"word\n"
        return bad(instance)

    assert judged(works).score == judged(bad).score


# --- cheats -------------------------------------------------------------------------------------

RUN = {name: one for name, one in CHEATS.items() if STANDING or not one.walled}
SOME = dict(list(RUN.items())[::6])


class Trial:
    """What cheats got of the judge, and what they left."""

    def __init__(self, folder: Path, cheats: dict[str, Cheat]) -> None:
        texts = [text_of(generate("aryl.reclaim", 5, 8, 0))]
        self.bad, self.honest = judged(bad, texts), judged(HONEST["honest"], texts)
        with known(folder) as left:
            self.found: dict[str, Judgement] = {
                name: judged(one.function, texts, budget=0.5 if one.lasting else 60.0) for name, one in cheats.items()
            }
        self.left: Left = left
        self.again = judged(bad, texts)


@pytest.fixture(scope="module", params=[SOME, pytest.param(RUN, marks=pytest.mark.slow)], ids=["some", "all"])
def trial(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trial:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judging, "MEMORY", 2 * 10**8)
        return Trial(tmp_path_factory.mktemp("judge"), request.param)


def test_a_cheat_would_have_something_to_gain(trial: Trial) -> None:
    assert trial.bad.score < trial.honest.score <= 1.0


def test_no_cheat_scores_more_than_an_honest_bad_heuristic(trial: Trial) -> None:
    assert len(trial.found) > 10
    assert [one for one in trial.found.items() if one[1].score not in (0.0, trial.bad.score)] == []


def test_cheats_change_nothing_that_comes_after_them(trial: Trial) -> None:
    assert trial.again.score == trial.bad.score
    assert trial.left.files == []
    assert trial.left.processes == []


@pytest.mark.parametrize("name", [name for name in HONEST if name not in ("a_pool", "an_executor")])
def test_unusual_heuristics_are_judged_as_others_are(name: str) -> None:
    assert judged(HONEST[name], SET[:2]).score == judged(HONEST["honest"], SET[:2]).score


@WALLED
@pytest.mark.parametrize("name", ["a_pool", "an_executor"])
def test_processes_that_share_memory_are_refused(name: str) -> None:
    (one,) = judged(HONEST[name], SET[:1]).instances
    assert one.reason.startswith("PermissionError")
