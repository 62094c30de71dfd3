"""Files that are not what they should be: instances, plans, tables of real data, options, and odd paths.

What is read must be read whole and stay what it is; what is not must be refused in one line.  Everything is
read apart, under limits of time and memory, so that what hangs or grows is counted and not suffered.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias
from unittest import mock

import numpy as np

import formulations
import instances
from benchmarks.faults.mutations import altered_bytes, altered_table, altered_text, altered_tree, as_json
from benchmarks.faults.originals import TABLES, TOML
from benchmarks.faults.studies import without_pictures
from benchmarks.faults.tally import Tally, fault
from instances.base import Instance, InstanceError, PlanError
from validation import catalogue
from validation.errors import CatalogueError, StudyError
from validation.formatting import printable
from validation.kernel.asking import answered
from validation.kernel.isolation import Apart
from validation.kinds.study.cases import choose_algorithms, choose_cases, choose_problems, generate
from validation.kinds.study.options import StudyOptions

__all__ = ["Wrong"]

SECONDS = 20.0
"""What a reading, a judgement or a heuristic may take on a small instance, on a slow machine."""
MEMORY = 2_000_000_000
"""Bytes that it may take."""
UNHARMED = 0.02
"""Part of the files that are left as they are, and must be read as such."""
BUILT = 0.1
"""Part of the instances that are read whose exact model is built too."""
SMALL_MODEL = 2_000
"""Entries of an instance up to which that is done."""
LONGEST = 1000
"""Characters of a message that a person reads."""

Case: TypeAlias = tuple[Any, ...]
"""Whether a file is unharmed, and what it is."""


class Wrong(Exception):  # noqa: N818, it is told, not raised further
    """What must not happen."""


def _harm(
    name: str,
    draw: Callable[[np.random.Generator], Case],
    look: Callable[..., str],
    refusals: tuple[type, ...],
    tally: Tally,
    seed: int,
    count: int,
) -> None:
    """Count what comes of so many cases, each drawn from a stream of its own and looked at apart."""
    with Apart(partial(_looked, look, refusals), memory=MEMORY) as apart:
        for number in range(count):
            case = draw(np.random.default_rng([seed, zlib.crc32(name.encode()), number]))
            tally.begin()
            for question in [case, *_further(name, case)]:
                answer = apart.ask(*question, seconds=SECONDS)
                ((kind, text),) = (answer.content or {"hang": answer.reason}).items()
                if kind == "outcome":
                    tally.count(text)
                else:
                    counted = {"hang": "hangs", "error": "tracebacks"}.get(kind, "")
                    tally.tell(f"number {number}: {kind}: {text}: {str(question)[:200]}", counted)
                if text not in ("read", "unharmed"):
                    break


def _further(name: str, case: Case) -> Iterator[Case]:
    """Yield what follows once an instance is read: what the heuristics, and the model's builder, say to it."""
    if name == "files.instances":
        for heuristic in catalogue.entry(case[2]).heuristics:
            yield (False, *case[1:], heuristic)
        if zlib.crc32(case[1].encode("utf-8", "surrogatepass")) % round(1 / BUILT) == 0:
            yield (False, *case[1:], "exact model")


def _looked(look: Callable[..., str], refusals: tuple[type, ...], unharmed: bool, *case: Any) -> dict[str, str]:
    """Return what is found: an "outcome" that may be, or what is "wrong"; a refusal is one that a person reads."""
    # Numbers that overflow on the way are no news.
    warnings.simplefilter("ignore")
    try:
        with np.errstate(all="ignore"):
            found = look(*case)
    except Wrong as error:
        return {"wrong": str(error)}
    except refusals as error:  # type: ignore[misc]
        if unharmed:
            return {"wrong": f"refused unharmed: {error}"}
        if len(str(error)) > LONGEST:
            return {"wrong": f"a message of {len(str(error))} characters: {error}"}
        return {"outcome": "model refused" if isinstance(error, formulations.ModelError) else "refused"}
    return {"outcome": "unharmed" if unharmed and found == "read" else found}


def _comes_back(one: Any, read: Callable[[Any], Any]) -> None:
    """Raise where what is written and read again is not what it was."""
    try:
        again = read(json.loads(json.dumps(one.to_dict(), allow_nan=False)))
    except (InstanceError, PlanError) as error:
        raise Wrong(f"what is written is refused: {error}") from None
    if again.digest != one.digest:
        raise Wrong("what is written and read again is another")


# --- instances ------------------------------------------------------------------------------------


@cache
def _small(problem: str, number: int) -> Instance[Any]:
    sizes = catalogue.entry(problem).sizes
    return generate(problem, 1, min(sizes[0], 6), number) if number else generate(problem, 1, sizes[0])


def _drawn(rng: np.random.Generator) -> tuple[str, int]:
    """Draw a problem, and the number of one of its small instances."""
    problems = [problem for problem in instances.problems() if instances.files.is_own(problem)]
    return problems[int(rng.integers(len(problems)))], int(rng.integers(3))


def draw_instance(rng: np.random.Generator) -> Case:
    """Draw the text of a harmed instance, the problem, and, where it is unharmed, the digest that it must have."""
    problem, number = _drawn(rng)
    instance = _small(problem, number)
    tree, kind = instance.to_dict(), rng.random()
    if kind < UNHARMED:
        return True, json.dumps(tree), problem, instance.digest
    harmed = altered_text(rng, json.dumps(tree)) if kind < 0.3 else as_json(rng, altered_tree(rng, tree))
    return False, harmed, problem, ""


def read_instance(text: str, problem: str, digest: str, then: str = "") -> str:
    """Return what comes of reading an instance, and ``then`` of a heuristic or of the exact model."""
    path = Path(tempfile.gettempdir()) / "instance.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        instance = instances.load(path)
    except InstanceError as error:
        if not str(error).startswith(str(path)):
            raise Wrong(f"the file is not named: {str(error)[:200]}") from None
        raise
    if digest and instance.digest != digest:
        raise Wrong("read as another instance")
    if not then:
        _comes_back(instance, instances.read)
        repr(instance)
        return "read"
    if then == "exact model":
        if sum(np.size(part) for part in vars(instance).values()) > SMALL_MODEL or not instance.dims.get("n", 1):
            return "no model built"
        formulations.build(instance)
        return "model built"
    heuristics = catalogue.entry(instance.problem).heuristics
    # The text may have become one of another problem, whose heuristics have other names.
    if instance.problem == problem or then in heuristics:
        plan = _plan_of(instance, heuristics[then])
        with contextlib.suppress(PlanError):
            broken, value = (instance.violations(plan), instance.objective(plan)) if plan is not None else ([], 0.0)
            if not broken and np.isnan(value):
                raise Wrong("a feasible plan whose value is no number")
    return "read"


def _plan_of(instance: Instance[Any], heuristic: catalogue.Heuristic) -> Any:
    """Return a heuristic's plan; None where it declines."""
    answer = answered(heuristic, 0, instance)
    fields = {name.partition(".")[2]: value for name, value in answer.items()}
    try:
        return None if "none" in answer else instance.plan_type(**fields)
    except PlanError as error:
        raise Wrong(f"{heuristic.name} makes no plan: {error}") from None


# --- plans ----------------------------------------------------------------------------------------


def draw_plan(rng: np.random.Generator) -> Case:
    """Draw a problem, the number of its instance, and the text of a harmed plan."""
    problem, number = _drawn(rng)
    tree = _plan(problem, number).to_dict()
    unharmed = rng.random() < UNHARMED
    return unharmed, problem, number, json.dumps(tree) if unharmed else as_json(rng, altered_tree(rng, tree)), unharmed


@cache
def _plan(problem: str, number: int) -> Any:
    instance = _small(problem, number)
    plans = (_plan_of(instance, heuristic) for heuristic in catalogue.entry(problem).heuristics.values())
    return next((plan for plan in plans if plan is not None), None) or instance.nothing()


def read_plan(problem: str, number: int, text: str, unharmed: bool) -> str:
    """Return what comes of reading a plan, and of judging it."""
    instance, mine = _small(problem, number), _plan(problem, number)
    try:
        plan = instance.plan_type.from_dict(json.loads(text))
    except PlanError:
        raise
    except (ValueError, RecursionError):
        return "not JSON"
    _comes_back(plan, type(plan).from_dict)
    broken, value = instance.violations(plan), instance.objective(plan)
    if plan == mine and (broken, value) != (instance.violations(mine), instance.objective(mine)):
        raise Wrong("the same plan is judged in another way")
    if unharmed and plan != mine:
        raise Wrong("read as another plan")
    return "infeasible" if broken else "feasible"


# --- tables of real data, options in TOML ---------------------------------------------------------


def draw_table(rng: np.random.Generator) -> Case:
    """Draw the name of a reader, which of its files is harmed and to what."""
    name = list(TABLES)[int(rng.integers(len(TABLES)))]
    files = TABLES[name].files
    file = list(files)[int(rng.integers(len(files)))]
    text, kind = files[file], rng.random()
    if kind < 0.2:
        content = text.encode() if kind < UNHARMED else altered_bytes(rng, text.encode())
        return kind < UNHARMED, name, file, content, kind < UNHARMED
    if kind < 0.4:
        harmed = altered_text(rng, text)
    elif file.endswith(".json"):
        harmed = as_json(rng, altered_tree(rng, json.loads(text)))
    else:
        harmed = altered_table(rng, text, "\t" if "\t" in text else ",")
    return False, name, file, harmed.encode("utf-8", "surrogatepass"), False


def read_table(name: str, file: str, content: bytes, unharmed: bool) -> str:
    """Return what comes of reading real data of which one file is harmed."""
    # A folder for each: readers may remember a file that has not changed.
    folder = Path(tempfile.mkdtemp())
    for other, text in TABLES[name].files.items():
        path = folder / other
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if other == file else text.encode())
    found = TABLES[name].read(folder)
    count = found.num_jobs if isinstance(found, Instance) else len(found)  # type: ignore[attr-defined]
    if unharmed and count != TABLES[name].count:
        raise Wrong(f"{count} are read")
    return "read"


def draw_toml(rng: np.random.Generator) -> Case:
    """Draw bytes of harmed options of a study."""
    kind = rng.random()
    if kind < 0.2:
        content = TOML.encode() if kind < UNHARMED else altered_bytes(rng, TOML.encode())
        return kind < UNHARMED, content, kind < UNHARMED
    harmed = altered_text(rng, TOML) if kind < 0.6 else altered_table(rng, TOML, " = ")
    return False, harmed.encode("utf-8", "surrogatepass"), False


def read_toml(content: bytes, unharmed: bool) -> str:
    """Return what comes of options in a file, up to the instances of the study."""
    path = Path(tempfile.gettempdir()) / "study.toml"
    path.write_bytes(content)
    try:
        options = StudyOptions.given(path, output=Path(tempfile.gettempdir()) / "study", seed=1)
        problems = choose_problems(options.problems or [])
        algorithms = choose_algorithms(problems, options.heuristics, options.solver, options.time_limit)
        sizes = options.sizes.values() if isinstance(options.sizes, dict) else [options.sizes or []]
        few = (options.count or 0) <= 2 and all(isinstance(one, list) and len(str(one)) < 10 for one in sizes)
        cases = choose_cases(problems, options) if few else []
    except OSError as error:
        if not error.filename:
            raise Wrong(f"the file is not named: {error}") from None
        return "refused"
    if unharmed and (len(cases), [len(found) for found in algorithms.values()]) != (2, [2]):
        raise Wrong("read as other options")
    return "read"


# --- paths ----------------------------------------------------------------------------------------

NAMES = (
    "[x]", "[/]", "[bold red]", "a b", " ", "'q'", '"q"', "a\nb", "a\tb", "ü", "日本", os.fsdecode(b"\xff\xfe"),
    "\ud800", "a\0b", "-", "--", "~", "$HOME", "%s", "{x}", "*", "?", "a=b", "a,b", "a:b", ":smile:", "#", "x" * 240,
    "x" * 300, "a//b", "./a", "a/../b", "", ".", "..", "/dev/null", "/dev/full", "/proc/self/mem", "there",
    "there/six.json/x", "there/six.json", "link", "loop", "\\", "a.json", "COM1", "é" * 120,
)  # fmt: skip
COMMANDS = ("generate", "solve", "solve missing", "study", "instances", "config", "report", "claims", "throughputs")


def draw_path(rng: np.random.Generator) -> Case:
    """Draw a name and a command that is given it."""
    return False, NAMES[int(rng.integers(len(NAMES)))], COMMANDS[int(rng.integers(len(COMMANDS)))]


def use_path(name: str, command: str) -> str:
    """Return what a command says to an odd path: its work, or one line and exit code 2."""
    os.chdir(tempfile.mkdtemp())
    six = generate("aryl.reclaim", 1, 6)
    os.mkdir("there")
    instances.save(six, "there/six.json")
    os.symlink("nowhere", "link")
    os.symlink("loop", "loop")
    with contextlib.suppress(OSError, ValueError):
        if command in ("solve", "instances", "config") and not os.path.lexists(name):
            os.mkdir(name)
            instances.save(six, os.path.join(name, "six.json"))
    study = ["study", "aryl.reclaim", "--heuristic", "server_fraction", "--sizes", "4", "--count", "1", "--jobs", "1"]
    made = os.path.join(name, "six.json")
    arguments = {
        "generate": ["generate", "aryl.reclaim", "--seed", "1", "--size", "6", "-o", name],
        "solve": ["solve", made],
        "solve missing": ["solve", name],
        "study": [*study, "--seed", "1", "-o", name],
        "instances": [*study[:4], "--jobs", "1", "--instances", name, "--seed", "1", "-o", "study"],
        "config": [*study, "--seed", "1", "-o", "study", "--config", name],
        "report": ["report", name],
        "claims": ["claims", "aryl.two_job", "--instances", "1", "--seconds", "1", "-o", name],
        "throughputs": [*study[:3], "--trace", name, "--throughputs", name, "--seed", "1", "-o", "study"],
    }[command]
    arguments = [argument.replace("aryl.reclaim", "aryl.elastic_allocation") if command == "throughputs" else argument
                 for argument in arguments]  # fmt: skip
    code, out, err = _optgap(arguments)
    if code == 2:
        if len(err.splitlines()) != 1 or not err.startswith("optgap: "):
            raise Wrong(f"said {err[-300:]!r}")
        return "refused"
    # A heuristic is not asked in a process that is itself confined like one, and such runs fail; the exact side is
    # solved in any.
    if code not in ((0, 3) if " runs failed; the first: " in out else (0,)):
        raise Wrong(f"exit code {code}: {err[-300:]!r}")
    if command == "generate":
        (written,) = Path(name).glob("aryl.reclaim-*.json")
        if instances.load(written) != six:
            raise Wrong("another instance is written")
    if command.startswith("solve") and "optimal" not in out:
        raise Wrong(f"solved as {out[-300:]!r}")
    if "the first: exact" in out:
        raise Wrong(f"runs failed: {out[-300:]!r}")
    if command == "study" and f"report: {printable(str(Path(name) / 'report.html'))}" not in out:
        raise Wrong(f"the report is not named as it is: {out[-300:]!r}")
    return "done"


def _optgap(arguments: list[str]) -> tuple[int, str, str]:
    """Run a command in this process, with streams such as a terminal's."""
    from validation import cli

    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", errors) for errors in ("strict", "backslashreplace"))
    with (
        mock.patch.object(sys, "argv", ["optgap", *arguments]),
        without_pictures(),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            cli.main()
            code = 0
        except SystemExit as ended:
            code = int(ended.code or 0)
    for stream in (out, err):
        stream.flush()
    return code, out.buffer.getvalue().decode(), err.buffer.getvalue().decode()


# --- what there is --------------------------------------------------------------------------------

_ALL: tuple[tuple[str, int, str, Callable[[np.random.Generator], Case], Callable[..., str], tuple[type, ...]], ...] = (
    ("files.instances", 10_000,
     "The JSON of an instance is harmed, as text or as a tree; what still reads is solved by all heuristics",
     draw_instance, read_instance, (InstanceError, PlanError, formulations.ModelError)),
    ("files.plans", 2_000, "The JSON of a plan is harmed; what still reads is judged",
     draw_plan, read_plan, (PlanError,)),
    ("files.tables", 4_000,
     "A table, a trace or a profile of real data is harmed: bytes, encoding, cells, lines, columns",
     draw_table, read_table, (InstanceError,)),
    ("files.toml", 500, "The TOML file of a study's options is harmed",
     draw_toml, read_toml, (InstanceError, StudyError, CatalogueError)),
    ("files.paths", 150,
     "Commands are given odd names: brackets, quotes, other bytes, links, devices, folders in the place of files",
     draw_path, use_path, ()),
)  # fmt: skip
for name, count, what, draw, look, refusals in _ALL:
    fault(name, count, what)(partial(_harm, name, draw, look, refusals))
