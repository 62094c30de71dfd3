"""What the page of two studies side by side shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pandas as pd

from validation.formatting import difference_range, gap_range, ratio_range
from validation.kinds.study.compare import Comparison
from validation.kinds.study.results import Study
from validation.pages.render import Cell, Table, render

__all__ = ["page"]

_table = partial(Table.of, rest_in="the JSON of the comparison")


def page(comparison: Comparison) -> str:
    """Write the page."""
    problems = dict.fromkeys([*comparison.exact["problem"], *comparison.heuristics["problem"]])
    return render(
        "comparison.html.j2",
        a=comparison.a.directory,
        alone=_alone(comparison.alone),
        b=comparison.b.directory,
        disagreements=_disagreements(comparison.disagreements),
        pairs=len(comparison.pairs),
        problems={
            problem: {
                "heuristics": _heuristics(comparison.heuristics[comparison.heuristics["problem"] == problem]),
                "exact": _exact(comparison.exact[comparison.exact["problem"] == problem]),
            }
            for problem in problems
        },
        provenance=_provenance(comparison),
    )


def _disagreements(found: pd.DataFrame) -> Table:
    columns = {"problem": "problem", "instance": lambda row: row["instance"][:12], "what cannot be": "why"}
    return _table("Oracle disagreements", found.to_dict("records"), columns, text=columns)


def _heuristics(rows: pd.DataFrame) -> Table:
    def gap(name: str) -> Callable[[Mapping[Any, Any]], Cell]:
        return lambda row: Cell(gap_range(row[f"{name}_low"], row[f"{name}_high"]), row[f"{name}_high"])

    columns: dict[str, Any] = {
        "heuristic": "heuristic",
        "pairs": "pairs",
        "plan in A only": "only_a",
        "in B only": "only_b",
        "not proven": "unproven",
        "gap in A, mean": gap("gap_a_mean"),
        "worst in A": gap("gap_a_worst"),
        "gap in B, mean": gap("gap_b_mean"),
        "worst in B": gap("gap_b_worst"),
        "difference, B less A": lambda row: Cell(
            difference_range(row["difference_low"], row["difference_high"]), row["difference_high"]
        ),
        "95%": lambda row: Cell(difference_range(row["low"], row["high"]), row["low"]),
        "B better": "better",
        "same": "same",
        "worse": "worse",
    }
    return _table("Heuristics", rows.to_dict("records"), columns, text=("heuristic",))


def _exact(rows: pd.DataFrame) -> Table:
    columns: dict[str, Any] = {
        "instances of both": "instances",
        "proven in both": "both",
        "in A only": "only_a",
        "in B only": "only_b",
        "time, B over A": lambda row: ratio_range(row["ratio"], row["ratio"]),
        "95%": lambda row: ratio_range(row["low"], row["high"]),
    }
    return _table("The exact side", rows.to_dict("records"), columns)


def _alone(found: pd.DataFrame) -> Table:
    columns: dict[str, Any] = {
        "problem": "problem",
        "what": "what",
        "name": lambda row: row["name"][:12] if row["what"] == "instance" else row["name"],
        "in": "study",
    }
    return _table("What only one study has", found.to_dict("records"), columns, text=columns)


def _provenance(comparison: Comparison) -> Table:
    """Say where the numbers come from, and in what the two studies differ."""
    a, b = (_facts(study) for study in (comparison.a, comparison.b))
    pairs = [(name, a.get(name, "–"), b.get(name, "–")) for name in {**a, **b}]
    lines = [[*pair, "" if pair[1] == pair[2] else "differs"] for pair in pairs]
    header = ("what", "A", "B", "differs")
    return Table.of("Versions and machines", lines, header, header, "the studies' metadata.json")


def _facts(study: Study) -> dict[str, str]:
    told: Mapping[str, Any] = study.metadata
    machine = told["machine"]
    return {
        "command": told["command"],
        "commit": told["commit"] or "not in a checkout",
        "machine": f"{machine['processor']}, {machine['cores']} cores, {machine['system']}",
        "finished": "yes" if told["finished"] else f"{told['cells_ended']} of {told['cells']} runs have ended",
        **told["versions"],
    }
