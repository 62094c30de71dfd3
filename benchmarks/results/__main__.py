"""``python -m benchmarks.results -o docs/results``: measure, and write the pages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from benchmarks import growth
from benchmarks.results import collection, faults, real, replay, times
from benchmarks.results.kept import Asked
from benchmarks.results.page import TEMPLATES, Page, Part
from instances.files import write_whole
from validation.catalogue import CATALOGUE
from validation.kernel.provenance import provenance
from validation.pages.render import render

__all__ = ["PARTS", "app", "index", "main"]

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
PARTS = (
    Part(
        "collection", "Gaps on the collection", "every heuristic on every instance of the collection", collection.make
    ),
    Part("real", "Gaps on real data", "every heuristic on instances drawn from public traces", real.make),
    Part("times", "Times", "every heuristic and every exact model at the sizes of the catalogue", times.make),
    Part("replay", "A replay", "what gaps cost the jobs of a generated trace", replay.make),
    Part("faults", "Faults", "what comes of harm done to files, studies and processes", faults.make),
)
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def main(
    output: Annotated[Path, typer.Option("-o", "--output", help="Where the pages are written.")] = RESULTS,
    only: Annotated[
        str | None, typer.Option(help="Only these parts, such as times,replay; the index is left as it is then.")
    ] = None,
    problem: Annotated[
        list[str] | None, typer.Option(help="Only these problems, of the parts collection and times; to try it out.")
    ] = None,
    beside: Annotated[
        str | None, typer.Option("--with", help="growth: docs/growth.md is measured anew, too, some 25 minutes.")
    ] = None,
    data: Annotated[
        Path, typer.Option(envvar="SCHEDULING_DATA", help="Folder of public data (docs/data.md).")
    ] = ROOT.parent / "shared" / "data",
    kept: Annotated[Path, typer.Option(help="Where measurements are kept.")] = Path("results"),
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes at once, where no times are measured.")] = None,
) -> None:
    """Measure the results of a release, and write their pages."""
    names = only.split(",") if only else [part.name for part in PARTS]
    for name in names:
        if name not in {part.name for part in PARTS}:
            raise typer.BadParameter(f"--only: got {name}, must be of {', '.join(part.name for part in PARTS)}")
    for name in problem or []:
        if name not in CATALOGUE:
            raise typer.BadParameter(f"--problem: got {name}, must be a problem that `optgap list` shows")
    if problem and output == RESULTS:
        raise typer.BadParameter("--problem: the pages of a release have all problems; write these elsewhere, with -o")
    if beside not in (None, "growth"):
        raise typer.BadParameter(f"--with: got {beside}, must be growth")
    asked = Asked(kept, data if data.is_dir() else None, problems=problem or None)
    if jobs is not None:
        asked = replace(asked, jobs=jobs)
    pages: dict[Part, Page] = {}
    for part in PARTS:
        if part.name in names:
            page = part.make(asked)
            if page is None:
                print(f"{part.name}: left out, because there are no public data in {data} (docs/data.md)", flush=True)
            else:
                pages[part] = page
    if beside == "growth":
        growth.main(None, again=True)
    # All at the end, so that no page is of another state of the sources than the others.
    for part in PARTS:
        if part.name in names:
            for old in output.glob(f"{part.name}[.-]*"):
                old.unlink()
    for part, page in pages.items():
        write_whole(_made(output) / f"{part.name}.md", page.text)
        for file, content in page.files.items():
            write_whole(output / file, content)
    if not only:
        write_whole(_made(output) / "index.md", index(pages))


def index(pages: Iterable[Part]) -> str:
    """Make the page that leads to the others."""
    told = provenance(1)
    machine, version = told["machine"], told["versions"]["scheduling-formulations"]
    where = f"{machine['processor'] or machine['system']} ({machine['cores']} cores)"
    return render(TEMPLATES / "index.md.j2", parts=list(pages), version=version, where=where)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


if __name__ == "__main__":
    app(prog_name="python -m benchmarks.results")
