"""The collection's checker: it agrees with the library, of which it knows nothing, and finds what is wrong."""

import ast
import contextlib
import copy
import gzip
import hashlib
import json
import math
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import formulations
from instances.base import Instance, InstanceError, PlanError
from instances.files import instance_type, text_of
from validation import CATALOGUE, StudyError
from validation.collection.prices import prices
from validation.testing.strategies import strategy

from ..effort import EFFORT, rounds
from ..files import module_of

WHOLE = Path(__file__).parents[2] / "collection"
LINEAR = sorted(name for name in CATALOGUE if name.startswith("gavel.") and name != "gavel.round_assignment")
BOUNDS_ONLY = {"synergy.placement", "synergy.tuning"}
"""Problems whose search gives a bound that need not be the optimum."""


CHECK = module_of(WHOLE / "check.py")
COMMON = sys.modules["checker.common"]
PROBLEMS: dict[str, Any] = sys.modules["checker"].PROBLEMS  # type: ignore[attr-defined]


def both(instance: Instance[Any]) -> tuple[Any, Any]:
    """The checker's problem, and the instance as it reads it."""
    problem = PROBLEMS[instance.problem]
    return problem, problem.instance(COMMON.parse(text_of(instance)))


def same(exact: Any, value: float, size: float = 0.0) -> bool:
    """Whether a fraction and a float are equal but for rounding."""
    if math.isinf(value) or exact in (math.inf, -math.inf):
        return bool(exact == value)
    return bool(abs(float(exact) - value) <= 1e-9 * max(abs(value), size))


# --- it agrees with the library ---


def altered(plan: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """The plan with an entry or two changed."""
    plan = copy.deepcopy(plan)
    for _ in range(rng.choice([1, 1, 2])):
        name = rng.choice(list(plan))
        holder: Any = plan
        key: Any = name
        while isinstance(holder[key], list) and holder[key]:
            holder = holder[key]
            key = rng.randrange(len(holder))
        value = holder[key]
        if isinstance(value, bool):
            holder[key] = not value
        elif isinstance(value, int):
            holder[key] = rng.choice([value + 1, value - 1, 0, 2 * value, value + 8])
        elif isinstance(value, float):
            holder[key] = rng.choice([value * (1 + 1e-7), value * (1 + 1e-12), value / 2, value + 0.25, -value, 0.0])
    return plan


def judged(instance: Instance[Any], plan: dict[str, Any]) -> tuple[set[str], float] | None:
    """Rules that a plan breaks and its value, by the library; None where it is none."""
    try:
        read = instance.plan_type.from_dict(plan)
        rules = {violation.rule for violation in instance.violations(read)}
        return rules, instance.objective(read)
    except PlanError:
        return None


def checked(problem: Any, it: Any, plan: dict[str, Any]) -> tuple[set[str], Any] | None:
    """The same by the checker."""
    try:
        read = problem.plan(it, COMMON.parse(json.dumps(plan)))
        return set(problem.verdict(it, read).broken), problem.worth(it, read)
    except COMMON.Malformed:
        return None


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_verdicts_are_the_librarys(name: str) -> None:
    entry = CATALOGUE[name]

    @seed(1)
    @settings(
        max_examples=max(6, round(6 * EFFORT)),
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy(name), st.integers(0, 2**32))
    def agree(instance: Instance[Any], number: int) -> None:
        rng = random.Random(number)
        problem, it = both(instance)
        plans = [] if name == "afs.elastic_sharing" else [instance.nothing().to_dict()]
        for heuristic in rng.sample(list(entry.heuristics.values()), min(3, len(entry.heuristics))):
            # What it makes of the instance, and whether anything, is tested elsewhere.
            with contextlib.suppress(InstanceError):
                found = heuristic.function(instance, **({"rng": 0} if heuristic.random else {}))
                plans += [] if found is None else [found.to_dict()]
        plans += [altered(rng.choice(plans), rng) for _ in range(12 if plans else 0)]
        verdicts = [(plan, judged(instance, plan), checked(problem, it, plan)) for plan in plans]
        # Sums of entries of both signs, and times since long ago, are rounded by more than the value's last digits.
        size = max((abs(ours[1]) for _, ours, _ in verdicts if ours and math.isfinite(ours[1])), default=0.0)
        for plan, ours, theirs in verdicts:
            assert (ours is None) == (theirs is None), (plan, ours, theirs)
            if ours is not None and theirs is not None:
                assert ours[0] == theirs[0], plan
                late = max([0.0, *map(abs, plan["times"])]) if "times" in plan else 0.0
                assert same(theirs[1], ours[1], size=max(size, 1e9 * 4 * math.ulp(late) if late else 0.0)), plan

    agree()


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_bounds_are_the_optimum(name: str) -> None:
    @seed(2)
    @settings(
        max_examples=max(3, round(3 * EFFORT)),
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy(name))
    def agree(instance: Instance[Any]) -> None:
        problem, it = both(instance)
        solution = formulations.solve(instance)
        better = max if instance.sense == "min" else min
        try:
            found = problem.searched(it)
        except COMMON.TooLarge:
            pass
        else:
            if solution.status == "infeasible":
                assert found == (math.inf if instance.sense == "min" else -math.inf) or name in BOUNDS_ONLY
            elif solution.status == "unknown":
                # Jobs that arrive over time have no exact model, but a bound.
                assert name == "afs.elastic_sharing"
                assert found >= solution.bound * (1 - 1e-9)
            elif name in BOUNDS_ONLY:
                assert solution.objective is not None
                assert better(found, solution.objective) == solution.objective or same(found, solution.objective)
            else:
                assert solution.objective is not None
                assert COMMON.closed(solution.objective, found)
        if solution.plan is None or solution.objective in (None, math.inf):
            return

        def bound(given: dict[str, Any]) -> Fraction:
            try:
                return problem.bound(it, COMMON.parse(json.dumps(given)))  # type: ignore[no-any-return]
            except COMMON.Malformed as error:
                raise StudyError(str(error)) from None

        proof = prices(instance, bound) if instance.dims.get("n") else None
        if proof is not None:
            assert solution.objective is not None
            proven = bound(proof)
            assert better(float(proven), solution.objective) == solution.objective or same(proven, solution.objective)
            if name in LINEAR:
                assert COMMON.closed(Fraction(solution.objective), proven)

    agree()


SEARCHED = sorted(
    name
    for name, problem in PROBLEMS.items()
    if type(problem).search is not COMMON.Problem.search and name not in BOUNDS_ONLY
)


@pytest.mark.parametrize("name", SEARCHED)
def test_searches_find_the_optimum_of_larger_instances(name: str) -> None:
    entry = CATALOGUE[name]
    for number in rounds(2):
        instance = entry.generate(number, **{entry.size: entry.sizes[0]})
        problem, it = both(instance)
        assert COMMON.closed(formulations.solve(instance).objective, problem.searched(it))


@pytest.mark.parametrize("name", [name for name in LINEAR if PROBLEMS[name].priced])
def test_no_prices_prove_what_is_not_so(name: str) -> None:
    entry = CATALOGUE[name]
    instance = entry.generate(3, num_jobs=5)
    problem, it = both(instance)
    best = formulations.solve(instance).objective
    assert best is not None
    rng = np.random.default_rng(4)
    for _ in rounds(40):
        drawn = {}
        for field in problem.priced:
            length = len(instance.num_workers) if field == "pools" else instance.num_jobs
            drawn[field] = (rng.exponential(10 ** rng.uniform(-4, 2), length) * (rng.random(length) < 0.7)).tolist()
        try:
            proven = problem.bound(it, COMMON.parse(json.dumps(drawn)))
        except COMMON.Malformed:
            continue
        assert proven <= best * (1 + 1e-6) if instance.sense == "min" else proven >= best * (1 - 1e-6)


def test_verdicts_agree_on_the_collection() -> None:
    names = [
        (path.parent, record)
        for path in sorted(WHOLE.glob("*/records.json"))
        for record in json.loads(path.read_text())
    ]
    drawn = np.random.default_rng(5).permutation(len(names))
    for index in drawn[: len(names) if EFFORT >= 10 else 80]:
        folder, record = names[index]
        problem = PROBLEMS[folder.name]
        kind = instance_type(folder.name)
        instance = kind.from_dict(json.loads(gzip.decompress((folder / f"{record['name']}.json.gz").read_bytes())))
        plan = json.loads(gzip.decompress((folder / f"{record['name']}.plan.json.gz").read_bytes()))
        read = kind.plan_type.from_dict(plan)
        theirs = checked(problem, both(instance)[1], plan)
        assert theirs is not None
        assert theirs[0] == {violation.rule for violation in instance.violations(read)} == set()
        assert same(theirs[1], instance.objective(read))


def test_the_collection_is_as_it_says() -> None:
    names = [
        (path.parent, record)
        for path in sorted(WHOLE.glob("*/records.json"))
        for record in COMMON.parse(path.read_text())
    ]
    drawn = np.random.default_rng(6).permutation(len(names))
    count: Counter[str] = Counter()
    for index in drawn[: len(names) if EFFORT >= 10 else 100]:
        folder, record = names[index]
        CHECK.check_record(folder, PROBLEMS[folder.name], record, count)
    assert count["prices"] > count["runs"]
    assert count["search"] > count["runs"]


# --- it finds what is wrong ---


def sample(folder: Path, *chosen: str) -> Path:
    """A collection of the smallest instance of each kind of proof, of some problems."""
    (folder / "VERSION").write_text("test\n")
    for problem in chosen:
        records = json.loads((WHOLE / problem / "records.json").read_text())
        (folder / problem).mkdir()
        kept = {}
        for record in sorted(records, key=lambda one: (WHOLE / problem / f"{one['name']}.json.gz").stat().st_size):
            if record["class"] != "open":
                kept.setdefault(record["bound"]["proof"]["kind"], record)
        for record in kept.values():
            for file in (WHOLE / problem).glob(f"{record['name']}.*"):
                shutil.copy(file, folder / problem)
        write(folder, problem, sorted(kept.values(), key=lambda one: one["name"]))
    return folder


def read(folder: Path, problem: str) -> list[dict[str, Any]]:
    """Records of a problem."""
    return json.loads((folder / problem / "records.json").read_text())  # type: ignore[no-any-return]


def write(folder: Path, problem: str, records: list[dict[str, Any]]) -> None:
    (folder / problem / "records.json").write_text(json.dumps(records))


def put(folder: Path, problem: str, record: dict[str, Any], part: str, data: Any) -> None:
    """Put other content into a file, and its hash into the record."""
    content = json.dumps(data).encode()
    ends = {"instance": ".json.gz", "plan": ".plan.json.gz", "prices": ".prices.json.gz"}
    (folder / problem / f"{record['name']}{ends[part]}").write_bytes(gzip.compress(content))
    record["sha256"][part] = hashlib.sha256(content).hexdigest()
    write(folder, problem, [record if one["name"] == record["name"] else one for one in read(folder, problem)])


def wrong(folder: Path) -> list[str]:
    lines: list[str] = CHECK.check(folder)[1]
    return lines


CHOSEN = (
    "aryl.reclaim",
    "afs.network_packing",
    "gavel.max_min_fairness",
    "elasticflow.admission",
    "synergy.allocation",
)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    folder = sample(tmp_path, *CHOSEN)
    assert wrong(folder) == []
    return folder


Corruption = Callable[[dict[str, Any]], None]


def better_bound(record: dict[str, Any]) -> None:
    value = record["bound"]["value"] * 2 + 1
    record["bound"] |= {"value": value, "exact": str(Fraction(value))}
    record["class"] = "open"


def other_value(record: dict[str, Any]) -> None:
    record["best"] |= {"value": record["best"]["value"] + 1, "exact": str(Fraction(record["best"]["value"]) + 1)}


def other_fraction(record: dict[str, Any]) -> None:
    record["best"]["exact"] = str(Fraction(record["best"]["value"]) * 2 + 1)


def other_class(record: dict[str, Any]) -> None:
    record["class"] = "open"


def other_hash(record: dict[str, Any]) -> None:
    record["sha256"]["plan"] = "0" * 64


def other_problem(record: dict[str, Any]) -> None:
    record["problem"] = "aryl.placement"


def no_bound(record: dict[str, Any]) -> None:
    del record["bound"]


def unknown_proof(record: dict[str, Any]) -> None:
    record["bound"]["proof"] = {"kind": "trust"}


def splendid_heuristic(record: dict[str, Any]) -> None:
    best = record["best"]["value"]
    value = best / 2 - 1 if record["sense"] == "min" else 2 * best + 1
    record["heuristics"]["splendid"] = {"value": value, "gap": 0.0, "status": "feasible"}


@pytest.mark.parametrize("problem", CHOSEN)
@pytest.mark.parametrize(
    "corrupt",
    [other_value, other_fraction, other_class, other_hash, other_problem, no_bound, unknown_proof, splendid_heuristic],
)
def test_a_corrupted_record_is_found(small: Path, problem: str, corrupt: Corruption) -> None:
    records = read(small, problem)
    for record in records:
        corrupt(record)
    write(small, problem, records)
    lines = wrong(small)
    assert len(lines) == len(records)
    assert all(line.startswith(f"{problem}-") for line in lines)


@pytest.mark.parametrize("problem", ["aryl.reclaim", "afs.network_packing"])
def test_a_bound_that_claims_more_than_is_proven_is_found(small: Path, problem: str) -> None:
    records = read(small, problem)
    for record in records:
        better_bound(record)
    write(small, problem, records)
    assert len(wrong(small)) == len(records)


@pytest.mark.parametrize("problem", CHOSEN)
def test_a_corrupted_plan_is_found(small: Path, problem: str) -> None:
    for record in read(small, problem):
        file = small / problem / f"{record['name']}.plan.json.gz"
        plan = json.loads(gzip.decompress(file.read_bytes()))
        field = next(iter(plan))
        holder = plan[field]
        while isinstance(holder[0], list):
            holder = holder[0]
        holder[0] = (not holder[0]) if isinstance(holder[0], bool) else holder[0] + 1_000_003
        put(small, problem, record, "plan", plan)
    assert len(wrong(small)) == len(read(small, problem))


@pytest.mark.parametrize("problem", CHOSEN)
def test_a_damaged_file_is_found(small: Path, problem: str) -> None:
    (record, *_) = kept = read(small, problem)
    for part in (".json.gz", ".plan.json.gz"):
        file = small / problem / f"{record['name']}{part}"
        whole = file.read_bytes()
        for damaged in (b"", whole[: len(whole) // 2], b"nothing", gzip.compress(b"{}"), gzip.compress(b"[" * 100_000)):
            file.write_bytes(damaged)
            assert len(wrong(small)) == 1
        file.unlink()
        assert len(wrong(small)) == 1
        file.write_bytes(whole)
    write(small, problem, [record | {"name": "../elsewhere"}])
    assert any("is no name" in line for line in wrong(small))
    write(small, problem, kept)
    (small / problem / "stray.json.gz").write_bytes(b"")
    assert wrong(small) == [f"{problem}/stray.json.gz: no record has it"]


@pytest.mark.parametrize(
    ("problem", "field", "value"),
    [
        ("aryl.reclaim", "demand", 0),
        ("afs.network_packing", "num_machines", 1000),
        ("gavel.max_min_fairness", "num_workers", None),
        ("elasticflow.admission", "iterations", [-1.0]),
        ("synergy.allocation", "server_cpus", math.nan),
    ],
)
def test_another_instance_is_found(small: Path, problem: str, field: str, value: Any) -> None:
    for record in read(small, problem):
        data = json.loads(gzip.decompress((small / problem / f"{record['name']}.json.gz").read_bytes()))
        put(small, problem, record, "instance", data | {field: value})
    assert len(wrong(small)) == len(read(small, problem))


@pytest.mark.parametrize("problem", ["gavel.max_min_fairness", "elasticflow.admission"])
def test_other_prices_are_found(small: Path, problem: str) -> None:
    priced = [record for record in read(small, problem) if record["bound"]["proof"]["kind"] == "prices"]
    assert priced
    for record in priced:
        file = small / problem / f"{record['name']}.prices.json.gz"
        given = json.loads(gzip.decompress(file.read_bytes()))
        field = max(given)
        dear = {
            **given,
            "pools" if "pools" in given else field: [1e6] * len(given["pools" if "pools" in given else field]),
        }
        for bad in (
            dear,
            {},
            given | {field: given[field][:-1]},
            given | {field: [-1.0] * len(given[field])},
            [],
            None,
        ):
            put(small, problem, record, "prices", bad)
            assert len(wrong(small)) == 1
        put(small, problem, record, "prices", given)
        assert wrong(small) == []


# --- it needs nothing ---


def test_it_runs_with_bare_python(small: Path) -> None:
    command = [sys.executable, "-I", "-S", str(WHOLE / "check.py"), str(small)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    assert (done.returncode, done.stderr) == (0, "")
    assert "nothing is wrong" in done.stdout
    for problem in CHOSEN:
        assert problem in done.stdout
    (record, *_) = read(small, CHOSEN[0])
    (small / CHOSEN[0] / f"{record['name']}.plan.json.gz").unlink()
    done = subprocess.run([*command, "--problem", CHOSEN[0]], capture_output=True, text=True, check=False, cwd="/")
    assert done.returncode == 1
    assert done.stdout.count("WRONG") == 1
    done = subprocess.run([*command, "--name", "nobody"], capture_output=True, text=True, check=False, cwd="/")
    assert done.returncode == 1


def test_it_imports_the_standard_library_alone() -> None:
    own = {"checker"}
    for file in [WHOLE / "check.py", *(WHOLE / "checker").glob("*.py")]:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                roots = {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                roots = {(node.module or "").split(".")[0]}
            else:
                continue
            assert roots <= set(sys.stdlib_module_names) | own, file
