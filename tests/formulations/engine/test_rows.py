"""Blocks of rows: the same as ordinary constraints, open to change, and refused where malformed."""

import copy
import io
import pickle
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.repn.plugins.lp_writer import LPWriter

from formulations import ModelError, Rows, solve, translate, weighted_sum
from formulations.engine.linear import csr

from .small_models import INF, NAN, Model, base, rows_of


def block_model(seed: int, *, ordinary: bool = False) -> Model:
    """The same model with a block of rows, or with an ordinary constraint for each row."""
    rng = np.random.default_rng(seed)
    n, count = int(rng.integers(1, 6)), int(rng.integers(1, 7))
    model = pyo.ConcreteModel()
    model.COLUMNS = pyo.RangeSet(0, n - 1)
    model.ROWS = pyo.Set(initialize=[(i, "a") for i in range(count)], dimen=2)
    model.x = pyo.Var(model.COLUMNS, bounds=(0, 9))
    variables = list(model.x.values())
    dense = rng.integers(-3, 4, (count, n)).astype(float)
    lower = np.where(rng.random(count) < 0.5, -np.inf, rng.integers(-9, 1, count).astype(float))
    upper = np.where(rng.random(count) < 0.5, np.inf, lower + rng.integers(0, 3, count))
    upper = np.where(np.isinf(lower), np.where(rng.random(count) < 0.7, rng.integers(0, 9, count), np.inf), upper)
    i, j = np.nonzero(dense)
    indptr, columns, values = csr(i, j, dense[i, j], count)
    if ordinary:

        def rule(model: Model, row: int, _: str) -> Any:
            span = slice(indptr[row], indptr[row + 1])
            body = weighted_sum(values[span], [variables[k] for k in columns[span]])
            if lower[row] == upper[row]:
                return body == lower[row]
            if np.isinf(lower[row]):
                return body <= upper[row]
            return body >= lower[row] if np.isinf(upper[row]) else (lower[row], body, upper[row])

        model.rows = pyo.Constraint(model.ROWS, rule=rule)
    else:
        model.rows = Rows(model.ROWS, (indptr, columns, values), variables, lower=lower, upper=upper)
    model.extra = pyo.Constraint(expr=pyo.quicksum(variables) <= 5 * n)
    model.goal = pyo.Objective(expr=pyo.quicksum(variables))
    return model


def arrays(model: Model) -> tuple[Any, ...]:
    program = translate(model)
    return (rows_of(program), program.row_names(), program.cost.tolist(), program.col_upper.tolist())


def lp_file(model: Model) -> str:
    stream = io.StringIO()
    LPWriter().write(model, stream)
    return stream.getvalue()


@pytest.mark.parametrize("seed", range(30))
def test_a_block_of_rows_is_the_same_as_ordinary_constraints(seed: int) -> None:
    model, twin = block_model(seed), block_model(seed, ordinary=True)
    assert model.rows.arrays is not None
    assert arrays(model) == arrays(twin)
    assert model.rows.arrays is not None, "translation must not make ordinary constraints"
    for made in (lambda m: pickle.loads(pickle.dumps(m)), lambda m: m.clone(), copy.deepcopy):
        again = made(block_model(seed))
        assert arrays(again) == arrays(twin)
        again.x[0].setub(1)
        assert arrays(again) != arrays(twin), "the copy must hold its own variables"
    assert lp_file(model) == lp_file(twin)
    assert model.rows.arrays is None
    assert arrays(model) == arrays(twin)
    assert len(model.rows) == len(twin.rows)
    assert list(model.rows.keys()) == list(twin.rows.keys())


@pytest.mark.parametrize("seed", range(10))
def test_users_may_change_a_block_of_rows(seed: int) -> None:
    model, twin = block_model(seed), block_model(seed, ordinary=True)
    for m in (model, twin):
        m.rows[0, "a"].deactivate()
        m.x[0].fix(2)
    assert arrays(model) == arrays(twin)
    assert "rows[0,a]" not in translate(model).row_names()
    for change in ("deactivate", "activate", "clear"):
        for m in (model, twin):
            getattr(m.rows, change)()
        assert arrays(model) == arrays(twin)
    for m in (model, twin):
        m.del_component(m.rows)
    assert arrays(model) == arrays(twin)


def test_clearing_a_block_of_rows_that_nobody_has_looked_at() -> None:
    model = block_model(0)
    model.rows.clear()
    assert translate(model).row_names() == ["extra"]


def test_a_block_of_rows_can_be_told_apart_by_member() -> None:
    model = block_model(3)
    assert (0, "a") in model.rows
    assert (99, "a") not in model.rows
    with pytest.raises(KeyError):
        model.rows[99, "a"]


def test_blocks_share_a_list_that_grows() -> None:
    model = pyo.ConcreteModel()
    model.x = pyo.Var([0, 1], bounds=(0, 1))
    variables = list(model.x.values())
    one = np.array([0, 2]), np.array([0, 1]), np.array([1.0, 1.0])
    model.first = Rows(pyo.Set(initialize=[0]), one, variables, upper=1)
    model.level = pyo.Var()
    variables.append(model.level)
    model.second = Rows([7], (np.array([0, 2]), np.array([0, 2]), np.array([1.0, -1.0])), variables, lower=0)
    model.goal = pyo.Objective(expr=model.level, sense=pyo.maximize)
    assert rows_of(translate(model)) == [
        ({"x[0]": 1.0, "x[1]": 1.0}, -INF, 1.0),
        ({"x[0]": 1.0, "level": -1.0}, 0.0, INF),
    ]
    assert solve(model).objective == 1


def test_entries_of_one_column_add_up() -> None:
    model = base()
    twice = [model.x, model.y, model.x]
    model.c = Rows(
        [0, 1], (np.array([0, 3, 5]), np.array([0, 1, 2, 1, 1]), np.array([1.0, 2.0, 3.0, 4.0, -4.0])), twice, upper=8
    )
    assert rows_of(translate(model)) == [({"x": 4.0, "y": 2.0}, -INF, 8.0), ({}, -INF, 8.0)]
    assert solve(model).objective == 4


@pytest.mark.parametrize(
    ("indptr", "columns", "values", "complaint"),
    [
        ([0, 1, 2], [-1, 0], [1, 2], "columns outside of its 2 variables"),
        ([0, 1, 2], [2, 0], [1, 2], "columns outside of its 2 variables"),
        ([0, 1, 3], [1, 0], [1, 2], "not a matrix in compressed sparse rows"),
        ([0, 1, 1], [1, 0], [1, 2], "not a matrix in compressed sparse rows"),
        ([1, 1, 2], [1, 0], [1, 2], "not a matrix in compressed sparse rows"),
        ([0, 2, 1], [1], [1], "not a matrix in compressed sparse rows"),
        ([0, 1, 2], [1, 0], [1, 2, 3], "not a matrix in compressed sparse rows"),
        ([], [], [], "not a matrix in compressed sparse rows"),
    ],
)
def test_malformed_blocks_of_rows(indptr: list[int], columns: list[int], values: list[float], complaint: str) -> None:
    model = base()
    with pytest.raises(ModelError, match=complaint):
        Rows([0, 1], (np.array(indptr), np.array(columns), np.array(values, float)), [model.x, model.y])


def test_a_block_of_rows_fits_its_index_set() -> None:
    model = base()
    with pytest.raises(ModelError, match="'c': 1 rows for an index set of 2 members"):
        model.c = Rows([0, 1], (np.array([0, 1]), np.array([0]), np.array([1.0])), [model.x])


@pytest.mark.parametrize("number", [NAN, INF])
def test_refusals_name_the_row_of_a_block(number: float) -> None:
    model = base()
    model.c = Rows(["a", "b"], (np.array([0, 1, 2]), np.array([0, 1]), np.array([1.0, number])), [model.x, model.y])
    with pytest.raises(ModelError, match=r"constraint 'c\[b\]', variable 'y': coefficient"):
        translate(model)
    model.c.clear()
    model.d = Rows(["a", "b"], (np.array([0, 1, 2]), np.array([0, 1]), np.ones(2)), [model.x, model.y], upper=[1, NAN])
    with pytest.raises(ModelError, match=r"constraint 'd\[b\]': bound nan"):
        translate(model)
