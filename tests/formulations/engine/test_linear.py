"""Translation of Pyomo models to arrays, against Pyomo's own evaluation of the same models."""

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyomo.core.expr.numeric_expr import LinearExpression
from pyomo.gdp import Disjunct, Disjunction

from formulations import LinearProgram, ModelError, solve, translate, weighted_sum
from formulations.engine.linear import Columns, csr

from .small_models import INF, NAN, Model, base, changed, p, rows_of

# --- random models --------------------------------------------------------------------------------


def random_model(seed: int) -> Model:
    """A linear model as a user writes it: sums by +, params, expressions, blocks, fixed variables."""
    rng = random.Random(seed)
    model = pyo.ConcreteModel()
    model.I = pyo.RangeSet(0, rng.randint(0, 4))
    model.price = pyo.Param(model.I, initialize={i: rng.randint(-5, 5) for i in model.I}, mutable=True)
    model.top = pyo.Param(initialize=rng.randint(3, 9), mutable=True)
    domains = (pyo.Reals, pyo.NonNegativeReals, pyo.Integers, pyo.Binary, pyo.RangeSet(0, 7), pyo.UnitInterval)
    model.x = pyo.Var(model.I, domain=lambda _, i: domains[i % len(domains)])
    model.y = pyo.Var(bounds=(-model.top, 2 * model.top + 1))
    model.part = pyo.Block([0, 1])
    for block in model.part.values():
        block.z = pyo.Var(bounds=(0, 3))
        block.inner = pyo.Block()
        block.inner.w = pyo.Var(domain=pyo.Integers, bounds=(None, 8))
    variables = [
        *model.x.values(),
        model.y,
        *(b.z for b in model.part.values()),
        *(b.inner.w for b in model.part.values()),
    ]
    for variable in variables:
        if rng.random() < 0.25:
            variable.fix(rng.randint(0, 1))
    model.total = pyo.Expression(expr=sum(model.price[i] * model.x[i] for i in model.I) + model.top)

    def expression() -> Any:
        terms: list[Any] = [rng.randint(-3, 3)]
        for _ in range(rng.randint(0, 6)):
            a, b = rng.choice(variables), rng.choice(variables)
            terms.append(
                rng.choice(
                    [
                        lambda a=a: rng.randint(-4, 4) * a,
                        lambda a=a: a * model.top - a / 4,
                        lambda: 2 * model.total - 1,
                        lambda a=a, b=b: -(a - 3 * b),
                        lambda a=a, b=b: a * b if a.fixed or b.fixed else a + b,
                        lambda a=a: a**2 if a.fixed else a - a,
                        lambda a=a, b=b: weighted_sum([1.5, -2], [a, b]),
                    ]
                )()
            )
        return sum(terms)

    def constraint(*_: Any) -> Any:
        left, right = expression(), expression() if rng.random() < 0.5 else rng.randint(-9, 9)
        relation = rng.choice(["<=", ">=", "==", "range"])
        if isinstance(left, int):
            left = left + model.y
        if relation == "range":
            return pyo.inequality(rng.randint(-9, 0), left, model.top)
        return {"<=": left <= right, ">=": left >= right, "==": left == right}[relation]

    model.limit = pyo.Constraint(model.I, rule=constraint)
    model.single = pyo.Constraint(rule=constraint)
    for block in model.part.values():
        block.inner.rule = pyo.Constraint([5, "a"], rule=constraint)
        if rng.random() < 0.2:
            block.deactivate()
    for data in list(model.component_data_objects(pyo.Constraint, active=True)):
        if rng.random() < 0.2:
            data.deactivate()
    model.off = pyo.Objective(expr=model.y)
    model.off.deactivate()
    model.goal = pyo.Objective(expr=expression(), sense=rng.choice([pyo.minimize, pyo.maximize]))
    return model


def assert_same(model: Model, program: LinearProgram, rng: random.Random) -> None:
    """Rows, objective and bounds of the program have Pyomo's values at random points."""
    rows = list(model.component_data_objects(pyo.Constraint, active=True, descend_into=pyo.Block))
    names = program.row_names()
    assert sorted(names) == sorted(data.name.replace("'", "") for data in rows)
    by_name = {data.name.replace("'", ""): data for data in rows}
    for _ in range(3):
        for variable in model.component_data_objects(pyo.Var):
            if not variable.fixed:
                variable.set_value(rng.randint(-20, 20) / 4, skip_validation=True)
        x = np.array([variable.value for variable in program.variables], float)
        activities = program.row_activities(x)
        for row, name in enumerate(names):
            low, body, high = by_name[name].lower, pyo.value(by_name[name].body), by_name[name].upper
            assert activities[row] - program.row_lower[row] == pytest.approx(
                math.inf if low is None else body - pyo.value(low), abs=1e-9
            )
            assert program.row_upper[row] - activities[row] == pytest.approx(
                math.inf if high is None else pyo.value(high) - body, abs=1e-9
            )
        assert program.objective(x) == pytest.approx(pyo.value(model.goal), abs=1e-9)
    for column, variable in enumerate(program.variables):
        low, high = variable.bounds if not variable.fixed else (variable.value, variable.value)
        assert program.col_lower[column] == (-math.inf if low is None else low)
        assert program.col_upper[column] == (math.inf if high is None else high)
        assert program.integer[column] == (not variable.fixed and variable.is_integer())


@pytest.mark.parametrize("seed", range(120))
def test_translation_equals_pyomos_evaluation(seed: int) -> None:
    model = random_model(seed)
    before = [(v, v.value, v.stale) for v in model.component_data_objects(pyo.Var)]
    program = translate(model)
    assert all(v.value == value and v.stale == stale for v, value, stale in before)
    assert program.sense == ("min" if model.goal.sense == pyo.minimize else "max")
    for row in range(program.num_rows):
        columns = program.index[program.indptr[row] : program.indptr[row + 1]]
        assert len(set(columns.tolist())) == len(columns)
    assert (program.value != 0).all()
    assert_same(model, program, random.Random(seed))


# --- single features ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (lambda m: m.x <= 4, ({"x": 1}, -INF, 4)),
        (lambda m: m.x + m.y >= 1 - m.y, ({"x": -1, "y": -2}, -INF, -1)),
        (lambda m: m.x == 2 * m.y + 3, ({"x": 1, "y": -2}, 3, 3)),
        (lambda m: pyo.inequality(1, m.x + 2 * m.y - 3, 7), ({"x": 1, "y": 2}, 4, 10)),
        (lambda m: (p(3), m.x + p(1), p(2)), ({"x": 1}, 2, 1)),
        (lambda m: (None, m.x, 3), ({"x": 1}, -INF, 3)),
        (lambda m: m.x + m.x + m.x <= 6, ({"x": 3}, -INF, 6)),
        (lambda m: weighted_sum([1, 2, 1], [m.x, m.y, m.x]) <= 6, ({"x": 2, "y": 2}, -INF, 6)),
        (lambda m: weighted_sum([0, 2], [m.x, m.y]) <= 6, ({"y": 2}, -INF, 6)),
        (lambda m: m.x - m.x + m.y <= 6, ({"y": 1}, -INF, 6)),
        (lambda m: m.x - m.x >= 3, ({}, 3, INF)),
        (lambda m: p(3) <= p(2), ({}, -INF, -1)),
        (lambda m: (0, m.x - m.x, 3), ({}, 0, 3)),
        (lambda m: m.x <= INF, ({"x": 1}, -INF, INF)),
        (lambda m: p(0) * m.x + m.y <= 1, ({"y": 1}, -INF, 1)),
        (
            lambda m: LinearExpression(constant=p(2), linear_coefs=[1, 3], linear_vars=[m.x, m.y]) <= 5,
            ({"x": 1, "y": 3}, -INF, 3),
        ),
    ],
)
def test_forms_of_a_row(row: Callable[[Model], Any], expected: Any) -> None:
    model = base()
    model.c = pyo.Constraint(expr=row(model))
    coefficients, lower, upper = rows_of(translate(model))[0]
    if set(coefficients) == {"x", "y"} and coefficients["x"] * expected[0]["x"] < 0:
        # Pyomo is free in which side of a relation it makes the body.
        coefficients, lower, upper = {name: -c for name, c in coefficients.items()}, -upper, -lower
    assert (coefficients, lower, upper) == expected


@pytest.mark.parametrize(
    ("domain", "expected"),
    [
        (pyo.Reals, (-INF, INF, False)),
        (pyo.NonNegativeReals, (0, INF, False)),
        (pyo.NegativeReals, (-INF, 0, False)),
        (pyo.UnitInterval, (0, 1, False)),
        (pyo.Integers, (-INF, INF, True)),
        (pyo.PositiveIntegers, (1, INF, True)),
        (pyo.NegativeIntegers, (-INF, -1, True)),
        (pyo.Binary, (0, 1, True)),
        (pyo.Boolean, (0, 1, True)),
        (pyo.RangeSet(-2, 3), (-2, 3, True)),
        (pyo.RangeSet(0, 10.5), (0, 10, True)),
        (pyo.RangeSet(5, 1, -1), (1, 5, True)),
        (pyo.RangeSet(0, 6, 0), (0, 6, False)),
        (pyo.Set(initialize=[2, 0, 1]), (0, 2, True)),
        (pyo.Set(initialize=[5]), (5, 5, False)),
        (pyo.Integers & pyo.RangeSet(0, 5, 0), (0, 5, True)),
    ],
)
def test_domains(domain: Any, expected: tuple[float, float, bool]) -> None:
    model = changed(lambda m: m.add_component("z", pyo.Var(domain=domain)))
    program = translate(model)
    assert (program.col_lower[2], program.col_upper[2], program.integer[2]) == expected
    assert program.integer.tolist()[:2] == [False, False]


@pytest.mark.parametrize(
    "domain",
    [
        pyo.Any,
        pyo.RangeSet(0, 6, 2),
        pyo.RangeSet(0.5, 3.5),
        pyo.RangeSet(0.5, None),
        pyo.RangeSet(1, 0),
        pyo.Set(initialize=[]),
        pyo.Set(initialize=[0, 3, 4]),
        pyo.Set(initialize=[0.5, 1.5]),
        pyo.Set(initialize=["a"]),
        pyo.Binary | pyo.RangeSet(5, 6),
        pyo.Integers - pyo.Set(initialize=[0]),
    ],
)
def test_domains_that_are_neither_continuous_nor_whole(domain: Any) -> None:
    model = changed(lambda m: m.add_component("z", pyo.Var(domain=domain)))
    with pytest.raises(ModelError, match=r"^variable 'z': domain .* is neither continuous nor whole"):
        translate(model)


def test_bounds_are_cut_to_the_domain() -> None:
    model = base()
    model.z = pyo.Var([0, 1, 2], domain=pyo.Binary, bounds=lambda _, i: [(-3, 5), (None, p(0) + 0.5), (p(1), None)][i])
    program = translate(model)
    assert list(zip(program.col_lower, program.col_upper, strict=True))[2:] == [(0, 1), (0, 0.5), (1, 1)]


def test_a_fixed_variable_is_a_constant_whatever_its_domain_and_bounds() -> None:
    model = base()
    model.b = pyo.Var(domain=pyo.Binary)
    model.b.fix(0.5, skip_validation=True)
    model.x.fix(12, skip_validation=True)
    model.c = pyo.Constraint(expr=model.x + 3 * model.b + model.y <= 20)
    program = translate(model)
    assert not program.is_mip
    solution = solve(model)
    assert solution.status == "optimal"
    assert solution.objective == 12 + 6.5
    assert (model.b.value, model.x.value, model.y.value) == (0.5, 12, None)


def test_deactivated_blocks_are_left_out_with_their_variables() -> None:
    model = base()
    model.off = pyo.Block()
    model.off.crossed = pyo.Var(bounds=(2, 1))
    model.off.unset = pyo.Var()
    model.off.unset.fixed = True
    model.off.used = pyo.Var(bounds=(0, 1))
    model.off.c = pyo.Constraint(expr=model.x <= 1)
    model.off.flag = pyo.BooleanVar()
    model.off.deactivate()
    model.c = pyo.Constraint(expr=model.x + model.off.used <= 3)
    program = translate(model)
    assert [v.name for v in program.variables] == ["x", "y", "off.used"]
    assert program.row_names() == ["c"]


def test_variables_of_another_model_and_variables_in_the_objective_alone() -> None:
    other = pyo.ConcreteModel()
    other.z = pyo.Var(bounds=(0, 4))
    model = base()
    model.c = pyo.Constraint(expr=other.z + model.x <= 3)
    solution = solve(model)
    assert solution.objective == 13
    assert [v.name for v in translate(model).variables] == ["x", "y", "z"]


def test_references_do_not_double_what_they_show() -> None:
    model = base()
    model.c = pyo.Constraint([0, 1], rule=lambda m, i: m.x <= i + 3)
    model.all_c = pyo.Reference(model.c[:])
    model.all_x = pyo.Reference(model.x)
    model.goals = pyo.Reference(model.goal)
    program = translate(model)
    assert program.row_names() == ["c[0]", "c[1]"]
    assert program.num_cols == 2


def test_references_to_constraints_elsewhere_are_rows() -> None:
    other = pyo.ConcreteModel()
    other.z = pyo.Var(bounds=(0, 4))
    other.c = pyo.Constraint([0, 1], rule=lambda m, i: m.z <= i + 1)
    model = base()
    model.elsewhere = pyo.Reference(other.c[:])
    model.again = pyo.Reference(other.c[0])
    assert rows_of(translate(model)) == [({"z": 1.0}, -INF, 1.0), ({"z": 1.0}, -INF, 2.0)]


def test_components_that_are_linear_after_a_transformation() -> None:
    model = base()
    model.left, model.right = Disjunct(), Disjunct()
    model.left.c = pyo.Constraint(expr=model.x + model.y <= 5)
    model.right.c = pyo.Constraint(expr=model.x <= 2)
    model.either = Disjunction(expr=[model.left, model.right])
    with pytest.raises(ModelError, match="'left': a Disjunct is not a linear constraint"):
        translate(model)
    pyo.TransformationFactory("gdp.bigm").apply_to(model)
    assert solve(model).objective == 12


# --- arrays ---------------------------------------------------------------------------------------


@given(st.integers(0, 10**6))
def test_products_and_infeasibility_by_plain_loops(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(0, 5)), int(rng.integers(1, 5))
    dense = rng.integers(-2, 3, (m, n)).astype(float)
    i, j = np.nonzero(dense)
    indptr, index, value = csr(i, j, dense[i, j], m)
    lower, upper = rng.integers(-5, 1, m).astype(float), rng.integers(0, 6, m).astype(float)
    program = LinearProgram(
        "min",
        1.0,
        np.arange(n, dtype=float),
        np.zeros(n),
        np.ones(n),
        np.zeros(n, bool),
        indptr,
        index,
        value,
        lower,
        upper,
    )
    x, y = rng.integers(-4, 5, n).astype(float), rng.integers(-4, 5, m).astype(float)
    assert program.row_activities(x).tolist() == [sum(dense[r, c] * x[c] for c in range(n)) for r in range(m)]
    assert program.column_products(y).tolist() == [sum(dense[r, c] * y[r] for r in range(m)) for c in range(n)]
    worst = max(0.0, *(-x), *(x - 1))
    for r in range(m):
        activity = sum(dense[r, c] * x[c] for c in range(n))
        worst = max(worst, (lower[r] - activity) / max(1, abs(lower[r])), (activity - upper[r]) / max(1, abs(upper[r])))
    assert program.infeasibility(x) == pytest.approx(worst)
    added = Columns(
        np.array([7.0]),
        np.zeros(1),
        np.ones(1),
        np.array([0, m], np.int32),
        np.arange(m, dtype=np.int32),
        np.arange(1.0, m + 1),
    )
    wider = program.with_columns(added)
    assert wider.row_activities(np.append(x, 2.0)).tolist() == [a + 2 * (r + 1) for r, a in enumerate(dense @ x)]
    assert wider.column_name(n) == f"column {n}"


@pytest.mark.parametrize("x", [[NAN, 0.0], [INF, 0.0], [1e308, 1e308]])
def test_points_that_are_no_numbers_are_infeasible(x: list[float]) -> None:
    model = base()
    model.c = pyo.Constraint(expr=100 * model.x + 100 * model.y >= 0)
    with np.errstate(over="ignore"):
        assert translate(model).infeasibility(np.array(x)) == INF
