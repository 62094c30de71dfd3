"""Hypothesis's strategies, imported when one is made: that takes longer than importing the whole catalogue."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hypothesis.strategies import *  # noqa: F403
    from hypothesis.strategies import DrawFn as DrawFn
    from hypothesis.strategies import composite as composite
else:

    def composite(function):
        """Return a composite strategy, as Hypothesis's own decorator does."""

        @functools.cache
        def made():
            from hypothesis.strategies import composite

            return composite(function)

        @functools.wraps(function)
        def strategy(*given, **options):
            return made()(*given, **options)

        own = inspect.signature(function)
        # Without the function that draws, which Hypothesis gives.
        strategy.__signature__ = own.replace(parameters=[*own.parameters.values()][1:])
        return strategy

    def __getattr__(name: str) -> Any:
        from hypothesis import strategies

        return getattr(strategies, name)
