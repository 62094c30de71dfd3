"""Studies: what their rows, table and metadata hold."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import formulations
import instances
from instances.aryl import reclaim
from validation import CATALOGUE, Progress, gap_study
from validation.kinds.study.cases import generate
from validation.kinds.study.report import finish

from .studies import CELLS, FORKED, HEURISTICS, SMALL, TIMES, log_of, without_times

pytestmark = FORKED


def test_rows_are_the_cells(tmp_path: Path) -> None:
    study = gap_study(["aryl.reclaim", "aryl.elastic_allocation"], seed=1, sizes=[3, 5], count=2, output=tmp_path)
    rows = study.rows
    assert len(rows) == 2 * 2 * (1 + len(HEURISTICS)) + 2 * 2 * (1 + 5)
    others = ["dynamic_program", "base_charged_again", "marginal_greedy", "afs", "gandiva"]
    assert list(dict.fromkeys(rows["algorithm"])) == ["exact", *HEURISTICS, *others]
    assert set(rows["source"]) == {"generated"}
    assert not rows.duplicated(["instance", "algorithm"]).any()
    assert rows["key"].is_unique
    for (problem, size), group in rows[rows["algorithm"] == "exact"].groupby(["problem", "size"]):
        assert list(group["index"]) == [0, 1]
        for digest, index in zip(group["instance"], group["index"], strict=True):
            assert generate(str(problem), 1, int(size), index).digest == digest
    exact = rows[rows["algorithm"] == "exact"]
    assert (exact["status"] == "optimal").all()
    assert (exact["solver"].str.startswith("highs ")).all()
    assert np.allclose(exact["value"], exact["bound"], rtol=1e-6)
    assert exact[["gap", "gap_low", "gap_high"]].isna().all(axis=None)
    others = rows[rows["algorithm"] != "exact"]
    assert (others["status"] == "feasible").all()
    assert (others["gap"] == others["gap_low"]).all()
    assert (others["gap"] == others["gap_high"]).all()
    gaps = (others["value"] - others["exact_value"]).abs() / others["exact_value"].abs()
    assert np.allclose(others["gap"], gaps, atol=1e-6)
    assert not rows["disagreement"].any()
    assert (rows["seconds"] >= 0).all()
    assert study.disagreements.empty


def test_values_are_the_instances_own(tmp_path: Path) -> None:
    study = gap_study(**SMALL, output=tmp_path)
    for row in study.rows.to_dict("records"):
        instance = instances.load(tmp_path / row["file"])
        assert instance.digest == row["instance"]
        if row["algorithm"] == "exact":
            assert row["value"] == formulations.solve(instance).objective
        elif row["algorithm"] != "random":
            plan = CATALOGUE["aryl.reclaim"].heuristics[row["algorithm"]].function(instance)
            assert row["value"] == instance.objective(plan)


def test_the_same_seed_is_the_same_study(tmp_path: Path) -> None:
    one = gap_study(**{**SMALL, "jobs": 1}, output=tmp_path / "one")
    two = gap_study(**{**SMALL, "jobs": 2}, output=tmp_path / "two")
    pd.testing.assert_frame_equal(without_times(one.rows), without_times(two.rows))
    other = gap_study(**{**SMALL, "seed": 4}, output=tmp_path / "three")
    assert set(other.rows["instance"]).isdisjoint(one.rows["instance"])


def test_table_can_be_read_by_pandas(tmp_path: Path) -> None:
    study = gap_study(**SMALL, output=tmp_path)
    table = pd.read_parquet(tmp_path / "results.parquet")
    # The same types; words are Arrow's in one and Python's in the other.
    assert (table.dtypes.map(str) == study.rows.dtypes.map(str)).all()
    pd.testing.assert_frame_equal(table.astype(study.rows.dtypes), study.rows)
    numbers = ["value", "bound", *TIMES, "exact_value", "exact_bound", "best_value", "gap", "gap_low", "gap_high"]
    assert (table[numbers].dtypes == "float64").all()
    assert (table[["size", "index"]].dtypes == "int64").all()
    assert table["disagreement"].dtype == bool


def test_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["optgap", "study", "a name"])
    study = gap_study(**SMALL, time_limit=30, output=tmp_path)
    assert json.loads((tmp_path / "metadata.json").read_text(encoding="utf-8")) == study.metadata
    meta = study.metadata
    assert meta["command"] == "optgap study 'a name'"
    assert meta["asked"] == {
        "problems": ["aryl.reclaim"],
        "heuristics": {"aryl.reclaim": HEURISTICS},
        "sizes": [5],
        "sweep": None,
        "count": 3,
        "seed": 3,
        "instances": None,
        "throughputs": None,
        "trace": None,
        "placements": None,
        "reader": None,
        "times": None,
        "real_only": False,
        "repair": False,
        "time_limit": 30,
        "solver": "highs",
        "verify": False,
    }
    counts = {name: meta[name] for name in ("cells", "cells_ended", "failed", "disagreements", "finished", "jobs")}
    assert counts == {
        "cells": CELLS,
        "cells_ended": CELLS,
        "failed": 0,
        "disagreements": 0,
        "finished": True,
        "jobs": 2,
    }
    assert {"python", "pyomo", "highspy", "numpy", "scheduling-formulations"} <= meta["versions"].keys()
    assert meta["versions"]["numpy"] == np.__version__
    assert {"system", "processor", "cores"} <= meta["machine"].keys()
    assert meta["seconds"] > 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", meta["started"])
    assert meta["commit"] is None or re.match(r"[0-9a-f]{40}", meta["commit"])


def test_a_call_that_computes_nothing_keeps_the_record_of_the_run(tmp_path: Path) -> None:
    first = gap_study(**SMALL, output=tmp_path).metadata
    assert gap_study(**{**SMALL, "jobs": 1}, output=tmp_path).metadata == first
    assert finish(tmp_path).metadata == first
    later = gap_study(**{**SMALL, "jobs": 1, "count": 4}, output=tmp_path).metadata
    assert later["jobs"] == 1


def test_progress_is_told(tmp_path: Path) -> None:
    told: list[Progress] = []
    gap_study(**SMALL, output=tmp_path, progress=told.append)
    assert [p.done for p in told] == list(range(CELLS + 1))
    assert {p.total for p in told} == {CELLS}
    assert told[0].seconds_left is None
    assert all(p.seconds_left is not None and p.seconds_left >= 0 for p in told[1:])
    assert told[-1].seconds_left == 0
    again: list[Progress] = []
    gap_study(**SMALL, output=tmp_path, progress=again.append)
    assert again == [Progress(CELLS, CELLS, 0, 0.0)]


def test_a_problem_with_the_exact_side_only(tmp_path: Path) -> None:
    study = gap_study(**SMALL, heuristics=[], output=tmp_path)
    assert list(study.rows["algorithm"]) == ["exact"] * 3
    assert study.summary().empty


def test_a_study_after_a_parallel_solve_in_this_process(tmp_path: Path) -> None:
    """Workers are forked from a process in which HiGHS may have started threads."""
    assert formulations.solve(reclaim.generate(0, num_servers=30), threads=2).status == "optimal"
    study = gap_study(**SMALL, heuristics=["server_fraction"], time_limit=20, output=tmp_path)
    assert set(study.rows["status"]) == {"optimal", "feasible"}


def test_another_solver(tmp_path: Path) -> None:
    pytest.importorskip("pyscipopt", reason="SCIP comes with the test extra")
    highs = gap_study(**SMALL, heuristics=[], output=tmp_path)
    scip = gap_study(**SMALL, heuristics=[], solver="scip", output=tmp_path)
    assert (scip.rows["solver"].str.startswith("scip ")).all()
    assert list(scip.rows["value"]) == list(highs.rows["value"])
    assert len(log_of(tmp_path)) == 6
