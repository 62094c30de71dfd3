"""Instances next to an instance: one member more or less, or one number changed.

What a neighbour is follows from the declarations of the fields, so it needs no knowledge of the
problem.  Neighbours that would be no valid instances are passed over.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from instances.base import Instance, InstanceError
from instances.schema import Array, Ragged, Scalar, declarations
from validation.testing.transform import dimensions, take, without

__all__ = ["neighbour", "past_the_edge", "shrunk"]

I = TypeVar("I", bound=Instance[Any])  # noqa: E741, an instance

ATTEMPTS = 30
"""Random changes tried before giving up on finding a valid neighbour."""
EDGES = 6
"""Entries tried before giving up on finding one with an edge."""
VAIN = 0.25
"""What a field that was tried in vain counts, to one of which an edge was found."""
NEAR = 1e-7
"""How near to its edge a number that is no count comes, relative to itself: a hundred times what judges overlook."""
HALVINGS = 64
"""The most steps towards an edge."""


def neighbour(instance: I, rng: np.random.Generator, *, max_members: int, name: str = "") -> I | None:
    """Return a random valid neighbour; None if none is found.

    Parameters
    ----------
    instance : Instance
    rng : Generator
    max_members : int
        Most members that a dimension grows to.
    name : str
        The field that changes in one place; else any, or a member comes or goes.
    """
    for _ in range(ATTEMPTS):
        try:
            changed = _changed_in(instance, name, rng) if name else _random_change(instance, rng, max_members)
        except (InstanceError, OverflowError):
            continue
        if changed is not None and changed != instance:
            return changed
    return None


def _random_change(instance: I, rng: np.random.Generator, max_members: int) -> I | None:
    if rng.random() < 0.3:
        found = dimensions(instance)
        if not found:
            return None
        dim = found[rng.integers(len(found))]
        size = instance.dims[dim]
        member = int(rng.integers(size))
        if rng.random() < 0.5:
            return without(instance, dim, member) if size > 1 else None
        return take(instance, dim, [*range(size), member]) if size < max_members else None
    fields = [name for name in declarations(type(instance)) if getattr(instance, name) is not None]
    return _changed_in(instance, fields[rng.integers(len(fields))], rng)


def _changed_in(instance: I, name: str, rng: np.random.Generator) -> I | None:
    declared, value = declarations(type(instance))[name], getattr(instance, name)
    if isinstance(declared, Scalar):
        return _with(instance, name, _other_scalar(declared, value, rng))
    if not len(value):
        return None
    part = int(rng.integers(len(value))) if isinstance(declared, Ragged) else None
    array = value if part is None else value[part]
    if not array.size:
        return None
    changed = array.copy()
    at = tuple(int(rng.integers(length)) for length in array.shape)
    if declared.kind is str:
        changed[at] = declared.choices[rng.integers(len(declared.choices))]
    else:
        changed[at] = rng.choice(declared.choices) if declared.choices else _other_entry(array, at, rng)
    if part is not None:
        changed = tuple(changed if i == part else row for i, row in enumerate(value))
    return _with(instance, name, changed)


def past_the_edge(
    instance: I, keeps: Callable[[I], bool], rng: np.random.Generator, tried: dict[str, float]
) -> I | None:
    """Return the instance with one entry changed as little as ends what ``keeps`` says; None if none is found.

    With a plan and whether it breaks no rule, that is an instance whose capacity is one less than the plan takes,
    whose demand is one more than there is room for, or that forbids what the plan does.  A number that is no count
    misses its edge by ``NEAR`` at most.

    Parameters
    ----------
    instance : Instance
    keeps : callable
        What holds of the instance.
    rng : Generator
        Chooses the entry, and whether a number grows or falls.
    tried : dict
        How often each field was changed so far, to which this is added; the less, the likelier it is tried.
        What was in vain counts less, so that fields whose entries seldom matter get their edges, too.
    """
    fields = [name for name in declarations(type(instance)) if getattr(instance, name) is not None]
    weights = np.array([1 / (1 + tried.setdefault(name, 0.0)) for name in fields])
    for name in rng.choice(fields, EDGES, p=weights / weights.sum()).tolist():
        declared = declarations(type(instance))[name]
        if declared.kind in (int, float) and not getattr(declared, "index_of", ""):
            found = _past_the_edge(instance, name, declared, keeps, rng)
        else:
            found = neighbour(instance, rng, max_members=0, name=name)
            found = None if found is None or keeps(found) else found
        tried[name] += VAIN if found is None else 1
        if found is not None:
            return found
    return None


def _past_the_edge(
    instance: I, name: str, declared: Any, keeps: Callable[[I], bool], rng: np.random.Generator
) -> I | None:
    value = getattr(instance, name)
    part = int(rng.integers(len(value))) if isinstance(value, tuple) and value else None
    array = np.asarray(value if part is None else value[part])
    if not array.size:
        return None
    at = tuple(int(rng.integers(size)) for size in array.shape)
    inside = array[at].item()
    outside = 4 * inside + 4 if rng.random() < 0.5 else max(0, declared.minimum or 0)
    if declared.maximum is not None:
        outside = min(outside, declared.maximum)

    def made(number: float) -> I | None:
        changed = array.copy()
        changed[at] = number
        try:
            if not array.ndim:
                return _with(instance, name, changed.item())
            return _with_part(instance, name, part or 0, changed)
        except (InstanceError, OverflowError):
            return None

    def holds(number: float) -> bool:
        changed = made(number)
        return changed is not None and keeps(changed)

    if not math.isfinite(inside) or outside == inside or holds(outside):
        return None
    for _ in range(HALVINGS):
        if abs(outside - inside) <= (1 if declared.kind is int else NEAR * max(abs(inside), abs(outside))):
            break
        middle = (inside + outside) // 2 if declared.kind is int else (inside + outside) / 2
        inside, outside = (middle, outside) if holds(middle) else (inside, middle)
    return made(outside)


def _other_scalar(declared: Scalar, value: Any, rng: np.random.Generator) -> Any:
    if declared.kind is str:
        return declared.choices[rng.integers(len(declared.choices))]
    if declared.kind is bool:
        return not value
    return _other_number(value, rng)


def _other_entry(array: NDArray[Any], at: tuple[int, ...], rng: np.random.Generator) -> Any:
    if array.dtype.kind == "b":
        return not array[at]
    if rng.random() < 0.3:
        return array.ravel()[rng.integers(array.size)]
    return _other_number(array[at].item(), rng)


def _other_number(value: float, rng: np.random.Generator) -> float:
    if math.isinf(value):
        return float(rng.integers(1, 100))
    change: Callable[[float], float] = (
        lambda v: v + 1,
        lambda v: v - 1,
        lambda v: 2 * v,
        lambda v: v // 2,
        lambda v: v + int(rng.integers(-5, 6)),
        round,
    )[rng.integers(6)]
    return type(value)(change(value))


def _simplifications(instance: I) -> Iterator[Callable[[], I]]:
    """Yield ways to a simpler instance: without a member, or with numbers nearer to small whole ones.

    Whole arrays come before their rows and their entries, because one step then does the work of
    many.  A way may lead to no valid instance.
    """
    for dim in dimensions(instance):
        for member in reversed(range(instance.dims[dim])):
            if instance.dims[dim] > 1 or dim not in _needed(instance):
                yield functools.partial(without, instance, dim, member)
    for name, declared in declarations(type(instance)).items():
        value = getattr(instance, name)
        if isinstance(declared, Scalar):
            for simple in _simpler(value):
                yield functools.partial(_with, instance, name, simple)
        elif value is not None and not declared.index_of and declared.kind is not str:
            for number, part in enumerate(value if isinstance(value, tuple) else (value,)):
                if isinstance(declared, Ragged) and len(part) > 1:
                    for row in reversed(range(len(part))):
                        yield functools.partial(_with_part, instance, name, number, np.delete(part, row, axis=0))
                for simple in _simpler_arrays(part):
                    yield functools.partial(_with_part, instance, name, number, simple)


def _simpler_arrays(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    if not array.size or array.dtype.kind not in "bif":
        return
    for block in [(), *np.ndindex(array.shape[:1]), *(np.ndindex(array.shape) if array.ndim > 1 else ())]:
        entries = array[block]
        if entries.dtype.kind == "f":
            yield _replaced(array, block, np.rint(entries))
        for small in (0, 1):
            # Only what is greater comes down, so that zeros stay zeros.
            yield _replaced(array, block, np.minimum(entries, entries.dtype.type(small)))
        if entries.dtype.kind != "b":
            with np.errstate(invalid="ignore"):
                halves = np.where(np.isinf(entries), entries, entries // 2)
            yield _replaced(array, block, halves)
            yield _replaced(array, block, np.maximum(entries - 1, 0))


def _replaced(array: NDArray[Any], block: tuple[int, ...], entries: Any) -> NDArray[Any]:
    changed = array.copy()
    changed[block] = entries
    return changed


def _needed(instance: Instance[Any]) -> set[str]:
    """Return the dimensions that some field needs at least one member of."""
    return {
        dim
        for declared in declarations(type(instance)).values()
        if isinstance(declared, Array) and not declared.empty
        for dim in declared.shape.split()
    }


def _simpler(value: Any) -> Iterator[Any]:
    """Yield simpler values of a scalar, the simplest first."""
    if isinstance(value, str) or (isinstance(value, float) and math.isinf(value)):
        return
    if isinstance(value, bool):
        if value:
            yield False
        return
    kind = type(value)
    # A whole number is simpler than a fraction, even where it is greater.
    nearest = round(value) if value % 1 else value - 1
    for number in dict.fromkeys((0, 1, value // 2, nearest)):
        if 0 <= number < value or number == nearest:
            yield kind(number)


def _with(instance: I, name: str, value: Any) -> I:
    fields = {field: getattr(instance, field) for field in declarations(type(instance))}
    return type(instance)(**{**fields, name: value})


def _with_part(instance: I, name: str, number: int, part: NDArray[Any]) -> I:
    value = getattr(instance, name)
    if isinstance(value, tuple):
        return _with(instance, name, tuple(part if i == number else row for i, row in enumerate(value)))
    return _with(instance, name, part)


def shrunk(instance: I, keeps: Callable[[I], bool], *, stop: Callable[[], bool] = lambda: False) -> I:
    """Return the smallest instance that simplifying steps lead to while ``keeps`` holds.

    Parameters
    ----------
    instance : Instance
        One for which ``keeps`` holds.
    keeps : callable
        What must not be lost.
    stop : callable
        Asked before each step; True ends the search early.
    """
    position, idle = 0, 0
    ways = list(_simplifications(instance))
    while idle < len(ways) and not stop():
        # After a success the search goes on from where it is: what failed before is tried last.
        position %= len(ways)
        try:
            candidate = ways[position]()
        except (InstanceError, OverflowError):
            candidate = instance
        if candidate != instance and keeps(candidate):
            instance = candidate
            ways = list(_simplifications(instance))
            idle = 0
        else:
            position += 1
            idle += 1
    return instance
