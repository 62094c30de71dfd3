"""What the readers of public data share: where they are found, and what they refuse."""

import gzip
import hashlib
import importlib
import inspect
import io
import json
import os
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import instances
from benchmarks.faults import mutations, originals
from instances import InstanceError, text
from instances.afs import elastic_sharing
from instances.data import elasticflow, gavel, lines, microsoft, synergy, tiresias
from instances.elasticflow import admission
from instances.gavel import cost, max_min_fairness
from instances.text import read_source
from validation.kinds.study.cases import generate


def test_readers_are_found_without_being_a_paper() -> None:
    assert "data" in dir(instances)
    assert {"elasticflow", "gavel", "microsoft", "synergy", "tiresias"} <= set(dir(instances.data))
    assert not any(problem.startswith("data.") for problem in instances.problems())


DRAWN = [name for name in instances.problems() if hasattr(importlib.import_module(f"instances.{name}"), "from_trace")]


@pytest.mark.parametrize("problem", DRAWN)
def test_instances_are_drawn_from_real_data_alike(problem: str) -> None:
    parameters = inspect.signature(importlib.import_module(f"instances.{problem}").from_trace).parameters
    first = list(parameters)[:4]
    assert first[:3] == ["rng", "throughputs", "trace"]
    assert first[3] in ("num_jobs", "num_servers")
    assert all(one.default is inspect.Parameter.empty for one in [parameters[name] for name in first[:3]])
    kinds = {one.kind for one in list(parameters.values())[1:]}
    assert kinds <= {inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD}


@pytest.mark.parametrize(
    "read",
    [
        elasticflow.read_trace,
        gavel.read_throughputs,
        gavel.read_trace,
        microsoft.read_trace,
        synergy.read_profiles,
        synergy.read_trace,
        tiresias.read_trace,
    ],
)
def test_bytes_and_nothing_are_refused_with_the_file_s_name(tmp_path: Path, read: Callable[[Path], Any]) -> None:
    path = tmp_path / "bad.txt"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InstanceError, match=r"bad\.txt: not a text file"):
        read(path)
    path.write_bytes(b"")
    with pytest.raises(InstanceError, match=r"bad\.txt"):
        read(path)


def test_a_trace_with_models_is_read_with_or_without_them(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("job_id,submit_time,duration,num_gpu,model_name\na,0,10,1,vgg19\n")
    assert tiresias.read_trace(path)["model"].tolist() == ["vgg19"]
    assert microsoft.read_trace(path).columns.tolist() == ["job_id", "submit_time", "duration", "num_gpus"]
    path.write_text("job_id,submit_time,duration,num_gpu\na,0,10,1\n")
    with pytest.raises(InstanceError, match="line 1: there is no column 'model_name'"):
        tiresias.read_trace(path)


@pytest.mark.parametrize(
    ("read", "cell", "must"),
    [
        (lines.text, "  ", "not be empty"),
        (lines.number, "ten", "a number"),
        (lines.number, "nan", "finite and at least 0"),
        (lines.number, "inf", "finite and at least 0"),
        (lines.positive, "0", "positive"),
        (lines.whole, "1.5", "a whole number, at least 0"),
        (lines.positive_whole, "0", "a whole number, at least 1"),
    ],
)
def test_cells_say_what_they_must_be(read: lines.CellReader, cell: str, must: str) -> None:
    with pytest.raises(
        InstanceError, match=f"here: got '{cell}', must {'' if must.startswith('not') else 'be '}{must}"
    ):
        lines.read_cell(read, cell, "here")


def test_quoted_cells_and_blank_lines_keep_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text('job_id,duration\r\n\r\n"a,\r\nb",10\r\nc,11\r\n', newline="")
    table = lines.read_table(path)
    assert table.header == ["job_id", "duration"]
    assert table.rows == [["a,\r\nb", "10"], ["c", "11"]]
    assert table.lines == [4, 5]


# --- what people have -----------------------------------------------------------------------------

JOBS = "job_id,submission_time,duration,num_gpu\na,0,100,1\nb,5.5,3600,4\nc,9,10,2\n"
READ = {
    "job_id": ["a", "b", "c"],
    "submit_time": [0.0, 5.5, 9.0],
    "duration": [100.0, 3600.0, 10.0],
    "num_gpus": [1, 4, 2],
}


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.csv"
    path.write_text(JOBS, encoding="utf-8")
    return path


def test_a_table_is_read_from_whatever_holds_it(tmp_path: Path, jobs: Path) -> None:
    packed = tmp_path / "jobs.bin"
    packed.write_bytes(gzip.compress(JOBS.encode()))
    marked = tmp_path / "marked.csv"
    marked.write_text("\ufeff" + JOBS.replace(",", ", "), encoding="utf-8")
    with jobs.open(encoding="utf-8") as as_text, packed.open("rb") as as_bytes:
        for source in (jobs, str(jobs), packed, marked, as_text, as_bytes, io.StringIO(JOBS), pd.read_csv(jobs)):
            assert microsoft.read_trace(source).to_dict("list") == READ
    # A number of GPUs that pandas makes a float of, for the sake of another row.
    assert microsoft.read_trace(pd.read_csv(jobs).astype({"num_gpu": float})).to_dict("list") == READ


def test_what_is_no_source_is_refused_in_a_line(tmp_path: Path) -> None:
    cut = tmp_path / "cut.csv.gz"
    cut.write_bytes(gzip.compress(JOBS.encode())[:-9])
    latin = tmp_path / "latin.csv"
    latin.write_bytes(JOBS.replace("b,", "bé,").encode("latin-1"))
    written = (tmp_path / "out.csv").open("w", encoding="utf-8")
    closed = latin.open(encoding="latin-1")
    closed.close()
    for source, words in (
        (cut, r"cut\.csv\.gz: begins as a gzip file does, and is none, or not a whole one"),
        (latin, r"latin\.csv: not a text file in UTF-8 \(byte 0xe9 at 51\); .* open\(path, encoding=\"latin-1\"\)"),
        (written, r"out\.csv: not readable"),
        (closed, r"latin\.csv: I/O operation on closed file"),
        (io.StringIO(JOBS.replace(",4", ",\uff14")), "must be a number"),
        (io.StringIO(JOBS.replace(",4", ",1_0")), "must be a number"),
        (3, "got int, must be a path, an open file or a DataFrame"),
        (pd.DataFrame({"job_id": ["a"]}), "DataFrame: there is no column 'submit_time'"),
        (pd.DataFrame(READ).assign(num_gpus=[1, 0, 2]), "DataFrame, row 1: num_gpus: got '0', must be a whole number"),
        (pd.DataFrame(READ).assign(num_gpus=[1, None, 2]), "DataFrame, row 1: num_gpus: got '', must be a number"),
    ):
        with pytest.raises(InstanceError, match=words):
            microsoft.read_trace(source)
    written.close()
    with latin.open(encoding="latin-1") as known, latin.open(encoding="ascii") as wrong:
        assert microsoft.read_trace(known)["job_id"].tolist() == ["a", "bé", "c"]
        with pytest.raises(InstanceError, match=r"latin\.csv: not a text file in ASCII"):
            microsoft.read_trace(wrong)


def test_columns_go_by_other_names(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(JOBS.replace("job_id", "JobID").replace("num_gpu", "GPUs"), encoding="utf-8")
    assert microsoft.read_trace(path, columns={"job_id": "JobID", "num_gpus": "GPUs"}).to_dict("list") == READ
    # Case, blanks and marks make no other name.
    assert microsoft.read_trace(path, columns={"num_gpus": "gpus"}).to_dict("list") == READ
    path.write_text(JOBS.replace("duration", "Durations"), encoding="utf-8")
    with pytest.raises(InstanceError) as refused:
        microsoft.read_trace(path)
    assert str(refused.value).endswith(
        "line 1: there is no column 'duration'; did you mean columns={'duration': 'Durations'}, in the shell --reader "
        "columns.duration=Durations?"
    )
    with pytest.raises(InstanceError, match="line 1: there is no column 'id', only 'job_id', 'submission_time'"):
        microsoft.read_trace(path, columns={"job_id": "id"})
    with pytest.raises(InstanceError, match=r"columns: got 'jobs', must be of job_id, .* \(did you mean 'job_id'\?\)"):
        microsoft.read_trace(path, columns={"jobs": "JobID"})


def test_bad_rows_are_refused_or_counted(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    bad = [f"x{row},0,100,0" for row in range(6)]
    path.write_text(JOBS + "a,9,10\n" + "\n".join(bad) + "\na,9,10,2\n", encoding="utf-8")
    with pytest.raises(InstanceError, match="line 5: got 3 cells, must be 4"):
        microsoft.read_trace(path)
    frame = microsoft.read_trace(path, skip_bad_rows=True)
    assert frame["job_id"].tolist() == ["a", "b", "c", "a"]
    reading = frame.attrs["reading"]
    assert (reading["rows"], reading["skipped"], reading["repeated"]) == (11, 7, 1)
    assert reading["reasons"][:2] == [
        f"{path}, line 5: got 3 cells, must be 4",
        f"{path}, line 6: num_gpu: got '0', must be a whole number, at least 1",
    ]
    assert len(reading["reasons"]) == 5
    assert reading["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert reading["reader"] == "instances.data.microsoft.read_trace"
    assert reading["options"] == {"skip_bad_rows": True}
    # A table with its reading can be written, and what is left out of all rows is said.
    frame.to_parquet(tmp_path / "jobs.parquet")
    path.write_text("job_id,submission_time,duration,num_gpu\n" + bad[0], encoding="utf-8")
    with pytest.raises(InstanceError, match=r"there are no jobs; .*line 2: num_gpu: got '0'"):
        microsoft.read_trace(path, skip_bad_rows=True)


CELLS = [*mutations.CELLS, "7", " 7 ", "7.0", "7e0", "1e3", "-0", "0.0", "7.5", "9007199254740993", "1e16", "+7", "a"]
CELLS += ["x" * 200, "x" * 201]


@pytest.mark.parametrize("name", ["text", "any_text", "prose", "number", "positive", "whole", "positive_whole", "gpus"])
def test_columns_are_read_as_their_cells_are(name: str) -> None:
    """The whole column at once, and one cell after the other, which is another way."""
    cell = getattr(lines, name)
    for cells in (CELLS, [one for one in CELLS if one.strip()[:1].isdigit()], ["1", "2.0", "3e0"], []):
        read, fine = cell.column(cells)
        for one, value, good in zip(cells, list(read), fine, strict=True):
            try:
                expected = cell(one)
            except ValueError:
                assert not good, one
            else:
                assert good, one
                assert value == expected
                assert type(value if isinstance(value, str) else np.asarray(value).item()) is type(expected)


def test_a_name_of_thousands_of_characters_is_no_name(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(JOBS.replace("\n", f"\n{'9' * 5000}", 1), encoding="utf-8")
    with pytest.raises(InstanceError, match=r"line 2: \w+: got .*, must have at most 200 characters$") as raised:
        microsoft.read_trace(path)
    assert len(str(raised.value)) < 300


def test_a_file_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "LARGEST", 10**6)
    with pytest.raises(InstanceError, match=r"^/dev/zero: larger than "):
        microsoft.read_trace("/dev/zero")


def test_a_file_is_read_once_until_it_changes(jobs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.utime(jobs, ns=(0, 0))
    first = microsoft.read_trace(jobs)
    calls: list[object] = []
    monkeypatch.setattr(lines, "read_source", lambda source: calls.append(source) or read_source(source))
    first.loc[0, "num_gpus"] = 99
    first.attrs["reading"]["rows"] = 99
    again = microsoft.read_trace(jobs)
    assert calls == []
    assert again.to_dict("list") == READ
    assert again.attrs["reading"]["rows"] == 3
    assert microsoft.read_trace(jobs, skip_bad_rows=True).to_dict("list") == READ
    jobs.write_text(JOBS.replace("3600", "3601"), encoding="utf-8")
    assert microsoft.read_trace(jobs)["duration"].tolist() == [100, 3601, 10]
    # Written twice within the same tick of the file system's clock.
    for duration in range(1000, 1020):
        jobs.write_text(JOBS.replace("3600", str(duration)), encoding="utf-8")
        assert microsoft.read_trace(jobs)["duration"].tolist() == [100, duration, 10]
    assert len(calls) >= 22


def test_throughputs_are_a_folder_or_one_table(tmp_path: Path) -> None:
    (tmp_path / "vgg.csv").write_text("global_batch_size,1,2\n32,4,6\n", encoding="utf-8")
    (tmp_path / "bert.csv.gz").write_bytes(gzip.compress(b"global_batch_size,1,2\n64,5,\n"))
    both = elasticflow.read_throughputs(tmp_path)
    assert list(both.index) == [("bert", 64), ("vgg", 32)]
    assert both.attrs["reading"]["rows"] == 2
    assert list(elasticflow.read_throughputs(tmp_path / "vgg.csv").index) == [("vgg", 32)]
    pd.testing.assert_frame_equal(elasticflow.read_throughputs(both), both)
    pd.testing.assert_frame_equal(elasticflow.read_throughputs(io.StringIO(both.to_csv())), both)
    with pytest.raises(InstanceError, match="there is no column 'model'"):
        elasticflow.read_throughputs(io.StringIO("global_batch_size,1,2\n32,4,6\n"))


def test_rates_of_own_types_as_a_frame_or_as_json() -> None:
    entries = pd.DataFrame({"worker_type": ["a100", "h100"], "model": "m", "scale_factor": 1, "throughput": [1.0, 3.0]})
    table = gavel.read_throughputs(entries)
    as_json = io.StringIO(json.dumps({"a100": {"('m', 1)": {"null": 1.0}}, "h100": {"('m', 1)": {"null": 3.0}}}))
    pd.testing.assert_frame_equal(table, gavel.read_throughputs(as_json), check_dtype=False)
    trace = pd.DataFrame({"model": ["m"] * 3, "scale_factor": 1, "steps": 10, "arrival": [0, 1, 2]})
    drawn = max_min_fairness.from_trace(0, throughputs=entries, trace=trace, num_jobs=3)
    assert drawn.throughputs.tolist() == [[1, 3]] * 3
    assert drawn.origin is not None
    assert drawn.origin["options"]["worker_types"] == ["a100", "h100"]
    with pytest.raises(InstanceError, match="prices: there is none of worker type 'a100'"):
        cost.from_trace(0, throughputs=entries, trace=trace, num_jobs=3)


# --- where instances are from ---------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::instances.afs.curves.RepairWarning")
@pytest.mark.parametrize("name", [name for name in originals.TABLES if name.split(" ")[0] in DRAWN])
def test_instances_tell_where_they_are_from(name: str, tmp_path: Path) -> None:
    original = originals.TABLES[name]
    for file, content in original.files.items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(content, encoding="utf-8")
    drawn = original.read(tmp_path)
    told = drawn.origin
    trace = next(file for file in original.files if not file.endswith(".json") and "/" not in file)
    assert told["trace"]["source"] == str(tmp_path / trace)
    assert told["trace"]["sha256"] == hashlib.sha256((tmp_path / trace).read_bytes()).hexdigest()
    assert len(told["throughputs"]["sha256"]) == 64
    assert len(told["rows"]) == drawn.dims["n"]
    assert set(told["rows"]) <= set(range(told["trace"]["rows"]))
    assert all(count > 0 for count in told["repairs"].values())
    # It is kept in the file, and no part of the instance.
    instances.save(drawn, tmp_path / "saved.json")
    again = instances.load(tmp_path / "saved.json")
    assert again.origin == told
    bare = type(drawn).from_dict({name: value for name, value in drawn.to_dict().items() if name != "origin"})
    assert bare.origin is None
    assert bare == again == drawn
    assert bare.digest == again.digest
    assert repr(bare) == repr(again)
    assert replace(again).origin is None
    assert pickle.loads(pickle.dumps(again)).origin == told


def test_what_is_no_origin() -> None:
    instance = instances.read(json.loads(originals_of("aryl.reclaim")))
    for bad in (3, [1], "x", {"a": float("nan")}, {"a": object()}):
        with pytest.raises(InstanceError, match=r"Reclaim\.origin: .*must be"):
            instance.with_origin(bad)  # type: ignore[arg-type]
    with pytest.raises(InstanceError, match=r"Reclaim\.origin: got 3, must be a JSON object"):
        instances.read({**instance.to_dict(), "origin": 3})
    assert instances.read({**instance.to_dict(), "origin": None}) == instance


def originals_of(problem: str) -> str:
    return json.dumps(generate(problem, 1, 4).to_dict())


def test_repairs_are_counted(tmp_path: Path) -> None:
    (tmp_path / "bert.csv").write_text("global_batch_size,1,2\n32,4,6\n", encoding="utf-8")
    header = "job_id,submit_time,duration,num_gpu,model_name,batch_size,ddl,iterations\n"
    # Deadlines in half a slot, in 1.5 slots, and in 2 slots.
    rows = [
        f"{job},0,3600,{gpus},bert,32,{ddl},100\n" for job, (gpus, ddl) in enumerate([(1, 1800), (2, 5400), (4, 7200)])
    ]
    trace = io.StringIO(header + "".join(rows))
    drawn = admission.from_trace(0, throughputs=tmp_path, trace=trace, num_jobs=3)
    assert drawn.deadlines.tolist() == [1, 1, 2]
    assert drawn.iterations.tolist() == [100, 100, 100]
    assert drawn.origin is not None
    assert drawn.origin["repairs"] == {
        "deadline is lengthened to one slot": 1,
        "deadline is shortened to whole slots": 1,
    }
    assert drawn.origin["jobs"] == ["0", "1", "2"]
    raw = io.StringIO("job_id,submit_time,duration,num_gpu\na,0,3600,1\nb,60,3600,4\nc,60,3600,2\n")
    shared = elastic_sharing.from_trace(0, throughputs=tmp_path, trace=raw, num_jobs=3, num_gpus=2)
    assert shared.origin is not None
    assert shared.origin["repairs"] == {
        "model is drawn, of which there is no table": 3,
        "request is cut to the cluster's GPUs": 1,
        "arrival is put at the start": 2,
    }


def test_the_reading_of_a_frame_goes_on_with_it(tmp_path: Path, jobs: Path) -> None:
    jobs.write_text(JOBS + "d,1,1,0\n", encoding="utf-8")
    (tmp_path / "bert.csv").write_text("global_batch_size,1,2\n32,4,6\n", encoding="utf-8")
    good = microsoft.read_trace(jobs, skip_bad_rows=True)
    tables = elasticflow.read_throughputs(tmp_path / "bert.csv")
    drawn = admission.from_trace(0, throughputs=tables, trace=good, num_jobs=3)
    assert drawn == admission.from_trace(0, throughputs=tmp_path / "bert.csv", trace=good, num_jobs=3)
    assert drawn.origin is not None
    assert drawn.origin["trace"]["before"] == good.attrs["reading"]
    assert drawn.origin["trace"]["before"]["skipped"] == 1
    assert drawn.origin["throughputs"]["before"]["source"] == str(tmp_path / "bert.csv")


def test_jobs_with_a_model_and_no_batch_size_get_one_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "bert.csv").write_text("global_batch_size,1,2\n32,4,6\n64,2,3\n", encoding="utf-8")
    (tmp_path / "vgg.csv").write_text("global_batch_size,1,2\n8,9,9\n", encoding="utf-8")
    header = "job_id,submit_time,duration,num_gpu,model_name,iterations\n"
    content = header + "".join(
        f"{job},0,7200,1,{model},1\n" for job, model in enumerate(["vgg", "bert", "", "bert"] * 9)
    )
    told = admission.from_trace(0, throughputs=tmp_path, trace=io.StringIO(content), num_jobs=36, num_gpus=2)
    speed = {4: "bert", 2: "bert", 9: "vgg"}
    found = [speed[rate / 3600] for rate in told.throughputs[:, 1]]
    assert found[::4] == ["vgg"] * 9
    assert found[1::2] == ["bert"] * 18
    assert told.iterations == pytest.approx(2 * told.throughputs[:, 1])
    lacking = io.StringIO(content.replace("vgg", "resnet"))
    words = (
        r"no throughput of resnet, only of bert, vgg: give a table resnet\.csv with a line for it, or have models drawn"
    )
    with pytest.raises(InstanceError, match=words):
        admission.from_trace(0, throughputs=tmp_path, trace=lacking, num_jobs=36)
