"""What a study is about: which instances, and which algorithms on them."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from instances.base import Instance
from instances.files import load, text_of, unknown_problem
from instances.schema import JOBS, LONGEST, nearest, quoted
from validation import catalogue
from validation.catalogue import EXACT, Heuristic
from validation.errors import CatalogueError, StudyError
from validation.formatting import printable
from validation.kernel.records import file_of
from validation.kinds.study.options import StudyOptions
from validation.kinds.study.real import choose_draws, stream
from validation.kinds.study.sweeps import Label, choose_settings

__all__ = [
    "ALL",
    "EXACT",
    "Algorithm",
    "Case",
    "choose_algorithms",
    "choose_cases",
    "choose_problems",
    "generate",
    "size_of",
]

AnyInstance = Instance[Any]

ALL = "all"
"""In place of a heuristic's name: every one of the catalogue."""


@dataclass(frozen=True, slots=True)
class Case:
    """One instance of a study, and where it comes from.

    A study has many, so that the instance is not kept: it is made again where it is needed.

    Attributes
    ----------
    origin : callable
        Makes the instance of a size and index.
    problem : str
    sense : "min" or "max"
    digest : str
        Of the instance.
    source : "generated", "trace" or "file"
    size : int
        The generator's size parameter; 0 where the data of a file do not tell it.
    index : int
        Number among the instances of this problem, source and size.
    text_hash : bytes
        SHA-256 of its JSON.
    text_bytes : int
        Length of its JSON.
    swept : mapping
        The value of each parameter that the study sweeps; None for an instance that was not generated with it.
    """

    origin: Callable[[int, int], AnyInstance]
    problem: str
    sense: str
    digest: str
    source: Literal["generated", "trace", "file"]
    size: int
    index: int
    text_hash: bytes
    text_bytes: int
    swept: Mapping[str, Label] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        instance: AnyInstance,
        origin: Callable[[int, int], AnyInstance],
        source: Literal["generated", "trace", "file"],
        size: int,
        index: int,
        swept: Mapping[str, Label],
    ) -> Case:
        """Make the case of an instance, which ``origin`` can make again."""
        text = text_of(instance).encode()
        return cls(
            origin,
            sys.intern(instance.problem),
            instance.sense,
            instance.digest,
            source,
            size,
            index,
            hashlib.sha256(text).digest(),
            len(text),
            swept,
        )

    @property
    def instance(self) -> AnyInstance:
        """The instance, made again.

        Raises
        ------
        StudyError
            When it is another one now: its file has changed, or its generator draws from elsewhere than its stream.
        """
        made = self.origin(self.size, self.index)
        if made.digest != self.digest:
            raise StudyError(
                f"{self.problem}, {self.source}, size {self.size}, number {self.index}: "
                "another instance than when the study began"
            )
        return made

    @property
    def file(self) -> str:
        """Path of its JSON below the study's directory."""
        return file_of(self.problem, self.digest)


@dataclass(frozen=True)
class Algorithm:
    """An algorithm of a study: a heuristic, or the exact solve of the formulation.

    Attributes
    ----------
    name : str
    heuristic : Heuristic, optional
        None for the exact solve.
    options : mapping
        What the result depends on besides instance and code.
    """

    name: str
    heuristic: Heuristic | None
    options: Mapping[str, Any]

    @property
    def verifies(self) -> bool:
        """Whether what the exact side finds is found once more."""
        return bool(self.options.get("verify"))


def choose_problems(problems: str | Sequence[str]) -> list[str]:
    """Names of the problems asked for, a paper standing for all of its own."""
    names = [problems] if isinstance(problems, str) else list(problems)
    if not names:
        raise StudyError("no problem is named")
    papers = {problem.split(".")[0] for problem in catalogue.CATALOGUE}
    chosen: list[str] = []
    for name in names:
        if not isinstance(name, str):
            raise StudyError(f"problems: got {quoted(name)}, must be a name")
        if name in papers:
            chosen += [problem for problem in catalogue.CATALOGUE if problem.split(".")[0] == name]
        elif name in catalogue.CATALOGUE:
            chosen.append(name)
        else:
            raise CatalogueError(unknown_problem(name, [*catalogue.CATALOGUE, *papers]))
    return list(dict.fromkeys(chosen))


def choose_algorithms(
    problems: Sequence[str],
    heuristics: str
    | Callable[..., Any]
    | Sequence[str | Callable[..., Any]]
    | Mapping[str, str | Callable[..., Any]]
    | None,
    solver: str,
    time_limit: float,
    verify: bool = False,
) -> dict[str, list[Algorithm]]:
    """Choose, for each problem, the exact solve, then the heuristics asked for.

    Raises
    ------
    CatalogueError, StudyError
        When a name is in no problem's catalogue, a function cannot be imported, or two functions
        have one name.
    """
    # What is not asked is not part of the key, so that rows of studies before stay what they are.
    exact = Algorithm(EXACT, None, {"solver": solver, "time_limit": time_limit, **({"verify": True} if verify else {})})
    if heuristics is None:
        return {
            problem: [exact, *(Algorithm(n, h, {}) for n, h in catalogue.entry(problem).heuristics.items())]
            for problem in problems
        }
    given: list[tuple[str | None, Any]]
    if isinstance(heuristics, Mapping):
        given = [*heuristics.items()]
    else:
        given = [
            (None, one) for one in ([heuristics] if isinstance(heuristics, str) or callable(heuristics) else heuristics)
        ]
    algorithms = {problem: {EXACT: exact} for problem in problems}
    for name, reference in given:
        if name is None and isinstance(reference, str) and reference == ALL:
            for problem, found in algorithms.items():
                for own, heuristic in catalogue.entry(problem).heuristics.items():
                    found.setdefault(own, Algorithm(own, heuristic, {}))
            continue
        of_catalogue = isinstance(reference, str) and ":" not in reference
        mine = [p for p in problems if not of_catalogue or reference in catalogue.entry(p).heuristics]
        for problem in mine or problems:
            own, heuristic = catalogue.heuristic(problem, reference)
            algorithm = Algorithm(str(name or own), heuristic, {})
            if printable(algorithm.name) != algorithm.name:
                raise StudyError(f"heuristics: got {algorithm.name!r}, must be a name in visible characters")
            if algorithms[problem].setdefault(algorithm.name, algorithm).heuristic != heuristic:
                raise StudyError(f"two algorithms are called {algorithm.name!r}: name them, as in {{'mine': function}}")
    return {problem: [*found.values()] for problem, found in algorithms.items()}


def choose_cases(problems: Sequence[str], options: StudyOptions) -> list[Case]:
    """Choose the instances asked for: given ones, generated ones, and ones drawn from real data."""
    return [*_without_repeats(_all_cases(problems, options))]


def _all_cases(problems: Sequence[str], options: StudyOptions) -> Iterator[Case]:
    seed, sizes, count, given = options.seed, options.sizes, options.count, options.instances
    assert seed is not None
    settings, unswept = choose_settings(problems, options.sweep), dict.fromkeys(options.sweep or ())
    if given is not None:
        yield from _given_cases(problems, given, unswept)
    if isinstance(sizes, Mapping):
        for name in sizes:
            if name not in problems:
                raise StudyError(f"sizes are given for {name!r}, which is not studied{nearest(name, problems)}")
    if not options.real_only and (given is None or count is not None):
        for problem in problems:
            for setting in settings[problem]:
                origin = partial(generate, problem, seed, options=setting.options)
                for size in _sizes_of(problem, sizes):
                    for index in range(count or 10):
                        yield Case.of(origin(size, index), origin, "generated", size, index, setting.labels)
    elif options.sweep:
        raise StudyError("sweep: nothing is generated that could be swept; give --count beside --instances")
    for problem, draws in choose_draws(problems, options).items():
        for size in [0] if draws.snapshots else _sizes_of(problem, sizes):
            for index in draws.numbers(count or 10):
                instance = draws.instance(size, index)
                yield Case.of(instance, draws.instance, "trace", size or size_of(instance), index, unswept)


def _without_repeats(cases: Iterable[Case]) -> Iterator[Case]:
    """Keep each instance once for each value that is swept: a second copy would count the same evidence twice."""
    seen: set[tuple[Label, ...]] = set()
    for case in cases:
        if (one := (case.digest, *case.swept.values())) not in seen:
            seen.add(one)
            yield case


def _given_cases(
    problems: Sequence[str], given: str | os.PathLike[str] | Sequence[AnyInstance], unswept: Mapping[str, Label]
) -> Iterator[Case]:
    if isinstance(given, (str, os.PathLike)):
        folder = Path(given)
        if not folder.is_dir():
            raise StudyError(f"instances: {folder} is not a directory")
        files = sorted(folder.rglob("*.json"))
        for file in files:
            # A pipe would be waited for.
            if not file.is_file():
                raise StudyError(f"instances: {file} is not a file")
        members: Sequence[Path | AnyInstance] = files
        where = str(folder)
    else:
        members, where = list(given), "the instances given"
    numbered: dict[str, dict[tuple[int, int], Path | AnyInstance]] = {}
    counts: dict[tuple[str, int], int] = {}
    for member in members:
        instance = _given(member)
        if instance.problem not in problems:
            continue
        size = size_of(instance)
        index = counts.setdefault((instance.problem, size), 0)
        counts[instance.problem, size] += 1
        mine = numbered.setdefault(instance.problem, {})
        mine[size, index] = member
        yield Case.of(instance, partial(_numbered, mine), "file", size, index, unswept)
    if not counts:
        raise StudyError(f"{where}: no instance of {', '.join(problems)}")


def _given(member: Path | AnyInstance) -> AnyInstance:
    return load(member) if isinstance(member, Path) else member


def _numbered(members: Mapping[tuple[int, int], Path | AnyInstance], size: int, index: int) -> AnyInstance:
    return _given(members[size, index])


def size_of(instance: AnyInstance) -> int:
    """Return the size that an instance would have been generated with; 0 where its data do not tell.

    Of several numbers, such as servers of each type, the greatest counts.
    """
    size = getattr(instance, catalogue.entry(instance.problem).size, None)
    return int(np.max(size)) if size is not None else instance.dims.get(JOBS, 0)


def _sizes_of(problem: str, sizes: Sequence[int] | Mapping[str, Sequence[int]] | None) -> Sequence[int]:
    if isinstance(sizes, Mapping):
        sizes = sizes.get(problem)
    wanted = catalogue.entry(problem).sizes if sizes is None else sizes
    if isinstance(wanted, str) or not isinstance(wanted, Sequence | np.ndarray):
        raise StudyError(f"sizes: got {wanted!r}, must be a list of whole numbers")
    for size in wanted:
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
            raise StudyError(f"sizes: got {size!r}, must be a whole number of at least 1")
    return [int(size) for size in wanted]


def generate(
    problem: str, seed: int, size: int, index: int = 0, options: Mapping[str, Any] | None = None
) -> AnyInstance:
    """Instance number ``index`` of a size, the same for the same seed whatever else is generated.

    Parameters
    ----------
    problem : str
    seed, size, index : int
    options : mapping, optional
        What else the generator is given.

    Raises
    ------
    StudyError
        When there is no instance of that size, or none that can be held.
    """
    entry = catalogue.entry(problem)
    given = {entry.size: size, **(options or {})}
    what = f"cannot generate {problem} with {', '.join(f'{name} = {quoted(value)}' for name, value in given.items())}"
    if size > LONGEST:
        raise StudyError(f"{what}: must be at most {LONGEST:,}")
    try:
        return entry.generate(stream(problem, seed, size, index), **given)
    except MemoryError:
        raise StudyError(f"{what}: it needs more memory than there is") from None
    except ValueError as error:
        raise StudyError(f"{what}: {error}") from error
    except (LookupError, ArithmeticError) as error:
        if not options:
            raise
        # A generator need not check all that it can be given.
        raise StudyError(f"{what}: {type(error).__name__}: {error}") from error
