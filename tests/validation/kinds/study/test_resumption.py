"""Studies: what they survive, and what they compute again."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from validation import Progress, StudyError, gap_study
from validation.kinds.study.cases import generate
from validation.kinds.study.report import finish

from ....processes import eventually
from .studies import CELLS, FORKED, SMALL, computed, log_of, without_times

pytestmark = FORKED


def test_the_same_call_again_computes_nothing(tmp_path: Path) -> None:
    first = gap_study(**SMALL, output=tmp_path)
    log = (tmp_path / "rows.jsonl").read_bytes()
    again = gap_study(**SMALL, output=tmp_path)
    assert (tmp_path / "rows.jsonl").read_bytes() == log
    pd.testing.assert_frame_equal(again.rows, first.rows)
    pd.testing.assert_frame_equal(again.summary(), first.summary())


@pytest.mark.slow
def test_only_what_changed_is_computed(tmp_path: Path) -> None:
    both = {"heuristics": ["server_fraction", "random"]}
    assert len(computed(tmp_path, **both)) == 9
    # More of the same: only what is new.
    assert computed(tmp_path, **both, sizes=[5, 6], count=3) == sorted(
        [("exact", 6), ("random", 6), ("server_fraction", 6)] * 3
    )
    # Those of the other size are out of the table, and that is told; so it is of whatever takes some out.
    with pytest.warns(UserWarning, match=r"sizes was \[5, 6\] and is \[5\]; count was 3 and is 4; 9 of its 18 runs"):
        assert computed(tmp_path, **both, count=4) == [("exact", 5), ("random", 5), ("server_fraction", 5)]
    with pytest.warns(UserWarning, match="heuristics was"):
        assert computed(tmp_path, heuristics=["gpu_fraction"]) == [("gpu_fraction", 5)] * 3
    # Another time limit may change what the exact side says, and nothing else.
    with pytest.warns(UserWarning, match="no part of this one"):
        assert computed(tmp_path, **both, time_limit=59) == [("exact", 5)] * 3
    # Another seed draws other instances; on given instances it is only what random heuristics draw.
    with pytest.warns(UserWarning, match="seed was 3 and is 4"):
        assert len(computed(tmp_path, **both, seed=4)) == 9
    given = [generate("aryl.reclaim", 3, 5, index) for index in range(3)]
    with pytest.warns(UserWarning, match="seed was 4 and is 3"):
        assert computed(tmp_path, **both, instances=given, count=None) == []
    with pytest.warns(UserWarning, match="seed was 3 and is 4; runs of another seed are no part of this one"):
        assert computed(tmp_path, **both, instances=given, count=None, seed=4) == [("random", 5)] * 3


def test_the_table_holds_what_was_asked_last(tmp_path: Path) -> None:
    assert len(gap_study(**SMALL, output=tmp_path).rows) == CELLS
    with pytest.warns(UserWarning, match="another study was here") as warned:
        narrow = gap_study(**{**SMALL, "count": 1}, heuristics=["random"], output=tmp_path)
    (said,) = [str(one.message) for one in warned]
    assert said.startswith(f"{tmp_path}: another study was here: ")
    assert (
        f"; count was 3 and is 1; {CELLS - 2} of its {CELLS} runs are no part of this one, and stay in the log" in said
    )
    assert list(narrow.rows["algorithm"]) == ["exact", "random"]
    assert len(log_of(tmp_path)) == CELLS


@pytest.mark.slow
def test_a_torn_last_line_is_dropped(tmp_path: Path) -> None:
    whole = gap_study(**SMALL, output=tmp_path)
    log = tmp_path / "rows.jsonl"
    content = log.read_bytes()
    lines = content.splitlines(keepends=True)
    for torn in (lines[-1][:-1], lines[-1][:40], lines[-1][:1]):
        log.write_bytes(b"".join(lines[:-1]) + torn)
        # A report can be made of what is there ...
        partly = finish(tmp_path)
        assert len(partly.rows) == CELLS - 1
        assert not partly.metadata["finished"]
        # ... and the study goes on with the one that is missing.
        study = gap_study(**SMALL, output=tmp_path)
        assert log.read_bytes().startswith(b"".join(lines[:-1]))
        assert len(log_of(tmp_path)) == CELLS
        pd.testing.assert_frame_equal(without_times(study.rows), without_times(whole.rows))


def test_a_log_that_is_one_torn_line(tmp_path: Path) -> None:
    gap_study(**SMALL, output=tmp_path)
    (tmp_path / "rows.jsonl").write_bytes(b'{"key": "ab')
    assert finish(tmp_path).rows.empty
    assert len(gap_study(**SMALL, output=tmp_path).rows) == CELLS


def altered(row: bytes, **entries: object) -> bytes:
    return json.dumps(json.loads(row) | entries).encode()


def of_the_other_side(row: bytes) -> str:
    return "declined" if json.loads(row)["algorithm"] == "exact" else "unbounded"


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "garbage": lambda row: bytes([200, 7]) + row[2:],
    "half a line": lambda row: row[: len(row) // 2],
    "NULs": lambda row: b"\0" * len(row),
    "NULs before a row": lambda row: b"\0" * 512 + row,
    "half a row before a row": lambda row: row[:40] + row,
    "a number": lambda row: b"3",
    "no row": lambda row: b'{"key": "a"}',
    "empty": lambda row: b"",
    "NaN": lambda row: row.replace(b'"size": 5', b'"size": NaN'),
    "nested": lambda row: b"[" * 100_000,
    "a long number": lambda row: b'{"key": ' + b"9" * 5000 + b"}",
    "value": lambda row: altered(row, value="abc"),
    "no value": lambda row: altered(row, value=None),
    "infinite": lambda row: altered(row, value=1e300).replace(b"1e+300", b"1e999"),
    "seconds": lambda row: altered(row, seconds=-1),
    "status": lambda row: altered(row, status="splendid"),
    "status of the other side": lambda row: altered(row, status=of_the_other_side(row)),
    "key": lambda row: altered(row, key="../x"),
    "file": lambda row: altered(row, file="javascript:alert(1)"),
    "algorithm": lambda row: altered(row, algorithm="mine", status="feasible"),
    "half a character": lambda row: altered(row, reason="\ud800"),
    "plan": lambda row: altered(row, plan=[1, 2]),
}
"""What may become of a line of a log."""


def test_damaged_lines_are_named_and_computed_again(tmp_path: Path) -> None:
    arguments = {**SMALL, "count": 12, "heuristics": ["random"], "output": tmp_path}
    whole = gap_study(**arguments)
    log = tmp_path / "rows.jsonl"
    lines = log.read_bytes().splitlines()
    damaged = [damage(line) for damage, line in zip(DAMAGE.values(), lines, strict=False)]
    kept = lines[len(damaged) :]
    assert len(kept) == 2
    log.write_bytes(b"\n".join([*damaged, *kept]) + b"\n")
    before = log.read_bytes()
    # A report is of what is there; it names the lines and leaves them where they are ...
    told: list[str] = []
    partly = finish(tmp_path, told.append)
    assert not any("\n" in line for line in told)
    for number, (line, how) in enumerate(zip(told, DAMAGE, strict=True), 1):
        assert line.startswith(f"{log}, line {number}: "), how
        assert "; passed over" in line
    assert len(partly.rows) == 2
    assert partly.metadata["damaged_lines"] == len(damaged)
    assert f"{len(damaged)} lines of the log" in partly.report.read_text(encoding="utf-8")
    assert log.read_bytes() == before
    # ... and the study sets them aside as they are, and computes their rows again, and no other.
    with pytest.warns(UserWarning, match="set aside in rows.damaged.jsonl") as warned:
        again = gap_study(**arguments)
    assert len(warned) == len(damaged)
    assert (tmp_path / "rows.damaged.jsonl").read_bytes() == b"\n".join(damaged) + b"\n"
    assert log.read_bytes().splitlines()[:2] == kept
    pd.testing.assert_frame_equal(without_times(again.rows), without_times(whole.rows))
    assert again.metadata["damaged_lines"] == len(damaged)
    assert len(log_of(tmp_path)) == 24


def test_a_directory_without_a_study_is_named(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=re.escape(f"{tmp_path} holds no study")):
        finish(tmp_path)
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    # A study can be begun there all the same.
    assert gap_study(**{**SMALL, "count": 1}, output=tmp_path).metadata["finished"]
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"


def test_a_row_that_counts_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: dict[int, int] = {}

    def fsync(handle: int) -> None:
        synced[os.fstat(handle).st_ino] = os.fstat(handle).st_size

    monkeypatch.setattr(os, "fsync", fsync)
    log = tmp_path / "rows.jsonl"
    counted: list[int] = []

    def look(progress: Progress) -> None:
        if log.exists():
            assert synced[log.stat().st_ino] == log.stat().st_size
            counted.append(progress.done)
            # Rows that arrived together were synced together.
            assert log.read_bytes().count(b"\n") >= progress.done

    gap_study(**SMALL, output=tmp_path, progress=look)
    assert counted == list(range(1, CELLS + 1))
    assert tmp_path.stat().st_ino in synced
    # What is written whole was on the disk before it took its name.
    for name in ("study.json", "results.parquet", "metadata.json", "report.html"):
        assert synced[(tmp_path / name).stat().st_ino] == (tmp_path / name).stat().st_size


def test_damaged_instances_are_written_anew(tmp_path: Path) -> None:
    arguments = {**SMALL, "count": 6, "heuristics": [], "output": tmp_path / "study"}
    whole = gap_study(**arguments)
    files = sorted((tmp_path / "study" / "instances").rglob("*.json"))
    contents = [file.read_bytes() for file in files]
    cut, bit, other, gone, folder, link = files
    cut.write_bytes(contents[0][: len(contents[0]) // 2])
    bit.write_bytes(contents[1].replace(b"1", b"0", 1))
    other.write_bytes(contents[0])
    gone.unlink()
    folder.unlink()
    folder.mkdir()
    link.rename(tmp_path / "elsewhere")
    link.symlink_to(tmp_path / "elsewhere")
    # A report is written all the same,
    pd.testing.assert_frame_equal(finish(tmp_path / "study").rows, whole.rows)
    # and the study computes nothing, and mends the files.
    assert computed(**arguments) == []
    assert [file.read_bytes() for file in files] == contents
    assert not link.is_symlink()


SCRIPT = """
import sys, time
import numpy as np
from instances.aryl.reclaim import ReclaimPlan
from validation import gap_study

import validation.kinds.study.report
validation.kinds.study.report.problem_pictures = lambda *_: []
validation.kinds.study.report.plans_side_by_side = lambda *_, **__: "<svg></svg>"

def slow(instance):
    time.sleep(0.03)
    return ReclaimPlan(servers=np.arange(instance.demand))

if __name__ == "__main__":
    gap_study("aryl.reclaim", seed=8, sizes=[5, 6], count=10, jobs=2, heuristics=[slow, "random"], output=sys.argv[1])
"""


@pytest.mark.slow
def test_killed_and_resumed(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    output = tmp_path / "study"
    log = output / "rows.jsonl"

    def lines() -> list[bytes]:
        return log.read_bytes().splitlines(keepends=True) if log.exists() else []

    before: list[bytes] = []
    for enough in (0, 5, 20):
        process = subprocess.Popen([sys.executable, str(script), str(output)])
        eventually(lambda n=enough: (output / "instances").exists() and len(lines()) >= n, meanwhile=process)
        process.kill()
        process.wait()
        now = lines()
        # Whole lines of the run before are still there.
        whole = [line for line in before if line.endswith(b"\n")]
        assert now[: len(whole)] == whole
        before = now
    assert 20 <= len(before) < 60
    subprocess.run([sys.executable, str(script), str(output)], check=True, timeout=120)
    rows = log_of(output)
    assert len(rows) == len({row["key"] for row in rows}) == 60
    table = pd.read_parquet(output / "results.parquet")
    assert len(table) == 60
    assert not table.duplicated(["instance", "algorithm"]).any()
    assert json.loads((output / "metadata.json").read_text(encoding="utf-8"))["finished"]
    assert len(list((output / "instances").rglob("*.json"))) == 20
    # Nobody could tell from the table that it was interrupted.
    uninterrupted = tmp_path / "uninterrupted"
    subprocess.run([sys.executable, str(script), str(uninterrupted)], check=True, timeout=120)
    pd.testing.assert_frame_equal(
        without_times(table), without_times(pd.read_parquet(uninterrupted / "results.parquet"))
    )
