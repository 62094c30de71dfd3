"""Schedules of afs.elastic_sharing: the rules that they break, what they attain, and their metrics."""

import math

import numpy as np
import pytest
from hypothesis import given, settings

from heuristics.afs import elastic_sharing as schedulers
from instances.afs.elastic_sharing import ElasticSharing, Schedule
from instances.afs.metrics import metrics, timeline
from instances.afs.simulation import simulate
from instances.base import InstanceError, PlanError

from .elastic_jobs import cases, two_jobs

# --- schedules that are not right -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "times", "shares", "broken"),
    [
        ({}, [0, 5, 10], [[2, 0], [0, 2]], []),
        ({}, [0, 5, 10], [[2, 1], [0, 1]], [("gpus", (0,), 1.0)]),
        ({}, [0, 5, 10], [[3, 0], [0, 2]], [("share_range", (0, 0), 1.0)]),
        ({}, [0, 5, 10], [[2, 0], [-1, 2]], [("share_range", (1, 0), 1.0)]),
        ({}, [0, 5, 9], [[2, 0], [0, 2]], [("work_done", (1,), 2.0), ("reallocation", (2,), 4.0)]),
        ({}, [0, 5, 11], [[2, 0], [0, 2]], [("work_done", (1,), 2.0), ("reallocation", (2,), 1.0)]),
        ({"arrivals": [0.0, 6.0]}, [0, 5, 10], [[2, 0], [0, 2]], [("arrival", (1, 1), 1.0)]),
        # At 2 s nothing happens; the nearest event is the jobs' arrival.
        ({}, [0, 2, 7, 10], [[2, 0], [0, 2], [2, 0]], [("reallocation", (1,), 2.0)]),
        ({"reallocation": "any_time"}, [0, 2, 7, 10], [[2, 0], [0, 2], [2, 0]], []),
        ({}, [1, 6, 11], [[2, 0], [0, 2]], [("reallocation", (0,), 1.0)]),
        ({"arrivals": [1.0, 0.0]}, [1, 6, 11], [[2, 0], [0, 2]], []),
    ],
)
def test_broken_rules_are_named(changes, times, shares, broken):
    found = two_jobs(**changes).violations(Schedule(times=times, shares=shares))
    assert [(v.rule, v.index, pytest.approx(v.amount)) for v in found] == broken


def test_stopping_short_within_the_tolerance_wins_nothing():
    instance = two_jobs()
    exact = Schedule(times=[0, 5, 10], shares=[[2, 0], [0, 2]])
    short = Schedule(times=[0, 5 - 4e-9, 10 - 8e-9], shares=[[2, 0], [0, 2]])
    assert instance.violations(short) == []
    assert instance.objective(exact) == 7.5
    # Job 0's crumb is done at its last speed; job 1 started earlier by as much.
    assert instance.completions(short).tolist() == pytest.approx([5.0, 10 - 4e-9], rel=1e-12)
    unfinished = Schedule(times=[0, 5, 9.999], shares=[[2, 0], [0, 2]])
    assert instance.objective(unfinished) == math.inf
    with pytest.raises(PlanError, match="job 1 is never done"):
        metrics(instance, unfinished)


def test_completion_inside_an_interval_and_after_a_pause():
    instance = two_jobs(reallocation="any_time")
    plan = Schedule(times=[0, 4, 6, 12], shares=[[2, 0], [0, 2], [1, 1]])
    # Job 0 has 2 left after 4 s and does them from 6 s on; job 1 has 6 left at 6 s.
    assert instance.completions(plan).tolist() == [8.0, 12.0]
    assert [v.rule for v in instance.violations(plan)] == ["work_done"]


def test_a_policy_that_runs_nobody_is_an_error():
    with pytest.raises(ValueError, match="lets no job run"):
        simulate(two_jobs(), lambda state: np.zeros(2, np.int64))


def test_idle_cluster_between_jobs():
    instance = two_jobs(arrivals=[3.0, 20.0])
    plan = schedulers.max_min(instance)
    assert plan.times.tolist() == [3.0, 8.0, 20.0, 25.0]
    assert plan.shares.tolist() == [[2, 0], [0, 0], [0, 2]]
    assert instance.objective(plan) == 5.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_gpus": 3}, r"throughputs: got 3 columns, must be num_gpus \+ 1, 4"),
        ({"throughputs": [[0, 1, 2], [1, 1, 2]]}, r"throughputs: got 1 at index \[1, 0\], must be 0 on no GPUs"),
        ({"requests": [1, -1]}, r"requests: got -1 at index \[1\], must be at least 0"),
        ({"quantum": 0}, r"quantum: got 0\.0, must be greater than 0"),
        ({"throughputs": [[0, 2, 1], [0, 1, 2]]}, r"throughputs: got 1 after 2 at index \[0, 2\], must not fall"),
    ],
)
def test_bad_instances_name_the_field(changes, message):
    with pytest.raises(InstanceError, match=message):
        two_jobs(**changes)


@pytest.mark.parametrize(
    ("times", "shares", "message"),
    [
        ([0, 2, 2], [[1, 0], [0, 1]], r"times: got 2 after 2 at index \[2\], must increase"),
        ([-1, 2], [[1, 0]], r"times: got -1\.0 at index \[0\]"),
    ],
)
def test_bad_schedules_name_the_field(times, shares, message):
    with pytest.raises(PlanError, match=message):
        Schedule(times=times, shares=shares)


# --- metrics -------------------------------------------------------------------------------------


def test_metrics_by_hand():
    # Job 0 has both GPUs for 5 s, then job 1, whose second GPU adds half, for 10 / 1.5 s.
    instance = two_jobs(throughputs=[[0, 1, 2], [0, 1, 1.5]])
    plan = schedulers.srtf(instance)
    end = 5 + 10 / 1.5
    found = metrics(instance, plan)
    assert found.average_jct == pytest.approx((5 + end) / 2)
    assert found.makespan == pytest.approx(end)
    assert found.queue_length == pytest.approx(5 / end)
    assert found.cluster_efficiency == pytest.approx((5 * 1 + (end - 5) * 0.75) / end)
    # While job 1 is pending, its pending time grows to 5 s, and it has 10 s left on one GPU.
    assert found.blocking_index == pytest.approx(5 * (2.5 / 10) / end)
    assert found.waiting_fraction == pytest.approx((0 + 5 / end) / 2)
    over_time = timeline(instance, plan)
    assert over_time.times.tolist() == pytest.approx([0, 5, end])
    assert over_time.queue_lengths.tolist() == [1, 0]
    assert over_time.efficiencies.tolist() == pytest.approx([1, 0.75])
    assert over_time.blocking_indices.tolist() == pytest.approx([0.25, 0])


def test_the_blocking_index_is_over_the_jobs_that_are_pending():
    """Three jobs of 12, 12 and 3 s on one GPU, in turns of 6 s: jobs 0, 1, 2, then 0 and 1."""
    instance = ElasticSharing(
        num_gpus=1, work=[12.0, 12.0, 3.0], throughputs=[[0, 1]] * 3, reallocation="any_time", quantum=6.0
    )
    plan = Schedule(times=[0, 6, 12, 15, 21, 27], shares=np.eye(3, dtype=int)[[0, 1, 2, 0, 1]])
    over_time = timeline(instance, plan)
    expected = [
        # Jobs 1 and 2 pend for 3 s on average, and have 12 and 3 s left.
        (3 / 12 + 3 / 3) / 2,
        # Job 0 has 6 s left; job 2 pends since the start.
        (3 / 6 + 9 / 3) / 2,
        # Job 0 pends for 6 to 9 s; job 1 has pended for 6 s before, and has 6 s left.
        (7.5 / 6 + 7.5 / 6) / 2,
        # Job 1 alone, from 9 s on.
        12 / 6,
        0,
    ]
    assert over_time.blocking_indices.tolist() == pytest.approx(expected)
    lengths = np.array([6, 6, 3, 6, 6])
    assert metrics(instance, plan).blocking_index == pytest.approx(lengths @ expected / 27)


def test_metrics_count_from_arrival_to_completion():
    instance = two_jobs(arrivals=[0.0, 2.0])
    plan = Schedule(times=[0, 5, 10], shares=[[2, 0], [0, 2]])
    assert timeline(instance, plan).waiting_times.tolist() == [0.0, 3.0]
    assert metrics(instance, plan).waiting_fraction == pytest.approx((3 / 8) / 2)
    # From 2 to 5 s, job 1 is pending, with 10 s left on one GPU.
    assert metrics(instance, plan).blocking_index == pytest.approx(3 * (1.5 / 10) / 10)


@given(cases)
@settings(max_examples=25)
def test_metrics_are_in_range_and_obey_littles_law(instance):
    for scheduler in (schedulers.afs_l, schedulers.srtf):
        plan = scheduler(instance)
        found = metrics(instance, plan)
        waiting = timeline(instance, plan).waiting_times
        assert found.average_jct == pytest.approx(instance.objective(plan))
        assert found.queue_length * found.makespan == pytest.approx(waiting.sum(), abs=1e-6)
        assert 0 <= found.waiting_fraction < 1
        assert (found.blocking_index > 0) == (found.queue_length > 0)
        assert found.cluster_efficiency <= 1 + 1e-9  # these curves lose, they never gain, by sharing
