"""Ways to fill a GPU with models: below a level few ways are left, and either some of them place all models or none do.

What counts of a GPU is which models it holds, its *filling*, and a filling has its pressure by itself.  With a plan
of the value L, a better one consists of fillings of pressures below L.  At the level L models take size + weight / L
of the memory of a GPU, and what all GPUs have beyond all models is little where L is near the bound; no filling of a
better plan leaves more than that, so that fillings are nearly full and few.  Whether some of them are a plan is a
program of choices,

    sum of chosen fillings that hold model j              =   1         for each model j
    sum of chosen fillings of GPUs of class c             <=  GPUs of class c
    sum of what chosen fillings move                      <=  move_limit,

and GPUs of one class, of equal memory, are not told apart; where moves are limited, GPUs that hold models now are
classes of their own.  A plan that it finds has a lower value, from which it goes on; where there is none, the last plan
is best.  The prices of the relaxation come first.  Where neither they nor half of the time that is left decide, levels
between the bound and the plan are halved, at which fillings are fewer: no plan raises the bound, and a plan lowers the
value.

References
----------
Dinkelbach, On nonlinear fractional programming (Management Science 13, 1967), for the levels.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from formulations.engine import clock
from formulations.engine.highs import WEAKEST_FIRST, Proof, Result, Session, Status, version
from formulations.engine.linear import LinearProgram, csr
from formulations.engine.options import Options
from formulations.engine.solution import Solution, judged
from formulations.methods import Choice, GaveUp, Method, one_model
from formulations.prism.placement import least_level
from instances.base import agree, widened
from instances.prism.placement import PrismPlacement, PrismPlacementPlan
from instances.schema import BoolArray, FloatArray, IntArray

__all__ = ["CHOICE", "FILLINGS", "filling_prices"]

MOST = 20_000_000
"""Entries of the tables by which fillings are listed, at most."""
STEP = 1e-9
"""Part of its value by which a plan must be better."""
HALVINGS = 8
"""Levels at which prices are looked for, between the bound and a plan that takes too long to be proven or bettered."""
CLOSE = 1e-3
"""Part of its value by which a plan is above the bound where levels between the two are none to look at."""
LEAST_LEFT = 0.2
"""Seconds for which a level between the two is looked at no more."""
NEAR = 1e-3
"""Part of a GPU's memory up to which what is left is added up without rounding."""
ROUNDING = 1e-9
"""Part of all GPUs' room that sums of loads may owe to rounding."""


@dataclass(frozen=True, eq=False)
class _Class:
    """GPUs that are alike.

    Attributes
    ----------
    gpus : list of int
    memory : float
        Of each, GB.
    moved : (n,) float
        What is moved with each model that comes, GB.
    """

    gpus: list[int]
    memory: float
    moved: FloatArray


@dataclass(frozen=True, eq=False)
class _Fillings:
    """Ways to fill a GPU of a class: ``members`` (f, d) int, -1 where there are fewer; ``moved`` (f,) float, GB."""

    members: IntArray
    moved: FloatArray


class _Search:
    """Fillings below a level, and the program that chooses among them."""

    def __init__(self, instance: PrismPlacement) -> None:
        self.instance = instance
        # Models without weight and size are anywhere; where moves are limited they move for nothing.
        self.jobs = np.flatnonzero((instance.weights > 0) | (instance.sizes > 0))

    @cached_property
    def classes(self) -> list[_Class]:
        """The classes of the GPUs."""
        instance = self.instance
        alike: dict[tuple[float, int], list[int]] = {}
        limited = math.isfinite(instance.move_limit)
        for gpu, memory in enumerate(instance.memory.tolist()):
            held = limited and bool((instance.current == gpu).any())
            alike.setdefault((memory, gpu if held else -1), []).append(gpu)
        found = []
        for (memory, of), gpus in alike.items():
            away = limited & (instance.current >= 0) & (instance.current != of)
            found.append(_Class(gpus, memory, np.where(away, instance.sizes, 0.0)))
        return found

    def below(self, kind: _Class, level: float) -> _Fillings:
        """Return the fillings of a class that a plan below a level may have."""
        instance = self.instance
        endless = math.isinf(level)
        sizes, weights = instance.sizes[self.jobs], instance.weights[self.jobs]
        loads = sizes if endless else weights / level + sizes
        # At a level everything takes memory: models their size and the cache that their weight is to have.
        spare = math.fsum(instance.memory.tolist()) - math.fsum(loads.tolist())
        slack = ROUNDING * math.fsum(instance.memory.tolist())
        order = np.argsort(-loads, kind="stable")
        ordered = loads[order]
        room = kind.memory + slack
        members = np.zeros((1, 0), np.int64)
        left, last = np.full(1, room), np.full(1, -1)
        found, entries = [], 0
        while len(members):
            clock.check()
            # Loads fall, so that what fits begins at some place and goes on to the end.
            begins = np.maximum(np.searchsorted(-ordered, -left, side="left"), last + 1)
            counts = np.maximum(len(ordered) - begins, 0)
            entries += int(counts.sum()) * (members.shape[1] + 1)
            if entries > MOST:
                raise GaveUp("there are too many ways to fill a GPU")
            parent = np.repeat(np.arange(len(members)), counts)
            number = np.arange(len(parent)) - np.repeat(np.cumsum(counts) - counts, counts) + begins[parent]
            members = np.column_stack([members[parent], number])
            left, last = left[parent] - ordered[number], number
            full = left - slack <= spare + slack
            found.append(self.jobs[order[members[full]]])
        width = max((some.shape[1] for some in found), default=0)
        padded = [np.pad(some, ((0, 0), (0, width - some.shape[1])), constant_values=-1) for some in found]
        all_members = np.concatenate(padded) if padded else np.zeros((0, width), np.int64)
        kept = self._pressures(kind, all_members) < level
        some = all_members[kept]
        return _Fillings(some, np.where(some >= 0, kind.moved[some], 0.0).sum(axis=1))

    def fillings(self, level: float) -> list[_Fillings]:
        """Return the fillings of each class that a plan below a level may have."""
        return [self.below(kind, level) for kind in self.classes]

    def priced(self, session: Session, low: float, high: float) -> float:
        """Return a level between two below which prices prove that there is no plan; the first where none do."""
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            try:
                program = self.program(self.fillings(middle), [])
            except (GaveUp, clock.TimeIsUp):
                break
            found = session.run(replace(program, integer=np.zeros_like(program.integer)))
            low, high = (middle * (1 - STEP), high) if found.status == "infeasible" else (low, middle)
        return low

    def _pressures(self, kind: _Class, members: IntArray) -> FloatArray:
        """(f,) float: the pressure of each filling; infinite where it leaves nothing."""
        instance = self.instance
        there = members >= 0
        free = kind.memory - np.where(there, instance.sizes[members], 0.0).sum(axis=1)
        for filling in np.flatnonzero(np.abs(free) <= NEAR * kind.memory).tolist():
            held = members[filling][there[filling]]
            free[filling] = math.fsum([kind.memory, *(-instance.sizes[held]).tolist()])
        weight = np.where(there, instance.weights[members], 0.0).sum(axis=1)
        pressures: FloatArray = np.divide(weight, free, out=np.full(len(members), np.inf), where=free > 0)
        return pressures

    def program(self, tables: list[_Fillings], refused: list[IntArray]) -> LinearProgram:
        """Return the program that chooses fillings, but no such set as was refused."""
        place = np.full(self.instance.num_jobs, -1)
        place[self.jobs] = np.arange(len(self.jobs))
        rows, columns, values = [], [], []
        first = 0
        for number, table in enumerate(tables):
            filling, at = np.nonzero(table.members >= 0)
            count = len(table.members)
            rows += [place[table.members[filling, at]], np.full(count, len(self.jobs) + number)]
            columns += [first + filling, first + np.arange(count)]
            values += [np.ones(len(filling)), np.ones(count)]
            first += count
        upper = [*np.ones(len(self.jobs)), *(len(kind.gpus) for kind in self.classes)]
        moved = np.concatenate([table.moved for table in tables])
        if moved.any():
            some = np.flatnonzero(moved)
            rows.append(np.full(len(some), len(upper)))
            columns.append(some)
            values.append(moved[some])
            upper.append(widened(self.instance.sizes, self.instance.move_limit))
        for chosen in refused:
            rows.append(np.full(len(chosen), len(upper)))
            columns.append(chosen)
            values.append(np.ones(len(chosen)))
            upper.append(len(chosen) - 1)
        lower = np.concatenate([np.ones(len(self.jobs)), np.full(len(upper) - len(self.jobs), -np.inf)])
        indptr, index, value = csr(np.concatenate(rows), np.concatenate(columns), np.concatenate(values), len(upper))
        return LinearProgram(
            "min", 0.0, np.zeros(first), np.zeros(first), np.ones(first), np.ones(first, bool), indptr, index, value,
            lower, np.array(upper, float),
        )  # fmt: skip

    def plan(self, tables: list[_Fillings], chosen: BoolArray) -> PrismPlacementPlan:
        """Return the plan of chosen fillings."""
        gpus = np.maximum(self.instance.current, 0)
        first = 0
        for kind, table in zip(self.classes, tables, strict=True):
            some = np.flatnonzero(chosen[first : first + len(table.members)]).tolist()
            for gpu, filling in zip(kind.gpus, some, strict=False):
                held = table.members[filling]
                gpus[held[held >= 0]] = gpu
            first += len(table.members)
        return PrismPlacementPlan(gpus=gpus)


def solve(instance: PrismPlacement, options: Options) -> Solution:
    """Look for a plan below the value of the best one so far until there is none."""
    began = time.perf_counter()
    search, session = _Search(instance), options.session()
    best, level, seconds, searches = options.start, math.inf, 0.0, 0
    if isinstance(best, PrismPlacementPlan):
        level = instance.objective(best)
    status: Status = "feasible"
    bound, said = least_level(instance), "time limit"
    weakest: list[Proof] = []
    refused: list[IntArray] = []
    part = max(options.mip_gap, STEP)
    # The level that a plan is to be below: nearly that of the best one, and, once that takes too long, between it and
    # the bound, where fewer fillings are left.
    asked, halving = level * (1 - part), False
    while clock.left() > (LEAST_LEFT if halving else 0):
        if best is not None and agree(level, bound):
            status, said = "optimal", "the bound is met"
            break
        try:
            tables = search.fillings(asked)
        except clock.TimeIsUp:
            break
        program = search.program(tables, refused)
        # Where few fillings are left, prices mostly prove that there is no plan, long before a search would.
        result = session.run(replace(program, integer=np.zeros_like(program.integer)))
        searches, seconds = searches + 1, seconds + result.seconds
        if result.status != "infeasible":
            with clock.within(None if best is None else clock.left() / 2):
                result = session.run(program)
            seconds += result.seconds
        said = f"{program.num_cols:,} fillings: {result.message}"
        last = best is None or asked >= level * (1 - part)
        if result.x is not None:
            chosen = result.x > 0.5
            plan = search.plan(tables, chosen)
            if instance.violations(plan):
                refused.append(np.flatnonzero(chosen))
                continue
            best, level, refused = plan, instance.objective(plan), []
        elif result.status == "infeasible":
            weakest.append(result.proof)
            bound = math.inf if best is None else max(bound, asked * (1 - STEP))
            if last:
                status = "infeasible" if best is None else "optimal" if part == STEP else "feasible"
                break
        elif best is None or math.isinf(clock.left()):
            break
        elif not halving:
            halving = True
            raised = search.priced(session, bound, level)
            if raised > bound:
                weakest.append("prices")
                bound = raised
        else:
            asked, refused = (bound + asked) / 2, []
            continue
        refused = []
        near = bound >= level * (1 - max(part, CLOSE))
        asked = (bound + level) / 2 if halving and not near else level * (1 - part)
    proof: Proof = min(weakest, key=WEAKEST_FIRST.index, default="argument") or "argument"
    if best is None and status != "infeasible":
        raise GaveUp(f"no plan among ways to fill GPUs: {said}")
    return judged(
        instance,
        best,
        Result(status, None, bound, None, seconds, f"{searches} searches; {said}", proof),
        began=began,
        solver="highs",
        solver_version=version(),
        method=FILLINGS.name,
    )


def filling_prices(instance: PrismPlacement, level: float) -> tuple[FloatArray, float]:
    """Return prices by which no plan is below a level, of each model, (n,) float, and of a GB that is moved.

    No filling of a GPU pays more for its models, less what it moves, than the GPU is worth.  Models' prices are from -1
    to 1, and more than all GPUs and the limit of moves are worth by as much as can be; all are 0 where that is nothing,
    or where fillings are too many.
    """
    prices = np.zeros(instance.num_jobs)
    search = _Search(instance)
    try:
        tables = search.fillings(level)
    except GaveUp:
        return prices, 0.0
    fillings = search.program(tables, [])
    # One column for each row of the program over fillings, which has one row for each of its columns.
    rows, count = fillings.num_rows, fillings.num_cols
    models = np.arange(rows) < len(search.jobs)
    filling = np.repeat(np.arange(rows), np.diff(fillings.indptr))
    indptr, index, value = csr(fillings.index, filling, np.where(models[filling], 1.0, -1.0) * fillings.value, count)
    program = LinearProgram(
        "max", 0.0, np.where(models, 1.0, -fillings.row_upper),
        np.where(models, -1.0, 0.0), np.where(models, 1.0, np.inf), np.zeros(rows, bool), indptr, index, value,
        np.full(count, -np.inf), np.zeros(count),
    )  # fmt: skip
    point = Session().run(program).x
    if point is None:
        return prices, 0.0
    prices[search.jobs] = point[models]
    return prices, max(0.0, float(point[-1])) if rows > len(search.jobs) + len(search.classes) else 0.0


FILLINGS = Method(
    name="fillings of GPUs",
    short="fillings",
    proves="the search of the program that chooses fillings, that there are none of a plan below a level",
    where="GPUs that can be filled in few enough ways",
    solve=solve,
)
CHOICE = Choice((FILLINGS, one_model.METHOD))
