"""Solvers that lie or fail: what they say is checked before it is believed."""

import logging
import math
from collections.abc import Callable
from typing import Any

import highspy
import pyomo.environ as pyo
import pytest

from formulations import SolverError, solve, translate
from formulations.engine import external

from .small_models import INF, base, best_subset, knapsack, with_row


class Lying:
    """A solver's answer with one part replaced."""

    def __init__(self, truth: Any, **lies: Any) -> None:
        self._truth, self._lies = truth, lies

    def __getattr__(self, name: str) -> Any:
        return self._lies.get(name, getattr(self._truth, name))


def lie(monkeypatch: pytest.MonkeyPatch, method: str, change: Callable[[Any], Any]) -> None:
    honest = getattr(highspy.Highs, method)
    monkeypatch.setattr(highspy.Highs, method, lambda self, *given: change(honest(self, *given)))


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


@pytest.mark.parametrize(
    ("claim", "why"), [("kInfeasible", "no prices prove it"), ("kUnbounded", "every variable is bounded")]
)
def test_a_false_claim_without_an_optimum_is_not_believed(
    monkeypatch: pytest.MonkeyPatch, claim: str, why: str
) -> None:
    lie(monkeypatch, "getModelStatus", lambda _: getattr(highspy.HighsModelStatus, claim))
    solution = solve(with_row(lambda m: m.x + 2 * m.y <= 8))
    assert (solution.status, solution.bound) == ("unknown", INF)
    assert why in solution.message


def test_states_without_meaning_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    lie(monkeypatch, "getModelStatus", lambda _: highspy.HighsModelStatus.kUnknown)
    solution = solve(with_row(lambda m: m.x + 2 * m.y <= 8))
    assert (solution.status, solution.objective, solution.bound) == ("feasible", 8.0, INF)
    lie(monkeypatch, "getInfoValue", lambda told: (told[0], 1))
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
