"""elasticflow.best_effort by its ends: what jobs pay, against all their ways, and plans against all plans."""

from fractions import Fraction
from itertools import product
from math import ceil

import numpy as np
import pytest

import formulations
from formulations.methods import ends
from formulations.methods.slot_prices import payers
from heuristics.elasticflow.best_effort import minimum_shares_first, shortest_first
from instances.elasticflow.best_effort import BestEffort, generate
from instances.files import text_of
from instances.reference import Malformed, Reference
from validation.testing.second_opinion import optimum

from ...effort import rounds


def small(seed):
    """A tiny instance with curves of any kind, finished jobs and deadlines that cannot all be met."""
    rng = np.random.default_rng(seed)
    n, num_gpus = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    deadlines = rng.integers(1, 4, n)
    gains = rng.integers(0, 5, (n, num_gpus)).astype(float)
    rows = [gains, np.cumsum(-np.sort(-gains, axis=1), axis=1), np.cumsum(rng.random((n, num_gpus)), axis=1)]
    throughputs = np.hstack([np.zeros((n, 1)), rows[seed % 3]])
    most = throughputs.max(axis=1) * deadlines
    return BestEffort(
        num_gpus=num_gpus,
        iterations=np.where(rng.random(n) < 0.1, 0.0, rng.random(n) * most * rng.choice([0.5, 0.8, 1.0])),
        deadlines=deadlines,
        throughputs=throughputs,
        best_effort=rng.random(n) < 0.6,
    )


def all_ways(payer, prices, first, last, each):
    """Least that a job pays, in fractions, over all whole numbers of GPUs in all slots."""
    work, least = [Fraction(float(one)) for one in payer.works], None
    for end in range(first, last + 1):
        for way in product(range(len(work)), repeat=end):
            if sum(work[place] for place in way) >= Fraction(payer.need):
                cost = each * end + sum(Fraction(p) * int(payer.counts[at]) for p, at in zip(prices, way, strict=False))
                least = cost if least is None else min(least, cost)
    return least


@pytest.mark.parametrize("first", rounds(40)[::40])
def test_no_way_is_cheaper(first):
    """Whole numbers cost what all ways tried do, and mixed ones no more; the GPUs that are named do the work."""
    seen = 0
    for seed in range(first, first + 40):
        instance, rng = small(seed), np.random.default_rng(seed)
        prices = rng.choice([0.0, 0.1, 0.25, 1.0, 3.0], 4)
        for payer in payers(instance):
            if payer.need <= 0:
                continue
            begin, end = sorted(rng.integers(1, 5, 2).tolist())
            least = all_ways(payer, prices.tolist(), begin, end, 1)
            whole, mixed = (payer.cheapest(prices, begin, end, 1.0, whole=kind) for kind in (True, False))
            if least is None:
                assert whole.least == mixed.least == np.inf
                continue
            seen += 1
            assert whole.least == pytest.approx(float(least))
            assert mixed.least <= float(least) + 1e-9
            assert whole.end + prices[: whole.end] @ whole.gpus == pytest.approx(float(least))
            for paid in (whole, mixed):
                assert payer.works[np.searchsorted(payer.counts, paid.gpus)].sum() >= payer.need * (1 - 1e-12)
    assert seen > 20


@pytest.mark.parametrize("first", rounds(60)[::60])
def test_plans_equal_enumeration(first):
    """Any curves; without a plan, that is said; stopped early, what is said holds as well."""
    found = set()
    for seed in range(first, first + 60):
        instance = small(seed)
        best = optimum(instance)
        solution = formulations.solve(instance)
        early = formulations.solve(instance, mip_gap=0.5)
        found.add(solution.status)
        if best is None:
            assert solution.status == early.status == "infeasible"
            continue
        assert solution.status == "optimal"
        assert solution.objective == solution.bound == pytest.approx(float(best))
        assert early.bound <= float(best) + 1e-9
        assert early.objective >= float(best) - 1e-9
    assert found == {"optimal", "infeasible"}


@pytest.mark.parametrize(("seed", "curves"), [(0, "concave"), (1, "measured"), (2, "linear")])
def test_another_solver_agrees(seed, curves):
    instance = generate(seed, num_jobs=7, num_gpus=8, horizon=5, curves=curves, part=0.6)
    own = formulations.solve(instance)
    other = formulations.solve(instance, solver="scip", method="one model")
    assert own.method == "ends of the jobs"
    assert own.status == other.status == "optimal"
    assert own.objective == pytest.approx(other.objective)


@pytest.mark.parametrize("seed", range(4))
def test_no_plan_is_behind_the_heuristics(seed):
    """Nor where the search ends with its first part."""
    instance = generate(seed, num_jobs=12, num_gpus=16, part=0.5)
    plans = [plan for heuristic in (minimum_shares_first, shortest_first) if (plan := heuristic(instance))]
    assert plans
    solution = formulations.solve(instance, mip_gap=10.0)
    assert solution.objective <= min(instance.objective(plan) for plan in plans)
    assert solution.bound <= solution.objective


def test_ends_that_cannot_be_met_together():
    """In mixed numbers of two GPUs the jobs are done after two and three slots, in whole ones after two and four."""
    instance = BestEffort(
        num_gpus=2,
        iterations=[3, 3],
        deadlines=[4, 4],
        throughputs=[[0, 0.5, 2], [0, 0.5, 2]],
        best_effort=[True, True],
    )
    solution = formulations.solve(instance)
    assert solution.status == "optimal"
    assert solution.objective == float(optimum(instance)) == 3.0


def least_of(instance, tree, limits):
    """What prices prove of a part of the plans, by all ways of each job: slots, in fractions; None without a plan."""
    if "job" in tree:
        first, last = limits[tree["job"]]
        halves = {"sooner": (first, min(last, tree["end"])), "later": (max(first, tree["end"] + 1), last)}
        found = [least_of(instance, tree[half], limits | {tree["job"]: ends}) for half, ends in halves.items()]
        return min((one for one in found if one is not None), default=None)
    total = -instance.num_gpus * sum(map(Fraction, tree["slots"]))
    for job, payer in enumerate(payers(instance)):
        if instance.iterations[job] > 0:
            first, last = limits[job] if instance.best_effort[job] else 2 * (int(instance.deadlines[job]),)
            paid = all_ways(payer, tree["slots"], first, last, int(instance.best_effort[job]))
            if paid is None:
                return None
            total += paid
    return total


def divided(instance, rng, depth):
    """Random prices of random parts of the plans."""
    jobs = np.flatnonzero(instance.best_effort)
    if not depth or not jobs.size:
        return {"slots": rng.choice([0.0, 0.25, 0.5, 1.0, 2.0], instance.horizon).tolist()}
    halves = {half: divided(instance, rng, depth - 1 - int(rng.integers(depth))) for half in ("sooner", "later")}
    return {"job": int(rng.choice(jobs)), "end": int(rng.integers(0, instance.horizon + 1)), **halves}


@pytest.mark.parametrize("first", rounds(60)[::20])
def test_prices_of_parts_prove_what_all_ways_do(first):
    """Of random divisions exactly, and never more than the optimum; of the search's own, the optimum or nearly."""
    seen = met = 0
    for seed in range(first, first + 20):
        instance, rng = small(seed), np.random.default_rng(seed)
        best = optimum(instance)
        if not instance.best_effort.any() or best is None:
            continue
        seen += 1
        reference, count = Reference(text_of(instance)), int(instance.best_effort.sum())
        whole = {job: (1, int(deadline)) for job, deadline in enumerate(instance.deadlines)}
        for _ in range(2):
            tree = divided(instance, rng, 3)
            slots = least_of(instance, tree, whole)
            proven = reference.bound(tree)
            assert slots is not None
            assert proven == Fraction(ceil(slots), count)
            assert proven <= best
        plan = formulations.solve(instance).plan
        found = max((reference.bound(prices) for prices in ends.prices(instance, plan)), default=0)
        assert found <= best
        met += found == best
    assert seen > 5
    assert met > 0.8 * seen


def test_prices_of_parts_are_refused_where_a_part_is_missing():
    """Nor of jobs that do not wait, nor prices of other lengths or signs."""
    instance = BestEffort(
        num_gpus=1, iterations=[1.0, 2.0], deadlines=[3, 3], throughputs=[[0.0, 1.0]] * 2, best_effort=[True, False]
    )
    reference, slots = Reference(text_of(instance)), {"slots": [0.5, 0.5, 0.0]}
    tree = {"job": 0, "end": 1, "sooner": slots, "later": {"job": 0, "end": 2, "sooner": slots, "later": slots}}
    assert reference.bound(tree) == 1
    deep = slots
    for _ in range(450):
        deep = tree | {"later": deep}
    for wrong in (
        {one: tree[one] for one in tree if one != "later"},
        tree | {"sooner": None},
        tree | {"sooner": {"slots": [0.5, 0.5]}},
        tree | {"later": {"slots": [0.5, -0.5, 0.0]}},
        tree | {"job": 1},
        tree | {"job": 2},
        tree | {"job": -1},
        tree | {"end": 1.5},
        tree | {"slots": [0.0, 0.0, 0.0]},
        tree | {"other": 1},
        [tree],
        deep,
    ):
        with pytest.raises(Malformed, match="prices"):
            reference.bound(wrong)
