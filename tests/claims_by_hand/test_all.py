"""Which stored counterexamples are judged here, and by what."""

from __future__ import annotations

import ast
from pathlib import Path

from . import stored, test_afs, test_aryl, test_elasticflow, test_gavel, test_synergy
from .stored import FOLDER, JUDGED

MODULES = (test_afs, test_aryl, test_elasticflow, test_gavel, test_synergy)

LEFT = {
    # Tune with jobs that are split over servers.
    "synergy/tuning/tune_construction-2",
}
"""Those that only the claims' own code has judged, beside most of Gavel's."""


def test_a_counterexample_is_judged_or_listed() -> None:
    names = {str(path.relative_to(FOLDER).with_suffix("")) for path in FOLDER.rglob("*.json")}
    assert names >= JUDGED | LEFT
    assert not JUDGED & LEFT
    assert {name for name in names - JUDGED - LEFT if not name.startswith("gavel/")} == set()


def test_judges_share_no_code_with_claims() -> None:
    """They are written with the standard library, the reference, and what reads a stored file."""
    allowed = {
        "__future__",
        "ast",
        "collections",
        "copy",
        "fractions",
        "instances",
        "itertools",
        "json",
        "math",
        "pathlib",
    }
    for path in (Path(str(module.__file__)) for module in (*MODULES, stored)):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                assert node.module is not None
                assert node.module.partition(".")[0] in allowed | {"statistics", "typing"}, path
                assert node.module.startswith("instances.reference") or not node.module.startswith("instances")
            if isinstance(node, ast.Import):
                assert {alias.name for alias in node.names} <= allowed | {"pytest"}, path
