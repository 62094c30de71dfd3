"""Claims and their readings, and the claims registered from outside the library."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from instances.base import Instance, Plan
from validation.errors import StudyError

__all__ = ["REGISTERED", "Breaks", "Claim", "OnAverage", "Plans", "Reading", "Ties", "add"]

AnyInstance = Instance[Any]

Breaks = Callable[[Any], str | None]
"""``breaks(instance)``: how an instance breaks a claim; None when it does not, or when the claim says nothing of it."""

Plans = Callable[[Any], Mapping[str, Plan]]
"""``plans(instance)``: plans by name, in the order in which they are shown."""

Ties = Literal["", "every way", "by number", "do not matter"]
"""How ties of the algorithms are broken, on either side: nothing is tied, in every way each time anew, by the lowest
number alone, or in one way of those that end alike."""


@dataclass(frozen=True)
class OnAverage:
    """A statement about averages, in the place of ``breaks``: a single instance neither breaks it nor shows it.

    Attributes
    ----------
    times : callable
        ``times(instance)``: by what factor the instance is for the statement; below 1 it is against it.
    words : str
        What the factor is of, such as "sooner".
    """

    times: Callable[[Any], float]
    words: str


@dataclass(frozen=True)
class Reading:
    """Another way to read a claim, where the print leaves one.

    Attributes
    ----------
    text : str
        How the claim is read.
    breaks : Breaks or OnAverage
    instances : callable, optional
        As that of a claim, where this reading needs others.
    scope : str, optional
        Of these instances.
    assumes, ties, by : optional
        As those of a claim, where those of this reading differ.
    relaxed : str, optional
        As that of a claim, where this reading keeps more or fewer of the paper's assumptions.
    plans : callable, optional
        As that of a claim, where this reading shows others.
    """

    text: str
    breaks: Breaks | OnAverage
    instances: Callable[[np.random.Generator], Iterable[AnyInstance]] | None = None
    relaxed: str | None = None
    plans: Plans | None = None
    scope: str | None = None
    assumes: Callable[[Any], bool] | None = None
    ties: Ties | None = None
    by: str | None = None


@dataclass(frozen=True)
class Claim:
    """A statement of a paper, and the search that tests it.

    Attributes
    ----------
    name : str
    source : str
        Paper and section.
    statement : str
        What the paper states.
    reading : str
        How it is read here, where words leave a choice.
    instances : callable
        ``instances(rng)`` yields instances to try: a finite set for an exhaustive search, or an
        endless stream.
    breaks : Breaks or OnAverage
    scope : str
        What the instances are, such as "pairs of jobs on up to 8 GPUs" or "random, up to 6 jobs".
    exhaustive : bool
        Whether the instances are a finite set, smallest first: all of them are tried, and the
        first counterexample is the smallest.
    shrink : bool
        Whether a counterexample of a search that is not exhaustive is made smaller before it is
        shown; it stays one of ``assumes``, without which none is made smaller.
    assumes : callable, optional
        ``assumes(instance)``: whether an instance keeps what the claim assumes.  An instance of its search that does
        not is an error.
    ties : str
        How ties are broken, of ``Ties``.
    by : str
        Who states it, where that is not the paper.
    problem : str
        The problem that it is about, the first of several; a claim of the library is given that
        whose name its module has.
    others : tuple of Reading
        The other ways to read it.
    plans : callable, optional
        The plans that show how a counterexample breaks the claim; by default its data are shown alone.
    assumptions : str
        Those of the paper that all instances keep.
    relaxed : str
        Those of the paper that not all instances keep, and in what they differ; empty where all are kept.

    Raises
    ------
    StudyError
        When it does not say which assumptions are kept.
    """

    name: str
    source: str
    statement: str
    reading: str
    instances: Callable[[np.random.Generator], Iterable[AnyInstance]]
    breaks: Breaks | OnAverage
    scope: str
    exhaustive: bool = False
    shrink: bool = True
    assumes: Callable[[Any], bool] | None = None
    ties: Ties = ""
    by: str = ""
    problem: str = ""
    others: tuple[Reading, ...] = ()
    plans: Plans | None = None
    assumptions: str = field(kw_only=True)
    relaxed: str = field(kw_only=True)

    def __post_init__(self) -> None:
        if not self.assumptions:
            raise StudyError(f"claim {self.name!r}: assumptions are missing: which of the paper's the instances keep")


REGISTERED: dict[str, Claim] = {}
"""Claims from outside the library, by name."""


def add(claim: Claim) -> None:
    """Add a claim from outside the library, or replace the one of its name.

    Raises
    ------
    StudyError
        When it does not say which problem it is about.
    """
    if not claim.problem:
        raise StudyError(f"claim {claim.name!r}: problem is missing, such as 'demo.one_server'")
    REGISTERED[claim.name] = claim
