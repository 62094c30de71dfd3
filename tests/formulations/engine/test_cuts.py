"""Cuts: none takes a whole point away, each misses the point that it was made for, and some need no tree."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import formulations
from formulations import LinearProgram
from formulations.engine.cuts import Separation
from formulations.engine.vipr import certificate_of
from instances.reference.vipr import check

from .test_vipr import WIDTH, drawn


def whole_points(program: LinearProgram) -> Iterator[tuple[int, ...]]:
    rows = [
        [(int(program.index[e]), Fraction(program.value[e])) for e in range(*program.indptr[i : i + 2])]
        for i in range(program.num_rows)
    ]
    limits = list(zip(program.row_lower.tolist(), program.row_upper.tolist(), strict=True))
    for point in itertools.product(range(WIDTH), repeat=program.num_cols):
        sums = [sum((a * point[j] for j, a in row), Fraction()) for row in rows]
        if all(low <= value <= high for value, (low, high) in zip(sums, limits, strict=True)):
            yield point


@pytest.mark.parametrize("seeds", [range(50), range(50, 100)])
def test_cuts_keep_every_whole_point(seeds: range) -> None:
    found = 0
    for seed in seeds:
        program = drawn(seed)
        bounds = [0] * program.num_cols, np.floor(program.col_upper).astype(int).tolist()
        relaxed = replace(program, integer=np.zeros(program.num_cols, bool))
        result = formulations.Session(verify=False).run(relaxed)
        if result.x is None:
            continue
        rng = np.random.default_rng(seed)
        # Multipliers of any kind make cuts that hold.
        inverse = [rng.choice([0, 0.5, 1 / 3, 0.7, 1, 1.25], program.num_rows) for _ in range(6)]
        points = list(whole_points(program))
        separation = Separation(program, program.cost, program.integer, *bounds)
        for cut in separation.cuts(result.x, rng.normal(size=program.num_rows), inverse, 20):
            assert sum(a * result.x[j] for j, a in cut.terms.items()) > cut.limit
            assert all(sum(a * point[j] for j, a in cut.terms.items()) <= cut.limit for point in points)
            found += 1
    assert found > 25


def pairs(columns: int) -> LinearProgram:
    """The most of some columns of which no two go together: all halves are a point of the relaxation."""
    both = list(itertools.combinations(range(columns), 2))
    return LinearProgram(
        sense="max",
        offset=0.0,
        cost=np.ones(columns),
        col_lower=np.zeros(columns),
        col_upper=np.ones(columns),
        integer=np.ones(columns, bool),
        indptr=np.arange(0, 2 * len(both) + 1, 2, dtype=np.int32),
        index=np.array(both, np.int32).ravel(),
        value=np.ones(2 * len(both)),
        row_lower=np.full(len(both), -math.inf),
        row_upper=np.ones(len(both)),
    )


def test_halves_and_covers_need_no_tree() -> None:
    three = certificate_of(pairs(3), np.array([1.0, 0, 0]))
    assert "{ asm }" in three.text
    # The cutoff alone is assumed, and what the bound refutes.
    assert three.text.count("{ asm }") == 2
    assert check(three.text.splitlines()).bound == 1
    knapsack = replace(
        pairs(3),
        indptr=np.array([0, 3], np.int32),
        index=np.arange(3, dtype=np.int32),
        value=np.array([5.0, 6, 7]),
        row_lower=np.array([-math.inf]),
        row_upper=np.array([10.0]),
    )
    cover = certificate_of(knapsack, np.array([1.0, 0, 0]))
    assert cover.text.count("{ asm }") == 2
    assert check(cover.text.splitlines()).bound == 1


def test_cuts_are_of_the_rows_and_bounds_that_they_say() -> None:
    """What a cut follows from adds up to its left side, exactly."""
    program = pairs(3)
    separation = Separation(program, program.cost, program.integer, [0] * 3, [1] * 3)
    (cut,) = separation.cuts(np.full(3, 0.5), np.zeros(3), [], 5)
    assert (cut.terms, cut.limit) == ({0: 1, 1: 1, 2: 1}, 1)
    assert cut.rows == dict.fromkeys(range(3), Fraction(1, 2))
    assert cut.bounds == {}
