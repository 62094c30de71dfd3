"""What the optima of the claims' stored counterexamples rest on: never on a mixed-integer run alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import formulations
import instances
from formulations import Solution
from instances.aryl.reclaim import generate
from instances.base import Instance
from validation.claims import plans

FOLDER = Path(__file__).parents[3] / "docs" / "claims"

CERTIFIED = {"elasticflow/allocation/algorithm_2_keeps_deadlines-4"}
"""Those that the reference's enumeration does not reach."""

NOT_CALLED_ON = {"afs/elastic_sharing/appendix_a_sequel-1"}
"""Those of which no reading speaks of the optimum, and which nothing proves: two heuristics are compared."""

NAMES = sorted(str(path.relative_to(FOLDER).with_suffix("")) for path in FOLDER.rglob("*.json"))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in NOT_CALLED_ON])
def test_the_optimum_of_a_counterexample_is_proven(name: str) -> None:
    _, ground = plans.proven(instances.load(FOLDER / f"{name}.json"))
    assert (ground == "certificate") == (name in CERTIFIED)


def test_what_is_set_apart_is_there() -> None:
    assert set(NAMES) >= CERTIFIED | NOT_CALLED_ON


@pytest.mark.parametrize("off", [1, -1])
def test_a_solution_that_is_not_the_optimum_is_refused(monkeypatch: pytest.MonkeyPatch, off: int) -> None:
    instance = generate(3, num_servers=6)
    true = formulations.solve(instance)

    def wrong(instance: Instance, **_: object) -> Solution:
        assert true.objective is not None
        value = true.objective + off
        return replace(true, proof="two runs", objective=value, bound=value)

    monkeypatch.setattr(plans.formulations, "solve", wrong)
    with pytest.raises(AssertionError):
        plans.optimal_plan(instance)


def test_a_claim_that_there_is_no_plan_is_refused_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = generate(3, num_servers=6)
    none = replace(formulations.solve(instance), status="infeasible", plan=None, objective=None, proof="one run")
    monkeypatch.setattr(plans.formulations, "solve", lambda *_, **__: none)
    with pytest.raises(AssertionError):
        plans.optimal_plan(instance)
