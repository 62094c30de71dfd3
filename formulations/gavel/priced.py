"""What the exact models of Gavel's two cost policies share."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from instances.gavel.priced import PricedSharing

__all__ = ["STRICTER", "with_stricter_slos"]

STRICTER = 1e-8
"""By how much SLOs are shortened for a plan that is to meet them in spite of the solver's rounding."""

Priced = TypeVar("Priced", bound=PricedSharing)


def with_stricter_slos(instance: Priced) -> Priced:
    """The instance with SLOs a hair shorter; scaled down to the limits, its plans still meet those of ``instance``."""
    return replace(instance, slos=instance.slos * (1 - STRICTER))
