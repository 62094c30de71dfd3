"""Prices of the GPUs of slots, for the problems of ElasticFlow: the best of a Lagrangian relaxation.

At prices p[t] of the GPUs each job is alone, and takes the schedule that costs it least, by a table of what can be
done for so much.  A linear program over the schedules met so far has the best prices for them; jobs are asked at these,
until none has a better schedule.  Prices are rounded to parts of a whole number, which keeps tables short.

Best-effort jobs are asked by the exact method (:mod:`formulations.methods.ends`), which divides the plans into parts
where the prices of all of them do not prove enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from formulations.engine.highs import Session
from formulations.engine.linear import LinearProgram, csr
from formulations.methods import ends
from instances.base import TOLERANCE, Plan
from instances.elasticflow.admission import Admission
from instances.elasticflow.allocation import ElasticFlowAllocation
from instances.elasticflow.best_effort import BestEffort
from instances.elasticflow.sharing import DeadlineJobs, SlotPlan
from instances.schema import FloatArray, IntArray

__all__ = ["slot_prices"]

PARTS: dict[type[Any], int] = {Admission: 2400}
"""Parts of a whole number that prices are rounded to: the finer, the smaller prices are beside what is counted."""
COARSE = (24, 240, 2400)
"""The same of best-effort jobs, in the order in which they are tried."""
FEW_PARTS = 24
"""The same where GPU-slots are counted."""
ROUNDS = 40
"""Programs solved before the best prices so far have to do."""
ROUNDING = 1e-12
"""What a value may be off by, relative to itself."""
MOST_PAID = 60_000
"""Greatest length of a table, in parts; a job that cannot be asked has no say."""

Bound = Callable[[dict[str, Any]], Fraction]


def slot_prices(instance: DeadlineJobs[Any], bound: Bound, plan: Plan | None = None) -> dict[str, Any]:
    """Find the prices that prove most, of those met on the way.

    Parameters
    ----------
    instance : DeadlineJobs
        With at least one job.
    bound : callable
        What prices prove.
    plan : Plan, optional
        The best plan known.
    """
    sign = -1 if instance.sense == "max" else 1
    zero = [0.0] * instance.horizon
    if isinstance(instance, BestEffort):
        assert plan is None or isinstance(plan, SlotPlan)
        enough = math.inf if plan is None else instance.objective(plan)
        best = {"slots": zero}, _proven(bound, {"slots": zero}, sign)
        for one in (_rounded(found, parts) for found in ends.prices(instance, plan) for parts in COARSE):
            proven = _proven(bound, one, sign)
            best = (one, proven) if proven > best[1] else best
            if proven >= enough * (1 - ROUNDING):
                break
        return best[0]
    if not isinstance(instance, ElasticFlowAllocation):
        tried = [{"slots": zero}, *({"slots": found} for found in _Relaxation(instance).best())]
        return min(tried, key=lambda one: -sign * _proven(bound, one, sign))
    # Both kinds of plans have prices of their own, and the one that proves less counts.
    full = [zero, *_Relaxation(instance, full=True).best()]
    idle = [zero, *_Relaxation(instance, full=False).best()]
    best_full = max(full, key=lambda one: _proven(bound, {"full": one, "idle": idle[-1]}, sign))
    best_idle = max(idle, key=lambda one: _proven(bound, {"full": best_full, "idle": one}, sign))
    return {"full": best_full, "idle": best_idle}


def _rounded(prices: dict[str, Any], parts: int) -> dict[str, Any]:
    """Return prices, or those of parts of the plans, in parts of a whole number."""
    if "slots" in prices:
        return {"slots": [round(price * parts) / parts for price in prices["slots"]]}
    return prices | {half: _rounded(prices[half], parts) for half in ("sooner", "later")}


def _proven(bound: Bound, found: dict[str, Any], sign: int) -> float:
    try:
        return float(bound(found))
    except ValueError:
        return -sign * math.inf


class _Relaxation:
    """Jobs that meet in the capacities of slots alone."""

    def __init__(self, instance: DeadlineJobs[Any], *, full: bool | None = None) -> None:
        self.instance = instance
        self.full = full
        self.parts = PARTS.get(type(instance), FEW_PARTS)
        self.base = 1 if instance.sense == "min" else 0
        self.chosen: list[tuple[int, float, IntArray]] = []

    def best(self) -> list[list[float]]:
        """Prices that were best on the way, the very best last."""
        instance = self.instance
        slots = np.zeros(instance.horizon)
        most, found = -math.inf, [slots.tolist()]
        for _ in range(ROUNDS):
            rounded = np.rint(slots * self.parts)
            value, new = self._ask(rounded)
            if value > most:
                most = value
                found.append((rounded / self.parts).tolist())
            if not new:
                break
            slots = self._prices()
        return found[-3:]

    def _ask(self, rounded: FloatArray) -> tuple[float, bool]:
        """Solve the relaxation at prices; return its value, in parts, and whether a schedule was new."""
        instance = self.instance
        value, new = -instance.num_gpus * float(rounded.sum()), False
        for job in range(instance.num_jobs):
            asked = self._schedule(job, rounded)
            if asked is None:
                continue
            paid, cost, gpus = asked
            if isinstance(instance, Admission):
                if paid >= self.parts:
                    continue
                value += paid - self.parts
            else:
                value += paid
            if not any(job == known and np.array_equal(gpus, row) for known, _, row in self.chosen):
                self.chosen.append((job, cost, gpus))
                new = True
        return value, new

    def _schedule(self, job: int, rounded: FloatArray) -> tuple[float, float, IntArray] | None:
        """Cheapest schedule of a job: what it pays, in parts, what it costs by itself, and its GPUs; None for none."""
        instance = self.instance
        deadline, speeds = int(instance.deadlines[job]), instance.throughputs[job]
        must = instance.iterations[job] * (1 - TOLERANCE)
        prices = (self.base * self.parts + rounded[:deadline]).astype(int)
        none = np.zeros(instance.horizon, np.int64)
        first = np.arange(instance.num_gpus + 1)
        if self.full is False and isinstance(instance, ElasticFlowAllocation):
            gains = np.append(instance.gains[job], False)
            first = first[~gains]
        if not instance.iterations[job] and self.full is None:
            return 0.0, 0.0, none
        length = int(np.maximum(prices[1:], 0).sum() * instance.num_gpus) + 1
        # Whoever pays for admission what it is worth need not be admitted.
        length = min(length, self.parts + 1 if isinstance(instance, Admission) else MOST_PAID)
        table = np.zeros(length)
        steps: list[IntArray] = []
        best: tuple[float, int, int, int] | None = None  # paid, end, GPUs in slot 0, place in the table
        for end in range(1, deadline + 1):
            if end > 1:
                price = int(prices[end - 1])
                after, choice = table + speeds[0], np.zeros(length, np.int64)
                for gpus in range(1, instance.num_gpus + 1):
                    shift = price * gpus
                    if shift >= length:
                        break
                    done = table[: length - shift] + speeds[gpus]
                    better = done > after[shift:]
                    after[shift:] = np.where(better, done, after[shift:])
                    choice[shift:] = np.where(better, gpus, choice[shift:])
                table = after
                steps.append(choice)
            if end < deadline:
                continue
            # Tables rise: what can be done for less can be done for more.
            risen = np.maximum.accumulate(table)
            for start in first.tolist():
                left = must - speeds[start]
                at = int(np.searchsorted(risen, left, side="left")) if left > 0 else 0
                if at < length:
                    paid = float(prices[0] * start + at)
                    if best is None or paid < best[0]:
                        best = (paid, end, start, at)
        if best is None:
            return None
        paid, end, start, at = best
        held = none.copy()
        held[0] = start
        for slot in range(end - 1, 0, -1):
            held[slot] = steps[slot - 1][at]
            at -= int(prices[slot]) * int(held[slot])
        return paid, float(self.base * held.sum()), held

    def _prices(self) -> FloatArray:
        """Prices of the slots in the linear program over the schedules so far."""
        instance = self.instance
        n, h = instance.num_jobs, instance.horizon
        count = len(self.chosen)
        jobs = np.array([job for job, _, _ in self.chosen])
        admitting = isinstance(instance, Admission)
        cost = np.array([-1.0 if admitting else own for _, own, _ in self.chosen])
        used = np.array([gpus for _, _, gpus in self.chosen], float).reshape(count, h)
        # Slots may be overrun, and slot 0 underrun where it must be full, at a price beyond any that is needed.
        dear = 2.0 if admitting else 2.0 * instance.num_gpus
        rows: list[Any] = [jobs, *(np.full(count, n + slot) for slot in range(h)), n + np.arange(h), [n]]
        columns: list[Any] = [
            np.arange(count),
            *(np.arange(count) for _ in range(h)),
            count + np.arange(h),
            [count + h],
        ]
        values: list[Any] = [np.ones(count), *used.T, -np.ones(h), [1.0]]
        indptr, index, value = csr(np.concatenate(rows), np.concatenate(columns), np.concatenate(values), n + h)
        lower = np.full(n + h, -np.inf)
        asked = np.bincount(jobs, minlength=n) > 0
        lower[:n] = np.where(asked & (not admitting), 1.0, -np.inf)
        if self.full:
            lower[n] = instance.num_gpus
        result = Session().run(
            LinearProgram(
                sense="min",
                offset=0.0,
                cost=np.concatenate([cost, np.full(h + 1, dear)]),
                col_lower=np.zeros(count + h + 1),
                col_upper=np.full(count + h + 1, np.inf),
                integer=np.zeros(count + h + 1, bool),
                indptr=indptr,
                index=index,
                value=value,
                row_lower=lower,
                row_upper=np.concatenate([np.ones(n), np.full(h, float(instance.num_gpus))]),
            )
        )
        assert result.certificate is not None
        found = -result.certificate.row_duals[n:]
        found[1:] = np.maximum(found[1:], 0.0)
        if not self.full:
            found[0] = max(found[0], 0.0)
        return found
