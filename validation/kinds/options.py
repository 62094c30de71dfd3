"""What checks, hunts, worst cases, claims and the judge are asked: every option once.

As :mod:`validation.kernel.options`, this module imports no other room.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from validation.errors import StudyError
from validation.kernel.options import LIMIT, SECONDS, SPAN, Form, Options, network_option, option, output_option
from validation.reader_options import pairs

if TYPE_CHECKING:
    from formulations.worst_case.proving import Measure

__all__ = ["CheckOptions", "ClaimOptions", "HuntOptions", "JudgeOptions", "WorstCaseOptions"]

NAMED = "A problem such as aryl.reclaim; then a name of the catalogue, module:function or file.py:function."


def _names(help: str = NAMED) -> Any:
    return option(help, (list,), required="a problem and a heuristic", argument=True, metavar="PROBLEM HEURISTIC")


def _measure(help: str) -> Any:
    form = Form(str, "ratio or difference", ("ratio", "difference").__contains__)
    return option(help, (str,), default="ratio", form=form)


def _dials(given: Sequence[str]) -> dict[str, Any]:
    """``NAME=VALUE`` by name; a number or a truth value where the text is one."""
    return {name: _plain_value(value) for name, value in pairs(given, "--fix").items()}


def _plain_value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


class _OfHeuristic(Options):
    """What is asked of one heuristic."""

    names: Sequence[Any]
    problem: str | None

    @property
    def subject(self) -> tuple[str, Any]:
        """Problem and heuristic, from ``PROBLEM HEURISTIC`` or ``HEURISTIC --problem PROBLEM``."""
        wanted = 2 if self.problem is None else 1
        if len(self.names) != wanted:
            given = " ".join(map(str, self.names))
            raise StudyError(f"got {given!r}, must be PROBLEM HEURISTIC, or HEURISTIC --problem PROBLEM")
        return self.problem or self.names[0], self.names[-1]


@dataclass(frozen=True, kw_only=True)
class CheckOptions(_OfHeuristic):
    """What checks are asked; a heuristic and a strategy are objects, too, where Python asks."""

    names: Sequence[Any] = _names()
    problem: str | None = option("The problem, where HEURISTIC alone is given.", (str,))
    ratio: float | None = option("Promise: within this factor of the optimum.", (float,), least=1)
    monotone: bool = option("Promise: more resources never hurt.", (bool,))
    relabelled: bool = option("Promise: renumbering changes nothing.", (bool,))
    max_examples: int = option("Instances for each check.", (int,), default=100, least=1)
    seed: int = option("Seed of the search.", (int,), default=0, least=0)
    strategy: Any = option("Draw instances from this: module:strategy.", (str,))
    time_limit: float = option("Limit for all checks, s.", (float,), default=600.0)
    allow_network: bool = network_option()
    output: Any = output_option("Directory for failing instances.", default="failures")


@dataclass(frozen=True, kw_only=True)
class HuntOptions(_OfHeuristic):
    """What a hunt is asked."""

    names: Sequence[Any] = _names()
    seed: int = option("Seed of the search.", (int,), required="--seed", least=0)
    budget: float = option(
        "Time in all, such as 60s or 5m.",
        (str,),
        default="60s",
        form=SPAN,
    )
    keep: float = option(
        "Fraction of the worst gap that shrinking keeps.",
        (float,),
        default=0.9,
        form=Form(float, "above 0 and at most 1", lambda part: 0 < part <= 1),
    )
    jobs: int | None = option("Worker processes; one for each core by default.", (int,), least=1, most=1000)
    restarts: int | None = option(
        "Make so many searches of 200 instances each, so that the seed alone decides.", (int,), least=1
    )
    problem: str | None = option("The problem, where HEURISTIC alone is given.", (str,))
    strategy: str | None = option("Draw instances from this, too: module:strategy.", (str,))
    measure: Measure = _measure("What is to be greatest: ratio (the gap) or difference.")
    fix: Mapping[str, Any] | None = option("NAME=VALUE of the generator, strategy or instances.", (dict,), read=_dials)
    where: str | None = option("Only instances of which this is true: module:function.", (str,))
    allow_network: bool = network_option()


@dataclass(frozen=True, kw_only=True)
class WorstCaseOptions(_OfHeuristic):
    """What the proof of a worst case is asked."""

    names: Sequence[Any] = _names("A problem, and a heuristic whose worst case has a model.")
    size: int = option("How large the instances are.", (int,), required="--size", least=1)
    fix: Mapping[str, Any] | None = option("NAME=VALUE: what else chooses the instances.", (dict,), read=_dials)
    measure: Measure = _measure("ratio or difference, of the heuristic's value and the optimum.")
    time_limit: float | None = option("Limit for the proof, s.", (float,), form=LIMIT)
    verify: bool = option("Search every program a second way, too.", (bool,))
    problem: str | None = option("The problem, where HEURISTIC alone is given.", (str,))


@dataclass(frozen=True, kw_only=True)
class ClaimOptions(Options):
    """How claims are put to the test."""

    name: str | None = option(
        "Only the claims of this paper or problem, or the claim of this name.", (str,), argument=True, metavar="NAME"
    )
    instances: int | None = option(
        "Most instances for each claim; 500, or all of a finite set, by default.", (int,), least=1
    )
    seconds: float = option("Time for each claim.", (float,), default=20.0, form=SECONDS)
    seed: int = option("Seed of random instances.", (int,), default=0, least=0)


@dataclass(frozen=True, kw_only=True)
class JudgeOptions(Options):
    """What the judge is asked."""

    heuristic: str = option(
        "A name of the catalogue, module:function or file.py:function.",
        (str,),
        required="a heuristic",
        argument=True,
    )
    problem: str = option("Name of a problem, such as aryl.reclaim.", (str,), required="--problem")
    split: str = option("public; hidden:FILE, drawn from the seed in a file; or hidden:SEED.", (str,), default="public")
    edition: int | None = option("Of the rule by which the set is drawn; the latest by default.", (int,), least=1)
    budget: float = option("Time for an instance, by the clock, such as 10s.", (str,), default=10.0, form=SPAN)
    jobs: int | None = option("Instances at once; one for each core by default.", (int,), least=1, most=1000)
    no_solver: bool = option("Keep solvers, the library's exact side and programs from the heuristic.", (bool,))
    steps: bool = option("Count the lines of Python that the heuristic runs, which makes it slower.", (bool,))
