"""Published formats, on small made files of their shapes: what is read, left out and filled in, and written anew."""

import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.faults import mutations
from instances import InstanceError
from instances.aryl import elastic_allocation
from instances.data import alibaba, chronus, elasticflow, gavel, helios, jobs, philly, sia, synergy
from instances.elasticflow import admission
from validation.cli.convert import readers

from .published import CHRONUS, HELIOS, MATRIX, NODES, PHILLY, PODS, SERVER, SHOCKWAVE, SIA, SYNERGY, philly_job


def test_philly() -> None:
    table = philly.read_trace(io.StringIO(PHILLY))
    assert table.to_dict("list") == {
        "job_id": ["a", "b"],
        "submit_time": [0.0, 10.0],
        "num_gpus": [3, 3],
        "duration": [3610.0, 90.0],
    }
    assert table.attrs["reading"]["left_out"] == {
        "job had not ended": 1,
        "job has no attempt with start and end": 1,
    }
    assert table.attrs["reading"]["filled_in"] == {"duration is the sum of several attempts": 1}
    broken = [*json.loads(PHILLY), {"jobid": "x"}, philly_job("y", "soon"), philly_job("z", "2017-10-07 01:00:10")]
    broken[-1]["attempts"] = [
        {"start_time": "2017-10-07 01:00:10", "end_time": "2017-10-07 01:00:00", "detail": SERVER}
    ]
    with pytest.raises(InstanceError, match="job 4: attempts: got None, must be a list"):
        philly.read_trace(io.StringIO(json.dumps(broken)))
    kept = philly.read_trace(io.StringIO(json.dumps(broken)), skip_bad_rows=True)
    assert kept["job_id"].tolist() == ["a", "b"]
    assert kept.attrs["reading"]["skipped"] == 3
    assert "job 5: submitted_time: got 'soon', must be a date and time" in kept.attrs["reading"]["reasons"][1]
    assert "ends before it starts" in kept.attrs["reading"]["reasons"][2]
    with pytest.raises(InstanceError, match="there are no jobs; left out: job has no attempt"):
        philly.read_trace(io.StringIO(json.dumps([philly_job("never", "2017-10-07 00:00:00")])))


def test_the_distribution_of_philly(data: Path) -> None:
    table = philly.read_distribution(data / "gavel" / "philly_job_distribution.csv")
    assert len(table) == 33192
    assert (table["submit_time"] == 0).all()
    assert table["duration"].iloc[0] == 860662
    assert table.attrs["reading"]["filled_in"] == {"job is there from the start": 33192}


def test_helios() -> None:
    table = helios.read_trace(io.StringIO(HELIOS))
    assert table.to_dict("list") == {
        "job_id": ["1", "2"],
        "submit_time": [0.0, 26.0],
        "num_gpus": [1, 4],
        "duration": [36848.0, 249.0],
    }
    assert table.attrs["reading"]["left_out"] == {"job asked for no GPU": 1}
    with pytest.raises(InstanceError, match="line 2: submit_time: got '2020-13-09 18:41:27', must be a date and time"):
        helios.read_trace(io.StringIO(HELIOS.replace("2020-06-09 18:41:27,2020", "2020-13-09 18:41:27,2020", 1)))


def test_openb() -> None:
    table = alibaba.read_trace(io.StringIO(PODS))
    assert table.to_dict("list") == {
        "job_id": ["p1", "p2"],
        "submit_time": [0.0, 241678.0],
        "num_gpus": [8, 1],
        "duration": [1332354.0, 294651.0],
    }
    assert table.attrs["reading"]["left_out"] == {
        "pod asked for no GPU": 1,
        "pod was never scheduled, or never deleted": 1,
    }
    assert table.attrs["reading"]["filled_in"] == {"part of a GPU is rounded up to one": 1}
    nodes = alibaba.read_nodes(io.StringIO(NODES))
    assert nodes["num_gpus"].tolist() == [0, 8]
    assert nodes["cpus"].tolist() == [32, 96]
    assert nodes["memory"].tolist() == pytest.approx([274.877906944, 412.316860416])
    assert nodes["gpu_type"].tolist() == ["", "G2"]


def test_chronus() -> None:
    table = chronus.read_trace(io.StringIO(CHRONUS))
    assert table.to_dict("list") == {
        "job_id": ["1", "0"],
        "submit_time": [0.0, 10.0],
        "iterations": [8897.0, 6910.0],
        "model": ["vgg16", "resnet101"],
        "deadline": [88.0, 292.0],
        "num_gpus": [1, 4],
        "duration": [31.0, 211.0],
    }
    assert table.attrs["reading"]["left_out"] == {
        "job asked for no GPU": 1,
        "best-effort job, without a deadline": 1,
    }


def test_sia(tmp_path: Path) -> None:
    path = tmp_path / "bert.csv"
    path.write_text(SIA, encoding="utf-8")
    table = sia.read_throughputs(path, gpu_type="rtx")
    # On one GPU 8 and 16 at once; on two, which is fastest on one server, 16 as two times 8.
    assert list(table.index) == [("bert", 8), ("bert", 16)]
    assert table.loc[("bert", 8), 1] == pytest.approx(1 / 0.4)
    assert math.isnan(table.loc[("bert", 8), 2])
    assert table.loc[("bert", 16)].tolist() == pytest.approx([1 / 0.8, 1 / 0.5])
    between = sia.read_throughputs(path, gpu_type="rtx", batch_sizes=[10])
    assert between.loc[("bert", 10), 1] == pytest.approx(1 / 0.5)
    with pytest.raises(InstanceError, match="gpu_type: got None, must be one of dgx, rtx"):
        sia.read_throughputs(path)
    with pytest.raises(InstanceError, match="batch_sizes: none of 17 was measured"):
        sia.read_throughputs(path, gpu_type="rtx", batch_sizes=[17])
    with pytest.raises(InstanceError, match="placement: got 'one', must be digits"):
        sia.read_throughputs(io.StringIO(SIA.replace("8,11,", "8,one,")), gpu_type="rtx")
    folder = tmp_path / "ncf"
    folder.mkdir()
    (folder / "scalability-rtx.csv").write_text(
        "local_bsz,step_time,sync_time,num_nodes,num_replicas\n32,0.5,0.1,3,4\n32,0.25,0.1,2,4\n", encoding="utf-8"
    )
    assert sia.read_throughputs(folder / "scalability-rtx.csv").to_dict() == {4: {("ncf", 128): 4.0}}
    # What is written is a table of throughputs.
    assert elasticflow.read_throughputs(io.StringIO(table.to_csv())).equals(table)


def test_synergy_s_matrices(tmp_path: Path, data: Path) -> None:
    (tmp_path / "alexnet_1.py").write_text(SYNERGY, encoding="utf-8")
    (tmp_path / "alexnet_4.py").write_text("of other jobs", encoding="utf-8")
    profiles = synergy.read_matrices(tmp_path)
    again = synergy.read_profiles(io.StringIO(synergy.written(profiles, cpus_per_gpu=4)), cpus_per_gpu=4)
    for one in (profiles, again):
        assert list(one.throughputs) == ["alexnet"]
        assert one.of("alexnet").tolist() == MATRIX
    known = synergy.read_profiles(data / "synergy" / "sensitivity_profiles.json")
    assert profiles.cpus.tolist() == known.cpus.tolist()
    assert profiles.memory.tolist() == known.memory.tolist()
    for content, words in (
        ("def (", "not a Python module"),
        ("self.other = 1", "nothing like self.tput"),
        ("self.tput = np.array(__import__('os').getcwd())", "nothing like self.tput"),
        (SYNERGY.replace("0.66", "-0.66"), "must be an array of positive numbers"),
        (SYNERGY.replace(", [0.1, 0.66, 0.66, 0.66, 0.66]", ""), r"got shape \(8, 5\), must be \(9, 5\)"),
    ):
        (tmp_path / "alexnet_1.py").write_text(content, encoding="utf-8")
        with pytest.raises(InstanceError, match=words):
            synergy.read_matrices(tmp_path)
    with pytest.raises(InstanceError, match="there are no profiles"):
        synergy.read_matrices(data / "gavel")


def test_shockwave_s_traces_and_gavel_s_oldest_tables() -> None:
    trace = gavel.read_trace(io.StringIO(SHOCKWAVE))
    assert trace[["steps", "scale_factor", "arrival", "duration", "mode", "priority", "slo"]].to_dict("list") == {
        "steps": [600, 700],
        "scale_factor": [2, 2],
        "arrival": [4561.0, 4600.0],
        "duration": [5433.0, 5433.0],
        "mode": ["accordion", "static"],
        "priority": [1.0, 1.0],
        "slo": [math.inf, math.inf],
    }
    oldest = {"v100": {"LM (batch size 5)": {"null": 2.0, "A3C (batch size 4)": [1.0, 3.0]}}}
    table = gavel.read_throughputs(io.StringIO(json.dumps(oldest)))
    assert table["scale_factor"].tolist() == [1, 1]
    assert table["partner_scale_factor"].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("read", "content"),
    [
        (philly.read_trace, PHILLY),
        (helios.read_trace, HELIOS),
        (alibaba.read_trace, PODS),
        (chronus.read_trace, CHRONUS),
    ],
)
def test_what_a_log_becomes_is_a_job_table(tmp_path: Path, read: Callable[..., Any], content: str) -> None:
    (tmp_path / "log").write_text(content, encoding="utf-8")
    table = read(tmp_path / "log")
    (tmp_path / "jobs.csv").write_text(jobs.write(table), encoding="utf-8")
    again = jobs.read_trace(tmp_path / "jobs.csv")
    assert again[list(table)].equals(table)
    (tmp_path / "vgg16.csv").write_text("batch_size,1,2,4\n8,1,2,3\n", encoding="utf-8")
    (tmp_path / "resnet101.csv").write_text("batch_size,1,2,4\n8,1,2,3\n", encoding="utf-8")
    tables = elasticflow.read_throughputs(tmp_path / "vgg16.csv")
    if read is chronus.read_trace:
        folder = tmp_path / "tables"
        folder.mkdir()
        for name in ("vgg16.csv", "resnet101.csv"):
            (tmp_path / name).rename(folder / name)
        tables = elasticflow.read_throughputs(folder)
    for problem in (admission, elastic_allocation):
        drawn = problem.from_trace(1, throughputs=tables, trace=tmp_path / "jobs.csv", num_jobs=2)
        assert drawn.num_jobs == 2


def test_every_format_is_on_the_page() -> None:
    page = (Path(__file__).parents[3] / "docs" / "data.md").read_text(encoding="utf-8")
    for form in readers():
        assert f"`{form}`" in page, form


FORMATS: dict[str, tuple[Callable[..., Any], str]] = {
    "philly": (philly.read_trace, PHILLY),
    "helios": (helios.read_trace, HELIOS),
    "pods": (alibaba.read_trace, PODS),
    "nodes": (alibaba.read_nodes, NODES),
    "chronus": (chronus.read_trace, CHRONUS),
    "sia": (sia.read_throughputs, SIA.replace("gpu_type", "kind")),
    "shockwave": (gavel.read_trace, SHOCKWAVE),
}


@pytest.mark.parametrize("name", FORMATS)
def test_harmed_files_are_read_or_refused_in_a_line(name: str, tmp_path: Path) -> None:
    read, content = FORMATS[name]
    path = tmp_path / "file"
    rng = np.random.default_rng(7)
    words = []
    for number in range(80):
        if number % 4 == 0 and name == "philly":
            harmed = mutations.as_json(rng, mutations.altered_tree(rng, json.loads(content)))
        else:
            harmed = mutations.altered_text(rng, content) if number % 2 else mutations.altered_table(rng, content)
        path.write_bytes(harmed if isinstance(harmed, bytes) else harmed.encode(errors="surrogatepass"))
        try:
            read(path)
        except InstanceError as error:
            words.append(str(error))
    assert len(words) > 10
    assert max(map(len, words)) < 800
    assert not any("\n" in one for one in words)
