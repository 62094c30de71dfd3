"""eplb.placement: worked examples, all plans of small instances, patterns of GPUs, and what the heuristics keep."""

import json
from fractions import Fraction
from itertools import combinations_with_replacement, product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

import formulations
from formulations.eplb.placement import counts, least_load
from formulations.methods.gpu_patterns import PATTERNS, Patterns
from heuristics.eplb.placement import distinct_longest_first, fewest_extra, local_search, released_global
from instances import InstanceError
from instances.eplb.placement import (
    EplbPlacement,
    EplbPlacementPlan,
    eight_experts,
    from_layers,
    generate,
    hot_expert,
    released_layers,
)
from validation.problems.eplb.placement import strategy

from ..second_opinion import optimum


def least_of_all_plans(instance: EplbPlacement) -> Fraction:
    """Fill the GPUs one by one with every multiset of experts."""
    e = instance.num_experts
    fillings = list(combinations_with_replacement(range(e), instance.slots))
    least = None
    for chosen in combinations_with_replacement(fillings, instance.num_gpus):
        held = [expert for filling in chosen for expert in filling]
        if set(held) != set(range(e)):
            continue
        if instance.one_per_gpu and any(len(set(filling)) < len(filling) for filling in chosen):
            continue
        shares = [Fraction(float(load)) / held.count(expert) for expert, load in enumerate(instance.loads)]
        greatest = max(sum((shares[expert] for expert in filling), Fraction(0)) for filling in chosen)
        least = greatest if least is None else min(least, greatest)
    assert least is not None
    return least


@settings(max_examples=40, deadline=None)
@given(strategy())
def test_optima_are_those_of_all_plans(instance: EplbPlacement) -> None:
    best = least_of_all_plans(instance)
    assert optimum(instance) == best
    assert least_load(instance) <= float(best) * (1 + 1e-12)
    for method in formulations.methods(instance):
        solution = formulations.solve(instance, method=method.name)
        assert solution.status == "optimal"
        assert solution.objective == pytest.approx(float(best), rel=1e-6)
        assert solution.bound <= float(best) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("instance", "released", "best"),
    [
        (eight_experts(), 232.0, 590 / 3),
        (released_layers()[0], 138.5, 136.0),
        (released_layers()[1], 172.0, 172.0),
        (hot_expert(2), 2 / 3, 1 / 2),
    ],
)
def test_worked_examples(instance: EplbPlacement, released: float, best: float) -> None:
    assert instance.objective(released_global(instance)) == pytest.approx(released, rel=1e-12)
    solution = formulations.solve(instance)
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("num_gpus", [2, 3, 4, 8, 16])
def test_the_released_policy_is_almost_twice_the_optimum(num_gpus: int) -> None:
    instance = hot_expert(num_gpus)
    assert instance.num_replicas == instance.num_experts + num_gpus
    solution = formulations.solve(instance)
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(1 / num_gpus, rel=1e-12)
    ratio = instance.objective(released_global(instance)) / solution.objective
    assert ratio == pytest.approx(2 - 2 / (num_gpus + 1), rel=1e-12)


def test_patterns_are_all_that_a_gpu_can_hold() -> None:
    instance = generate(3, num_experts=6, experts_per_gpu=2)
    level = instance.objective(released_global(instance))
    found = Patterns(instance, level)
    pieces = list(zip(found.experts.tolist(), found.counts.tolist(), strict=True))
    wanted = set()
    for filling in combinations_with_replacement(range(len(pieces)), instance.slots):
        held = [pieces[piece] for piece in filling]
        if any(a[0] == b[0] and a != b for a, b in product(held, held)) or any(held.count(p) > p[1] for p in held):
            continue
        carried = sum(instance.loads[expert] / count for expert, count in held)
        if instance.loads.sum() - (instance.num_gpus - 1) * level - 1e-6 <= carried <= level + 1e-6:
            wanted.add(filling)
    assert set(map(tuple, found.patterns.tolist())) == wanted
    assert wanted


@pytest.mark.parametrize("one_per_gpu", [False, True])
def test_methods_agree_on_instances_drawn(one_per_gpu: bool) -> None:
    for seed, kind in product(range(2), ("zipf", "hot", "layer")):
        instance = generate(seed, num_experts=6, kind=kind, one_per_gpu=one_per_gpu)
        found = [formulations.solve(instance, method=name) for name in (PATTERNS.name, "model")]
        assert [one.status for one in found] == ["optimal", "optimal"]
        assert found[0].objective == pytest.approx(found[1].objective, rel=1e-6)


@pytest.mark.parametrize("kind", ["zipf", "hot"])
def test_a_layer_of_256_experts_is_within_a_percent_of_the_bound(kind: str) -> None:
    instance = generate(0, num_experts=256, experts_per_gpu=8, kind=kind)
    assert (instance.num_gpus, instance.slots) == (32, 9)
    plan = local_search(instance, budget=300)
    assert not instance.violations(plan)
    assert instance.objective(plan) <= 1.01 * least_load(instance)


@settings(max_examples=60, deadline=None)
@given(strategy(max_experts=8, max_gpus=5, max_slots=4))
def test_heuristics_keep_what_they_promise(instance: EplbPlacement) -> None:
    released, distinct = released_global(instance), distinct_longest_first(instance)
    extra, searched = fewest_extra(instance), local_search(instance, budget=30)
    for plan in (distinct, extra, searched):
        assert not instance.violations(plan)
    assert {one.rule for one in instance.violations(released)} <= {"one_per_gpu"}
    assert instance.objective(searched) <= instance.objective(extra)
    assert distinct.replicas.max() == 1
    assert counts(instance).sum() == instance.num_replicas


def test_a_search_is_the_same_for_the_same_seed() -> None:
    instance = generate(0)
    one, other = (local_search(instance, rng=3, budget=100) for _ in range(2))
    assert one == other


def test_values_are_the_nearest_floats_to_fractions() -> None:
    instance = generate(2, num_experts=9, experts_per_gpu=3, kind="layer")
    plan = released_global(instance)
    exact = max(
        sum(
            Fraction(float(load)) * int(row[gpu]) / int(row.sum())
            for load, row in zip(instance.loads, plan.replicas, strict=True)
        )
        for gpu in range(instance.num_gpus)
    )
    assert instance.objective(plan) == float(exact)


def test_rules_name_what_is_broken() -> None:
    instance = EplbPlacement(loads=[2.0, 1.0, 1.0], num_gpus=2, slots=2, one_per_gpu=True)
    broken = instance.violations(EplbPlacementPlan(replicas=[[2, 0], [0, 1], [0, 0]]))
    assert {(one.rule, one.index) for one in broken} == {
        ("every_expert", (2,)),
        ("slots", (1,)),
        ("one_per_gpu", (0, 0)),
    }


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"slots": 1}, "slots: got 1, must be at least 2"),
        ({"slots": 4}, "slots: got 4, must be at most the experts, e = 3"),
        ({"loads": [1e308, 1e308, 0.0]}, "loads: got loads whose sum"),
        ({"loads": [1.0] * 6, "num_gpus": 10_000_000}, "num_gpus: got 10,000,000, must be at most"),
    ],
)
def test_what_has_no_plan_is_refused(fields: dict[str, object], said: str) -> None:
    with pytest.raises(InstanceError, match=said):
        EplbPlacement(**{"loads": [1.0, 2.0, 3.0], "num_gpus": 2, "slots": 2} | fields)


def test_tables_of_layers_are_read(tmp_path: Path) -> None:
    table = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    wanted = [EplbPlacement(loads=row, num_gpus=2, slots=2) for row in table]
    plain, history = tmp_path / "plain.json", tmp_path / "history.json"
    plain.write_text(json.dumps(table))
    half = (np.array(table) / 2).tolist()
    history.write_text(json.dumps({"load_history": [{"logical_expert_load": half}] * 2}))
    for given_table in (table, np.array(table), pd.DataFrame(table), plain, history):
        assert from_layers(given_table, num_gpus=2, slots=2) == wanted
    with pytest.raises(InstanceError, match="equally many"):
        from_layers([[1.0], [1.0, 2.0]], num_gpus=2, slots=2)
    with pytest.raises(InstanceError, match=r"\(layers, experts\)"):
        from_layers([1.0], num_gpus=2, slots=2)
