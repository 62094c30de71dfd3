"""Exact solution of :class:`instances.gavel.shortest_job_first.ShortestJobFirst`, and a model of it.

The least of the times is least when one job runs as fast as it can, so the problem is the best of n
programs with one job each.  These have a closed form:

    min_X  min_m  steps_m / throughput(m, X)
        =  min_m  steps_m / max{throughput[m, r, j] : row r contains m and fits the pool of type j}.

Proof.  Job m's entries X[r, j] are at least 0, vanish where r does not fit, and sum to at most 1
(``job_time``), so its throughput, the sum of throughput[m, r, j] * X[r, j], is at most the largest
coefficient.  X = 1 at that one entry and 0 elsewhere attains it, and it is feasible: each job's time
is at most 1, and the row's workers fit the pool.  []

So :func:`shortest` needs no solver, nor does its bound.  The objective itself is not convex: throughputs
can trade one job's time for another's.  For users who add constraints of their own, :func:`build` states
it as a mixed-integer program in the reciprocal, with ``rate`` the closed form's time over the time attained:

    max   rate
    s.t.  served[m]:  sum_{r, j} (best / steps_m) * throughput[m, r, j] * X[r, j]  >=  rate - (1 - first[m])
                                                                                for each job m
          one_first:  sum_m first[m]  =  1,   first[m] in {0, 1},   0 <= rate <= 1
          job_time[m], pool_capacity[p]  of :mod:`formulations.gavel.sharing`.

A job that has finished has the time 0, so it needs no row.  All coefficients of ``served`` are at most 1,
and the closed form's own is 1.  Those of jobs and types that are slower by eight decades and more would be
lost on any solver: they are raised to
``LEAST_RATE``, so that the program's optimum can only be better than the problem's and its bound
holds, whatever is added.
"""

from __future__ import annotations

import math

import numpy as np
import pyomo.environ as pyo

from formulations.engine.linear import weighted_sum
from formulations.engine.protocol import Formulation
from formulations.gavel.at_hand import isolated_share
from formulations.gavel.sharing import Incidence, incidence, read, shared_model
from instances.gavel.shortest_job_first import ShortestJobFirst
from instances.renamed import moved_names
from instances.schema import FloatArray

__all__ = ["FORMULATION", "bound", "build", "in_model", "read", "shortest"]

LEAST_RATE = 1e-8
"""Least positive coefficient of a rate: above what solvers drop, and below what they tell from 0."""


def build(instance: ShortestJobFirst) -> pyo.ConcreteModel:
    """Pyomo model of a shortest job first instance, for adding constraints to.

    Sets JOBS, ROWS (jobs alone, then pairs), TYPES, POOLS; variables ``X[r, j]``, ``rate`` and
    ``first[m]`` (binary); constraints ``job_time[m]``, ``pool_capacity[p]``, ``served[m]`` and
    ``one_first``; objective ``greatest_rate``.
    """
    model, entries, variables = shared_model(instance)
    model.rate = pyo.Var(bounds=(0, 1))
    model.first = pyo.Var(model.JOBS, domain=pyo.Binary)
    throughputs = _possible(instance, entries)
    best = np.divide(shortest(instance)[0], instance.steps, out=np.zeros(instance.num_jobs), where=instance.active)
    runs = throughputs > 0
    rates = np.zeros(len(throughputs))
    rates[runs] = np.clip(throughputs[runs] * best[entries.job[runs]], LEAST_RATE, 1.0)
    order = np.argsort(entries.job, kind="stable")
    of_job = np.split(order, np.searchsorted(entries.job[order], np.arange(1, instance.num_jobs)))

    def served(model: pyo.ConcreteModel, job: int) -> object:
        if not instance.active[job]:
            return pyo.Constraint.Skip
        mine = of_job[job][rates[of_job[job]] > 0]
        shares = [variables[column] for column in entries.column[mine]]
        return weighted_sum(rates[mine], shares) >= model.rate - (1 - model.first[job])

    model.served = pyo.Constraint(model.JOBS, rule=served)
    model.one_first = pyo.Constraint(expr=pyo.quicksum(model.first.values()) == 1)
    model.greatest_rate = pyo.Objective(expr=model.rate, sense=pyo.maximize)
    return model


def bound(instance: ShortestJobFirst, value: float) -> float:
    """Return the time, s, that no plan beats when the rate is at most ``value``."""
    return math.inf if value == -math.inf else shortest(instance)[0] / max(value, LEAST_RATE)


def in_model(instance: ShortestJobFirst, value: float) -> float:
    """Return the rate at which the time is ``value``, s: 1 where it is the shortest, 0 where no job ever ends."""
    best = shortest(instance)[0]
    return float(math.isfinite(best)) if value == best else best / value


def shortest(instance: ShortestJobFirst) -> tuple[float, int]:
    """Find the shortest time that a job can take, s, and the position ``r * k + j`` of the X[r, j] that attains it.

    Ties go to the jobs alone, then to the lowest job.
    """
    entries = incidence(instance)
    throughputs = _possible(instance, entries)
    runs = throughputs > 0
    times = np.where(instance.active, np.inf, 0.0)[entries.job]
    times[runs] = instance.steps[entries.job[runs]] / throughputs[runs]
    fastest = int(times.argmin())
    return float(times[fastest]), int(entries.column[fastest])


def _possible(instance: ShortestJobFirst, entries: Incidence) -> FloatArray:
    """(entries,) float: steps/s, 0 where the row does not fit the pool."""
    possible: FloatArray = np.where(instance.fits.ravel()[entries.column], entries.throughput, 0.0)
    return possible


FORMULATION = Formulation(build=build, read=read, bound=bound, in_model=in_model, trivial=isolated_share)
__getattr__ = moved_names(__name__, "formulations.methods.closed_form", "solve")
