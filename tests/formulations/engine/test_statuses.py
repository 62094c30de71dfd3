"""What a solver finds, and the status, value and bound that a Solution gives it; two solvers agree."""

from collections.abc import Callable

import highspy
import numpy as np
import pyomo.environ as pyo
import pytest

from formulations import LinearProgram, Session, solve
from formulations.engine.highs import hand_over
from instances.gavel.max_min_fairness import three_jobs

from .small_models import (
    INF,
    SOLVERS,
    Model,
    base,
    best_subset,
    knapsack,
    six_servers,
    unbounded,
    unbounded_mixed,
    with_row,
)


def infeasible_or_unbounded() -> Model:
    """Presolve sees that there is no optimum before it sees that y >= 11 has no point."""
    model = base()
    model.x.setub(None)
    model.c = pyo.Constraint(expr=model.y + 0 * model.x >= 11)
    model.d = pyo.Constraint(expr=model.x >= model.y)
    return model


def fixed_alone(limit: float | None = None) -> Model:
    model = base()
    model.x.fix(3)
    model.y.fix(4)
    if limit is not None:
        model.c = pyo.Constraint(expr=model.x + model.y <= limit)
    return model


def constant_goal() -> Model:
    model = base()
    model.goal.set_value(2.0)
    return model


def empty() -> Model:
    model = pyo.ConcreteModel()
    model.goal = pyo.Objective(expr=3.0)
    return model


def crossed_row() -> Model:
    model = base()
    model.low = pyo.Param(initialize=3, mutable=True)
    model.c = pyo.Constraint(expr=(model.low, model.x, 2))
    return model


def crossed_column() -> Model:
    model = base()
    model.x.setlb(11)
    return model


# --- statuses -------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    ("make", "status", "value"),
    [
        (base, "optimal", 20.0),
        (lambda: with_row(lambda m: m.x + 2 * m.y <= 8), "optimal", 8.0),
        (lambda: with_row(lambda m: m.x + m.y <= -1), "infeasible", None),
        (unbounded, "unbounded", None),
        (unbounded_mixed, "unbounded", None),
        (infeasible_or_unbounded, "infeasible", None),
        (fixed_alone, "optimal", 7.0),
        (lambda: fixed_alone(7), "optimal", 7.0),
        (lambda: fixed_alone(6), "infeasible", None),
        (constant_goal, "optimal", 2.0),
        (crossed_column, "infeasible", None),
        (lambda: knapsack(12, 2), "optimal", best_subset(12, 2)),
    ],
)
def test_statuses(make: Callable[[], Model], status: str, value: float | None, solver: str) -> None:
    if solver == "appsi_highs" and make in (unbounded_mixed, constant_goal):
        # This interface of Pyomo's cannot tell.
        status = "unknown"
    solution = solve(make(), solver=solver)
    assert solution.status == status
    if status == "unknown":
        return
    assert solution.objective == (None if value is None else pytest.approx(value))
    bounds = {"optimal": value, "infeasible": -INF, "unbounded": INF}
    assert solution.bound == pytest.approx(bounds[status])
    assert solution.gap == (0.0 if status == "optimal" else INF)
    assert solution.plan is None
    assert solution.sense == "max"
    assert solution.solve_seconds >= 0
    assert solution.build_seconds >= 0
    assert solution.solver == solver
    assert solution.solver_version[0].isdigit()


@pytest.mark.parametrize("solver", ["highs", "scip"])
def test_statuses_of_empty_models(solver: str) -> None:
    solution = solve(empty(), solver=solver)
    assert (solution.status, solution.objective, solution.bound) == ("optimal", 3.0, 3.0)


@pytest.mark.parametrize("make", [empty, base])
def test_rows_without_variables(make: Callable[[], Model]) -> None:
    model = make()
    model.size = pyo.Param(initialize=3, mutable=True)
    model.c = pyo.Constraint(expr=model.size <= 4)
    for solver in ("highs", "scip"):
        model.size.set_value(3)
        assert solve(model, solver=solver).status == "optimal"
        model.size.set_value(5)
        solution = solve(model, solver=solver)
        assert (solution.status, solution.objective) == ("infeasible", None)
        assert model.c.active


def test_crossed_rows_are_infeasible() -> None:
    solution = solve(crossed_row())
    assert (solution.status, solution.message) == ("infeasible", "constraint 'c' has crossed bounds")
    assert solve(crossed_column()).message == "variable 'x' has crossed bounds"


def test_bounds_are_infinite_in_the_direction_of_the_sense() -> None:
    for sense, worst in ((pyo.minimize, INF), (pyo.maximize, -INF)):
        model = with_row(lambda m: m.x + m.y <= -1)
        model.goal.sense = sense
        assert solve(model).bound == worst


def test_whole_numbers_without_a_bound() -> None:
    """2 (x - y) == 1 has no whole solution although its relaxation is unbounded."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var(domain=pyo.NonNegativeIntegers)
    model.y = pyo.Var(domain=pyo.NonNegativeIntegers)
    model.c = pyo.Constraint(expr=2 * model.x - 2 * model.y == 1)
    model.goal = pyo.Objective(expr=model.x, sense=pyo.maximize)
    assert solve(model).status == "infeasible"
    model.c.set_value(2 * model.x - 2 * model.y == 2)
    assert solve(model).status == "unbounded"


@pytest.mark.parametrize("solver", SOLVERS)
def test_time_limit_without_a_point(solver: str) -> None:
    model = knapsack(300, 40)
    model.room[0].deactivate()
    model.demand = pyo.Constraint(expr=model.room[0].body == model.room[0].upper)
    solution = solve(model, solver=solver, time_limit=1e-6)
    assert (solution.status, solution.objective, solution.plan) == ("unknown", None, None)
    assert solution.gap == INF
    with pytest.raises(ValueError, match="no point to load: status unknown"):
        solution.load()


@pytest.mark.parametrize("solver", SOLVERS)
def test_time_limit_with_a_point(solver: str) -> None:
    solution = solve(knapsack(150, 25), solver=solver, time_limit=0.5)
    assert solution.status == "feasible"
    assert 0 < solution.objective < solution.bound
    assert 0 < solution.gap == pytest.approx((solution.bound - solution.objective) / solution.objective)


@pytest.mark.parametrize("solver", ["highs", "scip"])
def test_a_gap_that_was_asked_for_is_no_proof(solver: str) -> None:
    model = knapsack(60, 10)
    solution = solve(model, solver=solver, mip_gap=0.05)
    assert solution.status == "feasible"
    assert 0 < solution.gap <= 0.05
    assert solve(model, solver=solver, mip_gap=0.0).status == "optimal"


def test_the_default_gap_is_zero() -> None:
    """HiGHS's own default, 1e-4, stops below the optimum of this knapsack."""
    rng = np.random.default_rng(6)
    weights = rng.integers(1, 1000, (2, 20)).astype(float)
    worth = np.random.default_rng(6).integers(10000, 20000, 20).astype(float)
    program = LinearProgram(
        "max", 0.0, worth, np.zeros(20), np.ones(20), np.ones(20, bool), np.array([0, 20, 40], np.int32),
        np.tile(np.arange(20, dtype=np.int32), 2), weights.ravel(), np.full(2, -INF), weights.sum(axis=1) // 2,
    )  # fmt: skip
    subsets = (np.arange(2**20)[:, None] >> np.arange(20)) & 1
    optimum = (subsets @ worth)[(subsets @ weights.T <= program.row_upper).all(axis=1)].max()
    lax = highspy.Highs()
    lax.setOptionValue("output_flag", False)
    hand_over(lax, program)
    lax.run()
    assert lax.getModelStatus() == highspy.HighsModelStatus.kOptimal
    assert lax.getObjectiveValue() < optimum - 0.5
    result = Session().run(program)
    assert result.status == "optimal"
    assert program.objective(result.x) == optimum
    assert result.bound == pytest.approx(optimum, rel=1e-9)


# --- two solvers ----------------------------------------------------------------------------------


def random_model(seed: int) -> Model:
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 6)), int(rng.integers(0, 6))
    model = pyo.ConcreteModel()
    kinds = (pyo.Reals, pyo.Integers, pyo.Binary)
    whole = rng.integers(0, 3, n)
    model.x = pyo.Var(range(n), domain=lambda _, i: kinds[whole[i]])
    for variable in model.x.values():
        variable.setlb(int(rng.integers(-4, 1)))
        variable.setub(int(rng.integers(0, 5)))
        if rng.random() < 0.15:
            variable.fix(0)
    model.rows = pyo.ConstraintList()
    for _ in range(m):
        chosen = [model.x[int(i)] for i in rng.choice(n, int(rng.integers(1, n + 1)), replace=False)]
        body = sum(int(rng.integers(1, 6)) * int(rng.choice([-1, 1])) * v for v in chosen)
        if any(not v.fixed for v in chosen):
            kind, limit = rng.integers(0, 4), int(rng.integers(-4, 8))
            model.rows.add(
                [body <= limit, body >= limit - 6, body == limit, pyo.inequality(limit - 3, body, limit)][kind]
            )
    model.goal = pyo.Objective(
        expr=sum(int(rng.integers(-5, 6)) * v for v in model.x.values()) + int(rng.integers(-3, 4)),
        sense=pyo.maximize if rng.random() < 0.5 else pyo.minimize,
    )
    return model


@pytest.mark.parametrize("seed", range(150))
def test_highs_and_scip_agree(seed: int) -> None:
    model = random_model(seed)
    ours, theirs = solve(model), solve(model, solver="scip")
    assert ours.status == theirs.status
    assert ours.status in ("optimal", "infeasible")
    if ours.status == "optimal":
        assert ours.objective == pytest.approx(theirs.objective, abs=1e-7)
        assert ours.bound == pytest.approx(theirs.bound, abs=1e-6)


def test_scip_solves_instances() -> None:
    for instance in (six_servers(), three_jobs()):
        ours, theirs = solve(instance), solve(instance, solver="scip")
        assert theirs.status == ours.status == "optimal"
        assert theirs.objective == pytest.approx(ours.objective)
        assert instance.violations(theirs.plan) == []
