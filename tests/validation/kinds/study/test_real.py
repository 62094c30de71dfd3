"""Instances that a study draws from real data: options of readers, several files, times of a trace."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.faults.studies import without_pictures
from instances import InstanceError
from instances.data.jobs import DoubtfulData
from instances.data.lines import read_table
from instances.elasticflow import admission
from instances.gavel.traces import from_trace
from validation import StudyError, gap_study
from validation.catalogue import CATALOGUE
from validation.kinds.study.cases import choose_cases
from validation.kinds.study.options import StudyOptions
from validation.reader_options import pairs, parameters, typed

JOBS = "JobID,submit_time,duration,num_gpu\n" + "".join(
    f"j{job},{600 * job},{3600 + job},{1 + job % 2}\n" for job in range(12)
)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Any]:
    """A throughput table and two traces, the second with a row that cannot be read."""
    tables = tmp_path / "tables"
    tables.mkdir()
    (tables / "bert.csv").write_text("global_batch_size,1,2,4\n32,4,6,8\n", encoding="utf-8")
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    first.write_text(JOBS, encoding="utf-8")
    second.write_text(JOBS.replace("j5,3000", "j5,soon").replace(",36", ",72"), encoding="utf-8")
    return {"throughputs": str(tables), "trace": [str(first), str(second)]}


@pytest.fixture
def gavel(tmp_path: Path) -> dict[str, Any]:
    table = {kind: {"('m', 1)": {"null": rate}} for kind, rate in (("a100", 1.0), ("h100", 3.0))}
    (tmp_path / "own.json").write_text(json.dumps(table), encoding="utf-8")
    lines = "".join(f"m\tx\t-n\t1\t{3000 + 100 * job}\t{100 * job}\t1\n" for job in range(6))
    (tmp_path / "own.trace").write_text(lines, encoding="utf-8")
    return {"throughputs": str(tmp_path / "own.json"), "trace": str(tmp_path / "own.trace")}


def asked(tmp_path: Path, problem: str, **given: Any) -> list[Any]:
    options = StudyOptions(problems=problem, seed=3, output=tmp_path / "study", real_only=True, **given)
    return choose_cases([problem], options)


READER = {"columns": {"job_id": "JobID"}, "skip_bad_rows": "true", "num_gpus": 4, "slot_seconds": "600"}


def test_options_reach_the_reader_and_each_trace_is_drawn_from(tmp_path: Path, files: dict[str, Any]) -> None:
    cases = asked(tmp_path, "elasticflow.admission", **files, reader=READER, sizes=[3], count=2)
    assert [(case.source, case.size, case.index) for case in cases] == [("trace", 3, index) for index in range(4)]
    told = [case.instance.origin for case in cases]
    assert [one["trace"]["source"] for one in told] == files["trace"] * 2
    assert [one["trace"]["skipped"] for one in told] == [0, 1] * 2
    assert all(case.instance.num_gpus == 4 for case in cases)
    assert all(one["options"]["slot_seconds"] == 600 for one in told)


def test_repair_is_short_for_an_option_of_the_reader() -> None:
    both = [
        StudyOptions(problems="afs", seed=1, output="study", **given)
        for given in ({"repair": True, "reader": {"num_gpus": 8}}, {"reader": {"num_gpus": 8, "repair": True}})
    ]
    assert both[0].reader == both[1].reader == {"num_gpus": 8, "repair": True}


def test_windows_begin_at_times(tmp_path: Path, files: dict[str, Any]) -> None:
    given = {**files, "trace": files["trace"][0]}
    cases = asked(tmp_path, "elasticflow.admission", **given, reader=READER, sizes=[3], times=[0, 601])
    assert [case.instance.origin["jobs"] for case in cases] == [["j0", "j1", "j2"], ["j2", "j3", "j4"]]
    with pytest.raises(ValueError, match=r"time: got 6600, of which on there are 1 jobs in .*first\.csv, must be 3"):
        asked(tmp_path, "elasticflow.admission", **given, reader=READER, sizes=[3], times=[6600])


def test_snapshots_have_the_size_of_what_is_active(tmp_path: Path, gavel: dict[str, Any]) -> None:
    reader = {"prices.a100": "1", "prices.h100": "2.5", "num_workers": "2,1"}
    cases = asked(
        tmp_path, "gavel.cost", **gavel, reader=pairs([f"{a}={b}" for a, b in reader.items()]), times=[0, 150]
    )
    assert [(case.size, case.index) for case in cases] == [(1, 0), (2, 1)]
    for case, time in zip(cases, (0.0, 150.0), strict=True):
        made = case.instance
        assert made.costs.tolist() == [1.0, 2.5]
        assert made.num_workers.tolist() == [2, 1]
        # On the fastest type a job makes 3 steps/s from its arrival on.
        arrived = np.arange(6) * 100.0
        arrived = arrived[arrived <= time]
        assert made.steps.tolist() == (3000 + arrived - 3 * (time - arrived)).tolist()


def test_prices_that_are_missing_are_named(tmp_path: Path, gavel: dict[str, Any]) -> None:
    for times in ({"times": [0]}, {"sizes": [2], "count": 1}):
        with pytest.raises(ValueError, match=r"prices: there is none of worker type 'a100', give prices=\{'a100'"):
            asked(tmp_path, "gavel.cost", **gavel, **times)


@pytest.mark.parametrize(
    ("by", "entities"), [("model", [0, 0]), ("scale_factor", [0, 0]), ("in_turn", [0, 1]), (None, [0, 0])]
)
def test_entities_by_rule(gavel: dict[str, Any], by: str | None, entities: list[int]) -> None:
    made = from_trace("gavel.hierarchical_fairness", **gavel, time=150, entities_by=by)
    assert made.entities.tolist() == entities  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"reader": {"slots": 1}}, "elasticflow.admission has no option 'slots'"),
        ({"reader": {"num_gpu": 1}}, r"'num_gpu' \(did you mean 'num_gpus'\?\); it takes .*slot_seconds \(a number\)"),
        ({"reader": {"num_gpus": "4.5"}}, "num_gpus of elasticflow.admission: got '4.5', must be a whole number"),
        ({"reader": {"num_gpus": True}}, "num_gpus of elasticflow.admission: got True, must be a whole number"),
        ({"reader": {"interpolate": "perhaps"}}, "got 'perhaps', must be true or false"),
        ({"reader": {"columns": "JobID"}}, "got 'JobID', must be ENTRY=text for each entry"),
        ({"reader": {"num_jobs": 4}}, "num_jobs of elasticflow.admission is what --sizes says"),
        ({"reader": {"time": 4}}, "time of elasticflow.admission is what --times says"),
        ({"times": [-1]}, "times: got -1, must be seconds of at least 0"),
        ({"reader": {"slot_seconds": -1}}, r"slot_seconds: got -1\.0, must be positive"),
        ({"reader": {"num_gpus": 0}}, "num_gpus: got 0, must be at least 1"),
    ],
)
def test_what_no_reader_takes(options: dict[str, Any], words: str, tmp_path: Path, files: dict[str, Any]) -> None:
    given = {**files, "trace": files["trace"][0], "sizes": [2], "count": 1, **options}
    given["reader"] = {"columns": {"job_id": "JobID"}, **given.get("reader", {})}
    with pytest.raises(ValueError, match=words):
        gap_study("elasticflow.admission", **given, seed=1, real_only=True, output=tmp_path / "study")
    assert not (tmp_path / "study").exists()


def test_a_problem_without_times_says_so(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"times: synergy\.tuning knows no time of its trace"):
        asked(tmp_path, "synergy.tuning", throughputs="p", trace="t", times=[0])


def test_every_option_of_every_reader_is_of_a_known_type() -> None:
    for problem, entry in CATALOGUE.items():
        for function in filter(None, (entry.from_trace, entry.snapshot)):
            known = parameters(function)
            assert known, problem
            # What is of no type that is known would take anything.
            assert Any not in known.values(), problem
            assert "skip_bad_rows" in known
            assert typed({"skip_bad_rows": "true"}, known, problem) == {"skip_bad_rows": True}


def test_models_of_the_trace_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "bert.csv").write_text("global_batch_size,1,2\n32,4,6\n", encoding="utf-8")
    trace = tmp_path / "trace.csv"
    trace.write_text(
        "job_id,submit_time,duration,num_gpu,model_name,batch_size,iterations\na,0,7200,1,vgg,8,5\n", encoding="utf-8"
    )
    with pytest.raises(ValueError, match="no throughput of vgg at batch size 8"):
        admission.from_trace(0, throughputs=tmp_path / "bert.csv", trace=trace, num_jobs=1, num_gpus=2)
    made = admission.from_trace(
        0, throughputs=tmp_path / "bert.csv", trace=trace, num_jobs=1, num_gpus=2, draw_models=True
    )
    assert made.iterations.tolist() == [4 * 7200]


def test_the_report_says_what_was_read_and_repaired(tmp_path: Path, files: dict[str, Any]) -> None:
    study = gap_study(
        "elasticflow.admission",
        **files,
        reader=READER,
        sizes=[2],
        count=1,
        seed=1,
        real_only=True,
        heuristics=["edf"],
        output=tmp_path / "study",
    )
    page = study.report.read_text(encoding="utf-8")
    assert all(f'<td class="text">{path}</td>' in page for path in [*files["trace"], files["throughputs"]])
    assert "1 rows skipped, the first: " in page
    assert "submit_time: got &#39;soon&#39;" in page
    assert "model and batch size are drawn" in page


# --- DataFrames -----------------------------------------------------------------------------------


def _frames(files: dict[str, Any]) -> dict[str, Any]:
    return {
        "throughputs": pd.read_csv(Path(files["throughputs"]) / "bert.csv").assign(model="bert"),
        "trace": pd.read_csv(files["trace"][0]),
    }


def test_a_frame_is_drawn_from_as_its_file_is(tmp_path: Path, files: dict[str, Any]) -> None:
    reader = {"num_gpus": 4, "slot_seconds": 600}
    given = {"reader": reader, "sizes": [3], "count": 2}
    by_file = asked(
        tmp_path, "elasticflow.admission", throughputs=files["throughputs"], trace=files["trace"][0], **given
    )
    frames = _frames(files)
    assert [case.digest for case in asked(tmp_path, "elasticflow.admission", **frames, **given)] == [
        case.digest for case in by_file
    ]
    # Of several, each is drawn from, and one that is given twice once.
    second = frames["trace"].assign(duration=7200)
    several = asked(
        tmp_path, "elasticflow.admission", **frames | {"trace": [frames["trace"], second, second.copy()]}, **given
    )
    assert len(several) == 4
    of_paper = asked(
        tmp_path, "elasticflow.admission", **{name: {"elasticflow": frame} for name, frame in frames.items()}, **given
    )
    assert [case.digest for case in of_paper] == [case.digest for case in by_file]


def test_a_study_is_resumed_with_the_same_frame_and_notices_another(tmp_path: Path, files: dict[str, Any]) -> None:
    frames = _frames(files)
    given: dict[str, Any] = {
        "seed": 1,
        "sizes": [3],
        "count": 1,
        "real_only": True,
        "heuristics": ["edf"],
        "output": tmp_path / "study",
        "jobs": 1,
        "progress": False,
    }
    with without_pictures():
        first = gap_study("elasticflow.admission", **frames, **given)
        assert first.metadata["asked"]["trace"] == f"DataFrame {read_table(frames['trace']).sha256}"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            again = gap_study(
                "elasticflow.admission", **{name: frame.copy() for name, frame in frames.items()}, **given
            )
        assert again.rows["key"].tolist() == first.rows["key"].tolist()
        other = {**frames, "trace": frames["trace"].assign(duration=9)}
        with pytest.warns(UserWarning, match=r"another study was here: trace was .DataFrame \w+.* and is .DataFrame"):
            changed = gap_study("elasticflow.admission", **other, **given)
    assert set(changed.rows["key"]).isdisjoint(first.rows["key"])


@pytest.mark.parametrize("problem", ["gavel.makespan", "gavel.cost"])
def test_gavel_s_problems_are_studied_on_frames(tmp_path: Path, problem: str) -> None:
    rates = pd.DataFrame(
        {
            "worker_type": ["k80", "v100"] * 2,
            "model": ["m", "m", "n", "n"],
            "scale_factor": 1,
            "throughput": [1.0, 3, 2, 2],
        }
    )
    jobs = pd.DataFrame({"model": ["m", "n"] * 3, "gpus": 1, "arrival": np.arange(6.0), "duration": 60.0})
    cases = asked(tmp_path, problem, throughputs=rates, trace=jobs, sizes=[4], count=2)
    assert [case.size for case in cases] == [4, 4]
    with pytest.raises(StudyError, match="times: got 'soon'"):
        asked(tmp_path, problem, throughputs=rates, trace=jobs, times=["soon"])


def test_what_is_neither_path_nor_frame_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InstanceError, match="got int, must be a path, an open file or a DataFrame"):
        asked(tmp_path, "elasticflow.admission", throughputs=3, trace=4)


def test_doubts_about_a_trace_reach_whoever_studies_it(tmp_path: Path, files: dict[str, Any]) -> None:
    frames = _frames(files)
    slow = frames["trace"].assign(duration=40 * 86400)
    with pytest.warns(
        DoubtfulData, match="half of the jobs take longer than 40 days: are their durations milliseconds"
    ):
        asked(tmp_path, "elasticflow.admission", throughputs=frames["throughputs"], trace=slow, sizes=[3], count=1)
