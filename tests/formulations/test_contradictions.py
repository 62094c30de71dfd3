"""A bound on the wrong side of its own value is loud; a search that ends early still returns what is at hand."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import formulations
from formulations import SolverError
from formulations.engine.highs import Result
from formulations.engine.protocol import formulation
from formulations.engine.solution import Solution, judged
from instances.aryl.reclaim import Reclaim, ReclaimPlan
from instances.gavel.makespan import Makespan, three_jobs
from instances.gavel.sharing import Allocation
from validation.catalogue import CATALOGUE, entry

TRIVIAL = [problem for problem in CATALOGUE if formulation(problem).trivial is not None]


def solution(**parts: Any) -> Solution:
    status = "unknown" if parts.get("objective", 1.0) is None else "feasible"
    fields = {"status": status, "plan": None, "objective": 1.0, "bound": 1.0, "sense": "min"}
    fields |= {"build_seconds": 0.0, "solve_seconds": 0.0, "solver": "none", "solver_version": ""}
    return Solution(**fields | parts)


# --- contradictions -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sense", "objective", "bound"),
    [
        ("min", 1.0, 1.1),
        ("min", 0.0, 1.0),
        ("min", -3.0, -2.0),
        ("min", 1e6, 1e6 + 2),
        ("min", 5.0, math.inf),
        ("max", 1.1, 1.0),
        ("max", 1e-8, 0.0),
        ("max", math.inf, 7.0),
        ("max", 0.0, -math.inf),
    ],
)
def test_a_value_better_than_its_bound_is_an_error(sense: str, objective: float, bound: float) -> None:
    with pytest.raises(SolverError) as caught:
        solution(sense=sense, objective=objective, bound=bound)
    side = "below" if sense == "min" else "above"
    assert f"a plan worth {objective!r} is {side} the bound {bound!r}" in str(caught.value)
    assert "Please report it" in str(caught.value)
    with pytest.raises(SolverError):
        replace(solution(sense=sense, objective=objective, bound=objective), bound=bound)


@pytest.mark.parametrize(
    ("sense", "objective", "bound"),
    [
        ("min", 1.0, 1.0 + 5e-7),
        ("min", 1e9, 1e9 + 500),
        ("min", 2.0, -math.inf),
        ("min", math.inf, 3.0),
        ("min", None, 3.0),
        ("max", 1.0 + 5e-7, 1.0),
        ("max", 2.0, math.inf),
        ("max", None, -math.inf),
    ],
)
def test_rounding_and_open_gaps_are_no_contradiction(sense: str, objective: float | None, bound: float) -> None:
    assert solution(sense=sense, objective=objective, bound=bound).bound == bound


@pytest.mark.parametrize(
    ("status", "parts"),
    [
        ("optimal", {"objective": None, "bound": 100.0, "proof": "prices"}),
        ("feasible", {"objective": None}),
        ("infeasible", {"proof": "prices"}),
        ("unbounded", {"bound": -math.inf, "proof": "ray"}),
        ("optimal", {"proof": ""}),
        ("infeasible", {"objective": None, "proof": ""}),
    ],
)
def test_a_status_that_says_more_than_there_is_cannot_be_made(status: str, parts: dict[str, Any]) -> None:
    with pytest.raises(SolverError, match=f"status '{status}' with"):
        solution(status=status, **parts)


def test_the_judge_against_the_bound_names_the_instance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever raises the bound above what a plan is worth: here the formulation's own transform."""
    offered = replace(formulation("gavel.makespan"), bound=lambda instance, value: 1e9)
    for module in ("formulations.engine.solving", "formulations.engine.solution"):
        monkeypatch.setattr(f"{module}.formulation", lambda problem: offered)
    with pytest.raises(SolverError, match=rf"gavel\.makespan, instance {three_jobs().digest}: a plan worth 200"):
        formulations.solve(three_jobs(), method="one model")


def test_a_judge_that_values_a_plan_too_highly_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = Reclaim(hosts=np.array([[True, True]]), gpus=np.array([[1, 1]]), demand=1)
    assert formulations.solve(instance).objective == 1
    monkeypatch.setattr(Reclaim, "_value", lambda self, plan: 0)
    with pytest.raises(SolverError, match=r"a plan worth 0\.0 is below the bound 1\.0"):
        formulations.solve(instance)


@pytest.mark.parametrize(("status", "bound"), [("infeasible", math.inf), ("unknown", 250.0)])
def test_the_start_against_what_is_said_to_be_proven(status: str, bound: float) -> None:
    instance = three_jobs()
    best = formulations.solve(instance)
    assert best.objective is not None
    assert best.objective < 250
    with pytest.raises(SolverError, match=rf"gavel\.makespan, instance {instance.digest}: a plan worth 200"):
        ended(instance, status, bound=bound, start=best.plan)
    late = Allocation(time_fractions=np.full((3, 2), 2.0))
    assert instance.violations(late) != []
    assert ended(instance, "infeasible", bound=math.inf, start=late).status == "infeasible"


# --- plans at hand --------------------------------------------------------------------------------


def ended(instance: Any, status: Any = "unknown", plan: Any = None, **parts: Any) -> Solution:
    """What becomes of a search that ends with this."""
    nothing = -math.inf if instance.sense == "min" else math.inf
    result = Result(status, None, parts.pop("bound", nothing), None, 0.0, "Time limit reached", "one run")
    return judged(instance, plan, result, began=0.0, solver="none", solver_version="", **parts)


def test_makespan_under_a_limit_is_the_isolated_share() -> None:
    instance = three_jobs()
    idle = Allocation(time_fractions=np.zeros((3, 2)))
    assert instance.objective(idle) == math.inf
    for found in (ended(instance), ended(instance, "feasible", idle), ended(instance, bound=100.0)):
        assert (found.status, found.objective) == ("feasible", instance.objective(instance.isolated_share()))
        assert found.plan == instance.isolated_share()
        assert "at hand without a search" in found.message
        with pytest.raises(ValueError, match="no point to load: status feasible"):
            found.load()
    best = formulations.solve(instance)
    assert ended(instance, "feasible", best.plan).objective == best.objective
    assert ended(instance, "infeasible", bound=math.inf).status == "infeasible"


def test_a_plan_at_hand_that_is_at_the_bound_is_optimal() -> None:
    both = Makespan(throughputs=[[2.0, 1.0], [2.0, 1.0]], steps=[10.0, 10.0], num_workers=[1, 1])
    best = both.objective(both.isolated_share())
    assert (ended(both, bound=best).status, ended(both, bound=4.0).status) == ("optimal", "feasible")


def test_a_plan_that_breaks_a_rule_is_not_replaced_silently() -> None:
    """A model whose plans the judge refuses is a defect, and has to be seen."""
    instance = Reclaim(hosts=np.array([[True, True]]), gpus=np.array([[1, 1]]), demand=1)
    found = ended(instance, "feasible", ReclaimPlan(servers=np.array([0, 1])))
    assert (found.status, found.plan) == ("unknown", None)


@pytest.mark.parametrize("problem", TRIVIAL)
@pytest.mark.parametrize("solver", ["highs", "scip"])
def test_a_time_limit_leaves_a_plan(problem: str, solver: str) -> None:
    if solver == "scip":
        pytest.importorskip("pyscipopt")
    about = entry(problem)
    for seed in range(3):
        instance = about.generate(np.random.default_rng(seed), **{about.size: about.sizes[1]})
        found = formulations.solve(instance, solver=solver, time_limit=1e-6)
        assert found.status in ("feasible", "optimal")
        assert instance.violations(found.plan) == []
        assert math.isfinite(instance.objective(found.plan))


def test_a_plan_at_hand_that_is_not_feasible_is_not_used() -> None:
    """A deadline that the isolated share misses."""
    cost = entry("gavel.cost").generate(np.random.default_rng(0), num_jobs=4)
    late = replace(cost, slos=np.full(4, float(cost.steps.max() / cost.throughputs.max()) * 1e-3))
    assert late.violations(late.isolated_share()) != []
    assert ended(late).status == "unknown"
