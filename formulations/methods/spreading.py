"""Spreading constraints: rows that hold for every choice of so many servers, and are violated by a bit of each.

``demand`` of the s servers are returned, y, and a job is preempted, p, if one of its servers is.  From a returned
server s - demand others differ, from one that is kept demand others do:

    sum over k of [i is returned, k is kept] == (s - demand) y[i]
    sum over k of [k is returned, i is kept] == demand (1 - y[i])

On a way over jobs and servers from a returned server a to one that is kept, b, some server is the first that is kept,
and the job before it is preempted, being that of a returned server.  So with the hops of a way, each over a job j to a
server c,

    [a is returned, b is kept] <= sum over the hops of (p[j] - y[c]),

where no term is negative; it is at most y[a] and 1 - y[b] as well.  Any of these for each k, put into the first two
equations, is a row that every plan meets.  Where the relaxation returns as much of all servers, no way has any length,
and the rows are violated: they ask for the jobs that are between returned servers and others.  The row of a server that
is violated most is that of shortest ways.  Lengths that spread are known of cuts that balance (Even et al.); here they
have directions.

References
----------
Even, Naor, Rao, Schieber, "Divide-and-conquer approximation algorithms via spreading metrics" (2000).
"""

from __future__ import annotations

import numpy as np

from instances.schema import BoolArray, FloatArray, IntArray

__all__ = ["spread"]

HOP = 1e-7
"""Added to each hop's length, so that of ways that are as long the one of fewer hops is taken."""


def spread(
    hosts: BoolArray, demand: int, share: FloatArray, preempted: FloatArray, servers: IntArray, *, outward: bool
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the row of each of some servers that a point violates most, of those along its shortest ways.

    Parameters
    ----------
    hosts : (k, s) bool
        Servers of each job.
    demand : int
        Servers to return.
    share, preempted : (s,) and (k,) float
        How much of each server the point returns, and how much of each job it preempts.
    servers : (m,) int
        Those whose rows are asked for.
    outward : bool
        Whether from these servers to those that are kept, or to them from those that are returned.

    Returns
    -------
    coefficients : (m, s + k) int
        Of the servers and the jobs; those of jobs are not negative.
    least : (m,) int
        What the left side comes to at least, in every plan.
    violation : (m,) float
        By how much it is less at the point.
    """
    num_servers = len(share)
    over, length = _hops(hosts, share, preempted)
    here, other = (share, 1 - share) if outward else (1 - share, share)
    way, before = _ways(length if outward else length.T.copy(), servers)
    # Of each server in turn, which of the three is the least: the way, what ends here, what ends there.
    own, there = here[servers][:, None], np.broadcast_to(other, way.shape)
    least_is = np.stack([way, np.broadcast_to(own, way.shape), there]).argmin(axis=0)
    row = np.arange(len(servers))
    least_is[row, servers] = -1
    coefficients, least = np.zeros((len(servers), num_servers + len(hosts)), np.int64), np.zeros(len(servers), np.int64)
    of_servers, of_jobs = coefficients[:, :num_servers], coefficients[:, num_servers:]
    ends_here, ends_there = (least_is == 1).sum(axis=1), least_is == 2
    if outward:
        of_servers -= ends_there
        of_servers[row, servers] += ends_here - (num_servers - demand)
        least -= ends_there.sum(axis=1)
    else:
        of_servers += ends_there
        of_servers[row, servers] += demand - ends_here
        least += demand - ends_here
    # How many ways pass each server, from the last ones to the first.
    passing = (least_is == 0).astype(np.int64)
    for last in np.argsort(way, axis=1, kind="stable").T[:0:-1]:
        ways, first = passing[row, last], before[row, last]
        of_jobs[row, over[first, last]] += ways
        of_servers[row, last if outward else first] -= ways
        passing[row, first] += ways
    return coefficients, least, least - coefficients @ np.concatenate([share, preempted])


def _hops(hosts: BoolArray, share: FloatArray, preempted: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the job of each two servers that is preempted least, and (s, s) the length of the hop over it."""
    over, length = np.zeros(2 * (len(share),), np.int64), np.full(2 * (len(share),), np.inf)
    for job in np.argsort(-preempted, kind="stable").tolist():
        both = np.ix_(*2 * (np.flatnonzero(hosts[job]),))
        over[both], length[both] = job, preempted[job]
    return over, np.maximum(length - share, 0.0) + HOP


def _ways(length: FloatArray, begins: IntArray) -> tuple[FloatArray, IntArray]:
    """Return (m, s) lengths of the shortest ways from some servers, and the server before each on them (Dijkstra)."""
    row = np.arange(len(begins))
    way, before = np.full((len(begins), len(length)), np.inf), np.zeros((len(begins), len(length)), np.int64)
    way[row, begins] = 0.0
    passed = np.zeros(way.shape, bool)
    for _ in range(len(length)):
        nearest = np.where(passed, np.inf, way).argmin(axis=1)
        passed[row, nearest] = True
        longer = way[row, nearest][:, None] + length[nearest]
        before = np.where(longer < way, nearest[:, None], before)
        way = np.minimum(way, longer)
    return way, before
