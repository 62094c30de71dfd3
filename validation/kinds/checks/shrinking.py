"""Failing instances are made small, within limits of time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from instances.base import Instance
from validation.testing.neighbours import shrunk

__all__ = ["Shrinking"]

AnyInstance = Instance[Any]

SHRINK_LIMIT = 3.0
"""Processor seconds for making a failing instance small."""
SHRINK_BUDGET = 9.0
"""Processor seconds for making all failing instances of a heuristic small; one that raises fails most checks."""


class Shrinking:
    """The processor time that is left for making failing instances small."""

    def __init__(self) -> None:
        self._left = SHRINK_BUDGET
        self._found: list[AnyInstance] = []

    def smallest(
        self, failing: AnyInstance, fails: Callable[[AnyInstance], bool], instances: list[AnyInstance]
    ) -> AnyInstance:
        """Find the smallest instance that fails, from the smallest of those drawn or found for another check."""
        instances = [*self._found, *instances]
        size = {instance.digest: len(json.dumps(instance.to_dict())) for instance in instances}
        began = time.process_time()
        end = began + max(0.0, min(SHRINK_LIMIT, self._left))
        for instance in sorted(instances, key=lambda one: size[one.digest]):
            if size[instance.digest] >= size[failing.digest]:
                break
            if (instance in self._found or time.process_time() <= end) and fails(instance):
                failing = instance
        failing = shrunk(failing, fails, stop=lambda: time.process_time() > end)
        self._left -= time.process_time() - began
        self._found.append(failing)
        return failing
