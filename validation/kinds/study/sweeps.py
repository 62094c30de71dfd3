"""Sweeps: parameters of generators with the values that a study gives them, side by side.

Whatever the value, an instance is drawn from the same stream, so that values are compared on like instances.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from instances.schema import nearest, quoted
from validation import catalogue
from validation.errors import StudyError
from validation.formatting import printable
from validation.reader_options import is_list, parameters, typed

__all__ = ["TAKEN", "Label", "Setting", "choose_settings", "is_label", "labels_of"]

Label: TypeAlias = bool | int | float | str | None
"""A value as the table has it; None for a parameter that a problem does not have."""

TAKEN = frozenset(
    {
        *("problem", "sense", "source", "size", "index", "instance", "file", "algorithm", "status", "value", "bound"),
        *("relaxation", "seconds", "engine_seconds", "solver", "reason", "verification", "key", "exact_status"),
        *("exact_value", "exact_bound", "exact_relaxation", "exact_seconds", "best_value", "disagreement"),
        *("gap", "gap_low", "gap_high", "difference_low", "difference_high", "heuristic", "instances", "proven"),
        *("without_plan", "feasible", "infeasible", "declined", "failed", "disagreements", "median_seconds"),
        "exact_median_seconds",
        *(
            f"{what}_{of}_{end}"
            for what in ("gap", "difference")
            for of in ("mean", "p95", "worst")
            for end in ("low", "high")
        ),
        *("worst", "plan", "second"),
    }
)
"""Names that mean something else in a study's table, summary, overview or log."""


@dataclass(frozen=True)
class Setting:
    """One value of each parameter that is swept.

    Attributes
    ----------
    options : mapping
        What the generator is given.
    labels : mapping
        What the table calls it; None for a parameter that the generator does not have.
    """

    options: Mapping[str, Any]
    labels: Mapping[str, Label]


def choose_settings(problems: Sequence[str], sweep: Mapping[str, Sequence[Any]] | None) -> dict[str, list[Setting]]:
    """Combine the values asked for, for each problem; a parameter is swept where there is one.

    Parameters
    ----------
    problems : sequence of str
    sweep : mapping, optional
        Name of a parameter of generators to its values; text is cut at its commas, and read as the parameter's type.

    Raises
    ------
    StudyError
        When no problem has the parameter, or a value is not of its type.
    """
    sweep = sweep or {}
    if not isinstance(sweep, Mapping):
        raise StudyError(f"sweep: got {quoted(sweep)}, must be a mapping from parameters to values")
    known = {problem: parameters(catalogue.entry(problem).generate) for problem in problems}
    for name, values in sweep.items():
        _check(name, values, known)
    found: dict[str, list[Setting]] = {}
    for problem, options in known.items():
        own = {name: _read(name, values, options, problem) for name, values in sweep.items() if name in options}
        found[problem] = []
        for chosen in itertools.product(*own.values()):
            read = dict(zip(own, chosen, strict=True))
            labels = {name: label for name, (_, label) in read.items()}
            found[problem].append(
                Setting({name: value for name, (value, _) in read.items()}, dict.fromkeys(sweep) | labels)
            )
    return found


def labels_of(settings: Mapping[str, Sequence[Setting]]) -> dict[str, list[Label]]:
    """Return every value of each parameter that is swept, as the table has it."""
    found: dict[str, dict[Label, None]] = {}
    for setting in itertools.chain.from_iterable(settings.values()):
        for name, label in setting.labels.items():
            found.setdefault(name, {}).update({} if label is None else {label: None})
    return {name: [*labels] for name, labels in found.items()}


def is_label(value: Any) -> bool:
    """Return whether a value is one that the table can hold."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, str):
        return printable(value) == value and "\n" not in value
    return value is None or isinstance(value, bool) or (isinstance(value, int) and -(2**63) <= value < 2**63)


def _check(name: Any, values: Any, known: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse what is no parameter of any problem, or not to be swept."""
    for problem in known:
        if name == catalogue.entry(problem).size:
            raise StudyError(f"sweep: {name} of {problem} is what --sizes says")
    if not any(name in options for options in known.values()):
        there = {
            one: None for problem, options in known.items() for one in options if one != catalogue.entry(problem).size
        }
        raise StudyError(
            f"sweep: no problem studied has a parameter {quoted(name)}{nearest(str(name), there)}; there are "
            f"{', '.join(there) or 'none'}"
        )
    if name in TAKEN:
        raise StudyError(f"sweep: {name} cannot be swept: the table has another column of that name")
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray) or not len(values):
        raise StudyError(f"sweep: {name}: got {quoted(values)}, must be a list of values")


def _read(name: str, values: Sequence[Any], known: Mapping[str, Any], problem: str) -> list[tuple[Any, Label]]:
    """Read the values of a parameter as the generator takes them, with their labels, each once."""
    if not is_list(known[name]) and all(isinstance(one, str) for one in values):
        values = [part.strip() for one in values for part in one.split(",")]
    found: dict[Label, Any] = {}
    for value in values:
        read = typed({name: value}, known, f"the generator of {problem}", "sweep")[name]
        label = ",".join(map(str, read)) if isinstance(read, list) else read
        if label is None or not isinstance(label, bool | int | float | str) or not is_label(label):
            raise StudyError(
                f"sweep: {name} of {problem}: got {quoted(value)}, must be a finite number, a word, true or false"
            )
        found.setdefault(label, read)
    return [(read, label) for label, read in found.items()]
