"""Fast methods for :class:`instances.aryl.reclaim.Reclaim`.

The greedy methods differ only in the cost that they give to a server; all take the cheapest
server, preempt the jobs with base workers on it, and repeat.  Ties go to the lowest index.  None
has a known guarantee: no polynomial algorithm with a constant factor is known for minimum k-union.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from instances.aryl.reclaim import Reclaim, ReclaimPlan
from instances.schema import FloatArray, IntArray

__all__ = ["gpu_fraction", "local_search", "preemption_costs", "random", "server_fraction", "smallest_count_first"]


def server_fraction(instance: Reclaim) -> ReclaimPlan:
    """Aryl's Algorithm 1: a job costs each of its servers 1 / (number of its servers).

    Jobs on one server cost it 1, a job on four servers costs each 1/4; the costs of the other
    servers fall when a job is preempted, because its workers are gone from them too.  When one
    server is demanded, the paper takes the server with the fewest jobs.

    Guarantee: none known.  Complexity: O(demand * s + hosts).

    References
    ----------
    Aryl (EuroSys'23 as Lyra), section 4, Algorithm 1.
    """
    if instance.demand == 1:
        return smallest_count_first(instance)
    return _greedy(instance, _server_share)


def gpu_fraction(instance: Reclaim) -> ReclaimPlan:
    """Greedy by fraction of GPUs: a job costs a server the share of its GPUs that it holds there.

    The alternative that the paper compares with in Table 1.  Only the GPUs of servers that host
    base workers count on both sides of the share.

    Guarantee: none known.  Complexity: O(demand * s + hosts).

    References
    ----------
    Aryl (EuroSys'23 as Lyra), section 4, Table 1.
    """
    return _greedy(instance, _gpu_share)


def smallest_count_first(instance: Reclaim) -> ReclaimPlan:
    """Greedy by the number of jobs that a server still hosts (the paper's SCF baseline).

    Guarantee: none known.  Complexity: O(demand * s + hosts).

    References
    ----------
    Aryl (EuroSys'23 as Lyra), section 4, Table 1, and section 7 (smallest job count first).
    """
    return _greedy(instance, _job_count)


def random(instance: Reclaim, *, rng: np.random.Generator | int = 0) -> ReclaimPlan:
    """Servers drawn uniformly without replacement, the paper's weakest baseline.

    Guarantee: none.  Complexity: O(s).
    """
    rng = np.random.default_rng(rng)
    return ReclaimPlan(servers=np.sort(rng.permutation(instance.num_servers)[: instance.demand]))


def local_search(instance: Reclaim) -> ReclaimPlan:
    """Improve the greedy methods' servers by swaps of one returned for one kept server (ours).

    From the servers of each of :func:`server_fraction`, :func:`gpu_fraction` and
    :func:`smallest_count_first`, takes the best swap while one lowers the number of preempted
    jobs (ties go to the lowest servers); of the three ends, the best (ties in that order).

    Guarantee: never worse than the three greedy methods.  Complexity: O(hosts + demand * s) for
    each swap, at most n swaps from each start.
    """
    starts = (server_fraction(instance), gpu_fraction(instance), smallest_count_first(instance))
    return min((_swapped(instance, start) for start in starts), key=instance.objective)


def _swapped(instance: Reclaim, plan: ReclaimPlan) -> ReclaimPlan:
    """The plan after best swaps, until no swap is better."""
    jobs, servers = _hosts(instance)
    returned = np.zeros(instance.num_servers, bool)
    returned[plan.servers] = True
    while 0 < instance.demand < instance.num_servers:
        inside, outside = np.flatnonzero(returned), np.flatnonzero(~returned)
        position = np.empty(instance.num_servers, np.int64)
        position[inside], position[outside] = np.arange(len(inside)), np.arange(len(outside))
        on = returned[servers]
        touching = np.bincount(jobs[on], minlength=instance.num_jobs)[jobs]
        owner = np.zeros(instance.num_jobs, np.int64)
        owner[jobs[on]] = servers[on]
        # Keeping a server spares the jobs that it alone touches, unless its substitute hosts them
        # too; the substitute costs the jobs on it that nobody touches.
        spared = np.bincount(servers[on & (touching == 1)], minlength=instance.num_servers)
        added = np.bincount(servers[touching == 0], minlength=instance.num_servers)
        change = added[outside][None, :] - spared[inside][:, None]
        shared = ~on & (touching == 1)
        np.add.at(change, (position[owner[jobs[shared]]], position[servers[shared]]), 1)
        keep, give = np.unravel_index(int(change.argmin()), change.shape)
        if change[keep, give] >= 0:
            break
        returned[inside[keep]] = False
        returned[outside[give]] = True
    return ReclaimPlan(servers=np.flatnonzero(returned))


def preemption_costs(instance: Reclaim) -> dict[str, FloatArray]:
    """What each server costs before any is returned, by the three definitions of Table 1.

    Returns
    -------
    dict
        ``"job_count"``, ``"gpu_fraction"`` and ``"server_fraction"``, each (s,) float: the cost
        that :func:`smallest_count_first`, :func:`gpu_fraction` and :func:`server_fraction` start
        from.
    """
    jobs, servers = _hosts(instance)
    definitions = {"job_count": _job_count, "gpu_fraction": _gpu_share, "server_fraction": _server_share}
    return {name: _costs(instance, servers, share(instance, jobs, servers)) for name, share in definitions.items()}


def _hosts(instance: Reclaim) -> tuple[IntArray, IntArray]:
    """Jobs and servers of all pairs (job, server that hosts it), by job."""
    flat = np.flatnonzero(instance.hosts)
    return flat // instance.num_servers, flat % instance.num_servers


def _server_share(instance: Reclaim, jobs: IntArray, servers: IntArray) -> FloatArray:
    share: FloatArray = 1 / np.bincount(jobs)[jobs]
    return share


def _gpu_share(instance: Reclaim, jobs: IntArray, servers: IntArray) -> FloatArray:
    held = instance.gpus[jobs, servers].astype(float)
    share: FloatArray = held / np.bincount(jobs, weights=held)[jobs]
    return share


def _job_count(instance: Reclaim, jobs: IntArray, servers: IntArray) -> FloatArray:
    return np.ones(len(jobs))


def _costs(instance: Reclaim, servers: IntArray, share: FloatArray) -> FloatArray:
    """(s,) float: the shares of all jobs on each server."""
    return np.bincount(servers, weights=share, minlength=instance.num_servers).astype(float)


def _greedy(instance: Reclaim, share_of: Callable[[Reclaim, IntArray, IntArray], FloatArray]) -> ReclaimPlan:
    """Cheapest server first, where a server costs the shares of the jobs still running on it."""
    jobs, servers = _hosts(instance)
    share = share_of(instance, jobs, servers)
    by_job = np.searchsorted(jobs, np.arange(instance.num_jobs + 1))
    order = np.argsort(servers, kind="stable")
    by_server = np.searchsorted(servers[order], np.arange(instance.num_servers + 1))
    cost = _costs(instance, servers, share)
    running = np.ones(instance.num_jobs, bool)
    chosen: list[int] = []
    for _ in range(instance.demand):
        # Rounded, so that a cost that is zero but for rounding does not lose to a true zero of
        # higher index.
        server = int(np.argmin(np.round(cost, 9)))
        chosen.append(server)
        on_it = jobs[order[by_server[server] : by_server[server + 1]]]
        for job in on_it[running[on_it]]:
            running[job] = False
            span = slice(by_job[job], by_job[job + 1])
            cost[servers[span]] -= share[span]
        cost[server] = np.inf
    return ReclaimPlan(servers=np.array(chosen, np.int64))
