"""EPLB's question: replicas of experts on GPUs, in exact fractions of their loads."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from .common import Counter, Number, Problem, Record, Rules, need, whole

Gpus = tuple[tuple[int, int], ...]
"""Load and free slots of each GPU, in order, so that equal states are one."""


class Placement(Problem):
    """Search over what the experts so far leave of the GPUs, which are alike."""

    sense = "min"
    data = {"loads": "num+ e", "num_gpus": "int1", "slots": "int1", "one_per_gpu": "bool"}
    decisions = {"replicas": "int e g"}

    def check(self, it: Record) -> None:
        need(it.dims["e"] >= 1, "loads: there must be an expert")
        need(it.dims["e"] <= it.num_gpus * it.slots, "slots: every expert needs one")
        need(it.slots <= it.dims["e"], "slots: more than there are experts")

    def lengths(self, it: Record) -> dict[str, int]:
        return {"g": it.num_gpus}

    def value(self, it: Record, plan: Record) -> Number:
        loads = [Fraction(0)] * it.num_gpus
        for load, row in zip(it.loads, plan.replicas, strict=True):
            for gpu, count in enumerate(row):
                if count:
                    loads[gpu] += Fraction(load) * count / max(1, sum(row))
        return max(loads)

    def broken(self, it: Record, plan: Record, rules: Rules) -> None:
        for row in plan.replicas:
            rules.require("nonnegative", min(row) >= 0)
            rules.require("every_expert", sum(row) >= 1)
            rules.require("one_per_gpu", not it.one_per_gpu or max(row) <= 1)
        for column in zip(*plan.replicas, strict=True):
            rules.require("slots", sum(column) == it.slots)

    def search(self, it: Record) -> Number:
        counter = Counter()
        e, replicas = it.dims["e"], it.num_gpus * it.slots
        # In whole numbers, by which each share of a load is one.
        loads, denominator = whole(it.loads)
        most = min(replicas - e + 1, it.num_gpus) if it.one_per_gpu else replicas - e + 1
        parts = math.lcm(*range(1, most + 1))
        states: set[Gpus] = {((0, it.slots),) * it.num_gpus}
        for expert, load in enumerate(loads):
            after: set[Gpus] = set()
            waiting = e - expert - 1
            for state in states:
                free = sum(slots for _, slots in state)
                # The last expert has all that is left; each that waits has one at least.
                for count in range(1 if waiting else free, min(free - waiting, most) + 1):
                    share = load * (parts // count)
                    for held in self._ways(state, count, 1 if it.one_per_gpu else count):
                        counter.step(4 * it.num_gpus)
                        placed = zip(state, held, strict=True)
                        after.add(
                            tuple(sorted((there + share * more, slots - more) for (there, slots), more in placed))
                        )
            states = after
        return Fraction(min(state[-1][0] for state in states), denominator * parts) if states else math.inf

    def _ways(self, gpus: Gpus, count: int, most: int) -> Iterator[tuple[int, ...]]:
        """Yield the ways to put so many replicas of an expert onto GPUs."""
        if not gpus:
            if not count:
                yield ()
            return
        for here in range(min(count, most, gpus[0][1]) + 1):
            for rest in self._ways(gpus[1:], count - here, most):
                yield here, *rest


PROBLEMS = {"eplb.placement": Placement()}
