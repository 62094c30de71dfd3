"""What is done with a plan before a setting carries it out: checks, and numbers of servers that let jobs stay."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar, cast

import numpy as np

from instances.base import Instance, Plan
from instances.schema import FloatArray
from validation.errors import ReplayError

__all__ = ["acceptable", "accepted", "renumbered"]

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


def renumbered(before: FloatArray, after: FloatArray) -> FloatArray:
    """Return alike servers of ``after`` in an order in which jobs keep GPUs: the pair that shares most first."""
    servers = after.shape[1]
    kept = np.minimum(before[:, :, None], after[:, None, :]).sum(axis=0)
    place: dict[int, int] = {}
    for pair in np.argsort(-kept, axis=None, kind="stable").tolist():
        old, new = divmod(pair, servers)
        if kept[old, new] == 0:
            break
        if old not in place and new not in place.values():
            place[old] = new
    others = iter([new for new in range(servers) if new not in place.values()])
    numbered: FloatArray = after[:, [place[old] if old in place else next(others) for old in range(servers)]]
    return numbered
