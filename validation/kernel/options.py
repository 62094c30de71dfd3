"""Options of a kind of table: each told once, for Python, the command line, TOML files and the metadata.

The command line reads this module before it knows whether the library is installed as it should be, so
that it imports no other room.
"""

from __future__ import annotations

import inspect
import operator
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import Field, field, fields
from pathlib import Path
from typing import Any, NamedTuple, Self

from validation.errors import StudyError
from validation.formatting import printable

__all__ = [
    "LIMIT",
    "SECONDS",
    "SPAN",
    "Form",
    "Options",
    "as_toml",
    "documented",
    "memory_option",
    "network_option",
    "option",
    "output_option",
    "shard_of",
    "shard_option",
]

_OF_THIS_RUN = ("output", "jobs", "memory_limit", "shard", "allow_network")
"""Options that say where and on what a table is computed, not what it is."""


class Form(NamedTuple):
    """What the value of an option is made by, what it must be in words, and whether it is that once it is made."""

    made: Callable[[Any], Any]
    must: str
    allowed: Callable[[Any], bool] = lambda value: True


def _in_units(value: Any, units: Mapping[str, float], plain: str) -> float:
    """Return a number, or that of a text in one of the units; what tells none is in the plain one."""
    if not isinstance(value, str):
        return float(value)
    found = re.fullmatch(r"([0-9.]+(?:e[0-9]+)?)\s*([a-z]*)", value.strip().lower())
    if found is None or (unit := found[2] or plain) not in units:
        raise ValueError
    return float(found[1]) * units[unit]


_TIMES = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_SIZES = {
    f"{prefix}{end}": float(base**power)
    for power, prefix in enumerate(("", "k", "m", "g", "t"))
    for end, base in (("", 1000), ("b", 1000), ("ib", 1024))
}


def _span(value: Any) -> float:
    return _in_units(value, _TIMES, "s")


def _bytes(value: Any) -> int:
    return int(_in_units(value, _SIZES, "b") if isinstance(value, str) else value)


ANYTHING = Form(lambda value: value, "anything")
WHOLE = Form(operator.index, "a whole number")
SECONDS = Form(float, "positive seconds", lambda seconds: 0 < seconds < float("inf"))
LIMIT = SECONDS._replace(allowed=lambda seconds: seconds > 0)
"""Seconds that may be infinite."""
SPAN = Form(_span, "a positive time such as 60, 60s or 5m", lambda seconds: seconds > 0)
"""Seconds, or text that tells its unit."""


def option(
    help: str,
    kinds: tuple[type, ...],
    *,
    default: Any = None,
    required: str = "",
    names: tuple[str, ...] = (),
    argument: bool = False,
    metavar: str | None = None,
    paths: bool = False,
    read: Callable[[Any], Any] | None = None,
    form: Form | None = None,
    least: int | None = None,
    most: int | None = None,
) -> Any:
    """Make a field of a class of :class:`Options`.

    Parameters
    ----------
    help : str
        What it is, for the table of the documents and the help of the command line.
    kinds : tuple of type
        What a TOML file may hold for it.
    default
    required : str
        What is missing where it is not given; empty where it need not be.
    names : tuple of str
        On the command line; ``--the-name`` by default.
    argument : bool
        Whether it stands on the command line without a name.
    metavar : str, optional
        What the command line calls its value.
    paths : bool
        Whether it is a path, or a list or a mapping of paths.
    read : callable, optional
        From what the command line gives to what the option is.
    form : Form, optional
        Keys are made of the text of a value, which must be the same whoever gave it.  That of a whole number for
        options that are nothing else.
    least, most : int, optional
        Of a number.
    """
    metadata = {
        "help": help,
        "kinds": kinds,
        "required": required,
        "names": names,
        "argument": argument,
        "metavar": metavar,
        "paths": paths,
        "read": read or (lambda given: given),
        "form": form or (WHOLE if kinds == (int,) else ANYTHING),
        "least": least,
        "most": most,
    }
    return field(default=False if kinds == (bool,) else default, metadata=metadata)


def output_option(help: str, *, default: Any = None, required: str = "") -> Any:
    """Make the option of the directory for what is made."""
    return option(help, (str,), default=default, required=required, names=("-o", "--output"), paths=True)


def memory_option(run: str) -> Any:
    """How much memory each may take of what is run."""
    return option(
        f"Memory that a {run}, with all that it starts, may take: bytes, or a size such as 4GB or 500MiB; half of the "
        "machine's, shared by the jobs, by default.",
        (int, float, str),
        form=Form(_bytes, "a number of bytes, or a size such as 4GB or 500MiB"),
        least=2**20,
        most=2**63 - 1,
    )


def network_option() -> Any:
    """Whether heuristics have sockets."""
    return option(
        "Let heuristics have sockets: of the network, and of services of this machine, which may do what they cannot.",
        (bool,),
    )


def shard_option(whole: str, run: str, identity: str) -> Any:
    """Make the option of a part of a table whose runs are shared between machines."""
    return option(
        f"i/n, with i from 0 to n - 1: run only that part of {whole}, to be joined with the others by optgap merge. "
        f"Which {run} belongs to which part follows from what it {identity}.",
        (str,),
        form=Form(str, "i/n with i from 0 to n - 1, such as 0/16", lambda shard: shard_of(shard) is not None),
    )


class Options:
    """Options of a command, from its line or from TOML: a frozen class whose fields are made by :func:`option`."""

    def __post_init__(self) -> None:
        for name, value in self.checked(**vars(self)).items():
            object.__setattr__(self, name, value)

    @classmethod
    def fields(cls) -> tuple[Field[Any], ...]:
        """Return the options, in order."""
        return fields(cls)  # type: ignore[arg-type]

    @classmethod
    def given(cls, config: Path | None = None, **given: Any) -> Self:
        """Options from a TOML file and from the command line, which wins."""
        asked = _from_toml(config, cls) if config else {}
        read = {one.name: one.metadata["read"] for one in cls.fields()}
        asked |= {name: read[name](value) for name, value in given.items() if value is not None and value != []}
        return cls(**asked)

    @classmethod
    def of_call(cls, **given: Any) -> Self:
        """Make options from the keyword arguments of a call.

        Raises
        ------
        TypeError
            When there is no such option; the nearest is named.
        """
        from instances.schema import nearest

        known = [one.name for one in cls.fields()]
        for name in given:
            if name not in known:
                raise TypeError(f"unexpected keyword argument {name!r}{nearest(name, known)}")
        return cls(**given)

    def some(self, *names: str) -> dict[str, Any]:
        """Those of these names."""
        return {name: getattr(self, name) for name in names}

    @classmethod
    def checked(cls, **given: Any) -> dict[str, Any]:
        """Return some of the options in their one form.

        Raises
        ------
        StudyError
            When one is not what it must be, or is missing.
        """
        return {one.name: _checked(one, given[one.name]) for one in cls.fields() if one.name in given}

    def _asked(self, **instead: Any) -> dict[str, Any]:
        """Return what the metadata say was asked: every option but where it runs, some of them in other words."""
        found = {name: value for name, value in vars(self).items() if name not in _OF_THIS_RUN}
        return {name: _visible(value) for name, value in (found | instead).items()}


def _checked(one: Field[Any], value: Any) -> Any:
    """Return the value of an option in its one form."""
    from instances.schema import quoted

    told = one.metadata
    if value is None and one.default is None:
        if told["required"]:
            raise StudyError(f"missing {told['required']}")
        return None
    if told["paths"]:
        _refuse_odd_paths(one.name, value)
    made, must, allowed = told["form"]
    try:
        value = made(value)
    except (TypeError, ValueError, OverflowError):
        # Of infinity there is no whole number, of one of a thousand digits no float.
        raise StudyError(f"{one.name}: got {quoted(value)}, must be {must}") from None
    least, most = told["least"], told["most"]
    number = isinstance(value, (int, float))
    if number and least is not None and not value >= least:
        must = f"at least {least}"
    elif number and most is not None and value > most:
        must = f"at most {most:,}"
    elif allowed(value):
        return value
    raise StudyError(f"{one.name}: got {quoted(value)}, must be {must}")


def documented(function: Callable[..., Any], kind: type[Options]) -> None:
    """Give a function the parameters of its options, which tell them once.

    Parameters
    ----------
    function : callable
        Takes the first option by position, and others by name; its docstring has a place for ``{options}``.
    kind : type
    """
    required = [one.name for one in kind.fields() if one.metadata["required"]]
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
    """Read the number of a shard and of how many, from "i/n"; None where it is no such thing."""
    found = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text) if isinstance(text, str) else None
    if found is None:
        return None
    number, parts = int(found[1]), int(found[2])
    return (number, parts) if number < parts else None


def _refuse_odd_paths(name: str, given: Any) -> None:
    """Refuse what cannot be the name of a file, with a zero byte in it, or half of a character."""
    if isinstance(given, (str, os.PathLike)):
        try:
            odd = b"\0" in os.fsencode(given)
        except ValueError:
            odd = True
        if odd:
            raise StudyError(f"{name}: {str(given)!r}: no file can have this name")
    elif isinstance(given, (Mapping, list, tuple)):
        for one in given.values() if isinstance(given, Mapping) else given:
            _refuse_odd_paths(name, one)


def _visible(value: Any) -> Any:
    """Names and paths without bytes that are no text, which files cannot hold."""
    if isinstance(value, Mapping):
        return {name: _visible(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_visible(one) for one in value]
    return printable(value) if isinstance(value, str) else value


def as_toml(value: Any) -> str:
    """Write a default as the documents and a TOML file have it."""
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
    known = {one.name: one.metadata for one in kind.fields()}
    for name, value in asked.items():
        if name not in known:
            raise StudyError(f"{path}: unknown option {quoted(name)}{nearest(name, known)}")
        kinds, paths = known[name]["kinds"], known[name]["paths"]
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            words = " or ".join(kind.__name__ for kind in kinds)
            raise StudyError(f"{path}: {name}: got {quoted(value)}, must be {words}")
        for given in value.values() if paths and isinstance(value, dict) else [value]:
            for text in given if isinstance(given, list) else [given]:
                if paths and not isinstance(text, str):
                    raise StudyError(f"{path}: {name}: got {quoted(text)}, must be str")
    return asked
