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
    rng = np.random.default_rng(3)
    bases, exponents = rng.uniform(0.1, 10, (20, 1)), rng.uniform(-2, 2, (20, 5))
    powers = power(bases, exponents)
    for (row, column), exponent in np.ndenumerate(exponents):
        assert powers[row, column] == math.pow(float(bases[row, 0]), float(exponent))
    assert power(2, 10) == 1024.0
