"""afs.elastic_sharing: prices of work and of GPUs, and the search of orders, against the reference's exact values."""

import math
from dataclasses import replace

import numpy as np
import pytest

import formulations
from formulations.afs.elastic_sharing import bound as in_seconds
from formulations.afs.one_machine import sum_of_ends
from formulations.methods.orders import ORDERS, Search
from formulations.methods.share_prices import Pricing
from instances.afs.elastic_sharing import ElasticSharing, generate
from instances.afs.work_prices import ARRIVAL, Jobs, envelope
from instances.reference.common import TooLarge
from validation.catalogue import entry

from ..effort import rounds
from ..second_opinion import optimum
from .elastic_jobs import ALL, instance_of, small

ROOM = 1e-9
"""Part of a value that sums of floats may be off."""


def drawn(rng):
    """Draw 1 to 5 jobs on 1 to 6 GPUs: flat curves, bent ones, jumps, work of 0, far apart, arrivals or none."""
    n = int(rng.choice([1, 2, 2, 3, 3, 4, 5]))
    num_gpus = int(rng.integers(1, {1: 7, 2: 7, 3: 4, 4: 3, 5: 3}[n]))
    tables = []
    for _ in range(n):
        steps = rng.integers(0, 5, num_gpus) * rng.choice([1.0, 1.0, 1000.0])
        kind = rng.integers(4)
        if kind == 0:
            steps = np.sort(steps)[::-1]
        elif kind == 1:
            steps[int(rng.integers(num_gpus)) :] = 0
        elif kind == 2:
            steps = np.where(np.arange(num_gpus) == rng.integers(num_gpus), 7.0, 0.0)
        if not steps.any():
            steps[0] = 1
        tables.append([0, *np.cumsum(steps).tolist()])
    work = rng.integers(0 if rng.random() < 0.3 else 1, 13, n) * 10.0 ** rng.integers(-3, 4, n) ** rng.integers(0, 2)
    work[int(rng.integers(n))] += 1.0
    arrivals = rng.integers(0, 8, n) * float(rng.integers(2))
    return replace(instance_of(num_gpus, tables, work, "at_completions"), arrivals=arrivals)


def test_bounds_and_plans_enclose_the_exact_value():
    rng = np.random.default_rng(21)
    priced = searched = 0
    for _ in rounds(60):
        instance = drawn(rng)
        # What holds of shares that may change at any time holds of those that change at completions.
        jobs = Jobs(instance)
        run = jobs.follow(jobs.sizes, whole=False)
        work = jobs.prices(run.events)
        work = jobs.sizes if work is None else work
        runs = [run, jobs.follow(work, whole=False)]
        best = min(run.total for run in runs)
        pricing = Pricing(jobs, run, work)
        pricing.run(best, 10, math.inf)
        bounds = [sum_of_ends(jobs.releases, jobs.sizes, jobs.alone)]
        if pricing.best is not None:
            bounds.append(pricing.best.bound(jobs.num_gpus))
            priced += 1
            if len(jobs.groups) == 1:
                _, left_out = Search(jobs, pricing).run(best, 10**6)
                bounds.append(min(left_out, best * (1 - ROOM)))
                searched += 1
        plans = [instance.objective(jobs.schedule(prices)) for prices in (jobs.sizes, work)]
        assert not instance.violations(jobs.schedule(work))
        try:
            exact = float(optimum(instance))
        except TooLarge:
            exact = min(plans)
        size = float(jobs.average(best)) + float(jobs.releases.max())
        for value in bounds:
            assert jobs.average(value) <= exact + ROOM * size, instance.to_json()
        for value in plans:
            assert value >= exact * (1 - ROOM), instance.to_json()
    assert priced > 0
    assert searched > 0


def test_what_is_said_to_be_optimal_is_what_the_reference_finds():
    rng = np.random.default_rng(22)
    proven = 0
    for _ in rounds(15):
        instance = drawn(rng)
        try:
            exact = float(optimum(instance))
        except TooLarge:
            continue
        solution = formulations.solve(instance, time_limit=60)
        assert solution.bound <= exact * (1 + 1e-6), instance.to_json()
        assert solution.objective >= exact * (1 - 1e-6), instance.to_json()
        if solution.status == "optimal":
            assert solution.objective == pytest.approx(exact, rel=1e-6), instance.to_json()
            proven += 1
    assert proven


def test_any_prices_of_gpus_prove_a_bound():
    rng = np.random.default_rng(23)
    for _ in rounds(10):
        gap = float(rng.choice([0.0, 2000.0]))
        instance = generate(rng, num_jobs=4, num_gpus=6, arrival_gap=gap, rigid=float(rng.choice([0.0, 0.5])))
        jobs = Jobs(instance)
        run = jobs.follow(jobs.sizes, whole=False)
        pricing = Pricing(jobs, run, jobs.sizes)
        least = min(instance.objective(rule(instance)) for rule in ALL.values())
        for _ in range(5):
            prices = rng.exponential(0.3, len(pricing.grid) - 1) * rng.integers(0, 2, len(pricing.grid) - 1)
            found, _ = pricing._evaluated(prices, jobs.sizes * rng.exponential(2.0, 4))
            assert jobs.average(found.bound(jobs.num_gpus)) <= least * (1 + ROOM)


def test_an_order_and_its_prices_are_worth_the_same():
    """Where the jobs complete in the order whose prices they follow, both are the optimum of its linear program."""
    rng = np.random.default_rng(24)
    met = 0
    for _ in range(20):
        instance = generate(rng, num_jobs=6, num_gpus=8)
        jobs = Jobs(instance)
        run = jobs.follow(jobs.sizes, whole=True)
        for _ in range(10):
            prices = jobs.prices(run.events)
            events, run = run.events, jobs.follow(prices, whole=True)
            if events == run.events:
                met += 1
                assert run.total == pytest.approx(float(prices.sum()), rel=1e-9)
                assert instance.objective(jobs.schedule(prices)) == pytest.approx(run.total / 6, rel=1e-9)
                break
    assert met > 10


def test_nobody_completes_before_arriving():
    instance = ElasticSharing(num_gpus=1, work=[1.0, 1.0], throughputs=[[0, 1], [0, 1]], arrivals=[0.0, 5.0])
    jobs = Jobs(instance)
    assert jobs.follow(jobs.sizes, whole=True).events == [0, ARRIVAL, 1]
    assert jobs.prices([0, 1, ARRIVAL]) is None
    assert jobs.prices([ARRIVAL, 0, 1]) is not None


def test_envelopes():
    hull, corners = envelope(np.array([0.0, 0.0, 4.0, 4.0, 9.0]))
    assert hull.tolist() == [0.0, 2.25, 4.5, 6.75, 9.0]
    assert corners.tolist() == [0, 4]


def test_the_search_finds_what_the_model_finds():
    rng = np.random.default_rng(25)
    for _ in rounds(10):
        instance = generate(rng, num_jobs=5, num_gpus=6, loss=1.0, reallocation="any_time")
        solution = formulations.solve(instance, verify=True)
        assert (solution.status, solution.method, solution.proof) == ("optimal", ORDERS.name, "two runs")
        model = formulations.solve(formulations.build(instance), verify=False)
        assert solution.objective == pytest.approx(in_seconds(instance, model.objective), rel=1e-6)


@pytest.mark.parametrize("arrival_gap", [0.0, 800.0])
@pytest.mark.parametrize("reallocation", ["at_completions", "any_time"])
def test_no_heuristic_is_ahead(reallocation, arrival_gap):
    for seed in range(2):
        instance = generate(
            seed, num_jobs=12, num_gpus=16, rigid=0.3, arrival_gap=arrival_gap, reallocation=reallocation, requests=True
        )
        solution = formulations.solve(instance, time_limit=2, verify=False)
        values = {name: instance.objective(plan) for name, rule in ALL.items() if (plan := rule(instance)) is not None}
        name = min(values, key=values.get)
        assert solution.objective <= values[name] * (1 + ROOM), (seed, name)
        assert solution.bound > 0


def test_a_limit_of_no_length_still_leaves_a_plan_and_a_bound():
    instance = generate(0, num_jobs=40, num_gpus=32, arrival_gap=100.0)
    solution = formulations.solve(instance, time_limit=1e-3)
    assert (solution.status, solution.method, solution.proof) == ("feasible", ORDERS.name, "argument")
    assert 0 < solution.bound < solution.objective


@pytest.mark.slow
def test_another_solver_agrees_on_jobs_that_arrive():
    rng = np.random.default_rng(26)
    for reallocation in ("at_completions", "any_time"):
        for _ in rounds(3):
            num_gpus, tables, work = small(rng, concave=True, sizes=[(3, 2), (3, 3)])
            arrivals = rng.integers(0, 4, 3).astype(float)
            instance = replace(instance_of(num_gpus, tables, work, reallocation), arrivals=arrivals)
            other = formulations.solve(instance, solver="scip")
            solution = formulations.solve(instance)
            assert (solution.status, other.status) == ("optimal", "optimal"), instance.to_json()
            assert other.objective == pytest.approx(solution.objective, rel=1e-6), instance.to_json()


@pytest.mark.parametrize("seed", range(6))
def test_bounds_hold_on_a_clock_that_counts_from_1970(seed: int) -> None:
    """A plan may end before the true optimum by what the last digits of its times are worth."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 4))
    instance = ElasticSharing(
        num_gpus=4,
        work=rng.uniform(0.5, 2, n),
        throughputs=np.outer(rng.uniform(10, 50, n), [0, 1, 1.8, 2.4, 2.8]),
        arrivals=1.7e9 + np.sort(rng.uniform(0, 0.05, n)),
        requests=np.ones(n, int),
        reallocation=("at_completions", "any_time")[seed % 2],
    )
    plans = [heuristic.function(instance) for heuristic in entry("afs.elastic_sharing").heuristics.values()]
    best = min(instance.objective(plan) for plan in plans if plan is not None and not instance.violations(plan))
    solution = formulations.solve(instance, time_limit=5)
    assert solution.bound <= best
    # Seconds since 1970 have a digit of 240 ns.
    assert solution.objective <= best + 1e-5
    assert solution.bound >= solution.objective * 0.98 - 1e-5
