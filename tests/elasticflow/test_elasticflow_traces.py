"""Throughput tables and traces: what is read, what is refused, and what becomes of it."""

import math

import numpy as np
import pytest

import formulations
from heuristics.elasticflow.minimum_satisfactory_share import progressive_filling
from instances import InstanceError
from instances.data import microsoft
from instances.data.elasticflow import read_throughputs, read_trace, throughput_curve
from instances.elasticflow import admission, allocation, minimum_satisfactory_share
from instances.elasticflow.traces import jobs_from_trace

HEADER = "job_id,submit_time,iteration,model_name,ddl,batch_size,num_gpu,duration\n"
TABLE = "global_batch_size,1,2,4,8\n64,10,16,24,\n128,6,10,0,nan\n"


@pytest.fixture
def tables(tmp_path):
    folder = tmp_path / "tables"
    folder.mkdir()
    (folder / "bert.csv").write_text(TABLE)
    return folder


def trace(tmp_path, text):
    path = tmp_path / "trace.csv"
    path.write_text(text)
    return path


# --- reading --------------------------------------------------------------------------------------


def test_throughputs(tables):
    table = read_throughputs(tables)
    assert list(table.columns) == [1, 2, 4, 8]
    assert list(table.index) == [("bert", 64), ("bert", 128)]
    assert table.loc[("bert", 64)].tolist()[:3] == [10, 16, 24]
    # An empty cell, zero and nan all say that nothing was measured.
    assert np.isnan(table.to_numpy()).tolist() == [[False, False, False, True], [False, False, True, True]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("batch,1,2\n64,1,2\n", "line 1: there is no column 'global_batch_size'"),
        ("global_batch_size,1,two\n64,1,2\n", "line 1: number of GPUs: got 'two', must be a number"),
        ("global_batch_size,1,2\n64,1\n", "line 2: got 2 cells, must be 3"),
        ("global_batch_size,1,2\n64,1,2\n\n64,1,2\n", "line 4: batch size 64 is there twice"),
        ("global_batch_size,1,2\n64,1,fast\n", "line 2: 2 GPUs: got 'fast', must be a number"),
        ("global_batch_size,1,2\n64,1,-2\n", "line 2: 2 GPUs: got '-2', must be finite and at least 0"),
        ("global_batch_size,1,2\n6.5,1,2\n", "line 2: global_batch_size: got '6.5', must be a whole number"),
    ],
)
def test_malformed_tables_are_errors_with_file_and_line(tmp_path, text, message):
    (tmp_path / "bert.csv").write_text(text)
    with pytest.raises(InstanceError, match="bert.csv, " + message):
        read_throughputs(tmp_path)


def test_folder_without_tables(tmp_path):
    with pytest.raises(InstanceError, match="there are no throughput tables"):
        read_throughputs(tmp_path)


def test_trace_in_both_spellings(tmp_path):
    ours = read_trace(trace(tmp_path, HEADER + "7,100,5000,bert,400,64,2,300\n"))
    microsoft = HEADER.replace("ddl", "deadline").replace("iteration", "num_iteration").replace("submit", "submission")
    theirs = read_trace(trace(tmp_path, microsoft + "7,100,5000,bert,400,64,2,300\n"))
    assert ours.equals(theirs)
    assert ours.iloc[0].to_dict() == {
        "job_id": "7",
        "submit_time": 100.0,
        "iterations": 5000.0,
        "model": "bert",
        "deadline": 400.0,
        "batch_size": 64,
        "num_gpus": 2,
        "duration": 300.0,
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER.replace("ddl", "due"), "line 1: there is no column 'ddl'"),
        (HEADER, "there are no jobs"),
        (HEADER + "7,100,5000,bert,400,64,2\n", "line 2: got 7 cells, must be 8"),
        (HEADER + "7,100,5000,bert,soon,64,2,300\n", "line 2: ddl: got 'soon', must be a date and time"),
        (HEADER + "7,100,5000,,400,64,2,300\n", "line 2: model_name: got '', must not be empty"),
        (HEADER + "7,100,5000,bert,400,64,0,300\n", "line 2: num_gpu: got '0', must be a whole number, at least 1"),
        (HEADER + "7,100,nan,bert,400,64,2,300\n", "line 2: iteration: got 'nan', must be finite"),
    ],
)
def test_malformed_traces_are_errors_with_file_and_line(tmp_path, text, message):
    with pytest.raises(InstanceError, match="trace.csv.*" + message):
        read_trace(trace(tmp_path, text))


def test_microsoft_trace(tmp_path):
    path = trace(tmp_path, "job_id,submission_time,duration,num_gpu\na-1,5010,1265,8\n")
    assert microsoft.read_trace(path).iloc[0].tolist() == ["a-1", 5010.0, 1265.0, 8]
    path = trace(tmp_path, "job_id,submission_time,duration,num_gpu\na-1,5010,,8\n")
    with pytest.raises(InstanceError, match="line 2: duration: got ''"):
        microsoft.read_trace(path)


# --- curves ---------------------------------------------------------------------------------------


def test_curve_between_and_beyond_measured_counts():
    measured = {1: 10.0, 2: 16.0, 4: 24.0, 8: math.nan}
    assert throughput_curve(measured, 6).tolist() == [0, 10, 16, 20, 24, 24, 24]
    assert throughput_curve(measured, 6, interpolate=False).tolist() == [0, 10, 16, 16, 24, 24, 24]
    assert throughput_curve(measured, 1).tolist() == [0, 10]


def test_curve_of_a_job_that_needs_several_gpus():
    measured = {1: math.nan, 2: 16.0, 4: math.nan, 8: 40.0}
    assert throughput_curve(measured, 9).tolist() == [0, 0, 16, 20, 24, 28, 32, 36, 40, 40]
    assert throughput_curve(measured, 3, interpolate=False).tolist() == [0, 0, 16, 16]


def test_curve_without_measurements():
    with pytest.raises(InstanceError, match="must have at least one"):
        throughput_curve({1: math.nan}, 4)


# --- instances from traces ------------------------------------------------------------------------


def test_rounding(tmp_path, tables):
    """Slots of 100 s: throughput is scaled, deadlines are rounded down but to one slot at least."""
    path = trace(tmp_path, HEADER + "0,1000,5000,bert,1399,64,2,300\n1,2000,70,bert,2050,128,1,40\n")
    fields, _ = jobs_from_trace(0, throughputs=tables, trace=path, num_jobs=2, num_gpus=2, slot_seconds=100)
    assert fields["iterations"].tolist() == [5000, 70]
    assert fields["deadlines"].tolist() == [3, 1]
    assert fields["throughputs"].tolist() == [[0, 1000, 1600], [0, 600, 1000]]


def test_drawn_deadlines(tmp_path, tables):
    text = HEADER + "".join(f"{job},0,5000,bert,10,64,2,100000\n" for job in range(200))
    path = trace(tmp_path, text)
    options = {"throughputs": tables, "trace": path, "num_jobs": 200}
    drawn = jobs_from_trace(0, **options, slot_seconds=100, draw_deadlines=True)[0]["deadlines"]
    assert 500 <= drawn.min() < 600
    assert 1400 < drawn.max() < 1500
    assert (jobs_from_trace(0, **options)[0]["deadlines"] == 1).all()


def test_microsoft_jobs_get_a_model(tmp_path, tables):
    """Iterations are what the model does in the job's duration on its GPUs, or on the most measured."""
    path = trace(tmp_path, "job_id,submission_time,duration,num_gpu\n" + "a,0,1000,64\n" * 30)
    fields, _ = jobs_from_trace(1, throughputs=tables, trace=path, num_jobs=30, num_gpus=4, slot_seconds=1)
    assert set(zip(fields["throughputs"][:, 4], fields["iterations"], strict=True)) == {(24, 24_000), (10, 10_000)}
    assert 500 <= fields["deadlines"].min() <= fields["deadlines"].max() < 1500


def test_stretches_of_the_trace(tmp_path, tables):
    text = HEADER + "".join(f"{job},0,{job},bert,7200,64,2,3600\n" for job in range(10))
    path = trace(tmp_path, text)
    firsts = set()
    for seed in range(40):
        fields, _ = jobs_from_trace(seed, throughputs=tables, trace=path, num_jobs=4)
        assert np.diff(fields["iterations"]).tolist() == [1, 1, 1]
        firsts.add(fields["iterations"][0])
    assert firsts == set(range(7))


def test_what_does_not_fit_together_is_an_error(tmp_path, tables):
    path = trace(tmp_path, HEADER + "0,0,5000,vgg16,400,64,2,300\n")
    with pytest.raises(InstanceError, match="there is no throughput of vgg16 at batch size 64"):
        jobs_from_trace(0, throughputs=tables, trace=path, num_jobs=1)
    with pytest.raises(InstanceError, match="num_jobs: got 2, must be 1 to 1"):
        jobs_from_trace(0, throughputs=tables, trace=path, num_jobs=2)
    with pytest.raises(InstanceError, match="slot_seconds: got 0, must be positive"):
        jobs_from_trace(0, throughputs=tables, trace=path, num_jobs=1, slot_seconds=0)


# --- the public data ------------------------------------------------------------------------------


@pytest.mark.parametrize(("table", "rows"), [("throughputs_A100", 17), ("throughputs_T4", 9)])
def test_public_tables(data, table, rows):
    tables = read_throughputs(data / "elasticflow" / table)
    assert list(tables.columns) == [1, 2, 4, 8, 16, 32, 64]
    assert len(tables) == rows
    assert tables[1].notna().all()


@pytest.mark.parametrize(
    ("name", "jobs"), [("elasticVpollux_e.csv", 195), ("philly_103959.csv", 876), ("resnet_cifar_trace.csv", 5)]
)
def test_public_traces(data, name, jobs):
    trace = read_trace(data / "elasticflow" / "traces" / name)
    assert len(trace) == jobs
    assert (trace["deadline"] > trace["submit_time"]).all()
    assert (trace["iterations"] > 0).all()


@pytest.mark.parametrize(("name", "jobs"), [("cluster02", 5778), ("cluster05", 3629), ("cluster10", 260)])
def test_public_microsoft_traces(data, name, jobs):
    trace = microsoft.read_trace(data / "elasticflow" / "microsoft" / "raw" / f"{name}.csv")
    assert len(trace) == jobs
    assert (trace["duration"] > 0).all()


def test_a100_trace_to_optima(data):
    """Real curves are concave up to 16 GPUs, and the optimum is no worse than Algorithm 1."""
    solved = 0
    for seed in range(6):
        instance = minimum_satisfactory_share.from_trace(
            seed,
            throughputs=data / "elasticflow" / "throughputs_A100",
            trace=data / "elasticflow" / "traces" / "philly_103959.csv",
            num_jobs=6,
        )
        assert instance.concave
        solution = formulations.solve(instance)
        filled = progressive_filling(instance)
        assert solution.status in ("optimal", "infeasible")
        if filled is not None:
            assert instance.violations(filled) == []
            assert solution.objective <= instance.objective(filled)
        solved += solution.status == "optimal"
    assert solved


@pytest.mark.parametrize("module", [minimum_satisfactory_share, admission, allocation])
def test_every_problem_takes_every_trace(data, module):
    folder = data / "elasticflow"
    for tables, trace in (
        ("throughputs_A100", "traces/philly_103959.csv"),
        ("throughputs_T4", "traces/elasticVpollux_e.csv"),
        ("throughputs_A100", "microsoft/raw/cluster10.csv"),
    ):
        options = {"throughputs": folder / tables, "trace": folder / trace, "num_jobs": 4, "slot_seconds": 14400}
        instance = module.from_trace(3, **options)
        assert instance == module.from_trace(np.random.default_rng(3), **options)
        assert instance.num_jobs == 4
        assert formulations.solve(instance).status in ("optimal", "infeasible")
