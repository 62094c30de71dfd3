"""Tables of the pages on AFS's problems."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import formulations
from benchmarks.tables import Row, Setup, benchmark, between, seconds, timed
from heuristics.afs import elastic_sharing as schedulers
from heuristics.afs.network_packing import floor_and_grow, floor_and_grow_nearest
from instances.afs import elastic_sharing, gpu_placement, network_packing
from instances.afs.curves import RepairWarning
from instances.afs.elastic_sharing import ElasticSharing, Schedule
from validation.replay import decider, replay
from validation.replay.settings import afs
from validation.replay.workloads import read_jobs

__all__ = [
    "elastic_sharing_proofs",
    "elastic_sharing_schedulers",
    "elastic_sharing_traces",
    "gpu_placement_times",
    "network_packing_distance",
    "network_packing_times",
    "replays",
]

REAL_MODELS = ("bert", "gpt2", "resnet50", "vgg16", "deepspeech2")
SCHEDULERS: tuple[Callable[[ElasticSharing], Schedule | None], ...] = (
    schedulers.afs_l,
    schedulers.afs_p,
    schedulers.afs_s,
    schedulers.max_min,
    schedulers.optimus,
    schedulers.srtf,
    schedulers.srsf,
    schedulers.srtf_elastic,
    schedulers.srsf_elastic,
    schedulers.tiresias_l,
)
TRACED = (*SCHEDULERS, schedulers.afs_p_measuring, schedulers.srtf_maximum, schedulers.srsf_maximum)


@benchmark("afs.elastic_sharing.proofs", "`reallocation`", "jobs", "GPUs", "`loss=0.5`", "`loss=1`", "real curves")
def elastic_sharing_proofs(setup: Setup) -> Iterator[Row]:
    """Processor time to proven optimality over five instances, least and greatest."""
    settings = (
        ("at_completions", 4, 8, True),
        ("at_completions", 5, 8, True),
        ("at_completions", 6, 8, True),
        ("at_completions", 8, 64, False),
        ("at_completions", 10, 64, False),
        ("any_time", 6, 64, True),
        ("any_time", 8, 64, True),
        ("any_time", 10, 64, False),
    )
    for reallocation, jobs, gpus, harder in setup.size(
        settings, (("at_completions", 2, 4, True), ("any_time", 2, 4, True))
    ):
        columns = [
            [
                elastic_sharing.generate(seed, num_jobs=jobs, num_gpus=gpus, loss=loss, reallocation=reallocation)
                for seed in setup.few(range(5))
            ]
            for loss in (0.5, 1.0)
            if harder or loss < 1
        ]
        if harder and setup.data:
            columns.append([_real(setup, seed, jobs, gpus, reallocation) for seed in setup.few(range(5))])
        cells = [_proofs(drawn, setup.seconds(60)) for drawn in columns]
        yield f'`"{reallocation}"`', jobs, gpus, *cells, *[""] * (3 - len(cells))


def _real(setup: Setup, seed: int, jobs: int, gpus: int, reallocation: str) -> ElasticSharing:
    assert setup.data is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepairWarning)
        return elastic_sharing.from_trace(
            seed,
            throughputs=setup.data / "elasticflow" / "throughputs_A100",
            trace=setup.data / "elasticflow" / "microsoft" / "raw" / "cluster02.csv",
            num_jobs=jobs,
            num_gpus=gpus,
            models=REAL_MODELS,
            repair=True,
            reallocation=reallocation,
        )


def _proofs(drawn: list[ElasticSharing], limit: float) -> str:
    found = [timed(formulations.solve, one, time_limit=limit) for one in drawn]
    proven = [took for solution, took in found if solution.status == "optimal"]
    if not proven:
        return "none proven"
    return between(proven) + ("" if len(proven) == len(drawn) else f", {len(drawn) - len(proven)} open")


@benchmark("afs.elastic_sharing.schedulers", "scheduler", "all there at once", "30 s apart")
def elastic_sharing_schedulers(setup: Setup) -> Iterator[Row]:
    """Processor time of 1,000 jobs on 512 GPUs to completion."""
    jobs, gpus = setup.size((1000, 512), (10, 8))
    drawn = [
        elastic_sharing.generate(1, num_jobs=jobs, num_gpus=gpus, arrival_gap=arrival_gap) for arrival_gap in (0, 30)
    ]
    for scheduler in SCHEDULERS:
        yield f"`{scheduler.__name__}`", *(seconds(timed(scheduler, one)[1]) for one in drawn)


@benchmark("afs.elastic_sharing.traces", "scheduler", "500 s apart", "1,000 s apart", "2,000 s apart")
def elastic_sharing_traces(setup: Setup) -> Iterator[Row]:
    """Average JCT of 300 jobs that ask for GPUs, on 16, over seeds 0 to 4, h."""
    drawn = [
        [
            elastic_sharing.generate(
                seed,
                num_jobs=setup.size(300, 10),
                num_gpus=16,
                arrival_gap=arrival_gap,
                requests=True,
                reallocation="any_time",
            )
            for seed in setup.few(range(5))
        ]
        for arrival_gap in (500, 1000, 2000)
    ]
    for scheduler in TRACED:
        yield f"`{scheduler.__name__}`", *(f"{_average_jct(scheduler, traces) / 3600:.2f}" for traces in drawn)


def _average_jct(scheduler: Callable[[ElasticSharing], Schedule | None], traces: list[ElasticSharing]) -> float:
    plans = [(trace, scheduler(trace)) for trace in traces]
    return sum(trace.objective(plan) for trace, plan in plans if plan is not None) / len(plans)


@benchmark("afs.gpu_placement.times", "jobs", "exact model")
def gpu_placement_times(setup: Setup) -> Iterator[Row]:
    """Processor time to proven optimality, whole; least and greatest of seeds 0 to 2."""
    for jobs in setup.size((64, 128, 256), (8,)):
        drawn = [gpu_placement.generate(seed, num_jobs=jobs) for seed in range(3)]
        found = [timed(formulations.solve, one, time_limit=setup.seconds(120)) for one in drawn]
        proven = sum(solution.status == "optimal" for solution, _ in found)
        yield jobs, between(took for _, took in found) + ("" if proven == 3 else f", {3 - proven} open")


@benchmark("afs.network_packing.times", "`floor_guarantee`", "exact model")
def network_packing_times(setup: Setup) -> Iterator[Row]:
    """Processor time of 200 jobs on 100 machines, whole; least and greatest of seeds 0 to 4."""
    for guarantee in (True, False):
        drawn = [
            network_packing.generate(seed, num_jobs=setup.size(200, 10), floor_guarantee=guarantee)
            for seed in setup.few(range(5))
        ]
        yield guarantee, between(timed(formulations.solve, one)[1] for one in drawn)


@benchmark(
    "afs.network_packing.distance",
    "seed",
    "optimal distance",
    "`floor_and_grow`",
    '`pick="smallest"`',
    "`floor_and_grow_nearest`",
)
def network_packing_distance(setup: Setup) -> Iterator[Row]:
    """How far the heuristics are from the nearest regulated shares of 200 jobs, and how many times as far."""
    for seed in setup.few(range(5)):
        one = network_packing.generate(seed, num_jobs=setup.size(200, 10))
        best = formulations.solve(one).objective
        assert best is not None
        plans = (floor_and_grow(one), floor_and_grow(one, pick="smallest"), floor_and_grow_nearest(one))
        found = [one.objective(plan) for plan in plans if plan is not None]
        yield seed, f"{best:.0f}", *(f"{fast:.0f}" + (f" ({fast / best:.2f})" if best else "") for fast in found)


MODERATE = {"srtf": 31.1, "srsf": 32.8, "max_min": 18.3, "afs_l": 15.2}
"""Average completion times of Figure 2a's trace, h (section 2.2)."""


@benchmark("replays.afs", "scheduler", "paper, h", "times", "cluster10, h", "times", "cluster02, h", "times")
def replays(setup: Setup) -> Iterator[Row]:
    """Replays of elastic jobs on 64 GPUs: a whole trace, and the first 1,000 jobs of another; times as fast as SRTF."""
    if setup.data is None:
        return
    folder = setup.data / "elasticflow"
    first: list[float] = []
    for name, paper in MODERATE.items():
        found = [paper]
        for trace, count in (("cluster10.csv", 259), ("cluster02.csv", 1000)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RepairWarning)
                setting = afs.from_jobs(
                    read_jobs(folder / "microsoft" / "raw" / trace).head(setup.size(count, 20)),
                    throughputs=folder / "throughputs_A100",
                    models=REAL_MODELS,
                )
            done = replay(setting, decider("afs.elastic_sharing", name))
            found.append(done.metrics()["average_jct"] / 3600)
        first = first or found
        yield (
            f"`{name}`",
            *(cell for one, srtf in zip(found, first, strict=True) for cell in (f"{one:.2f}", f"{srtf / one:.2f}")),
        )
