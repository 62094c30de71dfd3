"""Commands ``bench``: what the library itself costs; the measurements are those of ``benchmarks/`` in the checkout."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from validation.cli.app import AsJson, app, console, say_json
from validation.cli.help import App
from validation.errors import StudyError
from validation.formatting import duration

__all__ = ["gavel", "overhead"]

bench_app = App(help="Benchmarks of the library itself.")
app.add_typer(bench_app, name="bench")


def _benchmarks(module: str) -> ModuleType:
    try:
        return import_module(f"benchmarks.{module}")
    except ModuleNotFoundError:
        raise StudyError("benchmarks/ is part of a checkout of the library, and this is none") from None


@bench_app.command()
def overhead(
    repeats: Annotated[int, typer.Option(min=1, help="Timed repetitions of each side.")] = 7,
    as_json: AsJson = False,
) -> None:
    """Time whole solves against handing HiGHS the same arrays."""

    def cells(row: Any) -> tuple[str, ...]:
        return str(row.jobs), duration(row.whole), duration(row.raw), f"{row.ratio:.2f}", f"{row.limit:.2f}"

    head = ("jobs", "whole", "HiGHS on the arrays", "ratio", "at most")
    _show(_benchmarks("overhead").overhead(repeats), head, cells, as_json)


@bench_app.command()
def gavel(
    repeats: Annotated[int, typer.Option(min=1, help="Timed repetitions of each side.")] = 5,
    throughputs: Annotated[Path | None, typer.Option(help="Published throughput table.")] = None,
    trace: Annotated[Path | None, typer.Option(help="Published trace.")] = None,
    as_json: AsJson = False,
) -> None:
    """Time Gavel's policies, against HiGHS on the same arrays where there is one program."""

    def cells(row: Any) -> tuple[str, ...]:
        limit = f"{row.limit:.2f}" if row.ratio is not None else duration(row.limit)
        return row.what, duration(row.seconds), "" if row.ratio is None else f"{row.ratio:.2f}", limit

    files = {"throughputs": str(throughputs), "trace": str(trace)} if throughputs and trace else {}
    _show(_benchmarks("gavel").gavel(repeats, **files), ("what", "whole", "ratio", "at most"), cells, as_json)


def _show(rows: Iterable[Any], head: Sequence[str], cells: Callable[[Any], tuple[str, ...]], as_json: bool) -> None:
    if as_json:
        say_json([asdict(row) for row in rows])
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in head:
        table.add_column(name, justify="left" if name == "what" else "right")
    for row in rows:
        table.add_row(*cells(row))
    console().print(table)
