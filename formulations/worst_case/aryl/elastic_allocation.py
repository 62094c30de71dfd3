"""Worst cases on :class:`instances.aryl.elastic_allocation.ElasticAllocation`: marginal greedy and dynamic programs.

Each job can take one more worker, of g[j] GPUs, so that this is a knapsack.  Jobs are numbered by what they gain for
each GPU, most first; then what the greedy takes depends on the sizes alone.  For fixed sizes the ratio is that of two
sums over falling gains per GPU, and falling numbers are sums of multiples of (1, ..., 1, 0, ..., 0): it is greatest at
one of these.  So the worst instance has k jobs that all gain 1 s for each GPU, in the order in which the greedy takes
ties, the lowest number first, and others that gain nothing.  What is left to choose are the sizes:

    max  GPUs that any jobs fill / GPUs that the greedy fills
    s.t. left[j] = capacity - sum of g of the jobs before j that are taken
         taken[j] = 1 if and only if g[j] <= left[j].

A job that gains nothing is of no use to either side, so that fewer jobs are a case of more.

The dynamic programs, of which that of the paper's line 17 charges a job that grows its base worker once more, have a
trace for any gains: with ``best[j, c]`` what the first j jobs reach with c GPUs, and w[j] what job j is charged,

    best[j, c] >= best[j - 1, c],    best[j, c] >= best[j - 1, c - w[j]] + gain[j].

Where the worst case makes ``best`` as little as can be it is the program's.  Sizes, in rising order, are a part each,
and so is who grows in the other plan, to whom no other job can be added; then all is linear in the gains.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement, product
from typing import Annotated, Any

import numpy as np
import pyomo.environ as pyo

from formulations.worst_case.pieces import whole_multiples
from formulations.worst_case.proving import InstanceClass, WorstCaseModel
from instances.arguments import Count, checked
from instances.aryl.elastic_allocation import ElasticAllocation
from instances.base import InstanceError
from instances.schema import Scalar

__all__ = ["WORST_CASES", "base_charged_again", "dynamic_program", "marginal_greedy", "read", "read_gains"]

Gpus = Annotated[int, Scalar(int, minimum=1, maximum=1000)]


@checked
def marginal_greedy(*, num_jobs: Count, capacity: Gpus = 16, worker_gpus: Gpus = 8) -> InstanceClass:
    """Jobs that can take one worker more, of 1 to ``worker_gpus`` GPUs."""
    words = (
        f"{num_jobs} jobs that can take one more worker each, of 1 to {worker_gpus} GPUs, for any gain; {capacity} GPUs"
    )
    return InstanceClass(words, (_model(n, capacity, worker_gpus) for n in [num_jobs]))


def _model(num_jobs: int, capacity: int, worker_gpus: int) -> pyo.ConcreteModel:
    model = pyo.ConcreteModel(name=f"worst case of the marginal greedy, {num_jobs} jobs on {capacity} GPUs")
    model.capacity = capacity
    model.JOBS = pyo.RangeSet(0, num_jobs - 1)
    model.SIZES = pyo.RangeSet(1, worker_gpus)
    # One variable for a job's size and for who takes it, so that no product is needed.
    model.BY = pyo.Set(initialize=[(greedy, other) for greedy in (0, 1) for other in (0, 1)], dimen=2)
    model.size = pyo.Var(model.JOBS, model.SIZES, model.BY, domain=pyo.Binary)

    def gpus(job: int, *, greedy: tuple[int, ...] = (0, 1), other: tuple[int, ...] = (0, 1), each: int = 0) -> Any:
        """GPUs of a job, or ``each`` in place of them, where it is taken as the tuples say."""
        return pyo.quicksum(
            (each or size) * model.size[job, size, a, b] for size in model.SIZES for a in greedy for b in other
        )

    model.one_size = pyo.Constraint(model.JOBS, rule=lambda m, job: gpus(job, each=1) == 1)

    def before(job: int) -> Any:
        return pyo.quicksum(gpus(k, greedy=(1,)) for k in range(job))

    model.fits = pyo.Constraint(expr=before(num_jobs) <= capacity)
    model.does_not_fit = pyo.Constraint(
        model.JOBS,
        rule=lambda m, job: before(job) + gpus(job, greedy=(0,)) >= (capacity + 1) * gpus(job, greedy=(0,), each=1),
    )
    model.heuristic_value = pyo.Expression(expr=before(num_jobs))
    model.witness_value = pyo.Expression(expr=pyo.quicksum(gpus(job, other=(1,)) for job in model.JOBS))
    model.witness_fits = pyo.Constraint(expr=model.witness_value <= capacity)
    return model


def read(model: pyo.ConcreteModel) -> ElasticAllocation:
    """Jobs of the sizes in the values of ``size``, which gain 1 s for each GPU from a second worker."""
    sizes = [size for job, size, *by in model.size if model.size[(job, size, *by)].value > 0.5]
    return _growing(sizes, sizes, model.capacity)


@checked
def dynamic_program(*, num_jobs: Count, capacity: Gpus = 8, worker_gpus: Gpus = 4) -> InstanceClass:
    """Jobs that can take one worker more, of 1 to ``worker_gpus`` GPUs."""
    return _programmed(num_jobs, capacity, worker_gpus, charged=1)


@checked
def base_charged_again(*, num_jobs: Count, capacity: Gpus = 8, worker_gpus: Gpus = 4) -> InstanceClass:
    """Jobs that can take one worker more, of 1 to ``worker_gpus`` GPUs, of which the capacity holds two at least."""
    if 2 * worker_gpus > capacity:
        # A worker that is never taken, however much it gains, leaves no limit.
        raise InstanceError(f"worker_gpus: got {worker_gpus}, must be at most half the capacity, {capacity}")
    return _programmed(num_jobs, capacity, worker_gpus, charged=2)


def _programmed(num_jobs: int, capacity: int, worker_gpus: int, *, charged: int) -> InstanceClass:
    words = (
        f"{num_jobs} jobs that can take one more worker each, of 1 to {worker_gpus} GPUs, for any gain; {capacity} GPUs"
    )
    every = combinations_with_replacement(range(1, min(worker_gpus, capacity) + 1), num_jobs)
    parts = (_program(sizes, capacity, grown, charged) for sizes in every for grown in _others(sizes, capacity))
    return InstanceClass(words, parts, scalable=True)


def _others(sizes: tuple[int, ...], capacity: int) -> Iterator[tuple[bool, ...]]:
    """Return who can grow at once, with no room for anybody else."""
    for grown in product((False, True), repeat=len(sizes)):
        left = capacity - sum(size for size, one in zip(sizes, grown, strict=True) if one)
        if left >= 0 and all(one or size > left for size, one in zip(sizes, grown, strict=True)):
            yield grown


def _program(sizes: tuple[int, ...], capacity: int, grown: tuple[bool, ...], charged: int) -> pyo.ConcreteModel:
    model = pyo.ConcreteModel(name=f"worst case of the dynamic program, workers of {sizes} on {capacity} GPUs")
    model.sizes, model.capacity = sizes, capacity
    model.JOBS = pyo.RangeSet(0, len(sizes) - 1)
    model.GPUS = pyo.RangeSet(0, capacity)
    model.gain = pyo.Var(model.JOBS, domain=pyo.NonNegativeReals)
    model.best = pyo.Var(model.JOBS, model.GPUS, domain=pyo.NonNegativeReals)

    def before(job: int, gpus: int) -> Any:
        return model.best[job - 1, gpus] if job else 0.0

    def with_it(model: pyo.ConcreteModel, job: int, gpus: int) -> Any:
        left = gpus - charged * sizes[job]
        return model.best[job, gpus] >= before(job, left) + model.gain[job] if left >= 0 else pyo.Constraint.Skip

    model.without_it = pyo.Constraint(
        list(model.JOBS)[1:], model.GPUS, rule=lambda m, job, gpus: m.best[job, gpus] >= before(job, gpus)
    )
    model.with_it = pyo.Constraint(model.JOBS, model.GPUS, rule=with_it)
    model.heuristic_value = pyo.Expression(expr=model.best[len(sizes) - 1, capacity])
    model.witness_value = pyo.Expression(expr=pyo.quicksum(model.gain[job] for job in model.JOBS if grown[job]))
    model.unit = pyo.Constraint(expr=model.heuristic_value == 1)
    return model


def read_gains(model: pyo.ConcreteModel) -> ElasticAllocation:
    """Return jobs of the part's sizes, with the gains in the values of ``gain``, in a unit that makes them whole."""
    return _growing(model.sizes, whole_multiples(model.gain[job].value for job in model.JOBS), model.capacity)


def _growing(sizes: Sequence[int], gains: Sequence[int], capacity: int) -> ElasticAllocation:
    ones = np.ones(len(sizes), np.int64)
    return ElasticAllocation(
        capacity=capacity,
        min_workers=ones,
        max_workers=2 * ones,
        gpus_per_worker=np.array(sizes),
        min_running_times=np.array(gains, float),
    )


WORST_CASES = {
    "base_charged_again": WorstCaseModel(base_charged_again, read_gains),
    "dynamic_program": WorstCaseModel(dynamic_program, read_gains),
    "marginal_greedy": WorstCaseModel(marginal_greedy, read, least=1),
}
