"""``python -m benchmarks NAME``: compute tables of the documents anew; without a name, list them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from benchmarks import (
    certifying,
    chosen,
    dask_overhead,
    fronts,
    gavel,
    judge,
    mutants,
    never_behind,
    overhead,
    peers,
    planted,
)
from benchmarks.tables import BENCHMARKS, Broken, Setup, machine, markdown
from validation.catalogue import CATALOGUE

__all__ = ["MODULES", "app", "main"]

MODULES = (overhead, certifying, dask_overhead, fronts, gavel, mutants, never_behind, peers, planted, judge)
"""What enters the benchmarks that are no data."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def main(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="A table, or all whose names begin so: aryl.reclaim, gavel."),
    ] = None,
    quick: Annotated[bool, typer.Option(help="The smallest size of each table only.")] = False,
    limit: Annotated[float | None, typer.Option(min=0, help="Limit of each proof, s; each table's own else.")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Runs of which the median counts.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Of the mutants that are drawn.")] = 0,
    count: Annotated[int | None, typer.Option(min=1, help="Instances of each size, in tables over problems.")] = None,
    problem: Annotated[
        list[str] | None, typer.Option(help="Problems, or papers, of tables over problems; all else. May be repeated.")
    ] = None,
    most: Annotated[int | None, typer.Option(min=1, help="Sizes of tables over problems at most; all else.")] = None,
    kept: Annotated[Path, typer.Option(help="Where measurements of tables that take long are kept.")] = Path("results"),
    docs: Annotated[Path | None, typer.Option(help="Folder of documents, whose pages fronts writes.")] = None,
    data: Annotated[
        Path | None,
        typer.Option(envvar="SCHEDULING_DATA", help="Folder of public data (docs/data.md), for the rows that need it."),
    ] = None,
) -> None:
    """Compute tables of the documents anew; without a name, list them."""
    if not names:
        width = max(map(len, BENCHMARKS))
        for name, found in BENCHMARKS.items():
            print(f"{name:{width}}  {found.summary}")
        return
    wanted = [name for name in BENCHMARKS if any(f"{name}.".startswith(f"{asked}.") for asked in names)]
    for asked in names:
        if not any(f"{name}.".startswith(f"{asked}.") for name in wanted):
            raise typer.BadParameter(f"got {asked}, must be one of those that `python -m benchmarks` lists, or a part")
    if problem and not chosen(CATALOGUE, problem):
        raise typer.BadParameter(f"got {', '.join(problem)}, must be problems or papers")
    setup = Setup(
        quick, limit, repeats, data, seed=seed, count=count, problems=problem, most=most, kept=kept, docs=docs
    )
    broken = ""
    for name in wanted:
        print(f"\n{name}: {BENCHMARKS[name].summary}\n", flush=True)
        try:
            for line in markdown(BENCHMARKS[name], setup):
                print(line, flush=True)
        except Broken as found:
            broken = f"{name}: {found}"
    print(f"\n{machine()}")
    if broken:
        typer.echo(broken, err=True)
        raise typer.Exit(1)


if __name__ == "__main__":
    app(prog_name="python -m benchmarks")
