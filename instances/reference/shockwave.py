"""Shockwave's problem: the rounds in which jobs run, with interpolated logarithms in exact fractions.

A plan's value depends on the number of rounds of each job alone.  Whichever these are, their GPU-rounds are no more
than those of as many fullest rounds as there are, so the best numbers within them, for a longest time left of at most
t, less what t costs, bound every plan whose longest time left is t.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache
from itertools import pairwise, product

from .common import Counter, Number, Problem, Record, Rules, TooLarge, need
from .sia import most_gained

UNIT = 1 << 96
"""Parts of 1 to which utilities are rounded up."""


class Window(Problem):
    """Search over what the jobs so far leave of each round, in which rounds of equal rest are one.

    Where that takes too many steps, over what they leave of all GPU-rounds, which proves a bound.
    """

    sense = "max"
    data = {
        "num_gpus": "int1",
        "num_rounds": "int1",
        "round_duration": "num>",
        "rounds_past": "int+",
        "scale_factors": "int1 n",
        "epochs": "int1 n",
        "epochs_done": "int+ n",
        "epoch_durations": "num> n",
        "times_left": "num+ n",
        "finish_limits": "num>? n",
        "weights": "num+ n",
        "points": "num+ b",
        "least_progress": "num>",
        "remaining_penalty": "num+",
    }
    decisions = {"runs": "bool n r"}

    def check(self, it: Record) -> None:
        need(all(done <= most for done, most in zip(it.epochs_done, it.epochs, strict=True)), "epochs_done: too many")
        need(it.points[0] == 0 and it.points[-1] == 1, "points must go from 0 to 1")
        need(all(p < q for p, q in pairwise(it.points)), "points must ascend")
        logs = [self.log(point or it.least_progress) for point in it.points]
        it.lines = [
            (p, q, a, (b - a) / (q - p)) for (p, q), (a, b) in zip(pairwise(it.points), pairwise(logs), strict=True)
        ]
        rises = [rise for *_, rise in it.lines]
        need(rises == sorted(rises, reverse=True) and rises[-1] >= 0, "least_progress must leave the logarithm concave")

    def log(self, number: Fraction) -> Fraction:
        """Return the double nearest to the natural logarithm of one."""
        return Fraction(float(Decimal(float(number)).ln(Context(prec=28))))

    def lengths(self, it: Record) -> dict[str, int]:
        return {"r": it.num_rounds}

    def planned(self, it: Record, job: int, rounds: int) -> Fraction:
        """Return the running time that a job gets of some rounds."""
        left = it.epoch_durations[job] * (it.epochs[job] - it.epochs_done[job])
        return min(Fraction(it.round_duration * rounds), Fraction(left))

    def utility(self, it: Record, job: int, rounds: int) -> Fraction:
        """Return what a job's logarithm adds to the value, on the line between the two points around it."""
        done = it.epochs_done[job] + self.planned(it, job, rounds) / it.epoch_durations[job]
        at = done / it.epochs[job]
        log = next(log + rise * (at - p) for p, q, log, rise in it.lines if at <= q)
        return Fraction(it.weights[job] * log / (it.dims["n"] * it.num_rounds))

    def after(self, it: Record, job: int, rounds: int) -> Fraction:
        """Return the time that a job has left after the window."""
        return max(Fraction(it.times_left[job]) - self.planned(it, job, rounds), Fraction(0))

    def finish(self, it: Record, job: int, rounds: int) -> Fraction:
        later = self.after(it, job, rounds) * max(Fraction(1), Fraction(it.dims["n"], it.num_gpus))
        return Fraction(it.round_duration * (it.rounds_past + it.num_rounds) + later)

    def value(self, it: Record, plan: Record) -> Number:
        rounds = [sum(row) for row in plan.runs]
        longest = max(self.after(it, job, count) for job, count in enumerate(rounds))
        utilities = sum((self.utility(it, job, count) for job, count in enumerate(rounds)), Fraction(0))
        return utilities - Fraction(it.remaining_penalty) * longest

    def broken(self, it: Record, plan: Record, rules: Rules) -> None:
        for at in range(it.num_rounds):
            used = sum(it.scale_factors[job] for job, row in enumerate(plan.runs) if row[at])
            rules.at_most("gpus", used, it.num_gpus)
        for job, row in enumerate(plan.runs):
            rules.at_most("finish_limit", self.finish(it, job, sum(row)), it.finish_limits[job])

    def able(self, it: Record, job: int) -> list[int]:
        """Return the numbers of rounds with which a job keeps its limit."""
        kept = []
        for rounds in range(it.num_rounds + 1):
            rules = Rules()
            rules.at_most("finish_limit", self.finish(it, job, rounds), it.finish_limits[job])
            if not rules.broken:
                kept.append(rounds)
        return kept

    def search(self, it: Record) -> Number:
        try:
            return self.best(it)
        except TooLarge:
            return self.by_gpu_rounds(it, Counter())

    def by_gpu_rounds(self, it: Record, counter: Counter) -> Number:
        """Return what no plan is worth more than, as if a job could run in any GPU-rounds."""
        jobs = range(it.dims["n"])
        sums = {0}
        for scale in it.scale_factors:
            counter.step(len(sums))
            sums |= {held + scale for held in sums if held + scale <= it.num_gpus}
        room = max(sums) * it.num_rounds
        counter.step(4 * len(jobs) * (it.num_rounds + 1))
        able = [
            [rounds for rounds in self.able(it, job) if not rounds or it.scale_factors[job] <= it.num_gpus]
            for job in jobs
        ]
        if not all(able):
            return -math.inf
        left = [{rounds: self.after(it, job, rounds) for rounds in able[job]} for job in jobs]
        worth = [{rounds: math.ceil(self.utility(it, job, rounds) * UNIT) for rounds in able[job]} for job in jobs]
        least_time = max(min(of.values()) for of in left)
        times = sorted({time for of in left for time in of.values() if time >= least_time})
        known: dict[int, int] = {}

        @cache
        def choices(at: int) -> tuple[int, int, list[list[tuple[int, int, int]]]]:
            """Return what the least rounds are worth, the GPU-rounds that they leave, and what more would gain."""
            counter.step(len(jobs) * (it.num_rounds + 1))
            least = [min(rounds for rounds, time in of.items() if time <= times[at]) for of in left]
            gains = [
                [(of[more] - of[first], 0, scale * (more - first)) for more in of if of[more] > of[first]]
                for of, first, scale in zip(worth, least, it.scale_factors, strict=True)
            ]
            sure = sum(worth[job][least[job]] for job in jobs)
            return sure, room - sum(it.scale_factors[job] * least[job] for job in jobs), gains

        def most(at: int) -> Number:
            """Return what all utilities add up to at most where nobody has more than a time left."""
            sure, rest, gains = choices(at)
            if rest < 0:
                return -math.inf
            by_price = sure + priced(gains, rest)
            return Fraction(min([by_price, *(exact for later, exact in known.items() if later >= at)]), UNIT)

        def span(first: int, last: int) -> tuple[Number, int, int]:
            """Return what no plan whose longest time left is among these is worth more than, for the heap."""
            return it.remaining_penalty * times[first] - most(last), -last, first

        spans = [span(0, len(times) - 1)]
        while True:
            bound, last, first = heapq.heappop(spans)
            now = span(first, -last)
            if now[0] > bound:
                heapq.heappush(spans, now)
            elif bound == math.inf or (first == -last and first in known):
                return -bound
            elif first == -last:
                sure, rest, gains = choices(first)
                known[first] = sure + most_gained(gains, (rest,), counter)
                heapq.heappush(spans, span(first, first))
            else:
                middle = (first - last) // 2
                for part in ((first, middle), (middle + 1, -last)):
                    heapq.heappush(spans, span(*part))

    def best(self, it: Record) -> Number:
        counter = Counter()
        # What is left of each round, the fullest first, and the longest time left so far: the most of all utilities.
        best: dict[tuple[tuple[int, ...], Fraction], Fraction] = {
            ((it.num_gpus,) * it.num_rounds, Fraction(0)): Fraction(0)
        }
        # The widest jobs first: they leave the fewest different rests.
        for job in sorted(range(it.dims["n"]), key=lambda job: -it.scale_factors[job]):
            scale = it.scale_factors[job]
            worth = [
                (rounds, self.utility(it, job, rounds), self.after(it, job, rounds)) for rounds in self.able(it, job)
            ]
            after: dict[tuple[tuple[int, ...], Fraction], Fraction] = {}
            for (rest, longest), so_far in best.items():
                for rounds, utility, left in worth:
                    for new in self.rests(rest, scale, rounds, counter):
                        key = (new, max(longest, left))
                        if so_far + utility > after.get(key, -math.inf):
                            after[key] = so_far + utility
            best = after
        penalty = it.remaining_penalty
        return max((utility - penalty * longest for (_, longest), utility in best.items()), default=-math.inf)

    def rests(self, rest: tuple[int, ...], scale: int, rounds: int, counter: Counter) -> Iterator[tuple[int, ...]]:
        """Yield what a job that runs in some of the rounds can leave of all, by how many it takes of each rest."""
        able = [(left, rest.count(left)) for left in sorted(set(rest)) if left >= scale]
        for taken in product(*(range(min(rounds, count) + 1) for _, count in able)):
            counter.step()
            if sum(taken) == rounds:
                counter.step(len(rest))
                after = [left for left in rest if left < scale]
                for (left, count), some in zip(able, taken, strict=True):
                    after += [left] * (count - some) + [left - scale] * some
                yield tuple(sorted(after))


def priced(groups: list[list[tuple[int, int, int]]], room: int) -> int:
    """Return what choices in GPU-rounds can gain at most, at the price of the first round that finds no room."""
    rounds = []
    for of in groups:
        for (before, _, taken), (gain, _, gpus) in pairwise([(0, 0, 0), *of]):
            rounds.append(((gain - before) // (gpus - taken), gpus - taken))
    price, left = 0, room
    for each, gpus in sorted(rounds, reverse=True):
        left -= gpus
        if left < 0:
            price = max(0, each)
            break
    return price * room + sum(max([0, *(gain - price * gpus for gain, _, gpus in of)]) for of in groups)


PROBLEMS = {"shockwave.window": Window()}
