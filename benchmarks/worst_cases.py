"""``python -m benchmarks.worst_cases [PAPER]``: the table and the picture of docs/worst-cases.md, and its witnesses.

Each row is one proof, of which every program is searched a second way, too.  Times are processor times of this
process, which are those of the proof: heuristics run in processes of their own.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import validation
from validation.catalogue import load
from validation.kinds.worst_case import WorstCase
from validation.pages.drawing import as_svg, own_style

__all__ = ["CASES", "CURVES", "main"]

DOCS = Path(__file__).parents[1] / "docs"
EXAMPLE = "examples/worst_case/identical_machines.py"

LPT = ("demo.identical_machines", "longest_first")
ROUNDS = ("gavel.round_assignment", "greedy_priority")
TOTAL = ("gavel.total_throughput", "fastest_first")
FAIR = "gavel.max_min_fairness"
FRACTION = ("aryl.reclaim", "server_fraction")
COUNT = ("aryl.reclaim", "smallest_count_first")
PACKING = ("aryl.placement", "best_fit_decreasing")
KNAPSACK = ("aryl.elastic_allocation", "marginal_greedy")
FILLING = ("elasticflow.minimum_satisfactory_share", "progressive_filling")
PAIR = ("afs.two_job", "pairwise_rule")
SHORTER = ("afs.two_job", "shorter_first")
TUNE = ("synergy.tuning", "tune")

Case = tuple[tuple[str, str], int, dict[str, Any]]

CASES: tuple[Case, ...] = (
    (LPT, 5, {"num_machines": 2}),
    (LPT, 7, {"num_machines": 3}),
    (ROUNDS, 3, {"num_workers": 4}),
    (ROUNDS, 5, {"num_workers": 4}),
    (ROUNDS, 8, {"num_workers": 4}),
    (ROUNDS, 6, {"num_workers": 4, "widest": 2}),
    (ROUNDS, 8, {"num_workers": 8, "widest": 4}),
    (ROUNDS, 4, {"num_workers": 2, "num_types": 2}),
    (ROUNDS, 5, {"num_workers": 3, "num_types": 2}),
    (TOTAL, 2, {}),
    (TOTAL, 3, {"num_types": 3}),
    (TOTAL, 2, {"spread": 10}),
    (TOTAL, 3, {"num_types": 3, "spread": 10}),
    (TOTAL, 4, {"num_workers": 2, "spread": 10}),
    ((FAIR, "isolated"), 2, {"num_workers": 1}),
    ((FAIR, "isolated"), 3, {"num_workers": 1}),
    ((FAIR, "isolated"), 6, {"num_types": 3}),
    ((FAIR, "isolated"), 4, {"num_workers": 4, "widest": 4}),
    ((FAIR, "heterogeneity_agnostic"), 4, {"num_workers": 4, "widest": 4}),
    ((FAIR, "heterogeneity_agnostic"), 6, {"num_types": 3}),
    ((FAIR, "equal_share"), 4, {}),
    ((FAIR, "equal_share"), 4, {"num_workers": 4, "widest": 4}),
    ((FAIR, "equal_share"), 3, {"num_workers": 4, "widest": 4}),
    (FRACTION, 3, {}),
    (FRACTION, 6, {}),
    (FRACTION, 8, {}),
    (FRACTION, 5, {"demand": 3}),
    (FRACTION, 8, {"demand": 3}),
    (COUNT, 4, {}),
    (COUNT, 8, {"demand": 3}),
    (PACKING, 2, {}),
    (PACKING, 4, {}),
    (PACKING, 128, {}),
    (PACKING, 12, {"server_gpus": 7}),
    (KNAPSACK, 2, {"capacity": 8}),
    (KNAPSACK, 2, {"capacity": 12}),
    (KNAPSACK, 3, {"capacity": 12}),
    (KNAPSACK, 3, {}),
    (KNAPSACK, 4, {"capacity": 24}),
    (FILLING, 3, {}),
    (FILLING, 5, {}),
    (FILLING, 3, {"num_gpus": 3}),
    (FILLING, 3, {"num_jobs": 2}),
    (PAIR, 4, {}),
    (PAIR, 8, {}),
    (PAIR, 8, {"max_speedup": 2}),
    (PAIR, 8, {"apathetic": True}),
    (SHORTER, 8, {}),
    (SHORTER, 8, {"max_speedup": 2}),
    (TUNE, 3, {}),
    (TUNE, 4, {}),
    (TUNE, 8, {}),
)
"""Heuristic, size and dials of each row."""

Curve = tuple[tuple[str, str], dict[str, Any], range]

CURVES: dict[str, dict[str, Curve]] = {
    "jobs": {
        "longest_first, 2 machines": (LPT, {"num_machines": 2}, range(2, 8)),
        "greedy_priority, 4 workers": (ROUNDS, {"num_workers": 4}, range(2, 9)),
        "greedy_priority, at most 2 of 4 workers": (ROUNDS, {"num_workers": 4, "widest": 2}, range(2, 9)),
        "fastest_first, 2 types, within a factor of 10": (TOTAL, {"spread": 10}, range(2, 6)),
        "isolated, 2 types of 1 worker": ((FAIR, "isolated"), {"num_workers": 1}, range(2, 9)),
        "tune, 3 cores a GPU": (TUNE, {}, range(2, 9)),
    },
    "servers, slots, or iterations/s": {
        "server_fraction, servers, 2 to return": (FRACTION, {}, range(3, 9)),
        "smallest_count_first, servers, 2 to return": (COUNT, {}, range(3, 9)),
        "best_fit_decreasing, servers of 8 GPUs": (PACKING, {}, range(1, 7)),
        "progressive_filling, slots of 2 GPUs": (FILLING, {}, range(2, 6)),
        "pairwise_rule, iterations/s": (PAIR, {}, range(2, 7)),
        "shorter_first, iterations/s": (SHORTER, {}, range(2, 7)),
    },
}
"""Lines of the pictures, by what their sizes count: what they are called, heuristic, dials and sizes."""


def main(paper: str | None = None) -> None:
    """Print the rows, and write witnesses and, of all papers, the picture."""
    load(EXAMPLE)
    print("| heuristic | size | instances | worst ratio | witness | proof | processor s | command |")
    print("| --- | ---: | --- | ---: | --- | --- | ---: | --- |")
    for heuristic, size, dials in CASES:
        if paper is None or heuristic[0].startswith(f"{paper}."):
            print(f"| {' | '.join(_row(heuristic, size, dials))} |", flush=True)
    if paper is None:
        (DOCS / "worst-cases.svg").write_text(_picture(), encoding="utf-8")


def _row(heuristic: tuple[str, str], size: int, dials: dict[str, Any]) -> Iterator[str]:
    began = time.process_time()
    found = validation.worst_case(*heuristic, size=size, verify=True, **dials)
    spent = time.process_time() - began
    path = found.save(DOCS / "worst-cases")
    path.with_suffix(".html").unlink()
    load_ = f"--load {EXAMPLE} " if heuristic is LPT else ""
    fixed = "".join(f" --fix {name}={str(value).lower()}" for name, value in dials.items())
    yield f"`{heuristic[0]}` `{heuristic[1]}`"
    yield str(size)
    yield found.instances
    yield worst(found)
    witness: Any = found.witness
    yield f"[{witness.num_jobs} jobs](worst-cases/{path.name})"
    yield found.proof
    yield f"{spent:.2g}"
    yield f"`optgap {load_}worst-case {' '.join(heuristic)} --size {size}{fixed}`"


def worst(found: WorstCase) -> str:
    """The worst ratio as a fraction where there is a small one, or the interval that it lies in."""
    if found.value is None or found.status != "optimal":
        return f"{found.value or 1:.6g} to {found.bound:.6g}"
    near = Fraction(found.value).limit_denominator(100)
    return str(near) if abs(near - found.value) < 1e-6 else f"{found.value:.6g}"


def _picture() -> str:
    with own_style({}, salt="worst cases"):
        from matplotlib.figure import Figure

        figure = Figure(figsize=(10.0, 5.6), layout="constrained")
        for axes, (counted, curves) in zip(figure.subplots(1, len(CURVES)), CURVES.items(), strict=True):
            for name, (heuristic, dials, sizes) in curves.items():
                values = [validation.worst_case(*heuristic, size=size, **dials).value for size in sizes]
                axes.plot(sizes, [float("nan") if value is None else value for value in values], marker="o", label=name)
            axes.set_xlabel(counted)
            axes.set_ylabel("worst ratio, proven")
            # Below: there is a curve everywhere else.
            axes.legend(fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.13))
        return as_svg(figure)


if __name__ == "__main__":
    main(*sys.argv[1:])
