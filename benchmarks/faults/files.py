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
from typing import Any
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

__all__ = [
    "draw_instance",
    "draw_plan",
    "draw_table",
    "draw_toml",
    "read_instance",
    "read_plan",
    "read_table",
    "read_toml",
]

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

Case = tuple[Any, ...]
Outcome = dict[str, Any]
"""``{"outcome": ...}`` for what may happen, ``{"wrong": ...}`` for what must not."""


def _rng(seed: int, name: str, number: int) -> np.random.Generator:
    return np.random.default_rng([seed, zlib.crc32(name.encode()), number])


def _tally(
    tally: Tally, name: str, seed: int, count: int, draw: Callable[[np.random.Generator], Case], look: Any
) -> None:
    """Count what comes of so many cases, each drawn from a stream of its own and looked at apart."""
    with Apart(partial(_quietly, look), memory=MEMORY) as apart:
        for number in range(count):
            case = draw(_rng(seed, name, number))
            tally.begin()
            for question in [case, *_heuristics_of(name, case)]:
                answer = apart.ask(*question, seconds=SECONDS)
                found = answer.content or {"hang": answer.reason}
                if "outcome" in found:
                    tally.count(found["outcome"])
                    if found["outcome"] not in ("read", "unharmed"):
                        break
                else:
                    kind, text = next(iter(found.items()))
                    tally.hangs += kind == "hang"
                    tally.tracebacks += kind == "error"
                    tally.wrong.append(f"number {number}: {kind}: {text}: {str(question)[:200]}")
                    break


def _heuristics_of(name: str, case: Case) -> Iterator[Case]:
    """The questions that follow once an instance is read: what the heuristics, and the model's builder, say to it."""
    if name == "files.instances":
        for heuristic in catalogue.entry(case[1]).heuristics:
            yield (*case[:3], heuristic)
        if zlib.crc32(case[0].encode("utf-8", "surrogatepass")) % round(1 / BUILT) == 0:
            yield (*case[:3], "exact model")


def _quietly(look: Callable[..., Outcome], *case: Any) -> Outcome:
    """What is found; numbers that overflow on the way are no news."""
    warnings.simplefilter("ignore")
    with np.errstate(all="ignore"):
        return look(*case)


def _written(content: str | bytes, name: str) -> Path:
    path = Path(tempfile.gettempdir()) / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    return path


def _refused(error: Exception, path: Path | None = None) -> Outcome:
    """A refusal must name the file, and be of a length that a person reads."""
    message = str(error)
    if path is not None and not message.startswith(str(path)):
        return {"wrong": f"the file is not named: {message[:200]}"}
    if len(message) > 1000:
        return {"wrong": f"a message of {len(message)} characters"}
    return {"outcome": "refused"}


# --- instances ------------------------------------------------------------------------------------


@cache
def _small(problem: str, number: int) -> Instance[Any]:
    sizes = catalogue.entry(problem).sizes
    return generate(problem, 1, min(sizes[0], 6), number) if number else generate(problem, 1, sizes[0])


def draw_instance(rng: np.random.Generator) -> Case:
    """Text of a harmed instance, the problem, and, where it is unharmed, the digest that it must have."""
    problems = [problem for problem in instances.problems() if instances.files.is_own(problem)]
    problem = problems[int(rng.integers(len(problems)))]
    instance = _small(problem, int(rng.integers(3)))
    tree, kind = instance.to_dict(), rng.random()
    if kind < UNHARMED:
        return json.dumps(tree), problem, instance.digest
    if kind < 0.3:
        return altered_text(rng, json.dumps(tree)), problem, ""
    return as_json(rng, altered_tree(rng, tree)), problem, ""


def read_instance(text: str, problem: str, digest: str, then: str = "") -> Outcome:
    """What comes of reading an instance, and ``then`` of a heuristic or of the exact model."""
    path = _written(text, "instance.json")
    try:
        instance = instances.load(path)
    except InstanceError as error:
        return {"wrong": f"refused unharmed: {error}"} if digest else _refused(error, path)
    if digest and instance.digest != digest:
        return {"wrong": "read as another instance"}
    if not then:
        again = instances.read(json.loads(json.dumps(instance.to_dict(), allow_nan=False)))
        if again.digest != instance.digest:
            return {"wrong": "what is written and read again is another instance"}
        repr(instance)
        return {"outcome": "unharmed" if digest else "read"}
    if then == "exact model":
        if sum(np.size(part) for part in vars(instance).values()) > SMALL_MODEL or not instance.dims.get("n", 1):
            return {"outcome": "no model built"}
        try:
            formulations.build(instance)
        except formulations.ModelError as error:
            return _model_refused(error)
        return {"outcome": "model built"}
    try:
        answer = answered(catalogue.entry(instance.problem).heuristics[then], 0, instance)
    except (KeyError, InstanceError, PlanError) as error:
        # The text may have become one of another problem, whose heuristics have other names.
        return {"outcome": "read"} if isinstance(error, KeyError) and instance.problem != problem else _refused(error)
    except formulations.ModelError as error:  # Of a heuristic that solves programs.
        return _model_refused(error)
    if "none" in answer:
        return {"outcome": "read"}
    plan = instance.plan_type(**{name.partition(".")[2]: value for name, value in answer.items()})
    return _judged(instance, plan) or {"outcome": "read"}


def _model_refused(error: formulations.ModelError) -> Outcome:
    return {"wrong": f"a long message: {error}"} if len(str(error)) > 1000 else {"outcome": "model refused"}


def _judged(instance: Instance[Any], plan: Any) -> Outcome | None:
    """What is wrong with the judge's word on a plan of the instance's own size; nothing as a rule."""
    try:
        broken = instance.violations(plan)
        value = instance.objective(plan)
    except PlanError:
        return None
    if not broken and np.isnan(value):
        return {"wrong": "a feasible plan whose value is no number"}
    return None


@fault("files.instances", 10_000)
def harmed_instances(tally: Tally, seed: int, count: int) -> None:
    """The JSON of an instance is harmed, as text or as a tree; what still reads is solved by all heuristics."""
    _tally(tally, "files.instances", seed, count, draw_instance, read_instance)


# --- plans ----------------------------------------------------------------------------------------


def draw_plan(rng: np.random.Generator) -> Case:
    """A problem, number of its instance, and text of a harmed plan; whether it is unharmed."""
    problems = [problem for problem in instances.problems() if instances.files.is_own(problem)]
    problem, number = problems[int(rng.integers(len(problems)))], int(rng.integers(3))
    plan = _plan(problem, number)
    if rng.random() < UNHARMED:
        return problem, number, json.dumps(plan.to_dict()), True
    return problem, number, as_json(rng, altered_tree(rng, plan.to_dict())), False


@cache
def _plan(problem: str, number: int) -> Any:
    instance = _small(problem, number)
    for heuristic in catalogue.entry(problem).heuristics.values():
        answer = answered(heuristic, 0, instance)
        if "none" not in answer:
            return instance.plan_type(**{name.partition(".")[2]: value for name, value in answer.items()})
    return instance.nothing()


def read_plan(problem: str, number: int, text: str, unharmed: bool) -> Outcome:
    """What comes of reading a plan, and of judging it."""
    instance = _small(problem, number)
    try:
        plan = instance.plan_type.from_dict(json.loads(text))
    except PlanError as error:
        return {"wrong": f"refused unharmed: {error}"} if unharmed else _refused(error)
    except (ValueError, RecursionError):
        return {"outcome": "not JSON"}
    if plan.digest != type(plan).from_dict(json.loads(json.dumps(plan.to_dict(), allow_nan=False))).digest:
        return {"wrong": "what is written and read again is another plan"}
    mine = _plan(problem, number)
    try:
        broken, value = instance.violations(plan), instance.objective(plan)
    except PlanError as error:
        return {"wrong": f"refused unharmed: {error}"} if unharmed else _refused(error)
    if plan == mine and (broken, value) != (instance.violations(mine), instance.objective(mine)):
        return {"wrong": "the same plan is judged in another way"}
    if unharmed and plan != mine:
        return {"wrong": "read as another plan"}
    return {"outcome": "infeasible" if broken else "feasible"}


@fault("files.plans", 2_000)
def harmed_plans(tally: Tally, seed: int, count: int) -> None:
    """The JSON of a plan is harmed; what still reads is judged."""
    _tally(tally, "files.plans", seed, count, draw_plan, read_plan)


# --- tables of real data --------------------------------------------------------------------------


def draw_table(rng: np.random.Generator) -> Case:
    """Name of a reader, which of its files is harmed and to what; whether it is unharmed."""
    name = list(TABLES)[int(rng.integers(len(TABLES)))]
    files = TABLES[name].files
    file = list(files)[int(rng.integers(len(files)))]
    text, kind = files[file], rng.random()
    if kind < UNHARMED:
        return name, file, text.encode(), True
    if kind < 0.2:
        return name, file, altered_bytes(rng, text.encode()), False
    if kind < 0.4:
        harmed = altered_text(rng, text)
    elif file.endswith(".json"):
        harmed = as_json(rng, altered_tree(rng, json.loads(text)))
    else:
        harmed = altered_table(rng, text, "\t" if "\t" in text else ",")
    return name, file, harmed.encode("utf-8", "surrogatepass"), False


def read_table(name: str, file: str, content: bytes, unharmed: bool) -> Outcome:
    """What comes of reading real data of which one file is harmed."""
    # A folder for each: readers may remember a file that has not changed.
    folder = Path(tempfile.mkdtemp())
    for other, text in TABLES[name].files.items():
        path = folder / other
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if other == file else text.encode())
    try:
        found = TABLES[name].read(folder)
    except InstanceError as error:
        return {"wrong": f"refused unharmed: {error}"} if unharmed else _refused(error)
    count = found.num_jobs if isinstance(found, Instance) else len(found)  # type: ignore[attr-defined]
    if unharmed and count != TABLES[name].count:
        return {"wrong": f"{count} are read"}
    return {"outcome": "unharmed" if unharmed else "read"}


@fault("files.tables", 4_000)
def harmed_tables(tally: Tally, seed: int, count: int) -> None:
    """A table, a trace or a profile of real data is harmed: bytes, encoding, cells, lines, columns."""
    _tally(tally, "files.tables", seed, count, draw_table, read_table)


# --- options in TOML ------------------------------------------------------------------------------


def draw_toml(rng: np.random.Generator) -> Case:
    """Bytes of harmed options of a study; whether they are unharmed."""
    kind = rng.random()
    if kind < UNHARMED:
        return TOML.encode(), True
    if kind < 0.2:
        return altered_bytes(rng, TOML.encode()), False
    if kind < 0.6:
        return altered_text(rng, TOML).encode("utf-8", "surrogatepass"), False
    return altered_table(rng, TOML, " = ").encode("utf-8", "surrogatepass"), False


def read_toml(content: bytes, unharmed: bool) -> Outcome:
    """What comes of options in a file, up to the instances of the study."""
    path = _written(content, "study.toml")
    try:
        options = StudyOptions.given(path, output=Path(tempfile.gettempdir()) / "study", seed=1)
        problems = choose_problems(options.problems or [])
        algorithms = choose_algorithms(problems, options.heuristics, options.solver, options.time_limit)
        sizes = options.sizes.values() if isinstance(options.sizes, dict) else [options.sizes or []]
        few = (options.count or 0) <= 2 and all(isinstance(one, list) and len(str(one)) < 10 for one in sizes)
        cases = choose_cases(problems, options) if few else []
    except (InstanceError, StudyError, CatalogueError) as error:
        return {"wrong": f"refused unharmed: {error}"} if unharmed else _refused(error)
    except OSError as error:
        return {"outcome": "refused"} if error.filename else {"wrong": f"the file is not named: {error}"}
    if unharmed and (len(cases), [len(found) for found in algorithms.values()]) != (2, [2]):
        return {"wrong": "read as other options"}
    return {"outcome": "unharmed" if unharmed else "read"}


@fault("files.toml", 500)
def harmed_options(tally: Tally, seed: int, count: int) -> None:
    """The TOML file of a study's options is harmed."""
    _tally(tally, "files.toml", seed, count, draw_toml, read_toml)


# --- paths ----------------------------------------------------------------------------------------

NAMES = (
    "[x]", "[/]", "[bold red]", "a b", " ", "'q'", '"q"', "a\nb", "a\tb", "ü", "日本", os.fsdecode(b"\xff\xfe"),
    "\ud800", "a\0b", "-", "--", "~", "$HOME", "%s", "{x}", "*", "?", "a=b", "a,b", "a:b", ":smile:", "#", "x" * 240,
    "x" * 300, "a//b", "./a", "a/../b", "", ".", "..", "/dev/null", "/dev/full", "/proc/self/mem", "there",
    "there/six.json/x", "there/six.json", "link", "loop", "\\", "a.json", "COM1", "é" * 120,
)  # fmt: skip
COMMANDS = ("generate", "solve", "solve missing", "study", "instances", "config", "report", "claims", "throughputs")


def draw_path(rng: np.random.Generator) -> Case:
    """A name and a command that is given it."""
    return NAMES[int(rng.integers(len(NAMES)))], COMMANDS[int(rng.integers(len(COMMANDS)))]


def use_path(name: str, command: str) -> Outcome:
    """What a command says to an odd path: its work, or one line and exit code 2."""
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
        lines = err.splitlines()
        fine = len(lines) == 1 and lines[0].startswith("optgap: ")
        return {"outcome": "refused"} if fine else {"wrong": f"said {err[-300:]!r}"}
    # A heuristic is not asked in a process that is itself confined like one, and such runs fail; the exact side is
    # solved in any.
    if code not in ((0, 3) if " runs failed; the first: " in out else (0,)):
        return {"wrong": f"exit code {code}: {err[-300:]!r}"}
    if command == "generate":
        (written,) = Path(name).glob("aryl.reclaim-*.json")
        if instances.load(written) != six:
            return {"wrong": "another instance is written"}
    if command.startswith("solve") and "optimal" not in out:
        return {"wrong": f"solved as {out[-300:]!r}"}
    if "the first: exact" in out:
        return {"wrong": f"runs failed: {out[-300:]!r}"}
    if command == "study" and _report(name) not in out:
        return {"wrong": f"the report is not named as it is: {out[-300:]!r}"}
    return {"outcome": "done"}


def _report(name: str) -> str:
    """How a study's report is named in a line of a terminal."""
    return f"report: {printable(str(Path(name) / 'report.html'))}"


def _optgap(arguments: list[str]) -> tuple[int, str, str]:
    """A command in this process, with streams such as a terminal's."""
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
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())
    return code, texts[0], texts[1]


@fault("files.paths", 150)
def odd_paths(tally: Tally, seed: int, count: int) -> None:
    """Commands are given odd names: brackets, quotes, other bytes, links, devices, folders in the place of files."""
    _tally(tally, "files.paths", seed, count, draw_path, use_path)
