"""The problem's model against trying everything, and its heuristic against the checks."""

from itertools import product

import pytest
from outside_example.one_server import OneServer, densest_first, generate

import formulations
import instances
from validation import parametrize_with_checks


def best_value(instance: OneServer) -> float:
    return max(
        sum(value for value, taken in zip(instance.values, chosen, strict=True) if taken)
        for chosen in product((False, True), repeat=instance.num_jobs)
        if sum(gpus for gpus, taken in zip(instance.gpus, chosen, strict=True) if taken) <= instance.capacity
    )


@pytest.mark.parametrize("seed", range(20))
def test_the_model_against_trying_everything(seed, tmp_path):
    instance = generate(seed, num_jobs=8)
    solution = formulations.solve(instance)
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(best_value(instance))
    assert formulations.solve(instance, solver="scip").objective == pytest.approx(solution.objective)
    instances.save(instance, tmp_path / "instance.json")
    assert instances.load(tmp_path / "instance.json") == instance


@parametrize_with_checks("demo.one_server", max_examples=30)
def test_the_heuristic(check):
    check(densest_first)
