"""afs.elastic_sharing: the model against enumeration in fractions, the bound, and the generator."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import formulations
from formulations.afs.completions import shares_in_order
from formulations.afs.elastic_sharing import BY_ORDER, bound
from formulations.engine import clock
from formulations.engine.options import Options
from instances.afs.elastic_sharing import ElasticSharing, bounded_linear, generate, simulate
from instances.base import OPTIMALITY_TOLERANCE

from ..effort import rounds
from .elastic_jobs import ALL, instance_of, small, two_jobs

# --- brute force: exact fractions, no solver -----------------------------------------------------


def best_at_completions(num_gpus, tables, work):
    """Least average JCT when shares change at completions only: every share for every job, each time."""
    best = math.inf

    def go_on(left, total):
        nonlocal best
        active = [j for j, rest in enumerate(left) if rest > 0]
        if not active:
            best = min(best, total)
            return
        for shares in itertools.product(range(num_gpus + 1), repeat=len(active)):
            rates = [tables[j][s] for j, s in zip(active, shares, strict=True)]
            if sum(shares) > num_gpus or not any(rates):
                continue
            span = min(left[j] / rate for j, rate in zip(active, rates, strict=True) if rate)
            if total + span * len(active) >= best:
                continue
            rest = list(left)
            for j, rate in zip(active, rates, strict=True):
                rest[j] -= rate * span
            go_on(rest, total + span * len(active))

    go_on([Fraction(w) for w in work], Fraction(0))
    return best / len(work)


def best_any_time(num_gpus, tables, work):
    """Least average JCT over all schedules."""
    return min(best_in_order(num_gpus, tables, work, order) for order in itertools.permutations(range(len(work))))


def best_in_order(num_gpus, tables, work, order):
    """Least average JCT over the schedules in which jobs complete in an order.

    It is a linear program over the time spent in each combination of shares, with one row per job, so that some
    optimum uses as many combinations as there are jobs.  All of these are tried.
    """
    n = len(work)
    best = math.inf
    price = {}
    for done in range(n):
        for shares in itertools.product(range(num_gpus + 1), repeat=n - done):
            speeds = [Fraction(0)] * n
            for j, s in zip(order[done:], shares, strict=True):
                speeds[j] = Fraction(tables[j][s])
            if sum(shares) <= num_gpus and any(speeds):
                price[tuple(speeds)] = min(price.get(tuple(speeds), n), n - done)
    for basis in itertools.combinations(price, n):
        times = solved([[speeds[j] for speeds in basis] for j in range(n)], [Fraction(w) for w in work])
        if times is not None and min(times) >= 0:
            best = min(best, sum(price[speeds] * t for speeds, t in zip(basis, times, strict=True)))
    return best / n


def solved(matrix, right):
    """Gauss-Jordan in fractions; None for a singular matrix."""
    rows = [[*row, b] for row, b in zip(matrix, right, strict=True)]
    for c in range(len(rows)):
        pivot = next((r for r in range(c, len(rows)) if rows[r][c]), None)
        if pivot is None:
            return None
        rows[c], rows[pivot] = rows[pivot], rows[c]
        rows[c] = [x / rows[c][c] for x in rows[c]]
        for r in range(len(rows)):
            if r != c and rows[r][c]:
                rows[r] = [x - rows[r][c] * y for x, y in zip(rows[r], rows[c], strict=True)]
    return [row[-1] for row in rows]


def test_brute_forces_agree_where_they_must():
    # Two jobs that scale linearly: one after the other, the shorter first.
    assert best_at_completions(2, [[0, 1, 2], [0, 1, 2]], [4, 6]) == Fraction(2 + 5, 2)
    assert best_any_time(2, [[0, 1, 2], [0, 1, 2]], [4, 6]) == Fraction(2 + 5, 2)
    # Rigid jobs that exclude each other.
    assert best_any_time(2, [[0, 0, 1], [0, 0, 1]], [3, 2]) == Fraction(2 + 5, 2)


@pytest.mark.slow
@pytest.mark.parametrize("concave", [True, False])
def test_at_completions_equals_enumeration(concave):
    rng = np.random.default_rng(1 + concave)
    for _ in rounds(40):
        case = small(rng, concave=concave, sizes=[(1, 4), (2, 4), (2, 2), (3, 2), (3, 3)])
        solution = formulations.solve(instance_of(*case, "at_completions"))
        assert solution.status == "optimal", case
        exact = float(best_at_completions(*case))
        assert solution.objective == pytest.approx(exact, rel=1e-7), case
        assert solution.bound == pytest.approx(exact, rel=OPTIMALITY_TOLERANCE), case


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
        best = best_in_order(num_gpus, tables, work, order)
        assert instance.objective(schedule) == pytest.approx(float(best), rel=1e-7), (num_gpus, tables, work, order)
    assert several < 20


@pytest.mark.slow
def test_the_order_and_then_the_shares_are_worth_what_the_one_model_is():
    rng = np.random.default_rng(9)
    methods = set()
    for draw in rounds(20):
        instance = generate(rng, num_jobs=2 + draw % 3, num_gpus=4, loss=float(rng.choice([0.2, 0.5, 1.0])))
        whole = formulations.solve(formulations.build(instance))
        solution = formulations.solve(instance)
        assert solution.status == "optimal"
        assert solution.objective == pytest.approx(bound(instance, whole.objective), rel=1e-6)
        methods.add(solution.method)
    assert BY_ORDER in methods


def test_the_bound_outlives_the_time(monkeypatch):
    instance = generate(1, num_jobs=4, num_gpus=4)
    optimum = formulations.solve(instance).objective
    begun = formulations.afs.elastic_sharing.shares_in_order

    def late(*arguments):
        monkeypatch.setattr(clock, "left", lambda: 0.0)
        return begun(*arguments)

    monkeypatch.setattr(formulations.afs.elastic_sharing, "shares_in_order", late)
    solution = formulations.solve(instance, time_limit=600)
    assert solution.status in ("unknown", "feasible")
    assert solution.bound == pytest.approx(optimum, rel=1e-6)


@pytest.mark.slow
def test_any_time_equals_enumeration_for_concave_curves():
    rng = np.random.default_rng(3)
    for _ in rounds(50):
        case = small(rng, concave=True, sizes=[(1, 4), (2, 5), (2, 4), (2, 3), (3, 2)])
        solution = formulations.solve(instance_of(*case, "any_time"))
        assert solution.status == "optimal", case
        assert solution.objective == pytest.approx(float(best_any_time(*case)), rel=1e-7), case


@pytest.mark.slow
def test_any_time_is_a_bound_for_other_curves_and_says_so():
    rng = np.random.default_rng(4)
    loose = 0
    for _ in rounds(50):
        case = small(rng, concave=False, sizes=[(2, 5), (2, 4), (2, 3), (3, 2)])
        instance = instance_of(*case, "any_time")
        solution = formulations.solve(instance)
        exact = float(best_any_time(*case))
        assert solution.bound <= exact * (1 + 1e-7), case
        assert solution.objective >= exact * (1 - 1e-7), case
        assert ("not concave" in solution.message) == (not instance.concave.all())
        if solution.status == "optimal":
            assert solution.objective == pytest.approx(exact, rel=1e-6), case
        else:
            assert solution.status == "feasible"
            loose += 1
    assert loose > 10


def test_the_two_classes_can_differ():
    tables = [[0, 4, 5, 5], [0, 0, 1, 5], [0, 4, 5, 5]]
    assert best_at_completions(3, tables, [6, 5, 6]) == Fraction(127, 75)
    assert best_any_time(3, tables, [6, 5, 6]) == Fraction(5, 3)
    solution = formulations.solve(instance_of(3, tables, [6, 5, 6], "at_completions"))
    assert solution.objective == pytest.approx(127 / 75)
    relaxed = formulations.solve(instance_of(3, tables, [6, 5, 6], "any_time"))
    assert relaxed.bound == pytest.approx(5 / 3)
    assert relaxed.status == "feasible"


@pytest.mark.parametrize("reallocation", ["at_completions", "any_time"])
def test_scip_agrees(reallocation):
    rng = np.random.default_rng(5)
    for _ in range(4):
        instance = instance_of(*small(rng, concave=True, sizes=[(2, 4), (3, 3)]), reallocation)
        first, second = formulations.solve(instance), formulations.solve(instance, solver="scip")
        assert second.status == "optimal"
        assert first.objective == pytest.approx(second.objective, rel=1e-6)


@pytest.mark.slow
def test_equal_jobs_and_equal_curves_do_not_lose_the_optimum_to_symmetry_breaking():
    rng = np.random.default_rng(6)
    for _ in range(25):
        num_gpus, tables, work = small(rng, concave=True, sizes=[(2, 3), (3, 3)])
        tables = [tables[0]] * len(work)
        if rng.integers(2):
            work = [work[0]] * len(work)
        case = num_gpus, tables, work
        for reallocation, best in (("at_completions", best_at_completions), ("any_time", best_any_time)):
            solution = formulations.solve(instance_of(*case, reallocation))
            assert solution.objective == pytest.approx(float(best(*case)), rel=1e-7), (case, reallocation)


@pytest.mark.parametrize(
    ("num_gpus", "work", "curve"),
    [(5, [2.7, 0.8], [0, 8, 15, 21, 23, 24]), (6, [2, 6], [0, 7, 14, 19, 22, 25, 25])],
)
def test_two_short_jobs_of_one_curve(num_gpus, work, curve):
    """In seconds, the model's costs were so small that HiGHS's tolerance let 0.5 % pass for nothing."""
    instance = instance_of(num_gpus, [curve, curve], work, "any_time")
    exact = float(best_any_time(num_gpus, [curve, curve], [Fraction(str(w)) for w in work]))
    for verify in (False, None, True):
        solution = formulations.solve(instance, verify=verify)
        assert solution.status == "optimal"
        assert solution.objective == pytest.approx(exact, rel=1e-9)
        assert solution.bound == pytest.approx(exact, rel=1e-6)


def test_short_jobs_of_one_curve_equal_enumeration():
    rng = np.random.default_rng(14)
    for _ in rounds(50):
        num_gpus = int(rng.integers(3, 7))
        curve = [0, *np.cumsum(np.sort(rng.integers(0, 10, num_gpus))[::-1]).tolist()]
        curve = curve if curve[-1] else [0, *range(1, num_gpus + 1)]
        work = (rng.integers(1, 60, 2) / 10).tolist()
        exact = float(best_any_time(num_gpus, [curve, curve], [Fraction(str(w)) for w in work]))
        solution = formulations.solve(instance_of(num_gpus, [curve, curve], work, "any_time"), verify=False)
        assert solution.status == "optimal", (curve, work)
        assert solution.objective == pytest.approx(exact, rel=1e-7), (curve, work)


@pytest.mark.parametrize("reallocation", ["at_completions", "any_time"])
@pytest.mark.parametrize("unit", [1e-9, 1e-3, 1e9])
def test_the_unit_of_time_changes_no_verdict(reallocation, unit):
    rng = np.random.default_rng(15)
    for _ in range(8):
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
    for _ in rounds(30):
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


def test_jobs_that_arrive_over_time_have_a_bound_but_no_exact_model():
    instance = generate(0, num_jobs=3, arrival_gap=2000.0)
    with pytest.raises(formulations.ModelError, match=r"job 1 arrives at .* needs all arrivals 0"):
        formulations.build(instance)
    solution = formulations.solve(instance)
    assert (solution.status, solution.plan, solution.objective) == ("unknown", None, None)
    assert "no exact model" in solution.message
    alone = (instance.work / instance.throughputs[:, -1]).mean()
    best = min(instance.objective(scheduler(instance)) for scheduler in ALL.values())
    assert alone <= solution.bound <= best * (1 + 1e-6)


def test_the_bound_for_arrivals_can_be_the_optimum():
    # The second job arrives when the first is done; alone, each takes 5 s.
    apart = two_jobs(arrivals=[0.0, 5.0])
    assert formulations.solve(apart).bound == pytest.approx(5.0)
    # It arrives at once but for a moment: one after the other, 5 s and 10 s.
    together = two_jobs(arrivals=[0.0, 1e-3])
    assert formulations.solve(together).bound == pytest.approx(7.5 - 0.5e-3)


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
