"""Time by prices of the pools, for Gavel's policies whose objective is a sum or a ratio of sums (ours).

Jobs meet in few rows only: the capacities of the pools.  At prices of these each job is alone, or with one partner, and
takes what is worth most after its price: a type, two types in turn where it has a throughput to reach, or a pair.
What all of them take is one plan.  It is best at its prices, and overloads some pools; but the best mean of several
such plans that fits the pools is a linear program of few rows, whose duals are the next prices (Dantzig and Wolfe's
decomposition).  The mean is a plan at every step, and no plan is worth more than the jobs' best at any prices with the
capacities at these prices, so that the steps end when the two are close.

- A job that needs a throughput may miss it, at a penalty that plans without misses do not pay.
- Partners are matched greedily, by what they gain over both alone.  A greedy matching is no best one: with pairs the
  bound may be below the optimum, and nothing is promised.
- A ratio of sums, N / D, is at least r where N - r D is at least 0: r rises with each plan that is found (Dinkelbach).

References
----------
Dantzig and Wolfe, "Decomposition principle for linear programs" (1960); Wentges, "Weighted Dantzig-Wolfe decomposition
for linear mixed-integer programming" (1997), for prices between the best and the last; Dinkelbach, "On nonlinear
fractional programming" (1967).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from instances.base import TOLERANCE
from instances.gavel.priced import PricedSharing
from instances.gavel.sharing import Allocation, Sharing
from instances.schema import BoolArray, FloatArray, IntArray

__all__ = ["CLOSE", "priced", "throughputs_needed"]

CLOSE = 1e-3
"""Part of a plan's value that may be missing to the bound when the steps end."""
ROUNDS, PIVOTS = 60, 50
"""Steps at most, and pivots at most in each."""
BETWEEN = 0.5
"""Where the next prices are, between the duals, 0, and the prices of the best bound, 1."""
PENALTIES = (1e3, 1e7)
"""Of a miss, relative to the greatest worth; the greater where the lesser is paid."""
TINY = 1e-10
"""Reduced cost, and pivot, that counts as 0."""


def priced(
    instance: Sharing, worth: FloatArray, *, needed: FloatArray | None = None, costs: FloatArray | None = None
) -> Allocation:
    """Return a plan of great worth, or of a great ratio of worth to costs.

    Guarantee: never worse than ``isolated_share``, where that gives the jobs what they need.  Without pairs, unless
    ``ROUNDS`` are too few, a sum is within :data:`CLOSE` of the greatest, and each job has what it needs wherever
    that is possible.  Complexity: O(n * k**2 + q * k * log(q * k)) per step.

    Parameters
    ----------
    instance : Sharing
    worth : (n+q, k) float
        What a row is worth when it runs on a type all the time, at least 0.
    needed : (n,) float, optional
        Throughput that each job must have at least, steps/s.
    costs : (n+q, k) float, optional
        What a row costs when it runs on a type all the time, positive.  The worth of all over the costs of all is
        looked for where it is given, else the worth.
    """
    if needed is None:
        needed = np.zeros(instance.num_jobs)
    search = _Search(_Choices(instance, worth, needed, costs))
    isolated = instance.isolated_share()
    meets = bool((instance.throughput(isolated) >= needed).all())
    if meets:
        row, kind = np.nonzero(isolated.time_fractions)
        search.add(_Entries(row, kind, isolated.time_fractions[row, kind]))
    plan = search.run()
    # Next to nothing, which a job may need, is lost where plans are mixed.
    lacks = (instance.throughput(plan) < needed * (1 - TOLERANCE)).any()
    return isolated if meets and lacks else plan


def throughputs_needed(instance: PricedSharing) -> FloatArray:
    """(n,) float: steps/s of each job that its SLO asks for; 0 without one."""
    needed: FloatArray = instance.steps / instance.slos
    return needed


@dataclass(frozen=True, eq=False)
class _Entries:
    """Some entries of an allocation, (e,) each; and how many jobs miss what they need."""

    row: IntArray
    kind: IntArray
    share: FloatArray
    missed: int = 0


@dataclass(frozen=True, eq=False)
class _Mixes:
    """What jobs that need a throughput, and pairs, can choose: a row for a share of the time, and others for the rest.

    Attributes
    ----------
    row, kind, share : (c,) int, int, float
        Row, the type that it runs on, and for which part of the time.
    jobs, rests : (c, 2) int
        The row's jobs, twice the same where it is one, and the types on which they run alone for the rest; k for none
        (and for the second of one job), k + 1 for the best at the time.
    parts : (c, 2) float
        For which part of the rest.
    missed : (c,) bool
        Whether the job has less than it needs.
    """

    row: IntArray
    kind: IntArray
    share: FloatArray
    jobs: IntArray
    rests: IntArray
    parts: FloatArray
    missed: BoolArray


def _joined(parts: Sequence[_Mixes]) -> _Mixes:
    return _Mixes(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(_Mixes)))


class _Choices:
    """What jobs choose at prices.

    Parameters
    ----------
    instance, worth, needed, costs
        As of :func:`priced`.

    Attributes
    ----------
    worth, costs : (n+q, k) float
        Relative to the greatest.
    widths : (n+q,) float
        Workers of each row.
    capacity : (p,) float
        Workers of each pool, at least 1.
    needing : (n,) bool
        Jobs that need a throughput.
    """

    def __init__(self, instance: Sharing, worth: FloatArray, needed: FloatArray, costs: FloatArray | None) -> None:
        self.instance, self._needed = instance, needed
        n = instance.num_jobs
        self._fits, self._everyone = instance.fits[:n], np.arange(n)
        self.worth = _relative(np.where(instance.fits, worth, 0.0))
        self.costs = None if costs is None else _relative(np.where(instance.fits, costs, 0.0))
        self.widths = instance.row_scale_factors.astype(float)
        self.capacity = np.maximum(instance.num_workers, 1).astype(float)
        self.needing = needed > 0
        # Alone: on each type; idle; and on the best type, which only jobs without needs may take unseen.
        able = np.where(self._fits, instance.throughputs, -1.0)
        self._speeds = np.column_stack([able, np.zeros(n), np.where(self.needing, -1.0, 0.0)])
        alone, together = self._alone(), self._together()
        self._mixes = mixes = _joined([alone, *together])
        self._pairs = len(alone.row)
        self._run_worth, self._run_width = self.worth[mixes.row, mixes.kind], self.widths[mixes.row]
        self._run_costs = None if self.costs is None else self.costs[mixes.row, mixes.kind]
        self._first, self._second = mixes.jobs[self._pairs :].T.copy()
        # Mixes of each job that needs a throughput, the last repeated.
        count = np.bincount(alone.row, minlength=n)[self.needing]
        self._options = (np.cumsum(count) - count)[:, None] + np.minimum(
            np.arange(count.max(initial=1)), count[:, None] - 1
        )

    def _alone(self) -> _Mixes:
        """List what jobs that need a throughput can do alone, job by job; missing it is the first."""
        k = self.instance.num_types
        jobs = np.flatnonzero(self.needing)
        m, kind = np.nonzero(self._speeds[jobs, :k] >= self._needed[jobs, None])
        job = jobs[m]
        at, rest, share = _exactly(self._speeds[job, kind], self._speeds[job], self._needed[job])
        row = np.concatenate([jobs, job, job[at]])
        rests = np.concatenate([np.full(len(jobs) + len(job), k), rest])
        order = np.argsort(row, kind="stable")
        found = _Mixes(
            row,
            np.concatenate([np.zeros(len(jobs), np.int64), kind, kind[at]]),
            np.concatenate([np.zeros(len(jobs)), np.ones(len(job)), share]),
            np.stack([row, row], axis=1),
            np.stack([rests, np.full(len(rests), k)], axis=1),
            np.ones((len(rests), 2)),
            np.arange(len(row)) < len(jobs),
        )
        return _Mixes(*(getattr(found, field.name)[order] for field in fields(_Mixes)))

    def _together(self) -> list[_Mixes]:
        """List what pairs can do: run all the time, or just so long that one of them has what it needs.

        Then the other one may run alone for the rest, or for as much of it as gives it what it needs.
        """
        instance, n, k = self.instance, self.instance.num_jobs, self.instance.num_types
        pair, kind = np.nonzero(self.worth[n:] > 0)
        jobs, speeds = instance.pairs[pair], instance.pair_throughputs[pair, kind]

        def mixes(at: IntArray, share: FloatArray, rests: IntArray, parts: FloatArray) -> _Mixes:
            return _Mixes(n + pair[at], kind[at], share, jobs[at], rests, parts, np.zeros(len(at), bool))

        whole = np.flatnonzero((speeds >= self._needed[jobs]).all(axis=1))
        found = [mixes(whole, np.ones(len(whole)), np.full((len(whole), 2), k), np.ones((len(whole), 2)))]
        for one in (0, 1) if self.needing.any() else ():
            some = np.flatnonzero(self.needing[jobs[:, one]])
            job = jobs[some, one]
            at, rest, share = _exactly(speeds[some, one], self._speeds[job], self._needed[job])
            at = some[at]
            other = jobs[at, 1 - one]
            alone = self._speeds[other]
            lacking = self._needed[other][:, None] - share[:, None] * speeds[at, 1 - one][:, None]
            able = (alone >= 0) & (lacking <= (1 - share)[:, None] * alone)
            # A partner without needs runs on its best type for the rest.
            suits = able & (self.needing[other][:, None] | (np.arange(k + 2) == k + 1))
            which, others_rest = np.nonzero(suits)
            just = np.argwhere(able & (lacking > 0) & (lacking < (1 - share)[:, None] * alone))
            part = lacking[just[:, 0], 0] / ((1 - share[just[:, 0]]) * alone[just[:, 0], just[:, 1]])
            which = np.concatenate([which, just[:, 0]])
            rests = np.stack([rest[which], np.concatenate([others_rest, just[:, 1]])], axis=1)
            parts = np.stack([np.ones(len(which)), np.concatenate([np.ones(len(others_rest)), part])], axis=1)
            order = [one, 1 - one]
            found.append(mixes(at[which], share[which], rests[:, order], parts[:, order]))
        return found

    def first_prices(self) -> FloatArray:
        """(p,) float: one price of all workers, at which the jobs that are worth more would just fill all pools."""
        n = self.instance.num_jobs
        density = self.worth[:n].max(axis=1) / self.widths[:n]
        order = np.argsort(-density)
        full = int(np.searchsorted(np.cumsum(self.widths[order]), self.instance.num_workers.sum()))
        return np.full(len(self.capacity), density[order[full]] if full < n else 0.0)

    def best(self, prices: FloatArray, ratio: float, penalty: float) -> _Entries:
        """Return what is worth most in all, after costs times a ratio and (p,) prices of workers."""
        n, k, mixes = len(self._everyone), self.instance.num_types, self._mixes
        price = prices[self.instance.pools]
        after = self.worth[:n] - self.widths[:n, None] * price
        value = self._run_worth - self._run_width * price[mixes.kind]
        if self.costs is not None and self._run_costs is not None:
            after -= ratio * self.costs[:n]
            value -= ratio * self._run_costs
        alone = np.zeros((n, k + 2))
        alone[:, :k] = np.where(self._fits, after, -np.inf)
        kind = alone[:, : k + 1].argmax(axis=1)
        best = alone[self._everyone, kind]
        chosen, free = np.zeros(0, np.int64), kind < k
        if self._pairs:
            alone[:, k + 1] = best
            rest = (alone[mixes.jobs, mixes.rests] * mixes.parts).sum(axis=1)
            value = mixes.share * value + (1 - mixes.share) * rest - penalty * mixes.missed
            options = value[self._options]
            chosen = self._options[np.arange(len(options)), options.argmax(axis=1)]
            best[self.needing] = value[chosen]
            free &= ~self.needing
        if len(self._first):
            matched, taken = self._matched(value[self._pairs :] - best[self._first] - best[self._second])
            free &= ~taken
            chosen = np.concatenate([chosen[~taken[mixes.row[chosen]]], matched])
        return self._entries(chosen, np.flatnonzero(free), kind)

    def _matched(self, gain: FloatArray) -> tuple[IntArray, BoolArray]:
        """Return the mixes of a greedy matching of the jobs by what pairs gain, and whose jobs those are."""
        order = np.flatnonzero(gain > 0)
        order = order[np.argsort(-gain[order], kind="stable")]
        taken, found = bytearray(len(self._everyone)), []
        jobs = self._first[order].tolist(), self._second[order].tolist()
        for mix, one, other in zip(order.tolist(), *jobs, strict=True):
            if not (taken[one] or taken[other]):
                taken[one] = taken[other] = 1
                found.append(mix)
        return self._pairs + np.array(found, np.int64), np.frombuffer(taken, bool)

    def _entries(self, chosen: IntArray, free: IntArray, kind: IntArray) -> _Entries:
        """Return the entries of some mixes, and of free jobs on their best types."""
        mixes, k = self._mixes, self.instance.num_types
        row, at, share = mixes.row[chosen], mixes.kind[chosen], mixes.share[chosen]
        rows, kinds, shares = [free, row], [kind[free], at], [np.ones(len(free)), share]
        if self._pairs:
            jobs, rests = mixes.jobs[chosen].ravel(), mixes.rests[chosen].ravel()
            left = ((1 - share)[:, None] * mixes.parts[chosen]).ravel()
            rests = np.where(rests > k, kind[jobs], rests)
            resting = np.flatnonzero(rests < k)
            rows.append(jobs[resting])
            kinds.append(rests[resting])
            shares.append(left[resting])
        missed = int(np.count_nonzero(mixes.missed[chosen]))
        return _Entries(np.concatenate(rows), np.concatenate(kinds), np.concatenate(shares), missed)


def _relative(numbers: FloatArray) -> FloatArray:
    """Return numbers over the greatest of them."""
    greatest = float(numbers.max(initial=0.0))
    return numbers / greatest if greatest > 0 else numbers


def _exactly(speed: FloatArray, rests: FloatArray, needed: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Return (index, rest, share): the part of the time to run at a speed, else at another, for just what is needed.

    ``rests`` is (e, r), negative where there is no such rest; the others are (e,).  One of the speeds is above it, the
    other below.
    """
    above, beyond = speed >= needed, rests >= needed[:, None]
    at, rest = np.nonzero((rests >= 0) & (above[:, None] != beyond))
    slower = rests[at, rest]
    return at, rest, (needed[at] - slower) / (speed[at] - slower)


class _Search:
    """The best mean of plans that fits the pools, by the simplex method; plans are added as its duals call for them.

    Rows are the pools, by their capacities, and the parts of the mean, which sum to 1; the first columns are what is
    left of each, and the others plans.

    Parameters
    ----------
    choices : _Choices
    """

    def __init__(self, choices: _Choices) -> None:
        self._choices = choices
        self._rows = rows = len(choices.capacity) + 1
        self._plans: list[_Entries] = []
        # A plan to begin with, that of the first prices, and two a step at most.
        self._columns = np.zeros((rows, rows + 2 + 2 * ROUNDS))
        self._worth, self._costs, self._missed = np.zeros((3, self._columns.shape[1]))
        self._columns[:, :rows] = np.eye(rows)
        # Where the parts of plans are less than 1 nobody has anything.
        self._missed[rows - 1] = np.count_nonzero(choices.needing)
        self._basis, self._inverse, self._parts = np.arange(rows), np.eye(rows), np.ones(rows)
        self._ratio, self._penalty = 0.0, PENALTIES[0]

    def add(self, plan: _Entries) -> None:
        """Add a plan to those that the mean is of."""
        choices, at = self._choices, self._rows + len(self._plans)
        self._plans.append(plan)
        load = np.bincount(
            choices.instance.pools[plan.kind],
            weights=choices.widths[plan.row] * plan.share,
            minlength=len(choices.capacity),
        )
        self._columns[:-1, at], self._columns[-1, at] = load / choices.capacity, 1.0
        self._worth[at] = choices.worth[plan.row, plan.kind] @ plan.share
        self._costs[at] = 0.0 if choices.costs is None else choices.costs[plan.row, plan.kind] @ plan.share
        self._missed[at] = plan.missed

    def run(self) -> Allocation:
        """Add plans until the mean is close to the bound."""
        best = self._choices.first_prices()
        bound, _ = self._ask(best)
        for _ in range(ROUNDS):
            duals = self._pivoted()
            while self._raised():
                duals, bound = self._pivoted(), np.inf
            worth, _, misses = self._of_mean()
            value = float(duals.sum())
            prices = np.maximum(duals[:-1], 0.0) / self._choices.capacity
            for at in (prices,) if bound == np.inf else (BETWEEN * best + (1 - BETWEEN) * prices, prices):
                at_most, column = self._ask(at)
                if at_most < bound:
                    bound, best = at_most, at
                gain = self._values()[-1] - float(duals @ column)
                if gain > _tiny(duals):
                    break
            if misses > TINY:
                if gain <= _tiny(duals):
                    if self._penalty == PENALTIES[-1]:
                        break
                    self._penalty, bound = PENALTIES[-1], np.inf
            elif gain <= _tiny(duals) or bound - value <= CLOSE * worth:
                break
        return self._mean()

    def _ask(self, prices: FloatArray) -> tuple[float, FloatArray]:
        """Add the plan that is best at (p,) prices of workers; return the bound that they prove, and its column."""
        choices = self._choices
        self.add(choices.best(prices, self._ratio, self._charged))
        column = self._columns[:, self._rows + len(self._plans) - 1]
        return float(self._values()[-1] + prices * choices.capacity @ (1 - column[:-1])), column

    @property
    def _charged(self) -> float:
        return self._penalty * (1 + self._ratio)

    def _values(self) -> FloatArray:
        """(c,) float: what each column is worth."""
        count = self._rows + len(self._plans)
        values: FloatArray = self._worth[:count] - self._ratio * self._costs[:count]
        return values - self._charged * self._missed[:count]

    def _of_mean(self) -> tuple[float, float, float]:
        """Return worth, costs and misses of the mean."""
        basis, parts = self._basis, self._parts
        return float(self._worth[basis] @ parts), float(self._costs[basis] @ parts), float(self._missed[basis] @ parts)

    def _raised(self) -> bool:
        """Raise the ratio to that of the mean; return whether it was less."""
        worth, costs, misses = self._of_mean()
        if misses > TINY or worth <= self._ratio * costs * (1 + TINY) or costs <= 0:
            return False
        self._ratio = worth / costs
        return True

    def _pivoted(self) -> FloatArray:
        """Make the mean the best of the plans that there are, and return the duals of the rows."""
        values, columns = self._values(), self._columns[:, : self._rows + len(self._plans)]
        duals: FloatArray = values[self._basis] @ self._inverse
        for _ in range(PIVOTS):
            reduced = values - duals @ columns
            entering = int(reduced.argmax())
            if reduced[entering] <= _tiny(duals):
                break
            column = self._inverse @ columns[:, entering]
            steps = np.divide(self._parts, column, out=np.full(self._rows, np.inf), where=column > TINY)
            leaving = int(steps.argmin())
            pivot = self._inverse[leaving] / column[leaving]
            self._inverse -= column[:, None] * pivot
            self._inverse[leaving] = pivot
            self._parts = np.maximum(self._inverse.sum(axis=1), 0.0)
            self._basis[leaving] = entering
            duals = values[self._basis] @ self._inverse
        return duals

    def _mean(self) -> Allocation:
        instance = self._choices.instance
        x = np.zeros((instance.num_jobs + instance.num_pairs, instance.num_types))
        for part, column in zip(self._parts.tolist(), self._basis.tolist(), strict=True):
            if column >= self._rows and part > 0:
                plan = self._plans[column - self._rows]
                np.add.at(x, (plan.row, plan.kind), part * plan.share)
        return Allocation(time_fractions=x)


def _tiny(duals: FloatArray) -> float:
    """Return the reduced cost that is none."""
    return TINY * max(1.0, float(np.abs(duals).max()))
