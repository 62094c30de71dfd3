"""What Gavel's policies share that look at how much work jobs have left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from instances.gavel.sharing import Allocation, Sharing
from instances.schema import Array, FloatArray

__all__ = ["SharingWithSteps"]


@dataclass(frozen=True, eq=False, kw_only=True)
class SharingWithSteps(Sharing):
    """Jobs with work left that share a cluster; the other fields are those of :class:`Sharing`.

    Attributes
    ----------
    steps : (n,) float
        Steps that each job has left, positive; also found as ``iterations``.
    """

    steps: Annotated[FloatArray, Array(float, "n", above=0)]

    @property
    def iterations(self) -> FloatArray:
        """(n,) float: steps that each job has left, ``steps``."""
        return self.steps

    def times_left(self, plan: Allocation) -> FloatArray:
        """(n,) float: time until each job finishes, s; infinite for a job that receives nothing."""
        throughputs = self.throughput(plan)
        with np.errstate(over="ignore"):
            times: FloatArray = np.divide(
                self.steps, throughputs, out=np.full(self.num_jobs, np.inf), where=throughputs > 0
            )
        return times
