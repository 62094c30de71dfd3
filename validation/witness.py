"""What a hunt finds: the worst instance, both plans, and a page that shows them."""

from __future__ import annotations

import html
import io
import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from instances.base import Instance, Plan, Record, Scalar, declarations
from instances.files import write_whole
from validation import catalogue
from validation.formatting import number, percent
from validation.results import version

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AnyInstance = Instance[Any]


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
    """

    problem: str
    heuristic: str
    judged: Judged
    worst_gap: float
    found_by: str
    evaluated: int
    seed: int
    failures: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The witness as JSON; infinite gaps are None."""
        judged = self.judged
        return {
            "problem": self.problem,
            "heuristic": self.heuristic,
            "gap": judged.gap if math.isfinite(judged.gap) else None,
            "worst_gap": self.worst_gap if math.isfinite(self.worst_gap) else None,
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
        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        name = f"{self.problem}-{self.heuristic}".replace(":", "-").replace(os.sep, "-")
        write_whole(directory / f"{name}.json", json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n")
        write_whole(directory / f"{name}.html", _page(self))
        return directory / f"{name}.json"


def _page(witness: Witness) -> str:
    """The witness as one HTML file."""
    judged = witness.judged
    entry = catalogue.entry(witness.problem)
    value = "no feasible plan" if judged.value is None else number(judged.value)
    facts = {
        "Problem": f"{witness.problem}: {entry.title} ({entry.source})",
        "Heuristic": f"{witness.heuristic}: {value}",
        "Optimum": number(judged.optimum),
        "Gap": f"{percent(judged.gap)} (worst before shrinking {percent(witness.worst_gap)})",
        "Numbers": _scalars(judged.instance),
        "Found by": f"{witness.found_by}, seed {witness.seed}, {witness.evaluated} instances judged",
    }
    lines = "".join(f"<dt>{name}</dt><dd>{html.escape(fact)}</dd>" for name, fact in facts.items())
    content = html.escape(json.dumps(witness.to_dict()["instance"]))
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{html.escape(witness.problem)}: worst case of
{html.escape(witness.heuristic)}</title><style>{_CSS}</style></head><body>
<h1>Worst case of {html.escape(witness.heuristic)}</h1><dl>{lines}</dl>
<p>Left the instance; to its right the heuristic's plan and an optimal one. Rows and columns count from 0.</p>
{_picture(witness)}
<h2>The instance</h2><pre>{content}</pre></body></html>
"""


def _scalars(record: Record) -> str:
    fields = [name for name, declared in declarations(type(record)).items() if isinstance(declared, Scalar)]
    return ", ".join(f"{name} = {getattr(record, name)}" for name in fields) or "none beside the arrays"


def _picture(witness: Witness) -> str:
    """Every array of the instance and of both plans, as tables of numbers; rows and columns count from 0."""
    # Loaded when a witness is saved, not by the workers that look for one.
    import matplotlib as mpl
    from matplotlib.figure import Figure

    judged = witness.judged
    columns: list[tuple[str, Record]] = [("instance", judged.instance)]
    columns += [(witness.heuristic, judged.plan)] if judged.plan is not None else []
    columns += [("optimal", judged.exact_plan)]
    panels = [_arrays(record) for _, record in columns]
    rows = max(len(panel) for panel in panels)
    with mpl.rc_context({"font.size": 9, "svg.hashsalt": "witness"}):
        figure = Figure(figsize=(4.6 * len(columns), 1.0 + 1.7 * rows), layout="constrained")
        axes = figure.subplots(rows, len(columns), squeeze=False)
        for column, ((title, _), panel) in enumerate(zip(columns, panels, strict=True)):
            for row in range(rows):
                if row < len(panel):
                    _matrix(axes[row, column], *panel[row])
                else:
                    axes[row, column].axis("off")
            head = axes[0, column].get_title()
            axes[0, column].set_title(f"{title}\n{head}", fontsize=10)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()[buffer.getvalue().index("<svg") :]


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


def _matrix(axes: Axes, label: str, array: NDArray[Any]) -> None:
    words = array.dtype.kind == "U"
    shown = np.zeros(array.shape) if words else array.astype(float)
    finite = np.where(np.isfinite(shown), shown, np.nan)
    greatest = np.nanmax(np.abs(finite)) if np.isfinite(finite).any() else 1.0
    axes.imshow(finite / (greatest or 1.0), cmap="Blues", vmin=0, vmax=1.6, aspect="auto")
    if array.size <= 200:
        for (i, j), entry in np.ndenumerate(array):
            text = str(entry) if words else f"{float(entry):.4g}"
            axes.text(j, i, text, ha="center", va="center", fontsize=8)
    axes.set_title(label, fontsize=9)
    rows, columns = array.shape
    axes.set_xticks(range(columns) if columns <= 20 else [])
    axes.set_yticks(range(rows) if 1 < rows <= 20 else [])
    axes.tick_params(length=0, labelsize=7, labelcolor="#57606a")


_CSS = """body{font:15px/1.5 system-ui,sans-serif;color:#1b1f24;max-width:1180px;margin:2rem auto;padding:0 1.2rem}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem} dt{color:#57606a} dd{margin:0}
svg{max-width:100%;height:auto} pre{white-space:pre-wrap;overflow-wrap:anywhere;font-size:.85em}"""
