"""What checks the collection: it agrees with the instances' own judges, finds what is wrong, and needs nothing."""

import ast
import gzip
import hashlib
import json
import math
import shutil
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import formulations
import instances.reference
from instances.files import instance_type, text_of
from instances.reference import PROBLEMS, Reference
from instances.reference.common import closed, parse
from instances.reference.records import INDEX, check, check_record, listed
from validation import catalogue
from validation.kinds.collection.submission import graded

from ....effort import EFFORT
from ....second_opinion import same

WHOLE = Path(__file__).parents[4] / "collection"


def test_verdicts_agree_on_the_collection() -> None:
    names = [
        (path.parent, record)
        for path in sorted(WHOLE.glob("*/records.json"))
        for record in json.loads(path.read_text())
    ]
    drawn = np.random.default_rng(5).permutation(len(names))
    for index in drawn[: len(names) if EFFORT >= 10 else 80]:
        folder, record = names[index]
        kind = instance_type(folder.name)
        instance = kind.from_dict(json.loads(gzip.decompress((folder / f"{record['name']}.json.gz").read_bytes())))
        plan = json.loads(gzip.decompress((folder / f"{record['name']}.plan.json.gz").read_bytes()))
        read = kind.plan_type.from_dict(plan)
        reference = Reference(text_of(instance))
        assert reference.violations(plan) == instance.violations(read) == []
        assert same(reference.value(plan), instance.objective(read))


def test_the_collection_is_as_it_says() -> None:
    names = [
        (path.parent, record) for path in sorted(WHOLE.glob("*/records.json")) for record in parse(path.read_text())
    ]
    drawn = np.random.default_rng(6).permutation(len(names))
    count: Counter[str] = Counter()
    for index in drawn[: len(names) if EFFORT >= 10 else 40]:
        folder, record = names[index]
        check_record(folder, PROBLEMS[folder.name], record, count)
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
    (folder / INDEX).write_text(json.dumps({problem: listed(read(folder, problem)) for problem in chosen}))
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


def wrong(folder: Path, problem: str | None = None) -> list[str]:
    """What is wrong, with one problem or anywhere."""
    return check(folder, problem=problem)[1]


CHOSEN = (
    "aryl.reclaim",
    "afs.network_packing",
    "gavel.max_min_fairness",
    "elasticflow.admission",
    "synergy.allocation",
    "gavel.hierarchical_fairness",
)


@pytest.fixture(autouse=True)
def short_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is proven anyway."""
    monkeypatch.setattr("instances.reference.records.SEARCHED", 0.01)


@pytest.fixture(scope="session")
def unharmed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = sample(tmp_path_factory.mktemp("unharmed"), *CHOSEN)
    assert wrong(folder) == []
    return folder


@pytest.fixture
def small(unharmed: Path, tmp_path: Path) -> Path:
    return shutil.copytree(unharmed, tmp_path, dirs_exist_ok=True)


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


def other_sense(record: dict[str, Any]) -> None:
    record["sense"] = "max" if record["sense"] == "min" else "min"


def other_gap(record: dict[str, Any]) -> None:
    record["heuristics"]["fine"] = {"value": record["best"]["value"], "gap": 0.5, "status": "feasible"}


def no_gap(record: dict[str, Any]) -> None:
    record["heuristics"]["fine"] = {"value": record["best"]["value"], "gap": None, "status": "feasible"}


def gap_of_an_open_one(record: dict[str, Any]) -> None:
    record["bound"] = {"value": None, "exact": None, "proof": {"kind": "runs", "runs": []}}
    record["class"] = "open"
    record["sha256"].pop("prices", None)
    record["heuristics"] = {"fine": {"value": record["best"]["value"], "gap": 0.0, "status": "feasible"}}


def value_without_a_plan(record: dict[str, Any]) -> None:
    record["heuristics"]["fine"] = {"value": record["best"]["value"], "gap": 0.0, "status": "infeasible"}


def unknown_status(record: dict[str, Any]) -> None:
    record["heuristics"]["fine"] = {"value": None, "gap": None, "status": "splendid"}


def other_digest(record: dict[str, Any]) -> None:
    record["digest"] = hashlib.sha256(record["name"].encode()).hexdigest()


def other_size(record: dict[str, Any]) -> None:
    record["size"]["n"] = record["size"].get("n", 0) + 1


def other_features(record: dict[str, Any]) -> None:
    data = json.loads(gzip.decompress((WHOLE / record["problem"] / f"{record['name']}.json.gz").read_bytes()))
    record["features"][list(data)[1]] = "another"


def better_before(record: dict[str, Any]) -> None:
    value = record["best"]["value"] + (1 if record["sense"] == "max" else -1)
    record["history"].append({"date": "2026-01-01", "best": {"value": value}})


def better_run(record: dict[str, Any]) -> None:
    value = record["best"]["value"] + (1 if record["sense"] == "max" else -1)
    record["bound"]["proof"].setdefault("runs", []).append({"solver": "highs", "status": "optimal", "bound": value})


def prices_without_a_proof(record: dict[str, Any]) -> None:
    proof = record["bound"]["proof"]
    record["bound"]["proof"] = {"kind": "runs" if proof["kind"] == "prices" else "prices", "runs": []}


CORRUPTIONS = [
    other_value, other_fraction, other_class, other_hash, other_digest, other_size, other_features, other_problem,
    other_sense, other_gap, no_gap, gap_of_an_open_one, value_without_a_plan, unknown_status, no_bound, better_before,
    better_run, unknown_proof, prices_without_a_proof, splendid_heuristic,
]  # fmt: skip


def test_one_instance_under_two_names_is_found(small: Path) -> None:
    problem = "aryl.reclaim"
    first, *others = read(small, problem)
    for file in (small / problem).glob(f"{first['name']}.*"):
        shutil.copy(file, file.with_name(file.name.replace(first["name"], "zz-again")))
    again = {**first, "name": "zz-again", "sha256": dict(first["sha256"])}
    write(small, problem, [first, *others, again])
    # Told in another way it is the same.
    data = json.loads(gzip.decompress((small / problem / "zz-again.json.gz").read_bytes()))
    put(small, problem, again, "instance", data | {"origin": {"reader": "another"}})
    assert {f"{name}: another name has the same instance" for name in (first["name"], "zz-again")} < set(wrong(small))


@pytest.mark.parametrize("problem", CHOSEN)
def test_an_instance_that_is_gone_with_its_files_is_found(small: Path, problem: str) -> None:
    first, *others = read(small, problem)
    for file in (small / problem).glob(f"{first['name']}.*"):
        file.unlink()
    write(small, problem, others)
    assert wrong(small, problem) == [f"{problem}: its instances are not those of {INDEX}, or other proofs are known"]
    shutil.rmtree(small / problem)
    assert wrong(small) == [f"{problem}: {INDEX} has it, and there are no records"]
    (small / INDEX).unlink()
    assert len(wrong(small)) == 1


@pytest.mark.parametrize("problem", CHOSEN)
def test_a_proof_that_is_given_up_is_found(small: Path, problem: str) -> None:
    records = read(small, problem)
    proven = [record for record in records if record["bound"]["proof"]["kind"] != "runs"]
    assert proven
    for record in proven:
        bound = record["bound"]
        runs = [{"solver": "highs", "status": "optimal", "bound": bound["value"]}]
        record["bound"] = {**bound, "exact": None, "proof": {"kind": "runs", "runs": runs}}
        if "prices" in record["sha256"]:
            del record["sha256"]["prices"]
            (small / problem / f"{record['name']}.prices.json.gz").unlink()
    write(small, problem, records)
    lines = wrong(small, problem)
    assert f"{problem}: its instances are not those of {INDEX}, or other proofs are known" in lines
    if problem.startswith("gavel."):
        # Even where the index is made to fit: there are prices of every linear program.
        index = json.loads((small / INDEX).read_text())
        (small / INDEX).write_text(json.dumps(index | {problem: listed(records)}))
        assert len(wrong(small, problem)) == len(proven)
        assert all("prices prove every optimum" in line for line in wrong(small, problem))


@pytest.mark.parametrize(
    ("problem", "heuristic"),
    [
        ("aryl.reclaim", "smallest_count_first"),
        ("gavel.max_min_fairness", "equal_share"),
        ("synergy.allocation", "proportional"),
    ],
)
def test_a_worse_plan_called_open_is_found(
    tmp_path: Path, problem: str, heuristic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another plan, worth what is said, and no bound that meets it; the others' values, the runs and a search tell."""
    monkeypatch.setattr("instances.reference.records.SEARCHED", 5.0)
    kept = json.loads((WHOLE / problem / "records.json").read_text())
    kept.sort(key=lambda one: (WHOLE / problem / f"{one['name']}.json.gz").stat().st_size)
    one = next(one for one in kept if one["class"] != "open" and (one["heuristics"][heuristic]["gap"] or 0) > 0.01)
    (tmp_path / "VERSION").write_text("test\n")
    (tmp_path / problem).mkdir()
    for file in (WHOLE / problem).glob(f"{one['name']}.*"):
        shutil.copy(file, tmp_path / problem)
    instance = instance_type(problem).from_dict(
        json.loads(gzip.decompress((tmp_path / problem / f"{one['name']}.json.gz").read_bytes()))
    )
    plan = catalogue.entry(problem).heuristics[heuristic].function(instance)
    one["best"] |= {"value": instance.objective(plan), "exact": None}
    write(tmp_path, problem, [one])
    (tmp_path / INDEX).write_text(json.dumps({problem: listed([one])}))
    put(tmp_path, problem, one, "plan", plan.to_dict())
    one = graded(one)
    assert one["class"] == "open"
    write(tmp_path, problem, [one])
    assert [line for line in wrong(tmp_path) if "ended with the optimum" in line]
    one["bound"]["proof"]["runs"] = []
    write(tmp_path, problem, [one])
    assert [line for line in wrong(tmp_path) if "more than the best plan known" in line]
    one["heuristics"] = {}
    one["bound"] = {"value": None, "exact": None, "proof": {"kind": "runs", "runs": []}}
    one["sha256"].pop("prices", None)
    (tmp_path / problem / f"{one['name']}.prices.json.gz").unlink(missing_ok=True)
    write(tmp_path, problem, [one])
    (tmp_path / INDEX).write_text(json.dumps({problem: listed([one])}))
    assert ["a search finds the optimum" in line for line in wrong(tmp_path)] == [True]


def test_later_levels_are_held_by_prices(small: Path) -> None:
    """The first level is as high as it can be, and jobs that could rise further do not."""
    problem = "gavel.hierarchical_fairness"
    like = next(
        one for one in json.loads((WHOLE / problem / "records.json").read_text()) if one["name"].endswith("x00")
    )
    for file in (WHOLE / problem).glob(f"{like['name']}.*"):
        shutil.copy(file, small / problem)
    write(small, problem, [like])
    index = json.loads((small / INDEX).read_text())
    (small / INDEX).write_text(json.dumps(index | {problem: listed([like])}))
    assert wrong(small, problem) == []
    parts = [1.0, 1 / 3, 1 / 3, 1 / 3]
    plan = {"time_fractions": [[part] for part in parts], "normalized_throughputs": parts}
    file = small / problem / f"{like['name']}.plan.json.gz"
    best = json.loads(gzip.decompress(file.read_bytes()))
    put(small, problem, like, "plan", plan)
    like["best"] |= {"value": 2.0, "exact": None}
    write(small, problem, [like])
    (line,) = wrong(small, problem)
    assert "prices leave it open whether the plan is best: job 1 is not held" in line
    # A limit in which a job counts for next to nothing holds everybody, if nobody asks how far it could rise.
    put(small, problem, like, "plan", best)
    like["best"] |= {"value": 2.0, "exact": None}
    prices = json.loads(gzip.decompress((small / problem / f"{like['name']}.prices.json.gz").read_bytes()))
    limit = {"later_levels": [[1.0, 1e-8, 1e-8, 1e-8]], "later_pools": [[0.0]], "later_jobs": None}
    put(small, problem, like, "prices", prices | limit)
    assert wrong(small, problem) == []
    put(small, problem, like, "plan", plan)
    assert len(wrong(small, problem)) == 1
    put(small, problem, like, "plan", best)
    put(small, problem, like, "prices", prices | {"later_levels": [], "later_pools": []})
    assert len(wrong(small, problem)) == 1


def test_values_far_below_one_are_told_apart() -> None:
    assert not closed(Fraction(1, 10**12), Fraction(2, 10**12))
    assert closed(Fraction(10**7 + 1, 10**19), Fraction(10**7, 10**19))


@pytest.mark.parametrize("problem", CHOSEN)
@pytest.mark.parametrize("corrupt", CORRUPTIONS)
def test_a_corrupted_record_is_found(small: Path, problem: str, corrupt: Corruption) -> None:
    records = read(small, problem)
    for record in records:
        corrupt(record)
    write(small, problem, records)
    # What has another digest or kind of proof is not what the index has, either.
    lines = [line for line in wrong(small, problem) if not line.startswith((f"{problem}:", f"{problem}/"))]
    assert len(lines) == len(records)
    assert all(line.startswith(f"{problem}-") for line in lines)


@pytest.mark.parametrize("problem", ["aryl.reclaim", "afs.network_packing"])
def test_a_bound_that_claims_more_than_is_proven_is_found(small: Path, problem: str) -> None:
    records = read(small, problem)
    for record in records:
        better_bound(record)
    write(small, problem, records)
    assert len(wrong(small, problem)) == len(records)


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
    assert len(wrong(small, problem)) == len(read(small, problem))


@pytest.mark.parametrize("problem", CHOSEN)
def test_a_damaged_file_is_found(small: Path, problem: str) -> None:
    (record, *_) = kept = read(small, problem)
    for part in (".json.gz", ".plan.json.gz"):
        file = small / problem / f"{record['name']}{part}"
        whole = file.read_bytes()
        for damaged in (b"", whole[: len(whole) // 2], b"nothing", gzip.compress(b"{}"), gzip.compress(b"[" * 100_000)):
            file.write_bytes(damaged)
            assert len(wrong(small, problem)) == 1
        file.unlink()
        assert len(wrong(small, problem)) == 1
        file.write_bytes(whole)
    write(small, problem, [record | {"name": "../elsewhere"}])
    assert any("is no name" in line for line in wrong(small, problem))
    write(small, problem, kept)
    (small / problem / "stray.json.gz").write_bytes(b"")
    assert wrong(small, problem) == [f"{problem}/stray.json.gz: no record has it"]


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
    assert len(wrong(small, problem)) == len(read(small, problem))


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
            assert len(wrong(small, problem)) == 1
        put(small, problem, record, "prices", given)
        assert wrong(small, problem) == []


# --- it needs nothing ---


def certify(folder: Path, problem: str, change: Callable[[str], str] = lambda text: text) -> dict[str, Any]:
    """Let the bound of a collection's only record rest on a certificate, and return the record."""
    (record,) = read(folder, problem)
    data = json.loads(gzip.decompress((folder / problem / f"{record['name']}.json.gz").read_bytes()))
    instance = instance_type(problem).from_dict(data)
    text = change(formulations.solve(instance, certificate=True).vipr)
    file = f"{record['name']}.vipr.gz"
    (folder / problem / file).write_bytes(gzip.compress(text.encode()))
    record["sha256"]["certificate"] = hashlib.sha256(text.encode()).hexdigest()
    record["bound"] |= {"exact": None, "proof": {"kind": "certificate", "file": file}}
    keep(folder, problem, record)
    return record


def keep(folder: Path, problem: str, record: dict[str, Any]) -> None:
    write(folder, problem, [record])
    (folder / INDEX).write_text(json.dumps({problem: listed(read(folder, problem))}))


def alone(folder: Path, problem: str, kind: str) -> Path:
    """A collection of one instance of the smaller ones."""
    sample(folder, problem)
    (record,) = (one for one in read(folder, problem) if one["bound"]["proof"]["kind"] == kind)
    for path in (folder / problem).glob("*.gz"):
        if not path.name.startswith(f"{record['name']}."):
            path.unlink()
    keep(folder, problem, record)
    return folder


def test_a_certificate_proves_a_bound(tmp_path: Path) -> None:
    record = certify(alone(tmp_path, "gavel.round_assignment", "certificate"), "gavel.round_assignment")
    counts, told = check(tmp_path)
    assert told == []
    assert counts["gavel.round_assignment"]["certificate"] == 1
    record["bound"] |= {"value": record["bound"]["value"] - 1e-7, "exact": None}
    keep(tmp_path, "gavel.round_assignment", record)
    (told_of_it,) = wrong(tmp_path)
    assert "is said to be proven" in told_of_it
    record["bound"]["proof"]["kind"] = "argument"
    keep(tmp_path, "gavel.round_assignment", record)
    assert wrong(tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace("{ asm }", "{ sol }"), "certificate: constraint"),
        (lambda text: text.replace(" 1 0 1\n", " 1 1 1\n", 1), "certificate: "),
        (lambda text: text[: len(text) // 2], "the file ends"),
    ],
)
def test_a_certificate_that_does_not_hold_is_found(tmp_path: Path, change: Callable[[str], str], said: str) -> None:
    certify(alone(tmp_path, "gavel.round_assignment", "certificate"), "gavel.round_assignment", change)
    (told,) = wrong(tmp_path)
    assert said in told


def test_a_certificate_that_nothing_rests_on_or_that_is_too_large_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = certify(alone(tmp_path, "gavel.round_assignment", "certificate"), "gavel.round_assignment")
    with monkeypatch.context() as patched:
        patched.setattr("instances.reference.records.MOST_PACKED", 1000)
        (told,) = wrong(tmp_path)
        assert "bytes compressed, may have 1,000" in told
    record["bound"]["proof"] = {"kind": "runs", "runs": []}
    record["bound"]["proof"]["runs"] = [{"solver": "highs", "status": "optimal", "bound": record["bound"]["value"]}]
    keep(tmp_path, "gavel.round_assignment", record)
    (told,) = wrong(tmp_path)
    assert "its bound rests on runs, and it has a certificate" in told


def test_a_certificate_of_a_file_is_none_of_a_problem(tmp_path: Path) -> None:
    certify(alone(tmp_path, "afs.network_packing", "enumeration"), "afs.network_packing")
    (told,) = wrong(tmp_path)
    assert "a certificate proves its own file's only" in told


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


def test_an_archive_has_its_checker_in_it(small: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    shutil.copy(WHOLE / "check.py", small)
    python = [sys.executable, "-I", "-S"]
    checker, folder = WHOLE / "check.py", small
    # What is in an archive can be packed again.
    for _ in range(2):
        place = tmp_path_factory.mktemp("archive")
        packs = [*python, str(checker), "--pack", str(place / "packed.tar.gz"), str(folder)]
        subprocess.run(packs, check=True, cwd="/")
        with tarfile.open(place / "packed.tar.gz") as packed:
            names = packed.getnames()
            packed.extractall(place, filter="data")
        assert len(names) == len(set(names))
        folder = place / "collection"
        checker = folder / "check.py"
        done = subprocess.run([*python, str(checker)], capture_output=True, text=True, check=False, cwd="/")
        assert (done.returncode, done.stderr) == (0, "")
        assert "nothing is wrong" in done.stdout
        assert all(problem in done.stdout for problem in CHOSEN)


def test_it_imports_the_standard_library_alone() -> None:
    files = [WHOLE / "check.py", *Path(instances.reference.__file__).parent.glob("*.py")]
    assert len(files) > 8
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                roots = {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level < 2:
                roots = {(node.module or "").split(".")[0]} if not node.level else set()
            else:
                assert not isinstance(node, ast.ImportFrom), file
                continue
            assert roots <= {*sys.stdlib_module_names, *(["reference"] if file.name == "check.py" else [])}, file
