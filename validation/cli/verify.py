"""The command ``verify``: a certificate, checked by the reference in exact fractions."""

from __future__ import annotations

import contextlib
import gzip
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import typer

from validation.cli import interruption
from validation.cli.app import DISAGREEMENT, AsJson, app, complain, say, say_json
from validation.cli.options import with_options
from validation.errors import StudyError
from validation.kernel.options import Options, option
from validation.outputs import try_file, writing

__all__ = ["verify"]


@dataclass(frozen=True, kw_only=True)
class VerifyOptions(Options):
    """Which certificate, and of what."""

    file: Path = option("Certificate, perhaps packed by gzip.", (str,), required="a file", argument=True, paths=True)
    instance: Path | None = option("Instance that it is to be of, as JSON.", (str,), paths=True)
    complete: Path | None = option(
        "File for it as version 1.0, for other checkers, where it is a short one.", (str,), paths=True
    )
    most: int | None = option(
        "Characters that it may have, unpacked, and twice the words that may be kept of it; else 50,000,000.",
        (int,),
        least=1,
    )


@app.command()
@with_options(VerifyOptions)
def verify(options: VerifyOptions, as_json: AsJson = False) -> None:
    """Check a certificate of an optimum, or that there is no plan, in exact fractions, without any solver.

    Where an instance is given whose program the checker states by itself, the certificate must be of that program.
    """
    from instances.files import load, text_of
    from instances.reference import Malformed, Reference, vipr
    from instances.reference.stated import STATED

    interruption.say(lambda: "nothing had been verified")
    if options.complete is not None:
        try_file(options.complete)
    reference: Reference | None = None
    of = "the program that the file states, whatever it is of"
    if options.instance is not None:
        instance = load(options.instance)
        of = f"{instance.problem}, {instance.digest}"
        if instance.problem not in STATED:
            known = ", ".join(STATED)
            raise StudyError(f"the checker states no program of {instance.problem} by itself, only of {known}")
        reference = Reference(text_of(instance))
    most = options.most or vipr.MOST
    try:
        with opened(options.file) as file:
            proven = vipr.check(vipr.pieces(file), most)
        bound: Any = proven.bound if reference is None else reference.certified(proven)
        if options.complete is not None:
            with opened(options.file) as file:
                text = vipr.completed(file.read(), most)
            with writing(options.complete):
                options.complete.write_text(text, encoding="utf-8")
    except Malformed as error:
        raise StudyError(f"{options.file}: {error}") from None
    except vipr.Refuted as error:
        if as_json:
            say_json({"verdict": "refuted", "message": str(error)})
        complain(f"{options.file}: {error}")
        raise typer.Exit(DISAGREEMENT) from None
    told = {
        "verdict": "proven",
        "of": of,
        "sense": proven.sense,
        "infeasible": proven.infeasible,
        "bound": None if proven.infeasible or bound is None else vipr.short(bound),
        "variables": len(proven.names),
        "constraints": len(proven.rows),
        "derived": proven.derived,
    }
    if as_json:
        say_json(told)
        return
    what = "there is no point" if proven.infeasible else f"nothing is {_side(proven.sense)} {told['bound']}"
    say(f"proven     {what if told['bound'] or proven.infeasible else 'no bound'}")
    say(f"of         {told['of']}")
    say(f"program    {told['variables']:,} variables, {told['constraints']:,} constraints")
    say(f"derived    {told['derived']:,} constraints")


def _side(sense: str) -> str:
    return "less than" if sense == "min" else "more than"


@contextlib.contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """Open a certificate as text, unpacked where it is compressed.

    Raises
    ------
    StudyError
        When it cannot be read.
    """
    try:
        with path.open("rb") as raw:
            packed = raw.peek(2)[:2] == b"\x1f\x8b"
            binary = gzip.GzipFile(fileobj=raw) if packed else raw
            yield io.TextIOWrapper(binary, encoding="utf-8")
    except OSError as error:
        raise StudyError(f"cannot read {path}: {error.strerror or error}") from None
