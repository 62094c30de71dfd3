"""A time limit is for the whole solve, whichever stage it ends in, and what is said then is true."""

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

import formulations
from formulations import Session, translate
from formulations.engine import clock
from instances.aryl import reclaim
from instances.aryl.reclaim import Reclaim, ReclaimPlan
from validation.catalogue import CATALOGUE

from .small_models import knapsack

AT_ONCE = 1e-9


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
    solution = formulations.solve(instance, time_limit=600)
    assert rows == 5
    assert solution.message == "time limit: the model was not built in time; the plan is the start"
    assert (solution.status, instance.violations(solution.plan)) == ("feasible", [])


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
    solution = formulations.solve(instance, start=start, time_limit=AT_ONCE)
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
