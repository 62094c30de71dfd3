"""Tables of the pages on Synergy's problems."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

import formulations
from benchmarks.tables import Row, Setup, benchmark, between, median_seconds, seconds, timed
from formulations.engine.solution import Solution
from formulations.synergy.allocation import relaxation
from formulations.synergy.placement import vertex
from heuristics.synergy import tuning as tuners
from heuristics.synergy.placement import balanced_fit, best_fit, swap_fit
from instances.synergy import allocation, heterogeneous_allocation, placement, tuning
from instances.synergy.placement import SynergyPlacement
from instances.synergy.tuning import Tuning

__all__ = [
    "allocation_times",
    "heterogeneous_times",
    "placement_generated",
    "placement_heuristics",
    "placement_published",
    "placement_starts",
    "tuning_large",
    "tuning_shares",
    "tuning_times",
    "tuning_wide",
]

MIXES = ((20, 70, 10), (33, 33, 33), (50, 0, 50))


@benchmark("synergy.allocation.times", "mix (image, language, speech)", "generated jobs", "published profiles")
def allocation_times(setup: Setup) -> Iterator[Row]:
    """Processor time for 64 servers and 512 jobs of one GPU, whole, seed 1."""
    servers = setup.size(64, 2)
    for mix in setup.few(MIXES):
        cells = [allocation.generate(1, num_servers=servers, mix=mix, multi_gpu=False)]
        if setup.data:
            table = setup.data / "synergy" / "sensitivity_profiles.json"
            cells.append(allocation.from_mix(1, throughputs=table, num_servers=servers, mix=mix, multi_gpu=False))
        times = [seconds(median_seconds(setup.repeats, formulations.solve, one)) for one in cells]
        yield f"{mix}", *times, *[""] * (2 - len(times))


@benchmark("synergy.heterogeneous_allocation.times", "GPUs", "exact model")
def heterogeneous_times(setup: Setup) -> Iterator[Row]:
    """Processor time for 32 servers of each of two types, whole, seeds 0 to 3, least and greatest."""
    servers = setup.size(32, 2)
    drawn = [heterogeneous_allocation.generate(seed, num_servers=servers) for seed in setup.few(range(4))]
    yield 2 * 8 * servers, between(timed(formulations.solve, one)[1] for one in drawn)


@benchmark(
    "synergy.placement.published",
    "mix, jobs",
    "fewest fragmented",
    "time",
    "vertex",
    "with whole GPUs",
    "`best_fit`/`balanced_fit`/`swap_fit`",
)
def placement_published(setup: Setup) -> Iterator[Row]:
    """16 servers and jobs of published models with the resources of the first stage's optimum, seeds 0 and 1."""
    if setup.data is None:
        return
    table = setup.data / "synergy" / "sensitivity_profiles.json"
    for mix in setup.few(MIXES):
        for multi_gpu in (False, True):
            cells: list[list[str]] = [[], [], [], [], [], []]
            for seed in setup.few((0, 1)):
                first = allocation.from_mix(
                    seed, throughputs=table, num_servers=setup.size(16, 2), mix=mix, multi_gpu=multi_gpu
                )
                stage_one = formulations.solve(first).plan
                assert stage_one is not None
                second = first.placement(stage_one)  # type: ignore[arg-type]
                best, took = timed(formulations.solve, second, time_limit=setup.seconds(60))
                basic = vertex(second)
                assert basic is not None
                whole = first.placement(stage_one, integral_gpus=True)  # type: ignore[arg-type]
                cells[0].append(str(second.num_jobs))
                cells[1].append(_fewest(best))
                cells[2].append(seconds(took))
                cells[3].append(f"{second.objective(basic):.0f}")
                cells[4].append(_fewest(formulations.solve(whole, time_limit=setup.seconds(60))))
                plans = (heuristic(second) for heuristic in (best_fit, balanced_fit, swap_fit))
                cells[5].append("/".join("–" if plan is None else f"{second.objective(plan):.0f}" for plan in plans))
            yield f"{mix}, {' and '.join(cells[0])}", *(", ".join(cell) for cell in cells[1:])


def _fewest(solution: Solution) -> str:
    if solution.status == "feasible":
        return f"{solution.bound:.0f} to {solution.objective:.0f}"
    return f"{solution.objective:.0f}" if solution.status == "optimal" else solution.status


@benchmark("synergy.placement.generated", "jobs", "`fill`", "seed", "fewest fragmented", "time", "`swap_fit`")
def placement_generated(setup: Setup) -> Iterator[Row]:
    """Proofs on 16 servers with demands that all differ, from `swap_fit`, within 60 s."""
    for multi_gpu, fill, count in ((False, 0.9, 4), (False, 1.0, 20), (True, 0.9, 4), (True, 1.0, 20)):
        for seed in setup.few(range(count)):
            one = placement.generate(seed, num_servers=setup.size(16, 2), fill=fill, multi_gpu=multi_gpu)
            start = swap_fit(one)
            assert start is not None
            best, took = timed(formulations.solve, one, start=start, time_limit=setup.seconds(60))
            yield one.num_jobs, fill, seed, _fewest(best), seconds(took), f"{one.objective(start):.0f}"


@benchmark("synergy.placement.starts", "seed", "from nothing", "from `balanced_fit`", "from `swap_fit`")
def placement_starts(setup: Setup) -> Iterator[Row]:
    """What a start does for the proof on 128 jobs with `fill=1`, within 60 s, seeds 1 to 3."""
    for seed in setup.few((1, 2, 3)):
        one = _full(setup, seed)
        found = [
            timed(formulations.solve, one, start=start, time_limit=setup.seconds(60))
            for start in (None, balanced_fit(one), swap_fit(one))
        ]
        yield seed, *(f"{_fewest(solution)}, {seconds(took)}" for solution, took in found)


@benchmark("synergy.placement.heuristics", "seed", "`best_fit`", "`balanced_fit`", "`swap_fit`", "time of `swap_fit`")
def placement_heuristics(setup: Setup) -> Iterator[Row]:
    """Fragmented jobs of the heuristics on 128 jobs with `fill=1`."""
    for seed in setup.few(range(6)):
        one = _full(setup, seed)
        values = []
        for heuristic in (best_fit, balanced_fit, swap_fit):
            plan = heuristic(one)
            values.append("–" if plan is None else f"{one.objective(plan):.0f}")
        yield seed, *values, seconds(median_seconds(1, swap_fit, one))


def _full(setup: Setup, seed: int) -> SynergyPlacement:
    return placement.generate(seed, num_servers=setup.size(16, 2), fill=1.0, multi_gpu=False)


@benchmark(
    "synergy.tuning.shares",
    "jobs",
    "mix",
    "GPUs per job",
    "proven",
    "longest",
    "`tune`",
    "`tune_and_upgrade`",
    "`balanced_tune`",
    "`proportional`",
    "stage one",
    "Theorem 4.1",
    "`greedy`: jobs skipped, value",
)
def tuning_shares(setup: Setup) -> Iterator[Row]:
    """Heuristics and bounds relative to the optimum at 4 servers, mean of ten seeds."""
    for jobs, mix, multi_gpu in _kinds(setup):
        drawn = [_tuning(setup, jobs, seed, setup.size(4, 2), mix, multi_gpu) for seed in setup.few(range(10))]
        solved = [timed(formulations.solve, one, time_limit=setup.seconds(60)) for one in drawn]
        best = [float(solution.objective or 0.0) for solution, _ in solved]
        cells = [
            statistics.mean(one.objective(heuristic(one)) / most for one, most in zip(drawn, best, strict=True))
            for heuristic in (tuners.tune, tuners.tune_and_upgrade, tuners.balanced_tune, tuners.proportional)
        ]
        stages = [one.stage_one() for one in drawn]
        cells.append(_mean_ratio([formulations.solve(stage).bound for stage in stages], best))
        cells.append(_mean_ratio([formulations.solve(relaxation(stage)).bound for stage in stages], best))
        greedy = [(one, tuners.greedy(one)) for one in drawn]
        skipped = statistics.mean(float(one.skipped(plan).mean()) for one, plan in greedy)
        value = _mean_ratio([one.objective(plan) for one, plan in greedy], best)
        yield (
            jobs,
            f"{mix}",
            "1 to 8" if multi_gpu else "1",
            f"{sum(solution.status == 'optimal' for solution, _ in solved)} of {len(solved)}",
            seconds(max(took for _, took in solved)),
            *(f"{cell:.1%}" for cell in cells),
            f"{skipped:.0%}, {value:.1%}",
        )


def _mean_ratio(values: list[float], best: list[float]) -> float:
    return statistics.mean(value / most for value, most in zip(values, best, strict=True))


def _kinds(setup: Setup) -> Iterator[tuple[str, tuple[int, int, int], bool]]:
    for jobs in ("generated", "published") if setup.data else ("generated",):
        for mix in setup.few(MIXES):
            yield from ((jobs, mix, multi_gpu) for multi_gpu in (False, True))


def _tuning(setup: Setup, jobs: str, seed: int, servers: int, mix: tuple[int, int, int], multi_gpu: bool) -> Tuning:
    if jobs == "generated":
        return tuning.generate(seed, num_servers=servers, mix=mix, multi_gpu=multi_gpu)
    assert setup.data is not None
    table = setup.data / "synergy" / "sensitivity_profiles.json"
    return tuning.from_mix(seed, throughputs=table, num_servers=servers, mix=mix, multi_gpu=multi_gpu)


@benchmark("synergy.tuning.large", "servers", "proven", "longest")
def tuning_large(setup: Setup) -> Iterator[Row]:
    """Proofs with published profiles on 8 and 16 servers: three mixes, both widths of jobs, seeds 0 and 1."""
    if setup.data is None:
        return
    for servers in setup.size((8, 16), (2,)):
        found = [
            timed(
                formulations.solve,
                _tuning(setup, "published", seed, servers, mix, multi_gpu),
                time_limit=setup.seconds(60),
            )
            for mix in setup.few(MIXES)
            for multi_gpu in (False, True)
            for seed in setup.few((0, 1))
        ]
        proven = sum(solution.status == "optimal" for solution, _ in found)
        yield servers, f"{proven} of {len(found)}", seconds(max(took for _, took in found))


@benchmark("synergy.tuning.wide", "seed", "jobs", "`balanced_tune`", "best plan", "bound", "gap", "time")
def tuning_wide(setup: Setup) -> Iterator[Row]:
    """32 servers full of jobs of one GPU, within 60 s, from `balanced_tune`."""
    for seed in setup.few(range(3)):
        one = tuning.generate(seed, num_servers=setup.size(32, 2), multi_gpu=False)
        start = tuners.balanced_tune(one)
        solution, took = timed(formulations.solve, one, start=start, time_limit=setup.seconds(60))
        values = (f"{one.objective(start):.2f}", f"{solution.objective:.2f}", f"{solution.bound:.2f}")
        yield seed, one.num_jobs, *values, f"{solution.gap:.2%}", seconds(took)


@benchmark("synergy.tuning.times", "GPUs, jobs", "`tune`")
def tuning_times(setup: Setup) -> Iterator[Row]:
    """Processor time of `tune`: single-GPU jobs of three mixes, seeds 0 to 4, least and greatest; large clusters."""
    for servers in setup.size((64, 512), (2,)):
        drawn = [
            tuning.generate(seed, num_servers=servers, mix=mix, multi_gpu=False)
            for mix in setup.few(MIXES)
            for seed in setup.few(range(5))
        ]
        yield f"{8 * servers:,}, {drawn[0].num_jobs:,}", between(median_seconds(1, tuners.tune, one) for one in drawn)
    large: tuple[dict[str, Any], ...] = (
        {"num_servers": 3300},
        {"num_servers": 1024, "server_gpus": 64, "server_cpus": 192.0, "server_memory": 4000.0},
    )
    for options in large[: setup.size(2, 0)]:
        one = tuning.generate(0, **options)
        yield f"{one.num_gpus:,}, {one.num_jobs:,}", seconds(median_seconds(1, tuners.tune, one))
