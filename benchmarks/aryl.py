"""Tables of the pages on Aryl's problems."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

import formulations
from benchmarks.tables import Row, Setup, benchmark, between, gap, median_seconds, seconds, timed
from formulations.aryl.branching import relaxation
from formulations.engine.highs import Session
from heuristics.aryl.base_allocation import shortest_job_first
from heuristics.aryl.elastic_allocation import dynamic_program, marginal_greedy
from heuristics.aryl.placement import best_fit_decreasing
from heuristics.aryl.reclaim import local_search, server_fraction
from heuristics.aryl.two_job import closed_form
from instances.aryl import base_allocation, elastic_allocation, placement, reclaim, two_job

__all__ = [
    "base_allocation_proofs",
    "elastic_allocation_gaps",
    "elastic_allocation_large",
    "elastic_allocation_times",
    "placement_heuristic",
    "placement_proofs",
    "reclaim_heuristics",
    "reclaim_large",
    "reclaim_narrow",
    "reclaim_proofs",
    "two_job_misses",
    "two_job_times",
]


@benchmark("aryl.base_allocation.proofs", "jobs", "exact model", "`shortest_job_first`: mean gap, worst")
def base_allocation_proofs(setup: Setup) -> Iterator[Row]:
    """Processor time of the exact model, whole, and the gap of the heuristic, over five instances."""
    for jobs in setup.few((4, 5, 6)):
        times, gaps = [], []
        for seed in setup.few(range(5)):
            one = base_allocation.generate(seed, num_jobs=jobs)
            best, took = timed(formulations.solve, one)
            plan = shortest_job_first(one)
            assert plan is not None
            assert best.objective is not None
            times.append(took)
            gaps.append(gap(one.objective(plan), best.objective))
        yield jobs, between(times), f"{statistics.mean(gaps):.1%}, {max(gaps):.1%}"


@benchmark("aryl.elastic_allocation.times", "jobs", "binaries", "exact model", "`dynamic_program`", "`marginal_greedy`")
def elastic_allocation_times(setup: Setup) -> Iterator[Row]:
    """Processor time of the exact model, whole, and of the heuristics; median over five instances."""
    for jobs in setup.few((10, 160, 1000)):
        drawn = [elastic_allocation.generate(seed, num_jobs=jobs) for seed in setup.few(range(5))]
        times = [
            statistics.median(median_seconds(setup.repeats, solve, one) for one in drawn)
            for solve in (formulations.solve, dynamic_program, marginal_greedy)
        ]
        binaries = statistics.mean(len(formulations.build(one).chosen) for one in drawn)
        yield f"{jobs:,}", f"{binaries:,.0f}", *map(seconds, times)


@benchmark("aryl.elastic_allocation.large", "jobs", "choices", "scaling", "exact", "jobs in the core", "proof")
def elastic_allocation_large(setup: Setup) -> Iterator[Row]:
    """Processor time of the exact side where jobs are many, and of how many a model is made; three instances."""
    for jobs in setup.size((10_000, 100_000), (100,)):
        for linear in (True, False):
            times, open_jobs, proofs, choices = [], [], set(), 0
            for seed in setup.few(range(3)):
                one = elastic_allocation.generate(seed, num_jobs=jobs, max_extra=20, linear=linear)
                solution, took = timed(formulations.solve, one)
                assert solution.status == "optimal"
                times.append(took)
                proofs.add(solution.proof)
                core = solution.message.partition(" of ")[0].replace(",", "")
                open_jobs.append(float(core) if core.isdigit() else 0.0)
                choices += int(one.max_extra.sum()) // len(setup.few(range(3)))
            scaling = "linear" if linear else "tables"
            among = between(open_jobs, lambda value: f"{value:.0f}")
            yield f"{jobs:,}", f"{choices:,}", scaling, between(times), among, ", ".join(sorted(proofs))


@benchmark("aryl.elastic_allocation.gaps", "jobs", "`tightness`", "linear: mean, worst", "tables: mean, worst")
def elastic_allocation_gaps(setup: Setup) -> Iterator[Row]:
    """Gap of `marginal_greedy` over 100 generated instances each."""
    for jobs, tightness in setup.few(((10, 0.5), (10, 0.8), (40, 0.8), (160, 0.8))):
        cells = []
        for linear in (True, False):
            gaps = []
            for seed in setup.few(range(100)):
                one = elastic_allocation.generate(seed, num_jobs=jobs, tightness=tightness, linear=linear)
                gaps.append(gap(one.objective(marginal_greedy(one)), one.objective(dynamic_program(one))))
            cells.append(f"{statistics.mean(gaps):.3%}, {max(gaps):.2%}")
        yield jobs, tightness, *cells


@benchmark(
    "aryl.placement.proofs",
    "`generate(seed, total_workers=40, ...)`",
    "mean",
    "longest",
    "infeasible",
    "`best_fit_decreasing` opens more servers than needed",
)
def placement_proofs(setup: Setup) -> Iterator[Row]:
    """Processor time to the proof over twelve seeds, and where the heuristic opens too many servers."""
    settings: tuple[tuple[str, dict[str, Any]], ...] = (
        ("defaults (`awkward=0.5, load=0.8`)", {}),
        ("`awkward=1`", {"awkward": 1.0}),
        ("`awkward=0`", {"awkward": 0.0}),
        ("`load=0.9`", {"load": 0.9}),
        ("`awkward=1, load=0.95`", {"awkward": 1.0, "load": 0.95}),
    )
    for what, options in setup.few(settings):
        times, infeasible, more, both = [], 0, 0, 0
        for seed in setup.few(range(12)):
            one = placement.generate(seed, total_workers=setup.size(40, 10), **options)
            best, took = timed(formulations.solve, one)
            times.append(took)
            infeasible += best.status == "infeasible"
            fast = best_fit_decreasing(one)
            if best.status == "optimal" and not one.violations(fast):
                both += 1
                more += one.servers_opened(fast) > one.servers_opened(best.plan)  # type: ignore[arg-type]
        yield (
            what,
            seconds(statistics.mean(times)),
            seconds(max(times)),
            f"{infeasible} of {len(times)}",
            f"{more} of {both}",
        )


@benchmark("aryl.placement.heuristic", "workers", "jobs", "servers", "`best_fit_decreasing`")
def placement_heuristic(setup: Setup) -> Iterator[Row]:
    """Processor time of the heuristic on 10,000 workers."""
    one = placement.generate(0, total_workers=setup.size(10_000, 100))
    took = median_seconds(setup.repeats, best_fit_decreasing, one)
    yield f"{int(one.num_workers.sum()):,}", f"{one.num_jobs:,}", f"{one.num_servers:,}", seconds(took)


@benchmark("aryl.reclaim.proofs", "servers, demand", "`spread`", "`locality`", "seed 0", "seed 1", "seed 2")
def reclaim_proofs(setup: Setup) -> Iterator[Row]:
    """Jobs preempted by `server_fraction` / `local_search` / the best plan within 60 s, and the proof or the bound."""
    settings = ((0.5, 0.9), (0.8, 0.9), (1.0, 0.9), (0.8, 1.0), (1.0, 1.0), (0.5, 0.0), (0.8, 0.0), (1.0, 0.0))
    for servers, demand in setup.size(((100, 30), (500, 50)), ((10, 3),)):
        for spread, locality in setup.few(settings):
            drawn = [
                reclaim.generate(seed, num_servers=servers, demand=demand, spread=spread, locality=locality)
                for seed in range(3)
            ]
            limit = setup.seconds(60)
            yield f"{servers}, {demand}", spread, locality, *(_reclaimed(one, limit) for one in drawn)


def _reclaimed(one: reclaim.Reclaim, limit: float) -> str:
    start = local_search(one)
    solution, took = timed(formulations.solve, one, start=start, time_limit=limit)
    assert solution.plan is not None
    values = [one.objective(plan) for plan in (server_fraction(one), start, solution.plan)]  # type: ignore[arg-type]
    proof = seconds(took) if solution.status == "optimal" else f"bound {solution.bound:.0f}"
    return "/".join(f"{value:.0f}" for value in values) + f", {proof}"


@benchmark("aryl.reclaim.large", "seed", "`server_fraction`/`local_search`/best plan", "relaxation", "bound", "time")
def reclaim_large(setup: Setup) -> Iterator[Row]:
    """Processor time to a gap of 5% with 500 servers of which 150 are demanded, as the generator draws them."""
    for seed in setup.few(range(3)):
        servers = setup.size(500, 10)
        one = reclaim.generate(seed, num_servers=servers, demand=3 * servers // 10)
        start = local_search(one)
        solution, took = timed(formulations.solve, one, start=start, mip_gap=0.05)
        assert solution.plan is not None
        values = [one.objective(plan) for plan in (server_fraction(one), start, solution.plan)]  # type: ignore[arg-type]
        relaxed = Session().run(relaxation(one)).bound
        plans = "/".join(f"{value:.0f}" for value in values)
        yield seed, plans, f"{relaxed:.1f}", f"{solution.bound:.0f}", seconds(took)


@benchmark("aryl.reclaim.narrow", "servers, demand", "longest proof")
def reclaim_narrow(setup: Setup) -> Iterator[Row]:
    """Processor time of the proofs with `spread=0`, where no job is wide."""
    for servers, demand in setup.size(((100, 30), (500, 50)), ((10, 3),)):
        drawn = [reclaim.generate(seed, num_servers=servers, demand=demand, spread=0.0) for seed in range(3)]
        yield f"{servers}, {demand}", seconds(max(timed(formulations.solve, one)[1] for one in drawn))


@benchmark("aryl.reclaim.heuristics", "servers, demand", "jobs", "`server_fraction`", "`local_search`")
def reclaim_heuristics(setup: Setup) -> Iterator[Row]:
    """Processor time of the heuristics on 2,000 servers."""
    servers = setup.size(2000, 20)
    for demand in (servers // 10, 3 * servers // 10):
        one = reclaim.generate(0, num_servers=servers, demand=demand)
        times = [median_seconds(setup.repeats, call, one) for call in (server_fraction, local_search)]
        yield f"{servers:,}, {demand}", f"{one.num_jobs:,}", *map(seconds, times)


@benchmark("aryl.two_job.misses", "`binding`", "8 GPUs", "64 GPUs")
def two_job_misses(setup: Setup) -> Iterator[Row]:
    """How often `closed_form` misses the optimum on 1,000 generated instances each, and by how much at worst."""
    for binding in setup.few((0.0, 0.25, 0.5, 0.75, 1.0)):
        yield binding, *(_missed(num_gpus, binding, setup.size(1000, 5)) for num_gpus in (8, 64))


def _missed(num_gpus: int, binding: float, count: int) -> str:
    gaps = []
    for seed in range(count):
        one = two_job.generate(seed, num_gpus=num_gpus, binding=binding)
        best = min(one.objective(one.split(gpus)) for gpus in one.splits)
        plan = closed_form(one)
        assert plan is not None
        gaps.append(gap(one.objective(plan), best))
    missed = [value for value in gaps if value > 1e-9]
    return f"{len(missed)}, worst {max(missed):.1%}" if missed else "0"


@benchmark("aryl.two_job.times", "GPUs", "exact model")
def two_job_times(setup: Setup) -> Iterator[Row]:
    """Processor time of the exact model, whole."""
    num_gpus = setup.size(10_000, 16)
    drawn = [two_job.generate(seed, num_gpus=num_gpus) for seed in setup.few(range(3))]
    yield f"{num_gpus:,}", between(median_seconds(setup.repeats, formulations.solve, one) for one in drawn)
