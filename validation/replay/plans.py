"""Checks of a plan before a setting carries it out."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar, cast

from instances.base import Instance, Plan
from validation.errors import ReplayError

__all__ = ["acceptable", "accepted"]

P = TypeVar("P", bound=Plan)


def acceptable(instance: Instance[P], plan: Plan, *, but: Collection[str] = ()) -> bool:
    """Return whether a plan keeps all rules but those that the setting can live without."""
    return all(broken.rule in but for broken in instance.violations(cast(P, plan)))


def accepted(instance: Instance[P], plan: Plan, *, but: Collection[str] = ()) -> P:
    """Return the plan, which can be carried out.

    Raises
    ------
    ReplayError
        When it breaks a rule that is not among ``but``.
    """
    answer = cast(P, plan)
    for broken in instance.violations(answer):
        if broken.rule not in but:
            raise ReplayError(f"{instance.problem}: a plan that cannot be carried out: {broken}")
    return answer
