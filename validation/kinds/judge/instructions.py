"""A problem in words for whoever is to write a program for it, and knows nothing of the library.

What is said follows from the problem's declarations and docstrings; the worked instance is one of its own examples.
"""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from formulations import solve
from instances.base import Instance, Plan, PlanError
from instances.schema import Array, Ragged, declarations
from validation.catalogue import Entry, entry
from validation.formatting import number
from validation.kinds.judge.evaluating import BUDGET
from validation.kinds.judge.sets import PUBLIC_SEED
from validation.kinds.study.cases import generate
from validation.pages.render import table_lines
from validation.signatures import plain
from validation.signatures import solve as asked

__all__ = ["first_program", "instructions"]

AnyInstance = Instance[Any]

PROGRAMS = Path(__file__).parent / "programs"
SHARED = {
    "gavel.sharing": (
        *("gavel.fifo", "gavel.finish_time_fairness", "gavel.makespan", "gavel.max_min_fairness"),
        *("gavel.shortest_job_first", "gavel.total_throughput"),
    ),
    "gavel.priced": ("gavel.cost", "gavel.throughput_per_dollar"),
    "elasticflow.sharing": (
        *("elasticflow.allocation", "elasticflow.best_effort", "elasticflow.minimum_satisfactory_share"),
    ),
}
"""Programs that serve several problems, by the name of what these share."""

KINDS = {bool: "true or false", int: "whole number", float: "number", str: "word"}
LONGEST = 20_000
"""Letters of an example that is shown."""
TRIED = 12
"""Entries of each field of a plan that are changed in search of a broken rule."""
PROVING = 60.0
"""Seconds for the optimum of an example."""


def first_program(problem: str) -> str:
    """Return the source of a plain program that stands alone: a function ``solve``, and what it imports.

    Of a problem from outside the library it is one that decides nothing, whose plans may break rules.
    """
    name = next((shared for shared, problems in SHARED.items() if problem in problems), problem)
    file = PROGRAMS.joinpath(*name.split(".")).with_suffix(".py")
    if file.is_file():
        return file.read_text(encoding="utf-8").partition("\n\n")[2].strip()
    fields = ", ".join(f'"{field}": ...' for field in declarations(entry(problem).instance.plan_type))
    return (
        "from typing import Any\n\n\ndef solve(instance: dict[str, Any]) -> dict[str, Any]:\n"
        f'    """Return a plan: {{{fields}}}."""\n    raise NotImplementedError'
    )


def instructions(problem: str) -> str:
    """Return the problem in Markdown: what is given, what a plan is, what it is worth, an example, broken rules."""
    known = entry(problem)
    better, ratio = {"min": ("less", "optimum / value"), "max": ("more", "value / optimum")}[known.instance.sense]
    return f"""\
# {known.title} ({problem})

Write a Python function `solve(instance: dict) -> dict`. It gets an instance and returns a plan, both as plain data:
numbers, truth values, words and lists. Improve its plans. The standard library and NumPy are there.

## The problem

{_about(known)}

## The instance

{_fields(known.instance)}

## The plan

{_fields(known.instance.plan_type)}

## The score

A plan's value is its {known.instance.measure}; {better} is better. A feasible plan
scores `{ratio}`, 1 where it is the best possible. Where the optimum is 0, a value of 0 scores 1, and any other 0.
A plan that breaks a rule scores 0, and so does a function that raises, returns something else, starts a program, or
takes more than {BUDGET:g} s or 2 GB for an instance. The score is the mean over all instances. Solvers are kept from
the function: `scipy.optimize` and the like cannot be imported. Rules on whole numbers are exact, others hold up to
rounding (1e-9 of their limit).

{_example(problem, known)}""".rstrip()


# --- what there is ------------------------------------------------------------------------------


def _about(known: Entry) -> str:
    """Return the description of the problem by its module, without what it says of print and library."""
    told = inspect.getdoc(inspect.getmodule(known.instance)) or known.title
    head = re.split(r"\n[^\n]+\n-{3,}\n", told, maxsplit=1)[0]
    return _words(head).strip()


def _words(docstring: str) -> str:
    """Return a docstring in Markdown: references become names."""
    text = re.sub(r":\w+:`(?:~?[\w.]*\.)?(\w+)`", r"`\1`", docstring)
    return text.replace("``", "`")


def _fields(kind: type[Any]) -> str:
    """Return a table of declared fields."""
    meanings = _meanings(kind)
    rows = [(f"`{name}`", _told(one), meanings.get(name, "")) for name, one in declarations(kind).items()]
    return "\n".join(table_lines(("field", "what it is", "meaning"), rows))


def _meanings(kind: type[Any]) -> dict[str, str]:
    """Meanings of fields, as the docstrings of a class and of those that it is made of tell them."""
    found: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        section = re.search(
            r"^Attributes\n-+\n(.*?)(?=^\w+\n-+\n|\Z)", inspect.cleandoc(one.__doc__ or ""), re.M | re.S
        )
        for names, text in re.findall(
            r"^(\S[^\n]*?) : [^\n]*\n((?:[ ]+[^\n]*\n?|\n)*)", f"{section[1]}\n" if section else "", re.M
        ):
            found |= dict.fromkeys(names.split(", "), _words(" ".join(text.split())))
    return found


def _told(declared: Any) -> str:
    """Return the kind, shape and range of a field in words."""
    words = KINDS[declared.kind]
    if isinstance(declared, Array):
        axes = declared.shape.split()
        if isinstance(declared, Ragged):
            axes[1] = "..."
        many = words if declared.kind is bool else f"{words}s"
        words = f"{'list' if len(axes) == 1 else 'nested lists'} ({', '.join(axes)}) of {many}"
    limits = (
        (declared.minimum is not None, f"at least {declared.minimum or 0:g}"),
        (declared.above is not None, f"above {declared.above or 0:g}"),
        (declared.infinite, "`None` for infinite"),
        (declared.choices, " or ".join(f'"{one}"' for one in declared.choices)),
        (getattr(declared, "index_of", ""), f"positions, below {getattr(declared, 'index_of', '')}"),
    )
    return ", ".join([words, *(told for holds, told in limits if holds)])


# --- an example ---------------------------------------------------------------------------------


def _example(problem: str, known: Entry) -> str:
    """Return an instance with a plan and its value, and changes of the plan that break rules."""
    found = _worked(problem, known)
    if found is None:
        return ""
    instance, plan, broken = found
    given = {name: value for name, value in plain(instance).items() if name != "problem"}
    best = solve(instance, time_limit=PROVING)
    proven = best.objective if best.status == "optimal" else None
    return f"""\
## An instance, and a plan with its value

```json
{json.dumps(given)}
```

The plan of the first program is worth {number(instance.objective(plan))}.\
{"" if proven is None else f" The best possible is {number(proven)}."}

```json
{json.dumps(plan.to_dict())}
```

## Plans that break rules

Changes of that plan, and what they break:

{chr(10).join(f"- {words}" for words in broken)}"""


def _compiled(problem: str) -> Any:
    scope: dict[str, Any] = {}
    exec(compile(first_program(problem), f"{problem} (first program)", "exec"), scope)
    return scope["solve"]


def _worked(problem: str, known: Entry) -> tuple[AnyInstance, Plan, list[str]] | None:
    """Return an example, a plan of some worth that the first program has for it, and two ways to break rules.

    It is the shortest of those that have both ways.
    """
    program = _compiled(problem)
    found: list[tuple[int, int, int, tuple[AnyInstance, Plan, list[str]]]] = []
    for instance in _examples(known):
        length = len(json.dumps(plain(instance)))
        try:
            plan = asked(program, instance)
        except Exception:  # An example may be one that no plan is for, and a program one that is yet to be written.
            continue
        if plan is None or length > LONGEST or instance.violations(plan):
            continue
        if math.isfinite(value := instance.objective(plan)) and value != 0:
            broken = [*dict(_breaks(instance, plan)).values()][:2]
            found.append((-len(broken), length, len(found), (instance, plan, broken)))
    return min(found)[-1] if found else None


def _examples(known: Entry) -> Iterator[AnyInstance]:
    """Yield what the functions of the problem's module return that take nothing, and a small instance that is drawn."""
    module = import_module(known.instance.__module__)
    for name in getattr(module, "__all__", ()):
        function = getattr(module, name)
        if inspect.isfunction(function) and all(
            one.default is not one.empty for one in inspect.signature(function).parameters.values()
        ):
            made = function()
            if isinstance(made, known.instance):
                yield made
    yield generate(known.problem, PUBLIC_SEED, min(known.sizes), 0)


def _breaks(instance: AnyInstance, plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield rules that small changes of a plan break, each once, with the change and the violation in words."""
    seen = set()
    data = plan.to_dict()
    for alone in (True, False):
        for field, path, value in _changes(data):
            changed = json.loads(json.dumps(data))
            changed[field] = _with(changed[field], path, value)
            try:
                first, *others = instance.violations(type(plan).from_dict(changed)) or (None,)
            except PlanError:
                continue
            if first is not None and first.rule not in seen and not (alone and others):
                seen.add(first.rule)
                place = "".join(f"[{index}]" for index in path)
                instead = f"with `{field}{place}` {json.dumps(value)} in place of {json.dumps(_at(data[field], path))}"
                where = f" at {', '.join(map(str, first.index))}" if first.index else ""
                more = f", and {len(others)} more" if others else ""
                yield first.rule, f"{instead}, the rule `{first.rule}` is broken{where}, by {first.amount:.6g}{more}"


def _changes(data: dict[str, Any]) -> Iterator[tuple[str, tuple[int, ...], Any]]:
    """Yield other values of the first entries of each field, with their places."""
    for field, value in data.items():
        for path in list(_entries(value))[:TRIED]:
            yield from ((field, path, other) for other in _other(_at(value, path)))


def _entries(value: Any) -> Iterator[tuple[int, ...]]:
    if not isinstance(value, list):
        yield ()
        return
    for index, one in enumerate(value):
        for rest in _entries(one):
            yield (index, *rest)


def _at(value: Any, path: tuple[int, ...]) -> Any:
    for index in path:
        value = value[index]
    return value


def _with(value: Any, path: tuple[int, ...], new: Any) -> Any:
    if not path:
        return new
    value[path[0]] = _with(value[path[0]], path[1:], new)
    return value


def _other(value: Any) -> Iterator[Any]:
    """Yield other values of an entry: near ones, and ones that are out of every range."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield from (value + 1, value - 1, 0 * value, 2 * value, -1, 1000)
