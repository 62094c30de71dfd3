"""Where the instances of checks come from: drawn, and made of those by what the heuristic does there."""

from __future__ import annotations

import contextlib
import functools
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import hypothesis
import numpy as np
from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis.strategies import SearchStrategy

from instances.base import Instance, InstanceError, PlanError
from instances.schema import declarations
from validation.catalogue import Heuristic, entry
from validation.kernel.asking import Askings
from validation.kernel.judging import Asked, Status
from validation.kernel.walls import LINUX
from validation.kinds.checks.report import Source
from validation.kinds.checks.searching import batches
from validation.kinds.checks.shrinking import Shrink
from validation.kinds.checks.subject import Subject
from validation.testing import strategies
from validation.testing.neighbours import neighbour, past_the_edge
from validation.testing.strategies import Drawn
from validation.testing.transform import permuted, rescaled

__all__ = [
    "MAGNIFIED",
    "RELATED",
    "TIGHTENED",
    "asked_reordered",
    "at_edges",
    "draw",
    "draw_instances",
    "drawn_smaller",
    "magnified",
    "sources_of",
    "with_relatives",
]

AnyInstance = Instance[Any]

TIGHT = 0.25
"""Instances at an edge of the heuristic's plans, to each that is drawn."""
TURNS = 3
"""How often the drawn ones are gone through for them."""
RELATIVES = 16
"""Instances that are made of others by one change."""
REORDERED_LIMIT = 1.0
"""Seconds for all answers in another order."""
LARGE = (2**15, 2**31, 2**31, 2**31)
"""Factors that make numbers too large for 16 bits and, more often, for 32 bits."""
MAGNIFIED_MOST, MAGNIFIED_TRIED = 12, 48
"""Instances of such numbers, and drawn ones that are tried for them."""
MAGNIFIED_LIMIT = 0.5
"""Seconds for all plans for them."""
TIGHTENED = "these, at an edge of its plans"
"""The source of instances that are made of drawn ones so that a plan just breaks a rule."""
RELATED = "these, with one thing changed"
"""The source of instances that differ from drawn ones in one thing."""
MAGNIFIED = "these, with large numbers"
"""The source of instances that are drawn ones times a large factor."""


def draw_instances(strategy: SearchStrategy[Any], max_examples: int, seed: int) -> list[AnyInstance]:
    """Up to ``max_examples`` different instances of a strategy, the same for the same seed."""
    return [one.instance for one in draw(strategy, max_examples, seed)]


def draw(strategy: SearchStrategy[Any], max_examples: int, seed: int) -> list[Drawn]:
    """Up to ``max_examples`` different instances of a strategy, as :func:`draw_instances`, and their sources."""
    found: dict[str, Drawn] = {}

    def collect(one: Any) -> None:
        drawn = one if isinstance(one, Drawn) else Drawn(one, strategies.STRATEGY)
        found.setdefault(drawn.instance.digest, drawn)
        if len(found) == max_examples:
            raise _Enough

    _for_each(strategy, max_examples, seed, collect, [Phase.generate])
    return list(found.values())


def drawn_smaller(strategy: SearchStrategy[Any], max_examples: int, seed: int) -> Shrink:
    """Return how an instance of a strategy is made small: by Hypothesis, so that it stays one of the strategy's own."""

    def shrink(failing: AnyInstance, fails: Callable[[AnyInstance], bool], stop: Callable[[], bool]) -> AnyInstance:
        smallest, known = failing, dict[str, bool]()

        def look(instance: AnyInstance) -> None:
            nonlocal smallest
            if stop():
                raise _Enough
            if instance.digest not in known:
                # The draws are those of before: up to the one that failed none is looked at again.
                known[instance.digest] = instance == failing or (failing.digest in known and fails(instance))
            if known[instance.digest]:
                smallest = instance
                raise _Failing

        _for_each(strategy, max_examples, seed, look, [Phase.generate, Phase.shrink])
        return smallest

    return shrink


def _for_each(
    strategy: SearchStrategy[Any], max_examples: int, seed: int, look: Callable[[Any], None], phases: list[Phase]
) -> None:
    """Call a function with what Hypothesis draws, the same for the same seed, until it has enough."""
    drawn = hypothesis.seed(seed)(
        settings(
            # Hypothesis draws some twice.
            max_examples=2 * max_examples,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=phases,
            verbosity=Verbosity.quiet,
            report_multiple_bugs=False,
        )(given(strategy)(look))
    )
    with contextlib.suppress(_Enough, _Failing):
        drawn()


class _Failing(Exception):  # noqa: N818, Hypothesis makes it small
    """What Hypothesis drew fails."""


class _Enough(BaseException):
    """Ends the drawing; Hypothesis takes no exception for a failure that is none of Python's usual ones."""


def with_relatives(drawn: list[Drawn]) -> list[Drawn]:
    """Return the instances, some of them followed by one that differs from it in one thing."""
    followed = set(range(0, len(drawn), max(1, len(drawn) // RELATIVES)))
    known = {one.instance.digest for one in drawn}
    found = []
    for number, one in enumerate(drawn):
        found.append(one)
        if number in followed:
            rng = np.random.default_rng(int(one.instance.digest[:8], 16))
            relative = _relative(one.instance, rng)
            if relative is not None and relative.digest not in known:
                known.add(relative.digest)
                found.append(Drawn(relative, RELATED))
    return found


def _relative(instance: AnyInstance, rng: np.random.Generator) -> AnyInstance | None:
    """Return the instance with its members in another order, or with one number changed."""
    symmetric = [dim for dim in entry(instance.problem).symmetric if instance.dims.get(dim, 0) > 1]
    if symmetric and rng.random() < 0.5:
        return functools.reduce(lambda changed, dim: permuted(changed, dim, rng), symmetric, instance)
    return neighbour(instance, rng, max_members=max(instance.dims.values(), default=0))


def magnified(heuristic: Heuristic, ask: Askings, drawn: list[Drawn]) -> list[Drawn]:
    """Return drawn instances with some numbers times what 16 or 32 bits do not hold, on which there is a plan.

    A heuristic may make a table of any number: one that raises there, or takes long, is not to be blamed.
    """
    found, end, tried = list[Drawn](), time.monotonic() + MAGNIFIED_LIMIT, dict[str, float]()
    ordered = sorted((one.instance for one in drawn), key=lambda instance: instance.digest)
    for instance in ordered[: MAGNIFIED_TRIED if LINUX else 0]:
        left = end - time.monotonic()
        if len(found) == MAGNIFIED_MOST or left <= 0:
            break
        rng = np.random.default_rng([TURNS, int(instance.digest[:8], 16)])
        large = _large(instance, rng)
        if large is not None and not (asked := ask(heuristic, [large], seconds=left)[0]).reason:
            # What wraps around says that all is well where nothing is: past an edge that is not so.
            tight = _tight(large, asked.plan, rng, tried) if _takes(asked.plan, large) else None
            found.append(Drawn(tight or large, MAGNIFIED))
    return found


def _large(instance: AnyInstance, rng: np.random.Generator) -> AnyInstance | None:
    """Return the instance with one or two fields of whole numbers, or units, so large; None if not valid."""
    factor = int(rng.choice(LARGE))
    counted = [
        (name,)
        for name, declared in declarations(type(instance)).items()
        if declared.kind is int and not getattr(declared, "index_of", "") and getattr(instance, name) is not None
    ]
    scales = [*counted, *(unit.fields for unit in entry(instance.problem).rescalings)]
    if not scales:
        return None
    chosen = rng.choice(len(scales), size=min(len(scales), int(rng.integers(1, 3))), replace=False)
    try:
        large = rescaled(instance, list(dict.fromkeys(name for scale in chosen for name in scales[scale])), factor)
    except InstanceError:
        return None
    return None if large == instance else large


def asked_reordered(heuristic: Heuristic, ask: Askings, instances: list[AnyInstance]) -> dict[str, Asked]:
    """Ask another process for plans for these instances, the last one first; return its answers by digest."""
    if not LINUX:
        # A process takes seconds to start there.
        return {}
    answers, end = dict[str, Asked](), time.monotonic() + REORDERED_LIMIT
    for batch in batches(reversed(instances)):
        found = ask(heuristic, batch)
        answers.update((one.digest, asked) for one, asked in zip(batch, found, strict=True))
        if time.monotonic() > end:
            break
    return answers


def at_edges(subject: Subject, drawn: list[Drawn]) -> list[Drawn]:
    """Return instances on which the heuristic's plan for a drawn one just breaks a rule, so that it needs another."""
    wanted = round(TIGHT * len(drawn))
    known, found = {one.instance.digest for one in drawn}, list[Drawn]()
    tried = dict[str, float]()
    ordered = sorted((one.instance for one in drawn), key=lambda instance: instance.digest)
    for turn, instance in ((turn, instance) for turn in range(TURNS) for instance in ordered):
        if len(found) == wanted:
            break
        answer = subject.known(instance)
        if answer is not None and answer.status == Status.FEASIBLE:
            rng = np.random.default_rng([turn, int(instance.digest[:8], 16)])
            tight = _tight(instance, answer.plan, rng, tried)
            if tight is not None and tight.digest not in known:
                known.add(tight.digest)
                found.append(Drawn(tight, TIGHTENED))
    return found


def _tight(instance: AnyInstance, plan: Any, rng: np.random.Generator, tried: dict[str, float]) -> AnyInstance | None:
    """Return the instance past an edge of a feasible plan, half of them with more resources, such as a server.

    Where there is no plan past an edge, as where all servers are full, nobody is to be blamed for one.
    """
    tight = past_the_edge(instance, functools.partial(_takes, plan), rng, tried)
    enlarge = entry(instance.problem).enlarge
    if tight is None or enlarge is None or rng.random() < 0.5:
        return tight
    try:
        larger = enlarge(tight)
    except InstanceError:
        return tight
    # More of what the edge is of takes them from it.
    return tight if _takes(plan, larger) else larger


def _takes(plan: Any, instance: AnyInstance) -> bool:
    """Return whether a plan breaks no rule of an instance."""
    try:
        return not instance.violations(plan)
    except PlanError:
        return False


def sources_of(drawn: list[Drawn]) -> tuple[Source, ...]:
    """Count the instances of each source, and those that were refused."""
    counts = Counter(one.source for one in drawn)
    refused = sum((Counter(one.refused) for one in drawn), Counter[str]())
    return tuple(Source(name, counts[name], refused[name]) for name in dict.fromkeys([*counts, *refused]))
