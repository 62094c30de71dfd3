"""Sums, products and powers that no machine changes."""

import math

import numpy as np
import pytest

from instances.arithmetic import dot, power


@pytest.mark.parametrize(
    ("left", "right"), [((5,), (5,)), ((4, 5), (5,)), ((5,), (5, 3)), ((4, 5), (5, 3)), ((0,), (0, 3))]
)
def test_a_product_is_that_of_algebra(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=left), rng.normal(size=right)
    assert dot(a, b).shape == (a @ b).shape
    np.testing.assert_allclose(dot(a, b), a @ b, rtol=1e-13, atol=1e-13)


def test_a_product_does_not_depend_on_how_its_numbers_lie_in_memory() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(40, 300)), rng.normal(size=(300, 7))
    assert (dot(np.asfortranarray(a), np.asfortranarray(b)) == dot(a, b)).all()
    assert (dot(a[0], b) == [dot(a[0], column) for column in b.T]).all()


def test_a_power_is_that_of_the_c_library() -> None:
    # Many, and at any strides: the loops of a processor differ from the C library in one power of twenty or so.
    rng = np.random.default_rng(3)
    bases, exponents = rng.uniform(0.1, 40, (1000, 1)), rng.uniform(-30, 30, (1000, 50))
    powers = list(map(math.pow, np.repeat(bases, 50).tolist(), exponents.ravel().tolist()))
    for given in (exponents, np.asfortranarray(exponents)):
        assert power(bases, given).ravel().tolist() == powers
    assert power(2, 10) == 1024.0
