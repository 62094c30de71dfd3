"""Families of instances that a hunt keeps to: dials of a generator or a strategy, and what instances themselves say."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis.strategies import SearchStrategy

from instances.base import Instance
from instances.schema import declarations, nearest, quoted
from validation import catalogue
from validation.errors import StudyError
from validation.reader_options import parameters
from validation.testing import strategies

__all__ = ["Family"]

AnyInstance = Instance[Any]

ATTEMPTS = 1000
"""Instances drawn for one that belongs to the family."""


@dataclass(frozen=True)
class Family:
    """The instances of a problem that a hunt looks at.

    Attributes
    ----------
    problem : str
    fixed : mapping
        Names and values: of dials of the generator, of the strategy, or of the instances.
    where : callable or bytes, optional
        ``where(instance) -> bool``; bytes are a pickled one.
    strategy : SearchStrategy or bytes, optional
        What Hypothesis draws from; the problem's own by default.

    Raises
    ------
    StudyError
        When there is no dial of a name.
    """

    problem: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    where: Callable[[Any], bool] | bytes | None = None
    strategy: SearchStrategy[Any] | bytes | None = None

    def __post_init__(self) -> None:
        known = {*_told(self.problem), *_dials(self.problem, "generate"), *_dials(self.problem, "strategy")}
        for name in self.fixed:
            if name not in known:
                there = ", ".join(sorted(known))
                raise StudyError(f"fix: {self.problem} has no {quoted(name)}{nearest(name, known)}; it has {there}")

    @property
    def told(self) -> bool:
        """Whether an instance says if it belongs; else only drawing it anew keeps to the family."""
        return self.fixed.keys() <= _told(self.problem)

    def has(self, instance: AnyInstance) -> bool:
        """Return whether an instance belongs, as far as it says so."""
        for name in self.fixed.keys() & _told(self.problem):
            if not np.all(np.asarray(getattr(instance, name)) == self.fixed[name]):
                return False
        where = pickle.loads(self.where) if isinstance(self.where, bytes) else self.where
        return where is None or bool(where(instance))

    def generated(self, rng: np.random.Generator, most: int) -> AnyInstance:
        """Generate an instance of a size from 2 to ``most``, one that the generator takes.

        Raises
        ------
        StudyError
            When it takes none, or none that it makes belongs.
        """
        entry = catalogue.entry(self.problem)
        dials = {name: value for name, value in self.fixed.items() if name in _dials(self.problem, "generate")}
        sizes = [None] if entry.size in dials else list(range(2, most + 1))
        refused = None
        for _ in range(ATTEMPTS):
            if not sizes:
                break
            number = int(rng.integers(len(sizes)))
            size = {} if sizes[number] is None else {entry.size: sizes[number]}
            try:
                made = entry.generate(rng, **size, **dials)
            except (ValueError, TypeError) as error:
                refused = error
                del sizes[number]
                continue
            if self.has(made):
                return made
        if refused is not None:
            which = f"every {entry.size} from 2 to {most}" if entry.size not in dials else f"{dials}"
            raise StudyError(f"generate refuses {which}, the last for: {refused}")
        raise StudyError(f"none of {ATTEMPTS} instances that generate made belongs to the family")

    def drawn(self) -> SearchStrategy[AnyInstance]:
        """Return the strategy that Hypothesis draws from."""
        drawn = pickle.loads(self.strategy) if isinstance(self.strategy, bytes) else self.strategy
        if drawn is None:
            dials = {name: value for name, value in self.fixed.items() if name in _dials(self.problem, "strategy")}
            drawn = strategies.strategy(self.problem, **dials)
        return drawn.filter(self.has) if self.fixed or self.where is not None else drawn


def _told(problem: str) -> frozenset[str]:
    """Names of what an instance says of itself: its fields, and properties such as ``num_jobs``."""
    cls: Any = catalogue.entry(problem).instance
    return _names(cls)


@functools.cache
def _names(cls: Any) -> frozenset[str]:
    return frozenset({*declarations(cls), *(name for name in dir(cls) if name.startswith("num_"))})


def _dials(problem: str, of: str) -> frozenset[str]:
    """Names of the dials of a problem's generator or strategy."""
    return _parameters(getattr(catalogue.entry(problem), of))


@functools.cache
def _parameters(function: Callable[..., Any] | None) -> frozenset[str]:
    return frozenset() if function is None else frozenset(parameters(function))
