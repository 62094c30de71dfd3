"""Instances and plans as records: declarations, checks, JSON form, digests, and the judging of plans."""

import copy
import dataclasses
import json
import math
import pickle
import subprocess
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import instances
from instances import Instance, InstanceError, Plan, PlanError, Violation
from instances.base import Record, agree, exceeding
from instances.gavel.max_min_fairness import three_jobs
from instances.schema import Array, BoolArray, FloatArray, IntArray, Ragged, Scalar, default


@dataclasses.dataclass(frozen=True, eq=False)
class Shift(Plan):
    starts: Annotated[FloatArray, Array(float, "n")]
    routes: Annotated[tuple[IntArray, ...] | None, Ragged(int, "n _", minimum=0, empty=True)] = None


@dataclasses.dataclass(frozen=True, eq=False)
class Depot(Instance[Shift]):
    problem = "test.depot"
    sense = "min"
    plan_type = Shift

    durations: Annotated[FloatArray, Array(float, "n", above=0)]
    deadlines: Annotated[FloatArray, Array(float, "n", infinite=True)]
    counts: Annotated[IntArray, Array(int, "n k", minimum=0)] = default(lambda dims: np.zeros((dims["n"], 2)))
    urgent: Annotated[BoolArray, Array(bool, "n")] = default(lambda dims: np.zeros(dims["n"], bool))
    links: Annotated[IntArray, Array(int, "q 2", minimum=0, empty=True)] = default(lambda dims: np.zeros((0, 2)))
    weights: Annotated[FloatArray, Array(float, "n+q")] = default(lambda dims: np.ones(dims["n"] + dims["q"]))
    curves: Annotated[tuple[FloatArray, ...] | None, Ragged(float, "n _", infinite=True)] = None
    horizon: Annotated[float, Scalar(float, minimum=0, infinite=True)] = math.inf
    servers: Annotated[int, Scalar(int, minimum=1)] = 1
    strict: Annotated[bool, Scalar(bool)] = False
    mode: Annotated[str, Scalar(str, choices=("fifo", "edf"))] = "fifo"

    def _check(self) -> None:
        if self.servers > 2 * len(self.durations):
            raise self.refuse("servers", f"got {self.servers}, must be at most twice the jobs")

    def _value(self, plan: Shift) -> float:
        return float((plan.starts + self.durations).max())

    def _broken_rules(self, plan: Shift) -> Iterator[Violation]:
        yield from exceeding("deadline", plan.starts + self.durations, self.deadlines)


GIVEN: dict[str, Any] = {"durations": [1.0, 2.0], "deadlines": [3.0, 4.0]}


def depot(**fields: Any) -> Depot:
    return Depot(**{**GIVEN, **fields})


@pytest.mark.parametrize(
    ("field", "got", "complaint"),
    [
        # shapes
        ("durations", 1.0, r"got shape \(\), must be \(n,\)"),
        ("durations", [[1.0, 2.0]], r"got shape \(1, 2\), must be \(n,\)"),
        ("durations", [], r"got shape \(0,\), must be \(n,\) with n = 2"),
        ("deadlines", [1.0], r"got shape \(1,\), must be \(n,\) with n = 2"),
        ("counts", [[1, 2]], r"got shape \(1, 2\), must be \(n, k\) with n = 2"),
        ("counts", [[1, 2], [3]], "got rows of different lengths, must be a rectangular array"),
        ("links", [[0, 1, 2]], r"got shape \(1, 3\), must be \(q, 2\)"),
        ("weights", [1.0], r"got shape \(1,\), must be \(n\+q,\) with n\+q = 2"),
        # kinds
        ("durations", ["1", "2"], r"got '1' at index \[0\], must be a number in every entry"),
        ("durations", [None, 2.0], r"got None at index \[0\], must be a number"),
        ("durations", [True, False], r"got True at index \[0\], must be a number"),
        ("durations", [1.5, True], r"got True at index \[1\], must be a number"),
        ("durations", np.array([1.0, 2.0j]), "must be a number"),
        ("durations", {"a": 1}, "must be a number"),
        ("durations", np.ma.array([1.0, 2.0], mask=[False, True]), "masked"),
        ("durations", [10**400, 1], r"at index \[0\], must be a number"),
        ("counts", [[1, 2], [3, 4.5]], r"got 4.5 at index \[1, 1\], must be a whole number in every entry"),
        ("counts", [[1, 2], [True, 4]], r"got True at index \[1, 0\], must be a whole number"),
        ("counts", [[1, 2], [np.True_, 4]], r"True_? at index \[1, 0\], must be a whole number"),
        ("counts", [[1, 2], [3, 2**63]], r"at index \[1, 1\], must be a whole number"),
        ("counts", [[2**63, 2**63]] * 2, "beyond 64 bits"),
        ("counts", [[1, 2], [3, 2**64]], r"got 18446744073709551616 at index \[1, 1\], must be a whole number"),
        ("counts", np.array([[1, 2], [3, 2**63]], np.uint64), "beyond 64 bits"),
        ("counts", [[1.0, 2.0], [3.0, 2.0**53]], r"at index \[1, 1\], must be a whole number"),
        ("counts", [[1, 2], [3, math.inf]], r"got inf at index \[1, 1\], must be a whole number"),
        ("urgent", [0, 2], "must be true or false"),
        ("urgent", [0.0, 1.0], "must be true or false"),
        # ranges
        ("durations", [1.0, 0.0], r"got 0.0 at index \[1\], must be greater than 0"),
        ("durations", [math.nan, 1.0], r"got nan at index \[0\], must be finite"),
        ("durations", [1.0, math.inf], r"got inf at index \[1\], must be finite"),
        ("deadlines", [1.0, math.nan], r"got nan at index \[1\], must be a number or infinity, not NaN"),
        ("deadlines", [1.0, -math.inf], r"got -inf at index \[1\], must be a number or infinity, not -infinity"),
        ("counts", [[1, 2], [-3, 4]], r"got -3 at index \[1, 0\], must be at least 0"),
        # ragged fields
        ("curves", [[1.0]], "got 1 arrays, must be n = 2"),
        ("curves", 3.0, "got float, must be a sequence of arrays"),
        ("curves", "ab", "got str, must be a sequence of arrays"),
        ("curves", {0: [1.0], 1: [2.0]}, "got dict, must be a sequence of arrays"),
        ("curves", np.array(3.0), "got ndarray, must be a sequence of arrays"),
        ("curves", [[1.0], []], r"entry 1: got shape \(0,\), must have at least one entry"),
        ("curves", [[1.0], [[2.0]]], r"entry 1: got shape \(1, 1\)"),
        ("curves", [[1.0], [2.0, "x"]], "entry 1: got .*, must be a number"),
        ("curves", [[1.0], [2.0, math.nan]], r"entry 1: got nan at index \[1\], must be a number or infinity, not NaN"),
        # scalars
        ("horizon", math.nan, "got nan, must be a number or infinity, not NaN"),
        ("horizon", -1.0, r"got -1.0, must be at least 0"),
        ("horizon", True, "got True, must be a number"),
        ("horizon", "3", "got '3', must be a number"),
        ("horizon", [3.0], r"got an array of shape \(1,\), must be a number"),
        ("servers", 0, "got 0, must be at least 1"),
        ("servers", 1.5, "got 1.5, must be a whole number"),
        ("servers", True, "got True, must be a whole number"),
        ("servers", None, "got None, must be a whole number"),
        ("servers", 2**70, "must be a whole number"),
        ("servers", 5, "got 5, must be at most twice the jobs"),
        ("strict", 2, "got 2, must be true or false"),
        ("strict", "yes", "got 'yes', must be true or false"),
        ("mode", "lifo", "got 'lifo', must be one of fifo, edf"),
        ("mode", ["fifo"], r"got \['fifo'\], must be one of"),
        ("mode", np.array(["fifo", "edf"]), "must be one of"),
    ],
)
def test_bad_values_are_refused_by_name(field: str, got: Any, complaint: str) -> None:
    with pytest.raises(InstanceError, match=rf"^Depot\.{field}: .*({complaint})"):
        depot(**{field: got})


def test_errors_are_value_errors_and_plans_have_their_own() -> None:
    assert issubclass(InstanceError, ValueError)
    assert issubclass(PlanError, ValueError)
    with pytest.raises(PlanError, match=r"^Shift\.starts: got nan at index \[0\], must be finite"):
        Shift(starts=[math.nan])


@pytest.mark.parametrize(
    ("field", "got", "kept"),
    [
        ("durations", [1, 2], np.array([1.0, 2.0])),
        ("durations", (1, 2.5), np.array([1.0, 2.5])),
        ("durations", range(1, 3), np.array([1.0, 2.0])),
        ("durations", np.array([1, 2], np.uint8), np.array([1.0, 2.0])),
        ("durations", np.array([0.5, 2], np.float32), np.array([0.5, 2.0])),
        ("counts", [[1.0, 2.0], [3.0, 4.0]], np.array([[1, 2], [3, 4]])),
        ("counts", np.array([[1, 2], [3, 4]], np.uint16), np.array([[1, 2], [3, 4]])),
        ("counts", np.array([[1, 2], [3, 4]], ">i4"), np.array([[1, 2], [3, 4]])),
        ("counts", [[2**53 + 1, 0], [0, 2**63 - 1]], np.array([[2**53 + 1, 0], [0, 2**63 - 1]])),
        ("urgent", [1, 0], np.array([True, False])),
        ("deadlines", [None, 2], np.array([math.inf, 2.0])),
        ("links", [], np.zeros((0, 2), np.int64)),
    ],
)
def test_accepted_values_have_one_form(field: str, got: Any, kept: np.ndarray) -> None:
    value = getattr(depot(**{field: got}), field)
    assert value.dtype == kept.dtype
    assert value.shape == kept.shape
    assert (value == kept).all()


def test_scalars_have_the_declared_type() -> None:
    instance = depot(horizon=np.float32(2), servers=np.int16(2), strict=1, mode=np.str_("edf"))
    assert [type(v) for v in (instance.horizon, instance.servers, instance.strict, instance.mode)] == [
        float,
        int,
        bool,
        str,
    ]
    assert depot(horizon=None).horizon == math.inf
    assert math.copysign(1, depot(horizon=-0.0).horizon) == 1


def test_defaults_are_filled_from_the_dimensions_of_given_fields() -> None:
    instance = depot(links=[[0, 1], [1, 0], [1, 1]])
    assert instance.counts.shape == (2, 2)
    assert instance.urgent.dtype == np.bool_
    assert instance.weights.tolist() == [1.0] * 5
    assert instance.curves is None
    assert instance.dims == {"n": 2, "q": 3, "k": 2}
    assert depot().weights.shape == (2,)
    with pytest.raises(InstanceError, match=r"Depot.weights: .*n\+q = 3"):
        depot(links=[[0, 1]], weights=[1.0, 1.0])


def test_fields_without_default_are_required() -> None:
    with pytest.raises(TypeError, match="deadlines"):
        Depot(durations=[1.0])  # type: ignore[call-arg]


def test_undeclared_fields_are_a_mistake_of_the_class() -> None:
    @dataclasses.dataclass(frozen=True, eq=False)
    class Bare(Record):
        x: int

    with pytest.raises(TypeError, match=r"Bare\.x must be declared as Annotated"):
        Bare(3)


# --- immutability ---------------------------------------------------------------------------------


def arrays_of(record: Record) -> list[np.ndarray]:
    values = [getattr(record, field.name) for field in dataclasses.fields(record)]
    parts = [part for value in values for part in (value if isinstance(value, tuple) else (value,))]
    return [part for part in parts if isinstance(part, np.ndarray)]


@pytest.mark.parametrize(
    "made",
    [
        lambda i: i,
        lambda i: pickle.loads(pickle.dumps(i)),
        copy.copy,
        copy.deepcopy,
        dataclasses.replace,
        lambda i: Depot.from_dict(i.to_dict()),
    ],
)
def test_arrays_are_read_only_however_the_record_was_made(made: Any) -> None:
    original = depot(curves=[[1.0], [2.0, math.inf]])
    instance = made(original)
    assert instance == original
    assert instance.digest == original.digest
    assert instance.dims == original.dims
    assert len(arrays_of(instance)) == 8
    for array in arrays_of(instance):
        assert not array.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        instance.servers = 2


@pytest.mark.parametrize(
    "made",
    [
        lambda i: pickle.loads(pickle.dumps(i)),
        lambda i: dataclasses.replace(i, durations=pickle.loads(pickle.dumps(i.durations))),
    ],
)
def test_numbers_have_numpys_own_types_after_pickling(made: Any) -> None:
    """A pickle's type is equal but another object, with which ``np.maximum.at`` is thirty times slower."""
    numbers = [array for array in arrays_of(made(depot())) if array.dtype.kind in "biuf"]
    assert len(numbers) >= 5
    assert all(array.dtype is np.dtype(array.dtype.type) for array in numbers)


def test_the_callers_array_is_copied_and_stays_writable() -> None:
    mine = np.array([1.0, 2.0])
    instance = depot(durations=mine)
    mine[0] = 7.0
    assert instance.durations.tolist() == [1.0, 2.0]


# --- digests and equality -------------------------------------------------------------------------


def test_equal_content_has_one_digest_whatever_it_was_made_from() -> None:
    lists = depot(durations=[1, 2], deadlines=[0, None], counts=[[1, 2], [3, 4]], horizon=0)
    arrays = depot(
        durations=np.array([1, 2], np.float32),
        deadlines=np.array([-0.0, math.inf]),
        counts=np.asfortranarray([[1, 2], [3, 4]]).astype(">i2"),
        horizon=-0.0,
        mode=np.str_("fifo"),
    )
    assert lists.digest == arrays.digest
    assert lists == arrays
    assert hash(lists) == hash(arrays)
    assert len({lists, arrays}) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"durations": [1.0, 2.0 + 1e-15]},
        {"counts": [[0, 0, 0], [0, 0, 0]]},
        {"urgent": [False, True]},
        {"curves": [[1.0], [2.0]]},
        {"horizon": 1e300},
        {"servers": 2},
        {"mode": "edf"},
    ],
)
def test_any_change_changes_the_digest(change: dict[str, Any]) -> None:
    assert depot(**change) != depot()
    assert depot(**change).digest != depot().digest


def test_records_of_other_types_are_never_equal() -> None:
    @dataclasses.dataclass(frozen=True, eq=False)
    class Other(Plan):
        starts: Annotated[FloatArray, Array(float, "n")]

    assert Shift(starts=[1.0]) != Other(starts=[1.0])
    assert Shift(starts=[1.0]) != "a plan"
    assert Shift(starts=[1.0]).digest != Other(starts=[1.0]).digest


def test_digests_are_equal_across_processes() -> None:
    program = "from instances.gavel.max_min_fairness import *; print(generate(7).digest, three_jobs().digest)"
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONPATH": str(instances.__path__[0]) + "/..", "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("0", "1")
    }
    assert len(digests) == 1
    assert three_jobs().digest in digests.pop()


# --- JSON -----------------------------------------------------------------------------------------


def test_json_form() -> None:
    instance = depot(deadlines=[math.inf, 4.0], curves=[[1.0], [math.inf, 2.0]], links=[[0, 1]])
    data = instance.to_dict()
    assert data == {
        "problem": "test.depot",
        "durations": [1.0, 2.0],
        "deadlines": [None, 4.0],
        "counts": [[0, 0], [0, 0]],
        "urgent": [False, False],
        "links": [[0, 1]],
        "weights": [1.0, 1.0, 1.0],
        "curves": [[1.0], [None, 2.0]],
        "horizon": None,
        "servers": 1,
        "strict": False,
        "mode": "fifo",
    }
    again = Depot.from_dict(json.loads(json.dumps(data, allow_nan=False)))
    assert again == instance
    assert Depot.from_dict({name: value for name, value in data.items() if name != "problem"}) == instance


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(
    durations=hnp.arrays(float, st.integers(1, 4), elements=st.floats(5e-324, 1e308)),
    horizon=st.floats(0, allow_nan=False),
    rows=st.lists(st.lists(finite | st.just(math.inf), min_size=1, max_size=3), min_size=4, max_size=4),
)
def test_json_keeps_every_bit(durations: np.ndarray, horizon: float, rows: list[list[float]]) -> None:
    n = len(durations)
    instance = Depot(durations=durations, deadlines=durations, curves=rows[:n], horizon=horizon)
    assert Depot.from_dict(json.loads(json.dumps(instance.to_dict(), allow_nan=False))) == instance


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ([1, 2], "Depot: got list, must be a JSON object"),
        ({**GIVEN, "deadline": [1]}, r"Depot: unknown field 'deadline' \(did you mean 'deadlines'\?\)"),
        ({**GIVEN, "zzz": [1]}, r"Depot: unknown field 'zzz'$"),
        ({**GIVEN, 3: [1]}, r"Depot: unknown field 3$"),
        ({"durations": [1.0]}, "Depot: field 'deadlines' is missing"),
        ({**GIVEN, "problem": "test.other"}, "Depot: got problem 'test.other', must be 'test.depot'"),
        ({**GIVEN, "counts": None}, "Depot.counts: got None"),
        ({**GIVEN, "counts": [[None, 1], [1, 1]]}, "Depot.counts: got None"),
    ],
)
def test_bad_json_is_refused_by_name(data: Any, complaint: str) -> None:
    with pytest.raises(InstanceError, match=complaint):
        Depot.from_dict(data)


def test_plans_have_a_json_form_without_a_problem() -> None:
    plan = Shift(starts=[0.0, 1.5], routes=[[], [1, 2]])
    assert plan.to_dict() == {"starts": [0.0, 1.5], "routes": [[], [1, 2]]}
    assert Shift.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    with pytest.raises(PlanError, match=r"unknown field 'start' \(did you mean 'starts'\?\)"):
        Shift.from_dict({"start": [0.0]})


# --- judging plans --------------------------------------------------------------------------------


def test_objective_and_violations() -> None:
    instance = depot()
    assert instance.objective(Shift(starts=[0.0, 1.0])) == 3.0
    assert instance.violations(Shift(starts=[0.0, 1.0])) == []
    late = instance.violations(Shift(starts=[0.0, 5.0]))
    assert late == [Violation("deadline", (1,), 3.0)]
    assert str(late[0]) == "deadline[1] by 3"
    assert str(Violation("demand", (), 2.0)) == "demand by 2"


@pytest.mark.parametrize(
    ("plan", "complaint"),
    [
        (None, "test.depot: a plan must be a Shift, got NoneType"),
        ({"starts": [0.0, 1.0]}, "test.depot: a plan must be a Shift, got dict"),
        (Shift(starts=[0.0]), "Shift.starts: got length 1 in dimension n, this instance has n = 2"),
        (Shift(starts=[0.0, 1.0, 2.0]), "Shift.starts: got length 3 in dimension n, this instance has n = 2"),
    ],
)
def test_misfit_plans_raise(plan: Any, complaint: str) -> None:
    with pytest.raises(PlanError, match=complaint):
        depot().objective(plan)
    with pytest.raises(PlanError, match=complaint):
        depot().violations(plan)


def test_ragged_fields_of_plans_are_fitted_by_their_number_of_rows() -> None:
    assert depot().objective(Shift(starts=[0.0, 1.0], routes=[[0], []])) == 3.0
    with pytest.raises(PlanError, match=r"Shift\.routes: got 1 arrays, must be n = 2"):
        Shift(starts=[0.0, 1.0], routes=[[0]])


# --- comparisons ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "limit", "amount"),
    [
        (1.0, 1.0, None),
        (1.0 + 9e-10, 1.0, None),
        (1.0 + 2e-9, 1.0, 2e-9),
        (1e9 + 0.5, 1e9, None),
        (1e9 + 2, 1e9, 2.0),
        (-1e9 + 0.5, -1e9, None),
        (1e-6 + 2e-9, 1e-6, 2e-9),
        (1e-300, 0.0, 1e-300),
        (math.inf, math.inf, None),
        (-math.inf, -math.inf, None),
        (5.0, math.inf, None),
        (5.0, -math.inf, math.inf),
        (math.inf, 5.0, math.inf),
    ],
)
def test_exceeding_is_relative_to_the_limit(value: float, limit: float, amount: float | None) -> None:
    found = exceeding("rule", [0.0, value], [0.0, limit])
    assert [(v.rule, v.index) for v in found] == ([] if amount is None else [("rule", (1,))])
    assert amount is None or found[0].amount == pytest.approx(amount, rel=1e-6, abs=0)


def test_exceeding_never_passes_what_is_no_number() -> None:
    assert [v.index for v in exceeding("rule", [[math.nan, 0.0]], [[1.0], [math.nan]])] == [(0, 0), (1, 0), (1, 1)]


@pytest.mark.parametrize(
    ("value", "bound", "equal"),
    [
        (1.0, 1.0, True),
        (24509.0, 24508.0, False),
        (1e6, 1e6 + 0.9, True),
        (0.0, 0.0, True),
        (0.0, 1e-300, False),
        (5e-10, 6e-10, False),
        (5e-10, 5e-10 * (1 + 9e-7), True),
        (math.inf, math.inf, True),
        (5.0, math.inf, False),
        (math.inf, -math.inf, False),
        (math.nan, math.nan, False),
        (5.0, math.nan, False),
    ],
)
def test_agree(value: float, bound: float, equal: bool) -> None:
    assert agree(value, bound) is equal
    assert agree(bound, value) is equal


def test_values_that_are_zero_but_for_the_rounding_of_their_terms() -> None:
    assert agree(0.0, 1e-9, size=1.0)
    assert not agree(0.0, 1e-9, size=0.5)
    assert agree(-1e-12, 1e-12, size=1e-2)


@dataclasses.dataclass(frozen=True, eq=False)
class Graph(Record):
    sizes: Annotated[IntArray, Array(int, "n")]
    edges: Annotated[IntArray, Array(int, "q 2", index_of="n", empty=True)]
    paths: Annotated[tuple[IntArray, ...] | None, Ragged(int, "p _", index_of="n", empty=True)] = None
    kinds: Annotated[Any, Array(str, "n", choices=("cpu", "gpu"))] = default(lambda dims: ["cpu"] * dims["n"])


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"edges": [[0, 1], [1, 2]]}, r"Graph\.edges: got 2 at index \[1, 1\], must be below n = 2"),
        ({"edges": [[0, -1]]}, r"Graph\.edges: got -1 at index \[0, 1\], must be at least 0"),
        ({"edges": [], "paths": [[0], [1, 2]]}, r"Graph\.paths: got 2 at index \[1\], must be below n = 2"),
        ({"edges": [], "kinds": ["cpu", "tpu"]}, r"Graph\.kinds: got 'tpu' at index \[1\], must be one of cpu, gpu"),
        ({"edges": [], "kinds": ["cpu", 1]}, r"Graph\.kinds: got 1 at index \[1\], must be one of"),
        ({"edges": [], "kinds": ["cpu"]}, r"Graph\.kinds: got shape \(1,\), must be \(n,\) with n = 2"),
    ],
)
def test_positions_and_words_are_checked(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Graph(sizes=[1, 1], **fields)


def test_positions_and_words_that_fit() -> None:
    graph = Graph(sizes=[1, 1], edges=[[1, 0]], paths=[[], [1]], kinds=np.array(["gpu", "cpu"], "U30"))
    assert graph.to_dict() == {"sizes": [1, 1], "edges": [[1, 0]], "paths": [[], [1]], "kinds": ["gpu", "cpu"]}
    assert graph == Graph.from_dict(json.loads(json.dumps(graph.to_dict())))
    assert not graph.kinds.flags.writeable


def made_by(body: str) -> Record:
    """A record whose ``_check`` has this body."""
    given: dict[str, Any] = {}
    exec(f"def _check(self):\n    {body}", given)
    made = dataclasses.make_dataclass(
        "Bins", [("room", Annotated[int, Scalar(int)])], bases=(Record,), frozen=True, eq=False
    )
    made._check = given["_check"]  # type: ignore[attr-defined]
    return made(room=3)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "body", ["self.refuse('room', 'got 3')", "return self.refuse('room', 'got 3')", "return 'bad'"]
)
def test_an_error_of_a_check_must_be_raised(body: str) -> None:
    with pytest.raises(TypeError, match=r"Bins\._check: .* must be raised: raise self\.refuse"):
        made_by(body)


def test_an_error_of_a_check_that_is_raised_names_the_field() -> None:
    with pytest.raises(ValueError, match=r"Bins\.room: got 3"):
        made_by("raise self.refuse('room', 'got 3')")
    assert made_by("pass").to_dict() == {"room": 3}
