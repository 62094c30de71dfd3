"""afs.gpu_placement: Proposition 1, and the order of the two aims."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import formulations
import instances
from heuristics.afs.gpu_placement import first_fit_decreasing, first_fit_decreasing_in_place, priced_first_fit
from instances.afs.gpu_placement import GpuPlacement, GpuPlacementPlan, generate, two_machines
from instances.base import InstanceError


def test_keeping_jobs_comes_before_keeping_gpus():
    # On one machine job 0 held 3 of 4 GPUs and job 1 the fourth; both now need 2, and job 2 has 4
    # on the other.  Only machine 0 keeps anything of jobs 0 and 1, and has room for both.
    together = GpuPlacement(regulated=[2, 2, 4], num_machines=2, gpus_per_machine=4, previous=[[3, 0], [1, 0], [0, 4]])
    assert formulations.solve(together).objective == pytest.approx(3 + 7 / 9)
    # Job 0 takes a whole machine.  On machine 0 it keeps 3 GPUs and drives out jobs 1 and 2, which
    # keep nothing: 1 job.  On machine 1 it keeps 1, and they keep one each: 3 jobs.
    split = GpuPlacement(regulated=[8, 2, 2], num_machines=2, gpus_per_machine=8, previous=[[6, 1], [1, 0], [1, 0]])
    solution = formulations.solve(split)
    assert solution.plan.gpus.tolist() == [[0, 8], [2, 0], [2, 0]]
    assert solution.objective == pytest.approx(3 + 3 / 17)
    assert split.objective(first_fit_decreasing_in_place(split)) == pytest.approx(1 + 6 / 17)
    assert first_fit_decreasing(split).gpus.tolist() == [[8, 0], [0, 2], [0, 2]]


def test_the_proofs_placement_does_not_look_at_where_jobs_were():
    instance = GpuPlacement(regulated=[4, 4], num_machines=2, gpus_per_machine=4, previous=[[0, 4], [4, 0]])
    assert first_fit_decreasing(instance).gpus.tolist() == [[4, 0], [0, 4]]
    assert first_fit_decreasing_in_place(instance).gpus.tolist() == [[0, 4], [4, 0]]


@pytest.mark.parametrize("regulated", [[8, 4], [16, 0]])
def test_more_gpus_than_there_are(regulated):
    instance = GpuPlacement(regulated=regulated, num_machines=2, gpus_per_machine=4, previous=[[1, 0], [0, 1]])
    solution = formulations.solve(instance)
    assert (solution.status, solution.plan) == ("infeasible", None)
    assert solution.proof
    assert f"the jobs have {sum(regulated)} GPUs of 8" in solution.message
    assert first_fit_decreasing(instance) is None
    assert first_fit_decreasing_in_place(instance) is None


def test_two_machines():
    instance = two_machines()
    solution = formulations.solve(instance)
    assert solution.plan.gpus.tolist() == [[0, 2], [4, 0], [0, 2]]
    assert solution.objective == pytest.approx(2 + 4 / 9)


@given(st.integers(0, 10**6), st.integers(1, 20), st.sampled_from([1, 2, 4, 8]), st.sampled_from([0.0, 0.5, 1.0]))
def test_proposition_1(seed, num_jobs, machine, change):
    """Regulated shares can be placed on the fewest machines each, one spanning job per machine at most."""
    instance = generate(seed, num_jobs=num_jobs, gpus_per_machine=machine, change=change)
    before = instance.digest
    bound = formulations.solve(instance).bound
    for heuristic in (first_fit_decreasing, first_fit_decreasing_in_place):
        plan = heuristic(instance)
        assert instance.violations(plan) == []
        hosted = plan.gpus > 0
        assert hosted.sum(axis=1).tolist() == [-(-r // machine) for r in instance.regulated.tolist()]
        assert (hosted[hosted.sum(axis=1) > 1].sum(axis=0) <= 1).all()
        assert (plan.gpus.sum(axis=0) <= machine).all()
        assert instance.objective(plan) <= bound + 1e-6
        assert plan == heuristic(instance)
    assert instance.digest == before
    assert GpuPlacementPlan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    assert instances.read(json.loads(json.dumps(instance.to_dict()))) == instance


@given(st.integers(0, 10**6), st.integers(1, 12))
def test_without_change_everything_stays(seed, num_jobs):
    instance = generate(seed, num_jobs=num_jobs, change=0.0)
    running = int((instance.regulated > 0).sum())
    everything = running + instance.regulated.sum() / (1 + instance.num_gpus)
    for plan in (first_fit_decreasing_in_place(instance), formulations.solve(instance).plan):
        assert instance.objective(plan) == pytest.approx(everything)


def test_broken_rules_are_named():
    instance = GpuPlacement(
        regulated=[8, 8, 2], num_machines=5, gpus_per_machine=4, previous=np.zeros((3, 5), np.int64)
    )

    def rules(gpus):
        return [(v.rule, v.index, v.amount) for v in instance.violations(GpuPlacementPlan(gpus=gpus))]

    assert rules([[4, 4, 0, 0, 0], [0, 0, 4, 4, 0], [0, 0, 0, 0, 2]]) == []
    assert rules([[4, 4, 0, 0, 0], [0, 0, 4, 4, 0], [0, 0, 0, 0, 1]]) == [("share", (2,), 1.0)]
    assert rules([[4, 4, 0, 0, 0], [0, 0, 4, 4, 0], [2, 0, 0, 0, 0]]) == [("capacity", (0,), 2.0)]
    assert rules([[4, 4, 0, 0, 0], [0, 0, 4, 4, 0], [0, 0, 0, -1, 3]]) == [("nonnegative", (2, 3), 1.0)]
    assert rules([[4, 2, 2, 0, 0], [0, 2, 2, 4, 0], [0, 0, 0, 0, 2]]) == [
        ("fewest_machines", (0,), 1.0),
        ("fewest_machines", (1,), 1.0),
        ("one_spanning_job", (1,), 1.0),
        ("one_spanning_job", (2,), 1.0),
    ]


def test_jobs_without_gpus_only():
    instance = GpuPlacement(regulated=[0, 0], num_machines=1, gpus_per_machine=2, previous=[[1], [1]])
    solution = formulations.solve(instance)
    assert (solution.status, solution.objective) == ("optimal", 0.0)
    assert first_fit_decreasing(instance).gpus.tolist() == [[0], [0]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gpus_per_machine": 3}, "gpus_per_machine: got 3, must be a power of two"),
        ({"regulated": [3, 1]}, r"regulated: got 3 at index \[0\], must be 0, a power of two below 4"),
        ({"regulated": [6, 0]}, r"regulated: got 6 at index \[0\], must be 0, a power of two below 4 or a multiple"),
        ({"previous": [[1], [1]]}, "previous: got 1 machines, must be num_machines, 2"),
        ({"previous": [[3, 0], [2, 0]]}, "previous: got 5 GPUs on machine 0, must be at most gpus_per_machine, 4"),
    ],
)
def test_bad_instances_name_the_field(changes, message):
    fields = {"regulated": [4, 2], "num_machines": 2, "gpus_per_machine": 4, "previous": [[1, 0], [0, 1]]}
    with pytest.raises(InstanceError, match=message):
        GpuPlacement(**{**fields, **changes})


def test_prices_keep_large_jobs_from_where_small_ones_stay():
    # The instance of the first test: in place, job 0 drives out two jobs.
    split = GpuPlacement(regulated=[8, 2, 2], num_machines=2, gpus_per_machine=8, previous=[[6, 1], [1, 0], [1, 0]])
    assert split.objective(priced_first_fit(split)) == pytest.approx(3 + 3 / 17)
    gained, optimal = 0, 0
    for seed in range(10):
        instance = generate(seed, num_jobs=8)
        values = [
            instance.objective(plan) for plan in (first_fit_decreasing_in_place(instance), priced_first_fit(instance))
        ]
        assert values[0] <= values[1]
        assert instance.objective(priced_first_fit(instance, budget=0)) == values[0]
        gained += values[0] < values[1]
        optimal += values[1] == pytest.approx(formulations.solve(instance).objective)
    assert gained >= 3
    assert optimal >= 8


def test_prices_on_machines_of_many_gpus():
    """Free GPUs are exchanged in one piece, however many they are."""
    size = 2**22
    instance = GpuPlacement(
        regulated=[size // 2, size // 4, size // 4],
        num_machines=2,
        gpus_per_machine=size,
        previous=[[0, size // 2], [0, size // 4], [size // 8, 0]],
    )
    assert instance.kept(priced_first_fit(instance)).tolist() == [size // 2, size // 4, size // 8]
