"""Jobs that cannot all meet their deadlines: a maximum flow, and the minimum cut that names them.

A job whose curve is linear up to a cap does r_i iterations in every GPU-slot, whichever it is, as
long as it holds no more than c_i GPUs at once.  So it needs a whole number of GPU-slots,

    a_i = ceil(M_i / r_i),

and the jobs meet their deadlines if and only if a flow carries them all:

    jobs -> job i            capacity a_i
    job i -> slot t < D_i    capacity c_i
    slot t -> GPUs           capacity G.

All capacities are whole, so a maximum flow is whole too, and is a plan.  Rounding up to a_i loses
nothing, because a part of a GPU-slot cannot be held; it would be wrong on a curve whose GPU-slots
do different work, where what a job needs depends on how they are spread.  Slots between two
deadlines are alike and are one node here: :func:`formulations.elasticflow.sharing.spread_evenly`
gives each job its mean over them, rounded down or up, in every slot, so that c_i and G hold.

Where the flow falls short, jobs I on the near side of a minimum cut need more than there is:

    sum_{i in I} a_i  >  sum_t min(G, sum_{i in I: t < D_i} c_i).

For other curves a_i is what the job needs with the cluster to itself, and c_i the fewest GPUs on
which it is fastest.  No plan gives it less or does more with more, so a refusal holds for any
curves; that there is none proves a plan only for curves that are linear up to a cap.

References
----------
ElasticFlow (ASPLOS'23), section 4.1, (2) and (3).  The flow is that of Ford and Fulkerson's
transportation problem; the inequality is their theorem of minimum cuts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from formulations.elasticflow.sharing import shares_alone, spread_evenly
from instances.elasticflow.sharing import RATE_TOLERANCE, DeadlineJobs, SlotPlan
from instances.schema import BoolArray, IntArray

__all__ = ["Cut", "Demand", "linear_up_to_a_cap", "refusal", "shares_by_flow", "why_infeasible"]

Jobs = DeadlineJobs[Any]


@dataclass(frozen=True)
class Demand:
    """Needs of each job.

    Attributes
    ----------
    linear : (n,) bool
        Whether the job's curve is linear up to a cap and flat, or falling, after it.
    caps : (n,) int
        The fewest GPUs on which the job is fastest; 0 for a job that never does anything.
    needs : (n,) int
        GPU-slots that the job needs, exact where ``linear``; else with the cluster to itself.
    """

    linear: BoolArray
    caps: IntArray
    needs: IntArray


@dataclass(frozen=True)
class Cut:
    """Jobs that need more GPU-slots than there are for them; without any one of them the flow serves the rest.

    Attributes
    ----------
    jobs : tuple of int
    slots : tuple of int
        Slots, from 0 on, in which these jobs can use all GPUs.  In their other slots, up to their
        deadlines, all of them together cannot.
    needed : int
        GPU-slots that the jobs need.
    available : int
        GPU-slots that the jobs can hold before their deadlines, fewer than ``needed``.
    elsewhere : int
        The part of ``available`` that is in their other slots.
    """

    jobs: tuple[int, ...]
    slots: tuple[int, ...]
    needed: int
    available: int
    elsewhere: int = 0

    def __str__(self) -> str:
        *others, last = map(str, self.jobs)
        one = not others
        who = f"job {last} needs" if one else f"jobs {', '.join(others)} and {last} need"
        need = f"{who} {_counted(self.needed)}"
        if not self.slots:
            most = "on the GPUs that it can use" if one else "on the GPUs that they can use"
            return f"{need} before {'its deadline' if one else 'their deadlines'}, {most} there are {self.available}"
        before = f"before slot {len(self.slots)}"
        if not self.elsewhere:
            return f"{need} {before}, there are {self.available}"
        whom = "it" if one else "they"
        return (
            f"{need}, there are {self.available - self.elsewhere} {before}, and {whom} can use {self.elsewhere} later"
        )


def _counted(gpu_slots: int) -> str:
    return "1 GPU-slot" if gpu_slots == 1 else f"{gpu_slots} GPU-slots"


def linear_up_to_a_cap(instance: Jobs) -> Demand:
    """Return which jobs' curves are linear up to a cap, and the caps and needs of all jobs.

    A job that cannot finish even with the cluster to itself needs more than it can hold: on a
    linear curve its work over its rate, else one GPU-slot too many.
    """
    best, most = instance.best_throughputs, instance.best_throughputs[:, -1]
    caps = (best < most[:, None] * (1 - RATE_TOLERANCE)).sum(axis=1)
    rates = np.where(caps > 0, most / np.maximum(caps, 1), 1.0)
    line = rates[:, None] * np.minimum(np.arange(instance.num_gpus + 1), caps[:, None])
    linear = (np.abs(best - line) <= RATE_TOLERANCE * most[:, None]).all(axis=1)
    # A hair less than all, as in shares_alone, so that rounding never asks for one GPU-slot too many.
    work = instance.iterations * (1 - 1e-9)
    needs = np.where(work > most * instance.deadlines, caps * instance.deadlines + 1, shares_alone(instance))
    return Demand(linear, caps, np.where(linear & (caps > 0), np.ceil(work / rates).astype(np.int64), needs))


def shares_by_flow(instance: Jobs) -> SlotPlan | Cut:
    """Find a plan in which all jobs meet their deadlines at the least GPU time, or the jobs that cannot.

    Every job holds exactly the GPU-slots that it needs, so the plan is optimal for
    :class:`instances.elasticflow.minimum_satisfactory_share.MinimumSatisfactoryShare`.

    Raises
    ------
    ValueError
        When the curve of a job is not linear up to a cap.
    """
    demand = linear_up_to_a_cap(instance)
    if not demand.linear.all():
        job = int(np.flatnonzero(~demand.linear)[0])
        raise ValueError(f"{instance.problem}: the curve of job {job} is not linear up to a cap")
    cut = refusal(instance)
    return _plan(instance, demand) if cut is None else cut


def refusal(instance: Jobs, jobs: Iterable[int] | None = None) -> Cut | None:
    """Jobs that cannot all meet their deadlines, and the slots in which they find too few GPUs.

    Parameters
    ----------
    instance : DeadlineJobs
        Any problem with deadlines; curves of any shape.
    jobs : iterable of int, optional
        Who is to meet the deadlines, all jobs by default.  With the jobs that are admitted and one
        that is not, the answer is why it cannot join.

    Returns
    -------
    Cut or None
        An irreducible set of jobs.  None proves that there is a plan if the curves are linear up to
        a cap, and nothing otherwise.

    Notes
    -----
    Complexity: one maximum flow, and one for each job of its minimum cut, each over O(n) nodes and
    O(n**2) edges, whatever the horizon.
    """
    demand = linear_up_to_a_cap(instance)
    refused = _refused(instance, demand, range(instance.num_jobs) if jobs is None else sorted(set(jobs)))
    if not refused:
        return None
    for job in refused:
        if job in refused:
            refused = _refused(instance, demand, [other for other in refused if other != job]) or refused
    return _counted_cut(instance, demand, refused)


def why_infeasible(instance: Jobs) -> str | None:
    """Say in words what :func:`refusal` finds, for :func:`formulations.explain`."""
    cut = refusal(instance)
    return None if cut is None else str(cut)


def _network(instance: Jobs, demand: Demand, jobs: Iterable[int]) -> Any:
    """Return the flow's network, with the slots between two deadlines as one node."""
    import networkx as nx

    ends = np.unique(instance.deadlines).tolist()
    lengths = np.diff(ends, prepend=0).tolist()
    network = nx.DiGraph()
    network.add_nodes_from(["jobs", "GPUs"])
    for interval, length in enumerate(lengths):
        network.add_edge(("interval", interval), "GPUs", capacity=instance.num_gpus * length)
    for job in jobs:
        network.add_edge("jobs", ("job", job), capacity=int(demand.needs[job]))
        for interval in range(ends.index(instance.deadlines[job]) + 1):
            capacity = int(demand.caps[job]) * lengths[interval]
            network.add_edge(("job", job), ("interval", interval), capacity=capacity)
    return network


def _refused(instance: Jobs, demand: Demand, jobs: Iterable[int]) -> list[int]:
    """Jobs on the near side of a minimum cut; none when the flow serves all."""
    import networkx as nx

    jobs = list(jobs)
    carried, (near, _) = nx.minimum_cut(_network(instance, demand, jobs), "jobs", "GPUs")
    if carried == demand.needs[jobs].sum():
        return []
    return [job for job in jobs if ("job", job) in near]


def _counted_cut(instance: Jobs, demand: Demand, jobs: list[int]) -> Cut:
    """Count slot by slot what the jobs need and what there is for them."""
    in_time = np.arange(instance.horizon) < instance.deadlines[jobs, None]
    usable = (demand.caps[jobs, None] * in_time).sum(axis=0)
    full = usable >= instance.num_gpus
    elsewhere = int(usable[~full].sum())
    return Cut(
        jobs=tuple(jobs),
        slots=tuple(np.flatnonzero(full).tolist()),
        needed=int(demand.needs[jobs].sum()),
        available=int(full.sum()) * instance.num_gpus + elsewhere,
        elsewhere=elsewhere,
    )


def _plan(instance: Jobs, demand: Demand) -> SlotPlan:
    import networkx as nx

    _, flow = nx.maximum_flow(_network(instance, demand, range(instance.num_jobs)), "jobs", "GPUs")
    lengths = np.diff(np.unique(instance.deadlines), prepend=0).tolist()
    held = np.array(
        [[flow["job", job].get(("interval", k), 0) for k in range(len(lengths))] for job in range(instance.num_jobs)]
    )
    return SlotPlan(gpus=np.hstack([spread_evenly(held[:, k], length) for k, length in enumerate(lengths)]))
