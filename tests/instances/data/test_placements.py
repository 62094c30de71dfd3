"""Placement tables: who held which GPUs when, and the instances that are drawn from them."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from instances.aryl import placement
from instances.aryl.placement import ArylPlacementPlan
from instances.base import InstanceError
from instances.data import alibaba, philly
from instances.data.placements import draw_held, read_placements, write
from validation import CATALOGUE, gap_study

from .published import NODES, PHILLY, PODS

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
    held = draw_held(np.random.default_rng(0), table(), len(servers), time=time)
    assert (held.jobs, held.servers, held.gpus.tolist()) == (jobs, servers, gpus)


def test_servers_are_drawn_and_none_is_made_up() -> None:
    for seed in range(20):
        held = draw_held(np.random.default_rng(seed), table(), 2)
        rows = [line.split(",") for line in TABLE.splitlines()[1:]]
        now = [row for row in rows if float(row[3]) <= held.time < float(row[4]) and row[1] in held.servers]
        expected = {(job, server): int(gpus) for job, server, gpus, _, _ in now}
        places = np.argwhere(held.gpus).tolist()
        found = {(held.jobs[job], held.servers[server]): int(held.gpus[job, server]) for job, server in places}
        assert found == expected
    with pytest.raises(InstanceError, match=r"num_servers: got 4, as many servers of .* are not in use ever at once"):
        draw_held(np.random.default_rng(0), table(), 4)
    with pytest.raises(InstanceError, match=r"num_servers: got 3, as many servers of .* are not in use at 0 s"):
        draw_held(np.random.default_rng(0), table(), 3, time=0.0)


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


@pytest.mark.slow
@pytest.mark.parametrize("problem", [name for name, entry in CATALOGUE.items() if entry.from_placements is not None])
def test_instances_of_what_ran(problem: str, tmp_path: Path) -> None:
    entry = CATALOGUE[problem]
    assert entry.from_placements is not None
    other = {"num_machines": 3} if problem == "afs.gpu_placement" else {}
    made = entry.from_placements(
        3, placements=table(), **{entry.size: 2 if problem == "aryl.placement" else 3}, time=20.0, **other
    )
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
    if problem == "aryl.placement":
        # Those that begin at 20 s or later, on what is left of s3 and s1; the table has no third.
        assert made.num_workers.tolist() == [1, 1]  # type: ignore[attr-defined]
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


def rows_of(frame: Any) -> list[tuple[str, str, int, float, float]]:
    return list(frame[["job_id", "server", "gpus", "start", "end"]].itertuples(index=False, name=None))


def test_workers_that_came_from_a_time_on() -> None:
    made = placement.from_placements(0, placements=table(), total_workers=3, time=10.0)
    # b, c and d; on s2 and s1 job a holds 4 of 8 GPUs when b comes.
    assert made.gpus_per_worker.tolist() == [2, 8, 3]
    assert made.num_workers.tolist() == [1, 1, 1]
    assert made.server_gpus.tolist() == [4, 8, 4]
    assert made.origin is not None
    assert (made.origin["jobs"], made.origin["servers"]) == (["b", "c", "d"], ["s2", "s3", "s1"])
    # Job a is there with its 4 GPUs on each of two servers: two workers of one size.
    first = placement.from_placements(0, placements=table(), total_workers=2, time=0.0)
    assert (first.gpus_per_worker.tolist(), first.num_workers.tolist()) == ([4], [2])
    sized = table(TABLE.replace("end\n", "end,server_gpus\n").replace("00\n", "00,4\n").replace("50\n", "50,4\n"))
    tight = placement.from_placements(0, placements=sized, total_workers=3, time=10.0)
    # None of the 4 is free on s2 and s1, and yet 2 and 3 came: so many are taken to be.
    assert tight.server_gpus.tolist() == [2, 8, 3]
    assert tight.origin is not None
    assert tight.origin["repairs"]["server has more free GPUs than the table leaves it, for what came to it"] == 3
    for wrong, words in (
        ({"total_workers": 6}, "must be 1 to 5"),
        ({"total_workers": 2, "time": 90.0}, "must be 1 to 1"),
    ):
        with pytest.raises(InstanceError, match=words):
            placement.from_placements(0, placements=table(), **wrong)  # type: ignore[arg-type]


def test_where_the_table_has_them_the_workers_fit() -> None:
    for seed in range(30):
        rng = np.random.default_rng(seed)
        lines = [
            f"j{rng.integers(12)},s{rng.integers(5)},{rng.integers(1, 9)},{start},{start + rng.integers(1, 30)}"
            for start in rng.integers(0, 60, 25).tolist()
        ]
        frame = read_placements(io.StringIO("job_id,server,gpus,start,end\n" + "\n".join(lines) + "\n"))
        made = placement.from_placements(seed, placements=frame, total_workers=8)
        assert made.origin is not None
        time, jobs, servers = (made.origin["options"]["time"], made.origin["jobs"], made.origin["servers"])
        ordered = sorted(rows_of(frame), key=lambda row: row[3])
        begin = [place for place, row in enumerate(ordered) if row[3] == time]
        kinds = list(zip(jobs, made.gpus_per_worker.tolist(), strict=True))
        fits = []
        # Several rows may begin at once: the window begins with one of them.
        for first in begin:
            window = ordered[first : first + 8]
            workers = np.zeros((made.num_jobs, made.num_servers), np.int64)
            if all((job, gpus) in kinds and server in servers for job, server, gpus, _, _ in window):
                for job, server, gpus, _, _ in window:
                    workers[kinds.index((job, gpus)), servers.index(server)] += 1
                fits.append(not made.violations(ArylPlacementPlan(workers=workers)))
        assert any(fits)
        assert made.total_workers == 8


def test_pods_are_placed_where_they_fit_best() -> None:
    header = PODS.splitlines()[0]
    nodes = "sn,cpu_milli,memory_mib,gpu,model\nlarge,1,1,8,G2\nsmall,1,1,2,T4\nnone,1,1,0,\n"
    pods = [
        ("one", 1, 300, "", 10, 50),  # a whole GPU of the small node
        ("two", 2, 1000, "", 11, 90),  # which then has one: the large node
        ("three", 1, 1000, "G2|P100", 12, 90),  # the small node is no such model
        ("six", 6, 1000, "nan", 13, 90),  # 5 are free there
        ("next", 2, 1000, "T4", 50, 60),  # when the first is gone
        ("never", 1, 1000, "V100M16", 51, 60),
    ]
    lines = [f"{n},1,1,{g},{m},{spec},LS,Running,{s - 5},{e},{s}" for n, g, m, spec, s, e in pods]
    text = "\n".join([header, *lines, *PODS.splitlines()[3:5]]) + "\n"
    made = alibaba.read_placements(io.StringIO(text), nodes=io.StringIO(nodes))
    assert rows_of(made) == [
        ("one", "small", 1, 0.0, 40.0),
        ("two", "large", 2, 1.0, 80.0),
        ("three", "large", 1, 2.0, 80.0),
        ("next", "small", 2, 40.0, 50.0),
    ]
    assert made["server_gpus"].tolist() == [2, 8, 8, 2]
    reading = made.attrs["reading"]
    assert reading["left_out"] == {
        "pod asked for no GPU": 1,
        "pod was never scheduled, or never deleted": 1,
        "pod was deleted before it was scheduled": 0,
        "pod finds no node with its GPUs free": 2,
    }
    assert reading["filled_in"]["part of a GPU is rounded up to one"] == 1
    assert rows_of(read_placements(io.StringIO(write(made)))) == rows_of(made)
    with pytest.raises(InstanceError, match="no pod finds a node"):
        alibaba.read_placements(io.StringIO(PODS), nodes=io.StringIO(NODES.replace(",8,", ",0,")))
