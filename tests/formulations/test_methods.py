"""Every exact method of every problem, by name: what applies, what is said of it, and that it finds the optimum."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings

import formulations
from formulations import Formulation, Options, Session, Solution
from formulations.engine.linear import translate
from formulations.engine.protocol import formulation
from formulations.methods import AUTO, GaveUp, Method, choice, method_of
from instances.base import Instance, agree
from instances.reference import PROBLEMS
from instances.reference.stated import STATED
from validation import CATALOGUE
from validation.testing.strategies import strategy
from validation.testing.transform import take

BEFORE = ("no jobs", "no plan", "at hand")
"""What a solution says where nothing was left for a method to do."""
PAIRS = [(problem, method.name) for problem in CATALOGUE for method in choice(problem).methods]


@cache
def drawn(problem: str) -> list[Instance[Any]]:
    """Small instances of the problem's strategy and of its generator."""
    entry = CATALOGUE[problem]
    found = [entry.generate(seed, **{entry.size: entry.sizes[0]}) for seed in range(24)]

    @settings(max_examples=40, phases=[Phase.generate], database=None)
    @given(strategy(problem))
    def collect(instance: Instance[Any]) -> None:
        found.append(instance)

    collect()
    if hasattr(entry.instance, "pairs"):
        found += gavel(problem)
    # Of jobs that arrive over time there is a bound only.
    return [one for one in found if not np.any(getattr(one, "arrivals", 0))]


def gavel(problem: str) -> list[Instance[Any]]:
    """Many jobs without pairs, for prices; jobs that are alike, for classes; and those that cannot run."""
    generate = CATALOGUE[problem].generate
    many = [generate(seed, num_jobs=200, pair_fraction=0.0) for seed in range(3)]
    few = [generate(seed, num_jobs=3, pair_fraction=0.0) for seed in range(3)]
    alike = [take(take(one, "n", np.arange(12) % 3), "k", [0, 0, 0, 1, 1, 1]) for one in few]
    if "argument" not in [method.short for method in choice(problem).methods]:
        return [*many, *alike]
    stuck: list[Any] = [generate(seed, num_jobs=4, pair_fraction=0.0) for seed in range(4)]
    if problem == "gavel.cost":
        # Jobs that fit nowhere.
        wide = [replace(one, scale_factors=one.scale_factors + one.num_workers.sum()) for one in stuck]
        return [*many, *alike, *(replace(one, slos=np.full(one.num_jobs, np.inf)) for one in wide)]
    nowhere = (np.arange(4) > 0)[:, None]
    return [*many, *alike, *(replace(one, throughputs=one.throughputs * nowhere) for one in stuck)]


def reference(instance: Instance[Any]) -> Solution:
    """By the one model as it is, or by the method that checks the others where there is none."""
    again = choice(instance.problem).again
    return formulations.solve(instance, session=Session()) if again is None else again.solve(instance, Options())


@pytest.mark.parametrize(("problem", "name"), PAIRS)
def test_a_method_finds_what_the_reference_finds(problem: str, name: str) -> None:
    looked = 0
    for instance in drawn(problem):
        if name not in [method.name for method in formulations.methods(instance)]:
            continue
        solution = formulations.solve(instance, method=name)
        if solution.method in BEFORE:
            continue
        assert solution.method == name
        if solution.status == "unknown":
            assert solution.message
            continue
        expected = reference(instance)
        assert solution.status == expected.status
        assert solution.proof in method_of(problem, name).proofs
        if solution.objective is None or expected.objective is None:
            assert solution.objective is expected.objective is None
        else:
            assert solution.plan is not None
            assert instance.violations(solution.plan) == []
            assert agree(solution.objective, expected.objective)
            worse = (
                (solution.bound > expected.objective)
                if instance.sense == "min"
                else (solution.bound < expected.objective)
            )
            assert agree(solution.bound, expected.objective) or not worse
        looked += 1
        if looked == 4:
            break
    assert looked >= 3, f"{name} was looked at {looked} times"


@pytest.mark.parametrize("problem", CATALOGUE)
def test_the_methods_of_a_problem_are_told_apart_and_described(problem: str) -> None:
    known = choice(problem).methods
    assert known
    names = [name for method in known for name in {method.name, method.short}]
    assert len({*names, AUTO, *BEFORE}) == len(names) + 4
    assert all(method.proves and method.where for method in known)
    for instance in drawn(problem)[:8]:
        applying = formulations.methods(instance)
        assert {method.name for method in applying} <= {method.name for method in known}
        assert applying
        assert repr(applying).splitlines() == [repr(method) for method in applying]
        assert applying[0].name in repr(applying)


@pytest.mark.parametrize("problem", CATALOGUE)
def test_auto_takes_one_of_the_methods_that_apply(problem: str) -> None:
    for instance in drawn(problem)[:8]:
        solution = formulations.solve(instance)
        applying = formulations.methods(instance)
        # A formulation's own way says itself which it was.
        assert solution.method in [*BEFORE, *(one.name for one in applying)] or applying[0].short == "own"


def rows() -> list[str]:
    """The table of all methods, as the page has it."""
    found: dict[str, tuple[Method, list[str]]] = {}
    for problem in CATALOGUE:
        for method in choice(problem).methods:
            found.setdefault(method.name, (method, []))[1].append(f"`{problem}`")
    told = []
    for method, problems in found.values():
        of = "all but those of the two procedures" if method.short == "model" else ", ".join(sorted(problems))
        told.append(f'| "{method.name}" | `{method.short}` | {of} | {method.where} | {method.proves} |')
    return sorted(told)


def test_the_page_has_the_table_of_all_methods() -> None:
    page = (Path(__file__).parents[2] / "docs" / "solving.md").read_text(encoding="utf-8")
    head = "| method | short | of | applies to | proves |\n| --- | --- | --- | --- | --- |\n"
    table = page.partition(head)[2].partition("\n\n")[0].splitlines()
    assert table == rows()


def grounds() -> list[str]:
    """The table of what each answer rests on, as the page has it."""
    told = []
    for problem in CATALOGUE:
        known = choice(problem)
        if formulation(problem).any_solver:
            certificate = "none"
        else:
            certificate = "of the instance" if problem in STATED else "of the program"
        again = "reference, prices" if PROBLEMS[problem].linear else "reference, search"
        if known.again is not None:
            again = "reference, procedure"
        for method in known.methods:
            rests = ", ".join(method.proofs)
            told.append(f'| `{problem}` | "{method.name}" | {rests} | {certificate} | {again} |')
    return told


def test_the_page_has_the_table_of_what_each_answer_rests_on() -> None:
    page = (Path(__file__).parents[2] / "docs" / "solving.md").read_text(encoding="utf-8")
    head = "| problem | method | rests on | certificate | once more |\n| --- | --- | --- | --- | --- |\n"
    assert page.partition(head)[2].partition("\n\n")[0].splitlines() == grounds()
    assert {problem for problem, _ in PAIRS} == set(CATALOGUE) == set(PROBLEMS)


@pytest.mark.parametrize("problem", CATALOGUE)
def test_only_linear_programs_are_said_to_rest_on_prices_alone(problem: str) -> None:
    model = [method for method in choice(problem).methods if method.short == "model"]
    built = translate(formulations.build(drawn(problem)[0]))
    assert [method.proofs == ("prices",) for method in model] == [not built.is_mip] * len(model)
    assert not model or built.is_mip != PROBLEMS[problem].linear


def test_a_method_that_there_is_not_or_that_does_not_apply_is_one_clear_error() -> None:
    instance = CATALOGUE["afs.gpu_placement"].generate(0)
    with pytest.raises(ValueError, match=r"got 'simplex', afs\.gpu_placement has 'auto' and 'one model' \(model\)"):
        formulations.solve(instance, method="simplex")
    with pytest.raises(ValueError, match="a model is solved as it is"):
        formulations.solve(formulations.build(instance), method="model")
    assert formulations.solve(instance, method="model", session=Session()).method == "one model"


def nothing(instance: Any, options: Options) -> Solution:
    raise GaveUp("there is nothing to be seen")


@pytest.fixture
def giving_up(monkeypatch: pytest.MonkeyPatch) -> Instance[Any]:
    """An instance of a problem whose own way gives up, as one from outside the library has it."""
    module = formulation("afs.gpu_placement")
    own = Formulation(build=module.build, read=module.read, write=module.write, solve=nothing)
    monkeypatch.setattr("formulations.afs.gpu_placement.FORMULATION", own)
    return CATALOGUE["afs.gpu_placement"].generate(0)


def test_a_formulations_own_way_is_a_method_and_where_it_gives_up_the_next_is_tried(giving_up: Instance[Any]) -> None:
    assert [method.short for method in formulations.methods(giving_up)] == ["own", "model"]
    assert formulations.solve(giving_up).method == "one model"
    asked = formulations.solve(giving_up, method="own")
    assert (asked.status, asked.method) == ("unknown", "the formulation's own")
    assert asked.message == "there is nothing to be seen"
    with pytest.raises(ValueError, match=r"own\" needs HiGHS; this afs\.gpu_placement can be solved by 'one model'"):
        formulations.solve(giving_up, method="own", solver="scip")


def test_a_method_is_a_line() -> None:
    method = Method("by hand", "hand", "nothing", "no instance", nothing)
    assert repr(method) == "'by hand' (hand): nothing"
