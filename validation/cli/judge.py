"""Command ``judge``: one number for a heuristic."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from validation.cli import interruption
from validation.cli.app import DISAGREEMENT, AsJson, app, complain, say, say_json
from validation.cli.completion import problem_names

__all__ = ["judge"]


@app.command()
def judge(
    heuristic: Annotated[
        str, typer.Argument(help="A name of the catalogue, module:function or file.py:function.", show_default=False)
    ],
    problem: Annotated[
        str, typer.Option(help="Name of a problem, such as aryl.reclaim.", autocompletion=problem_names)
    ],
    split: Annotated[
        str, typer.Option(help="public; hidden:FILE, drawn from the seed in a file; or hidden:SEED.")
    ] = "public",
    budget: Annotated[float, typer.Option(help="Seconds for an instance, by the clock.")] = 10.0,
    jobs: Annotated[int | None, typer.Option(min=1, help="Instances at once; one for each core by default.")] = None,
    as_json: AsJson = False,
    forget: Annotated[bool, typer.Option("--forget", hidden=True)] = False,
) -> None:
    """Give a heuristic one number. Its plans on a fixed set are compared with proven optima that it cannot reach."""
    kind, _, seed = split.partition(":")
    if kind == "hidden" and seed.isdecimal() and not Path(seed).exists():
        _begin_anew(split, seed)
    from validation.errors import OracleDisagreementError
    from validation.kinds.judge.judging import judge

    interruption.say(lambda: "nothing had been judged")
    try:
        found = judge(heuristic, problem, split=split, budget=budget, jobs=jobs)
    except OracleDisagreementError as error:
        complain(f"oracle disagreement: {error}")
        raise typer.Exit(DISAGREEMENT) from None
    finally:
        if forget:
            Path(seed).unlink()
    if as_json:
        say_json(found.to_dict())
    else:
        say(str(found))


def _begin_anew(split: str, seed: str) -> NoReturn:
    """Start the same command with the seed in a file: heuristics could read this one's arguments and memory."""
    handle, file = tempfile.mkstemp(prefix="optgap-seed-")
    with open(handle, "w", encoding="ascii") as opened:
        opened.write(seed)
    said = [one.replace(split, f"hidden:{file}") for one in sys.orig_argv[1:]]
    os.execv(sys.executable, [sys.executable, *said, "--forget"])
