"""What is true: the catalogue, optimality-gap studies, and the command line.

``gap_study`` measures heuristics against proven optima; ``CATALOGUE`` is the library's table of
contents.
"""

from validation.cases import StudyError
from validation.catalogue import CATALOGUE, CatalogueError, Entry, Heuristic
from validation.results import Study
from validation.study import Progress, gap_study

__all__ = [
    "CATALOGUE",
    "CatalogueError",
    "Entry",
    "Heuristic",
    "Progress",
    "Study",
    "StudyError",
    "gap_study",
]
