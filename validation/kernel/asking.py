"""Questions to heuristics: apart, in a process that nothing else uses, or in this one.

What crosses from the other process is the data of a plan (:mod:`validation.kernel.isolation`); who judges it makes the
plan anew.
"""

from __future__ import annotations

import copy
import functools
import importlib
import math
import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

import instances
from instances.base import Instance, Plan, PlanError
from instances.schema import declarations, quoted
from validation.catalogue import Heuristic
from validation.kernel.isolation import Apart, describe, plain
from validation.kernel.judging import Answer, Asked, judge

__all__ = ["Asking", "Askings", "alike", "answer", "answered", "ask", "ask_here", "call", "stream"]

AnyInstance = Instance[Any]


class Asking:
    """A heuristic in a process of its own; a random one draws from a stream of seed and instance alone.

    Parameters
    ----------
    heuristic : Heuristic
    seed : int, optional
        None for the same stream, whatever the instance.
    memory : int, optional
        Bytes above which it is stopped.
    counts : bool
        Whether the lines of Python are counted that it runs, where it is asked of one instance.

    Notes
    -----
    For one instance, :func:`ask`.  Asked of several, the heuristic is called in one process as long as
    that lives, so that what it keeps there is its own affair.  To be used as a context.
    """

    def __init__(
        self, heuristic: Heuristic, seed: int | None, *, memory: int | None = None, counts: bool = False
    ) -> None:
        for module in heuristic.imports:
            importlib.import_module(module)
        self.heuristic = heuristic
        # The function reaches a forked process as it is, so that it need not be picklable.
        self.apart = Apart(functools.partial(answered, heuristic, seed, counts=counts), memory=memory)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.apart.close()

    def ask(self, instance: AnyInstance, *, seconds: float) -> Asked:
        """Ask for a plan for an instance, for at most ``seconds``."""
        reply = self.apart.ask(instance, seconds=seconds)
        plan, reason = _plan_of(instance, reply.content) if reply.content is not None else (None, reply.reason)
        steps = (reply.content or {}).get("steps")
        return Asked(plan, reply.seconds, plain(reason), steps=steps if type(steps) is int and steps >= 0 else None)

    def ask_each(self, instances: Sequence[AnyInstance], *, seconds: float) -> list[Asked]:
        """Ask for a plan for each instance in turn, in one question, for at most ``seconds``.

        What that process says of an instance besides is in the answers: whether it was changed, and what was returned
        in place of a plan.  Where the process ends, the question is put again instance by instance.
        """
        reply = self.apart.ask(list(instances), seconds=seconds)
        if reply.content is None or "error" in reply.content:
            if len(instances) == 1:
                reason = reply.reason if reply.content is None else str(reply.content["error"])
                return [Asked(None, reply.seconds, plain(reason))]
            return [one for instance in instances for one in self.ask_each([instance], seconds=seconds)]
        return [_examined(one, number, reply.content) for number, one in enumerate(instances)]

    def answer(self, instance: AnyInstance, *, seconds: float) -> Answer:
        """Ask for a plan for an instance, for at most ``seconds``, and judge it."""
        asked = self.ask(instance, seconds=seconds)
        return replace(judge(instance, asked, declines=self.heuristic.declines), steps=asked.steps)


def ask(instance: AnyInstance, heuristic: Heuristic, seed: int, *, seconds: float, memory: int | None = None) -> Asked:
    """Ask a heuristic for a plan for one instance, in a process that nothing else uses."""
    with Asking(heuristic, seed, memory=memory) as asking:
        return asking.ask(instance, seconds=seconds)


def answer(
    instance: AnyInstance,
    heuristic: Heuristic,
    seed: int,
    *,
    seconds: float,
    memory: int | None = None,
    counts: bool = False,
) -> Answer:
    """Ask a heuristic for a plan for one instance, in a process that nothing else uses, and judge it."""
    with Asking(heuristic, seed, memory=memory, counts=counts) as asking:
        return asking.answer(instance, seconds=seconds)


class Askings:
    """Heuristics that are asked of several instances at once, each in a process of its own with one random stream.

    Parameters
    ----------
    apart : bool
        Whether they are asked apart; else in this process, for code that is trusted.

    Attributes
    ----------
    seconds : float
        That other processes took so far.

    Notes
    -----
    A process starts with the first question to its heuristic.  To be used as a context.
    """

    def __init__(self, *, apart: bool = True) -> None:
        self.seconds = 0.0
        self._apart = apart
        self._open: dict[int, Asking] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for asking in self._open.values():
            asking.__exit__()

    def __call__(
        self, heuristic: Heuristic, instances: Sequence[AnyInstance], *, seconds: float = math.inf
    ) -> list[Asked]:
        """Ask a heuristic for a plan for each instance, each time for at most so many seconds if it is asked apart.

        Two heuristics that are equal, but not the same, have two processes.
        """
        if not self._apart:
            return [_asked_here(heuristic, one) for one in instances]
        asking = self._open.get(id(heuristic))
        if asking is None:
            asking = self._open[id(heuristic)] = Asking(heuristic, None)
        began = time.monotonic()
        try:
            return asking.ask_each(instances, seconds=seconds)
        finally:
            self.seconds += time.monotonic() - began


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
    # One that is called by another, which has imported it, counts from here.
    _STEPS.number = 0
    return heuristic.function(instance, **({"rng": rng} if heuristic.random else {}))


_UNCOUNTED = (os.path.dirname(instances.__file__), "<frozen importlib")


class _Steps:
    """Lines of Python that run while it is a context, in threads that are started there, too.

    What is not Python, such as a product of matrices, is part of the line that calls it, and so are the instance and
    the plan, which look at what they are the first time only, and modules that are imported.
    """

    def __init__(self) -> None:
        self.number = 0
        self.within = threading.local()

    def __enter__(self) -> None:
        threading.settrace(self._seen)
        sys.settrace(self._seen)

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        threading.settrace(None)

    def _seen(self, frame: Any, event: str, _: Any) -> Any:
        """Look at what happens in a frame that counts; at each call, whether the new one does."""
        if event == "line":
            self.number += 1
        elif event == "call" and getattr(self.within, "uncounted", False):
            return None
        elif event == "call" and frame.f_code.co_filename.startswith(_UNCOUNTED):
            self.within.uncounted = True
            frame.f_trace_lines = False
            return self._left
        return self._seen

    def _left(self, _: Any, event: str, __: Any) -> Any:
        """Wait for the end of a frame that counts nothing, nor what it calls."""
        if event == "return":
            self.within.uncounted = False
        return self._left


_STEPS = _Steps()


def answered(
    heuristic: Heuristic, seed: int | None, asked: AnyInstance | list[AnyInstance], *, counts: bool = False
) -> dict[str, Any]:
    """Return a heuristic's answer as data: the declared fields of its plan; of several instances all, by number."""
    if isinstance(asked, list):
        each = [(f"{number}.", _examination(heuristic, seed, one)) for number, one in enumerate(asked)]
        return {begin + name: value for begin, answer in each for name, value in answer.items()}
    # Looked up before the heuristic has its hands on the instance.
    kind = asked.plan_type
    rng = stream(seed, asked) if heuristic.random else None
    if not counts:
        return _data_of(kind, call(asked, heuristic, rng))
    with _STEPS:
        plan = call(asked, heuristic, rng)
    return {**_data_of(kind, plan), "steps": _STEPS.number}


def alike() -> np.random.Generator:
    """Make the stream that a random heuristic draws from where all instances have the same."""
    return np.random.default_rng(0)


def stream(seed: int | None, instance: AnyInstance) -> np.random.Generator:
    """Make the stream that a random heuristic draws from: an instance's own for a seed, that of all for None."""
    return alike() if seed is None else np.random.default_rng([seed, int(instance.digest[:16], 16)])


def _examination(heuristic: Heuristic, seed: int | None, instance: AnyInstance) -> dict[str, Any]:
    """Return an answer as data, with what came in place of a plan, and whether the instance is another one now."""
    before, kind = instance.digest, instance.plan_type
    try:
        plan = call(instance, heuristic, stream(seed, instance) if heuristic.random else None)
        content = _data_of(kind, plan)
        if "other" in content:
            content["shown"] = plain(quoted(plan))
    except BaseException as error:
        content = {"error": describe(error)}
    return {**content, "changed": _changed(instance, before)}


def _changed(instance: AnyInstance, before: str) -> bool:
    """Return whether an instance is another one than that of a digest; what is no instance any more is another one."""
    # It is remembered from before.
    vars(instance).pop("digest", None)
    try:
        return instance.digest != before
    except Exception:
        return True


def _examined(instance: AnyInstance, number: int, content: Mapping[str, Any]) -> Asked:
    """Read what is said of an instance among several, by a process that may say anything."""
    names = ("error", "none", "other", *(f"plan.{name}" for name in declarations(instance.plan_type)))
    own = {name: content[f"{number}.{name}"] for name in names if f"{number}.{name}" in content}
    plan, reason = _plan_of(instance, own)
    shown = plain(str(content.get(f"{number}.shown", "")))
    return Asked(plan, 0.0, plain(reason), content.get(f"{number}.changed") is True, shown)


def _asked_here(heuristic: Heuristic, instance: AnyInstance) -> Asked:
    given = copy.deepcopy(instance)
    asked = ask_here(given, heuristic, alike())
    return replace(asked, changed=_changed(given, instance.digest))


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
