"""Where a result comes from: versions, machine, command and commit."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from functools import cache
from importlib import metadata as importlib_metadata
from pathlib import Path
from typing import Any

from validation.formatting import printable
from validation.kernel.walls import standing

__all__ = ["cores", "memory_of_machine", "provenance", "today", "version"]


@cache
def version(distribution: str) -> str:
    """Version of an installed distribution."""
    try:
        return importlib_metadata.version(distribution)
    except importlib_metadata.PackageNotFoundError:
        return "not installed"


def today() -> str:
    """Return the date, such as "2026-11-22"; what is measured looks at a clock that nobody sets."""
    return datetime.now(UTC).date().isoformat()


def provenance(jobs: int) -> dict[str, Any]:
    """Record what ran, and where and when; ``seconds`` are added when the run has ended."""
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": None,
        "jobs": jobs,
        "command": printable(shlex.join(sys.argv)),
        "commit": _commit(),
        "versions": {
            name: version(name)
            for name in ("scheduling-formulations", "pyomo", "highspy", "numpy", "pandas", "hypothesis")
        }
        | {"python": platform.python_version()},
        "machine": {
            "system": platform.platform(),
            "processor": _processor(),
            "cores": cores(),
            "walls": standing(),
        },
    }


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_of_machine() -> int:
    """Bytes of memory that there are."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 8 * 2**30


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()


def _commit() -> str | None:
    """Commit of the library's source, with a mark when it has changed; None outside a checkout."""
    folder = Path(__file__).parent
    # Without the lock by which a look may refresh the index: killed in the middle, it would leave it behind.
    git = ["git", "--no-optional-locks", "-C", str(folder)]
    try:
        # Installed into someone else's checkout, the library is not among its files.
        subprocess.run([*git, "ls-files", "--error-unmatch", __file__], capture_output=True, check=True, timeout=10)
        head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True, timeout=10)
        status = subprocess.run(
            [*git, "status", "--porcelain", "--", str(folder.parents[1])],
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return head.stdout.strip() + (" (changed)" if status.stdout.strip() else "")
