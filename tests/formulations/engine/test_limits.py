"""A time limit is for the whole solve, whichever stage it ends in, and what is said then is true."""

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import highspy
import numpy as np
import pyomo.environ as pyo
import pytest

import formulations
from formulations import Session, translate
from formulations.engine import clock
from formulations.engine.highs import hand_over, limit_run
from formulations.engine.sets import Product, RangeSet, Set
from instances import InstanceError
from instances.aryl import reclaim
from instances.aryl.reclaim import Reclaim, ReclaimPlan
from validation.catalogue import CATALOGUE

from ...files import COLLECTED
from .small_models import knapsack

AT_ONCE = 1e-9
ARRAYS = ("cost", "col_lower", "col_upper", "integer", "indptr", "index", "value", "row_lower", "row_upper")


@pytest.mark.parametrize("problem", CATALOGUE)
def test_a_model_that_is_built_in_time_is_that_of_no_limit(problem: str) -> None:
    entry = CATALOGUE[problem]
    # The least size, too, at which sets are empty.
    for size in (1, 2, entry.sizes[0]):
        with contextlib.suppress(InstanceError):
            instance = entry.generate(np.random.default_rng(3), **{entry.size: size})
            unlimited = translate(formulations.build(instance))
            with clock.within(600):
                built = translate(formulations.build(instance))
            for name in ARRAYS:
                assert np.array_equal(getattr(built, name), getattr(unlimited, name))


@pytest.mark.parametrize("problem", CATALOGUE)
def test_a_solve_without_time_is_a_status(problem: str, capfd: pytest.CaptureFixture[str]) -> None:
    entry = CATALOGUE[problem]
    instance = entry.generate(np.random.default_rng(3), **{entry.size: entry.sizes[0]})
    solution = formulations.solve(instance, time_limit=AT_ONCE)
    assert solution.status in ("feasible", "optimal", "unknown")
    assert (solution.plan is None) == (solution.status == "unknown")
    if solution.plan is not None:
        assert instance.violations(solution.plan) == []
        assert solution.objective == instance.objective(solution.plan)
    at_hand = formulations.formulation(problem).trivial_bound
    if at_hand is not None and solution.message.startswith("time limit"):
        assert solution.bound == at_hand(instance)
    # Pyomo would log that a component could not be made.
    assert capfd.readouterr() == ("", "")


def test_a_model_is_not_built_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules of a large model are called no more once the time is over."""
    rows = 0
    check = clock.check

    def counted() -> None:
        nonlocal rows
        rows += 1
        if rows == 5:
            monkeypatch.setattr(clock, "left", lambda: 0.0)
        check()

    monkeypatch.setattr(clock, "check", counted)
    entry = CATALOGUE["elasticflow.best_effort"]
    instance = entry.generate(np.random.default_rng(0), num_jobs=8)
    solution = formulations.solve(instance, time_limit=600, method="model")
    assert rows == 5
    assert solution.message == "time limit: the model was not built in time; the plan is the start"
    assert (solution.status, instance.violations(solution.plan)) == ("feasible", [])


MADE: dict[str, Callable[[pyo.ConcreteModel, list[int]], object]] = {
    "set": lambda model, many: Set(initialize=many),
    "set of a generator": lambda model, many: Set(initialize=(i for i in many)),
    "variables": lambda model, many: pyo.Var(model.MANY, domain=pyo.Binary),
    "variables of a range": lambda model, many: pyo.Var(RangeSet(0, len(many) - 1)),
    "variables of a product": lambda model, many: pyo.Var(model.FEW * model.MANY),
    "variables of a product of three": lambda model, many: pyo.Var(model.FEW * model.FEW * model.MANY),
    "bounds": lambda model, many: pyo.Var(model.MANY, bounds=lambda _, i: (0, i)),
    "parameters": lambda model, many: pyo.Param(model.MANY, initialize=1),
    "rows": lambda model, many: pyo.Constraint(model.MANY, rule=lambda model, i: model.x <= i),
}


@pytest.mark.parametrize("part", MADE)
def test_what_pyomo_makes_ends_with_the_time(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever takes long looks at the clock on its way, as long as a model is built."""
    many = list(range(5000))
    model = pyo.ConcreteModel()
    model.FEW, model.MANY, model.x = RangeSet(0, 1), Set(initialize=many), pyo.Var()
    looks = 0

    def seconds() -> float:
        nonlocal looks
        looks += 1
        return 1.0 if looks < last else 0.0

    last = 10**9
    with clock.within(600), clock.building():
        monkeypatch.setattr(clock, "left", seconds)
        model.whole = MADE[part](model, many)
        assert looks >= len(many) / 100
        # It ends at whichever of the looks.
        for last in {1, looks // 2, looks}:
            looks = 0
            with pytest.raises(clock.TimeIsUp):
                model.add_component(f"until_{last}", MADE[part](model, many))
            assert looks == last
    # Afterwards nothing looks: a plan is read from a model when the time is over.
    looks = 0
    model.afterwards = MADE[part](model, many)
    assert looks == 0
    assert list(model.afterwards) == list(model.whole)


@pytest.mark.parametrize("problem", sorted(COLLECTED))
def test_the_models_are_over_sets_that_look_at_the_clock(problem: str) -> None:
    """Sets of Pyomo's own would let it run on; of a few members they do no harm."""
    entry = CATALOGUE[problem]
    model = formulations.build(entry.generate(np.random.default_rng(3), **{entry.size: entry.sizes[-1]}))
    sets = {
        component.name: component.index_set()
        for component in model.component_objects((pyo.Var, pyo.Constraint, pyo.Param))
    }
    sets |= {component.name: component for component in model.component_objects((pyo.Set, pyo.RangeSet))}
    assert sets
    watched = (Set, RangeSet, Product)
    assert [name for name, one in sets.items() if not isinstance(one, watched) and len(one) > 2] == []


@pytest.mark.parametrize("solver", ["highs", "scip"])
def test_a_model_of_the_users_without_time(solver: str) -> None:
    if solver == "scip":
        pytest.importorskip("pyscipopt")
    model = knapsack(15, 2)
    solution = formulations.solve(model, solver=solver, time_limit=AT_ONCE)
    assert (solution.status, solution.plan, solution.objective) == ("unknown", None, None)
    assert solution.message == "time limit: the model was not translated in time"
    assert (solution.sense, solution.bound) == ("max", math.inf)
    assert all(variable.value is None for variable in model.component_data_objects(pyo.Var))


def test_every_run_in_a_solve_gets_what_is_left() -> None:
    program = translate(knapsack(15, 2))
    with clock.within(0.0):
        late = Session(time_limit=60).run(program)
        assert (late.status, late.x, late.bound) == ("unknown", None, math.inf)
        with clock.within(60):
            assert clock.left() <= 0
        with pytest.raises(clock.TimeIsUp):
            clock.check()
    assert clock.left() == math.inf
    assert Session(time_limit=60).run(program).status == "optimal"


def test_a_start_is_the_answer_where_there_is_no_time_for_a_better_one() -> None:
    instance = Reclaim(hosts=[[True, False, True]], gpus=[[1, 0, 1]], demand=2)
    start = ReclaimPlan(servers=np.array([0, 1]))
    solution = formulations.solve(instance, start=start, time_limit=AT_ONCE, method="model")
    assert (solution.status, solution.objective) == ("feasible", instance.objective(start))
    broken = ReclaimPlan(servers=np.array([0]))
    assert instance.violations(broken)
    assert formulations.solve(instance, start=broken, time_limit=AT_ONCE).plan != broken


def test_time_that_ends_while_a_reason_is_looked_for_leaves_the_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(instance: Any) -> str:
        raise clock.TimeIsUp

    entry = CATALOGUE["aryl.reclaim"]
    instance = reclaim.six_servers()
    offered = formulations.formulation(entry.problem)
    monkeypatch.setattr("formulations.engine.solution.formulation", lambda problem: replace(offered, explain=late))
    result = formulations.Result("infeasible", None, math.inf, None, 0.0, "Infeasible", "one run")
    found = formulations.judged(instance, None, result, began=time.perf_counter(), solver="", solver_version="")
    assert (found.status, found.message) == ("infeasible", "Infeasible")


def test_pyomo_logs_nothing_where_only_time_is_up(caplog: pytest.LogCaptureFixture) -> None:
    """Wherever in a model it is noticed: in the sum of a row, too."""

    def late(model: pyo.ConcreteModel) -> Any:
        class Late:
            def __iter__(self) -> Any:
                raise clock.TimeIsUp

        return pyo.quicksum(Late()) <= 1

    model = pyo.ConcreteModel()
    with pytest.raises(clock.TimeIsUp), clock.within(600), clock.building():
        model.row = pyo.Constraint(rule=late)
    assert caplog.records == []


def test_a_bound_at_hand_rests_on_an_argument() -> None:
    entry = CATALOGUE["synergy.placement"]
    instance = entry.generate(np.random.default_rng(0), num_servers=2)
    at_hand = formulations.formulation("synergy.placement").trivial_bound
    assert at_hand is not None
    solution = formulations.solve(instance, time_limit=AT_ONCE)
    assert (solution.bound, solution.proof) == (at_hand(instance), "argument")


def test_runs_of_one_object_have_a_limit_each() -> None:
    """HiGHS counts what all linear programs of an object take together, so the limit of one begins where they ended."""
    rng = np.random.default_rng(0)
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(60), bounds=(0, 1))
    factors = rng.random((40, 60))
    model.rows = pyo.Constraint(
        range(40), rule=lambda m, i: sum(float(a) * x for a, x in zip(factors[i], m.x.values(), strict=True)) <= 5
    )
    model.total = pyo.Objective(expr=sum(float(rng.random()) * x for x in model.x.values()), sense=pyo.maximize)
    program = translate(model)
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    hand_over(solver, program)
    solver.run()
    spent = solver.getRunTime()
    assert spent > 0
    for limit, status in (
        (lambda: solver.setOptionValue("time_limit", spent / 2), highspy.HighsModelStatus.kTimeLimit),
        (lambda: limit_run(solver, 600.0), highspy.HighsModelStatus.kOptimal),
    ):
        solver.clearSolver()
        limit()
        solver.run()
        assert solver.getModelStatus() == status
