"""EPLB's question: replicas of experts on GPUs, in exact fractions of their loads."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

from .common import Counter, Number, Problem, Record, Rules, need, whole

Loads = tuple[int, ...]
"""Of a GPU, by each vector."""
State = tuple[tuple[tuple[Loads, int], ...], tuple[int, ...]]
"""Loads and free slots of each GPU, and the node of each group, -1 before one is chosen."""


LEVELS, DOUBLED = 1024, 10
"""Levels rise from the mean by this part of it, doubled so often."""


class Placement(Problem):
    """Search over what the experts so far leave of the GPUs, of which those that are alike are in order."""

    sense = "min"
    data = {
        "loads": "num+ e",
        "num_gpus": "int1",
        "slots": "int1",
        "one_per_gpu": "bool",
        "num_nodes": "int1",
        "groups": "int+ e",
        "more_loads": "num+ v e",
        "aggregate": "word",
        "current": "int+ e h",
        "move_limit": "num+?",
        "move_price": "num+",
    }
    decisions = {"replicas": "int e g"}

    def check(self, it: Record) -> None:
        need(it.dims["e"] >= 1, "loads: there must be an expert")
        need(it.dims["e"] <= it.num_gpus * it.slots, "slots: every expert needs one")
        need(it.slots <= it.dims["e"], "slots: more than there are experts")
        need(it.num_gpus % it.num_nodes == 0, "num_nodes: nodes have equally many GPUs")
        need(it.aggregate in ("worst", "mean"), "aggregate: must be worst or mean")
        need(not it.more_loads or len(it.more_loads[0]) == it.dims["e"], "more_loads: a load for each expert")
        it.held = bool(it.dims["h"])
        need(it.dims["h"] in (0, it.num_gpus), "current: must have a column for each GPU")
        it.vectors = [it.loads, *it.more_loads]

    def lengths(self, it: Record) -> dict[str, int]:
        return {"g": it.num_gpus}

    def _moves(self, it: Record, expert: int, row: Sequence[int]) -> int:
        if not it.held:
            return 0
        return sum(max(0, there - now) for there, now in zip(row, it.current[expert], strict=True))

    def _worth(self, it: Record, greatest: Sequence[Fraction], moves: int) -> Number:
        load = max(greatest) if it.aggregate == "worst" else sum(greatest, Fraction(0)) / len(greatest)
        return load + Fraction(it.move_price) * moves

    def value(self, it: Record, plan: Record) -> Number:
        greatest = []
        for vector in it.vectors:
            loads = [Fraction(0)] * it.num_gpus
            for load, row in zip(vector, plan.replicas, strict=True):
                for gpu, count in enumerate(row):
                    if count:
                        loads[gpu] += Fraction(load) * count / max(1, sum(row))
            greatest.append(max(loads))
        return self._worth(it, greatest, sum(self._moves(it, *one) for one in enumerate(plan.replicas)))

    def broken(self, it: Record, plan: Record, rules: Rules) -> None:
        nodes: dict[int, set[int]] = {}
        for group, row in zip(it.groups, plan.replicas, strict=True):
            rules.require("nonnegative", min(row) >= 0)
            rules.require("every_expert", sum(row) >= 1)
            rules.require("one_per_gpu", not it.one_per_gpu or max(row) <= 1)
            of = nodes.setdefault(group, set())
            of.update(self._node(it, gpu) for gpu, count in enumerate(row) if count)
            rules.require("one_node", len(of) <= 1)
        for column in zip(*plan.replicas, strict=True):
            rules.require("slots", sum(column) == it.slots)
        moves = sum(self._moves(it, *one) for one in enumerate(plan.replicas))
        rules.require("moves", moves <= it.move_limit)

    def _node(self, it: Record, gpu: int) -> int:
        return int(gpu // (it.num_gpus // it.num_nodes))

    def search(self, it: Record) -> Number:
        counter, level = Counter(), self._least(it)
        steps = (level / LEVELS * 2**step for step in range(DOUBLED)) if level else ()
        for most in (*(level + step for step in steps), math.inf):
            if (found := self._below(it, most, counter)) < math.inf:
                return found
        return math.inf

    def _least(self, it: Record) -> Fraction:
        """Return what no plan is below: all GPUs carry all loads."""
        means = [sum(map(Fraction, loads)) / it.num_gpus for loads in it.vectors]
        return max(means) if it.aggregate == "worst" else sum(means, Fraction(0)) / len(means)

    def _below(self, it: Record, most_worth: Number, counter: Counter) -> Number:
        """Return the least worth of all plans that are worth no more than this; infinity where there is none."""
        e, replicas = it.dims["e"], it.num_gpus * it.slots
        # In whole numbers, by which each share of a load is one.
        whole_loads, denominator = whole([load for vector in it.vectors for load in vector])
        vectors = [whole_loads[first : first + e] for first in range(0, len(whole_loads), e)]
        most = min(replicas - e + 1, it.num_gpus) if it.one_per_gpu else replicas - e + 1
        parts = math.lcm(*range(1, most + 1))
        unit = denominator * parts
        alike = not it.held or (it.move_limit == math.inf and not it.move_price)
        groups = sorted(set(it.groups))
        # What GPUs without a free slot may lack of the greatest load, all together, where that is all that counts.
        waste = [it.num_gpus * most_worth * unit - sum(loads) * parts for loads in vectors]
        wastes = most_worth < math.inf and it.aggregate == "worst" and not it.move_price

        def worth(gpus: Sequence[tuple[Loads, int]], moves: int) -> Number:
            return self._worth(
                it, [Fraction(max(of), unit) for of in zip(*(there for there, _ in gpus), strict=True)], moves
            )

        def lost(gpus: Sequence[tuple[Loads, int]]) -> bool:
            full = [there for there, free in gpus if not free]
            lacks = (sum(most_worth * unit - there[at] for there in full) for at in range(len(vectors)))
            return wastes and any(lack > least for lack, least in zip(lacks, waste, strict=True))

        # Of each state the fewest moves.  Loads and moves only grow.
        states: dict[State, int] = {((((0,) * len(vectors), it.slots),) * it.num_gpus, (-1,) * len(groups)): 0}
        # The heaviest first, whose places leave the fewest for others.
        order = sorted(range(e), key=lambda expert: -sum(loads[expert] for loads in vectors))
        for number, expert in enumerate(order):
            after: dict[State, int] = {}
            waiting = e - number - 1
            group = groups.index(it.groups[expert])
            for (gpus, homes), moves in states.items():
                free = sum(slots for _, slots in gpus)
                # The last expert has all that is left; each that waits has one at least.
                for count in range(1 if waiting else free, min(free - waiting, most) + 1):
                    shares = [loads[expert] * (parts // count) for loads in vectors]
                    for held in self._ways(gpus, count, 1 if it.one_per_gpu else count):
                        counter.step(it.num_gpus * len(vectors))
                        on = {self._node(it, gpu) for gpu, more in enumerate(held) if more}
                        if len(on | ({homes[group]} - {-1})) > 1:
                            continue
                        now = moves if alike else moves + self._moves(it, expert, held)
                        if not alike and now > it.move_limit:
                            continue
                        placed = [
                            (
                                tuple(load + share * more for load, share in zip(there, shares, strict=True)),
                                slots - more,
                            )
                            for (there, slots), more in zip(gpus, held, strict=True)
                        ]
                        if worth(placed, now) > most_worth or lost(placed):
                            continue
                        if alike:
                            size = it.num_gpus // it.num_nodes
                            placed = [
                                one for at in range(0, it.num_gpus, size) for one in sorted(placed[at : at + size])
                            ]
                        state = (tuple(placed), (*homes[:group], on.pop(), *homes[group + 1 :]))
                        after[state] = min(now, after.get(state, now))
            states = after
        return min((worth(gpus, moves) for (gpus, _), moves in states.items()), default=math.inf)

    def _ways(self, gpus: Sequence[tuple[Loads, int]], count: int, most: int) -> Iterator[tuple[int, ...]]:
        """Yield the ways to put so many replicas of an expert onto GPUs."""
        if not gpus:
            if not count:
                yield ()
            return
        for here in range(min(count, most, gpus[0][1]) + 1):
            for rest in self._ways(gpus[1:], count - here, most):
                yield here, *rest


PROBLEMS = {"eplb.placement": Placement()}
