"""Common ground of Gavel's policies that look at the work left of jobs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from instances.gavel.sharing import Allocation
from instances.gavel.traces import TracedSharing
from instances.schema import Array, BoolArray, FloatArray

__all__ = ["SharingWithSteps"]


@dataclass(frozen=True, eq=False, kw_only=True)
class SharingWithSteps(TracedSharing):
    """Jobs with work left that share a cluster; the other fields are those of :class:`Sharing`.

    Attributes
    ----------
    steps : (n,) float
        Steps that each job has left; also found as ``iterations``.  A job with 0 has finished: its time
        left is 0, whatever it receives.
    """

    of_trace = {"steps": "steps"}

    steps: Annotated[FloatArray, Array(float, "n", minimum=0)]

    @property
    def iterations(self) -> FloatArray:
        """(n,) float: steps that each job has left, ``steps``."""
        return self.steps

    def times_left(self, plan: Allocation) -> FloatArray:
        """(n,) float: time until each job finishes, s; infinite for one that receives nothing, 0 for a finished one."""
        throughputs = self.throughput(plan)
        with np.errstate(over="ignore"):
            times: FloatArray = np.divide(
                self.steps, throughputs, out=np.where(self.steps > 0, np.inf, 0.0), where=throughputs > 0
            )
        return times

    @cached_property
    def active(self) -> BoolArray:
        """(n,) bool: whether each job has steps left."""
        active: BoolArray = self.steps > 0
        return active

    @cached_property
    def endless(self) -> BoolArray:
        """(n,) bool: whether a job has steps left and runs nowhere, neither alone nor in a pair."""
        endless: BoolArray = self.active & (self.greatest_throughputs <= 0)
        return endless
