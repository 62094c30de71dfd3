"""Worst cases of Gavel's heuristics, against trying everything, and against instances drawn at random."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import formulations
from formulations.worst_case.gavel import greedy
from heuristics.gavel import max_min_fairness, round_assignment, total_throughput
from instances.base import Instance
from instances.gavel.max_min_fairness import MaxMinFairness
from instances.gavel.round_assignment import RoundAssignment
from instances.gavel.total_throughput import TotalThroughput
from validation import find_worst, worst_case
from validation.kinds import hunt

ROUNDS = ("gavel.round_assignment", "greedy_priority")
TOTAL = ("gavel.total_throughput", "fastest_first")
FAIR = "gavel.max_min_fairness"
SLACK = 1 + 1e-9
"""For the last digits of a ratio."""


def best_assignment(worths: Any, scale_factors: Any, workers: int) -> float:
    """The greatest worth of jobs that each run on one type or not at all, by trying everything."""
    worths, best = np.asarray(worths, float), 0.0
    jobs, kinds = worths.shape
    for chosen in itertools.product(range(-1, kinds), repeat=jobs):
        held = [sum(scale_factors[job] for job in range(jobs) if chosen[job] == kind) for kind in range(kinds)]
        if max(held) <= workers:
            best = max(best, sum(worths[job, kind] for job, kind in enumerate(chosen) if kind >= 0))
    return best


def rounds(priorities: Any, scale_factors: Any, workers: int) -> RoundAssignment:
    priorities = np.asarray(priorities, float)
    return RoundAssignment(
        priorities=priorities, scale_factors=scale_factors, num_workers=[workers] * priorities.shape[1]
    )


def clusters(throughputs: Any, scale_factors: Any, workers: int) -> TotalThroughput:
    throughputs = np.asarray(throughputs, float)
    return TotalThroughput(
        throughputs=throughputs, scale_factors=scale_factors, num_workers=[workers] * throughputs.shape[1]
    )


MADE = {
    ROUNDS: (rounds, round_assignment.greedy_priority),
    TOTAL: (clusters, total_throughput.fastest_first),
}


def ratio(heuristic: tuple[str, str], worths: Any, scale_factors: Any, workers: int) -> float:
    """The optimum by what the heuristic's own plan is worth; 1 where that is 0, as the optimum then is."""
    make, function = MADE[heuristic]
    instance: Any = make(worths, scale_factors, workers)
    value = instance.objective(function(instance))
    best = best_assignment(worths, scale_factors, workers)
    assert value > 0 or best == 0
    return best / value if value else 1.0


def all_of(
    numbers: Any, jobs: int, kinds: int, widest: int
) -> Iterator[tuple[tuple[tuple[float, ...], ...], tuple[int, ...]]]:
    rows = list(itertools.product(numbers, repeat=kinds))
    for scale_factors in itertools.product(range(1, widest + 1), repeat=jobs):
        for worths in itertools.product(rows, repeat=jobs):
            yield worths, scale_factors


@pytest.mark.parametrize(
    ("heuristic", "jobs", "kinds", "workers", "numbers", "dials"),
    [
        (ROUNDS, 2, 1, 3, (0, 1, 2), {}),
        (ROUNDS, 3, 1, 3, (1, 2), {}),
        (ROUNDS, 3, 1, 4, (1, 2), {}),
        (ROUNDS, 4, 1, 3, (1,), {"widest": 2}),
        (ROUNDS, 2, 2, 2, (0, 1, 2), {}),
        (TOTAL, 2, 2, 1, (0, 1, 2), {}),
        (TOTAL, 2, 2, 1, (1, 2, 3), {"spread": 3}),
        (TOTAL, 3, 2, 1, (1, 2), {"spread": 2}),
        (TOTAL, 3, 2, 2, (0, 1), {}),
    ],
)
def test_trying_everything_finds_what_is_proven(
    heuristic: tuple[str, str], jobs: int, kinds: int, workers: int, numbers: Any, dials: dict[str, Any]
) -> None:
    """Ties are broken by the heuristic itself, in every order, and these numbers suffice to show the worst."""
    widest = dials.get("widest", workers) if heuristic is ROUNDS else 1
    tried = max(ratio(heuristic, *one, workers) for one in all_of(numbers, jobs, kinds, widest))
    found = worst_case(*heuristic, size=jobs, num_types=kinds, num_workers=workers, **dials)
    assert found.status == "optimal"
    assert tried == pytest.approx(found.value, rel=1e-6)


@pytest.mark.parametrize(
    ("heuristic", "dials"),
    [(ROUNDS, {"num_types": 2, "num_workers": 3}), (ROUNDS, {"widest": 2}), (TOTAL, {"num_types": 3, "spread": 4})],
)
def test_no_instance_drawn_is_worse(heuristic: tuple[str, str], dials: dict[str, Any]) -> None:
    jobs, kinds, workers = 3, dials.get("num_types", 1), dials.get("num_workers", 4 if heuristic is ROUNDS else 1)
    bound = worst_case(*heuristic, size=jobs, **dials).bound
    rng = np.random.default_rng(0)
    for _ in range(300):
        widest = dials.get("widest", workers) if heuristic is ROUNDS else 1
        low = 1 / dials["spread"] if "spread" in dials else 0.0
        worths = rng.uniform(low, 1, (jobs, kinds)) ** rng.choice([0.1, 1.0])
        assert ratio(heuristic, worths, rng.integers(1, widest + 1, jobs), workers) <= bound * SLACK


def test_numbering_the_jobs_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[tuple[str, str], dict[str, Any]]] = [
        (ROUNDS, {"size": 3, "num_types": 2, "num_workers": 2}),
        (ROUNDS, {"size": 3, "num_workers": 3, "widest": 2}),
        (TOTAL, {"size": 3}),
    ]
    numbered = [worst_case(*heuristic, **dials).bound for heuristic, dials in asked]
    everywhere = monkeypatch.setattr
    everywhere(greedy, "_number", lambda model, num_types: None)
    # With one type the numbers also say which way ties go: without, they go either way.
    everywhere(greedy, "blocked_by", lambda entries, num_types: greedy.adjacent(entries))
    for (heuristic, dials), bound in zip(asked, numbered, strict=True):
        found = formulations.worst_case.worst_case_model(*heuristic)
        assert found is not None
        again = formulations.worst_case.prove(found, heuristic[0], **dials)
        assert again.bound == pytest.approx(bound, rel=1e-6)


SHARES = {
    "isolated": max_min_fairness.isolated,
    "heterogeneity_agnostic": max_min_fairness.heterogeneity_agnostic,
    "equal_share": max_min_fairness.equal_share,
}


def fairness(instance: MaxMinFairness, name: str) -> float:
    best = formulations.solve(instance)
    assert best.status == "optimal"
    assert best.objective is not None
    return best.objective / instance.objective(SHARES[name](instance))


@pytest.mark.parametrize("name", SHARES)
def test_throughputs_between_slow_and_fast_are_no_worse(name: str) -> None:
    """Two jobs on two types, and every pair of throughputs of 1, 2 and 4; the model knows 1 and 4."""
    bounds = {}
    for scale_factors in itertools.product((1, 2), repeat=2):
        for first, second in itertools.product([(1, 1), (1, 2), (1, 4), (2, 1), (4, 1), (4, 2)], repeat=2):
            instance = MaxMinFairness(
                throughputs=np.array([first, second], float), num_workers=[2, 2], scale_factors=scale_factors
            )
            widest = max(scale_factors)
            bounds[widest] = max(bounds.get(widest, 0.0), fairness(instance, name))
    for widest in (1, 2):
        found = worst_case(FAIR, name, size=2, num_workers=2, spread=4, widest=widest)
        assert found.status == "optimal"
        assert max(bounds[one] for one in range(1, widest + 1)) == pytest.approx(found.value, rel=1e-6)


def test_two_jobs_on_two_workers() -> None:
    """The smallest row, of isolated shares: two jobs on two types of one worker, throughputs within a factor of 10."""
    kinds = [(1, fast) for fast in (1, 2, 5, 10)] + [(fast, 1) for fast in (2, 5, 10)]
    worst = 0.0
    for pair in itertools.product(kinds, repeat=2):
        instance = MaxMinFairness(throughputs=np.array(pair, float), num_workers=[1, 1])
        worst = max(worst, fairness(instance, "isolated"))
    assert worst == pytest.approx(worst_case(FAIR, "isolated", size=2, num_workers=1, spread=10).value, rel=1e-6)
    assert worst == pytest.approx(20 / 11, rel=1e-6)


@pytest.mark.parametrize("name", SHARES)
def test_no_cluster_drawn_is_worse(name: str) -> None:
    bound = worst_case(FAIR, name, size=3, num_types=3, num_workers=2, spread=5, widest=2).bound
    rng = np.random.default_rng(1)
    for _ in range(40):
        instance = MaxMinFairness(
            throughputs=rng.uniform(1, 5, (3, 3)) ** rng.choice([0.3, 1.0]) * rng.uniform(1, 9, (3, 1)),
            num_workers=[2, 2, 2],
            scale_factors=rng.integers(1, 3, 3),
        )
        assert fairness(instance, name) <= bound * SLACK


def of_the_class(instance: Instance[Any]) -> bool:
    """Three jobs of one worker on two types of one worker, throughputs within a factor of 4."""
    assert isinstance(instance, TotalThroughput)
    least, most = instance.throughputs.min(), instance.throughputs.max()
    return bool(
        instance.throughputs.shape == (3, 2)
        and (instance.num_workers == 1).all()
        and instance.pools.tolist() == [0, 1]
        and (instance.scale_factors == 1).all()
        and not instance.num_pairs
        and 4 * least >= most > 0
    )


def test_a_hunt_finds_nothing_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the witness on, too: its neighbours are no worse."""
    found = worst_case(*TOTAL, size=3, spread=4)
    assert found.judged is not None
    monkeypatch.setattr(hunt, "RESTART", 40)
    monkeypatch.setattr(hunt, "METHODS", (hunt._hill_climbing,))
    monkeypatch.setattr(hunt._Search, "fresh", lambda search: found.witness)
    hunted = find_worst(*TOTAL, seed=1, restarts=1, budget=120, jobs=1, where=of_the_class)
    assert hunted.judged.value is not None
    assert hunted.judged.optimum / hunted.judged.value <= found.bound * SLACK


# --- families behind the patterns -------------------------------------------------------------------


def wide_before_narrow(workers: int, widest: int) -> RoundAssignment:
    """As few jobs as fill the workers, before one job of one worker for each; priorities are equal."""
    wide = [widest] * (workers // widest) + [workers % widest] * (workers % widest > 0)
    scale_factors = [*wide, *[1] * workers]
    return rounds(np.ones((len(scale_factors), 1)), scale_factors, workers)


def parted(spread: float, copies: int) -> TotalThroughput:
    """Two jobs that are alike on one type and part on another, and copies of them on types of their own."""
    throughputs = np.ones((2 * copies, 2 * copies))
    for first in range(0, 2 * copies, 2):
        throughputs[first : first + 2, first : first + 2] = [[spread, spread], [spread, 1.0]]
    return clusters(throughputs, [1] * (2 * copies), 1)


def specialists(kinds: int, workers: int, spread: float) -> MaxMinFairness:
    """As many jobs as workers, each fast on one type, and as many on each as it has workers."""
    throughputs = np.where(np.repeat(np.eye(kinds), workers, axis=0) > 0, spread, 1.0)
    return MaxMinFairness(throughputs=throughputs, num_workers=[workers] * kinds)


@pytest.mark.parametrize(("workers", "widest"), [(4, 4), (4, 3), (8, 2), (7, 4), (16, 16)])
def test_wide_jobs_before_narrow_ones(workers: int, widest: int) -> None:
    instance = wide_before_narrow(workers, widest)
    best = formulations.solve(instance).objective
    assert best == workers
    assert best / instance.objective(round_assignment.greedy_priority(instance)) == workers / -(-workers // widest)


@pytest.mark.parametrize(("spread", "copies"), [(2, 1), (10, 1), (10, 2), (4, 3)])
def test_jobs_that_part_on_one_type(spread: float, copies: int) -> None:
    instance = parted(spread, copies)
    best = formulations.solve(instance).objective
    assert best is not None
    value = instance.objective(total_throughput.fastest_first(instance))
    assert best / value == pytest.approx(2 * spread / (spread + 1))


@pytest.mark.parametrize("name", SHARES)
@pytest.mark.parametrize(("kinds", "workers", "spread"), [(2, 1, 10), (3, 2, 10), (5, 2, 4)])
def test_specialists(kinds: int, workers: int, spread: float, name: str) -> None:
    instance = specialists(kinds, workers, spread)
    assert fairness(instance, name) == pytest.approx(kinds * spread / (kinds + spread - 1))


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "widest", "jobs"), [(3, 2, 5), (4, 3, 6), (5, 4, 7), (5, 2, 7)])
def test_the_widths_of_the_family_are_the_worst_at_small_sizes(workers: int, widest: int, jobs: int) -> None:
    found = worst_case(*ROUNDS, size=jobs, num_workers=workers, widest=widest)
    assert found.bound == pytest.approx(workers / -(-workers // widest), rel=1e-6)
