"""What the pages of studies are made of."""

import re

from validation.study.page import Cell, document, escape, picture, section, table


def test_cells_are_sorted_by_their_numbers() -> None:
    cells = [Cell("5 ms", 0.005), Cell("∞", float("inf")), Cell("–", float("nan")), "as it stands"]
    page = table(["time"], [[cell] for cell in cells], name="Times", text_columns=())
    assert re.findall(r"<td(.*?)>(.*?)</td>", page) == [
        (' data-key="0.005"', "5 ms"),
        (' data-key="Infinity"', "∞"),
        ("", "–"),
        ("", "as it stands"),
    ]
    assert 'tabindex="0" aria-label="Times"' in page


def test_words_stay_words() -> None:
    name = "\"><script>alert('1')</script>\x1b"
    page = section(name, "", id="here") + table([name], [[name], [Cell(name, 1)]], name=name, text_columns=(0,))
    page += picture(name, "<svg viewBox='0 0 1 1' viewBox=\"0 0 1 1\"></svg>")
    assert "<script" not in page
    assert page.count(str(escape(name))) == 7
    assert "<title>&quot;&gt;&lt;script" in document(name, "")


def test_pictures_of_a_page_do_not_share_names() -> None:
    svg = (
        '<?xml version="1.0"?>\n<svg xmlns:xlink="x" width="9pt" viewBox="0 0 9 9"><metadata>Matplotlib</metadata>'
        '<style type="text/css">*{stroke: red}</style><g id="axes_1"><path id="m" d="M 1.23456 2"/></g>'
        '<g clip-path="url(#c)"><use xlink:href="#m" x="1.005" style="fill: none; stroke: none"/></g>'
        '<clipPath id="c"/><text transform="scale(0.015625)">0.123456; axes</text></svg>'
    )
    one, other = picture("one", svg), picture("one", svg.replace("0.123456", "0.2"))
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
