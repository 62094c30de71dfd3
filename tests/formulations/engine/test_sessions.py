"""Sessions: warm re-solves against cold solves, limits, and failures that must leave no trace."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

import formulations
from formulations import LinearProgram, ModelError, Session, SolverError, translate
from formulations.engine.linear import Columns, csr
from formulations.gavel import max_min_fairness
from instances.gavel.max_min_fairness import generate


def random_program(rng: np.random.Generator, *, integer: float = 0.4) -> LinearProgram:
    n, m = int(rng.integers(1, 7)), int(rng.integers(0, 7))
    dense = rng.integers(-4, 5, (m, n)) * (rng.random((m, n)) < 0.6)
    i, j = np.nonzero(dense)
    indptr, index, value = csr(i, j, dense[i, j].astype(float), m)
    limits = rng.integers(-4, 9, m).astype(float)
    kinds = rng.random(m)
    lower = rng.integers(-3, 1, n).astype(float)
    return LinearProgram(
        sense=str(rng.choice(["min", "max"])),
        offset=float(rng.integers(-2, 3)),
        cost=rng.integers(-5, 6, n).astype(float),
        col_lower=np.where(rng.random(n) < 0.1, -np.inf, lower),
        col_upper=np.where(rng.random(n) < 0.1, np.inf, lower + rng.integers(0, 6, n)),
        integer=rng.random(n) < (integer if rng.random() < 0.5 else 0),
        indptr=indptr,
        index=index,
        value=value,
        row_lower=np.where(kinds < 0.4, -np.inf, limits),
        row_upper=np.where(kinds > 0.7, np.inf, limits + rng.integers(0, 3, m)),
    )


def change(program: LinearProgram, rng: np.random.Generator) -> LinearProgram:
    """The program with one thing about it changed."""
    n, m, k = program.num_cols, program.num_rows, len(program.value)
    what = rng.choice(["cost", "bounds", "row", "coefficient", "sense", "offset", "integer", "pattern", "all", "same"])
    column, row, entry = rng.integers(n), rng.integers(max(m, 1)), rng.integers(max(k, 1))
    if what == "cost":
        cost = program.cost.copy()
        cost[column] = rng.integers(-5, 6)
        return replace(program, cost=cost)
    if what == "bounds":
        lower, upper = program.col_lower.copy(), program.col_upper.copy()
        lower[column] = rng.choice([-np.inf, -2, 0, 1])
        upper[column] = rng.choice([np.inf, 4, 1, 0])
        return replace(program, col_lower=lower, col_upper=upper)
    if what == "row" and m:
        lower, upper = program.row_lower.copy(), program.row_upper.copy()
        lower[row] = rng.choice([-np.inf, -2, 1, 2])
        upper[row] = rng.choice([np.inf, 5, 2, 1])
        return replace(program, row_lower=lower, row_upper=upper)
    if what == "coefficient" and k:
        value = program.value.copy()
        value[entry] = rng.integers(-4, 5)
        return replace(program, value=value)
    if what == "sense":
        return replace(program, sense="max" if program.sense == "min" else "min")
    if what == "offset":
        return replace(program, offset=program.offset + 1)
    if what == "integer":
        integer = program.integer.copy()
        integer[column] ^= True
        return replace(program, integer=integer)
    if what == "pattern":
        dense = rng.integers(-4, 5, (m, n)) * (rng.random((m, n)) < 0.6)
        i, j = np.nonzero(dense)
        indptr, index, value = csr(i, j, dense[i, j].astype(float), m)
        return replace(program, indptr=indptr, index=index, value=value)
    if what == "all":
        return random_program(rng)
    return program


def assert_equal_to_cold(program: LinearProgram, warm: Any) -> None:
    cold = Session(time_limit=20).run(program)
    assert warm.status == cold.status
    assert warm.bound == pytest.approx(cold.bound, rel=1e-7, abs=1e-7)
    if warm.x is not None:
        assert program.infeasibility(warm.x) <= 1e-6
        assert (warm.x[program.integer] == np.rint(warm.x[program.integer])).all()
        assert program.objective(warm.x) == pytest.approx(cold.bound, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("seed", range(40))
def test_warm_solves_equal_cold_solves(seed: int) -> None:
    rng = np.random.default_rng(seed)
    session = Session(time_limit=20)
    program = random_program(rng)
    for _ in range(15):
        assert_equal_to_cold(program, session.run(program))
        program = change(program, rng)


@pytest.mark.parametrize("seed", range(20))
def test_added_columns_equal_a_program_that_has_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    session = Session()
    program = replace(random_program(rng, integer=0), col_lower=np.zeros(0), col_upper=np.zeros(0))
    program = replace(program, col_lower=np.full(program.num_cols, -2.0), col_upper=np.full(program.num_cols, 3.0))
    session.run(program)
    for _ in range(4):
        added = int(rng.integers(0, 4))
        dense = rng.integers(-3, 4, (added, program.num_rows))
        i, j = np.nonzero(dense)
        indptr, rows, values = csr(i, j, dense[i, j].astype(float), added)
        columns = Columns(
            rng.integers(-4, 5, added).astype(float), np.zeros(added), np.full(added, 2.0), indptr, rows, values
        )
        wider = program.with_columns(columns)
        program = session.add_columns(columns)
        for name in ("cost", "col_lower", "col_upper", "integer", "indptr", "index", "value"):
            assert (getattr(program, name) == getattr(wider, name)).all()
        assert_equal_to_cold(program, session.run(program))
        program = replace(program, cost=-program.cost)
        assert_equal_to_cold(program, session.run(program))


def tiny(**fields: Any) -> LinearProgram:
    """max x + y  subject to  x + 2 y <= 4,  0 <= x, y <= 3."""
    values: dict[str, Any] = {
        "sense": "max",
        "offset": 0.0,
        "cost": np.ones(2),
        "col_lower": np.zeros(2),
        "col_upper": np.full(2, 3.0),
        "integer": np.zeros(2, bool),
        "indptr": np.array([0, 2], np.int32),
        "index": np.array([0, 1], np.int32),
        "value": np.array([1.0, 2.0]),
        "row_lower": np.array([-np.inf]),
        "row_upper": np.array([4.0]),
    }
    return LinearProgram(**{**values, **fields})


def test_arrays_changed_in_place_are_noticed() -> None:
    program = tiny()
    session = Session()
    assert session.run(program).bound == pytest.approx(3.5)
    program.row_upper[0] = 6.0
    assert session.run(program).bound == pytest.approx(4.5)
    program.cost[:] = [0.0, 1.0]
    assert session.run(program).bound == pytest.approx(3.0)
    program.value[1] = 4.0
    assert session.run(program).bound == pytest.approx(1.5)
    wider = session.add_columns(
        Columns(np.ones(1), np.zeros(1), np.ones(1), np.array([0, 0], np.int32), np.zeros(0, np.int32), np.zeros(0))
    )
    assert session.run(wider).bound == pytest.approx(2.5)
    wider.cost[2] = 5.0
    assert session.run(wider).bound == pytest.approx(6.5)


def test_many_changed_coefficients_at_once() -> None:
    rng = np.random.default_rng(0)
    n = 40
    dense = rng.uniform(1, 2, (n, n))
    i, j = np.nonzero(dense)
    program = LinearProgram(
        "max", 0.0, np.ones(n), np.zeros(n), np.ones(n), np.zeros(n, bool), *csr(i, j, dense[i, j], n),
        np.full(n, -np.inf), np.full(n, 9.0),
    )  # fmt: skip
    session = Session()
    session.run(program)
    other = replace(program, value=program.value[::-1].copy())
    assert_equal_to_cold(other, session.run(other))


def test_crossed_bounds_are_infeasible_and_leave_the_session_usable() -> None:
    session = Session()
    assert session.run(tiny()).status == "optimal"
    crossed = session.run(tiny(col_lower=np.array([0.0, 4.0])))
    assert (crossed.status, crossed.x, crossed.bound) == ("infeasible", None, -math.inf)
    assert crossed.message == "variable 'column 1' has crossed bounds"
    row = session.run(tiny(sense="min", row_lower=np.array([5.0])))
    assert (row.status, row.bound, row.message) == ("infeasible", math.inf, "constraint 'row 0' has crossed bounds")
    assert session.run(tiny()).bound == pytest.approx(3.5)


def test_columns_are_added_only_to_a_program_that_the_solver_holds() -> None:
    columns = Columns(np.ones(1), np.zeros(1), np.ones(1), np.zeros(2, np.int32), np.zeros(0, np.int32), np.zeros(0))
    session = Session()
    with pytest.raises(SolverError, match="no program to add columns to"):
        session.add_columns(columns)
    session.run(tiny())
    session.run(tiny(col_lower=np.full(2, 4.0)))
    with pytest.raises(SolverError, match="no program to add columns to"):
        session.add_columns(columns)
    assert session.run(tiny()).status == "optimal"
    assert session.run(session.add_columns(columns)).bound == pytest.approx(4.5)


@pytest.mark.parametrize(
    "fields",
    [
        {"value": np.array([1.0, math.nan])},
        {"value": np.array([1.0, 1e-12])},
        {"value": np.array([1.0, 1e15])},
        {"cost": np.array([1.0, math.nan])},
        {"cost": np.array([1.0, math.inf])},
        {"cost": np.array([1.0, 1e-20])},
        {"offset": math.nan},
        {"col_lower": np.array([0.0, math.nan])},
        {"col_upper": np.array([3.0, 1e20])},
        {"row_upper": np.array([math.nan])},
        {"row_lower": np.array([math.inf])},
    ],
)
@pytest.mark.parametrize("warm", [False, True])
def test_bad_numbers_are_refused_warm_and_cold(fields: dict[str, Any], warm: bool) -> None:
    session = Session()
    if warm:
        session.run(tiny())
    with pytest.raises(ModelError, match=r"row 0|column 1|objective"):
        session.run(tiny(**fields))
    assert session.run(tiny(cost=np.array([0.0, 1.0]))).bound == pytest.approx(2.0)


def test_a_failure_half_way_leaves_no_half_changed_program(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session()
    session.run(tiny())
    changed = tiny(cost=np.array([0.0, 1.0]), row_upper=np.array([2.0]))
    checked = Session._checked

    def failing(status: Any, doing: str) -> None:
        checked(status, doing)
        if doing == "changing costs":
            raise SolverError("out of memory")

    monkeypatch.setattr(Session, "_checked", staticmethod(failing))
    with pytest.raises(SolverError, match="out of memory"):
        session.run(changed)
    monkeypatch.undo()
    assert session.run(changed).bound == pytest.approx(1.0)
    assert session.run(tiny()).bound == pytest.approx(3.5)


def test_a_program_without_columns() -> None:
    none = tiny(
        cost=np.zeros(0), col_lower=np.zeros(0), col_upper=np.zeros(0), integer=np.zeros(0, bool), offset=2.0,
        indptr=np.zeros(2, np.int32), index=np.zeros(0, np.int32), value=np.zeros(0),
    )  # fmt: skip
    session = Session()
    result = session.run(none)
    assert (result.status, result.bound, len(result.x)) == ("optimal", 2.0, 0)
    assert session.run(replace(none, row_upper=np.array([-1.0]))).status == "infeasible"
    assert session.run(tiny()).bound == pytest.approx(3.5)


def test_integers_after_a_large_linear_program() -> None:
    """Interior point is chosen for the first; the second must not be taken for a linear program."""
    rng = np.random.default_rng(0)
    n, m = 12, 1100
    program = LinearProgram(
        "max", 0.0, np.ones(n), np.zeros(n), np.full(n, 10.0), np.zeros(n, bool),
        np.arange(m + 1, dtype=np.int32) * n, np.tile(np.arange(n, dtype=np.int32), m),
        rng.integers(1, 10, m * n).astype(float), np.full(m, -np.inf), rng.integers(50, 100, m).astype(float),
    )  # fmt: skip
    session = Session()
    relaxed = session.run(program)
    whole = replace(program, integer=np.ones(n, bool))
    result = session.run(whole)
    assert result.status == "optimal"
    assert result.bound < relaxed.bound - 0.1
    assert (result.x == np.rint(result.x)).all()
    assert_equal_to_cold(whole, result)
    assert_equal_to_cold(program, session.run(program))


# --- limits ---------------------------------------------------------------------------------------


def knapsack(n: int, m: int, seed: int = 0) -> LinearProgram:
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 1000, (m, n)).astype(float)
    return LinearProgram(
        "max", 0.0, rng.integers(1, 1000, n).astype(float), np.zeros(n), np.ones(n), np.ones(n, bool),
        np.arange(m + 1, dtype=np.int32) * n, np.tile(np.arange(n, dtype=np.int32), m), weights.ravel(),
        np.full(m, -np.inf), weights.sum(axis=1) // 2,
    )  # fmt: skip


def test_a_time_limit_holds_for_each_run_and_can_be_lifted() -> None:
    hard, easy = knapsack(150, 25), knapsack(15, 2)
    session = Session(time_limit=0.2)
    for _ in range(3):
        stopped = session.run(hard)
        assert stopped.status in ("feasible", "unknown")
        assert session.run(easy).status == "optimal"
    session.time_limit = 1e-9
    stopped = session.run(hard)
    assert (stopped.status, stopped.x, stopped.bound) == ("unknown", None, math.inf)
    session.time_limit = None
    assert session.run(easy).status == "optimal"


def test_a_stopped_search_brackets_the_optimum() -> None:
    program = knapsack(40, 5)
    optimum = Session().run(program)
    assert optimum.status == "optimal"
    stopped = Session(mip_gap=0.2).run(program)
    assert stopped.status == "feasible"
    assert "not at the bound" in stopped.message
    assert program.objective(stopped.x) <= optimum.bound + 1e-6 <= stopped.bound + 2e-6


def test_time_limit_on_a_linear_program() -> None:
    program = replace(knapsack(400, 60), integer=np.zeros(400, bool))
    stopped = Session(time_limit=1e-9).run(program)
    assert (stopped.status, stopped.bound, stopped.certificate) == ("feasible", math.inf, None)
    assert program.infeasibility(stopped.x) <= 1e-6
    demanding = replace(program, row_lower=program.row_upper - 1)
    stopped = Session(time_limit=1e-9).run(demanding)
    assert (stopped.status, stopped.x, stopped.bound, stopped.certificate) == ("unknown", None, math.inf, None)


def test_start_points() -> None:
    program = knapsack(40, 5)
    optimum = Session().run(program)
    session = Session()
    assert session.run(program, start=optimum.x).bound == pytest.approx(optimum.bound)
    # An infeasible start is ignored; one of another length is an error that leaves the session usable.
    assert Session().run(program, start=np.ones(40)).bound == pytest.approx(optimum.bound)
    with pytest.raises(SolverError, match="taking the start point"):
        session.run(program, start=np.ones(3))
    assert session.run(program).bound == pytest.approx(optimum.bound)
    kept = Session(time_limit=0.05).run(knapsack(150, 25), start=np.zeros(150))
    assert kept.x is not None


@pytest.mark.parametrize("presolve", [True, False])
def test_a_search_and_its_second_way_are_with_presolve_and_without(
    presolve: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, asked = knapsack(15, 2), []
    solve = Session._solve

    def noted(self: Session, program: LinearProgram, ways: list[dict[str, Any]]) -> Any:
        if program.is_mip:
            asked.append([way["presolve"] for way in ways])
        return solve(self, program, ways)

    monkeypatch.setattr(Session, "_solve", noted)
    result = Session(verify=True).run(program, presolve=presolve)
    assert (result.status, result.proof) == ("optimal", "two runs")
    assert asked == ([["choose", "off"], ["off"]] if presolve else [["off"], ["choose"]])


def test_threads_may_change_between_sessions() -> None:
    for threads in (1, 2, 1):
        assert Session(threads=threads, seed=3).run(knapsack(20, 3)).status == "optimal"


# --- sessions through solve -----------------------------------------------------------------------


def test_a_session_follows_the_changes_of_a_pyomo_model() -> None:
    model = pyo.ConcreteModel()
    model.x = pyo.Var([0, 1], bounds=(0, 3))
    model.limit = pyo.Param(initialize=4, mutable=True)
    model.weight = pyo.Param(initialize=2, mutable=True)
    model.row = pyo.Constraint(expr=model.x[0] + model.weight * model.x[1] <= model.limit)
    model.goal = pyo.Objective(expr=model.x[0] + model.x[1], sense=pyo.maximize)
    session = Session()

    def value() -> float:
        solution = formulations.solve(model, session=session)
        assert solution.status == "optimal"
        return solution.objective

    assert value() == pytest.approx(3.5)
    model.limit.set_value(6)
    assert value() == pytest.approx(4.5)
    model.weight.set_value(4)
    assert value() == pytest.approx(3.75)
    model.x[1].domain = pyo.Integers
    assert value() == pytest.approx(3.0)
    model.x[0].fix(1)
    assert value() == pytest.approx(2.0)
    model.x[0].unfix()
    model.more = pyo.Constraint(expr=model.x[0] <= 2)
    assert value() == pytest.approx(3.0)
    model.row.deactivate()
    assert value() == pytest.approx(5.0)
    model.goal.sense = pyo.minimize
    assert value() == pytest.approx(0.0)


def test_a_session_serves_instances_and_brings_its_own_options() -> None:
    session = Session()
    for seed in range(3):
        instance = generate(seed, num_jobs=12)
        warm = formulations.solve(instance, session=session)
        assert warm.status == "optimal"
        assert warm.objective == pytest.approx(formulations.solve(instance).objective, rel=1e-7)
    with pytest.raises(ValueError, match="a session brings its own"):
        formulations.solve(instance, session=session, time_limit=3.0)


def test_a_program_is_solved_warm_in_fewer_iterations() -> None:
    program = translate(max_min_fairness.build(generate(1, num_jobs=60)))
    session = Session()
    session.run(program)
    session.run(replace(program, row_upper=program.row_upper * 1.001))
    warm = session._highs.getInfo().simplex_iteration_count
    cold = Session()
    cold.run(replace(program, row_upper=program.row_upper * 1.001))
    assert warm < cold._highs.getInfo().simplex_iteration_count / 2
