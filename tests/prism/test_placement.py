"""prism.placement: worked examples, all plans of small instances, the released task, and what the heuristics keep."""

import hashlib
import math
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

import formulations
from formulations.engine.highs import Session
from formulations.methods.fillings import FILLINGS, _Search, filling_prices
from formulations.prism.placement import least_level
from heuristics.prism import placement as fast
from instances import Instance, InstanceError
from instances.files import text_of
from instances.prism.placement import (
    PrismPlacement,
    PrismPlacementPlan,
    full_to_the_brim,
    generate,
    large_last,
    public_instance,
    public_instances,
    stay_or_move,
)
from instances.reference import Reference
from validation.problems.prism.placement import strategy

from ..second_opinion import optimum

PUBLIC_FIRST = (8, [24.0, 16.0, 20.0, 13.0], [8.0, 3.0, 8.0, 8.0], [9.0, 7.0, 9.0, 7.0])
PUBLIC_DIGEST = "c8029d1987b6696b0c73f64fec3407643b3964bf092882d664714f406c433b2c"
PUBLIC_MEAN = 0.0478660773665175
"""What the released evaluator says of its instances, and of the program that it begins with."""


def all_plans(instance: PrismPlacement) -> list[PrismPlacementPlan]:
    choices = product(range(instance.num_gpus), repeat=instance.num_jobs)
    plans = (PrismPlacementPlan(gpus=np.array(gpus)) for gpus in choices)
    return [plan for plan in plans if not instance.violations(plan)]


@pytest.mark.parametrize(
    ("instance", "value"),
    [
        (large_last(), 5 / 8),
        (full_to_the_brim(), 1.0),
        (stay_or_move(), 1.0),
        (replace(stay_or_move(), move_limit=4.0), 1 / 6),
    ],
)
def test_worked_examples(instance: PrismPlacement, value: float) -> None:
    solution = formulations.solve(instance)
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(value, rel=1e-12)
    assert float(optimum(instance)) == pytest.approx(value, rel=1e-12)


@settings(max_examples=80, deadline=None)
@given(strategy(max_jobs=5, max_gpus=3))
def test_optima_are_those_of_all_plans(instance: PrismPlacement) -> None:
    best = min(map(instance.objective, all_plans(instance)), default=math.inf)
    assert least_level(instance) <= best * (1 + 1e-9)
    if math.isfinite(best):
        assert float(optimum(instance)) == pytest.approx(best, rel=1e-12)
    else:
        assert optimum(instance) is None
    for method in ("auto", *(one.name for one in formulations.methods(instance))):
        solution = formulations.solve(instance, method=method)
        if math.isinf(best):
            assert solution.status == "infeasible"
        else:
            assert solution.status == "optimal"
            assert solution.objective == pytest.approx(best, rel=1e-9)
            assert solution.bound == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_fillings_need_no_plan_to_begin_with(seed: int) -> None:
    instance = generate(seed, num_jobs=9, num_gpus=4, small=0.25, placed=0.6, movable=0.4)
    found = FILLINGS.solve(instance, formulations.Options())
    solution = formulations.solve(instance)
    assert found.status == solution.status == "optimal"
    assert found.objective == solution.objective == pytest.approx(float(optimum(instance)), rel=1e-12)


def test_a_gap_that_is_allowed_is_not_closed() -> None:
    instance = public_instances()[12]
    solution = formulations.solve(instance, mip_gap=0.2)
    least = formulations.solve(instance).objective
    assert solution.bound <= least <= solution.objective <= solution.bound * 1.25 * (1 + 1e-9)


def test_the_released_task_is_drawn_as_its_evaluator_draws_it() -> None:
    drawn = public_instances()
    assert len(drawn) == 50
    assert {instance.num_gpus for instance in drawn} == set(range(5, 10))
    assert all(instance.num_jobs == 2 * instance.num_gpus for instance in drawn)
    first = drawn[0]
    assert (first.num_gpus, first.sizes[:4].tolist(), first.rates[:4].tolist(), first.slos[:4].tolist()) == PUBLIC_FIRST
    # Of all numbers, as the evaluator's own function gave them.
    numbers = [[i.num_gpus, *np.column_stack([i.sizes, i.rates, i.slos]).ravel().astype(int).tolist()] for i in drawn]
    assert hashlib.sha256(repr(numbers).encode()).hexdigest() == PUBLIC_DIGEST


def test_the_released_program_s_plans_have_its_values() -> None:
    values = [instance.objective(fast.least_pressure(instance)) for instance in public_instances()]
    assert np.mean(values) == pytest.approx(PUBLIC_MEAN, rel=1e-12)


@pytest.mark.parametrize("number", [0, 12, 28, 43])
def test_the_library_s_own_search_has_optima_of_the_released_task(number: int) -> None:
    instance = public_instance(number)
    solution = formulations.solve(instance)
    assert solution.status == "optimal"
    assert instance.objective(fast.local_search(instance)) == solution.objective


def test_some_models_stay_at_home_so_that_others_may_move(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where moves are limited and all are used up, no two GPUs alone are divided better."""
    instance = generate(49, num_jobs=17, placed=1.0, movable=0.25)
    best = formulations.solve(instance).objective
    assert instance.objective(fast.local_search(instance)) == pytest.approx(best, rel=1e-9)
    monkeypatch.setattr(fast, "HOME", 0.0)
    assert instance.objective(fast.local_search(instance)) > 1.2 * best


@pytest.mark.parametrize("heuristic", [fast.least_pressure, fast.greatest_weight_first])
@pytest.mark.parametrize("delta", [2.0**-4, 2.0**-8, 2.0**-12])
def test_no_constant_bounds_one_model_after_the_other(heuristic: Any, delta: float) -> None:
    instance = PrismPlacement(
        memory=np.array([1.0, 1.0]),
        sizes=np.array([0.0, 0.0, 1 - delta]),
        rates=np.array([1 + delta, 1.0, delta]),
        slos=np.ones(3),
    )
    assert instance.objective(heuristic(instance)) == pytest.approx((1 + delta) / delta, rel=1e-12)
    assert formulations.solve(instance).objective == pytest.approx(2 + delta, rel=1e-12)


@pytest.mark.parametrize("number", [-1, 50])
def test_an_instance_that_the_released_task_does_not_have_is_refused(number: int) -> None:
    with pytest.raises(InstanceError, match=f"got {number}, must be 0 to 49"):
        public_instance(number)


def test_a_model_stays_unless_another_gpu_is_pressed_less_by_the_threshold() -> None:
    instance = PrismPlacement(
        memory=np.array([10.0, 10.0]),
        sizes=np.array([1.0, 1.0]),
        rates=np.array([2.0, 1.0]),
        slos=np.array([1.0, 1.0]),
        current=np.array([0, 0]),
    )
    assert fast.least_pressure(instance).gpus.tolist() == [0, 1]
    assert fast.least_pressure_unless_near(instance, threshold=0.2).gpus.tolist() == [0, 1]
    assert fast.least_pressure_unless_near(instance, threshold=0.3).gpus.tolist() == [0, 0]


def test_a_gpu_may_not_be_full_and_sums_are_exact() -> None:
    instance = PrismPlacement(
        memory=np.array([0.6]), sizes=np.array([0.1, 0.2, 0.3]), rates=np.ones(3), slos=np.ones(3)
    )
    # The doubles next to 0.1, 0.2 and 0.3 come to 2^-55 more than that next to 0.6.
    broken = instance.violations(PrismPlacementPlan(gpus=np.zeros(3, int)))
    assert [one.rule for one in broken] == ["memory"]
    assert formulations.solve(instance).status == "infeasible"


def test_rules_name_what_is_broken() -> None:
    instance = stay_or_move()
    assert [one.rule for one in instance.violations(PrismPlacementPlan(gpus=np.array([0, 1])))] == ["moves"]
    assert {one.rule for one in instance.violations(PrismPlacementPlan(gpus=np.array([0, 2])))} == {
        "gpu_exists",
        "moves",
    }
    assert instance.objective(PrismPlacementPlan(gpus=np.array([0, 2]))) == math.inf


@pytest.mark.parametrize(
    ("field", "value"),
    [("slos", np.array([1e-300, 1.0])), ("sizes", np.array([1e308, 1e308])), ("current", np.array([0, 2]))],
)
def test_what_means_nothing_is_refused(field: str, value: Any) -> None:
    changed: dict[str, Any] = {"rates": np.array([1e300, 1.0]), field: value}
    with pytest.raises(InstanceError, match=field):
        replace(stay_or_move(), **changed)


def test_it_comes_from_json_and_from_a_table() -> None:
    instance = generate(0, num_jobs=6, placed=0.5, movable=0.5)
    assert PrismPlacement.from_dict(instance.to_dict()) == instance
    limitless: Instance[Any] = generate(1, num_jobs=6)
    assert limitless.to_dict()["move_limit"] is None
    assert PrismPlacement.from_dict(limitless.to_dict()) == limitless
    frame = pd.DataFrame({"sizes": [10, 20], "rates": [1, 2], "slos": [5, 5]})
    assert PrismPlacement.from_frame(frame, memory=[80, 80]).weights.tolist() == [0.2, 0.4]


# --- the reference ---

NEARLY = 1 - 1e-9


def by_prices(instance: PrismPlacement, level: float) -> tuple[float, dict[str, Any]]:
    """What prices at a level prove, as the reference has it, and the prices."""
    models, moved = filling_prices(instance, level)
    told = {"level": level, "models": models.tolist(), "moved": moved}
    return float(Reference(text_of(instance)).bound(told)), told


@settings(max_examples=60, deadline=None)
@given(strategy(max_jobs=6, max_gpus=3))
def test_prices_prove_no_more_than_there_is(instance: PrismPlacement) -> None:
    best = optimum(instance)
    value = math.inf if best is None else float(best)
    for level in {value * NEARLY, 2 * value, 1.0} - {0.0, math.inf}:
        bound, told = by_prices(instance, level)
        assert bound in (0.0, level)
        assert bound <= value * (1 + 1e-12)
        # Whatever the prices are, they prove nothing that is not so.
        for factor in (-1.0, 0.5, 3.0):
            other = {**told, "models": [factor * price for price in told["models"]]}
            assert float(Reference(text_of(instance)).bound(other)) <= value * (1 + 1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {"num_jobs": 20, "placed": 1.0, "movable": 0.2},
        {"num_jobs": 20, "num_gpus": 9, "small": 0.3},
        {"num_jobs": 60, "num_gpus": 30},
    ],
)
def test_prices_of_models_prove_what_no_search_of_the_reference_does(options: dict[str, Any]) -> None:
    instance = generate(2, **options)
    solution = formulations.solve(instance)
    assert (solution.status, solution.method) == ("optimal", FILLINGS.name)
    level = solution.objective * NEARLY
    assert by_prices(instance, level)[0] == level
    assert by_prices(instance, solution.objective * (1 + 1e-6))[0] == 0.0


@pytest.mark.parametrize("seed", range(6))
def test_levels_that_prices_raise_are_below_all_plans(seed: int) -> None:
    instance = generate(seed, num_jobs=10, num_gpus=3, memory=100.0, placed=0.6 * (seed % 2), movable=0.4)
    best, low = float(optimum(instance)), least_level(instance)
    raised = _Search(instance).priced(Session(), low, 1.5 * best)
    assert low <= raised <= best * (1 + 1e-12)
    # From a level that no prices are for it goes nowhere.
    assert _Search(instance).priced(Session(), 1.1 * best, 1.5 * best) == 1.1 * best


@pytest.mark.parametrize("number", [0, 7, 21, 28])
def test_the_reference_s_search_proves_the_released_task(number: int) -> None:
    instance = public_instance(number)
    found = Reference(text_of(instance)).searched()
    assert float(found) == pytest.approx(formulations.solve(instance).objective, rel=1e-12)


def test_models_without_a_size_weigh_on_a_gpu_where_they_fill_none() -> None:
    instance = PrismPlacement(memory=[8.0], sizes=[0.0, 1.0], rates=[1.0, 0.0], slos=[1.0, 1.0])
    assert Reference(text_of(instance)).searched() == Fraction(1, 7)
    nothing = PrismPlacement(memory=[8.0], sizes=[0.0], rates=[0.0], slos=[1.0])
    assert Reference(text_of(nothing)).searched() == 0
