"""From a model or an instance to a Solution: statuses, proofs, distrust of solvers, and no side effects."""

import itertools
import json
import logging
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import highspy
import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given
from hypothesis import strategies as st

import formulations
from formulations import (
    Certificate,
    LinearProgram,
    ModelError,
    Session,
    Solution,
    SolverError,
    SolverNotFound,
    external,
    relative_gap,
    solve,
    translate,
    weighted_sum,
)
from formulations.certificate import proves_infeasible
from formulations.highs import highs_lp
from formulations.linear import csr
from formulations.options import Options
from instances import PlanError
from instances.aryl.reclaim import Reclaim, ReclaimPlan
from instances.gavel.max_min_fairness import generate, three_jobs
from instances.gavel.sharing import Allocation

INF = math.inf
SOLVERS = ["highs", "scip", "appsi_highs"]
"""The library's own path, and one solver for each of Pyomo's two kinds of interface."""

Model = Any


def six_servers() -> Reclaim:
    """Job 0 on servers 4 and 5, jobs 1 to 4 alone on the others: returning 4 and 5 preempts one job."""
    hosts = np.zeros((5, 6), bool)
    hosts[0, 4:] = True
    hosts[range(1, 5), range(4)] = True
    return Reclaim(hosts=hosts, gpus=np.where(hosts, 8, 0), demand=2)


def base() -> Model:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, 10))
    model.y = pyo.Var(bounds=(0, 10))
    model.goal = pyo.Objective(expr=model.x + model.y, sense=pyo.maximize)
    return model


def with_row(row: Callable[[Model], Any]) -> Model:
    model = base()
    model.c = pyo.Constraint(expr=row(model))
    return model


def unbounded() -> Model:
    model = with_row(lambda m: m.x + m.y >= 1)
    model.x.setub(None)
    return model


def unbounded_mixed() -> Model:
    model = unbounded()
    model.y.domain = pyo.Integers
    return model


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


def knapsack_data(n: int, m: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(1, 1000, (m, n)), rng.integers(1, 1000, n)


def best_subset(n: int, m: int, seed: int = 0) -> float:
    """Optimum of :func:`knapsack`, by trying all subsets."""
    weights, worth = (array.tolist() for array in knapsack_data(n, m, seed))
    best = 0
    for taken in itertools.product((0, 1), repeat=n):
        if all(sum(w for w, t in zip(row, taken, strict=True) if t) <= sum(row) // 2 for row in weights):
            best = max(best, sum(v for v, t in zip(worth, taken, strict=True) if t))
    return float(best)


def knapsack(n: int, m: int, seed: int = 0) -> Model:
    weights, worth = knapsack_data(n, m, seed)
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(n), domain=pyo.Binary)
    variables = list(model.x.values())
    model.room = pyo.Constraint(
        range(m), rule=lambda _, i: weighted_sum(weights[i], variables) <= int(weights[i].sum() // 2)
    )
    model.goal = pyo.Objective(expr=weighted_sum(worth, variables), sense=pyo.maximize)
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
    assert solve(model).status == "optimal"
    model.size.set_value(5)
    solution = solve(model)
    assert (solution.status, solution.objective) == ("infeasible", None)
    with pytest.raises(SolverError, match=r"^scip: "):
        solve(model, solver="scip")


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
    lax.passModel(highs_lp(program))
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


# --- solvers that lie -----------------------------------------------------------------------------


class Lying:
    """A solver's answer with one part replaced."""

    def __init__(self, truth: Any, **lies: Any) -> None:
        self._truth, self._lies = truth, lies

    def __getattr__(self, name: str) -> Any:
        return self._lies.get(name, getattr(self._truth, name))


def lie(monkeypatch: pytest.MonkeyPatch, method: str, change: Callable[[Any], Any]) -> None:
    honest = getattr(highspy.Highs, method)
    monkeypatch.setattr(highspy.Highs, method, lambda self: change(honest(self)))


@pytest.mark.parametrize("shift", [1.0, 1e-5, math.nan, INF])
@pytest.mark.parametrize("whole", [False, True])
def test_a_point_that_violates_a_row_is_not_used(monkeypatch: pytest.MonkeyPatch, shift: float, whole: bool) -> None:
    model = with_row(lambda m: m.x + 2 * m.y <= 8)
    model.x.domain = model.y.domain = pyo.Reals
    model.whole = pyo.Var(domain=pyo.Binary if whole else pyo.UnitInterval)
    model.goal.set_value(model.x + model.y + model.whole)
    lie(monkeypatch, "getSolution", lambda s: Lying(s, col_value=[v + shift for v in s.col_value[:2]] + [1.0]))
    solution = solve(model)
    assert (solution.status, solution.objective) == ("unknown", None)
    assert "violates the rows and is not used" in solution.message


def test_a_point_of_the_wrong_length_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    lie(monkeypatch, "getSolution", lambda s: Lying(s, col_value=s.col_value[:1]))
    assert solve(base()).status == "unknown"


def test_a_worse_point_is_not_called_optimal(monkeypatch: pytest.MonkeyPatch) -> None:
    lie(monkeypatch, "getSolution", lambda s: Lying(s, col_value=[0.0 for _ in s.col_value]))
    solution = solve(with_row(lambda m: m.x + 2 * m.y <= 8))
    assert (solution.status, solution.objective, solution.bound) == ("feasible", 0.0, 8.0)
    whole = solve(knapsack(12, 2))
    assert (whole.status, whole.objective, whole.bound) == ("feasible", 0.0, best_subset(12, 2))
    assert whole.gap == INF


@pytest.mark.parametrize("factor", [0.0, 0.5, -1.0, 1.1])
def test_wrong_prices_prove_nothing_but_their_own_bound(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    lie(monkeypatch, "getSolution", lambda s: Lying(s, row_dual=[factor * d for d in s.row_dual]))
    solution = solve(with_row(lambda m: m.x + 2 * m.y <= 8))
    assert (solution.status, solution.objective) == ("feasible", 8.0)
    assert solution.bound > 8.0
    assert "certificate fails" in solution.message


def test_a_false_claim_of_infeasibility_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    lie(monkeypatch, "getModelStatus", lambda _: highspy.HighsModelStatus.kInfeasible)
    solution = solve(with_row(lambda m: m.x + 2 * m.y <= 8))
    assert (solution.status, solution.bound) == ("unknown", INF)
    assert "no prices prove it" in solution.message


def test_a_false_claim_of_unboundedness_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    lie(monkeypatch, "getModelStatus", lambda _: highspy.HighsModelStatus.kUnbounded)
    solution = solve(with_row(lambda m: m.x + 2 * m.y <= 8))
    assert (solution.status, solution.bound) == ("unknown", INF)
    assert "every variable is bounded" in solution.message


def test_states_without_meaning_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    lie(monkeypatch, "getModelStatus", lambda _: highspy.HighsModelStatus.kUnknown)
    solution = solve(with_row(lambda m: m.x + 2 * m.y <= 8))
    assert (solution.status, solution.objective, solution.bound) == ("feasible", 8.0, INF)
    lie(monkeypatch, "getInfo", lambda i: Lying(i, primal_solution_status=1))
    assert solve(with_row(lambda m: m.x + 2 * m.y <= 8)).status == "unknown"


def test_errors_of_highs_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    lie(monkeypatch, "run", lambda _: highspy.HighsStatus.kError)
    with pytest.raises(SolverError, match="HiGHS failed"):
        solve(base())
    with pytest.raises(SolverError, match="HiGHS failed"):
        solve(knapsack(5, 1))


def found(**parts: Any) -> dict[str, Any]:
    return {"status": "optimal", "values": None, "bound": 8.0, "message": "word", "exact": True, **parts}


@pytest.mark.parametrize(
    ("values", "parts", "status", "bound"),
    [
        ({"x": 8.0, "y": 0.0}, {}, "optimal", 8.0),
        ({"x": 8.0}, {}, "optimal", 8.0),
        ({"x": 8.1, "y": 0.0}, {}, "unknown", 8.0),
        ({"x": math.nan, "y": 0.0}, {}, "unknown", 8.0),
        ({"x": 7.0, "y": 0.0}, {}, "feasible", 8.0),
        ({"x": 8.0, "y": 0.0}, {"bound": None}, "optimal", 8.0),
        ({"x": 8.0, "y": 0.0}, {"bound": 1e20}, "optimal", 8.0),
        ({"x": 8.0, "y": 0.0}, {"bound": math.nan}, "optimal", 8.0),
        ({"x": 8.0, "y": 0.0}, {"bound": None, "exact": False}, "feasible", INF),
        ({"x": 8.0, "y": 0.0}, {"bound": 9.0}, "feasible", 9.0),
        ({"x": 8.0, "y": 0.0}, {"status": "unknown", "bound": None}, "feasible", INF),
        (None, {}, "unknown", 8.0),
        (None, {"status": "infeasible"}, "infeasible", -INF),
        (None, {"status": "unbounded"}, "unbounded", INF),
    ],
)
def test_the_word_of_other_solvers(values: Any, parts: dict[str, Any], status: str, bound: float) -> None:
    model = with_row(lambda m: m.x + 2 * m.y <= 8)
    program = translate(model)
    point = None if values is None else pyo.ComponentMap((getattr(model, name), v) for name, v in values.items())
    result = external._checked(program, found(values=point, **parts), 0.1)
    assert (result.status, result.bound) == (status, bound)
    assert (result.x is None) == (status not in ("optimal", "feasible"))


@pytest.mark.parametrize("error", [ValueError, AssertionError, KeyError, OSError])
def test_failures_of_other_solvers_are_named_and_leave_no_trace(monkeypatch: pytest.MonkeyPatch, error: Any) -> None:
    def fail(interface: Any, model: Any, *_: Any) -> Any:
        model.x.set_value(99, skip_validation=True)
        raise error("license expired")

    monkeypatch.setattr(external, "_new_interface", fail)
    model = base()
    model.x.set_value(4)
    level = logging.getLogger("pyomo").level
    with pytest.raises(SolverError, match=r"^scip: .*license expired"):
        solve(model, solver="scip")
    assert (model.x.value, model.y.value) == (4, None)
    assert logging.getLogger("pyomo").level == level


# --- numerically hard linear programs -------------------------------------------------------------


def planted(seed: int, scale: float) -> tuple[LinearProgram, np.ndarray, float]:
    """A linear program with a known feasible point and prices that prove it optimal."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 40)), int(rng.integers(1, 40))
    i, j = np.nonzero(rng.random((m, n)) < 0.3)
    values = np.round(rng.normal(size=len(i)) * 10 ** rng.uniform(-scale, scale, len(i)), 3)
    indptr, index, value = csr(i, j, np.where(values == 0, 1.0, values), m)
    point = rng.integers(0, 5, n) * (rng.random(n) < 0.5).astype(float)
    program = LinearProgram(
        "min", 0.0, np.zeros(n), np.zeros(n), np.where(rng.random(n) < 0.5, 10.0, INF), np.zeros(n, bool),
        indptr, index, value, np.full(m, -INF), np.zeros(m),
    )  # fmt: skip
    activities = program.row_activities(point)
    equal, loose = rng.random(m) < 0.2, rng.random(m) < 0.5
    prices = np.where(equal, rng.normal(size=m), np.where(loose, 0.0, -np.abs(rng.normal(size=m))))
    cost = program.column_products(prices) + np.where(point > 0, 0.0, rng.random(n) * (rng.random(n) < 0.5))
    cost[np.abs(cost) < 1e-8] = 0.0
    upper = activities + np.where(loose & ~equal, 3 * rng.random(m), 0.0)
    program = replace(program, cost=cost, row_lower=np.where(equal, activities, -INF), row_upper=upper)
    return program, point, float(cost @ point)


@pytest.mark.parametrize("scale", [0.0, 1.5, 3.0])
def test_planted_optima_are_found_whatever_the_scale(scale: float) -> None:
    """Coefficients over six orders of magnitude: HiGHS alone calls some of these infeasible."""
    proven = 0
    for seed in range(150):
        program, point, optimum = planted(seed, scale)
        assert program.infeasibility(point) == 0
        result = Session().run(program)
        assert result.status in ("optimal", "feasible"), seed
        size = max(1.0, float(np.abs(program.cost) @ point))
        assert program.objective(result.x) == pytest.approx(optimum, rel=1e-6, abs=1e-6 * size)
        assert result.bound <= optimum + 1e-6 * size
        proven += result.status == "optimal"
    assert proven >= 148


@pytest.mark.parametrize("seed", range(40))
def test_infeasibility_is_proven_by_prices(seed: int) -> None:
    """A row of a feasible program that asks for more than the maximum of its left side."""
    program, _, _ = planted(seed, 0.0)
    program = replace(program, col_upper=np.minimum(program.col_upper, 10.0))
    cost = np.random.default_rng(seed).integers(-3, 4, program.num_cols).astype(float)
    cost[0] = 1.0
    best = Session().run(replace(program, cost=cost, sense="max"))
    rows = np.concatenate([np.repeat(np.arange(program.num_rows), np.diff(program.indptr)), np.full(len(cost), 99)])
    indptr, index, value = csr(
        np.minimum(rows, program.num_rows),
        np.concatenate([program.index, np.arange(len(cost))]),
        np.concatenate([program.value, cost]),
        program.num_rows + 1,
    )
    impossible = replace(
        program,
        indptr=indptr,
        index=index,
        value=value,
        row_lower=np.append(program.row_lower, best.bound + 0.01),
        row_upper=np.append(program.row_upper, INF),
    )
    result = Session().run(impossible)
    assert (result.status, result.bound) == ("infeasible", INF)
    prices = np.append(best.certificate.row_duals, -1.0)
    assert proves_infeasible(impossible, -prices)
    assert not proves_infeasible(impossible, prices)
    assert not proves_infeasible(impossible, np.zeros(len(prices)))
    relaxed = replace(impossible, row_lower=np.append(program.row_lower, best.bound - 0.01))
    assert not proves_infeasible(relaxed, -prices)
    assert Session().run(relaxed).status != "infeasible"


# --- duals and certificates -----------------------------------------------------------------------


@pytest.mark.parametrize("sense", [pyo.minimize, pyo.maximize])
def test_a_dual_is_the_change_of_the_objective_per_unit_of_the_limit(sense: Any) -> None:
    def model(first: float, second: float) -> Model:
        made = pyo.ConcreteModel()
        made.x = pyo.Var([0, 1], bounds=(0, None))
        limits = (first, second)

        def work(m: Model, i: int) -> Any:
            used = m.x[i] + 2 * m.x[1 - i]
            return used <= limits[i] if sense == pyo.maximize else used >= limits[i]

        made.work = pyo.Constraint([0, 1], rule=work)
        made.slack = pyo.Constraint(expr=made.x[0] <= 100)
        made.goal = pyo.Objective(expr=3 * made.x[0] + 2 * made.x[1], sense=sense)
        return made

    solution = solve(model(8, 7))
    assert set(solution.duals) == {"work", "slack"}
    for row in (0, 1):
        moved = solve(model(8 + 0.1 * (row == 0), 7 + 0.1 * (row == 1)))
        assert solution.duals["work"][row] == pytest.approx((moved.objective - solution.objective) / 0.1)
    assert solution.duals["work"][0] > 0
    assert solution.duals["slack"].tolist() == [0.0]
    assert solve(knapsack(5, 1)).duals == {}
    assert solve(model(8, 7), solver="scip").duals == {}


def random_program(seed: int) -> LinearProgram:
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 6)), int(rng.integers(1, 6))
    dense = rng.integers(-3, 4, (m, n)).astype(float)
    i, j = np.nonzero(dense)
    kinds, limits = rng.random(m), rng.integers(0, 9, m).astype(float)
    return LinearProgram(
        str(rng.choice(["min", "max"])), float(rng.integers(-3, 4)), rng.integers(-4, 5, n).astype(float),
        rng.integers(-3, 1, n).astype(float), rng.integers(0, 5, n).astype(float), np.zeros(n, bool),
        *csr(i, j, dense[i, j], m), np.where(kinds < 0.3, -INF, -limits), np.where(kinds > 0.7, INF, limits),
    )  # fmt: skip


@given(st.integers(0, 10**6))
def test_certificates_hold_at_the_optimum_and_nowhere_else(seed: int) -> None:
    program = random_program(seed)
    result = Session().run(program)
    assert result.status == "optimal"
    certificate = Certificate.of(program, result.x, result.certificate.row_duals)
    assert certificate.holds
    assert str(certificate).startswith("certificate holds")
    assert certificate.dual_objective == pytest.approx(certificate.primal_objective)
    outside = result.x + 6.0
    assert not Certificate.of(program, outside, certificate.row_duals).holds
    sign = 1 if program.sense == "min" else -1
    worse = Session().run(replace(program, sense="max" if program.sense == "min" else "min"))
    if sign * (worse.bound - result.bound) > 1e-4:
        assert not Certificate.of(program, worse.x, certificate.row_duals).holds
        cheap = Certificate.of(program, result.x, worse.certificate.row_duals)
        assert sign * cheap.dual_objective <= sign * result.bound + 1e-9


@given(st.integers(0, 10**6), st.data())
def test_any_prices_give_a_valid_bound(seed: int, data: st.DataObject) -> None:
    program = random_program(seed)
    open_ends = data.draw(st.lists(st.booleans(), min_size=program.num_cols, max_size=program.num_cols))
    program = replace(program, col_upper=np.where(open_ends, INF, program.col_upper))
    prices = data.draw(
        st.lists(st.floats(-8, 8).map(lambda v: round(4 * v) / 4), min_size=program.num_rows, max_size=program.num_rows)
    )
    point = np.zeros(program.num_cols)
    assert program.infeasibility(point) == 0
    certificate = Certificate.of(program, point, np.array(prices))
    sign = 1 if program.sense == "min" else -1
    best = Session().run(program)
    assert best.status in ("optimal", "unbounded")
    assert sign * certificate.dual_objective <= sign * best.bound + 1e-7
    assert not proves_infeasible(program, np.array(prices))
    assert not proves_infeasible(program)


def test_a_price_that_faces_an_infinite_limit_gives_no_bound() -> None:
    model = with_row(lambda m: m.x + 2 * m.y <= 8)
    model.x.setub(None)
    program = translate(model)
    good = Certificate.of(program, np.array([8.0, 0.0]), np.array([1.0]))
    assert good.holds
    assert good.dual_objective == 8.0
    low = Certificate.of(program, np.array([8.0, 0.0]), np.array([0.5]))
    assert (low.holds, low.dual_objective, low.dual_infeasibility) == (False, INF, 0.5)
    assert Certificate.of(program, np.array([8.0, 0.0]), np.array([-1.0])).dual_objective == INF


# --- no side effects ------------------------------------------------------------------------------


def state(model: Model) -> list[tuple[Any, ...]]:
    return [
        (v.name, v.value, v.stale, v.fixed, v.lb, v.ub, v.domain.name)
        for v in model.component_data_objects(pyo.Var, descend_into=True)
    ] + [(c.name, c.active) for c in model.component_data_objects(pyo.Constraint)]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    "make",
    [
        lambda: with_row(lambda m: m.x + 2 * m.y <= 8),
        lambda: with_row(lambda m: m.x + m.y <= -1),
        unbounded,
        lambda: knapsack(8, 2),
        lambda: formulations.build(six_servers()),
        lambda: formulations.build(three_jobs()),
    ],
)
def test_nothing_is_written_into_the_model(make: Callable[[], Model], solver: str) -> None:
    model = make()
    variables = list(model.component_data_objects(pyo.Var))
    variables[0].set_value(variables[0].lb or 0)
    variables[0].stale = False
    if len(variables) > 2:
        variables[2].set_value(1)
        variables[2].stale = True
    before = state(model)
    components = [component.name for component in model.component_objects()]
    solution = solve(model, solver=solver)
    assert solution.status in ("optimal", "infeasible", "unbounded")
    assert state(model) == before
    assert [component.name for component in model.component_objects()] == components


def test_a_formulation_that_cannot_read_its_model_leaves_no_trace() -> None:
    model = formulations.build(six_servers())
    before = state(model)
    model.instance = three_jobs()
    with pytest.raises(AttributeError):
        solve(model)
    assert state(model) == before


@pytest.mark.parametrize("solver", SOLVERS)
def test_load_writes_the_point(solver: str) -> None:
    model = with_row(lambda m: m.x + 2 * m.y <= 7)
    model.y.domain = pyo.Integers
    model.goal.set_value(model.x + 5 * model.y)
    model.kept = pyo.Var()
    model.kept.fix(7)
    solution = solve(model, solver=solver)
    assert model.x.value is None
    solution.load()
    assert model.x.value == pytest.approx(1)
    assert model.y.value == 3
    assert isinstance(model.y.value, int)
    assert not model.x.stale
    assert model.kept.value == 7
    assert pyo.value(model.goal) == pytest.approx(solution.objective)


def test_load_without_a_point() -> None:
    with pytest.raises(ValueError, match="no point to load: status infeasible"):
        solve(with_row(lambda m: m.x + m.y <= -1)).load()


def test_read_needs_an_instance_and_values() -> None:
    with pytest.raises(ValueError, match="not built from an instance"):
        formulations.read(base())
    model = formulations.build(six_servers())
    with pytest.raises(ValueError, match=r"No value for uninitialized"):
        formulations.read(model)
    solve(model).load()
    assert formulations.read(model) == solve(six_servers()).plan


# --- what users add -------------------------------------------------------------------------------


def test_constraints_added_by_a_user_count() -> None:
    instance = six_servers()
    assert solve(instance).objective == 1
    model = formulations.build(instance)
    model.keep = pyo.Constraint(expr=model.returned[4] == 0)
    solution = solve(model)
    assert (solution.status, solution.objective) == ("optimal", 2.0)
    assert 4 not in solution.plan.servers
    assert instance.objective(solution.plan) == 2
    model.returned[5].fix(0)
    model.returned[0].fix(0)
    assert set(solve(model).plan.servers.tolist()) <= {1, 2, 3}
    model.returned[1].fix(0)
    model.returned[2].fix(0)
    assert solve(model).status == "infeasible"


def test_a_plan_that_breaks_the_instances_rules_is_not_used() -> None:
    instance = six_servers()
    module = formulations.formulation(instance.problem)
    model = formulations.build(instance)
    result, name, version = formulations.solving.run(model, translate(model), Options())
    for servers, status in (([4, 5], "optimal"), ([0, 1], "feasible"), ([4], "unknown"), ([4, 9], "unknown")):
        solution = formulations.solving.judged(
            instance,
            ReclaimPlan(servers=np.array(servers)),
            result,
            build_seconds=lambda: 0.0,
            solver=name,
            solver_version=version,
        )
        assert solution.status == status
        assert (solution.plan is None) == (status == "unknown")
        assert (solution.objective is None) == (status == "unknown")
    assert module.__name__ == "formulations.aryl.reclaim"


def test_start_plans() -> None:
    instance = six_servers()
    for servers in ([4, 5], [0, 1], [0], [2, 2]):
        solution = solve(instance, start=ReclaimPlan(servers=np.array(servers)))
        assert (solution.status, solution.objective) == ("optimal", 1.0)
    with pytest.raises(PlanError, match="a plan must be a ReclaimPlan"):
        solve(instance, start=Allocation(time_fractions=np.zeros((1, 1))))
    with pytest.raises(PlanError, match="there is no server 9"):
        solve(instance, start=ReclaimPlan(servers=np.array([4, 9])))
    with pytest.raises(ValueError, match=r"gavel\.max_min_fairness does not take a start plan"):
        solve(three_jobs(), start=Allocation(time_fractions=np.zeros((3, 2))))


# --- arguments ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        ({"time_limit": 0}, "time_limit: got 0, must be positive seconds"),
        ({"time_limit": -1.0}, "time_limit: got -1.0"),
        ({"time_limit": math.nan}, "time_limit: got nan"),
        ({"mip_gap": -0.1}, "mip_gap: got -0.1, must be at least 0"),
        ({"mip_gap": math.nan}, "mip_gap: got nan"),
        ({"mip_gap": INF}, "mip_gap: got inf"),
        ({"threads": 0}, "threads: got 0, must be at least 1"),
        ({"seed": -1}, "seed: got -1, must be at least 0"),
        ({"seed": 2**31}, "seed: got 2147483648, must be"),
    ],
)
def test_options_are_validated(option: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        solve(base(), **option)
    with pytest.raises(ValueError, match=complaint):
        Options(**option)


@pytest.mark.parametrize("solver", SOLVERS)
def test_options_reach_every_solver(solver: str) -> None:
    solution = solve(
        knapsack(15, 2), solver=solver, time_limit=INF if solver == "highs" else 60, threads=1, seed=2**31 - 1
    )
    assert solution.status == "optimal"


@pytest.mark.parametrize(
    ("solver", "complaint"),
    [
        ("hihgs", r"unknown solver 'hihgs' \(did you mean 'highs'\?\)"),
        ("sipc", r"unknown solver 'sipc' \(did you mean 'scip'\?\)"),
        ("", "unknown solver ''"),
        ("cplex", "solver 'cplex' is not installed: .*or use 'highs'"),
    ],
)
def test_missing_solvers(solver: str, complaint: str) -> None:
    with pytest.raises(SolverNotFound, match=complaint):
        solve(base(), solver=solver)


def test_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, package in (("gurobi", "pip install gurobipy"), ("scip", "pip install PySCIPOpt"), ("cbc", "coinor-cbc")):
        for factory in (external.SolverFactory, pyo.SolverFactory):
            monkeypatch.setattr(
                type(factory), "__call__", lambda *_, **__: type("Off", (), {"available": lambda *_, **__: False})()
            )
        with pytest.raises(SolverNotFound, match=rf"solver '{name}' is not installed: .*{package}.*, or use 'highs'"):
            solve(base(), solver=name)


@pytest.mark.parametrize("thing", [None, 3, "aryl.reclaim", {"problem": "aryl.reclaim"}])
def test_what_is_neither_instance_nor_model(thing: Any) -> None:
    with pytest.raises(TypeError, match="solve takes an instance or a Pyomo model"):
        solve(thing)


def test_models_that_no_solver_takes_are_refused_for_all() -> None:
    model = with_row(lambda m: m.x * m.y <= 1)
    for solver in SOLVERS:
        with pytest.raises(ModelError, match="constraint 'c': not linear"):
            solve(model, solver=solver)


# --- the solution object --------------------------------------------------------------------------


def test_the_solution_of_an_instance() -> None:
    instance = generate(3, num_jobs=8)
    solution = solve(instance)
    assert solution.status == "optimal"
    assert instance.violations(solution.plan) == []
    assert solution.objective == instance.objective(solution.plan)
    assert solution.bound == pytest.approx(solution.objective)
    assert solution.certificate.holds
    assert set(solution.duals) == {"job_time", "pool_capacity", "fairness"}
    assert len(solution.duals["fairness"]) == 8
    assert repr(solution).startswith("Solution(status='optimal', objective=")
    assert "solver='highs 1." in repr(solution)
    data = json.loads(json.dumps(solution.to_dict(), allow_nan=False))
    assert data["objective"] == solution.objective
    assert data["gap"] == 0.0
    assert Allocation.from_dict(data["plan"]) == solution.plan


def test_the_solution_of_nothing_is_json_too() -> None:
    solution = solve(with_row(lambda m: m.x + m.y <= -1))
    data = json.loads(json.dumps(solution.to_dict(), allow_nan=False))
    assert (data["status"], data["objective"], data["bound"], data["gap"], data["plan"]) == (
        "infeasible",
        None,
        None,
        None,
        None,
    )
    assert "objective=none" in repr(solution)


@pytest.mark.parametrize(
    ("objective", "bound", "gap"),
    [
        (10.0, 10.0, 0.0),
        (10.0, 12.0, 0.2),
        (-10.0, -12.0, 0.2),
        (10.0, 10.000001, 0.0),
        (0.0, 0.0, 0.0),
        (0.0, 1.0, INF),
        (None, 1.0, INF),
        (1.0, INF, INF),
        (INF, INF, INF),
    ],
)
def test_relative_gap(objective: float | None, bound: float, gap: float) -> None:
    assert relative_gap(objective, bound) == pytest.approx(gap)


def test_gap_of_a_solution_without_proof() -> None:
    solution = Solution("feasible", None, 10.0, 12.0, "max", 0.0, 0.0, "highs", "1")
    assert solution.gap == pytest.approx(0.2)
    with pytest.raises(ValueError, match="no point to load"):
        solution.load()
