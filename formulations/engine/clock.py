"""The time for a solve, all stages together.

A solve says once how long it may take (:func:`within`).  Whatever runs in it looks at what is left: solver runs
get no more, and building and translating a model end when nothing is left.  So procedures of many programs need not
pass the time on.
"""

from __future__ import annotations

import itertools
import logging
import math
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from pyomo.core.base.initializer import IndexedCallInitializer
from pyomo.core.base.set import FiniteSetData, SetOperator, _FiniteSetMixin

__all__ = ["TimeIsUp", "building", "check", "left", "ticking", "within"]

_end: ContextVar[float] = ContextVar("end of the time for the solve", default=math.inf)


class TimeIsUp(BaseException):
    """There is no time left for what is under way; raised and caught within a solve.

    It is no error, and nothing on the way that takes errors in its stride must take it.
    """


@contextmanager
def within(seconds: float | None) -> Iterator[None]:
    """What is in here has so many seconds, or what is left to that around it."""
    end = math.inf if seconds is None else time.perf_counter() + seconds
    token = _end.set(min(end, _end.get()))
    try:
        yield
    finally:
        _end.reset(token)


def left() -> float:
    """Seconds that are left; infinite where nobody has set a limit."""
    return _end.get() - time.perf_counter()


def check() -> None:
    """End what is under way if there is no time left.

    Raises
    ------
    TimeIsUp
    """
    if left() <= 0:
        raise TimeIsUp


T = TypeVar("T")


def ticking(items: Iterable[T], every: int = 1000) -> Iterator[T]:
    """The items, with a look at the clock before the first, and then now and again.

    Raises
    ------
    TimeIsUp
    """
    for number, item in enumerate(items):
        if number % every == 0:
            check()
        yield item


_members, _fill, _call = _FiniteSetMixin.__iter__, FiniteSetData.update, IndexedCallInitializer.__call__


_calls = itertools.count(1)
SEVERAL = 100
"""Calls of rules, and members of a set, between two looks at the clock."""


def _members_in_time(of: Any) -> Iterator[Any]:
    # Not by its length, for which some sets ask for their members.
    return ticking(_members(of), every=SEVERAL)


def _fill_in_time(of: Any, values: Any) -> None:
    _fill(of, values if isinstance(values, SetOperator) else ticking(values))


def _call_in_time(of: Any, block: Any, index: Any, **others: Any) -> Any:
    if next(_calls) % SEVERAL == 0:
        check()
    return _call(of, block, index, **others)


@contextmanager
def building() -> Iterator[None]:
    """What Pyomo makes in here ends when the time is over, wherever it is.

    All that takes long goes through three methods of Pyomo's, which look at the clock in here: a set hands out its
    members, for which variables, rows and parameters are made; it is filled with them; and a rule is called for one.
    Pyomo itself replaces the first where it makes templates.  Without a limit of time they are left as they are.  Nor
    does Pyomo log that a component could not be made where only time was up.
    """
    if left() == math.inf:
        yield
        return
    logger = logging.getLogger("pyomo.core")
    logger.addFilter(_is_error)
    _FiniteSetMixin.__iter__, FiniteSetData.update = _members_in_time, _fill_in_time
    IndexedCallInitializer.__call__ = _call_in_time
    try:
        yield
    finally:
        _FiniteSetMixin.__iter__, FiniteSetData.update = _members, _fill
        IndexedCallInitializer.__call__ = _call
        logger.removeFilter(_is_error)


def _is_error(record: logging.LogRecord) -> bool:
    return not isinstance(sys.exc_info()[1], TimeIsUp)
