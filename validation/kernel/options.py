"""Options of a kind of table: each told once, for Python, the command line, TOML files and the metadata.

The command line reads this module before it knows whether the library is installed as it should be, so
that it imports no other room.
"""

from __future__ import annotations

import inspect
import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, field, fields
from pathlib import Path
from typing import Any, Self

from validation.errors import StudyError
from validation.formatting import printable

__all__ = ["MOST_JOBS", "Options", "as_toml", "documented", "option", "refuse_odd_path", "shard_of"]

MOST_JOBS = 1000
"""Worker processes of a study."""
_OF_THIS_RUN = ("output", "jobs", "memory_limit", "shard")
"""Options that say where and on what a table is computed, not what it is."""


def option(
    help: str,
    kinds: tuple[type, ...],
    *,
    annotation: Any,
    default: Any = None,
    names: tuple[str, ...] = (),
    argument: bool = False,
    paths: bool = False,
    read: Callable[[Any], Any] | None = None,
) -> Any:
    """Make a field of a class of :class:`Options`.

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
    paths : bool
        Whether a list or a mapping in a TOML file must be of paths.
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
        "paths": paths,
        "read": read or (lambda given: given),
    }
    return field(default=default, metadata=metadata)


class Options:
    """Options of a command, from its line or from TOML: a frozen class whose fields are made by :func:`option`."""

    @classmethod
    def fields(cls) -> tuple[Field[Any], ...]:
        """Return the options, in order."""
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
        """Return the options as a Markdown table, as the documents show them."""
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

    def _check_shard(self) -> None:
        """Refuse what is no shard."""
        from instances.schema import quoted

        shard = getattr(self, "shard")  # noqa: B009, an option of some kinds
        if shard is not None and shard_of(shard) is None:
            raise StudyError(f"shard: got {quoted(shard)}, must be i/n with i from 0 to n - 1, such as 0/16")

    def _asked(self, **instead: Any) -> dict[str, Any]:
        """Return the metadata of what was asked: every option but where it runs, some of them in other words."""
        found = {one.name: getattr(self, one.name) for one in self.fields() if one.name not in _OF_THIS_RUN}
        return {name: _visible(value) for name, value in (found | instead).items()}


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
    """Read the number of a shard and of how many, from "i/n"; None where it is no such thing."""
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
