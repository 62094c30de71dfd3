"""AFS: Algorithm 1 with formula (3), the examples of Appendix A, and the construction of Appendix E."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations
from typing import Any

import pytest

from instances.reference import Reference

from .stored import judges, stored

Data = dict[str, Any]
Shares = tuple[int, ...]

# --- Algorithm 1 (section 3.3) ---------------------------------------------------------------------


def length(data: Data, job: int, gpus: int) -> Fraction | float:
    return Fraction(data["work"][job]) / Fraction(data["throughputs"][job][gpus]) if gpus else math.inf


def formula_3(data: Data, shares: Shares, a: int, b: int) -> bool:
    """Whether the longer job b gains more of what it then has than the shorter job a of what it has."""
    p_a, more_a = (Fraction(data["throughputs"][a][shares[a] + extra]) for extra in (0, 1))
    p_b, more_b = (Fraction(data["throughputs"][b][shares[b] + extra]) for extra in (0, 1))
    return (more_b - p_b) * p_a > (more_a - p_a) * more_b


def preferred(data: Data, shares: Shares, star: int, job: int) -> int:
    """Lines 4 to 12."""
    a, b = star, job
    if shares[a] == shares[b] == 0:
        return a if length(data, a, 1) < length(data, b, 1) else b
    if length(data, a, shares[a]) >= length(data, b, shares[b]):
        a, b = b, a
    return b if formula_3(data, shares, a, b) else a


def passed_through(data: Data) -> Iterator[Shares]:
    """The shares that AFS-L passes through and ends at, whatever the order in which jobs are looked at."""
    n, reached = len(data["work"]), {(0,) * len(data["work"])}
    for _ in range(data["num_gpus"]):
        further = set()
        for shares in reached:
            yield shares
            for order in permutations(range(n)):
                star = order[0]
                for job in order[1:]:
                    star = preferred(data, shares, star, job)
                further.add(tuple(count + (job == star) for job, count in enumerate(shares)))
        reached = further
    yield from reached


@judges("afs/elastic_sharing/afs_l_stage_one-2")
def test_a_job_is_left_without_a_gpu(data: Data, reference: Reference) -> None:
    ends = {shares for shares in passed_through(data) if sum(shares) == data["num_gpus"]}
    assert ends == {(0, 2), (2, 0)}


@judges(
    "afs/elastic_sharing/priority_comparison_transitive-1",
    "afs/elastic_sharing/priority_comparison_transitive-2",
)
def test_preferences_go_round(data: Data, reference: Reference) -> None:
    def goes_round(shares: Shares) -> bool:
        # A job without another GPU to win on has no place in a comparison.
        return sum(shares) < data["num_gpus"] and any(
            preferred(data, shares, a, b) == preferred(data, shares, b, a) == a
            and preferred(data, shares, b, c) == preferred(data, shares, c, b) == b
            and preferred(data, shares, c, a) == preferred(data, shares, a, c) == c
            for a, b, c in permutations(range(3))
        )

    assert any(map(goes_round, set(passed_through(data))))


# --- Appendix A ------------------------------------------------------------------------------------


def simulated(data: Data, *, equally: bool) -> set[float]:
    """The average completion times, s, of equal shares of two GPUs, those that came first where there are more jobs, or
    of both GPUs for the job with the least time left on them, whichever it is where several tie."""
    found = set()

    def go(now: float, left: list[float], ended: dict[int, float]) -> None:
        if len(ended) == len(left):
            found.add(round(sum(ended[job] - data["arrivals"][job] for job in ended) / len(ended), 6))
            return
        here = [job for job in range(len(left)) if job not in ended and data["arrivals"][job] <= now + 1e-9]
        coming = [time for time in data["arrivals"] if time > now + 1e-9]
        if equally:
            choices = [{here[0]: 2} if len(here) == 1 else dict.fromkeys(here[:2], 1)]
        else:
            times = {job: left[job] / data["throughputs"][job][2] for job in here}
            choices = [{job: 2} for job in here if times[job] <= min(times.values()) + 1e-6] or [{}]
        for gpus in choices:
            rates = {job: data["throughputs"][job][count] for job, count in gpus.items()}
            ends = {job: now + left[job] / rate for job, rate in rates.items()}
            then = min([*ends.values(), *coming])
            rest = [each - rates.get(job, 0.0) * (then - now) for job, each in enumerate(left)]
            go(then, rest, ended | {job: then for job in ends if ends[job] <= then + 1e-9})

    go(0.0, list(data["work"]), {})
    return found


@judges("afs/elastic_sharing/appendix_a_1_25_hours-1")
def test_the_optimum_is_an_hour_and_three_quarters(data: Data, reference: Reference) -> None:
    assert float(reference.optimum()) == pytest.approx(1.75 * 3600, rel=1e-12)


@judges("afs/elastic_sharing/appendix_a_sequel-1", "afs/elastic_sharing/appendix_a_sequel-3")
def test_equal_shares_are_later(data: Data, reference: Reference) -> None:
    assert min(simulated(data, equally=True)) > 1.01 * max(simulated(data, equally=False))


def test_the_simulation_is_that_of_the_appendix() -> None:
    """Jobs A and B alone: both GPUs for A and then for B, or one for each."""
    data, _ = stored("afs/elastic_sharing/appendix_a_1_25_hours-1")
    assert simulated(data, equally=False) == {1.75 * 3600}
    assert simulated(data, equally=True) == {2 * 3600}


# --- Appendix E ------------------------------------------------------------------------------------


def constructions(data: Data) -> set[Shares]:
    """Shares rounded down to 1, 2, 4, ... GPUs or whole machines, and grown until all GPUs are used, whichever grow."""
    machine, gpus = data["gpus_per_machine"], data["num_machines"] * data["gpus_per_machine"]
    regulated = [2**k for k in range(machine.bit_length()) if 2**k < machine] + list(range(machine, gpus + 1, machine))
    start = tuple(max(count for count in regulated if count <= share) for share in data["shares"])
    found, waiting = set(), {start}
    while waiting:
        shares = waiting.pop()
        if sum(shares) == gpus:
            found.add(shares)
        for job, share in enumerate(shares):
            further = [count for count in regulated if share < count <= share + gpus - sum(shares)]
            if further:
                waiting.add((*shares[:job], further[0], *shares[job + 1 :]))
    return found


@judges("afs/network_packing/regulation_least_difference-1", "afs/network_packing/difference_bound-3")
def test_the_wrong_job_grows(data: Data, reference: Reference) -> None:
    grown = constructions(data)
    assert (2, 2, 4) in grown
    assert reference.violations({"regulated": [2, 2, 4]}) == []
    assert reference.value({"regulated": [2, 2, 4]}) == 4
    assert min(reference.value({"regulated": list(shares)}) for shares in grown) == reference.optimum() == 2
    # Job 2 gains 2 GPUs, on machines of which no job may lose as many.
    assert 4 - data["shares"][2] > data["gpus_per_machine"] - 1


# --- two jobs of known length (section 3.2) --------------------------------------------------------


def average(data: Data, shares: Shares) -> Fraction:
    """The average completion time of two jobs that start with these shares; who is left has all GPUs."""
    work = [Fraction(each) for each in data["work"]]
    rates = [Fraction(row[count]) for row, count in zip(data["throughputs"], shares, strict=True)]
    soon = min((job for job in (0, 1) if rates[job]), key=lambda job: work[job] / rates[job])
    now = work[soon] / rates[soon]
    rest = (work[1 - soon] - rates[1 - soon] * now) / Fraction(data["throughputs"][1 - soon][data["num_gpus"]])
    return (now + now + rest) / 2


def gain(data: Data, shares: Shares, a: int, b: int) -> Fraction:
    """Formula (1) where a completes first in both cases, else (2), of the GPUs shared out and one more."""
    gpus = sum(shares) + 1
    w_a, w_b = (Fraction(data["work"][job]) for job in (a, b))
    p_a, more_a = (Fraction(data["throughputs"][a][shares[a] + extra]) for extra in (0, 1))
    p_b, more_b = (Fraction(data["throughputs"][b][shares[b] + extra]) for extra in (0, 1))
    a_2, b_2 = (Fraction(data["throughputs"][job][gpus]) for job in (a, b))
    if w_a / p_a <= w_b / more_b:
        return w_a / more_a - w_a / p_a + w_a / (2 * b_2) * (more_b / p_a - p_b / more_a)
    mine = p_a / (2 * a_2) * (w_a / p_a - w_b / more_b)
    if not p_b:
        return w_a / more_a - w_b / more_b + w_b / (2 * b_2) - mine
    return w_a / more_a - w_b / more_b + p_b / (2 * b_2) * (w_b / p_b - w_a / more_a) - mine


def grown(data: Data) -> set[Shares]:
    """The shares to which the rule leads from one GPU on, ties either way."""
    alone = [length(data, job, 1) for job in (0, 1)]
    reached = {(1, 0)} if alone[0] < alone[1] else {(0, 1)} if alone[1] < alone[0] else {(1, 0), (0, 1)}
    for _ in range(data["num_gpus"] - 1):
        further = set()
        for shares in reached:
            now = [length(data, job, shares[job]) for job in (0, 1)]
            for a in (job for job in (0, 1) if now[job] == min(now)):
                found = gain(data, shares, a, 1 - a)
                for job in (a,) if found < 0 else (1 - a,) if found > 0 else (0, 1):
                    further.add(tuple(count + (one == job) for one, count in enumerate(shares)))
        reached = further
    return reached


@judges("afs/elastic_sharing/two_job_rule_least_time-1", "afs/elastic_sharing/two_job_rule_least_time-2")
def test_the_rule_is_not_the_optimum(data: Data, reference: Reference) -> None:
    assert grown(data) == {(1, 1)}
    assert min(average(data, ends) for ends in ((0, 2), (1, 1), (2, 0))) == reference.optimum()
    assert average(data, (1, 1)) > reference.optimum()


@judges("afs/elastic_sharing/two_job_rule_least_time-3")
def test_the_rule_is_not_best_of_positive_shares(data: Data, reference: Reference) -> None:
    assert grown(data) == {(1, 2)}
    assert (average(data, (1, 2)), average(data, (2, 1))) == (Fraction(5, 4), Fraction(7, 6))
