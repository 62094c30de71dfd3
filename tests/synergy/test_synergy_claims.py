"""What judges Synergy's claims, against the exact models."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import formulations
from formulations.synergy.placement import vertex
from heuristics.synergy import tuning as of_tune
from instances.data.synergy import read_profiles
from instances.synergy.heterogeneous_allocation import generate as generate_types
from instances.synergy.heterogeneous_allocation import one_fast_machine
from instances.synergy.profiles import TASKS
from instances.synergy.sensitivity import from_matrix, undominated
from instances.synergy.tuning import Tuning, generate
from validation.claims.synergy import allocation, heterogeneous_allocation, placement, rounds, tuning
from validation.kinds.claims import examine

from ..claims import every
from .small import cluster_of


def test_rounds_are_all_there_once() -> None:
    kinds = [(1, (1, 1, 1)), (1, (3, 1, 2)), (2, (1, 1, 1)), (2, (3, 1, 2)), (3, (1, 1, 1)), (3, (3, 1, 2))]
    for num_jobs in (1, 2, 3):
        listed = list(rounds._teams(kinds, num_jobs, 3))
        teams = itertools.combinations_with_replacement(kinds, num_jobs)
        assert listed == [team for team in teams if sum(gpus for gpus, _ in team) == 3]
    for instance in rounds.rounds(4):
        assert instance.gpu_demands.sum() == instance.num_servers * instance.server_gpus
        assert (instance.fair_throughputs == instance.gpu_demands).all()


def test_lean_rounds_are_the_same_to_tune_and_to_the_optimum() -> None:
    for seed in range(6):
        instance = generate(seed, num_servers=2)
        lean = tuning._lean(instance)
        assert sum(map(len, lean.configs)) < sum(map(len, instance.configs))
        assert lean.objective(of_tune.tune(lean)) == instance.objective(of_tune.tune(instance))
        assert formulations.solve(lean).objective == pytest.approx(formulations.solve(instance).objective)
        assert (lean.fair_throughputs == instance.fair_throughputs).all()


@pytest.mark.parametrize("greater", ["any", "all"])
@pytest.mark.parametrize("split", [False, True])
def test_the_construction_is_put_to_the_test(monkeypatch: pytest.MonkeyPatch, greater: str, split: bool) -> None:
    """Without its step 4, Tune leaves out jobs of both kinds."""
    monkeypatch.setattr(of_tune._Servers, "make_room", lambda *_, **__: False)
    demands = (rounds.INSENSITIVE, rounds.AT_SHARE, rounds.SENSITIVE[0])
    small = list(rounds.rounds(6, demands, num_servers=(1, 2), single_gpu=not split))
    assert sum(bool(tuning._nothing_to_revert(instance, greater, split=split)) for instance in small) > 5


@pytest.mark.parametrize("name", ["tune_not_below_shares", "tune_not_below_shares_drawn", "tune_construction"])
def test_the_search_meets_reverts_that_overfill_another_server(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """If Tune looked only at the servers that are to take the new job, the claim would fall."""
    to_revert = of_tune._Servers._to_revert

    def nearsighted(servers: Any, held: dict[int, int], *rest: Any) -> Any:
        free = servers.free
        servers.free = np.where(np.isin(np.arange(free.shape[1]), list(held)), free, np.inf)
        try:
            return to_revert(servers, held, *rest)
        finally:
            servers.free = free

    claim = next(claim for claim in tuning.CLAIMS if claim.name == name)
    monkeypatch.setattr(of_tune._Servers, "_to_revert", nearsighted)
    verdict = examine(replace(claim, shrink=False))
    # With jobs of one GPU no job is on two servers; the construction's next reading is of several.
    verdict = verdict.others[0] if name == "tune_construction" else verdict
    assert not verdict.held
    assert verdict.why.removeprefix("with jobs reverted, ").startswith("the plan breaks server_")


def test_machine_types_are_judged_by_the_optimum() -> None:
    small = [generate_types(seed, num_servers=1, load=0.2, heterogeneity=4.0) for seed in range(4)]
    lean = [i for i in small if np.prod([float(enough.sum()) for enough in i.fair_configs]) < 3000]
    differ = 0
    for instance in [one_fast_machine(), *lean, *every(11, heterogeneous_allocation._two_types(), 20)]:
        optimum = formulations.solve(instance).objective
        if optimum is None:
            assert heterogeneous_allocation._cannot_be_placed(instance) is None
            continue
        printed, gpus = heterogeneous_allocation._printed(instance)
        model = formulations.build(instance)
        model.gpus.deactivate()
        assert printed == pytest.approx(formulations.solve(model).objective)
        more = printed > optimum + 1e-6
        assert not more or (gpus > instance.capacity[:, 2]).any()
        assert bool(heterogeneous_allocation._cannot_be_placed(instance)) == more
        differ += more
    assert differ > 3


def test_vertices_fragment_jobs_and_would_be_caught() -> None:
    instances = list(itertools.islice(placement._filled_servers(np.random.default_rng(0)), 60))
    plans = [vertex(instance) for instance in instances]
    counts = [instance.objective(plan) for instance, plan in zip(instances, plans, strict=True) if plan is not None]
    # The servers are as large as their jobs need.
    assert len(counts) == len(instances)
    assert sum(count > 0 for count in counts) > 30
    for instance in instances:
        many = instance.num_servers > 1 and instance.num_jobs > 3 * instance.num_servers
        assert bool(placement._even_spread_fragments(instance)) == many


def test_equal_jobs_fit() -> None:
    for instance in every(3, placement._equal_jobs(), 24):
        solution = formulations.solve(instance)
        assert (solution.status, solution.objective) == ("optimal", 0)


def test_fractions_of_gpus_are_needed_where_the_claim_says_so() -> None:
    """The exact model finds no more with whole GPUs, and one of the jobs has to be cut through a GPU."""
    (instance,) = allocation._out_of_reach(np.random.default_rng(0))
    first = instance.stage_one()
    promised, best = formulations.solve(first), formulations.solve(instance)
    assert promised.objective > best.objective
    assert formulations.solve(first.placement(promised.plan)).status == "optimal"
    assert formulations.solve(first.placement(promised.plan, integral_gpus=True)).status == "infeasible"


def test_published_points_are_those_of_the_file(data: Path) -> None:
    """All of each profile that is worth having, from the proportional share on."""
    profiles = read_profiles(data / "synergy" / "sensitivity_profiles.json")
    assert set(rounds.PUBLISHED) == set().union(*TASKS.values())
    for model, points in rounds.PUBLISHED.items():
        table = from_matrix(profiles.of(model), profiles.cpus, profiles.memory)
        kept = table[undominated(table)]
        assert kept[kept[:, 2] >= 1].tolist() == [list(point) for point in points]


def test_full_rounds_hold_all_gpus() -> None:
    for multi_gpu in (False, True):
        (instance,) = itertools.islice(rounds.published(np.random.default_rng(0), multi_gpu=multi_gpu), 1)
        assert instance.gpu_demands.sum() == instance.num_gpus == 128
        assert (instance.fair_throughputs == instance.gpu_demands).all()
        assert (instance.gpu_demands.max() > 1) == multi_gpu


def test_tune_is_compared_with_the_first_program() -> None:
    """Twice as long for one of two jobs is half as much again on average; its throughput is a quarter less."""
    instance = one_round()
    assert tuning._relative_times(instance, np.array([1, 0])).tolist() == [0.5, 1]
    assert tuning._times_less_late(instance) == pytest.approx(1.1 * 0.75 / 1)
    assert tuning._times_more(instance) == pytest.approx(2 / (0.9 * 3))


def test_a_reverted_job_can_overfill_another_server() -> None:
    instance = tuning._overfull_elsewhere()
    printed, built = of_tune.tune(instance, elsewhere=False), of_tune.tune(instance)
    assert [str(broken) for broken in instance.violations(printed)] == ["server_cpus[0] by 2"]
    assert instance.violations(built) == []
    assert not instance.skipped(built).any()


def one_round() -> Tuning:
    """Two jobs of one GPU each on a server of its own; the first is twice as fast with half of a spare core."""
    return Tuning(
        **cluster_of(2, 1, 3.0, 0.0),
        gpu_demands=[1, 1],
        configs=[[[3, 0, 1], [3.5, 0, 2]], [[2.5, 0, 1]]],
        server_cap=False,
    )
