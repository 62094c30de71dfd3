"""eplb.placement: worked examples, all plans of small instances, patterns of GPUs, and what the heuristics keep."""

import json
import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import formulations
from formulations import LinearProgram, Session
from formulations.engine import clock
from formulations.engine.highs import Result
from formulations.engine.options import Options
from formulations.eplb.placement import counts, least_load
from formulations.methods import gpu_patterns
from formulations.methods.gpu_nodes import divided, divisions
from formulations.methods.gpu_patterns import PATTERNS, Layers, Patterns
from heuristics.eplb.placement import (
    distinct_longest_first,
    fewest_extra,
    keep_and_exchange,
    local_search,
    lowest_peaks,
    released_global,
    released_hierarchical,
)
from instances import InstanceError
from instances.eplb.placement import (
    EplbPlacement,
    EplbPlacementPlan,
    eight_experts,
    from_layers,
    generate,
    hot_expert,
    in_order,
    released_groups,
    released_layers,
    stay_or_move,
    two_hours,
)
from validation.problems.eplb.placement import strategy

from ..second_opinion import optimum


def least_of_all_plans(instance: EplbPlacement) -> Fraction:
    """Fill the GPUs one by one with every multiset of experts."""
    e, size = instance.num_experts, instance.gpus_per_node
    fillings = list(combinations_with_replacement(range(e), instance.slots))
    tuples = combinations_with_replacement if instance.is_plain else lambda some, times: product(some, repeat=times)
    vectors = [instance.loads.tolist(), *instance.more_loads.tolist()]
    least = None
    for chosen in tuples(fillings, instance.num_gpus):
        held = [expert for filling in chosen for expert in filling]
        if set(held) != set(range(e)):
            continue
        if instance.one_per_gpu and any(len(set(filling)) < len(filling) for filling in chosen):
            continue
        nodes = {(instance.groups[expert], gpu // size) for gpu, filling in enumerate(chosen) for expert in filling}
        if instance.num_nodes > 1 and len(nodes) > len({group for group, _ in nodes}):
            continue
        moves = 0
        if instance.current.size:
            for gpu, filling in enumerate(chosen):
                before = list(np.repeat(np.arange(e), instance.current[:, gpu]))
                moves += len(filling) - sum(min(filling.count(one), before.count(one)) for one in set(filling))
        if moves > instance.move_limit:
            continue
        greatest = []
        for loads in vectors:
            shares = [Fraction(load) / held.count(expert) for expert, load in enumerate(loads)]
            greatest.append(max(sum((shares[expert] for expert in filling), Fraction(0)) for filling in chosen))
        value = max(greatest) if instance.aggregate == "worst" else sum(greatest, Fraction(0)) / len(greatest)
        value += Fraction(instance.move_price) * moves
        least = value if least is None else min(least, value)
    assert least is not None
    return least


SMALL = {"max_gpus": 2, "max_slots": 2}


@settings(max_examples=60, deadline=None)
@given(st.one_of(strategy(), strategy(**SMALL), strategy(max_experts=3)))
def test_optima_are_those_of_all_plans(instance: EplbPlacement) -> None:
    if not instance.is_plain and math.comb(instance.num_experts + instance.slots - 1, instance.slots) > 12:
        return
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
        (two_hours(), 3.0, 3.0),
        (stay_or_move(), 7.0, 7.0),
    ],
)
def test_worked_examples(instance: EplbPlacement, released: float, best: float) -> None:
    assert instance.objective(released_global(instance)) == pytest.approx(released, rel=1e-12)
    solution = formulations.solve(instance)
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(best, rel=1e-9)


def test_the_released_example_is_that_of_its_page() -> None:
    """The output that stands in the README of the released code."""
    stated = [
        [5, 6, 5, 7, 8, 4, 3, 4, 10, 9, 10, 2, 0, 1, 11, 1],
        [7, 10, 6, 8, 6, 11, 8, 9, 2, 4, 5, 1, 5, 0, 3, 1],
    ]
    for instance, experts in zip(released_groups(), stated, strict=True):
        replicas = np.zeros((12, 8), np.int64)
        np.add.at(replicas, (experts, np.arange(16) // 2), 1)
        assert released_hierarchical(instance) == EplbPlacementPlan(replicas=replicas)
        assert not instance.violations(released_hierarchical(instance))
        assert {one.rule for one in instance.violations(released_global(instance))} == {"one_node"}


@pytest.mark.parametrize(("layer", "released", "best"), [(0, 156.0, 151.0), (1, 179.5, 179.5)])
def test_the_released_example_with_its_groups(layer: int, released: float, best: float) -> None:
    instance = released_groups()[layer]
    assert instance.objective(released_hierarchical(instance)) == pytest.approx(released, rel=1e-12)
    solution = formulations.solve(instance)
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(best, rel=1e-9)


def test_where_nodes_do_not_divide_the_groups_the_released_policy_is_global() -> None:
    instance = replace(released_groups()[0], groups=np.arange(12) // 4)
    assert released_hierarchical(instance) == released_global(instance)
    assert not instance.violations(distinct_longest_first(instance))


def test_what_is_held_once_stays_but_for_exchanges() -> None:
    # Even already: the one further replica goes to the hot expert, everything else is where it was.
    instance = EplbPlacement(loads=[8.0, 4, 4, 4, 4], num_gpus=3, slots=2, current=in_order_of(5, 3, 2))
    plan = keep_and_exchange(instance)
    assert plan.replicas.sum(axis=1).tolist() == [2, 1, 1, 1, 1]
    assert instance.objective(plan) == 8.0
    assert instance.moves(plan) <= 2


def in_order_of(experts: int, gpus: int, slots: int) -> np.ndarray:
    return in_order(EplbPlacement(loads=np.ones(experts), num_gpus=gpus, slots=slots)).replicas


def test_peaks_of_two_hours_are_low_together() -> None:
    instance = two_hours()
    assert instance.objective(released_global(replace(instance, more_loads=np.zeros((0, 2))))) == 4.0
    assert instance.objective(lowest_peaks(instance)) == 3.0


def test_held_replicas_stay_where_gpus_can_be_exchanged() -> None:
    plain = released_layers()[0]
    held = released_global(plain).replicas[:, ::-1]
    instance = replace(plain, current=held, move_price=1.0)
    assert instance.moves(released_global(instance)) > 0
    assert instance.moves(fewest_extra(instance)) == 0


@pytest.mark.parametrize("num_gpus", [2, 3, 4, 8, 16])
def test_the_released_policy_is_almost_twice_the_optimum(num_gpus: int) -> None:
    instance = hot_expert(num_gpus)
    assert instance.num_replicas == instance.num_experts + num_gpus
    solution = formulations.solve(instance)
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(1 / num_gpus, rel=1e-12)
    ratio = instance.objective(released_global(instance)) / solution.objective
    assert ratio == pytest.approx(2 - 2 / (num_gpus + 1), rel=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 3), st.sampled_from([1, 2]), st.data())
def test_the_released_policy_is_no_worse_with_two_slots(num_gpus: int, slots: int, data: st.DataObject) -> None:
    experts = data.draw(st.integers(slots, num_gpus * slots))
    loads = data.draw(st.lists(st.integers(0, 12), min_size=experts, max_size=experts))
    instance = EplbPlacement(loads=loads, num_gpus=num_gpus, slots=slots)
    most = 1 if slots == 1 else 2 - Fraction(2, num_gpus + 1)
    best = least_of_all_plans(instance)
    assert instance.objective(released_global(instance)) <= float(most * best) * (1 + 1e-12)


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


@settings(max_examples=60, deadline=None)
@given(strategy(), st.randoms(use_true_random=False))
def test_gpus_filled_in_any_order_are_the_best_plan(instance: EplbPlacement, random: Random) -> None:
    plain = EplbPlacement(
        loads=instance.loads,
        more_loads=instance.more_loads,
        num_gpus=instance.num_gpus,
        slots=instance.slots,
        one_per_gpu=instance.one_per_gpu,
    )
    best = float(least_of_all_plans(plain))
    order = np.array(random.sample(range(plain.num_experts), plain.num_experts))
    if best == 0:
        return
    found = Layers(Patterns(plain, 1.5 * best), order, math.inf).least()
    assert found is not None
    assert not plain.violations(found)
    assert plain.objective(found) == pytest.approx(best, rel=1e-12)
    assert Layers(Patterns(plain, best * (1 - 1e-9)), order, math.inf).least() is None


@pytest.mark.parametrize("fewest", [0, 1, 2])
def test_divisions_are_all_ways_to_put_groups_on_nodes(fewest: int) -> None:
    for num_groups, num_nodes, most in product(range(1, 6), range(1, 4), range(1, 6)):
        wanted = set()
        for where in product(range(num_nodes), repeat=num_groups):
            nodes = [sum(1 << group for group in range(num_groups) if where[group] == one) for one in range(num_nodes)]
            if all(fewest <= node.bit_count() <= most for node in nodes):
                wanted.add(tuple(sorted(nodes)))
        found = [tuple(sorted(way)) for way in divisions(num_groups, num_nodes, fewest, most)]
        assert len(found) == len(set(found))
        assert set(found) == wanted


@pytest.mark.parametrize(("num_nodes", "more_vectors"), [(1, 2), (2, 0), (2, 1)])
@pytest.mark.parametrize("kind", ["zipf", "hot", "layer"])
def test_nodes_and_vectors_have_the_optimum_of_the_one_model(num_nodes: int, more_vectors: int, kind: str) -> None:
    instance = generate(
        5, num_experts=4 + 2 * num_nodes, kind=kind, num_nodes=num_nodes, num_groups=2 * num_nodes,
        more_vectors=more_vectors,
    )  # fmt: skip
    found = [formulations.solve(instance, method=name) for name in (PATTERNS.name, "model")]
    assert [one.status for one in found] == ["optimal", "optimal"]
    assert found[0].objective == pytest.approx(found[1].objective, rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_nodes_of_two_gpus_have_the_least_of_all_plans(seed: int) -> None:
    instance = EplbPlacement(
        loads=np.random.default_rng(seed).integers(0, 30, 6),
        more_loads=np.random.default_rng(seed + 9).integers(0, 30, (seed % 2, 6)),
        num_gpus=4,
        slots=2,
        num_nodes=2,
        groups=[0, 1, 2, 0, 1, 2],
    )
    solution = formulations.solve(instance, method=PATTERNS.name)
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(float(least_of_all_plans(instance)), rel=1e-9)


def test_a_node_of_few_experts_holds_the_same_on_every_gpu() -> None:
    # The hot group is alone on its node, whose GPUs hold its two experts and one of them once more.
    instance = EplbPlacement(
        loads=[9.0, 3, 1, 1, 1, 1, 1, 1], num_gpus=4, slots=3, num_nodes=2, groups=[0, 0, 1, 1, 2, 2, 3, 3]
    )
    plan, result = divided(instance, in_order(instance), Options())
    assert not instance.violations(plan)
    assert (result.status, result.bound, instance.objective(plan)) == ("optimal", 6.0, 6.0)
    first, second = plan.replicas[:, plan.replicas[0] > 0].T.tolist()
    assert first == second


def test_optima_of_sixteen_experts_do_not_rest_on_one_run() -> None:
    for kind, best in (("zipf", 12515.75), ("layer", 12531.5)):
        solution = formulations.solve(generate(2, kind=kind), verify=True)
        assert (solution.status, solution.proof) == ("optimal", "two runs")
        assert solution.objective == best


def test_the_last_gpu_s_load_is_a_sum_that_rounding_may_make_greater() -> None:
    """Ten replicas of 8.25 and four of 4 leave it .825 and 1, and a tenth of 8.25 is more than .825 in floats."""
    instance = EplbPlacement(loads=np.array([8.25, 2.0, 4.0]), num_gpus=8, slots=2, one_per_gpu=False)
    solution = formulations.solve(instance, method="patterns of GPUs")
    assert (solution.status, solution.objective) == ("optimal", 1.825)
    assert formulations.solve(instance, method="one model").objective == pytest.approx(1.825, rel=1e-9)


def test_where_ways_are_too_many_the_program_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = generate(1, num_experts=6)
    best = formulations.solve(instance)
    assert "one after the other" in best.message
    for name in ("STATES", "FEW"):
        with monkeypatch.context() as patch:
            patch.setattr(gpu_patterns, name, 0)
            solution = formulations.solve(instance, method=PATTERNS.name)
        assert "one after the other" not in solution.message
        assert solution.status == "optimal"
        assert solution.objective == pytest.approx(best.objective, rel=1e-6)


def test_the_limit_is_left_to_steps_that_look_at_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Presolve of tens of thousands of patterns does not, and more columns than that are left alone."""
    instance = generate(1, num_experts=6)
    asked = []
    run = Session.run

    def noted(self: Session, program: LinearProgram, **options: Any) -> Result:
        asked.append((program.is_mip, options.get("presolve", True), clock.left() <= 600))
        return run(self, program, **options)

    monkeypatch.setattr(gpu_patterns, "FEW", 0)
    monkeypatch.setattr(Session, "run", noted)
    assert formulations.solve(instance, method=PATTERNS.name, time_limit=600).status == "optimal"
    searches = [(presolve, limited) for is_mip, presolve, limited in asked if is_mip]
    assert searches
    assert set(searches) == {(False, True)}
    asked.clear()
    monkeypatch.setattr(gpu_patterns, "COLUMNS", 0)
    solution = formulations.solve(instance, method=PATTERNS.name, time_limit=600)
    assert (solution.status, solution.message) == ("feasible", "more than 0 patterns of a GPU; the plan is the start")
    assert not asked


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("factor", [2.0**40, 2.0**-40])
def test_loads_in_any_unit_have_one_optimum(seed: int, factor: float) -> None:
    """Vectors and moves are for the one model, whose rows had 1 for the greatest load beside 1e13 for a replica."""
    rng = np.random.default_rng(seed)
    loads = np.round(rng.lognormal(size=(3, 6)) * 100)
    held = fewest_extra(EplbPlacement(loads=rng.permutation(loads[0]), num_gpus=4, slots=2)).replicas
    fields: dict[str, Any] = {"num_gpus": 4, "slots": 2, "aggregate": "mean", "current": held, "move_limit": 2.0}
    instance = EplbPlacement(loads=loads[0], more_loads=loads[1:], **fields)
    other = EplbPlacement(loads=loads[0] * factor, more_loads=loads[1:] * factor, **fields)
    best, found = formulations.solve(instance), formulations.solve(other)
    assert (best.status, found.status) == ("optimal", "optimal")
    assert found.objective == pytest.approx(best.objective * factor, rel=1e-9)


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
    for plan in (extra, searched):
        assert not instance.violations(plan)
    for plan in (distinct, keep_and_exchange(instance), lowest_peaks(instance)):
        assert {one.rule for one in instance.violations(plan)} <= {"moves"}
    assert {one.rule for one in instance.violations(released)} <= {"one_per_gpu", "one_node", "moves"}
    assert instance.objective(searched) <= instance.objective(extra)
    assert instance.slots > np.bincount(instance.groups).min() or distinct.replicas.max() == 1
    assert counts(instance.loads, instance.num_replicas, instance.most_replicas).sum() == instance.num_replicas


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
        ({"num_nodes": 3}, "num_nodes: got 3, must divide the GPUs, 2"),
        ({"groups": [0, 0, 1]}, "groups: got \\[2, 1\\] experts in the groups, must be equally many"),
        ({"groups": [0, 1, 3]}, "groups: got group 3, must be below the experts, 3"),
        ({"num_nodes": 2}, "groups: some node has 3 experts of whole groups, and 2 slots"),
        ({"num_nodes": 2, "loads": [1.0] * 4, "groups": [0] * 4}, "groups: some node has 4 experts"),
        ({"current": [[1, 1], [1, 0], [0, 0]]}, "current: must be a plan, and breaks every_expert at index \\[2\\]"),
        ({"current": [[1], [1], [0]]}, "current: got 1 GPUs, must be num_gpus = 2"),
        ({"move_price": 1e308}, "move_price: got a price whose sum"),
        ({"aggregate": "sum"}, "aggregate: got 'sum', must be one of worst, mean"),
        (
            {"num_nodes": 2, "loads": [1.0] * 4, "slots": 3, "groups": [0, 0, 1, 1], "one_per_gpu": True},
            "groups: some node has 2 experts of whole groups, must have at least 3",
        ),
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
    grouped = from_layers(table, num_gpus=3, slots=2, num_nodes=3, num_groups=3)
    assert [one.groups.tolist() for one in grouped] == [[0, 1, 2], [0, 1, 2]]
    with pytest.raises(InstanceError, match="num_groups: got 2, must divide the experts, 3"):
        from_layers(table, num_gpus=2, slots=2, num_groups=2)
    with pytest.raises(InstanceError, match="equally many"):
        from_layers([[1.0], [1.0, 2.0]], num_gpus=2, slots=2)
    with pytest.raises(InstanceError, match=r"\(layers, experts\)"):
        from_layers([1.0], num_gpus=2, slots=2)
