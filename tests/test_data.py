"""What the readers of public data share: where they are found, and what they refuse."""

import importlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import instances
from instances import InstanceError
from instances.data import elasticflow, gavel, lines, microsoft, synergy, tiresias


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
def test_cells_say_what_they_must_be(read: lines.Cell, cell: str, must: str) -> None:
    with pytest.raises(
        InstanceError, match=f"here: got '{cell}', must {'' if must.startswith('not') else 'be '}{must}"
    ):
        lines.read_cell(read, cell, "here")


def test_quoted_cells_and_blank_lines_keep_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text('job_id,duration\r\n\r\n"a,\r\nb",10\r\nc,11\r\n', newline="")
    rows = list(lines.read_rows(path, ("job_id",)))
    assert rows == [(4, {"job_id": "a,\r\nb", "duration": "10"}), (5, {"job_id": "c", "duration": "11"})]
