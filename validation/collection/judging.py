"""The collection's checker, which shares no code with the library: what it says of plans, prices and instances."""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from instances.base import Instance, Plan, agree
from instances.files import text_of
from validation.collection.store import text_of_plan
from validation.errors import StudyError

__all__ = ["Checked", "checker"]

NAME = "collection_checker"
"""What the checker's package is called here; "checker" alone may be somebody else's."""


class Checked:
    """An instance as the checker reads it.

    Parameters
    ----------
    folder : Path
        Of the collection.
    instance : Instance
    """

    def __init__(self, folder: Path, instance: Instance[Any]) -> None:
        self._package = checker(folder)
        self._common = sys.modules[f"{NAME}.common"]
        self.problem: Any = self._package.PROBLEMS[instance.problem]
        self._instance = instance
        self._read = self.problem.instance(self._common.parse(text_of(instance)))

    def value(self, plan: Plan) -> Fraction:
        """What a plan is worth, without rounding.

        Raises
        ------
        StudyError
            When the checker finds that it breaks a rule, or that it is worth something else than the instance says.
        """
        read = self.problem.plan(self._read, self._common.parse(text_of_plan(plan)))
        broken = self.problem.verdict(self._read, read).broken
        if broken:
            raise StudyError(f"the collection's checker finds that the plan breaks {', '.join(broken[:3])}")
        found, value = self.problem.worth(self._read, read), self._instance.objective(plan)
        if not isinstance(found, Fraction) or not agree(float(found), value):
            raise StudyError(f"the plan is worth {value!r} to the library and {float(found)!r} to the checker")
        return found

    def bound(self, prices: Mapping[str, Any]) -> Fraction:
        """What prices prove.

        Raises
        ------
        StudyError
            When they are none of this problem's, or prove nothing.
        """
        try:
            found = self.problem.bound(self._read, self._common.parse(json.dumps(prices, allow_nan=False)))
        except (self._common.Malformed, ValueError) as error:
            raise StudyError(f"prices: {error}") from None
        if math.isinf(found):
            raise StudyError("prices: they prove no bound")
        return Fraction(found)

    def searched(self) -> Fraction | None:
        """The optimum by the checker's own search; None where there is none, or it would take too long."""
        try:
            found = self.problem.searched(self._read)
        except self._common.TooLarge:
            return None
        return None if math.isinf(found) else Fraction(found)


@cache
def checker(folder: Path) -> ModuleType:
    """The package of a collection's checker.

    Raises
    ------
    StudyError
        When the collection has none.
    """
    file = folder / "checker" / "__init__.py"
    if not file.is_file():
        raise StudyError(f"{file} is missing: there is nothing to check with")
    for known in [name for name in sys.modules if name == NAME or name.startswith(f"{NAME}.")]:
        del sys.modules[known]
    found = importlib.util.spec_from_file_location(NAME, file, submodule_search_locations=[str(file.parent)])
    assert found is not None
    assert found.loader is not None
    package = importlib.util.module_from_spec(found)
    sys.modules[NAME] = package
    found.loader.exec_module(package)
    return package
