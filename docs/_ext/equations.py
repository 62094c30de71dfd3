"""Equations of the pages: numbers that are links, and the lines of the models that carry them.

A page is plain Markdown: `$$ ... \\tag{2}$$`, "(2)" in its text, tables "equation | in the Pyomo model | kind". Here

- the equation is at `#equation-2`, its number beside it, and "(2)" leads there; "(2) of [sharing](sharing.md)" leads to
  the other page's, and "formula (2)" is the paper's and left alone;
- a component in a table leads to the line of formulations/ that declares it, and that line back to the equation, as
  does its name where the reference describes the function that builds the model.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from docutils import nodes
from repository import ROOT, linked, page_name
from sphinx.addnodes import desc, desc_signature, pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)

TAG = re.compile(r"\s*\\tag\{([^}]*)\}")
NUMBER = re.compile(r"\((\d{1,2}[a-z]?['’]?)\)")
GROUP = re.compile(rf"{NUMBER.pattern}(?:(?:,? and|,? or| to|,|–|-)?\s?{NUMBER.pattern})*")
"""Such as (2), (1) and (3), or (1)–(3)."""
OF_THE_PAPER = re.compile(r"(?:formulas?|[Tt]he printed|['’]s)\s$")
OF_ITS_SECTION = re.compile(r"\sof\s(?:section|the paper|the appendix|Appendix)")
KEPT = (nodes.FixedTextElement, nodes.literal, nodes.math, nodes.reference, nodes.title, pending_xref)
"""What is never looked into for numbers."""

COMPONENT = re.compile(r"([A-Za-z]\w*)(?:\[.*\])?")
STATING = {"constraint", "maximize", "subset", "variable"}
"""Methods of a SharingProgram that take the name of what they add to the model."""


# --- equations and what refers to them ------------------------------------------------------------


def anchor(number: str) -> str:
    return "equation-" + re.sub("['’]", "-prime", number)


def read(app: Sphinx, document: nodes.document) -> None:
    here = {anchor(number) for number in numbered(document, app.env)}
    for parent in list(document.findall(nodes.TextElement)):
        if not isinstance(parent, KEPT) and not any(isinstance(one, KEPT) for one in ancestors(parent)):
            link_numbers(parent, here, app.env.docname)
    for table in document.findall(nodes.table):
        link_components(table, app.env)


def ancestors(node: nodes.Node) -> Iterator[nodes.Node]:
    while node.parent is not None:
        node = node.parent
        yield node


def numbered(document: nodes.document, env: BuildEnvironment) -> Iterator[str]:
    """Turn tags into numbers and anchors, and yield the numbers."""
    for node in document.findall(nodes.math_block):
        text = node.astext()
        tag = TAG.search(text)
        if tag:
            node.children = [nodes.Text(TAG.sub("", text))]
            node["number"], node["ids"] = tag[1], [anchor(tag[1])]
            # Links of MyST to the anchor are found there.
            env.metadata[env.docname].setdefault("myst_slugs", {})[anchor(tag[1])] = None, anchor(tag[1]), f"({tag[1]})"
            yield tag[1]


def link_numbers(parent: nodes.TextElement, here: set[str], docname: str) -> None:
    """Link the numbers in the text of an element, as far as they are equations."""
    children = join_texts(parent.children)
    if not any(isinstance(one, nodes.Text) and NUMBER.search(one) for one in children):
        return
    made: list[nodes.Node] = []
    for child, after in zip(children, [*children[1:], None], strict=True):
        if not isinstance(child, nodes.Text):
            made.append(child)
            continue
        done = 0
        for group in GROUP.finditer(child):
            before, rest = child[: group.start()], child[group.end() :]
            if OF_THE_PAPER.search(before) or OF_ITS_SECTION.match(rest):
                continue
            other = after["reftarget"] if re.fullmatch(r"\sof\s", rest) and is_document(after) else None
            found = list(NUMBER.finditer(child, group.start(), group.end()))
            if other is None and not here.issuperset(anchor(one[1]) for one in found):
                continue
            for one in found:
                made += [nodes.Text(child[done : one.start()]), link(one[1], docname, other)]
                done = one.end()
        made.append(nodes.Text(child[done:]))
    parent.children = []
    parent.extend(made)


def join_texts(children: list[nodes.Node]) -> list[nodes.Node]:
    """Lines of a paragraph are separate texts, which a reference may run across."""
    joined: list[nodes.Node] = []
    for child in children:
        if isinstance(child, nodes.Text) and joined and isinstance(joined[-1], nodes.Text):
            joined[-1] = nodes.Text(joined[-1] + child)
        else:
            joined.append(child)
    return joined


def is_document(node: nodes.Node | None) -> bool:
    return isinstance(node, pending_xref) and node["reftype"] == "myst" and node.get("refdomain") == "doc"


def link(number: str, docname: str, other: str | None) -> nodes.Element:
    text = nodes.inline("", f"({number})")
    if other is None:
        return nodes.reference("", "", text, internal=True, refid=anchor(number))
    return pending_xref(
        "",
        text,
        refdoc=docname,
        refdomain="doc",
        reftype="myst",
        reftarget=other,
        reftargetid=anchor(number),
        refexplicit=True,
    )


# --- components and where they are declared -------------------------------------------------------


def link_components(table: nodes.table, env: BuildEnvironment) -> None:
    """Link the components in a table of equations to their lines, and remember the equations of each line."""
    header, *rows = [list(row.findall(nodes.entry)) for row in table.findall(nodes.row)]
    if not re.match("equation\nin the Pyomo model", "\n".join(entry.astext() for entry in header)):
        return
    paper, problem = env.docname.split("/")[-2:]
    builder = next((code.astext().partition("(")[0] for code in header[1].findall(nodes.literal)), "build")
    for equation, component, *_ in rows:
        numbers = [one.astext()[1:-1] for one in equation.findall(nodes.reference) if "refid" in one]
        for code in list(component.findall(nodes.literal)):
            name = COMPONENT.fullmatch(code.astext())
            if name is None:
                continue
            place = declaration(paper, problem, name[1], builder)
            if place is None:
                LOGGER.warning("%s is declared nowhere in the formulation", name[1], location=code)
                continue
            path, line = place
            linked(env).setdefault(env.docname, set()).add(path)
            if not name[1].isupper() or len(name[1]) == 1:  # Sets are in capitals, and carry no equation.
                carried(env)[env.docname] += [Carried(name[1], builder, path, line, number) for number in numbers]
            reference = pending_xref(
                "", reftype="declaration", refdomain="", refdoc=env.docname, reftarget=path.as_posix(), line=line
            )
            code.replace_self(reference)
            reference += code


def declaration(paper: str, problem: str, name: str, builder: str) -> tuple[Path, int] | None:
    """Where a component is declared: in the problem's module or in one of the paper's that it draws on."""
    own = f"formulations/{paper}/{problem}.py"
    for path in [own, *imported(own)]:
        found = [(line, function) for declared, line, function in declarations(path) if declared == name]
        if found:
            return Path(path), next((line for line, function in found if function == builder), found[0][0])
    return None


@cache
def imported(path: str) -> list[str]:
    """Modules of the same paper that a module imports."""
    folder = path.rpartition("/")[0]
    names = [node.module for node in ast.walk(tree(path)) if isinstance(node, ast.ImportFrom) and node.module]
    return [f"{name.replace('.', '/')}.py" for name in names if name.rpartition(".")[0] == folder.replace("/", ".")]


@cache
def declarations(path: str) -> list[tuple[str, int, str]]:
    """Components that a module declares: name, line, and the function around it."""
    found = []
    for function in ast.walk(tree(path)):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            found += [(name, node.lineno, function.name) for name in declared(node)]
    return found


def declared(node: ast.AST) -> list[str]:
    match node:
        case ast.Assign(targets=[ast.Attribute(value=ast.Name("model"), attr=name)]):
            return [name]
        case ast.Call(func=ast.Attribute(attr=method), args=[ast.Constant(str(name)), *_]) if method in STATING:
            return [name]
        case ast.Assign(targets=[ast.Attribute(attr="_shares")]):  # X, or Y in its place
            return [one.value for one in ast.walk(node.value) if isinstance(one, ast.Constant)]
    return []


@cache
def tree(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"))


def resolve(app: Sphinx, env: BuildEnvironment, node: pending_xref, inner: nodes.Element) -> nodes.reference | None:
    if node["reftype"] != "declaration":
        return None
    uri = app.builder.get_relative_uri(node["refdoc"], page_name(Path(node["reftarget"])))
    return nodes.reference("", "", inner, internal=True, refuri=f"{uri}#line-{node['line']}")


# --- back to the equations ------------------------------------------------------------------------


class Carried(NamedTuple):
    """An equation of a page, and what carries it in the model that a function builds."""

    component: str
    builder: str
    path: Path
    line: int
    number: str


def carried(env: BuildEnvironment) -> defaultdict[str, list[Carried]]:
    """Return the equations of each page that its tables have."""
    if not hasattr(env, "carried_equations"):
        env.carried_equations = defaultdict(list)  # type: ignore[attr-defined]
    return env.carried_equations  # type: ignore[attr-defined, no-any-return]


def forget(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    carried(env).pop(docname, None)


def merge(app: Sphinx, env: BuildEnvironment, docnames: set[str], other: BuildEnvironment) -> None:
    carried(env).update({name: found for name, found in carried(other).items() if name in docnames})


def lead_back_from_reference(app: Sphinx, document: nodes.document, docname: str) -> None:
    """Link the components that a builder's description names."""
    for described in document.findall(desc):
        signature = next(described.findall(desc_signature))
        page = (signature.get("module") or "").replace("formulations.", "problems/").replace(".", "/")
        numbers = {
            one.component: one.number
            for one in reversed(carried(app.env).get(page, []))
            if one.builder == signature["fullname"]
        }
        for code in list(described.findall(nodes.literal)):
            name = COMPONENT.fullmatch(code.astext())
            if name and name[1] in numbers and not isinstance(code.parent, nodes.reference):
                uri = f"{app.builder.get_relative_uri(docname, page)}#{anchor(numbers[name[1]])}"
                reference = nodes.reference("", "", internal=True, refuri=uri)
                code.replace_self(reference)
                reference += code


def lead_back_from_source(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], document: nodes.document
) -> None:
    """Give the lines of a module's page their anchors, and those that carry equations links to them."""
    if not pagename.startswith("repository/formulations/") or "<pre>" not in context["body"]:
        return
    back: defaultdict[int, dict[str, list[str]]] = defaultdict(dict)
    for docname, found in sorted(carried(app.env).items()):
        for one in found:
            if page_name(one.path) == pagename and one.number not in back[one.line].setdefault(docname, []):
                back[one.line][docname].append(one.number)
    before, code = context["body"].split("<pre>", 1)
    shown = code.split("\n")
    for line, text in enumerate(shown[:-1], 1):
        links = ", ".join(equations(app, pagename, *found) for found in back[line].items())
        indent = re.match(" *", re.sub("<[^>]*>", "", text))[0]  # type: ignore[index]
        above = f'<span class="equations">{indent}see {links}</span>' if links else ""
        shown[line - 1] = f'<span id="line-{line}">{above}{text}</span>'
    context["body"] = before + "<pre>" + "\n".join(shown)


def equations(app: Sphinx, pagename: str, docname: str, numbers: list[str]) -> str:
    """Links to the equations of one page, with the problem's name where the module is not its own."""
    page, problem = app.builder.get_relative_uri(pagename, docname), Path(docname).name
    links = [f'<a href="{page}#{anchor(number)}">({escape(number)})</a>' for number in numbers]
    return ("" if problem == Path(pagename).stem else f"{escape(problem)} ") + ", ".join(links)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("doctree-read", read)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("missing-reference", resolve)
    app.connect("doctree-resolved", lead_back_from_reference)
    app.connect("html-page-context", lead_back_from_source)
    app.add_css_file("equations.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": 1}
