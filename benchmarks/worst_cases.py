"""``python -m benchmarks.worst_cases [PAPER]``: the table and the picture of docs/worst-cases.md, and its witnesses.

Each row is one proof, of which every program is searched a second way, too.  Times are processor times of this
process, which are those of the proof: heuristics run in processes of their own.
"""

from __future__ import annotations

import sys
import tomllib
from fractions import Fraction
from pathlib import Path
from typing import Any

import validation
from benchmarks.tables import timed
from validation.catalogue import load
from validation.kinds.worst_case import WorstCase
from validation.pages.drawing import as_svg, own_style
from validation.pages.render import table_lines

__all__ = ["ASKED", "main"]

DOCS = Path(__file__).parents[1] / "docs"
EXAMPLE = "examples/worst_case/identical_machines.py"
ASKED: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
"""Rows and lines of the picture."""
COLUMNS = ("heuristic", "size", "instances", "worst ratio", "witness", "proof", "processor s", "command")


def main(paper: str = "") -> None:
    """Print the rows, and write witnesses and, of all papers, the picture."""
    load(EXAMPLE)
    asked = [(name.split(), *case) for name, cases in ASKED["cases"].items() for case in cases]
    rows = (_row(*case) for case in asked if case[0][0].startswith(f"{paper}." if paper else ""))
    for line in table_lines(COLUMNS, rows, numbers=("size", "worst ratio", "processor s")):
        print(line, flush=True)
    if not paper:
        (DOCS / "worst-cases.svg").write_text(_picture(), encoding="utf-8")


def _row(heuristic: list[str], size: int, dials: dict[str, Any]) -> list[object]:
    found, spent = timed(validation.worst_case, *heuristic, size=size, verify=True, **dials)
    path = found.save(DOCS / "worst-cases")
    path.with_suffix(".html").unlink()
    load_ = f"--load {EXAMPLE} " if heuristic[0].startswith("demo.") else ""
    fixed = "".join(f" --fix {name}={str(value).lower()}" for name, value in dials.items())
    witness: Any = found.witness
    return [
        " ".join(f"`{name}`" for name in heuristic),
        size,
        found.instances,
        worst(found),
        f"[{witness.num_jobs} {'experts' if witness.rows == 'e' else 'jobs'}](worst-cases/{path.name})",
        found.proof,
        f"{spent:.2g}",
        f"`optgap {load_}worst-case {' '.join(heuristic)} --size {size}{fixed}`",
    ]


def worst(found: WorstCase) -> str:
    """Write the worst ratio as a fraction where there is a small one, or the interval that it lies in."""
    if found.value is None or found.status != "optimal":
        return f"{found.value or 1:.6g} to {found.bound:.6g}"
    near = Fraction(found.value).limit_denominator(100)
    return str(near) if abs(near - found.value) < 1e-6 else f"{found.value:.6g}"


def _picture() -> str:
    with own_style({}, salt="worst cases"):
        from matplotlib.figure import Figure

        figure = Figure(figsize=(10.0, 5.6), layout="constrained")
        curves: dict[str, dict[str, Any]] = ASKED["curves"]
        for axes, (counted, lines) in zip(figure.subplots(1, len(curves)), curves.items(), strict=True):
            for name, (heuristic, dials, first, last) in lines.items():
                sizes = range(first, last + 1)
                values = [validation.worst_case(*heuristic.split(), size=size, **dials).value for size in sizes]
                axes.plot(sizes, [float("nan") if value is None else value for value in values], marker="o", label=name)
            axes.set_xlabel(counted)
            axes.set_ylabel("worst ratio, proven")
            # Below: there is a curve everywhere else.
            axes.legend(fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.13))
        return as_svg(figure)


if __name__ == "__main__":
    main(*sys.argv[1:])
