"""Plans and bounds that need no search: feasible where they claim to be, and never past what a brute force proves."""

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import formulations
from formulations.elasticflow.greedy import (
    WAYS,
    Way,
    could_be_served,
    least_gpu_slots,
    least_gpu_slots_filled,
    served,
    served_most,
)
from formulations.engine.protocol import formulation
from instances.elasticflow import admission, allocation, best_effort, minimum_satisfactory_share
from instances.elasticflow.minimum_satisfactory_share import MinimumSatisfactoryShare
from instances.elasticflow.sharing import SlotPlan
from instances.files import text_of
from instances.reference import Reference
from validation.catalogue import CATALOGUE

from ..effort import rounds


def small(seed: int) -> MinimumSatisfactoryShare:
    """Two jobs, two or three slots, two GPUs, curves of any shape."""
    rng = np.random.default_rng(seed)
    return MinimumSatisfactoryShare(
        num_gpus=2,
        iterations=rng.integers(0, 9, 2).astype(float),
        deadlines=rng.integers(1, 4, 2),
        throughputs=np.column_stack([np.zeros(2), rng.integers(0, 6, (2, 2))]).astype(float),
    )


def test_one_pass_against_all_plans() -> None:
    all_served = feasible = 0
    for seed in range(60):
        instance = small(seed)
        least = Reference(text_of(instance)).optimum()
        gpus, done = served_most(instance, np.arange(2))
        if done.all():
            assert not instance.violations(SlotPlan(gpus=gpus))
            assert instance.objective(SlotPlan(gpus=gpus)) >= least
            all_served += 1
        if not math.isinf(least):
            assert least_gpu_slots(instance) <= least
            feasible += 1
    assert 10 < all_served <= feasible


def test_gpu_slots_alone_on_concave_curves_against_all_plans(brute: Any) -> None:
    raised = feasible = 0
    for seed in rounds(100):
        instance = MinimumSatisfactoryShare(**brute.draw(seed, concave=True))
        least = brute.least_gpu_time(instance)
        if least is not None:
            assert least_gpu_slots(instance) <= least, seed
            counts = np.arange(1, instance.num_gpus + 1)
            rates = np.maximum((instance.throughputs[:, 1:] / counts).max(axis=1), 1e-9)
            raised += least_gpu_slots(instance) > np.ceil(instance.iterations / rates - 1e-6).sum()
            feasible += 1
    assert 0 < raised < feasible


def test_gpu_slots_with_slot_0_filled_against_all_plans() -> None:
    met = raised = concave = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        curves = rng.integers(0, 7, (2, 3))
        if seed % 2:
            # Each GPU adds no more than the one before.
            curves = np.cumsum(np.sort(curves, axis=1)[:, ::-1], axis=1)
        instance = allocation.ElasticFlowAllocation(
            num_gpus=3,
            iterations=rng.integers(0, 16, 2).astype(float) + rng.choice([0.0, 0.3]),
            deadlines=rng.integers(1, 4, 2),
            throughputs=np.column_stack([np.zeros(2), curves]).astype(float),
        )
        least = Reference(text_of(instance)).optimum()
        if math.isinf(least):
            continue
        bound = least_gpu_slots_filled(instance)
        assert bound <= least, seed
        assert formulations.solve(instance).objective == least
        met += bound == least
        raised += bound > least_gpu_slots(instance)
        concave += instance.concave
    assert met > 30
    assert raised > 10
    assert concave > 30


@pytest.mark.parametrize("num_jobs", [4, 7])
def test_what_slot_0_proves_is_what_the_model_has(num_jobs: int) -> None:
    at_hand = 0
    for seed in range(4):
        instance = allocation.generate(seed, num_jobs=num_jobs, num_gpus=4 * num_jobs, tightness=0.15)
        bound = least_gpu_slots_filled(instance)
        assert bound <= formulations.solve(formulations.build(instance)).objective + 1e-6
        found = formulations.solve(instance)
        assert found.status == "optimal"
        assert instance.violations(found.plan) == []
        assert found.objective == pytest.approx(formulations.solve(formulations.build(instance)).objective)
        at_hand += found.method == "at hand"
    assert at_hand


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(20))
def test_who_is_served_is_done_and_nobody_takes_too_much(seed: int, way: Way) -> None:
    instance = admission.generate(seed, num_jobs=8, num_gpus=6)
    gpus, done = served(instance, np.random.default_rng(seed).permutation(8), way)
    assert not instance.violations(admission.AdmissionPlan(admitted=done, gpus=gpus))


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


def window(module: Any, seed: int) -> Any:
    """Jobs of a made trace and a made table of throughputs, as files have them."""
    rng = np.random.default_rng(seed)
    count = 40
    table = pd.DataFrame(
        {"model": ["m", "m", "n"], "batch_size": [16, 32, 16], "1": [10.0, 7, 3], "2": [17.0, 13, 5.5]}
    )
    table = table.assign(**{"4": [27.0, 22, 9], "8": [35.0, 31, 11]})
    trace = pd.DataFrame(
        {
            "job_id": [f"job {job}" for job in range(count)],
            "submit_time": np.sort(rng.uniform(0, 36000, count)),
            "duration": 600 * 10 ** rng.uniform(0, 1.5, count),
            "num_gpu": rng.choice([1, 2, 4, 8], count, p=[0.5, 0.2, 0.2, 0.1]),
        }
    )
    made = module.from_trace(
        rng, throughputs=table, trace=trace, num_jobs=30, num_gpus=int(rng.choice([8, 16])), slot_seconds=600.0
    )
    if module is admission:
        return made
    # All are to be done: less work than the trace has.
    fastest = made.throughputs.max(axis=1) * made.deadlines
    return replace(made, iterations=np.minimum(made.iterations, fastest) * rng.choice([0.1, 0.2]))


@pytest.mark.parametrize("module", [admission, allocation, minimum_satisfactory_share])
def test_no_heuristic_knows_more_than_the_plan_at_hand(module: Any) -> None:
    compared = 0
    for seed in rounds(12):
        tightness = (0.5, 1.0, 2.0)[seed % 3] if module is admission else (0.1, 0.3)[seed % 2]
        curves = ("linear", "concave")[seed % 2]
        made = module.generate(seed, num_jobs=20, num_gpus=16, horizon=30, tightness=tightness, curves=curves)
        for instance in (made, window(module, seed)):
            offered = formulation(instance.problem)
            assert offered.trivial is not None
            assert offered.trivial_bound is not None
            plan = offered.trivial(instance)
            known = None if instance.violations(plan) else instance.objective(plan)
            sign = 1 if instance.sense == "min" else -1
            if known is not None:
                assert sign * known >= sign * offered.trivial_bound(instance)
            for heuristic in CATALOGUE[instance.problem].heuristics.values():
                other = heuristic.function(instance)
                if other is not None and not instance.violations(other):
                    compared += 1
                    assert known is not None
                    assert sign * known <= sign * instance.objective(other)
    assert compared


@pytest.mark.parametrize("seed", range(30))
def test_no_plan_admits_more_than_could_be_done_alone(seed: int) -> None:
    drawn = small(seed)
    instance = admission.Admission(
        num_gpus=drawn.num_gpus,
        iterations=drawn.iterations,
        deadlines=drawn.deadlines,
        throughputs=drawn.throughputs,
        arrival_order=np.arange(2),
    )
    possible = could_be_served(instance)
    for job in range(2):
        slots = itertools.product(range(3), repeat=int(instance.deadlines[job]))
        done = max(sum(instance.throughputs[job, list(held)]) for held in slots)
        assert possible[job] == (done >= instance.iterations[job])
