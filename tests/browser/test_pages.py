"""Pages of studies, replays and hunts in a browser: what can be done with them, and by whom."""

import re
from pathlib import Path

import pytest

from .conftest import Opened

axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe comes with the test extra")
api = pytest.importorskip("playwright.sync_api", reason="Playwright comes with the test extra")
Page, expect = api.Page, api.expect

pytestmark = pytest.mark.slow

PAGES = ["report", "replays", "hunt", "comparison"]
PHONE = {"width": 400, "height": 800}


@pytest.fixture(params=PAGES)
def file(request: pytest.FixtureRequest) -> Path:
    """Each kind of page."""
    path: Path = request.getfixturevalue(request.param)
    return path


def column(page: Page, table: str, number: int) -> list[str]:
    return page.locator(f"[aria-label='{table}'] tbody tr:visible td:nth-child({number})").all_inner_texts()


def as_number(gap: str) -> float:
    return float("inf") if gap == "∞" else float(gap.rstrip("%").replace(",", ""))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [{"width": 1200, "height": 900}, PHONE], ids=["desk", "phone"])
def test_rules_of_accessibility(file: Path, scheme: str, viewport: dict[str, int], opened: Opened) -> None:
    with opened(file, color_scheme=scheme, viewport=viewport) as page:
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        found = axe.Axe().run(page).response["violations"]
        assert [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found] == []


def test_a_phone_scrolls_tables_and_not_the_page(file: Path, opened: Opened) -> None:
    with opened(file, viewport=PHONE) as page:
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
        wider = page.evaluate(
            "[...document.querySelectorAll('.wide')].filter((one) => one.scrollWidth > one.clientWidth)"
        )
        assert wider
        assert page.evaluate("[...document.querySelectorAll('.wide')].every((one) => one.tabIndex === 0)")


def test_dark_is_dark(file: Path, opened: Opened) -> None:
    brightness = "Math.max(...getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number))"
    with opened(file, color_scheme="dark") as page:
        assert page.evaluate(brightness) < 60
    with opened(file, color_scheme="light") as page:
        assert page.evaluate(brightness) == 255


def test_tables_are_sorted_by_what_their_cells_are_worth(report: Path, opened: Opened) -> None:
    table = "Gaps and times of aryl.elastic_allocation"
    with opened(report) as page:
        head = page.locator(f"[aria-label='{table}'] th").filter(has_text="gap, worst")
        at = 1 + page.locator(f"[aria-label='{table}'] th").all_inner_texts().index(head.inner_text())
        before = [as_number(gap) for gap in column(page, table, at)]
        head.get_by_role("button").focus()
        page.keyboard.press("Enter")
        assert [as_number(gap) for gap in column(page, table, at)] == sorted(before) != before
        assert head.get_attribute("aria-sort") == "ascending"
        head.get_by_role("button").click()
        assert [as_number(gap) for gap in column(page, table, at)] == sorted(before, reverse=True)
        assert head.get_attribute("aria-sort") == "descending"
        page.locator(f"[aria-label='{table}'] th").filter(has_text="heuristic").get_by_role("button").click()
        names = column(page, table, 3)
        assert names == sorted(names)
        assert head.get_attribute("aria-sort") is None


def test_times_are_sorted_over_their_units(report: Path, opened: Opened) -> None:
    units = {"µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
    with opened(report) as page:
        table = "Gaps and times of aryl.reclaim"
        # Two of a digit less could be told in either order.
        page.locator(f"[aria-label='{table}'] th").filter(has_text="median time, exact").get_by_role("button").click()
        found = [one.split() for one in column(page, table, page.locator(f"[aria-label='{table}'] th").count())]
        seconds = [float(time) * units[unit] for time, unit in found]
        assert seconds == sorted(seconds)


def test_rows_are_filtered_by_words(report: Path, opened: Opened) -> None:
    table = "Each heuristic at a glance"
    with opened(report) as page:
        every = column(page, table, 2)
        box = page.get_by_label("Filter").first
        box.fill("aryl.reclaim RANDOM")
        assert column(page, table, 2) == ["random"]
        expect(page.locator(".filter output").first).to_have_text(f"1 of {len(every)} rows")
        box.fill("no such words")
        assert column(page, table, 2) == []
        box.fill("")
        assert column(page, table, 2) == every


def test_a_worst_case_is_one_click_away(report: Path, opened: Opened) -> None:
    with opened(report) as page:
        row = page.locator("[aria-label='Each heuristic at a glance'] tr").filter(has_text="gandiva")
        folded = page.locator("details").filter(has_text="gandiva: a gap of")
        picture = folded.get_by_role("img")
        expect(picture).not_to_be_visible()
        row.get_by_role("link", name=re.compile("%")).click()
        expect(picture).to_be_visible()
        expect(picture).to_be_in_viewport()
        assert {"gandiva", "optimal"} <= set(picture.locator("text").all_text_contents())


def test_a_permalink_leads_to_each_section(report: Path, opened: Opened) -> None:
    with opened(report) as page:
        links = page.locator(".permalink")
        titles = page.locator("h2, h3").count()
        assert links.count() == titles >= 8
        places = [str(link.get_attribute("href")) for link in links.all()]
        worst = str(page.locator("[aria-label='Each heuristic at a glance'] td a").last.get_attribute("href"))
    assert len(set(places)) == titles
    for place in (places[-1], worst):
        with opened(report, place, viewport=PHONE) as page:
            expect(page.locator(f"[id='{place[1:]}']")).to_be_in_viewport()


def test_a_place_that_is_none_is_no_harm(report: Path, opened: Opened) -> None:
    with opened(report, "#%E0%A4%A") as page:
        assert page.locator("th button").count() > 0


def test_values_are_told_to_pointer_and_keyboard(report: Path, opened: Opened) -> None:
    with opened(report) as page:
        told = page.get_by_role("status").last
        plot = page.get_by_role("img", name="Distribution of gaps of aryl.reclaim")
        plot.scroll_into_view_if_needed()
        plot.locator(".values circle").first.hover(force=True)
        expect(told).to_have_text(re.compile(r": a gap of at most .* of the instances$"))
        page.mouse.move(0, 0)
        expect(told).to_be_empty()
        plot.focus()
        page.keyboard.press("ArrowRight")
        first = told.inner_text()
        page.keyboard.press("End")
        last = told.inner_text()
        assert first != last
        assert re.search(r": a gap of at most .* of the instances$", last)
        page.keyboard.press("Escape")
        expect(told).to_be_empty()


def test_paper_shows_what_is_folded(report: Path, opened: Opened) -> None:
    a4 = {"width": 718, "height": 1000}  # without its margins
    with opened(report, color_scheme="dark", viewport=a4) as page:
        page.emulate_media(media="print")
        assert page.evaluate("document.documentElement.scrollWidth") == a4["width"]
        pictures = page.locator("details").get_by_role("img")
        assert pictures.count() > 3
        for picture in pictures.all():
            expect(picture).to_be_visible()
        expect(page.get_by_text("oracle disagreement", exact=True)).to_be_visible()
        expect(page.get_by_label("Filter").first).not_to_be_visible()
        page.emulate_media(media="screen")
        expect(pictures.first).not_to_be_visible()


def test_all_is_there_without_javascript(report: Path, opened: Opened) -> None:
    with opened(report, java_script_enabled=False) as page:
        expect(page.get_by_role("img", name="Distribution of gaps of aryl.reclaim")).to_be_visible()
        expect(page.locator("[aria-label='Each heuristic at a glance'] tbody tr").first).to_be_visible()
        first = page.locator(".values title").first.text_content()
        assert first
        assert re.search(r": a gap of at most .* of the instances$", first)
        page.locator("details summary").last.click()
        expect(page.locator("details").last.get_by_role("img").first).to_be_visible()


def test_words_of_others_are_not_obeyed(report: Path, tmp_path: Path, opened: Opened) -> None:
    """Even where they are not escaped."""
    words = "<script>document.title = 'taken'</script><img src='https://example.org/' onerror='document.title = 1'>"
    page_of_another = tmp_path / "report.html"
    page_of_another.write_text(report.read_text(encoding="utf-8").replace("<h1>", f"{words}<h1>"), encoding="utf-8")
    with pytest.raises(AssertionError, match="Content Security Policy"), opened(page_of_another) as page:
        assert page.title().startswith("Optimality gaps")
