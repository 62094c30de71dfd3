"""CP-SAT in a process of its own: whole programs against brute force in fractions, refusals, limits, interruptions."""

import itertools
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

import formulations
from formulations import LinearProgram, ModelError, SolverError, SolverNotFound, solve, translate
from formulations.engine import cpsat, external
from formulations.engine.options import Options
from instances.base import TOLERANCE
from instances.gavel.max_min_fairness import three_jobs
from validation.catalogue import CATALOGUE

from .small_models import INF, Model, best_subset, knapsack, six_servers

pytestmark = pytest.mark.skipif(not cpsat.installed(), reason="OR-Tools comes with the test extra")


def whole(change: Any = None) -> Model:
    """Two whole variables up to ten."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, 10), domain=pyo.Integers)
    model.y = pyo.Var(bounds=(0, 10), domain=pyo.Integers)
    model.goal = pyo.Objective(expr=model.x + 2 * model.y, sense=pyo.maximize)
    if change is not None:
        model.c = pyo.Constraint(expr=change(model))
    return model


def drawn(seed: int) -> LinearProgram:
    """A small program of whole variables, with coefficients that are thirds, tenths, halves or whole."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 5)), int(rng.integers(1, 5))
    unit = float(rng.choice([1.0, 0.5, 0.1, 1 / 3, 2.0**-12]))
    value = unit * rng.integers(-9, 10, (m, n))
    lower = rng.integers(-3, 1, n).astype(float)
    upper = lower + rng.integers(0, 4, n)
    at = value @ rng.integers(lower, upper + 1)
    return LinearProgram(
        sense=str(rng.choice(["min", "max"])),  # type: ignore[arg-type]
        offset=float(rng.integers(-5, 6)),
        cost=rng.standard_normal(n) * 10.0 ** rng.integers(-3, 4, n) if seed % 2 else rng.integers(-9, 10, n) + 0.0,
        col_lower=lower,
        col_upper=upper,
        integer=np.ones(n, bool),
        indptr=np.arange(0, n * m + 1, n, dtype=np.int32),
        index=np.tile(np.arange(n, dtype=np.int32), m),
        value=value.ravel(),
        row_lower=np.where(rng.random(m) < 0.5, -INF, at - unit * rng.integers(0, 4, m)),
        row_upper=np.where(rng.random(m) < 0.3, INF, at + unit * rng.integers(0, 4, m)),
    )


def points(program: LinearProgram, slack: float) -> list[Fraction]:
    """Objectives of all points whose rows hold but for ``slack`` of their largest number, in fractions."""
    found = []
    ranges = [range(int(low), int(high) + 1) for low, high in zip(program.col_lower, program.col_upper, strict=True)]
    for x in itertools.product(*ranges):
        for row in range(program.num_rows):
            span = slice(program.indptr[row], program.indptr[row + 1])
            entries = [(Fraction(c), x[j]) for c, j in zip(program.value[span], program.index[span], strict=True)]
            total = sum((c * one for c, one in entries), Fraction())
            low, high = program.row_lower[row], program.row_upper[row]
            size = max(abs(one) for one in (*program.value[span], low, high) if math.isfinite(one))
            beyond = Fraction(slack) * Fraction(float(size))
            if (high < INF and total > Fraction(high) + beyond) or (low > -INF and total < Fraction(low) - beyond):
                break
        else:
            found.append(
                Fraction(program.offset)
                + sum((Fraction(c) * one for c, one in zip(program.cost, x, strict=True)), Fraction())
            )
    return found


def test_all_points_are_those_of_the_program_and_no_value_is_beyond_the_bound() -> None:
    """The least of ``cost @ x`` over the whole program, by hand, gives a bound of all points in fractions."""
    for seed in range(60):
        program = drawn(seed)
        given = cpsat.whole(program)
        totals = [
            sum(c * one for c, one in zip(given.cost, x, strict=True))
            for x in itertools.product(*(range(low, high + 1) for low, high in given.columns))
            if all(
                low <= sum(c * x[j] for c, j in zip(coefficients, columns, strict=True)) <= high
                for columns, coefficients, low, high in given.rows
            )
        ]
        judged, widest = points(program, 0.0), points(program, TOLERANCE)
        assert len(judged) <= len(totals) == len(widest)
        if not judged:
            continue
        best = min(widest) if program.sense == "min" else max(widest)
        bound = given.bound(min(totals), program.sense)
        assert Fraction(bound) <= best if program.sense == "min" else Fraction(bound) >= best
        assert bound == pytest.approx(float(best), rel=1e-9, abs=1e-9)


def test_small_programs_are_solved_as_brute_force_does() -> None:
    statuses = set()
    for seed in range(6):
        program = drawn(seed)
        model, program = external._model_of(program)
        found = points(program, TOLERANCE)
        solution = solve(model, solver="cp-sat")
        statuses.add(solution.status)
        assert solution.solver == "cp-sat"
        assert solution.proof == "one run"
        if not found:
            assert solution.status == "infeasible"
            continue
        best = float(min(found) if program.sense == "min" else max(found))
        assert solution.status == "optimal"
        assert solution.objective == pytest.approx(best, rel=1e-9, abs=1e-9)
        assert solution.bound == pytest.approx(best, rel=1e-9, abs=1e-9)
    assert "optimal" in statuses


def test_costs_of_more_than_64_bits_are_rounded_and_the_bound_allows_for_it() -> None:
    rng = np.random.default_rng(0)
    model = knapsack(30, 3)
    cost = rng.random(30) * 10.0 ** rng.integers(-4, 5, 30)
    model.goal.set_value(formulations.weighted_sum(cost, list(model.x.values())))
    given = cpsat.whole(translate(model))
    assert given.slack > 0
    assert sum(map(abs, given.cost)) <= cpsat.LARGEST
    x = rng.integers(0, 2, (200, 30))
    for point in x.tolist():
        exact = -sum((Fraction(float(c)) * one for c, one in zip(cost, point, strict=True)), Fraction())
        rounded = sum(c * one for c, one in zip(given.cost, point, strict=True)) / given.scale + given.offset
        assert abs(exact - rounded) <= given.slack < abs(exact) / 10**12
    theirs, ours = solve(model, solver="cp-sat"), solve(model)
    assert theirs.status == ours.status == "optimal"
    assert theirs.objective == pytest.approx(ours.objective)


def no_bound() -> Model:
    model = whole()
    model.y.setub(None)
    return model


def continuous() -> Model:
    # Half of a whole number where the row is tight, so that it need not be whole in any best point.
    model = whole(lambda m: m.x + 2 * m.y <= 7)
    model.y.domain = pyo.Reals
    return model


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        (continuous(), r"^variable 'y' is continuous: cp-sat takes whole variables only$"),
        (no_bound(), r"^variable 'y' has no upper bound: cp-sat takes whole numbers of 64 bits$"),
        (whole(lambda m: 1e14 * m.x + 1e-7 * m.y <= 3e14), r"^constraint 'c': its numbers are too large for cp-sat"),
        (formulations.build(three_jobs()), r"^variable 'X\[0,0\]' is continuous"),
    ],
)
def test_what_it_does_not_take_is_refused_by_name(model: Model, complaint: str) -> None:
    with pytest.raises(ModelError, match=complaint):
        solve(model, solver="cp-sat")


@pytest.mark.parametrize(
    ("model", "status", "value"),
    [
        (whole(), "optimal", 30.0),
        (whole(lambda m: m.x + m.y <= 7.5), "optimal", 14.0),
        (whole(lambda m: 0.1 * m.x + 0.2 * m.y <= 0.3), "optimal", 3.0),
        (whole(lambda m: 2 * m.x - 2 * m.y == 1), "infeasible", None),
        (whole(lambda m: m.x + m.y >= 21), "infeasible", None),
    ],
)
def test_statuses(model: Model, status: str, value: float | None) -> None:
    solution = solve(model, solver="cp-sat")
    assert (solution.status, solution.objective) == (status, value)
    assert solution.bound == (-INF if value is None else value)
    assert solution.solver_version[0].isdigit()


def test_crossed_bounds_fixed_variables_and_no_objective() -> None:
    model = whole(lambda m: m.x + m.y <= 7)
    model.y.fix(2.5)
    assert solve(model, solver="cp-sat").objective == 4 + 5
    model.y.unfix()
    model.x.setlb(11)
    crossed = solve(model, solver="cp-sat")
    assert (crossed.status, crossed.proof) == ("infeasible", "argument")
    model.x.setlb(0)
    model.goal.set_value(3.0)
    solution = solve(model, solver="cp-sat")
    assert (solution.status, solution.objective, solution.bound) == ("optimal", 3.0, 3.0)


def test_threads_seed_and_second_way() -> None:
    solution = solve(knapsack(12, 3), solver="cp-sat", threads=2, seed=7, verify=True)
    assert (solution.status, solution.proof) == ("optimal", "two runs")
    assert solution.objective == best_subset(12, 3)


def test_a_stopped_search_claims_no_bound_that_it_has_not_proven() -> None:
    """Before there is a bound the response of CP-SAT says 0, beyond the optimum where values are negative."""
    model = knapsack(300, 40)
    model.goal.set_value(-model.goal.expr)
    model.goal.sense = pyo.minimize
    solution = solve(model, solver="cp-sat", time_limit=0.05)
    assert solution.status == "unknown"
    assert solution.bound == -INF
    stopped = solve(model, solver="cp-sat", time_limit=3.0)
    assert stopped.status in ("unknown", "feasible")
    assert stopped.bound < (0 if stopped.objective is None else stopped.objective)


def test_a_gap_that_was_asked_for_is_no_proof() -> None:
    solution = solve(knapsack(60, 10), solver="cp-sat", mip_gap=0.1)
    assert solution.status == "feasible"
    assert 0 < solution.gap <= 0.1


@pytest.mark.parametrize("problem", ["aryl.placement", "afs.network_packing", "synergy.tuning"])
def test_instances_and_their_starts(problem: str) -> None:
    entry = CATALOGUE[problem]
    instance = entry.generate(1, **{entry.size: entry.sizes[0]})
    ours, theirs = solve(instance), solve(instance, solver="cp-sat")
    assert theirs.status == ours.status == "optimal"
    assert theirs.objective == pytest.approx(ours.objective, rel=1e-6)
    if formulations.formulation(problem).write is not None:
        assert solve(instance, solver="cp-sat", start=theirs.plan).objective == pytest.approx(ours.objective, rel=1e-6)


@pytest.mark.parametrize("problem", ["aryl.reclaim", "afs.gpu_placement"])
def test_variables_that_may_as_well_be_whole_are(problem: str) -> None:
    entry = CATALOGUE[problem]
    for seed in range(2):
        instance = entry.generate(seed, **{entry.size: entry.sizes[0]})
        assert not translate(formulations.build(instance)).integer.all()
        ours, theirs = solve(instance), solve(instance, solver="cp-sat")
        assert theirs.status == "optimal"
        assert theirs.objective == pytest.approx(ours.objective, rel=1e-9)


def test_it_verifies_what_highs_has_found() -> None:
    placement, allocation = CATALOGUE["aryl.placement"], CATALOGUE["aryl.base_allocation"]
    instance = placement.generate(1, **{placement.size: placement.sizes[0]})
    solution = solve(instance)
    found = formulations.verify(instance, solution, solver="cp-sat")
    assert (found.verdict, found.way, found.status) == ("confirmed", "second search", "optimal")
    assert found.objective == pytest.approx(solution.objective)
    wrong = replace(solution, objective=solution.objective + 1, bound=solution.bound + 1)
    assert formulations.verify(instance, wrong, solver="cp-sat").verdict == "contradicted"
    other = allocation.generate(1, **{allocation.size: allocation.sizes[0]})
    found = formulations.verify(other, solve(other), solver="cp-sat")
    assert found.verdict == "open"
    assert "is continuous: cp-sat takes whole variables only" in found.message
    # Of a problem whose other procedure checks it where no solver is named.
    filled = CATALOGUE["gavel.hierarchical_fairness"].generate(1, num_jobs=2)
    found = formulations.verify(filled, solve(filled), solver="cp-sat")
    assert (found.verdict, found.way) == ("open", "second search")
    model = knapsack(12, 3)
    assert formulations.verify(model, solve(model), solver="cp-sat").verdict == "confirmed"


def test_a_start_is_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def answer(question: dict[str, Any], seconds: float | None) -> dict[str, Any]:
        asked.append(question)
        return {"status": "OPTIMAL", "x": question["hint"], "bound": sum(question["cost"])}

    monkeypatch.setattr(cpsat, "_answer", answer)
    program = translate(formulations.build(six_servers()))
    program = LinearProgram(**{**vars(program), "integer": np.ones(program.num_cols, bool)})
    found, _ = cpsat.ask(program, Options(solver="cp-sat"), INF, np.full(program.num_cols, 1.0))
    assert asked[0]["hint"] == [1] * program.num_cols
    assert found["values"].tolist() == [1.0] * program.num_cols


def test_a_point_that_breaks_the_rows_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpsat, "_answer", lambda *_: {"status": "OPTIMAL", "x": [10, 10], "bound": -30})
    solution = solve(whole(lambda m: m.x + m.y <= 7), solver="cp-sat")
    assert (solution.status, solution.objective, solution.bound) == ("unknown", None, 30.0)
    assert "violates the rows" in solution.message


def test_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ortools", None)
    with pytest.raises(
        SolverNotFound, match=r"^solver 'cp-sat' is not installed: pip install ortools, or use 'highs'$"
    ):
        solve(whole(), solver="cp-sat")


def test_a_process_that_fails_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(SolverError, match=r"^cp-sat: its process ended with code"):
        solve(whole(), solver="cp-sat")


def children() -> set[str]:
    """Processes of CP-SAT that this one has started."""
    found = set()
    for tasks in Path("/proc/self/task").iterdir():
        for child in (tasks / "children").read_text().split():
            if b"cpsat_process" in Path("/proc", child, "cmdline").read_bytes():
                found.add(child)
    return found


def test_an_interruption_ends_its_process() -> None:
    def interrupt() -> None:
        while not children():
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGUSR1)

    # Where tests run in the background, the signal of the keyboard is ignored.
    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            solve(knapsack(300, 40), solver="cp-sat", time_limit=60)
    finally:
        thread.join(60)
        signal.signal(signal.SIGUSR1, before)
    # Where it had begun and its pipe had not yet been kept, it ends by itself, as the pipe does.
    for _ in range(500):
        if not children():
            break
        time.sleep(0.02)
    assert not children()


def test_a_process_past_its_limit_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpsat, "PATIENCE", (-10.0, -10.0))
    solution = solve(knapsack(300, 40), solver="cp-sat", time_limit=1)
    assert (solution.status, solution.bound) == ("unknown", INF)
    assert "stopped past its time limit" in solution.message
    assert not children()


def test_its_process_ends_with_the_one_that_asked() -> None:
    program = Path(cpsat.__file__).with_name("cpsat_process.py")
    command = [sys.executable, "-P", str(program)]
    asked = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert asked.stdin is not None
    # A search that would not end soon.
    model = cpsat.whole(translate(knapsack(300, 40)))
    question = {"columns": model.columns, "rows": model.rows, "cost": model.cost, "hint": None, "end": None}
    question |= {"gap": 0.0, "threads": 1, "seed": 0}
    asked.stdin.write((json.dumps(question) + "\n").encode())
    asked.stdin.flush()
    with pytest.raises(subprocess.TimeoutExpired):
        asked.wait(2.0)
    asked.stdin.close()
    assert asked.wait(30.0) == 1
