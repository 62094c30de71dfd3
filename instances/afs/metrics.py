"""Metrics of a schedule's use of the cluster: queue length, cluster efficiency, blocking index.

AFS (NSDI'21), section 2.2, explains average JCT by these.  At any moment,

* the *queue* is the jobs that have arrived, are not done, and do not run, J_P;
* *cluster efficiency* is ``(1/M) * sum_j T_j(s_j) / T_j(1)`` over the running jobs: the GPUs' worth
  of throughput that the cluster delivers, per GPU;
* the *blocking index* is the mean over the jobs of J_P of the time that a job has been pending so far,
  in all, over the time that its remaining work takes on one GPU; 0 where no job is pending.

For a job that does not run on one GPU, its throughput per GPU on the fewest that it runs on takes the
place of ``T_j(1)``.  Of a whole schedule, from the first arrival to the last completion, all three are
averaged over time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from instances.afs.elastic_sharing import ElasticSharing, Schedule
from instances.arithmetic import dot
from instances.base import PlanError
from instances.schema import FloatArray, IntArray

__all__ = ["Metrics", "Timeline", "metrics", "timeline"]


@dataclass(frozen=True)
class Timeline:
    """The states of the cluster between moments at which anything changes.

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
    blocking_indices : (u,) float
        Blocking index, on average over each interval, in which it grows steadily.
    waiting_times : (n,) float
        Time for which each job waits in all, s.
    """

    times: FloatArray
    shares: IntArray
    queue_lengths: IntArray
    efficiencies: FloatArray
    blocking_indices: FloatArray
    waiting_times: FloatArray


@dataclass(frozen=True)
class Metrics:
    """A schedule in six numbers.

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
        On average over the makespan.
    waiting_fraction : float
        Part of its JCT for which a job waits, on average over jobs; 0 to 1.  The library's own.
    """

    average_jct: float
    makespan: float
    queue_length: float
    cluster_efficiency: float
    blocking_index: float
    waiting_fraction: float


def timeline(instance: ElasticSharing, plan: Schedule) -> Timeline:
    """Return the cluster over time under ``plan``.

    Raises
    ------
    PlanError
        When a job is never done.
    """
    completions = instance.completions(plan)
    unfinished = np.flatnonzero(np.isinf(completions))
    if unfinished.size:
        raise PlanError(f"{instance.problem}: job {unfinished[0]} is never done")
    ends = np.concatenate([instance.arrivals, completions])
    start, end = ends.min(initial=np.inf), ends.max(initial=-np.inf)
    times = np.unique(np.concatenate([plan.times, ends]))
    times = times[(times >= start) & (times <= end)]
    middles = ((times[:-1] + times[1:]) / 2)[:, None]
    lengths = np.diff(times)
    idle = np.zeros((1, instance.num_jobs), np.int64)
    shares = np.concatenate([idle, instance.shares_of(plan), idle])[np.searchsorted(plan.times, middles[:, 0])]
    there = (instance.arrivals < middles) & (middles < completions)
    shares = np.where(there, shares, 0)
    jobs = np.arange(instance.num_jobs)
    rates = instance.throughputs[jobs, shares]
    # A finished job need not run on any number of GPUs.
    fewest = np.maximum(instance.min_shares, 1)
    per_gpu = np.where(instance.work > 0, instance.throughputs[jobs, fewest] / fewest, 1.0)
    waiting = there & (rates == 0)
    pending = np.cumsum(lengths[:, None] * waiting, axis=0) - lengths[:, None] * waiting / 2
    # Who is pending has the same work left throughout the interval.
    left = instance.work - np.cumsum(lengths[:, None] * rates, axis=0)
    blocked = np.where(waiting, pending * per_gpu / np.where(waiting, left, 1.0), 0.0)
    return Timeline(
        times=times,
        shares=shares,
        queue_lengths=waiting.sum(axis=1),
        efficiencies=(rates / per_gpu).sum(axis=1) / instance.num_gpus,
        blocking_indices=blocked.sum(axis=1) / np.maximum(waiting.sum(axis=1), 1),
        waiting_times=dot(lengths, waiting),
    )


def metrics(instance: ElasticSharing, plan: Schedule) -> Metrics:
    """Average JCT and what explains it; all 0 where no job has anything to do.

    Raises
    ------
    PlanError
        When a job is never done.
    """
    over_time = timeline(instance, plan)
    lengths = np.diff(over_time.times)
    makespan = float(lengths.sum())
    jcts = instance.completions(plan) - instance.arrivals
    spent = makespan or 1.0
    return Metrics(
        average_jct=instance.objective(plan),
        makespan=makespan,
        queue_length=float(dot(lengths, over_time.queue_lengths)) / spent,
        cluster_efficiency=float(dot(lengths, over_time.efficiencies)) / spent,
        blocking_index=float(dot(lengths, over_time.blocking_indices)) / spent,
        waiting_fraction=float((over_time.waiting_times / np.where(jcts > 0, jcts, 1.0)).sum()) / max(len(jcts), 1),
    )
