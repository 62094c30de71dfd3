"""Exact model of :class:`instances.afs.elastic_sharing.ElasticSharing` for jobs that arrive together.

Time is cut into n slots, each of which ends with a completion; the order of completions is part of
the decision.  With j a job, k = 0, ..., n-1 a slot, s a share,

    position[j, k]  1 if job j completes at the end of slot k
    length[k]       length of slot k
    time[j, k, s]   time that job j spends on s GPUs in slot k
    progress[j, k]  part of job j's work done in slot k

    min   (1/n) sum_k (n - k) * length[k]                                    average_jct
    s.t.  sum_k position[j, k] = 1,   sum_j position[j, k] = 1               one_position, one_job
          sum_s time[j, k, s] = length[k]                                    slot_time
          progress[j, k] = sum_s T_j(s) / work_j * time[j, k, s]             rate
          sum_k progress[j, k] = 1                                           all_work
          sum_{q<=k} progress[j, q] >= sum_{q<=k} position[j, q]             completed_by
          progress[j, k] <= sum_{q>=k} position[j, q]                        not_after
          sum_{j,s} s * time[j, k, s] <= M * length[k]                       gpu_time

because n - k jobs are there in slot k.  ``completed_by`` ties order and work without a big M, which
makes the relaxation tight: for jobs that scale linearly its value is the optimum.

This holds of every schedule, so its optimum is a bound.  For ``"any_time"`` and concave curves it is
attained: in each slot a job needs no more than two neighbouring shares, and the jobs' extra GPUs are
laid end to end and wrapped around the slot (McNaughton), so that at every moment they fit.

For ``"at_completions"`` each job has one share per slot:

    holds[j, k, s]  1 if job j holds s GPUs in slot k
          sum_s holds[j, k, s] = 1                                           one_share
          sum_{j,s} s * holds[j, k, s] <= M                                  gpus
          time[j, k, s] <= longest[j, k, s] * holds[j, k, s]                 linked
          position[j, k] <= sum_{s: T_j(s)>0} holds[j, k, s]                 runs_to_end
                         <= sum_{q>=k} position[j, q]                        released

with ``longest`` the lesser of the longest slot k that can be of use and the time of the whole job on
s GPUs.  ``runs_to_end`` makes every slot end where a job really completes; without it, a job that is
done could pretend to complete later, to gain one more occasion to re-allocate.  This is exact for
any curve.

Shares that are no faster than a smaller one are left out, as nobody needs them.  Jobs without work are
left out too: they are done when they arrive.  n is the number of the others, and values are scaled to
the mean over all.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyomo.environ as pyo

from formulations.afs.schedules import CRUMB, in_slots, rounded, wrapped_around
from formulations.engine.linear import ModelError, weighted_sum
from formulations.engine.protocol import Formulation
from formulations.engine.sets import RangeSet, Set
from instances.afs.elastic_sharing import ElasticSharing, Schedule
from instances.schema import FloatArray

__all__ = ["FORMULATION", "WHOLE", "bound", "build", "explain", "read", "time_unit", "unfinished"]

WHOLE = 1e4
"""A job's work in the models.

The solver's tolerance is absolute.  With 1 in its place it was seen to return, for jobs of 2 s and
35 h, a schedule 3e-6 worse than the best.
"""


def build(instance: ElasticSharing) -> pyo.ConcreteModel:
    """Pyomo model of an elastic sharing instance.

    Jobs are numbered among those that have work to do.

    Sets JOBS, SLOTS, SHARES (triples of job, slot and share); the variables and constraints of the
    module's docstring, and ``shorter_first`` (see below); objective ``average_jct``.  Times, the objective
    too, are in units of ``time_unit`` s, and ``progress`` in ten-thousandths of each job's work (``WHOLE``).

    ``shorter_first[i, j, k]`` breaks symmetry: of two jobs with the same curve, the one with less
    work completes first.  At the moment when both have as much left, they can change places.  For
    "at_completions", which may not change shares at that moment, it is stated for equal jobs only.

    Raises
    ------
    ModelError
        When jobs arrive after time 0.
    """
    if instance.arrivals.any():
        job = int(np.flatnonzero(instance.arrivals)[0])
        raise ModelError(
            f"{instance.problem}: job {job} arrives at {instance.arrivals[job]:g} s; the exact model needs all "
            "arrivals 0"
        )
    instance = unfinished(instance)
    n = instance.num_jobs
    limit = _sum_of_completions(instance)
    unit = time_unit(instance)
    rates = instance.throughputs * unit / (instance.work[:, None] / WHOLE)
    shares = [np.unique(table, return_index=True)[1].tolist() for table in instance.throughputs]
    model = pyo.ConcreteModel(name=instance.problem)
    model.time_unit = pyo.Param(initialize=unit)
    model.JOBS = RangeSet(0, n - 1)
    model.SLOTS = RangeSet(0, n - 1)
    model.SHARES = Set(initialize=[(j, k, s) for j in range(n) for k in range(n) for s in shares[j]], dimen=3)
    model.position = pyo.Var(model.JOBS * model.SLOTS, domain=pyo.Binary)
    model.length = pyo.Var(model.SLOTS, bounds=lambda model, k: (0, limit / unit / (n - k)))
    model.time = pyo.Var(model.SHARES, bounds=(0, None))
    model.progress = pyo.Var(model.JOBS * model.SLOTS, bounds=(0, WHOLE))

    def one_position(model: pyo.ConcreteModel, j: int) -> object:
        return pyo.quicksum(model.position[j, k] for k in model.SLOTS) == 1

    def one_job(model: pyo.ConcreteModel, k: int) -> object:
        return pyo.quicksum(model.position[j, k] for j in model.JOBS) == 1

    def slot_time(model: pyo.ConcreteModel, j: int, k: int) -> object:
        return pyo.quicksum(model.time[j, k, s] for s in shares[j]) == model.length[k]

    def rate(model: pyo.ConcreteModel, j: int, k: int) -> object:
        times = [model.time[j, k, s] for s in shares[j]]
        return model.progress[j, k] == weighted_sum(rates[j, shares[j]], times)

    def all_work(model: pyo.ConcreteModel, j: int) -> object:
        return pyo.quicksum(model.progress[j, k] for k in model.SLOTS) == WHOLE

    def completed_by(model: pyo.ConcreteModel, j: int, k: int) -> object:
        done = pyo.quicksum(model.progress[j, q] for q in range(k + 1))
        return done >= WHOLE * pyo.quicksum(model.position[j, q] for q in range(k + 1))

    def not_after(model: pyo.ConcreteModel, j: int, k: int) -> object:
        return model.progress[j, k] <= WHOLE * pyo.quicksum(model.position[j, q] for q in range(k, n))

    def gpu_time(model: pyo.ConcreteModel, k: int) -> object:
        held = [(j, s) for j in model.JOBS for s in shares[j] if s]
        times = [model.time[j, k, s] for j, s in held]
        return weighted_sum([s for _, s in held], times) <= instance.num_gpus * model.length[k]

    def shorter_first(model: pyo.ConcreteModel, i: int, j: int, k: int) -> object:
        before = pyo.quicksum(model.position[i, q] for q in range(k))
        return before >= pyo.quicksum(model.position[j, q] for q in range(k + 1))

    model.one_position = pyo.Constraint(model.JOBS, rule=one_position)
    model.one_job = pyo.Constraint(model.SLOTS, rule=one_job)
    model.slot_time = pyo.Constraint(model.JOBS * model.SLOTS, rule=slot_time)
    model.rate = pyo.Constraint(model.JOBS * model.SLOTS, rule=rate)
    model.all_work = pyo.Constraint(model.JOBS, rule=all_work)
    model.completed_by = pyo.Constraint(model.JOBS * model.SLOTS, rule=completed_by)
    model.not_after = pyo.Constraint(model.JOBS * model.SLOTS, rule=not_after)
    model.gpu_time = pyo.Constraint(model.SLOTS, rule=gpu_time)
    model.ALIKE = Set(initialize=_alike(instance), dimen=2)
    model.shorter_first = pyo.Constraint(model.ALIKE * model.SLOTS, rule=shorter_first)
    if instance.reallocation == "at_completions":
        _one_share_per_slot(model, instance, shares, rates)
    model.average_jct = pyo.Objective(
        expr=weighted_sum([(n - k) / n for k in range(n)], model.length.values()), sense=pyo.minimize
    )
    return model


def _one_share_per_slot(
    model: pyo.ConcreteModel, instance: ElasticSharing, shares: list[list[int]], rates: FloatArray
) -> None:
    """Return the variables and constraints of "at_completions"."""
    n = instance.num_jobs
    model.holds = pyo.Var(model.SHARES, domain=pyo.Binary)

    def one_share(model: pyo.ConcreteModel, j: int, k: int) -> object:
        return pyo.quicksum(model.holds[j, k, s] for s in shares[j]) == 1

    def gpus(model: pyo.ConcreteModel, k: int) -> object:
        held = [(j, s) for j in model.JOBS for s in shares[j] if s]
        return weighted_sum([s for _, s in held], [model.holds[j, k, s] for j, s in held]) <= instance.num_gpus

    def linked(model: pyo.ConcreteModel, j: int, k: int, s: int) -> object:
        longest = model.length[k].ub
        if s:
            longest = min(longest, WHOLE / float(rates[j, s]))
        return model.time[j, k, s] <= longest * model.holds[j, k, s]

    def runs_to_end(model: pyo.ConcreteModel, j: int, k: int) -> object:
        return model.position[j, k] <= pyo.quicksum(model.holds[j, k, s] for s in shares[j] if s)

    def released(model: pyo.ConcreteModel, j: int, k: int) -> object:
        running = pyo.quicksum(model.holds[j, k, s] for s in shares[j] if s)
        return running <= pyo.quicksum(model.position[j, q] for q in range(k, n))

    model.one_share = pyo.Constraint(model.JOBS * model.SLOTS, rule=one_share)
    model.gpus = pyo.Constraint(model.SLOTS, rule=gpus)
    model.linked = pyo.Constraint(model.SHARES, rule=linked)
    model.runs_to_end = pyo.Constraint(model.JOBS * model.SLOTS, rule=runs_to_end)
    model.released = pyo.Constraint(model.JOBS * model.SLOTS, rule=released)


def unfinished(instance: ElasticSharing) -> ElasticSharing:
    """Return the jobs that have work to do, as jobs of their own."""
    jobs = np.flatnonzero(instance.work)
    if len(jobs) == instance.num_jobs:
        return instance
    of_jobs = ("work", "throughputs", "arrivals", "requests", "attained", "held")
    return replace(instance, **{field: getattr(instance, field)[jobs] for field in of_jobs})


def _sum_of_completions(instance: ElasticSharing) -> float:
    """Sum of completion times when jobs run one after the other on all GPUs, shortest first, s.

    Those that never run are left out; 1 if there are no others.
    """
    able = instance.throughputs[:, -1] > 0
    return float(np.sort(instance.work[able] / instance.throughputs[able, -1]).cumsum().sum()) or 1.0


def time_unit(instance: ElasticSharing) -> float:
    """Return the unit of the model's times, s: jobs one after the other take ``WHOLE`` of them on average."""
    return _sum_of_completions(instance) / max(instance.num_jobs, 1) / WHOLE


def bound(instance: ElasticSharing, value: float) -> float:
    """Return the average JCT, s, that a bound on the model's objective proves.

    In seconds the costs would be as small as the jobs are short, and the solver's tolerance of reduced costs is
    absolute: with costs of 1e-5 it returned schedules 0.5 % worse than the best as optimal.
    """
    active = unfinished(instance)
    return value * time_unit(active) * active.num_jobs / instance.num_jobs


def _alike(instance: ElasticSharing) -> list[tuple[int, int]]:
    """Pairs (i, j) of jobs with one curve of which i can be taken to complete before j."""
    # Jobs that never run have no order.
    lengths = np.divide(
        instance.work,
        instance.throughputs[:, -1],
        where=instance.throughputs[:, -1] > 0,
        out=np.full(instance.num_jobs, np.inf),
    )
    families: dict[bytes, list[int]] = {}
    for job in np.argsort(lengths, kind="stable")[: np.isfinite(lengths).sum()].tolist():
        curve = instance.throughputs[job] / instance.throughputs[job, -1]
        families.setdefault(curve.tobytes(), []).append(job)
    pairs = [pair for family in families.values() for pair in pairwise(family)]
    if instance.reallocation == "at_completions":
        pairs = [(i, j) for i, j in pairs if lengths[i] == lengths[j]]
    return pairs


def read(model: pyo.ConcreteModel) -> Schedule:
    """Return the schedule in the variable values.

    For "at_completions" the order and the shares are taken, and the lengths follow from them.  For
    "any_time" with concave curves the slots are filled by wrapping around; with other curves that
    may be impossible, and the schedule is one that follows the order and the average shares as
    closely as whole GPUs allow, changing shares at completions.
    """
    instance = model.instance
    jobs = np.flatnonzero(instance.work)
    active = unfinished(instance)
    found = _of_active(model, active) if len(jobs) else active.nothing()
    shares = np.zeros((len(found.times) - 1, instance.num_jobs), np.int64)
    shares[:, jobs] = found.shares.reshape(len(shares), len(jobs))
    return Schedule(times=found.times, shares=shares)


def _of_active(model: pyo.ConcreteModel, instance: ElasticSharing) -> Schedule:
    """Read the schedule of the jobs that have work to do."""
    n = instance.num_jobs
    position = _values(model.position, (n, n))
    order = position.argmax(axis=0)
    if instance.reallocation == "at_completions":
        held = np.zeros((n, n), np.int64)
        for (j, k, s), variable in model.holds.items():
            if variable.value > 0.5:
                held[k, j] = s
        return in_slots(instance, order, held)
    lengths = np.maximum(_values(model.length, (n,)), 0) * model.time_unit.value
    # A job's work is spread over the slots up to its own that are no crumbs, in full; the work of a
    # job that is one itself is done in its own slot.
    own = position.argmax(axis=1)[:, None] == np.arange(n)
    there = np.cumsum(own[:, ::-1], axis=1)[:, ::-1] * (lengths > CRUMB * lengths.sum())
    progress = there * np.maximum(_values(model.progress, (n, n)), 0)
    progress = np.where(progress.any(axis=1, keepdims=True), progress, own)
    work = instance.work[:, None] * progress / progress.sum(axis=1, keepdims=True)
    if instance.concave.all():
        return wrapped_around(instance, lengths, work)
    return in_slots(instance, order, rounded(instance, order, lengths, work))


def _values(variables: pyo.Var, shape: tuple[int, ...]) -> FloatArray:
    return np.array([variable.value for variable in variables.values()], float).reshape(shape)


def explain(instance: ElasticSharing) -> str | None:
    """Say which job runs on no number of GPUs."""
    stuck = np.flatnonzero(instance.stuck).tolist()
    return f"job {stuck[0]} runs on no number of GPUs" if stuck else None


FORMULATION = Formulation(build=build, read=read, bound=bound, explain=explain)
