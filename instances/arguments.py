"""Arguments of generators: declared in their signatures as fields are, and checked when they are given.

A generator says what a number may be in the annotation, and :func:`checked` refuses any other by its name, before
anything is drawn::

    @checked
    def generate(rng, *, num_jobs: Count = 20, elastic: Fraction = 0.3) -> ElasticAllocation: ...
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Annotated, Any, TypeVar, Unpack, cast, get_args, get_origin, get_type_hints

from instances.base import InstanceError
from instances.schema import LONGEST, Scalar

__all__ = ["AtLeast0", "Count", "Fraction", "Positive", "checked", "declared"]

Count = Annotated[int, Scalar(int, minimum=1, maximum=LONGEST)]
"""A number of something, at least 1."""
Fraction = Annotated[float, Scalar(float, minimum=0, maximum=1)]
"""From 0 to 1."""
AtLeast0 = Annotated[float, Scalar(float, minimum=0)]
"""A finite number of at least 0."""
Positive = Annotated[float, Scalar(float, above=0)]
"""A finite number above 0."""

F = TypeVar("F", bound=Callable[..., Any])


def checked(make: F) -> F:
    """Check the declared arguments of a generator.

    Raises
    ------
    InstanceError
        By what it returns, when an argument is not what its declaration says; the message names it.
    """

    @functools.wraps(make)
    def made(*args: Any, **given: Any) -> Any:
        known = declared(make)
        for name in given.keys() & known.keys():
            scalar, optional = known[name]
            if not (optional and given[name] is None):
                try:
                    given[name] = scalar.read(given[name], {})
                except ValueError as error:
                    raise InstanceError(f"{name}: {error}") from None
        return make(*args, **given)

    return cast(F, made)


@functools.cache
def declared(make: Callable[..., Any]) -> dict[str, tuple[Scalar, bool]]:
    """Return the declared arguments of a generator, those of a ``TypedDict`` too, and whether each may be None."""
    found = {}
    hints = get_type_hints(make, include_extras=True)
    for options in [get_args(hint)[0] for hint in hints.values() if get_origin(hint) is Unpack]:
        hints |= get_type_hints(options, include_extras=True)
    for name, hint in hints.items():
        members = [hint] if get_origin(hint) is Annotated else get_args(hint)
        for one in members:
            if get_origin(one) is Annotated:
                found[name] = get_args(one)[1], one is not hint
    return found
