"""Expressions and constraints as arrays, against the same written with dense arrays."""

import numpy as np
import pytest

from formulations.gavel.algebra import Linear, Relation, Subset
from instances.schema import FloatArray

NUM_COLUMNS = 5


def drawn(rng: np.random.Generator, rows: int, over: str | None = None) -> tuple[Linear, FloatArray]:
    """An expression for each of some rows, and the same as a dense matrix."""
    dense = rng.integers(-2, 3, (rows, NUM_COLUMNS)).astype(float)
    at = np.argwhere(rng.random(dense.shape) < 0.7)
    kept = np.zeros_like(dense)
    kept[tuple(at.T)] = dense[tuple(at.T)]
    return Linear(at[:, 0], at[:, 1], dense[tuple(at.T)], (rows,), over), kept


def dense(relation: Relation) -> FloatArray:
    indptr, columns, values = relation.matrix
    matrix = np.zeros((len(indptr) - 1, NUM_COLUMNS))
    for row in range(len(matrix)):
        here = slice(indptr[row], indptr[row + 1])
        assert len(set(columns[here])) == indptr[row + 1] - indptr[row], "a column stands twice in a row"
        matrix[row, columns[here]] = values[here]
    return matrix


@pytest.mark.parametrize("seed", range(20))
def test_relations_are_those_of_dense_arithmetic(seed: int) -> None:
    rng = np.random.default_rng(seed)
    (one, first), (two, second) = drawn(rng, 4, "JOBS"), drawn(rng, 4)
    (single, third) = drawn(rng, 1)
    single = single.sum()
    factors, numbers = rng.integers(1, 4, 4).astype(float), rng.integers(-3, 4, 4).astype(float)
    chosen = Subset("CHOSEN", np.array([0, 2]))

    relation = factors * one - 2.0 * two + numbers >= single
    assert (dense(relation) == factors[:, None] * first - 2 * second - third).all()
    assert (relation.over, (relation.lower == -numbers).all(), np.isinf(relation.upper).all()) == ("JOBS", True, True)

    relation = one[chosen] <= numbers[chosen] * single
    assert (dense(relation) == first[[0, 2]] - numbers[[0, 2], None] * third).all()
    assert (relation.over, (relation.upper == 0).all()) == ("CHOSEN", True)

    relation = (one + numbers).sum() == two.sum()
    assert (dense(relation) == first.sum(0) - second.sum(0)).all()
    assert relation.lower == relation.upper == -numbers.sum()
