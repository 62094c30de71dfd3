"""Gavel's rounds: priorities, the greedy assignment of Algorithm 1, and what repeating it yields."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from instances.gavel.round_assignment import Entries, RoundAssignment, RoundAssignmentPlan
from instances.gavel.sharing import Allocation, Sharing
from instances.schema import BoolArray, FloatArray, IntArray

__all__ = [
    "BUDGET",
    "EXACT",
    "EXCHANGES",
    "NEAR",
    "NEVER_SERVED",
    "ROUNDS",
    "SMOOTHING",
    "TAKEN",
    "Simulation",
    "greedy_priority",
    "iterated_greedy",
    "matching_round",
    "placement",
    "priorities",
    "priorities_per_type",
    "round_bound",
    "round_price",
    "simulate",
]

NEVER_SERVED = 1e6
"""Stand-in for the infinite priority of a row that has a target and was never served: above every
X / f of a mechanism of fewer rounds than this, and finite, so that priorities add up."""

BUDGET = 100_000
"""Entries that the rounds of :func:`iterated_greedy` look at by default, all together."""
ROUNDS = 300
"""Rounds of it at most."""
EXCHANGES = 100
"""Exchanges in a row at most."""
EXACT = 1e-12
"""Part of its priority from which on an exchange for an entry gains."""
TAKEN = 40
"""Rows that a round takes out at most."""
NEAR = 4
"""Entries for each job, those that lack least, among which it looks."""
SMOOTHING = np.geomspace(0.3, 0.01, 100).reshape(4, 25)
"""Smoothing of each step towards the least bound, by the mean priority of an entry; what is near is
chosen anew before each row."""


def greedy_priority(instance: RoundAssignment) -> RoundAssignmentPlan:
    """Algorithm 1: the highest priority first, as long as workers are left.

    Repeatedly take the eligible entry (row, type) of the highest priority whose pool has workers enough
    and whose jobs do not run yet, those of priority 0 last; ties go to the lowest row, then type.  As
    printed the loop ends only when all workers are taken; it must also end when no entry is left.

    Guarantee: none known (a wide job can block any number of narrow ones).
    Complexity: O(R log R) for R entries.

    References
    ----------
    Gavel (OSDI'20), section 5, Algorithm 1.
    """
    return instance.filled()


def iterated_greedy(
    instance: RoundAssignment, *, budget: int = BUDGET, rng: np.random.Generator | int = 0
) -> RoundAssignmentPlan:
    """Take entries by what they lack at prices of jobs and workers, and again where rows are out: iterated greedy.

    At prices u[m] >= 0 of jobs and v[p] >= 0 of workers an entry (row r, type j of pool p) lacks

        sum of u[m], m in r, + scale_factor[r] * v[p] - priority[r, j].

    Where none lacks less than 0, no plan is worth more than ``sum(u) + v @ num_workers``, and one with a certain entry
    less than that by what the entry lacks.  Prices of a low bound are found as Sinkhorn's: each entry counts as
    ``exp(-lacks / smoothing)``, prices are moved by turns until jobs and workers are taken once, and the smoothing
    falls.  The plan is the best of Algorithm 1 and of the greedy order by what entries lack, improved by exchanges: an
    entry comes in, and those of its jobs go out.  Then some of its rows, at random, are taken out, and that order,
    changed at random, fills what is free; what is worth no less is kept, and improved by exchanges.  Entries that lack
    more than lies between plan and bound are left out.

    Guarantee: never worse than :func:`greedy_priority`.  Complexity: O(R log R) for R entries, and the budget.

    Parameters
    ----------
    instance : RoundAssignment
    budget : int
        Entries that rounds may look at.
    rng : Generator or int

    References
    ----------
    Ruiz and Stuetzle, "A simple and effective iterated greedy algorithm for the permutation flowshop scheduling
    problem" (2007); Cuturi, "Sinkhorn distances: lightspeed computation of optimal transport" (2013).
    """
    rng = np.random.default_rng(rng)
    entries = _Entries(instance)
    everything = np.arange(len(entries.priorities))
    best = entries.greedy(everything, -entries.priorities)
    unit = entries.value(best) / max(1, int((entries.priorities[best] > 0).sum()))
    if not 0 < unit < np.inf:
        return entries.plan(best)
    bound, lacks = entries.lacks(unit)
    near = _least(lacks, NEAR * instance.num_jobs)
    near = near[entries.priorities[near] > 0]
    lacks = lacks[near]
    best = entries.exchanged(near, max(best, entries.greedy(near, lacks), key=entries.value))
    value = entries.value(best)
    for _ in range(ROUNDS):
        core = lacks <= bound - value
        near, lacks = near[core], lacks[core]
        budget -= len(near)
        if budget < 0 or not near.size:
            break
        chosen = np.array(best)
        kept = rng.permutation(chosen)[rng.integers(1, 1 + min(TAKEN, len(chosen))) :]
        noise = rng.exponential(float(lacks.mean()) * rng.random() + 1e-9 * unit, len(near))
        found = entries.greedy(near, lacks + noise, kept.tolist())
        if entries.value(found) >= value and set(found) != set(best):
            best = entries.exchanged(near, found)
            value = entries.value(best)
    return entries.plan(entries.greedy(everything, -entries.priorities, best))


def _least(keys: FloatArray, count: int) -> IntArray:
    """Return where the least keys are, in ascending order of places."""
    return np.arange(len(keys)) if len(keys) <= count else np.sort(np.argpartition(keys, count)[:count])


class _Entries(Entries):
    """The entries that may run and fit, with what rounds of :func:`iterated_greedy` need."""

    def value(self, chosen: list[int]) -> float:
        return float(self.priorities[chosen].sum())

    def exchanged(self, some: IntArray, chosen: list[int]) -> list[int]:
        """Return the entries chosen, with one of some in for the one or two of its jobs, as long as that gains most."""
        first, second, workers, pools = self.first[some], self.second[some], self.workers[some], self.pools[some]
        # A job that is idle has the entry after the last, which is worth nothing and holds no worker.
        idle = len(self.priorities)
        worth, held, place = np.append(self.priorities, 0.0), np.append(self.workers, 0), np.append(self.pools, -1)
        holder, left = np.full(self.instance.num_jobs, idle), self.instance.num_workers.copy()
        holder[self.first[chosen]] = holder[self.second[chosen]] = chosen
        np.subtract.at(left, self.pools[chosen], self.workers[chosen])
        for _ in range(EXCHANGES if some.size else 0):
            one = holder[first]
            other = np.where(holder[second] == one, idle, holder[second])
            free = left[pools] + held[one] * (place[one] == pools) + held[other] * (place[other] == pools)
            gain = np.where(workers <= free, worth[some] - worth[one] - worth[other], 0.0)
            best = int(gain.argmax())
            if gain[best] <= EXACT * worth[some[best]]:
                break
            for out in {int(one[best]), int(other[best])} - {idle}:
                holder[self.first[out]] = holder[self.second[out]] = idle
                left[self.pools[out]] += self.workers[out]
            holder[first[best]] = holder[second[best]] = some[best]
            left[pools[best]] -= workers[best]
        return [int(entry) for entry in np.unique(holder[holder < idle])]

    def lacks(self, unit: float) -> tuple[float, FloatArray]:
        """Return a bound on all plans and what each entry lacks at its prices; smoothing goes by the unit."""
        jobs, most = self.instance.num_jobs, self.instance.num_workers.astype(float)
        # A row of one job has the job after the last, of price 0, for a second.
        single = self.first == self.second
        columns = (self.first, np.where(single, jobs, self.second), self.workers, self.pools, self.priorities / unit)

        def lacking(columns: Sequence[NDArray[Any]]) -> FloatArray:
            first, second, held, pools, worth = columns
            return np.asarray(of_jobs[first] + of_jobs[second] + held * of_pools[pools] - worth)

        of_jobs, of_pools = np.zeros(jobs + 1), np.zeros(len(most))
        start, share = np.zeros(jobs + 1), np.where(single, 1.0, 0.5)
        for ends in columns[:2]:
            np.maximum.at(start, ends, -share * lacking(columns))
        of_jobs[:jobs] = start[:jobs]
        for row in SMOOTHING:
            near = _least(lacking(columns), NEAR * jobs)
            some = [column[near] for column in columns]
            ends, held, pools = np.concatenate(some[:2]), some[2], some[3]
            for smoothing in row:
                chosen = np.exp(np.minimum(-lacking(some) / smoothing, 30.0))
                taken = np.maximum(np.bincount(ends, np.tile(chosen, 2), jobs + 1)[:jobs], 1e-30)
                of_jobs[:jobs] = np.maximum(0.0, of_jobs[:jobs] + smoothing / 2 * np.log(taken))
                chosen = held * np.exp(np.minimum(-lacking(some) / smoothing, 30.0))
                used = np.maximum(np.bincount(pools, chosen, len(most)), 1e-9)
                step = used / np.maximum(np.bincount(pools, held * chosen, len(most)), 1e-9)
                of_pools = np.maximum(0.0, of_pools + smoothing * step * np.log(used / np.maximum(most, 1.0)))
        # Prices of jobs fall, or rise, until one of the entries of each lacks nothing and none less.
        spare = np.full(jobs + 1, np.inf)
        for ends in columns[:2]:
            np.minimum.at(spare, ends, share * lacking(columns))
        of_jobs[:jobs] = np.maximum(0.0, of_jobs - spare)[:jobs]
        return unit * float(of_jobs.sum() + of_pools @ most), unit * lacking(columns)


def matching_round(instance: RoundAssignment) -> RoundAssignmentPlan | None:
    """One pool: rows as a maximum-weight matching of the jobs, at a price for each worker (ours).

    A pair is an edge between its jobs, a job alone an edge to a partner of its own; an edge weighs
    what its priority, on the row's best type, exceeds the price of its workers.  A maximum-weight
    matching maximises the Lagrangian of the pool's capacity at that price.  The price is raised and
    lowered by chords (:func:`round_price`) until a matching M within the capacity and a matching N
    beyond it are both best at one price.  Then so is M after it has taken over N's choice in any of
    the components of their difference; M takes over those that fit, and last the eligible rows that
    still find workers, the highest priority first.  The better of that and Algorithm 1 is returned.

    Guarantee: never worse than :func:`greedy_priority`; optimal where there is one pool and all
    scale factors are 1.  There each component changes the number of rows by at most 1, so M fills
    the pool exactly and is worth as much as the bound at the price, but for a rounding of 1e-12 of
    it.  With wide jobs the value may fall short of the optimum, and :func:`round_bound` says by how
    much at most.  Several pools have no one price; then the answer is None.
    Complexity: O(n**3) for each of a few matchings.

    References
    ----------
    Edmonds, "Maximum matching and a polyhedron with 0,1-vertices" (1965), as in networkx; Geoffrion,
    "Lagrangean relaxation for integer programming" (1974).
    """
    if not instance.num_jobs:
        return instance.nothing()
    if len(instance.num_workers) != 1:
        return None
    rows = _PricedRows(instance)
    _, within, beyond = _chords(rows)
    matched, greedy = instance.filled(rows.plan(rows.taken_over(within, beyond))), greedy_priority(instance)
    return max((matched, greedy), key=instance.objective)


def round_price(instance: RoundAssignment) -> float | None:
    """Return the price per worker at which the Lagrangian bound of one pool is least; None with several pools."""
    if len(instance.num_workers) != 1:
        return None
    rows = _PricedRows(instance)
    return float(np.ldexp(_chords(rows)[0], rows.unit))


def round_bound(instance: RoundAssignment, price: float | None = None) -> float | None:
    """No round is worth more: what is best at a price per worker, and the price of all workers.

    Parameters
    ----------
    instance : RoundAssignment
    price : float, optional
        At least 0; :func:`round_price` by default, the best.

    Returns
    -------
    float or None
        None with several pools.
    """
    if len(instance.num_workers) != 1:
        return None
    rows = _PricedRows(instance)
    price = _chords(rows)[0] if price is None else float(np.ldexp(price, -rows.unit))
    return float(np.ldexp(rows.margin(rows.best(price), price) + price * rows.capacity, rows.unit))


class _PricedRows:
    """Rows of a round on one pool, each on its best type, that can run and are worth something.

    Values are in a ``unit``, two to this power, in which the greatest is about 1: prices are quotients of them.
    """

    def __init__(self, instance: RoundAssignment) -> None:
        usable = np.where(instance.urgent, instance.priorities, 0.0)
        self.instance = instance
        self.kinds = usable.argmax(axis=1)
        self.unit = int(np.frexp(usable.max(initial=0.0))[1])
        self.values = np.ldexp(usable.max(axis=1), -self.unit).tolist()
        self.sizes = instance.row_scale_factors.tolist()
        self.capacity = int(instance.num_workers[0])
        # The least row of the greatest value for each edge, where a pair is named more than once.
        self.row_of: dict[frozenset[object], int] = {}
        for row in np.argsort(-usable.max(axis=1), kind="stable").tolist():
            if self.values[row] > 0:
                self.row_of.setdefault(self.ends(row), row)

    def ends(self, row: int) -> frozenset[object]:
        jobs = self.instance.members[row]
        return frozenset(jobs if len(jobs) == 2 else (jobs[0], ("alone", jobs[0])))

    def value(self, rows: set[int]) -> float:
        return math.fsum(self.values[row] for row in rows)

    def size(self, rows: set[int]) -> int:
        return sum(self.sizes[row] for row in rows)

    def margin(self, rows: set[int], price: float) -> float:
        return math.fsum(self.values[row] - price * self.sizes[row] for row in rows)

    def best(self, price: float) -> set[int]:
        """Rows of greatest margin at a price per worker."""
        import networkx as nx

        graph = nx.Graph()
        for ends, row in self.row_of.items():
            margin = self.values[row] - price * self.sizes[row]
            if margin > 0:
                graph.add_edge(*ends, weight=margin)
        return {self.row_of[frozenset(edge)] for edge in nx.max_weight_matching(graph)}

    def taken_over(self, within: set[int], beyond: set[int]) -> set[int]:
        """``within``, with the choice of ``beyond`` in those components of their difference that fit."""
        import networkx as nx

        difference = nx.Graph([tuple(self.ends(row)) for row in within ^ beyond])
        chosen = set(within)
        components = [
            {row for row in within ^ beyond if self.ends(row) <= part} for part in nx.connected_components(difference)
        ]
        growth = [(self.size(rows & beyond) - self.size(rows & within), min(rows), rows) for rows in components]
        for more, _, rows in sorted(growth, key=lambda one: (-one[0], one[1])):
            if 0 < more <= self.capacity - self.size(chosen):
                chosen ^= rows
        return chosen

    def plan(self, chosen: set[int]) -> RoundAssignmentPlan:
        entries = np.zeros(self.instance.priorities.shape, bool)
        rows = sorted(chosen)
        entries[rows, self.kinds[rows]] = True
        return RoundAssignmentPlan(chosen=entries)


def _chords(rows: _PricedRows) -> tuple[float, set[int], set[int]]:
    """Return the price of the least bound, and best matchings there, one within the capacity and one not less.

    The greatest margin is convex in the price, piecewise linear, with a slope of minus the size of
    a best matching.  The chord between a matching within the capacity and one beyond it gives the
    price at which they are worth the same; where another is worth more, it replaces one of them.
    """
    within: set[int] = set()
    beyond = rows.best(0.0)
    if rows.size(beyond) <= rows.capacity:
        return 0.0, beyond, beyond
    while True:
        price = (rows.value(beyond) - rows.value(within)) / (rows.size(beyond) - rows.size(within))
        found = rows.best(price)
        if rows.margin(found, price) <= rows.margin(within, price) + 1e-12 * rows.value(beyond):
            return price, within, beyond
        if rows.size(found) <= rows.capacity:
            within = found
        else:
            beyond = found


def priorities(target: FloatArray, time_received: FloatArray) -> FloatArray:
    """Figure 5's priorities, X over the rounds received, with these as a share of all rounds of all entries.

    Dividing all rounds by their total changes all priorities by one factor, and so no choice.  Section 5
    prints another f, that of :func:`priorities_per_type`.

    Parameters
    ----------
    target : (r, k) float
        The policy's allocation X.
    time_received : (r, k) float
        Rounds that each row has run on each type so far.

    Returns
    -------
    (r, k) float
        Never-served entries with X > 0 come before all others, by ``NEVER_SERVED * X``; entries
        with X = 0 have priority 0.
    """
    return _lag(target, time_received, np.full(time_received.shape[1:], time_received.sum()))


def priorities_per_type(target: FloatArray, time_received: FloatArray) -> FloatArray:
    """Section 5's priorities as printed: X / f with f_mj = t_mj over the sum of t_m'j of all rows m' on type j.

    So f says how a type's time is divided among the rows, whereas X says how a row divides its own time.
    A row that is alone on a type has f = 1 there however little it runs, and nothing brings f to X.

    Parameters, return value and the stand-in for never-served entries are those of :func:`priorities`.

    References
    ----------
    Gavel (OSDI'20), section 5.
    """
    return _lag(target, time_received, time_received.sum(axis=0))


def _lag(target: FloatArray, time_received: FloatArray, total: FloatArray) -> FloatArray:
    """(r, k) float: X / f, with f the time received over the (k,) total of each type."""
    share = np.divide(time_received, total, out=np.zeros(time_received.shape), where=total > 0)
    served = share > 0
    found = np.where(served, target / np.where(served, share, 1.0), NEVER_SERVED * target)
    return np.where(target > 0, found, 0.0)


@dataclass(frozen=True)
class Simulation:
    """The outcome of the repeated mechanism.

    Attributes
    ----------
    time_fractions : (n+q, k) float
        Fraction of the rounds that each row ran on each type.
    shortfall : float
        Largest amount by which an entry received less than its target.
    """

    time_fractions: FloatArray
    shortfall: float


def simulate(
    instance: Sharing,
    target: Allocation,
    rounds: int,
    *,
    rule: Callable[[FloatArray, FloatArray], FloatArray] = priorities,
) -> Simulation:
    """Apply the mechanism for a number of rounds.

    The time received can fall short of a feasible target however many rounds there are: gangs of
    workers cannot always be packed into whole rounds.

    Parameters
    ----------
    instance : Sharing
        The cluster and the jobs of any policy.
    target : Allocation
        The policy's allocation X.
    rounds : int
        At least 1.
    rule : callable
        :func:`priorities` or :func:`priorities_per_type`.
    """
    if rounds < 1:
        raise ValueError(f"rounds: got {rounds}, must be at least 1")
    x = target.time_fractions
    received = np.zeros_like(x)
    this_round = RoundAssignment(
        scale_factors=instance.scale_factors,
        num_workers=instance.num_workers,
        pairs=instance.pairs,
        priorities=np.zeros_like(x),
        pools=instance.pools,
        eligible=instance.runs,
    )
    for _ in range(rounds):
        received += greedy_priority(replace(this_round, priorities=rule(np.maximum(x, 0.0), received))).chosen
    fractions = received / rounds
    return Simulation(time_fractions=fractions, shortfall=float(np.maximum(x - fractions, 0.0).max()))


def placement(
    instance: RoundAssignment,
    plan: RoundAssignmentPlan,
    workers_per_server: int,
    *,
    unconsolidated: BoolArray | None = None,
) -> tuple[IntArray, IntArray]:
    """Place the rows of a round: the widest first, each on one server if it can, or apart where its type says so.

    Each pool's workers stand on servers of equal size, the last of which may be smaller.  A row takes the
    fullest server that still has room for all of its workers; where none has, it takes whole servers'
    room, the emptiest first.  On an unconsolidated type its workers go to servers of their own, the fullest
    first, and a second one to a server only where there are no others with room.  Of rows of one width those
    that are to be together come first.  Ties go to the lowest row and server.

    Parameters
    ----------
    instance : RoundAssignment
    plan : RoundAssignmentPlan
        What runs.
    workers_per_server : int
        At least 1.
    unconsolidated : (k,) bool, optional
        Types whose throughput is that of workers on different servers (3.1); none by default.

    Returns
    -------
    (n+q, s) int
        Workers of each server that each row holds.
    (s,) int
        Pool of each server.

    Raises
    ------
    ValueError
        When servers have no workers.

    References
    ----------
    Gavel (OSDI'20), section 5, which asks for decreasing order of workers and for the same server, and 3.1
    for the two worker types of each accelerator; which server, and how a row is spread that fits on none, is ours.
    """
    if workers_per_server < 1:
        raise ValueError(f"workers_per_server: got {workers_per_server}, must be at least 1")
    sizes = [
        (pool, min(workers_per_server, workers - start))
        for pool, workers in enumerate(instance.num_workers.tolist())
        for start in range(0, workers, workers_per_server)
    ]
    of_pool, free = np.array(sizes, np.int64).reshape(-1, 2).T.copy()
    held = np.zeros((len(plan.chosen), len(free)), np.int64)
    apart = np.zeros(instance.num_types, bool) if unconsolidated is None else np.asarray(unconsolidated, bool)
    rows, kinds = np.nonzero(plan.chosen)
    for one in np.lexsort([apart[kinds], -instance.row_scale_factors[rows]]):
        row, wanted = rows[one], int(instance.row_scale_factors[rows[one]])
        servers = np.flatnonzero(of_pool == instance.pools[kinds[one]])
        while apart[kinds[one]] and wanted:
            # One worker on each server with room, as long as some are left.
            room = servers[free[servers] > 0]
            for server in room[np.argsort(free[room], kind="stable")][:wanted]:
                held[row, server] += 1
                free[server] -= 1
                wanted -= 1
        whole = servers[free[servers] >= wanted]
        order = whole[free[whole].argmin()][None] if whole.size else servers[np.argsort(-free[servers], kind="stable")]
        for server in order:
            taken = min(wanted, int(free[server]))
            held[row, server] += taken
            free[server] -= taken
            wanted -= taken
    return held, of_pool
