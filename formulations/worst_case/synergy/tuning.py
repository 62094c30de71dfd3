"""Worst case of Tune on :class:`instances.synergy.tuning.Tuning` with one server that is full of jobs of one GPU.

Each of n jobs has a share of q cores, with which it trains at 1, and wants c[j] of the n q cores.  Where c[j] <= q
that is all it needs; where c[j] > q it is *sensitive*, and trains at 1 + gain[j] with them.  Jobs are numbered by
falling c, the order in which Tune places them and reverts them, too.  After job j is placed, ``best[i, j]`` says which
of the jobs up to it have what they want; the cores in use are

    used[j] = sum_{i <= j} min(c[i], q) + (c[i] - q) best[i, j]    of the sensitive ones,    used[j] <= n q.

With job j sensitive and left at its share, c[j] more than what was in use do not fit.  A job i loses best[i, j - 1] =
1 when j comes, only if with all before it at their share, and itself and those after it as they were, j's share did
not fit.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import pyomo.environ as pyo

from formulations.worst_case.pieces import snapped, switched
from formulations.worst_case.proving import InstanceClass, WorstCaseModel
from instances.arguments import Count, checked
from instances.schema import Scalar
from instances.synergy.tuning import Tuning

__all__ = ["LEAST_GAIN", "WORST_CASES", "read", "tune"]

LEAST_GAIN = 0.01
"""Least gain of a sensitive job, relative to its share's throughput."""

Cores = Annotated[int, Scalar(int, minimum=1, maximum=16)]


@checked
def tune(*, num_jobs: Count, cores_per_gpu: Cores = 3) -> InstanceClass:
    """Jobs of one GPU that fill a server with ``cores_per_gpu`` cores for each."""
    share, cores = cores_per_gpu, num_jobs * cores_per_gpu
    words = (
        f"{num_jobs} jobs of one GPU on one server of {num_jobs} GPUs and {cores} cores; each trains at 1 with {share} "
        f"cores, and gains nothing by more and trains at 1 with a whole number of 1 to {share}, or wants a whole "
        f"number c of more and trains at {1 + LEAST_GAIN:g} to c / {share} with them; memory is not scarce"
    )
    return InstanceClass(words, (_model(n, cores_per_gpu) for n in [num_jobs]))


def _model(num_jobs: int, share: int) -> pyo.ConcreteModel:
    model = pyo.ConcreteModel(name=f"worst case of Tune, {num_jobs} jobs of {share} cores")
    cores = num_jobs * share
    model.share = share
    model.JOBS = pyo.RangeSet(0, num_jobs - 1)
    model.CORES = pyo.RangeSet(1, cores)
    model.UNTIL = pyo.Set(initialize=[(i, j) for j in model.JOBS for i in range(j + 1)], dimen=2)
    model.wants = pyo.Var(model.JOBS, model.CORES, domain=pyo.Binary)
    model.gain = pyo.Var(model.JOBS, bounds=(0, (cores - share) / share))
    model.best = pyo.Var(model.UNTIL, domain=pyo.Binary)
    model.witness = pyo.Var(model.JOBS, domain=pyo.Binary)

    def of_wanted(job: int, number: Any) -> Any:
        """Return a number of cores that a job has for those it wants."""
        return pyo.quicksum(number(c) * model.wants[job, c] for c in model.CORES)

    wanted = [of_wanted(job, lambda c: c) for job in model.JOBS]
    basic = [of_wanted(job, lambda c: min(c, share)) for job in model.JOBS]
    beyond = [of_wanted(job, lambda c: max(c - share, 0)) for job in model.JOBS]
    sensitive = [of_wanted(job, lambda c: int(c > share)) for job in model.JOBS]
    most = cores - share

    model.one_demand = pyo.Constraint(model.JOBS, rule=lambda m, j: pyo.quicksum(m.wants[j, c] for c in m.CORES) == 1)
    later = range(1, num_jobs)
    model.falling = pyo.Constraint(later, rule=lambda m, j: wanted[j] <= wanted[j - 1])
    model.gains_at_least = pyo.Constraint(model.JOBS, rule=lambda m, j: m.gain[j] >= LEAST_GAIN * sensitive[j])
    model.gains_at_most = pyo.Constraint(model.JOBS, rule=lambda m, j: m.gain[j] <= beyond[j] / share)

    extra = switched(model, "extra", model.UNTIL, lambda i, j: (model.best[i, j], beyond[i]), most=most)
    before = [pyo.quicksum(basic[i] + extra[i, j - 1] for i in range(j)) for j in model.JOBS]
    model.is_sensitive = pyo.Constraint(model.JOBS, rule=lambda m, j: m.best[j, j] <= sensitive[j])
    model.fits = pyo.Constraint(
        model.JOBS, rule=lambda m, j: pyo.quicksum(basic[i] + extra[i, j] for i in range(j + 1)) <= cores
    )
    model.best_does_not_fit = pyo.Constraint(
        model.JOBS, rule=lambda m, j: before[j] + wanted[j] >= (cores + 1) * (sensitive[j] - m.best[j, j])
    )
    model.PAST = pyo.Set(initialize=[(i, j) for i, j in model.UNTIL if i < j], dimen=2)
    model.reverted = pyo.Var(model.PAST, domain=pyo.Binary)
    model.is_reverted = pyo.Constraint(
        model.PAST, rule=lambda m, i, j: m.reverted[i, j] == m.best[i, j - 1] - m.best[i, j]
    )
    model.only_for_a_share = pyo.Constraint(model.PAST, rule=lambda m, i, j: m.reverted[i, j] <= 1 - m.best[j, j])

    def needed(model: pyo.ConcreteModel, i: int, j: int) -> Any:
        as_they_were = pyo.quicksum(extra[k, j - 1] for k in range(i, j))
        return pyo.quicksum(basic[: j + 1]) + as_they_were >= (cores + 1) * model.reverted[i, j]

    def in_order(model: pyo.ConcreteModel, k: int, i: int, j: int) -> Any:
        return model.best[k, j] <= 1 - model.reverted[i, j]

    model.needed = pyo.Constraint(model.PAST, rule=needed)
    model.in_order = pyo.Constraint([(k, i, j) for i, j in model.PAST for k in range(i)], rule=in_order)

    last = num_jobs - 1
    spread = switched(model, "spread", model.JOBS, lambda i: (model.witness[i], beyond[i]), most=most)
    model.witness_fits = pyo.Constraint(expr=pyo.quicksum(basic) + pyo.quicksum(spread.values()) <= cores)
    own = switched(model, "own_gain", model.JOBS, lambda i: (model.best[i, last], model.gain[i]), most=most / share)
    other = switched(model, "other_gain", model.JOBS, lambda i: (model.witness[i], model.gain[i]), most=most / share)
    model.heuristic_value = pyo.Expression(expr=num_jobs + pyo.quicksum(own.values()))
    model.witness_value = pyo.Expression(expr=num_jobs + pyo.quicksum(other.values()))
    return model


def read(model: pyo.ConcreteModel) -> Tuning:
    """Return the jobs in the values of ``wants`` and ``gain``, each with one GB of as many as there are jobs."""
    configs = []
    for job in model.JOBS:
        cores = next(c for c in model.CORES if model.wants[job, c].value > 0.5)
        faster = [[cores, 1.0, 1 + snapped(model.gain[job].value)]] if cores > model.share else []
        configs.append(np.array([[min(cores, model.share), 1.0, 1.0], *faster]))
    return Tuning(
        num_servers=1,
        server_gpus=len(configs),
        server_cpus=float(model.share * len(configs)),
        server_memory=float(len(configs)),
        gpu_demands=np.ones(len(configs), np.int64),
        configs=tuple(configs),
    )


WORST_CASES = {"tune": WorstCaseModel(tune, read, least=1)}
