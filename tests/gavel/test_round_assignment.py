"""Rounds: Algorithm 1, the rounds that are matchings, and the mechanism repeated."""

import itertools
import json
import math
import re
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from pyomo.environ import TransformationFactory

import formulations
from formulations.engine import clock
from formulations.engine.options import Options
from formulations.methods import GaveUp, round_core
from heuristics.gavel.round_assignment import (
    NEAR,
    _Entries,
    greedy_priority,
    iterated_greedy,
    matching_round,
    priorities,
    priorities_per_type,
    round_bound,
    round_price,
    simulate,
)
from instances.base import InstanceError
from instances.gavel.max_min_fairness import MaxMinFairness, three_jobs
from instances.gavel.round_assignment import (
    RoundAssignment,
    RoundAssignmentPlan,
    blocked_round,
    example_allocation,
    generate,
    highest_apart,
)
from instances.gavel.sharing import Allocation
from instances.reference import PROBLEMS
from instances.reference.common import digest, parse

from ..effort import rounds
from ..second_opinion import optimum


def test_a_wide_job_blocks_three() -> None:
    instance = blocked_round()
    assert instance.objective(greedy_priority(instance)) == 4
    assert formulations.solve(instance).objective == 9


def one_by_one(instance: RoundAssignment, plan: RoundAssignmentPlan, urgent: bool) -> np.ndarray:
    """Algorithm 1 as it is read: the entries by priority, each that finds its jobs idle and workers enough."""
    chosen = plan.chosen.copy()
    left = instance.num_workers.tolist()
    running: set[int] = set()
    for row, kind in np.argwhere(chosen).tolist():
        left[instance.pools[kind]] -= int(instance.row_scale_factors[row])
        running.update(instance.members[row])
    entries = [(-float(instance.priorities[row, kind]), row, kind) for row, kind in np.argwhere(instance.eligible)]
    for key, row, kind in sorted(entries):
        width, pool = int(instance.row_scale_factors[row]), int(instance.pools[kind])
        if (urgent or key == 0) and width <= left[pool] and running.isdisjoint(instance.members[row]):
            chosen[row, kind] = True
            left[pool] -= width
            running.update(instance.members[row])
    return chosen


@pytest.mark.parametrize("jobs", [1, 5, 20, 90])
def test_what_fills_a_round_is_what_algorithm_1_takes_one_by_one(jobs: int) -> None:
    rng = np.random.default_rng(jobs)
    for _ in range(12):
        instance = generate(
            rng,
            num_jobs=jobs,
            num_types=int(rng.integers(1, 4)),
            workers_per_pool=int(rng.integers(1, 30)),
            pair_fraction=float(rng.random()),
            wide=float(rng.random()),
            ineligible=0.3,
        )
        # Whole priorities tie, and many are 0.
        instance = replace(instance, priorities=np.floor(3 * instance.priorities) / 3)
        nothing = instance.nothing()
        assert (instance.filled().chosen == one_by_one(instance, nothing, True)).all()
        some = RoundAssignmentPlan(chosen=instance.filled().chosen & (rng.random(instance.priorities.shape) < 0.5))
        for urgent in (True, False):
            assert (instance.filled(some, urgent=urgent).chosen == one_by_one(instance, some, urgent)).all()


def test_greedy_stops_when_no_row_is_left() -> None:
    """As printed, the loop runs until no worker is left, which here never happens."""
    instance = RoundAssignment(scale_factors=np.array([1]), num_workers=np.array([5]), priorities=np.array([[2.0]]))
    assert greedy_priority(instance).chosen.tolist() == [[True]]


def printed_loop(instance: RoundAssignment) -> list[list[bool]]:
    """Algorithm 1 with workers counted by pool: the highest of those that are left, until no worker or entry is."""
    data, chosen = instance.to_dict(), [[False] * instance.num_types for _ in instance.priorities]
    members = [[job] for job in range(instance.num_jobs)] + data["pairs"]
    left = list(data["num_workers"])
    entries = {(row, kind) for row, kind in np.ndindex(instance.priorities.shape) if instance.eligible[row, kind]}
    while sum(left) > 0 and entries:
        row, kind = min(entries, key=lambda entry: (-data["priorities"][entry[0]][entry[1]], entry))
        entries.remove((row, kind))
        width = data["scale_factors"][members[row][0]]
        if width > left[data["pools"][kind]]:
            continue
        entries = {(other, on) for other, on in entries if not set(members[other]) & set(members[row])}
        chosen[row][kind] = True
        left[data["pools"][kind]] -= width
    return chosen


def test_algorithm_1_as_printed() -> None:
    """On every round, rows of priority 0 among them: they fill the workers that are left, and nothing else does."""
    rng, zeros = np.random.default_rng(39), 0
    for _ in rounds(1000):
        instance = small_round(rng)
        plan = greedy_priority(instance)
        assert plan.chosen.tolist() == printed_loop(instance)
        zeros += int((instance.priorities[plan.chosen] == 0).sum())
    assert zeros > 20


def test_a_row_of_priority_0_fills_an_idle_worker_where_it_may() -> None:
    fields = {"scale_factors": [1, 1, 1], "num_workers": [1, 2], "priorities": [[2.0, 1.0], [0.0, 0.0], [0.0, 0.0]]}
    instance = RoundAssignment(**fields)
    filled = [[True, False], [False, True], [False, True]]
    for plan in (
        greedy_priority(instance),
        formulations.solve(instance).plan,
        round_core.solve(instance, Options()).plan,
    ):
        assert plan.chosen.tolist() == filled
    barred = RoundAssignment(**fields, eligible=[[True, True], [True, False], [True, True]])
    left_idle = [[True, False], [False, False], [False, True]]
    for plan in (greedy_priority(barred), formulations.solve(barred).plan, round_core.solve(barred, Options()).plan):
        assert plan.chosen.tolist() == left_idle
        assert barred.violations(plan) == []
    assert [(broken.rule, broken.index) for broken in barred.violations(RoundAssignmentPlan(chosen=filled))] == [
        ("eligible", (1, 1))
    ]


def test_what_may_not_run_is_not_counted_on() -> None:
    """The most urgent entry may not run: neither the model nor a heuristic, nor a bound, has its priority."""
    instance = replace(blocked_round(), eligible=[[False], [True], [True], [True]])
    assert formulations.solve(instance).objective == formulations.solve(instance, method="core").objective == 9
    assert instance.objective(greedy_priority(instance)) == 9
    assert round_bound(instance) == 9
    alone = replace(blocked_round(), eligible=[[True], [False], [False], [True]])
    assert formulations.solve(alone).objective == float(optimum(alone)) == 4


def test_files_without_eligible_mean_what_they_meant() -> None:
    """Where all may run, neither the JSON form nor the digest knows the field."""
    instance = generate(0, num_jobs=4, workers_per_pool=2)
    assert "eligible" not in instance.to_dict()
    # That of the collection's instance of these arguments.
    assert instance.digest == "cf787486f4fb5def87b14cbda173efae32b8292ffd2c54763bfb6ca224034a52"
    barred = generate(0, num_jobs=4, workers_per_pool=2, ineligible=0.5)
    assert np.array_equal(barred.priorities, instance.priorities)
    assert 0 < barred.eligible.mean() < 1
    again = RoundAssignment.from_dict(barred.to_dict())
    assert again == barred != instance
    told = instance.to_dict() | {"eligible": np.ones_like(instance.eligible).tolist()}
    told.pop("problem")
    assert RoundAssignment.from_dict(told).digest == instance.digest
    problem = PROBLEMS["gavel.round_assignment"]
    for one in (told, barred.to_dict()):
        names = [name for name in one if name in problem.data]
        made = digest("gavel.round_assignment", problem.data, names, problem.instance(parse(json.dumps(one))))
        assert made == (barred if one is not told else instance).digest


def test_never_served_rows_come_first() -> None:
    target = np.array([[0.2, 0.0], [0.8, 0.5]])
    received = np.array([[0.0, 3.0], [2.0, 5.0]])
    found = priorities(target, received)
    assert found[0, 0] > found[1].max()
    assert found[0, 1] == 0
    assert found[1, 0] == pytest.approx(0.8 / 0.2)
    assert found[1, 1] == pytest.approx(0.5 / 0.5)


def test_rounds_realise_the_example_of_section_4() -> None:
    """One V100 and one K80, in elevenths of the time: exact after eleven rounds, and never far off."""
    instance = three_jobs()
    plan: Any = formulations.solve(instance).plan
    for num_rounds in (11, 110, 1100, 1107):
        assert simulate(instance, plan, num_rounds).shortfall <= 2 / num_rounds


def test_no_round_can_realise_some_allocations() -> None:
    """Two gangs of two on a pool of three workers: each can run 3/4 of the time, never both at once."""
    instance = MaxMinFairness(throughputs=np.ones((2, 1)), num_workers=np.array([3]), scale_factors=np.array([2, 2]))
    target = Allocation(time_fractions=np.array([[0.75], [0.75]]))
    assert not instance.violations(target)
    assert simulate(instance, target, 200).shortfall == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"pairs": [[0, 0]], "priorities": [[1.0], [1.0], [1.0]]}, "pairs"),
    ],
)
def test_bad_input_names_the_field(changes: dict[str, Any], field: str) -> None:
    good = {"scale_factors": [1, 1], "num_workers": [2], "priorities": [[1.0], [1.0]]}
    with pytest.raises(InstanceError, match=rf"RoundAssignment\.{field}"):
        RoundAssignment(**{**good, **changes})


def test_generated_rounds_are_worth_solving() -> None:
    gaps = []
    for seed in range(30):
        instance = generate(seed, num_jobs=12)
        optimum = formulations.solve(instance).objective
        assert optimum is not None
        gaps.append(1 - instance.objective(greedy_priority(instance)) / optimum)
    assert max(gaps) > 0.05
    assert list(itertools.filterfalse(lambda gap: gap >= -1e-9, gaps)) == []


def small_round(rng: np.random.Generator) -> RoundAssignment:
    """Up to six jobs on one to three pools, wide ones, pairs (also twice), ties and shared pools among them."""
    n, k = int(rng.integers(1, 7)), int(rng.integers(1, 4))
    pools = rng.integers(0, int(rng.integers(1, 4)), k)
    scale_factors = rng.choice([1, 1, 2, 3], n)
    pairs = [(a, b) for a in range(n) for b in range(n) if scale_factors[a] == scale_factors[b] and a != b]
    pairs = [pair for pair in pairs if rng.random() < 0.3]
    priorities = rng.integers(0, 9, (n + len(pairs), k)) / rng.choice([1, 3, 7], (n + len(pairs), k))
    return RoundAssignment(
        scale_factors=scale_factors,
        num_workers=rng.integers(0, 5, pools.max() + 1),
        pools=pools,
        pairs=np.array(pairs, np.int64).reshape(-1, 2),
        priorities=priorities * float(rng.choice([1.0, 1e-9, 1e6])),
        eligible=rng.random(priorities.shape) >= rng.choice([0.0, 0.3]),
    )


def test_the_core_is_the_optimum_by_search() -> None:
    """So is the one model, and the bound of any prices is no better than the best of all plans in fractions."""
    rng, settled, left = np.random.default_rng(5), 0, 0
    for _ in rounds(60):
        instance = small_round(rng)
        best = optimum(instance)
        assert best is not None
        for method in ("core", "model"):
            found = formulations.solve(instance, method=method)
            assert found.status == "optimal"
            assert found.objective == pytest.approx(float(best), rel=1e-9)
        core = formulations.solve(instance, method="core")
        settled += "settle all" in core.message
        left += "are in the core" in core.message
        entries = round_core._Entries(instance)
        bound, slack, _ = round_core._relaxation(entries)
        assert Fraction(bound) * (1 + Fraction(1, 10**12)) >= best
        assert (slack >= 0).all()
        assert not instance.violations(found.plan)
        assert np.array_equal(instance.filled(found.plan).chosen, found.plan.chosen)
    assert settled > 5
    assert left > 5


def test_iterated_greedy_is_no_better_than_the_optimum_by_search() -> None:
    """Its bound is no better than the best of all plans, and no entry of that lacks more than lies between the two."""
    rng = np.random.default_rng(7)
    for _ in rounds(15):
        instance = small_round(rng)
        plan, greedy, best = iterated_greedy(instance), greedy_priority(instance), optimum(instance)
        assert not instance.violations(plan)
        assert instance.objective(greedy) <= instance.objective(plan) <= float(best) * (1 + 1e-9)
        entries = _Entries(instance)
        if entries.priorities.any():
            bound, lacks = entries.lacks(float(entries.priorities.mean()))
            assert bound * (1 + 1e-9) >= best
            assert lacks.min() >= -1e-9 * bound
            solved = formulations.solve(instance).plan.chosen[entries.rows, entries.kinds]
            assert (lacks[solved] <= bound - float(best) + 1e-9 * bound).all()


def test_iterated_greedy_leaves_little_of_what_algorithm_1_loses() -> None:
    lost, without = 0.0, 0.0
    for seed in range(6):
        instance = generate(seed, num_jobs=24)
        best = formulations.solve(instance).objective
        lost += 1 - instance.objective(iterated_greedy(instance)) / best
        without += 1 - instance.objective(greedy_priority(instance)) / best
    assert lost < 0.02 * without


def test_prices_by_smoothing_are_near_the_least_bound() -> None:
    """The bound at them is that of the linear program, all but a fiftieth."""
    for seed in range(6):
        instance = generate(seed, num_jobs=24)
        entries, model = _Entries(instance), formulations.build(instance)
        TransformationFactory("core.relax_integer_vars").apply_to(model)
        least = formulations.solve(model).objective
        bound, _ = entries.lacks(float(entries.priorities.mean()))
        assert least * (1 - 1e-9) <= bound < 1.02 * least


def test_iterated_greedy_at_worked_examples() -> None:
    assert blocked_round().objective(iterated_greedy(blocked_round())) == 9
    assert highest_apart().objective(iterated_greedy(highest_apart())) == 4
    empty = replace(blocked_round(), num_workers=np.array([0]))
    assert iterated_greedy(empty) == empty.nothing()
    worthless = replace(blocked_round(), priorities=np.zeros_like(blocked_round().priorities))
    assert iterated_greedy(worthless) == greedy_priority(worthless)
    least = replace(blocked_round(), priorities=blocked_round().priorities * 5e-324)
    assert least.objective(iterated_greedy(least)) >= least.objective(greedy_priority(least))


def test_exchanges_find_what_the_order_at_prices_passes_over() -> None:
    """A job alone lacks less than the pair that makes room for a wide job: 4 together where others are worth 3."""
    instance = RoundAssignment(
        scale_factors=np.array([1, 1, 8]),
        num_workers=np.array([8, 1]),
        pairs=np.array([[0, 1]]),
        priorities=np.array([[0.0, 1.0], [2.0, 0.0], [2.0, 0.0], [0.0, 2.0]]),
    )
    entries = _Entries(instance)
    alone_and_wide = [int(np.flatnonzero((entries.rows == row) & (entries.priorities > 0))[0]) for row in (0, 2)]
    assert entries.value(alone_and_wide) == 3
    found = entries.exchanged(np.arange(len(entries.rows)), alone_and_wide)
    assert entries.value(found) == instance.objective(iterated_greedy(instance)) == optimum(instance) == 4


def test_iterated_greedy_looks_at_few_of_many_entries() -> None:
    instance = generate(0, num_jobs=100, pair_fraction=0.6)
    assert instance.urgent.sum() > NEAR * instance.num_jobs
    plan, greedy = iterated_greedy(instance, rng=1), greedy_priority(instance)
    assert plan == iterated_greedy(instance, rng=1)
    assert not instance.violations(plan)
    # A budget for no round leaves the greedy orders.
    orders = iterated_greedy(instance, budget=0)
    assert instance.objective(greedy) < instance.objective(orders) <= instance.objective(plan)


def test_prices_without_time_prove_a_bound() -> None:
    """Where no relaxation is solved at all, every job costs what it could be worth."""
    instance = generate(0, num_jobs=40)
    best = formulations.solve(instance).objective
    assert best is not None
    with clock.within(0.0):
        found = round_core.solve(instance, Options())
    assert found.status == "feasible"
    assert instance.violations(found.plan) == []
    assert found.objective >= instance.objective(greedy_priority(instance))
    assert best < found.bound < math.inf


def test_many_entries_are_settled_by_prices() -> None:
    """Most of the entries of many jobs are, and what is left proves the same as the whole model."""
    instance = generate(3, num_jobs=160)
    whole = formulations.solve(instance, method="model")
    found = formulations.solve(instance)
    assert (found.method, found.status) == (round_core.CORE.name, "optimal")
    assert found.objective == pytest.approx(whole.objective, rel=1e-12)
    of, left = re.search(r"([\d,]+) of ([\d,]+) entries", found.message).groups()  # type: ignore[union-attr]
    assert int(of.replace(",", "")) < int(left.replace(",", "")) / 2


def test_priorities_that_cannot_be_added_up_are_for_the_model() -> None:
    instance = RoundAssignment(
        scale_factors=np.array([1, 1]), num_workers=np.array([2]), priorities=np.array([[1e308], [1e308]])
    )
    with pytest.raises(GaveUp):
        round_core.solve(instance, Options())


def on_workers(fractions: Any, num_workers: Any) -> tuple[MaxMinFairness, Allocation]:
    """An allocation, and a cluster that it is feasible on."""
    target = Allocation(time_fractions=np.array(fractions))
    instance = MaxMinFairness(throughputs=np.ones(target.time_fractions.shape), num_workers=num_workers)
    assert not instance.violations(target)
    return instance, target


def test_rounds_realise_the_example_of_section_3() -> None:
    """X_example: three jobs on three types of one worker each, every job and every worker always busy."""
    instance, target = on_workers(example_allocation().time_fractions, [1, 1, 1])
    assert simulate(instance, target, 1000).shortfall <= 0.02


def test_the_printed_f_does_not_bring_one_job_to_its_fractions() -> None:
    """As printed: a job that is alone on both types has f = 1 on each, however little it runs there."""
    instance, target = on_workers([[0.6, 0.4]], [1, 1])
    assert simulate(instance, target, 1000).time_fractions.tolist() == [[0.6, 0.4]]
    printed = simulate(instance, target, 1000, rule=priorities_per_type)
    assert printed.time_fractions.tolist() == [[0.999, 0.001]]


def test_the_printed_f_falls_short_with_several_jobs() -> None:
    """As printed: jobs 2 and 3 have type 1 almost to themselves, and what jobs 0 and 1 have there looks like little."""
    instance, target = on_workers([[0.8, 0.2], [0.2, 0.8], [0.0, 0.95], [0.0, 0.9]], [1, 4])
    assert simulate(instance, target, 1000).shortfall <= 1e-9
    assert simulate(instance, target, 1000, rule=priorities_per_type).shortfall > 0.65


def test_f_by_hand() -> None:
    target = np.array([[0.5, 0.5], [0.5, 0.0], [0.0, 0.5]])
    received = np.array([[1.0, 3.0], [4.0, 0.0], [0.0, 2.0]])
    assert priorities(target, received) == pytest.approx(np.array([[5, 5 / 3], [1.25, 0], [0, 2.5]]))
    assert priorities_per_type(target, received) == pytest.approx(np.array([[2.5, 5 / 6], [0.625, 0], [0, 1.25]]))


def test_figure_5_divides_by_rounds_and_chooses_alike() -> None:
    """X over the rounds received differs from X / f by one factor."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        target, received = rng.random((4, 3)), rng.integers(1, 9, (4, 3)).astype(float)
        assert priorities(target, received) == pytest.approx(received.sum() * target / received)


def test_the_highest_priorities_across_types_are_worth_less() -> None:
    """As printed, the highest priorities are exact for jobs of one worker without pairs; on one type they are."""
    instance = highest_apart()
    assert instance.objective(greedy_priority(instance)) == pytest.approx(3.1)
    assert formulations.solve(instance).objective == pytest.approx(4)
    for seed in range(50):
        one = generate(seed, num_jobs=12, num_types=1, workers_per_pool=1 + seed % 9, wide=0.0, pair_fraction=0.0)
        assert one.objective(greedy_priority(one)) == pytest.approx(formulations.solve(one).objective)


# --- one pool, by matching --------------------------------------------------------------------------


def on_one_pool(seed: int, *, wide: bool) -> RoundAssignment:
    """Up to 7 jobs and 2 types on one pool, priorities of 0 to 8 in whole numbers with many ties, any pairs."""
    rng = np.random.default_rng(seed)
    n, k, workers = int(rng.integers(1, 8)), int(rng.integers(1, 3)), int(rng.integers(0, 5))
    scale_factors = rng.integers(1, 4, n) if wide else np.ones(n, int)
    possible = [pair for pair in itertools.combinations(range(n), 2) if len(set(scale_factors[list(pair)])) == 1]
    pairs = np.array([pair for pair in possible if rng.random() < 0.7], int).reshape(-1, 2)
    return RoundAssignment(
        scale_factors=scale_factors,
        num_workers=[workers],
        pools=[0] * k,
        pairs=pairs,
        priorities=rng.integers(0, 9, (n + len(pairs), k)).astype(float),
        eligible=rng.random((n + len(pairs), k)) >= 0.2 * (seed % 3 == 0),
    )


@pytest.mark.slow
def test_matching_is_optimal_for_narrow_jobs_on_one_pool() -> None:
    """The bound at the price leaves no gap: exact optimum, value and bound are one number."""
    prices = 0
    for seed in range(400):
        instance = on_one_pool(seed, wide=False)
        plan = matching_round(instance)
        assert plan is not None
        assert not instance.violations(plan)
        best = float(optimum(instance))
        assert instance.objective(plan) == best
        assert round_bound(instance) == pytest.approx(best)
        price = round_price(instance)
        assert price is not None
        prices += price > 0
        for other in (0.0, 0.5 * price, price + 0.3):
            bound = round_bound(instance, other)
            assert bound is not None
            assert bound >= best - 1e-9
    assert prices > 150


@pytest.mark.parametrize("seed", range(20))
def test_matching_equals_the_exact_model_on_generated_rounds(seed: int) -> None:
    instance = generate(seed, num_jobs=30, num_types=1, wide=0.0, pair_fraction=0.4)
    plan = matching_round(instance)
    assert plan is not None
    assert instance.objective(plan) == pytest.approx(formulations.solve(instance).objective)


def test_with_wide_jobs_the_bound_at_the_price_holds() -> None:
    gaps = []
    for seed in rounds(100):
        instance = on_one_pool(seed, wide=True)
        plan, bound, best = matching_round(instance), round_bound(instance), float(optimum(instance))
        assert plan is not None
        assert bound is not None
        assert not instance.violations(plan)
        assert instance.objective(greedy_priority(instance)) <= instance.objective(plan) <= best <= bound + 1e-9
        gaps.append(best - instance.objective(plan))
        if bound == pytest.approx(instance.objective(plan)):
            assert gaps[-1] == 0
    assert max(gaps) > 0


def test_the_price_is_the_worth_of_the_last_worker() -> None:
    """Jobs of priority 5, 4 and 3 on one worker; a pair of the last two is worth 6.  At prices from 5 to 6 that pair
    alone is chosen; two workers add the 5, and the price is between that and 1, the pair's excess over its split.
    """
    fields = {"scale_factors": [1, 1, 1], "pairs": [[1, 2]], "priorities": [[5.0], [4.0], [3.0], [6.0]]}
    for workers, value in ((0, 0.0), (1, 6.0), (2, 11.0), (3, 12.0)):
        instance = RoundAssignment(num_workers=[workers], **fields)
        plan = matching_round(instance)
        assert plan is not None
        assert instance.objective(plan) == value
        assert round_bound(instance) == pytest.approx(value)
    assert round_price(RoundAssignment(num_workers=[3], **fields)) == 0


@pytest.mark.parametrize("unit", [5e-324, 1e-320, 1e-300, 1e-10, 1e10, 1e300])
def test_priorities_in_any_unit(unit: float) -> None:
    """Whole multiples of the least float, too: a price between two of them is none."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        plain = generate(rng, num_jobs=6, num_types=1, workers_per_pool=3, pair_fraction=0.4, wide=0.0)
        multiples = rng.integers(0, 9, plain.priorities.shape).astype(float)
        counted, scaled = (replace(plain, priorities=multiples * one) for one in (1.0, unit))
        plan, best = matching_round(scaled), float(optimum(counted))
        assert plan is not None
        assert counted.objective(plan) == best
        assert round_bound(scaled) == pytest.approx(best * unit)


def test_several_pools_have_no_one_price() -> None:
    instance = generate(0, num_jobs=6)
    assert matching_round(instance) is round_price(instance) is round_bound(instance) is None
