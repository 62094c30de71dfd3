"""Studies, hunts and claims on a Dask cluster: the same as on one machine, whatever happens to the nodes."""

import asyncio
import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.faults import cluster as faults
from benchmarks.faults.tally import FAULTS
from instances.aryl.reclaim import Reclaim, ReclaimPlan
from validation import StudyError, examine, find_worst, gap_study, replay_study
from validation.cli.cluster import cluster as command_cluster
from validation.kernel import cluster
from validation.kernel.isolation import descendants
from validation.kernel.keys import code_of
from validation.kernel.workers import Task
from validation.kinds import claims, hunt

from ....processes import eventually
from .studies import FORKED, first_servers, log_of, returns_nothing, servers_from, without_times

distributed = pytest.importorskip("distributed", reason="Dask comes with the test extra")

# Dask's own warnings are not this library's.
pytestmark = [FORKED, pytest.mark.slow, pytest.mark.filterwarnings("default")]

ROOT = Path(__file__).parents[4]
SMALL: dict[str, Any] = {"problems": "aryl.reclaim", "seed": 3, "sizes": [4, 6], "count": 2, "progress": False}


@pytest.fixture(scope="module")
def client() -> Iterator[distributed.Client]:
    """A cluster of two workers with a thread each, in processes of their own."""
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as local,
        distributed.Client(local) as found,
    ):
        yield found


def pids(client: distributed.Client) -> list[int]:
    """Processes of the workers."""
    return sorted(client.run(os.getpid).values())


def below(client: distributed.Client) -> list[int]:
    """Processes below the programs beside the workers, which run tasks."""
    return [task for worker in pids(client) for program in descendants(worker)[:1] for task in descendants(program)]


def optgap(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """The command line in a folder, while it runs."""
    return subprocess.Popen(
        [sys.executable, "-c", "from validation.cli import main; main()", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.environ.get("PYTHONPATH", str(ROOT))},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


# --- the same as on one machine ---------------------------------------------------------------------


def test_the_table_is_that_of_one_machine(client: distributed.Client, tmp_path: Path) -> None:
    (tmp_path / "beside_it.py").write_text("def first(demand):\n    import numpy\n    return numpy.arange(demand)\n")
    (tmp_path / "of_mine.py").write_text(
        textwrap.dedent(
            """
            import beside_it
            from instances.aryl.reclaim import ReclaimPlan

            def first(instance, *, rng):
                return ReclaimPlan(servers=rng.permutation(instance.num_servers)[beside_it.first(instance.demand)])
            """
        )
    )
    asked: dict[str, Any] = {
        **SMALL,
        "sizes": [5],
        "sweep": {"spread": [0.5]},
        "heuristics": {
            "paper": "server_fraction",
            "random": "random",
            "closure": servers_from(1),
            "function": first_servers,
            "nothing": returns_nothing,
            "lambda": lambda instance: ReclaimPlan(servers=np.arange(0)),
            "file": f"{tmp_path}/of_mine.py:first",
        },
    }
    there = gap_study(**asked, output=tmp_path / "there", client=client)
    here = gap_study(**asked, output=tmp_path / "here", jobs=2)
    left, right = without_times(there.rows), without_times(here.rows)
    # A lambda of a test, as one of a notebook, may have a key of its own each time.
    assert left.drop(columns="key").equals(right.drop(columns="key"))
    assert len(left) == 2 * 8
    assert set(left["status"]) == {"optimal", "feasible", "failed", "infeasible"}
    assert "of_mine" not in sys.modules


REPLAYS: dict[str, Any] = {"problem": "aryl.elastic_allocation", "gaps": "all", "offline": 0.0, "progress": False}


def test_replays_are_those_of_one_machine(client: distributed.Client, tmp_path: Path) -> None:
    """The trace, and the module of a decision maker, are in no place that a node could read."""
    (tmp_path / "mine.py").write_text(
        "from heuristics.aryl.elastic_allocation import gandiva\n"
        "def theirs(instance):\n    return None if instance.digest < '2' else gandiva(instance)\n"
    )
    rows = "".join(f"j{number},{100 * number},1,{600 + 60 * number}\n" for number in range(6))
    (tmp_path / "trace.csv").write_text(f"job_id,submit_time,num_gpu,duration\n{rows}")
    asked = {
        **REPLAYS,
        "traces": tmp_path / "trace.csv",
        "policies": ["exact", "gandiva", f"{tmp_path}/mine.py:theirs"],
        "keep": "all",
    }
    there = replay_study(**asked, output=tmp_path / "there", client=client)
    here = replay_study(**asked, output=tmp_path / "here", jobs=2)
    times = ["replay_seconds", "seconds"]
    assert there.rows.drop(columns=times).equals(here.rows.drop(columns=times))
    assert set(there.rows["status"]) == {"ended"}
    assert there.jobs.equals(here.jobs)
    kept = [{path.name for path in (tmp_path / name / "instances").rglob("*.json")} for name in ("there", "here")]
    assert kept[0] == kept[1] != set()
    assert len(there.offline)


@pytest.mark.parametrize(
    ("run", "asked"),
    [
        (gap_study, {**SMALL, "heuristics": ["server_fraction"]}),
        (replay_study, {**REPLAYS, "traces": "poisson", "policies": ["gandiva"], "length": 4}),
    ],
)
def test_what_is_done_is_not_done_again(
    run: Callable[..., Any], asked: dict[str, Any], client: distributed.Client, tmp_path: Path
) -> None:
    asked = {**asked, "output": tmp_path / "study"}
    run(**asked, jobs=1)
    before = (tmp_path / "study" / "rows.jsonl").read_bytes()
    run(**asked, client=client)
    assert (tmp_path / "study" / "rows.jsonl").read_bytes() == before


def test_a_hunt_by_restarts_depends_on_the_seed_alone(
    client: distributed.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hunt, "RESTART", 8)
    options: dict[str, Any] = {"seed": 5, "budget": 240.0, "restarts": 4}
    here = find_worst("aryl.reclaim", first_servers, **options, jobs=1)
    assert here.worst_gap > 0
    assert here.evaluated >= 24
    assert find_worst("aryl.reclaim", first_servers, **options, client=client) == here


def test_claims_are_examined_alike(client: distributed.Client) -> None:
    wanted = claims.claims("aryl.reclaim")[:4]
    options: dict[str, Any] = {"instances": 20, "seconds": 60.0, "seed": 2}
    there = list(claims.examine_all(wanted, client=client, **options))
    assert [verdict.to_dict() for verdict in there] == [examine(claim, **options).to_dict() for claim in wanted]


@pytest.fixture
def own_problem(tmp_path: Path) -> None:
    """A folder with a problem, what it imports, a heuristic and a claim, all of the user's."""
    module = (ROOT / "examples" / "outside" / "outside_example" / "one_server.py").read_text(encoding="utf-8")
    (tmp_path / "weights.py").write_text("import numpy\ndef heaviest(gpus):\n    return numpy.argsort(-gpus)\n")
    claim = """
        import weights
        from validation.kinds.claims import Claim

        def draws(rng):
            while True:
                yield generate(rng, num_jobs=3)

        def left_over(instance):
            used = instance.gpus[densest_first(instance).chosen].sum()
            return "" if used == instance.capacity else f"{instance.capacity - used} GPUs are left over"

        register(Claim("no_gpu_left", "an example", "All GPUs are used.", "", draws, left_over, "three jobs",
                       problem="demo.one_server", assumptions="none", relaxed=""))
    """
    (tmp_path / "one_server.py").write_text(module + textwrap.dedent(claim), encoding="utf-8")
    (tmp_path / "mine.py").write_text(
        textwrap.dedent(
            """
            import numpy, one_server

            def heaviest_first(instance):
                chosen, left = numpy.zeros(instance.num_jobs, bool), instance.capacity
                for job in one_server.weights.heaviest(instance.gpus):
                    chosen[job] = instance.gpus[job] <= left
                    left -= instance.gpus[job] * chosen[job]
                return one_server.OneServerPlan(chosen=chosen)
            """
        )
    )


def there_and_here(client: distributed.Client, folder: Path, *arguments: str, here: tuple[str, ...] = ()) -> list[str]:
    """What a command about the user's own problem says on the cluster, and on this machine; it writes to a folder so
    named."""
    said = []
    for name, where in (("there", ("--dask", client.scheduler.address)), ("here", here)):
        with optgap(folder, *arguments, "--load", "one_server.py", *where, "-o", name) as process:
            words, wrong = process.communicate(timeout=300)
        assert process.returncode == 0, wrong
        said.append(words)
    return said


@pytest.mark.usefixtures("own_problem")
def test_studies_of_the_users_own_problems_travel(client: distributed.Client, tmp_path: Path) -> None:
    asked = ["study", "demo.one_server", "--heuristic", "densest_first", "--heuristic", "mine.py:heaviest_first"]
    asked += ["--sizes", "5", "--count", "2", "--seed", "1"]
    there_and_here(client, tmp_path, *asked, here=("--jobs", "2"))
    there, here = (without_times(pd.read_parquet(tmp_path / name / "results.parquet")) for name in ("there", "here"))
    assert there.equals(here)
    assert sorted(there["status"]) == ["feasible"] * 4 + ["optimal"] * 2


@pytest.mark.usefixtures("own_problem")
def test_hunts_for_the_users_own_problems_travel(client: distributed.Client, tmp_path: Path) -> None:
    asked = ["hunt", "demo.one_server", "mine.py:heaviest_first", "--seed", "1", "--restarts", "1", "--budget", "240s"]
    there_and_here(client, tmp_path, *asked, here=("--jobs", "1"))
    there, here = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir() if path.suffix == ".json"}
        for name in ("there", "here")
    )
    assert there == here
    assert there


@pytest.mark.usefixtures("own_problem")
def test_claims_about_the_users_own_problems_travel(client: distributed.Client, tmp_path: Path) -> None:
    there, here = there_and_here(client, tmp_path, "claims", "demo", "--instances", "30", "--json")
    assert there == here
    (verdict,) = json.loads(there)
    assert verdict["outcome"] == "refuted"
    assert verdict["counterexample"]["problem"] == "demo.one_server"


# --- what tasks can do ------------------------------------------------------------------------------


def misbehaves(instance: Reclaim) -> ReclaimPlan:
    match instance.num_servers:
        case 4:
            os._exit(7)
        case 5:
            while True:
                pass
        case 6:
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)
    return first_servers(instance)


def test_no_heuristic_takes_a_worker_with_it(client: distributed.Client, tmp_path: Path) -> None:
    before = pids(client)
    asked = {**SMALL, "sizes": [3, 4, 5, 6], "count": 1, "time_limit": 2.0}
    found = gap_study(**asked, heuristics=[misbehaves], output=tmp_path / "study", client=client).rows
    of_heuristic = found[found["algorithm"] == "misbehaves"].set_index("size")
    assert of_heuristic.loc[3, "status"] == "feasible"
    assert "exited with code 7" in of_heuristic.loc[4, "reason"]
    assert "time limit" in of_heuristic.loc[5, "reason"]
    assert of_heuristic.loc[6, "status"] == "failed"
    assert (found[found["algorithm"] == "exact"]["status"] == "optimal").all()
    assert pids(client) == before


def count(folder: str, seconds: float) -> int:
    """Leave a file for each time that this is called."""
    Path(folder, f"{os.getpid()}-{time.monotonic_ns()}").touch()
    time.sleep(seconds)
    return 1


def hang_at_first(folder: str, task: int) -> int:
    """Leave a file for each time that this is called; the first task does not end the first time."""
    before = any(Path(folder).glob(f"{task}-*"))
    Path(folder, f"{task}-{time.monotonic_ns()}").touch()
    if task == 0 and not before:
        time.sleep(60.0)
    return task


def test_tasks_that_run_twice_end_once(client: distributed.Client, tmp_path: Path) -> None:
    def kill_workers() -> None:
        eventually(lambda: list(tmp_path.glob("0-*")))
        for pid in pids(client):
            os.kill(pid, signal.SIGKILL)

    with ThreadPoolExecutor() as beside:
        killed = beside.submit(kill_workers)
        tasks = [Task((str(tmp_path), number), 90.0) for number in range(12)]
        ended = list(cluster.run_tasks(client, hang_at_first, tasks, total=len(tasks)))
        killed.result()
    assert sorted((outcome.result, outcome.reason) for outcome in ended) == [(number, "") for number in range(12)]
    assert len(list(tmp_path.glob("0-*"))) == 2


def test_letting_go_ends_what_runs(client: distributed.Client, tmp_path: Path) -> None:
    outcomes = cluster.run_tasks(client, count, (Task((str(tmp_path), 60.0 * bool(n)), 90.0) for n in range(9)))
    next(outcomes)
    eventually(lambda: len(list(tmp_path.iterdir())) >= 2)
    assert below(client)
    outcomes.close()
    eventually(lambda: not below(client))


def test_a_task_that_takes_down_what_runs_it_is_given_up() -> None:
    tasks = [Task((number,), 1.0) for number in range(3)]
    queue = cluster._Queue(print, iter(tasks), 3, lambda task: task.arguments)
    queue.learn(1e-3)
    batch, begun, given_up = queue.take(threads=1), [], []
    assert len(batch) == 3
    while batch:
        begun.append([one.task for one in batch])
        given_up += list(queue.back(batch, died=True))
        batch = queue.take(threads=1)
    # Alone from then on, so that it takes no other with it.
    assert sorted(map(len, begun[1:])) == [1] * 3 * (cluster.ATTEMPTS - 1)
    assert [outcome.task for outcome in given_up] == tasks
    assert all("took down what ran it, 3 times" in outcome.reason for outcome in given_up)


def test_batches_grow_with_what_is_learned_and_shrink_at_the_end() -> None:
    queue = cluster._Queue(print, (Task((number,), 1.0) for number in range(1000)), 1000, lambda task: task.arguments)
    assert len(queue.take(threads=2)) == 1
    for _ in range(100):
        queue.learn(0.1)
    sizes = []
    while batch := queue.take(threads=2):
        sizes.append(len(batch))
    assert sum(sizes) == 999
    assert sizes[0] == pytest.approx(cluster.AIM / 0.1, abs=1)
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-2] == pytest.approx(cluster.LEAST / 0.1, abs=1)


# --- from the command line --------------------------------------------------------------------------


def test_no_batch_runs_beside_heuristics_of_others() -> None:
    """A batch is of one kind, and one of the other kind waits until nothing runs."""
    kinds = [False, False, True, True, False]
    tasks = (Task((number,), 1.0, others=kind) for number, kind in enumerate(kinds))
    queue = cluster._Queue(print, tasks, len(kinds), lambda task: task.arguments)
    queue.learn(1e-4)
    assert [one.task.others for one in queue.take(threads=1)] == [False, False]
    assert queue.take(1, False) == []
    assert [one.task.others for one in queue.take(1, None)] == [True, True]
    assert queue.take(1, True) == []
    assert [one.task.others for one in queue.take(1)] == [False]
    assert queue.take(1) == []


def test_a_study_that_is_interrupted_leaves_nothing_running(client: distributed.Client, tmp_path: Path) -> None:
    (tmp_path / "sleeps.py").write_text("import time\ndef sleeps(instance):\n    time.sleep(60)\n")
    arguments = ["study", "aryl.reclaim", "--sizes", "5", "--count", "3", "--seed", "1", "-o", "study"]
    address = client.scheduler.address
    with optgap(tmp_path, *arguments, "--heuristic", "sleeps.py:sleeps", "--dask", address) as process:
        eventually(lambda: process.poll() is not None or log_of(tmp_path / "study"), patience=90.0)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    lines = [line for line in said.splitlines() if " runs, " not in line]
    assert lines[0].startswith("Dask: 2 workers with 2 threads, dashboard http://")
    assert lines[1:] == ["optgap: interrupted; what ended is in study, and the same command goes on from there"]
    eventually(lambda: not below(client))


# --- what cannot be done ----------------------------------------------------------------------------


def test_a_node_with_other_versions_is_left_out(client: distributed.Client, tmp_path: Path) -> None:
    # A node where Python says that it is another one.
    (tmp_path / "sitecustomize.py").write_text("import platform\nplatform.python_version = lambda: '3.0.0'\n")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', Path.cwd())}"}
    command = [sys.executable, "-m", "distributed.cli.dask_worker", client.scheduler.address]
    warned: list[str] = []
    tasks = [Task((-n,), 60.0) for n in range(6)]
    with _process([*command, "--no-dashboard", "--nthreads", "4"], environment):
        eventually(lambda: len(client.nthreads()) == 3)
        results = [outcome.result for outcome in cluster.run_tasks(client, abs, tasks, warn=warned.append)]
        assert sorted(results) == [*range(6)]
        eventually(lambda: warned or (list(cluster.run_tasks(client, abs, tasks, warn=warned.append)) and warned))
    assert "it has another Python: 3.0.0, not 3.1" in warned[0]
    eventually(lambda: len(client.nthreads()) == 2)


@contextlib.contextmanager
def _process(command: list[str], environment: dict[str, str]) -> Iterator[None]:
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as process:
        yield
        process.terminate()


def test_no_row_has_a_false_key(client: distributed.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "code_of", lambda problems: {**code_of(problems), "numpy": "1.0"})
    with pytest.raises(StudyError, match=r"Dask worker tcp://.* cannot be used: it has another numpy: .*, not 1\.0"):
        gap_study(**SMALL, output=tmp_path / "study", client=client)
    assert log_of(tmp_path / "study") == []


def test_a_problem_that_a_node_does_not_know_is_named(client: distributed.Client) -> None:
    found = cluster._Cluster(client, [], lambda line: None)
    found.outside = ("demo.unknown",)

    def read_all() -> None:
        while True:
            if found.has_room():
                found.submit([])
            if found.has_ended():
                found.ended()

    with pytest.raises(StudyError, match=r"does not know demo\.unknown: name the module that registers it"):
        read_all()


LOCK = threading.Lock()


def holds_a_lock(instance: Reclaim) -> ReclaimPlan:
    with LOCK:
        return first_servers(instance)


def test_what_cannot_be_sent_is_named(client: distributed.Client, tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"holds_a_lock of the module .*test_distributed cannot be sent"):
        gap_study(**SMALL, heuristics=[holds_a_lock], output=tmp_path / "study", client=client)


def test_jobs_are_the_threads_of_the_cluster(client: distributed.Client, tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="jobs: the threads of the Dask workers say"):
        gap_study(**SMALL, jobs=2, output=tmp_path / "study", client=client)
    with pytest.raises(StudyError, match="jobs: the threads of the Dask workers say"):
        find_worst("aryl.reclaim", "random", seed=1, jobs=2, client=client)


def test_an_asynchronous_client_is_refused(client: distributed.Client) -> None:
    async def ask() -> None:
        async with distributed.Client(client.scheduler.address, asynchronous=True) as other:
            cluster.threads_of(other)

    with pytest.raises(StudyError, match="an asynchronous client cannot be used"):
        asyncio.run(ask())


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nonsense://x", ""])
def test_a_scheduler_that_does_not_answer_is_named(address: str) -> None:
    import dask

    with (
        dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
        pytest.raises(StudyError, match=f"--dask: no scheduler answers at '{address}'"),
        cluster.connected(address),
    ):
        pass


def test_what_dask_says_of_a_scheduler_that_is_gone_is_not_shown(client: distributed.Client) -> None:
    names = ("distributed", "distributed.client", "distributed.core", "tornado.application", "asyncio")
    loggers = {name: logging.getLogger(name) for name in names}
    before = {name: logger.level for name, logger in loggers.items()}
    loggers["distributed.client"].setLevel(logging.WARNING)
    try:
        with command_cluster(client.scheduler.address):
            assert not any(logger.isEnabledFor(logging.CRITICAL) for logger in loggers.values())
    finally:
        for name, logger in loggers.items():
            logger.setLevel(before[name])


# --- faults -----------------------------------------------------------------------------------------


def test_kills_lose_and_double_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    # Workers die in a test above; all other harm, and more of this, is done by `make faults`.
    monkeypatch.setattr(faults, "ASKED", {**faults.ASKED, "count": 2, "heuristics": ["random"]})
    tally = FAULTS["cluster.any"].harm(1, 2)
    assert tally.tried == 2
    assert tally.fine, tally.wrong
