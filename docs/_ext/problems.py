"""Pages of problems beside the others: the picture above the data, links to what else there is of a problem, and back.

A problem's page shows the picture of the gallery and leads to claims, worst cases and results of the problem. Back
leads its name: wherever `aryl.reclaim` stands in code, or is a heading, it is a link to the page.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from docutils import nodes
from repository import DOCS
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

KEPT = (nodes.reference, pending_xref)
"""What is a link already."""

MEASURED = {
    "results/collection": "gaps on the collection",
    "results/real": "gaps on real data",
    "results/times": "times",
    "growth": "how times grow",
}
"""Pages that have a section for each problem, and what they are called."""


@cache
def problems() -> dict[str, str]:
    """Each problem by its name, with the name of its page."""
    pages = [path.relative_to(DOCS).with_suffix("").as_posix() for path in (DOCS / "problems").glob("*/*.md")]
    drawn = {page for page in pages if (DOCS / f"{page.replace('problems', 'gallery', 1)}.py").exists()}
    return {page.removeprefix("problems/").replace("/", "."): page for page in sorted(drawn)}


# --- from a problem -------------------------------------------------------------------------------


def show(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put the picture and the links before the first section of a problem's page."""
    problem = docname.removeprefix("problems/").replace("/", ".")
    if problems().get(problem) == docname:
        before, heading, after = source[0].partition("\n## ")
        path = problem.replace(".", "/")
        (said,) = re.findall(r"^!\[(.*)\]", text_of(app.env, f"gallery/{path}"), re.MULTILINE)
        picture = f"![{said}](../../gallery/{path}.svg)"
        links = " · ".join(beside(app.env, problem))
        source[0] = f"{before}\n{picture}\n\n{links}\n{heading}{after}"


def beside(env: BuildEnvironment, problem: str) -> Iterator[str]:
    """Links to what other pages have of a problem."""
    path = problem.replace(".", "/")
    yield f"[The picture's code](../../gallery/{path}.md)"
    claims = len(list((DOCS / "claims" / path).glob("*.md")))
    if claims:
        found = f"{claims} claim{'s' if claims > 1 else ''} put to the test"
        yield f'<a href="../../claims/index.html?filter={problem}">{found}</a>'
    if f"| `{problem}`" in text_of(env, "worst-cases"):
        yield "[worst cases](../../worst-cases.md#what-is-proven)"
    for page, called in MEASURED.items():
        if re.search(rf"^### \[?{re.escape(problem)}\b", text_of(env, page), re.MULTILINE):
            yield f"[{called}](../../{page}.md#{problem.replace('.', '')})"


def text_of(env: BuildEnvironment, page: str) -> str:
    """Return the source of a page; the one that is read is read again when it changes."""
    path = DOCS / f"{page}.md"
    env.note_dependency(str(path))
    return path.read_text(encoding="utf-8")


# --- and back -------------------------------------------------------------------------------------


def lead_back(app: Sphinx, document: nodes.document) -> None:
    """Turn names of problems into links to their pages."""
    for node in [*document.findall(nodes.literal), *document.findall(nodes.title)]:
        page = problems().get(node.astext())
        linked = any(isinstance(one, KEPT) for one in [*node.children, *ancestors(node)])
        if page is None or page == app.env.docname or linked or app.env.docname.startswith("gallery/"):
            continue
        link = pending_xref(
            "", refdoc=app.env.docname, refdomain="std", reftype="doc", reftarget=f"/{page}", refexplicit=True
        )
        if isinstance(node, nodes.title):
            link += nodes.inline("", "", *node.children)
            node.children = []
            node += link
        else:
            node.replace_self(link)
            link += node


def ancestors(node: nodes.Node) -> Iterator[nodes.Node]:
    while node.parent is not None:
        node = node.parent
        yield node


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", show)
    app.connect("doctree-read", lead_back)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": 1}
