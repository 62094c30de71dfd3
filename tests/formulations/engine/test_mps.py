"""Programs as MPS: whoever reads them has the same program, to the last digit."""

import random
from pathlib import Path
from urllib.parse import unquote

import highspy
import numpy as np
import pyomo.environ as pyo
import pytest

from formulations.engine.linear import LinearProgram, ModelError, translate
from formulations.engine.mps import mps_of, named
from formulations.engine.solving import build
from validation import CATALOGUE


def written(model: pyo.ConcreteModel, file: Path) -> LinearProgram:
    program = translate(model)
    file.write_text("".join(f"{line}\n" for line in mps_of(model, program, name="one")), encoding="ascii")
    return program


def read(file: Path) -> highspy.HighsLp:
    highs = highspy.Highs()
    highs.silent()
    assert highs.readModel(str(file)) == highspy.HighsStatus.kOk
    return highs.getLp()


def assert_same(program: LinearProgram, file: Path, rows: np.ndarray | None = None) -> None:
    """The file has all numbers of the program, and of its rows those that are named."""
    found = read(file)
    rows = np.ones(program.num_rows, bool) if rows is None else rows
    columns = [program.column_name(j) for j in range(program.num_cols)]
    assert [unquote(name) for name in found.col_names_] == columns
    assert [unquote(name) for name in found.row_names_] == [
        name for name, kept in zip(program.row_names(), rows, strict=True) if kept
    ]
    assert (found.sense_ == highspy.ObjSense.kMinimize) == (program.sense == "min")
    assert found.offset_ == program.offset
    for values, expected in (
        (found.col_cost_, program.cost),
        (found.col_lower_, program.col_lower),
        (found.col_upper_, program.col_upper),
        (found.row_lower_, program.row_lower[rows]),
        (found.row_upper_, program.row_upper[rows]),
    ):
        assert np.array_equal(np.array(values), expected)
    whole = [one != highspy.HighsVarType.kContinuous for one in found.integrality_] or [False] * program.num_cols
    assert whole == program.integer.tolist()
    order = np.argsort(program.index, kind="stable")
    kept = rows[np.repeat(np.arange(program.num_rows), np.diff(program.indptr))[order]]
    place = np.cumsum(rows) - 1
    row = place[np.repeat(np.arange(program.num_rows), np.diff(program.indptr))[order]]
    assert np.array_equal(np.array(found.a_matrix_.value_), program.value[order][kept])
    assert np.array_equal(np.array(found.a_matrix_.index_), row[kept])


def number(drawn: random.Random) -> float:
    """Whole numbers, numbers of many digits, and of many sizes."""
    return drawn.choice(
        [
            float(drawn.randint(-9, 9)),
            drawn.uniform(-1, 1),
            drawn.choice([-1, 1]) * 10 ** drawn.uniform(-2, 3),
            drawn.choice([1 / 3, 0.1 + 0.2, 2.0**20 + 2.0**-10]),
        ]
    )


def limits(drawn: random.Random) -> tuple[float | None, float | None]:
    low, high = sorted([number(drawn), number(drawn)])
    most = abs(high)
    return drawn.choice([(low, high), (low, None), (None, high), (None, None), (low, low), (0.0, most), (0.0, 1.0)])


def drawn_model(seed: int) -> pyo.ConcreteModel:
    drawn = random.Random(seed)
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(drawn.randint(1, 6)))
    for variable in model.x.values():
        low, high = limits(drawn)
        if drawn.random() < 0.5:
            variable.domain = drawn.choice([pyo.Integers, pyo.Binary])
            low, high = (None if one is None else float(round(one)) for one in (low, high))
        if variable.domain is not pyo.Binary:
            variable.setlb(low)
            variable.setub(high)
    model.rows = pyo.ConstraintList()
    for _ in range(drawn.randint(0, 5)):
        body = sum(
            (number(drawn) or 1.0) * one for one in drawn.sample(list(model.x.values()), drawn.randint(1, len(model.x)))
        )
        low, high = limits(drawn)
        # Two limits that MPS can hold, which it need not of any two numbers.
        if low is not None and high is not None and low < high:
            low, high = float(round(low)) - 1, float(round(high)) + 1
        if low is not None or high is not None:
            model.rows.add((low, body, high) if low != high else body == low)
    cost = sum(number(drawn) * one for one in model.x.values()) + drawn.choice([0.0, number(drawn)])
    model.goal = pyo.Objective(expr=cost, sense=drawn.choice([pyo.minimize, pyo.maximize]))
    return model


def test_drawn_programs_are_read_back_as_they_are(tmp_path: Path) -> None:
    ranges = 0
    for seed in range(400):
        model = drawn_model(seed)
        program = written(model, tmp_path / "one.mps")
        ranges += "RANGES" in (tmp_path / "one.mps").read_text().splitlines()
        assert_same(program, tmp_path / "one.mps")
    assert ranges > 50


@pytest.mark.parametrize("problem", CATALOGUE)
def test_the_program_of_every_problem_is_read_back_as_it_is(problem: str, tmp_path: Path) -> None:
    entry = CATALOGUE[problem]
    for seed in range(2):
        instance = entry.generate(seed, **{entry.size: entry.sizes[0]})
        assert_same(written(build(instance), tmp_path / "one.mps"), tmp_path / "one.mps")


def test_scip_has_the_same_optimum(tmp_path: Path) -> None:
    scip = pytest.importorskip("pyscipopt", reason="PySCIPOpt is not installed")
    compared = 0
    for problem in (
        "aryl.reclaim",
        "elasticflow.best_effort",
        "gavel.makespan",
        "synergy.placement",
        "afs.gpu_placement",
    ):
        entry = CATALOGUE[problem]
        model = build(entry.generate(3, **{entry.size: entry.sizes[0]}))
        program = written(model, tmp_path / "one.mps")
        highs = highspy.Highs()
        highs.silent()
        highs.readModel(str(tmp_path / "one.mps"))
        highs.run()
        other = scip.Model()
        other.hideOutput()
        other.readProblem(str(tmp_path / "one.mps"))
        other.optimize()
        assert other.getObjectiveSense() == f"{program.sense}imize"
        assert other.getObjVal() == pytest.approx(highs.getObjectiveValue(), rel=1e-6, abs=1e-6)
        compared += 1
    assert compared == 5


def test_names_that_mps_cannot_hold_are_told(tmp_path: Path) -> None:
    model = pyo.ConcreteModel()
    names = ["two words", "%41", "größe", "*", "$x", "rhs", "a,b", "'MARKER'", "-1", "tab\there"]
    model.x = pyo.Var(names, bounds=(0, 2))
    model.add_component("BOUNDS", pyo.Constraint(expr=sum(model.x.values()) <= 3.5))
    model.add_component("$", pyo.Var(domain=pyo.Integers, bounds=(-3, 4)))
    model.goal = pyo.Objective(expr=sum(model.x.values()) + model.component("$"), sense=pyo.maximize)
    program = written(model, tmp_path / "one.mps")
    assert_same(program, tmp_path / "one.mps")
    text = (tmp_path / "one.mps").read_text()
    assert text.startswith("* names: %XX")
    assert " L %42OUNDS\n" in text
    assert " UP BOUND x[rhs] 2\n" in text
    plain = pyo.ConcreteModel()
    plain.x = pyo.Var()
    plain.goal = pyo.Objective(expr=plain.x)
    written(plain, tmp_path / "plain.mps")
    assert "%XX" not in (tmp_path / "plain.mps").read_text()


def test_names_are_different_whatever_they_were() -> None:
    assert named(["a", "b"]) == ["a", "b"]
    assert named(["a", "a"]) == ["a#0", "a#1"]
    for word in ("rows", "ENDATA", "*a", "$"):
        (found,) = named([word])
        assert found[0] == "%"
        assert unquote(found) == word


def test_a_row_without_limits_is_left_out_and_told(tmp_path: Path) -> None:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, 1))
    model.free = pyo.Constraint(expr=(None, 2 * model.x, np.inf))
    model.row = pyo.Constraint(expr=3 * model.x <= 2)
    model.goal = pyo.Objective(expr=model.x)
    program = written(model, tmp_path / "one.mps")
    assert "* 1 rows without limits are left out" in (tmp_path / "one.mps").read_text()
    assert_same(program, tmp_path / "one.mps", np.isfinite(program.row_upper))


def test_limits_that_mps_cannot_hold_are_refused() -> None:
    model = pyo.ConcreteModel()
    model.x = pyo.Var()
    model.row = pyo.Constraint(expr=(-0.8598523432019771, model.x, 0.7946222016657684))
    model.goal = pyo.Objective(expr=model.x)
    with pytest.raises(
        ModelError, match=r"constraint 'row': MPS cannot hold its two limits, -0\.8598523432019771 and 0\.79"
    ):
        list(mps_of(model, translate(model), name="one"))
