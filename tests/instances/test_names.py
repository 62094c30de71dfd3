"""One quantity, one name: what generic code may rely on in every problem's instances, and how classes are called."""

import importlib
from collections import Counter
from typing import Any

import numpy as np
import pytest

import instances
from instances import Instance
from instances.schema import declarations

from ..files import COLLECTED

PROBLEMS = instances.problems()
PAPERS = {"afs": "Afs", "aryl": "Aryl", "elasticflow": "ElasticFlow", "gavel": "Gavel", "synergy": "Synergy"}
WITH_STEPS = {"cost", "finish_time_fairness", "makespan", "shortest_job_first", "throughput_per_dollar"}
DEADLINES = {
    "elasticflow.admission",
    "elasticflow.allocation",
    "elasticflow.best_effort",
    "elasticflow.minimum_satisfactory_share",
}
MACHINES = {"afs.gpu_placement", "afs.network_packing"}
SYNERGY = {f"synergy.{name}" for name in ("allocation", "heterogeneous_allocation", "placement", "tuning")}
HAVE = {
    "num_jobs": set(PROBLEMS),
    "num_servers": {"aryl.placement", "aryl.reclaim", "elasticflow.placement", *MACHINES, *SYNERGY},
    "server_gpus": {"aryl.placement", "elasticflow.placement", *MACHINES, *SYNERGY},
    "num_gpus": {
        "prism.placement",
        "sia.goodput",
        "shockwave.window",
        "eplb.placement",
        "afs.elastic_sharing",
        "aryl.placement",
        "aryl.two_job",
        "elasticflow.placement",
        *DEADLINES,
        *MACHINES,
        *SYNERGY,
    },
    "iterations": {"afs.elastic_sharing", "afs.two_job", *DEADLINES, *(f"gavel.{name}" for name in WITH_STEPS)},
}


def drawn(problem: str) -> Instance[Any]:
    found: Instance[Any] = importlib.import_module(f"instances.{problem}").generate(0)
    return found


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_quantity_is_found_under_its_name(problem: str) -> None:
    instance: Any = drawn(problem)
    for name, problems in HAVE.items():
        if problem in COLLECTED or name == "num_jobs":
            assert hasattr(instance, name) == (problem in problems), name
    assert instance.num_jobs == len(instance.to_frame())
    if problem in HAVE["iterations"]:
        assert instance.iterations.shape == (instance.num_jobs,)
        assert instance.iterations.dtype == float
    if problem in HAVE["server_gpus"]:
        per_server = np.broadcast_to(instance.server_gpus, np.shape(instance.num_servers) or instance.num_servers)
        count = instance.num_servers if np.ndim(instance.num_servers) else 1
        assert instance.num_gpus == (per_server * count).sum()


@pytest.mark.parametrize("name", HAVE)
def test_other_names_are_read_only_and_no_part_of_the_data(name: str) -> None:
    others = [one for one in map(drawn, HAVE[name]) if name not in declarations(type(one))]
    assert others
    for instance in others:
        assert name not in instance.to_dict()
        with pytest.raises(AttributeError):
            setattr(instance, name, 1)


def test_values_are_those_of_the_field() -> None:
    for problem, alias, field in (
        ("afs.elastic_sharing", "iterations", "work"),
        ("afs.two_job", "iterations", "work"),
        ("gavel.makespan", "iterations", "steps"),
        ("afs.network_packing", "num_servers", "num_machines"),
        ("afs.gpu_placement", "server_gpus", "gpus_per_machine"),
        ("elasticflow.placement", "server_gpus", "gpus_per_server"),
    ):
        instance = drawn(problem)
        assert np.array_equal(getattr(instance, alias), getattr(instance, field))


@pytest.mark.parametrize("problem", PROBLEMS)
def test_classes_are_called_after_their_problem(problem: str) -> None:
    paper, name = problem.split(".")
    shared = Counter(each.split(".")[1] for each in PROBLEMS)[name] > 1
    camel = "".join(word.capitalize() for word in name.split("_"))
    kind = instances.instance_type(problem)
    assert kind.__name__ == (PAPERS.get(paper, paper.capitalize()) if shared else "") + camel
    own = {"Allocation", "HierarchicalAllocation", "Schedule", "SlotPlan", "SynergyAllocationPlan"}
    assert kind.plan_type.__name__ in {f"{kind.__name__}Plan", *own}


@pytest.mark.parametrize("problem", [problem for problem in PROBLEMS if problem in COLLECTED])
def test_a_problem_s_module_says_what_is_public(problem: str) -> None:
    module = importlib.import_module(f"instances.{problem}")
    kind = instances.instance_type(problem)
    assert {kind.__name__, "generate", "from_frame"} <= set(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)
