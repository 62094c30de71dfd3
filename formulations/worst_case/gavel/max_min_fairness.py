"""Worst cases of shares that are blind to throughputs on :class:`instances.gavel.max_min_fairness.MaxMinFairness`.

No pairs, equal weights, and no job makes more than ``spread`` times as many steps on one type as on another.  Then
what an equal share of the cluster gives a job may be measured as 1, and what a blind heuristic gives it depends on the
numbers of workers alone: with n jobs, w workers in all and scale factors s[m], the least level is

    min(w / n, least s[m])                      of isolated shares, and of fair worker time
    least s[m] * min(1, w / sum of s[m])        of one fraction of time for all

What is left is the allocation X of the witness and the throughputs that suit it best.  For a given X the level of each
job is linear in its throughputs, and so is greatest at a vertex of what they may be: each type is either fast or slow
for the job, ``spread`` apart.  So a job has one of 2**k - 1 profiles, a choice, and the witness a share of a type for
each profile, which is 0 unless it is the job's:

    level <= s[m] * sum over profiles and types of level of the profile on the type * shares[m, profile, type].

Scale factors are numbers of the model: there is a part for each list of them, in falling order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pyomo.environ as pyo

from formulations.worst_case.pieces import snapped
from formulations.worst_case.proving import InstanceClass, WorstCaseModel
from instances.arguments import Count, Positive, checked
from instances.base import InstanceError
from instances.gavel.max_min_fairness import MaxMinFairness

__all__ = ["WORST_CASES", "blind_shares", "one_fraction", "read"]


@checked
def blind_shares(
    *, num_jobs: Count, num_types: Count = 2, num_workers: Count = 2, spread: Positive = 10.0, widest: Count = 1
) -> InstanceClass:
    """Jobs of 1 to ``widest`` workers on types of ``num_workers`` each, and throughputs up to ``spread`` apart."""
    return _instances(num_jobs, num_types, num_workers, spread, widest, _level_of_worker_time)


@checked
def one_fraction(
    *, num_jobs: Count, num_types: Count = 2, num_workers: Count = 2, spread: Positive = 10.0, widest: Count = 1
) -> InstanceClass:
    """Return the same instances for a heuristic that gives all jobs one fraction of time."""
    return _instances(num_jobs, num_types, num_workers, spread, widest, _level_of_time)


def _level_of_worker_time(workers: int, scale_factors: tuple[int, ...]) -> float:
    return min(workers / len(scale_factors), min(scale_factors))


def _level_of_time(workers: int, scale_factors: tuple[int, ...]) -> float:
    return min(scale_factors) * min(1.0, workers / sum(scale_factors))


def _instances(
    num_jobs: int,
    num_types: int,
    num_workers: int,
    spread: float,
    widest: int,
    level: Callable[[int, tuple[int, ...]], float],
) -> InstanceClass:
    if spread < 1:
        raise InstanceError(f"spread: got {spread:g}, must be at least 1")
    if widest > num_workers:
        raise InstanceError(f"widest: got {widest}, must be at most num_workers, {num_workers}")
    each = "1 worker" if num_workers == 1 else f"{num_workers} workers"
    wide = "one worker" if widest == 1 else f"1 to {widest} workers"
    words = (
        f"{num_jobs} jobs of {wide}, no pairs, equal weights, on {num_types} types of {each}, "
        f"throughputs of a job real and within a factor of {spread:g}"
    )

    def parts() -> Iterator[pyo.ConcreteModel]:
        for scale_factors in combinations_with_replacement(range(widest, 0, -1), num_jobs):
            own = level(num_types * num_workers, scale_factors)
            yield _model(scale_factors, num_types, num_workers, spread, own)

    return InstanceClass(words, parts())


def _model(
    scale_factors: tuple[int, ...], num_types: int, num_workers: int, spread: float, own: float
) -> pyo.ConcreteModel:
    model = pyo.ConcreteModel(name=f"jobs of {', '.join(map(str, scale_factors))} workers")
    # What a job makes on each type, relative to its equal share.  All fast would be all slow.
    speeds = np.array([one for one in product((1.0, spread), repeat=num_types) if min(one) == 1])
    profiles = speeds / speeds.mean(axis=1, keepdims=True)
    model.JOBS = pyo.RangeSet(0, len(scale_factors) - 1)
    model.TYPES = pyo.RangeSet(0, num_types - 1)
    model.PROFILES = pyo.RangeSet(0, len(profiles) - 1)
    model.scale_factors = pyo.Param(model.JOBS, initialize=dict(enumerate(scale_factors)))
    model.workers = pyo.Param(initialize=num_workers)
    model.levels = pyo.Param(model.PROFILES, model.TYPES, initialize=dict(np.ndenumerate(profiles)))

    model.profile = pyo.Var(model.JOBS, model.PROFILES, domain=pyo.Binary)
    model.shares = pyo.Var(model.JOBS, model.PROFILES, model.TYPES, bounds=(0, 1))
    model.one_profile = pyo.Constraint(model.JOBS, rule=lambda m, j: sum(m.profile[j, f] for f in m.PROFILES) == 1)
    model.job_time = pyo.Constraint(
        model.JOBS,
        model.PROFILES,
        rule=lambda m, j, f: sum(m.shares[j, f, k] for k in m.TYPES) <= m.profile[j, f],
    )
    model.pool_capacity = pyo.Constraint(
        model.TYPES,
        rule=lambda m, k: sum(scale_factors[j] * m.shares[j, f, k] for j in m.JOBS for f in m.PROFILES) <= num_workers,
    )
    # Weights are equal, and make the heuristic's level 1.
    model.weight = pyo.Param(initialize=own)
    # No job makes more than all the time on its fastest type.
    model.witness_value = pyo.Var(bounds=(0, float(profiles.max()) * max(scale_factors) / own))
    model.heuristic_value = pyo.Expression(expr=1.0)
    entries = [(f, k) for f in model.PROFILES for k in model.TYPES]

    def level(model: pyo.ConcreteModel, job: int) -> Any:
        received = scale_factors[job] * sum(model.levels[f, k] * model.shares[job, f, k] for f, k in entries)
        return own * model.witness_value <= received

    model.level = pyo.Constraint(model.JOBS, rule=level)
    return model


def read(model: pyo.ConcreteModel) -> MaxMinFairness:
    """Return the cluster in which jobs have the profiles that are chosen, the slow types with 1 step/s."""
    chosen = [max(model.PROFILES, key=lambda f: model.profile[j, f].value) for j in model.JOBS]
    levels = np.array([[model.levels[f, k] for k in model.TYPES] for f in chosen])
    return MaxMinFairness(
        throughputs=np.vectorize(snapped)(levels / levels.min(axis=1, keepdims=True)),
        num_workers=np.full(len(model.TYPES), pyo.value(model.workers)),
        scale_factors=np.array([model.scale_factors[j] for j in model.JOBS]),
        weights=np.full(len(model.JOBS), pyo.value(model.weight)),
    )


WORST_CASES = {
    "isolated": WorstCaseModel(blind_shares, read),
    "heterogeneity_agnostic": WorstCaseModel(blind_shares, read),
    "equal_share": WorstCaseModel(one_fraction, read),
}
