"""Throughput tables and traces of afs.elastic_sharing: read, refused by name or repaired."""

import pytest

import formulations
from heuristics.afs import elastic_sharing as schedulers
from instances.afs.curves import RepairWarning, curves
from instances.afs.elastic_sharing import from_trace
from instances.base import InstanceError
from instances.data import microsoft, tiresias


def write_tables(folder, **tables):
    for name, lines in tables.items():
        (folder / f"{name}.csv").write_text("global_batch_size,1,2,4\n" + "\n".join(lines) + "\n")
    return folder


def test_curves_that_fall_or_bend_upwards_are_refused_by_name_or_repaired(tmp_path):
    write_tables(tmp_path, good=["32,2,3,4"], falls=["64,4,3,6"], bends=["8,1,3,4"], gap=["16,5,,6"])
    assert curves(tmp_path, num_gpus=3, models=["good"]).tables["good", 32].tolist() == [0, 2, 3, 3.5]
    for model, message in {
        "falls": "falls at batch size 64: 3 iterations/s on 2 GPUs after 4 on 1",
        "bends": "bends at batch size 8: more gain per GPU from 1 to 2 GPUs",
        "gap": "gap at batch size 16: no throughput on 2 GPUs",
    }.items():
        with pytest.raises(InstanceError, match=message):
            curves(tmp_path, num_gpus=4, models=[model])
    repaired = curves(tmp_path, num_gpus=5, repair=True)
    # Running maximum (4, 4, 6), then the hull above it.
    assert repaired.tables["falls", 64].tolist() == pytest.approx([0, 4, 14 / 3, 16 / 3, 6, 6])
    assert repaired.tables["bends", 8].tolist() == [0, 1.5, 3, 3.5, 4, 4]
    assert repaired.tables["gap", 16].tolist() == pytest.approx([0, 5, 16 / 3, 17 / 3, 6, 6])
    assert len(repaired.repairs) == 3
    assert not any("good" in repair for repair in repaired.repairs)
    # What lies beyond the cluster does not count.
    assert curves(tmp_path, num_gpus=1, models=["falls"]).tables["falls", 64].tolist() == [0, 4]
    with pytest.raises(InstanceError, match="no throughput table of other"):
        curves(tmp_path, num_gpus=4, models=["other"])


def test_work_is_duration_times_throughput_on_the_trace_s_gpus(tmp_path):
    write_tables(tmp_path, vgg16=["32,2,3,4"])
    trace = tmp_path / "jobs.trace"
    trace.write_text("job_id,submission_time,duration,num_gpu\na,100,10,1\nb,160,20,2\nc,170,30,64\n")
    instance = from_trace(0, throughputs=tmp_path, trace=trace, num_jobs=3, num_gpus=4, arrivals=True)
    assert instance.work.tolist() == [20.0, 60.0, 120.0]
    assert instance.arrivals.tolist() == [0.0, 60.0, 70.0]
    at_once = from_trace(0, throughputs=tmp_path, trace=trace, num_jobs=3, num_gpus=4)
    assert not at_once.arrivals.any()
    with pytest.raises(InstanceError, match="num_jobs: got 4, must be 1 to 3"):
        from_trace(0, throughputs=tmp_path, trace=trace, num_jobs=4)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a,100,10", "line 2: got 3 cells"),
        ("a,100,ten,1", "line 2: duration: got 'ten'"),
        ("a,100,10,0", "line 2: num_gpu: got '0'"),
        ("a,-1,10,1", "line 2: submission_time: got '-1'"),
    ],
)
def test_malformed_lines_are_named(tmp_path, line, message):
    trace = tmp_path / "jobs.csv"
    trace.write_text(f"job_id,submission_time,duration,num_gpu\n{line}\n")
    with pytest.raises(InstanceError, match=message):
        microsoft.read_trace(trace)


def test_real_traces_and_curves(data):
    tables = data / "elasticflow" / "throughputs_A100"
    with pytest.raises(InstanceError, match="resnet50_cifar10 at batch size 64"):
        curves(tables, num_gpus=8)
    in_order = ["bert", "gpt2", "resnet50", "vgg16", "deepspeech2"]
    assert curves(tables, num_gpus=8, models=in_order).repairs == ()
    assert tiresias.read_trace(data / "tiresias/60_job.csv")["model"].iloc[0] == "vgg19"
    for trace in ("elasticflow/microsoft/raw/cluster02.csv", "tiresias/60_job.csv"):
        instance = from_trace(1, throughputs=tables, trace=data / trace, num_jobs=3, num_gpus=4, models=in_order)
        assert instance.concave.all()
        solution = formulations.solve(instance)
        assert solution.status == "optimal"
        assert instance.objective(schedulers.afs_l(instance)) >= solution.bound * (1 - 1e-6)
    with pytest.warns(RepairWarning, match="resnet50_cifar10 at batch size 64"):
        repaired = from_trace(1, throughputs=tables, trace=data / trace, num_jobs=20, num_gpus=16, repair=True)
    assert repaired.concave.all()
