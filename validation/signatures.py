"""Functions of public tasks, and plain ones, as heuristics.

A heuristic gets an instance and returns a plan.  The placement tasks of the ADRS benchmarks ask for functions of their
own, and so do the programs that people evolve for these.  A function that is named by a reference, as
"program.py:compute_model_placement", and has one of these names, is given what its task gives it, and what it returns
is read as a plan.  So is one that is called ``solve``: it gets the instance as JSON and returns a plan as JSON, for any
problem, and needs nothing of the library.  Nothing else that they do counts: what a plan is worth is said by the
instance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from instances.base import Instance, InstanceError, Plan
from instances.schema import declarations

if TYPE_CHECKING:
    from instances.eplb.placement import EplbPlacement, EplbPlacementPlan
    from instances.prism.placement import PrismPlacement, PrismPlacementPlan

__all__ = ["SIGNATURES", "as_heuristic", "compute_model_placement", "plain", "rebalance_experts", "solve"]


def as_heuristic(name: str, found: Any) -> Any:
    """Return a heuristic that calls a function of a public task, or a plain one; anything else as it is.

    Parameters
    ----------
    name : str
        By which it was asked for.
    found : object
    """
    return partial(SIGNATURES[name], found) if name in SIGNATURES and callable(found) else found


def solve(function: Callable[[dict[str, Any]], Any], instance: Instance[Any]) -> Plan | None:
    """Ask a plain function, ``solve(instance) -> plan``, both of them as :func:`plain` data.

    A field of the plan that has a default may be left out, and arrays may stand in place of lists.  None declines.

    Raises
    ------
    TypeError
        When it returns anything else than a dictionary.
    PlanError
        When a field is unknown, missing, or has a value that it cannot have.
    """
    # Looked up before the function has its hands on anything.
    plan_type = instance.plan_type
    told = function(plain(instance))
    if told is None:
        return None
    if not isinstance(told, Mapping):
        names = ", ".join(declarations(plan_type))
        raise TypeError(f"{instance.problem}: got {type(told).__name__}, must be a dictionary with {names}")
    return plan_type.from_dict(told)


def plain(instance: Instance[Any]) -> dict[str, Any]:
    """Return an instance as numbers, truth values, words and lists, by field; those left to their defaults, too.

    A number without limit is None, as in JSON.
    """
    declared = declarations(type(instance))
    given = {name: getattr(instance, name) for name in declared}
    told = {name: None if value is None else declared[name].write(value) for name, value in given.items()}
    return {"problem": instance.problem, **told}


def compute_model_placement(function: Callable[..., Any], instance: PrismPlacement) -> PrismPlacementPlan:
    """Ask a function of the Prism task, ``compute_model_placement(gpu_num, models) -> {gpu: [model, ...]}``.

    Models have ``model_name``, ``model_size`` (GB), ``req_rate`` (1/s), ``slo`` (s) and ``cur_gpu_id``, which is the
    model's own number where it is nowhere yet, as in the task.  What the function changes in them changes no instance.

    Raises
    ------
    ValueError
        When a model is placed twice or not at all, or something is placed that is none of them.
    """
    plan_type = _plan_type(instance, "prism.placement")
    whole = {name: _whole(getattr(instance, name)) for name in ("sizes", "rates", "slos")}
    current = instance.current.tolist()
    models = [
        SimpleNamespace(
            model_name=f"model_{job}", model_size=size, req_rate=rate, slo=slo, cur_gpu_id=gpu if gpu >= 0 else job
        )
        for job, (size, rate, slo, gpu) in enumerate(zip(*whole.values(), current, strict=True))
    ]
    numbers = {model.model_name: job for job, model in enumerate(models)}
    placed: dict[int, int] = {}
    for gpu, some in dict(function(gpu_num=instance.num_gpus, models=models)).items():
        for model in some:
            job = numbers.get(getattr(model, "model_name", None))
            if job is None:
                raise ValueError(f"GPU {gpu!r} has {model!r}, which is no model")
            if job in placed:
                raise ValueError(f"model_{job} is placed twice")
            placed[job] = _number(gpu, "GPU")
    left_out = [job for job in range(instance.num_jobs) if job not in placed]
    if left_out:
        raise ValueError(f"model_{left_out[0]} is not placed")
    plan: PrismPlacementPlan = plan_type(gpus=np.array([placed[job] for job in range(instance.num_jobs)], np.int64))
    return plan


def rebalance_experts(function: Callable[..., Any], instance: EplbPlacement) -> EplbPlacementPlan:
    """Ask a function of EPLB, ``rebalance_experts(weight, num_replicas, num_groups, num_nodes, num_gpus)``.

    ``weight`` is a table of one layer, of several vectors of loads the mean, a tensor where PyTorch is installed and
    else an array; experts are in the order of their groups.  Of the three tables that it returns the first counts, the
    expert of each replica, GPU after GPU.

    Raises
    ------
    ValueError
        When that table has not one row of as many replicas as there are, or an entry is no expert.
    """
    plan_type = _plan_type(instance, "eplb.placement")
    order = np.argsort(instance.groups, kind="stable")
    weight: Any = instance.vectors.mean(axis=0)[None, order]
    if find_spec("torch"):
        weight = import_module("torch").from_numpy(weight)
    told = function(weight, instance.num_replicas, instance.num_groups, instance.num_nodes, instance.num_gpus)
    experts = np.array(told[0].tolist() if hasattr(told[0], "tolist") else told[0])
    if experts.shape != (1, instance.num_replicas) or not np.issubdtype(experts.dtype, np.integer):
        raise ValueError(f"got experts of shape {experts.shape}, must be whole numbers of (1, {instance.num_replicas})")
    wrong = experts[(experts < 0) | (experts >= instance.num_experts)]
    if wrong.size:
        raise ValueError(f"expert {wrong[0]} is none of {instance.num_experts}")
    replicas = np.zeros((instance.num_experts, instance.num_gpus), np.int64)
    np.add.at(replicas, (order[experts[0]], np.repeat(np.arange(instance.num_gpus), instance.slots)), 1)
    plan: EplbPlacementPlan = plan_type(replicas=replicas)
    return plan


SIGNATURES: Mapping[str, Callable[..., Any]] = {
    "compute_model_placement": compute_model_placement,
    "rebalance_experts": rebalance_experts,
    "solve": solve,
}
"""By the names of the functions."""


def _plan_type(instance: Any, problem: str) -> Any:
    if instance.problem != problem:
        raise InstanceError(f"problem: got {instance.problem}, must be {problem}, whose function it is")
    return instance.plan_type


def _whole(values: Any) -> list[float | int]:
    """Return numbers as the task has them, which are whole where they can be."""
    return [int(value) if value.is_integer() else value for value in values.tolist()]


def _number(value: Any, of: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ValueError(f"{of}: got {value!r}, must be a whole number")
    return int(value)
