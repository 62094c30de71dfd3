"""Instances renumbered, reduced and changed by their declarations alone."""

import itertools
import json
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import formulations
from instances.aryl.elastic_allocation import generate as elastic_allocation
from instances.aryl.placement import ArylPlacement, ArylPlacementPlan
from instances.aryl.reclaim import Reclaim
from instances.aryl.reclaim import generate as reclaim
from instances.base import Instance, InstanceError, Plan
from instances.gavel.max_min_fairness import MaxMinFairness
from instances.gavel.max_min_fairness import generate as max_min_fairness
from instances.schema import Array, BoolArray, IntArray, Ragged
from instances.synergy.tuning import generate as synergy_tuning
from validation.catalogue import CATALOGUE
from validation.testing.neighbours import neighbour, past_the_edge, shrunk
from validation.testing.transform import dimensions, permuted, rescaled, take, without


def two_pools() -> MaxMinFairness:
    return MaxMinFairness(
        throughputs=np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]),
        num_workers=np.array([2, 3]),
        pools=np.array([0, 1, 1]),
        pairs=np.array([[0, 1], [1, 2]]),
        pair_throughputs=np.arange(1.0, 13.0).reshape(2, 3, 2),
    )


def test_dimensions_are_those_that_name_an_axis() -> None:
    assert set(dimensions(reclaim(0, num_servers=3))) == {"n", "s"}
    assert set(dimensions(two_pools())) == {"n", "k", "p", "q"}


def test_entries_follow_what_they_number() -> None:
    changed = take(two_pools(), "n", [2, 1, 0])
    assert changed.pairs.tolist() == [[2, 1], [1, 0]]
    assert changed.throughputs[:, 0].tolist() == [7.0, 4.0, 1.0]


def test_what_refers_to_a_dropped_member_goes_too() -> None:
    without_job = without(two_pools(), "n", 0)
    assert without_job.pairs.tolist() == [[0, 1]]
    assert without_job.pair_throughputs.shape == (1, 3, 2)
    without_pool = without(two_pools(), "p", 0)
    assert without_pool.pools.tolist() == [0, 0]
    assert without_pool.throughputs[0].tolist() == [2.0, 3.0]


def test_copies_of_a_member() -> None:
    changed = take(two_pools(), "n", [0, 1, 2, 2])
    assert changed.num_jobs == 4
    assert changed.pairs.tolist() == [[0, 1], [1, 2]]


def test_ragged_tables_follow_their_jobs() -> None:
    instance = elastic_allocation(3, num_jobs=5, linear=False)
    changed = take(instance, "n", [4, 0])
    assert instance.running_times is not None
    assert changed.running_times is not None
    assert [table.tolist() for table in changed.running_times] == [
        instance.running_times[4].tolist(),
        instance.running_times[0].tolist(),
    ]


def test_nothing_left_is_an_error() -> None:
    with pytest.raises(InstanceError):
        take(reclaim(0, num_servers=3, demand=0), "s", [])


@given(st.integers(0, 10**6))
def test_renumbering_leaves_the_optimum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    instance = max_min_fairness(rng, num_jobs=4, pair_fraction=0.7, unconsolidated=True)
    changed = instance
    for dim in ("n", "k", "q"):
        if changed.dims[dim]:
            changed = permuted(changed, dim, rng)
    assert formulations.solve(changed).objective == pytest.approx(formulations.solve(instance).objective, rel=1e-7)


def test_rescaling_leaves_the_rest() -> None:
    instance = elastic_allocation(3, num_jobs=5)
    changed = rescaled(instance, ("min_running_times",), 2.0)
    assert changed.min_running_times.tolist() == (2 * instance.min_running_times).tolist()
    assert changed.capacity == instance.capacity


def test_a_column_has_a_unit_of_its_own() -> None:
    instance = synergy_tuning(3, num_servers=1)
    changed = rescaled(instance, ("server_cpus", "configs[0]"), 4.0)
    assert changed.server_cpus == 4 * instance.server_cpus
    for new, old in zip(changed.configs, instance.configs, strict=True):
        assert (new == old * [4.0, 1.0, 1.0]).all()


@pytest.mark.parametrize("problem", sorted(CATALOGUE))
def test_neighbours_are_valid_and_differ(problem: str) -> None:
    entry = CATALOGUE[problem]
    rng = np.random.default_rng(5)
    instance = entry.generate(1, **{entry.size: 4})
    found = 0
    for _ in range(40):
        changed = neighbour(instance, rng, max_members=8)
        if changed is not None:
            assert changed != instance
            assert all(changed.dims[dim] <= max(8, instance.dims[dim]) for dim in dimensions(changed))
            found += 1
    assert found >= 20


def test_shrinking_finds_the_smallest() -> None:
    """Keep a job on two servers: two servers, one job and nothing else remain."""
    instance = reclaim(1, num_servers=8, spread=0.9)

    def keeps(candidate: Reclaim) -> bool:
        return bool((candidate.hosts.sum(axis=1) >= 2).any())

    assert keeps(instance)
    smallest = shrunk(instance, keeps)
    assert smallest.hosts.tolist() == [[True, True]]
    assert smallest.gpus.tolist() == [[1, 1]]
    assert smallest.demand == 0


def test_shrinking_stops_when_told() -> None:
    instance = reclaim(1, num_servers=8)
    calls = itertools.count()
    assert shrunk(instance, lambda _: True, stop=lambda: next(calls) >= 3).num_jobs >= instance.num_jobs - 3


# --- members that number members, one or none -------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Nowhere(Plan):
    """Nothing to decide."""


@dataclass(frozen=True, eq=False)
class Homes(Instance[Nowhere]):
    """Jobs with a home or none, what each waits for, servers that know one another, and words."""

    problem = "test.homes"
    sense = "min"
    plan_type = Nowhere

    home: Annotated[IntArray, Array(int, "n", index_of="s", minimum=-1)]
    after: Annotated[tuple[IntArray, ...], Ragged(int, "n d", index_of="n", empty=True)]
    next_to: Annotated[IntArray, Array(int, "s", index_of="s")]
    links: Annotated[BoolArray, Array(bool, "s s")]


def homes() -> Homes:
    return Homes(home=[-1, 0, 2], after=[[], [0], [0, 1]], next_to=[1, 1, 0], links=np.arange(9).reshape(3, 3) % 2 == 0)


def test_none_stays_none_and_what_was_there_becomes_it() -> None:
    changed = take(homes(), "s", [1, 0])
    assert changed.home.tolist() == [-1, 1, -1]
    assert changed.next_to.tolist() == [0, 0]
    assert changed.links.tolist() == [[True, False], [False, True]]
    assert Homes.from_dict(json.loads(json.dumps(changed.to_dict()))) == changed


def test_rows_lose_what_is_gone() -> None:
    assert [row.tolist() for row in take(homes(), "n", [2, 1]).after] == [[1], []]


def test_members_that_refer_to_one_that_is_gone_go_too() -> None:
    # Server 0 stands next to 1, and 2 next to 0.
    with pytest.raises(InstanceError, match="at least one entry"):
        without(homes(), "s", 1)


def test_beyond_none_is_refused() -> None:
    with pytest.raises(InstanceError, match=r"Homes\.home: got -2 at index \[0\], must be at least -1"):
        replace(homes(), home=[-2, 0, 0])
    with pytest.raises(InstanceError, match=r"Homes\.home: got 3 at index \[0\], must be below s = 3"):
        replace(homes(), home=[3, 0, 0])


# --- the edge of a plan -----------------------------------------------------------------------------


def test_past_the_edge_is_one_more_or_less() -> None:
    instance = elastic_allocation(0, num_jobs=4)
    found = {}
    for seed in range(40):
        changed = past_the_edge(instance, lambda one: one.capacity >= 3, np.random.default_rng(seed), {})
        found[changed and changed.capacity] = changed
    # The one field that what is kept depends on.
    assert set(found) == {None, 2}


def test_past_the_edge_of_a_measure_is_a_ten_millionth() -> None:
    instance = replace(synergy_tuning(0, num_servers=1), server_memory=500.0)
    edges = [
        past_the_edge(instance, lambda one: one.server_memory >= 300, np.random.default_rng(seed), {})
        for seed in range(40)
    ]
    assert {300 * (1 - 1e-7) <= one.server_memory < 300 for one in edges if one is not None} == {True}


def test_what_is_no_number_has_an_edge_too() -> None:
    instance = reclaim(0, num_servers=3)
    held = int(instance.hosts.sum())
    edges = [
        past_the_edge(instance, lambda one: one.hosts.sum() >= held, np.random.default_rng(seed), {})
        for seed in range(40)
    ]
    assert {int(one.hosts.sum()) for one in edges if one is not None} == {held - 1}


def test_a_field_whose_entries_seldom_matter_gets_its_edges() -> None:
    instance = ArylPlacement(
        gpus_per_worker=[1, 1, 1, 1],
        num_workers=[1, 1, 1, 1],
        elastic=[True, False, False, False],
        server_gpus=[4],
        server_groups=["inference"],
    )
    plan = ArylPlacementPlan(workers=[[1], [1], [1], [1]])
    tried = dict[str, float]()
    changed = [
        past_the_edge(instance, lambda one: not one.violations(plan), np.random.default_rng(seed), tried)
        for seed in range(40)
    ]
    # One of its four entries can be True at all.
    assert sum(one is not None and bool(one.flexible.any()) for one in changed) >= 5
