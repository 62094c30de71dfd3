"""Settings that all tests share."""

import os
import signal
from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from formulations.engine.external import SolverNotFound
from validation.kernel.walls import lost, standing

from .effort import EFFORT

settings.register_profile(
    "suite",
    deadline=None,
    derandomize=True,
    max_examples=round(30 * EFFORT),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("suite")

# Started in the background, or under nohup, the tests have signals ignored, and so would the commands that they
# interrupt.
for _number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)


def pytest_configure(config: pytest.Config) -> None:
    """Where walls are missing every study and command says so, which is nothing that a test is about."""
    if lost(standing()):
        config.addinivalue_line("filterwarnings", "ignore:not every wall")


SOLVERS = all(map(find_spec, ("pyscipopt", "ortools")))
"""Whether the solvers of the test extra are there."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None]:
    """Skip what asks a solver that comes with the test extra, where that is not installed."""
    try:
        return (yield)
    except SolverNotFound as error:
        if SOLVERS:
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def data() -> Path:
    """Folder of the papers' public data, as ``docs/data.md`` lays it out."""
    folder = Path(os.environ.get("SCHEDULING_DATA", Path(__file__).parents[1] / ".." / "shared" / "data")).resolve()
    if not folder.is_dir():
        pytest.skip(f"no public data: {folder} is missing; set SCHEDULING_DATA (see docs/data.md)")
    return folder
