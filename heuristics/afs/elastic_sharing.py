"""Schedulers for :class:`instances.afs.elastic_sharing.ElasticSharing`, each simulated to completion.

All share the GPUs anew at every arrival and completion, and see the jobs that have arrived and are
not done.  They differ in the rule that turns this state into shares.  Three conventions hold for
all:

* Jobs are scanned in order of their index, and ties go to the lowest one.
* Where a rule gives a job one more GPU, the job gets as many as its next faster share needs: one,
  as in the papers, where its throughput rises with every GPU; all that a rigid job must have at
  once.  A job that needs more for this than is left is out of the running until the next
  re-allocation.  A GPU that would speed up nobody stays idle.
* A job's *request*, where a scheduler needs one, is the fewest GPUs that make it as fast as it can
  be (``instance.max_shares``).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from functools import partial

import numpy as np

from heuristics.aryl.elastic_allocation import dynamic_program
from instances.afs.elastic_sharing import ElasticSharing, Schedule, State, simulate
from instances.aryl.elastic_allocation import ElasticAllocation
from instances.schema import FloatArray, IntArray

__all__ = ["afs_l", "afs_p", "aryl_two_phase", "max_min", "optimus", "srsf", "srsf_elastic", "srtf", "srtf_elastic"]


def afs_l(instance: ElasticSharing) -> Schedule:
    """AFS-L: GPUs go one by one to the job of top priority, found by comparing jobs in pairs.

    The scan keeps a champion, at first the lowest job, and compares it with every other job in
    turn; the winner is the champion of the next comparison.  Let a be the job of the two that would
    end sooner at its present share (the champion if they tie), b the other, p their throughputs and
    p' those with one more GPU:

    * both have no GPU: the one that is shorter on its first share wins;
    * otherwise b wins if ``(p'_b - p_b) / p'_b > (p'_a - p_a) / p_a``, else a.

    The second rule is formula (3); see :mod:`heuristics.afs.two_job`.  Among three jobs it can
    cycle, so that the order of the scan decides.

    Guarantee: none known.  Complexity: O(n * M) comparisons for each re-allocation; a scan is
    taken up from the job that received the last GPU, before which nothing has changed.

    References
    ----------
    AFS (NSDI'21), section 4.2, Algorithm 1.
    """
    scan = _Scan(instance, instance.throughputs)
    return simulate(instance, lambda state: scan.shares(state, state.remaining))


def afs_p(instance: ElasticSharing, *, quantum: float | None = None) -> Schedule:
    """AFS-P: AFS-L for jobs of unknown length, taken to be the longer the longer they have run.

    The same scan as :func:`afs_l`; of two jobs, the one that has run for less time so far counts
    as the shorter.

    Parameters
    ----------
    instance : ElasticSharing
    quantum : float, optional
        Time slice, s, positive: running times count in whole slices, and GPUs are also shared anew
        this long after the last time, so that no job waits for a long one to end.  None (the
        default) compares the times themselves, at arrivals and completions only.

    Raises
    ------
    ValueError
        When ``quantum`` is given though the instance lets shares change only at arrivals and
        completions, or is not positive.

    Notes
    -----
    Guarantee: none known.  Complexity: as :func:`afs_l`.

    References
    ----------
    AFS (NSDI'21), section 4.3.
    """
    if quantum is not None:
        if not quantum > 0:
            raise ValueError(f"quantum: got {quantum!r}, must be positive seconds")
        if instance.reallocation != "any_time":
            raise ValueError("quantum: slices need an instance with reallocation 'any_time'")
    scan = _Scan(instance, np.ones(instance.throughputs.shape))

    def shares(state: State) -> IntArray:
        # A slice that ended is whole up to rounding.
        return scan.shares(state, state.attained if quantum is None else np.floor(state.attained / quantum + 1e-9))

    return simulate(instance, shares, quantum=quantum)


def srtf(instance: ElasticSharing) -> Schedule:
    """Shortest remaining time first: each job gets its whole request, or nothing.

    Jobs in order of remaining time at their request; one that does not fit is passed over, and
    shorter requests behind it may start.

    Guarantee: optimal for jobs that scale linearly up to all GPUs.
    Complexity: O(n log n) for each re-allocation.

    References
    ----------
    AFS (NSDI'21), section 3 (SRTF).
    """
    return simulate(instance, partial(_in_order, instance, _remaining_times, elastic=False))


def srsf(instance: ElasticSharing) -> Schedule:
    """Shortest remaining service first: as :func:`srtf`, by remaining time times GPUs.

    Guarantee: optimal for jobs that scale linearly up to all GPUs.
    Complexity: O(n log n) for each re-allocation.

    References
    ----------
    AFS (NSDI'21), section 3 (SRSF, which is Tiresias's order when lengths are known).
    """
    return simulate(instance, partial(_in_order, instance, _remaining_services, elastic=False))


def srtf_elastic(instance: ElasticSharing) -> Schedule:
    """SRTF for elastic jobs: each in turn gets its request, or the most useful GPUs that are left.

    Guarantee: optimal for jobs that scale linearly up to all GPUs.
    Complexity: O(n log n) for each re-allocation.

    References
    ----------
    AFS (NSDI'21), section 3 (SRTF-E).
    """
    return simulate(instance, partial(_in_order, instance, _remaining_times, elastic=True))


def srsf_elastic(instance: ElasticSharing) -> Schedule:
    """SRSF for elastic jobs: as :func:`srtf_elastic`, by remaining time times GPUs.

    Guarantee: optimal for jobs that scale linearly up to all GPUs.
    Complexity: O(n log n) for each re-allocation.

    References
    ----------
    AFS (NSDI'21), section 3 (SRSF-E).
    """
    return simulate(instance, partial(_in_order, instance, _remaining_services, elastic=True))


def max_min(instance: ElasticSharing) -> Schedule:
    """Max-min fair shares: the next GPU goes to the job that has the fewest.

    Guarantee: none known on JCT.  Complexity: O((n + M) log n) for each re-allocation.

    References
    ----------
    AFS (NSDI'21), section 3 (Max-min).
    """
    following = _following(instance)
    return simulate(instance, partial(_greedy, instance, following, lambda state, job, share, step: float(share)))


def optimus(instance: ElasticSharing) -> Schedule:
    """Optimus: the next GPU goes where it shortens a job's remaining time the most.

    The first GPUs of a job, without which it never ends, come before all others.

    Guarantee: none known.  Complexity: O((n + M) log n) for each re-allocation.

    References
    ----------
    Peng et al., Optimus (EuroSys'18), section 4.1, marginal gain; AFS (NSDI'21), section 3.
    """
    following = _following(instance)

    def cost(state: State, job: int, share: int, step: int) -> float:
        now, then = instance.throughputs[job, share], instance.throughputs[job, share + step]
        return -float(state.remaining[job] * (1 / now - 1 / then) / step) if now else -np.inf

    return simulate(instance, partial(_greedy, instance, following, cost))


def aryl_two_phase(instance: ElasticSharing) -> Schedule:
    """Aryl's two phases: base demands by shortest job first, then the spare GPUs by knapsack.

    A job's minimum and maximum are read from its table: the fewest GPUs on which it runs, and its
    request.  Jobs that run keep their minimum.  Phase one starts waiting jobs at their minimum, in
    order of running time there, each if it fits.  Phase two gives the GPUs that are left to the
    running jobs so that the sum of their running times falls the most, exactly
    (:func:`heuristics.aryl.elastic_allocation.dynamic_program`).

    Guarantee: none known.  Complexity: O(n * M^2) for each re-allocation.

    References
    ----------
    Aryl (EuroSys'23 as Lyra), section 5.2, Algorithm 2.
    """
    return simulate(instance, partial(_two_phases, instance))


def _two_phases(instance: ElasticSharing, state: State) -> IntArray:
    low, high = instance.min_shares, instance.max_shares
    shares = np.zeros(instance.num_jobs, np.int64)
    holds = state.active[state.shares[state.active] > 0]
    shares[holds] = low[holds]
    left = instance.num_gpus - int(shares.sum())
    waiting = state.active[state.shares[state.active] == 0]
    base_times = state.remaining[waiting] / instance.throughputs[waiting, low[waiting]]
    for job in waiting[np.argsort(base_times, kind="stable")]:
        if low[job] <= left:
            shares[job] = low[job]
            left -= int(low[job])
    elastic = np.flatnonzero((shares > 0) & (low < high))
    if left and len(elastic):
        tables = [state.remaining[job] / instance.throughputs[job, low[job] : high[job] + 1] for job in elastic]
        spare = ElasticAllocation(
            capacity=left,
            min_workers=low[elastic],
            max_workers=high[elastic],
            gpus_per_worker=np.ones(len(elastic), np.int64),
            min_running_times=np.array([table[-1] for table in tables]),
            running_times=tuple(tables),
        )
        shares[elastic] += dynamic_program(spare).extra_workers
    return shares


# --- jobs in an order, and GPUs one by one -------------------------------------------------------


def _remaining_times(instance: ElasticSharing, state: State) -> FloatArray:
    return np.asarray(state.remaining[state.active] / instance.throughputs[state.active, -1])


def _remaining_services(instance: ElasticSharing, state: State) -> FloatArray:
    return np.asarray(_remaining_times(instance, state) * instance.max_shares[state.active])


def _in_order(
    instance: ElasticSharing,
    key: Callable[[ElasticSharing, State], FloatArray],
    state: State,
    *,
    elastic: bool,
) -> IntArray:
    """Requests of the active jobs in order of ``key``, or what is left of the GPUs."""
    shares = np.zeros(instance.num_jobs, np.int64)
    left = instance.num_gpus
    for job in state.active[np.argsort(key(instance, state), kind="stable")]:
        request = int(instance.max_shares[job])
        if request > left:
            if not elastic:
                continue
            table = instance.throughputs[job]
            request = int(np.searchsorted(table, table[left]))
        shares[job] = request
        left -= request
        if not left:
            break
    return shares


def _following(instance: ElasticSharing) -> IntArray:
    """(n, M+1) int: how many more GPUs make a job faster than at each share; 0 where none do."""
    steps = np.zeros(instance.throughputs.shape, np.int64)
    for share in reversed(range(instance.num_gpus)):
        faster = instance.throughputs[:, share + 1] > instance.throughputs[:, share]
        later = np.where(steps[:, share + 1] > 0, steps[:, share + 1] + 1, 0)
        steps[:, share] = np.where(faster, 1, later)
    return steps


def _greedy(
    instance: ElasticSharing,
    following: IntArray,
    cost: Callable[[State, int, int, int], float],
    state: State,
) -> IntArray:
    """GPUs to the job of least ``cost(state, job, share, step)`` as long as one gains."""
    shares = np.zeros(instance.num_jobs, np.int64)
    left = instance.num_gpus
    queue = [(cost(state, job, 0, int(following[job, 0])), job) for job in state.active.tolist()]
    heapq.heapify(queue)
    while queue and left:
        _, job = heapq.heappop(queue)
        step = int(following[job, shares[job]])
        if step > left:
            continue
        shares[job] += step
        left -= step
        further = int(following[job, shares[job]])
        if further:
            heapq.heappush(queue, (cost(state, job, int(shares[job]), further), job))
    return shares


# --- the scan of AFS -----------------------------------------------------------------------------


class _Scan:
    """Algorithm 1's choice of the job of top priority, again and again until the GPUs are gone.

    A job on s GPUs counts as ``amount / paces[s]`` long, and as longer than all others on none.
    """

    def __init__(self, instance: ElasticSharing, paces: FloatArray) -> None:
        self.instance = instance
        self.paces = paces
        self.following = _following(instance)
        now = instance.throughputs
        then = now[np.arange(instance.num_jobs)[:, None], np.arange(instance.num_gpus + 1) + self.following]
        with np.errstate(divide="ignore", invalid="ignore"):
            self.gain_if_shorter = (then - now) / now
            self.gain_if_longer = (then - now) / then

    def shares(self, state: State, amounts: FloatArray) -> IntArray:
        """Shares of all jobs in ``state``; ``amounts`` (n,) float says how long jobs are."""
        jobs, low = state.active, self.instance.min_shares
        first = amounts / self.paces[np.arange(len(low)), low]
        shares = np.zeros(len(low), np.int64)
        left = self.instance.num_gpus
        if (low[jobs] == 1).all() and (self.gain_if_shorter[jobs, 1] < 1).all():
            # No job with a GPU wins against one without, so that the first round goes by length.
            served = jobs[np.argsort(first[jobs], kind="stable")[:left]]
            shares[served] = 1
            left -= len(served)
        while left:
            step = self.following[jobs, shares[jobs]]
            jobs = jobs[(step > 0) & (step <= left)]
            if not len(jobs):
                break
            left = self._grant(jobs, shares, left, amounts, first)
        return shares

    def _grant(self, jobs: IntArray, shares: IntArray, left: int, amounts: FloatArray, first: FloatArray) -> int:
        """Scan and grant until one of ``jobs`` is out of the running; GPUs left then."""
        share = shares[jobs]
        has = share > 0
        length = np.full(len(jobs), np.inf)
        length[has] = amounts[jobs[has]] / self.paces[jobs[has], share[has]]
        # Lists, because single entries of arrays are slow to read.
        lengths = length.tolist()
        firsts = first[jobs].tolist()
        gains_a, gains_b = self.gain_if_shorter[jobs, share].tolist(), self.gain_if_longer[jobs, share].tolist()
        steps = self.following[jobs, share].tolist()
        largest = max(steps)
        champions, begin = [0], 1
        while True:
            best = champions[-1]
            for k in range(begin, len(lengths)):
                if lengths[k] < lengths[best]:
                    wins = gains_a[k] >= gains_b[best]
                elif lengths[best] == math.inf:
                    wins = firsts[k] < firsts[best]
                else:
                    wins = gains_b[k] > gains_a[best]
                if wins:
                    champions.append(k)
                    best = k
            job = jobs[best]
            shares[job] += steps[best]
            left -= steps[best]
            now = shares[job]
            lengths[best] = float(amounts[job] / self.paces[job, now])
            gains_a[best], gains_b[best] = float(self.gain_if_shorter[job, now]), float(self.gain_if_longer[job, now])
            steps[best] = int(self.following[job, now])
            largest = max(largest, steps[best])
            if not steps[best] or left < largest:
                return left
            # Up to the winner the scan would go as before; from there it is made anew.
            champions.pop()
            champions, begin = champions or [0], max(best, 1)
