"""Claims of Gavel (OSDI'20) about max-min fairness."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from heuristics.gavel.sharing import heterogeneity_agnostic
from instances.gavel.max_min_fairness import MaxMinFairness
from instances.gavel.sharing import Allocation, Sharing
from instances.schema import FloatArray
from validation.claims.assumed import only
from validation.claims.claim import Claim, Reading
from validation.claims.gavel.clusters import (
    DRAWN,
    DRAWN_ASSUMPTIONS,
    ONE_WORKER,
    POLICIES,
    WIDE,
    Family,
    are_drawn,
    drawn,
    of_family,
)
from validation.claims.gavel.optima import best_of_the_optima, optimum
from validation.claims.gavel.properties import homogeneous, job_incentive, objective_incentive
from validation.claims.plans import plans_of
from validation.kernel.gaps import beats

__all__ = ["CLAIMS"]


def _split(instance: Sharing) -> Allocation:
    """Return the allocation of 1/n of the time of every pool to each job, whatever its workers."""
    shares = np.tile(instance.num_workers / instance.num_jobs, (instance.num_jobs, 1))
    return instance.on_best_placement(shares / np.maximum(1.0, shares.sum(axis=1, keepdims=True)))


def _infeasible(instance: Sharing, split: Callable[[Sharing], Allocation]) -> str | None:
    """Describe how a split of every pool among the jobs is no allocation."""
    broken = instance.violations(split(instance))
    return f"it breaks {broken[0].rule} by {broken[0].amount:.6g}" if broken else None


def _feasible_split(name: str, jobs: str, family: Family) -> Claim:
    return of_family(
        family,
        name=f"equal_split_feasible_{name}",
        source="Gavel, section 4.4",
        statement="Giving each of n jobs 1/n of every resource is a feasible allocation, whence sharing incentive.",
        reading="of the workers: fractions of time of num_workers / n over the workers that a job holds on every type "
        f"that it fits, scaled down to all of the time where they are more; {jobs}.",
        breaks=lambda instance: _infeasible(instance, type(instance).isolated_share),
        others=(
            Reading(
                f"of the time: fractions of num_workers / n on every type, whatever workers a job holds; {jobs}.",
                partial(_infeasible, split=_split),
                plans=plans_of(("1/n of the time", _split)),
            ),
        ),
    )


def _no_gain(instance: MaxMinFairness) -> str | None:
    """Describe how job 0 has no gain from reporting the speeds of ``_LIE``, whichever optimal allocations are found."""
    reported = replace(instance, throughputs=np.vstack([_LIE, instance.throughputs[1:]]))
    honest, lying = _own(instance, instance.throughputs[0], 1), _own(reported, instance.throughputs[0], -1)
    if beats("max", lying, honest):
        return None
    return f"it makes at most {honest:.6g} steps/s in truth, {lying:.6g} by lying"


def _own(reported: MaxMinFairness, speeds: FloatArray, sign: int) -> float:
    """Return what job 0 truly makes at ``speeds`` under the optimal allocation best, or with -1 worst, for it."""
    worth = np.zeros(reported.throughputs.shape)
    worth[0] = sign * speeds / reported.throughputs[0]
    found = best_of_the_optima(reported, worth)
    return float(speeds @ found.time_fractions[0])


_LIE = np.array([4.0, 2.0])
_USERS = MaxMinFairness(throughputs=np.array([[4.0, 1.0], [2.0, 1.0]]), num_workers=np.array([1, 2]))


def _colocation_hurts(instance: Sharing) -> str | None:
    """Describe how the optimum with pairs is worse than without."""
    alone = replace(instance, pairs=np.zeros((0, 2), np.int64), pair_throughputs=np.zeros((0, instance.num_types, 2)))
    without, with_pairs = optimum(alone), optimum(instance)
    if without is None or (with_pairs is not None and not beats(instance.sense, without[0], with_pairs[0])):
        return None
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
        name="misreporting_can_pay",
        source="Gavel, section 4.4",
        statement="Users who manipulate their throughputs can possibly obtain larger shares: policies need not be "
        "strategy-proof.",
        reading="of max-min fairness, by one case: a job that reports 4 and 2 steps/s in place of 4 and 1 makes more "
        "steps in truth, under every optimal allocation, than under any when it is honest.",
        instances=lambda rng: [_USERS],
        assumes=only(_USERS),
        ties="every way",
        breaks=_no_gain,
        scope="two jobs on two types of 1 and 2 workers",
        exhaustive=True,
        assumptions="each job is a user, and throughputs are what users report.",
        relaxed="",
    ),
    # Of all policies in turn, of which this is the first.
    Claim(
        name="colocation_never_hurts",
        source="Gavel, section 4.4",
        statement="Solutions with colocation are at least as good as without.",
        reading="of the objective, of each of the eight policies: adding the pairs, whatever they make, does not "
        "worsen the optimum.",
        instances=drawn(*POLICIES, slos=True),
        assumes=are_drawn,
        breaks=_colocation_hurts,
        scope=f"the policies in turn; {DRAWN}, and for the cost policies SLOs",
        assumptions=DRAWN_ASSUMPTIONS,
        relaxed="",
    ),
    homogeneous(
        "max_min_fairness",
        MaxMinFairness,
        heterogeneity_agnostic,
        "progressive filling of worker time by weight, which does not look at throughputs.",
    ),
]
