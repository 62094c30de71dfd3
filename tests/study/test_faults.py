"""Studies: the faults of ``benchmarks/faults/studies.py``, a few times each."""

import pytest

from benchmarks.faults.studies import ASKED
from benchmarks.faults.tally import FAULTS

from .studies import FORKED

pytestmark = FORKED


@pytest.fixture(autouse=True)
def _few_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ASKED, "count", 2)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("studies.coordinator_killed", 2),
        ("studies.worker_killed", 2),
        ("studies.disk_full", 2),
        ("studies.tampered", 20),
        ("studies.foreign", 2),
    ],
)
def test_no_row_is_lost_doubled_or_changed(name: str, count: int) -> None:
    tally = FAULTS[name].harm(1, count)
    assert tally.tried == count
    assert sum(tally.outcomes.values()) > 0
    assert tally.fine, tally.wrong
