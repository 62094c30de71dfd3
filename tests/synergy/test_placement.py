"""Placing jobs with the fewest fragmented: searches, walks, and Theorem A.2."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

import formulations
from formulations.engine import clock
from formulations.engine.highs import Result
from formulations.methods import walking
from formulations.methods.walking import WALKS, improved
from formulations.synergy.placement import bound, larger_than_a_server, second_stage, spread, vertex
from heuristics.synergy.placement import balanced_fit, swap_fit
from instances.synergy.allocation import from_mix
from instances.synergy.placement import SynergyPlacement, SynergyPlacementPlan, from_trace, generate, shared_middle

from ..effort import rounds
from ..second_opinion import optimum
from .small import cluster_of


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


def test_a_job_that_is_larger_than_a_server_by_a_tolerance() -> None:
    """A share of at most 1 - 1e-6 is all or nothing to a search, which loses the plan that cuts one job in half."""
    demands = np.array([[2, 0, 8], [1, 0, 0], [2, 12.000012, 4], [1, 0, 0]])
    instance = SynergyPlacement(num_servers=2, server_gpus=3, server_cpus=12.0, server_memory=10.0, demands=demands)
    assert optimum(instance) == 1
    found = formulations.solve(instance)
    assert (found.status, found.objective, found.bound, found.proof) == ("optimal", 1.0, 1.0, "argument")
    with pytest.warns(formulations.SolverDisagreement, match="another run, wrong"):
        found = formulations.solve(instance, method="model")
    assert (found.status, found.objective) == ("optimal", 1.0)
    assert found.bound == pytest.approx(1.0)


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
        **cluster_of(servers, gpus, 10.0, 10.0),
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
        assert full.status == "optimal"
        assert free.objective == pytest.approx(full.objective, abs=1e-6)
        assert bound(instance, free.bound) == full.objective
        if instance.num_servers == 2:
            assert full.objective == optimum(instance)
        fragmented.add(full.objective)
    assert fragmented >= {0, 1, 2, 3}
    assert oversized > 5


def test_the_only_fragmented_job_cannot_have_one_gpu_where_gpus_are_full() -> None:
    """One job has more cores than a server.  Its GPU cannot be cut alone: each server would carry part of one."""
    demands = [[1, 9, 1], [1, 2, 1], [1, 1, 1], [1, 1, 1]]
    roomy, full = (SynergyPlacement(**cluster_of(2, gpus, 8, 8), demands=demands) for gpus in (3, 2))
    assert formulations.solve(roomy).objective == 1
    assert formulations.solve(full).objective == 2
    assert not hasattr(formulations.build(roomy), "not_alone")
    relaxed = formulations.build(full)
    assert relaxed.not_alone.active
    pyo.TransformationFactory("core.relax_integer_vars").apply_to(relaxed)
    assert formulations.solve(relaxed).objective == pytest.approx(2)
    relaxed.not_alone.deactivate()
    assert formulations.solve(relaxed).objective == pytest.approx(1)


def test_a_job_barely_larger_than_a_server_misleads_no_solver() -> None:
    """Of pieces within its tolerance, whole numbers of GPUs on each server made HiGHS find no plan, or 4 at best."""
    demands = [[1, 0, 2], [1, 0, 8], [2, 8.000008, 1], [2, 0, 0]]
    instance = SynergyPlacement(**cluster_of(2, 3, 8, 10), demands=demands)
    assert larger_than_a_server(instance) == 1
    solution = formulations.solve(instance)
    assert solution.bound <= optimum(instance) == solution.objective == 2
    larger = replace(instance, demands=[*demands[:2], [2, 8.01, 1], demands[3]])
    assert len(formulations.build(instance).full) == 0 < len(formulations.build(larger).full)
    assert formulations.solve(larger).objective == optimum(larger) == 2


def test_all_jobs_on_all_servers_are_a_plan_wherever_there_is_one() -> None:
    rng, seen = np.random.default_rng(11), set()
    for _ in range(60):
        instance = SynergyPlacement(**tiny(rng))
        fits = instance.violations(spread(instance)) == []
        assert fits == (optimum(instance) is not None)
        seen.add(fits)
    assert seen == {True, False}


def test_a_model_of_the_users_is_read_to_the_judge_s_tolerance() -> None:
    """HiGHS fills a server up to its own tolerance; with its whole numbers there is a point that the judge takes."""
    instance = generate(10, num_servers=2)
    model = formulations.build(instance)
    model.full.deactivate()
    solution = formulations.solve(model)
    assert solution.status == "optimal"
    assert "cannot be trusted" not in solution.message
    assert instance.violations(solution.plan) == []
    assert instance.objective(solution.plan) == solution.objective == 1


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


def test_walks_come_to_the_optimum_and_never_below() -> None:
    rng = np.random.default_rng(9)
    met = missed = 0
    for _ in rounds(40):
        instance = SynergyPlacement(**tiny(rng))
        fewest = optimum(instance)
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


def test_walks_on_full_servers_fragment_fewer_jobs_than_they_begin_with() -> None:
    instance = generate(12, num_servers=16, fill=1.0)
    start = balanced_fit(instance)
    plan = improved(instance, start, oversized(instance), float(oversized(instance).sum()), seed=0)
    assert instance.violations(plan) == []
    assert oversized(instance).sum() <= instance.objective(plan) < instance.objective(start)
    again = improved(instance, start, oversized(instance), float(oversized(instance).sum()), seed=0)
    assert plan == again


def test_walks_before_the_model_end_at_the_optimum_by_search() -> None:
    """Also where memory in GB is not whole, and where jobs that no server holds are the only ones cut."""
    rng, at_once = np.random.default_rng(21), 0
    for _ in rounds(25):
        fields = tiny(rng)
        fields["server_memory"] /= 3
        fields["demands"] = (np.array(fields["demands"], float) * [1, 1, 1 / 3]).tolist()
        instance = SynergyPlacement(**fields)
        best, found = optimum(instance), formulations.solve(instance, method="walks")
        if best is None:
            assert found.status == "infeasible"
            continue
        assert (found.status, found.objective) == ("optimal", float(best))
        assert instance.violations(found.plan) == []
        assert larger_than_a_server(instance) <= best
        at_once += "no job that one server holds" in found.message
    assert at_once > 5


def test_walks_keep_the_plan_that_they_do_not_improve() -> None:
    instance = generate(12, num_servers=16, fill=1.0)
    start = swap_fit(instance)
    with clock.within(1e-9):
        assert improved(instance, start, oversized(instance), 0.0, seed=0) is start
    assert improved(instance, start, oversized(instance), instance.objective(start), seed=0) is start
    assert improved(instance, None, oversized(instance), float(instance.num_jobs), seed=0) is None


@pytest.mark.parametrize("started", [False, True])
def test_a_plan_of_a_walk_that_meets_the_bound_is_optimal(monkeypatch: pytest.MonkeyPatch, started: bool) -> None:
    monkeypatch.setattr(walking, "FIRST_SECONDS", 0.1)
    instance = generate(12, num_servers=16, fill=1.0)
    solution = formulations.solve(instance, start=balanced_fit(instance) if started else None)
    assert (solution.status, solution.method) == ("optimal", WALKS.name)
    assert solution.objective == solution.bound == oversized(instance).sum()
    assert instance.violations(solution.plan) == []


def test_whole_gpus_are_not_for_walks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walking, "FIRST_SECONDS", 1e-9)
    instance = generate(0, num_servers=4, fill=0.7, integral_gpus=True)
    assert formulations.solve(instance, time_limit=3).method != WALKS.name


def test_jobs_larger_than_a_server_are_a_bound_without_a_search() -> None:
    """A plan that fragments nothing else needs no model."""
    instance = SynergyPlacement(**cluster_of(2, 2, 4, 4), demands=[[2, 8, 2], [1, 0, 3], [1, 0, 3]])
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
    instance = SynergyPlacement(**cluster_of(1, 1, 1, 1), demands=[[1, 2, 0]])
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
