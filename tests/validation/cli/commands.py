"""How tests give commands and read what is said."""

import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from validation.kernel.walls import lost, standing

from ...processes import eventually

MISSING = f"optgap: {lost(standing())}\n"
"""What a command says first where walls are missing."""

MAIN = [sys.executable, "-c", "from validation.cli import main; main()"]
UNDRAWN = [
    sys.executable,
    "-c",
    "from validation.kinds.study import report; report.problem_pictures = lambda *_: []; "
    "report.plans_side_by_side = lambda *_, **__: '<svg></svg>'; "
    "from validation.cli import main; main()",
]
"""As MAIN, where studies are reported without their pictures, which take most of a small study's time."""


@dataclass(frozen=True)
class Said:
    """How a command ended."""

    code: int
    out: str
    err: str


Optgap = Callable[..., Said]


def assert_goes_on(command: list[str], folder: Path, output: str, *, enough: int, whole: int, said: str) -> None:
    """Interrupt a command once its log has ``enough`` lines; the same one goes on from there, to ``whole`` lines."""
    log = folder / output / "rows.jsonl"
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    eventually(lambda: log.exists() and len(log.read_bytes().splitlines()) >= enough, meanwhile=process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1] == f"optgap: interrupted; {said} in {output}, and the same command goes on from there"
    ended = log.read_bytes()
    assert ended.endswith(b"\n")
    assert len(ended.splitlines()) < whole
    assert [path.name for path in (folder / output).rglob(".writing-*")] == []
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert log.read_bytes().startswith(ended)
    assert len(log.read_bytes().splitlines()) == whole


def lines_of(said: Said) -> dict[str, str]:
    return {line.split()[0]: line.split(maxsplit=1)[1] for line in said.out.splitlines()}


MINE = """
    import numpy as np
    from instances.aryl.reclaim import ReclaimPlan

    def first(instance):
        return ReclaimPlan(servers=np.arange(instance.demand))

    def too_few(instance):
        return ReclaimPlan(servers=np.arange(0))

    def gives_up(instance):
        return None

    def a_number(instance):
        return 3
"""


SMALL = ("--sizes", "4,5", "--count", 2, "--seed", 1, "-o", "study")
