"""Index sets that look at the clock while they hand out their members.

Pyomo makes one variable, row or parameter for each member of an index set, so a model over these sets ends when its
time is over, whichever component is under way.  Otherwise they are Pyomo's own: ``Set`` keeps the order of its
members, and ``A * B`` is their product.  Write ``pyo.Var(A * B)`` where Pyomo also takes ``pyo.Var(A, B)``, which would
be a product of Pyomo's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pyomo.core.base.set import FiniteScalarRangeSet, OrderedScalarSet, SetProduct_OrderedSet

from formulations.engine import clock

__all__ = ["Product", "RangeSet", "Set"]


class _Watched:
    """The part that the sets share."""

    # Not ``__iter__``, which Pyomo keeps for itself in derived sets.
    def _iter_impl(self) -> Iterator[Any]:
        return clock.members(super()._iter_impl())  # type: ignore[misc]

    def __mul__(self, other: Any) -> Product:
        return Product(self, other)


class Set(_Watched, OrderedScalarSet):  # type: ignore[misc]
    """Pyomo's ``Set``; it looks at the clock while it is filled, too, so ``initialize`` may be a generator."""

    def _update_impl(self, values: Iterable[Any]) -> None:
        super()._update_impl(clock.members(values))


class RangeSet(_Watched, FiniteScalarRangeSet):  # type: ignore[misc]
    """Pyomo's ``RangeSet`` of whole numbers, the last included."""


class Product(_Watched, SetProduct_OrderedSet):  # type: ignore[misc]
    """Product of two sets, in the order of the first."""
