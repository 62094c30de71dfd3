"""All stored counterexamples are judged here, and by what."""

from __future__ import annotations

import ast
from pathlib import Path

from . import (
    exact,
    stored,
    test_afs,
    test_aryl,
    test_elasticflow,
    test_eplb,
    test_gavel,
    test_prism,
    test_shockwave,
    test_sia,
    test_synergy,
)
from .stored import FOLDER, JUDGED

MODULES = (
    test_afs,
    test_aryl,
    test_elasticflow,
    test_eplb,
    test_gavel,
    test_prism,
    test_shockwave,
    test_sia,
    test_synergy,
)


def test_every_counterexample_is_judged() -> None:
    assert {str(path.relative_to(FOLDER).with_suffix("")) for path in FOLDER.rglob("*.json")} == JUDGED


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
    for path in (Path(str(module.__file__)) for module in (*MODULES, exact, stored)):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                assert node.module is not None
                assert node.module.partition(".")[0] in allowed | {"statistics", "typing"}, path
                assert node.module.startswith("instances.reference") or not node.module.startswith("instances")
            if isinstance(node, ast.Import):
                assert {alias.name for alias in node.names} <= allowed | {"pytest"}, path
