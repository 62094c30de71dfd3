"""Where the instances of checks come from: drawn, and made of those by what the heuristic does there."""

from __future__ import annotations

import contextlib
import functools
import time
from collections import Counter
from typing import Any

import hypothesis
import numpy as np
from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis.strategies import SearchStrategy

from instances.base import Instance, Plan, PlanError
from validation.catalogue import Heuristic, Imported, entry, import_object
from validation.kernel.asking import ask
from validation.kernel.judging import Status, judge
from validation.kernel.walls import LINUX
from validation.kinds.checks.report import Source
from validation.kinds.checks.subject import Subject
from validation.testing import strategies
from validation.testing.neighbours import neighbour, past_the_edge
from validation.testing.strategies import Drawn
from validation.testing.transform import permuted

__all__ = ["RELATED", "TIGHTENED", "asked_afresh", "at_edges", "draw", "draw_instances", "sources_of", "with_relatives"]

AnyInstance = Instance[Any]

TIGHT = 0.25
"""Instances at an edge of the heuristic's plans, to each that is drawn."""
TURNS = 3
"""How often the drawn ones are gone through for them."""
FRESH = 16
"""Instances of which a process that has never called the heuristic is asked, too."""
FRESH_LIMIT = 1.0
"""Seconds for all of these answers."""
TIGHTENED, RELATED = "these, at an edge of its plans", "these, with one thing changed"
"""Where instances of checks come from that are made of drawn ones."""


def draw_instances(strategy: SearchStrategy[Any], max_examples: int, seed: int) -> list[AnyInstance]:
    """Up to ``max_examples`` different instances of a strategy, the same for the same seed."""
    return [one.instance for one in draw(strategy, max_examples, seed)]


def draw(strategy: SearchStrategy[Any], max_examples: int, seed: int) -> list[Drawn]:
    """Up to ``max_examples`` different instances of a strategy, as :func:`draw_instances`, and their sources."""
    found: dict[str, Drawn] = {}

    @hypothesis.seed(seed)
    @settings(
        # Hypothesis draws some twice.
        max_examples=2 * max_examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
        verbosity=Verbosity.quiet,
    )
    @given(strategy)
    def collect(one: Any) -> None:
        drawn = one if isinstance(one, Drawn) else Drawn(one, strategies.STRATEGY)
        found.setdefault(drawn.instance.digest, drawn)
        if len(found) == max_examples:
            raise _Enough

    with contextlib.suppress(_Enough):
        collect()
    return list(found.values())


class _Enough(BaseException):
    """Ends the drawing; Hypothesis takes no exception for a failure that is none of Python's usual ones."""


def with_relatives(drawn: list[Drawn]) -> list[Drawn]:
    """Return the instances, some of them followed by one that differs from it in one thing."""
    followed = set(range(0, len(drawn), max(1, len(drawn) // FRESH)))
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


def asked_afresh(heuristic: Heuristic, instances: list[AnyInstance]) -> dict[str, Plan | None]:
    """Ask a process for each instance that has called the heuristic for no other; of those that answer, their plans."""
    if heuristic.random or not LINUX:
        # Elsewhere a process takes seconds to start.
        return {}
    if isinstance(heuristic.function, Imported):
        # Here once, and not in each process.
        import_object(heuristic.function.reference)
    plans, end = dict[str, Plan | None](), time.monotonic() + FRESH_LIMIT
    for one in instances:
        answer = ask(one, heuristic, 0, seconds=max(0.0, end - time.monotonic()))
        if answer.reason:
            # It fails, which is told by other checks, or takes long.
            break
        plans[one.digest] = answer.plan
    return plans


def at_edges(subject: Subject, drawn: list[Drawn]) -> list[Drawn]:
    """Return instances on which the heuristic's plan for a drawn one just breaks a rule, so that it needs another."""
    wanted = round(TIGHT * len(drawn))
    known, found = {one.instance.digest for one in drawn}, list[Drawn]()
    ordered = sorted((one.instance for one in drawn), key=lambda instance: instance.digest)
    for turn, instance in ((turn, instance) for turn in range(TURNS) for instance in ordered):
        if len(found) == wanted:
            break
        answer = judge(instance, subject.first(instance))
        if answer.status == Status.FEASIBLE:
            rng = np.random.default_rng([turn, int(instance.digest[:8], 16)])
            tight = past_the_edge(instance, functools.partial(_takes, answer.plan), rng)
            if tight is not None and tight.digest not in known:
                known.add(tight.digest)
                found.append(Drawn(tight, TIGHTENED))
    return found


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
