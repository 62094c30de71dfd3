"""Two studies side by side as one HTML page that asks the network for nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from validation.formatting import difference_range, gap_range, ratio_range
from validation.study.compare import Comparison
from validation.study.page import Cell, document, escape, section, table
from validation.study.results import Study

__all__ = ["page"]

_READING = """
<p>A <b>pair</b> is a heuristic on an instance with a feasible plan in both studies. Both plans are judged against what
the two studies together know of the optimum. Where it is not proven, gaps and their difference are intervals, shown as
“a to b”: over all optima that are possible.</p>
<p>The <b>difference</b> is the mean gap of B less that of A, in percentage points: below 0, B is better. <b>95%</b> is
the interval of a bootstrap over the pairs, from the lower end for the least of the differences to the upper end for the
greatest; where it holds 0, these instances do not tell which is better. <b>Better</b>, <b>same</b> and <b>worse</b>
count the pairs by the values of the plans, which are exact whether or not the optimum is proven.</p>"""


def page(comparison: Comparison) -> str:
    """The page."""
    problems = list(dict.fromkeys([*comparison.exact["problem"], *comparison.heuristics["problem"]]))
    a, b = escape(comparison.a.directory), escape(comparison.b.directory)
    body = f"""<h1>Two studies side by side</h1>
{_verdict(comparison)}
<dl><dt>A</dt><dd>{a}</dd><dt>B</dt><dd>{b}</dd></dl>
<details><summary>How to read the numbers</summary>{_READING}</details>
{_disagreements(comparison)}
{"".join(_problem(comparison, problem) for problem in problems)}
{_alone(comparison)}
{_provenance(comparison)}"""
    return document(f"{comparison.a.directory.name} and {comparison.b.directory.name} side by side", body)


def _verdict(comparison: Comparison) -> str:
    said = f"{len(comparison.pairs):,} pairs of runs."
    wrong = len(comparison.disagreements)
    if not wrong:
        good = "No oracle disagreement: nothing that one proved is refuted by the other."
        return f'<p class="good">{good}</p><p>{said}</p>'
    return f'<p class="bad">{wrong} oracle disagreement{"s" * (wrong > 1)}: see below.</p><p>{said}</p>'


def _disagreements(comparison: Comparison) -> str:
    found = comparison.disagreements
    if found.empty:
        return ""
    lines = [[row["problem"], row["instance"][:12], row["why"]] for row in found.to_dict("records")]
    shown = table(
        ["problem", "instance", "what cannot be"],
        lines,
        name="Oracle disagreements",
        text_columns=(0, 1, 2),
        rest_in="the JSON of the comparison",
    )
    note = "<p>A model, a bound or a judge is wrong. These instances are in none of the numbers below.</p>"
    return section("Oracle disagreements", note + shown, id="disagreements")


def _problem(comparison: Comparison, problem: str) -> str:
    mine, exact = (each[each["problem"] == problem] for each in (comparison.heuristics, comparison.exact))
    content = (_heuristics(mine) if len(mine) else "") + (_exact(exact) if len(exact) else "")
    return section(problem, content, id=problem)


def _heuristics(rows: pd.DataFrame) -> str:
    header = [
        *("heuristic", "pairs", "plan in A only", "in B only", "not proven"),
        *("gap in A, mean", "worst in A", "gap in B, mean", "worst in B", "difference, B less A", "95%"),
        *("B better", "same", "worse"),
    ]
    lines = []
    for row in rows.to_dict("records"):
        gaps = [
            Cell(
                gap_range(row[f"gap_{side}_{kind}_low"], row[f"gap_{side}_{kind}_high"]), row[f"gap_{side}_{kind}_high"]
            )
            for side in "ab"
            for kind in ("mean", "worst")
        ]
        difference = Cell(difference_range(row["difference_low"], row["difference_high"]), row["difference_high"])
        lines.append(
            [
                row["heuristic"],
                *(str(row[name]) for name in ("pairs", "only_a", "only_b", "unproven")),
                *gaps,
                difference,
                Cell(difference_range(row["low"], row["high"]), row["low"]),
                *(str(row[name]) for name in ("better", "same", "worse")),
            ]
        )
    return table(header, lines, name="Heuristics", text_columns=(0,), rest_in="the JSON of the comparison")


def _exact(rows: pd.DataFrame) -> str:
    header = ["instances of both", "proven in both", "in A only", "in B only", "time, B over A", "95%"]
    lines = [
        [
            *(str(row[name]) for name in ("instances", "both", "only_a", "only_b")),
            ratio_range(row["ratio"], row["ratio"]),
            ratio_range(row["low"], row["high"]),
        ]
        for row in rows.to_dict("records")
    ]
    shown = table(header, lines, name="The exact side", text_columns=(), rest_in="the JSON of the comparison")
    said = "Times are those of instances that both solved to the end, and their ratio is the geometric mean."
    return f"<h3>The exact side</h3><p>{said}</p>{shown}"


def _alone(comparison: Comparison) -> str:
    found = comparison.alone
    if found.empty:
        return ""
    lines = [
        [row["problem"], row["what"], row["name"][:12] if row["what"] == "instance" else row["name"], row["study"]]
        for row in found.to_dict("records")
    ]
    shown = table(
        ["problem", "what", "name", "in"],
        lines,
        name="What only one study has",
        text_columns=(0, 1, 2, 3),
        rest_in="the JSON of the comparison",
    )
    return section("What only one study has", shown, id="alone")


def _provenance(comparison: Comparison) -> str:
    """Where the numbers come from, and in what the two studies differ."""
    facts = [_facts(study) for study in (comparison.a, comparison.b)]
    names = list(dict.fromkeys(name for each in facts for name in each))
    lines = [
        [name, *(each.get(name, "–") for each in facts), "" if facts[0].get(name) == facts[1].get(name) else "differs"]
        for name in names
    ]
    shown = table(
        ["what", "A", "B", "differs"],
        lines,
        name="Versions and machines",
        text_columns=(0, 1, 2, 3),
        rest_in="the studies' metadata.json",
    )
    return section("Where these numbers come from", shown, id="provenance")


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
