"""Claims of Synergy (OSDI'22) about the second program (section 4.1.2, appendix A.1.3)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pyomo.environ as pyo

import formulations
from formulations.synergy.placement import NEGLIGIBLE, second_stage, vertex
from instances.synergy.placement import SynergyPlacement, SynergyPlacementPlan
from validation.claims.claim import Claim, Reading
from validation.claims.plans import OPTIMAL, plans_of

__all__ = ["CLAIMS"]


def _filled_servers(rng: np.random.Generator) -> Iterator[SynergyPlacement]:
    """Yield jobs that leave little or nothing free, so that many limits hold with equality."""
    while True:
        num_servers = int(rng.integers(1, 4))
        num_jobs = int(rng.integers(1, 8 * num_servers + 1))
        demands = rng.integers(1, 10, (num_jobs, 3))
        # No less than the jobs need in all, and than each needs.
        gpus, cpus, memory = np.maximum(-(-demands.sum(axis=0) // num_servers), demands.max(axis=0))
        yield SynergyPlacement(
            num_servers=num_servers,
            server_gpus=int(gpus),
            server_cpus=float(cpus),
            server_memory=float(memory),
            demands=demands.astype(float),
        )


def _equal_jobs() -> Iterator[SynergyPlacement]:
    """Yield jobs of one GPU, core and GB each, on servers of equal size that just hold them."""
    for num_jobs, num_servers in itertools.product(range(1, 25), range(1, 4)):
        per_server = -(-num_jobs // num_servers)
        yield SynergyPlacement(
            num_servers=num_servers,
            server_gpus=per_server,
            server_cpus=float(per_server),
            server_memory=float(per_server),
            demands=np.ones((num_jobs, 3)),
        )


def _too_many(instance: SynergyPlacement, fragmented: float) -> str | None:
    """Describe how there are more than three fragmented jobs for each server."""
    most = 3 * instance.num_servers
    if fragmented <= most:
        return None
    return f"{fragmented:g} jobs are fragmented, on {instance.num_servers} servers there may be {most}"


def _vertex_fragments(instance: SynergyPlacement) -> str | None:
    plan = vertex(instance)
    if plan is None:
        return None
    if broken := instance.violations(plan):
        return f"the vertex breaks {broken[0].rule}"
    return _too_many(instance, instance.objective(plan))


def _even_spread(instance: SynergyPlacement) -> SynergyPlacementPlan:
    shares = np.full((instance.num_jobs, instance.num_servers), 1 / instance.num_servers)
    return SynergyPlacementPlan(shares=shares)


def _even_spread_fragments(instance: SynergyPlacement) -> str | None:
    plan = _even_spread(instance)
    return None if instance.violations(plan) else _too_many(instance, instance.objective(plan))


def _on_every_server(instance: SynergyPlacement) -> str | None:
    """Describe how shares above 0 everywhere, as (19) is printed, fragment more than three jobs for each server."""
    # Every such solution has every job on every server, so that one is as good as another.
    return _even_spread_fragments(instance) if instance.num_servers > 1 else None


def _vertex_with_surplus(instance: SynergyPlacement) -> str | None:
    """Describe how a vertex of the program with (18) as printed, shares of at least 1, fragments too many."""
    model = second_stage(instance)
    model.placed.deactivate()
    model.at_least = pyo.Constraint(
        model.JOBS, rule=lambda model, j: pyo.quicksum(model.shares[j, i] for i in model.SERVERS) >= 1
    )
    solution = formulations.solve(model)
    if solution.status != "optimal":
        return None
    solution.load()
    shares = np.array([[pyo.value(model.shares[j, i]) for i in model.SERVERS] for j in model.JOBS])
    return _too_many(instance, int(((shares > NEGLIGIBLE).sum(axis=1) > 1).sum()))


def _small_servers() -> Iterator[SynergyPlacement]:
    """Yield up to 3 jobs of 1 or 2 GPUs, with as many cores or GB or none, that fit up to 2 servers in total."""
    kinds = [(gpus, cpus, memory) for gpus in (1, 2) for cpus in (0, gpus) for memory in (0, gpus)]
    for num_servers, num_jobs in itertools.product((1, 2), (1, 2, 3)):
        for jobs in itertools.combinations_with_replacement(kinds, num_jobs):
            instance = SynergyPlacement(
                num_servers=num_servers,
                server_gpus=2,
                server_cpus=2.0,
                server_memory=2.0,
                demands=np.array(jobs, float),
            )
            if (instance.demands.sum(axis=0) <= num_servers * instance.capacity).all():
                yield instance


def _cannot_be_placed(instance: SynergyPlacement, configs: int = 1) -> str | None:
    """Describe how the second program has no solution; CPUs and memory count once for each of some configurations."""
    counted = replace(instance, demands=instance.demands * np.array([1.0, configs, configs]))
    if formulations.solve(second_stage(counted)).status == "optimal":
        return None
    cpus, memory = counted.demands[:, 1:].sum(axis=0)
    return f"with {configs} configurations for each job, {cpus:g} cores and {memory:g} GB are counted"


def _fit_in_total(instance: SynergyPlacement) -> bool:
    """Return whether no job demands more of any resource than a server has, and all no more than all servers have."""
    whole = instance.capacity
    one = bool((instance.demands <= whole).all())
    return one and bool((instance.demands.sum(axis=0) <= instance.num_servers * whole).all())


JOBS_OF_A_SERVER = "homogeneous servers, no job demands more of any resource than one server has."

CLAIMS: list[Claim] = [
    Claim(
        name="second_program_fragments_few",
        source="Synergy, appendix A.1.3, Theorem A.2",
        statement="The second program fragments at most 3s jobs over s servers.",
        reading="of a vertex, as the proof has it: the one that the simplex method returns, checked to be one; (18) is "
        "an equation and (19) says at least 0. A job is fragmented when it is on more than one server.",
        instances=lambda rng: itertools.islice(_filled_servers(rng), 200),
        breaks=_vertex_fragments,
        assumes=_fit_in_total,
        scope="random: up to 3 servers that hold up to 24 jobs with next to nothing to spare",
        shrink=False,
        assumptions=JOBS_OF_A_SERVER,
        relaxed="demands are drawn, not those of a first program.",
        others=(
            Reading(
                "of a vertex, with (18) as printed: the shares of a job are at least 1 in all.", _vertex_with_surplus
            ),
            Reading(
                "of any solution, not of a vertex only: the program has no objective, so that every feasible point is "
                "an optimum. The one tried spreads every job evenly.",
                _even_spread_fragments,
                lambda rng: _equal_jobs(),
                scope="up to 24 equal jobs that fill up to 3 servers",
                assumes=_fit_in_total,
                plans=plans_of(("spread evenly", _even_spread), OPTIMAL),
            ),
            Reading(
                "with (19) as printed: all shares are above 0, so that every job is on every server.",
                _on_every_server,
                lambda rng: _equal_jobs(),
                scope="up to 24 equal jobs that fill up to 3 servers",
                assumes=_fit_in_total,
                plans=plans_of(("spread evenly", _even_spread), OPTIMAL),
            ),
        ),
    ),
    Claim(
        name="second_program_has_a_solution",
        source="Synergy, appendix A.1.3, program (15)-(19)",
        statement="What the first program gives to each job can be placed by the second one.",
        reading="(16) and (17) add up each job's CPUs and memory once; the sum over configurations in them is a slip.",
        instances=lambda rng: _small_servers(),
        breaks=_cannot_be_placed,
        assumes=_fit_in_total,
        scope="up to 3 jobs of 1 or 2 GPUs, that fit up to 2 servers of 2 GPUs, 2 cores and 2 GB in total",
        exhaustive=True,
        assumptions=JOBS_OF_A_SERVER,
        relaxed="demands are small whole numbers, not those of a first program.",
        others=(
            Reading(
                "literally: a job's CPUs and memory are added up once for each configuration of its profile, of which "
                "it has two.",
                partial(_cannot_be_placed, configs=2),
            ),
        ),
    ),
]
