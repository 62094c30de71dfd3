"""Every way in which a heuristic can break its ties, each decision anew."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from instances.base import Instance
from instances.schema import FloatArray, IntArray
from validation.testing.transform import take

__all__ = ["every_way", "renumbered"]

I = TypeVar("I", bound=Instance[Any])  # noqa: E741, an instance
T = TypeVar("T")


def renumbered(instance: I, keys: FloatArray | IntArray) -> Iterator[I]:
    """Yield the instance with its jobs in every order in which their (n,) keys do not fall: every way to break ties."""
    for order in itertools.permutations(range(len(keys))):
        if (np.diff(keys[list(order)]) >= 0).all():
            yield take(instance, "n", order)


def every_way(run: Callable[[Callable[[Sequence[int]], int]], T]) -> Iterator[T]:
    """Yield what ``run(ties)`` returns, for every way to break ties.

    Parameters
    ----------
    run : callable
        Calls a heuristic with a function ``ties``, which is given the tied candidates at each decision and returns
        one of them.  Nothing else may differ from one call to the next.

    Notes
    -----
    The runs are the leaves of a tree whose branches are the candidates; it is walked depth first, a run for each leaf.
    """
    paths: list[tuple[int, ...]] = [()]
    while paths:
        path = paths.pop()
        taken: list[int] = []

        def ties(candidates: Sequence[int], path: tuple[int, ...] = path, taken: list[int] = taken) -> int:
            turn = len(taken)
            if turn >= len(path):
                paths.extend((*taken, other) for other in reversed(range(1, len(candidates))))
            taken.append(path[turn] if turn < len(path) else 0)
            return candidates[taken[-1]]

        yield run(ties)
