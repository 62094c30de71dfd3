"""Water filling over entities: exact fractions on one type, the definition step by step elsewhere."""

import json
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings

import formulations
from benchmarks import drawn
from formulations import LinearProgram, Session
from formulations.engine import clock
from formulations.engine.linear import csr
from formulations.engine.options import Options
from formulations.gavel import hierarchical_fairness as formulation
from formulations.methods import generation, water_filling
from formulations.methods.filling import Limits
from formulations.methods.mixing import Mixing
from heuristics.gavel.hierarchical_fairness import adaptive_waterfiller, approximate_waterfiller, entity_share
from instances.base import PlanError
from instances.gavel.hierarchical_fairness import (
    HierarchicalAllocation,
    HierarchicalFairness,
    four_jobs,
    from_trace,
    generate,
    growing_cluster,
    product_and_research,
    two_entities,
)
from instances.gavel.sharing import Allocation
from validation.problems.gavel.hierarchical_fairness import strategy as hierarchical_fairness
from validation.testing.transform import permuted

from ..effort import rounds


def vector(instance: HierarchicalFairness, **options: Any) -> np.ndarray:
    solution = formulations.solve(instance, **options)
    assert solution.status == "optimal", solution.message
    plan: Any = solution.plan
    assert not instance.violations(plan)
    return np.asarray(plan.normalized_throughputs)


def by_definition(instance: HierarchicalFairness) -> list[Fraction]:
    """The definition on one type and jobs of one worker, in fractions: time is all that there is to share."""
    workers = int(instance.num_workers[0])
    entity_weights = [Fraction(weight) for weight in instance.entity_weights.tolist()]
    weights = [Fraction(weight) for weight in instance.weights.tolist()]
    entities = instance.entities.tolist()
    levels = [Fraction(0)] * instance.num_jobs
    rising = set(range(instance.num_jobs))
    while rising:
        rates = dict.fromkeys(rising, Fraction(0))
        for entity, policy in enumerate(instance.entity_policies.tolist()):
            mine = sorted(job for job in rising if entities[job] == entity)
            if mine and policy == "fifo":
                rates[mine[0]] = entity_weights[entity]
            for job in mine if policy == "fairness" else []:
                rates[job] = entity_weights[entity] * weights[job] / sum(weights[other] for other in mine)
        until_full = (workers - sum(levels)) / sum(rates.values())
        step = min([until_full, *((1 - levels[job]) / rate for job, rate in rates.items() if rate)])
        for job, rate in rates.items():
            levels[job] += step * rate
        rising = {job for job in rising if levels[job] < 1} if sum(levels) < workers else set()
    return levels


def on_one_type(rng: np.random.Generator) -> HierarchicalFairness:
    n, e = int(rng.integers(1, 7)), int(rng.integers(1, 4))
    return HierarchicalFairness(
        throughputs=rng.integers(1, 5, (n, 1)).astype(float),
        num_workers=rng.integers(1, 5, 1),
        entities=rng.integers(0, e, n),
        entity_weights=rng.integers(1, 5, e).astype(float),
        entity_policies=rng.choice(["fairness", "fifo"], e),
        weights=rng.integers(1, 5, n).astype(float),
    )


def test_equals_fractions_on_one_type() -> None:
    """On one type the normalised throughput is the fraction of time."""
    for seed in rounds(70):
        instance = on_one_type(np.random.default_rng(seed))
        expected = [float(level) for level in by_definition(instance)]
        assert vector(instance) == pytest.approx(expected, abs=1e-6), seed


def small(brute: Any, seed: int) -> HierarchicalFairness:
    fields = brute.draw(seed)
    rng = np.random.default_rng(seed)
    n, e = len(fields["throughputs"]), int(rng.integers(1, 3))
    return HierarchicalFairness(
        **fields,
        entities=rng.integers(0, e, n),
        entity_weights=rng.choice([1.0, 2.0, 3.0], e),
        entity_policies=rng.choice(["fairness", "fifo"], e),
        weights=rng.choice([1.0, 1.0, 2.0, 5.0], n),
    )


def by_corners(brute: Any, instance: HierarchicalFairness) -> np.ndarray:
    """The definition, each of its programs solved by looking at all corners; weights are shared by loops."""
    a, b = brute.limits(instance)
    n, total = instance.num_jobs, int(instance.num_workers.sum())
    normal = np.zeros((n, a.shape[1]))
    for m in range(n):
        equal = 0.0
        for pool, workers in enumerate(instance.num_workers.tolist()):
            speeds = [instance.throughputs[m, j] for j in range(instance.num_types) if instance.pools[j] == pool]
            if speeds and instance.scale_factors[m] <= workers:
                equal += max(speeds) * workers / total
        normal[m] = instance.scale_factors[m] * brute.received(instance)[m] / equal

    def rise(levels: np.ndarray, rates: np.ndarray) -> float:
        rows = np.vstack([np.hstack([a, np.zeros((len(a), 1))]), np.hstack([-normal, rates[:, None]])])
        rows = np.vstack([rows, [0.0] * a.shape[1] + [-1.0]])
        return float(brute.corners(rows, np.concatenate([b, 1e-12 - levels, [0.0]]))[:, -1].max())

    levels, rising = np.zeros(n), set(range(n))
    while rising:
        rates = np.zeros(n)
        for entity, policy in enumerate(instance.entity_policies.tolist()):
            mine = [m for m in sorted(rising) if instance.entities[m] == entity]
            for m in mine[:1] if policy == "fifo" else mine:
                share = 1.0 if policy == "fifo" else instance.weights[m] / sum(instance.weights[o] for o in mine)
                rates[m] = instance.entity_weights[entity] * share
        levels = levels + rise(levels, rates) * rates
        rising -= {m for m in rising if rates[m] > 0 and rise(levels, np.eye(n)[m]) < 1e-7}
    return levels


@pytest.mark.slow
@pytest.mark.parametrize("first", rounds(100)[::100])
def test_equals_the_definition_by_corners(brute: Any, first: int) -> None:
    """On several types, with pairs, wide jobs, zeros, ties and empty pools."""
    for seed in range(first, first + 100):
        instance = small(brute, seed)
        expected = by_corners(brute, instance)
        assert vector(instance) == pytest.approx(expected, abs=1e-6), seed
        step_by_step, _ = water_filling.step_by_step(instance, Options())
        assert step_by_step.vector == pytest.approx(expected, abs=1e-5), seed


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"unconsolidated": True}, {"weight_spread": 100.0}, {"fifo_fraction": 1.0}])
def test_equals_the_definition_step_by_step(options: dict[str, Any]) -> None:
    for seed in range(4):
        instance = generate(seed, num_jobs=24, workers_per_pool=8, **options)
        filling, _ = water_filling.step_by_step(instance, Options())
        assert filling.complete
        assert vector(instance) == pytest.approx(filling.vector, rel=1e-5, abs=1e-5)


# --- proofs -----------------------------------------------------------------------------------------


def check_proofs(instance: HierarchicalFairness) -> water_filling.WaterFilling:
    """Every job is frozen once, by a limit that holds for every column of X and is reached exactly."""
    filling = water_filling.water_filling(instance)
    assert filling.complete
    assert sorted(job for level in filling.levels for job in level.jobs.tolist()) == list(range(instance.num_jobs))
    normal = instance.scale_factors / instance.equal_share_throughputs
    for level in filling.levels:
        limit = level.limit
        assert limit is not None
        assert min(limit.prices.min(), limit.time_prices.min(), limit.pool_prices.min()) >= 0
        most = limit.time_prices.sum() + limit.pool_prices @ instance.num_workers
        assert limit.most == pytest.approx(most, rel=1e-12)
        for row, job in enumerate([[m] for m in range(instance.num_jobs)] + instance.pairs.tolist()):
            pair = row - instance.num_jobs
            speeds = instance.throughputs[row][None] if pair < 0 else instance.pair_throughputs[pair].T
            worth = ((limit.prices * normal)[job, None] * speeds).sum(axis=0)
            cost = limit.time_prices[job].sum()
            cost = cost + instance.scale_factors[job[0]] * limit.pool_prices[instance.pools]
            assert (worth <= cost + 1e-9 * max(1.0, cost.max()))[instance.fits[row]].all()
        assert (limit.prices[level.jobs] > 0).all()
        # Equality at the levels: nobody with a price can rise unless another falls.
        assert limit.prices @ filling.vector == pytest.approx(limit.most, rel=1e-6)
    return filling


def test_each_job_has_the_proof_that_it_cannot_rise(brute: Any) -> None:
    for seed in rounds(20):
        check_proofs(small(brute, seed))


def test_proofs_of_many_levels() -> None:
    filling = check_proofs(generate(1, num_jobs=60, num_entities=1, workers_per_pool=40, weight_spread=50.0))
    assert filling.num_levels > 20
    heights = [level.height for level in filling.levels]
    assert heights == sorted(heights)


def test_levels_of_the_examples() -> None:
    levels = water_filling.water_filling(four_jobs()).levels
    assert [(level.height, level.jobs.tolist()) for level in levels] == [(2, [0]), (4, [1, 2, 3])]
    filling = water_filling.water_filling(two_entities())
    assert filling.num_levels == 2
    last = next(level for level in filling.levels if 0 in level.jobs)
    assert last.height == pytest.approx(1)
    assert last.limit is not None
    # Here it is the pool that is full, and all jobs pay alike for its workers.
    assert last.limit.pool_prices * 3 == pytest.approx(last.limit.most)
    assert last.limit.prices == pytest.approx(last.limit.pool_prices[0])


def test_the_bound_is_that_of_the_first_level(brute: Any) -> None:
    for seed in range(40):
        instance = small(brute, seed)
        solution = formulations.solve(instance)
        first = formulations.solve(formulations.build(instance))
        assert first.status == "optimal"
        assert solution.bound == pytest.approx(solution.objective, rel=1e-9)
        assert first.objective == pytest.approx(solution.objective, rel=1e-9)


def test_generated_columns_end_in_the_same_vector(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(6):
        instance = generate(seed, num_jobs=16, pair_fraction=0.8, workers_per_pool=4)
        whole = vector(instance)
        monkeypatch.setattr(generation, "PRICING_COLUMNS", 0)
        assert vector(instance) == pytest.approx(whole, abs=1e-7)
        monkeypatch.undo()


def test_time_that_runs_out_leaves_a_plan_and_a_true_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    late = formulations.Result("unknown", None, np.inf, None, 0.0, "Time limit reached")
    monkeypatch.setattr(formulations.Session, "run", lambda *_, **__: late)
    instance = two_entities()
    solution = formulations.solve(instance, time_limit=1.0)
    assert solution.status == "feasible"
    assert not instance.violations(solution.plan)
    assert solution.bound == pytest.approx(0.5)


def late(*_: object, **__: object) -> None:
    raise clock.TimeIsUp


@pytest.mark.parametrize("seed", range(6))
def test_pairs_that_come_too_late_leave_what_jobs_have_alone(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = generate(seed, num_jobs=80)
    whole = formulations.solve(instance)
    alone = formulations.solve(
        replace(instance, pairs=np.zeros((0, 2), int), pair_throughputs=np.zeros((0, instance.num_types, 2)))
    )
    monkeypatch.setattr(water_filling._Programs, "_by_program", late)
    cut = formulations.solve(instance, time_limit=60.0)
    assert (whole.status, alone.status, cut.status) == ("optimal", "optimal", "feasible")
    assert instance.violations(cut.plan) == []
    assert cut.objective == pytest.approx(alone.objective, rel=1e-6)
    assert cut.objective <= whole.objective * (1 + 1e-9) <= cut.bound * (1 + 2e-9)
    for heuristic in (entity_share, approximate_waterfiller, adaptive_waterfiller):
        assert instance.objective(heuristic(instance)) <= cut.objective * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_time_that_ends_between_mixes_leaves_the_best_plan_so_far(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = generate(seed, num_jobs=80, pair_fraction=0.0)
    whole, values = formulations.solve(instance), []
    assert whole.status == "optimal"
    ask = water_filling._Programs.ask
    for most in range(5):

        def some(self: Any, levels: np.ndarray, most: int = most) -> Any:
            return ask(self, levels) if self.count < most else late()

        monkeypatch.setattr(water_filling._Programs, "ask", some)
        cut = formulations.solve(instance, time_limit=60.0)
        assert instance.violations(cut.plan) == []
        assert cut.objective <= whole.objective * (1 + 1e-9) <= cut.bound * (1 + 2e-9)
        values.append(cut.objective)
    assert values[0] == instance.objective(instance.plan(instance.isolated_share()))
    assert values == sorted(values)
    assert values[0] < 0.99 * values[-1]


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"weight_spread": 100.0, "workers_per_pool": 28}, {"fifo_fraction": 1.0}])
def test_mixes_of_plans_end_in_the_same_vector(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(6):
        instance = generate(seed, num_jobs=40, pair_fraction=0.0, **options)
        whole = vector(instance)
        monkeypatch.setattr(water_filling, "MIXED_JOBS", 1)
        assert "mixes of plans" in formulations.solve(instance).message
        # What proves the mixes' levels is looked at below; those of programs are attained to EXACT.
        assert vector(instance) / instance.ceilings == pytest.approx(whole / instance.ceilings, abs=water_filling.EXACT)
        check_proofs(instance)
        monkeypatch.undo()


def odd(seed: int) -> HierarchicalFairness:
    """Few jobs of entities, with all that :func:`benchmarks.drawn.cluster` draws."""
    rng = np.random.default_rng(seed)
    fields = drawn.cluster(rng, fewest=1, most=30)
    n, e = len(fields["throughputs"]), int(rng.integers(1, 4))
    far = rng.random() < 0.3
    return HierarchicalFairness(
        **fields,
        entities=rng.integers(0, e, n),
        entity_weights=10 ** rng.uniform(-3, 3, e) if far else rng.integers(1, 4, e).astype(float),
        entity_policies=rng.choice(["fairness", "fifo"], e),
        weights=10 ** rng.uniform(-3, 3, n) if far else rng.integers(1, 4, n).astype(float),
    )


def test_mixes_of_plans_end_where_programs_do(monkeypatch: pytest.MonkeyPatch) -> None:
    mixed = 0
    for seed in rounds(60):
        instance = odd(seed)
        whole = water_filling.water_filling(instance)
        monkeypatch.setattr(water_filling, "MIXED_JOBS", 1)
        filling = water_filling.water_filling(instance)
        monkeypatch.undo()
        assert filling.complete
        assert whole.complete
        mixed += "mixes of plans" in filling.message
        ceilings = np.where(instance.ceilings > 0, instance.ceilings, 1.0)
        assert filling.vector / ceilings == pytest.approx(whole.vector / ceilings, abs=1e-6), seed
    assert mixed >= 50


def test_a_mix_of_plans_attains_levels_or_prices_prove_that_none_does() -> None:
    """Against the linear program that asks how far pools must be overfull, over all types of all jobs."""
    for seed in rounds(40):
        instance = odd(seed)
        levels = np.random.default_rng(seed).uniform(0, 1) ** 3 * instance.ceilings
        found = Mixing(instance, Options()).at(levels, tolerance=1e-10)
        assert found is not None
        least = least_overload(instance, levels)
        assert found.proven <= least + 1e-9
        assert found.overload >= least - 1e-9
        assert found.missed or found.overload <= 1e-10
        # The mix attains the levels, whatever it takes of the pools, and nobody has more time than there is.
        received = instance.normalized_throughputs(found.allocation)
        assert received == pytest.approx(levels, rel=1e-9, abs=1e-12)
        used = instance.num_workers > 0
        job_time, workers = instance.loads(found.allocation)
        assert job_time.max() <= 1 + 1e-12
        assert (workers[used] / instance.num_workers[used]).max() == pytest.approx(1 + found.overload, rel=1e-9)


def least_overload(instance: HierarchicalFairness, levels: np.ndarray) -> float:
    """Least z such that levels are attained when each pool has z times its workers more."""
    n, k = instance.throughputs.shape
    used = np.flatnonzero(instance.num_workers > 0)
    times, speeds, loads = np.zeros((n, n * k + 1)), np.zeros((n, n * k + 1)), np.zeros((len(used), n * k + 1))
    for m in range(n):
        for j in range(k):
            times[m, m * k + j] = 1.0
            speeds[m, m * k + j] = instance.throughputs[m, j] * instance.level_per_throughput[m]
            for place, pool in enumerate(used.tolist()):
                if instance.pools[j] == pool:
                    loads[place, m * k + j] = instance.scale_factors[m] / instance.num_workers[pool]
    loads[:, -1] = -1.0
    rows = np.vstack([times, speeds, loads])
    i, j = np.nonzero(rows)
    program = LinearProgram(
        "min", 0.0, np.append(np.zeros(n * k), 1.0),
        np.append(np.zeros(n * k), -1.0), np.append(instance.fits.ravel().astype(float), np.inf),
        np.zeros(n * k + 1, bool),
        *csr(i, j, rows[i, j], len(rows)),
        np.concatenate([np.full(n, -np.inf), levels * (1 - 1e-12), np.full(len(used), -np.inf)]),
        np.concatenate([np.ones(n), np.full(n, np.inf), np.ones(len(used))]),
    )  # fmt: skip
    solved = Session(tolerance=1e-10).run(program)
    assert solved.status == "optimal"
    return float(solved.bound)


def cheapest(instance: HierarchicalFairness, job: int, level: Fraction, each: list[Fraction]) -> Fraction | None:
    """What a job pays for its level at prices of workers: the least over all mixes of two types, or idleness."""
    worth = Fraction(float(instance.level_per_throughput[job]))
    types = [(Fraction(0), Fraction(0))]
    for j in np.flatnonzero(instance.fits[job]).tolist():
        paid = int(instance.scale_factors[job]) * each[int(instance.pools[j])]
        types.append((Fraction(float(instance.throughputs[job, j])) * worth, paid))
    costs = [paid for speed, paid in types if speed == level]
    for (slow, less), (fast, more) in permutations(types, 2):
        if slow <= level <= fast and slow < fast:
            part = (level - slow) / (fast - slow)
            costs.append(less + part * (more - less))
    return min(costs, default=None)


def overload_at(instance: HierarchicalFairness, levels: list[Fraction], each: list[Fraction]) -> Fraction:
    """What prices prove: what all jobs pay beyond what all workers cost, as a part of that."""
    paid = [cheapest(instance, job, level, each) for job, level in enumerate(levels)]
    workers = [int(count) for count in instance.num_workers]
    return sum(paid) / sum(count * price for count, price in zip(workers, each, strict=True)) - 1


def least_overload_exactly(instance: HierarchicalFairness, levels: list[Fraction]) -> Fraction:
    """The most that prices of two pools prove, in fractions.

    It is concave in the one price that is free and linear but where a job changes its mix, so greatest at such a price.
    """
    first, second = (Fraction(1, int(count)) for count in instance.num_workers)

    def at(part: Fraction) -> Fraction:
        return overload_at(instance, levels, [part * first, (1 - part) * second])

    kinks = {Fraction(0), Fraction(1)}
    for job, level in enumerate(levels):
        # What a job pays by each of its mixes is linear in the part; it changes its mix where two are equal.
        worth = Fraction(float(instance.level_per_throughput[job]))
        ends = [(Fraction(0), Fraction(0), Fraction(0))]
        for j in np.flatnonzero(instance.fits[job]).tolist():
            width, pool = int(instance.scale_factors[job]), int(instance.pools[j])
            speed = Fraction(float(instance.throughputs[job, j])) * worth
            ends.append((speed, width * first if pool == 0 else Fraction(0), width * second if pool else Fraction(0)))
        lines = []
        for slow, fast in permutations(ends, 2):
            if slow[0] <= level <= fast[0] and slow[0] < fast[0]:
                part = (level - slow[0]) / (fast[0] - slow[0])
                lines.append([low + part * (high - low) for low, high in zip(slow[1:], fast[1:], strict=True)])
        for (a, b), (c, d) in combinations(lines, 2):
            if (a - b) != (c - d):
                kinks.add((d - b) / ((a - b) - (c - d)))
    return max(at(part) for part in kinks if 0 <= part <= 1)


def test_bounds_and_mixes_of_plans_in_fractions() -> None:
    """What prices are said to prove is what they prove, no more than is true, and no mix has less."""
    missed = 0
    for seed in rounds(60):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 6))
        instance = HierarchicalFairness(
            throughputs=rng.uniform(0.1, 10, (n, 3)) * (rng.random((n, 3)) < 0.8),
            num_workers=rng.integers(1, 4, 2),
            pools=[0, 1, 1],
            scale_factors=rng.integers(1, 3, n),
            entities=np.zeros(n, int),
            entity_weights=[1.0],
            entity_policies=["fairness"],
        )
        levels = rng.uniform(0, 1, n) * 0.99 * instance.ceilings
        found = Mixing(instance, Options()).at(levels, tolerance=1e-9)
        assert found is not None
        exact_levels = [Fraction(level) for level in levels.tolist()]
        least = least_overload_exactly(instance, exact_levels)
        proven = overload_at(instance, exact_levels, [Fraction(price) for price in found.pool_prices.tolist()])
        assert proven <= least
        assert abs(proven - Fraction(found.proven)) <= Fraction(1, 10**12)
        x = [[Fraction(part) for part in row] for row in found.allocation.time_fractions.tolist()]
        used = [Fraction(0), Fraction(0)]
        for job, j in product(range(n), range(3)):
            used[int(instance.pools[j])] += x[job][j] * int(instance.scale_factors[job])
        overload = max(part / int(count) for part, count in zip(used, instance.num_workers, strict=True)) - 1
        assert overload >= least - Fraction(1, 10**12)
        assert abs(overload - Fraction(found.overload)) <= Fraction(1, 10**12)
        missed += found.missed
        assert found.missed == (least > Fraction(1, 10**9)) or abs(least) <= Fraction(1, 10**9)
    assert 10 <= missed <= 50


def test_filling_stops_where_the_definition_does_step_by_step() -> None:
    """Filling under random limits, against small steps: each rise as far as the next job or limit, by plain loops."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        instance = generate(seed, num_jobs=9, pair_fraction=0.0, multi_worker=bool(seed % 2))
        limits = Limits(instance)
        chosen = rng.choice([0.0, 1.0, 2.0], (3, 3)) * rng.random((3, 3)) + np.eye(3)
        for pool_prices in chosen:
            limits.add(np.zeros(9), np.zeros(9), pool_prices)
        filled = limits.fill(len(chosen))
        levels, frozen = np.zeros(9), instance.ceilings <= 0
        while not frozen.all():
            rates = instance.rates(frozen)
            low = 0.0
            high = max(0.0, min((c - v) / r for c, v, r in zip(instance.ceilings, levels, rates, strict=True) if r > 0))
            if all(paid(instance, levels + high * rates, price) <= most(instance, price) for price in chosen):
                low = high
            while high - low > 1e-15 * high:
                middle = (low + high) / 2
                if middle in (low, high):
                    break
                within = all(paid(instance, levels + middle * rates, p) <= most(instance, p) for p in chosen)
                low, high = (middle, high) if within else (low, middle)
            levels = levels + low * rates
            for job in np.flatnonzero(~frozen & (rates > 0)):
                nudge = levels + 1e-7 * instance.ceilings * (np.arange(9) == job)
                beyond = nudge[job] > instance.ceilings[job] or any(
                    paid(instance, nudge, p) > most(instance, p) * (1 + 1e-11) for p in chosen
                )
                frozen[job] |= bool(beyond)
        assert filled.levels == pytest.approx(levels, rel=1e-6, abs=1e-6), seed


def most(instance: HierarchicalFairness, prices: np.ndarray) -> float:
    return float(prices @ instance.num_workers)


def paid(instance: HierarchicalFairness, levels: np.ndarray, prices: np.ndarray) -> float:
    """What jobs pay at least for their levels: of all pairs of types, or a type and idleness, the cheapest."""
    total = 0.0
    for job, level in enumerate(levels.tolist()):
        points = [(0.0, 0.0)] + [
            (float(speed), float(instance.scale_factors[job] * prices[pool]))
            for speed, pool, fits in zip(
                instance.throughputs[job] * instance.level_per_throughput[job],
                instance.pools,
                instance.fits[job],
                strict=True,
            )
            if fits
        ]
        best = min((cost for speed, cost in points if speed >= level * (1 - 1e-12)), default=np.inf)
        for slow, cheap in points:
            for fast, dear in points:
                if slow < level <= fast:
                    best = min(best, cheap + (dear - cheap) * (level - slow) / (fast - slow))
        total += best
    return total


# --- as printed / as built ----------------------------------------------------------------------------


def test_achieved_throughputs_in_place_of_levels_depend_on_the_vertex_as_built() -> None:
    """As printed, a step adds to what the last allocation achieved.

    Jobs of weights 4, 1, 1 on two GPUs: job 0 is full when the others are at 1/4 each.  An allocation may give
    one of these what is left, and adding to that ends in (1, 3/4, 1/4) or (1, 1/4, 3/4).  Levels end in halves.
    """
    instance = HierarchicalFairness(throughputs=np.ones((3, 1)), num_workers=[2], weights=[4.0, 1.0, 1.0])
    for achieved in ([1, 0.75, 0.25], [1, 0.25, 0.75]):
        plan = instance.plan(Allocation(time_fractions=np.array(achieved)[:, None]))
        assert instance.violations(plan) == []
        assert instance.objective(plan) == pytest.approx(formulations.solve(instance).objective)
        model = formulation.build(instance, levels=plan.normalized_throughputs, rates=np.array([0.0, 0.5, 0.5]))
        assert formulations.solve(model).objective == pytest.approx(0, abs=1e-9)
    assert vector(instance) == pytest.approx([1, 0.5, 0.5])


def test_weights_are_shared_anew() -> None:
    """A frozen job's weight goes to its own entity: jobs 0 and 1 of weights 9 and 1 beside job 2, all on 2 GPUs."""
    instance = HierarchicalFairness(
        throughputs=np.ones((3, 1)), num_workers=[2], entities=[0, 0, 1], entity_weights=[1.0, 1.0], weights=[9, 1, 1]
    )
    none = np.zeros(3, bool)
    assert instance.rates(none) == pytest.approx([0.9, 0.1, 1.0])
    assert instance.rates(np.array([True, False, False])) == pytest.approx([0, 1, 1])
    # Job 2 is full at height 1, when jobs 0 and 1 have 0.9 and 0.1, which fills the GPUs.
    assert vector(instance) == pytest.approx([0.9, 0.1, 1.0])


def test_jobs_that_wait_have_no_rate() -> None:
    assert two_entities().rates(np.zeros(4, bool)) == pytest.approx([0.5, 0.5, 2, 0])
    assert two_entities().rates(np.array([False, True, True, False])) == pytest.approx([1, 0, 0, 2])
    assert two_entities().rates(np.ones(4, bool)) == pytest.approx([0, 0, 0, 0])


@pytest.mark.slow
@settings(max_examples=25)
@given(hierarchical_fairness())
def test_equals_the_definition_step_by_step_by_another_solver(instance: HierarchicalFairness) -> None:
    # SCIP's interface takes no rows without variables, which a pool without types would give.
    assume(len(set(instance.pools.tolist())) == len(instance.num_workers))
    assert vector(instance) == pytest.approx(vector(instance, solver="scip"), rel=1e-5, abs=1e-5)


@settings(max_examples=40)
@given(hierarchical_fairness())
def test_the_vector_does_not_depend_on_the_numbering_of_types_and_entities(instance: HierarchicalFairness) -> None:
    rng = np.random.default_rng(1)
    changed = permuted(permuted(instance, "k", rng), "e", rng)
    assert vector(changed) == pytest.approx(vector(instance), rel=1e-5, abs=1e-6)


def test_one_entity_is_lexicographically_greatest() -> None:
    """Against all allocations of a fine grid: no sorted vector of levels is greater."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        throughputs = rng.integers(1, 5, (2, 2)).astype(float)
        instance = HierarchicalFairness(throughputs=throughputs, num_workers=np.array([1, 1]))
        mine = np.sort(vector(instance))
        grid = np.linspace(0, 1, 21)
        for a in grid:
            for b in grid:
                # Job 0 takes a of type 0 and b of type 1 as far as its time goes, job 1 the rest.
                first = np.array([a, min(b, 1 - a)])
                second = np.minimum(1 - first, 1)
                second = second / max(1.0, second.sum())
                normal = np.array([throughputs[0] @ first, throughputs[1] @ second]) / instance.equal_share_throughputs
                other = np.sort(normal)
                assert other[0] <= mine[0] + 1e-6
                assert other[0] < mine[0] - 1e-6 or other[1] <= mine[1] + 1e-5


def test_worked_examples() -> None:
    assert vector(four_jobs()) == pytest.approx([1, 1, 1, 1])
    assert formulations.solve(four_jobs()).objective == pytest.approx(2.0)
    assert vector(two_entities()) == pytest.approx([0.5, 0.5, 1, 1])


def test_same_optimum_on_generated_instances_with_pairs() -> None:
    for seed in range(4):
        instance = generate(seed, num_jobs=8)
        assert vector(instance) == pytest.approx(vector(instance, solver="scip"), rel=1e-5, abs=1e-5)


def test_entity_share_by_hand() -> None:
    """A third of three GPUs for jobs 0 and 1, two thirds for job 2, and what it cannot use for job 3."""
    assert entity_share(two_entities()).normalized_throughputs == pytest.approx([0.5, 0.5, 1, 1])
    wide = HierarchicalFairness(throughputs=np.ones((2, 1)), num_workers=[4], scale_factors=[4, 1], weights=[3.0, 1.0])
    assert entity_share(wide).time_fractions.ravel() == pytest.approx([0.75, 1])


def test_a_plan_must_say_what_it_gives() -> None:
    instance = two_entities()
    plan = instance.plan(instance.isolated_share())
    false = HierarchicalAllocation(plan.time_fractions, plan.normalized_throughputs + np.array([0.1, 0, 0, 0]))
    assert [(violation.rule, violation.index) for violation in instance.violations(false)] == [
        ("normalized_throughputs", (0,))
    ]
    assert HierarchicalAllocation.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    with pytest.raises(PlanError, match="must be a HierarchicalAllocation"):
        instance.objective(instance.isolated_share())


def test_defaults() -> None:
    instance = HierarchicalFairness(throughputs=np.ones((2, 1)), num_workers=[1])
    assert instance.entities.tolist() == [0, 0]
    assert instance.entity_weights.tolist() == [1]
    assert instance.entity_policies.tolist() == ["fairness"]
    assert instance.weights.tolist() == [1, 1]


def test_dials_of_the_generator() -> None:
    assert set(generate(0, num_entities=6, fifo_fraction=1.0).entity_policies) == {"fifo"}
    assert set(generate(0, num_entities=6, fifo_fraction=0.0).entity_policies) == {"fairness"}
    assert generate(0, weight_spread=1.0).weights == pytest.approx(1)


def test_real_jobs(data: Any) -> None:
    files = {
        "throughputs": data / "gavel" / "simulation_throughputs.json",
        "trace": data / "gavel" / "medium_test.trace",
    }
    instance = from_trace(2, num_jobs=30, unconsolidated=True, **files)
    assert instance.num_pairs > 0
    check_proofs(instance)


# --- the figures of the paper ---------------------------------------------------------------------


def test_weights_move_as_in_figure_6():
    """Job 4 of the figure (3 here) hands its weight to job 5; job 2 (1 here) to jobs 1 and 3, half each."""
    instance = product_and_research()
    frozen = np.zeros(5, bool)
    assert instance.rates(frozen) == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1, 0])
    frozen[3] = True
    assert instance.rates(frozen) == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0, 1])
    frozen[1] = True
    assert instance.rates(frozen) == pytest.approx([1 / 2, 0, 1 / 2, 0, 1])
    assert formulations.solve(instance).plan.normalized_throughputs == pytest.approx([1 / 3] * 3 + [1, 0], abs=1e-7)


@pytest.mark.parametrize("policy", ["fairness", "fifo"])
def test_entities_get_their_weights_as_in_figures_12_and_13(policy):
    """With 18 jobs, the first level gives entities 1, 2 and 3 parts, equal ones within them or one job all."""
    instance = growing_cluster(policy=policy)
    assert (instance.num_jobs, instance.entities.tolist()) == (18, [0] * 6 + [1] * 6 + [2] * 6)
    assert [growing_cluster(time).num_jobs for time in (0, 3, 4, 67, 68, 999)] == [1, 1, 2, 17, 18, 18]
    rates = instance.rates(np.zeros(18, bool))
    assert [rates[instance.entities == entity].sum() for entity in range(3)] == pytest.approx([1, 2, 3])
    levels = formulations.solve(instance).plan.normalized_throughputs
    if policy == "fairness":
        # Nobody has all of its time when the cluster is full, so the first level is the last.
        assert levels == pytest.approx(instance.objective(formulations.solve(instance).plan) * rates, rel=1e-6)
    else:
        # Later jobs of entity 0 do not receive any GPU time.
        assert levels[3:6] == pytest.approx([0] * 3, abs=1e-7)
        assert levels[0] > levels[1] > 0


def test_a_static_partition_makes_fewer_steps_than_water_filling():
    """Section 7.3 has 17% less, of total effective throughput, on its jobs; the speeds here are made up."""
    instance = growing_cluster()
    filled = formulations.solve(instance).plan
    static = entity_share(instance)
    made = [float((instance.throughput(plan) / instance.fastest_throughputs).sum()) for plan in (static, filled)]
    assert made[0] < made[1]


# --- the printed steps ----------------------------------------------------------------------------


def test_the_printed_steps_depend_on_the_optimum_taken():
    """As printed: jobs of weights 4, 1, 1 on two GPUs can end in (1, 3/4, 1/4); by levels they end in (1, 1/2, 1/2)."""
    instance = HierarchicalFairness(throughputs=np.ones((3, 1)), num_workers=[2], weights=[4.0, 1.0, 1.0])
    assert formulations.solve(instance).plan.normalized_throughputs == pytest.approx([1, 0.5, 0.5])
    ends = [water_filling.printed_water_filling(instance, favoured=job).normalized_throughputs for job in (1, 2)]
    assert ends[0] == pytest.approx([1, 0.75, 0.25], abs=1e-5)
    assert ends[1] == pytest.approx([1, 0.25, 0.75], abs=1e-5)


def test_the_printed_steps_of_the_example():
    for favoured in (None, 0, 1, 2, 3):
        plan = water_filling.printed_water_filling(four_jobs(), favoured=favoured)
        assert four_jobs().violations(plan) == []
        assert plan.normalized_throughputs == pytest.approx([1] * 4, abs=1e-5)


def test_levels_far_apart_are_optimal_only_to_their_own_size() -> None:
    """Weights over ten decades."""
    proven = 0
    for seed in range(120):
        rng = np.random.default_rng(seed)
        instance = on_one_type(rng)
        e, n = len(instance.entity_weights), instance.num_jobs
        far = {"entity_weights": 10 ** rng.uniform(-5, 5, e), "weights": 10 ** rng.uniform(-5, 5, n)}
        instance = replace(instance, **far)
        found: Any = formulations.solve(instance)
        exact = np.array([float(level) for level in by_definition(instance)])
        right = bool((np.abs(found.plan.normalized_throughputs - exact) <= 1e-6 * exact).all())
        assert right or found.status == "feasible", instance.to_dict()
        proven += found.status == "optimal"
    assert proven >= 100


def test_an_allocation_off_a_small_level_is_no_proof() -> None:
    """Half of a level of a millionth is missing, which is nothing beside the job's ceiling."""
    instance = HierarchicalFairness(
        throughputs=[[1.0], [1.0]], num_workers=[1], entities=[0, 1], entity_weights=[1.0, 1e-6], weights=[1.0, 1.0]
    )
    levels = water_filling.water_filling(instance)
    assert levels.complete
    short = np.array([[1.0], [0.5]]) * levels.allocation.time_fractions
    ended = water_filling._ended(
        instance,
        levels.levels,
        levels.vector,
        Allocation(time_fractions=short),
        True,
        least=1e-12,
        bound=levels.bound,
        programs=1,
        seconds=0.0,
        message="",
    )
    assert (ended.complete, ended.message) == (False, "; the allocation is 0.5 of a level off it")
