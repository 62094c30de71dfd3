"""Tables described by data: ``<paper>.toml`` beside this file says what is drawn, what is asked, and what a cell shows.

A table has rows of options of a generator, a number of seeds, and columns, each with a head and a template such as
``{solve.seconds:between s}`` or ``{marginal_greedy.gap:mean .2%}``: who is asked (``solve`` for the exact side, a
heuristic of the catalogue, or what the table enters under ``asked``), what of the answer, and how the values of all
seeds become one.  ``{num_jobs}`` is an option of the row, ``{instance.num_jobs}`` what an instance says of itself; a
table with several ``samples`` names one first: ``{linear.solve.seconds:max s}``.
"""

from __future__ import annotations

import functools
import itertools
import operator
import statistics
import string
import tomllib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import formulations
from benchmarks.tables import BENCHMARKS, Benchmark, Row, Setup, between, gap, median_seconds, seconds, timed
from formulations import Solution
from validation import catalogue

__all__ = ["enter"]

Options = Mapping[str, Any]

FORMATTER = string.Formatter()
STATISTICS: dict[str, Callable[[list[Any]], Any]] = {
    "first": lambda values: values[0],
    "mean": statistics.mean,
    "median": statistics.median,
    "max": max,
    "min": min,
    "sum": sum,
    "count": len,
}
RESERVED = ("cells", "count", "draw", "label", "limit", "of", "problem", "seed", "seeds", "turns", "width")
"""Keys of a row that are no options of the generator."""
DATA = "data:"
"""Beginning of a path below the folder of public data."""


class Values(list[Any]):
    """What was found of each instance; formats as a statistic of those that are not None, such as ``mean .1%``."""

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
        known: list[Any] = [value if isinstance(value, int | float | str) else len(value) for value in told]
        if not known and head not in ("count", "sum"):
            return ""
        if head == "between":
            return between(known, partial(_shown, form=form))
        if head not in STATISTICS:
            head, form = "first", spec
        return _shown(STATISTICS[head](known), form)


def _shown(value: Any, form: str) -> str:
    """A value in a format of Python's; ``s`` and ``h`` are seconds and hours of a time."""
    if form == "h":
        return f"{value / 3600:.2f}"
    return seconds(value) if form == "s" else format(value, form)


class Asked:
    """Answers to the instances of a sample."""

    def __init__(self, sample: Sample, spec: Options) -> None:
        self._sample = sample
        options = dict(spec)
        self._of, self._build = options.pop("of", "solve"), options.pop("build", "")
        self._without, self._start = options.pop("without", ""), options.pop("start", "")
        self._given = options.pop("given", "")
        limit = options.pop("limit", sample.limit if self._of == "solve" else None)
        self._options = options | ({} if limit is None else {"time_limit": sample.setup.seconds(limit)})

    def _call(self, number: int) -> Callable[[], Any]:
        """The call that answers an instance; what it needs is there before the clock starts."""
        one = self._sample.instances[number]
        if self._of == "solve":
            options = dict(self._options)
            if self._start:
                options["start"] = getattr(self._sample, self._start).answers[number][0]
            model = _function(self._build)(one) if self._build else one
            if self._without:
                getattr(model, self._without).deactivate()
            return partial(formulations.solve, model, **options)
        given = [getattr(self._sample, self._given).answers[number][0]] if self._given else []
        return partial(_function(self._of, one.problem), one, *given, **self._options)

    @cached_property
    def answers(self) -> list[tuple[Any, float]]:
        """Each answer, and its processor time, s."""
        return [timed(self._call(number)) for number in range(len(self._sample.instances))]

    @property
    def answer(self) -> Values:
        """The answers as they are."""
        return Values(answer for answer, _ in self.answers)

    @property
    def seconds(self) -> Values:
        """Processor times of single calls, s."""
        return Values(took for _, took in self.answers)

    @cached_property
    def median(self) -> Values:
        """Median processor times of several calls after one that warms up, s."""
        setup, count = self._sample.setup, len(self._sample.instances)
        return Values(median_seconds(setup.repeats, self._call(number)) for number in range(count))

    @property
    def times(self) -> Values:
        """Median processor times, as multiples of the reference's."""
        return Values(mine / its for mine, its in zip(self.median, self._sample.reference.median, strict=True))

    @property
    def value(self) -> Values:
        """Values of plans; None where there is none."""
        return Values(
            None if plan is None else one.objective(plan)
            for one, plan in zip(self._sample.instances, map(_plan, self.answers), strict=True)
        )

    @property
    def optimum(self) -> Values:
        """Proven optima; None where there is no feasible plan, or where the table leaves out what is not proven."""
        values = zip(self.answers, self.value, strict=True)
        found = [(answer, value, _proven(answer)) for (answer, _), value in values]
        if not self._sample.lenient:
            for answer in (answer for answer, _, proven in found if not proven):
                raise RuntimeError(f"no proven optimum: {answer}")
        return Values(value if proven else None for _, value, proven in found)

    @property
    def gap(self) -> Values:
        """Relative distances from the reference's values."""
        return self._beside(gap)

    @property
    def ratio(self) -> Values:
        """Values over the reference's."""
        return self._beside(lambda value, best: value / best if best else None)

    def _beside(self, compare: Callable[[float, float], float | None]) -> Values:
        best = self._sample.best
        return Values(
            None if value is None or its is None else compare(value, its)
            for value, its in zip(self.value, best, strict=True)
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
        if name.startswith("_"):
            raise AttributeError(name)
        return Values(getattr(answer, name) for answer, _ in self.answers)


def _plan(answered: tuple[Any, float]) -> Any:
    answer = answered[0]
    return answer.plan if isinstance(answer, Solution) else answer


def _proven(answer: Any) -> bool:
    return answer.status in ("optimal", "infeasible")


class Sample:
    """Instances of a row, one of each seed, and who is asked about them."""

    def __init__(self, setup: Setup, table: Options, row: Options, extra: Options) -> None:
        self.setup, self._table = setup, table
        told = {**table.get("each", {}), **row, **extra}
        if setup.quick:
            told |= table.get("quick", {})
        self.limit, self.lenient = told.get("limit", table.get("limit")), "unproven" in table
        self._told = told
        self._asked: dict[str, Asked] = {}

    @property
    def options(self) -> dict[str, Any]:
        """Options of the generator, with the paths of public data."""
        return {name: self._real(value) for name, value in self._told.items() if name not in RESERVED}

    @property
    def possible(self) -> bool:
        """False where it needs public data that are not there."""
        return self.setup.data is not None or not any(str(value).startswith(DATA) for value in self._told.values())

    def _real(self, value: Any) -> Any:
        if isinstance(value, str) and value.startswith(DATA) and self.setup.data is not None:
            return self.setup.data / value.removeprefix(DATA)
        return tuple(value) if isinstance(value, list) else value

    @cached_property
    def instances(self) -> list[Any]:
        """One instance of each seed."""
        seeds = self._told.get("seeds", self._table.get("seeds", [self._told.get("seed", 0)]))
        listed = list(range(seeds)) if isinstance(seeds, int) else seeds
        if "seeds" not in self._table.get("quick", {}):
            listed = self.setup.few(listed)
        told = {**self._table, **self._told}
        problem, named = told["problem"], told.get("draw", "generate")
        draw = _function(named if ":" in named else f"instances.{problem}:{named}")
        each = [
            self.options | functools.reduce(operator.or_, parts, {})
            for parts in _combined(told.get("turns", []), self.setup.few)
        ]
        with warnings.catch_warnings():
            # What was repaired, the instances tell.
            warnings.simplefilter("ignore")
            return [draw(seed, **options) for options in each for seed in listed]

    @property
    def instance(self) -> _Attributes:
        """What the instances say of themselves."""
        return _Attributes(self.instances)

    @property
    def reference(self) -> Asked:
        """Whose values gaps are relative to."""
        found: Asked = getattr(self, self._table.get("reference", "solve"))
        return found

    @property
    def best(self) -> Values:
        """The reference's values, which are proven where the table names nobody."""
        return self.reference.value if "reference" in self._table else self.reference.optimum

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._asked:
            own = self._told["of"] if name == "row" else name
            self._asked[name] = Asked(self, self._table.get("asked", {}).get(own, {"of": own}))
        return self._asked[name]


class _Attributes:
    def __init__(self, instances: list[Any]) -> None:
        self._instances = instances

    def __getattr__(self, name: str) -> Values:
        return Values(getattr(one, name) for one in self._instances)


def _function(name: str, problem: str = "") -> Callable[..., Any]:
    """A heuristic of the problem, or a function told as ``module:function``."""
    module, found, function = name.partition(":")
    if found:
        return getattr(import_module(module), function)  # type: ignore[no-any-return]
    return catalogue.entry(problem).heuristics[name].function


class _Names(dict[str, Any]):
    """What templates of a row can name: options, samples, and who answers the row's own sample."""

    def __init__(self, setup: Setup, table: Options, row: Options) -> None:
        self.own = Sample(setup, table, row, {})
        samples = {name: Sample(setup, table, row, extra) for name, extra in table.get("samples", {}).items()}
        super().__init__({**row, **self.own.options, **samples})

    def __missing__(self, name: str) -> Any:
        return getattr(self.own, name)


def _cell(template: str, names: _Names) -> str:
    for _, field, _, _ in FORMATTER.parse(template):
        sample = names.get(field.partition(".")[0]) if field else None
        if isinstance(sample, Sample) and not sample.possible:
            return ""
    return FORMATTER.vformat(template, (), names).strip(", ")


def _combined(lists: list[Any], few: Callable[[list[Any]], Sequence[Any]]) -> list[tuple[dict[str, Any], ...]]:
    """All combinations of options told as several lists, or those of a single list."""
    nested = [each if isinstance(each, list) else [each] for each in lists]
    if any(isinstance(each, list) for each in lists):
        return list(few([*itertools.product(*nested)]))
    return [(one,) for (one,) in few(nested)] or [()]


def _rows(table: Options, setup: Setup) -> Iterator[Row]:
    # Rows that ask different things all run at the smallest size, too.
    few = list if "unlike" in table else setup.few
    for parts in _combined(table.get("rows", [{}]), few):
        told: dict[str, Any] = functools.reduce(operator.or_, parts)
        for row in [told | {"seed": seed} for seed in setup.few(range(told["count"]))] if "count" in told else [told]:
            names = _Names(setup, table, row)
            if names.own.possible:
                yield [_cell(row.get("cells", {}).get(head, template), names) for head, template in table["columns"]]


def enter(path: Path) -> None:
    """Enter the tables of a file among the benchmarks."""
    for name, table in tomllib.loads(path.read_text(encoding="utf-8")).items():
        if taken := [one for one in table.get("asked", {}) if hasattr(Sample, one)]:
            raise ValueError(f"{name}: asked has {', '.join(taken)}, which a sample has itself")
        table.setdefault("problem", ".".join(name.split(".")[:2]))
        heads = tuple(head for head, _ in table["columns"])
        BENCHMARKS[name] = Benchmark(name, heads, partial(_rows, table), table["summary"])
