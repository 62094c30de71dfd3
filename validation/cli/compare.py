"""The command ``compare``: two studies side by side, or the heuristics of one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from validation.cli import interruption
from validation.cli.app import DISAGREEMENT, AsJson, app, complain, console, say, say_json, text
from validation.errors import StudyError
from validation.formatting import difference_range, gap_range, ratio_range

if TYPE_CHECKING:
    from rich.table import Table

    from validation.kinds.study.compare import Comparison
    from validation.kinds.study.pairs import SideBySide

__all__ = ["compare"]

MOST_TOLD = 20
"""Oracle disagreements on the terminal."""
WIDEST = 10_000
"""Characters of a line, of which a table takes as many as it needs."""
READING = (
    "B less A: difference of the gaps in percentage points, below 0 where B is better; B over A: ratio of the values.\n"
    "The intervals of a problem hold together at 95%."
)


@app.command()
def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="Directory of the study that is compared with.")],
    b: Annotated[
        Path | None,
        typer.Argument(
            metavar="B",
            help="Directory of the study that is compared; without it the heuristics of A are, two by two.",
        ),
    ] = None,
    heuristic: Annotated[
        list[str] | None, typer.Option("--heuristic", help="Of one study, only these; two or more, all by default.")
    ] = None,
    as_json: AsJson = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Also write one HTML file, of two studies.")
    ] = None,
) -> None:
    """Compare two studies run by run, or the heuristics of one. Only what was run on the same instances is compared."""
    interruption.say(lambda: "nothing had been compared")
    if b is None:
        if output is not None:
            raise StudyError("output: a page is of two studies; the report of one has its comparisons")
        _one(a, heuristic or [], as_json)
        return
    if heuristic:
        raise StudyError("heuristic: of one study; two are compared by all heuristics that both have")
    _two(a, b, output, as_json)


def _one(directory: Path, heuristics: Sequence[str], as_json: bool) -> None:
    """Compare the heuristics of one study."""
    from validation.kinds.study.results import Study

    found = Study.load(directory, complain).compare(*heuristics)
    if as_json:
        say_json(found.to_dict())
    else:
        _print_pairs(found)
    if found.wrong:
        complain(f"oracle disagreements on {found.wrong:,} instances, which are in no number: see the study's report")
        raise typer.Exit(DISAGREEMENT)


def _print_pairs(found: SideBySide) -> None:
    out, overview = console(), found.overview()
    for problem, mine in overview.groupby("problem", sort=False):
        names = [str(name) for name in overview if name != "problem"]
        shown = _table(str(problem), names, left=("A", "B", "so"))
        for row in mine.to_dict("records"):
            shown.add_row(*(text(str(row[name])) for name in names))
        out.width = max(out.width, out.measure(shown, options=out.options.update(width=WIDEST)).maximum)
        out.print(shown)
    out.print(text(READING), soft_wrap=True)


def _two(a: Path, b: Path, output: Path | None, as_json: bool) -> None:
    """Compare two studies."""
    from instances.files import write_whole
    from validation.kinds.study.compare import compare_studies
    from validation.outputs import try_file, writing

    if output is not None:
        try_file(output)
    found = compare_studies(a, b, warn=complain)
    if as_json:
        say_json(found.to_dict())
    else:
        _print(found)
    if output is not None:
        from validation.kinds.study.comparison import page

        with writing(output):
            write_whole(output, page(found))
        if not as_json:
            say(f"page: {output}")
    wrong = found.disagreements.to_dict("records")
    for row in wrong[:MOST_TOLD]:
        complain(f"oracle disagreement: {row['problem']}, instance {row['instance'][:12]}: {row['why']}")
    if len(wrong) > MOST_TOLD:
        complain(f"and {len(wrong) - MOST_TOLD:,} more oracle disagreements")
    if wrong:
        raise typer.Exit(DISAGREEMENT)


def _print(found: Comparison) -> None:
    out = console()
    for name, study in (("A", found.a), ("B", found.b)):
        told = study.metadata
        solvers = ", ".join(f"{one} {told['versions'][one]}" for one in told["versions"])
        machine = f"{told['machine']['processor']}, {told['machine']['cores']} cores"
        unfinished = "" if told["finished"] else f"; unfinished: {told['cells_ended']} of {told['cells']} runs"
        out.print(text(f"{name}  {study.directory}: {solvers}; {machine}{unfinished}"), soft_wrap=True)
    for problem, mine in found.heuristics.groupby("problem", sort=False):
        columns = ["pairs", "only A", "only B", "gap A", "worst", "gap B", "worst", "B less A", "95%"]
        shown = _table(str(problem), ["heuristic", *columns, "better", "same", "worse"])
        for row in mine.to_dict("records"):
            gaps = [
                gap_range(row[f"gap_{side}_{kind}_low"], row[f"gap_{side}_{kind}_high"])
                for side in "ab"
                for kind in ("mean", "worst")
            ]
            shown.add_row(
                text(str(row["heuristic"])),
                *(str(row[name]) for name in ("pairs", "only_a", "only_b")),
                *gaps,
                difference_range(row["difference_low"], row["difference_high"]),
                difference_range(row["low"], row["high"]),
                *(str(row[name]) for name in ("better", "same", "worse")),
            )
        out.print(shown)
    if len(found.exact):
        columns = ["instances", "proven in both", "only A", "only B", "time B / A", "95%"]
        shown = _table("the exact side", ["problem", *columns])
        for row in found.exact.to_dict("records"):
            shown.add_row(
                text(str(row["problem"])),
                *(str(row[name]) for name in ("instances", "both", "only_a", "only_b")),
                ratio_range(row["ratio"], row["ratio"]),
                ratio_range(row["low"], row["high"]),
            )
        out.print(shown)
    for (where, what), mine in found.alone.groupby(["study", "what"], sort=False):
        names = [] if what == "instance" else list(dict.fromkeys(mine["name"]))
        listed = f": {', '.join(names)}" if names else ""
        out.print(text(f"only in {where}: {len(mine):,} {what}{'s' * (len(mine) > 1)}{listed}"), soft_wrap=True)


def _table(title: str, header: list[str], left: Sequence[str] = ()) -> Table:
    from rich.table import Table

    made = Table(title=text(title, "italic"), title_justify="left", box=None, pad_edge=False)
    for number, name in enumerate(header):
        made.add_column(name, justify="right" if number and name not in left else "left", no_wrap=True)
    return made
