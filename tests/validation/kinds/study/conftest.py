"""What all tests of studies share."""

import contextlib
from collections.abc import Iterator

import pytest

from benchmarks.faults.studies import without_pictures


@pytest.fixture
def pictures() -> None:
    """For tests that want the report drawn."""


@pytest.fixture(autouse=True)
def _no_pictures(request: pytest.FixtureRequest) -> Iterator[None]:
    """Drawing takes most of a small study's time."""
    with contextlib.nullcontext() if "pictures" in request.fixturenames else without_pictures():
        yield
