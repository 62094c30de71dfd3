"""Configurations of Sia (SOSP'23), and goodputs of jobs on them by the model of Pollux (OSDI'21).

A *configuration* is a GPU type and a number of GPUs: powers of two within a server, and whole servers beyond, as in
the released code.  A job's *goodput* is what it trains in a second, counted in examples that bring it as far as one of
its smallest batch would: throughput times statistical efficiency, at the batch size where that is greatest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from instances.arithmetic import power
from instances.schema import FloatArray, IntArray

__all__ = ["TrainingModel", "batch_sizes", "sizes_within"]

MOST_GPUS = 64
"""The most GPUs of a configuration, in the released configurations."""
BATCHES = 9
"""Batch sizes that are tried, from the smallest to the greatest, in equal ratios."""


def sizes_within(server_gpus: int, num_servers: int, most: int = MOST_GPUS) -> list[int]:
    """Return the numbers of GPUs of a type's configurations: powers of two below a server, and whole servers.

    Parameters
    ----------
    server_gpus, num_servers : int
        GPUs of a server of the type, and its servers.
    most : int
        GPUs that no configuration exceeds.
    """
    below = [2**step for step in range(server_gpus.bit_length()) if 2**step < server_gpus]
    whole = [server_gpus * count for count in range(1, num_servers + 1)]
    return [size for size in below + whole if size <= most]


def batch_sizes(least: float, most: float, count: int = BATCHES) -> FloatArray:
    """Return batch sizes in equal ratios, both ends among them."""
    sizes: FloatArray = least * power(most / least, np.arange(count) / (count - 1))
    return sizes


@dataclass(frozen=True)
class TrainingModel:
    """What the goodput of a job follows from, on one GPU type: the model of Pollux, as its released code has it.

    Attributes
    ----------
    per_step, per_example : float
        Time of a gradient on one GPU, s: constant, and for each example of its own batch.
    within, across : float
        Time of a synchronisation, s, on one server and across servers.
    more_within, more_across : float
        What each GPU beyond two adds to it.
    overlap : float
        From 1, where a gradient and its synchronisation follow each other, to 10, where the longer hides the other.
    """

    per_step: float
    per_example: float
    within: float
    more_within: float
    across: float
    more_across: float
    overlap: float

    def goodputs(
        self, gpus: IntArray, servers: IntArray, batches: tuple[float, float], most_per_gpu: float, noise: float
    ) -> FloatArray:
        """Return the goodput on each number of GPUs, on so many servers, in examples of the smallest batch a second.

        Parameters
        ----------
        gpus, servers : (c,) int
        batches : pair of float
            Least and greatest batch size of the job.
        most_per_gpu : float
            Examples that a GPU's memory holds.
        noise : float
            The gradient's noise scale: batch sizes beyond it bring little.

        Returns
        -------
        (c,) float
            0 where the smallest batch does not fit the GPUs' memory.
        """
        sizes = batch_sizes(*batches)[:, None]
        gradient = self.per_step + self.per_example * sizes / gpus
        alone, together = self.within + self.more_within * (gpus - 2), self.across + self.more_across * (gpus - 2)
        waited = np.where(gpus == 1, 0.0, np.where(servers == 1, alone, together))
        step = power(power(gradient, self.overlap) + power(waited, self.overlap), 1 / self.overlap)
        efficiency = (noise + batches[0]) / (noise + sizes)
        goodputs = np.where(sizes <= most_per_gpu * gpus, sizes / step * efficiency, 0.0)
        best: FloatArray = goodputs.max(axis=0)
        return best
