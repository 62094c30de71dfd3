"""Share of mutants of the heuristics that their checks kill: ``python -m benchmarks mutants``.

A mutant is a heuristic whose code, or code of the package that it calls, has one exchange in its syntax tree
(:mod:`benchmarks.mutating`), drawn from all that stand where the heuristic comes by; nobody chooses it.  It is imported
afresh, beside the heuristic itself, and put to :func:`validation.check_heuristic` as that comes.  It is killed when a
check fails or when it does not end, or else when it does not give what the records of the collection say of the
heuristic, which the test suite holds.  It is equivalent when its plans are worth the same as the heuristic's on
:data:`ALIKE` drawn instances, small and large, and survives else.
"""

from __future__ import annotations

import ast
import functools
import importlib
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

from benchmarks.mutating import Mutation, mutated, mutations
from benchmarks.tables import Row, Setup, benchmark, seconds
from validation.catalogue import CATALOGUE, Heuristic
from validation.kernel.gaps import gap_to
from validation.kinds.checks import draw_instances, run_checks
from validation.kinds.collection import Collection, load
from validation.kinds.options import CheckOptions
from validation.testing import strategies

__all__ = [
    "Endless",
    "Mutant",
    "UnplantedError",
    "drawn",
    "equivalent",
    "fate_of",
    "killed_by",
    "mutants",
    "off_the_records",
    "planted",
]

PACKAGE = "heuristics"
DRAWN = 2
"""Mutants of each heuristic."""
TRACED = 50
"""Instances that tell which lines a heuristic comes by."""
ALIKE = 2000
"""Instances on which an equivalent mutant gives the same plans, small and large."""
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


@benchmark("mutants", "problem", "heuristic", "line", "exchange", "killed by", "seconds")
def mutants(setup: Setup) -> Iterator[Row]:
    """Mutants of the heuristics' syntax trees, and the checks that kill them."""
    counts: Counter[str] = Counter()
    names = [(problem, heuristic) for problem, entry in CATALOGUE.items() for heuristic in entry.heuristics]
    for problem, heuristic in setup.few(names):
        for mutant in setup.few(drawn(problem, heuristic, DRAWN)):
            began = time.process_time()
            fate, killer = fate_of(mutant)
            counts[fate] += 1
            line = f"`{mutant.module.removeprefix(PACKAGE + '.')}:{mutant.mutation.line}`"
            change = "`" + mutant.mutation.change.replace("|", "\\|") + "`"
            yield problem, heuristic, line, change, killer or f"**{fate}**", seconds(time.process_time() - began)
    counted = counts["checks"] + counts["records"] + counts["survives"]
    for what, killed in (("checks", counts["checks"]), ("checks and records", counts["checks"] + counts["records"])):
        share = f"{killed / counted:.1%}" if counted else "none"
        yield "all", "", "", f"{counts['equivalent']} equivalent", f"{killed} of {counted} by {what}, {share}", ""


def fate_of(mutant: Mutant) -> tuple[str, str]:
    """Return what becomes of a mutant, "checks", "records", "equivalent" or "survives", and what kills it."""
    killer = killed_by(mutant)
    if killer:
        return "checks", killer
    if off_the_records(mutant.problem, planted(mutant)):
        return "records", "the collection's records"
    return "equivalent" if equivalent(mutant) else "survives", ""


def drawn(problem: str, name: str, count: int) -> list[Mutant]:
    """Return as many mutants of a heuristic, always the same as long as its code is."""
    heuristic = CATALOGUE[problem].heuristics[name]
    places = [
        Mutant(problem, name, module, mutation)
        for module, lines in sorted(_lines(heuristic, _instances(problem, TRACED)).items())
        for mutation in mutations(_source(module))
        if mutation.line in lines
    ]
    return random.Random(f"{problem} {name}").sample(places, min(count, len(places)))


def killed_by(mutant: Mutant, **options: Any) -> str:
    """Return the check that fails first, at default settings or with other ``options`` of ``check_heuristic``."""
    try:
        for report in run_checks(CheckOptions(names=(mutant.problem, planted(mutant)), output=None, **options)):
            if report.failed:
                return report.failed[0].name
    except Endless:
        return "does not end"
    except UnplantedError:
        raise
    except Exception as error:
        return f"not imported: {type(error).__name__}"
    return ""


def off_the_records(problem: str, heuristic: Heuristic) -> bool:
    """Return True where a heuristic does not give what a record of the collection says of it."""
    return any(_off(heuristic, instance, told) for instance, told in _recorded(problem, heuristic.name))


@functools.lru_cache(maxsize=4)
def _recorded(problem: str, name: str) -> list[tuple[Any, dict[str, Any]]]:
    """Instances of the collection, and what their records say of a heuristic of the catalogue, which gives it."""
    own = CATALOGUE[problem].heuristics[name]
    found = [
        (_collection().instance(one), record["heuristics"][name])
        for one, record in _collection().records.items()
        if record["problem"] == problem and name in record["heuristics"]
    ]
    return [(instance, told) for instance, told in found if not _off(own, instance, told)]


def _off(heuristic: Heuristic, instance: Any, told: dict[str, Any]) -> bool:
    status, value = _answer(heuristic, instance)
    return status != told["status"] or (told["value"] is not None and gap_to(value, told["value"]) != 0)


def equivalent(mutant: Mutant) -> bool:
    """Return True where a mutant's plans are worth the same as the heuristic's on all instances drawn."""
    original, bad = CATALOGUE[mutant.problem].heuristics[mutant.heuristic], planted(mutant)
    return all(
        _answer(original, one) == _answer(bad, one)
        for count in (TRACED, ALIKE)
        for one in _instances(mutant.problem, count)
    )


def _answer(heuristic: Heuristic, instance: Any) -> tuple[str, Any]:
    """Status and value of a heuristic's plan."""
    try:
        # The stream of a question in a study or in the making of the collection.
        stream = [0, int(instance.digest[:16], 16)]
        options = {"rng": np.random.default_rng(stream)} if heuristic.random else {}
        plan = heuristic.function(instance, **options)
        if plan is None:
            return "declined", None
        if instance.violations(plan):
            return "infeasible", None
        return "feasible", instance.objective(plan)
    except (Exception, Endless) as error:
        return type(error).__name__, None


@functools.cache
def _collection() -> Collection:
    return load(Path(__file__).parents[1] / "collection")


@functools.lru_cache(maxsize=4)
def _instances(problem: str, count: int) -> list[Any]:
    return draw_instances(strategies.varied(problem), count, seed=1)


def _source(module: str) -> str:
    return Path(str(sys.modules[module].__file__)).read_text(encoding="utf-8")


def _lines(heuristic: Heuristic, instances: list[Any]) -> dict[str, set[int]]:
    """The lines of the package that a heuristic comes by, of each module."""
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
    """A heuristic, each call of which ends."""

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
    """A module imported anew, with all heuristics, a module of which is ``tree``; nobody else sees them."""
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
