"""Sia's problem: a configuration for each job, in exact sums of powers that are the nearest doubles.

At a price ``p[t] >= 0`` of a GPU of each type, each job by itself makes the least of what it costs and pays, and no
plan costs less than

    sum of min(waiting cost, min of cost[j][c] + p[type of c] * GPUs of c), j,  -  sum of p[t] * GPUs of type t.
"""

from __future__ import annotations

import math
from fractions import Fraction

from .common import Counter, Malformed, Number, Problem, Record, Rules, need, whole

BEAM = 100
"""Rests that a first plan is looked for among."""
FINER = 1 << 20
"""Into how many parts units of gains are cut, so that prices are whole numbers of them."""
SCALE, ROUNDS = 40, 60
"""Bits of the greatest gain, and how often each type has its turn, where good prices are looked for."""


class Goodput(Problem):
    """Search over what the jobs so far leave of each type: of equal rests the one that costs least.

    At prices of GPUs, those who are still to come gain no more than they do by themselves, and what is left costs; a
    rest from which no plan is better than one that is known goes no further.
    """

    sense = "min"
    data = {
        "num_gpus": "int1 t",
        "config_types": "int+ k",
        "config_gpus": "int1 k",
        "goodputs": "num+ n k",
        "current": "int n",
        "restart_factors": "num> n",
        "power": "num",
        "queue_penalty": "num+",
    }
    decisions = {"configs": "int n"}
    priced = {"types": "num+ t"}

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

    def options(self, it: Record, job: int) -> list[tuple[Fraction, int, int]]:
        """List what a job can have that costs less than to wait: cost, type and GPUs."""
        found = []
        for config, (kind, gpus) in enumerate(zip(it.config_types, it.config_gpus, strict=True)):
            if it.goodputs[job][config] and gpus <= it.num_gpus[kind]:
                cost = self.cost(it, job, config)
                if cost < self.cost(it, job, -1):
                    found.append((cost, kind, gpus))
        return found

    def proven(self, it: Record, prices: Record) -> Number:
        total = -sum((p * gpus for p, gpus in zip(prices.types, it.num_gpus, strict=True)), Fraction(0))
        for job in range(it.dims["n"]):
            paid = (cost + prices.types[kind] * gpus for cost, kind, gpus in self.options(it, job))
            total += min([self.cost(it, job, -1), *paid])
        return total

    def search(self, it: Record) -> Number:
        waiting = [self.cost(it, job, -1) for job in range(it.dims["n"])]
        options = [self.options(it, job) for job in range(it.dims["n"])]
        gains, unit = whole(wait - cost for wait, of in zip(waiting, options, strict=True) for cost, _, _ in of)
        left, groups = iter(gains), []
        for of in options:
            gained = [(next(left) * FINER, kind, gpus) for _, kind, gpus in of]
            # What gains no more than fewer GPUs of the type does is in no plan that is needed.
            kept = [one for one in gained if not any(_beats(other, one) for other in gained if other is not one)]
            groups.append(sorted(set(kept), reverse=True))
        return sum(waiting, Fraction(0)) - Fraction(most_gained(groups, tuple(it.num_gpus)), unit * FINER)


Choice = tuple[int, int, int]
"""Gain, type and GPUs."""


def _beats(one: Choice, other: Choice) -> bool:
    return one != other and one[1] == other[1] and one[2] <= other[2] and one[0] >= other[0]


def _prices(groups: list[list[Choice]], room: tuple[int, ...]) -> list[int]:
    """Return prices of types' GPUs at which the bound is small: type after type, in steps that become smaller.

    As :func:`.common.good_prices`; a change of one type's price is compared with what others offer, which stays.
    """
    greatest = max((gain for of in groups for gain, _, _ in of), default=1)
    of_type = [
        [[((gain << SCALE) // greatest, gpus) for gain, kind, gpus in of if kind == t] for of in groups]
        for t in range(len(room))
    ]

    def offered(t: int, price: int) -> list[int]:
        """Return what the choices of a type leave each group at a price, at least 0."""
        return [max([0, *(gain - price * gpus for gain, gpus in of)]) for of in of_type[t]]

    prices = [0] * len(room)
    offers = [offered(t, 0) for t in range(len(room))]
    step = [4 * len(groups) * (1 << SCALE) // max(1, have) for have in room]
    for _ in range(ROUNDS):
        moved = False
        for t, have in enumerate(room):
            others = [max(each) for each in zip(*(offers[u] for u in range(len(room)) if u != t), strict=True)]
            others = others or [0] * len(groups)
            now = sum(map(max, offers[t], others)) + prices[t] * have
            for price in (prices[t] + step[t], max(0, prices[t] - step[t])):
                trial = offered(t, price)
                then = sum(map(max, trial, others)) + price * have
                if then < now:
                    prices[t], offers[t], now, moved = price, trial, then, True
        if not moved:
            step = [one // 2 for one in step]
    return [(price * greatest) >> SCALE for price in prices]


def most_gained(groups: list[list[Choice]], room: tuple[int, ...], counter: Counter | None = None) -> int:
    """Return the most that can be gained within the types' GPUs, where each group has one choice or none.

    Parameters
    ----------
    groups : list of list of (gain, type, GPUs)
    room : tuple of int
        GPUs of each type.
    counter : Counter, optional
        Of the steps; by default each of the two sweeps has one of its own.
    """
    groups = [of for of in groups if of]
    prices = _prices(groups, room)

    def apart(of: list[Choice]) -> int:
        """Return how far a group's best choice at these prices is from its next."""
        reduced = sorted((gain - prices[kind] * gpus for gain, kind, gpus in [*of, (0, 0, 0)]), reverse=True)
        return reduced[0] - reduced[1] if len(reduced) > 1 else 1 << 4000

    # Where there is little to choose comes first, and splits no rests.
    groups.sort(key=apart, reverse=True)
    alone = [0] * (len(groups) + 1)
    wanted = [[0] * len(room) for _ in range(len(groups) + 1)]
    for at in reversed(range(len(groups))):
        alone[at] = alone[at + 1] + max(0, *(gain - prices[kind] * gpus for gain, kind, gpus in groups[at]))
        for kind in range(len(room)):
            most = max((gpus for _, of, gpus in groups[at] if of == kind), default=0)
            wanted[at][kind] = wanted[at + 1][kind] + most

    def swept(known: int, beam: int | None) -> int:
        """Return the most that is gained from the rests that may gain more than is known, or a few of them."""
        steps = counter or Counter()
        most = {room: 0}
        for at, of in enumerate(groups):
            steps.step(len(most) * (1 + len(of)))
            after: dict[tuple[int, ...], int] = {}
            for rest, gained in most.items():
                for gain, kind, gpus in [*of, (0, 0, 0)]:
                    if gpus > rest[kind]:
                        continue
                    # More than all who come can take is as good as that.
                    left = tuple(
                        min(have - gpus if t == kind else have, enough)
                        for t, (have, enough) in enumerate(zip(rest, wanted[at + 1], strict=True))
                    )
                    if gained + gain > after.get(left, -1):
                        after[left] = gained + gain
            bounds = {
                left: gained + alone[at + 1] + sum(p * have for p, have in zip(prices, left, strict=True))
                for left, gained in after.items()
            }
            able = [left for left in after if bounds[left] > known]
            if beam is not None:
                able = sorted(able, key=lambda left: (-bounds[left], left))[:beam]
            most = {left: after[left] for left in able}
        return max(most.values(), default=known)

    return swept(max(0, swept(-1, BEAM)), None)


PROBLEMS = {"sia.goodput": Goodput()}
