"""What a study of replays is asked: every option once, for Python, the command line, TOML files and the metadata.

As :mod:`validation.kernel.options`, this module imports no other room.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from validation.errors import StudyError
from validation.kernel.options import MOST_JOBS, Options, option, refuse_odd_path
from validation.reader_options import pairs

__all__ = ["POISSON", "ReplayOptions", "Some"]

POISSON = "poisson"
"""In place of a trace: jobs that are drawn, and arrive at random times."""

Some: TypeAlias = int | Literal["all"]
"""So many of them, or all."""

MOST = 10_000
"""Windows, seeds or tie-breaks."""


def _some(name: str) -> Callable[[str], Some]:
    """Return a reader of ``20`` or ``all``."""

    def read(given: str) -> Some:
        if given == "all":
            return "all"
        try:
            return int(given)
        except ValueError:
            raise StudyError(f"--{name}: got {given!r}, must be a whole number or all") from None

    return read


def _setting(given: Sequence[str]) -> dict[str, Any]:
    return pairs(given, "--setting")


@dataclass(frozen=True, kw_only=True)
class ReplayOptions(Options):
    """Options of a study of replays; :func:`validation.replay_study` takes these as keyword arguments."""

    traces: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = option(
        f'Job tables, or "{POISSON}" for jobs that are drawn and arrive at random.',
        (str, list),
        annotation=list[str],
        argument=True,
    )
    problem: str | None = option(
        "What the decision makers decide, such as gavel.max_min_fairness. Required.", (str,), annotation=str
    )
    policies: Any = option(
        "Decision makers: exact, names of the catalogue or module:function; in Python also functions, or a mapping "
        "from new names to such. The others are compared with exact where it is among them, else with the first. "
        "Required.",
        (list,),
        annotation=list[str],
        names=("--policy",),
    )
    setting: Mapping[str, Any] | None = option(
        "The cluster and what the jobs of the trace are made into: NAME=VALUE, such as num_gpus=64; an unknown name is "
        "answered with all that there are.",
        (dict,),
        annotation=list[str],
        read=_setting,
    )
    reader: Mapping[str, Any] | None = option(
        "How the traces are read: NAME=VALUE or NAME.ENTRY=VALUE, such as columns.job_id=JobID or skip_bad_rows=true; "
        "traces whose reader has no such parameter do without.",
        (dict,),
        annotation=list[str],
        read=pairs,
    )
    throughputs: str | os.PathLike[str] | None = option(
        "Measured throughputs, where the setting reads some.", (str,), annotation=Path
    )
    windows: int = option(
        "Windows of each trace, one after the other, each replayed by itself; of drawn jobs, as many draws.",
        (int,),
        annotation=int,
        default=1,
    )
    length: int | None = option("Jobs of each window; all that there are by default.", (int,), annotation=int)
    seeds: int = option(
        "How often what is drawn for a window is drawn anew: seed, seed + 1 and so on.",
        (int,),
        annotation=int,
        default=1,
    )
    seed: int = option("The first of the seeds.", (int,), annotation=int, default=0)
    ties: int = option(
        "Tie-breaks of each replay: in the order of arrival, then by seeds. From two on their spread stands beside "
        "each effect.",
        (int,),
        annotation=int,
        default=1,
    )
    restart: float = option("What it costs a job to be started again, s.", (int, float), annotation=float, default=0.0)
    migration: float = option("What it costs a job to be moved, s.", (int, float), annotation=float, default=0.0)
    round_length: float | None = option(
        "Decide at the ends of rounds of so many seconds; at every arrival and end by default.",
        (int, float),
        annotation=float,
    )
    gaps: Some = option(
        "Of how many decisions of each replay the optimum is found beside, a sample: a number, or all.",
        (int, str),
        annotation=str,
        default=20,
        read=_some("gaps"),
    )
    offline: float = option(
        "Limit for what hindsight could do with the jobs of each window and seed, s for each program; with 0 there are "
        "bounds by argument alone.",
        (int, float),
        annotation=float,
        default=10.0,
    )
    keep: Some = option(
        "How many instances of each replay are kept as JSON, a sample: a number, or all.",
        (int, str),
        annotation=str,
        default=0,
        read=_some("keep"),
    )
    time_limit: float = option(
        "Limit for each answer of the exact model or of a function of yours, s.",
        (int, float),
        annotation=float,
        default=60.0,
    )
    replay_limit: float | None = option("Limit for each replay, s; none by default.", (int, float), annotation=float)
    memory_limit: int | None = option(
        "Bytes that a replay, with all that it starts, may take, such as 4e9; half of the machine's, shared by the "
        "jobs, by default.",
        (int, float),
        annotation=float,
    )
    jobs: int | None = option("Worker processes; one for each core by default.", (int,), annotation=int)
    solver: str = option("Solver of the exact models.", (str,), annotation=str, default="highs")
    shard: str | None = option(
        "i/n, with i from 0 to n - 1: run only that part of the replays, to be joined with the others by optgap merge. "
        "Which replay belongs to which part follows from what it is.",
        (str,),
        annotation=str,
    )
    output: str | os.PathLike[str] | None = option(
        "Directory of the replays; those that it already holds for the same content are not run again, failures "
        "excepted. Required.",
        (str,),
        annotation=Path,
        names=("-o", "--output"),
    )

    def __post_init__(self) -> None:
        self._require(("traces", "a trace"), ("problem", "--problem"), ("policies", "--policy"), ("output", "-o DIR"))
        given = self.traces
        traces = [given] if isinstance(given, (str, os.PathLike)) else [*(given or ())]
        if not traces:
            raise StudyError("missing a trace")
        for name, paths in (("traces", traces), ("throughputs", [self.throughputs]), ("output", [self.output])):
            for path in paths:
                if path is not None:
                    refuse_odd_path(name, path)
        object.__setattr__(self, "traces", list(dict.fromkeys(os.fspath(trace) for trace in traces)))
        whole, seconds = "a whole number", "a number of seconds"
        self._make(
            *((name, operator.index, whole) for name in ("windows", "length", "seeds", "seed", "ties")),
            *(
                (name, float, seconds)
                for name in ("restart", "migration", "round_length", "offline", "time_limit", "replay_limit")
            ),
            *((name, _whole_or_all, "a whole number or all") for name in ("gaps", "keep")),
            ("memory_limit", int, "a number of bytes"),
        )
        for name in ("time_limit", "replay_limit", "round_length"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise StudyError(f"{name}: got {value!r}, must be positive seconds")
        for name in ("restart", "migration", "offline"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise StudyError(f"{name}: got {getattr(self, name)!r}, must be seconds of at least 0")
        for name in ("gaps", "keep"):
            if isinstance(getattr(self, name), int):
                self._limit((name, 0, 2**63 - 1))
        self._limit(
            *((name, 1, MOST) for name in ("windows", "seeds", "ties")),
            ("length", 1, 2**63 - 1),
            ("seed", 0, 2**63 - 1 - MOST),
            ("jobs", 1, MOST_JOBS),
            ("memory_limit", 2**20, 2**63 - 1),
        )
        self._check_shard()

    def asked(self, policies: Sequence[str]) -> dict[str, Any]:
        """Return the metadata of what was asked: every option but where it runs.

        Parameters
        ----------
        policies : sequence of str
            Names of the decision makers, after whatever was given for them.
        """
        given = self.throughputs
        return self._asked(policies=list(policies), throughputs=None if given is None else os.fspath(given))


def _whole_or_all(value: Any) -> Some:
    return "all" if value == "all" else operator.index(value)
