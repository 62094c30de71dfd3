"""Prism's problem: a GPU for each language model, in exact fractions.

A plan is below a level L where on every GPU the models' loads, size + weight / L, come to less than its memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

from .common import Counter, Malformed, Number, Problem, Record, Rules, TooLarge, need, whole


class Placement(Problem):
    """Search for plans below the value of the last one, GPU by GPU, until there is none.

    The greatest load that is left has a GPU to choose, and company on it.  No GPU may leave more than all memory that
    is left has beyond all loads that are.

    Prices of models, and of a GB that is moved, prove that no plan is below a level where the models' are more than
    what all GPUs could pay at most, each by itself for what it holds.
    """

    sense = "min"
    data = {
        "memory": "num> m",
        "sizes": "num+ n",
        "rates": "num+ n",
        "slos": "num> n",
        "current": "int n",
        "move_limit": "num+?",
    }
    decisions = {"gpus": "int n"}
    priced = {"level": "num>", "models": "num n", "moved": "num+"}

    def check(self, it: Record) -> None:
        need(all(-1 <= gpu < it.dims["m"] for gpu in it.current), "current: there is no such GPU")
        # A weight is the double that is nearest to rate over objective.
        it.weights = [Fraction(float(rate) / float(slo)) for rate, slo in zip(it.rates, it.slos, strict=True)]

    def moved(self, it: Record, job: int, gpu: int) -> Fraction:
        """Return what is moved of a model that comes to a GPU, GB."""
        return Fraction(it.sizes[job]) if -1 < it.current[job] != gpu else Fraction(0)

    def value(self, it: Record, plan: Record) -> Number:
        if any(not 0 <= gpu < it.dims["m"] for gpu in plan.gpus):
            return math.inf
        return max(
            self.pressure(it, gpu, [job for job, where in enumerate(plan.gpus) if where == gpu])
            for gpu in range(it.dims["m"])
        )

    def pressure(self, it: Record, gpu: int, jobs: list[int]) -> Number:
        """Return the KV pressure of a GPU that holds these models; infinite where they fill it."""
        free = it.memory[gpu] - sum(it.sizes[job] for job in jobs)
        return sum((it.weights[job] for job in jobs), Fraction(0)) / free if free > 0 else math.inf

    def broken(self, it: Record, plan: Record, rules: Rules) -> None:
        for where in plan.gpus:
            rules.require("gpu_exists", 0 <= where < it.dims["m"])
        for gpu, memory in enumerate(it.memory):
            taken = sum(it.sizes[job] for job, where in enumerate(plan.gpus) if where == gpu)
            rules.require("memory", taken < memory)
        moved = sum((self.moved(it, job, gpu) for job, gpu in enumerate(plan.gpus)), Fraction(0))
        rules.require("moves", moved <= it.move_limit)

    def search(self, it: Record) -> Number:
        counter = Counter()
        level: Number = math.inf
        while level > 0:
            found = Level(self, it, level, counter).placed()
            if found is None:
                break
            level = max((self.pressure(it, gpu, jobs) for gpu, jobs in found), default=Fraction(0))
        return level

    def proven(self, it: Record, prices: Record) -> Number:
        level = Level(self, it, Fraction(prices.level), Counter())
        if level.spare < 0:
            return Fraction(prices.level)
        most: Number = prices.moved * it.move_limit if prices.moved else Fraction(0)
        try:
            for kind, gpus in enumerate(level.groups):
                most += len(gpus) * level.dearest(kind, prices)
        except TooLarge:
            raise Malformed("prices: there are too many ways to fill a GPU below their level") from None
        paid = sum((prices.models[job] for job in level.jobs), Fraction(0))
        return Fraction(prices.level) if paid > most else Fraction(0)


class Level:
    """What a GPU may hold in a plan below a level.

    Attributes
    ----------
    groups : list of list of int
        GPUs that are alike: of equal memory, and where moves are limited without a model now.
    rooms : list of int
        What loads on a GPU of each group come to at most.
    jobs : list of int
        Models that have a size or a weight, the greatest load first; the others may be on any GPU.
    loads : list of int
        Of these, in parts of a GB.
    away : list of list
        What is moved of each with a GPU of each group, GB.
    spare : int
        What all rooms have beyond all loads.
    """

    def __init__(self, problem: Placement, it: Record, level: Number, counter: Counter) -> None:
        self.counter = counter
        groups: dict[tuple[Number, int], list[int]] = {}
        for gpu, memory in enumerate(it.memory):
            own = gpu if it.move_limit != math.inf and gpu in it.current else -1
            groups.setdefault((memory, own), []).append(gpu)
        self.groups = list(groups.values())
        loads = [
            size + (weight / level if level < math.inf else 0)
            for size, weight in zip(it.sizes, it.weights, strict=True)
        ]
        amounts, _ = whole([*loads, *(memory for memory, _ in groups)])
        # Less than the memory is one part less at most.
        self.rooms = [memory - 1 for memory in amounts[len(loads) :]]
        some = (job for job, load in enumerate(loads) if load or it.weights[job])
        self.jobs = sorted(some, key=lambda job: -amounts[job])
        self.loads = [amounts[job] for job in self.jobs]
        self.away = [[problem.moved(it, job, gpus[0]) for job in self.jobs] for gpus in self.groups]
        self.limit = it.move_limit
        self.spare = sum(len(gpus) * room for gpus, room in zip(self.groups, self.rooms, strict=True)) - sum(self.loads)

    def fillings(self, left: Sequence[int], kind: int, spare: int, moves: Number) -> Iterator[tuple[list[int], Number]]:
        """Yield what a GPU may hold with the first of what is left, and the moves that are left.

        It leaves no more than there is to spare.
        """
        loads, away = self.loads, self.away[kind]
        tails = [0]
        for at in reversed(left):
            tails.append(tails[-1] + loads[at])
        tails.reverse()

        def more(first: int, room: int, moves: Number, held: list[int]) -> Iterator[tuple[list[int], Number]]:
            self.counter.step()
            for number in range(first, len(left)):
                if room - tails[number] > spare:
                    return
                at = left[number]
                if loads[at] <= room and away[at] <= moves:
                    yield from more(number + 1, room - loads[at], moves - away[at], [*held, at])
            if room <= spare:
                yield held, moves

        first, room = left[0], self.rooms[kind]
        if loads[first] <= room and away[first] <= moves:
            yield from more(1, room - loads[first], moves - away[first], [first])

    def placed(self) -> list[tuple[int, list[int]]] | None:
        """Return GPUs and their models in a plan below the level; None where there is none."""
        failed: dict[tuple[tuple[int, ...], tuple[int, ...]], Number] = {}

        def place(
            left: tuple[int, ...], counts: tuple[int, ...], spare: int, moves: Number
        ) -> list[tuple[int, list[int]]] | None:
            if not left:
                return []
            if spare < 0 or moves <= failed.get((left, counts), -1):
                return None
            for kind, count in enumerate(counts):
                for held, rest in self.fillings(left, kind, spare, moves) if count else ():
                    found = place(
                        tuple(at for at in left if at not in held),
                        tuple(have - (other == kind) for other, have in enumerate(counts)),
                        spare - self.rooms[kind] + sum(self.loads[at] for at in held),
                        rest,
                    )
                    if found is not None:
                        return [(self.groups[kind][count - 1], [self.jobs[at] for at in held]), *found]
            failed[left, counts] = moves
            return None

        return place(tuple(range(len(self.jobs))), tuple(map(len, self.groups)), self.spare, self.limit)

    def dearest(self, kind: int, prices: Record) -> Number:
        """Return the most that is paid for the models on a GPU of a group, less what their moves cost."""
        paid = [prices.models[job] - prices.moved * away for job, away in zip(self.jobs, self.away[kind], strict=True)]
        most: Number = Fraction(0) if self.rooms[kind] <= self.spare else -math.inf
        for first in range(len(paid)):
            for held, _ in self.fillings(range(first, len(paid)), kind, self.spare, self.limit):
                most = max(most, sum(paid[at] for at in held))
        return most


PROBLEMS = {"prism.placement": Placement()}
