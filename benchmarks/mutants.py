"""Share of mutants of the heuristics that their checks kill: ``python -m benchmarks mutants``.

A mutant is a heuristic whose code, or code of the package that it calls, has one exchange in its syntax tree
(:mod:`benchmarks.mutating`), drawn from all that stand where the heuristic comes by; nobody chooses it.  It is imported
afresh, beside the heuristic itself.  What becomes of it, the first that is so:

- it is killed by the checks: one of :func:`validation.check_heuristic` fails, or it does not end;
- it is the same: its plans are the heuristic's on :data:`ALIKE` drawn instances, small and large;
- it is worth the same: its plans are other ones there, but none is worth more or less, as where a tie goes otherwise;
- it is killed by examples only: it gives another value than a record of the collection, which the test suite holds;
- it survives.

The rate is the share that the checks kill of all that are neither the same nor worth the same.
"""

from __future__ import annotations

import ast
import functools
import importlib
import multiprocessing
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

from benchmarks.mutating import Mutation, mutated, mutations
from benchmarks.tables import Row, Setup, benchmark
from instances.base import agree
from validation.catalogue import CATALOGUE, Heuristic
from validation.kernel.asking import Askings, ask_here
from validation.kernel.gaps import gap_to
from validation.kernel.judging import Answer, Status, judge
from validation.kinds.checks import Subject, all_promises, checks, draw_instances, fails
from validation.kinds.checks.subject import SOLVE_BUDGET, Oracle
from validation.kinds.collection import Collection, load
from validation.testing import strategies

__all__ = [
    "Endless",
    "Fate",
    "Mutant",
    "UnplantedError",
    "difference",
    "drawn",
    "fate_of",
    "killed_by",
    "mutants",
    "off_the_records",
    "others",
    "planted",
]

PACKAGE = "heuristics"
DRAWN = 2
"""Mutants of each heuristic."""
TRACED = 50
"""Instances that tell which lines a heuristic comes by."""
TRIED = 100
"""Instances on which each check is tried, as `check_heuristic` does by default."""
ALIKE = 400
"""Instances on which plans are compared, small and large."""
LIMIT = 5.0
"""Processor seconds of a call after which a mutant counts as one that never ends."""


@dataclass(frozen=True)
class Mutant:
    """A heuristic of the catalogue with one exchange in a module.

    Attributes
    ----------
    problem, heuristic : str
        Names of the catalogue.
    module : str
        Where the exchange is made.
    mutation : Mutation
    """

    problem: str
    heuristic: str
    module: str
    mutation: Mutation

    def __str__(self) -> str:
        where = f"{self.module.removeprefix(PACKAGE + '.')}:{self.mutation.line}"
        return f"{self.problem}, {self.heuristic}, {where}: {self.mutation.change}"


class Fate(StrEnum):
    """What becomes of a mutant."""

    CHECKS = "killed by checks"
    SAME = "the same"
    WORTH_THE_SAME = "worth the same"
    EXAMPLES = "killed by examples only"
    SURVIVES = "survives"


Told = tuple[str, Fate, str]
"""A mutant in a line, its fate, and what kills it."""


@benchmark("mutants", "problem", "mutants", *Fate, "rate")
def mutants(setup: Setup) -> Iterator[Row]:
    """Mutants of the heuristics' syntax trees, and how many of them the checks kill."""
    counts = Counter[Fate]()
    for problem, found in _fates(setup.quick, setup.seed).items():
        own = Counter(fate for _, fate, _ in found)
        counts += own
        yield f"`{problem}`", *_row(own)
    yield "all", *_row(counts)


@benchmark("mutants.others", "mutant", "what becomes of it", "killed by")
def others(setup: Setup) -> Iterator[Row]:
    """Mutants that no check kills, by name, and what becomes of them."""
    passed = [told for found in _fates(setup.quick, setup.seed).values() for told in found if told[1] != Fate.CHECKS]
    for name, fate, killer in sorted(passed, key=lambda told: list(Fate).index(told[1])):
        yield f"`{name}`".replace("|", "\\|"), fate, killer
    yield "all", f"{len(passed)} mutants", ""


def _row(counts: Counter[Fate]) -> Row:
    counted = counts.total() - counts[Fate.SAME] - counts[Fate.WORTH_THE_SAME]
    rate = f"{counts[Fate.CHECKS] / counted:.1%}" if counted else "none"
    return counts.total(), *(counts[fate] for fate in Fate), rate


@functools.lru_cache(maxsize=1)
def _fates(quick: bool, seed: int) -> dict[str, list[Told]]:
    """Tell what becomes of the mutants of each problem, of which each processor takes one at a time."""
    if quick:
        problem = next(iter(CATALOGUE))
        return {problem: _of_problem(problem, heuristics=1, count=1)}
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        told = pool.map(functools.partial(_of_problem, seed=seed), CATALOGUE)
        return dict(zip(CATALOGUE, told, strict=True))


def _of_problem(problem: str, *, heuristics: int | None = None, count: int = DRAWN, seed: int = 0) -> list[Told]:
    names = list(CATALOGUE[problem].heuristics)[:heuristics]
    return [(str(mutant), *fate_of(mutant)) for name in names for mutant in drawn(problem, name, count, seed)]


def fate_of(mutant: Mutant) -> tuple[Fate, str]:
    """Return what becomes of a mutant, and what kills it."""
    killer = killed_by(mutant)
    if killer:
        return Fate.CHECKS, killer
    alike = difference(mutant)
    if alike:
        return alike, ""
    killer = off_the_records(mutant.problem, planted(mutant))
    return (Fate.EXAMPLES, killer) if killer else (Fate.SURVIVES, "")


def drawn(problem: str, name: str, count: int, seed: int = 0) -> list[Mutant]:
    """Return as many mutants of a heuristic, of a seed always the same as long as its code is."""
    heuristic = CATALOGUE[problem].heuristics[name]
    places = [
        Mutant(problem, name, module, mutation)
        for module, lines in sorted(_lines(heuristic, _instances(problem, TRACED)).items())
        for mutation in mutations(_source(module))
        if mutation.line in lines
    ]
    stream = random.Random(f"{problem} {name} {seed or ''}".rstrip())
    return stream.sample(places, min(count, len(places)))


def killed_by(mutant: Mutant, max_examples: int = TRIED) -> str:
    """Return a check of ``check_heuristic`` that fails, without making the instance small; "" for none."""
    heuristic = planted(mutant)
    subject = Subject(heuristic, CATALOGUE[mutant.problem], Askings(apart=False), _oracle(mutant.problem))
    try:
        # What needs no optimum, and finds most, comes first.
        for check in sorted(checks(mutant.problem, all_promises(heuristic)), key=lambda one: one.name != "holds"):
            expected = check.name == "feasible" and heuristic.infeasible_because
            instances = _instances(mutant.problem, max_examples, 0)
            if not expected and any(fails(check, subject, one) for one in instances):
                return check.name
    except Endless:
        return "does not end"
    return ""


@functools.lru_cache(maxsize=4)
def _oracle(problem: str) -> Oracle:
    return Oracle(SOLVE_BUDGET * TRIED)


def off_the_records(problem: str, heuristic: Heuristic) -> str:
    """Return the first record of the collection that says something else of a heuristic; "" for none."""
    return next((name for name, one, told in _recorded(problem, heuristic.name) if _off(heuristic, one, told)), "")


@functools.lru_cache(maxsize=1)
def _recorded(problem: str, name: str) -> list[tuple[str, Any, dict[str, Any]]]:
    """Instances of the collection, and what their records say of a heuristic of the catalogue, which gives it."""
    own = CATALOGUE[problem].heuristics[name]
    found = [
        (one, _collection().instance(one), record["heuristics"][name])
        for one, record in _collection().records.items()
        if record["problem"] == problem and name in record["heuristics"]
    ]
    return [(one, instance, told) for one, instance, told in found if not _off(own, instance, told)]


def _off(heuristic: Heuristic, instance: Any, told: dict[str, Any]) -> bool:
    answer = _answer(heuristic, instance)
    return answer.status != told["status"] or (told["value"] is not None and gap_to(answer.value, told["value"]) != 0)


def difference(mutant: Mutant) -> Fate | None:
    """Return whether a mutant's plans are the same or worth the same on all instances drawn; None if they are neither.

    Plans that break rules are worth the same where they are the same.
    """
    bad, found = planted(mutant), Fate.SAME
    answers = _answers(mutant.problem, mutant.heuristic)
    for instance, own in answers:
        other = _answer(bad, instance)
        if other.status != own.status:
            return None
        if other.plan != own.plan:
            if own.status != Status.FEASIBLE or not agree(other.value, own.value):
                return None
            found = Fate.WORTH_THE_SAME
    return found


@functools.lru_cache(maxsize=1)
def _answers(problem: str, name: str) -> list[tuple[Any, Answer]]:
    """Return what a heuristic of the catalogue answers to all instances drawn."""
    heuristic = CATALOGUE[problem].heuristics[name]
    return [(one, _answer(heuristic, one)) for count in (TRACED, ALIKE) for one in _instances(problem, count)]


def _answer(heuristic: Heuristic, instance: Any) -> Answer:
    """Judge a heuristic's plan by the instance, with the random stream of a study."""
    try:
        return judge(instance, ask_here(instance, heuristic, np.random.default_rng([0, int(instance.digest[:16], 16)])))
    except Endless:
        return Answer(None, Status.LATE)


@functools.cache
def _collection() -> Collection:
    return load(Path(__file__).parents[1] / "collection")


@functools.lru_cache(maxsize=4)
def _instances(problem: str, count: int, seed: int = 1) -> list[Any]:
    return draw_instances(strategies.varied(problem), count, seed)


def _source(module: str) -> str:
    return Path(str(sys.modules[module].__file__)).read_text(encoding="utf-8")


def _lines(heuristic: Heuristic, instances: list[Any]) -> dict[str, set[int]]:
    """Return the lines of each module that a heuristic runs."""
    lines: dict[str, set[int]] = {}

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        module = frame.f_globals.get("__name__", "")
        if not module.startswith(f"{PACKAGE}."):
            return None
        if event == "line":
            lines.setdefault(module, set()).add(frame.f_lineno)
        return trace

    before = sys.gettrace()
    for instance in instances:
        sys.settrace(trace)
        try:
            _answer(heuristic, instance)
        finally:
            sys.settrace(before)
    return lines


class UnplantedError(Exception):
    """A mutant whose module the heuristic does not import, so that it would be the heuristic itself."""


class Endless(BaseException):
    """A heuristic that does not end; no check takes this for one of its own errors."""


def _end(number: int, frame: object) -> None:
    raise Endless


def _limited(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make each call of a heuristic end."""

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        before = signal.signal(signal.SIGPROF, _end)
        signal.setitimer(signal.ITIMER_PROF, LIMIT)
        try:
            return function(*arguments, **options)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)

    return call


def planted(mutant: Mutant) -> Heuristic:
    """Return the heuristic with the exchange, and all that the catalogue promises of it."""
    heuristic = CATALOGUE[mutant.problem].heuristics[mutant.heuristic]
    tree = mutated(_source(mutant.module), mutant.mutation)
    module = _imported_afresh(heuristic.function.__module__, mutant.module, tree)
    return replace(heuristic, function=_limited(getattr(module, heuristic.name)))


def _imported_afresh(wanted: str, changed: str, tree: ast.Module) -> Any:
    """Import a module anew, with all heuristics, one module of which is ``tree``; nobody else sees them."""
    loaded = []

    class Loader(SourceFileLoader):
        def get_code(self, fullname: str) -> CodeType:
            loaded.append(fullname)
            return compile(tree, fullname, "exec")

    class Finder(MetaPathFinder):
        def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
            spec = PathFinder.find_spec(fullname, path) if fullname == changed else None
            if spec is not None:
                spec.loader = Loader(fullname, str(spec.origin))
            return spec

    def mine() -> list[str]:
        # Some heuristics are wrapped where the catalogue has them.
        return [name for name in sys.modules if name.partition(".")[0] == PACKAGE or name == wanted]

    kept = {name: sys.modules[name] for name in mine()}
    finder = Finder()
    for name in kept:
        del sys.modules[name]
    sys.meta_path.insert(0, finder)
    try:
        module = importlib.import_module(wanted)
        if not loaded:
            raise UnplantedError(f"{wanted} does not import {changed}, so that nothing is exchanged")
        return module
    finally:
        sys.meta_path.remove(finder)
        for name in mine():
            del sys.modules[name]
        sys.modules.update(kept)
        parent, _, own = wanted.rpartition(".")
        setattr(sys.modules[parent], own, kept[wanted])
