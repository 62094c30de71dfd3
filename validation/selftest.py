"""A smoke suite that ships with the library: every part of it once, on an installation without the test suite.

It does not replace the tests.  It shows that what is installed is whole and works together here: a small instance of
each problem goes through a file, is solved and drawn, and its heuristics are judged beside the optimum; then come a
study, a check, and the example of a paper whose answer is printed.
"""

from __future__ import annotations

import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from validation.formatting import number

__all__ = ["Finding", "selftest"]

DRAWN = 100
"""Instances drawn of a problem, of which one must have an optimum."""

SOLVE_SECONDS = 60.0
"""Time limit for the optimum of an instance, s; the slowest takes a second or two."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at, and whether it is as it should be."""

    ok: bool
    text: str


def selftest() -> Iterator[Finding]:
    """Try the library's parts one after another.

    Yields
    ------
    Finding
        One for each problem, then those of a study, of a check and of a paper's example.  A part that raises is not as
        it should be; the others are tried all the same.
    """
    from validation.catalogue import CATALOGUE

    for problem in CATALOGUE:
        yield _tried(problem, lambda problem=problem: _problem(problem))  # type: ignore[misc]
    yield _tried("study", _study)
    yield _tried("check", _check)
    yield _tried("example", _example)


def _tried(what: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(True, f"{what}: {look()}")
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return Finding(False, f"{what}: {type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})")


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise AssertionError(otherwise)


def _problem(problem: str) -> str:
    """Try a small instance of a problem that has an optimum: in a file, drawn, and answered by all heuristics."""
    from matplotlib.figure import Figure

    import formulations
    import instances
    from validation import catalogue
    from validation.kernel.gaps import beats
    from validation.kinds.study.cases import generate
    from validation.kinds.study.cells import judged
    from validation.pages.drawing import own_style

    entry = catalogue.entry(problem)
    drawn = (generate(problem, 1, entry.sizes[0], index) for index in range(DRAWN))
    solved = ((made, formulations.solve(made, time_limit=SOLVE_SECONDS)) for made in drawn)
    # Some have no feasible plan, which the exact side says.
    made, solution = next((made, found) for made, found in solved if found.status != "infeasible")
    _require(solution.status == "optimal", f"the exact side ended {solution.status}: {solution.message}")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "instance.json"
        instances.save(made, file)
        _require(instances.load(file) == made, "the instance in a file is another one")
    assert solution.objective is not None
    _require(not made.violations(solution.plan), "the optimal plan breaks a rule")
    with own_style({}, salt="selftest"):
        made.plot(solution.plan, ax=Figure().subplots())
    for name, heuristic in entry.heuristics.items():
        answer = judged(made, heuristic, 1, seconds=SOLVE_SECONDS, memory=None)
        fair = {"feasible", "declined"} | ({"infeasible"} if heuristic.infeasible_because else set())
        _require(answer["status"] in fair, f"{name} ended {answer['status']}: {answer['reason']}")
        value = answer["value"]
        _require(
            value is None or not beats(made.sense, value, solution.bound),
            f"{name} found {value}, better than the proven bound {solution.bound}",
        )
    return f"optimum {number(solution.objective)}, none of its heuristics is better ({len(entry.heuristics)})"


def _study() -> str:
    """Write a study into a folder and read it again, with its table and its report."""
    from validation import gap_study

    with tempfile.TemporaryDirectory() as folder:
        options: dict[str, Any] = {"seed": 1, "sizes": [4], "count": 2, "output": folder}
        study = gap_study("aryl.reclaim", **options)
        _require(len(study.summary()) > 0, "the summary is empty")
        _require("failed" not in set(study.rows["status"]), "some runs failed")
        _require(set(study.summary()["proven"]) == {2}, "some optima are not proven")
        _require(study.report.stat().st_size > 0, "the report is empty")
        again = gap_study("aryl.reclaim", **options)
        # The times too: a run that is made again takes another.
        _require(again.rows.equals(study.rows), "resumed, it has other rows")
        return f"{len(study.rows)} runs, resumed, with a report"


def _check() -> str:
    """Check that a right heuristic holds, and that one that returns too few servers is found out."""
    from validation import check_heuristic

    right = check_heuristic("aryl.reclaim", "server_fraction", max_examples=20)
    _require(right.ok, str(right))
    wrong = check_heuristic("aryl.reclaim", _too_few, max_examples=20)
    _require(not wrong.ok, "a heuristic that breaks a rule passed")
    return f"{len(right.results)} checks hold, a planted fault is found"


def _too_few(instance: Any) -> Any:
    """Return no servers, whatever is demanded."""
    return instance.plan_type(servers=[])


def _example() -> str:
    """Return Gavel's example of section 4.1, whose optimum is 8/11."""
    import formulations
    from instances.gavel.max_min_fairness import three_jobs

    solution = formulations.solve(three_jobs())
    _require(solution.status == "optimal", f"it ended {solution.status}")
    _require(
        abs((solution.objective or 0.0) - 8 / 11) < 1e-6, f"the optimum is {solution.objective}, and 8/11 is printed"
    )
    return "Gavel, section 4.1: 8/11"
