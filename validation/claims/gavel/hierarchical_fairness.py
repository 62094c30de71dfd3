"""Claims of Gavel (OSDI'20) about hierarchical fairness."""

from __future__ import annotations

import numpy as np

import formulations
from formulations.methods.water_filling import printed_water_filling
from instances.base import agree
from instances.gavel.hierarchical_fairness import HierarchicalAllocation, HierarchicalFairness, four_jobs
from instances.gavel.max_min_fairness import MaxMinFairness
from instances.schema import FloatArray
from validation.claims.assumed import only
from validation.claims.claim import Claim, Reading
from validation.claims.gavel.clusters import Family, of_family
from validation.claims.gavel.optima import attained
from validation.claims.gavel.properties import wasteful
from validation.claims.plans import OPTIMAL, plans_of

__all__ = ["CLAIMS"]

_SMALL = Family(HierarchicalFairness, 3, (1, 2))
_WEIGHTED = Family(HierarchicalFairness, 3, (1,), jobs={"weights": (1.0, 2.0, 4.0)}, most_types=1)
PRECISION = 1e-4
"""Difference up to which levels of two procedures count as equal."""


def _levels(instance: HierarchicalFairness) -> FloatArray:
    plan = formulations.solve(instance).plan
    assert isinstance(plan, HierarchicalAllocation)
    return plan.normalized_throughputs


def _lower_first_level(instance: HierarchicalFairness) -> str | None:
    """Describe how water filling leaves the job that fares worst with less than max-min fairness does."""
    fields = {name: getattr(instance, name) for name in ("throughputs", "num_workers", "weights")}
    best, _ = attained(MaxMinFairness(**fields))
    least = float((_levels(instance) / instance.weights).min())
    return None if agree(least, best) else f"the least level is {least:.6g}, max-min fairness attains {best:.6g}"


def _example(instance: HierarchicalFairness) -> str | None:
    """Describe how the example's jobs end elsewhere than at 1."""
    ends = [printed_water_filling(instance, favoured=job).normalized_throughputs for job in (None, *range(4))]
    ends.append(_levels(instance))
    off = max(float(np.abs(end - 1).max()) for end in ends)
    return f"a job ends {off:.6g} off 1" if off > PRECISION else None


def _by_weight(instance: HierarchicalFairness) -> str | None:
    """Describe how the printed steps, by a choice left open, can end in other levels than the weights give."""
    levels, other = _levels(instance), _other_end(instance)
    if other is None:
        return None
    listed = ", ".join(f"{max(0.0, round(float(level), 4)):g}" for level in other.normalized_throughputs)
    by_weight = ", ".join(f"{round(float(level), 4):g}" for level in levels)
    return f"jobs can end at {listed}; by their weights they rise to {by_weight}"


def _other_end(instance: HierarchicalFairness) -> HierarchicalAllocation | None:
    """Return an allocation of the printed steps with other levels than the weights give; None where there is none."""
    levels = _levels(instance)
    ends = (printed_water_filling(instance, favoured=job) for job in range(instance.num_jobs))
    return next((end for end in ends if np.abs(end.normalized_throughputs - levels).max() > PRECISION), None)


def _filled_by_hand(instance: HierarchicalFairness) -> str | None:
    """Describe how levels on one type differ from weighted filling of its workers; a job stops at all of its time."""
    rising = np.ones(instance.num_jobs, bool)
    levels = np.zeros(instance.num_jobs)
    left = float(instance.num_workers[0])
    while rising.any() and left > 1e-12:
        weights = np.where(rising, instance.weights, 0.0)
        rise = min(left / weights.sum(), float(((1 - levels)[rising] / weights[rising]).min()))
        levels += rise * weights
        left -= rise * float(weights.sum())
        rising &= levels < 1 - 1e-12
    found = _levels(instance)
    differ = np.abs(found - levels).max() > PRECISION
    return f"levels are {found.tolist()}, by hand {levels.tolist()}" if differ else None


CLAIMS: list[Claim] = [
    of_family(
        _SMALL,
        name="pareto_water_filling",
        source="Gavel, section 4.4",
        statement="Max-min fair allocations are Pareto efficient, if water filling follows: no job can have more "
        "without another having less.",
        reading="with water filling: hierarchical fairness of one entity.",
        breaks=wasteful,
    ),
    of_family(
        _SMALL,
        name="water_filling_of_one_level",
        source="Gavel, section 4.3",
        statement="Water filling can be used for the fairness policy of section 4.1 too, where it improves the jobs "
        "that are not bottlenecked.",
        reading="with one entity, it does not lower the least level that max-min fairness attains, and leaves no job "
        "throughput that it could have at no other's expense.",
        breaks=lambda instance: _lower_first_level(instance) or wasteful(instance),
    ),
    Claim(
        name="water_filling_example",
        source="Gavel, section 4.3",
        statement="Of four identical jobs of weights 3, 1, 1 and 1 on four identical GPUs, the first is a bottleneck "
        "after one iteration, and in the next the others are given full GPUs.",
        reading="all end at 1, by the printed steps, whatever optimum of a step is taken, and by levels.",
        instances=lambda rng: [four_jobs()],
        assumes=only(four_jobs()),
        ties="every way",
        breaks=_example,
        scope="the example",
        exhaustive=True,
        assumptions="those of the example.",
        relaxed="",
    ),
    of_family(
        _WEIGHTED,
        name="water_filling_by_weight",
        source="Gavel, section 4.3",
        statement="Water filling raises all parties at equal rates by weight until one is saturated.",
        reading="each step starts from the levels that the weights have given so far: on one type, jobs end where "
        "filling by hand does.",
        breaks=_filled_by_hand,
        ties="every way",
        others=(
            Reading(
                "each step starts from the throughputs that jobs had in the step before, as t_m is printed, whichever "
                "of a step's optimal allocations those are.",
                _by_weight,
                plans=plans_of(("the printed steps", _other_end), OPTIMAL),
            ),
        ),
    ),
]
