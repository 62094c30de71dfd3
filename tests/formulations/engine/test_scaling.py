"""Units: a program is solved in those that suit the solver, and a change of unit changes no verdict."""

import math
from dataclasses import replace
from typing import Any

import hypothesis
import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import formulations
from formulations import Certificate, LinearProgram, ModelError, Session, Solution, translate
from formulations.engine.linear import Columns, csr
from formulations.engine.scaling import Scaling, infeasibility, scaled, unit
from instances.afs.elastic_sharing import ElasticSharing
from instances.aryl.elastic_allocation import ElasticAllocation
from instances.aryl.two_job import ArylTwoJob
from instances.base import Instance
from instances.gavel.round_assignment import RoundAssignment
from instances.synergy.allocation import SynergyAllocation
from validation.catalogue import CATALOGUE
from validation.testing import strategies
from validation.testing.transform import rescaled

from ...effort import rounds

INF = math.inf


def random_program(seed: int, *, integer: float = 0.0) -> LinearProgram:
    """A bounded program with the feasible point 0."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 7)), int(rng.integers(1, 6))
    dense = rng.integers(-4, 5, (m, n)) * rng.uniform(0.5, 2, (m, n)) * (rng.random((m, n)) < 0.7)
    i, j = np.nonzero(dense)
    return LinearProgram(
        str(rng.choice(["min", "max"])), float(rng.integers(-2, 3)), rng.uniform(-5, 5, n),
        -rng.integers(0, 4, n).astype(float), rng.integers(1, 6, n).astype(float), rng.random(n) < integer,
        *csr(i, j, dense[i, j], m), np.where(rng.random(m) < 0.4, -INF, -rng.uniform(0, 5, m)),
        np.where(rng.random(m) < 0.4, INF, rng.uniform(0, 5, m)),
    )  # fmt: skip


def in_units(program: LinearProgram, *, rows: Any = 0, columns: Any = 0, objective: int = 0) -> LinearProgram:
    """The program in units of powers of two; whole columns keep theirs."""
    own = np.where(program.integer, 0, np.broadcast_to(columns, program.num_cols)).astype(np.int32)
    return Scaling(np.broadcast_to(rows, program.num_rows).astype(np.int32), own, objective).apply(program)


# --- scaling by itself ----------------------------------------------------------------------------


@pytest.mark.parametrize("problem", sorted(CATALOGUE))
def test_a_model_of_ordinary_data_keeps_its_units(problem: str) -> None:
    entry = CATALOGUE[problem]
    program = translate(formulations.build(entry.generate(1, **{entry.size: min(entry.sizes)})))
    inner, scaling = scaled(program)
    assert not scaling.rows.any()
    assert not scaling.columns.any()
    largest = np.abs(program.cost).max()
    assert (inner is program) == (1 <= largest < 2**20)


@given(st.integers(0, 10**6), st.integers(-60, 60), st.integers(-60, 60))
def test_scaling_is_undone_to_the_last_digit(seed: int, rows: int, objective: int) -> None:
    rng = np.random.default_rng(seed)
    program = random_program(seed, integer=0.3)
    odd = in_units(program, rows=rows + rng.integers(-3, 4, program.num_rows), objective=objective)
    inner, scaling = scaled(odd)
    again = scaling.inverse.apply(inner)
    for name in ("offset", "cost", "col_lower", "col_upper", "value", "row_lower", "row_upper"):
        assert np.array_equal(getattr(again, name), getattr(odd, name)), name
    x = rng.uniform(-3, 3, program.num_cols)
    assert np.array_equal(scaling.inverse.point(scaling.point(x)), x)
    y = rng.uniform(-3, 3, program.num_rows)
    assert np.array_equal(scaling.inverse.prices(scaling.prices(y)), y)
    assert scaling.inverse.value(inner.objective(scaling.point(x))) == odd.objective(x)
    assert not scaling.columns[program.integer].any()
    assert np.abs(inner.value).max(initial=1.0) < 2**20
    assert np.abs(inner.cost).max() == pytest.approx(2**10, rel=1023) or not inner.cost.any()


@pytest.mark.parametrize("k", [-40, -30, -20, 20, 30, 40])
@pytest.mark.parametrize("integer", [0.0, 0.4])
@pytest.mark.parametrize("seed", range(12))
def test_a_change_of_unit_changes_no_verdict(seed: int, integer: float, k: int) -> None:
    rng = np.random.default_rng(seed)
    program = random_program(seed, integer=integer)
    base = Session().run(program)
    rows = rng.integers(-abs(k), abs(k) + 1, program.num_rows)
    for changed in (in_units(program, objective=k), in_units(program, rows=rows)):
        factor = 2.0**k if changed.cost[0] != program.cost[0] else 1.0
        result = Session().run(changed)
        assert result.status == base.status
        assert result.bound == pytest.approx(base.bound * factor, rel=1e-9)
        if result.x is not None:
            assert infeasibility(changed, result.x) <= 1e-6
            assert changed.objective(result.x) == pytest.approx(program.objective(base.x) * factor, rel=1e-9)
        if result.certificate is not None:
            assert result.certificate.holds
            again = Certificate.of(changed, result.x, result.certificate.row_duals)
            assert again.dual_objective == result.certificate.dual_objective
            assert again.holds


@pytest.mark.parametrize("k", [-40, -30, 30, 40])
@pytest.mark.parametrize("seed", range(8))
def test_variables_in_other_units(seed: int, k: int) -> None:
    """All continuous columns, limits and all, measured in another unit."""
    program = random_program(seed)
    base = Session().run(program)
    result = Session().run(in_units(program, columns=k))
    assert result.status == base.status
    assert result.bound == pytest.approx(base.bound, rel=1e-9)
    small = in_units(program, columns=k, rows=-k)
    result = Session().run(small)
    assert result.status == base.status
    assert result.bound == pytest.approx(base.bound, rel=1e-9)


def test_a_point_is_judged_in_the_units_of_its_rows() -> None:
    program = random_program(0)
    x = np.zeros(program.num_cols)
    broken = replace(program, row_lower=np.full(program.num_rows, 1.0), row_upper=np.full(program.num_rows, INF))
    small = in_units(broken, rows=-40)
    assert small.infeasibility(x) < 1e-11
    assert infeasibility(broken, x) == 1.0
    assert infeasibility(small, x) > 0.1
    assert Certificate.of(small, x, np.zeros(program.num_rows)).primal_infeasibility > 0.1


def test_infeasibility_of_small_rows_is_seen() -> None:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, 1))
    model.y = pyo.Var(bounds=(0, 1))
    model.small = pyo.Constraint(expr=3e-9 * model.x + 2e-9 * model.y >= 6e-9)
    model.goal = pyo.Objective(expr=model.x)
    assert formulations.solve(model).status == "infeasible"
    assert formulations.solve(model, solver="scip").status == "infeasible"
    assert formulations.explain(model).constraints == ("small",)
    assert "3e-09 x" in formulations.explain(model).rows[0]


def test_what_vanishes_beside_the_others_is_refused_by_its_own_number() -> None:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(domain=pyo.Integers, bounds=(0, 9))
    model.y = pyo.Var(domain=pyo.Integers, bounds=(0, 9))
    model.row = pyo.Constraint(expr=2e-12 * model.x + 3e-22 * model.y <= 4e-12)
    model.goal = pyo.Objective(expr=model.x, sense=pyo.maximize)
    with pytest.raises(ModelError, match="constraint 'row', variable 'y': coefficient 3e-22 is too small beside"):
        formulations.solve(model)
    model.row.set_value(2e-12 * model.x + 3e-13 * model.y <= 4e-12)
    assert formulations.solve(model).objective == 2.0


def test_units_of_numbers() -> None:
    assert unit([1e-3, 500.0]) == unit([]) == unit([0.0]) == unit([1e6, INF]) == 1.0
    assert unit([3e-9]) == 2.0**-29
    assert unit([2.0**20]) == 2.0**20


# --- sessions -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_warm_solves_follow_changes_of_unit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    program = random_program(seed, integer=0.4 if seed % 2 else 0.0)
    base = Session().run(program)
    session = Session()
    for _ in range(8):
        k = int(rng.integers(-40, 41))
        changed = in_units(program, objective=k, rows=rng.integers(-40, 41, program.num_rows))
        result = session.run(changed)
        assert result.status == base.status
        assert result.bound == pytest.approx(base.bound * 2.0**k, rel=1e-9)
        start = result.x if program.is_mip else None
        assert session.run(changed, start=start).bound == pytest.approx(base.bound * 2.0**k, rel=1e-9)


@pytest.mark.parametrize("k", [-40, 0, 40])
@pytest.mark.parametrize("seed", range(6))
def test_columns_are_added_in_the_units_of_the_program(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    program = in_units(random_program(seed), rows=k, objective=-k)
    session = Session()
    session.run(program)
    dense = np.ldexp(rng.integers(-3, 4, (2, program.num_rows)).astype(float), k)
    i, j = np.nonzero(dense)
    indptr, rows, values = csr(i, j, dense[i, j], 2)
    columns = Columns(np.ldexp(rng.uniform(-4, 4, 2), -k), np.zeros(2), np.full(2, 2.0), indptr, rows, values)
    wider, extended = program.with_columns(columns), session.add_columns(columns)
    for name in ("cost", "col_lower", "col_upper", "indptr", "index", "value", "row_lower", "row_upper"):
        assert np.array_equal(getattr(wider, name), getattr(extended, name)), name
    assert session.run(extended).bound == pytest.approx(Session().run(wider).bound, rel=1e-9)


# --- instances ------------------------------------------------------------------------------------


def test_small_running_times() -> None:
    instance = ElasticAllocation(
        capacity=2, min_workers=[1, 1], max_workers=[3, 3], gpus_per_worker=[1, 1], min_running_times=[2e-7, 3e-7]
    )
    assert_worth(formulations.solve(instance), 7.5e-7)


def test_small_priorities() -> None:
    instance = RoundAssignment(scale_factors=[1, 1], num_workers=[1], priorities=[[5e-8], [4e-8]])
    assert_worth(formulations.solve(instance), 5e-8)


def test_small_workloads() -> None:
    instance = ArylTwoJob(9, [3e-5, 4e-5], [2, 1], [7, 5])
    best = min(instance.objective(instance.split(gpus)) for gpus in instance.splits)
    assert_worth(formulations.solve(instance), best)


def test_small_throughputs_of_configurations() -> None:
    rng = np.random.default_rng(4)
    table = [[[c, 10.0, 1e-8 * w] for c, w in enumerate(np.sort(rng.uniform(1, 3, 4)), 1)] for _ in range(6)]
    small = SynergyAllocation(
        num_servers=1, server_gpus=6, server_cpus=15.0, server_memory=100.0, gpu_demands=[1] * 6, configs=table,
        fair_throughputs=[rows[0][2] for rows in table],
    )  # fmt: skip
    ordinary = formulations.solve(rescaled(small, ("configs[2]", "fair_throughputs"), 2.0**27))
    assert_worth(formulations.solve(small), ordinary.objective / 2.0**27)


@pytest.mark.parametrize("reallocation", ["any_time", "at_completions"])
@pytest.mark.parametrize("seed", range(5))
def test_work_in_milliseconds(seed: int, reallocation: str) -> None:
    rng = np.random.default_rng(seed)
    curve = [0.0, *np.cumsum(np.sort(rng.uniform(0.2, 1, 4))[::-1])]
    given = {"num_gpus": 4, "throughputs": [curve] * 3, "reallocation": reallocation}
    work = rng.uniform(1, 9, 3)
    seconds = formulations.solve(ElasticSharing(work=work, **given))
    for factor in (1e-3, 1e-9, 1e9):
        assert_worth(formulations.solve(ElasticSharing(work=work * factor, **given)), seconds.objective * factor)


def assert_worth(solution: Solution, value: float) -> None:
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(value, rel=2e-6)
    assert solution.bound == pytest.approx(value, rel=2e-6)


UNITS = [
    pytest.param(problem, measured, id=f"{problem}-{'-'.join(measured.fields)}")
    for problem, entry in sorted(CATALOGUE.items())
    for measured in entry.rescalings
]


@pytest.mark.parametrize(("problem", "measured"), UNITS)
def test_units_of_instances_change_no_verdict(problem: str, measured: Any) -> None:
    for number, instance in enumerate(drawn(problem, len(rounds(1)))):
        base = formulations.solve(instance)
        for k in (-20, 20) if number % 2 else (-30, 30):
            factor = 2.0 ** (k * measured.power)
            solution = formulations.solve(rescaled(instance, measured.fields, 2.0**k))
            assert solution.status == base.status
            assert solution.bound == pytest.approx(base.bound * factor, rel=1e-9, abs=0)
            if base.objective is not None:
                assert solution.objective == pytest.approx(base.objective * factor, rel=1e-9, abs=0)


@pytest.mark.parametrize(("problem", "measured"), UNITS)
def test_decimal_units_of_instances(problem: str, measured: Any) -> None:
    """Factors of 1e-9 and 1e9 round the data, so that values agree to the tolerance of optima."""
    for instance in drawn(problem, len(rounds(1))):
        base = formulations.solve(instance)
        for factor in (1e-9, 1e9):
            solution = formulations.solve(rescaled(instance, measured.fields, factor))
            assert solution.status == base.status
            assert solution.bound == pytest.approx(base.bound * factor**measured.power, rel=2e-6, abs=0)


@pytest.mark.parametrize("k", [-30, 30])
@pytest.mark.parametrize("problem", ["aryl.two_job", "gavel.round_assignment", "gavel.makespan", "synergy.allocation"])
def test_units_of_instances_for_another_solver(problem: str, k: int) -> None:
    for instance in drawn(problem, 2):
        for other in CATALOGUE[problem].rescalings:
            solution = formulations.solve(rescaled(instance, other.fields, 2.0**k), solver="scip")
            base = formulations.solve(instance)
            assert solution.status == base.status
            assert solution.bound == pytest.approx(base.bound * 2.0 ** (k * other.power), rel=2e-6, abs=0)


def drawn(problem: str, count: int) -> list[Instance[Any]]:
    """Some of the strategy's instances, and one that is generated."""
    entry = CATALOGUE[problem]
    found: list[Instance[Any]] = [entry.generate(1, **{entry.size: min(entry.sizes)})]

    @hypothesis.seed(1)
    @settings(
        max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )  # fmt: skip
    @given(strategies.strategy(problem))
    def draw(instance: Instance[Any]) -> None:
        found.append(instance)

    draw()
    return found
