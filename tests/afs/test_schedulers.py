"""The schedulers of afs.elastic_sharing: the paper's example, Algorithm 1 to the letter, and all of them by hand."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import formulations
from heuristics.afs import elastic_sharing as schedulers
from instances.afs.elastic_sharing import (
    ElasticSharing,
    appendix_a,
    bounded_linear,
    generate,
    three_job_cycle,
)
from instances.afs.metrics import timeline

from .elastic_jobs import ALL, cases, instance_of, small

HOUR = 3600.0


# --- the paper's example, and the scan -----------------------------------------------------------


def test_appendix_a_is_1_75_hours_and_1_25_without_the_wait():
    instance = appendix_a()
    solution = formulations.solve(instance)
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(1.75 * HOUR)
    a, b = instance.completions(solution.plan)
    assert (a / HOUR, b / HOUR) == (pytest.approx(1.0), pytest.approx(2.5))
    wait = timeline(instance, solution.plan).waiting_times
    assert wait.tolist() == pytest.approx([0.0, 1.0 * HOUR])
    assert (a + b - wait.sum()) / 2 == pytest.approx(1.25 * HOUR)
    assert instance.objective(schedulers.afs_l(instance)) == pytest.approx(1.75 * HOUR)


def reference_afs_l(num_gpus, tables, left, lengths):
    """Algorithm 1 as it reads, one GPU at a time, from scratch for each; ``lengths(j, s)``."""
    shares = dict.fromkeys(left, 0)
    for _ in range(num_gpus):
        able = [j for j in left if shares[j] < num_gpus and tables[j][shares[j] + 1] > tables[j][shares[j]]]
        if not able:
            break
        best = able[0]
        for j in able[1:]:
            if shares[best] == 0 and shares[j] == 0:
                if lengths(j, 1) < lengths(best, 1):
                    best = j
                continue
            a, b = best, j
            if lengths(b, shares[b]) < lengths(a, shares[a]):
                a, b = b, a
            p_a, p_a_more = tables[a][shares[a]], tables[a][shares[a] + 1]
            p_b, p_b_more = tables[b][shares[b]], tables[b][shares[b] + 1]
            best = b if (p_b_more - p_b) / p_b_more > (p_a_more - p_a) / p_a else a
        shares[best] += 1
    return shares


@pytest.mark.parametrize("linear", [False, True])
def test_afs_l_follows_algorithm_1_to_the_letter(linear):
    rng = np.random.default_rng(7)
    for seed in range(40):
        instance = generate(rng, num_jobs=int(rng.integers(1, 9)), num_gpus=8, loss=0.0 if linear else 0.9)
        tables = instance.throughputs.tolist()
        left = dict(enumerate(instance.work.tolist()))
        plan = schedulers.afs_l(instance)
        assert instance.violations(plan) == []

        def lengths(j, s, left=left, tables=tables):
            return left[j] / tables[j][s] if s else math.inf

        now, intervals = 0.0, []
        while left:
            shares = reference_afs_l(8, tables, left, lengths)
            span = min(lengths(j, s) for j, s in shares.items())
            now += span
            intervals.append((now, [shares.get(j, 0) for j in range(instance.num_jobs)]))
            for j, s in shares.items():
                left[j] -= tables[j][s] * span
            for j in [j for j, rest in left.items() if rest <= 1e-9 * instance.work[j]]:
                del left[j]
        merged = [row for at, row in enumerate(intervals) if at + 1 == len(intervals) or intervals[at + 1][1] != row[1]]
        assert plan.times[1:].tolist() == pytest.approx([end for end, _ in merged]), seed
        assert plan.shares.tolist() == [shares for _, shares in merged], seed


def test_the_comparison_of_afs_l_goes_round_in_a_circle():
    instance = three_job_cycle()
    now, then = instance.throughputs[:, 1], instance.throughputs[:, 2]
    if_shorter, if_longer = (then - now) / now, (then - now) / then

    def wins(i, j):
        a, b = sorted((i, j))  # lower jobs are shorter here
        return (b if if_longer[b] > if_shorter[a] else a) == i

    assert wins(0, 1)
    assert wins(1, 2)
    assert wins(2, 0)
    receivers = set()
    for order in itertools.permutations(range(3)):
        turned = replace(instance, work=instance.work[list(order)], throughputs=instance.throughputs[list(order)])
        first = schedulers.afs_l(turned).shares[0]
        receivers.add(order[int(first.argmax())])
    assert receivers == {0, 1, 2}
    assert int(schedulers.afs_l(instance).shares[0].argmax()) == 2


def test_afs_p_is_blind_to_lengths():
    instance = generate(3, num_jobs=5, num_gpus=8)
    longer = replace(instance, work=instance.work * np.array([1, 3, 5, 7, 9]))
    assert np.array_equal(schedulers.afs_p(instance).shares[0], schedulers.afs_p(longer).shares[0])


def test_afs_p_in_slices_serves_every_job_early():
    instance = ElasticSharing(
        num_gpus=1,
        work=np.array([1000.0, 1000.0, 10.0]),
        throughputs=np.tile([0.0, 1.0], (3, 1)),
        reallocation="any_time",
    )
    assert instance.objective(schedulers.afs_p(instance)) == pytest.approx((1000 + 2000 + 2010) / 3)
    plan = schedulers.afs_p(instance, quantum=5.0)
    assert instance.violations(plan) == []
    # Slices of 5 s in turn: the short job ends with its second, at 30 s.
    assert instance.completions(plan)[2] == pytest.approx(30.0)
    assert instance.completions(plan).max() == pytest.approx(2010.0)


def test_afs_p_refuses_slices_where_they_are_not_allowed():
    with pytest.raises(ValueError, match="quantum: slices need"):
        schedulers.afs_p(generate(0), quantum=10.0)
    with pytest.raises(ValueError, match=r"quantum: got 0\.0"):
        schedulers.afs_p(generate(0, reallocation="any_time"), quantum=0.0)


def test_schedulers_on_rigid_jobs_by_hand():
    # 4 GPUs; job 0 needs 3 for 30 s, job 1 needs 2 for 10 s, job 2 runs on 1 or 2, 40 or 20 s.
    tables = np.array([bounded_linear(3, 3, 1.0, 4), bounded_linear(2, 2, 1.0, 4), bounded_linear(1, 2, 1.0, 4)])
    instance = ElasticSharing(num_gpus=4, work=np.array([90.0, 20.0, 40.0]), throughputs=tables)
    assert instance.min_shares.tolist() == [3, 2, 1]
    assert instance.max_shares.tolist() == [3, 2, 2]
    assert instance.concave.tolist() == [False, False, True]
    expected = {
        # Jobs 1 and 2 first, then job 0.
        "srtf": ([[0, 2, 2], [0, 0, 2], [3, 0, 0]], [50.0, 10.0, 20.0]),
        # At 10 s job 0, the next in order of the others, waits for 3 GPUs.
        "srtf_elastic": ([[0, 2, 2], [0, 0, 2], [3, 0, 0]], [50.0, 10.0, 20.0]),
        # Phase one starts job 1 (10 s) and job 2 (40 s on one GPU); job 0 does not fit, and phase
        # two gives job 2 its second GPU, which it gives back to job 0 at 10 s.
        "aryl_two_phase": ([[0, 2, 2], [3, 0, 1], [3, 0, 0]], [40.0, 10.0, 30.0]),
    }
    for name, (shares, completions) in expected.items():
        plan = ALL[name](instance)
        assert plan.shares.tolist() == shares, name
        assert instance.completions(plan).tolist() == pytest.approx(completions), name


def test_max_min_and_optimus_by_hand():
    # Job 0 gains 9 iterations/s from the second GPU, job 1 gains 1; both have 100 to do.
    instance = ElasticSharing(
        num_gpus=3, work=np.array([100.0, 100.0]), throughputs=np.array([[0.0, 10, 19, 20], [0.0, 10, 11, 12]])
    )
    assert schedulers.optimus(instance).shares[0].tolist() == [2, 1]
    assert schedulers.max_min(instance).shares[0].tolist() == [2, 1]
    turned = replace(instance, throughputs=instance.throughputs[::-1])
    assert schedulers.optimus(turned).shares[0].tolist() == [1, 2]
    # The tie goes to the lower job.
    assert schedulers.max_min(turned).shares[0].tolist() == [2, 1]


# --- all schedulers, all instances ----------------------------------------------------------------


@given(cases)
@settings(max_examples=80)
def test_schedules_are_feasible_repeatable_and_leave_the_instance_alone(instance):
    before = instance.digest
    for name, scheduler in ALL.items():
        plan = scheduler(instance)
        assert instance.violations(plan) == [], name
        assert plan == scheduler(instance), name
        alone = instance.work / instance.throughputs[:, -1]
        assert (instance.completions(plan) - instance.arrivals >= alone * (1 - 1e-9)).all(), name
    assert ElasticSharing.from_dict(instance.to_dict()).digest == before


@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from([0.0, 0.7]), st.sampled_from([0.0, 0.5]))
@settings(max_examples=25)
def test_no_scheduler_beats_the_bound(seed, num_jobs, loss, rigid):
    instance = generate(seed, num_jobs=num_jobs, num_gpus=4, loss=loss, rigid=rigid)
    solution = formulations.solve(instance)
    relaxed = formulations.solve(replace(instance, reallocation="any_time"))
    assert solution.status == "optimal"
    assert relaxed.bound <= solution.objective * (1 + 1e-6)
    for name, scheduler in ALL.items():
        assert instance.objective(scheduler(instance)) >= solution.bound * (1 - 1e-6), name


def test_schedules_are_checked_to_the_iteration():
    """Completion times from the plan alone, in fractions, against the simulator's."""
    rng = np.random.default_rng(8)
    for _ in range(30):
        num_gpus, tables, work = small(rng, concave=True, sizes=[(3, 4), (4, 3)])
        instance = instance_of(num_gpus, tables, work, "at_completions")
        for scheduler in ALL.values():
            plan = scheduler(instance)
            times = [Fraction(t) for t in plan.times.tolist()]
            for j in range(len(work)):
                done, completion = Fraction(0), None
                for k, shares in enumerate(plan.shares.tolist()):
                    rate, span = tables[j][shares[j]], times[k + 1] - times[k]
                    if completion is None and done + rate * span >= Fraction(work[j]) * (1 - Fraction(1, 10**12)):
                        completion = times[k] + (Fraction(work[j]) - done) / rate
                    done += rate * span
                assert abs(done - work[j]) < Fraction(work[j], 10**9)
                assert instance.completions(plan)[j] == pytest.approx(float(completion), rel=1e-12)
