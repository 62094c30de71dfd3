"""What a job of ElasticFlow pays at the least for its iterations, where a GPU has a price in each slot.

Let a GPU cost pi_t in slot t.  A job that is done after e slots pays for whole GPUs in the slots before e, of which
each does the work of its place on the job's curve:

    least(e)  =  min  sum_{t<e} pi_t x(t)    with    sum_{t<e} T(x(t)) >= M,   x(t) whole.

Mixed numbers of GPUs, along the curve's concave hull, cost no more: the steps of all slots are taken in order of price
for the work, the last in part.  Whole numbers are found slot by slot, among pairs of what is paid and what is done;
a pair that another beats, or that ends dearer than a plan at hand by what the rest costs in mixed numbers, is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from instances.base import TOLERANCE
from instances.elasticflow.sharing import DeadlineJobs
from instances.hulls import upper_hull
from instances.schema import FloatArray, IntArray

__all__ = ["Paid", "Payer", "payers"]

MOST_PAIRS = 2000
"""Pairs of paid and done after which whole numbers of GPUs are given up, and mixed ones prove the bound."""


@dataclass(frozen=True)
class Paid:
    """The way of a job that costs least, by some prices.

    Attributes
    ----------
    least : float
        No way costs less; infinite where there is none.
    end : int
        Slots until it is done.
    gpus : (end,) int
        Whole GPUs in each slot, which cost ``least`` or little more.
    """

    least: float
    end: int
    gpus: IntArray


@dataclass(frozen=True, eq=False)
class Payer:
    """One job, as far as it is to be paid for.

    Attributes
    ----------
    counts : (c,) int
        Numbers of GPUs on which the job does more than on fewer, 0 the first.
    works : (c,) float
        Iterations in a slot on each.
    need : float
        Iterations to do, a little less than the judge asks for.
    """

    counts: IntArray
    works: FloatArray
    need: float

    @cached_property
    def _steps(self) -> tuple[FloatArray, FloatArray]:
        """GPUs and work of each step of the concave hull, the steepest first."""
        hull = upper_hull(self.counts, self.works)
        return np.diff(self.counts[hull]).astype(float), np.diff(self.works[hull])

    def _in_order(self, prices: FloatArray) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """Slot, GPUs, work and price of the steps of all slots, the cheapest work first."""
        widths, gains = self._steps
        rate = np.multiply.outer(prices, widths / gains).ravel()
        # Within a slot the steeper step comes first even where both are free.
        order = np.argsort(rate, kind="stable")
        slots = np.repeat(np.arange(len(prices)), len(gains))[order]
        gains, widths = np.tile(gains, len(prices))[order], np.tile(widths, len(prices))[order]
        return slots, widths, gains, rate[order] * gains

    def cheapest(self, prices: FloatArray, first: int, last: int, each: float, *, whole: bool) -> Paid:
        """Return the cheapest way to be done after ``first`` to ``last`` slots, each slot until then at a cost.

        Parameters
        ----------
        prices : (h,) float
            Of a GPU in each slot, at least 0.
        first, last : int
            Where the job is done sooner than ``first``, the slots until then cost all the same.
        each : float
            Cost of a slot until the job is done.
        whole : bool
            Whether the bound is that of whole GPUs, as far as that is found, rather than of mixed numbers.
        """
        ahead = first
        while True:
            steps = self._in_order(prices[:ahead])
            mixed = [(each * end + self._mixed(steps, end), end) for end in range(first, ahead + 1)]
            # Later ends cost more in slots alone.
            if ahead == last or (each > 0 and min(mixed)[0] <= each * ahead):
                break
            ahead = min(last, 2 * ahead + 8)
        best = Paid(np.inf, last, np.zeros(0, np.int64))
        for low, end in sorted(mixed):
            if low >= best.least:
                break
            gpus = self._rounded_up(steps, end)
            bound = cost = each * end + float(prices[:end] @ gpus)
            if not whole:
                return Paid(low, end, gpus)
            found = self._whole(prices[:end], min(cost, best.least) - each * end)
            if found is None:
                bound = low
            elif found[1] is not None:
                bound, gpus = each * end + found[0], found[1]
            if bound < best.least:
                best = Paid(bound, end, gpus)
        return best

    def _mixed(self, steps: tuple[IntArray, FloatArray, FloatArray, FloatArray], end: int) -> float:
        """Return what mixed numbers of GPUs in the slots before ``end`` cost at the least."""
        slots, _, gains, costs = steps
        early = slots < end
        done, paid = _summed(gains[early]), _summed(costs[early])
        return float(np.interp(self.need, done, paid)) if done[-1] >= self.need else np.inf

    def _rounded_up(self, steps: tuple[IntArray, FloatArray, FloatArray, FloatArray], end: int) -> IntArray:
        """Return whole GPUs in each slot before ``end``: the steps that are cheapest, the last as far as is needed."""
        slots, widths, gains, _ = steps
        early = np.flatnonzero(slots < end)
        done = np.cumsum(gains[early])
        last = min(int(np.searchsorted(done, self.need)), len(early) - 1)
        taken = early[:last]
        gpus = np.bincount(slots[taken], weights=widths[taken], minlength=end).round().astype(np.int64)
        slot = slots[early[last]]
        before = self.works[np.searchsorted(self.counts, gpus[slot])]
        needed = before + self.need - (done[last - 1] if last else 0.0)
        gpus[slot] = self.counts[min(int(np.searchsorted(self.works, needed)), len(self.counts) - 1)]
        return gpus

    def _whole(self, prices: FloatArray, enough: float) -> tuple[float, IntArray | None] | None:
        """Return the least paid for whole GPUs in all slots, and these; without them where it is ``enough`` or more.

        None where the pairs are too many.
        """
        rests = [self._rest(prices[slot:]) for slot in range(1, len(prices) + 1)]
        paid, done = np.zeros(1), np.zeros(1)
        trail: list[tuple[IntArray, IntArray]] = []
        for price, (some_done, some_paid) in zip(prices.tolist(), rests, strict=True):
            options = np.arange(len(self.counts)) if price > 0 else np.array([len(self.counts) - 1])
            pays = (paid[:, None] + price * self.counts[options]).ravel()
            does = np.minimum((done[:, None] + self.works[options]).ravel(), self.need)
            left = self.need - does
            low = pays + np.interp(left, some_done, some_paid)
            kept = np.flatnonzero((low < enough) & (left <= some_done[-1]))
            kept = kept[np.lexsort((-does[kept], pays[kept]))]
            most = np.maximum.accumulate(does[kept])
            kept = kept[np.diff(most, prepend=-1.0) > 0]
            if not len(kept):
                return enough, None
            if len(kept) > MOST_PAIRS:
                return None
            paid, done = pays[kept], does[kept]
            trail.append((kept // len(options), options[kept % len(options)]))
        at = int(np.argmax(done >= self.need))
        least, gpus = float(paid[at]), np.zeros(len(prices), np.int64)
        for slot in range(len(prices) - 1, -1, -1):
            before, option = trail[slot]
            gpus[slot], at = self.counts[option[at]], int(before[at])
        return least, gpus

    def _rest(self, prices: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return work, and what it costs in mixed numbers of GPUs, in some slots."""
        _, _, gains, costs = self._in_order(prices)
        return _summed(gains), _summed(costs)


def _summed(values: FloatArray) -> FloatArray:
    """Return the sums of the first values, none of them first."""
    sums: FloatArray = np.concatenate([[0.0], np.cumsum(values)])
    return sums


def payers(instance: DeadlineJobs) -> list[Payer]:  # type: ignore[type-arg]
    """Return the jobs of an instance."""
    rises = np.diff(instance.best_throughputs, axis=1, prepend=-1.0) > 0
    # A little less, because the judge lets work be missed by its tolerance.
    needs = instance.iterations * (1 - 3 * TOLERANCE)
    rows = zip(rises, instance.best_throughputs, needs.tolist(), strict=True)
    return [Payer(np.flatnonzero(rise), curve[rise], need) for rise, curve, need in rows]
