"""Validation of methods: the catalogue, gap studies, property checks, hunts, and the command line.

``gap_study`` measures heuristics against proven optima, ``merge_studies`` joins its shards, ``replay_study`` says what
their gaps come to on a trace, ``check_heuristic`` puts a heuristic to the test, ``find_worst`` looks for its worst
case, ``worst_case`` proves how bad it gets, ``judge`` gives it one number; ``CATALOGUE`` is the library's table of
contents, and ``register`` adds to it from outside.
"""

from typing import TYPE_CHECKING

from lazy_loader import attach

from validation.renamed import install

if TYPE_CHECKING:
    from validation.catalogue import CATALOGUE, Entry, Heuristic, Rescaling, named, register
    from validation.errors import CatalogueError, StudyError
    from validation.kernel.progress import Progress
    from validation.kinds.checks import (
        BreaksOnly,
        CheckReport,
        Holds,
        Monotone,
        NeverWorseThan,
        Ratio,
        Relabelled,
        check_heuristic,
        parametrize_with_checks,
    )
    from validation.kinds.claims import Claim, Verdict, examine
    from validation.kinds.hunt import find_worst
    from validation.kinds.judge.judging import Judgement, judge
    from validation.kinds.replays.options import ReplayOptions
    from validation.kinds.replays.results import Replays
    from validation.kinds.replays.study import replay_study
    from validation.kinds.stored import merge_studies
    from validation.kinds.study.compare import Comparison, compare_studies
    from validation.kinds.study.options import StudyOptions
    from validation.kinds.study.pairs import SideBySide
    from validation.kinds.study.results import Study
    from validation.kinds.study.run import gap_study
    from validation.kinds.witness import Witness
    from validation.kinds.worst_case import WorstCase, worst_case
    from validation.settings import Settings
    from validation.testing.strategies import strategy

__all__ = [
    "CATALOGUE",
    "BreaksOnly",
    "CatalogueError",
    "CheckReport",
    "Claim",
    "Comparison",
    "Entry",
    "Heuristic",
    "Holds",
    "Judgement",
    "Monotone",
    "NeverWorseThan",
    "Progress",
    "Ratio",
    "Relabelled",
    "ReplayOptions",
    "Replays",
    "Rescaling",
    "Settings",
    "SideBySide",
    "Study",
    "StudyError",
    "StudyOptions",
    "Verdict",
    "Witness",
    "WorstCase",
    "check_heuristic",
    "compare_studies",
    "examine",
    "find_worst",
    "gap_study",
    "judge",
    "merge_studies",
    "named",
    "parametrize_with_checks",
    "register",
    "replay_study",
    "strategy",
    "worst_case",
]

# Imported when asked for: the command line starts at once, and can tell of other packages that have
# taken the names of this library's.
__getattr__, __dir__, _ = attach(
    __name__,
    submod_attrs={
        "catalogue": ["CATALOGUE", "Entry", "Heuristic", "Rescaling", "named", "register"],
        "errors": ["CatalogueError", "StudyError"],
        "kinds.judge.judging": ["Judgement", "judge"],
        "kinds.replays.options": ["ReplayOptions"],
        "kinds.replays.results": ["Replays"],
        "kinds.replays.study": ["replay_study"],
        "kinds.study.compare": ["Comparison", "compare_studies"],
        "kinds.stored": ["merge_studies"],
        "kinds.study.options": ["StudyOptions"],
        "kernel.progress": ["Progress"],
        "kinds.study.pairs": ["SideBySide"],
        "kinds.study.results": ["Study"],
        "kinds.study.run": ["gap_study"],
        "kinds.checks": [
            "BreaksOnly",
            "CheckReport",
            "Holds",
            "Monotone",
            "NeverWorseThan",
            "Ratio",
            "Relabelled",
            "check_heuristic",
            "parametrize_with_checks",
        ],
        "kinds.claims": ["Claim", "Verdict", "examine"],
        "kinds.hunt": ["find_worst"],
        "testing.strategies": ["strategy"],
        "kinds.witness": ["Witness"],
        "settings": ["Settings"],
        "kinds.worst_case": ["WorstCase", "worst_case"],
    },
)

install()
