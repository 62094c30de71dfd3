"""The papers' formal statements as executable checks: one module for each paper.

A claim says what the paper states, how that is read here, and how an instance can break it.  Its
verdict is computed: it held on so many instances, or it is refuted by the smallest counterexample
found.  No verdict is written by hand.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from instances.base import Instance, nearest
from validation.cases import StudyError
from validation.neighbours import shrunk

AnyInstance = Instance[Any]


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
    breaks : callable
        ``breaks(instance)`` says how the instance breaks the claim; empty when it does not.
    scope : str
        What the instances are, such as "all with at most 3 jobs" or "random, up to 6 jobs".
    shrink : bool
        Whether a counterexample is made smaller before it is shown.
    """

    name: str
    source: str
    statement: str
    reading: str
    instances: Callable[[np.random.Generator], Iterable[AnyInstance]]
    breaks: Callable[[AnyInstance], str]
    scope: str
    shrink: bool = True


@dataclass(frozen=True)
class Verdict:
    """What became of a claim.

    Attributes
    ----------
    claim : Claim
    held : bool
    tried : int
        Instances tried, the counterexample included.
    exhausted : bool
        Whether these were all that the claim's search has.
    counterexample : Instance, optional
    why : str
        How the counterexample breaks the claim.
    """

    claim: Claim
    held: bool
    tried: int
    exhausted: bool
    counterexample: AnyInstance | None = None
    why: str = ""

    @property
    def text(self) -> str:
        """The verdict in a line."""
        if not self.held:
            return f"refuted: {self.why}"
        if not self.tried:
            return "not tried on any instance"
        return f"held on {'all ' if self.exhausted else ''}{self.tried} instances"

    def to_dict(self) -> dict[str, Any]:
        """The verdict as JSON."""
        return {
            "claim": self.claim.name,
            "source": self.claim.source,
            "held": self.held,
            "tried": self.tried,
            "exhausted": self.exhausted,
            "why": self.why,
            "counterexample": None if self.counterexample is None else self.counterexample.to_dict(),
        }


def papers() -> list[str]:
    """Papers that have claims here."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def claims(paper: str | None = None) -> list[Claim]:
    """The claims of one paper, or of all.

    Raises
    ------
    StudyError
        When there are no claims of that paper.
    """
    known = papers()
    if paper is not None and paper not in known:
        raise StudyError(f"there are no claims of {paper!r}{nearest(paper, known)}")
    found: list[Claim] = []
    for name in known if paper is None else [paper]:
        found += importlib.import_module(f"validation.claims.{name}").CLAIMS
    return found


def examine(claim: Claim, *, instances: int = 500, seconds: float = 20.0, seed: int = 0) -> Verdict:
    """Search for a counterexample to a claim.

    Parameters
    ----------
    claim : Claim
    instances : int
        Most instances to try.
    seconds : float
        Time for the search, and as much again for shrinking what it finds.
    seed : int
        Of random instances.
    """
    end = time.monotonic() + seconds
    tried = 0
    stream: Iterator[AnyInstance] = iter(claim.instances(np.random.default_rng(seed)))
    for instance in stream:
        tried += 1
        why = claim.breaks(instance)
        if why:
            smallest = _smallest(claim, instance, seconds) if claim.shrink else instance
            return Verdict(claim, False, tried, False, smallest, claim.breaks(smallest))
        if tried >= instances or time.monotonic() > end:
            return Verdict(claim, True, tried, next(stream, None) is None)
    return Verdict(claim, True, tried, True)


def _smallest(claim: Claim, instance: AnyInstance, seconds: float) -> AnyInstance:
    end = time.monotonic() + seconds
    return shrunk(instance, lambda smaller: bool(claim.breaks(smaller)), stop=lambda: time.monotonic() > end)


def page(verdicts: Sequence[Verdict]) -> str:
    """The verdicts as a Markdown page."""
    lines = [
        "# The papers' claims, put to the test",
        "",
        "Written by `optgap claims -o docs/claims.md`; every verdict is computed, none is written by hand. A claim",
        "that held was tried on the instances named; one that is refuted comes with the smallest counterexample",
        "found, which can be saved to a file and solved with `optgap solve FILE`.",
        "",
    ]
    for paper in dict.fromkeys(verdict.claim.source.split(",")[0] for verdict in verdicts):
        lines += [f"## {paper}", "", "| claim | source | verdict | tried on |", "| --- | --- | --- | --- |"]
        mine = [verdict for verdict in verdicts if verdict.claim.source.split(",")[0] == paper]
        for verdict in mine:
            claim = verdict.claim
            said = "held" if verdict.held else "**refuted**"
            number = f"{'all ' if verdict.exhausted else ''}{verdict.tried}"
            lines.append(f"| [{claim.name}](#{claim.name}) | {claim.source} | {said} | {number}: {claim.scope} |")
        lines.append("")
        for verdict in mine:
            claim = verdict.claim
            lines += [f"### {claim.name}", "", f"*{claim.source}.* {claim.statement}", ""]
            lines += [f"Read as: {claim.reading}", ""] if claim.reading else []
            lines += [f"Verdict: {verdict.text}.", ""]
            if verdict.counterexample is not None:
                lines += ["```json", json.dumps(verdict.counterexample.to_dict()), "```", ""]
    return "\n".join(lines)
