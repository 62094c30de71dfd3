"""Claims of Synergy (OSDI'22) about the first program (sections 4.1.1 and 4.1.3)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

import formulations
from formulations.synergy.allocation import relaxation
from instances.synergy.allocation import SynergyAllocation, SynergyAllocationPlan
from instances.synergy.placement import SynergyPlacementPlan
from instances.synergy.sensitivity import CPU, ROUNDING, THROUGHPUT
from instances.synergy.tuning import Tuning
from validation.claims.claim import Claim, Reading
from validation.claims.plans import better_than, optimal_plan, proven
from validation.claims.synergy.rounds import KEPT, WANTS, are_capped, rounds
from validation.kernel.gaps import beats
from validation.testing.second_opinion import optimum

__all__ = ["CLAIMS"]


def _exceeds_relaxation(instance: Tuning) -> str | None:
    bound = formulations.solve(relaxation(instance.stage_one())).bound
    best = better_than(instance, bound)
    return None if best is None else f"a tuning trains at {best:g}, the bound is {bound:g}"


def _short_of_first_stage(instance: Tuning) -> bool:
    """Return whether no tuning reaches what the first program promises."""
    first, best = optimum(instance.stage_one()), optimum(instance)
    return first is not None and best is not None and beats("max", float(first), float(best))


def _out_of_reach(rng: np.random.Generator) -> Iterator[Tuning]:
    """Yield the smallest round on two servers in which no whole GPUs reach what the first program promises."""
    return itertools.islice(
        (instance for instance in rounds(4, num_servers=(2,)) if _short_of_first_stage(instance)), 1
    )


def _reached_with_whole_gpus(instance: Tuning) -> str | None:
    """Describe how whole GPUs reach the promise of the first program, or shares of GPUs do not either."""
    if not _short_of_first_stage(instance):
        return "whole GPUs reach what the first program promises"
    first = instance.stage_one()
    plan = optimal_plan(first)
    if not isinstance(plan, SynergyAllocationPlan):
        return "the first program has no solution"
    second = first.placement(plan)
    even = SynergyPlacementPlan(shares=np.full((instance.num_jobs, instance.num_servers), 1 / instance.num_servers))
    broken = second.violations(even)
    return f"shares of GPUs do not reach it either: {broken[0]}" if broken else None


def _between_points() -> Iterator[SynergyAllocation]:
    """Yield jobs of one GPU with profiles of 1 to 4 cores, and a share of cores that may lie between two of them."""
    profiles = [((1, 0, 1), (2, 0, 2)), ((1, 0, 1), (2, 0, 2), (3, 0, 3)), ((1, 0, 1), (3, 0, 2), (4, 0, 4))]
    for gpus in range(1, 4):
        for halves in range(2, 7):
            for jobs in itertools.combinations_with_replacement(profiles, gpus):
                yield SynergyAllocation(
                    num_servers=1,
                    server_gpus=gpus,
                    server_cpus=gpus * halves / 2,
                    server_memory=0.0,
                    gpu_demands=np.ones(gpus, int),
                    configs=tuple(np.array(job, float) for job in jobs),
                )


def _single_gpus(instance: SynergyAllocation) -> bool:
    """Return whether jobs of one GPU hold all GPUs of a server."""
    return bool((instance.gpu_demands == 1).all()) and instance.num_jobs == instance.server_gpus


def _without_solution(instance: SynergyAllocation) -> str | None:
    """Describe how the first program has no solution."""
    solution, _ = proven(instance)
    return None if solution.status == "optimal" else f"the program is {solution.status}: {solution.message}"


def _without_solution_above(instance: SynergyAllocation) -> str | None:
    """Describe how the first program has no solution, where a share takes the next point with as many cores."""
    fair = []
    for table, (cpus, _) in zip(instance.configs, instance.shares, strict=True):
        enough = table[table[:, CPU] >= cpus * (1 - ROUNDING)]
        fair.append(enough[0, THROUGHPUT] if len(enough) else table[:, THROUGHPUT].max())
    return _without_solution(replace(instance, fair_throughputs=np.array(fair)))


_claim = partial(Claim, exhaustive=True, assumes=are_capped, assumptions=KEPT, relaxed="")

CLAIMS: list[Claim] = [
    _claim(
        name="relaxation_bounds_tunings",
        source="Synergy, section 4.1.1, Theorem 4.1",
        statement="The value of the relaxed first program, with the cluster as one super-machine, is at least the "
        "throughput of any assignment of the jobs to the servers.",
        reading="assignments are those of synergy.tuning: whole GPUs on each server, CPUs and memory in proportion, "
        "no job slower than with its GPU-proportional share. The best one is found by trying everything.",
        instances=lambda rng: rounds(4),
        breaks=_exceeds_relaxation,
        scope=f"jobs that hold all of up to 4 GPUs on up to 3 servers, and {WANTS}",
    ),
    _claim(
        name="first_program_out_of_reach",
        source="Synergy, section 4.1.3",
        statement="What the first program gives to each job can be hard to realise: placing it may take fractions of "
        "GPUs.",
        reading="there is such a round: the smallest one in which no assignment with whole GPUs on each server has "
        "the throughput that the first program promises, in whole configurations, while shares of GPUs do: every job "
        "spread evenly.",
        instances=_out_of_reach,
        breaks=_reached_with_whole_gpus,
        scope=f"of jobs that hold all of up to 4 GPUs on 2 servers, and {WANTS}, the first out of reach",
    ),
    _claim(
        name="first_program_has_a_solution",
        source="Synergy, section 4.1.1, program (1)-(5)",
        statement="The first program has a solution: that every job has at least the progress of its GPU-proportional "
        "share, (5), leaves the shares themselves.",
        reading="where the share is no point of the profile, the progress with it is that of the best point at or "
        "below it.",
        instances=lambda rng: _between_points(),
        assumes=_single_gpus,
        by="the library: the paper takes it for granted",
        breaks=_without_solution,
        scope="up to 3 jobs of one GPU that hold all GPUs of a server, with profiles of 2 or 3 of 1 to 4 cores, where "
        "the share is 1 to 3 cores in steps of a half",
        assumptions=f"{KEPT} They have discrete points.",
        others=(
            Reading(
                "where the share is no point of the profile, the progress with it is that of the next point with as "
                "many cores.",
                _without_solution_above,
            ),
        ),
    ),
]
