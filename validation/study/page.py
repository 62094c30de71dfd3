"""What the pages of studies share: frame and style, sections, tables, pictures, and where the numbers come from.

A page is one file that asks the network for nothing.  All of it is there without JavaScript, which sorts and filters
tables and tells the values of plots (``page.js``).
"""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, NamedTuple

import numpy as np

from validation.formatting import duration, printable

__all__ = [
    "MOST_LINES",
    "Cell",
    "Markup",
    "document",
    "escape",
    "figure",
    "link",
    "picture",
    "provenance_section",
    "scrolled",
    "section",
    "table",
]

MOST_LINES = 200
"""Of a table: the rest is in a file beside the page."""


class Markup(str):
    """HTML, among words that are none."""

    __slots__ = ()


class Cell(NamedTuple):
    """Words of a table, and the number that their column is sorted by."""

    words: str
    key: float


def document(title: str, body: str) -> str:
    """A whole page.

    Parameters
    ----------
    title : str
        What the browser calls it.
    body : str
        HTML, which begins with the heading of the first order.
    """
    style, script = _file("page.css"), _file("page.js")
    # The browser runs this script and no other, and fetches nothing, whatever words are in the page.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>{style}</style></head>
<body><main>
{body}
</main>
<script>{script}</script></body></html>
"""


@functools.cache
def _file(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="utf-8")


def section(title: str, content: str, *, id: str, level: int = 2) -> str:
    """A heading that links to itself, and what stands under it.

    Parameters
    ----------
    title : str
    content : str
        HTML.
    id : str
        Names the section in links, once in a page.
    level : int, optional
        Order of the heading.
    """
    words, mark = escape(title), escape(id)
    permalink = f'<a class="permalink" href="#{mark}" aria-label="Link to this section: {words}">#</a>'
    return f'<section id="{mark}"><h{level}>{words}{permalink}</h{level}>\n{content}</section>\n'


def figure(title: str, reading: str, svg: str) -> str:
    """A picture, what it is and how it is read."""
    return f"<figure>{picture(title, svg)}<figcaption><b>{escape(title)}.</b> {escape(reading)}</figcaption></figure>\n"


def picture(title: str, svg: str) -> str:
    """An SVG as part of a page, of whose names each is the picture's own."""
    of_page = hashlib.sha256(svg.encode()).hexdigest()[:8]
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    used = set(re.findall(r"(?:href=\"|url\()#([^\")]+)", svg))

    def without_waste(found: re.Match[str]) -> str:
        tag = re.sub(r' id="([^"]*)"', lambda at: f' id="{of_page}{at[1]}"' if at[1] in used else "", found[0])
        tag = re.sub(r"(href=\"|url\()#", rf"\1#{of_page}", tag)
        # Hundredths of a point cannot be seen.
        tag = re.sub(r' (?:d|x|y|width|height)="[^"]*"', lambda at: re.sub(r"(\.\d\d)\d+", r"\1", at[0]), tag)
        return tag.replace("xlink:href", "href").replace("; ", ";")

    svg = re.sub(r"<[^<>]*>", without_waste, svg)
    head = re.match(r'<svg[^>]*?(viewBox="[^"]*")[^>]*>', svg)
    if head is None:
        return ""
    return f'<svg role="img" aria-label="{escape(title)}" {head[1]}>{svg[head.end() :]}'


def provenance_section(meta: Mapping[str, Any], tables: Sequence[str]) -> str:
    """Where the numbers of a page come from.

    Parameters
    ----------
    meta : mapping
        Metadata of the study: what ran, and what was asked.
    tables : sequence of str
        Files beside the page that hold its numbers.
    """
    versions = ", ".join(f"{name} {v}" for name, v in meta["versions"].items())
    machine = meta["machine"]
    runs = "".join(f"<li>{escape(_run_told(run))}; {escape(run['machine']['processor'])}</li>" for run in meta["runs"])
    facts = {
        "Command": f"<code>{escape(meta['command'])}</code>",
        "Run": escape(_run_told(meta)),
        **({"All runs": f"<details><summary>{len(meta['runs'])}</summary><ul>{runs}</ul></details>"} if runs else {}),
        "Versions": escape(versions),
        "Commit": escape(meta["commit"] or "not in a checkout"),
        "Machine": escape(f"{machine['processor']}, {machine['cores']} cores, {machine['system']}"),
        "Asked": f"<code>{escape(json.dumps(meta['asked']))}</code>",
        "Table": ", ".join(link(name, name) for name in tables),
    }
    lines = "".join(f"<dt>{name}</dt><dd>{fact}</dd>" for name, fact in facts.items())
    return section("Where these numbers come from", f"<dl>{lines}</dl>", id="provenance")


def _run_told(run: Mapping[str, Any]) -> str:
    shard = f"shard {run['shard']}, " if run["shard"] else ""
    took = f" in {duration(run['seconds'])}" if run["seconds"] is not None else ""
    return f"{shard}started {run['started']}{took}, {run['jobs']} worker process{'es' * (run['jobs'] > 1)}"


def table(
    header: Sequence[str],
    lines: Sequence[Sequence[str | Cell]],
    *,
    name: str,
    text_columns: tuple[int, ...],
    rest_in: str = "results.parquet",
) -> str:
    """A table of words, the first lines of it where it is long; the rest is in a file.

    Parameters
    ----------
    header : sequence of str
    lines : sequence of sequence of str or Cell
    name : str
        What it is, for those who do not see where it stands.
    text_columns : tuple of int
        Columns of words, not of numbers.
    rest_in : str, optional
        The file.
    """

    def cell(tag: str, column: int, content: str | Cell) -> str:
        attributes = ' class="text"' if column in text_columns else ""
        if tag == "th":
            attributes += ' scope="col"'
        if isinstance(content, Cell):
            content, key = content
            # As JavaScript writes numbers.
            attributes += "" if np.isnan(key) else f' data-key="{repr(float(key)).replace("inf", "Infinity")}"'
        return f"<{tag}{attributes}>{escape(content)}</{tag}>"

    # A column without a name is none to sort by, and no heading.
    head = "".join(cell("th" if title else "td", i, title) for i, title in enumerate(header))
    shown = lines[:MOST_LINES]
    body = "".join("<tr>" + "".join(cell("td", i, c) for i, c in enumerate(line)) + "</tr>\n" for line in shown)
    rest = f"<p>The first {MOST_LINES} of {len(lines):,}; all are in {escape(rest_in)}.</p>" if lines != shown else ""
    content = f"<table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>"
    return f"{scrolled(name, content)}{rest}"


def scrolled(name: str, content: str, kind: str = "wide") -> str:
    """What may be wider than a phone: it is scrolled by itself, with the keyboard too."""
    return f'<div class="{kind}" role="group" tabindex="0" aria-label="{escape(name)}">{content}</div>'


def link(target: str, words: str) -> Markup:
    """Words that lead somewhere."""
    return Markup(f'<a href="{escape(target)}">{escape(words)}</a>')


def escape(value: Any) -> Markup:
    """Words as HTML; nothing for what is missing."""
    if isinstance(value, Markup):
        return value
    return Markup(html.escape(printable(str(value))) if value is not None and value is not np.nan else "")
