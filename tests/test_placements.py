"""Placement tables: who held which GPUs when, and the instances that are drawn from them."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from instances.base import InstanceError
from instances.data import philly
from instances.data.placements import held_at, read_placements, write
from validation import CATALOGUE, gap_study

from .published import PHILLY

TABLE = """\
job_id,server,gpus,start,end
a,s1,4,0,100
a,s2,4,0,100
b,s2,2,10,50
c,s3,8,20,200
d,s1,3,100,200
"""


def table(text: str = TABLE) -> Any:
    return read_placements(io.StringIO(text))


@pytest.mark.parametrize(
    ("time", "jobs", "servers", "gpus"),
    [
        (0.0, ["a"], ["s1", "s2"], [[4, 4]]),
        (10.0, ["a", "b"], ["s1", "s2"], [[4, 4], [0, 2]]),
        # A row counts up to its end, and without it.
        (100.0, ["c", "d"], ["s3", "s1"], [[8, 0], [0, 3]]),
    ],
)
def test_what_is_held_at_a_time(time: float, jobs: list[str], servers: list[str], gpus: list[list[int]]) -> None:
    held = held_at(np.random.default_rng(0), table(), len(servers), time)
    assert (held.jobs, held.servers, held.gpus.tolist()) == (jobs, servers, gpus)


def test_servers_are_drawn_and_none_is_made_up() -> None:
    for seed in range(20):
        held = held_at(np.random.default_rng(seed), table(), 2)
        rows = [line.split(",") for line in TABLE.splitlines()[1:]]
        now = [row for row in rows if float(row[3]) <= held.time < float(row[4]) and row[1] in held.servers]
        expected = {(job, server): int(gpus) for job, server, gpus, _, _ in now}
        places = np.argwhere(held.gpus).tolist()
        found = {(held.jobs[job], held.servers[server]): int(held.gpus[job, server]) for job, server in places}
        assert found == expected
    with pytest.raises(InstanceError, match=r"num_servers: got 4, as many servers of .* are not in use ever at once"):
        held_at(np.random.default_rng(0), table(), 4)
    with pytest.raises(InstanceError, match=r"num_servers: got 3, as many servers of .* are not in use at 0 s"):
        held_at(np.random.default_rng(0), table(), 3, 0.0)


def test_a_log_becomes_a_placement_table(tmp_path: Path) -> None:
    made = philly.read_placements(io.StringIO(PHILLY))
    log = [job for job in json.loads(PHILLY) if job["attempts"]]
    known = [
        (job["jobid"], server["ip"], len(server["gpus"]))
        for job in log
        for attempt in job["attempts"]
        if attempt["start_time"] not in (None, "None") and attempt["end_time"] not in (None, "None")
        for server in attempt["detail"]
    ]
    assert list(zip(made["job_id"], made["server"], made["gpus"], strict=True)) == known
    assert made["start"].min() == 0
    (tmp_path / "p.csv").write_text(write(made), encoding="utf-8")
    assert read_placements(tmp_path / "p.csv").to_dict("list") == made.to_dict("list")


@pytest.mark.parametrize("problem", [name for name, entry in CATALOGUE.items() if entry.from_placements is not None])
def test_instances_of_what_ran(problem: str, tmp_path: Path) -> None:
    entry = CATALOGUE[problem]
    assert entry.from_placements is not None
    other = {"num_machines": 3} if problem == "afs.gpu_placement" else {}
    made = entry.from_placements(3, placements=table(), **{entry.size: 3}, time=20.0, **other)
    assert made.origin is not None
    assert made.origin["options"]["time"] == 20
    if problem == "aryl.reclaim":
        assert made.gpus.tolist() == [[4, 4, 0], [0, 2, 0], [0, 0, 8]]  # type: ignore[attr-defined]
    if problem == "afs.gpu_placement":
        assert made.previous.tolist() == [[4, 4, 0], [0, 2, 0], [0, 0, 8]]  # type: ignore[attr-defined]
    if problem == "elasticflow.placement":
        # GPUs 0 of server 0, 4 of server 1 behind job a's four, 0 of server 2; and a job that comes.
        assert made.sizes.tolist() == [8, 2, 8, 4]  # type: ignore[attr-defined]
        assert made.previous_offsets.tolist() == [0, 12, 16, np.inf]  # type: ignore[attr-defined]
    (tmp_path / "p.csv").write_text(TABLE, encoding="utf-8")
    study = gap_study(
        problem,
        placements=str(tmp_path / "p.csv"),
        sizes=[2],
        count=1,
        seed=1,
        reader={"num_machines": 2} if other else None,
        real_only=True,
        output=tmp_path / "study",
        jobs=1,
    )
    assert set(study.rows["source"]) == {"trace"}
    assert str(tmp_path / "p.csv") in study.report.read_text(encoding="utf-8")
