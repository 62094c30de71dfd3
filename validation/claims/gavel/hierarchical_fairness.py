"""Claims of Gavel (OSDI'20) about hierarchical fairness."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

import formulations
from formulations.gavel.sharing import SharingProgram
from formulations.methods.water_filling import printed_water_filling
from instances.base import agree
from instances.gavel.hierarchical_fairness import (
    HierarchicalAllocation,
    HierarchicalFairness,
    four_jobs,
    growing_cluster,
)
from instances.gavel.max_min_fairness import MaxMinFairness
from instances.gavel.sharing import Allocation
from instances.schema import FloatArray
from validation.claims.assumed import only
from validation.claims.claim import Claim, OnAverage, Reading
from validation.claims.gavel.clusters import FAMILY_ASSUMPTIONS, Family, of_family
from validation.claims.gavel.optima import attained, run
from validation.claims.gavel.properties import wasteful
from validation.claims.plans import OPTIMAL, plans_of

__all__ = ["CLAIMS", "static_partition", "total_throughput"]

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


# --- entities ---------------------------------------------------------------------------------------

_OWNED = Family(HierarchicalFairness, 3, (1, 2))


def _entities(rng: np.random.Generator) -> Iterator[HierarchicalFairness]:
    """Yield the small clusters with all ways to divide the jobs between two entities of weights 1 and 1, 2 or 3."""
    for instance in _OWNED.instances(rng):
        assert isinstance(instance, HierarchicalFairness)
        for owners in itertools.product((0, 1), repeat=instance.num_jobs):
            if len(set(owners)) < 2:
                continue
            for weight in (1.0, 2.0, 3.0):
                yield replace(
                    instance,
                    entities=np.array(owners),
                    entity_weights=np.array([1.0, weight]),
                    entity_policies=np.array(["fairness", "fairness"]),
                )


def _are_entities(instance: HierarchicalFairness) -> bool:
    """Return whether it is a small cluster of two entities that have jobs, the first of weight 1, alike within."""
    return (
        instance.num_entities == 2
        and set(instance.entities.tolist()) == {0, 1}
        and instance.entity_weights[0] == 1
        and float(instance.entity_weights[1]) in (1, 2, 3)
        and set(instance.entity_policies.tolist()) == {"fairness"}
        and bool((instance.weights == 1).all())
        and _OWNED.has(instance)
    )


def _by_entity(instance: HierarchicalFairness, of_jobs: FloatArray) -> FloatArray:
    return np.bincount(instance.entities, weights=of_jobs, minlength=instance.num_entities) / instance.entity_weights


def _apart(instance: HierarchicalFairness, of_jobs: FloatArray, what: str) -> str | None:
    """Describe how entities differ in what their jobs have, relative to their weights."""
    each = _by_entity(instance, of_jobs)
    if float(np.ptp(each)) <= PRECISION * float(each.max()):
        return None
    told = " and ".join(f"{amount:.6g}" for amount in each * instance.entity_weights)
    return f"the entities have {told} {what}, at weights {instance.entity_weights.tolist()}"


def _shares_of_throughput(instance: HierarchicalFairness) -> str | None:
    """Describe how what entities' jobs end at is not in proportion to their weights."""
    return _apart(instance, _levels(instance), "of throughput over that of an equal share")


def _first_shares(instance: HierarchicalFairness) -> str | None:
    """Describe the same where no job has all that it can have."""
    return None if _stops(instance, _levels(instance)) else _shares_of_throughput(instance)


def _stops(instance: HierarchicalFairness, levels: FloatArray) -> bool:
    """Return whether a job runs all the time where it is fastest, so that its weight is for others."""
    return bool((levels >= instance.ceilings * (1 - PRECISION)).any())


def _shares_of_workers(instance: HierarchicalFairness) -> str | None:
    """Describe how in all optimal allocations entities' time on workers is apart from their weights; no job stops."""
    levels = _levels(instance)
    if _stops(instance, levels):
        return None
    ends = [_held(instance, levels, sign) for sign in (1, -1)]
    told = [_apart(instance, held, "workers") for held in ends]
    # Mixing the two attains everything between them.
    apart = np.prod([np.diff(_by_entity(instance, held)) for held in ends]) > 0
    return told[0] if apart and None not in told else None


def _held(instance: HierarchicalFairness, levels: FloatArray, sign: int) -> FloatArray:
    """Return jobs' time on workers, (n,), where entity 1 has most of it, or with -1 least, relative to entity 0."""
    program = SharingProgram(instance)
    # A hair less, so that rounding leaves an allocation.
    program.constraint("levels", instance.level_per_throughput * program.throughput >= levels * (1 - 1e-9))
    worth = np.where(instance.entities, sign, -sign) / instance.entity_weights[instance.entities]
    workers = np.repeat(instance.scale_factors[:, None], instance.num_types, axis=1)
    program.maximize("apart", (workers * worth[:, None] * program.time_fractions).sum())
    found = run(instance, program)
    assert found is not None
    held: FloatArray = found.time_fractions.sum(axis=1) * instance.scale_factors
    return held


# --- Figure 12 --------------------------------------------------------------------------------------


def _growing(rng: np.random.Generator) -> Iterator[HierarchicalFairness]:
    """Yield Figure 12's cluster with speeds drawn for its 18 jobs, at each step at which a job comes in turn."""
    while True:
        # The gain of a V100 over a K80 is from 2 to 10 (section 1), that of a P100 lies between.
        gains = rng.uniform(2.0, 10.0, 18)
        speeds = np.stack([gains, 1 + (gains - 1) * rng.uniform(0.2, 0.9, 18), np.ones(18)], axis=1)
        for there in range(6, 19, 4):
            whole = growing_cluster(4 * (there - 1))
            yield replace(whole, throughputs=speeds[:there])


def _as_figure_12(instance: HierarchicalFairness) -> bool:
    """Return whether it is Figure 12's cluster with some of its jobs, of any speeds from fast to slow types."""
    there = instance.num_jobs
    same = growing_cluster(4 * (there - 1)) if 1 <= there <= 18 else None
    return same is not None and replace(same, throughputs=instance.throughputs) == instance


def static_partition(instance: HierarchicalFairness) -> Allocation:
    """Return each job's share of every type by its entity's weight and its own, at most all of the job's time."""
    rates = instance.rates(np.zeros(instance.num_jobs, bool))
    times = np.outer(rates / rates.sum(), instance.num_workers[instance.pools]) / instance.scale_factors[:, None]
    return Allocation(time_fractions=times / np.maximum(1.0, times.sum(axis=1, keepdims=True)))


def total_throughput(instance: HierarchicalFairness, plan: Allocation) -> float:
    """Return the throughputs of all jobs, each relative to that on its fastest type, added up."""
    return float((instance.throughput(plan) / instance.fastest_throughputs).sum())


def _times_static(instance: HierarchicalFairness, *, claimed: float = 1.0) -> float:
    """Return the policy's total throughput over what is claimed of it beside the static partition's."""
    plan = formulations.solve(instance).plan
    assert isinstance(plan, HierarchicalAllocation)
    return claimed * total_throughput(instance, plan) / total_throughput(instance, static_partition(instance))


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
    Claim(
        name="entity_shares_by_weight",
        source="Gavel, section 4.3",
        statement="The jobs of an entity receive a total share of the cluster in proportion to the entity's weight.",
        reading="a share is normalised throughput, which is what the policy divides; all that the jobs end with.",
        instances=_entities,
        breaks=_shares_of_throughput,
        assumes=_are_entities,
        ties="do not matter",
        scope=f"{_OWNED.scope}; two entities of weights 1 and 1, 2 or 3, fair within",
        exhaustive=True,
        assumptions=FAMILY_ASSUMPTIONS,
        relaxed="",
        plans=plans_of(OPTIMAL),
        others=(
            Reading(
                "a share is normalised throughput, where no job has all that it can have, so that weight is left over.",
                _first_shares,
            ),
            Reading(
                "a share is time on workers, where no job has all that it can have.",
                _shares_of_workers,
                ties="every way",
            ),
        ),
    ),
    Claim(
        name="static_partition_costs_throughput",
        source="Gavel, section 7.3 and Figure 12b",
        statement="Statically partitioning resources by the weights of entities and users has about 17 % less total "
        "effective throughput than the heterogeneity-aware policy.",
        reading="on the average the policy's total is greater; a job's throughput counts relative to its fastest type.",
        instances=_growing,
        breaks=OnAverage(_times_static, "as much"),
        assumes=_as_figure_12,
        ties="by number",
        scope="Figure 12's cluster with 6, 10, 14 and 18 of its jobs, speeds drawn: 2 to 10 times as fast on a V100 as "
        "on a K80, on a P100 20 to 90 % of the way",
        assumptions="those of Figure 12: 3 workers of each type, six jobs of each entity, weights 1, 2 and 3, fair "
        "within entities.",
        relaxed="the jobs' speeds are not printed.",
        others=(
            Reading(
                "on the average the policy's total is at least 1 / 0.83 of the partition's: this has 17 % less.",
                OnAverage(partial(_times_static, claimed=0.83), "as much as claimed"),
            ),
        ),
    ),
]
