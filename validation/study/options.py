"""What a study is asked: every option once, for Python, the command line, TOML files and the metadata.

The command line reads this module before it knows whether the library is installed as it should be, so
that it imports no other room.
"""

from __future__ import annotations

import inspect
import operator
import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from validation.errors import StudyError
from validation.formatting import printable
from validation.reader_options import pairs

if TYPE_CHECKING:
    from instances.base import Instance

__all__ = [
    "MOST_JOBS",
    "Options",
    "Paths",
    "StudyOptions",
    "as_toml",
    "documented",
    "option",
    "refuse_odd_path",
    "shard_of",
    "visible",
]

Paths: TypeAlias = str | Sequence[str]
"""One path, or several."""


def option(
    help: str,
    kinds: tuple[type, ...],
    *,
    annotation: Any,
    default: Any = None,
    names: tuple[str, ...] = (),
    argument: bool = False,
    read: Callable[[Any], Any] | None = None,
) -> Any:
    """A field of a class of :class:`Options`.

    Parameters
    ----------
    help : str
        What it is, for the table of the documents and the help of the command line.
    kinds : tuple of type
        What a TOML file may hold for it.
    annotation : type
        Of the command line's parameter.
    default
    names : tuple of str
        On the command line; ``--the-name`` by default.
    argument : bool
        Whether it stands on the command line without a name.
    read : callable, optional
        From what the command line gives to what the option is.
    """
    metadata = {
        "help": help,
        "kinds": kinds,
        "annotation": annotation,
        "default": default,
        "names": names,
        "argument": argument,
        "read": read or (lambda given: given),
    }
    return field(default=default, metadata=metadata)


def _sizes(given: Sequence[str]) -> list[int] | dict[str, list[int]]:
    """``10,20`` or ``aryl.reclaim=10,20`` (for each problem named)."""
    named = {}
    plain: list[int] = []
    for item in given:
        problem, equals, numbers = item.rpartition("=")
        if equals:
            named[problem] = _whole_numbers(numbers)
        else:
            plain += _whole_numbers(numbers)
    if named and plain:
        raise StudyError("--sizes: either sizes for all problems or PROBLEM=SIZES for each, not both")
    return named or plain


def _sweep(given: Sequence[str]) -> dict[str, list[str]]:
    """``spread=0.1,0.5``: the text of each time that a parameter is named."""
    from instances.schema import quoted

    found: dict[str, list[str]] = {}
    for one in given:
        name, equals, values = one.partition("=")
        if not equals or not name or not values:
            raise StudyError(f"--sweep: got {quoted(one)}, must be NAME=VALUE,VALUE such as spread=0.1,0.5,0.9")
        found.setdefault(name, []).append(values)
    return found


def _whole_numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise StudyError(f"--sizes: got {text!r}, must be whole numbers such as 10,20") from None


def _paths(given: Sequence[str]) -> list[str] | dict[str, list[str]]:
    """Paths, or a mapping from paper to paths."""
    from validation.catalogue import CATALOGUE

    papers = {problem.split(".")[0] for problem in CATALOGUE}
    named: dict[str, list[str]] = {}
    plain: list[str] = []
    for item in given:
        paper, equals, path = item.partition("=")
        if equals and paper in papers:
            named.setdefault(paper, []).append(path)
        else:
            plain.append(item)
    if named and plain:
        raise StudyError(f"got {plain[0]!r} among paths of papers, must be PAPER=PATH")
    return named or plain


def _times(given: Sequence[str]) -> list[float]:
    """``600,1200``."""
    try:
        return [float(part) for item in given for part in item.split(",")]
    except ValueError:
        raise StudyError(f"--times: got {','.join(given)!r}, must be seconds such as 600,1200") from None


MOST_JOBS = 1000
"""Worker processes of a study."""

MOST_INSTANCES = 1_000_000
"""Instances of each problem, size and source."""

_FILES = ("throughputs", "trace", "placements")
"""Options that are paths of real data."""

_OF_THIS_RUN = ("output", "jobs", "memory_limit", "shard")
"""Options that say where and on what a study runs, not what it is."""


class Options:
    """What is asked, in a frozen class whose fields are made by :func:`option`: from the command line and from TOML."""

    @classmethod
    def fields(cls) -> tuple[Field[Any], ...]:
        """The options, in order."""
        return fields(cls)  # type: ignore[arg-type]

    @classmethod
    def given(cls, config: Path | None, **given: Any) -> Self:
        """Options from a TOML file and from the command line, which wins."""
        asked = _from_toml(config, cls) if config else {}
        read = {one.name: one.metadata["read"] for one in cls.fields()}
        asked |= {name: read[name](value) for name, value in given.items() if value is not None and value != []}
        return cls(**asked)

    @classmethod
    def table(cls) -> str:
        """The options as a Markdown table, as the documents show them."""
        lines = ["| option | default | meaning |", "| --- | --- | --- |"]
        for one in cls.fields():
            shown = "" if one.metadata["default"] is None else f"`{as_toml(one.metadata['default'])}`"
            lines.append(f"| `{one.name}` | {shown} | {one.metadata['help']} |")
        return "\n".join(lines) + "\n"

    def _require(self, *needed: tuple[str, str]) -> None:
        """Refuse to do without an option; each comes with what it is called on the command line."""
        for name, what in needed:
            if getattr(self, name) is None:
                raise StudyError(f"missing {what}")

    def _make(self, *forms: tuple[str, Callable[[Any], Any], str]) -> None:
        """Give numbers one form, whoever gave them, because keys are made of their text; each with what it must be."""
        from instances.schema import quoted

        for name, form, must in forms:
            value = getattr(self, name)
            try:
                object.__setattr__(self, name, None if value is None else form(value))
            except (TypeError, ValueError, OverflowError):
                # Of infinity there is no whole number, of one of a thousand digits no float.
                raise StudyError(f"{name}: got {quoted(value)}, must be {must}") from None

    def _limit(self, *limits: tuple[str, float, float]) -> None:
        """Refuse numbers out of their range."""
        from instances.schema import quoted

        for name, least, most in limits:
            value = getattr(self, name)
            if value is not None and value < least:
                raise StudyError(f"{name}: got {value!r}, must be at least {least}")
            if value is not None and value > most:
                raise StudyError(f"{name}: got {quoted(value)}, must be at most {most:,}")


@dataclass(frozen=True, kw_only=True)
class StudyOptions(Options):
    """What a study is asked; :func:`validation.gap_study` takes these as keyword arguments."""

    problems: str | Sequence[str] | None = option(
        "Names such as aryl.reclaim, or a paper's name for all of its problems.",
        (str, list),
        annotation=list[str],
        argument=True,
    )
    heuristics: Any = option(
        "Only these: names of the catalogue, all for every one of them, or module:function; in Python also functions, "
        "or a mapping from new names to such. All of the catalogue's by default.",
        (list,),
        annotation=list[str],
        names=("--heuristic",),
    )
    sizes: Sequence[int] | Mapping[str, Sequence[int]] | None = option(
        "Sizes of the generated instances, such as 10,20, or for one problem, aryl.reclaim=10,20; the "
        "catalogue's by default.",
        (list, dict),
        annotation=list[str],
        read=_sizes,
    )
    sweep: Mapping[str, Sequence[Any]] | None = option(
        "Values of a parameter of the generators, such as spread=0.1,0.5,0.9: count instances for each, drawn from the "
        "same seeds. Several parameters: every combination. Problems that have no such parameter do without.",
        (dict,),
        annotation=list[str],
        read=_sweep,
    )
    count: int | None = option("Instances for each size and source, 10 by default.", (int,), annotation=int)
    seed: int | None = option("Seed of instances and random heuristics. Required.", (int,), annotation=int)
    instances: str | os.PathLike[str] | Sequence[Instance[Any]] | None = option(
        "Directory of instances as JSON, in Python also instances; nothing is generated then, unless count is "
        "given too.",
        (str,),
        annotation=Path,
    )
    throughputs: Paths | Mapping[str, Paths] | None = option(
        "Real throughputs, from which count more instances of each size are drawn: PATH, or PAPER=PATH where "
        "several papers read some. Of several, each with every trace.",
        (str, list, dict),
        annotation=list[str],
        read=_paths,
    )
    trace: Paths | Mapping[str, Paths] | None = option(
        "Real jobs: PATH or PAPER=PATH; several are studied alike.",
        (str, list, dict),
        annotation=list[str],
        read=_paths,
    )
    placements: Paths | Mapping[str, Paths] | None = option(
        "Who held which GPUs when, for problems about servers: PATH or PAPER=PATH.",
        (str, list, dict),
        annotation=list[str],
        read=_paths,
    )
    reader: Mapping[str, Any] | None = option(
        "How real data is read: NAME=VALUE or NAME.ENTRY=VALUE, parameters of the problems' from_trace, such as "
        "num_gpus=64 or columns.job_id=JobID. Problems that have no such parameter do without.",
        (dict,),
        annotation=list[str],
        read=pairs,
    )
    times: Sequence[float] | None = option(
        "Times of the trace, s, such as 600,1200: in place of count random draws, for each time the jobs that are "
        "active then (Gavel), or a window of each size that begins then.",
        (list,),
        annotation=list[str],
        read=_times,
    )
    real_only: bool = option(
        "Nothing but real data and given instances: no generated ones.",
        (bool,),
        annotation=bool,
        default=False,
        names=("--real-only",),
    )
    repair: bool = option(
        "Short for reader repair=true: measured curves that a problem cannot take are repaired, not refused.",
        (bool,),
        annotation=bool,
        default=False,
        names=("--repair",),
    )
    time_limit: float = option("Limit for each run, s.", (int, float), annotation=float, default=60.0)
    memory_limit: int | None = option(
        "Bytes that a run, with all that it starts, may take, such as 4e9; half of the machine's, shared by the "
        "jobs, by default.",
        (int, float),
        annotation=float,
    )
    jobs: int | None = option("Worker processes; one for each core by default.", (int,), annotation=int)
    solver: str = option("Solver of the exact models.", (str,), annotation=str, default="highs")
    verify: bool = option(
        "Find every optimum once more, by a second way, within the same limit; two that contradict each other are an "
        "oracle disagreement.",
        (bool,),
        annotation=bool,
        default=False,
        names=("--verify",),
    )
    shard: str | None = option(
        "i/n, with i from 0 to n - 1: run only that part of the study, to be joined with the others by optgap merge. "
        "Which run belongs to which part follows from what it computes.",
        (str,),
        annotation=str,
    )
    output: str | os.PathLike[str] | None = option(
        "Directory of the study; rows that it already holds for the same content are not computed again, "
        "failures excepted. Required.",
        (str,),
        annotation=Path,
        names=("-o", "--output"),
    )

    def __post_init__(self) -> None:
        self._require(("problems", "a problem"), ("seed", "--seed"), ("output", "-o DIR"))
        from instances.schema import quoted

        if self.repair:
            object.__setattr__(self, "reader", {**(self.reader or {}), "repair": True})
        self._make(
            ("seed", operator.index, "a whole number"),
            ("time_limit", float, "positive seconds"),
            ("memory_limit", int, "a number of bytes"),
        )
        if not 0 < self.time_limit < float("inf"):
            raise StudyError(f"time_limit: got {self.time_limit!r}, must be positive seconds")
        self._limit(
            ("jobs", 1, MOST_JOBS),
            ("count", 1, MOST_INSTANCES),
            ("seed", 0, 2**63 - 1),
            ("memory_limit", 2**20, 2**63 - 1),
        )
        if self.shard is not None and shard_of(self.shard) is None:
            raise StudyError(f"shard: got {quoted(self.shard)}, must be i/n with i from 0 to n - 1, such as 0/16")
        for name in ("instances", *_FILES, "output"):
            given = getattr(self, name)
            for paths in given.values() if isinstance(given, Mapping) else (given,):
                for path in paths if name in _FILES and isinstance(paths, list) else (paths,):
                    if isinstance(path, (str, os.PathLike)):
                        refuse_odd_path(name, path)
        for time in self.times or ():
            if isinstance(time, bool) or not isinstance(time, (int, float)) or not 0 <= time < float("inf"):
                raise StudyError(f"times: got {quoted(time)}, must be seconds of at least 0")

    def asked(
        self, heuristics: Mapping[str, Sequence[str]], problems: Sequence[str], sweep: Mapping[str, Sequence[Any]]
    ) -> dict[str, Any]:
        """What the metadata say was asked: every option but where it runs.

        Parameters
        ----------
        heuristics : mapping
            Names of each problem's heuristics, after whatever was given for them.
        problems : sequence of str
            Names of the problems, papers resolved.
        sweep : mapping
            Values of each parameter that is swept, as the table has them.
        """
        found = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in _OF_THIS_RUN}
        given = self.instances
        found["problems"], found["heuristics"], found["sweep"] = list(problems), dict(heuristics), dict(sweep) or None
        found["instances"] = str(given) if isinstance(given, (str, os.PathLike)) else given and "given"
        return {name: visible(value) for name, value in found.items()}


def documented(function: Callable[..., Any], kind: type[Options], *, required: Sequence[str]) -> None:
    """Give a function the parameters of its options, which tell them once.

    Parameters
    ----------
    function : callable
        Takes the first option by position, and others by name; its docstring has a place for ``{options}``.
    kind : type
    required : sequence of str
        Options that it cannot do without.
    """
    own = inspect.signature(function)
    first, *rest = [one for one in own.parameters.values() if one.kind is not one.VAR_KEYWORD]
    asked = [
        inspect.Parameter(
            one.name,
            first.kind if one.name == first.name else inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if one.name in required else one.default,
            annotation=one.type,
        )
        for one in kind.fields()
    ]
    needed = [one for one in asked if one.name in required]
    others = [one for one in asked if one.name not in required]
    function.__signature__ = own.replace(parameters=[*needed, *others, *rest])  # type: ignore[attr-defined]
    lines = [f"{one.name} : {one.type}\n        {one.metadata['help']}" for one in kind.fields()]
    function.__doc__ = (function.__doc__ or "").format(options="\n    ".join(lines))


def shard_of(text: Any) -> tuple[int, int] | None:
    """The number of a shard and of how many, from "i/n"; None where it is no such thing."""
    found = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text) if isinstance(text, str) else None
    if found is None:
        return None
    number, parts = int(found[1]), int(found[2])
    return (number, parts) if number < parts else None


def refuse_odd_path(name: str, path: str | os.PathLike[str]) -> None:
    """Refuse what cannot be the name of a file, with a zero byte in it, or half of a character."""
    try:
        odd = b"\0" in os.fsencode(path)
    except ValueError:
        odd = True
    if odd:
        raise StudyError(f"{name}: {str(path)!r}: no file can have this name")


def visible(value: Any) -> Any:
    """Names and paths without bytes that are no text, which files cannot hold."""
    if isinstance(value, Mapping):
        return {name: visible(one) for name, one in value.items()}
    if isinstance(value, list):
        return [visible(one) for one in value]
    return printable(value) if isinstance(value, str) else value


def as_toml(value: Any) -> str:
    """A default as the documents and a TOML file write it."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _from_toml(path: Path, kind: type[Options]) -> dict[str, Any]:
    """Options from a TOML file."""
    from instances.schema import nearest, quoted
    from instances.text import read_bytes

    content = read_bytes(path)
    try:
        asked = tomllib.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise StudyError(f"{path}: not valid TOML: {error}") from None
    known = {one.name: one.metadata["kinds"] for one in kind.fields()}
    for name, value in asked.items():
        if name not in known:
            raise StudyError(f"{path}: unknown option {quoted(name)}{nearest(name, known)}")
        if not isinstance(value, known[name]) or (isinstance(value, bool) and bool not in known[name]):
            kinds = " or ".join(kind.__name__ for kind in known[name])
            raise StudyError(f"{path}: {name}: got {quoted(value)}, must be {kinds}")
        for given in value.values() if name in _FILES and isinstance(value, dict) else [value]:
            for text in given if isinstance(given, list) else [given]:
                if name in _FILES and not isinstance(text, str):
                    raise StudyError(f"{path}: {name}: got {quoted(text)}, must be str")
    return asked
