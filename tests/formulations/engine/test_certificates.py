"""What prices prove: optima, infeasibility and bounds of linear programs."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulations import Certificate, LinearProgram, Session, solve, translate
from formulations.engine.certificate import proves_infeasible, proves_unbounded
from formulations.engine.linear import csr

from .small_models import INF, Model, knapsack, with_row

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


# --- directions without end -----------------------------------------------------------------------


def direction_program(**parts: Any) -> LinearProgram:
    """``max x`` subject to ``x - y <= 1``, both at least 0."""
    fields: dict[str, Any] = {
        "sense": "max",
        "offset": 0.0,
        "cost": np.array([1.0, 0.0]),
        "col_lower": np.zeros(2),
        "col_upper": np.full(2, np.inf),
        "integer": np.zeros(2, bool),
        "indptr": np.array([0, 2], np.int32),
        "index": np.array([0, 1], np.int32),
        "value": np.array([1.0, -1.0]),
        "row_lower": np.array([-np.inf]),
        "row_upper": np.array([1.0]),
        "constraints": [],
    }
    return LinearProgram(**fields | parts)


@pytest.mark.parametrize("integer", [False, True])
def test_unbounded_rests_on_a_direction(integer: bool) -> None:
    result = Session().run(direction_program(integer=np.full(2, integer)))
    assert (result.status, result.proof) == ("unbounded", "ray")


@pytest.mark.parametrize(
    ("parts", "ray"),
    [
        ({}, [1.0, 0.0]),
        ({}, [0.0, 1.0]),
        ({}, [-1.0, -1.0]),
        ({"sense": "min"}, [1.0, 1.0]),
        ({"col_upper": np.array([np.inf, 7.0])}, [1.0, 1.0]),
        ({"row_lower": np.array([0.0])}, [1.0, 2.0]),
        ({"row_upper": np.array([np.inf]), "row_lower": np.array([0.0])}, [1.0, 2.0]),
    ],
    ids=["leaves a row", "improves nothing", "leaves a bound", "worsens", "a bound", "both limits", "lower limit"],
)
def test_what_is_no_direction_without_end(parts: dict[str, Any], ray: list[float]) -> None:
    assert proves_unbounded(direction_program(), np.array([1.0, 1.0]))
    assert not proves_unbounded(direction_program(**parts), np.array(ray))
