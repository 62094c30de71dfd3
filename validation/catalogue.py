"""The catalogue: every problem with its instances, model and heuristics.

The entry of a problem stands in ``validation/problems/<paper>/<problem>.py`` and is found there by the
problem's name; what other packages add comes in through :func:`register`.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from instances import files, outside
from instances.base import Instance, InstanceError
from instances.schema import nearest, quoted
from validation import settings
from validation.errors import CatalogueError, StudyError
from validation.settings import Settings
from validation.signatures import as_heuristic

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from formulations.engine.protocol import Formulation
    from formulations.worst_case.proving import WorstCaseModel
    from validation.kernel.isolation import Reply
    from validation.kinds.promises import Promise

EXACT = "exact"
"""Name of the algorithm, and of the decision maker, that solves a problem's model to proven optimality."""

IMPORT_SECONDS = 60.0
"""Time limit for importing a module of the user's, s."""

READY = ("formulations", "networkx", "pandas")
"""Modules that a heuristic given by a reference may ask to have ready."""

__all__ = [
    "CATALOGUE",
    "EXACT",
    "Catalogue",
    "Entry",
    "Heuristic",
    "Imported",
    "Rescaling",
    "entry",
    "heuristic",
    "import_object",
    "import_tried",
    "load",
    "named",
    "register",
    "takes_rng",
]


@dataclass(frozen=True)
class Heuristic:
    """A heuristic and its promises.

    Attributes
    ----------
    function : callable
        ``function(instance, **options) -> Plan``; one that takes ``rng`` is random.
    optimal : bool
        Whether its plans are promised to be optimal.
    declines : bool
        Whether it may return None on instances that have a feasible plan.
    infeasible_because : str
        Why its plans may break rules, where the paper's algorithm lets them; empty otherwise.
    promises : tuple of Promise
        What else is promised of it, and checked (:mod:`validation.kinds.promises`).
    imports : tuple of str
        Modules that it imports when it is called.  A study has them ready, so that its time is its own.
    worst_case : WorstCaseModel, optional
        What its worst case is proven by, of a heuristic from outside the library; those of the library's own are in
        ``formulations.worst_case``.
    """

    function: Callable[..., Any]
    optimal: bool = False
    declines: bool = False
    infeasible_because: str = ""
    promises: tuple[Promise, ...] = ()
    imports: tuple[str, ...] = ()
    worst_case: WorstCaseModel | None = None

    @property
    def name(self) -> str:
        """The function's name."""
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    @functools.cached_property
    def random(self) -> bool:
        """True if it takes ``rng``; looked up once, because that takes longer than many an answer."""
        return takes_rng(self.function)


def named(*heuristics: Heuristic | Callable[..., Any]) -> dict[str, Heuristic]:
    """Return heuristics by the names of their functions; a function alone is one without special promises."""
    found = [one if isinstance(one, Heuristic) else Heuristic(one) for one in heuristics]
    return {one.name: one for one in found}


@dataclass(frozen=True)
class Rescaling:
    """A unit: multiplying these fields by c multiplies every plan's value by c ** ``power``.

    A field whose columns have units of their own is named with its column, as in ``configs[0]``.
    """

    fields: tuple[str, ...]
    power: int


@dataclass(frozen=True)
class Entry:
    """One problem.

    Attributes
    ----------
    title : str
        What the problem is, in a line.
    source : str
        Paper and section.
    instance : type
        The instance class; it names the problem.
    generate : callable
        ``generate(rng, *, ...) -> Instance``.
    size : str
        The parameter of ``generate`` that ``--sizes`` sets.
    sizes : tuple of int
        Its values in a study that names none.
    heuristics : mapping
        Name to heuristic; :func:`named` makes it.
    from_trace : callable, optional
        ``from_trace(rng, *, throughputs, trace, <size>) -> Instance``: an instance of the given
        size from files of real data.
    snapshot : callable, optional
        ``snapshot(*, throughputs, trace, time) -> Instance``: the jobs of a trace that are active at a time.
    from_placements : callable, optional
        ``from_placements(rng, *, placements, <size>, time) -> Instance``: what ran or came at a time, of a table of
        placements.
    symmetric : tuple of str
        Dimensions whose numbering means nothing, so that the optimum does not depend on it.
    rescalings : tuple of Rescaling
        Units that can be changed.
    enlarge : callable, optional
        ``enlarge(instance)`` gives it more resources, so that its optimum gets no worse.
    relaxation : callable, optional
        ``relaxation(instance)`` is the bound that the paper measures its heuristic against; studies
        then show how much of a heuristic's distance to it is the bound's own slack.
    strategy : callable, optional
        ``strategy(**sizes)`` is a Hypothesis strategy for small instances; without one, it is derived
        from the declared fields.
    wide : mapping
        Sizes of ``strategy`` beyond small ones, from which checks draw too; a function makes one when it is wanted.
        Without a strategy, those of :func:`validation.testing.strategies.derived`.
    formulation : Formulation, optional
        Of a problem from outside the library; its own are ``formulations.<paper>.<problem>``.
    """

    title: str
    source: str
    instance: type[Instance[Any]]
    generate: Callable[..., Instance[Any]]
    size: str
    sizes: tuple[int, ...]
    heuristics: Mapping[str, Heuristic] = field(default_factory=dict)
    from_trace: Callable[..., Instance[Any]] | None = None
    snapshot: Callable[..., Instance[Any]] | None = None
    from_placements: Callable[..., Instance[Any]] | None = None
    symmetric: tuple[str, ...] = ()
    rescalings: tuple[Rescaling, ...] = ()
    enlarge: Callable[[Any], Instance[Any]] | None = None
    relaxation: Callable[[Any], float] | None = None
    strategy: Callable[..., SearchStrategy[Any]] | None = None
    wide: Mapping[str, Any] = field(default_factory=dict)
    formulation: Formulation | None = None

    @property
    def problem(self) -> str:
        """Name of the problem, <paper>.<problem>."""
        return self.instance.problem


class Catalogue(Mapping[str, Entry]):
    """Every problem's entry by its name, the library's own and registered ones; each is imported when asked for."""

    def __init__(self) -> None:
        self._added: dict[str, Entry] = {}

    def __getitem__(self, problem: str) -> Entry:
        if problem in self._added:
            return self._added[problem]
        if files.is_own(problem):
            return _own_entry(problem)
        outside.load(problem)
        return self._added[problem]

    def __iter__(self) -> Iterator[str]:
        return iter(files.problems())

    def __len__(self) -> int:
        return len(files.problems())

    def add(self, entry: Entry) -> None:
        """Add or replace an entry."""
        self._added[entry.problem] = entry


def _own_entry(problem: str) -> Entry:
    """Return the entry beside the library's own modules; a missing file is named in the error."""
    name = f"validation.problems.{problem}"
    try:
        found: Entry = importlib.import_module(name).ENTRY
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            raise
        paper = f"validation/problems/{problem.split('.')[0]}/__init__.py"
        missing = f"{name.replace('.', '/')}.py" if error.name == name else paper
        raise CatalogueError(f"{problem} has no entry in the catalogue: {missing} is missing") from None
    return found


CATALOGUE = Catalogue()
"""All problems, by name: ``CATALOGUE["aryl.reclaim"]`` is an :class:`Entry`."""


def register(added: Entry | Heuristic | Callable[..., Any] | Any, *, problem: str | None = None) -> None:
    """Add a problem, a heuristic, a strategy, a claim or settings of replays from outside the library.

    What is registered is found by the library's functions and by ``optgap`` like its own.  Registering
    under the same name again replaces what was there, so that a notebook's cell can be run twice.

    Parameters
    ----------
    added : Entry, Heuristic, callable, SearchStrategy, Claim or Settings
        An :class:`Entry` with a ``formulation`` is a problem.  A :class:`Heuristic`, or a function from
        instance to plan, is a heuristic of ``problem``.  A Hypothesis strategy is what hunts of ``problem``
        draw from, and what checks draw from beside the generator and the declared fields.  :class:`Settings` of
        :mod:`validation.replay` are what ``optgap replay`` runs jobs in.
    problem : str, optional
        For a heuristic and a strategy.

    Raises
    ------
    CatalogueError
        When ``problem`` is missing or unknown, or an entry without a formulation is registered.
    InstanceError
        When the problem's name is not a name, or one of the library's own.
    """
    if isinstance(added, Entry):
        if added.formulation is None:
            raise CatalogueError(f"{added.problem}: an entry from outside must bring its formulation")
        # Pyomo is imported only where something is solved.
        from formulations.engine import protocol

        files.register(added.instance)
        protocol.register(added.problem, added.formulation)
        CATALOGUE.add(added)
        return
    from hypothesis.strategies import SearchStrategy

    from validation.claims.claim import Claim, add

    if isinstance(added, Claim):
        add(added)
        return
    if isinstance(added, Settings):
        for one in added.problems:
            entry(one)
        settings.add(added)
        return
    if not isinstance(added, SearchStrategy) and not isinstance(added, Heuristic) and not callable(added):
        raise CatalogueError(
            f"got {type(added).__name__}, must be an entry, a heuristic, a strategy, a claim or settings"
        )
    if problem is None:
        raise CatalogueError(f"name the problem that {added!r} belongs to: problem=...")
    known = entry(problem)
    if isinstance(added, SearchStrategy):
        CATALOGUE.add(replace(known, strategy=lambda: added, wide={}))
    else:
        CATALOGUE.add(replace(known, heuristics={**known.heuristics, **named(added)}))


def entry(problem: str) -> Entry:
    """Return the catalogue's entry for ``problem``.

    Raises
    ------
    CatalogueError
    """
    try:
        return CATALOGUE[problem]
    except KeyError:
        try:
            files.instance_type(problem)
        except InstanceError as error:
            raise CatalogueError(str(error)) from None
        raise CatalogueError(f"{problem} has no entry in the catalogue: register one") from None


def heuristic(problem: str, given: str | Callable[..., Any] | Heuristic) -> tuple[str, Heuristic]:
    """Return the name and heuristic of whatever a user may give for one.

    Parameters
    ----------
    problem : str
    given : str, callable or Heuristic
        A name of the catalogue, "module:function" or "file.py:function", the function itself, or a
        :class:`Heuristic` that declares what is known of it.  One of which nothing is declared may not return None.

    Raises
    ------
    CatalogueError
        When the problem has no heuristic of that name; the message lists those there are.
    StudyError
        When a reference cannot be imported.
    """
    known = entry(problem).heuristics
    if isinstance(given, Heuristic):
        return given.name, given
    if isinstance(given, str):
        if ":" in given:
            return given, _imported(given)
        if given not in known:
            raise CatalogueError(
                f"{problem} has no heuristic {quoted(given)}{nearest(given, known)}; {_those_of(known)}"
            )
        return given, known[given]
    if not callable(given):
        raise StudyError(f"heuristics: got {quoted(given)}, must be a name or a function")
    mine = Heuristic(given)
    return mine.name, mine


@dataclass(frozen=True)
class Imported:
    """A function of the user's, by its reference; its module is imported where it is called, not before.

    Attributes
    ----------
    reference : str
        "module:function" or "file.py:function".
    random : bool
        Whether it takes ``rng``.
    """

    reference: str
    random: bool

    def __call__(self, instance: Any, **options: Any) -> Any:
        found = import_object(self.reference)
        return (found.function if isinstance(found, Heuristic) else found)(instance, **options)

    @property
    def __signature__(self) -> inspect.Signature:
        names = ["instance", "rng"] if self.random else ["instance"]
        return inspect.Signature([inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names])

    @property
    def __name__(self) -> str:
        return self.reference


def _imported(reference: str) -> Heuristic:
    """Return the heuristic of a reference; it is looked at in another process, because an import runs any code."""
    from validation.kernel.isolation import Apart

    with Apart(_looked_at) as apart:
        answer = apart.ask(reference, seconds=IMPORT_SECONDS)
    found = _well(reference, answer)
    known = found["known"] or {"imports": ["pandas"] if found["pandas"] else []}
    # None of its processes should have to import so much of its own; but what else a module of the user's names would
    # run in the process that judges it.
    known["imports"] = tuple(one for one in known["imports"] if one in READY)
    return Heuristic(Imported(reference, bool(found["random"])), **known)


def _well(reference: str, answer: Reply) -> dict[str, Any]:
    """Return the answer of a process that imported a module of the user's; raise where that went wrong."""
    from validation.kernel.isolation import plain

    found = answer.content or {"error": answer.reason}
    if "error" in found:
        raise StudyError(f"cannot import {reference!r}: {plain(str(found['error']))}")
    if "refused" in found:
        raise StudyError(plain(str(found["refused"])))
    return found


def _looked_at(reference: str) -> dict[str, Any]:
    """Return the facts about a function that are needed before it is called."""
    try:
        found = import_object(reference)
    except StudyError as error:
        return {"refused": str(error)}
    known = None
    if isinstance(found, Heuristic):
        # A model does not travel; who needs it imports the module itself.
        told = [one.name for one in fields(found) if one.name not in ("function", "worst_case")]
        known = {name: getattr(found, name) for name in told}
        found = found.function
    if not callable(found):
        place, _, name = reference.rpartition(":")
        return {"refused": f"{place!r} has no function {name!r}, but a {type(found).__name__} of that name"}
    return {"random": takes_rng(found), "known": known, "pandas": "pandas" in sys.modules}


def takes_rng(function: Callable[..., Any]) -> bool:
    """Return whether a heuristic draws from a stream that it is given."""
    try:
        return "rng" in inspect.signature(function).parameters
    except ValueError:  # A function of a library in C that does not tell its parameters.
        return False


def _those_of(known: Mapping[str, Heuristic]) -> str:
    return f"there are {', '.join(known)}, or module:function" if known else "there are none; give module:function"


LOADED: dict[str, None] = {}
"""References that :func:`load` was given, in order; for a file its module."""


def load(reference: str) -> None:
    """Import a module that registers problems, heuristics, claims or strategies.

    Parameters
    ----------
    reference : str
        "my_module", which registers when it is imported; or "my_module:problem", an :class:`Entry` or a
        claim that is registered then.

    Raises
    ------
    StudyError
        When it cannot be imported.
    """
    found = import_tried(reference)
    place, colon, name = reference.partition(":")
    if colon:
        register(found)
    LOADED[f"{Path(place).stem}{colon}{name}" if place.endswith(".py") else reference] = None


def import_tried(reference: str) -> Any:
    """Import what a reference names in this process, once it has been imported in another one.

    A module that ends the process when it is imported, or never lets go of it, does so there.  What it prints
    while it is imported goes nowhere, so that a command's output is the command's own.

    Raises
    ------
    StudyError
    """
    from validation.kernel.isolation import Apart

    with Apart(_imports) as apart:
        answer = apart.ask(reference, seconds=IMPORT_SECONDS)
    _well(reference, answer)
    with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing):
        return import_object(reference)


def _imports(reference: str) -> dict[str, Any]:
    try:
        import_object(reference)
    except StudyError as error:
        return {"refused": str(error)}
    return {"imported": True}


def import_object(reference: str) -> Any:
    """Import what "module:name", "file.py:name", or "module" alone names.

    The current directory is searched last, so that a file of the user's, such as ``json.py``, takes no other's
    place; "file.py" is that file, whatever its name.  A function that a public task asks for, by its name, is returned
    as a heuristic (:mod:`validation.signatures`).

    Raises
    ------
    StudyError
    """
    place, colon, name = reference.partition(":")
    try:
        module = _module_in(Path(os.path.abspath(place))) if place.endswith(".py") else _module(place)
    except (Exception, SystemExit) as error:
        what = f"it exits: {error}" if isinstance(error, SystemExit) else error
        raise StudyError(f"cannot import {place!r} for {reference!r}: {what}") from None
    if not colon:
        return module
    if not hasattr(module, name):
        raise StudyError(f"{place!r} has no {name!r}{nearest(name, vars(module))}")
    return as_heuristic(name, getattr(module, name))


def _module(name: str) -> ModuleType:
    _search_last(os.getcwd())
    return importlib.import_module(name)


def _module_in(file: Path) -> ModuleType:
    """Return the module of a file, under the file's name; modules that it imports may stand beside it."""
    _search_last(str(file.parent))
    name = file.stem
    known = sys.modules.get(name)
    if known is not None:
        if getattr(known, "__file__", None) != str(file):
            raise StudyError(f"there is a module {name!r} already: call the file something else")
        return known
    found = importlib.util.spec_from_file_location(name, file)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    try:
        found.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _search_last(folder: str) -> None:
    if folder not in sys.path:
        sys.path.append(folder)
