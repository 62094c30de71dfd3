"""Links out of a page's folder to files and folders of the repository, which become pages that show them.

A page says `[the example](../examples/outside)`, as it must where it is read on a code host. Here such a link leads to
a page with the file's text, or with what the folder holds; a link to a notebook leads to the notebook's page. A link to
something that does not exist is left to MyST, which warns.
"""

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from pygments.lexers import get_lexer_for_filename
from pygments.util import ClassNotFound
from sphinx.addnodes import download_reference, pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent


def target(node: nodes.Element, env: BuildEnvironment) -> Path | None:
    """Return the path in the repository that a link leads to, if it is out of docs/ or the link in a notebook."""
    written, folder = node["reftarget"].partition("#")[0], Path(node["refdoc"]).parent
    notebook = folder.name == "notebooks"  # Notebooks are read as they stand where they were copied from.
    if node.get("refdomain") == "doc":  # Seen as a document: the name begins at docs/ and has lost its suffix.
        found = [DOCS / f"{written}{suffix}" for suffix in env.config.source_suffix]
    else:
        found = [(ROOT if notebook else DOCS) / folder / written]
    for path in found:
        path = path.resolve()
        if path.exists() and path.is_relative_to(ROOT) and (notebook or not path.is_relative_to(DOCS)):
            return path.relative_to(ROOT)
    return None


def document(path: Path, env: BuildEnvironment) -> str | None:
    """Return the name of the page that a path in the repository is."""
    if path.parent == Path("notebooks"):
        return f"notebooks/{path.stem}"
    return env.path2doc(ROOT / path) if path.is_relative_to("docs") else None


class RepositoryLinks(SphinxTransform):
    """Marks links that lead out of docs/, and remembers where they lead."""

    default_priority = 5

    def apply(self, **kwargs: Any) -> None:
        for node in list(self.document.findall(lambda one: isinstance(one, pending_xref | download_reference))):
            path = target(node, self.env) if node.get("reftype") == "myst" and node["reftarget"] else None
            if path is None:
                continue
            page = document(path, self.env)
            if page in self.env.found_docs:
                node["reftargetid"] = node["reftarget"].partition("#")[2] or node.get("reftargetid")
                node["refdomain"], node["reftarget"] = "doc", page
                continue
            link = pending_xref("", *node.children, **node.attributes)
            link["refdomain"], link["reftype"], link["reftarget"] = "", "repository", path.as_posix()
            node.replace_self(link)
            linked(self.env).setdefault(self.env.docname, set()).add(path)


def linked(env: BuildEnvironment) -> dict[str, set[Path]]:
    """Return the paths that each page links."""
    if not hasattr(env, "repository_links"):
        env.repository_links = {}  # type: ignore[attr-defined]
    return env.repository_links  # type: ignore[attr-defined, no-any-return]


def forget(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    linked(env).pop(docname, None)


def merge(app: Sphinx, env: BuildEnvironment, docnames: set[str], other: BuildEnvironment) -> None:
    linked(env).update({name: paths for name, paths in linked(other).items() if name in docnames})


def resolve(app: Sphinx, env: BuildEnvironment, node: pending_xref, inner: nodes.Element) -> nodes.reference | None:
    if node["reftype"] != "repository":
        return None
    uri = app.builder.get_relative_uri(node["refdoc"], page_name(Path(node["reftarget"])))
    return nodes.reference("", "", inner, internal=True, refuri=uri)


def page_name(path: Path) -> str:
    return f"repository/{path.as_posix()}"


def pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Write a page for each linked file, for each linked folder, and for the files that lie in it."""
    wanted = {path for paths in linked(app.env).values() for path in paths}
    for folder in [path for path in wanted if (ROOT / path).is_dir()]:
        wanted |= {path.relative_to(ROOT) for path in shown(ROOT / folder) if path.is_file()}
    for path in sorted(wanted):
        body = folder_body(app, path, wanted) if (ROOT / path).is_dir() else file_body(app, path)
        title = path.as_posix()
        yield page_name(path), {"title": title, "body": f"<h1>{escape(title)}</h1>\n{body}"}, "page.html"


def shown(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith((".", "__pycache__")))


def folder_body(app: Sphinx, folder: Path, wanted: set[Path]) -> str:
    lines = []
    for path in shown(ROOT / folder):
        name = escape(path.name) + "/" * path.is_dir()
        uri = app.builder.get_relative_uri(page_name(folder), page_name(path.relative_to(ROOT)))
        lines.append(f'<li><a href="{uri}">{name}</a></li>' if path.relative_to(ROOT) in wanted else f"<li>{name}</li>")
    return f"<ul>{''.join(lines)}</ul>"


def file_body(app: Sphinx, path: Path) -> str:
    try:
        language = get_lexer_for_filename(path.name).aliases[0]
    except ClassNotFound:
        language = "text"
    return app.builder.highlighter.highlight_block((ROOT / path).read_text(encoding="utf-8"), language)  # type: ignore[attr-defined, no-any-return]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_transform(RepositoryLinks)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("missing-reference", resolve)
    app.connect("html-collect-pages", pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": 1}
