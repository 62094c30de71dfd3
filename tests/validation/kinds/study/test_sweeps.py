"""Studies: parameters of generators that are swept."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import instances
from instances.aryl import reclaim
from validation import Study, StudyError, StudyOptions, gap_study, merge_studies
from validation.kernel.forecast import forecast
from validation.kernel.options import Options
from validation.kernel.store import read_record
from validation.kinds.study.cases import choose_cases
from validation.kinds.study.real import stream
from validation.kinds.study.records import STUDY
from validation.kinds.study.run import plan
from validation.kinds.study.sweeps import TAKEN, choose_settings, labels_of

from .studies import FORKED, SMALL, computed, log_of, without_times

pytestmark = FORKED

SWEPT: dict[str, Any] = {**SMALL, "count": 2, "heuristics": ["gpu_fraction"], "sweep": {"spread": [0.1, 0.9]}}


def test_each_value_has_instances_of_the_same_seeds(tmp_path: Path) -> None:
    study = gap_study(**SWEPT, output=tmp_path)
    assert study.swept == ("spread",)
    assert study.metadata["asked"]["sweep"] == {"spread": [0.1, 0.9]}
    rows = study.rows
    assert list(rows["spread"]) == [0.1] * 4 + [0.9] * 4
    for row in rows.to_dict("records"):
        drawn = reclaim.generate(
            stream("aryl.reclaim", 3, row["size"], row["index"]), num_servers=row["size"], spread=row["spread"]
        )
        assert instances.load(tmp_path / row["file"]) == drawn
    summary = study.summary()
    assert list(summary.columns[:5]) == ["problem", "source", "size", "spread", "heuristic"]
    assert list(summary["spread"]) == [0.1, 0.9]
    assert list(summary["instances"]) == [2, 2]
    for value, gap in zip(summary["spread"], summary["gap_mean_high"], strict=True):
        mine = rows[(rows["spread"] == value) & (rows["algorithm"] == "gpu_fraction")]
        assert gap == mine["gap_high"].mean()
    assert list(study.overview()["spread"]) == ["0.1", "0.9"]
    table = pd.read_parquet(tmp_path / "results.parquet")
    assert table["spread"].tolist() == rows["spread"].tolist()
    # Two values more: what is there stays, and nothing is out of the table.
    more = {**SWEPT["sweep"], "spread": [0.9, 0.5, 0.1]}
    assert computed(tmp_path, **{**SWEPT, "sweep": more}) == [("exact", 5)] * 2 + [("gpu_fraction", 5)] * 2
    with pytest.warns(UserWarning, match=r'sweep was {"spread": \[0.9, 0.5, 0.1\]} and is null; 12 of its 12 runs'):
        gap_study(**{**SWEPT, "sweep": None}, output=tmp_path)


def test_values_that_make_the_same_instance_have_rows_of_their_own(tmp_path: Path) -> None:
    # So few jobs that neither share of elastic ones makes one.
    sweep = {"elastic": [0.0, 1e-9]}
    study = gap_study(**{**SWEPT, "sweep": sweep}, output=tmp_path)
    assert study.rows["instance"].nunique() == 2
    assert list(study.summary()["instances"]) == [2, 2]
    assert study.rows["key"].is_unique
    assert study.rows["exact_status"].tolist() == ["optimal"] * 8
    # Nothing of them is lost on the way to the disk and back.
    pd.testing.assert_frame_equal(Study.load(tmp_path).rows, study.rows)


def keys(**asked: Any) -> list[str]:
    return [cell.key for cell in plan(StudyOptions(**{**SWEPT, "output": "nowhere", **asked})).cells]


def test_keys_without_a_sweep_are_what_they_were() -> None:
    unswept = {"problems": ["aryl.elastic_allocation"], "heuristics": None, "sweep": None}
    # It has no such parameter, and its runs are the same in a study of two.
    both = keys(**{**unswept, "problems": ["aryl.reclaim", "aryl.elastic_allocation"], "sweep": {"spread": [0.5]}})
    assert set(keys(**unswept)) < set(both)
    # Even the generator's own default is a value of its own, in the table and by its key.
    assert not set(keys(sweep={"spread": [0.8]})) & set(keys(sweep=None))


def test_a_problem_without_the_parameter_does_without(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"seed": 1, "sizes": [3], "count": 1, "heuristics": ["gpu_fraction", "marginal_greedy"]}
    problems = ["aryl.reclaim", "aryl.elastic_allocation"]
    study = gap_study(problems, **asked, sweep={"spread": [0.2, 0.4]}, output=tmp_path)
    assert list(study.rows["spread"].fillna(-1)) == [0.2, 0.2, 0.4, 0.4, -1, -1]
    summary = study.summary()
    assert list(summary["problem"]) == ["aryl.reclaim", "aryl.reclaim", "aryl.elastic_allocation"]
    assert list(summary["instances"]) == [1, 1, 1]
    assert list(study.overview()["spread"]) == ["0.2", "0.4", ""]


@pytest.mark.parametrize(
    ("problem", "sweep", "column"),
    [
        ("aryl.reclaim", {"gpus_per_server": ["4,8"]}, pd.array([4, 8], dtype="Int64")),
        ("aryl.reclaim", {"spread": ["0", "0.5,1"]}, pd.array([0, 0.5, 1], dtype="float64")),
        ("aryl.elastic_allocation", {"linear": ["true", "false"]}, pd.array([True, False], dtype="boolean")),
        ("elasticflow.admission", {"curves": ["concave", "concave"]}, pd.array(["concave"], dtype="string")),
        ("synergy.tuning", {"mix": ["0.2,0.8,0", "1,0,0"]}, pd.array(["0.2,0.8,0.0", "1.0,0.0,0.0"], dtype="string")),
        ("synergy.tuning", {"mix": [[0.2, 0.8, 0.0]]}, pd.array(["0.2,0.8,0.0"], dtype="string")),
    ],
)
def test_values_are_read_by_the_generators_signature(problem: str, sweep: Mapping[str, Any], column: Any) -> None:
    from validation.kinds.study.results import _kind_of

    labels = labels_of(choose_settings([problem], sweep))
    assert labels == {name: column.tolist() for name in sweep}
    assert column.dtype == _kind_of(*labels.values())
    options = StudyOptions(problems=problem, seed=1, count=1, sizes=[4], sweep=sweep, output="nowhere")
    cases = choose_cases([problem], options)
    assert [case.swept for case in cases] == [{name: label} for name in labels for label in labels[name]]


def test_several_parameters_are_all_combined() -> None:
    options = StudyOptions(
        problems="aryl.reclaim", seed=1, count=1, sizes=[4], sweep={"spread": [0, 1], "locality": [0, 1]}, output="x"
    )
    cases = choose_cases(["aryl.reclaim"], options)
    assert [tuple(case.swept.values()) for case in cases] == [(0, 0), (0, 1), (1, 0), (1, 1)]


@pytest.mark.parametrize(
    ("sweep", "words"),
    [
        (
            {"spred": [0.1]},
            "sweep: no problem studied has a parameter 'spred' (did you mean 'spread'?); there are demand, ",
        ),
        ({"num_servers": [4]}, "sweep: num_servers of aryl.reclaim is what --sizes says"),
        ({"spread": 0.1}, "sweep: spread: got 0.1, must be a list of values"),
        ({"spread": []}, "sweep: spread: got [], must be a list of values"),
        ({"spread": [0.1, "x"]}, "sweep: spread of the generator of aryl.reclaim: got 'x', must be a number"),
        ({"spread": [None]}, "sweep: spread of the generator of aryl.reclaim: got None, must be a number"),
        ({"spread": [np.nan]}, "must be a finite number"),
        (
            {"spread": [0.1, 2]},
            "cannot generate aryl.reclaim with num_servers = 5, spread = 2.0: spread: got 2.0, must",
        ),
        ([0.1], "sweep: got [0.1], must be a mapping from parameters to values"),
    ],
)
def test_bad_sweeps_are_told_before_anything_begins(sweep: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(StudyError) as caught:
        gap_study(**{**SWEPT, "sweep": sweep}, output=tmp_path / "study")
    assert words in str(caught.value)
    assert not (tmp_path / "study").exists()


def test_what_a_generator_stumbles_over_is_told() -> None:
    options = StudyOptions(problems="gavel.makespan", seed=1, sizes=[4], sweep={"num_types": [0]}, output="nowhere")
    with pytest.raises(
        StudyError, match=r"cannot generate gavel.makespan with num_jobs = 4, num_types = 0: IndexError: "
    ):
        choose_cases(["gavel.makespan"], options)


def test_given_instances_are_not_swept(tmp_path: Path) -> None:
    given = [reclaim.six_servers()]
    with pytest.raises(StudyError, match="sweep: nothing is generated that could be swept"):
        gap_study(**{**SWEPT, "count": None}, instances=given, output=tmp_path)
    rows = gap_study(**{**SWEPT, "count": 1}, instances=given, output=tmp_path).rows
    assert rows["spread"].isna().tolist() == [True] * 2 + [False] * 4


def test_a_sweep_is_forecast(tmp_path: Path) -> None:
    gap_study(**{**SWEPT, "sweep": {"spread": [0.1]}}, output=tmp_path)
    told: list[str] = []
    found = forecast(plan(StudyOptions(**SWEPT, output=tmp_path)), told.append)
    # Of another value nothing like it is known.
    assert (found.cells, found.ended, found.unknown) == (8, 4, 4)
    assert told == []
    forecast(plan(StudyOptions(**{**SWEPT, "seed": 4}, output=tmp_path)), told.append)
    assert "seed was 3 and is 4; 4 of its 4 runs are no part of this one" in told[0]


@pytest.mark.slow
def test_shards_of_a_sweep_are_merged(tmp_path: Path) -> None:
    whole = gap_study(**SWEPT, output=tmp_path / "whole")
    shards = [gap_study(**SWEPT, shard=f"{number}/2", output=tmp_path / str(number)) for number in range(2)]
    assert sum(len(shard.rows) for shard in shards) == 8
    merged = merge_studies([shard.directory for shard in shards], tmp_path / "merged")
    pd.testing.assert_frame_equal(without_times(merged.rows), without_times(whole.rows))
    other = gap_study(**{**SWEPT, "sweep": {"spread": [0.1, 0.8]}}, output=tmp_path / "other")
    with pytest.raises(StudyError, match=r"holds another study than .*: sweep: "):
        merge_studies([whole.directory, other.directory], tmp_path / "both")


@pytest.mark.parametrize(
    "changed",
    [
        {"spread": "0.1"},
        {"spread": {"of": [0.1]}},
        {"seconds": [0.1]},
        {"a name": [0.1]},
        {"spread": [[0.1]]},
        [0.1],
        {"locality": [0.1]},
    ],
)
def test_a_record_with_another_sweep_is_refused(changed: Any, tmp_path: Path) -> None:
    gap_study(**{**SWEPT, "count": 1, "heuristics": []}, output=tmp_path)
    record = json.loads((tmp_path / "study.json").read_text(encoding="utf-8"))
    record["asked"]["sweep"] = changed
    (tmp_path / "study.json").write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(StudyError, match=r"study.json: .*(asked.sweep|locality' is missing)"):
        read_record(tmp_path, STUDY)


def test_a_row_that_says_another_value_is_damaged(tmp_path: Path) -> None:
    gap_study(**{**SWEPT, "count": 1, "heuristics": []}, output=tmp_path)
    rows = log_of(tmp_path)
    rows[0]["spread"] = 0.7
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    told: list[str] = []
    assert len(Study.load(tmp_path, told.append).rows) == 1
    assert "field 'spread': got 0.7, must be 0.1, as its cell has it" in told[0]


def test_names_that_mean_something_else_are_known(tmp_path: Path) -> None:
    study = gap_study(**{**SMALL, "count": 1}, output=tmp_path)
    of_overview = filter(str.isidentifier, study.overview())
    assert {*study.rows, *study.summary(), *of_overview, *log_of(tmp_path)[0]} <= TAKEN


def test_distances_to_the_bound_are_apart_for_each_value(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"seed": 1, "sizes": [2], "count": 1, "heuristics": ["tune"]}
    study = gap_study("synergy.tuning", **asked, sweep={"load": [0.5, 0.8]}, output=tmp_path)
    page = study.report.read_text(encoding="utf-8")
    shown = page[page.index('id="synergy.tuning-bound"') :]
    lines = [re.findall(r"<td[^>]*>([^<]*)", line)[:5] for line in shown[: shown.index("</table>")].split("<tr>")[2:]]
    assert lines == [["generated", load, "2", "tune", "1"] for load in ("0.5", "0.8")]


def test_a_sweep_in_words(tmp_path: Path) -> None:
    given: type[Options] = StudyOptions
    asked = {"problems": ["aryl.reclaim"], "seed": 1, "output": Path("x")}
    options = given.given(None, **asked, sweep=["spread=0.1,0.5", "spread=0.9", "locality=1"])
    assert isinstance(options, StudyOptions)
    assert options.sweep == {"spread": ["0.1,0.5", "0.9"], "locality": ["1"]}
    (tmp_path / "study.toml").write_text("sweep = { spread = [0.1, 0.5] }", encoding="utf-8")
    options = given.given(tmp_path / "study.toml", **asked)
    assert isinstance(options, StudyOptions)
    assert options.sweep == {"spread": [0.1, 0.5]}
    for wrong in ("spread", "=1", "spread="):
        with pytest.raises(StudyError, match=f"--sweep: got '{wrong}', must be NAME=VALUE,VALUE"):
            given.given(None, **asked, sweep=[wrong])
