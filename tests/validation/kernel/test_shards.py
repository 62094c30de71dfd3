"""Shards, what joins them, and what would be run: of studies and of replays."""

import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.faults.studies import snapshot, without_pictures
from validation import Progress, ReplayOptions, StudyError, StudyOptions, gap_study, merge_studies, replay_study
from validation.kernel.forecast import Forecast, forecast
from validation.kernel.kind import Kind
from validation.kernel.run import in_shard
from validation.kernel.store import read_log, read_record
from validation.kinds.replays.records import REPLAYS
from validation.kinds.replays.study import plan as plan_replays
from validation.kinds.study.records import STUDY
from validation.kinds.study.run import plan as plan_study

from ..kinds.study.studies import FORKED, SMALL, TIMES, first_servers, raises

pytestmark = FORKED


@dataclass
class Table:
    """A small table of a kind: nine cells."""

    kind: Kind
    asked: dict[str, Any]
    run: Callable[..., Any]
    plan: Callable[..., Any]
    options: Any
    times: list[str]

    def log(self, directory: Path) -> list[dict[str, Any]]:
        return read_log(directory, self.kind).rows

    def forecast(self, **asked: Any) -> Forecast:
        return forecast(self.plan(self.options(**self.asked | asked)))

    def assert_same(self, rows: pd.DataFrame, whole: Path) -> None:
        """But for times, which are those of the machine."""
        other = pd.read_parquet(whole / "results.parquet")
        pd.testing.assert_frame_equal(rows.drop(columns=self.times), other.drop(columns=self.times))


STUDY_TABLE = Table(
    STUDY, {**SMALL, "heuristics": ["random", "server_fraction"]}, gap_study, plan_study, StudyOptions, TIMES
)
REPLAYS_TABLE = Table(
    REPLAYS,
    {
        "traces": "poisson",
        "problem": "aryl.elastic_allocation",
        "policies": ["exact", "gandiva"],
        "length": 4,
        "seed": 3,
        "seeds": 3,
        "gaps": 0,
        "offline": 0.0,
        "keep": "all",
        "jobs": 2,
    },
    replay_study,
    plan_replays,
    ReplayOptions,
    ["replay_seconds", "seconds"],
)


@pytest.fixture(autouse=True)
def _no_pictures() -> Iterator[None]:
    with without_pictures():
        yield


@pytest.fixture(scope="module", params=[STUDY_TABLE, REPLAYS_TABLE], ids=["study", "replay"])
def table(request: pytest.FixtureRequest) -> Table:
    return request.param


@pytest.fixture(scope="module")
def whole(table: Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a table, to be divided."""
    directory = tmp_path_factory.mktemp("whole") / "study"
    with without_pictures():
        table.run(**table.asked, output=directory)
    return directory


def lines_of(directory: Path) -> list[bytes]:
    return (directory / "rows.jsonl").read_bytes().splitlines(keepends=True)


def files_of(kind: Kind, row: dict[str, Any]) -> list[str]:
    """Files that belong to a row."""
    return [row["file"]] if "file" in row else [*kind.beside(row)] if kind.beside else []


def divided(table: Table, whole: Path, target: Path, parts: Iterable[list[bytes]]) -> list[Path]:
    """Directories as shards would have written them, with these lines of the log."""
    made = []
    for number, lines in enumerate(parts):
        directory = target / f"part{number}"
        directory.mkdir(parents=True)
        shutil.copy(whole / table.kind.record, directory)
        (directory / "rows.jsonl").write_bytes(b"".join(lines))
        for row in table.log(directory):
            for file in files_of(table.kind, row):
                (directory / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(whole / file, directory / file)
        if table.kind is REPLAYS:
            # Which instances a replay has kept is told by nobody.
            shutil.copytree(whole / "instances", directory / "instances")
        made.append(directory)
    return made


def altered(table: Table, directory: Path, change: Any) -> None:
    """Change the record."""
    record = json.loads((directory / table.kind.record).read_bytes())
    change(record)
    (directory / table.kind.record).write_text(json.dumps(record), encoding="utf-8")


# --- shards ---------------------------------------------------------------------------------------


@given(st.integers(0, 2**256 - 1), st.integers(1, 999_999))
def test_every_cell_is_in_one_shard(hash: int, parts: int) -> None:
    key = f"{hash:064x}"
    near = {0, 1, parts - 1, hash % parts, (hash + 1) % parts, hash // 7 % parts} - {-1}
    numbers = near if parts > 50 else range(parts)
    assert [number for number in numbers if number < parts and in_shard(key, f"{number}/{parts}")] == [hash % parts]


def test_shards_make_the_whole(table: Table, whole: Path, tmp_path: Path) -> None:
    parts = []
    for number in range(2):
        parts.append(tmp_path / f"shard{number}")
        told: list[Progress] = []
        shard = table.run(**table.asked, shard=f"{number}/2", output=parts[-1], progress=told.append)
        # The record is that of the whole, and says which shard it is.
        assert len(read_record(parts[-1], table.kind).cells) == 9
        assert shard.metadata["shard"] == f"{number}/2"
        # The keys of today's code may leave a part without cells.
        assert len(table.log(parts[-1])) == (told[-1].total if told else 0)
        assert f"Shard {number}/2" in shard.report.read_text(encoding="utf-8")
    merged = merge_studies(parts, tmp_path / "merged")
    assert merged.metadata["finished"]
    assert merged.metadata["shard"] is None
    assert sorted(run["shard"] for run in merged.metadata["runs"]) == ["0/2", "1/2"]
    table.assert_same(merged.rows, whole)

    # Nothing is left to compute, and the runs are still told of.
    log = (tmp_path / "merged" / "rows.jsonl").read_bytes()
    again = table.run(**table.asked, output=tmp_path / "merged")
    assert (tmp_path / "merged" / "rows.jsonl").read_bytes() == log
    assert again.metadata == merged.metadata


def test_a_heuristic_that_cannot_be_told_is_in_no_shard(tmp_path: Path) -> None:
    namespace: dict[str, Any] = {"__name__": "typed_at_a_prompt"}
    exec("def heuristic(instance): return None", namespace)
    for shard in ("0/1", "1/2"):
        with pytest.raises(StudyError, match="shard: heuristic has no source file"):
            gap_study(**SMALL, heuristics=[namespace["heuristic"]], shard=shard, output=tmp_path / "study")
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize("shard", ["2/2", "-1/2", "1", "0/0", "a/b", "1/2/3", "", "1.0/2", 3])
def test_odd_shards_are_refused(table: Table, shard: Any, tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=re.escape("must be i/n with i from 0 to n - 1")):
        table.run(**table.asked, shard=shard, output=tmp_path / "study")


# --- joined ---------------------------------------------------------------------------------------


def test_what_is_joined_is_as_one_machine_would_write_it(table: Table, whole: Path, tmp_path: Path) -> None:
    lines = lines_of(whole)
    parts = divided(table, whole, tmp_path, [lines[0::3], lines[1::3], lines[2::3]])
    for order in (parts, parts[::-1]):
        merge_studies(order, tmp_path / "merged")
        for file in (path for path in whole.rglob("*") if path.suffix in (".json", ".parquet")):
            if file.name not in (table.kind.record, "metadata.json"):
                assert (tmp_path / "merged" / file.relative_to(whole)).read_bytes() == file.read_bytes()
        # The same again, into the directory that there is, and into a new one.
        merge_studies(order, tmp_path / "merged")
        assert (tmp_path / "merged" / "results.parquet").read_bytes() == (whole / "results.parquet").read_bytes()
        shutil.rmtree(tmp_path / "merged")


def test_rows_that_several_have_appear_once(table: Table, whole: Path, tmp_path: Path) -> None:
    lines = lines_of(whole)
    others = [json.dumps(json.loads(line) | {"seconds": 77.0}).encode() + b"\n" for line in lines]
    one, other = divided(table, whole, tmp_path, [lines[:6], others[3:]])
    told: list[str] = []
    merged = merge_studies([one, other], tmp_path / "merged", warn=told.append)
    assert not told
    rows = table.log(tmp_path / "merged")
    assert sorted(row["key"] for row in rows) == sorted(json.loads(line)["key"] for line in lines)
    assert set(merged.rows["key"]) <= {row["key"] for row in rows}
    # The first has it.
    assert [row["seconds"] for row in rows].count(77.0) == 3


def test_the_better_of_two_rows_is_taken(tmp_path: Path) -> None:
    table, whole = STUDY_TABLE, tmp_path / "whole"
    table.run(**table.asked, output=whole)
    lines, told = lines_of(whole), list[str]()
    others = [json.dumps(json.loads(line) | {"seconds": 77.0}).encode() + b"\n" for line in lines]
    # A row that has ended is better than one that has failed, whoever has it; a row that says another value is named.
    failed = [json.dumps(json.loads(lines[0]) | {"status": "failed", "value": None}).encode() + b"\n"]
    worse = [json.dumps(json.loads(lines[1]) | {"value": 1e9}).encode() + b"\n"]
    parts = divided(table, whole, tmp_path / "more", [failed + lines[1:], [*others[:1], *worse]])
    merged = merge_studies(parts, tmp_path / "mended", warn=told.append)
    assert merged.metadata["finished"]
    assert merged.metadata["failed"] == 0
    (line,) = told
    assert f"{parts[1]} has " in line
    assert "1000000000.0" in line
    assert merged.rows["value"].max() < 1e9


def test_what_is_missing_is_said_and_computed(table: Table, whole: Path, tmp_path: Path) -> None:
    lines = lines_of(whole)
    parts = divided(
        table, whole, tmp_path, [lines[:3], [*lines[3:5], lines[5][:40] + b"\n"], [lines[6], lines[7][:-20]]]
    )
    told: list[str] = []
    merged = merge_studies(parts, tmp_path / "merged", warn=told.append)
    assert told == [f"{parts[1] / 'rows.jsonl'}, line 3: not valid JSON; passed over"]
    assert (len(table.log(tmp_path / "merged")), merged.metadata["finished"]) == (6, False)
    ended, cells = merged.metadata["cells_ended"], merged.metadata["cells"]
    assert re.search(f"{ended} of {cells} (runs|replays) have ended", merged.report.read_text(encoding="utf-8"))
    before = (tmp_path / "merged" / "rows.jsonl").read_bytes()
    study = table.run(**table.asked, output=tmp_path / "merged")
    assert study.metadata["finished"]
    assert (tmp_path / "merged" / "rows.jsonl").read_bytes().startswith(before)
    assert len(table.log(tmp_path / "merged")) == 9
    table.assert_same(study.rows, whole)
    # The run that finished it is told of beside the others.
    assert len(study.metadata["runs"]) == len(merged.metadata["runs"]) + 1


def test_a_merge_that_was_killed_is_run_again(
    table: Table, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = lines_of(whole)
    parts = divided(table, whole, tmp_path, [lines[:4], lines[4:]])
    places = ("write_record", "_join_instances", "_join_logs")
    for place in places:
        with monkeypatch.context() as patch:

            def killed(*_: Any, **__: Any) -> None:
                raise KeyboardInterrupt

            patch.setattr(f"validation.kernel.merge.{place}", killed)
            with pytest.raises(KeyboardInterrupt):
                merge_studies(parts, tmp_path / "merged")
        assert not list((tmp_path / "merged").rglob(".writing-*"))
    assert merge_studies(parts, tmp_path / "merged").metadata["finished"]
    assert (tmp_path / "merged" / "results.parquet").read_bytes() == (whole / "results.parquet").read_bytes()


def other_seed(record: Any) -> None:
    record["asked"]["seed"] = 4


def other_code(record: Any) -> None:
    record["cells"][3]["key"] = "0" * 64
    record["run"]["versions"]["numpy"] = "1.0"


def other_instance(record: Any) -> None:
    for cell in record["cells"][3:6]:
        cell["instance"] = "e" * 64
        cell["file"] = f"instances/{cell['problem']}/{'e' * 16}.json"


def fewer_cells(record: Any) -> None:
    del record["cells"][5:]


def no_machine(record: Any) -> None:
    del record["run"]["machine"]


OTHERS = {
    other_seed: "seed: 4 instead of 3",
    other_code: "the code of exact on aryl.reclaim, by its key: ",
    other_instance: 'the instance problem aryl.reclaim, source generated, size 5, index 1: "eeeeeeeeeeee" instead of',
    fewer_cells: "number of cells: 5 instead of 9",
    no_machine: "field 'run.machine' is missing",
}


OTHERS_OF_REPLAYS = {
    other_seed: "seed: 4 instead of 3",
    other_code: "what is read for poisson, or the code of exact, by its key: ",
    fewer_cells: "number of cells: 5 instead of 9",
    no_machine: "field 'run.machine' is missing",
}


@pytest.mark.parametrize("change", OTHERS)
def test_what_does_not_belong_together_is_refused(change: Any, table: Table, whole: Path, tmp_path: Path) -> None:
    words = OTHERS if table.kind is STUDY else OTHERS_OF_REPLAYS
    if change not in words:
        assert "instance" not in table.kind.cell
        return
    lines = lines_of(whole)
    one, other = divided(table, whole, tmp_path, [lines[:4], lines[4:]])
    altered(table, other, change)
    before = snapshot(tmp_path)
    with pytest.raises(StudyError) as caught:
        merge_studies([one, other], tmp_path / "merged")
    assert str(other) in str(caught.value)
    assert words[change] in str(caught.value)
    if change is other_code:
        assert '"numpy": "1.0"' in str(caught.value)
    assert "\n" not in str(caught.value)
    assert snapshot(tmp_path) == before
    # Nor does it go into a directory that holds something else.
    (other / ".lock").touch()
    before = snapshot(tmp_path)
    with pytest.raises(StudyError):
        merge_studies([one], other)
    assert snapshot(tmp_path) == before


def test_paths_may_differ_between_machines(table: Table, whole: Path, tmp_path: Path) -> None:
    lines = lines_of(whole)
    one, other = divided(table, whole, tmp_path, [lines[:4], lines[4:]])
    altered(table, other, lambda record: record["asked"].update({table.kind.places[-1]: "/elsewhere/trace"}))
    assert merge_studies([one, other], tmp_path / "merged").metadata["finished"]


def test_outputs_that_are_refused(table: Table, whole: Path, tmp_path: Path) -> None:
    (part,) = divided(table, whole, tmp_path, [lines_of(whole)])
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "report.html").write_text("mine", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    before = snapshot(tmp_path)
    for sources, output, words in (
        ([part], part, "is one of the directories to be joined"),
        ([part], foreign, f"is not a {table.kind.name}'s"),
        ([part, tmp_path / "empty"], tmp_path / "merged", f"empty holds no {table.kind.name}"),
        ([tmp_path / "nowhere"], tmp_path / "merged", "nowhere holds no study"),
        ([], tmp_path / "merged", "no directory is named"),
    ):
        with pytest.raises(StudyError, match=words):
            merge_studies(sources, output)
        assert snapshot(tmp_path) == before


@pytest.mark.parametrize("table", [STUDY_TABLE], indirect=True)
def test_damaged_instances_are_taken_from_elsewhere(table: Table, whole: Path, tmp_path: Path) -> None:
    lines = lines_of(whole)
    one, other = divided(table, whole, tmp_path, [lines, lines])
    first, second, third = sorted((one / "instances").rglob("*.json"))
    first.write_text("oh no", encoding="utf-8")
    second.unlink()
    for directory in (one, other):
        shutil.copy(whole / first.relative_to(one), directory / third.relative_to(one))
    told: list[str] = []
    merge_studies([one, other], tmp_path / "merged", warn=told.append)
    assert len(told) == 2
    assert all("not the instance of the study" in line and third.name in line for line in told)
    for file in (first, second):
        assert (tmp_path / "merged" / file.relative_to(one)).read_bytes() == (
            whole / file.relative_to(one)
        ).read_bytes()
    # The study's command writes anew what none of them has.
    table.run(**table.asked, output=tmp_path / "merged")
    assert (tmp_path / "merged" / third.relative_to(one)).read_bytes() == (whole / third.relative_to(one)).read_bytes()


def test_damaged_tables_are_taken_from_elsewhere(tmp_path: Path) -> None:
    table = REPLAYS_TABLE
    parts = [tmp_path / "one", tmp_path / "other"]
    table.run(**table.asked, output=parts[0])
    shutil.copytree(parts[0], parts[1])
    # A table that only the second has, one that only the first has, and one that neither has.
    first, second, third = sorted((parts[0] / "replays").glob("*.jobs.parquet"))[:3]
    for part, file in ((0, first), (1, second), (0, third), (1, third)):
        (parts[part] / "replays" / file.name).write_bytes(b"no table")
    told: list[str] = []
    merged = merge_studies(parts, tmp_path / "merged", warn=told.append)
    assert len(told) == 4
    assert all("are damaged; passed over" in line for line in told)
    assert (merged.metadata["cells_ended"], merged.metadata["cells"]) == (5, 6)
    assert (tmp_path / "merged" / "replays" / second.name).read_bytes() == second.read_bytes()
    finished = table.run(**table.asked, output=tmp_path / "merged")
    assert finished.metadata["finished"]
    assert len(table.log(tmp_path / "merged")) == 9


# --- a study of the version before ----------------------------------------------------------------


def test_a_record_of_the_version_before_is_read(table: Table, whole: Path, tmp_path: Path) -> None:
    directory = Path(shutil.copytree(whole, tmp_path / "study"))
    record = json.loads((directory / table.kind.record).read_bytes())
    del record["run"]["shard"]
    (directory / table.kind.record).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    assert [*read_record(directory, table.kind).cells] == record["cells"]
    log = (directory / "rows.jsonl").read_bytes()
    table.run(**table.asked, output=directory)
    assert (directory / "rows.jsonl").read_bytes() == log


def test_a_record_that_is_cut_or_goes_on_is_refused(table: Table, whole: Path, tmp_path: Path) -> None:
    directory = Path(shutil.copytree(whole, tmp_path / "study"))
    content = (directory / table.kind.record).read_bytes()
    assert json.loads(content)["cells"] == [*read_record(directory, table.kind).cells]
    for wrong in (content[:-1], content[:-4], content[: len(content) // 2], content + b"{}\n", content + b"\n"):
        (directory / table.kind.record).write_bytes(wrong)
        with pytest.raises(StudyError, match="json: not valid JSON"):
            read_record(directory, table.kind)


# --- what would be run ----------------------------------------------------------------------------


def test_a_forecast_runs_and_writes_nothing(table: Table, whole: Path, tmp_path: Path) -> None:
    part = Path(shutil.copytree(whole, tmp_path / "study"))
    lines, name = lines_of(whole), table.kind.alike[-1]
    # None of the last is there.
    *known, unknown = dict.fromkeys(cell[name] for cell in read_record(whole, table.kind).cells)
    kept = [line for line in lines if json.loads(line)[name] != unknown][:5]
    (part / "rows.jsonl").write_bytes(b"".join(kept))
    before = snapshot(tmp_path)
    limit = "time_limit" if table.kind is STUDY else "replay_limit"
    nothing = table.forecast(output=tmp_path / "new", **{limit: 7.0})
    assert (nothing.cells, nothing.ended, nothing.unknown, nothing.expected) == (9, 0, 9, 0.0)
    assert nothing.longest == 9 * 7.0 / 2
    some = table.forecast(output=part)
    rows = [json.loads(line) for line in kept]
    left = dict.fromkeys([*known, unknown], 3)
    spent: dict[str, list[float]] = {}
    for row in rows:
        left[row[name]] -= 1
        spent.setdefault(row[name], []).append(row["seconds"] + max(0.0, row.get("engine_seconds", 0.0)))
    assert (some.cells, some.ended, some.unknown) == (9, 5, 3)
    expected = sum(left[name] * sum(times) / len(times) for name, times in spent.items()) / 2
    assert some.expected == pytest.approx(expected)
    assert some.longest == (4 * 60.0 / 2 if table.kind is STUDY else float("inf"))
    assert ("no limit of their time" in str(some)) == (table.kind is REPLAYS)
    assert some.disk >= sum((whole / file).stat().st_size for row in rows for file in files_of(table.kind, row)[:1])
    shards = [table.forecast(shard=f"{number}/2", output=part) for number in range(2)]
    assert sum(shard.cells for shard in shards) == 9
    assert sum(shard.ended for shard in shards) == 5
    assert snapshot(tmp_path) == before


def test_failures_are_to_be_done_again(tmp_path: Path) -> None:
    asked = {**SMALL, "heuristics": [raises, first_servers], "output": tmp_path / "study"}
    gap_study(**asked)
    told = forecast(plan_study(StudyOptions(**asked)))
    assert (told.cells, told.ended, told.unknown) == (9, 6, 3)
    assert read_log(tmp_path / "study", STUDY).damaged == []
    assert set(TIMES) <= set(pd.read_parquet(tmp_path / "study" / "results.parquet").columns)
