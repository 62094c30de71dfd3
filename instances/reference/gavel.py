"""Gavel's policies, and the rounds.

A row is a job alone or a pair; X[r, j] is the part of the time that row r spends on workers of type j.  Every bound
starts from one inequality.  For any worth w[r, j] of a row's time, any price a[m] >= 0 of a job's time and any price
b[p] >= 0 of a pool's workers, every feasible X has

    sum w[r, j] X[r, j]  <=  sum_m a[m] + sum_p num_workers[p] b[p]
                             + sum over r, j of max(0, w[r, j] - scale_factor_r b[pool of j] - sum of a[m], m in r),

because X[r, j] <= 1, and X[r, j] = 0 where the row does not fit the pool.  Without pairs the best a[m] for given b is
the greatest w[m, j] - scale_factor_m b[pool of j], if that is positive, so files need not hold it.  What a policy makes
of the inequality is said with the policy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from .common import (
    CLOSED,
    FEW_STEPS,
    TOLERANCE,
    Counter,
    Malformed,
    Number,
    Problem,
    Record,
    Rules,
    good_prices,
    need,
    whole,
)
from .linear import Limit, least

Place: TypeAlias = tuple[int, int]
"""A row and a type."""

Speeds: TypeAlias = list[Fraction]
"""Steps/s of a job by place."""

Worth: TypeAlias = dict[Place, Fraction]
"""What the time of a row on a type is worth; nothing where it is not named."""

NOTHING = Fraction(1, 10**12)
"""A level of up to this part of what the job has at best is 0 but for rounding."""

SHARING = {
    "throughputs": "num+ n k",
    "num_workers": "int+ p",
    "pools": "int+ k",
    "scale_factors": "int1 n",
    "pairs": "int+ q 2",
    "pair_throughputs": "num+ q k 2",
}
STEPS = {"steps": "num+ n"}
PRICED = STEPS | {"costs": "num> k", "slos": "num>? n"}


def _sound_pairs(it: Record) -> None:
    for first, second in it.pairs:
        need(max(first, second) < len(it.scale_factors), "pairs names a job that there is not")
        need(first != second, "a pair is two different jobs")
        need(it.scale_factors[first] == it.scale_factors[second], "the jobs of a pair have one scale factor")
    need(all(pool < len(it.num_workers) for pool in it.pools), "pools names a pool that there is not")


class Sharing(Problem):
    """The parts that all policies share: rows, what each gives whom on which type, and the rules of X."""

    data = SHARING
    decisions = {"time_fractions": "num n+q k"}
    priced = {"pools": "num+ p", "jobs": "num+! n"}
    linear = True

    def check(self, it: Record) -> None:
        _sound_pairs(it)
        n = len(it.scale_factors)
        it.members = [(job,) for job in range(n)] + [tuple(pair) for pair in it.pairs]
        it.width = [it.scale_factors[row[0]] for row in it.members]
        room = [it.num_workers[pool] for pool in it.pools]
        it.fits = [[width <= here for here in room] for width in it.width]
        # Alone on a pool, at its best placement there: what equal and isolated shares are made of.
        alone = [[Fraction(0)] * len(it.num_workers) for _ in range(n)]
        for job in range(n):
            for kind, pool in enumerate(it.pools):
                if it.fits[job][kind]:
                    alone[job][pool] = max(alone[job][pool], it.throughputs[job][kind])
        it.alone = alone
        workers = sum(it.num_workers)
        it.equal = [
            sum((speed * count for speed, count in zip(row, it.num_workers, strict=True)), Fraction(0))
            / max(1, workers)
            for row in alone
        ]
        it.isolated = []
        for job, row in enumerate(alone):
            shares = [Fraction(count, n * it.scale_factors[job]) for count in it.num_workers]
            scale = max(Fraction(1), sum(shares))
            it.isolated.append(sum((s * speed for s, speed in zip(shares, row, strict=True)), Fraction(0)) / scale)

    def gives(self, it: Record) -> Iterator[tuple[int, int, int, Fraction]]:
        """``(row, type, job, steps/s)`` wherever a row that fits gives a job something."""
        for row, members in enumerate(it.members):
            for kind, fits in enumerate(it.fits[row]):
                if fits:
                    for side, job in enumerate(members):
                        alone = len(members) == 1
                        speed = (
                            it.throughputs[job][kind]
                            if alone
                            else it.pair_throughputs[row - len(it.scale_factors)][kind][side]
                        )
                        yield row, kind, job, speed

    def received(self, it: Record, plan: Record) -> list[Fraction]:
        """Steps/s of each job.  Time where a row does not fit counts too: that it is broken is another matter."""
        x = plan.time_fractions
        got = [
            sum((s * t for s, t in zip(it.throughputs[m], x[m], strict=True)), Fraction(0))
            for m in range(len(it.scale_factors))
        ]
        for pair, ((first, second), speeds) in enumerate(zip(it.pairs, it.pair_throughputs, strict=True)):
            for kind, time in enumerate(x[len(it.scale_factors) + pair]):
                got[first] += speeds[kind][0] * time
                got[second] += speeds[kind][1] * time
        return got

    def fastest(self, it: Record) -> list[Fraction]:
        """Steps/s of each job where it is fastest, in any row."""
        best = [Fraction(0)] * len(it.scale_factors)
        for _, _, job, speed in self.gives(it):
            best[job] = max(best[job], speed)
        return best

    def levels(self, it: Record) -> list[Fraction]:
        """Return what one step/s adds to each job's normalised throughput; 0 where an equal share gives nothing."""
        return [
            width / equal if equal else Fraction(0) for width, equal in zip(it.scale_factors, it.equal, strict=True)
        ]

    def broken(self, it: Record, plan: Record, rules: Rules) -> None:
        x = plan.time_fractions
        time = [Fraction(0)] * len(it.scale_factors)
        used = [Fraction(0)] * len(it.num_workers)
        for row, members in enumerate(it.members):
            for kind, part in enumerate(x[row]):
                rules.at_most("time_fraction_at_least_0", Fraction(0), part)
                rules.at_most("time_fraction_at_most_1", part, Fraction(1))
                if not it.fits[row][kind]:
                    rules.at_most("fits_pool", part, Fraction(0))
                for job in members:
                    time[job] += part
                used[it.pools[kind]] += it.width[row] * part
        for total in time:
            rules.at_most("job_time", total, Fraction(1))
        for total, most in zip(used, it.num_workers, strict=True):
            rules.at_most("pool_capacity", total, Fraction(most))

    # --- bounds ------------------------------------------------------------------------------

    def at_prices(self, it: Record, worth: Worth, prices: Record) -> Fraction:
        """Return the right side of the inequality above; ``worth`` is a dict by (row, type), 0 where there is none."""
        b, a = prices.pools, prices.jobs
        left = [
            {
                kind: worth.get((row, kind), 0) - it.width[row] * b[it.pools[kind]]
                for kind, fits in enumerate(fit)
                if fits
            }
            for row, fit in enumerate(it.fits)
        ]
        if a is None:
            if it.pairs:
                raise Malformed("prices: with pairs the prices of the jobs must be given")
            a = [max([0, *row.values()]) for row in left]
        total = sum(a) + sum(count * price for count, price in zip(it.num_workers, b, strict=True))
        for members, row in zip(it.members, left, strict=True):
            paid = sum(a[job] for job in members)
            total += sum(gain - paid for gain in row.values() if gain > paid)
        return Fraction(total)

    # --- small linear programs ---------------------------------------------------------------

    def program(self, it: Record, asked: Sequence[Fraction] = ()) -> tuple[list[Place], list[Speeds], list[Limit]]:
        """Return the rows and types that fit, each job's throughput by them, and the rules of their time.

        Parameters
        ----------
        asked : sequence of Fraction, optional
            Least throughput of each job, which may be missed by the tolerance.
        """
        places = [(row, kind) for row, fits in enumerate(it.fits) for kind, fit in enumerate(fits) if fit]
        # Its table alone may be larger than what a search may look at.
        Counter().step(len(places) * (len(it.scale_factors) + len(it.num_workers)))
        at = {place: number for number, place in enumerate(places)}
        speeds = [[Fraction(0)] * len(places) for _ in it.scale_factors]
        for row, kind, job, speed in self.gives(it):
            speeds[job][at[row, kind]] = speed
        limits: list[Limit] = [([int(job in it.members[row]) for row, _ in places], 1) for job in range(len(speeds))]
        for pool, workers in enumerate(it.num_workers):
            limits.append(([it.width[row] * (it.pools[kind] == pool) for row, kind in places], workers))
        limits += [
            ([-speed for speed in mine], wanted * (TOLERANCE - 1))
            for mine, wanted in zip(speeds, asked, strict=False)
            if wanted
        ]
        return places, speeds, limits

    def greatest(
        self, it: Record, worth: Worth, asked: Sequence[Fraction] = (), counter: Counter | None = None
    ) -> Number:
        """Return the greatest worth of rows' time; minus infinity where no allocation has what is asked."""
        places, _, limits = self.program(it, asked)
        return -least([-worth.get(place, Fraction(0)) for place in places], limits, counter)

    def highest(self, it: Record, rates: Iterable[tuple[int, Fraction, Fraction]]) -> Number:
        """Return the greatest least level of some jobs, of ``(job, rate, size)`` that is rate * throughput / size."""
        places, speeds, limits = self.program(it)
        rows: list[Limit] = [([*a, 0], b) for a, b in limits]
        rows += [([*(-rate * speed for speed in speeds[job]), size], 0) for job, rate, size in rates]
        return -least([*[0] * len(places), -1], rows)

    def weighed(self, it: Record, weights: list[Fraction]) -> Worth:
        """Worth of time by (row, type) where a step/s of job m is worth ``weights[m]``."""
        worth: Worth = {}
        for row, kind, job, speed in self.gives(it):
            if speed and weights[job]:
                worth[row, kind] = worth.get((row, kind), Fraction(0)) + weights[job] * speed
        return worth


class TotalThroughput(Sharing):
    """The inequality with w the sum of a row's throughputs."""

    sense = "max"

    def value(self, it: Record, plan: Record) -> Number:
        return sum(self.received(it, plan), Fraction(0))

    def proven(self, it: Record, prices: Record) -> Number:
        return self.at_prices(it, self.weighed(it, [Fraction(1)] * len(it.scale_factors)), prices)

    def best(self, it: Record) -> Number:
        return self.greatest(it, self.weighed(it, [Fraction(1)] * len(it.scale_factors)))


class Fifo(Sharing):
    """The inequality with w the worth of a row's steps: n - m over the job's fastest throughput alone."""

    sense = "max"

    def worths(self, it: Record) -> list[Fraction]:
        n = len(it.scale_factors)
        return [(n - job) / max(row) if max(row) else Fraction(0) for job, row in enumerate(it.alone)]

    def value(self, it: Record, plan: Record) -> Number:
        return sum((w * got for w, got in zip(self.worths(it), self.received(it, plan), strict=True)), Fraction(0))

    def proven(self, it: Record, prices: Record) -> Number:
        return self.at_prices(it, self.weighed(it, self.worths(it)), prices)

    def best(self, it: Record) -> Number:
        return self.greatest(it, self.weighed(it, self.worths(it)))


class Rising(Sharing):
    """Greatest least level: levels ``rate[m] * throughput(m)`` of the jobs that count.

    The least of them is at most their mean weighed by any y[m] >= 0, so the inequality with
    ``w = sum_m y[m] rate[m] throughput`` bounds it after division by the sum of y.
    """

    sense = "max"
    priced = Sharing.priced | {"levels": "num+ n"}

    def rates(self, it: Record) -> list[Fraction | None]:
        """Return what one step/s adds to each job's level; None for a job that does not count."""
        raise NotImplementedError

    def value(self, it: Record, plan: Record) -> Number:
        rates, got = self.rates(it), self.received(it, plan)
        return min(
            (rate * mine for rate, mine in zip(rates, got, strict=True) if rate is not None), default=Fraction(0)
        )

    def proven(self, it: Record, prices: Record) -> Number:
        rates = self.rates(it)
        weights = [Fraction(0) if rate is None else y for rate, y in zip(rates, prices.levels, strict=True)]
        if not sum(weights):
            raise Malformed("prices: no job's level has a price")
        worth = [y * (rate or 0) for rate, y in zip(rates, weights, strict=True)]
        return self.at_prices(it, self.weighed(it, worth), prices) / sum(weights)

    def best(self, it: Record) -> Number:
        rates = enumerate(self.rates(it))
        return self.highest(it, [(job, rate, Fraction(1)) for job, rate in rates if rate is not None])


class MaxMinFairness(Rising):
    """Greatest least level of all jobs, their normalised throughput over their weight."""

    data = SHARING | {"weights": "num> n"}

    def rates(self, it: Record) -> list[Fraction | None]:
        return [level / weight for level, weight in zip(self.levels(it), it.weights, strict=True)]


class HierarchicalFairness(Rising):
    """Water filling: the value is the first level, to which the inequality of :class:`Rising` is a bound.

    Under "fifo" the job that rises is an entity's first, with all of the entity's weight; under "fairness" all do, each
    with its part.  A job is frozen when no allocation gives it more while all others keep what they have, and weights
    are shared anew.

    What a plan gives the jobs is what water filling ends in, if each job has a limit that holds it where it stops.
    Let levels rise as told, each up to what the plan gives; that says when each job stops, and how far the others are
    by then.  Prices y of levels, with those of jobs and pools, make the inequality with ``w = sum_m y[m] v_m``, where
    v_m is what a row's time adds to the normalised throughput of job m.  Its right side less what all have by then,
    over y[m], is the most that job m could still rise.  Nobody stops late, because the plan gives what it gives.
    """

    data = SHARING | {
        "entities": "int+ n",
        "entity_weights": "num> e",
        "entity_policies": "word8 e",
        "weights": "num> n",
    }
    decisions = Sharing.decisions | {"normalized_throughputs": "num n"}
    priced = Rising.priced | {
        "later_levels": "num+ l n",
        "later_pools": "num+ l p",
        "later_jobs": "num+! l n",
    }

    def check(self, it: Record) -> None:
        super().check(it)
        need(all(entity < len(it.entity_weights) for entity in it.entities), "entities names one that there is not")
        need(set(it.entity_policies) <= {"fairness", "fifo"}, "entity_policies: fairness or fifo")

    def parts(self, it: Record, frozen: Collection[int] = ()) -> dict[int, Fraction]:
        """Return the weights at which jobs rise while some are frozen; those that do not rise are left out."""
        own: dict[int, list[int]] = {}
        for job, entity in enumerate(it.entities):
            if job not in frozen:
                own.setdefault(entity, []).append(job)
        part: dict[int, Fraction] = {}
        for entity, jobs in own.items():
            if it.entity_policies[entity] == "fifo":
                part[jobs[0]] = it.entity_weights[entity]
            else:
                total = sum(it.weights[job] for job in jobs)
                part |= {job: it.entity_weights[entity] * it.weights[job] / total for job in jobs}
        return part

    def rates(self, it: Record) -> list[Fraction | None]:
        part = self.parts(it)
        return [level / part[job] if job in part else None for job, level in enumerate(self.levels(it))]

    def merits(self, it: Record, plan: Record) -> list[Number]:
        """Return the first level, and what each job has."""
        return [self.worth(it, plan), *self.had(it, plan)]

    def had(self, it: Record, plan: Record) -> list[Fraction]:
        """Return the normalised throughput of each job."""
        return [level * got for level, got in zip(self.levels(it), self.received(it, plan), strict=True)]

    def best_merits(self, it: Record) -> list[Number]:
        """Follow the definition: a program for each rise, and one for each job that may be frozen."""
        levels, counter = self.levels(it), Counter()
        places, speeds, limits = self.program(it)
        height, so_far, frozen = Fraction(0), [Fraction(0)] * len(levels), set[int]()

        def rise(parts: Mapping[int, Fraction]) -> Fraction:
            rows: list[Limit] = [([*a, 0], b) for a, b in limits]
            for job, (level, have) in enumerate(zip(levels, so_far, strict=True)):
                part = parts.get(job, Fraction(0))
                if part or have:
                    rows.append(([*(-level * speed for speed in speeds[job]), part], -have))
            return -Fraction(least([*[0] * len(places), -1], rows, counter))

        first: Number | None = None
        while len(frozen) < len(levels):
            parts = self.parts(it, frozen)
            by = rise(parts)
            height += by
            first = height if first is None else first
            so_far = [have + by * parts.get(job, 0) for job, have in enumerate(so_far)]
            frozen |= {job for job in parts if not rise({job: Fraction(1)})}
        return [first or Fraction(0), *so_far]

    def unproven(self, it: Record, plan: Record, prices: Any) -> list[str]:
        """Return the jobs that no limit holds where the plan leaves them."""
        read = self.prices(it, prices)
        if it.dims.get("n") == 0:
            return []
        levels, had = self.levels(it), self.had(it, plan)
        most = [level * best for level, best in zip(levels, self.fastest(it), strict=True)]
        times_of = read.later_jobs or [None] * len(read.later_levels)
        held = []
        for y, pools, times in zip(read.later_levels, read.later_pools, times_of, strict=True):
            worth = self.weighed(it, [price * level for price, level in zip(y, levels, strict=True)])
            held.append((y, self.at_prices(it, worth, Record(pools=pools, jobs=times))))
        found = []
        for jobs, then in self.stops(it, had):
            left = {job for job in jobs if most[job]}
            for y, limit in held:
                if not any(y[job] for job in left):
                    continue
                room = limit - sum(price * have for price, have in zip(y, then, strict=True) if price)
                for job in [job for job in left if y[job]]:
                    near = CLOSED * had[job] if had[job] > NOTHING * most[job] else TOLERANCE * most[job]
                    if room <= near * y[job]:
                        left.remove(job)
            # What holds some is mostly what held none before.
            held = held[1:] + held[:1]
            found += [f"job {job} is not held at {float(had[job])!r}" for job in sorted(left)]
        return found

    def stops(self, it: Record, had: Sequence[Fraction]) -> Iterator[tuple[list[int], list[Fraction]]]:
        """Let levels rise to what jobs have; yield those that stop together, with the levels of all by then."""
        so_far, frozen = [Fraction(0)] * len(had), set[int]()
        while parts := self.parts(it, frozen):
            by = min(max(Fraction(0), had[job] - so_far[job]) / part for job, part in parts.items())
            so_far = [have + by * parts.get(job, 0) for job, have in enumerate(so_far)]
            stopped = [job for job in parts if so_far[job] >= had[job]]
            yield stopped, so_far
            frozen.update(stopped)

    def broken(self, it: Record, plan: Record, rules: Rules) -> None:
        super().broken(it, plan, rules)
        for level, got, said in zip(self.levels(it), self.received(it, plan), plan.normalized_throughputs, strict=True):
            rules.at_most("normalized_throughputs", abs(level * got - said), Fraction(0), abs(level * got))


def _time(steps: Fraction, speed: Fraction) -> Number:
    """Return how long steps take, infinite at no speed, nothing for none."""
    if not steps:
        return Fraction(0)
    return steps / speed if speed > 0 else math.inf


class Makespan(Sharing):
    """The jobs that finish by T make ``steps / T`` steps/s.

    With any y[m] >= 0 of the jobs with steps left, the inequality for ``w = sum_m y[m] throughput / steps[m]`` has a
    left side of at least ``sum_m y[m] / T``, so T is at least the sum of y over the right side.
    """

    data = SHARING | STEPS
    priced = Rising.priced

    def value(self, it: Record, plan: Record) -> Number:
        return max(_time(left, got) for left, got in zip(it.steps, self.received(it, plan), strict=True))

    def proven(self, it: Record, prices: Record) -> Number:
        y = [price if left else Fraction(0) for price, left in zip(prices.levels, it.steps, strict=True)]
        if not sum(y):
            if any(it.steps):
                raise Malformed("prices: no job has a price")
            return Fraction(0)
        worth = [price / left if left else Fraction(0) for price, left in zip(y, it.steps, strict=True)]
        most = self.at_prices(it, self.weighed(it, worth), prices)
        return sum(y) / most if most > 0 else math.inf

    def best(self, it: Record) -> Number:
        rates = [(job, Fraction(1), left) for job, left in enumerate(it.steps) if left]
        if not rates:
            return Fraction(0)
        pace = self.highest(it, rates)
        return 1 / pace if pace else math.inf


class ShortestJobFirst(Sharing):
    """Least time of the first job to finish: all of the job's time in its best row, in which it fits."""

    data = SHARING | STEPS
    priced = {}
    linear = False

    def value(self, it: Record, plan: Record) -> Number:
        return min(_time(left, got) for left, got in zip(it.steps, self.received(it, plan), strict=True))

    def search(self, it: Record) -> Number:
        return min(
            (_time(left, best) for left, best in zip(it.steps, self.fastest(it), strict=True)), default=Fraction(0)
        )


class FinishTimeFairness(Sharing):
    """Ratio R: job m must make ``steps / (R isolated time - elapsed)`` steps/s.

    For any y[m] >= 0 the inequality with ``w = sum_m y[m] throughput`` bounds what they make together, whatever R.  So
    R is beyond reach where ``sum_m y[m] steps[m] / (R isolated time[m] - elapsed[m])``, which falls in R, is more than
    that, or where R does not exceed some ``elapsed / isolated time``.  The bound is the greatest R, to twelve digits,
    for which this is so.
    """

    data = SHARING | STEPS | {"elapsed": "num+ n", "isolated_elapsed": "num+ n"}
    priced = Rising.priced

    def times(self, it: Record) -> list[Number]:
        """Time of each job in isolation, since its start."""
        return [
            past + wait if (wait := _time(left, speed)) != math.inf else math.inf
            for past, left, speed in zip(it.isolated_elapsed, it.steps, it.isolated, strict=True)
        ]

    def value(self, it: Record, plan: Record) -> Number:
        ratios: list[Number] = []
        for past, left, got, alone in zip(it.elapsed, it.steps, self.received(it, plan), self.times(it), strict=True):
            if alone in (0, math.inf):
                ratios.append(Fraction(0))
            else:
                wait = _time(left, got)
                ratios.append(math.inf if wait == math.inf else (past + wait) / alone)
        return max(ratios)

    def proven(self, it: Record, prices: Record) -> Number:
        alone = self.times(it)
        compared = [job for job, time in enumerate(alone) if time not in (0, math.inf)]
        floor = max((it.elapsed[job] / alone[job] for job in compared), default=Fraction(0))
        y = [Fraction(0)] * len(it.steps)
        for job in compared:
            if it.steps[job]:
                y[job] = prices.levels[job]
        asking = [job for job, price in enumerate(y) if price]
        if not asking:
            return floor
        most = self.at_prices(it, self.weighed(it, y), prices)

        def beyond(ratio: Fraction) -> bool:
            """Return whether nobody reaches the ratio."""
            if any(ratio * alone[job] <= it.elapsed[job] for job in asking):
                return True
            asked = sum(y[job] * it.steps[job] / (ratio * alone[job] - it.elapsed[job]) for job in asking)
            return bool(asked > most)

        return _last_beyond(floor, beyond)

    def best(self, it: Record) -> Number:
        alone = self.times(it)
        compared = [job for job, time in enumerate(alone) if time not in (0, math.inf)]
        floor = max((it.elapsed[job] / alone[job] for job in compared), default=Fraction(0))
        asking = [job for job in compared if it.steps[job]]
        if not asking:
            return floor
        counter = Counter(FEW_STEPS)
        if not self.highest(it, [(job, Fraction(1), it.steps[job]) for job in asking]):
            return math.inf

        def beyond(ratio: Fraction) -> bool:
            """Return whether no allocation has the ratio."""
            if any(ratio * alone[job] <= it.elapsed[job] for job in asking):
                return True
            asked = [
                _short(left / (ratio * alone[job] - it.elapsed[job])) if job in asking else Fraction(0)
                for job, left in enumerate(it.steps)
            ]
            return self.greatest(it, {}, asked, counter) == -math.inf

        return _last_beyond(floor, beyond)


def _last_beyond(floor: Fraction, beyond: Callable[[Fraction], bool]) -> Number:
    """Find the greatest ratio from ``floor`` on that is beyond reach, to twelve digits."""
    low, high = floor, max(Fraction(1), 2 * floor)
    while beyond(high):
        low, high = high, 2 * high
        if high > 10**18:
            return math.inf
    # Numbers of few digits, so that fractions stay short; each is tested itself.
    while high - low > high / 10**12:
        middle = _short((low + high) / 2)
        if not low < middle < high:
            break
        low, high = (middle, high) if beyond(middle) else (low, middle)
    return low


def _short(number: Fraction) -> Fraction:
    """Return a fraction nearby with a denominator that is a power of two."""
    return Fraction(float(number))


class PricedSharing(Sharing):
    """Policies with service objectives: throughput(m) >= steps / slo for the jobs that have one and steps left."""

    sense = "max"
    data = SHARING | PRICED
    priced = Sharing.priced | {"slos": "num+ n"}

    def required(self, it: Record) -> list[Fraction]:
        """Throughput that each job's SLO asks for; 0 without one."""
        return [left / slo if slo != math.inf else Fraction(0) for left, slo in zip(it.steps, it.slos, strict=True)]

    def broken(self, it: Record, plan: Record, rules: Rules) -> None:
        super().broken(it, plan, rules)
        for left, slo, got in zip(it.steps, it.slos, self.received(it, plan), strict=True):
            if left and slo != math.inf:
                time = _time(left, got)
                if time == math.inf:
                    rules.require("slo", False)
                else:
                    rules.at_most("slo", time, slo)


class ThroughputPerDollar(PricedSharing):
    """The inequality with w the throughput over the type's price, plus u[m] throughput(m) for SLOs at prices u >= 0.

    Every plan that meets them has ``sum u[m] throughput(m) >= sum u[m] asked[m]``, which comes off the right side.
    """

    def value(self, it: Record, plan: Record) -> Number:
        return sum(
            (speed * plan.time_fractions[row][kind] / it.costs[kind] for row, kind, speed in self._all(it)),
            Fraction(0),
        )

    def _all(self, it: Record) -> Iterator[tuple[int, int, Fraction]]:
        n = len(it.scale_factors)
        for row, members in enumerate(it.members):
            for kind in range(len(it.costs)):
                yield (
                    row,
                    kind,
                    it.throughputs[row][kind] if len(members) == 1 else sum(it.pair_throughputs[row - n][kind]),
                )

    def best(self, it: Record) -> Number:
        worth: Worth = {}
        for row, kind, _, speed in self.gives(it):
            worth[row, kind] = worth.get((row, kind), Fraction(0)) + speed / it.costs[kind]
        return self.greatest(it, worth, self.required(it))

    def proven(self, it: Record, prices: Record) -> Number:
        worth = self.weighed(it, prices.slos)
        for row, kind, _, speed in self.gives(it):
            worth[row, kind] = worth.get((row, kind), Fraction(0)) + speed / it.costs[kind]
        paid = sum(price * asked for price, asked in zip(prices.slos, self.required(it), strict=True))
        return self.at_prices(it, worth, prices) - Fraction(paid)


class Cost(PricedSharing):
    """A ratio of sums.  With prices a, b of limits and u of SLOs, all at least 0, let

        ratio = greatest (throughput[r, j] + sum u[m] throughput[m] - sum a[m]
                          - scale_factor_r b[pool of j]) / price[r, j]

    over rows and types that fit.  Then for every plan that meets the SLOs

        throughput(X)  <=  ratio * spending(X) + sum a + sum num_workers b - sum u[m] asked[m],

    and if the last three terms are at most 0 together, no plan's ratio is greater.  Where they are not, by rounding,
    a and b are scaled down until they are.
    """

    data = SHARING | PRICED | {"paid": "word"}
    priced = Sharing.priced | {"slos": "num+ n", "jobs": "num+ n"}

    def _price(self, it: Record, row: int, kind: int) -> Fraction:
        return Fraction(it.costs[kind] * (it.width[row] if it.paid == "workers" else 1))

    def value(self, it: Record, plan: Record) -> Number:
        spent = sum(
            (
                self._price(it, row, kind) * part
                for row, parts in enumerate(plan.time_fractions)
                for kind, part in enumerate(parts)
            ),
            Fraction(0),
        )
        return sum(self.received(it, plan), Fraction(0)) / spent if spent > 0 else Fraction(0)

    def proven(self, it: Record, prices: Record) -> Number:
        owed = sum(price * asked for price, asked in zip(prices.slos, self.required(it), strict=True))
        limits = sum(prices.jobs) + sum(n * price for n, price in zip(it.num_workers, prices.pools, strict=True))
        scale = owed / limits if limits > owed else Fraction(1)
        worth = self.weighed(it, [Fraction(1 + price) for price in prices.slos])
        return max(
            (
                (
                    worth.get((row, kind), 0)
                    - scale * sum(prices.jobs[job] for job in members)
                    - scale * it.width[row] * prices.pools[it.pools[kind]]
                )
                / self._price(it, row, kind)
                for row, members in enumerate(it.members)
                for kind, fits in enumerate(it.fits[row])
                if fits
            ),
            default=Fraction(0),
        )

    def best(self, it: Record) -> Number:
        """Solve a ratio's linear program, in allocations over what they spend, and one over what is spent."""
        asked = self.required(it)
        places, speeds, limits = self.program(it, asked)
        price = [self._price(it, row, kind) for row, kind in places]
        rows: list[Limit] = [([*a, -b], 0) for a, b in limits]
        rows += [([*price, 0], 1), ([*(-p for p in price), 0], -1)]
        found = -least([*(-sum(column) for column in zip(*speeds, strict=True)), 0], rows)
        # Who spends nothing is worth nothing.
        return found if any(asked) else max(Fraction(0), found)


class RoundAssignment(Problem):
    """Search over rows for one job after the other.

    At any prices of the workers, the jobs that are left can add what the workers left cost, and for each job the most
    that a row with it is worth less its price; a row is counted with one of its jobs.
    """

    sense = "max"
    data = {
        "scale_factors": "int1 n",
        "num_workers": "int+ p",
        "pairs": "int+ q 2",
        "priorities": "num+ n+q k",
        "pools": "int+ k",
        "eligible": "bool~ n+q k",
    }
    decisions = {"chosen": "bool n+q k"}

    def check(self, it: Record) -> None:
        _sound_pairs(it)

    def value(self, it: Record, plan: Record) -> Number:
        return sum(
            (p for ps, cs in zip(it.priorities, plan.chosen, strict=True) for p, c in zip(ps, cs, strict=True) if c),
            Fraction(0),
        )

    def broken(self, it: Record, plan: Record, rules: Rules) -> None:
        n = len(it.scale_factors)
        runs, used = [0] * n, [0] * len(it.num_workers)
        for row, kinds in enumerate(plan.chosen):
            members = [row] if row < n else it.pairs[row - n]
            for kind, on in enumerate(kinds):
                rules.at_most("eligible", int(on), int(it.eligible[row][kind]))
                if on:
                    used[it.pools[kind]] += it.scale_factors[members[0]]
                    for job in members:
                        runs[job] += 1
        for count in runs:
            rules.at_most("once", count, 1)
        for count, most in zip(used, it.num_workers, strict=True):
            rules.at_most("pool_workers", count, most)

    def search(self, it: Record) -> Number:
        n, k, counter = len(it.scale_factors), len(it.pools), Counter()
        flat, unit = whole(
            p if may else Fraction(0)
            for row, allowed in zip(it.priorities, it.eligible, strict=True)
            for p, may in zip(row, allowed, strict=True)
        )
        # Ways to run a row: of the types of a pool the best.
        best_on = [
            [
                max((flat[row * k + kind] for kind in range(k) if it.pools[kind] == pool), default=0)
                for pool in range(len(it.num_workers))
            ]
            for row in range(n + len(it.pairs))
        ]
        # Jobs that can be worth much come first; a pair is chosen with the one of its jobs that comes first.
        order = sorted(range(n), key=lambda job: -max(best_on[job]))
        place = {job: at for at, job in enumerate(order)}
        ways: list[list[tuple[Any, ...]]] = [[] for _ in range(n)]
        for row, gains in enumerate(best_on):
            members = (row,) if row < n else it.pairs[row - n]
            first, last = min(place[job] for job in members), max(place[job] for job in members)
            width = it.scale_factors[members[0]]
            for pool, gain in enumerate(gains):
                if gain > 0 and width <= it.num_workers[pool]:
                    amounts = tuple(width * (p == pool) for p in range(len(it.num_workers)))
                    ways[first].append((gain, amounts, 0 if first == last else 1 << last))
        room = tuple(min(count, sum(it.scale_factors)) for count in it.num_workers)
        idle = (0, (0,) * len(room), 0)
        groups = [[idle[:2], *((gain, amounts) for gain, amounts, _ in mine)] for mine in ways]
        prices = [max(0, int(price)) for price in good_prices(groups, room)]

        def reduced(way: tuple[Any, ...]) -> int:
            return int(way[0] - sum(p * a for p, a in zip(prices, way[1], strict=True)))

        # What the jobs from each on can add at most, at prices of the workers left.
        rest = [0] * (n + 1)
        for at in reversed(range(n)):
            rest[at] = rest[at + 1] + max(map(reduced, groups[at]))
        ways = [sorted([idle, *mine], key=reduced, reverse=True) for mine in ways]
        best = [0]

        def go(at: int, worth: int, free: tuple[int, ...], taken: int) -> None:
            counter.step()
            if at == n:
                best[0] = max(best[0], worth)
                return
            left = worth + sum(p * f for p, f in zip(prices, free, strict=True))
            for way in ways[at]:
                if left + reduced(way) + rest[at + 1] <= best[0]:
                    return
                gain, amounts, partner = way
                if (taken >> at & 1 or taken & partner) and gain:
                    continue
                after = tuple(f - a for f, a in zip(free, amounts, strict=True))
                if min(after) >= 0:
                    go(at + 1, worth + gain, after, taken | partner)

        go(0, 0, room, 0)
        return Fraction(best[0], unit)


PROBLEMS = {
    "gavel.cost": Cost(),
    "gavel.fifo": Fifo(),
    "gavel.finish_time_fairness": FinishTimeFairness(),
    "gavel.hierarchical_fairness": HierarchicalFairness(),
    "gavel.makespan": Makespan(),
    "gavel.max_min_fairness": MaxMinFairness(),
    "gavel.round_assignment": RoundAssignment(),
    "gavel.shortest_job_first": ShortestJobFirst(),
    "gavel.throughput_per_dollar": ThroughputPerDollar(),
    "gavel.total_throughput": TotalThroughput(),
}
