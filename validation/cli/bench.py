"""Commands ``bench``: what the library itself costs; the measurements are those of ``benchmarks/`` in the checkout."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer
from rich.table import Table

from validation.cli.app import app, console
from validation.errors import StudyError
from validation.formatting import duration

__all__ = ["gavel", "overhead"]

bench_app = typer.Typer(help="Benchmarks of the library itself.")
app.add_typer(bench_app, name="bench")


def _benchmarks(module: str) -> ModuleType:
    try:
        return import_module(f"benchmarks.{module}")
    except ModuleNotFoundError:
        raise StudyError("benchmarks/ is part of a checkout of the library, and this is none") from None


@bench_app.command()
def overhead(
    repeats: Annotated[int, typer.Option(min=1, help="Timed repetitions of each side.")] = 7,
) -> None:
    """Whole time of a solve against handing HiGHS the same arrays."""
    table = Table(box=None, pad_edge=False)
    for name in ("jobs", "whole", "HiGHS on the arrays", "ratio", "at most"):
        table.add_column(name, justify="right")
    for row in _benchmarks("overhead").overhead(repeats):
        table.add_row(str(row.jobs), duration(row.whole), duration(row.raw), f"{row.ratio:.2f}", f"{row.limit:.2f}")
    console().print(table)


@bench_app.command()
def gavel(
    repeats: Annotated[int, typer.Option(min=1, help="Timed repetitions of each side.")] = 5,
    throughputs: Annotated[Path | None, typer.Option(help="Published throughput table.")] = None,
    trace: Annotated[Path | None, typer.Option(help="Published trace.")] = None,
) -> None:
    """Times of Gavel's policies, against HiGHS on the same arrays where there is one program."""
    table = Table(box=None, pad_edge=False)
    for name in ("what", "whole", "ratio", "at most"):
        table.add_column(name, justify="left" if name == "what" else "right")
    files = {"throughputs": str(throughputs), "trace": str(trace)} if throughputs and trace else {}
    for row in _benchmarks("gavel").gavel(repeats, **files):
        limit = f"{row.limit:.2f}" if row.ratio is not None else duration(row.limit)
        table.add_row(row.what, duration(row.seconds), "" if row.ratio is None else f"{row.ratio:.2f}", limit)
    console().print(table)
