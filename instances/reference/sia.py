"""Sia's problem: a configuration for each job, in exact sums of powers that are the nearest doubles."""

from __future__ import annotations

import math
from fractions import Fraction

from .common import Counter, Malformed, Number, Problem, Record, Rules, need


class Goodput(Problem):
    """Search over what the jobs so far leave of each type: of equal rests the one that costs least."""

    sense = "min"
    data = {
        "num_gpus": "int+ t",
        "config_types": "int+ k",
        "config_gpus": "int1 k",
        "goodputs": "num+ n k",
        "current": "int n",
        "restart_factors": "num> n",
        "power": "num",
        "queue_penalty": "num+",
    }
    decisions = {"configs": "int n"}

    def check(self, it: Record) -> None:
        need(all(kind < it.dims["t"] for kind in it.config_types), "config_types: there is no such type")
        need(all(-1 <= config < it.dims["k"] for config in it.current), "current: there is no such configuration")
        need(all(factor <= 1 for factor in it.restart_factors), "restart_factors must be at most 1")
        need(-1 <= it.power <= 1 and it.power != 0, "power must be from -1 to 1, and not 0")

    def cost(self, it: Record, job: int, config: int) -> Fraction:
        """Return what a job adds to the value on a configuration, or, with -1, while it waits."""
        if config < 0:
            return Fraction(it.queue_penalty) if it.power < 0 else Fraction(0)
        goodput = it.goodputs[job][config]
        if -1 < it.current[job] != config:
            goodput = goodput * it.restart_factors[job]
        power = Fraction(float(goodput) ** float(it.power))
        return power if it.power < 0 else -power

    def value(self, it: Record, plan: Record) -> Number:
        if any(not -1 <= config < it.dims["k"] for config in plan.configs):
            raise Malformed("plan: there is no such configuration")
        if any(config >= 0 and not it.goodputs[job][config] for job, config in enumerate(plan.configs)):
            return math.inf
        return sum((self.cost(it, job, config) for job, config in enumerate(plan.configs)), Fraction(0))

    def broken(self, it: Record, plan: Record, rules: Rules) -> None:
        used = [0] * it.dims["t"]
        for job, config in enumerate(plan.configs):
            there = -1 <= config < it.dims["k"]
            rules.require("config_exists", there)
            if there and config >= 0:
                rules.require("runs_there", it.goodputs[job][config] > 0)
                used[it.config_types[config]] += it.config_gpus[config]
        for there_are, gpus in zip(it.num_gpus, used, strict=True):
            rules.at_most("gpus", gpus, there_are)

    def search(self, it: Record) -> Number:
        counter = Counter()
        least = {tuple(it.num_gpus): Fraction(0)}
        for job in range(it.dims["n"]):
            able = [config for config in range(it.dims["k"]) if it.goodputs[job][config]]
            costs = {config: self.cost(it, job, config) for config in (-1, *able)}
            counter.step(len(least) * len(costs))
            after: dict[tuple[int, ...], Fraction] = {}
            for left, so_far in least.items():
                for config, cost in costs.items():
                    rest = list(left)
                    if config >= 0:
                        rest[it.config_types[config]] -= it.config_gpus[config]
                    if min(rest) >= 0 and so_far + cost < after.get(tuple(rest), math.inf):
                        after[tuple(rest)] = so_far + cost
            least = after
        return min(least.values())


PROBLEMS = {"sia.goodput": Goodput()}
