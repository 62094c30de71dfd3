"""Plans and bounds that need no search: feasible where they claim to be, and never past what a brute force proves."""

import itertools

import numpy as np
import pytest

import formulations
from formulations.elasticflow.greedy import Way, least_gpu_slots, served, served_most
from formulations.engine.protocol import formulation
from instances.elasticflow import admission, allocation, best_effort, minimum_satisfactory_share
from instances.elasticflow.minimum_satisfactory_share import MinimumSatisfactoryShare
from instances.elasticflow.sharing import SlotPlan


def small(seed: int) -> MinimumSatisfactoryShare:
    """Two jobs, two or three slots, two GPUs, curves of any shape."""
    rng = np.random.default_rng(seed)
    return MinimumSatisfactoryShare(
        num_gpus=2,
        iterations=rng.integers(0, 9, 2).astype(float),
        deadlines=rng.integers(1, 4, 2),
        throughputs=np.column_stack([np.zeros(2), rng.integers(0, 6, (2, 2))]).astype(float),
    )


@pytest.mark.parametrize("seed", range(60))
def test_one_pass_against_all_plans(seed: int) -> None:
    instance = small(seed)
    shape = instance.num_jobs, instance.horizon
    cells = itertools.product(range(3), repeat=shape[0] * shape[1])
    plans = (SlotPlan(gpus=np.array(cell).reshape(shape)) for cell in cells)
    values = [instance.objective(plan) for plan in plans if not instance.violations(plan)]
    gpus, done = served_most(instance)
    if done.all():
        assert not instance.violations(SlotPlan(gpus=gpus))
        assert instance.objective(SlotPlan(gpus=gpus)) >= min(values)
    if values:
        assert least_gpu_slots(instance) <= min(values)


@pytest.mark.parametrize("way", ["even", "early", "fast"])
@pytest.mark.parametrize("seed", range(20))
def test_who_is_served_is_done_and_nobody_takes_too_much(seed: int, way: Way) -> None:
    instance = admission.generate(seed, num_jobs=8, num_gpus=6)
    gpus, done = served(instance, np.random.default_rng(seed).permutation(8), way)
    assert (gpus.sum(axis=0) <= 6).all()
    assert (instance.work(gpus)[done] >= instance.iterations[done]).all()
    assert not gpus[~done].any()
    assert not (gpus * (np.arange(instance.horizon) >= instance.deadlines[:, None])).any()


@pytest.mark.parametrize("module", [admission, allocation, best_effort, minimum_satisfactory_share])
def test_no_search_ends_with_less_than_what_is_at_hand(module: object) -> None:
    kept = 0
    for seed in range(12):
        instance = module.generate(seed, num_jobs=5, num_gpus=4)  # type: ignore[attr-defined]
        trivial = formulation(instance.problem).trivial
        assert trivial is not None
        plan = trivial(instance)
        if instance.violations(plan):
            continue
        kept += 1
        hasty = formulations.solve(instance, time_limit=1e-6)
        assert hasty.objective is not None
        assert hasty.plan is not None
        assert not instance.violations(hasty.plan)
        value = instance.objective(plan)
        assert hasty.objective <= value if instance.sense == "min" else hasty.objective >= value
    assert kept


def test_a_plan_that_admits_everybody_needs_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = admission.Admission(
        num_gpus=4,
        iterations=np.array([4.0, 4.0]),
        deadlines=np.array([2, 2]),
        throughputs=np.tile([0.0, 2, 3, 3.5, 3.5], (2, 1)),
        arrival_order=np.arange(2),
    )
    monkeypatch.setattr("formulations.engine.solving.build", lambda instance: pytest.fail("a model was built"))
    solution = formulations.solve(instance)
    assert (solution.status, solution.objective, solution.bound) == ("optimal", 2, 2)
    assert (solution.method, solution.proof) == ("at hand", "argument")
