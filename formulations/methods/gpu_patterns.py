"""Patterns of GPUs: what one GPU can hold below a level, and a bracket of levels around the optimum of EPLB's question.

A *piece* is a replica of an expert that has c of them, and carries loads[i] / c.  A *pattern* is what one GPU holds: as
many pieces as it has slots.  Below a level T each pattern carries T at most, and, as all GPUs carry the whole load, no
less than total - (g - 1) T.  The closer T is to the mean, the fewer patterns there are.  With at_least[i, c] whether
expert i has c replicas or more, there is a plan of level T just where whole numbers solve

    sum_p uses[p] = g,    sum_p pieces[p, (i, c)] * uses[p] = c * (at_least[i, c] - at_least[i, c + 1]),
    1 = at_least[i, least count] >= at_least[i, c] >= at_least[i, c + 1] >= 0.

GPUs are alike, and in patterns nothing tells them apart.  A level with a plan is an upper end, which is the plan's
value; one that is proven to have none is a lower end.  Where the worst of several vectors of loads counts, a pattern is
one that is between both by each vector.  Several nodes are divided first (:mod:`formulations.methods.gpu_nodes`).

Where patterns are few, GPUs are filled one after the other instead, each with a pattern of the first expert that is not
placed as a whole, of those that are begun if there is one.  What counts of the GPUs so far is which experts are
placed, and of those that are begun how many replicas there are and how many are left: what they carry follows, and with
it the least that each further GPU must.  Of all ways to the same state one of the least greatest load is kept, so that
the last state has the optimum, or there is none below the level.  A second search takes the experts in another order.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.engine import clock
from formulations.engine.highs import Proof, Result, Status, version
from formulations.engine.linear import LinearProgram, csr
from formulations.engine.options import Options
from formulations.engine.solution import Solution, judged
from formulations.methods import Choice, GaveUp, Method, one_model
from formulations.methods.gpu_nodes import divided
from instances.base import OPTIMALITY_TOLERANCE, agree
from instances.eplb.placement import EplbPlacement, EplbPlacementPlan
from instances.schema import FloatArray, IntArray

__all__ = ["CHOICE", "PATTERNS", "Patterns"]

MOST = 2_000_000
"""Patterns, or beginnings of them, that are kept at a time."""
COLUMNS = 100_000
"""Patterns that a program has."""
FEW = 30_000
"""Patterns with which GPUs are filled one after the other."""
STATES = 300_000
"""States of as many GPUs that are kept."""
WAYS = 5
"""Ways to each of as many states that are looked at together, on average."""
BLOCK = 4_000_000
"""Pairs of states and patterns that are looked at together."""
SECONDS = 0.5
"""What the second search may take at least."""
STEP = 1e-9
"""Part of its value by which a plan must be better where GPUs are filled one after the other."""
LEVELS = (1 / 8, 1 / 2, 1.0)
"""Where levels lie between the mean and the plan at hand, one after the other."""
PART = 0.7
"""Of the time that is left, what the first search may take."""
LAST = 0.5 * OPTIMALITY_TOLERANCE
"""How far below a plan the level lies that proves it best, relatively."""
ROUNDING = 1e-12
"""By how much sums of pieces may miss, relative to the level."""
SLACK = 1e-11
"""By how much sums of all pieces may, relative to the level on all GPUs."""
BEGUN = 2
"""The first code of an expert of which some replicas are left."""


class Patterns:
    """Pieces and patterns of an instance below a level.

    Attributes
    ----------
    experts, counts : (k,) int
        Expert of each piece, and how many there are of it; heaviest first, by the vector of greatest sum.
    weights : (v, k) float
        What each carries, by each vector of loads.
    wanted : (e,) int
        Replicas that each expert needs at least.
    room : float
        What a GPU carries at most.
    patterns : (p, slots) int
        Pieces of each pattern, in that order.

    Raises
    ------
    GaveUp
        When there are too many.
    """

    def __init__(self, instance: EplbPlacement, level: float) -> None:
        self.instance = instance
        room = level * (1 + ROUNDING)
        totals = np.array([math.fsum(loads) for loads in instance.vectors.tolist()])
        self.leader = int(totals.argmax())
        self.least = np.maximum(0.0, totals - (instance.num_gpus - 1) * room) * (1 - ROUNDING)
        # How many replicas each expert needs at least, and how many the others then leave it.
        self.room = room
        hottest = instance.vectors.max(axis=0)
        self.wanted = wanted = np.maximum(1, np.ceil(hottest / room - ROUNDING)).astype(np.int64)
        spare = instance.num_replicas - int(wanted.sum())
        if instance.one_per_gpu and (wanted > instance.num_gpus).any():
            spare = -1
        most = wanted + spare
        if instance.one_per_gpu:
            most = np.minimum(most, instance.num_gpus)
        ways = most - wanted + 1 if spare >= 0 else np.zeros(len(wanted), np.int64)
        if int(ways.sum()) > MOST:
            raise GaveUp("too many pieces")
        experts = np.repeat(np.arange(len(wanted)), ways)
        firsts = np.cumsum(ways) - ways
        counts = np.arange(len(experts)) - firsts[experts] + wanted[experts]
        weights = instance.vectors[:, experts] / counts
        order = np.argsort(-weights[self.leader], kind="stable")
        self.experts, self.counts, self.weights = experts[order], counts[order], weights[:, order]
        self.patterns = self._filled(room)

    def _filled(self, room: float) -> IntArray:
        """(p, slots) int: all patterns, slot by slot, pieces in their order."""
        slots, weights, least = self.instance.slots, self.weights[self.leader], self.least[self.leader]
        found = np.zeros((1, 0), np.int64)
        carried = np.zeros((len(self.weights), 1))
        lightest = weights[-1] if len(weights) else 0.0
        for slot in range(slots):
            left = slots - slot
            last = found[:, -1] if slot else np.zeros(1, np.int64)
            # The others are no heavier than this piece, and no lighter than the lightest.
            most = carried[self.leader]
            fits = np.searchsorted(-weights, -(room - most - (left - 1) * lightest), side="left")
            heavy = np.searchsorted(-weights, -(least - most) / left, side="right")
            first = np.maximum(last, fits)
            ways = np.maximum(0, heavy - first)
            if int(ways.sum()) > MOST:
                raise GaveUp(f"more than {MOST:,} patterns of a GPU")
            parent = np.repeat(np.arange(len(found)), ways)
            piece = np.arange(len(parent)) - np.repeat(np.cumsum(ways) - ways, ways) + first[parent]
            # Of one expert there are pieces of one count, and no more than that.
            before = found[parent]
            same = (self.experts[before] == self.experts[piece][:, None]) if slot else np.zeros((len(piece), 0), bool)
            limit = np.ones(len(piece)) if self.instance.one_per_gpu else self.counts[piece]
            fine = (same <= (before == piece[:, None])).all(axis=1) & (same.sum(axis=1) < limit)
            after = carried[:, parent] + self.weights[:, piece]
            fine &= (after <= room).all(axis=0)
            found = np.hstack([before, piece[:, None]])[fine]
            carried = after[:, fine]
        return found[(carried >= self.least[:, None]).all(axis=0)]

    @property
    def program(self) -> LinearProgram:
        """The program that has a point just where there is a plan."""
        instance, k, p = self.instance, len(self.experts), len(self.patterns)
        number = {piece: at for at, piece in enumerate(zip(self.experts.tolist(), self.counts.tolist(), strict=True))}
        more = np.array([number.get((expert, count + 1), -1) for expert, count in number])
        first = np.array([(expert, count - 1) not in number for expert, count in number])
        fewer = np.flatnonzero(more >= 0)
        # Rows: pieces, chains of counts, GPUs.  Columns: patterns, counts.
        chains = k + np.arange(len(fewer))
        counts = self.counts.astype(float)
        entries = [
            (self.patterns.ravel(), np.repeat(np.arange(p), instance.slots), np.ones(self.patterns.size)),
            (np.arange(k), p + np.arange(k), -counts),
            (fewer, p + more[fewer], counts[fewer]),
            (chains, p + fewer, np.ones(len(fewer))),
            (chains, p + more[fewer], -np.ones(len(fewer))),
            (np.full(p, k + len(fewer)), np.arange(p), np.ones(p)),
        ]
        row, column, value = (np.concatenate([entry[part] for entry in entries]) for part in range(3))
        # A piece that is in a pattern twice is one entry.
        key, back = np.unique(row.astype(np.int64) * (p + k) + column, return_inverse=True)
        value = np.bincount(back, weights=value).astype(float)
        lower = np.concatenate([np.zeros(k + len(fewer)), [instance.num_gpus]])
        upper = np.concatenate([np.zeros(k), np.ones(len(fewer)), [instance.num_gpus]])
        return LinearProgram(
            "min", 0.0, np.zeros(p + k),
            np.concatenate([np.zeros(p), first.astype(float)]),
            np.concatenate([np.full(p, float(instance.num_gpus)), np.ones(k)]), np.ones(p + k, bool),
            *csr(key // (p + k), key % (p + k), value, len(lower)), lower, upper,
        )  # fmt: skip

    def plan(self, x: FloatArray) -> EplbPlacementPlan:
        """Return the plan of a point."""
        uses = np.rint(x[: len(self.patterns)]).astype(np.int64)
        gpus = np.repeat(np.arange(len(uses)), uses)
        replicas = np.zeros((self.instance.num_experts, self.instance.num_gpus), np.int64)
        held = self.experts[self.patterns[gpus]]
        np.add.at(replicas, (held, np.arange(len(gpus))[:, None]), 1)
        return EplbPlacementPlan(replicas=replicas)


Codes = NDArray[np.int16]


class Layers:
    """All ways to fill the GPUs one after the other with patterns, those to the same state as one.

    A state has a code for each expert: 0 before it is placed, 1 where all of it is, and one for each pair of a number
    of replicas and how many of these are left.

    Parameters
    ----------
    patterns : Patterns
    order : (e,) int
        Experts in the order in which they are placed.
    until : float
        Reading of ``time.perf_counter()`` at which it ends.
    """

    def __init__(self, patterns: Patterns, order: IntArray, until: float) -> None:
        self.patterns, self.order, self.until = patterns, order, until
        self.loads = patterns.weights[:, patterns.patterns].sum(axis=2)
        pairs = [(count, left) for count in sorted(set(patterns.counts.tolist())) for left in range(1, count)]
        code = {pair: at for at, pair in enumerate(pairs, 2)} | {(count, 0): 1 for count in patterns.counts.tolist()}
        self.count = np.array([0, 0, *(count for count, _ in pairs)])
        self.left = np.array([0, 0, *(left for _, left in pairs)])
        # Parts of a pattern: a piece, and how often it is in it; the last part is none.
        part_of: dict[tuple[int, int], int] = {}
        rows = [
            [part_of.setdefault((piece, row.count(piece)), len(part_of)) for piece in sorted(set(row))]
            for row in patterns.patterns.tolist()
        ]
        self.parts = np.array([row + [len(part_of)] * (patterns.instance.slots - len(row)) for row in rows])
        self.part_expert = np.zeros(len(part_of) + 1, np.int64)
        # (parts, codes) int: the code after a part, -1 where it cannot be.
        self.after = np.full((len(part_of) + 1, len(self.left)), -1)
        self.after[-1] = np.arange(len(self.left))
        for (piece, times), part in part_of.items():
            count = int(patterns.counts[piece])
            self.part_expert[part] = patterns.experts[piece]
            self.after[part, 0] = code[count, count - times]
            for left in range(times, count):
                self.after[part, code[count, left]] = code[count, left - times]

    def least(self) -> EplbPlacementPlan | None:
        """Return a plan of the least greatest load below the level; None where there is none.

        Raises
        ------
        GaveUp
            When there are too many states, or no time is left.
        """
        instance = self.patterns.instance
        if not len(self.patterns.patterns):
            return None
        states: Codes = np.zeros((1, instance.num_experts), np.int16)
        greatest = np.zeros(1)
        steps = []
        for left in range(instance.num_gpus - 1, -1, -1):
            found = [(states[:0], np.zeros(0, np.int64), np.zeros(0, np.int64), greatest[:0])]
            made = 0
            for block in self._filled(states, greatest, left):
                found.append(block)
                made += len(block[0])
                if made > WAYS * STATES:
                    raise GaveUp(f"more than {WAYS * STATES:,} ways to fill some of the GPUs")
            states, parent, pattern, greatest = (np.concatenate([one[part] for one in found]) for part in range(4))
            if not len(states):
                return None
            states, kept = self._least_of_each(states, greatest)
            greatest = greatest[kept]
            steps.append((parent[kept], pattern[kept]))
        at, chosen = 0, []
        for parent, pattern in reversed(steps):
            chosen.append(int(pattern[at]))
            at = int(parent[at])
        return self.patterns.plan(np.bincount(chosen, minlength=len(self.patterns.patterns)).astype(float))

    def _filled(self, states: Codes, greatest: FloatArray, left: int) -> Iterator[tuple[Any, ...]]:
        """Yield states after another GPU, with the state before, the pattern, and the greatest load."""
        instance, patterns = self.patterns.instance, self.patterns
        room = patterns.room
        share = np.concatenate([[1.0, 0.0], self.left[2:] / self.count[2:]])[states]
        rest = np.array([(share * loads).sum(axis=1) for loads in instance.vectors])
        # Of the last GPU, too, what it must carry is a sum that rounding may make greater.
        least = rest - (left + SLACK * instance.num_gpus) * room
        # The first expert that is begun, else the first that is not; by the state's code of it.
        ordered = states[:, self.order]
        begun = ordered >= BEGUN
        first = np.where(begun.any(axis=1), begun.argmax(axis=1), (ordered == 0).argmax(axis=1))
        expert = self.order[first]
        key = expert * len(self.left) + states[np.arange(len(states)), expert]
        for one in np.unique(key).tolist():
            of, code = divmod(one, len(self.left))
            piece = patterns.experts == of
            if code:
                piece &= patterns.counts == self.count[code]
            those = np.flatnonzero(piece[patterns.patterns].any(axis=1))
            same = np.flatnonzero(key == one)
            for begin in range(0, len(same) if len(those) else 0, max(1, BLOCK // max(1, len(those)))):
                if time.perf_counter() > self.until:
                    raise GaveUp("no time for the ways to fill GPUs")
                some = same[begin : begin + max(1, BLOCK // len(those))]
                yield self._block(states[some], some, those, least[:, some], greatest[some], left)

    def _block(
        self, states: Codes, numbers: IntArray, those: IntArray, least: FloatArray, greatest: FloatArray, left: int
    ) -> tuple[Codes, IntArray, IntArray, FloatArray]:
        """Return the states that some patterns make of some states."""
        patterns, parts = self.patterns, self.parts[those]
        able = self.after[np.arange(len(self.after))[:, None], states[:, self.part_expert].T] >= 0
        fine = np.ones((len(those), len(states)), bool)
        for loads, needed in zip(self.loads[:, those], least, strict=True):
            fine &= loads[:, None] >= needed
        for slot in range(parts.shape[1]):
            fine &= able[parts[:, slot]]
        which, state = np.nonzero(fine)
        made = states[state]
        rows = np.arange(len(made))
        for slot in range(parts.shape[1]):
            part = parts[which, slot]
            real = part < len(self.after) - 1
            at, of = rows[real], self.part_expert[part[real]]
            made[at, of] = self.after[part[real], made[at, of]]
        # Each expert that is not placed needs some slots, and nothing may be left over.
        waits = made == 0
        needed = self.left[made].sum(axis=1) + (waits * patterns.wanted).sum(axis=1)
        slots = patterns.instance.slots * left
        kept = np.where(waits.any(axis=1), needed <= slots, needed == slots)
        which, state = which[kept], state[kept]
        loads = self.loads[:, those[which]].max(axis=0)
        return made[kept], numbers[state], those[which], np.maximum(greatest[state], loads)

    def _least_of_each(self, states: Codes, greatest: FloatArray) -> tuple[Codes, IntArray]:
        """Return the states that there are, each once, and where one of the least greatest load stands."""
        by_load = np.argsort(greatest, kind="stable")
        rows = np.ascontiguousarray(states[by_load])
        _, first = np.unique(rows.view(f"V{rows.strides[0]}").ravel(), return_index=True)
        if len(first) > STATES:
            raise GaveUp(f"more than {STATES:,} ways to fill some of the GPUs")
        return rows[first], by_load[first]


def applies(instance: EplbPlacement) -> bool:
    """Return whether GPUs, or nodes, are alike, and a plan's value is the greatest load, by whichever vector."""
    return not instance.counts_moves and (len(instance.vectors) == 1 or instance.aggregate == "worst")


def layered(instance: EplbPlacement, plan: EplbPlacementPlan, options: Options) -> tuple[EplbPlacementPlan, Result]:
    """Return the best plan and bound that filling GPUs one after the other finds: an optimal one, where it ends.

    Levels rise, as ways are few near the mean: the first with a plan has the best, and those before have none.
    """
    began = time.perf_counter()
    until = began + PART * clock.left()
    by_load = np.argsort(-instance.vectors.max(axis=0), kind="stable")
    value, mean = instance.objective(plan), instance.mean_load
    bound, found = mean, None

    def best_below(level: float, order: IntArray, until: float) -> EplbPlacementPlan | None:
        patterns = Patterns(instance, level)
        if len(patterns.patterns) > FEW:
            raise GaveUp(f"more than {FEW:,} patterns of a GPU")
        found = Layers(patterns, order, until).least()
        return None if found is None or instance.violations(found) else found

    try:
        for part in LEVELS:
            level = min(mean + part * (value - mean), value * (1 - STEP))
            found = best_below(level, by_load, until)
            if found is not None:
                break
            bound = max(bound, level)
    except GaveUp as why:
        proof: Proof = "argument" if bound == mean else "one run"
        return plan, Result("feasible", None, bound, None, 0.0, str(why), proof)
    best = plan if found is None else found
    bound = max(bound, instance.objective(best) * (1 - STEP))
    optimal = Result("optimal", None, bound, None, 0.0, "all ways to fill GPUs one after the other", "one run")
    if options.verify is False:
        return best, optimal
    ended = time.perf_counter()
    seconds = clock.left() if options.verify else min(clock.left(), max(SECONDS, ended - began))
    # The hottest last of the hotter half.
    half = len(by_load) // 2
    order = np.concatenate([by_load[1:half], by_load[:1], by_load[half:]]) if half else by_load
    try:
        other = best_below(instance.objective(best) * (1 - STEP), order, ended + seconds)
    except GaveUp:
        return best, optimal
    # A plan outweighs any claim that there is none so good.
    return (best, replace(optimal, proof="two runs")) if other is None else (other, replace(optimal, bound=mean))


def closed(instance: EplbPlacement, plan: EplbPlacementPlan, options: Options) -> tuple[EplbPlacementPlan, Result]:
    """Close the bracket between a plan and a level below which there is none, on one node."""
    value, bound = instance.objective(plan), instance.mean_load
    found = Result("feasible", None, bound, None, 0.0, "", "argument")
    seconds, levels, last = 0.0, 0, False
    if clock.left() > 0 and not agree(value, bound):
        plan, found = layered(instance, plan, options)
        value, bound = instance.objective(plan), found.bound
    while not agree(value, bound) and clock.left() > 0:
        # The lower half of the bracket holds few patterns, and is soon ruled out; then what is just below the plan.
        level = value * (1 - LAST) if last else value - (value - bound) / 2
        patterns = Patterns(instance, level)
        if len(patterns.patterns) > COLUMNS:
            raise GaveUp(f"more than {COLUMNS:,} patterns of a GPU", plan)
        levels += 1
        if not len(patterns.patterns):
            result = Result("infeasible", None, math.inf, None, 0.0, "no pattern", "argument")
        else:
            session = (options if last else replace(options, verify=False)).session()
            # There is little to presolve, and it would take longer than the search.
            result = session.run(patterns.program, presolve=False)
        seconds += result.seconds
        words = f"{len(patterns.patterns):,} patterns below {level:.9g}: {result.message}"
        better = None if result.x is None else patterns.plan(result.x)
        if better is not None and not instance.violations(better) and instance.objective(better) < value:
            plan, value = better, instance.objective(better)
        elif result.status == "infeasible":
            bound, found, last = level, replace(result, message=words), True
        else:
            found = replace(found, message=f"{found.message}; {words}".removeprefix("; "))
            break
    status: Status = "optimal" if agree(value, bound) else "feasible"
    said = f"{levels} levels; {found.message}"
    return plan, replace(found, status=status, x=None, bound=bound, seconds=seconds, message=said)


def solve(instance: EplbPlacement, options: Options) -> Solution:
    """Solve the node, or all nodes, from the plan at hand."""
    began = time.perf_counter()
    plan = options.start
    assert isinstance(plan, EplbPlacementPlan)
    plan, result = (closed if instance.num_nodes == 1 else divided)(instance, plan, options)
    return judged(
        instance,
        plan,
        result,
        began=began,
        solver="highs",
        solver_version=version(),
        method=PATTERNS.name,
    )


PATTERNS = Method(
    name="patterns of GPUs",
    short="patterns",
    proves="levels below which there is no plan: the mean, all ways to fill GPUs with patterns, or a program of these",
    where="one vector of loads or the worst of several, where moves do not count",
    solve=solve,
    applies=applies,
)
CHOICE = Choice((PATTERNS, one_model.METHOD))
