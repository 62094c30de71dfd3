"""ElasticFlow: Algorithm 1 line by line, Algorithm 2 where one job is there, the EDF condition and best fit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from copy import copy
from fractions import Fraction
from itertools import pairwise, permutations, product
from typing import Any

from instances.reference import Reference

from .stored import judges

Data = dict[str, Any]

# --- Algorithm 1 (section 4.1) ---------------------------------------------------------------------


def progressive_filling(
    data: Data, order: Sequence[int], *, backwards: bool = True, levels: Sequence[int] | None = None
) -> list[list[int]] | None:
    """Lines 11 to 22 for each job in order, whose slots keep what lower levels put there."""
    gpus, last = data["num_gpus"], max(data["deadlines"])
    plan = [[0] * last for _ in order]
    for place, job in enumerate(order):
        done = False
        slots = range(data["deadlines"][job])
        for level in levels or range(1, gpus + 1):
            for slot in reversed(slots) if backwards else slots:
                plan[job][slot] = min(level, gpus - sum(plan[earlier][slot] for earlier in order[:place]))
                if sum(data["throughputs"][job][count] for count in plan[job]) >= data["iterations"][job]:
                    done = True
                    break
            if done:
                break
        if not done:
            return None
    return plan


def by_deadline(data: Data) -> list[tuple[int, ...]]:
    """All orders of the jobs by deadline, ties either way."""
    due = data["deadlines"]
    orders = permutations(range(len(due)))
    return [order for order in orders if all(due[a] <= due[b] for a, b in pairwise(order))]


@judges("elasticflow/minimum_satisfactory_share/progressive_filling_complete-1")
def test_backwards_it_finds_no_plan(data: Data, reference: Reference) -> None:
    assert [progressive_filling(data, order) for order in by_deadline(data)] == [None] * 2
    assert reference.optimum() == 6


@judges("elasticflow/minimum_satisfactory_share/progressive_filling_complete-2")
def test_forwards_it_finds_no_plan(data: Data, reference: Reference) -> None:
    assert [progressive_filling(data, order, backwards=False) for order in by_deadline(data)] == [None]
    assert reference.optimum() == 6


@judges("elasticflow/minimum_satisfactory_share/progressive_filling_least_gpu_time-2")
def test_its_shares_take_more_gpu_time(data: Data, reference: Reference) -> None:
    plans = [progressive_filling(data, order) for order in by_deadline(data)]
    assert all(plan is not None and reference.violations({"gpus": plan}) == [] for plan in plans)
    assert [sum(map(sum, plan)) for plan in plans if plan] == [6, 6]
    assert reference.optimum() == 5


@judges("elasticflow/minimum_satisfactory_share/powers_of_two_stay_powers_of_two-2")
def test_line_15_gives_three_gpus(data: Data, reference: Reference) -> None:
    plans = [progressive_filling(data, order, levels=(1, 2, 4)) for order in by_deadline(data)]
    assert plans == [[[3, 4], [1, 0]]]


@judges("elasticflow/minimum_satisfactory_share/edf_condition_sufficient-2")
def test_whole_gpus_are_not_enough(data: Data, reference: Reference) -> None:
    # Linear curves: a job's GPU time is its iterations over those of a GPU and slot.
    needed = [
        Fraction(work) / Fraction(row[1]) for work, row in zip(data["iterations"], data["throughputs"], strict=True)
    ]
    for due in data["deadlines"]:
        earlier = [need for need, other in zip(needed, data["deadlines"], strict=True) if other <= due]
        assert sum(earlier) <= data["num_gpus"] * due
    assert math.isinf(reference.optimum())


# --- Algorithm 2 (section 4.2), of one job ---------------------------------------------------------


def finish(data: Data, row: Sequence[int], *, moment: bool) -> Fraction:
    """The end of a job's last slot, or the moment in it at which its iterations are done."""
    left = Fraction(data["iterations"][0])
    for slot, count in enumerate(row):
        rate = Fraction(data["throughputs"][0][count])
        if rate and left <= rate:
            return slot + (left / rate if moment else Fraction(1))
        left -= rate
    raise AssertionError("not done")


def of_one_job(data: Data, *, moment: bool) -> list[list[int]]:
    """Lines 1 to 24: the job's GPUs in slot 0 grow while that makes it finish sooner, the other slots filled anew."""
    plan = progressive_filling(data, [0])
    assert plan is not None
    while plan[0][0] < data["num_gpus"]:
        head = plan[0][0] + 1
        rest = Fraction(data["iterations"][0]) - Fraction(data["throughputs"][0][head])
        row = [head, *[0] * (len(plan[0]) - 1)]
        for level, slot in product(range(1, data["num_gpus"] + 1), reversed(range(1, len(row)))):
            if sum(Fraction(data["throughputs"][0][count]) for count in row[1:]) < rest:
                row[slot] = level
        if finish(data, row, moment=moment) >= finish(data, plan[0], moment=moment):
            break
        plan = [row]
    return plan


def _leaves_gpus_idle(data: Data, reference: Reference, *, moment: bool) -> None:
    plan = of_one_job(data, moment=moment)
    assert plan[0][0] < data["num_gpus"]
    assert data["throughputs"][0][plan[0][0] + 1] > data["throughputs"][0][plan[0][0]]
    assert reference.violations({"gpus": plan}) == ["no_useful_idle_gpu"]


@judges("elasticflow/allocation/algorithm_2_least_gpu_time-1", "elasticflow/allocation/algorithm_2_uses_idle_gpus-1")
def test_by_last_slots_a_useful_gpu_is_idle(data: Data, reference: Reference) -> None:
    _leaves_gpus_idle(data, reference, moment=False)


@judges("elasticflow/allocation/algorithm_2_least_gpu_time-2", "elasticflow/allocation/algorithm_2_uses_idle_gpus-2")
def test_by_moments_a_useful_gpu_is_idle(data: Data, reference: Reference) -> None:
    _leaves_gpus_idle(data, reference, moment=True)


# --- Algorithm 2 (section 4.2), of several jobs ----------------------------------------------------


class Growth:
    """The variables of Algorithm 2: a, x, the queue and G, with what lines 10, 15 and 23 are taken to read."""

    def __init__(self, data: Data, order: Sequence[int], finish: str, free: str) -> None:
        self.data, self.order, self.test, self.reads = data, order, finish, free
        filled = progressive_filling(data, order)
        assert filled is not None
        self.a = [list(row) for row in filled]
        self.x = [list(row) for row in filled]
        self.left = data["num_gpus"]
        self.queue: dict[int, int] = {}

    def copy(self) -> Growth:
        other = copy(self)
        other.a, other.x = [list(row) for row in self.a], [list(row) for row in self.x]
        other.queue = dict(self.queue)
        return other

    def work(self, job: int, row: Sequence[int]) -> list[Fraction]:
        return [Fraction(self.data["throughputs"][job][count]) for count in row]

    def end(self, job: int, row: Sequence[int]) -> Fraction:
        left = Fraction(self.data["iterations"][job])
        for slot, rate in enumerate(self.work(job, row)):
            if rate and left <= rate:
                return slot + (left / rate if self.test == "moment" else Fraction(1))
            left -= rate
        raise AssertionError("not done")

    def room(self, job: int, slot: int) -> int:
        """Line 15."""
        earlier = self.order[: self.order.index(job)]
        if self.reads == "all others":
            return int(self.data["num_gpus"]) - sum(self.a[other][slot] for other in self.order if other != job)
        gpus = self.left if self.reads == "printed" else int(self.data["num_gpus"])
        return max(0, gpus - sum(self.x[other][slot] for other in earlier))

    def enter(self, job: int) -> None:
        """Lines 7 to 11, or 20 to 24."""
        now, due = self.a[job][0] + 1, self.data["deadlines"][job]
        if now > self.data["num_gpus"]:
            return
        row = self.x[job] = [now, *[0] * (len(self.a[job]) - 1)]
        needed = Fraction(self.data["iterations"][job])
        room = [self.room(job, slot) for slot in range(due)]
        for level, slot in product(range(1, self.data["num_gpus"] + 1), reversed(range(1, due))):
            if sum(self.work(job, row)) < needed:
                row[slot] = min(level, room[slot])
        if sum(self.work(job, row)) < needed:
            return
        if self.test == "rate":
            rates = self.data["throughputs"][job]
            sooner = rates[now] > rates[now - 1]
        else:
            sooner = self.end(job, row) < self.end(job, self.a[job])
        if sooner:
            self.queue[job] = sum(self.a[job]) - sum(row)

    def outcomes(self, *, anew: bool) -> Iterator[list[list[int]]]:
        """Lines 12 to 24, every way to break ties; with ``anew`` all plans and priorities are made before each."""
        if anew:
            for job in list(self.queue):
                del self.queue[job]
                self.enter(job)
        if not self.left or not self.queue:
            yield self.a
            return
        for job in [one for one in self.queue if self.queue[one] == max(self.queue.values())]:
            then = self.copy()
            del then.queue[job]
            then.a[job] = list(then.x[job])
            then.left -= 1
            then.enter(job)
            yield from then.outcomes(anew=anew)


def algorithm_2(data: Data, finish: str, free: str, *, anew: bool = False) -> list[list[list[int]]]:
    """The plans to which Algorithm 2 can lead, for every order of jobs of one deadline and every tie."""
    found = []
    for order in by_deadline(data):
        growth = Growth(data, order, finish, free)
        for job in order:
            growth.left -= growth.a[job][0]
            growth.enter(job)
        found += growth.outcomes(anew=anew)
    return found


@judges("elasticflow/allocation/algorithm_2_least_gpu_time-3", "elasticflow/allocation/algorithm_2_least_gpu_time-4")
def test_it_takes_more_gpu_time_however_ties_are_broken(data: Data, reference: Reference) -> None:
    for anew in (False, True):
        plans = algorithm_2(data, "rate", "all others", anew=anew)
        assert plans
        assert min(sum(map(sum, plan)) for plan in plans if not reference.violations({"gpus": plan})) == 6
    assert reference.optimum() == 5


def _more_than_there_is(data: Data, reference: Reference, finish: str, free: str) -> None:
    plans = algorithm_2(data, finish, free)
    assert plans
    assert all("capacity" in reference.violations({"gpus": plan}) for plan in plans)


@judges("elasticflow/allocation/algorithm_2_keeps_deadlines-1")
def test_by_last_slots_it_hands_out_too_many(data: Data, reference: Reference) -> None:
    _more_than_there_is(data, reference, "slot", "printed")


@judges("elasticflow/allocation/algorithm_2_keeps_deadlines-2")
def test_by_moments_it_hands_out_too_many(data: Data, reference: Reference) -> None:
    _more_than_there_is(data, reference, "moment", "printed")


@judges("elasticflow/allocation/algorithm_2_keeps_deadlines-4")
def test_by_rates_it_hands_out_too_many(data: Data, reference: Reference) -> None:
    _more_than_there_is(data, reference, "rate", "earlier")


# --- placement (section 4.3) -----------------------------------------------------------------------


@judges("elasticflow/placement/best_fit_highest_bandwidth-2")
def test_best_fit_may_spread_a_job(data: Data, reference: Reference) -> None:
    held = {int(offset) for offset in data["previous_offsets"] if offset is not None}
    trees = [range(start, start + width) for width in (1, 2, 4, 8) for start in range(0, 8, width)]
    idle = {tree: len(set(tree) - held) for tree in trees}
    room = [tree for tree in trees if idle[tree] >= data["sizes"][-1]]
    best = [tree for tree in room if idle[tree] == min(idle[one] for one in room)]
    # In the first four GPUs, of which two are idle, no subtree of two has room.
    assert range(4) in best
    assert not any(tree.stop <= 4 and len(tree) == 2 for tree in room)
    assert any(len(tree) == 2 for tree in room)


@judges("elasticflow/placement/buddy_servers-2")
def test_two_servers_of_three_hold_no_three_pairs(data: Data, reference: Reference) -> None:
    sizes, server = data["sizes"], data["num_gpus"] // 2
    assert sum(sizes) <= data["num_gpus"]
    for chosen in product((0, 1), repeat=len(sizes)):
        loads = [sum(size for size, where in zip(sizes, chosen, strict=True) if where == one) for one in (0, 1)]
        assert max(loads) > server
