"""Dividing CPUs and memory among jobs: the fair share, dominated configurations, and its promises."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import formulations
from formulations.synergy.allocation import relaxation
from heuristics.synergy.allocation import greedy_marginal, proportional
from instances import InstanceError, PlanError
from instances.synergy import from_matrix
from instances.synergy.allocation import SynergyAllocation, SynergyAllocationPlan, from_mix, from_trace, generate
from instances.synergy.sensitivity import undominated
from instances.synergy.tuning import four_jobs
from validation.problems.synergy.allocation import _shares_fit
from validation.problems.synergy.allocation import strategy as allocations
from validation.problems.synergy.sensitivity import fair_by_default

from ..effort import rounds
from .small import assert_dominated_change_nothing, assert_fair_by_definition, cluster_of


def tiny(rng: np.random.Generator) -> dict[str, Any]:
    """Fields of a small instance in whole numbers: ties, zeros, equal jobs and shares off the grid are common."""
    num_servers, server_gpus = int(rng.integers(1, 3)), int(rng.integers(1, 4))
    n = int(rng.integers(1, 5))
    configs = [rng.integers(0, 6, (int(rng.integers(1, 5)), 3)).tolist() for _ in range(n)]
    if n > 1 and rng.random() < 0.3:
        configs[1] = configs[0]
    return {
        "num_servers": num_servers,
        "server_gpus": server_gpus,
        "server_cpus": float(rng.integers(0, 9)),
        "server_memory": float(rng.integers(0, 9)),
        "gpu_demands": rng.integers(1, 4, n).tolist(),
        "configs": configs,
        "server_cap": bool(rng.random() < 0.5),
    }


def fair_by_definition(fields: dict[str, Any]) -> list[float | None]:
    """Best throughput at or below the proportional share, None where no configuration is."""
    fair = []
    for gpus, table in zip(fields["gpu_demands"], fields["configs"], strict=True):
        inside = [
            w
            for c, m, w in table
            if c * fields["server_gpus"] <= gpus * fields["server_cpus"]
            and m * fields["server_gpus"] <= gpus * fields["server_memory"]
        ]
        fair.append(max(inside) if inside else None)
    return fair


def test_the_fair_share_is_the_best_within_the_proportional_one() -> None:
    assert_fair_by_definition(SynergyAllocation, tiny, fair_by_definition, rounds(130))


# --- dominated configurations -------------------------------------------------------------------


def test_undominated_by_definition() -> None:
    rng = np.random.default_rng(3)
    for _ in rounds(100):
        rows = rng.integers(0, 4, (int(rng.integers(1, 8)), 3))
        kept = []
        for j, (c, m, w) in enumerate(rows):
            better = any(
                a <= c and b <= m and v >= w and ((a, b, v) != (c, m, w) or i < j)
                for i, (a, b, v) in enumerate(rows)
                if i != j
            )
            if not better:
                kept.append(j)
        assert undominated(rows.astype(float)).tolist() == kept


def with_fair(rng: np.random.Generator) -> dict[str, Any]:
    fields = tiny(rng)
    return fields | {"fair_throughputs": rng.integers(0, 3, len(fields["configs"])).tolist()}


def test_leaving_dominated_configurations_out_changes_no_optimum() -> None:
    """Neither the program's nor the relaxation's."""
    rng = np.random.default_rng(4)
    drawn = (with_fair(rng) for _ in rounds(50))
    assert_dominated_change_nothing(SynergyAllocation, drawn, 61, (formulations.build, relaxation))


def test_the_published_grid_shrinks(data: Path) -> None:
    instance = from_mix(0, throughputs=data / "synergy" / "sensitivity_profiles.json", mix=(50, 0, 50))
    assert {len(table) for table in instance.configs} == {45}
    assert max(len(rows) for rows in instance.undominated) < 20


# --- the paper's statements ---------------------------------------------------------------------


def test_theorem_4_1_bound_holds_above_the_program_and_above_any_placement() -> None:
    rng = np.random.default_rng(5)
    for seed in range(15):
        instance = generate(seed, num_servers=2, multi_gpu=bool(rng.random() < 0.5))
        bound = formulations.solve(relaxation(instance)).bound
        best = formulations.solve(instance)
        assert best.objective <= bound * (1 + 1e-9)
    jobs = four_jobs().uncapped()
    bound = formulations.solve(relaxation(jobs.stage_one())).bound
    assert bound >= formulations.solve(jobs.stage_one()).bound >= formulations.solve(jobs).bound
    assert bound == pytest.approx(22.1201728, abs=1e-6)


def test_as_printed_gpus_are_no_limit() -> None:
    instance = SynergyAllocation(**cluster_of(1, 1, 4, 4), gpu_demands=[3, 3], configs=[[[1, 1, 1]]] * 2)
    assert formulations.solve(instance).objective == 2


def test_as_built_a_share_off_the_grid_keeps_the_program_feasible() -> None:
    """7 cores for 2 GPUs: the share of 3.5 is no point of the profile, so (5) compares with 3 cores."""
    table = from_matrix([[1.0], [1.5], [2.0]], [1, 3, 4], [10.0])
    instance = SynergyAllocation(**cluster_of(1, 2, 7, 20), gpu_demands=[1, 1], configs=[table, table])
    assert instance.fair_throughputs.tolist() == [1.5, 1.5]
    assert formulations.solve(instance).objective == 3.5
    # Comparing with the next point above the share instead would ask for 8 cores of 7.
    stricter = SynergyAllocation(**{**_fields(instance), "fair_throughputs": [2.0, 2.0]})
    assert formulations.solve(stricter).status == "infeasible"


def _fields(instance: SynergyAllocation) -> dict[str, Any]:
    return {name: value for name, value in instance.to_dict().items() if name != "problem"}


def test_from_matrix_is_in_totals_of_the_job() -> None:
    table = from_matrix([[1.0, 2.0], [3.0, 4.0]], [1, 3], [20, 60], gpus=2)
    assert table.tolist() == [[2, 40, 2], [2, 120, 4], [6, 40, 6], [6, 120, 8]]
    with pytest.raises(ValueError, match="throughputs"):
        from_matrix([[1.0, 2.0]], [1, 3], [20, 60])


def test_second_stage_takes_what_the_first_gives() -> None:
    instance = four_jobs().stage_one()
    plan = formulations.solve(instance).plan
    assert isinstance(plan, SynergyAllocationPlan)
    second = instance.placement(plan)
    assert second.demands[:, 0].tolist() == [4, 4, 4, 4]
    assert second.demands[:, 1].sum() <= 48
    assert formulations.solve(second).objective == 2


# --- judging ------------------------------------------------------------------------------------

TWO: dict[str, Any] = {
    "num_servers": 1,
    "server_gpus": 2,
    "server_cpus": 4.0,
    "server_memory": 4.0,
    "gpu_demands": [1, 1],
    "configs": [[[2, 2, 1], [4, 2, 3]], [[1, 1, 1], [2, 2, 2], [2, 4, 5]]],
}


@pytest.mark.parametrize(
    ("choices", "broken"),
    [
        ([0, 1], []),
        ([0, 0], ["fair_throughput[1] by 1"]),
        ([1, 1], ["cpus by 2"]),
        ([0, 2], ["memory by 2"]),
        ([0, 3], ["one_config[1] by 1"]),
        ([-1, 1], ["one_config[0] by 1"]),
    ],
)
def test_broken_rules(choices: list[int], broken: list[str]) -> None:
    assert [str(v) for v in SynergyAllocation(**TWO).violations(SynergyAllocationPlan(choices=choices))] == broken


def test_value_needs_configurations_that_exist() -> None:
    instance = SynergyAllocation(**TWO)
    assert instance.objective(SynergyAllocationPlan(choices=[1, 2])) == 8
    with pytest.raises(PlanError, match=r"choices is 3 at index \[1\], must be 0 to 2"):
        instance.objective(SynergyAllocationPlan(choices=[0, 3]))
    with pytest.raises(PlanError, match="length 3"):
        instance.objective(SynergyAllocationPlan(choices=[0, 0, 0]))


def test_a_job_without_a_configuration_within_its_share_needs_its_fair_throughput() -> None:
    fields = {**TWO, "configs": [[[3, 2, 1]], [[1, 1, 1]]]}
    with pytest.raises(InstanceError, match=r"fair_throughputs: left out, but job 0 has no configuration"):
        SynergyAllocation(**fields)
    assert formulations.solve(SynergyAllocation(**fields, fair_throughputs=[1, 1])).objective == 2


def test_a_fair_throughput_that_differs_by_rounding_is_met() -> None:
    instance = SynergyAllocation(**{**TWO, "fair_throughputs": [1 + 1e-12, 2 + 1e-9]})
    solution = formulations.solve(instance)
    assert solution.objective == 3
    assert instance.violations(proportional(instance)) == []


def test_nothing_to_give_is_no_trouble() -> None:
    fields = {**TWO, "server_cpus": 0.0, "server_memory": 0.0, "configs": [[[0, 0, 1]], [[0, 0, 0], [0, 0, 2]]]}
    instance = SynergyAllocation(**fields)
    for solver in ("highs", "scip"):
        assert formulations.solve(instance, solver=solver).objective == 3
    assert instance.objective(greedy_marginal(instance)) == 3


# --- generators and real input ------------------------------------------------------------------


@pytest.mark.parametrize("server_cpus", [8.0, 24.0, 28.0])
def test_generated_jobs_fill_the_cluster_and_have_a_fair_share(server_cpus: float) -> None:
    instance = generate(3, num_servers=4, server_cpus=server_cpus)
    assert instance.gpu_demands.sum() == 32
    assert (instance.proportional_choices >= 0).all()
    assert instance.violations(proportional(instance)) == []


def test_published_jobs_fill_the_cluster(data: Path) -> None:
    folder = data / "synergy"
    for ratio in (3, 4, 5, 6):
        instance = from_trace(
            1,
            throughputs=folder / "sensitivity_profiles.json",
            trace=folder / "static_100job.csv",
            num_servers=16,
            cpus_per_gpu=ratio,
        )
        assert instance.gpu_demands.sum() == 128
        assert instance.server_cpus == 8 * ratio
        solution = formulations.solve(instance)
        assert solution.status == "optimal"
        # With 3 cores per GPU, the language jobs' spare cores are worth something.
        assert solution.objective >= instance.objective(proportional(instance)) * (1.1 if ratio == 3 else 1)


# --- heuristics ---------------------------------------------------------------------------------


@given(allocations())
def test_heuristics_keep_their_promises(instance: SynergyAllocation) -> None:
    digest = instance.digest
    share, greedy = proportional(instance), greedy_marginal(instance)
    assert (share, greedy) == (proportional(instance), greedy_marginal(instance))
    assert SynergyAllocation.from_dict(instance.to_dict()).digest == digest
    if instance.violations(share) or instance.violations(greedy):
        assert not fair_by_default(instance)  # A job is owed more than its share gives it.
        return
    best = formulations.solve(instance)
    values = [instance.objective(share), instance.objective(greedy), best.objective]
    assert values[0] <= values[1] + 1e-9
    assert values[1] <= values[2] * (1 + 1e-9) + 1e-9
    assert SynergyAllocationPlan.from_dict(json.loads(json.dumps(greedy.to_dict()))) == greedy


def test_shares_of_more_gpus_than_there_are_promise_nothing() -> None:
    """Two GPUs on a server of one: twice the server's memory is the job's share, and what needs least is in it."""
    tables = {"configs": [[[0, 5, 5], [2, 3, 0]]], "fair_throughputs": [0]}
    crowded = SynergyAllocation(**cluster_of(1, 1, 2.0, 4.0), gpu_demands=[2], **tables)
    assert [one.rule for one in crowded.violations(greedy_marginal(crowded))] == ["memory"]
    assert not _shares_fit(crowded)
    roomy = replace(crowded, server_gpus=2)
    assert _shares_fit(roomy)
    assert not roomy.violations(greedy_marginal(roomy))


def test_greedy_takes_the_best_rate_first() -> None:
    """4 spare cores: job 1 gains 3 with 2 of them, job 0 gains 4 with all; memory plays no part."""
    instance = SynergyAllocation(
        **cluster_of(1, 2, 8.0, 0.0),
        gpu_demands=[1, 1],
        configs=[[[2, 0, 1], [6, 0, 5]], [[2, 0, 1], [4, 0, 4]]],
        fair_throughputs=[1, 1],
    )
    assert greedy_marginal(instance).choices.tolist() == [0, 1]
    assert formulations.solve(instance).objective == 6


def test_greedy_frees_what_insensitive_jobs_do_not_need() -> None:
    instance = four_jobs().stage_one()
    plan = greedy_marginal(instance)
    assert instance.chosen(plan.choices)[2:, 0].tolist() == [4, 4]
    assert instance.objective(proportional(instance)) == 16
    assert instance.objective(plan) == pytest.approx(19.8)
    assert formulations.solve(instance).objective == pytest.approx(21.2)
