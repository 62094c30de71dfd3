"""The papers' formal statements put to the test; they stand in ``validation/claims/<paper>/<problem>.py``.

A claim says what the paper states, how that is read here, and how an instance can break it.  Its
verdict is computed: it holds on all instances of a finite set, it is not refuted in so many that were
drawn, or it is refuted by the smallest counterexample found, which keeps what the claim assumes.  No
verdict is written by hand.  Where the print can be read in several ways, each reading is
tried, and a statement is called refuted only when it is so under all of them.
"""

from __future__ import annotations

import importlib
import json
import math
import pickle
import pkgutil
import textwrap
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

import validation.claims as library
from instances import files, outside
from instances.base import Instance
from instances.schema import nearest
from validation.claims.claim import REGISTERED, Claim, OnAverage, Plans, Reading
from validation.errors import StudyError
from validation.kernel.workers import Task
from validation.kinds.options import ClaimOptions
from validation.testing.neighbours import shrunk

if TYPE_CHECKING:
    from distributed import Client

__all__ = [
    "RANDOM_INSTANCES",
    "Claim",
    "OnAverage",
    "Outcome",
    "Plans",
    "Reading",
    "Verdict",
    "claims",
    "examine",
    "examine_all",
    "papers",
]

AnyInstance = Instance[Any]

RANDOM_INSTANCES = 500
"""Instances that a search without end tries unless told otherwise."""


GRACE = 60.0
"""Seconds that the examination of a claim on a cluster gets beyond its time, before it is stopped."""

Outcome = Literal["holds", "not refuted", "refuted", "depends on the reading"]
"""What came of a claim: it holds on all instances of a finite set, or is not refuted in those of a sample."""

RESAMPLES = 10_000
"""Samples of the bootstrap, of which the interval of an average has the middle 95 %."""


@dataclass(frozen=True)
class Verdict:
    """The verdict on a claim.

    Attributes
    ----------
    claim : Claim
    held : bool
        As the claim is read first.
    tried : int
        Instances tried, the counterexample included.
    exhausted : bool
        Whether these were all that the claim's search has.
    counterexample : Instance, optional
    why : str
        How the counterexample breaks the claim; of a claim about averages what they are.
    others : tuple of Verdict
        Under the claim's other readings, in their order.
    """

    claim: Claim
    held: bool
    tried: int
    exhausted: bool
    counterexample: AnyInstance | None = None
    why: str = ""
    others: tuple[Verdict, ...] = ()

    @property
    def readings(self) -> tuple[Verdict, ...]:
        """The verdict under each reading, the first one's before the others'."""
        return (self, *self.others)

    @property
    def outcome(self) -> Outcome:
        """What is said of the claim: refuted only where it is so however it is read."""
        readings = {one.held for one in self.readings}
        if len(readings) > 1:
            return "depends on the reading"
        if not self.held:
            return "refuted"
        return "holds" if all(one.is_whole for one in self.readings) else "not refuted"

    @property
    def alone(self) -> Outcome:
        """What is said of the claim as it is read first, whatever comes of its other readings."""
        return replace(self, others=()).outcome

    @property
    def is_whole(self) -> bool:
        """Whether a finite set was tried to its end, so that nothing of it is left that could refute the claim."""
        return self.claim.exhaustive and self.exhausted

    @property
    def extent(self) -> str:
        """How many instances were tried: ``all 5040``, ``the first 37`` of a finite set, or ``500``."""
        if self.is_whole:
            return f"all {self.tried:,}"
        return f"the first {self.tried:,}" if self.claim.exhaustive else f"{self.tried:,}"

    @property
    def text(self) -> str:
        """The verdict in a line."""
        if isinstance(self.claim.breaks, OnAverage):
            return f"{'not refuted' if self.held else 'refuted'}: {self.why}"
        if not self.held:
            return f"refuted: {self.why}"
        return f"holds on {self.extent} instances" if self.is_whole else f"not refuted in {self.extent} instances"

    def __str__(self) -> str:
        claim = self.claim
        lines = [f"{self.outcome}: {claim.name} ({claim.source})"]
        lines += _wrapped(claim.statement)
        lines += _wrapped(f"Assumptions kept: {claim.assumptions}")
        for verdict in self.readings:
            lines += _wrapped(f"Read as: {verdict.claim.reading}") if verdict.claim.reading else []
            lines += _wrapped(f"Assumptions relaxed: {verdict.claim.relaxed}") if verdict.claim.relaxed else []
            lines += _wrapped(f"Stated by: {verdict.claim.by}") if verdict.claim.by else []
            lines += _wrapped(f"Ties: {verdict.claim.ties}") if verdict.claim.ties else []
            found = f"{verdict.alone.capitalize()}, tried" if self.others else "Tried"
            lines += _wrapped(f"{found} on {verdict.extent}: {verdict.claim.scope}")
            if isinstance(verdict.claim.breaks, OnAverage):
                lines += _wrapped(f"On average: {verdict.why}")
            if verdict.counterexample is not None:
                lines += _wrapped(f"Counterexample: {verdict.why}")
                # In one piece, to be copied.
                lines.append(f"    {json.dumps(verdict.counterexample.to_dict())}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as JSON."""
        claim = self.claim
        return {
            "claim": claim.name,
            "problem": claim.problem,
            "source": claim.source,
            "statement": claim.statement,
            "assumptions": claim.assumptions,
            "scope": claim.scope,
            "outcome": self.outcome,
            **self._under_its_reading(),
            "others": [other._under_its_reading() for other in self.others],
        }

    def _under_its_reading(self) -> dict[str, Any]:
        return {
            "reading": self.claim.reading,
            "relaxed": self.claim.relaxed,
            "by": self.claim.by,
            "ties": self.claim.ties,
            "exhaustive": self.claim.exhaustive,
            "held": self.held,
            "tried": self.tried,
            "exhausted": self.exhausted,
            "why": self.why,
            "counterexample": None if self.counterexample is None else self.counterexample.to_dict(),
        }


def papers() -> list[str]:
    """Papers that have claims, the library's and registered ones."""
    return list(dict.fromkeys(_paper(claim) for claim in _all()))


def claims(name: str | None = None) -> list[Claim]:
    """List the claims of a paper ("aryl") or a problem ("aryl.reclaim"), the one of a name, or all.

    Raises
    ------
    StudyError
        When there are no claims of that name.
    """
    every = _all()
    if name is None:
        return every
    found = [claim for claim in every if name in _names(claim)]
    if not found:
        raise StudyError(f"there are no claims of {name!r}{nearest(name, known_names())}")
    return found


def known_names() -> list[str]:
    """List the names that claims are found by: of papers, of problems and their own."""
    return list(dict.fromkeys(name for claim in _all() for name in _names(claim)))


def _paper(claim: Claim) -> str:
    return claim.problem.split(".")[0]


def _names(claim: Claim) -> tuple[str, str, str]:
    """Return the names that a claim is found by."""
    return _paper(claim), claim.problem, claim.name


def _all() -> list[Claim]:
    """List the library's claims by problem in alphabetical order, then those from outside.

    Modules of a paper that have no problem's name only help others.
    """
    found = []
    for module in pkgutil.walk_packages(library.__path__, f"{library.__name__}."):
        problem = module.name.removeprefix(f"{library.__name__}.")
        if files.is_own(problem):
            found += [replace(claim, problem=problem) for claim in importlib.import_module(module.name).CLAIMS]
    outside.load()
    return found + list(REGISTERED.values())


def examine(claim: Claim, *, instances: int | None = None, seconds: float = 20.0, seed: int = 0) -> Verdict:
    """Search for a counterexample to a claim, under each of its readings.

    Parameters
    ----------
    claim : Claim
    instances : int, optional
        Most instances to try; by default all of an exhaustive search, and
        :data:`RANDOM_INSTANCES` of another.
    seconds : float
        Time for the search under each reading, and as much again for shrinking what it finds.
    seed : int
        Of random instances.

    Raises
    ------
    StudyError
        When the claim's search has no instances, so that there is nothing to judge it by.
    """
    seconds = ClaimOptions.checked(instances=instances, seconds=seconds, seed=seed)["seconds"]
    verdict = _examine(claim, instances, seconds, seed)
    others = tuple(_examine(other, instances, seconds, seed) for other in _readings(claim))
    return replace(verdict, others=others)


def examine_all(
    claims: Sequence[Claim], *, client: Client, instances: int | None = None, seconds: float = 20.0, seed: int = 0
) -> Iterator[Verdict]:
    """:func:`examine` each claim on the workers of a Dask cluster; the verdicts come in the order of the claims.

    Raises
    ------
    StudyError
        When a claim cannot be sent there, or its examination does not end.
    """
    from validation.kernel.cluster import by_value, modules_of, run_tasks

    problems = {claim.problem for claim in claims}
    modules = modules_of(problems)

    def travels(task: Task) -> tuple[Any, ...]:
        claim = claims[task.arguments[0]]
        return by_value(claim, f"the claim {claim.name!r}", modules.names), instances, seconds, seed

    tasks = (Task((n,), 2 * seconds * (1 + len(one.others)) + GRACE) for n, one in enumerate(claims))
    found: dict[int, Verdict] = {}
    following = 0
    for outcome in run_tasks(client, _examined, tasks, total=len(claims), travels=travels, problems=problems):
        (number,) = outcome.task.arguments
        if outcome.reason:
            raise StudyError(f"the claim {claims[number].name!r} was not examined: {outcome.reason}")
        found[number] = _about(outcome.result, claims[number])
        while following in found:
            yield found.pop(following)
            following += 1


def _examined(content: bytes, instances: int | None, seconds: float, seed: int) -> Verdict:
    """Examine a claim elsewhere; the verdict is without the claim, whose functions cannot go everywhere."""
    return _about(examine(pickle.loads(content), instances=instances, seconds=seconds, seed=seed), None)


def _about(verdict: Verdict, claim: Claim | None) -> Verdict:
    """Return a verdict with another claim, or none, in the place of its own."""
    readings: Any = [None] * len(verdict.others) if claim is None else _readings(claim)
    others = (_about(other, reading) for other, reading in zip(verdict.others, readings, strict=True))
    about: Any = claim
    return replace(verdict, claim=about, others=tuple(others))


def _readings(claim: Claim) -> list[Claim]:
    """Return a claim under each of its other readings."""
    return [
        replace(
            claim,
            reading=other.text,
            breaks=other.breaks,
            instances=other.instances or claim.instances,
            scope=other.scope or ("the instances that this reading names" if other.instances else claim.scope),
            assumes=other.assumes or (None if other.instances else claim.assumes),
            ties=claim.ties if other.ties is None else other.ties,
            by=claim.by if other.by is None else other.by,
            relaxed=claim.relaxed if other.relaxed is None else other.relaxed,
            plans=other.plans or claim.plans,
            others=(),
        )
        for other in claim.others
    ]


def _examine(claim: Claim, instances: int | None, seconds: float, seed: int) -> Verdict:
    """Examine a claim under its first reading."""
    most = instances if instances is not None else math.inf if claim.exhaustive else RANDOM_INSTANCES
    stream = _assumed(claim, iter(claim.instances(np.random.default_rng(seed))))
    end = time.monotonic() + seconds
    if isinstance(claim.breaks, OnAverage):
        return _averaged(claim, claim.breaks, stream, most, end)
    tried = 0
    for instance in stream:
        tried += 1
        if why := _broken(claim, instance):
            if claim.shrink and not claim.exhaustive:
                instance = _smallest(claim, instance, seconds)
                why = _broken(claim, instance) or why
            return Verdict(claim, False, tried, False, instance, why)
        if tried >= most or time.monotonic() > end:
            return Verdict(claim, True, tried, next(stream, None) is None)
    if not tried:
        raise StudyError(f"the claim {claim.name!r} was tried on no instance")
    return Verdict(claim, True, tried, True)


def _assumed(claim: Claim, stream: Iterator[AnyInstance]) -> Iterator[AnyInstance]:
    """Yield the instances of a claim's search, each of which must keep what it assumes."""
    for number, instance in enumerate(stream, start=1):
        if claim.assumes is not None and not claim.assumes(instance):
            raise StudyError(f"the claim {claim.name!r}: instance {number} of its search is not one that it assumes")
        yield instance


def _averaged(claim: Claim, average: OnAverage, stream: Iterator[AnyInstance], most: float, end: float) -> Verdict:
    """Examine a claim about averages: it is refuted where the whole interval of the mean factor is below 1."""
    times = []
    for instance in stream:
        times.append(average.times(instance))
        if len(times) >= most or time.monotonic() > end:
            break
    if not times:
        raise StudyError(f"the claim {claim.name!r} was tried on no instance")
    logs = np.log(times)
    again = np.random.default_rng(0).choice(logs, (RESAMPLES, len(logs))).mean(axis=1)
    low, mean, high = np.exp([np.quantile(again, 0.025), logs.mean(), np.quantile(again, 0.975)]).tolist()
    why = (
        f"{mean:.3g} times {average.words} on average (95% interval {low:.3g} to {high:.3g}), {average.words} on "
        f"{int((logs > 0).sum())} of {len(logs)}"
    )
    return Verdict(claim, high >= 1, len(times), next(stream, None) is None, None, why)


def _broken(claim: Claim, instance: AnyInstance) -> str | None:
    """How an instance breaks a claim; None where it does not, or where it says "", as claims did before."""
    assert not isinstance(claim.breaks, OnAverage)
    return claim.breaks(instance) or None


def _smallest(claim: Claim, instance: AnyInstance, seconds: float) -> AnyInstance:
    """Return the smallest counterexample found that keeps what the claim assumes."""
    if claim.assumes is None:
        return instance
    end, assumes = time.monotonic() + seconds, claim.assumes

    def keeps(smaller: AnyInstance) -> bool:
        return assumes(smaller) and _broken(claim, smaller) is not None

    return shrunk(instance, keeps, stop=lambda: time.monotonic() > end)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 100, initial_indent="    ", subsequent_indent="    ")
