"""afs.two_job: formulas (1), (2), (3) against a simulation in fractions, and where they err."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import formulations
from heuristics.afs.two_job import (
    jct_if_longer_receives,
    jct_if_shorter_receives,
    longer_receives,
    pairwise_rule,
    shorter_first,
)
from instances.afs.two_job import AfsTwoJob, AfsTwoJobPlan, generate, overtaken
from instances.base import InstanceError, PlanError


def simulated(work, throughputs, receiver):
    """Average completion time, step by step, in fractions."""
    left = [Fraction(w) for w in work]
    holder, now, completions = receiver, Fraction(0), {}
    while len(completions) < 2:
        rates = {j: Fraction(throughputs[j][int(j == holder)]) for j in (0, 1) if j not in completions}
        span = min(left[j] / rate for j, rate in rates.items() if rate)
        now += span
        for j, rate in rates.items():
            left[j] -= rate * span
            if not left[j]:
                completions[j] = now
        if holder in completions:
            holder = 1 - holder
    return sum(completions.values()) / 2


def whole_cases(count, seed):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        now = rng.integers(0, 6, 2)
        throughputs = np.stack([now, np.maximum(now + rng.integers(0, 5, 2), 1)], axis=1)
        yield rng.integers(1, 13, 2).tolist(), throughputs.tolist()


def test_value_and_optimum_equal_the_simulation():
    for work, throughputs in whole_cases(400, 0):
        instance = AfsTwoJob(work=np.array(work, float), throughputs=np.array(throughputs, float))
        both = [simulated(work, throughputs, receiver) for receiver in (0, 1)]
        for receiver in (0, 1):
            assert instance.objective(AfsTwoJobPlan(receiver=receiver)) == pytest.approx(float(both[receiver]))
        solution = formulations.solve(instance)
        assert solution.status == "optimal"
        assert solution.objective == pytest.approx(float(min(both)))


def test_formulas_equal_the_simulation_where_they_hold():
    overtakes = 0
    for work, throughputs in whole_cases(600, 1):
        instance = AfsTwoJob(work=np.array(work, float), throughputs=np.array(throughputs, float))
        a, b = instance.shorter, 1 - instance.shorter
        if not throughputs[a][0]:
            continue
        first, second = (float(simulated(work, throughputs, receiver)) for receiver in (a, b))
        assert jct_if_shorter_receives(instance) == pytest.approx(first)
        if Fraction(work[a], throughputs[a][0]) <= Fraction(work[b], throughputs[b][1]):
            assert jct_if_longer_receives(instance) == pytest.approx(second)
            assert longer_receives(instance) == (second < first - 1e-12) or first == pytest.approx(second)
            assert instance.objective(pairwise_rule(instance)) == pytest.approx(min(first, second))
        else:
            overtakes += 1
            assert jct_if_longer_receives(instance) >= second - 1e-12
    assert overtakes > 50


def test_rule_3_compares_formulas_1_and_2():
    for work, throughputs in whole_cases(400, 2):
        instance = AfsTwoJob(work=np.array(work, float), throughputs=np.array(throughputs, float))
        first, second = jct_if_shorter_receives(instance), jct_if_longer_receives(instance)
        if math.isfinite(second) and first != pytest.approx(second):
            assert longer_receives(instance) == (second < first)


def test_where_the_longer_job_overtakes_the_rule_can_err():
    instance = overtaken()
    a, b = instance.shorter, 1 - instance.shorter
    assert instance.work[b] / instance.throughputs[b, 1] < instance.work[a] / instance.throughputs[a, 0]
    assert jct_if_longer_receives(instance) > instance.objective(AfsTwoJobPlan(receiver=b))
    solution = formulations.solve(instance)
    assert solution.plan.receiver != pairwise_rule(instance).receiver
    assert instance.objective(pairwise_rule(instance)) > solution.objective * 1.01


def test_first_gpu_of_two_waiting_jobs_goes_to_the_shorter():
    instance = AfsTwoJob(work=np.array([8.0, 6.0]), throughputs=np.array([[0.0, 2.0], [0.0, 1.0]]))
    assert instance.shorter == 0
    assert pairwise_rule(instance).receiver == 0
    # 4 s, then 6 s more.
    assert instance.objective(AfsTwoJobPlan(receiver=0)) == 7.0
    assert jct_if_longer_receives(instance) == math.inf


def test_a_waiting_job_wins_unless_the_running_one_doubles():
    def receiver(more):
        return pairwise_rule(AfsTwoJob(work=[10.0, 10.0], throughputs=[[2.0, more], [0.0, 1.0]])).receiver

    assert receiver(3.9) == 1
    assert receiver(4.0) == 0


def test_scip_agrees():
    for seed in range(5):
        instance = generate(seed)
        assert formulations.solve(instance, solver="scip").objective == pytest.approx(
            formulations.solve(instance).objective
        )


@given(st.integers(0, 10**6), st.integers(1, 16), st.sampled_from([0.0, 0.5, 1.0]))
def test_rules_repeat_and_stay_above_the_bound(seed, max_share, closeness):
    instance = generate(seed, max_share=max_share, closeness=closeness)
    before = instance.digest
    bound = formulations.solve(instance).bound
    for rule in (pairwise_rule, shorter_first):
        plan = rule(instance)
        assert instance.violations(plan) == []
        assert plan == rule(instance)
        assert instance.objective(plan) >= bound * (1 - 1e-9)
    assert instance.digest == before


def test_start_plan_is_taken():
    instance = generate(0)
    assert formulations.solve(instance, start=AfsTwoJobPlan(receiver=1)).status == "optimal"


@pytest.mark.parametrize(
    ("work", "throughputs", "message"),
    [
        ([1.0, 1.0], [[1, 2], [2, 1]], r"throughputs: got 1 at index \[1, 1\], must be at least 2"),
        ([1.0, 1.0], [[0, 0], [1, 2]], r"throughputs: got 0 at index \[0, 1\], must be positive"),
    ],
)
def test_bad_instances_name_the_field(work, throughputs, message):
    with pytest.raises(InstanceError, match=message):
        AfsTwoJob(work=np.array(work), throughputs=np.array(throughputs, float))


def test_a_third_job_is_no_receiver():
    instance = generate(0)
    assert [v.rule for v in instance.violations(AfsTwoJobPlan(receiver=2))] == ["receiver_exists"]
    with pytest.raises(PlanError, match="receiver is 2, must be 0 or 1"):
        instance.objective(AfsTwoJobPlan(receiver=2))
