"""Hypothesis strategies for the instances of every problem.

Those of the library's own problems stand beside their entries (``validation/problems``): they construct
valid instances rather than filter, and put small, exact numbers first, so that a counterexample can
be checked by hand.  For a problem without one, a strategy is derived from its declared fields.  Once
the distribution is installed, ``hypothesis.strategies.from_type(Reclaim)`` finds them through an
entry point.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from instances.base import Instance, InstanceError
from instances.schema import Array, Ragged, Scalar, Unset, declarations, length
from validation import catalogue
from validation.testing.arrays import booleans, integers, quarters
from validation.testing.transform import dimensions, rescaled, take

__all__ = ["derived", "strategy", "varied"]

AnyInstance = Instance[Any]

MOST_GENERATED = 16
"""Greatest size of instances that a generator makes for checks, each of which is solved exactly."""
FACTORS = (0.001, 3600.0, 2.0**33, 1e10)
"""Factors by which units are changed."""


def strategy(problem: str, **sizes: Any) -> st.SearchStrategy[AnyInstance]:
    """Return the strategy for instances of ``problem``.

    Parameters
    ----------
    problem : str
    **sizes
        What the problem's own strategy lets one choose, such as ``max_jobs``; of a derived one
        ``most``, the greatest length of a dimension, and ``greatest``, that of a number.

    Raises
    ------
    CatalogueError
        When there is no such problem.
    """
    entry = catalogue.entry(problem)
    if entry.strategy is not None:
        return entry.strategy(**sizes)
    return derived(problem, **sizes)


def varied(problem: str) -> st.SearchStrategy[AnyInstance]:
    """Return the default strategy of checks: instances of every kind that the problem knows.

    Those of its strategy, small and beyond small (``Entry.wide``); those of its generator; those derived
    from its declared fields; and all of them with members that are alike, entries that are equal, or in
    other units, up to numbers beyond 32 bits.

    Parameters
    ----------
    problem : str
    """
    entry = catalogue.entry(problem)
    plain = [strategy(problem), generated(problem), derived(problem)]
    if entry.wide:
        wide = {name: value() if callable(value) else value for name, value in entry.wide.items()}
        plain.insert(1, strategy(problem, **wide))
    return st.one_of(*plain, altered(entry, st.one_of(plain)))


@st.composite
def generated(draw: st.DrawFn, problem: str) -> AnyInstance:
    """Draw instances of the problem's generator, of any size up to the second smallest of its studies."""
    entry = catalogue.entry(problem)
    sizes = st.integers(1, entry.sizes[0])
    if len(entry.sizes) > 1:
        sizes |= st.integers(entry.sizes[0], min(entry.sizes[1], MOST_GENERATED))
    size, seed = draw(sizes), draw(st.integers(0, 2**16))
    try:
        return entry.generate(seed, **{entry.size: size})
    except ValueError:
        # Some problems have no instance of so small a size.
        return entry.generate(seed, **{entry.size: entry.sizes[0]})


@st.composite
def altered(draw: st.DrawFn, entry: catalogue.Entry, plain: st.SearchStrategy[AnyInstance]) -> AnyInstance:
    """Draw instances with a member twice, with equal entries, or in another unit; as they are where that is none."""
    instance = draw(plain)
    ways = ["twins", "ties", *(["units", "units"] if entry.rescalings else [])]
    way = draw(st.sampled_from(ways))
    try:
        if way == "units":
            unit = draw(st.sampled_from(entry.rescalings))
            return rescaled(instance, unit.fields, draw(st.sampled_from(FACTORS)))
        if way == "twins" and (dims := dimensions(instance)):
            dim = draw(st.sampled_from(dims))
            member = draw(st.integers(0, instance.dims[dim] - 1))
            return take(instance, dim, [*range(instance.dims[dim]), member])
        if way == "ties":
            arrays = [
                name for name, declared in declarations(entry.instance).items() if _countable(instance, declared, name)
            ]
            if arrays:
                name = draw(st.sampled_from(arrays))
                value = getattr(instance, name)
                return replace(instance, **{name: np.full_like(value, value.ravel()[-1])})
    except InstanceError:
        pass
    return instance


def _countable(instance: AnyInstance, declared: Any, name: str) -> bool:
    """Return whether a field is an array of numbers that count or measure something."""
    if not isinstance(declared, Array) or isinstance(declared, Ragged) or declared.kind not in (int, float):
        return False
    value = getattr(instance, name)
    return not declared.index_of and value is not None and value.size > 1


@st.composite
def derived(draw: st.DrawFn, problem: str, *, most: int = 4, greatest: int = 9) -> AnyInstance:
    """Draw instances with any small numbers that the declarations allow.

    Where several fields have to agree and those drawn do not, the problem's generator makes the
    instance instead.

    Parameters
    ----------
    problem : str
    most : int
        Greatest length of a dimension.
    greatest : int
        Greatest number.
    """
    entry = catalogue.entry(problem)
    fields = declarations(entry.instance)
    dims: dict[str, int] = {}
    for declared in fields.values():
        if isinstance(declared, Array):
            for dim in re.findall(r"[a-z]", declared.shape):
                optional = all(
                    other.empty for other in fields.values() if isinstance(other, Array) and dim in other.shape
                )
                if dim not in dims:
                    dims[dim] = draw(st.integers(0 if optional else 1, most), label=dim)
    values = {}
    for field, declared in fields.items():
        optional = isinstance(entry.instance.__dataclass_fields__[field].default, Unset)
        if optional and draw(st.booleans()):
            continue
        values[field] = draw(_field(declared, dims, most, greatest), label=field)
    try:
        return entry.instance(**values)
    except InstanceError:
        size, seed = draw(st.integers(1, most)), draw(st.integers(0, 2**16))
    try:
        return entry.generate(seed, **{entry.size: size})
    except ValueError:
        # Some problems have no instance of so small a size.
        return entry.generate(seed, **{entry.size: entry.sizes[0]})


def _field(declared: Any, dims: dict[str, int], most: int, greatest: int) -> st.SearchStrategy[Any]:
    if isinstance(declared, Scalar):
        if declared.kind is bool:
            return st.booleans()
        if declared.kind is str:
            return st.sampled_from(declared.choices)
        return _numbers(declared, (), greatest).map(lambda array: array.item())
    if isinstance(declared, Ragged):
        first, _, *rest = declared.shape.split()
        row = tuple(length(dim, dims) or 0 for dim in rest)
        least = 0 if declared.empty else 1
        one = st.integers(least, most).flatmap(lambda size: _numbers(declared, (size, *row), greatest))
        return st.lists(one, min_size=dims[first], max_size=dims[first]).map(tuple)
    shape = tuple(length(dim, dims) or 0 for dim in declared.shape.split())
    if declared.kind is str:
        words = st.sampled_from(declared.choices)
        count = int(np.prod(shape))
        return st.lists(words, min_size=count, max_size=count).map(lambda found: np.array(found).reshape(shape))
    if declared.index_of:
        return integers(shape, 0, max(0, dims[declared.index_of] - 1))
    return _numbers(declared, shape, greatest)


def _numbers(declared: Any, shape: tuple[int, ...], greatest: int) -> st.SearchStrategy[NDArray[Any]]:
    """Return the strategy for small numbers within the declared range; infinity among them where it is allowed."""
    if declared.kind is bool:
        return booleans(shape)
    low = 0 if declared.minimum is None else int(np.ceil(declared.minimum))
    if declared.above is not None:
        low = max(low, int(np.floor(declared.above)) + 1)
    high = max(low, greatest if declared.maximum is None else min(greatest, declared.maximum))
    if declared.kind is int:
        return integers(shape, low, high)
    if not declared.infinite:
        return quarters(shape, low, high)
    return st.tuples(quarters(shape, low, high), booleans(shape)).map(lambda both: np.where(both[1], np.inf, both[0]))
