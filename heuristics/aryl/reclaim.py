"""Fast methods for :class:`instances.aryl.reclaim.Reclaim`.

The greedy methods differ only in the cost that they give to a server; all take the cheapest
server, preempt the jobs with base workers on it, and repeat; only :func:`smallest_count_first`
does not look again.  None has a known guarantee: no polynomial algorithm with a constant factor is
known for minimum k-union.  Where more servers are demanded than there are, they return all.

Which of several cheapest servers is taken is open in the paper.  ``order``, all servers in an
order, says it: the one that comes first in it.  By default that is the lowest number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from instances.aryl.reclaim import Reclaim, ReclaimPlan
from instances.schema import BoolArray, FloatArray, IntArray

__all__ = [
    "flexible_first",
    "gpu_fraction",
    "local_search",
    "preemption_costs",
    "random",
    "server_fraction",
    "smallest_count_first",
    "smallest_count_updated",
    "tabu_search",
]


def server_fraction(instance: Reclaim, *, order: Sequence[int] | IntArray | None = None) -> ReclaimPlan:
    """Aryl's Algorithm 1: a job costs each of its servers 1 / (number of its servers).

    Jobs on one server cost it 1, a job on four servers costs each 1/4; the costs of the other
    servers fall when a job is preempted, because its workers are gone from them too (lines 10 to
    16).  When one server is demanded, the server with the fewest jobs is taken (lines 18 to 20).

    Guarantee: none known; optimal when one server is demanded, and where no job spans two servers.  It
    can preempt s - demand times as many jobs as needed (docs/worst-cases.md).
    Complexity: O((n + demand) * s).

    Parameters
    ----------
    instance : Reclaim
    order : sequence of int, optional
        All servers; of the cheapest the one that comes first.  By default the lowest number.

    References
    ----------
    Aryl (EuroSys'23 as Lyra), section 4 and Appendix B, Algorithm 1.
    """
    if instance.demand == 1:
        return smallest_count_first(instance, order=order)
    return _greedy(instance, _server_share, order)


def flexible_first(instance: Reclaim, *, order: Sequence[int] | IntArray | None = None) -> ReclaimPlan:
    """Release the servers without base workers first, and leave the rest of the demand to Algorithm 1.

    Returning such a server scales jobs in and preempts none; where there are enough of them, none
    other is returned.  :func:`server_fraction` takes them first as well, since they cost nothing;
    only where one server is left to find does this take the one of fewest jobs and that the one of
    least cost.

    Guarantee and complexity: those of :func:`server_fraction`.

    Parameters
    ----------
    instance : Reclaim
    order : sequence of int, optional
        As in :func:`server_fraction`.

    References
    ----------
    Aryl (EuroSys'23 as Lyra), sections 1 (reclaiming in two phases) and 5.3.
    """
    rank = _rank(instance, order)
    released = sorted(instance.flexible_servers.tolist(), key=lambda server: rank[server])[: instance.demand]
    others = np.setdiff1d(np.arange(instance.num_servers), released)
    if len(released) == instance.demand or not len(others):
        return ReclaimPlan(servers=np.array(released, np.int64))
    rest = Reclaim(
        hosts=instance.hosts[:, others], gpus=instance.gpus[:, others], demand=instance.demand - len(released)
    )
    preempting = others[server_fraction(rest, order=np.argsort(rank[others])).servers]
    return ReclaimPlan(servers=np.concatenate([np.array(released, np.int64), preempting]))


def gpu_fraction(instance: Reclaim, *, order: Sequence[int] | IntArray | None = None) -> ReclaimPlan:
    """Greedy by fraction of GPUs: a job costs a server the share of its GPUs that it holds there.

    The alternative that the paper compares with in Table 1.  Only the GPUs of servers that host
    base workers count on both sides of the share.

    Guarantee: none known.  Complexity: O((n + demand) * s).

    Parameters
    ----------
    instance : Reclaim
    order : sequence of int, optional
        As in :func:`server_fraction`.

    References
    ----------
    Aryl (EuroSys'23 as Lyra), section 4, Table 1.
    """
    return _greedy(instance, _gpu_share, order)


def smallest_count_first(instance: Reclaim, *, order: Sequence[int] | IntArray | None = None) -> ReclaimPlan:
    """Return the servers that host the fewest jobs, as counted before any is returned (the paper's SCF baseline).

    Guarantee: at most ``demand`` times as many jobs as needed, because each of its servers hosts at most as
    many as some server of any other plan; optimal where no job spans two servers.
    Complexity: O(s * (n + log s)).

    Parameters
    ----------
    instance : Reclaim
    order : sequence of int, optional
        As in :func:`server_fraction`.

    References
    ----------
    Aryl (EuroSys'23 as Lyra), section 7.1 (smallest job count first), and section 4, Table 1.
    """
    servers = np.lexsort((_rank(instance, order), instance.hosts.sum(axis=0)))
    return ReclaimPlan(servers=servers[: instance.demand])


def smallest_count_updated(instance: Reclaim, *, order: Sequence[int] | IntArray | None = None) -> ReclaimPlan:
    """Greedy by the number of jobs that a server still hosts: smallest count first with Algorithm 1's updates (ours).

    Guarantee: none known.  Complexity: O((n + demand) * s).

    Parameters
    ----------
    instance : Reclaim
    order : sequence of int, optional
        As in :func:`server_fraction`.
    """
    return _greedy(instance, _job_count, order)


def random(instance: Reclaim, *, rng: np.random.Generator | int = 0) -> ReclaimPlan:
    """Servers drawn uniformly without replacement, a baseline.

    Guarantee: none.  Complexity: O(s).

    References
    ----------
    Aryl (EuroSys'23 as Lyra), section 7.1.
    """
    rng = np.random.default_rng(rng)
    return ReclaimPlan(servers=np.sort(rng.permutation(instance.num_servers)[: instance.demand]))


def local_search(instance: Reclaim) -> ReclaimPlan:
    """Improve the greedy methods' servers by swaps of one returned for one kept server (ours).

    From the servers of each of :func:`server_fraction`, :func:`gpu_fraction` and
    :func:`smallest_count_updated`, takes the best swap while one lowers the number of preempted
    jobs (ties go to the lowest servers); of the three ends, the best (ties in that order).

    Guarantee: never worse than these three.  Complexity: O(hosts + demand * s) for
    each swap, at most n swaps from each start.
    """
    starts = (server_fraction(instance), gpu_fraction(instance), smallest_count_updated(instance))
    return min((_swapped(instance, start) for start in starts), key=instance.objective)


def tabu_search(instance: Reclaim, *, steps: int = 100) -> ReclaimPlan:
    """Go on from :func:`local_search` by swaps that may be worse, but do not undo the last ones (ours).

    Each step takes the best swap of one returned for one kept server, of servers that no swap of the last few steps
    moved, or of any where that is better than the best servers so far (ties go to the lowest servers).  The few are a
    third of the servers returned, and of those kept, 7 at most.

    Guarantee: never worse than :func:`local_search`; optimal where at most one server is returned, or all but one are.
    Complexity: O(hosts + demand * s) for each step.

    Parameters
    ----------
    instance : Reclaim
    steps : int
        Swaps, beyond those of :func:`local_search`.

    References
    ----------
    Glover, Tabu search, part I (ORSA Journal on Computing 1, 1989).
    """
    best = local_search(instance)
    value = now = int(instance.objective(best))
    fewer = min(instance.demand, instance.num_servers - instance.demand)
    if fewer < 2:
        return best
    hosts = _hosts(instance)
    returned = np.zeros(instance.num_servers, bool)
    returned[best.servers] = True
    # The first step at which a server may be moved again.
    again = np.zeros(instance.num_servers, np.int64)
    for step in range(steps):
        if not value:
            break
        inside, outside, change = _changes(instance, hosts, returned)
        barred = (again[inside] > step)[:, None] | (again[outside] > step)
        keep, give = _lowest(np.where(barred & (now + change >= value), instance.num_jobs + 1, change))
        moved = [inside[keep], outside[give]]
        returned[moved] = [False, True]
        again[moved] = step + 1 + max(1, min(MOST_BARRED, fewer // 3))
        now += int(change[keep, give])
        if now < value:
            best, value = ReclaimPlan(servers=np.flatnonzero(returned)), now
    return best


MOST_BARRED = 7
"""Most steps for which a server that was moved stays."""


def _swapped(instance: Reclaim, plan: ReclaimPlan) -> ReclaimPlan:
    """Return the plan after best swaps, until no swap is better."""
    hosts = _hosts(instance)
    returned = np.zeros(instance.num_servers, bool)
    returned[plan.servers] = True
    while 0 < instance.demand < instance.num_servers:
        inside, outside, change = _changes(instance, hosts, returned)
        keep, give = _lowest(change)
        if change[keep, give] >= 0:
            break
        returned[inside[keep]] = False
        returned[outside[give]] = True
    return ReclaimPlan(servers=np.flatnonzero(returned))


def _changes(
    instance: Reclaim, hosts: tuple[IntArray, IntArray], returned: BoolArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Servers returned, those kept, and what each swap of one for one adds to the jobs preempted."""
    jobs, servers = hosts
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
    return inside, outside, change


def _lowest(change: IntArray) -> tuple[int, int]:
    """Row and column of the first of the least numbers."""
    row, column = divmod(int(change.argmin()), change.shape[1])
    return row, column


def preemption_costs(instance: Reclaim) -> dict[str, FloatArray]:
    """Return the cost of each server before any is returned, by the three definitions of Table 1.

    Returns
    -------
    dict
        ``"job_count"``, ``"gpu_fraction"`` and ``"server_fraction"``, each (s,) float: the cost
        that :func:`smallest_count_updated`, :func:`gpu_fraction` and :func:`server_fraction` start
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


def _rank(instance: Reclaim, order: Sequence[int] | IntArray | None) -> IntArray:
    """(s,) int: the position of each server in ``order``, by which ties are broken."""
    if order is None:
        return np.arange(instance.num_servers)
    if sorted(order) != list(range(instance.num_servers)):
        raise ValueError(f"order: got {list(order)}, must be the servers 0 to {instance.num_servers - 1} in some order")
    return np.argsort(order)


def _greedy(
    instance: Reclaim,
    share_of: Callable[[Reclaim, IntArray, IntArray], FloatArray],
    order: Sequence[int] | IntArray | None,
) -> ReclaimPlan:
    """Cheapest server first, where a server costs the shares of the jobs still running on it."""
    first = np.argsort(_rank(instance, order))
    jobs, servers = _hosts(instance)
    share = share_of(instance, jobs, servers)
    by_job = np.searchsorted(jobs, np.arange(instance.num_jobs + 1))
    pairs = np.argsort(servers, kind="stable")
    by_server = np.searchsorted(servers[pairs], np.arange(instance.num_servers + 1))
    cost = _costs(instance, servers, share)
    running = np.ones(instance.num_jobs, bool)
    chosen: list[int] = []
    for _ in range(min(instance.demand, instance.num_servers)):
        # Rounded, so that a cost that is zero but for rounding does not lose to a true zero that
        # comes later.
        server = int(first[np.argmin(np.round(cost[first], 9))])
        chosen.append(server)
        on_it = jobs[pairs[by_server[server] : by_server[server + 1]]]
        for job in on_it[running[on_it]]:
            running[job] = False
            span = slice(by_job[job], by_job[job + 1])
            cost[servers[span]] -= share[span]
        cost[server] = np.inf
    return ReclaimPlan(servers=np.array(chosen, np.int64))
