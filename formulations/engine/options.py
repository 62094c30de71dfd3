"""How to solve, whichever the problem and the solver."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real

from formulations.engine.highs import Session
from formulations.engine.linear import FEASIBILITY_TOLERANCE
from instances.base import Plan

__all__ = ["Options", "most_threads"]


@cache
def most_threads() -> int:
    """Threads that a solver may be asked to run: 64, or as many as there are cores."""
    return max(64, os.cpu_count() or 1)


@dataclass(frozen=True)
class Options:
    """Options of a solve: the keyword arguments of :func:`formulations.solve`."""

    solver: str = "highs"
    time_limit: float | None = None
    mip_gap: float = 0.0
    threads: int = 1
    seed: int = 0
    start: Plan | None = None
    verify: bool | None = None

    def __post_init__(self) -> None:
        if self.time_limit is not None and not (_number(self.time_limit) and self.time_limit > 0):
            raise ValueError(f"time_limit: got {self.time_limit!r}, must be positive seconds")
        if not (_number(self.mip_gap) and 0 <= self.mip_gap < math.inf):
            raise ValueError(f"mip_gap: got {self.mip_gap!r}, must be at least 0")
        most = most_threads()
        if not _whole(self.threads) or not 1 <= self.threads <= most:
            raise ValueError(f"threads: got {self.threads!r}, must be a whole number from 1 to {most}")
        if not _whole(self.seed) or not 0 <= self.seed < 2**31:
            raise ValueError(f"seed: got {self.seed!r}, must be a whole number, at least 0 and below 2**31")

    def session(self, tolerance: float = FEASIBILITY_TOLERANCE) -> Session:
        """Return a HiGHS session with these limits."""
        return Session(
            time_limit=self.time_limit,
            mip_gap=self.mip_gap,
            threads=self.threads,
            seed=self.seed,
            tolerance=tolerance,
            verify=self.verify,
        )


def _number(given: object) -> bool:
    return isinstance(given, Real) and not isinstance(given, bool)


def _whole(given: object) -> bool:
    return isinstance(given, Integral) and not isinstance(given, bool)
