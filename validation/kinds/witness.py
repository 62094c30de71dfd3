"""What a hunt finds: the worst instance, both plans, and a page that shows them."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from instances.base import Instance, Plan, Record
from instances.files import write_whole
from instances.pictures import MOST_WRITTEN, matrix
from instances.schema import Scalar, declarations
from validation import catalogue
from validation.formatting import number, percent
from validation.kernel.gaps import difference_interval
from validation.kernel.provenance import version
from validation.pages.drawing import as_svg, label, own_style, plans_side_by_side
from validation.pages.render import render
from validation.sources import read_files, repairs, told

__all__ = ["Judged", "Witness", "facts_of", "page", "paths_of"]

if TYPE_CHECKING:
    from formulations.worst_case.proving import Measure

AnyInstance = Instance[Any]
MOST_ARRAYS = 12
"""Arrays of an instance up to which the page shows all their numbers."""


@dataclass(frozen=True)
class Judged:
    """An instance with both sides' plans and the gap between them.

    ``gap`` is infinite where the heuristic finds no feasible plan although there is one, or where
    the optimum is 0 and its value is not.
    """

    instance: AnyInstance
    plan: Plan | None
    value: float | None
    exact_plan: Plan
    optimum: float
    gap: float

    @property
    def difference(self) -> float:
        """``|value - optimum|``; infinite without a feasible plan."""
        return math.inf if self.value is None else difference_interval(self.value, self.optimum, self.optimum)[0]


@dataclass(frozen=True)
class Witness:
    """The worst instance of a hunt, replayable.

    Attributes
    ----------
    problem, heuristic : str
    judged : Judged
        The shrunk instance with both plans.
    worst_gap : float
        Greatest gap found, before shrinking.
    found_by : str
        Method that found it.
    evaluated : int
        Instances judged in all.
    seed : int
    failures : tuple of str
        Reasons of searches that ended early, such as a heuristic that crashed.
    measure : "ratio" or "difference"
        What was searched for.
    worst_difference : float, optional
        Difference of the two values where the gap, or the difference, was greatest.
    """

    problem: str
    heuristic: str
    judged: Judged
    worst_gap: float
    found_by: str
    evaluated: int
    seed: int
    failures: tuple[str, ...]
    measure: Measure = "ratio"
    worst_difference: float = math.nan

    def __str__(self) -> str:
        judged = self.judged
        sizes = [f"{name} = {size}" for name, size in judged.instance.dims.items() if not name.isdigit()]
        numbers = _scalars(judged.instance)
        return (
            f"{self.problem}, {self.heuristic}: gap {percent(judged.gap)}, difference {number(judged.difference)}\n"
            f"{_value(judged)} where the optimum is {number(judged.optimum)} ({judged.instance.measure})\n"
            f"instance: {', '.join(sizes + [numbers] * bool(numbers))}\n"
            f"found by {self.found_by}, seed {self.seed}, {self.evaluated} instances judged; "
            f"worst before shrinking {percent(self.worst_gap)}"
        )

    def _repr_html_(self) -> str:
        shown = {"facts": _facts(self), "plans": _plans_picture(self.heuristic, self.judged)}
        return render("witness-cell.html.j2", **shown)

    def to_dict(self) -> dict[str, Any]:
        """Return the witness as JSON; infinite gaps are None."""
        judged = self.judged
        return {
            "problem": self.problem,
            "heuristic": self.heuristic,
            "gap": judged.gap if math.isfinite(judged.gap) else None,
            "worst_gap": self.worst_gap if math.isfinite(self.worst_gap) else None,
            "measure": self.measure,
            "difference": judged.difference if math.isfinite(judged.difference) else None,
            "worst_difference": self.worst_difference if math.isfinite(self.worst_difference) else None,
            "value": judged.value,
            "optimum": judged.optimum,
            "plan": None if judged.plan is None else judged.plan.to_dict(),
            "exact_plan": judged.exact_plan.to_dict(),
            "instance": judged.instance.to_dict(),
            "found_by": self.found_by,
            "evaluated": self.evaluated,
            "seed": self.seed,
            "failures": list(self.failures),
            "versions": {name: version(name) for name in ("scheduling-formulations", "highspy", "numpy")},
        }

    def save(self, directory: str | os.PathLike[str]) -> Path:
        """Write ``<problem>-<heuristic>.json`` and ``.html`` into a directory; returns the JSON's path."""
        Path(directory).mkdir(parents=True, exist_ok=True)
        data, described = paths_of(directory, self.problem, self.heuristic)
        write_whole(data, json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n")
        write_whole(described, page(self.problem, self.heuristic, self.judged, _facts(self)))
        return data


def paths_of(directory: str | os.PathLike[str], problem: str, heuristic: str) -> tuple[Path, Path]:
    """Return the files that the witness of a hunt is written to: its data, and its page."""
    name = f"{problem}-{heuristic}".replace(":", "-").replace(os.sep, "-")
    return Path(directory) / f"{name}.json", Path(directory) / f"{name}.html"


def page(problem: str, heuristic: str, judged: Judged, facts: Mapping[str, str]) -> str:
    """Write a bad instance as one HTML file: facts, the problem's own picture, and all numbers.

    Parameters
    ----------
    problem, heuristic : str
    judged : Judged
    facts : mapping
        What stands above the picture, by its name.
    """
    return render(
        "witness.html.j2",
        facts=facts,
        heuristic=heuristic,
        instance=judged.instance.to_dict(),
        numbers=_arrays_picture(heuristic, judged),
        plans=_plans_picture(heuristic, judged),
        problem=problem,
    )


def facts_of(problem: str, heuristic: str, judged: Judged) -> dict[str, str]:
    """Collect what is to be said of a bad instance, however it was found."""
    entry = catalogue.entry(problem)
    return {
        "Problem": f"{problem}: {entry.title} ({entry.source})",
        "Heuristic": f"{heuristic}: {_value(judged)}",
        "Optimum": number(judged.optimum),
        "Numbers": _scalars(judged.instance) or "none beside the arrays",
    }


def _facts(witness: Witness) -> dict[str, str]:
    judged = witness.judged
    facts = facts_of(witness.problem, witness.heuristic, judged)
    facts["Gap"] = f"{percent(judged.gap)} (worst before shrinking {percent(witness.worst_gap)})"
    facts["Difference"] = f"{number(judged.difference)} (worst before shrinking {number(witness.worst_difference)})"
    facts["Found by"] = f"{witness.found_by}, seed {witness.seed}, {witness.evaluated} instances judged"
    origin = judged.instance.origin
    for what, reading in read_files(origin):
        facts[f"Real {what}"] = "; ".join([str(reading["source"]), *told(reading)])
    if changed := repairs(origin):
        facts["Repairs"] = "; ".join(f"{what}: {count} jobs" for what, count in changed.items())
    return facts


def _value(judged: Judged) -> str:
    return "no feasible plan" if judged.value is None else number(judged.value)


def _scalars(record: Record) -> str:
    fields = [name for name, declared in declarations(type(record)).items() if isinstance(declared, Scalar)]
    return ", ".join(f"{name} = {getattr(record, name)}" for name in fields)


def _plans_picture(heuristic: str, judged: Judged) -> str:
    plans = {} if judged.plan is None else {heuristic: judged.plan}
    return plans_side_by_side(judged.instance, {**plans, "optimal": judged.exact_plan})


def _arrays_picture(heuristic: str, judged: Judged) -> str:
    """Draw the arrays of the instance and both plans as tables of numbers, as SVG; empty where they are too large."""
    columns: list[tuple[str, Record]] = [("instance", judged.instance)]
    columns += [(heuristic, judged.plan)] if judged.plan is not None else []
    columns += [("optimal", judged.exact_plan)]
    panels = [_arrays(record) for _, record in columns]
    rows = max(len(panel) for panel in panels)
    if any(array.size > MOST_WRITTEN for panel in panels for _, array in panel) or rows > MOST_ARRAYS:
        return ""
    with own_style({"svg.fonttype": "none"}, salt="plans"):
        from matplotlib.figure import Figure

        figure = Figure(figsize=(4.6 * len(columns), 1.0 + 1.7 * rows), layout="constrained")
        axes = figure.subplots(rows, len(columns), squeeze=False)
        for column, ((title, _), panel) in enumerate(zip(columns, panels, strict=True)):
            for row in range(rows):
                if row < len(panel):
                    matrix(axes[row, column], panel[row][1])
                    axes[row, column].set_title(panel[row][0], fontsize=9)
                    axes[row, column].tick_params(labelsize=7, labelcolor="#57606a", labelleft=len(panel[row][1]) > 1)
                else:
                    axes[row, column].axis("off")
            head = axes[0, column].get_title()
            axes[0, column].set_title(f"{label(title)}\n{head}", fontsize=10)
        return as_svg(figure)


def _arrays(record: Record) -> list[tuple[str, NDArray[Any]]]:
    """Label and two-dimensional form of each array that can be drawn; the label names its axes."""
    found = []
    for name, declared in declarations(type(record)).items():
        value = getattr(record, name)
        if value is None or isinstance(declared, Scalar):
            continue
        for position, part in enumerate(value if isinstance(value, tuple) else (value,)):
            if part.size and part.ndim <= 2:
                axes = declared.shape.split()[-part.ndim :]
                label = f"{name}[{position}]" if isinstance(value, tuple) else name
                found.append((f"{label} ({' × '.join(axes)})", np.atleast_2d(part)))
    return found
