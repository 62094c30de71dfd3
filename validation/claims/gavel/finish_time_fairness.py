"""Claims of Gavel (OSDI'20) about finish-time fairness."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from formulations.gavel.sharing import SharingProgram
from heuristics.gavel.finish_time_fairness import same_ratio
from instances.gavel.finish_time_fairness import FinishTimeFairness
from validation.claims.claim import Claim, Reading
from validation.claims.gavel.clusters import Family, can_be, of_family
from validation.claims.gavel.optima import attained, missed
from validation.claims.gavel.properties import homogeneous, job_incentive, objective_incentive
from validation.claims.plans import OPTIMAL, plans_of

__all__ = ["CLAIMS"]

_NEW = Family(FinishTimeFairness, 3, (1, 2), jobs={"steps": (1.0, 2.0)})
_RUNNING = Family(
    FinishTimeFairness, 2, (1, 2), jobs={"steps": (1.0,), "elapsed": (0.0, 1.0, 2.0), "isolated_elapsed": (0.0, 1.0)}
)

LARGEST = 100
"""Denominator up to which a fraction counts as one of small whole numbers."""


def _not_in_the_reciprocal(instance: FinishTimeFairness) -> str | None:
    """Describe how the program in the reciprocal misses the optimum for new jobs."""
    program = SharingProgram(instance)
    rate = program.variable("rate", lower=0)
    program.constraint("finish", 1 / instance.isolated_throughputs * program.throughput >= rate)
    program.maximize("greatest_rate", rate)
    return missed(instance, program)


def _no_fraction(instance: FinishTimeFairness) -> str | None:
    """Describe how the optimum is no fraction of small whole numbers."""
    value, _ = attained(instance)
    if abs(float(Fraction(value).limit_denominator(LARGEST)) - value) <= 1e-6:
        return None
    return f"the optimum is {value:.9g}, and no fraction of a denominator up to {LARGEST} is within 1e-6 of it"


def _with_a_past(rng: np.random.Generator) -> Iterator[FinishTimeFairness]:
    """Yield two jobs on one worker, of 1 to 3 s each, which have waited for 0 to 2 s."""
    for steps in itertools.product((1.0, 2.0, 3.0), repeat=2):
        for elapsed in itertools.product((0.0, 1.0, 2.0), repeat=2):
            yield FinishTimeFairness(
                throughputs=np.ones((2, 1)), num_workers=np.array([1]), steps=np.array(steps), elapsed=np.array(elapsed)
            )


CLAIMS: list[Claim] = [
    objective_incentive(FinishTimeFairness),
    job_incentive(_NEW, jobs="for new jobs"),
    job_incentive(_RUNNING, "_running", "for jobs in the middle of their lives"),
    homogeneous(
        "finish_time_fairness",
        FinishTimeFairness,
        same_ratio,
        "time that gives all jobs the same ratio, the least that fits.",
    ),
    of_family(
        _NEW,
        name="one_linear_program_finish_time_fairness",
        source="Gavel, section 4.2",
        statement="Most policies are single linear programs; the exceptions named are the cost policies.",
        reading="of finish-time fairness for new jobs, where ratios are reciprocals of throughputs: the program that "
        "maximises the least throughput(m, X) over throughput(m, X_isolated) finds the optimum.",
        breaks=_not_in_the_reciprocal,
        others=(
            Reading(
                "of finish-time fairness with a past: its optimum is a fraction of small whole numbers where the data "
                "are whole, as that of a linear program is.",
                _no_fraction,
                _with_a_past,
                scope="two jobs of 1 to 3 steps on one worker, which have waited for 0 to 2 s",
                assumes=can_be,
                plans=plans_of(OPTIMAL),
            ),
        ),
    ),
]
