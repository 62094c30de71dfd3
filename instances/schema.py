"""Declared fields: kind, shape and range of what instances and plans are made of.

A field is declared once, in its annotation::

    hosts: Annotated[BoolArray, Array(bool, "n s")]
    gpus: Annotated[IntArray, Array(int, "n s", minimum=0)]
    demand: Annotated[int, Scalar(int, minimum=0)]

From the declaration follow the checks made when an object is created, its JSON form and its digest,
instances for tests, neighbours for searches, tables and pictures.  Letters in a shape are dimensions:
the same letter is the same length in every field.  The letter n counts the jobs, and there may be
none; any other dimension is at least 1, unless the declaration says that the array may be empty.
"""

from __future__ import annotations

import difflib
import math
import reprlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "JOBS",
    "LARGEST",
    "LONGEST",
    "Array",
    "BoolArray",
    "FloatArray",
    "IntArray",
    "Ragged",
    "Scalar",
    "StrArray",
    "Unset",
    "declarations",
    "default",
    "length",
    "native",
    "nearest",
    "quoted",
    "show",
]

FloatArray = NDArray[np.float64]
"""An array of 64-bit floating-point numbers."""
IntArray = NDArray[np.int64]
"""An array of 64-bit whole numbers."""
BoolArray = NDArray[np.bool_]
"""An array of truth values."""
StrArray = NDArray[np.str_]
"""An array of words."""

JOBS = "n"
"""The dimension that counts jobs, in the shapes of all problems."""

LONGEST = 10_000_000
"""The most GPUs or servers that a number may declare where arrays have an entry for each."""

LARGEST = 50_000_000
"""The most entries of a table that an instance's numbers may declare, such as one for each job and slot."""

DEEPEST = 8
"""Axes that an array of an instance or a plan may have; more are nothing but nesting."""

_KIND_NAMES = {bool: "true or false", int: "a whole number", float: "a number"}
_DTYPES = {bool: np.bool_, int: np.int64, float: np.float64}


@dataclass(frozen=True)
class _Range:
    minimum: float | None = None
    above: float | None = None
    infinite: bool = False
    """True if infinity is allowed, which JSON writes as ``null``."""
    maximum: int | None = None
    """For what becomes a length, a count of rows or of steps: the most that is taken on."""

    def complaint(self, values: NDArray[Any]) -> tuple[tuple[int, ...], str] | None:
        """First entry out of range, with what it must be; None when all are in range."""
        tests: list[tuple[NDArray[np.bool_], str]] = []
        if values.dtype.kind == "f":
            if self.infinite:
                tests.append((np.isnan(values), "a number or infinity, not NaN"))
                tests.append((np.isneginf(values), "a number or infinity, not -infinity"))
            else:
                tests.append((~np.isfinite(values), "finite"))
        if self.minimum is not None:
            tests.append((values < self.minimum, f"at least {self.minimum:g}"))
        if self.above is not None:
            tests.append((values <= self.above, f"greater than {self.above:g}"))
        if self.maximum is not None:
            tests.append((values > self.maximum, f"at most {self.maximum:,}"))
        for bad, must in tests:
            if bad.any():
                return tuple(int(i) for i in np.argwhere(bad)[0]), must
        return None


@dataclass(frozen=True)
class Scalar(_Range):
    """A single number, truth value or, with ``choices``, one of a few words."""

    kind: type = float
    choices: tuple[str, ...] = ()

    def __init__(
        self,
        kind: type,
        *,
        minimum: float | None = None,
        above: float | None = None,
        infinite: bool = False,
        maximum: int | None = None,
        choices: tuple[str, ...] = (),
    ) -> None:
        super().__init__(minimum, above, infinite, maximum)
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "choices", choices)

    def read(self, value: Any, dims: dict[str, int]) -> Any:
        """Return the value as it is kept, checked; ``dims`` learns the lengths that it tells."""
        if self.kind is str:
            if not isinstance(value, str) or value not in self.choices:
                raise ValueError(f"got {quoted(value)}, must be one of {', '.join(self.choices)}")
            return self.choices[self.choices.index(value)]
        array = _numbers(value, self.kind, self.infinite)
        if array.ndim:
            raise ValueError(f"got an array of shape {array.shape}, must be {_KIND_NAMES[self.kind]}")
        complaint = self.complaint(array)
        if complaint:
            raise ValueError(f"got {array.item()!r}, must be {complaint[1]}")
        return _frozen(array).item()

    def write(self, value: Any) -> Any:
        """Return the value as it stands in JSON."""
        return None if isinstance(value, float) and math.isinf(value) else value


@dataclass(frozen=True)
class Array(_Range):
    """An array of a declared shape, such as ``"n k"`` or ``"n+q k"`` or ``"q 2"``.

    Of numbers, truth values or, with ``choices``, a few words.
    """

    kind: type = float
    shape: str = ""
    empty: bool = False
    """True if the array may have no entries (no pairs, no servers chosen)."""
    index_of: str = ""
    """Dimension that the entries count positions in, such as ``"n"`` for jobs; with ``minimum=-1``, -1 is none."""
    choices: tuple[str, ...] = ()

    def __init__(
        self,
        kind: type,
        shape: str,
        *,
        minimum: float | None = None,
        above: float | None = None,
        infinite: bool = False,
        maximum: int | None = None,
        empty: bool = False,
        index_of: str = "",
        choices: tuple[str, ...] = (),
    ) -> None:
        super().__init__(0 if index_of and minimum is None else minimum, above, infinite, maximum)
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "empty", empty)
        object.__setattr__(self, "index_of", index_of)
        object.__setattr__(self, "choices", choices)

    def read(self, value: Any, dims: dict[str, int]) -> NDArray[Any]:
        """Return the value as it is kept, checked; ``dims`` learns the lengths that it tells."""
        array = _words(value, self.choices) if self.kind is str else _numbers(value, self.kind, self.infinite)
        wanted = self.shape.split()
        missing = [dim for dim, got in zip(wanted, array.shape, strict=False) if got == 0]
        if missing and not self.empty and JOBS not in missing[0].split("+"):
            raise ValueError(f"got shape {array.shape}, must have at least one entry")
        if missing and missing[0] == wanted[0] and len(wanted) > 1:
            # JSON writes an array without entries as [], whatever its other dimensions; so they are not content.
            others = [length(dim, dims) for dim in wanted[1:]]
            if array.ndim == 1 or all(
                got in (0, size or got) for got, size in zip(array.shape[1:], others, strict=False)
            ):
                array = array.reshape([0, *(size or 0 for size in others)])
        if array.ndim != len(wanted) or any(
            length(dim, dims, bind=got) not in (got, None) for dim, got in zip(wanted, array.shape, strict=True)
        ):
            sizes = {dim: length(dim, dims) for dim in wanted if not dim.isdigit()}
            known = ", ".join(f"{dim} = {size}" for dim, size in sizes.items() if size is not None)
            must = f"({', '.join(wanted)}{',' if len(wanted) == 1 else ''})"
            raise ValueError(f"got shape {array.shape}, must be {must}" + (f" with {known}" if known else ""))
        complaint = self.complaint(array)
        if complaint:
            index, must = complaint
            raise ValueError(f"got {array[index].item()!r} at index {show(index)}, must be {must}")
        return _frozen(array)

    def write(self, value: NDArray[Any]) -> Any:
        """Return the value as it stands in JSON."""
        if value.dtype.kind == "f" and np.isinf(value).any():
            listed = value.astype(object)
            listed[np.isinf(value)] = None
            return listed.tolist()
        return value.tolist()


class Ragged(Array):
    """One array per job (or server, ...): the first dimension counts them, the second may differ."""

    def read(self, value: Any, dims: dict[str, int]) -> Any:
        """Return the value as it is kept, checked; ``dims`` learns the lengths that it tells."""
        listed = value.ndim > 0 if isinstance(value, np.ndarray) else isinstance(value, Sequence)
        if not listed or isinstance(value, (str, bytes)):
            raise ValueError(f"got {type(value).__name__}, must be a sequence of arrays")
        first, _, *rest = self.shape.split()
        if length(first, dims, bind=len(value)) != len(value):
            raise ValueError(f"got {len(value)} arrays, must be {first} = {length(first, dims)}")
        one = Array(
            self.kind,
            " ".join(["_", *rest]),
            minimum=self.minimum,
            above=self.above,
            infinite=self.infinite,
            maximum=self.maximum,
            empty=self.empty,
        )
        rows = []
        for i, row in enumerate(value):
            try:
                rows.append(one.read(row, dims))
            except ValueError as error:
                raise ValueError(f"entry {i}: {error}") from None
            del dims["_"]
        return tuple(rows)

    def write(self, value: Any) -> Any:
        """Return the value as it stands in JSON."""
        return [super(Ragged, self).write(row) for row in value]


def _numbers(value: Any, kind: type, infinite: bool) -> NDArray[Any]:
    """``value`` as an array of the wanted kind; numbers are never cut or guessed to fit."""
    if np.ma.is_masked(value):
        raise ValueError("got an array with masked entries, must have a number in each")
    if isinstance(value, np.ndarray) and value.dtype == _DTYPES[kind]:
        return native(value)
    _refuse_nesting(value)
    if infinite and not isinstance(value, np.ndarray):
        value = _null_to_infinity(value)
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError("got rows of different lengths, must be a rectangular array") from None
    if array.dtype.kind in "US" or (array.dtype.kind != "b" and not _types(value).isdisjoint({bool, np.bool_})):
        # NumPy would read [True, 2] as [1, 2], and [1, "x"] as ["1", "x"].
        array = np.asarray(value, object)
    if array.size == 0:
        return array.astype(_DTYPES[kind])
    allowed = {bool: "b", int: "iu", float: "iuf"}[kind]
    if (
        kind is int
        and array.dtype.kind == "f"
        and np.array_equal(array, np.rint(array))
        and (np.abs(array) < 2**53).all()
    ):
        return array.astype(np.int64)
    if kind is bool and array.dtype.kind in "iu" and np.isin(array, (0, 1)).all():
        return array.astype(np.bool_)
    if array.dtype.kind not in allowed:
        raise ValueError(
            f"got {_sample(array, allowed)}, must be {_KIND_NAMES[kind]}" + (" in every entry" if array.ndim else "")
        )
    if kind is int and array.dtype.kind == "u" and (array > np.iinfo(np.int64).max).any():
        raise ValueError("got a whole number beyond 64 bits")
    return array.astype(_DTYPES[kind])


def _words(value: Any, choices: tuple[str, ...]) -> NDArray[Any]:
    """``value`` as an array of words, each of them one of ``choices``."""
    _refuse_nesting(value)
    array = np.asarray(value, object)
    for index, entry in np.ndenumerate(array):
        if not isinstance(entry, str) or entry not in choices:
            at = f" at index {show(index)}" if index else ""
            raise ValueError(f"got {quoted(entry)}{at}, must be one of {', '.join(choices)}")
    # One width whatever the words, so that equal content has one digest.
    return array.astype(f"<U{max(map(len, choices))}")


def _null_to_infinity(value: Any) -> Any:
    if value is None:
        return math.inf
    if isinstance(value, (list, tuple)):
        return [_null_to_infinity(entry) for entry in value]
    return value


def _refuse_nesting(value: Any, left: int = DEEPEST) -> None:
    """Refuse lists in lists in lists without end, which no array is made of."""
    if isinstance(value, (list, tuple)) and not left:
        raise ValueError(f"got lists nested more than {DEEPEST} deep")
    if isinstance(value, (list, tuple)) and not set(map(type, value)).isdisjoint({list, tuple}):
        for entry in value:
            _refuse_nesting(entry, left - 1)


def _types(value: Any) -> set[type]:
    """Types of the entries of nested lists."""
    if not isinstance(value, (list, tuple)):
        return {type(value)}
    types = set(map(type, value))
    return types if types.isdisjoint({list, tuple}) else types.union(*map(_types, value))


def _sample(array: NDArray[Any], allowed: str) -> str:
    """Return the first entry that is not of an allowed kind, for an error message."""
    whole = "i" in allowed and "f" not in allowed
    for index, entry in np.ndenumerate(array.astype(object)):
        if whole and isinstance(entry, float) and entry % 1 == 0 and abs(entry) < 2**53:
            continue
        if np.asarray(entry).dtype.kind not in allowed:
            at = f" at index {show(index)}" if index else ""
            return f"{quoted(entry)}{at}"
    return f"an array of {array.dtype}"


def show(index: tuple[int, ...]) -> str:
    """Return an index as it stands in messages, such as ``[2, 0]``."""
    return "[" + ", ".join(map(str, index)) + "]"


def length(dim: str, dims: dict[str, int], bind: int | None = None) -> int | None:
    """Length of a dimension such as ``n``, ``2`` or ``n+q``; a letter seen first takes ``bind``."""
    if "+" in dim:
        parts = [length(part, dims) for part in dim.split("+")]
        return None if None in parts else sum(part for part in parts if part is not None)
    if dim.isdigit():
        return int(dim)
    if dim not in dims and bind is not None:
        dims[dim] = bind
    return dims.get(dim)


def native(array: NDArray[Any]) -> NDArray[Any]:
    """Return numbers with NumPy's own object for their type: with the equal one of a pickle ``ufunc.at`` is slow."""
    return np.asarray(array, array.dtype.type) if array.dtype.kind in "biuf" else array


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only copy in C order; -0.0 becomes 0.0 so that equal content has one digest."""
    array = np.array(array, order="C")
    if array.dtype.kind == "f":
        array += 0.0
    array.setflags(write=False)
    return array


@dataclass(frozen=True)
class Unset:
    """The mark of a field that was left out, until the dimensions are known."""

    fill: Callable[[dict[str, int]], Any]
    later: bool = False


def default(fill: Callable[[dict[str, int]], Any], *, later: bool = False) -> Any:
    """Declare a field that may be left out; ``fill`` makes its value from the dimensions known by then.

    One that came ``later`` than files of the problem is in no JSON form and no digest as long as it has that value, so
    that they stay what they were.
    """
    return Unset(fill, later)


_DECLARED: dict[type, dict[str, Any]] = {}


def declarations(cls: type[Any]) -> dict[str, Any]:
    """Field name to its declaration (Scalar, Array or Ragged), in the order of the fields."""
    if cls in _DECLARED:
        return _DECLARED[cls]
    hints = get_type_hints(cls, include_extras=True)
    declared = {}
    for field in fields(cls):
        hint = hints[field.name]
        if get_origin(hint) is not Annotated:
            raise TypeError(f"{cls.__name__}.{field.name} must be declared as Annotated[..., Array(...)] or the like")
        declared[field.name] = get_args(hint)[1]
    _DECLARED[cls] = declared
    return declared


_QUOTE = reprlib.Repr()
_QUOTE.maxstring = _QUOTE.maxother = _QUOTE.maxlong = 80


def quoted(value: Any) -> str:
    """Return a value as messages show it: in a line, cut where it is long or deep."""
    try:
        return _QUOTE.repr(value)
    except ValueError:
        # A number of thousands of digits.
        return f"{type(value).__name__} too long to show"


def nearest(name: str, known: Any) -> str:
    """`` (did you mean 'x'?)`` when a known name is close to ``name``, else nothing."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
