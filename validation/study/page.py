"""What the pages of studies share: their style, tables, words that are escaped, and where the numbers come from."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from validation.formatting import duration, printable

__all__ = ["CSS", "MOST_LINES", "Markup", "escape", "figure", "link", "provenance_section", "table"]

MOST_LINES = 200
"""Of a table: the rest is in a file beside the page."""


class Markup(str):
    """HTML, among words that are none."""

    __slots__ = ()


def figure(title: str, reading: str, svg: str) -> str:
    """A picture, what it is and how it is read."""
    source = "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
    return f'<figure><img alt="{escape(title)}" src="{source}"><figcaption>{escape(reading)}</figcaption></figure>'


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
    return f"<section><h2>Where these numbers come from</h2><dl>{lines}</dl></section>"


def _run_told(run: Mapping[str, Any]) -> str:
    shard = f"shard {run['shard']}, " if run["shard"] else ""
    took = f" in {duration(run['seconds'])}" if run["seconds"] is not None else ""
    return f"{shard}started {run['started']}{took}, {run['jobs']} worker process{'es' * (run['jobs'] > 1)}"


def table(
    header: Sequence[str],
    lines: Sequence[Sequence[str]],
    *,
    text_columns: tuple[int, ...],
    rest_in: str = "results.parquet",
) -> str:
    """A table of words, the first lines of it where it is long; the rest is in a file."""

    def cell(tag: str, column: int, content: str) -> str:
        kind = ' class="text"' if column in text_columns else ""
        return f"<{tag}{kind}>{escape(content)}</{tag}>"

    head = "".join(cell("th", i, name) for i, name in enumerate(header))
    shown = lines[:MOST_LINES]
    body = "".join("<tr>" + "".join(cell("td", i, c) for i, c in enumerate(line)) + "</tr>" for line in shown)
    rest = f"<p>The first {MOST_LINES} of {len(lines):,}; all are in {escape(rest_in)}.</p>" if lines != shown else ""
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{rest}'


def link(target: str, words: str) -> Markup:
    """Words that lead somewhere."""
    return Markup(f'<a href="{escape(target)}">{escape(words)}</a>')


def escape(value: Any) -> Markup:
    """Words as HTML; nothing for what is missing."""
    if isinstance(value, Markup):
        return value
    return Markup(html.escape(printable(str(value))) if value is not None and value is not np.nan else "")


CSS = """
body{font:15px/1.5 system-ui,sans-serif;color:#1b1f24;max-width:1180px;margin:2rem auto;padding:0 1.2rem}
h1{font-size:1.7rem;margin:0 0 .4rem} h2{font-size:1.25rem;margin:2.4rem 0 .3rem;border-bottom:1px solid #d0d7de}
h3{font-size:1rem;margin:1.2rem 0 .3rem} a{color:#0b5cad} code{font-size:.86em}
p{max-width:75ch} details p{margin:.6rem 0} summary{cursor:pointer;color:#0b5cad}
.good{color:#116329;font-weight:600} .bad{color:#b00020;font-weight:600} section.bad h2{border-color:#b00020}
ul.contents{padding-left:1.2rem;margin:.4rem 0 1rem}
.wide{overflow-x:auto} table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.6rem 0;font-size:.93em}
th,td{padding:.22rem .55rem;text-align:right;border-bottom:1px solid #e4e8ec;white-space:nowrap}
th{border-bottom:2px solid #aab2bb;font-weight:600;white-space:normal;vertical-align:bottom}
.text{text-align:left} td.text{white-space:normal}
.legend span{margin-right:1.1rem;font-size:.9em;white-space:nowrap}
.legend b{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin-right:.35em;vertical-align:-.05em}
.pictures{display:grid;grid-template-columns:repeat(auto-fit,minmax(430px,1fr));gap:.6rem 1.4rem;margin:1rem 0}
figure{margin:0} img{width:100%;height:auto} figcaption{font-size:.85em;color:#57606a;max-width:60ch}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem;font-size:.9em} dt{color:#57606a} dd{margin:0}
dd code{overflow-wrap:anywhere}
"""
