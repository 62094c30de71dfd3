"""Worst cases of Prism's heuristics against enumeration, and a family for GPUs of any memory."""

from itertools import product

import numpy as np
import pytest

import formulations
from heuristics.prism.placement import greatest_weight_first, least_pressure
from instances.prism.placement import PrismPlacement
from validation import worst_case

HEURISTICS = {"least_pressure": least_pressure, "greatest_weight_first": greatest_weight_first}


def models(weights, sizes, memory, num_gpus=2):
    return PrismPlacement(
        memory=np.full(num_gpus, float(memory)),
        sizes=np.array(sizes, float),
        rates=np.array(weights, float),
        slos=np.ones(len(sizes)),
    )


def ratio(instance, heuristic):
    """The heuristic's value by the least of all plans; 1 where it finds none, or the least is 0."""
    plan = HEURISTICS[heuristic](instance)
    if plan is None:
        return 1.0
    plans = product(range(instance.num_gpus), repeat=instance.num_jobs)
    best = min(
        max(
            sum(instance.weights[held]) / free if (free := memory - sum(instance.sizes[held])) > 0 else np.inf
            for gpu, memory in enumerate(instance.memory)
            for held in [[job for job, where in enumerate(gpus) if where == gpu]]
        )
        for gpus in plans
    )
    return instance.objective(plan) / best if best > 0 else 1.0


@pytest.mark.parametrize("heuristic", HEURISTICS)
def test_no_weights_are_worse_than_the_worst_case(heuristic):
    found = worst_case("prism.placement", heuristic, size=3, memory=3)
    assert found.status == "optimal"
    assert ratio(found.witness, heuristic) == pytest.approx(found.value, rel=1e-6)
    worst = 1.0
    for weights in product(range(5), repeat=3):
        for sizes in product(range(3), repeat=3):
            worst = max(worst, ratio(models(weights, sizes, 3), heuristic))
    assert worst == pytest.approx(found.value, rel=1e-6)


@pytest.mark.parametrize("heuristic", HEURISTICS)
@pytest.mark.parametrize("memory", [3, 4, 6, 40, 1000])
def test_a_model_that_has_room_beside_the_greatest_alone(heuristic, memory):
    # The second leaves too little on its GPU for the third, which would have the first's place.
    instance = models([memory - 2, 1, 1], [0, 1, memory - 1], memory)
    assert HEURISTICS[heuristic](instance).gpus.tolist() == [0, 1, 0]
    assert formulations.solve(instance).objective == 1
    assert instance.objective(HEURISTICS[heuristic](instance)) == memory - 1


@pytest.mark.parametrize("heuristic", HEURISTICS)
@pytest.mark.parametrize("num_gpus", [3, 4, 6])
def test_on_more_gpus_small_models_keep_all_others(heuristic, num_gpus):
    memory = 40
    small = num_gpus - 1
    instance = models([memory, *[1] * small, 1], [0, *[1] * small, memory - 1], memory, num_gpus)
    assert HEURISTICS[heuristic](instance).gpus.tolist() == [*range(num_gpus), 0]
    assert formulations.solve(instance).objective == 1
    assert instance.objective(HEURISTICS[heuristic](instance)) == memory + 1


@pytest.mark.parametrize("heuristic", HEURISTICS)
@pytest.mark.parametrize("seed", range(30))
def test_whole_gigabytes_bound_any_plan(heuristic, seed):
    rng = np.random.default_rng(seed)
    num_gpus, memory = int(rng.integers(2, 4)), int(rng.integers(3, 7))
    instance = models(rng.integers(0, 6, 5), rng.integers(0, memory, 5), memory, num_gpus)
    assert ratio(instance, heuristic) <= (num_gpus - 1) * memory + 1 + 1e-9
