"""The command line: signals end it in one line, with nothing left behind."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

from benchmarks.faults.commands import run
from benchmarks.faults.signals import COMMANDS, SIGNALS, judged

from ...processes import eventually

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked at as on Linux")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_while_modules_are_imported(command: str, number: signal.Signals, tmp_path: Path) -> None:
    ended = run(tmp_path, COMMANDS[command], sent=((0.0, number),), fresh=True)
    assert ended.signals == (number,)
    assert ended.code == 128 + number
    assert judged(ended, tmp_path) == []
    assert len(ended.err.splitlines()) == 1
    assert ended.err.startswith("optgap: interrupted")
    assert list(tmp_path.iterdir()) == []


HANGS = "import time\n\ndef f(instance):\n    time.sleep(1e9)\n"


def test_a_study_is_told_to_end_while_a_heuristic_hangs(tmp_path: Path) -> None:
    (tmp_path / "hangs.py").write_text(HANGS, encoding="utf-8")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    command = ["study", "aryl.reclaim", "--heuristic", "hangs:f", "--sizes", "4", "--count", "1", "--seed", "1"]
    process = subprocess.Popen(
        [sys.executable, "-c", "from validation.cli import main; main()", *command, "--jobs", "2", "-o", "study"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(temporary), "OPTGAP_HERE": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
    )
    log = tmp_path / "study" / "rows.jsonl"
    eventually(lambda: log.exists() and log.read_bytes().endswith(b"\n"), meanwhile=process)
    process.terminate()
    _, err = process.communicate(timeout=120)
    assert process.returncode == 143
    assert (
        err.splitlines()[-1] == "optgap: interrupted; what ended is in study, and the same command goes on from there"
    )
    assert list(temporary.iterdir()) == []
    mark = f"OPTGAP_HERE={tmp_path}".encode()
    assert not [path for path in Path("/proc").glob("[0-9]*/environ") if mark in environment(path)]
    (row,) = map(json.loads, log.read_text(encoding="utf-8").splitlines())
    assert (row["algorithm"], row["status"]) == ("exact", "optimal")


def environment(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


# --- the mechanism by itself ----------------------------------------------------------------------


def guarded(body: str, tmp_path: Path, before: str = "") -> subprocess.CompletedProcess[str]:
    """A process whose command has this body."""
    script = f"import os, signal, sys, tempfile\nfrom validation.cli import interruption\n{before}\ndef run():\n"
    script += textwrap.indent(textwrap.dedent(body), "    ") + "\nsys.exit(interruption.guarded(run))\n"
    return subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def assert_ends(done: subprocess.CompletedProcess[str], folder: Path, code: int, out: str, err: str) -> None:
    assert (done.returncode, done.stdout, done.stderr) == (code, out, err)
    assert list(folder.iterdir()) == []


INTERRUPTED = "optgap: interrupted\n"
SEND = "os.kill(os.getpid(), signal.{})\n"


@pytest.mark.parametrize("number", SIGNALS)
def test_what_is_done_is_told_and_the_code_is_that_of_the_signal(number: signal.Signals, tmp_path: Path) -> None:
    body = """
    interruption.say(lambda: "3 of 4 are done")
    print("one line")
    tempfile.mkdtemp()
    """
    done = guarded(textwrap.dedent(body) + SEND.format(number.name), tmp_path)
    assert_ends(done, tmp_path, 128 + number, "one line\n", "optgap: interrupted; 3 of 4 are done\n")


def test_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    body = """
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    finally:
        os.kill(os.getpid(), signal.SIGINT)
        print("cleaned up")
    """
    assert_ends(guarded(body, tmp_path), tmp_path, 143, "", INTERRUPTED)


def test_a_second_signal_leaves_no_half_written_file(tmp_path: Path) -> None:
    body = f"""
        from instances.files import write_whole

        def pieces():
            yield b"half"
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt:
                print([name[:9] for name in os.listdir({str(tmp_path)!r}) if "writing" in name])
                os.kill(os.getpid(), signal.SIGTERM)

        write_whole(os.path.join({str(tmp_path)!r}, "output"), pieces())
        """
    assert_ends(guarded(body, tmp_path), tmp_path, 130, "['.writing-']\n", INTERRUPTED)


@pytest.mark.parametrize(
    "body",
    [
        # As libraries do while they are imported, and as nothing can be raised from a finalizer.
        "try:\n    {}except BaseException:\n    raise ImportError('no array module') from None",
        "class Swallows:\n    def __del__(self):\n        {}\nSwallows()\nprint('went on')",
    ],
)
def test_an_interruption_that_is_turned_into_something_else(body: str, tmp_path: Path) -> None:
    assert_ends(guarded(body.format(SEND.format("SIGINT")), tmp_path), tmp_path, 130, "", INTERRUPTED)


def test_what_hypothesis_keeps_is_temporary(tmp_path: Path) -> None:
    """It would be in the current directory, as it was when Hypothesis was imported."""
    body = f"""
    os.chdir({str(tmp_path)!r})
    from hypothesis.configuration import storage_directory
    storage_directory("constants").create_if_missing()
    print(len(list(os.scandir(tempfile.gettempdir()))))
    """
    assert_ends(guarded(body, tmp_path), tmp_path, 0, "1\n", "")


def test_what_is_ignored_from_the_start_stays_ignored(tmp_path: Path) -> None:
    before = "signal.signal(signal.SIGHUP, signal.SIG_IGN)"
    assert_ends(
        guarded(SEND.format("SIGHUP") + "print('went on')\nreturn 0", tmp_path, before), tmp_path, 0, "went on\n", ""
    )


def test_a_process_forked_a_moment_ago_ends_silently(tmp_path: Path) -> None:
    body = """
    pid = os.fork()
    if not pid:
        os.kill(os.getpid(), signal.SIGTERM)
    _, status = os.waitpid(pid, 0)
    print(os.waitstatus_to_exitcode(status))
    return 0
    """
    assert_ends(guarded(body, tmp_path), tmp_path, 0, "143\n", "")


def test_handlers_and_the_temporary_folder_are_put_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from validation.cli import interruption

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = [signal.getsignal(number) for number in SIGNALS]
    inside = []

    def look() -> int:
        inside.append(Path(tempfile.gettempdir()))
        return 5

    assert interruption.guarded(look) == 5
    assert [signal.getsignal(number) for number in SIGNALS] == before
    assert inside[0].parent == tmp_path
    assert tempfile.tempdir == str(tmp_path)
    assert list(tmp_path.iterdir()) == []
