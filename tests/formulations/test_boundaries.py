"""Instances at the edge of what can be asked, by two solvers: nothing to do, nothing to do it with, one of each."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

import formulations
from formulations.engine.highs import Session
from formulations.engine.protocol import formulation
from instances.afs.gpu_placement import GpuPlacement
from instances.base import InstanceError, agree
from instances.schema import Ragged, Scalar, declarations
from instances.synergy.heterogeneous_allocation import HeterogeneousAllocation
from validation.catalogue import CATALOGUE, entry
from validation.testing.transform import dimensions, take

pytest.importorskip("pyscipopt", reason="SCIP comes with the test extra")

SMALLEST = {"aryl.two_job": 3, "afs.two_job": 3}


def reduced(instance: Any) -> Iterator[Any]:
    """The instance, and with one member in one dimension, or in as many as can have one."""
    yield instance
    smallest = instance
    for dim in dimensions(instance):
        try:
            yield take(instance, dim, [0])
            smallest = take(smallest, dim, [0])
        except (InstanceError, IndexError):
            continue
    yield smallest


def changes(instance: Any) -> Iterator[dict[str, Any]]:
    """All of a field at 0 or 1, its first entry at 0, a table without rows."""
    for name, declared in declarations(type(instance)).items():
        value = getattr(instance, name)
        if value is None or declared.kind is str:
            continue
        if isinstance(declared, Scalar):
            yield from ({name: declared.kind(number)} for number in (0, 1))
        elif isinstance(declared, Ragged):
            yield from ({name: tuple(np.full_like(part, number) for part in value)} for number in (0, 1))
            for at in range(len(value)):
                yield {name: tuple(part[:0] if at == position else part for position, part in enumerate(value))}
        else:
            yield from ({name: np.full_like(value, number)} for number in (0, 1))
            if value.ndim and value.size > 1:
                first = value.copy()
                first[0] = 0
                yield {name: first}


def boundaries(problem: str) -> list[Any]:
    about = entry(problem)
    instance = about.generate(np.random.default_rng(1), **{about.size: SMALLEST.get(problem, 2)})
    found = {}
    for smaller in reduced(instance):
        for change in ({}, *changes(smaller)):
            try:
                changed = replace(smaller, **change)
            except (InstanceError, ValueError):
                continue
            found[changed.digest] = changed
    return list(found.values())


@pytest.mark.slow
@pytest.mark.parametrize("problem", list(CATALOGUE))
def test_both_solvers_agree_at_the_boundaries(problem: str) -> None:
    ways: list[dict[str, Any]] = [{"solver": "scip"}]
    ways += [] if formulation(problem).any_solver else [{"session": Session()}]
    drawn = boundaries(problem)
    # Shares that must add up to all GPUs leave three.
    assert len(drawn) >= 3
    for instance in drawn:
        expected = formulations.solve(instance)
        for way in ways:
            found = formulations.solve(instance, **way)
            assert found.status == expected.status, (way, instance.to_dict())
            if expected.objective is not None:
                assert agree(found.objective, expected.objective), (way, instance.to_dict())


def test_no_shares_to_place() -> None:
    """No variable is in any of the machines' rows."""
    nothing = np.zeros((2, 3), np.int64)
    instance = GpuPlacement(regulated=nothing[:, 0], num_machines=3, gpus_per_machine=4, previous=nothing)
    for solver in ("highs", "scip"):
        solution = formulations.solve(instance, solver=solver)
        assert (solution.status, solution.plan.gpus.sum()) == ("optimal", 0)


def test_a_type_without_configurations() -> None:
    """No variable is in the rows of the second type's GPUs, cores and memory."""
    instance = HeterogeneousAllocation(
        num_servers=[1, 1],
        server_gpus=[2, 2],
        server_cpus=[4, 4],
        server_memory=[4, 4],
        gpu_demands=[1, 1],
        configs=[[[1, 1, 1], [2, 2, 2]], [[2, 2, 3]]],
        config_types=[[0, 0], [0]],
        fair_throughputs=[1, 1],
    )
    for solver in ("highs", "scip"):
        solution = formulations.solve(instance, solver=solver)
        assert (solution.status, solution.objective) == ("optimal", 5)


# --- models ---------------------------------------------------------------------------------------


def binaries() -> pyo.ConcreteModel:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(3), domain=pyo.Binary)
    model.room = pyo.Constraint(expr=2 * model.x[0] + 2 * model.x[1] + 3 * model.x[2] <= 4)
    model.goal = pyo.Objective(expr=model.x[0] + model.x[1] + 3 * model.x[2], sense=pyo.maximize)
    return model


def no_objective(model: pyo.ConcreteModel) -> None:
    model.goal.set_value(0.0)


def a_constant_objective(model: pyo.ConcreteModel) -> None:
    model.goal.set_value(7.0)


def in_no_row(model: pyo.ConcreteModel) -> None:
    model.y = pyo.Var(bounds=(-1, 5))
    model.goal.set_value(model.x[0] + model.y)


def in_nothing(model: pyo.ConcreteModel) -> None:
    model.y = pyo.Var(bounds=(2, 5))


def all_in_no_row(model: pyo.ConcreteModel) -> None:
    model.room.deactivate()


def one_fixed(model: pyo.ConcreteModel) -> None:
    model.x[2].fix(0)


def all_fixed(model: pyo.ConcreteModel) -> None:
    model.x.fix(0)


def fixed_against_a_row(model: pyo.ConcreteModel) -> None:
    model.x.fix(1)


def a_row_of_fixed_variables(model: pyo.ConcreteModel) -> None:
    model.x[0].fix(1)
    model.alone = pyo.Constraint(expr=3 * model.x[0] <= 3)


def no_room(model: pyo.ConcreteModel) -> None:
    model.room.set_value(2 * model.x[0] + 2 * model.x[1] + 3 * model.x[2] <= 0)


@pytest.mark.parametrize(
    ("change", "value"),
    [
        (no_objective, 0),
        (a_constant_objective, 7),
        (in_no_row, 6),
        (in_nothing, 3),
        (all_in_no_row, 5),
        (one_fixed, 2),
        (all_fixed, 0),
        (fixed_against_a_row, None),
        (a_row_of_fixed_variables, 2),
        (no_room, 0),
    ],
)
@pytest.mark.parametrize("solver", ["highs", "scip"])
def test_models_with_little_in_them(solver: str, change: Any, value: float | None) -> None:
    model = binaries()
    change(model)
    solution = formulations.solve(model, solver=solver)
    if value is None:
        assert (solution.status, solution.objective) == ("infeasible", None)
        return
    assert (solution.status, solution.objective, solution.bound) == (
        "optimal",
        pytest.approx(value),
        pytest.approx(value),
    )
    solution.load()
    assert all(variable.value is not None for variable in model.component_data_objects(pyo.Var))
