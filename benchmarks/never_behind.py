"""Is a solve's plan ever worse than a heuristic's in a tenth of the time?  ``python -m benchmarks never_behind``.

Whoever asks for an optimum within a limit gets the best plan known by then, which should be no worse than what the
catalogue's heuristics have in a tenth of that limit.  Both run in this process and are timed by the clock, as limits
are; heuristics that decline, break a rule or are not done in time do not count.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import signal
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import formulations
from benchmarks import chosen
from benchmarks.sizes import drawn, three
from benchmarks.tables import Broken, Row, Setup, benchmark
from formulations import SolverDisagreement
from instances.base import Instance, agree
from validation.catalogue import CATALOGUE, READY, Entry
from validation.kernel.asking import alike, call
from validation.kernel.judging import Asked, Status, judge

__all__ = ["LIMITS", "SHARE", "answers", "never_behind", "shortfall"]

LIMITS = (1.0, 10.0, 60.0)
"""Of a solve, s."""
SHARE = 0.1
"""Of the limit, that a heuristic may take."""
COUNT = 10
"""Instances of each size."""
ENDED = ("optimal", "infeasible")
"""Statuses that more time does not change."""


class _Late(BaseException):
    """A heuristic has had its time; nothing that it calls may take this for an error."""


@contextlib.contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """End what is in here after so many seconds."""

    def stop(*_: object) -> None:
        raise _Late

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def answers(entry: Entry, instance: Instance[Any], seconds: float) -> list[tuple[float, float, str]]:
    """Return seconds, value and name of each heuristic that has a plan of finite value within so many seconds."""
    found = []
    for name, heuristic in entry.heuristics.items():
        for module in (*READY, *heuristic.imports):
            # An import that is ended leaves half a module behind.
            importlib.import_module(module)
        copied = replace(instance)
        began = time.perf_counter()
        try:
            with _at_most(seconds):
                plan = call(copied, heuristic, alike())
        except _Late:
            continue
        took = time.perf_counter() - began
        verdict = judge(instance, Asked(plan))
        if verdict.status == Status.FEASIBLE and math.isfinite(verdict.value):
            found.append((took, verdict.value, name))
    return found


def shortfall(instance: Instance[Any], value: float | None, best: float) -> float:
    """Return by how much a value is worse than another, relatively; 0 where it is not, infinite for no plan."""
    if value is None or math.isinf(value):
        return math.inf
    if agree(value, best) or (value < best if instance.sense == "min" else value > best):
        return 0.0
    return abs(value - best) / abs(best) if best else math.inf


def _loose(instance: Instance[Any], bound: float) -> bool:
    """Tell whether a bound says less than what needs no search."""
    trivial = formulations.formulation(instance.problem).trivial_bound
    if trivial is None:
        return False
    least = trivial(instance)
    return not agree(bound, least) and (bound < least if instance.sense == "min" else bound > least)


@benchmark("never_behind", "problem", "size", "limit, s", "behind", "worst", "of whom", "loose bounds")
def never_behind(setup: Setup) -> Iterator[Row]:
    """Solves whose plan is worse than a heuristic's that took a tenth of the limit, and bounds below the trivial ones.

    Raises
    ------
    Broken
        When there are any.
    """
    limits = LIMITS if setup.limit is None and not setup.quick else (setup.seconds(LIMITS[0]),)
    behind = loose = runs = 0
    for problem in chosen(CATALOGUE, setup.problems):
        entry = CATALOGUE[problem]
        for settings in setup.few(three(problem)[: setup.most]):
            told = _told(entry, settings, limits, setup.instances(COUNT, 1))
            size = settings[entry.size]
            for limit, (short, names, weak) in zip(limits, told, strict=True):
                bad = [one for one in short if one > 0]
                behind, loose, runs = behind + len(bad), loose + weak, runs + len(short)
                worst = f"{max(bad):.2%}" if bad else ""
                yield f"`{problem}`", f"{size:,}", f"{limit:g}", f"{len(bad)} of {len(short)}", worst, names, weak
    yield "all", "", "", f"{behind} behind of {runs:,}", "", "", loose
    if behind or loose:
        raise Broken(f"{behind} behind, {loose} loose bounds")


def _told(
    entry: Entry, settings: dict[str, Any], limits: Sequence[float], count: int
) -> list[tuple[list[float], str, int]]:
    """Return for each limit how far behind each solve is, behind whom, and how many bounds are loose."""
    told: list[tuple[list[float], set[str], list[bool]]] = [([], set(), []) for _ in limits]
    for seed in range(count):
        instance = drawn(entry.problem, settings, seed)
        fast = answers(entry, instance, SHARE * max(limits))
        pick = min if instance.sense == "min" else max
        solution = None
        for limit, (short, names, weak) in zip(limits, told, strict=True):
            # What is proven in a second is no other in ten.
            if solution is None or solution.status not in ENDED:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", SolverDisagreement)
                    solution = formulations.solve(replace(instance), time_limit=limit)
            within = [(value, name) for took, value, name in fast if took <= SHARE * limit]
            best, name = pick(within) if within else (math.nan, "")
            short.append(shortfall(instance, solution.objective, best) if within else 0.0)
            if short[-1] > 0:
                names.add(f"`{name}`")
                if solution.status in ENDED:
                    raise RuntimeError(
                        f"{entry.problem}, {settings}, seed {seed}: {name} has {best!r}, the solve "
                        f"{solution.status} {solution.objective!r}"
                    )
            weak.append(_loose(instance, solution.bound))
    return [(short, ", ".join(sorted(names)), sum(weak)) for short, names, weak in told]
