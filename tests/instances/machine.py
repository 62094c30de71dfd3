"""Everything that is promised to be the same on every machine, as JSON: digests, plans and their values.

Run by test_machines.py in processes of their own, because NumPy chooses its kernels when it is imported.
"""

from __future__ import annotations

import ctypes
import json
import platform
import sys
import sysconfig
from pathlib import Path
from typing import Any

from validation import CATALOGUE
from validation.kinds.study.cases import generate

SIZES, COUNT = 1, 2


def kernel() -> str:
    """The name of the BLAS kernel in use; empty where NumPy has another BLAS than OpenBLAS."""
    packages = Path(sysconfig.get_path("platlib"))
    for path in [*packages.glob("numpy.libs/*openblas*"), *packages.glob("numpy/.dylibs/*openblas*")]:
        name = ctypes.CDLL(str(path)).scipy_openblas_get_corename64_
        name.restype = ctypes.c_char_p
        return str(name().decode())
    return ""


def results() -> dict[str, Any]:
    """Digests by instance, and what heuristics make of each: plan, value and broken rules."""
    digests: dict[str, str] = {}
    plans: dict[str, Any] = {}
    for problem, entry in CATALOGUE.items():
        for size in entry.sizes[:SIZES]:
            for index in range(COUNT):
                instance = generate(problem, 1, size, index)
                digests[f"{problem} {size} {index}"] = instance.digest
                for name, heuristic in entry.heuristics.items():
                    plan = heuristic.function(instance, **({"rng": 0} if heuristic.random else {}))
                    plans[f"{problem} {size} {index} {name}"] = plan and (
                        plan.to_dict(),
                        instance.objective(plan),
                        [broken.rule for broken in instance.violations(plan)],
                    )
    return {"kernel": kernel(), "digests": digests, "plans": plans}


def other() -> str:
    """A kernel that this processor can run and that is not its own."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return "ARMV8"
    # OpenBLAS calls its Prescott kernel by an older processor's name.
    return "Nehalem" if kernel() in ("Katmai", "Prescott") else "Prescott"


if __name__ == "__main__":
    print(other() if "--other" in sys.argv else json.dumps(results()))
