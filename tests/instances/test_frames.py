"""Instances as tables with a row for each job, and back: every problem, and what is refused."""

import importlib
import io
from dataclasses import MISSING, fields
from typing import Any

import numpy as np
import pandas as pd
import pytest

import instances
from instances import Instance, InstanceError
from instances.aryl.reclaim import six_servers
from instances.gavel.fifo import Fifo, three_jobs
from instances.synergy.tuning import Tuning, four_jobs

PROBLEMS = instances.problems()


def drawn(problem: str, seed: int) -> Instance[Any]:
    found: Instance[Any] = importlib.import_module(f"instances.{problem}").generate(seed)
    return found


def plain(frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, Any]]:
    """A table without anything pandas keeps beside it, as from a file, and the fields that are not in it."""
    others = {name: value for name, value in frame.attrs.items() if name != "problem"}
    bare = frame.copy()
    bare.attrs.clear()
    return bare, others


@pytest.mark.parametrize("problem", PROBLEMS)
def test_an_instance_is_its_table(problem: str) -> None:
    module = importlib.import_module(f"instances.{problem}")
    for seed in range(3):
        instance = drawn(problem, seed)
        frame = instance.to_frame()
        assert len(frame) == instance.dims.get(instance.rows, 2)
        assert frame.attrs["problem"] == problem
        assert type(instance).from_frame(frame) == instance
        assert getattr(module, "from_frame", type(instance).from_frame)(frame) == instance


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_table_from_a_file_takes_the_other_fields_as_keywords(problem: str) -> None:
    instance = drawn(problem, 1)
    frame, others = plain(instance.to_frame())
    from_csv = pd.read_csv(io.StringIO(frame.to_csv()), engine="python")
    assert from_csv.columns[0] == "job"
    assert not from_csv.attrs
    assert type(instance).from_frame(from_csv, **others) == instance
    # Types of pandas' own, as Parquet files have them.
    assert type(instance).from_frame(frame.convert_dtypes(), **others) == instance


@pytest.mark.parametrize("problem", PROBLEMS)
def test_columns_that_do_not_fit_are_named(problem: str) -> None:
    instance = drawn(problem, 0)
    kind = type(instance)
    frame = instance.to_frame()
    column = str(frame.columns[0])
    field = column if hasattr(instance, column) else column.rpartition("_")[0]
    looked = 0
    for changed, message in (
        (frame.assign(colour=1), f"{kind.__name__}: unknown column 'colour'"),
        (frame.drop(columns=[one for one in frame if str(one).startswith(field)]), f"'{field}' is missing"),
        (frame.astype({column: object}).replace({column: {frame[column].iloc[0]: "x"}}), rf"{field}.*got 'x'"),
    ):
        if changed.equals(frame) or (message.endswith("missing") and has_default(kind, field)):
            continue
        with pytest.raises(InstanceError, match=message) as error:
            kind.from_frame(changed)
        assert "\n" not in str(error.value)
        looked += 1
    assert looked


def has_default(kind: type[Instance[Any]], field: str) -> bool:
    return next(one for one in fields(kind) if one.name == field).default is not MISSING


def test_columns_of_one_field_are_numbered_without_gaps() -> None:
    frame = three_jobs().to_frame()
    assert list(frame.columns)[:2] == ["throughputs_0", "throughputs_1"]
    for changed, message in (
        (frame.rename(columns={"throughputs_1": "throughputs_2"}), "got columns throughputs_0, throughputs_2, must be"),
        (frame.assign(throughputs=1.0), "got columns throughputs_0, throughputs_1, throughputs, must be throughputs_0"),
        (
            frame.rename(columns={"throughputs_0": "thruputs_0"}),
            "unknown column 'thruputs_0'.*did you mean",
        ),
        (frame.assign(throughputs_1=["x", 1, 1]), r"Fifo.throughputs: got 'x' at index \[0, 1\]"),
        (frame.assign(throughputs_0=np.nan), "Fifo.throughputs: got nan"),
        (frame[["throughputs_0", "throughputs_0"]], "got columns throughputs_0, throughputs_0, must be"),
    ):
        with pytest.raises(InstanceError, match=message):
            Fifo.from_frame(changed)


def test_the_order_of_columns_is_that_of_their_numbers_and_of_jobs_that_of_rows() -> None:
    instance = six_servers()
    frame = instance.to_frame()
    assert type(instance).from_frame(frame[frame.columns[::-1]]) == instance
    turned = type(instance).from_frame(frame.iloc[::-1])
    assert turned.gpus.tolist() == instance.gpus[::-1].tolist()


def test_a_keyword_replaces_what_the_table_carries_along_but_no_column() -> None:
    frame = three_jobs().to_frame()
    assert Fifo.from_frame(frame, num_workers=[2, 1]).num_workers.tolist() == [2, 1]
    with pytest.raises(InstanceError, match=r"Fifo\.scale_factors: given twice, as column"):
        Fifo.from_frame(frame, scale_factors=[1, 1, 1])
    with pytest.raises(InstanceError, match="unknown field 'workers'"):
        Fifo.from_frame(frame, workers=[2, 1])


def test_a_table_of_another_problem_is_refused() -> None:
    with pytest.raises(InstanceError, match=r"got problem 'gavel\.fifo', must be 'gavel\.total_throughput'"):
        importlib.import_module("instances.gavel.total_throughput").from_frame(three_jobs().to_frame())


def test_fields_of_any_number_of_entries_are_lists_arrays_or_text() -> None:
    instance = four_jobs()
    frame, others = plain(instance.to_frame())
    # Arrays of arrays, as Parquet files give them.
    nested = frame.assign(configs=[np.array([*map(np.array, table), None], object)[:-1] for table in frame["configs"]])
    assert Tuning.from_frame(nested, **others) == instance
    assert Tuning.from_frame(frame.assign(configs=frame["configs"].map(str)), **others) == instance
    for cell in ("[[1, 2", "many", 3.0):
        with pytest.raises(InstanceError, match=r"Tuning\.configs: entry 0: "):
            Tuning.from_frame(frame.assign(configs=[cell] * 4), **others)
