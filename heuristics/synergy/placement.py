"""Fast methods for :class:`instances.synergy.placement.SynergyPlacement`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, islice

import numpy as np

from instances.arithmetic import dot
from instances.schema import FloatArray, IntArray
from instances.synergy.placement import SynergyPlacement, SynergyPlacementPlan

__all__ = ["NOWHERE", "ROUNDING", "SMALLEST_STEP", "balanced_fit", "best_fit", "rounded", "rounded_fit", "swap_fit"]

ROUNDING = 1e-12
"""The most that rounding may add to a demand, relative to a server's capacity, and the least share that is one."""

SMALLEST_STEP = 1e-14
"""The least by which a move or swap must lower the overload; less is rounding, and could go round in circles."""

ROUNDS, RISE = 50, 2.0
"""How often no move or swap may help, and the factor by which overloads then weigh more, in :func:`swap_fit`."""

NOWHERE = -1
"""Server of a job that is not placed yet."""


def best_fit(instance: SynergyPlacement) -> SynergyPlacementPlan:
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


def balanced_fit(instance: SynergyPlacement) -> SynergyPlacementPlan:
    """:func:`best_fit` with jobs on the servers that they leave most balanced (ours).

    Only step 1 differs: jobs come in order of their largest fraction of a server's GPUs, CPU cores
    or memory, the largest first, and each goes to the server whose scarcest resource is then least
    scarce, as a fraction of the server.

    Guarantee and complexity: those of :func:`best_fit`.
    """
    order = np.argsort(-_fractions(instance, instance.demands).max(axis=1), kind="stable")

    def most_balanced(free: FloatArray, demand: FloatArray) -> int:
        left = _fractions(instance, free - demand)
        return int(np.where(instance.capacity > 0, left, 1.0).min(axis=1).argmax())

    return _placed(instance, order, most_balanced)


def swap_fit(instance: SynergyPlacement, *, tries: int = 8) -> SynergyPlacementPlan:
    """Place jobs with overload, then move and swap them until no server is overloaded (ours).

    A server's overload is the sum of the squares of what its GPUs, CPU cores and memory in use
    exceed the server by, as fractions of it, each times a weight that is 1 at first.  A job's size is
    its largest fraction of a server.

    1. Jobs larger than a server are cut.
    2. The whole jobs and the pieces of the cut ones are placed in order of size, the largest first,
       each on the server whose overload grows least, then whose largest fraction in use is then
       least.  Pieces are alike: one for each GPU of the cut jobs, and at least as many as jobs.
    3. Of all moves of a job or piece from the most overloaded server to another one, and all swaps of
       it for one there, the one that lowers the total overload most is made; if none does, from the next.
       When no server has one, the weights of what is exceeded double, up to 50 times.
    4. If a server is overloaded still, the largest whole job is cut too; steps 2 and 3 go on from
       where the other whole jobs are.  Once as many are cut as by :func:`balanced_fit`, its plan is taken.
    5. When none is, each cut job no larger than a server is tried whole again, the smallest first,
       by steps 2 and 3 from where the whole jobs are; after a success, from the smallest again.
       Then two of them are, with a whole job cut in their stead, the largest first, with all placed anew.

    The cut jobs are shared out as in steps 2 and 3 of :func:`best_fit`; where that fails, step 4
    follows too.  With ``integral_gpus``, step 4 cuts no job of one GPU.  Ties go to the lowest index.

    Guarantee: never more fragmented jobs than :func:`balanced_fit`, whose plan is returned unless
    the search finds a better one.  Complexity: that of :func:`balanced_fit`, and O(n m) for each move or swap, with
    m jobs and pieces on an overloaded server.

    Parameters
    ----------
    instance : SynergyPlacement
    tries : int
        Sets of cut jobs that are tried in step 5.
    """
    fallback = balanced_fit(instance)
    if (
        not instance.num_jobs
        or (instance.demands.sum(axis=0) > instance.num_servers * instance.capacity * (1 + ROUNDING)).any()
    ):
        return fallback
    limit = instance.num_jobs + 1 if instance.violations(fallback) else int(instance.objective(fallback))
    size = _fractions(instance, instance.demands).max(axis=1)
    fits = size <= 1 + ROUNDING
    cuttable = fits & ((instance.demands[:, 0] != 1) | (not instance.integral_gpus))
    cut: list[int] = np.flatnonzero(~fits).tolist()
    homes = np.full(instance.num_jobs, NOWHERE)
    plan = None
    while plan is None:
        if len(cut) >= limit:
            plan, fragmented = fallback, instance.fragmented(fallback)
            cut = np.flatnonzero(fragmented).tolist()
            homes = np.where(fragmented, NOWHERE, fallback.shares.argmax(axis=1))
            break
        plan, homes = _swapped(instance, cut, homes)
        if plan is None:
            whole = np.setdiff1d(np.flatnonzero(cuttable), cut)
            if not whole.size:
                return fallback
            cut = [*cut, int(whole[size[whole].argmax()])]

    def fewer() -> Iterator[tuple[list[int], IntArray]]:
        """Yield smaller sets of cut jobs, and where the others are at first."""
        again = sorted((job for job in cut if fits[job]), key=lambda job: (size[job], job))
        for job in again:
            yield [other for other in cut if other != job], homes
        for job in np.argsort(-size, kind="stable").tolist():
            if cuttable[job] and job not in cut:
                for pair in combinations(again, 2):
                    yield [*(other for other in cut if other not in pair), job], np.full_like(homes, NOWHERE)

    better = True
    while better:
        better = False
        for trial, places in islice(fewer(), max(0, tries)):
            tries -= 1
            found, moved = _swapped(instance, trial, places)
            if found is not None:
                plan, homes, cut, better = found, moved, trial, True
                break
    return plan


def rounded_fit(instance: SynergyPlacement) -> SynergyPlacementPlan:
    """:func:`best_fit` with continuous shares, then :func:`rounded` to whole GPUs (ours).

    Guarantee: whole GPUs of every job on every server, and no server's GPUs exceeded, where the jobs' GPUs fit
    the cluster; CPUs and memory can be exceeded.  Complexity: that of :func:`best_fit`.
    """
    return rounded(instance, best_fit(replace(instance, integral_gpus=False)))


def rounded(instance: SynergyPlacement, plan: SynergyPlacementPlan) -> SynergyPlacementPlan:
    """Return a plan with the GPUs of its fragmented jobs rounded to whole ones, CPUs and memory following.

    On every server a fragmented job first keeps its GPUs rounded down.  Then, job by job, the GPUs that it
    lacks go to the servers with free ones, those with the largest fraction cut off first.  Jobs of no GPUs, and
    jobs whose GPUs are nowhere free any more, stay as they are.  Ties go to the lowest index.

    The paper asks for a heuristic that rounds off fractions of GPUs, such as those of a job of 6 GPUs on 3.3
    and 2.7, and prints none; this one is ours.

    Guarantee: where the plan keeps to the servers' GPUs, whole GPUs and no server's exceeded; the CPUs and
    memory of a server may be.  Complexity: O(n s log s).

    Parameters
    ----------
    instance : SynergyPlacement
    plan : SynergyPlacementPlan
        Such as a vertex of the second program.

    References
    ----------
    Synergy (OSDI'22), section 4.1.3.
    """
    gpus = plan.shares * instance.demands[:, :1]
    whole = np.floor(gpus + ROUNDING * np.maximum(gpus, 1.0))
    free = instance.server_gpus - whole.sum(axis=0)
    shares = plan.shares.copy()
    for job in np.flatnonzero(instance.fragmented(plan) & (instance.demands[:, 0] > 0)).tolist():
        lacking = round(float(instance.demands[job, 0] - whole[job].sum()))
        held = whole[job].copy()
        for server in np.argsort(whole[job] - gpus[job], kind="stable").tolist():
            more = min(lacking, max(int(free[server]), 0), 1)
            held[server] += more
            lacking -= more
        for server in np.flatnonzero(free > held - whole[job]).tolist() if lacking else ():
            more = min(lacking, int(free[server] - (held - whole[job])[server]))
            held[server] += more
            lacking -= more
        if not lacking:
            free -= held - whole[job]
            shares[job] = held / instance.demands[job, 0]
    return SynergyPlacementPlan(shares=shares)


def _fractions(instance: SynergyPlacement, amounts: FloatArray) -> FloatArray:
    """Amounts (..., 3) of each resource as fractions of a server, 0 of what servers do not have."""
    return amounts / np.where(instance.capacity > 0, instance.capacity, np.inf)


def _swapped(
    instance: SynergyPlacement, cut: list[int], homes: IntArray
) -> tuple[SynergyPlacementPlan | None, IntArray]:
    """Do steps 2 and 3 of :func:`swap_fit`: a plan, or None, and the servers of the whole jobs."""
    fractions = _fractions(instance, instance.demands)
    whole = np.setdiff1d(np.arange(instance.num_jobs), cut)
    num_pieces = max(len(cut), int(instance.demands[cut, 0].sum()))
    pieces = np.tile(fractions[cut].sum(axis=0) / max(num_pieces, 1), (num_pieces, 1))
    items = np.vstack([fractions[whole], pieces])
    places, packed = _packed(items, np.append(homes[whole], np.full(num_pieces, NOWHERE)), instance.num_servers)
    homes = np.full(instance.num_jobs, NOWHERE)
    homes[whole] = places[: len(whole)]
    shares = np.zeros((instance.num_jobs, instance.num_servers))
    shares[whole, homes[whole]] = 1.0
    split = _shared_out(instance, cut, instance.capacity - dot(shares.T, instance.demands)) if packed else None
    if split is None:
        return None, homes
    shares[cut] = split
    return SynergyPlacementPlan(shares=shares), homes


def _packed(items: FloatArray, places: IntArray, num_servers: int) -> tuple[IntArray, bool]:
    """Places of items, from those given, after steps 2 and 3 of :func:`swap_fit`; whether no server is overloaded."""
    places = places.copy()
    load = np.zeros((num_servers, items.shape[1]))
    placed = places != NOWHERE
    np.add.at(load, places[placed], items[placed])
    missing = np.flatnonzero(~placed)
    for item in missing[np.argsort(-items[missing].max(axis=1), kind="stable")].tolist():
        after = load + items[item]
        growth = _overload(after.T) - _overload(load.T)
        server = int(np.lexsort((after.max(axis=1), np.round(growth, 12)))[0])
        load[server] = after[server]
        places[item] = server
    # A row for each resource is faster than three columns.
    load, items = load.T.copy(), items.T.copy()
    weights = np.ones_like(load)
    for _ in range(ROUNDS):
        overload = _overload(load, weights)
        while overload.any() and _changed(items, places, load, weights, overload):
            pass
        if not overload.any():
            return places, True
        weights[load > 1 + ROUNDING] *= RISE
    return places, False


def _changed(items: FloatArray, places: IntArray, load: FloatArray, weights: FloatArray, overload: FloatArray) -> bool:
    """Make the best move or swap from the most overloaded server that has one; return whether one does.

    ``items`` (3, m), ``load`` and ``weights`` (3, s) have a row for each resource; ``places``, ``load`` and
    ``overload`` are changed.
    """
    bad = np.flatnonzero(overload)
    for server in bad[np.argsort(-overload[bad], kind="stable")].tolist():
        inside, outside = np.flatnonzero(places == server), np.flatnonzero(places != server)
        if not inside.size:
            continue
        # One row for each item inside; the columns are the other servers as they are, for moves, then each server
        # less one of its items, for swaps.
        others = np.delete(np.arange(len(overload)), server)
        taken = np.hstack([np.zeros((len(items), len(others))), items[:, outside]])
        target = np.append(others, places[outside])
        more = taken[:, None, :] - items[:, inside, None]
        gain = _overload(load[:, server, None, None] + more, weights[:, server, None, None])
        gain += _overload(load[:, None, target] - more, weights[:, None, target])
        gain -= overload[server] + overload[target]
        row, column = divmod(int(gain.argmin()), gain.shape[1])
        if gain[row, column] < -SMALLEST_STEP * weights[:, server].max():
            goal = target[column]
            places[inside[row]] = goal
            if column >= len(others):
                places[outside[column - len(others)]] = server
            load[:, server] += more[:, row, column]
            load[:, goal] -= more[:, row, column]
            both = [server, goal]
            overload[both] = _overload(load[:, both], weights[:, both])
            return True
    return False


def _overload(load: FloatArray, weights: FloatArray | float = 1.0) -> FloatArray:
    """Sum over the rows of weights times squares of what loads (3, ...) exceed a server by, but for rounding."""
    over: FloatArray = np.maximum(load - (1 + ROUNDING), 0.0)
    over = over * over * weights
    return np.asarray(over[0] + over[1] + over[2])


def _placed(
    instance: SynergyPlacement, order: IntArray, choose: Callable[[FloatArray, FloatArray], int]
) -> SynergyPlacementPlan:
    """Do steps 1 to 4; ``choose`` picks a row of the free capacities of the servers that hold a demand."""
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
        pieces = _shared_out(instance, cut, free)
        if pieces is None and len(cut) < instance.num_jobs:
            job, server = _to_take_back(instance, shares, free)
            shares[job, server] = 0.0
            free[server] += instance.demands[job]
            cut.append(job)
            continue
        shares[cut] = pieces if pieces is not None else 1.0 / instance.num_servers
        break
    return SynergyPlacementPlan(shares=shares)


def _to_take_back(instance: SynergyPlacement, shares: FloatArray, free: FloatArray) -> tuple[int, int]:
    """Choose a whole job and its server by step 4."""
    left = np.where(instance.capacity > 0, free / np.maximum(instance.capacity, np.finfo(float).tiny), 1.0)
    unevenness = np.where(shares.any(axis=0), np.ptp(left, axis=1), -1.0)
    server = int(unevenness.argmax())
    scarcest = int(left[server].argmin())
    amounts = np.where(shares[:, server] > 0, instance.demands[:, scarcest], -1.0)
    return int(amounts.argmax()), server


def _shared_out(instance: SynergyPlacement, cut: list[int], free: FloatArray) -> FloatArray | None:
    """Shares of the cut jobs by steps 2 and 3 of :func:`best_fit`; None when they cannot be carried."""
    pieces = _one_by_one(instance, cut, free)
    return _all_alike(instance, cut, free) if pieces is None and not instance.integral_gpus else pieces


def _one_by_one(instance: SynergyPlacement, cut: list[int], free: FloatArray) -> FloatArray | None:
    """Shares of the cut jobs, each taking what it can get; None when one cannot be carried."""
    free = free.copy()
    shares = np.zeros((len(cut), instance.num_servers))
    for row, job in enumerate(cut):
        demand = instance.demands[job]
        needed = demand > 0
        room = (free[:, needed] / demand[needed]).min(axis=1, initial=1.0).clip(0.0, 1.0)
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


def _all_alike(instance: SynergyPlacement, cut: list[int], free: FloatArray) -> FloatArray | None:
    """One row of shares for all cut jobs, by what each server can carry of them together; None if too little."""
    demands = instance.demands[cut]
    demand = demands.sum(axis=0)
    needed = demand > 0
    room = (free[:, needed] / demand[needed]).min(axis=1, initial=1.0).clip(0.0, 1.0)
    if room.sum() < 1 - ROUNDING:
        return None
    # As fractions of a server, so that no unit decides which shares are exchanged.
    return _exchanged(np.tile(room / room.sum(), (len(cut), 1)), _fractions(instance, demands))


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
            move = _cancelling(demands[both])
            source = np.where(move > 0, shares[both, first], shares[both, second])
            with np.errstate(divide="ignore"):
                steps = source / np.abs(move)
            last = int(steps.argmin())
            shares[both, first] -= steps[last] * move
            shares[both, second] += steps[last] * move
            shares[both[last], first if move[last] > 0 else second] = 0.0
    # What is left of a share that was to become 0 together with another one.
    shares = np.where(shares > ROUNDING, shares, 0.0)
    exchanged: FloatArray = shares / shares.sum(axis=1, keepdims=True)
    return exchanged


def _cancelling(demands: FloatArray) -> FloatArray:
    """Return multiples of the rows that add up to 0, of more rows than columns, by Householder's bidiagonalisation.

    They are the last right singular vector, with the sign that LAPACK gives it but not the roundings of a BLAS kernel.
    """
    # Lists, because arrays of so few numbers are slow.
    left = demands.T.tolist()
    mirrors: list[list[float]] = []
    while left:
        first = len(mirrors)
        mirrors.append(_mirror(left[0], first))
        left = [_reflected(row, mirrors[-1]) for row in left[1:]]
        if len(left) > 1:
            below = _mirror([row[first] for row in left], 0)
            columns = [_reflected(column, below) for column in zip(*left, strict=True)]
            left = [list(row) for row in zip(*columns, strict=True)]
    multiples = [0.0] * (len(demands) - 1) + [1.0]
    for mirror in reversed(mirrors):
        multiples = _reflected(multiples, mirror)
    return np.array(multiples)


def _mirror(values: list[float], first: int) -> list[float]:
    """Return the m whose reflection ``I - m m'`` makes all values after the ``first`` 0 and keeps those before."""
    mirror = [0.0] * first + values[first:]
    if not any(mirror[first + 1 :]):
        return [0.0] * len(values)
    mirror[first] += math.copysign(math.sqrt(_along(mirror, mirror)), mirror[first])
    scale = math.sqrt(2 / _along(mirror, mirror))
    return [scale * entry for entry in mirror]


def _reflected(values: Sequence[float], mirror: list[float]) -> list[float]:
    along = _along(values, mirror)
    return [value - along * entry for value, entry in zip(values, mirror, strict=True)]


def _along(left: Sequence[float], right: Sequence[float]) -> float:
    """Return the product of two vectors, added up from the first on: ``sum`` is another from Python 3.12 on."""
    total = 0.0
    for one, other in zip(left, right, strict=True):
        total += one * other
    return total
