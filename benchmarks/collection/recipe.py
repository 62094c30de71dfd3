"""What the collection is drawn from: for each problem a list of draws, each with a name and the call that makes it.

The number of a draw is its seed, and picks the options by turns, so that a list may grow at its end and nothing before
it changes.  Paths of public data are those below ``SCHEDULING_DATA``.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from instances.base import Instance, InstanceError
from instances.files import instance_type
from validation import catalogue
from validation.errors import ReplayError
from validation.testing.hunt import find_worst

__all__ = ["Draw", "draws"]

AnyInstance = Instance[Any]
Options = Mapping[str, Any]


@dataclass(frozen=True)
class Draw:
    """One instance that is to be in the collection.

    Attributes
    ----------
    name : str
        Of the problem and of where it is from: "g" generated, "t" drawn from a trace, "s" a trace's jobs at a time, "r"
        a decision of a replay, "x" a worked example, "w" a heuristic's worst case; and a number.
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


LICENCES = {
    "gavel/": "MIT",
    "elasticflow/microsoft/": "MIT",
    "elasticflow/": "Apache-2.0",
    "synergy/": "MIT",
    "tiresias/": "Apache-2.0",
}
"""Of public data, by the beginnings of their paths; the first that fits counts."""

QUICK, LONG = 5.0, 30.0
"""Limits for proofs, s."""


def draws(problem: str) -> Iterator[Draw]:
    """All draws of a problem."""
    recipe = RECIPE[problem]
    yield from _examples(problem)
    yield from _calls(problem, "g", "generator", "generate", recipe.generated, recipe.count, QUICK)
    yield from _calls(problem, "h", "generator", "generate", recipe.hard, len(recipe.hard), LONG)
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
    traces: Sequence[Options] = ()
    traced: int = 0
    snapshots: Sequence[Options] = ()
    replays: Sequence[Options] = ()
    hunted: Sequence[str] = ()


# --- kinds of draws ---


def _examples(problem: str) -> Iterator[Draw]:
    """The worked examples: what functions of the problem's module without parameters make."""
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
    from validation.replay.settings import module_of
    from validation.replay.workloads import read_jobs

    table = read_jobs(trace).iloc[first : first + jobs]
    if throughputs:
        setting["throughputs"] = throughputs
    asked: dict[str, tuple[int, AnyInstance]] = {}

    def sink(number: int, instance: AnyInstance) -> None:
        if instance.problem == problem and instance.dims.get("n", 0) >= least:
            asked.setdefault(instance.digest, (number, instance))

    try:
        made = module_of(problem).from_jobs(table, problem=problem, **setting)
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
    """What a call makes; None where the data have no such instance."""

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


# --- the recipe ---

PHILLY = "elasticflow/traces/philly_103959.csv"
POLLUX = "elasticflow/traces/elasticVpollux_e.csv"
A100, T4 = "elasticflow/throughputs_A100", "elasticflow/throughputs_T4"
MICROSOFT = [f"elasticflow/microsoft/raw/cluster{number}.csv" for number in ("02", "05", "10")]
TIRESIAS = "tiresias/60_job.csv"
DAYS: Options = {"slot_seconds": 86400.0, "draw_models": True}
PROFILES = "synergy/sensitivity_profiles.json"
SYNERGY = "synergy/static_100job.csv"
SIMULATED, PHYSICAL = "gavel/simulation_throughputs.json", "gavel/physical_cluster_throughputs.json"
GAVEL = "gavel/msr_seed0_0e4a51.trace"
GAVEL_STATIC = ["gavel/max_min_fairness.trace", "gavel/minimize_makespan.trace", "gavel/medium_test.trace"]

POLICY_GENERATED: list[Options] = [
    {"num_jobs": 4, "workers_per_pool": 2},
    {"num_jobs": 8, "workers_per_pool": 4, "pair_fraction": 0.0},
    {"num_jobs": 8, "workers_per_pool": 3},
    {"num_jobs": 12, "workers_per_pool": 4, "unconsolidated": True},
    {"num_jobs": 16, "workers_per_pool": 4, "pair_fraction": 0.1},
    {"num_jobs": 24, "num_types": 4, "pair_fraction": 0.0},
    {"num_jobs": 32, "heterogeneity": 3.0, "pair_fraction": 0.05},
]
POLICY_TRACES: list[Options] = [
    {"throughputs": SIMULATED, "trace": GAVEL, "num_jobs": 12, "num_workers": 8},
    {"throughputs": PHYSICAL, "trace": GAVEL_STATIC[0], "num_jobs": 16, "num_workers": 8},
    {"throughputs": SIMULATED, "trace": GAVEL_STATIC[1], "num_jobs": 24, "num_workers": 8, "share_space": False},
    {"throughputs": SIMULATED, "trace": GAVEL, "num_jobs": 14, "num_workers": 4, "unconsolidated": True},
    {"throughputs": SIMULATED, "trace": GAVEL_STATIC[2], "num_jobs": 16, "num_workers": 4},
    {"throughputs": PHYSICAL, "trace": GAVEL, "num_jobs": 48, "num_workers": 8, "share_space": False},
    {"throughputs": SIMULATED, "trace": GAVEL, "num_jobs": 24, "num_workers": 8},
]
POLICY_SNAPSHOTS: list[Options] = [
    {
        "throughputs": SIMULATED,
        "trace": GAVEL,
        "time": time,
        "num_workers": workers,
        "share_space": pairs,
        "slowdown": slowdown,
        "only_listed": True,
    }
    for time, workers, pairs, slowdown in (
        (20000.0, 3, True, 1.0),
        (60000.0, 3, False, 1.0),
        (100000.0, 2, True, 1.0),
        (150000.0, 4, False, 2.0),
        (80000.0, 3, True, 1.0),
        (300000.0, 8, False, 4.0),
    )
]


def _policy(decider: str, *, hunted: Sequence[str] = (), **fields: Options) -> Recipe:
    replay = {"throughputs": SIMULATED, "num_workers": 8, "decider": decider}
    return Recipe(
        POLICY_GENERATED,
        11,
        traces=POLICY_TRACES,
        traced=14,
        snapshots=POLICY_SNAPSHOTS,
        replays=[
            {**replay, "trace": MICROSOFT[2], "first": 0, "jobs": 40, "keep": 4, "space_sharing": False},
            {**replay, "trace": PHILLY, "first": 100, "jobs": 40, "keep": 4, "letter": "q"},
        ],
        hunted=hunted,
    )


RECIPE: dict[str, Recipe] = {
    "afs.elastic_sharing": Recipe(
        [
            {"num_jobs": 2, "num_gpus": 4},
            {"num_jobs": 3, "num_gpus": 8},
            {"num_jobs": 3, "num_gpus": 4, "rigid": 0.5},
            {"num_jobs": 4, "num_gpus": 8, "reallocation": "any_time"},
            {"num_jobs": 4, "num_gpus": 8},
            {"num_jobs": 5, "num_gpus": 16},
        ],
        18,
        hard=[
            {"num_jobs": 8, "num_gpus": 16},
            {"num_jobs": 6, "num_gpus": 8, "rigid": 0.5},
            {"num_jobs": 5, "num_gpus": 8, "arrival_gap": 0.5},
            {"num_jobs": 9, "num_gpus": 32},
            {"num_jobs": 8, "num_gpus": 8, "rigid": 0.5},
            {"num_jobs": 10, "num_gpus": 16, "rigid": 0.3},
            {"num_jobs": 8, "num_gpus": 8, "arrival_gap": 0.3},
            {"num_jobs": 12, "num_gpus": 64},
        ],
        traces=[
            {"throughputs": A100, "trace": PHILLY, "num_jobs": 3, "num_gpus": 8, "repair": True},
            {"throughputs": T4, "trace": POLLUX, "num_jobs": 4, "num_gpus": 8, "repair": True},
            {"throughputs": A100, "trace": MICROSOFT[0], "num_jobs": 4, "num_gpus": 16, "repair": True},
            {"throughputs": A100, "trace": TIRESIAS, "num_jobs": 3, "num_gpus": 8, "repair": True},
        ],
        traced=12,
        replays=[
            {
                "trace": MICROSOFT[2],
                "throughputs": A100,
                "first": 0,
                "jobs": 24,
                "keep": 8,
                "decider": "afs_l",
                "num_gpus": 8,
            },
        ],
        hunted=["afs_l", "srtf_elastic"],
    ),
    "afs.gpu_placement": Recipe(
        [
            {"num_jobs": 3, "num_machines": 2, "gpus_per_machine": 4},
            {"num_jobs": 5, "num_machines": 3, "gpus_per_machine": 4},
            {"num_jobs": 8},
            {"num_jobs": 8, "change": 0.2},
            {"num_jobs": 16, "load": 0.8},
            {"num_jobs": 24},
        ],
        34,
        hard=[{"num_jobs": 48}, {"num_jobs": 64}, {"num_jobs": 96}],
        hunted=["first_fit_decreasing"],
    ),
    "afs.network_packing": Recipe(
        [
            {"num_jobs": 3, "num_machines": 2, "gpus_per_machine": 4},
            {"num_jobs": 6, "skew": 0.8},
            {"num_jobs": 10},
            {"num_jobs": 10, "floor_guarantee": False},
            {"num_jobs": 30, "skew": 0.9},
            {"num_jobs": 60},
        ],
        36,
        hunted=["floor_and_grow"],
    ),
    "afs.two_job": Recipe(
        [{"max_share": 2}, {"max_share": 8}, {"max_share": 8, "closeness": 0.95}, {"max_share": 32}],
        24,
        hunted=["pairwise_rule"],
    ),
    "aryl.base_allocation": Recipe(
        [
            {"num_jobs": 3, "capacity": 6},
            {"num_jobs": 4, "capacity": 8},
            {"num_jobs": 5, "capacity": 10},
            {"num_jobs": 6, "capacity": 16},
        ],
        16,
        replays=[
            {
                "trace": trace,
                "first": first,
                "jobs": 60,
                "keep": 9,
                "decider": "shortest_job_first",
                "num_servers": 2,
                "loaned": 1,
                "letter": letter,
            }
            for trace, first, letter in ((MICROSOFT[1], 200, "r"), (MICROSOFT[0], 0, "q"))
        ],
        hunted=["shortest_job_first"],
    ),
    "aryl.elastic_allocation": Recipe(
        [
            {"num_jobs": 5, "max_extra": 4},
            {"num_jobs": 10},
            {"num_jobs": 20, "linear": False},
            {"num_jobs": 40, "tightness": 0.3},
            {"num_jobs": 80, "tightness": 0.7},
        ],
        15,
        traces=[
            {"throughputs": A100, "trace": PHILLY, "num_jobs": 8},
            {"throughputs": T4, "trace": POLLUX, "num_jobs": 16, "scaling": 4},
            {"throughputs": A100, "trace": MICROSOFT[1], "num_jobs": 24, "tightness": 0.3},
            {"throughputs": A100, "trace": TIRESIAS, "num_jobs": 40, "scaling": 3},
        ],
        traced=14,
        replays=[
            {
                "trace": MICROSOFT[1],
                "first": 200,
                "jobs": 60,
                "keep": 10,
                "decider": "dynamic_program",
                "num_servers": 4,
                "elastic": 0.6,
                "scaling": 4,
            }
        ],
        hunted=["marginal_greedy", "gandiva"],
    ),
    "aryl.placement": Recipe(
        [
            {"total_workers": 4},
            {"total_workers": 8, "awkward": 0.8},
            {"total_workers": 12},
            {"total_workers": 20, "load": 0.95},
            {"total_workers": 32, "elastic": 0.6},
        ],
        20,
        hard=[
            {"total_workers": 60, "load": 0.95},
            {"total_workers": 80, "awkward": 0.9},
            {"total_workers": 120, "awkward": 0.9, "load": 1.0},
            {"total_workers": 200, "awkward": 0.9, "load": 1.0},
        ],
        replays=[
            {
                "trace": trace,
                "first": first,
                "jobs": 60,
                "keep": 8,
                "decider": "best_fit_decreasing",
                "num_servers": 4,
                "elastic": 0.5,
                "scaling": 3,
                "loaned": 2,
                "letter": letter,
            }
            for trace, first, letter in ((MICROSOFT[2], 0, "r"), (MICROSOFT[0], 500, "q"))
        ],
        hunted=["best_fit_decreasing"],
    ),
    "aryl.reclaim": Recipe(
        [
            {"num_servers": 6},
            {"num_servers": 8, "elastic": 0.4},
            {"num_servers": 10, "spread": 1.0},
            {"num_servers": 14, "locality": 0.5},
            {"num_servers": 20},
            {"num_servers": 30, "jobs_per_server": 4.0},
        ],
        24,
        hard=[
            {"num_servers": 40, "spread": 1.0, "locality": 0.5},
            {"num_servers": 60, "jobs_per_server": 4.0, "spread": 1.0},
            {"num_servers": 60, "demand": 18, "spread": 1.0, "locality": 0.0},
            {"num_servers": 80, "demand": 24, "spread": 1.0, "locality": 0.0},
            {"num_servers": 80, "demand": 24, "spread": 1.0, "locality": 0.5},
            {"num_servers": 90, "demand": 27, "jobs_per_server": 4.0, "spread": 1.0, "locality": 0.2},
        ],
        replays=[
            {
                "trace": trace,
                "first": first,
                "jobs": 200,
                "keep": 9,
                "decider": "server_fraction",
                "num_servers": 8,
                "loaned": 12,
                "elastic": 0.3,
                "letter": letter,
            }
            for trace, first, letter in ((MICROSOFT[0], 0, "r"), (MICROSOFT[1], 0, "q"))
        ],
        hunted=["server_fraction", "local_search", "smallest_count_first"],
    ),
    "aryl.two_job": Recipe(
        [{"num_gpus": 8}, {"num_gpus": 16, "binding": 1.0}, {"num_gpus": 64}, {"num_gpus": 512}],
        24,
        hunted=["closed_form"],
    ),
    "elasticflow.admission": Recipe(
        [
            {"num_jobs": 3, "num_gpus": 4, "horizon": 4, "tightness": 0.8},
            {"num_jobs": 5, "num_gpus": 4, "horizon": 6, "tightness": 1.0},
            {"num_jobs": 6, "num_gpus": 8, "horizon": 8, "tightness": 0.8, "curves": "measured"},
            {"num_jobs": 8, "num_gpus": 8, "horizon": 10, "tightness": 1.0, "curves": "linear"},
            {"num_jobs": 10, "num_gpus": 16, "tightness": 0.7},
        ],
        18,
        hard=[
            {"num_jobs": 15, "num_gpus": 16, "tightness": 1.0, "curves": "measured"},
            {"num_jobs": 25, "num_gpus": 16, "tightness": 1.2},
            {"num_jobs": 20, "num_gpus": 16, "tightness": 1.2, "curves": "measured"},
            {"num_jobs": 40, "num_gpus": 32, "tightness": 1.5},
        ],
        traces=[
            {
                "throughputs": A100,
                "trace": PHILLY,
                "num_jobs": 6,
                "num_gpus": 8,
                **DAYS,
            },
            {"throughputs": T4, "trace": POLLUX, "num_jobs": 8, "num_gpus": 8},
            {"throughputs": A100, "trace": MICROSOFT[0], "num_jobs": 8, "num_gpus": 8},
            {"throughputs": A100, "trace": TIRESIAS, "num_jobs": 10, "num_gpus": 8, "slot_seconds": 600.0},
        ],
        traced=14,
        replays=[
            {
                "trace": MICROSOFT[2],
                "throughputs": A100,
                "first": 0,
                "jobs": 40,
                "keep": 8,
                "decider": "progressive_filling",
                "num_gpus": 8,
                "slot_seconds": 3600.0,
            }
        ],
        hunted=["progressive_filling", "edf"],
    ),
    "elasticflow.allocation": Recipe(
        [
            {"num_jobs": 2, "num_gpus": 4, "horizon": 4},
            {"num_jobs": 4, "num_gpus": 4, "horizon": 6},
            {"num_jobs": 5, "num_gpus": 8, "horizon": 8, "curves": "measured", "tightness": 0.3},
            {"num_jobs": 8, "num_gpus": 16},
        ],
        18,
        traces=[
            {
                "throughputs": A100,
                "trace": PHILLY,
                "num_jobs": 4,
                "num_gpus": 16,
                **DAYS,
            },
            {"throughputs": T4, "trace": POLLUX, "num_jobs": 4, "num_gpus": 16},
            {"throughputs": A100, "trace": TIRESIAS, "num_jobs": 4, "num_gpus": 16, "slot_seconds": 600.0},
        ],
        traced=15,
        replays=[
            {
                "trace": MICROSOFT[2],
                "throughputs": A100,
                "first": 40,
                "jobs": 40,
                "keep": 8,
                "decider": "greedy_marginal_return",
                "num_gpus": 16,
                "slot_seconds": 3600.0,
            }
        ],
        hunted=["greedy_marginal_return"],
    ),
    "elasticflow.best_effort": Recipe(
        [
            {"num_jobs": 2, "num_gpus": 4, "horizon": 4},
            {"num_jobs": 3, "num_gpus": 4, "horizon": 6},
            {"num_jobs": 4, "num_gpus": 8, "horizon": 6},
            {"num_jobs": 5, "num_gpus": 8, "horizon": 8, "part": 0.6},
        ],
        20,
        hard=[
            {"num_jobs": 10, "num_gpus": 16, "horizon": 16},
            {"num_jobs": 8, "num_gpus": 16, "horizon": 12},
            {"num_jobs": 12, "num_gpus": 16, "horizon": 12, "part": 0.7},
        ],
        replays=[
            {
                "trace": trace,
                "throughputs": A100,
                "first": first,
                "jobs": 40,
                "keep": 9,
                "decider": "shortest_first",
                "num_gpus": 8,
                "slot_seconds": 7200.0,
                "letter": letter,
            }
            for trace, first, letter in ((MICROSOFT[2], 80, "r"), (MICROSOFT[0], 0, "q"))
        ],
        hunted=["minimum_shares_first"],
    ),
    "elasticflow.minimum_satisfactory_share": Recipe(
        [
            {"num_jobs": 2, "num_gpus": 4, "horizon": 4},
            {"num_jobs": 4, "num_gpus": 4, "horizon": 6},
            {"num_jobs": 5, "num_gpus": 8, "horizon": 8, "curves": "measured", "tightness": 0.3},
            {"num_jobs": 8, "num_gpus": 16},
            {"num_jobs": 12, "num_gpus": 16, "horizon": 30},
        ],
        18,
        hard=[
            {"num_jobs": 12, "num_gpus": 16, "curves": "measured", "tightness": 0.5},
            {"num_jobs": 24, "num_gpus": 32, "curves": "measured", "tightness": 0.5},
        ],
        traces=[
            {
                "throughputs": A100,
                "trace": PHILLY,
                "num_jobs": 4,
                "num_gpus": 16,
                **DAYS,
            },
            {"throughputs": T4, "trace": POLLUX, "num_jobs": 5, "num_gpus": 16},
            {"throughputs": A100, "trace": TIRESIAS, "num_jobs": 5, "num_gpus": 16, "slot_seconds": 600.0},
        ],
        traced=15,
        replays=[
            {
                "trace": MICROSOFT[1],
                "throughputs": A100,
                "first": 40,
                "jobs": 40,
                "keep": 8,
                "decider": "progressive_filling",
                "num_gpus": 16,
                "slot_seconds": 3600.0,
                "admission_control": False,
            }
        ],
        hunted=["progressive_filling", "edf"],
    ),
    "elasticflow.placement": Recipe(
        [
            {"num_servers": 1, "gpus_per_server": 8},
            {"num_servers": 2, "gpus_per_server": 4},
            {"num_servers": 4},
            {"num_servers": 8, "churn": 0.6},
            {"num_servers": 16},
            {"num_servers": 24, "resized": 0.3},
        ],
        22,
        replays=[
            {
                "trace": trace,
                "throughputs": A100,
                "first": first,
                "jobs": 40,
                "keep": 8,
                "decider": "buddy_best_fit",
                "num_gpus": 32,
                "server_gpus": 8,
                "slot_seconds": 3600.0,
                "letter": letter,
            }
            for trace, first, letter in ((MICROSOFT[2], 120, "r"), (MICROSOFT[0], 100, "q"))
        ],
        hunted=["buddy_repack"],
    ),
    "gavel.cost": _policy("best_bargain", hunted=["best_bargain"]),
    "gavel.fifo": _policy("fastest_free_type", hunted=["fastest_free_type"]),
    "gavel.finish_time_fairness": _policy("isolated", hunted=["same_ratio"]),
    "gavel.hierarchical_fairness": _policy("isolated", hunted=["entity_share"]),
    "gavel.makespan": _policy("same_finish", hunted=["same_finish"]),
    "gavel.max_min_fairness": _policy("heterogeneity_agnostic", hunted=["equal_share", "approximate_waterfiller"]),
    "gavel.round_assignment": Recipe(
        [
            {"num_jobs": 4, "workers_per_pool": 2},
            {"num_jobs": 6, "workers_per_pool": 3},
            {"num_jobs": 8, "workers_per_pool": 4},
            {"num_jobs": 16, "wide": 0.8},
            {"num_jobs": 32},
            {"num_jobs": 48, "pair_fraction": 0.05},
        ],
        24,
        replays=[
            {
                "trace": trace,
                "throughputs": SIMULATED,
                "first": first,
                "jobs": 30,
                "keep": 9,
                "decider": "greedy_priority",
                "num_workers": 8,
                "round_length": 3600.0,
                "space_sharing": sharing,
                "letter": letter,
            }
            for trace, first, sharing, letter in ((MICROSOFT[2], 0, False, "r"), (PHILLY, 100, True, "q"))
        ],
        hunted=["greedy_priority"],
    ),
    "gavel.shortest_job_first": _policy("shortest_first", hunted=["shortest_first"]),
    "gavel.throughput_per_dollar": _policy("best_bargain_first", hunted=["best_bargain_first"]),
    "gavel.total_throughput": _policy("fastest_first", hunted=["fastest_first"]),
    "synergy.allocation": Recipe(
        [{"num_servers": 1}, {"num_servers": 1, "mix": (50, 0, 50)}, {"num_servers": 2}, {"num_servers": 4}],
        16,
        hard=[{"num_servers": 12, "mix": (50, 0, 50)}, {"num_servers": 24}],
        traces=[
            {"throughputs": PROFILES, "trace": SYNERGY, "num_servers": 1},
            {"throughputs": PROFILES, "trace": SYNERGY, "num_servers": 2},
            {"throughputs": PROFILES, "trace": SYNERGY, "num_servers": 2, "cpus_per_gpu": 6},
        ],
        traced=15,
        replays=[
            {
                "trace": MICROSOFT[2],
                "throughputs": PROFILES,
                "first": 0,
                "jobs": 60,
                "keep": 8,
                "decider": "greedy_marginal",
                "num_servers": 2,
                "round_length": 3600.0,
            }
        ],
        hunted=["greedy_marginal"],
    ),
    "synergy.heterogeneous_allocation": Recipe(
        [
            {"num_servers": 1},
            {"num_servers": 2},
            {"num_servers": 2, "heterogeneity": 8.0},
            {"num_servers": 4, "mix": (50, 0, 50)},
        ],
        34,
        hunted=["proportional"],
    ),
    "synergy.placement": Recipe(
        [
            {"num_servers": 2, "fill": 0.8},
            {"num_servers": 2, "fill": 1.0},
            {"num_servers": 3, "integral_gpus": True},
            {"num_servers": 4, "multi_gpu": False},
        ],
        18,
        hard=[
            {"num_servers": 6, "fill": 1.0},
            {"num_servers": 8, "fill": 1.0},
            {"num_servers": 12, "fill": 1.0},
            {"num_servers": 16, "fill": 1.0},
            {"num_servers": 16, "fill": 1.0},
            {"num_servers": 16, "fill": 1.0},
            {"num_servers": 16, "fill": 0.98},
        ],
        traces=[
            {"throughputs": PROFILES, "trace": SYNERGY, "num_servers": 2},
            {"throughputs": PROFILES, "trace": SYNERGY, "num_servers": 3},
            {"throughputs": PROFILES, "trace": SYNERGY, "num_servers": 2, "cpus_per_gpu": 6},
        ],
        traced=14,
        replays=[
            {
                "trace": MICROSOFT[2],
                "throughputs": PROFILES,
                "first": 0,
                "jobs": 60,
                "keep": 8,
                "decider": "best_fit",
                "num_servers": 2,
                "round_length": 3600.0,
            }
        ],
        hunted=["best_fit"],
    ),
    "synergy.tuning": Recipe(
        [
            {"num_servers": 1},
            {"num_servers": 1, "mix": (50, 0, 50)},
            {"num_servers": 1, "load": 0.6},
            {"num_servers": 2},
        ],
        16,
        hard=[
            {"num_servers": 4, "mix": (50, 0, 50)},
            {"num_servers": 8},
            {"num_servers": 8, "mix": (50, 0, 50)},
            {"num_servers": 16},
        ],
        traces=[
            {"throughputs": PROFILES, "trace": SYNERGY, "num_servers": 1},
            {"throughputs": PROFILES, "trace": SYNERGY, "num_servers": 2},
            {"throughputs": PROFILES, "trace": SYNERGY, "num_servers": 1, "cpus_per_gpu": 6},
        ],
        traced=12,
        replays=[
            {
                "trace": MICROSOFT[2],
                "throughputs": PROFILES,
                "first": 0,
                "jobs": 60,
                "keep": 8,
                "decider": "tune",
                "num_servers": 2,
                "round_length": 3600.0,
            }
        ],
        hunted=["greedy", "tune"],
    ),
}
"""For each problem what is drawn."""
