"""sia.goodput: worked examples, all plans of small instances, the core, and what the heuristics keep."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings

import formulations
from formulations.methods.types_core import CORE
from heuristics.sia.goodput import genetic_search, greedy_marginal, priced_types
from instances import InstanceError, PlanError
from instances.sia.configurations import TrainingModel, batch_sizes, sizes_within
from instances.sia.goodput import (
    Goodput,
    GoodputPlan,
    generate,
    one_must_wait,
    restart_not_worth_it,
    type_for_each,
)
from validation.problems.sia.goodput import strategy

from ..second_opinion import optimum


def all_plans(instance: Goodput) -> list[GoodputPlan]:
    choices = product(range(-1, instance.num_configs), repeat=instance.num_jobs)
    plans = (GoodputPlan(configs=np.array(configs)) for configs in choices)
    return [plan for plan in plans if not instance.violations(plan)]


@pytest.mark.parametrize(
    ("instance", "value", "configs"),
    [
        (one_must_wait(), 2.1, None),
        (type_for_each(), 8**-0.5 + 2**-0.5, [3, 1]),
        (restart_not_worth_it(), 1.0, [0]),
    ],
)
def test_worked_examples(instance: Goodput, value: float, configs: list[int] | None) -> None:
    solution = formulations.solve(instance)
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(value, abs=1e-12)
    if configs is not None:
        assert solution.plan.configs.tolist() == configs


@settings(max_examples=40, deadline=None)
@given(strategy(max_jobs=3, max_configs=3))
def test_optima_are_those_of_all_plans(instance: Goodput) -> None:
    best = min(map(instance.objective, all_plans(instance)))
    for method in formulations.methods(instance):
        solution = formulations.solve(instance, method=method.name)
        assert solution.status == "optimal"
        assert solution.objective == pytest.approx(best, rel=1e-9, abs=1e-9)
        assert solution.bound == pytest.approx(best, rel=1e-8, abs=1e-8)
    assert float(optimum(instance)) == pytest.approx(best, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_the_core_proves_what_the_model_proves(seed: int) -> None:
    instance = generate(seed, num_jobs=90, num_types=3)
    core = formulations.solve(instance)
    assert core.method == CORE.name
    assert core.status == "optimal"
    whole = formulations.solve(instance, method="model")
    assert core.objective == pytest.approx(whole.objective, rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_heuristics_keep_what_they_promise(seed: int) -> None:
    instance = generate(seed, num_jobs=25)
    least = formulations.solve(instance).objective
    greedy, priced = greedy_marginal(instance), priced_types(instance)
    searched = genetic_search(instance, rng=seed, generations=20, population=20)
    for plan in (greedy, priced, searched):
        assert not instance.violations(plan)
    assert least <= instance.objective(priced) + 1e-9
    assert instance.objective(priced) <= instance.objective(greedy)
    held = GoodputPlan(configs=instance.current)
    assert instance.objective(searched) <= instance.objective(held) + 1e-9


def test_a_search_is_the_same_for_the_same_seed() -> None:
    instance = generate(0, num_jobs=12)
    one, other = (genetic_search(instance, rng=3, generations=5, population=8) for _ in range(2))
    assert one.configs.tolist() == other.configs.tolist()


def test_with_a_positive_power_goodputs_are_to_be_great() -> None:
    instance = generate(1, num_jobs=3, power=1.0)
    solution = formulations.solve(instance)
    runs = np.flatnonzero(solution.plan.configs >= 0)
    kept = instance.current[runs] == solution.plan.configs[runs]
    factors = np.where(kept | (instance.current[runs] < 0), 1.0, instance.restart_factors[runs])
    assert -solution.objective == pytest.approx((factors * instance.goodputs[runs, solution.plan.configs[runs]]).sum())


def test_rules_name_what_is_broken() -> None:
    instance = Goodput(
        num_gpus=np.array([1]),
        config_types=np.array([0, 0]),
        config_gpus=np.array([1, 2]),
        goodputs=np.array([[1.0, 0.0], [1.0, 2.0]]),
    )
    broken = instance.violations(GoodputPlan(configs=np.array([1, 1])))
    assert {one.rule for one in broken} == {"gpus", "runs_there"}
    with pytest.raises(PlanError, match="must be -1 to 1"):
        instance.objective(GoodputPlan(configs=np.array([0, 2])))


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [("power", 0.0, "power"), ("restart_factors", np.array([1.5, 1.0]), "restart_factors")],
)
def test_what_means_nothing_is_refused(field: str, value: object, said: str) -> None:
    fields = {
        "num_gpus": np.array([1]),
        "config_types": np.array([0]),
        "config_gpus": np.array([1]),
        "goodputs": np.ones((2, 1)),
    }
    with pytest.raises(InstanceError, match=said):
        Goodput(**fields | {field: value})


def test_configurations_are_powers_of_two_and_whole_servers() -> None:
    assert sizes_within(8, 3) == [1, 2, 4, 8, 16, 24]
    assert sizes_within(4, 30)[-1] == 64
    assert sizes_within(6, 2) == [1, 2, 4, 6, 12]


def test_goodput_is_the_best_over_batch_sizes() -> None:
    model = TrainingModel(0.1, 0.01, 0.2, 0.01, 0.5, 0.02, overlap=1.0)
    gpus, servers, batches, noise = np.array([1, 2, 16]), np.array([1, 1, 2]), (32.0, 1024.0), 200.0
    found = model.goodputs(gpus, servers, batches, 64.0, noise)
    for count, on, goodput in zip(gpus.tolist(), servers.tolist(), found.tolist(), strict=True):
        waits = 0.0 if count == 1 else (0.2 if on == 1 else 0.5) + (0.01 if on == 1 else 0.02) * (count - 2)
        able = [
            size / (0.1 + 0.01 * size / count + waits) * (noise + 32) / (noise + size)
            for size in batch_sizes(*batches).tolist()
            if size <= 64 * count
        ]
        assert goodput == pytest.approx(max(able))
    assert model.goodputs(np.array([1]), np.array([1]), batches, 16.0, noise).tolist() == [0.0]
