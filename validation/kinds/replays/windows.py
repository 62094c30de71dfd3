"""Which jobs a replay is of: windows of a trace, or jobs that are drawn and arrive at random."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from instances.base import InstanceError
from instances.data.lines import Table
from validation.errors import ReplayError, StudyError
from validation.kinds.replays.options import POISSON, ReplayOptions
from validation.reader_options import parameters, typed
from validation.replay import settings
from validation.replay.engine import Setting, checked
from validation.replay.workloads import in_order, read_jobs, reader_of
from validation.settings import Settings

__all__ = ["Workload", "readings", "workload"]

_OWN = ("problem", "rng", "num_jobs")
"""Parameters of settings that are not told by their names."""


@dataclass(frozen=True)
class Workload:
    """A trace, and what a setting makes of it.

    Attributes
    ----------
    name : str
        As tables have it.
    trace : str or Table
        Path of a job table, a table that was read, or "poisson".
    problem : str
    length : int, optional
        Jobs of a window.
    options : mapping
        Of the function that makes the setting.
    reading : mapping
        Options of the trace's reader.
    digests : mapping
        Hashes of the files that are read.
    """

    name: str
    trace: str | Table
    problem: str
    length: int | None
    options: Mapping[str, Any]
    reading: Mapping[str, Any]
    digests: Mapping[str, str]

    @property
    def told(self) -> dict[str, Any]:
        """What a replay of it depends on: the content of what is read, wherever it is."""
        options = {name: self.digests.get(name, value) for name, value in self.options.items()}
        trace = self.digests.get("trace", POISSON)
        return {"trace": trace, "length": self.length, "options": options, "reading": dict(self.reading)}

    @property
    def round_length(self) -> float | None:
        """Length of the rounds of a setting that was told to decide in rounds, s."""
        return self.options.get("round_length")

    @property
    def files(self) -> list[str]:
        """Paths that are read."""
        read = (self.trace, self.options.get("throughputs"))
        return [path for path in read if isinstance(path, str) and path != POISSON]

    def counted(self) -> dict[str, int]:
        """Count the rows of the trace, those passed over, and the jobs that are left."""
        if self.trace == POISSON:
            return {}
        jobs = read_jobs(self.trace, **self.reading)
        reading = jobs.attrs["reading"]
        return {"rows": reading["rows"], "skipped": reading["skipped"], "jobs": len(jobs)}

    def refuse_missing(self, window: int, found: int) -> None:
        """Refuse a window that the trace, of so many jobs, does not have.

        Raises
        ------
        StudyError
        """
        if self.trace == POISSON:
            return
        if self.length is None and window:
            raise StudyError(f"windows: one window of {self.name} is all of it: give the length of a window")
        if self.length is not None and (window + 1) * self.length > found:
            raise StudyError(
                f"{self.name} has {found:,} jobs, which are {found // self.length:,} windows of {self.length:,}: "
                f"there is no window {window}"
            )

    def setting(self, window: int, seed: int) -> Setting:
        """Return the cluster and the jobs of a window, where what is drawn is drawn by a seed."""
        made, rng = settings.settings_of(self.problem), np.random.default_rng([seed, window])
        if self.trace == POISSON:
            assert made.generate is not None
            size = {} if self.length is None else {"num_jobs": self.length}
            return _made(made.generate, rng, **size, **self.options)
        jobs = read_jobs(self.trace, **self.reading)
        if self.length is not None:
            jobs = in_order(jobs.iloc[window * self.length : (window + 1) * self.length])
        drawing = {"rng": rng} if "rng" in inspect.signature(made.from_jobs).parameters else {}
        return _made(made.from_jobs, jobs, **drawing, **self.options)


def _made(function: Callable[..., Any], *given: Any, **options: Any) -> Setting:
    """Return the setting that a function makes, which may be the user's.

    Raises
    ------
    ReplayError
        When it raises, or returns no setting.
    """
    name = getattr(function, "__name__", "from_jobs")
    try:
        made = function(*given, **options)
    except (ReplayError, StudyError, InstanceError):
        raise
    except Exception as error:
        raise ReplayError(f"{name}: {type(error).__name__}: {error}") from error
    return checked(made, name)


def readings(options: ReplayOptions) -> dict[str | Table, dict[str, Any]]:
    """Return, for each trace, the options that its reader takes, as it takes them.

    Raises
    ------
    StudyError
        When no trace's reader takes one, or a value is not of its type.
    """
    assert isinstance(options.traces, list)
    given = options.reader or {}
    known = {trace: {} if trace == POISSON else parameters(reader_of(trace)) for trace in options.traces}
    for name in given:
        if not any(name in takes for takes in known.values()):
            # Whoever is first says what there is.
            typed({name: given[name]}, next(iter(known.values())), _name(next(iter(known))))
    return {
        trace: typed({name: one for name, one in given.items() if name in takes}, takes, _name(trace))
        for trace, takes in known.items()
    }


def _name(trace: str | Table) -> str:
    """Return the name of a trace in messages."""
    return trace if isinstance(trace, str) else trace.name


def workload(trace: str | Table, made: Settings, options: ReplayOptions, reading: Mapping[str, Any]) -> Workload:
    """Prepare what is replayed of a trace, with the options of its reader.

    Raises
    ------
    StudyError
        When a file cannot be read, or the setting has no such option.
    """
    drawn = trace == POISSON
    makes, paper = made.generate if drawn else made.from_jobs, made.name
    if makes is None:
        raise StudyError(f"{trace}: {paper} draws no jobs: give a trace")
    takes = inspect.signature(makes).parameters
    kinds = parameters(makes)
    known = {name: kind for name, kind in kinds.items() if name not in _OWN}
    given, digests = typed(options.setting or {}, known, paper, "setting"), dict[str, str]()
    if "problem" in kinds:
        given["problem"] = options.problem
    if options.round_length is not None and "round_length" in known:
        given["round_length"] = options.round_length
    if options.throughputs is not None:
        if "throughputs" not in takes:
            raise StudyError(f"throughputs: {paper} reads none")
        given["throughputs"] = options.throughputs
        digests["throughputs"] = _digest(options.throughputs)
    if not drawn:
        digests["trace"] = _digest(trace)
    for name, one in takes.items():
        if one.kind is one.KEYWORD_ONLY and one.default is one.empty and name not in (*given, "num_jobs"):
            how = "--throughputs PATH" if name == "throughputs" else f"--setting {name}=..."
            raise StudyError(f"{paper} needs {name}: {how}")
    name = Path(trace).name if isinstance(trace, str) else trace.name
    return Workload(name, trace, str(options.problem), options.length, given, reading, digests)


def _digest(source: Any) -> str:
    """Hash of a table, of a file, or of all files in a folder."""
    if isinstance(source, Table):
        return source.sha256
    digest, path = hashlib.sha256(), Path(source)
    try:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file != path and not file.is_file():
                continue
            digest.update(file.name.encode(errors="surrogateescape") + file.read_bytes())
    except OSError as error:
        raise StudyError(f"cannot read {path}: {error.strerror}") from None
    return digest.hexdigest()
