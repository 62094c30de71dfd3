"""Sums, products and powers that are the same on every machine.

BLAS adds up in an order, and with roundings, of the kernel that it has for a processor, and NumPy's powers are rounded
by the instructions that a processor has.  What is to be the same to the last digit is computed here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["dot", "power", "product", "total"]


def total(values: Any, axis: int | None = None) -> Any:
    """Return the exact sum of whole numbers or truth values, which may be beyond 64 bits.

    Returns
    -------
    int, or array of int64, or of Python's numbers where 64 bits may not be enough
    """
    values = np.asarray(values)
    if values.dtype.kind == "b":
        values = values.astype(np.int64)
    count = values.size if axis is None else values.shape[axis]
    summed = (values if _small(count * _greatest(values)) else values.astype(object)).sum(axis=axis)
    return int(summed) if np.ndim(summed) == 0 else summed


def product(left: Any, right: Any) -> Any:
    """Return the exact ``left @ right`` of whole numbers or truth values, which may be beyond 64 bits.

    Returns
    -------
    int, or array of int64, or of Python's numbers where 64 bits may not be enough
    """
    left, right = np.asarray(left), np.asarray(right)
    kind = np.int64 if _small(left.shape[-1] * _greatest(left) * _greatest(right)) else object
    multiplied = left.astype(kind) @ right.astype(kind)
    return int(multiplied) if np.ndim(multiplied) == 0 else multiplied


def _greatest(values: NDArray[Any]) -> int:
    """Greatest absolute value of whole numbers."""
    return max(int(values.max()), -int(values.min())) if values.size else 0


def _small(bound: int) -> bool:
    """Return whether sums up to ``bound`` fit into 64 bits."""
    return bound < 2**63


def dot(left: ArrayLike, right: ArrayLike) -> Any:
    """Return ``left @ right`` of vectors or matrices, added up in NumPy's order and not in that of a BLAS kernel.

    Returns
    -------
    float, or array of float
    """
    left, right = np.asarray(left, float), np.asarray(right, float)
    rows = left if right.ndim == 1 else left[..., None, :]
    return np.add.reduce(np.multiply(rows, right.T, order="C"), axis=-1)


def power(base: ArrayLike, exponent: ArrayLike) -> Any:
    """Return ``base ** exponent``, elementwise by the C library's ``pow``.

    Returns
    -------
    array of float
    """
    # Unlike ``power``, it has no loops for single processors: each element is the C library's.
    return np.float_power(base, exponent)
