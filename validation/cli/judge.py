"""Commands ``judge``: one number for a heuristic, and what is made of such numbers."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from validation.cli import interruption
from validation.cli.app import DISAGREEMENT, AsJson, app, complain, say, say_json
from validation.cli.completion import problem_names
from validation.cli.help import App
from validation.cli.options import with_options
from validation.errors import StudyError
from validation.kinds.options import JudgeOptions

__all__ = ["board", "compare", "export", "judge", "reveal", "seal"]

judge_app = App(help="Give a heuristic one number, against proven optima that it cannot reach.")
app.add_typer(judge_app, name="judge")
# Without the name of another command, ``optgap judge`` is the one that judges.

SecretFile = Annotated[Path, typer.Argument(metavar="SECRET", help="File of the secret.")]


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


@judge_app.command()
def seal(
    secret: SecretFile,
    problem: Annotated[str, typer.Option(help="Name of a problem.", autocompletion=problem_names)],
    as_json: AsJson = False,
) -> None:
    """Make the secret of a hidden set, and print what commits to it, which is published before anybody is judged.

    A file that is such a secret already is committed to again.
    """
    from validation.kinds.judge.sets import seal

    found = vars(seal(secret, problem))
    if as_json:
        say_json(found)
    else:
        for name, value in found.items():
            say(f"{name:<10} {value}")


@judge_app.command()
def reveal(
    secret: SecretFile,
    commitment: Annotated[Path, typer.Argument(metavar="COMMITMENT", help="What was published, as JSON.")],
    as_json: AsJson = False,
) -> None:
    """Check that a secret is the one that was committed to, and that its set is drawn from it; else exit with 1."""
    from instances import text as files
    from validation.kinds.judge.secret import commitment_of
    from validation.kinds.judge.sets import committed

    published = commitment_of(files.as_json(files.read_text(commitment), f"{commitment}"))
    if published is None:
        raise StudyError(f"{commitment}: is no commitment of optgap judge seal --json")
    misfits = published.misfits(committed(secret))
    if as_json:
        say_json({"fits": not misfits, "misfits": misfits})
    elif not misfits:
        say(f"{secret} fits: optgap judge HEURISTIC --problem {published.problem} --split hidden:{secret}")
    for one in misfits:
        complain(f"{secret}: {one}")
    if misfits:
        raise typer.Exit(DISAGREEMENT)


@judge_app.command()
def board(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of judgements, programs and commitments.")],
    quick: Annotated[bool, typer.Option("--quick", help="Run no program: compare digests and sums only.")] = False,
    jobs: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Instances at once; one for each core by default.")
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="File for the board in Markdown.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print judgements as a leaderboard, each held against its program; exit with 1 where one does not hold.

    Programs are judged again where their set is public or revealed.
    """
    from instances.files import write_whole
    from validation.kinds.judge.board import read_board
    from validation.outputs import try_file

    if output is not None:
        try_file(output)
    interruption.say(lambda: "nothing had been written")
    found = read_board(folder, recompute=not quick, jobs=jobs)
    if output is not None:
        write_whole(output, str(found))
    if as_json:
        say_json(found.to_dict())
    else:
        say(str(found))
    for one in found.wrong:
        complain(one)
    if found.wrong:
        raise typer.Exit(DISAGREEMENT)


@judge_app.command()
def export(
    problem: Annotated[
        str, typer.Argument(help="Name of a problem, such as aryl.reclaim.", autocompletion=problem_names)
    ],
    harness: Annotated[
        str,
        typer.Option("--for", help="openevolve, skydiscover, shinka, gepa, harbor, llm4ad, heurigym or frontier-cs."),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder to write, which must be empty or not there.")],
    hidden: Annotated[
        Path | None, typer.Option(help="File with the seed of the hidden set; a new seed is drawn by default.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a task for a harness that evolves programs: instructions, a first program, and the judge as evaluator."""
    from validation.kinds.judge.export import export

    made = export(problem, harness, output, hidden=None if hidden is None else str(hidden))
    if as_json:
        say_json({"files": [str(path) for path in made]})
    else:
        say("\n".join(map(str, made)))


@judge_app.command()
def compare(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders of judgements, a search each.")],
    as_json: AsJson = False,
) -> None:
    """Compare searches by the judgements of what each found from several seeds: means with intervals."""
    from validation.kinds.judge.search import compare, table

    found = compare(folders)
    if as_json:
        say_json([one.to_dict() for one in found])
    else:
        say(table(found))


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
