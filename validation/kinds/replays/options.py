"""What a study of replays is asked: every option once, for Python, the command line, TOML files and the metadata.

As :mod:`validation.kernel.options`, this module imports no other room.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from validation.errors import StudyError
from validation.kernel.options import (
    SECONDS,
    Form,
    Options,
    memory_option,
    network_option,
    option,
    output_option,
    shard_option,
)
from validation.reader_options import pairs
from validation.sources import called, held

if TYPE_CHECKING:
    import pandas as pd

    Trace: TypeAlias = str | os.PathLike[str] | pd.DataFrame
    Traces: TypeAlias = Trace | Sequence[Trace] | Mapping[str, Trace]
else:
    Trace = Traces = Any
"""A path, or a DataFrame."""

__all__ = ["POISSON", "ReplayOptions", "Some", "Traces"]

POISSON = "poisson"
"""In place of a trace: jobs that are drawn, and arrive at random times."""

Some: TypeAlias = int | Literal["all"]
"""So many of them, or all."""

MOST = 10_000
"""Windows, seeds or tie-breaks."""


def _some(name: str, help: str, default: Some) -> Any:
    """Make an option of how many, such as ``20``, or ``all``."""

    def read(given: str) -> Some:
        try:
            return _whole_or_all(given if given == "all" else int(given))
        except ValueError:
            raise StudyError(f"--{name}: got {given!r}, must be a whole number or all") from None

    form = Form(_whole_or_all, "a whole number or all")
    return option(help, (int, str), default=default, read=read, form=form, least=0, most=2**63 - 1)


def _whole_or_all(value: Any) -> Some:
    return "all" if value == "all" else operator.index(value)


def _cost(help: str, default: float = 0.0) -> Any:
    """Seconds, of which there may be none."""
    form = Form(float, "seconds of at least 0", lambda seconds: 0 <= seconds < float("inf"))
    return option(help, (int, float), default=default, form=form)


def _setting(given: Sequence[str]) -> dict[str, Any]:
    return pairs(given, "--setting")


@dataclass(frozen=True, kw_only=True)
class ReplayOptions(Options):
    """Options of a study of replays; :func:`validation.replay_study` takes these as keyword arguments."""

    traces: Traces | None = option(
        f'Job tables, or "{POISSON}" for jobs that are drawn and arrive at random; in Python also DataFrames, or a '
        "mapping from names to these.",
        (str, list),
        required="a trace",
        argument=True,
        paths=True,
    )
    problem: str | None = option(
        "What the decision makers decide, such as gavel.max_min_fairness. Required.", (str,), required="--problem"
    )
    policies: Any = option(
        "Decision makers: exact, names of the catalogue, module:function or file.py:function, of which one that is "
        "called decide gets plain JSON and decides online; in Python also functions, or a mapping from new names to "
        "such. The others are compared with exact where it is among them, else with the first. Required.",
        (list,),
        required="--policy",
        names=("--policy",),
    )
    setting: Mapping[str, Any] | None = option(
        "The cluster and what the jobs of the trace are made into: NAME=VALUE, such as num_gpus=64; an unknown name is "
        "answered with all that there are.",
        (dict,),
        read=_setting,
    )
    reader: Mapping[str, Any] | None = option(
        "How the traces are read: NAME=VALUE or NAME.ENTRY=VALUE, such as columns.job_id=JobID or skip_bad_rows=true; "
        "traces whose reader has no such parameter do without.",
        (dict,),
        read=pairs,
    )
    throughputs: Trace | None = option(
        "Measured throughputs, where the setting reads some; in Python also a DataFrame.", (str,), paths=True
    )
    windows: int = option(
        "Windows of each trace, one after the other, each replayed by itself; of drawn jobs, as many draws.",
        (int,),
        default=1,
        least=1,
        most=MOST,
    )
    length: int | None = option("Jobs of each window; all that there are by default.", (int,), least=1, most=10_000_000)
    seeds: int = option(
        "How often what is drawn for a window is drawn anew: seed, seed + 1 and so on.",
        (int,),
        default=1,
        least=1,
        most=MOST,
    )
    seed: int = option("The first of the seeds.", (int,), default=0, least=0, most=2**63 - 1 - MOST)
    ties: int = option(
        "Tie-breaks of each replay: in the order of arrival, then by seeds. From two on their spread stands beside "
        "each effect.",
        (int,),
        default=1,
        least=1,
        most=MOST,
    )
    restart: float = _cost("What it costs a job to be started again, s.")
    migration: float = _cost("What it costs a job to be moved, s.")
    round_length: float | None = option(
        "Decide at the ends of rounds of so many seconds; at every arrival and end by default.",
        (int, float),
        form=SECONDS,
    )
    gaps: Some = _some(
        "gaps", "Of how many decisions of each replay the optimum is found beside, a sample: a number, or all.", 20
    )
    offline: float = _cost(
        "Limit for what hindsight could do with the jobs of each window and seed, s for each program; with 0 there are "
        "bounds by argument alone.",
        10.0,
    )
    keep: Some = _some("keep", "How many instances of each replay are kept as JSON, a sample: a number, or all.", 0)
    time_limit: float = option(
        "Limit for each answer of the exact model or of a function of yours, s.",
        (int, float),
        default=60.0,
        form=SECONDS,
    )
    replay_limit: float | None = option("Limit for each replay, s; none by default.", (int, float), form=SECONDS)
    memory_limit: int | None = memory_option("replay")
    allow_network: bool = network_option()
    jobs: int | None = option("Worker processes; one for each core by default.", (int,), least=1, most=1000)
    solver: str = option("Solver of the exact models.", (str,), default="highs")
    shard: str | None = shard_option("the replays", "replay", "is")
    output: str | os.PathLike[str] | None = output_option(
        "Directory of the replays; those that it already holds for the same content are not run again, failures "
        "excepted. Required.",
        required="-o DIR",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        given = held(self.traces)
        if isinstance(given, Mapping):
            for name, trace in given.items():
                if isinstance(trace, str):
                    raise StudyError(f"traces: {name!r} names a path, which has a name: give the path alone")
            given = [replace(trace, name=name) for name, trace in given.items()]
        traces = given if isinstance(given, list) else [given]
        if not traces:
            raise StudyError("missing a trace")
        object.__setattr__(self, "traces", [*dict(zip(called(traces), traces, strict=True)).values()])
        object.__setattr__(self, "throughputs", held(self.throughputs))

    def asked(self, policies: Sequence[str]) -> dict[str, Any]:
        """Return the metadata of what was asked: every option but where it runs.

        Parameters
        ----------
        policies : sequence of str
            Names of the decision makers, after whatever was given for them.
        """
        return self._asked(policies=list(policies), traces=called(self.traces), throughputs=called(self.throughputs))
