"""How well a schedule uses the cluster: queue length, cluster efficiency, blocking index.

AFS (NSDI'21) explains average JCT by these in section 2.2.  Here, at any moment,

* the *queue* is the jobs that have arrived, are not done, and do not run;
* *cluster efficiency* is ``(1/M) * sum_j T_j(s_j) / T_j(1)`` over the running jobs: the GPUs' worth
  of throughput that the cluster delivers, per GPU.  For a job that does not run on one GPU,
  its throughput per GPU on the fewest that it runs on takes the place of ``T_j(1)``;

and of a whole schedule, from the first arrival to the last completion, the two are averaged over
time, and the *blocking index* is the mean over jobs of the part of their JCT for which they waited.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from instances.afs.elastic_sharing import ElasticSharing, Schedule
from instances.base import PlanError
from instances.schema import FloatArray, IntArray

__all__ = ["Metrics", "Timeline", "metrics", "timeline"]


@dataclass(frozen=True)
class Timeline:
    """What happens in the cluster, between moments at which anything changes.

    Attributes
    ----------
    times : (u+1,) float
        Arrivals, completions and changes of shares, s, increasing.
    shares : (u, n) int
        GPUs of each job in between.
    queue_lengths : (u,) int
        Jobs that wait.
    efficiencies : (u,) float
        Cluster efficiency.
    waiting_times : (n,) float
        Time for which each job waits in all, s.
    """

    times: FloatArray
    shares: IntArray
    queue_lengths: IntArray
    efficiencies: FloatArray
    waiting_times: FloatArray


@dataclass(frozen=True)
class Metrics:
    """A schedule in five numbers.

    Attributes
    ----------
    average_jct : float
        Average job completion time, s.
    makespan : float
        Time from the first arrival to the last completion, s.
    queue_length : float
        Jobs that wait, on average over the makespan.
    cluster_efficiency : float
        On average over the makespan.
    blocking_index : float
        Part of its JCT for which a job waits, on average over jobs; 0 to 1.
    """

    average_jct: float
    makespan: float
    queue_length: float
    cluster_efficiency: float
    blocking_index: float


def timeline(instance: ElasticSharing, plan: Schedule) -> Timeline:
    """The cluster over time under ``plan``.

    Raises
    ------
    PlanError
        When a job is never done.
    """
    completions = instance.completions(plan)
    unfinished = np.flatnonzero(np.isinf(completions))
    if unfinished.size:
        raise PlanError(f"{instance.problem}: job {unfinished[0]} is never done")
    start, end = instance.arrivals.min(), completions.max()
    times = np.unique(np.concatenate([plan.times, instance.arrivals, completions]))
    times = times[(times >= start) & (times <= end)]
    middles = ((times[:-1] + times[1:]) / 2)[:, None]
    idle = np.zeros((1, instance.num_jobs), np.int64)
    shares = np.concatenate([idle, plan.shares, idle])[np.searchsorted(plan.times, middles[:, 0])]
    there = (instance.arrivals < middles) & (middles < completions)
    shares = np.where(there, shares, 0)
    jobs = np.arange(instance.num_jobs)
    rates = instance.throughputs[jobs, shares]
    per_gpu = instance.throughputs[jobs, instance.min_shares] / instance.min_shares
    waiting = there & (rates == 0)
    return Timeline(
        times=times,
        shares=shares,
        queue_lengths=waiting.sum(axis=1),
        efficiencies=(rates / per_gpu).sum(axis=1) / instance.num_gpus,
        waiting_times=np.diff(times) @ waiting,
    )


def metrics(instance: ElasticSharing, plan: Schedule) -> Metrics:
    """Average JCT and what explains it.

    Raises
    ------
    PlanError
        When a job is never done.
    """
    over_time = timeline(instance, plan)
    lengths = np.diff(over_time.times)
    makespan = float(lengths.sum())
    jcts = instance.completions(plan) - instance.arrivals
    return Metrics(
        average_jct=float(jcts.mean()),
        makespan=makespan,
        queue_length=float(lengths @ over_time.queue_lengths) / makespan,
        cluster_efficiency=float(lengths @ over_time.efficiencies) / makespan,
        blocking_index=float((over_time.waiting_times / jcts).mean()),
    )
