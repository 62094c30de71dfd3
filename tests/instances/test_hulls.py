"""Concave hulls against what they are: of all concave functions above the points, the least."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from instances.hulls import upper_hull


@pytest.mark.parametrize("seed", range(200))
def test_corners_are_the_points_that_no_chord_is_above(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    x = np.cumsum(rng.integers(1, 4, n)).tolist()
    y = rng.integers(0, 5, n).tolist()
    corners = upper_hull(x, y)
    # A point is no corner where a chord of two others passes it or is above it.
    covered = {
        b
        for a in range(n)
        for b in range(a + 1, n)
        for c in range(b + 1, n)
        if Fraction(y[c] - y[a], x[c] - x[a]) * (x[b] - x[a]) + y[a] >= y[b]
    }
    assert corners == [point for point in range(n) if point not in covered]
    slopes = [Fraction(y[b] - y[a], x[b] - x[a]) for a, b in pairwise(corners)]
    assert slopes == sorted(slopes, reverse=True)
    assert len(set(slopes)) == len(slopes)
