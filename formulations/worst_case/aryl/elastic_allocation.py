"""Worst case of the marginal greedy on :class:`instances.aryl.elastic_allocation.ElasticAllocation`.

Each job can take one more worker, of g[j] GPUs, so that this is a knapsack.  Jobs are numbered by what they gain for
each GPU, most first; then what the greedy takes depends on the sizes alone.  For fixed sizes the ratio is that of two
sums over falling gains per GPU, and falling numbers are sums of multiples of (1, ..., 1, 0, ..., 0): it is greatest at
one of these.  So the worst instance has k jobs that all gain 1 s for each GPU, in the order in which the greedy takes
ties, the lowest number first, and others that gain nothing.  What is left to choose are the sizes:

    max  GPUs that any jobs fill / GPUs that the greedy fills
    s.t. left[j] = capacity - sum of g of the jobs before j that are taken
         taken[j] = 1 if and only if g[j] <= left[j].

A job that gains nothing is of no use to either side, so that fewer jobs are a case of more.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import pyomo.environ as pyo

from formulations.worst_case.proving import InstanceClass, WorstCaseModel
from instances.arguments import Count, checked
from instances.aryl.elastic_allocation import ElasticAllocation
from instances.schema import Scalar

__all__ = ["WORST_CASES", "marginal_greedy", "read"]

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
    sizes = np.array([size for job, size, *by in model.size if model.size[(job, size, *by)].value > 0.5])
    ones = np.ones(len(sizes), np.int64)
    return ElasticAllocation(
        capacity=model.capacity,
        min_workers=ones,
        max_workers=2 * ones,
        gpus_per_worker=sizes,
        min_running_times=sizes.astype(float),
    )


WORST_CASES = {"marginal_greedy": WorstCaseModel(marginal_greedy, read, least=1)}
