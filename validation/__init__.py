"""What is true: the catalogue, gap studies, property checks, hunts, and the command line.

``gap_study`` measures heuristics against proven optima, ``check_heuristic`` puts one to the test,
``find_worst`` looks for its worst case; ``CATALOGUE`` is the library's table of contents.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from validation.cases import StudyError
    from validation.catalogue import CATALOGUE, CatalogueError, Entry, Heuristic
    from validation.checks import CheckReport, Monotone, Ratio, Relabelled, check_heuristic, parametrize_with_checks
    from validation.hunt import find_worst
    from validation.results import Study
    from validation.study import Progress, gap_study
    from validation.witness import Witness

__all__ = [
    "CATALOGUE",
    "CatalogueError",
    "CheckReport",
    "Entry",
    "Heuristic",
    "Monotone",
    "Progress",
    "Ratio",
    "Relabelled",
    "Study",
    "StudyError",
    "Witness",
    "check_heuristic",
    "find_worst",
    "gap_study",
    "parametrize_with_checks",
]

_MODULES = ("cases", "catalogue", "checks", "hunt", "results", "study", "witness")


def __getattr__(name: str) -> Any:
    # Imported when asked for: the command line starts at once, and can tell of other packages that
    # have taken the names of this library's.
    if name in __all__:
        for module in _MODULES:
            found = vars(import_module(f"validation.{module}"))
            if name in found:
                return found[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
