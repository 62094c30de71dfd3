"""optgap convert: published data as files that the library reads."""

import gzip
import json
from pathlib import Path

import pytest

from instances.data import elasticflow, jobs, placements, synergy

from ...instances.data.published import HELIOS, MATRIX, NODES, PHILLY, PODS, SIA, SYNERGY
from .commands import Optgap


def test_a_log_becomes_a_job_table(tmp_path: Path, optgap: Optgap) -> None:
    (tmp_path / "log.gz").write_bytes(gzip.compress(PHILLY.encode()))
    output = tmp_path / "jobs.csv"
    said = optgap("convert", "philly", str(tmp_path / "log.gz"), "-o", str(output))
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines() == [
        f"2 rows from 4 of {tmp_path / 'log.gz'}",
        "1 rows left out: job had not ended",
        "1 rows left out: job has no attempt with start and end",
        "1 rows filled in: duration is the sum of several attempts",
        str(output),
    ]
    assert jobs.read_trace(output)["job_id"].tolist() == ["a", "b"]
    again = optgap("convert", "philly", str(tmp_path / "log.gz"), "-o", str(output))
    assert (again.code, again.err) == (2, f"optgap: {output} is in the way: choose another file\n")


def test_columns_and_bad_rows(tmp_path: Path, optgap: Optgap) -> None:
    log = tmp_path / "log.csv"
    log.write_text(HELIOS.replace("gpu_num", "GPUs") + "4,u,v,1,1,1,DONE,soon,,,1,0\n", encoding="utf-8")
    output = tmp_path / "jobs.csv"
    plain = ["convert", "helios", str(log), "-o", str(output)]
    assert "there is no column 'gpu_num'" in optgap(*plain).err
    assert "line 5: submit_time: got 'soon'" in optgap(*plain, "--reader", "columns.num_gpus=GPUs").err
    assert not output.exists()
    said = optgap(*plain, "--reader", "columns.num_gpus=GPUs", "--reader", "skip_bad_rows=true")
    assert said.code == 0
    assert "1 rows skipped, the first: " in said.out
    assert jobs.read_trace(output)["num_gpus"].tolist() == [1, 4]


def test_profiles(tmp_path: Path, optgap: Optgap) -> None:
    (tmp_path / "bert.csv").write_text(SIA, encoding="utf-8")
    tables = tmp_path / "tables.csv"
    assert optgap("convert", "sia", str(tmp_path / "bert.csv"), "-o", str(tables), "--reader", "gpu_type=rtx").code == 0
    assert list(elasticflow.read_throughputs(tables).index) == [("bert", 8), ("bert", 16)]
    (tmp_path / "alexnet_1.py").write_text(SYNERGY, encoding="utf-8")
    profiles = tmp_path / "profiles.json"
    said = optgap("convert", "synergy-profiles", str(tmp_path), "-o", str(profiles), "--reader", "cpus_per_gpu=4")
    assert said.code == 0
    assert synergy.read_profiles(profiles, cpus_per_gpu=4).of("alexnet").tolist() == MATRIX


def test_pods_and_nodes_become_a_placement_table_that_is_drawn_from(tmp_path: Path, optgap: Optgap) -> None:
    (tmp_path / "pods.csv").write_text(PODS, encoding="utf-8")
    (tmp_path / "nodes.csv").write_text(NODES, encoding="utf-8")
    output = tmp_path / "placements.csv"
    plain = ["convert", "openb-placements", str(tmp_path / "pods.csv"), "-o", str(output)]
    said = optgap(*plain)
    assert (said.code, "missing a required argument: 'nodes'" in said.err) == (2, True)
    said = optgap(*plain, "--reader", f"nodes={tmp_path / 'nodes.csv'}")
    assert (said.code, said.err) == (0, "")
    assert "rows filled in: node is that which the pod fits best" in said.out
    assert placements.read_placements(output)["server_gpus"].tolist() == [8]
    drawn = optgap("generate", "aryl.placement", "--seed", "1", "--placements", str(output), "--size", "1")
    assert json.loads(drawn.out)["server_gpus"] == [8]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["filly", "x", "-o", "y"], "unknown format 'filly' (did you mean 'philly'?), must be one of jobs, philly"),
        (["philly", "none", "-o", "y"], "none: No such file or directory"),
        (
            ["philly", "none", "-o", "y", "--reader", "gpu_type=t4"],
            "reader: format philly has no option 'gpu_type'; it takes skip_bad_rows (true or false)",
        ),
        (
            ["synergy-profiles", "none", "-o", "y", "--reader", "cpus_per_gpu=many"],
            "reader: cpus_per_gpu of format synergy-profiles: got 'many', must be a whole number",
        ),
        (["helios", "none", "-o", "y", "--reader", "a"], "--reader: got 'a', must be NAME=VALUE, or NAME.ENTRY=VALUE"),
        (
            ["helios", "none", "-o", "y", "--reader", "columns.a=b", "--reader", "columns.a=c"],
            "--reader: columns.a is given twice",
        ),
        (["helios", "none", "-o", "no/y"], "cannot write to no/y: No such file or directory"),
    ],
)
def test_what_cannot_be_converted(arguments: list[str], words: str, optgap: Optgap) -> None:
    said = optgap("convert", *arguments)
    assert said.code == 2
    assert said.err.startswith(f"optgap: {words}")
    assert said.err.count("\n") == 1


def test_own_tables_of_own_worker_types(tmp_path: Path, optgap: Optgap) -> None:
    (tmp_path / "own.json").write_text(
        json.dumps({"a100": {"('m', 1)": {"null": 1.0}}, "h100": {"('m', 1)": {"null": 3.0}}}), encoding="utf-8"
    )
    (tmp_path / "own.trace").write_text("m\tx\t-n\t1\t100\t0\t1\n" * 4, encoding="utf-8")
    study = [
        "study",
        "gavel.max_min_fairness",
        "--sizes",
        "3",
        "--count",
        "1",
        "--seed",
        "1",
        "-o",
        str(tmp_path / "s"),
    ]
    real = ["--throughputs", str(tmp_path / "own.json"), "--trace", str(tmp_path / "own.trace")]
    said = optgap(*study, *real, "--heuristic", "isolated")
    assert said.code == 0, said.err
    drawn = [json.loads(path.read_text()) for path in (tmp_path / "s" / "instances").rglob("*.json")]
    told = [one["origin"]["options"]["worker_types"] for one in drawn if "origin" in one]
    assert told == [["a100", "h100"]]


LIKE_PHILLY = (
    "JobID,VC,Submitted Time,Start Time,Finished Time,GPUs,Status\n"
    "a,v1,2017-10-03 04:55:10,2017-10-03 04:56:10,2017-10-03 05:56:10,1,Pass\n"
    "b,v1,2017-10-03T04:57:10Z,2017-10-03T04:58:10Z,2017-10-03T05:28:10Z,2,Killed\n"
    "c,v2,2017-10-03 04:59:10,,,1,Failed\n"
)


def test_a_table_like_philly_s_becomes_a_job_table_that_gavel_and_synergy_read(tmp_path: Path, optgap: Optgap) -> None:
    (tmp_path / "log.csv").write_text(LIKE_PHILLY, encoding="utf-8")
    said = optgap("convert", "jobs", "log.csv", "-o", "jobs.csv", "--reader", "skip_bad_rows=true")
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("2 rows from 3 of log.csv\n1 rows skipped, the first: log.csv, line 4: Start Time: got")
    assert (tmp_path / "jobs.csv").read_text(encoding="utf-8") == (
        "job_id,submit_time,num_gpu,duration\na,0.0,1,3600.0\nb,120.0,2,1800.0\n"
    )
    (tmp_path / "rates.csv").write_text(
        "worker_type,model,scale_factor,throughput\nv100,m,1,2\nv100,m,2,3\nk80,m,1,1\n", encoding="utf-8"
    )
    (tmp_path / "profiles.csv").write_text(
        "model,cpus_per_gpu,memory_gb_per_gpu,throughput\nm,3,62.5,1\n", encoding="utf-8"
    )
    for problem, throughputs in (("gavel.makespan", "rates.csv"), ("synergy.tuning", "profiles.csv")):
        for table, reader in (("jobs.csv", ()), ("log.csv", ("--reader", "skip_bad_rows=true"))):
            output = f"{problem}-{table}"
            drawn = optgap(
                "generate",
                problem,
                "--seed",
                1,
                "--throughputs",
                throughputs,
                "--trace",
                table,
                *reader,
                "-o",
                output,
                "--size",
                2,
            )
            assert (drawn.code, drawn.err) == (0, "")
    # A log that the format does not know says which would.
    said = optgap("convert", "philly", "log.csv", "-o", "other.csv")
    assert said.code == 2
    assert said.err.rstrip().endswith("a table with a header is of the format jobs")


@pytest.mark.filterwarnings("always::instances.data.jobs.DoubtfulData")
def test_doubts_are_told_in_a_line(tmp_path: Path, optgap: Optgap) -> None:
    rows = "".join(f"{row},0,1,{4e9}\n" for row in range(3))
    (tmp_path / "mine.csv").write_text(f"job_id,submit_time,num_gpus,duration\n{rows}", encoding="utf-8")
    said = optgap("convert", "jobs", "mine.csv", "-o", "jobs.csv")
    doubt = "half of the jobs take longer than 46,296 days: are their durations milliseconds?"
    assert (said.code, said.err) == (0, f"optgap: warning: mine.csv: {doubt}\n")
    assert f"doubtful: {doubt}" in said.out.splitlines()


def test_what_is_empty_and_what_is_missing_is_said_in_the_shell_s_words(tmp_path: Path, optgap: Optgap) -> None:
    (tmp_path / "mine.csv").write_text("", encoding="utf-8")
    assert optgap("convert", "jobs", "mine.csv", "-o", "jobs.csv").err == "optgap: mine.csv is empty\n"
    (tmp_path / "mine.csv").write_text("job,handed in,lasted,width\na,1,2,3\n", encoding="utf-8")
    said = optgap("convert", "jobs", "mine.csv", "-o", "jobs.csv")
    assert said.err.endswith("in the shell --reader columns.submit_time=...\n")
