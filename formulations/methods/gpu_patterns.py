"""Patterns of GPUs: what one GPU can hold below a level, and a bracket of levels around the optimum of EPLB's question.

A *piece* is a replica of an expert that has c of them, and carries loads[i] / c.  A *pattern* is what one GPU holds: as
many pieces as it has slots.  Below a level T each pattern carries T at most, and, as all GPUs carry the whole load, no
less than total - (g - 1) T.  The closer T is to the mean, the fewer patterns there are.  With at_least[i, c] whether
expert i has c replicas or more, there is a plan of level T just where whole numbers solve

    sum_p uses[p] = g,    sum_p pieces[p, (i, c)] * uses[p] = c * (at_least[i, c] - at_least[i, c + 1]),
    1 = at_least[i, least count] >= at_least[i, c] >= at_least[i, c + 1] >= 0.

GPUs are alike, and in patterns nothing tells them apart.  A level with a plan is an upper end, which is the plan's
value; one that is proven to have none is a lower end.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

from formulations.engine import clock
from formulations.engine.highs import Result, Status, version
from formulations.engine.linear import LinearProgram, csr
from formulations.engine.options import Options
from formulations.engine.solution import Solution, judged
from formulations.methods import Choice, GaveUp, Method, one_model
from instances.base import OPTIMALITY_TOLERANCE, agree
from instances.eplb.placement import EplbPlacement, EplbPlacementPlan
from instances.schema import FloatArray, IntArray

__all__ = ["CHOICE", "PATTERNS", "Patterns"]

MOST = 2_000_000
"""Patterns, or beginnings of them, that are kept at a time."""
COLUMNS = 300_000
"""Patterns that a program has."""
LAST = 0.5 * OPTIMALITY_TOLERANCE
"""How far below a plan the level lies that proves it best, relatively."""
ROUNDING = 1e-12
"""By how much sums of pieces may miss, relative to the level."""


class Patterns:
    """Pieces and patterns of an instance below a level.

    Attributes
    ----------
    experts, counts : (k,) int
        Expert of each piece, and how many there are of it; heaviest first.
    weights : (k,) float
        What each carries.
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
        total = math.fsum(instance.loads.tolist())
        self.least = max(0.0, total - (instance.num_gpus - 1) * room) * (1 - ROUNDING)
        # How many replicas each expert needs at least, and how many the others then leave it.
        wanted = np.maximum(1, np.ceil(instance.loads / room - ROUNDING)).astype(np.int64)
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
        weights = instance.loads[experts] / counts
        order = np.argsort(-weights, kind="stable")
        self.experts, self.counts, self.weights = experts[order], counts[order], weights[order]
        self.patterns = self._filled(room)

    def _filled(self, room: float) -> IntArray:
        """(p, slots) int: all patterns, slot by slot, pieces in their order."""
        slots, rows = self.instance.slots, len(self.weights)
        found = np.zeros((1, 0), np.int64)
        carried = np.zeros(1)
        lightest = self.weights[-1] if rows else 0.0
        for slot in range(slots):
            left = slots - slot
            last = found[:, -1] if slot else np.zeros(1, np.int64)
            # The others are no heavier than this piece, and no lighter than the lightest.
            fits = np.searchsorted(-self.weights, -(room - carried - (left - 1) * lightest), side="left")
            heavy = np.searchsorted(-self.weights, -(self.least - carried) / left, side="right")
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
            found = np.hstack([before, piece[:, None]])[fine]
            carried = (carried[parent] + self.weights[piece])[fine]
        return found[(carried <= room) & (carried >= self.least)]

    @property
    def program(self) -> LinearProgram:
        """The program that has a point just where there is a plan."""
        instance, k, p = self.instance, len(self.weights), len(self.patterns)
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


def is_plain(instance: EplbPlacement) -> bool:
    """Return whether GPUs are alike, and one vector of loads counts."""
    return instance.is_plain


def solve(instance: EplbPlacement, options: Options) -> Solution:
    """Close the bracket between a plan and a level below which there is none."""
    began = time.perf_counter()
    plan = options.start
    assert isinstance(plan, EplbPlacementPlan)
    value, bound = instance.objective(plan), instance.mean_load
    found = Result("feasible", None, bound, None, 0.0, "", "argument")
    seconds, levels = 0.0, 0
    while not agree(value, bound) and clock.left() > 0:
        # The lower half of the bracket holds few patterns, and is soon ruled out; then what is just below the plan.
        last = bound > instance.mean_load
        level = value * (1 - LAST) if last else value - (value - bound) / 2
        patterns = Patterns(instance, level)
        if len(patterns.patterns) > COLUMNS:
            raise GaveUp(f"more than {COLUMNS:,} patterns of a GPU", plan)
        levels += 1
        if not len(patterns.patterns):
            result = Result("infeasible", None, math.inf, None, 0.0, "no pattern", "argument")
        else:
            result = (options if last else replace(options, verify=False)).session().run(patterns.program)
        seconds += result.seconds
        words = f"{len(patterns.patterns):,} patterns below {level:.9g}: {result.message}"
        better = None if result.x is None else patterns.plan(result.x)
        if better is not None and not instance.violations(better) and instance.objective(better) < value:
            plan, value = better, instance.objective(better)
        elif result.status == "infeasible":
            bound, found = level, replace(result, message=words)
        else:
            found = replace(found, message=f"{found.message}; {words}".removeprefix("; "))
            break
    status: Status = "optimal" if agree(value, bound) else "feasible"
    return judged(
        instance,
        plan,
        Result(status, None, bound, None, seconds, f"{levels} levels; {found.message}", found.proof),
        began=began,
        solver="highs",
        solver_version=version(),
        method=PATTERNS.name,
    )


PATTERNS = Method(
    name="patterns of GPUs",
    short="patterns",
    proves="levels below which patterns of GPUs make up no plan: the mean, or the search of their program",
    where="one node and one vector of loads, where moves do not count",
    solve=solve,
    applies=is_plain,
)
CHOICE = Choice((PATTERNS, one_model.METHOD))
