"""The reference's word on a submission: what it says of plans, prices and instances."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from instances.base import Instance, Plan, agree
from instances.files import text_of
from instances.reference import Malformed, Reference, TooLarge, vipr
from instances.reference.stated import STATED
from validation.errors import StudyError
from validation.kinds.collection.store import text_of_plan

__all__ = ["Checked"]


class Checked:
    """An instance as the reference reads it.

    Parameters
    ----------
    instance : Instance
    """

    def __init__(self, instance: Instance[Any]) -> None:
        self._instance = instance
        self._reference = Reference(text_of(instance))

    def value(self, plan: Plan) -> Fraction:
        """Return what a plan is worth, without rounding.

        Raises
        ------
        StudyError
            When the reference finds that it breaks a rule, or that it is worth something else than the instance says.
        """
        text = text_of_plan(plan)
        broken = self._reference.violations(text)
        if broken:
            raise StudyError(f"the collection's checker finds that the plan breaks {', '.join(broken[:3])}")
        found, value = self._reference.value(text), self._instance.objective(plan)
        if not isinstance(found, Fraction) or not agree(float(found), value):
            raise StudyError(f"the plan is worth {value!r} to the library and {float(found)!r} to the checker")
        return found

    def bound(self, prices: Mapping[str, Any], plan: Plan | None = None) -> Fraction:
        """Return what prices prove.

        Parameters
        ----------
        prices : mapping
        plan : Plan, optional
            A plan that they must prove to be best, if its value is at the bound.

        Raises
        ------
        StudyError
            When they are none of this problem's, or prove nothing, or too little of the plan.
        """
        try:
            text = json.dumps(prices, allow_nan=False)
            found = self._reference.bound(text)
            if plan is not None and agree(float(found), self._instance.objective(plan)):
                left = self._reference.unproven(text_of_plan(plan), text)
                if left:
                    raise StudyError(f"prices: they leave it open whether the plan is best: {left[0]}")
        except (Malformed, ValueError) as error:
            raise StudyError(f"prices: {error}") from None
        if math.isinf(found):
            raise StudyError("prices: they prove no bound")
        return Fraction(found)

    def certified(self, certificate: str) -> Fraction:
        """Return what a certificate proves of the program that the reference states of the instance.

        Raises
        ------
        StudyError
            When the reference states none, or the certificate is of another one, or proves no bound.
        """
        if self._reference.name not in STATED:
            raise StudyError(f"the collection's checker states no program of {self._reference.name} by itself")
        try:
            found = self._reference.certified(vipr.check(io.StringIO(certificate)))
        except (Malformed, vipr.Refuted) as error:
            raise StudyError(f"certificate: {error}") from None
        if math.isinf(found):
            raise StudyError("certificate: it proves no bound")
        return Fraction(found)

    def searched(self) -> Fraction | None:
        """Return the bound of the reference's own search; None where there is none, or it would take too long."""
        try:
            found = self._reference.searched()
        except TooLarge:
            return None
        return None if math.isinf(found) else Fraction(found)
