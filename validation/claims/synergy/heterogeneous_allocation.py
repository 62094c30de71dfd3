"""Claims of Synergy (OSDI'22) about several types of machine (appendix A.2)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from instances.schema import FloatArray
from instances.synergy.allocation import SynergyAllocationPlan
from instances.synergy.heterogeneous_allocation import HeterogeneousAllocation
from validation.claims.claim import Claim, Reading
from validation.claims.plans import OPTIMAL, optimal_plan, plans_of
from validation.kernel.gaps import beats
from validation.testing.second_opinion import optimum

__all__ = ["CLAIMS"]


def _two_types() -> Iterator[HeterogeneousAllocation]:
    """Yield one server of each of two types, and jobs that are 1, 2 or 3 times as fast on the second one."""
    for gpus in itertools.product((1, 2), repeat=2):
        for cores in itertools.product((1.0, 2.0), repeat=2):
            for num_jobs in range(1, min(sum(gpus), 3) + 1):
                for speeds in itertools.combinations_with_replacement((1.0, 2.0, 3.0), num_jobs):
                    yield HeterogeneousAllocation(
                        num_servers=np.ones(2, int),
                        server_gpus=np.array(gpus),
                        server_cpus=np.array(gpus) * np.array(cores),
                        server_memory=np.array(gpus, float),
                        gpu_demands=np.ones(num_jobs, int),
                        configs=tuple(np.array([[1, 0, 1], [1, 0, speed]]) for speed in speeds),
                        config_types=tuple(np.array([0, 1]) for _ in speeds),
                    )


def _no_more_gpus(instance: HeterogeneousAllocation) -> bool:
    """Return whether the jobs want no more GPUs than there are in all."""
    return int(instance.gpu_demands.sum()) <= int((instance.num_servers * instance.server_gpus).sum())


def _printed(instance: HeterogeneousAllocation) -> tuple[float, FloatArray]:
    """Return the optimum of the program as printed, without a limit on each type's GPUs, and the GPUs that it needs.

    All choices are tried: what the reference and the models find has that limit.
    """
    best, crowd = -np.inf, np.zeros(instance.num_types)
    for choices in itertools.product(*(np.flatnonzero(enough).tolist() for enough in instance.usable_configs)):
        used, value = np.zeros((instance.num_types, 3)), 0.0
        for job, choice in enumerate(choices):
            cpus, memory, worth = instance.configs[job][choice].tolist()
            used[instance.config_types[job][choice]] += (cpus, memory, instance.gpu_demands[job])
            value += worth
        if (used <= instance.capacity + 1e-9)[:, :2].all() and value > best:
            best, crowd = value, used[:, 2]
    return best, crowd


def _cannot_be_placed(instance: HeterogeneousAllocation) -> str | None:
    placed = optimum(instance)
    if placed is None:
        return None
    best, gpus = _printed(instance)
    if not beats("max", best, float(placed)):
        return None
    kind = int((gpus - instance.capacity[:, 2]).argmax())
    return (
        f"its optimum of {best:g} puts jobs of {gpus[kind]:g} GPUs on type {kind}, which has "
        f"{instance.capacity[kind, 2]:g}; what can be placed trains at {float(placed):g} at most"
    )


def _cannot_be_placed_with_gpus(instance: HeterogeneousAllocation) -> str | None:
    """Describe how the model's optimum does not fit a limit on the GPUs of each type."""
    plan = optimal_plan(instance)
    broken = instance.violations(plan) if isinstance(plan, SynergyAllocationPlan) else []
    return f"the optimum breaks {broken[0]}" if broken else None


CLAIMS: list[Claim] = [
    Claim(
        name="types_as_printed",
        source="Synergy, appendix A.2.3, program (22)-(26)",
        statement="What the program for several types of machine gives to each job can be placed on the machines of "
        "its type, by the second program.",
        reading="(25) and the problem definition mean no more GPUs on a type than it has, as in the homogeneous case: "
        "that limit is added.",
        by="the library: the print has no such limit",
        instances=lambda rng: _two_types(),
        assumes=_no_more_gpus,
        ties="every way",
        breaks=_cannot_be_placed_with_gpus,
        scope="up to 3 jobs of one GPU, on the second of two machines 1, 2 or 3 times as fast as on the first, of 1 "
        "or 2 GPUs and 1 or 2 cores for each",
        exhaustive=True,
        assumptions="jobs on one type each, no more GPUs wanted than there are in all, the server cap of section 6. "
        "The oracle's fair throughput, which the paper leaves open, is the least of those with the shares of each "
        "type.",
        relaxed="",
        others=(
            Reading(
                "literally, without a limit on the GPUs of each type: at least one of its optima, found by trying "
                "everything, fits the GPUs of every type, where any choice does.",
                _cannot_be_placed,
                by="",
                plans=plans_of(OPTIMAL),
            ),
        ),
    )
]
