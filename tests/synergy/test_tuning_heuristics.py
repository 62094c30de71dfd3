"""Tune step by step, and the other heuristics of synergy.tuning."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

import formulations
from heuristics.synergy.tuning import (
    _Exchanges,
    balanced_tune,
    drf,
    greedy,
    greedy_split,
    local_search,
    proportional,
    tetris,
    tune,
    tune_and_upgrade,
)
from instances.synergy.tuning import Tuning, TuningPlan, from_mix, generate
from validation.problems.synergy.tuning import strategy as tunings

from ..effort import rounds
from .small import cluster_of

Table = list[list[int]]
Method = Callable[[Tuning], TuningPlan]


# --- Tune, step by step -------------------------------------------------------------------------


def one_gpu_jobs(*configs: Table, servers: int = 1, gpus: int = 2, cpus: float = 6, memory: float = 0) -> Tuning:
    return Tuning(**cluster_of(servers, gpus, cpus, memory), gpu_demands=[1] * len(configs), configs=configs)


def test_step_1_and_2_largest_demands_first_each_on_the_tightest_server() -> None:
    small, large = [[1, 0, 1]], [[3, 0, 1], [5, 0, 4]]
    plan = tune(one_gpu_jobs(small, large, small, servers=2))
    # The job of 5 cores comes first, on server 0; then 1 core fits beside it, and the last goes to server 1.
    assert plan.choices.tolist() == [0, 1, 0]
    assert plan.gpus.tolist() == [[1, 0], [1, 0], [0, 1]]


def test_step_1_the_other_way_round() -> None:
    """The job of 2 cores comes first and leaves the other its share of 3 on the same server."""
    instance = one_gpu_jobs([[3, 0, 1], [5, 0, 4]], [[2, 0, 1]])
    assert tune(instance).gpus.tolist() == [[1], [1]]
    assert tune(instance).choices.tolist() == [0, 0]
    two = replace(instance, num_servers=2, server_gpus=1, server_cpus=5.0)
    assert tune(two).gpus.tolist() == [[1, 0], [0, 1]]
    assert tune(two, largest_first=False).gpus.tolist() == [[0, 1], [1, 0]]


def test_step_3_a_demand_above_the_share_is_reduced_to_it() -> None:
    wants_5, wants_2 = [[2, 0, 1], [5, 0, 4]], [[2, 0, 1]]
    plan = tune(one_gpu_jobs(wants_5, wants_5, wants_2, gpus=3, cpus=9))
    # Job 0 takes 5 of 9 cores; job 1 does not find 5 more, but its share of 3, of which it can use 2.
    assert plan.choices.tolist() == [1, 0, 0]


def test_step_4_the_job_that_took_too_much_is_reverted() -> None:
    wants_4 = [[3, 0, 2], [4, 0, 3]]
    # Job 0 gets 4 of 6 cores; job 1's share of 3 fits only once job 0 is back at its own.
    assert tune(one_gpu_jobs(wants_4, wants_4)).choices.tolist() == [0, 0]


def test_step_4_reverts_the_job_with_most_cores_first() -> None:
    """Shares are 2 of 8 cores; the last job lacks one, which either of the first two could give."""
    wants_4, wants_3, wants_1 = [[1, 0, 1], [4, 0, 9]], [[2, 0, 1], [3, 0, 2]], [[1, 0, 1]]
    instance = one_gpu_jobs(wants_3, wants_4, wants_1, wants_1, gpus=4, cpus=8)
    plan = tune(instance)
    assert plan.choices.tolist() == [1, 0, 0, 0]
    assert instance.violations(plan) == []


def test_step_4_reverts_jobs_on_one_server_before_split_ones() -> None:
    """Shares are 4 cores and 4 GB for each GPU; only server 0 has a GPU for the last job, and it lacks 1 GB there."""
    instance = Tuning(
        **cluster_of(2, 3, 12, 12),
        gpu_demands=[2, 1, 1, 1, 1],
        configs=[[[8, 4, 1], [18, 4, 5]], [[1, 4, 1], [1, 9, 3]], [[1, 2, 1]], [[1, 2, 1]], [[0, 2, 1]]],
        server_cap=False,
    )
    plan = tune(instance)
    assert plan.gpus.tolist() == [[1, 1], [1, 0], [0, 1], [0, 1], [1, 0]]
    # Job 0 has most cores per GPU, but it is on both servers, so job 1 gives way.
    assert plan.choices.tolist() == [1, 0, 0, 0, 0]
    assert instance.violations(plan) == []


@pytest.mark.parametrize("method", [tune, tune_and_upgrade, balanced_tune])
def test_step_4_a_revert_that_overfills_another_server_reverts_a_job_there(method: Method) -> None:
    """Shares are 2 cores and 2 GB for each GPU; the last job finds a GPU on server 1, but not its 2 GB."""
    instance = Tuning(
        **cluster_of(2, 5, 10, 10),
        gpu_demands=[3, 3, 3, 1],
        configs=[[[6, 6, 1], [8, 3, 2]], [[6, 6, 1]], [[6, 6, 1], [3, 9, 2]], [[2, 2, 1]]],
    )
    plan = method(instance)
    # Job 2, on both servers, gives up 3 GB and takes 3 cores: 2 of them on server 0, where job 0 has 8 and job 2 had 2.
    assert plan.gpus.tolist() == [[3, 0], [0, 3], [2, 1], [0, 1]]
    assert plan.choices.tolist() == [0, 0, 0, 0]
    assert instance.violations(plan) == []


def test_where_no_job_can_make_good_a_revert_the_new_one_is_left_out() -> None:
    """As above, but job 0 has to have its 8 cores: its fair throughput is above that at its share."""
    instance = Tuning(
        **cluster_of(2, 5, 10, 10),
        gpu_demands=[3, 3, 3, 1],
        configs=[[[8, 3, 2]], [[6, 6, 1]], [[6, 6, 1], [3, 9, 2]], [[2, 2, 1]]],
        fair_throughputs=[2, 1, 1, 1],
    )
    for method in (tune, tune_and_upgrade, balanced_tune):
        plan = method(instance)
        assert [str(violation) for violation in instance.violations(plan)] == ["placed[3] by 1"]
        assert plan.choices.tolist() == [0, 0, 1, -1]


def test_a_zero_is_a_zero() -> None:
    """A server without memory holds no job that wants any, however little."""
    instance = one_gpu_jobs([[1, 0, 1], [1, 1e-9, 2]], gpus=1)
    for method in (proportional, greedy, tune, tune_and_upgrade, balanced_tune):
        plan = method(instance)
        assert instance.chosen(plan.choices)[0, 1] == 0
    assert instance.objective(tune_and_upgrade(instance)) == 1


def test_wide_jobs_are_split_over_the_fewest_servers() -> None:
    instance = Tuning(**cluster_of(4, 4, 8, 8), gpu_demands=[6, 3, 3], configs=[[[12, 6, 6]], [[6, 3, 3]], [[6, 3, 3]]])
    plan = tune(instance)
    assert (plan.gpus[0] > 0).sum() == 2
    assert plan.gpus.tolist() == [[4, 2, 0, 0], [0, 0, 3, 0], [0, 0, 0, 3]]
    assert instance.violations(plan) == []


def test_splits_follow_the_demand_not_the_gpus_alone() -> None:
    """8 cores for 2 GPUs: no server of 4 GPUs holds them, two servers of 6 cores do."""
    instance = Tuning(**cluster_of(2, 4, 6, 0), gpu_demands=[2], configs=[[[3, 0, 1], [8, 0, 5]]], server_cap=False)
    plan = tune(instance)
    assert plan.choices.tolist() == [1]
    assert plan.gpus.tolist() == [[1, 1]]
    for together in (tune(replace(instance, allow_split=False)), tune(replace(instance, server_cap=True))):
        assert together.choices.tolist() == [0]
        assert together.gpus.tolist() == [[2, 0]]


def test_the_two_readings_of_greater() -> None:
    """A job above its share in cores alone: greater in some dimension, not in all."""
    wants_cores = [[2, 2, 1], [4, 1, 3]]
    instance = one_gpu_jobs(wants_cores, [[1, 2, 1]], gpus=2, cpus=4, memory=4)
    assert tune(instance, greater="any").choices.tolist() == [0, 0]
    assert instance.violations(tune(instance, greater="any")) == []
    # By construction there should be something to revert for job 1: there is not, and the plan says so.
    stuck = tune(instance, greater="all")
    assert stuck.choices.tolist() == [1, -1]
    assert [str(v) for v in instance.violations(stuck)] == ["placed[1] by 1"]
    with pytest.raises(ValueError, match="greater"):
        tune(instance, greater="both")


def test_nothing_is_reverted_in_vain() -> None:
    """Job 0 is greater in both, but without its spare cores job 2 still finds none: it stays as it is."""
    instance = one_gpu_jobs(
        [[1, 1, 1], [2, 2, 3]], [[1, 1, 1], [4, 1, 5]], [[1, 1, 1], [3, 1, 2]], gpus=3, cpus=6, memory=5
    )
    plan = tune(instance, greater="all")
    assert plan.choices.tolist() == [1, 1, -1]


@given(tunings())
def test_tune_keeps_its_promise(instance: Tuning) -> None:
    """With splits, every job runs at least at its share; each has its best case or its share, nothing else."""
    # No job is owed more than its share gives it, which Tune could not promise.
    fair = np.minimum(instance.fair_throughputs, instance.chosen(instance.proportional_choices)[:, 2])
    instance = replace(instance, allow_split=True, fair_throughputs=fair)
    plan = tune(instance)
    assert instance.violations(plan) == []
    assert not instance.skipped(plan).any()
    assert ((plan.choices == instance.best_choices) | (plan.choices == instance.proportional_choices)).all()
    assert instance.violations(proportional(instance)) == []
    values = [instance.objective(method(instance)) for method in (proportional, tune, tune_and_upgrade)]
    assert values == sorted(values)
    best = formulations.solve(instance)
    assert best.status == "optimal"
    assert values[-1] <= best.objective * (1 + 1e-9) + 1e-9
    balanced = balanced_tune(instance)
    assert instance.violations(balanced) == []
    assert values[0] <= instance.objective(balanced) + 1e-9
    assert instance.objective(balanced) <= best.objective * (1 + 1e-9) + 1e-9


@given(tunings())
def test_every_method_leaves_jobs_out_rather_than_break_another_rule(instance: Tuning) -> None:
    digest = instance.digest
    for method in (proportional, greedy, greedy_split, drf, tetris, tune, tune_and_upgrade, balanced_tune):
        plan = method(instance)
        assert plan == method(instance)
        broken = instance.violations(plan)
        assert {violation.rule for violation in broken} <= {"placed"}
        assert [violation.index[0] for violation in broken] == np.flatnonzero(instance.skipped(plan)).tolist()
        assert (plan.gpus[plan.choices < 0] == 0).all()
    plan = tune(instance, greater="all")
    assert {violation.rule for violation in instance.violations(plan)} <= {"placed"}
    assert Tuning.from_dict(instance.to_dict()).digest == digest


def full_clusters(seed: int) -> Iterator[Tuning]:
    """Jobs that hold all GPUs, with a share that another configuration can be above and below at once."""
    rng = np.random.default_rng(seed)
    while True:
        servers, gpus = int(rng.integers(1, 4)), int(rng.integers(2, 6))
        demands: list[int] = []
        while sum(demands) < servers * gpus:
            demands.append(int(rng.integers(1, min(servers * gpus - sum(demands), 4) + 1)))
        configs = []
        for demand in demands:
            others = rng.integers(0, 4 * demand + 1, (int(rng.integers(0, 4)), 3))
            others[:, 2] = rng.integers(1, 4, len(others))
            configs.append([[2 * demand, 2 * demand, 1], *others.tolist()])
        yield Tuning(**cluster_of(servers, gpus, 2 * gpus, 2 * gpus), gpu_demands=demands, configs=configs)


@pytest.mark.slow
def test_tune_keeps_its_promise_on_full_clusters() -> None:
    for instance in itertools.islice(full_clusters(0), len(rounds(1000))):
        floor = instance.objective(proportional(instance))
        values = []
        for method in (tune, tune_and_upgrade, balanced_tune):
            plan = method(instance)
            assert instance.violations(plan) == [], instance.to_dict()
            values.append(instance.objective(plan))
        assert floor <= values[0] <= values[1]
        assert floor <= values[2]


def test_no_server_is_overfull_without_the_conditions_either() -> None:
    """Jobs that may not be split, the other reading of greater, fair throughputs that the share does not reach."""
    rng = np.random.default_rng(1)
    for instance in itertools.islice(full_clusters(1), len(rounds(200))):
        fair = np.minimum(instance.fair_throughputs + rng.integers(0, 2, instance.num_jobs), 3)
        best = instance.chosen(instance.best_choices)[:, 2]
        for changed in (
            replace(instance, allow_split=False),
            replace(instance, fair_throughputs=np.minimum(fair, best)),
        ):
            plans = [method(changed) for method in (tune, tune_and_upgrade, balanced_tune)]
            for plan in [*plans, tune(changed, greater="all")]:
                assert {violation.rule for violation in changed.violations(plan)} <= {"placed"}, changed.to_dict()


def test_balanced_tune_spreads_the_cores() -> None:
    """Two servers of 4 GPUs and 6 cores, two jobs that want 3 cores and six that want 1."""
    wants_3, wants_1 = [[1, 0, 1], [3, 0, 3]], [[1, 0, 1]]
    instance = one_gpu_jobs(wants_3, wants_3, *[wants_1] * 6, servers=2, gpus=4, cpus=6)
    # Tune puts both large jobs on server 0, whose other two GPUs then have no cores left: one reverts.
    assert tune(instance).choices.tolist()[:2] == [0, 1]
    assert balanced_tune(instance).choices.tolist()[:2] == [1, 1]
    assert instance.objective(balanced_tune(instance)) == formulations.solve(instance).objective == 12


# --- the others ---------------------------------------------------------------------------------


def test_two_jobs_of_a_server_take_the_best_configurations_together() -> None:
    """Six cores: one job gives up two of four and loses 1, and with four instead of two the other gains 3."""
    first, second = [(2, 0, 3), (4, 0, 4)], [(2, 0, 1), (4, 0, 4)]
    instance = one_gpu_jobs(first, second)
    assert instance.objective(balanced_tune(instance)) <= instance.objective(local_search(instance))
    assert instance.objective(local_search(instance)) == formulations.solve(instance).objective == 7


def test_two_jobs_change_servers() -> None:
    """Two jobs that want four of six cores are on one server, and two that want one on the other."""
    hungry, modest = [[3, 0, 1], [4, 0, 4]], [[1, 0, 2]]
    instance = one_gpu_jobs(hungry, hungry, modest, modest, servers=2)
    apart = TuningPlan(choices=np.zeros(4, int), gpus=np.array([[1, 0], [1, 0], [0, 1], [0, 1]]))
    search = _Exchanges(instance, apart)
    assert not search.improve(0, 1)
    assert search.improve(0, 2)
    # The other hungry job has its cores now, too.
    assert instance.objective(search.plan()) == formulations.solve(instance).objective == 12
    assert instance.violations(search.plan()) == []
    assert not search.improve(1, 3)
    assert instance.objective(search.plan()) == 12


def test_two_jobs_are_split_in_halves_over_both_servers() -> None:
    """A hungry job and a modest one on a server want seven of six cores; halves of two hungry ones four, beside two."""
    hungry, modest = [[3, 0, 1], [5, 0, 4]], [[2, 0, 2]]
    instance = Tuning(**cluster_of(2, 4, 6, 0), gpu_demands=[2] * 4, configs=[hungry, hungry, modest, modest])
    apart = TuningPlan(choices=np.zeros(4, int), gpus=np.array([[2, 0], [0, 2], [2, 0], [0, 2]]))
    search = _Exchanges(instance, apart)
    assert search.improve(0, 1)
    assert search.plan().gpus.tolist() == [[1, 1], [1, 1], [2, 0], [0, 2]]
    assert instance.violations(search.plan()) == []
    assert instance.objective(search.plan()) == formulations.solve(instance).objective == 9
    assert not search.improve(0, 2)
    whole = _Exchanges(replace(instance, allow_split=False), apart)
    assert not whole.improve(0, 1)
    # Of 8 a loss of a half leaves 4, and of four fifths 1.6, beside 2 as they are.
    for loss, better in [(0.5, True), (0.8, False)]:
        assert _Exchanges(replace(instance, split_penalty=loss), apart).improve(0, 1) == better


def test_what_is_fair_by_configurations_can_be_below_shares_where_splits_cost() -> None:
    """Two jobs at their best leave two cores and two GPUs on either server, and a job for four is split there."""
    hungry, modest = [[4, 0, 2], [6, 0, 3]], [[4, 0, 2]]
    instance = Tuning(**cluster_of(2, 4, 8, 0), gpu_demands=[2] * 4, configs=[hungry, hungry, modest, modest])
    for loss, worth in [(0.0, 8.0), (1.0, 4.0)]:
        priced = replace(instance, split_penalty=loss)
        assert priced.objective(proportional(priced)) == 8
        assert [priced.objective(rule(priced)) for rule in (tune, balanced_tune)] == [worth] * 2
        # What the first stage chooses for all four fits them whole.
        assert priced.objective(local_search(priced)) == 8


@pytest.mark.parametrize("seed", range(3))
def test_local_search_is_never_below_where_it_began(seed: int) -> None:
    instance = generate(seed, num_servers=3)
    first, found = balanced_tune(instance), local_search(instance)
    assert instance.violations(found) == instance.violations(first) == []
    assert instance.objective(first) <= instance.objective(found)
    assert instance.objective(found) <= formulations.solve(instance).bound * (1 + 1e-9)
    kept = local_search(instance, budget=0)
    assert instance.violations(kept) == []
    assert instance.objective(first) <= instance.objective(kept) <= instance.objective(found)


@pytest.mark.parametrize("seed", range(3))
def test_the_first_stage_packed_is_close_where_tune_is_not(seed: int) -> None:
    instance = generate(seed, num_servers=8)
    optimum = formulations.solve(instance).objective
    assert optimum is not None
    assert instance.objective(local_search(instance)) >= 0.995 * optimum


def test_greedy_is_first_fit_in_the_order_of_the_queue() -> None:
    wants_4, wants_2 = [[2, 0, 1], [4, 0, 3]], [[2, 0, 1]]
    instance = one_gpu_jobs(wants_4, wants_4, wants_2, wants_4, servers=2, gpus=3)
    plan = greedy(instance)
    assert plan.choices.tolist() == [1, 1, 0, -1]
    assert plan.gpus.tolist() == [[1, 0], [0, 1], [1, 0], [0, 0]]
    assert greedy(instance, order=[3, 2, 1, 0]).choices.tolist() == [-1, 1, 0, 1]


def test_drf_and_tetris_order_the_queue() -> None:
    """On one server of 4 cores: DRF looks at the largest fraction, Tetris at all of them, times the duration."""
    instance = Tuning(
        **cluster_of(1, 4, 4, 8), gpu_demands=[1, 1], configs=[[[1, 2, 1], [3, 2, 5]], [[1, 1, 1], [2, 7, 4]]]
    )
    # Fractions: job 0 has 1/4, 3/4 and 2/8, job 1 has 1/4, 2/4 and 7/8.
    assert drf(instance).choices.tolist() == [1, -1]
    assert tetris(instance).choices.tolist() == [1, -1]
    assert tetris(instance, durations=[10.0, 1.0]).choices.tolist() == [-1, 1]
    with pytest.raises(ValueError, match="durations"):
        tetris(instance, durations=[1.0])


def test_greedy_breaks_down_where_every_job_is_sensitive(data: Path) -> None:
    path = data / "synergy" / "sensitivity_profiles.json"
    for seed in range(3):
        instance = from_mix(seed, throughputs=path, num_servers=4, mix=(50, 0, 50), multi_gpu=False)
        plan = greedy(instance)
        assert instance.skipped(plan).sum() >= 10
        assert instance.objective(plan) < instance.objective(proportional(instance))
        assert instance.violations(tune(instance)) == []
