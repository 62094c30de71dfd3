"""What every instance and every plan has in common.

An *instance* is the data of one problem, a *plan* is a set of decisions for it.  Both are
frozen dataclasses whose fields are declared once, with their kind, shape and range::

    @dataclass(frozen=True, eq=False)
    class Reclaim(Instance):
        problem = "aryl.reclaim"
        hosts: Annotated[BoolArray, Array(bool, "n s")]
        gpus: Annotated[IntArray, Array(int, "n s", minimum=0)]
        demand: Annotated[int, Scalar(int, minimum=0)]

From the declaration follow the checks made when an object is created, the JSON form, and the
digest.  Letters in a shape are dimensions: the same letter is the same length in every field.
"""

from __future__ import annotations

import difflib
import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from typing import Annotated, Any, ClassVar, Generic, Self, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
StrArray = NDArray[np.str_]

TOLERANCE = 1e-6
"""How far a rule may be exceeded before it counts as violated, relative to ``max(1, |limit|)``."""

FEASIBILITY_TOLERANCE = TOLERANCE / 10
"""What solvers of linear programs are asked for: stricter, so that a point which the solver calls feasible
is not refused for the rounding of its own arithmetic.
"""

OPTIMALITY_TOLERANCE = 1e-6
"""How far a value and a bound may lie apart, relatively, and still count as equal."""


def agree(value: float, bound: float) -> bool:
    """Whether two objective values are equal within :data:`OPTIMALITY_TOLERANCE`.

    The absolute part, 1e-9, serves values that are zero but for rounding.
    """
    if value == bound:
        return True
    if math.isinf(value) or math.isinf(bound):
        return False
    return abs(value - bound) <= OPTIMALITY_TOLERANCE * max(abs(value), abs(bound)) + 1e-9


class InstanceError(ValueError):
    """An instance is malformed: the message names the field, what it got and what it must be."""


class PlanError(ValueError):
    """A plan is malformed, or does not fit the instance that it is given to."""


@dataclass(frozen=True)
class Violation:
    """One rule that a plan breaks.

    Attributes
    ----------
    rule : str
        Name of the rule, the same as the constraint's in the formulation where there is one.
    index : tuple of int
        Which job, server, ... the rule is broken for; empty for a rule about the whole plan.
    amount : float
        By how much the limit is exceeded, in the rule's own unit.
    """

    rule: str
    index: tuple[int, ...]
    amount: float

    def __str__(self) -> str:
        where = f"[{', '.join(map(str, self.index))}]" if self.index else ""
        return f"{self.rule}{where} by {self.amount:.6g}"


def exceeding(rule: str, values: Any, limits: Any) -> list[Violation]:
    """Violations of ``values <= limits``, elementwise, beyond :data:`TOLERANCE`."""
    values, limits = np.broadcast_arrays(np.asarray(values, float), np.asarray(limits, float))
    with np.errstate(invalid="ignore"):
        excess = values - limits
    slack = TOLERANCE * np.maximum(1.0, np.abs(np.where(np.isfinite(limits), limits, 0.0)))
    # The first comparison is for infinite values, whose difference is no number.
    return [
        Violation(rule, tuple(int(i) for i in index), float(excess[tuple(index)]))
        for index in np.argwhere(~((values <= limits) | (excess <= slack)))
    ]


# --- declarations of fields ------------------------------------------------------------------

_KIND_NAMES = {bool: "true or false", int: "a whole number", float: "a number"}
_DTYPES = {bool: np.bool_, int: np.int64, float: np.float64}


@dataclass(frozen=True)
class _Range:
    minimum: float | None = None
    above: float | None = None
    infinite: bool = False
    """Whether infinity is allowed, which JSON writes as ``null``."""

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
        choices: tuple[str, ...] = (),
    ) -> None:
        super().__init__(minimum, above, infinite)
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "choices", choices)

    def read(self, value: Any, dims: dict[str, int]) -> Any:
        if self.kind is str:
            if not isinstance(value, str) or value not in self.choices:
                raise ValueError(f"got {value!r}, must be one of {', '.join(self.choices)}")
            return self.choices[self.choices.index(value)]
        array = _numbers(value, self.kind, self.infinite)
        if array.ndim:
            raise ValueError(f"got an array of shape {array.shape}, must be {_KIND_NAMES[self.kind]}")
        complaint = self.complaint(array)
        if complaint:
            raise ValueError(f"got {array.item()!r}, must be {complaint[1]}")
        return _frozen(array).item()

    def write(self, value: Any) -> Any:
        return None if isinstance(value, float) and math.isinf(value) else value


@dataclass(frozen=True)
class Array(_Range):
    """An array of a declared shape, such as ``"n k"`` or ``"n+q k"`` or ``"q 2"``.

    Of numbers, truth values or, with ``choices``, a few words.
    """

    kind: type = float
    shape: str = ""
    empty: bool = False
    """Whether the array may have no entries (no pairs, no servers chosen)."""
    index_of: str = ""
    """Dimension that the entries count positions in, such as ``"n"`` for job numbers."""
    choices: tuple[str, ...] = ()

    def __init__(
        self,
        kind: type,
        shape: str,
        *,
        minimum: float | None = None,
        above: float | None = None,
        infinite: bool = False,
        empty: bool = False,
        index_of: str = "",
        choices: tuple[str, ...] = (),
    ) -> None:
        super().__init__(0 if index_of else minimum, above, infinite)
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "empty", empty)
        object.__setattr__(self, "index_of", index_of)
        object.__setattr__(self, "choices", choices)

    def read(self, value: Any, dims: dict[str, int]) -> NDArray[Any]:
        array = _words(value, self.choices) if self.kind is str else _numbers(value, self.kind, self.infinite)
        wanted = self.shape.split()
        if array.size == 0 and not self.empty:
            raise ValueError(f"got shape {array.shape}, must have at least one entry")
        if array.shape == (0,) and len(wanted) > 1:
            # JSON writes an array without entries as [], whatever its other dimensions.
            array = array.reshape([0, *(_length(dim, dims) or 0 for dim in wanted[1:])])
        if array.ndim != len(wanted) or any(
            _length(dim, dims, bind=got) not in (got, None) for dim, got in zip(wanted, array.shape, strict=True)
        ):
            sizes = {dim: _length(dim, dims) for dim in wanted if not dim.isdigit()}
            known = ", ".join(f"{dim} = {size}" for dim, size in sizes.items() if size is not None)
            must = f"({', '.join(wanted)}{',' if len(wanted) == 1 else ''})"
            raise ValueError(f"got shape {array.shape}, must be {must}" + (f" with {known}" if known else ""))
        complaint = self.complaint(array)
        if complaint:
            index, must = complaint
            raise ValueError(f"got {array[index].item()!r} at index {_show(index)}, must be {must}")
        return _frozen(array)

    def write(self, value: NDArray[Any]) -> Any:
        if value.dtype.kind == "f" and np.isinf(value).any():
            listed = value.astype(object)
            listed[np.isinf(value)] = None
            return listed.tolist()
        return value.tolist()


class Ragged(Array):
    """One array per job (or server, ...): the first dimension counts them, the second may differ."""

    def read(self, value: Any, dims: dict[str, int]) -> Any:
        listed = value.ndim > 0 if isinstance(value, np.ndarray) else isinstance(value, Sequence)
        if not listed or isinstance(value, (str, bytes)):
            raise ValueError(f"got {type(value).__name__}, must be a sequence of arrays")
        first, _, *rest = self.shape.split()
        if _length(first, dims, bind=len(value)) != len(value):
            raise ValueError(f"got {len(value)} arrays, must be {first} = {_length(first, dims)}")
        one = Array(
            self.kind,
            " ".join(["_", *rest]),
            minimum=self.minimum,
            above=self.above,
            infinite=self.infinite,
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
        return [super(Ragged, self).write(row) for row in value]


def _numbers(value: Any, kind: type, infinite: bool) -> NDArray[Any]:
    """``value`` as an array of the wanted kind; numbers are never cut or guessed to fit."""
    if np.ma.is_masked(value):
        raise ValueError("got an array with masked entries, must have a number in each")
    if isinstance(value, np.ndarray) and value.dtype == _DTYPES[kind]:
        return value
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
    array = np.asarray(value, object)
    for index, entry in np.ndenumerate(array):
        if not isinstance(entry, str) or entry not in choices:
            at = f" at index {_show(index)}" if index else ""
            raise ValueError(f"got {entry!r}{at}, must be one of {', '.join(choices)}")
    # One width whatever the words, so that equal content has one digest.
    return array.astype(f"<U{max(map(len, choices))}")


def _null_to_infinity(value: Any) -> Any:
    if value is None:
        return math.inf
    if isinstance(value, (list, tuple)):
        return [_null_to_infinity(entry) for entry in value]
    return value


def _types(value: Any) -> set[type]:
    """Types of the entries of nested lists."""
    if not isinstance(value, (list, tuple)):
        return {type(value)}
    types = set(map(type, value))
    return types if types.isdisjoint({list, tuple}) else types.union(*map(_types, value))


def _sample(array: NDArray[Any], allowed: str) -> str:
    """The first entry that is not of an allowed kind, for an error message."""
    whole = "i" in allowed and "f" not in allowed
    for index, entry in np.ndenumerate(array.astype(object)):
        if whole and isinstance(entry, float) and entry % 1 == 0 and abs(entry) < 2**53:
            continue
        if np.asarray(entry).dtype.kind not in allowed:
            at = f" at index {_show(index)}" if index else ""
            return f"{entry!r}{at}"
    return f"an array of {array.dtype}"


def _show(index: tuple[int, ...]) -> str:
    return "[" + ", ".join(map(str, index)) + "]"


def _length(dim: str, dims: dict[str, int], bind: int | None = None) -> int | None:
    """Length of a dimension such as ``n``, ``2`` or ``n+q``; a letter seen first takes ``bind``."""
    if "+" in dim:
        parts = [_length(part, dims) for part in dim.split("+")]
        return None if None in parts else sum(part for part in parts if part is not None)
    if dim.isdigit():
        return int(dim)
    if dim not in dims and bind is not None:
        dims[dim] = bind
    return dims.get(dim)


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only copy in C order; -0.0 becomes 0.0 so that equal content has one digest."""
    array = np.array(array, order="C")
    if array.dtype.kind == "f":
        array += 0.0
    array.setflags(write=False)
    return array


@dataclass(frozen=True)
class _Unset:
    fill: Callable[[dict[str, int]], Any]


def default(fill: Callable[[dict[str, int]], Any]) -> Any:
    """A field that may be left out; ``fill`` makes its value from the dimensions known by then."""
    return _Unset(fill)


# --- records: what instances and plans share ---------------------------------------------------


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


@dataclass(frozen=True, eq=False)
class Record:
    """A frozen dataclass of declared fields: checked when made, with a JSON form."""

    _error: ClassVar[type[ValueError]] = ValueError

    def __post_init__(self) -> None:
        dims: dict[str, int] = {}
        pending = dict(declarations(type(self)))
        # Given fields first, so that the defaults find every dimension known.
        for given in (True, False):
            for name, declared in list(pending.items()):
                value = getattr(self, name)
                if isinstance(value, _Unset) == given:
                    continue
                if isinstance(value, _Unset):
                    value = value.fill(dims)
                if value is not None or not isinstance(declared, Ragged):
                    try:
                        value = declared.read(value, dims)
                    except ValueError as error:
                        raise self._error(f"{type(self).__name__}.{name}: {error}") from None
                object.__setattr__(self, name, value)
                del pending[name]
        object.__setattr__(self, "_dims", dims)
        for name, declared in declarations(type(self)).items():
            value = getattr(self, name)
            if not isinstance(declared, Array) or value is None:
                continue
            if "+" in declared.shape:
                # Such a length may have been unknown until the defaults of other fields were read.
                try:
                    declared.read(value, dims)
                except ValueError as error:
                    raise self.refuse(name, str(error)) from None
            for indices in value if isinstance(value, tuple) else (value,):
                beyond = np.argwhere(indices >= dims[declared.index_of]) if declared.index_of in dims else np.zeros(0)
                if beyond.size:
                    at = tuple(int(i) for i in beyond[0])
                    limit = f"below {declared.index_of} = {dims[declared.index_of]}"
                    raise self.refuse(name, f"got {indices[at]} at index {_show(at)}, must be {limit}")
        self.check()

    @property
    def dims(self) -> dict[str, int]:
        """Length of each dimension that the declared shapes name, such as ``{"n": 3, "k": 2}``."""
        dims: dict[str, int] = self.__dict__["_dims"]
        return dims

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Pickling forgets that arrays are read-only.
        for value in state.values():
            for part in value if isinstance(value, tuple) else (value,):
                if isinstance(part, np.ndarray):
                    part.setflags(write=False)
        self.__dict__.update(state)

    def check(self) -> None:
        """Rules that tie several fields together; subclasses raise through :meth:`refuse`."""

    def refuse(self, field: str, message: str) -> ValueError:
        """The error to raise when ``field`` is inconsistent with the others."""
        return self._error(f"{type(self).__name__}.{field}: {message}")

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return isinstance(other, Record) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the type and the content, the same on every machine and for every run."""
        digest = hashlib.sha256(f"{type(self).__module__}.{type(self).__qualname__}".encode())
        for name in declarations(type(self)):
            value = getattr(self, name)
            digest.update(f"\n{name}:".encode())
            for part in value if isinstance(value, tuple) else (value,):
                if isinstance(part, np.ndarray):
                    little = part.dtype.newbyteorder("<")
                    digest.update(f"{little.str}{part.shape}".encode())
                    digest.update(part.astype(little, copy=False).tobytes())
                else:
                    digest.update(repr(part).encode())
        return digest.hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """The JSON form: nested lists and numbers; infinity is None."""
        return {
            name: None if getattr(self, name) is None else declared.write(getattr(self, name))
            for name, declared in declarations(type(self)).items()
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read the JSON form.

        Raises
        ------
        InstanceError or PlanError
            When a field is unknown, missing, or has a value that it cannot have.
        """
        if not isinstance(data, Mapping):
            raise cls._error(f"{cls.__name__}: got {type(data).__name__}, must be a JSON object")
        known = {field.name: field for field in fields(cls)}
        for name in data:
            if name not in known:
                raise cls._error(f"{cls.__name__}: unknown field {name!r}{nearest(str(name), known)}")
        for name, field in known.items():
            if name not in data and field.default is MISSING:
                raise cls._error(f"{cls.__name__}: field {name!r} is missing")
        return cls(**data)


@dataclass(frozen=True, eq=False)
class Plan(Record):
    """Decisions for an instance; what they are worth is the instance's to say."""

    _error: ClassVar[type[ValueError]] = PlanError


P = TypeVar("P", bound=Plan)


@dataclass(frozen=True, eq=False)
class Instance(Record, Generic[P]):
    """The data of one problem, and the judge of its plans.

    Subclasses set ``problem``, ``sense`` and ``plan_type``, and write :meth:`value` and
    :meth:`broken_rules`.
    """

    _error: ClassVar[type[ValueError]] = InstanceError
    problem: ClassVar[str]
    sense: ClassVar[str]
    plan_type: ClassVar[type[Plan]]

    def objective(self, plan: P) -> float:
        """Value of ``plan``, computed from the plan and the data alone.

        Raises
        ------
        PlanError
            When ``plan`` is of another type or size, so that it has no value here.
        """
        misfit = self._misfit(plan)
        if misfit:
            raise PlanError(misfit)
        return float(self.value(plan))

    def violations(self, plan: P) -> list[Violation]:
        """Rules that ``plan`` breaks, each with its index and amount; empty when it is feasible.

        Raises
        ------
        PlanError
            When ``plan`` is of another type or size, so that the rules cannot be applied.
        """
        misfit = self._misfit(plan)
        if misfit:
            raise PlanError(misfit)
        return list(self.broken_rules(plan))

    def value(self, plan: P) -> float:
        raise NotImplementedError

    def broken_rules(self, plan: P) -> Iterator[Violation] | list[Violation]:
        raise NotImplementedError

    def plan_dims(self) -> dict[str, int]:
        """Lengths that the dimensions of a plan's fields must have for this instance."""
        return dict(self.dims)

    def _misfit(self, plan: object) -> str:
        if not isinstance(plan, self.plan_type):
            return f"{self.problem}: a plan must be a {self.plan_type.__name__}, got {type(plan).__name__}"
        mine = self.plan_dims()
        for name, declared in declarations(self.plan_type).items():
            if isinstance(declared, Array):
                value = getattr(plan, name)
                if value is None:
                    continue
                for axis, dim in enumerate(declared.shape.split()):
                    if isinstance(declared, Ragged) and axis:
                        break
                    got = len(value) if isinstance(value, tuple) else value.shape[axis]
                    must = _length(dim, mine)
                    if must is not None and must != got:
                        return (
                            f"{type(plan).__name__}.{name}: got length {got} in dimension {dim}, "
                            f"this instance has {dim} = {must}"
                        )
        return ""

    def to_dict(self) -> dict[str, Any]:
        return {"problem": self.problem, **super().to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        if isinstance(data, Mapping):
            problem = data.get("problem", cls.problem)
            if problem != cls.problem:
                raise InstanceError(f"{cls.__name__}: got problem {problem!r}, must be {cls.problem!r}")
            data = {name: value for name, value in data.items() if name != "problem"}
        return super().from_dict(data)


def nearest(name: str, known: Any) -> str:
    """`` (did you mean 'x'?)`` when a known name is close to ``name``, else nothing."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
