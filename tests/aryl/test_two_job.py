"""aryl.two_job against a simulation in fractions and the printed averages."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import formulations
from heuristics.aryl.two_job import best_breakpoint, closed_form
from instances import InstanceError, PlanError
from instances.aryl.two_job import (
    ArylTwoJob,
    ArylTwoJobPlan,
    binding_minimum,
    generate,
    smaller_maximum_first,
    smaller_workload_first,
)

from ..effort import rounds


@st.composite
def two_jobs(draw):
    num_gpus = draw(st.integers(2, 14))
    first = draw(st.integers(1, num_gpus - 1))
    least = [first, draw(st.integers(1, num_gpus - first))]
    most = [low + draw(st.integers(0, num_gpus)) for low in least]
    work = draw(st.lists(st.integers(0, 60), min_size=2, max_size=2))
    return ArylTwoJob(num_gpus=num_gpus, workloads=[float(w) for w in work], min_gpus=least, max_gpus=most)


def simulate(instance, gpus):
    """Completion times by moving from event to event, in fractions."""
    left = [Fraction(w) for w in instance.workloads.tolist()]
    share, now, done = list(gpus), Fraction(0), [None, None]
    while None in done:
        running = [job for job in (0, 1) if done[job] is None]
        step = min(left[job] / share[job] for job in running)
        now += step
        for job in running:
            left[job] -= share[job] * step
            if left[job] == 0:
                done[job] = now
        for job in running:
            share[job] = min(int(instance.max_gpus[job]), instance.num_gpus)
    return done


def enumerate_splits(instance):
    """Average completion time of every whole split that the card allows."""
    together = min(instance.num_gpus, int(instance.max_gpus.sum()))
    averages = {}
    for a in range(1, together):
        gpus = (a, together - a)
        if all(instance.min_gpus[j] <= gpus[j] <= instance.max_gpus[j] for j in (0, 1)):
            averages[gpus] = sum(simulate(instance, gpus)) / 2
    return averages


@given(two_jobs())
def test_values_equal_the_simulation(instance):
    averages = enumerate_splits(instance)
    assert [(x, instance.used_gpus - x) for x in instance.splits] == list(averages)
    for gpus, average in averages.items():
        plan = ArylTwoJobPlan(gpus=gpus)
        assert instance.violations(plan) == []
        assert instance.completion_times(plan) == pytest.approx([float(t) for t in simulate(instance, gpus)])
        assert instance.objective(plan) == pytest.approx(float(average), rel=1e-12)


def test_tables_2_and_3():
    """Running times of 50 and 20 s on 6 workers; the three splits as printed, of which the second is the best."""
    instance = smaller_workload_first()
    assert (instance.workloads / instance.max_gpus).tolist() == [50, 20]
    printed = {(6, 2): (50, 53.33, 51.67), (2, 6): (63.33, 20, 41.67), (4, 4): (60, 30, 45)}
    for gpus, figures in printed.items():
        plan = ArylTwoJobPlan(gpus=gpus)
        assert [*instance.completion_times(plan), instance.objective(plan)] == pytest.approx(figures, abs=0.005)
    # The worst is 24% above the best.
    assert round(instance.objective(instance.split(6)) / instance.objective(instance.split(2)), 2) == 1.24
    averages = enumerate_splits(instance)
    assert averages == {
        (2, 6): Fraction(125, 3),
        (3, 5): Fraction(43),
        (4, 4): Fraction(45),
        (5, 3): Fraction(145, 3),
        (6, 2): Fraction(155, 3),
    }
    assert simulate(instance, (2, 6)) == [Fraction(190, 3), 20]
    assert round(formulations.solve(instance).objective, 2) == 41.67
    assert closed_form(instance).gpus.tolist() == [2, 6]


def test_table_4():
    """Running times of 100 and 20 s on the most workers; the larger, longer job goes first."""
    instance = smaller_maximum_first()
    assert (instance.workloads / instance.max_gpus).tolist() == [100, 20]
    printed = {3: (100, 24, 62), 2: (106.67, 20, 63.33)}
    for workers, figures in printed.items():
        plan = instance.split(workers)
        assert [*instance.completion_times(plan), instance.objective(plan)] == pytest.approx(figures, abs=0.005)
    # A worker more for A saves it 6.67 s and costs B 4 s.
    change = instance.completion_times(instance.split(2)) - instance.completion_times(instance.split(3))
    assert change.tolist() == pytest.approx([6.67, -4], abs=0.005)
    assert enumerate_splits(instance) == {(2, 6): Fraction(190, 3), (3, 5): Fraction(62)}
    assert formulations.solve(instance).objective == pytest.approx(62)
    assert closed_form(instance).gpus.tolist() == [3, 5]


def test_binding_minimum_misleads_the_closed_form():
    instance = binding_minimum()
    assert closed_form(instance).gpus.tolist() == [5, 3]
    assert instance.objective(closed_form(instance)) == pytest.approx(72.857, abs=1e-3)
    assert formulations.solve(instance).plan.gpus.tolist() == [1, 7]
    assert formulations.solve(instance).objective == pytest.approx(69.184, abs=1e-3)


@given(two_jobs())
def test_closed_form(instance):
    """Feasible, never better than the optimum, and optimal where the favoured job gets its maximum."""
    digest = instance.digest
    plan = closed_form(instance)
    assert instance.violations(plan) == []
    assert closed_form(instance) == plan
    assert instance.digest == digest
    averages = enumerate_splits(instance)
    value, optimum = averages[tuple(plan.gpus.tolist())], min(averages.values())
    assert value >= optimum
    most = [min(int(m), instance.num_gpus) for m in instance.max_gpus]
    narrow = 2 * min(most) <= instance.num_gpus
    favoured = int(most[1] < most[0]) if narrow else int(instance.workloads[1] < instance.workloads[0])
    if plan.gpus[favoured] == most[favoured]:
        assert value == optimum


def test_closed_form_errs_only_where_a_minimum_binds():
    """The dial makes it err; without it the rule is optimal."""
    worst = {0.0: Fraction(1), 0.75: Fraction(1), 1.0: Fraction(1)}
    for binding in worst:
        for seed in rounds(70):
            instance = generate(seed, num_gpus=12, binding=binding)
            averages = enumerate_splits(instance)
            ratio = averages[tuple(closed_form(instance).gpus.tolist())] / min(averages.values())
            worst[binding] = max(worst[binding], ratio)
    assert worst[0.0] == worst[1.0] == 1
    assert worst[0.75] > Fraction(105, 100)


@given(two_jobs())
def test_the_sum_that_the_rule_comes_from(instance):
    """(W_f / x_f)(2 - G / M_s) + (W_f + W_s) / M_s, when all GPUs are in use and f is first."""
    assume(instance.used_gpus == instance.num_gpus)
    most = [min(int(m), instance.num_gpus) for m in instance.max_gpus]
    work = [Fraction(w) for w in instance.workloads.tolist()]
    for gpus, average in enumerate_splits(instance).items():
        first = 0 if work[0] / gpus[0] <= work[1] / gpus[1] else 1
        after = most[1 - first]
        total = work[first] / gpus[first] * (2 - Fraction(instance.num_gpus, after)) + sum(work) / after
        assert total == 2 * average


def test_broken_rules_are_named():
    instance = smaller_maximum_first()
    plan = ArylTwoJobPlan(gpus=[4, 1])
    assert [str(v) for v in instance.violations(plan)] == ["min_gpus[1] by 1", "max_gpus[0] by 1", "used_gpus by 3"]
    assert instance.violations(instance.split(3)) == []
    with pytest.raises(PlanError, match=r"gpus is 0 at index \[1\], must be at least 1"):
        instance.objective(ArylTwoJobPlan(gpus=[3, 0]))


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("min_gpus", {"min_gpus": [0, 4]}),
        ("max_gpus", {"max_gpus": [1, 6]}),
    ],
)
def test_bad_fields_are_named(field, fields):
    good = smaller_maximum_first().to_dict()
    with pytest.raises(InstanceError, match=rf"\.{field}: "):
        ArylTwoJob.from_dict({**good, **fields})


@pytest.mark.parametrize(
    ("num_gpus", "least"),
    [(1, [1, 1]), (8, [5, 4])],
)
def test_minima_that_do_not_fit_together(num_gpus, least):
    """No plan, which is no error of the data."""
    instance = ArylTwoJob(num_gpus=num_gpus, workloads=[3.0, 0.0], min_gpus=least, max_gpus=[9, 9])
    solution = formulations.solve(instance)
    assert (solution.status, solution.plan) == ("infeasible", None)
    assert solution.proof != "none"
    assert solution.message.endswith(f"min_gpus are {sum(least)} together, there are {num_gpus} GPUs")
    assert closed_form(instance) is None
    instance.plot()


def test_finished_jobs_complete_at_once():
    one = ArylTwoJob(num_gpus=6, workloads=[0.0, 8.0], min_gpus=[1, 1], max_gpus=[4, 4])
    for gpus in one.splits:
        assert one.completion_times(one.split(gpus)).tolist() == [0, 2]
    assert formulations.solve(one).objective == one.objective(closed_form(one)) == 1
    both = ArylTwoJob(num_gpus=6, workloads=[0.0, 0.0], min_gpus=[1, 1], max_gpus=[4, 4])
    solution = formulations.solve(both)
    assert (solution.status, solution.objective) == ("optimal", 0)
    assert both.objective(closed_form(both)) == 0


def test_generated_instances():
    for seed in rounds(30):
        instance = generate(seed, num_gpus=3 + seed % 20, binding=(seed % 5) / 4)
        assert instance.used_gpus == instance.num_gpus
        assert len(instance.splits) >= 1


@given(two_jobs())
def test_the_best_breakpoint_is_the_best_split(instance):
    sums = {gpus: sum(simulate(instance, (gpus, instance.used_gpus - gpus))) for gpus in instance.splits}
    best = best_breakpoint(instance).gpus.tolist()
    assert sums[best[0]] == pytest.approx(min(sums.values()), rel=1e-12, abs=0)


def test_the_best_breakpoint_where_both_complete_at_once():
    """Beyond both bounds, and between them, with works of all magnitudes."""
    for seed in rounds(60):
        rng = np.random.default_rng(seed)
        least = rng.integers(1, 20, 2)
        fields = {"workloads": 10.0 ** rng.uniform(-300, 300, 2), "min_gpus": least, "max_gpus": least + 20}
        instance = ArylTwoJob(num_gpus=40, **fields)
        values = [instance.objective(instance.split(gpus)) for gpus in instance.splits]
        assert instance.objective(best_breakpoint(instance)) == pytest.approx(min(values), rel=1e-12, abs=0)
    assert best_breakpoint(ArylTwoJob(num_gpus=1, workloads=[1, 1], min_gpus=[1, 1], max_gpus=[1, 1])) is None
