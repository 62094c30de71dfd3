"""What Synergy (OSDI'22) states of the first program (sections 4.1.1 and 4.1.2), put to the test."""

from __future__ import annotations

import formulations
from formulations.synergy.allocation import relaxation
from instances.synergy.tuning import Tuning
from validation.claims.synergy.rounds import WANTS, best_tuning, rounds
from validation.gaps import beats
from validation.testing.claims import Claim

__all__ = ["CLAIMS", "relaxed"]


def relaxed(instance: Tuning) -> float:
    """Value of the relaxed first program, a proven bound."""
    return formulations.solve(relaxation(instance.stage_one())).bound


def _exceeds_relaxation(instance: Tuning) -> str:
    best = best_tuning(instance)
    if best is None:
        return ""
    bound = relaxed(instance)
    return f"a tuning trains at {best[0]:g}, the bound is {bound:g}" if beats("max", best[0], bound) else ""


def _short_of_first_stage(instance: Tuning) -> str:
    """How no tuning reaches what the first stage promises."""
    first = formulations.solve(instance.stage_one()).objective
    if first is None:
        return ""
    best = best_tuning(instance)
    if best is None:
        return f"the first stage promises {first:g}, but the jobs cannot be placed"
    if not beats("max", first, best[0]):
        return ""
    return f"the first stage promises {first:g}, the best tuning trains at {best[0]:g}"


CLAIMS: list[Claim] = [
    Claim(
        name="relaxation_bounds_tunings",
        source="Synergy, section 4.1.1, Theorem 4.1",
        statement="The value of the relaxed first program, with the cluster as one super-machine, is at least the "
        "throughput of any assignment of the jobs to the servers.",
        reading="assignments are those of synergy.tuning: whole GPUs on each server, CPUs and memory in proportion, "
        "no job slower than with its GPU-proportional share. The best one is found by trying everything.",
        instances=lambda rng: rounds(5),
        breaks=_exceeds_relaxation,
        scope=f"jobs that hold all of up to 5 GPUs on up to 3 servers, and {WANTS}",
        exhaustive=True,
    ),
    Claim(
        name="relaxation_is_attained",
        source="Synergy, sections 4.1.1 and 4.1.2",
        statement="The first program, and a second one that places what it gives to each job, find the best "
        "assignment.",
        reading="the throughput that the first program promises, in whole configurations, is that of some assignment "
        "with whole GPUs on each server. Shares of GPUs would always do: every job spread evenly.",
        instances=lambda rng: rounds(4),
        breaks=_short_of_first_stage,
        scope=f"jobs that hold all of up to 4 GPUs on up to 3 servers, and {WANTS}",
        exhaustive=True,
    ),
]
