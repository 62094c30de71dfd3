"""The site: every link leads somewhere, and no page is wider than a phone."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import Browser

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


def test_no_page_of_the_site_is_wider_than_a_phone(site: Path, browser: Browser) -> None:
    wide, said = [], []
    context = browser.new_context(viewport={"width": 400, "height": 800})
    page = context.new_page()
    # The formulas' script is the only thing that the site takes from elsewhere.
    asked: set[str] = set()
    page.route(re.compile("^https?:"), lambda route: (asked.add(route.request.url), route.abort()))
    page.on("pageerror", lambda error: said.append(str(error)))
    for path in pages_of(site):
        page.goto(path.as_uri())
        beyond = page.evaluate(BEYOND)
        if beyond or page.evaluate("document.documentElement.scrollWidth") > 400:
            wide.append((str(path.relative_to(site)), beyond))
    context.close()
    assert not wide
    assert not said
    assert all("mathjax" in url for url in asked)


def test_claims_are_found_by_their_words(site: Path, browser: Browser) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.route(re.compile("^https?:"), lambda route: route.abort())
    page.goto((site / "claims" / "index.html").as_uri())
    rows = page.locator("article section section tbody tr:visible")
    whole = rows.count()
    page.get_by_label("Filter the rows by words").fill("proposition")
    found = rows.all_inner_texts()
    assert 0 < len(found) < whole
    assert all("proposition" in row.lower() for row in found)
    page.reload()
    assert rows.all_inner_texts() == found
    page.get_by_label("Filter the rows by words").fill("")
    assert rows.count() == whole
    context.close()
