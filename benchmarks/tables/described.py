"""Tables described by data: ``<paper>.toml`` beside this file says what is drawn, what is asked, and what a cell shows.

A table has rows of options of a generator, one for each combination of the values that they are told ``over``, a
number of seeds, and what it shows: the heads of its columns and their templates, such as ``{solve.seconds:between s}``
or ``{marginal_greedy.gap:mean .2%}``: who is asked (``solve`` for the exact side, a heuristic of the catalogue, or what
the table enters under ``asked``), what of the answer, and how the values of all seeds become one.  ``{num_jobs}`` is an
option of the row, ``{instance.num_jobs}`` what an instance says of itself, ``{one / other}`` a quotient, and
``{first.num_jobs}`` the first row's; a table with several ``samples`` names one first:
``{linear.solve.seconds:max s}``.  A row may have more samples, or others under the table's names.
"""

from __future__ import annotations

import functools
import gc
import itertools
import operator
import re
import statistics
import string
import tomllib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import formulations
from benchmarks.tables import BENCHMARKS, Benchmark, Row, Setup, between, gap, interval, seconds, timed
from formulations import Solution
from validation import catalogue

__all__ = ["FORMATTER", "TABLES", "Values", "combined", "enter", "rows"]

Options = Mapping[str, Any]

TABLES: dict[str, dict[str, Any]] = {}
"""All that are described, by name."""
STATISTICS: dict[str, Callable[[list[Any]], Any]] = {
    "first": lambda values: values[0],
    "mean": statistics.mean,
    "median": statistics.median,
    "max": max,
    "min": min,
    "sum": sum,
    "count": len,
}
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {"+": operator.add, "/": operator.truediv}
OWN = ("asked", "each", "over", "quick", "reference", "rows", "samples", "shows", "summary", "unlike", "unproven")
BOTH = ("draw", "limit", "problem", "seeds", "turns")
"""Keys of a table, the first of them of a table alone."""
WORDS = ("because", "differs", "label", "most", "paper", "policy", "ratio", "width")
RESERVED = (*WORDS, *BOTH, "cells", "of", "samples", "seed")
"""Keys of a row that are no options of the generator: of the first, cells and names alone are made."""
DATA = "data:"
"""Beginning of a path below the folder of public data."""
LONG = 2.0
"""A call of so many seconds is not repeated for its time alone."""


class Values(list[Any]):
    """What was found of each instance; formats as a statistic of those that are not None, such as ``mean .1%``."""

    def by(self, how: Callable[[Any, Any], Any], other: list[Any]) -> Values:
        """Combine numbers with another's; None where one is none or cannot be divided by."""
        pairs = zip(self, other, strict=True)
        return Values(how(one, its) if its and isinstance(one, int | float) else None for one, its in pairs)

    def __format__(self, spec: str) -> str:
        head, _, form = spec.partition(" ")
        told = [value for value in self if value is not None]
        match head:
            case "count" if form:
                return str(sum(form in value if isinstance(value, tuple) else form == value for value in told))
            case "but":
                return ", ".join(str(number) for number, value in enumerate(self) if value != form)
            case "below":
                return str(sum(value < float(form) for value in told))
            case "filled":
                return str(sum(map(bool, told)))
            case "set":
                return ", ".join(sorted(set(told)))
            case "each":
                separator, _, form = form.partition(" ")
                return separator.replace("_", " ").join("–" if one is None else _shown(one, form) for one in self)
        sizes = (len(value) if hasattr(value, "__len__") and not isinstance(value, str) else value for value in told)
        known: list[Any] = list(sizes)
        if not known and head not in ("count", "sum"):
            return ""
        if head in ("between", "interval"):
            return (between if head == "between" else interval)(known, partial(_shown, form=form))
        if head not in STATISTICS:
            head, form = "first", spec
        return _shown(STATISTICS[head](known), form)


def _shown(value: Any, form: str) -> str:
    """Write a value in a format of Python's; ``s`` and ``h`` are seconds and hours of a time, "" is left blank."""
    if form.endswith("h"):
        return f"{value / 3600:{form[:-1] or '.2'}f}"
    if value == "":
        return ""
    return seconds(value) if form == "s" and not isinstance(value, str) else format(value, form)


class _Formatter(string.Formatter):
    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
        first, *rest = re.split(r" ([+/]) ", field_name)
        found, used = super().get_field(first, args, kwargs)
        for sign, name in zip(rest[::2], rest[1::2], strict=True):
            its, used = super().get_field(name, args, kwargs)
            one, other = (each if isinstance(each, Values) else Values([each]) for each in (found, its))
            found = one.by(OPERATORS[sign], other)
        return found, used

    def format_field(self, value: Any, format_spec: str) -> str:
        return format(value, format_spec) if isinstance(value, Values) else _shown(value, format_spec)


FORMATTER = _Formatter()


class Asked:
    """Answers to the instances of a sample."""

    def __init__(self, sample: Sample, spec: Options) -> None:
        self._sample = sample
        options = dict(spec)
        self._of, self._build = options.pop("of", "solve"), options.pop("build", "")
        self._without, self._start = options.pop("without", ""), options.pop("start", "")
        self._given, self._beside = options.pop("given", []), options.pop("beside", [])
        limit = options.pop("limit", sample.limit if self._of == "solve" else None)
        self._options = options | ({} if limit is None else {"time_limit": sample.setup.seconds(limit)})

    def _call(self, number: int) -> Callable[[], Any]:
        """Return the call that answers an instance; what it needs is there before the clock starts."""
        one = self._sample.instances[number]
        options = dict(self._options)
        if self._start:
            options["start"] = getattr(self._sample, self._start).answers[number][0]
        given = [getattr(self._sample, name).answers[number][0] for name in self._given]
        function = formulations.solve if self._of == "solve" else _function(self._of, one)
        asked = _function(self._build)(one) if self._build else one
        if self._without:
            getattr(asked, self._without).deactivate()
        return partial(function, asked, *given, **options)

    @cached_property
    def answers(self) -> list[tuple[Any, float]]:
        """Each answer, and its processor time, s."""
        return _each(map(self._call, range(len(self._sample.instances))))

    @property
    def answer(self) -> Values:
        """The answers as they are."""
        return Values(answer for answer, _ in self.answers)

    @property
    def seconds(self) -> Values:
        """Processor times of single calls, s."""
        return Values(took for _, took in self.answers)

    @cached_property
    def _rounds(self) -> list[list[list[float]]]:
        """Times of each instance in rounds, of which the first warms up: its own, and those of the calls beside it."""
        beside = [getattr(self._sample, name) for name in self._beside]
        found = []
        for number, took in enumerate([0.0] * len(self._sample.instances) if beside else self.seconds):
            calls = [one._call(number) for one in (self, *beside)]
            repeats = range(self._sample.setup.repeats + 1)
            rounds = [[took]] * 2 if took >= LONG else [[timed(call)[1] for call in calls] for _ in repeats]
            found.append(rounds[1:])
        return found

    @property
    def median(self) -> Values:
        """Median processor times of several calls after one that warms up, s."""
        return Values(statistics.median(own for own, *_ in rounds) for rounds in self._rounds)

    @property
    def other(self) -> Values:
        """Median processor times of the fastest call beside, s."""
        return Values(statistics.median(min(others) for _, *others in rounds) for rounds in self._rounds)

    @property
    def times(self) -> Values:
        """Processor times as multiples of the fastest call's beside, which runs in turn: medians, None without any."""
        return Values(
            statistics.median(own / min(others) for own, *others in rounds) if self._beside else None
            for rounds in self._rounds
        )

    @cached_property
    def value(self) -> Values:
        """Values of plans; None where there is none."""
        return Values(
            None if plan is None else one.objective(plan)
            for one, plan in zip(self._sample.instances, map(_plan, self.answers), strict=True)
        )

    @cached_property
    def optimum(self) -> Values:
        """Proven optima; None where there is no feasible plan, or where the table leaves out what is not proven."""
        values = zip(self.answers, self.value, strict=True)
        found = [(answer, value, _proven(answer)) for (answer, _), value in values]
        if not self._sample.lenient:
            for answer in (answer for answer, _, proven in found if not proven):
                raise RuntimeError(f"no proven optimum: {answer}")
        return Values(value if proven else None for _, value, proven in found)

    @cached_property
    def gap(self) -> Values:
        """Relative distances from the reference's values."""
        return Values(
            None if value is None or best is None else gap(value, best)
            for value, best in zip(self.value, self._sample.best, strict=True)
        )

    @property
    def missed(self) -> str:
        """How many fall short of the reference, and by how much at worst."""
        short = [value for value in self.gap if value > 1e-9]
        return f"{len(short)}, worst {max(short):.1%}" if short else "0"

    @property
    def rules(self) -> Values:
        """Rules that plans break where there is a feasible one."""
        best = self._sample.best
        return Values(
            tuple(broken.rule for broken in one.violations(plan)) if its is not None and plan is not None else None
            for one, plan, its in zip(self._sample.instances, map(_plan, self.answers), best, strict=True)
        )

    @property
    def feasible(self) -> Values:
        """True for each plan that breaks no rule."""
        plans = zip(self._sample.instances, map(_plan, self.answers), strict=True)
        return Values(plan is not None and not one.violations(plan) for one, plan in plans)

    @property
    def proven(self) -> str:
        """How many are proven, optimal or infeasible, of how many."""
        return f"{sum(_proven(answer) for answer, _ in self.answers)} of {len(self.answers)}"

    @property
    def planned(self) -> str:
        """How many have a plan, of how many, and of how many that is not known."""
        left = sum(answer.status == "unknown" for answer, _ in self.answers)
        have = sum(answer.plan is not None for answer, _ in self.answers)
        return f"{have} of {len(self.answers)}" + (f", {left} open" if left else "")

    @property
    def optimal(self) -> str:
        """How many are solved to optimality, of how many."""
        return f"{sum(answer.status == 'optimal' for answer, _ in self.answers)} of {len(self.answers)}"

    @property
    def apart(self) -> Values:
        """Gaps between best plans and bounds."""
        return Values(answer.gap for answer, _ in self.answers)

    @property
    def off(self) -> Values:
        """Relative distances of values from the bounds."""
        return Values(gap(value, answer.bound) for (answer, _), value in zip(self.answers, self.value, strict=True))

    @property
    def settled(self) -> Values:
        """Times of proofs, or the bounds where there is none."""
        return Values(
            seconds(took) if one.status == "optimal" else f"bound {one.bound:.0f}" for one, took in self.answers
        )

    @property
    def fewest(self) -> Values:
        """Optima of whole numbers, or the intervals that they lie in."""
        return Values(
            f"{one.bound:.0f} to {one.objective:.0f}"
            if one.status == "feasible"
            else f"{one.objective:.0f}"
            if one.status == "optimal"
            else one.status
            for one, _ in self.answers
        )

    @property
    def proofs(self) -> str:
        """Least and greatest time of the proofs, and how many are open."""
        times = [took for answer, took in self.answers if _proven(answer)]
        left = len(self.answers) - len(times)
        return (between(times) + (f", {left} open" if left else "")) if times else "none proven"

    def __getattr__(self, name: str) -> Values:
        if name.startswith("_") or hasattr(Asked, name):
            raise AttributeError(f"{name} of what is asked cannot be told")
        return Values(None if answer is None else getattr(answer, name) for answer, _ in self.answers)


def _plan(answered: tuple[Any, float]) -> Any:
    answer = answered[0]
    return answer.plan if isinstance(answer, Solution) else answer


def _proven(answer: Any) -> bool:
    return answer.status in ("optimal", "infeasible")


class Sample:
    """Instances of a row, one of each seed, and who is asked about them."""

    def __init__(self, setup: Setup, table: Options, told: Options) -> None:
        self.setup, self._table = setup, table
        self.told = {**told, **(table.get("quick", {}) if setup.quick else {})}
        self.told["problem"] = str(self.told.get("problem", table["problem"])).format_map(self.told)
        self.limit, self.lenient = self.told.get("limit", table.get("limit")), "unproven" in table
        self._asked: dict[str, Asked] = {}

    @property
    def question(self) -> dict[str, Any]:
        """What is drawn and asked, without what the row says of it."""
        return {name: value for name, value in self.told.items() if name not in (*WORDS, "cells", "samples")}

    def share(self, others: Iterable[Sample]) -> None:
        """Take over the answers of a sample of which the same is asked."""
        for other in others:
            if other.question == self.question:
                self._asked = other._asked

    @property
    def options(self) -> dict[str, Any]:
        """Options of the generator, with the paths of public data."""
        return {name: self._real(value) for name, value in self.told.items() if name not in RESERVED}

    @property
    def possible(self) -> bool:
        """False where it needs public data that are not there."""
        return None not in self.options.values()

    def _real(self, value: Any) -> Any:
        if isinstance(value, str) and value.startswith(DATA):
            return self.setup.file(value.removeprefix(DATA))
        return tuple(value) if isinstance(value, list) else value

    @cached_property
    def _drawn(self) -> list[tuple[Any, float]]:
        told = {**self._table, **self.told}
        seeds = told.get("seeds", [told.get("seed", 0)])
        listed = list(range(seeds)) if isinstance(seeds, int) else seeds
        if "seeds" not in self._table.get("quick", {}):
            listed = self.setup.few(listed)
        named = told.get("draw", "generate")
        draw = _function(named if ":" in named else f"instances.{told['problem']}:{named}")
        turns = self.setup.few(combined(told.get("turns", {})))
        with warnings.catch_warnings():
            # What was repaired, the instances tell.
            warnings.simplefilter("ignore")
            return _each(partial(draw, seed, **self.options | turn) for turn in turns for seed in listed)

    @cached_property
    def instances(self) -> list[Any]:
        """One instance of each seed."""
        return [instance for instance, _ in self._drawn]

    @property
    def drawn(self) -> Values:
        """Processor times of drawing them, s."""
        return Values(took for _, took in self._drawn)

    @property
    def instance(self) -> _Attributes:
        """What the instances say of themselves."""
        return _Attributes(self.instances)

    @property
    def best(self) -> Values:
        """The reference's values, which are proven where the table names nobody."""
        found: Asked = getattr(self, self._table.get("reference", "solve"))
        return found.value if "reference" in self._table else found.optimum

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or hasattr(Sample, name):
            raise AttributeError(f"{name} of a sample cannot be told")
        if name not in self._asked:
            own = self.told["of"] if name == "row" else name
            self._asked[name] = Asked(self, self._table.get("asked", {}).get(own, {"of": own}))
        return self._asked[name]


class _Attributes:
    def __init__(self, instances: list[Any]) -> None:
        self._instances = instances

    def __getattr__(self, name: str) -> Values:
        return Values(getattr(one, name) for one in self._instances)


def _function(name: str, asked: Any = None) -> Callable[..., Any]:
    """Return a function told as ``module:function``, or who is called so by an instance or the catalogue."""
    module, found, function = name.partition(":")
    if found:
        return getattr(import_module(module), function)  # type: ignore[no-any-return]
    if hasattr(asked, "answerer"):
        return asked.answerer(name)  # type: ignore[no-any-return]
    return catalogue.entry(asked.problem).heuristics[name].function


def _each(calls: Iterable[Callable[[], Any]]) -> list[tuple[Any, float]]:
    """Return what calls return, and their processor times, s."""
    # What is there now is not looked through for garbage before each of them.
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    return [timed(call) for call in calls]


class _Names(dict[str, Any]):
    """What templates of a row can name: options, samples, the first row, and who answers the row's own sample."""

    def __init__(self, setup: Setup, table: Options, row: Options, before: Sequence[_Names] = ()) -> None:
        self.own = Sample(setup, table, row)
        others = {**table.get("samples", {}), **row.get("samples", {})}
        samples = {name: Sample(setup, table, {**row, **extra}) for name, extra in others.items()}
        self.samples = [self.own, *samples.values()]
        for sample in self.samples:
            sample.share(other for names in before for other in names.samples)
        super().__init__({**self.own.told, **self.own.options, **samples})

    def __missing__(self, name: str) -> Any:
        return getattr(self.own, name)

    __getattr__ = dict.__getitem__


def _cell(template: str, names: _Names) -> str:
    for _, field, _, _ in FORMATTER.parse(template):
        sample = names.get(field.partition(".")[0]) if field else None
        if isinstance(sample, Sample) and not sample.possible:
            return ""
    return FORMATTER.vformat(template, (), names).strip(", ")


def combined(over: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return all combinations: a number stands for as many, a table among the values for its options."""
    lists = [
        [value if isinstance(value, dict) else {name: value} for value in (range(one) if isinstance(one, int) else one)]
        for name, one in over.items()
    ]
    return [functools.reduce(operator.or_, parts, {}) for parts in itertools.product(*lists)]


def rows(name: str, setup: Setup) -> Iterator[tuple[list[str], Any]]:
    """Yield the cells of each row of a table, and by name what they are made of."""
    table = TABLES[name]
    # Rows that ask different things all run at the smallest size, too.
    few = list if "unlike" in table else setup.few
    first: _Names | None = None
    # What the row before asks as well is not asked again.
    before: list[_Names] = []
    known: list[Options] = []
    for row in few(table.get("rows", [{}])):
        options = {"over": table.get("over", {})} | table.get("each", {}) | row
        for more in few(combined(options.pop("over"))):
            names = _Names(setup, table, options | more, before)
            told = names.own.told
            # At the smallest size, rows become the same.
            if not names.own.possible or told | {"cells": {}} in known:
                continue
            known.append(told | {"cells": {}})
            first = names["first"] = first or names
            before = [first, names]
            cells = told.get("cells", {})
            yield [_cell(cells.get(head, template), names) for head, template in table["columns"]], names


def enter(path: Path) -> None:
    """Enter the tables of a file among the benchmarks."""

    def cells(setup: Setup, *, name: str) -> Iterator[Row]:
        return (found for found, _ in rows(name, setup))

    for name, table in tomllib.loads(path.read_text(encoding="utf-8")).items():
        heads, templates = (
            tuple(cell.strip() for cell in line.strip("|").split("|")) for line in table["shows"].strip().splitlines()
        )
        given = {head for row in table.get("rows", []) for head in row.get("cells", {})}
        for wrong, why in (
            (sorted(table.keys() - {*OWN, *BOTH}), "a table has no such key"),
            ([one for one in table.get("asked", {}) if hasattr(Sample, one)], "a sample has these itself"),
            (given - {*heads}, "no head is called so"),
            (templates if len(heads) != len(templates) else (), f"these are templates of {len(heads)} heads"),
        ):
            if wrong:
                raise ValueError(f"{name}: got {', '.join(wrong)}; {why}")
        table["columns"] = list(zip(heads, templates, strict=True))
        table.setdefault("problem", ".".join(name.split(".")[:2]))
        TABLES[name] = table
        BENCHMARKS[name] = Benchmark(name, heads, partial(cells, name=name), table["summary"])


for file in sorted(Path(__file__).parent.glob("*.toml")):
    enter(file)
