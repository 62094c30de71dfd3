"""What makes settings of replays, and those registered from outside the library."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from validation.errors import ReplayError

__all__ = ["REGISTERED", "Settings", "add"]


@dataclass(frozen=True)
class Settings:
    """What makes settings of jobs, for ``optgap replay`` and :func:`validation.replay_study`.

    Attributes
    ----------
    problems : tuple of str
        Problems of the catalogue that such a setting asks.
    from_jobs : callable
        ``from_jobs(jobs, *, ...) -> Setting`` of a job table with ``job_id``, ``submit_time`` (s, from 0 on),
        ``num_gpus`` and ``duration`` (s).  What stands after the ``*`` are options, given as ``--setting NAME=VALUE``;
        of these ``rng`` is a source of randomness and ``problem`` the one that is replayed, where it has them.
    generate : callable, optional
        ``generate(rng, *, num_jobs, ...) -> Setting`` draws the jobs, for the trace "poisson".
    name : str
        In messages; the first problem's name without one.

    Raises
    ------
    ReplayError
        When it names no problem, or a function cannot be called so.
    """

    problems: tuple[str, ...]
    from_jobs: Callable[..., Any]
    generate: Callable[..., Any] | None = None
    name: str = ""

    def __post_init__(self) -> None:
        named = [self.problems] if isinstance(self.problems, str) else [*self.problems]
        if not named or not all(isinstance(one, str) for one in named):
            raise ReplayError(f"problems: got {self.problems!r}, must be names such as ('demo.mine',)")
        object.__setattr__(self, "problems", tuple(named))
        object.__setattr__(self, "name", self.name or named[0])
        _refuse_other("from_jobs", self.from_jobs, "jobs")
        if self.generate is not None:
            _refuse_other("generate", self.generate, "rng")
            if "num_jobs" not in inspect.signature(self.generate).parameters:
                raise ReplayError("generate: has no num_jobs, must be generate(rng, *, num_jobs, ...)")


def _refuse_other(name: str, function: Any, first: str) -> None:
    """Refuse what is no function of one argument and options."""
    if not callable(function):
        raise ReplayError(f"{name}: got {type(function).__name__}, must be a function")
    options = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
    given = [one.name for one in inspect.signature(function).parameters.values() if one.kind not in options]
    if not given:
        raise ReplayError(f"{name}: takes no argument, must be {name}({first}, *, ...)")
    if len(given) > 1:
        raise ReplayError(f"{name}: options stand behind a *, must be {name}({given[0]}, *, {', '.join(given[1:])})")


REGISTERED: dict[str, Settings] = {}
"""Of problems, from outside the library; they stand before the library's own."""


def add(settings: Settings) -> None:
    """Add settings from outside the library, or replace those of their problems."""
    REGISTERED.update(dict.fromkeys(settings.problems, settings))
