"""What Gavel (OSDI'20) states of max-min fairness, put to the test."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from heuristics.gavel.sharing import heterogeneity_agnostic
from instances.gavel.max_min_fairness import MaxMinFairness
from instances.gavel.sharing import Sharing
from validation.claims.gavel.clusters import DRAWN, ONE_WORKER, POLICIES, WIDE, Family, drawn
from validation.claims.gavel.optima import optimum
from validation.claims.gavel.properties import homogeneous, job_incentive, no_starvation, objective_incentive, wasteful
from validation.gaps import beats
from validation.testing.claims import Claim

__all__ = ["CLAIMS"]


def _split_infeasible(instance: Sharing) -> str:
    """How 1/n of the time of every pool, whatever a job's workers, is no allocation."""
    shares = np.tile(instance.num_workers / instance.num_jobs, (instance.num_jobs, 1))
    plan = instance.on_best_placement(shares / np.maximum(1.0, shares.sum(axis=1, keepdims=True)))
    broken = instance.violations(plan)
    return f"it breaks {broken[0].rule} by {broken[0].amount:.6g}" if broken else ""


def _feasible_split(name: str, jobs: str, family: Family) -> Claim:
    return Claim(
        name=f"equal_split_feasible_{name}",
        source="Gavel, section 4.4",
        statement="Giving each of n jobs 1/n of every resource is a feasible allocation, whence sharing incentive.",
        reading=f"fractions of time of num_workers / n on every type, not divided by the workers that a job holds, and "
        f"scaled down to all of the time where they are more; {jobs}.",
        instances=family.instances,
        breaks=_split_infeasible,
        scope=family.scope,
        exhaustive=True,
    )


def _colocation_hurts(instance: Sharing) -> str:
    """How the optimum with pairs is worse than without."""
    alone = replace(instance, pairs=np.zeros((0, 2), np.int64), pair_throughputs=np.zeros((0, instance.num_types, 2)))
    without, with_pairs = optimum(alone), optimum(instance)
    if without is None or (with_pairs is not None and not beats(instance.sense, without[0], with_pairs[0])):
        return ""
    worse = "none" if with_pairs is None else f"{with_pairs[0]:.6g}"
    return f"the optimum of {instance.problem} is {worse} with pairs, {without[0]:.6g} without"


CLAIMS: list[Claim] = [
    _feasible_split("one_worker", "jobs of one worker", Family(MaxMinFairness, 4, (1,), workers=(1, 2, 3))),
    _feasible_split(
        "wide",
        "jobs of any number of workers",
        Family(MaxMinFairness, 4, (1,), jobs={"scale_factors": (1, 2, 3)}, workers=(1, 2, 3)),
    ),
    objective_incentive(MaxMinFairness),
    job_incentive(ONE_WORKER, jobs="for jobs of one worker"),
    job_incentive(WIDE, "_wide", "for jobs of one or two workers"),
    Claim(
        name="pareto_max_min_fairness",
        source="Gavel, section 4.4",
        statement="Max-min fair allocations are Pareto efficient, if water filling follows: no job can have more "
        "without another having less.",
        reading="without water filling: the optimal allocation that the exact model finds. Others may be efficient, "
        "and which one is found depends on the solver.",
        instances=ONE_WORKER.instances,
        breaks=wasteful,
        scope=ONE_WORKER.scope,
        exhaustive=True,
    ),
    # Of all policies in turn, of which this is the first.
    Claim(
        name="colocation_never_hurts",
        source="Gavel, section 4.4",
        statement="Solutions with colocation are at least as good as without.",
        reading="of the objective, of each of the eight policies: adding the pairs, whatever they make, does not "
        "worsen the optimum.",
        instances=drawn(*POLICIES, slos=True),
        breaks=_colocation_hurts,
        scope=f"the policies in turn; {DRAWN}, and for the cost policies SLOs",
    ),
    homogeneous(
        "max_min_fairness",
        MaxMinFairness,
        heterogeneity_agnostic,
        "progressive filling of worker time by weight, which does not look at throughputs.",
    ),
    no_starvation(ONE_WORKER, jobs="for jobs of one worker"),
    no_starvation(WIDE, "_wide", "for jobs of one or two workers"),
]
