"""What judges AFS's claims: the optima against the models, the enumerations against plain loops."""

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from heuristics.afs.elastic_sharing import two_job_rule
from heuristics.afs.network_packing import floor_and_grow, floor_and_grow_nearest
from instances.afs.simulation import State, simulate
from instances.afs.two_job import AfsTwoJobPlan
from validation.claims.afs import elastic_sharing, gpu_placement, network_packing, two_job

from ..claims import every


def test_cases_b1_and_b2_are_told_apart() -> None:
    pairs = every(6, two_job._pairs(4), number=100)
    for instance in pairs:
        a, b = instance.shorter, 1 - instance.shorter
        completions = instance.completions(AfsTwoJobPlan(receiver=b))
        assert two_job._longer_stays_behind(instance) == (completions[a] * (1 + 1e-9) < completions[b])
    assert {two_job._longer_stays_behind(instance) for instance in pairs} == {True, False}


def test_the_two_job_rule_is_one_of_those_that_ties_leave_open() -> None:
    for instance in every(37, elastic_sharing._sharings((2,), (2, 3), 3, elastic_sharing._concave, 4), number=40):
        plan = two_job_rule(instance)
        assert plan is not None
        assert tuple(plan.shares[0].tolist()) in elastic_sharing._grown(instance)


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
    sublinear = {tuple(np.cumsum(s).tolist()) for s in rising if s[0] > s[1] >= s[2] > 0}
    assert set(elastic_sharing._sublinear(3, 3)) == sublinear


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


def test_what_growing_can_end_at_has_what_the_heuristics_find() -> None:
    for instance in every(25, network_packing._packings(12)):
        ends = network_packing._grown(instance)
        for plan in (
            *(floor_and_grow(instance, pick=pick) for pick in ("first", "last", "smallest")),
            floor_and_grow_nearest(instance),
        ):
            assert plan is not None
            assert tuple(plan.regulated.tolist()) in ends
