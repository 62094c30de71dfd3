"""Studies: what they hold, what they survive, and what they compute again."""

import base64
import ctypes
import dataclasses
import faulthandler
import fcntl
import functools
import importlib
import json
import math
import os
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

import formulations
import instances
from instances.aryl import elastic_allocation, reclaim
from instances.aryl.reclaim import Reclaim, ReclaimPlan
from validation import CATALOGUE, CatalogueError, Progress, StudyError, gap_study
from validation.catalogue import Heuristic
from validation.study.cases import generate
from validation.study.keys import heuristic_code
from validation.study.report import finish
from validation.study.results import read_log, read_rows, summarize

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only there are workers forked, and functions local")

SMALL: dict[str, Any] = {"problems": "aryl.reclaim", "seed": 3, "sizes": [5], "count": 3, "jobs": 2}
HEURISTICS = ["server_fraction", "gpu_fraction", "smallest_count_first", "random", "local_search"]
TIMES = ["seconds", "engine_seconds", "exact_seconds"]


@pytest.fixture
def pictures() -> None:
    """For tests that want the report drawn."""


@pytest.fixture(autouse=True)
def _no_pictures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes most of a small study's time."""
    if "pictures" not in request.fixturenames:
        monkeypatch.setattr("validation.study.report.problem_pictures", lambda rows: [])


def log_of(directory: Path) -> list[dict[str, Any]]:
    return read_log(directory / "rows.jsonl")


def without_times(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.drop(columns=TIMES)


def first_servers(instance: Reclaim) -> ReclaimPlan:
    return ReclaimPlan(servers=np.arange(instance.demand))


# --- a study --------------------------------------------------------------------------------------


def test_rows_are_the_cells(tmp_path: Path) -> None:
    study = gap_study(["aryl.reclaim", "aryl.elastic_allocation"], seed=1, sizes=[3, 5], count=2, output=tmp_path)
    rows = study.rows
    assert len(rows) == 2 * 2 * (1 + 5) + 2 * 2 * (1 + 2)
    assert list(dict.fromkeys(rows["algorithm"])) == ["exact", *HEURISTICS, "dynamic_program", "marginal_greedy"]
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
    pd.testing.assert_frame_equal(table, study.rows)
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
        "count": 3,
        "seed": 3,
        "instances": None,
        "throughputs": None,
        "trace": None,
        "repair": False,
        "time_limit": 30,
        "solver": "highs",
    }
    counts = {name: meta[name] for name in ("cells", "cells_ended", "failed", "disagreements", "finished", "jobs")}
    assert counts == {"cells": 18, "cells_ended": 18, "failed": 0, "disagreements": 0, "finished": True, "jobs": 2}
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
    assert [p.done for p in told] == list(range(19))
    assert {p.total for p in told} == {18}
    assert told[0].seconds_left is None
    assert all(p.seconds_left is not None and p.seconds_left >= 0 for p in told[1:])
    assert told[-1].seconds_left == 0
    again: list[Progress] = []
    gap_study(**SMALL, output=tmp_path, progress=again.append)
    assert again == [Progress(18, 18, 0, 0.0)]


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


# --- what a heuristic may do ----------------------------------------------------------------------


def raises(instance: Reclaim) -> ReclaimPlan:
    raise KeyError("servers")


def raises_unprintable_characters(instance: Reclaim) -> ReclaimPlan:
    raise ValueError("\udcff\x00")


def hangs(instance: Reclaim) -> ReclaimPlan:
    while True:
        pass


def segfaults(instance: Reclaim) -> ReclaimPlan:
    faulthandler.disable()  # Its trace of a crash that is meant would only alarm the reader.
    ctypes.string_at(0)
    return first_servers(instance)


def exits(instance: Reclaim) -> ReclaimPlan:
    os._exit(7)


def returns_a_number(instance: Reclaim) -> Any:
    return 3


def returns_another_plan(instance: Reclaim) -> Any:
    return elastic_allocation.ElasticAllocationPlan(extra_workers=np.array([1]))


def returns_no_servers(instance: Reclaim) -> ReclaimPlan:
    return ReclaimPlan(servers=np.array([], int))


def returns_unknown_server(instance: Reclaim) -> ReclaimPlan:
    return ReclaimPlan(servers=np.array([instance.num_servers]))


def returns_nothing(instance: Reclaim) -> None:
    return None


def empties_the_instance(instance: Reclaim) -> ReclaimPlan:
    instance.hosts.setflags(write=True)
    instance.hosts[:] = False
    return ReclaimPlan(servers=np.arange(instance.demand))


def replaces_a_field(instance: Reclaim) -> ReclaimPlan:
    object.__setattr__(instance, "demand", 0)
    return ReclaimPlan(servers=np.array([], int))


def test_each_misbehaviour_costs_its_own_row(tmp_path: Path) -> None:
    expected = {
        raises: ("failed", r"KeyError: 'servers' \(test_study\.py, line \d+\)"),
        raises_unprintable_characters: ("failed", r"ValueError: \\udcff\x00 \(test_study\.py, line \d+\)"),
        hangs: ("failed", r"time limit: stopped after 1 s"),
        segfaults: ("failed", r"the process died: killed by SIGSEGV"),
        exits: ("failed", r"the process died: it exited with code 7"),
        returns_a_number: ("failed", r"aryl\.reclaim: a plan must be a ReclaimPlan, got int"),
        returns_another_plan: ("failed", r"aryl\.reclaim: a plan must be a ReclaimPlan, got ElasticAllocationPlan"),
        returns_no_servers: ("infeasible", r"demand by 1"),
        returns_unknown_server: ("infeasible", r"server_exists\[5\] by 1"),
        returns_nothing: ("declined", r"the heuristic found no plan"),
        empties_the_instance: ("feasible", ""),
        replaces_a_field: ("infeasible", r"demand by 1"),
        first_servers: ("feasible", ""),
    }
    study = gap_study(**{**SMALL, "count": 2}, heuristics=[*expected], time_limit=1.0, output=tmp_path)
    rows = study.rows
    for function, (status, reason) in expected.items():
        mine = rows[rows["algorithm"] == function.__name__]
        assert list(mine["status"]) == [status] * 2, function.__name__
        assert all(re.fullmatch(reason, given) for given in mine["reason"]), list(mine["reason"])
        if status != "feasible":
            assert mine[["value", "gap", "gap_low", "gap_high"]].isna().all(axis=None)
    assert set(rows[rows["algorithm"] == "exact"]["status"]) == {"optimal"}
    # Whatever a heuristic does to its instance, the instance that judges is another.
    honest = rows[rows["algorithm"] == "first_servers"]["value"]
    assert list(rows[rows["algorithm"] == "empties_the_instance"]["value"]) == list(honest)
    summary = study.summary().set_index("heuristic")
    counts = summary[["feasible", "infeasible", "declined", "failed"]]
    assert list(counts.loc["hangs"]) == [0, 0, 0, 2]
    assert list(counts.loc["returns_no_servers"]) == [0, 2, 0, 0]
    assert list(counts.loc["returns_nothing"]) == [0, 0, 2, 0]
    assert study.metadata["failed"] == 14


def test_a_catalogued_heuristic_must_have_leave_to_decline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = CATALOGUE["aryl.reclaim"]
    doctored = {"strict": Heuristic(returns_nothing), "lax": Heuristic(returns_nothing, declines=True)}
    monkeypatch.setattr("validation.problems.aryl.reclaim.ENTRY", dataclasses.replace(entry, heuristics=doctored))
    rows = gap_study(**{**SMALL, "count": 1}, output=tmp_path).rows.set_index("algorithm")
    assert rows.loc["strict", ["status", "reason"]].tolist() == ["failed", "returned None"]
    assert rows.loc["lax", "status"] == "declined"


def test_a_plan_worth_infinity_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reclaim, "_value", lambda self, plan: math.inf if 0 in plan.servers else 1.0)
    study = gap_study(**{**SMALL, "count": 1}, heuristics=[first_servers], output=tmp_path)
    row = study.rows.set_index("algorithm").loc["first_servers"]
    assert (row["status"], row["reason"]) == ("failed", "the plan is worth inf")


def test_failures_are_tried_again(tmp_path: Path) -> None:
    flag = tmp_path / "flag"

    def flaky(instance: Reclaim) -> ReclaimPlan:
        if not flag.exists():
            raise OSError("no licence")
        return first_servers(instance)

    output = tmp_path / "study"
    arguments: dict[str, Any] = {**SMALL, "heuristics": [flaky, "server_fraction"], "output": output}
    before = gap_study(**arguments)
    assert before.metadata["failed"] == 3
    assert len(log_of(output)) == 9
    again = gap_study(**arguments)
    assert again.metadata["failed"] == 3
    assert len(log_of(output)) == 12
    flag.touch()
    after = gap_study(**arguments)
    assert after.metadata["failed"] == 0
    assert len(log_of(output)) == 15
    assert len(after.rows) == 9
    gap_study(**arguments)
    assert len(log_of(output)) == 15


# --- naming heuristics ----------------------------------------------------------------------------


def servers_from(start: int) -> Callable[[Reclaim], ReclaimPlan]:
    def heuristic(instance: Reclaim) -> ReclaimPlan:
        return ReclaimPlan(servers=(start + np.arange(instance.demand)) % instance.num_servers)

    return heuristic


class Shifted:
    """A heuristic with a state."""

    def __init__(self, start: int) -> None:
        self.start = start

    def __call__(self, instance: Reclaim) -> ReclaimPlan:
        return servers_from(self.start)(instance)


def shifted(instance: Reclaim, *, start: int = 0) -> ReclaimPlan:
    return servers_from(start)(instance)


@pytest.mark.parametrize(
    ("heuristics", "names"),
    [
        ("server_fraction", ["server_fraction"]),
        (["gpu_fraction", "server_fraction", "gpu_fraction"], ["gpu_fraction", "server_fraction"]),
        ([first_servers], ["first_servers"]),
        ([lambda instance: first_servers(instance)], ["<lambda>"]),
        ({"one": servers_from(1), "two": servers_from(2)}, ["one", "two"]),
        ({"mine": "server_fraction", "other": "heuristics.aryl.reclaim:random"}, ["mine", "other"]),
        (["heuristics.aryl.reclaim:gpu_fraction"], ["heuristics.aryl.reclaim:gpu_fraction"]),
        ([Shifted(1)], ["Shifted"]),
        ([functools.partial(shifted, start=2)], ["partial"]),
        ((), []),
    ],
)
def test_heuristics_by_name_and_function(heuristics: Any, names: list[str], tmp_path: Path) -> None:
    study = gap_study(**{**SMALL, "count": 1}, heuristics=heuristics, output=tmp_path)
    assert list(study.rows["algorithm"]) == ["exact", *names]
    assert (study.rows["status"].isin(["optimal", "feasible"])).all()


def test_a_name_is_used_where_it_is_known(tmp_path: Path) -> None:
    study = gap_study("aryl", seed=1, sizes=[3], count=1, heuristics=["marginal_greedy"], output=tmp_path)
    pairs = set(zip(study.rows["problem"], study.rows["algorithm"], strict=True))
    assert pairs >= {("aryl.elastic_allocation", "marginal_greedy"), ("aryl.reclaim", "exact")}
    assert ("aryl.reclaim", "marginal_greedy") not in pairs


def test_closures_with_other_values_are_other_heuristics(tmp_path: Path) -> None:
    study = gap_study(**SMALL, heuristics={"one": servers_from(0), "two": servers_from(1)}, output=tmp_path)
    for name, start in (("one", 0), ("two", 1)):
        for row in study.rows[study.rows["algorithm"] == name].to_dict("records"):
            instance = instances.load(tmp_path / row["file"])
            assert row["value"] == instance.objective(servers_from(start)(instance))


@pytest.mark.parametrize(
    ("same", "other"),
    [
        (lambda: servers_from(1), lambda: servers_from(2)),
        (lambda: functools.partial(shifted, start=1), lambda: functools.partial(shifted, start=2)),
        (lambda: Shifted(1), lambda: Shifted(2)),
        (lambda: Shifted(1).__call__, lambda: Shifted(2).__call__),
        (lambda: functools.partial(servers_from(1)), lambda: functools.partial(servers_from(2))),
    ],
    ids=["closure", "partial", "callable", "method", "nested"],
)
def test_the_key_of_a_heuristic_holds_the_values_that_it_carries(
    same: Callable[[], Any], other: Callable[[], Any]
) -> None:
    assert heuristic_code(same()) == heuristic_code(same())
    assert heuristic_code(same()) != heuristic_code(other())


def test_a_heuristic_that_cannot_be_told_is_never_taken_for_another() -> None:
    namespace: dict[str, Any] = {"__name__": "typed_at_a_prompt"}
    exec("def heuristic(instance): return None", namespace)
    assert heuristic_code(namespace["heuristic"]) != heuristic_code(namespace["heuristic"])
    lock = open(os.devnull)  # noqa: SIM115, something that cannot be pickled
    with lock:
        assert heuristic_code(lambda instance: lock) != heuristic_code(lambda instance: lock)


def test_keys_do_not_depend_on_what_else_is_imported() -> None:
    script = """
import sys
from validation.study.keys import exact_code, heuristic_code
if len(sys.argv) > 1:
    import formulations
    from validation.catalogue import CATALOGUE
    for problem in CATALOGUE:
        formulations.formulation(problem)
from heuristics.aryl.reclaim import server_fraction
print(heuristic_code(server_fraction), exact_code("aryl.reclaim", "highs"))
"""
    said = [
        subprocess.run([sys.executable, "-c", script, *more], capture_output=True, text=True, check=True).stdout
        for more in ([], ["all"])
    ]
    assert said[0] == said[1] != ""


# --- bad arguments --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"problems": "aryl.reclam"}, "unknown problem 'aryl.reclam' (did you mean 'aryl.reclaim'?)"),
        ({"problems": "arly"}, "unknown problem 'arly' (did you mean 'aryl'?)"),
        ({"problems": []}, "no problem is named"),
        ({"problems": [3]}, "problems: got 3, must be a name"),
        (
            {"heuristics": ["gpu_fractoin"]},
            "aryl.reclaim has no heuristic 'gpu_fractoin' (did you mean 'gpu_fraction'?)",
        ),
        ({"heuristics": ["nowhere:f"]}, "cannot import 'nowhere' for 'nowhere:f': No module named 'nowhere'"),
        ({"heuristics": ["math:sqr"]}, "'math' has no 'sqr' (did you mean 'sqrt'?)"),
        ({"heuristics": ["math:pi"]}, "'math' has no function 'pi'"),
        ({"heuristics": [3]}, "heuristics: got 3, must be a name or a function"),
        ({"heuristics": [lambda i: 1, lambda i: 2]}, "two algorithms are called '<lambda>'"),
        (
            {"heuristics": {"server_fraction": first_servers, "exact": first_servers}},
            "two algorithms are called 'exact'",
        ),
        ({"sizes": [5, 0]}, "sizes: got 0, must be a whole number of at least 1"),
        ({"sizes": [2.5]}, "sizes: got 2.5, must be a whole number of at least 1"),
        ({"sizes": ["5"]}, "sizes: got '5', must be a whole number of at least 1"),
        ({"sizes": {"aryl.reclaim": 5}}, "sizes: got 5, must be a list of whole numbers"),
        ({"sizes": {"aryl.recliam": [5]}}, "sizes are given for 'aryl.recliam', which is not studied"),
        ({"sizes": []}, "there is no instance to study"),
        ({"count": 0}, "count: got 0, must be at least 1"),
        ({"count": -2}, "count: got -2, must be at least 1"),
        ({"seed": -1}, "seed: got -1, must be at least 0"),
        ({"time_limit": 0}, "time_limit: got 0.0, must be positive seconds"),
        ({"time_limit": math.nan}, "time_limit: got nan, must be positive seconds"),
        ({"time_limit": math.inf}, "time_limit: got inf, must be positive seconds"),
        ({"jobs": 0}, "jobs: got 0, must be at least 1"),
        ({"solver": "hihgs"}, "unknown solver 'hihgs' (did you mean 'highs'?)"),
        ({"throughputs": "table.json"}, "throughputs: aryl.reclaim cannot read real data"),
        ({"trace": {"gavle": "x"}}, "trace: no problem studied reads real data of 'gavle'"),
        ({"problems": "aryl.reclaim", "instances": "."}, "is inside ., whose files are to be studied"),
        ({"instances": "nowhere"}, "instances: nowhere is not a directory"),
        ({"instances": []}, "the instances given: no instance of aryl.reclaim"),
        ({"instances": [elastic_allocation.two_elastic_jobs()]}, "the instances given: no instance of aryl.reclaim"),
    ],
)
def test_bad_arguments_leave_nothing_behind(
    arguments: dict[str, Any], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    output = tmp_path / "study"
    with pytest.raises((StudyError, CatalogueError, formulations.SolverNotFound)) as caught:
        gap_study(**{**SMALL, **arguments}, output=output)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not output.exists()


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for output in (tmp_path / "file", tmp_path / "file" / "study"):
        with pytest.raises(StudyError, match=re.escape(f"cannot write to {output}")):
            gap_study(**SMALL, output=output)
    assert (tmp_path / "file").read_bytes() == b""


def test_two_studies_in_one_directory_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("validation.study.run.LOCK_PATIENCE", 0.2)
    with open(tmp_path / ".lock", "w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(StudyError, match="another study is writing to"):
            gap_study(**SMALL, output=tmp_path)
        assert sorted(path.name for path in tmp_path.iterdir()) == [".lock"]
    assert gap_study(**SMALL, output=tmp_path).metadata["finished"]


def test_a_study_locks_its_directory_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("validation.study.run.LOCK_PATIENCE", 0.0)
    refused: list[str] = []

    def intrude(progress: Progress) -> None:
        if not refused:
            with pytest.raises(StudyError) as caught:
                gap_study(**SMALL, output=tmp_path)
            refused.append(str(caught.value))

    study = gap_study(**SMALL, output=tmp_path, progress=intrude)
    assert refused == [f"another study is writing to {tmp_path}"]
    assert len(study.rows) == 18


# --- going on -------------------------------------------------------------------------------------


def test_the_same_call_again_computes_nothing(tmp_path: Path) -> None:
    first = gap_study(**SMALL, output=tmp_path)
    log = (tmp_path / "rows.jsonl").read_bytes()
    again = gap_study(**SMALL, output=tmp_path)
    assert (tmp_path / "rows.jsonl").read_bytes() == log
    pd.testing.assert_frame_equal(again.rows, first.rows)
    pd.testing.assert_frame_equal(again.summary(), first.summary())


def computed(output: Path, **arguments: Any) -> list[tuple[str, int]]:
    """What a call adds to the log: algorithm and size, sorted."""
    before = len(log_of(output))
    gap_study(**{**SMALL, "output": output, **arguments})
    return sorted((row["algorithm"], row["size"]) for row in log_of(output)[before:])


def test_only_what_changed_is_computed(tmp_path: Path) -> None:
    both = {"heuristics": ["server_fraction", "random"]}
    assert len(computed(tmp_path, **both)) == 9
    # More of the same: only what is new.
    assert computed(tmp_path, **both, sizes=[5, 6], count=3) == sorted(
        [("exact", 6), ("random", 6), ("server_fraction", 6)] * 3
    )
    assert computed(tmp_path, **both, count=4) == [("exact", 5), ("random", 5), ("server_fraction", 5)]
    assert computed(tmp_path, heuristics=["gpu_fraction"]) == [("gpu_fraction", 5)] * 3
    # Another time limit may change what the exact side says, and nothing else.
    assert computed(tmp_path, **both, time_limit=59) == [("exact", 5)] * 3
    # Another seed draws other instances; on given instances it is only what random heuristics draw.
    assert len(computed(tmp_path, **both, seed=4)) == 9
    given = [generate("aryl.reclaim", 3, 5, index) for index in range(3)]
    assert computed(tmp_path, **both, instances=given, count=None) == []
    assert computed(tmp_path, **both, instances=given, count=None, seed=4) == [("random", 5)] * 3


def test_the_table_holds_what_was_asked_last(tmp_path: Path) -> None:
    assert len(gap_study(**SMALL, output=tmp_path).rows) == 18
    narrow = gap_study(**{**SMALL, "count": 1}, heuristics=["random"], output=tmp_path)
    assert list(narrow.rows["algorithm"]) == ["exact", "random"]
    assert len(log_of(tmp_path)) == 18


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes modules of the user's, and imports them anew."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    written: list[str] = []

    def write(name: str, text: str) -> ModuleType:
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text), encoding="utf-8")
        importlib.invalidate_caches()
        sys.modules.pop(name, None)
        written.append(name)
        monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
        return importlib.import_module(name)

    yield write
    for name in written:
        sys.modules.pop(name, None)


HELPER = """
    import numpy as np

    def rank(instance):
        return np.arange(instance.num_servers)
"""
MINE = """
    from helper_of_mine import rank
    from instances.aryl.reclaim import ReclaimPlan

    def first(instance):
        return ReclaimPlan(servers=rank(instance)[: instance.demand])
"""
OTHERS = """
    from instances.aryl.reclaim import ReclaimPlan
    import numpy as np

    def last(instance):
        return ReclaimPlan(servers=np.arange(instance.num_servers)[::-1][: instance.demand])
"""


def test_numbers_are_what_they_are_worth(tmp_path: Path) -> None:
    """Whether they come from Python, NumPy, or a command line that reads 60 as 60.0."""
    assert len(computed(tmp_path, time_limit=60)) == 18
    assert computed(tmp_path, time_limit=60.0) == []
    assert computed(tmp_path, seed=np.int64(3), sizes=np.array([5]), count=np.int64(3), time_limit=np.float64(60)) == []
    asked = json.loads((tmp_path / "metadata.json").read_text(encoding="utf-8"))["asked"]
    assert (asked["seed"], asked["sizes"], asked["count"], asked["time_limit"]) == (3, [5], 3, 60.0)


def test_a_changed_source_is_computed_again(module: Callable[[str, str], ModuleType], tmp_path: Path) -> None:
    module("helper_of_mine", HELPER)
    module("mine", MINE)
    module("others", OTHERS)
    output = tmp_path / "study"
    both = ["mine:first", "others:last"]
    assert len(computed(output, heuristics=both)) == 9
    assert computed(output, heuristics=both) == []
    module("mine", MINE + "\n    # A remark.\n")
    assert computed(output, heuristics=both) == [("mine:first", 5)] * 3
    # What a heuristic's module draws on counts as much as the module.
    module("helper_of_mine", HELPER.replace("return np", "return -1 - np"))
    module("mine", MINE + "\n    # A remark.\n")
    assert computed(output, heuristics=both) == [("mine:first", 5)] * 3
    assert computed(output, heuristics=both) == []


def test_a_torn_last_line_is_dropped(tmp_path: Path) -> None:
    whole = gap_study(**SMALL, output=tmp_path)
    log = tmp_path / "rows.jsonl"
    content = log.read_bytes()
    lines = content.splitlines(keepends=True)
    for torn in (lines[-1][:-1], lines[-1][:40], lines[-1][:1]):
        log.write_bytes(b"".join(lines[:-1]) + torn)
        # A report can be made of what is there ...
        partly = finish(tmp_path)
        assert len(partly.rows) == 17
        assert not partly.metadata["finished"]
        # ... and the study goes on with the one that is missing.
        study = gap_study(**SMALL, output=tmp_path)
        assert log.read_bytes().startswith(b"".join(lines[:-1]))
        assert len(log_of(tmp_path)) == 18
        pd.testing.assert_frame_equal(without_times(study.rows), without_times(whole.rows))


def test_a_log_that_is_one_torn_line(tmp_path: Path) -> None:
    gap_study(**SMALL, output=tmp_path)
    (tmp_path / "rows.jsonl").write_bytes(b'{"key": "ab')
    assert finish(tmp_path).rows.empty
    assert len(gap_study(**SMALL, output=tmp_path).rows) == 18


@pytest.mark.parametrize("line", ["{", "3", '{"key": "a"}', "\x00\x00"])
def test_a_damaged_log_is_named(line: str, tmp_path: Path) -> None:
    gap_study(**{**SMALL, "count": 1}, output=tmp_path)
    log = tmp_path / "rows.jsonl"
    lines = log.read_text(encoding="utf-8").splitlines()
    log.write_text("\n".join([lines[0], line, *lines[1:]]) + "\n", encoding="utf-8")
    with pytest.raises(StudyError, match=r"rows\.jsonl, line 2: not"):
        read_rows(tmp_path)


@pytest.mark.parametrize("content", [None, "{", "[]", '{"asked": {}}', "\x00"])
def test_a_directory_without_a_study_is_named(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "study.json").write_text(content, encoding="utf-8")
    with pytest.raises(StudyError, match=re.escape(str(tmp_path))):
        finish(tmp_path)
    # A study can be begun there all the same.
    assert gap_study(**{**SMALL, "count": 1}, output=tmp_path).metadata["finished"]


SCRIPT = """
import sys, time
import numpy as np
from instances.aryl.reclaim import ReclaimPlan
from validation import gap_study

import validation.study.report
validation.study.report.problem_pictures = lambda rows: []

def slow(instance):
    time.sleep(0.03)
    return ReclaimPlan(servers=np.arange(instance.demand))

if __name__ == "__main__":
    gap_study("aryl.reclaim", seed=8, sizes=[5, 6], count=10, jobs=2, heuristics=[slow, "random"], output=sys.argv[1])
"""


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
        deadline = time.monotonic() + 60
        while not (output / "instances").exists() or len(lines()) < enough:
            assert process.poll() is None, "the study ended before it could be killed"
            assert time.monotonic() < deadline
            time.sleep(0.002)
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


# --- instances ------------------------------------------------------------------------------------


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
    with pytest.raises(StudyError, match=r"real data of gavel\.max_min_fairness: missing .*'trace'"):
        gap_study("gavel.max_min_fairness", throughputs=missing, **arguments)
    assert not (tmp_path / "study").exists()


# --- what is not proven ---------------------------------------------------------------------------


def stub_exact(monkeypatch: pytest.MonkeyPatch, **entries: Any) -> None:
    """An exact side that says for every instance what is given."""
    row = {
        "status": "unknown",
        "reason": "",
        "value": None,
        "bound": None,
        "seconds": 0.1,
        "solver": "stub 1",
    } | entries
    monkeypatch.setattr("validation.study.cells.solve_exactly", lambda instance, solver, time_limit: row)


def constant(value: int) -> Callable[[Reclaim], ReclaimPlan]:
    """A heuristic for instances on which the returned servers are the plan's value."""
    return lambda instance: ReclaimPlan(servers=np.arange(instance.demand) + value)


def one_job_each(*counts: int) -> Reclaim:
    """As many servers as counts, with so many jobs of their own; one is to be returned."""
    hosts = np.zeros((sum(counts), len(counts)), bool)
    hosts[np.arange(sum(counts)), np.repeat(np.arange(len(counts)), counts)] = True
    return Reclaim(hosts=hosts, gpus=np.where(hosts, 1, 0), demand=1)


@pytest.mark.parametrize(
    ("said", "intervals"),
    [
        ({"status": "feasible", "value": 5.0, "bound": 2.0}, {"four": (0, 1), "six": (0.5, 2), "eight": (1, 3)}),
        # The exact side's own plan may be the best.
        ({"status": "feasible", "value": 3.0, "bound": 2.0}, {"four": (1 / 3, 1), "six": (1, 2), "eight": (5 / 3, 3)}),
        ({"status": "feasible", "value": 4.0, "bound": 0.0}, {"four": (0, math.inf), "six": (0.5, math.inf)}),
        ({"status": "unknown"}, {"four": (0, math.inf), "six": (0.5, math.inf), "eight": (1, math.inf)}),
        ({"status": "unknown", "bound": 4.0}, {"four": (0, 0), "six": (0.5, 0.5), "eight": (1, 1)}),
        ({"status": "optimal", "value": 4.0, "bound": 4.0}, {"four": (0, 0), "six": (0.5, 0.5), "eight": (1, 1)}),
    ],
)
def test_an_unproven_gap_is_an_interval(
    said: dict[str, Any], intervals: dict[str, tuple[float, float]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub_exact(monkeypatch, **said)
    heuristics = {"four": constant(0), "six": constant(1), "eight": constant(2)}
    study = gap_study("aryl.reclaim", seed=1, instances=[one_job_each(4, 6, 8)], heuristics=heuristics, output=tmp_path)
    rows = study.rows.set_index("algorithm")
    assert not rows["disagreement"].any()
    for name, (low, high) in intervals.items():
        assert (rows.loc[name, "gap_low"], rows.loc[name, "gap_high"]) == pytest.approx((low, high))
        assert rows.loc[name, "gap"] == pytest.approx(low if low == high else math.nan, nan_ok=True)
    summary = study.summary().set_index("heuristic")
    assert summary.loc["six", "proven"] == (said["status"] == "optimal")
    low, high = intervals["six"]
    assert tuple(summary.loc["six", ["gap_worst_low", "gap_worst_high"]]) == pytest.approx((low, high))
    assert study.report.exists()


def test_a_failed_exact_side_leaves_intervals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: Any) -> Any:
        os.abort()

    monkeypatch.setattr("validation.study.cells.solve_exactly", lambda *_: (faulthandler.disable(), crash()))
    study = gap_study("aryl.reclaim", seed=1, instances=[one_job_each(4, 6)], heuristics=[constant(1)], output=tmp_path)
    row = study.rows.iloc[1]
    assert (row["exact_status"], row["gap_low"], row["gap_high"]) == ("failed", 0.0, math.inf)
    assert study.rows.iloc[0]["reason"] == "the process died: killed by SIGABRT"


def test_a_time_limit_on_the_exact_side(tmp_path: Path) -> None:
    from validation.study.cells import solve_exactly

    instance = reclaim.generate(1, num_servers=60, demand=20, spread=1.0)
    row = solve_exactly(instance, "highs", 1e-3)
    assert json.loads(json.dumps(row, allow_nan=False)) == row
    assert row["status"] in ("unknown", "feasible")
    assert row["status"] == "unknown" or row["value"] is not None
    best = solve_exactly(instance, "highs", 1.0)
    assert row["bound"] is None or row["bound"] <= best["value"]


@pytest.mark.parametrize(
    "said",
    [
        {"status": "optimal", "value": 5.0, "bound": 5.0},
        {"status": "feasible", "value": 7.0, "bound": 4.5},
        {"status": "unknown", "bound": 4.001},
        {"status": "infeasible"},
    ],
)
def test_a_value_better_than_a_proven_bound_is_a_disagreement(
    said: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub_exact(monkeypatch, **said)
    heuristics = {"four": constant(0), "six": constant(1)}
    if said["status"] == "infeasible":
        heuristics = {"four": constant(0)}
    study = gap_study("aryl.reclaim", seed=1, instances=[one_job_each(4, 6)], heuristics=heuristics, output=tmp_path)
    assert list(study.disagreements["algorithm"]) == ["four"]
    row = study.disagreements.iloc[0]
    assert math.isnan(row["gap_low"])
    assert math.isnan(row["gap_high"])
    assert instances.load(tmp_path / row["file"]) == one_job_each(4, 6)
    assert study.metadata["disagreements"] == 1
    page = study.report.read_text(encoding="utf-8")
    assert '<p class="bad">1 oracle disagreement: see below.</p>' in page
    assert "Oracle disagreements" in page


def test_a_value_better_within_the_tolerance_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub_exact(monkeypatch, status="optimal", value=4 * (1 + 5e-7), bound=4 * (1 + 5e-7))
    study = gap_study("aryl.reclaim", seed=1, instances=[one_job_each(4, 6)], heuristics=[constant(0)], output=tmp_path)
    assert study.disagreements.empty
    assert study.rows.iloc[1]["gap"] == 0


# --- summary --------------------------------------------------------------------------------------


def table_of(gaps: Sequence[tuple[float, float]], statuses: Sequence[str] | None = None) -> pd.DataFrame:
    """A table as studies make it, with these gaps."""
    statuses = statuses or ["feasible"] * len(gaps)
    records = []
    for number, ((low, high), status) in enumerate(zip(gaps, statuses, strict=True)):
        common = {"problem": "p.q", "source": "generated", "size": 5, "instance": str(number), "disagreement": False}
        exact_status = "optimal" if low == high else "feasible"
        records.append({**common, "algorithm": "exact", "status": exact_status, "seconds": 2.0})
        records.append(
            {
                **common,
                "algorithm": "h",
                "status": status,
                "seconds": float(number),
                "exact_status": exact_status,
                "exact_seconds": 2.0,
                "gap_low": low,
                "gap_high": high,
            }
        )
    return pd.DataFrame(records)


@pytest.mark.parametrize("count", [1, 2, 19, 20, 21, 40, 100, 101])
def test_the_percentile_is_an_observed_gap_that_95_percent_do_not_exceed(count: int) -> None:
    gaps = np.random.default_rng(count).permutation(count) / count
    (row,) = summarize(table_of([(gap, gap) for gap in gaps])).to_dict("records")
    # Counted, not computed: the smallest gap that at least 95 of 100 do not exceed.
    expected = min(gap for gap in gaps if 100 * sum(other <= gap for other in gaps) >= 95 * count)
    assert row["gap_p95_low"] == row["gap_p95_high"] == expected
    assert row["gap_worst_high"] == max(gaps)
    assert row["gap_mean_low"] == pytest.approx(sum(gaps) / count)
    assert row["instances"] == row["proven"] == row["feasible"] == count
    assert row["median_seconds"] == (count - 1) / 2
    assert row["exact_median_seconds"] == 2.0


def test_percentiles_with_infinite_gaps() -> None:
    for infinite, expected in ((1, 0.5), (2, math.inf)):
        gaps = [(0.0, 0.5)] * (20 - infinite) + [(0.25, math.inf)] * infinite
        (row,) = summarize(table_of(gaps)).to_dict("records")
        assert row["gap_p95_high"] == expected
        assert row["gap_p95_low"] == (0.0 if infinite == 1 else 0.25)
        assert row["gap_mean_high"] == row["gap_worst_high"] == math.inf
        assert row["proven"] == 0


def test_gaps_are_over_feasible_plans_and_counts_over_all() -> None:
    nothing = (math.nan, math.nan)
    table = table_of([(0.5, 0.5), nothing, nothing, nothing], ["feasible", "infeasible", "declined", "failed"])
    (row,) = summarize(table).to_dict("records")
    counts = [row[name] for name in ("instances", "feasible", "infeasible", "declined", "failed")]
    assert counts == [4, 1, 1, 1, 1]
    assert row["gap_mean_low"] == row["gap_p95_high"] == row["gap_worst_high"] == 0.5
    (row,) = summarize(table_of([nothing], ["failed"])).to_dict("records")
    assert math.isnan(row["gap_mean_low"])
    assert math.isnan(row["gap_p95_high"])


# --- report ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("pictures")
def test_the_report_stands_alone(tmp_path: Path) -> None:
    study = gap_study(
        ["aryl.reclaim", "aryl.elastic_allocation"],
        seed=1,
        sizes=[4, 8],
        count=3,
        heuristics={
            "<b>bold</b>": first_servers,
            "server_fraction": "server_fraction",
            "random": "random",
            "raises": raises,
            "none": returns_no_servers,
            "marginal_greedy": "marginal_greedy",
        },
        output=tmp_path,
    )
    page = study.report.read_text(encoding="utf-8")
    assert "http://" not in page
    assert "https://" not in page
    assert not re.search(r"<(script|link|iframe|object)\b|@import|url\(", page)
    sources = re.findall(r'src="([^"]*)"', page)
    assert len(sources) == 2 * 4
    for source in sources:
        kind, _, content = source.partition(",")
        assert kind == "data:image/svg+xml;base64"
        picture = base64.b64decode(content, validate=True).decode()
        assert "<svg" in picture
        assert all(link.startswith("#") for link in re.findall(r'href="([^"]*)"', picture))
    links = re.findall(r'href="([^"]*)"', page)
    files = {link for link in links if not link.startswith("#")}
    assert {"results.parquet", "metadata.json"} < files
    instance_files = files - {"results.parquet", "metadata.json"}
    assert instance_files
    for link in files:
        assert (tmp_path / link).is_file()
    for link in instance_files:
        assert instances.load(tmp_path / link).digest.startswith(Path(link).stem)
    for anchor in {link[1:] for link in links} - {link[1:] for link in files}:
        assert f'id="{anchor}"' in page
    # A name is text, never markup.
    assert "<b>bold" not in page
    assert "&lt;b&gt;bold&lt;/b&gt;" in page
    assert "KeyError" in page
    assert "demand by 1" in page


@pytest.mark.usefixtures("pictures")
def test_the_worst_instances_can_be_seen_again(tmp_path: Path) -> None:
    study = gap_study(**{**SMALL, "count": 6}, heuristics=["random", first_servers], output=tmp_path)
    page = study.report.read_text(encoding="utf-8")
    commands = re.findall(r"<code>(optgap solve [^<]*)</code>", page)
    assert commands
    assert all("first_servers" not in command for command in commands)
    values = study.rows.set_index(["file", "algorithm"])["value"]
    for command in commands:
        optgap, *arguments = command.split()
        done = subprocess.run(
            [sys.executable, "-c", "from validation.cli import main; main()", *arguments, "--json"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert optgap == "optgap"
        assert json.loads(done.stdout)["objective"] == values[arguments[1], "random"]


@pytest.mark.usefixtures("pictures")
@pytest.mark.parametrize(
    "said", [{}, {"status": "feasible", "value": 4.0, "bound": 3.0}, {"status": "optimal", "value": 4.0, "bound": 4.0}]
)
def test_pictures_of_anything(said: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub_exact(monkeypatch, **said)
    heuristics = {"four": constant(0), "six": constant(1), "raises": raises, "none": returns_nothing}
    study = gap_study("aryl.reclaim", seed=1, instances=[one_job_each(4, 6)], heuristics=heuristics, output=tmp_path)
    assert study.report.read_text(encoding="utf-8").count("data:image/svg+xml") == 4


@pytest.mark.usefixtures("pictures")
def test_a_report_of_nothing_and_of_failures_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("validation.study.cells.solve_exactly", lambda *_: 1 / 0)
    study = gap_study(**SMALL, heuristics=[raises], output=tmp_path)
    assert study.metadata["failed"] == 6
    assert "ZeroDivisionError" in study.report.read_text(encoding="utf-8")
    (tmp_path / "rows.jsonl").unlink()
    empty = finish(tmp_path)
    assert empty.rows.empty
    assert "0 of 6 runs have ended" in empty.report.read_text(encoding="utf-8")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "results.parquet"), empty.rows)
