"""Tables for papers: what LaTeX would stumble over is escaped, and no figure looks more exact than it is."""

import math
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from validation.kinds.study.results import summarize
from validation.pages.latex import Table, escape, figure

COMMANDS = (
    "textbackslash",
    "textasciitilde",
    "textasciicircum",
    "textless",
    "textgreater",
    "textbar",
    "infty",
    "mu",
    "times",
)


def stumbles(cell: str) -> str:
    """What is left of a cell when all that LaTeX can read is taken away."""
    plain = re.sub(r"\\[{}$&#%_]", "", cell)
    plain = re.sub(rf"\\({'|'.join(COMMANDS)})(?![a-z])(\{{\}})?", "", plain)
    plain = re.sub(r"\$[-0-9. ]*(10\^\{-?\d+\})?[-0-9. ]*\$", "", plain)
    return "".join(re.findall(r"[\\{}$&#%_~^<>|–∞µ\n]", plain))


@given(st.text(alphabet=st.sampled_from("ab1 \\{}$&#%_~^<>|–∞µ\n"), max_size=12))
def test_text_is_escaped(text: str) -> None:
    assert stumbles(escape(text)) == ""


def test_a_row_does_not_begin_with_what_a_line_break_takes() -> None:
    """After a row's end a ``*`` or a ``[`` would be the line break's own."""
    assert cells(str(Table({"name": ["[mine]", "*"], "less": [-5, 5]}).to_latex()))[1:] == [
        ["{[}mine]", "$-5$"],
        ["{*}", "5"],
    ]


def test_the_escapes_are_needed() -> None:
    assert stumbles("a_b") == "_"
    assert stumbles("50%") == "%"
    assert stumbles(r"\foo{}") == "\\{}"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.0, "0"),
        (0.12345, "0.123"),
        (-0.5, "$-0.5$"),
        (999.4, "999"),
        (999.6, "1000"),
        (-999.6, "$-1000$"),
        (1234.5, "1234"),
        (1e-9, r"$1 \times 10^{-9}$"),
        (1.5e12, r"$1.5 \times 10^{12}$"),
        (math.inf, r"$\infty$"),
        (-math.inf, r"$-\infty$"),
    ],
)
def test_figures(value: float, written: str) -> None:
    assert figure(value) == written
    assert stumbles(written) == ""


SUMMARY = {
    "problem": ["aryl.reclaim", "aryl.reclaim"],
    "heuristic": ["server_fraction", "<lambda>"],
    "gap_mean_high": [0.012345, math.inf],
    "gap_worst_high": [1 / 3, math.nan],
    "failed": [0, 12],
}


def cells(latex: str) -> list[list[str]]:
    """The cells of a ``tabular``, which has the rules of booktabs."""
    begin, top, head, middle, *body, bottom, end = latex.strip().splitlines()
    assert re.fullmatch(r"\\begin\{tabular\}\{[lr]+\}", begin)
    assert (top, middle, bottom, end) == (r"\toprule", r"\midrule", r"\bottomrule", r"\end{tabular}")
    lines = [head, *body]
    assert all(line.endswith(r" \\") for line in lines)
    found = [re.split(r"(?<!\\)&", line.removesuffix(r" \\")) for line in lines]
    assert {len(line) for line in found} == {len(begin.rpartition("{")[2]) - 1}
    return [[cell.strip() for cell in line] for line in found]


def test_a_table_is_one_that_latex_reads() -> None:
    found = cells(str(Table(SUMMARY).to_latex()))
    assert found == [
        ["problem", "heuristic", r"gap\_mean\_high", r"gap\_worst\_high", "failed"],
        ["aryl.reclaim", r"server\_fraction", "0.0123", "0.333", "0"],
        ["aryl.reclaim", r"\textless{}lambda\textgreater{}", r"$\infty$", "--", "12"],
    ]
    assert all(stumbles(cell) == "" for line in found for cell in line)


def test_what_is_cut_out_of_a_table_is_one() -> None:
    table = Table(SUMMARY)
    part = table[table["failed"] > 0].set_index("heuristic")[["gap_mean_high"]]
    latex = str(part.to_latex())
    assert r"\textless{}lambda\textgreater{} & $\infty$ \\" in latex
    both = str(table.set_index(["problem", "heuristic"]).to_latex(columns=["failed"]))
    assert r"\textless{}lambda\textgreater{} & 12 \\" in both
    assert cells(str(table.to_latex(columns=["heuristic", "gap_mean_high"], float_format="%.1f")))[1][1] == "0.0"
    captioned = str(table.to_latex(caption="Gaps", label="tab:gaps", column_format="lllll", na_rep="none"))
    assert r"\caption{Gaps}" in captioned
    assert "none" in captioned
    assert r"\begin{tabular}{lllll}" in captioned


def test_a_summary_is_such_a_table() -> None:
    rows = pd.DataFrame(
        {
            "problem": "aryl.reclaim",
            "source": "generated",
            "size": 4,
            "algorithm": ["exact", "server_fraction"],
            "exact_status": "optimal",
            "status": ["optimal", "feasible"],
            **{name: [np.nan, 0.25] for name in ("gap_low", "gap_high", "difference_low", "difference_high")},
            "seconds": 0.001,
            "exact_seconds": 0.1,
            "disagreement": False,
        }
    )
    head, row = cells(str(summarize(rows).to_latex()))
    assert dict(zip(head, row, strict=True))[r"gap\_worst\_high"] == "0.25"
    assert r"server\_fraction" in row
