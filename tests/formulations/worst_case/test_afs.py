"""Worst cases of AFS's two-job rules against enumeration, and the families that they tend to."""

from itertools import product

import numpy as np
import pytest

from formulations.worst_case.afs import two_job as model
from formulations.worst_case.proving import prove
from heuristics.afs import two_job
from instances.afs.two_job import AfsTwoJob, AfsTwoJobPlan
from validation import worst_case

RULES = ("pairwise_rule", "shorter_first")


def ratio(instance, rule):
    best = min(instance.objective(AfsTwoJobPlan(receiver=job)) for job in (0, 1))
    return instance.objective(getattr(two_job, rule)(instance)) / best


def pairs(most):
    return [(now, then) for now, then in product(range(1, most + 1), repeat=2) if now <= then]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("most", "apathetic"), [(3, False), (3, True), (4, False)])
def test_two_job_worst_case_is_that_of_whole_work(rule, most, apathetic):
    worst = 1.0
    for a, b in product(pairs(most), repeat=2):
        for work in product(range(1, 7), repeat=2):
            instance = AfsTwoJob(work=np.array(work, float), throughputs=np.array([a, b], float))
            worst = max(worst, ratio(instance.apathetic() if apathetic else instance, rule))
    found = worst_case("afs.two_job", rule, size=most, apathetic=apathetic)
    assert found.proof == "prices"
    assert found.value == pytest.approx(worst, rel=1e-9)


@pytest.mark.parametrize("apathetic", [False, True])
def test_the_formulas_name_the_better_receiver(apathetic):
    assert worst_case("afs.two_job", "exact_rule", size=2, apathetic=apathetic).value == 1
    for a, b in product(pairs(3), repeat=2):
        for work in product(range(1, 5), repeat=2):
            instance = AfsTwoJob(work=np.array(work, float), throughputs=np.array([a, b], float))
            assert ratio(instance.apathetic() if apathetic else instance, "exact_rule") == pytest.approx(1, rel=1e-12)


def test_a_formula_that_is_not_the_difference_is_found(monkeypatch):
    """Formula (1) where (2) applies, which is as bad as a rule that looks at no work."""
    right = model._fall
    monkeypatch.setattr(model, "_fall", lambda *given, b_is_first: right(*given, b_is_first=False))
    assert prove(model.WORST_CASES["exact_rule"], "afs.two_job", size=3).value > 1.1


def test_the_pairwise_rule_is_optimal_under_its_assumption():
    assert worst_case("afs.two_job", "pairwise_rule", size=3, apathetic=True).value == 1


@pytest.mark.parametrize("rule", RULES)
def test_concave_curves_keep_the_rules_near(rule):
    # One more GPU at most doubles a throughput on a concave curve.
    found = worst_case("afs.two_job", rule, size=4, max_speedup=2)
    assert found.value == pytest.approx({"pairwise_rule": 9 / 8, "shorter_first": 4 / 3}[rule], rel=1e-9)
    rng = np.random.default_rng(3)
    for _ in range(400):
        now = rng.uniform(0.5, 4, 2)
        instance = AfsTwoJob(
            work=rng.uniform(0.5, 10, 2), throughputs=np.column_stack([now, now * rng.uniform(1, 2, 2)])
        )
        assert ratio(instance, rule) <= found.value * (1 + 1e-12)


def faster(rule, times):
    """Two jobs of one length, of which the one that does not receive the GPU would be ``times`` as fast with it."""
    return AfsTwoJob(
        work=np.array([2.0 * times, 2.0 * times]),
        throughputs=np.array([[1, 2 if rule == "pairwise_rule" else 1], [1, times]], float),
    )


@pytest.mark.parametrize("times", [3, 4, 1000])
@pytest.mark.parametrize("rule", RULES)
def test_both_rules_tend_to_twice_the_optimum(rule, times):
    value = (2 * times + 1) / (times + 3) if rule == "pairwise_rule" else 2 * times / (times + 1)
    assert ratio(faster(rule, times), rule) == pytest.approx(value, rel=1e-12)
    if times < 5:
        assert worst_case("afs.two_job", rule, size=times).value == pytest.approx(value, rel=1e-9)
