"""AFS's four problems: elastic sharing over time, the next GPU, regulated shares, and machines for them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, combinations_with_replacement, pairwise, permutations, product
from typing import Any, TypeAlias, TypeVar

from .common import FEW_STEPS, TOLERANCE, Counter, Group, Malformed, Number, Problem, Record, Rules, TooLarge, need
from .linear import least

Left: TypeAlias = list[tuple[int, Fraction]]
"""Jobs, and the work that they have left."""

LOWERED = 1e-9
"""By how much bounds that are floats are lowered before they end a branch of a search; their error is some 1e-15."""

ORDER_STEPS = 40_000_000
"""Steps of a search of orders, a GPU of a job each: some ten seconds."""

Exact = TypeVar("Exact", float, Fraction)


def _power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def _regulated(machines: int, gpus: int) -> list[int]:
    """List all regulated shares: 0, powers of two below a machine's GPUs, and multiples of them."""
    return [0, *(1 << bit for bit in range(gpus.bit_length() - 1)), *(gpus * count for count in range(1, machines + 1))]


class ElasticSharing(Problem):
    """Schedules that change at arrivals and completions alone: search over all shares at each of these times.

    A job that is left needs at least its work at its greatest throughput; and as a GPU does at most so much of a job's
    work in a second, no jobs complete sooner than those of the least GPU time one after the other on all GPUs.  Of two
    jobs, with nobody to come, more throughput of either makes neither later, so no GPU that would add some is idle.
    Where jobs arrive over time, no jobs complete sooner than in the best order of those that are there.

    Of too many shares, and of those that change at any time, the bound is the least of all orders in which jobs can
    complete (:meth:`by_orders`), where the jobs arrive together.
    """

    data = {
        "num_gpus": "int1",
        "work": "num+ n",
        "throughputs": "num+ n m",
        "arrivals": "num+ n",
        "reallocation": "word",
        "requests": "int+ n",
        "quantum": "num>",
        "attained": "num+ n",
        "held": "int+ n",
    }
    decisions = {"shares": "int t n", "times": "num+ t+1"}

    def check(self, it: Record) -> None:
        need(it.reallocation in ("at_completions", "any_time"), "reallocation: at_completions or any_time")
        for row in it.throughputs:
            need(len(row) == it.num_gpus + 1, "throughputs must have a column for 0 to num_gpus")
            need(row[0] == 0 and all(a <= b for a, b in pairwise(row)), "throughputs must be 0 at 0 and never fall")

    def plan(self, it: Record, data: Any) -> Record:
        made = super().plan(it, data)
        if any(a >= b for a, b in pairwise(made.times)):
            raise Malformed("plan: times must increase")
        return made

    def _outside(self, it: Record, plan: Record) -> bool:
        return any(not 0 <= share <= it.num_gpus for row in plan.shares for share in row)

    def _followed(
        self, it: Record, plan: Record, job: int
    ) -> tuple[list[Fraction], list[Fraction], list[Fraction], Fraction]:
        """Work done by the end of each interval, by how much it may be missed there, and by how much in the end."""
        rates = [it.throughputs[job][row[job]] for row in plan.shares]
        done, slack, total, changes = [], [], Fraction(0), 2
        missed = TOLERANCE * it.work[job]
        for before, rate, (begin, end) in zip([*rates[:1], *rates], rates, pairwise(plan.times), strict=False):
            total += rate * (end - begin)
            # Times have a last digit, too, which counts whenever the job's speed changes; not that of later times.
            changes += rate != before
            done.append(total)
            slack.append(TOLERANCE * it.work[job] + changes * it.throughputs[job][-1] * Fraction(math.ulp(end)))
            if rate:
                missed = slack[-1]
        return rates, done, slack, missed

    def completions(self, it: Record, plan: Record) -> list[Number]:
        """Return when each job's work is done; what is missing within the tolerance is done at the last speed."""
        found = []
        for job, work in enumerate(it.work):
            if not work:
                found.append(it.arrivals[job])
                continue
            rates, done, slack, _ = self._followed(it, plan, job)
            end, before = math.inf, Fraction(0)
            for rate, total, may, begin in zip(rates, done, slack, plan.times[:-1], strict=True):
                if rate and total >= work - may:
                    end = begin + (work - before) / rate
                    break
                before = total
            found.append(end)
        return found

    def value(self, it: Record, plan: Record) -> Number:
        if self._outside(it, plan):
            raise Malformed("plan: a share that there is not")
        ends = self.completions(it, plan)
        if math.inf in ends:
            return math.inf
        return sum((end - begin for end, begin in zip(ends, it.arrivals, strict=True)), Fraction(0)) / len(ends)

    def broken(self, it: Record, plan: Record, rules: Rules) -> None:
        if self._outside(it, plan):
            rules.require("share_range", False)
            return
        for row, begin in zip(plan.shares, plan.times[:-1], strict=True):
            rules.at_most("gpus", sum(row), it.num_gpus)
            rules.require(
                "arrival", all(arrival <= begin for arrival, share in zip(it.arrivals, row, strict=True) if share)
            )
        for job, work in enumerate(it.work):
            _, done, _, missed = self._followed(it, plan, job)
            away = abs((done[-1] if done else Fraction(0)) - work)
            if away > missed:
                rules.broken.append("work_done")
            elif away:
                rules.missed.append("work_done")
        if it.reallocation == "at_completions" and it.work:
            self._events(it, plan, rules)

    def _events(self, it: Record, plan: Record, rules: Rules) -> None:
        """Shares change where a job arrives or completes."""
        events = [*it.arrivals, *(end for end in self.completions(it, plan) if end != math.inf)]
        idle = [0] * len(it.work)
        rows = [idle, *plan.shares, idle]
        first = min(plan.times[0], *it.arrivals)
        for now, (before, after) in zip(plan.times, pairwise(rows), strict=True):
            if before != after:
                away = min(abs(event - now) for event in events)
                slack = TOLERANCE * (now - first) + len(plan.times) * Fraction(math.ulp(now))
                if away > slack:
                    rules.broken.append("reallocation")
                elif away:
                    rules.missed.append("reallocation")

    def search(self, it: Record) -> Number:
        try:
            return self.enumerated(it)
        except TooLarge:
            return self.by_orders(it)

    def by_orders(self, it: Record) -> Number:
        """Return the least that prices of work prove of any order in which jobs complete.

        Let H_j(s) be the part of job j that is done in a second on s GPUs, or the least concave curve above that.  From
        the last job of an order to the first, with d_1 <= ... <= d_M what single GPUs are worth to the jobs U that
        complete later, at their prices, and D(s) = d_1 + ... + d_s, the price of a job's work is

            y_j  =  min_s (1 + D(s)) / H_j(s),

        so that all GPUs are worth as much as jobs are left, whoever is left, and the completions of a schedule of this
        order add up to no less than the prices do.  Nobody's price falls with another job in U.  With R the jobs before
        U, at most |U| - D(s) of U's worth is done while R has s GPUs: all completions add up to no less than the prices
        of U, and ``n + D(s)`` in each second in which n of R are left.  That is no less than c_n s, with c_n the least
        of (n + D(s)) / s, and R takes no less GPU time than its jobs' least; the smallest complete first.

        Orders are told apart in ordinary numbers, whose error is far below the tolerance; the prices of the best order
        are fractions.  The judge lets work be missed by the tolerance, which is taken off: a schedule that misses some
        completes that much less of each job no later.
        """
        jobs = [job for job, work in enumerate(it.work) if work]
        if len({it.arrivals[job] for job in jobs}) > 1:
            raise TooLarge
        exact = {job: [gain / it.work[job] for gain in _concave_gains(it.throughputs[job])] for job in jobs}
        # In a unit of time in which no job takes more than 1 on all GPUs, numbers that are too small to count do not.
        unit = max((1 / sum(each) for each in exact.values()), default=Fraction(1))
        try:
            gains = {job: [float(unit * gain) for gain in exact[job]] for job in jobs}
        except OverflowError:
            raise TooLarge from None
        _, order = _least_order(gains, it.num_gpus, Counter(ORDER_STEPS))
        total, worth = Fraction(0), [Fraction(0)] * it.num_gpus
        for job in reversed(order):
            price = _price(worth, exact[job])
            total, worth = total + price, _worth(worth, exact[job], price)
        # Once for the work that may be missed, and once for the rounding of what was not looked at.
        return total * (1 - TOLERANCE) ** 2 / len(it.work)

    def enumerated(self, it: Record) -> Number:
        """Return the least of all shares at each event; TooLarge where there are too many."""
        if any(work and not row[-1] for work, row in zip(it.work, it.throughputs, strict=True)):
            return math.inf
        jobs = [job for job, work in enumerate(it.work) if work]
        if it.reallocation != "at_completions" and len(jobs) > 1:
            # Shares may change at any time, of which there are too many to look at.
            raise TooLarge
        counter = Counter(100_000)
        best: list[Number] = [math.inf]
        # Shares at which a job's throughput rises: others do no more on more GPUs.
        useful = [[s for s in range(it.num_gpus + 1) if not s or row[s] > row[s - 1]] for row in it.throughputs]
        # What need not be looked at is told apart in ordinary numbers, lowered by far more than their rounding.
        speeds = [[float(rate) for rate in row] for row in it.throughputs]
        begins = [float(arrival) for arrival in it.arrivals]
        area = [min((s / row[s] for s in range(1, it.num_gpus + 1) if row[s]), default=0.0) for row in speeds]

        def least(now: float, left: Iterable[tuple[int, float]]) -> float:
            """Bound below what the completions of what is left add up to."""
            alone = sum(max(now, begins[job]) + work / speeds[job][-1] for job, work in left)
            packed = done = 0.0
            for size in sorted(area[job] * work for job, work in left):
                done += size
                packed += now + done / it.num_gpus
            return max(alone, packed) * (1 - LOWERED)

        over_time = len({it.arrivals[job] for job in jobs}) > 1
        curves = [[float(gain) for gain in _concave_gains(row)] for row in it.throughputs] if over_time else []
        in_orders = Counter(ORDER_STEPS // 8)

        def least_in_order(now: float, left: Mapping[int, float]) -> float:
            """Bound the same by the orders of jobs that are there, and of all as if they were."""

            def ends(some: Iterable[int]) -> float:
                gains = {job: [gain / left[job] for gain in curves[job]] for job in some}
                return len(gains) * now + _least_order(gains, it.num_gpus, in_orders)[0]

            coming = [job for job in left if begins[job] > now]
            apart = ends(job for job in left if begins[job] <= now)
            apart += sum(begins[job] + left[job] / speeds[job][-1] for job in coming)
            return (max(apart, ends(left)) if coming else apart) * (1 - LOWERED)

        def vectors(active: list[int], free: int) -> Iterator[tuple[int, ...]]:
            """Shares of the active jobs, in all ways."""
            if not active:
                yield ()
                return
            for share in useful[active[0]]:
                if share > free:
                    break
                for rest in vectors(active[1:], free - share):
                    yield share, *rest

        def followed(
            now: Fraction, left: Left, names: list[int], shares: tuple[int, ...], coming: Fraction | None
        ) -> tuple[Fraction, Left, Fraction]:
            """Return when the next event is, what is left then, and the completions by then, added up; exactly."""
            given = dict(zip(names, shares, strict=True))
            spans = [
                work / it.throughputs[job][given[job]]
                for job, work in left
                if given.get(job) and it.throughputs[job][given[job]]
            ]
            until = min([now + span for span in spans] + ([] if coming is None else [coming]))
            after, ended = [], 0
            for job, work in left:
                rest = work - it.throughputs[job][given.get(job, 0)] * (until - now)
                if rest > 0:
                    after.append((job, rest))
                else:
                    ended += 1
            return until, after, ended * until

        def go(now: Fraction, left: Left, spent: Fraction) -> None:
            """``left`` are (job, work left); ``spent`` the completions so far, added up."""
            if not left:
                best[0] = min(best[0], spent)
                return
            # Shares may change at the arrival of a job without work, too.
            coming = min((arrival for arrival in it.arrivals if arrival > now), default=None)
            names = [job for job, _ in left if it.arrivals[job] <= now]
            if not names:
                assert coming is not None
                go(coming, left, spent)
                return
            clock, works, paid = float(now), {job: float(work) for job, work in left}, float(spent)
            tried = []
            for shares in vectors(names, it.num_gpus):
                counter.step()
                free = it.num_gpus - sum(shares)
                rates = [speeds[job][share] for job, share in zip(names, shares, strict=True)]
                if coming is None:
                    if not any(rates):
                        continue
                    if len(names) <= 2 and any(
                        speeds[job][share + free] > rate for job, share, rate in zip(names, shares, rates, strict=True)
                    ):
                        continue
                until = clock + min(
                    (works[job] / rate for job, rate in zip(names, rates, strict=True) if rate), default=math.inf
                )
                if coming is not None:
                    until = min(until, float(coming))
                after, ended = dict(works), 0.0
                for job, rate in zip(names, rates, strict=True):
                    after[job] -= rate * (until - clock)
                    if after[job] <= LOWERED * works[job]:
                        ended += until
                        del after[job]
                paid_then = paid + ended * (1 - LOWERED)
                lower = paid_then + least(until, after.items())
                if over_time and lower < best[0]:
                    lower = max(lower, paid_then + least_in_order(until, after))
                tried.append((lower, shares))
            for lower, shares in sorted(tried):
                if lower >= best[0]:
                    break
                then, rest, completed = followed(now, left, names, shares, coming)
                go(then, rest, spent + completed)

        go(min(it.arrivals, default=Fraction(0)), [(job, it.work[job]) for job in jobs], Fraction(0))
        total = best[0] - sum((it.arrivals[job] for job in jobs), Fraction(0))
        return Fraction(total) / len(it.work)

    def best(self, it: Record) -> Number:
        """Shares that change at any time, too: the best of all orders in which jobs can complete, among arrivals."""
        jobs = [job for job, work in enumerate(it.work) if work]
        if it.reallocation == "at_completions" or len(jobs) < 2:
            return self.enumerated(it)
        counter = Counter(FEW_STEPS)
        begins = sorted({it.arrivals[job] for job in jobs})
        totals = [
            self.in_order(it, order, counter, complete)
            for order in permutations(jobs)
            for complete in combinations_with_replacement(range(len(jobs) + 1), len(begins) - 1)
            # Who is complete when an interval ends has arrived by then.
            if all(it.arrivals[job] <= begins[i] for i, count in enumerate(complete) for job in order[:count])
        ]
        later = sum((it.arrivals[job] - begins[0] for job in jobs), Fraction(0))
        return (min(totals) - later) / len(it.work)

    def in_order(self, it: Record, order: Sequence[int], counter: Counter, complete: Sequence[int] = ()) -> Number:
        """Return the least sum of completions, from the first arrival on, in which jobs complete in an order.

        It is a linear program over the time that is spent in each combination of shares, with a row for each job, and
        for each interval between arrivals but the last, by whose end as many jobs are complete as ``complete`` says.
        """
        begins = sorted({it.arrivals[job] for job in order})
        waiting: dict[tuple[int, tuple[Fraction, ...]], int] = {}
        for i, (first, last) in enumerate(zip([0, *complete], [*complete, len(order) - 1], strict=True)):
            for done in range(first, last + 1):
                there = [job for job in order[done:] if it.arrivals[job] <= begins[i]]
                # Jobs that are still to come are not complete, either.
                count = len(order) - done
                counter.step((it.num_gpus + 1) ** len(there))
                for shares in product(range(it.num_gpus + 1), repeat=len(there)):
                    held = dict(zip(there, shares, strict=True))
                    speeds = tuple(it.throughputs[job][held.get(job, 0)] for job in order)
                    if sum(shares) <= it.num_gpus and (any(speeds) or i < len(complete)):
                        waiting[i, speeds] = min(waiting.get((i, speeds), count), count)
        limits = [([-speeds[at] for _, speeds in waiting], -it.work[job]) for at, job in enumerate(order)]
        for i, (begin, end) in enumerate(pairwise(begins)):
            inside = [Fraction(i == one) for one, _ in waiting]
            limits += [(inside, end - begin), ([-part for part in inside], begin - end)]
        return least(list(waiting.values()), limits, counter)


def _concave_gains(curve: Sequence[Fraction]) -> list[Fraction]:
    """Return what each GPU adds on the least concave curve above one, falling."""
    steps: list[tuple[int, Fraction]] = []
    for gain in (after - before for before, after in pairwise(curve)):
        width, rise = 1, gain
        while steps and rise * steps[-1][0] >= steps[-1][1] * width:
            width, rise = width + steps[-1][0], rise + steps.pop()[1]
        steps.append((width, rise))
    return [rise / width for width, rise in steps for _ in range(width)]


def _least_order(
    gains: Mapping[int, Sequence[float]], num_gpus: int, counter: Counter
) -> tuple[float, tuple[int, ...]]:
    """Return the order of completions whose prices prove the least, and their sum, by :meth:`by_orders`."""
    needs = {job: min(s / done for s, done in enumerate(accumulate(each), 1)) for job, each in gains.items()}
    best: tuple[float, tuple[int, ...]] = math.inf, ()

    def go(after: tuple[int, ...], worth: list[float], total: float) -> None:
        """``after`` complete last, in this order, at prices that add up to ``total``."""
        nonlocal best
        left = [job for job in gains if job not in after]
        counter.step(len(worth) * max(1, len(left)))
        prices = [(_price(worth, gains[job]), job) for job in left]
        lost = list(accumulate(worth))
        rates = (min((n + less) / s for s, less in enumerate(lost, 1)) for n in range(len(left), 0, -1))
        packed = sum(rate * need for rate, need in zip(rates, sorted(needs[job] for job in left), strict=True))
        if total + max(packed, sum(price for price, _ in prices)) >= best[0] * (1 - LOWERED / 10):
            return
        if not left:
            best = total, after
        for price, job in sorted(prices, reverse=True):
            go((job, *after), _worth(worth, gains[job], price), total + price)

    go((), [0.0] * num_gpus, 0.0)
    return best


def _price(worth: Sequence[Exact], gains: Sequence[Exact]) -> Exact:
    """Return the price of a job that completes before those to whom single GPUs are ``worth`` so much, rising."""
    return min((1 + lost) / done for lost, done in zip(accumulate(worth), accumulate(gains), strict=True))


def _worth(worth: Sequence[Exact], gains: Sequence[Exact], price: Exact) -> list[Exact]:
    """Return what single GPUs are worth to these jobs and another one of that price, rising."""
    both: list[Exact] = [gain * price for gain in reversed(gains)]
    both += worth
    both.sort()
    return both[len(gains) :]


class TwoJob(Problem):
    """The job that receives the free GPU: search over both."""

    data = {"work": "num+ 2", "throughputs": "num+ 2 2", "alone": "num+ 2"}
    decisions = {"receiver": "int"}

    def check(self, it: Record) -> None:
        need(all(now <= then for now, then in it.throughputs), "throughputs must not fall with a GPU more")

    def _times(self, it: Record, receiver: int) -> list[Number]:
        if receiver not in (0, 1):
            raise Malformed("plan: receiver must be 0 or 1")
        rates = [it.throughputs[job][job == receiver] for job in (0, 1)]
        ends = [self._time(work, rate) for work, rate in zip(it.work, rates, strict=True)]
        if ends[0] == ends[1]:
            return ends
        late = 0 if ends[1] < ends[0] else 1
        soon = ends[1 - late]
        left = it.work[late] - rates[late] * soon
        ends[late] = soon + self._time(left, it.alone[late] or it.throughputs[late][1])
        return ends

    @staticmethod
    def _time(work: Number, rate: Fraction) -> Number:
        if not work:
            return Fraction(0)
        return work / rate if rate else math.inf

    def value(self, it: Record, plan: Record) -> Number:
        return sum(self._times(it, plan.receiver)) / 2

    def broken(self, it: Record, plan: Record, rules: Rules) -> None:
        rules.require("receiver_exists", plan.receiver in (0, 1))
        if plan.receiver in (0, 1):
            rules.require("completes", math.inf not in self._times(it, plan.receiver))

    def search(self, it: Record) -> Number:
        return min(sum(self._times(it, receiver)) / 2 for receiver in (0, 1))


class NetworkPacking(Problem):
    """Regulated shares, job by job: the least difference for each sum of shares so far."""

    data = {"shares": "int+ n", "num_machines": "int1", "gpus_per_machine": "int1", "floor_guarantee": "bool"}
    decisions = {"regulated": "int n"}

    def check(self, it: Record) -> None:
        need(_power_of_two(it.gpus_per_machine), "gpus_per_machine must be a power of two")
        it.all = it.num_machines * it.gpus_per_machine
        need(not it.shares or sum(it.shares) >= it.all, "shares must add up to all GPUs")

    def value(self, it: Record, plan: Record) -> Number:
        return Fraction(sum(abs(r - s) for r, s in zip(plan.regulated, it.shares, strict=True)))

    def _floor(self, it: Record, share: int) -> int:
        """Return the greatest regulated share up to a share."""
        if share < it.gpus_per_machine:
            return int(1 << share.bit_length() - 1) if share else 0
        return int(min(it.num_machines, share // it.gpus_per_machine) * it.gpus_per_machine)

    def broken(self, it: Record, plan: Record, rules: Rules) -> None:
        for share, wanted in zip(plan.regulated, it.shares, strict=True):
            small = share == 0 or (_power_of_two(share) and share < it.gpus_per_machine)
            large = 0 < share <= it.all and share % it.gpus_per_machine == 0
            rules.require("regulated", small or large)
            rules.require("floor", not it.floor_guarantee or share >= self._floor(it, wanted))
        rules.require("total", sum(plan.regulated) == sum(it.shares))
        rules.require("gpus", sum(plan.regulated) <= it.all)

    def search(self, it: Record) -> Number:
        total = sum(it.shares)
        if total > it.all:
            return math.inf
        counter, options = Counter(2_000_000), _regulated(it.num_machines, it.gpus_per_machine)
        cost = {0: 0}
        for share in it.shares:
            least = self._floor(it, share) if it.floor_guarantee else 0
            mine = [one for one in options if one >= least]
            counter.step(len(mine) * len(cost))
            after: dict[int, int] = {}
            for used, so_far in cost.items():
                for one in mine:
                    if used + one > total:
                        break
                    if so_far + abs(one - share) < after.get(used + one, math.inf):
                        after[used + one] = so_far + abs(one - share)
            cost = after
        return Fraction(cost[total]) if total in cost else math.inf


class GpuPlacement(Problem):
    """Search over who stays where.

    A share of a power of two below a machine's GPUs goes to one machine, a multiple of them to whole machines.  What
    keeps no GPU fits whenever there are machines enough: which of the free ones does not matter, and neither does
    where among machines smaller powers of two go.  So only where jobs keep GPUs is searched.
    """

    sense = "max"
    data = {"regulated": "int+ n", "num_machines": "int1", "gpus_per_machine": "int1", "previous": "int+ n m"}
    decisions = {"gpus": "int n m"}

    def check(self, it: Record) -> None:
        size = it.gpus_per_machine
        need(_power_of_two(size), "gpus_per_machine must be a power of two")
        need(all(r % size == 0 or (_power_of_two(r) and r < size) for r in it.regulated), "regulated shares must be so")
        need(all(len(row) == it.num_machines for row in it.previous), "previous must have a column for each machine")
        need(all(sum(column) <= size for column in zip(*it.previous, strict=True)), "previous must fit the machines")
        it.all = it.num_machines * size

    def value(self, it: Record, plan: Record) -> Number:
        kept = [sum(map(min, old, new)) for old, new in zip(it.previous, plan.gpus, strict=True)]
        return Fraction(sum(gpus > 0 for gpus in kept)) + Fraction(sum(kept), 1 + it.all)

    def broken(self, it: Record, plan: Record, rules: Rules) -> None:
        spanning = []
        for row, share in zip(plan.gpus, it.regulated, strict=True):
            hosts = [machine for machine, gpus in enumerate(row) if gpus > 0]
            rules.require("nonnegative", min(row) >= 0)
            rules.require("share", sum(row) == share)
            rules.require("fewest_machines", len(hosts) <= -(-share // it.gpus_per_machine))
            if len(hosts) > 1:
                spanning += hosts
        rules.require("one_spanning_job", len(spanning) == len(set(spanning)))
        for column in zip(*plan.gpus, strict=True):
            rules.at_most("capacity", sum(column), it.gpus_per_machine)

    def search(self, it: Record) -> Number:
        size, counter = it.gpus_per_machine, Counter()
        if sum(it.regulated) > it.all:
            return -math.inf
        unit = 1 + it.all
        # Each job's ways to keep something: (worth, machines).
        ways = []
        for share, row in zip(it.regulated, it.previous, strict=True):
            held = [machine for machine, gpus in enumerate(row) if gpus]
            mine: Group = []
            if share < size:
                mine += [(unit + min(row[machine], share), (machine,)) for machine in held if share]
            else:
                counter.step(1 << len(held))
                for chosen in range(1, 1 << len(held)):
                    machines = tuple(machine for bit, machine in enumerate(held) if chosen >> bit & 1)
                    if len(machines) * size <= share:
                        mine.append((unit + sum(row[machine] for machine in machines), machines))
            ways.append(sorted(mine, reverse=True))
        order = sorted(range(len(ways)), key=lambda job: -it.regulated[job])
        rest = [0] * (len(order) + 1)
        for at in reversed(range(len(order))):
            rest[at] = rest[at + 1] + max((worth for worth, _ in ways[order[at]]), default=0)
        best = [-1]

        def fits(free: tuple[int, ...], owed: tuple[int, ...]) -> bool:
            """Return whether the jobs that keep nothing fit: whole machines first, then the largest powers of two."""
            empty = sum(f == size for f in free)
            large = sum(share for share in owed if share >= size) // size
            if large > empty:
                return False
            gone = 0
            room = []
            for f in free:
                if f == size and gone < large:
                    gone += 1
                else:
                    room.append(f)
            taken = 0
            for share in sorted((share for share in owed if 0 < share < size), reverse=True):
                taken += share
                if sum(f // share * share for f in room) < taken:
                    return False
            return True

        def go(at: int, worth: int, free: tuple[int, ...], owed: tuple[int, ...]) -> None:
            counter.step()
            if worth + rest[at] <= best[0] or not fits(free, owed):
                return
            if at == len(order):
                best[0] = worth
                return
            job = order[at]
            share = it.regulated[job]
            for gain, machines in ways[job]:
                block = min(share, size)
                if all(free[machine] >= block for machine in machines):
                    left = tuple(f - block * (machine in machines) for machine, f in enumerate(free))
                    left_over = share - block * len(machines)
                    go(at + 1, worth + gain, left, (*owed, left_over) if left_over else owed)
            go(at + 1, worth, free, (*owed, share) if share else owed)

        go(0, 0, (size,) * it.num_machines, ())
        return -math.inf if best[0] < 0 else Fraction(best[0], unit)


PROBLEMS = {
    "afs.elastic_sharing": ElasticSharing(),
    "afs.gpu_placement": GpuPlacement(),
    "afs.network_packing": NetworkPacking(),
    "afs.two_job": TwoJob(),
}
