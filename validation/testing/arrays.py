"""Arrays of small exact numbers, the building blocks of the strategies."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from validation.testing import st

__all__ = ["booleans", "counts", "integers", "quarters", "subsets", "whole_floats"]

EDGES = (8, 16, 24, 32, 64, 127, 128, 255, 256, 512, 1000, 32_767, 32_768, 65_536, 10**6, 2**31 - 1, 2**31, 10**10)
"""Numbers at which programs go wrong: multiples of a server's 8 GPUs, and the ends of narrow whole numbers."""


def counts(low: int, high: int) -> st.SearchStrategy[int]:
    """Return the strategy for a whole number from ``low`` to ``high``, often at an edge, shrinking towards ``low``."""
    within = [edge for edge in EDGES if low <= edge <= high]
    return st.integers(low, high) | st.sampled_from(within) if within else st.integers(low, high)


def integers(shape: int | tuple[int, ...], low: int, high: int) -> st.SearchStrategy[NDArray[np.int64]]:
    """Return the strategy for whole numbers from ``low`` to ``high``, shrinking towards ``low``."""
    return _arrays(np.int64, shape, counts(low, high))


def quarters(shape: int | tuple[int, ...], low: int, high: int) -> st.SearchStrategy[NDArray[np.float64]]:
    """Return the strategy for multiples of 1/4 from ``low`` to ``high``: exact in binary, and easy on the eye."""
    return integers(shape, 4 * low, 4 * high).map(lambda entries: entries / 4)


def whole_floats(shape: int | tuple[int, ...], low: int, high: int) -> st.SearchStrategy[NDArray[np.float64]]:
    """Return the strategy for floats that are whole numbers from ``low`` to ``high``."""
    return integers(shape, low, high).map(lambda entries: entries.astype(np.float64))


def booleans(shape: int | tuple[int, ...]) -> st.SearchStrategy[NDArray[np.bool_]]:
    """Return the strategy for truth values, shrinking towards False."""
    return _arrays(np.bool_, shape, st.booleans())


def subsets(items: list[Any]) -> st.SearchStrategy[list[Any]]:
    """Return the strategy for some of the items, in order, shrinking towards none."""
    return st.tuples(*(st.booleans() for _ in items)).map(
        lambda kept: [item for item, keep in zip(items, kept, strict=True) if keep]
    )


def _arrays(dtype: type[Any], shape: int | tuple[int, ...], elements: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    # With Hypothesis, not before.
    from hypothesis.extra import numpy as npst

    return npst.arrays(dtype, shape, elements=elements, fill=st.nothing())
