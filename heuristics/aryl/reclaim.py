"""Fast methods for :class:`instances.aryl.reclaim.Reclaim`.

The greedy methods differ only in the cost that they give to a server; all take the cheapest
server, preempt the jobs with base workers on it, and repeat.  Ties go to the lowest index.  None
has a known guarantee: minimum k-union has no constant-factor approximation under common
assumptions.
"""

from __future__ import annotations

import numpy as np

from instances.aryl.reclaim import Reclaim, ReclaimPlan
from instances.base import FloatArray, IntArray


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
    jobs, servers = _hosts(instance)
    return _greedy(instance, jobs, servers, 1 / np.bincount(jobs)[jobs])


def gpu_fraction(instance: Reclaim) -> ReclaimPlan:
    """Greedy by fraction of GPUs: a job costs a server the share of its GPUs that it holds there.

    The alternative that the paper compares with in Table 1.  Only the GPUs of servers that host
    base workers count on both sides of the share.

    Guarantee: none known.  Complexity: O(demand * s + hosts).

    References
    ----------
    Aryl (EuroSys'23 as Lyra), section 4, Table 1.
    """
    jobs, servers = _hosts(instance)
    held = instance.gpus[jobs, servers].astype(float)
    return _greedy(instance, jobs, servers, held / np.bincount(jobs, weights=held)[jobs])


def smallest_count_first(instance: Reclaim) -> ReclaimPlan:
    """Greedy by the number of jobs that a server still hosts (the paper's SCF baseline).

    Guarantee: none known.  Complexity: O(demand * s + hosts).

    References
    ----------
    Aryl (EuroSys'23 as Lyra), section 4, Table 1, and section 7 (smallest job count first).
    """
    jobs, servers = _hosts(instance)
    return _greedy(instance, jobs, servers, np.ones(len(jobs)))


def random(instance: Reclaim, *, rng: np.random.Generator | int = 0) -> ReclaimPlan:
    """Servers drawn uniformly without replacement, the paper's weakest baseline.

    Guarantee: none.  Complexity: O(s).
    """
    rng = np.random.default_rng(rng)
    return ReclaimPlan(servers=np.sort(rng.permutation(instance.num_servers)[: instance.demand]))


def local_search(instance: Reclaim) -> ReclaimPlan:
    """Improve Algorithm 1's servers by swaps of one returned server for one kept server (ours).

    Takes the best swap while one lowers the number of preempted jobs; ties go to the lowest
    indices.

    Guarantee: never worse than :func:`server_fraction`.  Complexity: O(hosts * s) for each swap,
    at most n swaps.
    """
    chosen = np.zeros(instance.num_servers, bool)
    chosen[server_fraction(instance).servers] = True
    hosts = instance.hosts.astype(np.int32)
    while True:
        inside, outside = np.flatnonzero(chosen), np.flatnonzero(~chosen)
        if not len(inside) or not len(outside):
            break
        touching = hosts[:, inside].sum(axis=1)
        # Giving up i spares the jobs it alone touches; taking o costs the jobs nobody touches,
        # and those that i alone touched and o hosts too.
        spared = (hosts[:, inside] * (touching == 1)[:, None]).sum(axis=0)
        added = (hosts[:, outside] * (touching == 0)[:, None]).sum(axis=0)
        kept = (hosts[:, inside] * (touching == 1)[:, None]).T @ hosts[:, outside]
        change = added[None, :] + kept - spared[:, None]
        if change.min() >= 0:
            break
        give, take = np.unravel_index(int(change.argmin()), change.shape)
        chosen[inside[give]] = False
        chosen[outside[take]] = True
    return ReclaimPlan(servers=np.flatnonzero(chosen))


def _hosts(instance: Reclaim) -> tuple[IntArray, IntArray]:
    """Jobs and servers of all pairs (job, server that hosts it), by job."""
    flat = np.flatnonzero(instance.hosts)
    return flat // instance.num_servers, flat % instance.num_servers


def _greedy(instance: Reclaim, jobs: IntArray, servers: IntArray, share: FloatArray) -> ReclaimPlan:
    """Cheapest server first, where a server costs the shares of the jobs still running on it."""
    by_job = np.searchsorted(jobs, np.arange(instance.num_jobs + 1))
    order = np.argsort(servers, kind="stable")
    by_server = np.searchsorted(servers[order], np.arange(instance.num_servers + 1))
    cost = np.bincount(servers, weights=share, minlength=instance.num_servers).astype(float)
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
