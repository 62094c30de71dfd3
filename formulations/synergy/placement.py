"""Exact model of :class:`instances.synergy.placement.SynergyPlacement`: as few fragmented jobs as possible.

The paper's program (:func:`second_stage`) places the jobs in shares, x_ji of job j on server i, fragmented or not:

          sum_i x_ji  ==  1                          for each job j
          sum_j demand[j, r] * x_ji  <=  capacity_r  for each server i and resource r
          x_ji  >=  0.

It has no objective: a vertex of it fragments at most three jobs for each server, not as few as possible.  The library's
own (:func:`build`) does.  Jobs of equal demands are interchangeable, so they are counted, not named.  For each class t
of n_t equal jobs and each server i,

    whole[t, i]    jobs that run on server i alone (whole number),
    pieces[t, i]   what server i carries of fragmented jobs, in jobs (or in GPUs, whole numbers,
                   with ``integral_gpus``; a job is u_t = its GPUs then, else u_t = 1),
    fragmented[t]  jobs on more than one server (whole number):

    min   sum_t fragmented[t]
    s.t.  placed[t]:      sum_i whole[t, i] + fragmented[t]  ==  n_t
          complete[t]:    sum_i pieces[t, i]  ==  u_t * fragmented[t]
          capacity[i, r]: sum_t demand[t, r] * (whole[t, i] + pieces[t, i] / u_t)  <=  capacity_r
          order[i]:       whole[big, i]  >=  whole[big, i + 1].

Pieces need no job to belong to: laid end to end, they are cut into jobs wherever one is complete.
Where the jobs use all GPUs of the cluster, they fill every server's; its whole jobs take a whole
number of them, and so do its pieces together, which the relaxation cannot see:

          full[i]:        sum_t gpus_t * pieces[t, i] / u_t  ==  pieces_gpus[i]    (whole number).

A job of one GPU is then never the only fragmented one.  Where one is larger than a server,

          not_alone:      sum_t fragmented[t]  >=  2,

which follows from ``full``, but takes a search of up to a minute to find.

The judge forgives a server a little of what it has.  ``capacity`` is as wide as that, with some to spare, also where
demands are whole, because shares are not: a server may hold 1 + e times what it has.  So where all GPUs are in use,
others may lack what one server of G GPUs has too many, and its pieces miss a whole number by no more:

          full[i]:        -(s - 1) e G  <=  sum_t gpus_t * pieces[t, i] / u_t - pieces_gpus[i]  <=  e G.

All but (s - 1) e G of an only fragmented job of one GPU is then on one server, so ``not_alone`` is stated where that is
more than it holds.  ``full`` is not stated where a job is barely larger than a server (``BARELY``).

The servers are identical, so every placement exists in s! copies; the order of the servers by
their jobs of one class, the one with the largest demands, removes many of them.  Deactivate
``order`` before adding constraints that tell servers apart.
"""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo

from formulations.engine.highs import Session, SolverError
from formulations.engine.linear import refuse_large, translate, weighted_sum
from formulations.engine.polishing import PRECISE
from formulations.engine.protocol import Formulation
from formulations.engine.sets import RangeSet, Set
from formulations.synergy.classes import equal_rows
from instances.base import WIDER
from instances.schema import BoolArray, FloatArray
from instances.synergy.placement import RESOURCES, SynergyPlacement, SynergyPlacementPlan

__all__ = [
    "BARELY",
    "FORMULATION",
    "NEGLIGIBLE",
    "bound",
    "build",
    "explain",
    "larger_than_a_server",
    "oversized",
    "read",
    "second_stage",
    "spread",
    "vertex",
    "write",
]

NEGLIGIBLE = 1e-10
"""Shares up to this are rounding of the solver's, not places where a job runs."""

BARELY = 1e-4
"""Part of a server by which a job may be larger than one and ``full`` is not stated: a piece so small is lost in a
solver's tolerance, and with it plans."""


def second_stage(instance: SynergyPlacement) -> pyo.ConcreteModel:
    """Return the paper's second linear program (A.1.3): any placement in shares, fragmented or not.

    Sets JOBS, SERVERS, RESOURCES; variables ``shares[j, i]``; constraints ``placed[j]`` and
    ``capacity[i, r]``; the objective ``nothing`` is constant.
    """
    model = pyo.ConcreteModel(name=instance.problem)
    model.JOBS = RangeSet(0, instance.num_jobs - 1)
    model.SERVERS = RangeSet(0, instance.num_servers - 1)
    model.RESOURCES = Set(initialize=RESOURCES)
    model.shares = pyo.Var(model.JOBS * model.SERVERS, bounds=(0, None))

    def placed(model: pyo.ConcreteModel, j: int) -> object:
        return pyo.quicksum(model.shares[j, i] for i in model.SERVERS) == 1

    def capacity(model: pyo.ConcreteModel, i: int, r: str) -> object:
        column = RESOURCES.index(r)
        used = weighted_sum(instance.demands[:, column], [model.shares[j, i] for j in model.JOBS])
        return used <= float(instance.capacity[column])

    model.placed = pyo.Constraint(model.JOBS, rule=placed)
    model.capacity = pyo.Constraint(model.SERVERS * model.RESOURCES, rule=capacity)
    model.nothing = pyo.Objective(expr=0.0)
    return model


def build(instance: SynergyPlacement) -> pyo.ConcreteModel:
    """Pyomo model of a placement instance.

    Sets CLASSES, SERVERS, RESOURCES; ``model.jobs[t]`` lists the jobs of a class; variables
    ``whole[t, i]``, ``pieces[t, i]``, ``fragmented[t]``; constraints ``placed[t]``,
    ``complete[t]``, ``capacity[i, r]`` and ``order[i]``; objective ``fragmented_jobs``.  Where the
    jobs use all GPUs of the cluster, and not ``integral_gpus``, also the variables ``pieces_gpus[i]``
    and the constraints ``full[i]``, if no job is ``BARELY`` larger than a server, and ``not_alone``
    if one of one GPU is larger by more than the judge forgives.
    """
    classes = equal_rows(list(map(tuple, instance.demands.tolist())))
    refuse_large(instance, 2 * len(classes) * instance.num_servers, "variables, num_servers for each kind of job")
    model = pyo.ConcreteModel(name=instance.problem)
    model.jobs = classes
    demands = np.array([instance.demands[jobs[0]] for jobs in model.jobs])
    units = np.maximum(demands[:, 0], 1.0) if instance.integral_gpus else np.ones(len(demands))
    model.unit = units.tolist()
    model.gpus = demands[:, 0].tolist()
    counts = [len(jobs) for jobs in model.jobs]
    fits = ~oversized(instance)[[jobs[0] for jobs in model.jobs]]
    model.CLASSES = RangeSet(0, len(counts) - 1)
    model.SERVERS = RangeSet(0, instance.num_servers - 1)
    model.RESOURCES = Set(initialize=RESOURCES)
    model.whole = pyo.Var(
        model.CLASSES * model.SERVERS, domain=pyo.Integers, bounds=lambda _, t, i: (0, counts[t] if fits[t] else 0)
    )
    model.fragmented = pyo.Var(model.CLASSES, domain=pyo.Integers, bounds=lambda _, t: (0, counts[t]))
    model.pieces = pyo.Var(model.CLASSES * model.SERVERS, bounds=lambda _, t, i: (0, units[t] * counts[t]))
    if instance.integral_gpus:
        for (t, _), variable in model.pieces.items():
            if demands[t, 0]:
                variable.domain = pyo.Integers

    def placed(model: pyo.ConcreteModel, t: int) -> object:
        return pyo.quicksum(model.whole[t, :]) + model.fragmented[t] == counts[t]

    def complete(model: pyo.ConcreteModel, t: int) -> object:
        return pyo.quicksum(model.pieces[t, :]) == model.unit[t] * model.fragmented[t]

    def capacity(model: pyo.ConcreteModel, i: int, r: str) -> object:
        column = RESOURCES.index(r)
        amounts = demands[:, column]
        alone = weighted_sum(amounts, [model.whole[t, i] for t in model.CLASSES])
        split = weighted_sum(amounts / units, [model.pieces[t, i] for t in model.CLASSES])
        whole_gpus = r == "gpus" and instance.integral_gpus
        return alone + split <= float((instance.capacity if whole_gpus else _most(instance))[column])

    model.placed = pyo.Constraint(model.CLASSES, rule=placed)
    model.complete = pyo.Constraint(model.CLASSES, rule=complete)
    model.capacity = pyo.Constraint(model.SERVERS * model.RESOURCES, rule=capacity)
    size = np.where(fits, (demands / np.maximum(instance.capacity, 1e-300)).sum(axis=1), -1.0)
    model.big = int(size.argmax())

    def order(model: pyo.ConcreteModel, i: int) -> object:
        return model.whole[model.big, i] >= model.whole[model.big, i + 1]

    model.order = pyo.Constraint(RangeSet(0, instance.num_servers - 2), rule=order)
    away = WIDER * instance.server_gpus
    elsewhere = (instance.num_servers - 1) * away
    full = instance.demands[:, 0].sum() == instance.num_gpus and away + elsewhere < 1 and not instance.integral_gpus
    barely = (oversized(instance) & (instance.demands <= instance.capacity * (1 + BARELY)).all(axis=1)).any()
    model.FULL = Set(initialize=model.SERVERS if full and not barely else ())
    model.pieces_gpus = pyo.Var(model.FULL, domain=pyo.Integers, bounds=(0, instance.server_gpus))

    def full_of_gpus(model: pyo.ConcreteModel, i: int) -> object:
        pieces = [model.pieces[t, i] for t in model.CLASSES]
        return (-elsewhere, weighted_sum(demands[:, 0] / units, pieces) - model.pieces_gpus[i], away)

    model.full = pyo.Constraint(model.FULL, rule=full_of_gpus)
    too_large = (demands * (1 - elsewhere) > _most(instance)).any(axis=1)
    if full and (too_large & (demands[:, 0] == 1)).any():
        model.not_alone = pyo.Constraint(expr=pyo.quicksum(model.fragmented.values()) >= 2)
    model.fragmented_jobs = pyo.Objective(expr=pyo.quicksum(model.fragmented.values()), sense=pyo.minimize)
    return model


def _most(instance: SynergyPlacement) -> FloatArray:
    """(3,) float: the most that a server may hold, whole demands or not, because shares are not whole."""
    most: FloatArray = instance.capacity * (1 + WIDER)
    return most


def read(model: pyo.ConcreteModel) -> SynergyPlacementPlan:
    """Return the plan in the values of ``whole`` and ``pieces``."""
    shares = np.zeros((sum(map(len, model.jobs)), len(model.SERVERS)))
    for t, jobs in enumerate(model.jobs):
        homes = [i for i in model.SERVERS for _ in range(round(pyo.value(model.whole[t, i])))]
        for job, home in zip(jobs, homes, strict=False):
            shares[job, home] = 1.0
        pieces = np.array([pyo.value(model.pieces[t, i]) for i in model.SERVERS])
        split = jobs[len(homes) :]
        if split and pieces.max() > NEGLIGIBLE:
            shares[split] = _cut(pieces, len(split))
    return SynergyPlacementPlan(shares=shares)


def write(model: pyo.ConcreteModel, plan: SynergyPlacementPlan) -> None:
    """Set the variables to ``plan``, as a point to start the search from.

    The servers are renumbered so that ``order`` holds.
    """
    alone = (plan.shares > 0) & ((plan.shares > 0).sum(axis=1, keepdims=True) == 1)
    whole = np.array([alone[jobs].sum(axis=0) for jobs in model.jobs])
    cut = np.where(alone.any(axis=1, keepdims=True), 0.0, plan.shares)
    for i, old in enumerate(np.argsort(-whole[model.big], kind="stable").tolist()):
        for t, jobs in enumerate(model.jobs):
            model.whole[t, i].set_value(int(whole[t, old]), skip_validation=True)
            piece = float(cut[jobs, old].sum()) * model.unit[t]
            model.pieces[t, i].set_value(round(piece) if model.pieces[t, i].is_integer() else piece)
        if i in model.FULL:
            model.pieces_gpus[i].set_value(model.pieces_gpus[i].ub - int(whole[:, old] @ model.gpus))
    for t, jobs in enumerate(model.jobs):
        model.fragmented[t].set_value(len(jobs) - int(whole[t].sum()), skip_validation=True)


def _cut(pieces: FloatArray, count: int) -> FloatArray:
    """(count, s) shares of jobs, from pieces of the servers laid end to end and cut into equal lengths."""
    pieces = np.where(pieces > NEGLIGIBLE, pieces, 0.0)
    ends = np.cumsum(pieces) * (count / pieces.sum())
    starts = ends - pieces * (count / pieces.sum())
    job = np.arange(count)[:, None]
    shares = np.minimum(ends, job + 1) - np.maximum(starts, job)
    shares = np.where(shares > NEGLIGIBLE, shares, 0.0)
    cut: FloatArray = shares / shares.sum(axis=1, keepdims=True)
    return cut


def bound(instance: SynergyPlacement, value: float) -> float:
    """Round a bound up: the number of fragmented jobs is whole."""
    return float(np.ceil(value - 1e-6)) + 0.0


def explain(instance: SynergyPlacement) -> str | None:
    """Return the first reason in the data why there is no plan: the servers' resources, or a GPU that is too much."""
    wanted, there = instance.demands.sum(axis=0), instance.num_servers * instance.capacity
    for r in np.flatnonzero(wanted > instance.num_servers * _most(instance))[:1]:
        return f"the jobs want {wanted[r]:g} {('GPUs', 'CPU cores', 'GB')[r]}, the servers have {there[r]:g}"
    if instance.integral_gpus:
        per_gpu = instance.demands / np.maximum(instance.demands[:, :1], 1.0)
        too_much = (instance.demands[:, 0] > 0) & (per_gpu > _most(instance)).any(axis=1)
        if too_much.any():
            return f"one GPU of job {np.flatnonzero(too_much)[0]} comes with more CPU cores or memory than a server has"
    return None


def oversized(instance: SynergyPlacement) -> BoolArray:
    """(n,) bool: the jobs that no server holds."""
    return np.asarray((instance.demands > _most(instance)).any(axis=1))


def spread(instance: SynergyPlacement) -> SynergyPlacementPlan:
    """Return the plan that has all jobs on all servers alike, which fits wherever any does, but for whole GPUs."""
    return SynergyPlacementPlan(shares=np.full((instance.num_jobs, instance.num_servers), 1 / instance.num_servers))


def larger_than_a_server(instance: SynergyPlacement) -> float:
    """No plan fragments fewer jobs than are larger than a server."""
    return float(oversized(instance).sum())


def vertex(instance: SynergyPlacement) -> SynergyPlacementPlan | None:
    """Return a basic solution of the paper's second linear program, which has no objective (A.1.3).

    At a vertex at most n + 3s shares are positive, so at most 3s jobs are fragmented
    (Theorem A.2).  A point that is no vertex need not obey this.  Shares are continuous, whatever
    ``integral_gpus`` says.

    Returns
    -------
    SynergyPlacementPlan or None
        None when the demands exceed the cluster's capacity.

    Raises
    ------
    SolverError
        When the solver's point is no vertex.

    References
    ----------
    Synergy (OSDI'22), appendix A.1.3, Theorem A.2.
    """
    program = translate(second_stage(instance))
    result = Session(tolerance=PRECISE).run(program)
    if result.status == "infeasible":
        return None
    if result.x is None:
        raise SolverError(f"the second stage could not be solved: {result.message}")
    shares = result.x.reshape(instance.num_jobs, instance.num_servers)
    shares = np.where(shares > NEGLIGIBLE, shares, 0.0)
    shares /= shares.sum(axis=1, keepdims=True)
    if not _is_basic(instance, shares):
        raise SolverError("the solver's point of the second stage is no vertex")
    return SynergyPlacementPlan(shares=shares)


def _is_basic(instance: SynergyPlacement, shares: FloatArray) -> bool:
    """Tell whether shares are a vertex: their columns, over the rows that hold with equality, are independent.

    The column of a job on one server is the only one with an entry in the job's row, so only the
    fragmented jobs' columns can depend on each other.
    """
    jobs, servers = np.nonzero(np.where((shares > 0).sum(axis=1, keepdims=True) > 1, shares, 0.0))
    used = shares.T @ instance.demands
    tight = np.isclose(used, instance.capacity, rtol=1e-6, atol=1e-6)
    columns = np.zeros((instance.num_jobs + tight.size, len(jobs)))
    position = np.arange(len(jobs))
    columns[jobs, position] = 1.0
    scale = np.maximum(instance.capacity, 1e-300)
    for resource in range(len(RESOURCES)):
        rows = instance.num_jobs + servers * len(RESOURCES) + resource
        columns[rows, position] = tight[servers, resource] * instance.demands[jobs, resource] / scale[resource]
    return bool(np.linalg.matrix_rank(columns) == len(jobs)) if len(jobs) else True


FORMULATION = Formulation(
    build=build,
    read=read,
    write=write,
    bound=bound,
    explain=explain,
    trivial=spread,
    trivial_bound=larger_than_a_server,
)
