"""ElasticFlow's five problems: GPUs in slots until deadlines, and blocks of GPUs.

Where jobs meet only in the GPUs of a slot, prices prove bounds.  Let c[t] >= 0 be the price of a GPU in slot t.  A job
that must do M iterations by its deadline pays at least ``least(job, prices)`` for them, whatever the others do: the
least sum over whole numbers x(t) of price times x(t) with ``sum T(x(t)) >= M``.  All jobs together hold at most G GPUs
in a slot.  So, with p[t] >= 0 the prices of the file,

    total GPU-slots               >=  sum of least(job, 1 + p)  -  G sum p,                          rounded up,
    jobs admitted                 <=  G sum p  +  sum over jobs of max(0, 1 - least(job, p)),        rounded down,
    sum of best-effort slots C_i  >=  sum of least(job, p), for best-effort ones least over C of
                                      C + least(job, p, by slot C),  -  G sum p,                     rounded up.

``least`` is exact by a table of the prices that can be paid where that is small, else the bound of its relaxation, in
which a slot's GPUs are any mix of whole ones.  Jobs may miss their iterations by the tolerance, so M is that much less.

Of best-effort jobs the plans may be divided, as often as one likes, by whether a job is done by the end of so many
slots or later; each part has prices of its own then, by which each C is one that the part allows, and the least of
their bounds is proven.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise, product
from typing import Any, TypeAlias

from .common import FEW_STEPS, TOLERANCE, Counter, Malformed, Number, Problem, Record, Rules, need, whole

DEADLINES = {"num_gpus": "int1", "iterations": "num+ n", "deadlines": "int1 n", "throughputs": "num+ n g"}

Slots: TypeAlias = tuple[int, ...]
"""GPUs in each slot."""

Slot: TypeAlias = list[tuple[Any, Any]]
"""What can be paid and done in a slot."""

MOST_PAID = 20_000
"""Entries of a table of what can be paid and done, beyond which the relaxation has to do."""


class DeadlineJobs(Problem):
    """The jobs with deadlines that all problems share but placement: their slots, and the rules of GPUs in slots."""

    data = DEADLINES
    decisions = {"gpus": "int n h"}
    priced = {"slots": "num+ h"}

    def check(self, it: Record) -> None:
        for row in it.throughputs:
            need(
                len(row) == it.num_gpus + 1 and row[0] == 0, "throughputs must have a column for 0 to num_gpus, 0 first"
            )
        it.horizon = max(it.deadlines, default=0)

    def lengths(self, it: Record) -> dict[str, int]:
        return {"h": it.horizon}

    def value(self, it: Record, plan: Record) -> Number:
        return Fraction(sum(map(sum, plan.gpus)))

    def broken(self, it: Record, plan: Record, rules: Rules) -> None:
        self.slots(it, plan.gpus, it.iterations, rules)

    def slots(self, it: Record, gpus: list[list[int]], required: Iterable[Fraction], rules: Rules) -> None:
        """Rules of GPUs that must do so many iterations."""
        for row, deadline, speeds, must in zip(gpus, it.deadlines, it.throughputs, required, strict=True):
            rules.require("gpus_nonnegative", min(row) >= 0)
            rules.require("after_deadline", max(row[deadline:], default=0) <= 0)
            done = sum((speeds[min(max(x, 0), it.num_gpus)] for x in row[:deadline]), Fraction(0))
            rules.at_most("work", must, done, size=must)
        for column in zip(*gpus, strict=True):
            rules.at_most("capacity", sum(column), it.num_gpus)

    # --- all plans of small instances --------------------------------------------------------

    def best(self, it: Record) -> Number:
        """Least cost of all ways to run the jobs: by the GPUs that are used in each slot, job by job."""
        counter = Counter(FEW_STEPS)
        costs: dict[tuple[Slots, bool], int] = {((0,) * it.horizon, False): 0}
        for job in range(len(it.iterations)):
            ways = [(run + (0,) * (it.horizon - len(run)), *more) for run, *more in self.ways(it, job, counter)]
            counter.step(len(costs) * len(ways))
            after: dict[tuple[Slots, bool], int] = {}
            for (used, idle), paid in costs.items():
                for run, cost, faster in ways:
                    total = tuple(map(sum, zip(used, run, strict=True)))
                    if max(total) <= it.num_gpus:
                        key = total, idle or faster
                        after[key] = min(after.get(key, paid + cost), paid + cost)
            costs = after
        kept = [cost for (used, idle), cost in costs.items() if not idle or used[0] == it.num_gpus]
        return Fraction(min(kept)) if kept else math.inf

    def ways(self, it: Record, job: int, counter: Counter) -> Iterator[tuple[Slots, int, bool]]:
        """Yield ``(run, cost, idle)``: a job's GPUs in each slot, what they cost, and whether none may idle beside."""
        for run in self.runs(it, job, it.deadlines[job], counter):
            yield run, sum(run), False

    def runs(self, it: Record, job: int, slots: int, counter: Counter, *, given: int = 0) -> Iterator[Slots]:
        """Yield the ways to do a job's iterations that take no GPU in vain, but for the first ``given`` slots."""
        speeds, must = it.throughputs[job], self.required(it, job)
        counter.step((it.num_gpus + 1) ** slots)
        for run in product(range(it.num_gpus + 1), repeat=slots):
            done = sum(speeds[x] for x in run)
            if done >= must and all(done - speeds[x] + speeds[fewer] < must for x in run[given:] for fewer in range(x)):
                yield run

    # --- what a job pays ---------------------------------------------------------------------

    def required(self, it: Record, job: int) -> Fraction:
        """Return the iterations that a job must do, less what it may miss."""
        return Fraction(it.iterations[job] * (1 - TOLERANCE))

    def least(
        self,
        it: Record,
        job: int,
        prices: Sequence[Fraction],
        allowed: Collection[int] | None = None,
        most: Number = math.inf,
    ) -> Number:
        """Least that a job pays for its iterations.

        Parameters
        ----------
        prices : list of Fraction
            Of a GPU in each slot that it may use; the first alone may be negative.
        allowed : collection of int, optional
            Numbers of GPUs that it may hold in the first slot; any by default.
        most : Fraction, optional
            What is not worth telling apart from more.
        """
        must, slots = self.required(it, job), self.paid(it, job, prices, allowed)
        exact = _least_whole(slots, must, most)
        return _least_mixed(slots, must) if exact is None else exact

    @staticmethod
    def paid(it: Record, job: int, prices: Sequence[Fraction], allowed: Collection[int] | None = None) -> list[Slot]:
        """Return what a job can pay and do in each slot."""
        speeds, every = it.throughputs[job], range(it.num_gpus + 1)
        held = (every if allowed is None or at else allowed for at in range(len(prices)))
        return [[(price * x, speeds[x]) for x in some] for price, some in zip(prices, held, strict=True)]


def _frontier(options: Iterable[tuple[Any, Any]]) -> Slot:
    """Pairs (paid, done) that no other beats, in rising order."""
    kept: Slot = []
    for paid, done in sorted(options, key=lambda one: (one[0], -one[1])):
        if not kept or done > kept[-1][1]:
            kept.append((paid, done))
    return kept


def _least_whole(slots: Sequence[Slot], must: Fraction, enough: Number) -> Number | None:
    """Least paid to have done ``must``, one option a slot; None where the table grows too long.

    What pays ``enough`` or more is left out, and infinite if nothing else is left.
    """
    prices, price = whole(paid for options in slots for paid, _ in options)
    works, _ = whole([must, *(done for options in slots for _, done in options)])
    left, at, tables = works[0], 0, []
    for options in slots:
        ends = at + len(options)
        tables.append(tuple(_frontier(zip(prices[at:ends], works[at + 1 : ends + 1], strict=True))))
        at = ends
    # What the slots from each on can do at most.
    most = [0]
    for table in reversed(tables):
        most.append(most[-1] + table[-1][1])
    most.reverse()
    limit = enough * price
    front, steps = [(0, 0)], 0
    for at, table in enumerate(tables):
        steps += len(front) * len(table)
        if steps > 10 * MOST_PAID:
            return None
        merged = heapq.merge(
            *([(paid + p, min(left, done + d)) for paid, done in front] for p, d in table),
            key=lambda one: (one[0], -one[1]),
        )
        front, reached = [], -1
        for paid, done in merged:
            if done > reached and done + most[at + 1] >= left and paid < limit:
                front.append((paid, done))
                reached = done
                if done == left:
                    break
        if len(front) > MOST_PAID:
            return None
    if not front or front[-1][1] < left:
        return math.inf
    return Fraction(front[-1][0], price)


def _least_mixed(slots: Sequence[Slot], must: Fraction) -> Number:
    """Do the same where a slot's options may be mixed: along the lower hulls, the cheapest work first."""
    paid, done, edges = Fraction(0), Fraction(0), []
    for options in slots:
        front = _frontier(options)
        hull: Slot = []
        for point in front:
            while len(hull) > 1 and (hull[-1][0] - hull[-2][0]) * (point[1] - hull[-1][1]) >= (
                point[0] - hull[-1][0]
            ) * (hull[-1][1] - hull[-2][1]):
                hull.pop()
            hull.append(point)
        paid += hull[0][0]
        done += hull[0][1]
        edges += [((b[0] - a[0]) / (b[1] - a[1]), b[1] - a[1]) for a, b in pairwise(hull)]
    for rate, work in sorted(edges):
        if done >= must:
            break
        part = min(work, must - done)
        paid += rate * part
        done += part
    return paid if done >= must else math.inf


class MinimumSatisfactoryShare(DeadlineJobs):
    """Fewest GPU-slots that meet all deadlines; the module has the bound."""

    def proven(self, it: Record, prices: Record) -> Number:
        total = -it.num_gpus * sum(prices.slots)
        for job, deadline in enumerate(it.deadlines):
            total += self.least(it, job, [1 + p for p in prices.slots[:deadline]])
        return total if total == math.inf else Fraction(math.ceil(total))


class Allocation(DeadlineJobs):
    """Fewest GPU-slots that meet all deadlines, where no GPU idles in slot 0 that would help.

    Either all GPUs are held in slot 0, whose price may then be negative, too; or every job there holds a number of GPUs
    beyond which one more does not help it, or all.  Each has prices of its own, and the lower of both bounds counts.
    """

    priced = {"full": "num h", "idle": "num+ h"}

    def gains(self, it: Record, job: int, held: int) -> bool:
        """Return whether one more GPU in slot 0 makes a job faster; differences that are rounding do not count."""
        speeds = it.throughputs[job]
        if not it.iterations[job] or held >= it.num_gpus:
            return False
        return bool(speeds[held + 1] - speeds[held] > TOLERANCE * max(speeds))

    def broken(self, it: Record, plan: Record, rules: Rules) -> None:
        super().broken(it, plan, rules)
        if it.iterations and sum(row[0] for row in plan.gpus) < it.num_gpus:
            for job, row in enumerate(plan.gpus):
                held = min(max(row[0], 0), it.num_gpus)
                rules.require("no_useful_idle_gpu", not self.gains(it, job, held))

    def ways(self, it: Record, job: int, counter: Counter) -> Iterator[tuple[Slots, int, bool]]:
        for run in self.runs(it, job, it.deadlines[job], counter, given=1):
            yield run, sum(run), self.gains(it, job, run[0])

    def proven(self, it: Record, prices: Record) -> Number:
        if any(price < 0 for price in prices.full[1:]):
            raise Malformed("prices: only that of slot 0 may be negative")
        full, idle = -it.num_gpus * sum(prices.full), -it.num_gpus * sum(prices.idle)
        # A hair more than the judge's rule, which compares numbers that are rounded.
        for job, deadline in enumerate(it.deadlines):
            full += self.least(it, job, [1 + p for p in prices.full[:deadline]])
            allowed = [x for x in range(it.num_gpus + 1) if not self.gains(it, job, x)]
            idle += self.least(it, job, [1 + p for p in prices.idle[:deadline]], allowed)
        lower = min(full, idle)
        return lower if lower == math.inf else Fraction(math.ceil(lower))


class Admission(DeadlineJobs):
    """Most jobs admitted; the module has the bound."""

    sense = "max"
    data = DEADLINES | {"arrival_order": "int+ a"}
    decisions = {"admitted": "bool n", "gpus": "int n h"}

    def check(self, it: Record) -> None:
        super().check(it)
        need(sorted(it.arrival_order) == list(range(len(it.iterations))), "arrival_order must have each job once")

    def value(self, it: Record, plan: Record) -> Number:
        return Fraction(sum(plan.admitted))

    def broken(self, it: Record, plan: Record, rules: Rules) -> None:
        self.slots(it, plan.gpus, [must * on for must, on in zip(it.iterations, plan.admitted, strict=True)], rules)
        for on, row in zip(plan.admitted, plan.gpus, strict=True):
            rules.require("not_admitted", on or sum(row) <= 0)

    def best(self, it: Record) -> Number:
        return -super().best(it)

    def ways(self, it: Record, job: int, counter: Counter) -> Iterator[tuple[Slots, int, bool]]:
        yield (), 0, False
        for run in self.runs(it, job, it.deadlines[job], counter):
            yield run, -1, False

    def proven(self, it: Record, prices: Record) -> Number:
        total = it.num_gpus * sum(prices.slots, Fraction(0))
        for job, deadline in enumerate(it.deadlines):
            total += max(0, 1 - self.least(it, job, prices.slots[:deadline], most=1))
        return Fraction(math.floor(total))


class BestEffort(DeadlineJobs):
    """Fewest slots until best-effort jobs are done; the module has the bound."""

    data = DEADLINES | {"best_effort": "bool n"}
    divided = {"job": "int+", "end": "int+"}
    halves = ("sooner", "later")

    def value(self, it: Record, plan: Record) -> Number:
        if not any(it.best_effort):
            return Fraction(0)
        slots = 0
        for job, row in enumerate(plan.gpus):
            if it.best_effort[job] and it.iterations[job]:
                done, at = Fraction(0), 0
                # Iterations are done when they are so within the tolerance; else at the end of the slots.
                while at < it.horizon:
                    done += it.throughputs[job][min(max(row[at], 0), it.num_gpus)]
                    at += 1
                    if done >= self.required(it, job):
                        break
                slots += at
        return Fraction(slots, sum(it.best_effort))

    def best(self, it: Record) -> Number:
        slots = super().best(it)
        return slots / max(1, int(sum(it.best_effort)))

    def ways(self, it: Record, job: int, counter: Counter) -> Iterator[tuple[Slots, int, bool]]:
        waits = it.best_effort[job] and it.iterations[job]
        for end in range(1, it.deadlines[job] + 1) if waits else [it.deadlines[job]]:
            for run in self.runs(it, job, end, counter):
                yield run, end if waits else 0, False

    def proven(self, it: Record, prices: Record) -> Number:
        if not any(it.best_effort):
            return Fraction(0)
        total = self._proven_of(it, prices, [(1, deadline) for deadline in it.deadlines])
        return total if total == math.inf else Fraction(math.ceil(total), sum(it.best_effort))

    def _proven_of(self, it: Record, prices: Record, ends: list[tuple[int, int]]) -> Number:
        """Return what prices prove of the plans in which best-effort jobs are done from a first to a last slot."""
        if "halves" in vars(prices):
            if prices.job >= len(ends) or not it.best_effort[prices.job]:
                raise Malformed(f"prices: {prices.job} is no best-effort job")
            first, last = ends[prices.job]
            limits = (first, min(last, prices.end)), (max(first, prices.end + 1), last)
            return min(
                self._proven_of(it, half, [*ends[: prices.job], limit, *ends[prices.job + 1 :]])
                for half, limit in zip(prices.halves, limits, strict=True)
            )
        total: Number = -it.num_gpus * sum(prices.slots)
        for job, deadline in enumerate(it.deadlines):
            if not it.best_effort[job]:
                total += self.least(it, job, prices.slots[:deadline])
            elif it.iterations[job]:
                total += self._least_by(it, job, prices.slots, *ends[job])
        return total

    def _least_by(self, it: Record, job: int, prices: Sequence[Fraction], first: int, last: int) -> Number:
        """Return the least of slots and payment of a job that is done from a first to a last slot."""
        best: Number = math.inf
        for end in range(first, last + 1):
            if end >= best:
                break
            # Where mixed GPUs cost too much, whole ones do.
            if end + _least_mixed(self.paid(it, job, prices[:end]), self.required(it, job)) < best:
                best = min(best, end + self.least(it, job, prices[:end], most=best - end))
        return best


class Placement(Problem):
    """Blocks: search over the running jobs that stay.

    Blocks of powers of two fit wherever there is room for them, the largest first, beside any others that are aligned.
    So those that stay must be disjoint, and leave enough aligned blocks of each size free for the others.
    """

    data = {"num_gpus": "int1", "gpus_per_server": "int1", "sizes": "int1 n", "previous_offsets": "num+? n"}
    decisions = {"offsets": "int n"}

    def check(self, it: Record) -> None:
        need(it.gpus_per_server & (it.gpus_per_server - 1) == 0, "gpus_per_server must be a power of two")
        need(it.num_gpus % it.gpus_per_server == 0, "num_gpus must be a multiple of gpus_per_server")
        need(all(size & (size - 1) == 0 for size in it.sizes), "sizes must be powers of two")
        it.running = [offset != math.inf for offset in it.previous_offsets]
        for offset, running in zip(it.previous_offsets, it.running, strict=True):
            need(not running or (offset == int(offset) and offset < it.num_gpus), "previous_offsets must be GPUs")

    def value(self, it: Record, plan: Record) -> Number:
        pairs = zip(it.running, it.previous_offsets, plan.offsets, strict=True)
        return Fraction(sum(on and old != new for on, old, new in pairs))

    def broken(self, it: Record, plan: Record, rules: Rules) -> None:
        blocks = []
        for offset, size in zip(plan.offsets, it.sizes, strict=True):
            rules.require("aligned", offset % size == 0)
            inside = 0 <= offset <= it.num_gpus - size
            rules.require("inside", inside)
            if inside:
                blocks.append((offset, offset + size))
        blocks.sort()
        rules.require("disjoint", all(before[1] <= after[0] for before, after in pairwise(blocks)))

    def search(self, it: Record) -> Number:
        if sum(it.sizes) > it.num_gpus:
            return math.inf
        counter = Counter()
        stay = [
            job
            for job, (running, size) in enumerate(zip(it.running, it.sizes, strict=True))
            if running and it.previous_offsets[job] % size == 0 and it.previous_offsets[job] + size <= it.num_gpus
        ]
        stay.sort(key=lambda job: (-it.sizes[job], it.previous_offsets[job]))
        sizes = sorted(set(it.sizes), reverse=True)
        moved_at_least = sum(it.running) - len(stay)
        best = [math.inf]

        def fits(kept: list[int], others: list[int]) -> bool:
            """Return whether the others have room beside the kept blocks."""
            taken = 0
            for size in sizes:
                taken += size * sum(it.sizes[job] == size for job in others)
                # GPUs at the end that make no whole block of the size hold none of it.
                blocks = it.num_gpus // size
                hit = {
                    block
                    for job in kept
                    for block in range(
                        int(it.previous_offsets[job]) // size,
                        min(blocks, -(-(int(it.previous_offsets[job]) + it.sizes[job]) // size)),
                    )
                }
                if (blocks - len(hit)) * size < taken:
                    return False
            return True

        def go(at: int, kept: list[int], moved: int, gone: list[int]) -> None:
            counter.step(1 + len(kept) // 4)
            if moved >= best[0] or not fits(kept, gone):
                return
            if at == len(stay):
                best[0] = moved
                return
            job = stay[at]
            begin, end = it.previous_offsets[job], it.previous_offsets[job] + it.sizes[job]
            if all(
                end <= it.previous_offsets[other] or it.previous_offsets[other] + it.sizes[other] <= begin
                for other in kept
            ):
                go(at + 1, [*kept, job], moved, gone)
            go(at + 1, kept, moved + 1, [*gone, job])

        go(0, [], moved_at_least, [job for job in range(len(it.sizes)) if job not in stay])
        return Fraction(best[0])


PROBLEMS = {
    "elasticflow.admission": Admission(),
    "elasticflow.allocation": Allocation(),
    "elasticflow.best_effort": BestEffort(),
    "elasticflow.minimum_satisfactory_share": MinimumSatisfactoryShare(),
    "elasticflow.placement": Placement(),
}
