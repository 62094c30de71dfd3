"""What the user got wrong: one line that names the culprit; and what no user can get wrong."""

from __future__ import annotations

__all__ = ["CatalogueError", "ConservationError", "OracleDisagreementError", "ReplayError", "StudyError"]


class CatalogueError(ValueError):
    """There is no problem or heuristic of that name; the message suggests the nearest one."""


class StudyError(ValueError):
    """A study, a check or a hunt cannot be run as asked; the message names what is wrong."""


class OracleDisagreementError(AssertionError):
    """A feasible plan beats a proven bound: a model, a bound or a judge is wrong."""


class ReplayError(ValueError):
    """A replay cannot be run as asked, or cannot go on; the message says when, and what is wrong."""


class ConservationError(ReplayError):
    """What a decision hands out or a job gets is not there: a GPU twice, work that was not asked for, time backwards.

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
