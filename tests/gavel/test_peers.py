"""POP and Soroush's approximations against simulation, the exact optimum, and what is guaranteed of them."""

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings

import formulations
import instances
from heuristics.gavel import hierarchical_fairness as hierarchical
from heuristics.gavel import max_min_fairness as max_min
from heuristics.gavel.pop import partition, pop
from instances.gavel.cost import Cost
from instances.gavel.hierarchical_fairness import HierarchicalFairness
from instances.gavel.hierarchical_fairness import generate as generate_hierarchy
from instances.gavel.max_min_fairness import MaxMinFairness, generate, three_jobs
from validation import CATALOGUE, strategy
from validation.problems.gavel.max_min_fairness import geometric_binner
from validation.problems.gavel.peers import maximize, pop_2, pop_4

WITHOUT_ORDER = ("max_min_fairness", "makespan", "total_throughput", "hierarchical_fairness")
POLICIES = (*WITHOUT_ORDER, "fifo", "cost", "throughput_per_dollar")


def exact(instance):
    return formulations.solve(instance).plan


# --- POP ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("parts", [1, 2, 4])
def test_pop_is_feasible_and_never_better_than_the_optimum(policy, parts):
    draw = import_module(f"instances.gavel.{policy}").generate
    options = {"slo_fraction": 0.0} if policy in ("cost", "throughput_per_dollar") else {}
    for seed in range(6):
        instance = draw(seed, num_jobs=13, workers_per_pool=5, pair_fraction=0.4, multi_worker=seed % 2 == 0, **options)
        plan = pop(instance, exact, parts=parts, rng=seed)
        assert instance.violations(plan) == []
        optimum, value = formulations.solve(instance).objective, instance.objective(plan)
        assert value >= optimum * (1 - 1e-7) if instance.sense == "min" else value <= optimum * (1 + 1e-7)
        if parts == 1:
            assert value == pytest.approx(optimum)


@pytest.mark.parametrize("policy", WITHOUT_ORDER)
def test_pop_loses_nothing_where_all_jobs_are_alike(policy):
    kind = instances.instance_type(f"gavel.{policy}")
    extra = {"steps": np.full(24, 70.0)} if policy == "makespan" else {}
    for throughputs, workers in (([4.0, 1.0], [8, 16]), ([3.0, 2.0], [4, 4]), ([1.0, 0.0], [12, 8])):
        instance = kind(throughputs=np.tile(throughputs, (24, 1)), num_workers=workers, **extra)
        whole = formulations.solve(instance)
        for parts in (2, 4):
            plan = pop(instance, exact, parts=parts)
            assert instance.objective(plan) == pytest.approx(whole.objective)
            if policy == "hierarchical_fairness":
                assert plan.normalized_throughputs == pytest.approx(whole.plan.normalized_throughputs)


def test_parts_are_a_partition():
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, p = int(rng.integers(1, 12)), int(rng.integers(1, 4))
        instance = MaxMinFairness(
            throughputs=np.ones((n, p)),
            num_workers=rng.integers(0, 20, p),
            pools=np.arange(p),
            scale_factors=rng.choice([1, 2, 4], n),
        )
        wanted = int(rng.integers(1, 6))
        parts = partition(instance, wanted, rng)
        assert 1 <= len(parts) <= wanted
        assert sorted(np.concatenate([jobs for jobs, _ in parts]).tolist()) == list(range(n))
        assert sum(workers for _, workers in parts).tolist() == instance.num_workers.tolist()
        sizes = [len(jobs) for jobs, _ in parts]
        assert max(sizes) - min(sizes) <= 1
        # No job loses a pool by being in a part.
        for jobs, workers in parts:
            assert (np.ptp([other for _, other in parts], axis=0) <= 1).all()
            width = instance.scale_factors[jobs][:, None]
            assert ((width <= workers) == (width <= instance.num_workers)).all()


def test_a_seed_tells_the_parts():
    instance = generate(3, num_jobs=40, pair_fraction=0.0, multi_worker=False)
    assert pop_2(instance) == pop_2(instance, rng=0) == pop(instance, exact, parts=2, rng=np.random.default_rng(0))
    assert len({pop_4(instance, rng=seed) for seed in range(5)}) == 5


def test_a_part_without_a_plan_is_none():
    """The SLO takes the fast type, which only one part has."""
    instance = Cost(
        throughputs=[[2.0, 1.0], [1.0, 1.0]], num_workers=[2, 2], costs=[1.0, 1.0], steps=[10.0, 10.0], slos=[1.0, 99.0]
    )
    assert formulations.solve(instance).status == "infeasible"
    assert pop(instance, exact, parts=2) is None


def test_bad_options_are_named():
    instance = generate(0, num_jobs=4)
    with pytest.raises(ValueError, match="parts: got 0"):
        pop(instance, exact, parts=0)
    with pytest.raises(ValueError, match="passes: got 0"):
        max_min.adaptive_waterfiller(instance, passes=0)
    with pytest.raises(ValueError, match=r"alpha: got 1\.0"):
        max_min.geometric_binner(instance, maximize, alpha=1.0)
    with pytest.raises(ValueError, match="least_worth: got 0"):
        max_min.geometric_binner(instance, maximize, least_worth=0)


# --- water filling --------------------------------------------------------------------------------


def simulated(instance, split):
    """Water filling from event to event: every part rises until its pool is full or its job's time is over."""
    n, k = instance.throughputs.shape
    x = np.zeros((n, k))
    free = instance.num_workers.astype(float)
    rising = {
        (job, kind)
        for job in range(n)
        for kind in range(k)
        if split[job, kind] > 0 and instance.scale_factors[job] <= instance.num_workers[instance.pools[kind]]
    }
    while rising:
        frozen = np.array([all(part[0] != job for part in rising) for job in range(n)])
        rates = instance.rates(frozen)
        speed = np.zeros((n, k))
        for job, kind in rising:
            speed[job, kind] = split[job, kind] * rates[job] / instance.scale_factors[job]
        drain = np.zeros(len(free))
        for job, kind in rising:
            drain[instance.pools[kind]] += instance.scale_factors[job] * speed[job, kind]
        left = 1 - x.sum(axis=1)
        steps = [left[job] / speed[job].sum() for job in range(n) if speed[job].sum() > 0]
        steps += [free[pool] / drain[pool] for pool in range(len(free)) if drain[pool] > 0]
        step = min(steps)
        x += step * speed
        free = free - step * drain
        rising = {
            (job, kind)
            for job, kind in rising
            if x[job].sum() < 1 - 1e-12
            and free[instance.pools[kind]] > 1e-12 * instance.num_workers[instance.pools[kind]]
        }
    return x


def even(instance):
    usable = instance.fits[: instance.num_jobs] & (instance.throughputs > 0)
    return usable / np.maximum(1, usable.sum(axis=1, keepdims=True))


def of_throughput(instance, x, before):
    steps = x * instance.throughputs
    return np.where(
        steps.sum(axis=1, keepdims=True) > 0, steps / np.maximum(steps.sum(axis=1, keepdims=True), 1e-300), before
    )


@settings(max_examples=80, deadline=None)
@given(strategy("gavel.hierarchical_fairness"))
def test_water_filling_is_what_a_simulation_ends_in(instance):
    n, split = instance.num_jobs, even(instance)
    plan = hierarchical.approximate_waterfiller(instance)
    assert instance.violations(plan) == []
    x = simulated(instance, split)
    assert plan.time_fractions[:n] == pytest.approx(x, abs=1e-9)
    assert not plan.time_fractions[n:].any()
    for _ in range(2):
        split = of_throughput(instance, x, split)
        x = simulated(instance, split)
    assert hierarchical.adaptive_waterfiller(instance, passes=3).time_fractions[:n] == pytest.approx(x, abs=1e-7)


def test_one_entity_is_max_min_fairness():
    for seed in range(10):
        instance = generate(seed, num_jobs=20, weighted=True, pair_fraction=0.3)
        fields = {name: value for name, value in instance.to_dict().items() if name != "problem"}
        one = HierarchicalFairness(**fields)
        for name in ("approximate_waterfiller", "adaptive_waterfiller"):
            plan = getattr(max_min, name)(instance)
            assert plan.time_fractions.tolist() == getattr(hierarchical, name)(one).time_fractions.tolist()
        assert max_min.adaptive_waterfiller(instance, passes=1) == max_min.approximate_waterfiller(instance)


def test_where_passes_change_nothing_the_split_agrees_with_itself():
    """Each job that waits holds, on every type that it uses, at least as much by weight and split as others there."""
    settled = 0
    for seed in range(2, 8):
        instance = generate(seed, num_jobs=8, workers_per_pool=2 + seed % 4, weighted=True, pair_fraction=0.0)
        before, x = (max_min.adaptive_waterfiller(instance, passes=count).time_fractions for count in (300, 301))
        if np.abs(x - before).max() > 1e-9:
            continue
        settled += 1
        split = of_throughput(instance, x, even(instance))
        uses = split > 1e-3
        worker_time = instance.scale_factors[:, None] * x / instance.weights[:, None]
        height = np.divide(worker_time, split, out=np.zeros_like(x), where=uses)
        for job in np.flatnonzero(x.sum(axis=1) < 1 - 1e-6):
            for kind in np.flatnonzero(uses[job]):
                assert height[job, kind] >= height[:, kind].max() * (1 - 1e-6)
    assert settled >= 3


@pytest.mark.parametrize("problem", ["gavel.max_min_fairness", "gavel.hierarchical_fairness"])
def test_nothing_to_share(problem):
    kind = instances.instance_type(problem)
    empty = kind(throughputs=np.zeros((0, 2)), num_workers=[1, 2], pools=[0, 1])
    nowhere = kind(throughputs=[[0.0, 0.0], [1.0, 0.0]], num_workers=[0, 3], scale_factors=[4, 1])
    names = ("approximate_waterfiller", "adaptive_waterfiller", "geometric_binner", "pop_2", "pop_8")
    for instance in (empty, nowhere):
        for name in names:
            plan = CATALOGUE[problem].heuristics[name].function(instance)
            assert instance.violations(plan) == []
            assert not instance.throughput(plan).any()


# --- bins -----------------------------------------------------------------------------------------


def binned_worth(heights, ends, epsilon):
    """What heights are worth: each bin's part of them, a power of epsilon."""
    lower = np.concatenate([[0.0], ends[:-1]])
    parts = np.clip(heights[:, None] - lower, 0, ends - lower)
    return float((parts * epsilon ** np.arange(len(ends))).sum())


def ends_of(instance, alpha, least_worth):
    """Ends of the bins and epsilon, from the page: from X_isolated's least level to above the greatest of all."""
    isolated = (instance.normalized_throughputs(instance.isolated_share()) / instance.weights).min()
    greatest = (instance.greatest_throughputs * instance.level_per_throughput / instance.weights).max()
    ends = [isolated]
    while ends[-1] < greatest * (1 - 1e-9):
        ends.append(ends[-1] * alpha)
    ends = ends if len(ends) > 1 else [*ends, ends[-1] * alpha]
    return np.array(ends), least_worth ** (1 / (len(ends) - 1))


@pytest.mark.parametrize("alpha", [1.5, 2.0, 4.0])
@pytest.mark.parametrize("least_worth", [1e-3, 1e-6])
def test_the_geometric_binner_keeps_its_factor(alpha, least_worth):
    for seed in range(25):
        instance = generate(
            seed, num_jobs=9, workers_per_pool=3, weighted=seed % 2 == 1, pair_fraction=0.3 * (seed % 3)
        )
        solution = formulations.solve(instance)
        plan = max_min.geometric_binner(instance, maximize, alpha=alpha, least_worth=least_worth)
        assert instance.violations(plan) == []
        heights = instance.normalized_throughputs(plan) / instance.weights
        ends, epsilon = ends_of(instance, alpha, least_worth)
        # No plan is worth more to the program.
        best = instance.normalized_throughputs(solution.plan) / instance.weights
        worth = binned_worth(heights, ends, epsilon)
        assert worth >= binned_worth(best, ends, epsilon) * (1 - 1e-6)
        # What is missing below the bin of the optimum is paid for above it.
        reached = ends[ends <= solution.objective * (1 + 1e-9)].max()
        assert reached >= solution.objective / alpha * (1 - 1e-9)
        missing = np.maximum(0, reached - heights).sum()
        assert missing <= epsilon * np.maximum(0, heights - reached).sum() + 1e-6 * ends[-1]
        assert heights.min() <= solution.objective * (1 + 1e-6)


def test_the_binner_serves_entities_by_their_first_weights():
    for seed in range(20):
        instance = generate_hierarchy(seed, num_jobs=9, workers_per_pool=3, pair_fraction=0.3)
        plan = hierarchical.geometric_binner(instance, maximize)
        assert instance.violations(plan) == []
        rates = instance.rates(instance.ceilings <= 0)
        rising = rates > 0
        heights = plan.normalized_throughputs[rising] / rates[rising]
        first = formulations.solve(instance).objective
        assert heights.min() <= first * (1 + 1e-6)
        isolated = (instance.normalized_throughputs(instance.isolated_share())[rising] / rates[rising]).min()
        ends = isolated * 2.0 ** np.arange(60)
        last = np.searchsorted(ends, (instance.ceilings[rising] / rates[rising]).max() * (1 - 1e-9))
        epsilon = 1e-8 ** (1 / max(1, last))
        reached = ends[ends <= first * (1 + 1e-9)].max()
        # Waiting jobs are worth the last bin, and count by the weights of their entities.
        waiting = ~rising
        beside = plan.normalized_throughputs[waiting] / instance.entity_weights[instance.entities[waiting]]
        above = np.maximum(0, heights - reached).sum() + beside.sum()
        assert np.maximum(0, reached - heights).sum() <= epsilon * above + 1e-6 * ends[last]


@pytest.mark.parametrize("weight", [1e-320, 1e-200, 1e-30, 1e300])
def test_weights_of_all_floats(weight: float) -> None:
    instance = replace(three_jobs(), weights=np.array([weight, 1.0, 1.0]))
    for heuristic in (max_min.approximate_waterfiller, max_min.adaptive_waterfiller):
        assert instance.violations(heuristic(instance)) == []
    # A program with such coefficients is refused, as an exact model's is.
    with pytest.raises(formulations.ModelError, match=r"coefficient .* is (not a finite number|too large beside)"):
        geometric_binner(instance)
