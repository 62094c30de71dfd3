"""Base classes of instances and plans.

An *instance* is the data of one problem, a *plan* is a set of decisions for it.  Both are
frozen dataclasses whose fields are declared once (:mod:`instances.schema`)::

    @dataclass(frozen=True, eq=False)
    class Reclaim(Instance[ReclaimPlan]):
        problem = "aryl.reclaim"
        sense = "min"
        plan_type = ReclaimPlan

        hosts: Annotated[BoolArray, Array(bool, "n s")]
        gpus: Annotated[IntArray, Array(int, "n s", minimum=0)]
        demand: Annotated[int, Scalar(int, minimum=0)]

A problem writes what is its own into hooks, whose names begin with an underscore: ``_check``,
``_value``, ``_broken_rules``, ``_plan_dims`` and ``_draw``.  Users call ``objective``, ``violations``
and ``plot``.
"""

from __future__ import annotations

import copy
import hashlib
import html
import inspect
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Self, TypeVar

import numpy as np

from instances.arithmetic import product, total
from instances.schema import (
    JOBS,
    LARGEST,
    Array,
    Ragged,
    Scalar,
    Unset,
    declarations,
    length,
    native,
    nearest,
    quoted,
    show,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = [
    "MOST_SHOWN",
    "OPTIMALITY_TOLERANCE",
    "ROUNDING",
    "TOLERANCE",
    "WIDER",
    "Instance",
    "InstanceError",
    "Plan",
    "PlanError",
    "Record",
    "Sense",
    "Violation",
    "agree",
    "exceeding",
    "product",
    "total",
    "unequal",
    "widened",
]

Sense = Literal["min", "max"]
"""The better values: smaller or greater ones."""

TOLERANCE = 1e-9
"""By how much a rule about continuous quantities may be missed, relative to the size of what its own row adds up.

It is what sums of floating-point numbers may owe to rounding.  Rules about whole numbers have none, and
a zero is a zero.
"""

WIDER = 3 * TOLERANCE
"""By how much limits are widened for a bound: once for the limit, once for what is added up, and a little for
their own rounding."""

OPTIMALITY_TOLERANCE = 1e-6
"""The relative difference up to which a value and a bound count as equal."""

ROUNDING = 1e-9
"""The most that a sum may owe to rounding, relative to the size of its terms."""


def agree(value: float, bound: float, *, size: float = 0.0) -> bool:
    """Return whether two objective values are equal within :data:`OPTIMALITY_TOLERANCE`, relative to the larger.

    Parameters
    ----------
    value, bound : float
    size : float
        An ordinary value of the objective, where sums of terms can be zero but for rounding: values that differ
        by up to 1e-9 of it are equal.  Without one, nothing but zero equals zero, in whatever unit values are.
    """
    if value == bound:
        return True
    if math.isinf(value) or math.isinf(bound):
        return False
    return abs(value - bound) <= OPTIMALITY_TOLERANCE * max(abs(value), abs(bound)) + ROUNDING * size


def widened(amounts: Any, limit: float) -> float:
    """``limit`` with what a plan may exceed it by, so that a bound holds for all plans that the judge accepts.

    Parameters
    ----------
    amounts : array
        What is added up, at least 0.  Sums of whole numbers are exact, and their limits are kept.
    limit : float
    """
    whole = not np.any(np.asarray(amounts, float) % 1) and limit % 1 == 0
    return limit if whole else limit * (1 + WIDER)


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


def exceeding(rule: str, values: Any, limits: Any, *, size: Any = None) -> list[Violation]:
    """Violations of ``values <= limits``, elementwise.

    Whole numbers are compared exactly.  Others may miss their limit by :data:`TOLERANCE`, relative to
    the limit or to ``size``, whichever is greater; where both are 0, by nothing.

    Parameters
    ----------
    rule : str
    values, limits : array
        Of equal shape, or one number for all.  That something is not negative is ``exceeding(rule, 0, it)``.
    size : array, optional
        Sizes of what the rows add up, where that is more than their limits: sums of absolute values.
    """
    values, limits = np.asarray(values), np.asarray(limits)
    if values.dtype.kind in "biuO" and limits.dtype.kind in "biuO":
        if not np.asarray(values > limits, bool).any():
            return []
        values, limits = np.broadcast_arrays(values, limits)
        # Differences of 64-bit numbers may overflow; Python's do not.
        return [
            Violation(rule, tuple(int(i) for i in index), float(int(values[tuple(index)]) - int(limits[tuple(index)])))
            for index in np.argwhere(np.asarray(values > limits, bool))
        ]
    if (values <= limits).all():
        return []
    values, limits = np.broadcast_arrays(values.astype(float), limits.astype(float))
    with np.errstate(invalid="ignore"):
        excess = values - limits
    scale = np.abs(np.where(np.isfinite(limits), limits, 0.0))
    if size is not None:
        scale = np.maximum(scale, np.asarray(size, float))
    # The first comparison is for infinite values, whose difference is no number.
    return [
        Violation(rule, tuple(int(i) for i in index), float(excess[tuple(index)]))
        for index in np.argwhere(~((values <= limits) | (excess <= TOLERANCE * scale)))
    ]


def unequal(rule: str, values: Any, wanted: Any) -> list[Violation]:
    """Violations of ``values == wanted`` for whole numbers, elementwise and exactly."""
    return exceeding(rule, abs(np.asarray(values).astype(object) - np.asarray(wanted)), 0)


# --- records: what instances and plans share ---------------------------------------------------


@dataclass(frozen=True, eq=False)
class Record:
    """A frozen dataclass of declared fields: checked when made, with a JSON form."""

    _error: ClassVar[type[ValueError]] = ValueError

    def __post_init__(self) -> None:
        dims: dict[str, int] = {}
        # Arrays without entries last: their other dimensions are those of the other fields.
        pending = dict(
            sorted(declarations(type(self)).items(), key=lambda field: _without_entries(getattr(self, field[0])))
        )
        # Such a length as n+q may be unknown until the defaults of other fields are read.
        again = []
        # Given fields first, so that the defaults find every dimension known.
        for given in (True, False):
            for name, declared in list(pending.items()):
                value = getattr(self, name)
                if isinstance(value, Unset) == given:
                    continue
                if isinstance(value, Unset):
                    value = value.fill(dims)
                # None stands for a table that is left out, where the field may be.
                if value is not None or not isinstance(declared, Ragged) or _needed(type(self), name):
                    try:
                        value = declared.read(value, dims)
                    except ValueError as error:
                        raise self._error(f"{type(self).__name__}.{name}: {error}") from None
                if isinstance(declared, Array) and None in (length(dim, dims) for dim in declared.shape.split()):
                    again.append(name)
                object.__setattr__(self, name, value)
                del pending[name]
        object.__setattr__(self, "_dims", dims)
        for name, declared in declarations(type(self)).items():
            value = getattr(self, name)
            if not isinstance(declared, Array) or value is None:
                continue
            if name in again and None not in (length(dim, dims) for dim in declared.shape.split()):
                try:
                    declared.read(value, dims)
                except ValueError as error:
                    raise self.refuse(name, str(error)) from None
            for indices in value if isinstance(value, tuple) else (value,):
                most = dims.get(declared.index_of)
                if most is not None and indices.size and indices.max() >= most:
                    at = tuple(int(i) for i in np.argwhere(indices >= most)[0])
                    limit = f"below {declared.index_of} = {most}"
                    raise self.refuse(name, f"got {indices[at]} at index {show(at)}, must be {limit}")
        returned = self._check()  # type: ignore[func-returns-value]
        if returned is not None or self.__dict__.pop("_refused", None) is not None:
            raise TypeError(
                f"{type(self).__name__}._check: refuse() makes an error that must be raised: raise self.refuse(...)"
            )

    @property
    def dims(self) -> dict[str, int]:
        """Length of each dimension that the declared shapes name, such as ``{"n": 3, "k": 2}``."""
        dims: dict[str, int] = self.__dict__["_dims"]
        return dims

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            self.__dict__[name] = tuple(map(_unpickled, value)) if type(value) is tuple else _unpickled(value)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # A dataclass would write a ``__repr__`` with all entries of all arrays.
        if "__repr__" not in vars(cls):
            cls.__repr__ = Record.__repr__  # type: ignore[method-assign]

    def _check(self) -> None:
        """Check rules that tie several fields together, a hook; raise through :meth:`refuse`."""

    def _identity(self) -> str:
        """Return the name of what the content belongs to, for the digest; a class may be renamed or moved."""
        return type(self).__name__

    def refuse(self, field: str, message: str) -> ValueError:
        """Return the error to raise when ``field`` is inconsistent with the others."""
        # Told to who made the record: the error that was not raised would let it pass.
        object.__setattr__(self, "_refused", field)
        return self._error(f"{type(self).__name__}.{field}: {message}")

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return isinstance(other, Record) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def _stored(self) -> list[str]:
        """Return the fields of digest and JSON form: all but those that came later and are as if they were left out."""
        defaults = {field.name: field.default for field in fields(self)}
        return [
            name
            for name in declarations(type(self))
            if not (isinstance(unset := defaults[name], Unset) and unset.later)
            or not np.array_equal(getattr(self, name), unset.fill(self.dims))
        ]

    @cached_property
    def digest(self) -> str:
        """SHA-256 over what it is and its content, the same on every machine and for every run."""
        digest = hashlib.sha256(self._identity().encode())
        for name in self._stored():
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

    def __repr__(self) -> str:
        shown = [f"{name}={_shown(getattr(self, name))}" for name in declarations(type(self))]
        return f"{type(self).__name__}({', '.join(shown)})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td><code>{name}</code></td><td>{_extent(getattr(self, name), declared)}</td>"
            f"<td>{html.escape(_shown(getattr(self, name), most=24))}</td></tr>"
            for name, declared in declarations(type(self)).items()
        )
        return f"<table><caption>{html.escape(self._caption())}</caption>{rows}</table>"

    def _caption(self) -> str:
        return type(self).__name__

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form: nested lists and numbers; infinity is None."""
        declared = declarations(type(self))
        return {
            name: None if getattr(self, name) is None else declared[name].write(getattr(self, name))
            for name in self._stored()
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
                raise cls._error(f"{cls.__name__}: unknown field {quoted(name)}{nearest(str(name), known)}")
        for name, field in known.items():
            if name not in data and field.default is MISSING:
                raise cls._error(f"{cls.__name__}: field {name!r} is missing")
        return cls(**data)


def _unpickled(value: Any) -> Any:
    """Return an array as it was before it was pickled, read-only; anything else as it is."""
    if not isinstance(value, np.ndarray):
        return value
    array = native(value)
    array.setflags(write=False)
    return array


def _without_entries(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return bool(value.shape[:1] == (0,))
    return isinstance(value, (list, tuple)) and not value


def _zero(declared: Any, dims: dict[str, int]) -> Any:
    """Return a field's value when nothing is decided; lengths that are open are 0."""
    if isinstance(declared, Ragged):
        return [[]] * (length(declared.shape.split()[0], dims) or 0)
    if isinstance(declared, Array):
        # They are 0 in sums, too: a schedule of no intervals has a beginning.
        known = dict.fromkeys(declared.shape.replace("+", " ").split(), 0) | dims
        shape = [length(dim, known) for dim in declared.shape.split()]
        return np.full(shape, declared.choices[0] if declared.choices else declared.kind(0))
    return declared.choices[0] if declared.choices else declared.kind(0)


def _needed(cls: type[Record], name: str) -> bool:
    """Return whether a field may not be None: only one whose default is None may."""
    return cls.__dataclass_fields__[name].default is not None


MOST_SHOWN = 12
"""Entries of an array up to which ``repr`` writes them out."""


def _shown(value: Any, most: int = MOST_SHOWN) -> str:
    """Return a field's value in a line: small arrays written out, others by kind and shape."""
    if isinstance(value, np.ndarray):
        if value.size <= most:
            return str(value.tolist())
        return f"<{value.dtype.name.rstrip('0123456789') or 'float'} array {' × '.join(map(str, value.shape))}>"
    if isinstance(value, tuple):
        if sum(part.size for part in value) <= most:
            return str([part.tolist() for part in value])
        return f"<{len(value)} arrays>"
    return repr(value)


def _extent(value: Any, declared: Any) -> str:
    """Shape of an array with the names of its dimensions, such as ``n × s = 24 × 6``."""
    if value is None or isinstance(declared, Scalar):
        return ""
    sizes = [len(value)] if isinstance(value, tuple) else list(value.shape)
    names = declared.shape.split()[: len(sizes)]
    return f"{' × '.join(names)} = {' × '.join(map(str, sizes))}"


@dataclass(frozen=True, eq=False)
class Plan(Record):
    """Decisions for an instance; what they are worth is the instance's to say."""

    _error: ClassVar[type[ValueError]] = PlanError


P = TypeVar("P", bound=Plan)


@dataclass(frozen=True, eq=False)
class Instance(Record, Generic[P]):
    """The data of one problem, and the judge of its plans.

    Subclasses set ``problem``, ``sense`` and ``plan_type``, and write the hooks ``_value`` and
    ``_broken_rules``.
    """

    _error: ClassVar[type[ValueError]] = InstanceError
    problem: ClassVar[str]
    sense: ClassVar[Sense]
    plan_type: ClassVar[type[Plan]]
    measure: ClassVar[str] = "value"
    """The objective and its unit, as the titles of pictures say it: "average completion time, s"."""
    rows: ClassVar[str] = "n"
    """Dimension whose members are the rows of :meth:`Instance.to_frame`."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "origin" in vars(cls) or "origin" in inspect.get_annotations(cls):
            raise TypeError(
                f"{cls.__name__}.origin: every instance has one, which tells where its data are from: "
                "choose another name"
            )

    @property
    def origin(self) -> Mapping[str, Any] | None:
        """The source of the data, as their reader tells it; None where nothing is told.

        It is no part of the content: instances of equal data are equal, with one digest, wherever they are from.
        What ``dataclasses.replace`` makes of an instance is other data, and has none.
        """
        origin: Mapping[str, Any] | None = self.__dict__.get("_origin")
        return origin

    def with_origin(self, origin: Mapping[str, Any]) -> Self:
        """Return the same instance with the source of its data, which its JSON form keeps.

        Parameters
        ----------
        origin : mapping
            Of JSON's types.  Readers of real data tell ``trace`` and ``throughputs`` (how each was read: file, hash,
            rows, and those left out), ``reader`` and ``options``, ``jobs`` (their ids, or rows of the trace) and
            ``repairs`` (what was changed, and for how many jobs).

        Raises
        ------
        InstanceError
            When it is no JSON object.
        """
        try:
            told = json.loads(json.dumps(origin, allow_nan=False))
        except (TypeError, ValueError, RecursionError) as error:
            raise self.refuse("origin", f"must be of JSON's types: {error}") from None
        if not isinstance(told, dict):
            raise self.refuse("origin", f"got {quoted(origin)}, must be a JSON object")
        carrying = copy.copy(self)
        object.__setattr__(carrying, "_origin", told)
        return carrying

    def objective(self, plan: P) -> float:
        """Value of ``plan``, computed from the plan and the data alone; 0 where there are no jobs.

        Raises
        ------
        PlanError
            When ``plan`` is of another type or size, so that it has no value here.
        """
        self._check_fit(plan)
        return 0.0 if self.dims.get(JOBS) == 0 else float(self._value(plan))

    def violations(self, plan: P) -> list[Violation]:
        """Rules that ``plan`` breaks, each with its index and amount; empty when it is feasible.

        Raises
        ------
        PlanError
            When ``plan`` is of another type or size, so that the rules cannot be applied.
        """
        self._check_fit(plan)
        return list(self._broken_rules(self._in_full(plan)))

    def plot(self, plan: P | None = None, *, ax: Axes | None = None) -> Axes:
        """Draw the instance, or a plan for it, feasible or not.

        The title names the problem, and says what the plan is worth or the first rule that it breaks.

        Parameters
        ----------
        plan : Plan, optional
            Without one, the picture shows the data alone.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Raises
        ------
        PlanError
            When ``plan`` is of another type or size.
        """
        if plan is not None:
            self._check_fit(plan)
        if ax is None:
            from matplotlib import pyplot

            _, ax = pyplot.subplots(layout="constrained")
        from instances.pictures import headline

        self._draw(ax, plan)
        ax.set_title(headline(self, plan), fontsize="medium")
        return ax

    def to_frame(self) -> pd.DataFrame:
        """Return the instance as a table with a row for each job; what is no job's own is in ``attrs``.

        A field of several columns becomes ``throughputs_0``, ``throughputs_1``, ...

        Raises
        ------
        InstanceError
            When no field has a row for each job.
        """
        import pandas as pd

        columns: dict[str, Any] = {}
        others: dict[str, Any] = {}
        for name, declared in declarations(type(self)).items():
            value = getattr(self, name)
            if value is None or not _by_row(declared, self.rows):
                others[name] = None if value is None else declared.write(value)
            elif isinstance(value, tuple):
                columns[name] = pd.Series([part.tolist() for part in value], dtype=object)
            elif value.ndim == 1:
                columns[name] = value
            else:
                flat = value.reshape(len(value), -1)
                columns |= {f"{name}_{column}": flat[:, column] for column in range(flat.shape[1])}
        if not columns:
            raise InstanceError(f"{self.problem}: no field has a row for each job")
        frame = pd.DataFrame(columns)
        frame.index.name = "job"
        frame.attrs.update({"problem": self.problem, **others})
        return frame

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, **others: Any) -> Self:
        """Return an instance from a table with a row for each job, as :meth:`Instance.to_frame` writes it.

        Jobs are numbered by their rows, whatever the index, or a column ``job`` from a file, says.

        Parameters
        ----------
        frame : DataFrame
            A column for each field of the jobs, or ``name_0``, ``name_1``, ... for one of several
            columns.  A field of any number of entries is a column of lists, or of their JSON text.
        **others
            The other fields; those not given are taken from ``frame.attrs``.

        Raises
        ------
        InstanceError
            When a column is unknown or missing, or holds what it cannot hold.
        """
        known = declarations(cls)
        by_row = [name for name, declared in known.items() if _by_row(declared, cls.rows)]
        carried = {str(name): value for name, value in frame.attrs.items() if name in known or name == "problem"}
        values = carried | others
        columns: dict[str, list[str]] = {}
        for column in map(str, frame.columns):
            stem, _, number = column.rpartition("_")
            name = stem if column not in known and number.isdigit() else column
            if name in by_row:
                columns.setdefault(name, []).append(column)
            elif column != "job":
                raise InstanceError(f"{cls.__name__}: unknown column {column!r}{nearest(name, by_row)}")
        for name, found in columns.items():
            numbered = [f"{name}_{number}" for number in range(len(found))]
            if name in others:
                raise InstanceError(f"{cls.__name__}.{name}: given twice, as column {found[0]!r} and as a keyword")
            if found != [name] and sorted(found) != sorted(numbered):
                got = ", ".join(found[:6])
                raise InstanceError(f"{cls.__name__}.{name}: got columns {got}, must be {name}_0, {name}_1, ...")
            if isinstance(known[name], Ragged):
                values[name] = [_entries(cell) for cell in frame[found[0]].tolist()]
            else:
                cells = frame[name if found == [name] else numbered].to_numpy()
                # Columns of several types, and pandas' own types of numbers, come as objects.
                values[name] = cells.tolist() if cells.dtype == object else cells
        return cls.from_dict(values)

    def _refuse_tables(self, field: str, count: int, what: str) -> None:
        """Refuse a number that asks for tables of so many entries for each job, before any is made."""
        jobs = self.dims[JOBS]
        most = LARGEST // max(1, jobs)
        if count > most:
            raise self.refuse(field, f"got {count:,} {what}, must be at most {most:,} for {jobs:,} jobs")

    def _value(self, plan: P) -> float:
        """Return the value of a plan that fits; a hook."""
        raise NotImplementedError

    def _broken_rules(self, plan: P) -> Iterator[Violation] | list[Violation]:
        """Yield the rules that a plan that fits breaks; a hook."""
        raise NotImplementedError

    def nothing(self) -> P:
        """Return the plan in which every number is 0, every choice the first, and no list has an entry.

        It is the only plan of an instance without jobs, where nothing else has to be decided.
        """
        dims = self._plan_dims()
        made: Any = self.plan_type(**{name: _zero(one, dims) for name, one in declarations(self.plan_type).items()})
        return made  # type: ignore[no-any-return]

    def _plan_dims(self) -> dict[str, int]:
        """Return the lengths that the dimensions of a plan's fields must have for this instance; a hook."""
        return dict(self.dims)

    def _draw(self, axes: Axes, plan: P | None) -> None:
        """Draw the problem's own picture, a hook; a table of the fields where a problem has none.

        The plan fits but may break any rule.  The title is set by :meth:`plot`.
        """
        from instances.pictures import table

        table(axes, self, plan)

    def _identity(self) -> str:
        return self.problem

    def _caption(self) -> str:
        return f"{self.problem} ({'smaller' if self.sense == 'min' else 'greater'} is better)"

    def _in_full(self, plan: P) -> P:
        """``plan``, in which arrays without rows have the columns that they have here."""
        if self.dims.get(JOBS) != 0:
            return plan
        full = copy.copy(plan)
        mine = self._plan_dims()
        for name, declared in declarations(self.plan_type).items():
            value = getattr(plan, name)
            if isinstance(value, np.ndarray) and len(value) == 0:
                sizes = [length(dim, mine) or 0 for dim in declared.shape.split()[1:]]
                object.__setattr__(full, name, value.reshape([0, *sizes]))
        return full

    def _check_fit(self, plan: object) -> None:
        """Raise PlanError for a plan of another type or size."""
        if not isinstance(plan, self.plan_type):
            raise PlanError(f"{self.problem}: a plan must be a {self.plan_type.__name__}, got {type(plan).__name__}")
        mine = self._plan_dims()
        for name, declared in declarations(self.plan_type).items():
            value = getattr(plan, name)
            if value is None or not isinstance(declared, Array):
                continue
            for axis, dim in enumerate(declared.shape.split()):
                if axis and (isinstance(declared, Ragged) or not len(value)):
                    break
                got = value.shape[axis] if axis else len(value)
                must = length(dim, mine)
                if must is not None and must != got:
                    raise PlanError(
                        f"{type(plan).__name__}.{name}: got length {got} in dimension {dim}, "
                        f"this instance has {dim} = {must}"
                    )

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, with the problem's name and, where it is known, the origin."""
        told = {} if self.origin is None else {"origin": self.origin}
        return {"problem": self.problem, **super().to_dict(), **told}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        if isinstance(data, Mapping):
            problem = data.get("problem", cls.problem)
            if problem != cls.problem:
                raise InstanceError(f"{cls.__name__}: got problem {quoted(problem)}, must be {cls.problem!r}")
            origin = data.get("origin")
            data = {name: value for name, value in data.items() if name not in ("problem", "origin")}
            made = super().from_dict(data)
            return made if origin is None else made.with_origin(origin)
        return super().from_dict(data)


def _by_row(declared: Any, rows: str) -> bool:
    """Return whether a field has an entry, or a row of entries, for each member of ``rows``."""
    return isinstance(declared, Array) and declared.shape.split()[0] == rows


def _entries(cell: Any) -> Any:
    """Return a table's cell of several numbers: a list, an array (from Parquet), or JSON (from CSV)."""
    if isinstance(cell, np.ndarray):
        return cell.tolist()
    try:
        return json.loads(cell) if isinstance(cell, str) else cell
    except ValueError:
        return cell
