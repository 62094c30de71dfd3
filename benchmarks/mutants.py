"""How many planted bugs the checks of heuristics find: python -m benchmarks mutants.

A mutant is a heuristic with one snippet of its source exchanged.  It is imported afresh, beside the
heuristic itself, and put to :func:`validation.check_heuristic` as that comes; it is killed when a check fails.
"""

from __future__ import annotations

import importlib
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

from benchmarks.planted import MUTANTS, Mutant
from benchmarks.tables import Row, Setup, benchmark, seconds
from validation import check_heuristic
from validation.catalogue import CATALOGUE, Heuristic
from validation.testing.checks import CheckReport

__all__ = ["Endless", "Verdict", "mutants", "planted", "put_to_the_test"]

PACKAGE = "heuristics"
LIMIT = 60.0
"""Processor seconds after which a mutant counts as one that never ends."""


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant.

    Attributes
    ----------
    mutant : Mutant
    report : CheckReport, optional
        None where the heuristic did not end, which nobody overlooks, but no check tells either.
    seconds : float
        Processor time of its checks.
    """

    mutant: Mutant
    report: CheckReport | None
    seconds: float

    @property
    def killed_by(self) -> tuple[str, ...]:
        """The checks that failed; none: it survived."""
        return tuple(dict.fromkeys(result.name for result in self.report.failed)) if self.report else ()


@benchmark("mutants", "problem", "heuristic", "bug", "killed by", "seconds")
def mutants(setup: Setup) -> Iterator[Row]:
    """Bugs planted in the heuristics, and the checks that find them."""
    verdicts = []
    for mutant in setup.few(MUTANTS):
        verdict = put_to_the_test(mutant)
        verdicts.append(verdict)
        killers = ", ".join(verdict.killed_by) or "**survives**"
        yield mutant.problem, mutant.heuristic, mutant.bug, killers, seconds(verdict.seconds)
    killed = [verdict for verdict in verdicts if verdict.killed_by]
    rate = f"{len(killed)} of {len(verdicts)} killed, {len(killed) / len(verdicts):.1%}"
    yield "all", "", "", rate, f"{seconds(max(verdict.seconds for verdict in verdicts))} at most"


def put_to_the_test(mutant: Mutant, **options: Any) -> Verdict:
    """A mutant checked at default settings, or with other ``options`` of :func:`validation.check_heuristic`."""
    heuristic = planted(mutant)
    began = time.process_time()
    before = signal.signal(signal.SIGPROF, _end)
    signal.setitimer(signal.ITIMER_PROF, LIMIT)
    try:
        report: CheckReport | None = check_heuristic(mutant.problem, heuristic, **options)
    except Endless:
        report = None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return Verdict(mutant, report, time.process_time() - began)


class Endless(BaseException):
    """A heuristic that does not end; no check takes this for one of its own errors."""


def _end(number: int, frame: object) -> None:
    raise Endless


def planted(mutant: Mutant) -> Heuristic:
    """The heuristic with the bug, and all that the catalogue promises of it.

    Raises
    ------
    ValueError
        When the snippet does not stand exactly once in the source, which has changed then.
    """
    heuristic = CATALOGUE[mutant.problem].heuristics[mutant.heuristic]
    own = heuristic.function.__module__
    name = mutant.module or own
    path = Path(str(sys.modules[name].__file__))
    source = path.read_text(encoding="utf-8")
    found = source.count(mutant.old)
    if found != 1:
        raise ValueError(f"{mutant}: its snippet stands {found} times in {name}, must be once: {mutant.old!r}")
    changed = compile(source.replace(mutant.old, mutant.new), str(path), "exec")
    module = _imported_afresh(own, name, changed)
    return replace(heuristic, function=getattr(module, heuristic.name))


def _imported_afresh(wanted: str, changed: str, code: CodeType) -> Any:
    """A module imported anew, with all others of its package, one of which is ``code``; nobody else sees them."""

    class Loader(SourceFileLoader):
        def get_code(self, fullname: str) -> CodeType:
            return code

    class Finder(MetaPathFinder):
        def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
            spec = PathFinder.find_spec(fullname, path) if fullname == changed else None
            if spec is not None:
                spec.loader = Loader(fullname, str(spec.origin))
            return spec

    kept = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == PACKAGE}
    finder = Finder()
    for name in kept:
        del sys.modules[name]
    sys.meta_path.insert(0, finder)
    try:
        return importlib.import_module(wanted)
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
            del sys.modules[name]
        sys.modules.update(kept)
