"""afs.two_job: formulas (1), (2), (3) and the rules that they give, against a simulation in fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import formulations
from heuristics.afs.two_job import (
    exact_rule,
    formula_1,
    formula_2,
    longer_receives,
    pairwise_rule,
    shorter_first,
)
from instances.afs.two_job import AfsTwoJob, AfsTwoJobPlan, generate, overtaken
from instances.base import InstanceError, PlanError


def simulated(work, throughputs, receiver, alone=(0, 0)):
    """Average completion time, step by step, in fractions."""
    left = [Fraction(w) for w in work]
    now, completions = Fraction(0), {j: Fraction(0) for j in (0, 1) if not left[j]}
    rates = {j: Fraction(throughputs[j][int(j == receiver)]) for j in (0, 1)}
    while len(completions) < 2:
        if completions:
            rates = {j: Fraction(alone[j] or throughputs[j][1]) for j in (0, 1)}
        span = min(left[j] / rate for j, rate in rates.items() if rate and j not in completions)
        now += span
        for j in {0, 1} - set(completions):
            left[j] -= rates[j] * span
            if not left[j]:
                completions[j] = now
    return sum(completions.values()) / 2


def whole_cases(count, seed):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        now = rng.integers(0, 6, 2)
        throughputs = np.stack([now, np.maximum(now + rng.integers(0, 5, 2), 1)], axis=1)
        yield rng.integers(1, 13, 2).tolist(), throughputs.tolist(), rng.integers(0, 12, 2).tolist()


def made(work, throughputs, alone=(0, 0)):
    return AfsTwoJob(work=np.array(work, float), throughputs=np.array(throughputs, float), alone=np.array(alone, float))


@pytest.mark.slow
def test_value_and_optimum_equal_the_simulation():
    for case in whole_cases(400, 0):
        instance = made(*case)
        work, throughputs, alone = case
        both = [simulated(work, throughputs, receiver, alone) for receiver in (0, 1)]
        for receiver in (0, 1):
            assert instance.objective(AfsTwoJobPlan(receiver=receiver)) == pytest.approx(float(both[receiver]))
        solution = formulations.solve(instance)
        assert solution.status == "optimal"
        assert solution.objective == pytest.approx(float(min(both)))
        assert instance.objective(exact_rule(instance)) == pytest.approx(float(min(both)))


def test_formulas_1_and_2_are_differences_of_what_the_simulation_gives():
    behind = overtakes = 0
    for work, throughputs, alone in whole_cases(600, 1):
        instance = made(work, throughputs, alone)
        a, b = instance.shorter, 1 - instance.shorter
        difference = simulated(work, throughputs, a, alone) - simulated(work, throughputs, b, alone)
        if throughputs[a][0] and work[a] * throughputs[b][1] < work[b] * throughputs[a][0]:
            behind += 1
            assert formula_1(instance) == pytest.approx(float(difference), abs=1e-12)
        else:
            overtakes += 1
            assert formula_2(instance) == pytest.approx(float(difference), abs=1e-12)
    assert behind > 50
    assert overtakes > 50


@pytest.mark.slow
def test_formula_3_is_what_the_afs_assumption_makes_of_formulas_1_and_2():
    seen = set()
    for work, throughputs, _ in whole_cases(600, 2):
        instance = made(work, throughputs).apathetic()
        a, b = instance.shorter, 1 - instance.shorter
        if not throughputs[a][0]:
            continue
        assert instance.left_alone.tolist() == [throughputs[j][int(j == b)] for j in (0, 1)]
        first, second = formula_1(instance), formula_2(instance)
        assert first == pytest.approx(second, abs=1e-9)
        if abs(first) > 1e-9:
            assert longer_receives(instance) == (first > 0)
        assert instance.objective(pairwise_rule(instance)) == pytest.approx(formulations.solve(instance).objective)
        seen.add(longer_receives(instance))
    assert seen == {True, False}


def test_footnote_10_is_why_formula_3_does_not_err_where_the_longer_job_overtakes():
    """With p'_a2 = p'_a1 instead of p_a1, which the footnote rules out, formula (2) has another sign."""
    instance = overtaken()
    a, b = instance.shorter, 1 - instance.shorter
    assert instance.work[b] / instance.throughputs[b, 1] < instance.work[a] / instance.throughputs[a, 0]
    assert not longer_receives(instance)
    assert formula_2(instance) == pytest.approx(75.25 - 67)
    assert formulations.solve(instance).plan.receiver == exact_rule(instance).receiver == b
    assert instance.objective(pairwise_rule(instance)) == pytest.approx(75.25)
    under = instance.apathetic()
    assert formula_2(under) == pytest.approx(0)
    assert [under.objective(AfsTwoJobPlan(receiver=job)) for job in (0, 1)] == pytest.approx([75.25, 75.25])


def test_a_job_that_is_done_needs_nothing():
    for work, alone in (([0, 6], (0, 0)), ([6, 0], (2, 5)), ([0, 0], (0, 0))):
        instance = made(work, [[1, 2], [1, 3]], alone)
        both = [simulated(work, [[1, 2], [1, 3]], receiver, alone) for receiver in (0, 1)]
        solution = formulations.solve(instance)
        assert (solution.status, solution.objective) == ("optimal", pytest.approx(float(min(both))))
        for rule in (exact_rule, pairwise_rule, shorter_first):
            plan = rule(instance)
            assert instance.violations(plan) == []
            assert instance.completions(plan)[work.index(0)] == 0


def test_a_job_that_never_runs_makes_it_infeasible():
    instance = made([1, 1], [[0, 0], [1, 2]])
    solution = formulations.solve(instance)
    assert (solution.status, solution.plan) == ("infeasible", None)
    assert solution.proof
    assert "job 0 runs neither with the free GPU nor without it" in solution.message
    for rule in (exact_rule, pairwise_rule, shorter_first):
        plan = rule(instance)
        assert [v.rule for v in instance.violations(plan)] == ["completes"]
        assert instance.objective(plan) == math.inf
    # Unless it runs on what the other leaves behind.
    assert formulations.solve(made([1, 1], [[0, 0], [1, 2]], (4, 0))).objective == pytest.approx((0.5 + 0.75) / 2)


def test_first_gpu_of_two_waiting_jobs_goes_to_the_shorter():
    instance = AfsTwoJob(work=np.array([8.0, 6.0]), throughputs=np.array([[0.0, 2.0], [0.0, 1.0]]))
    assert instance.shorter == 0
    assert pairwise_rule(instance).receiver == 0
    # 4 s, then 6 s more.
    assert instance.objective(AfsTwoJobPlan(receiver=0)) == 7.0
    assert formula_1(instance) == -math.inf
    # 6 s for job 1, then 4 s more, are 8 s on average.
    assert formula_2(instance) == 7 - 8


def test_a_waiting_job_wins_unless_the_running_one_doubles():
    def receiver(more):
        return pairwise_rule(AfsTwoJob(work=[10.0, 10.0], throughputs=[[2.0, more], [0.0, 1.0]])).receiver

    assert receiver(3.9) == 1
    assert receiver(4.0) == 0


@given(st.integers(0, 10**6), st.integers(1, 16), st.sampled_from([0.0, 0.5, 1.0]))
def test_rules_repeat_and_stay_above_the_bound(seed, max_share, closeness):
    instance = generate(seed, max_share=max_share, closeness=closeness)
    before = instance.digest
    bound = formulations.solve(instance).bound
    for rule in (exact_rule, pairwise_rule, shorter_first):
        plan = rule(instance)
        assert instance.violations(plan) == []
        assert plan == rule(instance)
        assert instance.objective(plan) >= bound * (1 - 1e-9)
    assert instance.digest == before


@pytest.mark.parametrize(
    ("work", "throughputs", "message"),
    [
        ([1.0, 1.0], [[1, 2], [2, 1]], r"throughputs: got 1 at index \[1, 1\], must be at least 2"),
        ([1.0, -1.0], [[1, 2], [1, 2]], r"work: got -1\.0 at index \[1\], must be at least 0"),
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
