"""Placing jobs with the fewest fragmented: against brute force, against SCIP, and Theorem A.2."""

import itertools
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

import formulations
from formulations.engine import clock
from formulations.engine.highs import Result
from formulations.synergy.placement import WALKS, larger_than_a_server, second_stage, vertex
from formulations.synergy.walking import improved
from heuristics.synergy.placement import swap_fit
from instances.synergy.allocation import from_mix
from instances.synergy.placement import SynergyPlacement, SynergyPlacementPlan, from_trace, generate, shared_middle

from ..effort import rounds


def tiny(rng: np.random.Generator, *, servers: int = 2, integral: bool = False) -> dict[str, Any]:
    """Fields of a small instance: jobs larger than a server, full servers, equal jobs and zeros are common."""
    n = int(rng.integers(1, 5))
    capacity = [int(rng.integers(1, 5)), int(rng.integers(0, 7)), int(rng.integers(0, 7))]
    demands = np.column_stack([rng.integers(0, 4, n), rng.integers(0, 6, n), rng.integers(0, 6, n)])
    if n > 1 and rng.random() < 0.4:
        demands[1] = demands[0]
    # Most instances are scaled to fit the cluster as a whole.
    for resource in range(3):
        while rng.random() < 0.95 and demands[:, resource].sum() > servers * capacity[resource]:
            demands[demands[:, resource].argmax(), resource] -= 1
    return {
        "num_servers": servers,
        "server_gpus": capacity[0],
        "server_cpus": float(capacity[1]),
        "server_memory": float(capacity[2]),
        "demands": demands.tolist(),
        "integral_gpus": integral,
    }


# --- brute force --------------------------------------------------------------------------------

Row = tuple[list[int], int]
"""``sum(coefficients * x) <= limit``."""


def has_a_point(rows: list[Row], variables: int) -> bool:
    """Whether inequalities have a common point, by eliminating variable after variable (Fourier and Motzkin)."""
    for variable in range(variables):
        upper = [row for row in rows if row[0][variable] > 0]
        lower = [row for row in rows if row[0][variable] < 0]
        rows = [row for row in rows if row[0][variable] == 0]
        for (a, b), (c, d) in itertools.product(upper, lower):
            p, q = -c[variable], a[variable]
            rows.append(([p * x + q * y for x, y in zip(a, c, strict=True)], p * b + q * d))
        rows = list({(tuple(coefficients), limit): (coefficients, limit) for coefficients, limit in rows}.values())
    return all(limit >= 0 for _, limit in rows)


def two_servers_hold(cut: list[list[int]], free: list[list[int]]) -> bool:
    """Whether jobs can be shared between two servers; x_j is the share of job j on the first one."""
    rows: list[Row] = []
    for j in range(len(cut)):
        unit = [int(i == j) for i in range(len(cut))]
        rows += [(unit, 1), ([-u for u in unit], 0)]
    for resource in range(3):
        amounts = [demand[resource] for demand in cut]
        rows.append((amounts, free[0][resource]))
        rows.append(([-a for a in amounts], free[1][resource] - sum(amounts)))
    return has_a_point(rows, len(cut))


def brute_fewest(fields: dict[str, Any]) -> int | None:
    """Fewest fragmented jobs on two servers, over every set of them and every place of the others."""
    capacity = [fields["server_gpus"], int(fields["server_cpus"]), int(fields["server_memory"])]
    demands = fields["demands"]
    if any(sum(demand[r] for demand in demands) > 2 * capacity[r] for r in range(3)):
        return None
    for count in range(len(demands) + 1):
        for homes in itertools.product((0, 1, None), repeat=len(demands)):
            if homes.count(None) != count:
                continue
            free = [list(capacity), list(capacity)]
            for demand, home in zip(demands, homes, strict=True):
                if home is not None:
                    free[home] = [left - amount for left, amount in zip(free[home], demand, strict=True)]
            cut = [demand for demand, home in zip(demands, homes, strict=True) if home is None]
            if min(map(min, free)) >= 0 and two_servers_hold(cut, free):
                return count
    return None


def brute_fewest_whole_gpus(fields: dict[str, Any]) -> int | None:
    """The same with whole GPUs, over every way to put every job's GPUs on the servers."""
    capacity = [fields["server_gpus"], fields["server_cpus"], fields["server_memory"]]
    servers = fields["num_servers"]
    ways = []
    for gpus, _, _ in fields["demands"]:
        splits = [way for way in itertools.product(range(gpus + 1), repeat=servers) if sum(way) == gpus]
        ways.append([[Fraction(k, gpus) for k in way] for way in splits])
    best = None
    for shares in itertools.product(*ways):
        used = [
            [sum(row[i] * demand[r] for row, demand in zip(shares, fields["demands"], strict=True)) for r in range(3)]
            for i in range(servers)
        ]
        if all(amount <= limit for row in used for amount, limit in zip(row, capacity, strict=True)):
            count = sum(sum(share > 0 for share in row) > 1 for row in shares)
            best = count if best is None else min(best, count)
    return best


def test_optimum_agrees_with_brute_force() -> None:
    rng = np.random.default_rng(1)
    seen: dict[int | None, int] = {}
    for _ in rounds(100):
        fields = tiny(rng)
        instance = SynergyPlacement(**fields)
        solution = formulations.solve(instance)
        fewest = brute_fewest(fields)
        seen[fewest] = seen.get(fewest, 0) + 1
        assert (solution.status == "infeasible") == (fewest is None)
        if fewest is not None:
            assert larger_than_a_server(instance) <= fewest
            assert solution.status == "optimal"
            assert (solution.objective, solution.bound) == (fewest, fewest)
            assert instance.violations(solution.plan) == []
    assert seen[None] > 20
    assert seen[0] > 15
    assert seen[1] > 10
    assert seen[2] + seen.get(3, 0) > 5


@pytest.mark.parametrize("servers", [1, 2, 3])
def test_whole_gpus_agree_with_brute_force(servers: int) -> None:
    rng = np.random.default_rng(servers)
    statuses = set()
    for _ in rounds(20):
        fields = tiny(rng, servers=servers, integral=True)
        fields["demands"] = [[max(1, gpus), cpus, memory] for gpus, cpus, memory in fields["demands"]]
        instance = SynergyPlacement(**fields)
        solution = formulations.solve(instance)
        fewest = brute_fewest_whole_gpus(fields)
        statuses.add(solution.status)
        assert (solution.status == "infeasible") == (fewest is None)
        if fewest is not None:
            assert solution.objective == fewest
            assert instance.violations(solution.plan) == []
    assert statuses == {"optimal", "infeasible"}


@pytest.mark.parametrize("integral", [False, True])
def test_scip_agrees(integral: bool) -> None:
    rng = np.random.default_rng(5)
    for _ in range(12):
        instance = SynergyPlacement(**tiny(rng, servers=3, integral=integral))
        ours, theirs = formulations.solve(instance), formulations.solve(instance, solver="scip")
        assert ours.status == theirs.status
        assert ours.objective == theirs.objective


def test_ordering_the_servers_changes_no_optimum() -> None:
    rng = np.random.default_rng(6)
    for _ in rounds(20):
        instance = SynergyPlacement(**tiny(rng, servers=3))
        model = formulations.build(instance)
        model.order.deactivate()
        free, ordered = formulations.solve(model), formulations.solve(instance)
        assert free.status == ordered.status
        assert free.objective == (None if ordered.objective is None else pytest.approx(ordered.objective, abs=1e-6))


@pytest.mark.parametrize("integral", [False, True])
def test_writing_a_plan_and_reading_it_back(integral: bool) -> None:
    rng = np.random.default_rng(7)
    seen = full = 0
    for _ in range(40):
        instance = SynergyPlacement(**tiny(rng, servers=3, integral=integral))
        solution = formulations.solve(instance)
        if solution.plan is None:
            continue
        mirrored = SynergyPlacementPlan(shares=solution.plan.shares[:, ::-1])
        model = formulations.build(instance)
        formulations.formulation(instance.problem).write(model, mirrored)
        assert all(row.slack() >= 0 for row in model.order.values())
        assert all(row.body() == pytest.approx(0, abs=1e-6) for row in model.full.values())
        full += len(model.full) > 0
        again = formulations.read(model)
        assert instance.violations(again) == []
        assert instance.objective(again) == solution.objective
        seen += 1
    assert seen > 10
    assert (full > 5) == (not integral)


def with_full_gpus(rng: np.random.Generator, *, servers: int) -> SynergyPlacement:
    """A small instance whose jobs use all GPUs, with cores and memory to spare; some exceed a server."""
    gpus = int(rng.integers(1, 4))
    split = np.diff(
        [0, *np.sort(rng.choice(np.arange(1, servers * gpus), int(rng.integers(0, servers * gpus)), False))]
    )
    demands = np.append(split, servers * gpus - split.sum()).astype(float)
    cores, memory = rng.exponential(1.0, (2, len(demands)))
    return SynergyPlacement(
        num_servers=servers,
        server_gpus=gpus,
        server_cpus=10.0,
        server_memory=10.0,
        demands=np.column_stack(
            [
                demands,
                np.floor(rng.uniform(6, 10) * servers * cores / cores.sum()),
                np.floor(rng.uniform(6, 10) * servers * memory / memory.sum()),
            ]
        ),
    )


def test_whole_numbers_of_gpus_on_full_servers_change_no_optimum() -> None:
    rng = np.random.default_rng(8)
    fragmented, oversized = set(), 0
    for _ in rounds(30):
        instance = with_full_gpus(rng, servers=int(rng.integers(2, 4)))
        model = formulations.build(instance)
        assert len(model.full) == instance.num_servers
        model.full.deactivate()
        if hasattr(model, "not_alone"):
            model.not_alone.deactivate()
            oversized += 1
        free, full = formulations.solve(model), formulations.solve(instance)
        assert free.status == full.status == "optimal"
        assert free.objective == pytest.approx(full.objective, abs=1e-6)
        if instance.num_servers == 2:
            whole = [[int(amount) for amount in demand] for demand in instance.demands]
            assert full.objective == brute_fewest({**instance.to_dict(), "demands": whole})
        fragmented.add(full.objective)
    assert fragmented >= {0, 1, 2, 3}
    assert oversized > 5


def test_the_only_fragmented_job_cannot_have_one_gpu_where_gpus_are_full() -> None:
    """One job has more cores than a server.  Its GPU cannot be cut alone: each server would carry part of one."""
    demands = [[1, 9, 1], [1, 2, 1], [1, 1, 1], [1, 1, 1]]
    roomy, full = (
        SynergyPlacement(num_servers=2, server_gpus=gpus, server_cpus=8, server_memory=8, demands=demands)
        for gpus in (3, 2)
    )
    assert formulations.solve(roomy).objective == 1
    assert formulations.solve(full).objective == 2
    assert not hasattr(formulations.build(roomy), "not_alone")
    relaxed = formulations.build(full)
    assert relaxed.not_alone.active
    pyo.TransformationFactory("core.relax_integer_vars").apply_to(relaxed)
    assert formulations.solve(relaxed).objective == pytest.approx(2)
    relaxed.not_alone.deactivate()
    assert formulations.solve(relaxed).objective == pytest.approx(1)


def test_a_search_starts_from_a_plan() -> None:
    """All demands differ and nothing is to spare; no search is needed where a heuristic finds a perfect packing."""
    instance = generate(2, num_servers=16, fill=1.0, multi_gpu=False)
    start = swap_fit(instance)
    assert instance.objective(start) == 0
    solution = formulations.solve(instance, start=start)
    assert (solution.status, solution.objective) == ("optimal", 0)


@pytest.mark.parametrize("started", [False, True])
def test_a_plan_at_the_rounded_bound_is_optimal_wherever_the_search_stopped(
    monkeypatch: pytest.MonkeyPatch, started: bool
) -> None:
    instance = shared_middle()
    optimum = formulations.solve(instance)
    run = formulations.engine.solving.run

    def stopped(*arguments: object) -> tuple[Result, str, str]:
        result, *by = run(*arguments)
        return replace(result, status="feasible", bound=result.bound - 0.5), *by

    monkeypatch.setattr(formulations.engine.solving, "run", stopped)
    solution = formulations.solve(instance, start=optimum.plan if started else None)
    assert (solution.status, solution.objective, solution.bound) == ("optimal", 1, 1)


@pytest.mark.parametrize("seconds", [1e-9, 0.3])
def test_a_bound_in_time_is_a_whole_number(seconds: float) -> None:
    solution = formulations.solve(generate(0, num_servers=8, fill=1.0), time_limit=seconds)
    assert solution.bound == round(solution.bound) >= 0
    assert solution.status in ("optimal", "feasible", "unknown")


def test_a_start_without_fragments_needs_no_search() -> None:
    instance = generate(0, num_servers=2, fill=0.5)
    optimum = formulations.solve(instance)
    assert optimum.objective == 0
    again = formulations.solve(instance, start=optimum.plan)
    assert (again.status, again.plan, again.method) == ("optimal", optimum.plan, "at hand")


# --- walks of swaps -----------------------------------------------------------------------------


def oversized(instance: SynergyPlacement) -> np.ndarray:
    return (instance.demands > instance.capacity).any(axis=1)


def test_walks_come_to_what_brute_force_finds_and_never_below() -> None:
    rng = np.random.default_rng(9)
    met = missed = 0
    for _ in rounds(40):
        fields = tiny(rng)
        instance, fewest = SynergyPlacement(**fields), brute_fewest(fields)
        if fewest is None:
            continue
        plan = improved(instance, None, oversized(instance), fewest, seed=0)
        if plan is not None:
            assert instance.violations(plan) == []
            assert instance.objective(plan) >= fewest
        if fewest < instance.num_jobs:
            met += plan is not None and instance.objective(plan) == fewest
            missed += plan is None or instance.objective(plan) > fewest
    assert met > max(10, 4 * missed)


def test_walks_on_full_servers_fragment_fewer_jobs_than_swaps_alone() -> None:
    instance = generate(12, num_servers=16, fill=1.0)
    start = swap_fit(instance)
    plan = improved(instance, start, oversized(instance), float(oversized(instance).sum()), seed=0)
    assert instance.violations(plan) == []
    assert oversized(instance).sum() <= instance.objective(plan) < instance.objective(start)
    again = improved(instance, start, oversized(instance), float(oversized(instance).sum()), seed=0)
    assert plan == again


def test_walks_keep_the_plan_that_they_do_not_improve() -> None:
    instance = generate(12, num_servers=16, fill=1.0)
    start = swap_fit(instance)
    with clock.within(1e-9):
        assert improved(instance, start, oversized(instance), 0.0, seed=0) is start
    assert improved(instance, start, oversized(instance), instance.objective(start), seed=0) is start
    assert improved(instance, None, oversized(instance), float(instance.num_jobs), seed=0) is None


@pytest.mark.parametrize("started", [False, True])
def test_a_plan_of_a_walk_that_meets_the_bound_is_optimal(monkeypatch: pytest.MonkeyPatch, started: bool) -> None:
    monkeypatch.setattr(formulations.synergy.placement, "FIRST_SECONDS", 0.1)
    instance = generate(12, num_servers=16, fill=1.0)
    solution = formulations.solve(instance, start=swap_fit(instance) if started else None)
    assert (solution.status, solution.method) == ("optimal", WALKS)
    assert solution.objective == solution.bound == oversized(instance).sum()
    assert instance.violations(solution.plan) == []


def test_whole_gpus_are_not_for_walks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formulations.synergy.placement, "FIRST_SECONDS", 1e-9)
    instance = generate(0, num_servers=4, fill=0.7, integral_gpus=True)
    assert formulations.solve(instance, time_limit=3).method != WALKS


def test_jobs_larger_than_a_server_are_a_bound_without_a_search() -> None:
    """A plan that fragments nothing else needs no model."""
    instance = SynergyPlacement(
        num_servers=2, server_gpus=2, server_cpus=4, server_memory=4, demands=[[2, 8, 2], [1, 0, 3], [1, 0, 3]]
    )
    solution = formulations.solve(instance)
    assert solution.objective == larger_than_a_server(instance) == 1
    again = formulations.solve(instance, start=solution.plan)
    assert (again.status, again.method, again.proof) == ("optimal", "at hand", "argument")


# --- Theorem A.2 --------------------------------------------------------------------------------


def test_theorem_a_2_a_vertex_fragments_at_most_three_jobs_a_server() -> None:
    for seed in range(12):
        for servers in (1, 2, 5):
            instance = generate(seed, num_servers=servers, fill=1.0, multi_gpu=False)
            plan = vertex(instance)
            assert plan is not None
            assert instance.violations(plan) == []
            assert instance.objective(plan) <= 3 * servers
            assert np.count_nonzero(plan.shares) <= instance.num_jobs + 3 * servers
            if servers <= 2:
                assert instance.objective(plan) >= formulations.solve(instance).objective


def test_theorem_a_2_is_about_vertices_only() -> None:
    """Every job spread evenly over all servers satisfies the same program, and all 32 are fragmented."""
    instance = generate(0, num_servers=4, fill=1.0, multi_gpu=False)
    even = SynergyPlacementPlan(shares=np.full((32, 4), 0.25))
    assert instance.violations(even) == []
    assert instance.objective(even) == 32 > 3 * 4


def test_a_vertex_cuts_through_gpus() -> None:
    """As printed, shares are continuous: with 1 GPU per job, every fragmented job is on half a GPU or the like."""
    instance = generate(0, num_servers=4, fill=1.0, multi_gpu=False)
    plan = vertex(instance)
    assert instance.objective(plan) > 0
    whole = SynergyPlacement(**{**_fields(instance), "integral_gpus": True})
    assert "whole_gpus" in {violation.rule for violation in whole.violations(plan)}


def _fields(instance: SynergyPlacement) -> dict[str, Any]:
    return {name: value for name, value in instance.to_dict().items() if name != "problem"}


def test_there_is_no_vertex_where_nothing_fits() -> None:
    instance = SynergyPlacement(num_servers=1, server_gpus=1, server_cpus=1, server_memory=1, demands=[[1, 2, 0]])
    assert vertex(instance) is None
    assert formulations.solve(instance).status == "infeasible"


def test_second_stage_is_the_printed_program() -> None:
    instance = shared_middle()
    model = second_stage(instance)
    assert (len(model.placed), len(model.capacity), len(model.shares)) == (3, 6, 6)
    assert formulations.solve(model).status == "optimal"


# --- examples and judging -----------------------------------------------------------------------


def test_shared_middle() -> None:
    instance = shared_middle()
    solution = formulations.solve(instance)
    assert solution.objective == 1
    assert sorted(instance.fragmented(solution.plan).tolist()) == [False, False, True]
    # One GPU of the third job on each server: whole GPUs change nothing here.
    assert formulations.solve(SynergyPlacement(**{**_fields(instance), "integral_gpus": True})).objective == 1


TWO: dict[str, Any] = {
    "num_servers": 2,
    "server_gpus": 2,
    "server_cpus": 4.0,
    "server_memory": 8.0,
    "demands": [[2, 4, 4], [1, 2, 6]],
}


@pytest.mark.parametrize(
    ("shares", "broken"),
    [
        ([[1, 0], [0, 1]], []),
        ([[0.5, 0.5], [0, 1]], []),
        ([[0.75, 0.25], [0, 1]], []),
        ([[1, 0], [1, 0]], ["server_gpus[0] by 1", "server_cpus[0] by 2", "server_memory[0] by 2"]),
        ([[1, 0], [0, 0.5]], ["placed[1] by 0.5"]),
        ([[1.5, -0.5], [0, 1]], ["share_at_least_0[0, 1] by 0.5", "server_gpus[0] by 1", "server_cpus[0] by 2"]),
    ],
)
def test_broken_rules(shares: list[list[float]], broken: list[str]) -> None:
    instance = SynergyPlacement(**TWO)
    assert [str(v) for v in instance.violations(SynergyPlacementPlan(shares=shares))] == broken


def test_whole_gpus_are_a_rule_where_asked_for() -> None:
    instance = SynergyPlacement(**TWO, integral_gpus=True)
    plan = SynergyPlacementPlan(shares=[[0.75, 0.25], [0, 1]])
    assert [v.rule for v in instance.violations(plan)] == ["whole_gpus", "whole_gpus"]
    assert instance.violations(SynergyPlacementPlan(shares=[[0.5, 0.5], [0, 1]])) == []


def test_value_counts_jobs_on_several_servers() -> None:
    instance = SynergyPlacement(**TWO)
    assert instance.objective(SynergyPlacementPlan(shares=[[1, 0], [0.5, 0.5]])) == 1
    assert instance.objective(SynergyPlacementPlan(shares=[[1, 0], [0, 1]])) == 0
    # However small a share is, it is on a server.
    assert instance.objective(SynergyPlacementPlan(shares=[[1, 0], [1e-9, 1 - 1e-9]])) == 1


@pytest.mark.parametrize("fill", [0.3, 0.9, 1.0])
def test_generated_demands_fit_the_cluster(fill: float) -> None:
    for seed in range(5):
        instance = generate(seed, num_servers=4, fill=fill)
        total = instance.demands.sum(axis=0) / instance.capacity / 4
        assert total[0] == 1
        assert (total[1:] <= fill).all()
        assert (total[1:] > 0.8 * fill).all()


def test_published_jobs(data: Path) -> None:
    folder = data / "synergy"
    instance = from_trace(
        2, throughputs=folder / "sensitivity_profiles.json", trace=folder / "static_100job.csv", num_servers=4
    )
    assert (instance.demands.sum(axis=0) <= 4 * instance.capacity).all()
    assert formulations.solve(instance).status == "optimal"
    first = from_mix(1, throughputs=folder / "sensitivity_profiles.json", num_servers=4, mix=(33, 33, 33))
    second = first.placement(formulations.solve(first).plan)
    assert second.num_jobs == first.num_jobs
    assert formulations.solve(second).objective <= second.objective(vertex(second)) <= 12
