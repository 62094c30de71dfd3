"""Instances of a study that are drawn from real data: which files, which options of their readers, which times."""

from __future__ import annotations

import functools
import itertools
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from instances.base import Instance, InstanceError
from instances.data.jobs import DoubtfulData
from instances.schema import nearest, quoted
from validation import catalogue
from validation.errors import StudyError
from validation.kinds.study.options import Paths, StudyOptions
from validation.reader_options import lacking, parameters, typed
from validation.sources import called

__all__ = ["Draws", "choose_draws", "stream"]


def stream(problem: str, seed: int, size: int, index: int) -> np.random.Generator:
    """Make the stream that instance number ``index`` of a size is drawn from."""
    return np.random.default_rng([seed, zlib.crc32(problem.encode()), size, index])


@dataclass(frozen=True)
class Draws:
    """The instances of a problem that real data give.

    Attributes
    ----------
    problem : str
    seed : int
    reader : "from_trace", "snapshot" or "from_placements"
        The function of the problem's entry that draws.
    files : sequence of mapping
        Each with the paths or tables that it reads: one after the other is drawn from.
    options : mapping
        Of the function that draws.
    times : sequence of float
        Of the trace, s; none where windows are random.
    """

    problem: str
    seed: int
    reader: str
    files: Sequence[Mapping[str, Any]]
    options: Mapping[str, Any]
    times: Sequence[float]

    @property
    def snapshots(self) -> bool:
        """Whether an instance is all jobs that are active at a time, so that it has no size to be asked for."""
        return self.reader == "snapshot"

    def numbers(self, count: int) -> range:
        """List the numbers of the instances of each size: so many draws, or one for each time, of each of the files."""
        return range(len(self.files) * (len(self.times) or count))

    def instance(self, size: int, index: int) -> Instance[Any]:
        """Instance number ``index`` of a size; with several files, those of the same draw follow each other."""
        entry = catalogue.entry(self.problem)
        number, which = divmod(index, len(self.files))
        given = {**self.files[which], **self.options}
        if self.times:
            given["time"] = self.times[number]
        draw: Callable[..., Instance[Any]] = getattr(entry, self.reader)
        if not self.snapshots:
            draw = functools.partial(draw, stream(self.problem, self.seed, size, number))
            given[entry.size] = size
        try:
            with warnings.catch_warnings():
                # What was repaired stands in the instance's origin, which the report shows.
                warnings.simplefilter("ignore")
                warnings.simplefilter("default", DoubtfulData)
                return draw(**given)
        except InstanceError:
            raise
        except ValueError as error:
            raise StudyError(
                f"cannot draw {self.problem} from {' and '.join(called([*self.files[which].values()]))}: {error}"
            ) from error


def choose_draws(problems: Sequence[str], options: StudyOptions) -> dict[str, Draws]:
    """Choose what is drawn for each problem of which real data are given.

    Raises
    ------
    StudyError
        When a paper reads no real data, or no problem takes an option; the message names it.
    """
    given = {name: _by_paper(getattr(options, name), problems, name) for name in _READERS}
    readers: dict[str, str] = {}
    files: dict[str, list[dict[str, Any]]] = {}
    for problem in problems:
        entry, paper = catalogue.entry(problem), problem.split(".")[0]
        for reader in dict.fromkeys(_READERS.values()):
            names = [name for name, of in _READERS.items() if of == reader and paper in given[name]]
            if names and getattr(entry, reader) is not None:
                at_times = reader == "from_trace" and options.times and entry.snapshot is not None
                readers[problem] = "snapshot" if at_times else reader
                paths = [[(name, path) for path in given[name][paper]] for name in names]
                files[problem] = [dict(chosen) for chosen in itertools.product(*paths)]
    for name, value in (("reader", options.reader), ("times", options.times), ("real_only", options.real_only)):
        if value and not readers and not (name == "real_only" and options.instances is not None):
            raise StudyError(f"{name}: there is no real data to read, give --throughputs and --trace")
    functions = {problem: getattr(catalogue.entry(problem), reader) for problem, reader in readers.items()}
    taken = _taken(options.reader or {}, functions)
    draws = {}
    for problem, function in functions.items():
        snapshots = readers[problem] == "snapshot"
        if options.times and "time" not in parameters(function):
            raise StudyError(f"times: {problem} knows no time of its trace")
        extra: dict[str, Any] = {"time": 0.0} if options.times else {}
        extra |= {} if snapshots else {catalogue.entry(problem).size: 1}
        stand_in = () if snapshots else (None,)
        try:
            missing = lacking(function, *stand_in, **files[problem][0], **taken[problem], **extra)
        except TypeError as error:
            raise StudyError(f"real data of {problem}: {error}") from None
        if missing:
            given_as = f"needs {missing}, too: --{missing} PATH"
            what = given_as if missing in _READERS else f"missing a required argument: {missing!r}"
            raise StudyError(f"real data of {problem}: {what}")
        assert options.seed is not None
        draws[problem] = Draws(
            problem, options.seed, readers[problem], files[problem], taken[problem], options.times or ()
        )
    return draws


_READERS = {"throughputs": "from_trace", "trace": "from_trace", "placements": "from_placements"}
"""Which function of an entry reads what an option names."""


def _taken(given: Mapping[str, Any], readers: Mapping[str, Callable[..., Any]]) -> dict[str, dict[str, Any]]:
    """Return, for each problem, the options that its reader takes, as it takes them."""
    known = {problem: parameters(function) for problem, function in readers.items()}
    for name in given:
        for problem in readers:
            elsewhere = {catalogue.entry(problem).size: "--sizes", "time": "--times"}
            if name in elsewhere and name in known[problem]:
                raise StudyError(f"reader: {name} of {problem} is what {elsewhere[name]} says")
        if not any(name in options for options in known.values()):
            # Whoever is first says what there is.
            problem = next(iter(readers))
            typed({name: given[name]}, known[problem], problem)
    return {
        problem: typed({name: one for name, one in given.items() if name in options}, options, problem)
        for problem, options in known.items()
    }


def _by_paper(given: Paths | Mapping[str, Paths] | None, problems: Sequence[str], option: str) -> dict[str, list[Any]]:
    """Paper to paths or tables; those alone belong to the one paper studied that reads real data."""
    if given is None:
        return {}
    papers = list(
        dict.fromkeys(p.split(".")[0] for p in problems if getattr(catalogue.entry(p), _READERS[option]) is not None)
    )
    if not isinstance(given, Mapping):
        if not papers:
            raise StudyError(f"{option}: {' and '.join(problems)} cannot read real data")
        if len(papers) > 1:
            raise StudyError(f"{option}: {' and '.join(papers)} read real data: name the paper, as in {papers[0]}=PATH")
        given = {papers[0]: given}
    found = {}
    for paper, paths in given.items():
        if paper not in papers:
            raise StudyError(f"{option}: no problem studied reads real data of {quoted(paper)}{nearest(paper, papers)}")
        several = paths if isinstance(paths, list) else [paths]
        found[paper] = [*dict(zip(called(several), several, strict=True)).values()]
    return found
