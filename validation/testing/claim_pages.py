"""One page a claim, with the picture and the data of each counterexample beside it, and an index by paper.

Pages are Markdown, read on a code host as they are and made into the site by Sphinx. What is written depends on the
verdicts alone, so that writing it anew changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

from instances.base import Instance, InstanceError, Plan
from instances.files import load, write_whole
from validation.claims.words import listed
from validation.drawing import as_svg, label, own_style
from validation.errors import StudyError
from validation.testing.claims import Claim, Outcome, Verdict

__all__ = ["MARK", "folder_of_pages", "write_pages"]

MARK = "<!-- Written by `optgap claims`: what is changed here is lost. -->"
"""How each page begins, and how each picture ends; data tell the claim as their origin."""

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


def folder_of_pages(path: Path) -> Path:
    """The directory that pages are written into.

    Raises
    ------
    StudyError
        When its name is that of a page.
    """
    if path.suffix == ".md":
        raise StudyError(f"--output: got {str(path)!r}, must be a directory, which gets a page for each claim")
    return path


def write_pages(verdicts: Sequence[Verdict], folder: Path, options: str = "") -> None:
    """Write an index, and a page for each claim as ``<paper>/<problem>/<claim>.md``.

    What was written there before of other claims is removed; what somebody else put there is not.

    Parameters
    ----------
    verdicts : sequence of Verdict
    folder : Path
    options : str
        Of the command that made the verdicts, beside the claim.

    Raises
    ------
    StudyError
        When something is in the way that was not written here.
    """
    written = {folder / name: text for verdict in verdicts for name, text in _files(verdict, folder, options)}
    written[folder / "index.md"] = _index(verdicts, options)
    for path in written:
        if path.exists() and not _is_own(path):
            raise StudyError(f"{path} is in the way, and was not written by this command: choose another directory")
    for path in sorted(folder.rglob("*")):
        if path not in written and _is_own(path):
            path.unlink()
            if not any(path.parent.iterdir()):
                path.parent.rmdir()
    for path, text in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)


def _is_own(path: Path) -> bool:
    if not path.is_file() or path.is_symlink():
        return False
    if path.suffix == ".json":
        try:
            return "claim" in (load(path).origin or {})
        except InstanceError:
            return False
    return path.suffix in (".md", ".svg") and MARK in path.read_text(encoding="utf-8", errors="replace")


def _place(claim: Claim) -> str:
    """Where a claim's files stand, but for their suffix: ``aryl/reclaim/reclaim_one_server``."""
    return f"{claim.problem.replace('.', '/')}/{claim.name}"


# --- a claim --------------------------------------------------------------------------------------


def _files(verdict: Verdict, folder: Path, options: str) -> Iterator[tuple[str, str]]:
    """Name and content of a claim's page, and of the picture and the data of each of its counterexamples."""
    place = _place(verdict.claim)
    yield f"{place}.md", _page(verdict, folder, options)
    for number, read in enumerate(verdict.readings, start=1):
        if read.counterexample is not None:
            yield f"{place}-{number}.svg", _picture(read.counterexample, _plans(read))
            told = read.counterexample.with_origin({"claim": verdict.claim.name, "reading": number})
            yield f"{place}-{number}.json", json.dumps(told.to_dict()) + "\n"


def _page(verdict: Verdict, folder: Path, options: str) -> str:
    claim = verdict.claim
    paper, problem = claim.problem.split(".")
    about = f"problems/{paper}/{problem}.md"
    linked = f"[{claim.problem}](../../../{about})" if (folder.parent / about).exists() else f"`{claim.problem}`"
    relaxed = {read.claim.relaxed for read in verdict.readings}
    lines = [
        MARK,
        "",
        f"# {claim.name}",
        "",
        f"> {claim.statement}",
        "",
        f"**{verdict.outcome.capitalize()}.** Stated in {claim.source}; about {linked}; [all claims](../../index.md).",
        "",
        f"**The paper's assumptions are {_assumed(verdict)}.** Kept are: {claim.assumptions}",
        "",
        *([f"Relaxed: {claim.relaxed}", ""] if len(relaxed) == 1 and claim.relaxed else []),
    ]
    for number, read in enumerate(verdict.readings, start=1):
        said = "held" if read.held else "refuted"
        lines += [f"## Reading {number}: {said}" if verdict.others else "## As it is read here", ""]
        lines += [f"Read as: {read.claim.reading}", ""] if read.claim.reading else []
        lines += [f"Relaxed: {read.claim.relaxed}", ""] if len(relaxed) > 1 and read.claim.relaxed else []
        lines += [f"Tried: {read.claim.scope}.", "", _found(read), ""]
        if read.counterexample is not None:
            lines += _counterexample(read, f"{claim.name}-{number}", f"{_place(claim)}-{number}.json")
    lines += ["## Run it again", "", "```sh", " ".join(filter(None, ("optgap claims", claim.name, options))), "```", ""]
    return "\n".join(lines)


def _found(read: Verdict) -> str:
    """What came of the instances tried under a reading, how many there were, and how the one shown was chosen."""
    claim = read.claim
    how = "smallest first" if claim.exhaustive else "in the order in which they are drawn"
    if read.held:
        many = f"all {read.tried:,}" if read.exhausted else f"the first {read.tried:,}, {how}"
        return "**Held**." if read.exhausted and read.tried == 1 else f"**Held** on {many}."
    smaller = "" if claim.exhaustive or not claim.shrink else ", and then made smaller"
    which = "the first instance" if read.tried == 1 else f"instance {read.tried:,}, {how}"
    return f"**Refuted** by {which}{smaller}: {read.why}."


def _counterexample(read: Verdict, file: str, place: str) -> list[str]:
    shown = " beside ".join(_plans(read)) or "the data"
    return [
        f"![The counterexample: {shown}]({file}.svg)",
        "",
        f"Its data are in [{file}.json]({file}.json). To solve it, in the folder of all claims:",
        "",
        "```sh",
        f"optgap solve {place}",
        "```",
        "",
    ]


def _assumed(verdict: Verdict) -> str:
    """Whether the paper's assumptions are kept: in the searches under all readings, in none, or in some."""
    kept = [not read.claim.relaxed for read in verdict.readings]
    if all(kept):
        return "kept"
    if not any(kept):
        return "relaxed"
    which = [str(number) for number, one in enumerate(kept, start=1) if not one]
    return f"kept, but relaxed in {'readings' if len(which) > 1 else 'reading'} {listed(which)}"


def _plans(read: Verdict) -> dict[str, Plan]:
    return {} if read.claim.plans is None else dict(read.claim.plans(read.counterexample))


def _picture(instance: Instance[Any], plans: dict[str, Plan]) -> str:
    """The problem's own picture of each plan under its name, or of the data where there is no plan."""
    drawn: dict[str, Plan | None] = dict(plans) or {"": None}
    # Letters stay letters: the files are small, and the words can be found.
    with own_style({"svg.fonttype": "none"}, salt="claims"):
        from matplotlib.figure import Figure

        width = 6.4 if len(drawn) == 1 else 4.8 * len(drawn)
        figure = Figure(figsize=(width, 4.0), layout="constrained")
        for axes, (name, plan) in zip(figure.subplots(1, len(drawn), squeeze=False)[0], drawn.items(), strict=True):
            instance.plot(plan, ax=axes)
            if plan is not None:
                said = axes.get_title().removeprefix(instance.problem)
                axes.set_title(label(name) + said, fontsize="medium")
        return f"{as_svg(figure)}{MARK}\n"


# --- all of them ----------------------------------------------------------------------------------


def _index(verdicts: Sequence[Verdict], options: str) -> str:
    papers: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        papers.setdefault(verdict.claim.source.split(",")[0], []).append(verdict)
    lines = [
        MARK,
        "",
        "# The papers' claims, put to the test",
        "",
        f"{len(verdicts)} statements of the papers, each tried on instances that could break it. Every verdict is",
        f"computed, by `{' '.join(filter(None, ('optgap claims', options)))}`; none is written by hand.",
        "",
        "- **Held**: no instance of those tried breaks it, as it is read. That is a proof only of the instances named.",
        "- **Refuted**: instances break it however it is read; those on its page are the smallest found.",
        "- **Depends on the reading**: the print can be read in several ways, and it holds under some of them only.",
        "",
        "*Kept* says that the instances keep all assumptions under which the paper states a claim, *relaxed* that some",
        "do not: what held then held on instances that the paper does not mean, and what is refuted may hold on those",
        "that it does.",
        "*Tried* is the number of instances, of all readings together.",
        "",
        f"| paper | claims | {' | '.join(OUTCOMES)} |",
        f"| --- | {'--- | ' * (1 + len(OUTCOMES))}".rstrip(),
    ]
    for paper, mine in papers.items():
        counts = [len(mine), *(sum(verdict.outcome == outcome for verdict in mine) for outcome in OUTCOMES)]
        lines.append(f"| [{paper}](#{paper.lower()}) | {' | '.join(map(str, counts))} |")
    for paper, mine in papers.items():
        lines += ["", f"## {paper}", "", "| claim | what is stated | where | verdict | assumptions | tried |"]
        lines += ["| --- | --- | --- | --- | --- | --- |"]
        for verdict in mine:
            claim = verdict.claim
            cells = (
                f"[{claim.name}]({_place(claim)}.md)",
                claim.statement,
                claim.source.partition(", ")[2],
                f"**{verdict.outcome}**" if verdict.outcome == "refuted" else verdict.outcome,
                _assumed(verdict),
                f"{sum(read.tried for read in verdict.readings):,}",
            )
            lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
        lines += ["", "```{toctree}", ":hidden:", f":caption: {paper}", ""]
        lines += [_place(verdict.claim) for verdict in mine]
        lines += ["```"]
    return "\n".join(lines) + "\n"
