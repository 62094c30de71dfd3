"""The renderer of all pages: what is shown comes from the caller, how it is shown from ``templates/``.

Templates of HTML (``*.html.j2``) extend ``page.html.j2``, a file that asks the network for nothing, and take sections,
tables and pictures from ``parts.html.j2``.  Every word in them is escaped, and its control characters are written out.
Templates of Markdown (``*.md.j2``) have :func:`table_lines` for tables.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_eval_context, select_autoescape
from jinja2.nodes import EvalContext
from markupsafe import Markup, escape

from validation import formatting
from validation.formatting import printable

__all__ = ["Cell", "Table", "counted", "picture", "render", "table_lines"]

HERE = Path(__file__).parent

MOST_LINES = 200
"""Of a table in HTML: the rest is in a file beside the page."""


class Cell(NamedTuple):
    """Words of a table, the number that their column is sorted by, where they lead, and whether they are code."""

    words: str
    key: float = math.nan
    link: str = ""
    code: bool = False

    @property
    def sorted_by(self) -> str:
        """The number as JavaScript writes it; nothing for none."""
        return "" if math.isnan(self.key) else repr(float(self.key)).replace("inf", "Infinity")


@dataclass(frozen=True)
class Table:
    """A table of a page in HTML.

    Attributes
    ----------
    name : str
        What it is, for those who do not see where it stands.
    columns : tuple of str
    rows : list of list of Cell
        The first of them are shown where they are many.
    text : frozenset of str
        Columns of words, not of numbers.
    rest_in : str
        The file that has all rows.
    """

    name: str
    columns: tuple[str, ...]
    rows: list[list[Cell]]
    text: frozenset[str]
    rest_in: str

    @classmethod
    def of(
        cls,
        name: str,
        records: Iterable[Mapping[Any, Any]] | Iterable[Sequence[Any]],
        columns: Iterable[str] | Mapping[str, str | Callable[[Mapping[Any, Any]], object]],
        text: Iterable[str] = (),
        rest_in: str = "results.parquet",
    ) -> Table:
        """Make a table whose columns are entries of records, or what is made of each record.

        Parameters
        ----------
        name : str
        records : iterable of mapping or sequence
            A sequence has a part for each column.
        columns : iterable of str, or mapping
            Names of entries; or by heading the name of an entry or a function of the record. Cells stay, all else
            becomes words.
        text : iterable of str, optional
            Headings of the columns of words.
        rest_in : str, optional
        """
        parts = [*(columns.values() if isinstance(columns, Mapping) else columns)]

        def cells(record: Mapping[Any, Any] | Sequence[Any]) -> Iterable[object]:
            if isinstance(record, Mapping):
                return (record[part] if isinstance(part, str) else part(record) for part in parts)
            return record

        rows = [[_cell(one) for one in cells(record)] for record in records]
        return cls(name, tuple(columns), rows, frozenset(text), rest_in)


def _cell(content: object) -> Cell:
    return content if isinstance(content, Cell) else Cell("" if content is None else str(content))


def render(template: str | Path, /, **shown: Any) -> str:
    """Render a template.

    Parameters
    ----------
    template : str or Path
        Name of one of the library's, or path of another, which may draw on the library's and those beside it.
    **shown
        What is shown, by the names that the template has for it; one that is missing is an error.
    """
    path = Path(template)
    return _environment(path.parent if path.is_absolute() else HERE).get_template(path.name).render(shown)


def table_lines(columns: Sequence[str], rows: Iterable[Sequence[object]], numbers: Sequence[str] = ()) -> Iterator[str]:
    """Yield the lines of a table in Markdown, each as soon as its row is there.

    Parameters
    ----------
    columns : sequence of str
    rows : iterable of sequence
        What is no text is written as ``str`` has it; bars and line breaks are escaped.
    numbers : sequence of str, optional
        Columns that stand to the right.
    """
    yield _line(columns)
    yield _line(["---:" if name in numbers else "---" for name in columns])
    for row in rows:
        if len(row) != len(columns):
            raise ValueError(f"a row has {len(row)} cells for {len(columns)} columns: {row}")
        yield _line(row)


def _line(cells: Sequence[object]) -> str:
    return f"| {' | '.join(' '.join(str(cell).splitlines()).replace('|', chr(92) + '|') for cell in cells)} |"


def picture(svg: str, title: str) -> Markup:
    """Return an SVG as part of a page, where no other picture has its names."""
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
        return Markup()
    return Markup(f'<svg role="img" aria-label="{escape(printable(title))}" {head[1]}>{svg[head.end() :]}')


@functools.cache
def _environment(folder: Path) -> Environment:
    """Templates of a folder, and the library's."""
    found = Environment(
        loader=FileSystemLoader([folder, HERE / "templates"]),
        autoescape=select_autoescape(["html.j2"]),
        finalize=_shown,
        keep_trailing_newline=True,
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    found.filters |= {name: getattr(formatting, name) for name in formatting.__all__}
    found.filters |= {"counted": counted, "json": json.dumps, "picture": picture, "url": quote}
    script = _file("page.js")
    # The browser runs this script and no other, and fetches nothing, whatever words are in the page.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    found.globals |= {
        "MOST_LINES": MOST_LINES,
        "policy": Markup(policy),
        "script": script,
        "style": _file("page.css"),
        "table_lines": table_lines,
    }
    return found


@pass_eval_context
def _shown(context: EvalContext, value: Any) -> Any:
    """Words of a page as they are shown and not obeyed; nothing for what is missing."""
    if value is None:
        return ""
    return printable(str(value)) if context.autoescape and not isinstance(value, Markup) else value


def counted(times: int, what: str) -> str:
    """Return a number of things, such as "1 window" and "2 windows"."""
    return f"{times} {what}{'s' * (times != 1)}"


def _file(name: str) -> Markup:
    return Markup((HERE / name).read_text(encoding="utf-8"))
