"""``python -m benchmarks.collection``: draw, solve and prove what the collection lacks.

What is there already stays as it is, so that a run that was stopped is taken up where it was.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from pathlib import Path
from typing import Annotated

import typer

from benchmarks import chosen
from benchmarks.collection.making import again, ask, certify, prove, solve
from benchmarks.collection.recipe import RECIPE, draws
from validation.kinds.collection.store import Collection, place

__all__ = ["app", "main"]

LARGEST = 120_000
"""Characters of an instance's JSON."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def main(
    data: Annotated[Path, typer.Option(envvar="SCHEDULING_DATA", help="Folder of public data (docs/data.md).")],
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Problems, or papers: aryl.reclaim, gavel. All else."),
    ] = None,
    folder: Annotated[Path | None, typer.Option("--collection", help="Where the collection is.")] = None,
    kinds: Annotated[str, typer.Option(help="Letters of the kinds of draws.")] = "xgptsrqwh",
    most: Annotated[int | None, typer.Option(min=1, help="Draws of each kind; all else.")] = None,
    proofs: Annotated[
        float, typer.Option(min=0, help="Processor time of each search that may prove a bound, s; 0 for no proofs.")
    ] = 1.0,
    prices: Annotated[float, typer.Option(min=1, help="Processor time in which prices must be found, s.")] = 10.0,
    heuristics: Annotated[bool, typer.Option("--heuristics", help="Ask the heuristics of all records again.")] = False,
    certificates: Annotated[
        float, typer.Option(min=0, help="Time to certify each bound that rests on runs, s; 0 for no certificates.")
    ] = 0.0,
    longer: Annotated[float, typer.Option(min=0, help="Try instances that are open for so long, s; 0 for not.")] = 0.0,
) -> None:
    """Draw, solve and prove what the collection lacks."""
    collection = Collection(place(folder).absolute())
    asked = chosen(RECIPE, names)
    if not asked:
        raise typer.BadParameter(f"got {', '.join(names or [])}, must be problems or papers")
    # Warnings are about what was repaired, which the instances tell.
    warnings.simplefilter("ignore")
    with contextlib.chdir(data):
        for problem in asked:
            began = time.monotonic()
            _draw(collection, problem, kinds, most)
            mine = [name for name, record in collection.records.items() if record["problem"] == problem]
            changed = sum(ask(collection, name) for name in mine) if heuristics else 0
            done = [prove(collection, name, seconds=proofs, pricing=prices) for name in mine] if proofs else []
            for name in mine if certificates else []:
                said = certify(collection, name, seconds=certificates)
                if said:
                    print(f"{name}: {said}", flush=True)
            for name in mine if longer else []:
                if collection.record(name)["class"] == "open":
                    again(collection, name, seconds=longer)
            told = ", ".join(f"{done.count(kind)} {kind}" for kind in dict.fromkeys(done))
            told += f"; {changed} with other values of heuristics" if changed else ""
            print(f"{problem}: {len(mine)} ({told}), {time.monotonic() - began:.0f} s", flush=True)


def _draw(collection: Collection, problem: str, kinds: str, most: int | None) -> None:
    known = {record["digest"] for record in collection.records.values()}
    for draw in draws(problem):
        letter, number = draw.name.rpartition("-")[2][0], int(draw.name.rpartition("-")[2][1:])
        if letter not in kinds or (most is not None and number >= most) or draw.name in collection.records:
            continue
        instance = draw.make()
        if instance is None or instance.digest in known:
            continue
        if len(str(instance.to_dict())) > LARGEST:
            print(f"{draw.name}: too large")
        elif solve(collection, draw, instance):
            known.add(instance.digest)
        else:
            print(f"{draw.name}: no plan")


if __name__ == "__main__":
    app(prog_name="python -m benchmarks.collection")
