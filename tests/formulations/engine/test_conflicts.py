"""Explanations of infeasible models, against exact arithmetic over all subsets of the rows."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

import formulations
from formulations import Explanation, ModelError, Rows, explain, weighted_sum
from formulations.engine.conflicts import explain as explain_directly
from instances.aryl.reclaim import Reclaim
from instances.gavel.max_min_fairness import three_jobs

Model = Any
Inequality = tuple[list[Fraction], Fraction]
"""Coefficients a and limit b of a x <= b."""


def has_point(rows: list[Inequality], n: int) -> bool:
    """Whether a x <= b has a real solution: Fourier and Motzkin's elimination, exactly."""
    for variable in range(n):
        above = [row for row in rows if row[0][variable] > 0]
        below = [row for row in rows if row[0][variable] < 0]
        rows = [row for row in rows if row[0][variable] == 0]
        for (a, b), (c, d) in itertools.product(above, below):
            p, q = 1 / a[variable], -1 / c[variable]
            rows.append(([p * x + q * y for x, y in zip(a, c, strict=True)], p * b + q * d))
    return all(b >= 0 for _, b in rows)


def feasible(data: "Data", kept: tuple[int, ...]) -> bool:
    """Whether the kept rows have a common point within the bounds, trying every whole value."""
    n = len(data.bounds)
    rows: list[Inequality] = []
    for i in kept:
        coefficients, lower, upper = data.rows[i]
        if upper is not None:
            rows.append(([Fraction(c) for c in coefficients], Fraction(upper)))
        if lower is not None:
            rows.append(([Fraction(-c) for c in coefficients], Fraction(-lower)))
    whole = [j for j in range(n) if data.integer[j]]
    real = [j for j in range(n) if not data.integer[j]]
    box: list[Inequality] = []
    for position, j in enumerate(real):
        unit = [Fraction(int(k == position)) for k in range(len(real))]
        box += [(unit, Fraction(data.bounds[j][1])), ([-u for u in unit], Fraction(-data.bounds[j][0]))]
    for values in itertools.product(*(range(data.bounds[j][0], data.bounds[j][1] + 1) for j in whole)):
        rest = [([a[j] for j in real], b - sum(a[j] * v for j, v in zip(whole, values, strict=True))) for a, b in rows]
        if has_point(rest + box, len(real)):
            return True
    return False


class Data:
    """A small random model with rows that often conflict."""

    def __init__(self, seed: int, *, whole: bool) -> None:
        rng = np.random.default_rng(seed)
        n, m = int(rng.integers(1, 5)), int(rng.integers(2, 6))
        self.bounds = [
            (int(low), int(low + width))
            for low, width in zip(rng.integers(-2, 1, n), rng.integers(0, 4, n), strict=True)
        ]
        self.integer = [whole and bool(rng.random() < 0.7) for _ in range(n)]
        self.rows: list[tuple[list[int], int | None, int | None]] = []
        for _ in range(m):
            coefficients = (rng.integers(-3, 4, n) * (rng.random(n) < 0.7)).tolist()
            if not any(coefficients):
                coefficients[0] = 2
            limit, kind = int(rng.integers(-4, 6)), rng.integers(0, 4)
            self.rows.append((coefficients, *[(None, limit), (limit, None), (limit, limit), (limit, limit + 1)][kind]))

    def model(self) -> Model:
        model = pyo.ConcreteModel()
        model.x = pyo.Var(range(len(self.bounds)), bounds=lambda _, j: self.bounds[j])
        for j, whole in enumerate(self.integer):
            model.x[j].domain = pyo.Integers if whole else pyo.Reals

        def rule(model: Model, i: int) -> Any:
            coefficients, lower, upper = self.rows[i]
            body = weighted_sum(coefficients, model.x.values())
            return body == lower if lower == upper else (lower, body, upper)

        model.row = pyo.Constraint(range(len(self.rows)), rule=rule)
        model.goal = pyo.Objective(expr=sum(model.x.values()), sense=pyo.maximize)
        return model


@pytest.mark.parametrize("whole", [False, True])
def test_conflicts_are_irreducible(whole: bool) -> None:
    conflicts, sizes = 0, set()
    for seed in range(120):
        data = Data(seed, whole=whole)
        everything = tuple(range(len(data.rows)))
        explanation = explain(data.model())
        assert explanation.feasible == feasible(data, everything), seed
        if explanation.feasible:
            assert explanation == Explanation(True)
            continue
        conflicts += 1
        assert explanation.variables == ()
        rows = tuple(int(name.removeprefix("row[").removesuffix("]")) for name in explanation.constraints)
        sizes.add(len(rows))
        assert rows, seed
        assert not feasible(data, rows), seed
        for row in rows:
            assert feasible(data, tuple(r for r in rows if r != row)), seed
        assert len(explanation.rows) == len(rows)
        for name, text in zip(explanation.constraints, explanation.rows, strict=True):
            assert text.startswith(f"{name}: ")
            assert text in str(explanation)
    assert conflicts >= 30
    assert sizes >= {1, 2, 3}


def base() -> Model:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, 10))
    model.y = pyo.Var(bounds=(0, 10))
    model.goal = pyo.Objective(expr=model.x)
    return model


def test_rows_are_written_out() -> None:
    model = base()
    model.demand = pyo.Constraint(expr=2 * model.x - model.y >= 21)
    model.link = pyo.Constraint(expr=pyo.inequality(1, model.y - model.x, 2))
    model.idle = pyo.Constraint(expr=model.x + model.y <= 20)
    explanation = explain(model)
    assert explanation == Explanation(False, ("demand",), explanation.rows)
    assert explanation.rows[0] in ("demand: 21 <= 2 x - y", "demand: - 2 x + y <= -21")
    assert str(explanation).startswith("infeasible: these constraints cannot hold together\n  demand: ")
    model.demand.set_value(model.x - model.y == 3)
    explanation = explain(model)
    assert explanation.constraints == ("demand", "link")
    assert explanation.rows == ("demand: x - y == 3", "link: 1 <= y - x <= 2")


def test_long_rows_are_cut() -> None:
    model = pyo.ConcreteModel()
    model.z = pyo.Var(range(9), bounds=(0, 1))
    model.sum = pyo.Constraint(expr=pyo.quicksum(model.z.values()) >= 10)
    model.goal = pyo.Objective(expr=0.0)
    assert explain(model).rows == ("sum: 10 <= z[0] + z[1] + z[2] + z[3] + z[4] + ... (4 more)",)


def test_crossed_bounds_and_variables_without_a_whole_value() -> None:
    model = base()
    model.x.setlb(11)
    model.n = pyo.Var([0, 1, 2], domain=pyo.Integers, bounds=lambda _, i: [(0.2, 0.8), (0.2, 1), (None, 3)][i])
    explanation = explain(model)
    assert explanation == Explanation(False, variables=("x", "n[0]"))
    assert str(explanation) == "infeasible: no value lies between the bounds of x, n[0]"
    model.x.setlb(0)
    model.n[0].fix(0.5, skip_validation=True)
    assert explain(model) == Explanation(True)


def test_a_row_with_crossed_limits_conflicts_with_itself() -> None:
    model = base()
    model.low = pyo.Param(initialize=3, mutable=True)
    model.c = pyo.Constraint(expr=(model.low, model.x, 2))
    model.d = pyo.Constraint(expr=model.y >= 1)
    explanation = explain(model)
    assert explanation.constraints == ("c",)
    assert explanation.rows == ("c: 3 <= x <= 2",)


def test_rows_without_variables() -> None:
    model = base()
    model.size = pyo.Param(initialize=3, mutable=True)
    model.c = pyo.Constraint(expr=model.size <= 2)
    assert explain(model).constraints == ("c",)
    model.size.set_value(1)
    assert explain(model).feasible


def test_a_model_without_variables() -> None:
    model = pyo.ConcreteModel()
    model.size = pyo.Param(initialize=3, mutable=True)
    model.c = pyo.Constraint(expr=model.size <= 2)
    model.goal = pyo.Objective(expr=1.0)
    assert explain(model).constraints == ("c",)
    model.c.deactivate()
    assert explain(model) == Explanation(True)


def test_fixed_variables_are_constants() -> None:
    model = base()
    model.c = pyo.Constraint(expr=model.x + model.y >= 12)
    model.x.fix(1)
    assert explain(model).constraints == ("c",)
    model.x.unfix()
    assert explain(model).feasible


def test_small_conflicts_far_from_the_scale_of_the_rows() -> None:
    model = base()
    model.x.setub(None)
    model.a = pyo.Constraint(expr=1e6 * model.x >= 1e6 + 10)
    model.b = pyo.Constraint(expr=model.x <= 1)
    model.c = pyo.Constraint(expr=1e-3 * model.x + model.y <= 1e4)
    assert explain(model).constraints == ("a", "b")


def test_unbounded_models_are_feasible() -> None:
    model = base()
    model.x.setub(None)
    model.goal.sense = pyo.maximize
    assert explain(model).feasible


def test_blocks_of_rows_are_named_by_member() -> None:
    model = base()
    pair = [model.x, model.y]
    model.c = Rows(
        ["a", "b"],
        (np.array([0, 1, 3]), np.array([0, 0, 1]), np.array([1.0, 1.0, 1.0])),
        pair,
        lower=[-math.inf, 15],
        upper=[4, math.inf],
    )
    assert explain(model).constraints == ("c[a]", "c[b]")


def test_instances_are_explained_through_their_models() -> None:
    assert explain(three_jobs()).feasible
    instance = Reclaim(hosts=np.ones((1, 3), bool), gpus=np.ones((1, 3), int), demand=2)
    model = formulations.build(instance)
    before = [(v.value, v.stale) for v in model.component_data_objects(pyo.Var)]
    assert explain(model).feasible
    model.more = pyo.Constraint(expr=model.returned[0] + model.returned[1] + model.returned[2] >= 3)
    assert set(explain(model).constraints) == {"demand", "more"}
    assert [(v.value, v.stale) for v in model.component_data_objects(pyo.Var)] == before
    assert explain_directly is explain


def test_models_that_cannot_be_translated() -> None:
    model = base()
    model.c = pyo.Constraint(expr=model.x * model.y <= 1)
    with pytest.raises(ModelError, match="constraint 'c': not linear"):
        explain(model)


def test_when_time_is_over_the_rows_found_so_far_are_told() -> None:
    model = formulations.build(Reclaim(hosts=[[True, True], [False, True]], gpus=[[1, 1], [0, 1]], demand=1))
    model.more = pyo.Constraint(expr=model.returned[0] + model.returned[1] >= 2)
    hurried = explain(model, time_limit=1e-9)
    assert not hurried.feasible
    assert not hurried.irreducible
    assert {"demand", "more"} <= set(hurried.constraints)
    assert "perhaps not all of them are needed" in str(hurried)
    patient = explain(model, time_limit=60)
    assert patient.irreducible
    assert set(patient.constraints) == {"demand", "more"}
    assert "perhaps" not in str(patient)
