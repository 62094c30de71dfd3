"""Numerically hard programs: no claim is wrong without a word."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import formulations
from benchmarks import torture
from benchmarks.torture import FAMILIES, Program, doubted, draw, judge, model, optimum, tried


@pytest.mark.parametrize("family", FAMILIES)
def test_no_claim_is_wrong_without_a_word(family: str) -> None:
    tally = tried(family, 12, seed=11)
    assert tally.wrong == []
    assert sum(tally.outcomes.values()) == 12


@pytest.mark.parametrize("number", range(20))
def test_the_truth_is_that_of_a_grid(number: int) -> None:
    """Of whole programs, by trying every point."""
    rng = np.random.default_rng(number)
    program = torture.degenerate(rng, 3, 3)
    points = itertools.product(*(range(int(most) + 1) for most in program.most))
    costs = [
        sum(Fraction(c) * x for c, x in zip(program.cost, point, strict=True))
        for point in points
        if all(
            sum(a * x for a, x in zip(row, point, strict=True)) <= high
            for row, high in zip(program.rows, program.upper, strict=True)
        )
    ]
    assert optimum(program) == min(costs)


def test_the_truth_of_a_linear_program() -> None:
    """max x + y with 2x + y <= 3 and x + 3y <= 4 at (1, 1); without a point where 3x >= 4."""
    program = Program([-1, -1], [[2, 1], [1, 3]], [-np.inf] * 2, [3, 4], [9, 9], [False] * 2)
    assert optimum(program) == -2
    assert optimum(Program([1], [[3]], [4], [np.inf], [1], [False])) is None


@pytest.mark.parametrize(
    ("number", "seed", "why"),
    [(15, 0, "is missed by"), (26, 0, "is missed by")],
)
def test_a_claim_that_tolerances_made_is_doubted(number: int, seed: int, why: str) -> None:
    """Rows almost parallel: HiGHS's point meets them within 1e-7 only."""
    program = draw("almost parallel rows", seed, number)
    solution = formulations.solve(model(program))
    assert judge(program, solution)
    assert doubted(solution)
    assert why in solution.message


def test_a_second_search_has_another_tolerance() -> None:
    """Rows almost parallel: of two searches one calls infeasible what has a point, and is overruled."""
    program = draw("almost parallel rows", 0, 87)
    with pytest.warns(formulations.SolverDisagreement, match="another run, wrong"):
        solution = formulations.solve(model(program))
    assert judge(program, solution) == ""
    assert solution.objective == pytest.approx(float(optimum(program)))


def test_an_ordinary_model_is_not_doubted() -> None:
    program = Program([-3, -2], [[1, 1]], [-np.inf], [4], [3, 3], [True, False])
    solution = formulations.solve(model(program))
    assert (solution.status, solution.objective) == ("optimal", -11)
    assert not doubted(solution)
