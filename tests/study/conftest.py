"""What all tests of studies share."""

import pytest


@pytest.fixture
def pictures() -> None:
    """For tests that want the report drawn."""


@pytest.fixture(autouse=True)
def _no_pictures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes most of a small study's time."""
    if "pictures" not in request.fixturenames:
        monkeypatch.setattr("validation.study.report.problem_pictures", lambda rows: [])
        monkeypatch.setattr("validation.study.report.plans_side_by_side", lambda *_: "")
