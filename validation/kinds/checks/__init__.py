"""Property checks of a heuristic: either it held on N instances, or here is the smallest that breaks it.

One generator of checks (``properties``) feeds :func:`check_heuristic`, :func:`parametrize_with_checks` for pytest,
and ``optgap check`` (``running``).  Hypothesis draws the instances, once for all checks (``drawing``); one that
breaks a check is shrunk by its declarations (``searching``, ``shrinking``).
"""

from validation.kinds.checks.drawing import draw, draw_instances
from validation.kinds.checks.properties import Check, all_promises, checks
from validation.kinds.checks.report import CheckReport, CheckResult, CheckStatus, Source
from validation.kinds.checks.running import check_heuristic, parametrize_with_checks, run_checks
from validation.kinds.checks.searching import fails
from validation.kinds.checks.subject import CheckError, NoFeasiblePlan, NotApplicable, Subject
from validation.kinds.promises import BreaksOnly, Holds, Monotone, NeverWorseThan, Promise, Ratio, Relabelled

__all__ = [
    "BreaksOnly",
    "Check",
    "CheckError",
    "CheckReport",
    "CheckResult",
    "CheckStatus",
    "Holds",
    "Monotone",
    "NeverWorseThan",
    "NoFeasiblePlan",
    "NotApplicable",
    "Promise",
    "Ratio",
    "Relabelled",
    "Source",
    "Subject",
    "all_promises",
    "check_heuristic",
    "checks",
    "draw",
    "draw_instances",
    "fails",
    "parametrize_with_checks",
    "run_checks",
]
