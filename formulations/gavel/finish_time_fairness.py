"""Exact model of :class:`instances.gavel.finish_time_fairness.FinishTimeFairness`: one program for each value.

With D_m the finish time in isolation, rho_m <= rho means

    throughput(m, X)  >=  steps_m / (rho * D_m - elapsed_m),        rho > elapsed_m / D_m,

so for a given rho a linear program tells whether X exists.  In units of what rho_iso, the value of
the isolated share, asks of each job,

    asked[m](rho) = (rho_iso * D_m - elapsed_m) / (rho * D_m - elapsed_m),

it reads

    max   slack
    s.t.  finish[m]:  sum_{r, j} (rho_iso * D_m - elapsed_m) / steps_m * throughput[m, r, j] * X[r, j]
                          -  slack  >=  asked[m](rho)                 for each job m that is weighed
          job_time[m], pool_capacity[p]  of :mod:`formulations.gavel.sharing`.

Weighed are the jobs that have steps left and run alone somewhere; the ratios of the others are constants.
rho is attainable exactly when the greatest slack is at least 0; :mod:`formulations.methods.bracket` closes in on the
least such rho.
"""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo

from formulations.engine.protocol import Formulation
from formulations.gavel.sharing import SharingProgram, read
from instances.gavel.finish_time_fairness import FinishTimeFairness
from instances.renamed import moved_names
from instances.schema import FloatArray

__all__ = ["FORMULATION", "asked_speeds", "build", "impossible_alone", "program", "read", "time_left"]


def build(instance: FinishTimeFairness, rho: float | None = None) -> pyo.ConcreteModel:
    """Pyomo model that tells whether ``rho`` is attainable: whether its optimum is at least 0.

    Sets JOBS, WEIGHED (jobs whose ratio is to be decided), ROWS (jobs alone, then pairs), TYPES, POOLS;
    variables ``X[r, j]`` and ``slack``; constraints ``job_time[m]``, ``pool_capacity[p]`` and ``finish[m]``;
    objective ``greatest_slack``.

    Parameters
    ----------
    instance : FinishTimeFairness
    rho : float, optional
        By default the value of the isolated share.

    Raises
    ------
    ValueError
        When not even infinite speed attains ``rho``.
    """
    asked = asked_speeds(instance, instance.isolated_value if rho is None else rho)
    if not np.isfinite(asked).all():
        job = int(instance.weighed[np.isinf(asked).argmax()])
        raise ValueError(f"rho: got {rho:g}, job {job} is too late for it at any speed")
    return program(instance, asked).model()


def program(instance: FinishTimeFairness, asked: FloatArray) -> SharingProgram:
    """State the program of how far all weighed jobs can be faster than is asked of them."""
    policy = SharingProgram(instance)
    jobs = policy.subset("WEIGHED", instance.weighed)
    speeds = _speed_per_throughput(instance)
    # Limits that cut nothing off at any rho to come: X = 0 falls short by the greatest speed asked for,
    # and no job is faster than it can be.
    hardest = asked_speeds(instance, impossible_alone(instance))
    most = max(float(asked.max(initial=1.0)), float(hardest.max(initial=1.0)))
    greatest = speeds * instance.greatest_throughputs[jobs]
    slack = policy.variable("slack", lower=-most, upper=float(greatest.min()) if greatest.size else 1.0)
    policy.maximize("greatest_slack", slack)
    policy.constraint("finish", speeds * policy.throughput[jobs] >= asked + slack)
    return policy


def _speed_per_throughput(instance: FinishTimeFairness) -> FloatArray:
    """(weighed,) float: one step/s of each job, relative to what the isolated share's value asks of it."""
    speeds: FloatArray = time_left(instance, instance.isolated_value) / instance.steps[instance.weighed]
    return speeds


def time_left(instance: FinishTimeFairness, rho: float) -> FloatArray:
    """(weighed,) float: time that ``rho`` leaves each job to finish in, s."""
    jobs = instance.weighed
    left: FloatArray = rho * instance.isolated_times[jobs] - instance.elapsed[jobs]
    return left


def asked_speeds(instance: FinishTimeFairness, rho: float) -> FloatArray:
    """(weighed,) float: speed that ``rho`` asks of each job; infinite where no speed attains it."""
    left, most = time_left(instance, rho), time_left(instance, instance.isolated_value)
    with np.errstate(over="ignore"):
        asked: FloatArray = np.divide(most, left, out=np.full(len(left), np.inf), where=left > 0)
    return asked


def impossible_alone(instance: FinishTimeFairness) -> float:
    """Return a rho that no plan is below: some job does not reach it even at its greatest throughput."""
    least = instance.finish_time_ratios(instance.isolated_share())
    jobs = instance.weighed
    times = instance.steps[jobs] / instance.greatest_throughputs[jobs]
    least[jobs] = (instance.elapsed[jobs] + times) / instance.isolated_times[jobs]
    return float(least.max())


FORMULATION = Formulation(build=build, read=read, any_solver=True)
__getattr__ = moved_names(__name__, "formulations.methods.bracket", "solve", "solve_without_prices")
