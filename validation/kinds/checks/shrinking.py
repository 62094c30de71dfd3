"""Failing instances are made small, within limits of time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from instances.base import Instance
from validation.testing.neighbours import shrunk

__all__ = ["Shrink", "Shrinking"]

AnyInstance = Instance[Any]

SHRINK_LIMIT = 3.0
"""Processor seconds for making a failing instance small."""
SHRINK_BUDGET = 9.0
"""Processor seconds for making all failing instances of a heuristic small; one that raises fails most checks."""


Shrink = Callable[[AnyInstance, Callable[[AnyInstance], bool], Callable[[], bool]], AnyInstance]
"""``shrink(failing, fails, stop)``: the smallest instance found that fails, until it is to stop."""


class Shrinking:
    """The processor time that is left for making failing instances small.

    Parameters
    ----------
    clock : callable
        Seconds that were spent, here and by those who were asked.
    shrink : callable
        How an instance is made small; by its declarations, unless told otherwise.
    """

    def __init__(self, clock: Callable[[], float] = time.process_time, shrink: Shrink | None = None) -> None:
        self._clock = clock
        self._shrink = shrink or (lambda failing, fails, stop: shrunk(failing, fails, stop=stop))
        self._left = SHRINK_BUDGET
        self._found: list[AnyInstance] = []

    def smallest(
        self, failing: AnyInstance, fails: Callable[[AnyInstance], bool], instances: list[AnyInstance]
    ) -> AnyInstance:
        """Find the smallest instance that fails, from the smallest of those drawn or found for another check."""
        instances = [*self._found, *instances]
        size = {instance.digest: len(json.dumps(instance.to_dict())) for instance in instances}
        began = self._clock()
        end = began + max(0.0, min(SHRINK_LIMIT, self._left))
        for instance in sorted(instances, key=lambda one: size[one.digest]):
            if size[instance.digest] >= size[failing.digest]:
                break
            if (instance in self._found or self._clock() <= end) and fails(instance):
                failing = instance
        failing = self._shrink(failing, fails, lambda: self._clock() > end)
        self._left -= self._clock() - began
        self._found.append(failing)
        return failing
