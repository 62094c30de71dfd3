"""Water filling over entities: exact fractions on one type, the definition step by step elsewhere."""

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings

import formulations
import instances
from heuristics.gavel.hierarchical_fairness import equal_share, heterogeneity_agnostic, isolated
from instances.base import InstanceError
from instances.gavel.hierarchical_fairness import HierarchicalFairness, four_jobs, generate, two_entities
from validation.strategies.gavel import hierarchical_fairness
from validation.transform import permuted


def vector(instance: HierarchicalFairness, **options: Any) -> np.ndarray:
    solution = formulations.solve(instance, **options)
    assert solution.status == "optimal", solution.message
    plan: Any = solution.plan
    assert not instance.violations(plan)
    return np.asarray(plan.normalized_throughputs)


def water_filling(instance: HierarchicalFairness) -> list[Fraction]:
    """The definition on one type and jobs of one worker, in fractions: time is all that there is to share."""
    workers = int(instance.num_workers[0])
    entity_weights = [Fraction(weight) for weight in instance.entity_weights.tolist()]
    weights = [Fraction(weight) for weight in instance.weights.tolist()]
    entities = instance.entities.tolist()
    levels = [Fraction(0)] * instance.num_jobs
    rising = set(range(instance.num_jobs))
    while rising:
        rates = dict.fromkeys(rising, Fraction(0))
        for entity, policy in enumerate(instance.entity_policies.tolist()):
            mine = sorted(job for job in rising if entities[job] == entity)
            if mine and policy == "fifo":
                rates[mine[0]] = entity_weights[entity]
            for job in mine if policy == "fairness" else []:
                rates[job] = entity_weights[entity] * weights[job] / sum(weights[other] for other in mine)
        until_full = (workers - sum(levels)) / sum(rates.values())
        step = min([until_full, *((1 - levels[job]) / rate for job, rate in rates.items() if rate)])
        for job, rate in rates.items():
            levels[job] += step * rate
        rising = {job for job in rising if levels[job] < 1} if sum(levels) < workers else set()
    return levels


def on_one_type(rng: np.random.Generator) -> HierarchicalFairness:
    n, e = int(rng.integers(1, 7)), int(rng.integers(1, 4))
    return HierarchicalFairness(
        throughputs=rng.integers(1, 5, (n, 1)).astype(float),
        num_workers=rng.integers(1, 5, 1),
        entities=rng.integers(0, e, n),
        entity_weights=rng.integers(1, 5, e).astype(float),
        entity_policies=rng.choice(["fairness", "fifo"], e),
        weights=rng.integers(1, 5, n).astype(float),
    )


def test_equals_fractions_on_one_type() -> None:
    """On one type the normalised throughput is the fraction of time."""
    for seed in range(200):
        instance = on_one_type(np.random.default_rng(seed))
        expected = [float(level) for level in water_filling(instance)]
        assert vector(instance) == pytest.approx(expected, abs=1e-6), seed


@settings(max_examples=25)
@given(hierarchical_fairness())
def test_equals_the_definition_step_by_step_by_another_solver(instance: HierarchicalFairness) -> None:
    # SCIP's interface takes no rows without variables, which a pool without types would give.
    assume(len(set(instance.pools.tolist())) == len(instance.num_workers))
    assert vector(instance) == pytest.approx(vector(instance, solver="scip"), rel=1e-5, abs=1e-5)


@settings(max_examples=40)
@given(hierarchical_fairness())
def test_the_vector_does_not_depend_on_the_numbering_of_types_and_entities(instance: HierarchicalFairness) -> None:
    rng = np.random.default_rng(1)
    changed = permuted(permuted(instance, "k", rng), "e", rng)
    assert vector(changed) == pytest.approx(vector(instance), rel=1e-5, abs=1e-6)


def test_one_entity_is_lexicographically_greatest() -> None:
    """Against all allocations of a fine grid: no sorted vector of levels is greater."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        throughputs = rng.integers(1, 5, (2, 2)).astype(float)
        instance = HierarchicalFairness(throughputs=throughputs, num_workers=np.array([1, 1]))
        mine = np.sort(vector(instance))
        grid = np.linspace(0, 1, 21)
        for a in grid:
            for b in grid:
                # Job 0 takes a of type 0 and b of type 1 as far as its time goes, job 1 the rest.
                first = np.array([a, min(b, 1 - a)])
                second = np.minimum(1 - first, 1)
                second = second / max(1.0, second.sum())
                normal = np.array([throughputs[0] @ first, throughputs[1] @ second]) / instance.equal_share_throughputs
                other = np.sort(normal)
                assert other[0] <= mine[0] + 1e-6
                assert other[0] < mine[0] - 1e-6 or other[1] <= mine[1] + 1e-5


def test_worked_examples() -> None:
    assert vector(four_jobs()) == pytest.approx([1, 1, 1, 1])
    assert formulations.solve(four_jobs()).objective == pytest.approx(2.0)
    assert vector(two_entities()) == pytest.approx([0.5, 0.5, 1, 1])


@given(hierarchical_fairness())
def test_heuristics_are_feasible_and_never_above_the_first_level(instance: HierarchicalFairness) -> None:
    best = formulations.solve(instance).objective
    assert best is not None
    for heuristic in (isolated, equal_share, heterogeneity_agnostic):
        plan = heuristic(instance)
        assert not instance.violations(plan)
        assert instance.objective(plan) <= best * (1 + 1e-6) + 1e-9
    assert instances.read(json.loads(json.dumps(instance.to_dict()))) == instance


def test_same_optimum_on_generated_instances_with_pairs() -> None:
    for seed in range(4):
        instance = generate(seed, num_jobs=8)
        assert vector(instance) == pytest.approx(vector(instance, solver="scip"), rel=1e-5, abs=1e-5)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"entities": [0, 1]}, "entities"),
        ({"entity_weights": [0.0]}, "entity_weights"),
        ({"entity_policies": ["lifo"]}, "entity_policies"),
        ({"weights": [1.0, -1.0]}, "weights"),
    ],
)
def test_bad_input_names_the_field(changes: dict[str, Any], field: str) -> None:
    good = {"throughputs": [[1.0], [1.0]], "num_workers": [1], "entity_weights": [1.0]}
    with pytest.raises(InstanceError, match=rf"HierarchicalFairness\.{field}"):
        HierarchicalFairness(**{**good, **changes})
