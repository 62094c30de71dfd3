"""Gavel: all vertices of the allocations that are best by a printed objective, the split of section 4.4, and rounds.

What holds at every vertex where an objective is greatest, and is linear, holds for every optimal allocation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import permutations
from typing import Any

from instances.reference import Reference

from .exact import Row, Vector, best, dot, vertices
from .stored import judges

Data = dict[str, Any]
Matrix = list[list[Fraction]]

# --- allocations (section 3.1) ---------------------------------------------------------------------


def speeds(data: Data) -> Matrix:
    """The throughputs, as the decimals that are stored."""
    return [[Fraction(str(each)) for each in row] for row in data["throughputs"]]


def matrix(data: Data, x: Vector) -> Matrix:
    types = len(data["num_workers"])
    return [list(x[start : start + types]) for start in range(0, len(data["throughputs"]) * types, types)]


def throughput(data: Data, x: Matrix) -> list[Fraction]:
    return [dot(row, shares) for row, shares in zip(speeds(data), x, strict=True)]


def feasible(data: Data, further: int = 0) -> list[Row]:
    """No job has more than all of its time, no type runs more than its workers; ``further`` variables come last."""
    jobs, types = range(len(data["throughputs"])), range(len(data["num_workers"]))
    extra, sizes = [0] * further, data["scale_factors"]
    # Every job fits everywhere, and each type has workers of its own.
    assert max(sizes) <= min(data["num_workers"])
    assert data["pools"] == list(types)
    assert data["pairs"] == []
    times: list[Row] = [([int(m == job) for m in jobs for _ in types] + extra, 1) for job in jobs]
    workers: list[Row] = [
        ([sizes[m] * (j == kind) for m in jobs for j in types] + extra, data["num_workers"][kind]) for kind in types
    ]
    return [*times, *workers]


def of_job(data: Data, job: int, factor: Fraction | int = 1) -> list[Fraction]:
    """Coefficients of a factor times a job's throughput."""
    return [factor * speed * (m == job) for m, row in enumerate(speeds(data)) for speed in row]


def summed(rows: Sequence[Sequence[Fraction]]) -> list[Fraction]:
    return [sum(each, Fraction(0)) for each in zip(*rows, strict=True)]


def at_least(coefficients: Sequence[Fraction | int], limit: Fraction | int) -> Row:
    return [-each for each in coefficients], -limit


def split(data: Data) -> Matrix:
    """1/n of every type's workers for each job, at most all of its time."""
    n = len(data["throughputs"])
    held = [[Fraction(w, n * size) for w in data["num_workers"]] for size in data["scale_factors"]]
    return [[share / max(Fraction(1), sum(row)) for share in row] for row in held]


def first_come_first_served(data: Data) -> list[Fraction]:
    """FIFO's objective (section 4.2), of jobs numbered from 0 as the rows of section 4.1 are."""
    n = len(data["throughputs"])
    return summed([of_job(data, m, (n - m) / max(row)) for m, row in enumerate(speeds(data))])


def fairest(data: Data, weights: Sequence[Fraction | int]) -> tuple[Fraction, list[Matrix]]:
    """The greatest of the least throughputs over weights, and the vertices that attain it."""
    size = len(data["throughputs"]) * len(data["num_workers"])
    levels = [at_least([*of_job(data, m), -weight], 0) for m, weight in enumerate(weights)]
    level, points = best(size + 1, [*feasible(data, 1), *levels], [0] * size + [1])
    return level, [matrix(data, point[:-1]) for point in points]


def equal_share(data: Data) -> list[Fraction]:
    """throughput(m, X_equal), the same time on every worker (section 4.1)."""
    total = sum(data["num_workers"])
    return [dot(row, [Fraction(w, total) for w in data["num_workers"]]) for row in speeds(data)]


# --- sharing incentive (section 4.4) ---------------------------------------------------------------


def with_slos(data: Data) -> list[Row]:
    """throughput(m, X) >= num_steps_m / SLO_m (section 4.2)."""
    limits = [(m, Fraction(steps) / Fraction(slo)) for m, (steps, slo) in enumerate(slos_of(data)) if slo]
    return [*feasible(data), *(at_least(of_job(data, m), limit) for m, limit in limits)]


def slos_of(data: Data) -> list[tuple[float, float | None]]:
    return list(zip(data["steps"], data["slos"], strict=True))


def _split_is_late_and_better(data: Data, reference: Reference, worth: Callable[[Matrix], Fraction]) -> None:
    # Both objectives, a sum and a ratio of sums whose denominator is positive here, are greatest at a vertex.
    size = len(data["throughputs"]) * len(data["num_workers"])
    most = max(worth(matrix(data, point)) for point in vertices(size, with_slos(data)))
    assert most == 1 < worth(split(data)) == Fraction(3, 2)
    # An SLO may be missed by a billionth.
    assert 0 <= reference.optimum() - most <= Fraction(1, 10**9)
    rates = throughput(data, split(data))
    assert any(slo and Fraction(steps) / rate > slo for rate, (steps, slo) in zip(rates, slos_of(data), strict=True))


@judges("gavel/cost/sharing_incentive_cost_slos-2")
def test_a_late_split_costs_less(data: Data, reference: Reference) -> None:
    # Jobs of one worker, so that the printed cost_j X_mj is what the workers cost.
    assert data["scale_factors"] == [1, 1]

    def per_cost(x: Matrix) -> Fraction:
        return sum(throughput(data, x), Fraction(0)) / sum(dot(data["costs"], row) for row in x)

    _split_is_late_and_better(data, reference, per_cost)


@judges("gavel/throughput_per_dollar/sharing_incentive_throughput_per_dollar_slos-2")
def test_a_late_split_has_more_throughput_per_dollar(data: Data, reference: Reference) -> None:
    def per_dollar(x: Matrix) -> Fraction:
        """The released code's: each type's throughput over its price."""
        pairs = zip(speeds(data), x, strict=True)
        return sum((t * s / Fraction(c) for row, xs in pairs for t, s, c in zip(row, xs, data["costs"], strict=True)))

    _split_is_late_and_better(data, reference, per_dollar)


@judges("gavel/cost/sharing_incentive_per_job_cost-2")
def test_throughput_is_cheapest_without_the_slower_job(data: Data, reference: Reference) -> None:
    def ratio(x: Matrix) -> Fraction:
        return sum(throughput(data, x), Fraction(0)) / sum(dot(data["costs"], row) for row in x)

    running = [x for x in vertices(2, feasible(data)) if any(x)]
    most = max(ratio(matrix(data, x)) for x in running)
    assert most == reference.optimum() == 2
    # As good a ratio is a linear condition, and at each vertex under it job 0 runs nothing.
    worth = summed([of_job(data, m) for m in range(2)])
    as_good = at_least([each - most * Fraction(data["costs"][0]) for each in worth], 0)
    assert {x[0] for x in vertices(2, [*feasible(data), as_good])} == {0}
    assert throughput(data, split(data))[0] == Fraction(1, 2)


@judges("gavel/fifo/sharing_incentive_fifo-2")
def test_the_first_job_is_later_than_by_its_split(data: Data, reference: Reference) -> None:
    most, optima = best(4, feasible(data), first_come_first_served(data))
    assert abs(most - Fraction(reference.optimum())) < Fraction(1, 10**12)
    assert {throughput(data, matrix(data, x))[0] for x in optima} == {Fraction("0.99")}
    assert throughput(data, split(data))[0] == Fraction("0.995")


@judges("gavel/fifo/sharing_incentive_per_job_fifo-2")
def test_the_first_job_takes_all(data: Data, reference: Reference) -> None:
    most, optima = best(2, feasible(data), first_come_first_served(data))
    assert (most, optima) == (reference.optimum(), [(1, 0)])
    assert throughput(data, split(data))[1] > 0


@judges("gavel/fifo/homogeneous_fifo_wide-2")
def test_a_narrow_job_goes_before_a_wide_one(data: Data, reference: Reference) -> None:
    most, optima = best(2, feasible(data), first_come_first_served(data))
    assert most == reference.optimum() == Fraction(7, 3)
    left, in_order = Fraction(data["num_workers"][0]), []
    for size in data["scale_factors"]:
        in_order.append(min(Fraction(1), left / size))
        left -= size * in_order[-1]
    assert dot(first_come_first_served(data), in_order) == 2
    assert optima == [(Fraction(2, 3), 1)]


@judges("gavel/makespan/sharing_incentive_per_job_makespan-2")
def test_the_faster_job_gets_less_time(data: Data, reference: Reference) -> None:
    # The reciprocal of the makespan is the least throughput over steps.
    rate, optima = fairest(data, list(map(Fraction, data["steps"])))
    assert 1 / rate == reference.optimum()
    assert [throughput(data, x)[1] for x in optima] == [Fraction(2, 3)]
    assert throughput(data, split(data))[1] == 1


@judges(
    "gavel/finish_time_fairness/one_linear_program_finish_time_fairness-2",
    "gavel/finish_time_fairness/sharing_incentive_per_job_finish_time_fairness_running-2",
)
def test_the_fairest_ratio_is_irrational(data: Data, reference: Reference) -> None:
    past = list(zip(data["elapsed"], data["isolated_elapsed"], data["steps"], split(data), strict=True))

    def needed(ratio: Fraction) -> Fraction:
        """The time on the worker, at 1 step/s, with which no job's ratio is above this one; it falls in the ratio."""
        limits = [
            ratio * (Fraction(alone) + Fraction(steps) / row[0]) - Fraction(now) for now, alone, steps, row in past
        ]
        return sum(Fraction(steps) / limit for limit, (_, _, steps, _) in zip(limits, past, strict=True))

    assert speeds(data) == [[1], [1]]
    # It is 1 where 4 r^2 - 6 r + 1 is 0: they are the same quadratic polynomial, as they agree at three points.
    for r in map(Fraction, (1, 2, 3)):
        assert (1 - needed(r)) * 2 * r * (2 * r - 1) == 4 * r**2 - 6 * r + 1
    assert math.isqrt(6**2 - 4 * 4) ** 2 != 6**2 - 4 * 4
    # So the optimum is no fraction, as that of a linear program in fractions is; and job 0 has less than by its split.
    low, high = Fraction(130, 100), Fraction(131, 100)
    assert needed(low) > 1 >= needed(high)
    assert low < reference.optimum() < high
    assert 1 - 1 / (2 * high - 1) < split(data)[0][0] == Fraction(1, 2)


@judges("gavel/max_min_fairness/equal_split_feasible_wide-2")
def test_equal_parts_of_the_time_are_too_many_workers(data: Data, reference: Reference) -> None:
    n, (workers,) = len(data["throughputs"]), data["num_workers"]
    shares = [min(Fraction(1), Fraction(workers, n)) for _ in range(n)]
    assert dot(data["scale_factors"], shares) == 3 > workers


@judges("gavel/max_min_fairness/sharing_incentive_per_job_max_min_fairness_wide-2")
def test_a_wide_job_gets_less_than_its_split(data: Data, reference: Reference) -> None:
    # (1 / w_m) throughput(m, X) / throughput(m, X_equal) * scale_factor_m (section 4.1): jobs are equally fast.
    equal = equal_share(data)
    assert equal == [Fraction(7, 5)] * 3
    assert data["weights"] == [1] * 3
    # Job 0 makes 2 steps/s at most, and so the level is 10/7 at most; jobs as fast as that have all fast workers.
    level = 2 / equal[0]
    assert Fraction(reference.optimum()).limit_denominator(100) == level
    floors = [
        at_least(of_job(data, m, size / share), level)
        for m, (size, share) in enumerate(zip(data["scale_factors"], equal, strict=True))
    ]
    optima = vertices(6, [*feasible(data), *floors])
    assert {tuple(throughput(data, matrix(data, x))) for x in optima} == {(2, 2, 1)}
    assert throughput(data, split(data))[2] == Fraction(7, 6)


# --- water filling (section 4.3) -------------------------------------------------------------------


@judges("gavel/hierarchical_fairness/entity_shares_by_weight-1")
def test_both_entities_end_with_all_they_can_have(data: Data, reference: Reference) -> None:
    # As long as a job has less, it can have more at nobody's expense, and is no bottleneck.
    assert (1, 1) in vertices(2, feasible(data))
    assert data["entities"] == [0, 1]
    assert data["entity_weights"] == [1, 2]


@judges("gavel/hierarchical_fairness/entity_shares_by_weight-3")
def test_an_entity_on_the_worker_that_suits_it_has_less_time(data: Data, reference: Reference) -> None:
    # The entities' weights among their jobs; a level is what a job makes over its weight and its equal share.
    among = (Fraction(1, 2), Fraction(1, 2), 1)
    weights = [weight * share for weight, share in zip(among, equal_share(data), strict=True)]
    # A level takes at least this much time on workers, of which there are two.
    level = 2 / sum(weight / max(row) for weight, row in zip(weights, speeds(data), strict=True))
    floors = [at_least(of_job(data, m), level * weight) for m, weight in enumerate(weights)]
    optima = [matrix(data, x) for x in vertices(6, [*feasible(data), *floors])]
    assert {(sum(x[0]) + sum(x[1]), sum(x[2])) for x in optima} == {(Fraction(8, 7), Fraction(6, 7))}
    # All time is used, by each job where it is fastest: what one gains another loses, and nobody rises further.
    assert all(
        shares[j] == 0 or row[j] == max(row)
        for x in optima
        for shares, row in zip(x, speeds(data), strict=True)
        for j in (0, 1)
    )
    assert all(sum(row) < 1 for x in optima for row in x)


@judges("gavel/hierarchical_fairness/water_filling_by_weight-2")
def test_the_first_step_can_divide_what_is_left_by_no_weight(data: Data, reference: Reference) -> None:
    weights = [Fraction(weight) / 6 * share for weight, share in zip(data["weights"], equal_share(data), strict=True)]
    level, optima = fairest(data, weights)
    assert level == Fraction(3, 2)
    uneven = [[Fraction(3, 4)], [Fraction(1, 4)], [Fraction(1)]]
    assert uneven in optima
    # Both workers are used up, and whoever has more takes it from another: all are bottlenecks, and it ends there.
    assert sum(map(sum, uneven)) == data["num_workers"][0]
    # At equal rates job 2 saturates at 1, when the others have a quarter, and they rise to a half each.
    assert [row[0] for row in uneven] != [Fraction(1, 2), Fraction(1, 2), 1]


# --- rounds (section 5) ----------------------------------------------------------------------------

State = tuple[int, ...]


def rounds(data: Data, priority: Callable[[int, int], tuple[int, Fraction]]) -> set[State]:
    """What Algorithm 1 can hand out in a round, (job, type) by (job, type), every way to break ties."""
    sizes, types = data["scale_factors"], range(len(data["num_workers"]))
    found: set[State] = set()

    def go(left: list[int], taken: dict[int, int]) -> None:
        free = [(m, j) for m in range(len(sizes)) for j in types if m not in taken and sizes[m] <= left[j]]
        if not free:
            found.add(tuple(int(taken.get(m) == j) for m in range(len(sizes)) for j in types))
        for m, j in free:
            if priority(m, j) == max(priority(*one) for one in free):
                go([each - sizes[m] * (kind == j) for kind, each in enumerate(left)], {**taken, m: j})

    go(list(data["num_workers"]), {})
    return found


def after(data: Data, target: Matrix, number: int) -> set[State]:
    """The rounds that each job can have run on each type, by X / f with the f that is printed.

    What has not run has an infinite priority, however small its X is; of X = 0 none is needed here.
    """
    types = len(data["num_workers"])
    reached = {(0,) * (len(target) * types)}
    for _ in range(number):
        further = set()
        for counts in reached:

            def priority(m: int, j: int, counts: State = counts) -> tuple[int, Fraction]:
                on_type = sum(counts[j::types])
                ran = counts[m * types + j]
                return (0, target[m][j] * on_type / ran) if ran else (1, Fraction(0))

            taken = rounds(data, priority)
            further |= {tuple(a + b for a, b in zip(counts, chosen, strict=True)) for chosen in taken}
        reached = further
    return reached


@judges("gavel/round_assignment/rounds_realise_target-2")
def test_printed_priorities_leave_the_fast_worker_idle(data: Data, reference: Reference) -> None:
    # Three jobs that are alike, of which none can have more than a third of all throughput if none is to have less.
    most, _ = best(6, feasible(data), summed([of_job(data, m) for m in range(3)]))
    assert equal_share(data) == [Fraction(5, 4)] * 3
    assert Fraction(reference.optimum()).limit_denominator(100) == most / 3 / Fraction(5, 4)
    floors = [at_least(of_job(data, m), most / 3) for m in range(3)]
    (target,) = (matrix(data, x) for x in vertices(6, [*feasible(data), *floors]))
    assert target == [[Fraction(1, 3), Fraction(2, 3)]] * 3
    for counts in after(data, target, 100):
        received = matrix(data, tuple(Fraction(ran, 100) for ran in counts))
        assert (
            max(x - got for row, gets in zip(target, received, strict=True) for x, got in zip(row, gets, strict=True))
            > 0.3
        )


@judges(
    "gavel/round_assignment/rounds_realise_target_wide-1",
    "gavel/round_assignment/rounds_realise_target_wide-2",
)
def test_no_rounds_give_the_time_to_both(data: Data, reference: Reference) -> None:
    level, optima = fairest(
        data, [share / size for share, size in zip(equal_share(data), data["scale_factors"], strict=True)]
    )
    assert level == reference.optimum()
    assert optima == [[[1], [Fraction(1, 2)]]]
    # The wide job takes both workers, so that one job runs in a round, and one of the two lacks a quarter at least.
    assert sum(data["scale_factors"]) > data["num_workers"][0]
    assert (sum(row[0] for row in optima[0]) - 1) / 2 == Fraction(1, 4)


@judges("gavel/round_assignment/algorithm_1_ends-2")
def test_line_5_finds_nothing(data: Data, reference: Reference) -> None:
    active, left = list(range(len(data["scale_factors"]))), sum(data["num_workers"])
    while left > 0 and active:
        left -= data["scale_factors"][active.pop()]
    assert left > 0


@judges("gavel/round_assignment/highest_priorities_across_types-2")
def test_the_highest_priorities_are_not_the_most(data: Data, reference: Reference) -> None:
    rows = data["priorities"]
    (high, job, kind), *_ = sorted(((rows[j][k], j, k) for j in (0, 1) for k in (0, 1)), reverse=True)
    assert high + rows[1 - job][1 - kind] == 3.1
    assert max(rows[0][first] + rows[1][second] for first, second in permutations((0, 1))) == reference.optimum() == 4


# --- one worker ------------------------------------------------------------------------------------


@judges(
    "gavel/shortest_job_first/one_linear_program_shortest_job_first-2",
    "gavel/shortest_job_first/sharing_incentive_per_job_shortest_job_first-2",
)
def test_the_shortest_job_takes_all(data: Data, reference: Reference) -> None:
    # The worth of an allocation is that of the job with more time: no convex function, as a half each is worse.
    times = {first: reference.value({"time_fractions": [[first], [1 - first]]}) for first in (0, 0.5, 1)}
    assert times == {0: 1, 0.5: 2, 1: 1}
    # Whichever job is the shortest, with all of the time at best, leaves the other none, and alone each has a half.
    for job in (0, 1):
        rate, optima = best(2, feasible(data), of_job(data, job, 1 / Fraction(data["steps"][job])))
        assert 1 / rate == reference.optimum() == 1
        assert {throughput(data, matrix(data, x))[1 - job] for x in optima} == {0}
    assert throughput(data, split(data)) == [Fraction(1, 2)] * 2


@judges(
    "gavel/total_throughput/sharing_incentive_per_job_total_throughput-2",
    "gavel/throughput_per_dollar/sharing_incentive_per_job_throughput_per_dollar-2",
)
def test_the_faster_job_takes_all(data: Data, reference: Reference) -> None:
    # The types cost the same, so that throughput per dollar is greatest where throughput is.
    assert len(set(data.get("costs", [1]))) == 1
    size = len(data["throughputs"]) * len(data["num_workers"])
    most, optima = best(size, feasible(data), summed([of_job(data, m) for m in range(len(data["throughputs"]))]))
    assert most == reference.optimum() == 2
    assert {throughput(data, matrix(data, x))[0] for x in optima} == {0}
    assert throughput(data, split(data))[0] > 0
