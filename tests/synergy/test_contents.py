"""Contents of servers: bounds at any prices beside the search of all plans, plans that fill, amounts in units."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import formulations
from formulations.engine import clock
from formulations.methods import GaveUp
from formulations.methods import contents as contents_module
from formulations.methods.contents import Contents, Program, refilled, units
from heuristics.synergy.tuning import balanced_tune
from instances.synergy.tuning import Tuning, generate

from ..effort import rounds
from ..second_opinion import optimum
from .test_tuning import tiny


def drawn(rng: np.random.Generator) -> Tuning | None:
    """Return a small instance, half of them with amounts that no unit counts; None where a job has no way to run."""
    fields: dict[str, Any] = tiny(rng)
    if rng.random() < 0.5:
        fields["configs"] = [np.array(table, float) * [1.0, rng.uniform(0.7, 1), 1.0] for table in fields["configs"]]
    instance = Tuning(**fields)
    return instance if all(map(np.any, instance.usable_configs)) else None


def test_prices_bound_every_plan_and_contents_make_plans() -> None:
    """The bound of any prices is never below the best of all plans in fractions, nor a plan that is filled above it."""
    rng, whole, met, bounded = np.random.default_rng(5), 0, 0, 0
    for _ in rounds(60):
        instance = drawn(rng)
        if instance is None:
            continue
        try:
            contents = Contents(instance)
        except GaveUp:
            continue
        best = optimum(instance)
        program = Program(contents, None)
        # First prices as wild as may be, which bound as well as any.
        program._priced(rng.normal(0, 3, len(contents.kinds)), np.inf)
        bounds = [program.bound]
        program.run()
        bounds.append(program.bound)
        filled = contents.filled(contents.count, instance.num_servers, program.prices)
        plan = None if filled is None else contents.plan(filled)
        if plan is not None and not contents.instance.violations(plan):
            assert best is not None
            assert instance.objective(plan) <= float(best) * (1 + 1e-9)
            again = refilled(contents, contents.contents(plan), program.prices, program.bound, 0)
            assert not instance.violations(contents.plan(again))
            assert instance.objective(contents.plan(again)) >= instance.objective(plan) * (1 - 1e-9)
            whole += 1
        if best is not None:
            assert min(bounds) >= float(best)
            bounded += 1
            met += program.bound <= float(best) * (1 + 1e-6)
    assert bounded > len(rounds(60)) / 4
    assert met > bounded / 2
    assert whole > bounded / 2


def test_the_method_finds_the_optimum_of_all_plans() -> None:
    rng = np.random.default_rng(6)
    for _ in rounds(12):
        instance = drawn(rng)
        if instance is None:
            continue
        best, found = optimum(instance), formulations.solve(instance, method="contents")
        if "no part" in found.message:
            continue
        assert found.status == ("infeasible" if best is None else "optimal")
        assert best is None or found.objective == pytest.approx(float(best), rel=1e-6)


def test_units_count_amounts_on_the_safe_side() -> None:
    """What is above the limit in the least units does not fit, and what is not above it in the most does."""
    rng, alike = np.random.default_rng(0), 0
    for _ in rounds(300):
        capacity = float(rng.choice([24, 28, 500, 0.7, 1e-3, 1e6]))
        step = capacity / int(rng.integers(1, 30)) if rng.random() < 0.6 else rng.random() * capacity
        amounts = step * rng.integers(0, 6, 4) * (1 if rng.random() < 0.5 else rng.uniform(0.999, 1, 4))
        limit, least, most = units(amounts, capacity)
        assert (least <= most).all()
        alike += bool((least == most).all())
        counts = np.indices((4, 4, 4, 4)).reshape(4, -1).T
        total = counts @ amounts
        assert (counts[total <= capacity] @ least <= limit).all()
        assert (total[counts @ most <= limit] <= capacity * (1 + 1e-7)).all()
    assert alike > 100


def test_amounts_that_are_rounded_to_hundredths_are_counted_in_whole_units() -> None:
    limit, least, most = units(np.array([20.83, 62.5, 125.0, 250.0, 4 * 20.83]), 500.0)
    assert limit == 24
    assert least.tolist() == most.tolist() == [1, 3, 6, 12, 4]


def test_nothing_fits_a_server_that_has_nothing() -> None:
    limit, least, most = units(np.array([0.0, 1e-300, 1.0]), 0.0)
    assert limit == 0
    assert least.tolist() == most.tolist() == [0, 1, 1]


@pytest.mark.parametrize("fields", [{"allow_split": False}, {"split_penalty": 0.1}])
def test_splits_that_cost_something_leave_little_between_plan_and_bound(
    fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prices of contents are far closer than the first stage, and filling at them far better than Tune."""
    instance = replace(generate(0, num_servers=6, mix=(33, 33, 33)), **fields)
    monkeypatch.setattr(contents_module, "PATIENCE", 2)
    contents = Contents(instance)
    assert contents.exact
    program = Program(contents, None)
    program.run()
    filled = contents.filled(contents.count, 6, program.prices)
    assert filled is not None
    plan = contents.plan(refilled(contents, filled, program.prices, program.bound, 0))
    assert instance.violations(plan) == []
    assert instance.objective(plan) > instance.objective(balanced_tune(instance))
    assert program.bound <= instance.objective(plan) * 1.005


def test_contents_of_a_plan_are_that_plan() -> None:
    instance = generate(3, num_servers=4, widest=16)
    contents, plan = Contents(instance), balanced_tune(instance)
    assert contents.plan(contents.contents(plan)).gpus.sum(axis=0).tolist() == plan.gpus.sum(axis=0).tolist()
    assert instance.objective(contents.plan(contents.contents(plan))) >= instance.objective(plan)


def test_filling_ends_with_the_time() -> None:
    contents = Contents(generate(0, num_servers=4, allow_split=False))
    with clock.within(0), pytest.raises(clock.TimeIsUp):
        contents.filled(contents.count, 4)
