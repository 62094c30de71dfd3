"""The time for a solve, all stages together.

A solve says once how long it may take (:func:`within`).  Whatever runs in it looks at what is left: solver runs
get no more, and building and translating a model end when nothing is left.  So procedures of many programs need not
pass the time on.
"""

from __future__ import annotations

import logging
import math
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

__all__ = ["TimeIsUp", "building", "check", "left", "members", "ticking", "within"]

SEVERAL = 100
"""Members of an index set between two looks at the clock."""

_end: ContextVar[float] = ContextVar("end of the time for the solve", default=math.inf)


class TimeIsUp(BaseException):
    """There is no time left for what is under way; raised and caught within a solve.

    It is no error, and nothing on the way that takes errors in its stride must take it.
    """


@contextmanager
def within(seconds: float | None) -> Iterator[None]:
    """Give what is in here so many seconds, or those left to what is around it."""
    end = math.inf if seconds is None else time.perf_counter() + seconds
    token = _end.set(min(end, _end.get()))
    try:
        yield
    finally:
        _end.reset(token)


def left() -> float:
    """Seconds that are left; infinite where nobody has set a limit."""
    return _end.get() - time.perf_counter()


def is_up() -> bool:
    """Whether there is no time left."""
    return left() <= 0


def check() -> None:
    """End what is under way if there is no time left.

    Raises
    ------
    TimeIsUp
    """
    if is_up():
        raise TimeIsUp


T = TypeVar("T")


def ticking(items: Iterable[T], every: int = 1000) -> Iterator[T]:
    """Yield the items, with a look at the clock before the first, and then now and again.

    Raises
    ------
    TimeIsUp
    """
    for number, item in enumerate(items):
        if number % every == 0:
            check()
        yield item


_building: ContextVar[bool] = ContextVar("whether a model is built in time", default=False)


@contextmanager
def building() -> Iterator[None]:
    """End what is built in here over :mod:`formulations.engine.sets` when the time is over.

    Nor does Pyomo log that a component could not be made where only time was up.
    """
    if left() == math.inf:
        yield
        return
    # A filter of the first would not see what is logged by the name of the second.
    loggers = [logging.getLogger(name) for name in ("pyomo.core", "pyomo.core.util")]
    for logger in loggers:
        logger.addFilter(_is_error)
    token = _building.set(True)
    try:
        yield
    finally:
        _building.reset(token)
        for logger in loggers:
            logger.removeFilter(_is_error)


def members(items: Iterable[T]) -> Iterator[T]:
    """Iterate over an index set, while a model is built with a look at the clock now and again."""
    return ticking(items, every=SEVERAL) if _building.get() else iter(items)


def _is_error(record: logging.LogRecord) -> bool:
    return not isinstance(sys.exc_info()[1], TimeIsUp)
