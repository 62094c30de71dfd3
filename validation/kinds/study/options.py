"""What a study is asked: every option once, for Python, the command line, TOML files and the metadata.

The command line reads this module before it knows whether the library is installed as it should be, so
that it imports no other room.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from validation.errors import StudyError
from validation.kernel.options import (
    SECONDS,
    Options,
    memory_option,
    network_option,
    option,
    output_option,
    shard_option,
)
from validation.reader_options import pairs, plain_number
from validation.sources import called, held

if TYPE_CHECKING:
    from instances.base import Instance

__all__ = ["Paths", "StudyOptions", "whole_numbers"]

if TYPE_CHECKING:
    import pandas as pd

    Paths: TypeAlias = str | os.PathLike[str] | pd.DataFrame | Sequence[str | os.PathLike[str] | pd.DataFrame]
else:
    Paths = Any
"""One path or DataFrame, or several."""


_SOURCES = ("throughputs", "trace", "placements")
"""Options that are real data."""


def _sizes(given: Sequence[str]) -> list[int] | dict[str, list[int]]:
    """``10,20`` or ``aryl.reclaim=10,20`` (for each problem named)."""
    named = {}
    plain: list[int] = []
    for item in given:
        problem, equals, numbers = item.rpartition("=")
        if equals:
            named[problem] = whole_numbers([numbers])
        else:
            plain += whole_numbers([item])
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


def whole_numbers(given: Sequence[str]) -> list[int]:
    """``10,20``.

    Raises
    ------
    StudyError
        When these are no whole numbers.
    """
    from instances.schema import quoted

    try:
        if not all(map(plain_number, given)):
            raise ValueError
        return [int(part) for text in given for part in text.split(",")]
    except ValueError:
        raise StudyError(f"--sizes: got {quoted(','.join(given))}, must be whole numbers such as 10,20") from None


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


def _files(help: str) -> Any:
    """Real data, by paths."""
    return option(help, (str, list, dict), paths=True, read=_paths)


@dataclass(frozen=True, kw_only=True)
class StudyOptions(Options):
    """Options of a study; :func:`validation.gap_study` takes these as keyword arguments."""

    problems: str | Sequence[str] | None = option(
        "Names such as aryl.reclaim, or a paper's name for all of its problems.",
        (str, list),
        required="a problem",
        argument=True,
    )
    heuristics: Any = option(
        "Only these: names of the catalogue, all for every one of them, or module:function; in Python also functions, "
        "or a mapping from new names to such. All of the catalogue's by default.",
        (list,),
        names=("--heuristic",),
    )
    sizes: Sequence[int] | Mapping[str, Sequence[int]] | None = option(
        "Sizes of the generated instances, such as 10,20, or for one problem, aryl.reclaim=10,20; the "
        "catalogue's by default.",
        (list, dict),
        read=_sizes,
    )
    sweep: Mapping[str, Sequence[Any]] | None = option(
        "Values of a parameter of the generators, such as spread=0.1,0.5,0.9: count instances for each, drawn from the "
        "same seeds. Several parameters: every combination. Problems that have no such parameter do without.",
        (dict,),
        read=_sweep,
    )
    count: int | None = option("Instances for each size and source, 10 by default.", (int,), least=1, most=1_000_000)
    seed: int | None = option(
        "Seed of instances and random heuristics. Required.", (int,), required="--seed", least=0, most=2**63 - 1
    )
    instances: str | os.PathLike[str] | Sequence[Instance[Any]] | None = option(
        "Directory of instances as JSON, in Python also instances; nothing is generated then, unless count is "
        "given too.",
        (str,),
        paths=True,
    )
    throughputs: Paths | Mapping[str, Paths] | None = _files(
        "Real throughputs, from which count more instances of each size are drawn: PATH, or PAPER=PATH where "
        "several papers read some; in Python also DataFrames. Of several, each with every trace."
    )
    trace: Paths | Mapping[str, Paths] | None = _files(
        "Real jobs: PATH or PAPER=PATH, in Python also DataFrames; several are studied alike."
    )
    placements: Paths | Mapping[str, Paths] | None = _files(
        "Who held which GPUs when, for problems about servers: PATH or PAPER=PATH, in Python also DataFrames."
    )
    reader: Mapping[str, Any] | None = option(
        "How real data is read: NAME=VALUE or NAME.ENTRY=VALUE, parameters of the problems' from_trace, such as "
        "num_gpus=64 or columns.job_id=JobID. Problems that have no such parameter do without.",
        (dict,),
        read=pairs,
    )
    times: Sequence[float] | None = option(
        "Times of the trace, s, such as 600,1200: in place of count random draws, for each time the jobs that are "
        "active then (Gavel), or a window of each size that begins then.",
        (list,),
        read=_times,
    )
    real_only: bool = option("Nothing but real data and given instances: no generated ones.", (bool,))
    repair: bool = option(
        "Short for reader repair=true: measured curves that a problem cannot take are repaired, not refused.",
        (bool,),
    )
    time_limit: float = option("Limit for each run, s.", (int, float), default=60.0, form=SECONDS)
    memory_limit: int | None = memory_option("run")
    allow_network: bool = network_option()
    jobs: int | None = option("Worker processes; one for each core by default.", (int,), least=1, most=1000)
    solver: str = option("Solver of the exact models.", (str,), default="highs")
    verify: bool = option(
        "Find every optimum once more, by a second way, within the same limit; two that contradict each other are an "
        "oracle disagreement.",
        (bool,),
    )
    shard: str | None = shard_option("the study", "run", "computes")
    output: str | os.PathLike[str] | None = output_option(
        "Directory of the study; rows that it already holds for the same content are not computed again, "
        "failures excepted. Required.",
        required="-o DIR",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        from instances.schema import quoted

        for name in _SOURCES:
            object.__setattr__(self, name, held(getattr(self, name)))
        if self.repair:
            object.__setattr__(self, "reader", {**(self.reader or {}), "repair": True})
        for time in self.times or ():
            if isinstance(time, bool) or not isinstance(time, (int, float)) or not 0 <= time < float("inf"):
                raise StudyError(f"times: got {quoted(time)}, must be seconds of at least 0")

    def asked(
        self, heuristics: Mapping[str, Sequence[str]], problems: Sequence[str], sweep: Mapping[str, Sequence[Any]]
    ) -> dict[str, Any]:
        """Return the metadata of what was asked: every option but where it runs.

        Parameters
        ----------
        heuristics : mapping
            Names of each problem's heuristics, after whatever was given for them.
        problems : sequence of str
            Names of the problems, papers resolved.
        sweep : mapping
            Values of each parameter that is swept, as the table has them.
        """
        given = self.instances
        return self._asked(
            problems=list(problems),
            heuristics=dict(heuristics),
            sweep=dict(sweep) or None,
            **{name: called(getattr(self, name)) for name in _SOURCES},
            instances=str(given) if isinstance(given, (str, os.PathLike)) else given and "given",
        )
