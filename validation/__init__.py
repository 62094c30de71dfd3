"""What is true: the catalogue, gap studies, property checks, hunts, and the command line.

``gap_study`` measures heuristics against proven optima, ``merge_studies`` joins its shards, ``replay_study`` says what
their gaps come to on a trace, ``check_heuristic`` puts a heuristic to the test, ``find_worst`` looks for its worst
case, ``worst_case`` proves how bad it gets, ``judge`` gives it one number; ``CATALOGUE`` is the library's table of
contents, and ``register`` adds to it from outside.
"""

from typing import TYPE_CHECKING

from lazy_loader import attach

if TYPE_CHECKING:
    from validation.catalogue import CATALOGUE, Entry, Heuristic, Rescaling, named, register
    from validation.errors import CatalogueError, StudyError
    from validation.judgement.judging import Judgement, judge
    from validation.replay.options import ReplayOptions
    from validation.replay.results import Replays
    from validation.replay.study import replay_study
    from validation.study.compare import Comparison, compare_studies
    from validation.study.merge import merge_studies
    from validation.study.options import StudyOptions
    from validation.study.progress import Progress
    from validation.study.results import Study
    from validation.study.run import gap_study
    from validation.testing.checks import (
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
    from validation.testing.claims import Claim, Verdict, examine
    from validation.testing.hunt import find_worst
    from validation.testing.strategies import strategy
    from validation.testing.witness import Witness
    from validation.testing.worst_case import WorstCase, worst_case

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
        "judgement.judging": ["Judgement", "judge"],
        "replay.options": ["ReplayOptions"],
        "replay.results": ["Replays"],
        "replay.study": ["replay_study"],
        "study.compare": ["Comparison", "compare_studies"],
        "study.merge": ["merge_studies"],
        "study.options": ["StudyOptions"],
        "study.progress": ["Progress"],
        "study.results": ["Study"],
        "study.run": ["gap_study"],
        "testing.checks": [
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
        "testing.claims": ["Claim", "Verdict", "examine"],
        "testing.hunt": ["find_worst"],
        "testing.strategies": ["strategy"],
        "testing.witness": ["Witness"],
        "testing.worst_case": ["WorstCase", "worst_case"],
    },
)
