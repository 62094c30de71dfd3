"""Studies: the faults of ``benchmarks/faults/studies.py``, a few times each; and the table of all faults."""

import os

import pytest

from benchmarks.faults.__main__ import main
from benchmarks.faults.studies import ASKED
from benchmarks.faults.tally import FAULTS, Fault, Tally

from .studies import FORKED

pytestmark = FORKED


@pytest.fixture(autouse=True)
def _few_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ASKED, "count", 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("studies.coordinator_killed", 2),
        ("studies.worker_killed", 2),
        ("studies.disk_full", 2),
        ("studies.tampered", 20),
        ("studies.foreign", 2),
        ("collection.killed", 4),
        ("collection.at_once", 4),
    ],
)
def test_no_row_is_lost_doubled_or_changed(name: str, count: int) -> None:
    tally = FAULTS[name].harm(1, count)
    assert tally.tried == count
    assert sum(tally.outcomes.values()) > 0
    assert tally.fine, tally.wrong


# --- the table ------------------------------------------------------------------------------------


def well(tally: Tally, seed: int, count: int) -> None:
    """Nothing goes wrong."""
    for _ in range(count):
        tally.begin()
        tally.count("fine")


def badly(tally: Tally, seed: int, count: int) -> None:
    """Something goes wrong."""
    tally.begin()
    tally.lost += 1
    tally.wrong.append(f"a row of seed {seed} is gone")


def dies(tally: Tally, seed: int, count: int) -> None:
    """The process ends."""
    tally.begin()
    os._exit(3)


@pytest.mark.parametrize(
    ("harm", "code", "cells", "told"),
    [
        (well, 0, "| a.kind | Nothing goes wrong | 5 | 5 fine | 0 | 0 | 0 | 0 | 0 |", "Wrong: nothing"),
        (badly, 1, "| a.kind | Something goes wrong | 1 |  | 1 | 0 | 0 | 0 | 0 |", "- a.kind: a row of seed 7 is gone"),
        (dies, 1, "| a.kind | The process ends | 0 |  | 0 | 0 | 0 | 1 | 0 |", "- a.kind: the process died: it exited"),
    ],
)
def test_the_table_tells_what_went_wrong(
    harm: object,
    code: int,
    cells: str,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(FAULTS, "a.kind", Fault("a.kind", 10, harm))  # type: ignore[arg-type]
    assert main(["a", "--seed", "7", "--share", "0.5"]) == code
    said = capsys.readouterr()
    assert cells in said.out
    assert told in said.out
    assert (code == 1) == ("a.kind: " in said.err)
