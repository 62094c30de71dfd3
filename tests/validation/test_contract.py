"""What holds for every problem of the catalogue: its records, refusals, generator, words and exact model.

The tests are derived from the declared fields, so a problem that is added is covered without a test of its own.
What only one problem has, such as a rule that ties two of its fields, is tested beside it.
"""

import copy
import importlib
import inspect
import json
import math
import pickle
import random
import re
from collections.abc import Iterator
from dataclasses import MISSING
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings

import formulations
import instances
from formulations.engine.protocol import formulation
from instances import Instance, InstanceError, Plan, PlanError
from instances.base import Record, agree
from instances.schema import Array, Ragged, Scalar, Unset, declarations
from validation import CATALOGUE, strategy

from ..files import COLLECTED

PROBLEMS = list(CATALOGUE)
ERRORS = {"instance": InstanceError, "plan": PlanError}


def kind_of(problem: str, part: str) -> type[Record]:
    kind = CATALOGUE[problem].instance
    return kind if part == "instance" else kind.plan_type


FIELDS = [
    (problem, part, field) for problem in PROBLEMS for part in ERRORS for field in declarations(kind_of(problem, part))
]
ARRAYS = [case for case in FIELDS if isinstance(declarations(kind_of(*case[:2]))[case[2]], Array)]

RANGES = {
    "float > 0": "costs entity_weights slos weights",
    "float >= 0": "arrivals configs demands elapsed fair_throughputs isolated_elapsed iterations min_running_times "
    "pair_throughputs previous_offsets priorities running_times server_cpus server_memory split_penalty steps "
    "throughputs work workloads",
    "int >= 0": "arrival_order capacity config_types demand entities gpus num_workers pairs pools previous regulated "
    "shares",
    "int >= 1": "deadlines gpu_demands gpus_per_machine gpus_per_server gpus_per_worker max_gpus max_workers min_gpus "
    "min_workers num_gpus num_machines num_servers scale_factors server_gpus sizes",
}
"""What a quantity may be, whichever problem it is a field of."""

RANGE_OF = {field: declared for declared, names in RANGES.items() for field in names.split()}
INFINITE = {"finish_limits", "move_limit", "previous_offsets", "slos"}
OTHER = {
    ("shockwave.window", "weights"): "float >= 0",
    ("prism.placement", "sizes"): "float >= 0",
    ("prism.placement", "slos"): "float > 0",
}
"""Ranges of what is not that quantity, and finite: a factor of a utility, which a round of Gavel's with a priority of 0
needs; what a model takes of a GPU's memory, GB; and latency objectives, of which every model has one.
"""


# --- what the tests look at -----------------------------------------------------------------------


def parts_of(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def is_whole(instance: Instance[Any]) -> bool:
    """Whether no field is left out, of the JSON form either, or without entries."""
    told = instance.to_dict()
    values = [getattr(instance, field) for field in declarations(type(instance))]
    return declarations(type(instance)).keys() <= told.keys() and all(
        value is not None and np.size(part) > 0 for value in values for part in parts_of(value)
    )


@cache
def examples(problem: str) -> list[Instance[Any]]:
    """Small instances of the problem's strategy."""
    found: list[Instance[Any]] = []

    @settings(max_examples=40, phases=[Phase.generate], database=None)
    @given(strategy(problem))
    def collect(instance: Instance[Any]) -> None:
        found.append(instance)

    collect()
    return found


@cache
def whole(problem: str) -> Instance[Any]:
    """One of them with every field."""
    return next(instance for instance in examples(problem) if is_whole(instance))


@cache
def solved(problem: str) -> tuple[Instance[Any], dict[str, Plan]]:
    """A generated instance with its exact plan, and those of all heuristics that find one."""
    entry = CATALOGUE[problem]
    for seed in range(20):
        instance = entry.generate(seed, **{entry.size: entry.sizes[0]})
        plan = formulations.solve(instance).plan
        if plan is not None:
            break
    plans = {"exact": plan}
    for name, heuristic in entry.heuristics.items():
        options = {"rng": 0} if "rng" in inspect.signature(heuristic.function).parameters else {}
        plans[name] = heuristic.function(instance, **options)
        assert plans[name] is not None or heuristic.declines
    return instance, {name: plan for name, plan in plans.items() if plan is not None}


def record(problem: str, part: str) -> Record:
    return whole(problem) if part == "instance" else solved(problem)[1]["exact"]


def whole_form(made: Record) -> dict[str, Any]:
    """The JSON form with all fields, those too that are left out where they say nothing."""
    return made.to_dict() | {
        name: declared.write(getattr(made, name))
        for name, declared in declarations(type(made)).items()
        if getattr(made, name) is not None
    }


def refusal(problem: str, part: str, field: str, value: Any) -> str:
    """What is said of a record with another value in a field; any other exception fails the test."""
    data = {**whole_form(record(problem, part)), field: value}
    try:
        kind_of(problem, part).from_dict(data)
    except ERRORS[part] as error:
        return str(error)
    pytest.fail(f"{field} = {value!r} is taken")


# --- copies ---------------------------------------------------------------------------------------


def through_json(made: Record) -> Any:
    data = json.loads(json.dumps(made.to_dict(), allow_nan=False))
    return instances.read(data) if isinstance(made, Instance) else type(made).from_dict(data)


COPIES = {
    "json": through_json,
    "pickle": lambda made: pickle.loads(pickle.dumps(made)),
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_copy_is_equal_and_read_only(problem: str, way: str) -> None:
    instance, plans = solved(problem)
    for made in (instance, *examples(problem), *plans.values()):
        again = COPIES[way](made)
        # A copy may carry the digest along, so the content is compared too.
        assert again.to_dict() == made.to_dict()
        assert (again, again.digest, hash(again)) == (made, made.digest, hash(made))
        arrays = [part for field in declarations(type(again)) for part in parts_of(getattr(again, field))]
        assert not any(part.flags.writeable for part in arrays if isinstance(part, np.ndarray))


# --- refusals -------------------------------------------------------------------------------------


def with_last(value: Any, entry: Any) -> Any:
    """Nested lists with another last entry."""
    return [*value[:-1], with_last(value[-1], entry)] if isinstance(value, list) else entry


def bad_entries(declared: Any, dims: dict[str, int]) -> list[Any]:
    if declared.kind is str:
        return ["no such word", 1, math.nan]
    if declared.kind is bool:
        return ["yes", 2, 0.5, math.nan]
    bad: list[Any] = ["x", True, math.nan, -math.inf, *([] if declared.infinite else [None, math.inf])]
    bad += [0.5] if declared.kind is int else []
    bad += [] if declared.minimum is None else [declared.minimum - 1]
    bad += [] if declared.above is None else [declared.above, declared.above - 1]
    bad += [dims[declared.index_of]] if getattr(declared, "index_of", "") else []
    return bad


def bad_values(declared: Any, good: Any, dims: dict[str, int]) -> Iterator[Any]:
    yield from ("x", [good])
    # JSON writes infinity so.
    if not isinstance(declared, Ragged) and not (isinstance(declared, Scalar) and declared.infinite):
        yield None
    if isinstance(declared, Array):
        yield good[0]
        # No rows at all are a plan for no jobs; which instance that is for, is the instance's to say.
        yield from () if declared.empty or declared.shape.split()[0] in ("n", "n+q") else ([],)
    for entry in bad_entries(declared, dims):
        yield with_last(good, entry)


@pytest.mark.parametrize(("problem", "part", "field"), FIELDS)
def test_a_value_that_a_field_cannot_have_is_refused_by_its_name(problem: str, part: str, field: str) -> None:
    made = record(problem, part)
    declared = declarations(type(made))[field]
    for value in bad_values(declared, whole_form(made)[field], made.dims):
        said = refusal(problem, part, field, value)
        assert re.match(rf"{type(made).__name__}\.{field}: .*must", said), f"{value!r}: {said}"


@pytest.mark.parametrize(
    ("problem", "field"),
    [
        (problem, field)
        for problem, part, field in ARRAYS
        if isinstance(declarations(kind_of(problem, part))[field], Ragged)
        and kind_of(problem, part).__dataclass_fields__[field].default is MISSING
    ],
)
def test_a_ragged_field_without_default_is_not_none(problem: str, field: str) -> None:
    assert refusal(problem, "instance", field, None).startswith(f"{kind_of(problem, 'instance').__name__}.{field}: ")


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_quantity_has_one_range_in_every_problem(problem: str) -> None:
    fields = declarations(CATALOGUE[problem].instance).items()
    quantities = {field: declared for field, declared in fields if declared.kind in (int, float)}
    assert quantities
    for field, declared in quantities.items():
        assert declared.above is not None or declared.minimum is not None, field
        least = f">= {declared.minimum}" if declared.above is None else f"> {declared.above}"
        found = f"{declared.kind.__name__} {least}"
        # A problem that is added may mean another quantity by a name.
        if problem in COLLECTED:
            assert found == OTHER.get((problem, field), RANGE_OF.get(field, found))
            assert declared.infinite == (field in INFINITE and (problem, field) not in OTHER)


@pytest.mark.parametrize(("problem", "part", "field"), FIELDS)
def test_a_field_that_is_missing_or_misspelt_is_named(problem: str, part: str, field: str) -> None:
    kind, data = kind_of(problem, part), whole_form(record(problem, part))
    misspelt = {(field[:-1] if name == field else name): value for name, value in data.items()}
    with pytest.raises(
        ERRORS[part], match=rf"^{kind.__name__}: unknown field '{field[:-1]}' \(did you mean '{field}'\?\)$"
    ):
        kind.from_dict(misspelt)
    without = {name: value for name, value in data.items() if name != field}
    default = kind.__dataclass_fields__[field].default
    if default is MISSING:
        with pytest.raises(ERRORS[part], match=f"^{kind.__name__}: field '{field}' is missing$"):
            kind.from_dict(without)
    elif not isinstance(default, Unset):
        assert getattr(kind.from_dict(without), field) == default


def lengths(declared: Any, part: str) -> set[str]:
    """What the lengths of a field depend on.  In a plan, n+q is a length of its own, with n and q left open."""
    if not isinstance(declared, Array):
        return set()
    return set(re.findall("[a-z]" if part == "instance" else "[^ ]+", declared.shape))


def resized(value: Any, axis: int) -> tuple[Any, Any]:
    """Nested lists with one entry less, and one more, along an axis."""
    if axis:
        pairs = [resized(row, axis - 1) for row in value]
        return [less for less, _ in pairs], [more for _, more in pairs]
    return value[:-1], [*value, value[-1]]


def lengths_told_twice() -> Iterator[tuple[str, str, str, int, list[str]]]:
    """Each axis of a field whose length is given, or is also that of other fields."""
    for problem, part, field in ARRAYS:
        declared = declarations(kind_of(problem, part))
        for axis, dim in enumerate(declared[field].shape.split()):
            mine = lengths(Array(int, dim), part)
            # Whichever of the fields of one length comes second is the one that does not fit.
            others = [name for name in declared if name == field or lengths(declared[name], part) & mine]
            if (len(others) > 1 or dim.isdigit()) and not (isinstance(declared[field], Ragged) and axis == 1):
                yield problem, part, field, axis, others


@pytest.mark.parametrize(("problem", "part", "field", "axis", "others"), list(lengths_told_twice()))
def test_lengths_that_do_not_agree_are_refused_by_name(
    problem: str, part: str, field: str, axis: int, others: list[str]
) -> None:
    made = record(problem, part)
    for value in resized(whole_form(made)[field], axis):
        said = refusal(problem, part, field, value)
        assert re.match(rf"{type(made).__name__}\.({'|'.join(others)}): ", said), f"{value!r}: {said}"


# --- plans for other instances --------------------------------------------------------------------


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_plan_of_another_problem_is_refused(problem: str) -> None:
    instance, plans = solved(problem)
    others = ("aryl.reclaim", "aryl.two_job")
    wrong = [next(p for p in (solved(o)[1]["exact"] for o in others) if not isinstance(p, instance.plan_type))]
    for given_ in (None, plans["exact"].to_dict(), instance, *wrong):
        words = f"^{problem}: a plan must be a {instance.plan_type.__name__}, got {type(given_).__name__}$"
        for judge in (instance.objective, instance.violations):
            with pytest.raises(PlanError, match=words):
                judge(given_)


# A plan of Reclaim may name any number of servers; that it returns too few is a rule's to say.
SIZED = [case for case in ARRAYS if case[1] == "plan" and case[0] != "aryl.reclaim"]


@pytest.mark.parametrize(("problem", "part", "field"), SIZED)
def test_a_plan_of_another_size_is_refused(problem: str, part: str, field: str) -> None:
    instance, plans = solved(problem)
    data = plans["exact"].to_dict()
    for axis in range(len(declarations(instance.plan_type)[field].shape.split())):
        for value in resized(data[field], axis):
            for judge in (instance.objective, instance.violations):
                with pytest.raises(PlanError, match=rf"^{instance.plan_type.__name__}\.\w+: "):
                    judge(instance.plan_type.from_dict({**data, field: value}))


# --- generators -----------------------------------------------------------------------------------


def global_state() -> Any:
    _, key, position, *_ = np.random.get_state()  # noqa: NPY002
    return random.getstate(), key.tolist(), position


@pytest.mark.parametrize("problem", PROBLEMS)
def test_an_instance_is_drawn_from_the_seed_alone(problem: str) -> None:
    entry = CATALOGUE[problem]
    before = global_state()
    drawn = [entry.generate(7), entry.generate(np.random.default_rng(7))]
    assert global_state() == before
    assert drawn[0] == drawn[1] == entry.generate(7)
    assert drawn[0].to_dict() == drawn[1].to_dict()
    assert len({entry.generate(seed) for seed in range(5)}) == 5


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_size_is_that_of_the_instance(problem: str) -> None:
    entry = CATALOGUE[problem]
    assert entry.generate == importlib.import_module(f"instances.{problem}").generate
    for size in entry.sizes[:2]:
        instance = entry.generate(3, **{entry.size: size})
        if entry.size == "max_share":
            # How many GPUs the two jobs of AFS share at most, which no field holds.
            assert instance != entry.generate(3, max_share=size + 1)
        else:
            assert np.all(getattr(instance, entry.size) == size)


# --- words ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_problem_says_what_it_is(problem: str) -> None:
    kind = CATALOGUE[problem].instance
    assert kind is instances.instance_type(problem)
    assert kind.problem == problem
    assert kind.sense in ("min", "max")
    assert issubclass(kind.plan_type, Plan)
    assert kind.measure != Instance.measure or problem not in COLLECTED
    for cls in (kind, kind.plan_type):
        # A dataclass without a docstring is given its signature for one.
        own = [base for base in cls.__mro__ if issubclass(base, Record) and base.__module__ != "instances.base"]
        told = " ".join(base.__doc__ or "" for base in own if not (base.__doc__ or "").startswith(f"{base.__name__}("))
        assert [field for field in declarations(cls) if not re.search(rf"\b{field}\b", told)] == []


@pytest.mark.parametrize("problem", PROBLEMS)
def test_all_that_is_public_has_a_docstring(problem: str) -> None:
    module = importlib.import_module(f"instances.{problem}")
    named = getattr(module, "__all__", None) or [
        name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__
    ]
    public = {name: getattr(module, name) for name in named}
    assert public
    assert module.__doc__
    assert [name for name, value in public.items() if inspect.isroutine(value) and not value.__doc__] == []
    assert [
        f"{name}.{method}"
        for name, value in public.items()
        if inspect.isclass(value)
        for method, function in vars(value).items()
        if not method.startswith("_") and inspect.isroutine(function) and not function.__doc__
    ] == []


# --- the exact model ------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_exact_model_is_solved_and_its_plan_read(problem: str) -> None:
    offered = formulation(problem)
    # Of jobs that arrive over time there is a bound only.
    at_once = [one for one in examples(problem) if not np.any(getattr(one, "arrivals", 0))]
    assert len(at_once) >= 6
    for instance in [solved(problem)[0], *at_once[:6]]:
        solution = formulations.solve(instance)
        assert solution.status in ("optimal", "infeasible")
        json.dumps(solution.to_dict(), allow_nan=False)
        model = formulations.build(instance)
        found = formulations.solve(model)
        if solution.plan is None:
            assert (solution.status, found.status) == ("infeasible", "infeasible")
            continue
        assert instance.violations(solution.plan) == []
        assert instance.objective(solution.plan) == solution.objective
        found.load()
        plan = formulations.read(model)
        assert plan == found.plan
        assert instance.violations(plan) == []
        # Where no one model states the problem, the model is the first of several.
        assert offered.any_solver or agree(instance.objective(plan), instance.objective(solution.plan))
        if offered.write is not None:
            written = formulations.build(instance)
            offered.write(written, solution.plan)
            assert agree(instance.objective(formulations.read(written)), instance.objective(solution.plan))
