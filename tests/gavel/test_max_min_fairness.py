"""gavel.max_min_fairness in fractions, by columns, by SCIP, and what the heuristics keep."""

import json
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import formulations
import instances
from formulations.methods import generation
from heuristics.gavel import max_min_fairness as heuristics
from instances import InstanceError
from instances.gavel.max_min_fairness import MaxMinFairness, generate, space_sharing, three_jobs
from instances.gavel.sharing import Allocation
from validation.testing.strategies import strategy

from ..effort import rounds
from ..second_opinion import optimum

INSTANCES = strategy("gavel.max_min_fairness")


def small(brute, seed):
    fields = brute.draw(seed)
    weights = np.random.default_rng(seed).choice([1.0, 1.0, 2.0, 3.0], len(fields["throughputs"]))
    return MaxMinFairness(**fields, weights=weights)


def exact_optimum(speeds, workers):
    """The greatest least of ``sum_j speeds[m][j] * x[m][j]`` in fractions, for single-worker jobs without pairs.

    Corners of ``A v <= b`` over v = (x, level), each by Gaussian elimination.
    """
    n, k = len(speeds), len(workers)
    size = n * k + 1
    a, b = [], []
    for c in range(n * k):
        a.append([-int(c == d) for d in range(size)])
        b.append(0)
    for m in range(n):
        a.append([int(d < n * k and d // k == m) for d in range(size)])
        b.append(1)
        a.append([-speeds[m][d % k] if d < n * k and d // k == m else int(d == n * k) for d in range(size)])
        b.append(0)
    for j in range(k):
        a.append([int(d < n * k and d % k == j) for d in range(size)])
        b.append(workers[j])
    best = Fraction(0)
    for tight in combinations(range(len(a)), size):
        point = eliminated([[*map(Fraction, a[row]), Fraction(b[row])] for row in tight])
        if (
            point is not None
            and point[-1] > best
            and all(
                sum(c * v for c, v in zip(row, point, strict=True)) <= limit for row, limit in zip(a, b, strict=True)
            )
        ):
            best = point[-1]
    return best


def eliminated(rows):
    """The solution of a square system, None when it is singular."""
    size = len(rows)
    for column in range(size):
        pivot = next((r for r in range(column, size) if rows[r][column]), None)
        if pivot is None:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [entry / rows[column][column] for entry in rows[column]]
        for r in range(size):
            if r != column and rows[r][column]:
                factor = rows[r][column]
                rows[r] = [entry - factor * other for entry, other in zip(rows[r], rows[column], strict=True)]
    return [row[-1] for row in rows]


@pytest.mark.parametrize("seed", range(12))
def test_optimum_in_fractions(seed):
    rng = np.random.default_rng(seed)
    throughputs, workers = rng.integers(0, 6, (2, 2)), rng.integers(1, 3, 2)
    throughputs[:, 0] += 1
    weights = rng.integers(1, 4, 2)
    speeds = []
    for m in range(2):
        share = sum(Fraction(int(t) * int(w), int(workers.sum())) for t, w in zip(throughputs[m], workers, strict=True))
        speeds.append([Fraction(int(t)) / (share * int(weights[m])) for t in throughputs[m]])
    instance = MaxMinFairness(throughputs=throughputs, num_workers=workers, weights=weights)
    exact = exact_optimum(speeds, workers.tolist())
    assert formulations.solve(instance).objective == pytest.approx(float(exact), rel=1e-9)


def test_three_jobs():
    """Section 4.1: the printed allocation, 0.45 0 / 0.45 0.09 / 0.09 0.91; 9.1% above an isolated third."""
    instance = three_jobs()
    solution = formulations.solve(instance)
    assert solution.objective == pytest.approx(8 / 11, rel=1e-9)
    assert solution.bound == pytest.approx(8 / 11, rel=1e-9)
    isolated = instance.objective(instance.isolated_share())
    assert isolated == pytest.approx(2 / 3)
    assert solution.objective / isolated - 1 == pytest.approx(0.0909, abs=1e-4)
    printed = np.array([[0.45, 0.0], [0.45, 0.09], [0.09, 0.91]])
    assert np.abs(solution.plan.time_fractions - printed).max() <= 0.005
    assert solution.plan.time_fractions == pytest.approx(np.array([[5, 0], [5, 1], [1, 10]]) / 11)
    # A linear objective beside the level moves nothing, in whatever direction: the optimum is unique.
    for direction in np.random.default_rng(0).normal(size=(20, 6)):
        model = formulations.build(instance)
        model.optimal = pyo.Constraint(expr=model.level >= 8 / 11 * (1 - 1e-9))
        model.least_level.deactivate()
        model.drift = pyo.Objective(expr=pyo.quicksum(d * x for d, x in zip(direction, model.X.values(), strict=True)))
        drifted = formulations.solve(model).plan
        assert drifted.time_fractions == pytest.approx(solution.plan.time_fractions, abs=1e-6)
    shares = [Fraction(50, 2), Fraction(16, 2), Fraction(150, 2)]
    rows = ((40, 10), (12, 4), (100, 50))
    speeds = [[fast / share, slow / share] for (fast, slow), share in zip(rows, shares, strict=True)]
    assert exact_optimum(speeds, [1, 1]) == Fraction(8, 11)


def test_space_sharing_of_section_3_is_exactly_neutral():
    """24/19 with the pair and without, as the pair makes on the V100 what slicing its time makes."""
    instance = space_sharing()
    alone = MaxMinFairness(throughputs=instance.throughputs, num_workers=instance.num_workers)
    assert formulations.solve(instance).objective == pytest.approx(24 / 19, rel=1e-9)
    assert formulations.solve(alone).objective == pytest.approx(24 / 19, rel=1e-9)
    assert alone.equal_share_throughputs == pytest.approx([70 / 3, 10])


def test_value_by_hand():
    instance = three_jobs()
    plan = Allocation(time_fractions=[[0.5, 0.0], [0.25, 0.5], [0.25, 0.5]])
    assert instance.equal_share_throughputs.tolist() == [25.0, 8.0, 75.0]
    assert instance.throughput(plan).tolist() == [20.0, 5.0, 50.0]
    assert instance.objective(plan) == pytest.approx(0.625)
    twice = MaxMinFairness(throughputs=instance.throughputs, num_workers=[1, 1], weights=[1, 2, 1])
    assert twice.objective(plan) == pytest.approx(0.3125)


def test_pairs_and_placements_count():
    """A pair that loses nothing doubles what two jobs get; an unconsolidated type shares its pool."""
    alone = MaxMinFairness(throughputs=[[2.0], [2.0]], num_workers=[1])
    assert formulations.solve(alone).objective == pytest.approx(0.5)
    paired = MaxMinFairness(
        throughputs=[[2.0], [2.0]], num_workers=[1], pairs=[[1, 0]], pair_throughputs=[[[2.0, 2.0]]]
    )
    assert formulations.solve(paired).objective == pytest.approx(1.0)
    placed = MaxMinFairness(throughputs=[[2.0, 1.0], [2.0, 1.0]], num_workers=[1], pools=[0, 0])
    assert formulations.solve(placed).objective == pytest.approx(0.5)


def test_a_wide_job_gets_what_its_workers_make_as_built():
    """As built: the scale factor counts in the level, so a job of 2 workers needs half the time for it."""
    instance = MaxMinFairness(throughputs=[[1.0], [1.0]], num_workers=[2], scale_factors=[2, 1])
    solution = formulations.solve(instance)
    time = solution.plan.time_fractions[:, 0]
    assert solution.objective == pytest.approx(1.0)
    assert time == pytest.approx([0.5, 1.0])


def test_a_job_wider_than_a_pool_as_built():
    """As printed, (3) gives a job of 4 workers half of a pool of 2: twice the value, which no round can realise."""
    instance = MaxMinFairness(throughputs=[[1.0, 3.0]], num_workers=[4, 2], scale_factors=[4])
    solution = formulations.solve(instance)
    assert solution.plan.time_fractions.tolist() == [[1, 0]]
    assert solution.objective == pytest.approx(6)
    model = formulations.build(instance)
    model.X[0, 1].setub(1)
    printed = formulations.solve(model)
    assert printed.objective == pytest.approx(12)
    assert [violation.rule for violation in instance.violations(printed.plan)] == ["fits_pool"]


def test_the_isolated_share_of_wide_jobs_as_built():
    """Undivided by the scale factor, X_isolated of two wide jobs alone on 8 workers would need 16 and more."""
    instance = MaxMinFairness(throughputs=[[1.0], [1.0]], num_workers=[8], scale_factors=[8, 8])
    assert instance.isolated_share().time_fractions.tolist() == [[0.5], [0.5]]
    assert instance.violations(instance.isolated_share()) == []
    undivided = Allocation(time_fractions=np.full((2, 1), min(1.0, 8 / 2)))
    assert [violation.rule for violation in instance.violations(undivided)] == ["pool_capacity"]


@pytest.mark.parametrize("seed", range(4))
def test_generated_columns_whole_program_and_scip(seed, monkeypatch):
    instance = generate(seed, num_jobs=14, pair_fraction=0.7, workers_per_pool=3, weighted=True, unconsolidated=True)
    whole = formulations.solve(instance)
    monkeypatch.setattr(generation, "PRICING_COLUMNS", 0)
    generated = formulations.solve(instance)
    other = formulations.solve(instance, solver="scip")
    assert whole.status == generated.status == other.status == "optimal"
    assert "columns generated" in generated.message
    assert generated.objective == pytest.approx(whole.objective, rel=1e-7)
    assert generated.bound == pytest.approx(whole.bound, rel=1e-7)
    assert other.objective == pytest.approx(whole.objective, rel=1e-6)


def test_a_constraint_of_ones_own():
    """No more than a quarter of the V100's time for job 0, which has to make up for it on the K80."""
    model = formulations.build(three_jobs())
    model.quarter = pyo.Constraint(expr=model.X[0, 0] <= 0.25)
    solution = formulations.solve(model)
    assert solution.plan.time_fractions[0, 0] <= 0.25 + 1e-9
    assert three_jobs().objective(solution.plan) == pytest.approx(solution.objective)
    assert solution.objective == pytest.approx(21 / 32)


def test_only_relative_weights_matter():
    for seed in range(5):
        instance = generate(seed, num_jobs=8, weighted=True)
        fields = {**instance.to_dict(), "weights": 3 * instance.weights}
        assert formulations.solve(instances.read(fields)).objective == pytest.approx(
            formulations.solve(instance).objective / 3, rel=1e-7
        )


# --- multiplicative weights -----------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.3, 0.05, 0.01])
def test_multiplicative_weights_keep_their_guarantee(brute, epsilon):
    for seed in rounds(30):
        instance = small(brute, seed)
        plan = heuristics.multiplicative_weights(instance, epsilon=epsilon)
        best = float(optimum(instance))
        assert instance.violations(plan) == []
        assert (1 - epsilon) * best * (1 - 1e-9) <= instance.objective(plan) <= best * (1 + 1e-9)


@pytest.mark.parametrize("options", [{}, {"unconsolidated": True}, {"weighted": True}, {"heterogeneity": 1.0}])
def test_multiplicative_weights_on_larger_clusters(options):
    for num_jobs in (16, 64, 200):
        instance = generate(num_jobs, num_jobs=num_jobs, **options)
        best = formulations.solve(instance).objective
        for epsilon in (0.05, 0.02):
            plan = heuristics.multiplicative_weights(instance, epsilon=epsilon)
            assert instance.violations(plan) == []
            assert (1 - epsilon) * best <= instance.objective(plan) <= best * (1 + 1e-9)


def test_one_bottleneck_among_many_jobs():
    """The dual is one job's time; the weights of all others vanish, and their ratios must not matter."""
    instance = generate(512, num_jobs=512, weighted=True, pair_fraction=8 / 512)
    plan = heuristics.multiplicative_weights(instance, epsilon=0.01)
    assert instance.objective(plan) >= 0.99 * formulations.solve(instance).objective


@pytest.mark.parametrize("epsilon", [0, 1e-17, 1, -0.1, float("nan")])
def test_epsilon_must_be_between_0_and_1(epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        heuristics.multiplicative_weights(three_jobs(), epsilon=epsilon)


@given(INSTANCES, st.sampled_from([0.5, 0.1, 0.05]))
def test_multiplicative_weights_on_any_instance(instance, epsilon):
    before = json.dumps(instance.to_dict())
    plan = heuristics.multiplicative_weights(instance, epsilon=epsilon)
    assert plan == heuristics.multiplicative_weights(instance, epsilon=epsilon)
    assert json.dumps(instance.to_dict()) == before
    assert instance.violations(plan) == []
    solution = formulations.solve(instance)
    assert solution.status == "optimal"
    assert instance.objective(plan) >= (1 - epsilon) * solution.bound * (1 - 1e-9)
    assert instance.objective(plan) <= solution.bound * (1 + 1e-9)


DECADES = st.one_of(st.floats(-323, 308), st.floats(-8, 8)).map(lambda decade: 10.0**decade)


@settings(max_examples=25)
@given(st.data(), st.sampled_from([0.5, 0.1, 0.02]))
def test_multiplicative_weights_whatever_the_weights(data, epsilon):
    """Weights of 600 decades: the optimum and the level of the plan in fractions."""
    n, k = data.draw(st.sampled_from([(1, 2), (2, 1), (2, 2), (3, 1)]))
    workers = data.draw(st.lists(st.integers(1, 3), min_size=k, max_size=k))
    speed = st.integers(0, 5).map(float)
    throughputs = [[data.draw(speed) + (not j) for j in range(k)] for _ in range(n)]
    weights = data.draw(st.lists(DECADES, min_size=n, max_size=n))
    instance = MaxMinFairness(throughputs=throughputs, num_workers=workers, weights=weights)
    plan = heuristics.multiplicative_weights(instance, epsilon=epsilon)
    assert instance.violations(plan) == []
    speeds = []
    for row, weight in zip(throughputs, weights, strict=True):
        share = sum(Fraction(t) * w for t, w in zip(row, workers, strict=True)) / sum(workers)
        speeds.append([Fraction(t) / (share * Fraction(weight)) for t in row])
    level = min(
        sum(speed * Fraction(x) for speed, x in zip(row, time, strict=True))
        for row, time in zip(speeds, plan.time_fractions.tolist(), strict=True)
    )
    best = exact_optimum(speeds, workers)
    rounding = Fraction(1, 10**9)
    assert (1 - Fraction(epsilon) - rounding) * best <= level <= (1 + rounding) * best


@pytest.mark.parametrize("seed", range(5))
def test_multiplicative_weights_whatever_the_throughputs(seed):
    """Types on which a job is slower by hundreds of decades, pools of all sizes, pairs faster than either job alone."""
    rng = np.random.default_rng(seed)
    instance = generate(rng, num_jobs=6, pair_fraction=0.5)
    fields = {
        "throughputs": instance.throughputs * 10.0 ** rng.uniform(-300, 0, instance.throughputs.shape),
        "pair_throughputs": instance.pair_throughputs * 10.0 ** rng.uniform(-300, 0, instance.pair_throughputs.shape),
        "num_workers": np.array([8, 10**9, 10**18]),
    }
    plan = heuristics.multiplicative_weights(replace(instance, **fields))
    assert replace(instance, **fields).violations(plan) == []
    assert (plan.time_fractions.sum(axis=1) > 0).any()


# --- instances --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("throughputs", [[4, 1], [0, -1], [2, 1]]),
    ],
)
def test_bad_fields_are_named(field, value):
    with pytest.raises(InstanceError, match=rf"MaxMinFairness\.{field}"):
        instances.read({**three_jobs().to_dict(), field: value})


@pytest.mark.parametrize(
    ("pairs", "must"),
    [
        ([[0, 1], [1, 0]], "a second time"),
        ([[1, 1]], "two different jobs"),
        ([[1, 2]], "equal scale factor"),
    ],
)
def test_bad_pairs_are_named(pairs, must):
    with pytest.raises(InstanceError, match=rf"MaxMinFairness\.pairs: .*{must}"):
        MaxMinFairness(
            throughputs=np.ones((3, 1)),
            num_workers=[2],
            scale_factors=[1, 1, 2],
            pairs=pairs,
            pair_throughputs=np.ones((len(pairs), 1, 2)),
        )


def test_defaults():
    instance = three_jobs()
    assert instance.weights.tolist() == [1, 1, 1]
    assert instance.scale_factors.tolist() == [1, 1, 1]
    assert instance.pools.tolist() == [0, 1]
    assert instance.num_pairs == 0
    assert instances.read(json.loads(json.dumps(instance.to_dict()))) == instance
    assert MaxMinFairness.from_dict({"throughputs": [[1]], "num_workers": [1]}).weights.tolist() == [1]


def test_dials_of_the_generator():
    assert set(generate(0, num_jobs=200).weights) == {1.0}
    assert set(generate(0, num_jobs=200, weighted=True).weights) == {1.0, 2.0, 3.0, 4.0}
    alike = generate(0, num_jobs=5, heterogeneity=1.0)
    assert np.ptp(alike.throughputs, axis=1) == pytest.approx(0)
