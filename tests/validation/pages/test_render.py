"""What pages are made of."""

import re
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from validation.pages.render import Cell, Table, picture, render, table_lines

PARTS = '{% from "parts.html.j2" import facts, figure, section, table %}'


def rendered(folder: Path, template: str, **shown: object) -> str:
    (folder / "own.html.j2").write_text(PARTS + template, encoding="utf-8")
    return render(folder / "own.html.j2", **shown)


def test_cells_are_sorted_by_their_numbers(tmp_path: Path) -> None:
    cells = [Cell("5 ms", 0.005), Cell("∞", float("inf")), Cell("–", float("nan")), "as it stands", None]
    shown = Table.of("Times", [{"time": cell} for cell in cells], ["time"])
    page = rendered(tmp_path, "{{ table(shown) }}", shown=shown)
    assert re.findall(r"<td(.*?)>(.*?)</td>", page) == [
        (' data-key="0.005"', "5 ms"),
        (' data-key="Infinity"', "∞"),
        ("", "–"),
        ("", "as it stands"),
        ("", ""),
    ]
    assert 'tabindex="0" aria-label="Times"' in page


def test_words_stay_words(tmp_path: Path) -> None:
    name = "\"><script>alert('1')</script>\x1b"
    records = [{name: name}, {name: Cell(name, 1, link=name)}, {name: Cell(name, code=True)}]
    template = """{% call section(name, id=name) %}{{ name }}{% endcall %}{{ table(shown) }}
        {{ facts({name: name}) }}{{ figure(name, name, "<svg viewBox='0 0 1 1' viewBox=\\"0 0 1 1\\"></svg>") }}"""
    page = rendered(tmp_path, template, name=name, shown=Table.of(name, records, [name], text=[name]))
    assert "<script" not in page
    assert "\x1b" not in page
    shown = "&#34;&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;\\x1b"
    assert page.count("script&gt;alert") == page.count(shown) == 16
    whole = '{% extends "page.html.j2" %}{% block title %}{{ name }}{% endblock %}'
    assert f"<title>{shown}</title>" in rendered(tmp_path, whole, name=name)


def test_what_is_not_given_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UndefinedError, match="'name' is undefined"):
        rendered(tmp_path, "{{ name }}")


def test_tables_in_markdown() -> None:
    lines = table_lines(["name", "gaps"], [("a|b", 1), ("two\nlines", "0%")], numbers=["gaps"])
    assert list(lines) == ["| name | gaps |", "| --- | ---: |", r"| a\|b | 1 |", "| two lines | 0% |"]
    with pytest.raises(ValueError, match="a row has 1 cells for 2 columns"):
        list(table_lines(["name", "gaps"], [("alone",)]))


def test_pictures_of_a_page_do_not_share_names() -> None:
    svg = (
        '<?xml version="1.0"?>\n<svg xmlns:xlink="x" width="9pt" viewBox="0 0 9 9"><metadata>Matplotlib</metadata>'
        '<style type="text/css">*{stroke: red}</style><g id="axes_1"><path id="m" d="M 1.23456 2"/></g>'
        '<g clip-path="url(#c)"><use xlink:href="#m" x="1.005" style="fill: none; stroke: none"/></g>'
        '<clipPath id="c"/><text transform="scale(0.015625)">0.123456; axes</text></svg>'
    )
    one, other = picture(svg, "one"), picture(svg.replace("0.123456", "0.2"), "one")
    names = [set(re.findall(r' id="(\w+)"', shown)) for shown in (one, other)]
    assert len(names[0]) == len(names[1]) == 2
    assert not names[0] & names[1]
    for shown, own in zip((one, other), names, strict=True):
        assert set(re.findall(r'(?:href="|url\()#(\w+)', shown)) == own
    assert one.startswith('<svg role="img" aria-label="one" viewBox="0 0 9 9">')
    assert "0.123456; axes" in one
    assert 'd="M 1.23 2"' in one
    assert "scale(0.015625)" in one
    assert not re.search("metadata|<style|axes_1|xlink", one)
