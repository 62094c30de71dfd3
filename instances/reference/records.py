"""Check a collection: its files, what its plans are worth and break, and what proves its bounds.

A line for each problem says how many of its plans are feasible exactly, and how many only within the tolerance of 1e-9
of a rule; how many values are confirmed; how many bounds are proven here, by prices, by certificates or by search, and
how many stand on the word of solvers.  A line for each thing that is wrong follows, and the exit code is 1 if there is
one.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import hashlib
import io
import math
import re
import sys
import tarfile
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from . import PROBLEMS, vipr
from .common import Malformed, Number, Problem, Record, TooLarge, better, closed, digest, magnitude, parse, within
from .stated import STATED, certified

MOST_BYTES = 200_000_000
"""What a file may unpack to."""

MOST_PACKED = 400_000
"""Bytes of a certificate as it is kept, compressed."""

ROUNDING = Fraction(1, 10**9)
"""How far a decimal in a record may be from the fraction that it stands for, relatively."""

COLUMNS = ("instances", "exact", "tolerated", "values", "prices", "certificate", "search", "argument", "runs", "wrong")
"""What is counted: plans that are feasible, and that are within the tolerance; values; bounds by their proof."""

PARTS = {"instance": ".json.gz", "plan": ".plan.json.gz", "prices": ".prices.json.gz", "certificate": ".vipr.gz"}

SEARCHED = 0.5
"""Seconds in which a search may find that a plan is not best where nothing proves that it is."""

INDEX = "index.json"
"""The file that says how many instances a problem has, and of what: so that none goes missing unseen."""

PENDING = ".pending"
"""The folder of files that are whole, and to be moved to their places: there while a collection is written to."""

STATUSES = ("feasible", "infeasible", "declined", "failed")
"""What becomes of a heuristic's answer."""

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
"""What names of instances are made of; files are called after them."""


class Wrong(Exception):  # noqa: N818
    """Something that is not as a record says."""


def main(arguments: Sequence[str] | None = None, *, folder: Path) -> int:
    """Check what the command line names, ``folder`` by default, and return the exit code."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=folder, metavar="DIR")
    parser.add_argument("--problem", help="check this problem only")
    parser.add_argument("--name", help="check this instance only")
    parser.add_argument("--pack", type=Path, metavar="FILE", help="pack it into this .tar.gz, with all that checks it")
    asked = parser.parse_args(arguments)
    if asked.pack is not None:
        pack(asked.folder, asked.pack)
        return 0
    counts, wrong = check(asked.folder, problem=asked.problem, name=asked.name)
    print(table(counts))
    for line in wrong:
        print(f"WRONG {line}")
    if not wrong:
        print('nothing is wrong; bounds under "runs" are taken on the word of the solvers, and are not proven here')
    return 1 if wrong else 0


def check(
    folder: Path, *, problem: str | None = None, name: str | None = None
) -> tuple[dict[str, Counter[str]], list[str]]:
    """Return counts of each problem, and a line for each thing that is wrong.

    Parameters
    ----------
    folder : Path
        The collection.
    problem, name : str, optional
        Of what is checked; all by default.
    """
    before = sys.get_int_max_str_digits()
    # Exact values can have thousands of digits.
    sys.set_int_max_str_digits(0)
    try:
        return _checked(folder, problem, name)
    finally:
        sys.set_int_max_str_digits(before)


def _checked(folder: Path, problem: str | None, name: str | None) -> tuple[dict[str, Counter[str]], list[str]]:
    counts: dict[str, Counter[str]] = {}
    wrong: list[str] = []
    if not (folder / "VERSION").is_file():
        return counts, [f"{folder} is no collection: it has no file VERSION"]
    if (folder / PENDING).exists():
        wrong.append(f"{PENDING}: somebody writes, or was killed while writing: optgap collection check --mend ends it")
    found = sorted(path.name for path in folder.iterdir() if (path / "records.json").exists())
    if problem is not None and problem not in found:
        return counts, [f"{folder} has no {problem}"]
    try:
        index = dict(parse((folder / INDEX).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        return counts, [f"{INDEX}: {_said(error)}"]
    wrong += [f"{one}: {INDEX} has it, and there are no records" for one in sorted(set(index) - set(found))]
    for one in [problem] if problem else found:
        count, lines = check_problem(folder / one, index.get(one), name)
        if count["instances"]:
            counts[one] = count
        wrong += lines
    if not counts and not wrong:
        wrong.append(f"{folder} has no instance {name}" if name else f"{folder} has no instances")
    return counts, wrong


def listed(records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what the index has of a problem: how many instances, and a hash of their names, contents and proofs."""
    lines = [f"{one['name']} {one['digest']} {one['bound']['proof']['kind']}\n" for one in records]
    return {"instances": len(lines), "sha256": hashlib.sha256("".join(lines).encode()).hexdigest()}


def check_problem(
    folder: Path, indexed: Mapping[str, Any] | None, name: str | None = None
) -> tuple[Counter[str], list[str]]:
    """Return counts of a problem's folder, and a line for each thing that is wrong there."""
    count: Counter[str] = Counter()
    wrong: list[str] = []
    known = PROBLEMS.get(folder.name)
    if known is None:
        return count, [f"{folder.name}: there is no such problem"]
    try:
        records = parse((folder / "records.json").read_text(encoding="utf-8"))
        names = [record["name"] for record in records]
    except (OSError, ValueError, TypeError, KeyError) as error:
        return count, [f"{folder.name}/records.json: {_said(error)}"]
    if names != sorted(set(names)):
        wrong.append(f"{folder.name}/records.json: names are not in order, or not different")
    of_each = Counter(record.get("digest") for record in records)
    wrong += [
        f"{record['name']}: another name has the same instance"
        for record in records
        if of_each[record.get("digest")] > 1
    ]
    wrong += [f"{folder.name}/records.json: {one!r} is no name" for one in names if not re.fullmatch(NAME, one)]
    kept = {f"{one}{end}" for one in names for end in PARTS.values()} | {"records.json"}
    wrong += [
        f"{folder.name}/{path.name}: no record has it" for path in sorted(folder.iterdir()) if path.name not in kept
    ]
    try:
        if listed(records) != indexed:
            wrong.append(f"{folder.name}: its instances are not those of {INDEX}, or other proofs are known")
    except (KeyError, TypeError) as error:
        wrong.append(f"{folder.name}/records.json: {_said(error)}")
    for record in records:
        if name is not None and record["name"] != name:
            continue
        count["instances"] += 1
        try:
            check_record(folder, known, record, count)
        except Exception as error:  # A damaged file may be anything; the others are still to be checked.
            count["wrong"] += 1
            wrong.append(f"{record['name']}: {_said(error)}")
    return count, wrong


def check_record(folder: Path, problem: Problem, record: Mapping[str, Any], count: Counter[str]) -> None:
    """Check one record, and count what is confirmed.

    Raises
    ------
    Wrong
        At the first thing that is not as the record says; other exceptions where it is no record at all.
    """
    if record["problem"] != folder.name:
        raise Wrong(f"is among {folder.name}, and of {record['problem']}")
    if record["sense"] != problem.sense:
        raise Wrong(f"is said to be {record['sense']!r}, and is {problem.sense!r}")
    data = part(folder, record, "instance")
    if data.get("problem") != folder.name:
        raise Wrong(f"the instance is of {data.get('problem')}")
    it = problem.instance(data)
    if record["digest"] != digest(folder.name, problem.data, [name for name in data if name in problem.data], it):
        raise Wrong("its digest is that of another instance")
    for what, true in (("size", it.dims), ("features", data)):
        for key, told in record[what].items():
            if key in true and true[key] != told:
                raise Wrong(f"its {what} says {key} {told}, and it is {true[key]}")

    plan = problem.plan(it, part(folder, record, "plan"))
    rules = problem.verdict(it, plan)
    if rules.broken:
        raise Wrong(f"the plan breaks {', '.join(dict.fromkeys(rules.broken))}")
    count["tolerated" if rules.missed else "exact"] += 1

    value = problem.worth(it, plan)
    told = said(record["best"], "the value")
    if told != value and (record["best"].get("exact") is not None or not near(told, value)):
        raise Wrong(f"the plan is worth {value}, and the record says {told}: {float(value)!r} and {float(told)!r}")
    count["values"] += 1

    if record["bound"]["value"] is None:
        # Nothing is known, and nothing is to be proven.
        bound: Number = -math.inf if problem.sense == "min" else math.inf
        kind = "runs"
    else:
        bound = said(record["bound"], "the bound")
        kind = check_proof(folder, problem, it, record, bound, record["bound"]["proof"])
    if better(problem.sense, value, bound) and not closed(value, bound):
        raise Wrong(f"the value {float(value)!r} is better than the bound {float(bound)!r}")
    if kind == "prices" and closed(value, bound):
        left = problem.unproven(it, plan, part(folder, record, "prices"))
        if left:
            raise Wrong(f"the prices leave it open whether the plan is best: {left[0]}")
    if kind == "runs":
        # Where nothing is proven, a search may still tell that there is a better plan.
        with contextlib.suppress(TooLarge), within(SEARCHED):
            best = problem.optimum(it)
            if not closed(best, value):
                raise Wrong(f"a search finds the optimum {float(best)!r}, and the best is {float(value)!r}")
    check_class(problem, record, value, bound)
    for heuristic, told in record["heuristics"].items():
        check_heuristic(problem, record, heuristic, told, value)
    count[kind] += 1


def check_class(problem: Problem, record: Mapping[str, Any], value: Number, bound: Number) -> None:
    """Check what a record says of how much is known, by what else it says.

    Raises
    ------
    Wrong
        At the first thing that does not follow.
    """
    if record["class"] not in ("easy", "hard", "open"):
        raise Wrong(f"there is no class {record['class']}")
    if (record["class"] == "open") == closed(value, bound):
        raise Wrong(f"is called {record['class']}: value {float(value)!r}, bound {float(bound)!r}")
    proof = record["bound"]["proof"]
    if problem.linear and record["class"] != "open" and proof["kind"] != "prices":
        raise Wrong("prices prove every optimum of this problem, and it has none")
    priced = "prices" in record["sha256"]
    if priced != (proof["kind"] == "prices"):
        raise Wrong(f"its bound rests on {proof['kind']}, and it has {'prices' if priced else 'none'}")
    certified = "certificate" in record["sha256"]
    if certified != (proof["kind"] == "certificate"):
        raise Wrong(f"its bound rests on {proof['kind']}, and it has {'a' if certified else 'no'} certificate")
    for run in proof.get("runs", []):
        if run["status"] == "optimal" and not closed(run["bound"], value):
            raise Wrong(
                f"{run['solver']} ended with the optimum {float(run['bound'])!r}, and the best is {float(value)!r}"
            )
    for before in record["history"]:
        if "best" in before and better(problem.sense, Fraction(before["best"]["value"]), value):
            raise Wrong(f"a plan worth {float(before['best']['value'])!r} was known before, better than the best")


def check_heuristic(
    problem: Problem, record: Mapping[str, Any], name: str, told: Mapping[str, Any], value: Number
) -> None:
    """Check what a record says of a heuristic; what its plan is worth only the library can say.

    Raises
    ------
    Wrong
        At the first thing that does not follow.
    """
    if told["status"] not in STATUSES:
        raise Wrong(f"{name} is said to be {told['status']}")
    if told["status"] != "feasible" and (told["value"], told["gap"]) != (None, None):
        raise Wrong(f"{name} has no plan, and a value or a gap")
    worth = told["value"]
    if worth is not None and better(problem.sense, worth, value) and not closed(worth, value):
        raise Wrong(f"{name} is said to be worth {float(worth)!r}, more than the best plan known")
    gap = None if record["class"] == "open" or worth is None else _gap(worth, value)
    if (gap is None) != (told["gap"] is None) or (gap is not None and not near(gap, told["gap"])):
        raise Wrong(f"the gap of {name} is {gap and float(gap)!r}, not {told['gap'] and float(told['gap'])!r}")


def check_proof(
    folder: Path, problem: Problem, it: Record, record: Mapping[str, Any], bound: Number, proof: Mapping[str, Any]
) -> str:
    """Return the kind of a bound's proof, after it is proven again where it can be."""
    kind: str = proof["kind"]
    if kind == "runs":
        told = [run["bound"] for run in proof["runs"] if run["bound"] is not None]
        best = (max if problem.sense == "min" else min)(told, default=None)
        if best is None or (better(problem.sense, best, bound) and not near(best, bound)):
            raise Wrong(f"no run ended with the bound {float(bound)!r}")
        return kind
    if kind == "prices":
        proven: Number = problem.bound(it, part(folder, record, "prices"))
    elif kind == "certificate":
        if folder.name not in STATED:
            raise Wrong("nothing here states the program of this problem, so a certificate proves its own file's only")
        packed = (folder / f"{record['name']}{PARTS[kind]}").stat().st_size
        if packed > MOST_PACKED:
            raise Wrong(f"certificate: has {packed:,} bytes compressed, may have {MOST_PACKED:,}")
        try:
            found = vipr.check(io.StringIO(content(folder, record, "certificate")))
            proven = certified(folder.name, it, found)
        except vipr.Refuted as error:
            raise Wrong(f"certificate: {error}") from None
    elif kind == "enumeration":
        kind = "search"
        try:
            proven = problem.searched(it)
        except TooLarge:
            raise Wrong("the bound is said to be proven by a search, which takes too many steps") from None
    elif kind == "argument":
        # What needs no search is that nothing is worth less than 0, and what the problem knows by itself.
        proven = Fraction(0)
        if problem.sense == "max" or bound > 0:
            try:
                proven = problem.searched(it)
            except TooLarge:
                raise Wrong("the bound is said to follow by an argument, which is not known here") from None
    else:
        raise Wrong(f"there is no proof of kind {kind}")
    if better(problem.sense, proven, bound) and (record["bound"].get("exact") is not None or not near(proven, bound)):
        raise Wrong(f"the bound {float(bound)!r} is said to be proven, and {float(proven)!r} is")
    return kind


def part(folder: Path, record: Mapping[str, Any], what: str) -> Any:
    """Return the JSON of a record's instance, plan or prices, whose hash is as the record says."""
    try:
        return parse(content(folder, record, what))
    except ValueError as error:
        raise Wrong(f"{record['name']}{PARTS[what]}: {_said(error)}") from None


def content(folder: Path, record: Mapping[str, Any], what: str) -> str:
    """Return the text of a file of a record's, whose hash is as the record says."""
    file = folder / f"{record['name']}{PARTS[what]}"
    try:
        with gzip.open(file) as packed:
            found = packed.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise Wrong(f"{file.name}: {_said(error)}") from None
    if len(found) > MOST_BYTES:
        raise Wrong(f"{file.name} is too large")
    if hashlib.sha256(found).hexdigest() != record["sha256"].get(what):
        raise Wrong(f"{file.name}: its SHA-256 is not that of the record")
    try:
        return found.decode()
    except ValueError as error:
        raise Wrong(f"{file.name}: {_said(error)}") from None


def said(told: Mapping[str, Any], what: str) -> Fraction:
    """Return a record's number: the fraction, to which the decimal must be near, or else the decimal."""
    value = Fraction(told["value"])
    if told.get("exact") is None:
        return value
    exact = Fraction(told["exact"])
    if not near(value, exact):
        raise Wrong(f"{what}: {float(value)!r} and {told['exact']} are not the same")
    return exact


def near(one: Number, other: Number) -> bool:
    """Tell whether two numbers are equal but for rounding."""
    return magnitude(one - other) <= ROUNDING * max(magnitude(one), magnitude(other))


def _gap(value: Number, best: Number) -> Number | None:
    """Return how far a value is from the best one, relative to that: 0 where they are equal, None to a best of 0."""
    if closed(value, best):
        return Fraction(0)
    return magnitude(value - best) / magnitude(best) if best else None


def table(counts: Mapping[str, Counter[str]]) -> str:
    """Return what was counted, a line for each problem and one for all."""
    width = max([len("problem"), *map(len, counts)])
    total = sum(counts.values(), Counter())
    lines = ["  ".join([f"{'problem':{width}}", *(f"{column:>9}" for column in COLUMNS)])]
    for name, count in [*counts.items(), ("all", total)]:
        lines.append("  ".join([f"{name:{width}}", *(f"{count[column]:>9}" for column in COLUMNS)]))
    return "\n".join(lines)


def pack(folder: Path, file: Path) -> None:
    """Write a collection as an archive, with what checks it beside its records."""

    def kept(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        return None if "__pycache__" in entry.name else entry

    with tarfile.open(file, "w:gz") as packed:
        for path in sorted(folder.iterdir()):
            if path.name != "reference" and not path.name.startswith("."):
                packed.add(path, f"collection/{path.name}", filter=kept)
        packed.add(Path(__file__).parent, "collection/reference", filter=kept)


def _said(error: BaseException) -> str:
    if isinstance(error, (Wrong, Malformed)):
        return str(error)
    return f"{type(error).__name__}: {error}"
