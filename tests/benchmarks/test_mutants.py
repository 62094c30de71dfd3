"""Mutants by syntax tree, and bugs written out as functions that the checks must find."""

import ast
import inspect
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks import mutants as module
from benchmarks.mutants import (
    Fate,
    UnplantedError,
    difference,
    drawn,
    fate_of,
    killed_by,
    off_the_records,
    planted,
)
from benchmarks.mutating import mutated, mutations
from heuristics.afs.elastic_sharing import max_min, srtf
from heuristics.aryl.elastic_allocation import dynamic_program
from heuristics.elasticflow.minimum_satisfactory_share import progressive_filling
from instances.afs.two_job import AfsTwoJobPlan
from validation import CATALOGUE, check_heuristic

SOURCE = """
LIMIT = 3

def function(values: list[int], limit: int = 1) -> int:
    \"\"\"Return a number.\"\"\"
    total = 0
    for value in values:
        if value <= limit and value > 0:
            total += min(value, 2)
    if not total:
        raise ValueError(f"no {total + 1}")
    return total
"""


def arrivals_ignored(instance: Any) -> Any:
    return srtf(type(instance)(instance.num_gpus, instance.work, instance.throughputs, requests=instance.requests))


def a_gpu_unused_above_8(instance: Any) -> Any:
    if instance.num_gpus <= 8:
        return max_min(instance)
    return max_min(replace(instance, num_gpus=instance.num_gpus - 1, throughputs=instance.throughputs[:, :-1]))


def wrong_where_the_capacity_is_a_multiple_of_8(instance: Any) -> Any:
    capacity = min(instance.capacity, int((instance.gpus_per_worker * instance.max_extra).sum()))
    return dynamic_program(replace(instance, capacity=max(0, capacity - (capacity % 8 == 0))))


def every_other_job_not_taken_off(instance: Any) -> Any:
    plan = progressive_filling(instance)
    if plan is None:
        return None
    gpus = np.zeros_like(plan.gpus)
    for turn in range(2):
        fields = {name: getattr(instance, name)[turn::2] for name in ("iterations", "deadlines", "throughputs")}
        found = progressive_filling(replace(instance, **fields))
        if found is not None:
            gpus[turn::2, : found.gpus.shape[1]] = found.gpus
    return replace(plan, gpus=gpus)


def iterations_kept_in_8_bits(instance: Any) -> Any:
    return progressive_filling(replace(instance, iterations=np.fmod(instance.iterations, 256)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "name", "bug"),
    [
        ("afs.elastic_sharing", "srtf", arrivals_ignored),
        ("afs.elastic_sharing", "max_min", a_gpu_unused_above_8),
        ("aryl.elastic_allocation", "dynamic_program", wrong_where_the_capacity_is_a_multiple_of_8),
        ("elasticflow.minimum_satisfactory_share", "progressive_filling", every_other_job_not_taken_off),
        ("elasticflow.minimum_satisfactory_share", "progressive_filling", iterations_kept_in_8_bits),
    ],
)
def test_a_bug_is_found(problem: str, name: str, bug: Callable[[Any], Any]) -> None:
    assert check_heuristic(problem, replace(CATALOGUE[problem].heuristics[name], function=bug)).failed


@pytest.mark.slow
@pytest.mark.parametrize("problem", ["afs.two_job", "aryl.two_job", "aryl.reclaim", "afs.network_packing"])
def test_mutants_drawn_are_killed_by_checks_or_the_same(problem: str) -> None:
    # What a search remembers shows in how often it is best, which no check counts.
    names = [name for name in CATALOGUE[problem].heuristics if name != "tabu_search"]
    mutants = [mutant for name in names for mutant in drawn(problem, name, 1)]
    assert mutants
    assert [str(mutant) for mutant in mutants if fate_of(mutant)[0] in (Fate.EXAMPLES, Fate.SURVIVES)] == []


def test_what_is_exchanged() -> None:
    changes = {mutation.change for mutation in mutations(SOURCE)}
    assert changes == {
        "0 -> 1",
        "0 -> 0 - 1",
        "2 -> 3",
        "2 -> 2 - 1",
        "value <= limit -> value < limit",
        "value <= limit -> value >= limit",
        "value > 0 -> value >= 0",
        "value > 0 -> value < 0",
        "value <= limit and value > 0 -> value <= limit or value > 0",
        "if value <= limit and value > 0: -> if not (value <= limit and value > 0):",
        "total += min(value, 2) -> total -= min(value, 2)",
        "total += min(value, 2) -> pass",
        "min(value, 2) -> max(value, 2)",
        "not total -> total",
        "if not total: -> if not not total:",
    }


def test_an_exchange_is_made_where_it_says() -> None:
    trees = [ast.unparse(mutated(SOURCE, mutation)) for mutation in mutations(SOURCE)]
    plain = ast.unparse(ast.parse(SOURCE))
    assert len(set(trees)) == len(trees)
    for tree in trees:
        different = [pair for pair in zip(plain.splitlines(), tree.splitlines(), strict=True) if pair[0] != pair[1]]
        assert len(different) == 1


def test_each_heuristic_has_mutants_always_the_same() -> None:
    for problem, name in (("aryl.reclaim", "random"), ("afs.two_job", "pairwise_rule")):
        once = drawn(problem, name, 3)
        assert len(once) >= 2
        assert drawn(problem, name, 3) == once
        assert drawn(problem, name, 3, seed=1) == drawn(problem, name, 3, seed=1)


def test_another_seed_draws_others() -> None:
    assert drawn("gavel.makespan", "pop_2", 5, seed=1) != drawn("gavel.makespan", "pop_2", 5)


def test_a_mutant_is_killed_by_a_check_or_by_the_records() -> None:
    turned = drawn("aryl.reclaim", "random", 3)
    assert {killed_by(mutant, max_examples=10) for mutant in turned} & {"feasible", "holds"}
    assert any(off_the_records("aryl.reclaim", planted(mutant)) for mutant in turned)
    assert not off_the_records("aryl.reclaim", CATALOGUE["aryl.reclaim"].heuristics["random"])


@pytest.mark.parametrize(
    ("receiver", "fate"),
    [
        (lambda instance, job, worth: job, Fate.SAME),
        (lambda instance, job, worth: 1 - job if worth[0] == worth[1] else job, Fate.WORTH_THE_SAME),
        (lambda instance, job, worth: 1 - job if worth[job] < worth[1 - job] else job, None),
    ],
)
def test_the_same_and_worth_the_same_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, receiver: Callable[..., int], fate: Fate | None
) -> None:
    original = CATALOGUE["afs.two_job"].heuristics["shorter_first"]

    def other(instance: Any) -> AfsTwoJobPlan:
        worth = [instance.objective(AfsTwoJobPlan(receiver=job)) for job in (0, 1)]
        return AfsTwoJobPlan(receiver=receiver(instance, original.function(instance).receiver, worth))

    monkeypatch.setattr(module, "ALIKE", 100)
    monkeypatch.setattr(module, "planted", lambda mutant: replace(original, function=other))
    assert difference(replace(drawn("afs.two_job", "exact_rule", 1)[0], heuristic="shorter_first")) == fate


def test_the_rate_leaves_out_what_is_the_same() -> None:
    counts = Counter({Fate.CHECKS: 19, Fate.SAME: 7, Fate.WORTH_THE_SAME: 3, Fate.EXAMPLES: 1})
    assert tuple(module._row(counts)) == (30, 19, 7, 3, 1, 0, "95.0%")
    assert module._row(Counter({Fate.SAME: 2}))[-1] == "none"


def test_wrapped_heuristics_have_mutants_too() -> None:
    mutant = drawn("gavel.makespan", "pop_2", 1)[0]
    wrapper = CATALOGUE[mutant.problem].heuristics[mutant.heuristic].function.__module__
    before = sys.modules[wrapper]
    assert inspect.unwrap(planted(mutant).function).__globals__["pop"] is not vars(before)["pop"]
    assert sys.modules[wrapper] is before
    with pytest.raises(UnplantedError, match="does not import heuristics"):
        planted(
            replace(mutant, module="heuristics.aryl.reclaim", mutation=drawn("aryl.reclaim", "random", 1)[0].mutation)
        )


def test_the_heuristic_itself_is_left_as_it_is() -> None:
    mutant = drawn("aryl.elastic_allocation", "dynamic_program", 1)[0]
    original = CATALOGUE[mutant.problem].heuristics[mutant.heuristic].function
    before = sys.modules[original.__module__]
    bad = planted(mutant).function
    assert bad is not original
    assert sys.modules[original.__module__] is before
    assert CATALOGUE[mutant.problem].heuristics[mutant.heuristic].function is original
