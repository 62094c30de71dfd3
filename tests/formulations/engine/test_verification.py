"""Second ways: fractions against enumeration, and what becomes of a solution that is wrong."""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

import formulations
from benchmarks import torture
from formulations import Solution, Verification, translate, verify
from formulations.engine import verification
from formulations.engine.exact import exact_bound, exact_optimum
from formulations.engine.linear import LinearProgram
from instances.gavel.hierarchical_fairness import (
    HierarchicalAllocation,
    HierarchicalFairness,
    four_jobs,
    two_entities,
)
from instances.gavel.max_min_fairness import MaxMinFairness
from instances.gavel.sharing import Allocation
from instances.reference import PROBLEMS
from validation.catalogue import CATALOGUE
from validation.kinds.study.cases import generate

from ...files import COLLECTED


def random_model(seed: int) -> pyo.ConcreteModel:
    """A linear program of two or three variables, some without an upper bound, in numbers of two digits."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 4)), int(rng.integers(2, 5))
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(n), bounds=lambda _, j: (0, None if rng.random() < 0.5 else float(rng.integers(1, 9)) / 10))
    model.rows = pyo.ConstraintList()
    for _ in range(m):
        model.rows.add(sum(float(rng.integers(0, 99)) / 10 * model.x[j] for j in range(n)) + model.x[0] <= 9.7)
    model.rows.add(sum(model.x[j] for j in range(n)) <= 4.1)
    cost = sum(float(rng.integers(-50, 90)) / 7 * model.x[j] for j in range(n))
    model.cost = pyo.Objective(expr=cost, sense=pyo.maximize if rng.random() < 0.5 else pyo.minimize)
    return model


def by_enumeration(program: LinearProgram) -> Fraction:
    """The optimum as the best of all points in which as many limits as there are columns meet."""
    n = program.num_cols
    matrix = [[Fraction(0)] * n for _ in range(program.num_rows)]
    for i in range(program.num_rows):
        for entry in range(program.indptr[i], program.indptr[i + 1]):
            matrix[i][program.index[entry]] += Fraction(float(program.value[entry]))
    unit = [[Fraction(int(j == k)) for k in range(n)] for j in range(n)]
    planes = []
    for rows, lower, upper in (
        (matrix, program.row_lower, program.row_upper),
        (unit, program.col_lower, program.col_upper),
    ):
        for row, *ends in zip(rows, lower.tolist(), upper.tolist(), strict=True):
            planes += [
                (row, Fraction(end), sign) for end, sign in zip(ends, (-1, 1), strict=True) if math.isfinite(end)
            ]
    cost = [Fraction(c) for c in program.cost.tolist()]
    values = []
    for chosen in itertools.combinations(planes, n):
        point = cramer([row for row, _, _ in chosen], [limit for _, limit, _ in chosen])
        if point is not None and all(
            sign * (sum(a * x for a, x in zip(row, point, strict=True)) - limit) <= 0 for row, limit, sign in planes
        ):
            values.append(Fraction(program.offset) + sum(c * x for c, x in zip(cost, point, strict=True)))
    return (min if program.sense == "min" else max)(values)


def determinant(rows: list[list[Fraction]]) -> Fraction:
    if len(rows) == 1:
        return rows[0][0]
    first, *rest = rows
    return sum(
        ((-1) ** j * a * determinant([row[:j] + row[j + 1 :] for row in rest]) for j, a in enumerate(first)), Fraction()
    )


def cramer(rows: list[list[Fraction]], right: list[Fraction]) -> list[Fraction] | None:
    whole = determinant(rows)
    if not whole:
        return None
    replaced = [
        [[right[i] if k == j else a for k, a in enumerate(row)] for i, row in enumerate(rows)] for j in range(len(rows))
    ]
    return [determinant(one) / whole for one in replaced]


@pytest.mark.parametrize("seed", range(40))
def test_the_exact_optimum_is_that_of_enumeration(seed: int) -> None:
    program = translate(random_model(seed))
    found = exact_optimum(program)
    assert found.proven
    assert found.bound == by_enumeration(program)


@pytest.mark.parametrize("seed", range(40))
def test_prices_that_are_a_little_wrong_prove_a_little_less(seed: int) -> None:
    program = translate(random_model(seed))
    solution = formulations.solve(random_model(seed))
    assert solution.certificate is not None
    rng = np.random.default_rng(seed)
    true, sign = by_enumeration(program), 1 if program.sense == "min" else -1
    for noise in (0.0, 1e-9, 1e-3, 10.0):
        prices = solution.certificate.row_duals * (1 + noise * rng.uniform(-1, 1, program.num_rows))
        bound = exact_bound(program, prices)
        assert bound is not None
        assert sign * bound <= sign * true
        if noise <= 1e-9:
            assert float(bound) == pytest.approx(float(true), rel=1e-7, abs=1e-9)


def test_prices_prove_nothing_of_a_program_without_an_end() -> None:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(2), within=pyo.NonNegativeReals)
    model.row = pyo.Constraint(expr=model.x[0] - model.x[1] <= 1)
    model.cost = pyo.Objective(expr=model.x[0], sense=pyo.maximize)
    assert exact_bound(translate(model), np.array([0.5])) is None
    assert exact_optimum(translate(model)).bound is None


def small(problem: str) -> Any:
    return generate(problem, 0, CATALOGUE[problem].sizes[0])


@pytest.fixture
def beyond_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left where the reference knows nothing."""
    monkeypatch.setattr(verification, "PROBLEMS", {})


LARGE = {f"elasticflow.{name}" for name in ("admission", "allocation", "best_effort", "minimum_satisfactory_share")}
LARGE |= {"shockwave.window"}
"""Problems whose small instances are too large for the reference."""


@pytest.mark.parametrize("problem", sorted(COLLECTED - LARGE))
def test_the_reference_confirms_small_optima(problem: str) -> None:
    instance = small(problem)
    found = verify(instance, formulations.solve(instance))
    assert (found.verdict, found.way) == ("confirmed", "reference"), found.message


POLICIES = sorted(name for name in COLLECTED if PROBLEMS[name].linear)


@pytest.fixture
def beyond_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left where the reference searches nothing."""
    monkeypatch.setattr(verification, "SEARCHED", -1.0)


@pytest.mark.parametrize("problem", POLICIES)
@pytest.mark.usefixtures("beyond_searches")
def test_the_reference_takes_prices_of_policies(problem: str) -> None:
    instance = CATALOGUE[problem].generate(3, num_jobs=12)
    found = verify(instance, formulations.solve(instance))
    assert (found.verdict, found.way) == ("confirmed", "reference"), found.message
    assert "prices prove the bound" in found.message


@pytest.mark.parametrize("problem", sorted({*POLICIES} - {"gavel.cost", "gavel.throughput_per_dollar"}))
@pytest.mark.usefixtures("beyond_searches")
def test_what_prices_do_not_bear_out_is_not_confirmed(problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the time is a plan, which a model that is wrong may take for the best."""
    instance = CATALOGUE[problem].generate(3, num_jobs=12)
    solution = formulations.solve(instance)
    assert isinstance(solution.plan, Allocation)
    short = replace(solution.plan, time_fractions=solution.plan.time_fractions / 2)
    short = instance.plan(short) if isinstance(instance, HierarchicalFairness) else short
    value = instance.objective(short)
    itself = Verification("confirmed", "second search", "optimal", value, value, 0.0, "")
    monkeypatch.setattr(verification, "_second", lambda *_: itself)
    found = verify(instance, replace(solution, plan=short, objective=value, bound=value))
    assert (found.verdict, found.way) == ("open", "reference")


@pytest.mark.parametrize("example", [four_jobs, two_entities])
def test_the_reference_looks_at_all_levels(example: Callable[[], HierarchicalFairness]) -> None:
    instance = example()
    solution = formulations.solve(instance)
    found = verify(instance, solution)
    assert (found.verdict, found.way) == ("confirmed", "reference"), found.message
    assert isinstance(solution.plan, HierarchicalAllocation)
    # As good at the first level, and short of the others.
    rates = instance.rates(np.zeros(instance.num_jobs, bool))
    had = instance.normalized_throughputs(solution.plan)
    parts = np.divide(instance.objective(solution.plan) * rates, had, out=np.ones(len(had)), where=had > 0)
    short = instance.plan(Allocation(time_fractions=solution.plan.time_fractions * parts[:, None]))
    assert instance.objective(short) == pytest.approx(instance.objective(solution.plan))
    found = verify(instance, replace(solution, plan=short))
    assert (found.verdict, found.way) == ("contradicted", "reference"), found.message


@pytest.mark.parametrize("problem", CATALOGUE)
@pytest.mark.usefixtures("beyond_the_reference")
def test_every_problem_has_a_second_way(problem: str) -> None:
    instance = small(problem)
    found = verify(instance, formulations.solve(instance))
    assert found.verdict == "confirmed", found.message
    linear = problem.startswith("gavel.") and problem not in ("gavel.round_assignment", "gavel.shortest_job_first")
    if problem in ("gavel.finish_time_fairness", "gavel.hierarchical_fairness"):
        assert found.way == "second procedure"
    elif problem in COLLECTED:
        assert found.way == ("fractions" if linear else "second search")


def claimed(solution: Solution, factor: float) -> Solution:
    """A solution that says another value of its plan, and that it is proven."""
    assert solution.objective is not None
    return replace(solution, objective=factor * solution.objective, bound=factor * solution.bound)


@pytest.mark.parametrize("factor", [0.99, 1.01])
@pytest.mark.parametrize(
    "problem", ["aryl.reclaim", "gavel.hierarchical_fairness", "gavel.finish_time_fairness", "synergy.tuning"]
)
@pytest.mark.usefixtures("beyond_the_reference")
def test_an_optimum_that_is_none_is_contradicted(problem: str, factor: float) -> None:
    instance = small(problem)
    found = verify(instance, claimed(formulations.solve(instance), factor))
    assert found.verdict == "contradicted"
    assert "second optimal" in found.message


@pytest.mark.usefixtures("beyond_the_reference")
def test_a_plan_that_is_too_good_for_the_prices_is_contradicted() -> None:
    instance = small("gavel.max_min_fairness")
    assert isinstance(instance, MaxMinFairness)
    found = verify(instance, claimed(formulations.solve(instance), 1.01))
    assert found.verdict == "contradicted"
    assert found.bound == pytest.approx(formulations.solve(instance).bound)


@pytest.mark.usefixtures("beyond_the_reference")
def test_prices_that_prove_less_than_was_said_are_replaced_by_those_of_a_basis() -> None:
    instance = small("gavel.max_min_fairness")
    solution = formulations.solve(instance)
    assert solution.certificate is not None
    worse = replace(solution, certificate=replace(solution.certificate, row_duals=0.9 * solution.certificate.row_duals))
    found = verify(instance, worse)
    assert found.verdict == "confirmed"
    assert "basis" in found.message


def test_infeasible_where_there_is_a_plan_is_contradicted() -> None:
    instance = small("aryl.reclaim")
    solution = formulations.solve(instance)
    none = replace(solution, status="infeasible", plan=None, objective=None, bound=math.inf, proof="one run")
    found = verify(instance, none)
    assert (found.verdict, found.objective) == ("contradicted", solution.objective)


def test_what_was_not_proven_stays_open() -> None:
    instance = small("aryl.reclaim")
    solution = formulations.solve(instance)
    assert verify(instance, replace(solution, status="feasible")).verdict == "open"
    assert verify(instance, solution, time_limit=1e-9).verdict == "open"


def test_a_model_is_verified_too() -> None:
    model = formulations.build(small("aryl.reclaim"))
    solution = formulations.solve(model)
    assert verify(model, solution).verdict == "confirmed"
    assert verify(model, claimed(solution, 0.5)).verdict == "contradicted"


@pytest.mark.parametrize("number", [106, 118, 198])
def test_a_point_that_misses_a_row_is_not_confirmed_by_its_prices(number: int) -> None:
    """Rows almost parallel: a point that misses one by less than the solver's tolerance is far from the optimum."""
    program = torture.draw("almost parallel rows", 0, number)
    solution, true = formulations.solve(torture.model(program)), torture.optimum(program)
    assert solution.objective is not None
    assert true is not None
    assert abs(solution.objective - float(true)) > 0.1
    found = verify(torture.model(program), solution)
    assert found.verdict == "contradicted"
    assert found.bound == pytest.approx(float(true))
    assert "misses a row by" in found.message
