"""Fast methods for :class:`instances.synergy.placement.Placement`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np

from instances.base import FloatArray, IntArray
from instances.synergy.placement import Placement, PlacementPlan

ROUNDING = 1e-9
"""What rounding may add to a demand, relative to a server's capacity."""


def best_fit(instance: Placement) -> PlacementPlan:
    """Largest jobs first, each on the tightest server that holds it; what is left over is spread.

    1. Jobs in order of GPUs, then CPU cores, then memory, the largest first.  Each goes to the
       server with the least free GPUs, then CPU cores, then memory, of those that hold it whole.
    2. The jobs that fit nowhere are cut: each in turn takes from the servers, those that can carry
       most of it first, as much as they can carry (whole GPUs with ``integral_gpus``).
    3. If they cannot be carried, they all are cut alike, in the proportions in which the servers
       can carry them together; then shares are exchanged between pairs of servers.
    4. If that fails too, a whole job is taken back, and steps 2 and 3 begin anew: from the server
       with the most uneven free fractions of its resources, the job with the most of the scarcest.

    Ties go to the lowest index.

    Guarantee: with continuous shares, feasible whenever any placement is; none is known for the
    number of fragmented jobs.  With ``integral_gpus`` the plan may exceed a server's capacity and
    cut through a GPU where no placement was found.  Complexity: O(n s) when the cut jobs fit at
    once, O(n^2 s) at worst.

    References
    ----------
    The second stage of Synergy (OSDI'22), section 4.1.2, by best fit decreasing (ours).
    """
    demands = instance.demands
    order = np.lexsort((-demands[:, 2], -demands[:, 1], -demands[:, 0]))
    return _placed(instance, order, lambda free, demand: int(np.lexsort(free.T[::-1])[0]))


def balanced_fit(instance: Placement) -> PlacementPlan:
    """:func:`best_fit` with jobs on the servers that they leave most balanced (ours).

    Only step 1 differs: jobs come in order of their largest fraction of a server's GPUs, CPU cores
    or memory, the largest first, and each goes to the server whose scarcest resource is then least
    scarce, as a fraction of the server.

    Guarantee and complexity: those of :func:`best_fit`.
    """
    scale = np.where(instance.capacity > 0, instance.capacity, np.inf)
    order = np.argsort(-(instance.demands / scale).max(axis=1), kind="stable")

    def most_balanced(free: FloatArray, demand: FloatArray) -> int:
        left = (free - demand) / scale
        return int(np.where(instance.capacity > 0, left, 1.0).min(axis=1).argmax())

    return _placed(instance, order, most_balanced)


def _placed(instance: Placement, order: IntArray, choose: Callable[[FloatArray, FloatArray], int]) -> PlacementPlan:
    """Steps 1 to 4; ``choose`` picks a row of the free capacities of the servers that hold a demand."""
    slack = ROUNDING * np.where(instance.capacity > 0, instance.capacity, 1.0)
    free = np.tile(instance.capacity, (instance.num_servers, 1))
    shares = np.zeros((instance.num_jobs, instance.num_servers))
    cut: list[int] = []
    for job in order.tolist():
        demand = instance.demands[job]
        fits = np.flatnonzero((free + slack >= demand).all(axis=1))
        if fits.size:
            server = int(fits[choose(free[fits], demand)])
            free[server] -= demand
            shares[job, server] = 1.0
        else:
            cut.append(job)
    while cut:
        pieces = _one_by_one(instance, cut, free)
        if pieces is None and not instance.integral_gpus:
            pieces = _all_alike(instance, cut, free)
        if pieces is None and len(cut) < instance.num_jobs:
            job, server = _to_take_back(instance, shares, free)
            shares[job, server] = 0.0
            free[server] += instance.demands[job]
            cut.append(job)
            continue
        shares[cut] = pieces if pieces is not None else 1.0 / instance.num_servers
        break
    return PlacementPlan(shares=shares)


def _to_take_back(instance: Placement, shares: FloatArray, free: FloatArray) -> tuple[int, int]:
    """A whole job and its server, chosen by step 4."""
    left = np.where(instance.capacity > 0, free / np.maximum(instance.capacity, ROUNDING), 1.0)
    unevenness = np.where(shares.any(axis=0), np.ptp(left, axis=1), -1.0)
    server = int(unevenness.argmax())
    scarcest = int(left[server].argmin())
    amounts = np.where(shares[:, server] > 0, instance.demands[:, scarcest], -1.0)
    return int(amounts.argmax()), server


def _one_by_one(instance: Placement, cut: list[int], free: FloatArray) -> FloatArray | None:
    """Shares of the cut jobs, each taking what it can get; None when one cannot be carried."""
    free = free.copy()
    shares = np.zeros((len(cut), instance.num_servers))
    slack = ROUNDING * np.where(instance.capacity > 0, instance.capacity, 1.0)
    for row, job in enumerate(cut):
        demand = instance.demands[job]
        needed = demand > 0
        room = ((free + slack)[:, needed] / demand[needed]).min(axis=1, initial=1.0).clip(0.0, 1.0)
        if instance.integral_gpus and demand[0]:
            room = np.floor(room * demand[0] + ROUNDING) / demand[0]
        left = 1.0
        for server in np.argsort(-room, kind="stable").tolist():
            share = min(left, room[server])
            if share <= ROUNDING:
                break
            shares[row, server] = share
            free[server] -= share * demand
            left -= share
            if left <= ROUNDING:
                break
        if left > ROUNDING:
            return None
        shares[row] /= shares[row].sum()
    return shares


def _all_alike(instance: Placement, cut: list[int], free: FloatArray) -> FloatArray | None:
    """One row of shares for all cut jobs, by what each server can carry of them together; None if too little."""
    demands = instance.demands[cut]
    demand = demands.sum(axis=0)
    needed = demand > 0
    room = (free[:, needed] / demand[needed]).min(axis=1, initial=1.0).clip(0.0, 1.0)
    if room.sum() < 1 - ROUNDING:
        return None
    return _exchanged(np.tile(room / room.sum(), (len(cut), 1)), demands)


def _exchanged(shares: FloatArray, demands: FloatArray) -> FloatArray:
    """Shares that load every server as before, with at most 3 jobs on any two servers both.

    Of four jobs on the same two servers, some combination of moves from one to the other leaves
    all three resources as they are; it is followed until one of the jobs has left one of the two.
    """
    shares = shares.copy()
    for first, second in combinations(range(shares.shape[1]), 2):
        while True:
            both = np.flatnonzero((shares[:, first] > 0) & (shares[:, second] > 0))[: demands.shape[1] + 1]
            if len(both) <= demands.shape[1]:
                break
            move = np.linalg.svd(demands[both].T)[2][-1]
            source = np.where(move > 0, shares[both, first], shares[both, second])
            with np.errstate(divide="ignore"):
                steps = source / np.abs(move)
            last = int(steps.argmin())
            shares[both, first] -= steps[last] * move
            shares[both, second] += steps[last] * move
            shares[both[last], first if move[last] > 0 else second] = 0.0
    return shares
