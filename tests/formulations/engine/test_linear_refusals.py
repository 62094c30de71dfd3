"""Models that are refused before they are translated, and the culprit that is named."""

from collections.abc import Callable
from typing import Any

import pyomo.environ as pyo
import pytest
from pyomo.gdp import Disjunct

from formulations import ModelError, translate, weighted_sum

from .small_models import INF, NAN, Model, base, changed, p


def constrained(row: Callable[[Model], Any]) -> Callable[[Model], None]:
    return lambda m: m.add_component("c", pyo.Constraint(expr=row(m)))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (constrained(lambda m: m.x + NAN * m.y <= 1), r"constraint 'c', variable 'y': coefficient nan is not a finite"),
        (constrained(lambda m: m.x + p(NAN) * m.y <= 1), r"constraint 'c': .*nan"),
        (constrained(lambda m: m.x + 0 * p(NAN) * m.y <= 1), r"constraint 'c': .*nan"),
        (constrained(lambda m: m.x + p(NAN) <= 1), r"constraint 'c': .*nan"),
        (constrained(lambda m: m.x <= p(NAN)), r"constraint 'c': .*nan"),
        (constrained(lambda m: weighted_sum([1, NAN], [m.x, m.y]) <= 1), r"constraint 'c', variable 'y': .* nan"),
        (constrained(lambda m: weighted_sum([1, INF], [m.x, m.y]) <= 1), r"constraint 'c', variable 'y': .* inf"),
        (constrained(lambda m: m.x - INF * m.y <= 1), r"constraint 'c', variable 'y': coefficient -inf"),
        (constrained(lambda m: m.x + INF >= 1), r"constraint 'c': constant inf is not a finite number"),
        (constrained(lambda m: m.x + p(-INF) <= 1), r"constraint 'c': constant -inf is not a finite number"),
        (constrained(lambda m: m.x >= INF), r"constraint 'c': .*inf"),
        (constrained(lambda m: m.x <= 1e20), r"constraint 'c': bound 1e\+20 is not a number that the solver can"),
        (constrained(lambda m: m.x >= -1e20), r"constraint 'c': bound -1e\+20 is not a number"),
        (
            constrained(lambda m: 1e15 * m.x + m.y <= 1),
            r"constraint 'c', variable 'x': coefficient 1e\+15 is too large",
        ),
        (constrained(lambda m: m.y - 1e300 * m.x <= 1), r"constraint 'c', variable 'x': .* is too large"),
        (constrained(lambda m: 1e-9 * m.x + m.y <= 1), r"constraint 'c', variable 'x': coefficient 1e-09 is too small"),
        (constrained(lambda m: m.y - 5e-324 * m.x <= 1), r"constraint 'c', variable 'x': .* is too small"),
        (constrained(lambda m: m.x * m.y <= 1), r"constraint 'c': not linear"),
        (constrained(lambda m: m.x**2 <= 1), r"constraint 'c': not linear"),
        (constrained(lambda m: abs(m.x) <= 1), r"constraint 'c': not linear"),
        (constrained(lambda m: pyo.log(m.x) <= 1), r"constraint 'c': not linear"),
        (constrained(lambda m: m.y / m.x <= 1), r"constraint 'c': not linear"),
        (constrained(lambda m: p(None) * m.x <= 1), r"constraint 'c': .*None"),
        (lambda m: m.goal.set_value(NAN * m.x), r"objective, variable 'x': coefficient nan is not a finite number"),
        (lambda m: m.goal.set_value(m.x + INF), r"objective 'goal': constant inf is not a finite number"),
        (
            lambda m: m.goal.set_value(1e15 * m.x + 1e-3 * m.y),
            r"objective, variable 'y': coefficient 0.001 is too small",
        ),
        (lambda m: m.goal.set_value(1e-20 * m.x + m.y), r"objective, variable 'x': coefficient 1e-20 is too small"),
        (lambda m: m.goal.set_value(m.x * m.y), r"objective 'goal': not linear"),
        (lambda m: m.goal.deactivate(), r"must have one active objective, this one has none"),
        (lambda m: m.add_component("g2", pyo.Objective(expr=m.x)), r"one active objective, this one has 'goal', 'g2'"),
        (lambda m: m.x.setlb(NAN), r"variable 'x': bound nan is not a number"),
        (lambda m: m.x.setub(p(NAN)), r"bounds of the variables: .*'x'.* nan|bounds of the variables: Var 'x' .*nan"),
        (lambda m: m.x.setlb(INF), r"variable 'x': bound inf is not a number"),
        (lambda m: m.x.setub(-INF), r"variable 'x': bound -inf is not a number"),
        (lambda m: m.x.setub(1e20), r"variable 'x': bound 1e\+20 is not a number"),
        (lambda m: m.x.setub(10**400), r"bounds of the variables: int too large"),
        (lambda m: setattr(m.x, "fixed", True), r"the fixed value of variable 'x' is not set"),
        (lambda m: m.x.fix(NAN, skip_validation=True), r"variable 'x': bound nan is not a number"),
        (lambda m: m.x.fix(INF, skip_validation=True), r"variable 'x': bound inf is not a number"),
    ],
)
def test_refusals_name_the_culprit(change: Callable[[Model], Any], complaint: str) -> None:
    model = changed(change)
    with pytest.raises(ModelError, match=complaint):
        translate(model)


@pytest.mark.parametrize(
    ("row", "value"),
    [(lambda m: m.x / m.y <= 1, 0), (lambda m: pyo.log(m.y) * m.x <= 1, 0), (lambda m: m.x * m.y, None)],
)
def test_constants_that_cannot_be_computed(row: Callable[[Model], Any], value: Any) -> None:
    model = base()
    model.y.set_value(value)
    model.y.fixed = True
    model.c = pyo.Constraint(expr=row(model) if value is not None else model.x * model.y <= 1)
    with pytest.raises(ModelError, match="constraint 'c': "):
        translate(model)


@pytest.mark.parametrize(
    ("component", "kind"),
    [
        (lambda m: pyo.SOSConstraint(var=m.z, sos=1), "SOSConstraint"),
        (lambda m: pyo.LogicalConstraint(expr=pyo.atleast(1, [m.flag])), "LogicalConstraint"),
        (lambda m: Disjunct(), "Disjunct"),
    ],
)
def test_components_that_are_not_linear(component: Callable[[Model], Any], kind: str) -> None:
    model = base()
    model.z = pyo.Var([0, 1], bounds=(0, 1))
    model.flag = pyo.BooleanVar() if kind == "LogicalConstraint" else pyo.Param(initialize=1)
    model.inner = pyo.Block()
    model.inner.odd = component(model)
    with pytest.raises(ModelError, match=rf"a (BooleanVar|{kind}) is not a linear constraint"):
        translate(model)
    model.inner.odd.deactivate()
    if kind == "SOSConstraint":
        assert translate(model).num_rows == 0


def test_the_smallest_and_largest_numbers_that_are_taken() -> None:
    model = base()
    model.c = pyo.Constraint(expr=9.99e14 * model.x + 1.1e-9 * model.y <= 9.9e19)
    assert translate(model).value.tolist() == [9.99e14, 1.1e-9]


def test_weighted_sum_needs_as_many_coefficients_as_variables() -> None:
    model = base()
    with pytest.raises(ValueError, match="is not compatible with linear_coefs"):
        weighted_sum([1, 2], [model.x])
    with pytest.raises(ValueError, match="is not compatible with linear_coefs"):
        weighted_sum([1], [model.x, model.y])
