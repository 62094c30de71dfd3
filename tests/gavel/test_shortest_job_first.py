"""gavel.shortest_job_first: the closed form against the mixed-integer model."""

import math

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given

import formulations
from formulations.engine.highs import Session
from formulations.engine.options import Options
from formulations.engine.solving import solve_one_model
from formulations.gavel import shortest_job_first as formulation
from heuristics.gavel.shortest_job_first import shortest_first, shortest_first_in_pairs
from instances.base import InstanceError
from instances.gavel.sharing import Allocation
from instances.gavel.shortest_job_first import ShortestJobFirst, faster_together, generate, three_jobs
from validation.testing.strategies import strategy


@given(strategy("gavel.shortest_job_first"))
def test_the_mixed_integer_model_has_the_same_optimum(instance):
    closed, searched = formulations.solve(instance), solve_one_model(instance, Options())
    assert searched.status == "optimal"
    assert searched.objective == pytest.approx(closed.objective, rel=1e-6)
    assert searched.bound == pytest.approx(closed.bound, rel=1e-6)


def test_three_jobs():
    solution = formulations.solve(three_jobs())
    assert solution.objective == 50
    assert solution.plan.time_fractions.tolist() == [[0, 0], [0, 0], [1, 0]]


def test_a_pair_can_be_faster_than_a_job_alone():
    assert formulations.solve(faster_together()).objective == 50
    assert faster_together().objective(shortest_first(faster_together())) == 100
    assert faster_together().objective(shortest_first_in_pairs(faster_together())) == 50


def test_the_objective_is_not_convex():
    """Half of each of two plans is worth more than either: min over jobs of a time is no convex function."""
    instance = ShortestJobFirst(throughputs=[[1.0], [1.0]], num_workers=[1], steps=[1.0, 1.0])
    one, other, half = ([[1], [0]], [[0], [1]], [[0.5], [0.5]])
    values = [instance.objective(Allocation(time_fractions=x)) for x in (one, other, half)]
    assert values == [1, 1, 2]


def test_nobody_served_never_finishes():
    assert three_jobs().objective(Allocation(time_fractions=np.zeros((3, 2)))) == math.inf


def test_the_bound_of_the_model():
    assert formulation.bound(three_jobs(), 0.5) == 100
    assert formulation.bound(three_jobs(), 0) == pytest.approx(50e8)
    assert formulation.bound(three_jobs(), -math.inf) == math.inf
    assert formulation.bound(three_jobs(), math.inf) == 0


def test_a_constraint_of_ones_own():
    """Nobody gets more than half of the V100: job 2 then takes the K80 for the other half, 3/2 steps/s."""
    model = formulations.build(three_jobs())
    model.half = pyo.Constraint(model.JOBS, rule=lambda model, job: model.X[job, 0] <= 0.5)
    solution = formulations.solve(model)
    assert solution.status == "optimal"
    assert three_jobs().objective(solution.plan) == pytest.approx(100 / 1.5)


@given(strategy("gavel.shortest_job_first"))
def test_shortest_first_is_optimal_unless_a_pair_is_faster(instance):
    plan = shortest_first(instance)
    assert instance.violations(plan) == []
    alone = min(
        instance.steps[m] / instance.throughputs[m, j]
        for m in range(instance.num_jobs)
        for j in range(instance.num_types)
        if instance.throughputs[m, j] > 0 and instance.scale_factors[m] <= instance.num_workers[instance.pools[j]]
    )
    assert instance.objective(plan) == pytest.approx(alone)


@given(strategy("gavel.shortest_job_first"))
def test_the_shortest_first_with_pairs_is_optimal(instance):
    plan = shortest_first_in_pairs(instance)
    assert instance.violations(plan) == []
    assert instance.objective(plan) == pytest.approx(formulation.shortest(instance)[0])


def test_the_cluster_is_kept_busy():
    instance = generate(0, num_jobs=20, workers_per_pool=2, multi_worker=False)
    assert shortest_first(instance).time_fractions.sum() == 6


def nine_decades(seed):
    """Throughputs and steps from 1e-5 to 1e4, some of them 0, with a pair or without; None if a job cannot run."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    throughputs = np.where(rng.random((n, k)) < 0.1, 0, 10.0 ** rng.uniform(-5, 4, (n, k)))
    pair = {}
    if n > 1 and rng.random() < 0.5:
        pair = {"pairs": [[0, 1]], "pair_throughputs": 10.0 ** rng.uniform(-5, 4, (1, k, 2))}
    try:
        return ShortestJobFirst(
            throughputs=throughputs,
            steps=10.0 ** rng.uniform(-5, 4, n),
            num_workers=rng.integers(1, 3, k),
            scale_factors=rng.integers(1, 3, n),
            **pair,
        )
    except InstanceError:
        return None


@pytest.mark.slow
@pytest.mark.parametrize("how", ["session", "scip"])
def test_nine_decades_of_data(how):
    """Steps and throughputs span 18 decades between them, more than a solver takes in one row."""
    if how == "scip":
        pytest.importorskip("pyscipopt")
    drawn = [instance for seed in range(150) if (instance := nine_decades(seed)) is not None]
    assert len(drawn) > 50
    session = Session()
    for instance in drawn:
        closed = formulations.solve(instance)
        searched = formulations.solve(instance, **({"session": session} if how == "session" else {"solver": "scip"}))
        assert searched.status == closed.status == "optimal"
        assert searched.objective == pytest.approx(closed.objective, rel=1e-6)
        assert searched.bound == pytest.approx(closed.bound, rel=1e-6)


@pytest.mark.filterwarnings("default::formulations.engine.highs.SolverDisagreement")
def test_the_bound_holds_where_only_slow_entries_are_left():
    """Type 0 is forbidden, and type 1 is slower by ten decades: the model's rate is more than can be had."""
    instance = ShortestJobFirst(throughputs=[[1e5, 1e-5], [1e4, 2e-5]], steps=[1.0, 1.0], num_workers=[1, 1])
    model = formulations.build(instance)
    model.forbidden = pyo.Constraint(model.JOBS, rule=lambda model, job: model.X[job, 0] == 0)
    solution = formulations.solve(model)
    best = 1 / 2e-5
    assert formulation.bound(instance, solution.bound) <= best <= instance.objective(solution.plan)
