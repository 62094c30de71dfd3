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
from validation.claims import reread
from validation.claims.words import listed
from validation.errors import StudyError
from validation.kinds.claims import Claim, OnAverage, Outcome, Verdict
from validation.pages.drawing import as_svg, label, own_style
from validation.pages.render import render

__all__ = ["MARK", "folder_of_pages", "write_pages"]

MARK = "<!-- Written by `optgap claims`: what is changed here is lost. -->"
"""How each page begins, and how each picture ends; data tell the claim as their origin."""

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


def folder_of_pages(path: Path) -> Path:
    """Return the directory that pages are written into.

    Raises
    ------
    StudyError
        When its name is that of a page.
    """
    if path.suffix == ".md":
        raise StudyError(f"--output: got {str(path)!r}, must be a directory, which gets a page for each claim")
    return path


def write_pages(verdicts: Sequence[Verdict], folder: Path, options: str = "") -> None:
    """Write an index, a table of all readings, and a page for each claim as ``<paper>/<problem>/<claim>.md``.

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
    written[folder / "readings.md"] = _readings(verdicts)
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
    """Return the path of a claim's files but for their suffix: ``aryl/reclaim/reclaim_one_server``."""
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
    about = f"problems/{claim.problem.replace('.', '/')}.md"
    return render(
        "claim.md.j2",
        about=about if (folder.parent / about).exists() else "",
        assumed=_assumed(verdict),
        claim=claim,
        command=_command(claim.name, options),
        mark=MARK,
        place=_place(claim),
        readings=[
            {"verdict": read, "claim": read.claim, "found": _found(read), "drawn": _drawn(read)}
            for read in verdict.readings
        ],
        relaxed={read.claim.relaxed for read in verdict.readings},
        verdict=verdict,
    )


def _command(*words: str) -> str:
    return " ".join(filter(None, ("optgap claims", *words)))


def _found(read: Verdict) -> str:
    """Say what came of the instances tried under a reading, how many there were, and how the one shown was chosen."""
    claim = read.claim
    how = "smallest first" if claim.exhaustive else "in the order in which they are drawn"
    if isinstance(claim.breaks, OnAverage):
        return f"**{read.alone.capitalize()}**: {read.why}."
    if read.is_whole:
        return "**Holds**." if read.tried == 1 else f"**Holds** on all {read.tried:,}."
    if read.held:
        return f"**Not refuted** in {read.extent}, {how}."
    smaller = ", and then made smaller" if claim.shrink and claim.assumes and not claim.exhaustive else ""
    which = "the first instance" if read.tried == 1 else f"instance {read.tried:,}, {how}"
    return f"**Refuted** by {which}{smaller}: {read.why}."


def _drawn(read: Verdict) -> str:
    """Name what the picture of a counterexample shows; nothing where there is none."""
    return "" if read.counterexample is None else " beside ".join(_plans(read)) or "the data"


def _assumed(verdict: Verdict) -> str:
    """Say whether the paper's assumptions are kept: in the searches under all readings, in none, or in some."""
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
    """Draw the problem's own picture of each plan under its name, or of the data where there is no plan."""
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
    papers: dict[str, list[dict[str, Any]]] = {}
    for verdict in verdicts:
        claim = verdict.claim
        paper, _, where = claim.source.partition(", ")
        cells = (
            f"[{claim.statement}]({_place(claim)}.md)",
            f"**{verdict.outcome}**" if verdict.outcome == "refuted" else verdict.outcome,
            where,
            _assumed(verdict),
            f"{sum(read.tried for read in verdict.readings):,}",
        )
        row = {"cells": cells, "outcome": verdict.outcome, "place": _place(claim), "name": claim.name}
        papers.setdefault(paper, []).append(row)
    shown = {"claims": len(verdicts), "command": _command(options), "mark": MARK, "outcomes": OUTCOMES}
    return render("claims.md.j2", papers=papers, **shown)


def _readings(verdicts: Sequence[Verdict]) -> str:
    """List every reading: what is stated, by whom, what its instances keep, how ties are broken, and what was tried."""
    columns = ("claim", "what is stated", "where", "stated by", "what instances keep", "ties", "tried", "verdict")
    rows = [
        (
            f"[{verdict.claim.name}]({_place(verdict.claim)}.md){f', {number}' if verdict.others else ''}",
            verdict.claim.statement,
            verdict.claim.source,
            read.claim.by or "the paper",
            _predicate(read.claim),
            read.claim.ties or "none",
            f"{read.extent}{'' if read.claim.exhaustive else ', drawn'}",
            read.alone,
        )
        for verdict in verdicts
        for number, read in enumerate(verdict.readings, start=1)
    ]
    changed = [
        (f"[{verdict.claim.name}]({_place(verdict.claim)}.md)", reread.CHANGED[verdict.claim.name])
        for verdict in verdicts
        if verdict.claim.name in reread.CHANGED
    ]
    return render("readings.md.j2", mark=MARK, columns=columns, rows=rows, reread=reread, changed=changed)


def _predicate(claim: Claim) -> str:
    """Return what the predicate of a claim looks at, by its docstring."""
    if claim.assumes is None:
        return "not stated"
    first = (claim.assumes.__doc__ or "").partition("\n")[0]
    return first.removeprefix("Return whether ").rstrip(".") or "not stated"
