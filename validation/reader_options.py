"""Options of readers by name, taken from a function's signature, in words as in TOML.

``--reader NAME=VALUE`` on the command line and the table ``[reader]`` of a TOML file name parameters of a problem's
``from_trace``, or of the reader of a format; their types are those of the annotations, and nothing is listed twice.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from validation.errors import StudyError

__all__ = ["is_list", "lacking", "pairs", "parameters", "plain_number", "typed", "words_of"]

_SOURCES = ("throughputs", "trace", "placements")
"""Parameters for what is read, not for how it is read."""


def parameters(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the options of a function beside what it reads, with their types: its keyword-only arguments.

    Those that a :class:`typing.TypedDict` declares are among them.
    """
    made = getattr(function, "func", function)
    function_of = inspect.unwrap(getattr(made, "__func__", made))
    found: dict[str, Any] = {}
    for one in inspect.signature(function).parameters.values():
        hint = _evaluated(one.annotation, function_of)
        if one.kind is one.VAR_KEYWORD:
            # Unpack[Choice]; of other keyword arguments nothing is known.
            found |= {name: kind for choice in get_args(hint) for name, kind in get_type_hints(choice).items()}
        elif one.kind is one.KEYWORD_ONLY and one.name not in _SOURCES:
            found[one.name] = hint
    return found


def lacking(function: Callable[..., Any], /, *arguments: Any, **given: Any) -> str:
    """Return the first argument that a function takes and is not given; empty where none is.

    Raises
    ------
    TypeError
        When it is given one that it does not take.
    """
    signature = inspect.signature(function)
    bound = signature.bind_partial(*arguments, **given).arguments
    needed = (
        name
        for name, one in signature.parameters.items()
        if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    )
    return next((name for name in needed if name not in bound), "")


def _evaluated(annotation: Any, function: Callable[..., Any]) -> Any:
    """Return a type from its annotation, which may be text; anything where nobody can tell."""
    if annotation is inspect.Parameter.empty:
        return Any
    try:
        return eval(annotation, function.__globals__) if isinstance(annotation, str) else annotation
    except NameError:
        return Any


def pairs(given: Sequence[str], option: str = "--reader") -> dict[str, Any]:
    """Return ``NAME=VALUE`` as a mapping; ``NAME.ENTRY=VALUE`` is an entry of a mapping, as in TOML.

    Raises
    ------
    StudyError
        When one is no such pair, or two say the same.
    """
    from instances.schema import quoted

    found: dict[str, Any] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name:
            raise StudyError(f"{option}: got {quoted(one)}, must be NAME=VALUE, or NAME.ENTRY=VALUE")
        name, dot, entry = name.partition(".")
        place = found.setdefault(name, {}) if dot else found
        key = entry if dot else name
        if not isinstance(place, dict) or key in place:
            raise StudyError(f"{option}: {one.partition('=')[0]} is given twice")
        place[key] = value
    return found


def typed(given: Mapping[str, Any], known: Mapping[str, Any], what: str, option: str = "reader") -> dict[str, Any]:
    """Return options as a function takes them.

    Parameters
    ----------
    given : mapping
        Name to value; text is read as the type of the parameter says.
    known : mapping
        Name to type, as :func:`parameters` gives them.
    what, option : str
        What takes them, and the option by which they are given, for messages.

    Raises
    ------
    StudyError
        When there is no such option, or a value is not of its type; the message names it.
    """
    # The command line comes as far as its own messages where another package's `instances` is in the way.
    from instances.schema import nearest, quoted

    made = {}
    for name, value in given.items():
        if name not in known:
            takes = ", ".join(f"{one} ({words_of(kind)})" for one, kind in known.items()) or "none"
            raise StudyError(f"{option}: {what} has no option {quoted(name)}{nearest(name, known)}; it takes {takes}")
        try:
            made[name] = _converted(value, known[name])
        except (ValueError, OverflowError):
            # Of infinity there is no whole number, of one of hundreds of digits no float.
            raise StudyError(
                f"{option}: {name} of {what}: got {quoted(value)}, must be {words_of(known[name])}"
            ) from None
    return made


def _members(kind: Any) -> list[Any]:
    """Return the types of a union but for None; else the type."""
    if get_origin(kind) is Annotated:
        return _members(get_args(kind)[0])
    if get_origin(kind) in (Union, types.UnionType):
        return [member for one in get_args(kind) if one is not type(None) for member in _members(one)]
    return [kind]


def is_list(kind: Any) -> bool:
    """Return whether an option of a type takes several values at once."""
    return any(get_origin(one) is Sequence for one in _members(kind))


def _converted(value: Any, kind: Any) -> Any:
    """Convert a value to a type; raise a ``ValueError`` where it is none."""
    members = _members(kind)
    if len(members) > 1:
        for one in members:
            try:
                return _converted(value, one)
            except (ValueError, OverflowError):
                pass
        raise ValueError
    (kind,) = members
    origin = get_origin(kind) or kind
    if origin is Any:
        return value
    if isinstance(origin, type) and issubclass(origin, Mapping) and isinstance(value, Mapping):
        return {str(name): _converted(one, get_args(kind)[1]) for name, one in value.items()}
    if origin is Sequence and not isinstance(value, Mapping):
        parts = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
        return [_converted(one, get_args(kind)[0]) for one in (parts if isinstance(parts, Sequence) else [parts])]
    if not isinstance(value, (str, int, float)):
        import numpy as np

        value = value.item() if isinstance(value, np.generic) else value
    if origin is str and isinstance(value, str):
        return value
    if origin is bool:
        named = {"true": True, "false": False}
        value = named.get(value.strip().lower()) if isinstance(value, str) else value
        if isinstance(value, bool):
            return value
    if origin in (int, float) and isinstance(value, (int, float, str)) and not isinstance(value, bool):
        if isinstance(value, str) and not plain_number(value):
            raise ValueError
        return origin(value) if not isinstance(value, float) or origin is float else _whole(value)
    raise ValueError


def plain_number(text: str) -> bool:
    """Return whether a text may be a number to everybody: Python reads digits of other scripts, and 1_0 as 10."""
    return text.isascii() and "_" not in text


def _whole(value: float) -> int:
    if not value.is_integer():
        raise ValueError
    return int(value)


def words_of(kind: Any) -> str:
    """Return the name of a value of a type, in words."""
    members = _members(kind)
    if len(members) > 1:
        return " or ".join(dict.fromkeys(words_of(one) for one in members))
    (kind,) = members
    origin = get_origin(kind) or kind
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"ENTRY={words_of(get_args(kind)[1])} for each entry"
    if origin is Sequence:
        return f"a list of {words_of(get_args(kind)[0]).removeprefix('a ')}s, as in A,B"
    return {int: "a whole number", float: "a number", bool: "true or false", str: "text"}.get(origin, "anything")
