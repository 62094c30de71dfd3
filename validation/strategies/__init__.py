"""Hypothesis strategies for instances: ``validation.strategies.<paper>.<problem>(...)``.

They construct valid instances rather than filter, and put small, exact numbers first, so that a
counterexample can be checked by hand.  Once the distribution is installed,
``hypothesis.strategies.from_type(Reclaim)`` finds them through an entry point.
"""

from __future__ import annotations

import importlib
from typing import Any

from hypothesis import strategies as st

from instances.base import Instance
from instances.files import instance_type, problems


def strategy(problem: str) -> st.SearchStrategy[Instance[Any]]:
    """The default strategy for instances of ``problem``.

    Raises
    ------
    InstanceError
        When there is no such problem.
    """
    instance_type(problem)
    paper, name = problem.split(".")
    found: st.SearchStrategy[Instance[Any]] = getattr(importlib.import_module(f"validation.strategies.{paper}"), name)()
    return found


def register() -> None:
    """Make ``from_type`` know every instance class; Hypothesis calls this when it is imported."""
    for problem in problems():

        def resolve(_: type[Any], problem: str = problem) -> st.SearchStrategy[Any]:
            return strategy(problem)

        st.register_type_strategy(instance_type(problem), resolve)
