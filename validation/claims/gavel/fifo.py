"""Claims of Gavel (OSDI'20) about first in, first out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from instances.gavel.fifo import Fifo, near_tie
from instances.gavel.sharing import Allocation, Sharing
from validation.claims.claim import Claim, Reading
from validation.claims.gavel.clusters import Family, can_be, drawn
from validation.claims.gavel.optima import best_of_the_optima
from validation.claims.gavel.properties import homogeneous, job_incentive, objective_incentive
from validation.claims.plans import OPTIMAL, plans_of
from validation.kernel.gaps import beats

__all__ = ["CLAIMS"]


def _one_after_the_other(instance: Sharing, order: list[int]) -> Allocation:
    """Return the allocation that serves jobs in an order, each for as much of its time as there are workers left."""
    left = float(instance.num_workers[0])
    x = np.zeros((instance.num_jobs, 1))
    for job in order:
        workers = float(instance.scale_factors[job])
        x[job] = min(1.0, left / workers)
        left -= workers * float(x[job, 0])
    return Allocation(time_fractions=x)


def _arrival_order(instance: Sharing) -> Allocation:
    return _one_after_the_other(instance, list(range(instance.num_jobs)))


def _by_weight(instance: Sharing) -> Allocation:
    """Return the optimum of a knapsack in fractions: the most weight for each worker first."""
    weights = np.arange(instance.num_jobs, 0, -1) / instance.scale_factors
    return _one_after_the_other(instance, np.argsort(-weights, kind="stable").tolist())


_SMALL = Family(Fifo, 3, (1, 2), ordered=True)
_ONE_WORKER = Family(Fifo, 4, (1, 2), ordered=True, most_types=1, workers=(1, 2, 3))
_WIDE = Family(Fifo, 4, (1, 2), jobs={"scale_factors": (1, 2, 3)}, ordered=True, most_types=1, workers=(1, 2, 3))


def _first_job_later(instance: Fifo) -> str | None:
    """Describe how every optimal allocation makes the first job slower than its part of an equal split does."""
    worth = np.zeros_like(instance.throughputs)
    worth[0] = 1.0
    found = best_of_the_optima(instance, worth)
    fastest, isolated = float(instance.throughput(found)[0]), float(instance.isolated_throughputs[0])
    if not beats("max", isolated, fastest):
        return None
    return (
        f"the first job has at most {fastest:.6g} steps/s in any optimal allocation, the split gives it {isolated:.6g}"
    )


def _near_tie_first(rng: np.random.Generator) -> Iterator[Sharing]:
    """Yield the worked example, then random jobs of one worker."""
    yield near_tie()
    yield from drawn(Fifo, wide=False, pairs=False)(rng)


CLAIMS: list[Claim] = [
    objective_incentive(
        Fifo,
        others=(
            Reading(
                "of the metric that the section names for FIFO, the completion time of the first job: some optimal "
                "allocation makes it no slower than X_isolated does.",
                _first_job_later,
                _near_tie_first,
                scope="a worked example, then random jobs, up to 5 of one worker on up to 3 types",
                assumes=can_be,
                plans=plans_of("isolated", OPTIMAL),
            ),
        ),
    ),
    job_incentive(_SMALL),
    homogeneous(
        "fifo",
        Fifo,
        _arrival_order,
        "serving jobs of one worker in the order of their arrival, while workers are left.",
        _ONE_WORKER,
    ),
    homogeneous(
        "fifo_wide",
        Fifo,
        _by_weight,
        "the policy's own program on one type: sum of (n - m) * X_m, whose optimum serves jobs by weight over workers, "
        "each for as much of its time as there are workers left.",
        _WIDE,
        other=(
            _arrival_order,
            "serving jobs of any number of workers in the order of their arrival, each for as much of its time as "
            "there are workers left.",
        ),
    ),
]
