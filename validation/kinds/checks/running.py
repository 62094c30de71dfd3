"""Checks as they are run: by a function, in a suite of pytest, and report by report for a command."""

from __future__ import annotations

import functools
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis.strategies import SearchStrategy

from instances.base import Instance
from instances.files import save
from validation import catalogue
from validation.catalogue import Heuristic, entry
from validation.kernel.asking import Askings
from validation.kernel.walls import ruled
from validation.kinds.checks.drawing import (
    MAGNIFIED,
    RELATED,
    TIGHTENED,
    asked_reordered,
    at_edges,
    draw,
    draw_instances,
    drawn_smaller,
    magnified,
    sources_of,
    with_relatives,
)
from validation.kinds.checks.properties import Check, all_promises, checks, listed
from validation.kinds.checks.report import CheckReport, CheckResult, shown
from validation.kinds.checks.searching import ahead, search
from validation.kinds.checks.shrinking import Shrinking
from validation.kinds.checks.subject import SOLVE_BUDGET, Oracle, Subject
from validation.kinds.options import CheckOptions
from validation.kinds.promises import Monotone, Promise, Ratio, Relabelled
from validation.outputs import refuse_foreign
from validation.testing import strategies

__all__ = ["check_heuristic", "parametrize_with_checks", "run_checks"]

AnyInstance = Instance[Any]


def check_heuristic(
    problem: str,
    heuristic: str | Callable[..., Any] | Heuristic,
    *,
    promises: Promise | Iterable[Promise] = (),
    max_examples: int = 100,
    seed: int = 0,
    output: str | os.PathLike[str] | None = None,
    strategy: SearchStrategy[Any] | None = None,
    allow_network: bool = False,
) -> CheckReport:
    """Look for an instance on which a heuristic breaks a rule.

    Parameters
    ----------
    problem : str
    heuristic : str, callable or Heuristic
        A name of the catalogue, "module:function", or a function from instance to plan; a
        :class:`validation.Heuristic` declares known failures.
    promises : Promise or iterable of Promise
        What it claims beyond the rules and beyond what its entry in the catalogue promises: ``Ratio(2)``,
        ``Monotone()``, ``Relabelled()``, ... (:mod:`validation.kinds.promises`).
    max_examples : int
        Instances that are drawn at most, on all of which each check is tried; some more are made of them, by what
        the heuristic does there.
    seed : int
        Of the search.
    output : path, optional
        Directory for the smallest failing instances, as JSON.  Where one cannot be written, its result says so.
    strategy : SearchStrategy, optional
        What to draw the instances from; :func:`validation.testing.strategies.varied` by default.
    allow_network : bool
        Let the heuristic have sockets: of the network, and of services of this machine.

    Returns
    -------
    CheckReport

    Raises
    ------
    CatalogueError
        When there is no such problem.
    """
    asked = CheckOptions(
        names=(problem, heuristic),
        max_examples=max_examples,
        seed=seed,
        output=output,
        strategy=strategy,
        allow_network=allow_network,
    )
    with ruled(network=asked.allow_network):
        return list(run_checks(asked, promises))[-1]


def run_checks(asked: CheckOptions, promises: Promise | Iterable[Promise] = ()) -> Iterator[CheckReport]:
    """Yield the report of :func:`check_heuristic` as it grows, after each check and within one that takes long."""
    problem, heuristic = asked.subject
    name, given = catalogue.heuristic(problem, heuristic)
    planned = list(checks(problem, [*all_promises(given), *_promises(asked), *listed(promises)]))
    folder = asked.output
    paths = {} if folder is None else {check.name: Path(folder) / f"{problem}-{check.name}.json" for check in planned}
    for path in paths.values():
        refuse_foreign(path, problem)
    source = strategies.sources(problem) if asked.strategy is None else asked.strategy
    drawn = draw(source, asked.max_examples, asked.seed)
    with Askings() as ask, Askings() as another:
        spared, ahead_of = set[str](), 0
        subject = Subject(given, entry(problem), ask, Oracle(SOLVE_BUDGET * asked.max_examples, spared))
        if asked.strategy is None:
            drawn = with_relatives(drawn)
            for result in ahead(planned[0], subject, [one.instance for one in drawn]):
                ahead_of = result.examples
                yield CheckReport(problem, name, (result,), sources_of(drawn))
            large = magnified(given, another, drawn)
            drawn += at_edges(subject, drawn) + large
        instances = [one.instance for one in drawn]
        # Promises are made of numbers that are usual; the rules hold of all.
        usual, rules = [one.instance for one in drawn if one.source != MAGNIFIED], {one.name for one in checks(problem)}
        spared.update(one.instance.digest for one in drawn if one.source in (RELATED, TIGHTENED, MAGNIFIED))
        subject = replace(subject, reordered=functools.cache(lambda: asked_reordered(given, another, instances)))
        shrinking = _shrinking(ask, asked.strategy, asked.max_examples, asked.seed)
        report = CheckReport(problem, name, (), sources_of(drawn))
        for check in planned:
            before = report.results
            for result in search(check, subject, instances if check.name in rules else usual, shrinking):
                if not before and result.status == "unfinished" and result.examples < ahead_of:
                    # More had been told already.
                    continue
                if check.name in paths and result.instance is not None:
                    result = _saved(result, result.instance, paths[check.name])
                report = replace(report, results=(*before, result))
                yield report


def _saved(result: CheckResult, instance: AnyInstance, path: Path) -> CheckResult:
    """Return the result with the path of its instance, or with the reason why that could not be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save(instance, path)
    except OSError as error:
        # What was found must not be lost with it.
        return replace(result, reason=f"{result.reason}; not saved, {path}: {error.strerror}")
    return replace(result, path=path)


def parametrize_with_checks(
    problem: str,
    *,
    promises: Promise | Iterable[Promise] = (),
    max_examples: int = 100,
    seed: int = 0,
    strategy: SearchStrategy[Any] | None = None,
) -> Any:
    """Decorate a pytest function so that it runs once for each check of a problem.

    The function takes ``check`` and calls it with its heuristic::

        @parametrize_with_checks("aryl.reclaim", promises=Ratio(4))
        def test_my_heuristic(check):
            check(my_heuristic)
    """
    import pytest

    @functools.cache
    def instances() -> list[AnyInstance]:
        return draw_instances(strategies.varied(problem) if strategy is None else strategy, max_examples, seed)

    def runner(check: Check) -> Callable[[Callable[..., Any] | Heuristic], None]:
        def run(heuristic: Callable[..., Any] | Heuristic) -> None:
            _, given = catalogue.heuristic(problem, heuristic)
            with Askings() as ask:
                subject = Subject(given, entry(problem), ask, Oracle(SOLVE_BUDGET * max_examples))
                shrinking = _shrinking(ask, strategy, max_examples, seed)
                *_, result = search(check, subject, instances(), shrinking)
            if result.status == "skipped":
                pytest.skip(result.reason)
            if result.status == "expected failure":
                pytest.xfail(result.reason)
            if result.status == "failed":
                smallest = json.dumps(result.instance.to_dict()) if result.instance is not None else "none"
                plan = f"\nits plan there: {shown(result.plan)}" if result.plan is not None else ""
                pytest.fail(f"{check.statement}: {result.reason}\nsmallest instance: {smallest}{plan}", pytrace=False)

        return run

    found = list(checks(problem, promises))
    return pytest.mark.parametrize("check", [runner(check) for check in found], ids=[check.name for check in found])


def _shrinking(ask: Askings, strategy: SearchStrategy[Any] | None, max_examples: int, seed: int) -> Shrinking:
    """Return the time for making failing instances small, those of a strategy within what it draws."""
    within = None if strategy is None else drawn_smaller(strategy, max_examples, seed)
    return Shrinking(lambda: time.process_time() + ask.seconds, within)


def _promises(asked: CheckOptions) -> list[Promise]:
    """Return what is promised by an option."""
    ratio = [] if asked.ratio is None else [Ratio(asked.ratio)]
    return [*ratio, *([Monotone()] if asked.monotone else []), *([Relabelled()] if asked.relabelled else [])]
