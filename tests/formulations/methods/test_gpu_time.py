"""Bounds by prices of GPU-time, added up once more in fractions, against all orders of small instances."""

from fractions import Fraction

import numpy as np
import pytest

from formulations import Options
from formulations.aryl.base_allocation import mean_busy
from formulations.methods.gpu_time import Jobs, Prices, best_prices
from formulations.methods.starting import jobs_of
from instances.aryl.base_allocation import BaseAllocation, generate
from validation.testing.second_opinion import optimum


def added_up(jobs: Jobs, prices: Prices) -> Fraction:
    """Return the bound of some prices with nothing rounded: every start at which a cost can be least is tried."""
    grid, each = list(map(Fraction, prices.grid.tolist())), list(map(Fraction, prices.prices.tolist()))

    def until(time: Fraction) -> Fraction:
        slots = zip(grid[:-1], grid[1:], each, strict=True)
        return sum((price * max(Fraction(0), min(time, end) - begin) for begin, end, price in slots), Fraction(0))

    least = Fraction(0)
    for width, seconds in zip(jobs.widths.tolist(), jobs.times.tolist(), strict=True):
        time = Fraction(seconds)
        starts = {Fraction(0), *grid, *(point - time for point in grid if point > time)}
        least += min(start + time + width * (until(start + time) - until(start)) for start in starts)
    return least - jobs.lanes * until(grid[-1])


def small(seed: int) -> BaseAllocation:
    rng = np.random.default_rng(seed)
    n, capacity = int(rng.integers(1, 6)), int(rng.integers(1, 7))
    return BaseAllocation(
        capacity=capacity,
        gpu_demands=rng.integers(1, capacity + 1, n),
        running_times=rng.choice([0.1, 0.2, 0.7, 1.0, 3.0, 250.0], n),
    )


@pytest.mark.parametrize("seed", range(20))
def test_any_prices_bound(seed: int) -> None:
    instance, rng = small(seed), np.random.default_rng(seed)
    jobs, _ = jobs_of(instance)
    best = Fraction(float(optimum(instance))) * instance.num_jobs
    found = best_prices(jobs, 8, Options())
    assert found is not None
    grid = np.sort(np.append(0.0, rng.random(5) * jobs.horizon * 2))
    for prices in (found[0], Prices(grid, 2 * rng.random(5)), Prices(grid, np.zeros(5))):
        exact = added_up(jobs, prices)
        size = float(jobs.lanes * prices.until(np.array(np.inf)) + best)
        assert exact <= best * (1 + Fraction(1, 10**12))
        assert prices.bound(jobs) == pytest.approx(float(exact), abs=1e-12 * size)
    assert mean_busy(instance) * instance.num_jobs <= best * (1 + Fraction(1, 10**12))


@pytest.mark.parametrize("seed", range(3))
def test_the_best_prices_beat_what_is_known_without(seed: int) -> None:
    """On many jobs the bound is better than that of mean busy times, if the intervals are fine enough."""
    instance = generate(seed, num_jobs=30)
    jobs, which = jobs_of(instance)
    bounds = []
    for intervals in (16, 64):
        found = best_prices(jobs, intervals, Options())
        assert found is not None
        prices, starts = found
        assert (prices.prices >= 0).all()
        assert len(starts) == len(which) == 30
        bounds.append(prices.bound(jobs) / instance.num_jobs)
    assert max(bounds[0], mean_busy(instance)) < bounds[1]


def test_two_hundred_jobs_have_a_better_bound_than_mean_busy_times() -> None:
    instance = generate(0, num_jobs=200, capacity=128)
    jobs, _ = jobs_of(instance)
    found = best_prices(jobs, 128, Options())
    assert found is not None
    assert found[0].bound(jobs) / instance.num_jobs > 1.003 * mean_busy(instance)


def test_what_a_job_costs_later_is_never_less() -> None:
    """Least costs only rise with the time from which a job may begin, so the table's earlier entry is a bound."""
    jobs, _ = jobs_of(generate(0, num_jobs=12))
    found = best_prices(jobs, 16, Options())
    assert found is not None
    prices = found[0]
    step, table = prices.table(jobs)
    assert (np.diff(table, axis=1) >= -1e-9 * table[:, 1:]).all()
    for job, (width, time) in enumerate(zip(jobs.widths.tolist(), jobs.times.tolist(), strict=True)):
        between = prices.least(width, time, step * (np.arange(table.shape[1]) + 0.5))
        assert (table[job] <= between * (1 + 1e-12)).all()
        later = np.linspace(0, 2 * jobs.horizon, 999)
        cost = later + time + width * (prices.until(later + time) - prices.until(later))
        assert table[job, 0] <= cost.min() * (1 + 1e-12)


def test_equal_jobs_are_one_kind() -> None:
    """And what divides all demands is a lane."""
    instance = BaseAllocation(capacity=9, gpu_demands=[4, 2, 2, 4, 7], running_times=[5.0, 1.0, 1.0, 5.0, 0.0])
    jobs, which = jobs_of(instance)
    assert (jobs.lanes, jobs.widths.tolist(), which.tolist()) == (4, [1, 1, 2, 2], [1, 2, 0, 3])
    kinds, kind, count = jobs.kinds
    assert (kinds.tolist(), kind.tolist(), count.tolist()) == ([[1, 1], [2, 5]], [0, 0, 1, 1], [2, 2])


def test_too_many_entries_are_none() -> None:
    jobs = Jobs(1000, np.ones(3000, np.int64), np.arange(1.0, 3001.0))
    assert best_prices(jobs, 2000, Options()) is None
