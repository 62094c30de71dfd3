"""Aryl: Algorithm 1 and its rivals, shortest job first, line 17, best fit and the rule for two jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import combinations, pairwise, permutations, product
from statistics import mean, median
from typing import Any

from instances.reference import Reference

from .stored import judges

Data = dict[str, Any]
Costs = Callable[[Data, set[int], int], Fraction]

# --- reclaiming (section 4) ------------------------------------------------------------------------


def jobs_on(data: Data, server: int) -> list[int]:
    return [job for job, row in enumerate(data["hosts"]) if row[server]]


def preempted(data: Data, servers: Iterable[int]) -> int:
    return len({job for server in servers for job in jobs_on(data, server)})


def server_fraction(data: Data, gone: set[int], server: int) -> Fraction:
    return sum((Fraction(1, sum(data["hosts"][job])) for job in jobs_on(data, server) if job not in gone), Fraction(0))


def gpu_fraction(data: Data, gone: set[int], server: int) -> Fraction:
    left = [job for job in jobs_on(data, server) if job not in gone]
    return sum((Fraction(data["gpus"][job][server], sum(data["gpus"][job])) for job in left), Fraction(0))


def greedily(data: Data, cost: Costs) -> set[int]:
    """How many jobs can be preempted by the server of least cost time and again, however each tie is broken."""
    servers = range(len(data["hosts"][0]))
    outcomes = set()

    def go(taken: tuple[int, ...]) -> None:
        if len(taken) == data["demand"]:
            outcomes.add(preempted(data, taken))
            return
        gone = {job for server in taken for job in jobs_on(data, server)}
        costs = {server: cost(data, gone, server) for server in servers if server not in taken}
        for server in costs:
            if costs[server] == min(costs.values()):
                go((*taken, server))

    go(())
    return outcomes


def by_first_count(data: Data) -> set[int]:
    """How many jobs smallest count first can preempt: the top servers by the number of jobs, all ties."""
    counts = [len(jobs_on(data, server)) for server in range(len(data["hosts"][0]))]
    return {
        preempted(data, order[: data["demand"]])
        for order in permutations(range(len(counts)))
        if all(counts[a] <= counts[b] for a, b in pairwise(order))
    }


@judges("aryl/reclaim/reclaim_fewest_jobs-1")
def test_algorithm_1_preempts_more_than_the_fewest(data: Data, reference: Reference) -> None:
    assert min(greedily(data, server_fraction)) == 3
    assert reference.optimum() == 2


@judges("aryl/reclaim/reclaim_figure_5-2")
def test_ties_of_figure_5_decide(data: Data, reference: Reference) -> None:
    assert greedily(data, server_fraction) == {1, 2}
    assert reference.optimum() == 1


@judges("aryl/reclaim/reclaim_against_gpu_fraction-2")
def test_gpu_fractions_preempt_fewer(data: Data, reference: Reference) -> None:
    assert min(greedily(data, server_fraction)) == 3
    assert max(greedily(data, gpu_fraction)) == reference.optimum() == 2


@judges("aryl/reclaim/reclaim_against_job_count-2")
def test_job_counts_preempt_fewer(data: Data, reference: Reference) -> None:
    assert min(greedily(data, server_fraction)) == 3
    assert max(by_first_count(data)) == reference.optimum() == 2


# --- phase one (section 5.2) -----------------------------------------------------------------------


def shortest_first(data: Data) -> list[list[float]]:
    """When jobs start by shortest job first, those passed over that do not fit, for every order of equal ones."""
    times, needs = data["running_times"], data["gpu_demands"]
    found = []
    for order in permutations(range(len(times))):
        if any(times[a] > times[b] for a, b in pairwise(order)):
            continue
        starts: dict[int, float] = {}
        now = 0.0
        while len(starts) < len(times):
            free = data["capacity"] - sum(needs[job] for job in starts if starts[job] + times[job] > now)
            for job in order:
                if job not in starts and needs[job] <= free:
                    starts[job] = now
                    free -= needs[job]
            now = min((starts[job] + times[job] for job in starts if starts[job] + times[job] > now), default=now)
        found.append([starts[job] for job in range(len(times))])
    return found


@judges("aryl/base_allocation/phase_one_most_jobs-2")
def test_more_jobs_fit_than_the_shortest(data: Data, reference: Reference) -> None:
    assert {sum(start == 0 for start in starts) for starts in shortest_first(data)} == {1}
    assert data["gpu_demands"][0] + data["gpu_demands"][1] <= data["capacity"]


@judges("aryl/base_allocation/phase_one_order-2")
def test_shortest_first_is_late(data: Data, reference: Reference) -> None:
    assert min(reference.value({"starts": starts}) for starts in shortest_first(data)) == 4
    assert reference.optimum() == Fraction(11, 3)


# --- phase two (section 5.2, Appendix D) -----------------------------------------------------------


def saved(data: Data, job: int, extra: int) -> Fraction:
    """The reduction of a job's running time by extra workers, of a job that scales linearly."""
    work = Fraction(data["min_running_times"][job]) * data["max_workers"][job]
    return work / data["min_workers"][job] - work / (data["min_workers"][job] + extra)


def by_line_17(data: Data, capacity: int) -> list[tuple[int, ...]]:
    """The allocations of greatest reduction where an item weighs base and extra workers, and nothing without extra."""
    most = [high - low for low, high in zip(data["min_workers"], data["max_workers"], strict=True)]
    found: dict[tuple[int, ...], Fraction] = {}
    for extra in product(*(range(each + 1) for each in most)):
        weight = sum(
            (low + more) * gpus
            for low, more, gpus in zip(data["min_workers"], extra, data["gpus_per_worker"], strict=True)
            if more
        )
        if weight <= capacity:
            found[extra] = sum((saved(data, job, more) for job, more in enumerate(extra)), Fraction(0))
    return [extra for extra in found if found[extra] == max(found.values())]


@judges("aryl/elastic_allocation/line_17_as_the_text-1")
def test_line_17_leaves_a_gpu_idle(data: Data, reference: Reference) -> None:
    assert by_line_17(data, data["capacity"]) == [(0,)]
    assert saved(data, 0, 1) == reference.optimum() == 1


@judges("aryl/elastic_allocation/line_17_as_the_text-2")
def test_line_17_takes_more_than_there_is(data: Data, reference: Reference) -> None:
    base = sum(low * gpus for low, gpus in zip(data["min_workers"], data["gpus_per_worker"], strict=True))
    assert by_line_17(data, data["capacity"] + base) == [(0, 2)]
    assert reference.violations({"extra_workers": [0, 2]}) == ["capacity"]


@judges("aryl/elastic_allocation/reduction_is_completion_time-2")
def test_the_greatest_reduction_completes_later(data: Data, reference: Reference) -> None:
    work = [time * most for time, most in zip(data["min_running_times"], data["max_workers"], strict=True)]

    def average(extra: tuple[int, int]) -> Fraction:
        workers = [low + more for low, more in zip(data["min_workers"], extra, strict=True)]
        times = [Fraction(each) / count for each, count in zip(work, workers, strict=True)]
        soon = times.index(min(times))
        rest = (work[1 - soon] - min(times) * workers[1 - soon]) / data["max_workers"][1 - soon]
        return (2 * min(times) + rest) / 2

    assert reference.value({"extra_workers": [0, 1]}) == reference.optimum() == 2
    assert reference.value({"extra_workers": [1, 0]}) == 1
    assert (average((0, 1)), average((1, 0))) == (2, Fraction(7, 4))


@judges(
    "aryl/elastic_allocation/heterogeneous_degradation-1",
    "aryl/elastic_allocation/heterogeneous_degradation-2",
)
def test_table_10_loses_less(data: Data, reference: Reference) -> None:
    lost = [1 - best / base for base, best in data["running_times"]]
    assert len(lost) == 9
    assert round(100 * mean(lost), 1) == 13.8
    assert round(100 * median(lost), 1) == 11.7
    assert 27 < 100 * max(lost) < 28


# --- placement (section 5.3) -----------------------------------------------------------------------


def best_fit_decreasing(data: Data) -> set[int]:
    """How many servers best fit decreasing opens, for every order of equal jobs; servers of a group are equal."""
    sizes = data["gpus_per_worker"]
    orders = permutations(range(len(sizes)))
    return {opened_by(data, order) for order in orders if all(sizes[a] >= sizes[b] for a, b in pairwise(order))}


def opened_by(data: Data, order: Iterable[int]) -> int:
    free = list(data["server_gpus"])
    opened: set[int] = set()
    for job in order:
        size, likes = data["gpus_per_worker"][job], "inference" if data["elastic"][job] else "training"
        for _ in range(data["num_workers"][job]):
            fits = [server for server in range(len(free)) if free[server] >= size]
            server = min(fits, key=lambda i: (data["server_groups"][i] != likes, i not in opened, free[i]))
            free[server] -= size
            opened.add(server)
    return len(opened)


@judges("aryl/placement/placement_fewest_servers-2")
def test_best_fit_opens_three(data: Data, reference: Reference) -> None:
    assert best_fit_decreasing(data) == {3}
    assert reference.optimum() == 2


@judges("aryl/placement/placement_two_groups-2")
def test_groups_open_two(data: Data, reference: Reference) -> None:
    assert best_fit_decreasing(data) == {2}
    assert int(reference.optimum()) == 1


# --- two jobs (Appendix C) -------------------------------------------------------------------------


def within_formula_2(data: Data) -> bool:
    least, most, gpus = data["min_gpus"], data["max_gpus"], data["num_gpus"]
    return sum(least) < gpus < sum(most) and max(most) < gpus


def favoured(data: Data) -> int:
    """The job of the smaller maximum if that is at most half of all GPUs, else that of the smaller workload."""
    most = data["max_gpus"]
    if 2 * min(most) <= data["num_gpus"]:
        return int(most[1] < most[0])
    return int(data["workloads"][1] < data["workloads"][0])


@judges("aryl/two_job/two_job_neither_waits-1")
def test_waiting_pays(data: Data, reference: Reference) -> None:
    assert within_formula_2(data)
    first, second = (Fraction(work) / most for work, most in zip(data["workloads"], data["max_gpus"], strict=True))
    assert (first + first + second) / 2 == Fraction(1, 2)
    assert reference.optimum() == Fraction(9, 16)


@judges("aryl/two_job/two_job_rule_with_minima-1")
def test_the_rule_asks_for_too_much(data: Data, reference: Reference) -> None:
    job = favoured(data)
    assert within_formula_2(data)
    assert data["max_gpus"][job] > data["num_gpus"] - data["min_gpus"][1 - job]


@judges("aryl/two_job/two_job_rule_with_minima-2")
def test_what_the_minimum_leaves_is_not_best(data: Data, reference: Reference) -> None:
    job = favoured(data)
    assert within_formula_2(data)
    gpus = [0, 0]
    gpus[job] = min(data["max_gpus"][job], data["num_gpus"] - data["min_gpus"][1 - job])
    gpus[1 - job] = data["num_gpus"] - gpus[job]
    assert reference.value({"gpus": gpus}) == Fraction(5, 3)
    assert reference.optimum() == Fraction(29, 18)


def test_algorithm_1_is_that_of_figure_5() -> None:
    """What is judged here is the paper's example: a on servers 1 and 2, and costs as in Table 1."""
    gpus = [[4, 4, 0, 0, 0, 0], [0, 0, 8, 0, 0, 0], [0, 0, 0, 4, 1, 0], [0, 0, 0, 0, 1, 4]]
    data = {"hosts": [[count > 0 for count in row] for row in gpus], "gpus": gpus, "demand": 2}
    assert [float(server_fraction(data, set(), server)) for server in range(6)] == [0.5, 0.5, 1, 0.5, 1, 0.5]
    assert [float(gpu_fraction(data, set(), server)) for server in range(6)] == [0.5, 0.5, 1, 0.8, 0.4, 0.8]
    assert {preempted(data, pair) for pair in combinations(range(6), 2)} == {1, 2, 3}
