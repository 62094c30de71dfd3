"""Draws of the collection: for each problem a list, each draw with a name and the call that makes it.

The options are in ``recipe.toml`` beside this file.  The number of a draw is its seed, and picks the options by turns,
so that a list may grow at its end and nothing before it changes.  Paths of public data are those below
``SCHEDULING_DATA``.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from instances.base import Instance, InstanceError
from instances.files import instance_type
from validation import catalogue
from validation.errors import ReplayError
from validation.kinds.hunt import find_worst

__all__ = ["RECIPE", "Draw", "Recipe", "draws", "replayed"]

AnyInstance = Instance[Any]
Options = Mapping[str, Any]


@dataclass(frozen=True)
class Draw:
    """One instance that is to be in the collection.

    Attributes
    ----------
    name : str
        Of the problem and of where it is from: "g" generated, "p" published as instances, "t" drawn from a trace, "s" a
        trace's jobs at a time, "r" a decision of a replay, "x" a worked example, "w" a heuristic's worst case; and a
        number.
    origin : mapping
        What its record says: kind, call, and the files that it reads.
    licence : str
        Of its data.
    make : callable
        Makes it; None where the call gives none, such as from a replay of fewer decisions.
    seconds : float
        Limit for its proof, s.
    """

    name: str
    origin: Options
    licence: str
    make: Callable[[], AnyInstance | None]
    seconds: float


QUICK, LONG = 5.0, 30.0
"""Limits for proofs, s."""


def draws(problem: str) -> Iterator[Draw]:
    """All draws of a problem."""
    recipe = RECIPE[problem]
    yield from _examples(problem)
    yield from _calls(problem, "g", "generator", "generate", recipe.generated, recipe.count, QUICK)
    yield from _calls(problem, "h", "generator", "generate", recipe.hard, len(recipe.hard), LONG)
    yield from _calls(problem, "p", "public", "public_instance", [{}], recipe.public, QUICK)
    yield from _calls(problem, "t", "trace", "from_trace", recipe.traces, recipe.traced, QUICK)
    yield from _snapshots(problem, recipe.snapshots)
    for options in recipe.replays:
        yield from _replay(problem, **options)
    for number, heuristic in enumerate(recipe.hunted):
        yield _hunt(problem, number, heuristic)


@dataclass(frozen=True)
class Recipe:
    """What is drawn for a problem.

    Attributes
    ----------
    generated : sequence of mapping
        Options of the generator, taken by turns for ``count`` draws.
    count : int
    hard : sequence of mapping
        Options of the generator for instances that take their time, one draw each.
    public : int
        Instances that were published as such, by their numbers.
    traces : sequence of mapping
        Options of ``from_trace``, taken by turns for ``traced`` draws.
    traced : int
    snapshots : sequence of mapping
        Options of ``snapshot``, one draw each.
    replays : sequence of mapping
        Parameters of :func:`_replay`.
    hunted : sequence of str
        Heuristics whose worst cases are looked for.
    """

    generated: Sequence[Options]
    count: int
    hard: Sequence[Options] = ()
    public: int = 0
    traces: Sequence[Options] = ()
    traced: int = 0
    snapshots: Sequence[Options] = ()
    replays: Sequence[Options] = ()
    hunted: Sequence[str] = ()


def _read(path: Path) -> tuple[dict[str, Recipe], dict[str, str]]:
    """Return the recipe of each problem, and the licences of public data by the beginnings of their paths."""
    told = tomllib.loads(path.read_text(encoding="utf-8"))

    def options(each: Mapping[str, Any], decider: str) -> Options:
        made = {name: tuple(value) if isinstance(value, list) else value for name, value in each.items()}
        named = {name: told["paths"][made[name]] for name in made if name in ("trace", "throughputs")}
        return {**made, **named, **({"decider": decider} if decider else {})}

    def recipe(like: str = "", decider: str = "", **fields: Any) -> Recipe:
        merged = {**told.get(like, {}), **fields}
        for name in merged.keys() - {"count", "public", "traced", "hunted"}:
            merged[name] = [options(each, decider if name == "replays" else "") for each in merged[name]]
        return Recipe(**merged)

    return {problem: recipe(**fields) for problem, fields in told["problems"].items()}, told["licences"]


RECIPE, LICENCES = _read(Path(__file__).with_name("recipe.toml"))


# --- kinds of draws ---


def _examples(problem: str) -> Iterator[Draw]:
    """Yield the worked examples: what functions of the problem's module without parameters make."""
    module = importlib.import_module(f"instances.{problem}")
    number = 0
    for name in module.__all__:
        function = getattr(module, name)
        if not inspect.isfunction(function) or function.__module__ != module.__name__:
            continue
        if any(one.default is one.empty for one in inspect.signature(function).parameters.values()):
            continue
        made = function()
        if isinstance(made, instance_type(problem)):
            origin = {"kind": "example", "call": f"instances.{problem}.{name}()"}
            yield Draw(f"{problem}-x{number:02}", origin, "MIT", function, QUICK)
            number += 1


def _calls(
    problem: str, letter: str, kind: str, function: str, turns: Sequence[Options], count: int, seconds: float
) -> Iterator[Draw]:
    module = importlib.import_module(f"instances.{problem}")
    for number in range(count):
        options = turns[number % len(turns)]
        call = functools.partial(getattr(module, function), number, **options)
        text = f"instances.{problem}.{function}({', '.join([str(number), *_written(options)])})"
        yield Draw(f"{problem}-{letter}{number:02}", *_told(kind, text, options), _or_none(call), seconds)


def _snapshots(problem: str, each: Sequence[Options]) -> Iterator[Draw]:
    snapshot = catalogue.entry(problem).snapshot
    kind = instance_type(problem)
    for number, options in enumerate(each):
        assert snapshot is not None
        text = f"instances.{problem}.{kind.__name__}.snapshot({', '.join(_written(options))})"
        call = functools.partial(snapshot, **options)
        yield Draw(f"{problem}-s{number:02}", *_told("trace", text, options), _or_none(call), QUICK)


def _replay(problem: str, *, keep: int, letter: str = "r", **options: Any) -> Iterator[Draw]:
    """Decisions of a replay of a stretch of a trace; see :func:`replayed`."""
    kept = functools.cache(functools.partial(replayed, problem, keep=keep, **options))
    text = f"benchmarks.collection.recipe.replayed({', '.join([repr(problem), f'{keep=}', *_written(options)])})"
    for number in range(keep):
        origin, licence = _told("replay", f"{text}[{number}]", options)
        yield Draw(f"{problem}-{letter}{number:02}", origin, licence, functools.partial(_decision, kept, number), QUICK)


def _decision(kept: Callable[[], Sequence[AnyInstance]], number: int) -> AnyInstance | None:
    instances = kept()
    return instances[number] if number < len(instances) else None


def replayed(
    problem: str,
    *,
    trace: str,
    first: int,
    jobs: int,
    keep: int,
    decider: str,
    throughputs: str = "",
    least: int = 3,
    **setting: Any,
) -> Sequence[AnyInstance]:
    """Instances that a replay asks, evenly spread over it, each with the number of the decision as its origin.

    Parameters
    ----------
    problem : str
    trace : str
        Path of a job table or of a trace of Gavel's.
    first, jobs : int
        The first job of the trace, in order of arrival, and how many.
    keep : int
        Instances at most.
    decider : str
        Heuristic that decides the problem.
    throughputs : str
        Path of throughputs, where the setting reads some.
    least : int
        Jobs that an instance has at least.
    **setting
        Options of the setting's ``from_jobs``.
    """
    from validation.replay import decider as named
    from validation.replay import replay
    from validation.replay.settings import settings_of
    from validation.replay.workloads import read_jobs

    table = read_jobs(trace).iloc[first : first + jobs]
    if throughputs:
        setting["throughputs"] = throughputs
    asked: dict[str, tuple[int, AnyInstance]] = {}

    def sink(number: int, instance: AnyInstance) -> None:
        if instance.problem == problem and instance.dims.get("n", 0) >= least:
            asked.setdefault(instance.digest, (number, instance))

    try:
        made = settings_of(problem).from_jobs(table, problem=problem, **setting)
        replay(made, named(problem, decider), keep="all", sink=sink)
    except (ReplayError, InstanceError) as error:
        # What was asked until then stands.
        print(f"{problem}, {trace}: {error}")
    found = list(asked.values())
    told = {"replay": trace, "first": first, "jobs": jobs}
    spread = [found[round(number * (len(found) - 1) / max(1, keep - 1))] for number in range(min(keep, len(found)))]
    return [instance.with_origin({**told, "decision": number}) for number, instance in spread]


def _hunt(problem: str, number: int, heuristic: str) -> Draw:
    text = f"validation.find_worst({problem!r}, {heuristic!r}, seed={number}, restarts=1, jobs=1)"
    origin = {"kind": "hunt", "call": text, "heuristic": heuristic}

    def make() -> AnyInstance:
        return find_worst(problem, heuristic, seed=number, restarts=1, jobs=1, budget=20.0).judged.instance

    return Draw(f"{problem}-w{number:02}", origin, "MIT", make, QUICK)


def _or_none(call: Callable[[], AnyInstance]) -> Callable[[], AnyInstance | None]:
    """Return what makes a call's instance; None where the data have no such instance."""

    def make() -> AnyInstance | None:
        try:
            return call()
        except InstanceError as error:
            print(f"no such instance: {error}")
            return None

    return make


def _written(options: Options) -> list[str]:
    return [f"{name}={value!r}" for name, value in options.items()]


def _told(kind: str, text: str, options: Options) -> tuple[dict[str, Any], str]:
    """Origin and licence of what reads these files, or none."""
    files = [options[name] for name in ("throughputs", "trace") if name in options]
    licences = [next(one for path, one in LICENCES.items() if file.startswith(path)) for file in files]
    origin = {"kind": kind, "call": text} | ({"files": files} if files else {})
    return origin, " AND ".join(sorted(set(licences))) or "MIT"
