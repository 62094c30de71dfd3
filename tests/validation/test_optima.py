"""The contract of every exact model: the reference, another solver, a start and other numberings find what it finds.

Instances are drawn from the strategies and the generators of the catalogue, so a problem that is added is covered by
its entry.
"""

import contextlib
import copy
import functools
import json
import math
import random
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import formulations
from formulations import Solution
from formulations.engine.protocol import formulation
from formulations.gavel.duals import policy_prices
from instances.base import Instance, InstanceError, agree
from instances.gavel import hierarchical_fairness
from instances.gavel.sharing import Allocation
from instances.reference import PROBLEMS, Malformed, TooLarge, better, closed
from validation import CATALOGUE, BreaksOnly, Heuristic, StudyError, strategy
from validation.kernel.asking import ask_here
from validation.kernel.judging import Status, judge
from validation.kinds.collection.prices import prices
from validation.testing.strategies import derived
from validation.testing.transform import permuted

from ..effort import EFFORT, rounds
from ..files import COLLECTED
from ..second_opinion import judged, reference_of, referred, same

REFERRED = sorted(set(CATALOGUE) & set(PROBLEMS))
LINEAR = sorted(name for name in CATALOGUE if name.startswith("gavel.") and name != "gavel.round_assignment")
ENDS = {
    name: settings(
        max_examples=max(3, round(count * EFFORT)),
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    for name, count in {"solved": 14, "judged": 6}.items()
}


@cache
def cases(problem: str) -> list[tuple[Instance[Any], Solution]]:
    """Small instances of a problem, each once, with what the exact model makes of them."""
    found: dict[str, Instance[Any]] = {}

    @ENDS["solved"]
    @given(strategy(problem), derived(problem))
    def collect(one: Instance[Any], other: Instance[Any]) -> None:
        found.update({one.digest: one, other.digest: other})

    seed(1)(collect)()
    if problem == "aryl.placement":
        # Most have no plan.
        seed(2)(collect)()
    entry = CATALOGUE[problem]
    for number in rounds(3):
        try:
            instance = entry.generate(number, **{entry.size: max(1, entry.sizes[0] // 2)})
        except ValueError:
            # Some problems have no instance of so small a size.
            instance = entry.generate(number, **{entry.size: entry.sizes[0]})
        found[instance.digest] = instance
    return [(instance, formulations.solve(instance)) for instance in found.values()]


def some(problem: str, count: int) -> list[tuple[Instance[Any], Solution]]:
    """As many of them, of which there is an exact model, and most of them with an optimum."""
    exact = [case for case in cases(problem) if case[1].status not in ("unknown", "feasible")]
    with_plan = [case for case in exact if case[1].plan is not None]
    without = [case for case in exact if case[1].plan is None]
    kept = len(rounds(count))
    return with_plan[-kept:] + without[: len(rounds(2))]


def test_there_is_a_reference_of_every_problem_of_the_collection() -> None:
    assert set(REFERRED) == set(PROBLEMS) >= COLLECTED


@pytest.mark.parametrize("problem", REFERRED)
def test_the_optimum_is_the_references(problem: str) -> None:
    looked = optima = 0
    for instance, solution in cases(problem):
        reference = reference_of(instance)
        assert reference is not None
        assert solution.plan is None or instance.violations(solution.plan) == []
        try:
            found = reference.optimum()
        except TooLarge:
            continue
        looked += 1
        if solution.status == "infeasible":
            assert found == (math.inf if instance.sense == "min" else -math.inf), instance.to_dict()
        elif solution.status == "unknown":
            # Jobs that arrive over time may have a bound alone.
            assert instance.arrivals.any()  # type: ignore[attr-defined]
            assert found >= solution.bound * (1 - 1e-9)
        elif solution.status == "feasible":
            # Of shares that change at any time, under curves that are not concave, there is no exact model; and times
            # since 1970 have a last digit, which no bound knows.
            assert not instance.concave.all() or instance.arrivals.max() > 1e9  # type: ignore[attr-defined]
            assert solution.bound * (1 - 1e-7) <= found <= solution.objective * (1 + 1e-7)
        else:
            optima += 1
            assert solution.status == "optimal"
            assert agree(solution.objective, float(found)), (instance.to_dict(), float(found))
            assert agree(solution.bound, float(found)), (instance.to_dict(), float(found))
    assert looked >= 10
    assert optima >= 5


@pytest.mark.parametrize("problem", REFERRED)
def test_no_bound_is_beyond_the_optimum(problem: str) -> None:
    """What prices and searches of larger instances prove."""
    proofs = 0
    for instance, solution in some(problem, 8):
        reference = reference_of(instance)
        assert reference is not None
        bounds = []
        with contextlib.suppress(TooLarge):
            bounds.append(reference.searched())
        if instance.dims.get("n") and solution.objective not in (None, math.inf):

            def bound(given: dict[str, Any], reference: Any = reference) -> Any:
                try:
                    return reference.bound(json.dumps(given))
                except Malformed as error:
                    raise StudyError(str(error)) from None

            proof = prices(instance, bound)
            if proof is not None:
                bounds.append(bound(proof))
                assert problem not in LINEAR or closed(solution.objective, bounds[-1])
        proofs += len(bounds)
        for proven in bounds:
            if solution.objective is not None:
                assert not better(instance.sense, solution.objective, float(proven)) or same(proven, solution.objective)
    assert proofs >= 5


@pytest.mark.parametrize("problem", [name for name in LINEAR if PROBLEMS[name].priced])
def test_no_prices_prove_what_is_not_so(problem: str) -> None:
    instance = CATALOGUE[problem].generate(3, num_jobs=5)
    reference = reference_of(instance)
    assert reference is not None
    best = formulations.solve(instance).objective
    assert best is not None
    rng = np.random.default_rng(4)
    proofs = 0
    for _ in rounds(40):
        drawn = {}
        for field in reference.problem.priced:
            length = len(instance.num_workers) if field.endswith("pools") else instance.num_jobs
            shape = (2, length) if field.startswith("later") else (length,)
            drawn[field] = (rng.exponential(10 ** rng.uniform(-4, 2), shape) * (rng.random(shape) < 0.7)).tolist()
        with contextlib.suppress(Malformed):
            proven = reference.bound(drawn)
            proofs += 1
            assert proven <= best * (1 + 1e-6) if instance.sense == "min" else proven >= best * (1 - 1e-6)
    assert proofs > 0


@pytest.mark.parametrize("number", range(6))
def test_no_prices_hold_jobs_that_can_rise(number: int) -> None:
    """Neither those that hold all jobs where they should stop, nor any others, at the levels of another plan."""
    instance = hierarchical_fairness.generate(number, num_jobs=6, workers_per_pool=2, pair_fraction=0.3)
    reference = reference_of(instance)
    plan = formulations.solve(instance).plan
    assert reference is not None
    assert isinstance(plan, Allocation)
    right = policy_prices(instance, plan)
    assert reference.unproven(plan.to_dict(), right) == []
    rng = np.random.default_rng(number)
    for job in np.flatnonzero(instance.normalized_throughputs(plan) > 0):
        fractions = plan.time_fractions.copy()
        fractions[[job, *(len(instance.scale_factors) + np.flatnonzero((instance.pairs == job).any(axis=1)))]] *= 0.99
        short = instance.plan(Allocation(time_fractions=fractions)).to_dict()
        assert reference.unproven(short, right)
        drawn = {
            field: [rng.exponential(10 ** rng.uniform(-9, 2), len(row)).tolist() for row in rows] if rows else rows
            for field, rows in right.items()
            if field.startswith("later")
        }
        assert reference.unproven(short, right | drawn)


def altered(plan: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """The plan with an entry or two changed."""
    plan = copy.deepcopy(plan)
    for _ in range(rng.choice([1, 1, 2])):
        name = rng.choice(list(plan))
        holder: Any = plan
        key: Any = name
        while isinstance(holder[key], list) and holder[key]:
            holder = holder[key]
            key = rng.randrange(len(holder))
        value = holder[key]
        if isinstance(value, bool):
            holder[key] = not value
        elif isinstance(value, int):
            holder[key] = rng.choice([value + 1, value - 1, 0, 2 * value, value + 8])
        elif isinstance(value, float):
            holder[key] = rng.choice([value * (1 + 1e-7), value * (1 + 1e-12), value / 2, value + 0.25, -value, 0.0])
    return plan


@pytest.mark.parametrize("problem", REFERRED)
def test_values_and_rules_are_the_references(problem: str) -> None:
    entry = CATALOGUE[problem]
    verdicts = {"feasible": 0, "infeasible": 0, "no plan": 0}

    @seed(1)
    @ENDS["judged"]
    @given(strategy(problem), st.integers(0, 2**32))
    def compare(instance: Instance[Any], number: int) -> None:
        rng = random.Random(number)
        reference = reference_of(instance)
        assert reference is not None
        plans = [instance.nothing().to_dict()]
        for heuristic in rng.sample(list(entry.heuristics.values()), min(3, len(entry.heuristics))):
            # What it makes of the instance, and whether anything, is tested elsewhere.
            with contextlib.suppress(InstanceError):
                found = heuristic.function(instance, **({"rng": 0} if heuristic.random else {}))
                plans += [] if found is None else [found.to_dict()]
        plans += [altered(rng.choice(plans), rng) for _ in range(12)]
        judgements = [(plan, judged(instance, plan), referred(reference, plan)) for plan in plans]
        # Sums of entries of both signs, and times since long ago, are rounded by more than the value's last digits.
        size = max((abs(ours[1]) for _, ours, _ in judgements if ours and math.isfinite(ours[1])), default=0.0)
        for plan, ours, theirs in judgements:
            assert (ours is None) == (theirs is None), (plan, ours, theirs)
            verdicts["no plan" if ours is None else "infeasible" if ours[0] else "feasible"] += 1
            if ours is not None and theirs is not None:
                assert ours[0] == theirs[0], plan
                late = max([0.0, *map(abs, plan["times"])]) if "times" in plan else 0.0
                assert same(theirs[1], ours[1], size=max(size, 1e9 * 4 * math.ulp(late) if late else 0.0)), plan

    compare()
    assert verdicts["feasible"] > 0
    assert verdicts["infeasible"] + verdicts["no plan"] > 0


@pytest.mark.parametrize("problem", sorted(CATALOGUE))
def test_another_solver_finds_the_same(problem: str) -> None:
    chosen = some(problem, 8)
    assert len(chosen) >= 5
    for instance, solution in chosen:
        other = formulations.solve(instance, solver="scip")
        assert other.status == solution.status, instance.to_dict()
        if solution.objective is not None:
            assert agree(other.objective, solution.objective), instance.to_dict()


@pytest.mark.parametrize("problem", [name for name in sorted(CATALOGUE) if formulation(name).write is not None])
def test_a_start_plan_changes_no_optimum(problem: str) -> None:
    starts = 0
    for instance, solution in some(problem, 8):
        if solution.plan is None:
            continue
        plans = [solution.plan]
        for heuristic in CATALOGUE[problem].heuristics.values():
            with contextlib.suppress(InstanceError):
                plans.append(heuristic.function(instance, **({"rng": 0} if heuristic.random else {})))
        for plan in [plan for plan in plans if plan is not None][:3]:
            again = formulations.solve(instance, start=plan)
            assert (again.status, again.objective) == ("optimal", pytest.approx(solution.objective, rel=1e-6))
            assert instance.violations(again.plan) == []
            starts += 1
    assert starts >= 10


@pytest.mark.parametrize("problem", [name for name in sorted(CATALOGUE) if CATALOGUE[name].symmetric])
def test_numbering_changes_no_optimum(problem: str) -> None:
    looked = 0
    rng = np.random.default_rng(1)
    for instance, solution in reversed(some(problem, 30)):
        changed = functools.reduce(lambda one, dim: permuted(one, dim, rng), CATALOGUE[problem].symmetric, instance)
        if changed == instance or looked == len(rounds(8)):
            continue
        other = formulations.solve(changed)
        assert other.status == solution.status, instance.to_dict()
        if solution.objective is not None:
            assert agree(other.objective, solution.objective), instance.to_dict()
        looked += 1
    assert looked >= 5


# --- heuristics beside it -------------------------------------------------------------------------


def may_break(heuristic: Heuristic) -> set[str] | None:
    """The rules that a heuristic may break by its entry; None for any."""
    promised = [set(one.rules) for one in heuristic.promises if isinstance(one, BreaksOnly) and one.where is None]
    return set.intersection(*promised) if promised else None if heuristic.infeasible_because else set()


@pytest.mark.parametrize("problem", sorted(CATALOGUE))
def test_heuristics_repeat_leave_the_instance_and_keep_the_rules(problem: str) -> None:
    """That no plan within the rules beats the optimum is said of judges and models above."""
    feasible = dict.fromkeys(CATALOGUE[problem].heuristics, 0)

    @given(strategy(problem))
    def look(instance: Instance[Any]) -> None:
        text = json.dumps(instance.to_dict())
        for name, heuristic in CATALOGUE[problem].heuristics.items():
            first, again = (ask_here(instance, heuristic, np.random.default_rng(0)) for _ in range(2))
            assert (first.plan, first.reason) == (again.plan, again.reason), (name, text)
            answer, rules = judge(instance, first, declines=heuristic.declines), may_break(heuristic)
            broken = set() if answer.plan is None else {one.rule for one in instance.violations(answer.plan)}
            if answer.status == Status.FAILED or (rules is not None and not broken <= rules):
                assert not first.reason, (name, first.reason, text)
                assert formulations.solve(instance).status == "infeasible", (name, broken, text)
            feasible[name] += answer.status == Status.FEASIBLE
        assert json.dumps(instance.to_dict()) == text

    look()
    assert min(feasible.values()) >= 3, feasible
