"""How to solve, whichever the problem and the solver."""

from __future__ import annotations

import math
from dataclasses import dataclass

from formulations.engine.highs import Session
from formulations.engine.linear import FEASIBILITY_TOLERANCE
from instances.base import Plan

__all__ = ["Options"]


@dataclass(frozen=True)
class Options:
    """How to solve: the keyword arguments of :func:`formulations.solve`."""

    solver: str = "highs"
    time_limit: float | None = None
    mip_gap: float = 0.0
    threads: int = 1
    seed: int = 0
    start: Plan | None = None
    verify: bool | None = None

    def __post_init__(self) -> None:
        if self.time_limit is not None and not self.time_limit > 0:
            raise ValueError(f"time_limit: got {self.time_limit!r}, must be positive seconds")
        if not 0 <= self.mip_gap < math.inf:
            raise ValueError(f"mip_gap: got {self.mip_gap!r}, must be at least 0")
        if self.threads < 1:
            raise ValueError(f"threads: got {self.threads!r}, must be at least 1")
        if not 0 <= self.seed < 2**31:
            raise ValueError(f"seed: got {self.seed!r}, must be at least 0 and below 2**31")

    def session(self, tolerance: float = FEASIBILITY_TOLERANCE) -> Session:
        return Session(
            time_limit=self.time_limit,
            mip_gap=self.mip_gap,
            threads=self.threads,
            seed=self.seed,
            tolerance=tolerance,
            verify=self.verify,
        )
