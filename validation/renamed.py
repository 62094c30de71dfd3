"""Modules under the names that they had before version 0.4, for one release."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

__all__ = ["RENAMED", "install"]

_MOVED = {
    "kernel": {
        "validation": "cluster gaps isolation node provenance workers",
        "validation.study": "forecast keys progress store",
    },
    "kinds": {"validation.testing": "checks claims family hunt promises witness worst_case"},
    "kinds.collection": {"validation.collection": "judging prices slots store submission"},
    "kinds.judge": {"validation.judgement": "judging sets"},
    "kinds.replays": {"validation.replay": "options paired records results study windows"},
    "kinds.study": {"validation.study": "cases cells compare options real records report results run sweeps"},
    "pages": {"validation": "drawing latex", "validation.study": "plots"},
}

RENAMED = {
    f"{old}.{name}": f"validation.{new}.{name}"
    for new, olds in _MOVED.items()
    for old, names in olds.items()
    for name in names.split()
} | {
    "validation.collection": "validation.kinds.collection",
    "validation.collection.page": "validation.kinds.collection.page",
    "validation.judgement": "validation.kinds.judge",
    "validation.judgement.sealing": "validation.kernel.walls",
    "validation.study.page": "validation.pages.render",
    "validation.replay.asking": "validation.replay.questions",
    "validation.replay.plots": "validation.pages.replay_plots",
    "validation.replay.report": "validation.kinds.replays.report",
    "validation.reference": "instances.reference",
    "validation.study": "validation.kinds.study",
    "validation.study.compare_page": "validation.kinds.study.comparison",
    "validation.testing.claim_pages": "validation.kinds.claim_pages",
    "validation.study.merge": "validation.kinds.stored",
}
"""New names by old ones."""


class _WhenAsked(MetaPathFinder):
    """Finds them by what finds old names in all rooms, which is imported then: a command starts without NumPy."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in RENAMED:
            return None
        from instances.renamed import Finder

        return Finder(RENAMED).find_spec(fullname)


def install() -> None:
    """Let the import system find modules of this package under their old names."""
    # First, because a folder that is left over under an old name would be found as a package without content.
    sys.meta_path.insert(0, _WhenAsked())
