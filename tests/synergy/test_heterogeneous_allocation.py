"""Dividing CPUs, memory and GPUs of several machine types: the fair share, and its promises."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given

import formulations
from heuristics.synergy.heterogeneous_allocation import greedy_marginal, priced_types, proportional
from instances import InstanceError, PlanError
from instances.gavel.max_min_fairness import MaxMinFairness
from instances.synergy.allocation import SynergyAllocation, SynergyAllocationPlan
from instances.synergy.heterogeneous_allocation import HeterogeneousAllocation, generate, one_fast_machine
from validation.problems.synergy.heterogeneous_allocation import strategy as allocations

from ..effort import rounds
from .small import assert_dominated_change_nothing, assert_fair_by_definition


def tiny(rng: np.random.Generator) -> dict[str, Any]:
    """Fields of a small instance in whole numbers, mostly on two machine types."""
    k, n = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    lengths = rng.integers(1, 6, n)
    return {
        "num_servers": rng.integers(1, 3, k).tolist(),
        "server_gpus": rng.integers(1, 4, k).tolist(),
        "server_cpus": rng.integers(0, 8, k).astype(float).tolist(),
        "server_memory": rng.integers(0, 8, k).astype(float).tolist(),
        "gpu_demands": rng.integers(1, 4, n).tolist(),
        "configs": [rng.integers(0, 6, (int(a), 3)).tolist() for a in lengths],
        "config_types": [rng.integers(0, k, int(a)).tolist() for a in lengths],
        "server_cap": bool(rng.random() < 0.5),
    }


def fair_by_definition(fields: dict[str, Any]) -> list[float | None]:
    """For each job the least, over the types with any, of the best throughputs within the share."""
    fair: list[float | None] = []
    for gpus, table, types in zip(fields["gpu_demands"], fields["configs"], fields["config_types"], strict=True):
        best: dict[int, float] = {}
        for (c, m, w), kind in zip(table, types, strict=True):
            size = fields["server_gpus"][kind]
            if c * size <= gpus * fields["server_cpus"][kind] and m * size <= gpus * fields["server_memory"][kind]:
                best[kind] = max(w, best.get(kind, 0))
        fair.append(min(best.values()) if best else None)
    return fair


def test_the_fair_share_is_the_best_within_the_proportional_one() -> None:
    assert_fair_by_definition(HeterogeneousAllocation, tiny, fair_by_definition, rounds(170))


def test_one_type_is_the_homogeneous_problem_with_a_limit_on_gpus() -> None:
    rng = np.random.default_rng(2)
    for _ in rounds(20):
        fields = tiny(rng)
        common = {
            "gpu_demands": fields["gpu_demands"],
            "configs": fields["configs"],
            "fair_throughputs": [0] * len(fields["configs"]),
        }
        sizes = {name: fields[name][0] for name in ("num_servers", "server_gpus", "server_cpus", "server_memory")}
        one = HeterogeneousAllocation(
            **common,
            **{name: [size] for name, size in sizes.items()},
            config_types=[[0] * len(table) for table in fields["configs"]],
        )
        plain = formulations.solve(SynergyAllocation(**common, **sizes))
        limited = formulations.solve(one)
        if sum(fields["gpu_demands"]) > sizes["num_servers"] * sizes["server_gpus"]:
            assert limited.status == "infeasible"
        else:
            assert limited.status == plain.status
            assert limited.objective == (None if plain.objective is None else pytest.approx(plain.objective))


def test_as_printed_all_jobs_crowd_onto_the_fast_machine() -> None:
    instance = one_fast_machine()
    assert formulations.solve(instance).objective == 6
    model = formulations.build(instance)
    model.gpus.deactivate()
    assert formulations.solve(model).objective == 8


def test_as_built_the_default_of_fair_is_met_on_every_type() -> None:
    """With the best type's share as the floor instead, only one of the two jobs could be fair."""
    instance = one_fast_machine()
    assert instance.fair_throughputs.tolist() == [2, 2]
    fields = {name: value for name, value in instance.to_dict().items() if name != "problem"}
    stricter = HeterogeneousAllocation(**{**fields, "fair_throughputs": [4.0, 4.0]})
    assert formulations.solve(stricter).status == "infeasible"


def with_fair(rng: np.random.Generator) -> dict[str, Any]:
    fields = tiny(rng)
    return fields | {"fair_throughputs": rng.integers(0, 3, len(fields["configs"])).tolist()}


def test_leaving_dominated_configurations_out_changes_no_optimum() -> None:
    rng = np.random.default_rng(4)
    assert_dominated_change_nothing(HeterogeneousAllocation, (with_fair(rng) for _ in rounds(30)), 16)


# --- judging ------------------------------------------------------------------------------------

TWO: dict[str, Any] = {
    "num_servers": [1, 1],
    "server_gpus": [2, 1],
    "server_cpus": [4.0, 4.0],
    "server_memory": [4.0, 4.0],
    "gpu_demands": [1, 1],
    "configs": [[[2, 2, 1], [4, 4, 3]], [[2, 2, 1], [4, 4, 3], [3, 1, 2]]],
    "config_types": [[0, 1], [0, 1, 0]],
}


@pytest.mark.parametrize(
    ("choices", "broken"),
    [
        ([0, 0], []),
        ([1, 0], []),
        ([0, 2], ["cpus[0] by 1"]),
        ([1, 1], ["cpus[1] by 4", "memory[1] by 4", "gpus[1] by 1"]),
        ([2, 0], ["one_config[0] by 1"]),
        ([-1, 0], ["one_config[0] by 1"]),
    ],
)
def test_broken_rules(choices: list[int], broken: list[str]) -> None:
    assert [str(v) for v in HeterogeneousAllocation(**TWO).violations(SynergyAllocationPlan(choices=choices))] == broken


def test_unfair_plans_are_named() -> None:
    instance = HeterogeneousAllocation(**TWO, fair_throughputs=[2.0, 1.0])
    assert [str(v) for v in instance.violations(SynergyAllocationPlan(choices=[0, 0]))] == ["fair_throughput[0] by 1"]


def test_value_needs_configurations_that_exist() -> None:
    instance = HeterogeneousAllocation(**TWO)
    assert instance.objective(SynergyAllocationPlan(choices=[1, 2])) == 5
    with pytest.raises(PlanError, match=r"choices is 2 at index \[0\], must be 0 to 1"):
        instance.objective(SynergyAllocationPlan(choices=[2, 0]))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("config_types", [[0, 1], [0, 1]]),
        ("config_types", [[0, 2], [0, 1, 0]]),
    ],
)
def test_bad_fields_are_named(field: str, value: Any) -> None:
    with pytest.raises(InstanceError, match=rf"HeterogeneousAllocation\.{field}"):
        HeterogeneousAllocation(**{**TWO, field: value})


def test_a_job_without_any_share_needs_its_fair_throughput() -> None:
    fields = {**TWO, "configs": [[[3, 3, 1], [5, 5, 3]], TWO["configs"][1]]}
    with pytest.raises(InstanceError, match="fair_throughputs: left out, but job 0 has no configuration"):
        HeterogeneousAllocation(**fields)


def test_a_dial_at_1_makes_gpus_alike() -> None:
    """The types then differ in cores alone, which each profile is relative to."""
    instance = generate(0, num_servers=1, heterogeneity=1.0)
    for types, choices in zip(instance.config_types, instance.proportional_choices, strict=True):
        assert types[choices].tolist() == [0, 1]
    table, first = instance.configs[0], instance.proportional_choices[0]
    assert table[first, 2].tolist() == pytest.approx([instance.gpu_demands[0]] * 2)


# --- heuristics ---------------------------------------------------------------------------------


@given(allocations())
def test_heuristics_keep_their_promises(instance: HeterogeneousAllocation) -> None:
    digest = instance.digest
    share, greedy = proportional(instance), greedy_marginal(instance)
    assert (share, greedy) == (proportional(instance), greedy_marginal(instance))
    assert HeterogeneousAllocation.from_dict(instance.to_dict()).digest == digest
    # All that can go wrong is that a job finds no type with enough free GPUs, or is owed more than its share gives.
    broken = {violation.rule for violation in instance.violations(share)}
    if broken:
        assert "gpus" in broken or (broken == {"fair_throughput"} and some_owed_more(instance))
        return
    assert instance.violations(greedy) == []
    best = formulations.solve(instance)
    values = [instance.objective(share), instance.objective(greedy), best.objective]
    assert values[0] <= values[1] + 1e-9
    assert values[1] <= values[2] * (1 + 1e-9) + 1e-9


def some_owed_more(instance: HeterogeneousAllocation) -> bool:
    """Whether a job is owed more than its share of some type gives it."""
    return any(
        choice < 0 or table[choice, 2] < fair
        for table, choices, fair in zip(
            instance.configs, instance.proportional_choices, instance.fair_throughputs, strict=True
        )
        for choice in choices
    )


def test_jobs_of_powers_of_two_always_find_a_type() -> None:
    for seed in range(10):
        instance = generate(seed, num_servers=2)
        assert instance.violations(proportional(instance)) == []
        assert instance.violations(greedy_marginal(instance)) == []


def test_proportional_takes_the_faster_type_while_it_has_gpus() -> None:
    instance = one_fast_machine()
    assert proportional(instance).choices.tolist() == [1, 0]
    assert greedy_marginal(instance).choices.tolist() == [1, 0]


def test_gavel_says_what_is_fair() -> None:
    """Appendix A.2.2: the floor is what jobs have under a scheduler that knows types, here max-min fairness."""
    instance = generate(2, num_servers=2)
    shares = instance.proportional_throughputs
    for job, (table, types) in enumerate(zip(instance.configs, instance.config_types, strict=True)):
        for kind in range(instance.num_types):
            per_gpu = np.array([instance.server_cpus[kind], instance.server_memory[kind]]) / instance.server_gpus[kind]
            inside = (table[:, :2] <= instance.gpu_demands[job] * per_gpu * (1 + 1e-9)).all(axis=1) & (types == kind)
            assert shares[job, kind] == table[inside, 2].max(initial=0.0)
    cluster = MaxMinFairness(
        throughputs=shares,
        num_workers=instance.num_servers * instance.server_gpus,
        scale_factors=instance.gpu_demands,
    )
    plan = formulations.solve(cluster).plan
    fair = instance.fair_under(plan.time_fractions)
    assert fair.fair_throughputs == pytest.approx((shares * plan.time_fractions).sum(axis=1), rel=1e-12)
    # A part of the time is worth no more than all of it on the faster type, and all on the slower one is the default.
    assert (fair.fair_throughputs <= shares.max(axis=1) * (1 + 1e-9)).all()
    slowest = np.zeros_like(shares)
    slowest[np.arange(instance.num_jobs), shares.argmin(axis=1)] = 1.0
    assert instance.fair_under(slowest).fair_throughputs == pytest.approx(instance.fair_throughputs)
    with pytest.raises(InstanceError, match="time_fractions: got shape"):
        instance.fair_under(slowest[:, :1])


def test_a_floor_between_types_can_leave_no_plan() -> None:
    """Two jobs that both want the one fast GPU for half of the time: each round only one has it."""
    fast = one_fast_machine()
    halves = np.full(fast.proportional_throughputs.shape, 1 / fast.num_types)
    assert formulations.solve(fast).status == "optimal"
    assert formulations.solve(fast.fair_under(halves)).status == "infeasible"


def test_types_are_chosen_at_prices() -> None:
    fast = one_fast_machine()
    assert fast.objective(priced_types(fast)) == formulations.solve(fast).objective
    gained = 0
    for seed in range(8):
        instance = generate(seed, num_servers=2)
        optimum = formulations.solve(instance).objective
        assert optimum is not None
        values = [
            instance.objective(plan)
            for plan in (greedy_marginal(instance), priced_types(instance, tried=1), priced_types(instance))
        ]
        assert values == sorted(values)
        assert values[-1] >= 0.95 * optimum
        gained += values[0] < 0.95 * optimum
    assert gained >= 4
