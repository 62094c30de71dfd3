"""Exact numbers, fields of given shapes, rules that count what they forgive, and searches that end.

Every number of a file is taken as what it means in the library, the double nearest to its decimals, and from there on
all arithmetic is with whole numbers and fractions.  A rule about whole numbers holds or does not.  A rule about other
quantities may be missed by ``TOLERANCE``, relative to its limit or to the size of what it adds up, as the library's
judge allows; whatever uses that is counted.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import struct
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, NoReturn, TypeAlias

Number: TypeAlias = int | Fraction | float
"""An exact number; the only floats are infinite ones."""

Record: TypeAlias = SimpleNamespace
"""The fields of an instance, a plan or prices."""

Group: TypeAlias = list[tuple[int, tuple[int, ...]]]
"""Options of which one is chosen: what each is worth, and what it takes of each resource."""

TOLERANCE = Fraction(1, 10**9)
"""By how much a rule about continuous quantities may be missed, relative to its size."""

CLOSED = Fraction(1, 10**6)
"""How far a value and a bound may lie apart, relative to the larger, and still be equal."""

STEPS = 400_000
"""Steps that a search may take: a few seconds.  A size that needs more is not proven by a search."""

DEEPEST = 200
"""Parts within parts of prices: as many as any Python can follow, and more than there are."""

FEW_STEPS = 20_000
"""Steps that the search of an optimum may take where larger instances have a bound only: less than a second."""


class Malformed(ValueError):  # noqa: N818
    """A file that is not what it should be."""


class TooLarge(Exception):  # noqa: N818
    """A search that would take too long, which proves nothing."""


# --- files -----------------------------------------------------------------------------------

MOST_THINGS = 10_000_000
"""Numbers, words, lists and objects in a JSON text: an empty list is three letters, and takes thirty times as much."""


def parse(text: str) -> Any:
    """JSON with exact numbers: ints as they are, decimals as the fraction that is the nearest double."""
    if sum(map(text.count, ",[{:")) > MOST_THINGS:
        raise Malformed(f"more than {MOST_THINGS:,} numbers, words, lists and objects")
    try:
        return json.loads(text, parse_float=_nearest, parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"not JSON: {error}") from None


def _nearest(text: str) -> Fraction:
    number = float(text)
    if math.isinf(number):
        raise Malformed(f"{text} is beyond the numbers of a computer")
    return Fraction(number)


def _refused(text: str) -> NoReturn:
    raise Malformed(f"{text} is no number")


def fields(declared: Mapping[str, str], data: Any, dims: dict[str, int], *, what: str) -> Record:
    """Read the fields of a JSON object, checked against what is declared of them.

    A declaration is a kind and the letters of a shape, such as ``"int+ n s"``.  Kinds are bool, int, num and word;
    in an array, with the length of the longest that there may be.
    "+" is at least 0, "1" at least 1, ">" more than 0; "?" lets null stand for infinity, ``math.inf``.  "*" is an array
    of its own for each member of the first dimension; "!" lets the whole field be null; "~" lets an array be left out,
    which is true or 0 throughout then.  A letter that is seen for the first time takes the length that it finds.
    """
    if not isinstance(data, dict):
        raise Malformed(f"{what} is no JSON object")
    unknown = set(data) - set(declared) - {"problem", "origin"}
    missing = {name for name in set(declared) - set(data) if "~" not in declared[name]}
    if unknown or missing:
        raise Malformed(f"{what} has no field {min(missing)}" if missing else f"{what}: unknown field {min(unknown)}")
    made = SimpleNamespace()
    for name, declaration in declared.items():
        mark, *shape = declaration.split()
        kind = re.fullmatch(r"(bool|int|num|word\d*)([+1>]?)([?*!~]*)", mark)
        assert kind is not None, declaration
        value = data[name] if name in data else _left_out(kind[1], _lengths(shape, dims))
        if value is None and "!" in kind[3]:
            setattr(made, name, None)
            continue
        try:
            if "*" in kind[3]:
                dims.setdefault(shape[0], len(value))
                if not isinstance(value, list) or len(value) != dims[shape[0]]:
                    raise Malformed(f"must have {dims[shape[0]]} entries")
                read = [_array(kind, shape[1:], one, dict.fromkeys(shape[1:2], len(one)) | dims) for one in value]
            else:
                read = _array(kind, shape, value, dims)
        except (Malformed, TypeError, AttributeError) as error:
            raise Malformed(f"{what}: {name}: {error}") from None
        setattr(made, name, read)
    return made


def _lengths(shape: list[str], dims: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(sum(int(one) if one.isdigit() else dims[one] for one in length.split("+")) for length in shape)


def _left_out(kind: str, lengths: tuple[int, ...]) -> Any:
    """Return what an array is that may be left out, where it is."""
    return [_left_out(kind, lengths[1:]) for _ in range(lengths[0])] if lengths else kind == "bool" or 0


def _array(kind: re.Match[str], shape: list[str], value: Any, dims: dict[str, int]) -> Any:
    if not shape:
        return _entry(kind, value)
    if not isinstance(value, list):
        raise Malformed("must be a list")
    if shape[0].isdigit():
        length = int(shape[0])
    elif "+" in shape[0]:
        (length,) = _lengths(shape[:1], dims)
    else:
        length = dims.setdefault(shape[0], len(value))
    if len(value) != length:
        raise Malformed(f"has {len(value)} entries, must have {length}")
    return [_array(kind, shape[1:], one, dims) for one in value]


def _entry(kind: re.Match[str], value: Any) -> Any:
    name, least, more = kind.groups()
    if value is None and "?" in more:
        return math.inf
    if name.startswith("word"):
        if not isinstance(value, str):
            raise Malformed(f"{value!r} is no word")
        return value
    if name == "bool":
        if value not in (0, 1):
            raise Malformed(f"{value} is not true or false")
        return bool(value)
    if isinstance(value, bool) or not isinstance(value, (int, Fraction)):
        raise Malformed(f"{value!r} is no number")
    if name == "int":
        if value != int(value):
            raise Malformed(f"{float(value)} is not whole")
        value = int(value)
    else:
        # The library means doubles, whichever way they are written.
        value = Fraction(float(value)) if isinstance(value, int) else value
    if (least == "+" and value < 0) or (least == "1" and value < 1) or (least == ">" and value <= 0):
        raise Malformed(f"{float(value)} is too small")
    return value


_CODES = {"bool": ("|b1", "?"), "int": ("<i8", "q"), "num": ("<f8", "d")}
"""Names and codes of the numbers that a digest is over."""


def digest(name: str, declared: Mapping[str, str], order: Iterable[str], it: Record) -> str:
    """Return the SHA-256 by which the library tells instances apart: over the problem's name and its fields.

    A field that may be left out, and is as if it were, counts as left out.

    Parameters
    ----------
    name : str
        Of the problem.
    declared : mapping
        Of its fields.
    order : iterable of str
        The fields in the order of the instance's file.
    it : Record
        The instance.
    """
    found = hashlib.sha256(name.encode())
    for field in order:
        mark, *shape = declared[field].split()
        kind, value = mark.rstrip("+1>?*!~"), getattr(it, field)
        if "~" in mark and value == _left_out(kind, _lengths(shape, it.dims)):
            continue
        found.update(f"\n{field}:".encode())
        parts = (value,) if value is None or "*" not in mark else value
        for part in parts:
            if not shape or part is None:
                found.update(repr(float(part) if kind == "num" and part is not None else part).encode())
                continue
            lengths = shape[1:] if "*" in mark else shape
            dims = it.dims | ({lengths[0]: len(part)} if "*" in mark else {})
            found.update(_packed(kind, _lengths(lengths, dims), part))
    return found.hexdigest()


def _packed(kind: str, sizes: tuple[int, ...], part: Any) -> bytes:
    """Return an array's type, shape and content, as the library's arrays have them."""
    flat = part
    for _ in sizes[1:]:
        flat = [one for row in flat for one in row]
    if kind.startswith("word"):
        most = int(kind.removeprefix("word"))
        return f"<U{most}{sizes}".encode() + b"".join(one.ljust(most, "\0").encode("utf-32-le") for one in flat)
    code, letter = _CODES[kind]
    numbers = map(float, flat) if kind == "num" else flat
    return f"{code}{sizes}".encode() + struct.pack(f"<{len(flat)}{letter}", *numbers)


# --- rules -----------------------------------------------------------------------------------


class Rules:
    """The rules that a plan breaks, and those that it misses by no more than the tolerance."""

    def __init__(self) -> None:
        self.broken: list[str] = []
        self.missed: list[str] = []

    def require(self, rule: str, holds: bool) -> None:
        """Note a rule without a tolerance."""
        if not holds:
            self.broken.append(rule)

    def at_most(self, rule: str, value: Number, limit: Number, size: Number = 0) -> None:
        """``value <= limit``; of whole numbers exactly."""
        if value <= limit:
            return
        if isinstance(value, int) and isinstance(limit, int):
            self.broken.append(rule)
        elif value - limit <= TOLERANCE * max(magnitude(limit), size):
            self.missed.append(rule)
        else:
            self.broken.append(rule)


class Problem:
    """One problem: its fields, what a plan is worth, what it breaks, and what proves a bound.

    Attributes
    ----------
    sense : str
        "min" or "max".
    data, decisions : dict
        Fields of an instance and of a plan, as :func:`fields` reads them.
    priced : dict
        Fields of the prices that prove a bound; empty where none are known.
    divided, halves : dict and tuple of str
        Fields that divide the plans into two parts, and the names of the prices of either; empty where nothing does.
    linear : bool
        Whether there are prices that prove the optimum, of every instance.
    """

    sense = "min"
    data: Mapping[str, str] = {}
    decisions: Mapping[str, str] = {}
    priced: Mapping[str, str] = {}
    divided: Mapping[str, str] = {}
    halves: tuple[str, ...] = ()
    linear = False

    def instance(self, data: Any) -> Record:
        """Read an instance from JSON; ``dims`` of it are the lengths of its dimensions."""
        sizes: dict[str, int] = {}
        made = fields(self.data, data, sizes, what="instance")
        made.dims = sizes
        self.check(made)
        return made

    def plan(self, it: Record, data: Any) -> Record:
        """Read a plan for an instance from JSON."""
        return fields(self.decisions, data, dict(it.dims) | self.lengths(it), what="plan")

    def worth(self, it: Record, plan: Record) -> Number:
        """Return what a plan is worth; 0 where there are no jobs, infinite where a job never ends."""
        return Fraction(0) if it.dims.get("n") == 0 else self.value(it, plan)

    def verdict(self, it: Record, plan: Record) -> Rules:
        """Return the rules that a plan breaks, and those that it misses within the tolerance, as :class:`Rules`."""
        rules = Rules()
        self.broken(it, plan, rules)
        return rules

    def bound(self, it: Record, prices: Any) -> Number:
        """Return the bound that prices, from JSON, prove.

        Raises
        ------
        Malformed
            When they are no prices of this problem, or it has none.
        """
        read = self.prices(it, prices)
        return Fraction(0) if it.dims.get("n") == 0 else self.proven(it, read)

    def prices(self, it: Record, prices: Any, within: int = 0) -> Record:
        """Read prices for an instance from JSON, or those of both parts of its plans, which may be divided in turn."""
        if not self.priced:
            raise Malformed("prices: none are known for this problem")
        if within > DEEPEST:
            raise Malformed(f"prices: of parts within more than {DEEPEST} parts")
        if isinstance(prices, dict) and not prices.keys().isdisjoint(self.halves):
            rest = {name: told for name, told in prices.items() if name not in self.halves}
            read = fields(self.divided, rest, dict(it.dims), what="prices")
            read.halves = [self.prices(it, prices.get(name), within + 1) for name in self.halves]
            return read
        return fields(self.priced, prices, dict(it.dims) | self.lengths(it), what="prices")

    def unproven(self, it: Record, plan: Record, prices: Any) -> list[str]:
        """Return what prices leave open of a plan whose value is at their bound: nothing, where the value is all."""
        return []

    def searched(self, it: Record) -> Number:
        """Search for the bound; it is infinite where that proves that there is no plan.

        Raises
        ------
        TooLarge
            When it would take too many steps, or the problem has no search.
        """
        try:
            return Fraction(0) if self.is_free(it) else self.search(it)
        except RecursionError:
            raise TooLarge from None

    def optimum(self, it: Record) -> Number:
        """Return the best value that a plan can have; infinite where there is no plan.

        Raises
        ------
        TooLarge
            When the search would take too many steps, or the problem has none.
        """
        return Fraction(0) if self.is_free(it) else self.best(it)

    def is_free(self, it: Record) -> bool:
        """Return whether there are no jobs, so that a plan costs nothing and there is one."""
        return bool(it.dims.get("n") == 0)

    def merits(self, it: Record, plan: Record) -> list[Number]:
        """Return what plans are compared by, one number after the other: the value, where no more counts."""
        return [self.worth(it, plan)]

    def best_merits(self, it: Record) -> list[Number]:
        """Return the merits of an optimal plan; the first is infinite where there is no plan.

        Raises
        ------
        TooLarge
            When the search would take too many steps, or the problem has none.
        """
        return [self.optimum(it)]

    # What a problem writes:

    def check(self, it: Record) -> None:
        """Refuse fields that do not belong together, and add what follows from them."""

    def lengths(self, it: Record) -> dict[str, int]:
        """Lengths of a plan's dimensions that are no dimension of the instance."""
        return {}

    def value(self, it: Record, plan: Record) -> Number:
        """Return what a plan of at least one job is worth."""
        raise NotImplementedError

    def broken(self, it: Record, plan: Record, rules: Rules) -> None:
        """Tell the rules what a plan breaks."""
        raise NotImplementedError

    def proven(self, it: Record, prices: Record) -> Number:
        """Return the bound that prices prove."""
        raise NotImplementedError

    def search(self, it: Record) -> Number:
        """Search for the bound, of instances as large as it can be."""
        raise TooLarge

    def best(self, it: Record) -> Number:
        """Find the optimum of a small instance; by the search, but where that proves only a bound."""
        return self.searched(it)


def need(condition: bool, message: str) -> None:
    """Refuse an instance."""
    if not condition:
        raise Malformed(f"instance: {message}")


# --- searches --------------------------------------------------------------------------------


class Counter:
    """Steps of a search, the same on every machine, up to ``STEPS``."""

    def __init__(self, most: int = STEPS) -> None:
        self.left = most

    def step(self, count: int = 1) -> None:
        self.left -= count
        if self.left < 0 or time.monotonic() > _END.get():
            raise TooLarge


_END: ContextVar[float] = ContextVar("end of the time for searches", default=math.inf)


@contextmanager
def within(seconds: float | None) -> Iterator[None]:
    """Give the searches in here so many seconds beside their steps."""
    token = _END.set(math.inf if seconds is None else time.monotonic() + seconds)
    try:
        yield
    finally:
        _END.reset(token)


def whole(numbers: Iterable[Number]) -> tuple[list[int], int]:
    """Numbers as integers over one denominator: ``(integers, denominator)``."""
    numbers = list(numbers)
    denominator = math.lcm(*(Fraction(number).denominator for number in numbers)) if numbers else 1
    return [int(number * denominator) for number in numbers], denominator


def good_prices(groups: Sequence[Group], room: Sequence[int]) -> list[float]:
    """Prices at which one option of each group is worth little more than the room can hold, by coordinates.

    Bounds of searches hold at any prices, so floats are good enough.

    Parameters
    ----------
    groups : list of list of (worth, amounts)
    room : sequence of int
    """
    try:
        return _descended(groups, room)
    except OverflowError:
        return [0.0] * len(room)


def _descended(groups: Sequence[Group], room: Sequence[int]) -> list[float]:
    prices = [0.0] * len(room)

    def bound(prices: list[float]) -> float:
        return sum(p * r for p, r in zip(prices, room, strict=True)) + sum(
            max(worth - sum(p * a for p, a in zip(prices, amounts, strict=True)) for worth, amounts in options)
            for options in groups
        )

    greatest = max((worth for options in groups for worth, _ in options), default=0)
    steps = [4.0 * greatest * len(groups) / max(1, r) for r in room]
    now = bound(prices)
    for _ in range(60):
        moved = False
        for resource, step in enumerate(steps):
            for change in (step, -step):
                trial = prices.copy()
                trial[resource] = max(0.0, trial[resource] + change)
                value = bound(trial)
                if value < now:
                    prices, now, moved = trial, value, True
        if not moved:
            steps = [step / 2 for step in steps]
    return prices


def magnitude(number: Number) -> Number:
    """``abs``, whose type is not known of a union."""
    return -number if number < 0 else number


def better(sense: str, one: Number, other: Number) -> bool:
    """Return whether one value is strictly better than another."""
    return one < other if sense == "min" else one > other


def closed(value: Number, bound: Number) -> bool:
    """Return whether a value and a bound are equal, as the collection counts it."""
    if value == bound:
        return True
    if math.inf in (abs(value), abs(bound)):
        return False
    return magnitude(value - bound) <= CLOSED * max(magnitude(value), magnitude(bound))
