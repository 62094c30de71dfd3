"""Orders of starts: the search against all orders in fractions, and what it leaves out against what it says of it."""

import math
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

import formulations
from formulations import Options
from formulations.aryl.base_allocation import in_turn, mean_busy
from formulations.methods import starting
from formulations.methods.gpu_time import Jobs, Prices, best_prices
from formulations.methods.starting import Annealing, Search, begun, jobs_of, plain, value_of
from heuristics.aryl import base_allocation as heuristics
from instances.aryl.base_allocation import BaseAllocation, generate
from instances.base import agree

from ...effort import rounds

HEURISTICS = [heuristics.shortest_job_first, heuristics.smallest_job_first, heuristics.fifo]


def least(instance: BaseAllocation) -> Fraction:
    """Return the least sum of completion times, each job of every order put where it fits first, gaps filled."""
    times = list(map(Fraction, instance.running_times.tolist()))
    gpus, capacity, found = instance.gpu_demands.tolist(), instance.capacity, []
    for order in permutations(np.flatnonzero(instance.running_times > 0).tolist()):
        placed: list[tuple[Fraction, Fraction, int]] = []
        for job in order:
            for start in sorted({Fraction(0), *(end for _, end, _ in placed)}):
                end = start + times[job]
                looks = [start, *(begin for begin, _, _ in placed if start < begin < end)]
                if all(sum(g for b, e, g in placed if b <= now < e) + gpus[job] <= capacity for now in looks):
                    placed.append((start, end, gpus[job]))
                    break
        found.append(sum(end for _, end, _ in placed))
    return min(found)


def small(seed: int) -> BaseAllocation:
    """Return jobs of which some are equal, some times are sums of others but for rounding, or decades apart."""
    rng = np.random.default_rng(seed)
    n, capacity = int(rng.integers(2, 6)), int(rng.integers(1, 7))
    times = [
        rng.integers(0, 6, n).astype(float),
        rng.choice([0.1, 0.2, 0.3, 0.7], n),
        10 ** rng.uniform(-3, 5, n),
        np.round(10 ** rng.uniform(0, 3, n)),
    ]
    return BaseAllocation(
        capacity=capacity, gpu_demands=rng.integers(1, capacity + 1, n), running_times=times[seed % len(times)]
    )


def priced(jobs: Jobs, intervals: int = 16) -> Prices:
    found = best_prices(jobs, intervals, Options())
    assert found is not None
    return found[0]


@pytest.mark.parametrize("seed", rounds(40))
def test_the_optimum_is_that_of_all_orders(seed: int) -> None:
    instance = small(seed)
    if not instance.running_times.any():
        return
    jobs, _ = jobs_of(instance)
    best = float(least(instance))
    value, order, left_out = Search(jobs, priced(jobs)).run(math.inf, 10**6)
    assert (value, left_out) == (pytest.approx(best, rel=1e-9), math.inf)
    assert order is not None
    assert value_of(jobs, order) == pytest.approx(value, rel=1e-12)
    assert plain(jobs, best * (1 - 1e-9), 10.0)
    assert not plain(jobs, best * (1 + 1e-9), 10.0)
    # With the optimum known there is nothing to find; with less than it, nothing either.
    assert Search(jobs, priced(jobs)).run(best * (1 + 1e-12), 10**6)[1:] == (None, math.inf)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("width", [1, 3])
def test_what_was_left_out_is_bounded(seed: int, width: int) -> None:
    """A layer that is too large leaves plans out: the optimum is found, or is no less than the bound of the rest."""
    jobs, _ = jobs_of(generate(seed, num_jobs=5))
    best = float(least(generate(seed, num_jobs=5)))
    value, _, left_out = Search(jobs, priced(jobs)).run(math.inf, width)
    assert min(value, left_out) <= best * (1 + 1e-9)
    assert value >= best * (1 - 1e-12)


def test_a_pass_that_is_cut_has_a_bound() -> None:
    jobs, _ = jobs_of(generate(0, num_jobs=12))
    value, order, left_out = Search(jobs, priced(jobs)).run(1e9, 1000, ends=0.0)
    assert (value, order) == (1e9, None)
    assert left_out <= 12 * 9211.6


@pytest.mark.parametrize("seed", range(4))
def test_the_optimum_is_the_models(seed: int) -> None:
    instance = generate(seed, num_jobs=5)
    found = formulations.solve(instance, method="starts")
    model = formulations.solve(instance, method="model")
    assert (found.status, found.method, found.proof) == ("optimal", "orders of starts", "two runs")
    assert agree(found.objective, model.objective)
    assert formulations.verify(instance, found).verdict == "confirmed"


def test_one_run_is_said_to_be_one() -> None:
    instance = generate(2, num_jobs=8)
    assert formulations.solve(instance, verify=False).proof == "one run"
    assert formulations.solve(instance, verify=True).proof == "two runs"


def test_twelve_jobs_are_proven() -> None:
    """Values that CP-SAT proves, too."""
    for seed, value in ((0, 9211.5833333), (1, 10049.9166667)):
        found = formulations.solve(generate(seed, num_jobs=12))
        assert (found.status, found.objective) == ("optimal", pytest.approx(value, rel=1e-9))


@pytest.mark.parametrize("limit", [1e-9, 0.2])
@pytest.mark.parametrize("method", ["starts", "model"])
def test_no_heuristic_is_better_at_any_limit(limit: float, method: str) -> None:
    for seed, (jobs, capacity) in enumerate([(5, 16), (30, 16), (300, 128), (1, 1)]):
        instance = generate(seed, num_jobs=jobs, capacity=capacity)
        found = formulations.solve(instance, time_limit=limit, method=method)
        assert found.objective is not None
        for heuristic in HEURISTICS:
            assert found.objective <= instance.objective(heuristic(instance))
        assert found.bound >= mean_busy(instance) * (1 - 1e-12)


def test_lists_are_those_of_the_heuristics() -> None:
    """To the last digit, equal jobs, finished ones and ends at the same time among them."""
    for seed in range(60):
        instance = small(seed)
        fast = [heuristic(instance) for heuristic in HEURISTICS]
        assert instance.objective(in_turn(instance)) == min(map(instance.objective, fast))


@pytest.mark.parametrize("seed", range(5))
def test_annealing_keeps_its_sums(seed: int) -> None:
    """An order is worth what its starts say, is no worse than the first, and the same for the same seed."""
    instance = generate(seed, num_jobs=25)
    jobs, _ = jobs_of(instance)
    first = list(range(25))
    found = [Annealing(jobs, seed).run(first, 2000, math.inf) for _ in range(2)]
    assert found[0] == found[1]
    assert sorted(found[0]) == first
    assert value_of(jobs, found[0]) < value_of(jobs, first)
    starts = begun(jobs, found[0])
    assert (np.diff(starts[found[0]]) >= 0).all()
    for start in starts:
        assert jobs.widths[(starts <= start) & (start < starts + jobs.times)].sum() <= jobs.lanes


def test_times_that_rounding_swallows_are_not_lost() -> None:
    """A job of a nanosecond after one of a year ends when it begins; each may start, in whichever order."""
    instance = BaseAllocation(capacity=2, gpu_demands=[2, 1, 1, 2], running_times=[3e7, 1e-9, 1e-9, 3e7])
    found = formulations.solve(instance)
    assert found.status == "optimal"
    assert agree(found.objective, float(least(instance)) / 4)


def test_many_lanes_are_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans and bounds there are all the same."""
    monkeypatch.setattr(starting, "MOST_BYTES", 10**4)
    found = formulations.solve(generate(1, num_jobs=12), time_limit=1)
    assert found.status == "feasible"
    assert found.gap < 0.5
