"""Commands ``judge``: one number for a heuristic, and what is made of such numbers."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

import typer

from validation.cli import interruption
from validation.cli.app import DISAGREEMENT, AsJson, app, complain, say, say_json
from validation.cli.help import App
from validation.cli.options import with_options
from validation.kinds.options import JudgeOptions

__all__ = ["judge"]

judge_app = App(help="Give a heuristic one number, against proven optima that it cannot reach.")
app.add_typer(judge_app, name="judge")
# Without the name of another command, ``optgap judge`` is the one that judges.


@judge_app.command()
@with_options(JudgeOptions)
def judge(
    options: JudgeOptions,
    as_json: AsJson = False,
) -> None:
    """Give a heuristic one number. Its plans on a fixed set are compared with proven optima that it cannot reach."""
    kind, _, seed = options.split.partition(":")
    if kind == "hidden" and seed.isascii() and seed.isdecimal() and len(seed) < 4000 and not Path(seed).exists():
        _begin_anew(options.split, seed)
    from validation.errors import OracleDisagreementError
    from validation.kinds.judge.judging import judge

    interruption.say(lambda: "nothing had been judged")
    try:
        found = judge(**vars(options))
    except OracleDisagreementError as error:
        complain(f"oracle disagreement: {error}")
        raise typer.Exit(DISAGREEMENT) from None
    if as_json:
        say_json(found.to_dict())
    else:
        say(str(found))


def _begin_anew(split: str, seed: str) -> NoReturn:
    """Start the same command with the seed in a pipe: heuristics could read this one's arguments and memory.

    Whoever reads the pipe first, the process that draws the instances, leaves nothing in it.
    """
    reading, writing = os.pipe()
    os.set_inheritable(reading, True)
    with open(writing, "w", encoding="ascii") as pipe:
        pipe.write(seed)
    said = [one.replace(split, f"hidden:/proc/{os.getpid()}/fd/{reading}") for one in sys.orig_argv[1:]]
    interruption.begin_anew(sys.executable, [sys.executable, *said])
