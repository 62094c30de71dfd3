"""Errors: of the user, one line that names the culprit; and of the library, which no user can cause."""

from __future__ import annotations

__all__ = [
    "CatalogueError",
    "ConservationError",
    "HeuristicFailedError",
    "OracleDisagreementError",
    "ReplayError",
    "StudyError",
]


class CatalogueError(ValueError):
    """Unknown problem or heuristic; the message suggests the nearest name."""


class StudyError(ValueError):
    """A study, a check or a hunt that cannot be run as asked; the message names what is wrong."""


class HeuristicFailedError(StudyError):
    """A heuristic that raised, died, was stopped or returned no plan; the message says which."""


class OracleDisagreementError(AssertionError):
    """A feasible plan that beats a proven bound: a model, a bound or a judge is wrong."""


class ReplayError(ValueError):
    """A replay that cannot be run as asked, or cannot go on; the message says when, and what is wrong."""


class ConservationError(ReplayError):
    """A replay in which something is not there: a GPU handed out twice, work not asked for, time backwards.

    Attributes
    ----------
    rule : str
        What is broken.
    """

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(f"{rule}: {message}")
        self.rule = rule

    def __reduce__(self) -> tuple[type[ConservationError], tuple[str, str]]:
        # An error of two arguments must say how it is made again, to come out of another process.
        return type(self), (self.rule, str(self).removeprefix(f"{self.rule}: "))
