"""The site: every link leads somewhere, and every page is whole, on a phone, on a desk, and without a network."""

import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

Browser = pytest.importorskip("playwright.sync_api", reason="Playwright comes with the test extra").Browser

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


# What stands beyond the screen's edge, unless it lies in something that scrolls.
BEYOND = """
[...document.querySelectorAll(".bd-article *")].filter(one => {
  const box = one.getBoundingClientRect();
  if (box.width === 0 || box.right <= innerWidth + 1) return false;
  for (let around = one; around.matches(".bd-article *"); around = around.parentElement)
    if (["auto", "scroll"].includes(getComputedStyle(around).overflowX)) return false;
  return true;
}).map(one => one.outerHTML.slice(0, 80))
"""

# Formulas that stand as they were typed, and those that MathJax cannot read.
UNSET = """
[...document.querySelectorAll(".bd-article .math")].filter(one =>
  !one.querySelector("mjx-container") || one.querySelector("mjx-merror")
).map(one => one.textContent.slice(0, 80))
"""

# Tables and code of which some is out of sight.
CUT = """
[...document.querySelectorAll(".bd-article table, .bd-article pre")].filter(one =>
  one.scrollWidth > one.clientWidth + 1
).map(one => one.textContent.trim().slice(0, 80))
"""


class Page(HTMLParser):
    """What a page links, and what in it can be linked."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.targets: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        self.targets |= {value for name in ("id", "name") if (value := found.get(name))}
        self.links |= {value for name in ("href", "src") if tag != "link" and (value := found.get(name))}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the site that SITE names, as .ci/run has built it, or build it without running the notebooks."""
    if "SITE" in os.environ:
        return Path(os.environ["SITE"])
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-n", "--keep-going", "-D", "nb_execution_mode=off"]
    done = subprocess.run(
        [*command, "-d", str(folder / "doctrees"), str(ROOT / "docs"), str(folder / "html")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "html"


def pages_of(site: Path) -> list[Path]:
    return sorted(path for path in site.rglob("*.html") if "_static" not in path.parts)


def test_every_link_of_the_site_leads_somewhere(site: Path) -> None:
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in pages_of(site)}
    assert len(pages) > 50
    missing = []
    for path, page in pages.items():
        for link in page.links:
            to = urlsplit(link)
            if to.scheme:
                continue
            target = (path.parent / unquote(to.path)).resolve() if to.path else path
            anchored = not to.fragment or target not in pages or unquote(to.fragment) in pages[target].targets
            if not (target.is_file() and anchored):
                missing.append(f"{path.relative_to(site)}: {link}")
    assert not missing


def test_every_page_is_whole_without_a_network(site: Path, browser: Browser) -> None:
    found: dict[str, list[str]] = {"wide": [], "unset": [], "cut": [], "asked": [], "said": []}
    context = browser.new_context()
    page = context.new_page()
    page.on("request", lambda request: request.url.startswith("file:") or found["asked"].append(request.url))
    page.on("pageerror", lambda error: found["said"].append(str(error)))
    with_formulas = 0
    for path in pages_of(site):
        name = str(path.relative_to(site))
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(path.as_uri())
        page.evaluate("window.MathJax?.startup?.promise")
        with_formulas += page.locator("mjx-container").count() > 0
        found["unset"] += [f"{name}: {one}" for one in page.evaluate(UNSET)]
        # The index of names, which nobody reads, and source of others' are as wide as they are.
        if name != "genindex.html" and not name.startswith("repository/"):
            found["cut"] += [f"{name}: {one}" for one in page.evaluate(CUT)]
        page.set_viewport_size({"width": 400, "height": 800})
        found["wide"] += [f"{name}: {one}" for one in page.evaluate(BEYOND)]
        if page.evaluate("document.documentElement.scrollWidth") > 400:
            found["wide"].append(name)
    context.close()
    assert found == {kind: [] for kind in found}
    assert with_formulas > 30


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("cite", "cite.html"),
        ("own data", "data.html"),
        ("my own data", "data.html"),
        ("my own heuristic", "tutorials/own-heuristic.html"),
        ("own problem", "adding-a-problem.html"),
        ("replays", "replay.html"),
    ],
)
def test_what_is_searched_for_is_found_first(asked: str, answer: str, site: Path, browser: Browser) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{(site / 'search.html').as_uri()}?q={asked.replace(' ', '+')}")
    first = page.locator("#search-results ul.search li a").first
    first.wait_for()
    assert (first.get_attribute("href") or "").partition("?")[0].partition("#")[0].removeprefix("./") == answer
    context.close()


def test_a_problem_s_page_leads_to_what_there_is_of_it_and_back(site: Path, browser: Browser) -> None:
    context = browser.new_context()
    page = context.new_page()
    start = (site / "problems" / "aryl" / "reclaim.html").as_uri()
    page.goto(start)
    picture = page.locator("article img").first
    assert picture.evaluate("one => one.naturalWidth") > 0
    links = [
        link
        for link in page.locator("article p a").evaluate_all("all => all.map(one => one.href)")
        if any(part in link for part in ("/gallery/", "/claims/", "/worst-cases", "/results/collection", "/growth"))
    ]
    assert len({link.partition("#")[0] for link in links}) >= 5
    for link in links:
        page.goto(link)
        if "/claims/index" in link:
            page.locator("article section section tbody tr:visible a").first.click()
        page.locator("article a[href*='problems/aryl/reclaim.html']").first.wait_for(state="attached")
    context.close()


def test_claims_are_found_by_their_words(site: Path, browser: Browser) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto((site / "claims" / "index.html").as_uri())
    rows = page.locator("article section section tbody tr:visible")
    whole = rows.count()
    page.get_by_label("Filter the rows by words").fill("proposition")
    found = rows.all_inner_texts()
    assert 0 < len(found) < whole
    assert all("proposition" in row.lower() for row in found)
    page.reload()
    assert rows.all_inner_texts() == found
    page.get_by_label("Filter the rows by words").fill("aryl.reclaim")
    assert 0 < rows.count() < whole
    page.get_by_label("Filter the rows by words").fill("")
    assert rows.count() == whole
    page.get_by_label("Verdict").select_option("refuted")
    refuted = rows.count()
    assert 0 < refuted < whole
    assert rows.locator("td:nth-child(2)").all_inner_texts() == ["refuted"] * refuted
    page.reload()
    assert rows.count() == refuted
    context.close()
