"""Concave hulls of points, such as curves of throughput."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

__all__ = ["upper_hull"]


def upper_hull(x: Sequence[float] | NDArray[Any], y: Sequence[float] | NDArray[Any]) -> list[int]:
    """Return which points are the corners of the least concave function that is nowhere below any.

    Parameters
    ----------
    x : (n,) float
        Ascending.
    y : (n,) float
    """
    corners: list[int] = []
    for new in range(len(x)):
        while len(corners) > 1:
            before, last = corners[-2:]
            if (y[last] - y[before]) * (x[new] - x[last]) > (y[new] - y[last]) * (x[last] - x[before]):
                break
            corners.pop()
        corners.append(new)
    return corners
