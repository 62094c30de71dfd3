"""Fast methods for :class:`instances.synergy.placement.SynergyPlacement`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from instances.arithmetic import dot
from instances.schema import FloatArray, IntArray
from instances.synergy.placement import SynergyPlacement, SynergyPlacementPlan

__all__ = ["NOWHERE", "ROUNDING", "SMALLEST_STEP", "balanced_fit", "best_fit", "rounded", "rounded_fit", "swap_fit"]

ROUNDING = 1e-12
"""The most that rounding may add to a demand, relative to a server's capacity, and the least share that is one."""

SMALLEST_STEP = 1e-14
"""The least by which a move or swap must lower the overload; less is rounding, and could go round in circles."""

ROUNDS, RISE = 40, 3.0
"""How often no move or swap may help, and the factor by which overloads then weigh more, in :func:`swap_fit`."""

IN_VAIN = 200_000
"""Moves and swaps that are tried without a lower overload before :func:`swap_fit` gives a set of cut jobs up."""

FEW = 12
"""Jobs taken back by :func:`best_fit` after which the cut jobs are not tried one by one any more."""

NOWHERE = -1
"""Server of a job that is not placed yet."""


def best_fit(instance: SynergyPlacement) -> SynergyPlacementPlan:
    """Largest jobs first, each on the tightest server that holds it; what is left over is spread.

    1. Jobs in order of GPUs, then CPU cores, then memory, the largest first.  Each goes to the
       server with the least free GPUs, then CPU cores, then memory, of those that hold it whole.
    2. The jobs that fit nowhere are cut: each in turn takes from the servers, those that can carry
       most of it first, as much as they can carry (whole GPUs with ``integral_gpus``).
    3. If they cannot be carried, the servers carry parts of all of them together, as large as they can.
       One after the other each takes what comes to its part of all resources, by whole jobs and by what
       is left of jobs, and goes on with at most 3 jobs of which something is left for the next servers.
    4. If that fails too, a whole job is taken back, and steps 2 and 3 begin anew (step 2 no more than 12
       times): from the server with the most uneven free fractions of its resources, the job with the most of
       the scarcest.

    Ties go to the lowest index.

    Guarantee: with continuous shares, feasible whenever any placement is, and then with at most 3
    fragmented jobs for each server, as the paper's vertices have them (Theorem A.2); none is known
    relative to the optimum.  With ``integral_gpus`` the plan may exceed a server's capacity and
    cut through a GPU where no placement was found.  Complexity: O(n s) when the cut jobs fit at
    once, O(n^2 s) at worst.

    References
    ----------
    The second stage of Synergy (OSDI'22), section 4.1.2, by best fit decreasing (ours).
    """
    return _completed(instance, *_tightest(instance))


def balanced_fit(instance: SynergyPlacement) -> SynergyPlacementPlan:
    """:func:`best_fit` with jobs on the servers that they leave most balanced (ours).

    Only step 1 differs: jobs come in order of their largest fraction of a server's GPUs, CPU cores
    or memory, the largest first, and each goes to the server whose scarcest resource is then least
    scarce, as a fraction of the server.

    Guarantee and complexity: those of :func:`best_fit`.
    """
    return _completed(instance, *_most_balanced(instance))


def swap_fit(instance: SynergyPlacement, *, tries: int = 8) -> SynergyPlacementPlan:
    """Place jobs with overload, then move and swap them until no server is overloaded (ours).

    A server's overload is the sum of the squares of what its GPUs, CPU cores and memory in use
    exceed the server by, as fractions of it, each times a weight that is 1 at first.  A job's size is
    its largest fraction of a server.

    1. Jobs larger than a server are cut.  Where :func:`balanced_fit` or :func:`best_fit` cuts no others in
       its first three steps, that is the plan.
    2. The whole jobs and the pieces of the cut ones are placed in order of size, the largest first,
       each on the server whose overload grows least, then whose largest fraction in use is then
       least.  Pieces are alike: one for each GPU of the cut jobs, and at least as many as jobs.
    3. Of all moves of a job or piece from the most overloaded server to another one, and all swaps of
       it for one there, the one that lowers the total overload most is made; if none does, from the next.
       When no server has one, the weights of what is exceeded triple, up to 40 times, unless the overload has
       not become less by 200,000 moves and swaps that were looked at.
    4. If a server is overloaded still, the largest whole job is cut too; steps 2 and 3 go on from
       where the other whole jobs are.  Once more are cut than by :func:`balanced_fit`, its plan is taken.
    5. When none is, each cut job no larger than a server is tried whole again, the smallest first,
       by steps 2 and 3 from where the whole jobs are; after a success, from the smallest again.
       Then two of them are, with a whole job cut in their stead, the largest first, with all placed anew.
       No set of cut jobs is tried again.

    The cut jobs are shared out as in steps 2 and 3 of :func:`best_fit`; where that fails, step 4
    follows too.  A plan that cuts only jobs larger than a server ends the search: none fragments fewer.
    With ``integral_gpus``, step 4 cuts no job of one GPU.  Ties go to the lowest index.

    Guarantee: never more fragmented jobs than :func:`balanced_fit`, whose plan is returned unless the search finds
    a better one, or one that cuts only jobs larger than a server. Complexity: that of :func:`balanced_fit`, and O(n
    m) for each move or swap, with m jobs and pieces on an overloaded server.

    Parameters
    ----------
    instance : SynergyPlacement
    tries : int
        Sets of cut jobs that are tried in vain in step 5.
    """
    size = _fractions(instance, instance.demands).max(axis=1)
    fits = size <= 1 + ROUNDING
    cuttable = fits & ((instance.demands[:, 0] != 1) | (not instance.integral_gpus))
    tight, balanced = _tightest(instance), _most_balanced(instance)
    for shares, free, over in (balanced, tight):
        if not fits[over].any() and (split := _shared_out(instance, over, free)) is not None:
            shares[over] = split
            return SynergyPlacementPlan(shares=shares)
    if (instance.demands.sum(axis=0) > instance.num_servers * instance.capacity * (1 + ROUNDING)).any():
        return _completed(instance, *balanced)
    larger: list[int] = np.flatnonzero(~fits).tolist()
    cut = larger
    plan, homes = _swapped(instance, cut, np.full(instance.num_jobs, NOWHERE))
    if plan is not None:
        return plan
    fallback = _completed(instance, *balanced)
    limit = instance.num_jobs + 1 if instance.violations(fallback) else int(instance.objective(fallback))
    while plan is None:
        whole = np.setdiff1d(np.flatnonzero(cuttable), cut)
        if not whole.size:
            return fallback
        cut = [*cut, int(whole[size[whole].argmax()])]
        plan, homes = (fallback, homes) if len(cut) > limit else _swapped(instance, cut, homes)

    def fewer(plan: SynergyPlacementPlan) -> Iterator[tuple[list[int], IntArray]]:
        """Yield smaller sets of cut jobs than a plan's, and where the others are at first."""
        fragmented = instance.fragmented(plan)
        cut, homes = np.flatnonzero(fragmented).tolist(), np.where(fragmented, NOWHERE, plan.shares.argmax(axis=1))
        again = sorted((job for job in cut if fits[job]), key=lambda job: (size[job], job))
        for job in again:
            yield [other for other in cut if other != job], homes
        for job in np.argsort(-size, kind="stable").tolist():
            if cuttable[job] and not fragmented[job]:
                for pair in combinations(again, 2):
                    yield [*(other for other in cut if other not in pair), job], np.full_like(homes, NOWHERE)

    sets, failed = fewer(plan), {frozenset(larger)}
    while tries > 0 and (smaller := next(sets, None)) is not None:
        if frozenset(smaller[0]) in failed:
            continue
        found, _ = _swapped(instance, *smaller)
        if found is None:
            failed.add(frozenset(smaller[0]))
            tries -= 1
        else:
            plan, sets = found, fewer(found)
    return plan if instance.objective(plan) < limit else fallback


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
    places = np.append(homes[whole], np.full(num_pieces, NOWHERE))
    homes = np.full(instance.num_jobs, NOWHERE)
    homes[whole], packed = _packed(np.vstack([fractions[whole], pieces]), places, instance.num_servers, num_pieces)
    shares = np.zeros((instance.num_jobs, instance.num_servers))
    shares[whole, homes[whole]] = 1.0
    split = _shared_out(instance, cut, instance.capacity - dot(shares.T, instance.demands)) if packed else None
    if split is None:
        return None, homes
    shares[cut] = split
    return SynergyPlacementPlan(shares=shares), homes


def _packed(items: FloatArray, places: IntArray, num_servers: int, num_pieces: int) -> tuple[IntArray, bool]:
    """Do steps 2 and 3 of :func:`swap_fit`: places of the whole jobs, and whether no server is overloaded.

    The last ``num_pieces`` items are the pieces, the others jobs that are where ``places`` says.
    """
    num_whole, places = len(items) - num_pieces, places.copy()
    excess = np.full((num_servers, items.shape[1]), -1 - ROUNDING)
    placed = places != NOWHERE
    np.add.at(excess, places[placed], items[placed])
    before = _overload(excess.T)
    missing = np.flatnonzero(~placed)
    for item in missing[np.argsort(-items[missing].max(axis=1), kind="stable")].tolist():
        after = excess + items[item]
        overload = _overload(after.T)
        server = int(np.lexsort((after.max(axis=1), np.round(overload - before, 12)))[0])
        excess[server], before[server] = after[server], overload[server]
        places[item] = server
    packing = _Packing(items, places, num_pieces, excess)
    return packing.places[num_servers:][:num_whole], packing.repaired()


class _Packing:
    """Whole jobs and pieces on servers: what can move, or come in exchange for what moves.

    The columns of what can are nothing, from each server; the whole jobs; a piece from each server, all alike.  Arrays
    have a row for each resource, which is faster than three columns.

    Attributes
    ----------
    sizes : (3, c) float
    places : (c,) int
        Server of each column.
    pieces : (s,) int
        How many pieces each server has.
    excess, weights : (3, s) float
        What the parts of each server in use exceed it by, but for rounding; below 0 where there is room.  What an
        excess weighs.
    """

    def __init__(self, items: FloatArray, places: IntArray, num_pieces: int, excess: FloatArray) -> None:
        every, num_whole = np.arange(len(excess)), len(items) - num_pieces
        piece = items[num_whole:][:1] if num_pieces else np.zeros((1, items.shape[1]))
        sizes = [np.zeros_like(excess), items[:num_whole], np.tile(piece, (len(excess), 1))]
        self.sizes = np.vstack(sizes).T.copy()
        self.places = np.concatenate([every, places[:num_whole], every])
        self.pieces = np.bincount(places[num_whole:], minlength=len(excess))
        self.excess, self.weights = excess.T.copy(), np.ones(excess.T.shape)

    def repaired(self) -> bool:
        """Make moves and swaps until no server is overloaded; return whether none is."""
        least, tried = np.inf, 0
        for _ in range(ROUNDS):
            overload = _overload(self.excess, self.weights)
            while overload.any():
                changed, number = self._changed(overload)
                tried += number
                if not changed:
                    break
            total = float(_overload(self.excess).sum())
            if total < least * (1 - ROUNDING):
                least, tried = total, 0
            if not total or tried > IN_VAIN:
                break
            self.weights[self.excess > 0] *= RISE
        return not total

    def _changed(self, overload: FloatArray) -> tuple[bool, int]:
        """Make the best move or swap from the most overloaded server that has one; return how many were looked at.

        Parameters
        ----------
        overload : (s,) float
            Is changed too.

        Returns
        -------
        bool
            Whether there is one.
        int
        """
        sizes, places, num_servers = self.sizes, self.places, len(overload)
        there, weights = self.excess.take(places, 1)[:, None], self.weights.take(places, 1)[:, None]
        before = overload[places]
        before[-num_servers:][self.pieces == 0] = -np.inf
        tried, bad = 0, np.flatnonzero(overload)
        for server in bad[np.argsort(-overload[bad], kind="stable")].tolist():
            here = places == server
            inside = np.flatnonzero(here & (before > -np.inf))[1:]
            if not inside.size:
                continue
            more = sizes[:, None] - sizes.take(inside, 1)[:, :, None]
            gain = _overload(self.excess[:, server, None, None] + more, self.weights[:, server, None, None])
            gain += _overload(there - more, weights)
            gain -= np.where(here, -np.inf, overload[server] + before)
            tried += gain.size
            row, column = divmod(int(gain.argmin()), gain.shape[1])
            if gain[row, column] < -SMALLEST_STEP * self.weights[:, server].max():
                goal = int(places[column])
                self.excess[:, server] += more[:, row, column]
                self.excess[:, goal] -= more[:, row, column]
                self._put(int(inside[row]), server, goal)
                self._put(column, goal, server)
                both = [server, goal]
                overload[both] = _overload(self.excess[:, both], self.weights[:, both])
                return True, tried
        return False, tried

    def _put(self, column: int, server: int, goal: int) -> None:
        """Move what a column stands for from one server to another."""
        num_servers = len(self.pieces)
        if column >= len(self.places) - num_servers:
            self.pieces[[server, goal]] += -1, 1
        elif column >= num_servers:
            self.places[column] = goal


def _overload(excess: FloatArray, weights: FloatArray | float = 1.0) -> FloatArray:
    """Sum over the rows of weights times squares of what (3, ...) is above 0."""
    over: FloatArray = np.maximum(excess, 0.0)
    # In place, because moves and swaps are many.
    over *= over
    over *= weights
    total: FloatArray = over[0] + over[1]
    total += over[2]
    return total


def _tightest(instance: SynergyPlacement) -> tuple[FloatArray, FloatArray, list[int]]:
    """Do step 1 of :func:`best_fit`."""
    demands = instance.demands
    order = np.lexsort((-demands[:, 2], -demands[:, 1], -demands[:, 0]))
    return _whole(instance, order, lambda free, demand: int(np.lexsort(free.T[::-1])[0]))


def _most_balanced(instance: SynergyPlacement) -> tuple[FloatArray, FloatArray, list[int]]:
    """Do step 1 of :func:`balanced_fit`."""
    order = np.argsort(-_fractions(instance, instance.demands).max(axis=1), kind="stable")

    def most_balanced(free: FloatArray, demand: FloatArray) -> int:
        left = _fractions(instance, free - demand)
        return int(np.where(instance.capacity > 0, left, 1.0).min(axis=1).argmax())

    return _whole(instance, order, most_balanced)


def _whole(
    instance: SynergyPlacement, order: IntArray, choose: Callable[[FloatArray, FloatArray], int]
) -> tuple[FloatArray, FloatArray, list[int]]:
    """Return the shares of whole jobs, what servers have free beside them, and the jobs to cut.

    ``choose`` picks a row of the free capacities of the servers that hold a demand.
    """
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
    return shares, free, cut


def _completed(
    instance: SynergyPlacement, shares: FloatArray, free: FloatArray, cut: list[int]
) -> SynergyPlacementPlan:
    """Do steps 2 to 4 of :func:`best_fit`; what is given is changed."""
    begun = len(cut)
    while cut:
        few = len(cut) <= begun + FEW or instance.integral_gpus
        pieces = _shared_out(instance, cut, free) if few else _all_alike(instance, cut, free)
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
        order = np.argsort(-room, kind="stable")
        # What is left of the job before each server takes what it can, and after the last.
        left = np.subtract.accumulate(np.append(1.0, room[order[room[order] > ROUNDING]]))
        complete = np.flatnonzero(left[1:] <= ROUNDING)
        if not complete.size:
            return None
        servers = order[: complete[0] + 1]
        taken = np.minimum(room[servers], left[: len(servers)])
        shares[row, servers] = taken / taken.sum()
        free[servers] -= taken[:, None] * demand
    return shares


def _all_alike(instance: SynergyPlacement, cut: list[int], free: FloatArray) -> FloatArray | None:
    """One row of shares for all cut jobs, by what each server can carry of them together; None if too little."""
    demands = instance.demands[cut]
    demand = demands.sum(axis=0)
    needed = demand > 0
    room = (free[:, needed] / demand[needed]).min(axis=1, initial=1.0).clip(0.0, 1.0)
    if room.sum() < 1 - ROUNDING:
        return None
    # As fractions of a server, so that no unit decides how jobs are cut.
    return _cut(room / room.sum(), _fractions(instance, demands))


def _cut(parts: FloatArray, demands: FloatArray) -> FloatArray:
    """(n, s) float: shares that load each server by its part of all demands, and leave few jobs cut.

    Each server in turn may take the same part of what is left of every job.  Of four jobs of which it takes something
    and leaves something, some combination of more and less leaves all three resources as they are; it is followed
    until the server takes all of one of them that is left, or nothing.  So a basic solution is made of any other.
    """
    shares = np.zeros((len(demands), len(parts)))
    rows, left, rest = demands.tolist(), [1.0] * len(demands), 1.0
    for server, part in enumerate(parts.tolist()):
        # What rounding has left is for the last one.
        rate = min(part / rest, 1.0) if rest > part and server < len(parts) - 1 else 1.0
        rest -= part
        taken = [rate * some for some in left]
        between: list[int] = []
        for job, most in enumerate(left):
            if not 0 < taken[job] < most:
                continue
            between.append(job)
            if len(between) > 3:
                move = _cancelling([rows[one] for one in between])
                steps = [
                    ((left[one] - taken[one] if by > 0 else taken[one]) / abs(by), place)
                    for place, (one, by) in enumerate(zip(between, move, strict=True))
                    if by
                ]
                step, last = min(steps)
                for one, by in zip(between, move, strict=True):
                    taken[one] = min(max(taken[one] + step * by, 0.0), left[one])
                ended = between.pop(last)
                taken[ended] = left[ended] if move[last] > 0 else 0.0
        shares[:, server] = taken
        left = [most - some for most, some in zip(left, taken, strict=True)]
    # What is left of a share that was to become 0 together with another one.
    shares = np.where(shares > ROUNDING, shares, 0.0)
    cut: FloatArray = shares / shares.sum(axis=1, keepdims=True)
    return cut


def _cancelling(demands: Sequence[Sequence[float]]) -> list[float]:
    """Return multiples of four rows of three that add up to 0, that of the last at least 0, by elimination.

    No multiple is large beside the others, since each pivot is the greatest entry of its equation.
    """
    # Lists, because arrays of so few numbers are slow.
    equations = [list(equation) for equation in zip(*demands, strict=True)]
    free, solved = list(range(4)), []
    for number, equation in enumerate(equations):
        entries = [abs(equation[column]) for column in free]
        greatest = max(entries)
        if not greatest:
            continue
        pivot = free.pop(entries.index(greatest))
        solved.append((pivot, equation))
        for other in equations[number + 1 :]:
            factor = other[pivot] / equation[pivot]
            for column in free:
                other[column] -= factor * equation[column]
    multiples = [0.0] * 4
    multiples[free[-1]] = 1.0
    for pivot, equation in reversed(solved):
        along = 0.0
        # Added up from the first on: ``sum`` is another from Python 3.12 on.
        for entry, multiple in zip(equation, multiples, strict=True):
            along += entry * multiple
        multiples[pivot] = -along / equation[pivot]
    return multiples if multiples[-1] >= 0 else [-multiple for multiple in multiples]
