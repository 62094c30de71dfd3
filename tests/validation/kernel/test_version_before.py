"""Directories that version 0.3 has written, in ``version_0_3``, are read and gone on with."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from benchmarks.faults.studies import without_pictures
from validation import gap_study, replay_study
from validation.kernel.kind import Kind
from validation.kernel.store import is_whole, read_log, read_record
from validation.kinds.replays.records import REPLAYS
from validation.kinds.stored import kind_of
from validation.kinds.study.records import STUDY

from ..kinds.study.studies import FORKED

WRITTEN = Path(__file__).parent / "version_0_3"
ASKED: dict[str, dict[str, Any]] = {
    "study": {
        "problems": "aryl.reclaim",
        "seed": 3,
        "sizes": [4],
        "count": 2,
        "heuristics": ["random", "server_fraction"],
        "sweep": {"spread": [0.2, 0.8]},
        "jobs": 2,
    },
    "replay": {
        "traces": "poisson",
        "problem": "aryl.elastic_allocation",
        "policies": ["gandiva"],
        "length": 4,
        "gaps": 0,
        "offline": 0.0,
        "keep": 1,
        "jobs": 2,
    },
}
RUN = {"study": gap_study, "replay": replay_study}


@pytest.fixture(params=[STUDY, REPLAYS], ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param


@pytest.fixture
def written(kind: Kind, tmp_path: Path) -> Path:
    return Path(shutil.copytree(WRITTEN / kind.name, tmp_path / "old"))


def test_what_it_wrote_is_read(kind: Kind, written: Path) -> None:
    record, log = read_record(written, kind), read_log(written, kind)
    assert log.damaged == []
    assert {row["key"] for row in log.rows} == set(record.cells.numbers)
    assert all(is_whole(written, kind, row) for row in log.rows)
    found, finish = kind_of(written)
    assert found is kind
    with without_pictures():
        result = finish(written, pytest.fail)
    assert result.metadata["finished"]
    assert result.metadata["failed"] == 0


@FORKED
def test_it_is_gone_on_with_or_said_why_not(kind: Kind, written: Path) -> None:
    """Rows whose keys are those of today stay; that the others are computed again is said in a line."""
    before = read_record(written, kind)
    kept = (written / "rows.jsonl").read_bytes()
    # The first line is of other code, whatever today's is.
    first = next(iter(before.cells.numbers))
    altered = json.loads((written / kind.record).read_bytes())
    altered["cells"][0]["key"] = "0" * 64
    (written / kind.record).write_text(json.dumps(altered))
    (written / "rows.jsonl").write_bytes(kept.replace(first.encode(), b"0" * 64))
    with without_pictures(), pytest.warns(UserWarning, match="computed again") as told:
        result = RUN[kind.name](**ASKED[kind.name], output=written, progress=False)
    (line,) = {str(one.message) for one in told}
    after = read_record(written, kind)
    again = before.cells.numbers.keys() - {first} - after.cells.numbers.keys()
    runs = len(before.cells)
    assert f"{len(again) + 1} of its {runs} runs are computed again: " in line
    assert "the library's code has changed" in line
    assert "\n" not in line
    assert result.metadata["finished"]
    assert len(read_log(written, kind).rows) == runs + len(again) + 1
