"""Questions to heuristics: apart, in a process that nothing else uses, or in this one.

What crosses from the other process is the data of a plan (:mod:`validation.kernel.isolation`); who judges it makes the
plan anew.
"""

from __future__ import annotations

import functools
import importlib
import time
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from instances.base import Instance, Plan, PlanError
from instances.schema import declarations
from validation.catalogue import Heuristic
from validation.kernel.isolation import Apart, describe, plain
from validation.kernel.judging import Answer, Asked, judge

__all__ = ["Asking", "answer", "answered", "ask", "ask_here", "call"]

AnyInstance = Instance[Any]


class Asking:
    """A heuristic in a process of its own; a random one draws from a stream of seed and instance alone.

    Parameters
    ----------
    heuristic : Heuristic
    seed : int
    memory : int, optional
        Bytes above which it is stopped.

    Notes
    -----
    For one instance, :func:`ask`.  Asked of several, the heuristic is called in one process as long as
    that lives, so that what it keeps there is its own affair.  To be used as a context.
    """

    def __init__(self, heuristic: Heuristic, seed: int, *, memory: int | None = None) -> None:
        for module in heuristic.imports:
            importlib.import_module(module)
        self.heuristic = heuristic
        # The function reaches a forked process as it is, so that it need not be picklable.
        self.apart = Apart(functools.partial(answered, heuristic, seed), memory=memory)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.apart.close()

    def ask(self, instance: AnyInstance, *, seconds: float) -> Asked:
        """Ask for a plan for an instance, for at most ``seconds``."""
        reply = self.apart.ask(instance, seconds=seconds)
        plan, reason = _plan_of(instance, reply.content) if reply.content is not None else (None, reply.reason)
        return Asked(plan, reply.seconds, plain(reason))

    def answer(self, instance: AnyInstance, *, seconds: float) -> Answer:
        """Ask for a plan for an instance, for at most ``seconds``, and judge it."""
        return judge(instance, self.ask(instance, seconds=seconds), declines=self.heuristic.declines)


def ask(instance: AnyInstance, heuristic: Heuristic, seed: int, *, seconds: float, memory: int | None = None) -> Asked:
    """Ask a heuristic for a plan for one instance, in a process that nothing else uses."""
    with Asking(heuristic, seed, memory=memory) as asking:
        return asking.ask(instance, seconds=seconds)


def answer(
    instance: AnyInstance, heuristic: Heuristic, seed: int, *, seconds: float, memory: int | None = None
) -> Answer:
    """Ask a heuristic for a plan for one instance, in a process that nothing else uses, and judge it."""
    with Asking(heuristic, seed, memory=memory) as asking:
        return asking.answer(instance, seconds=seconds)


def ask_here(instance: AnyInstance, heuristic: Heuristic, rng: np.random.Generator) -> Asked:
    """Ask a heuristic for a plan in this process, for code that is trusted, or that runs apart with all of this."""
    began = time.perf_counter()
    try:
        plan = call(instance, heuristic, rng)
        seconds = time.perf_counter() - began
        if plan is None or type(plan) is instance.plan_type:
            return Asked(plan, seconds)
        made, reason = _plan_of(instance, _data_of(instance.plan_type, plan))
    except (Exception, SystemExit) as error:
        return Asked(None, time.perf_counter() - began, describe(error))
    return Asked(made, seconds, plain(reason))


def call(instance: AnyInstance, heuristic: Heuristic, rng: np.random.Generator | None) -> Any:
    """Call a heuristic, which may return anything; a random one draws from ``rng``."""
    return heuristic.function(instance, **({"rng": rng} if heuristic.random else {}))


def answered(heuristic: Heuristic, seed: int, instance: AnyInstance) -> dict[str, Any]:
    """Return a heuristic's answer as data: the declared fields of its plan."""
    rng = np.random.default_rng([seed, int(instance.digest[:16], 16)]) if heuristic.random else None
    # Looked up before the heuristic has its hands on the instance.
    kind = instance.plan_type
    return _data_of(kind, call(instance, heuristic, rng))


def _data_of(kind: type[Plan], plan: Any) -> dict[str, Any]:
    """Turn whatever was returned into data."""
    if plan is None:
        return {"none": True}
    if not isinstance(plan, kind):
        return {"other": type(plan).__name__}
    # Not by a method of the plan's, which may be a class of the user's.
    return {f"plan.{name}": _data(getattr(plan, name)) for name in declarations(kind)}


def _data(value: Any) -> Any:
    """Copy a field without what a class of the user's may add to it."""
    if isinstance(value, np.ndarray):
        return np.asarray(value).view(np.ndarray)
    if isinstance(value, (list, tuple)):
        return [_data(one) for one in value]
    return value


def _plan_of(instance: AnyInstance, content: Mapping[str, Any]) -> tuple[Plan | None, str]:
    """Make the plan that an answer describes, checked field by field, or say why there is none."""
    if "error" in content:
        return None, str(content["error"])
    if "none" in content:
        return None, ""
    if "other" in content:
        return None, f"{instance.problem}: a plan must be a {instance.plan_type.__name__}, got {content['other']}"
    fields = {name: content.get(f"plan.{name}") for name in declarations(instance.plan_type)}
    try:
        return instance.plan_type(**fields), ""
    except (PlanError, TypeError, RecursionError) as error:
        return None, str(error)
