"""Files of Python that are no part of a package, as modules."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
COLLECTED = {path.parent.name for path in (ROOT / "collection").glob("*/records.json")}
"""The problems of the collection, of which more is asked than of one that is added."""


def module_of(path: Path) -> Any:
    """The module that a file of the checkout makes, named after its place there."""
    spec = importlib.util.spec_from_file_location(".".join(path.relative_to(ROOT).with_suffix("").parts), path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
