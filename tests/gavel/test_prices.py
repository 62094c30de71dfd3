"""Programs of many jobs without pairs, solved by the prices of what jobs share."""

from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest

import formulations
from benchmarks import drawn
from formulations import Options, Session
from formulations.engine import certificate, linear, scaling
from formulations.engine.exact import exact_bound, exact_optimum
from formulations.methods import GaveUp, bracket, policy
from formulations.methods.prices import search, some
from instances.gavel.cost import Cost
from instances.gavel.fifo import Fifo
from instances.gavel.finish_time_fairness import generate as finish_time
from instances.gavel.makespan import Makespan
from instances.gavel.max_min_fairness import MaxMinFairness
from instances.gavel.throughput_per_dollar import ThroughputPerDollar
from instances.gavel.total_throughput import TotalThroughput

from ..effort import rounds

POLICIES = (MaxMinFairness, Makespan, TotalThroughput, Fifo, Cost, ThroughputPerDollar)


@pytest.fixture(autouse=True)
def small_samples(monkeypatch):
    """Samples of some jobs of few, so that brute methods can follow."""
    monkeypatch.setattr(search, "SAMPLE", (8, 1.0, 500))


def programs(kind, seeds, most=50):
    """Arrays of drawn instances, with what prices say of them; without those that need no program."""
    module = import_module(f"formulations.{kind.problem}")
    for seed in seeds:
        instance = drawn.policy(kind, seed, most=most)
        if not drawn.needs_program(instance):
            continue
        stated = module.program(instance)
        program = stated.arrays()
        try:
            yield program, search.PricedJobs(stated, program, Options()).run()
        except GaveUp:
            yield program, None


@pytest.mark.parametrize("kind", POLICIES)
def test_prices_find_the_optimum_of_the_linear_program(kind):
    proven = compared = 0
    for program, result in programs(kind, range(40)):
        compared += 1
        if result is None:
            continue
        proven += 1
        whole = Session().run(program)
        value = program.objective(whole.x)
        assert program.objective(result.x) == pytest.approx(value, rel=1e-9, abs=1e-12)
        assert result.bound == pytest.approx(value, rel=1e-9, abs=1e-12)
        assert program.infeasibility(result.x) <= 1e-9
    assert compared >= 10
    assert proven >= 0.8 * compared


def test_a_program_is_measured_once(monkeypatch):
    """Of a million jobs each look for units is a twelfth of the time."""
    instance = import_module("instances.gavel.makespan").generate(1, num_jobs=400, pair_fraction=0.0)
    whole, seen = instance.fits.size + 1, []

    def counted(program):
        seen.append(program.num_cols)
        return scaling.scaled(program)

    for module in (linear, certificate):
        monkeypatch.setattr(module, "scaled", counted)
    assert formulations.solve(instance, method="prices").status == "optimal"
    assert seen.count(whole) == 1


@pytest.mark.parametrize("kind", POLICIES)
def test_prices_hold_in_fractions(kind):
    compared = 0
    for program, result in programs(kind, range(100, 112), most=24):
        if result is None:
            continue
        best = exact_optimum(program)
        if not best.proven:
            # The solver's basis is not quite optimal in fractions.
            continue
        compared += 1
        proven = exact_bound(program, result.certificate.row_duals)
        assert proven >= best.value
        assert proven - best.value <= Fraction(1e-9) * max(abs(best.value), Fraction(1e-9))
    assert compared >= 4


def generated(name, num_jobs, **options):
    return import_module(f"instances.{name}").generate(3, num_jobs=num_jobs, pair_fraction=0.0, **options)


@pytest.mark.parametrize("kind", POLICIES)
def test_solve_takes_prices_and_says_so(kind, monkeypatch):
    monkeypatch.undo()
    instance = generated(kind.problem, 2600)
    solution = formulations.solve(instance)
    assert solution.method == "prices of what jobs share"
    assert (solution.status, solution.proof) == ("optimal", "prices")
    assert solution.certificate.holds
    assert instance.violations(solution.plan) == []
    # The prices have the names of the model's constraints, and each limit's price is on its side.
    assert solution.duals["job_time"].shape == (2600,)
    assert (solution.duals["pool_capacity"] >= 0).all()
    monkeypatch.setattr(search, "ROUNDS", 0)
    whole = formulations.solve(instance)
    assert whole.method == "one program of arrays"
    assert solution.objective == pytest.approx(whole.objective, rel=1e-8)
    assert solution.bound == pytest.approx(whole.bound, rel=1e-8)


def test_jobs_that_differ_in_weight_only_share_their_ties(monkeypatch):
    """Three kinds of job at 2,000 weights: at the optimum's prices, all of a kind are torn between two types."""
    monkeypatch.undo()
    rng = np.random.default_rng(0)
    kinds = np.array([[1.0, 3.0, 9.0], [1.0, 2.0, 4.0], [1.0, 1.1, 1.2]])
    instance = MaxMinFairness(
        throughputs=kinds[rng.integers(0, 3, 2000)],
        num_workers=np.array([300, 200, 100]),
        weights=10 ** rng.uniform(-3, 3, 2000),
    )
    monkeypatch.setattr(policy, "fold", lambda program: None)
    solution = formulations.solve(instance)
    assert solution.method == "prices of what jobs share"
    assert solution.status == "optimal"
    assert abs(solution.bound / solution.objective - 1) <= 1e-9


@pytest.mark.parametrize("unevenness", [0.0, 1.0])
def test_finish_time_fairness_by_prices(unevenness, monkeypatch):
    instance = finish_time(5, num_jobs=80, pair_fraction=0.0, unevenness=unevenness)
    whole = formulations.solve(instance)
    monkeypatch.setattr(bracket, "PRICED_JOBS", 1)
    solution = formulations.solve(instance)
    assert "over some of the 80 jobs" in solution.message
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(whole.objective, rel=1e-7)
    assert solution.bound == pytest.approx(whole.bound, rel=1e-7)


def test_a_drawn_sample_stands_for_all():
    """Each job is drawn with a chance in proportion to its size, and counts as many times as it is seldom drawn."""
    rng = np.random.default_rng(0)
    sizes = np.concatenate([rng.random(300), [50.0, 80.0], np.zeros(5)])
    totals = []
    for _ in rounds(130):
        drawn, weights = some.sample(sizes, 40, rng)
        assert len(set(drawn.tolist())) == len(drawn)
        assert {300, 301} <= set(drawn.tolist())
        assert drawn.max() < 302
        assert (weights >= 1).all()
        totals.append(weights @ sizes[drawn])
    assert np.mean(totals) == pytest.approx(sizes.sum(), rel=0.01)
