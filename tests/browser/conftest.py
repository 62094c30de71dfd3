"""Pages as a browser shows them: Debian's Chromium, by Playwright."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

import formulations
from heuristics.aryl.elastic_allocation import gandiva
from instances.aryl.elastic_allocation import two_elastic_jobs
from validation import compare_studies, gap_study, replay_study
from validation.kernel.gaps import gap_to
from validation.kinds.study.comparison import page
from validation.kinds.witness import Judged, Witness

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
# What works here works without a network.
ARGUMENTS += ["--host-resolver-rules=MAP * ~NOTFOUND"]

Opened: TypeAlias = "Callable[..., AbstractContextManager[Page]]"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    api = pytest.importorskip("playwright.sync_api", reason="Playwright comes with the test extra")
    # Playwright keeps an event loop running, in which no other module's test could start one.
    chromium = shutil.which("chromium")
    if chromium is None:
        # On Linux .ci/run has put it there.
        assert "CI" not in os.environ or sys.platform != "linux", "needs chromium (apt-get install chromium)"
        pytest.skip("needs chromium (apt-get install chromium)")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=[*ARGUMENTS, "--disable-sync"])
        yield started
        started.close()


@pytest.fixture
def opened(browser: Browser) -> Opened:
    """Opens a page; at the end it must not have complained, nor asked for anything but itself."""

    @contextmanager
    def open_page(file: Path, place: str = "", **options: Any) -> Iterator[Page]:
        context = browser.new_context(**options)
        try:
            page = context.new_page()
            complaints: list[str] = []
            asked: set[str] = set()
            page.on("console", lambda message: complaints.append(message.text))
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.on("request", lambda request: asked.add(request.url.partition("#")[0]))
            page.goto(file.as_uri() + place)
            yield page
            assert not complaints
            assert asked == {file.as_uri()}
        finally:
            context.close()

    return open_page


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a small study."""
    problems = ["aryl.reclaim", "aryl.elastic_allocation"]
    return gap_study(problems, seed=1, sizes=[4, 6], count=3, output=tmp_path_factory.mktemp("study")).report


@pytest.fixture(scope="session")
def comparison(report: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small study beside one of other sizes and numbers."""
    problems = ["aryl.reclaim", "aryl.elastic_allocation"]
    other = gap_study(problems, seed=1, sizes=[4], count=4, output=tmp_path_factory.mktemp("other"))
    file = tmp_path_factory.mktemp("comparison") / "comparison.html"
    file.write_text(page(compare_studies(report.parent, other)), encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def replays(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of some replays."""
    return replay_study(
        "poisson",
        problem="aryl.elastic_allocation",
        policies=["exact", "gandiva"],
        length=6,
        jobs=2,
        seeds=2,
        ties=2,
        gaps="all",
        offline=2.0,
        progress=False,
        output=tmp_path_factory.mktemp("replays") / "study",
    ).report


@pytest.fixture(scope="session")
def hunt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a bad instance."""
    instance = two_elastic_jobs()
    plan, best = gandiva(instance), formulations.solve(instance)
    assert best.plan is not None
    value, optimum = instance.objective(plan), instance.objective(best.plan)
    judged = Judged(instance, plan, value, best.plan, optimum, gap_to(value, optimum))
    witness = Witness("aryl.elastic_allocation", "gandiva", judged, judged.gap, "hand", 1, 1, ())
    return witness.save(tmp_path_factory.mktemp("hunt")).with_suffix(".html")
