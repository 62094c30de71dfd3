"""What judges AFS's claims: the optima against the models, the enumerations against plain loops."""

import itertools
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import formulations
from instances.afs.elastic_sharing import State, simulate
from instances.afs.two_job import AfsTwoJobPlan
from validation.claims.afs import elastic_sharing, gpu_placement, network_packing, two_job


def every(step: int, stream: Iterable[Any], number: int = 12) -> list[Any]:
    """So many instances of a stream, ``step`` apart."""
    found = list(itertools.islice(stream, 0, number * step, step))
    assert len(found) == number
    return found


def optimum(instance: Any) -> float:
    solution = formulations.solve(instance)
    assert solution.status == "optimal"
    assert solution.objective is not None
    return solution.objective


def test_pairs_are_in_order_if_the_shorter_completes_first() -> None:
    pairs = every(50, two_job._pairs(6), number=100)
    for instance in pairs:
        a, b = instance.shorter, 1 - instance.shorter
        completions = instance.completions(AfsTwoJobPlan(receiver=b))
        assert two_job._in_order(instance) == (completions[a] <= completions[b] * (1 + 1e-9))
    assert {two_job._in_order(instance) for instance in pairs} == {True, False}


@pytest.mark.parametrize(
    ("jobs", "gpus", "curves"),
    [
        ((2,), (2, 3, 4), elastic_sharing._concave),
        ((3,), (2, 3), elastic_sharing._concave),
        ((2,), (3, 4), elastic_sharing._linear),
        ((2,), (3,), elastic_sharing._capped),
    ],
)
def test_least_times_are_the_optimum(jobs: Any, gpus: Any, curves: Any) -> None:
    for instance in every(7, elastic_sharing._sharings(jobs, gpus, 3, curves, 2), number=4):
        assert float(elastic_sharing._least(instance)) == pytest.approx(optimum(instance), rel=1e-9)


def test_least_times_of_curves_that_are_not_concave_are_the_optimum() -> None:
    for instance in every(151, elastic_sharing._sharings((2,), (3,), 3, elastic_sharing._any_curve, 2), number=5):
        assert float(elastic_sharing._least(instance)) == pytest.approx(optimum(instance), rel=1e-9)


def test_splits_are_followed_as_in_a_simulation() -> None:
    for instance in every(30, elastic_sharing._sharings((2,), (3,), 4, elastic_sharing._concave, 3)):
        for split in ((1, 2), (2, 1), (3, 0)):

            def shares(state: State, split: Any = split, num_gpus: int = instance.num_gpus) -> Any:
                return np.array(split) if len(state.active) == 2 else np.full(2, num_gpus)

            simulated = instance.objective(simulate(instance, shares))
            assert float(elastic_sharing._follow(instance, split)) == pytest.approx(simulated, rel=1e-9)


def test_curves_are_all_there_once() -> None:
    rising = [steps for steps in itertools.product(range(4), repeat=3) if steps[0]]
    concave = {tuple(np.cumsum(s).tolist()) for s in rising if s[0] >= s[1] >= s[2]}
    listed = list(elastic_sharing._concave(3, 3))
    assert len(listed) == len(set(listed))
    assert set(listed) == concave
    assert set(elastic_sharing._linear(3, 2)) == {(1, 2, 3), (2, 4, 6)}
    assert set(elastic_sharing._capped(3, 1)) == {(1, 1, 1), (1, 2, 2), (1, 2, 3)}
    assert {(0, 1, 1), (0, 1, 2), (1, 1, 1), (1, 2, 3)} <= set(elastic_sharing._any_curve(3, 1))
    assert (0, 0, 1) not in set(elastic_sharing._any_curve(3, 1))


def test_triples_are_those_of_loops() -> None:
    kinds = [(w, p, q) for w in (1, 2) for p in (1, 2) for q in range(p, 2 * p + 1)]
    triples = {
        tuple(sorted(jobs))
        for jobs in itertools.product(kinds, repeat=3)
        if len({Fraction(work, pace) for work, pace, _ in jobs}) == 3
    }
    listed = [
        tuple(sorted(zip(*np.column_stack([i.work, i.throughputs[:, 1:3]]).astype(int).T.tolist(), strict=True)))
        for i in elastic_sharing._triples(2, 2)
    ]
    assert len(listed) == len(set(listed))
    assert set(listed) == triples


@pytest.mark.parametrize("floor_guarantee", [True, False])
def test_least_distances_are_the_optimum(floor_guarantee: bool) -> None:
    for instance in every(25, network_packing._packings(12, floor_guarantee=floor_guarantee)):
        assert network_packing._least_distance(instance) == optimum(instance)


def test_shares_are_all_there_once() -> None:
    listed = list(map(tuple, network_packing._partitions(7, 7)))
    assert len(listed) == len(set(listed))
    assert set(listed) == {
        parts
        for number in range(1, 8)
        for parts in itertools.product(range(7, 0, -1), repeat=number)
        if sum(parts) == 7 and list(parts) == sorted(parts, reverse=True)
    }


def test_regulated_shares_are_all_there_once() -> None:
    listed = [tuple(shares) for machines, gpus, shares in gpu_placement._clusters(2, (4,)) if machines == 2]
    assert len(listed) == len(set(listed))
    assert set(listed) == {
        parts
        for number in range(1, 9)
        for parts in itertools.product((8, 4, 2, 1), repeat=number)
        if sum(parts) <= 8 and list(parts) == sorted(parts, reverse=True)
    }


def test_what_can_be_kept_is_the_optimum() -> None:
    for instance in every(500, gpu_placement._running_jobs(), number=20):
        jobs, gpus = gpu_placement._most_kept(instance)
        assert jobs + gpus / (1 + instance.num_gpus) == pytest.approx(optimum(instance), rel=1e-9)
