"""What two runs prove together: confirmed, left at one run, or contradicted by a better point."""

import copy
import itertools
import json
import math
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import formulations
from benchmarks.second_way import CASES, Row, compare, draw, main, run
from formulations import LinearProgram, Options, Result, Session, SolverDisagreement, solve
from formulations.engine import external, highs
from formulations.engine.solving import solve_one_model
from instances.aryl.reclaim import Reclaim
from instances.gavel.shortest_job_first import generate as shortest_job_first
from instances.synergy.allocation import generate as allocation

from .small_models import best_subset, knapsack, six_servers

BEST = best_subset(12, 3)


@pytest.fixture(autouse=True)
def strict() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", SolverDisagreement)
        yield


def program() -> LinearProgram:
    """A knapsack whose relaxation, rounded, does not prove the optimum."""
    return formulations.translate(knapsack(12, 3))


def worse(arrays: LinearProgram) -> Result:
    """The empty knapsack, said to be optimal."""
    return Result("optimal", np.zeros(arrays.num_cols), 0.0, None, 0.01, "Optimal", "one run")


def planted(monkeypatch: pytest.MonkeyPatch, wrong: Any, *, second: bool = False) -> None:
    """Every first search, or every second one, on a mixed-integer program ends in ``wrong(program)``."""
    honest = Session._solve

    def solved(self: Session, arrays: LinearProgram, ways: list[dict[str, Any]]) -> Result:
        if arrays.is_mip and (highs._SECOND_WAY in ways) == second:
            return wrong(arrays)
        return honest(self, arrays, ways)

    monkeypatch.setattr(Session, "_solve", solved)


# --- what is said of the proof --------------------------------------------------------------------


def test_a_search_is_confirmed_by_another() -> None:
    result = Session().run(program())
    assert (result.status, result.proof) == ("optimal", "two runs")
    assert result.bound == pytest.approx(BEST)
    assert Session(verify=False).run(program()).proof == "one run"


def test_prices_prove_where_the_relaxation_is_as_good() -> None:
    # Its relaxation preempts 0.8 jobs, which is no whole number of them.
    instance = allocation(0, num_servers=1)
    assert {solve(instance, verify=True).proof, solve(six_servers(), verify=True).proof} <= {"prices", "two runs"}
    whole = program()
    cheap = replace(whole, row_upper=np.full(whole.num_rows, math.inf))
    assert Session().run(cheap).proof == "prices"


@pytest.mark.parametrize(
    ("sense", "cost", "bound", "raised"),
    [
        ("min", [2.0, 4.0], 2.5, 4.0),
        ("min", [2.0, 4.0], 4.0 + 1e-9, 4.0),
        ("max", [2.0, 4.0], 5.5, 4.0),
        ("max", [3.0, -6.0], -0.5, -3.0),
        ("min", [0.5, 1.0], 0.7, 0.7),
        ("min", [0.0, 0.0], 0.3, 0.3),
        ("min", [1.0, 1.0], math.inf, math.inf),
    ],
)
def test_bounds_are_raised_to_what_whole_variables_can_be_worth(
    sense: Any, cost: list[float], bound: float, raised: float
) -> None:
    columns = program()
    arrays = replace(columns, sense=sense, offset=0.0, cost=np.resize(np.array(cost), columns.num_cols))
    assert highs._raised(arrays, bound) == raised
    shifted = replace(arrays, offset=0.25)
    assert highs._raised(shifted, bound + 0.25) == pytest.approx(raised + 0.25)


def test_infeasibility_is_confirmed() -> None:
    arrays = program()
    # Half of the sum of even numbers, plus a half, is no sum of them.
    odd = replace(arrays, value=np.full_like(arrays.value, 2.0), row_lower=np.full(3, 7.0), row_upper=np.full(3, 7.0))
    assert (Session().run(odd).status, Session().run(odd).proof) == ("infeasible", "two runs")
    assert Session(verify=False).run(odd).proof == "one run"
    far = replace(arrays, row_lower=np.full(3, 1e6), row_upper=np.full(3, math.inf))
    assert (Session().run(far).status, Session().run(far).proof) == ("infeasible", "prices")


def test_solutions_say_what_their_proof_is() -> None:
    solution = solve(knapsack(12, 3))
    assert solution.proof == "two runs"
    assert "proof='two runs'" in repr(solution)
    assert "two runs" in solution._repr_html_()
    assert json.loads(json.dumps(solution.to_dict()))["proof"] == "two runs"
    assert solve(shortest_job_first(0, num_jobs=3)).proof == "argument"
    assert solve(knapsack(12, 3), solver="scip").proof == "one run"
    assert solve(knapsack(12, 3), solver="scip", verify=True).proof == "two runs"
    unsolved = Session(time_limit=1e-9).run(program())
    assert (unsolved.status, unsolved.proof) == ("unknown", "") or unsolved.proof == "one run"


def test_the_default_leaves_long_searches_at_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(highs, "SECOND_LOOK", (0.0, 0.0))
    assert Session().run(program()).proof == "one run"
    assert Session(verify=True).run(program()).proof == "two runs"
    assert solve(knapsack(12, 3)).proof == "one run"
    assert solve(knapsack(12, 3), verify=True).proof == "two runs"
    monkeypatch.setattr(highs, "SECOND_LOOK", (1e-6, 0.0))
    result = Session().run(program())
    assert result.proof == "one run"


def test_a_second_search_stops_at_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    planted(monkeypatch, lambda arrays: Result("unknown", None, math.inf, None, 2.0, "Time limit reached"), second=True)
    result = Session(verify=True).run(program())
    assert (result.status, result.proof) == ("optimal", "one run")
    assert "not confirmed by a second run within 2 s" in result.message


def test_a_second_way_that_fails_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(arrays: LinearProgram) -> Result:
        raise formulations.SolverError("HiGHS failed")

    planted(monkeypatch, failing, second=True)
    result = Session().run(program())
    assert (result.status, result.proof) == ("optimal", "one run")
    assert "not confirmed" in result.message


def test_verify_reaches_the_sessions_of_options() -> None:
    assert [Options(verify=given).session().verify for given in (None, True, False)] == [None, True, False]
    with pytest.raises(ValueError, match="a session brings its own"):
        solve(knapsack(4, 1), verify=True, session=Session())


# --- disagreement ---------------------------------------------------------------------------------


def test_a_wrong_first_run_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    planted(monkeypatch, worse)
    with pytest.warns(SolverDisagreement, match="another run, wrong, claimed the bound 0"):
        solution = solve(knapsack(12, 3))
    assert (solution.status, solution.objective) == ("optimal", BEST)
    assert solution.bound == pytest.approx(BEST)
    assert solution.proof == "one run"
    assert "another run, wrong" in solution.message
    assert solve(knapsack(12, 3), verify=False).objective == 0.0


def test_a_wrong_first_run_on_an_instance_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    optimum = solve(six_servers()).objective

    def two_alone(arrays: LinearProgram) -> Result:
        """Servers 0 and 1 returned, with the jobs on them: a point of the model, and not the best."""
        x = np.zeros(arrays.num_cols)
        x[[0, 1, 7, 8]] = 1.0
        assert arrays.infeasibility(x) == 0.0
        return Result("optimal", x, arrays.objective(x), None, 0.01, "Optimal", "one run")

    planted(monkeypatch, two_alone)
    with pytest.warns(SolverDisagreement):
        assert solve_one_model(six_servers(), Options()).objective == optimum


def test_a_plan_where_there_was_said_to_be_none(monkeypatch: pytest.MonkeyPatch) -> None:
    planted(monkeypatch, lambda arrays: Result("infeasible", None, -math.inf, None, 0.01, "Infeasible", "one run"))
    with pytest.warns(SolverDisagreement, match="called the program infeasible"):
        result = Session().run(program())
    assert (result.status, result.bound) == ("optimal", pytest.approx(BEST))
    assert Session(verify=False).run(program()).status == "infeasible"


@pytest.mark.parametrize("claimed", ["infeasible", "optimal"])
def test_two_wrong_runs_are_caught_by_the_point_that_they_began_with(
    monkeypatch: pytest.MonkeyPatch, claimed: str
) -> None:
    best = Session().run(program()).x
    assert best is not None

    def wrong(arrays: LinearProgram) -> Result:
        return worse(arrays) if claimed == "optimal" else Result("infeasible", None, -math.inf, None, 0, "", "two runs")

    planted(monkeypatch, wrong)
    with pytest.warns(SolverDisagreement, match="another run, wrong"):
        found = Session(verify=False).run(program(), start=best)
    assert (found.status, found.proof, found.bound) == ("feasible", "", math.inf)
    assert program().objective(found.x) == pytest.approx(BEST)
    # One that is no point proves nothing.
    assert Session(verify=False).run(program(), start=np.ones(12)).proof == wrong(program()).proof


@pytest.mark.parametrize("claimed", ["infeasible", "optimal"])
def test_a_wrong_second_run_does_not_spoil_the_first(monkeypatch: pytest.MonkeyPatch, claimed: str) -> None:
    def wrong(arrays: LinearProgram) -> Result:
        if claimed == "infeasible":
            return Result("infeasible", None, -math.inf, None, 0.01, "Infeasible", "one run")
        return worse(arrays)

    planted(monkeypatch, wrong, second=True)
    with pytest.warns(SolverDisagreement, match="a second run, wrong"):
        result = Session().run(program())
    assert (result.status, result.bound, result.proof) == ("optimal", pytest.approx(BEST), "one run")


def test_a_better_point_without_its_own_proof_is_only_feasible() -> None:
    arrays = program()
    better = Session(verify=False).run(arrays)
    stopped = replace(better, status="feasible", bound=better.bound * 2)
    with pytest.warns(SolverDisagreement):
        result = highs.reconciled(arrays, worse(arrays), stopped)
    assert (result.status, result.bound) == ("feasible", better.bound * 2)


def test_rounding_is_no_disagreement() -> None:
    # Terms of a thousand that cancel out, but for the last digits.
    arrays = replace(program(), offset=0.0, cost=np.resize([1000.0, -1000.0], 12), sense="min")
    x = np.ones(12)
    first = Result("optimal", x, 0.0, None, 0.0, "Optimal", "one run")
    second = replace(first, x=np.where(np.arange(12) == 1, 1 + 1e-9, 1.0), bound=-1e-6)
    assert highs.reconciled(arrays, first, second).proof == "two runs"


def test_rounding_beside_an_optimum_of_zero_is_no_disagreement() -> None:
    # The least is 0; one run's point is below it by what a sum of floats may be.
    arrays = replace(program(), offset=0.0, cost=np.ones(12), sense="min", integer=np.zeros(12, bool))
    first = Result("optimal", np.zeros(12), 0.0, None, 0.0, "Optimal", "one run")
    second = replace(first, x=np.where(np.arange(12) == 1, -2e-14, 0.0), bound=-2e-14)
    assert highs.reconciled(arrays, first, second).proof == "two runs"
    # So much is no rounding, and whole variables have none.
    for wrong, integer in ((1e-5, False), (1.0, True)):
        beside = replace(arrays, integer=np.full(12, integer))
        better = replace(second, x=np.where(np.arange(12) == 1, -wrong, 0.0), bound=-wrong)
        with pytest.warns(SolverDisagreement):
            assert highs.reconciled(beside, first, better).bound == -wrong


def test_other_solvers_are_checked_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(external, "run", lambda model, arrays, *_: (worse(arrays), "scip", "9"))
    assert solve(knapsack(12, 3), solver="scip").objective == 0.0
    with pytest.warns(SolverDisagreement):
        assert solve(knapsack(12, 3), solver="scip", verify=True).objective == BEST


def test_infeasible_starts_do_no_harm() -> None:
    arrays = program()
    wrong = replace(worse(arrays), x=np.ones(arrays.num_cols), bound=arrays.objective(np.ones(arrays.num_cols)))
    second = Session(verify=False)._second_way(arrays, wrong.x)
    assert second.bound == pytest.approx(BEST)


# --- the run over all problems --------------------------------------------------------------------


def test_the_cases_are_all_problems_whose_models_have_whole_variables() -> None:
    for case, problem in itertools.zip_longest(CASES, [case.problem for case in CASES]):
        assert case.problem == problem
        instances = [instance for instance, _ in draw(case, 4, 1)]
        assert len(instances) == 4
        assert any(formulations.translate(formulations.build(one)).is_mip for one in instances), case.name


def test_draws_repeat_and_have_ties() -> None:
    case = next(case for case in CASES if case.problem == "aryl.reclaim")
    first, again = (list(draw(case, 30, 5)) for _ in range(2))
    assert [one.digest for one, _ in first] == [one.digest for one, _ in again]
    assert sum(tied for _, tied in first) > 10
    assert any(len({row.tobytes() for row in one.hosts}) < one.num_jobs for one, _ in first if isinstance(one, Reclaim))


def test_a_wrong_optimum_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    case = next(case for case in CASES if case.problem == "aryl.reclaim")
    row, differences = run(case, 12, 3)
    assert (row.instances, row.wrong, row.other_wrong, differences) == (12, 0, 0, [])
    honest = formulations.solve

    def wrong(instance: Any, **options: Any) -> Any:
        found = honest(instance, **options)
        if options.get("solver") == "scip" or found.objective is None:
            return found
        # Made as no solution can be made: its own check would refuse it.
        lying = copy.copy(found)
        object.__setattr__(lying, "bound", found.bound + 1)
        return lying

    monkeypatch.setattr(formulations, "solve", wrong)
    row, differences = run(case, 12, 3, tmp_path)
    assert row.wrong == len(differences) > 0
    assert "solve is wrong: a plan is worth" in differences[0]
    assert list(tmp_path.glob("aryl.reclaim-*.json"))
    counted = Row("one")
    assert "is wrong" in compare(six_servers(), counted)
    assert counted.wrong == 1


def test_arrays_without_presolve_serve_where_scip_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = formulations.solve

    def without_scip(instance: Any, **options: Any) -> Any:
        if options.get("solver") == "scip":
            raise formulations.SolverError("scip: none")
        return honest(instance, **options)

    monkeypatch.setattr(formulations, "solve", without_scip)
    row = Row("one")
    assert compare(six_servers(), row) == ""
    assert (row.without_scip, row.instances, row.open) == (1, 1, 0)


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--count", "4", "--seed", "2", "--only", "aryl.two_job", "afs.two_job"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:]] == ["aryl.two_job", "afs.two_job", "all"]
    assert lines[-1].split("|")[2].strip() == "4"
