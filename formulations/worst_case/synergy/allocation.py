"""Worst case of the marginal greedy on :class:`instances.synergy.allocation.SynergyAllocation` with one resource.

The jobs are those of :mod:`formulations.worst_case.synergy.tuning`: n of one GPU on n GPUs with q cores for each, of
which some need b <= q cores only, and others, the *sensitive* ones, gain by e cores more than their q, by e / q at most
of their throughput.  The greedy gives the cores that nobody needs to sensitive jobs by gain for each core, the greatest
first, each if its e cores are there.

Jobs are numbered in that order, sensitive ones first.  For fixed e the values are n and sums over falling gains per
core, which are sums of multiples of (1, ..., 1, 0, ..., 0).  The quotient of two linear functions of the multiples, of
which the sum is at most 1 / q, is greatest at a vertex: the first k jobs gain 1 / q for each core, and the others gain
nothing, so that they are not sensitive.  What is left to choose are b and e:

    max  (n q + cores that any sensitive jobs take) / (n q + cores that the greedy's take).
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import pyomo.environ as pyo

from formulations.worst_case.proving import InstanceClass, WorstCaseModel
from instances.arguments import Count, checked
from instances.schema import Scalar
from instances.synergy.allocation import SynergyAllocation

__all__ = ["WORST_CASES", "greedy_marginal", "read"]

AHEAD = 1e-7
"""Part by which each job's gain is less than that of the one before it, so that rounding does not decide the order."""

Cores = Annotated[int, Scalar(int, minimum=1, maximum=16)]


@checked
def greedy_marginal(*, num_jobs: Count, cores_per_gpu: Cores = 3) -> InstanceClass:
    """Jobs of one GPU that fill a cluster with ``cores_per_gpu`` cores for each."""
    share, cores = cores_per_gpu, num_jobs * cores_per_gpu
    words = (
        f"{num_jobs} jobs of one GPU on {num_jobs} GPUs and {cores} cores; each trains at 1 with {share} cores, and "
        f"gains nothing by more and trains at 1 with a whole number of 1 to {share}, or wants a whole number c of more "
        f"and trains at up to c / {share} with them; memory is not scarce"
    )
    return InstanceClass(words, (_model(n, cores_per_gpu) for n in [num_jobs]))


def _model(num_jobs: int, share: int) -> pyo.ConcreteModel:
    model = pyo.ConcreteModel(name=f"worst case of the marginal greedy, {num_jobs} jobs of {share} cores")
    model.share = share
    model.JOBS = pyo.RangeSet(0, num_jobs - 1)
    most = num_jobs * (share - 1)
    model.EXTRA = pyo.RangeSet(1, max(1, most))
    model.BY = pyo.Set(initialize=[(greedy, other) for greedy in (0, 1) for other in (0, 1)], dimen=2)
    # One variable for the cores beyond the share and for who gives them, or for those below it that are needed.
    model.beyond = pyo.Var(model.JOBS, model.EXTRA, model.BY, domain=pyo.Binary)
    model.needs = pyo.Var(model.JOBS, pyo.RangeSet(1, share), domain=pyo.Binary)

    def cores(job: int, *, greedy: tuple[int, ...] = (0, 1), other: tuple[int, ...] = (0, 1), each: int = 0) -> Any:
        """Cores beyond the share that a job wants, or ``each`` in place of them, where it gets them as told."""
        return pyo.quicksum(
            (each or extra) * model.beyond[job, extra, a, b] for extra in model.EXTRA for a in greedy for b in other
        )

    sensitive = [cores(job, each=1) for job in model.JOBS]
    left = pyo.quicksum((share - b) * model.needs[job, b] for job, b in model.needs)
    model.one_demand = pyo.Constraint(
        model.JOBS, rule=lambda m, j: sensitive[j] + pyo.quicksum(m.needs[j, b] for b in range(1, share + 1)) == 1
    )
    model.sensitive_first = pyo.Constraint(range(1, num_jobs), rule=lambda m, j: sensitive[j] <= sensitive[j - 1])

    def before(job: int) -> Any:
        return pyo.quicksum(cores(k, greedy=(1,)) for k in range(job))

    model.fits = pyo.Constraint(expr=before(num_jobs) <= left)
    # Of the cores that are left there are at most ``most``.
    model.does_not_fit = pyo.Constraint(
        model.JOBS,
        rule=lambda m, j: (
            before(j) + cores(j, greedy=(0,)) >= left + 1 - (most + 1) * (1 - cores(j, greedy=(0,), each=1))
        ),
    )
    given = pyo.quicksum(cores(job, other=(1,)) for job in model.JOBS)
    model.witness_fits = pyo.Constraint(expr=given <= left)
    model.heuristic_value = pyo.Expression(expr=num_jobs + before(num_jobs) / share)
    model.witness_value = pyo.Expression(expr=num_jobs + given / share)
    return model


def read(model: pyo.ConcreteModel) -> SynergyAllocation:
    """Return the jobs in the values of ``beyond`` and ``needs``, each with one GB of as many as there are jobs."""
    share, configs = model.share, []
    for job in model.JOBS:
        extra = sum(e for e in model.EXTRA for by in model.BY if model.beyond[(job, e, *by)].value > 0.5)
        needed = sum(b for b in range(1, share + 1) if model.needs[job, b].value > 0.5)
        faster = [[share + extra, 1.0, 1 + extra / share * (1 - AHEAD * job)]] if extra else []
        configs.append(np.array([[needed or share, 1.0, 1.0], *faster]))
    return SynergyAllocation(
        num_servers=1,
        server_gpus=len(configs),
        server_cpus=float(share * len(configs)),
        server_memory=float(len(configs)),
        gpu_demands=np.ones(len(configs), np.int64),
        configs=tuple(configs),
    )


WORST_CASES = {"greedy_marginal": WorstCaseModel(greedy_marginal, read, ties="either way", least=1)}
