"""afs.elastic_sharing: hard cases against the reference, the bound, and the generator."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import formulations
from formulations.afs.elastic_sharing import bound
from formulations.engine import clock
from formulations.engine.options import Options
from formulations.methods import completions
from formulations.methods.completions import BY_ORDER, shares_in_order
from instances.afs.elastic_sharing import ElasticSharing, Schedule, bounded_linear, generate
from instances.afs.simulation import simulate
from instances.base import OPTIMALITY_TOLERANCE
from instances.files import text_of
from instances.reference import afs
from instances.reference.afs import ElasticSharing as Rules
from instances.reference.common import TOLERANCE, Counter, TooLarge, parse

from ..effort import rounds
from ..second_opinion import optimum
from .elastic_jobs import ALL, instance_of, small, two_jobs

BY_REFERENCE = Rules()


def best(num_gpus, tables, work, reallocation):
    return optimum(instance_of(num_gpus, tables, work, reallocation))


def test_the_reference_is_right_where_it_must():
    # Two jobs that scale linearly: one after the other, the shorter first.
    for reallocation in ("at_completions", "any_time"):
        assert best(2, [[0, 1, 2], [0, 1, 2]], [4, 6], reallocation) == Fraction(2 + 5, 2)
    # Rigid jobs that exclude each other.
    assert best(2, [[0, 0, 1], [0, 0, 1]], [3, 2], "any_time") == Fraction(2 + 5, 2)


def test_shares_may_change_at_the_arrival_of_a_job_without_work():
    """It is an event for the judge: to wait for it is better than to wait for the next completion."""
    instance = ElasticSharing(
        num_gpus=3,
        work=[6, 5, 6, 0],
        throughputs=[[0, 4, 5, 5], [0, 0, 1, 5], [0, 4, 5, 5], [0, 1, 1, 1]],
        arrivals=[0, 0, 0, 11 / 16],
    )
    assert optimum(instance) == Fraction(1601, 1280)
    assert optimum(replace(instance, arrivals=[0, 0, 0, 0])) == Fraction(127, 100)


def test_the_best_schedule_of_an_order():
    rng = np.random.default_rng(8)
    several = 0
    for _ in rounds(40):
        num_gpus, tables, work = small(rng, concave=True, sizes=[(2, 5), (2, 4), (2, 3), (3, 2)])
        order = rng.permutation(len(work))
        instance = instance_of(num_gpus, tables, work, "at_completions")
        rates = instance.throughputs[order] / instance.work[order, None]
        shares = shares_in_order(rates, num_gpus, Options())
        if shares is None:
            several += 1
            continue
        held = np.zeros((len(work), len(work)), int)
        held[:, order] = shares
        schedule = simulate(instance, lambda state: held[(state.remaining[order] > 0).argmax()])  # noqa: B023
        total = BY_REFERENCE.in_order(BY_REFERENCE.instance(parse(text_of(instance))), order.tolist(), Counter())
        assert instance.objective(schedule) == pytest.approx(float(total) / len(work), rel=1e-7), (tables, work, order)
    assert several < 20


def least_of_orders(instance):
    """The least that any order of completions proves, one order after the other: prices of work in fractions."""
    gpus = range(instance.num_gpus + 1)
    curves = []
    for work, row in zip(instance.work.tolist(), instance.throughputs.tolist(), strict=True):
        parts = [Fraction(rate) / Fraction(work) for rate in row]
        chords = [
            [(parts[a] * (b - s) + parts[b] * (s - a)) / (b - a) for a in gpus for b in gpus if a <= s < b]
            for s in gpus
        ]
        curves.append([max([parts[s], *chords[s]]) for s in gpus])
    totals = []
    for order in itertools.permutations(curves):
        worth, total = [Fraction(0) for _ in gpus], Fraction(0)
        for curve in reversed(order):
            price = min((1 + worth[-1] - worth[-1 - s]) / curve[s] for s in gpus if curve[s])
            worth = [max(worth[m - s] + price * curve[s] for s in range(m + 1)) for m in gpus]
            total += price
        totals.append(total)
    return min(totals) / len(curves)


@pytest.mark.parametrize("concave", [True, False])
def test_the_least_of_all_orders_is_no_more_than_any_schedule_is_worth(concave):
    """It is the optimum of concave curves, but for the tolerance, where shares change at any time."""
    rng, near = np.random.default_rng(29), (1 - TOLERANCE) ** 2
    for _ in rounds(25):
        case = small(rng, concave=concave, sizes=[(1, 3), (2, 4), (3, 2), (3, 3)])
        read = BY_REFERENCE.instance(parse(text_of(instance_of(*case, "any_time"))))
        found, least = BY_REFERENCE.by_orders(read), least_of_orders(instance_of(*case, "any_time"))
        assert least * near <= found <= least, case
        exact = best(*case, "any_time")
        assert found <= exact <= best(*case, "at_completions"), case
        assert not concave or found >= exact * near, case


def test_the_least_of_all_orders_bounds_what_the_judge_takes_for_a_schedule():
    """Who stops short by the tolerance gains by it no more than is taken off."""
    instance = instance_of(1, [[0, 1], [0, 1]], [100.0, 100.0], "any_time")
    bound = BY_REFERENCE.searched(BY_REFERENCE.instance(parse(text_of(instance))))
    short = 100.0 * (1 - 0.99e-9)
    plan = Schedule(times=[0.0, short, 2 * short], shares=[[1, 0], [0, 1]])
    assert not instance.violations(plan)
    assert bound <= instance.objective(plan) < 150.0


def test_what_orders_rule_out_is_not_best(monkeypatch):
    """Of jobs that arrive over time the search of all shares finds the same with the bound and without."""
    rng, fewer = np.random.default_rng(31), 0
    for _ in rounds(15):
        num_gpus, tables, work = small(rng, concave=False, sizes=[(2, 4), (3, 2), (3, 3)])
        drawn = instance_of(num_gpus, tables, work, "at_completions")
        instance = replace(drawn, arrivals=rng.integers(0, 5, len(work)).astype(float))
        read, steps = BY_REFERENCE.instance(parse(text_of(instance))), []
        for least in (afs._least_order, lambda *_: (0.0, ())):
            counter = Counter(100_000)
            with monkeypatch.context() as patched:
                patched.setattr(afs, "_least_order", least)
                patched.setattr(afs, "Counter", lambda most, mine=counter: mine if most == 100_000 else Counter(most))
                steps.append((BY_REFERENCE.enumerated(read), counter.left))
        assert steps[0][0] == steps[1][0], instance.to_json()
        fewer += steps[0][1] > steps[1][1]
    assert fewer > 0


def test_orders_are_of_jobs_that_arrive_together():
    for reallocation, arrivals in (("any_time", [0.0, 1.0]), ("at_completions", [0.0, 1.0])):
        read = BY_REFERENCE.instance(parse(text_of(two_jobs(reallocation=reallocation, arrivals=arrivals))))
        with pytest.raises(TooLarge):
            BY_REFERENCE.by_orders(read)
    late = two_jobs(arrivals=[5.0, 5.0], reallocation="any_time")
    assert float(BY_REFERENCE.searched(BY_REFERENCE.instance(parse(text_of(late))))) == pytest.approx(7.5, rel=1e-8)
    # Numbers that no float can have beside each other.
    far = two_jobs(work=[1e-300, 1e300], throughputs=[[0, 1e8, 1e8], [0, 1e-8, 1e-8]], reallocation="any_time")
    with pytest.raises(TooLarge):
        BY_REFERENCE.searched(BY_REFERENCE.instance(parse(text_of(far))))


@pytest.mark.slow
def test_the_order_and_then_the_shares_are_worth_what_the_one_model_is():
    rng = np.random.default_rng(9)
    for draw in rounds(20):
        instance = generate(rng, num_jobs=2 + draw % 3, num_gpus=4, loss=float(rng.choice([0.2, 0.5, 1.0])))
        whole = formulations.solve(formulations.build(instance))
        for method in (BY_ORDER.name, "auto"):
            solution = formulations.solve(instance, method=method)
            assert solution.status == "optimal"
            assert solution.objective == pytest.approx(bound(instance, whole.objective), rel=1e-6)


def test_the_bound_outlives_the_time(monkeypatch):
    instance = generate(1, num_jobs=4, num_gpus=4)
    optimum = formulations.solve(instance).objective
    begun = completions.shares_in_order

    def late(*arguments):
        monkeypatch.setattr(clock, "left", lambda: 0.0)
        return begun(*arguments)

    monkeypatch.setattr(completions, "shares_in_order", late)
    solution = formulations.solve(instance, time_limit=600, method="order")
    assert solution.status in ("unknown", "feasible")
    assert solution.bound == pytest.approx(optimum, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("reallocation", ["at_completions", "any_time"])
def test_curves_of_any_shape(reallocation):
    """The strategies draw few.  At any time they are bounded, and some plan is found."""
    rng = np.random.default_rng(4)
    bent = 0
    for _ in rounds(40):
        case = small(rng, concave=False, sizes=[(2, 4), (2, 3), (3, 2)])
        instance = instance_of(*case, reallocation)
        exact, solution = float(best(*case, reallocation)), formulations.solve(instance)
        bent += not instance.concave.all()
        assert solution.bound <= exact * (1 + 1e-7), case
        assert solution.objective >= exact * (1 - 1e-7), case
        if solution.status == "optimal":
            assert solution.objective == pytest.approx(exact, rel=1e-6), case
        else:
            assert reallocation == "any_time"
            assert "not concave" in solution.message
    assert bent > 15


def test_the_two_classes_can_differ():
    tables = [[0, 4, 5, 5], [0, 0, 1, 5], [0, 4, 5, 5]]
    assert best(3, tables, [6, 5, 6], "at_completions") == Fraction(127, 75)
    assert best(3, tables, [6, 5, 6], "any_time") == Fraction(5, 3)
    solution = formulations.solve(instance_of(3, tables, [6, 5, 6], "at_completions"))
    assert solution.objective == pytest.approx(127 / 75)
    relaxed = formulations.solve(instance_of(3, tables, [6, 5, 6], "any_time"))
    assert relaxed.bound == pytest.approx(5 / 3)
    assert relaxed.status == "feasible"


@pytest.mark.slow
def test_equal_jobs_and_equal_curves_do_not_lose_the_optimum_to_symmetry_breaking():
    rng = np.random.default_rng(6)
    for _ in range(25):
        num_gpus, tables, work = small(rng, concave=True, sizes=[(2, 3), (3, 3)])
        tables = [tables[0]] * len(work)
        if rng.integers(2):
            work = [work[0]] * len(work)
        case = num_gpus, tables, work
        for reallocation in ("at_completions", "any_time"):
            solution = formulations.solve(instance_of(*case, reallocation))
            assert solution.objective == pytest.approx(float(best(*case, reallocation)), rel=1e-7), (case, reallocation)


@pytest.mark.parametrize(
    ("num_gpus", "work", "curve"),
    [(5, [2.7, 0.8], [0, 8, 15, 21, 23, 24]), (6, [2, 6], [0, 7, 14, 19, 22, 25, 25])],
)
def test_two_short_jobs_of_one_curve(num_gpus, work, curve):
    """In seconds, the model's costs were so small that HiGHS's tolerance let 0.5 % pass for nothing."""
    instance = instance_of(num_gpus, [curve, curve], work, "any_time")
    exact = float(best(num_gpus, [curve, curve], work, "any_time"))
    for verify in (False, None, True):
        solution = formulations.solve(instance, verify=verify)
        assert solution.status == "optimal"
        assert solution.objective == pytest.approx(exact, rel=1e-9)
        assert solution.bound == pytest.approx(exact, rel=1e-6)


def test_short_jobs_of_one_curve_equal_enumeration():
    rng = np.random.default_rng(14)
    for _ in rounds(20):
        num_gpus = int(rng.integers(3, 7))
        curve = [0, *np.cumsum(np.sort(rng.integers(0, 10, num_gpus))[::-1]).tolist()]
        curve = curve if curve[-1] else [0, *range(1, num_gpus + 1)]
        work = (rng.integers(1, 60, 2) / 10).tolist()
        exact = float(best(num_gpus, [curve, curve], work, "any_time"))
        solution = formulations.solve(instance_of(num_gpus, [curve, curve], work, "any_time"), verify=False)
        assert solution.status == "optimal", (curve, work)
        assert solution.objective == pytest.approx(exact, rel=1e-7), (curve, work)


@pytest.mark.parametrize("reallocation", ["at_completions", "any_time"])
@pytest.mark.parametrize("unit", [1e-9, 1e-3, 1e9])
def test_the_unit_of_time_changes_no_verdict(reallocation, unit):
    rng = np.random.default_rng(15)
    for _ in rounds(3):
        case = small(rng, concave=True, sizes=[(2, 4), (3, 3)])
        instance = instance_of(*case, reallocation)
        plain = formulations.solve(instance)
        scaled = formulations.solve(replace(instance, work=instance.work * unit))
        assert (plain.status, scaled.status) == ("optimal", "optimal"), case
        assert scaled.objective == pytest.approx(plain.objective * unit, rel=1e-7), case
        assert scaled.bound == pytest.approx(plain.bound * unit, rel=1e-6), case


def test_seconds_beside_days():
    """Two jobs of very different length, against every first split of the GPUs."""
    rng = np.random.default_rng(9)
    for _ in rounds(15):
        gpus = np.arange(9)
        tables = np.array(
            [10 ** rng.uniform(-3, 3) * np.minimum(gpus, rng.integers(1, 9)) ** rng.uniform(0.2, 1) for _ in range(2)]
        )
        work = np.array([1.0, 10 ** rng.uniform(3, 6)]) * np.round(rng.uniform(1, 9, 2)) * tables[:, 1]
        totals = []
        for a in range(9):
            alone = [work[0] / tables[0][a] if a else math.inf, work[1] / tables[1][8 - a] if a < 8 else math.inf]
            last = int(alone[1] > alone[0])
            first = min(alone)
            rate = tables[last][(a, 8 - a)[last]]
            totals.append(2 * first + (work[last] - rate * first) / tables[last][8])
        instance = ElasticSharing(num_gpus=8, work=work, throughputs=tables)
        solution = formulations.solve(instance)
        assert solution.status == "optimal"
        assert solution.objective == pytest.approx(min(totals) / 2, rel=OPTIMALITY_TOLERANCE)


def test_linear_jobs_run_shortest_first():
    work = np.array([70.0, 20.0, 90.0, 20.0, 40.0])
    instance = ElasticSharing(
        num_gpus=8, work=work, throughputs=np.tile(np.arange(9.0), (5, 1)), reallocation="any_time"
    )
    optimum = np.sort(work / 8).cumsum().mean()
    assert formulations.solve(instance).objective == pytest.approx(optimum)
    for name in ("srtf", "srsf", "srtf_elastic", "srsf_elastic"):
        assert instance.objective(ALL[name](instance)) == pytest.approx(optimum)


@pytest.mark.parametrize("reallocation", ["at_completions", "any_time"])
def test_the_model_with_arrivals_is_what_the_reference_finds(reallocation):
    rng = np.random.default_rng(18)
    sizes = [(2, 3), (3, 1)] if reallocation == "any_time" else [(2, 3), (3, 1), (3, 2)]
    several = 0
    for _ in rounds(8):
        num_gpus, tables, work = small(rng, concave=reallocation == "any_time", sizes=sizes)
        arrivals = rng.integers(0, 6, len(work)).astype(float)
        instance = replace(instance_of(num_gpus, tables, work, reallocation), arrivals=arrivals)
        exact = float(optimum(instance))
        solution = formulations.solve(instance, method="model")
        assert solution.status == "optimal"
        assert solution.objective == pytest.approx(exact, rel=1e-6), instance.to_json()
        assert formulations.solve(instance).objective == pytest.approx(exact, rel=1e-6)
        several += len(set(arrivals.tolist())) > 1
    assert several > 2


def test_an_arrival_that_is_awaited():
    # The second job arrives when the first is done; alone, each takes 5 s.
    apart = formulations.solve(two_jobs(arrivals=[0.0, 5.0]))
    assert (apart.status, apart.objective) == ("optimal", pytest.approx(5.0))
    # It arrives at once but for a moment: one after the other, 5 s and 10 s.
    together = formulations.solve(two_jobs(arrivals=[0.0, 1e-3]))
    assert (together.status, together.objective) == ("optimal", pytest.approx(7.5 - 0.5e-3))


def test_users_can_extend_the_model():
    instance = generate(2, num_jobs=3)
    model = formulations.build(instance)
    free = formulations.solve(model).objective
    model.last_first = __import__("pyomo.environ").environ.Constraint(expr=model.position[0, 0] == 1)
    held = formulations.solve(model)
    assert held.status == "optimal"
    assert held.objective >= free - 1e-6
    assert np.argmin(instance.completions(held.plan)) == 0


# --- generator ------------------------------------------------------------------------------------


def test_dials_of_the_generator():
    assert generate(7).concave.all()
    assert not generate(7, rigid=1.0, num_gpus=8).concave.all()
    assert generate(7, num_jobs=5, arrival_gap=10.0).arrivals.min() == 0.0


def test_bounded_linear_curves():
    assert bounded_linear(2, 3, 1.5, 4).tolist() == [0.0, 0.0, 3.0, 4.5, 4.5]
    with pytest.raises(ValueError, match="min_share: got 5"):
        bounded_linear(5, 6, 1.0, 4)
