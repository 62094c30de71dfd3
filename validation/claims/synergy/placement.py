"""What Synergy (OSDI'22) states of the second program (section 4.1.2, appendix A.1.3), put to the test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from formulations.synergy.placement import vertex
from instances.synergy.placement import SynergyPlacement, SynergyPlacementPlan
from validation.testing.claims import Claim

__all__ = ["CLAIMS"]


def _filled_servers(rng: np.random.Generator) -> Iterator[SynergyPlacement]:
    """Jobs that leave little or nothing free, so that many limits hold with equality."""
    while True:
        num_servers = int(rng.integers(1, 4))
        num_jobs = int(rng.integers(1, 8 * num_servers + 1))
        demands = rng.integers(1, 10, (num_jobs, 3))
        # No less than the jobs need in all.
        gpus, cpus, memory = -(-demands.sum(axis=0) // num_servers)
        yield SynergyPlacement(
            num_servers=num_servers,
            server_gpus=int(gpus),
            server_cpus=float(cpus),
            server_memory=float(memory),
            demands=demands.astype(float),
        )


def _equal_jobs() -> Iterator[SynergyPlacement]:
    """Jobs of one GPU, core and GB each, on servers of equal size that just hold them."""
    for num_jobs, num_servers in itertools.product(range(1, 25), range(1, 4)):
        per_server = -(-num_jobs // num_servers)
        yield SynergyPlacement(
            num_servers=num_servers,
            server_gpus=per_server,
            server_cpus=float(per_server),
            server_memory=float(per_server),
            demands=np.ones((num_jobs, 3)),
        )


def _too_many(instance: SynergyPlacement, plan: SynergyPlacementPlan) -> str:
    """How a solution of the second program fragments more than three jobs for each server."""
    fragmented, most = instance.objective(plan), 3 * instance.num_servers
    if instance.violations(plan) or fragmented <= most:
        return ""
    return f"{fragmented:g} jobs are fragmented, on {instance.num_servers} servers there may be {most}"


def _vertex_fragments(instance: SynergyPlacement) -> str:
    plan = vertex(instance)
    if plan is None:
        return ""
    if instance.violations(plan):
        return f"the vertex breaks {instance.violations(plan)[0].rule}"
    return _too_many(instance, plan)


def _even_spread_fragments(instance: SynergyPlacement) -> str:
    shares = np.full((instance.num_jobs, instance.num_servers), 1 / instance.num_servers)
    return _too_many(instance, SynergyPlacementPlan(shares=shares))


CLAIMS: list[Claim] = [
    Claim(
        name="vertices_fragment_few",
        source="Synergy, appendix A.1.3, Theorem A.2",
        statement="A vertex of the second program fragments at most 3s jobs over s servers.",
        reading="the vertex that the simplex method returns, checked to be one; a job is fragmented when it is on "
        "more than one server.",
        instances=_filled_servers,
        breaks=_vertex_fragments,
        scope="random: up to 3 servers that hold up to 24 jobs with next to nothing to spare",
    ),
    Claim(
        name="solutions_fragment_few",
        source="Synergy, appendix A.1.3, Theorem A.2",
        statement="A solution of the second program fragments at most 3s jobs over s servers.",
        reading="any solution, not a vertex only. The program has no objective, so every feasible point is an "
        "optimum: the one tried spreads every job evenly.",
        instances=lambda rng: _equal_jobs(),
        breaks=_even_spread_fragments,
        scope="up to 24 equal jobs that fill up to 3 servers",
        exhaustive=True,
    ),
]
