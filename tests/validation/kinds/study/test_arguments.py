"""Studies: what is said of bad arguments, and of a directory that cannot be had."""

import fcntl
import math
import re
from pathlib import Path
from typing import Any

import pytest

import formulations
from instances.aryl import elastic_allocation
from validation import CatalogueError, Progress, StudyError, gap_study

from .studies import CELLS, FORKED, SMALL, first_servers

pytestmark = FORKED


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
        ({"memory_limit": 1e3}, "memory_limit: got 1000, must be at least 1048576"),
        ({"time_limit": math.nan}, "time_limit: got nan, must be positive seconds"),
        ({"time_limit": math.inf}, "time_limit: got inf, must be positive seconds"),
        ({"jobs": 0}, "jobs: got 0, must be at least 1"),
        ({"jobs": 10**6}, "jobs: got 1000000, must be at most 1,000"),
        ({"count": 10**12}, "count: got 1000000000000, must be at most 1,000,000"),
        ({"seed": 10**30}, "seed: got 1000000000000000000000000000000, must be at most 9,223,372,036,854,775,807"),
        ({"sizes": [10**12]}, "with num_servers = 1000000000000: must be at most 10,000,000"),
        ({"time_limit": 10**400}, "must be positive seconds"),
        ({"memory_limit": math.inf}, "memory_limit: got inf, must be a number of bytes"),
        ({"instances": "a\0b"}, "instances: 'a\\x00b': no file can have this name"),
        ({"throughputs": {"gavel": "\ud800"}}, "throughputs: '\\ud800': no file can have this name"),
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


def test_an_option_that_there_is_not_is_named_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(
        TypeError, match=re.escape("unexpected keyword argument 'heuristic' (did you mean 'heuristics'?)")
    ):
        gap_study(**SMALL, heuristic="server_fraction", output=tmp_path / "study")
    assert not (tmp_path / "study").exists()


def test_one_function_is_a_heuristic(tmp_path: Path) -> None:
    study = gap_study(**{**SMALL, "heuristics": first_servers}, output=tmp_path / "study")
    assert study.summary()["heuristic"].unique().tolist() == ["first_servers"]


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for output in (tmp_path / "file", tmp_path / "file" / "study"):
        with pytest.raises(StudyError, match=re.escape(f"cannot write to {output}")):
            gap_study(**SMALL, output=output)
    assert (tmp_path / "file").read_bytes() == b""


@pytest.mark.slow
def test_two_studies_in_one_directory_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("validation.kernel.store.LOCK_PATIENCE", 0.2)
    with open(tmp_path / ".lock", "w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(StudyError, match="another study is writing to"):
            gap_study(**SMALL, output=tmp_path)
        assert sorted(path.name for path in tmp_path.iterdir()) == [".lock"]
    assert gap_study(**SMALL, output=tmp_path).metadata["finished"]


def test_a_study_locks_its_directory_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("validation.kernel.store.LOCK_PATIENCE", 0.0)
    refused: list[str] = []

    def intrude(progress: Progress) -> None:
        if not refused:
            with pytest.raises(StudyError) as caught:
                gap_study(**SMALL, output=tmp_path)
            refused.append(str(caught.value))

    study = gap_study(**SMALL, output=tmp_path, progress=intrude)
    assert refused == [f"another study is writing to {tmp_path}"]
    assert len(study.rows) == CELLS


def test_bytes_may_be_written_as_a_float(tmp_path: Path) -> None:
    study = gap_study(**{**SMALL, "count": 1}, heuristics=[first_servers], memory_limit=4e9, output=tmp_path)
    assert study.rows["status"].tolist() == ["optimal", "feasible"]
