"""What ends a command from outside: Ctrl-C (SIGINT), SIGTERM, and the end of the terminal (SIGHUP).

The first of them is raised as :class:`Interrupted` wherever the command is, so that it can save what it has; a
second one ends the command at once.  Either way there is one line on standard error, the exit code is 128 and the
number of the first signal, and no process, temporary folder or half-written file is left behind.  Two signals that
come while Python is in C code are heard in the order of their numbers.  A signal that is ignored from the start, as
under ``nohup``, stays ignored.

Nothing heavy is imported here, because the handlers are to be there before anything heavy is.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NoReturn

__all__ = ["Interrupted", "begin_anew", "came", "guarded", "say"]

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_TEMPORARY = ("TMPDIR", "HYPOTHESIS_STORAGE_DIRECTORY")
"""What names the folder of temporary files; Hypothesis would leave what it keeps of sources in the current one."""


class Interrupted(KeyboardInterrupt):
    """The command is asked to end."""


class _Command:
    """The command that runs in this process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.signal: int | None = None
        self.done: Callable[[], str] = lambda: ""
        self.folder = ""
        self.variables: dict[str, str | None] = {}
        self.over = False


_command = _Command()


def say(done: Callable[[], str]) -> None:
    """Set what an interruption says from now on: what is done and where it is."""
    _command.done = done


def came() -> bool:
    """Return whether a signal has asked the command to end."""
    return _command.signal is not None


def guarded(run: Callable[[], int]) -> int:
    """Run a command that this process is there for, and return its exit code; signals end it as this module says.

    A process whose command was interrupted ends here.
    """
    global _command
    _command = _Command()
    before = {number: signal.getsignal(number) for number in SIGNALS}
    hook, sys.unraisablehook = sys.unraisablehook, _swallowed
    try:
        try:
            for number, handler in before.items():
                if handler is not signal.SIG_IGN:
                    signal.signal(number, _ask)
            with _temporary_folder():
                return run()
        finally:
            _command.over = True
    finally:
        # Whatever an interruption became on its way, in the middle of an import say.
        if came():
            _leave()
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.unraisablehook = hook
        # What comes while the interpreter is taken down finds nothing left to end.
        atexit.register(_ignore)


def _ask(number: int, frame: FrameType | None) -> None:
    """Handle a signal."""
    if os.getpid() != _command.pid:
        os._exit(128 + number)  # A process forked a moment ago, which has not come to its own handlers yet.
    if came():
        _leave()
    _command.signal = number
    if not _command.over:
        raise Interrupted


def _swallowed(unraisable: Any) -> None:
    """End the process for an interruption that came where nothing can be raised, as in a finalizer."""
    if came() and os.getpid() == _command.pid:
        _leave()
    sys.__unraisablehook__(unraisable)


def _leave() -> None:
    """End this process as one that was interrupted."""
    _ignore()
    isolation = sys.modules.get("validation.kernel.isolation")
    if isolation is not None:
        isolation.end_family(os.getpid())
    files = sys.modules.get("instances.files")
    for path in getattr(files, "UNFINISHED", ()):
        with contextlib.suppress(OSError):
            os.unlink(path)
    _remove(_command.folder)
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    with contextlib.suppress(Exception):
        sys.stderr.flush()
    done = ""
    with contextlib.suppress(Exception):
        done = _command.done()
    with contextlib.suppress(OSError):  # The terminal is gone.
        os.write(2, f"optgap: interrupted{done and '; '}{done}\n".encode(errors="replace"))
    assert _command.signal is not None
    os._exit(128 + _command.signal)


def _ignore() -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


@contextlib.contextmanager
def _temporary_folder() -> Iterator[None]:
    """One folder for all temporary files of the command, so that none is left however it ends."""
    import tempfile

    named: tuple[str, ...] = _TEMPORARY
    if "MPLCONFIGDIR" not in os.environ and not os.access(os.path.expanduser("~"), os.W_OK):
        # Matplotlib would make a folder below this one for itself, and miss it when the process ends.
        named = (*named, "MPLCONFIGDIR")
    before, _command.variables = tempfile.tempdir, {name: os.environ.get(name) for name in named}
    try:
        # A signal waits, because the place is found by a file that would stay behind.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            place = tempfile.gettempdir()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        # Known before it is there, so that it is never there unknown.
        _command.folder = os.path.join(place, f"optgap-{os.urandom(8).hex()}")
        os.mkdir(_command.folder, 0o700)
    except OSError:
        yield  # Whoever needs a temporary file will say that there is no place for one.
        return
    tempfile.tempdir = _command.folder
    os.environ.update(dict.fromkeys(named, _command.folder))
    try:
        yield
    finally:
        tempfile.tempdir = before
        _forget_folder()


def _forget_folder() -> None:
    for name, value in _command.variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    _remove(_command.folder)


def begin_anew(program: str, arguments: list[str]) -> NoReturn:
    """Become another program, and leave no more behind than a command that ends."""
    _forget_folder()
    os.execv(program, arguments)


def _remove(folder: str) -> None:
    import shutil

    if folder:
        shutil.rmtree(folder, ignore_errors=True)
