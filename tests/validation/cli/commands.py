"""How tests give commands and read what is said."""

import sys
from collections.abc import Callable
from dataclasses import dataclass

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
