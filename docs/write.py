"""Write the computed parts of the documents anew: commands, options, sizes, citation, the collection, claims."""

import argparse
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from validation import CATALOGUE, ReplayOptions, StudyOptions
from validation.cli import commands, main
from validation.cli.app import EXIT_CODES
from validation.kernel.options import Options, as_toml
from validation.kernel.walls import WALLS
from validation.kinds.collection import load
from validation.kinds.collection.croissant import CROISSANT, described_collection
from validation.kinds.collection.page import MARK, tables
from validation.pages.render import table_lines

DOCS = Path(__file__).parent


def with_options(page: str, options: type[Options]) -> str:
    """A page with the table of options as the library has it."""
    rows = [
        (f"`{one.name}`", "" if one.default is None else f"`{as_toml(one.default)}`", one.metadata["help"])
        for one in options.fields()
    ]
    table = "\n".join(table_lines(("option", "default", "meaning"), rows)) + "\n"
    return re.sub(r"\| option \|.*?\n\n", lambda _: f"{table}\n", page, count=1, flags=re.DOTALL)


def with_walls(page: str) -> str:
    """A page with the table of walls around heuristics."""
    rows = [
        (f"`{name}`", f"A heuristic {what}.", takes, f"It can {can}.") for name, (what, takes, can) in WALLS.items()
    ]
    table = "\n".join(table_lines(("wall", "where it stands", "what it takes", "without it"), rows)) + "\n"
    return re.sub(r"\| wall \|.*?\n\n", lambda _: f"{table}\n", page, count=1, flags=re.DOTALL)


def with_sizes(page: str, growth: str) -> str:
    """The table of problems, whose last two columns say what the page on growth proved."""

    def row(found: re.Match[str]) -> str:
        problem = found[2]
        told = re.search(rf"^### {problem}$(.*?)(?=^##|\Z)", growth, re.MULTILINE | re.DOTALL)
        assert told, f"{problem} is not in growth.md"
        proven = re.search(r"^\| exact model \| \S+ to (\S+) \|", told[1], re.MULTILINE)
        left = re.search(r"^At the papers' size, (.*)\.$", told[1], re.MULTILINE)
        assert left, f"growth.md says nothing of {problem} at the papers' size"
        size = f"`{CATALOGUE[problem].size}={proven[1].replace(',', '')}`" if proven else "none"
        return f"{found[1]}| {size} | {left[1]} |"

    return re.sub(
        r"^(\| .*\[(\w+\.\w+)\]\(problems/[^|]*(?:\|[^|]*){3})\|[^|]*\|[^|]*\|$", row, page, flags=re.MULTILINE
    )


def with_citation(page: str) -> str:
    """The page on citing with the entry that follows from CITATION.cff."""
    import yaml

    cited = yaml.safe_load((DOCS.parent / "CITATION.cff").read_text(encoding="utf-8"))
    authors = " and ".join(
        f"{one['family-names']}, {one['given-names']}" if "family-names" in one else f"{{{one['name']}}}"
        for one in cited["authors"]
    )
    fields = {
        "author": authors,
        "title": cited["title"].replace("GPU", "{GPU}"),
        "version": cited["version"],
        "year": str(cited["date-released"])[:4],
        **{name: cited[name] for name in ("doi", "url") if name in cited},
    }
    lines = ",\n".join(f"  {name:<7} = {{{value}}}" for name, value in fields.items())
    entry = f"```bibtex\n@software{{scheduling_formulations,\n{lines}\n}}\n```"
    return re.sub(r"```bibtex\n.*?```", lambda _: entry, page, flags=re.DOTALL)


def with_badges(page: str) -> str:
    """The first page with badges of what pyproject.toml says; that of CI as soon as it says where that is."""
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    about, covered = project["project"], project["tool"]["coverage"]["report"]["fail_under"]
    pythons = [one.rpartition(" ")[2] for one in about["classifiers"] if re.search(r"Python :: 3\.\d+$", one)]
    shields = "https://img.shields.io/badge"
    badges = [
        f"![Python {', '.join(pythons)}]({shields}/python-{'%20%7C%20'.join(pythons)}-blue)",
        f"[![Licence {about['license']}]({shields}/licence-{about['license']}-blue)](LICENSE)",
        f"![Coverage at least {covered}%]({shields}/coverage-%E2%89%A5%20{covered}%25-blue)",
    ]
    source = about.get("urls", {}).get("Source")
    if source:
        workflow = f"{source}/actions/workflows/ci.yml"
        badges.insert(0, f"[![CI]({workflow}/badge.svg)]({workflow})")
    return re.sub(r"(^# .*\n\n)(?:\[?!\[.*\n)*\n*", lambda found: found[1] + "\n".join(badges) + "\n\n", page, count=1)


def with_commands(page: str) -> str:
    """The page of the command line with its exit codes and all commands as they are."""
    kept = page.partition("## Exit codes\n")[0]
    codes = "\n".join(table_lines(("code", "meaning"), EXIT_CODES.items()))
    told = "\n".join(_command(name, command) for name, command in _commands("optgap", get_command(commands())))
    return f"{kept}## Exit codes\n\n{codes}\n\n{told}"


def _commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """All commands of a group by their full names; one of the group's own name goes by that alone."""
    for short, member in sorted(getattr(command, "commands", {}).items()):
        yield from _commands(name if short == command.name else f"{name} {short}", member)
    if not hasattr(command, "commands"):
        yield name, command


def _command(name: str, command: Any) -> str:
    shown = [one for one in command.params if not getattr(one, "hidden", False) and one.name != "help"]
    needed = [_called(one) for one in shown if one.required]
    lines = [f"## {name}", "", command.help.partition("\n\n")[0].replace("\n", " "), "", "```text"]
    lines += [" ".join([name, *needed, "[OPTIONS]"]), "```", ""]
    if shown:
        rows = [(_names(one), " ".join((one.help or "").split()).replace("<", "&lt;"), _default(one)) for one in shown]
        lines += table_lines(("option", "meaning", "default"), rows)
        lines.append("")
    return "\n".join(lines)


def _called(one: Any) -> str:
    """An argument, or an option that must be given, as it is typed."""
    return one.metavar or one.name.upper() if one.param_type_name == "argument" else f"{one.opts[0]} {one.name.upper()}"


def _names(one: Any) -> str:
    names = [one.metavar or one.name.upper()] if one.param_type_name == "argument" else one.opts
    return ", ".join(f"`{name}`" for name in names)


def _default(one: Any) -> str:
    if one.required:
        return "must be given"
    nothing = one.default is None or one.default in (False, ()) or callable(one.default)
    return "" if nothing else f"`{one.default}`"


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    for name, options in (("studies.md", StudyOptions), ("replay.md", ReplayOptions)):
        page = DOCS / name
        page.write_text(with_options(page.read_text(encoding="utf-8"), options), encoding="utf-8")
    page = DOCS / "studies.md"
    page.write_text(with_walls(page.read_text(encoding="utf-8")), encoding="utf-8")
    page, growth = DOCS / "which-problem.md", DOCS / "growth.md"
    page.write_text(with_sizes(page.read_text(encoding="utf-8"), growth.read_text(encoding="utf-8")), encoding="utf-8")
    page = DOCS / "cite.md"
    page.write_text(with_citation(page.read_text(encoding="utf-8")), encoding="utf-8")
    page = DOCS.parent / "README.md"
    page.write_text(with_badges(page.read_text(encoding="utf-8")), encoding="utf-8")
    page = DOCS / "command-line.md"
    page.write_text(with_commands(page.read_text(encoding="utf-8")), encoding="utf-8")
    page = DOCS / "collection.md"
    kept, whole = page.read_text(encoding="utf-8").partition(MARK)[0], load()
    page.write_text(f"{kept}{MARK}\n{tables(whole)}", encoding="utf-8")
    told = described_collection(whole.folder, whole.version, whole.records)
    (whole.folder / CROISSANT).write_text(told, encoding="utf-8")
    sys.argv[1:] = ["claims", "-o", str(DOCS / "claims")]
    main()
