"""Studies: where their instances come from."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import instances
from instances.aryl import elastic_allocation, reclaim
from validation import CATALOGUE, StudyError, gap_study
from validation.kinds.study.cases import choose_cases, generate
from validation.kinds.study.options import StudyOptions

from .studies import FORKED

pytestmark = FORKED


def test_given_instances(tmp_path: Path) -> None:
    folder = tmp_path / "instances"
    (folder / "more").mkdir(parents=True)
    given = [reclaim.six_servers(), reclaim.wide_job(), generate("aryl.reclaim", 1, 6)]
    for number, instance in enumerate(given):
        instances.save(instance, folder / ("more" if number == 2 else "") / f"{number}.json")
    instances.save(given[0], folder / "a copy.json")
    instances.save(elastic_allocation.two_elastic_jobs(), folder / "of another problem.json")
    by_path = gap_study("aryl.reclaim", seed=1, instances=folder, heuristics=["random"], output=tmp_path / "one")
    exact = by_path.rows[by_path.rows["algorithm"] == "exact"]
    assert set(exact["instance"]) == {instance.digest for instance in given}
    assert set(exact["source"]) == {"file"}
    assert list(exact["size"]) == [6, 6, 6]
    assert len(set(exact["index"])) == 3
    assert by_path.metadata["asked"]["instances"] == str(folder)
    by_value = gap_study("aryl.reclaim", seed=1, instances=given, heuristics=["random"], output=tmp_path / "two")
    columns = ["instance", "algorithm", "status", "value", "gap"]
    pd.testing.assert_frame_equal(
        by_path.rows[columns].sort_values(columns[:2], ignore_index=True),
        by_value.rows[columns].sort_values(columns[:2], ignore_index=True),
    )
    more = gap_study(
        "aryl.reclaim", seed=1, instances=given, sizes=[4], count=2, heuristics=[], output=tmp_path / "three"
    )
    assert sorted(more.rows["source"]) == ["file"] * 3 + ["generated"] * 2


@pytest.mark.parametrize("problem", instances.problems())
def test_instances_of_every_problem_are_studied_at_their_size(problem: str, tmp_path: Path) -> None:
    given = [generate(problem, 1, size) for size in CATALOGUE[problem].sizes[:2]]
    for number, instance in enumerate(given):
        instances.save(instance, tmp_path / f"{number}.json")
    options = StudyOptions(problems=problem, seed=1, instances=tmp_path, output=tmp_path / "study")
    cases = choose_cases([problem], options)
    # Present shares of two jobs do not tell the greatest that they were drawn from.
    sizes = [0, 0] if problem == "afs.two_job" else list(CATALOGUE[problem].sizes[:2])
    assert [(case.instance, case.source, case.size) for case in cases] == [
        (instance, "file", size) for instance, size in zip(given, sizes, strict=True)
    ]


def test_only_files_are_read_as_instances(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    os.mkfifo(folder / "pipe.json")
    with pytest.raises(StudyError, match=r"instances: .*pipe\.json is not a file"):
        gap_study("aryl.reclaim", seed=1, instances=folder, output=tmp_path / "study")
    (folder / "pipe.json").unlink()
    (folder / "loop").symlink_to("loop")
    with pytest.raises(StudyError, match="loop is not a directory"):
        gap_study("aryl.reclaim", seed=1, instances=folder / "loop", output=tmp_path / "study")
    assert not (tmp_path / "study").exists()


def test_a_bad_instance_file_is_named(tmp_path: Path) -> None:
    good = json.dumps(reclaim.six_servers().to_dict())
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "good.json").write_text(good, encoding="utf-8")
    (folder / "truncated.json").write_text(good[:100], encoding="utf-8")
    with pytest.raises(instances.InstanceError, match=r"truncated\.json: not valid JSON"):
        gap_study("aryl.reclaim", seed=1, instances=folder, output=tmp_path / "study")
    assert not (tmp_path / "study").exists()


def test_sizes_by_problem(tmp_path: Path) -> None:
    study = gap_study(
        ["aryl.reclaim", "aryl.elastic_allocation"],
        seed=1,
        sizes={"aryl.reclaim": [4], "aryl.elastic_allocation": np.array([2, 3])},
        count=1,
        heuristics=[],
        output=tmp_path,
    )
    assert list(zip(study.rows["problem"], study.rows["size"], strict=True)) == [
        ("aryl.reclaim", 4),
        ("aryl.elastic_allocation", 2),
        ("aryl.elastic_allocation", 3),
    ]


def test_real_data(data: Path, tmp_path: Path) -> None:
    assert CATALOGUE["gavel.max_min_fairness"].from_trace is not None
    throughputs = data / "gavel" / "simulation_throughputs.json"
    trace = data / "gavel" / "msr_seed0_0e4a51.trace"
    study = gap_study(
        ["gavel.max_min_fairness", "aryl.reclaim"],
        seed=1,
        sizes=[6],
        count=2,
        throughputs=throughputs,
        trace={"gavel": trace},
        output=tmp_path / "study",
    )
    exact = study.rows[study.rows["algorithm"] == "exact"]
    found = exact.groupby(["problem", "source"]).size().to_dict()
    assert found == {
        ("gavel.max_min_fairness", "generated"): 2,
        ("gavel.max_min_fairness", "trace"): 2,
        ("aryl.reclaim", "generated"): 2,
    }
    assert set(exact["status"]) == {"optimal"}
    assert (exact["size"] == 6).all()
    assert not study.rows["disagreement"].any()
    assert study.metadata["asked"]["throughputs"] == str(throughputs)


def test_missing_real_data_is_named(tmp_path: Path) -> None:
    assert CATALOGUE["gavel.max_min_fairness"].from_trace is not None
    arguments: dict[str, Any] = {"seed": 1, "sizes": [4], "count": 1, "output": tmp_path / "study"}
    missing = tmp_path / "nowhere"
    with pytest.raises(OSError, match="nowhere"):
        gap_study("gavel.max_min_fairness", throughputs=missing, trace=missing, **arguments)
    with pytest.raises(StudyError, match=r"real data of gavel\.max_min_fairness: needs trace, too"):
        gap_study("gavel.max_min_fairness", throughputs=missing, **arguments)
    assert not (tmp_path / "study").exists()
