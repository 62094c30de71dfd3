"""A share of all harm: what is done to files, studies and processes, and what comes of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.results.kept import Asked
from benchmarks.results.page import Page, made

__all__ = ["make", "measured"]

ROOT = Path(__file__).parents[2]
COMMAND = ("-m", "benchmarks.faults", "--seed", "1", "--share", "0.02")


def make(asked: Asked) -> Page:
    """Do harm, and make the page."""
    kept = asked.once("faults", measured, command=COMMAND)
    said = kept.content.replace("\nWrong:", "\n\nWrong:").rstrip()
    return made("faults", [kept], command=f"python {' '.join(COMMAND)}", said=said)


def measured() -> str:
    """Return the table that the command prints, and what went wrong, below it."""
    done = subprocess.run([sys.executable, *COMMAND], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):  # 1 where something went wrong, which the table and the lines below it say.
        raise RuntimeError(f"python {' '.join(COMMAND)}: exit code {done.returncode}")
    return done.stdout
