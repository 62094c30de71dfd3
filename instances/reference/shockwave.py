"""Shockwave's problem: the rounds in which jobs run, with interpolated logarithms in exact fractions."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, pairwise

from .common import Counter, Number, Problem, Record, Rules, need


class Window(Problem):
    """Search over what the jobs so far leave of each round, in which rounds of equal rest are one."""

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
        return Fraction(float(Decimal(float(number)).ln()))

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
        counter = Counter()
        # What is left of each round, the fullest first, and the longest time left so far: the most of all utilities.
        best: dict[tuple[tuple[int, ...], Fraction], Fraction] = {
            ((it.num_gpus,) * it.num_rounds, Fraction(0)): Fraction(0)
        }
        for job in range(it.dims["n"]):
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

    def rests(self, rest: tuple[int, ...], scale: int, rounds: int, counter: Counter) -> set[tuple[int, ...]]:
        """Return what a job that runs in some of the rounds can leave of all."""
        found = set()
        for some in combinations([at for at, left in enumerate(rest) if left >= scale], rounds):
            counter.step(len(rest))
            found.add(tuple(sorted(left - scale if at in some else left for at, left in enumerate(rest))))
        return found


PROBLEMS = {"shockwave.window": Window()}
