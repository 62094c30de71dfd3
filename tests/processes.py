"""What tests of processes share: whether one runs, and waiting for what comes in its own time."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def is_alive(pid: int) -> bool:
    """Whether a process runs; a dead one that nobody has waited for does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def eventually(
    condition: Callable[[], Any], patience: float = 120.0, *, meanwhile: subprocess.Popen[Any] | None = None
) -> Any:
    """The first true value of ``condition``; until then the process that is given must run."""
    deadline = time.monotonic() + patience
    while not (value := condition()):
        assert meanwhile is None or meanwhile.poll() is None, "the process ended before"
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.002)
    return value
