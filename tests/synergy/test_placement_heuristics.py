"""Heuristics of synergy.placement: whole where they can, and as few fragmented as they must."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given

import formulations
from heuristics.synergy.placement import balanced_fit, best_fit, swap_fit
from instances.synergy.allocation import from_mix
from instances.synergy.placement import SynergyPlacement, SynergyPlacementPlan, generate, shared_middle
from validation.problems.synergy.placement import strategy as placements
from validation.testing.transform import rescaled

from .small import cluster_of


@pytest.mark.parametrize("method", [best_fit, balanced_fit, swap_fit])
@given(placements())
def test_a_placement_is_found_where_shares_are_continuous(
    method: Callable[[SynergyPlacement], SynergyPlacementPlan], instance: SynergyPlacement
) -> None:
    digest = instance.digest
    plan = method(instance)
    assert plan == method(instance)
    assert SynergyPlacement.from_dict(instance.to_dict()).digest == digest
    best = formulations.solve(instance)
    if best.status == "optimal" and not instance.integral_gpus:
        assert instance.violations(plan) == []
    if instance.violations(plan) == []:
        assert best.status == "optimal"
        assert instance.objective(plan) >= best.objective


def test_best_fit_takes_the_tightest_server() -> None:
    instance = SynergyPlacement(**cluster_of(2, 4, 9, 9), demands=[[3, 1, 1], [2, 1, 1], [1, 1, 1]])
    assert best_fit(instance).shares.tolist() == [[1, 0], [0, 1], [1, 0]]


def test_balanced_fit_takes_the_server_that_it_leaves_most_balanced() -> None:
    """Jobs of 8 and 6 of 9 cores go to different servers; then the job of 2 GPUs goes where cores are left."""
    instance = SynergyPlacement(**cluster_of(2, 4, 9, 9), demands=[[1, 6, 1], [1, 8, 1], [2, 1, 1]])
    assert best_fit(instance).shares.tolist() == [[0, 1], [1, 0], [1, 0]]
    assert balanced_fit(instance).shares.tolist() == [[0, 1], [1, 0], [0, 1]]


def test_balanced_fit_places_whole_what_best_fit_cuts(data: Path) -> None:
    """Published jobs that sum up to nearly all cores: none need be fragmented."""
    first = from_mix(
        0, throughputs=data / "synergy" / "sensitivity_profiles.json", num_servers=16, mix=(20, 70, 10), multi_gpu=False
    )
    second = first.placement(formulations.solve(first).plan)
    assert second.objective(balanced_fit(second)) == formulations.solve(second).objective == 0
    assert second.objective(best_fit(second)) > 20


def test_best_fit_cuts_what_fits_nowhere_whole() -> None:
    instance = shared_middle()
    plan = best_fit(instance)
    assert instance.violations(plan) == []
    assert instance.objective(plan) == 1


def nothing_to_spare(num_jobs: int, num_servers: int) -> SynergyPlacement:
    """Jobs of a GPU that fill all servers, of every resource."""
    rng = np.random.default_rng(0)
    demands = np.column_stack([np.ones(num_jobs), rng.uniform(1, 5, num_jobs), rng.uniform(1, 5, num_jobs)])
    _, cpus, memory = demands.sum(axis=0) / num_servers
    return SynergyPlacement(**cluster_of(num_servers, num_jobs // num_servers, cpus, memory), demands=demands)


def test_best_fit_keeps_every_resource_when_it_cuts_jobs() -> None:
    """No two servers share more than three jobs."""
    instance = nothing_to_spare(16, 2)
    plan = best_fit(instance)
    assert instance.violations(plan) == []
    assert instance.objective(plan) <= 3


def test_swap_fit_swaps() -> None:
    """By size, jobs 0 and 4 come to 11 of 10 cores on the first server; job 2, for job 4, has two less."""
    instance = SynergyPlacement(
        **cluster_of(2, 3, 10, 9), demands=[[1, 7, 4], [1, 3, 1], [1, 2, 5], [1, 3, 2], [1, 4, 5]]
    )
    assert instance.objective(balanced_fit(instance)) == 1
    assert swap_fit(instance).shares.tolist() == [[1, 0], [0, 1], [1, 0], [0, 1], [0, 1]]


def test_swap_fit_places_no_jobs() -> None:
    instance = SynergyPlacement(**cluster_of(2, 1, 0, 0), demands=np.zeros((0, 3)))
    assert instance.objective(swap_fit(instance)) == 0


def test_swap_fit_cuts_fewer_jobs_from_the_plan_of_balanced_fit() -> None:
    """The two largest jobs cannot be the ones that are cut."""
    sizes = [[4, 14, 20], [4, 0, 480], [2, 4.5, 70], [1, 5, 90], [1, 1.5, 200], [4, 21, 100]]
    instance = SynergyPlacement(**cluster_of(2, 8, 24, 500), demands=sizes)
    assert instance.objective(balanced_fit(instance)) == 3
    assert instance.objective(swap_fit(instance)) == formulations.solve(instance).objective == 2


@given(placements())
def test_swap_fit_fragments_no_more_than_balanced_fit(instance: SynergyPlacement) -> None:
    ours, theirs = swap_fit(instance), balanced_fit(instance)
    assume(instance.violations(theirs) == [])
    assert instance.violations(ours) == []
    assert instance.objective(ours) <= instance.objective(theirs)


def test_swap_fit_finds_packings_where_gpus_are_full() -> None:
    """128 different jobs: one exceeds a server with seed 1, and cannot be the only one fragmented."""
    for seed in range(6):
        instance = generate(seed, num_servers=16, fill=1.0, multi_gpu=False)
        plan = swap_fit(instance)
        assert instance.violations(plan) == []
        assert instance.objective(plan) == (2 if seed == 1 else 0)


@pytest.mark.parametrize("seed", [3, 5, 6, 8, 9])
def test_swap_fit_cuts_as_few_as_it_must(seed: int) -> None:
    """Jobs of several GPUs, and some larger than a server, with nothing to spare."""
    instance = generate(seed, num_servers=4, fill=1.0)
    plan = swap_fit(instance)
    assert instance.violations(plan) == []
    assert (
        instance.objective(balanced_fit(instance)) > instance.objective(plan) == formulations.solve(instance).objective
    )
    assert instance.objective(plan) > 0


def test_the_unit_of_memory_decides_nothing() -> None:
    gpus = [1, 1, 1, 1, 1, 1, 4, 1, 1, 1, 4, 0, 1, 1, 1, 1, 1, 1, 4, 1, 2, 1]
    cpus = [1, 0, 4, 0, 1, 1, 4, 2, 23, 6, 5, 0, 12, 0, 2, 4, 0, 2, 0, 5, 1, 4]
    memory = [1, 25, 50, 15, 1, 80, 160, 15, 175, 250, 120, 2, 35, 60, 85, 60, 60, 25, 140, 20, 250, 5]
    instance = SynergyPlacement(
        **cluster_of(4, 8, 24.0, 459.0), demands=np.column_stack([gpus, cpus, memory]).astype(float)
    )
    units = [rescaled(instance, ("server_memory", "demands[2]"), 2.0**exponent) for exponent in range(-30, 31)]
    assert len({one.objective(best_fit(one)) for one in units}) == 1


@pytest.mark.parametrize("method", [best_fit, balanced_fit])
@given(placements())
def test_fits_fragment_at_most_three_jobs_for_each_server(
    method: Callable[[SynergyPlacement], SynergyPlacementPlan], instance: SynergyPlacement
) -> None:
    """As the vertices of Theorem A.2 do."""
    instance = replace(instance, integral_gpus=False)
    plan = method(instance)
    assume(instance.violations(plan) == [])
    assert instance.objective(plan) <= 3 * instance.num_servers


def test_best_fit_cuts_many_jobs_at_few_places() -> None:
    """Of what a server carries, three jobs at most go on to the next."""
    instance = nothing_to_spare(32, 8)
    plan = best_fit(instance)
    assert instance.violations(plan) == []
    assert instance.fragmented(plan).sum() <= 3 * 7
    assert np.count_nonzero(plan.shares) <= 32 + 3 * 7
