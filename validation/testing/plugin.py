"""Entry point that Hypothesis calls when it is imported, so that ``from_type`` knows every instance class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["register"]


def register() -> None:
    """Give ``hypothesis.strategies.from_type`` a strategy for every instance class."""
    # Hypothesis may be half imported when it loads this module.
    from hypothesis import strategies as st

    from instances.files import instance_type, problems

    for problem in problems():

        def resolve(_: type[Any], problem: str = problem) -> SearchStrategy[Any]:
            from validation.testing.strategies import strategy

            return strategy(problem)

        st.register_type_strategy(instance_type(problem), resolve)
