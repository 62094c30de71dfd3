"""Hypothesis strategies for the instances of every problem.

Those of the library's own problems stand beside their entries (``validation/problems``): they construct
valid instances rather than filter, and put small, exact numbers first, so that a counterexample can
be checked by hand.  For a problem without one, a strategy is derived from its declared fields.  Once
the distribution is installed, ``hypothesis.strategies.from_type(Reclaim)`` finds them through an
entry point.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from instances.base import Instance, InstanceError
from instances.schema import JOBS, Array, Ragged, Scalar, Unset, declarations, length
from validation import catalogue
from validation.testing.arrays import booleans, integers, quarters
from validation.testing.neighbours import neighbour
from validation.testing.transform import dimensions, rescaled, take

__all__ = ["Drawn", "derived", "sources", "strategy", "varied"]

AnyInstance = Instance[Any]

MOST_GENERATED = 16
"""Greatest size of instances that a generator makes for checks, each of which is solved exactly."""
FACTORS = (0.001, 3600.0, 2.0**33, 1e10)
"""Factors by which units are changed."""
MOST_MEMBERS, GREATEST = 4, 9
"""Greatest length of a dimension, and greatest number, of derived instances."""
WIDE = {"greatest": 2**16, "measured": 2**33}
"""Sizes of :func:`derived` beyond small ones, of a problem without a strategy; products of counts leave 32 bits."""

STRATEGY, BEYOND, GENERATOR, FIELDS, REPAIRED, ALTERED = (
    "the problem's strategy",
    "the same, wide",
    "its generator",
    "its fields",
    "its generator, with other fields",
    "these, altered",
)
"""Where instances of checks come from."""


@dataclass(frozen=True)
class Drawn:
    """An instance, where it comes from, and the sources whose instances the problem's ``_check`` refused before it."""

    instance: AnyInstance
    source: str
    refused: Mapping[str, int] = field(default_factory=dict)


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
    return sources(problem).map(lambda drawn: drawn.instance)


def sources(problem: str) -> st.SearchStrategy[Drawn]:
    """Return what :func:`varied` draws from, which tells where each instance comes from."""
    entry = catalogue.entry(problem)
    wide = {name: value() if callable(value) else value for name, value in entry.wide.items()}
    if entry.strategy is None:
        plain = [_generated(problem), _derived(problem), _derived(problem, **{**WIDE, **wide})]
    else:
        plain = [strategy(problem).map(lambda one: Drawn(one, STRATEGY)), _generated(problem), _derived(problem)]
        if wide:
            plain.insert(1, strategy(problem, **wide).map(lambda one: Drawn(one, BEYOND)))
    return st.one_of(*plain, altered(entry, st.one_of(plain)))


def _generated(problem: str) -> st.SearchStrategy[Drawn]:
    return generated(problem).map(lambda one: Drawn(one, GENERATOR))


@st.composite
def generated(draw: st.DrawFn, problem: str) -> AnyInstance:
    """Draw instances of the problem's generator, of any size up to the second smallest of its studies."""
    entry = catalogue.entry(problem)
    sizes = st.integers(1, entry.sizes[0])
    if len(entry.sizes) > 1:
        sizes |= st.integers(entry.sizes[0], min(entry.sizes[1], MOST_GENERATED))
    return _of_size(entry, draw(sizes), draw(st.integers(0, 2**16)))


@st.composite
def altered(draw: st.DrawFn, entry: catalogue.Entry, plain: st.SearchStrategy[Drawn]) -> Drawn:
    """Draw instances with a member twice, equal entries, another field or unit; as they are where none can be."""
    drawn = draw(plain)
    instance = drawn.instance
    ways = ["twins", "ties", "field", *(["units", "units"] if entry.rescalings else [])]
    way = draw(st.sampled_from(ways))
    try:
        if way == "units":
            unit = draw(st.sampled_from(entry.rescalings))
            instance = rescaled(instance, unit.fields, draw(st.sampled_from(FACTORS)))
        elif way == "twins" and (dims := dimensions(instance)):
            dim = draw(st.sampled_from(dims))
            member = draw(st.integers(0, instance.dims[dim] - 1))
            instance = take(instance, dim, [*range(instance.dims[dim]), member])
        elif way == "field":
            name = draw(st.sampled_from(sorted(declarations(entry.instance))))
            instance = _with_another(draw, instance, name, MOST_MEMBERS, GREATEST, GREATEST)
        elif way == "ties":
            arrays = [
                name for name, declared in declarations(entry.instance).items() if _countable(instance, declared, name)
            ]
            if arrays:
                name = draw(st.sampled_from(arrays))
                value = getattr(instance, name)
                instance = replace(instance, **{name: np.full_like(value, value.ravel()[-1])})
    except InstanceError:
        return replace(drawn, refused=Counter(drawn.refused) + Counter([ALTERED]))
    return drawn if instance is drawn.instance else replace(drawn, instance=instance, source=ALTERED)


def _countable(instance: AnyInstance, declared: Any, name: str) -> bool:
    """Return whether a field is an array of numbers that count or measure something."""
    if not isinstance(declared, Array) or isinstance(declared, Ragged) or declared.kind not in (int, float):
        return False
    value = getattr(instance, name)
    return not declared.index_of and value is not None and value.size > 1


def derived(problem: str, **sizes: int) -> st.SearchStrategy[AnyInstance]:
    """Return the strategy for instances with any small numbers that the declarations allow.

    Where several fields have to agree and those drawn do not, an instance of the problem's generator is taken, with as
    many of its fields drawn anew as agree.

    Parameters
    ----------
    problem : str
    **sizes
        ``most``, the greatest length of a dimension (4), and ``greatest``, that of a number (9); ``measured``, that
        of one that is no count, which nobody makes a table of (the same).
    """
    return _derived(problem, **sizes).map(lambda drawn: drawn.instance)


@st.composite
def _derived(
    draw: st.DrawFn, problem: str, *, most: int = MOST_MEMBERS, greatest: int = GREATEST, measured: int | None = None
) -> Drawn:
    measured = measured or greatest
    entry = catalogue.entry(problem)
    fields = declarations(entry.instance)
    dims: dict[str, int] = {}
    for declared in fields.values():
        if isinstance(declared, Array):
            for dim in declared.shape.replace("+", " ").split():
                if dim not in dims and dim.isalpha():
                    dims[dim] = draw(_length(dim, fields, most), label=dim)
    values = {}
    for name, declared in fields.items():
        optional = isinstance(entry.instance.__dataclass_fields__[name].default, Unset)
        if optional and draw(st.booleans()):
            continue
        values[name] = draw(_field(declared, dims, most, greatest, measured), label=name)
    try:
        return Drawn(entry.instance(**values), FIELDS)
    except InstanceError:
        return draw(_repaired(entry, most, greatest, measured))


def _length(dim: str, fields: Mapping[str, Any], most: int) -> st.SearchStrategy[int]:
    """Return the strategy for the length of a dimension; there may be no jobs, but that is rare."""
    if all(one.empty for one in fields.values() if isinstance(one, Array) and dim in one.shape):
        return st.integers(0, most)
    some = st.integers(1, most)
    return st.integers(0, 4 * most).flatmap(lambda rare: some if rare else st.just(0)) if dim == JOBS else some


@st.composite
def _repaired(draw: st.DrawFn, entry: catalogue.Entry, most: int, greatest: int, measured: int) -> Drawn:
    """Draw an instance of the generator, and then other values of each of its fields, one kept where it is valid."""
    size, seed = draw(st.integers(1, most)), draw(st.integers(0, 2**16))
    base = changed = _of_size(entry, size, seed)
    for name in draw(st.permutations(sorted(declarations(entry.instance)))):
        changed = _with_another(draw, changed, name, most, greatest, measured)
    if changed == base:
        return Drawn(base, GENERATOR, {FIELDS: 1, REPAIRED: 1})
    return Drawn(changed, REPAIRED, {FIELDS: 1})


def _with_another(
    draw: st.DrawFn, instance: AnyInstance, name: str, most: int, greatest: int, measured: int
) -> AnyInstance:
    """Draw a field anew, or one entry where the whole has to agree with other fields; as it is where neither can be."""
    declared = declarations(type(instance))[name]
    if getattr(instance, name) is None:
        return instance
    try:
        return replace(instance, **{name: draw(_field(declared, instance.dims, most, greatest, measured), label=name)})
    except InstanceError:
        rng = np.random.default_rng(draw(st.integers(0, 2**16)))
        return neighbour(instance, rng, max_members=most, name=name) or instance


def _of_size(entry: catalogue.Entry, size: int, seed: int) -> AnyInstance:
    try:
        return entry.generate(seed, **{entry.size: size})
    except ValueError:
        # Some problems have no instance of so small a size.
        return entry.generate(seed, **{entry.size: entry.sizes[0]})


def _field(declared: Any, dims: Mapping[str, int], most: int, greatest: int, measured: int) -> st.SearchStrategy[Any]:
    dims, greatest = dict(dims), measured if declared.kind is float else greatest
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
        one = st.integers(least, most).flatmap(lambda size: _entries(declared, (size, *row), dims, greatest))
        return st.lists(one, min_size=dims[first], max_size=dims[first]).map(tuple)
    shape = tuple(length(dim, dims) or 0 for dim in declared.shape.split())
    if declared.kind is str:
        words = st.sampled_from(declared.choices)
        count = int(np.prod(shape))
        return st.lists(words, min_size=count, max_size=count).map(lambda found: np.array(found).reshape(shape))
    return _entries(declared, shape, dims, greatest)


def _entries(
    declared: Array, shape: tuple[int, ...], dims: Mapping[str, int], greatest: int
) -> st.SearchStrategy[NDArray[Any]]:
    """Return the strategy for numbers, or for those of members of a dimension."""
    if declared.index_of:
        low = int(declared.minimum or 0)
        return integers(shape, low, max(low, dims.get(declared.index_of, 0) - 1))
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
