"""What arises in every trace: a cluster without jobs."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from matplotlib import pyplot

import formulations
import instances
from instances.base import Instance
from instances.schema import JOBS, Array, declarations
from validation import CATALOGUE
from validation.catalogue import takes_rng

PROBLEMS = [problem for problem in CATALOGUE if JOBS in CATALOGUE[problem].generate(0).dims]
"""All but those of exactly two jobs."""


def without_jobs(problem: str) -> Instance[Any]:
    """A generated instance, but for its jobs, and with nothing to return where servers are reclaimed."""
    entry = CATALOGUE[problem]
    data = entry.generate(0, **{entry.size: entry.sizes[0]}).to_dict()
    for field, declared in declarations(entry.instance).items():
        if isinstance(declared, Array) and data.get(field) is not None:
            of_jobs = {JOBS, "q"} & set(declared.shape.split()[0].split("+"))
            if of_jobs:
                data[field] = []
            elif JOBS in declared.shape.split():
                data[field] = [[] for _ in data[field]]
    return entry.instance.from_dict(data | EXTRA.get(problem, {}))


EXTRA: dict[str, dict[str, Any]] = {"aryl.reclaim": {"demand": 0}, "elasticflow.admission": {"arrival_order": []}}
"""Fields that must agree with there being no jobs."""


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    pyplot.close("all")


@pytest.mark.parametrize("problem", PROBLEMS)
def test_no_jobs_is_an_instance(problem: str) -> None:
    instance = without_jobs(problem)
    assert instance.dims[JOBS] == 0
    again = instances.read(json.loads(json.dumps(instance.to_dict())))
    assert again == instance
    assert again.digest == instance.digest
    instance.plot()


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_optimum_without_jobs_is_trivial(problem: str) -> None:
    instance = without_jobs(problem)
    solution = formulations.solve(instance)
    assert (solution.status, solution.objective, solution.bound, solution.proof) == ("optimal", 0.0, 0.0, "argument")
    assert instance.violations(solution.plan) == []
    plan = type(solution.plan).from_dict(json.loads(json.dumps(solution.plan.to_dict())))
    assert instance.violations(plan) == []
    assert instance.objective(plan) == 0
    instance.plot(plan)


@pytest.mark.parametrize(
    ("problem", "name"), [(problem, name) for problem in PROBLEMS for name in CATALOGUE[problem].heuristics]
)
def test_heuristics_have_a_plan_for_no_jobs(problem: str, name: str) -> None:
    instance = without_jobs(problem)
    function = CATALOGUE[problem].heuristics[name].function
    options = {"rng": 0} if takes_rng(function) else {}
    plan = function(instance, **options)
    assert instance.violations(plan) == []
    assert instance.objective(plan) == 0
