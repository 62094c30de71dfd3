"""Exact model of :class:`instances.afs.elastic_sharing.ElasticSharing`.

Time is cut at arrivals and completions: slot (i, k) is the part of the i-th interval between arrivals in which k jobs
are complete.  Of A_i jobs that have arrived, A_i - k are there in it.  The order of completions, among each other and
among the arrivals, is part of the decision.  With j a job that is there from interval a_j on, s a share,

    position[j, k]     1 if job j completes when k others have
    over[i, k]         1 if k jobs are complete when interval i ends           (all but the last interval)
    length[i, k]       length of slot (i, k)
    time[j, i, k, s]   time that job j spends on s GPUs in slot (i, k)
    progress[j, i, k]  part of job j's work done in slot (i, k)

    min   (1/n) sum_{i,k} (A_i - k) * length[i, k]                             average_jct
    s.t.  sum_k position[j, k] = 1,   sum_j position[j, k] = 1                 one_position, one_job
          sum_k length[i, k] = span_i                                          interval  (all but the last)
          sum_s time[j, i, k, s] = length[i, k]                                slot_time
          progress[j, i, k] = sum_s T_j(s) / work_j * time[j, i, k, s]         rate
          sum_{i,k} progress[j, i, k] = 1                                      all_work
          sum_{i,q<=k} progress[j, i, q] >= sum_{q<=k} position[j, q]          completed_by
          sum_i progress[j, i, k] <= sum_{q>=k} position[j, q]                 not_after
          sum_{j,s} s * time[j, i, k, s] <= M * length[i, k]                   gpu_time
          length[i, k] <= longest[i, k] * over[i, k]                           begun
          length[i, k] <= longest[i, k] * (1 - over[i-1, k+1])                 not_over
          over[i, k] <= over[i, k-1],   over[i, k] <= over[i+1, k]             one_by_one, stays_over
          over[i, k] + sum_{q<k} position[j, q] <= 1   where i < a_j           arrived

``longest`` is the span of the interval, and for the last one as long as it can be of use.  ``completed_by`` ties
order and work without a big M, which makes the relaxation tight: for jobs that scale linearly and arrive together its
value is the optimum.  Of jobs that arrive together there is one interval, and nothing of ``over``.

This holds of every schedule, so its optimum is a bound.  For ``"any_time"`` and concave curves it is
attained: in each slot a job needs no more than two neighbouring shares, and the jobs' extra GPUs are
laid end to end and wrapped around the slot (McNaughton), so that at every moment they fit.

For ``"at_completions"`` each job has one share per slot:

    holds[j, i, k, s]  1 if job j holds s GPUs in slot (i, k)
          sum_s holds[j, i, k, s] = 1                                          one_share
          sum_{j,s} s * holds[j, i, k, s] <= M                                 gpus
          time[j, i, k, s] <= most[j, i, k, s] * holds[j, i, k, s]             linked
          position[j, k] + over[i, k+1] - over[i-1, k+1] - 1
                         <= sum_{s: T_j(s)>0} holds[j, i, k, s]                runs_to_end
                         <= sum_{q>=k} position[j, q]                          released

with ``most`` the lesser of ``longest`` and the time of the whole job on s GPUs; in ``runs_to_end``, over[i, k] is 1
for the last interval, and 0 before the first.  It makes every slot that ends with a completion end where a job really
completes; without it, a job that is done could pretend to complete later, to gain one more occasion to re-allocate.
This is exact for any curve.

Shares that are no faster than a smaller one are left out, as nobody needs them.  Jobs without work are left out too:
they are done when they arrive, which for "at_completions" ends an interval all the same.  n is the number of the
others, and values are scaled to the mean over all.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyomo.environ as pyo

from formulations.afs.schedules import CRUMB, in_slots, rounded, wrapped_around
from formulations.engine.linear import weighted_sum
from formulations.engine.protocol import Formulation
from formulations.engine.sets import RangeSet, Set
from instances.afs.elastic_sharing import ElasticSharing, Schedule
from instances.schema import FloatArray

__all__ = [
    "FORMULATION",
    "WHOLE",
    "bound",
    "build",
    "explain",
    "for_rounded",
    "in_model",
    "read",
    "time_unit",
    "unfinished",
]

WHOLE = 1e4
"""A job's work in the models.

The solver's tolerance is absolute.  With 1 in its place it was seen to return, for jobs of 2 s and
35 h, a schedule 3e-6 worse than the best.
"""


def build(instance: ElasticSharing) -> pyo.ConcreteModel:
    """Pyomo model of an elastic sharing instance.

    Jobs are numbered among those that have work to do.

    Sets JOBS, ORDER (numbers of completed jobs), SLOTS (pairs of interval and completed jobs), PRESENT (triples of
    job and slot), SHARES (with a share); the variables and constraints of the module's docstring, and
    ``shorter_first`` (see below); objective ``average_jct``.  Times, the objective too, are in units of ``time_unit``
    s, and ``progress`` in ten-thousandths of each job's work (``WHOLE``).

    ``shorter_first[i, j, k]`` breaks symmetry: of two jobs with the same curve that arrive together, the one with less
    work completes first.  At the moment when both have as much left, they can change places.  For
    "at_completions", which may not change shares at that moment, it is stated for equal jobs only.
    """
    begins = _begins(instance)
    begins = begins - begins[0]
    instance = unfinished(instance)
    n = instance.num_jobs
    limit = _sum_of_completions(instance)
    unit = time_unit(instance)
    rates = instance.throughputs * unit / (instance.work[:, None] / WHOLE)
    shares = [np.unique(table, return_index=True)[1].tolist() for table in instance.throughputs]
    last = len(begins) - 1
    span = (np.diff(begins) / unit).tolist()
    arrived = np.searchsorted(np.sort(instance.arrivals), begins, side="right").tolist()
    from_interval = np.searchsorted(begins, instance.arrivals).tolist()
    slots = [(i, k) for i in range(last + 1) for k in range(arrived[i] + (i < last))]
    present = [(j, i, k) for i, k in slots if k < arrived[i] for j in range(n) if from_interval[j] <= i]
    model = pyo.ConcreteModel(name=instance.problem)
    model.time_unit = pyo.Param(initialize=unit)
    model.JOBS = RangeSet(0, n - 1)
    model.ORDER = RangeSet(0, n - 1)
    model.SLOTS = Set(initialize=slots, dimen=2)
    model.PRESENT = Set(initialize=present, dimen=3)
    model.SHARES = Set(initialize=[(j, i, k, s) for j, i, k in present for s in shares[j]], dimen=4)
    model.OVER = Set(initialize=[(i, k) for i in range(last) for k in range(1, arrived[i] + 1)], dimen=2)
    model.position = pyo.Var(model.JOBS * model.ORDER, domain=pyo.Binary)
    model.over = pyo.Var(model.OVER, domain=pyo.Binary)
    model.length = pyo.Var(model.SLOTS, bounds=lambda model, i, k: (0, span[i] if i < last else limit / unit / (n - k)))
    model.time = pyo.Var(model.SHARES, bounds=(0, None))
    model.progress = pyo.Var(model.PRESENT, bounds=(0, WHOLE))
    # In order of the slots, so that sums over some of them need no search.
    of_job: list[list[list[int]]] = [[[] for _ in range(n)] for _ in range(n)]
    in_slot: dict[tuple[int, int], list[int]] = {slot: [] for slot in slots}
    for j, i, k in present:
        of_job[j][k].append(i)
        in_slot[i, k].append(j)

    def one_position(model: pyo.ConcreteModel, j: int) -> object:
        return pyo.quicksum(model.position[j, k] for k in model.ORDER) == 1

    def one_job(model: pyo.ConcreteModel, k: int) -> object:
        return pyo.quicksum(model.position[j, k] for j in model.JOBS) == 1

    def interval(model: pyo.ConcreteModel, i: int) -> object:
        return pyo.quicksum(model.length[i, k] for k in range(arrived[i] + 1)) == span[i]

    def slot_time(model: pyo.ConcreteModel, j: int, i: int, k: int) -> object:
        return pyo.quicksum(model.time[j, i, k, s] for s in shares[j]) == model.length[i, k]

    def rate(model: pyo.ConcreteModel, j: int, i: int, k: int) -> object:
        times = [model.time[j, i, k, s] for s in shares[j]]
        return model.progress[j, i, k] == weighted_sum(rates[j, shares[j]], times)

    def all_work(model: pyo.ConcreteModel, j: int) -> object:
        return pyo.quicksum(model.progress[j, i, k] for k in model.ORDER for i in of_job[j][k]) == WHOLE

    def completed_by(model: pyo.ConcreteModel, j: int, k: int) -> object:
        done = pyo.quicksum(model.progress[j, i, q] for q in range(k + 1) for i in of_job[j][q])
        return done >= WHOLE * pyo.quicksum(model.position[j, q] for q in range(k + 1))

    def not_after(model: pyo.ConcreteModel, j: int, k: int) -> object:
        done = pyo.quicksum(model.progress[j, i, k] for i in of_job[j][k])
        return done <= WHOLE * pyo.quicksum(model.position[j, q] for q in range(k, n))

    def gpu_time(model: pyo.ConcreteModel, i: int, k: int) -> object:
        held = [(j, s) for j in in_slot[i, k] for s in shares[j] if s]
        if not held:
            return pyo.Constraint.Skip
        times = [model.time[j, i, k, s] for j, s in held]
        return weighted_sum([s for _, s in held], times) <= instance.num_gpus * model.length[i, k]

    def begun(model: pyo.ConcreteModel, i: int, k: int) -> object:
        if (i, k) not in model.OVER:
            return pyo.Constraint.Skip
        return model.length[i, k] <= model.length[i, k].ub * model.over[i, k]

    def not_over(model: pyo.ConcreteModel, i: int, k: int) -> object:
        if (i - 1, k + 1) not in model.OVER:
            return pyo.Constraint.Skip
        return model.length[i, k] <= model.length[i, k].ub * (1 - model.over[i - 1, k + 1])

    def one_by_one(model: pyo.ConcreteModel, i: int, k: int) -> object:
        return pyo.Constraint.Skip if k == 1 else model.over[i, k] <= model.over[i, k - 1]

    def stays_over(model: pyo.ConcreteModel, i: int, k: int) -> object:
        return pyo.Constraint.Skip if i + 1 == last else model.over[i, k] <= model.over[i + 1, k]

    def shorter_first(model: pyo.ConcreteModel, i: int, j: int, k: int) -> object:
        before = pyo.quicksum(model.position[i, q] for q in range(k))
        return before >= pyo.quicksum(model.position[j, q] for q in range(k + 1))

    def has_arrived(model: pyo.ConcreteModel, j: int, i: int, k: int) -> object:
        return model.over[i, k] + pyo.quicksum(model.position[j, q] for q in range(k)) <= 1

    model.one_position = pyo.Constraint(model.JOBS, rule=one_position)
    model.one_job = pyo.Constraint(model.ORDER, rule=one_job)
    model.interval = pyo.Constraint(RangeSet(0, last - 1), rule=interval)
    model.slot_time = pyo.Constraint(model.PRESENT, rule=slot_time)
    model.rate = pyo.Constraint(model.PRESENT, rule=rate)
    model.all_work = pyo.Constraint(model.JOBS, rule=all_work)
    model.completed_by = pyo.Constraint(model.JOBS * model.ORDER, rule=completed_by)
    model.not_after = pyo.Constraint(model.JOBS * model.ORDER, rule=not_after)
    model.gpu_time = pyo.Constraint(model.SLOTS, rule=gpu_time)
    model.begun = pyo.Constraint(model.SLOTS, rule=begun)
    model.not_over = pyo.Constraint(model.SLOTS, rule=not_over)
    model.one_by_one = pyo.Constraint(model.OVER, rule=one_by_one)
    model.stays_over = pyo.Constraint(model.OVER, rule=stays_over)
    not_there = [(j, i, k) for i, k in model.OVER for j in range(n) if from_interval[j] > i]
    model.arrived = pyo.Constraint(Set(initialize=not_there, dimen=3), rule=has_arrived)
    model.ALIKE = Set(initialize=_alike(instance), dimen=2)
    model.shorter_first = pyo.Constraint(model.ALIKE * model.ORDER, rule=shorter_first)
    if instance.reallocation == "at_completions":
        _one_share_per_slot(model, instance, shares, rates)
    model.average_jct = pyo.Objective(
        expr=weighted_sum([(arrived[i] - k) / n for i, k in slots], model.length.values()), sense=pyo.minimize
    )
    return model


def _one_share_per_slot(
    model: pyo.ConcreteModel, instance: ElasticSharing, shares: list[list[int]], rates: FloatArray
) -> None:
    """Return the variables and constraints of "at_completions"."""
    n = instance.num_jobs
    last = max((i for i, _ in model.SLOTS), default=0)
    model.holds = pyo.Var(model.SHARES, domain=pyo.Binary)

    def one_share(model: pyo.ConcreteModel, j: int, i: int, k: int) -> object:
        return pyo.quicksum(model.holds[j, i, k, s] for s in shares[j]) == 1

    def gpus(model: pyo.ConcreteModel, i: int, k: int) -> object:
        held = [(j, s) for j in model.JOBS if (j, i, k) in model.PRESENT for s in shares[j] if s]
        if not held:
            return pyo.Constraint.Skip
        return weighted_sum([s for _, s in held], [model.holds[j, i, k, s] for j, s in held]) <= instance.num_gpus

    def linked(model: pyo.ConcreteModel, j: int, i: int, k: int, s: int) -> object:
        most = model.length[i, k].ub
        if s:
            most = min(most, WHOLE / float(rates[j, s]))
        return model.time[j, i, k, s] <= most * model.holds[j, i, k, s]

    def runs_to_end(model: pyo.ConcreteModel, j: int, i: int, k: int) -> object:
        over = 1 if i == last else model.over[i, k + 1]
        before = model.over[i - 1, k + 1] if (i - 1, k + 1) in model.OVER else 0
        running = pyo.quicksum(model.holds[j, i, k, s] for s in shares[j] if s)
        return model.position[j, k] + over - before - 1 <= running

    def released(model: pyo.ConcreteModel, j: int, i: int, k: int) -> object:
        running = pyo.quicksum(model.holds[j, i, k, s] for s in shares[j] if s)
        return running <= pyo.quicksum(model.position[j, q] for q in range(k, n))

    model.one_share = pyo.Constraint(model.PRESENT, rule=one_share)
    model.gpus = pyo.Constraint(model.SLOTS, rule=gpus)
    model.linked = pyo.Constraint(model.SHARES, rule=linked)
    model.runs_to_end = pyo.Constraint(model.PRESENT, rule=runs_to_end)
    model.released = pyo.Constraint(model.PRESENT, rule=released)


def _begins(instance: ElasticSharing) -> FloatArray:
    """Return when intervals between arrivals begin, s: the first when the first job with work arrives.

    A job without work ends one only where shares may change at such moments alone.
    """
    there = instance.arrivals[instance.work > 0]
    events = instance.arrivals if instance.reallocation == "at_completions" else there
    begins: FloatArray = np.unique(events[events >= there.min(initial=np.inf)])
    return begins if len(begins) else np.zeros(1)


def unfinished(instance: ElasticSharing) -> ElasticSharing:
    """Return the jobs that have work to do, as jobs of their own, of which the first arrives at 0."""
    jobs = np.flatnonzero(instance.work)
    first = instance.arrivals[jobs].min(initial=np.inf)
    if len(jobs) == instance.num_jobs and first == 0:
        return instance
    arrivals = instance.arrivals[jobs] - first
    of_jobs = ("work", "throughputs", "requests", "attained", "held")
    return replace(instance, arrivals=arrivals, **{field: getattr(instance, field)[jobs] for field in of_jobs})


def _sum_of_completions(instance: ElasticSharing) -> float:
    """Sum of the times from arrival to completion when jobs run one after the other on all GPUs, s.

    They run by arrival, the shortest first of those that arrive together.  Those that never run are left out; 1 if
    there are no others.
    """
    able = instance.throughputs[:, -1] > 0
    alone, arrivals = instance.work[able] / instance.throughputs[able, -1], instance.arrivals[able]
    now, total = 0.0, 0.0
    for job in np.lexsort((alone, arrivals)).tolist():
        now = max(now, float(arrivals[job])) + float(alone[job])
        total += now - float(arrivals[job])
    return total or 1.0


def time_unit(instance: ElasticSharing) -> float:
    """Return the unit of the model's times, s: jobs one after the other take ``WHOLE`` of them on average."""
    return _sum_of_completions(instance) / max(instance.num_jobs, 1) / WHOLE


def bound(instance: ElasticSharing, value: float) -> float:
    """Return the average JCT, s, that a bound on the model's objective proves.

    In seconds the costs would be as small as the jobs are short, and the solver's tolerance of reduced costs is
    absolute: with costs of 1e-5 it returned schedules 0.5 % worse than the best as optimal.
    """
    return for_rounded(instance, value * _value_of_one(instance))


def in_model(instance: ElasticSharing, value: float) -> float | None:
    """Return the model's objective of schedules whose average JCT is ``value``, s; None where it may be less."""
    if instance.reallocation == "any_time" and not instance.concave.all():
        return None
    return value / (_value_of_one(instance) or 1.0)


def _value_of_one(instance: ElasticSharing) -> float:
    """Return the average JCT, s, over all jobs where the model's objective is 1; 0 where no job has work."""
    active = unfinished(instance)
    return time_unit(active) * active.num_jobs / instance.num_jobs


def for_rounded(instance: ElasticSharing, bound: float) -> float:
    """Return what of a bound on the average JCT, s, holds of plans whose times have a last digit.

    A job of 20 ms that arrives in seconds since 1970 begins and ends on a clock that ticks every 240 ns.  Completions
    are sums over the intervals between events, of which each may be off by that, and the judge allows as much.
    """
    if not instance.arrivals.any():
        return bound
    return max(0.0, bound - 4 * (instance.num_jobs + 1) * float(np.spacing(instance.arrivals.max())))


def _alike(instance: ElasticSharing) -> list[tuple[int, int]]:
    """Pairs (i, j) of jobs with one curve and one arrival of which i can be taken to complete before j."""
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
        families.setdefault(curve.tobytes() + instance.arrivals[job].tobytes(), []).append(job)
    pairs = [pair for family in families.values() for pair in pairwise(family)]
    if instance.reallocation == "at_completions":
        pairs = [(i, j) for i, j in pairs if lengths[i] == lengths[j]]
    return pairs


def read(model: pyo.ConcreteModel) -> Schedule:
    """Return the schedule in the variable values.

    For "at_completions" the order and the shares are taken, and the lengths follow from them.  For
    "any_time" with concave curves the slots are filled by wrapping around; with other curves that
    may be impossible, and the schedule is one that follows the order and the average shares as
    closely as whole GPUs allow, changing shares at arrivals and completions.
    """
    instance = model.instance
    jobs = np.flatnonzero(instance.work)
    n = len(jobs)
    if not n:
        return Schedule(times=np.zeros(1), shares=np.zeros((0, instance.num_jobs), np.int64))
    begins = _begins(instance)
    position = _values(model.position, (n, n))
    order = jobs[position.argmax(axis=0)]
    complete = np.zeros(len(begins), np.int64)
    for (i, _), variable in model.over.items():
        complete[i] += variable.value > 0.5
    complete[-1] = n - 1
    slots = [
        (i, k)
        for i, (before, after) in enumerate(zip([0, *complete[:-1]], complete, strict=True))
        for k in range(before, after + 1)
    ]
    if instance.reallocation == "at_completions":
        held = np.zeros((len(slots), instance.num_jobs), np.int64)
        at = {slot: which for which, slot in enumerate(slots)}
        for (j, i, k, s), variable in model.holds.items():
            if variable.value > 0.5 and (i, k) in at:
                held[at[i, k], jobs[j]] = s
        return in_slots(instance, order, begins, slots, held)
    lengths = np.array([max(model.length[slot].value, 0.0) for slot in slots]) * model.time_unit.value
    # A job's work is spread over the slots up to its own that are no crumbs, in full; the work of a
    # job that is one itself is done in its own slot.
    ends = {k: which for which, (_, k) in enumerate(slots)}
    own = np.array([ends[k] for k in position.argmax(axis=1).tolist()])[:, None] == np.arange(len(slots))
    there = np.cumsum(own[:, ::-1], axis=1)[:, ::-1] * (lengths > CRUMB * lengths.sum())
    progress = np.array(
        [[model.progress[j, i, k].value if (j, i, k) in model.PRESENT else 0.0 for i, k in slots] for j in range(n)]
    )
    progress = there * np.maximum(progress, 0)
    progress = np.where(progress.any(axis=1, keepdims=True), progress, own)
    work = np.zeros((instance.num_jobs, len(slots)))
    work[jobs] = instance.work[jobs, None] * progress / progress.sum(axis=1, keepdims=True)
    if instance.concave.all():
        return wrapped_around(instance, begins[[i for i, _ in slots]], lengths, work)
    there_in = [[job for job in order[k:] if instance.arrivals[job] <= begins[i]] for i, k in slots]
    return in_slots(instance, order, begins, slots, rounded(instance, there_in, lengths, work))


def _values(variables: pyo.Var, shape: tuple[int, ...]) -> FloatArray:
    return np.array([variable.value for variable in variables.values()], float).reshape(shape)


def explain(instance: ElasticSharing) -> str | None:
    """Say which job runs on no number of GPUs."""
    stuck = np.flatnonzero(instance.stuck).tolist()
    return f"job {stuck[0]} runs on no number of GPUs" if stuck else None


FORMULATION = Formulation(build=build, read=read, bound=bound, in_model=in_model, explain=explain)
