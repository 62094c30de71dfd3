"""Is this installation what it seems to be?"""

from __future__ import annotations

import base64
import hashlib
import importlib
import importlib.metadata
import importlib.util
from pathlib import Path

from validation.selftest import Finding

__all__ = ["DISTRIBUTION", "ROOMS", "examine", "rooms"]

ROOMS = ("formulations", "heuristics", "instances", "validation")
"""Packages whose names other distributions have taken too."""
DISTRIBUTION = "scheduling-formulations"
"""Name of this distribution."""


def examine() -> list[Finding]:
    """Look at packages, solvers, and a solve whose answer is known."""
    findings = [*rooms(), *_packages()]
    if all(finding.ok for finding in findings):
        findings += [*_solvers(), *_walls(), _known_answer()]
    return findings


def rooms() -> list[Finding]:
    """Check that the four packages are this library's: other distributions use three of the names."""
    home = Path(__file__).resolve().parents[2]
    owners = importlib.metadata.packages_distributions()
    findings = []
    for room in ROOMS:
        spec = importlib.util.find_spec(room)
        places = list(spec.submodule_search_locations or []) if spec else []
        where = Path(places[0]).resolve().parent if places else None
        others = sorted(set(owners.get(room, [])) - {DISTRIBUTION})
        if where != home:
            text = f"package {room} is imported from {where}, not from {home}: another package has its name"
        elif others:
            text = (
                f"package {room} is also installed by {', '.join(others)}: uninstall that, or use a fresh environment"
            )
        elif not _is_as_installed(room):
            text = (
                f"package {room} is not as it was installed, another package has written over it: use a fresh "
                f"environment, or reinstall it (pip install --force-reinstall --no-deps {DISTRIBUTION})"
            )
        else:
            findings.append(Finding(True, f"package {room} from {where}"))
            continue
        findings.append(Finding(False, text))
    return findings


def _is_as_installed(room: str) -> bool:
    """Compare a package's first file with the hash that the installer recorded; a checkout has none recorded."""
    try:
        files = importlib.metadata.files(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        return True
    for file in files:
        if file.as_posix() == f"{room}/__init__.py" and file.hash is not None:
            path = Path(str(file.locate()))
            if not path.is_file():  # Gone with a package of the same name, when that was uninstalled.
                return False
            found = hashlib.new(file.hash.mode, path.read_bytes()).digest()
            return base64.urlsafe_b64encode(found).rstrip(b"=").decode() == file.hash.value
    return True


def _packages() -> list[Finding]:
    findings = []
    for name in (DISTRIBUTION, "pyomo", "highspy", "numpy", "pandas", "pyarrow", "networkx", "hypothesis"):
        try:
            findings.append(Finding(True, f"{name} {importlib.metadata.version(name)}"))
        except importlib.metadata.PackageNotFoundError:
            findings.append(Finding(False, f"{name} is not installed"))
    return findings


OTHER_SOLVERS = ("scip", "cp-sat", "gurobi", "cbc", "glpk")
"""Those beside HiGHS."""


def _solvers() -> list[Finding]:
    """List the solvers that can be named; only HiGHS has to be there."""
    import formulations
    from formulations.engine import highs

    findings = [Finding(True, f"solver highs {highs.version()}")]
    for name in OTHER_SOLVERS:
        try:
            formulations.find_solver(name)
            findings.append(Finding(True, f"solver {name} can be used"))
        except formulations.SolverNotFound as error:
            findings.append(Finding(True, f"{error} (optional)"))
    return findings


def _walls() -> list[Finding]:
    """Try the walls around heuristics; studies go on without them, and hidden sets are refused."""
    from validation.kernel.walls import WALLS, standing

    found = standing()
    told = {
        True: "wall {0}: a heuristic {1}",
        False: "wall {0} does not stand here (optional), it takes {2}: a heuristic can {3}",
    }
    return [Finding(True, told[found[name]].format(name, *words)) for name, words in WALLS.items()]


def _known_answer() -> Finding:
    """Gavel's example of section 4.1, whose optimum is 8/11."""
    import formulations
    from instances.gavel.max_min_fairness import three_jobs

    solution = formulations.solve(three_jobs())
    right = solution.status == "optimal" and solution.objective is not None and abs(solution.objective - 8 / 11) < 1e-6
    return Finding(right, f"the example of Gavel's section 4.1 gives {solution.objective}, {solution.status} (8/11)")
