"""Instances changed by their declarations: renumbered, enlarged, reduced, rescaled.

The fields of an instance say which dimension each axis counts and which dimension their entries
number, so jobs, servers or types can be renumbered, dropped or copied without knowing the problem.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from instances.base import Instance, InstanceError
from instances.schema import Array, Ragged, declarations

__all__ = ["dimensions", "permuted", "rescaled", "spread", "take", "without"]

I = TypeVar("I", bound=Instance[Any])  # noqa: E741, an instance


def dimensions(instance: Instance[Any]) -> list[str]:
    """Return the dimensions whose members can be renumbered or dropped: those that name an axis by themselves."""
    found = []
    for name, declared in declarations(type(instance)).items():
        if isinstance(declared, Array) and getattr(instance, name) is not None:
            axes = declared.shape.split()
            found += [dim for dim in (axes[:1] if isinstance(declared, Ragged) else axes) if dim.isalpha()]
    return [dim for dim in dict.fromkeys(found) if instance.dims.get(dim, 0) > 0]


def take(instance: I, dim: str, members: Sequence[int] | NDArray[Any]) -> I:
    """Return the instance with the given members of a dimension, in the given order.

    Entries of fields that number the dimension follow; what refers to a member that is gone goes
    too (a pair of jobs, a type of a pool), or refers to none where the field can say so, by -1.

    Raises
    ------
    InstanceError
        When what remains is no valid instance.
    """
    return _rebuilt(instance, {dim: np.asarray(members, np.int64)})


def permuted(instance: I, dim: str, rng: np.random.Generator) -> I:
    """Return the instance with a dimension renumbered at random."""
    return take(instance, dim, rng.permutation(instance.dims[dim]))


def without(instance: I, dim: str, member: int) -> I:
    """Return the instance without one member of a dimension."""
    return take(instance, dim, np.delete(np.arange(instance.dims[dim]), member))


def _rebuilt(instance: I, kept: dict[str, NDArray[np.int64]]) -> I:
    fields = declarations(type(instance))
    values = {name: getattr(instance, name) for name in fields}
    # Members that refer to dropped ones are dropped as well, until nothing refers to nothing.
    settled = False
    while not settled:
        settled = True
        for name, declared in fields.items():
            if (
                not _refers(declared, kept)
                or isinstance(declared, Ragged)
                or declared.minimum < 0
                or values[name] is None
            ):
                continue
            axis = declared.shape.split()[0]
            there = np.isin(values[name], kept[declared.index_of])
            whole = np.flatnonzero(there.all(axis=tuple(range(1, there.ndim))))
            left = kept.get(axis, np.arange(len(there)))
            if not np.isin(left, whole).all():
                kept[axis] = left[np.isin(left, whole)]
                settled = False
    changed: dict[str, Any] = {}
    for name, declared in fields.items():
        value = values[name]
        if value is None or not isinstance(declared, Array):
            changed[name] = value
            continue
        axes = declared.shape.split()
        if isinstance(declared, Ragged):
            rows = [value[i] for i in kept[axes[0]]] if axes[0] in kept else value
            if _refers(declared, kept):
                left = kept[declared.index_of]
                rows = [_renumbered(row[np.isin(row, left)], left) for row in rows]
            changed[name] = tuple(rows)
            continue
        for number, dim in enumerate(axes):
            positions = _positions(dim, kept, instance.dims)
            if positions is not None:
                value = np.take(value, positions, axis=number)
        if _refers(declared, kept):
            value = _renumbered(value, kept[declared.index_of])
        changed[name] = value
    return type(instance)(**changed)


def _refers(declared: Any, kept: Mapping[str, Any]) -> bool:
    """Return whether a field's entries number a dimension of which members may be gone."""
    return isinstance(declared, Array) and declared.index_of in kept


def _positions(dim: str, kept: Mapping[str, NDArray[np.int64]], dims: Mapping[str, int]) -> NDArray[np.int64] | None:
    """Return the positions to keep along an axis such as ``n`` or ``n+q``; None for all."""
    parts = dim.split("+")
    if not any(part in kept for part in parts):
        return None
    positions, offset = [], 0
    for part in parts:
        length = int(part) if part.isdigit() else dims[part]
        positions.append(offset + kept.get(part, np.arange(length)))
        offset += length
    return np.concatenate(positions)


def _renumbered(entries: NDArray[Any], left: NDArray[np.int64]) -> NDArray[Any]:
    """Return entries that number a dimension, after only ``left`` of it remains, in that order; -1 stays."""
    new = np.full(int(max(left.max(initial=0), entries.max(initial=0))) + 1, -1)
    # A member that stands twice is meant by its first copy.
    new[left[::-1]] = np.arange(len(left))[::-1]
    renumbered: NDArray[Any] = np.where(entries < 0, entries, new[entries])
    return renumbered


def rescaled(instance: I, fields: Sequence[str], factor: float) -> I:
    """Return the instance with some fields measured in another unit.

    Parameters
    ----------
    instance : Instance
    fields : sequence of str
        Names, or ``name[column]`` for one column of a field whose columns have units of their own.
    factor : float
    """
    changed = {name: getattr(instance, name) for name in declarations(type(instance))}
    for field in fields:
        name, _, column = field.rstrip("]").partition("[")
        value = changed[name]
        if value is None:
            continue
        parts = [_times(part, factor, column) for part in (value if isinstance(value, tuple) else (value,))]
        changed[name] = tuple(parts) if isinstance(value, tuple) else parts[0]
    return type(instance)(**changed)


def _times(value: Any, factor: float, column: str) -> Any:
    if not column:
        return value * factor
    value = value.copy()
    value[..., int(column)] *= factor
    return value


def spread(instance: I, rng: np.random.Generator) -> I | None:
    """Return the instance with measured numbers raised a little, each by its own part, so that no two are alike.

    Zeros and infinities stay, and so do counts.  Where a field takes no such change (a curve that must
    not fall), each of its rows is raised as a whole.  None where nothing can be raised.
    """
    changed, raised = instance, False
    for name, declared in declarations(type(instance)).items():
        value = getattr(instance, name)
        if value is None or declared.kind is not float:
            continue
        for rows in (False, True):
            parts = [_raised(np.asarray(part), rng, rows) for part in (value if isinstance(value, tuple) else (value,))]
            other = (
                tuple(parts)
                if isinstance(value, tuple)
                else parts[0]
                if isinstance(declared, Array)
                else parts[0].item()
            )
            try:
                fields = {field: getattr(changed, field) for field in declarations(type(instance))}
                changed = type(instance)(**{**fields, name: other})
            except InstanceError:
                continue
            raised = True
            break
    return changed if raised else None


def _raised(value: NDArray[Any], rng: np.random.Generator, rows: bool) -> NDArray[Any]:
    shape = (*value.shape[:1], *(1 for _ in value.shape[1:])) if rows else value.shape
    factor: NDArray[Any] = value * (1 + rng.uniform(1e-4, 1e-2, shape))
    return factor
