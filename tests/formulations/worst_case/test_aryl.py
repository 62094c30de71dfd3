"""Worst cases of Aryl's greedy choices against enumeration, against hand-made families, and beyond what was proven."""

from collections import Counter
from fractions import Fraction
from itertools import chain, combinations, combinations_with_replacement, product

import numpy as np
import pytest

import formulations
from formulations.worst_case.aryl import two_job as model
from formulations.worst_case.proving import InstanceClass, WorstCaseModel, prove
from heuristics.aryl import elastic_allocation, placement, reclaim, two_job
from instances.aryl.elastic_allocation import ElasticAllocation, generate
from instances.aryl.placement import ArylPlacement
from instances.aryl.reclaim import Reclaim, ReclaimPlan
from instances.aryl.two_job import ArylTwoJob
from validation import StudyError, worst_case

RECLAIM = {"server_fraction": reclaim.server_fraction, "smallest_count_first": reclaim.smallest_count_first}


# --- reclaim ----------------------------------------------------------------------------------------


def reclaims(num_servers, demand, num_jobs):
    """Every instance of at most so many jobs, but for their order."""
    sets = [[bool(mask >> i & 1) for i in range(num_servers)] for mask in range(1, 2**num_servers)]
    for n in range(1, num_jobs + 1):
        for rows in combinations_with_replacement(sets, n):
            hosts = np.array(rows)
            yield Reclaim(hosts=hosts, gpus=hosts.astype(int), demand=demand)


def fewest_preempted(instance):
    chosen = combinations(range(instance.num_servers), instance.demand)
    return min(int(instance.hosts[:, list(servers)].any(axis=1).sum()) for servers in chosen)


@pytest.mark.parametrize("heuristic", RECLAIM)
@pytest.mark.parametrize(("num_servers", "demand", "num_jobs"), [(3, 1, 3), (3, 2, 4), (4, 2, 3), (4, 3, 3)])
def test_reclaim_worst_case_is_that_of_all_instances(heuristic, num_servers, demand, num_jobs):
    ratios, differences = [], []
    for instance in reclaims(num_servers, demand, num_jobs):
        own, best = instance.objective(RECLAIM[heuristic](instance)), fewest_preempted(instance)
        assert best or not own
        differences.append(own - best)
        if best:
            ratios.append(own / best)
    size = {"size": num_servers, "demand": demand, "num_jobs": num_jobs}
    assert worst_case("aryl.reclaim", heuristic, **size).value == pytest.approx(max(ratios), rel=1e-12)
    assert worst_case("aryl.reclaim", heuristic, **size, measure="difference").value == max(differences)


@pytest.mark.parametrize("heuristic", RECLAIM)
def test_any_number_of_jobs_is_what_many_jobs_tend_to(heuristic):
    few = [worst_case("aryl.reclaim", heuristic, size=4, demand=2, num_jobs=n).value for n in (2, 3)]
    found = worst_case("aryl.reclaim", heuristic, size=4, demand=2)
    assert few == sorted(few)
    assert few[-1] == pytest.approx(found.value, rel=1e-9)
    assert found.proof == "prices"
    with pytest.raises(StudyError, match="difference"):
        worst_case("aryl.reclaim", heuristic, size=4, demand=2, measure="difference")


def cheap_server(num_servers, demand):
    """Where Algorithm 1 preempts s - d jobs and one is enough.

    The first d - 1 servers are empty.  The next hosts a part of s - d jobs that are on all others but the last, and
    costs 1 like the last, which hosts a job of its own.
    """
    wide = np.zeros((num_servers - demand, num_servers), bool)
    wide[:, demand - 1 : -1] = True
    hosts = np.vstack([wide, np.arange(num_servers) == num_servers - 1])
    return Reclaim(hosts=hosts, gpus=hosts.astype(int), demand=demand)


@pytest.mark.parametrize(("num_servers", "demand"), [(4, 2), (6, 2), (6, 3), (7, 4), (8, 2)])
def test_server_fraction_is_s_less_d_times_off(num_servers, demand):
    instance = cheap_server(num_servers, demand)
    assert instance.objective(reclaim.server_fraction(instance)) == num_servers - demand
    assert formulations.solve(instance).objective == 1
    found = worst_case("aryl.reclaim", "server_fraction", size=num_servers, demand=demand)
    assert found.status == "optimal"
    assert found.value == pytest.approx(num_servers - demand, rel=1e-9)


@pytest.mark.parametrize("copies", [1, 5, 50])
def test_server_fraction_errs_without_ties(copies):
    """Copies of the jobs on all others, and one job more on the last server, so that it costs more than the others."""
    num_servers, demand = 6, 2
    shared, own = copies * (num_servers - demand), copies + 1
    hosts = np.zeros((shared + own, num_servers), bool)
    hosts[:shared, demand - 1 : -1] = True
    hosts[shared:, -1] = True
    instance = Reclaim(hosts=hosts, gpus=hosts.astype(int), demand=demand)
    assert instance.objective(reclaim.server_fraction(instance)) == shared
    assert instance.objective(ReclaimPlan(servers=[0, num_servers - 1])) == own


def test_the_family_of_server_fraction_has_no_limit():
    instance = cheap_server(60, 5)
    assert instance.objective(reclaim.server_fraction(instance)) == 55
    assert formulations.solve(instance).objective == 1


@pytest.mark.parametrize(("num_servers", "demand"), [(4, 2), (4, 3), (6, 3), (7, 4)])
def test_smallest_count_first_is_at_most_d_times_off(num_servers, demand):
    # The d smallest counts are at most the largest of any other d servers, whose jobs are preempted there.
    found = worst_case("aryl.reclaim", "smallest_count_first", size=num_servers, demand=demand)
    assert found.value == pytest.approx(min(demand, num_servers - demand + 1), rel=1e-9)


def taken_in_order(instance, cost):
    """The servers of a greedy method, in the order in which it takes them; ties go to the lowest."""
    running, order = np.ones(instance.num_jobs, bool), []
    for _ in range(instance.demand):
        left = [i for i in range(instance.num_servers) if i not in order]
        costs = {i: sum(cost(row) for row in instance.hosts[running & instance.hosts[:, i]]) for i in left}
        order.append(min(left, key=lambda i: (costs[i], i)))
        running &= ~instance.hosts[:, order[-1]]
    return order


def ends_where_it_begins(instance):
    """Whether all starts of the search return the same servers in the same order, and no swap is better."""
    first = taken_in_order(instance, lambda row: Fraction(1, int(row.sum())))
    if first != taken_in_order(instance, lambda row: 1):
        return False

    def preempted(servers):
        return int(instance.hosts[:, sorted(servers)].any(axis=1).sum())

    swapped = [{*first, i} - {k} for k in first for i in range(instance.num_servers) if i not in first]
    return all(preempted(first) <= preempted(other) for other in swapped)


@pytest.mark.parametrize(("num_servers", "demand", "num_jobs"), [(3, 2, 3), (4, 2, 3)])
def test_local_search_worst_case_is_that_of_all_instances_of_the_class(num_servers, demand, num_jobs):
    inside, every = [], []
    for instance in reclaims(num_servers, demand, num_jobs):
        own, best = instance.objective(reclaim.local_search(instance)), fewest_preempted(instance)
        if best:
            every.append(own / best)
            if ends_where_it_begins(instance):
                inside.append(own / best)
    assert max(every) <= demand
    found = worst_case("aryl.reclaim", "local_search", size=num_servers, demand=demand, num_jobs=num_jobs)
    assert found.value == pytest.approx(max(inside), rel=1e-12)


def test_local_search_is_as_many_times_off_as_servers_are_to_return():
    # A server of the fewest jobs, of those that still run, costs no more than any other server of the best ones.
    found = worst_case("aryl.reclaim", "local_search", size=6)
    assert (found.status, found.value) == ("optimal", pytest.approx(2, rel=1e-9))
    assert worst_case("aryl.reclaim", "smallest_count_first", size=6).value >= found.value
    with pytest.raises(StudyError, match="demand: got 1, must be at least 2"):
        worst_case("aryl.reclaim", "local_search", size=4, demand=1)


def test_more_servers_than_there_are_cannot_be_asked_for():
    with pytest.raises(StudyError, match=r"demand: got 4, must be at most the servers, 3"):
        worst_case("aryl.reclaim", "server_fraction", size=3, demand=4)


# --- placement --------------------------------------------------------------------------------------


def packed(sizes, server_gpus):
    """Workers of these sizes, and a server for each."""
    counts = Counter(sizes)
    return ArylPlacement(
        gpus_per_worker=np.array(list(counts)),
        num_workers=np.array(list(counts.values())),
        elastic=np.zeros(len(counts), bool),
        server_gpus=np.full(len(sizes), server_gpus),
        server_groups=np.full(len(sizes), "training"),
    )


def fewest_servers(sizes, server_gpus):
    """Branch over the servers of each worker, largest first; one that is still closed stands for all."""
    sizes = sorted(sizes, reverse=True)

    def least(row, free, limit):
        if len(free) >= limit:
            return limit
        if row == len(sizes):
            return len(free)
        for i in sorted(set(range(len(free))), key=lambda i: free[i]):
            if free[i] >= sizes[row] and free[i] not in free[:i]:
                limit = min(limit, least(row + 1, [*free[:i], free[i] - sizes[row], *free[i + 1 :]], limit))
        return min(limit, least(row + 1, [*free, server_gpus - sizes[row]], limit))

    return least(0, [], len(sizes) + 1)


def sums(number, largest):
    """All ways to write a number as a sum of whole numbers up to the largest, in falling order."""
    if not number:
        yield ()
    for first in range(min(number, largest), 0, -1):
        for rest in sums(number - first, first):
            yield (first, *rest)


@pytest.mark.parametrize("server_gpus", [6, 8])
def test_best_fit_opens_as_many_servers_as_is_proven(server_gpus):
    """All workers that fit on two servers, and not on one."""
    worst = 0
    for sizes in chain(*(sums(gpus, server_gpus) for gpus in range(server_gpus + 1, 2 * server_gpus + 1))):
        instance = packed(sizes, server_gpus)
        opened = instance.servers_opened(placement.best_fit_decreasing(instance))
        if opened > worst and fewest_servers(sizes, server_gpus) == 2:
            worst = opened
    found = worst_case("aryl.placement", "best_fit_decreasing", size=2, server_gpus=server_gpus)
    assert (found.judged.value, found.judged.optimum) == (worst, 2)


def test_best_fit_on_servers_of_8_gpus_opens_one_too_many_at_most():
    found = worst_case("aryl.placement", "best_fit_decreasing", size=4, measure="difference")
    assert (found.status, found.value) == ("optimal", 1)


@pytest.mark.parametrize(("servers", "extra"), [(2, 1), (20, 1)])
def test_one_server_too_many_however_many_are_needed(servers, extra):
    instance = packed([4, 3, 3, 2, 2, 2, *[8] * (servers - 2)], 8)
    assert instance.servers_opened(placement.best_fit_decreasing(instance)) == servers + extra
    assert formulations.solve(instance).objective == servers


# --- elastic allocation -----------------------------------------------------------------------------


def knapsack(sizes, gains, capacity):
    """Jobs that can take one more worker for a gain, s."""
    ones = np.ones(len(sizes), int)
    return ElasticAllocation(
        capacity=capacity,
        min_workers=ones,
        max_workers=2 * ones,
        gpus_per_worker=np.array(sizes),
        min_running_times=np.array(gains, float),
    )


@pytest.mark.parametrize(("num_jobs", "capacity", "largest"), [(2, 4, 4), (2, 6, 4), (2, 8, 8), (3, 5, 4), (3, 7, 4)])
def test_marginal_greedy_worst_case_is_that_of_all_sizes_and_gains(num_jobs, capacity, largest):
    worst = Fraction(1)
    taken = [chosen for n in range(num_jobs + 1) for chosen in combinations(range(num_jobs), n)]
    for sizes in product(range(1, largest + 1), repeat=num_jobs):
        fit = [list(chosen) for chosen in taken if sum(sizes[j] for j in chosen) <= capacity]
        all_gains = product(range(1, largest + 1), repeat=2)
        for gains in all_gains if num_jobs == 2 else [sizes, [2 * g for g in sizes]]:
            instance = knapsack(sizes, gains, capacity)
            own = instance.objective(elastic_allocation.marginal_greedy(instance))
            best = max(sum(gains[j] for j in chosen) for chosen in fit)
            worst = max(worst, Fraction(best) / Fraction(own)) if own else worst
    found = worst_case(
        "aryl.elastic_allocation", "marginal_greedy", size=num_jobs, capacity=capacity, worker_gpus=largest
    )
    assert found.value == pytest.approx(float(worst), rel=1e-9)


@pytest.mark.parametrize(("heuristic", "value"), [("dynamic_program", 1), ("base_charged_again", 3)])
def test_dynamic_programs_worst_case_is_that_of_all_sizes_and_gains(heuristic, value):
    capacity, program = 8, getattr(elastic_allocation, heuristic)
    taken = list(product((0, 1), repeat=3))
    worst = Fraction(1)
    for sizes in combinations_with_replacement(range(1, 5), 3):
        fit = [chosen for chosen in taken if np.dot(chosen, sizes) <= capacity]
        for gains in product((1, 2, 3), repeat=3):
            instance = knapsack(sizes, gains, capacity)
            own = instance.objective(program(instance))
            worst = max(worst, Fraction(max(int(np.dot(chosen, gains)) for chosen in fit)) / Fraction(own))
    assert worst == value
    assert worst_case("aryl.elastic_allocation", heuristic, size=3).value == pytest.approx(value, rel=1e-9)


def test_a_base_that_is_charged_again_leaves_room_for_a_third_at_least():
    # Workers of at most half the capacity that fit together are three groups of at most half of it each.
    rng = np.random.default_rng(0)
    for _ in range(100):
        sizes = rng.integers(1, 9, int(rng.integers(2, 8)))
        instance = knapsack(sizes, rng.integers(1, 50, len(sizes)), 16)
        own, best = (
            instance.objective(program(instance))
            for program in (elastic_allocation.base_charged_again, elastic_allocation.dynamic_program)
        )
        assert own <= best <= 3 * own
    with pytest.raises(StudyError, match="worker_gpus: got 5, must be at most half the capacity, 8"):
        worst_case("aryl.elastic_allocation", "base_charged_again", size=2, worker_gpus=5)


@pytest.mark.parametrize(("capacity", "num_jobs"), [(8, 2), (12, 3), (16, 3), (24, 4), (20, 4)])
def test_marginal_greedy_is_capacity_by_what_is_surely_filled_off(capacity, num_jobs):
    found = worst_case("aryl.elastic_allocation", "marginal_greedy", size=num_jobs, capacity=capacity)
    assert found.value == pytest.approx(capacity / (capacity - 7), rel=1e-9)


def test_no_jobs_that_scale_linearly_are_worse():
    # The first step that does not fit leaves at most worker_gpus - 1 GPUs unused, at the rate of those in use or less.
    looked = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        drawn = generate(rng, num_jobs=int(rng.integers(2, 6)), max_extra=4, tightness=float(rng.uniform(0.3, 0.9)))
        largest = int(drawn.gpus_per_worker.max())
        if drawn.capacity >= largest:
            own = drawn.objective(elastic_allocation.marginal_greedy(drawn))
            best = drawn.objective(elastic_allocation.dynamic_program(drawn))
            assert best <= own * drawn.capacity / (drawn.capacity - largest + 1) * (1 + 1e-12)
            looked += 1
    assert looked > 20


# --- two jobs ---------------------------------------------------------------------------------------


def test_the_best_breakpoint_is_the_best_split():
    assert worst_case("aryl.two_job", "best_breakpoint", size=5).value == pytest.approx(1, rel=1e-9)
    for least, most in product(product((1, 2), repeat=2), product((2, 4, 6), repeat=2)):
        for work in product((1.0, 3.0, 7.0), repeat=2):
            instance = ArylTwoJob(
                num_gpus=6, workloads=np.array(work), min_gpus=np.array(least), max_gpus=np.array(most)
            )
            best = min(instance.objective(instance.split(gpus)) for gpus in instance.splits)
            assert instance.objective(two_job.best_breakpoint(instance)) == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("looked_at", [{4}, {6}, {4, 6}])
def test_splits_that_are_overlooked_are_found(looked_at):
    """A rule that looks at some of three splits is as bad as whole workloads show."""

    def few(num_gpus):
        parts = product(range(num_gpus), {4, 5, 6} - looked_at)
        models = (model._model(num_gpus, (7, 3), (1, 1), together, looked_at, other) for together, other in parts)
        return InstanceClass("any work", models, scalable=True)

    found = prove(WorstCaseModel(few, model.read, size="num_gpus"), "aryl.two_job", size=7)
    worst = 1.0
    for work in product(range(13), repeat=2):
        instance = ArylTwoJob(num_gpus=7, workloads=np.array(work, float), min_gpus=[1, 1], max_gpus=[7, 3])
        values = {gpus: instance.objective(instance.split(gpus)) for gpus in instance.splits}
        assert set(values) == {4, 5, 6}
        if any(work):
            worst = max(worst, min(values[gpus] for gpus in looked_at) / min(values.values()))
    assert found.value == pytest.approx(worst, rel=1e-9)
    assert (found.value > 1.01) == (4 not in looked_at)
