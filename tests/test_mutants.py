"""Planted bugs: a few that the checks must find, and the tool that plants them."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.mutants import planted, put_to_the_test
from benchmarks.planted import MUTANTS, Mutant
from validation import CATALOGUE


def named(problem: str, bug: str) -> Mutant:
    (found,) = (mutant for mutant in MUTANTS if mutant.problem == problem and mutant.bug == bug)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "bug"),
    [
        ("afs.elastic_sharing", "arrivals ignored"),
        ("afs.elastic_sharing", "one GPU too many above 8"),
        ("aryl.elastic_allocation", "wrong where the capacity is a multiple of 8"),
        ("elasticflow.minimum_satisfactory_share", "one job of a pair not taken off"),
        ("elasticflow.minimum_satisfactory_share", "iterations kept in 8 bits"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
def test_a_planted_bug_is_found(problem: str, bug: str) -> None:
    assert put_to_the_test(named(problem, bug)).killed_by


def test_a_snippet_that_is_gone_is_an_error_that_names_the_mutant() -> None:
    mutant = replace(MUTANTS[0], old="no such line")
    with pytest.raises(ValueError, match=f"{mutant.bug}: its snippet stands 0 times in heuristics"):
        planted(mutant)


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_every_snippet_stands_once(mutant: Mutant) -> None:
    function = CATALOGUE[mutant.problem].heuristics[mutant.heuristic].function
    path = Path(str(sys.modules[mutant.module or function.__module__].__file__))
    assert path.read_text(encoding="utf-8").count(mutant.old) == 1
    assert mutant.new != mutant.old


def test_every_problem_has_mutants_and_each_bug_stands_once() -> None:
    assert {mutant.problem for mutant in MUTANTS} == set(CATALOGUE)
    assert len({(mutant.problem, mutant.heuristic, mutant.bug) for mutant in MUTANTS}) == len(MUTANTS) >= 60


def test_the_heuristic_itself_is_left_as_it_is() -> None:
    mutant = named("aryl.elastic_allocation", "the last choice never tried")
    original = CATALOGUE[mutant.problem].heuristics[mutant.heuristic].function
    before = sys.modules[original.__module__]
    bad = planted(mutant).function
    assert bad is not original
    assert sys.modules[original.__module__] is before
    assert CATALOGUE[mutant.problem].heuristics[mutant.heuristic].function is original
