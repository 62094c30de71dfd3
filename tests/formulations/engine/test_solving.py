"""From a model or an instance to a Solution: arguments, plans, and no side effects."""

import json
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

import formulations
from formulations import ModelError, Solution, SolverNotFound, relative_gap, solve, translate
from formulations.engine import external
from formulations.engine.highs import Result
from formulations.engine.options import Options
from formulations.engine.solution import judged
from heuristics.aryl.reclaim import server_fraction
from instances import PlanError
from instances.aryl.reclaim import ReclaimPlan
from instances.gavel.max_min_fairness import generate, three_jobs
from instances.gavel.sharing import Allocation

from .small_models import INF, SOLVERS, Model, base, knapsack, six_servers, unbounded, with_row

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
    with pytest.raises(ValueError, match=r"has no value: solve the model"):
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
    offered = formulations.formulation(instance.problem)
    model = formulations.build(instance)
    result, name, version = formulations.engine.solving.run(model, translate(model), Options())
    for servers, status in (([4, 5], "optimal"), ([0, 1], "feasible"), ([4], "unknown"), ([4, 9], "unknown")):
        solution = formulations.engine.solving.judged(
            instance,
            ReclaimPlan(servers=np.array(servers)),
            result,
            began=time.perf_counter(),
            solver=name,
            solver_version=version,
        )
        assert solution.status == status
        assert (solution.plan is None) == (status == "unknown")
        assert (solution.objective is None) == (status == "unknown")
    assert offered.build.__module__ == "formulations.aryl.reclaim"


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
        ({"time_limit": "5"}, "time_limit: got '5', must be positive seconds"),
        ({"mip_gap": None}, "mip_gap: got None, must be at least 0"),
        ({"time_limit": -1.0}, "time_limit: got -1.0"),
        ({"time_limit": math.nan}, "time_limit: got nan"),
        ({"mip_gap": -0.1}, "mip_gap: got -0.1, must be at least 0"),
        ({"mip_gap": math.nan}, "mip_gap: got nan"),
        ({"mip_gap": INF}, "mip_gap: got inf"),
        ({"threads": 0}, "threads: got 0, must be a whole number from 1 to"),
        ({"threads": -1}, "threads: got -1"),
        ({"threads": 100_000}, "threads: got 100000, must be a whole number from 1 to"),
        ({"threads": 1.5}, "threads: got 1.5"),
        ({"threads": True}, "threads: got True"),
        ({"threads": "2"}, "threads: got '2'"),
        ({"seed": -1}, "seed: got -1, must be a whole number, at least 0"),
        ({"seed": 0.5}, "seed: got 0.5"),
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


def test_a_broken_point_does_not_cost_the_start() -> None:
    """A point that misses a limit by a solver's tolerance is not used; what the search began with is."""
    instance = six_servers()
    start, broken = server_fraction(instance), ReclaimPlan(servers=np.array([0]))
    result = Result("optimal", None, 0.0, None, 0.0, "solved", "search")
    found = judged(instance, broken, result, began=0.0, solver="highs", solver_version="", start=start)
    assert (found.status, found.plan, found.bound) == ("feasible", start, 0.0)
    assert found.objective == instance.objective(start)
    assert found.message.startswith("solved; the plan read from the model breaks ")
    assert found.message.endswith("; the plan is the start")
