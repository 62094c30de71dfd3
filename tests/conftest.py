"""Settings that all tests share."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "suite", deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")


@pytest.fixture(scope="session")
def data() -> Path:
    """Folder of the papers' public data, as ``docs/data.md`` lays it out."""
    folder = Path(os.environ.get("SCHEDULING_DATA", Path(__file__).parents[1] / ".." / "shared" / "data")).resolve()
    if not folder.is_dir():
        pytest.skip(f"no public data: {folder} is missing; set SCHEDULING_DATA (see docs/data.md)")
    return folder
